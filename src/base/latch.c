/* latch.c - see latch.h. A semaphore may be destroyed as soon as its wait has returned; with a
 * lock and a condition, the thread that signals would still hold the lock. */
#include "base/latch.h"

#include <errno.h>
#include <time.h>

void latch_init(Latch *latch)
{
    int failed = sem_init(&latch->posts, 0, 0);
    ASSERT(failed == 0);
}

void latch_done(Latch *latch)
{
    (void)sem_destroy(&latch->posts); /* fails only for what is not a semaphore */
}

void latch_post(Latch *latch)
{
    int failed = sem_post(&latch->posts);
    ASSERT(failed == 0);
}

void latch_wait(Latch *latch)
{
    while (sem_wait(&latch->posts) != 0)
        ASSERT(errno == EINTR);
}

/* By the wall clock: the thread sanitizer does not know the wait by another one. */
bool latch_wait_for(Latch *latch, uint64_t us)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + us % 1000000 * 1000;
    until.tv_sec += (time_t)(us / 1000000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    while (sem_timedwait(&latch->posts, &until) != 0) {
        if (errno == ETIMEDOUT)
            return false;
        ASSERT(errno == EINTR);
    }
    return true;
}

bool latch_is_posted(Latch *latch)
{
    int posts = 0;
    int failed = sem_getvalue(&latch->posts, &posts);
    ASSERT(failed == 0);
    return posts > 0;
}
