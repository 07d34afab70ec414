/* transaction_view_test.c - what a transaction reads by views and scans: own writes over what is
 * stored, in order, from any position, and the index only if there are none. */
#include "partition/transaction_testing_int.h"

enum { MANY = 30 };

static Slice join_ids(TestPartition *t, PartitionScan *scan)
{
    AUTO(buf_done) Buf ids;
    buf_init(&ids, 1 << 20);
    for (;;) {
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        if (!found)
            return arena_copy(&t->arena, buf_view(&ids));
        buf_format(&ids, "%s%.*s", ids.len > 0 ? " " : "",
                   SLICE_ARG(json_string(json_get(item.document, SLICE("id")))));
    }
}

typedef struct Range {
    Epk from;
    Epk to;
} Range;

/* That of one partition key. */
static void range_of(TestPartition *t, const char *pk, ScanOptions *options, Range *range)
{
    make_epk(&t->arena, t->schema, pk, &range->from);
    range->to = range->from;
    range->to.bytes[range->to.len - 1]++; /* none of the tests' keys ends in 0xFF */
    assert_true(range->to.bytes[range->to.len - 1] != 0);
    options->epk_from = epk_slice(&range->from);
    options->epk_to = epk_slice(&range->to);
}

static Slice view_ids(TestPartition *t, PartitionTransaction *transaction, ScanOrder order,
                      const char *pk)
{
    Range range;
    ScanOptions options = {.order = order};
    range_of(t, pk, &options, &range);
    AUTO(partition_view_close) PartitionView *view = NULL;
    assert_ok(transaction_view(transaction, STORE_READ_ANY, &view, err));
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    assert_ok(partition_view_scan(view, &options, &scan, err));
    return join_ids(t, scan);
}

/* By EPK and by number. */
static void expect_view(TestPartition *t, PartitionTransaction *transaction, const char *pk,
                        const char *by_id, const char *by_number)
{
    assert_slice(view_ids(t, transaction, SCAN_BY_EPK, pk), slice_from_cstr(by_id));
    assert_slice(view_ids(t, transaction, SCAN_BY_NUMBER, pk), slice_from_cstr(by_number));
}

static bool has_path(const PartitionView *view, const char *name)
{
    IndexStep step = {.name = slice_from_cstr(name)};
    return partition_view_has_path(view, &step, 1);
}

static void a_view_shows_own_writes(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','n':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':2}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'p','n':3}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'x','pk':'q'}"), STATUS_OK);
    PartitionTransaction *transaction = test_begin(t, "p");
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    expect_view(t, transaction, "p", "a b c", "b a c");
    AUTO(partition_view_close) PartitionView *before = NULL;
    assert_ok(transaction_view(transaction, STORE_READ_ANY, &before, err));
    assert_true(has_path(before, "n"));
    partition_view_close(TAKE(before));

    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'aa','pk':'p','n':4}"), STATUS_OK);
    assert_status(apply_id(transaction, &w, ITEM_DELETE, "p", "b"), STATUS_OK);
    assert_status(apply_row(transaction, &w, ITEM_REPLACE, "{'id':'c','pk':'p','n':5}"), STATUS_OK);
    ItemWrite *renamed = add_replace(&w, "a", "{'id':'z','pk':'p','n':6}");
    transaction_apply(transaction, renamed, &w.arena);
    assert_status(renamed->status, STATUS_OK);
    expect_view(t, transaction, "p", "aa c z", "z c aa");
    expect_view(t, transaction, "q", "x", "x");

    AUTO(partition_view_close) PartitionView *view = NULL;
    assert_ok(transaction_view(transaction, STORE_READ_ANY, &view, err));
    assert_false(has_path(view, "n"));
    Item item;
    bool found = false;
    assert_ok(partition_view_fetch(view, renamed->item.number, SLICE_EMPTY, SLICE_EMPTY, &item,
                                   &found, err));
    assert_true(found);
    assert_int_equal(json_number(json_get(item.document, SLICE("n"))), 6);
    assert_slice(etag_of(&t->arena, &item), etag_of(&t->arena, &renamed->item));
    AUTO(partition_view_close) PartitionView *shared = partition_view_share(view);
    assert_ok(partition_view_fetch(shared, w.items[0].item.number, SLICE_EMPTY, SLICE_EMPTY, &item,
                                   &found, err));
    assert_true(found);
    partition_view_close(TAKE(shared));
    partition_view_close(TAKE(view));
    /* Others see what was there. */
    expect_scan(t, "b a c x");
    test_commit(transaction);
    expect_scan(t, "z c x aa");
    check_space(t);
}

/* Items that are not indexed are for scans, not for queries. */
static void a_scan_shows_what_is_not_indexed(TestPartition *t)
{
    PartitionTransaction *transaction = test_begin(t, "p");
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    ItemWrite *hidden = add_document(&w, ITEM_CREATE, "{'id':'h','pk':'p'}");
    hidden->directive = INDEX_EXCLUDE;
    transaction_apply(transaction, hidden, &w.arena);
    assert_status(hidden->status, STATUS_OK);
    ItemWrite *patched = add_patch(&w, "p", "h", "[{'op':'add','path':'/n','value':1}]");
    transaction_apply(transaction, patched, &w.arena);
    assert_status(patched->status, STATUS_OK);
    expect_view(t, transaction, "p", "", "");
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    assert_ok(transaction_scan(transaction, &(ScanOptions){.order = SCAN_BY_EPK}, &scan, err));
    assert_slice(join_ids(t, scan), SLICE("h"));
    partition_scan_close(TAKE(scan));
    test_commit(transaction);
    Item item;
    assert_true(test_get(t, "p", "h", &item));
    assert_true(item.is_unindexed);
    check_space(t);
}

/* I11 */
static void positions_hold_over_own_writes(TestPartition *t)
{
    char row[64];
    for (int i = 0; i < MANY; i += 2) {
        (void)snprintf(row, sizeof(row), "{'id':'%02d','pk':'p'}", i);
        assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
    }
    PartitionTransaction *transaction = test_begin(t, "p");
    TestWrite writes[MANY];
    for (int i = 0; i < MANY; i++) {
        test_write_init(&writes[i], t, WRITE_ATOMIC);
        (void)snprintf(row, sizeof(row), "{'id':'%02d','pk':'p'}", i);
        if (i % 2 == 1) {
            assert_status(apply_row(transaction, &writes[i], ITEM_CREATE, row), STATUS_OK);
        } else if (i % 6 == 0) {
            row[9] = '\0'; /* {'id':'00 */
            assert_status(apply_id(transaction, &writes[i], ITEM_DELETE, "p", row + 7), STATUS_OK);
        }
    }
    static const ScanOrder orders[] = {SCAN_BY_NUMBER, SCAN_BY_EPK};
    for (size_t o = 0; o < ARRAY_COUNT(orders); o++) {
        /* One item a page, each in a scan of its own. */
        Slice all = view_ids(t, transaction, orders[o], "p");
        AUTO(buf_done) Buf paged;
        buf_init(&paged, 4096);
        Slice at = SLICE_EMPTY;
        for (bool found = true; found;) {
            ScanOptions options = {.order = orders[o], .at = at};
            AUTO(partition_scan_close) PartitionScan *scan = NULL;
            assert_ok(transaction_scan(transaction, &options, &scan, err));
            Item item;
            assert_ok(partition_scan_next(scan, &item, &found, err));
            if (!found)
                break;
            buf_format(&paged, "%s%.*s", paged.len > 0 ? " " : "",
                       SLICE_ARG(json_string(json_get(item.document, SLICE("id")))));
            assert_ok(partition_scan_next(scan, &item, &found, err));
            at = arena_copy(&t->arena, partition_scan_position(scan));
        }
        assert_slice(buf_view(&paged), all);
        assert_int_equal(all.len, 3 * (MANY - MANY / 6) - 1);
    }
    test_commit(transaction);
    for (int i = 0; i < MANY; i++)
        test_write_done(&writes[i]);
    check_space(t);
}

/* Ids that agree in their beginnings are walked by number: see scan.c. */
static void a_crowd_of_long_ids_is_walked(TestPartition *t)
{
    enum { LONG = 600 };
    char id[LONG + 2];
    memset(id, 'k', LONG);
    id[LONG + 1] = '\0';
    PartitionTransaction *transaction = NULL;
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    for (int i = 0; i < 6; i++) {
        char row[LONG + 64];
        id[LONG] = (char)('f' - i);
        (void)snprintf(row, sizeof(row), "{'id':'%s','pk':'p'}", id);
        if (i == 3)
            transaction = test_begin(t, "p");
        if (i < 3)
            assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
        else
            assert_status(apply_row(transaction, &w, ITEM_CREATE, row), STATUS_OK);
    }
    id[LONG] = 'e';
    assert_status(apply_id(transaction, &w, ITEM_DELETE, "p", id), STATUS_OK);
    Slice ids = view_ids(t, transaction, SCAN_BY_EPK, "p");
    static const char order[] = "fdcba";
    assert_int_equal(ids.len, 5 * (LONG + 2) - 1);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(ids.ptr[i * (LONG + 2) + LONG], order[i]);
    test_commit(transaction);
    check_space(t);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_view_shows_own_writes, .ttl_s = 0),
        ENGINE_TEST(a_scan_shows_what_is_not_indexed, .ttl_s = 0),
        ENGINE_TEST(positions_hold_over_own_writes, .ttl_s = 0),
        ENGINE_TEST(a_crowd_of_long_ids_is_walked, .ttl_s = 0),
    };
    return run_on_every_engine("transaction_view", tests, ARRAY_COUNT(tests));
}
