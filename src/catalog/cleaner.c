/* cleaner.c - takes back the room of dropped containers, and of moves that were undone.
 *
 * A drop leaves a garbage record in the same commit that removes the container, so a crash at any
 * point leaves either the container or the record, and the next start goes on from the records.
 * Most containers that tests create and drop were never written to: those cost a look, no write to
 * their spaces.
 */
#include "base/mem.h"
#include "base/thread.h"
#include "catalog/catalog_int.h"

typedef struct GarbageMessage {
    QueueNode node;
    Garbage garbage; /* 'first' is 0 in a message that only wakes */
} GarbageMessage;

static Status is_empty(Store *store, Garbage garbage, bool *out, Error *err)
{
    for (StoreSpace space = garbage.first; space <= garbage.last; space++) {
        AUTO(store_cursor_close)
        StoreCursor *cursor = store_cursor_open(store, NULL, space, SLICE_EMPTY, SLICE_EMPTY);
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (found) {
            *out = false;
            return STATUS_OK;
        }
    }
    *out = true;
    return STATUS_OK;
}

static Status clean(Store *store, StoreTxn *txn, Garbage garbage, Error *err)
{
    bool empty = false;
    TRY(is_empty(store, garbage, &empty, err));
    if (!empty)
        TRY(store_drop_spaces(store, garbage.first, garbage.last, err));
    record_delete_garbage(txn, garbage);
    return STATUS_OK;
}

static Status forget_all(StoreTxn *txn, Error *err)
{
    store_txn_makes_room(txn);
    return store_txn_commit_wait(txn, err);
}

static bool is_stopped(const Cleaner *cleaner)
{
    return atomic_load_explicit(&cleaner->stop, memory_order_acquire);
}

/* Cleans what the messages name, or leaves it for the next start, and forgets all that was cleaned
 * with one commit. Frees the messages. */
static void clean_all(Cleaner *cleaner, QueueNode *node)
{
    StoreTxn *txn = store_txn_begin(cleaner->store);
    size_t cleaned = 0;
    Error err;
    while (node != NULL) {
        AUTO(mem_free) void *owned = CONTAINER_OF(node, GarbageMessage, node);
        Garbage garbage = ((GarbageMessage *)owned)->garbage;
        node = node->next;
        if (garbage.first == 0 || is_stopped(cleaner))
            continue;
        if (clean(cleaner->store, txn, garbage, &err) == STATUS_OK)
            cleaned++;
        else
            LOG_WARN(cleaner->log, "catalog.clean_failed",
                     "space=%llu reason=%s (kept for the next start)",
                     (unsigned long long)garbage.first, err.message);
    }
    if (cleaned == 0)
        store_txn_abort(txn);
    else if (forget_all(txn, &err) != STATUS_OK)
        LOG_WARN(cleaner->log, "catalog.clean_failed", "reason=%s (kept for the next start)",
                 err.message);
}

static void *run(void *arg)
{
    Cleaner *cleaner = arg;
    while (!is_stopped(cleaner))
        clean_all(cleaner, mailbox_wait(&cleaner->mailbox));
    return NULL;
}

static void destroy(Cleaner *cleaner)
{
    mailbox_done(&cleaner->mailbox);
    (void)pthread_cond_destroy(&cleaner->fallen);
    (void)pthread_mutex_destroy(&cleaner->lock);
}

Status cleaner_open(Cleaner *cleaner, Store *store, const Log *log, Error *err)
{
    cleaner->store = store;
    cleaner->log = log;
    atomic_init(&cleaner->stop, false);
    mailbox_init(&cleaner->mailbox);
    int failed = pthread_mutex_init(&cleaner->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&cleaner->fallen, NULL);
    ASSERT(failed == 0);
    Status status = thread_start(&cleaner->thread, "orrery-cleaner", run, cleaner, err);
    cleaner->is_running = status == STATUS_OK;
    if (!cleaner->is_running)
        destroy(cleaner);
    return status;
}

void cleaner_post(Cleaner *cleaner, Garbage garbage)
{
    GarbageMessage *message = MEM_NEW(GarbageMessage);
    message->garbage = garbage;
    mailbox_post(&cleaner->mailbox, &message->node);
}

/* Dropped ranges on their way: every partition answers once. */
typedef struct Fall {
    Cleaner *cleaner;
    Container *container; /* a reference of its own */
    const PartitionRange *ranges;
    size_t count;
    _Atomic size_t left; /* partitions that have not answered */
    struct FallDrop {
        PartitionDrop drop;
        struct Fall *fall;
    } drops[];
} Fall;

/* On a writer's thread or the commit thread. */
static void on_silent(PartitionDrop *drop)
{
    Fall *fall = CONTAINER_OF(drop, struct FallDrop, drop)->fall;
    if (atomic_fetch_sub(&fall->left, 1) > 1)
        return;
    Cleaner *cleaner = fall->cleaner;
    Garbage garbage;
    for (size_t from = 0; garbage_next(fall->ranges, fall->count, &from, &garbage);)
        cleaner_post(cleaner, garbage);
    container_unref(fall->container);
    mem_free(fall);
    (void)pthread_mutex_lock(&cleaner->lock);
    cleaner->falling--;
    (void)pthread_cond_signal(&cleaner->fallen);
    (void)pthread_mutex_unlock(&cleaner->lock);
}

void cleaner_drop(Cleaner *cleaner, const Container *container, const PartitionRange *ranges,
                  size_t count)
{
    if (count == 0)
        return;
    Fall *fall = mem_alloc(sizeof(Fall) + sizeof(struct FallDrop) * count);
    fall->cleaner = cleaner;
    fall->container = container_ref(container);
    fall->ranges = ranges;
    fall->count = count;
    atomic_init(&fall->left, count);
    (void)pthread_mutex_lock(&cleaner->lock);
    cleaner->falling++;
    (void)pthread_mutex_unlock(&cleaner->lock);
    /* The last answer frees 'fall', so nothing of it is read after the last drop is posted. */
    for (size_t i = 0; i < count; i++) {
        fall->drops[i].drop.done = on_silent;
        fall->drops[i].fall = fall;
    }
    for (size_t i = 0; i < count; i++)
        partition_drop(ranges[i].partition, &fall->drops[i].drop);
}

void cleaner_close(Cleaner *cleaner)
{
    if (!cleaner->is_running)
        return;
    (void)pthread_mutex_lock(&cleaner->lock);
    while (cleaner->falling > 0)
        (void)pthread_cond_wait(&cleaner->fallen, &cleaner->lock);
    (void)pthread_mutex_unlock(&cleaner->lock);
    atomic_store_explicit(&cleaner->stop, true, memory_order_release);
    cleaner_post(cleaner, (Garbage){0});
    (void)pthread_join(cleaner->thread, NULL);
    /* What came after the thread's last look; being stopped, this cleans nothing. */
    clean_all(cleaner, queue_take(&cleaner->mailbox.queue));
    destroy(cleaner);
    cleaner->is_running = false;
}
