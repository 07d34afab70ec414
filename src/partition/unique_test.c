/* unique_test.c - unique keys: which items may have which values, alone, in batches, and after the
 * holder has gone in one way or another. */
#include "partition/partition_check_testing_int.h"

static void values_are_taken_once_per_partition_key(TestPartition *t)
{
    static const struct {
        const char *row;
        Status status;
    } rows[] = {
        {"{'id':'1','pk':'p','u':1}", STATUS_OK},
        {"{'id':'2','pk':'p','u':1}", STATUS_CONFLICT},
        {"{'id':'2','pk':'p','u':1.0}", STATUS_CONFLICT},
        {"{'id':'2','pk':'q','u':1}", STATUS_OK},
        {"{'id':'3','pk':'p','u':'1'}", STATUS_OK},
        {"{'id':'4','pk':'p','u':'1','v':1}", STATUS_CONFLICT},
        {"{'id':'4','pk':'p','u':true}", STATUS_OK},
        {"{'id':'5','pk':'p','u':true}", STATUS_CONFLICT},
        {"{'id':'5','pk':'p','u':false}", STATUS_OK},
        {"{'id':'6','pk':'p','u':0}", STATUS_OK},
        {"{'id':'7','pk':'p','u':-0.0}", STATUS_CONFLICT},
        /* What is missing counts as null. */
        {"{'id':'7','pk':'p'}", STATUS_OK},
        {"{'id':'8','pk':'p','u':null}", STATUS_CONFLICT},
        {"{'id':'8','pk':'p','u':''}", STATUS_OK},
        {"{'id':'9','pk':'p','u':[1,2]}", STATUS_OK},
        {"{'id':'10','pk':'p','u':[1,2]}", STATUS_CONFLICT},
        {"{'id':'10','pk':'p','u':[1,[2]]}", STATUS_OK},
        {"{'id':'11','pk':'p','u':{'a':1}}", STATUS_OK},
        {"{'id':'12','pk':'p','u':{'a':1}}", STATUS_CONFLICT},
        {"{'id':'12','pk':'p','u':{'a':2}}", STATUS_OK},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Status status = run_document(t, ITEM_CREATE, rows[i].row);
        if (status != rows[i].status)
            fail_msg("%s: %s", rows[i].row, status_code(status));
    }
    check_space(t);
}

static void several_paths_count_together(TestPartition *t)
{
    static const struct {
        const char *row;
        Status status;
    } rows[] = {
        {"{'id':'1','pk':'p','a':'x','b':{'c':'y'},'d':1}", STATUS_OK},
        {"{'id':'2','pk':'p','a':'x','b':{'c':'y'},'d':2}", STATUS_CONFLICT},
        {"{'id':'2','pk':'p','a':'x','b':{'c':'z'},'d':1}", STATUS_CONFLICT}, /* the second key */
        {"{'id':'2','pk':'p','a':'x','b':{'c':'z'},'d':2}", STATUS_OK},
        /* Where one value ends and the next begins matters. */
        {"{'id':'3','pk':'p','a':'xy','b':{'c':''},'d':3}", STATUS_OK},
        {"{'id':'4','pk':'p','a':'','b':{'c':'xy'},'d':4}", STATUS_OK},
        {"{'id':'5','pk':'p','a':'x','d':5}", STATUS_OK},
        {"{'id':'6','pk':'p','a':'x','b':'y','d':6}", STATUS_CONFLICT}, /* no c in either */
        {"{'id':'6','pk':'p','b':{'c':'x'},'d':6}", STATUS_OK},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Status status = run_document(t, ITEM_CREATE, rows[i].row);
        if (status != rows[i].status)
            fail_msg("%s: %s", rows[i].row, status_code(status));
        check_space(t);
    }
}

static void values_move_with_the_item(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_OK);
    /* An item does not conflict with itself. */
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','u':1,'n':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','u':2}"), STATUS_CONFLICT);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'c','pk':'p','u':2}"), STATUS_CONFLICT);
    assert_status(run_document(t, ITEM_REPLACE, "{'id':'a','pk':'p','u':3}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'p','u':1}"), STATUS_OK);
    assert_status(run_id(t, ITEM_DELETE, "p", "b"), STATUS_OK);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'a','pk':'p','u':2}"), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_CONTINUE);
    (void)add_patch(&w, "p", "a", "[{'op':'set','path':'/u','value':1}]");
    (void)add_patch(&w, "p", "a", "[{'op':'set','path':'/u','value':3}]");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_CONFLICT);
    assert_status(w.items[1].status, STATUS_OK);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','u':3}");
    check_space(t);
}

static void a_batch_sees_values_taken_and_given_up_before(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_OK);
    AUTO(test_write_done) TestWrite swap, clash;
    test_write_init(&swap, t, WRITE_ATOMIC);
    (void)add_document(&swap, ITEM_REPLACE, "{'id':'a','pk':'p','u':0}");
    (void)add_document(&swap, ITEM_REPLACE, "{'id':'b','pk':'p','u':1}");
    (void)add_document(&swap, ITEM_REPLACE, "{'id':'a','pk':'p','u':2}");
    (void)add_document(&swap, ITEM_CREATE, "{'id':'c','pk':'p','u':0}");
    test_run(t, &swap);
    assert_status(swap.items[3].status, STATUS_OK);
    check_space(t);

    test_write_init(&clash, t, WRITE_ATOMIC);
    (void)add_document(&clash, ITEM_CREATE, "{'id':'d','pk':'p','u':4}");
    (void)add_id(&clash, ITEM_DELETE, "p", "c");
    (void)add_document(&clash, ITEM_CREATE, "{'id':'e','pk':'p','u':4}");
    test_run(t, &clash);
    assert_status(clash.items[2].status, STATUS_CONFLICT);
    check_space(t);
    /* Neither what the batch took nor what it gave up has changed. */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'e','pk':'p','u':0}"), STATUS_CONFLICT);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'e','pk':'p','u':4}"), STATUS_OK);
    check_space(t);
}

/* The first of two unique keys was taken before the second is found to be held (I3). */
static void a_conflict_in_the_second_key_gives_the_first_back(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'1','pk':'p','a':1,'d':1}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'2','pk':'p','a':2,'d':1}"), STATUS_CONFLICT);
    check_space(t);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'2','pk':'p','a':2,'d':2}"), STATUS_OK);
    check_space(t);
}

/* I5 */
static void an_expired_holder_gives_its_values_up(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE,
                               "{'id':'big','pk':'p','u':1,'ttl':5,'text':"
                               "'a text that is longer than the new item'}"),
                  STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_OK);
    test_advance_s(t, 4);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'p','u':1}"), STATUS_CONFLICT);
    test_advance_s(t, 1);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'c','pk':'p','u':1}");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_OK);
    /* The holder's going is no part of the new item's size. */
    assert_int_equal(w.items[0].bytes_after, w.items[0].item.bytes);
    assert_in_range(w.items[0].bytes_after, 32, 100);
    expect_scan(t, "b c");
    check_space(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 2);
}

/* I3 */
static void a_refused_write_does_not_remove_the_expired_holder(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1,'ttl':5}"), STATUS_OK);
    test_advance_s(t, 5);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, ITEM_CREATE, "{'id':'b','pk':'p','u':1}");
    (void)add_id(&w, ITEM_DELETE, "p", "none");
    test_run(t, &w);
    assert_status(w.items[0].status, STATUS_FAILED_DEPENDENCY);
    assert_int_equal(count_keys(t, KEY_ITEM), 1);
    check_space(t);
}

/* I5 */
static void a_purged_holder_gives_its_values_up(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    assert_status(run_purge(t, "p"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':1}"), STATUS_OK);
    check_space(t);
    expect_scan(t, "b");
}

static void values_survive_a_reopen(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    test_reopen(t);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':1}"), STATUS_CONFLICT);
    check_space(t);
}

static void values_that_are_too_long_are_refused(TestPartition *t)
{
    static const struct {
        size_t len;
        Status status;
    } rows[] = {
        {4096 - 2 - 16 - 5, STATUS_OK},
        {4096 - 2 - 16 - 4, STATUS_BAD_REQUEST},
        {100000, STATUS_BAD_REQUEST},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char *text = arena_zalloc(&t->arena, rows[i].len + 1);
        memset(text, 'x', rows[i].len);
        const char *row = arena_format(&t->arena, "{'id':'%zu','pk':'p','u':'%s'}", i, text).ptr;
        assert_status(run_document(t, ITEM_CREATE, row), rows[i].status);
        check_space(t);
    }
    assert_status(run_id(t, ITEM_DELETE, "p", "0"), STATUS_OK);
    check_space(t);
}

#define ONE .ttl_s = -1, .unique = {"/u"}
#define TWO .unique = {"/a /b/c", "/d"}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(values_are_taken_once_per_partition_key, ONE),
        ENGINE_TEST(several_paths_count_together, TWO),
        ENGINE_TEST(values_move_with_the_item, ONE),
        ENGINE_TEST(a_batch_sees_values_taken_and_given_up_before, ONE),
        ENGINE_TEST(a_conflict_in_the_second_key_gives_the_first_back, TWO),
        ENGINE_TEST(an_expired_holder_gives_its_values_up, ONE),
        ENGINE_TEST(a_refused_write_does_not_remove_the_expired_holder, ONE),
        ENGINE_TEST(a_purged_holder_gives_its_values_up, ONE),
        ENGINE_TEST(values_survive_a_reopen, ONE),
        ENGINE_TEST(values_that_are_too_long_are_refused, ONE),
    };
    return run_on_every_engine("unique", tests, ARRAY_COUNT(tests));
}
