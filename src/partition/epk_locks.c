/* epk_locks.c - see epk_locks_int.h.
 *
 * Locks are few, so they are searched one by one, and only while there are any. EPKs conflict if
 * one is the beginning of the other: a purge may name a prefix of a hierarchical key.
 */
#include "partition/epk_locks_int.h"

#include "base/array.h"
#include "base/mem.h"
#include "partition/transaction_int.h"

enum { WORD_BITS = 64, RETRY_AFTER_MS = 100 };

void epk_locks_done(EpkLocks *locks)
{
    ASSERT(locks->waiting == NULL);
    mem_free(locks->held);
    mem_free(locks->blocked);
}

static bool conflict(Slice a, Slice b)
{
    return a.len < b.len ? slice_starts_with(b, a) : slice_starts_with(a, b);
}

static EpkLock *find(const EpkLocks *locks, Slice epk)
{
    for (size_t i = 0; i < locks->held_count; i++) {
        if (conflict(epk_slice(&locks->held[i].epk), epk))
            return &locks->held[i];
    }
    return NULL;
}

bool epk_locks_has(const EpkLocks *locks, Slice epk)
{
    return find(locks, epk) != NULL;
}

/* The EPKs that a message touches, one after the other; false if there are no more. */
static bool touched(const PartitionMessage *message, size_t index, Slice *epk)
{
    if (message->kind == MESSAGE_WRITE) {
        const PartitionWrite *write = CONTAINER_OF(message, PartitionWrite, message);
        if (index >= write->count)
            return false;
        *epk = epk_slice(&write->items[index].epk);
        return true;
    }
    if (message->kind == MESSAGE_PURGE)
        *epk = epk_slice(&CONTAINER_OF(message, PartitionPurge, message)->epk);
    else if (message->kind == MESSAGE_LOCK)
        *epk = epk_slice(&CONTAINER_OF(message, PartitionTransaction, message)->epk);
    else
        return false;
    return index == 0;
}

/* ---- what waiting messages touch ---- */

/* Of its first hash alone: a prefix must meet all that begin with it. */
static size_t bit_of(Slice epk)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a; see above why collisions do no harm */
    for (size_t i = 0; i < epk.len && i < EPK_HASH_BYTES; i++)
        hash = (hash ^ (uint8_t)epk.ptr[i]) * UINT64_C(0x100000001b3);
    return (size_t)((hash ^ hash >> 32) % LOCKS_BLOCKED_BITS);
}

static bool is_blocked(const EpkLocks *locks, Slice epk)
{
    if (LIKELY(locks->blocked == NULL))
        return false;
    size_t bit = bit_of(epk);
    return (locks->blocked[bit / WORD_BITS] >> bit % WORD_BITS & 1) != 0;
}

static void block_all(EpkLocks *locks, const PartitionMessage *message)
{
    if (locks->blocked == NULL)
        locks->blocked = MEM_NEW_ARRAY(uint64_t, LOCKS_BLOCKED_BITS / WORD_BITS);
    Slice epk;
    for (size_t i = 0; touched(message, i, &epk); i++) {
        size_t bit = bit_of(epk);
        locks->blocked[bit / WORD_BITS] |= (uint64_t)1 << bit % WORD_BITS;
    }
}

/* Whether what the message touches is more than the one EPK at which it was stopped, and at which
 * newer ones are stopped, too. */
static bool touches_several(const PartitionMessage *message)
{
    if (message->kind == MESSAGE_PURGE)
        return true; /* perhaps a prefix */
    Slice first;
    Slice other;
    if (!touched(message, 0, &first))
        return false;
    for (size_t i = 1; touched(message, i, &other); i++) {
        if (!slice_equal(first, other))
            return true;
    }
    return false;
}

/* ---- waiting ---- */

bool epk_locks_stop(const EpkLocks *locks, const PartitionMessage *message)
{
    Slice before = SLICE_EMPTY;
    Slice epk;
    for (size_t i = 0; touched(message, i, &epk); i++) {
        if (i > 0 && slice_equal(epk, before))
            continue; /* those of a batch are all the same */
        if (find(locks, epk) != NULL || is_blocked(locks, epk))
            return true;
        before = epk;
    }
    return false;
}

Status epk_locks_wait(EpkLocks *locks, PartitionMessage *message, Error *err)
{
    ASSERT(epk_locks_are_held(locks));
    if (message->kind == MESSAGE_LOCK) {
        Slice epk;
        (void)touched(message, 0, &epk);
        EpkLock *lock = find(locks, epk);
        if (lock != NULL && lock->waiting == TRANSACTIONS_WAITING_MAX) {
            Status status =
                error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                          "%d transactions wait for this partition key; try again later.",
                          TRANSACTIONS_WAITING_MAX);
            err->retry_after_ms = RETRY_AFTER_MS;
            return status;
        }
        if (lock != NULL)
            lock->waiting++;
    }
    if (touches_several(message))
        block_all(locks, message);
    message->node.next = NULL;
    if (locks->waiting == NULL)
        locks->waiting = &message->node;
    else
        locks->waiting_last->next = &message->node;
    locks->waiting_last = &message->node;
    return STATUS_OK;
}

void epk_locks_put_waiting(EpkLocks *locks, QueueNode **list)
{
    if (locks->waiting == NULL)
        return;
    locks->waiting_last->next = *list;
    *list = TAKE(locks->waiting);
    mem_free(TAKE(locks->blocked));
    for (size_t i = 0; i < locks->held_count; i++)
        locks->held[i].waiting = 0;
}

/* ---- locks ---- */

Status epk_locks_take(EpkLocks *locks, const PartitionTransaction *holder, Error *err)
{
    ASSERT(find(locks, epk_slice(&holder->epk)) == NULL); /* I21 */
    if (locks->held_count == TRANSACTIONS_MAX) {
        Status status = error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                                  "%d transactions are open in this partition; try again later.",
                                  TRANSACTIONS_MAX);
        err->retry_after_ms = RETRY_AFTER_MS;
        return status;
    }
    ARRAY_GROW(locks->held, locks->held_count, locks->held_capacity, 8);
    locks->held[locks->held_count++] = (EpkLock){.epk = holder->epk, .holder = holder};
    return STATUS_OK;
}

bool epk_locks_holds(const EpkLocks *locks, const PartitionTransaction *holder)
{
    for (size_t i = 0; i < locks->held_count; i++) {
        if (locks->held[i].holder == holder)
            return true;
    }
    return false;
}

bool epk_locks_give_back(EpkLocks *locks, const PartitionTransaction *holder)
{
    for (size_t i = 0; i < locks->held_count; i++) {
        if (locks->held[i].holder == holder) {
            locks->held[i] = locks->held[--locks->held_count];
            return true;
        }
    }
    return false;
}

void epk_locks_give_back_all(EpkLocks *locks)
{
    locks->held_count = 0;
}
