/* baseline_test.c - items that go back to what they were at a baseline. ORRERY_TEST_SEED=n repeats
 * a run of the random test. */
#include "base/random.h"
#include "base/test_seed.h"
#include "partition/change_feed.h"
#include "partition/partition_check_testing_int.h"
#include "partition/transaction.h"

/* Every item as a client sees it, in the order of keys. */
static Slice dump(TestPartition *t)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, (size_t)16 << 20);
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    assert_ok(partition_scan_open(t->partition, t->schema, &(ScanOptions){.order = SCAN_BY_EPK},
                                  &scan, err));
    for (;;) {
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        if (!found)
            return arena_copy(&t->arena, buf_view(&out));
        item_print(t->schema, &item, &out);
        buf_byte(&out, '\n');
    }
}

static HeldPartitions *hold(TestPartition *t)
{
    HeldPartitions *held = held_partitions_new();
    held_partitions_add(held, t->partition);
    assert_ok(held_partitions_wait(held, err));
    return held;
}

static void begin_baseline(TestPartition *t, uint64_t number)
{
    AUTO(held_partitions_free) HeldPartitions *held = hold(t);
    assert_ok(held_partitions_purge(held, err));
    assert_ok(held_partitions_begin(held, number, err));
}

static void restore(TestPartition *t, uint64_t number)
{
    AUTO(held_partitions_free) HeldPartitions *held = hold(t);
    held_partitions_refuse_readers(held);
    assert_ok(held_partitions_restore(held, number, err));
}

static void expect_same(Slice found, Slice expected)
{
    if (!slice_equal(found, expected))
        fail_msg("expected\n%.*s\nfound\n%.*s", SLICE_ARG(expected), SLICE_ARG(found));
}

static void put(TestPartition *t, const char *row)
{
    assert_status(run_document(t, ITEM_UPSERT, row), STATUS_OK);
}

static void items_come_back_as_they_were(TestPartition *t)
{
    put(t, "{'id':'a','pk':'p','u':1}");
    put(t, "{'id':'b','pk':'p','u':2}");
    put(t, "{'id':'c','pk':'q','u':3}");
    begin_baseline(t, 7);
    Slice before = dump(t);
    uint64_t lsn = partition_lsn(t->partition);
    test_advance_s(t, 5);
    put(t, "{'id':'a','pk':'p','u':10}");
    put(t, "{'id':'d','pk':'p','u':4}");
    assert_status(run_id(t, ITEM_DELETE, "q", "c"), STATUS_OK);
    put(t, "{'id':'c','pk':'q','u':5}"); /* another item of the same id */
    for (int i = 0; i < 3; i++) {
        restore(t, 7);
        expect_same(dump(t), before);
        assert_int_equal(count_keys(t, KEY_BEFORE), 0);
        assert_true(partition_lsn(t->partition) > lsn || i > 0);
        check_space(t);
        lsn = partition_lsn(t->partition);
        put(t, "{'id':'a','pk':'p','u':11}");
        put(t, "{'id':'b','pk':'p','u':12}");
        test_reopen(t);
    }
}

static void ids_and_unique_values_may_have_changed_places(TestPartition *t)
{
    put(t, "{'id':'a','pk':'p','u':1}");
    put(t, "{'id':'b','pk':'p','u':2}");
    begin_baseline(t, 1);
    Slice before = dump(t);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ORDERED);
    (void)add_replace(&w, "a", "{'id':'x','pk':'p','u':9}");
    (void)add_replace(&w, "b", "{'id':'a','pk':'p','u':1}");
    (void)add_replace(&w, "x", "{'id':'b','pk':'p','u':2}");
    test_run(t, &w);
    for (size_t i = 0; i < w.write.count; i++)
        assert_status(w.items[i].status, STATUS_OK);
    restore(t, 1);
    expect_same(dump(t), before);
    check_space(t);
}

static void what_was_purged_comes_back_and_what_was_before_does_not(TestPartition *t)
{
    put(t, "{'id':'old','pk':'p','u':1}");
    assert_status(run_purge(t, "p"), STATUS_OK);
    put(t, "{'id':'a','pk':'p','u':1}");
    put(t, "{'id':'b','pk':'q','u':1}");
    begin_baseline(t, 1);
    Slice before = dump(t);
    assert_status(run_purge(t, "p"), STATUS_OK);
    put(t, "{'id':'a','pk':'p','u':7}");
    restore(t, 1);
    expect_same(dump(t), before);
    test_maintain(t);
    expect_same(dump(t), before);
    check_space(t);
}

static void created_and_deleted_items_leave_nothing(TestPartition *t)
{
    begin_baseline(t, 1);
    for (int i = 0; i < 20; i++) {
        put(t, "{'id':'a','pk':'p','u':1}");
        assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_OK);
    }
    assert_int_equal(count_keys(t, KEY_BEFORE), 0);
    restore(t, 1);
    assert_int_equal(dump(t).len, 0);
}

static void forgotten_baselines_leave_nothing(TestPartition *t)
{
    put(t, "{'id':'a','pk':'p','u':1}");
    begin_baseline(t, 1);
    begin_baseline(t, 2);
    put(t, "{'id':'a','pk':'p','u':2}");
    for (int i = 0; i < 1200; i++)
        put(t, arena_format(&t->arena, "{'id':'%d','pk':'p','u':%d}", i, i + 10).ptr);
    assert_int_equal(count_keys(t, KEY_BEFORE), 2 * 1201);
    uint64_t kept[] = {2};
    assert_ok(partition_keep_baselines(t->partition, kept, 1, err));
    test_settle(t);
    assert_int_equal(count_keys(t, KEY_BASELINE), 1);
    assert_int_equal(count_keys(t, KEY_BEFORE), 1201);
    /* A start finds what a crash has left. */
    StoreTxn *txn = store_txn_begin(t->store);
    uint8_t key[KEY_BASELINE_BYTES];
    key_baseline(key, 2);
    store_txn_delete(txn, TEST_SPACE, slice_make(key, sizeof(key)));
    assert_ok(store_txn_commit_wait(txn, err));
    test_reopen(t);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_BEFORE), 0);
}

static void there_are_so_many_baselines_and_no_more(TestPartition *t)
{
    for (uint64_t i = 1; i <= BASELINES_MAX; i++)
        begin_baseline(t, i);
    AUTO(held_partitions_free) HeldPartitions *held = hold(t);
    Error why;
    assert_status(held_partitions_begin(held, BASELINES_MAX + 1, &why), STATUS_TOO_LARGE);
}

static void readers_and_writers_wait_for_a_restore(TestPartition *t)
{
    put(t, "{'id':'a','pk':'p','u':1}");
    begin_baseline(t, 1);
    put(t, "{'id':'a','pk':'p','u':2}");
    AUTO(partition_view_close) PartitionView *before = NULL;
    assert_ok(partition_view_open(t->partition, t->schema, STORE_READ_ANY, &before, err));
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    ItemWrite *patch = add_patch(&w, "p", "a", "[{'op':'incr','path':'/u','value':1}]");
    {
        AUTO(held_partitions_free) HeldPartitions *held = hold(t);
        test_submit(t, &w);
        held_partitions_refuse_readers(held);
        Error why;
        PartitionView *view = NULL;
        PartitionScan *scan = NULL;
        ChangeFeed *feed = NULL;
        Item item;
        StoreValue value;
        StoreFound found;
        assert_status(partition_view_open(t->partition, t->schema, STORE_READ_ANY, &view, &why),
                      STATUS_THROTTLED);
        assert_true(why.retry_after_ms > 0);
        assert_status(partition_scan_open(t->partition, t->schema, &(ScanOptions){0}, &scan, &why),
                      STATUS_THROTTLED);
        assert_status(change_feed_open(t->partition, t->schema, &(FeedOptions){0}, &feed, &why),
                      STATUS_THROTTLED);
        assert_status(partition_get(t->partition, t->schema, &patch->epk, SLICE("a"),
                                    STORE_READ_ANY, &item, &value, &found, &why),
                      STATUS_THROTTLED);
        assert_ok(held_partitions_restore(held, 1, err));
        assert_false(is_answered(&w));
    }
    assert_status(test_wait(&w), STATUS_OK);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','u':2}"); /* 1 and 1 */
    /* A view from before sees what there was before, though the cache has what was put back. */
    Item item;
    bool found = false;
    assert_ok(partition_view_fetch(before, patch->item.number, SLICE_EMPTY, SLICE_EMPTY, &item,
                                   &found, err));
    assert_true(found);
    assert_true(json_number(json_get(item.document, SLICE("u"))) == 2);
}

static void a_transaction_that_read_before_a_restore_does_not_commit(TestPartition *t)
{
    put(t, "{'id':'a','pk':'p','u':1}");
    begin_baseline(t, 1);
    put(t, "{'id':'a','pk':'p','u':5}");
    Epk epk;
    make_epk(&t->arena, t->schema, "p", &epk);
    PartitionTransaction *transaction = NULL;
    assert_ok(transaction_begin(t->partition, t->schema, &epk,
                                clock_monotonic_us(&t->clock.clock) + 60000000, &transaction, err));
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    ItemWrite *op = add_document(&w, ITEM_UPSERT, "{'id':'a','pk':'p','u':6}");
    transaction_apply(transaction, op, &w.arena);
    assert_status(op->status, STATUS_OK);
    restore(t, 1);
    uint64_t lsn = 0;
    Error why;
    assert_status(transaction_commit(transaction, &lsn, &why), STATUS_RETRY_WITH);
    transaction_end(transaction);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','u':1}");
    put(t, "{'id':'a','pk':'p','u':7}"); /* no lock is left */
}

/* A follower that has seen everything sees what the restore puts back, under new LSNs. */
static void a_feed_shows_what_was_put_back(TestPartition *t)
{
    put(t, "{'id':'a','pk':'p','u':1}");
    put(t, "{'id':'b','pk':'p','u':2}");
    begin_baseline(t, 1);
    put(t, "{'id':'a','pk':'p','u':5}");
    assert_status(run_id(t, ITEM_DELETE, "p", "b"), STATUS_OK);
    uint64_t lsn = partition_lsn(t->partition);
    restore(t, 1);
    AUTO(change_feed_close) ChangeFeed *feed = NULL;
    FeedOptions options = {.mode = FEED_LATEST, .after_lsn = lsn, .since_s = INT64_MIN};
    assert_ok(change_feed_open(t->partition, t->schema, &options, &feed, err));
    size_t count = 0;
    for (;; count++) {
        ItemChange change;
        bool found = false;
        assert_ok(change_feed_next(feed, &change, &found, err));
        if (!found)
            break;
    }
    assert_int_equal(count, 2);
}

/* ---- at random ---- */

enum { STEPS = 350, MODEL_BASELINES = 4, MODEL_IDS = 12 };

typedef struct Run {
    TestPartition *t;
    Random random;
    Slice saved[MODEL_BASELINES]; /* what it was; NULL if there is no such baseline */
    uint64_t numbers[MODEL_BASELINES];
    uint64_t next;
} Run;

static unsigned below(Run *run, unsigned bound)
{
    return (unsigned)random_below(&run->random, bound);
}

static const char *random_row(Run *run)
{
    return arena_format(&run->t->arena, "{'id':'%u','pk':'%u','u':%u,'x':'%u'}",
                        below(run, MODEL_IDS), below(run, 3), below(run, 40), below(run, 9))
        .ptr;
}

static void random_write(Run *run)
{
    TestPartition *t = run->t;
    const char *pk = arena_format(&t->arena, "%u", below(run, 3)).ptr;
    const char *id = arena_format(&t->arena, "%u", below(run, MODEL_IDS)).ptr;
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, below(run, 4) == 0 ? WRITE_ATOMIC : WRITE_CONTINUE);
    for (unsigned i = 0; i <= below(run, 5); i++) {
        unsigned kind = below(run, 10);
        if (kind < 5)
            (void)add_document(&w, kind < 1 ? ITEM_CREATE : ITEM_UPSERT, random_row(run));
        else if (kind < 7)
            (void)add_replace(&w, id, random_row(run));
        else if (kind < 8)
            (void)add_patch(&w, pk, id, "[{'op':'set','path':'/x','value':1}]");
        else
            (void)add_id(&w, ITEM_DELETE, pk, id);
    }
    test_run(t, &w); /* some fail: there is no such item, or it is there, or has the value */
    if (below(run, 60) == 0)
        assert_status(run_purge(t, pk), STATUS_OK);
}

static void random_save(Run *run)
{
    unsigned which = below(run, MODEL_BASELINES);
    uint64_t kept[MODEL_BASELINES];
    size_t count = 0;
    begin_baseline(run->t, ++run->next);
    run->numbers[which] = run->next;
    run->saved[which] = dump(run->t);
    for (unsigned i = 0; i < MODEL_BASELINES; i++) {
        if (run->saved[i].ptr != NULL)
            kept[count++] = run->numbers[i];
    }
    assert_ok(partition_keep_baselines(run->t->partition, kept, count, err));
}

static void any_series_of_writes_and_restores_ends_where_it_should(TestPartition *t)
{
    Run run = {.t = t};
    random_init(&run.random, test_seed());
    for (int i = 0; i < STEPS; i++) {
        unsigned kind = below(&run, 100);
        unsigned which = below(&run, MODEL_BASELINES);
        if (kind < 88) {
            random_write(&run);
        } else if (kind < 91) {
            random_save(&run);
        } else if (kind < 98) {
            if (run.saved[which].ptr == NULL)
                continue;
            restore(t, run.numbers[which]);
            expect_same(dump(t), run.saved[which]);
        } else if (kind < 99) {
            test_maintain(t);
        } else {
            test_reopen(t);
        }
        test_advance_s(t, below(&run, 2));
        if (i % 100 == 0) {
            test_settle(t);
            check_space(t);
        }
    }
}

#define UNIQUE  .unique = {"/u"}
#define HISTORY .retention_s = 3600

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(items_come_back_as_they_were, ),
        ENGINE_TEST(items_come_back_as_they_were, UNIQUE),
        ENGINE_TEST(items_come_back_as_they_were, HISTORY),
        ENGINE_TEST(ids_and_unique_values_may_have_changed_places, ),
        ENGINE_TEST(ids_and_unique_values_may_have_changed_places, UNIQUE),
        ENGINE_TEST(what_was_purged_comes_back_and_what_was_before_does_not, ),
        ENGINE_TEST(created_and_deleted_items_leave_nothing, ),
        ENGINE_TEST(forgotten_baselines_leave_nothing, ),
        ENGINE_TEST(there_are_so_many_baselines_and_no_more, ),
        ENGINE_TEST(readers_and_writers_wait_for_a_restore, ),
        ENGINE_TEST(a_transaction_that_read_before_a_restore_does_not_commit, ),
        ENGINE_TEST(a_feed_shows_what_was_put_back, ),
        ENGINE_TEST(any_series_of_writes_and_restores_ends_where_it_should, ),
        ENGINE_TEST(any_series_of_writes_and_restores_ends_where_it_should, UNIQUE),
        ENGINE_TEST(any_series_of_writes_and_restores_ends_where_it_should, HISTORY),
    };
    return run_on_every_engine("baseline", tests, ARRAY_COUNT(tests));
}
