/* clock-shim.c - a wall clock of one process's own, as many seconds ahead of the machine's as a
 * file says.
 *
 * clock.mjs builds it and gives it to a server by LD_PRELOAD. The file in TEST_CLOCK holds an i64
 * and may be changed at any time, which is a jump of the clock. Clocks that measure spans of time
 * (monotonic, boot) are the machine's.
 *
 * A wait until a moment of the wall clock must end by that clock too: earlier if it jumps ahead,
 * later if it is set back. So such waits are made of short ones by the machine's clock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SLICE_NS  50000000L
#define SECOND_NS 1000000000L

/* A condition may wait by the monotonic clock, which the call does not say. That clock begins at
 * the start of the machine, and no machine has run for so many seconds. */
#define WALL_S_MIN 1000000000

typedef int (*SemTimedwait)(sem_t *, const struct timespec *);
typedef int (*CondTimedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static const volatile int64_t *ahead_file; /* NULL until the file is mapped */
static SemTimedwait machine_sem_timedwait;
static CondTimedwait machine_cond_timedwait;

__attribute__((constructor)) static void begin(void)
{
    machine_sem_timedwait = (SemTimedwait)dlsym(RTLD_NEXT, "sem_timedwait");
    machine_cond_timedwait = (CondTimedwait)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    const char *path = getenv("TEST_CLOCK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    if (mapped != MAP_FAILED)
        ahead_file = mapped;
    (void)close(fd); /* only read from */
}

static time_t ahead(void)
{
    return ahead_file != NULL ? (time_t)*ahead_file : 0;
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    int failed = (int)syscall(SYS_clock_gettime, id, out);
    if (failed == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        out->tv_sec += ahead();
    return failed;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    (void)zone;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static bool has_come(const struct timespec *until)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return !is_before(&now, until);
}

/* The end of the next short wait, by the machine's clock. */
static struct timespec slice_end(const struct timespec *until)
{
    struct timespec end;
    (void)syscall(SYS_clock_gettime, CLOCK_REALTIME, &end);
    end.tv_nsec += SLICE_NS;
    if (end.tv_nsec >= SECOND_NS)
        end = (struct timespec){.tv_sec = end.tv_sec + 1, .tv_nsec = end.tv_nsec - SECOND_NS};
    struct timespec last = {.tv_sec = until->tv_sec - ahead(), .tv_nsec = until->tv_nsec};
    return is_before(&last, &end) ? last : end;
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict until)
{
    for (;;) {
        struct timespec end = slice_end(until);
        if (machine_sem_timedwait(sem, &end) == 0)
            return 0;
        if (errno != ETIMEDOUT)
            return -1;
        if (has_come(until)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}

/* A short wait ends as a wake-up for nothing: a signal that comes between two waits would be lost.
 */
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict lock,
                           const struct timespec *restrict until)
{
    if (until->tv_sec < WALL_S_MIN)
        return machine_cond_timedwait(cond, lock, until);
    struct timespec end = slice_end(until);
    int failed = machine_cond_timedwait(cond, lock, &end);
    return failed == ETIMEDOUT && !has_come(until) ? 0 : failed;
}
