/* histogram_test.c - percentiles against sorted values. */
#include "base/mem.h"
#include "base/random.h"
#include "load/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void percentiles_are_at_most_one_bucket_too_high(void **state)
{
    (void)state;
    enum { COUNT = 20000 };
    AUTO(mem_free) void *memory = mem_alloc(sizeof(Histogram) + sizeof(uint64_t) * COUNT);
    Histogram *histogram = memory;
    uint64_t *values = (uint64_t *)(histogram + 1);
    Random random;
    random_init(&random, 1);
    /* Values of all magnitudes, as latencies have a long tail. */
    for (size_t i = 0; i < COUNT; i++) {
        values[i] = random_u64(&random) >> (64 - 1 - random_below(&random, 30));
        histogram_add(histogram, values[i]);
    }
    qsort(values, COUNT, sizeof(uint64_t), compare);
    for (uint32_t per_mille = 1; per_mille <= 1000; per_mille++) {
        uint64_t exact = values[(COUNT * (size_t)per_mille + 999) / 1000 - 1];
        uint64_t found = histogram_percentile(histogram, per_mille * 100);
        assert_true(found >= exact);
        assert_true(found - exact <= exact / 64);
    }
    assert_true(histogram_percentile(histogram, 100000) == values[COUNT - 1]);
}

static void few_and_extreme_values_are_exact(void **state)
{
    (void)state;
    AUTO(mem_free) void *memory = mem_alloc(sizeof(Histogram));
    Histogram *histogram = memory;
    assert_true(histogram_percentile(histogram, 50000) == 0);
    histogram_add(histogram, 0);
    assert_true(histogram_percentile(histogram, 100000) == 0);
    histogram_add(histogram, 63);
    histogram_add(histogram, 64);
    assert_true(histogram_percentile(histogram, 50000) == 63);
    assert_true(histogram_percentile(histogram, 100000) == 64);
    histogram_add(histogram, UINT64_MAX);
    assert_true(histogram_percentile(histogram, 100000) == (UINT64_C(1) << 36) - 1);
}

static void buckets_and_the_mean_are_those_of_the_values(void **state)
{
    (void)state;
    AUTO(mem_free) void *memory = mem_alloc(sizeof(Histogram));
    Histogram *histogram = memory;
    assert_true(histogram_mean(histogram) == 0);
    histogram_add(histogram, 10);
    histogram_add_many(histogram, 1000, 3);
    assert_true(histogram_mean(histogram) == 3010 / 4.0);
    size_t at = 0;
    uint64_t value = 0;
    uint64_t count = 0;
    assert_true(histogram_next(histogram, &at, &value, &count));
    assert_true(value == 10 && count == 1);
    assert_true(histogram_next(histogram, &at, &value, &count));
    assert_in_range(value, 1000, 1016);
    assert_int_equal(count, 3);
    assert_false(histogram_next(histogram, &at, &value, &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_at_most_one_bucket_too_high),
        cmocka_unit_test(few_and_extreme_values_are_exact),
        cmocka_unit_test(buckets_and_the_mean_are_those_of_the_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
