/* sync_marks_test.c - what is known of the logs, also after a torn write; and what becomes of a
 * group whose sync has failed.
 *
 * fdatasync is the one below, in RocksDB too: this binary's functions go before the C library's.
 */
#include "store/rocksdb/rocksdb_testing_int.h"
#include "store/rocksdb/sync_marks_int.h"

#include <sys/syscall.h>
#include <unistd.h>

static const char *_Atomic failing_end; /* of the names of files that cannot be synced; or NULL */

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    const char *end = failing_end;
    char link[64], path[512];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = end == NULL ? -1 : readlink(link, path, sizeof(path));
    size_t end_len = end == NULL ? 0 : strlen(end);
    if (len >= (ssize_t)end_len && memcmp(path + len - end_len, end, end_len) == 0) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

static size_t read_again(const char *folder, SyncMark found[SYNC_MARKS_MAX])
{
    SyncMarks *marks = sync_marks_open(folder);
    size_t count = sync_marks_read(marks, found);
    sync_marks_close(marks);
    return count;
}

static void marks_are_as_they_were_written(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    SyncMark found[SYNC_MARKS_MAX];
    assert_int_equal(read_again(folder.path, found), 0);

    SyncMarks *marks = sync_marks_open(folder.path);
    sync_marks_add_log(marks, 7, false);
    sync_marks_add_log(marks, 9, true);
    sync_marks_note(marks, SYNC_MANIFEST, 8, 500);
    sync_marks_note(marks, SYNC_LOG, 7, 1000);
    assert_int_equal(read_again(folder.path, found), 2);
    assert_int_equal(found[0].bytes, 0); /* not written yet */
    sync_marks_write(marks);
    sync_marks_note(marks, SYNC_LOG, 7, 900);  /* a sync that began earlier and ended later */
    sync_marks_note(marks, SYNC_LOG, 4711, 1); /* never heard of */
    sync_marks_write(marks);
    assert_int_equal(read_again(folder.path, found), 3);
    assert_int_equal(found[0].kind, SYNC_LOG);
    assert_int_equal(found[0].number, 7);
    assert_int_equal(found[0].bytes, 1000);
    assert_false(found[0].is_relaxed);
    assert_false(found[0].is_exact);
    assert_int_equal(found[1].number, 9);
    assert_true(found[1].is_relaxed);
    assert_int_equal(found[2].kind, SYNC_MANIFEST);
    assert_int_equal(found[2].bytes, 500);

    sync_marks_remove(marks, SYNC_MANIFEST, 7); /* there is only a log of that number */
    sync_marks_remove(marks, SYNC_LOG, 7);
    assert_int_equal(read_again(folder.path, found), 2);
    assert_int_equal(found[0].number, 9);
    sync_marks_close(marks);
}

static void a_torn_mark_leaves_the_one_before(void **state)
{
    (void)state;
    for (off_t slot = 0; slot < 2; slot++) {
        AUTO(test_folder_done) TestFolder folder;
        test_folder_init(&folder);
        SyncMarks *marks = sync_marks_open(folder.path);
        sync_marks_add_log(marks, 7, false);
        for (uint64_t bytes = 100; bytes <= 300; bytes += 100) {
            sync_marks_note(marks, SYNC_LOG, 7, bytes);
            sync_marks_write(marks);
        }
        sync_marks_close(marks);
        char path[512];
        (void)find_file(folder.path, "SYNCED", path);
        flip_bytes(path, slot * 4096 + 30);
        SyncMark found[SYNC_MARKS_MAX];
        assert_int_equal(read_again(folder.path, found), 1);
        assert_true(found[0].bytes == 200 || found[0].bytes == 300);

        flip_bytes(path, (1 - slot) * 4096 + 30);
        assert_int_equal(read_again(folder.path, found), 0);
    }
}

static void with_too_many_logs_the_oldest_is_forgotten(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    SyncMarks *marks = sync_marks_open(folder.path);
    for (uint64_t number = 1; number <= SYNC_MARKS_MAX + 2; number++)
        sync_marks_add_log(marks, number, false);
    sync_marks_close(marks);
    SyncMark found[SYNC_MARKS_MAX];
    assert_int_equal(read_again(folder.path, found), SYNC_MARKS_MAX);
    assert_int_equal(found[0].number, 3);
    assert_int_equal(found[SYNC_MARKS_MAX - 1].number, SYNC_MARKS_MAX + 2);
}

/* What is only noted cannot have been acknowledged. */
static void logs_end_at_what_was_acknowledged(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    SyncMarks *marks = sync_marks_open(folder.path);
    sync_marks_add_log(marks, 7, false);
    sync_marks_note(marks, SYNC_LOG, 7, 1000);
    sync_marks_write(marks);
    sync_marks_note(marks, SYNC_LOG, 7, 2000);
    assert_true(sync_marks_end_logs(marks));
    sync_marks_write(marks);
    SyncMark found[SYNC_MARKS_MAX];
    assert_int_equal(read_again(folder.path, found), 1);
    assert_true(found[0].is_exact);
    assert_int_equal(found[0].bytes, 1000);
    sync_marks_add_log(marks, 8, true); /* of this one nothing is known */
    assert_false(sync_marks_end_logs(marks));
    assert_int_equal(read_again(folder.path, found), 2);
    assert_false(found[1].is_exact);
    sync_marks_close(marks);
}

static Status put_key(Store *store, const char *key, Error *err)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, slice_from_cstr(key), SLICE("v"));
    return store_txn_commit_wait(txn, err);
}

/* The log has the group, as a whole, and would be replayed with it. */
static void a_group_whose_sync_failed_does_not_come_back(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = open_at(folder.path);
    put_now(store, 1, "acknowledged", "v");
    Error err = {0};
    failing_end = ".log";
    Status status = put_key(store, "failed", &err);
    failing_end = NULL;
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(err.message, "after a restart"));
    assert_null(strstr(err.message, "this one"));
    assert_int_equal(put_key(store, "later", &err), STATUS_IO);
    expect_key(store, NULL, 1, "failed", NULL);
    store_close(store);

    for (uint32_t i = 0; i < 2; i++) {
        store = open_at(folder.path);
        expect_key(store, NULL, 1, "acknowledged", "v");
        expect_key(store, NULL, 1, "failed", NULL);
        expect_key(store, NULL, 1, "later", NULL);
        put_now(store, 1, i == 0 ? "then" : "again", "v");
        store_close(store);
    }
    store = open_at(folder.path);
    expect_key(store, NULL, 1, "then", "v");
    expect_key(store, NULL, 1, "again", "v");
    store_close(store);
}

static void where_that_is_not_certain_it_is_said(void **state)
{
    (void)state;
    static const StoreDurability durabilities[] = {STORE_DURABILITY_SYNC, STORE_DURABILITY_RELAXED};
    for (size_t i = 0; i < ARRAY_COUNT(durabilities); i++) {
        AUTO(test_folder_done) TestFolder folder;
        test_folder_init(&folder);
        Store *store = NULL;
        Error failure = {0};
        assert_int_equal(try_open(folder.path, durabilities[i], &store, &failure), STATUS_OK);
        put_now(store, 1, "acknowledged", "v");
        failing_end = durabilities[i] == STORE_DURABILITY_SYNC ? "" : ".log";
        /* A drop is synced even if durability is relaxed. */
        Status status = durabilities[i] == STORE_DURABILITY_SYNC
                            ? put_key(store, "failed", &failure)
                            : store_drop_spaces(store, 5, 5, &failure);
        failing_end = NULL;
        assert_int_equal(status, STATUS_IO);
        assert_non_null(strstr(failure.message, "known whether this one was kept"));
        assert_int_equal(put_key(store, "later", &failure), STATUS_IO);
        assert_null(strstr(failure.message, "this one")); /* it was not even tried */
        store_close(store);
        assert_ok(try_open(folder.path, durabilities[i], &store, err));
        expect_key(store, NULL, 1, "acknowledged", "v");
        expect_key(store, NULL, 1, "later", NULL);
        store_close(store);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_as_they_were_written),
        cmocka_unit_test(a_torn_mark_leaves_the_one_before),
        cmocka_unit_test(with_too_many_logs_the_oldest_is_forgotten),
        cmocka_unit_test(logs_end_at_what_was_acknowledged),
        cmocka_unit_test(a_group_whose_sync_failed_does_not_come_back),
        cmocka_unit_test(where_that_is_not_certain_it_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
