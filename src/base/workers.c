/* workers.c - see workers.h. One lock guards everything: jobs are milliseconds, not microseconds.
 *
 * Who became idle last is woken first: what it works with is still in its processor's cache, and
 * the others sleep on. It is signalled after the lock is free, which it would wait for otherwise.
 */
#include "base/workers.h"

#include "base/mem.h"
#include "base/thread.h"

#include <sched.h>

typedef struct JobList {
    QueueNode *first;
    QueueNode *last;
} JobList;

struct Workers {
    const char *name; /* immutable after open */
    uint32_t threads_max;
    uint32_t jobs_max;

    _Atomic uint32_t posting; /* threads that may be about to wake one of ours */

    pthread_mutex_t lock; /* guards the rest */
    Worker *threads;
    uint32_t thread_count;
    uint32_t idle_count; /* asleep, still looking, or woken and not yet aware of it */
    Worker *idle;        /* those that are asleep, the last one first */
    uint32_t job_count;  /* waiting */
    JobList jobs;
    JobList long_jobs;
    JobList spare_jobs;
    uint32_t spare_count; /* waiting; not among 'job_count' */
    uint32_t long_count;  /* threads that hold a long job */
    bool stop;
};

struct Worker {
    Workers *workers; /* immutable after start */
    pthread_t thread;

    /* Guarded by the lock. */
    pthread_cond_t wake;
    bool is_woken;
    Worker *below; /* in the list of idle ones */
    bool is_long;  /* it is one of 'long_count' */
};

static void list_add(JobList *list, WorkerJob *job)
{
    job->node.next = NULL;
    if (list->last == NULL)
        list->first = &job->node;
    else
        list->last->next = &job->node;
    list->last = &job->node;
}

static WorkerJob *list_take(JobList *list)
{
    WorkerJob *job = CONTAINER_OF(list->first, WorkerJob, node);
    list->first = job->node.next;
    if (list->first == NULL)
        list->last = NULL;
    return job;
}

static bool has_room_for_long(const Workers *workers)
{
    return workers->long_count < (workers->threads_max > 1 ? workers->threads_max / 2 : 1);
}

static void hold_long(Worker *self)
{
    self->is_long = true;
    self->workers->long_count++;
}

/* NULL: there is none. A thread that no short job wants runs a long one for the time being. */
static WorkerJob *take_job(Worker *self)
{
    Workers *workers = self->workers;
    bool has_room = has_room_for_long(workers);
    WorkerJob *job = NULL;
    if (workers->long_jobs.first != NULL && (has_room || workers->jobs.first == NULL)) {
        job = list_take(&workers->long_jobs);
        if (has_room)
            hold_long(self);
    } else if (workers->jobs.first != NULL) {
        job = list_take(&workers->jobs);
    } else if (workers->spare_jobs.first != NULL) {
        workers->spare_count--;
        return list_take(&workers->spare_jobs);
    }
    workers->job_count -= job != NULL ? 1 : 0;
    return job;
}

/* The job is gone: it belongs to whoever it was handed to. */
static void end_job(Worker *self)
{
    self->workers->long_count -= self->is_long ? 1 : 0;
    self->is_long = false;
}

static void sleep_until_woken(Worker *self)
{
    Workers *workers = self->workers;
    self->is_woken = false;
    self->below = workers->idle;
    workers->idle = self;
    workers->idle_count++;
    while (!self->is_woken)
        (void)pthread_cond_wait(&self->wake, &workers->lock);
    workers->idle_count--;
}

/* The caller signals it once the lock is free; NULL: nobody is idle. */
static Worker *wake_one(Workers *workers)
{
    Worker *worker = workers->idle;
    if (worker != NULL) {
        workers->idle = worker->below;
        worker->is_woken = true;
    }
    return worker;
}

static void let_others_run(Workers *workers)
{
    workers->idle_count++;
    (void)pthread_mutex_unlock(&workers->lock);
    (void)sched_yield();
    (void)pthread_mutex_lock(&workers->lock);
    workers->idle_count--;
}

static void *run(void *arg)
{
    Worker *self = arg;
    Workers *workers = self->workers;
    (void)pthread_mutex_lock(&workers->lock);
    for (int looks = 0;; looks++) {
        WorkerJob *job = take_job(self);
        if (job != NULL) {
            looks = 0;
            job->worker = self;
            (void)pthread_mutex_unlock(&workers->lock);
            job->run(job);
            (void)pthread_mutex_lock(&workers->lock);
            end_job(self);
            continue;
        }
        if (workers->stop)
            break;
        if (looks < THREAD_LOOKS)
            let_others_run(workers);
        else
            sleep_until_woken(self);
    }
    (void)pthread_mutex_unlock(&workers->lock);
    return NULL;
}

Workers *workers_open(const char *name, uint32_t threads_max, uint32_t jobs_max)
{
    ASSERT(threads_max > 0);
    Workers *workers = MEM_NEW(Workers);
    workers->name = name;
    workers->threads_max = threads_max;
    workers->jobs_max = jobs_max;
    workers->threads = MEM_NEW_ARRAY(Worker, threads_max);
    atomic_init(&workers->posting, 0);
    int failed = pthread_mutex_init(&workers->lock, NULL);
    ASSERT(failed == 0);
    for (uint32_t i = 0; i < threads_max; i++) {
        workers->threads[i].workers = workers;
        failed = pthread_cond_init(&workers->threads[i].wake, NULL);
        ASSERT(failed == 0);
    }
    return workers;
}

uint32_t workers_threads(const Workers *workers)
{
    return workers->threads_max;
}

static Status add_thread(Workers *workers, Error *err)
{
    Worker *worker = &workers->threads[workers->thread_count];
    TRY(thread_start(&worker->thread, workers->name, run, worker, err));
    workers->thread_count++;
    return STATUS_OK;
}

/* If nobody is idle who could take one more job. More than one thread is only a wish, but without a
 * first nothing would run. */
static void start_thread(Workers *workers)
{
    uint32_t waiting = workers->job_count + workers->spare_count;
    if (waiting < workers->idle_count || workers->thread_count == workers->threads_max)
        return;
    Error err;
    (void)add_thread(workers, &err); /* those that there are take the job later */
}

Status workers_start(Workers *workers, Error *err)
{
    (void)pthread_mutex_lock(&workers->lock);
    Status status = STATUS_OK;
    if (workers->thread_count == 0)
        status = add_thread(workers, err);
    (void)pthread_mutex_unlock(&workers->lock);
    return status;
}

/* As soon as the lock is free the job may run and be the reason to close the workers: the count
 * keeps those that are about to be signalled until that is done. */
static void lock_to_post(Workers *workers)
{
    atomic_fetch_add_explicit(&workers->posting, 1, memory_order_relaxed);
    (void)pthread_mutex_lock(&workers->lock);
}

static void unlock_and_wake(Workers *workers)
{
    Worker *worker = wake_one(workers);
    (void)pthread_mutex_unlock(&workers->lock);
    if (worker != NULL)
        (void)pthread_cond_signal(&worker->wake);
    atomic_fetch_sub_explicit(&workers->posting, 1, memory_order_release);
}

static bool post(Workers *workers, WorkerJob *job, JobList *list, uint32_t *count)
{
    lock_to_post(workers);
    start_thread(workers);
    bool taken = *count < workers->jobs_max && workers->thread_count > 0;
    if (taken) {
        list_add(list, job);
        ++*count;
    }
    unlock_and_wake(workers);
    return taken;
}

bool workers_post(Workers *workers, WorkerJob *job)
{
    return post(workers, job, &workers->jobs, &workers->job_count);
}

bool workers_post_spare(Workers *workers, WorkerJob *job)
{
    return post(workers, job, &workers->spare_jobs, &workers->spare_count);
}

bool worker_must_yield(WorkerJob *job)
{
    Worker *self = job->worker;
    Workers *workers = self->workers;
    (void)pthread_mutex_lock(&workers->lock);
    if (!self->is_long && has_room_for_long(workers))
        hold_long(self);
    bool must = !self->is_long && workers->jobs.first != NULL && workers->idle_count == 0;
    (void)pthread_mutex_unlock(&workers->lock);
    return must;
}

void worker_post_long(WorkerJob *job)
{
    Workers *workers = job->worker->workers;
    lock_to_post(workers);
    job->node.next = workers->long_jobs.first;
    workers->long_jobs.first = &job->node;
    if (workers->long_jobs.last == NULL)
        workers->long_jobs.last = &job->node;
    workers->job_count++;
    unlock_and_wake(workers);
}

void workers_close(Workers *workers)
{
    if (workers == NULL)
        return;
    (void)pthread_mutex_lock(&workers->lock);
    workers->stop = true;
    for (Worker *worker = wake_one(workers); worker != NULL; worker = wake_one(workers))
        (void)pthread_cond_signal(&worker->wake);
    uint32_t count = workers->thread_count;
    (void)pthread_mutex_unlock(&workers->lock);
    for (uint32_t i = 0; i < count; i++)
        (void)pthread_join(workers->threads[i].thread, NULL);
    while (atomic_load_explicit(&workers->posting, memory_order_acquire) > 0)
        (void)sched_yield(); /* a few instructions on another thread */
    for (uint32_t i = 0; i < workers->threads_max; i++)
        (void)pthread_cond_destroy(&workers->threads[i].wake);
    (void)pthread_mutex_destroy(&workers->lock);
    mem_free(workers->threads);
    mem_free(workers);
}
