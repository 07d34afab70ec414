/* write_deadline_test.c - writes whose sender has given up while they waited. */
#include "partition/write_hold.h"

#include "partition/transaction_testing_int.h"

enum { PATIENCE_US = 1000 };

static void submit_until(TestPartition *t, TestWrite *w, const char *row, uint64_t deadline_us)
{
    test_write_init(w, t, WRITE_CONTINUE);
    (void)add_document(w, ITEM_UPSERT, row);
    w->write.message.deadline_us = deadline_us;
    test_submit(t, w);
}

static void a_write_that_has_waited_too_long_is_refused(TestPartition *t)
{
    TestWrite late, in_time, patient;
    uint64_t now_us = clock_monotonic_us(&t->clock.clock);
    assert_ok(write_hold_begin(t->partition, err));
    submit_until(t, &late, "{'id':'a','pk':'p'}", now_us + PATIENCE_US);
    submit_until(t, &in_time, "{'id':'b','pk':'p'}", now_us + PATIENCE_US + 1);
    submit_until(t, &patient, "{'id':'c','pk':'p'}", 0);
    fake_clock_advance(&t->clock, PATIENCE_US);
    write_hold_end(t->partition, 0);
    assert_status(test_wait(&late), STATUS_THROTTLED);
    assert_int_equal(late.write.error.sub, SUB_SYSTEM_BUSY);
    assert_status(test_wait(&in_time), STATUS_OK);
    assert_status(test_wait(&patient), STATUS_OK);
    test_write_done(&late);
    test_write_done(&in_time);
    test_write_done(&patient);
    expect_scan(t, "b c");
}

static void a_write_that_is_late_behind_a_transaction_is_refused(TestPartition *t)
{
    TestWrite late;
    PartitionTransaction *transaction = test_begin(t, "p");
    submit_until(t, &late, "{'id':'a','pk':'p'}",
                 clock_monotonic_us(&t->clock.clock) + PATIENCE_US);
    fake_clock_advance(&t->clock, PATIENCE_US);
    transaction_end(transaction);
    assert_status(test_wait(&late), STATUS_THROTTLED);
    test_write_done(&late);
    expect_scan(t, "");
}

static void a_purge_that_has_waited_too_long_is_refused(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    TestPurge purge = {.purge = {.done = test_purge_answer,
                                 .message.deadline_us = clock_monotonic_us(&t->clock.clock)}};
    latch_init(&purge.answered);
    make_epk(&t->arena, t->schema, "p", &purge.purge.epk);
    assert_ok(partition_purge(t->partition, &purge.purge, err));
    assert_status(test_purge_wait(&purge), STATUS_THROTTLED);
    expect_scan(t, "a");
}

static void a_transaction_that_is_late_does_not_commit(TestPartition *t)
{
    for (int is_late = 0; is_late <= 1; is_late++) {
        PartitionTransaction *transaction = test_begin(t, "p");
        TestWrite own;
        test_write_init(&own, t, WRITE_CONTINUE);
        ItemWrite *w = add_document(&own, ITEM_CREATE,
                                    is_late ? "{'id':'a','pk':'p'}" : "{'id':'b','pk':'p'}");
        transaction_apply(transaction, w, &t->arena);
        assert_status(w->status, STATUS_OK);
        transaction_set_deadline(transaction, clock_monotonic_us(&t->clock.clock) + PATIENCE_US);
        fake_clock_advance(&t->clock, is_late ? PATIENCE_US : PATIENCE_US - 1);
        uint64_t lsn = 0;
        Error err;
        assert_status(transaction_commit(transaction, &lsn, &err),
                      is_late ? STATUS_THROTTLED : STATUS_OK);
        transaction_end(transaction);
        test_write_done(&own);
    }
    expect_scan(t, "b");
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_write_that_has_waited_too_long_is_refused),
        ENGINE_TEST(a_write_that_is_late_behind_a_transaction_is_refused),
        ENGINE_TEST(a_purge_that_has_waited_too_long_is_refused),
        ENGINE_TEST(a_transaction_that_is_late_does_not_commit),
    };
    return run_on_every_engine("write deadline", tests, ARRAY_COUNT(tests));
}
