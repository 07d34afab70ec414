/* snapshot.c - see snapshot.h.
 *
 * A database and the maps of its containers form one entry. An entry is shared like everything
 * else: changing a container copies its database's entry, which copies two pointers, and the path
 * to it in the map of databases. The scripts of a container form an entry of their own beside it,
 * so that neither is copied when the other changes. A user and its permissions form one entry, as a
 * database does.
 */
#include "catalog/snapshot.h"

#include "base/mem.h"

/* The scripts of one container. */
typedef struct ScriptEntry {
    _Atomic uint32_t refs;
    Trie scripts[STORED_SCRIPT_KINDS]; /* by number -> StoredScript */
    Trie names[STORED_SCRIPT_KINDS];   /* by hash of the id -> StoredScript */
} ScriptEntry;

/* A user and what it is permitted. */
typedef struct UserEntry {
    _Atomic uint32_t refs;
    User *user;
    Trie permissions; /* by number -> Permission */
    Trie names;       /* by hash of the id -> Permission */
    Trie grants;      /* by hash of the grant -> Permission */
} UserEntry;

typedef struct DatabaseEntry {
    _Atomic uint32_t refs;
    Database *database;
    Trie containers; /* by number -> Container */
    Trie names;      /* by hash of the id -> Container */
    Trie keys;       /* by number -> EncryptionKey */
    Trie key_names;  /* by hash of the id -> EncryptionKey */
    Trie scripts;    /* by number of the container -> ScriptEntry, if it has any */
    Trie users;      /* by number -> UserEntry */
    Trie user_names; /* by hash of the id -> UserEntry */
    size_t shared_count;
} DatabaseEntry;

static void unref_container(void *container)
{
    container_unref(container);
}

static void unref_key(void *key)
{
    encryption_key_unref(key);
}

static void unref_script(void *script)
{
    stored_script_unref(script);
}

static void script_entry_unref(void *p)
{
    ScriptEntry *entry = p;
    if (atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t kind = 0; kind < STORED_SCRIPT_KINDS; kind++) {
        trie_done(&entry->scripts[kind]);
        trie_done(&entry->names[kind]);
    }
    mem_free(entry);
}

/* A copy of 'old', or empty if that is NULL. */
static ScriptEntry *script_entry_new(const ScriptEntry *old)
{
    ScriptEntry *entry = MEM_NEW(ScriptEntry);
    atomic_init(&entry->refs, 1);
    for (size_t kind = 0; kind < STORED_SCRIPT_KINDS; kind++) {
        if (old == NULL) {
            trie_init(&entry->scripts[kind], unref_script);
            trie_init(&entry->names[kind], unref_script);
        } else {
            entry->scripts[kind] = trie_copy(&old->scripts[kind]);
            entry->names[kind] = trie_copy(&old->names[kind]);
        }
    }
    return entry;
}

static void unref_permission(void *permission)
{
    permission_unref(permission);
}

static void user_entry_unref(void *p)
{
    UserEntry *entry = p;
    if (atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) > 1)
        return;
    user_unref(entry->user);
    trie_done(&entry->permissions);
    trie_done(&entry->names);
    trie_done(&entry->grants);
    mem_free(entry);
}

/* Takes 'user' over; with the permissions of 'old', or none if that is NULL. */
static UserEntry *user_entry_new(User *user, const UserEntry *old)
{
    UserEntry *entry = MEM_NEW(UserEntry);
    atomic_init(&entry->refs, 1);
    entry->user = user;
    if (old == NULL) {
        trie_init(&entry->permissions, unref_permission);
        trie_init(&entry->names, unref_permission);
        trie_init(&entry->grants, unref_permission);
        return entry;
    }
    entry->permissions = trie_copy(&old->permissions);
    entry->names = trie_copy(&old->names);
    entry->grants = trie_copy(&old->grants);
    return entry;
}

static void unref_saved(void *state)
{
    saved_state_unref(state);
}

static void unref_offer(void *offer)
{
    offer_unref(offer);
}

static void entry_unref(void *p)
{
    DatabaseEntry *entry = p;
    if (atomic_fetch_sub_explicit(&entry->refs, 1, memory_order_acq_rel) > 1)
        return;
    database_unref(entry->database);
    trie_done(&entry->containers);
    trie_done(&entry->names);
    trie_done(&entry->keys);
    trie_done(&entry->key_names);
    trie_done(&entry->scripts);
    trie_done(&entry->users);
    trie_done(&entry->user_names);
    mem_free(entry);
}

static DatabaseEntry *entry_new(Database *database, const DatabaseEntry *old)
{
    DatabaseEntry *entry = MEM_NEW(DatabaseEntry);
    atomic_init(&entry->refs, 1);
    entry->database = database;
    if (old == NULL) {
        trie_init(&entry->containers, unref_container);
        trie_init(&entry->names, unref_container);
        trie_init(&entry->keys, unref_key);
        trie_init(&entry->key_names, unref_key);
        trie_init(&entry->scripts, script_entry_unref);
        trie_init(&entry->users, user_entry_unref);
        trie_init(&entry->user_names, user_entry_unref);
        return entry;
    }
    entry->containers = trie_copy(&old->containers);
    entry->names = trie_copy(&old->names);
    entry->keys = trie_copy(&old->keys);
    entry->key_names = trie_copy(&old->key_names);
    entry->scripts = trie_copy(&old->scripts);
    entry->users = trie_copy(&old->users);
    entry->user_names = trie_copy(&old->user_names);
    entry->shared_count = old->shared_count;
    return entry;
}

static DatabaseEntry *entry_ref(DatabaseEntry *entry)
{
    atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
    return entry;
}

static uint64_t name_hash(const Snapshot *snapshot, Slice id)
{
    return hash_keyed(snapshot->hash_key, id);
}

Snapshot *snapshot_new(HashKey hash_key)
{
    Snapshot *snapshot = MEM_NEW(Snapshot);
    atomic_init(&snapshot->refs, 1);
    snapshot->hash_key = hash_key;
    trie_init(&snapshot->databases, entry_unref);
    trie_init(&snapshot->database_names, entry_unref);
    trie_init(&snapshot->offers, unref_offer);
    trie_init(&snapshot->saved_states, unref_saved);
    return snapshot;
}

Snapshot *snapshot_copy(const Snapshot *snapshot)
{
    Snapshot *copy = MEM_NEW(Snapshot);
    atomic_init(&copy->refs, 1);
    copy->hash_key = snapshot->hash_key;
    copy->databases = trie_copy(&snapshot->databases);
    copy->database_names = trie_copy(&snapshot->database_names);
    copy->offers = trie_copy(&snapshot->offers);
    copy->saved_states = trie_copy(&snapshot->saved_states);
    copy->container_count = snapshot->container_count;
    return copy;
}

Snapshot *snapshot_ref(Snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->refs, 1, memory_order_relaxed);
    return snapshot;
}

void snapshot_unref(Snapshot *snapshot)
{
    if (snapshot == NULL || atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel) > 1)
        return;
    trie_done(&snapshot->databases);
    trie_done(&snapshot->database_names);
    trie_done(&snapshot->offers);
    trie_done(&snapshot->saved_states);
    mem_free(snapshot);
}

static const DatabaseEntry *find_entry(const Snapshot *snapshot, uint32_t number)
{
    return trie_get(&snapshot->databases, number);
}

const Database *snapshot_database(const Snapshot *snapshot, uint32_t number)
{
    const DatabaseEntry *entry = find_entry(snapshot, number);
    return entry == NULL ? NULL : entry->database;
}

const Database *snapshot_database_by_id(const Snapshot *snapshot, Slice id)
{
    const DatabaseEntry *entry = trie_get(&snapshot->database_names, name_hash(snapshot, id));
    return entry != NULL && slice_equal(entry->database->info.id, id) ? entry->database : NULL;
}

const Container *snapshot_container(const Snapshot *snapshot, uint32_t database, uint32_t number)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    return entry == NULL ? NULL : trie_get(&entry->containers, number);
}

const Container *snapshot_container_by_id(const Snapshot *snapshot, uint32_t database, Slice id)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    const Container *container =
        entry == NULL ? NULL : trie_get(&entry->names, name_hash(snapshot, id));
    return container != NULL && slice_equal(container->info.id, id) ? container : NULL;
}

const Offer *snapshot_offer(const Snapshot *snapshot, uint32_t number)
{
    return trie_get(&snapshot->offers, number);
}

const EncryptionKey *snapshot_key(const Snapshot *snapshot, uint32_t database, uint32_t number)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    return entry == NULL ? NULL : trie_get(&entry->keys, number);
}

const EncryptionKey *snapshot_key_by_id(const Snapshot *snapshot, uint32_t database, Slice id)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    const EncryptionKey *key =
        entry == NULL ? NULL : trie_get(&entry->key_names, name_hash(snapshot, id));
    return key != NULL && slice_equal(key->info.id, id) ? key : NULL;
}

const EncryptionKey *snapshot_next_key(const Snapshot *snapshot, uint32_t database, uint32_t from)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    uint64_t number = from;
    return entry == NULL ? NULL : trie_next(&entry->keys, &number);
}

static const ScriptEntry *find_scripts(const Snapshot *snapshot, StoredScriptGroup group)
{
    ASSERT(group.kind < STORED_SCRIPT_KINDS);
    const DatabaseEntry *entry = find_entry(snapshot, group.database);
    return entry == NULL ? NULL : trie_get(&entry->scripts, group.container);
}

const StoredScript *snapshot_script(const Snapshot *snapshot, StoredScriptGroup group,
                                    uint32_t number)
{
    const ScriptEntry *entry = find_scripts(snapshot, group);
    return entry == NULL ? NULL : trie_get(&entry->scripts[group.kind], number);
}

const StoredScript *snapshot_script_by_id(const Snapshot *snapshot, StoredScriptGroup group,
                                          Slice id)
{
    const ScriptEntry *entry = find_scripts(snapshot, group);
    const StoredScript *script =
        entry == NULL ? NULL : trie_get(&entry->names[group.kind], name_hash(snapshot, id));
    return script != NULL && slice_equal(script->info.id, id) ? script : NULL;
}

const StoredScript *snapshot_next_script(const Snapshot *snapshot, StoredScriptGroup group,
                                         uint32_t from)
{
    const ScriptEntry *entry = find_scripts(snapshot, group);
    uint64_t number = from;
    return entry == NULL ? NULL : trie_next(&entry->scripts[group.kind], &number);
}

size_t snapshot_script_count(const Snapshot *snapshot, StoredScriptGroup group)
{
    const ScriptEntry *entry = find_scripts(snapshot, group);
    return entry == NULL ? 0 : entry->scripts[group.kind].count;
}

static const UserEntry *find_user(const Snapshot *snapshot, UserKey key)
{
    const DatabaseEntry *entry = find_entry(snapshot, key.database);
    return entry == NULL ? NULL : trie_get(&entry->users, key.user);
}

const User *snapshot_user(const Snapshot *snapshot, UserKey key)
{
    const UserEntry *entry = find_user(snapshot, key);
    return entry == NULL ? NULL : entry->user;
}

const User *snapshot_user_by_id(const Snapshot *snapshot, uint32_t database, Slice id)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    const UserEntry *user =
        entry == NULL ? NULL : trie_get(&entry->user_names, name_hash(snapshot, id));
    return user != NULL && slice_equal(user->user->info.id, id) ? user->user : NULL;
}

const Permission *snapshot_permission(const Snapshot *snapshot, UserKey owner, uint32_t number)
{
    const UserEntry *entry = find_user(snapshot, owner);
    return entry == NULL ? NULL : trie_get(&entry->permissions, number);
}

const Permission *snapshot_permission_by_id(const Snapshot *snapshot, UserKey owner, Slice id)
{
    const UserEntry *entry = find_user(snapshot, owner);
    const Permission *permission =
        entry == NULL ? NULL : trie_get(&entry->names, name_hash(snapshot, id));
    return permission != NULL && slice_equal(permission->info.id, id) ? permission : NULL;
}

const Permission *snapshot_permission_by_grant(const Snapshot *snapshot, UserKey owner, Slice grant)
{
    const UserEntry *entry = find_user(snapshot, owner);
    const Permission *permission =
        entry == NULL ? NULL : trie_get(&entry->grants, name_hash(snapshot, grant));
    return permission != NULL && slice_equal(permission->grant, grant) ? permission : NULL;
}

const User *snapshot_next_user(const Snapshot *snapshot, uint32_t database, uint32_t from)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    uint64_t number = from;
    const UserEntry *user = entry == NULL ? NULL : trie_next(&entry->users, &number);
    return user == NULL ? NULL : user->user;
}

const Permission *snapshot_next_permission(const Snapshot *snapshot, UserKey owner, uint32_t from)
{
    const UserEntry *entry = find_user(snapshot, owner);
    uint64_t number = from;
    return entry == NULL ? NULL : trie_next(&entry->permissions, &number);
}

size_t snapshot_user_count(const Snapshot *snapshot, uint32_t database)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    return entry == NULL ? 0 : entry->users.count;
}

size_t snapshot_permission_count(const Snapshot *snapshot, UserKey owner)
{
    const UserEntry *entry = find_user(snapshot, owner);
    return entry == NULL ? 0 : entry->permissions.count;
}

const Database *snapshot_next_database(const Snapshot *snapshot, uint32_t from)
{
    uint64_t key = from;
    const DatabaseEntry *entry = trie_next(&snapshot->databases, &key);
    return entry == NULL ? NULL : entry->database;
}

const Container *snapshot_next_container(const Snapshot *snapshot, uint32_t database, uint32_t from)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    uint64_t key = from;
    return entry == NULL ? NULL : trie_next(&entry->containers, &key);
}

const Offer *snapshot_next_offer(const Snapshot *snapshot, uint32_t from)
{
    uint64_t key = from;
    return trie_next(&snapshot->offers, &key);
}

bool snapshot_next(const Snapshot *snapshot, SnapshotWalk *walk)
{
    ASSERT((walk->database == NULL) == (walk->container == NULL));
    uint32_t from = 0;
    if (walk->container == NULL)
        walk->database = snapshot_next_database(snapshot, 0);
    else
        from = walk->container->info.number + 1;
    for (; walk->database != NULL; from = 0) {
        uint32_t number = walk->database->info.number;
        walk->container = snapshot_next_container(snapshot, number, from);
        if (walk->container != NULL)
            return true;
        walk->database = snapshot_next_database(snapshot, number + 1);
    }
    ASSERT(walk->container == NULL);
    return false;
}

size_t snapshot_shared_count(const Snapshot *snapshot, uint32_t database)
{
    const DatabaseEntry *entry = find_entry(snapshot, database);
    return entry == NULL ? 0 : entry->shared_count;
}

/* Puts 'entry', of which the caller gives one reference, under its number and its name. */
static void put_entry(Snapshot *snapshot, DatabaseEntry *entry)
{
    uint64_t hash = name_hash(snapshot, entry->database->info.id);
    trie_put(&snapshot->database_names, hash, entry_ref(entry));
    trie_put(&snapshot->databases, entry->database->info.number, entry);
}

bool snapshot_put_database(Snapshot *snapshot, Database *database)
{
    const DatabaseEntry *same_hash =
        trie_get(&snapshot->database_names, name_hash(snapshot, database->info.id));
    if (same_hash != NULL && same_hash->database->info.number != database->info.number) {
        database_unref(database);
        return false;
    }
    put_entry(snapshot, entry_new(database, find_entry(snapshot, database->info.number)));
    return true;
}

bool snapshot_put_container(Snapshot *snapshot, Container *container)
{
    const DatabaseEntry *old = find_entry(snapshot, container->database);
    ASSERT(old != NULL);
    uint64_t hash = name_hash(snapshot, container->info.id);
    const Container *same_hash = trie_get(&old->names, hash);
    if (same_hash != NULL && same_hash->info.number != container->info.number) {
        container_unref(container);
        return false;
    }
    DatabaseEntry *entry = entry_new(database_ref(old->database), old);
    const Container *before = trie_get(&entry->containers, container->info.number);
    entry->shared_count -= before != NULL && before->offer == 0 ? 1 : 0;
    entry->shared_count += container->offer == 0 ? 1 : 0;
    snapshot->container_count += before == NULL ? 1 : 0;
    trie_put(&entry->names, hash, container_ref(container));
    trie_put(&entry->containers, container->info.number, container);
    put_entry(snapshot, entry);
    return true;
}

bool snapshot_swap_containers(Snapshot *snapshot, Container *renamed, Container *named)
{
    const DatabaseEntry *old = find_entry(snapshot, renamed->database);
    ASSERT(old != NULL);
    uint64_t hash = name_hash(snapshot, renamed->info.id);
    const Container *copy = trie_get(&old->containers, named->info.number);
    ASSERT(copy != NULL);
    if (trie_get(&old->names, hash) != NULL) {
        container_unref(renamed);
        container_unref(named);
        return false;
    }
    DatabaseEntry *entry = entry_new(database_ref(old->database), old);
    (void)trie_remove(&entry->names, name_hash(snapshot, copy->info.id));
    trie_put(&entry->names, hash, container_ref(renamed));
    trie_put(&entry->names, name_hash(snapshot, named->info.id), container_ref(named));
    trie_put(&entry->containers, renamed->info.number, renamed);
    trie_put(&entry->containers, named->info.number, named);
    put_entry(snapshot, entry);
    return true;
}

bool snapshot_put_key(Snapshot *snapshot, EncryptionKey *key)
{
    const DatabaseEntry *old = find_entry(snapshot, key->database);
    ASSERT(old != NULL);
    uint64_t hash = name_hash(snapshot, key->info.id);
    const EncryptionKey *same_hash = trie_get(&old->key_names, hash);
    if (same_hash != NULL && same_hash->info.number != key->info.number) {
        encryption_key_unref(key);
        return false;
    }
    DatabaseEntry *entry = entry_new(database_ref(old->database), old);
    trie_put(&entry->key_names, hash, encryption_key_ref(key));
    trie_put(&entry->keys, key->info.number, key);
    put_entry(snapshot, entry);
    return true;
}

/* Puts 'scripts', which are taken over, in the place of those of 'container'. */
static void put_scripts(Snapshot *snapshot, const DatabaseEntry *old, uint32_t container,
                        ScriptEntry *scripts)
{
    DatabaseEntry *entry = entry_new(database_ref(old->database), old);
    trie_put(&entry->scripts, container, scripts);
    put_entry(snapshot, entry);
}

bool snapshot_put_script(Snapshot *snapshot, StoredScript *script)
{
    StoredScriptGroup group = script->group;
    const DatabaseEntry *database = find_entry(snapshot, group.database);
    ASSERT(database != NULL);
    ASSERT(trie_get(&database->containers, group.container) != NULL);
    const ScriptEntry *old = find_scripts(snapshot, group);
    uint64_t hash = name_hash(snapshot, script->info.id);
    const StoredScript *same_hash = old == NULL ? NULL : trie_get(&old->names[group.kind], hash);
    if (same_hash != NULL && same_hash->info.number != script->info.number) {
        stored_script_unref(script);
        return false;
    }
    ScriptEntry *entry = script_entry_new(old);
    const StoredScript *before = trie_get(&entry->scripts[group.kind], script->info.number);
    if (before != NULL)
        (void)trie_remove(&entry->names[group.kind], name_hash(snapshot, before->info.id));
    trie_put(&entry->names[group.kind], hash, stored_script_ref(script));
    trie_put(&entry->scripts[group.kind], script->info.number, script);
    put_scripts(snapshot, database, group.container, entry);
    return true;
}

/* Puts 'user', which is taken over, in the place of the one with its number. */
static void put_user_entry(Snapshot *snapshot, const DatabaseEntry *old, UserEntry *user)
{
    DatabaseEntry *entry = entry_new(database_ref(old->database), old);
    const UserEntry *before = trie_get(&entry->users, user->user->info.number);
    if (before != NULL)
        (void)trie_remove(&entry->user_names, name_hash(snapshot, before->user->info.id));
    atomic_fetch_add_explicit(&user->refs, 1, memory_order_relaxed);
    trie_put(&entry->user_names, name_hash(snapshot, user->user->info.id), user);
    trie_put(&entry->users, user->user->info.number, user);
    put_entry(snapshot, entry);
}

bool snapshot_put_user(Snapshot *snapshot, User *user)
{
    const DatabaseEntry *database = find_entry(snapshot, user->database);
    ASSERT(database != NULL);
    const UserEntry *same_hash =
        trie_get(&database->user_names, name_hash(snapshot, user->info.id));
    if (same_hash != NULL && same_hash->user->info.number != user->info.number) {
        user_unref(user);
        return false;
    }
    put_user_entry(snapshot, database, user_entry_new(user, find_user(snapshot, user_key(user))));
    return true;
}

/* Whether 'hash' is taken by another permission than the one with this number. */
static bool is_taken(const Trie *trie, uint64_t hash, uint32_t number)
{
    const Permission *same = trie_get(trie, hash);
    return same != NULL && same->info.number != number;
}

bool snapshot_put_permission(Snapshot *snapshot, Permission *permission)
{
    UserKey owner = permission->owner;
    const UserEntry *old = find_user(snapshot, owner);
    ASSERT(old != NULL);
    uint32_t number = permission->info.number;
    uint64_t name = name_hash(snapshot, permission->info.id);
    uint64_t grant = name_hash(snapshot, permission->grant);
    if (is_taken(&old->names, name, number) || is_taken(&old->grants, grant, number)) {
        permission_unref(permission);
        return false;
    }
    UserEntry *entry = user_entry_new(user_ref(old->user), old);
    const Permission *before = trie_get(&entry->permissions, number);
    if (before != NULL) {
        (void)trie_remove(&entry->names, name_hash(snapshot, before->info.id));
        (void)trie_remove(&entry->grants, name_hash(snapshot, before->grant));
    }
    trie_put(&entry->names, name, permission_ref(permission));
    trie_put(&entry->grants, grant, permission_ref(permission));
    trie_put(&entry->permissions, number, permission);
    put_user_entry(snapshot, find_entry(snapshot, owner.database), entry);
    return true;
}

void snapshot_put_offer(Snapshot *snapshot, Offer *offer)
{
    trie_put(&snapshot->offers, offer->info.number, offer);
}

const SavedState *snapshot_saved(const Snapshot *snapshot, uint32_t number)
{
    return trie_get(&snapshot->saved_states, number);
}

const SavedState *snapshot_next_saved(const Snapshot *snapshot, uint32_t from)
{
    uint64_t number = from;
    return trie_next(&snapshot->saved_states, &number);
}

/* There are at most SAVED_STATES_MAX. */
const SavedState *snapshot_saved_by_name(const Snapshot *snapshot, Slice database_id, Slice name)
{
    const SavedState *state;
    for (uint32_t from = 0; (state = snapshot_next_saved(snapshot, from)) != NULL;
         from = state->number + 1) {
        if (slice_equal(state->database_id, database_id) && slice_equal(state->name, name))
            return state;
    }
    return NULL;
}

size_t snapshot_saved_count(const Snapshot *snapshot, Slice database_id)
{
    size_t count = 0;
    const SavedState *state;
    for (uint32_t from = 0; (state = snapshot_next_saved(snapshot, from)) != NULL;
         from = state->number + 1)
        count += slice_equal(state->database_id, database_id) ? 1 : 0;
    return count;
}

bool snapshot_is_saved(const Snapshot *snapshot, uint32_t database, uint32_t container)
{
    const SavedState *state;
    for (uint32_t from = 0; (state = snapshot_next_saved(snapshot, from)) != NULL;
         from = state->number + 1) {
        if (saved_state_has(state, database, container))
            return true;
    }
    return false;
}

void snapshot_put_saved(Snapshot *snapshot, SavedState *state)
{
    trie_put(&snapshot->saved_states, state->number, state);
}

void snapshot_remove_saved(Snapshot *snapshot, uint32_t number)
{
    (void)trie_remove(&snapshot->saved_states, number);
}

void snapshot_remove_database(Snapshot *snapshot, uint32_t number)
{
    const DatabaseEntry *entry = find_entry(snapshot, number);
    ASSERT(entry != NULL);
    ASSERT(snapshot->container_count >= entry->containers.count);
    snapshot->container_count -= entry->containers.count;
    (void)trie_remove(&snapshot->database_names, name_hash(snapshot, entry->database->info.id));
    (void)trie_remove(&snapshot->databases, number);
}

void snapshot_remove_container(Snapshot *snapshot, uint32_t database, uint32_t number)
{
    const DatabaseEntry *old = find_entry(snapshot, database);
    ASSERT(old != NULL);
    DatabaseEntry *entry = entry_new(database_ref(old->database), old);
    const Container *container = trie_get(&entry->containers, number);
    ASSERT(container != NULL);
    ASSERT(snapshot->container_count > 0);
    entry->shared_count -= container->offer == 0 ? 1 : 0;
    snapshot->container_count--;
    (void)trie_remove(&entry->names, name_hash(snapshot, container->info.id));
    (void)trie_remove(&entry->containers, number);
    (void)trie_remove(&entry->scripts, number);
    put_entry(snapshot, entry);
}

void snapshot_remove_script(Snapshot *snapshot, StoredScriptGroup group, uint32_t number)
{
    ScriptEntry *entry = script_entry_new(find_scripts(snapshot, group));
    const StoredScript *script = trie_get(&entry->scripts[group.kind], number);
    ASSERT(script != NULL);
    (void)trie_remove(&entry->names[group.kind], name_hash(snapshot, script->info.id));
    (void)trie_remove(&entry->scripts[group.kind], number);
    put_scripts(snapshot, find_entry(snapshot, group.database), group.container, entry);
}

void snapshot_remove_user(Snapshot *snapshot, UserKey key)
{
    const DatabaseEntry *old = find_entry(snapshot, key.database);
    ASSERT(old != NULL);
    DatabaseEntry *entry = entry_new(database_ref(old->database), old);
    const UserEntry *user = trie_get(&entry->users, key.user);
    ASSERT(user != NULL);
    (void)trie_remove(&entry->user_names, name_hash(snapshot, user->user->info.id));
    (void)trie_remove(&entry->users, key.user);
    put_entry(snapshot, entry);
}

void snapshot_remove_permission(Snapshot *snapshot, UserKey owner, uint32_t number)
{
    const UserEntry *old = find_user(snapshot, owner);
    ASSERT(old != NULL);
    UserEntry *entry = user_entry_new(user_ref(old->user), old);
    const Permission *permission = trie_get(&entry->permissions, number);
    ASSERT(permission != NULL);
    (void)trie_remove(&entry->names, name_hash(snapshot, permission->info.id));
    (void)trie_remove(&entry->grants, name_hash(snapshot, permission->grant));
    (void)trie_remove(&entry->permissions, number);
    put_user_entry(snapshot, find_entry(snapshot, owner.database), entry);
}

void snapshot_remove_offer(Snapshot *snapshot, uint32_t number)
{
    bool removed = trie_remove(&snapshot->offers, number);
    ASSERT(removed);
}
