/* testing_int.h - what the tests of the catalogue share: a catalogue on either engine that can be
 * closed and opened again, and changes that are waited for.
 *
 * JSON in rows is written with ' for ", so that it stays readable.
 */
#pragma once

/* Rows leave out what they do not care about. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#include "base/latch.h"
#include "base/mem.h"
#include "catalog/catalog.h"
#include "catalog/record_int.h"
#include "store/memory/memory_store.h"
#include "store/rocksdb/rocksdb_store.h"
#include "json/json_testing.h"

#include <fcntl.h>
#include <unistd.h>

#define TEST_BEGIN_S 1700000000

/* The normal form of a container called 'id', with more members in 'rest' (",'a':1"). */
static inline Json row_definition(Arena *arena, const char *id, const char *rest)
{
    Slice row =
        arena_format(arena, "{'id':'%s','partitionKey':{'paths':['/pk'],'version':2}%s}", id, rest);
    Json normal = JSON_NONE;
    assert_ok(container_definition_create(arena, row_json(arena, arena_cstr(arena, row)),
                                          (ContainerRules){0}, &normal, err));
    return normal;
}

/* Where containers that are made without a catalogue have their partitions. A group of tests opens
 * it with test_host_setup and closes it with test_host_teardown. */
static PartitionHost *test_host UNUSED;

static inline int test_host_setup(void **state)
{
    (void)state;
    PartitionHost *host = MEM_NEW(PartitionHost);
    memory_store_open_with(&PARTITION_MERGE, &host->store);
    host->writers = workers_open("test", 1, UINT32_MAX);
    host->clock = clock_real();
    test_host = host;
    return 0;
}

static inline int test_host_teardown(void **state)
{
    (void)state;
    workers_close(test_host->writers);
    store_close(test_host->store);
    mem_free(TAKE(test_host));
    return 0;
}

typedef enum TestEngine { TEST_MEMORY, TEST_ROCKSDB, TEST_ENGINE_COUNT } TestEngine;

typedef struct TestCatalog {
    TestEngine engine;
    TestFolder folder; /* of RocksDB */
    Store *store;
    PartitionHost host;
    Catalog *catalog;
    CatalogReader reader;
    FakeClock clock;
    Log log;
    Metrics metrics;
    Arena arena; /* what changes point to */
    const ProvisionRules *rules;
    const MoveRules *moves; /* from the next opening on */
    const CatalogPlacement *placement;
    const Clock *catalog_clock; /* NULL for the same one as everybody's */
} TestCatalog;

/* What catalog_open says about the store as it is. */
static inline Status test_try_open(TestCatalog *t, Error *err)
{
    t->host = (PartitionHost){.store = t->store,
                              .writers = workers_open("test", 2, UINT32_MAX),
                              .clock = &t->clock.clock,
                              .log = &t->log};
    CatalogOptions options = {.host = &t->host,
                              .clock =
                                  t->catalog_clock != NULL ? t->catalog_clock : &t->clock.clock,
                              .log = &t->log,
                              .metrics = &t->metrics.shards[0],
                              .throughput = t->rules,
                              .moves = t->moves,
                              .placement = t->placement};
    Status status = catalog_open(&options, &t->catalog, err);
    if (status != STATUS_OK) {
        partition_host_stop(&t->host);
        workers_close(TAKE(t->host.writers));
        return status;
    }
    catalog_reader_init(&t->reader, t->catalog);
    return STATUS_OK;
}

static inline void test_close_catalog(TestCatalog *t)
{
    catalog_reader_done(&t->reader);
    atomic_store(&t->host.is_closing, true);
    catalog_close(TAKE(t->catalog));
    partition_host_stop(&t->host);
    workers_close(TAKE(t->host.writers));
}

static inline void test_open_store(TestCatalog *t)
{
    if (t->engine == TEST_MEMORY) {
        memory_store_open_with(&PARTITION_MERGE, &t->store);
        return;
    }
    RocksdbStoreOptions options = {
        .path = t->folder.path, .cache_bytes = (size_t)8 << 20, .merge = &PARTITION_MERGE};
    assert_ok(rocksdb_store_open(&options, &t->store, err));
}

/* As a restart of the process: what is not in the store is forgotten. */
static inline void test_reopen(TestCatalog *t)
{
    test_close_catalog(t);
    if (t->engine == TEST_ROCKSDB) {
        store_close(TAKE(t->store));
        test_open_store(t);
    }
    assert_ok(test_try_open(t, err));
}

/* Everything but the store and the catalogue. */
static inline void test_init(TestCatalog *t, TestEngine engine, const ProvisionRules *rules)
{
    *t = (TestCatalog){.engine = engine, .rules = rules};
    if (engine == TEST_ROCKSDB)
        test_folder_init(&t->folder);
    fake_clock_init(&t->clock, UINT64_C(1000000) * TEST_BEGIN_S);
    t->log = (Log){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC),
                   .level = LOG_LEVEL_DEBUG,
                   .clock = &t->clock.clock};
    metrics_init(&t->metrics, 1);
    arena_init(&t->arena, 4096);
}

static inline void test_open_with(TestCatalog *t, TestEngine engine, const ProvisionRules *rules)
{
    test_init(t, engine, rules);
    test_open_store(t);
    assert_ok(test_try_open(t, err));
}

static inline void test_open(TestCatalog *t, TestEngine engine)
{
    test_open_with(t, engine, NULL);
}

static inline void test_done(TestCatalog *t)
{
    test_folder_done(&t->folder);
    (void)close(t->log.fd);
    metrics_done(&t->metrics);
    arena_done(&t->arena);
}

static inline void test_close(TestCatalog *t)
{
    test_close_catalog(t);
    store_close(TAKE(t->store));
    test_done(t);
}
DEFINE_AUTO_VALUE(TestCatalog, test_close)

static inline Snapshot *test_read(TestCatalog *t)
{
    return catalog_read(&t->reader);
}

/* A change that a test waits for; test_change_done gives its results back. */
typedef struct TestChange {
    CatalogChange change;
    Latch answered;
} TestChange;

static inline void test_change_answer(CatalogChange *change)
{
    latch_post(&CONTAINER_OF(change, TestChange, change)->answered);
}

static inline void test_change_init(TestChange *c, CatalogOp op)
{
    *c = (TestChange){.change = {.op = op, .done = test_change_answer}};
    latch_init(&c->answered);
}

static inline void test_change_done(TestChange *c)
{
    catalog_change_release(&c->change);
    latch_done(&c->answered);
}
DEFINE_AUTO_VALUE(TestChange, test_change_done)

static inline bool test_is_answered(TestChange *c)
{
    return latch_is_posted(&c->answered);
}

static inline Status test_wait(TestChange *c)
{
    latch_wait(&c->answered);
    return c->change.status;
}

static inline Status test_run(Catalog *catalog, TestChange *c)
{
    catalog_submit(catalog, &c->change);
    return test_wait(c);
}

#define MANUAL(n)    ((Provision){.mode = PROVISION_MANUAL, .ru = (n)})
#define AUTOSCALE(n) ((Provision){.mode = PROVISION_AUTOSCALE, .ru = (n)})

/* These fill in a change; a provision of 0 RU means that none was asked for. */
static inline void fill_database(TestChange *c, Slice id, Provision provision)
{
    test_change_init(c, CATALOG_CREATE_DATABASE);
    c->change.id = id;
    c->change.provision = provision;
    c->change.has_provision = provision.ru != 0;
}

static inline void fill_container(TestChange *c, uint32_t database, Json definition,
                                  Provision provision)
{
    test_change_init(c, CATALOG_CREATE_CONTAINER);
    c->change.database = database;
    c->change.definition = definition;
    c->change.provision = provision;
    c->change.has_provision = provision.ru != 0;
}

/* And these run one that must succeed, and return the number of what was made. */
static inline uint32_t make_database(TestCatalog *t, const char *id, Provision provision)
{
    AUTO(test_change_done) TestChange c;
    fill_database(&c, slice_from_cstr(id), provision);
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
    return c.change.result_database->info.number;
}

static inline uint32_t make_defined(TestCatalog *t, uint32_t database, Json definition,
                                    Provision provision)
{
    AUTO(test_change_done) TestChange c;
    fill_container(&c, database, definition, provision);
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
    return c.change.result_container->info.number;
}

static inline uint32_t make_container(TestCatalog *t, uint32_t database, const char *id,
                                      Provision provision)
{
    return make_defined(t, database, row_definition(&t->arena, id, ""), provision);
}

/* A script of a container, as 'text' for a stored procedure; ids and texts without quotes. */
static inline Json row_script(Arena *arena, StoredScriptKind kind, const char *id, const char *text)
{
    Slice row =
        arena_format(arena, "{'id':'%s','body':'%s'%s}", id, text,
                     kind == STORED_TRIGGER ? ",'triggerType':'pre','triggerOperation':'All'" : "");
    Json normal = JSON_NONE;
    assert_ok(stored_script_definition_create(arena, kind, row_json(arena, arena_cstr(arena, row)),
                                              &normal, err));
    return normal;
}

static inline void fill_script(TestChange *c, CatalogOp op, StoredScriptGroup group,
                               Json definition)
{
    test_change_init(c, op);
    c->change.database = group.database;
    c->change.container = group.container;
    c->change.script_kind = group.kind;
    c->change.definition = definition;
}

static inline uint32_t make_script(TestCatalog *t, StoredScriptGroup group, const char *id)
{
    AUTO(test_change_done) TestChange c;
    fill_script(&c, CATALOG_CREATE_SCRIPT, group,
                row_script(&t->arena, group.kind, id, "function () {}"));
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
    return c.change.result_script->info.number;
}

/* A user, and a permission of one: 'rest' is what follows its id, like
 * "'resource':'dbs/d/colls/c'".
 */
static inline void fill_user(TestChange *c, CatalogOp op, uint32_t database, const char *id)
{
    test_change_init(c, op);
    c->change.database = database;
    c->change.id = slice_from_cstr(id);
}

static inline uint32_t make_user(TestCatalog *t, uint32_t database, const char *id)
{
    AUTO(test_change_done) TestChange c;
    fill_user(&c, CATALOG_CREATE_USER, database, id);
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
    return c.change.result_user->info.number;
}

static inline Json row_permission(Arena *arena, const char *id, const char *mode, const char *rest)
{
    Slice row = arena_format(arena, "{'id':'%s','permissionMode':'%s',%s}", id, mode, rest);
    Json normal = JSON_NONE;
    assert_ok(
        permission_definition_create(arena, row_json(arena, arena_cstr(arena, row)), &normal, err));
    return normal;
}

static inline void fill_permission(TestChange *c, CatalogOp op, UserKey owner, Json definition)
{
    test_change_init(c, op);
    c->change.database = owner.database;
    c->change.user = owner.user;
    c->change.definition = definition;
}

static inline uint32_t make_permission(TestCatalog *t, UserKey owner, const char *id,
                                       const char *rest)
{
    AUTO(test_change_done) TestChange c;
    fill_permission(&c, CATALOG_CREATE_PERMISSION, owner,
                    row_permission(&t->arena, id, "Read", rest));
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
    return c.change.result_permission->info.number;
}

static inline Status delete_one(TestCatalog *t, CatalogOp op, uint32_t database, uint32_t container)
{
    AUTO(test_change_done) TestChange c;
    test_change_init(&c, op);
    c.change.database = database;
    c.change.container = container;
    return test_run(t->catalog, &c);
}

/* Submits the changes so that they form one group, and waits for them. With the memory engine. */
static inline void run_as_group(TestCatalog *t, TestChange *group, size_t count)
{
    AUTO(test_change_done) TestChange blocker;
    memory_store_stall(t->store);
    fill_database(&blocker, SLICE("blocker"), MANUAL(0));
    catalog_submit(t->catalog, &blocker.change);
    memory_store_wait_stalled(t->store);
    for (size_t i = 0; i < count; i++)
        catalog_submit(t->catalog, &group[i].change);
    memory_store_release(t->store);
    for (size_t i = 0; i < count; i++)
        (void)test_wait(&group[i]);
    assert_int_equal(test_wait(&blocker), STATUS_OK);
    assert_int_equal(
        delete_one(t, CATALOG_DELETE_DATABASE, blocker.change.result_database->info.number, 0),
        STATUS_OK);
}

/* The beginning of a move: of the ranges with these ids, cut at 'cuts', texts with blanks between.
 * The ends of a move need no more than the container. */
static inline void fill_move(TestChange *c, CatalogOp op, const Container *container)
{
    test_change_init(c, op);
    c->change.database = container->database;
    c->change.container = container->info.number;
}

static inline void fill_begin(TestCatalog *t, TestChange *c, const Container *container,
                              uint32_t first, uint32_t last, const char *cuts)
{
    fill_move(c, CATALOG_BEGIN_MOVE, container);
    c->change.range_first = first;
    c->change.range_last = last;
    Slice *parts = ARENA_NEW_ARRAY(&t->arena, Slice, strlen(cuts) + 1);
    Slice rest = slice_from_cstr(cuts);
    while (rest.len > 0) {
        size_t blank = slice_find(rest, ' ');
        parts[c->change.cut_count++] = slice_first(rest, blank);
        rest = slice_from(rest, blank < rest.len ? blank + 1 : blank);
    }
    c->change.cuts = parts;
}

static inline const Container *test_container(TestCatalog *t, uint32_t database, uint32_t number)
{
    return snapshot_container(test_read(t), database, number);
}

static inline void begin_move(TestCatalog *t, uint32_t database, uint32_t number, uint32_t first,
                              uint32_t last, const char *cuts)
{
    AUTO(test_change_done) TestChange c;
    fill_begin(t, &c, test_container(t, database, number), first, last, cuts);
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
}

static inline void finish_move(TestCatalog *t, CatalogOp op, uint32_t database, uint32_t number)
{
    AUTO(test_change_done) TestChange c;
    fill_move(&c, op, test_container(t, database, number));
    if (test_run(t->catalog, &c) != STATUS_OK)
        fail_msg("%s", c.change.error.message);
}

/* A whole move, of no data. */
static inline void move_ranges(TestCatalog *t, uint32_t database, uint32_t number, uint32_t first,
                               uint32_t last, const char *cuts)
{
    begin_move(t, database, number, first, last, cuts);
    finish_move(t, CATALOG_END_MOVE, database, number);
}

/* Everything that a snapshot shows, as text: two that print the same are the same. */
static inline void dump_info(const ResourceInfo *info, Buf *out)
{
    buf_format(out, "%u id=%.*s lsn=%llu ts=%lld rid=%.*s etag=%.*s ", info->number,
               SLICE_ARG(info->id), (unsigned long long)info->lsn, (long long)info->ts_s,
               SLICE_ARG(info->rid), SLICE_ARG(info->etag));
}

static inline void dump_ranges(const char *what, const PartitionRange *ranges, size_t count,
                               Buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const PartitionRange *range = &ranges[i];
        buf_format(out, "\n    %s %llu id=%u %.*s-%.*s lsn=%llu from", what,
                   (unsigned long long)range->space, range->id, SLICE_ARG(range->min),
                   SLICE_ARG(range->max), (unsigned long long)range->lsn);
        for (size_t j = 0; j < range->parent_count; j++)
            buf_format(out, " %u", range->parents[j]);
    }
}

static inline void dump_scripts(const Snapshot *snapshot, StoredScriptGroup group, Buf *out)
{
    size_t count = 0;
    const StoredScript *script;
    for (uint32_t i = 0; (script = snapshot_next_script(snapshot, group, i)) != NULL;
         i = script->info.number + 1, count++) {
        buf_format(out, "\n    script kind=%d type=%d operation=%d body=%.*s ", (int)group.kind,
                   (int)script->trigger_type, (int)script->trigger_operation,
                   SLICE_ARG(script->body));
        dump_info(&script->info, out);
        json_print(script->definition, out);
        assert_ptr_equal(snapshot_script(snapshot, group, script->info.number), script);
        assert_ptr_equal(snapshot_script_by_id(snapshot, group, script->info.id), script);
    }
    assert_int_equal(snapshot_script_count(snapshot, group), count);
}

static inline void dump_permissions(const Snapshot *snapshot, UserKey owner, Buf *out)
{
    size_t count = 0;
    const Permission *permission;
    for (uint32_t i = 0; (permission = snapshot_next_permission(snapshot, owner, i)) != NULL;
         i = permission->info.number + 1, count++) {
        buf_format(out, "\n    permission granted=%llu mode=%d ",
                   (unsigned long long)permission->granted_lsn, (int)permission->mode);
        dump_info(&permission->info, out);
        json_print(permission->definition, out);
        assert_ptr_equal(snapshot_permission(snapshot, owner, permission->info.number), permission);
        assert_ptr_equal(snapshot_permission_by_id(snapshot, owner, permission->info.id),
                         permission);
        assert_ptr_equal(snapshot_permission_by_grant(snapshot, owner, permission->grant),
                         permission);
    }
    assert_int_equal(snapshot_permission_count(snapshot, owner), count);
}

static inline void dump_users(const Snapshot *snapshot, uint32_t database, Buf *out)
{
    size_t count = 0;
    const User *user;
    for (uint32_t i = 0; (user = snapshot_next_user(snapshot, database, i)) != NULL;
         i = user->info.number + 1, count++) {
        buf_slice(out, SLICE("\n  user "));
        dump_info(&user->info, out);
        assert_ptr_equal(snapshot_user(snapshot, user_key(user)), user);
        assert_ptr_equal(snapshot_user_by_id(snapshot, database, user->info.id), user);
        dump_permissions(snapshot, user_key(user), out);
    }
    assert_int_equal(snapshot_user_count(snapshot, database), count);
}

static inline void dump_container(const Snapshot *snapshot, const Container *container, Buf *out)
{
    buf_format(out, "\n  container (offer %u) ", container->offer);
    dump_info(&container->info, out);
    json_print(container->definition, out);
    assert_ptr_equal(snapshot_container_by_id(snapshot, container->database, container->info.id),
                     container);
    assert_ptr_equal(snapshot_container(snapshot, container->database, container->info.number),
                     container);
    buf_format(out, "\n    ranges next=%u lsn=%llu", container->range_next,
               (unsigned long long)container->ranges_lsn);
    dump_ranges("space", container->ranges, container->range_count, out);
    dump_ranges("pending", container->pending, container->pending_count, out);
    for (int kind = 0; kind < STORED_SCRIPT_KINDS; kind++)
        dump_scripts(snapshot, container_scripts(container, (StoredScriptKind)kind), out);
}

static inline void dump_snapshot(const Snapshot *snapshot, Buf *out)
{
    size_t containers = 0;
    const Database *database;
    for (uint32_t i = 0; (database = snapshot_next_database(snapshot, i)) != NULL;
         i = database->info.number + 1) {
        buf_format(out, "\ndatabase (offer %u) ", database->offer);
        dump_info(&database->info, out);
        assert_ptr_equal(snapshot_database_by_id(snapshot, database->info.id), database);
        dump_users(snapshot, database->info.number, out);
        const Container *container;
        size_t count = 0;
        size_t shared = 0;
        for (uint32_t j = 0;
             (container = snapshot_next_container(snapshot, database->info.number, j)) != NULL;
             j = container->info.number + 1) {
            dump_container(snapshot, container, out);
            count++;
            shared += container->offer == 0 ? 1 : 0;
        }
        assert_int_equal(snapshot_shared_count(snapshot, database->info.number), shared);
        containers += count;
    }
    assert_int_equal(snapshot->container_count, containers);
    const Offer *offer;
    for (uint32_t i = 0; (offer = snapshot_next_offer(snapshot, i)) != NULL;
         i = offer->info.number + 1) {
        buf_format(out, "\noffer of %u/%u %.*s mode=%d ru=%u +%u%% ever=%u,%llu replaced=%lld ",
                   offer->database, offer->container, SLICE_ARG(offer->owner_rid),
                   offer->provision.mode, offer->provision.ru, offer->provision.increment_percent,
                   offer->ru_ever, (unsigned long long)offer->storage_kb_ever,
                   (long long)offer->replaced_at_s);
        for (size_t j = 0; j < BUDGET_BUCKETS_MAX; j++)
            buf_format(out, "%u%s,", offer->buckets.percent[j],
                       offer->buckets.chosen == j + 1 ? "*" : "");
        dump_info(&offer->info, out);
    }
    assert_false(buf_full(out));
}

/* The same, of what the catalogue shows now; lives as long as the test. */
static inline Slice test_dump(TestCatalog *t)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, (size_t)64 << 20);
    dump_snapshot(test_read(t), &text);
    return arena_copy(&t->arena, buf_view(&text));
}

/* How many keys a space holds. */
static inline size_t count_keys(Store *store, StoreSpace space)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, space, SLICE_EMPTY, SLICE_EMPTY);
    size_t count = 0;
    for (;; count++) {
        Slice key, value;
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return count;
    }
}

/* Pieces of garbage that are noted. */
static inline size_t count_garbage(Store *store)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(store, NULL, SPACE_CATALOG, SLICE("\x05"), SLICE("\x06"));
    for (size_t count = 0;; count++) {
        Slice key, value;
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return count;
    }
}

/* An item on its way to the first partition of a container. */
typedef struct TestWrite {
    PartitionWrite write;
    ItemWrite item;
    Arena arena;
    Latch answered;
} TestWrite;

static inline void test_write_answer(PartitionWrite *write)
{
    latch_post(&CONTAINER_OF(write, TestWrite, write)->answered);
}

/* An upsert of the item in 'row', a document with an id. All have the same EPK, and go to whatever
 * partition a test likes: none asks whether a key is its own. */
static inline void test_write_init(TestWrite *w, const char *row)
{
    *w = (TestWrite){.write = {.mode = WRITE_CONTINUE, .count = 1, .done = test_write_answer}};
    arena_init(&w->arena, 1024);
    latch_init(&w->answered);
    w->write.items = &w->item;
    w->write.arena = &w->arena;
    w->item.op = ITEM_UPSERT;
    w->item.epk.len = 1;
    assert_ok(item_prepare(&w->arena, row_json(&w->arena, row), &w->item.document,
                           &w->item.document_id, &w->item.ttl_s, err));
    w->item.id = w->item.document_id;
}

static inline void test_write_done(TestWrite *w)
{
    latch_done(&w->answered);
    arena_done(&w->arena);
}
DEFINE_AUTO_VALUE(TestWrite, test_write_done)

static inline void test_write_wait(TestWrite *w)
{
    latch_wait(&w->answered);
}

static inline void make_item(Partition *partition, const char *row)
{
    AUTO(test_write_done) TestWrite w;
    test_write_init(&w, row);
    assert_ok(partition_submit(partition, &w.write, err));
    test_write_wait(&w);
    if (w.write.status != STATUS_OK || w.item.status != STATUS_OK)
        fail_msg("%s%s", w.write.error.message, w.item.error.message);
}

/* Runs every test once for every engine, on a catalogue that is fresh for each. */
typedef struct EngineTest {
    const char *name;
    void (*run)(TestCatalog *t);
} EngineTest;
#define ENGINE_TEST(function)              \
    {                                      \
        .name = #function, .run = function \
    }

static inline void run_on_engine(size_t engine, const void *test)
{
    const EngineTest *one = test;
    AUTO(test_close) TestCatalog t;
    test_open(&t, (TestEngine)engine);
    one->run(&t);
}

static inline int run_on_every_engine(const char *group, const EngineTest *tests, size_t count)
{
    static const char *const names[] = {[TEST_MEMORY] = "memory", [TEST_ROCKSDB] = "rocksdb"};
    static const TestVariants variants = {names, TEST_ENGINE_COUNT, run_on_engine};
    return test_run_variants(group, &variants, tests, sizeof(*tests), count);
}
