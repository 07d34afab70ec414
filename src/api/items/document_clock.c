/* document_clock.c - see document_clock_int.h. */
#include "api/items/document_clock_int.h"

enum {
    LONG_US = 500000, /* from then on a page makes way for jobs that have no thread */
    /* More than what queries may still take after their deadline, for work that cannot be
       interrupted. */
    STOP_US = 2000000,
};

/* A DocumentClock is never constant: looking at the time moves it. */
static DocumentClock *page_of(const Clock *clock)
{
    return CONTAINER_OF(UNCONST(Clock, clock), DocumentClock, clock);
}

static DocumentClock *page_of_pauses(const Clock *clock)
{
    return CONTAINER_OF(UNCONST(Clock, clock), DocumentClock, pauses);
}

static DocumentClock *page_of_meter(const Clock *clock)
{
    return CONTAINER_OF(UNCONST(Clock, clock), DocumentClock, meter);
}

static uint64_t wall_us(const Clock *clock)
{
    return clock_wall_us(page_of(clock)->real);
}

static uint64_t pauses_wall_us(const Clock *clock)
{
    return clock_wall_us(page_of_pauses(clock)->real);
}

static uint64_t meter_wall_us(const Clock *clock)
{
    return clock_wall_us(page_of_meter(clock)->real);
}

static uint64_t later(uint64_t a_us, uint64_t b_us)
{
    return a_us > b_us ? a_us : b_us;
}

/* Two threads of a page may have waited for the same time, which then counts twice: the clock
 * stands still until that is made up for, and never goes back. */
static uint64_t advance(DocumentClock *page, uint64_t us)
{
    uint64_t last_us = atomic_load_explicit(&page->last_us, memory_order_relaxed);
    while (us > last_us &&
           !atomic_compare_exchange_weak_explicit(&page->last_us, &last_us, us,
                                                  memory_order_relaxed, memory_order_relaxed))
        continue;
    return later(us, last_us);
}

/* What the clock says when the real one says 'real_us', before any jump. */
static uint64_t spent_us(const DocumentClock *page, uint64_t real_us)
{
    uint64_t since_us = real_us - page->begun_us;
    uint64_t waited_us = atomic_load_explicit(&page->waited_us, memory_order_relaxed);
    return page->begun_us + (since_us > waited_us ? since_us - waited_us : 0);
}

static uint64_t look(DocumentClock *page, bool can_pause)
{
    uint64_t waited_us = worker_yield();
    if (waited_us > 0)
        atomic_fetch_add_explicit(&page->waited_us, waited_us, memory_order_relaxed);
    uint64_t real_us = clock_monotonic_us(page->real);
    uint64_t since_us = real_us - page->begun_us;
    uint64_t us = spent_us(page, real_us);
    uint64_t wall_max_us = page->us_max * PAGE_WALL_FACTOR;
    bool is_over = since_us >= wall_max_us;
    if (can_pause && !is_over)
        is_over =
            since_us >= page->us_max || (us - page->begun_us >= LONG_US && worker_is_crowded());
    if (is_over)
        us = later(us, page->deadline_us);
    if (since_us >= wall_max_us + STOP_US ||
        atomic_load_explicit(page->is_cancelled, memory_order_relaxed))
        us = later(us, page->deadline_us) + STOP_US;
    return advance(page, us);
}

static uint64_t monotonic_us(const Clock *clock)
{
    return look(page_of(clock), false);
}

static uint64_t pauses_us(const Clock *clock)
{
    DocumentClock *page = page_of_pauses(clock);
    return look(page, true);
}

static uint64_t meter_us(const Clock *clock)
{
    const DocumentClock *page = page_of_meter(clock);
    return spent_us(page, clock_monotonic_us(page->real));
}

void document_clock_begin(DocumentClock *page, const Clock *real, const _Atomic bool *is_cancelled,
                          uint64_t us_max)
{
    uint64_t now_us = clock_monotonic_us(real);
    *page = (DocumentClock){
        .clock = {.wall_us = wall_us, .monotonic_us = monotonic_us},
        .pauses = {.wall_us = pauses_wall_us, .monotonic_us = pauses_us},
        .meter = {.wall_us = meter_wall_us, .monotonic_us = meter_us},
        .real = real,
        .is_cancelled = is_cancelled,
        .begun_us = now_us,
        .us_max = us_max,
        .deadline_us = now_us + us_max,
    };
}

uint64_t document_clock_us(const DocumentClock *page)
{
    return clock_monotonic_us(page->real) - page->begun_us;
}
