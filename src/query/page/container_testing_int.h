/* container_testing_int.h - for tests and fuzz targets: a container of a few partitions, filled and
 * queried by pages. What goes wrong with it ends the process. Not part of the library. */
#pragma once

#include "base/latch.h"
#include "base/mem.h"
#include "partition/transaction.h"
#include "query/page/page.h"
#include "store/memory/memory_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEST_PARTITIONS_MAX = 3, TEST_TARGETS_MAX = 12 };

#define TEST_BEGIN_US ((uint64_t)1700000000 * 1000000)

static inline void test_check(Status status, const Error *err)
{
    if (status == STATUS_OK)
        return;
    (void)fprintf(stderr, "the test's own container: %s\n", err->message);
    abort();
}

static inline Json test_json(Arena *arena, const char *text)
{
    Error err;
    Json value = JSON_NONE;
    test_check(json_parse(arena, slice_from_cstr(text), &value, &err), &err);
    return value;
}

/* Its wall stands still until it is moved, and every look at it costs 'step_us' of the other time:
 * so time is over at the same place whenever a run is repeated. */
typedef struct TestClock {
    Clock clock;
    _Atomic uint64_t wall_us;
    _Atomic uint64_t monotonic_us;
    _Atomic uint64_t step_us;
} TestClock;

static inline uint64_t test_clock_wall(const Clock *clock)
{
    return atomic_load(&((const TestClock *)clock)->wall_us);
}

static inline uint64_t test_clock_monotonic(const Clock *clock)
{
    TestClock *test = CONTAINER_OF(UNCONST(Clock, clock), TestClock, clock);
    return atomic_fetch_add(&test->monotonic_us, atomic_load(&test->step_us));
}

typedef struct TestOptions {
    const char *policy; /* the normal form of an indexing policy; NULL for the default */
    size_t partitions;  /* 0 means one */
    int64_t ttl_s;
    bool is_hierarchical; /* the key is "/pk", "/sub" and not only "/pk" */
} TestOptions;

typedef struct TestContainer {
    Arena arena;
    TestOptions options;
    TestClock clock;
    Store *store;
    Workers *writers;
    PartitionHost host;
    Log log;
    PartitionSchema *schema;
    Partition *partitions[TEST_PARTITIONS_MAX];
    size_t partition_count;
    PartitionTransaction *transaction; /* whose views are queried; NULL for ordinary ones */
} TestContainer;

static inline PartitionSchema *test_schema(const TestOptions *options)
{
    static const char *const names[] = {"/pk", "/sub"};
    PartitionSchema *schema = schema_new();
    schema->database = 1;
    schema->container = 2;
    schema->self = SLICE("dbs/AQAAAA==/colls/AQAAAIAAAAI=/");
    schema->key.kind = options->is_hierarchical ? PARTITION_MULTI_HASH : PARTITION_HASH_V2;
    schema->key.path_count = options->is_hierarchical ? 2 : 1;
    schema->default_ttl_s = options->ttl_s;
    for (size_t i = 0; i < schema->key.path_count; i++) {
        size_t position = 0;
        bool is_path = property_path_parse(&schema->arena, slice_from_cstr(names[i]),
                                           &schema->key.paths[i], &position);
        ASSERT(is_path);
    }
    Error err;
    IndexPolicy *index = NULL;
    Json json = test_json(&schema->arena, options->policy == NULL ? "{}" : options->policy);
    test_check(index_policy_new(&schema->arena, json, schema->key.paths, schema->key.path_count,
                                &index, &err),
               &err);
    schema->index = index;
    schema->index_text = json_bytes(&schema->arena, json);
    return schema;
}

static inline void test_container_open(TestContainer *t, TestOptions options)
{
    *t = (TestContainer){.options = options,
                         .partition_count = options.partitions == 0 ? 1 : options.partitions};
    t->clock.clock = (Clock){.wall_us = test_clock_wall, .monotonic_us = test_clock_monotonic};
    atomic_store(&t->clock.wall_us, TEST_BEGIN_US);
    atomic_store(&t->clock.monotonic_us, 1000000);
    arena_init(&t->arena, 4096);
    memory_store_open_with(&PARTITION_MERGE, &t->store);
    t->writers = workers_open("test", 1, 8);
    t->log = (Log){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC),
                   .level = LOG_LEVEL_ERROR,
                   .clock = clock_real()};
    t->host = (PartitionHost){
        .store = t->store,
        .writers = t->writers,
        .clock = &t->clock.clock,
        .log = &t->log,
        .cache = item_cache_open((size_t)1 << 20, (HashKey){3, 4}),
    };
    t->schema = test_schema(&options);
    Error err;
    for (size_t i = 0; i < t->partition_count; i++) {
        test_check(
            partition_open(&t->host, 100 + i, (uint32_t)i, t->schema, &t->partitions[i], &err),
            &err);
    }
}

static inline void test_container_close(TestContainer *t)
{
    partition_host_stop(&t->host);
    for (size_t i = 0; i < t->partition_count; i++)
        partition_unref(t->partitions[i]);
    workers_close(t->writers);
    item_cache_close(t->host.cache);
    store_close(t->store);
    schema_unref(t->schema);
    (void)close(t->log.fd);
    arena_done(&t->arena);
}

static inline void test_set_policy(TestContainer *t, const char *policy)
{
    t->options.policy = policy;
    schema_unref(t->schema);
    t->schema = test_schema(&t->options);
    for (size_t i = 0; i < t->partition_count; i++)
        partition_set_schema(t->partitions[i], t->schema);
}

/* ---- writes ---- */

typedef struct TestWrite {
    PartitionWrite write;
    ItemWrite *items;
    Latch done;
} TestWrite;

static inline void test_written(PartitionWrite *write)
{
    latch_post(&CONTAINER_OF(write, TestWrite, write)->done);
}

/* The partition of an EPK: each has an equal share of the first byte, which is below 64. */
static inline size_t test_partition_of(const TestContainer *t, const Epk *epk)
{
    return (size_t)epk->bytes[0] * t->partition_count / 64;
}

static inline PartitionKey test_key(const TestContainer *t, Json body)
{
    PartitionKey key = {.count = t->schema->key.path_count};
    for (size_t i = 0; i < key.count; i++)
        key.parts[i] = property_path_get(t->schema->key.paths[i], body);
    return key;
}

static inline void test_fill_write(TestContainer *t, Arena *arena, ItemOp op, Json body,
                                   ItemWrite *out)
{
    Error err;
    *out = (ItemWrite){.op = op};
    test_check(item_prepare(arena, body, &out->document, &out->id, &out->ttl_s, &err), &err);
    PartitionKey key = test_key(t, body);
    epk_make(t->schema->key.kind, &key, &out->epk);
    out->document_id = out->id;
}

/* Writes of one partition; false if one of them failed, which then says why. */
static inline bool test_submit(TestContainer *t, Arena *arena, ItemWrite *items, size_t count)
{
    Error err;
    TestWrite w = {.items = items};
    latch_init(&w.done);
    w.write = (PartitionWrite){.mode = WRITE_CONTINUE,
                               .items = items,
                               .count = count,
                               .read_bytes_max = 1 << 20,
                               .arena = arena,
                               .done = test_written};
    Partition *partition = t->partitions[test_partition_of(t, &items[0].epk)];
    test_check(partition_submit(partition, &w.write, &err), &err);
    latch_wait(&w.done);
    latch_done(&w.done);
    for (size_t i = 0; i < count; i++) {
        if (items[i].status != STATUS_OK)
            return false;
    }
    return true;
}

static inline void test_write(TestContainer *t, ItemOp op, Json body, IndexDirective directive)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    ItemWrite item;
    test_fill_write(t, &arena, op, body, &item);
    item.directive = directive;
    if (!test_submit(t, &arena, &item, 1))
        test_check(item.status, &item.error);
}

static inline void test_insert(TestContainer *t, const char *text)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    test_write(t, ITEM_UPSERT, test_json(&arena, text), INDEX_DEFAULT);
}

typedef struct TestPurge {
    PartitionPurge purge;
    Latch done;
} TestPurge;

static inline void test_purged(PartitionPurge *purge)
{
    latch_post(&CONTAINER_OF(purge, TestPurge, purge)->done);
}

/* Hides all items of a partition key; what removes them goes on in the background. */
static inline void test_purge(TestContainer *t, const char *key)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err;
    PartitionKey parts = {.count = 1, .parts = {test_json(&arena, key)}};
    TestPurge p = {.purge = {.done = test_purged}};
    epk_make(t->schema->key.kind, &parts, &p.purge.epk);
    latch_init(&p.done);
    test_check(partition_purge(t->partitions[test_partition_of(t, &p.purge.epk)], &p.purge, &err),
               &err);
    latch_wait(&p.done);
    latch_done(&p.done);
    test_check(p.purge.status, &p.purge.error);
}

/* ---- pages ---- */

/* Where partitions begin and end, and beyond. */
static inline Slice test_bound(const TestContainer *t, size_t partition)
{
    static const char *const bounds[TEST_PARTITIONS_MAX + 1][TEST_PARTITIONS_MAX + 1] = {
        {"", "", "", ""},
        {"", "\xFF", "", ""},
        {"", "\x20", "\xFF", ""},
        {"", "\x16", "\x2B", "\xFF"}};
    return slice_from_cstr(bounds[t->partition_count][partition]);
}

typedef struct TestTargets {
    QueryTarget list[TEST_TARGETS_MAX];
    size_t count;
} TestTargets;

/* What the targets have of ['from', 'to'), each cut at 'cuts', which are in order. */
static inline void test_targets_open(TestContainer *t, Slice from, Slice to, const Slice *cuts,
                                     size_t cut_count, TestTargets *out)
{
    Error err;
    out->count = 0;
    for (size_t i = 0; i < t->partition_count; i++) {
        Slice begin = test_bound(t, i);
        Slice last = test_bound(t, i + 1);
        bool is_first = true;
        for (size_t j = 0; j <= cut_count; j++) {
            Slice end = j < cut_count && slice_compare(cuts[j], last) < 0 ? cuts[j] : last;
            if (slice_compare(end, begin) <= 0)
                continue;
            QueryTarget *target = &out->list[out->count];
            target->epk_from = slice_compare(begin, from) > 0 ? begin : from;
            target->epk_to = slice_compare(end, to) < 0 ? end : to;
            target->is_whole = is_first && slice_equal(end, last) &&
                               slice_equal(target->epk_from, begin) &&
                               slice_equal(target->epk_to, last);
            is_first = false;
            begin = end;
            if (slice_compare(target->epk_from, target->epk_to) >= 0)
                continue;
            ASSERT(out->count < TEST_TARGETS_MAX);
            Status status =
                t->transaction != NULL
                    ? transaction_view(t->transaction, STORE_READ_ANY, &target->view, &err)
                    : partition_view_open(t->partitions[i], t->schema, STORE_READ_ANY,
                                          &target->view, &err);
            test_check(status, &err);
            out->count++;
        }
    }
}

static inline void test_targets_close(TestTargets *targets)
{
    for (size_t i = 0; i < targets->count; i++)
        partition_view_close(targets->list[i].view);
}

static inline void test_targets_all(TestContainer *t, TestTargets *out)
{
    test_targets_open(t, SLICE_EMPTY, SLICE("\xFF"), NULL, 0, out);
}
