/* document_clock_int.h - the time of a page that runs on a worker.
 *
 * The time limit of a page counts the time that it spends: while it waits for a turn
 * (base/workers.h) its clock stands still, so that what a page can do does not depend on what else
 * runs. Reading the clock may wait for a turn, so code that reads it need not know of workers.
 *
 * An answer must still come in time: after PAGE_WALL_FACTOR times its limit, whatever it has spent,
 * the page's time is over. A page that can end anywhere reads 'pauses' instead. On that clock its
 * time is over as soon as its limit has passed on the real clock, or when other jobs wait for its
 * thread.
 *
 * 'meter' is for measuring: it tells the time spent, and neither waits for a turn nor jumps.
 *
 * If the client has gone, the page's time is over for good.
 *
 * Threads    Any that work on the page, at the same time.
 */
#pragma once

#include "base/clock.h"
#include "base/workers.h"

enum { PAGE_WALL_FACTOR = 6 };

typedef struct DocumentClock {
    Clock clock;
    Clock pauses;
    Clock meter;
    const Clock *real;
    const _Atomic bool *is_cancelled; /* the client has gone; set by another thread */
    uint64_t begun_us;
    uint64_t us_max;
    uint64_t deadline_us;
    _Atomic uint64_t waited_us; /* for turns, so far */
    _Atomic uint64_t last_us;   /* the latest time that the clock has told */
} DocumentClock;

void document_clock_begin(DocumentClock *page, const Clock *real, const _Atomic bool *is_cancelled,
                          uint64_t us_max);

/* How long it has taken so far by the real clock. */
uint64_t document_clock_us(const DocumentClock *page);
