/* key_choice_test.c - distributions against their formulas. */
#include "load/key_choice.h"

#include "base/mem.h"
#include "base/testing.h"

#include <math.h>

static void distributions_have_names(void **state)
{
    (void)state;
    KeyDistribution distribution;
    assert_true(key_distribution_parse(SLICE("zipfian"), &distribution));
    assert_int_equal(distribution, KEY_ZIPFIAN);
    assert_true(key_distribution_parse(SLICE("latest"), &distribution));
    assert_int_equal(distribution, KEY_LATEST);
    assert_false(key_distribution_parse(SLICE("zipf"), &distribution));
    assert_false(key_distribution_parse(SLICE(""), &distribution));
}

/* The share of all draws that are 'rank', by the formula. */
static double zipfian_share(uint64_t count, uint64_t rank)
{
    double sum = 0;
    for (uint64_t i = 1; i <= count; i++)
        sum += 1 / pow((double)i, 0.99);
    return 1 / pow((double)rank + 1, 0.99) / sum;
}

/* Chi-squared over the frequent ranks one by one and the others in groups: with so many degrees of
 * freedom, more than mean + 5 deviations would be a wrong distribution, not bad luck. The seed is
 * fixed in any case. */
static void zipfian_draws_follow_the_formula(void **state)
{
    (void)state;
    static const uint64_t counts[] = {1, 2, 3, 10, 1000, 100000};
    enum { DRAWS = 200000, CELLS = 64 };
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        uint64_t count = counts[i];
        Zipfian zipfian;
        Random random;
        uint64_t seen[CELLS] = {0};
        double expected[CELLS] = {0};
        zipfian_init(&zipfian, count);
        random_init(&random, 17);
        for (int n = 0; n < DRAWS; n++) {
            uint64_t rank = zipfian_next(&zipfian, &random);
            assert_true(rank < count);
            seen[rank < CELLS - 1 ? rank : CELLS - 1]++;
        }
        double sum = 0;
        double first = zipfian_share(count, 0) * DRAWS;
        for (uint64_t rank = 0; rank < count && rank < CELLS - 1; rank++) {
            expected[rank] = first / pow((double)rank + 1, 0.99);
            sum += expected[rank];
        }
        expected[CELLS - 1] = DRAWS - sum;
        double chi = 0;
        int cells = 0;
        for (int cell = 0; cell < CELLS; cell++) {
            if (expected[cell] < 1)
                continue;
            double difference = (double)seen[cell] - expected[cell];
            chi += difference * difference / expected[cell];
            cells++;
        }
        assert_true(chi <= (cells - 1) + 5 * sqrt(2.0 * (cells - 1)) + 1e-9);
    }
}

/* The generator of the largest count needs no table, and its tail is not cut off. */
static void many_items_are_all_within_reach(void **state)
{
    (void)state;
    Zipfian zipfian;
    Random random;
    zipfian_init(&zipfian, KEY_CHOICE_COUNT_MAX);
    random_init(&random, 3);
    uint64_t largest = 0;
    for (int n = 0; n < 100000; n++) {
        uint64_t rank = zipfian_next(&zipfian, &random);
        assert_true(rank < KEY_CHOICE_COUNT_MAX);
        largest = rank > largest ? rank : largest;
    }
    assert_true(largest > KEY_CHOICE_COUNT_MAX / 2);
}

/* One hot partition key would be the effect if frequent items were neighbours. */
static void frequent_items_are_spread_and_each_is_one_item(void **state)
{
    (void)state;
    enum { COUNT = 1000, DRAWS = 300000 };
    KeyChoice choice;
    Random random;
    AUTO(mem_free) void *memory = mem_alloc(COUNT * sizeof(uint32_t));
    uint32_t *seen = memory;
    key_choice_init(&choice, KEY_ZIPFIAN, COUNT);
    random_init(&random, 5);
    for (int n = 0; n < DRAWS; n++) {
        uint64_t number = key_choice_next(&choice, &random, 0, 0);
        assert_true(number < COUNT);
        seen[number]++;
    }
    uint32_t frequent = 0;
    uint32_t unseen = 0;
    uint32_t keys = 0; /* groups of 100 items with one of the frequent ones */
    for (uint32_t key = 0; key < COUNT / 100; key++) {
        bool has_frequent = false;
        for (uint32_t i = key * 100; i < key * 100 + 100; i++) {
            unseen += seen[i] == 0;
            if (seen[i] > DRAWS / 200) {
                frequent++;
                has_frequent = true;
            }
        }
        keys += has_frequent;
    }
    assert_int_equal(unseen, 0);
    assert_in_range(frequent, 10, 60);
    assert_in_range(keys, 5, 10);
}

static void the_latest_items_are_the_most_frequent(void **state)
{
    (void)state;
    enum { COUNT = 100, DRAWS = 50000 };
    KeyChoice choice;
    Random random;
    key_choice_init(&choice, KEY_LATEST, COUNT);
    random_init(&random, 5);
    uint32_t newest = 0;
    for (int n = 0; n < DRAWS; n++)
        newest += key_choice_next(&choice, &random, 5000, 0) == COUNT - 1;
    double expected = zipfian_share(COUNT, 0) * DRAWS;
    assert_true(fabs(newest - expected) < 5 * sqrt(expected));

    uint32_t added = 0;
    newest = 0;
    for (int n = 0; n < DRAWS; n++) {
        uint64_t number = key_choice_next(&choice, &random, 5000, 10);
        assert_true(number < COUNT || (number >= 5000 && number < 5010));
        added += number >= 5000;
        newest += number == 5009;
    }
    expected = zipfian_share(COUNT + 10, 0) * DRAWS;
    assert_true(fabs(newest - expected) < 5 * sqrt(expected));
    assert_in_range(added, DRAWS / 2, DRAWS * 6 / 10);
}

static void uniform_items_are_equally_frequent(void **state)
{
    (void)state;
    enum { COUNT = 10, DRAWS = 100000 };
    KeyChoice choice;
    Random random;
    uint32_t seen[COUNT] = {0};
    key_choice_init(&choice, KEY_UNIFORM, COUNT);
    random_init(&random, 5);
    for (int n = 0; n < DRAWS; n++)
        seen[key_choice_next(&choice, &random, 0, 0)]++;
    for (int i = 0; i < COUNT; i++)
        assert_in_range(seen[i], DRAWS / COUNT * 95 / 100, DRAWS / COUNT * 105 / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distributions_have_names),
        cmocka_unit_test(zipfian_draws_follow_the_formula),
        cmocka_unit_test(many_items_are_all_within_reach),
        cmocka_unit_test(frequent_items_are_spread_and_each_is_one_item),
        cmocka_unit_test(the_latest_items_are_the_most_frequent),
        cmocka_unit_test(uniform_items_are_equally_frequent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
