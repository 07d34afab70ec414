/* workers.h - threads for work that would hold up an event loop: queries, cold reads.
 *
 * Threads start when there is work for them and none is idle, and then stay, so that a server that
 * runs no queries pays nothing. Jobs start in the order in which they were posted. The queue is
 * bounded: when it is full, workers_post returns false and the poster answers "busy".
 *
 * How long a job takes is not known beforehand. So that a short one ends soon whatever else runs,
 * threads may share their time: a pool has a number of turns, as many as there are
 * processors, and more threads than turns. Only a thread that holds a turn runs its job. A job
 * calls worker_yield() now and then; once it has run for WORKER_SLICE_US it hands its turn to
 * the job that has run for the shortest time so far, if that is clearly less than its own, and
 * waits, on its thread and in the middle of its work, until it is chosen again. A job that has not
 * begun has run for no time at all. Every WORKER_OLDEST_EVERY-th turn goes to the job that has
 * waited for the longest time, so that no job starves while new ones keep coming.
 *
 *                post               turn free                return
 *        (none) ------> queued --------------------> running -------> (gone)
 *                                                     |  ^
 *             worker_yield, worker_begin_wait      |  |  chosen
 *                                                     v  |
 *                                                    waiting
 *
 * Ownership  A WorkerJob is a member of the caller's message; after the post only 'run' touches it.
 * Threads    Any thread posts. The functions of a job that runs find it by its thread.
 */
#pragma once

#include "base/clock.h"
#include "base/defs.h"
#include "base/error.h"
#include "base/queue.h"

enum {
    WORKER_SLICE_US = 1000, /* a job keeps its turn at least this long */
    WORKER_OLDEST_EVERY = 8,
};

typedef struct Workers Workers;

typedef struct WorkerJob {
    QueueNode node;
    void (*run)(struct WorkerJob *job); /* on a worker's thread */
    uint64_t used_us;                   /* the workers' own: for how long it counts as having run */
} WorkerJob;

/* Every thread has a turn. 'name' is that of each thread, see thread_start; it is kept, not
 * copied. */
Workers *workers_open(const char *name, uint32_t threads_max, uint32_t jobs_max);

/* At most 'turns' of the 'threads_max' threads run at a time. */
Workers *workers_open_sharing(const char *name, uint32_t turns, uint32_t threads_max,
                              uint32_t jobs_max, const Clock *clock);

/* Before the first post: the threads compute for long stretches, see thread_set_background. */
void workers_set_background(Workers *workers);

/* Starts the first thread, if it does not run yet. After that the only reason for workers_post to
 * return false is a full queue. STATUS_IO if the system has no thread to give. */
MUST_USE Status workers_start(Workers *workers, Error *err);

uint32_t workers_turns(const Workers *workers); /* how many jobs run at a time, at most */

/* False, and the job is not taken, if 'jobs_max' jobs wait already, or if the system has no thread
 * for even the first of them. */
MUST_USE bool workers_post(Workers *workers, WorkerJob *job);

/* The same for a spare job, whose work the poster does itself if no thread comes to it: it begins
 * only while no other job waits. Posted by a job of these workers it counts as having run for as
 * long as that job. */
MUST_USE bool workers_post_spare(Workers *workers, WorkerJob *job);

/* Lets another job run if one should: see above. Returns for how many microseconds the caller has
 * waited for a turn, here and in worker_end_wait, since the last call. Does nothing on a thread
 * that runs no job. Must not be called with a lock that another job may want. */
uint64_t worker_yield(void);

/* Around a wait of a job for another job, which must be able to run meanwhile. The first gives the
 * turn away; the second waits for one, and as above no lock may be held. */
void worker_begin_wait(void);
void worker_end_wait(void);

/* Adds a wait for something other than a turn to what worker_yield returns next. */
void worker_tell_wait(uint64_t us);

/* Whether jobs wait and every thread has one: a job that can end early should. */
bool worker_is_crowded(void);

/* Runs every job that was taken, then joins the threads. Accepts NULL. */
void workers_close(Workers *workers);
DEFINE_AUTO(Workers *, workers_close)
