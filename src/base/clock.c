/* clock.c - see clock.h. */
#include "base/clock.h"

#include <time.h>

static uint64_t read_clock(clockid_t id)
{
    struct timespec ts;
    int failed = clock_gettime(id, &ts);
    ASSERT(failed == 0);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static uint64_t real_wall_us(const Clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_REALTIME);
}

static uint64_t real_monotonic_us(const Clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_MONOTONIC);
}

static uint64_t real_boot_us(const Clock *clock)
{
    (void)clock;
    return read_clock(CLOCK_BOOTTIME);
}

const Clock *clock_real(void)
{
    static const Clock real = {
        .wall_us = real_wall_us, .monotonic_us = real_monotonic_us, .boot_us = real_boot_us};
    return &real;
}

/* The clock is the first member, so its address is the FakeClock's. */
static uint64_t fake_monotonic_us(const Clock *clock)
{
    return atomic_load(&((const FakeClock *)clock)->now_us);
}

static uint64_t fake_wall_us(const Clock *clock)
{
    return fake_monotonic_us(clock) + atomic_load(&((const FakeClock *)clock)->wall_ahead_us);
}

void fake_clock_init(FakeClock *fake, uint64_t now_us)
{
    fake->clock = (Clock){
        .wall_us = fake_wall_us, .monotonic_us = fake_monotonic_us, .boot_us = fake_monotonic_us};
    atomic_store(&fake->now_us, now_us);
    atomic_store(&fake->wall_ahead_us, 0);
}

void fake_clock_advance(FakeClock *fake, uint64_t us)
{
    atomic_fetch_add(&fake->now_us, us);
}

void fake_clock_set_wall(FakeClock *fake, uint64_t wall_us)
{
    atomic_store(&fake->wall_ahead_us, wall_us - atomic_load(&fake->now_us));
}
