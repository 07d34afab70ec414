/* transaction_int.h - a transaction as its partition sees it: messages, and the list of a host.
 *
 *               granted            commit's turn
 *     WAITING ----------> OPEN ---------------------> CLOSED
 *        |  |               |     unlock's turn          ^
 *        |  +-- refused ----|----------------------------+
 *        |                  +----------------------------+
 *        +-- deadline --> ABANDONED
 *
 * One message at a time is under way for a transaction: it asks for the lock, commits, or unlocks.
 * A sender that does not wait any longer abandons its message, and the partition frees both in the
 * message's turn; so it does after the unlock. 'state' is what the two agree by.
 *
 * Threads    The message's fields are the partition's while it is under way, else the sender's.
 */
#pragma once

#include "base/latch.h"
#include "partition/group_int.h"
#include "partition/transaction.h"

typedef enum TransactionState {
    TRANSACTION_WAITING,   /* its message asks for the lock */
    TRANSACTION_ABANDONED, /* the partition's: nobody waits for it */
    TRANSACTION_OPEN,      /* it holds the lock */
    TRANSACTION_CLOSED,    /* it does not, or no more */
} TransactionState;

struct PartitionTransaction {
    PartitionMessage message; /* MESSAGE_LOCK, then perhaps MESSAGE_COMMIT, then MESSAGE_UNLOCK */
    Epk epk;
    _Atomic TransactionState state;
    Latch answered; /* the message was */
    Status status;
    Error error;

    /* The sender's. */
    Partition *partition; /* references of its own */
    PartitionSchema *schema;
    Group *group;        /* own writes; NULL until it is open */
    ItemWrite **applied; /* operations that have written, in order */
    size_t applied_count;
    size_t applied_capacity;
    bool is_commit_tried;
    bool is_listed; /* by the host */

    PartitionWrite commit; /* of copies of them */

    PartitionTransaction *previous; /* in the host's list, under its lock */
    PartitionTransaction *next;
};

/* The turn of each message. The ones that give the lock back put the messages that waited for it
 * after themselves. */
void transaction_take_lock(Group *group, PartitionTransaction *transaction);
void transaction_take_commit(Group *group, PartitionTransaction *transaction);
void transaction_take_unlock(Group *group, PartitionTransaction *transaction);

/* Answers the message that is under way; 'err' is not NULL if the group was not committed. The
 * transaction may be freed. */
void transaction_answer(Partition *partition, PartitionTransaction *transaction, const Error *err);

/* STATUS_UNAVAILABLE: why a stopped host refuses. */
MUST_USE Status transaction_stopped(Error *err);

/* Has the partitions of all transactions refuse what waits for them, and lets none begin or commit
 * from now on. */
void transactions_stop(PartitionHost *host);
