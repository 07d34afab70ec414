/* partition_index_test.c - whatever is done to items, the index has exactly their terms. */
#include "partition/partition_index_testing_int.h"

static ItemWrite run_directed(TestPartition *t, ItemOp op, const char *row,
                              IndexDirective directive)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    add_document(&w, op, row)->directive = directive;
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_OK);
    return w.items[0];
}

static void run_patch(TestPartition *t, const char *pk, const char *id, const char *row,
                      IndexDirective directive)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    add_patch(&w, pk, id, row)->directive = directive;
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_OK);
}

/* I12 */
static void every_way_to_change_an_item_changes_its_terms(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'b','pk':'p','n':1,'tags':['x','y']}"),
                  STATUS_OK);
    expect_ids(t, "", NULL, "a b");
    expect_ids(t, "/n", "1", "a b");
    expect_ids(t, "/tags/[]", "'y'", "b");
    check_space(t);

    assert_status(run_document(t, ITEM_UPSERT, "{'id':'a','pk':'p','n':2}"), STATUS_OK);
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'b','pk':'p','n':2,'tags':['y','z']}"),
                  STATUS_OK);
    expect_ids(t, "/n", "1", "");
    expect_ids(t, "/n", "2", "a b");
    expect_ids(t, "/tags/[]", "'x'", "");
    expect_ids(t, "/tags/[]", "'z'", "b");
    check_space(t);

    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_replace(&w, "b", "{'id':'c','pk':'p','n':3}");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_OK);
    expect_ids(t, "/id", "'b'", "");
    expect_ids(t, "/id", "'c'", "c");
    expect_ids(t, "/n", "3", "c");

    run_patch(t, "p", "c", "[{'op':'incr','path':'/n','value':4}]", INDEX_DEFAULT);
    expect_ids(t, "/n", "7", "c");
    check_space(t);

    assert_status(run_id(t, ITEM_DELETE, "p", "a"), STATUS_OK);
    expect_ids(t, "", NULL, "c");
    assert_status(run_id(t, ITEM_DELETE, "p", "c"), STATUS_OK);
    expect_ids(t, "", NULL, "");
    check_space(t);
    assert_int_equal(count_keys(t, KEY_TERM), 0);
}

static void an_item_may_change_many_times_in_one_batch(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','n':1}");
    (void)add_document(&w, ITEM_REPLACE, "{'id':'a','pk':'p','n':2}");
    (void)add_document(&w, ITEM_CREATE, "{'id':'b','pk':'p','n':2}");
    (void)add_id(&w, ITEM_DELETE, "p", "a");
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','n':3}");
    (void)add_document(&w, ITEM_UPSERT, "{'id':'b','pk':'p','n':3}");
    test_run(t, &w);
    expect_ids(t, "/n", "1", "");
    expect_ids(t, "/n", "2", "");
    expect_ids(t, "/n", "3", "b a"); /* the second 'a' is another item */
    check_space(t);
}

/* I3 */
static void a_failed_operation_leaves_no_terms(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':1}"), STATUS_CONFLICT);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'c','pk':'p','u':2}");
    (void)add_document(&w, ITEM_REPLACE, "{'id':'a','pk':'p','u':3}");
    (void)add_document(&w, ITEM_REPLACE, "{'id':'none','pk':'p','u':4}");
    test_run(t, &w);
    assert_status(w.items[2].status, STATUS_NOT_FOUND);
    AUTO(test_write_done) TestWrite each;
    test_write_init(&each, t, WRITE_CONTINUE);
    (void)add_document(&each, ITEM_CREATE, "{'id':'d','pk':'p','u':1}");
    (void)add_document(&each, ITEM_CREATE, "{'id':'e','pk':'p','u':5}");
    test_run(t, &each);
    expect_ids(t, "", NULL, "a e");
    expect_ids(t, "/u", "1", "a");
    expect_ids(t, "/u", "3", "");
    check_space(t);
}

/* I1 */
static void a_failed_commit_leaves_no_terms(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'b','pk':'p','n':1}");
    memory_store_fail_commits(t->store, 1, STATUS_IO);
    test_submit(t, &w);
    assert_status(test_wait(&w), STATUS_IO);
    expect_ids(t, "/n", "1", "a");
    check_space(t);
}

/* The first group of all, with which the key of the paths is stored, is lost. */
static void a_failed_first_commit_is_as_if_it_had_never_been(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'a','pk':'p','n':1}");
    memory_store_fail_commits(t->store, 1, STATUS_IO);
    test_submit(t, &w);
    assert_status(test_wait(&w), STATUS_IO);
    test_reopen(t);
    assert_int_equal(count_keys(t, KEY_INDEX_STATE), 0);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','n':1}"), STATUS_OK);
    assert_int_equal(partition_index_progress(t->partition), 100);
    test_reopen(t);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'p','n':1}"), STATUS_OK);
    expect_ids(t, "/n", "1", "b c");
    check_space(t);
}

static void expiry_takes_terms_away(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1,'ttl':5}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','n':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'p','n':1,'ttl':5}"), STATUS_OK);
    test_advance_s(t, 6);
    expect_ids(t, "/n", "1", "? b ?");
    /* Removed on the way of another write, and by maintenance. */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'p','n':2}"), STATUS_OK);
    expect_ids(t, "/n", "1", "? b");
    test_maintain(t);
    expect_ids(t, "/n", "1", "b");
    expect_ids(t, "", NULL, "b c");
    check_space(t);
}

static void purge_takes_terms_away(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'q','n':1}"), STATUS_OK);
    assert_status(run_purge(t, "p"), STATUS_OK);
    test_settle(t);
    expect_ids(t, "/pk", "'p'", "");
    expect_ids(t, "/n", "1", "a");
    check_space(t);
}

static void a_directive_decides_for_one_item(TestPartition *t)
{
    (void)run_directed(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}", INDEX_EXCLUDE);
    (void)run_directed(t, ITEM_CREATE, "{'id':'b','pk':'p','n':1}", INDEX_INCLUDE);
    (void)run_directed(t, ITEM_CREATE, "{'id':'c','pk':'p','n':1}", INDEX_DEFAULT);
    expect_ids(t, "", NULL, "b c");
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':1}");
    run_patch(t, "p", "a", "[{'op':'set','path':'/n','value':2}]", INDEX_DEFAULT);
    expect_ids(t, "", NULL, "b c");
    check_space(t);
    test_reopen(t);
    run_patch(t, "p", "a", "[{'op':'set','path':'/n','value':3}]", INDEX_INCLUDE);
    expect_ids(t, "/n", "3", "a");
    (void)run_directed(t, ITEM_REPLACE, "{'id':'b','pk':'p','n':3}", INDEX_EXCLUDE);
    expect_ids(t, "/n", "3", "a");
    (void)run_directed(t, ITEM_REPLACE, "{'id':'b','pk':'p','n':3}", INDEX_DEFAULT);
    expect_ids(t, "/n", "3", "a b");
    (void)run_directed(t, ITEM_UPSERT, "{'id':'b','pk':'p','n':4}", INDEX_EXCLUDE);
    assert_status(run_id(t, ITEM_DELETE, "p", "b"), STATUS_OK);
    expect_ids(t, "", NULL, "a c");
    check_space(t);
}

static void without_automatic_an_item_must_ask(TestPartition *t)
{
    (void)run_directed(t, ITEM_CREATE, "{'id':'a','pk':'p'}", INDEX_DEFAULT);
    (void)run_directed(t, ITEM_CREATE, "{'id':'b','pk':'p'}", INDEX_INCLUDE);
    expect_ids(t, "", NULL, "b");
    run_patch(t, "p", "b", "[{'op':'set','path':'/n','value':2}]", INDEX_DEFAULT);
    expect_ids(t, "/n", "2", "b");
    (void)run_directed(t, ITEM_REPLACE, "{'id':'b','pk':'p'}", INDEX_DEFAULT);
    expect_ids(t, "", NULL, "");
    check_space(t);
}

/* "automatic" must be false with this mode, which is no wish to leave items out. */
static void with_mode_none_every_item_is_found(TestPartition *t)
{
    (void)run_directed(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}", INDEX_DEFAULT);
    expect_ids(t, "", NULL, "a");
    expect_ids(t, "/pk", "'p'", "a");
    expect_path(t, "/n", false);
    expect_path(t, "/pk", true);
    set_policy(t, POLICY_ALL);
    test_settle(t);
    expect_ids(t, "/n", "1", "a");
    check_space(t);
}

static void terms_are_counted(TestPartition *t)
{
    /* What is there whatever the policy says costs nothing; then the value of n. */
    uint32_t few = run_directed(t, ITEM_CREATE, "{'id':'a','pk':'p'}", INDEX_DEFAULT).terms;
    uint32_t more = run_directed(t, ITEM_CREATE, "{'id':'b','pk':'p','n':1}", INDEX_DEFAULT).terms;
    assert_int_equal(few, 0);
    assert_int_equal(more, 1);
    uint32_t same = run_directed(t, ITEM_REPLACE, "{'id':'b','pk':'p','n':1}", INDEX_DEFAULT).terms;
    assert_int_equal(same, 0);
    uint32_t value = run_directed(t, ITEM_UPSERT, "{'id':'b','pk':'p','n':2}", INDEX_DEFAULT).terms;
    assert_int_equal(value, 2);
    test_advance_s(t, 1);
    uint32_t time = run_directed(t, ITEM_UPSERT, "{'id':'b','pk':'p','n':2}", INDEX_DEFAULT).terms;
    assert_int_equal(time, 0); /* the time alone costs nothing */
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_id(&w, ITEM_DELETE, "p", "b");
    (void)add_id(&w, ITEM_READ, "p", "a");
    test_run(t, &w);
    assert_int_equal(w.items[0].terms, 1);
    assert_int_equal(w.items[1].terms, 0);
    assert_int_equal(run_directed(t, ITEM_CREATE, "{'id':'c','pk':'p'}", INDEX_EXCLUDE).terms, 0);
}

/* Whatever a composite index says of the time: only what else is in it is charged. */
static void the_time_in_a_composite_index_costs_nothing(TestPartition *t)
{
    set_policy(t, "{'includedPaths':[{'path':'/*'}],'excludedPaths':[],'compositeIndexes':[[{'path'"
                  ":'/n','order':'ascending'},{'path':'/_ts','order':'descending'}]]}");
    test_settle(t);
    assert_int_equal(run_directed(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}", INDEX_DEFAULT).terms,
                     2);
    for (int seconds = 0; seconds < 2; seconds++) {
        test_advance_s(t, seconds);
        assert_int_equal(
            run_directed(t, ITEM_UPSERT, "{'id':'a','pk':'p','n':1}", INDEX_DEFAULT).terms, 0);
        test_advance_s(t, seconds);
        assert_int_equal(
            run_directed(t, ITEM_UPSERT, "{'id':'a','pk':'p','n':2}", INDEX_DEFAULT).terms, 4);
        assert_int_equal(
            run_directed(t, ITEM_UPSERT, "{'id':'a','pk':'p','n':1}", INDEX_DEFAULT).terms, 4);
    }
    check_space(t);
}

/* More terms than one batch holds. */
static void very_large_items_are_indexed_in_parts(TestPartition *t)
{
    enum { ITEMS = 3, VALUES = 60000 };
    TestWrite *w = MEM_NEW(TestWrite);
    test_write_init(w, t, WRITE_ATOMIC);
    for (int i = 0; i < ITEMS; i++) {
        Buf row;
        buf_init(&row, 4 << 20);
        buf_format(&row, "{'id':'%d','pk':'p','a':[", i);
        for (int v = 0; v < VALUES; v++)
            buf_format(&row, "%s%d", v == 0 ? "" : ",", v * 7 + i % 2);
        buf_format(&row, "]}");
        buf_byte(&row, 0);
        (void)add_document(w, ITEM_CREATE, row.ptr);
        buf_done(&row);
    }
    test_run(t, w);
    assert_in_range(w->items[0].terms, VALUES, VALUES + 20);
    expect_ids(t, "/a/[]", "70", "0 2");
    expect_ids(t, "/a/[]", "71", "1");
    check_space(t);
    test_write_done(w);
    mem_free(w);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(every_way_to_change_an_item_changes_its_terms),
        ENGINE_TEST(an_item_may_change_many_times_in_one_batch),
        ENGINE_TEST(a_failed_operation_leaves_no_terms, .unique = {"/u"}),
        ENGINE_TEST(expiry_takes_terms_away, .ttl_s = -1),
        ENGINE_TEST(purge_takes_terms_away),
        ENGINE_TEST(a_directive_decides_for_one_item),
        ENGINE_TEST(without_automatic_an_item_must_ask, .index = POLICY_BY_HAND),
        ENGINE_TEST(with_mode_none_every_item_is_found, .index = POLICY_NONE),
        ENGINE_TEST(terms_are_counted),
        ENGINE_TEST(the_time_in_a_composite_index_costs_nothing),
        ENGINE_TEST(very_large_items_are_indexed_in_parts),
    };
    static const EngineTest faults[] = {
        ENGINE_TEST(a_failed_commit_leaves_no_terms),
        ENGINE_TEST(a_failed_first_commit_is_as_if_it_had_never_been),
    };
    return run_on_every_engine("index", tests, ARRAY_COUNT(tests)) +
           run_on_memory("index faults", faults, ARRAY_COUNT(faults));
}
