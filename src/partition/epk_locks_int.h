/* epk_locks_int.h - the EPKs of a partition that transactions have locked, and the messages that
 * wait for them.
 *
 *     queue --> turn: touches a locked EPK? --no--> applied
 *                 ^             | yes
 *                 |          waiting, in the order in which they came
 *                 |             |
 *                 +-------------+  when a lock is given back: all of them, before what is newer
 *
 * A message that touches several EPKs, or a prefix of them, and waits for one, keeps newer messages
 * from passing it at the others (I21): otherwise transactions on two EPKs could make it wait
 * forever. What such messages touch is remembered as a set of hashes. An EPK that only seems to be
 * in the set waits until the next lock is given back, for nothing but time.
 *
 * Threads    The holder of the turn.
 */
#pragma once

#include "partition/inbox_int.h"
#include "partition/transaction.h"

enum { LOCKS_BLOCKED_BITS = 4096 };

typedef struct EpkLock {
    Epk epk;
    const PartitionTransaction *holder; /* only its name: after a stop it may be freed */
    uint32_t waiting;                   /* transactions that wait for this EPK */
} EpkLock;

typedef struct EpkLocks {
    EpkLock *held;
    size_t held_count;
    size_t held_capacity;
    QueueNode *waiting; /* PartitionMessages, oldest first; NULL if none is held */
    QueueNode *waiting_last;
    uint64_t *blocked; /* bits: hashes of what waiting messages touch; NULL if there are none */

    PartitionMessage recheck; /* to have all that waits looked at again */
    bool is_recheck_posted;   /* under the lock of the host's list of transactions */
} EpkLocks;

void epk_locks_done(EpkLocks *locks);

static inline bool epk_locks_are_held(const EpkLocks *locks)
{
    return locks->held_count > 0;
}

/* Whether a transaction has locked this EPK, or one that begins with it. */
bool epk_locks_has(const EpkLocks *locks, Slice epk);

/* Whether the message must wait; and has it wait. The second fails with STATUS_THROTTLED, without
 * taking the message, if too many transactions wait for the same EPK. */
bool epk_locks_stop(const EpkLocks *locks, const PartitionMessage *message);
MUST_USE Status epk_locks_wait(EpkLocks *locks, PartitionMessage *message, Error *err);

/* STATUS_THROTTLED if too many locks are held. */
MUST_USE Status epk_locks_take(EpkLocks *locks, const PartitionTransaction *holder, Error *err);

bool epk_locks_holds(const EpkLocks *locks, const PartitionTransaction *holder);

/* False if it holds none. */
bool epk_locks_give_back(EpkLocks *locks, const PartitionTransaction *holder);
void epk_locks_give_back_all(EpkLocks *locks);

/* Puts all messages that wait in front of a list. */
void epk_locks_put_waiting(EpkLocks *locks, QueueNode **list);
