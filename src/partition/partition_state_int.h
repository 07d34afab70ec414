/* partition_state_int.h - the life of a partition: one state, and its changes.
 *
 *                watch             fence             retire
 *     SERVING ----------> WATCHED ---------> FENCED --------> RETIRED
 *        ^                 |   ^                |
 *        +-----------------+   +----------------+
 *              unwatch              unfence
 *
 *     SERVING -- hold --> HELD -- unhold --> SERVING
 *
 *     SERVING, WATCHED, FENCED, HELD -- drop --> DROPPING -- the drop's turn --> DROPPED
 *
 *     SERVING, WATCHED, FENCED, HELD -- stop --> STOPPED or RETIRED;  STOPPED -- retire --> RETIRED
 *
 *     state      posted messages       applied
 *     SERVING    accepted              yes
 *     WATCHED    accepted              yes, and every change is noted for the move
 *     FENCED     accepted, they wait   no: the move holds the right to apply
 *     HELD       accepted, they wait   no: the thread that holds it (baseline.h) has the right
 *     DROPPING   refused               those that were queued before the drop
 *     DROPPED    refused               no, even if they were queued: STATUS_NOT_FOUND
 *     RETIRED    refused               no, even if they were queued: STATUS_GONE
 *     STOPPED    refused               no, even if they were queued: STATUS_NOT_OWNER; nor is it
 *                                      read any more, as another process may write there
 *
 * Threads    The thread that drives a move watches (by a message), fences (by a message),
 * unwatches, unfences and retires. Any thread drops or stops, at any time. So all changes but these
 *            two can find that one of them came first: then they have no effect, and say so. The
 * thread that watches, fences or holds gives its right back all the same.
 */
#pragma once

#include "base/defs.h"

#include <stdatomic.h>
#include <stdbool.h>

/* In this order: see the functions below. */
typedef enum PartitionState {
    PARTITION_SERVING,
    PARTITION_WATCHED,
    PARTITION_FENCED,
    PARTITION_HELD,
    PARTITION_DROPPING,
    PARTITION_DROPPED,
    PARTITION_RETIRED,
    PARTITION_STOPPED,
} PartitionState;

static inline bool state_accepts_messages(PartitionState state)
{
    return state < PARTITION_DROPPING;
}

static inline bool state_applies_messages(PartitionState state)
{
    return state < PARTITION_DROPPED;
}

/* Each is one arrow of the drawing, and asserts that it begins there. False if a drop or a stop
 * came first: then the state stays. */
bool state_watch(_Atomic PartitionState *state);
bool state_fence(_Atomic PartitionState *state);
bool state_unfence(_Atomic PartitionState *state);
void state_unhold(_Atomic PartitionState *state);

/* False, too, if a move is under way. */
bool state_hold(_Atomic PartitionState *state);

/* Also from SERVING, if the watch never had its turn, and after the end, when it has no effect. */
void state_unwatch(_Atomic PartitionState *state);

/* The map has changed, so a drop or a stop does not concern this partition any more. */
void state_retire(_Atomic PartitionState *state);

/* From any state. A partition that is dropped or retired already stays so. */
void state_drop(_Atomic PartitionState *state);

/* The drop's turn: nothing is applied from now on. A retired or stopped partition stays so. */
void state_end_drop(_Atomic PartitionState *state);

/* From any state in which messages are accepted to STOPPED, or RETIRED if 'is_gone'. One that is
 * dropped, retired or stopped already stays so. */
void state_stop(_Atomic PartitionState *state, bool is_gone);
