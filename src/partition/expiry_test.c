/* expiry_test.c - what has expired or was purged: gone for everyone at once, its room given back
 * piece by piece, and never more than that. */
#include "partition/partition_check_testing_int.h"

#define TTL(s)                                                  \
    (TestSchema)                                                \
    {                                                           \
        .kind = PARTITION_HASH_V2, .paths = "/pk", .ttl_s = (s) \
    }

static void create(TestPartition *t, const char *row)
{
    assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
}

/* Many items at once: ids "0" to "count - 1" with a letter in front. */
static void create_many(TestPartition *t, const char *pk, char letter, size_t count)
{
    for (size_t i = 0; i < count; i += TEST_OPS_MAX) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        for (size_t j = i; j < i + TEST_OPS_MAX && j < count; j++) {
            char row[128];
            (void)snprintf(row, sizeof(row), "{'id':'%c%zu','pk':'%s','u':'%c%zu'}", letter, j, pk,
                           letter, j);
            (void)add_document(&w, ITEM_CREATE, row);
        }
        test_run(t, &w);
        assert_status(w.items[w.write.count - 1].status, STATUS_OK);
    }
}

static size_t scan_count(TestPartition *t, ScanOrder order)
{
    ScanOptions options = {.order = order};
    Slice ids = scan_ids(t, &options);
    size_t count = ids.len > 0 ? 1 : 0;
    for (size_t i = 0; i < ids.len; i++)
        count += ids.ptr[i] == ' ' ? 1 : 0;
    return count;
}

/* I5 */
static void an_expired_item_is_gone_for_everyone(TestPartition *t)
{
    create(t, "{'id':'default','pk':'p'}");
    create(t, "{'id':'own','pk':'p','ttl':5}");
    create(t, "{'id':'never','pk':'p','ttl':-1}");
    expect_scan(t, "default own never");
    test_advance_s(t, 5);
    expect_scan(t, "default never");
    expect_item(t, "p", "own", NULL);
    test_advance_s(t, 5);
    expect_scan(t, "never");
    expect_item(t, "p", "default", NULL);
    assert_status(run_id(t, ITEM_READ, "p", "default"), STATUS_NOT_FOUND);
    assert_status(run_id(t, ITEM_DELETE, "p", "default"), STATUS_NOT_FOUND);
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'default','pk':'p'}"), STATUS_NOT_FOUND);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_patch(&w, "p", "default", "[{'op':'set','path':'/n','value':1}]");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_NOT_FOUND);
    /* Refusals remove nothing, and so raise no LSN. */
    assert_int_equal(partition_lsn(t->partition), 4);
    assert_int_equal(count_keys(t, KEY_ITEM), 3);
    check_space(t);

    create(t, "{'id':'default','pk':'p','n':2}");
    AUTO(test_write_done) TestWrite upsert;
    test_write_init(&upsert, t, WRITE_ATOMIC);
    (void)add_document(&upsert, ITEM_UPSERT, "{'id':'own','pk':'p','n':2}");
    test_run(t, &upsert);
    assert_true(upsert.items[0].created);
    assert_int_equal(upsert.items[0].item.number, item_number(TEST_PARTITION, 5));
    expect_scan(t, "never default own");
    assert_int_equal(partition_lsn(t->partition), 6);
    check_space(t);
}

static void set_clock_s(TestPartition *t, uint64_t s)
{
    fake_clock_set_wall(&t->clock, s * 1000000);
}

/* I5 */
static void a_clock_that_is_set_back_brings_nothing_back(TestPartition *t)
{
    create(t, "{'id':'own','pk':'p','ttl':5}");
    test_advance_s(t, 5);
    create(t, "{'id':'never','pk':'p','ttl':-1}"); /* after the restart this tells the time */
    expect_scan(t, "never");
    set_clock_s(t, TEST_BEGIN_S - 3600);
    expect_scan(t, "never");
    expect_item(t, "p", "own", NULL);
    test_reopen(t);
    expect_scan(t, "never");
    expect_item(t, "p", "own", NULL);
    set_clock_s(t, 0);
    expect_scan(t, "never");
    create(t, "{'id':'own','pk':'p','ttl':5,'n':2}"); /* the name is free */
    check_space(t);
}

/* I5 */
static void time_goes_on_while_the_clock_is_behind(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p','ttl':5}");
    set_clock_s(t, TEST_BEGIN_S - 3600);
    create(t, "{'id':'b','pk':'p','ttl':5}");
    test_advance_s(t, 4);
    expect_scan(t, "a b");
    test_advance_s(t, 1);
    expect_scan(t, "");
    create(t, "{'id':'c','pk':'p','ttl':5}");
    set_clock_s(t, TEST_BEGIN_S + 7); /* it is ahead again, and counts */
    expect_scan(t, "c");
    set_clock_s(t, TEST_BEGIN_S + 10);
    expect_scan(t, "");
    check_space(t);
}

static void no_clock_is_beyond_it(TestPartition *t)
{
    static const uint64_t clocks_us[] = {0, UINT64_C(4294967296) * 1000000,
                                         UINT64_C(253402300800) * 1000000, UINT64_MAX, 1};
    for (size_t i = 0; i < ARRAY_COUNT(clocks_us); i++) {
        fake_clock_set_wall(&t->clock, clocks_us[i]);
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        (void)add_document(&w, ITEM_UPSERT, "{'id':'a','pk':'p','ttl':2147483647}");
        test_run(t, &w);
        assert_status(w.items[0].status, STATUS_OK);
        assert_int_equal(w.items[0].item.ts_s, i == 0 ? TEST_BEGIN_S : UINT32_MAX);
        expect_scan(t, "a");
        test_maintain(t);
        check_space(t);
        test_reopen(t);
    }
}

/* I5 */
static void a_name_is_free_when_its_item_has_expired(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p','ttl':-1}");
    create(t, "{'id':'b','pk':'p'}");
    test_advance_s(t, 10);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_replace(&w, "a", "{'id':'b','pk':'p','ttl':-1}");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_OK);
    expect_scan(t, "b");
    assert_int_equal(partition_usage(t->partition).items, 1);
    check_space(t);
}

static void maintenance_gives_the_room_back(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p'}");
    create(t, "{'id':'b','pk':'p','ttl':20}");
    create(t, "{'id':'c','pk':'p','ttl':-1}");
    test_maintain(t);
    assert_int_equal(partition_lsn(t->partition), 4);
    assert_int_equal(count_keys(t, KEY_ITEM), 3);
    test_advance_s(t, 10);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 2);
    assert_int_equal(partition_lsn(t->partition), 5);
    check_space(t);
    test_advance_s(t, 10);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 1);
    assert_int_equal(count_keys(t, KEY_EXPIRY), 0);
    assert_int_equal(partition_usage(t->partition).items, 1);
    check_space(t);
    expect_scan(t, "c");
}

static bool doubts(void *ctx)
{
    return *(bool *)ctx;
}

/* Items, and the versions that are kept of them: both are for good if they are removed. */
static void nothing_is_removed_while_the_time_is_in_doubt(TestPartition *t)
{
    bool is_doubtful = true;
    t->host.doubts_time = doubts;
    t->host.placement_ctx = &is_doubtful;
    create(t, "{'id':'a','pk':'p','ttl':20}");
    create(t, "{'id':'b','pk':'p','ttl':5}");
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','ttl':20,'n':2}"), STATUS_OK);
    test_maintain(t);
    size_t kept = count_keys(t, KEY_HISTORY);
    assert_true(kept > 0);
    test_advance_s(t, 1000);
    expect_scan(t, "");
    for (int i = 0; i < 3; i++)
        test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 2);
    assert_int_equal(count_keys(t, KEY_EXPIRY), 2);
    assert_int_equal(count_keys(t, KEY_HISTORY), kept);
    check_space(t);
    is_doubtful = false;
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
    assert_int_equal(count_keys(t, KEY_EXPIRY), 0);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_HISTORY), 2); /* that both have expired, just now */
    check_space(t);
}

static void a_replaced_item_lives_anew(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p'}");
    create(t, "{'id':'b','pk':'p'}");
    test_advance_s(t, 9);
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p'}"), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_patch(&w, "p", "b", "[{'op':'add','path':'/ttl','value':-1}]");
    test_run(t, &w);
    test_advance_s(t, 9);
    test_maintain(t);
    expect_scan(t, "a b");
    check_space(t);
    test_advance_s(t, 1);
    expect_scan(t, "b");
    test_maintain(t);
    expect_scan(t, "b");
    check_space(t);
}

static void without_a_default_ttl_nothing_expires(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p','ttl':5}");
    test_advance_s(t, 1000);
    test_maintain(t);
    expect_scan(t, "a");
    assert_int_equal(count_keys(t, KEY_EXPIRY), 0);
    assert_int_equal(partition_lsn(t->partition), 2);
    check_space(t);
}

static void times_beyond_the_century_are_kept(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p','ttl':2147483647}");
    test_advance_s(t, UINT64_C(2000000000)); /* the year 2087, and then some more */
    create(t, "{'id':'b','pk':'p','ttl':2147483647}");
    test_maintain(t);
    expect_scan(t, "a b");
    check_space(t);
}

/* I7 */
static void a_changed_default_reaches_old_items(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p'}");
    create(t, "{'id':'b','pk':'p','ttl':30}");
    create(t, "{'id':'c','pk':'p','ttl':-1}");
    test_advance_s(t, 100);
    test_maintain(t);
    expect_scan(t, "a b c");
    test_set_schema(t, TTL(-1));
    expect_scan(t, "a c");
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 2);
    check_space(t);
    test_set_schema(t, TTL(110));
    expect_scan(t, "a c");
    test_maintain(t);
    check_space(t);
    test_advance_s(t, 10);
    expect_scan(t, "c");
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 1);
    assert_int_equal(count_keys(t, KEY_EXPIRY), 0);
    check_space(t);
}

/* I7 */
static void a_longer_default_lets_items_live_on(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p'}");
    test_set_schema(t, TTL(20));
    test_advance_s(t, 15); /* its first note comes due */
    expect_scan(t, "a");
    test_maintain(t);
    expect_scan(t, "a");
    check_space(t);
    test_advance_s(t, 5);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
    assert_int_equal(count_keys(t, KEY_EXPIRY), 0);
    check_space(t);
}

/* A default that is taken away and comes back, without any maintenance between: what was written in
 * the meantime has to be found, too (I7). */
static void what_was_written_without_a_default_is_reclaimed_later(TestPartition *t)
{
    static const int64_t meantime[] = {0, -1, 1000};
    for (size_t i = 0; i < ARRAY_COUNT(meantime); i++) {
        test_set_schema(t, TTL(meantime[i]));
        create(t, "{'id':'a','pk':'p'}");
        if (i == 1)
            test_reopen(t);
        test_set_schema(t, TTL(10));
        test_maintain(t);
        check_space(t);
        test_advance_s(t, 10);
        expect_scan(t, "");
        test_maintain(t);
        assert_int_equal(count_keys(t, KEY_ITEM), 0);
        check_space(t);
    }
}

/* Maintenance for another reason looks at notes, too, and drops those of no use today (I7). */
static void notes_dropped_without_a_default_come_back_with_it(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p'}");
    test_set_schema(t, TTL(0));
    test_advance_s(t, 20);
    assert_status(run_purge(t, "q"), STATUS_OK);
    test_settle(t);
    expect_scan(t, "a");
    assert_int_equal(count_keys(t, KEY_EXPIRY), 0);
    test_set_schema(t, TTL(10));
    expect_scan(t, "");
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
    check_space(t);
}

/* More items than one piece, and another change while the sweep is half way (I7). */
static void a_change_during_a_sweep_begins_it_again(TestPartition *t)
{
    create_many(t, "p", 'a', 1200);
    test_set_schema(t, TTL(-1));
    if (t->engine == TEST_MEMORY)
        memory_store_stall(t->store);
    partition_maintain(t->partition);
    if (t->engine == TEST_MEMORY)
        memory_store_wait_stalled(t->store); /* with one piece under this default */
    test_set_schema(t, TTL(10));
    if (t->engine == TEST_MEMORY)
        memory_store_release(t->store);
    test_settle(t);
    test_maintain(t);
    check_space(t);
    assert_int_equal(count_keys(t, KEY_EXPIRY), 1200);
    test_advance_s(t, 10);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
    check_space(t);
}

static void many_expire_in_pieces(TestPartition *t)
{
    create_many(t, "p", 'a', 1300);
    test_advance_s(t, 10);
    assert_int_equal(scan_count(t, SCAN_BY_NUMBER), 0);
    uint64_t lsn = partition_lsn(t->partition);
    test_maintain(t);
    assert_int_equal(count_keys(t, 0), 1);
    assert_int_equal(partition_lsn(t->partition), lsn + 1300);
    check_space(t);
}

/* I5 */
static void a_purged_key_is_empty_at_once(TestPartition *t)
{
    create(t, "{'id':'a','pk':'p','u':1}");
    create(t, "{'id':'b','pk':'p','u':2}");
    create(t, "{'id':'a','pk':'q','u':1}");
    uint64_t lsn = partition_lsn(t->partition);
    TestPurge purge;
    test_purge_submit(t, &purge, "p");
    assert_status(test_purge_wait(&purge), STATUS_OK);
    assert_int_equal(purge.purge.lsn, lsn + 1);
    expect_item(t, "p", "a", NULL);
    expect_item(t, "p", "b", NULL);
    expect_item(t, "q", "a", "{'id':'a','pk':'q','u':1}");
    expect_scan(t, "a");
    assert_status(run_id(t, ITEM_READ, "p", "a"), STATUS_NOT_FOUND);
    assert_status(run_id(t, ITEM_DELETE, "p", "b"), STATUS_NOT_FOUND);
    check_space(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 1);
    assert_int_equal(count_keys(t, KEY_PURGE), 0);
    expect_scan(t, "a");
    assert_status(run_purge(t, "p"), STATUS_OK); /* of nothing */
    check_space(t);
}

/* I6 */
static void what_is_made_after_a_purge_stays(TestPartition *t)
{
    create_many(t, "p", 'a', 600);
    create_many(t, "q", 'a', 20);
    for (int round = 0; round < 3; round++) {
        assert_status(run_purge(t, "p"), STATUS_OK);
        /* These meet the removal of the old ones under way. */
        create_many(t, "p", 'a', 30);
        assert_int_equal(scan_count(t, SCAN_BY_NUMBER), 50);
        assert_int_equal(scan_count(t, SCAN_BY_EPK), 50);
        test_settle(t);
        assert_int_equal(scan_count(t, SCAN_BY_NUMBER), 50);
        assert_int_equal(count_keys(t, KEY_ITEM), 50);
        assert_int_equal(count_keys(t, KEY_PURGE), 0);
        check_space(t);
    }
}

/* Purges of more than one piece, one after the other: none of them may look where another one
 * stopped. */
static void purges_do_not_disturb_each_other(TestPartition *t)
{
    static const char *const keys[] = {"k0", "k1", "k2", "k3", "k4", "k5"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
        create_many(t, keys[i], 'a', i % 2 == 0 ? 700 : 10);
    TestPurge purges[3];
    test_purge_submit(t, &purges[0], "k0");
    test_purge_submit(t, &purges[1], "k3");
    test_purge_submit(t, &purges[2], "k4");
    for (size_t i = 0; i < ARRAY_COUNT(purges); i++)
        assert_status(test_purge_wait(&purges[i]), STATUS_OK);
    assert_int_equal(scan_count(t, SCAN_BY_EPK), 10 + 700 + 10);
    check_space(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 10 + 700 + 10);
    assert_int_equal(scan_count(t, SCAN_BY_NUMBER), 10 + 700 + 10);
    expect_item(t, "k2", "a699", "{'id':'a699','pk':'k2','u':'a699'}");
}

static void a_purge_goes_on_after_a_reopen(TestPartition *t)
{
    create_many(t, "p", 'a', 1200);
    create_many(t, "q", 'b', 5);
    /* No background work: the purge is answered and then the process ends. */
    atomic_store(&t->host.is_closing, true);
    assert_status(run_purge(t, "p"), STATUS_OK);
    assert_int_equal(count_keys(t, KEY_ITEM), 1205);
    check_space(t);
    test_reopen(t);
    expect_item(t, "p", "a7", NULL);
    expect_scan(t, "b0 b1 b2 b3 b4");
    create(t, "{'id':'a7','pk':'p','u':'a7'}");
    check_space(t);
    test_reopen(t);
    expect_scan(t, "b0 b1 b2 b3 b4 a7");
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 6);
    assert_int_equal(count_keys(t, KEY_PURGE), 0);
    expect_scan(t, "b0 b1 b2 b3 b4 a7");
    check_space(t);
}

/* The second one covers more, wherever the first one stands (I6). */
static void the_same_key_can_be_purged_again_at_any_time(TestPartition *t)
{
    create_many(t, "p", 'a', 600);
    atomic_store(&t->host.is_closing, true);
    assert_status(run_purge(t, "p"), STATUS_OK);
    create_many(t, "p", 'a', 300);
    create_many(t, "q", 'a', 3);
    assert_status(run_purge(t, "p"), STATUS_OK);
    create_many(t, "p", 'b', 4);
    assert_int_equal(count_keys(t, KEY_PURGE), 1);
    assert_int_equal(scan_count(t, SCAN_BY_NUMBER), 7);
    check_space(t);
    atomic_store(&t->host.is_closing, false);
    test_maintain(t);
    assert_int_equal(scan_count(t, SCAN_BY_NUMBER), 7);
    assert_int_equal(count_keys(t, KEY_ITEM), 7);
    check_space(t);
}

static void a_prefix_of_a_hierarchical_key_is_purged(TestPartition *t)
{
    create(t, "{'id':'1','x':'t','y':'u'}");
    create(t, "{'id':'2','x':'t','y':'v'}");
    create(t, "{'id':'3','x':'s','y':'u'}");
    create(t, "{'id':'4','x':'t'}");
    assert_status(run_purge(t, "['t','u']"), STATUS_OK);
    expect_scan(t, "2 3 4");
    assert_status(run_purge(t, "['t']"), STATUS_OK);
    expect_scan(t, "3");
    check_space(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 1);
}

static void a_container_without_keys_is_purged_whole(TestPartition *t)
{
    create(t, "{'id':'1'}");
    create(t, "{'id':'\xF4\x8F\xBF\xBF'}");
    assert_status(run_purge(t, "[]"), STATUS_OK);
    expect_scan(t, "");
    check_space(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
}

static void too_many_purges_are_refused(TestPartition *t)
{
    atomic_store(&t->host.is_closing, true);
    char key[16];
    for (int i = 0; i < PURGES_MAX; i++) {
        (void)snprintf(key, sizeof(key), "k%d", i);
        assert_status(run_purge(t, key), STATUS_OK);
    }
    create(t, "{'id':'a','pk':'one more'}");
    TestPurge purge;
    test_purge_submit(t, &purge, "one more");
    assert_status(test_purge_wait(&purge), STATUS_THROTTLED);
    assert_int_equal(purge.purge.error.sub, SUB_SYSTEM_BUSY);
    assert_true(purge.purge.error.retry_after_ms > 0);
    expect_scan(t, "a");
    check_space(t);
    test_reopen(t);
    test_maintain(t);
    assert_int_equal(atomic_load(&t->partition->purges.count), 0);
    assert_status(run_purge(t, "one more"), STATUS_OK);
    expect_scan(t, "");
    check_space(t);
}

/* A scan that began before the removal is over goes on as it began (I6). */
static void a_scan_does_not_see_purged_items_come_back(TestPartition *t)
{
    create_many(t, "p", 'a', 40);
    create_many(t, "q", 'b', 2);
    atomic_store(&t->host.is_closing, true);
    assert_status(run_purge(t, "p"), STATUS_OK);
    for (ScanOrder order = SCAN_BY_NUMBER; order <= SCAN_BY_EPK; order++) {
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        ScanOptions options = {.order = order};
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
        if (order == SCAN_BY_EPK) {
            atomic_store(&t->host.is_closing, false);
            test_maintain(t); /* now everything is removed and the purge forgotten */
            assert_int_equal(atomic_load(&t->partition->purges.count), 0);
        }
        size_t count = 0;
        for (;; count++) {
            Item item;
            bool found = false;
            assert_ok(partition_scan_next(scan, &item, &found, err));
            if (!found)
                break;
        }
        assert_int_equal(count, 2);
    }
}

#define UNIQUE_U .unique = {"/u"}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(an_expired_item_is_gone_for_everyone, .ttl_s = 10),
        ENGINE_TEST(a_clock_that_is_set_back_brings_nothing_back, .ttl_s = -1),
        ENGINE_TEST(time_goes_on_while_the_clock_is_behind, .ttl_s = -1),
        ENGINE_TEST(no_clock_is_beyond_it, .ttl_s = -1),
        ENGINE_TEST(a_name_is_free_when_its_item_has_expired, .ttl_s = 10),
        ENGINE_TEST(maintenance_gives_the_room_back, .ttl_s = 10),
        ENGINE_TEST(nothing_is_removed_while_the_time_is_in_doubt, .ttl_s = 10, .retention_s = 60),
        ENGINE_TEST(a_replaced_item_lives_anew, .ttl_s = 10),
        ENGINE_TEST(without_a_default_ttl_nothing_expires),
        ENGINE_TEST(times_beyond_the_century_are_kept, .ttl_s = -1),
        ENGINE_TEST(a_changed_default_reaches_old_items),
        ENGINE_TEST(a_longer_default_lets_items_live_on, .ttl_s = 10),
        ENGINE_TEST(what_was_written_without_a_default_is_reclaimed_later, .ttl_s = 10),
        ENGINE_TEST(notes_dropped_without_a_default_come_back_with_it, .ttl_s = 10),
        ENGINE_TEST(a_change_during_a_sweep_begins_it_again),
        ENGINE_TEST(many_expire_in_pieces, .ttl_s = 10, UNIQUE_U),
        ENGINE_TEST(a_purged_key_is_empty_at_once, UNIQUE_U),
        ENGINE_TEST(what_is_made_after_a_purge_stays, UNIQUE_U),
        ENGINE_TEST(purges_do_not_disturb_each_other, UNIQUE_U),
        ENGINE_TEST(a_purge_goes_on_after_a_reopen, .ttl_s = -1, UNIQUE_U),
        ENGINE_TEST(the_same_key_can_be_purged_again_at_any_time, UNIQUE_U),
        {.name = "a_prefix_of_a_hierarchical_key_is_purged",
         .run = a_prefix_of_a_hierarchical_key_is_purged,
         .schema = {.kind = PARTITION_MULTI_HASH, .paths = "/x /y"}},
        {.name = "a_container_without_keys_is_purged_whole",
         .run = a_container_without_keys_is_purged_whole,
         .schema = {.kind = PARTITION_NONE, .paths = ""}},
        ENGINE_TEST(too_many_purges_are_refused),
        ENGINE_TEST(a_scan_does_not_see_purged_items_come_back),
    };
    return run_on_every_engine("maintain", tests, ARRAY_COUNT(tests));
}
