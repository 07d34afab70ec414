/* yielding_clock.c - see yielding_clock_int.h. */
#include "api/admin/yielding_clock_int.h"

#include "base/workers.h"

/* A YieldingClock is never constant: reading it moves it. */
static YieldingClock *yielding(const Clock *clock)
{
    return CONTAINER_OF(UNCONST(Clock, clock), YieldingClock, clock);
}

static uint64_t wall_us(const Clock *clock)
{
    return clock_wall_us(yielding(clock)->real);
}

static uint64_t monotonic_us(const Clock *clock)
{
    YieldingClock *own = yielding(clock);
    own->waited_us += worker_yield();
    if (atomic_load_explicit(own->is_abandoned, memory_order_relaxed))
        return UINT64_MAX;
    uint64_t now_us = clock_monotonic_us(own->real);
    return now_us > own->waited_us ? now_us - own->waited_us : 0;
}

void yielding_clock_init(YieldingClock *clock, const Clock *real, const _Atomic bool *is_abandoned)
{
    *clock = (YieldingClock){
        .clock = {.wall_us = wall_us, .monotonic_us = monotonic_us},
        .real = real,
        .is_abandoned = is_abandoned,
    };
}
