/* disk_full_test.c - a full disk refuses what takes room, and takes what makes some. */
#include "partition/partition_check_testing_int.h"

static void create(TestPartition *t, const char *row)
{
    assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
}

/* I15 */
static void what_takes_room_is_refused_and_changes_nothing(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p','u':1}");
    uint64_t lsn = partition_lsn(t->partition);
    memory_store_set_full(t->store, true);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_IO);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'a','pk':'p','u':3}"), STATUS_IO);
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','u':4}"), STATUS_IO);
    AUTO(test_write_done) TestWrite patch;
    test_write_init(&patch, t, WRITE_ATOMIC);
    (void)add_patch(&patch, "p", "a", "[{'op':'set','path':'/u','value':5}]");
    test_run(t, &patch);
    assert_status(patch.items[0].status, STATUS_IO);
    assert_true(strlen(patch.items[0].error.message) > 0);
    assert_status(run_id(t, ITEM_READ, "p", "a"), STATUS_OK);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','u':1}");
    assert_int_equal(partition_lsn(t->partition), lsn);
    memory_store_set_full(t->store, false);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_OK);
    check_space(t);
}

/* Deletes are not refused because others share their group, or their request (I15). */
static void deletes_pass_beside_what_is_refused(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p','u':1}");
    create(t, "{'id':'b','pk':'p','u':2}");
    create(t, "{'id':'c','pk':'p','u':3}");
    memory_store_stall(t->store);
    TestWrite first, put, delete, both, atomic;
    test_write_init(&first, t, WRITE_ATOMIC);
    (void)add_document(&first, ITEM_CREATE, "{'id':'first','pk':'p','u':9}");
    test_submit(t, &first);
    memory_store_wait_stalled(t->store);
    memory_store_set_full(t->store, true);
    test_write_init(&put, t, WRITE_ATOMIC);
    (void)add_document(&put, ITEM_CREATE, "{'id':'x','pk':'p','u':10}");
    test_write_init(&delete, t, WRITE_ATOMIC);
    (void)add_id(&delete, ITEM_DELETE, "p", "a");
    test_write_init(&both, t, WRITE_CONTINUE);
    (void)add_document(&both, ITEM_CREATE, "{'id':'y','pk':'p','u':11}");
    (void)add_id(&both, ITEM_DELETE, "p", "b");
    test_write_init(&atomic, t, WRITE_ATOMIC);
    (void)add_id(&atomic, ITEM_DELETE, "p", "c");
    (void)add_document(&atomic, ITEM_CREATE, "{'id':'z','pk':'p','u':12}");
    TestWrite *all[] = {&put, &delete, &both, &atomic};
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        test_submit(t, all[i]);
    memory_store_release(t->store);
    assert_status(test_wait(&first), STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        assert_status(test_wait(all[i]), STATUS_OK);
    assert_status(put.items[0].status, STATUS_IO);
    assert_status(delete.items[0].status, STATUS_OK);
    assert_status(both.items[0].status, STATUS_IO);
    assert_status(both.items[1].status, STATUS_OK);
    assert_status(atomic.items[0].status, STATUS_FAILED_DEPENDENCY);
    assert_status(atomic.items[1].status, STATUS_IO);
    expect_scan(t, "c first");
    check_space(t);
    test_write_done(&first);
    for (size_t i = 0; i < ARRAY_COUNT(all); i++)
        test_write_done(all[i]);
}

static void what_has_expired_or_was_purged_is_removed(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p','u':1,'ttl':5}");
    create(t, "{'id':'b','pk':'q','u':2}");
    create(t, "{'id':'c','pk':'r','u':3}");
    memory_store_set_full(t->store, true);
    test_advance_s(t, 10);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 2);
    assert_status(run_purge(t, "q"), STATUS_OK);
    test_settle(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 1);
    assert_int_equal(count_keys(t, KEY_PURGE), 0);
    expect_scan(t, "c");
    check_space(t);
}

/* Notes take room: they wait, and what has one goes meanwhile. */
static void a_sweep_waits_until_there_is_room(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p','u':1,'ttl':5}");
    create(t, "{'id':'b','pk':'p','u':2}");
    test_set_schema(
        t, (TestSchema){.kind = PARTITION_HASH_V2, .paths = "/pk", .ttl_s = 100, .unique = {"/u"}});
    memory_store_set_full(t->store, true);
    test_advance_s(t, 10);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 1);
    assert_int_equal(count_keys(t, KEY_EXPIRY), 0);
    memory_store_set_full(t->store, false);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_EXPIRY), 1);
    test_advance_s(t, 200);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
    check_space(t);
}

#define MORTAL .ttl_s = -1, .unique = {"/u"}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(what_takes_room_is_refused_and_changes_nothing, MORTAL),
        ENGINE_TEST(deletes_pass_beside_what_is_refused, MORTAL),
        ENGINE_TEST(what_has_expired_or_was_purged_is_removed, MORTAL),
        ENGINE_TEST(a_sweep_waits_until_there_is_room, MORTAL),
    };
    return run_on_memory("full", tests, ARRAY_COUNT(tests));
}
