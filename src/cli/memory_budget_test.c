/* memory_budget_test.c - the shares of the parts, and that they never exceed the whole. */
#include "cli/memory_budget.h"

#include "base/testing.h"

#define MB ((uint64_t)1 << 20)
#define GB ((uint64_t)1 << 30)

/* What all parts may take together. */
static uint64_t sum(const MemoryBudget *b)
{
    return 128 * MB + b->cache + b->cache / 4 * 3 + b->connections + b->small_pages * 4 * MB +
           b->large_pages * b->large_page +
           (b->script_jobs + b->script_functions) * b->script_process;
}

static void the_shares_are_no_more_than_the_whole(void **state)
{
    (void)state;
    static const uint64_t caches[] = {0, MB, 64 * MB, GB, 6 * GB};
    for (uint64_t total = MEMORY_TOTAL_MIN; total < 300 * GB; total = total / 8 * 9)
        for (size_t i = 0; i < ARRAY_COUNT(caches); i++)
            for (uint32_t cpus = 1; cpus <= 256; cpus *= 4) {
                MemoryBudget b;
                Error err;
                if (memory_budget(total, 0, caches[i], cpus, &b, &err) != STATUS_OK) {
                    assert_non_null(strstr(err.message, "has no room for --cache"));
                    assert_true(caches[i] > total / 8);
                    continue;
                }
                assert_true(sum(&b) <= total);
                assert_true(b.total == total);
                assert_true(caches[i] == 0 || b.cache == caches[i]);
                assert_true(b.connections >= 64 * MB);
                assert_true(b.small_pages >= 16);
                assert_true(b.large_pages >= 1);
                assert_true(b.large_page >= 128 * MB);
                assert_true(b.script_jobs >= 1);
                assert_true(b.script_functions >= 1);
                assert_true(b.script_process >= 64 * MB);
            }
}

static void a_usual_machine_has_what_it_always_had(void **state)
{
    (void)state;
    MemoryBudget b;
    Error err;
    assert_int_equal(memory_budget(0, 16 * GB, 0, 2, &b, &err), STATUS_OK);
    assert_true(b.cache == 128 * MB);
    assert_true(b.connections == 2 * GB);
    assert_int_equal(b.small_pages, 256);
    assert_true(b.large_page == 256 * MB);
    assert_int_equal(b.script_jobs, 4);
    assert_int_equal(b.script_functions, 4);
    assert_true(b.script_process == 256 * MB);
}

static void what_does_not_fit_is_refused_if_it_was_asked_for(void **state)
{
    (void)state;
    static const struct {
        uint64_t total, cache;
        const char *says; /* NULL if it fits */
    } rows[] = {
        {MEMORY_TOTAL_MIN, 0, NULL},
        {MEMORY_TOTAL_MIN - 1, 0, "--memory must be at least 640M"},
        {1, 0, "--memory must be at least 640M"},
        {MEMORY_TOTAL_MIN, 128 * MB, "which needs --memory 737M or more"},
        {737 * MB, 128 * MB, NULL},
        {0, 100 * GB, NULL}, /* the machine has what it has */
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        MemoryBudget b;
        Error err;
        Status status = memory_budget(rows[i].total, 512 * MB, rows[i].cache, 2, &b, &err);
        assert_int_equal(status, rows[i].says == NULL ? STATUS_OK : STATUS_BAD_REQUEST);
        if (rows[i].says != NULL)
            assert_non_null(strstr(err.message, rows[i].says));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shares_are_no_more_than_the_whole),
        cmocka_unit_test(a_usual_machine_has_what_it_always_had),
        cmocka_unit_test(what_does_not_fit_is_refused_if_it_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
