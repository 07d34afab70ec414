/* write_hold_test.c - writes that wait, and what becomes of them. */
#include "partition/write_hold.h"

#include "partition/transaction_testing_int.h"

static void submit_of(TestPartition *t, TestWrite *w, const char *row, uint32_t generation)
{
    test_write_init(w, t, WRITE_CONTINUE);
    (void)add_document(w, ITEM_UPSERT, row);
    w->write.message.generation = generation;
    test_submit(t, w);
}

static void held_writes_go_on(TestPartition *t)
{
    TestWrite w;
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','n':1}"), STATUS_OK);
    assert_ok(write_hold_begin(t->partition, err));
    uint64_t lsn = partition_lsn(t->partition);
    submit_of(t, &w, "{'id':'a','pk':'p','n':2}", 0);
    (void)usleep(20000);
    assert_false(is_answered(&w));
    assert_int_equal(partition_lsn(t->partition), lsn);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':1}");
    write_hold_end(t->partition, 0);
    assert_status(test_wait(&w), STATUS_OK);
    test_write_done(&w);
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':2}");
    /* And once more. */
    assert_ok(write_hold_begin(t->partition, err));
    write_hold_end(t->partition, 0);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'a','pk':'p','n':3}"), STATUS_OK);
}

static void writes_of_an_older_generation_are_refused_whenever_they_come(TestPartition *t)
{
    TestWrite waiting, late, newer;
    assert_ok(write_hold_begin(t->partition, err));
    submit_of(t, &waiting, "{'id':'a','pk':'p'}", 0);
    write_hold_end(t->partition, 1);
    submit_of(t, &late, "{'id':'b','pk':'p'}", 0);
    submit_of(t, &newer, "{'id':'c','pk':'p'}", 1);
    assert_status(test_wait(&waiting), STATUS_GONE);
    assert_int_equal(waiting.write.error.sub, SUB_PARTITION_KEY_RANGE_GONE);
    assert_status(test_wait(&late), STATUS_GONE);
    assert_status(test_wait(&newer), STATUS_OK);
    test_write_done(&waiting);
    test_write_done(&late);
    test_write_done(&newer);
    expect_scan(t, "c");
    TestPurge purge;
    test_purge_submit(t, &purge, "p");
    assert_status(test_purge_wait(&purge), STATUS_GONE);
    expect_scan(t, "c");
}

static void a_transaction_that_is_open_does_not_commit(TestPartition *t)
{
    PartitionTransaction *transaction = test_begin(t, "p");
    TestWrite own, waiting;
    test_write_init(&own, t, WRITE_CONTINUE);
    ItemWrite *w = add_document(&own, ITEM_CREATE, "{'id':'a','pk':'p'}");
    transaction_apply(transaction, w, &t->arena);
    assert_status(w->status, STATUS_OK);
    submit_of(t, &waiting, "{'id':'b','pk':'p'}", 0); /* for the transaction */
    assert_ok(write_hold_begin(t->partition, err));
    write_hold_end(t->partition, 1);
    assert_status(test_wait(&waiting), STATUS_GONE);
    uint64_t lsn = 0;
    Error err;
    assert_status(transaction_commit(transaction, &lsn, &err), STATUS_GONE);
    transaction_end(transaction);
    test_write_done(&own);
    test_write_done(&waiting);
    expect_scan(t, "");
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(held_writes_go_on),
        ENGINE_TEST(writes_of_an_older_generation_are_refused_whenever_they_come),
        ENGINE_TEST(a_transaction_that_is_open_does_not_commit),
    };
    return run_on_every_engine("write hold", tests, ARRAY_COUNT(tests));
}
