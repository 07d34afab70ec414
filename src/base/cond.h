/* cond.h - waiting for a condition variable, for a bounded time.
 *
 * The time is that of the monotonic clock: by the wall clock, a wait would last hours longer if the
 * clock were set back meanwhile.
 */
#pragma once

#include "base/defs.h"

#include <pthread.h>

/* The time by which threads wait. It is always the system's: a thread that sleeps is not woken by
 * the clock that a test owns. */
uint64_t cond_now_us(void);

/* A moment in the future, for cond_wait_until. */
uint64_t cond_after_ms(uint32_t ms);

/* Waits like pthread_cond_wait, under 'lock', until the monotonic clock shows 'until_us'. False if
 * that was the reason to return. */
bool cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_us);
