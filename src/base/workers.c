/* workers.c - see workers.h. One lock guards everything: jobs are milliseconds, not microseconds.
 *
 * The thread that became idle last is woken first: its data is still in its processor's cache, and
 * the others sleep on. It is signalled after the lock is released, or it would wait for the lock.
 *
 * A turn is free only while no thread or job that could use it waits: a thread that gives a turn
 * back fills it (fill_turns), and a post wakes a thread if a turn is free.
 */
#include "base/workers.h"

#include "base/mem.h"
#include "base/thread.h"
#include "base/thread_background.h"

#include <sched.h>

enum { SLICE_US_MAX = 20000 }; /* between jobs that have run for long */

typedef struct JobList {
    QueueNode *first;
    QueueNode *last;
} JobList;

typedef struct Worker Worker;

struct Workers {
    const char *name; /* immutable after open */
    const Clock *clock;
    uint32_t turns;
    uint32_t threads_max;
    uint32_t jobs_max;
    bool is_background;

    _Atomic uint32_t posting; /* threads that may be about to wake one of ours */
    _Atomic uint32_t wanting; /* jobs and threads that wait for a turn; written with the lock */
    _Atomic bool is_crowded;  /* see worker_is_crowded; written with the lock */

    pthread_mutex_t lock; /* guards the rest */
    Worker *threads;
    uint32_t thread_count;
    uint32_t idle_count; /* asleep, still polling, or woken and not yet running */
    Worker *idle;        /* those that are asleep, the last one first */
    uint32_t turns_held;
    uint32_t turns_given;  /* so far, modulo 2^32 */
    Worker *first_waiting; /* for a turn, in the order in which they began to wait */
    Worker *last_waiting;
    uint32_t waiting_count;
    uint32_t job_count; /* queued */
    JobList jobs;
    JobList spare_jobs;
    uint32_t spare_count; /* queued; not among 'job_count' */
    bool stop;
};

struct Worker {
    Workers *workers; /* immutable after start */
    pthread_t thread;

    /* The thread's own while it holds a turn; otherwise guarded by the lock. */
    uint64_t turn_us;   /* since when it has held its turn */
    uint64_t used_us;   /* for how long its job has run before that */
    uint64_t untold_us; /* waits that worker_yield has not returned yet */

    /* Guarded by the lock. */
    pthread_cond_t wake;
    bool is_woken;
    WorkerJob *job; /* that it was woken for, with a turn; NULL if it is to look for one */
    Worker *below;  /* in the list of idle ones */
    Worker *next;   /* in the list of waiting ones */
};

static _Thread_local Worker *self_at_work; /* NULL if the thread runs no job */

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
    ASSERT(list->first != NULL);
    WorkerJob *job = CONTAINER_OF(list->first, WorkerJob, node);
    list->first = job->node.next;
    if (list->first == NULL)
        list->last = NULL;
    return job;
}

static void note_wanting(Workers *workers)
{
    bool is_crowded = workers->job_count > 0 && workers->idle_count == 0 &&
                      workers->thread_count == workers->threads_max;
    atomic_store_explicit(&workers->wanting, workers->waiting_count + workers->job_count,
                          memory_order_relaxed);
    atomic_store_explicit(&workers->is_crowded, is_crowded, memory_order_relaxed);
}

static WorkerJob *take_queued(Workers *workers, JobList *list)
{
    *(list == &workers->jobs ? &workers->job_count : &workers->spare_count) -= 1;
    WorkerJob *job = list_take(list);
    note_wanting(workers);
    return job;
}

static uint64_t now_us(const Workers *workers)
{
    return clock_monotonic_us(workers->clock);
}

/* ---- turns, all with the lock ---- */

static void begin_turn(Worker *worker)
{
    ASSERT(worker->workers->turns_held < worker->workers->turns); /* I7 */
    worker->turn_us = now_us(worker->workers);
    worker->workers->turns_held++;
    worker->workers->turns_given++;
}

static void end_turn(Worker *self)
{
    ASSERT(self->workers->turns_held > 0);
    self->used_us += now_us(self->workers) - self->turn_us;
    self->workers->turns_held--;
}

static void begin_job(Worker *worker, const WorkerJob *job)
{
    worker->used_us = job->used_us;
    worker->untold_us = 0;
    begin_turn(worker);
}

static void remove_waiting(Workers *workers, Worker *worker)
{
    Worker **at = &workers->first_waiting;
    Worker *before = NULL;
    for (; *at != worker; at = &(*at)->next)
        before = *at;
    *at = worker->next;
    if (workers->last_waiting == worker)
        workers->last_waiting = before;
    workers->waiting_count--;
    note_wanting(workers);
}

/* Returns when the thread has been chosen and holds a turn. */
static void wait_for_turn(Worker *self)
{
    Workers *workers = self->workers;
    self->is_woken = false;
    self->next = NULL;
    *(workers->last_waiting != NULL ? &workers->last_waiting->next : &workers->first_waiting) =
        self;
    workers->last_waiting = self;
    workers->waiting_count++;
    note_wanting(workers);
    while (!self->is_woken)
        (void)pthread_cond_wait(&self->wake, &workers->lock);
}

static void wake_waiting(Worker *worker)
{
    remove_waiting(worker->workers, worker);
    begin_turn(worker);
    worker->is_woken = true;
    (void)pthread_cond_signal(&worker->wake);
}

static bool is_turn_of_oldest(const Workers *workers)
{
    return workers->turns_given % WORKER_OLDEST_EVERY == WORKER_OLDEST_EVERY - 1;
}

/* The waiting thread that comes first; NULL if none waits, or if a queued job comes before all. */
static Worker *choose_waiting(const Workers *workers, bool has_job)
{
    if (is_turn_of_oldest(workers))
        return workers->first_waiting;
    Worker *least = workers->first_waiting;
    for (Worker *worker = least; worker != NULL; worker = worker->next) {
        if (worker->used_us < least->used_us)
            least = worker;
    }
    bool is_as_new = least != NULL && least->used_us < WORKER_SLICE_US;
    return has_job && !is_as_new ? NULL : least;
}

/* NULL if no thread is idle. */
static Worker *pop_idle(Workers *workers)
{
    Worker *worker = workers->idle;
    if (worker != NULL) {
        workers->idle = worker->below;
        worker->is_woken = true;
    }
    return worker;
}

static void *run(void *arg);

static Status add_thread(Workers *workers, Error *err)
{
    Worker *worker = &workers->threads[workers->thread_count];
    TRY(thread_start(&worker->thread, workers->name, run, worker, err));
    workers->thread_count++;
    return STATUS_OK;
}

/* NULL if there is no more thread to be had. That matters only for the first: others are a matter
 * of speed. */
static Worker *start_thread(Workers *workers)
{
    Error err;
    if (workers->thread_count == workers->threads_max || add_thread(workers, &err) != STATUS_OK)
        return NULL;
    return &workers->threads[workers->thread_count - 1];
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

static bool can_begin_job(const Workers *workers)
{
    return workers->idle != NULL || workers->thread_count < workers->threads_max;
}

/* Begins the first job of a list on a thread that has none; false if there is no such thread. */
static bool begin_queued(Workers *workers, JobList *list)
{
    Worker *worker = pop_idle(workers);
    if (worker != NULL)
        workers->idle_count--;
    else
        worker = start_thread(workers);
    if (worker == NULL)
        return false;
    worker->job = take_queued(workers, list);
    begin_job(worker, worker->job);
    (void)pthread_cond_signal(&worker->wake);
    return true;
}

/* Gives a free turn to the thread or job that comes next; false if there is none. */
static bool fill_turn(Workers *workers)
{
    bool has_job = workers->jobs.first != NULL && can_begin_job(workers);
    Worker *waiting = choose_waiting(workers, has_job);
    if (waiting != NULL) {
        wake_waiting(waiting);
        return true;
    }
    if (has_job)
        return begin_queued(workers, &workers->jobs);
    return workers->spare_jobs.first != NULL && can_begin_job(workers) &&
           begin_queued(workers, &workers->spare_jobs);
}

static void fill_turns(Workers *workers)
{
    while (workers->turns_held < workers->turns && fill_turn(workers))
        continue;
}

/* The job that the calling thread is to run; NULL if there is none, or no turn for it. */
static WorkerJob *take_job(Worker *self)
{
    Workers *workers = self->workers;
    while (workers->turns_held < workers->turns) {
        Worker *waiting = choose_waiting(workers, workers->jobs.first != NULL);
        if (waiting != NULL) {
            wake_waiting(waiting);
            continue;
        }
        JobList *list = workers->jobs.first != NULL ? &workers->jobs : &workers->spare_jobs;
        if (list->first == NULL)
            return NULL;
        WorkerJob *job = take_queued(workers, list);
        begin_job(self, job);
        return job;
    }
    return NULL;
}

/* ---- threads ---- */

static void sleep_until_woken(Worker *self)
{
    Workers *workers = self->workers;
    self->is_woken = false;
    self->below = workers->idle;
    workers->idle = self;
    workers->idle_count++;
    note_wanting(workers);
    while (!self->is_woken)
        (void)pthread_cond_wait(&self->wake, &workers->lock);
    workers->idle_count -= self->job == NULL ? 1 : 0;
    note_wanting(workers);
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
    if (workers->is_background)
        thread_set_background();
    (void)pthread_mutex_lock(&workers->lock);
    for (int looks = 0;; looks++) {
        WorkerJob *job = self->job != NULL ? TAKE(self->job) : take_job(self);
        if (job != NULL) {
            looks = 0;
            (void)pthread_mutex_unlock(&workers->lock);
            self_at_work = self;
            job->run(job); /* after which the job may be freed */
            self_at_work = NULL;
            (void)pthread_mutex_lock(&workers->lock);
            end_turn(self);
            continue;
        }
        if (workers->stop)
            break;
        /* A thread in the background would lose a long slice by yielding. */
        if (looks < THREAD_POLLS_MAX && !workers->is_background)
            let_others_run(workers);
        else
            sleep_until_woken(self);
    }
    (void)pthread_mutex_unlock(&workers->lock);
    return NULL;
}

Workers *workers_open_sharing(const char *name, uint32_t turns, uint32_t threads_max,
                              uint32_t jobs_max, const Clock *clock)
{
    ASSERT(turns > 0);
    ASSERT(threads_max >= turns);
    Workers *workers = MEM_NEW(Workers);
    workers->name = name;
    workers->clock = clock;
    workers->turns = turns;
    workers->threads_max = threads_max;
    workers->jobs_max = jobs_max;
    workers->threads = MEM_NEW_ARRAY(Worker, threads_max);
    atomic_init(&workers->posting, 0);
    atomic_init(&workers->wanting, 0);
    atomic_init(&workers->is_crowded, false);
    int failed = pthread_mutex_init(&workers->lock, NULL);
    ASSERT(failed == 0);
    for (uint32_t i = 0; i < threads_max; i++) {
        workers->threads[i].workers = workers;
        failed = pthread_cond_init(&workers->threads[i].wake, NULL);
        ASSERT(failed == 0);
    }
    return workers;
}

Workers *workers_open(const char *name, uint32_t threads_max, uint32_t jobs_max)
{
    return workers_open_sharing(name, threads_max, threads_max, jobs_max, clock_real());
}

void workers_set_background(Workers *workers)
{
    ASSERT(workers->thread_count == 0);
    workers->is_background = true;
}

uint32_t workers_turns(const Workers *workers)
{
    return workers->turns;
}

/* ---- posting ---- */

/* Once the lock is released, the job may run and cause the workers to be closed. 'posting' keeps
 * the thread that is about to be signalled alive until then. */
static bool post(Workers *workers, WorkerJob *job, JobList *list, uint32_t *count)
{
    atomic_fetch_add_explicit(&workers->posting, 1, memory_order_relaxed);
    (void)pthread_mutex_lock(&workers->lock);
    bool has_turn = workers->turns_held < workers->turns;
    if (has_turn && workers->job_count + workers->spare_count >= workers->idle_count)
        (void)start_thread(workers);
    bool taken = *count < workers->jobs_max && workers->thread_count > 0;
    if (taken) {
        list_add(list, job);
        ++*count;
        note_wanting(workers);
    }
    Worker *worker = has_turn ? pop_idle(workers) : NULL;
    (void)pthread_mutex_unlock(&workers->lock);
    if (worker != NULL)
        (void)pthread_cond_signal(&worker->wake);
    atomic_fetch_sub_explicit(&workers->posting, 1, memory_order_release);
    return taken;
}

bool workers_post(Workers *workers, WorkerJob *job)
{
    job->used_us = 0;
    return post(workers, job, &workers->jobs, &workers->job_count);
}

bool workers_post_spare(Workers *workers, WorkerJob *job)
{
    const Worker *self = self_at_work;
    bool is_ours = self != NULL && self->workers == workers;
    job->used_us = is_ours ? self->used_us + now_us(workers) - self->turn_us : 0;
    return post(workers, job, &workers->spare_jobs, &workers->spare_count);
}

/* ---- sharing ---- */

/* How much longer than another one a job must have run to make room for it. Jobs that have run for
 * long change less often, since each change costs what the processor's cache held. */
static uint64_t lead_us(uint64_t used_us)
{
    uint64_t us = used_us / 8;
    return us < WORKER_SLICE_US ? WORKER_SLICE_US : us > SLICE_US_MAX ? SLICE_US_MAX : us;
}

/* With the lock. */
static bool must_give_way(const Worker *self, uint64_t own_us)
{
    const Workers *workers = self->workers;
    if (workers->turns_held < workers->turns)
        return false;
    bool has_job = workers->jobs.first != NULL && can_begin_job(workers);
    const Worker *waiting = choose_waiting(workers, has_job);
    if (waiting == NULL)
        return has_job && own_us >= WORKER_SLICE_US;
    return is_turn_of_oldest(workers) || waiting->used_us + lead_us(waiting->used_us) <= own_us;
}

/* With the lock. A turn is free if nothing waits for it, or if no thread can run the job that does.
 */
static void get_turn(Worker *self)
{
    if (self->workers->turns_held < self->workers->turns)
        begin_turn(self);
    else
        wait_for_turn(self);
}

uint64_t worker_yield(void)
{
    Worker *self = self_at_work;
    if (self == NULL)
        return 0;
    Workers *workers = self->workers;
    uint64_t waited_us = self->untold_us;
    self->untold_us = 0;
    if (LIKELY(atomic_load_explicit(&workers->wanting, memory_order_relaxed) == 0))
        return waited_us;
    uint64_t before_us = now_us(workers);
    uint64_t held_us = before_us - self->turn_us;
    if (held_us < WORKER_SLICE_US)
        return waited_us;
    (void)pthread_mutex_lock(&workers->lock);
    fill_turns(workers); /* a thread that was woken for one may be late */
    bool gives_way = must_give_way(self, self->used_us + held_us);
    if (gives_way) {
        end_turn(self);
        fill_turns(workers); /* before it waits itself, so that another is chosen */
        get_turn(self);
    }
    (void)pthread_mutex_unlock(&workers->lock);
    return waited_us + (gives_way ? now_us(workers) - before_us : 0);
}

void worker_begin_wait(void)
{
    Worker *self = self_at_work;
    if (self == NULL)
        return;
    (void)pthread_mutex_lock(&self->workers->lock);
    end_turn(self);
    fill_turns(self->workers);
    (void)pthread_mutex_unlock(&self->workers->lock);
}

void worker_end_wait(void)
{
    Worker *self = self_at_work;
    if (self == NULL)
        return;
    Workers *workers = self->workers;
    uint64_t before_us = now_us(workers);
    (void)pthread_mutex_lock(&workers->lock);
    get_turn(self);
    (void)pthread_mutex_unlock(&workers->lock);
    self->untold_us += now_us(workers) - before_us;
}

void worker_tell_wait(uint64_t us)
{
    if (self_at_work != NULL)
        self_at_work->untold_us += us;
}

bool worker_is_crowded(void)
{
    const Worker *self = self_at_work;
    return self != NULL && atomic_load_explicit(&self->workers->is_crowded, memory_order_relaxed);
}

/* ---- the end ---- */

void workers_close(Workers *workers)
{
    if (workers == NULL)
        return;
    (void)pthread_mutex_lock(&workers->lock);
    workers->stop = true;
    for (Worker *worker = pop_idle(workers); worker != NULL; worker = pop_idle(workers))
        (void)pthread_cond_signal(&worker->wake);
    (void)pthread_mutex_unlock(&workers->lock);
    for (uint32_t i = 0;; i++) {
        (void)pthread_mutex_lock(&workers->lock);
        bool is_last = i == workers->thread_count; /* a job that runs may start more */
        (void)pthread_mutex_unlock(&workers->lock);
        if (is_last)
            break;
        (void)pthread_join(workers->threads[i].thread, NULL);
    }
    while (atomic_load_explicit(&workers->posting, memory_order_acquire) > 0)
        (void)sched_yield();         /* a few instructions on another thread */
    ASSERT(workers->job_count == 0); /* I7 */
    ASSERT(workers->spare_count == 0);
    ASSERT(workers->waiting_count == 0);
    for (uint32_t i = 0; i < workers->threads_max; i++)
        (void)pthread_cond_destroy(&workers->threads[i].wake);
    (void)pthread_mutex_destroy(&workers->lock);
    mem_free(workers->threads);
    mem_free(workers);
}
