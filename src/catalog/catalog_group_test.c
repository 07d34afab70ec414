/* catalog_group_test.c - groups of changes that wait for the disk, and a disk that fails (I1, I2).
 *
 * The memory engine stalls and fails when it is told to, so every moment here is chosen.
 */
#include "catalog/testing_int.h"

#define NONE MANUAL(0)

static int64_t commits(TestCatalog *t)
{
    return metrics_total(&t->metrics, METRIC_CATALOG_COMMITS);
}

static int64_t changes(TestCatalog *t)
{
    return metrics_total(&t->metrics, METRIC_CATALOG_CHANGES);
}

/* Submits a change whose group then waits for the disk until memory_store_release. */
static void stall_with(TestCatalog *t, TestChange *blocker)
{
    memory_store_stall(t->store);
    fill_database(blocker, SLICE("blocker"), NONE);
    catalog_submit(t->catalog, &blocker->change);
    memory_store_wait_stalled(t->store);
}

static void nothing_is_seen_or_answered_before_it_is_durable(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    Slice before = test_dump(&t);
    size_t keys = count_keys(t.store, SPACE_CATALOG);
    AUTO(test_change_done) TestChange blocker;
    stall_with(&t, &blocker);
    assert_false(test_is_answered(&blocker));
    assert_slice(test_dump(&t), before);
    assert_int_equal(count_keys(t.store, SPACE_CATALOG), keys);
    memory_store_release(t.store);
    assert_int_equal(test_wait(&blocker), STATUS_OK);
    assert_non_null(snapshot_database_by_id(test_read(&t), SLICE("blocker")));
    assert_int_equal(count_keys(t.store, SPACE_CATALOG), keys + 1);
}

static void what_arrives_meanwhile_becomes_one_group(void **state)
{
    (void)state;
    enum { COUNT = 50 };
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    int64_t commits_before = commits(&t);
    int64_t changes_before = changes(&t);
    uint64_t groups_before = memory_store_groups(t.store);
    AUTO(test_change_done) TestChange blocker;
    stall_with(&t, &blocker);
    static TestChange more[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        fill_database(&more[i], arena_format(&t.arena, "db%zu", i), NONE);
        catalog_submit(t.catalog, &more[i].change);
    }
    memory_store_release(t.store);
    assert_int_equal(test_wait(&blocker), STATUS_OK);
    uint32_t last = blocker.change.result_database->info.number;
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(test_wait(&more[i]), STATUS_OK);
        /* Applied in the order in which they came. */
        assert_int_equal(more[i].change.result_database->info.number, ++last);
        test_change_done(&more[i]);
    }
    assert_int_equal(commits(&t) - commits_before, 2);
    assert_int_equal(changes(&t) - changes_before, 1 + COUNT);
    assert_int_equal(memory_store_groups(t.store) - groups_before, 2);
}

static void a_group_has_its_bound(void **state)
{
    (void)state;
    enum { COUNT = 1025 }; /* one more than a group takes */
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    int64_t before = commits(&t);
    AUTO(test_change_done) TestChange blocker;
    stall_with(&t, &blocker);
    static TestChange more[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        fill_database(&more[i], arena_format(&t.arena, "db%zu", i), NONE);
        catalog_submit(t.catalog, &more[i].change);
    }
    memory_store_release(t.store);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(test_wait(&more[i]), STATUS_OK);
        test_change_done(&more[i]);
    }
    assert_int_equal(commits(&t) - before, 3);
    assert_int_equal(test_wait(&blocker), STATUS_OK);
}

/* Changes of one group that build on each other, and refusals that rest on them. */
static void changes_of_a_group_see_each_other(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    Json definition = row_definition(&t.arena, "c", "");
    AUTO(test_change_done) TestChange blocker;
    stall_with(&t, &blocker);
    TestChange group[4];
    fill_container(&group[0], database, definition, NONE);
    fill_container(&group[1], database, definition, NONE); /* taken by the one before */
    test_change_init(&group[2], CATALOG_DELETE_DATABASE);
    group[2].change.database = database;
    fill_container(&group[3], database, definition, NONE); /* in a database that is gone */
    static const Status expected[] = {STATUS_OK, STATUS_CONFLICT, STATUS_OK, STATUS_NOT_FOUND};
    for (size_t i = 0; i < ARRAY_COUNT(group); i++)
        catalog_submit(t.catalog, &group[i].change);
    memory_store_release(t.store);
    for (size_t i = 0; i < ARRAY_COUNT(group); i++) {
        assert_int_equal(test_wait(&group[i]), expected[i]);
        test_change_done(&group[i]);
    }
    assert_null(snapshot_database(test_read(&t), database));
    assert_int_equal(test_wait(&blocker), STATUS_OK);
}

static void a_refusal_waits_for_the_changes_that_it_rests_on(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    AUTO(test_change_done) TestChange blocker;
    stall_with(&t, &blocker);
    AUTO(test_change_done) TestChange same;
    fill_database(&same, SLICE("blocker"), NONE);
    catalog_submit(t.catalog, &same.change);
    (void)usleep(20000);
    assert_false(test_is_answered(&same)); /* the name is not durably taken yet */
    memory_store_release(t.store);
    assert_int_equal(test_wait(&same), STATUS_CONFLICT);
    assert_int_equal(test_wait(&blocker), STATUS_OK);
}

static void refusals_alone_cost_no_commit(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    uint64_t groups = memory_store_groups(t.store);
    int64_t before = commits(&t);
    for (int i = 0; i < 10; i++)
        assert_int_equal(delete_one(&t, CATALOG_DELETE_DATABASE, database + 1, 0),
                         STATUS_NOT_FOUND);
    assert_int_equal(memory_store_groups(t.store), groups);
    assert_int_equal(commits(&t), before);
}

static void a_failed_commit_fails_all_of_its_group_and_nothing_else(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", MANUAL(400));
    uint32_t container = make_container(&t, database, "c", NONE);
    Slice before = test_dump(&t);

    TestChange blocker;
    stall_with(&t, &blocker);
    TestChange group[5];
    fill_database(&group[0], SLICE("x"), MANUAL(500));
    fill_database(&group[1], SLICE("x"), NONE); /* would be a conflict, were the first durable */
    fill_container(&group[2], database, row_definition(&t.arena, "d", ""), NONE);
    test_change_init(&group[3], CATALOG_DELETE_CONTAINER);
    group[3].change.database = database;
    group[3].change.container = container;
    test_change_init(&group[4], CATALOG_REPLACE_OFFER);
    group[4].change.offer = snapshot_database(test_read(&t), database)->offer;
    group[4].change.provision = MANUAL(900);
    for (size_t i = 0; i < ARRAY_COUNT(group); i++)
        catalog_submit(t.catalog, &group[i].change);
    memory_store_fail_commits(t.store, 2, STATUS_IO);
    memory_store_release(t.store);

    assert_int_equal(test_wait(&blocker), STATUS_IO);
    assert_null(blocker.change.result_database);
    test_change_done(&blocker);
    for (size_t i = 0; i < ARRAY_COUNT(group); i++) {
        assert_int_equal(test_wait(&group[i]), STATUS_IO);
        assert_int_equal(group[i].change.error.status, STATUS_IO);
        assert_null(group[i].change.result_database);
        assert_null(group[i].change.result_container);
        assert_null(group[i].change.result_offer);
        test_change_done(&group[i]);
    }
    assert_slice(test_dump(&t), before);

    /* The disk is well again: the same changes work, and so does a restart. */
    uint32_t x = make_database(&t, "x", MANUAL(500));
    assert_int_equal(delete_one(&t, CATALOG_DELETE_DATABASE, x, 0), STATUS_OK);
    assert_slice(test_dump(&t), before);
    make_container(&t, database, "d", NONE);
    assert_int_equal(delete_one(&t, CATALOG_DELETE_CONTAINER, database, container), STATUS_OK);
    Slice after = test_dump(&t);
    test_reopen(&t);
    assert_slice(test_dump(&t), after);
}

static void data_of_a_drop_that_failed_is_kept(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t container = make_container(&t, database, "c", NONE);
    StoreSpace space = snapshot_container(test_read(&t), database, container)->ranges[0].space;
    StoreTxn *txn = store_txn_begin(t.store);
    store_txn_put(txn, space, SLICE("key"), SLICE("value"));
    assert_ok(store_txn_commit_wait(txn, err));
    memory_store_fail_commits(t.store, 1, STATUS_IO);
    assert_int_equal(delete_one(&t, CATALOG_DELETE_CONTAINER, database, container), STATUS_IO);
    /* A later group must not hand the lost group's garbage to the cleaner. */
    make_database(&t, "other", NONE);
    test_close_catalog(&t);
    assert_int_equal(count_keys(t.store, space), 1);
    assert_ok(test_try_open(&t, err));
    assert_non_null(snapshot_container(test_read(&t), database, container));
    assert_int_equal(count_keys(t.store, space), 1);
}

static void a_number_that_was_lost_with_its_group_is_not_given_out_again(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t first = make_database(&t, "a", NONE);
    memory_store_fail_commits(t.store, 1, STATUS_IO);
    AUTO(test_change_done) TestChange c;
    fill_database(&c, SLICE("b"), NONE);
    assert_int_equal(test_run(t.catalog, &c), STATUS_IO);
    assert_true(make_database(&t, "b", NONE) > first + 1);
}

static void what_a_crash_takes_was_never_answered_with_success(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    make_database(&t, "kept", NONE);
    Slice before = test_dump(&t);
    AUTO(test_change_done) TestChange blocker;
    stall_with(&t, &blocker);
    AUTO(test_change_done) TestChange behind;
    fill_database(&behind, SLICE("behind"), NONE);
    catalog_submit(t.catalog, &behind.change);
    memory_store_crash(t.store);
    assert_int_equal(test_wait(&blocker), STATUS_UNAVAILABLE);
    assert_int_equal(test_wait(&behind), STATUS_UNAVAILABLE);
    test_close_catalog(&t);
    memory_store_restart(t.store);
    assert_ok(test_try_open(&t, err));
    assert_slice(test_dump(&t), before);
    make_database(&t, "behind", NONE);
}

static void an_answered_change_is_seen_by_every_reader(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    CatalogReader other;
    catalog_reader_init(&other, t.catalog);
    Snapshot *held = snapshot_ref(catalog_read(&other));
    assert_ptr_equal(catalog_read(&other), held); /* nothing new: the same one */
    for (int i = 0; i < 200; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "db%d", i);
        uint32_t number = make_database(&t, id, NONE);
        assert_non_null(snapshot_database(catalog_read(&other), number));
        assert_non_null(snapshot_database(test_read(&t), number));
    }
    assert_null(snapshot_next_database(held, 0)); /* an old view stays as it was */
    snapshot_unref(held);
    catalog_reader_done(&other);
}

static void a_store_that_cannot_be_read_is_said_when_opening(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    make_database(&t, "db", NONE);
    test_close_catalog(&t);
    Error refusal = {0};
    memory_store_fail_cursor_steps(t.store, 1, STATUS_IO);
    assert_int_equal(test_try_open(&t, &refusal), STATUS_IO);
    assert_null(t.catalog);
    assert_ok(test_try_open(&t, err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_seen_or_answered_before_it_is_durable),
        cmocka_unit_test(what_arrives_meanwhile_becomes_one_group),
        cmocka_unit_test(a_group_has_its_bound),
        cmocka_unit_test(changes_of_a_group_see_each_other),
        cmocka_unit_test(a_refusal_waits_for_the_changes_that_it_rests_on),
        cmocka_unit_test(refusals_alone_cost_no_commit),
        cmocka_unit_test(a_failed_commit_fails_all_of_its_group_and_nothing_else),
        cmocka_unit_test(data_of_a_drop_that_failed_is_kept),
        cmocka_unit_test(a_number_that_was_lost_with_its_group_is_not_given_out_again),
        cmocka_unit_test(what_a_crash_takes_was_never_answered_with_success),
        cmocka_unit_test(an_answered_change_is_seen_by_every_reader),
        cmocka_unit_test(a_store_that_cannot_be_read_is_said_when_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
