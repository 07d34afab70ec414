/* pacing_test.c - what is throttled slows down, what is accepted speeds up, units are not exceeded.
 */
#include "transfer/pacing.h"

#include "base/testing.h"

static void accepted_requests_make_room_for_more(void **state)
{
    (void)state;
    Pace pace;
    pace_init(&pace, 10);
    uint32_t before = 0;
    while (pace_may_start(&pace, 0)) {
        pace_start(&pace);
        before++;
    }
    for (int i = 0; i < 20; i++) {
        pace_accepted(&pace);
        pace_start(&pace);
    }
    assert_true(before < 10);
    while (pace_may_start(&pace, 0))
        pace_start(&pace);
    assert_int_equal(pace.active, 10);
    Pace single;
    pace_init(&single, 1);
    assert_true(pace_may_start(&single, 0));
    pace_start(&single);
    assert_false(pace_may_start(&single, 0));
}

static void throttled_requests_wait_and_take_room_once(void **state)
{
    (void)state;
    Pace pace;
    pace_init(&pace, 100);
    pace.limit = 30;
    for (int i = 0; i < 3; i++)
        pace_start(&pace);
    for (int i = 0; i < 3; i++) /* all started before the first was throttled */
        pace_throttled(&pace, 7, 50, 10, 1000);
    assert_int_equal((int)pace.limit, 20);
    assert_int_equal(pace_operations(&pace), 7);
    assert_false(pace_may_start(&pace, 1000 + 49999));
    assert_true(pace_may_start(&pace, 1000 + 50000));
    for (int i = 0; i < 100; i++) {
        pace_start(&pace);
        pace_throttled(&pace, 0, 0, 60000 + (uint64_t)i * 1000, 60000 + (uint64_t)i * 1000);
    }
    assert_int_equal((int)pace.limit, 1);
    assert_int_equal(pace_operations(&pace), 1);
    for (int i = 0; i < 200; i++) {
        pace_start(&pace);
        pace_accepted(&pace);
    }
    assert_int_equal((int)pace.limit, 100);
    assert_int_equal(pace_operations(&pace), PACE_OPERATIONS_MAX);
}

static void failures_wait_longer_each_time(void **state)
{
    (void)state;
    uint32_t before = 0;
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(pace_backoff_ms(i) > before);
        before = pace_backoff_ms(i);
    }
    assert_int_equal(pace_backoff_ms(8), before);
    assert_int_equal(pace_backoff_ms(UINT32_MAX), before);
    Pace pace;
    pace_init(&pace, 1);
    pace_start(&pace);
    pace_failed(&pace, 20, 5);
    assert_false(pace_may_start(&pace, 20004));
    assert_true(pace_may_start(&pace, 20005));
}

/* Requests of 'operations' that cost 'each', as fast as the limit allows; returns the RU used. */
static double use_for(RuLimit *limit, uint64_t until_us, uint32_t wanted, double each)
{
    double used = 0;
    uint64_t now_us = limit->at_us;
    while (now_us < until_us) {
        double reserved = 0;
        uint32_t wait_ms = 0;
        uint32_t operations = ru_limit_operations(limit, wanted);
        if (!ru_limit_reserve(limit, operations, now_us, &reserved, &wait_ms)) {
            assert_true(wait_ms > 0);
            now_us += (uint64_t)wait_ms * 1000;
            continue;
        }
        ru_limit_settle(limit, reserved, operations, operations * each);
        used += operations * each;
    }
    return used;
}

static void units_stay_below_the_limit(void **state)
{
    (void)state;
    static const struct {
        uint32_t limit, wanted;
        double each;
    } rows[] = {{400, 100, 6}, {400, 1, 50}, {10000, 100, 10}, {100, 100, 300}, {1, 1, 5}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        RuLimit limit;
        ru_limit_init(&limit, rows[i].limit, 0);
        uint32_t seconds = 60;
        double used = use_for(&limit, seconds * 1000000ULL, rows[i].wanted, rows[i].each);
        double most = (double)rows[i].limit * (seconds + 1) +
                      rows[i].each * ru_limit_operations(&limit, rows[i].wanted);
        if (used > most || used < (double)rows[i].limit * seconds * 0.9)
            fail_msg("row %zu: %f RU in %u s of at most %f", i, used, seconds, most);
    }
    RuLimit none;
    ru_limit_init(&none, 0, 0);
    double reserved = 7;
    uint32_t wait_ms = 0;
    assert_true(ru_limit_reserve(&none, 1000000, 0, &reserved, &wait_ms));
    assert_true(reserved == 0);
    assert_int_equal(ru_limit_operations(&none, 100), 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepted_requests_make_room_for_more),
        cmocka_unit_test(throttled_requests_wait_and_take_room_once),
        cmocka_unit_test(failures_wait_longer_each_time),
        cmocka_unit_test(units_stay_below_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
