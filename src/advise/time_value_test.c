/* time_value_test.c - what looks like a time, and what only nearly does. */
#include "advise/time_value.h"

#include "json/json_testing.h"

#include <math.h>

static void times_of_every_form_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        double seconds;
    } rows[] = {
        {"1767225600", 1767225600},
        {"1767225600123", 1767225600.123},
        {"1767225600123456", 1767225600.123456},
        {"\"2026-01-01\"", 1767225600},
        {"\"2026-01-01T00:00\"", 1767225600},
        {"\"2026-01-01T01:02:03Z\"", 1767225600 + 3723},
        {"\"2026-01-01 01:02:03.999\"", 1767225600 + 3723},
        {"\"2026-01-01T01:00:00+01:00\"", 1767225600},
        {"\"2025-12-31T23:00:00-0100\"", 1767225600},
        {"\"2024-02-29\"", 1709164800},
        {"\"1970-01-01\"", 0},
        {"\"1969-12-31\"", -86400},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        double seconds = 0;
        if (!time_value(text_json(&arena, slice_from_cstr(rows[i].json)), &seconds))
            fail_msg("%s is a time", rows[i].json);
        if (fabs(seconds - rows[i].seconds) > 0.001)
            fail_msg("%s: %f", rows[i].json, seconds);
    }
}

static void other_values_are_no_times(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "1",
        "12345678901",
        "-1767225600",
        "true",
        "null",
        "[]",
        "{}",
        "\"\"",
        "\"2026\"",
        "\"2026-01\"",
        "\"2026-13-01\"",
        "\"2026-01-00\"",
        "\"2026-01-01T\"",
        "\"2026-01-01T25:00\"",
        "\"2026-01-01T10:60\"",
        "\"2026-01-01T10:00:00+\"",
        "\"2026-01-01T10:00:00+99:00\"",
        "\"2026-01-01x\"",
        "\"u2026-01-01\"",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        double seconds = 0;
        if (time_value(text_json(&arena, slice_from_cstr(rows[i])), &seconds))
            fail_msg("%s is no time", rows[i]);
    }
}

static void days_are_printed(void **state)
{
    (void)state;
    static const struct {
        double seconds;
        const char *day;
    } rows[] = {
        {0, "1970-01-01"},
        {1767225600, "2026-01-01"},
        {1767225599, "2025-12-31"},
        {1709164800, "2024-02-29"},
        {-5, "1970-01-01"},
        {1e18, "9999-12-31"},
        {253402300799, "9999-12-31"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char day[TIME_DAY_LEN];
        time_print_day(rows[i].seconds, day);
        assert_true(slice_equal(slice_make(day, TIME_DAY_LEN), slice_from_cstr(rows[i].day)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_every_form_are_read),
        cmocka_unit_test(other_values_are_no_times),
        cmocka_unit_test(days_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
