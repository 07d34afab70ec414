/* saved_states.c - see saved_states.h.
 *
 *     save      hold the partitions --> begin their baselines --> CATALOG_SAVE_STATE --> release
 *     restore   hold, refuse readers --> CATALOG_RESTORE_STATE --> take the items back
 *               --> CATALOG_END_RESTORE --> release
 *     drop      CATALOG_DROP_STATE --> forget the baselines
 *
 * A crash before the change of the catalogue leaves baselines that no saved state has; after that
 * of a restore, the state's record says that it is being restored. The next start deals with both
 * (saved_states_recover). While one of these runs, no container of the database is moved.
 */
#include "catalog/saved_states.h"

#include "base/array.h"
#include "base/mem.h"
#include "catalog/catalog_int.h"
#include "catalog/saved_states_int.h"
#include "partition/baseline.h"

#include <time.h>

enum {
    TRIES_MAX = 1000, /* while other clients create and delete containers */
    TRY_WAIT_MS = 2,
    PURGE_WAITS_MAX = 5000, /* then what is purged is removed while writes wait */
    ROOM_WAIT_MS = 200,
};

static void rest_ms(long ms)
{
    (void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* One call, with what it has taken. */
typedef struct Job {
    SavedStates *saved;
    CatalogReader reader;
    ContainerList containers; /* whose partitions are held */
    uint32_t *numbers;        /* theirs */
    size_t number_capacity;
    HeldPartitions *held; /* NULL if none are */
    bool holds_moves;
} Job;

static void job_begin(Job *job, SavedStates *saved)
{
    *job = (Job){.saved = saved};
    (void)pthread_mutex_lock(&saved->lock);
    catalog_reader_init(&job->reader, saved->catalog);
}

/* Lets go of the partitions; what has waited goes on. */
static void release(Job *job)
{
    held_partitions_free(TAKE(job->held));
    if (job->holds_moves)
        move_orders_release(job->saved->moves);
    job->holds_moves = false;
}

static void job_end(Job *job)
{
    release(job);
    container_list_clear(&job->containers);
    mem_free(job->containers.items);
    mem_free(job->numbers);
    catalog_reader_done(&job->reader);
    (void)pthread_mutex_unlock(&job->saved->lock);
}
DEFINE_AUTO_VALUE(Job, job_end)

static void add_container(Job *job, const Container *container)
{
    ARRAY_GROW(job->numbers, job->containers.count, job->number_capacity, 16);
    job->numbers[job->containers.count] = container->info.number;
    container_list_add(&job->containers, container);
}

static Partition *partition_at(const Container *container, size_t range)
{
    return handle_local(container_handle_at(container, range));
}

/* What is done with a state is done where all partitions of its database are. */
static Status check_is_here(const Container *container, Error *err)
{
    for (size_t i = 0; i < container->range_count; i++) {
        if (partition_at(container, i) == NULL)
            return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                             "Partition %u of container '%.*s' is served by another node; a "
                             "snapshot is saved and restored where all partitions of its database "
                             "are.",
                             container->ranges[i].id, SLICE_CUT(container->info.id, 200));
    }
    return STATUS_OK;
}

/* Holds the partitions of the database's containers: of those that are in 'state', or of all. */
static Status hold(Job *job, uint32_t database, const SavedState *state, Error *err)
{
    ASSERT(job->held == NULL);
    container_list_clear(&job->containers);
    move_orders_hold(job->saved->moves, database);
    job->holds_moves = true;
    const Snapshot *snapshot = catalog_read(&job->reader);
    const Container *container;
    for (uint32_t from = 0; (container = snapshot_next_container(snapshot, database, from)) != NULL;
         from = container->info.number + 1) {
        if (state == NULL || saved_state_has(state, database, container->info.number))
            add_container(job, container);
    }
    for (size_t i = 0; i < job->containers.count; i++)
        TRY(check_is_here(job->containers.items[i], err));
    job->held = held_partitions_new();
    for (size_t i = 0; i < job->containers.count; i++) {
        for (size_t r = 0; r < job->containers.items[i]->range_count; r++)
            held_partitions_add(job->held, partition_at(job->containers.items[i], r));
    }
    return held_partitions_wait(job->held, err);
}

/* Whether it may work if it is tried again: containers come and go. */
static bool may_retry(Status status)
{
    return status == STATUS_RETRY_WITH || status == STATUS_NOT_FOUND || status == STATUS_GONE ||
           status == STATUS_UNAVAILABLE;
}

static Status no_such_database(Slice id, Error *err)
{
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "Resource Not Found: there is no database '%.*s'.", SLICE_CUT(id, 200));
}

static Status no_such_state(Slice database_id, Slice name, Error *err)
{
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "Resource Not Found: there is no snapshot '%.*s' of database '%.*s'.",
                     SLICE_CUT(name, SAVED_NAME_CHARS_MAX), SLICE_CUT(database_id, 200));
}

/* ---- forgetting ---- */

/* The numbers of all saved states; the caller frees them. */
static uint64_t *known_numbers(const Snapshot *snapshot, size_t *count)
{
    uint64_t *numbers = mem_alloc((snapshot->saved_states.count + 1) * sizeof(uint64_t));
    *count = 0;
    const SavedState *state;
    for (uint32_t from = 0; (state = snapshot_next_saved(snapshot, from)) != NULL;
         from = state->number + 1)
        numbers[(*count)++] = state->number;
    return numbers;
}

/* Has the partitions of a container forget baselines that no saved state has. If it cannot be now,
 * the next start does it. */
static void forget_in(Job *job, const Container *container)
{
    size_t count = 0;
    AUTO(mem_free) void *known = known_numbers(catalog_read(&job->reader), &count);
    for (size_t i = 0; i < container->range_count; i++) {
        Partition *partition = partition_at(container, i);
        Error err;
        if (partition != NULL && partition_baseline_count(partition) > 0 &&
            partition_keep_baselines(partition, known, count, &err) != STATUS_OK &&
            !may_retry(err.status) && err.status != STATUS_NOT_OWNER)
            LOG_WARN(job->saved->log, "snapshot.forget_failed", "container=%u reason=%s",
                     container->info.number, err.message);
    }
}

static void forget_in_database(Job *job, uint32_t database)
{
    AUTO(snapshot_unref) Snapshot *snapshot = snapshot_ref(catalog_read(&job->reader));
    const Container *container;
    for (uint32_t from = 0; (container = snapshot_next_container(snapshot, database, from)) != NULL;
         from = container->info.number + 1)
        forget_in(job, container);
}

/* ---- saving ---- */

/* Removing what is purged takes long, and no write has to wait for it. */
static void wait_for_purges(Job *job, uint32_t database)
{
    bool has_some = true;
    for (int i = 0; has_some && i < PURGE_WAITS_MAX; i++) {
        has_some = false;
        const Snapshot *snapshot = catalog_read(&job->reader);
        const Container *container;
        for (uint32_t from = 0;
             (container = snapshot_next_container(snapshot, database, from)) != NULL;
             from = container->info.number + 1) {
            for (size_t r = 0; r < container->range_count; r++) {
                Partition *partition = partition_at(container, r);
                has_some = has_some || (partition != NULL && partition_has_purges(partition));
            }
        }
        if (has_some)
            rest_ms(TRY_WAIT_MS);
    }
}

static Status try_save(Job *job, uint32_t database, Slice name, bool *has_replaced, Error *err)
{
    wait_for_purges(job, database);
    TRY(hold(job, database, NULL, err));
    CatalogChange change = {
        .op = CATALOG_SAVE_STATE,
        .database = database,
        .id = name,
        .saved = job->saved->next++,
        .saved_containers = job->numbers,
        .saved_count = job->containers.count,
    };
    TRY(held_partitions_purge(job->held, err));
    TRY(held_partitions_begin(job->held, change.saved, err));
    TRY(catalog_change(job->saved->catalog, &change, err));
    *has_replaced = change.has_replaced;
    catalog_change_release(&change);
    return STATUS_OK;
}

Status catalog_save_state(Catalog *catalog, Slice database_id, Slice name, bool *has_replaced,
                          Error *err)
{
    AUTO(job_end) Job job;
    job_begin(&job, catalog_saved_states(catalog));
    TRY(saved_name_check(name, err));
    TRY(placement_check_leads(catalog, err));
    Status status = STATUS_RETRY_WITH;
    for (int i = 0; may_retry(status) && i < TRIES_MAX; i++) {
        const Database *database = snapshot_database_by_id(catalog_read(&job.reader), database_id);
        if (database == NULL)
            return no_such_database(database_id, err);
        uint32_t number = database->info.number;
        if (i > 0)
            rest_ms(TRY_WAIT_MS);
        else if (catalog->placement != NULL)
            forget_in_database(&job,
                               number); /* of states that were dropped while it was elsewhere */
        status = try_save(&job, number, name, has_replaced, err);
        release(&job);
        if (status != STATUS_OK || *has_replaced)
            forget_in_database(&job, number); /* what was begun, or what was replaced */
    }
    return status;
}

/* ---- restoring ---- */

static bool is_stopped(const SavedStates *saved)
{
    return atomic_load(&saved->stop);
}

/* The records of the catalogue are as they were; now the items. It must not fail any more, so it
 * waits until it can be done, unless something is damaged, or this node has lost a partition or the
 * lead. */
static Status finish(Job *job, uint32_t state, Error *err)
{
    CatalogChange change = {.op = CATALOG_END_RESTORE, .saved = state};
    for (uint64_t tries = 0;; tries++) {
        Status status = held_partitions_restore(job->held, state, err);
        if (status == STATUS_OK)
            status = catalog_change(job->saved->catalog, &change, err);
        catalog_change_release(&change);
        if (status == STATUS_OK || status == STATUS_CORRUPT || status == STATUS_NOT_OWNER ||
            is_stopped(job->saved))
            return status;
        if (tries % 50 == 0)
            LOG_WARN(job->saved->log, "snapshot.restore_waits", "reason=%s", err->message);
        rest_ms(ROOM_WAIT_MS);
    }
}

static void take_revived(Job *job, const CatalogChange *change)
{
    for (size_t i = 0; i < change->revived.count; i++) {
        const Container *container = change->revived.items[i];
        for (size_t r = 0; r < container->range_count; r++)
            held_partitions_add_held(job->held, partition_at(container, r));
    }
}

static Status try_restore(Job *job, const SavedState *state, Error *err)
{
    const Database *current =
        snapshot_database_by_id(catalog_read(&job->reader), state->database_id);
    TRY(hold(job, current != NULL ? current->info.number : 0, state, err));
    TRY(held_partitions_check(job->held, err));
    held_partitions_refuse_readers(job->held);
    CatalogChange change = {
        .op = CATALOG_RESTORE_STATE,
        .saved = state->number,
        .saved_containers = job->numbers,
        .saved_count = job->containers.count,
    };
    Status status = catalog_change(job->saved->catalog, &change, err);
    take_revived(job, &change);
    if (status == STATUS_OK)
        status = finish(job, state->number, err);
    release(job);
    for (size_t i = 0; status == STATUS_OK && i < change.revived.count; i++)
        forget_in(job, change.revived.items[i]);
    catalog_change_release(&change);
    return status;
}

Status catalog_restore_state(Catalog *catalog, Slice database_id, Slice name, Error *err)
{
    AUTO(job_end) Job job;
    job_begin(&job, catalog_saved_states(catalog));
    TRY(placement_check_leads(catalog, err));
    const SavedState *found = snapshot_saved_by_name(catalog_read(&job.reader), database_id, name);
    if (found == NULL)
        return no_such_state(database_id, name, err);
    AUTO(saved_state_unref) SavedState *state = saved_state_ref(found);
    Status status = STATUS_RETRY_WITH;
    for (int i = 0; may_retry(status) && i < TRIES_MAX && !is_stopped(job.saved); i++) {
        if (i > 0)
            rest_ms(TRY_WAIT_MS);
        status = try_restore(&job, state, err);
        release(&job);
    }
    return status;
}

/* ---- dropping ---- */

Status catalog_drop_state(Catalog *catalog, Slice database_id, Slice name, Error *err)
{
    AUTO(job_end) Job job;
    job_begin(&job, catalog_saved_states(catalog));
    TRY(placement_check_leads(catalog, err));
    const SavedState *state = snapshot_saved_by_name(catalog_read(&job.reader), database_id, name);
    if (state == NULL)
        return no_such_state(database_id, name, err);
    uint32_t database = state->database;
    CatalogChange change = {.op = CATALOG_DROP_STATE, .saved = state->number};
    Status status = catalog_change(catalog, &change, err);
    catalog_change_release(&change);
    TRY(status);
    move_orders_hold(job.saved->moves, database); /* a move would take the baseline along */
    job.holds_moves = true;
    forget_in_database(&job, database);
    return STATUS_OK;
}

/* ---- life ---- */

void saved_states_open(SavedStates *saved, Catalog *catalog, uint32_t next, MoveOrders *moves,
                       const Log *log)
{
    saved->catalog = catalog;
    saved->moves = moves;
    saved->log = log;
    saved->next = next;
    atomic_init(&saved->stop, false);
    int failed = pthread_mutex_init(&saved->lock, NULL);
    ASSERT(failed == 0);
    saved->is_open = true;
}

void saved_states_close(SavedStates *saved)
{
    if (!saved->is_open)
        return;
    (void)pthread_mutex_destroy(&saved->lock);
    saved->is_open = false;
}

void catalog_stop_restores(Catalog *catalog)
{
    if (catalog != NULL)
        atomic_store(&catalog_saved_states(catalog)->stop, true);
}

static Status finish_cut_off(Job *job, const SavedState *state, Error *err)
{
    TRY(hold(job, state->database, state, err));
    held_partitions_refuse_readers(job->held);
    TRY(held_partitions_restore(job->held, state->number, err));
    CatalogChange change = {.op = CATALOG_END_RESTORE, .saved = state->number};
    Status status = catalog_change(job->saved->catalog, &change, err);
    catalog_change_release(&change);
    return status;
}

/* Damage of one database is no reason to keep everything else from being served. */
static Status recover_restore(Job *job, const SavedState *state, Error *err)
{
    Status status = finish_cut_off(job, state, err);
    release(job);
    if (status == STATUS_CORRUPT)
        LOG_ERROR(job->saved->log, "snapshot.restore_failed",
                  "database=%.*s name=%.*s reason=%s (not all items are as they were saved)",
                  SLICE_CUT(state->database_id, 200), SLICE_ARG(state->name), err->message);
    else if (status == STATUS_OK)
        LOG_INFO(job->saved->log, "snapshot.restore_finished", "database=%.*s name=%.*s",
                 SLICE_CUT(state->database_id, 200), SLICE_ARG(state->name));
    return status == STATUS_CORRUPT ? STATUS_OK : status;
}

static Status recover(Job *job, Error *err)
{
    AUTO(snapshot_unref) Snapshot *snapshot = snapshot_ref(catalog_read(&job->reader));
    const SavedState *state;
    for (uint32_t from = 0; (state = snapshot_next_saved(snapshot, from)) != NULL;
         from = state->number + 1) {
        Status status = state->is_restoring ? recover_restore(job, state, err) : STATUS_OK;
        if (status == STATUS_NOT_OWNER)
            LOG_WARN(job->saved->log, "snapshot.restore_waits",
                     "database=%.*s name=%.*s reason=%s (repeat it)",
                     SLICE_CUT(state->database_id, 200), SLICE_ARG(state->name), err->message);
        else if (status != STATUS_OK)
            return status;
    }
    SnapshotWalk walk = {0};
    while (snapshot_next(snapshot, &walk))
        forget_in(job, walk.container);
    return STATUS_OK;
}

Status saved_states_recover(SavedStates *saved, Error *err)
{
    AUTO(job_end) Job job;
    job_begin(&job, saved);
    return recover(&job, err);
}

Status saved_states_lead(SavedStates *saved, uint32_t next, Error *err)
{
    AUTO(job_end) Job job;
    job_begin(&job, saved);
    saved->next = saved->next < next ? next : saved->next;
    return recover(&job, err);
}

/* ---- for tools ---- */

typedef struct KeptWalk {
    PartitionHost *host;
    KeptVisit visit;
    void *ctx;
} KeptWalk;

static Status visit_kept(void *ctx, const ContainerRecord *record, Error *err)
{
    const KeptWalk *walk = ctx;
    AUTO(container_unref) Container *container = NULL;
    TRY(container_new(record, walk->host, NULL, NULL, &container, err));
    return walk->visit(walk->ctx, container, err);
}

Status catalog_visit_kept(PartitionHost *host, KeptVisit visit, void *ctx, Error *err)
{
    KeptWalk walk = {.host = host, .visit = visit, .ctx = ctx};
    RecordVisitor visitor = {.ctx = &walk, .kept = visit_kept};
    return record_load(host->store, &visitor, err);
}
