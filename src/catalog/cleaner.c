/* cleaner.c - takes back the room of dropped containers.
 *
 * A drop leaves a garbage record in the same commit that removes the container, so a crash at any
 * point leaves either the container or the record, and the next start goes on from the records.
 * Most containers that tests create and drop were never written to: those cost a look, no write to
 * their spaces.
 */
#include "base/mem.h"
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
    else if (store_txn_commit_wait(txn, &err) != STATUS_OK)
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

void cleaner_open(Cleaner *cleaner, Store *store, const Log *log)
{
    cleaner->store = store;
    cleaner->log = log;
    atomic_init(&cleaner->stop, false);
    mailbox_init(&cleaner->mailbox);
    int failed = pthread_create(&cleaner->thread, NULL, run, cleaner);
    ASSERT(failed == 0);
    cleaner->is_running = true;
}

void cleaner_post(Cleaner *cleaner, Garbage garbage)
{
    GarbageMessage *message = MEM_NEW(GarbageMessage);
    message->garbage = garbage;
    mailbox_post(&cleaner->mailbox, &message->node);
}

void cleaner_close(Cleaner *cleaner)
{
    if (!cleaner->is_running)
        return;
    atomic_store_explicit(&cleaner->stop, true, memory_order_release);
    cleaner_post(cleaner, (Garbage){0});
    (void)pthread_join(cleaner->thread, NULL);
    /* What came after the thread's last look; being stopped, this cleans nothing. */
    clean_all(cleaner, queue_take(&cleaner->mailbox.queue));
    mailbox_done(&cleaner->mailbox);
    cleaner->is_running = false;
}
