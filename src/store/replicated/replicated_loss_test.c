/* replicated_loss_test.c - one node that loses a space: RocksDB refuses what the journal has, the
 * outcome of an append is unknown while the space is yielded, writes come while it closes. */
#include "store/replicated/cluster_testing_int.h"

#include "base/thread.h"

enum { SPACE = 10 };

#define APPEND JOURNAL_LANE_APPEND_0

/* ---- RocksDB fails ---- */

/* Lives longer than the node, whose threads use it. */
typedef struct BrokenLocal {
    EngineOps ops; /* first */
    const EngineOps *inner;
    struct BrokenLocal *self;
    _Atomic bool fails;
    Status status;        /* with which it fails */
    _Atomic bool is_slow; /* in telling its room */
    _Atomic bool is_full; /* even for what makes room */
    _Atomic unsigned writes;
    _Atomic unsigned looks; /* for room, while it is full */
} BrokenLocal;

static BrokenLocal *broken_of(const Engine *engine)
{
    const BrokenLocal *local = CONTAINER_OF(engine->ops, const BrokenLocal, ops);
    return local->self;
}

static Status broken_write(Engine *engine, const EngineWrites *writes, size_t count, Error *err)
{
    BrokenLocal *local = broken_of(engine);
    (void)atomic_fetch_add(&local->writes, 1);
    if (atomic_load(&local->fails))
        return error_set(err, local->status, SUB_NONE, "a test wants this write to fail");
    return local->inner->write(engine, writes, count, err);
}

static Status broken_probe(Engine *engine, Error *err)
{
    return broken_write(engine, NULL, 0, err);
}

static Status slow_room(Engine *engine, EngineNeed need, size_t bytes, Error *err)
{
    BrokenLocal *local = broken_of(engine);
    while (atomic_load(&local->is_slow))
        sleep_ms(1);
    if (atomic_load(&local->is_full)) {
        (void)atomic_fetch_add(&local->looks, 1);
        return error_set(err, STATUS_IO, SUB_NONE, "a test wants this disk to be full");
    }
    return local->inner->room(engine, need, bytes, err);
}

static void break_local(TestNode *node, BrokenLocal *local)
{
    Engine *engine = node->replication->local;
    local->inner = engine->ops;
    local->self = local;
    local->ops = *engine->ops;
    local->ops.write = broken_write;
    local->ops.probe = broken_probe;
    local->ops.room = slow_room;
    engine->ops = &local->ops;
}

static void refuse_a_write(Status how)
{
    BrokenLocal local = {.status = how};
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    break_local(node, &local);
    node_own(node, SPACE);
    node_own(node, SPACE + 1);
    put_now(node->store, SPACE, "a", "1");
    atomic_store(&local.fails, true);
    Error refusal = {0}, reason;
    assert_status(try_put(node, SPACE, "b", "1", &refusal), STATUS_TIMEOUT);
    assert_non_null(strstr(refusal.message, "not known"));
    while (count_lost(node) < 2)
        sleep_ms(1);
    (void)last_lost(node, &reason);
    assert_int_equal(reason.status, STATUS_NOT_OWNER);
    assert_status(try_put(node, SPACE, "c", "1", &refusal), STATUS_NOT_OWNER);
    assert_status(try_put(node, SPACE + 1, "c", "1", &refusal), STATUS_NOT_OWNER);
    assert_int_equal(seq_of(node, SPACE), 1);
    bool found = false;
    JournalPlace tail = test_tail(node->journal, SPACE, &found);
    assert_int_equal(tail.seq, 2);
    assert_status(replication_own(node->replication, SPACE, &tail, cond_after_ms(50), &refusal),
                  STATUS_IO);
    tail = test_tail(node->journal, SPACE + 1, &found); /* also if nothing is missing */
    assert_status(replication_own(node->replication, SPACE + 1, &tail, cond_after_ms(50), &refusal),
                  STATUS_IO);

    /* The follower tries, too, and goes on trying. */
    replication_poke(node->replication);
    sleep_ms(100);
    assert_int_equal(role_of(node, SPACE), SPACE_FOLLOWED);

    /* It is whole again when RocksDB writes again. */
    atomic_store(&local.fails, false);
    assert_ok(replication_wait(node->replication, SPACE, 2, cond_after_ms(20000), err));
    expect_key(node->store, NULL, SPACE, "b", "1");
    expect_key(node->store, NULL, SPACE, "c", NULL);
    node_own(node, SPACE);
    put_now(node->store, SPACE, "d", "1");
    assert_int_equal(count_behind(node), 0);
}

/* Damage that RocksDB finds is this node's, and not another history of the log. */
static void a_write_that_rocksdb_refuses_gives_up_all_spaces(void **state)
{
    (void)state;
    refuse_a_write(STATUS_IO);
    refuse_a_write(STATUS_CORRUPT);
}

/* A writer that is told of the outcome, and writes again at once. */
typedef struct Rewrite {
    TestNode *node;
    Commit first;
    Commit same;  /* to the same space */
    Commit other; /* to another one */
} Rewrite;

static void write_again(void *ctx, const Error *err)
{
    enum { APPENDS_MS = 100 };
    Rewrite *rewrite = ctx;
    begin_put(rewrite->node, SPACE, "b", "1", &rewrite->same);
    begin_put(rewrite->node, SPACE + 1, "b", "1", &rewrite->other);
    sleep_ms(APPENDS_MS); /* so that a lane would have appended it */
    note_commit(&rewrite->first, err);
}

static void nothing_is_appended_after_what_rocksdb_has_refused(void **state)
{
    (void)state;
    BrokenLocal local = {.status = STATUS_IO};
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    break_local(node, &local);
    node_own(node, SPACE);
    node_own(node, SPACE + 1);
    atomic_store(&local.fails, true);
    Rewrite rewrite = {.node = node};
    latch_init(&rewrite.first.done);
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_put(txn, SPACE, SLICE("a"), SLICE("1"));
    store_txn_commit(txn, (StoreCompletion){write_again, &rewrite});
    assert_status(end_put(&rewrite.first), STATUS_TIMEOUT);
    assert_status(end_put(&rewrite.same), STATUS_NOT_OWNER);
    assert_status(end_put(&rewrite.other), STATUS_NOT_OWNER);
    bool found = false;
    assert_int_equal(test_tail(node->journal, SPACE, &found).seq, 1);
    assert_int_equal(test_tail(node->journal, SPACE + 1, &found).seq, 0);
    while (count_lost(node) < 2)
        sleep_ms(1);
    atomic_store(&local.fails, false);
    assert_ok(replication_wait(node->replication, SPACE, 1, cond_after_ms(20000), err));
    expect_key(node->store, NULL, SPACE, "a", "1");
    node_own(node, SPACE);
    put_now(node->store, SPACE, "b", "2");
}

static void what_waits_in_a_space_that_is_lost_was_surely_not_done(void **state)
{
    (void)state;
    BrokenLocal local = {.status = STATUS_IO};
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    break_local(node, &local);
    node_own(node, SPACE);
    put_now(node->store, SPACE, "a", "1");
    memory_journal_backup(cluster.engine);
    put_now(node->store, SPACE, "b", "1");
    memory_journal_set_down(cluster.engine, true);
    Commit first, second;
    begin_put(node, SPACE, "c", "1", &first);
    wait_for_append(node);
    begin_put(node, SPACE, "d", "1", &second);
    wait_for_under_way(node, 2);
    atomic_store(&local.is_slow, true); /* so that it is not the lane that refuses it */
    memory_journal_restore(cluster.engine);
    memory_journal_set_down(cluster.engine, false);
    assert_status(end_put(&first), STATUS_TIMEOUT);
    assert_status(end_put(&second), STATUS_NOT_OWNER);
    atomic_store(&local.is_slow, false);
    while (count_lost(node) == 0)
        sleep_ms(1);
    Error reason;
    (void)last_lost(node, &reason);
    assert_int_equal(reason.status, STATUS_CORRUPT);
}

/* RocksDB would take no more writes until a restart if its log met the end of the disk. */
static void a_full_disk_stops_followed_spaces_until_there_is_room(void **state)
{
    (void)state;
    enum { STOPS_MS = 400, LOOKS_MAX = 25 };
    BrokenLocal local = {.status = STATUS_IO};
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    break_local(b, &local);
    node_own(a, SPACE);
    put_now(a->store, SPACE, "a", "1");
    replication_follow(b->replication, SPACE);
    expect_caught_up(b, a, SPACE);
    unsigned writes = atomic_load(&local.writes);

    atomic_store(&local.is_full, true);
    put_now(a->store, SPACE, "b", "1");
    replication_poke(b->replication);
    sleep_ms(STOPS_MS);
    assert_int_equal(seq_of(b, SPACE), 1);
    assert_int_equal(role_of(b, SPACE), SPACE_FOLLOWED);
    /* It looks again and again, but does not read the log all the time. */
    assert_in_range(atomic_load(&local.looks), 1, LOOKS_MAX);
    JournalPlace tail;
    Error refusal = {0};
    assert_ok(node_take_over(b, a, SPACE, &tail, err));
    assert_status(replication_own(b->replication, SPACE, &tail, cond_after_ms(50), &refusal),
                  STATUS_IO);
    assert_int_equal(atomic_load(&local.writes), writes);

    atomic_store(&local.is_full, false);
    assert_ok(replication_wait(b->replication, SPACE, 2, cond_after_ms(20000), err));
    assert_ok(replication_own(b->replication, SPACE, &tail, cond_after_ms(10000), err));
    expect_key(b->store, NULL, SPACE, "b", "1");
    assert_int_equal(count_behind(b), 0);
}

/* ---- yielding ---- */

typedef struct Yield {
    TestNode *node;
    pthread_t thread;
    Status status;
    _Atomic bool has_ended;
} Yield;

static void *run_yield(void *ctx)
{
    Yield *yield = ctx;
    JournalPlace last;
    Error err;
    yield->status = replication_yield(yield->node->replication, SPACE, &last, &err);
    atomic_store(&yield->has_ended, true);
    return NULL;
}

/* Begins, and waits until the space takes no more. */
static void begin_yield(TestNode *node, Yield *yield)
{
    *yield = (Yield){.node = node};
    assert_ok(thread_start(&yield->thread, "yield", run_yield, yield, err));
    for (bool is_closing = false; !is_closing;) {
        pthread_mutex_lock(&node->replication->lock);
        is_closing = spaces_find(node->replication, SPACE)->is_closing;
        pthread_mutex_unlock(&node->replication->lock);
    }
}

static Status end_yield(Yield *yield)
{
    pthread_join(yield->thread, NULL);
    return yield->status;
}

/* An empty transaction whose completion holds the applier up, after what was before it. */
static void hold_applier(void *ctx, const Error *err)
{
    assert_null(err);
    sleep_ms(300);
    latch_post(ctx);
}

static void begin_holding(TestNode *node, Latch *held)
{
    latch_init(held);
    size_t count = 0;
    store_txn_commit(store_txn_begin(node->store), (StoreCompletion){hold_applier, held});
    while (count == 0) {
        pthread_mutex_lock(&node->replication->lock);
        count = node->replication->barrier_count;
        pthread_mutex_unlock(&node->replication->lock);
    }
}

/* Its clients know already that the outcome is unknown when the space is not lost yet. */
static void a_space_that_is_being_lost_is_not_yielded(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    memory_journal_fail(node->journal, APPEND, MEMORY_JOURNAL_DELAY, 0, 1000000);
    Commit commit;
    Latch held;
    Yield yield;
    begin_put(node, SPACE, "a", "1", &commit);
    wait_for_append(node);
    begin_holding(node, &held);
    begin_yield(node, &yield);
    while (memory_journal_delayed(cluster.engine) == 0)
        sleep_ms(1);
    fake_clock_advance(&cluster.fake, APPEND_US_MAX + 1);
    assert_status(end_put(&commit), STATUS_TIMEOUT);
    assert_status(end_yield(&yield), STATUS_NOT_OWNER);
    latch_wait(&held);
    latch_done(&held);
    while (count_lost(node) == 0)
        sleep_ms(1);
    assert_int_equal(role_of(node, SPACE), SPACE_FOLLOWED);
}

static void a_space_whose_write_rocksdb_refuses_is_not_yielded(void **state)
{
    (void)state;
    BrokenLocal local = {.status = STATUS_IO};
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    break_local(node, &local);
    node_own(node, SPACE);
    atomic_store(&local.fails, true);
    memory_journal_set_down(cluster.engine, true);
    Commit commit;
    Latch held;
    Yield yield;
    begin_put(node, SPACE, "a", "1", &commit);
    wait_for_append(node);
    begin_holding(node, &held);
    begin_yield(node, &yield);
    memory_journal_set_down(cluster.engine, false);
    assert_status(end_put(&commit), STATUS_TIMEOUT);
    assert_status(end_yield(&yield), STATUS_NOT_OWNER);
    latch_wait(&held);
    latch_done(&held);
    while (count_lost(node) == 0)
        sleep_ms(1);
    atomic_store(&local.fails, false);
}

typedef struct Stream {
    TestNode *node;
    pthread_t thread;
    _Atomic bool *is_stopping;
} Stream;

/* The client is told, and has time to write again before the transaction is over. */
static void note_slowly(void *ctx, const Error *err)
{
    (void)err; /* refused as soon as the space is another's */
    latch_post(ctx);
    sleep_ms(3);
}

static void *write_all_the_time(void *ctx)
{
    Stream *stream = ctx;
    while (!atomic_load(stream->is_stopping)) {
        Latch done;
        latch_init(&done);
        StoreTxn *txn = store_txn_begin(stream->node->store);
        store_txn_put(txn, SPACE, SLICE("k"), SLICE("v"));
        store_txn_commit(txn, (StoreCompletion){note_slowly, &done});
        latch_wait(&done);
        latch_done(&done);
    }
    return NULL;
}

/* Neither a yield nor a drop waits for what comes after it has begun. */
static void a_steady_stream_of_writes_ends_when_the_space_closes(void **state)
{
    (void)state;
    enum { STREAMS = 4, YIELD_MS_MAX = 5000 };
    for (int drops = 0; drops < 2; drops++) {
        AUTO(cluster_close) TestCluster cluster;
        cluster_open(&cluster, 1);
        TestNode *node = &cluster.nodes[0];
        node_own(node, SPACE);
        memory_journal_set_latency(cluster.engine, 3000);
        _Atomic bool is_stopping = false;
        Stream streams[STREAMS];
        for (size_t i = 0; i < STREAMS; i++) {
            streams[i] = (Stream){.node = node, .is_stopping = &is_stopping};
            assert_ok(
                thread_start(&streams[i].thread, "stream", write_all_the_time, &streams[i], err));
        }
        while (seq_of(node, SPACE) < 20)
            sleep_ms(1);
        Yield yield;
        begin_yield(node, &yield);
        for (int ms = 0; !atomic_load(&yield.has_ended) && ms < YIELD_MS_MAX; ms++)
            sleep_ms(1);
        bool has_ended = atomic_load(&yield.has_ended);
        if (drops > 0)
            assert_ok(replication_forget(node->replication, SPACE, err));
        atomic_store(&is_stopping, true);
        for (size_t i = 0; i < STREAMS; i++)
            pthread_join(streams[i].thread, NULL);
        assert_status(end_yield(&yield), STATUS_OK);
        assert_true(has_ended);
        memory_journal_set_latency(cluster.engine, 0);
        assert_int_equal(count_lost(node), 0);
        node_own(node, SPACE);
        put_now(node->store, SPACE, "k", "w");
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_that_rocksdb_refuses_gives_up_all_spaces),
        cmocka_unit_test(nothing_is_appended_after_what_rocksdb_has_refused),
        cmocka_unit_test(what_waits_in_a_space_that_is_lost_was_surely_not_done),
        cmocka_unit_test(a_full_disk_stops_followed_spaces_until_there_is_room),
        cmocka_unit_test(a_space_that_is_being_lost_is_not_yielded),
        cmocka_unit_test(a_space_whose_write_rocksdb_refuses_is_not_yielded),
        cmocka_unit_test(a_steady_stream_of_writes_ends_when_the_space_closes),
    };
    return cmocka_run_group_tests_name("replicated_loss", tests, NULL, NULL);
}
