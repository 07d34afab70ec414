/* rocksdb_store_test.c - what only an engine with a disk promises: it is all there next time.
 *
 * Tests that kill a process run this binary again as the process to be killed (see main): a fork
 * alone would inherit RocksDB's locks without the threads that hold them.
 */
#include "base/test_seed.h"
#include "store/rocksdb/testing_int.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* With keys that are merged. Others are not: their tests use keys of any first byte. */
static Status try_open_merging(const char *path, StoreDurability durability, Store **store,
                               Error *err)
{
    RocksdbStoreOptions options = {.path = path,
                                   .durability = durability,
                                   .cache_bytes = (size_t)8 << 20,
                                   .merge = &TEST_MERGE};
    return rocksdb_store_open(&options, store, err);
}

static void opening_again_finds_everything_that_was_committed(void **state)
{
    (void)state;
    static const StoreDurability durabilities[] = {STORE_DURABILITY_SYNC, STORE_DURABILITY_RELAXED};
    for (size_t i = 0; i < ARRAY_COUNT(durabilities); i++) {
        AUTO(test_folder_done) TestFolder folder;
        test_folder_init(&folder);
        for (uint32_t round = 0; round < 3; round++) {
            AUTO(store_close) Store *store = NULL;
            assert_ok(try_open(folder.path, durabilities[i], &store, err));
            char text[16];
            for (uint32_t j = 0; j < round; j++) {
                (void)snprintf(text, sizeof(text), "%u", j);
                expect_key(store, NULL, 3, text, text);
            }
            expect_key(store, NULL, 3, "gone", NULL);
            expect_key(store, NULL, 4, "dropped", NULL);
            (void)snprintf(text, sizeof(text), "%u", round);
            put_now(store, 3, text, text);
            put_now(store, 3, "gone", "v");
            delete_now(store, 3, "gone");
            put_now(store, 4, "dropped", "v");
            assert_ok(store_drop_spaces(store, 4, 4, err));
            StoreTxn *aborted = store_txn_begin(store);
            store_txn_put(aborted, 3, SLICE("gone"), SLICE("never"));
            store_txn_abort(aborted);
        }
    }
}

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

/* The process that is killed. Two writers, each with a space of its own and many transactions under
 * way; each acknowledged one is a line on standard output, written by its completion. Transaction n
 * writes some keys, moves "last" on, deletes a key of n - 1, and adds a letter to one set and adds
 * or removes it in another one that takes an operand of each. */
enum { CRASH_WRITERS = 2, CRASH_KEYS = 5, CRASH_WINDOW = 16, CRASH_LETTERS = 26 };

typedef struct Ack {
    uint32_t writer;
    uint32_t number;
} Ack;

static void acknowledge(void *ctx, const Error *err)
{
    const Ack *ack = ctx;
    if (err == NULL && write(STDOUT_FILENO, ack, sizeof(*ack)) != sizeof(*ack))
        _exit(3);
    mem_free(ctx);
}

static Slice crash_key(uint32_t number, uint32_t key, char text[32])
{
    return slice_make(text, (size_t)snprintf(text, 32, "%08u/%u", number, key));
}

/* Values differ in every byte that could be confused: writer, transaction, key. */
static Slice crash_value(uint32_t writer, uint32_t number, uint32_t key, char text[256])
{
    int len = snprintf(text, 256, "writer %u transaction %u key %u ", writer, number, key);
    memset(text + len, 'a' + (char)(number % 26), 100 + key);
    return slice_make(text, (size_t)len + 100 + key);
}

static bool crash_adds(uint32_t number)
{
    return number / CRASH_LETTERS % 2 == 0;
}

static void crash_commit(Store *store, uint32_t writer, uint32_t number)
{
    StoreTxn *txn = store_txn_begin(store);
    char key[32], value[256];
    for (uint32_t i = 0; i < CRASH_KEYS; i++)
        store_txn_put(txn, writer, crash_key(number, i, key),
                      crash_value(writer, number, i, value));
    if (number > 0)
        store_txn_delete(txn, writer, crash_key(number - 1, 0, key));
    store_txn_put(txn, writer, SLICE("last"), slice_make(&number, sizeof(number)));
    char operand[2] = {crash_adds(number) ? '+' : '-', (char)('a' + number % CRASH_LETTERS)};
    store_txn_merge(txn, writer, SLICE("~busy"), slice_make(operand, sizeof(operand)));
    operand[0] = '+';
    int len = snprintf(key, sizeof(key), "~%08u", number / CRASH_LETTERS);
    store_txn_merge(txn, writer, slice_make(key, (size_t)len),
                    slice_make(operand, sizeof(operand)));
    Ack *ack = MEM_NEW(Ack);
    *ack = (Ack){writer, number};
    store_txn_commit(txn, (StoreCompletion){acknowledge, ack});
}

/* The number of the next transaction. */
static uint32_t crash_next(Store *store, uint32_t writer)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, NULL, writer, SLICE("last"), STORE_READ_ANY, &value, &found, err));
    uint32_t last = 0;
    if (found != STORE_FOUND)
        return 0;
    assert_int_equal(value.data.len, sizeof(last));
    memcpy(&last, value.data.ptr, sizeof(last));
    return last + 1;
}

NORETURN static void command_write(const char *path, StoreDurability durability)
{
    Store *store = NULL;
    assert_ok(try_open_merging(path, durability, &store, err));
    uint32_t next[CRASH_WRITERS];
    for (uint32_t writer = 0; writer < CRASH_WRITERS; writer++)
        next[writer] = crash_next(store, writer);
    for (;;) { /* until it is killed */
        for (uint32_t i = 0; i < CRASH_WINDOW; i++)
            for (uint32_t writer = 0; writer < CRASH_WRITERS; writer++)
                crash_commit(store, writer, next[writer]++);
        AUTO(store_txn_abort) StoreTxn *barrier = store_txn_begin(store);
        assert_ok(store_txn_commit_wait(TAKE(barrier), err));
    }
}

/* Everything up to 'last' is there by content, and nothing beyond it. */
static void expect_whole_history(Store *store, uint32_t writer, uint32_t count)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, writer, SLICE_EMPTY, SLICE("l"));
    for (uint32_t number = 0; number < count; number++) {
        for (uint32_t i = number + 1 < count ? 1 : 0; i < CRASH_KEYS; i++) {
            Slice key = {0}, value = {0};
            bool found = false;
            assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
            assert_true(found);
            char text[256];
            assert_slice(key, crash_key(number, i, text));
            assert_slice(value, crash_value(writer, number, i, text));
        }
    }
    expect_step(cursor, true, NULL);
}

/* The same of the sets: every operand has been applied, in order, and none twice. */
static void expect_whole_sets(Store *store, uint32_t writer, uint32_t count)
{
    for (uint32_t first = 0; first < count; first += CRASH_LETTERS) {
        uint32_t letters = count - first < CRASH_LETTERS ? count - first : CRASH_LETTERS;
        char key[32];
        (void)snprintf(key, sizeof(key), "~%08u", first / CRASH_LETTERS);
        char expected[CRASH_LETTERS + 1] = "abcdefghijklmnopqrstuvwxyz";
        expected[letters] = '\0';
        expect_key(store, NULL, writer, key, expected);
    }
    /* The newest operands that say something about each letter. */
    uint32_t first = count < CRASH_LETTERS ? 0 : count - CRASH_LETTERS;
    bool present[CRASH_LETTERS] = {false};
    for (uint32_t number = first; number < count; number++)
        present[number % CRASH_LETTERS] = crash_adds(number);
    char busy[CRASH_LETTERS + 1];
    size_t len = 0;
    for (uint32_t i = 0; i < CRASH_LETTERS; i++)
        if (present[i])
            busy[len++] = (char)('a' + i);
    busy[len] = '\0';
    expect_key(store, NULL, writer, "~busy", len > 0 ? busy : NULL);
}

static void kill_in_a_loop(const char *command, StoreDurability durability)
{
    enum { ROUNDS = 8 };
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Random random;
    random_init(&random, test_seed());
    uint32_t acknowledged[CRASH_WRITERS] = {0}; /* how many */
    for (uint32_t round = 0; round < ROUNDS; round++) {
        int out = -1;
        pid_t pid = run_self(command, folder.path, &out);
        Ack ack;
        bool first = true;
        while (read(out, &ack, sizeof(ack)) == sizeof(ack)) {
            if (first) {
                /* The rest of the pipe is read after the end: what it holds was acknowledged. */
                sleep_ms((uint32_t)random_below(&random, 40));
                assert_int_equal(kill(pid, SIGKILL), 0);
                first = false;
            }
            assert_true(ack.writer < CRASH_WRITERS);
            assert_int_equal(ack.number, acknowledged[ack.writer]);
            acknowledged[ack.writer]++;
        }
        (void)close(out);
        int status = wait_for(pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGKILL);

        AUTO(store_close) Store *store = NULL;
        assert_ok(try_open_merging(folder.path, durability, &store, err));
        for (uint32_t writer = 0; writer < CRASH_WRITERS; writer++) {
            uint32_t count = crash_next(store, writer);
            assert_true(count >= acknowledged[writer]);
            expect_whole_history(store, writer, count);
            expect_whole_sets(store, writer, count);
            acknowledged[writer] = count; /* the next round goes on from there */
        }
    }
    assert_true(acknowledged[0] > ROUNDS);
}

static void kill_9_in_a_loop_loses_nothing_acknowledged(void **state)
{
    (void)state;
    kill_in_a_loop("write", STORE_DURABILITY_SYNC);
}

/* Relaxed durability survives the end of the process as well; only the machine's is its risk. */
static void kill_9_loses_nothing_when_relaxed_either(void **state)
{
    (void)state;
    kill_in_a_loop("write-relaxed", STORE_DURABILITY_RELAXED);
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
    if (argc == 3 && strcmp(argv[1], "write") == 0)
        command_write(argv[2], STORE_DURABILITY_SYNC);
    if (argc == 3 && strcmp(argv[1], "write-relaxed") == 0)
        command_write(argv[2], STORE_DURABILITY_RELAXED);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_again_finds_everything_that_was_committed),
        cmocka_unit_test(the_folder_is_made_if_it_is_missing),
        cmocka_unit_test(a_folder_that_cannot_be_used_is_refused_by_name),
        cmocka_unit_test(a_damaged_folder_is_refused_as_corrupt),
        cmocka_unit_test(a_folder_in_use_is_refused_to_others_and_stays_in_use),
        cmocka_unit_test(kill_9_in_a_loop_loses_nothing_acknowledged),
        cmocka_unit_test(kill_9_loses_nothing_when_relaxed_either),
        cmocka_unit_test(a_cold_key_is_unknown_to_memory_until_it_is_read),
        cmocka_unit_test(a_cursor_in_memory_ends_where_the_disk_begins),
        cmocka_unit_test(cursors_beside_the_writer_see_whole_groups),
        cmocka_unit_test(dropping_gives_the_bytes_back),
        cmocka_unit_test(a_snapshot_keeps_what_is_dropped_under_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
