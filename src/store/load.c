/* load.c - see store_load_begin.
 *
 *     caller:   add ------> add ------> merge: a step of one part ----> ... finish: links
 *     thread:      applies ---> applies ---> a step of the other part
 *
 * The thread has one transaction at a time, and the caller waits with the next one until the thread
 * takes it: a load holds two in memory, and the one that is being gathered. If the system has no
 * thread to give, the caller does everything.
 */
#include "base/mem.h"
#include "base/thread.h"
#include "base/thread_background.h"
#include "store/store_int.h"

/* What the thread is to do. */
typedef enum LoadTask { LOAD_NOTHING, LOAD_APPLY, LOAD_MERGE, LOAD_STOP } LoadTask;

struct StoreLoad {
    Store *store;     /* immutable after begin */
    EngineLoad *load; /* NULL if the engine can only write */
    bool has_thread;
    pthread_t thread;

    pthread_mutex_t lock; /* guards from here to 'failure' */
    pthread_cond_t changed;
    LoadTask task; /* until it is done */
    StoreTxn *txn; /* of LOAD_APPLY; the thread's own then */
    bool is_merged[ENGINE_LOAD_PARTS];
    Error failure; /* the first; STATUS_OK if there is none */

    uint64_t merge_bytes; /* that were added; the caller's, as the next one */
    bool is_merging;      /* nothing more is added */
};

static Status apply(StoreLoad *load, StoreTxn *txn, Error *err)
{
    EngineWrites writes = {.tree = txn->writes, .merges = buf_view(&txn->merges)};
    return load->store->engine->ops->load_add(load->load, &writes, err);
}

static Status merge(StoreLoad *load, unsigned part, Error *err)
{
    bool is_done = false;
    TRY(load->store->engine->ops->load_merge(load->load, part, &is_done, err));
    (void)pthread_mutex_lock(&load->lock);
    load->is_merged[part] = is_done;
    (void)pthread_mutex_unlock(&load->lock);
    return STATUS_OK;
}

static Status do_task(StoreLoad *load, LoadTask task, StoreTxn *txn, Error *err)
{
    if (task == LOAD_MERGE)
        return merge(load, 1, err);
    Status status = apply(load, txn, err);
    store_txn_abort(txn);
    return status;
}

static void *run(void *arg)
{
    StoreLoad *load = arg;
    thread_set_background();
    thread_set_background();
    (void)pthread_mutex_lock(&load->lock);
    while (load->task != LOAD_STOP) {
        if (load->task == LOAD_NOTHING) {
            (void)pthread_cond_wait(&load->changed, &load->lock);
            continue;
        }
        LoadTask task = load->task;
        StoreTxn *txn = TAKE(load->txn);
        (void)pthread_mutex_unlock(&load->lock);
        Error err;
        Status status = do_task(load, task, txn, &err);
        (void)pthread_mutex_lock(&load->lock);
        if (status != STATUS_OK && load->failure.status == STATUS_OK)
            load->failure = err;
        load->task = LOAD_NOTHING;
        (void)pthread_cond_broadcast(&load->changed);
    }
    (void)pthread_mutex_unlock(&load->lock);
    return NULL;
}

StoreLoad *store_load_begin(Store *store, uint8_t rising_kind)
{
    const EngineOps *ops = store->engine->ops;
    StoreLoad *load = MEM_NEW(StoreLoad);
    load->store = store;
    int failed = pthread_mutex_init(&load->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&load->changed, NULL);
    ASSERT(failed == 0);
    if (ops->load_begin == NULL)
        return load;
    load->load = ops->load_begin(store->engine, rising_kind);
    Error err;
    load->has_thread = thread_start(&load->thread, "orrery-load", run, load, &err) == STATUS_OK;
    return load;
}

/* Waits until the thread has nothing to do, then gives it a task. */
static void give(StoreLoad *load, LoadTask task, StoreTxn *txn)
{
    (void)pthread_mutex_lock(&load->lock);
    while (load->task != LOAD_NOTHING)
        (void)pthread_cond_wait(&load->changed, &load->lock);
    load->task = task;
    load->txn = txn;
    (void)pthread_cond_broadcast(&load->changed);
    (void)pthread_mutex_unlock(&load->lock);
}

static Status failure_of(StoreLoad *load, Error *err)
{
    (void)pthread_mutex_lock(&load->lock);
    Status status = load->failure.status;
    if (status != STATUS_OK)
        *err = load->failure;
    (void)pthread_mutex_unlock(&load->lock);
    return status;
}

/* For this transaction, and for the operands of all before it, which are written once more when
 * they are merged: it is better to fail before that (I5). */
static Status check_room(StoreLoad *load, const StoreTxn *txn, Error *err)
{
    Engine *engine = load->store->engine;
    uint64_t bytes = store_txn_bytes(txn) + load->merge_bytes;
    return engine->ops->room(engine, ENGINE_TAKES_ROOM, bytes, err);
}

Status store_load_add(StoreLoad *load, StoreTxn *txn, Error *err)
{
    if (load->load == NULL)
        return store_txn_commit_wait(txn, err);
    ASSERT(!load->is_merging);
    Status status = failure_of(load, err);
    if (status == STATUS_OK)
        status = check_room(load, txn, err);
    if (status != STATUS_OK) {
        store_txn_abort(txn);
        return status;
    }
    load->merge_bytes += txn->merges.len;
    if (!load->has_thread)
        return do_task(load, LOAD_APPLY, txn, err);
    give(load, LOAD_APPLY, txn);
    return STATUS_OK;
}

static void stop_thread(StoreLoad *load)
{
    if (!load->has_thread)
        return;
    give(load, LOAD_STOP, NULL);
    (void)pthread_join(load->thread, NULL);
    load->has_thread = false;
}

static bool is_merged(StoreLoad *load)
{
    (void)pthread_mutex_lock(&load->lock);
    bool all = true;
    for (size_t i = 0; i < ENGINE_LOAD_PARTS; i++)
        all = all && load->is_merged[i];
    (void)pthread_mutex_unlock(&load->lock);
    return all;
}

Status store_load_merge(StoreLoad *load, bool *is_done, Error *err)
{
    static_assert(ENGINE_LOAD_PARTS == 2, "one for the caller, one for the thread");
    *is_done = load->load == NULL;
    if (*is_done)
        return STATUS_OK;
    if (!load->is_merging)
        give(load, LOAD_NOTHING, NULL); /* waits for the last transaction */
    load->is_merging = true;
    TRY(failure_of(load, err));
    if (load->has_thread)
        give(load, LOAD_MERGE, NULL);
    else
        TRY(merge(load, 1, err));
    Status status = merge(load, 0, err);
    give(load, LOAD_NOTHING, NULL);
    TRY(status);
    TRY(failure_of(load, err));
    *is_done = is_merged(load);
    return STATUS_OK;
}

static Status finish(StoreLoad *load, Error *err)
{
    Engine *engine = load->store->engine;
    for (bool is_done = false; !is_done;)
        TRY(store_load_merge(load, &is_done, err));
    return engine->ops->load_link(engine, load->load, err);
}

Status store_load_finish(StoreLoad *load, Error *err)
{
    Status status = load->load == NULL ? STATUS_OK : finish(load, err);
    store_load_abort(load);
    return status;
}

void store_load_abort(StoreLoad *load)
{
    if (load == NULL)
        return;
    stop_thread(load);
    if (load->load != NULL)
        load->store->engine->ops->load_end(load->load);
    (void)pthread_cond_destroy(&load->changed);
    (void)pthread_mutex_destroy(&load->lock);
    mem_free(load);
}
