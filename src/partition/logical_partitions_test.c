/* logical_partitions_test.c - what logical partitions hold: that the records follow the items, the
 * limit, and reading them. */
#include "partition/partition_check_testing_int.h"

#include "base/random.h"

/* What the items with these ids take: "a b c". */
static void expect_size(TestPartition *t, const char *pk, const char *ids)
{
    Epk epk;
    make_epk(&t->arena, t->schema, pk, &epk);
    uint64_t items = 0;
    uint64_t bytes = 0;
    Slice rest = slice_from_cstr(ids);
    while (rest.len > 0) {
        Slice id = slice_cut(&rest, ' ');
        Item item;
        assert_true(test_get(t, pk, arena_cstr(&t->arena, id), &item));
        items++;
        bytes += 1 + epk.len + id.len + item.bytes;
    }
    LogicalSize size = test_size_of(t, pk);
    assert_int_equal(size.items, items);
    assert_int_equal(size.bytes, bytes);
}

static Status replace(TestPartition *t, const char *id, const char *row)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_replace(&w, id, row);
    test_run(t, &w);
    return w.items[0].status;
}

static Status patch(TestPartition *t, const char *pk, const char *id, const char *row)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_patch(&w, pk, id, row);
    test_run(t, &w);
    return w.items[0].status;
}

/* I16 */
static void sizes_follow_the_items(TestPartition *t)
{
    expect_size(t, "p", "");
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    expect_size(t, "p", "a");
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_CONFLICT);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'bb','pk':'p','text':'longer'}"), STATUS_OK);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'a','pk':'p','text':'long'}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'q'}"), STATUS_OK);
    expect_size(t, "p", "a bb");
    expect_size(t, "q", "a");
    assert_status(replace(t, "bb", "{'id':'another-id','pk':'p'}"), STATUS_OK);
    assert_status(replace(t, "bb", "{'id':'x','pk':'p'}"), STATUS_NOT_FOUND);
    assert_status(patch(t, "p", "a", "[{'op':'set','path':'/t','value':'0123456789'}]"), STATUS_OK);
    assert_status(patch(t, "p", "a", "[{'op':'incr','path':'/t','value':1}]"), STATUS_BAD_REQUEST);
    expect_size(t, "p", "a another-id");
    check_space(t);
    test_reopen(t);
    expect_size(t, "p", "a another-id");
    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_OK);
    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_NOT_FOUND);
    expect_size(t, "p", "another-id");
    assert_status(run_id(t, ITEM_DELETE, "p", "another-id"), STATUS_OK);
    expect_size(t, "p", "");
    expect_size(t, "q", "a");
    assert_int_equal(count_keys(t, KEY_SIZE), 1); /* of 'p' nothing is left */
    check_space(t);
}

/* Many logical partitions in one group, and operations that fail among them (I16). */
static void a_group_adds_up_what_it_does(TestPartition *t)
{
    static TestWrite writes[40];
    memory_store_stall(t->store);
    TestWrite first;
    test_write_init(&first, t, WRITE_ATOMIC);
    (void)add_document(&first, ITEM_CREATE, "{'id':'first','pk':'k0'}");
    test_submit(t, &first);
    for (int i = 0; i < 40; i++) { /* wait for the first group, and so become one */
        test_write_init(&writes[i], t, i % 2 == 0 ? WRITE_ATOMIC : WRITE_CONTINUE);
        for (int j = 0; j < 8; j++) {
            Slice row = arena_format(&t->arena, "{'id':'i%d','pk':'k%d','n':%d}", i % 4,
                                     j * 3 + i % 5, i * j);
            (void)add_document(&writes[i], i % 3 == 0 ? ITEM_UPSERT : ITEM_CREATE, row.ptr);
        }
        test_submit(t, &writes[i]);
    }
    memory_store_release(t->store);
    (void)test_wait(&first);
    test_write_done(&first);
    for (int i = 0; i < 40; i++) {
        assert_status(test_wait(&writes[i]), STATUS_OK);
        test_write_done(&writes[i]);
    }
    check_space(t);
    assert_true(count_keys(t, KEY_SIZE) > 20);
}

static const char *padded(TestPartition *t, const char *pk, const char *id, size_t pad, size_t more)
{
    char *text = arena_alloc(&t->arena, pad + 1);
    memset(text, 'x', pad);
    return arena_format(&t->arena, "{'id':'%s','pk':'%s','t':'%.*s','u':'%.*s'}", id, pk, (int)pad,
                        text, (int)more, "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy")
        .ptr;
}

/* An item of 'bytes' bytes, key included. One more character may add two bytes, because the length
 * of a long string may take another byte; a second string then has the last few characters. */
static const char *sized(TestPartition *t, const char *pk, const char *id, size_t bytes)
{
    Epk epk;
    make_epk(&t->arena, t->schema, pk, &epk);
    size_t pad = 0;
    size_t more = 0;
    for (;;) {
        const char *row = padded(t, pk, id, pad, more);
        size_t has = 1 + epk.len + strlen(id) + ITEM_HEADER_BYTES +
                     json_bytes(&t->arena, row_json(&t->arena, row)).len;
        if (has == bytes)
            return row;
        assert_true(has < bytes);
        size_t missing = bytes - has;
        pad += missing > 16 ? missing - 12 : 0;
        more += missing > 16 ? 0 : missing;
    }
}

static void expect_refused(TestPartition *t, TestWrite *w, size_t index)
{
    test_run(t, w);
    const ItemWrite *item = &w->items[index];
    assert_status(item->status, STATUS_FORBIDDEN);
    assert_int_equal(item->error.sub, SUB_PARTITION_KEY_QUOTA);
    assert_non_null(strstr(item->error.message, "Partition key reached maximum size of 1 KB"));
}

static void refuse_document(TestPartition *t, ItemOp op, const char *row)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, op, row);
    expect_refused(t, &w, 0);
}

/* I17 */
static void a_logical_partition_takes_what_it_may_and_not_a_byte_more(TestPartition *t)
{
    test_set_limit(t, 1024);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "a", 512)), STATUS_OK);
    refuse_document(t, ITEM_CREATE, sized(t, "p", "b", 513));
    refuse_document(t, ITEM_UPSERT, sized(t, "p", "b", 513));
    expect_item(t, "p", "b", NULL);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "b", 512)), STATUS_OK);
    assert_int_equal(test_size_of(t, "p").bytes, 1024);
    check_space(t);

    /* Others in the same physical partition have their own room. */
    assert_status(run_document(t, ITEM_CREATE, sized(t, "q", "a", 1024)), STATUS_OK);
    refuse_document(t, ITEM_CREATE, "{'id':'b','pk':'q'}");
    assert_status(run_document(t, ITEM_CREATE, sized(t, "r", "a", 1000)), STATUS_OK);

    refuse_document(t, ITEM_UPSERT, sized(t, "p", "a", 513));
    assert_status(patch(t, "p", "a", "[{'op':'add','path':'/v','value':1}]"), STATUS_FORBIDDEN);
    assert_status(replace(t, "a", sized(t, "p", "a-longer-id", 513)), STATUS_FORBIDDEN);
    check_space(t);
    test_reopen(t);
    refuse_document(t, ITEM_CREATE, sized(t, "p", "c", 200));

    /* As large as before, smaller, and without. */
    assert_status(replace(t, "a", sized(t, "p", "A", 512)), STATUS_OK);
    assert_status(run_document(t, ITEM_UPSERT, sized(t, "p", "A", 500)), STATUS_OK);
    assert_status(patch(t, "p", "A", "[{'op':'remove','path':'/t'}]"), STATUS_OK);
    assert_status(run_document(t, ITEM_UPSERT, sized(t, "p", "A", 512)), STATUS_OK);
    assert_status(run_id(t, ITEM_DELETE, "p", "A"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "c", 512)), STATUS_OK);
    assert_int_equal(test_size_of(t, "p").bytes, 1024);
    check_space(t);
}

/* I17 */
static void a_partition_over_a_limit_that_was_lowered_can_only_shrink(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "a", 900)), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "b", 900)), STATUS_OK);
    test_set_limit(t, 1024);
    refuse_document(t, ITEM_UPSERT, sized(t, "p", "a", 901));
    assert_status(run_document(t, ITEM_UPSERT, sized(t, "p", "a", 900)), STATUS_OK);
    assert_status(run_document(t, ITEM_UPSERT, sized(t, "p", "a", 899)), STATUS_OK);
    refuse_document(t, ITEM_UPSERT, sized(t, "p", "a", 900));
    assert_status(run_id(t, ITEM_DELETE, "p", "b"), STATUS_OK);
    assert_status(run_document(t, ITEM_UPSERT, sized(t, "p", "a", 1024)), STATUS_OK);
    test_set_limit(t, 0);
    assert_status(run_document(t, ITEM_UPSERT, sized(t, "p", "a", 5000)), STATUS_OK);
    check_space(t);
}

static void a_batch_that_passes_the_limit_fails_as_a_whole(TestPartition *t)
{
    test_set_limit(t, 1024);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "old", 500)), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, sized(t, "p", "a", 300));
    (void)add_document(&w, ITEM_CREATE, sized(t, "p", "b", 300));
    (void)add_id(&w, ITEM_DELETE, "p", "old");
    expect_refused(t, &w, 1);
    assert_status(w.items[0].status, STATUS_FAILED_DEPENDENCY);
    assert_status(w.items[2].status, STATUS_FAILED_DEPENDENCY);
    expect_size(t, "p", "old");
    check_space(t);

    /* Each alone: the one that is too much is left out. In order: so is what follows. */
    AUTO(test_write_done) TestWrite each;
    test_write_init(&each, t, WRITE_CONTINUE);
    (void)add_document(&each, ITEM_CREATE, sized(t, "p", "a", 300));
    (void)add_document(&each, ITEM_CREATE, sized(t, "p", "b", 300));
    (void)add_document(&each, ITEM_CREATE, sized(t, "p", "c", 224));
    expect_refused(t, &each, 1);
    expect_size(t, "p", "old a c");
    assert_int_equal(test_size_of(t, "p").bytes, 1024);

    /* What a batch takes away before, it may add. */
    AUTO(test_write_done) TestWrite swap;
    test_write_init(&swap, t, WRITE_ATOMIC);
    (void)add_id(&swap, ITEM_DELETE, "p", "old");
    (void)add_document(&swap, ITEM_CREATE, sized(t, "p", "new", 500));
    test_run(t, &swap);
    assert_status(swap.items[1].status, STATUS_OK);
    expect_size(t, "p", "a c new");
    check_space(t);
}

/* I16 */
static void what_expires_makes_room_when_it_is_removed(TestPartition *t)
{
    test_set_limit(t, 1024);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "a", 600)), STATUS_OK);
    test_advance_s(t, 11);
    expect_item(t, "p", "a", NULL);
    /* A write over it removes it first (I5). */
    refuse_document(t, ITEM_CREATE, sized(t, "p", "b", 600));
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "a", 700)), STATUS_OK);
    test_advance_s(t, 11);
    refuse_document(t, ITEM_CREATE, sized(t, "p", "b", 600));
    test_maintain(t);
    expect_size(t, "p", "");
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "b", 600)), STATUS_OK);
    check_space(t);
}

/* I16 */
static void what_is_purged_makes_room_when_it_is_removed(TestPartition *t)
{
    test_set_limit(t, 1024);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "a", 600)), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "q", "a", 600)), STATUS_OK);
    assert_status(run_purge(t, "p"), STATUS_OK);
    test_settle(t);
    expect_size(t, "p", "");
    expect_size(t, "q", "a");
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "b", 600)), STATUS_OK);
    refuse_document(t, ITEM_CREATE, sized(t, "q", "b", 600));
    check_space(t);
}

static void an_old_style_container_may_hold_half(TestPartition *t)
{
    test_set_limit(t, 2048);
    assert_int_equal(partition_logical_bytes_max(t->partition->host, t->schema), 1024);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "[]", "a", 600)), STATUS_OK);
    refuse_document(t, ITEM_CREATE, sized(t, "[]", "b", 600));
    assert_status(run_document(t, ITEM_CREATE, sized(t, "[]", "b", 424)), STATUS_OK);
    check_space(t);
}

static void commits_that_fail_count_for_nothing(TestPartition *t)
{
    test_set_limit(t, 1024);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "a", 600)), STATUS_OK);
    memory_store_fail_commits(t->store, 1, STATUS_IO);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, sized(t, "p", "b", 400));
    test_submit(t, &w);
    assert_status(test_wait(&w), STATUS_IO);
    memory_store_fail_commits(t->store, 0, STATUS_IO);
    expect_size(t, "p", "a");
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "b", 400)), STATUS_OK);
    refuse_document(t, ITEM_CREATE, sized(t, "p", "c", 400));
    check_space(t);
}

static void the_most_that_was_stored_is_remembered(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "a", 600)), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "q", "a", 600)), STATUS_OK);
    test_set_limit(t, 1024);
    AUTO(test_write_done) TestWrite w; /* of what is undone nothing counts */
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, sized(t, "p", "b", 400));
    (void)add_document(&w, ITEM_CREATE, sized(t, "p", "c", 400));
    expect_refused(t, &w, 1);
    assert_int_equal(partition_usage(t->partition).bytes_ever, 1200);
    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_OK);
    assert_int_equal(partition_usage(t->partition).bytes_ever, 1200);
    test_reopen(t);
    assert_int_equal(partition_usage(t->partition).bytes_ever, 1200);
    assert_status(run_document(t, ITEM_CREATE, sized(t, "p", "a", 700)), STATUS_OK);
    assert_int_equal(partition_usage(t->partition).bytes_ever, 1300);
    check_space(t);
}

/* ---- partitions from before there were records ---- */

/* Removes the records, and what the counters say of them. */
static void make_old(TestPartition *t)
{
    test_settle(t);
    StoreTxn *txn = store_txn_begin(t->store);
    AUTO(logical_partitions_close) LogicalPartitions *walk = NULL;
    assert_ok(logical_partitions_open(t->partition, SLICE_EMPTY, SLICE_EMPTY, &walk, err));
    for (;;) {
        LogicalSize size;
        bool found = false;
        assert_ok(logical_partitions_next(walk, &size, &found, err));
        if (!found)
            break;
        Key key;
        uint8_t record[SIZE_RECORD_BYTES];
        key_size(&key, size.epk);
        size_encode((SizeSum){-(int64_t)size.items, -(int64_t)size.bytes}, record);
        store_txn_merge(txn, TEST_SPACE, key_slice(&key), slice_make(record, sizeof(record)));
    }
    t->partition->has_sizes = false;
    partition_put_counters(t->partition, txn, &t->partition->writer.counters);
    assert_ok(store_txn_commit_wait(txn, err));
    assert_int_equal(count_keys(t, KEY_SIZE), 0);
}

static void fill_keys(TestPartition *t, int keys)
{
    for (int i = 0; i < keys; i++) {
        Slice a = arena_format(&t->arena, "{'id':'a','pk':'k%d'}", i);
        Slice b = arena_format(&t->arena, "{'id':'b','pk':'k%d','n':%d}", i, i);
        assert_status(run_document(t, ITEM_CREATE, a.ptr), STATUS_OK);
        if (i % 3 == 0)
            assert_status(run_document(t, ITEM_CREATE, b.ptr), STATUS_OK);
    }
}

/* I18 */
static void an_old_partition_is_counted_when_it_is_opened(TestPartition *t)
{
    fill_keys(t, 20);
    make_old(t);
    test_reopen(t);
    assert_true(t->partition->has_sizes);
    assert_int_equal(count_keys(t, KEY_SIZE), 20);
    PartitionUsage usage = partition_usage(t->partition);
    assert_int_equal(usage.bytes_ever, usage.bytes);
    expect_size(t, "k3", "a b");
    check_space(t);
    test_reopen(t);
    check_space(t);
}

/* I18 */
static void a_count_that_was_cut_off_begins_anew(TestPartition *t)
{
    fill_keys(t, 20);
    make_old(t);
    /* As if some were counted, and items came and went since. */
    test_resize(t, "k3", 1, 1000);
    test_resize(t, "k4", -5, -1000);
    test_resize(t, "k5", 1, 60);
    test_resize(t, "nobody", 7, 7);
    test_reopen(t);
    expect_size(t, "k3", "a b");
    expect_size(t, "nobody", "");
    check_space(t);
}

static void an_empty_old_partition_is_counted_too(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_OK);
    make_old(t);
    test_resize(t, "nobody", 7, 7);
    test_reopen(t);
    assert_true(t->partition->has_sizes);
    check_space(t);
}

static void fill_many(TestPartition *t, int keys)
{
    enum { OPS = 16 };
    char pad[91];
    memset(pad, 'x', sizeof(pad) - 1);
    pad[sizeof(pad) - 1] = '\0';
    for (int i = 0; i < keys; i += OPS) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_CONTINUE);
        for (int j = 0; j < OPS; j++) {
            Slice row = arena_format(&t->arena, "{'id':'i','pk':'%s%d'}", pad, i + j);
            (void)add_document(&w, ITEM_CREATE, row.ptr);
        }
        test_run(t, &w);
        arena_reset(&t->arena);
    }
}

/* The sizes are unknown: there is no limit, but all else works. */
static void expect_uncounted(TestPartition *t, const char *row)
{
    assert_false(t->partition->has_sizes);
    LogicalCount count;
    Error error;
    assert_status(logical_partitions_count(t->partition, t->schema, SLICE_EMPTY, SLICE_EMPTY, NULL,
                                           &count, &error),
                  STATUS_UNAVAILABLE);
    test_set_limit(t, 1);
    assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
    test_set_limit(t, 0);
}

/* So many that their records are two transactions (I18). */
static void a_count_that_fails_is_made_up_for_at_the_next_opening(TestPartition *t)
{
    enum { KEYS = 8000 };
    static const Slice last = SLICE_INIT("\x02\x05\xFE");
    fill_many(t, KEYS);
    make_old(t);
    test_close_partition(t);
    memory_store_fail_commits(t->store, 1, STATUS_IO);
    test_open_partition(t);
    expect_uncounted(t, "{'id':'a','pk':'p'}");
    assert_int_equal(count_keys(t, KEY_SIZE), 1); /* of what was just written */
    CheckReport report = {.found = fail_finding};
    CheckTotals totals = {0};
    assert_ok(partition_check(t->partition, t->schema, &report, &totals, err));
    assert_int_equal(totals.items, KEYS + 1);

    /* The first of the two is written, then something is damaged. */
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_put(txn, TEST_SPACE, last, SLICE("no item"));
    assert_ok(store_txn_commit_wait(txn, err));
    test_reopen(t);
    expect_uncounted(t, "{'id':'b','pk':'p'}");
    assert_in_range(count_keys(t, KEY_SIZE), KEYS / 2, KEYS - 1);
    txn = store_txn_begin(t->store);
    store_txn_delete(txn, TEST_SPACE, last);
    assert_ok(store_txn_commit_wait(txn, err));
    test_reopen(t);
    assert_true(t->partition->has_sizes);
    assert_int_equal(count_keys(t, KEY_SIZE), KEYS + 1);
    check_space(t);
}

static void a_closing_host_counts_nothing(TestPartition *t)
{
    fill_keys(t, 3);
    make_old(t);
    test_close_partition(t);
    t->host.is_closing = true;
    t->writers = workers_open("test", TEST_WRITERS, 8);
    t->host.writers = t->writers;
    t->host.cache = item_cache_open((size_t)1 << 20, (HashKey){1, 2});
    assert_ok(partition_open(&t->host, TEST_SPACE, TEST_PARTITION, t->schema, &t->partition, err));
    assert_false(t->partition->has_sizes);
    assert_int_equal(count_keys(t, KEY_SIZE), 0);
}

/* ---- reading them ---- */

static void the_walk_is_in_the_order_of_the_hashes(TestPartition *t)
{
    fill_keys(t, 30);
    AUTO(logical_partitions_close) LogicalPartitions *walk = NULL;
    assert_ok(logical_partitions_open(t->partition, SLICE_EMPTY, SLICE_EMPTY, &walk, err));
    assert_status(run_document(t, ITEM_CREATE, "{'id':'later','pk':'later'}"), STATUS_OK);
    Slice epks[30];
    for (int i = 0; i < 30; i++) {
        LogicalSize size;
        bool found = false;
        assert_ok(logical_partitions_next(walk, &size, &found, err));
        assert_true(found);
        assert_int_equal(size.partition, TEST_PARTITION);
        assert_true(size.items == 1 || size.items == 2);
        epks[i] = arena_copy(&t->arena, size.epk);
        assert_true(i == 0 || slice_compare(epks[i - 1], epks[i]) < 0);
    }
    LogicalSize size;
    bool found = true;
    assert_ok(logical_partitions_next(walk, &size, &found, err));
    assert_false(found);

    AUTO(logical_partitions_close) LogicalPartitions *part = NULL;
    assert_ok(logical_partitions_open(t->partition, epks[10], epks[12], &part, err));
    for (int i = 10; i < 12; i++) {
        assert_ok(logical_partitions_next(part, &size, &found, err));
        if (found && !slice_equal(size.epk, epks[i])) /* "later" may be here */
            assert_ok(logical_partitions_next(part, &size, &found, err));
        assert_true(found);
        assert_slice(size.epk, epks[i]);
    }
}

static void a_count_beyond_its_budget_is_an_estimate(TestPartition *t)
{
    fill_keys(t, 300);
    static const struct {
        uint64_t entries;
        uint64_t least;
        uint64_t most;
        bool is_exact;
    } rows[] = {
        {0, 0, 0, false},       {10, 100, 900, false}, {100, 200, 400, false},
        {299, 270, 330, false}, {300, 300, 300, true}, {301, 300, 300, true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ScanBudget budget = {.entries = rows[i].entries};
        LogicalCount count;
        assert_ok(logical_partitions_count(t->partition, t->schema, SLICE_EMPTY, SLICE("\xFF"),
                                           &budget, &count, err));
        assert_int_equal(count.is_exact, rows[i].is_exact);
        assert_in_range(count.count, rows[i].least, rows[i].most);
    }
    LogicalCount count;
    assert_ok(logical_partitions_count(t->partition, t->schema, SLICE_EMPTY, SLICE_EMPTY, NULL,
                                       &count, err));
    assert_int_equal(count.count, 300);
}

static void the_largest_are_found_piece_by_piece(TestPartition *t)
{
    for (int i = 0; i < 60; i++) {
        char pk[16];
        (void)snprintf(pk, sizeof(pk), "k%d", i);
        assert_status(run_document(t, ITEM_CREATE, sized(t, pk, "a", 200 + (size_t)(i * 7 % 20))),
                      STATUS_OK);
    }
    for (size_t max = 0; max <= 70; max = max * 2 + 1) {
        LargestPartitions *whole = largest_partitions_new(&t->arena, max);
        LargestPartitions *pieces = largest_partitions_new(&t->arena, max);
        bool is_complete = false;
        Slice next = SLICE_EMPTY;
        assert_ok(largest_partitions_add(whole, t->partition, SLICE_EMPTY, SLICE_EMPTY, NULL,
                                         &is_complete, &next, err));
        assert_true(is_complete);
        int calls = 0;
        for (is_complete = false; !is_complete; calls++) {
            ScanBudget budget = {.entries = 7};
            assert_ok(largest_partitions_add(pieces, t->partition, next, SLICE_EMPTY, &budget,
                                             &is_complete, &next, err));
        }
        assert_int_equal(calls, 9);
        size_t count = 0;
        size_t same = 0;
        const LogicalSize *a = largest_partitions_list(whole, &count);
        const LogicalSize *b = largest_partitions_list(pieces, &same);
        assert_int_equal(count, max < 60 ? max : 60);
        assert_int_equal(same, count);
        for (size_t i = 0; i < count; i++) {
            assert_slice(a[i].epk, b[i].epk);
            assert_int_equal(a[i].bytes, b[i].bytes);
            /* Three have each size. */
            assert_int_equal(a[i].bytes, 219 - i / 3);
            assert_true(i == 0 || a[i - 1].bytes > a[i].bytes ||
                        slice_compare(a[i - 1].epk, a[i].epk) < 0);
        }
    }
}

static void expect_key_text(TestPartition *t, const char *key, const char *row, const char *text)
{
    assert_status(run_document(t, ITEM_UPSERT, row), STATUS_OK);
    Epk epk;
    make_epk(&t->arena, t->schema, key, &epk);
    Slice found_text = SLICE_EMPTY;
    bool found = false;
    assert_ok(logical_partition_key_text(t->partition, t->schema, epk_slice(&epk), &t->arena,
                                         &found_text, &found, err));
    assert_true(found);
    assert_slice(found_text, slice_from_cstr(text));
}

static void the_value_of_a_key_is_read_from_an_item(TestPartition *t)
{
    expect_key_text(t, "p", "{'id':'a','pk':'p'}", "[\"p\"]");
    expect_key_text(t, "[1.5]", "{'id':'a','pk':1.5}", "[1.5]");
    expect_key_text(t, "[null]", "{'id':'a','pk':null}", "[null]");
    expect_key_text(t, "[true]", "{'id':'a','pk':true}", "[true]");
    expect_key_text(t, "[{}]", "{'id':'a'}", "[{}]");
    expect_key_text(t, "[{}]", "{'id':'0','pk':[1]}", "[{}]");
    Epk epk;
    make_epk(&t->arena, t->schema, "nobody", &epk);
    Slice text = SLICE_EMPTY;
    bool found = true;
    assert_ok(logical_partition_key_text(t->partition, t->schema, epk_slice(&epk), &t->arena, &text,
                                         &found, err));
    assert_false(found);
    assert_ok(logical_partition_key_text(t->partition, t->schema, slice_first(epk_slice(&epk), 0),
                                         &t->arena, &text, &found, err));
    assert_false(found); /* the beginning of all keys is none */
}

static void the_value_of_a_hierarchical_key_has_all_its_parts(TestPartition *t)
{
    expect_key_text(t, "['t',1]", "{'id':'a','a':'t','b':1}", "[\"t\",1]");
    expect_key_text(t, "['t',{}]", "{'id':'a','a':'t'}", "[\"t\",{}]");
    assert_int_equal(test_size_of(t, "['t',1]").items, 1);
    assert_int_equal(count_keys(t, KEY_SIZE), 2);
    check_space(t);
}

static void the_key_of_an_old_style_container_is_empty(TestPartition *t)
{
    expect_key_text(t, "[]", "{'id':'a','pk':'p'}", "[]");
    expect_key_text(t, "[]", "{'id':'b'}", "[]");
    assert_int_equal(test_size_of(t, "[]").items, 2);
    LogicalCount count;
    assert_ok(logical_partitions_count(t->partition, t->schema, SLICE_EMPTY, SLICE("\xFF"), NULL,
                                       &count, err));
    assert_int_equal(count.count, 1);
}

static void damaged_records_are_refused_and_nothing_else(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    Epk epk;
    Key key;
    make_epk(&t->arena, t->schema, "p", &epk);
    key_size(&key, epk_slice(&epk));
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_merge(txn, TEST_SPACE, key_slice(&key), SLICE("not a record"));
    assert_ok(store_txn_commit_wait(txn, err));
    AUTO(logical_partitions_close) LogicalPartitions *walk = NULL;
    assert_ok(logical_partitions_open(t->partition, epk_slice(&epk), SLICE_EMPTY, &walk, err));
    LogicalSize size;
    bool found = false;
    Error error;
    assert_status(logical_partitions_next(walk, &size, &found, &error), STATUS_CORRUPT);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p'}"), STATUS_OK);
    expect_item(t, "p", "b", "{'id':'b','pk':'p'}");
    test_set_limit(t, 10); /* now it has to be known */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'p'}"), STATUS_CORRUPT);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'q'}"), STATUS_FORBIDDEN);
    assert_status(run_id(t, ITEM_DELETE, "p", "b"), STATUS_OK);
}

#define KIND_TEST(function, of_kind, of_paths)                            \
    {                                                                     \
        .name = #function " (" #of_kind ")", .run = function, .schema = { \
            .kind = (of_kind),                                            \
            .paths = (of_paths)                                           \
        }                                                                 \
    }

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(sizes_follow_the_items),
        KIND_TEST(sizes_follow_the_items, PARTITION_HASH_V1, "/pk"),
        ENGINE_TEST(a_logical_partition_takes_what_it_may_and_not_a_byte_more),
        KIND_TEST(a_logical_partition_takes_what_it_may_and_not_a_byte_more, PARTITION_HASH_V1,
                  "/pk"),
        ENGINE_TEST(a_partition_over_a_limit_that_was_lowered_can_only_shrink),
        ENGINE_TEST(a_batch_that_passes_the_limit_fails_as_a_whole),
        ENGINE_TEST(what_expires_makes_room_when_it_is_removed, .ttl_s = 10),
        ENGINE_TEST(the_most_that_was_stored_is_remembered),
        ENGINE_TEST(what_is_purged_makes_room_when_it_is_removed),
        KIND_TEST(an_old_style_container_may_hold_half, PARTITION_NONE, ""),
        ENGINE_TEST(an_old_partition_is_counted_when_it_is_opened),
        KIND_TEST(an_old_partition_is_counted_when_it_is_opened, PARTITION_HASH_V1, "/pk"),
        ENGINE_TEST(a_count_that_was_cut_off_begins_anew),
        ENGINE_TEST(an_empty_old_partition_is_counted_too),
        ENGINE_TEST(a_closing_host_counts_nothing),
        ENGINE_TEST(the_walk_is_in_the_order_of_the_hashes),
        ENGINE_TEST(a_count_beyond_its_budget_is_an_estimate),
        KIND_TEST(a_count_beyond_its_budget_is_an_estimate, PARTITION_HASH_V1, "/pk"),
        ENGINE_TEST(the_largest_are_found_piece_by_piece),
        ENGINE_TEST(the_value_of_a_key_is_read_from_an_item),
        KIND_TEST(the_value_of_a_key_is_read_from_an_item, PARTITION_HASH_V1, "/pk"),
        KIND_TEST(the_value_of_a_hierarchical_key_has_all_its_parts, PARTITION_MULTI_HASH, "/a /b"),
        KIND_TEST(the_key_of_an_old_style_container_is_empty, PARTITION_NONE, ""),
        ENGINE_TEST(damaged_records_are_refused_and_nothing_else),
    };
    static const EngineTest on_memory[] = {
        ENGINE_TEST(a_group_adds_up_what_it_does),
        ENGINE_TEST(commits_that_fail_count_for_nothing),
        KIND_TEST(a_count_that_fails_is_made_up_for_at_the_next_opening, PARTITION_HASH_V1, "/pk"),
    };
    return run_on_every_engine("sizes", tests, ARRAY_COUNT(tests)) +
           run_on_memory("sizes faults", on_memory, ARRAY_COUNT(on_memory));
}
