/* arena_test.c - blocks, alignment, and what a reset keeps: I1. */
#include "base/arena.h"

#include "base/testing.h"

#include <string.h>
#if ARENA_HAS_GAPS
#include <sanitizer/asan_interface.h>
#endif

enum { BLOCK_SIZE = 256 };

static void allocations_are_aligned_apart_and_writable(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    unsigned char *pieces[200];
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        pieces[i] = arena_alloc(&arena, i);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)i, i);
    }
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        for (size_t j = 0; j < i; j++)
            assert_int_equal(pieces[i][j], i);
    }
}

static void nothing_is_also_allocated(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    assert_non_null(arena_alloc(&arena, 0));
    assert_non_null(arena_zalloc(&arena, 0));
    assert_int_equal(arena_copy(&arena, SLICE_EMPTY).len, 0);
    assert_string_equal(arena_cstr(&arena, SLICE_EMPTY), "");
}

static void large_allocations_get_a_block_of_their_own(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    for (size_t size = BLOCK_SIZE - 20; size < BLOCK_SIZE + 20; size++)
        memset(arena_alloc(&arena, size), 1, size);
    memset(arena_alloc(&arena, 1 << 20), 1, 1 << 20);
    assert_true(arena_used(&arena) > 1 << 20);
}

static void used_counts_what_was_handed_out(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    assert_int_equal(arena_used(&arena), 0);
    (void)arena_alloc(&arena, 1);
    assert_int_equal(arena_used(&arena), 16);
    for (int i = 0; i < 99; i++)
        (void)arena_alloc(&arena, 16);
    assert_int_equal(arena_used(&arena), 1600);
    arena_reset(&arena);
    assert_int_equal(arena_used(&arena), 0);
}

static void a_warm_arena_keeps_its_block_and_frees_the_large_ones(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    void *first = arena_alloc(&arena, 16);
    arena_reset(&arena);
    assert_ptr_equal(arena_alloc(&arena, 16), first);

    /* The large block is the newest; keeping that one would hold on to its memory for ever. */
    (void)arena_alloc(&arena, 1 << 20);
    arena_reset(&arena);
    assert_ptr_equal(arena_alloc(&arena, 16), first);
    assert_int_equal(arena.end - (char *)first, BLOCK_SIZE);
}

#if ARENA_HAS_GAPS
static void a_gap_follows_each_allocation_until_the_arena_is_reset(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    for (size_t size = 1; size <= BLOCK_SIZE / 2; size += 7) { /* also the last of a block */
        char *p = arena_alloc(&arena, size);
        assert_null(__asan_region_is_poisoned(p, size));
        if (p + size < arena.end)
            assert_true(__asan_address_is_poisoned(p + size));
    }
    arena_reset(&arena);
    assert_null(__asan_region_is_poisoned(arena_alloc(&arena, BLOCK_SIZE), BLOCK_SIZE));
}
#endif

static void reset_without_any_block_is_harmless(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    arena_reset(&arena);
    (void)arena_alloc(&arena, 1 << 20); /* no ordinary block to keep */
    arena_reset(&arena);
    assert_int_equal(arena_used(&arena), 0);
    assert_non_null(arena_alloc(&arena, 1));
    arena_done(&arena);
    assert_non_null(arena_alloc(&arena, 1)); /* usable again with its old block size */
}

static void zalloc_clears_memory_that_was_used_before(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    memset(arena_alloc(&arena, 128), 0xff, 128);
    arena_reset(&arena);
    const char *zeros = arena_zalloc(&arena, 128);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(zeros[i], 0);
    const uint64_t *array = ARENA_NEW_ARRAY(&arena, uint64_t, 9);
    for (size_t i = 0; i < 9; i++)
        assert_true(array[i] == 0);
}

static void copies_do_not_share_the_original(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    char original[] = "a\0b";
    Slice copy = arena_copy(&arena, slice_make(original, 3));
    char *terminated = arena_cstr(&arena, slice_make(original, 1));
    memset(original, 'x', 3);
    assert_true(slice_equal(copy, SLICE("a\0b")));
    assert_string_equal(terminated, "a");
}

static void formatted_text_may_be_longer_than_a_block(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, BLOCK_SIZE);
    assert_true(slice_equal(arena_format(&arena, "%s-%d", "a", 7), SLICE("a-7")));
    /* Around the size of the small buffer inside, where the second attempt begins. */
    for (int width = 250; width < 260; width++) {
        Slice text = arena_format(&arena, "%*d", width, 7);
        assert_int_equal(text.len, width);
        assert_int_equal(text.ptr[0], ' ');
        assert_int_equal(text.ptr[width - 1], '7');
        assert_int_equal(text.ptr[width], '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_are_aligned_apart_and_writable),
        cmocka_unit_test(nothing_is_also_allocated),
        cmocka_unit_test(large_allocations_get_a_block_of_their_own),
        cmocka_unit_test(used_counts_what_was_handed_out),
        cmocka_unit_test(a_warm_arena_keeps_its_block_and_frees_the_large_ones),
#if ARENA_HAS_GAPS
        cmocka_unit_test(a_gap_follows_each_allocation_until_the_arena_is_reset),
#endif
        cmocka_unit_test(reset_without_any_block_is_harmless),
        cmocka_unit_test(zalloc_clears_memory_that_was_used_before),
        cmocka_unit_test(copies_do_not_share_the_original),
        cmocka_unit_test(formatted_text_may_be_longer_than_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
