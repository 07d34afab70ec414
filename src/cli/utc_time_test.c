/* utc_time_test.c - moments that exist, and those that do not. */
#include "cli/utc_time.h"

#include "base/testing.h"

static void moments_are_read_as_they_are_printed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t unix_s;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2024-02-29T23:59:59Z", 1709251199},
        {"2026-11-18T12:00:00Z", 1795003200},
        {"9999-12-31T23:59:59Z", 253402300799},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        int64_t unix_s = -1;
        assert_true(utc_time_parse(slice_from_cstr(rows[i].text), &unix_s));
        assert_int_equal(unix_s, rows[i].unix_s);
        char text[UTC_TIME_LEN + 1];
        utc_time_print(unix_s, text);
        assert_string_equal(text, rows[i].text);
    }
}

static void what_is_no_moment_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "now",
        "2026-11-18",
        "2026-11-18T12:00:00",
        "2026-11-18 12:00:00Z",
        "2026-11-18T12:00:00z",
        "2026-13-18T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-11-18T24:00:00Z",
        "2026-11-18T12:60:00Z",
        "1969-12-31T23:59:59Z",
        "2026-11-18T12:00:00+0",
        "2026-11-1 T12:00:00Z",
        "2026-11-18T12:00:00ZZ",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        int64_t unix_s = -1;
        if (utc_time_parse(slice_from_cstr(rows[i]), &unix_s))
            fail_msg("'%s' was accepted", rows[i]);
        assert_int_equal(unix_s, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_are_read_as_they_are_printed),
        cmocka_unit_test(what_is_no_moment_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
