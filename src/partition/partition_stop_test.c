/* partition_stop_test.c - a partition that another process is to serve: what waits is refused, what
 * is under way ends, and whoever opens it next sees neither an older time nor an older item. */
#include "partition/change_feed.h"
#include "partition/partition_check_testing_int.h"
#include "partition/partition_stall_testing_int.h"
#include "partition/transaction_testing_int.h"

typedef struct TestStop {
    PartitionStop stop;
    Latch silent;
} TestStop;

typedef struct TestDrop {
    PartitionDrop drop;
    Latch silent;
} TestDrop;

static void on_silent(PartitionStop *stop)
{
    latch_post(&CONTAINER_OF(stop, TestStop, stop)->silent);
}

static void start_stop(TestPartition *t, TestStop *s, bool is_gone)
{
    *s = (TestStop){.stop = {.is_gone = is_gone, .done = on_silent}};
    latch_init(&s->silent);
    partition_stop(t->partition, &s->stop);
}

static void finish_stop(TestStop *s)
{
    latch_wait(&s->silent);
    latch_done(&s->silent);
}

static void stop_now(TestPartition *t)
{
    TestStop stop;
    start_stop(t, &stop, false);
    finish_stop(&stop);
}

/* In the place of the one that was stopped, in the same process. */
static void open_anew(TestPartition *t)
{
    partition_unref(TAKE(t->partition));
    assert_ok(partition_open(&t->host, TEST_SPACE, TEST_PARTITION, t->schema, &t->partition, err));
}

static void what_waits_is_refused_and_what_is_under_way_ends(TestPartition *t)
{
    TestStop stop;
    AUTO(test_write_done) TestWrite before, queued, after;
    fill_create(t, &before, 1);
    stall_with(t, &before);
    fill_create(t, &queued, 2);
    test_submit(t, &queued);
    start_stop(t, &stop, false);
    fill_create(t, &after, 3);
    Error failure = {0};
    assert_status(partition_submit(t->partition, &after.write, &failure), STATUS_NOT_OWNER);
    PartitionPurge purge = {.done = NULL};
    assert_status(partition_purge(t->partition, &purge, &failure), STATUS_NOT_OWNER);
    assert_false(latch_is_posted(&stop.silent));
    memory_store_release(t->store);
    assert_status(test_wait(&before), STATUS_OK);
    assert_status(test_wait(&queued), STATUS_NOT_OWNER);
    finish_stop(&stop);
    test_settle(t);
    assert_int_equal(partition_state(t->partition), PARTITION_STOPPED);
    open_anew(t);
    expect_scan(t, "1");
    check_space(t);
}

static void nothing_is_read_any_more_but_what_was_opened(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'1','pk':'p'}"), STATUS_OK);
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    ScanOptions options = {.order = SCAN_BY_NUMBER};
    assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
    stop_now(t);
    Error failure = {0};
    Epk epk;
    Item item;
    StoreValue value = {0};
    StoreFound found = STORE_UNKNOWN;
    bool is_found = false;
    Slice text;
    make_epk(&t->arena, t->schema, "p", &epk);
    assert_status(partition_get(t->partition, t->schema, &epk, SLICE("1"), STORE_READ_ANY, &item,
                                &value, &found, &failure),
                  STATUS_NOT_OWNER);
    assert_status(partition_locate(t->partition, item_number(TEST_PARTITION, 1), &t->arena, &text,
                                   &text, &is_found, &failure),
                  STATUS_NOT_OWNER);
    PartitionScan *late = NULL;
    assert_status(partition_scan_open(t->partition, t->schema, &options, &late, &failure),
                  STATUS_NOT_OWNER);
    PartitionView *view = NULL;
    assert_status(partition_view_open(t->partition, t->schema, STORE_READ_ANY, &view, &failure),
                  STATUS_NOT_OWNER);
    ChangeFeed *feed = NULL;
    FeedOptions feed_options = {.read = STORE_READ_ANY};
    assert_status(change_feed_open(t->partition, t->schema, &feed_options, &feed, &failure),
                  STATUS_NOT_OWNER);
    assert_ok(partition_scan_next(scan, &item, &is_found, err));
    assert_true(is_found);
    assert_ok(partition_scan_next(scan, &item, &is_found, err));
    assert_false(is_found);
}

/* I10: what this process has cached is not what another one has written meanwhile. */
static void an_item_that_was_written_elsewhere_is_not_taken_from_the_cache(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'1','pk':'p','n':1}"), STATUS_OK);
    expect_item(t, "p", "1", "{'id':'1','pk':'p','n':1}");
    stop_now(t);
    PartitionHost *here = t->partition->host;
    PartitionHost elsewhere = {
        .store = t->store, .writers = t->writers, .clock = &t->clock.clock, .log = &t->log};
    Partition *stopped = t->partition;
    assert_ok(
        partition_open(&elsewhere, TEST_SPACE, TEST_PARTITION, t->schema, &t->partition, err));
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'1','pk':'p','n':2}"), STATUS_OK);
    stop_now(t);
    while (atomic_load(&elsewhere.active) > 0)
        (void)sched_yield();
    partition_unref(t->partition);
    groups_free(&elsewhere);
    assert_ok(partition_open(here, TEST_SPACE, TEST_PARTITION, t->schema, &t->partition, err));
    expect_item(t, "p", "1", "{'id':'1','pk':'p','n':2}");
    partition_unref(stopped);
    check_space(t);
}

static void transactions_that_are_open_do_not_commit_and_those_that_wait_end(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w, waiting;
    PartitionTransaction *transaction = test_begin(t, "p");
    test_write_init(&w, t, WRITE_ATOMIC);
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'1','pk':'p'}"), STATUS_OK);
    fill_create(t, &waiting, 2);
    test_submit(t, &waiting);
    test_settle(t);
    assert_false(is_answered(&waiting));
    stop_now(t);
    assert_status(test_wait(&waiting), STATUS_NOT_OWNER);
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'2','pk':'p'}"), STATUS_NOT_OWNER);
    uint64_t lsn = 0;
    Error failure = {0};
    assert_status(transaction_commit(transaction, &lsn, &failure), STATUS_NOT_OWNER);
    transaction_end(transaction);
    Epk epk;
    make_epk(&t->arena, t->schema, "p", &epk);
    assert_status(
        transaction_begin(t->partition, t->schema, &epk, in_us(t, FAR_US), &transaction, &failure),
        STATUS_NOT_OWNER);
    test_settle(t);
    open_anew(t);
    expect_scan(t, "");
}

static void a_partition_whose_range_is_gone_says_so(TestPartition *t)
{
    TestStop stop;
    start_stop(t, &stop, true);
    finish_stop(&stop);
    AUTO(test_write_done) TestWrite w;
    fill_create(t, &w, 1);
    Error failure = {0};
    assert_status(partition_submit(t->partition, &w.write, &failure), STATUS_GONE);
    assert_int_equal(failure.sub, SUB_PARTITION_KEY_RANGE_GONE);
}

/* A move or a holder gives its right back, however long it takes. */
static void a_fence_is_taken_down_after_a_stop(TestPartition *t)
{
    TestStop stop;
    AUTO(test_write_done) TestWrite behind;
    Turn turn;
    assert_ok(partition_take_turn(t->partition, &turn, MESSAGE_WATCH, err));
    assert_ok(partition_take_turn(t->partition, &turn, MESSAGE_FENCE, err));
    fill_create(t, &behind, 1);
    test_submit(t, &behind);
    start_stop(t, &stop, false);
    assert_false(latch_is_posted(&stop.silent));
    partition_unfence(t->partition);
    partition_unwatch(t->partition);
    assert_status(test_wait(&behind), STATUS_NOT_OWNER);
    finish_stop(&stop);
    Error failure = {0};
    assert_status(partition_take_turn(t->partition, &turn, MESSAGE_FENCE, &failure),
                  STATUS_NOT_OWNER);
}

static void on_dropped(PartitionDrop *drop)
{
    latch_post(&CONTAINER_OF(drop, TestDrop, drop)->silent);
}

static void a_stop_and_a_drop_are_both_answered(TestPartition *t)
{
    TestStop stop, again;
    TestDrop drop = {.drop = {.done = on_dropped}};
    latch_init(&drop.silent);
    start_stop(t, &stop, false);
    start_stop(t, &again, false); /* as when two threads have the same news */
    partition_drop(t->partition, &drop.drop);
    finish_stop(&stop);
    finish_stop(&again);
    latch_wait(&drop.silent);
    latch_done(&drop.silent);
    assert_int_equal(partition_state(t->partition), PARTITION_STOPPED);
}

/* Commits that fail in a way that leaves the partition behind what is stored. */
static void expect_stopped_after(TestPartition *t, Status status)
{
    AUTO(test_write_done) TestWrite w, behind, after;
    PartitionTransaction *transaction = test_begin(t, "held");
    memory_store_fail_commits(t->store, 1, status);
    fill_create(t, &w, 1);
    stall_with(t, &w);
    fill_create(t, &behind, 2);
    test_submit(t, &behind);
    memory_store_release(t->store);
    assert_status(test_wait(&w), status);
    assert_status(test_wait(&behind), STATUS_NOT_OWNER);
    fill_create(t, &after, 3);
    Error failure = {0};
    assert_status(partition_submit(t->partition, &after.write, &failure), STATUS_NOT_OWNER);
    transaction_end(transaction);
    stop_now(t);
    test_settle(t);
    open_anew(t);
    expect_scan(t, "");
    assert_status(run_document(t, ITEM_CREATE, "{'id':'1','pk':'p'}"), STATUS_OK);
    check_space(t);
}

static void a_commit_for_another_owner_stops_the_partition(TestPartition *t)
{
    expect_stopped_after(t, STATUS_NOT_OWNER);
}

static void a_commit_of_unknown_outcome_stops_the_partition(TestPartition *t)
{
    expect_stopped_after(t, STATUS_TIMEOUT);
}

static void another_failure_does_not_stop_it(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w;
    memory_store_fail_commits(t->store, 1, STATUS_UNAVAILABLE);
    fill_create(t, &w, 1);
    test_submit(t, &w);
    assert_status(test_wait(&w), STATUS_UNAVAILABLE);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'1','pk':'p'}"), STATUS_OK);
}

/* ---- work in the background ---- */

static void fill_many(TestPartition *t, int count)
{
    for (int i = 0; i < count; i += TEST_OPS_MAX) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        for (int k = i; k < i + TEST_OPS_MAX && k < count; k++) {
            char row[64];
            (void)snprintf(row, sizeof(row), "{'id':'%d','pk':'p','n':%d}", k, k);
            (void)add_document(&w, ITEM_CREATE, row);
        }
        test_run(t, &w);
    }
}

static void finish_work(TestPartition *t)
{
    while (partition_maintain(t->partition) && (purge_list_count(&t->partition->purges) > 0 ||
                                                partition_index_progress(t->partition) < 100))
        test_settle(t);
}

enum { MANY = 4 * PIECE_MAX };

static void a_purge_ends_with_the_stop_and_goes_on_where_the_partition_is_opened(TestPartition *t)
{
    fill_many(t, MANY);
    assert_status(run_purge(t, "p"), STATUS_OK);
    stop_now(t);
    test_settle(t);
    size_t left = count_keys(t, KEY_ITEM);
    test_maintain(t); /* finds nobody */
    assert_int_equal(count_keys(t, KEY_ITEM), left);
    open_anew(t);
    expect_scan(t, "");
    assert_int_equal(purge_list_count(&t->partition->purges), left > 0 ? 1 : 0);
    finish_work(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
    check_space(t);
}

static void a_rebuild_ends_with_the_stop_and_goes_on_where_the_partition_is_opened(TestPartition *t)
{
    fill_many(t, MANY);
    TestSchema unindexed = {.kind = PARTITION_HASH_V2, .paths = "/pk", .index = ""};
    test_set_schema(t, unindexed);
    stop_now(t);
    test_settle(t);
    open_anew(t);
    finish_work(t);
    assert_int_equal(partition_index_progress(t->partition), 100);
    check_space(t);
}

/* ---- time over a change of owner (I5) ---- */

typedef struct Successor {
    FakeClock clock;
    PartitionHost host;
} Successor;

/* Another process whose clock is behind opens the partition. */
static void succeed(TestPartition *t, Successor *s, uint32_t behind_s)
{
    fake_clock_init(&s->clock, UINT64_C(1000000) * (test_now_s(t) - behind_s));
    s->host = (PartitionHost){
        .store = t->store, .writers = t->writers, .clock = &s->clock.clock, .log = &t->log};
    partition_unref(TAKE(t->partition));
    assert_ok(partition_open(&s->host, TEST_SPACE, TEST_PARTITION, t->schema, &t->partition, err));
}

static void give_back(TestPartition *t, Successor *s)
{
    stop_now(t);
    while (atomic_load(&s->host.active) > 0)
        (void)sched_yield();
    groups_free(&s->host);
    partition_unref(TAKE(t->partition));
    assert_ok(partition_open(&t->host, TEST_SPACE, TEST_PARTITION, t->schema, &t->partition, err));
}

static void times_of_items_do_not_go_back(TestPartition *t)
{
    Item item;
    Successor successor;
    test_advance_s(t, 1000);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'1','pk':'p'}"), STATUS_OK);
    assert_true(test_get(t, "p", "1", &item));
    uint32_t before_s = item.ts_s;
    stop_now(t);
    succeed(t, &successor, 500);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'2','pk':'p'}"), STATUS_OK);
    assert_true(test_get(t, "p", "2", &item));
    assert_true(item.ts_s >= before_s);
    fake_clock_advance(&successor.clock, UINT64_C(7) * 1000000);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'3','pk':'p'}"), STATUS_OK);
    assert_true(test_get(t, "p", "3", &item));
    assert_int_equal(item.ts_s, before_s + 7); /* and it goes on */
    give_back(t, &successor);
}

/* The item was seen to have expired, though nothing was written since. */
static void what_has_expired_does_not_come_back(TestPartition *t)
{
    Successor successor;
    assert_status(run_document(t, ITEM_CREATE, "{'id':'1','pk':'p','ttl':100}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'2','pk':'p'}"), STATUS_OK);
    test_advance_s(t, 101);
    expect_scan(t, "2");
    stop_now(t);
    succeed(t, &successor, 60);
    expect_scan(t, "2");
    expect_item(t, "p", "1", NULL);
    give_back(t, &successor);
}

/* ---- what is drawn at random ---- */

static HashKey stored_key(TestPartition *t, bool *found)
{
    static const uint8_t key[] = {KEY_INDEX_STATE};
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound where = STORE_ABSENT;
    assert_ok(store_get(t->store, NULL, TEST_SPACE, slice_make(key, sizeof(key)), STORE_READ_ANY,
                        &value, &where, err));
    HashKey drawn = {0};
    *found = where == STORE_FOUND;
    if (*found) {
        IndexState *state = NULL;
        uint64_t position = 0;
        assert_ok(index_state_decode(value.data, &t->schema->key, &state, &drawn, &position, err));
        index_state_unref(state);
    }
    return drawn;
}

/* Opening writes nothing. The key of the index is part of the first commit, whoever makes it, and
 * all who open the partition afterwards have that one. */
static void the_key_of_the_index_is_in_the_first_commit(TestPartition *t)
{
    bool found = true;
    (void)stored_key(t, &found);
    assert_false(found);
    stop_now(t);
    test_settle(t);
    assert_int_equal(count_keys(t, 0), 0);
    open_anew(t);
    (void)stored_key(t, &found);
    assert_false(found);
    uint64_t groups = t->engine == TEST_MEMORY ? memory_store_groups(t->store) : 0;
    assert_status(run_document(t, ITEM_CREATE, "{'id':'1','pk':'p'}"), STATUS_OK);
    if (t->engine == TEST_MEMORY)
        assert_int_equal(memory_store_groups(t->store), groups + 1);
    HashKey key = stored_key(t, &found);
    assert_true(found);
    assert_memory_equal(&key, &t->partition->index_key, sizeof(key));
    stop_now(t);
    test_settle(t);
    open_anew(t);
    assert_memory_equal(&key, &t->partition->index_key, sizeof(key));
    check_space(t);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(nothing_is_read_any_more_but_what_was_opened, MORTAL),
        ENGINE_TEST(an_item_that_was_written_elsewhere_is_not_taken_from_the_cache, MORTAL),
        ENGINE_TEST(transactions_that_are_open_do_not_commit_and_those_that_wait_end, MORTAL),
        ENGINE_TEST(a_partition_whose_range_is_gone_says_so, MORTAL),
        ENGINE_TEST(a_fence_is_taken_down_after_a_stop, MORTAL),
        ENGINE_TEST(a_stop_and_a_drop_are_both_answered, MORTAL),
        ENGINE_TEST(a_purge_ends_with_the_stop_and_goes_on_where_the_partition_is_opened),
        ENGINE_TEST(a_rebuild_ends_with_the_stop_and_goes_on_where_the_partition_is_opened),
        ENGINE_TEST(times_of_items_do_not_go_back, .ttl_s = -1),
        ENGINE_TEST(what_has_expired_does_not_come_back, .ttl_s = -1),
        ENGINE_TEST(the_key_of_the_index_is_in_the_first_commit, MORTAL),
    };
    static const EngineTest faults[] = {
        ENGINE_TEST(what_waits_is_refused_and_what_is_under_way_ends, MORTAL),
        ENGINE_TEST(a_commit_for_another_owner_stops_the_partition, MORTAL),
        ENGINE_TEST(a_commit_of_unknown_outcome_stops_the_partition, MORTAL),
        ENGINE_TEST(another_failure_does_not_stop_it, MORTAL),
    };
    int failed = run_on_every_engine("stop", tests, ARRAY_COUNT(tests));
    return run_on_memory("stop, faults", faults, ARRAY_COUNT(faults)) + failed;
}
