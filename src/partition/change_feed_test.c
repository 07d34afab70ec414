/* change_feed_test.c - the change log and its feeds: what is in them, in which order, and for how
 * long. */
#include "partition/change_feed.h"

#include "partition/partition_check_testing_int.h"

enum { RETENTION_S = 600 };

static const FeedOptions LATEST = {.mode = FEED_LATEST, .since_s = INT64_MIN};
static const FeedOptions VERSIONS = {.mode = FEED_VERSIONS, .since_s = INT64_MIN};

static char letter(ChangeKind kind)
{
    static const char letters[] = {[CHANGE_CREATE] = '+',
                                   [CHANGE_REPLACE] = '=',
                                   [CHANGE_DELETE] = '-',
                                   [CHANGE_EXPIRE] = '~'};
    assert_true(kind < sizeof(letters));
    return letters[kind];
}

/* "+a2 =b3 -a4": kind, id, LSN of each change; then where the feed ends: "|4". */
static Slice read_feed(TestPartition *t, FeedOptions options)
{
    AUTO(change_feed_close) ChangeFeed *feed = NULL;
    assert_ok(change_feed_open(t->partition, t->schema, &options, &feed, err));
    Buf text;
    buf_init(&text, 1 << 20);
    for (;;) {
        ItemChange change;
        bool found = false;
        assert_ok(change_feed_next(feed, &change, &found, err));
        if (!found)
            break;
        buf_byte(&text, letter(change.kind));
        buf_slice(&text, change.id);
        buf_u64(&text, change.lsn);
        buf_byte(&text, ' ');
        if (options.mode == FEED_LATEST)
            assert_int_equal(change.lsn, change.item.lsn);
    }
    buf_byte(&text, '|');
    buf_u64(&text, change_feed_seen_lsn(feed));
    Slice result = arena_copy(&t->arena, buf_view(&text));
    buf_done(&text);
    return result;
}

static void expect_latest(TestPartition *t, uint64_t after_lsn, const char *expected)
{
    FeedOptions options = LATEST;
    options.after_lsn = after_lsn;
    assert_slice(read_feed(t, options), slice_from_cstr(expected));
}

static void expect_versions(TestPartition *t, uint64_t after_lsn, const char *expected)
{
    FeedOptions options = VERSIONS;
    options.after_lsn = after_lsn;
    assert_slice(read_feed(t, options), slice_from_cstr(expected));
}

static void put_all(TestPartition *t, ItemOp op, const char *ids)
{
    for (const char *id = ids; *id != '\0'; id++)
        assert_status(run_document(t, op, arena_format(&t->arena, "{'id':'%c','pk':'p'}", *id).ptr),
                      STATUS_OK);
}

static void set_retention(TestPartition *t, uint64_t retention_s)
{
    test_set_schema(
        t, (TestSchema){
               .kind = PARTITION_HASH_V2, .paths = "/pk", .ttl_s = -1, .retention_s = retention_s});
}

static void an_item_is_in_the_feed_once_at_its_newest_change(TestPartition *t)
{
    expect_latest(t, 0, "|1");
    put_all(t, ITEM_CREATE, "abc");
    expect_latest(t, 0, "=a2 =b3 =c4 |4");
    put_all(t, ITEM_UPSERT, "ad");
    expect_latest(t, 0, "=b3 =c4 =a5 =d6 |6");
    assert_status(run_id(t, ITEM_DELETE, "p", "c"), STATUS_OK);
    expect_latest(t, 0, "=b3 =a5 =d6 |7");
    expect_latest(t, 3, "=a5 =d6 |7");
    expect_latest(t, 6, "|7");
    expect_latest(t, 7, "|7");
    expect_latest(t, 700, "|7"); /* of another container, perhaps */
    test_reopen(t);
    expect_latest(t, 0, "=b3 =a5 =d6 |7");
    check_space(t);
}

/* What fails has no place in the log (I3). */
static void a_transaction_has_one_lsn_and_its_changes_come_in_order(TestPartition *t)
{
    put_all(t, ITEM_CREATE, "m");
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'z','pk':'p'}");
    (void)add_document(&w, ITEM_UPSERT, "{'id':'m','pk':'p','n':1}");
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p'}");
    (void)add_document(&w, ITEM_UPSERT, "{'id':'z','pk':'p','n':1}");
    test_run(t, &w);
    expect_latest(t, 2, "=m3 =a3 =z3 |3");
    AUTO(test_write_done) TestWrite failed;
    test_write_init(&failed, t, WRITE_ATOMIC);
    (void)add_document(&failed, ITEM_UPSERT, "{'id':'m','pk':'p','n':2}");
    (void)add_document(&failed, ITEM_CREATE, "{'id':'a','pk':'p'}");
    test_run(t, &failed);
    assert_status(failed.items[1].status, STATUS_CONFLICT);
    expect_latest(t, 2, "=m3 =a3 =z3 |3");
    check_space(t);
}

static void a_renamed_item_is_in_the_feed_under_its_new_name(TestPartition *t)
{
    put_all(t, ITEM_CREATE, "ab");
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_replace(&w, "a", "{'id':'x','pk':'p'}");
    test_run(t, &w);
    expect_latest(t, 0, "=b3 =x4 |4");
    check_space(t);
}

static void a_feed_is_of_a_range_and_of_a_time(TestPartition *t)
{
    Epk of_p;
    Epk of_q;
    make_epk(&t->arena, t->schema, "p", &of_p);
    make_epk(&t->arena, t->schema, "q", &of_q);
    put_all(t, ITEM_CREATE, "a");
    test_advance_s(t, 10);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'q'}"), STATUS_OK);
    test_advance_s(t, 10);
    put_all(t, ITEM_CREATE, "c");
    FeedOptions options = LATEST;
    bool is_less = slice_compare(epk_slice(&of_p), epk_slice(&of_q)) < 0;
    Slice bound = is_less ? epk_slice(&of_q) : epk_slice(&of_p);
    options.epk_to = bound;
    assert_slice(read_feed(t, options), slice_from_cstr(is_less ? "=a2 =c4 |4" : "=b3 |4"));
    options = LATEST;
    options.epk_from = bound;
    assert_slice(read_feed(t, options), slice_from_cstr(is_less ? "=b3 |4" : "=a2 =c4 |4"));
    static const struct {
        int64_t s; /* since the first */
        const char *expected;
    } rows[] = {{-1, "=a2 =b3 =c4 |4"}, {0, "=b3 =c4 |4"}, {9, "=b3 =c4 |4"},
                {10, "=c4 |4"},         {20, "|4"},        {900, "|4"}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        options = LATEST;
        options.since_s = TEST_BEGIN_S + rows[i].s;
        assert_slice(read_feed(t, options), slice_from_cstr(rows[i].expected));
    }
}

/* The time is searched for: all positions of it, among gaps that deletes have left. */
static void any_time_is_found(TestPartition *t)
{
    enum { COUNT = 40 };
    for (int i = 0; i < COUNT; i++) {
        const char *row = arena_format(&t->arena, "{'id':'%d','pk':'p'}", i).ptr;
        assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
        test_advance_s(t, 2);
    }
    for (int i = 0; i < COUNT; i += 3)
        assert_status(run_id(t, ITEM_DELETE, "p", arena_format(&t->arena, "%d", i).ptr), STATUS_OK);
    for (int since = -1; since <= 2 * COUNT; since++) {
        FeedOptions options = LATEST;
        options.since_s = TEST_BEGIN_S + since;
        Slice text = read_feed(t, options);
        size_t found = 0;
        for (size_t at = 0; at < text.len; at++)
            found += text.ptr[at] == '=' ? 1 : 0;
        size_t expected = 0;
        for (int i = 0; i < COUNT; i++)
            expected += i % 3 != 0 && 2 * i > since ? 1 : 0;
        assert_int_equal(found, expected);
    }
}

static void what_is_gone_is_not_in_the_feed(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','ttl':5}"), STATUS_OK);
    put_all(t, ITEM_CREATE, "b");
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'q'}"), STATUS_OK);
    test_advance_s(t, 5);
    expect_latest(t, 0, "=b3 =c4 |4"); /* nothing has removed it yet */
    test_maintain(t);
    expect_latest(t, 0, "=b3 =c4 |5");
    assert_status(run_purge(t, "q"), STATUS_OK);
    test_settle(t);
    expect_latest(t, 0, "=b3 |7"); /* the purge, and the delete */
    check_space(t);
}

/* The budget ends a feed between two transactions, and the feed says how far it came. */
static void a_budget_never_cuts_a_transaction(TestPartition *t)
{
    put_all(t, ITEM_CREATE, "a");
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    for (int i = 0; i < 5; i++)
        (void)add_document(&w, ITEM_CREATE, arena_format(&w.arena, "{'id':'%d','pk':'p'}", i).ptr);
    test_run(t, &w);
    put_all(t, ITEM_CREATE, "b");
    static const struct {
        uint64_t entries;
        const char *expected;
    } rows[] = {{0, "|0"},
                {1, "=a2 |2"},
                {2, "=a2 =03 =13 =23 =33 =43 |3"},
                {6, "=a2 =03 =13 =23 =33 =43 |3"},
                {7, "=a2 =03 =13 =23 =33 =43 =b4 |4"}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ScanBudget budget = {.entries = rows[i].entries};
        FeedOptions options = LATEST;
        options.budget = &budget;
        assert_slice(read_feed(t, options), slice_from_cstr(rows[i].expected));
    }
}

static void all_versions_are_kept_if_they_are_asked_for(TestPartition *t)
{
    set_retention(t, RETENTION_S);
    put_all(t, ITEM_CREATE, "ab");
    put_all(t, ITEM_UPSERT, "ac");
    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_OK);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'d','pk':'p','ttl':5}"), STATUS_OK);
    expect_versions(t, 1, "+a2 +b3 =a4 +c5 -a6 +d7 |7");
    expect_latest(t, 0, "=b3 =c5 =d7 |7");
    test_advance_s(t, 5);
    test_maintain(t);
    expect_versions(t, 4, "+c5 -a6 +d7 ~d8 |8");
    /* A write over what has expired is a delete and a create, in one transaction. */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'d','pk':'p','ttl':5}"), STATUS_OK);
    test_advance_s(t, 5);
    put_all(t, ITEM_CREATE, "d");
    expect_versions(t, 8, "+d9 ~d10 +d10 |10");
    test_reopen(t);
    expect_versions(t, 4, "+c5 -a6 +d7 ~d8 +d9 ~d10 +d10 |10");
    check_space(t);
}

static void each_change_of_a_batch_is_a_version(TestPartition *t)
{
    set_retention(t, RETENTION_S);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'x','pk':'p'}");
    (void)add_document(&w, ITEM_UPSERT, "{'id':'x','pk':'p','n':1}");
    (void)add_id(&w, ITEM_DELETE, "p", "x");
    (void)add_document(&w, ITEM_CREATE, "{'id':'x','pk':'p','n':2}");
    test_run(t, &w);
    expect_versions(t, 1, "+x2 =x2 -x2 +x2 |2");
    expect_latest(t, 0, "=x2 |2");
    check_space(t);
}

/* What a delete says: which version it has deleted, and of which key. */
static void a_delete_has_what_was_deleted(TestPartition *t)
{
    set_retention(t, RETENTION_S);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':7}"), STATUS_OK);
    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_OK);
    AUTO(change_feed_close) ChangeFeed *feed = NULL;
    FeedOptions options = VERSIONS;
    options.after_lsn = 2;
    assert_ok(change_feed_open(t->partition, t->schema, &options, &feed, err));
    ItemChange change;
    bool found = false;
    assert_ok(change_feed_next(feed, &change, &found, err));
    assert_true(found);
    assert_int_equal(change.kind, CHANGE_DELETE);
    assert_int_equal(change.previous_lsn, 2);
    assert_true(change.has_item);
    assert_int_equal(json_number(json_get(change.item.document, SLICE("n"))), 7);
    assert_slice(json_string(json_get(change.key, SLICE("pk"))), SLICE("p"));
}

/* Of deletes in one transaction only some megabytes are kept. */
static void deletes_of_much_are_there_without_what_was_deleted(TestPartition *t)
{
    enum { COUNT = 12, BYTES = 1900000 };
    set_retention(t, RETENTION_S);
    char *text = arena_alloc(&t->arena, BYTES);
    memset(text, 'x', BYTES);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    for (int i = 0; i < COUNT; i++) {
        const char *id = arena_format(&t->arena, "%d", i).ptr;
        const char *row =
            arena_format(&t->arena, "{'id':'%s','pk':'p','t':'%.*s'}", id, BYTES, text).ptr;
        assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
        (void)add_id(&w, ITEM_DELETE, "p", id);
    }
    test_run(t, &w);
    AUTO(change_feed_close) ChangeFeed *feed = NULL;
    FeedOptions options = VERSIONS;
    options.after_lsn = 1 + COUNT;
    assert_ok(change_feed_open(t->partition, t->schema, &options, &feed, err));
    size_t deletes = 0;
    size_t images = 0;
    for (bool found = true; found;) {
        ItemChange change = {0};
        assert_ok(change_feed_next(feed, &change, &found, err));
        deletes += found ? 1 : 0;
        images += found && change.has_item ? 1 : 0;
    }
    assert_int_equal(deletes, COUNT);
    assert_int_equal(images, 8); /* 16 MB */
    check_space(t);
}

static void history_goes_after_its_time(TestPartition *t)
{
    set_retention(t, RETENTION_S);
    put_all(t, ITEM_CREATE, "ab");
    test_advance_s(t, RETENTION_S / 2);
    put_all(t, ITEM_UPSERT, "a");
    test_advance_s(t, RETENTION_S / 2);
    test_maintain(t);
    expect_versions(t, 3, "=a4 |4");
    expect_latest(t, 0, "=b3 =a4 |4"); /* which is not history */
    assert_int_equal(count_keys(t, KEY_HISTORY), 1);
    FeedOptions options = VERSIONS;
    options.after_lsn = 2;
    ChangeFeed *feed = NULL;
    Error err;
    assert_status(change_feed_open(t->partition, t->schema, &options, &feed, &err),
                  STATUS_BAD_REQUEST);
    assert_non_null(
        strstr(err.message, "You must read the change feed from within the retention period."));
    test_reopen(t);
    expect_versions(t, 3, "=a4 |4");
    set_retention(t, 0);
    test_maintain(t);
    test_settle(t);
    assert_int_equal(count_keys(t, KEY_HISTORY), 0);
    check_space(t);
}

/* Without a policy there is no history, so one that begins later does not reach back. */
static void history_begins_with_its_policy(TestPartition *t)
{
    put_all(t, ITEM_CREATE, "ab");
    assert_int_equal(count_keys(t, KEY_HISTORY), 0);
    set_retention(t, RETENTION_S);
    FeedOptions options = VERSIONS;
    options.after_lsn = 2;
    ChangeFeed *feed = NULL;
    Error err;
    assert_status(change_feed_open(t->partition, t->schema, &options, &feed, &err),
                  STATUS_BAD_REQUEST);
    expect_versions(t, 3, "|3");
    put_all(t, ITEM_UPSERT, "a");
    expect_versions(t, 3, "=a4 |4");
}

/* As a partition was before there was a log: the next opening makes it (I23). */
static void an_older_partition_gets_its_log(TestPartition *t)
{
    put_all(t, ITEM_CREATE, "abc");
    put_all(t, ITEM_UPSERT, "a");
    t->partition->has_log = false;
    put_all(t, ITEM_UPSERT, "b");
    StoreTxn *txn = store_txn_begin(t->store);
    Key key;
    key_change(&key, KEY_LATEST, (ChangePlace){4, 0, item_number(TEST_PARTITION, 3)});
    store_txn_delete(txn, TEST_SPACE, key_slice(&key));
    assert_ok(store_txn_commit_wait(txn, err));
    test_reopen(t);
    assert_true(t->partition->has_log);
    expect_latest(t, 0, "=c4 =a5 =b6 |6");
    check_space(t);
    test_reopen(t);
    assert_true(t->partition->has_log);
}

static void feeds_are_refused_without_a_log(TestPartition *t)
{
    t->partition->has_log = false;
    ChangeFeed *feed = NULL;
    Error err;
    assert_status(change_feed_open(t->partition, t->schema, &LATEST, &feed, &err),
                  STATUS_UNAVAILABLE);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(an_item_is_in_the_feed_once_at_its_newest_change),
        ENGINE_TEST(a_transaction_has_one_lsn_and_its_changes_come_in_order),
        ENGINE_TEST(a_renamed_item_is_in_the_feed_under_its_new_name),
        ENGINE_TEST(a_feed_is_of_a_range_and_of_a_time),
        ENGINE_TEST(any_time_is_found),
        ENGINE_TEST(what_is_gone_is_not_in_the_feed, .ttl_s = -1),
        ENGINE_TEST(a_budget_never_cuts_a_transaction),
        ENGINE_TEST(all_versions_are_kept_if_they_are_asked_for),
        ENGINE_TEST(each_change_of_a_batch_is_a_version),
        ENGINE_TEST(a_delete_has_what_was_deleted),
        ENGINE_TEST(deletes_of_much_are_there_without_what_was_deleted),
        ENGINE_TEST(history_goes_after_its_time),
        ENGINE_TEST(history_begins_with_its_policy),
        ENGINE_TEST(an_older_partition_gets_its_log),
        ENGINE_TEST(feeds_are_refused_without_a_log),
    };
    return run_on_every_engine("change_feed", tests, ARRAY_COUNT(tests));
}
