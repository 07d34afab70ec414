/* replicated_store_test.c - one node: what an append can come to, restarts, what is refused. */
#include "store/replicated/cluster_testing_int.h"

#include "base/random.h"

enum { SPACE = 10 };

#define APPEND JOURNAL_LANE_APPEND_0

static uint64_t tail_of(TestNode *node, StoreSpace space)
{
    bool found = false;
    return test_tail(node->journal, space, &found).seq;
}

/* ---- who may write ---- */

static void a_transaction_on_a_space_that_is_not_owned_changes_nothing(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    Error refusal = {0};
    assert_status(try_put(node, SPACE, "a", "1", &refusal), STATUS_NOT_OWNER);
    test_create_space(node->journal, SPACE, "a", node->member.incarnation);
    replication_follow(node->replication, SPACE);
    assert_int_equal(role_of(node, SPACE), SPACE_FOLLOWED);
    assert_status(try_put(node, SPACE, "a", "1", &refusal), STATUS_NOT_OWNER);
    assert_int_equal(tail_of(node, SPACE), 0);
    expect_key(node->store, NULL, SPACE, "a", NULL);
    node_own(node, SPACE);
    assert_int_equal(role_of(node, SPACE), SPACE_OWNED);
    put_now(node->store, SPACE, "a", "2");
    expect_key(node->store, NULL, SPACE, "a", "2");
    assert_int_equal(tail_of(node, SPACE), 1);
    assert_status(try_put(node, SPACE + 1, "a", "1", &refusal), STATUS_NOT_OWNER);
    assert_int_equal(count_lost(node), 0);
}

static void places_are_hidden_from_callers_and_known_to_the_node(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    node_own(node, SPACE + 5);
    for (int i = 0; i < 3; i++)
        put_now(node->store, SPACE, "a", "1");
    put_now(node->store, SPACE + 5, "a", "1");

    StoreSpace space = 0;
    bool found = false;
    assert_ok(store_next_space(node->store, 0, &space, &found, err));
    assert_int_equal(space, SPACE);
    assert_ok(store_next_space(node->store, SPACE + 1, &space, &found, err));
    assert_int_equal(space, SPACE + 5);
    assert_ok(store_next_space(node->store, SPACE + 6, &space, &found, err));
    assert_false(found);

    ReplicaPlace places[3];
    assert_int_equal(replication_places(node->replication, places, 1), 2);
    assert_int_equal(replication_places(node->replication, places, 3), 2);
    assert_int_equal(places[0].space, SPACE);
    assert_int_equal(places[0].applied.seq, 3);
    assert_int_equal(places[1].space, SPACE + 5);
    assert_int_equal(places[1].applied.seq, 1);
    assert_int_equal(places[1].applied.epoch, 1);
    JournalPlace tail = test_tail(node->journal, SPACE, &found);
    assert_memory_equal(tail.chain.bytes, places[0].applied.chain.bytes, JOURNAL_CHAIN_BYTES);
}

static void a_space_is_owned_once_and_by_the_tail_of_its_log(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    test_create_space(node->journal, SPACE, "a", node->member.incarnation);
    bool found = false;
    JournalPlace tail = test_tail(node->journal, SPACE, &found);
    JournalPlace wrong = tail;
    wrong.chain.bytes[3] ^= 1;
    Error refusal = {0};
    assert_status(replication_own(node->replication, SPACE, &wrong, cond_after_ms(1000), &refusal),
                  STATUS_CORRUPT);
    assert_int_equal(role_of(node, SPACE), SPACE_ABSENT);
    wrong = tail;
    wrong.seq = 5; /* the log does not come so far */
    assert_status(replication_own(node->replication, SPACE, &wrong, cond_after_ms(100), &refusal),
                  STATUS_UNAVAILABLE);
    assert_int_equal(role_of(node, SPACE), SPACE_ABSENT);
    assert_ok(replication_own(node->replication, SPACE, &tail, cond_after_ms(1000), err));
    assert_status(replication_own(node->replication, SPACE, &tail, cond_after_ms(1000), &refusal),
                  STATUS_CONFLICT);
    put_now(node->store, SPACE, "a", "1");
}

static void expect_no_error(void *ctx, const Error *err)
{
    (void)ctx;
    assert_null(err);
}

static void yielding_waits_for_what_was_taken_and_takes_no_more(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    memory_journal_set_latency(cluster.engine, 20000);
    enum { COUNT = 20 };
    for (int i = 0; i < COUNT - 1; i++) {
        StoreTxn *txn = store_txn_begin(node->store);
        char key[16];
        (void)snprintf(key, sizeof(key), "%02d", i);
        store_txn_put(txn, SPACE, slice_from_cstr(key), SLICE("v"));
        store_txn_commit(txn, (StoreCompletion){.done = expect_no_error});
    }
    put_now(node->store, SPACE, "zz", "last");
    JournalPlace last;
    assert_ok(replication_yield(node->replication, SPACE, &last, err));
    assert_int_equal(role_of(node, SPACE), SPACE_FOLLOWED);
    assert_int_equal(last.seq, tail_of(node, SPACE));
    assert_int_equal(last.seq, seq_of(node, SPACE));
    memory_journal_set_latency(cluster.engine, 0);
    Error refusal = {0};
    assert_status(try_put(node, SPACE, "a", "1", &refusal), STATUS_NOT_OWNER);
    assert_status(replication_yield(node->replication, SPACE, &last, &refusal), STATUS_NOT_OWNER);
    assert_int_equal(count_lost(node), 0); /* it was no surprise */
    node_own(node, SPACE);
    put_now(node->store, SPACE, "a", "1");
}

/* ---- outcomes ---- */

static void an_append_is_done_once_whatever_its_connection_loses(void **state)
{
    (void)state;
    static const MemoryJournalFault FAULTS[] = {MEMORY_JOURNAL_LOSE_REQUEST,
                                                MEMORY_JOURNAL_LOSE_ANSWER, MEMORY_JOURNAL_REFUSE,
                                                MEMORY_JOURNAL_DELAY};
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    for (size_t i = 0; i < ARRAY_COUNT(FAULTS); i++) {
        memory_journal_fail(node->journal, APPEND, FAULTS[i], 0, 2);
        merge_now(node->store, SPACE, "`count", "x");
        assert_int_equal(tail_of(node, SPACE), i + 1);
    }
    while (memory_journal_delayed(cluster.engine) > 0)
        assert_false(memory_journal_deliver(cluster.engine, 0));
    assert_int_equal(tail_of(node, SPACE), ARRAY_COUNT(FAULTS));
    expect_key(node->store, NULL, SPACE, "`count", "xxxx");
    assert_int_equal(role_of(node, SPACE), SPACE_OWNED);
}

static void what_was_surely_not_done_is_refused_and_the_space_stays(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    memory_journal_set_down(cluster.engine, true);
    Commit commit;
    begin_put(node, SPACE, "a", "1", &commit);
    wait_for_append(node);
    fake_clock_advance(&cluster.fake, APPEND_US_MAX + 1);
    assert_status(end_put(&commit), STATUS_THROTTLED);
    assert_int_equal(commit.err.sub, SUB_SYSTEM_BUSY);
    assert_true(commit.err.retry_after_ms > 0);
    memory_journal_set_down(cluster.engine, false);
    put_now(node->store, SPACE, "b", "2");
    expect_key(node->store, NULL, SPACE, "a", NULL);
    assert_int_equal(tail_of(node, SPACE), 1);
    assert_int_equal(count_lost(node), 0);
}

static void an_append_of_unknown_outcome_ends_the_epoch(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    node_own(node, SPACE + 1);
    put_now(node->store, SPACE, "before", "1");
    memory_journal_fail(node->journal, APPEND, MEMORY_JOURNAL_DELAY, 0, 1000000);
    Commit commit, next;
    begin_put(node, SPACE, "a", "1", &commit);
    wait_for_append(node);
    begin_put(node, SPACE, "b", "1", &next);
    while (memory_journal_delayed(cluster.engine) == 0)
        sleep_ms(1);
    fake_clock_advance(&cluster.fake, APPEND_US_MAX + 1);
    assert_status(end_put(&commit), STATUS_TIMEOUT);
    assert_non_null(strstr(commit.err.message, "not known"));
    assert_status(end_put(&next), STATUS_NOT_OWNER);
    memory_journal_fail(node->journal, APPEND, MEMORY_JOURNAL_NO_FAULT, 0, 0);
    Error reason;
    while (count_lost(node) == 0)
        sleep_ms(1);
    assert_int_equal(last_lost(node, &reason), SPACE);
    assert_int_equal(reason.status, STATUS_NOT_OWNER);
    assert_int_equal(role_of(node, SPACE), SPACE_FOLLOWED);
    assert_int_equal(role_of(node, SPACE + 1), SPACE_OWNED);
    expect_key(node->store, NULL, SPACE, "a", NULL);
    put_now(node->store, SPACE + 1, "a", "1");

    /* It comes late, and is found in the log. */
    assert_true(memory_journal_deliver(cluster.engine, 0));
    replication_poke(node->replication);
    assert_ok(replication_wait(node->replication, SPACE, 2, cond_after_ms(20000), err));
    expect_key(node->store, NULL, SPACE, "a", "1");
    expect_key(node->store, NULL, SPACE, "b", NULL);
}

static void slow_appends_refuse_what_comes_next(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    node_own(node, SPACE + 1);
    memory_journal_set_down(cluster.engine, true);
    Commit commit;
    begin_put(node, SPACE, "a", "1", &commit);
    wait_for_append(node);
    assert_ok(store_room(node->store, err));
    fake_clock_advance(&cluster.fake, APPEND_US_SLOW);
    Error refusal = {0};
    assert_status(store_room(node->store, &refusal), STATUS_THROTTLED);
    assert_int_equal(refusal.sub, SUB_SYSTEM_BUSY);
    assert_status(store_health(node->store, &refusal), STATUS_THROTTLED);
    assert_status(try_put(node, SPACE + 1, "b", "1", &refusal), STATUS_THROTTLED);
    assert_int_equal(refusal.sub, SUB_SYSTEM_BUSY);
    assert_status(try_put(node, SPACE + 2, "b", "1", &refusal), STATUS_NOT_OWNER);
    memory_journal_set_down(cluster.engine, false);
    assert_status(end_put(&commit), STATUS_OK);
    put_now(node->store, SPACE + 1, "b", "2");
}

static void begin_large_put(TestNode *node, StoreSpace space, Commit *commit)
{
    *commit = (Commit){.status = STATUS_COUNT};
    latch_init(&commit->done);
    AUTO(mem_free) void *bytes = mem_alloc(APPEND_BYTES_MAX);
    memset(bytes, 'x', APPEND_BYTES_MAX);
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_put(txn, space, SLICE("large"), slice_make(bytes, APPEND_BYTES_MAX));
    store_txn_commit(txn, (StoreCompletion){note_commit, commit});
}

static bool has_under_way(TestNode *node)
{
    pthread_mutex_lock(&node->replication->lock);
    bool is_so = node->replication->under_way > 0;
    pthread_mutex_unlock(&node->replication->lock);
    return is_so;
}

/* The end of the store waits for all of it. */
static void what_waits_for_an_engine_that_is_away_waits_for_one_append(void **state)
{
    (void)state;
    enum { SPACES = 4, ENDS_MS_MAX = 10000 };
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    Commit commits[SPACES];
    for (StoreSpace i = 0; i < SPACES; i++)
        node_own(node, SPACE + i);
    memory_journal_set_down(cluster.engine, true);
    begin_put(node, SPACE, "a", "1", &commits[0]);
    wait_for_append(node);
    for (size_t i = 1; i < SPACES; i++) /* too much for one append */
        begin_large_put(node, SPACE + i, &commits[i]);
    wait_for_under_way(node, SPACES);
    fake_clock_advance(&cluster.fake, APPEND_US_MAX + 1);
    for (int ms = 0; ms < ENDS_MS_MAX && has_under_way(node); ms++)
        sleep_ms(1);
    assert_false(has_under_way(node));
    for (size_t i = 0; i < SPACES; i++) {
        assert_status(end_put(&commits[i]), STATUS_THROTTLED);
        assert_int_equal(commits[i].err.sub, SUB_SYSTEM_BUSY);
        assert_true(commits[i].err.retry_after_ms > 0);
    }

    /* From then on one append tries the engine, and the rest is refused at once. */
    begin_put(node, SPACE, "a", "2", &commits[0]);
    wait_for_append(node);
    Error refusal = {0};
    assert_status(try_put(node, SPACE + 1, "a", "2", &refusal), STATUS_THROTTLED);
    memory_journal_set_down(cluster.engine, false);
    assert_status(end_put(&commits[0]), STATUS_OK);
    begin_put(node, SPACE, "a", "3", &commits[0]);
    put_now(node->store, SPACE + 1, "a", "3");
    assert_status(end_put(&commits[0]), STATUS_OK);
    for (StoreSpace i = 0; i < SPACES; i++)
        expect_key(node->store, NULL, SPACE + i, "large", NULL);
    assert_int_equal(count_lost(node), 0);
}

static void a_full_journal_takes_only_what_makes_room(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    put_now(node->store, SPACE, "a", "1");
    replication_set_full(node->replication, true);
    Error refusal = {0};
    assert_status(store_room(node->store, &refusal), STATUS_THROTTLED);
    assert_int_equal(refusal.sub, SUB_SYSTEM_BUSY);
    assert_status(try_put(node, SPACE, "b", "1", &refusal), STATUS_THROTTLED);
    assert_true(refusal.retry_after_ms > 0);
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_delete(txn, SPACE, SLICE("a"));
    store_txn_makes_room(txn);
    assert_ok(store_txn_commit_wait(txn, err));
    expect_key(node->store, NULL, SPACE, "a", NULL);
    replication_set_full(node->replication, false);
    put_now(node->store, SPACE, "b", "2");
}

/* Under load there is always a write before. */
static void a_full_journal_also_refuses_what_waits_for_another_write(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    memory_journal_set_down(cluster.engine, true);
    Commit first, second;
    begin_put(node, SPACE, "a", "1", &first);
    wait_for_append(node);
    replication_set_full(node->replication, true);
    begin_put(node, SPACE, "b", "1", &second);
    memory_journal_set_down(cluster.engine, false);
    assert_status(end_put(&first), STATUS_OK);
    assert_status(end_put(&second), STATUS_THROTTLED);
    assert_int_equal(second.err.sub, SUB_SYSTEM_BUSY);
    expect_key(node->store, NULL, SPACE, "a", "1");
    expect_key(node->store, NULL, SPACE, "b", NULL);
}

static void lost_entries_refuse_the_space_loudly(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    put_now(node->store, SPACE, "a", "1");
    memory_journal_backup(cluster.engine);
    put_now(node->store, SPACE, "b", "1");
    memory_journal_restore(cluster.engine);
    Error refusal = {0}, reason;
    assert_status(try_put(node, SPACE, "c", "1", &refusal), STATUS_TIMEOUT);
    while (count_lost(node) == 0)
        sleep_ms(1);
    assert_int_equal(last_lost(node, &reason), SPACE);
    assert_int_equal(reason.status, STATUS_CORRUPT);
    assert_int_equal(role_of(node, SPACE), SPACE_ABSENT);
    assert_status(try_put(node, SPACE, "c", "1", &refusal), STATUS_NOT_OWNER);
    bool found = false;
    JournalPlace tail = test_tail(node->journal, SPACE, &found);
    assert_status(replication_own(node->replication, SPACE, &tail, cond_after_ms(1000), &refusal),
                  STATUS_CORRUPT);
    /* Following it anew begins with nothing, and so agrees with the log. */
    replication_follow(node->replication, SPACE);
    assert_ok(replication_wait(node->replication, SPACE, 1, cond_after_ms(20000), err));
    expect_key(node->store, NULL, SPACE, "a", "1");
    expect_key(node->store, NULL, SPACE, "b", NULL);
}

/* ---- restarts ---- */

static void what_rocksdb_has_lost_comes_from_the_journal(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    for (int i = 0; i < 50; i++)
        merge_now(node->store, SPACE, "`count", "x");
    TestFolder old;
    node_copy_disk(node, &old);
    for (int i = 0; i < 50; i++)
        merge_now(node->store, SPACE, "`count", "y");
    node_close_store(node);
    node_replace_disk(node, &old);
    node_open_store(node);
    ReplicaPlace place = replication_place(node->replication, SPACE);
    assert_int_equal(place.role, SPACE_FOLLOWED);
    assert_int_equal(place.applied.epoch, 1);
    Error refusal = {0};
    assert_status(try_put(node, SPACE, "a", "1", &refusal), STATUS_NOT_OWNER);
    node_own(node, SPACE);
    assert_int_equal(seq_of(node, SPACE), 100);
    char expected[101];
    memset(expected, 'x', 50);
    memset(expected + 50, 'y', 50);
    expected[100] = '\0';
    expect_key(node->store, NULL, SPACE, "`count", expected);
    put_now(node->store, SPACE, "a", "1");
}

static void a_place_is_durable_after_a_sync(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    for (int i = 0; i < 10; i++)
        put_now(node->store, SPACE, "a", "1");
    ReplicaPlace place = {0};
    while (place.durable_seq < 10) {
        place = replication_place(node->replication, SPACE);
        assert_true(place.durable_seq <= place.applied.seq);
        sleep_ms(5);
    }
    assert_int_equal(place.durable_seq, 10);
}

static void a_space_that_was_forgotten_is_absent_also_after_a_restart(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    for (StoreSpace space = SPACE; space < SPACE + 4; space++) {
        node_own(node, space);
        put_now(node->store, space, "a", "1");
    }
    JournalPlace last;
    Error refusal = {0};
    assert_status(replication_forget(node->replication, SPACE, &refusal), STATUS_CONFLICT);
    expect_key(node->store, NULL, SPACE, "a", "1");
    put_now(node->store, SPACE, "a", "2"); /* it is owned as before */
    assert_ok(replication_yield(node->replication, SPACE, &last, err));
    assert_ok(replication_forget(node->replication, SPACE, err));
    assert_ok(store_drop_spaces(node->store, SPACE + 2, SPACE + 3, err));
    for (int i = 0; i < 2; i++) {
        ReplicaPlace places[4];
        assert_int_equal(replication_places(node->replication, places, 4), 1);
        assert_int_equal(places[0].space, SPACE + 1);
        for (StoreSpace space = SPACE; space < SPACE + 4; space++)
            expect_key(node->store, NULL, space, "a", space == SPACE + 1 ? "1" : NULL);
        node_close_store(node);
        node_open_store(node);
    }
}

/* A place is marked before the keys are dropped, and a crash may come in between. */
static void a_space_that_is_partly_there_is_dropped_at_the_start(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    node_own(node, SPACE + 1);
    put_now(node->store, SPACE, "a", "1");
    put_now(node->store, SPACE + 1, "a", "1");
    AUTO(tree_done) Tree tree = {0};
    JournalPlace place = replication_place(node->replication, SPACE).applied;
    place_put(&tree, SPACE, STORED_PARTLY, &place);
    EngineWrites writes = {.tree = tree};
    pthread_mutex_lock(&node->replication->writing);
    assert_ok(replication_write(node->replication, &writes, 1, err));
    pthread_mutex_unlock(&node->replication->writing);
    node_close_store(node);
    node_open_store(node);
    assert_int_equal(role_of(node, SPACE), SPACE_ABSENT);
    assert_int_equal(role_of(node, SPACE + 1), SPACE_FOLLOWED);
    expect_key(node->store, NULL, SPACE, "a", NULL);
    expect_key(node->store, NULL, SPACE + 1, "a", "1");
    node_own(node, SPACE); /* from the beginning of its log */
    expect_key(node->store, NULL, SPACE, "a", "1");
}

static void a_place_that_is_not_readable_is_said_at_the_start(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    put_now(node->store, SPACE, "a", "1");
    node_close_store(node);
    RocksdbStoreOptions options = {.path = node->folder.path, .merge = &TEST_MERGE};
    assert_ok(rocksdb_store_open(&options, &node->store, err));
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_put(txn, STORE_SPACE_MAX + 1, SLICE("P\0\0\0\0\0\0\0\x0A"), SLICE("\2"));
    commit_now(txn);
    store_close(node->store);
    ReplicatedStoreOptions replicated = {
        .local = options,
        .journal = node->journal,
        .hooks = {&node->events, note_applied, note_lost, note_behind},
        .clock = node->clock};
    Error refusal = {0};
    assert_status(replicated_store_open(&replicated, &node->store, &node->replication, &refusal),
                  STATUS_CORRUPT);
    node->store = NULL;
}

static void a_checkpoint_has_the_places_of_what_it_has(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    for (int i = 0; i < 7; i++)
        merge_now(node->store, SPACE, "`count", "x");
    TestFolder copy;
    node_copy_disk(node, &copy);
    merge_now(node->store, SPACE, "`count", "x");
    node_close_store(node);
    node_replace_disk(node, &copy);
    memory_journal_cut(node->journal, true); /* or it would catch up at once */
    node_open_store(node);
    expect_key(node->store, NULL, SPACE, "`count", "xxxxxxx");
    assert_int_equal(seq_of(node, SPACE), 7);
    memory_journal_cut(node->journal, false);
    node_own(node, SPACE);
    expect_key(node->store, NULL, SPACE, "`count", "xxxxxxxx");
}

/* ---- groups ---- */

static void a_group_is_cut_and_a_larger_transaction_is_an_entry_of_its_own(void **state)
{
    (void)state;
    enum { SPACES = 6, COUNT = 60, VALUE = 100000 };
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    for (StoreSpace i = 0; i < SPACES; i++)
        node_own(node, SPACE + i);
    char *value = mem_alloc(20 * VALUE);
    Random random;
    random_init(&random, 3);
    for (size_t i = 0; i + 8 <= (size_t)20 * VALUE; i += 8)
        memcpy(value + i, &(uint64_t){random_u64(&random)}, 8);
    memory_journal_set_latency(cluster.engine, 3000); /* so that they gather */
    Commit commits[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        commits[i] = (Commit){.status = STATUS_COUNT};
        latch_init(&commits[i].done);
        StoreTxn *txn = store_txn_begin(node->store);
        store_txn_put(txn, SPACE + i % SPACES, SLICE("k"),
                      slice_make(value, i == 20 ? 20 * VALUE : VALUE));
        store_txn_commit(txn, (StoreCompletion){note_commit, &commits[i]});
    }
    for (size_t i = 0; i < COUNT; i++)
        assert_status(end_put(&commits[i]), STATUS_OK);
    memory_journal_set_latency(cluster.engine, 0);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 20);
    size_t large = 0;
    for (StoreSpace i = 0; i < SPACES; i++) {
        JournalEntries entries = {0};
        assert_ok(journal_read(node->journal, JOURNAL_LANE_ADMIN, SPACE + i, 0, (size_t)64 << 20,
                               &arena, &entries, err));
        for (size_t j = 0; j < entries.count; j++)
            large += entries.items[j].bytes.len > APPEND_BYTES_MAX;
    }
    assert_int_equal(large, 1);
    mem_free(value);
}

static void a_transaction_that_no_entry_can_hold_is_refused_alone(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    node_own(node, SPACE);
    size_t len = (size_t)36 << 20;
    char *value = mem_alloc(len);
    Random random;
    random_init(&random, 3);
    for (size_t i = 0; i + 8 <= len; i += 8)
        memcpy(value + i, &(uint64_t){random_u64(&random)}, 8);
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_put(txn, SPACE, SLICE("a"), slice_make(value, len));
    store_txn_put(txn, SPACE, SLICE("b"), slice_make(value, len));
    mem_free(value);
    Error refusal = {0};
    assert_status(store_txn_commit_wait(txn, &refusal), STATUS_TOO_LARGE);
    put_now(node->store, SPACE, "c", "1");
    expect_key(node->store, NULL, SPACE, "a", NULL);
    assert_int_equal(seq_of(node, SPACE), 1);
}

typedef struct Order {
    _Atomic uint64_t *next; /* of the space */
    uint64_t number;
} Order;

static void expect_order(void *ctx, const Error *err)
{
    Order *order = ctx;
    assert_null(err);
    assert_int_equal(atomic_fetch_add(order->next, 1), order->number);
    mem_free(order);
}

static void transactions_of_a_space_end_in_order_and_a_barrier_after_all(void **state)
{
    (void)state;
    enum { SPACES = 5, COUNT = 3000 };
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *node = &cluster.nodes[0];
    for (StoreSpace i = 0; i < SPACES; i++)
        node_own(node, SPACE + i);
    MemoryJournalChaos chaos = {.lose_request = 20, .lose_answer = 20, .refuse = 20};
    memory_journal_set_chaos(cluster.engine, &chaos);
    _Atomic uint64_t next[SPACES] = {0};
    uint64_t sent[SPACES] = {0};
    Random random;
    random_init(&random, 7);
    for (size_t i = 0; i < COUNT; i++) {
        size_t at = random_below(&random, SPACES);
        Order *order = MEM_NEW(Order);
        *order = (Order){&next[at], sent[at]++};
        StoreTxn *txn = store_txn_begin(node->store);
        store_txn_merge(txn, SPACE + at, SLICE("`n"), SLICE("x"));
        store_txn_commit(txn, (StoreCompletion){expect_order, order});
        if (i % 500 == 0)
            commit_now(store_txn_begin(node->store)); /* a barrier */
        if (i % 500 == 0)
            assert_int_equal(atomic_load(&next[at]), sent[at]);
    }
    commit_now(store_txn_begin(node->store));
    for (size_t i = 0; i < SPACES; i++)
        assert_int_equal(atomic_load(&next[i]), sent[i]);
    memory_journal_set_chaos(cluster.engine, NULL);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_on_a_space_that_is_not_owned_changes_nothing),
        cmocka_unit_test(places_are_hidden_from_callers_and_known_to_the_node),
        cmocka_unit_test(a_space_is_owned_once_and_by_the_tail_of_its_log),
        cmocka_unit_test(yielding_waits_for_what_was_taken_and_takes_no_more),
        cmocka_unit_test(an_append_is_done_once_whatever_its_connection_loses),
        cmocka_unit_test(what_was_surely_not_done_is_refused_and_the_space_stays),
        cmocka_unit_test(an_append_of_unknown_outcome_ends_the_epoch),
        cmocka_unit_test(slow_appends_refuse_what_comes_next),
        cmocka_unit_test(what_waits_for_an_engine_that_is_away_waits_for_one_append),
        cmocka_unit_test(a_full_journal_takes_only_what_makes_room),
        cmocka_unit_test(a_full_journal_also_refuses_what_waits_for_another_write),
        cmocka_unit_test(lost_entries_refuse_the_space_loudly),
        cmocka_unit_test(what_rocksdb_has_lost_comes_from_the_journal),
        cmocka_unit_test(a_place_is_durable_after_a_sync),
        cmocka_unit_test(a_space_that_was_forgotten_is_absent_also_after_a_restart),
        cmocka_unit_test(a_space_that_is_partly_there_is_dropped_at_the_start),
        cmocka_unit_test(a_place_that_is_not_readable_is_said_at_the_start),
        cmocka_unit_test(a_checkpoint_has_the_places_of_what_it_has),
        cmocka_unit_test(a_group_is_cut_and_a_larger_transaction_is_an_entry_of_its_own),
        cmocka_unit_test(a_transaction_that_no_entry_can_hold_is_refused_alone),
        cmocka_unit_test(transactions_of_a_space_end_in_order_and_a_barrier_after_all),
    };
    return cmocka_run_group_tests_name("replicated_store", tests, NULL, NULL);
}
