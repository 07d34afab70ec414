/* catalog_full_test.c - on a full disk new resources are refused, and old ones can be dropped (I7).
 */
#include "catalog/testing_int.h"

#define NONE MANUAL(0)

enum { WAIT_MS = 10000 };

/* Waits until the catalogue's space has 'keys' keys and 'space' has none. */
static void expect_cleaned(Store *store, size_t keys, StoreSpace space)
{
    for (int ms = 0; count_keys(store, SPACE_CATALOG) != keys || count_keys(store, space) > 0;
         ms++) {
        if (ms == WAIT_MS)
            fail_msg("%zu keys in the catalogue, %zu in the space",
                     count_keys(store, SPACE_CATALOG), count_keys(store, space));
        (void)usleep(1000);
    }
}

static void what_takes_room_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", MANUAL(400));
    uint32_t container = make_container(&t, database, "c", NONE);
    Slice before = test_dump(&t);
    memory_store_set_full(t.store, true);
    TestChange group[5];
    fill_database(&group[0], SLICE("x"), NONE);
    fill_container(&group[1], database, row_definition(&t.arena, "d", ""), NONE);
    test_change_init(&group[2], CATALOG_REPLACE_OFFER);
    group[2].change.offer = snapshot_database(test_read(&t), database)->offer;
    group[2].change.provision = MANUAL(900);
    test_change_init(&group[3], CATALOG_REPLACE_CONTAINER);
    group[3].change.database = database;
    group[3].change.container = container;
    group[3].change.definition = row_definition(&t.arena, "c", "");
    fill_script(&group[4], CATALOG_CREATE_SCRIPT,
                (StoredScriptGroup){database, container, STORED_FUNCTION},
                row_script(&t.arena, STORED_FUNCTION, "f", ""));
    for (size_t i = 0; i < ARRAY_COUNT(group); i++) {
        assert_int_equal(test_run(t.catalog, &group[i]), STATUS_IO);
        assert_int_equal(group[i].change.error.status, STATUS_IO);
        assert_true(strlen(group[i].change.error.message) > 0);
        test_change_done(&group[i]);
    }
    assert_slice(test_dump(&t), before);
    memory_store_set_full(t.store, false);
    (void)make_container(&t, database, "d", NONE);
}

/* Also together with what is refused, and the data goes as well. */
static void drops_pass_beside_what_is_refused(void **state)
{
    (void)state;
    AUTO(test_close) TestCatalog t;
    test_open(&t, TEST_MEMORY);
    uint32_t database = make_database(&t, "db", NONE);
    uint32_t other = make_database(&t, "other", NONE);
    uint32_t kept = make_container(&t, database, "kept", NONE);
    size_t keys = count_keys(t.store, SPACE_CATALOG);
    StoredScriptGroup functions = {database, kept, STORED_FUNCTION};
    uint32_t script = make_script(&t, functions, "f");
    uint32_t container = make_container(&t, database, "c", NONE);
    StoreSpace space = snapshot_container(test_read(&t), database, container)->ranges[0].space;
    StoreTxn *txn = store_txn_begin(t.store);
    store_txn_put(txn, space, SLICE("key"), SLICE("value"));
    assert_ok(store_txn_commit_wait(txn, err));

    memory_store_stall(t.store);
    TestChange first, create, drop, drop_other, drop_script;
    fill_database(&first, SLICE("first"), NONE);
    catalog_submit(t.catalog, &first.change);
    memory_store_wait_stalled(t.store);
    memory_store_set_full(t.store, true);
    fill_database(&create, SLICE("x"), NONE);
    test_change_init(&drop, CATALOG_DELETE_CONTAINER);
    drop.change.database = database;
    drop.change.container = container;
    test_change_init(&drop_other, CATALOG_DELETE_DATABASE);
    drop_other.change.database = other;
    fill_script(&drop_script, CATALOG_DELETE_SCRIPT, functions, JSON_NONE);
    drop_script.change.script = script;
    TestChange *group[] = {&create, &drop, &drop_other, &drop_script};
    for (size_t i = 0; i < ARRAY_COUNT(group); i++)
        catalog_submit(t.catalog, &group[i]->change);
    memory_store_release(t.store);
    assert_int_equal(test_wait(&first), STATUS_OK);
    assert_int_equal(test_wait(&create), STATUS_IO);
    assert_int_equal(test_wait(&drop), STATUS_OK);
    assert_int_equal(test_wait(&drop_other), STATUS_OK);
    assert_int_equal(test_wait(&drop_script), STATUS_OK);
    expect_cleaned(t.store, keys, space); /* one database more, one less */
    assert_null(snapshot_container(test_read(&t), database, container));
    test_change_done(&first);
    for (size_t i = 0; i < ARRAY_COUNT(group); i++)
        test_change_done(group[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_takes_room_is_refused_and_changes_nothing),
        cmocka_unit_test(drops_pass_beside_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
