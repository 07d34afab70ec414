/* container_testing_int.h - for tests: a container of a few partitions, filled and queried by
 * pages. Not part of the library. */
#pragma once

#include "base/mem.h"
#include "query/page.h"
#include "query/testing_int.h"
#include "store/memory/memory_store.h"

#include <fcntl.h>
#include <semaphore.h>
#include <unistd.h>

enum { TEST_PARTITIONS_MAX = 3 };

typedef struct TestContainer {
    Arena arena;
    Store *store;
    Workers *writers;
    PartitionHost host;
    Log log;
    PartitionSchema *schema;
    Partition *partitions[TEST_PARTITIONS_MAX];
    size_t partition_count;
} TestContainer;

/* 'policy' is the normal form of an indexing policy; NULL: the default. The key is "/pk". */
static inline PartitionSchema *test_schema(const char *policy)
{
    PartitionSchema *schema = schema_new();
    schema->database = 1;
    schema->container = 2;
    schema->self = SLICE("dbs/AQAAAA==/colls/AQAAAIAAAAI=/");
    schema->key.kind = PARTITION_HASH_V2;
    schema->key.path_count = 1;
    size_t position = 0;
    assert_true(path_parse(&schema->arena, SLICE("/pk"), &schema->key.paths[0], &position));
    Error err;
    IndexPolicy *index = NULL;
    Json json = parse_json(&schema->arena, policy);
    if (index_policy_new(&schema->arena, json, schema->key.paths, 1, &index, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    schema->index = index;
    JsonBuilder b;
    json_build(&b, &schema->arena);
    json_begin_object(&b);
    json_end(&b);
    schema->index_text = json_bytes(&schema->arena, json.at == NULL ? json_built(&b) : json);
    return schema;
}

static inline void test_container_open(TestContainer *t, const char *policy, size_t partitions)
{
    *t = (TestContainer){.partition_count = partitions};
    arena_init(&t->arena, 4096);
    memory_store_open_with(&PARTITION_MERGE, &t->store);
    t->writers = workers_open("test", 1, 8);
    t->log = (Log){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC),
                   .level = LOG_LEVEL_ERROR,
                   .clock = clock_real()};
    t->host = (PartitionHost){
        .store = t->store,
        .writers = t->writers,
        .clock = clock_real(),
        .log = &t->log,
        .cache = item_cache_open((size_t)1 << 20, (HashKey){3, 4}),
    };
    t->schema = test_schema(policy);
    Error err;
    for (size_t i = 0; i < partitions; i++) {
        if (partition_open(&t->host, 100 + i, (uint32_t)i, t->schema, &t->partitions[i], &err) !=
            STATUS_OK)
            fail_msg("%s", err.message);
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

typedef struct TestWrite {
    PartitionWrite write;
    ItemWrite item;
    sem_t done;
} TestWrite;

static inline void test_written(PartitionWrite *write)
{
    (void)sem_post(&CONTAINER_OF(write, TestWrite, write)->done);
}

/* The partition of an EPK: each has an equal share of the first byte. */
static inline size_t test_partition_of(const TestContainer *t, const Epk *epk)
{
    return (size_t)epk->bytes[0] * t->partition_count / 64 < t->partition_count
               ? (size_t)epk->bytes[0] * t->partition_count / 64
               : t->partition_count - 1;
}

static inline void test_write(TestContainer *t, ItemOp op, Json body)
{
    Error err;
    TestWrite *w = ARENA_NEW(&t->arena, TestWrite);
    assert_int_equal(sem_init(&w->done, 0, 0), 0);
    Slice id;
    int32_t ttl_s = 0;
    if (item_prepare(&t->arena, body, &w->item.document, &id, &ttl_s, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    PartitionKey key = {.count = 1, .parts = {path_get(t->schema->key.paths[0], body)}};
    epk_make(t->schema->key.kind, &key, &w->item.epk);
    w->item.op = op;
    w->item.id = id;
    w->item.document_id = id;
    w->write.mode = WRITE_CONTINUE;
    w->write.items = &w->item;
    w->write.count = 1;
    w->write.arena = &t->arena;
    w->write.done = test_written;
    Partition *partition = t->partitions[test_partition_of(t, &w->item.epk)];
    if (partition_submit(partition, &w->write, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    while (sem_wait(&w->done) != 0)
        continue;
    (void)sem_destroy(&w->done);
    if (w->item.status != STATUS_OK)
        fail_msg("%s", w->item.error.message);
}
