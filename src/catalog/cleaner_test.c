/* cleaner_test.c - what a dropped container leaves behind goes away, whatever happens meanwhile. */
#include "catalog/testing_int.h"

#define NONE MANUAL(0)

enum { KEYS = 100, WAIT_MS = 10000 };

static void fill_space(Store *store, StoreSpace space)
{
    StoreTxn *txn = store_txn_begin(store);
    for (uint32_t i = 0; i < KEYS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "key%u", i);
        store_txn_put(txn, space, slice_from_cstr(key), SLICE("value"));
    }
    assert_ok(store_txn_commit_wait(txn, err));
}

/* Puts keys into every space of the container and notes which those are. */
static size_t fill_spaces(TestCatalog *t, uint32_t database, uint32_t number, StoreSpace *first)
{
    const Container *container = snapshot_container(test_read(t), database, number);
    for (size_t i = 0; i < container->range_count; i++)
        fill_space(t->store, container->ranges[i].space);
    *first = container->ranges[0].space;
    return container->range_count;
}

static size_t count_all(Store *store, StoreSpace first, size_t spaces)
{
    size_t keys = 0;
    for (size_t i = 0; i < spaces; i++)
        keys += count_keys(store, first + i);
    return keys;
}

static size_t count_garbage(Store *store)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(store, NULL, SPACE_CATALOG, SLICE("\x05"), SLICE("\x06"));
    for (size_t count = 0;; count++) {
        Slice key, value;
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return count;
    }
}

/* Waits until nothing is left, neither data nor the note that there is some. */
static void expect_cleaned(Store *store, StoreSpace first, size_t spaces)
{
    for (int ms = 0; count_garbage(store) > 0 || count_all(store, first, spaces) > 0; ms++) {
        if (ms == WAIT_MS)
            fail_msg("%zu keys and %zu notes are still there", count_all(store, first, spaces),
                     count_garbage(store));
        (void)usleep(1000);
    }
}

static void a_dropped_container_leaves_nothing(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t kept = make_container(t, database, "kept", NONE);
    uint32_t dropped = make_container(t, database, "dropped", MANUAL(30000));
    uint32_t also_kept = make_container(t, database, "also kept", NONE);
    StoreSpace kept_first, dropped_first, also_kept_first;
    assert_int_equal(fill_spaces(t, database, kept, &kept_first), 1);
    assert_int_equal(fill_spaces(t, database, dropped, &dropped_first), 3);
    assert_int_equal(fill_spaces(t, database, also_kept, &also_kept_first), 1);
    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, dropped), STATUS_OK);
    expect_cleaned(t->store, dropped_first, 3);
    /* Its neighbours on both sides are whole. */
    assert_int_equal(count_keys(t->store, kept_first), KEYS);
    assert_int_equal(count_keys(t->store, also_kept_first), KEYS);
}

static void a_dropped_database_leaves_nothing(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    StoreSpace first = 0;
    StoreSpace last = 0;
    for (int i = 0; i < 5; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%d", i);
        size_t spaces = fill_spaces(t, database, make_container(t, database, id, MANUAL(20000)),
                                    i == 0 ? &first : &last);
        assert_int_equal(spaces, 2);
    }
    assert_int_equal(count_all(t->store, first, last + 2 - first), 10 * KEYS);
    assert_int_equal(delete_one(t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    expect_cleaned(t->store, first, last + 2 - first);
}

static void a_container_that_was_never_written_to_leaves_nothing_either(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    size_t keys = count_keys(t->store, SPACE_CATALOG);
    for (int i = 0; i < 50; i++) {
        uint32_t number = make_container(t, database, "c", NONE);
        assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, number), STATUS_OK);
    }
    expect_cleaned(t->store, SPACE_PARTITION_FIRST, 50);
    assert_int_equal(count_keys(t->store, SPACE_CATALOG), keys);
}

/* As if the process had ended between the drop and the cleaning. */
static void a_restart_goes_on_cleaning(TestCatalog *t)
{
    uint32_t database = make_database(t, "db", NONE);
    uint32_t container = make_container(t, database, "c", MANUAL(20000));
    StoreSpace first = 0;
    assert_int_equal(fill_spaces(t, database, container, &first), 2);
    assert_int_equal(delete_one(t, CATALOG_DELETE_CONTAINER, database, container), STATUS_OK);
    expect_cleaned(t->store, first, 2);
    test_close_catalog(t);
    fill_space(t->store, first);
    fill_space(t->store, first + 1);
    StoreTxn *txn = store_txn_begin(t->store);
    record_put_garbage(txn, (Garbage){.first = first, .last = first + 1});
    assert_ok(store_txn_commit_wait(txn, err));
    assert_ok(test_try_open(t, err));
    expect_cleaned(t->store, first, 2);
}

static void cleaning_that_failed_is_done_after_the_next_start(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t container = make_container(&t, database, "c", NONE);
    StoreSpace first = 0;
    assert_int_equal(fill_spaces(&t, database, container, &first), 1);
    memory_store_fail_cursor_steps(t.store, UINT32_MAX, STATUS_IO);
    assert_int_equal(delete_one(&t, CATALOG_DELETE_CONTAINER, database, container), STATUS_OK);
    test_close_catalog(&t);
    memory_store_fail_cursor_steps(t.store, 0, STATUS_IO);
    assert_int_equal(count_keys(t.store, first), KEYS);
    assert_int_equal(count_garbage(t.store), 1);
    assert_ok(test_try_open(&t, err));
    expect_cleaned(t.store, first, 1);
}

static void closing_does_not_wait_for_all_that_is_to_be_cleaned(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    for (int i = 0; i < COUNT; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%d", i);
        StoreSpace first = 0;
        (void)fill_spaces(&t, database, make_container(&t, database, id, NONE), &first);
    }
    assert_int_equal(delete_one(&t, CATALOG_DELETE_DATABASE, database, 0), STATUS_OK);
    test_close_catalog(&t);
    /* Whatever was not reached still has its note, so it is not forgotten. */
    size_t left = 0;
    for (StoreSpace space = SPACE_PARTITION_FIRST; space < SPACE_PARTITION_FIRST + COUNT; space++)
        left += count_keys(t.store, space) > 0 ? 1 : 0;
    assert_true(left <= count_garbage(t.store));
    assert_ok(test_try_open(&t, err));
    expect_cleaned(t.store, SPACE_PARTITION_FIRST, COUNT);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_dropped_container_leaves_nothing),
        ENGINE_TEST(a_dropped_database_leaves_nothing),
        ENGINE_TEST(a_container_that_was_never_written_to_leaves_nothing_either),
        ENGINE_TEST(a_restart_goes_on_cleaning),
    };
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(cleaning_that_failed_is_done_after_the_next_start),
        cmocka_unit_test(closing_does_not_wait_for_all_that_is_to_be_cleaned),
    };
    int failed = cmocka_run_group_tests(plain, NULL, NULL);
    return failed + run_on_every_engine("cleaner", tests, ARRAY_COUNT(tests));
}
