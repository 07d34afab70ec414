/* page_clock.c - see page_clock_int.h. */
#include "api/page_clock_int.h"

enum {
    LONG_US = 500000, /* from then on a page is long, */
    ASK_US = 1000,    /* and asks so often whether others wait */
    STUCK_US = 20000, /* for a document that had begun when time was over */
    /* More than queries take after their deadline for what cannot be left half-way. */
    STOP_US = 2000000,
};

static PageClock *page_of(const Clock *clock)
{
    return CONTAINER_OF((Clock *)(uintptr_t)clock, PageClock, clock);
}

static const PageClock *page_of_shared(const Clock *clock)
{
    return CONTAINER_OF((Clock *)(uintptr_t)clock, PageClock, shared);
}

static uint64_t wall_us(const Clock *clock)
{
    return clock_wall_us(page_of(clock)->real);
}

static uint64_t shared_wall_us(const Clock *clock)
{
    return clock_wall_us(page_of_shared(clock)->real);
}

static bool is_cancelled(const PageClock *page)
{
    return atomic_load_explicit(page->is_cancelled, memory_order_relaxed);
}

/* Behind everything that a page may still do. */
static uint64_t stop_us(const PageClock *page, uint64_t now_us)
{
    return (now_us > page->deadline_us ? now_us : page->deadline_us) + STOP_US;
}

static uint64_t shared_us(const Clock *clock)
{
    const PageClock *page = page_of_shared(clock);
    uint64_t now_us = clock_monotonic_us(page->real);
    return is_cancelled(page) ? stop_us(page, now_us) : now_us;
}

static uint64_t monotonic_us(const Clock *clock)
{
    PageClock *page = page_of(clock);
    uint64_t now_us = clock_monotonic_us(page->real);
    if (is_cancelled(page))
        return stop_us(page, now_us);
    if (page->over_us == 0 && now_us >= page->ask_us) {
        page->ask_us = now_us + ASK_US;
        if (worker_must_yield(page->job))
            page->over_us = now_us;
    }
    if (page->over_us == 0)
        return now_us;
    bool is_stuck = now_us - page->over_us >= STUCK_US;
    uint64_t end_us = page->deadline_us + (is_stuck ? STOP_US : 0);
    return now_us > end_us ? now_us : end_us;
}

void page_clock_begin(PageClock *page, const Clock *real, WorkerJob *job,
                      const _Atomic bool *is_cancelled, uint64_t us_max)
{
    uint64_t now_us = clock_monotonic_us(real);
    *page = (PageClock){
        .clock = {.wall_us = wall_us, .monotonic_us = monotonic_us},
        .shared = {.wall_us = shared_wall_us, .monotonic_us = shared_us},
        .real = real,
        .job = job,
        .is_cancelled = is_cancelled,
        .begun_us = now_us,
        .deadline_us = now_us + us_max,
        .ask_us = now_us + LONG_US,
    };
}

uint64_t page_clock_us(const PageClock *page)
{
    return clock_monotonic_us(page->real) - page->begun_us;
}
