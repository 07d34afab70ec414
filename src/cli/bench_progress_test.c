/* bench_progress_test.c - the line of one moment. */
#include "cli/bench_progress.h"

#include "base/testing.h"

static void a_line_has_the_rates_since_the_last_one(void **state)
{
    (void)state;
    AUTO(mem_free) void *memory = mem_alloc(sizeof(LoadResult));
    LoadResult *result = memory;
    BenchProgress progress;
    bench_progress_init(&progress, "read", 10, false);
    histogram_add_many(&result->latency_us, 50, 99);
    histogram_add(&result->latency_us, 2000);
    result->succeeded = 3000;
    progress.shown_us = 1000000;
    progress.requests_before = 1000;
    static const struct {
        uint64_t milli_ru, throttled, errors, failures;
        const char *text;
    } rows[] = {
        {0, 0, 0, 0, "read  1.5/10 s  4000 requests/s  P50 50 us  P99 50 us"},
        {500000, 0, 0, 0, "read  1.5/10 s  4000 requests/s  P50 50 us  P99 50 us  1000 RU/s"},
        {500000, 7, 2, 1,
         "read  1.5/10 s  4000 requests/s  P50 50 us  P99 50 us  1000 RU/s  7 throttled  3 "
         "errors"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(buf_done) Buf text;
        buf_init(&text, 1000);
        result->milli_ru = rows[i].milli_ru;
        result->throttled = rows[i].throttled;
        result->errors = rows[i].errors;
        result->failures = rows[i].failures;
        bench_progress_print(&progress, result, 1500000, &text);
        buf_byte(&text, '\0');
        assert_string_equal(text.ptr, rows[i].text);
    }
    /* Before any time has passed, and without an end that is known. */
    AUTO(buf_done) Buf text;
    buf_init(&text, 1000);
    *result = (LoadResult){0};
    bench_progress_init(&progress, "making items", 0, false);
    bench_progress_print(&progress, result, 0, &text);
    buf_byte(&text, '\0');
    assert_string_equal(text.ptr, "making items  0.0 s  0 requests/s  P50 0 us  P99 0 us");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_rates_since_the_last_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
