/* change_saved.c - the changes that save a state of a database, restore it, and drop it.
 *
 * Of the items these changes do nothing: their sender (saved_states.c) holds the partitions, begins
 * baselines before the state is saved, and takes the items back after it is restored.
 *
 * A container that is dropped while a saved state has it goes on to exist as a record of its own
 * (RECORD_KIND_KEPT), with its spaces. A restore makes a container of it again. When no saved state
 * has it any more, its spaces become garbage. Runs on the catalogue's thread.
 */
#include "base/mem.h"
#include "catalog/change_int.h"
#include "catalog/cleaner_int.h"
#include "partition/baseline.h"

/* ---- saving ---- */

/* The containers must be those whose partitions are held. */
static Status check_containers(const Work *work, const CatalogChange *change, Error *err)
{
    const Container *container;
    size_t count = 0;
    bool is_same = true;
    for (uint32_t from = 0;
         (container = snapshot_next_container(work->snapshot, change->database, from)) != NULL;
         from = container->info.number + 1, count++)
        is_same = is_same && count < change->saved_count &&
                  change->saved_containers[count] == container->info.number &&
                  container->pending_count == 0 && !container->is_held;
    if (is_same && count == change->saved_count)
        return STATUS_OK;
    return error_set(err, STATUS_RETRY_WITH, SUB_NONE,
                     "Containers of the database were changed meanwhile; try again.");
}

static Status check_counts(const Work *work, Slice database_id, const SavedState *old, Error *err)
{
    size_t replaced = old != NULL ? 1 : 0;
    if (snapshot_saved_count(work->snapshot, database_id) - replaced >=
        SAVED_STATES_PER_DATABASE_MAX)
        return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                         "The database has %d snapshots, which is the most there can be; drop one.",
                         SAVED_STATES_PER_DATABASE_MAX);
    if (work->snapshot->saved_states.count - replaced >= SAVED_STATES_MAX)
        return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                         "There are %d snapshots, which is the most there can be; drop one.",
                         SAVED_STATES_MAX);
    return STATUS_OK;
}

static Status free_kept(void *ctx, const ContainerRecord *record, Error *err)
{
    (void)err;
    Work *work = ctx;
    Garbage garbage;
    change_put_garbage(work, record->ranges, record->range_count);
    for (size_t from = 0; garbage_next(record->ranges, record->range_count, &from, &garbage);)
        garbage_list_add(work->freed, garbage);
    record_delete_kept(work->txn, record->database, record->number);
    return STATUS_OK;
}

/* Removes the state, and the containers that were kept for it alone. */
static Status remove_state(Work *work, const SavedState *removed, Error *err)
{
    AUTO(saved_state_unref) SavedState *state = saved_state_ref(removed);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    RecordVisitor visitor = {.ctx = work, .kept = free_kept};
    TRY(record_delete_saved(work->txn, state->number, err));
    snapshot_remove_saved(work->snapshot, state->number);
    for (size_t i = 0; i < state->container_count; i++) {
        uint32_t container = state->containers[i];
        if (snapshot_container(work->snapshot, state->database, container) != NULL ||
            snapshot_is_saved(work->snapshot, state->database, container))
            continue;
        arena_reset(&arena);
        TRY(record_read_kept(work->txn, state->database, container, &arena, &visitor, err));
    }
    return STATUS_OK;
}

static Status save_state(Work *work, CatalogChange *change, Error *err)
{
    const Database *database = snapshot_database(work->snapshot, change->database);
    if (database == NULL)
        return change_not_found(err, "database");
    TRY(check_containers(work, change, err));
    const SavedState *old = snapshot_saved_by_name(work->snapshot, database->info.id, change->id);
    TRY(check_counts(work, database->info.id, old, err));
    work->counters->lsn++;
    if (work->counters->saved_next <= change->saved)
        work->counters->saved_next = change->saved + 1;
    if (old != NULL)
        TRY(remove_state(work, old, err));
    change->has_replaced = old != NULL;
    SavedRecord record = {
        .number = change->saved,
        .name = change->id,
        .database_id = database->info.id,
        .database = change->database,
        .saved_at_s = work->now_s,
    };
    record_put_saved(work->txn, &record);
    TRY(record_copy_saved(work->txn, change->saved, work->snapshot, database, err));
    snapshot_put_saved(work->snapshot,
                       saved_state_new(&record, change->saved_containers, change->saved_count));
    return STATUS_OK;
}

/* ---- restoring ---- */

typedef struct Restore {
    Work *work;
    CatalogChange *change;
    const SavedState *state;
    ContainerList live; /* of the state, and not dropped */
    ContainerRecord kept;
    Arena *arena; /* of 'kept' */
} Restore;

static Status busy(Error *err)
{
    return error_set(err, STATUS_RETRY_WITH, SUB_NONE,
                     "Containers of the database are being deleted or swapped; try again.");
}

static bool is_in_list(const ContainerList *list, uint32_t database, uint32_t container)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i]->database == database && list->items[i]->info.number == container)
            return true;
    }
    return false;
}

/* The partitions of a container that comes back must have ended, and those of one that stays must
 * be held by the sender of the change. */
static Status check_live(const Restore *restore, Error *err)
{
    const Work *work = restore->work;
    const SavedState *state = restore->state;
    size_t at = 0;
    bool is_dropped = false;
    for (size_t i = 0; i < state->container_count; i++) {
        const Container *container =
            snapshot_container(work->snapshot, state->database, state->containers[i]);
        bool is_held = at < restore->change->saved_count &&
                       restore->change->saved_containers[at] == state->containers[i];
        at += is_held ? 1 : 0;
        bool is_changing =
            container != NULL && (container->pending_count > 0 || container->is_held);
        if ((container != NULL) != is_held || is_changing)
            return busy(err);
        is_dropped = is_dropped || container == NULL;
        if (is_in_list(work->kept, state->database, state->containers[i]))
            return busy(err);
    }
    return is_dropped && cleaner_is_dropping(work->cleaner) ? busy(err) : STATUS_OK;
}

/* Everything that the database is now goes, but for the containers that stay. */
static void clear_database(Restore *restore, const Database *current)
{
    Work *work = restore->work;
    uint32_t number = current->info.number;
    const Container *container;
    for (uint32_t from = 0;
         (container = snapshot_next_container(work->snapshot, number, from)) != NULL;
         from = container->info.number + 1) {
        if (!saved_state_has(restore->state, number, container->info.number)) {
            change_drop_container(work, container);
            continue;
        }
        container_list_add(&restore->live, container);
        record_delete_container(work->txn, number, container->info.number);
        change_drop_scripts(work, container);
        change_drop_offer(work, container->offer);
    }
    change_drop_database(work, current);
}

static Status restore_database(void *ctx, const DatabaseRecord *record, Error *err)
{
    Work *work = ((Restore *)ctx)->work;
    if (!snapshot_put_database(work->snapshot, database_new(record)))
        return change_name_collision(err);
    record_put_database(work->txn, record);
    return STATUS_OK;
}

static Status note_kept(void *ctx, const ContainerRecord *record, Error *err)
{
    (void)err;
    ((Restore *)ctx)->kept = *record;
    return STATUS_OK;
}

static const Container *find_live(const Restore *restore, uint32_t number)
{
    for (size_t i = 0; i < restore->live.count; i++) {
        if (restore->live.items[i]->info.number == number)
            return restore->live.items[i];
    }
    return NULL;
}

/* The map stays as it is now, or was when the container was dropped. */
static Status find_map(Restore *restore, ContainerRecord *record, const Container **live,
                       Error *err)
{
    *live = find_live(restore, record->number);
    ContainerRecord now;
    if (*live != NULL) {
        now = container_record(*live);
    } else {
        RecordVisitor visitor = {.ctx = restore, .kept = note_kept};
        arena_reset(restore->arena);
        TRY(record_read_kept(restore->work->txn, record->database, record->number, restore->arena,
                             &visitor, err));
        now = restore->kept;
    }
    record->ranges = now.ranges;
    record->range_count = now.range_count;
    record->range_next = now.range_next;
    record->ranges_lsn = now.ranges_lsn;
    record->generation = now.generation; /* which its partitions have seen */
    record->pending = NULL;
    record->pending_count = 0;
    return STATUS_OK;
}

/* The spaces of a container that was kept may have no owner any more. */
static Status place_revived(const Work *work, const ContainerRecord *record, Error *err)
{
    Garbage run;
    for (size_t from = 0; garbage_next(record->ranges, record->range_count, &from, &run);)
        TRY(change_place_spaces(work, run.first, run.last - run.first + 1, 0, err));
    return STATUS_OK;
}

/* Items are taken back where they are. */
static Status check_is_here(const Container *container, Error *err)
{
    for (size_t i = 0; i < container->range_count; i++) {
        if (!handle_is_local(container_handle_at(container, i)))
            return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                             "Partition %u of container '%.*s' is served by another node; a "
                             "snapshot is restored where all partitions of the database are.",
                             container->ranges[i].id, SLICE_CUT(container->info.id, 200));
    }
    return STATUS_OK;
}

static Status restore_container(void *ctx, const ContainerRecord *saved, Error *err)
{
    Restore *restore = ctx;
    Work *work = restore->work;
    const Database *database = snapshot_database(work->snapshot, saved->database);
    ContainerRecord record = *saved;
    const Container *live = NULL;
    if (database == NULL)
        return change_owner_not_found(err, "database");
    TRY(find_map(restore, &record, &live, err));
    if (live == NULL)
        TRY(place_revived(work, &record, err));
    AUTO(container_unref) Container *container = NULL;
    TRY(container_new(&record, work->host, database, live, &container, err));
    if (live == NULL) {
        TRY(check_is_here(container, err));
        /* Before anybody can use them. The sender of the change lets go of them. */
        for (size_t i = 0; i < container->range_count; i++)
            partition_hold_new(handle_local(container_handle_at(container, i)));
        container_list_add(&restore->change->revived, container);
        record_delete_kept(work->txn, record.database, record.number);
    }
    record_put_container(work->txn, &record);
    if (!snapshot_put_container(work->snapshot, container_ref(container)))
        return change_name_collision(err);
    return STATUS_OK;
}

/* What was ever stored is not forgotten (I14). */
static Status restore_offer(void *ctx, const OfferRecord *saved, Error *err)
{
    (void)err;
    Restore *restore = ctx;
    OfferRecord record = *saved;
    const Offer *now = snapshot_offer(restore->change->before_snapshot, saved->number);
    if (now != NULL && now->storage_kb_ever > record.storage_kb_ever)
        record.storage_kb_ever = now->storage_kb_ever;
    record_put_offer(restore->work->txn, &record);
    snapshot_put_offer(restore->work->snapshot, offer_new(&record));
    return STATUS_OK;
}

static Status restore_key(void *ctx, const EncryptionKeyRecord *record, Error *err)
{
    Work *work = ((Restore *)ctx)->work;
    EncryptionKey *key = NULL;
    TRY(encryption_key_new(record, &key, err));
    record_put_key(work->txn, record);
    return snapshot_put_key(work->snapshot, key) ? STATUS_OK : change_name_collision(err);
}

static Status restore_script(void *ctx, const StoredScriptRecord *record, Error *err)
{
    Work *work = ((Restore *)ctx)->work;
    StoredScript *script = NULL;
    TRY(stored_script_new(record, &script, err));
    record_put_script(work->txn, record);
    return snapshot_put_script(work->snapshot, script) ? STATUS_OK : change_name_collision(err);
}

static Status restore_user(void *ctx, const UserRecord *record, Error *err)
{
    Work *work = ((Restore *)ctx)->work;
    record_put_user(work->txn, record);
    return snapshot_put_user(work->snapshot, user_new(record)) ? STATUS_OK
                                                               : change_name_collision(err);
}

static Status restore_permission(void *ctx, const PermissionRecord *record, Error *err)
{
    Work *work = ((Restore *)ctx)->work;
    Permission *permission = NULL;
    TRY(permission_new(record, &permission, err));
    record_put_permission(work->txn, record);
    return snapshot_put_permission(work->snapshot, permission) ? STATUS_OK
                                                               : change_name_collision(err);
}

static void put_restoring(Work *work, const SavedState *state, bool is_restoring)
{
    SavedRecord record = saved_state_record(state);
    record.is_restoring = is_restoring;
    record_put_saved(work->txn, &record);
    snapshot_put_saved(work->snapshot,
                       saved_state_new(&record, state->containers, state->container_count));
}

static Status restore_all(Restore *restore, Error *err)
{
    Work *work = restore->work;
    const SavedState *state = restore->state;
    RecordVisitor visitor = {
        .ctx = restore,
        .database = restore_database,
        .container = restore_container,
        .offer = restore_offer,
        .key = restore_key,
        .script = restore_script,
        .user = restore_user,
        .permission = restore_permission,
    };
    const Database *current = snapshot_database_by_id(work->snapshot, state->database_id);
    if (current != NULL)
        clear_database(restore, current);
    TRY(record_read_saved(work->txn, state->number, &visitor, err));
    if (snapshot_database(work->snapshot, state->database) == NULL)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the snapshot '%.*s' has no record of its database",
                         SLICE_ARG(state->name));
    put_restoring(work, state, true);
    return STATUS_OK;
}

static Status find_state(const Work *work, const CatalogChange *change, const SavedState **out,
                         Error *err)
{
    *out = snapshot_saved(work->snapshot, change->saved);
    return *out != NULL ? STATUS_OK : change_not_found(err, "snapshot");
}

static Status restore_state(Work *work, CatalogChange *change, Error *err)
{
    const SavedState *found = NULL;
    TRY(find_state(work, change, &found, err));
    AUTO(saved_state_unref) SavedState *state = saved_state_ref(found);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    Restore restore = {.work = work, .change = change, .state = state, .arena = &arena};
    TRY(check_live(&restore, err));
    work->counters->lsn++;
    Status status = restore_all(&restore, err);
    container_list_clear(&restore.live);
    mem_free(restore.live.items);
    if (status == STATUS_OK)
        change->database = state->database;
    return status;
}

/* ---- the rest ---- */

static Status end_restore(Work *work, const CatalogChange *change, Error *err)
{
    const SavedState *state = NULL;
    TRY(find_state(work, change, &state, err));
    put_restoring(work, state, false);
    return STATUS_OK;
}

static Status drop_state(Work *work, const CatalogChange *change, Error *err)
{
    const SavedState *state = NULL;
    TRY(find_state(work, change, &state, err));
    work->counters->lsn++;
    return remove_state(work, state, err);
}

static Status apply(Work *work, CatalogChange *change, Error *err)
{
    switch (change->op) {
    case CATALOG_SAVE_STATE:
        return save_state(work, change, err);
    case CATALOG_RESTORE_STATE:
        return restore_state(work, change, err);
    case CATALOG_END_RESTORE:
        return end_restore(work, change, err);
    case CATALOG_DROP_STATE:
        return drop_state(work, change, err);
    default:
        ASSERT(!"a change of a saved state");
        return STATUS_OK;
    }
}

/* Works on copies, because a change can fail after it has changed much. */
Status change_saved_state(Work *work, CatalogChange *change, Error *err)
{
    Snapshot *before = work->snapshot;
    size_t dropped = work->dropped->count;
    size_t kept = work->kept->count;
    size_t freed = work->freed->count;
    change->before_snapshot = before;
    work->snapshot = snapshot_copy(before);
    store_txn_savepoint(work->txn);
    Status status = apply(work, change, err);
    change->before_snapshot = NULL;
    if (status == STATUS_OK) {
        store_txn_release(work->txn);
        snapshot_unref(before);
        return STATUS_OK;
    }
    store_txn_rollback(work->txn);
    snapshot_unref(work->snapshot);
    work->snapshot = before;
    container_list_cut(work->dropped, dropped);
    container_list_cut(work->kept, kept);
    work->freed->count = freed;
    return status;
}
