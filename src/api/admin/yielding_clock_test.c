/* yielding_clock_test.c - the time of a job that makes way for others, and that ends with its
 * client. */
#include "api/admin/yielding_clock_int.h"

#include "base/latch.h"
#include "base/testing.h"
#include "base/workers.h"

#include <unistd.h>

static void it_follows_the_real_clock_until_the_client_has_gone(void **state)
{
    (void)state;
    FakeClock real;
    fake_clock_init(&real, 5000);
    _Atomic bool is_abandoned = false;
    YieldingClock clock;
    yielding_clock_init(&clock, &real.clock, &is_abandoned);
    assert_int_equal(clock_monotonic_us(&clock.clock), 5000);
    fake_clock_advance(&real, 70);
    assert_int_equal(clock_monotonic_us(&clock.clock), 5070);
    assert_int_equal(clock_wall_us(&clock.clock), clock_wall_us(&real.clock));
    atomic_store(&is_abandoned, true);
    assert_true(clock_monotonic_us(&clock.clock) == UINT64_MAX);
}

typedef struct Reader {
    WorkerJob job;
    Latch *done;
    _Atomic bool *has_other_run;
    _Atomic bool is_abandoned;
    uint64_t waited_us;
} Reader;

static void read_until_the_other_has_run(WorkerJob *job)
{
    Reader *reader = CONTAINER_OF(job, Reader, job);
    YieldingClock clock;
    yielding_clock_init(&clock, clock_real(), &reader->is_abandoned);
    uint64_t last_us = 0;
    while (!atomic_load(reader->has_other_run)) {
        uint64_t now_us = clock_monotonic_us(&clock.clock);
        assert_true(now_us >= last_us);
        last_us = now_us;
    }
    reader->waited_us = clock.waited_us;
    latch_post(reader->done);
}

typedef struct Other {
    WorkerJob job;
    Latch *done;
    _Atomic bool has_run;
} Other;

static void take_a_while(WorkerJob *job)
{
    Other *other = CONTAINER_OF(job, Other, job);
    (void)usleep(20000); /* long enough to be counted as a wait of the reader */
    atomic_store(&other->has_run, true);
    latch_post(other->done);
}

/* With one turn the other job runs only if the reader gives it away. */
static void who_reads_it_makes_way_and_the_wait_does_not_count(void **state)
{
    (void)state;
    Workers *workers = workers_open_sharing("test", 1, 2, 8, clock_real());
    Latch done;
    latch_init(&done);
    Other other = {.job = {.run = take_a_while}, .done = &done};
    Reader reader = {.job = {.run = read_until_the_other_has_run},
                     .done = &done,
                     .has_other_run = &other.has_run};
    assert_true(workers_post(workers, &reader.job));
    assert_true(workers_post(workers, &other.job));
    latch_wait(&done);
    latch_wait(&done);
    workers_close(workers);
    latch_done(&done);
    assert_true(reader.waited_us >= 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_follows_the_real_clock_until_the_client_has_gone),
        cmocka_unit_test(who_reads_it_makes_way_and_the_wait_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
