/* document_clock_test.c - the time of a page: what it spends, with and without other jobs that
 * wait. */
#include "api/items/document_clock_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

enum { SECOND_US = 1000000, PAGE_US = 5 * SECOND_US };

static uint64_t look(DocumentClock *clock)
{
    return clock_monotonic_us(&clock->clock);
}

static uint64_t look_at_pauses(DocumentClock *clock)
{
    return clock_monotonic_us(&clock->pauses);
}

static void alone_a_page_has_the_real_time(void **state)
{
    (void)state;
    FakeClock real;
    fake_clock_init(&real, SECOND_US);
    _Atomic bool is_cancelled = false;
    DocumentClock page;
    document_clock_begin(&page, &real.clock, &is_cancelled, PAGE_US);
    assert_int_equal(page.deadline_us, SECOND_US + PAGE_US);
    for (uint64_t at_us = SECOND_US; at_us < 20 * (uint64_t)SECOND_US; at_us += SECOND_US / 2) {
        assert_int_equal(look(&page), at_us);
        assert_int_equal(look_at_pauses(&page), at_us);
        assert_int_equal(clock_wall_us(&page.clock), clock_wall_us(&real.clock));
        assert_int_equal(clock_wall_us(&page.pauses), clock_wall_us(&real.clock));
        fake_clock_advance(&real, SECOND_US / 2);
    }
    assert_int_equal(document_clock_us(&page), 19 * SECOND_US);
    assert_int_equal(clock_monotonic_us(&page.meter) - page.begun_us, 19 * SECOND_US);
    assert_int_equal(clock_wall_us(&page.meter), clock_wall_us(&real.clock));
}

static void a_page_that_nobody_waits_for_is_over_at_once(void **state)
{
    (void)state;
    FakeClock real;
    fake_clock_init(&real, SECOND_US);
    _Atomic bool is_cancelled = false;
    DocumentClock page;
    document_clock_begin(&page, &real.clock, &is_cancelled, PAGE_US);
    fake_clock_advance(&real, 1000);
    assert_int_equal(look(&page), 1001000);
    atomic_store(&is_cancelled, true);
    uint64_t last_us = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t now_us = look(&page);
        assert_true(now_us > SECOND_US + PAGE_US + SECOND_US); /* also for what had begun */
        assert_true(now_us >= last_us);
        last_us = now_us;
        fake_clock_advance(&real, SECOND_US);
    }
    assert_int_equal(document_clock_us(&page), 10001000);
}

/* A page that shares the only turn with another job, which takes 'other_us' while it waits. */
typedef struct Scene {
    Workers *workers;
    FakeClock real;
    DocumentClock clock;
    WorkerJob page;
    WorkerJob other;
    uint64_t other_us;
    _Atomic bool is_cancelled;
    uint64_t spent_us;  /* what the clock says then, since the beginning */
    uint64_t pauses_us; /* and the other one */
} Scene;

static void run_other(WorkerJob *job)
{
    Scene *scene = CONTAINER_OF(job, Scene, other);
    fake_clock_advance(&scene->real, scene->other_us);
}

static void run_page(WorkerJob *job)
{
    Scene *scene = CONTAINER_OF(job, Scene, page);
    document_clock_begin(&scene->clock, &scene->real.clock, &scene->is_cancelled, PAGE_US);
    fake_clock_advance(&scene->real, SECOND_US);
    assert_true(workers_post(scene->workers, &scene->other));
    scene->spent_us = look(&scene->clock) - scene->clock.begun_us;
    scene->pauses_us = look_at_pauses(&scene->clock) - scene->clock.begun_us;
}

static void play(Scene *scene, uint64_t other_us)
{
    *scene = (Scene){.other_us = other_us, .page.run = run_page, .other.run = run_other};
    fake_clock_init(&scene->real, SECOND_US);
    scene->workers = workers_open_sharing("test", 1, 4, 10, &scene->real.clock);
    assert_true(workers_post(scene->workers, &scene->page));
    workers_close(scene->workers);
}

static void the_clock_stands_still_while_a_page_waits_for_its_turn(void **state)
{
    (void)state;
    static const struct {
        uint64_t other_us;
        uint64_t spent_us;
        uint64_t pauses_us;
    } rows[] = {
        {0, SECOND_US, SECOND_US},
        {3 * SECOND_US, SECOND_US, SECOND_US},
        {4 * SECOND_US, SECOND_US, PAGE_US}, /* a page that can end does, by the wall */
        {28 * SECOND_US, SECOND_US, PAGE_US},
        {29 * SECOND_US, PAGE_US, PAGE_US}, /* and then every page */
        {31 * SECOND_US, PAGE_US + 2 * SECOND_US, PAGE_US + 2 * SECOND_US},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Scene scene;
        play(&scene, rows[i].other_us);
        assert_int_equal(scene.spent_us, rows[i].spent_us);
        assert_in_range(scene.pauses_us, rows[i].pauses_us, rows[i].pauses_us + 2 * SECOND_US);
        assert_int_equal(document_clock_us(&scene.clock), SECOND_US + rows[i].other_us);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_a_page_has_the_real_time),
        cmocka_unit_test(a_page_that_nobody_waits_for_is_over_at_once),
        cmocka_unit_test(the_clock_stands_still_while_a_page_waits_for_its_turn),
    };
    return cmocka_run_group_tests_name("the time of a page", tests, NULL, NULL);
}
