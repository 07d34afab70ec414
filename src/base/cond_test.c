/* cond_test.c - a bounded wait ends by itself, and by a signal. */
#include "base/cond.h"

#include "base/clock.h"
#include "base/testing.h"
#include "base/thread.h"

typedef struct Scene {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_changed;
} Scene;

static void *change(void *arg)
{
    Scene *scene = arg;
    (void)pthread_mutex_lock(&scene->lock);
    scene->is_changed = true;
    (void)pthread_cond_signal(&scene->changed);
    (void)pthread_mutex_unlock(&scene->lock);
    return NULL;
}

static void a_wait_ends_when_its_time_has_come(void **state)
{
    (void)state;
    Scene scene = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    uint64_t until_us = cond_after_ms(20);
    (void)pthread_mutex_lock(&scene.lock);
    while (cond_wait_until(&scene.changed, &scene.lock, until_us))
        continue; /* woken for no reason */
    assert_false(cond_wait_until(&scene.changed, &scene.lock, 0));
    (void)pthread_mutex_unlock(&scene.lock);
    assert_true(clock_monotonic_us(clock_real()) >= until_us);
}

static void a_signal_ends_it_earlier(void **state)
{
    (void)state;
    Scene scene = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    Error err;
    (void)pthread_mutex_lock(&scene.lock);
    assert_int_equal(thread_start(&thread, "test", change, &scene, &err), STATUS_OK);
    uint64_t until_us = cond_after_ms(600000);
    while (!scene.is_changed)
        assert_true(cond_wait_until(&scene.changed, &scene.lock, until_us));
    (void)pthread_mutex_unlock(&scene.lock);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_ends_when_its_time_has_come),
        cmocka_unit_test(a_signal_ends_it_earlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
