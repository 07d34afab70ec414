/* Tests of epk_range.c. */
#include "catalog/epk_range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void the_bounds_are_those_of_the_protocol(void **state)
{
    (void)state;
    static const struct {
        PartitionKind kind;
        uint32_t count;
        const char *bounds[6];
    } ROWS[] = {
        {PARTITION_HASH_V2, 1, {"", "FF"}},
        {PARTITION_HASH_V2, 2, {"", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "FF"}},
        {PARTITION_HASH_V2,
         3,
         {"", "15555555555555555555555555555555", "2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "FF"}},
        {PARTITION_HASH_V2,
         4,
         {"", "0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFE",
          "2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFD", "FF"}},
        {PARTITION_MULTI_HASH, 1, {"", "FF"}},
        {PARTITION_MULTI_HASH, 2, {"", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "FF"}},
        {PARTITION_HASH_V1, 1, {"", "FF"}},
        {PARTITION_HASH_V1, 2, {"", "05C1DFFFFFFFFC", "FF"}},
        {PARTITION_HASH_V1, 4, {"", "05C1CFFFFFFFF8", "05C1DFFFFFFFF8", "05C1E7FFFFFFFA", "FF"}},
        {PARTITION_NONE, 1, {"", "FF"}},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        const Slice *bounds = epk_initial_bounds(&arena, ROWS[i].kind, ROWS[i].count);
        for (uint32_t k = 0; k <= ROWS[i].count; ++k) {
            Slice expected = slice_from_cstr(ROWS[i].bounds[k]);
            if (!slice_equal(bounds[k], expected))
                print_message("row %zu, bound %u: %.*s\n", i, k, SLICE_ARG(bounds[k]));
            assert_true(slice_equal(bounds[k], expected));
        }
    }
}

static void any_number_of_ranges_is_in_strictly_rising_order(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (int kind = PARTITION_HASH_V1; kind <= PARTITION_MULTI_HASH; ++kind) {
        for (uint32_t count = 1; count <= 4096; count += count < 130 ? 1 : 991) {
            const Slice *bounds = epk_initial_bounds(&arena, (PartitionKind)kind, count);
            for (uint32_t i = 0; i < count; ++i)
                assert_true(slice_compare(bounds[i], bounds[i + 1]) < 0);
            arena_reset(&arena);
        }
    }
}

static void a_bound_is_whole_bytes_in_upper_case(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_bound;
    } ROWS[] = {
        {"", true},     {"00", true},  {"FF", true},  {"05C1DFFFFFFFFC", true}, {"0", false},
        {"7F0", false}, {"7f", false}, {"0x", false}, {" 00", false},           {"GG", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i)
        assert_int_equal(epk_is_bound(slice_from_cstr(ROWS[i].text)), ROWS[i].is_bound);
    static char longest[2 * EPK_BYTES_MAX + 2];
    memset(longest, 'A', sizeof(longest));
    assert_true(epk_is_bound(slice_make(longest, sizeof(longest) - 2)));
    assert_false(epk_is_bound(slice_make(longest, sizeof(longest))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bounds_are_those_of_the_protocol),
        cmocka_unit_test(any_number_of_ranges_is_in_strictly_rising_order),
        cmocka_unit_test(a_bound_is_whole_bytes_in_upper_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
