/* catalog_move_test.c - moves of ranges: the map before, during and after them, and what undoes
 * them (I5, I10, I11).
 *
 * Containers here have three ranges, 0, 1 and 2, of the bounds "", THIRD, TWO_THIRDS and "FF".
 */
#include "catalog/partition_handle_int.h"
#include "catalog/testing_int.h"

#define NONE       MANUAL(0)
#define THIRD      "15555555555555555555555555555555"
#define TWO_THIRDS "2AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

enum { WAIT_MS = 10000 };

typedef struct Moved {
    uint32_t database;
    uint32_t number;
} Moved;

static Moved make_three(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    return (Moved){database, make_container(t, database, "c", MANUAL(18000))};
}

static const Container *now(TestCatalog *t, Moved m)
{
    return test_container(t, m.database, m.number);
}

/* The map as text: "0:-15 3:15-20<1 ..." with the first two digits of each bound. */
static void expect_ranges(const PartitionRange *ranges, size_t count, const char *expected)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; i < count; i++) {
        const PartitionRange *range = &ranges[i];
        buf_format(&text, "%s%u:%.*s-%.*s", i == 0 ? "" : " ", range->id, SLICE_CUT(range->min, 2),
                   SLICE_CUT(range->max, 2));
        for (size_t j = 0; j < range->parent_count; j++)
            buf_format(&text, "%c%u", j == 0 ? '<' : '+', range->parents[j]);
    }
    assert_slice(buf_view(&text), slice_from_cstr(expected));
}

static void expect_map(TestCatalog *t, Moved m, const char *expected)
{
    const Container *container = now(t, m);
    expect_ranges(container->ranges, container->range_count, expected);
}

static void put_key(Store *store, StoreSpace space)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, space, SLICE("key"), SLICE("value"));
    assert_ok(store_txn_commit_wait(txn, err));
}

/* Waits until the space is empty and 'left' pieces of garbage are noted. */
static void expect_cleaned(Store *store, StoreSpace space, size_t left)
{
    for (int ms = 0; count_keys(store, space) > 0 || count_garbage(store) != left; ms++) {
        if (ms == WAIT_MS)
            fail_msg("%zu keys and %zu notes are still there", count_keys(store, space),
                     count_garbage(store));
        (void)usleep(1000);
    }
}

static void a_move_that_is_begun_changes_nothing_that_is_seen(TestCatalog *t)
{
    Moved m = make_three(t);
    Container *before = container_ref(now(t, m));
    AUTO(test_change_done) TestChange c;
    fill_begin(t, &c, before, 1, 1, "20");
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    const Container *during = now(t, m);
    assert_ptr_equal(during, c.change.result_container);
    assert_null(c.change.before);
    expect_map(t, m, "0:-15 1:15-2A 2:2A-FF");
    expect_ranges(during->pending, during->pending_count, "3:15-20<1 4:20-2A<1");
    assert_slice(during->info.etag, before->info.etag);
    assert_true(json_equal(during->definition, before->definition));
    assert_true(during->ranges_lsn == before->ranges_lsn);
    size_t count = 0;
    const PartitionRange *sources = container_sources(during, &count);
    assert_ptr_equal(sources, &during->ranges[1]);
    assert_int_equal(count, 1);
    assert_null(container_sources(before, &count));
    assert_int_equal(count, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_ptr_equal(handle_local(container_handle_at(during, i)),
                         handle_local(container_handle_at(before, i)));
        assert_ptr_equal(container_handle_at(during, i)->budget,
                         container_handle_at(before, i)->budget);
    }
    for (size_t i = 0; i < 2; i++) {
        assert_true(during->pending[i].space == before->ranges[2].space + 1 + i);
        assert_non_null(handle_local(container_handle(during, &during->pending[i])));
    }
    container_unref(before);
}

static void a_move_that_is_ended_puts_its_targets_into_the_map(TestCatalog *t)
{
    Moved m = make_three(t);
    begin_move(t, m.database, m.number, 1, 1, "20");
    Container *during = container_ref(now(t, m));
    fake_clock_advance(&t->clock, 5000000);
    AUTO(test_change_done) TestChange c;
    fill_move(&c, CATALOG_END_MOVE, during);
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    const Container *after = now(t, m);
    assert_ptr_equal(after, c.change.result_container);
    assert_ptr_equal(during, c.change.before);
    expect_map(t, m, "0:-15 3:15-20<1 4:20-2A<1 2:2A-FF");
    assert_int_equal(after->pending_count, 0);
    assert_slice(after->info.etag, during->info.etag);
    assert_int_equal(after->info.ts_s, during->info.ts_s);
    assert_true(after->ranges_lsn > during->pending[0].lsn);
    assert_true(after->ranges[0].lsn == during->ranges[0].lsn);
    assert_true(after->ranges[3].lsn == during->ranges[2].lsn);
    for (size_t i = 0; i < 2; i++) {
        assert_true(after->ranges[1 + i].lsn == after->ranges_lsn);
        assert_ptr_equal(handle_local(container_handle_at(after, 1 + i)),
                         handle_local(container_handle(during, &during->pending[i])));
    }
    assert_ptr_equal(handle_local(container_handle_at(after, 0)),
                     handle_local(container_handle_at(during, 0)));
    assert_ptr_equal(handle_local(container_handle_at(after, 3)),
                     handle_local(container_handle_at(during, 2)));
    container_unref(during);
    Slice dump = test_dump(t);
    test_reopen(t);
    assert_slice(test_dump(t), dump);
}

static void the_space_of_a_source_is_noted_as_garbage(TestCatalog *t)
{
    Moved m = make_three(t);
    StoreSpace source = now(t, m)->ranges[1].space;
    StoreSpace kept = now(t, m)->ranges[0].space;
    put_key(t->store, source);
    put_key(t->store, kept);
    begin_move(t, m.database, m.number, 1, 1, "20");
    StoreSpace target = now(t, m)->pending[1].space;
    put_key(t->store, target);
    assert_int_equal(count_garbage(t->store), 0);
    finish_move(t, CATALOG_END_MOVE, m.database, m.number);
    assert_int_equal(count_garbage(t->store), 1);
    assert_int_equal(count_keys(t->store, source), 1); /* it may still be read */
    test_reopen(t);
    expect_cleaned(t->store, source, 0);
    assert_int_equal(count_keys(t->store, kept), 1);
    assert_int_equal(count_keys(t->store, target), 1);
}

static void a_range_knows_all_that_it_came_from(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    Moved m = {database, make_container(t, database, "c", NONE)};
    static const struct {
        uint32_t first, last;
        const char *cuts;
        const char *map;
    } rows[] = {
        {0, 0, "20", "1:-20<0 2:20-FF<0"},
        {2, 2, "30", "1:-20<0 3:20-30<0+2 4:30-FF<0+2"},
        {1, 3, "", "5:-30<0+1+2+3 4:30-FF<0+2"},
        {5, 4, "", "6:-FF<0+1+2+3+4+5"},
        {6, 6, "10 20", "7:-10<0+1+2+3+4+5+6 8:10-20<0+1+2+3+4+5+6 9:20-FF<0+1+2+3+4+5+6"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        move_ranges(t, m.database, m.number, rows[i].first, rows[i].last, rows[i].cuts);
        expect_map(t, m, rows[i].map);
        if (i % 2 == 0)
            test_reopen(t);
        expect_map(t, m, rows[i].map);
    }
    const PartitionRange *range = container_range(now(t, m), 8);
    assert_non_null(range);
    assert_true(partition_range_is_from(range, 8));
    assert_true(partition_range_is_from(range, 0));
    assert_true(partition_range_is_from(range, 6));
    assert_false(partition_range_is_from(range, 7));
    assert_false(partition_range_is_from(range, UINT32_MAX));
    assert_null(container_range(now(t, m), 6));
}

/* Several ranges are cut anew at once: a target comes from those that it overlaps. */
static void a_target_comes_from_what_it_overlaps(TestCatalog *t)
{
    Moved m = make_three(t);
    move_ranges(t, m.database, m.number, 0, 2, "10 20");
    expect_map(t, m, "3:-10<0 4:10-20<0+1 5:20-FF<1+2");
    move_ranges(t, m.database, m.number, 3, 4, "10");
    expect_map(t, m, "6:-10<0+3 7:10-20<0+1+4 5:20-FF<1+2");
}

static void a_lineage_has_a_bound_and_keeps_the_newest(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    Moved m = {database, make_container(t, database, "c", MANUAL(12000))};
    uint32_t left = 0;
    for (int i = 0; i < RANGE_PARENTS_MAX; i++) { /* two more ancestors each time */
        move_ranges(t, m.database, m.number, left, left, "10");
        left = now(t, m)->ranges[0].id;
        move_ranges(t, m.database, m.number, left, left + 1, "");
        left = now(t, m)->ranges[0].id;
    }
    const PartitionRange *range = container_range(now(t, m), left);
    assert_int_equal(range->parent_count, RANGE_PARENTS_MAX);
    assert_int_equal(range->parents[RANGE_PARENTS_MAX - 1], left - 1);
    assert_int_equal(range->parents[0], left - RANGE_PARENTS_MAX);
    /* The other range, with its small id, is a parent that must not be forgotten. */
    move_ranges(t, m.database, m.number, left, 1, "");
    range = &now(t, m)->ranges[0];
    assert_int_equal(now(t, m)->range_count, 1);
    assert_int_equal(range->parent_count, RANGE_PARENTS_MAX);
    assert_true(partition_range_is_from(range, 1));
    assert_true(partition_range_is_from(range, left));
    assert_false(partition_range_is_from(range, left - RANGE_PARENTS_MAX));
    Slice dump = test_dump(t);
    test_reopen(t);
    assert_slice(test_dump(t), dump);
}

static void expect_refusal(TestCatalog *t, TestChange *c, Status status, SubStatus sub)
{
    Slice before = test_dump(t);
    assert_int_equal(test_run(t->catalog, c), status);
    assert_int_equal(c->change.error.sub, sub);
    assert_true(strlen(c->change.error.message) > 0);
    assert_null(c->change.result_container);
    assert_null(c->change.before);
    assert_slice(test_dump(t), before);
    test_change_done(c);
}

static void a_move_that_cannot_be_is_refused(TestCatalog *t)
{
    static const struct {
        uint32_t first, last;
        const char *cuts;
        Status status;
        SubStatus sub;
    } rows[] = {
        {3, 3, "20", STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE},
        {0, 7, "20", STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE},
        {7, 0, "20", STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE},
        {2, 0, "", STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE},
        {1, 1, "", STATUS_BAD_REQUEST, SUB_NONE},
        /* on the bounds, outside of them, twice the same, out of order, no bound at all */
        {1, 1, THIRD, STATUS_BAD_REQUEST, SUB_NONE},
        {1, 1, TWO_THIRDS, STATUS_BAD_REQUEST, SUB_NONE},
        {1, 1, "10", STATUS_BAD_REQUEST, SUB_NONE},
        {1, 1, "30", STATUS_BAD_REQUEST, SUB_NONE},
        {2, 2, "FF", STATUS_BAD_REQUEST, SUB_NONE},
        {2, 2, "FFFF", STATUS_BAD_REQUEST, SUB_NONE},
        {1, 1, "20 20", STATUS_BAD_REQUEST, SUB_NONE},
        {1, 1, "28 20", STATUS_BAD_REQUEST, SUB_NONE},
        {1, 1, "2", STATUS_BAD_REQUEST, SUB_NONE},
        {1, 1, "200", STATUS_BAD_REQUEST, SUB_NONE},
        {1, 1, "2a", STATUS_BAD_REQUEST, SUB_NONE},
        {1, 1, "20 zz", STATUS_BAD_REQUEST, SUB_NONE},
    };
    Moved m = make_three(t);
    TestChange c;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        fill_begin(t, &c, now(t, m), rows[i].first, rows[i].last, rows[i].cuts);
        expect_refusal(t, &c, rows[i].status, rows[i].sub);
    }
    static const CatalogOp ops[] = {CATALOG_BEGIN_MOVE, CATALOG_END_MOVE, CATALOG_UNDO_MOVE};
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        fill_begin(t, &c, now(t, m), 1, 1, "20");
        c.change.op = ops[i];
        c.change.container++;
        expect_refusal(t, &c, STATUS_NOT_FOUND, SUB_NONE);
    }
    for (size_t i = 1; i < ARRAY_COUNT(ops); i++) { /* there is nothing to end */
        fill_move(&c, ops[i], now(t, m));
        expect_refusal(t, &c, STATUS_NOT_FOUND, SUB_NONE);
    }
    begin_move(t, m.database, m.number, 0, 0, "10");
    fill_begin(t, &c, now(t, m), 1, 1, "20"); /* though it is of another range */
    expect_refusal(t, &c, STATUS_CONFLICT, SUB_NONE);
}

static void a_container_without_a_key_is_not_split(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    AUTO(test_change_done) TestChange made;
    Json normal = JSON_NONE;
    assert_ok(container_definition_create(&t->arena, row_json(&t->arena, "{'id':'old'}"),
                                          (ContainerRules){.allow_no_partition_key = true}, &normal,
                                          err));
    fill_container(&made, database, normal, NONE);
    assert_int_equal(test_run(t->catalog, &made), STATUS_OK);
    TestChange c;
    fill_begin(t, &c, made.change.result_container, 0, 0, "20");
    expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE);
}

static void a_container_has_so_many_ranges_and_no_more(TestCatalog *t)
{
    Moved m = make_three(t);
    AUTO(buf_done) Buf cuts;
    buf_init(&cuts, 1 << 20);
    for (uint32_t i = 1; i <= RANGES_MAX - 3; i++)
        buf_format(&cuts, "%s20%04X", i == 1 ? "" : " ", i);
    char *text = arena_cstr(&t->arena, buf_view(&cuts));
    TestChange c;
    buf_format(&cuts, " 30");
    fill_begin(t, &c, now(t, m), 1, 1, arena_cstr(&t->arena, buf_view(&cuts)));
    expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE);
    move_ranges(t, m.database, m.number, 1, 1, text);
    assert_int_equal(now(t, m)->range_count, RANGES_MAX);
    fill_begin(t, &c, now(t, m), 0, 0, "10");
    expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE);
    /* As many at once as a lineage holds. */
    fill_begin(t, &c, now(t, m), 3, 3 + RANGE_PARENTS_MAX, "");
    expect_refusal(t, &c, STATUS_BAD_REQUEST, SUB_NONE);
    move_ranges(t, m.database, m.number, 3, 3 + RANGE_PARENTS_MAX - 1, "");
    assert_int_equal(now(t, m)->range_count, RANGES_MAX - RANGE_PARENTS_MAX + 1);
    assert_int_equal(now(t, m)->ranges[1].parent_count, RANGE_PARENTS_MAX);
}

static void a_move_that_is_undone_leaves_nothing(TestCatalog *t)
{
    Moved m = make_three(t);
    begin_move(t, m.database, m.number, 0, 1, "20");
    Container *during = container_ref(now(t, m));
    for (size_t i = 0; i < 2; i++)
        put_key(t->store, during->pending[i].space);
    put_key(t->store, during->ranges[0].space);
    AUTO(test_change_done) TestChange c;
    fill_move(&c, CATALOG_UNDO_MOVE, during);
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    const Container *after = now(t, m);
    assert_ptr_equal(c.change.before, during);
    assert_int_equal(after->pending_count, 0);
    assert_slice(after->info.etag, during->info.etag);
    expect_map(t, m, "0:-15 1:15-2A 2:2A-FF");
    for (size_t i = 0; i < 2; i++)
        expect_cleaned(t->store, during->pending[i].space, 0);
    assert_int_equal(count_keys(t->store, after->ranges[0].space), 1);
    /* Ids and spaces are not used again. */
    begin_move(t, m.database, m.number, 0, 0, "10");
    expect_ranges(now(t, m)->pending, 2, "5:-10<0 6:10-15<0");
    assert_true(now(t, m)->pending[0].space > during->pending[1].space);
    container_unref(during);
}

static void a_restart_undoes_a_move_for_good(TestCatalog *t)
{
    Moved m = make_three(t);
    begin_move(t, m.database, m.number, 1, 1, "20");
    StoreSpace first = now(t, m)->pending[0].space;
    StoreSpace source = now(t, m)->ranges[1].space;
    for (int i = 0; i < 2; i++) {
        put_key(t->store, first);
        put_key(t->store, first + 1);
        put_key(t->store, source);
        test_reopen(t);
        assert_int_equal(now(t, m)->pending_count, 0);
        expect_map(t, m, "0:-15 1:15-2A 2:2A-FF");
        if (i > 0)
            break;
        expect_cleaned(t->store, first, 0);
        expect_cleaned(t->store, first + 1, 0);
        assert_int_equal(count_keys(t->store, source), 1);
        /* It is not cleaned again: its record is gone. */
    }
    assert_int_equal(count_keys(t->store, first), 1);
    begin_move(t, m.database, m.number, 1, 1, "20");
    expect_ranges(now(t, m)->pending, 2, "5:15-20<1 6:20-2A<1");
    assert_true(now(t, m)->pending[0].space > first + 1);
}

static void a_drop_takes_a_move_along(TestCatalog *t)
{
    for (int of_database = 0; of_database < 2; of_database++) {
        Moved m = make_three(t);
        begin_move(t, m.database, m.number, 2, 2, "30");
        StoreSpace spaces[] = {now(t, m)->ranges[2].space, now(t, m)->pending[0].space,
                               now(t, m)->pending[1].space};
        for (size_t i = 0; i < ARRAY_COUNT(spaces); i++)
            put_key(t->store, spaces[i]);
        TestChange end;
        fill_move(&end, CATALOG_END_MOVE, now(t, m));
        if (of_database == 0)
            assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, m.database, m.number),
                             STATUS_OK);
        else
            assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, m.database, 0), STATUS_OK);
        for (size_t i = 0; i < ARRAY_COUNT(spaces); i++)
            expect_cleaned(t->store, spaces[i], 0);
        expect_refusal(t, &end, STATUS_NOT_FOUND, SUB_NONE);
        if (of_database == 0)
            assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, m.database, 0), STATUS_OK);
    }
}

static void a_replaced_container_keeps_its_move(TestCatalog *t)
{
    Moved m = make_three(t);
    begin_move(t, m.database, m.number, 1, 1, "20");
    Container *during = container_ref(now(t, m));
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, CATALOG_REPLACE_CONTAINER);
    c.change.database = m.database;
    c.change.container = m.number;
    c.change.definition = row_definition(&t->arena, "c", ",'defaultTtl':5");
    assert_int_equal(test_run(t->catalog, &c), STATUS_OK);
    const Container *after = now(t, m);
    assert_int_equal(after->pending_count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_ptr_equal(handle_local(container_handle(after, &after->pending[i])),
                         handle_local(container_handle(during, &during->pending[i])));
        assert_ptr_equal(container_handle(after, &after->pending[i])->budget,
                         container_handle(during, &during->pending[i])->budget);
    }
    finish_move(t, CATALOG_END_MOVE, m.database, m.number);
    expect_map(t, m, "0:-15 3:15-20<1 4:20-2A<1 2:2A-FF");
    assert_int_equal(container_default_ttl_s(now(t, m)->definition), 5);
    container_unref(during);
}

/* ---- one group, and the disk ---- */

static void a_drop_and_an_end_may_be_of_one_group(void **state)
{
    (void)state;
    for (int drop_first = 0; drop_first < 2; drop_first++) {
        AUTO(test_close) TestCatalog t;
        test_open(&t, TEST_MEMORY);
        Moved m = make_three(&t);
        begin_move(&t, m.database, m.number, 1, 1, "20");
        StoreSpace first = now(&t, m)->ranges[0].space;
        for (size_t i = 0; i < 5; i++)
            put_key(t.store, first + i);
        TestChange group[2];
        TestChange *end = &group[drop_first == 1 ? 1 : 0];
        TestChange *drop = &group[drop_first == 1 ? 0 : 1];
        fill_move(end, CATALOG_END_MOVE, now(&t, m));
        fill_move(drop, CATALOG_DELETE_CONTAINER, now(&t, m));
        run_as_group(&t, group, 2);
        assert_int_equal(end->change.status, drop_first == 1 ? STATUS_NOT_FOUND : STATUS_OK);
        assert_int_equal(drop->change.status, STATUS_OK);
        test_change_done(&group[0]);
        test_change_done(&group[1]);
        assert_null(now(&t, m));
        test_reopen(&t);
        for (size_t i = 0; i < 5; i++)
            expect_cleaned(t.store, first + i, 0);
    }
}

static void a_whole_move_may_be_of_one_group(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    Moved m = make_three(&t);
    TestChange group[5];
    fill_begin(&t, &group[0], now(&t, m), 1, 1, "20");
    fill_move(&group[1], CATALOG_UNDO_MOVE, now(&t, m));
    fill_begin(&t, &group[2], now(&t, m), 1, 2, "");
    fill_move(&group[3], CATALOG_END_MOVE, now(&t, m));
    fill_begin(&t, &group[4], now(&t, m), 5, 5, "20");
    run_as_group(&t, group, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(group[i].change.status, STATUS_OK);
        test_change_done(&group[i]);
    }
    expect_map(&t, m, "0:-15 5:15-FF<1+2");
    expect_ranges(now(&t, m)->pending, 2, "6:15-20<1+2+5 7:20-FF<1+2+5");
    test_reopen(&t);
    expect_map(&t, m, "0:-15 5:15-FF<1+2");
    expect_cleaned(t.store, now(&t, m)->ranges[0].space + 1, 0);
}

static void a_disk_that_says_no_leaves_a_move_as_it_was(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    Moved m = make_three(&t);
    for (int begun = 0; begun < 2; begun++) {
        Slice before = test_dump(&t);
        static const CatalogOp ops[] = {CATALOG_END_MOVE, CATALOG_UNDO_MOVE};
        for (int i = 0; i < (begun == 1 ? 2 : 1); i++) {
            AUTO(test_change_done) TestChange c;
            fill_begin(&t, &c, now(&t, m), 1, 1, "20");
            if (begun == 1)
                c.change.op = ops[i];
            memory_store_fail_commits(t.store, 1, STATUS_IO);
            assert_int_equal(test_run(t.catalog, &c), STATUS_IO);
            assert_null(c.change.before);
            assert_null(c.change.result_container);
            assert_slice(test_dump(&t), before);
        }
        if (begun == 0)
            begin_move(&t, m.database, m.number, 1, 1, "20");
    }
    finish_move(&t, CATALOG_END_MOVE, m.database, m.number);
    expect_map(&t, m, "0:-15 3:15-20<1 4:20-2A<1 2:2A-FF");
}

/* What a restart could not write it does not forget either. */
static void a_restart_that_cannot_undo_a_move_does_not_serve(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    Moved m = make_three(&t);
    begin_move(&t, m.database, m.number, 1, 1, "20");
    StoreSpace first = now(&t, m)->pending[0].space;
    put_key(t.store, first);
    test_close_catalog(&t);
    memory_store_fail_commits(t.store, 1, STATUS_IO);
    Error refusal = {0};
    assert_int_equal(test_try_open(&t, &refusal), STATUS_IO);
    memory_store_set_full(t.store, true); /* that is no reason: it makes room */
    assert_ok(test_try_open(&t, err));
    assert_int_equal(now(&t, m)->pending_count, 0);
    expect_cleaned(t.store, first, 0);
}

static void a_full_disk_begins_no_move_and_ends_those_there_are(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    Moved m = make_three(&t);
    memory_store_set_full(t.store, true);
    TestChange c;
    fill_begin(&t, &c, now(&t, m), 1, 1, "20");
    expect_refusal(&t, &c, STATUS_IO, SUB_NONE);
    static const CatalogOp ops[] = {CATALOG_UNDO_MOVE, CATALOG_END_MOVE};
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        memory_store_set_full(t.store, false);
        begin_move(&t, m.database, m.number, 1, 1, "20");
        memory_store_set_full(t.store, true);
        finish_move(&t, ops[i], m.database, m.number);
    }
    expect_map(&t, m, "0:-15 5:15-20<1 6:20-2A<1 2:2A-FF");
    memory_store_set_full(t.store, false);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_move_that_is_begun_changes_nothing_that_is_seen),
        ENGINE_TEST(a_move_that_is_ended_puts_its_targets_into_the_map),
        ENGINE_TEST(the_space_of_a_source_is_noted_as_garbage),
        ENGINE_TEST(a_range_knows_all_that_it_came_from),
        ENGINE_TEST(a_target_comes_from_what_it_overlaps),
        ENGINE_TEST(a_lineage_has_a_bound_and_keeps_the_newest),
        ENGINE_TEST(a_move_that_cannot_be_is_refused),
        ENGINE_TEST(a_container_without_a_key_is_not_split),
        ENGINE_TEST(a_container_has_so_many_ranges_and_no_more),
        ENGINE_TEST(a_move_that_is_undone_leaves_nothing),
        ENGINE_TEST(a_restart_undoes_a_move_for_good),
        ENGINE_TEST(a_drop_takes_a_move_along),
        ENGINE_TEST(a_replaced_container_keeps_its_move),
    };
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(a_drop_and_an_end_may_be_of_one_group),
        cmocka_unit_test(a_whole_move_may_be_of_one_group),
        cmocka_unit_test(a_disk_that_says_no_leaves_a_move_as_it_was),
        cmocka_unit_test(a_restart_that_cannot_undo_a_move_does_not_serve),
        cmocka_unit_test(a_full_disk_begins_no_move_and_ends_those_there_are),
    };
    int failed = cmocka_run_group_tests(plain, NULL, NULL);
    return failed + run_on_every_engine("moves", tests, ARRAY_COUNT(tests));
}
