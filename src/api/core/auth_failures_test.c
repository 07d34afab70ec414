/* auth_failures_test.c - when an address is refused, and when no more. */
#include "api/core/auth_failures.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECOND ((uint64_t)1000000)

static const HttpClient BAD = {.number = 1};
static const HttpClient GOOD = {.number = 2};

static bool refuses(AuthFailures *failures, HttpClient client, uint64_t now_us)
{
    uint32_t wait_ms = 0;
    bool is_refused = auth_failures_refuses(failures, client, now_us, &wait_ms);
    if (is_refused)
        assert_in_range(wait_ms, 1000, AUTH_FAILURES_WINDOW_S * 1000);
    return is_refused;
}

static void the_last_failure_that_is_allowed_is_the_last(void **state)
{
    (void)state;
    AUTO(auth_failures_close) AuthFailures *failures = auth_failures_open(5);
    for (int i = 0; i < 4; i++) {
        assert_false(auth_failures_note(failures, BAD, SECOND * 100));
        assert_false(refuses(failures, BAD, SECOND * 100));
    }
    assert_true(auth_failures_note(failures, BAD, SECOND * 100));
    assert_true(refuses(failures, BAD, SECOND * 100));
    assert_false(refuses(failures, GOOD, SECOND * 100));
    assert_false(auth_failures_note(failures, BAD, SECOND * 100)); /* it was said already */
    assert_true(refuses(failures, BAD, SECOND * 100));
}

static void it_is_over_when_the_time_since_the_first_one_has_passed(void **state)
{
    (void)state;
    AUTO(auth_failures_close) AuthFailures *failures = auth_failures_open(2);
    uint64_t begun = SECOND * 1000;
    uint64_t end = begun + SECOND * AUTH_FAILURES_WINDOW_S;
    assert_false(auth_failures_note(failures, BAD, begun));
    assert_true(auth_failures_note(failures, BAD, begun + SECOND * 30));
    uint32_t wait_ms = 0;
    assert_true(auth_failures_refuses(failures, BAD, begun + SECOND * 40, &wait_ms));
    assert_int_equal(wait_ms, 20000);
    assert_true(refuses(failures, BAD, end - 1));
    assert_false(refuses(failures, BAD, end));
    /* And begins again. */
    assert_false(auth_failures_note(failures, BAD, end));
    assert_true(auth_failures_note(failures, BAD, end + 1));
    assert_true(refuses(failures, BAD, end + 2));
}

static void failures_that_are_far_apart_are_forgiven(void **state)
{
    (void)state;
    AUTO(auth_failures_close) AuthFailures *failures = auth_failures_open(2);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t now_us = i * SECOND * AUTH_FAILURES_WINDOW_S;
        assert_false(auth_failures_note(failures, BAD, now_us));
        assert_false(refuses(failures, BAD, now_us));
    }
}

/* A thread may be late with a failure, by what the clock said when its request came. */
static void a_clock_that_is_a_little_behind_does_no_harm(void **state)
{
    (void)state;
    AUTO(auth_failures_close) AuthFailures *failures = auth_failures_open(2);
    assert_false(auth_failures_note(failures, BAD, SECOND * 100));
    assert_true(auth_failures_note(failures, BAD, SECOND * 99));
    assert_true(refuses(failures, BAD, SECOND * 100));
    assert_false(refuses(failures, GOOD, SECOND * 98));
}

/* Many addresses fail, each a little less than it may: hardly another one is refused. */
static void a_crowd_does_not_lock_others_out(void **state)
{
    (void)state;
    enum { CROWD = 10000, MAX = 10 };
    AUTO(auth_failures_close) AuthFailures *failures = auth_failures_open(MAX);
    for (uint64_t i = 0; i < CROWD; i++)
        for (int j = 0; j < MAX - 1; j++)
            (void)auth_failures_note(failures, (HttpClient){.number = 1000 + i}, SECOND);
    for (int j = 0; j < MAX; j++)
        (void)auth_failures_note(failures, BAD, SECOND);
    assert_true(refuses(failures, BAD, SECOND));
    int refused = 0;
    for (uint64_t i = 0; i < CROWD; i++)
        refused += refuses(failures, (HttpClient){.number = 1000000 + i}, SECOND);
    assert_true(refused < CROWD / 10); /* with as many cells as there are; not with one row */
}

enum { THREADS = 4, ROUNDS = 5000 };

static void *fail_often(void *arg)
{
    intptr_t told = 0;
    for (int i = 0; i < ROUNDS; i++)
        told += auth_failures_note(arg, BAD, SECOND * 7);
    return (void *)told; // NOLINT(performance-no-int-to-ptr)
}

static void threads_lose_no_failure(void **state)
{
    (void)state;
    AUTO(auth_failures_close) AuthFailures *failures = auth_failures_open(THREADS * ROUNDS);
    pthread_t threads[THREADS];
    intptr_t told = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, fail_often, failures), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        told += (intptr_t)result;
    }
    assert_true(told >= 1);
    assert_true(refuses(failures, BAD, SECOND * 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_failure_that_is_allowed_is_the_last),
        cmocka_unit_test(it_is_over_when_the_time_since_the_first_one_has_passed),
        cmocka_unit_test(failures_that_are_far_apart_are_forgiven),
        cmocka_unit_test(a_clock_that_is_a_little_behind_does_no_harm),
        cmocka_unit_test(a_crowd_does_not_lock_others_out),
        cmocka_unit_test(threads_lose_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
