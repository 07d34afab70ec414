/* catalog_load.c - from the records in the store to a snapshot.
 *
 * A disk can be damaged, and the code that works on a snapshot trusts it: that each number was
 * given out once (I3), that an offer and its owner name each other, that no container uses the
 * spaces of a dropped one. All of this is checked here, once. A catalogue that fails a check is not
 * served.
 *
 * A record with pending ranges belongs to a move that was interrupted, unless another node leads.
 * No request was routed to them, so the move is undone by writing the record without them (I10).
 *
 * A node that follows loads everything again when records have changed. Most have not, and their
 * objects are found in the snapshot before by number: a record is the same if it has the LSN and
 * the few numbers that change without one. So it costs a walk over the records, and names need no
 * order in which one frees what another takes.
 */
#include "catalog/catalog_load_int.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/random.h"
#include "catalog/change_int.h"
#include "catalog/cleaner_int.h"
#include "catalog/partition_handle_int.h"

typedef struct Load {
    PartitionHost *host;
    LoadMode mode;
    const Snapshot *old; /* NULL if there is none */
    Snapshot *snapshot;
    CatalogCounters counters;
    bool has_counters;
    CatalogLoad *out;
    uint64_t *kept; /* database and number of containers that saved states keep */
    size_t kept_count;
    size_t kept_capacity;
    size_t owners;              /* databases and containers that have an offer */
    bool collision;             /* two names have one hash; the load is repeated with another key */
    ContainerList undone;       /* containers whose move is undone */
    GarbageList undone_garbage; /* the spaces of the targets of those moves */
} Load;

static void load_done(Load *load)
{
    container_list_clear(&load->undone);
    mem_free(load->undone.items);
    mem_free(load->undone_garbage.items);
    mem_free(load->kept);
}
DEFINE_AUTO_VALUE(Load, load_done)

void garbage_list_add(GarbageList *list, Garbage garbage)
{
    ARRAY_GROW(list->items, list->count, list->capacity, 16);
    list->items[list->count++] = garbage;
}

static Status broken(Error *err, const char *what, uint64_t number, const char *why)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "the catalogue is damaged: %s %llu %s", what,
                     (unsigned long long)number, why);
}

/* Checks a record against the counters, which come first in the order of keys (I3). */
static Status check_info(const Load *load, const char *what, uint32_t number, uint32_t next,
                         uint64_t lsn, Error *err)
{
    if (!load->has_counters)
        return broken(err, what, number, "exists, but there are no counters");
    if (number == 0 || number >= next)
        return broken(err, what, number, "has a number that was never given out");
    if (lsn == 0 || lsn > load->counters.lsn)
        return broken(err, what, number, "has the LSN of a change that was never made");
    return STATUS_OK;
}

static Status load_counters(void *ctx, const CatalogCounters *counters, Error *err)
{
    (void)err;
    Load *load = ctx;
    load->counters = *counters;
    load->has_counters = true;
    return STATUS_OK;
}

/* A change makes a new LSN, and of what nodes tell each other none is lost: so two records of one
 * number with the same LSN have the same contents, but for what the callers look at. */
static bool is_same_version(const ResourceInfo *info, uint64_t lsn, int64_t ts_s)
{
    return info->lsn == lsn && info->ts_s == ts_s;
}

static void note_changed_offer(Load *load, uint32_t number)
{
    CatalogLoad *out = load->out;
    if (load->old == NULL || number == 0)
        return;
    ARRAY_GROW(out->changed.offers, out->changed.offer_count, out->changed.offer_capacity, 16);
    out->changed.offers[out->changed.offer_count++] = number;
}

static Status load_database(void *ctx, const DatabaseRecord *record, Error *err)
{
    Load *load = ctx;
    TRY(check_info(load, "database", record->number, load->counters.database_next, record->lsn,
                   err));
    if (snapshot_database_by_id(load->snapshot, record->id) != NULL)
        return broken(err, "database", record->number, "has the name of another one");
    load->owners += record->offer != 0 ? 1 : 0;
    const Database *old = load->old == NULL ? NULL : snapshot_database(load->old, record->number);
    bool is_same = old != NULL && is_same_version(&old->info, record->lsn, record->ts_s) &&
                   slice_equal(old->info.id, record->id) && old->offer == record->offer &&
                   old->partitions == record->partitions;
    if (!is_same)
        note_changed_offer(load, record->offer);
    load->collision |=
        !snapshot_put_database(load->snapshot, is_same ? database_ref(old) : database_new(record));
    return STATUS_OK;
}

static Status check_spaces(const Load *load, const ContainerRecord *record,
                           const PartitionRange *ranges, size_t count, Error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].space >= load->counters.space_next)
            return broken(err, "container", record->number, "has a space that was never given out");
    }
    return STATUS_OK;
}

static void note_undone(Load *load, const Container *container, const ContainerRecord *record)
{
    container_list_add(&load->undone, container);
    Garbage garbage;
    for (size_t from = 0; garbage_next(record->pending, record->pending_count, &from, &garbage);)
        garbage_list_add(&load->undone_garbage, garbage);
}

/* Whether a container that spends the budgets of its database has those of this one. */
static bool has_budgets_of(const Container *container, const Database *database)
{
    return container->offer != 0 || database->partitions == 0 ||
           container->handles[0].budget == database->budgets[0];
}

/* The end of a move changes 'ranges_lsn'. Its begin and undo change only what is pending. */
static bool is_same_container(const Container *old, const ContainerRecord *record,
                              const Database *database)
{
    if (!is_same_version(&old->info, record->lsn, record->ts_s) ||
        old->ranges_lsn != record->ranges_lsn || old->range_next != record->range_next ||
        old->offer != record->offer || old->range_count != record->range_count ||
        old->pending_count != record->pending_count || old->is_held)
        return false;
    bool has_pending = record->pending_count > 0;
    return (!has_pending || old->pending[0].space == record->pending[0].space) &&
           has_budgets_of(old, database);
}

/* What is not stored: the generation, which partitions have seen, is the old one's. */
static Status make_container(Load *load, ContainerRecord *record, const Database *database,
                             Container **out, Error *err)
{
    const Container *old =
        load->old == NULL ? NULL : snapshot_container(load->old, record->database, record->number);
    if (old != NULL && is_same_container(old, record, database)) {
        *out = container_ref(old);
        return STATUS_OK;
    }
    record->generation = old == NULL ? 0 : old->generation;
    TRY(container_new(record, load->host, database, old, out, err));
    if (load->old == NULL)
        return STATUS_OK;
    container_list_add(&load->out->changed.containers, *out);
    note_changed_offer(load, record->offer != 0 ? record->offer : database->offer);
    return STATUS_OK;
}

static Status load_container(void *ctx, const ContainerRecord *record, Error *err)
{
    Load *load = ctx;
    if (load->collision)
        return STATUS_OK; /* its database may be the one that was not put */
    TRY(check_info(load, "container", record->number, load->counters.container_next, record->lsn,
                   err));
    const Database *database = snapshot_database(load->snapshot, record->database);
    if (database == NULL)
        return broken(err, "container", record->number, "has no database");
    if (record->ranges_lsn > load->counters.lsn)
        return broken(err, "container", record->number,
                      "has ranges with the LSN of a change that was never made");
    TRY(check_spaces(load, record, record->ranges, record->range_count, err));
    TRY(check_spaces(load, record, record->pending, record->pending_count, err));
    ContainerRecord settled = *record;
    if (load->mode != LOAD_TO_FOLLOW)
        settled.pending_count = 0;
    AUTO(container_unref) Container *container = NULL;
    TRY(make_container(load, &settled, database, &container, err));
    if (snapshot_container_by_id(load->snapshot, record->database, container->info.id) != NULL)
        return broken(err, "container", record->number, "has the name of another one");
    load->owners += record->offer != 0 ? 1 : 0;
    if (record->pending_count > settled.pending_count)
        note_undone(load, container, record);
    load->collision |= !snapshot_put_container(load->snapshot, TAKE(container));
    return STATUS_OK;
}

static Status load_offer(void *ctx, const OfferRecord *record, Error *err)
{
    Load *load = ctx;
    if (load->collision)
        return STATUS_OK;
    TRY(check_info(load, "offer", record->number, load->counters.offer_next, record->lsn, err));
    const Database *database = snapshot_database(load->snapshot, record->database);
    const Container *container =
        snapshot_container(load->snapshot, record->database, record->container);
    bool owned = record->container == 0 ? database != NULL && database->offer == record->number
                                        : container != NULL && container->offer == record->number;
    if (!owned)
        return broken(err, "offer", record->number, "has no owner");
    const Offer *old = load->old == NULL ? NULL : snapshot_offer(load->old, record->number);
    bool is_same = old != NULL && is_same_version(&old->info, record->lsn, record->ts_s) &&
                   old->database == record->database && old->container == record->container &&
                   old->ru_ever == record->ru_ever &&
                   old->storage_kb_ever == record->storage_kb_ever;
    if (!is_same)
        note_changed_offer(load, record->number);
    snapshot_put_offer(load->snapshot, is_same ? offer_ref(old) : offer_new(record));
    return STATUS_OK;
}

static Status load_garbage(void *ctx, Garbage garbage, Error *err)
{
    Load *load = ctx;
    if (!load->has_counters || garbage.last >= load->counters.space_next ||
        garbage.last - garbage.first >= RANGES_MAX)
        return broken(err, "garbage", garbage.first, "covers spaces that were never given out");
    garbage_list_add(&load->out->garbage, garbage);
    return STATUS_OK;
}

static Status load_key(void *ctx, const EncryptionKeyRecord *record, Error *err)
{
    Load *load = ctx;
    if (load->collision)
        return STATUS_OK;
    TRY(check_info(load, "client encryption key", record->number, load->counters.key_next,
                   record->lsn, err));
    if (snapshot_database(load->snapshot, record->database) == NULL)
        return broken(err, "client encryption key", record->number, "has no database");
    AUTO(encryption_key_unref) EncryptionKey *key = NULL;
    const EncryptionKey *old =
        load->old == NULL ? NULL : snapshot_key(load->old, record->database, record->number);
    if (old != NULL && is_same_version(&old->info, record->lsn, record->ts_s))
        key = encryption_key_ref(old);
    else
        TRY(encryption_key_new(record, &key, err));
    if (snapshot_key_by_id(load->snapshot, record->database, key->info.id) != NULL)
        return broken(err, "client encryption key", record->number, "has the name of another one");
    load->collision |= !snapshot_put_key(load->snapshot, TAKE(key));
    return STATUS_OK;
}

static Status load_script(void *ctx, const StoredScriptRecord *record, Error *err)
{
    Load *load = ctx;
    if (load->collision)
        return STATUS_OK;
    const char *noun = stored_script_noun(record->group.kind);
    TRY(check_info(load, noun, record->number, load->counters.script_next, record->lsn, err));
    if (snapshot_container(load->snapshot, record->group.database, record->group.container) == NULL)
        return broken(err, noun, record->number, "has no container");
    AUTO(stored_script_unref) StoredScript *script = NULL;
    const StoredScript *old =
        load->old == NULL ? NULL : snapshot_script(load->old, record->group, record->number);
    if (old != NULL && is_same_version(&old->info, record->lsn, record->ts_s))
        script = stored_script_ref(old);
    else
        TRY(stored_script_new(record, &script, err));
    if (snapshot_script_by_id(load->snapshot, record->group, script->info.id) != NULL)
        return broken(err, noun, record->number, "has the name of another one");
    load->collision |= !snapshot_put_script(load->snapshot, TAKE(script));
    return STATUS_OK;
}

static Status load_user(void *ctx, const UserRecord *record, Error *err)
{
    Load *load = ctx;
    if (load->collision)
        return STATUS_OK;
    TRY(check_info(load, "user", record->number, load->counters.user_next, record->lsn, err));
    if (snapshot_database(load->snapshot, record->database) == NULL)
        return broken(err, "user", record->number, "has no database");
    if (snapshot_user_by_id(load->snapshot, record->database, record->id) != NULL)
        return broken(err, "user", record->number, "has the name of another one");
    const User *old = load->old == NULL
                          ? NULL
                          : snapshot_user(load->old, (UserKey){record->database, record->number});
    bool is_same = old != NULL && is_same_version(&old->info, record->lsn, record->ts_s);
    load->collision |=
        !snapshot_put_user(load->snapshot, is_same ? user_ref(old) : user_new(record));
    return STATUS_OK;
}

static Status load_permission(void *ctx, const PermissionRecord *record, Error *err)
{
    Load *load = ctx;
    if (load->collision)
        return STATUS_OK;
    TRY(check_info(load, "permission", record->number, load->counters.permission_next, record->lsn,
                   err));
    if (record->granted_lsn == 0)
        return broken(err, "permission", record->number, "was never granted");
    if (snapshot_user(load->snapshot, record->owner) == NULL)
        return broken(err, "permission", record->number, "has no user");
    AUTO(permission_unref) Permission *permission = NULL;
    const Permission *old =
        load->old == NULL ? NULL : snapshot_permission(load->old, record->owner, record->number);
    if (old != NULL && is_same_version(&old->info, record->lsn, record->ts_s))
        permission = permission_ref(old);
    else
        TRY(permission_new(record, &permission, err));
    if (snapshot_permission_by_id(load->snapshot, record->owner, permission->info.id) != NULL)
        return broken(err, "permission", record->number, "has the name of another one");
    if (snapshot_permission_by_grant(load->snapshot, record->owner, permission->grant) != NULL)
        return broken(err, "permission", record->number, "grants the same as another one");
    load->collision |= !snapshot_put_permission(load->snapshot, TAKE(permission));
    return STATUS_OK;
}

static Status load_saved(void *ctx, const SavedRecord *record, Error *err)
{
    Load *load = ctx;
    if (!load->has_counters || record->number == 0 || record->number >= load->counters.saved_next)
        return broken(err, "snapshot", record->number, "has a number that was never given out");
    if (snapshot_saved_by_name(load->snapshot, record->database_id, record->name) != NULL)
        return broken(err, "snapshot", record->number, "has the name of another one");
    snapshot_put_saved(load->snapshot, saved_state_new(record, NULL, 0));
    return STATUS_OK;
}

static Status load_saved_container(void *ctx, uint32_t number, uint32_t database,
                                   uint32_t container, Error *err)
{
    Load *load = ctx;
    const SavedState *state = snapshot_saved(load->snapshot, number);
    if (state == NULL || state->database != database)
        return broken(err, "a container of a snapshot,", container, "belongs to no snapshot");
    SavedRecord record = saved_state_record(state);
    size_t count = state->container_count;
    AUTO(mem_free) void *owned = mem_alloc((count + 1) * sizeof(uint32_t));
    uint32_t *containers = owned;
    for (size_t i = 0; i < count; i++)
        containers[i] = state->containers[i];
    containers[count] = container; /* they come in order */
    snapshot_put_saved(load->snapshot, saved_state_new(&record, containers, count + 1));
    return STATUS_OK;
}

static Status load_kept(void *ctx, const ContainerRecord *record, Error *err)
{
    Load *load = ctx;
    if (!snapshot_is_saved(load->snapshot, record->database, record->number))
        return broken(err, "container", record->number, "is kept for no snapshot");
    if (snapshot_container(load->snapshot, record->database, record->number) != NULL)
        return broken(err, "container", record->number, "is there twice");
    ARRAY_GROW(load->kept, load->kept_count, load->kept_capacity, 16);
    load->kept[load->kept_count++] = (uint64_t)record->database << 32 | record->number;
    return check_spaces(load, record, record->ranges, record->range_count, err);
}

static bool is_same_state(const SavedState *a, const SavedState *b)
{
    return a->saved_at_s == b->saved_at_s && a->is_restoring == b->is_restoring &&
           a->container_count == b->container_count &&
           (a->container_count == 0 ||
            memcmp(a->containers, b->containers, a->container_count * sizeof(uint32_t)) == 0);
}

/* They are made a container at a time, so what is the same is only known afterwards. */
static void keep_same_states(Load *load)
{
    const SavedState *state;
    for (uint32_t from = 0;
         load->old != NULL && (state = snapshot_next_saved(load->snapshot, from)) != NULL;
         from = state->number + 1) {
        const SavedState *old = snapshot_saved(load->old, state->number);
        if (old == NULL || !is_same_state(old, state))
            continue;
        snapshot_put_saved(load->snapshot, saved_state_ref(old));
        state = old;
    }
}

static bool is_kept(const Load *load, uint32_t database, uint32_t container)
{
    for (size_t i = 0; i < load->kept_count; i++) {
        if (load->kept[i] == ((uint64_t)database << 32 | container))
            return true;
    }
    return false;
}

/* Each container of a saved state is there, or kept. */
static Status check_saved(const Load *load, Error *err)
{
    const SavedState *state;
    for (uint32_t from = 0; (state = snapshot_next_saved(load->snapshot, from)) != NULL;
         from = state->number + 1) {
        for (size_t i = 0; i < state->container_count; i++) {
            uint32_t container = state->containers[i];
            if (snapshot_container(load->snapshot, state->database, container) == NULL &&
                !is_kept(load, state->database, container))
                return broken(err, "snapshot", state->number, "lacks one of its containers");
        }
    }
    return STATUS_OK;
}

static Status load_once(Store *store, Load *load, Error *err)
{
    RecordVisitor visitor = {
        .ctx = load,
        .counters = load_counters,
        .database = load_database,
        .container = load_container,
        .offer = load_offer,
        .garbage = load_garbage,
        .key = load_key,
        .script = load_script,
        .user = load_user,
        .permission = load_permission,
        .saved = load_saved,
        .saved_container = load_saved_container,
        .kept = load_kept,
    };
    TRY(record_load(store, &visitor, err));
    /* Each offer has an owner that names it, so equal counts leave no owner without its offer. */
    if (!load->collision && load->owners != load->snapshot->offers.count)
        return broken(err, "the number of offers,", load->snapshot->offers.count,
                      "is less than that of their owners");
    return load->collision ? STATUS_OK : check_saved(load, err);
}

static Status undo_moves(Store *store, Load *load, Error *err)
{
    if (load->undone.count == 0)
        return STATUS_OK;
    StoreTxn *txn = store_txn_begin(store);
    for (size_t i = 0; i < load->undone.count; i++) {
        ContainerRecord record = container_record(load->undone.items[i]);
        record_put_container(txn, &record);
    }
    for (size_t i = 0; i < load->undone_garbage.count; i++) {
        record_put_garbage(txn, load->undone_garbage.items[i]);
        garbage_list_add(&load->out->garbage, load->undone_garbage.items[i]);
    }
    store_txn_makes_room(txn);
    return store_txn_commit_wait(txn, err);
}

/* Moves the counter past every space that holds something (I15). The counter may be too low: a
 * split fills its targets past the log, and what it wrote stays when the log has lost the change
 * that took the spaces, by a loss of power with relaxed durability or because lost writes were
 * accepted. */
static Status skip_used_spaces(Store *store, CatalogCounters *counters, Error *err)
{
    for (bool found = true; found;) {
        StoreSpace space = 0;
        TRY(store_next_space(store, counters->space_next, &space, &found, err));
        if (found)
            counters->space_next = space + 1;
    }
    return STATUS_OK;
}

static void drop_changed(CatalogLoad *load)
{
    container_list_clear(&load->changed.containers);
    load->changed.offer_count = 0;
}

void catalog_load_done(CatalogLoad *load)
{
    drop_changed(load);
    mem_free(TAKE(load->changed.containers.items));
    mem_free(TAKE(load->changed.offers));
    mem_free(TAKE(load->garbage.items));
    snapshot_unref(TAKE(load->snapshot));
}

Status catalog_load(PartitionHost *host, LoadMode mode, const Snapshot *old, CatalogLoad *out,
                    Error *err)
{
    AUTO(catalog_load_done) CatalogLoad found = {0};
    for (;;) {
        HashKey key;
        random_secret(&key, sizeof(key));
        AUTO(snapshot_unref) Snapshot *fresh = snapshot_new(key);
        found.garbage.count = 0;
        drop_changed(&found);
        AUTO(load_done)
        Load load = {.host = host, .mode = mode, .old = old, .snapshot = fresh, .out = &found};
        TRY(load_once(host->store, &load, err));
        if (load.collision)
            continue;
        keep_same_states(&load);
        if (mode == LOAD_TO_LEAD)
            TRY(undo_moves(host->store, &load, err));
        if (load.has_counters)
            TRY(skip_used_spaces(host->store, &load.counters, err));
        found.snapshot = TAKE(fresh);
        found.counters = load.counters;
        found.found = load.has_counters;
        *out = found;
        found = (CatalogLoad){0};
        return STATUS_OK;
    }
}
