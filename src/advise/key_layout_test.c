/* key_layout_test.c - layouts of which the numbers are known. */
#include "advise/key_layout.h"

#include "advise/advise_testing_int.h"

#include <math.h>

static bool is_near(double found, double expected, double tolerance)
{
    return fabs(found - expected) <= tolerance;
}

static void lay_out(const Sample *sample, const char *key, LayoutOptions options, KeyLayout *out)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    KeyCandidate candidate = key_of(&arena, key);
    key_layout_make(&candidate, sample, &options, out);
}

static void one_value_is_all_in_one_partition(void **state)
{
    (void)state;
    AUTO(sample_done) Sample sample;
    begin_sample(&sample);
    for (int i = 0; i < 2000; i++)
        add_item(&sample, "{\"k\":\"x\",\"n\":%d}", 1000 + i % 100);
    end_sample(&sample);
    KeyLayout layout;
    lay_out(&sample, "/k", (LayoutOptions){.partitions = 10}, &layout);
    assert_int_equal(layout.distinct, 1);
    assert_true(is_near(layout.largest_share, 1, 1e-9));
    assert_true(is_near(layout.skew, 10, 1e-9));
    assert_true(is_near(layout.split_skew, 10, 1e-9));
    assert_true(is_near(layout.gini, 0.9, 1e-9));
    assert_int_equal(layout.idle, 9);
    assert_true(is_near(layout.write_skew, 10, 1e-3));
    assert_false(key_layout_is_moving(&layout, 10)); /* it is hot all the time */
    assert_true(isnan(layout.days_to_full));
    assert_true(isnan(layout.together_share));
}

static void many_values_are_spread_evenly(void **state)
{
    (void)state;
    AUTO(sample_done) Sample sample;
    generate_users(&sample);
    KeyLayout layout;
    lay_out(&sample, "/id", (LayoutOptions){.partitions = 10}, &layout);
    assert_int_equal(layout.distinct, GENERATED);
    assert_true(layout.skew < 1.2);
    assert_true(layout.gini < 0.1);
    assert_int_equal(layout.idle, 0);
    double sum = 0;
    for (int i = 0; i < 10; i++)
        sum += layout.partition_share[i];
    assert_true(is_near(sum, 1, 1e-9));
    lay_out(&sample, "/id", (LayoutOptions){.partitions = 1}, &layout);
    assert_true(is_near(layout.skew, 1, 1e-9));
}

static void days_until_a_key_is_full_follow_from_the_rate(void **state)
{
    (void)state;
    AUTO(sample_done) Sample sample;
    begin_sample(&sample);
    for (int i = 0; i < 1000; i++)
        add_item(&sample, "{\"k\":%d,\"u\":%d}", i % 2, i);
    end_sample(&sample);
    double rate = 1e9;
    LayoutOptions options = {.partitions = 2, .items_per_day = rate};
    KeyLayout layout;
    lay_out(&sample, "/k", options, &layout);
    double half = LAYOUT_LOGICAL_BYTES_MAX / (rate * sample_item_bytes(&sample) / 2);
    assert_true(is_near(layout.days_to_full, half, half * 0.15));
    lay_out(&sample, "/u", options, &layout); /* every new item has a new value */
    assert_true(isinf(layout.days_to_full));
    sample.population = 1000ULL * 1000 * 1000 * 1000; /* there is far more than the sample */
    lay_out(&sample, "/k", options, &layout);
    assert_true(is_near(layout.days_to_full, 0, 1e-9));
}

static void items_written_together_are_found_apart(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(sample_done) Sample sample;
    begin_sample(&sample);
    for (int i = 0; i < 1000; i++) /* groups of four, of which one is elsewhere */
        add_item(&sample, "{\"g\":%d,\"k\":\"%d-%d\",\"one\":%d}", i / 4, i / 4, i % 4 == 0, i);
    end_sample(&sample);
    LayoutOptions options = {.partitions = 4, .together = key_of(&arena, "/g").paths[0]};
    KeyLayout layout;
    lay_out(&sample, "/g", options, &layout);
    assert_true(is_near(layout.together_share, 1, 1e-9));
    lay_out(&sample, "/k", options, &layout);
    assert_true(is_near(layout.together_share, 0.75, 1e-9));
    options.together = key_of(&arena, "/one").paths[0]; /* no two are together */
    lay_out(&sample, "/k", options, &layout);
    assert_true(isnan(layout.together_share));
}

static void a_value_that_changes_is_noticed_by_versions(void **state)
{
    (void)state;
    AUTO(sample_done) Sample sample;
    begin_sample(&sample);
    for (int i = 0; i < 100; i++)
        add_item(&sample, "{\"_rid\":\"r%d\",\"stage\":%d,\"user\":%d}", i / 2, i % 2, i / 2);
    end_sample(&sample);
    KeyLayout layout;
    lay_out(&sample, "/user", (LayoutOptions){.partitions = 4}, &layout);
    assert_true(is_near(layout.changed_share, 0, 1e-9));
    lay_out(&sample, "/stage", (LayoutOptions){.partitions = 4}, &layout);
    assert_true(is_near(layout.changed_share, 0.5, 1e-9));
}

static void splits_divide_the_first_level_of_a_hierarchy(void **state)
{
    (void)state;
    AUTO(sample_done) Sample sample;
    generate_tenants(&sample);
    KeyLayout layout;
    lay_out(&sample, "/tenantId,/userId", (LayoutOptions){.partitions = 10}, &layout);
    assert_true(layout.skew > 4);
    assert_true(layout.split_skew < 1.2);
    assert_true(layout.write_skew < 2);
    /* Half of the items are of one tenant, which has five of ten partitions or a little more. */
    assert_true(layout.prefix_partitions[0] > 3);
    assert_true(layout.prefix_partitions[0] < 4.5);
    lay_out(&sample, "/tenantId", (LayoutOptions){.partitions = 10}, &layout);
    assert_true(layout.split_skew > 4); /* a logical partition cannot be split */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_value_is_all_in_one_partition),
        cmocka_unit_test(many_values_are_spread_evenly),
        cmocka_unit_test(days_until_a_key_is_full_follow_from_the_rate),
        cmocka_unit_test(items_written_together_are_found_apart),
        cmocka_unit_test(a_value_that_changes_is_noticed_by_versions),
        cmocka_unit_test(splits_divide_the_first_level_of_a_hierarchy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
