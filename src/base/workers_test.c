/* workers_test.c - jobs run once, in order, on no more threads than allowed. */
#include "base/workers.h"

#include "base/mem.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include <cmocka.h>

enum { WAIT_MS = 10000 };

/* What the jobs of one test share. */
typedef struct Shop {
    _Atomic int begun;
    _Atomic int ended;
    _Atomic int running;
    _Atomic int running_max;
    _Atomic bool open; /* jobs that wait go on */
} Shop;

typedef struct Job {
    WorkerJob job;
    Shop *shop;
    bool waits;
    int order; /* in which it began */
    pthread_t thread;
} Job;

static void work(WorkerJob *job)
{
    Job *self = CONTAINER_OF(job, Job, job);
    Shop *shop = self->shop;
    self->order = atomic_fetch_add(&shop->begun, 1);
    self->thread = pthread_self();
    int running = atomic_fetch_add(&shop->running, 1) + 1;
    int max = atomic_load(&shop->running_max);
    while (running > max && !atomic_compare_exchange_weak(&shop->running_max, &max, running))
        continue;
    while (self->waits && !atomic_load(&shop->open))
        (void)usleep(100);
    atomic_fetch_sub(&shop->running, 1);
    atomic_fetch_add(&shop->ended, 1);
}

static Job make_job(Shop *shop, bool waits)
{
    return (Job){.job.run = work, .shop = shop, .waits = waits, .order = -1};
}

static void wait_for(_Atomic int *count, int value)
{
    for (int ms = 0; atomic_load(count) < value; ms++) {
        assert_true(ms < WAIT_MS);
        (void)usleep(1000);
    }
}

static void a_job_runs_on_another_thread(void **state)
{
    (void)state;
    AUTO(workers_close) Workers *workers = workers_open("test", 2, 10);
    Shop shop = {0};
    Job job = make_job(&shop, false);
    assert_true(workers_post(workers, &job.job));
    wait_for(&shop.ended, 1);
    assert_int_equal(job.order, 0);
    assert_false(pthread_equal(job.thread, pthread_self()));
}

static void nothing_posted_costs_nothing(void **state)
{
    (void)state;
    AUTO(workers_close) Workers *workers = workers_open("test", 100, 100);
    AUTO(workers_close) Workers *none = NULL;
    assert_non_null(workers);
    assert_null(none);
}

static void one_thread_is_enough_for_jobs_that_do_not_meet(void **state)
{
    (void)state;
    AUTO(workers_close) Workers *workers = workers_open("test", 8, 10);
    Shop shop = {0};
    Job jobs[20];
    for (int i = 0; i < 20; i++) {
        jobs[i] = make_job(&shop, false);
        assert_true(workers_post(workers, &jobs[i].job));
        wait_for(&shop.ended, i + 1);
        (void)usleep(1000); /* so that the thread is back at its post */
    }
    for (int i = 1; i < 20; i++)
        assert_true(pthread_equal(jobs[i].thread, jobs[0].thread));
}

static void as_many_run_at_once_as_there_may_be_threads(void **state)
{
    (void)state;
    enum { THREADS = 3, COUNT = 12 };
    AUTO(workers_close) Workers *workers = workers_open("test", THREADS, COUNT);
    Shop shop = {0};
    Job jobs[COUNT];
    for (int i = 0; i < COUNT; i++) {
        jobs[i] = make_job(&shop, true);
        assert_true(workers_post(workers, &jobs[i].job));
    }
    wait_for(&shop.running, THREADS);
    (void)usleep(20000);
    assert_int_equal(atomic_load(&shop.begun), THREADS);
    atomic_store(&shop.open, true);
    wait_for(&shop.ended, COUNT);
    assert_int_equal(atomic_load(&shop.running_max), THREADS);
}

static void jobs_begin_in_the_order_of_their_posting(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    AUTO(workers_close) Workers *workers = workers_open("test", 1, COUNT);
    Shop shop = {0};
    Job jobs[COUNT];
    for (int i = 0; i < COUNT; i++) {
        jobs[i] = make_job(&shop, i == 0);
        assert_true(workers_post(workers, &jobs[i].job));
    }
    atomic_store(&shop.open, true);
    wait_for(&shop.ended, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(jobs[i].order, i);
}

static void spare_jobs_begin_when_nothing_else_waits(void **state)
{
    (void)state;
    Shop shop = {0};
    Workers *workers = workers_open("worker", 1, 2);
    Job first = make_job(&shop, true);
    Job spare[] = {make_job(&shop, false), make_job(&shop, false), make_job(&shop, false)};
    Job plain[] = {make_job(&shop, false), make_job(&shop, false)};
    assert_true(workers_post(workers, &first.job));
    wait_for(&shop.begun, 1);
    assert_true(workers_post_spare(workers, &spare[0].job));
    assert_true(workers_post_spare(workers, &spare[1].job));
    assert_false(workers_post_spare(workers, &spare[2].job)); /* they have a bound of their own */
    assert_true(workers_post(workers, &plain[0].job));
    assert_true(workers_post(workers, &plain[1].job));
    atomic_store(&shop.open, true);
    workers_close(workers);
    assert_int_equal(plain[0].order, 1);
    assert_int_equal(plain[1].order, 2);
    assert_int_equal(spare[0].order, 3);
    assert_int_equal(spare[1].order, 4);
    assert_int_equal(spare[2].order, -1);
}

static void more_than_may_wait_is_refused_and_not_touched(void **state)
{
    (void)state;
    AUTO(workers_close) Workers *workers = workers_open("test", 1, 2);
    Shop shop = {0};
    Job jobs[4];
    jobs[0] = make_job(&shop, true);
    assert_true(workers_post(workers, &jobs[0].job));
    wait_for(&shop.begun, 1); /* it runs, so it does not wait any more */
    for (int i = 1; i < 4; i++)
        jobs[i] = make_job(&shop, false);
    assert_true(workers_post(workers, &jobs[1].job));
    assert_true(workers_post(workers, &jobs[2].job));
    assert_false(workers_post(workers, &jobs[3].job));
    atomic_store(&shop.open, true);
    wait_for(&shop.ended, 3);
    assert_int_equal(jobs[3].order, -1);
    assert_true(workers_post(workers, &jobs[3].job)); /* there is room again */
    wait_for(&shop.ended, 4);
}

static void closing_runs_what_was_taken(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    Shop shop = {.open = true};
    Job jobs[COUNT];
    Workers *workers = workers_open("test", 2, COUNT);
    for (int i = 0; i < COUNT; i++) {
        jobs[i] = make_job(&shop, false);
        assert_true(workers_post(workers, &jobs[i].job));
    }
    workers_close(workers);
    assert_int_equal(atomic_load(&shop.ended), COUNT);
}

/* ---- long jobs ---- */

/* A job that runs until it must yield, and the second time until the shop opens. */
typedef struct LongJob {
    WorkerJob job;
    Shop *shop;
    _Atomic int begun;
    _Atomic int yielded;
    _Atomic int ended;
} LongJob;

static void work_long(WorkerJob *job)
{
    LongJob *self = CONTAINER_OF(job, LongJob, job);
    atomic_fetch_add(&self->begun, 1);
    while (!atomic_load(&self->shop->open)) {
        if (worker_must_yield(job)) {
            atomic_fetch_add(&self->yielded, 1);
            worker_post_long(job);
            return;
        }
        (void)usleep(100);
    }
    atomic_fetch_add(&self->ended, 1);
}

/* Two threads, two long jobs: one of them makes room for the short ones, and loses nothing but the
 * time that it has run. */
static void long_jobs_leave_a_thread_to_short_ones(void **state)
{
    (void)state;
    enum { COUNT = 20 };
    AUTO(workers_close) Workers *workers = workers_open("test", 2, 100);
    Shop shop = {0};
    LongJob jobs[2] = {{.job.run = work_long, .shop = &shop},
                       {.job.run = work_long, .shop = &shop}};
    for (int i = 0; i < 2; i++) {
        assert_true(workers_post(workers, &jobs[i].job));
        wait_for(&jobs[i].begun, 1);
    }
    (void)usleep(20000);
    for (int i = 0; i < 2; i++) /* nobody waits, so nobody yields */
        assert_int_equal(atomic_load(&jobs[i].yielded), 0);
    Job quick[COUNT];
    for (int i = 0; i < COUNT; i++) {
        quick[i] = make_job(&shop, false);
        assert_true(workers_post(workers, &quick[i].job));
        wait_for(&shop.ended, i + 1);
    }
    /* The same one, whenever no short one is there for the thread. */
    assert_int_equal(atomic_load(&jobs[0].yielded) == 0, atomic_load(&jobs[1].yielded) > 0);
    assert_int_equal(atomic_load(&jobs[0].ended) + atomic_load(&jobs[1].ended), 0);
    atomic_store(&shop.open, true);
    for (int i = 0; i < 2; i++) {
        wait_for(&jobs[i].ended, 1);
        assert_int_equal(atomic_load(&jobs[i].begun), 1 + atomic_load(&jobs[i].yielded));
    }
}

static void a_single_thread_is_not_given_up(void **state)
{
    (void)state;
    AUTO(workers_close) Workers *workers = workers_open("test", 1, 100);
    Shop shop = {0};
    LongJob job = {.job.run = work_long, .shop = &shop};
    Job quick = make_job(&shop, false);
    assert_true(workers_post(workers, &job.job));
    wait_for(&job.begun, 1);
    assert_true(workers_post(workers, &quick.job));
    (void)usleep(20000);
    assert_int_equal(atomic_load(&job.yielded), 0);
    atomic_store(&shop.open, true);
    wait_for(&shop.ended, 1);
}

static void closing_runs_those_that_had_to_yield(void **state)
{
    (void)state;
    enum { COUNT = 10 };
    Shop shop = {0};
    LongJob jobs[COUNT];
    Job quick[COUNT];
    Workers *workers = workers_open("test", 4, 100);
    for (int i = 0; i < COUNT; i++) {
        jobs[i] = (LongJob){.job.run = work_long, .shop = &shop};
        quick[i] = make_job(&shop, false);
        assert_true(workers_post(workers, &jobs[i].job));
        assert_true(workers_post(workers, &quick[i].job));
    }
    wait_for(&shop.ended, COUNT);
    atomic_store(&shop.open, true);
    workers_close(workers);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(atomic_load(&jobs[i].ended), 1);
        assert_int_equal(atomic_load(&jobs[i].begun), 1 + atomic_load(&jobs[i].yielded));
    }
}

enum { POSTERS = 4, POSTS = 2000 };

typedef struct Poster {
    pthread_t thread;
    Workers *workers;
    Shop *shop;
    Job *jobs;
    int taken;
} Poster;

static void *post_many(void *arg)
{
    Poster *self = arg;
    for (int i = 0; i < POSTS; i++) {
        self->jobs[i] = make_job(self->shop, false);
        self->taken += workers_post(self->workers, &self->jobs[i].job) ? 1 : 0;
    }
    return NULL;
}

static void many_threads_may_post(void **state)
{
    (void)state;
    Shop shop = {0};
    Workers *workers = workers_open("test", 3, 64);
    Poster posters[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        posters[i] = (Poster){.workers = workers, .shop = &shop, .jobs = MEM_NEW_ARRAY(Job, POSTS)};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]), 0);
    }
    int taken = 0;
    for (int i = 0; i < POSTERS; i++) {
        assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
        taken += posters[i].taken;
    }
    workers_close(workers);
    assert_true(taken > 0);
    assert_int_equal(atomic_load(&shop.ended), taken);
    assert_true(atomic_load(&shop.running_max) <= 3);
    for (int i = 0; i < POSTERS; i++)
        mem_free(posters[i].jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_runs_on_another_thread),
        cmocka_unit_test(nothing_posted_costs_nothing),
        cmocka_unit_test(one_thread_is_enough_for_jobs_that_do_not_meet),
        cmocka_unit_test(as_many_run_at_once_as_there_may_be_threads),
        cmocka_unit_test(jobs_begin_in_the_order_of_their_posting),
        cmocka_unit_test(spare_jobs_begin_when_nothing_else_waits),
        cmocka_unit_test(more_than_may_wait_is_refused_and_not_touched),
        cmocka_unit_test(closing_runs_what_was_taken),
        cmocka_unit_test(long_jobs_leave_a_thread_to_short_ones),
        cmocka_unit_test(a_single_thread_is_not_given_up),
        cmocka_unit_test(closing_runs_those_that_had_to_yield),
        cmocka_unit_test(many_threads_may_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
