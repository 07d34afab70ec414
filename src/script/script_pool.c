/* script_pool.c - see script_pool.h.
 *
 * The runner threads are Workers. Processes are started and ended by one more thread, the keeper:
 * the system ends a worker process when the thread that started it ends, and this one lives as long
 * as the pool. A process is idle (in the list), or belongs to the runner or session that has taken
 * it.
 */
#include "script/script_pool.h"

#include "base/cond.h"
#include "base/mem.h"
#include "base/thread.h"
#include "script/script_pool_int.h"

#include <unistd.h>

enum {
    WORKERS_MIN = 4,
    WORKERS_PER_CPU = 2,
    JOBS_PER_WORKER = 16,
};
#define MEMORY_BYTES_DEFAULT ((uint64_t)256 << 20)
#define IDLE_US_DEFAULT      ((uint64_t)60 * 1000000)

struct ScriptPool {
    /* Immutable after open. */
    ScriptPoolOptions options;
    Workers *runners;
    ScriptBlocks *blocks;
    ScriptBlocks *repeats;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* a process is idle, may be started, or could not be started */
    pthread_cond_t wanted_or_closing;

    /* Guarded by lock. */
    pthread_t keeper;
    bool has_keeper;
    bool is_closing;
    ScriptProcess *idle; /* used last first */
    uint32_t idle_count;
    uint32_t processes;
    uint32_t wanted; /* threads that wait for an idle process */
    uint32_t in_use[PROCESS_USES];
    uint64_t start_failures;
    Error start_error; /* the newest */
    ScriptPoolStats stats;
};

static const char *const COMMAND_DEFAULT[] = {"/proc/self/exe", "script-worker", NULL};

ScriptPool *script_pool_open(const ScriptPoolOptions *options)
{
    ScriptPool *pool = MEM_NEW(ScriptPool);
    pool->options = *options;
    ScriptPoolOptions *own = &pool->options;
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t workers = (uint32_t)(cpus < 1 ? 1 : cpus) * WORKERS_PER_CPU;
    if (own->command == NULL)
        own->command = COMMAND_DEFAULT;
    if (own->clock == NULL)
        own->clock = clock_real();
    if (own->workers_max == 0)
        own->workers_max = workers < WORKERS_MIN ? WORKERS_MIN : workers;
    if (own->functions_max == 0)
        own->functions_max = own->workers_max;
    if (own->jobs_max == 0)
        own->jobs_max = own->workers_max * JOBS_PER_WORKER;
    if (own->memory_bytes_max == 0)
        own->memory_bytes_max = MEMORY_BYTES_DEFAULT;
    if (own->idle_us == 0)
        own->idle_us = IDLE_US_DEFAULT;
    if (own->block_cpu_us == 0)
        own->block_cpu_us = SCRIPT_BLOCK_CPU_US;
    if (own->block_functions_cpu_us == 0)
        own->block_functions_cpu_us = SCRIPT_BLOCK_FUNCTIONS_CPU_US;
    pool->runners = workers_open("script", own->workers_max, own->jobs_max);
    pool->blocks = script_blocks_new(own->clock);
    pool->repeats = script_blocks_new(own->clock);
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->changed, NULL);
    (void)pthread_cond_init(&pool->wanted_or_closing, NULL);
    return pool;
}

void script_pool_close(ScriptPool *pool)
{
    if (pool == NULL)
        return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->is_closing = true;
    (void)pthread_cond_broadcast(&pool->wanted_or_closing);
    (void)pthread_cond_broadcast(&pool->changed);
    (void)pthread_mutex_unlock(&pool->lock);
    workers_close(pool->runners);
    if (pool->has_keeper)
        (void)pthread_join(pool->keeper, NULL);
    while (pool->idle != NULL) {
        ScriptProcess *process = pool->idle;
        pool->idle = process->next;
        script_process_free(process);
        pool->processes--;
    }
    ASSERT(pool->processes == 0);
    script_blocks_free(pool->blocks);
    script_blocks_free(pool->repeats);
    (void)pthread_cond_destroy(&pool->changed);
    (void)pthread_cond_destroy(&pool->wanted_or_closing);
    (void)pthread_mutex_destroy(&pool->lock);
    mem_free(pool);
}

/* ---- the keeper ---- */

/* Starts one process. Called with the lock, which is released meanwhile. */
static void start_one(ScriptPool *pool)
{
    const ScriptPoolOptions *options = &pool->options;
    ScriptProcess *process = NULL;
    Error err;
    (void)pthread_mutex_unlock(&pool->lock);
    Status status = script_process_start(options->command, options->memory_bytes_max,
                                         options->shows_stderr, &process, &err);
    (void)pthread_mutex_lock(&pool->lock);
    if (status == STATUS_OK) {
        process->idle_since_us = cond_now_us();
        process->next = pool->idle;
        pool->idle = process;
        pool->idle_count++;
        pool->processes++;
        pool->stats.processes_started++;
    } else {
        /* All that wait now fail with it, and nobody waits any more. */
        pool->start_failures++;
        pool->start_error = err;
        pool->wanted = 0;
    }
    (void)pthread_cond_broadcast(&pool->changed);
}

/* Takes a process out of the list that was idle for too long; NULL if there is none. One always
 * stays.
 * '*next_us' becomes the moment at which there may be another. */
static ScriptProcess *take_expired(ScriptPool *pool, uint64_t *next_us)
{
    uint64_t now_us = cond_now_us();
    *next_us = now_us + pool->options.idle_us;
    if (pool->processes <= 1 || pool->idle == NULL)
        return NULL;
    ScriptProcess **link = &pool->idle;
    while ((*link)->next != NULL)
        link = &(*link)->next;
    ScriptProcess *oldest = *link;
    *next_us = oldest->idle_since_us + pool->options.idle_us;
    if (*next_us > now_us)
        return NULL;
    *link = NULL;
    pool->idle_count--;
    pool->processes--;
    return oldest;
}

static void *keep(void *ctx)
{
    ScriptPool *pool = ctx;
    (void)pthread_mutex_lock(&pool->lock);
    while (!pool->is_closing) {
        if (pool->wanted > pool->idle_count) {
            start_one(pool);
            continue;
        }
        uint64_t next_us = 0;
        ScriptProcess *expired = take_expired(pool, &next_us);
        if (expired == NULL) {
            (void)cond_wait_until(&pool->wanted_or_closing, &pool->lock, next_us);
            continue;
        }
        (void)pthread_mutex_unlock(&pool->lock);
        script_process_free(expired);
        (void)pthread_mutex_lock(&pool->lock);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* ---- processes for runs and sessions ---- */

static Status closing(Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the server is stopping: no scripts run");
}

/* Called with the lock. */
static Status start_keeper(ScriptPool *pool, Error *err)
{
    if (pool->has_keeper)
        return STATUS_OK;
    TRY(thread_start(&pool->keeper, "script-keeper", keep, pool, err));
    pool->has_keeper = true;
    return STATUS_OK;
}

/* Waits until fewer than the maximum are in use. Called with the lock. */
static Status wait_admitted(ScriptPool *pool, ProcessUse use, uint64_t until_us, Error *err)
{
    uint32_t max =
        use == PROCESS_FOR_JOBS ? pool->options.workers_max : pool->options.functions_max;
    while (pool->in_use[use] >= max && !pool->is_closing) {
        if (!cond_wait_until(&pool->changed, &pool->lock, until_us))
            return script_timeout(err);
    }
    return pool->is_closing ? closing(err) : STATUS_OK;
}

/* Waits for an idle process, and for the keeper to start one if there is none. Called with the
 * lock. */
static Status wait_idle(ScriptPool *pool, uint64_t until_us, ScriptProcess **out, Error *err)
{
    uint64_t failures = pool->start_failures;
    bool is_waiting = false;
    while (pool->idle == NULL) {
        if (pool->start_failures != failures) {
            *err = pool->start_error;
            return err->status;
        }
        if (!is_waiting) {
            is_waiting = true;
            pool->wanted++;
            (void)pthread_cond_signal(&pool->wanted_or_closing);
        }
        if (pool->is_closing || !cond_wait_until(&pool->changed, &pool->lock, until_us)) {
            pool->wanted -= pool->start_failures == failures;
            return pool->is_closing ? closing(err) : script_timeout(err);
        }
    }
    if (is_waiting && pool->start_failures == failures)
        pool->wanted--;
    *out = pool->idle;
    pool->idle = (*out)->next;
    (*out)->next = NULL;
    pool->idle_count--;
    if (pool->wanted > pool->idle_count)
        (void)pthread_cond_signal(&pool->wanted_or_closing);
    return STATUS_OK;
}

static Status take(ScriptPool *pool, ProcessUse use, uint64_t until_us, ScriptProcess **out,
                   Error *err)
{
    (void)pthread_mutex_lock(&pool->lock);
    Status status = start_keeper(pool, err);
    if (status == STATUS_OK)
        status = wait_admitted(pool, use, until_us, err);
    if (status == STATUS_OK) {
        /* Counted before the wait, which releases the lock: others must not be admitted meanwhile.
         */
        pool->in_use[use]++;
        status = wait_idle(pool, until_us, out, err);
        if (status != STATUS_OK) {
            pool->in_use[use]--;
            (void)pthread_cond_broadcast(&pool->changed);
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return status;
}

Status script_pool_take(ScriptPool *pool, ProcessUse use, uint64_t until_us, ScriptProcess **out,
                        Error *err)
{
    for (;;) {
        ScriptProcess *process = NULL;
        TRY(take(pool, use, until_us, &process, err));
        if (!script_process_is_quiet(process)) {
            process->state = PROCESS_LOST; /* it died while it was idle: the next may live */
            script_pool_give(pool, use, process);
            continue;
        }
        Status status = script_process_greet(process, until_us, err);
        if (status == STATUS_OK) {
            *out = process;
            return STATUS_OK;
        }
        script_pool_give(pool, use, process);
        return status == STATUS_TIMEOUT ? script_timeout(err) : status;
    }
}

void script_pool_give(ScriptPool *pool, ProcessUse use, ScriptProcess *process)
{
    bool is_lost = process->state == PROCESS_LOST;
    /* One that has grown would soon be taken for a script that uses too much. */
    bool must_end =
        is_lost || script_process_memory_bytes(process) > pool->options.memory_bytes_max / 2;
    if (must_end)
        script_process_free(process);
    (void)pthread_mutex_lock(&pool->lock);
    ASSERT(pool->in_use[use] > 0);
    pool->in_use[use]--;
    pool->stats.processes_lost += is_lost;
    if (must_end) {
        pool->processes--;
    } else {
        process->idle_since_us = cond_now_us();
        process->next = pool->idle;
        pool->idle = process;
        pool->idle_count++;
    }
    (void)pthread_cond_broadcast(&pool->changed);
    (void)pthread_mutex_unlock(&pool->lock);
}

uint64_t script_pool_system_us(const ScriptPool *pool, uint64_t moment_us)
{
    uint64_t now_us = clock_monotonic_us(pool->options.clock);
    uint64_t system_us = cond_now_us();
    if (moment_us <= now_us)
        return system_us;
    uint64_t left_us = moment_us - now_us;
    return left_us > UINT64_MAX - system_us ? UINT64_MAX : system_us + left_us;
}

const ScriptPoolOptions *script_pool_options(const ScriptPool *pool)
{
    return &pool->options;
}

ScriptBlocks *script_pool_blocks(const ScriptPool *pool)
{
    return pool->blocks;
}

ScriptBlocks *script_pool_repeats(const ScriptPool *pool)
{
    return pool->repeats;
}

Status script_timeout(Error *err)
{
    return error_set(err, STATUS_TIMEOUT, SUB_NONE, SCRIPT_TIMEOUT_TEXT);
}

/* ---- jobs ---- */

static void run_job(WorkerJob *worker_job)
{
    ScriptJob *job = CONTAINER_OF(worker_job, ScriptJob, job);
    ScriptRunner runner = {.pool = job->pool};
    ScriptPool *pool = job->pool;
    job->run(job, &runner);
    /* The job may be gone. */
    if (runner.process != NULL)
        script_pool_give(pool, PROCESS_FOR_JOBS, runner.process);
}

Status script_pool_post(ScriptPool *pool, ScriptJob *job, Error *err)
{
    job->pool = pool;
    job->job.run = run_job;
    if (workers_post(pool->runners, &job->job))
        return STATUS_OK;
    Status status = error_set(err, STATUS_THROTTLED, SUB_SCRIPT_CONCURRENCY,
                              "Too many scripts wait to be run. Retry later.");
    err->retry_after_ms = 1000;
    return status;
}

/* ---- what is known of the pool ---- */

void script_pool_count_run(ScriptPool *pool, bool has_failed)
{
    (void)pthread_mutex_lock(&pool->lock);
    pool->stats.runs++;
    pool->stats.runs_failed += has_failed;
    (void)pthread_mutex_unlock(&pool->lock);
}

void script_pool_stats(ScriptPool *pool, ScriptPoolStats *out)
{
    (void)pthread_mutex_lock(&pool->lock);
    *out = pool->stats;
    out->processes = pool->processes;
    out->idle = pool->idle_count;
    (void)pthread_mutex_unlock(&pool->lock);
}
