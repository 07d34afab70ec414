/* inbox_int.h - the messages to a partition, and the turn: the right to apply them.
 *
 *     post --> queue --> writer thread: apply --> store: commit --> commit thread: answer
 *               |        |<------------------ one turn ------------------------->|
 *               +-- 'rest': what did not fit into the group, first in the next turn
 *
 * One holder has the turn at a time (I8): a poster that finds the partition idle takes it
 * ('is_active') and hands it to a writer thread (or a loader), which hands it with its group to the
 * commit thread, which gives it back and looks once more whether messages have come in between. A
 * fence hands it to the thread that drives a move.
 *
 * Threads    Any thread posts. The rest is for the holder of the turn.
 */
#pragma once

#include "base/latch.h"
#include "base/queue.h"
#include "base/workers.h"
#include "partition/partition.h"

#include <stdatomic.h>

/* PartitionMessage.kind. */
enum {
    MESSAGE_WRITE,
    MESSAGE_PURGE,
    MESSAGE_MAINTAIN,
    MESSAGE_DROP,
    MESSAGE_WATCH,  /* a Turn: changes are noted from here on */
    MESSAGE_FENCE,  /* a Turn, never part of a group: what comes after it waits */
    MESSAGE_IMPORT, /* an Import */
    MESSAGE_HOLD,   /* a Turn, never part of a group, like a fence: see baseline.h */
    MESSAGE_KEEP,   /* a BaselineKeep */
    MESSAGE_LOCK,   /* these three of a PartitionTransaction: see transaction_int.h */
    MESSAGE_COMMIT,
    MESSAGE_UNLOCK,
    MESSAGE_RECHECK, /* of EpkLocks: what waits there is looked at again */
    MESSAGE_STOP,    /* a PartitionStop */
};

/* A message whose sender waits for it. */
typedef struct Turn {
    PartitionMessage message;
    Latch done;
    Status status;
    Error error;
} Turn;

typedef struct Inbox {
    /* Any thread. */
    Queue queue; /* PartitionMessages */
    _Atomic uint64_t waiting_bytes;
    _Atomic bool is_active;       /* the turn is taken */
    _Atomic uint64_t turns;       /* how often it was taken */
    _Atomic bool maintain_posted; /* 'maintain' is queued or in a group */
    _Atomic bool is_loading;      /* a move fills it: loaders apply, not writers */

    PartitionMessage maintain; /* the one message of its kind; of the thread that set the flag */

    /* The holder of the turn. */
    WorkerJob job;
    QueueNode *rest; /* messages that are older than the queue's */
} Inbox;

void inbox_init(Inbox *inbox, void (*run)(WorkerJob *job));

/* Queues a message, whatever the partition's state is. Fails, without taking it, if too much waits
 * already; 'bytes' is what it holds besides itself. */
MUST_USE Status inbox_post(Partition *partition, PartitionMessage *message, size_t bytes,
                           Error *err);

/* The same for a message that counts for nothing, and so is never refused. */
void inbox_post_always(Partition *partition, PartitionMessage *message);

/* The oldest messages, for the next group; NULL if there are none. */
QueueNode *inbox_take(Inbox *inbox);

/* Messages of this many bytes, as post counted them, do not wait any more. */
void inbox_forget_bytes(Partition *partition, size_t bytes);

/* Hands the turn to a writer thread. */
void inbox_hand_on(Partition *partition);

/* Takes the turn of a partition that no other thread knows yet. */
void inbox_take_first(Partition *partition);

/* Gives the turn back, or hands it on if messages have come. The partition may be freed. */
void inbox_release(Partition *partition);

/* Whether the turn is free. If it is free before and after something was done, with the same number
 * of turns, it was free all the time, and the partition has published all that was written. */
static inline bool inbox_is_resting(const Inbox *inbox, uint64_t *turns)
{
    *turns = atomic_load(&inbox->turns);
    return !atomic_load(&inbox->is_active);
}
