/* view_test.c - what a view sees is of one moment, wherever the items come from. */
#include "partition/partition_index_testing_int.h"

/* The number of the item with this id. */
static uint64_t number_of(TestPartition *t, const char *pk, const char *id)
{
    Item item;
    assert_true(test_get(t, pk, id, &item));
    return item.number;
}

/* 'row' is the document that the view has under the number; NULL if it has none. */
static void expect_fetch(TestPartition *t, PartitionView *view, uint64_t number, const char *row)
{
    Item item;
    bool found = false;
    assert_ok(partition_view_fetch(view, number, SLICE_EMPTY, SLICE_EMPTY, &item, &found, err));
    assert_int_equal(found, row != NULL);
    if (found)
        assert_slice(json_print_arena(&t->arena, item.document),
                     json_print_arena(&t->arena, row_json(&t->arena, row)));
}

static void an_empty_partition_has_an_empty_view(TestPartition *t)
{
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    assert_int_equal(partition_view_lsn(view), partition_lsn(t->partition));
    assert_int_equal(partition_view_items(view), 0);
    assert_slice(view_ids(t, view, "", NULL), SLICE(""));
    expect_fetch(t, view, item_number(TEST_PARTITION, 1), NULL);
    NumberSet gone;
    bool complete = false;
    assert_ok(partition_view_list_gone(view, &t->arena, &gone, &complete, err));
    assert_true(complete);
    assert_int_equal(gone.count, 0);
}

/* I14 */
static void a_view_is_of_its_moment(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','n':1}"), STATUS_OK);
    uint64_t a = number_of(t, "p", "a");
    uint64_t b = number_of(t, "p", "b");
    for (int round = 0; round < 2; round++) { /* the second time with the cache filled */
        AUTO(partition_view_close) PartitionView *view = test_view(t);
        uint64_t lsn = partition_lsn(t->partition);
        assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','n':2}"), STATUS_OK);
        assert_status(run_id(t, ITEM_DELETE, "p", "b"), STATUS_OK);
        assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','n':3}"), STATUS_OK);
        /* A newer view fills the cache with what this one must not see. */
        expect_ids(t, "/n", "2", "a");
        expect_ids(t, "/n", "3", "b");
        expect_fetch(t, view, a, "{'id':'a','pk':'p','n':1}");
        expect_fetch(t, view, b, "{'id':'b','pk':'p','n':1}");
        expect_fetch(t, view, number_of(t, "p", "b"), NULL);
        assert_slice(view_ids(t, view, "/n", "1"), SLICE("a b"));
        assert_int_equal(partition_view_lsn(view), lsn);
        assert_int_equal(partition_view_items(view), 2);

        assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
        assert_status(run_document(t, ITEM_REPLACE, "{'id':'b','pk':'p','n':1}"), STATUS_OK);
        b = number_of(t, "p", "b");
        expect_ids(t, "/n", "1", "a b");
    }
}

/* I14 */
static void an_item_that_gets_another_id_is_found_in_its_place_of_then_and_now(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    uint64_t number = number_of(t, "p", "a");
    AUTO(partition_view_close) PartitionView *before = test_view(t);
    expect_fetch(t, before, number, "{'id':'a','pk':'p','n':1}");
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_replace(&w, "a", "{'id':'b','pk':'p','n':2}");
    test_run(t, &w);
    assert_int_equal(number_of(t, "p", "b"), number);
    AUTO(partition_view_close) PartitionView *after = test_view(t);
    for (int round = 0; round < 2;
         round++) { /* the place may have been put into the cache by either round */
        expect_fetch(t, after, number, "{'id':'b','pk':'p','n':2}");
        expect_fetch(t, before, number, "{'id':'a','pk':'p','n':1}");
    }
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':3}"), STATUS_OK);
    AUTO(partition_view_close) PartitionView *last = test_view(t);
    expect_fetch(t, before, number, "{'id':'a','pk':'p','n':1}");
    expect_fetch(t, last, number, "{'id':'b','pk':'p','n':2}");
    expect_fetch(t, last, number_of(t, "p", "a"), "{'id':'a','pk':'p','n':3}");
}

static void what_was_fetched_is_in_the_cache(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    uint64_t a = number_of(t, "p", "a");
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    size_t before = item_cache_bytes(t->host.cache);
    partition_view_fill_cache(view, false);
    expect_fetch(t, view, a, "{'id':'a','pk':'p','n':1}");
    assert_int_equal(item_cache_bytes(t->host.cache), before);
    partition_view_fill_cache(view, true);
    expect_fetch(t, view, a, "{'id':'a','pk':'p','n':1}");
    assert_true(item_cache_bytes(t->host.cache) > before);
    /* From now on the store is not asked. */
    memory_store_fail_gets(t->store, 1, STATUS_IO);
    expect_fetch(t, view, a, "{'id':'a','pk':'p','n':1}");
    partition_view_fill_cache(view, false);
    expect_fetch(t, view, a, "{'id':'a','pk':'p','n':1}");
    memory_store_fail_gets(t->store, 0, STATUS_IO);

    /* Every change is forgotten. */
    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_OK);
    AUTO(partition_view_close) PartitionView *later = test_view(t);
    expect_fetch(t, later, a, NULL);
    expect_fetch(t, view, a, "{'id':'a','pk':'p','n':1}");
}

/* A group is visible in the store a moment before the cache has forgotten what it changed (I14). */
static void between_commit_and_forgetting_the_cache_is_not_used(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    expect_ids(t, "/n", "1", "a");
    uint64_t a = number_of(t, "p", "a");
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','n':2}"), STATUS_OK);
    expect_ids(t, "/n", "2", "a"); /* in the cache */
    uint64_t lsn = partition_lsn(t->partition);
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','n':3}"), STATUS_OK);
    /* As if the last group had not been published yet, and not forgotten. */
    Epk epk;
    make_epk(&t->arena, t->schema, "p", &epk);
    Key key;
    key_item(&key, epk_slice(&epk), SLICE("a"));
    uint64_t hash = item_cache_hash(t->host.cache, TEST_SPACE, key_slice(&key));
    StoreValue value = {0};
    uint32_t ticket = 0;
    Item stale;
    assert_true(test_get(t, "p", "a", &stale));
    stale.lsn = lsn;
    stale.document = row_json(&t->arena, "{'id':'a','pk':'p','n':2}");
    item_cache_forget(t->host.cache, hash);
    assert_false(item_cache_get(t->host.cache, hash, TEST_SPACE, key_slice(&key), &value, &ticket));
    item_cache_put(t->host.cache, hash, TEST_SPACE, key_slice(&key), item_encode(&t->arena, &stale),
                   ticket);
    uint64_t published = partition_lsn(t->partition);
    atomic_store(&t->partition->inbox.is_active, true);
    atomic_store(&t->partition->published.lsn, lsn);
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    assert_int_equal(partition_view_lsn(view), published);
    expect_fetch(t, view, a, "{'id':'a','pk':'p','n':3}");
    item_cache_forget(t->host.cache, hash);
    atomic_store(&t->partition->published.lsn, published);
    atomic_store(&t->partition->inbox.is_active, false);
    expect_fetch(t, view, a, "{'id':'a','pk':'p','n':3}");
}

static void only_the_range_asked_for_is_fetched(TestPartition *t)
{
    static const char *const keys[] = {"p", "q", "r", "s"};
    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        char row[64];
        (void)snprintf(row, sizeof(row), "{'id':'a','pk':'%s'}", keys[i]);
        assert_status(run_document(t, ITEM_CREATE, row), STATUS_OK);
    }
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    for (int round = 0; round < 2; round++) {
        for (size_t from = 0; from < ARRAY_COUNT(keys); from++) {
            Epk first;
            make_epk(&t->arena, t->schema, keys[from], &first);
            for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
                Epk own;
                make_epk(&t->arena, t->schema, keys[i], &own);
                uint64_t number = number_of(t, keys[i], "a");
                int order = slice_compare(epk_slice(&own), epk_slice(&first));
                Item item;
                bool found = false;
                assert_ok(partition_view_fetch(view, number, epk_slice(&first), SLICE_EMPTY, &item,
                                               &found, err));
                assert_int_equal(found, order >= 0);
                assert_ok(partition_view_fetch(view, number, SLICE_EMPTY, epk_slice(&first), &item,
                                               &found, err));
                assert_int_equal(found, order < 0);
            }
        }
    }
}

static void what_is_gone_is_listed_and_not_fetched(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','ttl':5}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','ttl':50}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'q'}"), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    add_document(&w, ITEM_CREATE, "{'id':'d','pk':'p','ttl':5}")->directive = INDEX_EXCLUDE;
    test_run(t, &w);
    uint64_t a = number_of(t, "p", "a");
    uint64_t c = number_of(t, "q", "c");
    test_advance_s(t, 5);
    atomic_store(&t->host.is_closing, true); /* nothing is removed */
    assert_status(run_purge(t, "q"), STATUS_OK);
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    NumberSet gone;
    bool complete = false;
    assert_ok(partition_view_list_gone(view, &t->arena, &gone, &complete, err));
    assert_true(complete);
    assert_int_equal(gone.count, 2);
    assert_true(set_has(&gone, a));
    assert_true(set_has(&gone, c));
    expect_fetch(t, view, a, NULL);
    expect_fetch(t, view, c, NULL);
    assert_slice(view_ids(t, view, "", NULL), SLICE("? b ?"));
    atomic_store(&t->host.is_closing, false);
    test_maintain(t);
    AUTO(partition_view_close) PartitionView *later = test_view(t);
    assert_ok(partition_view_list_gone(later, &t->arena, &gone, &complete, err));
    assert_int_equal(gone.count, 0);
    assert_slice(view_ids(t, later, "", NULL), SLICE("b"));
}

static void too_much_that_is_gone_is_not_listed(TestPartition *t)
{
    for (int i = 0; i < 2016; i += TEST_OPS_MAX) {
        AUTO(test_write_done) TestWrite w;
        test_write_init(&w, t, WRITE_ATOMIC);
        for (int k = i; k < i + TEST_OPS_MAX; k++) {
            char row[64];
            (void)snprintf(row, sizeof(row), "{'id':'%d','pk':'p','ttl':1}", k);
            (void)add_document(&w, ITEM_CREATE, row);
        }
        test_run(t, &w);
    }
    test_advance_s(t, 1);
    NumberSet gone;
    bool complete = true;
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    assert_ok(partition_view_list_gone(view, &t->arena, &gone, &complete, err));
    assert_false(complete);
}

/* After a change of the default there are no notes until the next maintenance. */
static void without_notes_nothing_is_known_to_be_gone(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    test_set_schema(t, (TestSchema){.kind = PARTITION_HASH_V2, .paths = "/pk", .ttl_s = 3});
    test_advance_s(t, 4);
    NumberSet gone;
    bool complete = true;
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    assert_ok(partition_view_list_gone(view, &t->arena, &gone, &complete, err));
    assert_false(complete);
}

static void a_scan_of_a_view_leaves_unindexed_items_out(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    add_document(&w, ITEM_CREATE, "{'id':'b','pk':'p'}")->directive = INDEX_EXCLUDE;
    test_run(t, &w);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'q'}"), STATUS_OK);
    expect_scan(t, "a b c");
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_OK);
    for (ScanOrder order = SCAN_BY_NUMBER; order <= SCAN_BY_EPK; order++) {
        ScanOptions options = {.order = order};
        AUTO(partition_scan_close) PartitionScan *scan = NULL;
        assert_ok(partition_view_scan(view, &options, &scan, err));
        unsigned seen = 0;
        for (;;) {
            Item item;
            bool found = false;
            assert_ok(partition_scan_next(scan, &item, &found, err));
            if (!found)
                break;
            seen |= 1U << (json_string(json_get(item.document, SLICE("id"))).ptr[0] - 'a');
        }
        assert_int_equal(seen, 1 | 4);
    }
}

static void indexes_of_other_kinds_are_known(TestPartition *t)
{
    size_t count = 0;
    const CompositeIndex *composites = index_policy_composites(t->schema->index, &count);
    assert_int_equal(count, 1);
    const SpatialIndex *spatials = index_policy_spatials(t->schema->index, &count);
    assert_int_equal(count, 1);
    PartitionSchema *first = schema_ref(t->schema); /* the two live in it */
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    assert_true(partition_view_has_composite(view, composites));
    const SpatialIndex *found = partition_view_spatial(view, spatials->steps, spatials->step_count);
    assert_non_null(found);
    assert_int_equal(found->types, spatials->types);
    CompositePart parts[2] = {composites->parts[0], composites->parts[1]};
    CompositeIndex other = *composites;
    other.parts = parts;
    assert_true(partition_view_has_composite(view, &other));
    parts[1].is_descending = !parts[1].is_descending;
    assert_false(partition_view_has_composite(view, &other));
    set_policy(t, POLICY_ALL);
    AUTO(partition_view_close) PartitionView *later = test_view(t);
    assert_false(partition_view_has_composite(later, composites));
    assert_null(partition_view_spatial(later, spatials->steps, spatials->step_count));
    schema_unref(first);
}

/* All names, with a space before each; '*is_complete' as the view says. */
static Slice names_of(TestPartition *t, bool *is_complete)
{
    AUTO(partition_view_close) PartitionView *view = test_view(t);
    AUTO(buf_done) Buf text;
    IndexBudget budget = {.keys_left = 1000, .bytes_left = (size_t)1 << 20};
    IndexNames *names = index_names_new(&t->arena);
    assert_ok(partition_view_names(view, &budget, names, is_complete, err));
    buf_init(&text, 1 << 16);
    for (size_t position = 0; buf_byte(&text, ' '), index_names_next(names, &position, &text);)
        ;
    return arena_copy(&t->arena, buf_view(&text));
}

static void a_view_tells_the_names_that_its_index_has(TestPartition *t)
{
    bool is_complete = false;
    assert_slice(names_of(t, &is_complete), SLICE(" "));
    assert_true(is_complete);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1,'u':2}"), STATUS_OK);
    assert_slice(names_of(t, &is_complete), SLICE(" /_ts /id /pk /n "));
    assert_true(is_complete);
    /* A name goes with its last item. */
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','m':1}"), STATUS_OK);
    assert_slice(names_of(t, &is_complete), SLICE(" /_ts /id /pk "));
    assert_true(is_complete);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_view_tells_the_names_that_its_index_has, .index = POLICY_N),
        ENGINE_TEST(an_empty_partition_has_an_empty_view, .ttl_s = 5),
        ENGINE_TEST(a_view_is_of_its_moment),
        ENGINE_TEST(only_the_range_asked_for_is_fetched),
        ENGINE_TEST(what_is_gone_is_listed_and_not_fetched, .ttl_s = -1),
        ENGINE_TEST(too_much_that_is_gone_is_not_listed, .ttl_s = -1),
        ENGINE_TEST(without_notes_nothing_is_known_to_be_gone),
        ENGINE_TEST(a_scan_of_a_view_leaves_unindexed_items_out),
        ENGINE_TEST(indexes_of_other_kinds_are_known,
                    .index =
                        "{'includedPaths':[{'path':'/*'}],'excludedPaths':[],"
                        "'compositeIndexes':[[{'path':'/a'},{'path':'/b','order':'descending'}]],"
                        "'spatialIndexes':[{'path':'/place/?','types':['Point']}]}"),
    };
    static const EngineTest on_memory[] = {
        ENGINE_TEST(an_item_that_gets_another_id_is_found_in_its_place_of_then_and_now),
        ENGINE_TEST(what_was_fetched_is_in_the_cache),
        ENGINE_TEST(between_commit_and_forgetting_the_cache_is_not_used),
    };
    return run_on_every_engine("view", tests, ARRAY_COUNT(tests)) +
           run_on_memory("view and cache", on_memory, ARRAY_COUNT(on_memory));
}
