/* page_clock_int.h - the time of a page that runs on a worker.
 *
 * A page ends by time, and goes on where it ended. If it has run for a while and others wait for
 * its worker (base/workers.h), its time is over early: so nothing that looks at a clock needs to
 * know of workers. What cannot end early and go on fails, and is begun again among the long ones.
 * Likewise when nobody waits for the page any more; that is for good.
 *
 * Threads    The worker's, but for 'shared'.
 */
#pragma once

#include "base/clock.h"
#include "base/workers.h"

typedef struct PageClock {
    Clock clock;  /* for whoever does the page */
    Clock shared; /* for threads that help, at the same time: knows only of 'is_cancelled' */
    const Clock *real;
    WorkerJob *job;
    const _Atomic bool *is_cancelled; /* nobody waits for it; another thread sets it */
    uint64_t begun_us;
    uint64_t deadline_us;
    uint64_t ask_us;  /* when to ask again whether others wait */
    uint64_t over_us; /* when time was over early; 0: it was not */
} PageClock;

void page_clock_begin(PageClock *page, const Clock *real, WorkerJob *job,
                      const _Atomic bool *is_cancelled, uint64_t us_max);

/* How long it has taken so far, really. */
uint64_t page_clock_us(const PageClock *page);
