/* page_clock_test.c - the time of a page is over early exactly when others wait for its worker, or
 * nobody for the page. */
#include "api/page_clock_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

enum { SECOND_US = 1000000, PAGE_US = 5 * SECOND_US };

/* One job holds the thread that is for long ones; the other looks at its clock. */
typedef struct Scene {
    Workers *workers;
    FakeClock real;
    PageClock clock;
    WorkerJob holder;
    WorkerJob page;
    WorkerJob other;
    _Atomic bool is_held;
    _Atomic bool is_over;
    _Atomic bool has_other;
    _Atomic bool is_other_done;
    _Atomic bool is_cancelled;
    bool others_wait;
    uint64_t times_us[6];
} Scene;

static void hold(WorkerJob *job)
{
    Scene *scene = CONTAINER_OF(job, Scene, holder);
    atomic_store(&scene->is_held, !worker_must_yield(job));
    while (!atomic_load(&scene->is_over))
        (void)usleep(100);
}

static void run_other(WorkerJob *job)
{
    atomic_store(&CONTAINER_OF(job, Scene, other)->is_other_done, true);
}

static uint64_t look(Scene *scene)
{
    return clock_monotonic_us(&scene->clock.clock);
}

static void run_page(WorkerJob *job)
{
    Scene *scene = CONTAINER_OF(job, Scene, page);
    page_clock_begin(&scene->clock, &scene->real.clock, job, &scene->is_cancelled, PAGE_US);
    if (scene->others_wait) {
        atomic_store(&scene->has_other, workers_post(scene->workers, &scene->other));
    }
    static const uint64_t steps_us[] = {0, SECOND_US / 10, SECOND_US, 1000, SECOND_US, PAGE_US};
    for (size_t i = 0; i < ARRAY_COUNT(steps_us); i++) {
        fake_clock_advance(&scene->real, steps_us[i]);
        scene->times_us[i] = look(scene);
    }
    atomic_store(&scene->is_over, true);
}

static void play(Scene *scene, bool others_wait)
{
    *scene = (Scene){.others_wait = others_wait,
                     .holder.run = hold,
                     .page.run = run_page,
                     .other.run = run_other};
    fake_clock_init(&scene->real, SECOND_US);
    scene->workers = workers_open("test", 2, 10);
    assert_true(workers_post(scene->workers, &scene->holder));
    for (int i = 0; !atomic_load(&scene->is_held) && i < 10000; i++)
        (void)usleep(1000);
    assert_true(atomic_load(&scene->is_held));
    assert_true(workers_post(scene->workers, &scene->page));
    workers_close(scene->workers);
    assert_int_equal(atomic_load(&scene->is_other_done), others_wait);
}

static void alone_a_page_has_all_of_its_time(void **state)
{
    (void)state;
    Scene scene;
    play(&scene, false);
    static const uint64_t expected_us[] = {1000000, 1100000, 2100000, 2101000, 3101000, 8101000};
    for (size_t i = 0; i < ARRAY_COUNT(expected_us); i++)
        assert_int_equal(scene.times_us[i], expected_us[i]);
    assert_int_equal(scene.clock.over_us, 0);
    assert_int_equal(page_clock_us(&scene.clock), 7101000);
}

static void with_others_waiting_a_long_page_is_over(void **state)
{
    (void)state;
    Scene scene;
    play(&scene, true);
    const uint64_t deadline_us = SECOND_US + PAGE_US;
    assert_int_equal(scene.times_us[0], 1000000); /* it is not long yet */
    assert_int_equal(scene.times_us[1], 1100000);
    assert_int_equal(scene.times_us[2], deadline_us);
    assert_int_equal(scene.times_us[3], deadline_us);
    assert_true(scene.times_us[4] > deadline_us + SECOND_US); /* also for what had begun */
    assert_true(scene.times_us[5] >= scene.times_us[4]);      /* and time does not go back */
    assert_int_equal(scene.clock.over_us, 2100000);
    assert_int_equal(page_clock_us(&scene.clock), 7101000);
    assert_int_equal(clock_wall_us(&scene.clock.clock), clock_wall_us(&scene.real.clock));
    assert_int_equal(clock_monotonic_us(&scene.clock.shared), 8101000); /* helpers end with it */
}

static void a_page_that_nobody_waits_for_is_over_at_once(void **state)
{
    (void)state;
    Scene scene = {0};
    fake_clock_init(&scene.real, SECOND_US);
    page_clock_begin(&scene.clock, &scene.real.clock, &scene.page, &scene.is_cancelled, PAGE_US);
    fake_clock_advance(&scene.real, 1000);
    assert_int_equal(look(&scene), 1001000);
    assert_int_equal(clock_monotonic_us(&scene.clock.shared), 1001000);
    assert_int_equal(clock_wall_us(&scene.clock.shared), clock_wall_us(&scene.real.clock));
    atomic_store(&scene.is_cancelled, true);
    uint64_t last_us = 0;
    for (int i = 0; i < 10; i++) {
        uint64_t now_us = look(&scene);
        assert_true(now_us > SECOND_US + PAGE_US + SECOND_US); /* also for what had begun */
        assert_true(now_us >= last_us);
        assert_int_equal(clock_monotonic_us(&scene.clock.shared), now_us); /* for helpers as well */
        last_us = now_us;
        fake_clock_advance(&scene.real, SECOND_US);
    }
    assert_int_equal(page_clock_us(&scene.clock), 10001000);
    assert_int_equal(scene.clock.over_us, 0); /* nobody else waits, so it is not begun again */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_a_page_has_all_of_its_time),
        cmocka_unit_test(with_others_waiting_a_long_page_is_over),
        cmocka_unit_test(a_page_that_nobody_waits_for_is_over_at_once),
    };
    return cmocka_run_group_tests_name("the time of a page", tests, NULL, NULL);
}
