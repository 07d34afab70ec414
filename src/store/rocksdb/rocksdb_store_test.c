/* rocksdb_store_test.c - RocksDB's own part: folders, cold reads, readers beside the writer, drops.
 *
 * A test that needs a second process runs this binary again (see main): a fork alone would inherit
 * RocksDB's locks without the threads that hold them.
 */
#include "store/rocksdb/rocksdb_testing_int.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

static void the_folder_is_made_if_it_is_missing(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/data", folder.path);
    store_close(open_at(path));
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
}

static void a_folder_that_cannot_be_used_is_refused_by_name(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    char file[128];
    (void)snprintf(file, sizeof(file), "%s/file", folder.path);
    int fd = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    static const struct {
        const char *under, *says;
    } rows[] = {
        {"file", "is not a folder"},
        {"file/data", "Not a directory"},
        {"no/such", "No such file or directory"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char path[192];
        (void)snprintf(path, sizeof(path), "%s/%s", folder.path, rows[i].under);
        Store *store = NULL;
        Error err = {0};
        assert_int_equal(try_open(path, STORE_DURABILITY_SYNC, &store, &err), STATUS_IO);
        assert_null(store);
        assert_non_null(strstr(err.message, path));
        assert_non_null(strstr(err.message, rows[i].says));
    }
    Store *store = NULL;
    Error err = {0};
    assert_int_equal(try_open("/proc/orrery", STORE_DURABILITY_SYNC, &store, &err), STATUS_IO);
}

static void a_damaged_folder_is_refused_as_corrupt(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = open_at(folder.path);
    put_now(store, 1, "a", "v");
    store_close(TAKE(store));
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/CURRENT", folder.path);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "nonsense", 8), 8);
    (void)close(fd);
    Error err = {0};
    assert_int_equal(try_open(folder.path, STORE_DURABILITY_SYNC, &store, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.message, folder.path));
}

static void expect_in_use(const char *path)
{
    Store *store = NULL;
    Error err = {0};
    assert_int_equal(try_open(path, STORE_DURABILITY_SYNC, &store, &err), STATUS_UNAVAILABLE);
    assert_null(store);
    char expected[256];
    (void)snprintf(expected, sizeof(expected), "the data folder '%s' is in use by another process",
                   path);
    assert_string_equal(err.message, expected);
}

static int command_try_open(const char *path)
{
    expect_in_use(path); /* outside of a test, a failure ends the process */
    return 0;
}

static void a_folder_in_use_is_refused_to_others_and_stays_in_use(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = open_at(folder.path);
    put_now(store, 1, "a", "v");
    expect_in_use(folder.path);
    for (uint32_t i = 0; i < 2; i++) {
        int out = -1;
        int status = wait_for(run_self("try-open", folder.path, &out));
        (void)close(out);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    put_now(store, 1, "b", "v");
    expect_key(store, NULL, 1, "a", "v");
}

static uint64_t disk_bytes(Store *store)
{
    StoreUsage usage;
    store_usage(store, &usage);
    return usage.disk_bytes;
}

/* Closing and opening moves everything out of memory and into files. */
static void a_cold_key_is_unknown_to_memory_until_it_is_read(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = open_at(folder.path);
    put_bulk(store, 1, 5000);
    store_close(store);
    store = open_at(folder.path);
    AUTO(store_snapshot_close) StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
    static const StoreRead reads[] = {STORE_READ_MEMORY, STORE_READ_ANY, STORE_READ_MEMORY};
    static const StoreFound expected[] = {STORE_UNKNOWN, STORE_FOUND, STORE_FOUND};
    const StoreSnapshot *from[] = {snapshot, NULL, snapshot};
    for (size_t i = 0; i < ARRAY_COUNT(reads); i++) {
        AUTO(store_value_release) StoreValue value = {0};
        StoreFound found = STORE_ABSENT;
        assert_ok(store_get(store, from[i], 1, SLICE("00000007"), reads[i], &value, &found, err));
        assert_int_equal(found, expected[i]);
    }
    store_snapshot_close(TAKE(snapshot));
    store_close(store);
}

/* Walks all keys; how many come before the end, or before the status that ends it. */
static uint32_t walk_memory(Store *store, StoreRead read, Status *status)
{
    AUTO(store_snapshot_close) StoreSnapshot *snapshot = store_snapshot_open(store, read);
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, snapshot, 1, SLICE_EMPTY, SLICE_EMPTY);
    uint32_t count = 0;
    bool found = true;
    for (*status = STATUS_OK; *status == STATUS_OK && found; count += found ? 1 : 0) {
        Slice key, value;
        Error err;
        *status = store_cursor_next(cursor, &key, &value, &found, &err);
        found = found && *status == STATUS_OK;
    }
    return count;
}

static void a_cursor_in_memory_ends_where_the_disk_begins(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = open_at(folder.path);
    put_bulk(store, 1, 1000); /* less than the cache holds */
    store_close(store);
    store = open_at(folder.path);
    Status status = STATUS_OK;
    assert_in_range(walk_memory(store, STORE_READ_MEMORY, &status), 0, 999);
    assert_int_equal(status, STATUS_TIMEOUT);
    StoreDamage damage;
    store_damage(store, &damage);
    assert_int_equal(damage.reads, 0);
    assert_int_equal(walk_memory(store, STORE_READ_ANY, &status), 1000);
    assert_int_equal(status, STATUS_OK);
    assert_int_equal(walk_memory(store, STORE_READ_MEMORY, &status), 1000);
    assert_int_equal(status, STATUS_OK);
    store_close(store);
}

/* ---- readers beside the writer ---- */

enum { BESIDE_KEYS = 40, BESIDE_GROUPS = 600, BESIDE_BYTES = 500, BESIDE_READERS = 3 };

typedef struct Beside {
    Store *store;
    _Atomic bool is_done;
    _Atomic uint32_t walks;
    _Atomic uint32_t failures;
} Beside;

/* All keys have been written by one transaction, the same one. */
static bool is_one_group(Store *store)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, 1, SLICE_EMPTY, SLICE_EMPTY);
    uint32_t first = 0;
    for (uint32_t count = 0;; count++) {
        Slice key, value;
        bool found = false;
        Error err;
        if (store_cursor_next(cursor, &key, &value, &found, &err) != STATUS_OK)
            return false;
        if (!found)
            return count == BESIDE_KEYS;
        uint32_t group = 0;
        memcpy(&group, value.ptr, sizeof(group));
        first = count == 0 ? group : first;
        if (group != first)
            return false;
    }
}

static void *walk_beside(void *ctx)
{
    Beside *beside = ctx;
    while (!atomic_load(&beside->is_done)) {
        if (!is_one_group(beside->store))
            atomic_fetch_add(&beside->failures, 1);
        atomic_fetch_add(&beside->walks, 1);
    }
    return NULL;
}

static void write_group(Store *store, uint32_t group)
{
    char value[BESIDE_BYTES] = {0};
    memcpy(value, &group, sizeof(group));
    StoreTxn *txn = store_txn_begin(store);
    for (uint32_t i = 0; i < BESIDE_KEYS; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%.*s%u", (int)(i % 5), "aaaa", i);
        store_txn_put(txn, 1, slice_from_cstr(key), slice_make(value, sizeof(value)));
    }
    Error err;
    assert_int_equal(store_txn_commit_wait(txn, &err), STATUS_OK);
}

/* Some memtables full of versions of few keys: cursors begin and end at any time on several
 * threads, and what is replaced is flushed under them. */
static void cursors_beside_the_writer_see_whole_groups(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = NULL;
    Error err;
    assert_int_equal(try_open(folder.path, STORE_DURABILITY_RELAXED, &store, &err), STATUS_OK);
    write_group(store, 0);
    Beside beside = {.store = store};
    pthread_t readers[BESIDE_READERS];
    for (size_t i = 0; i < BESIDE_READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, walk_beside, &beside), 0);
    for (uint32_t group = 1; group < BESIDE_GROUPS; group++)
        write_group(store, group);
    atomic_store(&beside.is_done, true);
    for (size_t i = 0; i < BESIDE_READERS; i++)
        assert_int_equal(pthread_join(readers[i], NULL), 0);
    assert_int_equal(beside.failures, 0);
    assert_true(beside.walks > 0);
    store_close(store);
}

static void dropping_gives_the_bytes_back(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = open_at(folder.path);
    /* Written first, the neighbours are in files together with what is dropped, at their ends. */
    put_now(store, 1, "a", "neighbour");
    put_now(store, 3, "", "neighbour");
    put_bulk(store, 2, 30000);
    sleep_ms(500); /* for compaction to bring them there */
    uint64_t before = disk_bytes(store);
    assert_true(before > (uint64_t)25 << 20);
    assert_ok(store_drop_spaces(store, 2, 2, err));
    for (uint32_t i = 0; i < 1000 && disk_bytes(store) > before / 8; i++)
        sleep_ms(10);
    assert_true(disk_bytes(store) <= before / 8);
    assert_int_equal(count_keys(store, NULL, 2), 0);
    expect_key(store, NULL, 1, "a", "neighbour");
    expect_key(store, NULL, 3, "", "neighbour");
}

static void a_snapshot_keeps_what_is_dropped_under_it(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(store_close) Store *store = open_at(folder.path);
    put_bulk(store, 2, 30000);
    AUTO(store_snapshot_close) StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
    assert_ok(store_drop_spaces(store, 2, 2, err));
    for (uint32_t i = 0; i < 10; i++) { /* while the background is busy taking them away */
        assert_int_equal(count_keys(store, snapshot, 2), 30000);
        assert_int_equal(count_keys(store, NULL, 2), 0);
        sleep_ms(20);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "try-open") == 0)
        return command_try_open(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_folder_is_made_if_it_is_missing),
        cmocka_unit_test(a_folder_that_cannot_be_used_is_refused_by_name),
        cmocka_unit_test(a_damaged_folder_is_refused_as_corrupt),
        cmocka_unit_test(a_folder_in_use_is_refused_to_others_and_stays_in_use),
        cmocka_unit_test(a_cold_key_is_unknown_to_memory_until_it_is_read),
        cmocka_unit_test(a_cursor_in_memory_ends_where_the_disk_begins),
        cmocka_unit_test(cursors_beside_the_writer_see_whole_groups),
        cmocka_unit_test(dropping_gives_the_bytes_back),
        cmocka_unit_test(a_snapshot_keeps_what_is_dropped_under_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
