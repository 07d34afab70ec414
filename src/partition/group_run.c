/* group_run.c - the way of a group: applied on a writer thread, committed by the store, answered on
 * the commit thread. See inbox_int.h for the turn, which goes with it.
 */
#include "partition/group_int.h"
#include "partition/transaction_int.h"

/* A store over a journal takes no transaction of more than JOURNAL_ENTRY_BYTES_MAX, and what the
 * terms of a group will take is not known before they are made. So a group that was refused as too
 * large makes the next ones smaller, by SHIFT_STEP powers of two, up to SHIFT_MAX: then each
 * message is a group. After each GROUPS_TAKEN that the store has taken they are twice as large
 * again. */
enum { SHIFT_STEP = 3, SHIFT_MAX = 6, GROUPS_TAKEN = 16 };

enum { RETRY_AFTER_MS = 100 }; /* of writes that were too large together */

size_t group_bytes_max(const Partition *partition)
{
    return GROUP_BYTES_MAX >> partition->group_shift;
}

size_t group_keep_bytes_max(const Partition *partition)
{
    return GROUP_KEEP_BYTES_MAX >> partition->group_shift;
}

/* On the commit thread, which has the turn. */
static void note_size(Partition *partition, const Error *err)
{
    if (err != NULL && err->status == STATUS_TOO_LARGE) {
        unsigned shift = partition->group_shift + SHIFT_STEP;
        partition->group_shift = shift < SHIFT_MAX ? shift : SHIFT_MAX;
        partition->groups_taken = 0;
    } else if (err == NULL && partition->group_shift > 0 &&
               ++partition->groups_taken == GROUPS_TAKEN) {
        partition->group_shift--;
        partition->groups_taken = 0;
    }
}

/* What is too large together is not too large: only a message that was alone is told so. */
static Status error_of_each(const Group *group, const Error *err, Error *out)
{
    *out = *err;
    bool is_alone = group->messages == NULL || group->messages->next == NULL;
    if (err->status != STATUS_TOO_LARGE || is_alone)
        return err->status;
    Status status =
        error_set(out, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                  "Nothing was written: with others that came at the same time this was "
                  "too large for one write. Send it again.");
    out->retry_after_ms = RETRY_AFTER_MS;
    return status;
}

static bool is_of_transaction(const PartitionMessage *message)
{
    return message->kind == MESSAGE_LOCK || message->kind == MESSAGE_COMMIT ||
           message->kind == MESSAGE_UNLOCK;
}

static void answer(Group *group, const Error *err)
{
    uint64_t lsn = partition_lsn(group->partition);
    size_t bytes = 0;
    for (QueueNode *node = group->messages; node != NULL;) {
        PartitionMessage *message = CONTAINER_OF(node, PartitionMessage, node);
        node = node->next;
        bytes += message->bytes;
        if (message->kind == MESSAGE_WRITE) {
            PartitionWrite *write = CONTAINER_OF(message, PartitionWrite, message);
            if (write->lsn == 0 || err != NULL)
                write->lsn = lsn; /* nothing was written: what it saw */
            if (err != NULL) {
                write->status = err->status;
                write->error = *err;
            }
            write->done(write);
        } else if (message->kind == MESSAGE_PURGE) {
            PartitionPurge *purge = CONTAINER_OF(message, PartitionPurge, message);
            purge->lsn = lsn;
            if (err != NULL) {
                purge->status = err->status;
                purge->error = *err;
            }
            purge->done(purge);
        } else if (message->kind == MESSAGE_DROP) {
            PartitionDrop *drop = CONTAINER_OF(message, PartitionDrop, message);
            drop->done(drop);
        } else if (message->kind == MESSAGE_STOP) {
            PartitionStop *stop = CONTAINER_OF(message, PartitionStop, message);
            stop->done(stop);
        } else if (message->kind == MESSAGE_MAINTAIN) {
            /* Not before: posted again, the message would leave this list for the queue. */
            atomic_store(&group->partition->inbox.maintain_posted, false);
        } else if (is_of_transaction(message)) {
            transaction_answer(group->partition,
                               CONTAINER_OF(message, PartitionTransaction, message), err);
        } else if (message->kind != MESSAGE_RECHECK) {
            Turn *turn = CONTAINER_OF(message, Turn, message);
            if (err != NULL) {
                turn->status = err->status;
                turn->error = *err;
            }
            latch_post(&turn->done);
        }
    }
    inbox_forget_bytes(group->partition, bytes);
}

/* When a partition is retired or stopped, all that waits is refused with what is in the queue. */
static void end_locks(Partition *partition)
{
    if (state_applies_messages(partition_state(partition)))
        return;
    epk_locks_give_back_all(&partition->locks);
    epk_locks_put_waiting(&partition->locks, &partition->inbox.rest);
}

/* Another process may have written after the commit that failed, or that one may be done after all.
 * Either way the partition does not know any more what is stored, and must be opened anew. */
static void stop_if_unsure(Partition *partition, const Error *err)
{
    if (err->status != STATUS_NOT_OWNER && err->status != STATUS_TIMEOUT)
        return;
    LOG_WARN(partition->host->log, "partition.stopped", "partition=%u space=%llu reason=%s",
             partition->id, (unsigned long long)partition->space, err->message);
    partition->is_unsure = true;
    state_stop(&partition->state, false);
}

/* On the commit thread. */
static void on_commit(void *ctx, const Error *err)
{
    Group *group = ctx;
    Partition *partition = group->partition;
    if (err == NULL)
        group_take_effect(group);
    else
        stop_if_unsure(partition, err);
    note_size(partition, err);
    if (group->index.is_changed)
        current_schema_publish_index(&partition->current, partition->writer.index,
                                     partition_index_percent(partition));
    bool has_more = group->has_more && err == NULL;
    Error each;
    if (err != NULL)
        each.status = error_of_each(group, err, &each);
    answer(group, err != NULL ? &each : NULL);
    group_end(group);
    if (has_more)
        (void)partition_maintain(partition);
    if (UNLIKELY(partition->is_unsure))
        end_locks(partition);
    inbox_release(partition);
}

/* On the commit thread: the holder of the partition waits, and keeps the turn. */
static void on_held_commit(void *ctx, const Error *err)
{
    HeldCommit *held = ctx;
    Group *group = held->group;
    if (err == NULL)
        group_take_effect(group);
    if (group->index.is_changed)
        current_schema_publish_index(&group->partition->current, group->partition->writer.index,
                                     partition_index_percent(group->partition));
    if (err != NULL) {
        held->status = err->status;
        held->error = *err;
        stop_if_unsure(group->partition, err);
    }
    group_end(group);
    latch_post(&held->done);
}

/* Answers a message without applying it. */
static void refuse_with(PartitionMessage *message, const Error *err)
{
    if (message->kind == MESSAGE_WRITE) {
        PartitionWrite *write = CONTAINER_OF(message, PartitionWrite, message);
        write->status = err->status;
        write->error = *err;
    } else if (message->kind == MESSAGE_PURGE) {
        PartitionPurge *purge = CONTAINER_OF(message, PartitionPurge, message);
        purge->status = err->status;
        purge->error = *err;
    } else if (is_of_transaction(message)) {
        PartitionTransaction *transaction = CONTAINER_OF(message, PartitionTransaction, message);
        transaction->status = err->status;
        transaction->error = *err;
    } else if (message->kind != MESSAGE_DROP && message->kind != MESSAGE_STOP &&
               message->kind != MESSAGE_MAINTAIN && message->kind != MESSAGE_RECHECK) {
        Turn *turn = CONTAINER_OF(message, Turn, message);
        turn->status = err->status;
        turn->error = *err;
    }
}

static void refuse_message(const Partition *partition, PartitionMessage *message)
{
    Error err;
    Status status = partition_refuse(partition, &err);
    ASSERT(status != STATUS_OK);
    refuse_with(message, &err);
}

/* Whether a client's message came by a name that leads to another container now (write_hold.h). A
 * transaction that gives its lock back is never refused. */
static bool is_outdated(const Partition *partition, const PartitionMessage *message)
{
    bool is_of_client = message->kind == MESSAGE_WRITE || message->kind == MESSAGE_PURGE ||
                        message->kind == MESSAGE_LOCK || message->kind == MESSAGE_COMMIT;
    return is_of_client && message->generation < partition->generation;
}

static void refuse_outdated(const Partition *partition, PartitionMessage *message)
{
    Error err;
    Status status = error_set(&err, STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE,
                              "The partition key range %u is gone: another container has taken "
                              "the name over.",
                              partition->id);
    ASSERT(status != STATUS_OK);
    refuse_with(message, &err);
}

/* Its sender does not wait any more, and may have told its client that nothing is known of it. What
 * the client does next must not meet it afterwards. */
static bool is_late(const Partition *partition, const PartitionMessage *message)
{
    bool has_deadline = message->deadline_us != 0 &&
                        (message->kind == MESSAGE_WRITE || message->kind == MESSAGE_PURGE ||
                         message->kind == MESSAGE_COMMIT);
    return has_deadline && clock_monotonic_us(partition->host->clock) >= message->deadline_us;
}

static void refuse_late(const Partition *partition, PartitionMessage *message)
{
    Error err;
    Status status =
        error_set(&err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                  "The write has waited in partition %u for longer than the node that has sent it "
                  "waits for its answer. Nothing was done.",
                  partition->id);
    ASSERT(status != STATUS_OK);
    refuse_with(message, &err);
}

static void refuse_hold(const Partition *partition, PartitionMessage *message)
{
    if (!state_accepts_messages(partition_state(partition))) {
        refuse_message(partition, message);
        return;
    }
    Error err;
    Status status = error_set(&err, STATUS_UNAVAILABLE, SUB_NONE,
                              "Partition %u is being split or merged; try again.", partition->id);
    ASSERT(status != STATUS_OK);
    refuse_with(message, &err);
}

/* A stop's turn: stores the time up to which expired items were not shown, which may be later than
 * that of the newest write (I5). The commit may be refused; then the next owner has only that. */
static void note_time(Group *group)
{
    Partition *partition = group->partition;
    bool is_stopped = partition_state(partition) == PARTITION_STOPPED && !partition->is_unsure;
    bool can_expire = group->schema->default_ttl_s != 0 && group->counters.items > 0;
    if (is_stopped && can_expire && partition->damage == NULL)
        group->is_changed = true; /* the time is part of the counters */
}

static void apply_message(Group *group, PartitionMessage *message)
{
    Partition *partition = group->partition;
    /* A poster that looked at the state just before a drop may post after it. The space may be gone
     * by then, so nothing must be written to it (I9). */
    PartitionState state = atomic_load_explicit(&partition->state, memory_order_relaxed);
    ASSERT(state != PARTITION_FENCED && state != PARTITION_HELD);
    if (UNLIKELY(message->kind == MESSAGE_STOP)) {
        note_time(group);
        return;
    }
    if (UNLIKELY(!state_applies_messages(state))) {
        refuse_message(partition, message);
        return;
    }
    if (UNLIKELY(is_outdated(partition, message))) {
        refuse_outdated(partition, message);
        return;
    }
    if (UNLIKELY(is_late(partition, message))) {
        refuse_late(partition, message);
        return;
    }
    Error err;
    switch (message->kind) {
    case MESSAGE_WRITE:
        group_apply_write(group, CONTAINER_OF(message, PartitionWrite, message));
        break;
    case MESSAGE_PURGE:
        group_apply_purge(group, CONTAINER_OF(message, PartitionPurge, message));
        break;
    case MESSAGE_DROP:
        state_end_drop(&partition->state);
        break;
    case MESSAGE_WATCH:
        if (!state_watch(&partition->state))
            refuse_message(partition, message);
        break;
    case MESSAGE_FENCE: /* it could not be fenced: a drop came first */
        refuse_message(partition, message);
        break;
    case MESSAGE_HOLD: /* likewise, or a move */
        refuse_hold(partition, message);
        break;
    case MESSAGE_KEEP:
        group_apply_keep(group, CONTAINER_OF(message, BaselineKeep, turn.message));
        break;
    case MESSAGE_IMPORT:
        group_apply_import(group, CONTAINER_OF(message, Import, turn.message));
        break;
    case MESSAGE_MAINTAIN:
        if (group_maintain(group, &err) != STATUS_OK)
            LOG_WARN(partition->host->log, "partition.maintain_failed", "partition=%u reason=%s",
                     partition->id, err.message);
        break;
    case MESSAGE_LOCK:
        transaction_take_lock(group, CONTAINER_OF(message, PartitionTransaction, message));
        break;
    case MESSAGE_COMMIT:
        transaction_take_commit(group, CONTAINER_OF(message, PartitionTransaction, message));
        break;
    case MESSAGE_UNLOCK:
        transaction_take_unlock(group, CONTAINER_OF(message, PartitionTransaction, message));
        break;
    case MESSAGE_RECHECK:
        epk_locks_put_waiting(&partition->locks, &message->node.next);
        break;
    default:
        ASSERT(!"a message of an unknown kind");
    }
}

static bool is_fence(const QueueNode *node)
{
    int kind = CONTAINER_OF(node, PartitionMessage, node)->kind;
    return kind == MESSAGE_FENCE || kind == MESSAGE_HOLD;
}

static bool set_fence(Partition *partition, const QueueNode *node)
{
    bool is_hold = CONTAINER_OF(node, PartitionMessage, node)->kind == MESSAGE_HOLD;
    return is_hold ? state_hold(&partition->state) : state_fence(&partition->state);
}

/* A transaction that does not wait for its lock any more is in nobody's way. */
static bool is_abandoned(const PartitionMessage *message)
{
    return message->kind == MESSAGE_LOCK &&
           atomic_load(&CONTAINER_OF(message, PartitionTransaction, message)->state) ==
               TRANSACTION_ABANDONED;
}

/* While EPKs are locked: what becomes of the message at '*link'. */
typedef enum LockVerdict {
    LOCK_PASSES,
    LOCK_REFUSES, /* it is answered as it is */
    LOCK_HOLDS,   /* another message is at '*link' now, or none */
} LockVerdict;

static LockVerdict look_at_locks(Group *group, QueueNode **link)
{
    Partition *partition = group->partition;
    EpkLocks *locks = &partition->locks;
    PartitionMessage *message = CONTAINER_OF(*link, PartitionMessage, node);
    if (message->kind == MESSAGE_DROP || message->kind == MESSAGE_STOP) {
        /* All that came before the drop is applied before it; what came before a stop is refused.
         * No transaction commits any more: that would be after it. */
        epk_locks_give_back_all(locks);
        epk_locks_put_waiting(locks, link);
        return *link == &message->node ? LOCK_PASSES : LOCK_HOLDS;
    }
    if (is_abandoned(message) || !epk_locks_stop(locks, message))
        return LOCK_PASSES;
    Error err;
    if (atomic_load_explicit(&partition->host->transactions.is_stopped, memory_order_relaxed)) {
        Status status = transaction_stopped(&err);
        ASSERT(status != STATUS_OK);
        refuse_with(message, &err);
        return LOCK_REFUSES;
    }
    QueueNode *next = message->node.next;
    if (epk_locks_wait(locks, message, &err) != STATUS_OK) {
        refuse_with(message, &err);
        return LOCK_REFUSES;
    }
    *link = next;
    return LOCK_HOLDS;
}

/* Whether this message is not for the group any more. */
static bool is_for_next_group(const Group *group, const QueueNode *node)
{
    const Partition *partition = group->partition;
    return is_fence(node) || partition->group_shift == SHIFT_MAX ||
           store_txn_bytes(group->txn) >= group_bytes_max(partition) ||
           arena_used(&group->keep) >= group_keep_bytes_max(partition);
}

/* Applies messages until the group writes enough, or up to a fence; returns the first that is left.
 * Those that must wait for a transaction leave the group: there may be none left in it. */
static QueueNode *apply_messages(Group *group)
{
    QueueNode **link = &group->messages;
    while (*link != NULL) {
        LockVerdict verdict = LOCK_PASSES;
        if (UNLIKELY(epk_locks_are_held(&group->partition->locks)))
            verdict = look_at_locks(group, link);
        if (LIKELY(verdict == LOCK_PASSES))
            apply_message(group, CONTAINER_OF(*link, PartitionMessage, node));
        if (LIKELY(verdict != LOCK_HOLDS))
            link = &(*link)->next;
        if (*link != NULL && is_for_next_group(group, *link))
            return TAKE(*link);
    }
    return NULL;
}

/* Everything before the fence is durable. The turn goes to the thread that waits for it. */
static void stand_at_fence(Partition *partition, QueueNode *fence)
{
    Turn *turn = CONTAINER_OF(fence, Turn, message.node);
    ASSERT(partition->inbox.rest == NULL);
    partition->inbox.rest = fence->next;
    inbox_forget_bytes(partition, turn->message.bytes);
    latch_post(&turn->done);
}

static void commit(Group *group, StoreCompletion completion)
{
    ASSERT(group->is_changed);
    group_finish_log(group);
    partition_put_counters(group->partition, group->txn, &group->counters);
    group_finish_sizes(group);
    group_finish_index(group);
    if (!group->takes_room)
        store_txn_makes_room(group->txn);
    store_txn_commit(group->txn, completion);
}

void group_commit_held(Group *group, HeldCommit *held)
{
    held->group = group;
    held->status = STATUS_OK;
    latch_init(&held->done);
    if (group->is_changed) {
        commit(group, (StoreCompletion){.done = on_held_commit, .ctx = held});
        return;
    }
    store_txn_abort(group->txn);
    group_end(group);
    latch_post(&held->done);
}

Status group_commit_end(HeldCommit *held, Error *err)
{
    latch_wait(&held->done);
    latch_done(&held->done);
    if (held->status != STATUS_OK)
        *err = held->error;
    return held->status;
}

/* On a writer thread. */
void partition_run(WorkerJob *job)
{
    Partition *partition = CONTAINER_OF(job, Partition, inbox.job);
    if (UNLIKELY(epk_locks_are_held(&partition->locks)))
        end_locks(partition);
    QueueNode *messages = inbox_take(&partition->inbox);
    if (messages == NULL) {
        inbox_release(partition);
        return;
    }
    if (UNLIKELY(is_fence(messages)) && state_applies_messages(partition_state(partition)) &&
        set_fence(partition, messages)) {
        stand_at_fence(partition, messages);
        return;
    }
    Group *group = group_new(partition);
    group->messages = messages;
    partition->inbox.rest = apply_messages(group);
    if (group->is_changed) {
        commit(group, (StoreCompletion){.done = on_commit, .ctx = group});
        return;
    }
    /* Nothing to write: the answers follow from what is durable already. (All messages may have
     * left for the locks.) */
    store_txn_abort(group->txn);
    answer(group, NULL);
    group_end(group);
    inbox_release(partition);
}
