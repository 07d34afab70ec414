/* workers.h - threads for work that would hold up an event loop: queries, cold reads.
 *
 * Threads start when there is work for them and none is idle, and then stay, so that a server that
 * runs no queries pays nothing. Jobs start in the order in which they were posted. The queue is
 * bounded: beyond it the poster gets false and says "busy" to its client, instead of growing.
 *
 * Half of the threads are for long jobs and the others for short ones, as far as anybody waits.
 * Which a job is nobody knows before: one that has run for a while asks worker_must_yield(). If
 * others wait and half of the threads hold long ones already, it ends and comes again by
 * worker_post_long(). One that holds a thread of the long half is never asked to end.
 *
 * Ownership  A WorkerJob is a member of the caller's message; after the post only 'run' touches it.
 * Threads    Any thread posts.
 */
#pragma once

#include "base/defs.h"
#include "base/error.h"
#include "base/queue.h"

typedef struct Workers Workers;

typedef struct Worker Worker;

typedef struct WorkerJob {
    QueueNode node;
    void (*run)(struct WorkerJob *job); /* on a worker's thread */
    Worker *worker;                     /* that runs it */
} WorkerJob;

/* 'name' is that of each thread, see thread_start; it is kept, not copied. */
Workers *workers_open(const char *name, uint32_t threads_max, uint32_t jobs_max);

/* Starts the first thread, if it does not run yet. After that the only reason for workers_post to
 * return false is a full queue. STATUS_IO if the system has no thread to give. */
MUST_USE Status workers_start(Workers *workers, Error *err);

uint32_t workers_threads(const Workers *workers); /* at most */

/* False, and the job is not taken, if 'jobs_max' jobs wait already, or if the system has no thread
 * for even the first of them. */
MUST_USE bool workers_post(Workers *workers, WorkerJob *job);

/* The same for work that somebody else does if nobody has the time: it is begun only while nothing
 * else waits, and no one yields to it. */
MUST_USE bool workers_post_spare(Workers *workers, WorkerJob *job);

/* Asked by a job that has run for a while: whether to end, since another one waits for a thread. */
MUST_USE bool worker_must_yield(WorkerJob *job);

/* The job that runs and had to yield takes its turn among the long ones, before those that come
 * later. Nothing may touch it after the call. */
void worker_post_long(WorkerJob *job);

/* Runs every job that was taken, then joins the threads. Accepts NULL. */
void workers_close(Workers *workers);
DEFINE_AUTO(Workers *, workers_close)
