/* ingest_test.c - tables past the log: where they lie, what becomes of operands, and of a process
 * that ends on the way. */
#include "store/rocksdb/rocksdb_testing_int.h"

#include "store/rocksdb/rocksdb_int.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { RUNS = 6, KEYS = 500 };

static unsigned long files_at(Store *store, int level)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "rocksdb.num-files-at-level%d", level);
    char *text = rocksdb_property_value(rocksdb_of_store(store), name);
    assert_non_null(text);
    unsigned long count = strtoul(text, NULL, 10);
    rocksdb_free(text);
    return count;
}

/* Keys of 'first' and up to 'count' of them, each with itself as its value. */
static void ingest_keys(Store *store, StoreSpace space, int first, int count)
{
    StoreTxn *txn = store_txn_begin(store);
    for (int i = first; i < first + count; i++) {
        char key[16];
        int len = snprintf(key, sizeof(key), "k%06d", i);
        store_txn_put(txn, space, slice_make(key, (size_t)len), slice_make(key, (size_t)len));
    }
    load_now(store, txn);
}

static void expect_keys(Store *store, StoreSpace space, int count)
{
    for (int i = 0; i < count; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "k%06d", i);
        expect_key(store, NULL, space, key, key);
    }
    expect_key(store, NULL, space, "k999999", NULL);
}

static void rising_keys_go_to_the_bottom_and_leave_nothing_to_compact(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    for (int i = 0; i < RUNS; i++)
        ingest_keys(store, 7, i * KEYS, KEYS);
    assert_int_equal(files_at(store, 6), RUNS);
    for (int level = 0; level < 6; level++)
        assert_int_equal(files_at(store, level), 0);
    expect_keys(store, 7, RUNS * KEYS);
    store_close(store);
}

/* I9: a walk in memory is whole, or says that it does not know. RocksDB ends it without an error
 * where the next table of a level has not been read since the start. */
static void a_walk_in_memory_does_not_end_between_two_tables(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    ingest_keys(store, 7, 0, 100);
    ingest_keys(store, 7, 100, 100);
    for (int is_warm = 0; is_warm < 2; is_warm++) {
        store_close(store);
        store = test_rocksdb_open(folder.path);
        for (int i = 0; i < (is_warm == 0 ? 100 : 200); i++) {
            char key[16];
            (void)snprintf(key, sizeof(key), "k%06d", i);
            StoreValue value = {0};
            StoreFound found = STORE_ABSENT;
            assert_ok(store_get(store, NULL, 7, slice_from_cstr(key), STORE_READ_ANY, &value,
                                &found, err));
            assert_int_equal(found, STORE_FOUND);
            store_value_release(&value);
        }
        StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_MEMORY);
        StoreCursor *cursor = store_cursor_open(store, snapshot, 7, SLICE_EMPTY, SLICE("z"));
        Status status = STATUS_OK;
        int count = 0;
        for (bool found = true; found && status == STATUS_OK;) {
            Slice key;
            Slice value;
            Error err;
            status = store_cursor_next(cursor, &key, &value, &found, &err);
            count += status == STATUS_OK && found;
        }
        if (status == STATUS_OK)
            assert_int_equal(count, 200);
        else
            assert_int_equal(status, STATUS_TIMEOUT);
        assert_true(status == STATUS_OK || is_warm == 0);
        store_cursor_close(cursor);
        store_snapshot_close(snapshot);
    }
    store_close(store);
}

/* The same of a group whose operands lie in two tables. */
static void a_group_in_memory_does_not_end_between_two_tables(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    for (int half = 0; half < 2; half++) {
        StoreTxn *txn = store_txn_begin(store);
        for (int i = 0; i < 3; i++) {
            char key[] = {'~', 'g', '0', '0', '1', (char)('A' + 3 * half + i)};
            store_txn_merge(txn, 7, slice_make(key, sizeof(key)), SLICE("+a"));
        }
        load_now(store, txn);
    }
    store_close(store);
    store = test_rocksdb_open(folder.path);
    expect_key(store, NULL, 7, "~g001A", "a"); /* reads the first table, not the second */
    StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_MEMORY);
    StoreCursor *cursor = store_group_open(store, snapshot, 7, SLICE("~g001"));
    Status status = STATUS_OK;
    int count = 0;
    for (bool found = true; found && status == STATUS_OK;) {
        Slice key;
        Slice value;
        Error err;
        status = store_cursor_next(cursor, &key, &value, &found, &err);
        count += status == STATUS_OK && found;
    }
    assert_true(status == STATUS_OK ? count == 6 : status == STATUS_TIMEOUT);
    store_cursor_close(cursor);
    store_snapshot_close(snapshot);
    store_close(store);
}

static void operands_become_values_where_there_is_nothing_and_join_what_there_is(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    static const char *const runs[][3] = {{"+a+b", "+c", "-a"}, {"-b", "+d", "+e"}, {"-c-d-e"}};
    static const char *const expected[] = {"bc", "cde", NULL};
    for (size_t run = 0; run < ARRAY_COUNT(runs); run++) {
        StoreTxn *txn = store_txn_begin(store);
        for (size_t i = 0; i < ARRAY_COUNT(runs[run]) && runs[run][i] != NULL; i++) {
            store_txn_merge(txn, 7, SLICE("~x"), slice_from_cstr(runs[run][i]));
            store_txn_merge(txn, 7, SLICE("~a"), SLICE("+z")); /* not in order */
        }
        store_txn_put(txn, 7, SLICE(""), SLICE("an empty key"));
        load_now(store, txn);
        expect_key(store, NULL, 7, "~x", expected[run]);
        expect_key(store, NULL, 7, "~a", "z");
        expect_key(store, NULL, 7, "", "an empty key");
    }
    store_close(store);
}

/* Items rise; what is counted about them is spread over all keys by each transaction. */
static void a_load_of_many_transactions_leaves_nothing_to_compact(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    StoreLoad *load = store_load_begin(store, 'k');
    for (int run = 0; run < RUNS; run++) {
        StoreTxn *txn = store_txn_begin(store);
        for (int i = 0; i < KEYS; i++) {
            char key[16];
            int len = snprintf(key, sizeof(key), "k%06d", run * KEYS + i);
            store_txn_put(txn, 7, slice_make(key, (size_t)len), slice_make(key, (size_t)len));
            len = snprintf(key, sizeof(key), "~%d", i);
            char operand[3] = {'+', (char)('a' + run), 0};
            store_txn_merge(txn, 7, slice_make(key, (size_t)len), slice_make(operand, 2));
            len = snprintf(key, sizeof(key), "n%d", i);
            store_txn_put(txn, 7, slice_make(key, (size_t)len), slice_make(operand, 2));
        }
        assert_ok(store_load_add(load, txn, err));
    }
    expect_key(store, NULL, 7, "k000000", NULL);
    assert_ok(store_load_finish(load, err));
    for (int level = 0; level < 6; level++)
        assert_int_equal(files_at(store, level), 0);
    expect_keys(store, 7, RUNS * KEYS);
    expect_key(store, NULL, 7, "~0", "abcdef");
    expect_key(store, NULL, 7, "~499", "abcdef");
    expect_key(store, NULL, 7, "n250", "+f"); /* the newest */
    load = store_load_begin(store, 'k');
    store_load_abort(load);
    store_close(store);
}

/* So many runs that they are not merged all at once: what a later batch has of a key counts. */
static void a_load_of_very_many_transactions_is_merged_in_batches(void **state)
{
    (void)state;
    enum { TXNS = 1600 };
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    StoreLoad *load = store_load_begin(store, 'k');
    for (int t = 0; t < TXNS; t++) {
        StoreTxn *txn = store_txn_begin(store);
        char key[16];
        int len = snprintf(key, sizeof(key), "k%06d", t);
        store_txn_put(txn, 7, slice_make(key, (size_t)len), slice_make(key, (size_t)len));
        char operand[2] = {'+', (char)('a' + t * 26 / TXNS)};
        for (int i = 0; i < 3; i++) {
            len = snprintf(key, sizeof(key), "~%d", i);
            store_txn_merge(txn, 7, slice_make(key, (size_t)len), slice_make(operand, 2));
            len = snprintf(key, sizeof(key), "n%d", i);
            store_txn_put(txn, 7, slice_make(key, (size_t)len), slice_make(operand, 2));
        }
        assert_ok(store_load_add(load, txn, err));
    }
    assert_ok(store_load_finish(load, err));
    expect_keys(store, 7, TXNS);
    for (int i = 0; i < 3; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "~%d", i);
        expect_key(store, NULL, 7, key, "abcdefghijklmnopqrstuvwxyz");
        (void)snprintf(key, sizeof(key), "n%d", i);
        expect_key(store, NULL, 7, key, "+z");
    }
    store_close(store);
}

/* So that its caller can rest, or give up. */
static void a_load_is_merged_step_by_step(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    static char value[2000];
    for (int round = 0; round < 2; round++) {
        StoreLoad *load = store_load_begin(store, 'k');
        for (int t = 0; t < 4; t++) {
            StoreTxn *txn = store_txn_begin(store);
            for (int i = 0; i < 2000; i++) {
                char key[16];
                int len = snprintf(key, sizeof(key), "n%06d", (i * 4 + t) * 7919 % 8000);
                store_txn_put(txn, 7, slice_make(key, (size_t)len), slice_make(value, 2000));
            }
            assert_ok(store_load_add(load, txn, err));
        }
        int steps = 0;
        for (bool is_done = false; !is_done && (round == 1 || steps < 3); steps++)
            assert_ok(store_load_merge(load, &is_done, err));
        assert_int_equal(count_keys(store, NULL, 7), 0);
        if (round == 0) {
            store_load_abort(load);
            assert_int_equal(count_keys(store, NULL, 7), 0);
            continue;
        }
        assert_true(steps > 3);
        assert_ok(store_load_finish(load, err));
        assert_int_equal(count_keys(store, NULL, 7), 8000);
    }
    store_close(store);
}

static void operands_that_are_damaged_are_so_for_their_key_alone(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    for (int run = 0; run < 2; run++) {
        StoreTxn *txn = store_txn_begin(store);
        store_txn_merge(txn, 7, SLICE("~x"), SLICE("?"));
        store_txn_merge(txn, 7, SLICE("~x"), SLICE("+a"));
        store_txn_merge(txn, 7, SLICE("~y"), SLICE("+a"));
        load_now(store, txn);
        expect_corrupt(store, NULL, 7, "~x");
        expect_key(store, NULL, 7, "~y", "a");
    }
    store_close(store);
}

static void what_was_not_linked_is_removed_by_the_next_start(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    ingest_keys(store, 7, 0, 1);
    store_close(store);
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/ingest/5.sst", folder.path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fclose(file);
    store = test_rocksdb_open(folder.path);
    struct stat info;
    assert_int_equal(stat(path, &info), -1);
    ingest_keys(store, 7, 1, 1);
    expect_keys(store, 7, 2);
    store_close(store);
}

/* Ingests until it is killed, and says after each how far it is. */
static void ingest_for_ever(const char *path)
{
    Store *store = test_rocksdb_open(path);
    for (int i = 0; i < 1000000; i++) {
        ingest_keys(store, 7, i * 50, 50);
        merge_now(store, 8, "~x", "+a");
        (void)printf("%d\n", (i + 1) * 50);
        (void)fflush(stdout);
    }
}

static void what_was_ingested_survives_a_kill(void **state)
{
    (void)state;
    for (int round = 1; round <= 8; round++) {
        AUTO(test_folder_done) TestFolder folder;
        test_folder_init(&folder);
        int out = -1;
        pid_t pid = run_self("ingest", folder.path, &out);
        FILE *said = fdopen(out, "r");
        assert_non_null(said);
        int count = 0;
        int line = 0;
        while (count < round * 150 && fscanf(said, "%d", &line) == 1)
            count = line;
        assert_int_equal(kill(pid, SIGKILL), 0);
        (void)wait_for(pid);
        while (fscanf(said, "%d", &line) == 1)
            count = line;
        (void)fclose(said);
        assert_true(count >= round * 150);
        Store *store = test_rocksdb_open(folder.path);
        expect_keys(store, 7, count);
        expect_key(store, NULL, 8, "~x", "a");
        store_close(store);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        ingest_for_ever(argv[2]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rising_keys_go_to_the_bottom_and_leave_nothing_to_compact),
        cmocka_unit_test(a_walk_in_memory_does_not_end_between_two_tables),
        cmocka_unit_test(a_group_in_memory_does_not_end_between_two_tables),
        cmocka_unit_test(operands_become_values_where_there_is_nothing_and_join_what_there_is),
        cmocka_unit_test(a_load_of_many_transactions_leaves_nothing_to_compact),
        cmocka_unit_test(a_load_of_very_many_transactions_is_merged_in_batches),
        cmocka_unit_test(a_load_is_merged_step_by_step),
        cmocka_unit_test(operands_that_are_damaged_are_so_for_their_key_alone),
        cmocka_unit_test(what_was_not_linked_is_removed_by_the_next_start),
        cmocka_unit_test(what_was_ingested_survives_a_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
