/* cluster_testing_int.h - for tests: several nodes on one journal in memory, with a clock of the
 * test's.
 */
#pragma once

#include "base/latch.h"
#include "store/checkpoint.h"
#include "store/store_testing_int.h"

enum { TEST_LOSSES_MAX = 64 };

/* What a node was told. */
typedef struct TestEvents {
    pthread_mutex_t lock; /* guards the rest */
    StoreSpace lost[TEST_LOSSES_MAX];
    Error reasons[TEST_LOSSES_MAX];
    size_t lost_count;
    StoreSpace behind[TEST_LOSSES_MAX];
    size_t behind_count;
    uint64_t applied; /* calls */
} TestEvents;

typedef struct TestNode {
    const char *name;
    TestFolder folder;
    Journal *journal;
    JournalMember member;
    const Clock *clock;
    Store *store;
    Replication *replication;
    TestEvents events;
} TestNode;

typedef struct TestCluster {
    FakeClock fake;
    MemoryJournalEngine *engine;
    TestNode nodes[3];
    size_t count;
} TestCluster;

static inline void note_applied(void *ctx, StoreSpace space, uint64_t seq)
{
    (void)space;
    (void)seq;
    TestEvents *events = ctx;
    pthread_mutex_lock(&events->lock);
    events->applied++;
    pthread_mutex_unlock(&events->lock);
}

static inline void note_lost(void *ctx, StoreSpace space, const Error *reason)
{
    TestEvents *events = ctx;
    pthread_mutex_lock(&events->lock);
    if (events->lost_count < TEST_LOSSES_MAX) {
        events->lost[events->lost_count] = space;
        events->reasons[events->lost_count++] = *reason;
    }
    pthread_mutex_unlock(&events->lock);
}

static inline void note_behind(void *ctx, StoreSpace space)
{
    TestEvents *events = ctx;
    pthread_mutex_lock(&events->lock);
    if (events->behind_count < TEST_LOSSES_MAX)
        events->behind[events->behind_count++] = space;
    pthread_mutex_unlock(&events->lock);
}

static inline size_t count_lost(TestNode *node)
{
    pthread_mutex_lock(&node->events.lock);
    size_t count = node->events.lost_count;
    pthread_mutex_unlock(&node->events.lock);
    return count;
}

static inline uint64_t count_applied(TestNode *node)
{
    pthread_mutex_lock(&node->events.lock);
    uint64_t count = node->events.applied;
    pthread_mutex_unlock(&node->events.lock);
    return count;
}

static inline size_t count_behind(TestNode *node)
{
    pthread_mutex_lock(&node->events.lock);
    size_t count = node->events.behind_count;
    pthread_mutex_unlock(&node->events.lock);
    return count;
}

/* The space that was lost last, and why. */
static inline StoreSpace last_lost(TestNode *node, Error *reason)
{
    pthread_mutex_lock(&node->events.lock);
    assert_true(node->events.lost_count > 0);
    size_t at = node->events.lost_count - 1;
    *reason = node->events.reasons[at];
    StoreSpace space = node->events.lost[at];
    pthread_mutex_unlock(&node->events.lock);
    return space;
}

static inline void node_open_store(TestNode *node)
{
    ReplicatedStoreOptions options = {
        .local = {.path = node->folder.path, .cache_bytes = (size_t)4 << 20, .merge = &TEST_MERGE},
        .journal = node->journal,
        .hooks = {.ctx = &node->events,
                  .applied = note_applied,
                  .lost = note_lost,
                  .behind = note_behind},
        .clock = node->clock,
    };
    assert_ok(replicated_store_open(&options, &node->store, &node->replication, err));
}

static inline void node_close_store(TestNode *node)
{
    store_close(node->store);
    node->store = NULL;
    node->replication = NULL;
}

/* What the node's disk has now, in a new folder: as a crash would leave it that loses all writes
 * that follow. */
static inline void node_copy_disk(TestNode *node, TestFolder *out)
{
    test_folder_init(out);
    AUTO(store_checkpoint_close) StoreCheckpoint *checkpoint = NULL;
    assert_ok(store_checkpoint_open(node->store, &checkpoint, err));
    size_t count = 0;
    const CheckpointFile *files = store_checkpoint_files(checkpoint, &count);
    char *bytes = mem_alloc((size_t)1 << 20);
    for (size_t i = 0; i < count; i++) {
        char path[256];
        (void)snprintf(path, sizeof(path), "%s/%s", out->path, files[i].name);
        FILE *to = fopen(path, "we");
        assert_non_null(to);
        size_t len = 0;
        for (uint64_t at = 0; at < files[i].size; at += len) {
            assert_ok(store_checkpoint_read(checkpoint, i, at, bytes, (size_t)1 << 20, &len, err));
            assert_int_equal(fwrite(bytes, 1, len, to), len);
        }
        assert_int_equal(fclose(to), 0);
    }
    mem_free(bytes);
}

static inline void node_replace_disk(TestNode *node, const TestFolder *with)
{
    test_folder_done(&node->folder);
    node->folder = *with;
}

static inline void cluster_open(TestCluster *cluster, size_t count)
{
    static const char *const NAMES[] = {"a", "b", "c"};
    *cluster = (TestCluster){.count = count};
    fake_clock_init(&cluster->fake, cond_now_us());
    cluster->engine = memory_journal_engine_new(1);
    for (size_t i = 0; i < count; i++) {
        TestNode *node = &cluster->nodes[i];
        node->name = NAMES[i];
        node->clock = &cluster->fake.clock;
        MemoryJournalOptions options = {.clock = node->clock};
        assert_int_equal(pthread_mutex_init(&node->events.lock, NULL), 0);
        test_folder_init(&node->folder);
        memory_journal_open(cluster->engine, TEST_CLUSTER_SECRET, &options, &node->journal);
        node->member = test_join(node->journal, node->name, 0);
        node_open_store(node);
    }
}

static inline void cluster_close(TestCluster *cluster)
{
    for (size_t i = 0; i < cluster->count; i++) {
        TestNode *node = &cluster->nodes[i];
        node_close_store(node);
        journal_close(node->journal);
        test_folder_done(&node->folder);
        (void)pthread_mutex_destroy(&node->events.lock);
    }
    memory_journal_engine_free(cluster->engine);
}
DEFINE_AUTO_VALUE(TestCluster, cluster_close)

/* Makes the space if there is none, and has the node own it. */
static inline void node_own(TestNode *node, StoreSpace space)
{
    bool found = false;
    test_create_space(node->journal, space, node->name, node->member.incarnation);
    JournalPlace tail = test_tail(node->journal, space, &found);
    assert_true(found);
    assert_ok(replication_own(node->replication, space, &tail, cond_after_ms(10000), err));
}

/* The space of a node that has yielded it goes to another one. */
static inline void node_take_from(TestNode *node, TestNode *from, StoreSpace space)
{
    JournalPlace last;
    bool done = false, found = false;
    assert_ok(replication_yield(from->replication, space, &last, err));
    assert_ok(journal_hand_over(from->journal, space, &last, slice_from_cstr(node->name),
                                node->member.incarnation, &done, err));
    assert_true(done);
    JournalPlace tail = test_tail(node->journal, space, &found);
    assert_ok(replication_own(node->replication, space, &tail, cond_after_ms(10000), err));
}

/* Declares the other dead, and takes its space over. */
static inline Status node_take_over(TestNode *node, const TestNode *dead, StoreSpace space,
                                    JournalPlace *tail, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    const JournalNode *nodes = NULL;
    size_t count = 0;
    bool done = false, found = false;
    TRY(journal_nodes(node->journal, JOURNAL_LANE_NODE, &arena, &nodes, &count, err));
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(nodes[i].name, slice_from_cstr(dead->name)) && nodes[i].state != NODE_DEAD)
            TRY(journal_declare_dead(node->journal, nodes[i].name, nodes[i].incarnation,
                                     nodes[i].renewal, &done, err));
    }
    JournalPlace seen = test_tail(node->journal, space, &found);
    JournalOwner taken = {0};
    TRY(journal_take_over(node->journal, space, seen.epoch, &arena, &taken, &done, err));
    assert_true(done);
    *tail = taken.tail;
    return STATUS_OK;
}

static inline Status try_put(TestNode *node, StoreSpace space, const char *key, const char *value,
                             Error *err)
{
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_put(txn, space, slice_from_cstr(key), slice_from_cstr(value));
    return store_txn_commit_wait(txn, err);
}

static inline SpaceRole role_of(TestNode *node, StoreSpace space)
{
    return replication_place(node->replication, space).role;
}

static inline uint64_t seq_of(TestNode *node, StoreSpace space)
{
    return replication_place(node->replication, space).applied.seq;
}

/* Waits until the node has applied what the other one has. */
static inline void expect_caught_up(TestNode *node, TestNode *with, StoreSpace space)
{
    replication_poke(node->replication);
    assert_ok(
        replication_wait(node->replication, space, seq_of(with, space), cond_after_ms(20000), err));
}

/* A commit under way on a thread of its own. */
typedef struct Commit {
    Latch done;
    Status status;
    Error err;
} Commit;

static inline void note_commit(void *ctx, const Error *err)
{
    Commit *commit = ctx;
    commit->status = err == NULL ? STATUS_OK : err->status;
    if (err != NULL)
        commit->err = *err;
    latch_post(&commit->done);
}

static inline void begin_put(TestNode *node, StoreSpace space, const char *key, const char *value,
                             Commit *commit)
{
    *commit = (Commit){.status = STATUS_COUNT};
    latch_init(&commit->done);
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_put(txn, space, slice_from_cstr(key), slice_from_cstr(value));
    store_txn_commit(txn, (StoreCompletion){note_commit, commit});
}

static inline Status end_put(Commit *commit)
{
    latch_wait(&commit->done);
    latch_done(&commit->done);
    return commit->status;
}

/* Waits until the engine has that many transactions that are not completed. */
static inline void wait_for_under_way(TestNode *node, size_t count)
{
    for (size_t under_way = 0; under_way < count;) {
        pthread_mutex_lock(&node->replication->lock);
        under_way = node->replication->under_way;
        pthread_mutex_unlock(&node->replication->lock);
    }
}

static inline bool is_appending(TestNode *node)
{
    pthread_mutex_lock(&node->replication->lock);
    bool is_so = node->replication->lanes[0].began_us != 0;
    pthread_mutex_unlock(&node->replication->lock);
    return is_so;
}

static inline void wait_for_append(TestNode *node)
{
    while (!is_appending(node))
        sleep_ms(1);
}
