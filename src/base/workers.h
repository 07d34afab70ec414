/* workers.h - threads for work that would hold up an event loop: queries, cold reads.
 *
 * Threads start when there is work for them and none is idle, and then stay, so that a server that
 * runs no queries pays nothing. Jobs start in the order in which they were posted. The queue is
 * bounded: beyond it the poster gets false and says "busy" to its client, instead of growing.
 *
 * Ownership  A WorkerJob is a member of the caller's message; after the post only 'run' touches it.
 * Threads    Any thread posts.
 */
#pragma once

#include "base/defs.h"
#include "base/queue.h"

typedef struct Workers Workers;

typedef struct WorkerJob {
    QueueNode node;
    void (*run)(struct WorkerJob *job); /* on a worker's thread */
} WorkerJob;

/* 'name' is that of each thread, see thread_start; it is kept, not copied. */
Workers *workers_open(const char *name, uint32_t threads_max, uint32_t jobs_max);

uint32_t workers_threads(const Workers *workers); /* at most */

/* False, and the job is not taken, if 'jobs_max' jobs wait already, or if the system has no thread
 * for even the first of them. */
MUST_USE bool workers_post(Workers *workers, WorkerJob *job);

/* Runs every job that was taken, then joins the threads. Accepts NULL. */
void workers_close(Workers *workers);
DEFINE_AUTO(Workers *, workers_close)
