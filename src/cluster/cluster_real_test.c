/* cluster_real_test.c - several nodes in one process with all their threads: RocksDB behind the
 * journal's engine in memory, real catalogues, the real clock. What nodes ask of each other is
 * called instead of sent. */
#include "base/encoding.h"
#include "base/latch.h"
#include "base/testing.h"
#include "cluster/cluster_int.h"
#include "journal/memory/memory_journal.h"
#include "partition/partition.h"

#include "base/workers.h"

#include <stdlib.h>

enum { NODES_MAX = 3, WAIT_MS = 60000, SPACE_OF_TEST = 1 << 20 };

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

static Status call(void *ctx, ClusterCall *request, Error *err)
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

static void set_listening(RealNode *node, bool is_listening)
{
    (void)pthread_mutex_lock(&node->lock);
    node->is_listening = is_listening;
    (void)pthread_mutex_unlock(&node->lock);
}

static Status start(RealNode *node, Error *err)
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
    TRY(cluster_join_catalog(node->cluster, node->replication, &is_leader, err));
    node->host = (PartitionHost){.store = node->store,
                                 .writers = workers_open("test", 2, UINT32_MAX),
                                 .clock = clock_real(),
                                 .log = &real.log};
    CatalogOptions catalog = {.host = &node->host,
                              .clock = clock_real(),
                              .log = &real.log,
                              .metrics = &node->metrics.shards[0],
                              .throughput = &RULES,
                              .placement = cluster_placement(node->cluster)};
    TRY(catalog_open(&catalog, &node->catalog, err));
    return cluster_start(node->cluster, node->catalog, err);
}

/* Leaves, or ends as a process that was killed does: the others are not told. */
static void stop_cluster(RealNode *node, bool leaves, uint32_t wait_ms)
{
    if (!leaves) {
        memory_journal_cut(node->journal, true);
        wait_ms = 0;
    }
    cluster_leave(node->cluster, wait_ms);
    set_listening(node, false);
    atomic_store(&node->host.is_closing, true);
    catalog_close(TAKE(node->catalog));
    partition_host_stop(&node->host);
    workers_close(TAKE(node->host.writers));
    cluster_stop(node->cluster);
}

static void stop_store(RealNode *node)
{
    store_close(TAKE(node->store));
    cluster_close(TAKE(node->cluster));
    cluster_folder_close(TAKE(node->folder));
    journal_close(TAKE(node->journal));
}

static void stop(RealNode *node, bool leaves, uint32_t wait_ms)
{
    if (node->cluster == NULL)
        return;
    stop_cluster(node, leaves, wait_ms);
    stop_store(node);
}

static void begin(size_t count)
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
    for (size_t i = 0; i < count; i++)
        assert_ok(start(&real.nodes[i], err));
}

static int end(void **state)
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

static RealNode *owner_of(StoreSpace space)
{
    for (size_t i = 0; i < real.count; i++) {
        RealNode *node = &real.nodes[i];
        if (node->cluster != NULL && cluster_owner(node->cluster, space).is_local)
            return node;
    }
    return NULL;
}

/* 'ru' is for its containers to share; 0 if each has its own. */
static uint32_t make_database(RealNode *node, const char *id, uint32_t ru)
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
static void make_container(RealNode *node, uint32_t database, const char *id, uint32_t ru)
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

/* Whether the node's catalogue has the container, and serves the ranges that are its own. */
static bool has_container(RealNode *node, uint32_t database, const char *id)
{
    CatalogReader reader;
    catalog_reader_init(&reader, node->catalog);
    const Container *container =
        snapshot_container_by_id(catalog_read(&reader), database, slice_from_cstr(id));
    bool has = container != NULL;
    for (size_t i = 0; has && i < container->range_count; i++) {
        PartitionHandle *handle = container_handle_at(container, i);
        ClusterOwner owner = cluster_owner(node->cluster, handle_range(handle)->space);
        has = !owner.is_local || handle_local(handle) != NULL;
    }
    catalog_reader_done(&reader);
    return has;
}

static Status put_key(RealNode *node, StoreSpace space, uint64_t key, Error *err)
{
    uint8_t bytes[9] = {'k'};
    be64_put(bytes + 1, key);
    StoreTxn *txn = store_txn_begin(node->store);
    store_txn_put(txn, space, slice_make(bytes, sizeof(bytes)), SLICE("v"));
    return store_txn_commit_wait(txn, err);
}

static bool has_key(RealNode *node, StoreSpace space, uint64_t key)
{
    uint8_t bytes[9] = {'k'};
    be64_put(bytes + 1, key);
    StoreValue value;
    StoreFound found;
    assert_ok(store_get(node->store, NULL, space, slice_make(bytes, sizeof(bytes)), STORE_READ_ANY,
                        &value, &found, err));
    if (found == STORE_FOUND)
        store_value_release(&value);
    return found == STORE_FOUND;
}

static void make_space(StoreSpace space)
{
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    assert_non_null(leader);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    assert_ok(placement->create(placement->ctx, space, 1, 0, err));
    for (size_t i = 0; i < real.count; i++)
        cluster_refresh_owners(real.nodes[i].cluster);
    WAIT_UNTIL(owner_of(space) != NULL);
}

static Status move_space(RealNode *node, StoreSpace space, const char *to, Arena *arena,
                         Slice *json, Error *err)
{
    return cluster_move(node->cluster, space, slice_from_cstr(to), arena, json, err);
}

static bool is_followed(StoreSpace space, RealNode *node)
{
    return replication_place(node->replication, space).role == SPACE_FOLLOWED;
}

/* ---- tests ---- */

static void a_container_is_on_every_node_when_its_creation_is_answered(void **state)
{
    (void)state;
    begin(3);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    assert_non_null(leader);
    uint32_t database = make_database(leader, "d", 0);
    for (int i = 0; i < 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "c%d", i);
        make_container(leader, database, id, 3000);
        for (size_t j = 0; j < real.count; j++)
            assert_true(has_container(&real.nodes[j], database, id));
    }
}

typedef struct Writer {
    pthread_t thread;
    _Atomic bool is_stopping;
    uint64_t acknowledged[100000];
    _Atomic size_t count;
    _Atomic uint64_t refused;
} Writer;

static Writer writer;

/* Writes where the space is served, and tries again what was surely not done. */
static void *run_writer(void *arg)
{
    (void)arg;
    for (uint64_t key = 1; !atomic_load(&writer.is_stopping); key++) {
        RealNode *node = owner_of(SPACE_OF_TEST);
        Error failure;
        if (node == NULL) {
            sleep_ms(1);
            continue;
        }
        Status status = put_key(node, SPACE_OF_TEST, key, &failure);
        writer.refused += status != STATUS_OK;
        if (status == STATUS_OK && writer.count < ARRAY_COUNT(writer.acknowledged))
            writer.acknowledged[writer.count++] = key;
        /* A planned move leaves no write whose outcome is unknown. */
        if (status != STATUS_OK && status != STATUS_NOT_OWNER && status != STATUS_THROTTLED)
            fail_msg("%s: %s", status_code(status), failure.message);
    }
    return NULL;
}

static void a_space_moves_under_load_and_no_write_is_lost(void **state)
{
    (void)state;
    begin(2);
    make_space(SPACE_OF_TEST);
    memset(&writer, 0, sizeof(writer));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    Slice json;
    assert_int_equal(pthread_create(&writer.thread, NULL, run_writer, NULL), 0);
    for (int i = 0; i < 6; i++) {
        RealNode *owner = owner_of(SPACE_OF_TEST);
        RealNode *other = owner == &real.nodes[0] ? &real.nodes[1] : &real.nodes[0];
        assert_ok(move_space(&real.nodes[i % 2], SPACE_OF_TEST, other->name, &arena, &json, err));
        assert_slice_text(json, other == &real.nodes[0] ? "{\"node\":\"n0\",\"spaces\":[1048576]}"
                                                        : "{\"node\":\"n1\",\"spaces\":[1048576]}");
        WAIT_UNTIL(owner_of(SPACE_OF_TEST) == other);
        size_t before = writer.count;
        WAIT_UNTIL(writer.count > before + 10);
    }
    atomic_store(&writer.is_stopping, true);
    assert_int_equal(pthread_join(writer.thread, NULL), 0);
    RealNode *owner = owner_of(SPACE_OF_TEST);
    for (size_t i = 0; i < writer.count; i++)
        assert_true(has_key(owner, SPACE_OF_TEST, writer.acknowledged[i]));
}

static void spaces_are_gathered_for_a_move_of_ranges(void **state)
{
    (void)state;
    begin(3);
    const StoreSpace spaces[] = {SPACE_OF_TEST, SPACE_OF_TEST + 1, SPACE_OF_TEST + 2};
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        make_space(spaces[i]);
        assert_ok(put_key(owner_of(spaces[i]), spaces[i], i, err));
    }
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    assert_ok(placement->gather(placement->ctx, spaces, ARRAY_COUNT(spaces), err));
    for (size_t i = 0; i < ARRAY_COUNT(spaces); i++) {
        assert_ptr_equal(owner_of(spaces[i]), leader);
        assert_true(has_key(leader, spaces[i], i));
    }
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    Slice json;
    Error failure;
    const StoreSpace unknown = SPACE_OF_TEST + 77;
    assert_int_equal(move_space(leader, unknown, "n1", &arena, &json, &failure), STATUS_NOT_FOUND);
    assert_int_equal(move_space(leader, spaces[0], "nobody", &arena, &json, &failure),
                     STATUS_NOT_FOUND);
}

/* As a change of the catalogue leaves them that is refused after its rows were made. */
static void rows_that_the_catalogue_does_not_name_are_dropped(void **state)
{
    (void)state;
    begin(2);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    uint32_t database = make_database(leader, "d", 0);
    make_container(leader, database, "c", 3000);
    const StoreSpace space = 1 << 16; /* the first that the catalogue gives out */
    WAIT_UNTIL(owner_of(space) != NULL);
    CatalogChange change = {.op = CATALOG_DELETE_DATABASE, .database = database};
    assert_ok(catalog_change(leader->catalog, &change, err));
    catalog_change_release(&change);
    WAIT_UNTIL(owner_of(space) == NULL);
    const CatalogPlacement *placement = cluster_placement(leader->cluster);
    assert_ok(placement->create(placement->ctx, space, 1, 0, err));
    assert_ok(placement->create(placement->ctx, SPACE_OF_TEST, 1, 0, err));
    WAIT_UNTIL(owner_of(space) != NULL);
    WAIT_UNTIL(owner_of(space) == NULL);
    /* The catalogue may yet name one that it has not given out. */
    assert_non_null(owner_of(SPACE_OF_TEST));
}

enum { SHARING = 3, SHARED_BUDGETS = 2 };

/* The spaces of all containers of a database, by their ranges' positions. */
static void find_spaces(RealNode *node, uint32_t database,
                        StoreSpace spaces[SHARED_BUDGETS][SHARING])
{
    CatalogReader reader;
    catalog_reader_init(&reader, node->catalog);
    const Snapshot *snapshot = catalog_read(&reader);
    const Container *container = NULL;
    uint32_t from = 0;
    for (size_t i = 0; i < SHARING; i++, from = container->info.number + 1) {
        container = snapshot_next_container(snapshot, database, from);
        assert_non_null(container);
        assert_int_equal(container->range_count, SHARED_BUDGETS);
        for (size_t at = 0; at < SHARED_BUDGETS; at++)
            spaces[at][i] = container->ranges[at].space;
    }
    catalog_reader_done(&reader);
}

static RealNode *owner_of_all(const StoreSpace spaces[SHARING])
{
    RealNode *owner = owner_of(spaces[0]);
    for (size_t i = 1; i < SHARING; i++) {
        if (owner_of(spaces[i]) != owner)
            return NULL;
    }
    return owner;
}

static void ranges_that_share_throughput_move_together(void **state)
{
    (void)state;
    begin(3);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    uint32_t database = make_database(leader, "d", 1000 * SHARED_BUDGETS);
    make_container(leader, database, "x", 0);
    make_container(leader, database, "y", 0);
    make_container(leader, database, "z", 0);
    StoreSpace spaces[SHARED_BUDGETS][SHARING];
    find_spaces(leader, database, spaces);
    WAIT_UNTIL(owner_of_all(spaces[0]) != NULL && owner_of_all(spaces[1]) != NULL);
    RealNode *owner = owner_of_all(spaces[0]);
    RealNode *to = owner == &real.nodes[0] ? &real.nodes[1] : &real.nodes[0];
    const RealNode *others = owner_of_all(spaces[1]);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    Slice json;
    assert_ok(move_space(leader, spaces[0][1], to->name, &arena, &json, err));
    assert_slice_text(json, (const char *)arena_format(
                                &arena, "{\"node\":\"%s\",\"spaces\":[%llu,%llu,%llu]}%c", to->name,
                                (unsigned long long)spaces[0][0], (unsigned long long)spaces[0][1],
                                (unsigned long long)spaces[0][2], '\0')
                                .ptr);
    WAIT_UNTIL(owner_of_all(spaces[0]) == to);
    assert_ptr_equal(owner_of_all(spaces[1]), others); /* they spend another budget */
    stop(to, true, WAIT_MS);
    WAIT_UNTIL(owner_of_all(spaces[0]) != NULL);
}

static void a_node_that_leaves_hands_everything_over(void **state)
{
    (void)state;
    begin(2);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    uint32_t database = make_database(leader, "d", 0);
    make_container(leader, database, "c", 3000);
    make_space(SPACE_OF_TEST);
    RealNode *owner = owner_of(SPACE_OF_TEST);
    RealNode *other = owner == &real.nodes[0] ? &real.nodes[1] : &real.nodes[0];
    assert_ok(put_key(owner, SPACE_OF_TEST, 7, err));
    stop(owner, true, WAIT_MS);
    WAIT_UNTIL(owner_of(SPACE_OF_TEST) == other && owner_of(SPACE_OF_CATALOG) == other);
    assert_true(has_key(other, SPACE_OF_TEST, 7));
    make_container(other, database, "after", 3000);
    assert_true(has_container(other, database, "after"));
    /* It comes back, and gets what was made meanwhile. */
    assert_ok(start(owner, err));
    assert_true(has_container(owner, database, "after"));
}

static void a_node_that_dies_is_replaced(void **state)
{
    (void)state;
    begin(3);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    uint32_t database = make_database(leader, "d", 0);
    make_container(leader, database, "c", 3000);
    make_space(SPACE_OF_TEST);
    RealNode *owner = owner_of(SPACE_OF_TEST);
    assert_ok(put_key(owner, SPACE_OF_TEST, 7, err));
    size_t copies = 0;
    WAIT_UNTIL((copies = (size_t)is_followed(SPACE_OF_TEST, &real.nodes[0]) +
                         is_followed(SPACE_OF_TEST, &real.nodes[1]) +
                         is_followed(SPACE_OF_TEST, &real.nodes[2])) >= 1);
    stop(owner, false, 0);
    WAIT_UNTIL(owner_of(SPACE_OF_TEST) != NULL && owner_of(SPACE_OF_CATALOG) != NULL);
    assert_true(has_key(owner_of(SPACE_OF_TEST), SPACE_OF_TEST, 7));
    make_container(owner_of(SPACE_OF_CATALOG), database, "after", 3000);
    assert_ok(start(owner, err));
    assert_true(has_container(owner, database, "after"));
}

static void a_new_node_is_seeded_where_the_log_was_trimmed(void **state)
{
    (void)state;
    begin(2);
    make_space(SPACE_OF_TEST);
    RealNode *owner = owner_of(SPACE_OF_TEST);
    RealNode *other = owner == &real.nodes[0] ? &real.nodes[1] : &real.nodes[0];
    for (uint64_t key = 1; key <= 100; key++)
        assert_ok(put_key(owner, SPACE_OF_TEST, key, err));
    uint64_t epoch = cluster_owner(owner->cluster, SPACE_OF_TEST).epoch;
    WAIT_UNTIL(replication_place(other->replication, SPACE_OF_TEST).applied.seq >= 1);
    stop(other, true, 0);
    Error failure;
    /* The copy is gone, and so is the beginning of the log. */
    assert_ok(journal_expel(owner->journal, JOURNAL_LANE_FOLLOW, SPACE_OF_TEST,
                            slice_from_cstr(other->name), err));
    Status status =
        journal_trim(owner->journal, JOURNAL_LANE_FOLLOW, SPACE_OF_TEST, epoch, 100, &failure);
    assert_int_equal(status, STATUS_OK);
    test_folder_done(&other->data);
    test_folder_init(&other->data);
    assert_ok(start(other, err));
    WAIT_UNTIL(is_followed(SPACE_OF_TEST, other) && has_key(other, SPACE_OF_TEST, 100));
    for (uint64_t key = 1; key <= 100; key++)
        assert_true(has_key(other, SPACE_OF_TEST, key));
}

#define CASE(test) cmocka_unit_test_teardown(test, end)

typedef struct Change {
    CatalogChange change;
    Latch done;
} Change;

static void on_change_done(CatalogChange *change)
{
    latch_post(&CONTAINER_OF(change, Change, change)->done);
}

typedef struct Leaving {
    RealNode *node;
    uint32_t wait_ms;
} Leaving;

static void *run_leaving(void *arg)
{
    Leaving *leaving = arg;
    cluster_leave(leaving->node->cluster, leaving->wait_ms);
    return NULL;
}

/* Makes a change at a node that leaves, while the other one does not publish it, or does so only
 * after a while. */
static Status change_and_leave(bool comes_late)
{
    begin(2);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    RealNode *other = &real.nodes[leader == &real.nodes[0]];
    /* It renews, but publishes nothing. */
    (void)pthread_mutex_lock(&other->cluster->admin_lane);
    Change c = {
        .change = {.op = CATALOG_CREATE_DATABASE, .id = SLICE("d"), .done = on_change_done}};
    latch_init(&c.done);
    catalog_submit(leader->catalog, &c.change);
    WAIT_UNTIL(barriers_wait(leader->cluster));
    Leaving leaving = {leader, comes_late ? WAIT_MS : 2000};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_leaving, &leaving), 0);
    if (comes_late) {
        sleep_ms(1500);
        (void)pthread_mutex_unlock(&other->cluster->admin_lane);
    }
    latch_wait(&c.done);
    latch_done(&c.done);
    if (!comes_late)
        (void)pthread_mutex_unlock(&other->cluster->admin_lane);
    assert_int_equal(pthread_join(thread, NULL), 0);
    Status status = c.change.status;
    catalog_change_release(&c.change);
    return status;
}

static void a_node_that_leaves_answers_changes_when_the_others_have_them(void **state)
{
    (void)state;
    assert_int_equal(change_and_leave(true), STATUS_OK);
}

static void a_node_that_leaves_does_not_answer_what_the_others_have_not(void **state)
{
    (void)state;
    assert_int_equal(change_and_leave(false), STATUS_TIMEOUT);
}

static void a_store_tells_of_changes_until_it_is_closed(void **state)
{
    (void)state;
    begin(2);
    RealNode *leader = owner_of(SPACE_OF_CATALOG);
    RealNode *other = &real.nodes[leader == &real.nodes[0]];
    stop_cluster(other, true, 0);
    (void)make_database(leader, "d", 0);
    uint64_t seq = replication_place(leader->replication, SPACE_OF_CATALOG).applied.seq;
    WAIT_UNTIL(replication_place(other->replication, SPACE_OF_CATALOG).applied.seq == seq);
    stop_store(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_container_is_on_every_node_when_its_creation_is_answered),
        CASE(a_space_moves_under_load_and_no_write_is_lost),
        CASE(spaces_are_gathered_for_a_move_of_ranges),
        CASE(rows_that_the_catalogue_does_not_name_are_dropped),
        CASE(ranges_that_share_throughput_move_together),
        CASE(a_node_that_leaves_hands_everything_over),
        CASE(a_node_that_dies_is_replaced),
        CASE(a_node_that_leaves_answers_changes_when_the_others_have_them),
        CASE(a_node_that_leaves_does_not_answer_what_the_others_have_not),
        CASE(a_store_tells_of_changes_until_it_is_closed),
        CASE(a_new_node_is_seeded_where_the_log_was_trimmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
