/* ingest_test.c - tables past the log: where they lie, what becomes of operands, and of a process
 * that ends on the way. */
#include "store/rocksdb/testing_int.h"

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
    assert_ok(store_txn_ingest(txn, err));
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
        assert_ok(store_txn_ingest(txn, err));
        expect_key(store, NULL, 7, "~x", expected[run]);
        expect_key(store, NULL, 7, "~a", "z");
        expect_key(store, NULL, 7, "", "an empty key");
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
        assert_ok(store_txn_ingest(txn, err));
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
        cmocka_unit_test(operands_become_values_where_there_is_nothing_and_join_what_there_is),
        cmocka_unit_test(operands_that_are_damaged_are_so_for_their_key_alone),
        cmocka_unit_test(what_was_not_linked_is_removed_by_the_next_start),
        cmocka_unit_test(what_was_ingested_survives_a_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
