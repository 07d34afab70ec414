/* partition_drop_test.c - the end of a partition while it works: it is dropped (I9), its owner lets
 * go of it, or its host stops (I8). Stalls are the memory engine's. */
#include "partition/partition_check_testing_int.h"
#include "partition/partition_stall_testing_int.h"

typedef struct TestDrop {
    PartitionDrop drop;
    Latch silent;
} TestDrop;

static void on_silent(PartitionDrop *drop)
{
    latch_post(&CONTAINER_OF(drop, TestDrop, drop)->silent);
}

static void start_drop(TestPartition *t, TestDrop *d)
{
    *d = (TestDrop){.drop = {.done = on_silent}};
    latch_init(&d->silent);
    partition_drop(t->partition, &d->drop);
}

static bool is_silent(TestDrop *d)
{
    return latch_is_posted(&d->silent);
}

/* I9 */
static void a_dropped_partition_ends_what_was_begun(TestPartition *t)
{
    TestDrop drop;
    AUTO(test_write_done) TestWrite before, queued, after;
    fill_create(t, &before, 1);
    stall_with(t, &before);
    fill_create(t, &queued, 2);
    test_submit(t, &queued);
    start_drop(t, &drop);
    fill_create(t, &after, 3);
    Error failure = {0};
    assert_status(partition_submit(t->partition, &after.write, &failure), STATUS_NOT_FOUND);
    assert_int_equal(failure.sub, SUB_OWNER_NOT_FOUND);
    PartitionPurge purge = {.done = NULL};
    assert_status(partition_purge(t->partition, &purge, &failure), STATUS_NOT_FOUND);
    partition_maintain(t->partition);
    assert_false(is_silent(&drop));
    memory_store_release(t->store);
    assert_status(test_wait(&before), STATUS_OK);
    assert_status(test_wait(&queued), STATUS_OK);
    assert_status(queued.items[0].status, STATUS_OK);
    latch_wait(&drop.silent);
    expect_scan(t, "1 2");
    check_space(t);
    latch_done(&drop.silent);
}

/* As a sender that looked at the state before a drop, and then was slow to post. */
static void post_late(TestPartition *t, PartitionMessage *message, int kind)
{
    message->kind = kind;
    assert_ok(inbox_post(t->partition, message, 0, err));
}

/* I9 */
static void nothing_is_written_after_a_drop(TestPartition *t)
{
    TestDrop drop;
    AUTO(test_write_done) TestWrite first, late, later;
    TestPurge purge = {.purge = {.done = test_purge_answer}};
    latch_init(&purge.answered);
    fill_create(t, &first, 1);
    stall_with(t, &first);
    start_drop(t, &drop);
    assert_int_equal(partition_state(t->partition), PARTITION_DROPPING);
    fill_create(t, &late, 2);
    post_late(t, &late.write.message, MESSAGE_WRITE);
    post_late(t, &purge.purge.message, MESSAGE_PURGE);
    atomic_store(&t->partition->inbox.maintain_posted, true);
    post_late(t, &t->partition->inbox.maintain, MESSAGE_MAINTAIN);
    memory_store_release(t->store);
    assert_status(test_wait(&first), STATUS_OK);
    assert_status(test_wait(&late), STATUS_NOT_FOUND);
    assert_int_equal(late.write.error.sub, SUB_OWNER_NOT_FOUND);
    assert_status(test_purge_wait(&purge), STATUS_NOT_FOUND);
    test_settle(t);
    assert_true(is_silent(&drop));
    assert_int_equal(partition_state(t->partition), PARTITION_DROPPED);
    assert_false(atomic_load(&t->partition->inbox.maintain_posted));
    uint64_t groups = memory_store_groups(t->store);
    fill_create(t, &later, 3);
    post_late(t, &later.write.message, MESSAGE_WRITE);
    assert_status(test_wait(&later), STATUS_NOT_FOUND);
    expect_scan(t, "1");
    assert_int_equal(memory_store_groups(t->store), groups);
    latch_done(&drop.silent);
}

static void a_fence_that_a_drop_overtakes_is_refused(TestPartition *t)
{
    TestDrop drop;
    AUTO(test_write_done) TestWrite first;
    Turn watch, fence;
    assert_ok(partition_take_turn(t->partition, &watch, MESSAGE_WATCH, err));
    assert_int_equal(partition_state(t->partition), PARTITION_WATCHED);
    fill_create(t, &first, 1);
    stall_with(t, &first);
    assert_ok(partition_begin_turn(t->partition, &fence, MESSAGE_FENCE, err));
    start_drop(t, &drop);
    memory_store_release(t->store);
    Error refusal;
    assert_status(partition_end_turn(&fence, &refusal), STATUS_NOT_FOUND);
    assert_status(test_wait(&first), STATUS_OK);
    test_settle(t);
    assert_true(is_silent(&drop));
    assert_int_equal(partition_state(t->partition), PARTITION_DROPPED);
    partition_unwatch(t->partition);
    latch_done(&drop.silent);
}

static void an_idle_partition_is_dropped_at_once(TestPartition *t)
{
    TestDrop one, two;
    start_drop(t, &one);
    start_drop(t, &two);
    latch_wait(&one.silent);
    latch_wait(&two.silent);
    assert_int_equal(count_keys(t, 0), 0);
    latch_done(&one.silent);
    latch_done(&two.silent);
}

/* I8 */
static void a_partition_outlives_its_owner_while_it_works(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w;
    fill_create(t, &w, 1);
    stall_with(t, &w);
    partition_unref(TAKE(t->partition));
    memory_store_release(t->store);
    assert_status(test_wait(&w), STATUS_OK);
    test_reopen(t);
    expect_scan(t, "1");
}

static void *stop_host(void *arg)
{
    partition_host_stop(arg);
    return NULL;
}

/* I8 */
static void stopping_waits_for_what_is_under_way(TestPartition *t)
{
    AUTO(test_write_done) TestWrite w, after;
    fill_create(t, &w, 1);
    stall_with(t, &w);
    fill_create(t, &after, 2);
    test_submit(t, &after);
    partition_maintain(t->partition);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_host, &t->host), 0);
    while (!atomic_load(&t->host.is_closing))
        (void)sched_yield();
    assert_false(is_answered(&w));
    memory_store_release(t->store);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(is_answered(&w));
    assert_true(is_answered(&after));
    partition_maintain(t->partition); /* is nothing any more */
    assert_false(atomic_load(&t->partition->inbox.maintain_posted));
    assert_status(test_wait(&after), STATUS_OK);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(a_dropped_partition_ends_what_was_begun, MORTAL),
        ENGINE_TEST(nothing_is_written_after_a_drop, MORTAL),
        ENGINE_TEST(a_fence_that_a_drop_overtakes_is_refused, MORTAL),
        ENGINE_TEST(an_idle_partition_is_dropped_at_once, MORTAL),
        ENGINE_TEST(a_partition_outlives_its_owner_while_it_works, MORTAL),
        ENGINE_TEST(stopping_waits_for_what_is_under_way, MORTAL),
    };
    return run_on_memory("drop", tests, ARRAY_COUNT(tests));
}
