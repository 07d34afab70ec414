/* path_stats_test.c - which paths items have, what stands there, and the bounds. */
#include "advise/path_stats.h"

#include "advise/advise_testing_int.h"

static void values_are_counted_by_path(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(sample_done) Sample sample;
    begin_sample(&sample);
    add_item(&sample,
             "{\"id\":\"abc\",\"n\":1,\"o\":{\"a b\":null},\"t\":[1,1,2],\"e\":[{\"x\":1}]}");
    add_item(&sample, "{\"id\":\"de\",\"n\":1.5,\"o\":[],\"at\":\"2026-01-01\"}");
    end_sample(&sample);
    PathTable table;
    path_stats_collect(&sample, &arena, &table);
    assert_true(table.is_complete);
    const PathStats *id = path_stats_find(&table, SLICE("/id"));
    assert_non_null(id);
    assert_int_equal(id->items, 2);
    assert_int_equal(id->strings, 2);
    assert_int_equal(id->bytes, 5);
    assert_int_equal(id->bytes_max, 3);
    assert_int_equal(path_stats_find(&table, SLICE("/n"))->fractions, 1);
    assert_int_equal(path_stats_find(&table, SLICE("/o/\"a b\""))->others, 1);
    const PathStats *elements = path_stats_find(&table, SLICE("/t/[]"));
    assert_true(elements->has_element);
    assert_int_equal(elements->items, 1);
    assert_int_equal(elements->values, 2); /* an index has equal elements once */
    assert_int_equal(path_stats_find(&table, SLICE("/e/[]/x"))->values, 1);
    assert_int_equal(path_stats_find(&table, SLICE("/at"))->times, 1);
    assert_null(path_stats_find(&table, SLICE("/o")));
}

static void the_number_of_paths_is_bounded(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(sample_done) Sample sample;
    begin_sample(&sample);
    for (int i = 0; i < PATH_STATS_MAX + 50; i++)
        add_item(&sample, "{\"common\":1,\"p%d\":1}", i);
    end_sample(&sample);
    PathTable table;
    path_stats_collect(&sample, &arena, &table);
    assert_int_equal(table.count, PATH_STATS_MAX);
    assert_false(table.is_complete);
    assert_int_equal(path_stats_find(&table, SLICE("/common"))->items, PATH_STATS_MAX + 50);
}

static void the_depth_is_bounded(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(sample_done) Sample sample;
    begin_sample(&sample);
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    for (int i = 0; i < 100; i++)
        buf_slice(&text, SLICE("{\"a\":"));
    buf_byte(&text, '1');
    for (int i = 0; i < 100; i++)
        buf_byte(&text, '}');
    add_item(&sample, "%.*s", SLICE_ARG(buf_view(&text)));
    end_sample(&sample);
    PathTable table;
    path_stats_collect(&sample, &arena, &table);
    assert_int_equal(table.count, 0);
    assert_false(table.is_complete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_counted_by_path),
        cmocka_unit_test(the_number_of_paths_is_bounded),
        cmocka_unit_test(the_depth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
