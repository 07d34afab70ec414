/* replicated_store.c - see replicated_store.h; the engine that stands on RocksDB's.
 *
 * What is read comes from RocksDB's engine: most of the table of operations are its functions, or
 * pass the call on to them. What is written goes through append_stage.c and apply_stage.c. A load
 * has no faster way: its transactions are appended like others.
 */
#include "store/replicated/replicated_store.h"

#include "base/mem.h"
#include "base/thread.h"
#include "store/replicated/replicated_int.h"
#include "store/rocksdb/rocksdb_local_int.h"

static Status pass_get(Engine *engine, const StoreSnapshot *snapshot, Slice key, StoreRead read,
                       StoreValue *value, StoreFound *found, Error *err)
{
    Engine *local = replication_of(engine)->local;
    return local->ops->get(local, snapshot, key, read, value, found, err);
}

static StoreSnapshot *pass_snapshot_open(Engine *engine, StoreRead read)
{
    Engine *local = replication_of(engine)->local;
    StoreSnapshot *snapshot = local->ops->snapshot_open(local, read);
    snapshot->engine = engine;
    return snapshot;
}

static EngineCursor *pass_cursor_open(Engine *engine, const StoreSnapshot *snapshot, Slice from,
                                      Slice to, bool is_group)
{
    Engine *local = replication_of(engine)->local;
    return local->ops->cursor_open(local, snapshot, from, to, is_group);
}

static Status pass_checkpoint(Engine *engine, char **path, Error *err)
{
    Engine *local = replication_of(engine)->local;
    return local->ops->checkpoint(local, path, err);
}

static void pass_checkpoint_remove(Engine *engine, const char *path)
{
    Engine *local = replication_of(engine)->local;
    local->ops->checkpoint_remove(local, path);
}

static uint64_t pass_estimate(Engine *engine, Slice from, Slice to)
{
    Engine *local = replication_of(engine)->local;
    return local->ops->estimate(local, from, to);
}

static void pass_usage(Engine *engine, StoreUsage *usage)
{
    Engine *local = replication_of(engine)->local;
    local->ops->usage(local, usage);
}

static void pass_idle(Engine *engine)
{
    Replication *replication = replication_of(engine);
    pthread_mutex_lock(&replication->writing);
    replication->local->ops->idle(replication->local);
    pthread_mutex_unlock(&replication->writing);
}

/* RocksDB is asked to write only after it has refused to. */
static Status probe(Engine *engine, Error *err)
{
    Replication *replication = replication_of(engine);
    Engine *local = replication->local;
    TRY(replicated_room(engine, ENGINE_TAKES_ROOM, 0, err));
    pthread_mutex_lock(&replication->lock);
    bool has_failed = replication->local_failure.status != STATUS_OK;
    pthread_mutex_unlock(&replication->lock);
    if (!has_failed)
        return STATUS_OK;
    pthread_mutex_lock(&replication->writing);
    Status status = local->ops->probe(local, err);
    pthread_mutex_unlock(&replication->writing);
    TRY(status);
    pthread_mutex_lock(&replication->lock);
    replication->local_failure.status = STATUS_OK;
    pthread_mutex_unlock(&replication->lock);
    return STATUS_OK;
}

static Status drop(Engine *engine, StoreSpace first, StoreSpace last, Error *err)
{
    return spaces_drop(replication_of(engine), first, last, err);
}

static void join(const pthread_t *thread, bool has_thread)
{
    if (has_thread)
        (void)pthread_join(*thread, NULL); /* fails only for a thread that is not ours */
}

static void stop_threads(Replication *replication)
{
    pthread_mutex_lock(&replication->lock);
    replication->is_stopping = true;
    pthread_cond_broadcast(&replication->has_work);
    pthread_cond_broadcast(&replication->has_ready);
    pthread_cond_broadcast(&replication->is_poked);
    pthread_cond_broadcast(&replication->sync_ended);
    pthread_mutex_unlock(&replication->lock);
    for (size_t i = 0; i < LANES; i++)
        join(&replication->lanes[i].thread, replication->lanes[i].has_thread);
    join(&replication->applier.thread, replication->applier.has_thread);
    join(&replication->syncer.thread, replication->syncer.has_thread);
    join(&replication->follower.thread, replication->follower.has_thread);
}

static void close_engine(Engine *engine)
{
    Replication *replication = replication_of(engine);
    stop_threads(replication);
    ASSERT(replication->waiting == NULL);
    ASSERT(replication->ready == NULL);
    if (replication->local != NULL)
        replication->local->ops->close(replication->local);
    for (size_t i = 0; i < replication->space_count; i++)
        mem_free(replication->spaces[i]);
    mem_free(replication->spaces);
    mem_free(replication->barriers);
    pthread_cond_t *conds[] = {&replication->changed, &replication->has_work,
                               &replication->has_ready, &replication->is_poked,
                               &replication->sync_ended};
    for (size_t i = 0; i < ARRAY_COUNT(conds); i++)
        (void)pthread_cond_destroy(conds[i]);
    (void)pthread_mutex_destroy(&replication->writing);
    (void)pthread_mutex_destroy(&replication->lock);
    mem_free(replication);
}

static void init(Replication *replication, const ReplicatedStoreOptions *options)
{
    replication->journal = options->journal;
    replication->hooks = options->hooks;
    replication->clock = options->clock;
    replication->log = options->local.log;
    replication->waiting_end = &replication->waiting;
    replication->ready_end = &replication->ready;
    int failed = 0;
    pthread_mutex_t *locks[] = {&replication->writing, &replication->lock};
    for (size_t i = 0; i < ARRAY_COUNT(locks); i++)
        failed += pthread_mutex_init(locks[i], NULL);
    pthread_cond_t *conds[] = {&replication->changed, &replication->has_work,
                               &replication->has_ready, &replication->is_poked,
                               &replication->sync_ended};
    for (size_t i = 0; i < ARRAY_COUNT(conds); i++)
        failed += pthread_cond_init(conds[i], NULL);
    ASSERT(failed == 0);
}

static void fill_ops(Replication *replication)
{
    const EngineOps *local = replication->local->ops;
    replication->ops = (EngineOps){
        .get = pass_get,
        .snapshot_open = pass_snapshot_open,
        .snapshot_close = local->snapshot_close,
        .cursor_open = pass_cursor_open,
        .cursor_move = local->cursor_move,
        .cursor_close = local->cursor_close,
        .room = replicated_room,
        .submit = replicated_submit,
        .drain = replicated_drain,
        .checkpoint = pass_checkpoint,
        .checkpoint_remove = pass_checkpoint_remove,
        .probe = probe,
        .drop = drop,
        .idle = pass_idle,
        .estimate = pass_estimate,
        .usage = pass_usage,
        .close = close_engine,
    };
    replication->engine = (Engine){.ops = &replication->ops, .merge = replication->local->merge};
}

static Status start_threads(Replication *replication, Error *err)
{
    static_assert(LANES <= JOURNAL_LANE_APPEND_1 - JOURNAL_LANE_APPEND_0 + 1,
                  "each has a lane of the journal");
    for (size_t i = 0; i < LANES; i++) {
        AppendLane *lane = &replication->lanes[i];
        lane->replication = replication;
        lane->lane = (JournalLane)(JOURNAL_LANE_APPEND_0 + i);
        TRY(thread_start(&lane->thread, "orrery-append", append_thread, lane, err));
        lane->has_thread = true;
    }
    const struct {
        PeriodicThread *thread;
        const char *name;
        void *(*run)(void *);
    } rows[] = {{&replication->applier, "orrery-apply", apply_thread},
                {&replication->syncer, "orrery-sync", sync_thread},
                {&replication->follower, "orrery-follow", follow_thread}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        TRY(thread_start(&rows[i].thread->thread, rows[i].name, rows[i].run, replication, err));
        rows[i].thread->has_thread = true;
    }
    return STATUS_OK;
}

static Status open_local(Replication *replication, const ReplicatedStoreOptions *options,
                         Error *err)
{
    RocksdbStoreOptions local = options->local;
    local.durability = STORE_DURABILITY_RELAXED;
    TRY(rocksdb_engine_open(&local, &replication->local, err));
    fill_ops(replication);
    TRY(places_load(replication, err));
    return start_threads(replication, err);
}

Status replicated_engine_open(const ReplicatedStoreOptions *options, Engine **out, Error *err)
{
    ASSERT(!options->local.is_read_only);
    ASSERT(options->hooks.applied != NULL);
    ASSERT(options->hooks.lost != NULL);
    ASSERT(options->hooks.behind != NULL);
    Replication *replication = MEM_NEW(Replication);
    init(replication, options);
    Status status = open_local(replication, options, err);
    if (status != STATUS_OK) {
        close_engine(&replication->engine);
        return status;
    }
    *out = &replication->engine;
    return STATUS_OK;
}

Status replicated_store_open(const ReplicatedStoreOptions *options, Store **out,
                             Replication **replication, Error *err)
{
    Engine *engine = NULL;
    TRY(replicated_engine_open(options, &engine, err));
    TRY(store_open(engine, options->local.log, out, err));
    *replication = replication_of(engine);
    rocksdb_engine_tell_damage((*replication)->local, *out);
    return STATUS_OK;
}
