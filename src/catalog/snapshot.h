/* snapshot.h - the whole catalogue as it stood after one change.
 *
 * Lookups by name and by number, and walks in order of number (which is the order of creation).
 * Objects handed out are borrowed as long as the snapshot is held.
 *
 * Ownership  Reference counted. Threads: immutable after it is published, any thread may read it.
 */
#pragma once

#include "base/hash.h"
#include "base/trie.h"
#include "catalog/resource.h"
#include "catalog/saved_state.h"
#include "catalog/stored_script.h"
#include "catalog/user.h"

#include <stdatomic.h>

typedef struct Snapshot {
    _Atomic uint32_t refs;
    HashKey hash_key; /* of the names below */
    Trie databases;   /* by number -> DatabaseEntry */
    Trie database_names;
    Trie offers;       /* by number -> Offer */
    Trie saved_states; /* by number -> SavedState */
    size_t container_count;
} Snapshot;

Snapshot *snapshot_ref(Snapshot *snapshot);
void snapshot_unref(Snapshot *snapshot); /* accepts NULL */
DEFINE_AUTO(Snapshot *, snapshot_unref)

/* NULL if there is none. */
const Database *snapshot_database(const Snapshot *snapshot, uint32_t number);
const Database *snapshot_database_by_id(const Snapshot *snapshot, Slice id);
const Container *snapshot_container(const Snapshot *snapshot, uint32_t database, uint32_t number);
const Container *snapshot_container_by_id(const Snapshot *snapshot, uint32_t database, Slice id);
const Offer *snapshot_offer(const Snapshot *snapshot, uint32_t number);
const EncryptionKey *snapshot_key(const Snapshot *snapshot, uint32_t database, uint32_t number);
const EncryptionKey *snapshot_key_by_id(const Snapshot *snapshot, uint32_t database, Slice id);
const StoredScript *snapshot_script(const Snapshot *snapshot, StoredScriptGroup group,
                                    uint32_t number);
const StoredScript *snapshot_script_by_id(const Snapshot *snapshot, StoredScriptGroup group,
                                          Slice id);
const User *snapshot_user(const Snapshot *snapshot, UserKey key);
const User *snapshot_user_by_id(const Snapshot *snapshot, uint32_t database, Slice id);
const Permission *snapshot_permission(const Snapshot *snapshot, UserKey owner, uint32_t number);
const Permission *snapshot_permission_by_id(const Snapshot *snapshot, UserKey owner, Slice id);
const Permission *snapshot_permission_by_grant(const Snapshot *snapshot, UserKey owner,
                                               Slice grant);

/* The one with the smallest number >= 'from', or NULL. */
const Database *snapshot_next_database(const Snapshot *snapshot, uint32_t from);
const Container *snapshot_next_container(const Snapshot *snapshot, uint32_t database,
                                         uint32_t from);
const Offer *snapshot_next_offer(const Snapshot *snapshot, uint32_t from);
const EncryptionKey *snapshot_next_key(const Snapshot *snapshot, uint32_t database, uint32_t from);
const StoredScript *snapshot_next_script(const Snapshot *snapshot, StoredScriptGroup group,
                                         uint32_t from);
const User *snapshot_next_user(const Snapshot *snapshot, uint32_t database, uint32_t from);
const Permission *snapshot_next_permission(const Snapshot *snapshot, UserKey owner, uint32_t from);

size_t snapshot_user_count(const Snapshot *snapshot, uint32_t database);
size_t snapshot_permission_count(const Snapshot *snapshot, UserKey owner);
size_t snapshot_script_count(const Snapshot *snapshot, StoredScriptGroup group);

/* A walk over the containers of all databases, in order of their numbers:
 *
 *     SnapshotWalk walk = {0};
 *     while (snapshot_next(snapshot, &walk))
 *         use(walk.database, walk.container);
 */
typedef struct SnapshotWalk {
    const Database *database; /* of 'container'; both are NULL after the end */
    const Container *container;
} SnapshotWalk;

/* Moves to the next container; false at the end. */
bool snapshot_next(const Snapshot *snapshot, SnapshotWalk *walk);

/* Containers of a database that have no throughput of their own. */
size_t snapshot_shared_count(const Snapshot *snapshot, uint32_t database);

/* Saved states, by the name of their database, which need not exist; in order of their numbers; how
 * many a database has; and whether one of them has the container. */
const SavedState *snapshot_saved(const Snapshot *snapshot, uint32_t number);
const SavedState *snapshot_saved_by_name(const Snapshot *snapshot, Slice database_id, Slice name);
const SavedState *snapshot_next_saved(const Snapshot *snapshot, uint32_t from);
size_t snapshot_saved_count(const Snapshot *snapshot, Slice database_id);
bool snapshot_is_saved(const Snapshot *snapshot, uint32_t database, uint32_t container);

/* The rest is for the catalogue's thread, on a snapshot that no reader holds yet. */

Snapshot *snapshot_new(HashKey hash_key);
Snapshot *snapshot_copy(const Snapshot *snapshot);

/* Each takes over one reference on the object and replaces an older one with its number. False if
 * another name has the same hash; then the reference is released. With a secret key this does not
 * happen in practice, and a new key (another snapshot_new) solves it. */
MUST_USE bool snapshot_put_database(Snapshot *snapshot, Database *database);
MUST_USE bool snapshot_put_container(Snapshot *snapshot, Container *container);
MUST_USE bool snapshot_put_key(Snapshot *snapshot, EncryptionKey *key);
MUST_USE bool snapshot_put_script(Snapshot *snapshot, StoredScript *script); /* may be renamed */
MUST_USE bool snapshot_put_user(Snapshot *snapshot, User *user);             /* may be renamed */
MUST_USE bool snapshot_put_permission(Snapshot *snapshot, Permission *permission); /* likewise */
/* Puts both, of which the second has the name that the first had. Nothing is changed if false. */
MUST_USE bool snapshot_swap_containers(Snapshot *snapshot, Container *renamed, Container *named);
void snapshot_put_offer(Snapshot *snapshot, Offer *offer);
void snapshot_put_saved(Snapshot *snapshot, SavedState *state);

void snapshot_remove_database(Snapshot *snapshot, uint32_t number); /* and its children */
/* And its scripts. */
void snapshot_remove_container(Snapshot *snapshot, uint32_t database, uint32_t number);
void snapshot_remove_script(Snapshot *snapshot, StoredScriptGroup group, uint32_t number);
void snapshot_remove_user(Snapshot *snapshot, UserKey key); /* and its permissions */
void snapshot_remove_permission(Snapshot *snapshot, UserKey owner, uint32_t number);
void snapshot_remove_offer(Snapshot *snapshot, uint32_t number);
void snapshot_remove_saved(Snapshot *snapshot, uint32_t number);
