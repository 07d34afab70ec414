/* transaction_wait_test.c - who waits for a transaction, in which order they go on, and what
 * becomes of transactions and of those that wait when a partition or the host ends (I21). */
#include "partition/item_move.h"
#include "partition/transaction_testing_int.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

/* A transaction that begins on a thread of its own, and has to wait. All that was answered before
 * is forgotten by then: see start_begin. */
typedef struct Beginner {
    TestPartition *t;
    Epk epk;
    uint64_t deadline_us;
    PartitionTransaction *transaction;
    Status status;
    Error error;
    pthread_t thread;
    _Atomic pid_t thread_id;
} Beginner;

static void *begin_quietly(void *arg)
{
    Beginner *b = arg;
    atomic_store(&b->thread_id, gettid());
    b->status = transaction_begin(b->t->partition, b->t->schema, &b->epk, b->deadline_us,
                                  &b->transaction, &b->error);
    return NULL;
}

/* Whether the thread sleeps, or has ended. */
static bool is_waiting(const Beginner *b)
{
    char path[64];
    char line[128] = "";
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", atomic_load(&b->thread_id));
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true;
    const char *name_end = fgets(line, sizeof(line), file) == NULL ? NULL : strrchr(line, ')');
    (void)fclose(file);
    return name_end == NULL || name_end[2] != 'R';
}

static void start_begin(Beginner *b, TestPartition *t, const char *pk, uint64_t us)
{
    *b = (Beginner){.t = t, .deadline_us = in_us(t, us)};
    make_epk(&t->arena, t->schema, pk, &b->epk);
    uint64_t bytes = atomic_load(&t->partition->inbox.waiting_bytes);
    assert_int_equal(pthread_create(&b->thread, NULL, begin_quietly, b), 0);
    while (atomic_load(&t->partition->inbox.waiting_bytes) == bytes)
        (void)sched_yield();
    while (!is_waiting(b)) /* the message is counted before it is posted */
        (void)sched_yield();
}

static Status join_begin(Beginner *b)
{
    assert_int_equal(pthread_join(b->thread, NULL), 0);
    return b->status;
}

/* So many messages wait for locks. All are posted; no other thread looks at them. */
static void expect_waiting(TestPartition *t, size_t count)
{
    size_t found = 0;
    test_settle(t);
    for (const QueueNode *node = t->partition->locks.waiting; node != NULL; node = node->next)
        found++;
    assert_int_equal(found, count);
}

static void fill_upsert(TestPartition *t, TestWrite *w, const char *row)
{
    test_write_init(w, t, WRITE_CONTINUE);
    (void)add_document(w, ITEM_UPSERT, row);
}

/* ---- order ---- */

/* I21 */
static void writes_to_the_same_key_wait_in_order(TestPartition *t)
{
    PartitionTransaction *transaction = test_begin(t, "p");
    TestWrite own, first, bulk, passes_not, last;
    fill_upsert(t, &first, "{'id':'a','pk':'p','n':1}");
    fill_upsert(t, &bulk, "{'id':'a','pk':'q','n':2}");
    (void)add_patch(&bulk, "p", "a", "[{'op':'incr','path':'/n','value':2}]");
    fill_upsert(t, &passes_not, "{'id':'a','pk':'q','n':3}");
    fill_upsert(t, &last, "{'id':'b','pk':'p','n':4}");
    test_submit(t, &first);
    /* Other keys do not wait. */
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'r','n':0}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'q','n':0}"), STATUS_OK);
    test_submit(t, &bulk);
    test_submit(t, &passes_not);
    test_submit(t, &last);
    expect_waiting(t, 4);
    assert_status(run_document(t, ITEM_UPSERT, "{'id':'a','pk':'s','n':1}"), STATUS_OK);
    assert_false(is_answered(&first));
    assert_false(is_answered(&bulk));
    assert_false(is_answered(&passes_not));
    test_write_init(&own, t, WRITE_ATOMIC);
    assert_status(apply_row(transaction, &own, ITEM_CREATE, "{'id':'a','pk':'p','n':9}"),
                  STATUS_OK);
    assert_true(atomic_load(&t->partition->inbox.waiting_bytes) > 0);
    uint64_t lsn = 0;
    assert_ok(transaction_commit(transaction, &lsn, err));
    transaction_end(transaction);
    TestWrite *all[] = {&first, &bulk, &passes_not, &last};
    uint64_t before = lsn;
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        assert_status(test_wait(all[i]), STATUS_OK);
        assert_status(all[i]->items[0].status, STATUS_OK);
        assert_true(all[i]->items[0].item.lsn > before);
        before = all[i]->items[0].item.lsn;
        test_write_done(all[i]);
    }
    expect_item(t, "p", "a", "{'id':'a','pk':'p','n':3}");
    expect_item(t, "q", "a", "{'id':'a','pk':'q','n':3}");
    test_settle(t);
    assert_int_equal(atomic_load(&t->partition->inbox.waiting_bytes), 0);
    test_write_done(&own);
    check_space(t);
}

static void a_purge_of_a_prefix_waits(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','x':'t','y':'u'}"), STATUS_OK);
    PartitionTransaction *transaction = test_begin(t, "['t','u']");
    TestPurge purge, other;
    test_purge_submit(t, &other, "['z']");
    assert_status(test_purge_wait(&other), STATUS_OK);
    test_purge_submit(t, &purge, "['t']");
    expect_waiting(t, 1);
    /* Newer than the purge, and covered by it. */
    AUTO(test_write_done) TestWrite late, own;
    fill_upsert(t, &late, "{'id':'b','x':'t','y':'v'}");
    test_submit(t, &late);
    expect_waiting(t, 2);
    test_write_init(&own, t, WRITE_ATOMIC);
    assert_status(apply_row(transaction, &own, ITEM_CREATE, "{'id':'c','x':'t','y':'u'}"),
                  STATUS_OK);
    assert_status(apply_id(transaction, &own, ITEM_READ, "['t','u']", "a"), STATUS_OK);
    test_commit(transaction);
    assert_status(test_purge_wait(&purge), STATUS_OK);
    assert_status(test_wait(&late), STATUS_OK);
    test_settle(t);
    expect_scan(t, "b");
    check_space(t);
}

/* An open purge hides what a transaction must not see, and ends while it is open. */
static void a_purge_from_before_may_end_meanwhile(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1}"), STATUS_OK);
    atomic_store(&t->host.is_closing, true); /* nothing is removed */
    assert_status(run_purge(t, "p"), STATUS_OK);
    atomic_store(&t->host.is_closing, false);
    PartitionTransaction *transaction = test_begin(t, "p");
    AUTO(test_write_done) TestWrite own;
    test_write_init(&own, t, WRITE_ATOMIC);
    assert_status(apply_id(transaction, &own, ITEM_READ, "p", "a"), STATUS_NOT_FOUND);
    assert_status(apply_row(transaction, &own, ITEM_CREATE, "{'id':'b','pk':'p','u':1}"),
                  STATUS_OK);
    test_maintain(t);
    assert_status(apply_row(transaction, &own, ITEM_CREATE, "{'id':'a','pk':'p','u':2}"),
                  STATUS_OK);
    test_commit(transaction);
    expect_scan(t, "b a");
    check_space(t);
}

/* I22 */
static void what_expires_meanwhile_stays_for_the_transaction(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p','u':1,'ttl':5}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'b','pk':'p','u':2,'ttl':5}"), STATUS_OK);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'c','pk':'q','u':1,'ttl':5}"), STATUS_OK);
    PartitionTransaction *transaction = test_begin(t, "p");
    test_advance_s(t, 10);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 2);
    expect_item(t, "p", "a", NULL);
    AUTO(test_write_done) TestWrite own;
    test_write_init(&own, t, WRITE_ATOMIC);
    assert_status(apply_id(transaction, &own, ITEM_READ, "p", "a"), STATUS_OK);
    assert_status(apply_row(transaction, &own, ITEM_CREATE, "{'id':'d','pk':'p','u':2}"),
                  STATUS_CONFLICT);
    assert_status(apply_row(transaction, &own, ITEM_REPLACE, "{'id':'a','pk':'p','u':1}"),
                  STATUS_OK);
    /* Another default meanwhile changes nothing of that. */
    test_set_schema(
        t, (TestSchema){.kind = PARTITION_HASH_V2, .paths = "/pk", .ttl_s = 1, .unique = {"/u"}});
    test_settle(t);
    assert_status(apply_id(transaction, &own, ITEM_DELETE, "p", "b"), STATUS_OK);
    test_commit(transaction);
    test_maintain(t);
    assert_int_equal(count_keys(t, KEY_ITEM), 0);
    check_space(t);
}

/* ---- several transactions ---- */

enum { THREADS = 8, INCREMENTS = 200 };

static double read_counter(PartitionTransaction *transaction, ItemWrite *w, const Epk *epk,
                           Arena *arena)
{
    *w = (ItemWrite){.op = ITEM_READ, .epk = *epk, .id = SLICE("counter")};
    transaction_apply(transaction, w, arena);
    ASSERT(w->status == STATUS_OK);
    return json_number(json_get(w->item.document, SLICE("n")));
}

static void increment(Beginner *b)
{
    Error err;
    PartitionTransaction *transaction = NULL;
    Status status = transaction_begin(b->t->partition, b->t->schema, &b->epk, b->deadline_us,
                                      &transaction, &err);
    ASSERT(status == STATUS_OK);
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, b->t, WRITE_ATOMIC);
    ItemWrite read;
    int n = (int)read_counter(transaction, &read, &b->epk, &w.arena);
    Slice row = arena_format(&w.arena, "{'id':'counter','pk':'p','n':%d}", n + 1);
    ItemWrite *put = add_document(&w, ITEM_REPLACE, row.ptr);
    transaction_apply(transaction, put, &w.arena);
    ASSERT(put->status == STATUS_OK);
    uint64_t lsn = 0;
    if (n % 7 != 3) {
        status = transaction_commit(transaction, &lsn, &err);
        ASSERT(status == STATUS_OK);
        transaction_end(transaction);
        return;
    }
    /* Not now: an ordinary write of the same value instead, after the rollback. */
    transaction_end(transaction);
    AUTO(test_write_done) TestWrite alone;
    test_write_init(&alone, b->t, WRITE_ATOMIC);
    (void)add_patch(&alone, "p", "counter", "[{'op':'incr','path':'/n','value':1}]");
    status = partition_submit(b->t->partition, &alone.write, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(test_wait(&alone) == STATUS_OK);
    ASSERT(alone.items[0].status == STATUS_OK);
}

static void *increment_often(void *arg)
{
    for (int i = 0; i < INCREMENTS; i++)
        increment(arg);
    return NULL;
}

static void no_increment_is_lost(TestPartition *t)
{
    assert_status(run_document(t, ITEM_CREATE, "{'id':'counter','pk':'p','n':0}"), STATUS_OK);
    Beginner all[THREADS];
    for (int i = 0; i < THREADS; i++) {
        all[i] = (Beginner){.t = t, .deadline_us = in_us(t, FAR_US)};
        make_epk(&t->arena, t->schema, "p", &all[i].epk);
        assert_int_equal(pthread_create(&all[i].thread, NULL, increment_often, &all[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(all[i].thread, NULL), 0);
    char row[64];
    (void)snprintf(row, sizeof(row), "{'id':'counter','pk':'p','n':%d}", THREADS * INCREMENTS);
    expect_item(t, "p", "counter", row);
    test_settle(t);
    assert_false(epk_locks_are_held(&t->partition->locks));
    check_space(t);
}

static void a_deadline_ends_the_wait(TestPartition *t)
{
    PartitionTransaction *transaction = test_begin(t, "p");
    Beginner late, other;
    test_settle(t);
    start_begin(&late, t, "p", 3000000);
    start_begin(&other, t, "p", FAR_US);
    expect_waiting(t, 2);
    fake_clock_advance(&t->clock, 4000000);
    assert_status(join_begin(&late), STATUS_TIMEOUT);
    transaction_end(transaction);
    assert_status(join_begin(&other), STATUS_OK);
    transaction_end(other.transaction);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    check_space(t);
}

/* The lock is granted, but its group is not durable in time. */
static void a_lock_that_nobody_waits_for_is_given_back(TestPartition *t)
{
    if (t->engine != TEST_MEMORY)
        return;
    AUTO(test_write_done) TestWrite first, second, third;
    fill_upsert(t, &first, "{'id':'a','pk':'q'}");
    memory_store_stall(t->store);
    test_submit(t, &first);
    memory_store_wait_stalled(t->store);
    fill_upsert(t, &second, "{'id':'b','pk':'q'}");
    test_submit(t, &second);
    Beginner late;
    start_begin(&late, t, "p", 3000000);
    fill_upsert(t, &third, "{'id':'c','pk':'p'}");
    test_submit(t, &third);
    memory_store_stall(t->store); /* the next group, too */
    fake_clock_advance(&t->clock, 4000000);
    assert_status(join_begin(&late), STATUS_TIMEOUT);
    memory_store_release(t->store);
    assert_status(test_wait(&first), STATUS_OK);
    assert_status(test_wait(&second), STATUS_OK);
    assert_status(test_wait(&third), STATUS_OK);
    test_settle(t);
    assert_false(epk_locks_are_held(&t->partition->locks));
}

static void too_many_that_wait_are_refused(TestPartition *t)
{
    enum { COUNT = TRANSACTIONS_WAITING_MAX };
    PartitionTransaction *transaction = test_begin(t, "p");
    static Beginner all[COUNT];
    test_settle(t);
    for (int i = 0; i < COUNT; i++)
        start_begin(&all[i], t, "p", FAR_US);
    expect_waiting(t, COUNT);
    Error refusal;
    PartitionTransaction *more = NULL;
    assert_status(
        transaction_begin(t->partition, t->schema, &all[0].epk, in_us(t, FAR_US), &more, &refusal),
        STATUS_THROTTLED);
    assert_true(refusal.retry_after_ms > 0);
    /* Elsewhere there is no crowd. */
    transaction_end(test_begin(t, "q"));
    fake_clock_advance(&t->clock, 2 * FAR_US); /* all but the holder give up */
    for (int i = 0; i < COUNT; i++)
        assert_status(join_begin(&all[i]), STATUS_TIMEOUT);
    transaction_end(transaction);
    transaction_end(test_begin(t, "p"));
}

static void too_many_open_ones_are_refused(TestPartition *t)
{
    static PartitionTransaction *all[TRANSACTIONS_MAX];
    char pk[16];
    for (int i = 0; i < TRANSACTIONS_MAX; i++) {
        (void)snprintf(pk, sizeof(pk), "p%d", i);
        all[i] = test_begin(t, pk);
    }
    Epk epk;
    Error refusal;
    PartitionTransaction *more = NULL;
    make_epk(&t->arena, t->schema, "more", &epk);
    assert_status(
        transaction_begin(t->partition, t->schema, &epk, in_us(t, FAR_US), &more, &refusal),
        STATUS_THROTTLED);
    for (int i = 0; i < TRANSACTIONS_MAX; i++)
        transaction_end(all[i]);
    transaction_end(test_begin(t, "more"));
}

static void own_writes_are_bounded(TestPartition *t)
{
    enum { BYTES = 1 << 20 };
    char *row = mem_alloc(BYTES + 64);
    char *text = row + snprintf(row, 64, "{'id':'a','pk':'p','s':'");
    memset(text, 'x', BYTES);
    memcpy(text + BYTES, "'}", 3);
    PartitionTransaction *transaction = test_begin(t, "p");
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    ItemWrite *put = add_document(&w, ITEM_UPSERT, row);
    mem_free(row);
    enum { COUNT = 80 };
    ItemWrite *all = MEM_NEW_ARRAY(ItemWrite, COUNT);
    size_t refused = 0;
    for (int i = 0; i < COUNT; i++) {
        all[i] = *put;
        all[i].document_id = arena_format(&w.arena, "i%d", i); /* as if it were the document's */
        transaction_apply(transaction, &all[i], &w.arena);
        assert_true(all[i].status == STATUS_OK || all[i].status == STATUS_TOO_LARGE);
        refused += all[i].status == STATUS_TOO_LARGE ? 1 : 0;
    }
    assert_in_range(refused, COUNT - 66, COUNT - 62);
    transaction_end(transaction);
    mem_free(all);
    assert_int_equal(partition_usage(t->partition).items, 0);
}

/* ---- the disk ---- */

static void a_commit_that_fails_leaves_nothing(TestPartition *t)
{
    if (t->engine != TEST_MEMORY)
        return;
    PartitionTransaction *transaction = test_begin(t, "p");
    AUTO(test_write_done) TestWrite own;
    test_write_init(&own, t, WRITE_ATOMIC);
    assert_status(apply_row(transaction, &own, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    memory_store_fail_commits(t->store, 1, STATUS_IO);
    uint64_t lsn = 0;
    Error failure;
    assert_status(transaction_commit(transaction, &lsn, &failure), STATUS_IO);
    memory_store_fail_commits(t->store, 0, STATUS_IO);
    transaction_end(transaction);
    expect_item(t, "p", "a", NULL);
    assert_status(run_document(t, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    check_space(t);
}

/* A lock that is granted in a group which is not committed is none. */
static void a_lock_fails_with_its_group(TestPartition *t)
{
    if (t->engine != TEST_MEMORY)
        return;
    AUTO(test_write_done) TestWrite first, second, third;
    fill_upsert(t, &first, "{'id':'a','pk':'q'}");
    memory_store_stall(t->store);
    test_submit(t, &first);
    memory_store_wait_stalled(t->store);
    fill_upsert(t, &second, "{'id':'b','pk':'q'}");
    test_submit(t, &second);
    Beginner begun;
    start_begin(&begun, t, "p", FAR_US);
    fill_upsert(t, &third, "{'id':'c','pk':'p'}");
    test_submit(t, &third);
    memory_store_fail_commits(t->store, 2, STATUS_IO);
    memory_store_release(t->store);
    assert_status(test_wait(&first), STATUS_IO);
    assert_status(test_wait(&second), STATUS_IO);
    assert_status(join_begin(&begun), STATUS_IO);
    assert_status(test_wait(&third), STATUS_OK); /* it waited for the lock, and so is not of it */
    memory_store_fail_commits(t->store, 0, STATUS_IO);
    expect_item(t, "p", "c", "{'id':'c','pk':'p'}");
    check_space(t);
}

/* ---- ends ---- */

typedef struct TestDrop {
    PartitionDrop drop;
    Latch silent;
} TestDrop;

static void drop_done(PartitionDrop *drop)
{
    latch_post(&CONTAINER_OF(drop, TestDrop, drop)->silent);
}

static void a_drop_does_not_wait(TestPartition *t)
{
    PartitionTransaction *transaction = test_begin(t, "p");
    AUTO(test_write_done) TestWrite own, waiting;
    test_write_init(&own, t, WRITE_ATOMIC);
    assert_status(apply_row(transaction, &own, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    fill_upsert(t, &waiting, "{'id':'b','pk':'p'}");
    test_submit(t, &waiting);
    Beginner begun;
    test_settle(t);
    start_begin(&begun, t, "p", FAR_US);
    expect_waiting(t, 2);
    TestDrop drop = {.drop = {.done = drop_done}};
    latch_init(&drop.silent);
    partition_drop(t->partition, &drop.drop);
    latch_wait(&drop.silent);
    latch_done(&drop.silent);
    assert_true(is_answered(&waiting)); /* before the drop was */
    assert_status(test_wait(&waiting), STATUS_OK);
    assert_status(join_begin(&begun), STATUS_OK);
    transaction_end(begun.transaction);
    assert_status(apply_id(transaction, &own, ITEM_READ, "p", "a"), STATUS_OK);
    uint64_t lsn = 0;
    Error refusal;
    assert_status(transaction_commit(transaction, &lsn, &refusal), STATUS_NOT_FOUND);
    transaction_end(transaction);
    PartitionTransaction *none = NULL;
    assert_status(
        transaction_begin(t->partition, t->schema, &begun.epk, in_us(t, FAR_US), &none, &refusal),
        STATUS_NOT_FOUND);
    test_settle(t);
}

/* Takes the partition as far as the fence, with a target that gets its items. */
static Move *move_to_fence(TestPartition *t, Partition **target)
{
    enum { ID = 40 };
    assert_ok(partition_open(&t->host, TEST_SPACE + ID, ID, t->schema, target, err));
    MovePart to = {.partition = *target};
    Move *move = move_new(&(MovePart){t->partition, SLICE_EMPTY}, 1, &to, 1);
    assert_ok(move_begin(move, err));
    bool is_done = false;
    while (!is_done)
        assert_ok(move_copy(move, &is_done, err));
    assert_ok(move_fence(move, err));
    return move;
}

static void on_gone(void *ctx, StoreSpace space)
{
    (void)space;
    *(bool *)ctx = true;
}

static void a_retired_partition_is_gone_for_transactions(TestPartition *t)
{
    PartitionTransaction *transaction = test_begin(t, "p");
    AUTO(test_write_done) TestWrite own, waiting;
    test_write_init(&own, t, WRITE_ATOMIC);
    assert_status(apply_row(transaction, &own, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    fill_upsert(t, &waiting, "{'id':'b','pk':'p'}");
    test_submit(t, &waiting);
    Beginner begun;
    test_settle(t);
    start_begin(&begun, t, "p", FAR_US);
    expect_waiting(t, 2);
    Partition *target = NULL;
    Move *move = move_to_fence(t, &target); /* which does not wait for the transaction */
    assert_status(apply_id(transaction, &own, ITEM_READ, "p", "a"), STATUS_OK);
    assert_false(is_answered(&waiting));
    bool is_gone = false;
    move_end(move, on_gone, &is_gone);
    assert_status(test_wait(&waiting), STATUS_GONE);
    assert_status(join_begin(&begun), STATUS_GONE);
    uint64_t lsn = 0;
    Error refusal;
    assert_status(transaction_commit(transaction, &lsn, &refusal), STATUS_GONE);
    assert_int_equal(refusal.sub, SUB_PARTITION_KEY_RANGE_GONE);
    transaction_end(transaction);
    move_free(move);
    test_settle(t);
    assert_int_equal(partition_usage(target).items, 0);
    partition_unref(target);
    assert_false(is_gone);
    partition_unref(TAKE(t->partition));
    assert_true(is_gone);
}

typedef struct Committer {
    PartitionTransaction *transaction;
    Status status;
    uint64_t lsn;
    Error error;
    pthread_t thread;
} Committer;

static void *commit_quietly(void *arg)
{
    Committer *c = arg;
    c->status = transaction_commit(c->transaction, &c->lsn, &c->error);
    return NULL;
}

/* A stamp goes over with its item, and a commit waits at a fence as any write. */
static void a_commit_waits_at_a_fence(TestPartition *t)
{
    Committer c = {.transaction = test_begin(t, "p")};
    AUTO(test_write_done) TestWrite own;
    test_write_init(&own, t, WRITE_ATOMIC);
    assert_status(apply_row(c.transaction, &own, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    Partition *target = NULL;
    Move *move = move_to_fence(t, &target);
    assert_int_equal(pthread_create(&c.thread, NULL, commit_quietly, &c), 0);
    while (atomic_load(&t->partition->inbox.waiting_bytes) == 0)
        (void)sched_yield();
    expect_item(t, "p", "a", NULL);
    move_cancel(move);
    assert_int_equal(pthread_join(c.thread, NULL), 0);
    assert_status(c.status, STATUS_OK);
    transaction_end(c.transaction);
    Item item;
    assert_true(test_get(t, "p", "a", &item));
    assert_slice(etag_of(&t->arena, &item), etag_of(&t->arena, &own.items[0].item));
    move_free(move);
    partition_unref(target);
    check_space(t);
}

static void a_host_stops_with_open_transactions(TestPartition *t)
{
    PartitionTransaction *transaction = test_begin(t, "p");
    PartitionTransaction *other = test_begin(t, "q");
    AUTO(test_write_done) TestWrite own, waiting, bulk;
    test_write_init(&own, t, WRITE_ATOMIC);
    assert_status(apply_row(transaction, &own, ITEM_CREATE, "{'id':'a','pk':'p'}"), STATUS_OK);
    fill_upsert(t, &waiting, "{'id':'b','pk':'p'}");
    test_submit(t, &waiting);
    fill_upsert(t, &bulk, "{'id':'b','pk':'q'}");
    (void)add_document(&bulk, ITEM_UPSERT, "{'id':'b','pk':'r'}");
    test_submit(t, &bulk);
    Beginner begun;
    test_settle(t);
    start_begin(&begun, t, "p", FAR_US);
    expect_waiting(t, 3);
    partition_host_stop(&t->host);
    assert_status(test_wait(&waiting), STATUS_UNAVAILABLE);
    assert_status(test_wait(&bulk), STATUS_UNAVAILABLE);
    assert_status(join_begin(&begun), STATUS_UNAVAILABLE);
    assert_status(apply_id(transaction, &own, ITEM_READ, "p", "a"), STATUS_UNAVAILABLE);
    uint64_t lsn = 0;
    Error refusal;
    assert_status(transaction_commit(transaction, &lsn, &refusal), STATUS_UNAVAILABLE);
    transaction_end(transaction);
    transaction_end(other);
    PartitionTransaction *none = NULL;
    assert_status(
        transaction_begin(t->partition, t->schema, &begun.epk, in_us(t, FAR_US), &none, &refusal),
        STATUS_UNAVAILABLE);
}

int main(void)
{
    static const EngineTest tests[] = {
        ENGINE_TEST(writes_to_the_same_key_wait_in_order, .ttl_s = 0),
        {.name = "a_purge_of_a_prefix_waits",
         .run = a_purge_of_a_prefix_waits,
         .schema = {.kind = PARTITION_MULTI_HASH, .paths = "/x /y"}},
        ENGINE_TEST(a_purge_from_before_may_end_meanwhile, .unique = {"/u"}),
        ENGINE_TEST(what_expires_meanwhile_stays_for_the_transaction, .ttl_s = -1,
                    .unique = {"/u"}),
        ENGINE_TEST(no_increment_is_lost, .ttl_s = 0),
        ENGINE_TEST(a_deadline_ends_the_wait, .ttl_s = 0),
        ENGINE_TEST(a_lock_that_nobody_waits_for_is_given_back, .ttl_s = 0),
        ENGINE_TEST(too_many_that_wait_are_refused, .ttl_s = 0),
        ENGINE_TEST(too_many_open_ones_are_refused, .ttl_s = 0),
        ENGINE_TEST(own_writes_are_bounded, .ttl_s = 0),
        ENGINE_TEST(a_commit_that_fails_leaves_nothing, .ttl_s = 0),
        ENGINE_TEST(a_lock_fails_with_its_group, .ttl_s = 0),
        ENGINE_TEST(a_drop_does_not_wait, .ttl_s = 0),
        ENGINE_TEST(a_retired_partition_is_gone_for_transactions, .ttl_s = 0),
        ENGINE_TEST(a_commit_waits_at_a_fence, .ttl_s = 0),
        ENGINE_TEST(a_host_stops_with_open_transactions, .ttl_s = 0),
    };
    return run_on_every_engine("transaction_wait", tests, ARRAY_COUNT(tests));
}
