/* saved_states_test.c - databases go back to what they were, and nothing is left of what they were
 * in between. Items are compared by test/snapshot.test.mjs, too. */
#include "catalog/saved_states.h"
#include "catalog/testing_int.h"
#include "partition/baseline.h"

#define NONE MANUAL(0)

enum { WAIT_MS = 10000 };

static void save(TestCatalog *t, const char *name)
{
    bool has_replaced = false;
    assert_ok(
        catalog_save_state(t->catalog, SLICE("db"), slice_from_cstr(name), &has_replaced, err));
}

static void restore(TestCatalog *t, const char *name)
{
    assert_ok(catalog_restore_state(t->catalog, SLICE("db"), slice_from_cstr(name), err));
}

static void drop(TestCatalog *t, const char *name)
{
    assert_ok(catalog_drop_state(t->catalog, SLICE("db"), slice_from_cstr(name), err));
}

static Partition *first_partition(TestCatalog *t, const char *id)
{
    const Snapshot *snapshot = test_read(t);
    const Database *database = snapshot_database_by_id(snapshot, SLICE("db"));
    const Container *container =
        snapshot_container_by_id(snapshot, database->info.number, slice_from_cstr(id));
    assert_non_null(container);
    return handle_local(container_handle_at(container, 0));
}

static void expect_items(TestCatalog *t, const char *id, uint64_t count)
{
    assert_int_equal(partition_usage(first_partition(t, id)).items, count);
}

/* A database with a container, a script and a user. */
static uint32_t prepare(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t container = make_container(t, database, "c", MANUAL(1000));
    (void)make_script(t, (StoredScriptGroup){database, container, STORED_PROCEDURE}, "p");
    (void)make_permission(t, (UserKey){database, make_user(t, database, "u")}, "can",
                          "'resource':'dbs/db/colls/c'");
    make_item(first_partition(t, "c"), "{'id':'1','pk':'a'}");
    return database;
}

static void expect_same(Slice found, Slice expected)
{
    if (!slice_equal(found, expected))
        fail_msg("expected\n%.*s\nfound\n%.*s", SLICE_ARG(expected), SLICE_ARG(found));
}

static void expect_no_unknown(void *ctx, StoreSpace space)
{
    (void)ctx;
    fail_msg("space %llu belongs to nothing", (unsigned long long)space);
}

static void records_come_back_and_containers_with_their_items(TestCatalog *t)
{
    uint32_t database = prepare(t);
    Slice before = test_dump(t);
    save(t, "s");
    uint32_t container = snapshot_next_container(test_read(t), database, 0)->info.number;
    (void)make_container(t, database, "more", NONE);
    (void)make_user(t, database, "v");
    make_item(first_partition(t, "c"), "{'id':'2','pk':'a'}");
    restore(t, "s");
    expect_same(test_dump(t), before);
    expect_items(t, "c", 1);

    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, container), STATUS_OK);
    assert_ok(catalog_find_unknown_spaces(t->store, expect_no_unknown, NULL, err));
    test_reopen(t);
    restore(t, "s");
    expect_same(test_dump(t), before);
    expect_items(t, "c", 1);

    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    (void)make_container(t, make_database(t, "db", NONE), "c", NONE); /* others of their names */
    restore(t, "s");
    expect_same(test_dump(t), before);
    expect_items(t, "c", 1);
    make_item(first_partition(t, "c"), "{'id':'3','pk':'a'}");
    expect_items(t, "c", 2);
    test_reopen(t);
    restore(t, "s");
    expect_same(test_dump(t), before);
}

static void expect_garbage_gone(TestCatalog *t, StoreSpace space)
{
    for (int ms = 0; count_garbage(t->store) > 0 || count_keys(t->store, space) > 0; ms++) {
        if (ms == WAIT_MS)
            fail_msg("%zu keys are still there", count_keys(t->store, space));
        (void)usleep(1000);
    }
}

static void what_is_kept_goes_with_the_last_state_that_has_it(TestCatalog *t)
{
    uint32_t database = prepare(t);
    const Container *container = snapshot_next_container(test_read(t), database, 0);
    StoreSpace space = container->ranges[0].space;
    uint32_t number = container->info.number;
    save(t, "one");
    save(t, "two");
    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, number), STATUS_OK);
    save(t, "without");
    drop(t, "one");
    assert_true(count_keys(t->store, space) > 0);
    restore(t, "two");
    restore(t, "without");
    test_reopen(t);
    assert_true(count_keys(t->store, space) > 0);
    drop(t, "two");
    expect_garbage_gone(t, space);
    assert_ok(catalog_find_unknown_spaces(t->store, expect_no_unknown, NULL, err));
    drop(t, "without");
    assert_int_equal(test_read(t)->saved_states.count, 0);
}

static void a_state_that_is_replaced_or_dropped_is_forgotten_by_partitions(TestCatalog *t)
{
    (void)prepare(t);
    save(t, "s");
    make_item(first_partition(t, "c"), "{'id':'2','pk':'a'}");
    save(t, "s");
    assert_int_equal(partition_baseline_count(first_partition(t, "c")), 1);
    make_item(first_partition(t, "c"), "{'id':'3','pk':'a'}");
    restore(t, "s");
    expect_items(t, "c", 2);
    drop(t, "s");
    assert_int_equal(partition_baseline_count(first_partition(t, "c")), 0);
    Error why;
    assert_int_equal(catalog_restore_state(t->catalog, SLICE("db"), SLICE("s"), &why),
                     STATUS_NOT_FOUND);
    assert_int_equal(catalog_drop_state(t->catalog, SLICE("db"), SLICE("s"), &why),
                     STATUS_NOT_FOUND);
}

/* As far as a restore comes before it is cut off: the records, and none of the items. */
static void begin_restore(TestCatalog *t, const char *name)
{
    const SavedState *state =
        snapshot_saved_by_name(test_read(t), SLICE("db"), slice_from_cstr(name));
    AUTO(held_partitions_free) HeldPartitions *held = held_partitions_new();
    held_partitions_add(held, first_partition(t, "c"));
    assert_ok(held_partitions_wait(held, err));
    CatalogChange change = {
        .op = CATALOG_RESTORE_STATE,
        .saved = state->number,
        .saved_containers = state->containers,
        .saved_count = 1,
    };
    assert_ok(catalog_change(t->catalog, &change, err));
    catalog_change_release(&change);
}

static void a_start_finishes_a_restore_that_was_cut_off(TestCatalog *t)
{
    (void)prepare(t);
    Slice before = test_dump(t);
    save(t, "s");
    make_item(first_partition(t, "c"), "{'id':'2','pk':'a'}");
    begin_restore(t, "s");
    expect_same(test_dump(t), before);
    expect_items(t, "c", 2); /* not yet */
    assert_true(snapshot_next_saved(test_read(t), 0)->is_restoring);
    test_reopen(t);
    expect_items(t, "c", 1);
    assert_false(snapshot_next_saved(test_read(t), 0)->is_restoring);
    make_item(first_partition(t, "c"), "{'id':'3','pk':'a'}");
    test_reopen(t); /* once */
    expect_items(t, "c", 2);
}

static void a_start_removes_what_a_save_that_was_cut_off_has_left(TestCatalog *t)
{
    (void)prepare(t);
    save(t, "s");
    {
        AUTO(held_partitions_free) HeldPartitions *held = held_partitions_new();
        held_partitions_add(held, first_partition(t, "c"));
        assert_ok(held_partitions_wait(held, err));
        assert_ok(held_partitions_begin(held, 77, err));
    }
    assert_int_equal(partition_baseline_count(first_partition(t, "c")), 2);
    test_reopen(t);
    assert_int_equal(partition_baseline_count(first_partition(t, "c")), 1);
}

static void a_database_has_so_many_states_and_no_more(TestCatalog *t)
{
    (void)prepare(t);
    for (int i = 0; i < SAVED_STATES_PER_DATABASE_MAX; i++)
        save(t, arena_format(&t->arena, "s%d", i).ptr);
    save(t, "s3"); /* replaces one */
    bool has_replaced = false;
    Error why;
    assert_int_equal(
        catalog_save_state(t->catalog, SLICE("db"), SLICE("more"), &has_replaced, &why),
        STATUS_FORBIDDEN);
    assert_int_equal(partition_baseline_count(first_partition(t, "c")),
                     SAVED_STATES_PER_DATABASE_MAX);
    static const char *const names[] = {"", "a b", "a/b", "\xc3\xbc"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        assert_int_equal(catalog_save_state(t->catalog, SLICE("db"), slice_from_cstr(names[i]),
                                            &has_replaced, &why),
                         STATUS_BAD_REQUEST);
    assert_int_equal(
        catalog_save_state(t->catalog, SLICE("other"), SLICE("s"), &has_replaced, &why),
        STATUS_NOT_FOUND);
}

/* The disk refuses the commit: everything is as it was, and goes on. */
static void a_restore_that_is_refused_changes_nothing(void **state)
{
    (void)state;
    TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = prepare(&t);
    save(&t, "s");
    uint32_t number = snapshot_next_container(test_read(&t), database, 0)->info.number;
    assert_int_equal(delete_one(&t, CATALOG_DELETE_CONTAINER, database, number), STATUS_OK);
    (void)make_container(&t, database, "c", NONE);
    make_item(first_partition(&t, "c"), "{'id':'2','pk':'a'}");
    Slice before = test_dump(&t);
    memory_store_fail_commits(t.store, 1, STATUS_IO);
    Error why;
    assert_int_equal(catalog_restore_state(t.catalog, SLICE("db"), SLICE("s"), &why), STATUS_IO);
    expect_same(test_dump(&t), before);
    make_item(first_partition(&t, "c"), "{'id':'3','pk':'a'}");
    memory_store_set_full(t.store, true);
    assert_int_equal(catalog_restore_state(t.catalog, SLICE("db"), SLICE("s"), &why), STATUS_IO);
    expect_same(test_dump(&t), before);
    memory_store_set_full(t.store, false);
    restore(&t, "s");
    expect_items(&t, "c", 1);
    test_close(&t);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(records_come_back_and_containers_with_their_items),
        ENGINE_TEST(what_is_kept_goes_with_the_last_state_that_has_it),
        ENGINE_TEST(a_state_that_is_replaced_or_dropped_is_forgotten_by_partitions),
        ENGINE_TEST(a_start_finishes_a_restore_that_was_cut_off),
        ENGINE_TEST(a_start_removes_what_a_save_that_was_cut_off_has_left),
        ENGINE_TEST(a_database_has_so_many_states_and_no_more),
    };
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(a_restore_that_is_refused_changes_nothing),
    };
    int failed = cmocka_run_group_tests(plain, NULL, NULL);
    return failed + run_on_every_engine("saved_states", tests, ARRAY_COUNT(tests));
}
