/* yielding_clock_int.h - the time of an answer under /_orrery that takes long.
 *
 * It makes way for other jobs of the workers whenever it is read, and stands still while it waits
 * for its turn again, so that an answer has the same time to work whatever else runs. Once the
 * client has gone its time is over. What has a deadline by this clock therefore needs to know
 * neither of workers nor of clients.
 *
 * Threads    One job.
 */
#pragma once

#include "base/clock.h"

typedef struct YieldingClock {
    Clock clock;
    const Clock *real;
    const _Atomic bool *is_abandoned; /* the client has gone; set by another thread */
    uint64_t waited_us;               /* for turns, so far */
} YieldingClock;

void yielding_clock_init(YieldingClock *clock, const Clock *real, const _Atomic bool *is_abandoned);
