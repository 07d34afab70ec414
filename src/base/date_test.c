/* date_test.c - the date of HTTP headers, against the C library's calendar: I3. */
#include "base/date.h"

#include "base/random.h"
#include "base/testing.h"

#include <string.h>
#include <time.h>

static const struct {
    int64_t unix_s;
    const char *text;
} KNOWN[] = {
    {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
    {1727784000, "Tue, 01 Oct 2024 12:00:00 GMT"},
    {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"}, /* the example of RFC 9110 */
    {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
    {951868799, "Tue, 29 Feb 2000 23:59:59 GMT"},
    {951868800, "Wed, 01 Mar 2000 00:00:00 GMT"},
    {4107542399, "Sun, 28 Feb 2100 23:59:59 GMT"}, /* 2100 is no leap year */
    {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"},
    {-1, "Wed, 31 Dec 1969 23:59:59 GMT"},
    {-11644473600, "Mon, 01 Jan 1601 00:00:00 GMT"},
    {253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
};

static void known_dates_print_and_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(KNOWN); i++) {
        char text[DATE_LEN + 1];
        text[DATE_LEN] = '#';
        date_print(KNOWN[i].unix_s, text);
        assert_memory_equal(text, KNOWN[i].text, DATE_LEN);
        assert_int_equal(text[DATE_LEN], '#');
        int64_t unix_s = 77;
        assert_true(date_parse(slice_make(text, DATE_LEN), &unix_s));
        assert_true(unix_s == KNOWN[i].unix_s);
    }
}

static void times_out_of_reach_print_as_the_nearest_date(void **state)
{
    (void)state;
    static const struct {
        int64_t unix_s;
        const char *text;
    } rows[] = {
        {253402300800, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
        {-11644473601, "Mon, 01 Jan 1601 00:00:00 GMT"},
        {INT64_MIN, "Mon, 01 Jan 1601 00:00:00 GMT"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[DATE_LEN];
        date_print(rows[i].unix_s, text);
        assert_memory_equal(text, rows[i].text, DATE_LEN);
    }
}

static void any_second_comes_back(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 1);
    for (int i = 0; i < 20000; i++) {
        int64_t unix_s = (int64_t)random_below(&random, 265046774400) - 11644473600;
        char text[DATE_LEN];
        int64_t back = 0;
        date_print(unix_s, text);
        assert_true(date_parse(slice_make(text, DATE_LEN), &back));
        assert_true(back == unix_s);
    }
}

static void names_are_read_in_any_case(void **state)
{
    (void)state;
    int64_t unix_s = 0;
    assert_true(date_parse(SLICE("TUE, 01 OCT 2024 12:00:00 GMT"), &unix_s));
    assert_true(unix_s == 1727784000);
    /* SDKs sign the date in lower case and some send what they signed. */
    assert_true(date_parse(SLICE("tue, 01 oct 2024 12:00:00 gmt"), &unix_s));
    assert_true(unix_s == 1727784000);
    /* The day of the week adds nothing to the date, so a wrong one does no harm. */
    assert_true(date_parse(SLICE("Mon, 01 Oct 2024 12:00:00 GMT"), &unix_s));
    assert_true(unix_s == 1727784000);
}

static void everything_else_is_refused(void **state)
{
    (void)state;
    static const Slice rows[] = {
        {NULL, 0},
        SLICE_INIT(""),
        SLICE_INIT("Tue, 01 Oct 2024 12:00:00 GM"),
        SLICE_INIT("Tue, 01 Oct 2024 12:00:00 GMT "),
        SLICE_INIT("Tue, 01 Oct 2024 12:00:00 UTC"),
        SLICE_INIT("Tue, 1 Oct 2024 12:00:00 GMT"),
        SLICE_INIT("Tue,  1 Oct 2024 12:00:00 GMT"),
        SLICE_INIT("Xue, 01 Oct 2024 12:00:00 GMT"),
        SLICE_INIT("Tue; 01 Oct 2024 12:00:00 GMT"),
        SLICE_INIT("Tue, 01 Okt 2024 12:00:00 GMT"),
        SLICE_INIT("Tue, 01-Oct-2024 12:00:00 GMT"),
        SLICE_INIT("Tue, 00 Oct 2024 12:00:00 GMT"),
        SLICE_INIT("Tue, 32 Oct 2024 12:00:00 GMT"),
        SLICE_INIT("Tue, 31 Sep 2024 12:00:00 GMT"),
        SLICE_INIT("Tue, 30 Feb 2024 12:00:00 GMT"),
        SLICE_INIT("Tue, 01 Oct 2024 24:00:00 GMT"),
        SLICE_INIT("Tue, 01 Oct 2024 12:60:00 GMT"),
        SLICE_INIT("Tue, 01 Oct 2024 12:00:61 GMT"),
        SLICE_INIT("Tue, 01 Oct 2024 -1:00:00 GMT"),
        SLICE_INIT("Tue, 01 Oct 20x4 12:00:00 GMT"),
        SLICE_INIT("Tue, 01 Oct 1600 12:00:00 GMT"),
        SLICE_INIT("Fri, 31 Dec 9999 23:59:60 GMT"),
        SLICE_INIT("Tue, 01 Oct 2024 12.00.00 GMT"),
        SLICE_INIT("Tuesday, 01-Oct-24 12:00:00GM"),
        SLICE_INIT("2024-10-01T12:00:00.000+00:00"),
        SLICE_INIT("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        int64_t unix_s = 77;
        assert_false(date_parse(rows[i], &unix_s));
        assert_true(unix_s == 77);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_dates_print_and_parse),
        cmocka_unit_test(times_out_of_reach_print_as_the_nearest_date),
        cmocka_unit_test(any_second_comes_back),
        cmocka_unit_test(names_are_read_in_any_case),
        cmocka_unit_test(everything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
