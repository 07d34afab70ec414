/* histogram_test.c - percentiles against sorted values. */
#include "base/mem.h"
#include "base/random.h"
#include "bench/histogram.h"

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
        uint64_t found = histogram_percentile(histogram, per_mille);
        assert_true(found >= exact);
        assert_true(found - exact <= exact / 64);
    }
    assert_true(histogram_percentile(histogram, 1000) == values[COUNT - 1]);
}

static void few_and_extreme_values_are_exact(void **state)
{
    (void)state;
    AUTO(mem_free) void *memory = mem_alloc(sizeof(Histogram));
    Histogram *histogram = memory;
    assert_true(histogram_percentile(histogram, 500) == 0);
    histogram_add(histogram, 0);
    assert_true(histogram_percentile(histogram, 1000) == 0);
    histogram_add(histogram, 63);
    histogram_add(histogram, 64);
    assert_true(histogram_percentile(histogram, 500) == 63);
    assert_true(histogram_percentile(histogram, 1000) == 64);
    histogram_add(histogram, UINT64_MAX);
    assert_true(histogram_percentile(histogram, 1000) == (UINT64_C(1) << 36) - 1);
    histogram_reset(histogram);
    assert_true(histogram->count == 0);
    assert_true(histogram_percentile(histogram, 999) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_at_most_one_bucket_too_high),
        cmocka_unit_test(few_and_extreme_values_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
