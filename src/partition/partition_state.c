/* partition_state.c - see partition_state_int.h.
 *
 * A change releases and a poster acquires: a sender that is refused sees all that the move or the
 * drop has done before.
 */
#include "partition/partition_state_int.h"

/* By any thread, at any time. A stop may also retire. */
static bool is_ended(PartitionState state)
{
    return !state_accepts_messages(state);
}

/* Returns the state that was found: 'from' if it was changed. */
static PartitionState change(_Atomic PartitionState *state, PartitionState from, PartitionState to)
{
    PartitionState found = from;
    (void)atomic_compare_exchange_strong(state, &found, to);
    return found;
}

static bool change_unless_ended(_Atomic PartitionState *state, PartitionState from,
                                PartitionState to)
{
    PartitionState found = change(state, from, to);
    ASSERT(found == from || is_ended(found));
    return found == from;
}

bool state_watch(_Atomic PartitionState *state)
{
    return change_unless_ended(state, PARTITION_SERVING, PARTITION_WATCHED);
}

bool state_fence(_Atomic PartitionState *state)
{
    return change_unless_ended(state, PARTITION_WATCHED, PARTITION_FENCED);
}

bool state_unfence(_Atomic PartitionState *state)
{
    return change_unless_ended(state, PARTITION_FENCED, PARTITION_WATCHED);
}

bool state_hold(_Atomic PartitionState *state)
{
    return change(state, PARTITION_SERVING, PARTITION_HELD) == PARTITION_SERVING;
}

void state_unhold(_Atomic PartitionState *state)
{
    (void)change_unless_ended(state, PARTITION_HELD, PARTITION_SERVING);
}

void state_unwatch(_Atomic PartitionState *state)
{
    PartitionState found = change(state, PARTITION_WATCHED, PARTITION_SERVING);
    ASSERT(found != PARTITION_FENCED);
}

void state_retire(_Atomic PartitionState *state)
{
    PartitionState found = change(state, PARTITION_FENCED, PARTITION_RETIRED);
    if (found == PARTITION_STOPPED)
        found = change(state, PARTITION_STOPPED, PARTITION_RETIRED);
    ASSERT(found == PARTITION_FENCED || found == PARTITION_STOPPED || found == PARTITION_RETIRED);
}

void state_drop(_Atomic PartitionState *state)
{
    PartitionState found = atomic_load(state);
    while (state_accepts_messages(found) &&
           !atomic_compare_exchange_weak(state, &found, PARTITION_DROPPING))
        continue;
}

void state_end_drop(_Atomic PartitionState *state)
{
    PartitionState found = change(state, PARTITION_DROPPING, PARTITION_DROPPED);
    ASSERT(!state_accepts_messages(found));
}

void state_stop(_Atomic PartitionState *state, bool is_gone)
{
    PartitionState found = atomic_load(state);
    PartitionState to = is_gone ? PARTITION_RETIRED : PARTITION_STOPPED;
    while (state_accepts_messages(found) && !atomic_compare_exchange_weak(state, &found, to))
        continue;
}
