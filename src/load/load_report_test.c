/* load_report_test.c - both forms of a report. */
#include "load/load_report.h"

#include "base/testing.h"

static LoadResult *result_new(void)
{
    LoadResult *r = MEM_NEW(LoadResult);
    for (uint64_t i = 1; i <= 100; i++) {
        histogram_add(&r->latency_us, i * 10);
        histogram_add(&r->first_page_us, i * 10);
        histogram_add(&r->by_operation[i <= 95 ? LOAD_ITEM_READ : LOAD_ITEM_UPSERT], i * 10);
    }
    r->succeeded = 100;
    r->pages = 103;
    r->by_status[200] = 100;
    r->by_status[429] = 2;
    r->by_status[404] = 1;
    r->throttled = 2;
    r->errors = 1;
    r->error_status = 404;
    (void)snprintf(r->error_text, sizeof(r->error_text), "{\"code\":\"NotFound\\\"}");
    r->milli_ru = 250500;
    r->elapsed_us = 2000000;
    r->client_cpu_us = 1010;
    r->body_bytes = 10100;
    return r;
}

static void print(bool is_json, bool has_histogram, Buf *out)
{
    AUTO(mem_free) void *memory = result_new();
    LoadOptions options = {.connections = 8, .rate = 50};
    LoadReport report = {.options = &options,
                         .workload = "mixed",
                         .result = memory,
                         .has_histogram = has_histogram,
                         .fill_milli_ru = 7000};
    if (is_json)
        load_report_json(&report, out);
    else
        load_report_text(&report, out);
    assert_false(buf_full(out));
    buf_byte(out, '\0');
}

static void json_is_one_line_with_all_figures(void **state)
{
    (void)state;
    AUTO(buf_done) Buf text;
    buf_init(&text, LOAD_REPORT_BYTES_MAX);
    print(true, false, &text);
    assert_string_equal(
        text.ptr,
        "{\"workload\":\"mixed\",\"end\":\"done\",\"connections\":8,\"rate\":50,"
        "\"operations\":{"
        "\"read\":{\"requests\":95,\"latency_us\":{\"mean\":480.0,\"p50\":483,\"p90\":863,"
        "\"p95\":911,\"p99\":950,\"p999\":950,\"p9999\":950,\"max\":950}},"
        "\"upsert\":{\"requests\":5,\"latency_us\":{\"mean\":980.0,\"p50\":983,\"p90\":1000,"
        "\"p95\":1000,\"p99\":1000,\"p999\":1000,\"p9999\":1000,\"max\":1000}}},"
        "\"requests\":100,\"seconds\":2.000,\"requests_per_s\":50.0,"
        "\"latency_us\":{\"mean\":505.0,\"p50\":503,\"p90\":903,\"p95\":951,\"p99\":991,"
        "\"p999\":1000,\"p9999\":1000,\"max\":1000},"
        "\"first_page_p50_us\":503,\"first_page_p99_us\":991,"
        "\"ru\":250.500,\"ru_per_s\":125.2,\"ru_per_request\":2.505,\"fill_ru\":7.000,"
        "\"throttled\":2,\"unanswered\":0,\"errors\":1,"
        "\"first_error\":\"{\\\"code\\\":\\\"NotFound\\\\\\\"}\",\"failures\":0,"
        "\"statuses\":{\"200\":100,\"404\":1,\"429\":2},\"server_cpu_us_per_request\":0.000,"
        "\"server_rss_bytes\":0,\"client_cpu_us_per_request\":10.000,\"client_busy\":0.00,"
        "\"bytes_per_answer\":100,\"pages_per_request\":1.02}\n");
}

static void the_histogram_has_every_bucket(void **state)
{
    (void)state;
    AUTO(buf_done) Buf text;
    buf_init(&text, LOAD_REPORT_BYTES_MAX);
    print(true, true, &text);
    assert_non_null(strstr(text.ptr, ",\"histogram_us\":[[10,1],[20,1],"));
    assert_non_null(strstr(text.ptr, "[1007,1]],\"requests\":100,"));
    buf_reset(&text);
    print(false, true, &text);
    assert_non_null(strstr(text.ptr, "\n10                    1    1.0000\n"));
    assert_non_null(strstr(text.ptr, "\n1000                  1  100.0000\n"));
}

static void text_says_what_was_wrong(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "mixed: 50 requests/s (100 in 2.00 s) over 8 connections, 50/s were due\n",
        "  read                       95       483",
        "  upsert                      5       983",
        "  all                       100       503       903       951       991      1000",
        "request units   250.50 (125.2/s, 2.505 a request)\n",
        "                7.00 more to make the items\n",
        "statuses        200: 100 404: 1 429: 2\n",
        "throttled       2 answers with 429\n",
        "errors          1, the first with 404: {\"code\":\"NotFound\\\"}\n",
        "client          10.00 us of CPU a request, 0% busy\n",
    };
    AUTO(buf_done) Buf text;
    buf_init(&text, LOAD_REPORT_BYTES_MAX);
    print(false, false, &text);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (strstr(text.ptr, parts[i]) == NULL)
            fail_msg("'%s' is not in\n%s", parts[i], text.ptr);
    }
    assert_null(strstr(text.ptr, "server "));
    assert_null(strstr(text.ptr, "first pages"));
}

/* Before the first answer, and for a run that was not to be. */
static void a_result_without_anything_is_printed(void **state)
{
    (void)state;
    AUTO(mem_free) void *memory = mem_alloc(sizeof(LoadResult));
    AUTO(buf_done) Buf text;
    buf_init(&text, LOAD_REPORT_BYTES_MAX);
    LoadOptions options = {.connections = 1};
    LoadReport report = {
        .options = &options, .workload = "read", .result = memory, .has_histogram = true};
    load_report_json(&report, &text);
    load_report_text(&report, &text);
    buf_byte(&text, '\0');
    assert_non_null(strstr(text.ptr, "\"histogram_us\":[],\"requests\":0,"));
    static const char *const wrong[] = {":nan", ":-nan", ":inf", " nan", " -nan", " inf"};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
        assert_null(strstr(text.ptr, wrong[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_one_line_with_all_figures),
        cmocka_unit_test(the_histogram_has_every_bucket),
        cmocka_unit_test(text_says_what_was_wrong),
        cmocka_unit_test(a_result_without_anything_is_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
