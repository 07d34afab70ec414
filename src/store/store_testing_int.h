/* store_testing_int.h - what the tests of this folder share: short ways to write, read and expect.
 *
 * Keys and values are C strings here unless a test says otherwise; NULL as an expected value means
 * that the key is absent.
 */
#pragma once

#include "base/testing.h"
#include "store/memory/memory_store.h"
#include "store/replicated/testing_int.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAST STORE_SPACE_MAX /* of the spaces */

static inline void commit_now(StoreTxn *txn)
{
    assert_ok(store_txn_commit_wait(txn, err));
}

/* As a load of this transaction alone. */
static inline void load_now(Store *store, StoreTxn *txn)
{
    StoreLoad *load = store_load_begin(store, 'k');
    assert_ok(store_load_add(load, txn, err));
    assert_ok(store_load_finish(load, err));
}

static inline void put_now(Store *store, StoreSpace space, const char *key, const char *value)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, space, slice_from_cstr(key), slice_from_cstr(value));
    commit_now(txn);
}

static inline void delete_now(Store *store, StoreSpace space, const char *key)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_delete(txn, space, slice_from_cstr(key));
    commit_now(txn);
}

static inline void expect_key(Store *store, const StoreSnapshot *snapshot, StoreSpace space,
                              const char *key, const char *expected)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_UNKNOWN;
    assert_ok(store_get(store, snapshot, space, slice_from_cstr(key), STORE_READ_ANY, &value,
                        &found, err));
    assert_int_equal(found, expected == NULL ? STORE_ABSENT : STORE_FOUND);
    if (expected != NULL)
        assert_slice(value.data, slice_from_cstr(expected));
}

static inline void expect_txn_key(StoreTxn *txn, StoreSpace space, const char *key,
                                  const char *expected)
{
    AUTO(store_value_release) StoreValue value = {0};
    bool found = false;
    assert_ok(store_txn_get(txn, space, slice_from_cstr(key), &value, &found, err));
    assert_int_equal(found, expected != NULL);
    if (expected != NULL)
        assert_slice(value.data, slice_from_cstr(expected));
}

/* Moves once. 'expected' is "key=value", or NULL for the end. */
static inline void expect_step(StoreCursor *cursor, bool up, const char *expected)
{
    Slice key = {0}, value = {0};
    bool found = false;
    assert_ok(up ? store_cursor_next(cursor, &key, &value, &found, err)
                 : store_cursor_prev(cursor, &key, &value, &found, err));
    char text[256] = "(end)";
    if (found)
        (void)snprintf(text, sizeof(text), "%.*s=%.*s", SLICE_CUT(key, 100), SLICE_CUT(value, 100));
    assert_string_equal(text, expected == NULL ? "(end)" : expected);
}

/* Walks to the end from wherever the cursor stands. 'expected' is "k=v k=v ...". Closes it. */
static inline void expect_walk(StoreCursor *cursor, bool up, const char *expected)
{
    char text[1024] = "";
    size_t len = 0;
    for (;;) {
        Slice key = {0}, value = {0};
        bool found = false;
        assert_ok(up ? store_cursor_next(cursor, &key, &value, &found, err)
                     : store_cursor_prev(cursor, &key, &value, &found, err));
        if (!found)
            break;
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s=%.*s", len > 0 ? " " : "",
                                SLICE_CUT(key, 100), SLICE_CUT(value, 100));
        assert_true(len < sizeof(text));
    }
    store_cursor_close(cursor);
    assert_string_equal(text, expected);
}

/* Keys that begin with '~' are sets of bytes in the tests' stores. A value is the sorted bytes. An
 * operand is "+a-b...", sorted too, with the later word about a byte being the one that counts; an
 * operand with anything else in it is damaged. */
enum { TEST_MERGE_KIND = '~', TEST_TAIL_BYTES = 1 };

static inline bool test_merge_one(Slice operand, char marks[256])
{
    for (size_t i = 0; i + 1 < operand.len; i += 2) {
        if (operand.ptr[i] != '+' && operand.ptr[i] != '-')
            return false;
        marks[(uint8_t)operand.ptr[i + 1]] = operand.ptr[i];
    }
    return operand.len % 2 == 0;
}

static inline bool test_merge(Slice existing, const Slice *operands, size_t count, bool is_partial,
                              Buf *out)
{
    char marks[256] = {0};
    for (size_t i = 0; i < existing.len; i++) {
        if (i > 0 && (uint8_t)existing.ptr[i] <= (uint8_t)existing.ptr[i - 1])
            return false;
        marks[(uint8_t)existing.ptr[i]] = '+';
    }
    for (size_t i = 0; i < count; i++)
        if (!test_merge_one(operands[i], marks))
            return false;
    for (size_t i = 0; i < sizeof(marks); i++) {
        if (is_partial && marks[i] != 0)
            buf_byte(out, (uint8_t)marks[i]);
        if (is_partial ? marks[i] != 0 : marks[i] == '+')
            buf_byte(out, (uint8_t)i);
    }
    return true;
}

static inline bool test_merge_is_empty(Slice value)
{
    return value.len == 0;
}

/* Keys that begin with '`' are counts: a value has as many bytes as its operands together. */
static inline bool test_count(Slice existing, const Slice *operands, size_t count, bool is_partial,
                              Buf *out)
{
    (void)is_partial;
    buf_slice(out, existing);
    for (size_t i = 0; i < count; i++)
        buf_slice(out, operands[i]);
    return true;
}

static const StoreMerge TEST_COUNT = {
    .kind = '`',
    .merge = test_count,
    .is_empty = test_merge_is_empty,
};

static const StoreMerge TEST_MERGE = {
    .kind = TEST_MERGE_KIND,
    .tail_bytes = TEST_TAIL_BYTES,
    .merge = test_merge,
    .is_empty = test_merge_is_empty,
    .next = &TEST_COUNT,
};

static inline void merge_now(Store *store, StoreSpace space, const char *key, const char *operand)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_merge(txn, space, slice_from_cstr(key), slice_from_cstr(operand));
    commit_now(txn);
}

static inline void expect_corrupt(Store *store, const StoreSnapshot *snapshot, StoreSpace space,
                                  const char *key)
{
    StoreValue value = {0};
    StoreFound found = STORE_UNKNOWN;
    Error err = {0};
    assert_int_equal(store_get(store, snapshot, space, slice_from_cstr(key), STORE_READ_ANY, &value,
                               &found, &err),
                     STATUS_CORRUPT);
    assert_null(value.owner);
    assert_non_null(strstr(err.message, "damaged"));
}

/* Runs this binary again with other arguments; '*out' is the end of a pipe from its output. */
static inline pid_t run_self(const char *command, const char *path, int *out)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "store_test", command, path, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    *out = ends[0];
    return pid;
}

static inline int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    return status;
}

/* ---- the conformance suite: every test on every engine ---- */

static inline Status test_open_memory(const char *folder, Store **out, Error *err)
{
    (void)folder;
    (void)err;
    memory_store_open_with(&TEST_MERGE, out);
    return STATUS_OK;
}

static inline Status test_open_rocksdb_as(const char *folder, StoreDurability durability,
                                          Store **out, Error *err)
{
    RocksdbStoreOptions options = {.path = folder,
                                   .durability = durability,
                                   .cache_bytes = (size_t)8 << 20,
                                   .merge = &TEST_MERGE};
    return rocksdb_store_open(&options, out, err);
}

static inline Status test_open_rocksdb(const char *folder, Store **out, Error *err)
{
    return test_open_rocksdb_as(folder, STORE_DURABILITY_SYNC, out, err);
}

static inline Status test_open_rocksdb_relaxed(const char *folder, Store **out, Error *err)
{
    return test_open_rocksdb_as(folder, STORE_DURABILITY_RELAXED, out, err);
}

/* On a journal in memory, which does not outlive it. */
static inline Status test_open_replicated(const char *folder, Store **out, Error *err)
{
    return test_open_on_memory(folder, &TEST_MERGE, out, err);
}

static inline Status test_open_replicated_durable(const char *folder, Store **out, Error *err)
{
    return test_open_on_postgres(folder, &TEST_MERGE, out, err);
}

/* An engine, or one way to set it up. */
typedef struct TestEngine {
    const char *name;
    bool is_durable; /* what is committed is there when the folder is opened again */
    Status (*open)(const char *folder, Store **out, Error *err); /* merges by TEST_MERGE */
    bool is_slow; /* only for tests of what only durable engines can do */
} TestEngine;

/* A new engine is a new row here. */
static const TestEngine TEST_ENGINES[] = {
    {"memory", false, test_open_memory, false},
    {"rocksdb", true, test_open_rocksdb, false},
    {"rocksdb relaxed", true, test_open_rocksdb_relaxed, false},
    {"replicated", false, test_open_replicated, false},
    {"replicated on PostgreSQL", true, test_open_replicated_durable, true},
};

typedef struct TestStore {
    Store *store;
    TestFolder folder;
} TestStore;

static inline void test_store_open(TestStore *test, const TestEngine *engine)
{
    *test = (TestStore){0};
    test_folder_init(&test->folder);
    assert_ok(engine->open(test->folder.path, &test->store, err));
}

static inline void test_store_close(TestStore *test)
{
    store_close(test->store);
    test->store = NULL;
    test_folder_done(&test->folder);
}
DEFINE_AUTO_VALUE(TestStore, test_store_close)

/* A test has one of the two functions. */
typedef struct EngineTest {
    const char *name;
    void (*run)(Store *store);                     /* with a fresh store, on every engine */
    void (*run_durable)(const TestEngine *engine); /* opens stores itself; on durable engines */
} EngineTest;
#define ENGINE_TEST(function)              \
    {                                      \
        .name = #function, .run = function \
    }
#define DURABLE_TEST(function)                     \
    {                                              \
        .name = #function, .run_durable = function \
    }

typedef struct EngineCase {
    const EngineTest *test;
    const TestEngine *engine;
    char name[128];
} EngineCase;

static inline void run_engine_case(void **state)
{
    const EngineCase *one = *state;
    if (one->test->run_durable != NULL) {
        one->test->run_durable(one->engine);
        return;
    }
    AUTO(test_store_close) TestStore test;
    test_store_open(&test, one->engine);
    one->test->run(test.store);
}

static inline int run_on_every_engine(const char *group, const EngineTest *tests, size_t count)
{
    size_t total = 0;
    EngineCase *cases = MEM_NEW_ARRAY(EngineCase, count * ARRAY_COUNT(TEST_ENGINES));
    struct CMUnitTest *units = MEM_NEW_ARRAY(struct CMUnitTest, count * ARRAY_COUNT(TEST_ENGINES));
    for (size_t i = 0; i < count * ARRAY_COUNT(TEST_ENGINES); i++) {
        const EngineTest *test = &tests[i % count];
        const TestEngine *engine = &TEST_ENGINES[i / count];
        if (test->run_durable != NULL ? !engine->is_durable : engine->is_slow)
            continue;
        EngineCase *one = &cases[total];
        *one = (EngineCase){.test = test, .engine = engine};
        (void)snprintf(one->name, sizeof(one->name), "%s: %s", engine->name, test->name);
        units[total++] = (struct CMUnitTest){
            .name = one->name, .test_func = run_engine_case, .initial_state = one};
    }
    int failed = _cmocka_run_group_tests(group, units, total, NULL, NULL);
    mem_free(cases);
    mem_free(units);
    return failed;
}
