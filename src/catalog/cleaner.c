/* cleaner.c - empties the spaces of dropped containers, of the sources of moves, and of the targets
 * of moves that were undone.
 *
 * A drop leaves a garbage record in the same commit that removes the container (I5), so a crash at
 * any point leaves either the container or the record, and the next start resumes from the records.
 * Most containers that tests create and drop were never written to: for those the spaces are read
 * once and not written.
 */
#include "catalog/cleaner_int.h"

#include "base/mem.h"
#include "base/thread.h"
#include "base/thread_background.h"
#include "catalog/placement.h"

typedef struct GarbageMessage {
    QueueNode node;
    Garbage garbage; /* 'first' is 0 in a message that only wakes the thread */
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

static Status clean(const Cleaner *cleaner, StoreTxn *txn, Garbage garbage, Error *err)
{
    const CatalogPlacement *placement = cleaner->placement;
    bool empty = false;
    TRY(is_empty(cleaner->store, garbage, &empty, err));
    if (!empty)
        TRY(store_drop_spaces(cleaner->store, garbage.first, garbage.last, err));
    if (placement != NULL && placement->dropped != NULL)
        placement->dropped(placement->ctx, garbage.first, garbage.last);
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

/* Cleans the spaces that the messages name, and deletes the records of those that were cleaned with
 * one commit. What fails keeps its record for the next start. Frees the messages. */
static void clean_all(Cleaner *cleaner, QueueNode *node)
{
    StoreTxn *txn = store_txn_begin(cleaner->store);
    size_t cleaned = 0;
    Error err;
    while (node != NULL) {
        AUTO(mem_free) void *owned = CONTAINER_OF(node, GarbageMessage, node);
        Garbage garbage = ((GarbageMessage *)owned)->garbage;
        node = node->next;
        if (garbage.first == 0 || is_stopped(cleaner) || atomic_load(&cleaner->is_paused))
            continue;
        if (clean(cleaner, txn, garbage, &err) == STATUS_OK)
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
    thread_set_background();
    while (!is_stopped(cleaner))
        clean_all(cleaner, mailbox_wait(&cleaner->mailbox));
    return NULL;
}

static void destroy(Cleaner *cleaner)
{
    mailbox_done(&cleaner->mailbox);
    (void)pthread_cond_destroy(&cleaner->drops_changed);
    (void)pthread_mutex_destroy(&cleaner->lock);
}

void cleaner_pause(Cleaner *cleaner, bool is_paused)
{
    atomic_store(&cleaner->is_paused, is_paused);
}

Status cleaner_open(Cleaner *cleaner, Store *store, const CatalogPlacement *placement,
                    const Log *log, Error *err)
{
    cleaner->store = store;
    cleaner->placement = placement;
    atomic_init(&cleaner->is_paused, false);
    cleaner->log = log;
    atomic_init(&cleaner->stop, false);
    mailbox_init(&cleaner->mailbox);
    int failed = pthread_mutex_init(&cleaner->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&cleaner->drops_changed, NULL);
    ASSERT(failed == 0);
    Status status = thread_start(&cleaner->thread, "orrery-cleaner", run, cleaner, err);
    cleaner->is_running = status == STATUS_OK;
    if (!cleaner->is_running)
        destroy(cleaner);
    return status;
}

void cleaner_post(Cleaner *cleaner, Garbage garbage)
{
    ASSERT(garbage.first <= garbage.last);
    GarbageMessage *message = MEM_NEW(GarbageMessage);
    message->garbage = garbage;
    mailbox_post(&cleaner->mailbox, &message->node);
}

void cleaner_begin_drop(Cleaner *cleaner)
{
    (void)pthread_mutex_lock(&cleaner->lock);
    cleaner->drops++;
    (void)pthread_mutex_unlock(&cleaner->lock);
}

void cleaner_end_drop(Cleaner *cleaner)
{
    (void)pthread_mutex_lock(&cleaner->lock);
    ASSERT(cleaner->drops > 0);
    cleaner->drops--;
    (void)pthread_cond_signal(&cleaner->drops_changed);
    (void)pthread_mutex_unlock(&cleaner->lock);
}

/* Ranges whose partitions are being dropped; each partition answers once. */
typedef struct DropGroup {
    Cleaner *cleaner;
    Container *container; /* a reference of its own */
    const PartitionRange *ranges;
    size_t count;
    bool stays;          /* nothing is cleaned */
    _Atomic size_t left; /* partitions that have not answered, and the thread that posts */
    struct RangeDrop {
        PartitionDrop drop;
        struct DropGroup *group;
    } drops[];
} DropGroup;

/* On a writer's thread or the commit thread, or the thread that drops. */
static void end_one(DropGroup *group)
{
    if (atomic_fetch_sub(&group->left, 1) > 1)
        return;
    Cleaner *cleaner = group->cleaner;
    Garbage garbage;
    for (size_t from = 0;
         !group->stays && garbage_next(group->ranges, group->count, &from, &garbage);)
        cleaner_post(cleaner, garbage);
    container_unref(group->container);
    mem_free(group);
    cleaner_end_drop(cleaner);
}

static void on_dropped(PartitionDrop *drop)
{
    end_one(CONTAINER_OF(drop, struct RangeDrop, drop)->group);
}

static void drop(Cleaner *cleaner, const Container *container, const PartitionRange *ranges,
                 size_t count, bool stays)
{
    if (count == 0)
        return;
    DropGroup *group = mem_alloc(sizeof(DropGroup) + sizeof(struct RangeDrop) * count);
    group->cleaner = cleaner;
    group->container = container_ref(container);
    group->ranges = ranges;
    group->count = count;
    group->stays = stays;
    atomic_init(&group->left, count + 1);
    cleaner_begin_drop(cleaner);
    for (size_t i = 0; i < count; i++) {
        group->drops[i].drop.done = on_dropped;
        group->drops[i].group = group;
    }
    for (size_t i = 0; i < count; i++) {
        Partition *partition = handle_local(container_handle(container, &ranges[i]));
        if (partition != NULL)
            partition_drop(partition, &group->drops[i].drop);
        else
            end_one(group);
    }
    end_one(group); /* this thread's own, without which the last answer would have freed it */
}

void cleaner_drop(Cleaner *cleaner, const Container *container, const PartitionRange *ranges,
                  size_t count)
{
    drop(cleaner, container, ranges, count, false);
}

void cleaner_keep(Cleaner *cleaner, const Container *container)
{
    drop(cleaner, container, container->ranges, container->range_count, true);
}

bool cleaner_is_dropping(Cleaner *cleaner)
{
    (void)pthread_mutex_lock(&cleaner->lock);
    bool result = cleaner->drops > 0;
    (void)pthread_mutex_unlock(&cleaner->lock);
    return result;
}

void cleaner_close(Cleaner *cleaner)
{
    if (!cleaner->is_running)
        return;
    (void)pthread_mutex_lock(&cleaner->lock);
    while (cleaner->drops > 0)
        (void)pthread_cond_wait(&cleaner->drops_changed, &cleaner->lock);
    (void)pthread_mutex_unlock(&cleaner->lock);
    atomic_store_explicit(&cleaner->stop, true, memory_order_release);
    cleaner_post(cleaner, (Garbage){0});
    (void)pthread_join(cleaner->thread, NULL);
    /* Frees the messages that the thread has not seen. As it is stopped, this cleans nothing. */
    clean_all(cleaner, queue_take(&cleaner->mailbox.queue));
    destroy(cleaner);
    cleaner->is_running = false;
}

CleanerLink *cleaner_link_new(Cleaner *cleaner)
{
    CleanerLink *link = MEM_NEW(CleanerLink);
    atomic_init(&link->refs, 1);
    link->cleaner = cleaner;
    int failed = pthread_mutex_init(&link->lock, NULL);
    ASSERT(failed == 0);
    return link;
}

void cleaner_link_ref(CleanerLink *link, uint32_t count)
{
    uint32_t before = atomic_fetch_add(&link->refs, count);
    ASSERT(before > 0);
}

static void unref_link(CleanerLink *link)
{
    if (atomic_fetch_sub(&link->refs, 1) > 1)
        return;
    (void)pthread_mutex_destroy(&link->lock);
    mem_free(link);
}

void cleaner_link_post(CleanerLink *link, Garbage garbage)
{
    (void)pthread_mutex_lock(&link->lock);
    if (link->cleaner != NULL)
        cleaner_post(link->cleaner, garbage);
    (void)pthread_mutex_unlock(&link->lock);
    unref_link(link);
}

void cleaner_link_close(CleanerLink *link)
{
    (void)pthread_mutex_lock(&link->lock);
    ASSERT(link->cleaner != NULL);
    link->cleaner = NULL;
    (void)pthread_mutex_unlock(&link->lock);
    unref_link(link);
}

bool garbage_next(const PartitionRange *ranges, size_t count, size_t *from, Garbage *out)
{
    if (*from >= count)
        return false;
    *out = (Garbage){ranges[*from].space, ranges[*from].space};
    (*from)++;
    while (*from < count && ranges[*from].space == out->last + 1) {
        out->last++;
        (*from)++;
    }
    return true;
}
