/* transaction_test.c - transactions of a logical partition: what they see, what others see of them,
 * who waits for whom, and how they end (I21, I22). */
#include "partition/transaction_testing_int.h"

/* ---- what it writes ---- */

static void a_transaction_sees_its_own_writes(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    PartitionTransaction *transaction = test_begin(t, "p");
    assert_false(transaction_has_writes(transaction));
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_OK);
    assert_status(apply_row(transaction, &w, ITEM_UPSERT, "{'id':'a','pk':'p','u':3}"), STATUS_OK);
    assert_true(transaction_has_writes(transaction));
    assert_status(apply_id(transaction, &w, ITEM_READ, "p", "b"), STATUS_OK);
    assert_status(apply_id(transaction, &w, ITEM_READ, "p", "a"), STATUS_OK);
    assert_int_equal(json_number(json_get(w.items[3].item.document, SLICE("u"))), 3);
    assert_status(apply_id(transaction, &w, ITEM_DELETE, "p", "b"), STATUS_OK);
    assert_status(apply_id(transaction, &w, ITEM_READ, "p", "b"), STATUS_NOT_FOUND);
    /* Nobody else does. */
    expect_item(t, "p", "a", "{'id':'a','pk':'p','u':1}");
    expect_item(t, "p", "b", NULL);
    test_commit(transaction);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','u':3}");
    expect_item(t, "p", "b", NULL);
    check_space(t);
}

static void a_rollback_leaves_nothing(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    uint64_t lsn = partition_lsn(t->partition);
    size_t keys = count_keys(t, 0);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    PartitionTransaction *transaction = test_begin(t, "p");
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_OK);
    assert_status(apply_id(transaction, &w, ITEM_DELETE, "p", "a"), STATUS_OK);
    transaction_end(transaction);
    transaction_end(NULL);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','u':1}");
    expect_item(t, "p", "b", NULL);
    assert_int_equal(partition_lsn(t->partition), lsn);
    assert_int_equal(count_keys(t, 0), keys);
    /* The lock is free, and the values of unique keys are. */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'p','u':2}"), STATUS_OK);
    check_space(t);
}

static void a_restart_forgets_own_writes_and_keeps_the_time(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    uint64_t before = partition_lsn(t->partition);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    PartitionTransaction *transaction = test_begin(t, "p");
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_OK);
    uint32_t ts_s = w.items[w.write.count - 1].item.ts_s;
    assert_status(apply_id(transaction, &w, ITEM_DELETE, "p", "a"), STATUS_OK);
    test_advance_s(t, 3);
    transaction_restart(transaction);
    assert_false(transaction_has_writes(transaction));
    assert_status(apply_id(transaction, &w, ITEM_READ, "p", "a"), STATUS_OK);
    assert_status(apply_id(transaction, &w, ITEM_READ, "p", "b"), STATUS_NOT_FOUND);
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'c','pk':'p','u':2}"), STATUS_OK);
    assert_int_equal(w.items[w.write.count - 1].item.ts_s, ts_s);
    test_commit(transaction);
    assert_int_equal(partition_lsn(t->partition), before + 1);
    Item item;
    assert_true(test_get(t, "p", "a", &item));
    assert_false(test_get(t, "p", "b", &item));
    assert_true(test_get(t, "p", "c", &item));
    check_space(t);
}

static void a_commit_has_one_lsn_and_the_etags_that_were_seen(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    uint64_t before = partition_lsn(t->partition);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    PartitionTransaction *transaction = test_begin(t, "p");
    assert_status(apply_row(transaction, &w, ITEM_REPLACE, "{'id':'a','pk':'p','u':5}"), STATUS_OK);
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'b','pk':'p','u':6}"), STATUS_OK);
    Slice a_first = etag_of(&t->arena, &w.items[0].item);
    Slice b = etag_of(&t->arena, &w.items[1].item);
    uint64_t b_number = w.items[1].item.number;
    assert_false(slice_equal(a_first, b));
    /* An ETag that was seen can be used inside, and only the newest. */
    ItemWrite *stale = add_document(&w, ITEM_REPLACE, "{'id':'a','pk':'p','u':7}");
    stale->if_match = b;
    transaction_apply(transaction, stale, &w.arena);
    assert_status(stale->status, STATUS_PRECONDITION_FAILED);
    ItemWrite *again = add_document(&w, ITEM_REPLACE, "{'id':'a','pk':'p','u':8}");
    again->if_match = a_first;
    transaction_apply(transaction, again, &w.arena);
    assert_status(again->status, STATUS_OK);
    Slice a = etag_of(&t->arena, &again->item);
    assert_false(slice_equal(a, a_first));
    uint32_t ts_s = again->item.ts_s;
    test_advance_s(t, 3); /* _ts is the transaction's */
    /* Others take numbers meanwhile. */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'x','pk':'q'}"), STATUS_OK);
    uint64_t lsn = 0;
    assert_ok(transaction_commit(transaction, &lsn, err));
    transaction_end(transaction);
    assert_int_equal(lsn, before + 2);
    assert_int_equal(partition_lsn(t->partition), lsn);
    assert_int_equal(again->item.lsn, lsn);
    assert_true(w.items[1].terms > 0);
    for (int opened = 0; opened < 2; opened++) {
        Item item;
        assert_true(test_get(t, "p", "a", &item));
        assert_slice(etag_of(&t->arena, &item), a);
        assert_int_equal(item.lsn, lsn);
        assert_int_equal(item.ts_s, ts_s);
        assert_true(test_get(t, "p", "b", &item));
        assert_slice(etag_of(&t->arena, &item), b);
        assert_int_equal(item.number, b_number);
        assert_int_equal(item.lsn, lsn);
        check_space(t);
        test_reopen(t);
    }
    /* No number is given out twice. */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'y','pk':'q','u':1}"), STATUS_OK);
    check_space(t);
}

static void reading_alone_commits_nothing(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    uint64_t before = partition_lsn(t->partition);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    PartitionTransaction *transaction = test_begin(t, "p");
    assert_status(apply_id(transaction, &w, ITEM_READ, "p", "a"), STATUS_OK);
    assert_status(apply_id(transaction, &w, ITEM_READ, "p", "none"), STATUS_NOT_FOUND);
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_CONFLICT);
    uint64_t lsn = 0;
    assert_ok(transaction_commit(transaction, &lsn, err));
    assert_int_equal(lsn, before);
    transaction_end(transaction);
    test_settle(t);
    assert_int_equal(partition_lsn(t->partition), before);
    check_space(t);
}

static void operations_that_fail_change_nothing(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    PartitionTransaction *transaction = test_begin(t, "p");
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'b','pk':'p','u':1}"),
                  STATUS_CONFLICT); /* a unique key, of a stored item */
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'b','pk':'p','u':2}"), STATUS_OK);
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'c','pk':'p','u':2}"),
                  STATUS_CONFLICT); /* of an own one */
    assert_status(apply_id(transaction, &w, ITEM_DELETE, "p", "a"), STATUS_OK);
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'c','pk':'p','u':1}"), STATUS_OK);
    assert_status(apply_id(transaction, &w, ITEM_DELETE, "p", "a"), STATUS_NOT_FOUND);
    test_commit(transaction);
    expect_item(t, "p", "a", NULL);
    expect_item(t, "p", "b", "{'id':'b','pk':'p','u':2}");
    expect_item(t, "p", "c", "{'id':'c','pk':'p','u':1}");
    check_space(t);
}

static void an_id_is_deleted_and_made_again(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    Item old;
    assert_true(test_get(t, "p", "a", &old));
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    PartitionTransaction *transaction = test_begin(t, "p");
    assert_status(apply_id(transaction, &w, ITEM_DELETE, "p", "a"), STATUS_OK);
    assert_status(apply_row(transaction, &w, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    assert_int_not_equal(w.items[1].item.number, old.number);
    /* And renamed, and patched, twice. */
    ItemWrite *renamed = add_replace(&w, "a", "{'id':'z','pk':'p','u':1,'n':1}");
    transaction_apply(transaction, renamed, &w.arena);
    assert_status(renamed->status, STATUS_OK);
    for (int i = 0; i < 2; i++) {
        ItemWrite *patched = add_patch(&w, "p", "z", "[{'op':'incr','path':'/n','value':2}]");
        transaction_apply(transaction, patched, &w.arena);
        assert_status(patched->status, STATUS_OK);
    }
    test_commit(transaction);
    expect_item(t, "p", "a", NULL);
    expect_item(t, "p", "z", "{'id':'z','pk':'p','u':1,'n':5}");
    check_space(t);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_transaction_sees_its_own_writes, .unique = {"/u"}),
        ENGINE_TEST(a_rollback_leaves_nothing, .unique = {"/u"}),
        ENGINE_TEST(a_restart_forgets_own_writes_and_keeps_the_time, .unique = {"/u"}),
        ENGINE_TEST(a_commit_has_one_lsn_and_the_etags_that_were_seen, .unique = {"/u"}),
        ENGINE_TEST(reading_alone_commits_nothing, .ttl_s = 0),
        ENGINE_TEST(operations_that_fail_change_nothing, .unique = {"/u"}),
        ENGINE_TEST(an_id_is_deleted_and_made_again, .unique = {"/u"}),
    };
    return run_on_every_engine("transaction", tests, ARRAY_COUNT(tests));
}
