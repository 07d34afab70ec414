/* partition_testing_int.h - what the tests of partitions share: a partition on either engine that
 * can be closed and opened again, writes that are waited for, and check_space, which compares every
 * key of the space with every other.
 *
 * JSON in rows is written with ' for ", so that it stays readable. A partition key is the text of
 * its one string, or a row with one value per path: "['a',1]".
 */
#pragma once

#include "base/latch.h"
#include "base/mem.h"
#include "partition/group_int.h"
#include "partition/logical_partitions.h"
#include "store/memory/memory_store.h"
#include "store/rocksdb/rocksdb_store.h"
#include "json/json_testing.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define TEST_BEGIN_S 1700000000

#define TEST_READ_BYTES_MAX ((size_t)4 << 20)

enum { TEST_SPACE = 7, TEST_PARTITION = 5, TEST_OPS_MAX = 16, TEST_WRITERS = 2 };

typedef enum TestEngine { TEST_MEMORY, TEST_ROCKSDB, TEST_ENGINE_COUNT } TestEngine;

typedef struct TestPartition {
    TestEngine engine;
    TestFolder folder; /* of RocksDB */
    Store *store;
    Workers *writers;
    PartitionHost host;
    FakeClock clock;
    Log log;
    PartitionSchema *schema;
    Partition *partition;
    uint64_t logical_bytes_max; /* of the host, over reopens: see test_set_limit */
    bool is_ttl_changed;        /* then expiry notes may be left over from before */
    Arena arena;                /* lives as long as the test */
} TestPartition;

/* A container's definition: the key's kind and paths ("/pk" or "/a /b"), the default TTL, and
 * unique keys, each a list of paths, ended by NULL. */
typedef struct TestSchema {
    PartitionKind kind;
    const char *paths;
    int64_t ttl_s;
    const char *unique[4];
    const char *index; /* the policy; NULL for the default; "" if nothing is indexed */
    uint64_t retention_s;
} TestSchema;

static inline size_t parse_paths(Arena *arena, const char *text, PropertyPath *out, size_t max)
{
    size_t count = 0;
    Slice rest = slice_from_cstr(text);
    while (rest.len > 0) {
        Slice one = slice_cut(&rest, ' ');
        size_t position = 0;
        assert_true(count < max);
        assert_true(property_path_parse(arena, one, &out[count++], &position));
    }
    return count;
}

static inline PartitionSchema *test_schema(TestSchema options)
{
    PartitionSchema *schema = schema_new();
    schema->database = 0x11223344;
    schema->container = 0x556677;
    schema->self = SLICE("dbs/RDMiEQ==/colls/RDMiEYBVZnc=/");
    schema->key.kind = options.kind;
    schema->key.path_count =
        parse_paths(&schema->arena, options.paths, schema->key.paths, PARTITION_KEY_PATHS_MAX);
    schema->default_ttl_s = options.ttl_s;
    schema->retention_s = options.retention_s;
    size_t count = 0;
    while (count < ARRAY_COUNT(options.unique) && options.unique[count] != NULL)
        count++;
    UniqueKey *keys = ARENA_NEW_ARRAY(&schema->arena, UniqueKey, count);
    for (size_t i = 0; i < count; i++) {
        PropertyPath *paths = ARENA_NEW_ARRAY(&schema->arena, PropertyPath, 4);
        keys[i].path_count = parse_paths(&schema->arena, options.unique[i], paths, 4);
        keys[i].paths = paths;
    }
    schema->unique_keys = keys;
    schema->unique_key_count = count;
    const char *index = options.index != NULL ? options.index : "{}";
    if (index[0] != '\0') {
        Json json = row_json(&schema->arena, index);
        IndexPolicy *policy = NULL;
        assert_ok(index_policy_new(&schema->arena, json, schema->key.paths, schema->key.path_count,
                                   &policy, err));
        schema->index = policy;
        schema->index_text = json_bytes(&schema->arena, json);
    }
    return schema;
}

static inline void test_open_store(TestPartition *t)
{
    if (t->engine == TEST_MEMORY) {
        memory_store_open_with(&PARTITION_MERGE, &t->store);
        return;
    }
    RocksdbStoreOptions options = {
        .path = t->folder.path, .cache_bytes = (size_t)8 << 20, .merge = &PARTITION_MERGE};
    assert_ok(rocksdb_store_open(&options, &t->store, err));
}

static inline void test_open_partition(TestPartition *t)
{
    t->writers = workers_open("test", TEST_WRITERS, 8);
    t->host = (PartitionHost){
        .store = t->store,
        .writers = t->writers,
        .clock = &t->clock.clock,
        .log = &t->log,
        .cache = item_cache_open((size_t)1 << 20, (HashKey){1, 2}),
        .logical_bytes_max = t->logical_bytes_max,
    };
    assert_ok(partition_open(&t->host, TEST_SPACE, TEST_PARTITION, t->schema, &t->partition, err));
}

static inline void test_close_partition(TestPartition *t)
{
    partition_host_stop(&t->host);
    partition_unref(TAKE(t->partition));
    workers_close(TAKE(t->writers));
    item_cache_close(TAKE(t->host.cache));
}

/* As a restart of the process: what is not in the store is forgotten. */
static inline void test_reopen(TestPartition *t)
{
    test_close_partition(t);
    if (t->engine == TEST_ROCKSDB) {
        store_close(TAKE(t->store));
        test_open_store(t);
    }
    test_open_partition(t);
}

static inline void test_open(TestPartition *t, TestEngine engine, TestSchema schema)
{
    *t = (TestPartition){.engine = engine};
    if (engine == TEST_ROCKSDB)
        test_folder_init(&t->folder);
    fake_clock_init(&t->clock, UINT64_C(1000000) * TEST_BEGIN_S);
    t->log = (Log){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC),
                   .level = LOG_LEVEL_DEBUG,
                   .clock = &t->clock.clock};
    arena_init(&t->arena, 4096);
    t->schema = test_schema(schema);
    test_open_store(t);
    test_open_partition(t);
}

static inline void test_close(TestPartition *t)
{
    test_close_partition(t);
    store_close(TAKE(t->store));
    test_folder_done(&t->folder);
    (void)close(t->log.fd);
    schema_unref(t->schema);
    arena_done(&t->arena);
}
DEFINE_AUTO_VALUE(TestPartition, test_close)

/* Another definition from now on, as when a container is replaced. */
static inline void test_set_schema(TestPartition *t, TestSchema options)
{
    PartitionSchema *schema = test_schema(options);
    t->is_ttl_changed = t->is_ttl_changed || schema->default_ttl_s != t->schema->default_ttl_s;
    partition_set_schema(t->partition, schema);
    schema_unref(t->schema);
    t->schema = schema;
}

static inline void test_advance_s(TestPartition *t, uint64_t s)
{
    fake_clock_advance(&t->clock, s * 1000000);
}

static inline uint32_t test_now_s(const TestPartition *t)
{
    return (uint32_t)clock_wall_s(&t->clock.clock);
}

/* Waits until nothing is under way in the partition, background work included. */
static inline void test_settle(TestPartition *t)
{
    while (atomic_load(&t->host.active) > 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* How many bytes the items of a partition key may have; 0 if there is no limit. */
static inline void test_set_limit(TestPartition *t, uint64_t bytes)
{
    test_settle(t);
    t->logical_bytes_max = bytes;
    t->host.logical_bytes_max = bytes;
}

static inline void test_maintain(TestPartition *t)
{
    partition_maintain(t->partition);
    test_settle(t);
}

static inline void make_epk(Arena *arena, const PartitionSchema *schema, const char *row, Epk *out)
{
    PartitionKey key = {.count = 0};
    Json list = row[0] == '[' ? row_json(arena, row)
                              : row_json(arena, arena_format(arena, "['%s']", row).ptr);
    JsonIter it = json_iter(list);
    while (json_next(&it))
        key.parts[key.count++] = it.value;
    epk_make(schema->key.kind, &key, out);
}

/* Adds to what the record of a logical partition says, and to nothing else. */
static inline void test_resize(TestPartition *t, const char *pk, int64_t items, int64_t bytes)
{
    Epk epk;
    Key key;
    uint8_t record[SIZE_RECORD_BYTES];
    make_epk(&t->arena, t->schema, pk, &epk);
    key_size(&key, epk_slice(&epk));
    size_encode((SizeSum){items, bytes}, record);
    StoreTxn *txn = store_txn_begin(t->store);
    store_txn_merge(txn, TEST_SPACE, key_slice(&key), slice_make(record, sizeof(record)));
    assert_ok(store_txn_commit_wait(txn, err));
}

/* What the record of a logical partition says; nothing if there is none. */
static inline LogicalSize test_size_of(TestPartition *t, const char *pk)
{
    Epk epk;
    make_epk(&t->arena, t->schema, pk, &epk);
    AUTO(logical_partitions_close) LogicalPartitions *walk = NULL;
    assert_ok(logical_partitions_open(t->partition, epk_slice(&epk), SLICE_EMPTY, &walk, err));
    LogicalSize size = {0};
    bool found = false;
    assert_ok(logical_partitions_next(walk, &size, &found, err));
    if (!found || !slice_equal(size.epk, epk_slice(&epk)))
        size = (LogicalSize){0};
    size.epk = SLICE_EMPTY; /* it does not outlive the walk */
    return size;
}

static inline void epk_of_document(const PartitionSchema *schema, Json document, Epk *out)
{
    PartitionKey key = {.count = schema->key.path_count};
    for (size_t i = 0; i < key.count; i++)
        key.parts[i] = property_path_get(schema->key.paths[i], document);
    epk_make(schema->key.kind, &key, out);
}

/* A write of one or more operations, to be run with test_run, or submitted and waited for. */
typedef struct TestWrite {
    PartitionWrite write;
    ItemWrite items[TEST_OPS_MAX];
    const PartitionSchema *schema;
    Arena arena;
    Latch answered;
} TestWrite;

static inline void test_answer(PartitionWrite *write)
{
    latch_post(&CONTAINER_OF(write, TestWrite, write)->answered);
}

static inline void test_write_init(TestWrite *w, const TestPartition *t, WriteMode mode)
{
    *w = (TestWrite){
        .write = {.mode = mode, .read_bytes_max = TEST_READ_BYTES_MAX, .done = test_answer},
        .schema = t->schema};
    arena_init(&w->arena, 4096);
    w->write.items = w->items;
    w->write.arena = &w->arena;
    latch_init(&w->answered);
}

static inline void test_write_done(TestWrite *w)
{
    arena_done(&w->arena);
    latch_done(&w->answered);
}
DEFINE_AUTO_VALUE(TestWrite, test_write_done)

static inline ItemWrite *add_op(TestWrite *w, ItemOp op)
{
    assert_true(w->write.count < TEST_OPS_MAX);
    ItemWrite *item = &w->items[w->write.count++];
    item->op = op;
    return item;
}

/* Create, upsert or replace: of the document's own id unless another is said. */
static inline ItemWrite *add_document(TestWrite *w, ItemOp op, const char *row)
{
    ItemWrite *item = add_op(w, op);
    assert_ok(item_prepare(&w->arena, row_json(&w->arena, row), &item->document, &item->document_id,
                           &item->ttl_s, err));
    epk_of_document(w->schema, item->document, &item->epk);
    item->id = item->document_id;
    return item;
}

/* Read, delete; replace of 'id' by a document. */
static inline ItemWrite *add_id(TestWrite *w, ItemOp op, const char *pk, const char *id)
{
    ItemWrite *item = add_op(w, op);
    make_epk(&w->arena, w->schema, pk, &item->epk);
    item->id = arena_copy(&w->arena, slice_from_cstr(id));
    return item;
}

static inline ItemWrite *add_replace(TestWrite *w, const char *id, const char *row)
{
    ItemWrite *item = add_document(w, ITEM_REPLACE, row);
    item->id = arena_copy(&w->arena, slice_from_cstr(id));
    return item;
}

static inline ItemWrite *add_patch(TestWrite *w, const char *pk, const char *id, const char *row)
{
    ItemWrite *item = add_id(w, ITEM_PATCH, pk, id);
    Patch *patch = NULL;
    PatchRules rules = {.keys = w->schema->key.paths,
                        .key_count = w->schema->key.path_count,
                        .bytes_max = ITEM_BYTES_MAX};
    assert_ok(patch_parse(&w->arena, row_json(&w->arena, row), &rules, &patch, err));
    item->patch = patch;
    return item;
}

static inline bool is_answered(TestWrite *w)
{
    return latch_is_posted(&w->answered);
}

static inline void test_submit(TestPartition *t, TestWrite *w)
{
    assert_ok(partition_submit(t->partition, &w->write, err));
}

static inline Status test_wait(TestWrite *w)
{
    latch_wait(&w->answered);
    return w->write.status;
}

/* Runs a write whose group must become durable. */
static inline void test_run(TestPartition *t, TestWrite *w)
{
    test_submit(t, w);
    assert_status(test_wait(w), STATUS_OK);
}

/* One operation alone. */
static inline Status run_document(TestPartition *t, ItemOp op, const char *row)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_document(&w, op, row);
    test_run(t, &w);
    return w.items[0].status;
}

static inline Status run_id(TestPartition *t, ItemOp op, const char *pk, const char *id)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, t, WRITE_ATOMIC);
    (void)add_id(&w, op, pk, id);
    test_run(t, &w);
    return w.items[0].status;
}

typedef struct TestPurge {
    PartitionPurge purge;
    Latch answered;
} TestPurge;

static inline void test_purge_answer(PartitionPurge *purge)
{
    latch_post(&CONTAINER_OF(purge, TestPurge, purge)->answered);
}

static inline void test_purge_submit(TestPartition *t, TestPurge *p, const char *pk)
{
    *p = (TestPurge){.purge = {.done = test_purge_answer}};
    latch_init(&p->answered);
    make_epk(&t->arena, t->schema, pk, &p->purge.epk);
    assert_ok(partition_purge(t->partition, &p->purge, err));
}

static inline Status test_purge_wait(TestPurge *p)
{
    latch_wait(&p->answered);
    latch_done(&p->answered);
    return p->purge.status;
}

/* Returns when the purge is answered; the removal may still be under way. */
static inline Status run_purge(TestPartition *t, const char *pk)
{
    TestPurge p;
    test_purge_submit(t, &p, pk);
    return test_purge_wait(&p);
}

/* Reads an item; its document lives in the test's arena. */
static inline bool test_get(TestPartition *t, const char *pk, const char *id, Item *item)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_UNKNOWN;
    Epk epk;
    make_epk(&t->arena, t->schema, pk, &epk);
    assert_ok(partition_get(t->partition, t->schema, &epk, slice_from_cstr(id), STORE_READ_ANY,
                            item, &value, &found, err));
    assert_int_not_equal(found, STORE_UNKNOWN);
    if (found == STORE_FOUND)
        item->document = json_trust(json_bytes(&t->arena, item->document));
    return found == STORE_FOUND;
}

/* 'row' is the document without system properties; NULL if there is no such item. */
static inline void expect_item(TestPartition *t, const char *pk, const char *id, const char *row)
{
    Item item;
    bool found = test_get(t, pk, id, &item);
    if (!found || row == NULL) {
        if (found != (row != NULL))
            fail_msg("item '%s' of '%s' is %s", id, pk, found ? "there" : "not there");
        return;
    }
    assert_slice(json_print_arena(&t->arena, item.document),
                 json_print_arena(&t->arena, row_json(&t->arena, row)));
}

/* The ids that a scan gives, with a space between. */
static inline Slice scan_ids(TestPartition *t, const ScanOptions *options)
{
    AUTO(buf_done) Buf ids;
    buf_init(&ids, 1 << 20);
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    assert_ok(partition_scan_open(t->partition, t->schema, options, &scan, err));
    for (;;) {
        Item item;
        bool found = false;
        assert_ok(partition_scan_next(scan, &item, &found, err));
        if (!found)
            return arena_copy(&t->arena, buf_view(&ids));
        if (ids.len > 0)
            buf_byte(&ids, ' ');
        buf_slice(&ids, json_string(json_get(item.document, SLICE("id"))));
    }
}

static inline void expect_scan(TestPartition *t, const char *ids)
{
    ScanOptions options = {.order = SCAN_BY_NUMBER};
    assert_slice(scan_ids(t, &options), slice_from_cstr(ids));
}

/* How many keys of a kind the space has; 0 counts all kinds except those of the index. */
static inline size_t count_keys(TestPartition *t, uint8_t kind)
{
    uint8_t from[] = {kind};
    uint8_t to[] = {kind + 1};
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(t->store, NULL, TEST_SPACE, slice_make(from, kind != 0),
                                            slice_make(to, kind != 0));
    for (size_t count = 0;;) {
        Slice key, value;
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return count;
        uint8_t own = (uint8_t)key.ptr[0];
        count += kind != 0 || (own != KEY_INDEX_STATE && own != KEY_TERM) ? 1 : 0;
    }
}

/* Runs every test once for every engine, on a partition that is fresh for each. */
typedef struct EngineTest {
    const char *name;
    void (*run)(TestPartition *t);
    TestSchema schema;
} EngineTest;
#define ENGINE_TEST(function, ...)                      \
    {                                                   \
        .name = #function, .run = function, .schema = { \
            .kind = PARTITION_HASH_V2,                  \
            .paths = "/pk",                             \
            __VA_ARGS__                                 \
        }                                               \
    }

static inline void run_on_engine(size_t engine, const void *test)
{
    const EngineTest *one = test;
    AUTO(test_close) TestPartition t;
    test_open(&t, (TestEngine)engine, one->schema);
    one->run(&t);
}

static inline int run_on_engines(const char *group, const EngineTest *tests, size_t count,
                                 size_t engines)
{
    static const char *const names[] = {[TEST_MEMORY] = "memory", [TEST_ROCKSDB] = "rocksdb"};
    TestVariants variants = {names, engines, run_on_engine};
    return test_run_variants(group, &variants, tests, sizeof(*tests), count);
}

static inline int run_on_every_engine(const char *group, const EngineTest *tests, size_t count)
{
    return run_on_engines(group, tests, count, TEST_ENGINE_COUNT);
}

/* For tests that need the memory engine's faults and stalls. */
static inline int run_on_memory(const char *group, const EngineTest *tests, size_t count)
{
    return run_on_engines(group, tests, count, TEST_MEMORY + 1);
}
