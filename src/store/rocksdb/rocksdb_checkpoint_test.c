/* rocksdb_checkpoint_test.c - checkpoints: what is in them, what they do to the store. */
#include "base/cond.h"
#include "store/checkpoint.h"
#include "store/rocksdb/rocksdb_int.h"
#include "store/rocksdb/rocksdb_testing_int.h"
#include "store/rocksdb/sync_marks_int.h"

#include <pthread.h>
#include <stdatomic.h>

/* Copies the checkpoint's files to a folder, as a backup does, in pieces of odd sizes. */
static void copy_out(const StoreCheckpoint *checkpoint, const char *to)
{
    assert_int_equal(mkdir(to, 0700), 0);
    size_t count = 0;
    const CheckpointFile *files = store_checkpoint_files(checkpoint, &count);
    assert_true(count >= 3);
    for (size_t i = 0; i < count; i++) {
        char path[512];
        (void)snprintf(path, sizeof(path), "%s/%s", to, files[i].name);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        uint64_t offset = 0;
        for (;;) {
            char bytes[40961];
            size_t len = 0;
            assert_ok(
                store_checkpoint_read(checkpoint, i, offset, bytes, sizeof(bytes), &len, err));
            if (len == 0)
                break;
            assert_int_equal(write(fd, bytes, len), (ssize_t)len);
            offset += len;
        }
        assert_int_equal(offset, files[i].size);
        (void)close(fd);
    }
}

static size_t count_checkpoints(const char *folder)
{
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/checkpoints", folder);
    DIR *dir = opendir(path);
    if (dir == NULL)
        return 0;
    size_t count = 0;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while ((entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

static void an_engine_without_files_says_so(void **state)
{
    (void)state;
    Store *store = NULL;
    memory_store_open(&store);
    StoreCheckpoint *checkpoint = NULL;
    Error err = {0};
    assert_int_equal(store_checkpoint_open(store, &checkpoint, &err), STATUS_NOT_IMPLEMENTED);
    assert_null(checkpoint);
    store_close(store);
}

static void a_checkpoint_does_not_change_any_more(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    char at[256];
    char to[256];
    (void)snprintf(at, sizeof(at), "%s//store/", folder.path); /* RocksDB keeps such slashes */
    (void)snprintf(to, sizeof(to), "%s/copy", folder.path);
    Store *store = test_rocksdb_open(at);
    put_bulk(store, 7, 3000);
    put_now(store, 1, "before", "1");
    StoreCheckpoint *checkpoint = NULL;
    assert_ok(store_checkpoint_open(store, &checkpoint, err));
    put_now(store, 1, "before", "2");
    put_now(store, 1, "after", "1");
    assert_ok(store_drop_spaces(store, 7, 7, err));
    put_bulk(store, 8, 9000); /* more than a memtable */
    copy_out(checkpoint, to);
    assert_int_equal(count_checkpoints(at), 1);
    store_checkpoint_close(checkpoint);
    assert_int_equal(count_checkpoints(at), 0);
    expect_key(store, NULL, 1, "after", "1");
    store_close(store);

    Store *copy = test_rocksdb_open(to);
    expect_key(copy, NULL, 1, "before", "1");
    expect_key(copy, NULL, 1, "after", NULL);
    assert_int_equal(count_keys(copy, NULL, 7), 3000);
    assert_int_equal(count_keys(copy, NULL, 8), 0);
    put_now(copy, 1, "after", "3"); /* it is a store like others */
    store_close(copy);
}

typedef struct Writer {
    Store *store;
    _Atomic uint64_t done; /* "n" and "m" were acknowledged with this value */
    _Atomic bool stops;
} Writer;

static void *write_on(void *ctx)
{
    Writer *writer = ctx;
    for (uint64_t i = 1; !atomic_load(&writer->stops); i++) {
        StoreTxn *txn = store_txn_begin(writer->store);
        Slice value = slice_make(&i, sizeof(i));
        store_txn_put(txn, 1, SLICE("n"), value);
        store_txn_put(txn, 1, SLICE("m"), value);
        store_txn_put(txn, 1, value, value); /* so that the log grows */
        commit_now(txn);
        atomic_store(&writer->done, i);
    }
    return NULL;
}

static uint64_t read_number(Store *store, StoreSpace space, Slice key)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, NULL, space, key, STORE_READ_ANY, &value, &found, err));
    uint64_t number = 0;
    if (found == STORE_FOUND)
        memcpy(&number, value.data.ptr, sizeof(number));
    return number;
}

/* Nothing acknowledged before is missing, and no transaction is half there, with both kinds of
 * logs. */
static void a_checkpoint_beside_a_writer_is_a_prefix(void **state)
{
    (void)state;
    for (int durability = 0; durability < 2; durability++) {
        AUTO(test_folder_done) TestFolder folder;
        test_folder_init(&folder);
        char at[256];
        (void)snprintf(at, sizeof(at), "%s/store", folder.path);
        Store *store = NULL;
        assert_ok(try_open(at, durability == 0 ? STORE_DURABILITY_SYNC : STORE_DURABILITY_RELAXED,
                           &store, err));
        Writer writer = {.store = store};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, write_on, &writer), 0);
        for (int i = 0; i < 8; i++) {
            uint64_t least = atomic_load(&writer.done) + 20;
            while (atomic_load(&writer.done) < least)
                (void)sched_yield();
            uint64_t before = atomic_load(&writer.done);
            StoreCheckpoint *checkpoint = NULL;
            assert_ok(store_checkpoint_open(store, &checkpoint, err));
            uint64_t after = atomic_load(&writer.done) + 1;
            char to[256];
            (void)snprintf(to, sizeof(to), "%s/copy%d", folder.path, i);
            copy_out(checkpoint, to);
            store_checkpoint_close(checkpoint);
            Store *copy = open_at(to);
            uint64_t n = read_number(copy, 1, SLICE("n"));
            assert_int_equal(read_number(copy, 1, SLICE("m")), n);
            assert_int_equal(count_keys(copy, NULL, 1), n + 2);
            assert_true(n >= before);
            assert_true(n <= after);
            store_close(copy);
        }
        atomic_store(&writer.stops, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        store_close(store);
    }
}

static uint32_t count_keys_at(const char *path)
{
    Store *store = test_rocksdb_open(path);
    uint32_t count = count_keys(store, NULL, 1);
    store_close(store);
    return count;
}

static size_t read_marks(const char *folder, SyncMark out[SYNC_MARKS_MAX])
{
    memset(out, 0, sizeof(SyncMark) * SYNC_MARKS_MAX);
    SyncMarks *marks = sync_marks_open(folder);
    size_t count = sync_marks_read(marks, out);
    sync_marks_close(marks);
    return count;
}

/* Files that a start has replaced are removed by RocksDB's own threads, soon; their marks go with
 * them. */
static size_t read_marks_of_two_files(const char *folder, SyncMark out[SYNC_MARKS_MAX])
{
    size_t count = read_marks(folder, out);
    for (uint64_t until_us = cond_after_ms(10000); count > 2 && cond_now_us() < until_us;) {
        sleep_ms(1);
        count = read_marks(folder, out);
    }
    return count;
}

/* The marks of the store's own log and MANIFEST must not follow the files of a checkpoint, which
 * have the same names. Nothing is written out first here, so that the log is copied. */
static void marks_stay_those_of_the_store(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    put_bulk(store, 1, 1000);
    SyncMark before[SYNC_MARKS_MAX];
    SyncMark after[SYNC_MARKS_MAX];
    size_t count = read_marks_of_two_files(folder.path, before);
    assert_int_equal(count, 2);
    char *failed = NULL;
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/copy", folder.path);
    rocksdb_checkpoint_t *maker =
        rocksdb_checkpoint_object_create(rocksdb_of_store(store), &failed);
    assert_null(failed);
    rocksdb_checkpoint_create(maker, path, UINT64_MAX, &failed);
    assert_null(failed);
    rocksdb_checkpoint_object_destroy(maker);
    char log[512];
    assert_true(find_file(path, ".log", log) > 1000000);
    assert_int_equal(read_marks(folder.path, after), count);
    assert_memory_equal(before, after, sizeof(before));
    store_close(store);
    assert_int_equal(count_keys_at(path), 1000);
    assert_int_equal(count_keys_at(folder.path), 1000);
}

static void leftovers_go_with_the_next_start(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    store_close(test_rocksdb_open(folder.path));
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/checkpoints", folder.path);
    assert_int_equal(mkdir(path, 0700), 0);
    static const char *const names[] = {"3", "4.tmp"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/checkpoints/%s", folder.path, names[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        (void)snprintf(path, sizeof(path), "%s/checkpoints/%s/000001.sst", folder.path, names[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        (void)close(fd);
    }
    assert_int_equal(count_checkpoints(folder.path), 2);
    Store *store = test_rocksdb_open(folder.path);
    assert_int_equal(count_checkpoints(folder.path), 0);
    store_close(store);
}

static void a_folder_that_is_not_complete_is_refused(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = test_rocksdb_open(folder.path);
    put_now(store, 1, "a", "v");
    store_close(store);
    char path[512];
    (void)snprintf(path, sizeof(path), "%s/" STORE_INCOMPLETE_FILE, folder.path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    for (int i = 0; i < 2; i++) {
        Error err = {0};
        RocksdbStoreOptions options = {.path = folder.path, .is_read_only = i == 1};
        store = NULL;
        assert_int_equal(rocksdb_store_open(&options, &store, &err), STATUS_UNAVAILABLE);
        assert_non_null(strstr(err.message, "not complete"));
        assert_null(store);
    }
    assert_int_equal(unlink(path), 0);
    store = test_rocksdb_open(folder.path);
    expect_key(store, NULL, 1, "a", "v");
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_engine_without_files_says_so),
        cmocka_unit_test(a_checkpoint_does_not_change_any_more),
        cmocka_unit_test(a_checkpoint_beside_a_writer_is_a_prefix),
        cmocka_unit_test(marks_stay_those_of_the_store),
        cmocka_unit_test(leftovers_go_with_the_next_start),
        cmocka_unit_test(a_folder_that_is_not_complete_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
