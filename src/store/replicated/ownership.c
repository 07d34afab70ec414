/* ownership.c - how a space becomes followed and owned: see replicated_store.h.
 *
 * A transaction that was made for one time of owning a space must not be appended in the next: what
 * it has read may have changed meanwhile. So a space is only owned again when nothing of the time
 * before is under way.
 */
#include "base/cond.h"
#include "store/replicated/replicated_int.h"

void replication_poke(Replication *replication)
{
    pthread_mutex_lock(&replication->lock);
    replication->is_poking = true;
    pthread_cond_signal(&replication->is_poked);
    pthread_mutex_unlock(&replication->lock);
}

void replication_follow(Replication *replication, StoreSpace space)
{
    pthread_mutex_lock(&replication->lock);
    ReplicaSpace *of = spaces_get(replication, space);
    bool has_rest = of->role == SPACE_ABSENT && of->is_stored;
    pthread_mutex_unlock(&replication->lock);

    /* What is there is refused, or what a drop has left. */
    Error err;
    Status status = has_rest ? space_drop_copy(replication, space, &err) : STATUS_OK;
    if (status != STATUS_OK && replication->log != NULL)
        LOG_ERROR(replication->log, "journal.space_not_dropped", "space=%llu reason=\"%s\"",
                  (unsigned long long)space, err.message);
    if (status != STATUS_OK)
        return; /* it stays absent */

    pthread_mutex_lock(&replication->lock);
    if (of->role == SPACE_ABSENT) {
        of->role = SPACE_FOLLOWED;
        of->trouble = SPACE_SOUND;
    }
    pthread_mutex_unlock(&replication->lock);
    replication_poke(replication);
}

/* Under 'lock', in a change. */
static Status check_ownable(const Replication *replication, const ReplicaSpace *space, Error *err)
{
    unsigned long long number = (unsigned long long)space->space;
    if (replication->local_failure.status != STATUS_OK) {
        *err = replication->local_failure;
        return error_context(err, "space %llu cannot be owned", number);
    }
    if (space->role == SPACE_OWNED)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "space %llu is owned already, in epoch %llu", number,
                         (unsigned long long)space->epoch);
    switch (space->trouble) {
    case SPACE_REFUSED:
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "what this node has of space %llu is not what its log says", number);
    case SPACE_BEHIND:
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "the log of space %llu was trimmed past what this node has", number);
    case SPACE_NEWER:
        return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                         "the log of space %llu needs a newer program", number);
    case SPACE_SOUND:
        break;
    }
    if (space->role == SPACE_ABSENT && space->is_stored)
        return error_set(err, STATUS_IO, SUB_NONE,
                         "what this node had of space %llu could not be dropped", number);
    return STATUS_OK;
}

static Status own(Replication *replication, ReplicaSpace *space, const JournalPlace *tail,
                  uint64_t deadline_us, Error *err)
{
    pthread_mutex_lock(&replication->lock);
    Status status = check_ownable(replication, space, err);
    while (status == STATUS_OK && space->under_way > 0) {
        if (!cond_wait_until(&replication->changed, &replication->lock, deadline_us) &&
            space->under_way > 0)
            status = error_set(err, STATUS_TIMEOUT, SUB_NONE,
                               "transactions from before are still under way");
    }
    bool was_absent = space->role == SPACE_ABSENT;
    pthread_mutex_unlock(&replication->lock);
    TRY(status);
    status = follow_up_to(replication, space, tail, deadline_us, err);

    pthread_mutex_lock(&replication->lock);
    if (status != STATUS_OK) {
        /* What was applied is followed on. */
        if (was_absent && space->is_stored)
            space->role = SPACE_FOLLOWED;
        pthread_mutex_unlock(&replication->lock);
        return status;
    }
    space->role = SPACE_OWNED;
    space->is_closing = false;
    space->is_lost = false;
    space->epoch = tail->epoch;
    space->appended = space->applied;
    pthread_mutex_unlock(&replication->lock);
    return STATUS_OK;
}

Status replication_own(Replication *replication, StoreSpace space, const JournalPlace *tail,
                       uint64_t deadline_us, Error *err)
{
    pthread_mutex_lock(&replication->lock);
    ReplicaSpace *of = spaces_get(replication, space);
    bool is_free = space_begin_change(replication, of, deadline_us);
    pthread_mutex_unlock(&replication->lock);
    if (!is_free)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "space %llu is being changed",
                         (unsigned long long)space);
    Status status = own(replication, of, tail, deadline_us, err);
    pthread_mutex_lock(&replication->lock);
    space_end_change(replication, of);
    pthread_mutex_unlock(&replication->lock);
    return status;
}

/* An append has failed, or RocksDB has refused what one has done. Its clients may know, but the
 * hook 'lost' was not called yet. The epoch is over, so that this is no place to hand over from. */
static bool is_being_lost(const ReplicaSpace *space)
{
    return space->is_lost || space->applied.seq != space->appended.seq;
}

Status replication_yield(Replication *replication, StoreSpace space, JournalPlace *last, Error *err)
{
    pthread_mutex_lock(&replication->lock);
    ReplicaSpace *of = spaces_get(replication, space);
    (void)space_begin_change(replication, of, UINT64_MAX); /* never late */
    space_begin_closing(replication, of);
    while (of->role == SPACE_OWNED && (of->closing_left > 0 || is_being_lost(of)))
        pthread_cond_wait(&replication->changed, &replication->lock);
    bool was_owned = of->role == SPACE_OWNED;
    if (was_owned) {
        of->role = SPACE_FOLLOWED;
        *last = of->applied;
        last->epoch = of->epoch;
    }
    space_end_change(replication, of);
    pthread_mutex_unlock(&replication->lock);
    if (!was_owned)
        return error_set(err, STATUS_NOT_OWNER, SUB_NONE, "this node does not own space %llu",
                         (unsigned long long)space);
    replication_poke(replication);
    return STATUS_OK;
}
