/* datetime_test.c - dates and times: text, arithmetic, and the functions over them. */
#include "query/eval/datetime_int.h"
#include "query/eval/query_testing_int.h"

static int64_t parse(const char *text)
{
    int64_t ticks;
    if (!datetime_parse(slice_from_cstr(text), &ticks))
        fail_msg("'%s' is not taken for a time", text);
    return ticks;
}

static const char *print(Arena *arena, int64_t ticks)
{
    char text[DATETIME_LEN];
    datetime_print(ticks, text);
    return arena_cstr(arena, slice_make(text, sizeof(text)));
}

static void every_day_of_all_years_is_found_again(void **state)
{
    (void)state;
    static const int64_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    DateFields f = {.year = 1, .month = 1, .day = 1};
    int64_t expected = parse("0001-01-01");
    while (f.year <= 9999) {
        int64_t ticks;
        assert_true(datetime_from_fields(&f, &ticks));
        assert_int_equal(ticks, expected);
        DateFields again = datetime_fields(ticks + TICKS_PER_DAY - 1);
        assert_int_equal(again.year, f.year);
        assert_int_equal(again.month, f.month);
        assert_int_equal(again.day, f.day);
        assert_int_equal(again.hour, 23);
        expected += TICKS_PER_DAY;
        bool leap = (f.year % 4 == 0 && f.year % 100 != 0) || f.year % 400 == 0;
        if (++f.day > DAYS[f.month - 1] + (f.month == 2 && leap ? 1 : 0)) {
            assert_false(datetime_from_fields(&f, &ticks));
            f.day = 1;
            f.month++;
        }
        if (f.month > 12) {
            f.month = 1;
            f.year++;
        }
    }
    assert_false(datetime_in_range(expected));
    assert_true(datetime_in_range(expected - 1));
    assert_true(datetime_in_range(parse("0001-01-01")));
    assert_false(datetime_in_range(parse("0001-01-01") - 1));
}

static void text_becomes_ticks_and_text_again(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ticks;
        const char *printed;
    } CASES[] = {
        {"1970-01-01", 0, "1970-01-01T00:00:00.0000000Z"},
        {"1970-01-01T00:00:00.0000001Z", 1, "1970-01-01T00:00:00.0000001Z"},
        {"1969-12-31T23:59:59.9999999", -1, "1969-12-31T23:59:59.9999999Z"},
        {"1970-01-01 00:00:01", 10000000, "1970-01-01T00:00:01.0000000Z"},
        {"1970-01-01T00:00:00.5", 5000000, "1970-01-01T00:00:00.5000000Z"},
        {"1970-01-02Z", 864000000000, "1970-01-02T00:00:00.0000000Z"},
        {"1601-01-01", -116444736000000000, "1601-01-01T00:00:00.0000000Z"},
        {"2020-01-02T03:04:05.6789123Z", 15779342456789123, "2020-01-02T03:04:05.6789123Z"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        assert_int_equal(parse(CASES[i].text), CASES[i].ticks);
        assert_string_equal(print(&arena, CASES[i].ticks), CASES[i].printed);
    }
}

static void what_is_no_time_is_refused(void **state)
{
    (void)state;
    static const char *const CASES[] = {
        "",
        "2024",
        "2024-1-01",
        "2024-01-1",
        "2024-02-30",
        "2023-02-29",
        "1900-02-29",
        "0000-01-01",
        "2024-00-01",
        "2024-13-01",
        "2024-01-00",
        "-024-01-01",
        "+024-01-01",
        "2024-01-01T",
        "2024-01-01T20Z",
        "2024-01-01T20:00Z",
        "2024-01-01T24:00:00",
        "2024-01-01T00:60:00",
        "2024-01-01T00:00:60",
        "2024-01-01T00:00:00.",
        "2024-01-01T00:00:00.Z",
        "2024-01-01T00:00:00.12345678",
        "2024-01-01T00:00:00+01:00",
        "2024-01-01t00:00:00",
        "2024-01-01T00:00:00z",
        "2024-01-01  00:00:00",
        "2024/01/01",
        " 2024-01-01",
        "2024-01-01ZZ",
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        int64_t ticks;
        if (datetime_parse(slice_from_cstr(CASES[i]), &ticks))
            fail_msg("'%s' is taken for a time", CASES[i]);
    }
}

static void times_are_computed(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"DateTimeAdd('mm', 1, '2020-07-03T00:00:00.0000000')", "\"2020-08-03T00:00:00.0000000Z\""},
        {"DateTimeAdd('year', -1, '2020-02-29')", "\"2019-02-28T00:00:00.0000000Z\""},
        {"DateTimeAdd('M', 1, '2020-01-31')", "\"2020-02-29T00:00:00.0000000Z\""},
        {"DateTimeAdd('month', -13, '2020-01-31')", "\"2018-12-31T00:00:00.0000000Z\""},
        {"DateTimeAdd('d', -1, '2020-03-01')", "\"2020-02-29T00:00:00.0000000Z\""},
        {"DateTimeAdd('hh', -2, '2020-07-09T23:20:13.4575530Z')",
         "\"2020-07-09T21:20:13.4575530Z\""},
        {"DateTimeAdd('n', 90, '2020-01-01')", "\"2020-01-01T01:30:00.0000000Z\""},
        {"DateTimeAdd('MI', 1, '2020-01-01')", "\"2020-01-01T00:01:00.0000000Z\""},
        {"DateTimeAdd('s', -1, '2020-01-01')", "\"2019-12-31T23:59:59.0000000Z\""},
        {"DateTimeAdd('ms', 1, '2020-01-01')", "\"2020-01-01T00:00:00.0010000Z\""},
        {"DateTimeAdd('mcs', 1, '2020-01-01')", "\"2020-01-01T00:00:00.0000010Z\""},
        {"DateTimeAdd('ns', 199, '2020-01-01')", "\"2020-01-01T00:00:00.0000001Z\""},
        {"DateTimeAdd('dd', 0, '9999-12-31')", "\"9999-12-31T00:00:00.0000000Z\""},
        {"DateTimeAdd('dd', 1, '9999-12-31')", ""},
        {"DateTimeAdd('yyyy', 1, '9999-12-31')", ""},
        {"DateTimeAdd('ns', -100, '0001-01-01')", ""},
        {"DateTimeAdd('yyyy', 9223372036854775807, '2020-01-01')", ""},
        {"DateTimeAdd('mm', 9223372036854775807, '2020-01-01')", ""},
        {"DateTimeAdd('dd', -9223372036854775808, '2020-01-01')", ""},
        {"DateTimeAdd('dd', 1.5, '2020-01-01')", ""},
        {"DateTimeAdd('dd', '1', '2020-01-01')", ""},
        {"DateTimeAdd('week', 1, '2020-01-01')", ""},
        {"DateTimeAdd('', 1, '2020-01-01')", ""},
        {"DateTimeAdd('dd', 1, '2020-1-01')", ""},
        {"DateTimeAdd('dd', 1, 5)", ""},
        {"DateTimeAdd('dd', 1, undefined)", ""},
        {"DateTimeFromParts(2020, 9, 4)", "\"2020-09-04T00:00:00.0000000Z\""},
        {"DateTimeFromParts(2020, 9, 4, 10, 52)", "\"2020-09-04T10:52:00.0000000Z\""},
        {"DateTimeFromParts(2020, 9, 4, 10, 52, 12, 3456789)", "\"2020-09-04T10:52:12.3456789Z\""},
        {"DateTimeFromParts(-2000, 1, 1)", ""},
        {"DateTimeFromParts(2020, 13, 1)", ""},
        {"DateTimeFromParts(2021, 2, 29)", ""},
        {"DateTimeFromParts(2020, 1, 1, 24)", ""},
        {"DateTimeFromParts(2020, 1, 1, 0, 0, 0, 10000000)", ""},
        {"DateTimeFromParts(2020, 1.5, 1)", ""},
        {"DateTimeFromParts('2020', 1, 1)", ""},
        {"DateTimeFromParts(2020, 1)", "!requires 3 to 7 argument(s)"},
        {"TicksToDateTime(15943368134575530)", "\"2020-07-09T23:20:13.4575530Z\""},
        {"TicksToDateTime(-116444736000000000)", "\"1601-01-01T00:00:00.0000000Z\""},
        {"TicksToDateTime(9223372036854775807)", ""},
        {"TicksToDateTime(0.5)", ""},
        {"TicksToDateTime('0')", ""},
        {"TimestampToDateTime(1594227912345)", "\"2020-07-08T17:05:12.3450000Z\""},
        {"TimestampToDateTime(-1)", "\"1969-12-31T23:59:59.9990000Z\""},
        {"TimestampToDateTime(9223372036854775807)", ""},
        {"TimestampToDateTime(-62135596800000)", "\"0001-01-01T00:00:00.0000000Z\""},
        {"TimestampToDateTime(-62135596800001)", ""},
        {"TimestampToDateTime(null)", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void times_become_numbers(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"DateTimeToTicks('2020-01-02T03:04:05.6789123Z')", "15779342456789124"},
        {"DateTimeToTicks('1969-12-31T23:59:59.9999999')", "-1"},
        {"DateTimeToTicks('x')", ""},
        {"DateTimeToTimestamp('2020-07-09T23:20:13.4575530Z')", "1594336813457"},
        {"DateTimeToTimestamp('1969-12-31T23:59:59.9999999')", "-1"},
        {"DateTimeToTimestamp('1970-01-01')", "0"},
        {"DateTimeToTimestamp(1)", ""},
        {"DateTimePart('yyyy', '2016-05-29T08:30:07.1301617')", "2016"},
        {"DateTimePart('m', '2016-05-29T08:30:07.1301617')", "5"},
        {"DateTimePart('dd', '2016-05-29T08:30:07.1301617')", "29"},
        {"DateTimePart('hh', '2016-05-29T08:30:07.1301617')", "8"},
        {"DateTimePart('mi', '2016-05-29T08:30:07.1301617')", "30"},
        {"DateTimePart('ss', '2016-05-29T08:30:07.1301617')", "7"},
        {"DateTimePart('ms', '2016-05-29T08:30:07.1301617')", "130"},
        {"DateTimePart('mcs', '2016-05-29T08:30:07.1301617')", "130161"},
        {"DateTimePart('ns', '2016-05-29T08:30:07.1301617')", "130161700"},
        {"DateTimePart('h', '2016-05-29')", ""},
        {"DateTimePart('dd', '2016-05-32')", ""},
        {"DateTimePart(1, '2016-05-29')", ""},
        {"[YEAR('2024-01-10'), MONTH('2000-12-12T10:00:00'), DAY('2024-01-10')]", "[2024,12,10]"},
        {"YEAR(2024)", ""},
        {"MONTH('2024')", ""},
        {"DAY(undefined)", ""},
        {"DateTimeDiff('yyyy', '2028-01-01T01:02:03.1234527Z', '2020-01-03T01:02:03.1234567Z')",
         "-8"},
        {"DateTimeDiff('year', '2019-12-31T23:59:59', '2020-01-01')", "1"},
        {"DateTimeDiff('mm', '2019-02-04T16:00:00', '2018-03-05T05:00:00')", "-11"},
        {"DateTimeDiff('dd', '2019-02-04T16:00:00', '2018-03-05T05:00:00')", "-336"},
        {"DateTimeDiff('hh', '2019-02-04T16:00:00', '2018-03-05T05:00:00')", "-8075"},
        {"DateTimeDiff('hh', '2020-01-01T01:00:00', '2020-01-01T01:59:59')", "0"},
        {"DateTimeDiff('hh', '2020-01-01T01:59:59', '2020-01-01T02:00:00')", "1"},
        {"DateTimeDiff('dd', '1969-12-31T23:00:00', '1970-01-01T01:00:00')", "1"},
        {"DateTimeDiff('mi', '2020-01-01T00:00:59', '2020-01-01T00:02:00')", "2"},
        {"DateTimeDiff('ss', '2019-02-04T16:00:00', '2018-03-05T05:00:00')", "-29070000"},
        {"DateTimeDiff('ms', '2020-01-01', '2020-01-01T00:00:01.5009')", "1500"},
        {"DateTimeDiff('mcs', '2020-01-01', '2020-01-01T00:00:00.0000019')", "1"},
        {"DateTimeDiff('ns', '2020-01-01', '2020-01-01T00:00:00.0000019')", "1900"},
        {"DateTimeDiff('ns', '0001-01-01', '9999-12-31') > 3e20", "true"},
        {"DateTimeDiff('x', '2020-01-01', '2020-01-01')", ""},
        {"DateTimeDiff('dd', '2020-01-01', 'x')", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void times_are_put_into_bins(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"DateTimeBin('2021-06-28T17:24:29.2991234Z', 'hh')", "\"2021-06-28T17:00:00.0000000Z\""},
        {"DateTimeBin('2021-01-08T18:35:00', 'hh', 5)", "\"2021-01-08T15:00:00.0000000Z\""},
        {"DateTimeBin('2021-01-08T18:35:00', 'dd', 7)", "\"2021-01-07T00:00:00.0000000Z\""},
        {"DateTimeBin('2021-01-08T18:35:00', 'dd', 7, '1601-01-01')",
         "\"2021-01-04T00:00:00.0000000Z\""},
        {"DateTimeBin('2021-06-28T17:24:29.2991234Z', 'day', 5, '2021-01-01T00:00:00.0000000Z')",
         "\"2021-06-25T00:00:00.0000000Z\""},
        {"DateTimeBin('1969-12-31T23:00:00', 'dd')", "\"1969-12-31T00:00:00.0000000Z\""},
        {"DateTimeBin('2020-01-01T00:00:00.0000019', 'mcs')", "\"2020-01-01T00:00:00.0000010Z\""},
        {"DateTimeBin('2020-01-01T00:00:00.0000019', 'ns', 200)",
         "\"2020-01-01T00:00:00.0000018Z\""},
        {"DateTimeBin('2020-01-01', 'dd', 9223372036854775807)",
         "\"1970-01-01T00:00:00.0000000Z\""},
        {"DateTimeBin('1960-01-01', 'dd', 9223372036854775807)", ""},
        {"DateTimeBin('2020-01-01', 'ns', 99)", ""},
        {"DateTimeBin('2020-01-01', 'yyyy')", ""},
        {"DateTimeBin('2020-01-01', 'mm')", ""},
        {"DateTimeBin('2020-01-01', 'dd', 0)", ""},
        {"DateTimeBin('2020-01-01', 'dd', -1)", ""},
        {"DateTimeBin('2020-01-01', 'dd', 1.5)", ""},
        {"DateTimeBin('2020-01-01', 'dd', 1, '1600-12-31')", ""},
        {"DateTimeBin('2020-01-01', 'dd', 1, 'x')", ""},
        {"DateTimeBin('x', 'dd')", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void times_are_written_in_any_form(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"DATETIMEFORMAT('2024-10-10 14:40:20', 'yyyyMMdd')", "\"20241010\""},
        {"DATETIMEFORMAT('2024-10-10 14:40:20', 'yyyy-MM-dd [HH:mm:ss]')",
         "\"2024-10-10 [14:40:20]\""},
        {"DATETIMEFORMAT('2024-10-10 14:40:20', 'To\\\\da\\\\y i\\\\s: yyyy-MM-ddTHH:mm:ss.fff')",
         "\"Today is: 2024-10-10T14:40:20.000\""},
        {"DATETIMEFORMAT('2024-10-10 14:40:20', 'ss.FFF')", "\"20.\""},
        {"DATETIMEFORMAT('2024-10-10 14:40:20.12', 'f ff fff fffffff F FF FFFFFFF')",
         "\"1 12 120 1200000 1 12 12\""},
        {"DATETIMEFORMAT('2024-02-03 04:05:06', 'y yy yyy yyyyy M MM d dd H HH h hh m mm s ss')",
         "\"24 24 2024 02024 2 02 3 03 4 04 4 04 5 05 6 06\""},
        {"DATETIMEFORMAT('0007-02-03', 'y yy yyy yyyyyyyyyy')", "\"7 07 007 0000000007\""},
        {"DATETIMEFORMAT('2024-02-29', 'ddd dddd MMM MMMM')", "\"Thu Thursday Feb February\""},
        {"DATETIMEFORMAT('1969-12-31', 'dddd')", "\"Wednesday\""},
        {"DATETIMEFORMAT('2024-09-04', 'ddddMMMM')", "\"WednesdaySeptember\""},
        {"[DATETIMEFORMAT('2024-01-01', 'h t tt'), DATETIMEFORMAT('2024-01-01 12:00:00', 'h tt'), "
         "DATETIMEFORMAT('2024-01-01 13:00:00', 'h t')]",
         "[\"12 A AM\",\"12 PM\",\"1 P\"]"},
        {"DATETIMEFORMAT('2024-01-01', '')", "\"\""},
        {"DATETIMEFORMAT('2024-01-01', '\xC3\xA4\\\\\xC3\xA4 \\\\\\\\')",
         "\"\xC3\xA4\xC3\xA4 \\\\\""},
        {"DATETIMEFORMAT('2024-01-01', 'ffffffff')", ""},
        {"DATETIMEFORMAT('2024-01-01', 'yyyy\\\\')", ""},
        {"DATETIMEFORMAT('2024-01-01', 1)", ""},
        {"DATETIMEFORMAT('2024', 'yyyy')", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

/* 2020-08-13T23:19:54.300265Z */
#define NOW_US ((uint64_t)1597360794300265)

static void the_time_of_day_is_the_clocks(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"GetCurrentDateTime()", "\"2020-08-13T23:19:54.3002650Z\""},
        {"GetCurrentDateTimeStatic()", "\"2020-08-13T23:19:54.3002650Z\""},
        {"GetCurrentTicks()", "15973607943002650"},
        {"GetCurrentTicksStatic()", "15973607943002650"},
        {"GetCurrentTimestamp()", "1597360794300"},
        {"GetCurrentTimestampStatic()", "1597360794300"},
        {"NOW()", "\"2020-08-13T23:19:54.3002650Z\""},
        {"NOW('dd', 1)", "\"2020-08-14T23:19:54.3002650Z\""},
        {"NOW('dd', -1) = AGO('dd', 1)", "true"},
        {"AGO('mm', 6)", "\"2020-02-13T23:19:54.3002650Z\""},
        {"AGO('yyyy', 9000)", ""},
        {"AGO('dd', -9223372036854775808)", ""},
        {"AGO('x', 1)", ""},
        {"AGO('dd', 0.5)", ""},
        {"NOW('dd')", ""},
        {"AGO('dd')", "!The AGO function requires 2 argument(s)."},
        {"GetCurrentDateTime(1)", "!The GETCURRENTDATETIME function requires 0 argument(s)."},
    };
    FakeClock fake;
    fake_clock_init(&fake, NOW_US);
    check_expressions(CASES, ARRAY_COUNT(CASES), (QueryOptions){.clock = &fake.clock});
}

/* A clock that is a second further every time that it is asked. */
static uint64_t hurry(const Clock *clock)
{
    FakeClock *fake = CONTAINER_OF(clock, FakeClock, clock);
    fake_clock_advance(fake, 1000000);
    return fake->now_us;
}

static void static_time_stands_still_during_a_run(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    FakeClock fake;
    fake_clock_init(&fake, NOW_US);
    fake.clock.wall_us = hurry;
    const char *query = "SELECT VALUE [GetCurrentTimestampStatic() - 1597360794300, "
                        "GetCurrentTimestamp() - 1597360794300, "
                        "DateTimeToTimestamp(GetCurrentDateTimeStatic()) - 1597360794300] FROM c";
    QueryOptions options = {.clock = &fake.clock};
    assert_string_equal(run_query(&arena, query, "[{},{}]", NULL, options),
                        "[[1000,2000,1000],[1000,3000,1000]]");
    assert_string_equal(run_query(&arena, query, "[{}]", NULL, options), "[[4000,5000,4000]]");
    options.static_us = NOW_US;
    assert_string_equal(run_query(&arena, query, "[{}]", NULL, options), "[[0,6000,0]]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_of_all_years_is_found_again),
        cmocka_unit_test(text_becomes_ticks_and_text_again),
        cmocka_unit_test(what_is_no_time_is_refused),
        cmocka_unit_test(times_are_computed),
        cmocka_unit_test(times_become_numbers),
        cmocka_unit_test(times_are_put_into_bins),
        cmocka_unit_test(times_are_written_in_any_form),
        cmocka_unit_test(the_time_of_day_is_the_clocks),
        cmocka_unit_test(static_time_stands_still_during_a_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
