/* page_clock_int.h - the time of a page that runs on a worker.
 *
 * A page has a limit of time, in time spent: while it waits for a turn (base/workers.h) its clock
 * stands still, so that what a page can do does not depend on what else runs. Whoever looks at the
 * clock may wait for a turn, so nothing that does needs to know of workers.
 *
 * An answer must come all the same: after PAGE_WALL_FACTOR times its limit, whatever it spent, the
 * page's time is over. A page that can end anywhere and go on later looks at 'pauses' instead. Its
 * time is over when its limit has passed on the wall, too, or when others wait for its thread.
 *
 * If nobody waits for the page any more, its time is over for good.
 *
 * Threads    Any that work on the page, at the same time.
 */
#pragma once

#include "base/clock.h"
#include "base/workers.h"

enum { PAGE_WALL_FACTOR = 6 };

typedef struct PageClock {
    Clock clock;
    Clock pauses;
    const Clock *real;
    const _Atomic bool *is_cancelled; /* nobody waits for it; another thread sets it */
    uint64_t begun_us;
    uint64_t us_max;
    uint64_t deadline_us;
    _Atomic uint64_t waited_us; /* for turns, so far */
    _Atomic uint64_t last_us;   /* that the clock has said */
} PageClock;

void page_clock_begin(PageClock *page, const Clock *real, const _Atomic bool *is_cancelled,
                      uint64_t us_max);

/* How long it has taken so far, really. */
uint64_t page_clock_us(const PageClock *page);
