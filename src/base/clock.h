/* clock.h - time, passed in, so that a test can own it.
 *
 * clock_real() is the system's clock. A FakeClock stands still until a test moves it.
 * Threads    Any thread may read a clock; FakeClock's time is atomic.
 */
#pragma once

#include "base/defs.h"

#include <stdatomic.h>

typedef struct Clock Clock;
struct Clock {
    uint64_t (*wall_us)(const Clock *clock);      /* since 1970, can jump */
    uint64_t (*monotonic_us)(const Clock *clock); /* never goes back */
    /* The monotonic one that also counts while the machine is suspended; for leases, which others
     * measure meanwhile. NULL if the clock is used for nothing of that kind. */
    uint64_t (*boot_us)(const Clock *clock);
};

const Clock *clock_real(void);

static inline uint64_t clock_wall_us(const Clock *clock)
{
    return clock->wall_us(clock);
}

static inline int64_t clock_wall_s(const Clock *clock)
{
    return (int64_t)(clock->wall_us(clock) / 1000000);
}

static inline uint64_t clock_monotonic_us(const Clock *clock)
{
    return clock->monotonic_us(clock);
}

static inline uint64_t clock_boot_us(const Clock *clock)
{
    return clock->boot_us(clock);
}

typedef struct FakeClock {
    Clock clock;
    _Atomic uint64_t now_us;        /* of the monotonic clock */
    _Atomic uint64_t wall_ahead_us; /* wall time minus monotonic time; wraps */
} FakeClock;

void fake_clock_init(FakeClock *fake, uint64_t now_us);
void fake_clock_advance(FakeClock *fake, uint64_t us);

/* Sets the wall clock, forwards or back; the monotonic one goes on. */
void fake_clock_set_wall(FakeClock *fake, uint64_t wall_us);
