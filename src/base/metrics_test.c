/* metrics_test.c - shards add up while they are written, and the text is what Prometheus reads. */
#include "base/metrics.h"

#include "base/testing.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { SHARDS = 3, ROUNDS = 10000 };

static void shards_stand_apart_and_add_up(void **state)
{
    (void)state;
    Metrics metrics;
    metrics_init(&metrics, SHARDS);
    for (size_t i = 0; i < SHARDS; i++)
        assert_int_equal((uintptr_t)&metrics.shards[i] % CACHE_LINE_SIZE, 0);
    for (int i = 0; i < METRIC_COUNT; i++)
        assert_true(metrics_total(&metrics, (Metric)i) == 0);
    metrics_add(&metrics.shards[0], METRIC_REQUESTS_OPEN, 5);
    metrics_add(&metrics.shards[2], METRIC_REQUESTS_OPEN, -2);
    metrics_add(&metrics.shards[1], METRIC_REQUEST_BYTES, INT64_C(1) << 40);
    assert_true(metrics_total(&metrics, METRIC_REQUESTS_OPEN) == 3);
    assert_true(metrics_total(&metrics, METRIC_REQUEST_BYTES) == INT64_C(1) << 40);
    assert_true(metrics_total(&metrics, METRIC_RESPONSE_BYTES) == 0);
    metrics_done(&metrics);
}

static void *count(void *arg)
{
    for (int i = 0; i < ROUNDS; i++)
        metrics_add(arg, METRIC_REQUESTS_2XX, 1);
    return NULL;
}

static void a_reader_sees_totals_that_only_grow(void **state)
{
    (void)state;
    Metrics metrics;
    metrics_init(&metrics, SHARDS);
    pthread_t threads[SHARDS];
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count, &metrics.shards[i]), 0);
    int64_t previous = 0;
    for (int i = 0; i < 1000; i++) {
        int64_t total = metrics_total(&metrics, METRIC_REQUESTS_2XX);
        assert_true(total >= previous);
        previous = total;
    }
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(metrics_total(&metrics, METRIC_REQUESTS_2XX) == (int64_t)SHARDS * ROUNDS);
    metrics_done(&metrics);
}

static size_t occurrences(const char *text, const char *part)
{
    size_t found = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        found++;
    return found;
}

static void the_text_has_one_heading_a_family_and_one_line_a_metric(void **state)
{
    (void)state;
    Metrics metrics;
    metrics_init(&metrics, 1);
    metrics_add(&metrics.shards[0], METRIC_REQUESTS_4XX, 7);
    metrics_add(&metrics.shards[0], METRIC_CONNECTIONS_OPEN, -1);
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    metrics_print(&metrics, &out);
    buf_byte(&out, '\0');
    assert_false(buf_full(&out));
    const char *text = out.ptr;
    assert_int_equal(occurrences(text, "# HELP orrery_requests_total "), 1);
    assert_int_equal(occurrences(text, "# TYPE orrery_requests_total counter\n"), 1);
    assert_int_equal(occurrences(text, "# TYPE orrery_connections_open gauge\n"), 1);
    assert_int_equal(occurrences(text, "\norrery_requests_total{class=\"4xx\"} 7\n"), 1);
    assert_int_equal(occurrences(text, "\norrery_requests_total{class=\"2xx\"} 0\n"), 1);
    assert_int_equal(occurrences(text, "\norrery_connections_open -1\n"), 1);
    metrics_done(&metrics);
}

/* A heading may appear once, so rows of one family must be neighbours; and counters are named so.
 */
static void the_table_keeps_the_rules_of_prometheus(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *name, *help;
    } rows[] = {
#define COUNTER                                   "counter"
#define GAUGE                                     "gauge"
#define METRIC_ROW(name, kind, prometheus, help_) {kind, prometheus, help_},
#include "base/metrics.def"
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice name = slice_from_cstr(rows[i].name);
        Slice family = slice_first(name, slice_find(name, '{'));
        bool is_counter = strcmp(rows[i].kind, "counter") == 0;
        assert_true(slice_starts_with(family, SLICE("orrery_")));
        assert_int_equal(slice_ends_with(family, SLICE("_total")), is_counter);
        assert_true(slice_ends_with(slice_from_cstr(rows[i].help), SLICE(".")));
        bool ended = false;
        for (size_t j = i; j < ARRAY_COUNT(rows); j++) {
            Slice other = slice_from_cstr(rows[j].name);
            bool same = slice_equal(slice_first(other, slice_find(other, '{')), family);
            assert_false(same && ended);
            assert_true(j == i || !slice_equal(other, name));
            ended = !same;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_stand_apart_and_add_up),
        cmocka_unit_test(a_reader_sees_totals_that_only_grow),
        cmocka_unit_test(the_text_has_one_heading_a_family_and_one_line_a_metric),
        cmocka_unit_test(the_table_keeps_the_rules_of_prometheus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
