/* array_test.c - elements stay when an array grows, and capacities are what they should be. */
#include "base/array.h"

#include "base/testing.h"

#include <stdio.h>

enum { COUNT = 1000 };

static void elements_stay_when_an_array_of_the_heap_grows(void **state)
{
    (void)state;
    uint64_t *items = NULL;
    size_t count = 0;
    size_t capacity = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        ARRAY_GROW(items, count, capacity, 3);
        items[count++] = i;
    }
    assert_int_equal(capacity, 3 * 512);
    for (uint64_t i = 0; i < COUNT; i++)
        assert_int_equal(items[i], i);
    mem_free(items);
}

static void elements_stay_when_an_array_of_an_arena_grows(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    uint32_t *items = NULL;
    uint32_t count = 0;
    uint32_t capacity = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        ARRAY_GROW_IN(&arena, items, count, capacity, 1);
        items[count++] = i;
    }
    assert_int_equal(capacity, 1024);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(items[i], i);
    assert_true(arena_used(&arena) < 2 * sizeof(*items) * capacity + 1024);
}

static void a_capacity_is_first_then_doubles(void **state)
{
    (void)state;
    static const struct {
        size_t capacity, first, expected;
    } rows[] = {{0, 1, 1}, {0, 16, 16}, {1, 16, 2}, {16, 16, 32}, {100, 1, 200}, {128, 64, 256}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(array_capacity_next(rows[i].capacity, rows[i].first, 8, 256),
                         rows[i].expected);
    assert_int_equal(array_capacity_next(SIZE_MAX / 32, 1, 16, SIZE_MAX), SIZE_MAX / 32 * 2);
}

static void a_capacity_is_doubled_until_it_is_enough(void **state)
{
    (void)state;
    static const struct {
        size_t capacity, wanted, expected;
    } rows[] = {
        {1, 0, 1}, {1, 1, 1}, {64, 65, 128}, {3, 25, 48}, {64, SIZE_MAX / 2, SIZE_MAX / 2 + 1}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(array_capacity_for(rows[i].capacity, rows[i].wanted), rows[i].expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_stay_when_an_array_of_the_heap_grows),
        cmocka_unit_test(elements_stay_when_an_array_of_an_arena_grows),
        cmocka_unit_test(a_capacity_is_first_then_doubles),
        cmocka_unit_test(a_capacity_is_doubled_until_it_is_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
