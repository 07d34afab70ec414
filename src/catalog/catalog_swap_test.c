/* catalog_swap_test.c - a copy takes the name of its source over (change_swap.c). */
#include "catalog/partition_handle_int.h"
#include "catalog/testing_int.h"

enum { FIRST = 300 };

typedef struct Pair {
    uint32_t database;
    uint32_t source;
    uint32_t copy;
} Pair;

static uint32_t make_from(TestCatalog *t, uint32_t database, const char *id, const char *path,
                          uint32_t first_range)
{
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_CREATE_CONTAINER);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice row =
        arena_format(&arena, "{'id':'%s','partitionKey':{'paths':['%s'],'version':2}}", id, path);
    Json normal = JSON_NONE;
    assert_ok(container_definition_create(&arena, row_json(&arena, arena_cstr(&arena, row)),
                                          (ContainerRules){0}, &normal, err));
    fill_container(&c, database, normal, MANUAL(18000));
    c.change.first_range = first_range;
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    return c.change.result_container->info.number;
}

static Pair make_pair(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", MANUAL(0));
    Pair pair = {.database = database};
    pair.source = make_from(t, database, "orders", "/pk", 0);
    pair.copy = make_from(t, database, "orders-copy", "/user", FIRST);
    return pair;
}

static Status run_swap(TestCatalog *t, Pair pair, CatalogOp op, const char *name)
{
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, op);
    c.change.database = pair.database;
    c.change.container = pair.source;
    c.change.copy = pair.copy;
    c.change.id = slice_from_cstr(name);
    return test_run(t->catalog, &c);
}

static const Container *by_name(TestCatalog *t, Pair pair, const char *name)
{
    return snapshot_container_by_id(test_read(t), pair.database, slice_from_cstr(name));
}

static void expect_swapped(TestCatalog *t, Pair pair)
{
    const Container *named = by_name(t, pair, "orders");
    const Container *old = by_name(t, pair, "old");
    assert_non_null(named);
    assert_non_null(old);
    assert_null(by_name(t, pair, "orders-copy"));
    assert_int_equal(named->info.number, pair.copy);
    assert_int_equal(old->info.number, pair.source);
    assert_ptr_equal(test_container(t, pair.database, pair.copy), named);
    assert_slice(json_string(json_get(named->definition, SLICE("id"))), SLICE("orders"));
    assert_slice(json_string(json_get(old->definition, SLICE("id"))), SLICE("old"));
    assert_non_null(named->key_before);
    assert_int_equal(named->key_before->path_count, 1);
    assert_true(named->named_lsn == named->info.lsn);
    assert_null(old->key_before);
    assert_true(old->named_lsn == 0);
    assert_false(old->is_held);
    assert_int_equal(named->ranges[0].id, FIRST);
    for (size_t i = 0; i < named->range_count; i++)
        assert_true(named->ranges[i].lsn == named->info.lsn);
}

static void a_swap_changes_both_names_for_good(TestCatalog *t)
{
    Pair pair = make_pair(t);
    assert_int_equal(run_swap(t, pair, CATALOG_BEGIN_SWAP, ""), STATUS_OK);
    assert_true(by_name(t, pair, "orders")->is_held);
    uint32_t generation = by_name(t, pair, "orders")->generation;
    assert_int_equal(run_swap(t, pair, CATALOG_END_SWAP, "old"), STATUS_OK);
    expect_swapped(t, pair);
    /* Requests that came by the old name are told apart. */
    assert_int_equal(by_name(t, pair, "old")->generation, generation + 1);
    assert_int_equal(container_handle_at(by_name(t, pair, "old"), 0)->generation, generation + 1);
    Slice dump = test_dump(t);
    test_reopen(t);
    assert_slice(test_dump(t), dump);
    expect_swapped(t, pair);
}

static void a_swap_that_is_undone_or_lost_leaves_everything(TestCatalog *t)
{
    Pair pair = make_pair(t);
    assert_int_equal(run_swap(t, pair, CATALOG_BEGIN_SWAP, ""), STATUS_OK);
    assert_int_equal(run_swap(t, pair, CATALOG_BEGIN_SWAP, ""), STATUS_CONFLICT);
    assert_int_equal(run_swap(t, pair, CATALOG_UNDO_SWAP, ""), STATUS_OK);
    assert_int_equal(run_swap(t, pair, CATALOG_UNDO_SWAP, ""), STATUS_OK);
    assert_false(by_name(t, pair, "orders")->is_held);
    assert_int_equal(run_swap(t, pair, CATALOG_END_SWAP, "old"), STATUS_CONFLICT);
    assert_int_equal(run_swap(t, pair, CATALOG_BEGIN_SWAP, ""), STATUS_OK);
    test_reopen(t);
    assert_false(by_name(t, pair, "orders")->is_held);
    assert_int_equal(by_name(t, pair, "orders")->info.number, pair.source);
}

static void what_cannot_be_swapped_is_refused(TestCatalog *t)
{
    Pair pair = make_pair(t);
    Pair itself = {pair.database, pair.source, pair.source};
    Pair nothing = {pair.database, pair.source, 99};
    Pair low = pair;
    low.copy = make_from(t, pair.database, "low", "/user", 2);
    assert_int_equal(run_swap(t, pair, CATALOG_BEGIN_SWAP, ""), STATUS_OK);
    assert_int_equal(run_swap(t, itself, CATALOG_END_SWAP, "old"), STATUS_CONFLICT);
    assert_int_equal(run_swap(t, nothing, CATALOG_END_SWAP, "old"), STATUS_NOT_FOUND);
    assert_int_equal(run_swap(t, low, CATALOG_END_SWAP, "old"), STATUS_CONFLICT);
    assert_int_equal(run_swap(t, pair, CATALOG_END_SWAP, "low"), STATUS_CONFLICT);
    assert_int_equal(run_swap(t, pair, CATALOG_END_SWAP, "orders"), STATUS_CONFLICT);
    assert_int_equal(run_swap(t, pair, CATALOG_END_SWAP, "orders-copy"), STATUS_CONFLICT);
    /* No move begins meanwhile, and no swap during a move. */
    AUTO(test_change_done) TestChange c;
    fill_begin(t, &c, test_container(t, pair.database, pair.source), 1, 1, "20");
    assert_int_equal(test_run(t->catalog, &c), STATUS_CONFLICT);
    assert_int_equal(run_swap(t, pair, CATALOG_END_SWAP, "old"), STATUS_OK);
    expect_swapped(t, pair);
    begin_move(t, pair.database, pair.copy, FIRST, FIRST, "08");
    Pair back = {pair.database, pair.copy, pair.source};
    assert_int_equal(run_swap(t, back, CATALOG_BEGIN_SWAP, ""), STATUS_CONFLICT);
}

static void a_copy_may_be_copied_again(TestCatalog *t)
{
    Pair pair = make_pair(t);
    assert_int_equal(run_swap(t, pair, CATALOG_BEGIN_SWAP, ""), STATUS_OK);
    assert_int_equal(run_swap(t, pair, CATALOG_END_SWAP, "old"), STATUS_OK);
    Pair next = {pair.database, pair.copy, 0};
    next.copy = make_from(t, pair.database, "third", "/other", 2 * FIRST);
    assert_int_equal(run_swap(t, next, CATALOG_BEGIN_SWAP, ""), STATUS_OK);
    assert_int_equal(run_swap(t, next, CATALOG_END_SWAP, "older"), STATUS_OK);
    assert_int_equal(by_name(t, pair, "orders")->info.number, next.copy);
    assert_int_equal(by_name(t, pair, "older")->info.number, pair.copy);
    assert_int_equal(by_name(t, pair, "old")->info.number, pair.source);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_swap_changes_both_names_for_good),
        ENGINE_TEST(a_swap_that_is_undone_or_lost_leaves_everything),
        ENGINE_TEST(what_cannot_be_swapped_is_refused),
        ENGINE_TEST(a_copy_may_be_copied_again),
    };
    return run_on_every_engine("swaps", tests, ARRAY_COUNT(tests));
}
