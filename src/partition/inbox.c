/* inbox.c - see inbox_int.h. */
#include "partition/inbox_int.h"

#include "partition/partition_int.h"

void inbox_init(Inbox *inbox, void (*run)(WorkerJob *job))
{
    queue_init(&inbox->queue);
    inbox->maintain.kind = MESSAGE_MAINTAIN;
    inbox->job.run = run;
}

void inbox_forget_bytes(Partition *partition, size_t bytes)
{
    uint64_t own =
        atomic_fetch_sub_explicit(&partition->inbox.waiting_bytes, bytes, memory_order_relaxed);
    ASSERT(own >= bytes);
    atomic_fetch_sub_explicit(&partition->host->waiting_bytes, bytes, memory_order_relaxed);
}

/* Two additions in memory, however much waits. */
static Status count_bytes(Partition *partition, size_t bytes, Error *err)
{
    PartitionHost *host = partition->host;
    uint64_t own =
        atomic_fetch_add_explicit(&partition->inbox.waiting_bytes, bytes, memory_order_relaxed);
    uint64_t all = atomic_fetch_add_explicit(&host->waiting_bytes, bytes, memory_order_relaxed);
    if (LIKELY(own + bytes <= PARTITION_WAITING_BYTES_MAX &&
               all + bytes <= PARTITION_HOST_WAITING_BYTES_MAX))
        return STATUS_OK;
    inbox_forget_bytes(partition, bytes);
    bool is_own = own + bytes > PARTITION_WAITING_BYTES_MAX;
    Status status = error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                              "%s has %llu MB of writes waiting for the disk; try again later.",
                              is_own ? "This partition" : "The server",
                              (unsigned long long)(is_own ? own : all) >> 20);
    err->retry_after_ms = 100;
    return status;
}

void inbox_hand_on(Partition *partition)
{
    ASSERT(atomic_load_explicit(&partition->inbox.is_active, memory_order_relaxed));
    const PartitionHost *host = partition->host;
    Inbox *inbox = &partition->inbox;
    bool is_loading =
        host->loaders != NULL && atomic_load_explicit(&inbox->is_loading, memory_order_relaxed);
    if (is_loading && workers_post(host->loaders, &inbox->job))
        return;
    bool taken = workers_post(host->writers, &inbox->job);
    ASSERT(taken); /* the writers have a thread, and a queue as long as there can be partitions */
}

/* A reference is held for as long as the turn is taken. */
static void schedule(Partition *partition)
{
    if (atomic_exchange(&partition->inbox.is_active, true))
        return;
    atomic_fetch_add(&partition->inbox.turns, 1);
    (void)partition_ref(partition);
    atomic_fetch_add(&partition->host->active, 1);
    inbox_hand_on(partition);
}

void inbox_take_first(Partition *partition)
{
    bool was_active = atomic_exchange(&partition->inbox.is_active, true);
    ASSERT(!was_active);
    atomic_fetch_add(&partition->inbox.turns, 1);
    (void)partition_ref(partition);
    atomic_fetch_add(&partition->host->active, 1);
}

static void push(Partition *partition, PartitionMessage *message)
{
    if (queue_push(&partition->inbox.queue, &message->node))
        schedule(partition);
}

Status inbox_post(Partition *partition, PartitionMessage *message, size_t bytes, Error *err)
{
    message->bytes = PARTITION_MESSAGE_BYTES + bytes;
    TRY(count_bytes(partition, message->bytes, err));
    push(partition, message);
    return STATUS_OK;
}

void inbox_post_always(Partition *partition, PartitionMessage *message)
{
    message->bytes = 0;
    push(partition, message);
}

QueueNode *inbox_take(Inbox *inbox)
{
    ASSERT(atomic_load_explicit(&inbox->is_active, memory_order_relaxed)); /* I8 */
    return inbox->rest != NULL ? TAKE(inbox->rest) : queue_take(&inbox->queue);
}

void inbox_release(Partition *partition)
{
    PartitionHost *host = partition->host;
    if (partition->inbox.rest != NULL) {
        inbox_hand_on(partition);
        return;
    }
    atomic_store(&partition->inbox.is_active, false);
    /* A message that came while the turn was held found the partition active and woke no thread. */
    if (atomic_load(&partition->inbox.queue.newest) != NULL)
        schedule(partition);
    partition_unref(partition);
    atomic_fetch_sub(&host->active, 1);
}
