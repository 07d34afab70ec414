/* workers.c - see workers.h. One lock guards everything: jobs are milliseconds, not microseconds.
 */
#include "base/workers.h"

#include "base/mem.h"
#include "base/thread.h"

struct Workers {
    const char *name; /* immutable after open */
    uint32_t threads_max;
    uint32_t jobs_max;

    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t arrived;
    pthread_t *threads;
    uint32_t thread_count;
    uint32_t idle_count;
    uint32_t job_count; /* waiting */
    QueueNode *first;
    QueueNode *last;
    bool stop;
};

static void *run(void *arg)
{
    Workers *workers = arg;
    (void)pthread_mutex_lock(&workers->lock);
    for (;;) {
        if (workers->first == NULL) {
            if (workers->stop)
                break;
            workers->idle_count++;
            (void)pthread_cond_wait(&workers->arrived, &workers->lock);
            workers->idle_count--;
            continue;
        }
        WorkerJob *job = CONTAINER_OF(workers->first, WorkerJob, node);
        workers->first = job->node.next;
        if (workers->first == NULL)
            workers->last = NULL;
        workers->job_count--;
        (void)pthread_mutex_unlock(&workers->lock);
        job->run(job);
        (void)pthread_mutex_lock(&workers->lock);
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
    workers->threads = MEM_NEW_ARRAY(pthread_t, threads_max);
    int failed = pthread_mutex_init(&workers->lock, NULL);
    ASSERT(failed == 0);
    failed = pthread_cond_init(&workers->arrived, NULL);
    ASSERT(failed == 0);
    return workers;
}

uint32_t workers_threads(const Workers *workers)
{
    return workers->threads_max;
}

bool workers_post(Workers *workers, WorkerJob *job)
{
    (void)pthread_mutex_lock(&workers->lock);
    if (workers->job_count >= workers->idle_count && workers->thread_count < workers->threads_max) {
        /* More than one thread is only a wish, but without a first nothing would run. */
        pthread_t *thread = &workers->threads[workers->thread_count];
        Error err;
        if (thread_start(thread, workers->name, run, workers, &err) == STATUS_OK)
            workers->thread_count++;
    }
    bool taken = workers->job_count < workers->jobs_max && workers->thread_count > 0;
    if (taken) {
        job->node.next = NULL;
        if (workers->last == NULL)
            workers->first = &job->node;
        else
            workers->last->next = &job->node;
        workers->last = &job->node;
        workers->job_count++;
        (void)pthread_cond_signal(&workers->arrived);
    }
    (void)pthread_mutex_unlock(&workers->lock);
    return taken;
}

void workers_close(Workers *workers)
{
    if (workers == NULL)
        return;
    (void)pthread_mutex_lock(&workers->lock);
    workers->stop = true;
    (void)pthread_cond_broadcast(&workers->arrived);
    uint32_t count = workers->thread_count;
    (void)pthread_mutex_unlock(&workers->lock);
    for (uint32_t i = 0; i < count; i++)
        (void)pthread_join(workers->threads[i], NULL);
    (void)pthread_cond_destroy(&workers->arrived);
    (void)pthread_mutex_destroy(&workers->lock);
    mem_free(workers->threads);
    mem_free(workers);
}
