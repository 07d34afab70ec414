/* conn_memory_test.c - how much may be held, by one loop and by several. */
#include "http/conn_memory_int.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MB ((uint64_t)1 << 20)

static uint64_t total(ConnMemory *memory)
{
    return atomic_load(&memory->reserved);
}

static void bulk_leaves_a_quarter_for_small_requests(void **state)
{
    (void)state;
    ConnMemory memory;
    conn_memory_init(&memory, 64 * MB, 1);
    ConnMemoryShare share = {.all = &memory};
    for (int i = 0; i < 12; i++)
        assert_true(conn_memory_take(&share, 4 * MB, CONN_MEMORY_BULK));
    assert_false(conn_memory_take(&share, 1, CONN_MEMORY_BULK));
    assert_int_equal(share.held, 48 * MB);
    for (int i = 0; i < 16; i++)
        assert_true(conn_memory_take(&share, MB, CONN_MEMORY_SMALL));
    assert_false(conn_memory_take(&share, 1, CONN_MEMORY_SMALL));
    assert_int_equal(share.held, 64 * MB);
    conn_memory_give(&share, 64 * MB);
    assert_true(conn_memory_take(&share, 4 * MB, CONN_MEMORY_BULK));
}

static void what_one_loop_holds_another_cannot_have(void **state)
{
    (void)state;
    ConnMemory memory;
    conn_memory_init(&memory, 64 * MB, 2);
    ConnMemoryShare first = {.all = &memory};
    ConnMemoryShare second = {.all = &memory};
    assert_true(conn_memory_take(&first, 40 * MB, CONN_MEMORY_BULK));
    assert_false(conn_memory_take(&second, 10 * MB, CONN_MEMORY_BULK));
    assert_true(conn_memory_take(&second, 7 * MB, CONN_MEMORY_BULK));
    conn_memory_give(&first, 40 * MB);
    assert_true(conn_memory_take(&second, 40 * MB, CONN_MEMORY_BULK));
}

static void what_is_in_use_already_is_counted_beyond_the_limit(void **state)
{
    (void)state;
    ConnMemory memory;
    conn_memory_init(&memory, 64 * MB, 1);
    ConnMemoryShare share = {.all = &memory};
    conn_memory_force(&share, 100 * MB);
    assert_true(conn_memory_is_over(&share, CONN_MEMORY_SMALL));
    assert_false(conn_memory_take(&share, 1, CONN_MEMORY_SMALL));
    conn_memory_give(&share, 50 * MB);
    assert_true(conn_memory_is_over(&share, CONN_MEMORY_BULK));
    assert_false(conn_memory_is_over(&share, CONN_MEMORY_SMALL));
    conn_memory_give(&share, 50 * MB);
    assert_true(total(&memory) <= 2 * memory.piece);
    assert_int_equal(share.held, 0);
}

static void requests_that_come_and_go_do_not_touch_what_is_shared(void **state)
{
    (void)state;
    ConnMemory memory;
    conn_memory_init(&memory, 64 * MB, 4);
    ConnMemoryShare share = {.all = &memory};
    assert_true(conn_memory_take(&share, 32 << 10, CONN_MEMORY_SMALL));
    uint64_t before = total(&memory);
    for (int i = 0; i < 1000; i++) {
        assert_true(conn_memory_take(&share, 32 << 10, CONN_MEMORY_SMALL));
        assert_int_equal(total(&memory), before);
        conn_memory_give(&share, 32 << 10);
        assert_int_equal(total(&memory), before);
    }
}

typedef struct Loop {
    pthread_t thread;
    ConnMemoryShare share;
    uint32_t seed;
} Loop;

static void *take_and_give(void *arg)
{
    Loop *loop = arg;
    uint64_t held[16] = {0};
    for (int i = 0; i < 20000; i++) {
        loop->seed = loop->seed * 1664525 + 1013904223;
        uint64_t *slot = &held[loop->seed >> 28];
        uint64_t bytes = loop->seed >> 4 & 0xfffff;
        conn_memory_give(&loop->share, *slot);
        *slot = 0;
        if (conn_memory_take(&loop->share, bytes,
                             i % 2 == 0 ? CONN_MEMORY_BULK : CONN_MEMORY_SMALL))
            *slot = bytes;
    }
    for (size_t i = 0; i < ARRAY_COUNT(held); i++)
        conn_memory_give(&loop->share, held[i]);
    return NULL;
}

static void loops_that_take_and_give_at_once_lose_nothing(void **state)
{
    (void)state;
    enum { LOOPS = 4 };
    ConnMemory memory;
    conn_memory_init(&memory, 16 * MB, LOOPS);
    Loop loops[LOOPS];
    for (uint32_t i = 0; i < LOOPS; i++) {
        loops[i] = (Loop){.share.all = &memory, .seed = i};
        assert_int_equal(pthread_create(&loops[i].thread, NULL, take_and_give, &loops[i]), 0);
    }
    uint64_t left = 0;
    for (size_t i = 0; i < LOOPS; i++) {
        assert_int_equal(pthread_join(loops[i].thread, NULL), 0);
        assert_int_equal(loops[i].share.held, 0);
        assert_true(loops[i].share.reserved <= 2 * memory.piece);
        left += loops[i].share.reserved;
    }
    assert_int_equal(total(&memory), left);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bulk_leaves_a_quarter_for_small_requests),
        cmocka_unit_test(what_one_loop_holds_another_cannot_have),
        cmocka_unit_test(what_is_in_use_already_is_counted_beyond_the_limit),
        cmocka_unit_test(requests_that_come_and_go_do_not_touch_what_is_shared),
        cmocka_unit_test(loops_that_take_and_give_at_once_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
