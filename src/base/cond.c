/* cond.c - see cond.h. */
#include "base/cond.h"

#include "base/clock.h"

#include <time.h>

uint64_t cond_now_us(void)
{
    return clock_monotonic_us(clock_real());
}

uint64_t cond_after_ms(uint32_t ms)
{
    return cond_now_us() + (uint64_t)ms * 1000;
}

bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_us)
{
    struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
                             .tv_nsec = (long)(until_us % 1000000) * 1000};
    return pthread_cond_clockwait(cond, lock, CLOCK_MONOTONIC, &until) == 0;
}
