/* group_test.c - writes that share a commit: what is visible when, what a failing disk leaves, and
 * what happens when too much waits. Stalls and faults are the memory engine's. */
#include "partition/partition_check_testing_int.h"
#include "partition/partition_stall_testing_int.h"

#define ROW_MAX 64

/* I1 */
static void writes_that_gather_share_a_commit(TestPartition *t)
{
    enum { COUNT = 20 };
    TestWrite writes[COUNT];
    uint64_t groups = memory_store_groups(t->store);
    fill_create(t, &writes[0], 0);
    stall_with(t, &writes[0]);
    for (int i = 1; i < COUNT; i++) {
        fill_create(t, &writes[i], i % 19); /* the last one is there already */
        test_submit(t, &writes[i]);
    }
    /* Nothing is answered and nothing is visible before it is durable. */
    for (int i = 0; i < COUNT; i++)
        assert_false(is_answered(&writes[i]));
    expect_scan(t, "");
    expect_item(t, "p", "0", NULL);
    assert_int_equal(partition_lsn(t->partition), 1);
    assert_int_equal(partition_usage(t->partition).items, 0);

    memory_store_release(t->store);
    for (int i = 0; i < COUNT; i++) {
        assert_status(test_wait(&writes[i]), STATUS_OK);
        assert_status(writes[i].items[0].status, i == 19 ? STATUS_CONFLICT : STATUS_OK);
        assert_int_equal(writes[i].write.lsn, i < 19 ? 2 + i : 20); /* its own, or the newest */
        if (i < 19)
            assert_int_equal(writes[i].items[0].item.lsn, 2 + i);
        test_write_done(&writes[i]);
    }
    assert_int_equal(memory_store_groups(t->store), groups + 2);
    assert_int_equal(partition_usage(t->partition).items, 19);
    check_space(t);
}

/* I1 */
static void an_answer_finds_its_write_visible(TestPartition *t)
{
    for (int i = 0; i < 50; i++) {
        AUTO(test_write_done) TestWrite w;
        fill_create(t, &w, i);
        test_run(t, &w);
        char id[16];
        (void)snprintf(id, sizeof(id), "%d", i);
        Item item;
        assert_true(test_get(t, "p", id, &item));
        assert_true(partition_lsn(t->partition) >= item.lsn);
    }
}

/* I1 */
static void a_failed_commit_changes_nothing(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':'a','ttl':5}"), STATUS_OK);
    test_advance_s(t, 10); /* a is to be removed, too */
    PartitionUsage usage = partition_usage(t->partition);
    TestWrite first, create, fail, read;
    TestPurge purge;
    fill_create(t, &first, 0);
    stall_with(t, &first);
    fill_create(t, &create, 1);
    test_submit(t, &create);
    test_write_init(&fail, t, WRITE_ATOMIC);
    (void)add_id(&fail, ITEM_DELETE, "p", "none");
    test_submit(t, &fail);
    test_write_init(&read, t, WRITE_ATOMIC);
    (void)add_id(&read, ITEM_READ, "p", "1"); /* sees what will not be */
    test_submit(t, &read);
    test_purge_submit(t, &purge, "q");
    partition_maintain(t->partition);

    memory_store_fail_commits(t->store, 2, STATUS_IO);
    memory_store_release(t->store);
    TestWrite *all[] = {&first, &create, &fail, &read};
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        assert_status(test_wait(all[i]), STATUS_IO);
        assert_int_equal(all[i]->write.error.status, STATUS_IO);
        assert_int_equal(all[i]->write.lsn, 2);
        test_write_done(all[i]);
    }
    assert_status(test_purge_wait(&purge), STATUS_IO);
    test_settle(t);
    assert_int_equal(partition_lsn(t->partition), 2);
    assert_int_equal(partition_usage(t->partition).bytes, usage.bytes);
    assert_int_equal(atomic_load(&t->partition->purges.count), 0);
    assert_int_equal(count_keys(t, KEY_ITEM), 1);
    assert_int_equal(count_keys(t, KEY_PURGE), 0);
    check_space(t);

    /* The next one begins where the last durable one ended. */
    AUTO(test_write_done) TestWrite w;
    fill_create(t, &w, 7);
    test_run(t, &w);
    assert_int_equal(w.items[0].item.lsn, 3);
    assert_true(w.items[0].item.number >= item_number(TEST_PARTITION, 2));
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 1);
    check_space(t);
}

static void fill_patch(TestPartition *t, TestWrite *w, const char *operations)
{
    test_write_init(w, t, WRITE_ATOMIC);
    (void)add_patch(w, "p", "a", operations);
}

/* An item that is changed is in the cache as it has become; not as it would have become in a batch
 * that fails or a group that does, nor as it was in between (I10). */
static void the_cache_hears_of_what_has_happened_and_nothing_else(TestPartition *t)
{
    AUTO(test_write_done) TestWrite first, batch, twice, failed;
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':0}"), STATUS_OK);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':0}");
    fill_create(t, &first, 7);
    stall_with(t, &first);
    fill_patch(t, &batch, "[{'op':'incr','path':'/n','value':1}]");
    (void)add_id(&batch, ITEM_DELETE, "p", "none");
    test_submit(t, &batch);
    fill_create(t, &twice, 8);
    test_submit(t, &twice);
    memory_store_release(t->store);
    assert_status(test_wait(&first), STATUS_OK);
    assert_status(test_wait(&batch), STATUS_OK);
    assert_status(batch.items[0].status, STATUS_FAILED_DEPENDENCY);
    assert_status(test_wait(&twice), STATUS_OK);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':0}");

    memory_store_fail_commits(t->store, 1, STATUS_IO);
    fill_patch(t, &failed, "[{'op':'incr','path':'/n','value':10}]");
    test_submit(t, &failed);
    assert_status(test_wait(&failed), STATUS_IO);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':0}");

    /* Read from the cache and written back to it, again and again. */
    for (int i = 0; i < 3; i++) {
        AUTO(test_write_done) TestWrite w;
        fill_patch(t, &w, "[{'op':'incr','path':'/n','value':50}]");
        (void)add_patch(&w, "p", "a", "[{'op':'incr','path':'/n','value':50}]");
        test_run(t, &w);
    }
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':300}");
    AUTO(test_write_done) TestWrite gone;
    fill_patch(t, &gone, "[{'op':'incr','path':'/n','value':1}]");
    (void)add_id(&gone, ITEM_DELETE, "p", "a");
    test_run(t, &gone);
    expect_item(t, "p", "a", NULL);
    check_space(t);
}

/* I1 */
static void a_crash_loses_only_what_was_not_answered(TestPartition *t)
{
    AUTO(test_write_done) TestWrite kept, lost, after;
    fill_create(t, &kept, 1);
    test_run(t, &kept);
    fill_create(t, &lost, 2);
    stall_with(t, &lost);
    fill_create(t, &after, 3);
    test_submit(t, &after);
    memory_store_crash(t->store);
    assert_status(test_wait(&lost), STATUS_UNAVAILABLE);
    assert_status(test_wait(&after), STATUS_UNAVAILABLE);
    test_settle(t);
    memory_store_restart(t->store);
    test_reopen(t);
    expect_scan(t, "1");
    assert_int_equal(partition_lsn(t->partition), 2);
    check_space(t);
}

/* I3 */
static void a_failed_read_fails_its_operation_only(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_CONTINUE);
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','u':1}");
    (void)add_document(&w, ITEM_CREATE, "{'id':'b','pk':'p','u':2}");
    memory_store_fail_gets(t->store, 1, STATUS_IO);
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_IO);
    assert_status(w.items[1].status, STATUS_OK);
    assert_int_equal(w.write.lsn, 2);
    expect_scan(t, "b");
    check_space(t);
}

static void reads_say_what_they_cannot_know(TestPartition *t)
{
    item_cache_close(TAKE(t->host.cache)); /* every read is to reach the store */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    Epk epk;
    make_epk(&t->arena, t->schema, "p", &epk);
    AUTO(store_value_release) StoreValue value = {0};
    Item item;
    StoreFound found = STORE_ABSENT;
    memory_store_forget(t->store, 1);
    assert_ok(partition_get(t->partition, t->schema, &epk, SLICE("a"), STORE_READ_MEMORY, &item,
                            &value, &found, err));
    assert_int_equal(found, STORE_UNKNOWN);
    assert_ok(partition_get(t->partition, t->schema, &epk, SLICE("a"), STORE_READ_MEMORY, &item,
                            &value, &found, err));
    assert_int_equal(found, STORE_FOUND);
    store_value_release(&value);
    memory_store_fail_gets(t->store, 1, STATUS_IO);
    Error failure = {0};
    assert_status(partition_get(t->partition, t->schema, &epk, SLICE("a"), STORE_READ_ANY, &item,
                                &value, &found, &failure),
                  STATUS_IO);
}

static void note_drop(PartitionDrop *drop)
{
    (void)drop;
}

/* A partition whose own records are damaged is there, says so, and can be dropped. */
static void expect_refuses_everything(TestPartition *t, StoreSpace space)
{
    AUTO(partition_unref) Partition *partition = NULL;
    assert_ok(partition_open(&t->host, space, 1, t->schema, &partition, err));
    Error failure = {0};
    Epk epk;
    make_epk(&t->arena, t->schema, "p", &epk);
    StoreValue value = {0};
    Item item;
    StoreFound found = STORE_FOUND;
    assert_status(partition_get(partition, t->schema, &epk, SLICE("a"), STORE_READ_MEMORY, &item,
                                &value, &found, &failure),
                  STATUS_CORRUPT);
    assert_non_null(strstr(failure.message, "damaged"));
    Slice where, id;
    bool there = true;
    assert_status(partition_locate(partition, 1, &t->arena, &where, &id, &there, &failure),
                  STATUS_CORRUPT);
    PartitionScan *scan = NULL;
    ScanOptions options = {.order = SCAN_BY_EPK};
    assert_status(partition_scan_open(partition, t->schema, &options, &scan, &failure),
                  STATUS_CORRUPT);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p'}");
    assert_status(partition_submit(partition, &w.write, &failure), STATUS_CORRUPT);
    PartitionPurge purge = {.epk = epk};
    assert_status(partition_purge(partition, &purge, &failure), STATUS_CORRUPT);
    partition_maintain(partition);
    PartitionDrop drop = {.done = note_drop};
    partition_drop(partition, &drop);
    test_settle(t);
    assert_int_equal(partition_state(partition), PARTITION_DROPPED);
}

/* I15 */
static void damage_is_said_and_not_served(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    Epk epk;
    make_epk(&t->arena, t->schema, "p", &epk);
    Key key;
    key_item(&key, epk_slice(&epk), SLICE("a"));
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_put(txn, TEST_SPACE, key_slice(&key), SLICE("\x01short"));
    assert_ok(store_txn_commit_wait(txn, err));
    AUTO(store_value_release) StoreValue value = {0};
    Item item;
    StoreFound found = STORE_FOUND;
    Error failure = {0};
    assert_status(partition_get(t->partition, t->schema, &epk, SLICE("a"), STORE_READ_ANY, &item,
                                &value, &found, &failure),
                  STATUS_CORRUPT);
    assert_status(run_id(t, ITEM_READ, "p", "a"), STATUS_CORRUPT);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'a','pk':'p'}"), STATUS_CORRUPT);
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    ScanOptions options = {.order = SCAN_BY_EPK};
    assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
    bool more = true;
    assert_status(partition_scan_next(scan, &item, &more, &failure), STATUS_CORRUPT);

    static const uint8_t counters[] = {KEY_COUNTERS};
    static const uint8_t purge[] = {KEY_PURGE, 1};
    Slice bad[] = {slice_make(counters, 1), slice_make(purge, 2)};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        txn = store_txn_begin(t->store);
        store_txn_put(txn, TEST_SPACE + 1, bad[i], SLICE("bad"));
        assert_ok(store_txn_commit_wait(txn, err));
        expect_refuses_everything(t, TEST_SPACE + 1);
        txn = store_txn_begin(t->store);
        store_txn_delete(txn, TEST_SPACE + 1, bad[i]);
        assert_ok(store_txn_commit_wait(txn, err));
    }
}

/* The message for maintenance is one and the same each time: while it is in a group it must not be
 * queued again (I8). */
static void maintenance_asked_for_twice_is_done_once(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'x','pk':'p','ttl':5}"), STATUS_OK);
    test_advance_s(t, 10);
    memory_store_stall(t->store);
    partition_maintain(t->partition);
    memory_store_wait_stalled(t->store); /* x is on its way out */
    TestWrite writes[2];
    for (int i = 0; i < 2; i++) {
        partition_maintain(t->partition);
        fill_create(t, &writes[i], i);
        test_submit(t, &writes[i]);
    }
    memory_store_release(t->store);
    for (int i = 0; i < 2; i++) {
        assert_status(test_wait(&writes[i]), STATUS_OK);
        assert_status(writes[i].items[0].status, STATUS_OK);
    }
    test_settle(t);
    for (int i = 0; i < 2; i++) {
        assert_false(is_answered(&writes[i])); /* not a second time */
        test_write_done(&writes[i]);
    }
    expect_scan(t, "0 1");
    check_space(t);
    test_advance_s(t, 1);
    test_maintain(t); /* and it can be asked for again */
    assert_false(atomic_load(&t->partition->inbox.maintain_posted));
}

static void put_raw(TestPartition *t, Slice key, Slice value)
{
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_put(txn, TEST_SPACE, key, value);
    assert_ok(store_txn_commit_wait(txn, err));
}

/* I3 */
static void failing_maintenance_does_nothing_by_halves(TestPartition *t)
{
    for (int i = 0; i < 10; i++) {
        char row[ROW_MAX];
        (void)snprintf(row, sizeof(row), "{'id':'%d','pk':'p','u':%d,'ttl':%d}", i, i, i + 1);
        assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
    }
    test_advance_s(t, 5);
    memory_store_fail_gets(t->store, 1, STATUS_IO);
    test_maintain(t);
    check_space(t);
    memory_store_fail_cursor_steps(t->store, 1, STATUS_IO);
    test_maintain(t);
    check_space(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 10);

    /* One in the middle is damaged: those before it are not removed either. */
    Epk epk;
    make_epk(&t->arena, t->schema, "p", &epk);
    Key key;
    key_item(&key, epk_slice(&epk), SLICE("3"));
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(t->store, NULL, TEST_SPACE, key_slice(&key), STORE_READ_ANY, &value, &found,
                        err));
    put_raw(t, key_slice(&key), SLICE("bad"));
    uint64_t lsn = partition_lsn(t->partition);
    test_maintain(t);
    assert_int_equal(partition_lsn(t->partition), lsn);
    assert_int_equal(count_keys(t, KEY_ITEM), 10);
    assert_int_equal(count_keys(t, KEY_EXPIRY), 10);
    put_raw(t, key_slice(&key), value.data);
    check_space(t);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 5);
    check_space(t);
}

/* After a purge, in the same group, its items are gone already (I6). */
static void a_purge_counts_for_what_follows_it_in_its_group(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_OK);
    AUTO(test_write_done) TestWrite first, w;
    TestPurge purge;
    fill_create(t, &first, 7);
    stall_with(t, &first);
    test_purge_submit(t, &purge, "p");
    test_write_init(&w, t, WRITE_CONTINUE);
    (void)add_id(&w, ITEM_READ, "p", "a");
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','u':2}");
    (void)add_id(&w, ITEM_DELETE, "p", "b");
    test_submit(t, &w);
    memory_store_release(t->store);
    assert_status(test_purge_wait(&purge), STATUS_OK);
    assert_status(test_wait(&w), STATUS_OK);
    assert_status(w.items[0].status, STATUS_NOT_FOUND);
    assert_status(w.items[1].status, STATUS_OK);
    assert_status(w.items[2].status, STATUS_NOT_FOUND);
    assert_status(test_wait(&first), STATUS_OK);
    test_settle(t);
    expect_scan(t, "a");
    check_space(t);
}

/* A purge that waits for its items to be removed: no background work for now. */
static void leave_purge(TestPartition *t, const char *pk)
{
    atomic_store(&t->host.is_closing, true);
    assert_status(run_purge(t, pk), STATUS_OK);
    test_settle(t);
    atomic_store(&t->host.is_closing, false);
}

/* One piece of maintenance and no more. */
static void maintain_one_piece(TestPartition *t)
{
    memory_store_stall(t->store);
    partition_maintain(t->partition);
    memory_store_wait_stalled(t->store);
    atomic_store(&t->host.is_closing, true);
    memory_store_release(t->store);
    test_settle(t);
    atomic_store(&t->host.is_closing, false);
}

/* The maintenance in the group ends the old purge, whose record the new one has taken (I6). */
static void a_purge_is_not_forgotten_by_maintenance_in_its_group(TestPartition *t)
{
    leave_purge(t, "p");
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    AUTO(test_write_done) TestWrite first;
    TestPurge purge;
    fill_create(t, &first, 7);
    stall_with(t, &first);
    test_purge_submit(t, &purge, "p");
    partition_maintain(t->partition);
    atomic_store(&t->host.is_closing, true);
    memory_store_release(t->store);
    assert_status(test_purge_wait(&purge), STATUS_OK);
    assert_status(test_wait(&first), STATUS_OK);
    check_space(t);
    test_reopen(t); /* the process ended before the items were removed */
    expect_scan(t, "");
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
    check_space(t);
}

/* The first purge has passed the place where the second has work to do (I6). */
static void a_repeated_purge_begins_again(TestPartition *t)
{
    for (int i = 0; i < 600; i++) {
        char row[ROW_MAX];
        (void)snprintf(row, sizeof(row), "{'id':'%d','pk':'p','u':%d}", i, i);
        assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
    }
    leave_purge(t, "p");
    maintain_one_piece(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 100);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'0','pk':'p','u':0}"), STATUS_OK);
    expect_scan(t, "0");
    leave_purge(t, "p");
    expect_scan(t, "");
    test_maintain(t);
    expect_scan(t, "");
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
    assert_int_equal(count_keys(t, KEY_PURGE), 0);
    check_space(t);
}

typedef struct Many {
    PartitionWrite *writes;
    _Atomic uint32_t answered;
} Many;

static Many many; /* for count_answer, which gets nothing but the write */

static void count_answer(PartitionWrite *write)
{
    (void)write;
    atomic_fetch_add(&many.answered, 1);
}

/* Nothing more is taken, whatever it is, until the disk has had what was. */
static void expect_busy(TestPartition *t, TestWrite *refused)
{
    uint64_t before = atomic_load(&t->partition->inbox.waiting_bytes);
    Error failure = {0};
    assert_status(partition_submit(t->partition, &refused->write, &failure), STATUS_THROTTLED);
    assert_int_equal(failure.sub, SUB_SYSTEM_BUSY);
    assert_true(failure.retry_after_ms > 0);
    PartitionPurge purge = {.done = NULL};
    assert_status(partition_purge(t->partition, &purge, &failure), STATUS_THROTTLED);
    partition_maintain(t->partition);
    assert_false(atomic_load(&t->partition->inbox.maintain_posted));
    assert_int_equal(atomic_load(&t->partition->inbox.waiting_bytes), before);
}

static void expect_none_waits(TestPartition *t)
{
    assert_int_equal(atomic_load(&t->partition->inbox.waiting_bytes), 0);
    assert_int_equal(atomic_load(&t->host.waiting_bytes), 0);
}

static void too_many_that_wait_are_refused(TestPartition *t)
{
    AUTO(test_write_done) TestWrite first, refused;
    fill_create(t, &first, 0);
    stall_with(t, &first);
    size_t room = (PARTITION_WAITING_BYTES_MAX - atomic_load(&t->partition->inbox.waiting_bytes)) /
                  PARTITION_MESSAGE_BYTES;
    assert_true(room > 60000);
    many.writes = MEM_NEW_ARRAY(PartitionWrite, room);
    atomic_store(&many.answered, 0);
    for (size_t i = 0; i < room; i++) {
        many.writes[i].done = count_answer;
        assert_ok(partition_submit(t->partition, &many.writes[i], err));
    }
    fill_create(t, &refused, 1);
    expect_busy(t, &refused);

    memory_store_release(t->store);
    assert_status(test_wait(&first), STATUS_OK);
    test_settle(t);
    assert_int_equal(atomic_load(&many.answered), room);
    expect_none_waits(t);
    mem_free(many.writes);
    test_run(t, &refused); /* it was not taken, and now it is */
    expect_scan(t, "0 1");
}

static void too_much_that_waits_is_refused(TestPartition *t)
{
    enum { COUNT = 4 };
    AUTO(test_write_done) TestWrite first, refused;
    TestWrite large[COUNT];
    fill_create(t, &first, 0);
    stall_with(t, &first);
    for (int i = 0; i < COUNT; i++) {
        fill_create(t, &large[i], i + 1);
        (void)arena_alloc(&large[i].arena, PARTITION_WAITING_BYTES_MAX / (COUNT + 1));
        test_submit(t, &large[i]);
    }
    /* There is room for a small one, and none for another of these. */
    fill_create(t, &refused, COUNT + 1);
    (void)arena_alloc(&refused.arena, PARTITION_WAITING_BYTES_MAX / (COUNT + 1));
    Error failure = {0};
    assert_status(partition_submit(t->partition, &refused.write, &failure), STATUS_THROTTLED);
    AUTO(test_write_done) TestWrite small;
    fill_create(t, &small, COUNT + 2);
    test_submit(t, &small);

    memory_store_release(t->store);
    for (int i = 0; i < COUNT; i++) {
        assert_status(test_wait(&large[i]), STATUS_OK);
        test_write_done(&large[i]);
    }
    assert_status(test_wait(&small), STATUS_OK);
    assert_status(test_wait(&first), STATUS_OK);
    test_settle(t);
    expect_none_waits(t);
    test_run(t, &refused);
    expect_scan(t, "0 1 2 3 4 6 5");
}

/* Other partitions of the process have taken the room. */
static void too_much_that_waits_elsewhere_is_refused(TestPartition *t)
{
    AUTO(test_write_done) TestWrite refused;
    fill_create(t, &refused, 1);
    uint64_t others = PARTITION_HOST_WAITING_BYTES_MAX - PARTITION_MESSAGE_BYTES + 1;
    atomic_store(&t->host.waiting_bytes, others);
    expect_busy(t, &refused);
    assert_int_equal(atomic_load(&t->host.waiting_bytes), others);
    atomic_store(&t->host.waiting_bytes, 0);
    test_run(t, &refused);
    test_settle(t);
    expect_none_waits(t);
}

/* A few bytes of a message can write megabytes: what one group cannot hold is left to the next, in
 * the order in which it came. */
static void a_group_that_writes_much_leaves_the_rest_to_the_next(TestPartition *t)
{
    enum { COUNT = 40, TEXT_BYTES = 1500000 };
    AUTO(buf_done) Buf row;
    buf_init(&row, 2 * TEXT_BYTES);
    buf_slice(&row, SLICE("{'id':'00','pk':'p','n':0,'text':'"));
    for (size_t i = 0; i < TEXT_BYTES; i++)
        buf_byte(&row, 'x');
    buf_bytes(&row, "'}", 3);
    char *id = row.ptr + strlen("{'id':'");
    for (int i = 0; i < COUNT; i++) {
        id[0] = (char)('0' + i / 10);
        id[1] = (char)('0' + i % 10);
        assert_status(run_document(t, ITEM_CREATE, row.ptr), STATUS_OK);
    }

    TestWrite writes[COUNT];
    AUTO(test_write_done) TestWrite first;
    fill_create(t, &first, 100);
    uint64_t groups = memory_store_groups(t->store);
    stall_with(t, &first);
    for (int i = 0; i < COUNT; i++) {
        char text[3] = {(char)('0' + i / 10), (char)('0' + i % 10)};
        test_write_init(&writes[i], t, WRITE_ATOMIC);
        (void)add_patch(&writes[i], "p", text, "[{'op':'incr','path':'/n','value':1}]");
        test_submit(t, &writes[i]);
    }
    memory_store_release(t->store);
    assert_status(test_wait(&first), STATUS_OK);
    for (int i = 0; i < COUNT; i++) {
        assert_status(test_wait(&writes[i]), STATUS_OK);
        assert_status(writes[i].items[0].status, STATUS_OK);
        assert_int_equal(writes[i].items[0].item.lsn, first.items[0].item.lsn + 1 + (uint64_t)i);
        test_write_done(&writes[i]);
    }
    test_settle(t);
    expect_none_waits(t);
    /* 60 MB, in pieces that end with the one that goes beyond 8. */
    assert_int_equal(memory_store_groups(t->store), groups + 1 + 7);
    check_space(t);
}

/* A store over a journal takes less than the terms of a group may have. */
static void writes_that_are_too_large_together_are_not_too_large(TestPartition *t)
{
    enum { COUNT = 5, STEPS = 2, FITTING = 200 };
    TestWrite first, rest[COUNT];
    int id = 0;
    for (int step = 0; step < STEPS; step++) {
        fill_create(t, &first, id);
        stall_with(t, &first);
        for (int i = 0; i < COUNT; i++) {
            fill_create(t, &rest[i], id + i);
            test_submit(t, &rest[i]);
        }
        uint64_t before = memory_store_groups(t->store);
        memory_store_fail_commits(t->store, step == 0 ? 2 : 1, STATUS_TOO_LARGE);
        memory_store_release(t->store);
        assert_status(test_wait(&first), STATUS_TOO_LARGE); /* it was alone */
        assert_int_equal(first.write.error.status, STATUS_TOO_LARGE);
        test_write_done(&first);
        for (int i = 0; i < COUNT; i++) {
            assert_status(test_wait(&rest[i]), step == 0 ? STATUS_THROTTLED : STATUS_OK);
            if (step == 0)
                assert_true(rest[i].write.error.retry_after_ms > 0);
            test_write_done(&rest[i]);
        }
        test_settle(t);
        assert_int_equal(memory_store_groups(t->store), before + (step == 0 ? 0 : COUNT));
    }
    assert_int_equal(partition_usage(t->partition).items, COUNT);

    /* When enough of them were taken they share a group again. */
    uint64_t groups = memory_store_groups(t->store);
    for (id = COUNT; id < FITTING; id++) {
        AUTO(test_write_done) TestWrite w;
        fill_create(t, &w, id);
        test_run(t, &w);
    }
    assert_int_equal(memory_store_groups(t->store), groups + FITTING - COUNT);
    groups = memory_store_groups(t->store);
    fill_create(t, &first, id);
    stall_with(t, &first);
    for (int i = 0; i < COUNT; i++) {
        fill_create(t, &rest[i], id + 1 + i);
        test_submit(t, &rest[i]);
    }
    memory_store_release(t->store);
    assert_status(test_wait(&first), STATUS_OK);
    test_write_done(&first);
    for (int i = 0; i < COUNT; i++) {
        assert_status(test_wait(&rest[i]), STATUS_OK);
        test_write_done(&rest[i]);
    }
    test_settle(t);
    assert_int_equal(memory_store_groups(t->store), groups + 2);
    check_space(t);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(writes_that_gather_share_a_commit, MORTAL),
        ENGINE_TEST(an_answer_finds_its_write_visible, MORTAL),
        ENGINE_TEST(a_failed_commit_changes_nothing, MORTAL),
        ENGINE_TEST(the_cache_hears_of_what_has_happened_and_nothing_else, MORTAL),
        ENGINE_TEST(a_crash_loses_only_what_was_not_answered, MORTAL),
        ENGINE_TEST(a_failed_read_fails_its_operation_only, MORTAL),
        ENGINE_TEST(reads_say_what_they_cannot_know, MORTAL),
        ENGINE_TEST(damage_is_said_and_not_served),
        ENGINE_TEST(maintenance_asked_for_twice_is_done_once, MORTAL),
        ENGINE_TEST(failing_maintenance_does_nothing_by_halves, MORTAL),
        ENGINE_TEST(a_purge_counts_for_what_follows_it_in_its_group, MORTAL),
        ENGINE_TEST(a_purge_is_not_forgotten_by_maintenance_in_its_group, MORTAL),
        ENGINE_TEST(a_repeated_purge_begins_again, MORTAL),
        ENGINE_TEST(too_many_that_wait_are_refused),
        ENGINE_TEST(too_much_that_waits_elsewhere_is_refused),
        ENGINE_TEST(a_group_that_writes_much_leaves_the_rest_to_the_next),
        ENGINE_TEST(writes_that_are_too_large_together_are_not_too_large, MORTAL),
        ENGINE_TEST(too_much_that_waits_is_refused, MORTAL),
    };
    return run_on_memory("group", tests, ARRAY_COUNT(tests));
}
