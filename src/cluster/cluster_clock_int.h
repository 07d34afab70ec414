/* cluster_clock_int.h - the time of a node, by which its items are dated and expire.
 *
 * It is the node's own wall clock as long as that agrees with the engine's, and the engine's
 * otherwise. Which of them, and how far it is from the boot clock, is measured after each renewal:
 * a jump of the wall clock between two measurements changes nothing.
 *
 * Threads    One thread measures; any may read the time.
 */
#pragma once

#include "base/clock.h"

#include <stdatomic.h>

/* Both clocks may be a little wrong, and an answer of the engine takes its time. */
#define CLUSTER_CLOCK_WRONG_US UINT64_C(10000000)

/* A clock that is wrong is right again only below this: it would change at each measurement if it
 * was just at the bound. */
#define CLUSTER_CLOCK_RIGHT_US UINT64_C(9000000)

/* What took longer says too little about when the engine looked at its clock. */
#define CLUSTER_CLOCK_ANSWER_US UINT64_C(2000000)

/*     NEW --> RIGHT <--> WRONG
 *      |                   ^
 *      +-------------------+
 */
typedef enum ClusterClockState {
    CLUSTER_CLOCK_NEW, /* nothing was measured yet: the node's own wall clock */
    CLUSTER_CLOCK_RIGHT,
    CLUSTER_CLOCK_WRONG, /* the engine's */
} ClusterClockState;

typedef struct ClusterClock {
    Clock clock; /* first: its address is the ClusterClock's */
    const Clock *own;

    /* atomic */
    _Atomic uint64_t offset_us; /* wall time minus boot time; wraps */
    _Atomic int64_t ahead_us;   /* of the engine's clock, the node's own: as it was measured last */
    _Atomic int state;          /* a ClusterClockState */
} ClusterClock;

/* What both clocks said at the boot time 'boot_us'. */
typedef struct ClockReading {
    uint64_t boot_us;
    uint64_t own_us;
    uint64_t engine_us;
} ClockReading;

void cluster_clock_init(ClusterClock *clock, const Clock *own);
void cluster_clock_set(ClusterClock *clock, ClockReading reading);
ClusterClockState cluster_clock_state(const ClusterClock *clock);
