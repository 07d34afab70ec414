/* key_queries_test.c - how many partitions a query visits, by key. */
#include "advise/key_queries.h"

#include "advise/advise_testing_int.h"

#include <math.h>

static double visits(const char *key_text, KeyKind kind, const char *query)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Workload work = workload_of(&arena, query);
    KeyCandidate key = key_of(&arena, key_text);
    key.kind = kind;
    key.suffixes = kind == KEY_SUFFIXED ? 20 : 0;
    KeyLayout layout = {.prefix_partitions = {1.5, 1}, .prefix_one_share = {0.6, 1}};
    KeyQueries found;
    key_queries_make(&key, &layout, &work, 10, charge_model_default(), &arena, &found);
    return (double)found.visits[0];
}

static void queries_visit_what_they_name(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        KeyKind kind;
        const char *query;
        double least;
        double most;
    } rows[] = {
        {"/a", KEY_SINGLE, "SELECT * FROM c", 10, 10},
        {"/a", KEY_SINGLE, "SELECT * FROM c WHERE c.a = @a", 1, 1},
        {"/a", KEY_SINGLE, "SELECT * FROM c WHERE c.b = @a", 10, 10},
        {"/a", KEY_SINGLE, "SELECT * FROM c WHERE c.a > @a", 10, 10},
        {"/a", KEY_SINGLE, "SELECT * FROM c WHERE c.a IN (@x, @y, @z)", 1, 3},
        {"/a", KEY_SINGLE, "SELECT * FROM c WHERE c.a = 1 AND c.a = 2", 1, 1},
        {"/a,/b", KEY_HIERARCHICAL, "SELECT * FROM c WHERE c.a = @a AND c.b = @b", 1, 1},
        {"/a,/b", KEY_HIERARCHICAL, "SELECT * FROM c WHERE c.a = @a", 1.5, 1.5},
        {"/a,/b,/c", KEY_HIERARCHICAL, "SELECT * FROM c WHERE c.a = @a AND c.b = @b", 1, 1},
        {"/a,/b", KEY_HIERARCHICAL, "SELECT * FROM c WHERE c.b = @b", 10, 10},
        {"/a,/b", KEY_SYNTHETIC, "SELECT * FROM c WHERE c.a = @a AND c.b = @b", 1, 1},
        {"/a,/b", KEY_SYNTHETIC, "SELECT * FROM c WHERE c.a = @a", 10, 10},
        {"/a", KEY_SUFFIXED, "SELECT * FROM c WHERE c.a = @a", 8, 10},
        {"/a", KEY_SUFFIXED, "SELECT * FROM c WHERE c.a = @a AND c.id = @i", 1, 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        double found = visits(rows[i].key, rows[i].kind, rows[i].query);
        if (found < rows[i].least - 1e-3 || found > rows[i].most + 1e-3)
            fail_msg("%s, %s: %f", rows[i].key, rows[i].query, found);
    }
}

static void sums_are_weighted_by_frequency(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Workload work =
        workload_of(&arena, "[{\"query\":\"SELECT * FROM c WHERE c.a = 1\",\"perSecond\":"
                            "3},{\"query\":\"SELECT * FROM c\",\"perSecond\":1}]");
    KeyCandidate key = key_of(&arena, "/a");
    KeyLayout layout = {.prefix_partitions = {1.5, 1}, .prefix_one_share = {0.6, 1}};
    KeyQueries found;
    key_queries_make(&key, &layout, &work, 10, charge_model_default(), &arena, &found);
    assert_true(fabs(found.one_share - 0.75) < 1e-9);
    assert_true(fabs(found.visits_mean - 13.0 / 4) < 1e-9);
    assert_true(fabs(found.look_ru_s - 13 * 2.28) < 1e-9); /* query-partition */
    assert_true(fabs(found.least_ru_s - 4 * 2.28) < 1e-9);
}

static void a_prefix_is_in_one_partition_as_often_as_splits_left_it(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Workload work = workload_of(&arena, "SELECT * FROM c WHERE c.a = @a");
    KeyCandidate key = key_of(&arena, "/a,/b");
    KeyLayout layout = {.prefix_partitions = {1.5}, .prefix_one_share = {0.6}};
    KeyQueries found;
    key_queries_make(&key, &layout, &work, 10, charge_model_default(), &arena, &found);
    assert_true(fabs(found.one_share - 0.6) < 1e-9);
    assert_true(fabs(found.visits_mean - 1.5) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_visit_what_they_name),
        cmocka_unit_test(sums_are_weighted_by_frequency),
        cmocka_unit_test(a_prefix_is_in_one_partition_as_often_as_splits_left_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
