/* clock_test.c - real time goes on, fake time only when it is told to. */
#include "base/clock.h"

#include "base/testing.h"

#include <time.h>

static void the_real_clock_agrees_with_the_system(void **state)
{
    (void)state;
    const Clock *clock = clock_real();
    time_t before = time(NULL);
    int64_t now_s = clock_wall_s(clock);
    uint64_t now_us = clock_wall_us(clock);
    /* time() may be late by a tick. */
    assert_in_range(now_s, before, time(NULL) + 1);
    assert_in_range(now_us / 1000000, (uint64_t)now_s, (uint64_t)now_s + 1);
}

static void monotonic_time_passes_in_microseconds(void **state)
{
    (void)state;
    const Clock *clock = clock_real();
    uint64_t begin = clock_monotonic_us(clock);
    uint64_t previous = begin;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_monotonic_us(clock);
        assert_true(now >= previous);
        previous = now;
    }
    struct timespec pause = {.tv_nsec = 5000000};
    assert_int_equal(nanosleep(&pause, NULL), 0);
    uint64_t passed = clock_monotonic_us(clock) - begin;
    assert_in_range(passed, 5000, 60000000);
}

static void a_fake_clock_moves_only_when_told(void **state)
{
    (void)state;
    FakeClock fake;
    fake_clock_init(&fake, 1999999);
    const Clock *clock = &fake.clock;
    assert_true(clock_wall_us(clock) == 1999999);
    assert_true(clock_monotonic_us(clock) == 1999999);
    assert_true(clock_wall_s(clock) == 1);
    fake_clock_advance(&fake, 1);
    assert_true(clock_wall_us(clock) == 2000000);
    assert_true(clock_monotonic_us(clock) == 2000000);
    assert_true(clock_wall_s(clock) == 2);
    assert_true(clock_boot_us(clock) == 2000000);
}

static void boot_time_is_not_behind_monotonic_time(void **state)
{
    (void)state;
    const Clock *clock = clock_real();
    uint64_t monotonic_us = clock_monotonic_us(clock);
    assert_true(clock_boot_us(clock) >= monotonic_us);
}

static void setting_the_wall_clock_leaves_the_monotonic_one(void **state)
{
    (void)state;
    FakeClock fake;
    fake_clock_init(&fake, 1000000);
    const Clock *clock = &fake.clock;
    static const uint64_t walls[] = {0, 999999, UINT64_C(1) << 62, UINT64_MAX};
    for (size_t i = 0; i < ARRAY_COUNT(walls); i++) {
        fake_clock_set_wall(&fake, walls[i]);
        assert_true(clock_wall_us(clock) == walls[i]);
        assert_true(clock_monotonic_us(clock) == 1000000);
    }
    fake_clock_set_wall(&fake, 5);
    fake_clock_advance(&fake, 1);
    assert_true(clock_wall_us(clock) == 6);
    assert_true(clock_monotonic_us(clock) == 1000001);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_real_clock_agrees_with_the_system),
        cmocka_unit_test(monotonic_time_passes_in_microseconds),
        cmocka_unit_test(boot_time_is_not_behind_monotonic_time),
        cmocka_unit_test(a_fake_clock_moves_only_when_told),
        cmocka_unit_test(setting_the_wall_clock_leaves_the_monotonic_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
