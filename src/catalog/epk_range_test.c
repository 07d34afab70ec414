/* epk_range_test.c - how new containers are divided, and where ranges are cut by hash. */
#include "catalog/epk_range.h"

#include "base/encoding.h"

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
    static char longest[2 * EPK_BOUND_BYTES_MAX + 2];
    memset(longest, 'A', sizeof(longest));
    assert_true(epk_is_bound(slice_make(longest, sizeof(longest) - 2)));
    assert_false(epk_is_bound(slice_make(longest, sizeof(longest))));
}

static Slice bytes_of(Arena *arena, const char *text)
{
    size_t len = strlen(text) / 2;
    uint8_t *bytes = arena_alloc(arena, len);
    assert_true(hex_decode(slice_from_cstr(text), bytes, len, &len));
    return slice_make(bytes, len);
}

/* Of a hierarchical key: two components, and what follows the first one. */
#define A32 "11111111111111111111111111111111"
#define B32 "22222222222222222222222222222222"
#define Z32 "00000000000000000000000000000000"

/* A hash of which all but the first byte is zero. */
#define CUT(first) first "000000000000000000000000000000"

static void ranges_are_cut_where_hashes_are(void **state)
{
    (void)state;
    static const struct {
        PartitionKind kind;
        const char *min, *max;
        uint32_t parts;
        size_t count;
        const char *cuts[3];
    } ROWS[] = {
        {PARTITION_HASH_V2, "", "FF", 2, 1, {CUT("20")}},
        {PARTITION_HASH_V2, "", "20", 4, 3, {CUT("08"), CUT("10"), CUT("18")}},
        {PARTITION_HASH_V2, "20", "FF", 2, 1, {CUT("30")}},
        {PARTITION_HASH_V2, A32, "11111111111111111111111111111112", 2, 0, {0}},
        {PARTITION_HASH_V2, "7F", "FF", 2, 1, {CUT("BF")}},
        {PARTITION_MULTI_HASH, "", "FF", 2, 1, {CUT("20")}},
        /* Both bounds are of one first component. */
        {PARTITION_MULTI_HASH, A32 "10", A32 "20", 2, 1, {A32 CUT("18")}},
        /* The upper one is the next first component. */
        {PARTITION_MULTI_HASH, A32 "20", "11111111111111111111111111111112", 2, 1, {A32 CUT("30")}},
        {PARTITION_MULTI_HASH,
         A32 B32,
         A32 "22222222222222222222222222222223",
         2,
         1,
         {A32 B32 CUT("20")}},
        {PARTITION_MULTI_HASH, A32 B32 A32, A32 B32 "11111111111111111111111111111112", 2, 0, {0}},
        {PARTITION_MULTI_HASH, "", Z32, 2, 0, {0}},
        {PARTITION_HASH_V1, "", "FF", 2, 1, {"05C1E0"}},
        {PARTITION_HASH_V1, "", "05C1E0", 2, 1, {"05C1D0"}},
        {PARTITION_HASH_V1, "05C1E0", "FF", 2, 1, {"05C1E8"}},
        {PARTITION_HASH_V1, "05C1DFFFFFFFFC", "05C1DFFFFFFFFC0830", 2, 0, {0}},
        {PARTITION_NONE, "", "FF", 2, 0, {0}},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Slice cuts[3];
        size_t count = epk_cuts(&arena, ROWS[i].kind, bytes_of(&arena, ROWS[i].min),
                                bytes_of(&arena, ROWS[i].max), ROWS[i].parts, cuts);
        for (size_t k = 0; k < count; k++)
            if (k >= ROWS[i].count || !slice_equal(cuts[k], slice_from_cstr(ROWS[i].cuts[k])))
                fail_msg("row %zu, cut %zu: %.*s", i, k, SLICE_ARG(cuts[k]));
        assert_int_equal(count, ROWS[i].count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bounds_are_those_of_the_protocol),
        cmocka_unit_test(any_number_of_ranges_is_in_strictly_rising_order),
        cmocka_unit_test(a_bound_is_whole_bytes_in_upper_case),
        cmocka_unit_test(ranges_are_cut_where_hashes_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
