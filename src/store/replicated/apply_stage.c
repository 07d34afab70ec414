/* apply_stage.c - writes to RocksDB what the journal has, and completes transactions.
 *
 * Groups come in the order in which the lanes have pushed them. For each space whose append is done
 * the writes go to RocksDB with the place that they lead to, in one batch. A group is only written
 * after the one before it of the same space: 'applied' must be the place before. If it is not, then
 * RocksDB has refused the one before, and nobody is told that anything was done; or
 * the space has changed its role and a follower has applied the entry already.
 *
 * A space is lost when its append was not done:
 *
 *     outcome    clients                  the space                 reason for 'lost'
 *     NOT_OWNER  STATUS_NOT_OWNER         is followed               STATUS_NOT_OWNER
 *     UNKNOWN    STATUS_TIMEOUT           is followed               STATUS_NOT_OWNER
 *     LOST       STATUS_TIMEOUT           is absent, and refused    STATUS_CORRUPT
 *     PENDING    STATUS_THROTTLED         stays: nothing was done
 *     DONE, but RocksDB refuses it:
 *                STATUS_TIMEOUT           all are followed          STATUS_NOT_OWNER
 *
 * What RocksDB has of a followed space is always a part of the log from its beginning, so that it
 * is whole again when the follower has caught up.
 */
#include "base/array.h"
#include "base/mem.h"
#include "store/replicated/replicated_int.h"

/* ---- completing ---- */

/* Under 'lock'. Takes out the barriers that have waited for 'number' as the last one; they are
 * linked at '*done'. */
static void count_down(Replication *replication, uint64_t number, EngineTxn **done)
{
    size_t kept = 0;
    for (size_t i = 0; i < replication->barrier_count; i++) {
        Barrier barrier = replication->barriers[i];
        if (barrier.txn->number > number)
            barrier.left--;
        if (barrier.left > 0) {
            replication->barriers[kept++] = barrier;
        } else {
            barrier.txn->next = *done;
            *done = barrier.txn;
        }
    }
    replication->barrier_count = kept;
}

void commit_end_transaction(Replication *replication, EngineTxn *txn, const Error *err)
{
    uint64_t number = txn->number;
    StoreSpace space = txn->space;
    engine_complete(txn, err);

    EngineTxn *barriers = NULL;
    pthread_mutex_lock(&replication->lock);
    ReplicaSpace *of = spaces_find(replication, space);
    ASSERT(of->under_way > 0);
    of->under_way--;
    if (of->is_closing && number < of->closing_from)
        of->closing_left--;
    replication->under_way--;
    count_down(replication, number, &barriers);
    replication->ending += barriers != NULL;
    pthread_cond_broadcast(&replication->changed);
    pthread_mutex_unlock(&replication->lock);
    if (barriers == NULL)
        return;
    while (barriers != NULL) {
        EngineTxn *barrier = barriers;
        barriers = barrier->next;
        engine_complete(barrier, NULL);
    }
    pthread_mutex_lock(&replication->lock);
    replication->ending--;
    pthread_cond_broadcast(&replication->changed);
    pthread_mutex_unlock(&replication->lock);
}

static void complete_slot(Replication *replication, AppendSlot *slot, const Error *err)
{
    for (EngineTxn *txn = TAKE(slot->first); txn != NULL;) {
        EngineTxn *next = txn->next;
        commit_end_transaction(replication, txn, err);
        txn = next;
    }
}

/* ---- losing ---- */

typedef enum Followed { FOLLOWED_ON, REFUSED_ON } Followed;

/* The space is owned no more; clients of what waits are told so, and then the node. What waits was
 * surely not done, whatever the reason is. */
static void lose(Replication *replication, ReplicaSpace *space, Followed followed,
                 const Error *reason)
{
    Error told;
    told.status = error_set(&told, STATUS_NOT_OWNER, SUB_NONE,
                            "nothing was written: this node has lost space %llu",
                            (unsigned long long)space->space);
    pthread_mutex_lock(&replication->lock);
    bool was_owned = space->role == SPACE_OWNED;
    if (was_owned) {
        space->role = followed == FOLLOWED_ON ? SPACE_FOLLOWED : SPACE_ABSENT;
        space->trouble = followed == FOLLOWED_ON ? SPACE_SOUND : SPACE_REFUSED;
        space->is_lost = false;
        append_refuse_waiting(replication, space, &told);
        pthread_cond_broadcast(&replication->changed);
    }
    pthread_mutex_unlock(&replication->lock);
    if (!was_owned)
        return;
    if (replication->log != NULL)
        LOG_WARN(replication->log, "journal.space_lost", "space=%llu reason=\"%s\"",
                 (unsigned long long)space->space, reason->message);
    replication->hooks.lost(replication->hooks.ctx, space->space, reason);
}

void give_up_all(Replication *replication, const Error *reason)
{
    Error lost;
    lost.status =
        error_set(&lost, STATUS_NOT_OWNER, SUB_NONE,
                  "the node gives up its spaces, because it cannot write: %.300s", reason->message);
    for (size_t i = 0;; i++) {
        pthread_mutex_lock(&replication->lock);
        ReplicaSpace *space = i < replication->space_count ? replication->spaces[i] : NULL;
        pthread_mutex_unlock(&replication->lock);
        if (space == NULL)
            return;
        lose(replication, space, FOLLOWED_ON, &lost);
    }
}

/* RocksDB lacks what the journal has. Who is told so may read what is there and write at once:
 * before anybody is told, nothing is appended behind it any more. */
static void begin_losing_all(Replication *replication)
{
    pthread_mutex_lock(&replication->lock);
    for (size_t i = 0; i < replication->space_count; i++)
        replication->spaces[i]->is_lost |= replication->spaces[i]->role == SPACE_OWNED;
    pthread_mutex_unlock(&replication->lock);
}

/* What an append that was not done means. */
static void end_undone(Replication *replication, AppendSlot *slot, const Error *err)
{
    StoreSpace number = slot->space->space;
    unsigned long long space = (unsigned long long)number;
    Error told, reason;
    switch (slot->outcome) {
    case APPEND_DONE:
        return;
    case APPEND_PENDING:
        complete_slot(replication, slot, err);
        return;
    case APPEND_NOT_OWNER:
        told.status = error_set(&told, STATUS_NOT_OWNER, SUB_NONE,
                                "nothing was written: another node owns space %llu now", space);
        complete_slot(replication, slot, &told);
        lose(replication, slot->space, FOLLOWED_ON, &told);
        return;
    case APPEND_UNKNOWN:
        told.status = error_set(&told, STATUS_TIMEOUT, SUB_NONE,
                                "it is not known whether this was written: the engine of the "
                                "journal did not answer");
        reason.status =
            error_set(&reason, STATUS_NOT_OWNER, SUB_NONE,
                      "it is not known what an append to space %llu has come to", space);
        complete_slot(replication, slot, &told);
        lose(replication, slot->space, FOLLOWED_ON, &reason);
        return;
    case APPEND_LOST:
        told.status = error_set(&told, STATUS_TIMEOUT, SUB_NONE,
                                "it is not known whether this was written: the engine of the "
                                "journal has lost writes");
        reason.status = error_set(&reason, STATUS_CORRUPT, SUB_NONE,
                                  "the engine of the journal has lost writes of space %llu that it "
                                  "had acknowledged",
                                  space);
        complete_slot(replication, slot, &told);
        lose(replication, slot->space, REFUSED_ON, &reason);
        return;
    }
}

/* ---- writing ---- */

typedef enum SlotState { SLOT_UNDONE, SLOT_WRITES, SLOT_APPLIED, SLOT_CUT_OFF } SlotState;

/* Under 'writing' and 'lock'. */
static SlotState state_of(const AppendSlot *slot)
{
    const JournalPlace *applied = &slot->space->applied;
    if (slot->outcome != APPEND_DONE)
        return SLOT_UNDONE;
    if (applied->seq == slot->before.seq && chain_equal(&applied->chain, &slot->before.chain))
        return SLOT_WRITES;
    return applied->seq >= slot->after.seq ? SLOT_APPLIED : SLOT_CUT_OFF;
}

typedef struct Batch {
    SlotState *states; /* of each slot */
    EngineWrites *writes;
    size_t count;
    size_t capacity;
    Tree places;
} Batch;

static void batch_done(Batch *batch)
{
    tree_done(&batch->places);
    mem_free(batch->writes);
    mem_free(batch->states);
}
DEFINE_AUTO_VALUE(Batch, batch_done)

static void add_slot(Batch *batch, const AppendSlot *slot)
{
    for (const EngineTxn *txn = slot->first; txn != NULL; txn = txn->next) {
        ARRAY_GROW(batch->writes, batch->count, batch->capacity, 64);
        batch->writes[batch->count++] = txn->writes;
    }
    place_put(&batch->places, slot->space->space, STORED_WHOLE, &slot->after);
}

/* Under 'writing'. */
static Status write_group(Replication *replication, AppendGroup *group, Batch *batch, Error *err)
{
    batch->states = MEM_NEW_ARRAY(SlotState, group->slot_count + 1);
    pthread_mutex_lock(&replication->lock);
    for (size_t i = 0; i < group->slot_count; i++) {
        batch->states[i] = state_of(&group->slots[i]);
        if (batch->states[i] == SLOT_WRITES)
            add_slot(batch, &group->slots[i]);
    }
    pthread_mutex_unlock(&replication->lock);
    if (batch->count == 0)
        return STATUS_OK;
    ARRAY_GROW(batch->writes, batch->count, batch->capacity, 64);
    batch->writes[batch->count++] = (EngineWrites){.tree = batch->places};
    TRY(replication_write(replication, batch->writes, batch->count, err));

    pthread_mutex_lock(&replication->lock);
    for (size_t i = 0; i < group->slot_count; i++) {
        if (batch->states[i] == SLOT_WRITES) {
            group->slots[i].space->applied = group->slots[i].after;
            group->slots[i].space->is_stored = true;
        }
    }
    pthread_cond_broadcast(&replication->changed);
    pthread_mutex_unlock(&replication->lock);
    return STATUS_OK;
}

static void apply(Replication *replication, AppendGroup *group)
{
    AUTO(batch_done) Batch batch = {0};
    Error failure;
    pthread_mutex_lock(&replication->writing);
    Status status = write_group(replication, group, &batch, &failure);
    pthread_mutex_unlock(&replication->writing);
    if (status != STATUS_OK)
        begin_losing_all(replication);

    Error unknown;
    unknown.status = error_set(&unknown, STATUS_TIMEOUT, SUB_NONE,
                               "it is not known whether this was written: the journal has it, and "
                               "this node cannot write it: %.300s",
                               status != STATUS_OK ? failure.message : "one before it failed");
    for (size_t i = 0; i < group->slot_count; i++) {
        bool is_applied = batch.states[i] == SLOT_APPLIED ||
                          (batch.states[i] == SLOT_WRITES && status == STATUS_OK);
        if (batch.states[i] != SLOT_UNDONE)
            complete_slot(replication, &group->slots[i], is_applied ? NULL : &unknown);
    }
    for (size_t i = 0; i < group->slot_count; i++)
        end_undone(replication, &group->slots[i], &group->err);
    if (status != STATUS_OK)
        give_up_all(replication, &failure);
}

static void refuse(Replication *replication, AppendGroup *group)
{
    EngineTxn *txn = TAKE(group->refused);
    for (size_t i = 0; txn != NULL; i++) {
        ASSERT(i < group->reason_count);
        EngineTxn *next = txn->next;
        commit_end_transaction(replication, txn, &group->reasons[i]);
        txn = next;
    }
}

void *apply_thread(void *ctx)
{
    Replication *replication = ctx;
    pthread_mutex_lock(&replication->lock);
    for (;;) {
        AppendGroup *group = replication->ready;
        if (group == NULL && replication->is_stopping)
            break;
        if (group == NULL) {
            pthread_cond_wait(&replication->has_ready, &replication->lock);
            continue;
        }
        replication->ready = group->next;
        if (replication->ready == NULL)
            replication->ready_end = &replication->ready;
        pthread_mutex_unlock(&replication->lock);
        apply(replication, group);
        refuse(replication, group);
        append_group_free(group);
        pthread_mutex_lock(&replication->lock);
    }
    pthread_mutex_unlock(&replication->lock);
    return NULL;
}
