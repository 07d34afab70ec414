/* cluster_real_testing_int.h - for tests: several nodes in one process with all their threads:
 * RocksDB behind the journal's engine in memory, real catalogues, the real clock. What nodes ask of
 * each other is called instead of sent. Not part of the library.
 */
#pragma once

#include "base/testing.h"
#include "cluster/cluster_int.h"
#include "journal/memory/memory_journal.h"
#include "partition/partition.h"

#include "base/workers.h"

#include <stdlib.h>

enum { NODES_MAX = 3, WAIT_MS = 60000 };

typedef struct Real Real;

typedef struct RealNode {
    Real *real;
    char name[8];
    char address[32];
    TestFolder data;
    Journal *journal;
    ClusterFolder *folder;
    Cluster *cluster;
    Store *store;
    Replication *replication;
    PartitionHost host;
    Catalog *catalog;
    const Clock *clock; /* of the catalogue and of moves; NULL for the real one */
    Metrics metrics;
    pthread_mutex_t lock; /* one request at a time, and the node does not end meanwhile */
    bool is_listening;
} RealNode;

struct Real {
    MemoryJournalEngine *engine;
    RealNode nodes[NODES_MAX];
    size_t count;
    Log log;
};

static Real real;

static const ProvisionRules RULES = {
    .partition_ru = 1000, .fallback = {.mode = PROVISION_MANUAL, .ru = 3000}, .is_enforced = true};

static const MoveRules MOVES = {0}; /* only what is asked for */

static inline Status call(void *ctx, ClusterCall *request, Error *err)
{
    Real *all = ctx;
    for (size_t i = 0; i < all->count; i++) {
        RealNode *node = &all->nodes[i];
        if (!slice_equal(slice_from_cstr(node->address), request->address))
            continue;
        (void)pthread_mutex_lock(&node->lock);
        bool is_listening = node->is_listening;
        if (is_listening)
            request->status = node_answer(node->cluster, request->path, request->answer);
        (void)pthread_mutex_unlock(&node->lock);
        if (is_listening)
            return STATUS_OK;
    }
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "no answer");
}

static inline void set_listening(RealNode *node, bool is_listening)
{
    (void)pthread_mutex_lock(&node->lock);
    node->is_listening = is_listening;
    (void)pthread_mutex_unlock(&node->lock);
}

static inline Status start(RealNode *node, Error *err)
{
    static const uint8_t secret[JOURNAL_SECRET_BYTES] = {9};
    memory_journal_open(real.engine, secret, NULL, &node->journal);
    TRY(cluster_folder_open(node->data.path, slice_from_cstr(node->name), &node->folder, err));
    ClusterOptions options = {
        .journal = node->journal,
        .folder = node->folder,
        .join = {.address = slice_from_cstr(node->address), .advertise = SLICE("http://x/")},
        .node = node->name,
        .replicas = 2,
        .clock = clock_real(),
        .log = &real.log,
        .metrics = &node->metrics.shards[1],
        .call = call,
        .call_ctx = &real,
    };
    TRY(cluster_folder_join(node->folder, node->journal, &options.join, &options.member, err));
    TRY(cluster_new(&options, &node->cluster, err));
    set_listening(node, true);
    ReplicatedStoreOptions store = {.local = {.path = node->data.path,
                                              .cache_bytes = (size_t)8 << 20,
                                              .merge = &PARTITION_MERGE},
                                    .journal = node->journal,
                                    .hooks = cluster_hooks(node->cluster),
                                    .clock = clock_real()};
    TRY(replicated_store_open(&store, &node->store, &node->replication, err));
    bool is_leader;
    TRY(cluster_join_catalog(node->cluster, node->store, node->replication, &is_leader, err));
    const Clock *clock = node->clock != NULL ? node->clock : clock_real();
    node->host = (PartitionHost){.store = node->store,
                                 .writers = workers_open("test", 2, UINT32_MAX),
                                 .clock = clock,
                                 .log = &real.log};
    CatalogOptions catalog = {.host = &node->host,
                              .clock = clock,
                              .log = &real.log,
                              .metrics = &node->metrics.shards[0],
                              .throughput = &RULES,
                              .moves = &MOVES,
                              .placement = cluster_placement(node->cluster)};
    TRY(catalog_open(&catalog, &node->catalog, err));
    return cluster_start(node->cluster, node->catalog, err);
}

/* Leaves, or ends as a process that was killed does: the others are not told. */
static inline void stop_cluster(RealNode *node, bool leaves, uint32_t wait_ms)
{
    if (!leaves) {
        memory_journal_cut(node->journal, true);
        wait_ms = 0;
    }
    cluster_leave(node->cluster, wait_ms);
    cluster_end(node->cluster);
    set_listening(node, false);
    atomic_store(&node->host.is_closing, true);
    catalog_close(TAKE(node->catalog));
    partition_host_stop(&node->host);
    workers_close(TAKE(node->host.writers));
    cluster_stop(node->cluster);
}

static inline void stop_store(RealNode *node)
{
    store_close(TAKE(node->store));
    cluster_close(TAKE(node->cluster));
    cluster_folder_close(TAKE(node->folder));
    journal_close(TAKE(node->journal));
}

static inline void stop(RealNode *node, bool leaves, uint32_t wait_ms)
{
    if (node->cluster == NULL)
        return;
    stop_cluster(node, leaves, wait_ms);
    stop_store(node);
}

/* The first node, which leads at first, has a clock of its own, or NULL for the real one. */
static inline void begin_with(size_t count, const Clock *clock)
{
    memset(&real, 0, sizeof(real));
    real.engine = memory_journal_engine_new(1);
    real.count = count;
    real.log = (Log){.fd = 2, .level = LOG_LEVEL_ERROR, .clock = clock_real()};
    if (getenv("SIM_LOG") != NULL) /* NOLINT(concurrency-mt-unsafe): no thread sets it */
        real.log.level = LOG_LEVEL_INFO;
    for (size_t i = 0; i < count; i++) {
        RealNode *node = &real.nodes[i];
        node->real = &real;
        (void)snprintf(node->name, sizeof(node->name), "n%u", (unsigned)i % 10);
        (void)snprintf(node->address, sizeof(node->address), "10.0.0.%u:1", (unsigned)i);
        test_folder_init(&node->data);
        metrics_init(&node->metrics, 2);
        (void)pthread_mutex_init(&node->lock, NULL);
    }
    real.nodes[0].clock = clock;
    for (size_t i = 0; i < count; i++)
        assert_ok(start(&real.nodes[i], err));
}

static inline void begin(size_t count)
{
    begin_with(count, NULL);
}

static inline int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < real.count; i++) {
        RealNode *node = &real.nodes[i];
        stop(node, true, 0);
        test_folder_done(&node->data);
        metrics_done(&node->metrics);
        (void)pthread_mutex_destroy(&node->lock);
    }
    memory_journal_engine_free(real.engine);
    return 0;
}

/* ---- what tests do ---- */

#define WAIT_UNTIL(condition)                                         \
    do {                                                              \
        uint32_t waited_ms_ = 0;                                      \
        for (; !(condition) && waited_ms_ < WAIT_MS; waited_ms_ += 5) \
            sleep_ms(5);                                              \
        if (!(condition))                                             \
            fail_msg("waited in vain for %s", #condition);            \
    } while (0)

static inline bool has_lease(RealNode *node)
{
    return cluster_lease_holds(node->cluster, cluster_incarnation(node->cluster));
}

static inline RealNode *owner_of(StoreSpace space)
{
    for (size_t i = 0; i < real.count; i++) {
        RealNode *node = &real.nodes[i];
        if (node->cluster != NULL && cluster_owner(node->cluster, space).is_local &&
            has_lease(node))
            return node;
    }
    return NULL;
}

/* 'ru' is for its containers to share; 0 if each has its own. */
static inline uint32_t make_database(RealNode *node, const char *id, uint32_t ru)
{
    CatalogChange change = {.op = CATALOG_CREATE_DATABASE,
                            .id = slice_from_cstr(id),
                            .has_provision = ru > 0,
                            .provision = {.mode = PROVISION_MANUAL, .ru = ru}};
    assert_ok(catalog_change(node->catalog, &change, err));
    uint32_t number = change.result_database->info.number;
    catalog_change_release(&change);
    return number;
}

/* 'ru' is 0 if it shares its database's. */
static inline void make_container(RealNode *node, uint32_t database, const char *id, uint32_t ru)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Json body = JSON_NONE;
    Json normal = JSON_NONE;
    Slice text = arena_format(
        &arena, "{\"id\":\"%s\",\"partitionKey\":{\"paths\":[\"/pk\"],\"version\":2}}", id);
    assert_ok(json_parse(&arena, text, &body, err));
    assert_ok(container_definition_create(&arena, body, (ContainerRules){0}, &normal, err));
    CatalogChange change = {.op = CATALOG_CREATE_CONTAINER,
                            .database = database,
                            .definition = normal,
                            .has_provision = ru > 0,
                            .provision = {.mode = PROVISION_MANUAL, .ru = ru}};
    assert_ok(catalog_change(node->catalog, &change, err));
    catalog_change_release(&change);
}

#define CASE(test) cmocka_unit_test_teardown(test, end)
