/* script_block_test.c - when scripts are blocked, and when that is forgotten. */
#include "script/script_block_int.h"

#include "base/testing.h"
#include "script/script_pool.h"

static FakeClock test_clock;
static ScriptBlocks *blocks;

static int setup(void **state)
{
    (void)state;
    fake_clock_init(&test_clock, 1000);
    blocks = script_blocks_new(&test_clock.clock);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    script_blocks_free(blocks);
    return 0;
}

static void note(Slice version, size_t times)
{
    for (size_t i = 0; i < times; i++)
        script_blocks_note(blocks, version);
}

static void the_sixth_violation_blocks(void **state)
{
    (void)state;
    note(SLICE("a"), SCRIPT_BLOCK_RUNS - 1);
    assert_false(script_blocks_has(blocks, SLICE("a")));
    note(SLICE("a"), 1);
    assert_true(script_blocks_has(blocks, SLICE("a")));
    assert_false(script_blocks_has(blocks, SLICE("b")));
}

static void no_version_is_never_blocked(void **state)
{
    (void)state;
    note(SLICE_EMPTY, 2 * SCRIPT_BLOCK_RUNS);
    assert_false(script_blocks_has(blocks, SLICE_EMPTY));
}

static void a_long_time_without_violations_clears(void **state)
{
    (void)state;
    note(SLICE("a"), SCRIPT_BLOCK_RUNS);
    fake_clock_advance(&test_clock, BLOCK_FORGET_US - 1);
    assert_true(script_blocks_has(blocks, SLICE("a")));
    fake_clock_advance(&test_clock, 1);
    assert_false(script_blocks_has(blocks, SLICE("a")));
    note(SLICE("a"), 1);
    assert_false(script_blocks_has(blocks, SLICE("a")));
}

static void a_full_table_forgets_the_oldest(void **state)
{
    (void)state;
    for (size_t i = 0; i <= BLOCK_VERSIONS_MAX; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "v%zu", i);
        note(slice_from_cstr(name), SCRIPT_BLOCK_RUNS);
        fake_clock_advance(&test_clock, 1);
    }
    assert_false(script_blocks_has(blocks, SLICE("v0")));
    assert_true(script_blocks_has(blocks, SLICE("v1")));
    assert_true(script_blocks_has(blocks, SLICE("v256")));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_sixth_violation_blocks),
        TEST(no_version_is_never_blocked),
        TEST(a_long_time_without_violations_clears),
        TEST(a_full_table_forgets_the_oldest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
