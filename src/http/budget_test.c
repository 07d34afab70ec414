/* budget_test.c - what may be held, by one loop and by several. */
#include "http/budget_int.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MB ((uint64_t)1 << 20)

static uint64_t total(Budget *budget)
{
    return atomic_load(&budget->reserved);
}

static void bulk_leaves_a_quarter_for_small_requests(void **state)
{
    (void)state;
    Budget budget;
    budget_init(&budget, 64 * MB, 1);
    BudgetShare share = {.budget = &budget};
    for (int i = 0; i < 12; i++)
        assert_true(budget_take(&share, 4 * MB, BUDGET_BULK));
    assert_false(budget_take(&share, 1, BUDGET_BULK));
    assert_int_equal(share.held, 48 * MB);
    for (int i = 0; i < 16; i++)
        assert_true(budget_take(&share, MB, BUDGET_SMALL));
    assert_false(budget_take(&share, 1, BUDGET_SMALL));
    assert_int_equal(share.held, 64 * MB);
    budget_give(&share, 64 * MB);
    assert_true(budget_take(&share, 4 * MB, BUDGET_BULK));
}

static void what_one_loop_holds_another_cannot_have(void **state)
{
    (void)state;
    Budget budget;
    budget_init(&budget, 64 * MB, 2);
    BudgetShare first = {.budget = &budget};
    BudgetShare second = {.budget = &budget};
    assert_true(budget_take(&first, 40 * MB, BUDGET_BULK));
    assert_false(budget_take(&second, 10 * MB, BUDGET_BULK));
    assert_true(budget_take(&second, 7 * MB, BUDGET_BULK));
    budget_give(&first, 40 * MB);
    assert_true(budget_take(&second, 40 * MB, BUDGET_BULK));
}

static void what_is_in_use_already_is_counted_beyond_the_limit(void **state)
{
    (void)state;
    Budget budget;
    budget_init(&budget, 64 * MB, 1);
    BudgetShare share = {.budget = &budget};
    budget_force(&share, 100 * MB);
    assert_true(budget_is_over(&share, BUDGET_SMALL));
    assert_false(budget_take(&share, 1, BUDGET_SMALL));
    budget_give(&share, 50 * MB);
    assert_true(budget_is_over(&share, BUDGET_BULK));
    assert_false(budget_is_over(&share, BUDGET_SMALL));
    budget_give(&share, 50 * MB);
    assert_true(total(&budget) <= 2 * budget.piece);
    assert_int_equal(share.held, 0);
}

static void requests_that_come_and_go_do_not_touch_what_is_shared(void **state)
{
    (void)state;
    Budget budget;
    budget_init(&budget, 64 * MB, 4);
    BudgetShare share = {.budget = &budget};
    assert_true(budget_take(&share, 32 << 10, BUDGET_SMALL));
    uint64_t before = total(&budget);
    for (int i = 0; i < 1000; i++) {
        assert_true(budget_take(&share, 32 << 10, BUDGET_SMALL));
        assert_int_equal(total(&budget), before);
        budget_give(&share, 32 << 10);
        assert_int_equal(total(&budget), before);
    }
}

typedef struct Loop {
    pthread_t thread;
    BudgetShare share;
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
        budget_give(&loop->share, *slot);
        *slot = 0;
        if (budget_take(&loop->share, bytes, i % 2 == 0 ? BUDGET_BULK : BUDGET_SMALL))
            *slot = bytes;
    }
    for (size_t i = 0; i < ARRAY_COUNT(held); i++)
        budget_give(&loop->share, held[i]);
    return NULL;
}

static void loops_that_take_and_give_at_once_lose_nothing(void **state)
{
    (void)state;
    enum { LOOPS = 4 };
    Budget budget;
    budget_init(&budget, 16 * MB, LOOPS);
    Loop loops[LOOPS];
    for (uint32_t i = 0; i < LOOPS; i++) {
        loops[i] = (Loop){.share.budget = &budget, .seed = i};
        assert_int_equal(pthread_create(&loops[i].thread, NULL, take_and_give, &loops[i]), 0);
    }
    uint64_t left = 0;
    for (size_t i = 0; i < LOOPS; i++) {
        assert_int_equal(pthread_join(loops[i].thread, NULL), 0);
        assert_int_equal(loops[i].share.held, 0);
        assert_true(loops[i].share.reserved <= 2 * budget.piece);
        left += loops[i].share.reserved;
    }
    assert_int_equal(total(&budget), left);
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
