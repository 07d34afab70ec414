/* testing_int.h - what the tests of this folder share: short ways to write, read and expect.
 *
 * Keys and values are C strings here unless a test says otherwise; NULL as an expected value means
 * that the key is absent.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "store/memory/memory_store.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/store.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define assert_ok(call)                                                    \
    do {                                                                   \
        Error assert_err_ = {0};                                           \
        Error *err = &assert_err_;                                         \
        Status assert_status_ = (call);                                    \
        if (assert_status_ != STATUS_OK)                                   \
            fail_msg("%s: %s", status_code(assert_status_), err->message); \
    } while (0)

static inline void assert_slice(Slice actual, Slice expected)
{
    assert_int_equal(actual.len, expected.len);
    if (expected.len > 0)
        assert_memory_equal(actual.ptr, expected.ptr, expected.len);
}

static inline void commit_now(StoreTxn *txn)
{
    assert_ok(store_txn_commit_wait(txn, err));
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

static inline int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void remove_folder(const char *path)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a test removes one folder at a time */
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

typedef struct TestFolder {
    char path[64];
} TestFolder;

static inline void test_folder_init(TestFolder *folder)
{
    (void)snprintf(folder->path, sizeof(folder->path), "/tmp/orrery_store_XXXXXX");
    assert_non_null(mkdtemp(folder->path));
}

static inline void test_folder_done(TestFolder *folder)
{
    if (folder->path[0] != '\0')
        remove_folder(folder->path);
    folder->path[0] = '\0';
}
DEFINE_AUTO_VALUE(TestFolder, test_folder_done)

static inline Store *test_rocksdb_open(const char *path)
{
    RocksdbStoreOptions options = {
        .path = path, .cache_bytes = (size_t)8 << 20, .merge = &TEST_MERGE};
    Store *store = NULL;
    assert_ok(rocksdb_store_open(&options, &store, err));
    return store;
}

/* The engines that the conformance suite runs on. */
typedef enum TestEngine {
    TEST_ENGINE_MEMORY,
    TEST_ENGINE_ROCKSDB,
    TEST_ENGINE_ROCKSDB_RELAXED,
    TEST_ENGINE_COUNT
} TestEngine;

static inline const char *test_engine_name(TestEngine engine)
{
    static const char *const names[] = {"memory", "rocksdb", "rocksdb relaxed"};
    return names[engine];
}

typedef struct TestStore {
    Store *store;
    TestFolder folder;
} TestStore;

static inline void test_store_open(TestStore *test, TestEngine engine)
{
    *test = (TestStore){0};
    if (engine == TEST_ENGINE_MEMORY) {
        memory_store_open_with(&TEST_MERGE, &test->store);
        return;
    }
    test_folder_init(&test->folder);
    RocksdbStoreOptions options = {
        .path = test->folder.path,
        .durability =
            engine == TEST_ENGINE_ROCKSDB ? STORE_DURABILITY_SYNC : STORE_DURABILITY_RELAXED,
        .cache_bytes = (size_t)8 << 20,
        .merge = &TEST_MERGE,
    };
    assert_ok(rocksdb_store_open(&options, &test->store, err));
}

static inline void test_store_close(TestStore *test)
{
    store_close(test->store);
    test->store = NULL;
    test_folder_done(&test->folder);
}
DEFINE_AUTO_VALUE(TestStore, test_store_close)

/* Runs every test once for every engine, with a TestStore that is fresh for each as its state. */
typedef struct EngineTest {
    const char *name;
    void (*run)(Store *store);
} EngineTest;
#define ENGINE_TEST(function)              \
    {                                      \
        .name = #function, .run = function \
    }

typedef struct EngineCase {
    const EngineTest *test;
    TestEngine engine;
    char name[128];
} EngineCase;

static inline void run_engine_case(void **state)
{
    const EngineCase *one = *state;
    AUTO(test_store_close) TestStore test;
    test_store_open(&test, one->engine);
    one->test->run(test.store);
}

static inline int run_on_every_engine(const char *group, const EngineTest *tests, size_t count)
{
    size_t total = count * TEST_ENGINE_COUNT;
    EngineCase *cases = MEM_NEW_ARRAY(EngineCase, total);
    struct CMUnitTest *units = MEM_NEW_ARRAY(struct CMUnitTest, total);
    for (size_t i = 0; i < total; i++) {
        cases[i].test = &tests[i % count];
        cases[i].engine = (TestEngine)(i / count);
        (void)snprintf(cases[i].name, sizeof(cases[i].name), "%s: %s",
                       test_engine_name(cases[i].engine), cases[i].test->name);
        units[i] = (struct CMUnitTest){
            .name = cases[i].name, .test_func = run_engine_case, .initial_state = &cases[i]};
    }
    int failed = _cmocka_run_group_tests(group, units, total, NULL, NULL);
    mem_free(cases);
    mem_free(units);
    return failed;
}
