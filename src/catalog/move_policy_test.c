/* move_policy_test.c - which moves are due, which merges are planned, and when throughput is said
 * to be on its way. */
#include "catalog/move_testing_int.h"

#include "catalog/move_policy_int.h"

enum { PARTITION_RU = 1000, ITEM_BYTES = 4000 };

static const ProvisionRules RULES = {.partition_ru = PARTITION_RU,
                                     .fallback = {.mode = PROVISION_MANUAL, .ru = 400}};

static void open_catalog(TestCatalog *t, const MoveRules *moves)
{
    test_open_with(t, TEST_MEMORY, &RULES);
    t->moves = moves;
    test_reopen(t);
}

/* "0-2 5-6": what would be merged, as positions of ranges. */
static Slice plan_text(TestCatalog *t, const Container *container)
{
    MoveOrder *orders = NULL;
    size_t count = catalog_plan_merges(t->catalog, test_read(t), container, &t->arena, &orders);
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(orders[i].parts, 1);
        assert_int_equal(orders[i].database, container->database);
        assert_int_equal(orders[i].container, container->info.number);
        const PartitionRange *first = container_range(container, orders[i].range_first);
        const PartitionRange *last = container_range(container, orders[i].range_last);
        buf_format(&text, "%s%zu-%zu", i == 0 ? "" : " ", (size_t)(first - container->ranges),
                   (size_t)(last - container->ranges));
    }
    return arena_copy(&t->arena, buf_view(&text));
}

static void provision(TestCatalog *t, uint32_t database, uint32_t container, uint32_t ru)
{
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_OFFER);
    c.change.offer = test_container(t, database, container)->offer;
    c.change.provision = MANUAL(ru);
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
}

/* One item in each range that is named, so that it holds more than a quarter of what it may. */
static void load_ranges(TestCatalog *t, const Container *container, const char *loaded)
{
    for (int key = 0; key < 400; key++) {
        Epk epk;
        item_epk(container, key, &epk);
        size_t at = 0;
        while (partition_of(container, &epk) != handle_local(container_handle_at(container, at)))
            at++;
        if (loaded[at] == '\0' || loaded[at] == '.' ||
            handle_usage(container_handle_at(container, at)).items > 0)
            continue;
        assert_int_equal(
            put_item(t, container->database, container->info.number, key, 1, ITEM_BYTES),
            STATUS_OK);
    }
}

static void as_many_are_merged_as_throughput_and_storage_allow(void **state)
{
    (void)state;
    /* Two loaded neighbours together hold more than half of what one may. */
    static const MoveRules rules = {.partition_bytes_max = 3 * ITEM_BYTES};
    static const struct {
        uint32_t before, after; /* partitions that the throughput takes */
        const char *loaded;     /* x for each that holds something */
        const char *plan;
    } rows[] = {
        {4, 4, "....", ""},         {4, 1, "....", "0-3"},   {4, 3, "x...", "1-2"},
        {4, 3, "xxxx", ""},         {4, 1, "x..x", "0-2"},   {4, 1, "xx.x", "1-2"},
        {5, 2, "x.x.x", "0-1 2-3"}, {6, 4, ".xx...", "3-5"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(test_close) TestCatalog t;
        open_catalog(&t, &rules);
        uint32_t database = make_database(&t, "d", MANUAL(0));
        uint32_t number = make_container(&t, database, "c", MANUAL(rows[i].before * PARTITION_RU));
        load_ranges(&t, test_container(&t, database, number), rows[i].loaded);
        provision(&t, database, number, rows[i].after * PARTITION_RU);
        Slice plan = plan_text(&t, test_container(&t, database, number));
        if (!slice_equal(plan, slice_from_cstr(rows[i].plan)))
            fail_msg("row %zu: expected '%s', found '%.*s'", i, rows[i].plan, SLICE_ARG(plan));
    }
}

/* "split 1 into 2" or "merge 0-1": what is due, as positions of ranges; empty if nothing is. */
static Slice due_text(TestCatalog *t, const MovePolicy *policy, const MoveBackoffs *backoffs,
                      uint64_t now_us)
{
    MoveOrder order;
    MoveReason reason;
    if (!move_policy_find_due(policy, backoffs, test_read(t), now_us, &order, &reason))
        return SLICE_EMPTY;
    const Container *container = test_container(t, order.database, order.container);
    size_t first = (size_t)(container_range(container, order.range_first) - container->ranges);
    size_t last = (size_t)(container_range(container, order.range_last) - container->ranges);
    Slice why = move_reason_text(reason);
    return order.parts == 1
               ? arena_format(&t->arena, "merge %zu-%zu: %.*s", first, last, SLICE_ARG(why))
               : arena_format(&t->arena, "split %zu into %u: %.*s", first, order.parts,
                              SLICE_ARG(why));
}

static void what_is_due_follows_from_rules_throughput_and_storage(void **state)
{
    (void)state;
    static const struct {
        MoveRules rules;
        uint32_t before, after; /* partitions that the throughput takes */
        const char *loaded;     /* x for each that holds something */
        const char *due;
    } rows[] = {
        {{.splits = true, .merges = true}, 2, 2, "..", ""},
        {{.splits = false, .merges = true}, 2, 4, "..", ""},
        {{.splits = true}, 2, 4, "..", "split 0 into 2: throughput"},
        {{.splits = true}, 1, 9, ".", "split 0 into 9: throughput"},
        {{.splits = true, .partition_bytes_max = ITEM_BYTES / 2},
         3,
         3,
         ".x.",
         "split 1 into 2: storage"},
        {{.splits = true, .partition_bytes_max = 2 * ITEM_BYTES}, 3, 3, ".x.", ""},
        {{.splits = true}, 3, 1, "...", ""},
        {{.merges = true, .partition_bytes_max = 3 * ITEM_BYTES},
         3,
         1,
         "x..",
         "merge 1-2: throughput"},
        {{.merges = true, .partition_bytes_max = 3 * ITEM_BYTES}, 2, 1, "xx", ""},
    };
    static const MoveBackoffs none = {0};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(test_close) TestCatalog t;
        open_catalog(&t, NULL);
        uint32_t database = make_database(&t, "d", MANUAL(0));
        uint32_t number = make_container(&t, database, "c", MANUAL(rows[i].before * PARTITION_RU));
        load_ranges(&t, test_container(&t, database, number), rows[i].loaded);
        provision(&t, database, number, rows[i].after * PARTITION_RU);
        MovePolicy policy = {.rules = rows[i].rules, .provision = RULES};
        Slice due = due_text(&t, &policy, &none, 0);
        if (!slice_equal(due, slice_from_cstr(rows[i].due)))
            fail_msg("row %zu: expected '%s', found '%.*s'", i, rows[i].due, SLICE_ARG(due));
    }
}

static void a_partition_whose_move_has_failed_is_left_alone_for_a_while(void **state)
{
    (void)state;
    enum { LONG_US = 3600 * 1000000U };
    AUTO(test_close) TestCatalog t;
    open_catalog(&t, NULL);
    uint32_t database = make_database(&t, "d", MANUAL(0));
    uint32_t number = make_container(&t, database, "c", MANUAL(2 * PARTITION_RU));
    provision(&t, database, number, 3 * PARTITION_RU);
    const Container *container = test_container(&t, database, number);
    MovePolicy policy = {.rules = {.splits = true}, .provision = RULES};
    MoveBackoffs backoffs = {0};
    move_backoffs_add(&backoffs, container->ranges[0].space, 5);
    assert_slice(due_text(&t, &policy, &backoffs, 6), SLICE("split 1 into 2: throughput"));
    move_backoffs_add(&backoffs, container->ranges[1].space, 7);
    assert_slice(due_text(&t, &policy, &backoffs, 8), SLICE(""));
    assert_slice(due_text(&t, &policy, &backoffs, LONG_US), SLICE("split 0 into 2: throughput"));
    for (StoreSpace other = 1; other < MOVE_BACKOFFS_MAX; other++)
        move_backoffs_add(&backoffs, other, 9);
    assert_false(move_backoffs_has(&backoffs, container->ranges[0].space, 10)); /* forgotten */
    assert_true(move_backoffs_has(&backoffs, container->ranges[1].space, 10));
}

static void no_merge_has_more_sources_than_a_move_may_have(void **state)
{
    (void)state;
    static const MoveRules rules = {0};
    AUTO(test_close) TestCatalog t;
    open_catalog(&t, &rules);
    uint32_t database = make_database(&t, "d", MANUAL(0));
    uint32_t number = make_container(&t, database, "c", MANUAL(100 * PARTITION_RU));
    provision(&t, database, number, PARTITION_RU);
    assert_slice(plan_text(&t, test_container(&t, database, number)), SLICE("0-63 64-99"));
}

static void a_container_that_shares_throughput_keeps_a_range_per_partition(void **state)
{
    (void)state;
    static const MoveRules rules = {0};
    AUTO(test_close) TestCatalog t;
    open_catalog(&t, &rules);
    uint32_t database = make_database(&t, "d", MANUAL(3 * PARTITION_RU));
    uint32_t number = make_container(&t, database, "c", MANUAL(0));
    assert_int_equal(snapshot_database(test_read(&t), database)->partitions, 3);
    const Container *container = test_container(&t, database, number);
    assert_int_equal(container->range_count, 3);
    assert_slice(plan_text(&t, container), SLICE(""));
    uint32_t first = container->ranges[0].id;
    move_ranges(&t, database, number, first, first, "0001");
    assert_slice(plan_text(&t, test_container(&t, database, number)), SLICE("0-1"));
}

static void throughput_is_on_its_way_until_a_split_is_done_or_has_failed(void **state)
{
    (void)state;
    static const MoveRules rules = {.splits = true};
    AUTO(test_close) TestCatalog t;
    open_catalog(&t, &rules);
    uint32_t database = make_database(&t, "d", MANUAL(0));
    uint32_t number = make_container(&t, database, "c", MANUAL(PARTITION_RU));
    assert_int_equal(put_item(&t, database, number, 1, 1, 10), STATUS_OK);
    const Container *container = test_container(&t, database, number);
    assert_false(catalog_is_scaling(t.catalog, test_read(&t), container));
    memory_store_fail_cursor_steps(t.store, 1, STATUS_IO); /* where it is to be cut */
    provision(&t, database, number, 2 * PARTITION_RU);
    MoveEvent event = {0};
    while (event.ended_us == 0) {
        container = test_container(&t, database, number);
        bool is_scaling = catalog_is_scaling(t.catalog, test_read(&t), container);
        (void)catalog_moves(t.catalog, &event, 1);
        assert_true(is_scaling || event.ended_us != 0);
    }
    assert_int_equal(event.stage, MOVE_FAILED);
    container = test_container(&t, database, number);
    assert_false(catalog_is_scaling(t.catalog, test_read(&t), container));
    assert_false(catalog_is_moving(t.catalog, container));
    MoveCounts counts = catalog_move_counts(t.catalog);
    assert_int_equal(counts.splits_failed, 1);
    assert_int_equal(counts.splits_done + counts.merges_done + counts.merges_failed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_are_merged_as_throughput_and_storage_allow),
        cmocka_unit_test(what_is_due_follows_from_rules_throughput_and_storage),
        cmocka_unit_test(a_partition_whose_move_has_failed_is_left_alone_for_a_while),
        cmocka_unit_test(no_merge_has_more_sources_than_a_move_may_have),
        cmocka_unit_test(a_container_that_shares_throughput_keeps_a_range_per_partition),
        cmocka_unit_test(throughput_is_on_its_way_until_a_split_is_done_or_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
