/* scan_test.c - items in both orders: all of them, from any position, within any range, while
 * writes go on. */
#include "partition/partition_check_testing_int.h"

static const ScanOrder ORDERS[] = {SCAN_BY_NUMBER, SCAN_BY_EPK};

static Slice epk_bytes(TestPartition *t, const char *pk)
{
    Epk epk;
    make_epk(&t->arena, t->schema, pk, &epk);
    return arena_copy(&t->arena, epk_slice(&epk));
}

static void create(TestPartition *t, const char *row)
{
    assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
}

/* Ids "0" to "count - 1", spread over seven partition keys. */
static void create_many(TestPartition *t, int count)
{
    for (int i = 0; i < count; i++) {
        char row[64];
        (void)snprintf(row, sizeof(row), "{'id':'%d','pk':'%d'}", i, i % 7);
        create(t, row);
    }
}

static void by_number_is_the_order_of_making(TestPartition *t)
{
    create(t, "{'id':'z','pk':'1'}");
    create(t, "{'id':'a','pk':'2'}");
    create(t, "{'id':'m','pk':'1'}");
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'z','pk':'1','n':1}"), STATUS_OK);
    expect_scan(t, "z a m");
    assert_status(run_id(t, ITEM_DELETE, "1", "z"), STATUS_OK);
    create(t, "{'id':'z','pk':'1'}");
    expect_scan(t, "a m z");
}

static void by_epk_is_the_order_of_hashes_then_ids(TestPartition *t)
{
    create_many(t, 60);
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    ScanOptions options = {.order = SCAN_BY_EPK};
    assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
    Epk before = {.len = 0};
    Slice id_before = SLICE_EMPTY;
    int count = 0;
    for (;; count++) {
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        if (!found)
            break;
        Epk epk;
        epk_of_document(t->schema, item.document, &epk);
        Slice id = arena_copy(&t->arena, json_string(json_get(item.document, SLICE("id"))));
        int order = slice_compare(epk_slice(&before), epk_slice(&epk));
        assert_true(order < 0 || (order == 0 && slice_compare(id_before, id) < 0));
        before = epk;
        id_before = id;
    }
    assert_int_equal(count, 60);
    /* The end is the end. */
    Item item;
    bool found = true;
    assert_ok(partition_scan_next(scan, &item, &found, err));
    assert_false(found);
}

/* The whole of what is left, from every position of a scan. */
static void a_scan_goes_on_at_any_item(TestPartition *t)
{
    create_many(t, 23);
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
        ScanOptions options = {.order = ORDERS[o]};
        Slice rest = scan_ids(t, &options);
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
        assert_int_equal(partition_scan_position(scan).len, 0);
        for (;;) {
            Item item;
            bool found = false;
            assert_ok(partition_scan_next(scan, &item, &found, err));
            if (!found)
                break;
            ScanOptions on = {.order = ORDERS[o], .at = partition_scan_position(scan)};
            assert_slice(scan_ids(t, &on), rest);
            (void)slice_cut(&rest, ' ');
        }
        assert_false(partition_scan_is_paused(scan));
        assert_int_equal(rest.len, 0);
    }
}

/* A page, then other writes, then the next page: nothing twice, and nothing lost that was there all
 * the time (I11). */
static void pages_go_on_over_changes(TestPartition *t)
{
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
        create_many(t, 40);
        bool seen[40] = {false};
        Slice at = SLICE_EMPTY;
        for (int page = 0;; page++) {
            AUTO(partition_scan_close) PartitionScan *scan = NULL;
            ScanOptions options = {.order = ORDERS[o], .at = at};
            assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
            bool found = true;
            for (int i = 0;; i++) {
                Item item;
                assert_ok(partition_scan_next(scan, &item, &found, err));
                if (!found || i == 3)
                    break;
                uint64_t id = 0;
                assert_true(slice_to_u64(json_string(json_get(item.document, SLICE("id"))), &id));
                if (id < 40) {
                    assert_false(seen[id]);
                    seen[id] = true;
                }
            }
            at = arena_copy(&t->arena, partition_scan_position(scan));
            if (!found)
                break;
            char row[64];
            (void)snprintf(row, sizeof(row), "%d", page % 7);
            char id[16];
            (void)snprintf(id, sizeof(id), "%d", page);
            if (page < 40 && seen[page])
                assert_status(run_id(t, ITEM_DELETE, row, id), STATUS_OK);
            (void)snprintf(row, sizeof(row), "{'id':'%d','pk':'%d','n':1}", 39 - page % 5,
                           (39 - page % 5) % 7);
            assert_status(run_document(t, ITEM_UPSERT, row), STATUS_OK);
        }
        for (int i = 0; i < 40; i++)
            assert_true(seen[i]);
        for (int pk = 0; pk < 7; pk++) {
            char key[16];
            (void)snprintf(key, sizeof(key), "%d", pk);
            assert_status(run_purge(t, key), STATUS_OK);
        }
        check_space(t);
    }
}

static void a_scan_sees_one_moment(TestPartition *t)
{
    create(t, "{'id':'a','pk':'1','ttl':5}");
    create(t, "{'id':'b','pk':'1'}");
    create(t, "{'id':'c','pk':'1'}");
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        ScanOptions options = {.order = ORDERS[o]};
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        assert_status(run_document(t, ITEM_UPSERT, "{'id':'c','pk':'1','n':9}"), STATUS_OK);
        assert_status(run_id(t, ITEM_DELETE, "1", "b"), STATUS_OK);
        create(t, "{'id':'d','pk':'1'}");
        assert_ok(partition_scan_next(scan, &item, &found, err));
        assert_slice(json_string(json_get(item.document, SLICE("id"))), SLICE("b"));
        assert_ok(partition_scan_next(scan, &item, &found, err));
        assert_slice(json_print_arena(&t->arena, item.document),
                     o == 0 ? SLICE("{\"id\":\"c\",\"pk\":\"1\"}")
                            : SLICE("{\"id\":\"c\",\"pk\":\"1\",\"n\":9}"));
        assert_ok(partition_scan_next(scan, &item, &found, err));
        assert_false(found);
        assert_status(run_id(t, ITEM_DELETE, "1", "d"), STATUS_OK);
        create(t, "{'id':'b','pk':'1'}");
    }
    /* Time stands still for it, too. */
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    ScanOptions options = {.order = SCAN_BY_NUMBER};
    assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
    test_advance_s(t, 5);
    test_maintain(t);
    Item item;
    bool found = false;
    assert_ok(partition_scan_next(scan, &item, &found, err));
    assert_slice(json_string(json_get(item.document, SLICE("id"))), SLICE("a"));
    expect_item(t, "1", "a", NULL);
}

static void expired_items_are_passed_over(TestPartition *t)
{
    create(t, "{'id':'a','pk':'1','ttl':5}");
    create(t, "{'id':'b','pk':'1'}");
    create(t, "{'id':'c','pk':'1','ttl':5}");
    test_advance_s(t, 5);
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
        ScanOptions options = {.order = ORDERS[o]};
        assert_slice(scan_ids(t, &options), SLICE("b"));
    }
}

/* Both orders agree on what is within a range, whatever its bounds look like. */
static void ranges_hold_the_keys_within(TestPartition *t)
{
    create_many(t, 30);
    Slice bounds[64] = {SLICE_EMPTY, SLICE("\xFF"), SLICE("\x10"), SLICE("\x3F\xFF"),
                        SLICE("\x05")};
    size_t count = 5;
    for (int pk = 0; pk < 7; pk++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%d", pk);
        Slice epk = epk_bytes(t, key);
        bounds[count++] = epk;
        bounds[count++] = slice_first(epk, epk.len - 1);
        /* Longer than any EPK: ids stand at this place in a key. */
        static const char tails[] = {0x00, '3', (char)0xFF};
        for (size_t i = 0; i < sizeof(tails); i++) {
            char *longer = arena_alloc(&t->arena, epk.len + 1);
            memcpy(longer, epk.ptr, epk.len);
            longer[epk.len] = tails[i];
            bounds[count++] = slice_make(longer, epk.len + 1);
        }
    }
    for (size_t from = 0; from < count; from++) {
        for (size_t to = 0; to < count; to++) {
            size_t expected = 0;
            for (int i = 0; i < 30; i++) {
                char key[16];
                (void)snprintf(key, sizeof(key), "%d", i % 7);
                Slice epk = epk_bytes(t, key);
                expected += slice_compare(epk, bounds[from]) >= 0 &&
                                    (bounds[to].len == 0 || slice_compare(epk, bounds[to]) < 0)
                                ? 1
                                : 0;
            }
            for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
                ScanOptions options = {
                    .order = ORDERS[o], .epk_from = bounds[from], .epk_to = bounds[to]};
                Slice ids = scan_ids(t, &options);
                size_t found = ids.len > 0 ? 1 : 0;
                for (size_t i = 0; i < ids.len; i++)
                    found += ids.ptr[i] == ' ' ? 1 : 0;
                assert_int_equal(found, expected);
            }
        }
    }
}

static void a_scan_goes_on_within_its_range(TestPartition *t)
{
    create_many(t, 30);
    Slice epk = epk_bytes(t, "3");
    char *end = arena_alloc(&t->arena, epk.len + 1);
    memcpy(end, epk.ptr, epk.len);
    end[epk.len] = (char)0xFF;
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
        ScanOptions options = {
            .order = ORDERS[o], .epk_from = epk, .epk_to = slice_make(end, epk.len + 1)};
        assert_slice(scan_ids(t, &options), o == 0 ? SLICE("3 10 17 24") : SLICE("10 17 24 3"));
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        assert_ok(partition_scan_next(scan, &item, &found, err));
        options.at = partition_scan_position(scan);
        assert_slice(scan_ids(t, &options), o == 0 ? SLICE("10 17 24") : SLICE("17 24 3"));
    }
}

/* Positions come back from clients. */
static void strange_positions_do_no_harm(TestPartition *t)
{
    create_many(t, 5);
    char *longest = arena_zalloc(&t->arena, 10000);
    static const char firsts[] = {0, 3, (char)0xFF};
    for (size_t i = 0; i < sizeof(firsts); i++) {
        memset(longest, firsts[i], 10000);
        for (size_t len = 0; len <= SCAN_POSITION_BYTES_MAX + 3; len++) {
            for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
                ScanOptions options = {.order = ORDERS[o], .at = slice_make(longest, len)};
                bool is_one = ORDERS[o] == SCAN_BY_NUMBER
                                  ? len == 0 || len == SCAN_NUMBER_BYTES
                                  : len <= SCAN_POSITION_BYTES_MAX - SCAN_NUMBER_BYTES ||
                                        len == SCAN_POSITION_BYTES_MAX;
                if (is_one) {
                    Slice ids = scan_ids(t, &options);
                    assert_true(len > 0 && firsts[i] != 0 ? ids.len <= 9 : ids.len == 9);
                    continue;
                }
                AUTO(partition_scan_close) PartitionScan *scan = NULL;
                Error failure = {0};
                assert_status(
                    partition_scan_open(t->partition, t->schema, &options, &scan, &failure),
                    STATUS_BAD_REQUEST);
            }
        }
    }
}

static void bounds_that_are_too_long_are_refused(TestPartition *t)
{
    char *longest = arena_zalloc(&t->arena, EPK_ITEM_BYTES_MAX + 1);
    Slice right = slice_make(longest, EPK_ITEM_BYTES_MAX);
    Slice wrong = slice_make(longest, EPK_ITEM_BYTES_MAX + 1);
    ScanOptions rows[] = {{.epk_from = wrong}, {.epk_to = wrong}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        PartitionScan *scan = NULL;
        Error failure = {0};
        assert_status(partition_scan_open(t->partition, t->schema, &rows[i], &scan, &failure),
                      STATUS_BAD_REQUEST);
        assert_null(scan);
    }
    ScanOptions options = {.order = SCAN_BY_EPK, .epk_from = right, .epk_to = right};
    assert_slice(scan_ids(t, &options), SLICE(""));
}

static void ids_of_any_bytes_keep_their_place(TestPartition *t)
{
    static const char *const ids[] = {"\\u0000", "\\u0000\\u0000", "\\u0001",
                                      " ",       "\\uFFFF",        "\\uDBFF\\uDFFF"};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        char row[64];
        (void)snprintf(row, sizeof(row), "{'id':'%s','pk':'1'}", ids[i]);
        create(t, row);
    }
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        Slice epk = epk_bytes(t, "1");
        ScanOptions options = {.order = ORDERS[o], .epk_from = epk};
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
        for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
            Item item;
            bool found = false;
            assert_ok(partition_scan_next(scan, &item, &found, err));
            assert_true(found);
            assert_int_equal(item.number, item_number(TEST_PARTITION, i + 1));
        }
    }
    check_space(t);
}

/* ---- long ids ---- */

/* An id of 'len' bytes, all 'x' but the last ones, which are 'tail'. */
static const char *long_id(TestPartition *t, size_t len, const char *tail)
{
    char *id = arena_zalloc(&t->arena, len + 1);
    memset(id, 'x', len - strlen(tail));
    memcpy(id + len - strlen(tail), tail, strlen(tail) + 1);
    return id;
}

static void create_id(TestPartition *t, const char *id)
{
    create(t, arena_format(&t->arena, "{'id':'%s','pk':'1'}", id).ptr);
}

/* Walks from position to position, one item at a time, and deletes every item as soon as it has
 * been seen, when 'deletes' says so: then no position ever names an item that is there. */
static Slice walk_by_one(TestPartition *t, ScanOrder order, bool deletes)
{
    AUTO(buf_done) Buf ids;
    buf_init(&ids, 1 << 20);
    Slice at = SLICE_EMPTY;
    for (size_t i = 0;; i++) {
        assert_true(i < 1000); /* or it goes in circles */
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        ScanOptions options = {.order = order, .at = at};
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        if (!found)
            return arena_copy(&t->arena, buf_view(&ids));
        const char *id = arena_cstr(&t->arena, json_string(json_get(item.document, SLICE("id"))));
        const char *pk = arena_cstr(&t->arena, json_string(json_get(item.document, SLICE("pk"))));
        buf_format(&ids, "%s%s", ids.len > 0 ? " " : "", id);
        assert_ok(partition_scan_next(scan, &item, &found, err));
        if (!found)
            return arena_copy(&t->arena, buf_view(&ids));
        at = arena_copy(&t->arena, partition_scan_position(scan));
        assert_true(at.len <= SCAN_POSITION_BYTES_MAX);
        if (deletes)
            assert_status(run_id(t, ITEM_DELETE, pk, id), STATUS_OK);
    }
}

/* Whatever ids have in common, and whatever their lengths (I11). */
static void positions_are_short_and_lose_nothing(TestPartition *t)
{
    static const char *const tails[] = {"c", "a", "b", "bb", "a0", "", "z"};
    enum { CUT = SCAN_POSITION_BYTES_MAX - SCAN_NUMBER_BYTES, ID = CUT - EPK_HASH_BYTES };
    static const size_t lens[] = {1,       15,        ID - 20, ID - 2,  ID - 1, ID,
                                  ID + 1,  ID + 2,    CUT - 2, CUT - 1, CUT,    CUT + 1,
                                  CUT + 2, CUT + 200, 1022,    1023};
    size_t count = 0;
    create(t, "{'id':'first','pk':'2'}");
    create(t, "{'id':'other','pk':'3'}");
    for (size_t i = 0; i < ARRAY_COUNT(tails); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(lens); j++) {
            if (strlen(tails[i]) > lens[j])
                continue;
            create_id(t, long_id(t, lens[j], tails[i]));
            count++;
        }
    }
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
        ScanOptions options = {.order = ORDERS[o]};
        Slice all = scan_ids(t, &options);
        assert_slice(walk_by_one(t, ORDERS[o], false), all);
        Epk epk;
        make_epk(&t->arena, t->schema, "1", &epk);
        options.epk_from = epk_slice(&epk);
        char *end = arena_alloc(&t->arena, (size_t)epk.len + 1);
        memcpy(end, epk.bytes, epk.len);
        end[epk.len] = (char)0xFF;
        options.epk_to = slice_make(end, (size_t)epk.len + 1);
        Slice within = scan_ids(t, &options);
        size_t found = 1;
        for (size_t i = 0; i < within.len; i++)
            found += within.ptr[i] == ' ' ? 1 : 0;
        assert_int_equal(found, count);
    }
    ScanOptions options = {.order = SCAN_BY_EPK};
    Slice all = scan_ids(t, &options);
    assert_slice(walk_by_one(t, SCAN_BY_EPK, true), all);
    check_space(t);
}

/* What comes into a crowd after the position is seen, what comes before it is not (I11). */
static void a_crowd_is_in_the_order_of_making(TestPartition *t)
{
    static const char *const tails[] = {"c", "a", "b"};
    for (size_t i = 0; i < ARRAY_COUNT(tails); i++)
        create_id(t, long_id(t, 1000, tails[i]));
    create_id(t, "y");
    Slice at = SLICE_EMPTY;
    for (size_t i = 0; i < 5; i++) {
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        ScanOptions options = {.order = SCAN_BY_EPK, .at = at};
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        assert_true(found);
        assert_slice(json_string(json_get(item.document, SLICE("id"))),
                     slice_from_cstr(i < 3    ? long_id(t, 1000, tails[i])
                                     : i == 3 ? long_id(t, 1000, "A")
                                              : "y"));
        if (i == 1)
            create_id(t, long_id(t, 1000, "A"));
        if (i == 3)
            assert_status(run_id(t, ITEM_DELETE, "1", long_id(t, 1000, "a")), STATUS_OK);
        if (i == 4)
            break;
        /* The scan itself saw one moment: go there once more for the position after it. */
        AUTO(partition_scan_close) PartitionScan *again = NULL;
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &again, err));
        assert_ok(partition_scan_next(again, &item, &found, err));
        assert_ok(partition_scan_next(again, &item, &found, err));
        assert_true(found);
        at = arena_copy(&t->arena, partition_scan_position(again));
    }
}

/* ---- budgets ---- */

/* How many items scans find that read 'entries' entries each, and how many scans that takes. */
static size_t count_with_budget(TestPartition *t, ScanOptions options, uint64_t entries,
                                size_t *scans)
{
    size_t items = 0;
    Slice at = SLICE_EMPTY;
    for (*scans = 1;; ++*scans) {
        ScanBudget budget = {.entries = entries};
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        options.at = at;
        options.budget = &budget;
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
        for (;;) {
            Item item;
            bool found = false;
            assert_ok(partition_scan_next(scan, &item, &found, err));
            if (!found)
                break;
            items++;
        }
        if (!partition_scan_is_paused(scan))
            return items;
        assert_int_equal(budget.entries, 0);
        Slice next = partition_scan_position(scan);
        assert_false(slice_equal(next, at)); /* some way was made */
        at = arena_copy(&t->arena, next);
    }
}

static void a_scan_pauses_when_its_budget_is_used_up(TestPartition *t)
{
    for (int i = 0; i < 60; i++) {
        char row[64];
        (void)snprintf(row, sizeof(row), "{'id':'%d','pk':'%d','ttl':%d}", i, i % 3,
                       i % 10 == 0 ? 1000 : 5);
        create(t, row);
    }
    assert_status(run_purge(t, "1"), STATUS_OK);
    test_settle(t);
    test_advance_s(t, 5);
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
        ScanOptions options = {.order = ORDERS[o]};
        size_t scans = 0;
        assert_int_equal(count_with_budget(t, options, 7, &scans), 4);
        assert_int_equal(scans, 6); /* 40 are left of the purge, and none is looked at twice */
        assert_int_equal(count_with_budget(t, options, 1, &scans), 4);
        assert_int_equal(scans, 40);
        assert_int_equal(count_with_budget(t, options, 40, &scans), 4);
        assert_int_equal(scans, 1); /* it is not an end of the budget when there is nothing more */
    }
    create_id(t, long_id(t, 1000, "a"));
    create_id(t, long_id(t, 1000, "b"));
    ScanOptions options = {.order = SCAN_BY_EPK};
    size_t scans = 0;
    assert_int_equal(count_with_budget(t, options, 1, &scans), 6);
}

static void a_scan_pauses_when_its_time_is_over(TestPartition *t)
{
    create_many(t, 100);
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); o++) {
        ScanBudget budget = {.entries = 1000,
                             .deadline_us = clock_monotonic_us(&t->clock.clock) + 1000000};
        ScanOptions options = {.order = ORDERS[o], .budget = &budget};
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        assert_ok(partition_scan_open(t->partition, t->schema, &options, &scan, err));
        size_t items = 0;
        for (bool found = true; found; items += found ? 1 : 0) {
            Item item;
            assert_ok(partition_scan_next(scan, &item, &found, err));
            if (items == 20)
                test_advance_s(t, 1);
        }
        assert_true(partition_scan_is_paused(scan));
        assert_true(items > 20 && items < 60);
        budget = (ScanBudget){.entries = 1000};
        options.at = partition_scan_position(scan);
        size_t left = 1;
        Slice rest = scan_ids(t, &options);
        for (size_t i = 0; i < rest.len; i++)
            left += rest.ptr[i] == ' ' ? 1 : 0;
        assert_int_equal(items + left, 100);
    }
}

#define KIND(function, ...)                                                        \
    {                                                                              \
        .name = #function " " #__VA_ARGS__, .run = function, .schema = __VA_ARGS__ \
    }

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(by_number_is_the_order_of_making),
        ENGINE_TEST(by_epk_is_the_order_of_hashes_then_ids),
        ENGINE_TEST(a_scan_goes_on_at_any_item),
        ENGINE_TEST(pages_go_on_over_changes),
        ENGINE_TEST(a_scan_sees_one_moment, .ttl_s = -1),
        ENGINE_TEST(expired_items_are_passed_over, .ttl_s = -1),
        ENGINE_TEST(ranges_hold_the_keys_within),
        KIND(ranges_hold_the_keys_within, {.kind = PARTITION_HASH_V1, .paths = "/pk"}),
        KIND(ranges_hold_the_keys_within, {.kind = PARTITION_NONE, .paths = ""}),
        KIND(by_epk_is_the_order_of_hashes_then_ids, {.kind = PARTITION_HASH_V1, .paths = "/pk"}),
        KIND(by_epk_is_the_order_of_hashes_then_ids,
             {.kind = PARTITION_MULTI_HASH, .paths = "/pk /id"}),
        ENGINE_TEST(a_scan_goes_on_within_its_range),
        ENGINE_TEST(strange_positions_do_no_harm),
        ENGINE_TEST(bounds_that_are_too_long_are_refused),
        ENGINE_TEST(ids_of_any_bytes_keep_their_place),
        ENGINE_TEST(positions_are_short_and_lose_nothing),
        KIND(positions_are_short_and_lose_nothing, {.kind = PARTITION_HASH_V1, .paths = "/pk"}),
        ENGINE_TEST(a_crowd_is_in_the_order_of_making),
        ENGINE_TEST(a_scan_pauses_when_its_budget_is_used_up, .ttl_s = -1),
        ENGINE_TEST(a_scan_pauses_when_its_time_is_over),
    };
    return run_on_every_engine("scan", tests, ARRAY_COUNT(tests));
}
