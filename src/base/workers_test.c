/* workers_test.c - jobs run once, in order, on no more threads than allowed: I7. */
#include "base/workers.h"

#include "base/mem.h"
#include "base/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

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

/* ---- sharing ---- */

enum { STEP_US = WORKER_SLICE_US, STEPS_MAX = 4096 };

/* What jobs do that share one turn, in the order in which they do it. Only the one that has the
 * turn touches it. */
typedef struct Stage {
    Workers *workers;
    FakeClock clock;
    char log[STEPS_MAX]; /* a letter for each step */
    size_t len;
    _Atomic int ended;
} Stage;

/* Takes 'steps' steps, and lets others run after each. */
typedef struct Actor {
    WorkerJob job;
    Stage *stage;
    char letter;
    int steps;
    int steps_done;
    struct Actor *posts; /* after its first step; NULL if none */
    size_t post_count;
    uint64_t waited_us;
    bool saw_crowd;
} Actor;

static void act(WorkerJob *job)
{
    Actor *self = CONTAINER_OF(job, Actor, job);
    Stage *stage = self->stage;
    while (self->steps_done < self->steps) {
        assert_true(stage->len < STEPS_MAX);
        stage->log[stage->len++] = self->letter;
        fake_clock_advance(&stage->clock, STEP_US);
        if (self->steps_done++ == 0) {
            for (size_t i = 0; i < self->post_count; i++)
                assert_true(workers_post(stage->workers, &self->posts[i].job));
        }
        self->saw_crowd = self->saw_crowd || worker_is_crowded();
        self->waited_us += worker_yield();
    }
    atomic_fetch_add(&stage->ended, 1);
}

static Actor make_actor(Stage *stage, char letter, int steps)
{
    return (Actor){.job.run = act, .stage = stage, .letter = letter, .steps = steps};
}

/* Runs an actor and all that it posts to their ends. */
static void play(Stage *stage, Actor *first, uint32_t threads_max)
{
    fake_clock_init(&stage->clock, 1000000);
    stage->workers = workers_open_sharing("test", 1, threads_max, 100, &stage->clock.clock);
    assert_true(workers_post(stage->workers, &first->job));
    workers_close(stage->workers);
    stage->log[stage->len < STEPS_MAX ? stage->len : STEPS_MAX - 1] = '\0';
}

static size_t last_of(const Stage *stage, char letter)
{
    const char *found = strrchr(stage->log, letter);
    assert_non_null(found);
    return (size_t)(found - stage->log);
}

static void a_short_job_is_over_while_a_long_one_runs(void **state)
{
    (void)state;
    Stage stage = {0};
    Actor shorts[] = {make_actor(&stage, 'b', 1), make_actor(&stage, 'c', 2)};
    Actor longest = make_actor(&stage, 'A', 50);
    longest.posts = shorts;
    longest.post_count = ARRAY_COUNT(shorts);
    play(&stage, &longest, 8);
    assert_int_equal(atomic_load(&stage.ended), 3);
    assert_int_equal(stage.len, 53);
    assert_memory_equal(stage.log, "Abcc", 4); /* both are over after a slice of the long one */
    assert_int_equal(longest.waited_us, 3 * STEP_US);
}

static void jobs_that_run_for_long_share_evenly(void **state)
{
    (void)state;
    Stage stage = {0};
    Actor others[] = {make_actor(&stage, 'b', 500), make_actor(&stage, 'c', 500)};
    Actor first = make_actor(&stage, 'a', 500);
    first.posts = others;
    first.post_count = ARRAY_COUNT(others);
    play(&stage, &first, 8);
    int steps[3] = {0};
    size_t changes = 0;
    for (size_t i = 0; i < stage.len; i++) {
        steps[stage.log[i] - 'a']++;
        changes += i > 0 && stage.log[i] != stage.log[i - 1];
        int most = 0;
        int least = 500;
        for (size_t j = 0; j < 3; j++) {
            most = steps[j] > most ? steps[j] : most;
            least = steps[j] < least ? steps[j] : least;
        }
        assert_true(most - least <= 50); /* what SLICE_US_MAX lets one be ahead, and then another */
    }
    assert_int_equal(stage.len, 1500);
    assert_true(changes < 300); /* and they do not change at every step */
}

/* Each short job posts the next one, so that there is always a new one. */
static void a_long_job_does_not_starve_while_new_ones_come(void **state)
{
    (void)state;
    enum { SHORTS = 400, THREADS = 8 };
    Stage stage = {0};
    static Actor shorts[SHORTS];
    for (size_t i = 0; i < SHORTS; i++) {
        shorts[i] = make_actor(&stage, 's', 2);
        shorts[i].posts = i + 1 < SHORTS ? &shorts[i + 1] : NULL;
        shorts[i].post_count = i + 1 < SHORTS;
    }
    Actor longest = make_actor(&stage, 'L', 1000);
    longest.posts = shorts;
    longest.post_count = 1;
    play(&stage, &longest, THREADS);
    size_t end = last_of(&stage, 's');
    int beside = 0;
    for (size_t i = 0; i < end; i++)
        beside += stage.log[i] == 'L';
    assert_int_equal(stage.len, 1000 + 2 * SHORTS);
    /* Every so many turns one of those that wait has its turn, and there are at most so many. */
    assert_true(beside >= 2 * SHORTS / (WORKER_OLDEST_EVERY * THREADS));
    assert_true(beside <= SHORTS); /* and the new ones do not wait for it */
}

static void jobs_beyond_the_threads_wait_and_are_told_of(void **state)
{
    (void)state;
    Stage stage = {0};
    Actor others[] = {make_actor(&stage, 'b', 3), make_actor(&stage, 'c', 3)};
    Actor first = make_actor(&stage, 'a', 10);
    first.posts = others;
    first.post_count = ARRAY_COUNT(others);
    play(&stage, &first, 2);
    assert_int_equal(atomic_load(&stage.ended), 3);
    assert_true(others[0].saw_crowd); /* 'c' has no thread while 'a' and 'b' have begun */
    assert_false(others[1].saw_crowd);
    assert_true(strrchr(stage.log, 'b') < strchr(stage.log, 'c'));
}

static void a_thread_of_no_pool_does_not_give_way(void **state)
{
    (void)state;
    assert_int_equal(worker_yield(), 0);
    assert_false(worker_is_crowded());
    worker_begin_wait();
    worker_end_wait();
}

/* A job that waits for its helper, which needs the only turn there is. */
typedef struct Asker {
    WorkerJob job;
    WorkerJob helper;
    Stage *stage;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_helped;
    uint64_t waited_us;
} Asker;

static void help(WorkerJob *job)
{
    Asker *asker = CONTAINER_OF(job, Asker, helper);
    fake_clock_advance(&asker->stage->clock, STEP_US);
    (void)pthread_mutex_lock(&asker->lock);
    asker->is_helped = true;
    (void)pthread_cond_signal(&asker->changed);
    (void)pthread_mutex_unlock(&asker->lock);
}

static void ask(WorkerJob *job)
{
    Asker *asker = CONTAINER_OF(job, Asker, job);
    assert_true(workers_post_spare(asker->stage->workers, &asker->helper));
    (void)pthread_mutex_lock(&asker->lock);
    while (!asker->is_helped) {
        worker_begin_wait();
        (void)pthread_cond_wait(&asker->changed, &asker->lock);
        (void)pthread_mutex_unlock(&asker->lock);
        worker_end_wait();
        (void)pthread_mutex_lock(&asker->lock);
    }
    (void)pthread_mutex_unlock(&asker->lock);
    asker->waited_us = worker_yield();
}

static void a_job_that_waits_for_another_gives_its_turn_away(void **state)
{
    (void)state;
    Stage stage = {0};
    Asker asker = {.job.run = ask,
                   .helper.run = help,
                   .stage = &stage,
                   .lock = PTHREAD_MUTEX_INITIALIZER,
                   .changed = PTHREAD_COND_INITIALIZER};
    fake_clock_init(&stage.clock, 1000000);
    stage.workers = workers_open_sharing("test", 1, 4, 100, &stage.clock.clock);
    assert_true(workers_post(stage.workers, &asker.job));
    workers_close(stage.workers);
    assert_true(asker.is_helped);
    assert_int_equal(asker.waited_us, 0); /* the helper's time is no wait for a turn */
}

/* Many threads, real time: a job that runs holds one of the turns. */
typedef struct Runner {
    WorkerJob job;
    Shop *shop;
} Runner;

static void run_and_share(WorkerJob *job)
{
    Shop *shop = CONTAINER_OF(job, Runner, job)->shop;
    for (int i = 0; i < 50; i++) {
        int running = atomic_fetch_add(&shop->running, 1) + 1;
        int max = atomic_load(&shop->running_max);
        while (running > max && !atomic_compare_exchange_weak(&shop->running_max, &max, running))
            continue;
        uint64_t end_us = clock_monotonic_us(clock_real()) + 200;
        while (clock_monotonic_us(clock_real()) < end_us)
            continue;
        atomic_fetch_sub(&shop->running, 1);
        (void)worker_yield();
    }
    atomic_fetch_add(&shop->ended, 1);
}

static void no_more_run_than_there_are_turns(void **state)
{
    (void)state;
    enum { TURNS = 2, COUNT = 24, THREADS = 8 };
    Shop shop = {0};
    Runner runners[COUNT];
    Workers *workers = workers_open_sharing("test", TURNS, THREADS, COUNT, clock_real());
    assert_int_equal(workers_turns(workers), TURNS);
    for (int i = 0; i < COUNT; i++) {
        runners[i] = (Runner){.job.run = run_and_share, .shop = &shop};
        assert_true(workers_post(workers, &runners[i].job));
    }
    workers_close(workers); /* also those that wait in the middle of their work */
    assert_int_equal(atomic_load(&shop.ended), COUNT);
    assert_int_equal(atomic_load(&shop.running_max), TURNS);
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
        cmocka_unit_test(a_short_job_is_over_while_a_long_one_runs),
        cmocka_unit_test(jobs_that_run_for_long_share_evenly),
        cmocka_unit_test(a_long_job_does_not_starve_while_new_ones_come),
        cmocka_unit_test(jobs_beyond_the_threads_wait_and_are_told_of),
        cmocka_unit_test(a_thread_of_no_pool_does_not_give_way),
        cmocka_unit_test(a_job_that_waits_for_another_gives_its_turn_away),
        cmocka_unit_test(no_more_run_than_there_are_turns),
        cmocka_unit_test(many_threads_may_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
