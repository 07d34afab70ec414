/* replication_test.c - several nodes: following, handing over, taking over, seeding, digests. */
#include "store/replicated/cluster_testing_int.h"

#include "base/encoding.h"
#include "base/random.h"
#include "base/test_seed.h"
#include "base/thread.h"

enum { SPACE = 10 };

typedef struct Digest {
    uint8_t bytes[REPLICATION_DIGEST_BYTES];
} Digest;

static Digest digest_of(TestNode *node, StoreSpace space, JournalPlace *at)
{
    Digest digest;
    assert_ok(replication_digest(node->replication, space, at, digest.bytes, err));
    return digest;
}

/* Both have come equally far, and show the same. */
static void expect_equal(TestNode *a, TestNode *b, StoreSpace space)
{
    JournalPlace at_a, at_b;
    Digest of_a = digest_of(a, space, &at_a);
    Digest of_b = digest_of(b, space, &at_b);
    assert_int_equal(at_a.seq, at_b.seq);
    assert_memory_equal(at_a.chain.bytes, at_b.chain.bytes, JOURNAL_CHAIN_BYTES);
    assert_memory_equal(of_a.bytes, of_b.bytes, sizeof(of_a.bytes));
}

static void seed(TestNode *target, TestNode *source, StoreSpace space, size_t bytes_max)
{
    AUTO(seed_target_close) SeedTarget *to = NULL;
    AUTO(seed_source_close) SeedSource *from = NULL;
    assert_ok(seed_target_open(target->replication, space, &to, err));
    assert_ok(seed_source_open(source->replication, space, &from, err));
    AUTO(buf_done) Buf piece;
    buf_init(&piece, (size_t)1 << 20);
    for (bool is_last = false; !is_last;) {
        assert_ok(seed_source_next(from, bytes_max, &piece, &is_last, err));
        assert_ok(seed_target_put(to, buf_view(&piece), err));
    }
    assert_ok(seed_target_finish(to, err));
}

/* ---- following ---- */

static void a_follower_has_what_its_owner_has_and_takes_no_writes(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    replication_follow(b->replication, SPACE);
    for (int i = 0; i < 200; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%03d", i % 70);
        if (i % 5 == 3)
            delete_now(a->store, SPACE, key);
        else
            put_now(a->store, SPACE, key, "value");
        merge_now(a->store, SPACE, "~set", i % 3 == 0 ? "-a+b" : "+a");
    }
    expect_caught_up(b, a, SPACE);
    expect_equal(a, b, SPACE);
    expect_key(b->store, NULL, SPACE, "~set", "ab");
    Error refusal = {0};
    assert_status(try_put(b, SPACE, "k", "v", &refusal), STATUS_NOT_OWNER);
    while (count_applied(b) == 0) /* told just after readers see it */
        sleep_ms(1);
    assert_int_equal(count_applied(a), 0);
    assert_int_equal(replication_place(b->replication, SPACE).applied.epoch, 1);
}

static void a_follower_begins_anywhere_and_goes_on_after_a_restart(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    for (int i = 0; i < 100; i++)
        merge_now(a->store, SPACE, "`n", "x");
    replication_follow(b->replication, SPACE);
    expect_caught_up(b, a, SPACE);
    node_close_store(b);
    for (int i = 0; i < 100; i++)
        merge_now(a->store, SPACE, "`n", "y");
    node_open_store(b);
    assert_int_equal(role_of(b, SPACE), SPACE_FOLLOWED);
    expect_caught_up(b, a, SPACE);
    expect_equal(a, b, SPACE);
}

/* Longer than what is read in a round, so that it is one of its own. */
static void a_transaction_of_16_mb_is_followed(void **state)
{
    (void)state;
    enum { VALUES = 16, VALUE_BYTES = 1 << 20 };
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    replication_follow(b->replication, SPACE);
    put_now(a->store, SPACE, "before", "1");
    Random random;
    random_init(&random, test_seed());
    AUTO(mem_free) void *bytes = mem_alloc(VALUE_BYTES);
    StoreTxn *txn = store_txn_begin(a->store);
    for (int i = 0; i < VALUES; i++) {
        for (size_t at = 0; at < VALUE_BYTES; at += sizeof(uint64_t)) /* nothing to compress */
            be64_put((uint8_t *)bytes + at, random_u64(&random));
        char key[16];
        (void)snprintf(key, sizeof(key), "%02d", i);
        store_txn_put(txn, SPACE, slice_from_cstr(key), slice_make(bytes, VALUE_BYTES));
    }
    uint64_t before = seq_of(a, SPACE);
    assert_ok(store_txn_commit_wait(txn, err));
    assert_int_equal(seq_of(a, SPACE), before + 1);
    put_now(a->store, SPACE, "after", "1");
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    JournalEntries entries;
    assert_ok(
        journal_read(b->journal, JOURNAL_LANE_ADMIN, SPACE, before, 1, &arena, &entries, err));
    assert_true(entries.items[0].bytes.len > (size_t)VALUES * VALUE_BYTES);
    expect_caught_up(b, a, SPACE);
    expect_equal(a, b, SPACE);
}

static void readers_of_a_follower_wait_for_a_write(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    replication_follow(b->replication, SPACE);
    Error refusal = {0};
    assert_status(replication_wait(b->replication, SPACE, 1, cond_after_ms(1), &refusal),
                  STATUS_TIMEOUT);
    put_now(a->store, SPACE, "k", "v");
    assert_ok(replication_wait(b->replication, SPACE, 1, cond_after_ms(20000), err));
    expect_key(b->store, NULL, SPACE, "k", "v");
}

static void note_end(void *ctx, const Error *err)
{
    (void)err; /* what it came to, the log says */
    atomic_store((_Atomic bool *)ctx, true);
}

/* What a follower has read is not applied while no standby has it. */
static void nothing_is_applied_that_the_engine_may_forget(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    put_now(a->store, SPACE, "k", "1");
    replication_follow(b->replication, SPACE);
    expect_caught_up(b, a, SPACE);

    memory_journal_set_standby(cluster.engine, false);
    StoreTxn *txn = store_txn_begin(a->store);
    store_txn_put(txn, SPACE, SLICE("k"), SLICE("2"));
    _Atomic bool ended = false;
    store_txn_commit(txn, (StoreCompletion){.done = note_end, .ctx = &ended});
    /* A crash shows what no standby has, once the append has come. */
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    JournalEntries entries = {0};
    while (entries.count == 0) {
        memory_journal_crash_restart(cluster.engine);
        assert_ok(
            journal_read(b->journal, JOURNAL_LANE_ADMIN, SPACE, 1, 1000, &arena, &entries, err));
    }
    replication_poke(b->replication);
    Error refusal = {0};
    assert_status(replication_wait(b->replication, SPACE, 2, cond_after_ms(200), &refusal),
                  STATUS_TIMEOUT);
    memory_journal_promote(cluster.engine); /* and never was */
    JournalPlace tail;
    assert_ok(node_take_over(b, a, SPACE, &tail, err));
    assert_int_equal(tail.seq, 1);
    assert_ok(replication_own(b->replication, SPACE, &tail, cond_after_ms(10000), err));
    expect_key(b->store, NULL, SPACE, "k", "1");
    put_now(b->store, SPACE, "k", "3");
    while (!atomic_load(&ended))
        sleep_ms(1);
    replication_poke(a->replication);
    assert_ok(replication_wait(a->replication, SPACE, 2, cond_after_ms(20000), err));
    expect_equal(a, b, SPACE);
    expect_key(a->store, NULL, SPACE, "k", "3");
}

static void another_history_is_refused(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    node_own(a, SPACE + 1);
    put_now(a->store, SPACE, "k", "1");
    put_now(a->store, SPACE + 1, "k", "1");
    memory_journal_backup(cluster.engine);
    put_now(a->store, SPACE, "k", "2");
    replication_follow(b->replication, SPACE);
    replication_follow(b->replication, SPACE + 1);
    expect_caught_up(b, a, SPACE);
    expect_caught_up(b, a, SPACE + 1);
    memory_journal_restore(cluster.engine);
    while (count_behind(b) == 0) {
        replication_poke(b->replication);
        sleep_ms(1);
    }
    assert_int_equal(role_of(b, SPACE), SPACE_ABSENT);
    assert_int_equal(role_of(b, SPACE + 1), SPACE_FOLLOWED);
    JournalPlace tail;
    assert_ok(node_take_over(b, a, SPACE, &tail, err));
    Error refusal = {0};
    assert_status(replication_own(b->replication, SPACE, &tail, cond_after_ms(1000), &refusal),
                  STATUS_CORRUPT);
}

/* The manager drops a copy and begins another one while a round of the follower goes on. */
static void drop_the_next_copy(void *ctx, StoreSpace space, uint64_t seq)
{
    TestNode *node = CONTAINER_OF((TestEvents *)ctx, TestNode, events);
    note_applied(ctx, space, seq);
    if (space != SPACE || seq < 2 || seq_of(node, SPACE + 1) == 0)
        return;
    assert_ok(replication_forget(node->replication, SPACE + 1, err));
    replication_follow(node->replication, SPACE + 1);
}

static void what_was_read_for_a_dropped_copy_says_nothing_about_the_next(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    for (StoreSpace space = SPACE; space <= SPACE + 1; space++) {
        node_own(a, space);
        put_now(a->store, space, "k", "1");
        replication_follow(b->replication, space);
        expect_caught_up(b, a, space);
    }
    node_close_store(b); /* so that both have news in one round */
    put_now(a->store, SPACE, "k", "2");
    put_now(a->store, SPACE + 1, "k", "2");
    memory_journal_cut(b->journal, true);
    node_open_store(b);
    b->replication->hooks.applied = drop_the_next_copy;
    memory_journal_cut(b->journal, false);
    expect_caught_up(b, a, SPACE);
    expect_caught_up(b, a, SPACE + 1);
    expect_equal(a, b, SPACE + 1);
    assert_int_equal(role_of(b, SPACE + 1), SPACE_FOLLOWED);
    assert_int_equal(count_behind(b), 0);
}

/* The log of one space cannot be read, and the connection ends with each try. */
static void a_space_that_cannot_be_read_does_not_stop_the_others(void **state)
{
    (void)state;
    enum { SPACES = 4, BAD = 2, TURNS = 5 };
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    for (StoreSpace i = 0; i < SPACES; i++) {
        node_own(a, SPACE + i);
        replication_follow(b->replication, SPACE + i);
    }
    memory_journal_set_unreadable(b->journal, SPACE + BAD);
    for (int turn = 0; turn < TURNS; turn++) {
        for (StoreSpace i = 0; i < SPACES; i++)
            put_now(a->store, SPACE + i, "k", "1");
        for (StoreSpace i = 0; i < SPACES; i++)
            if (i != BAD)
                expect_caught_up(b, a, SPACE + i);
    }
    assert_int_equal(seq_of(b, SPACE + BAD), 0);
    memory_journal_set_unreadable(b->journal, 0);
    expect_caught_up(b, a, SPACE + BAD);
    expect_equal(a, b, SPACE + BAD);
    assert_int_equal(count_behind(b), 0);
}

static bool is_following(TestNode *node)
{
    pthread_mutex_lock(&node->replication->lock);
    bool is_so = node->replication->is_following;
    pthread_mutex_unlock(&node->replication->lock);
    return is_so;
}

/* Neither the end of the store nor an owner with a deadline waits until all spaces are read. */
static void a_long_round_of_the_follower_holds_nobody_up(void **state)
{
    (void)state;
    enum { SPACES = 60, READ_MS = 50, WAITS_MS_MAX = SPACES * READ_MS / 2 };
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    for (StoreSpace i = 0; i < SPACES; i++) {
        node_own(a, SPACE + i);
        put_now(a->store, SPACE + i, "k", "1");
    }
    bool found = false;
    JournalPlace tail = test_tail(b->journal, SPACE, &found);
    memory_journal_cut(b->journal, true);
    for (StoreSpace i = 1; i < SPACES; i++)
        replication_follow(b->replication, SPACE + i);
    sleep_ms(READ_MS); /* for a round that has begun without them */
    memory_journal_set_latency(cluster.engine, READ_MS * 1000);
    memory_journal_cut(b->journal, false);
    while (!is_following(b))
        replication_poke(b->replication);
    sleep_ms(3 * READ_MS);
    uint64_t begun_us = cond_now_us();
    Error refusal = {0};
    assert_status(replication_own(b->replication, SPACE, &tail, cond_after_ms(READ_MS), &refusal),
                  STATUS_TIMEOUT);
    node_close_store(b);
    uint64_t ms = (cond_now_us() - begun_us) / 1000;
    assert_in_range(ms, 0, WAITS_MS_MAX);
    memory_journal_set_latency(cluster.engine, 0);
    node_open_store(b);
    for (StoreSpace i = 1; i < SPACES; i++) {
        replication_follow(b->replication, SPACE + i);
        expect_caught_up(b, a, SPACE + i);
    }
}

static void an_entry_of_a_newer_program_stops_the_space_unharmed(void **state)
{
    (void)state;
    static const Slice ENTRIES[] = {
        SLICE_INIT("\2\0\0\0\0\0"),        /* a format */
        SLICE_INIT("\1\0\4\0\0\0\3\1?\0"), /* a kind of merge */
    };
    for (size_t i = 0; i < ARRAY_COUNT(ENTRIES); i++) {
        AUTO(cluster_close) TestCluster cluster;
        cluster_open(&cluster, 2);
        TestNode *a = &cluster.nodes[0];
        TestNode *b = &cluster.nodes[1];
        node_own(a, SPACE);
        put_now(a->store, SPACE, "k", "1");
        JournalPlace last;
        assert_ok(replication_yield(a->replication, SPACE, &last, err));
        JournalAppend append = {
            .space = SPACE, .before = last, .epoch = last.epoch, .bytes = ENTRIES[i]};
        assert_ok(journal_append(a->journal, JOURNAL_LANE_APPEND_1, &append, 1,
                                 clock_monotonic_us(a->clock) + 1000000, err));
        assert_int_equal(append.outcome, APPEND_DONE);
        replication_follow(b->replication, SPACE);
        assert_ok(replication_wait(b->replication, SPACE, 1, cond_after_ms(20000), err));
        Error refusal = {0};
        assert_status(replication_wait(b->replication, SPACE, 2, cond_after_ms(100), &refusal),
                      STATUS_TIMEOUT);
        assert_int_equal(role_of(b, SPACE), SPACE_FOLLOWED);
        expect_key(b->store, NULL, SPACE, "k", "1");
        bool found = false;
        JournalPlace tail = test_tail(b->journal, SPACE, &found);
        assert_status(replication_own(b->replication, SPACE, &tail, cond_after_ms(100), &refusal),
                      STATUS_NOT_IMPLEMENTED);
        assert_int_equal(count_behind(b), 0); /* a seed would not help */
    }
}

/* The node stops, and starts with a program that reads formats up to this one. */
static void restart_as(TestCluster *cluster, TestNode *node, uint32_t format)
{
    MemoryJournalOptions options = {.clock = node->clock, .format = format};
    node_close_store(node);
    journal_close(TAKE(node->journal));
    memory_journal_open(cluster->engine, TEST_CLUSTER_SECRET, &options, &node->journal);
    node->member = test_join(node->journal, node->name, node->member.incarnation);
    node_open_store(node);
}

/* The entry at this place of the log has the format, inside and outside. */
static void expect_format(TestNode *node, uint64_t seq, uint32_t format)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    JournalEntries entries = {0};
    assert_ok(journal_read(node->journal, JOURNAL_LANE_ADMIN, SPACE, seq - 1, 1 << 20, &arena,
                           &entries, err));
    assert_true(entries.count > 0);
    assert_int_equal(entries.items[0].seq, seq);
    assert_int_equal(entries.items[0].format, format);
    assert_int_equal(entries.items[0].bytes.ptr[0], format);
}

static void a_newer_program_writes_what_older_ones_read_until_the_upgrade(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    enum { OLD = JOURNAL_FORMAT, NEW = JOURNAL_FORMAT + 1 };
    restart_as(&cluster, a, NEW);
    node_own(a, SPACE);
    put_now(a->store, SPACE, "k", "1");
    replication_follow(b->replication, SPACE);
    expect_caught_up(b, a, SPACE);
    expect_format(a, 1, OLD);
    expect_key(b->store, NULL, SPACE, "k", "1");

    /* The folder of the older program is read by the newer one. */
    restart_as(&cluster, b, NEW);
    uint32_t format = 0;
    assert_ok(journal_upgrade(b->journal, JOURNAL_LANE_ADMIN, &format, err));
    assert_int_equal(format, NEW);
    bool is_member = false;
    bool is_draining = false;
    assert_ok(journal_renew(a->journal, 0, SLICE_EMPTY, &is_member, &is_draining, err));
    assert_true(is_member);
    put_now(a->store, SPACE, "k", "2");
    expect_caught_up(b, a, SPACE);
    expect_format(a, 2, NEW);
    expect_key(b->store, NULL, SPACE, "k", "2");
    expect_equal(a, b, SPACE);
}

/* ---- owners ---- */

static void a_space_is_handed_over_and_back(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *nodes[] = {&cluster.nodes[0], &cluster.nodes[1]};
    node_own(nodes[0], SPACE);
    replication_follow(nodes[1]->replication, SPACE);
    for (size_t i = 0; i < 6; i++) {
        TestNode *owner = nodes[i % 2];
        TestNode *other = nodes[(i + 1) % 2];
        for (int j = 0; j < 5; j++)
            merge_now(owner->store, SPACE, "`n", i % 2 == 0 ? "a" : "b");
        Error refusal = {0};
        assert_status(try_put(other, SPACE, "k", "v", &refusal), STATUS_NOT_OWNER);
        node_take_from(other, owner, SPACE);
    }
    expect_caught_up(nodes[1], nodes[0], SPACE);
    expect_equal(nodes[0], nodes[1], SPACE);
    expect_key(nodes[1]->store, NULL, SPACE, "`n", "aaaaabbbbbaaaaabbbbbaaaaabbbbb");
    assert_int_equal(count_lost(nodes[0]) + count_lost(nodes[1]), 0);
}

static void a_deposed_owner_learns_it_from_its_append_and_follows(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    node_own(a, SPACE + 1);
    put_now(a->store, SPACE, "k", "1");
    replication_follow(b->replication, SPACE);
    JournalPlace tail;
    assert_ok(node_take_over(b, a, SPACE, &tail, err));
    assert_int_equal(tail.seq, 1);
    assert_ok(replication_own(b->replication, SPACE, &tail, cond_after_ms(10000), err));
    put_now(b->store, SPACE, "k", "2");
    Error refusal = {0}, reason;
    assert_status(try_put(a, SPACE, "k", "3", &refusal), STATUS_NOT_OWNER);
    while (count_lost(a) == 0)
        sleep_ms(1);
    assert_int_equal(last_lost(a, &reason), SPACE);
    assert_int_equal(reason.status, STATUS_NOT_OWNER);
    assert_int_equal(role_of(a, SPACE), SPACE_FOLLOWED);
    expect_caught_up(a, b, SPACE);
    expect_key(a->store, NULL, SPACE, "k", "2");
    expect_equal(a, b, SPACE);
    /* In one group, each space has its own outcome. */
    assert_ok(replication_wait(a->replication, SPACE, 2, cond_after_ms(1), err));
    put_now(a->store, SPACE + 1, "k", "1");
}

/* ---- seeding ---- */

static void fill(TestNode *node, StoreSpace space, int from, int to)
{
    for (int i = from; i < to; i++) {
        char key[16], value[64];
        (void)snprintf(key, sizeof(key), "%05d", i);
        (void)snprintf(value, sizeof(value), "value %d of the space %d", i, (int)space);
        put_now(node->store, space, key, value);
        (void)snprintf(key, sizeof(key), "~%d", i % 10);
        merge_now(node->store, space, key, i % 4 == 0 ? "-a" : "+a");
    }
}

static void a_copy_is_a_space_at_its_place_and_is_followed(void **state)
{
    (void)state;
    static const size_t SIZES[] = {1, 300, 1 << 20};
    for (size_t i = 0; i < ARRAY_COUNT(SIZES); i++) {
        AUTO(cluster_close) TestCluster cluster;
        cluster_open(&cluster, 2);
        TestNode *a = &cluster.nodes[0];
        TestNode *b = &cluster.nodes[1];
        node_own(a, SPACE);
        fill(a, SPACE, 0, 100);
        seed(b, a, SPACE, SIZES[i]);
        assert_int_equal(role_of(b, SPACE), SPACE_FOLLOWED);
        expect_equal(a, b, SPACE);
        fill(a, SPACE, 50, 150);
        expect_caught_up(b, a, SPACE);
        expect_equal(a, b, SPACE);
        node_close_store(b);
        node_open_store(b);
        expect_equal(a, b, SPACE);
        node_take_from(b, a, SPACE);
        fill(b, SPACE, 0, 10);
    }
}

static void a_follower_of_a_trimmed_log_is_seeded(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    fill(a, SPACE, 0, 20);
    JournalReplica durable = {
        .space = SPACE, .state = REPLICA_FOLLOWING, .applied = 40, .durable = 40};
    assert_ok(journal_report(b->journal, JOURNAL_LANE_ADMIN, &durable, 1, err));
    assert_ok(journal_trim(a->journal, JOURNAL_LANE_ADMIN, SPACE, 1, 30, err));
    replication_follow(b->replication, SPACE);
    while (count_behind(b) == 0)
        sleep_ms(1);
    assert_int_equal(seq_of(b, SPACE), 0);
    bool found = false;
    JournalPlace tail = test_tail(a->journal, SPACE, &found);
    Error refusal = {0};
    assert_status(replication_own(b->replication, SPACE, &tail, cond_after_ms(1000), &refusal),
                  STATUS_NOT_FOUND);
    seed(b, a, SPACE, 500);
    fill(a, SPACE, 20, 30);
    expect_caught_up(b, a, SPACE);
    expect_equal(a, b, SPACE);
    assert_int_equal(count_behind(b), 1);
}

/* The engine has lost entries that the base does not account for: the copy may be right. */
static void a_gap_in_the_log_asks_for_a_seed(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    fill(a, SPACE, 0, 5);
    replication_follow(b->replication, SPACE);
    expect_caught_up(b, a, SPACE);
    memory_journal_cut(b->journal, true);
    fill(a, SPACE, 5, 10);
    memory_journal_drop_entries(cluster.engine, SPACE, 15);
    memory_journal_cut(b->journal, false);
    while (count_behind(b) == 0)
        sleep_ms(1);
    assert_int_equal(role_of(b, SPACE), SPACE_FOLLOWED);
    bool found = false;
    JournalPlace tail = test_tail(a->journal, SPACE, &found);
    Error refusal = {0};
    assert_status(replication_own(b->replication, SPACE, &tail, cond_after_ms(1000), &refusal),
                  STATUS_NOT_FOUND);
    seed(b, a, SPACE, 500);
    expect_equal(a, b, SPACE);
}

static Status try_digest(TestNode *node, StoreSpace space)
{
    JournalPlace at;
    Error refusal = {0};
    uint8_t digest[REPLICATION_DIGEST_BYTES];
    return replication_digest(node->replication, space, &at, digest, &refusal);
}

static void a_copy_that_is_being_dropped_is_not_read(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *a = &cluster.nodes[0];
    node_own(a, SPACE);
    put_now(a->store, SPACE, "k", "1");
    AUTO(tree_done) Tree tree = {0};
    JournalPlace place = replication_place(a->replication, SPACE).applied;
    place_put(&tree, SPACE, STORED_PARTLY, &place);
    EngineWrites writes = {.tree = tree};
    pthread_mutex_lock(&a->replication->writing);
    assert_ok(replication_write(a->replication, &writes, 1, err));
    pthread_mutex_unlock(&a->replication->writing);
    SeedSource *source = NULL;
    Error refusal = {0};
    assert_status(seed_source_open(a->replication, SPACE, &source, &refusal), STATUS_NOT_FOUND);
    assert_int_equal(try_digest(a, SPACE), STATUS_NOT_FOUND);

    /* After it was dropped, too, and before a first write there is an empty one. */
    JournalPlace last;
    assert_ok(replication_yield(a->replication, SPACE, &last, err));
    assert_ok(replication_forget(a->replication, SPACE, err));
    assert_status(seed_source_open(a->replication, SPACE, &source, &refusal), STATUS_NOT_FOUND);
    assert_int_equal(try_digest(a, SPACE), STATUS_NOT_FOUND);
    node_own(a, SPACE + 1);
    assert_int_equal(try_digest(a, SPACE + 1), STATUS_OK);
}

/* On a thread of its own, as it waits for another change of the space. */
static void *open_target(void *ctx)
{
    TestNode *node = ctx;
    SeedTarget *target = NULL;
    Error refusal = {0};
    return seed_target_open(node->replication, SPACE, &target, &refusal) == STATUS_CONFLICT ? node
                                                                                            : NULL;
}

static void a_space_that_has_become_owned_meanwhile_is_not_dropped(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 1);
    TestNode *a = &cluster.nodes[0];
    node_own(a, SPACE);
    put_now(a->store, SPACE, "k", "1");
    Replication *replication = a->replication;
    pthread_mutex_lock(&replication->lock);
    ReplicaSpace *space = spaces_find(replication, SPACE);
    assert_true(space_begin_change(replication, space, cond_after_ms(10000)));
    space->role = SPACE_FOLLOWED; /* as while replication_own is at work */
    pthread_mutex_unlock(&replication->lock);
    pthread_t thread;
    assert_ok(thread_start(&thread, "target", open_target, a, err));
    sleep_ms(50); /* so that it has looked, and waits */
    pthread_mutex_lock(&replication->lock);
    space->role = SPACE_OWNED;
    space_end_change(replication, space);
    pthread_mutex_unlock(&replication->lock);
    void *refused = NULL;
    pthread_join(thread, &refused);
    assert_ptr_equal(refused, a);
    expect_key(a->store, NULL, SPACE, "k", "1");
    put_now(a->store, SPACE, "k", "2");
}

static void a_copy_that_is_not_whole_leaves_nothing(void **state)
{
    (void)state;
    AUTO(cluster_close) TestCluster cluster;
    cluster_open(&cluster, 2);
    TestNode *a = &cluster.nodes[0];
    TestNode *b = &cluster.nodes[1];
    node_own(a, SPACE);
    node_own(a, SPACE + 1);
    fill(a, SPACE, 0, 50);
    AUTO(buf_done) Buf piece;
    buf_init(&piece, (size_t)1 << 20);
    for (int how = 0; how < 8; how++) {
        AUTO(seed_target_close) SeedTarget *to = NULL;
        AUTO(seed_source_close) SeedSource *from = NULL;
        assert_ok(seed_target_open(b->replication, SPACE, &to, err));
        Error refusal = {0};
        SeedTarget *second = NULL;
        assert_status(seed_target_open(b->replication, SPACE, &second, &refusal), STATUS_CONFLICT);
        assert_ok(seed_source_open(a->replication, how == 0 ? SPACE + 1 : SPACE, &from, err));
        bool is_last = false;
        assert_ok(seed_source_next(from, 200, &piece, &is_last, err));
        if (how == 1)
            piece.ptr[20] ^= 1;
        if (how == 2)
            piece.len--;
        if (how == 3)
            piece.len = 5;
        Status first = seed_target_put(to, buf_view(&piece), &refusal);
        assert_status(first, how <= 3 ? STATUS_CORRUPT : STATUS_OK);
        if (how == 4) /* the same again */
            assert_status(seed_target_put(to, buf_view(&piece), &refusal), STATUS_CORRUPT);
        assert_ok(seed_source_next(from, 200, &piece, &is_last, err));
        if (how == 5) /* one is left out */
            assert_ok(seed_source_next(from, 200, &piece, &is_last, err));
        Status next = seed_target_put(to, buf_view(&piece), &refusal);
        assert_status(next, how <= 5 ? STATUS_CORRUPT : STATUS_OK);
        assert_status(seed_target_finish(to, &refusal), STATUS_CORRUPT);
        if (how == 7)
            continue;
        seed_target_close(TAKE(to));
        assert_int_equal(role_of(b, SPACE), SPACE_ABSENT);
        expect_walk(store_cursor_open(b->store, NULL, SPACE, SLICE_EMPTY, SLICE_EMPTY), true, "");
    }
    Error refusal = {0};
    SeedTarget *owned = NULL;
    assert_status(seed_target_open(a->replication, SPACE, &owned, &refusal), STATUS_CONFLICT);
    seed(b, a, SPACE, 1000);
    expect_equal(a, b, SPACE);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_follower_has_what_its_owner_has_and_takes_no_writes),
        cmocka_unit_test(a_follower_begins_anywhere_and_goes_on_after_a_restart),
        cmocka_unit_test(a_transaction_of_16_mb_is_followed),
        cmocka_unit_test(readers_of_a_follower_wait_for_a_write),
        cmocka_unit_test(nothing_is_applied_that_the_engine_may_forget),
        cmocka_unit_test(another_history_is_refused),
        cmocka_unit_test(a_space_that_cannot_be_read_does_not_stop_the_others),
        cmocka_unit_test(a_long_round_of_the_follower_holds_nobody_up),
        cmocka_unit_test(what_was_read_for_a_dropped_copy_says_nothing_about_the_next),
        cmocka_unit_test(an_entry_of_a_newer_program_stops_the_space_unharmed),
        cmocka_unit_test(a_newer_program_writes_what_older_ones_read_until_the_upgrade),
        cmocka_unit_test(a_space_is_handed_over_and_back),
        cmocka_unit_test(a_deposed_owner_learns_it_from_its_append_and_follows),
        cmocka_unit_test(a_copy_is_a_space_at_its_place_and_is_followed),
        cmocka_unit_test(a_follower_of_a_trimmed_log_is_seeded),
        cmocka_unit_test(a_gap_in_the_log_asks_for_a_seed),
        cmocka_unit_test(a_copy_that_is_being_dropped_is_not_read),
        cmocka_unit_test(a_space_that_has_become_owned_meanwhile_is_not_dropped),
        cmocka_unit_test(a_copy_that_is_not_whole_leaves_nothing),
    };
    return cmocka_run_group_tests_name("replication", tests, NULL, NULL);
}
