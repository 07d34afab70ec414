/* rocksdb_faults_test.c - disks that are full, fail or forget: what is refused, what stays
 * readable.
 *
 * What needs a disk or a limit of its own runs in a process of its own: this binary again, see
 * main.
 */
#include "store/rocksdb/rocksdb_testing_int.h"

#include <dirent.h>
#include <rocksdb/c.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { NOT_PERMITTED = 77 };

/* A file system of our own, of 96 MB, that is mounted nowhere: it is reached through a descriptor
 * and gone with it. That needs no mount point and no namespace, so it works in a chroot as well. */
static int open_tiny_disk(void)
{
    int context = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (context < 0)
        return -1;
    int fd = -1;
    if (fsconfig(context, FSCONFIG_SET_STRING, "size", "96m", 0) == 0 &&
        fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        fd = fsmount(context, FSMOUNT_CLOEXEC, 0);
    (void)close(context);
    return fd;
}

static bool write_setting(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    (void)close(fd);
    return is_written;
}

/* Makes us root in namespaces of our own, in which mounting is permitted to everybody. The group
 * must be known there as well, or no file can be made; for that groups must stay as they are. */
static bool become_root(void)
{
    char users[32], groups[32];
    (void)snprintf(users, sizeof(users), "0 %u 1", (unsigned)geteuid());
    (void)snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_setting("/proc/self/setgroups", "deny") &&
           write_setting("/proc/self/uid_map", users) &&
           write_setting("/proc/self/gid_map", groups);
}

/* Commits 200 KB at a time until it fails; returns how many were acknowledged. */
static uint32_t write_until_it_fails(Store *store, Error *err)
{
    static char value[200000];
    Random random;
    random_init(&random, 1);
    for (size_t i = 0; i < sizeof(value); i += 8)
        memcpy(value + i, &(uint64_t){random_u64(&random)}, 8);
    for (uint32_t i = 0; i < 1000; i++) {
        StoreTxn *txn = store_txn_begin(store);
        store_txn_put(txn, 2, slice_make(&i, sizeof(i)), slice_make(value, sizeof(value)));
        if (store_txn_commit_wait(txn, err) != STATUS_OK)
            return i;
    }
    fail_msg("200 MB were written and nothing has failed");
    return 0;
}

static Status put_one(Store *store, const char *key, Error *err)
{
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, slice_from_cstr(key), SLICE("v"));
    return store_txn_commit_wait(txn, err);
}

static void wait_healthy(Store *store)
{
    Error err = {0};
    Status status = STATUS_IO;
    for (uint32_t i = 0; i < 200 && status != STATUS_OK; i++) {
        sleep_ms(100);
        status = store_health(store, &err);
    }
    assert_int_equal(status, STATUS_OK);
}

/* What is refused for want of room. Work in the background may have made some since, on a slow
 * machine; 'fd' takes it away again, all but what that work needs. */
static void expect_full(Store *store, int fd, uint32_t kept)
{
    struct statvfs info;
    assert_int_equal(fstatvfs(fd, &info), 0);
    off_t room = (off_t)(info.f_bavail * info.f_frsize);
    off_t left = (off_t)12 << 20;
    if (room > left)
        assert_int_equal(posix_fallocate(fd, 48 << 20, room - left), 0);
    Error err = {0};
    assert_int_equal(store_room(store, &err), STATUS_IO);
    assert_non_null(strstr(err.message, "the disk is full"));
    assert_int_equal(put_one(store, "refused", &err), STATUS_IO);
    assert_int_equal(store_health(store, &err), STATUS_IO);
    expect_key(store, NULL, 1, "refused", NULL);
    expect_key(store, NULL, 1, "first", "v");
    assert_int_equal(count_keys(store, NULL, 2), kept);
}

static void delete_numbers(Store *store, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        StoreTxn *txn = store_txn_begin(store);
        store_txn_delete(txn, 2, slice_make(&i, sizeof(i)));
        store_txn_makes_room(txn);
        assert_ok(store_txn_commit_wait(txn, err));
    }
}

/* In a process of its own with a tiny disk of its own: fills it, watches, makes room, watches. */
static int command_fill_disk(void)
{
    int disk = open_tiny_disk();
    if (disk < 0 && become_root())
        disk = open_tiny_disk();
    if (disk < 0)
        return NOT_PERMITTED;
    char data[64];
    (void)snprintf(data, sizeof(data), "/proc/self/fd/%d/data", disk);
    int fd = openat(disk, "filler", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, 48 << 20) != 0)
        return NOT_PERMITTED;

    Store *store = open_at(data);
    put_now(store, 1, "first", "v");
    Error err = {0};
    uint32_t kept = write_until_it_fails(store, &err);
    assert_int_equal(err.status, STATUS_IO);
    expect_full(store, fd, kept);
    assert_int_equal(ftruncate(fd, 0), 0);
    wait_healthy(store);
    put_now(store, 1, "second", "v");
    assert_int_equal(count_keys(store, NULL, 2), kept);

    /* Full again: deleting makes room, by and by, and dropping at once. */
    assert_int_equal(posix_fallocate(fd, 0, 48 << 20), 0);
    (void)write_until_it_fails(store, &err); /* over what is there */
    assert_int_equal(err.status, STATUS_IO);
    delete_numbers(store, kept);
    wait_healthy(store);
    (void)write_until_it_fails(store, &err);
    assert_int_equal(err.status, STATUS_IO);
    assert_int_equal(store_drop_spaces(store, 2, 2, &err), STATUS_OK);
    wait_healthy(store);
    store_close(store);

    /* There is nothing left to begin with. */
    assert_int_equal(posix_fallocate(fd, 0, 94 << 20), 0);
    assert_int_equal(try_open(data, STORE_DURABILITY_SYNC, &store, &err), STATUS_IO);
    assert_non_null(strstr(err.message, data));
    assert_non_null(strstr(err.message, "the disk is full"));
    assert_int_equal(ftruncate(fd, 0), 0);
    store = open_at(data);
    expect_key(store, NULL, 1, "second", "v");
    assert_int_equal(count_keys(store, NULL, 2), 0);
    store_close(store);
    return 0;
}

/* Adds 2 MB at a time until it fails; the load is given up then, as a move does. */
static void load_until_it_fails(Store *store, StoreSpace space, Error *err)
{
    static char value[20000];
    Random random;
    random_init(&random, 2);
    StoreLoad *load = store_load_begin(store, 'k');
    Status status = STATUS_OK;
    for (uint32_t t = 0; t < 100 && status == STATUS_OK; t++) {
        StoreTxn *txn = store_txn_begin(store);
        for (uint32_t i = 0; i < 100; i++) {
            for (size_t k = 0; k < sizeof(value); k += 8)
                memcpy(value + k, &(uint64_t){random_u64(&random)}, 8);
            char key[16];
            int len = snprintf(key, sizeof(key), "%c%06u", i % 2 == 0 ? 'k' : 'n', t * 100 + i);
            store_txn_put(txn, space, slice_make(key, (size_t)len),
                          slice_make(value, sizeof(value)));
        }
        status = store_load_add(load, txn, err);
    }
    if (status == STATUS_OK)
        status = store_load_finish(load, err);
    else
        store_load_abort(load);
    assert_int_equal(status, STATUS_IO);
    assert_non_null(strstr(err->message, "the disk is full"));
}

/* I5: a load that finds no room fails alone. Afterwards its room is free again. */
static int command_load_on_full_disk(void)
{
    int disk = open_tiny_disk();
    if (disk < 0 && become_root())
        disk = open_tiny_disk();
    if (disk < 0)
        return NOT_PERMITTED;
    char data[64];
    (void)snprintf(data, sizeof(data), "/proc/self/fd/%d/data", disk);
    Store *store = open_at(data);
    put_now(store, 1, "first", "v");
    struct statvfs before, after;
    assert_int_equal(fstatvfs(disk, &before), 0);
    Error err = {0};
    load_until_it_fails(store, 5, &err);
    put_now(store, 1, "second", "v"); /* what is small has room */
    assert_int_equal(store_health(store, &err), STATUS_OK);
    assert_int_equal(store_drop_spaces(store, 5, 5, &err), STATUS_OK);
    assert_int_equal(count_keys(store, NULL, 5), 0);
    assert_int_equal(fstatvfs(disk, &after), 0);
    assert_true((after.f_bavail + ((2 << 20) / after.f_frsize)) > before.f_bavail);
    store_close(store);
    store = open_at(data);
    expect_key(store, NULL, 1, "first", "v");
    expect_key(store, NULL, 1, "second", "v");
    store_close(store);
    return 0;
}

/* A limit on the size of files breaks the log in the middle of a record, as a disk would that is
 * full or failing in spite of the reserve. */
static int command_break_log(const char *path)
{
    (void)signal(SIGXFSZ, SIG_IGN); /* the write is to fail, not the process */
    Store *store = open_at(path);
    put_now(store, 1, "first", "v");
    struct rlimit limit, old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = (struct rlimit){.rlim_cur = (rlim_t)2 << 20, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    Error err = {0};
    uint32_t kept = write_until_it_fails(store, &err);
    assert_int_equal(err.status, STATUS_IO);
    assert_true(kept > 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);

    sleep_ms(1500); /* longer than it takes to try again */
    assert_int_equal(store_health(store, &err), STATUS_IO);
    assert_non_null(strstr(err.message, "File too large"));
    assert_non_null(strstr(err.message, "after a restart"));
    assert_null(strstr(err.message, path));
    StoreTxn *txn = store_txn_begin(store);
    store_txn_put(txn, 1, SLICE("late"), SLICE("v"));
    assert_int_equal(store_txn_commit_wait(txn, &err), STATUS_IO);
    assert_int_equal(store_drop_spaces(store, 1, 1, &err), STATUS_IO);
    expect_key(store, NULL, 1, "first", "v");
    assert_int_equal(count_keys(store, NULL, 2), kept);
    store_close(store);

    store = open_at(path);
    expect_key(store, NULL, 1, "first", "v");
    expect_key(store, NULL, 1, "late", NULL);
    assert_int_equal(count_keys(store, NULL, 2), kept);
    put_now(store, 1, "late", "v");
    store_close(store);
    return 0;
}

/* Reads every key of put_bulk: right, or damaged; never wrong, never absent. */
static uint32_t count_damaged(Store *store, StoreSpace space, uint32_t count, Error *err)
{
    Random random;
    random_init(&random, space);
    uint32_t damaged = 0;
    for (uint32_t i = 0; i < count; i++) {
        char expected[1000], key[16];
        for (size_t k = 0; k + 8 <= sizeof(expected); k += 8)
            memcpy(expected + k, &(uint64_t){random_u64(&random)}, 8);
        int len = snprintf(key, sizeof(key), "%08u", i);
        AUTO(store_value_release) StoreValue value = {0};
        StoreFound found = STORE_ABSENT;
        Status status = store_get(store, NULL, space, slice_make(key, (size_t)len), STORE_READ_ANY,
                                  &value, &found, err);
        if (status != STATUS_OK) {
            assert_int_equal(status, STATUS_CORRUPT);
            damaged++;
            continue;
        }
        assert_int_equal(found, STORE_FOUND);
        assert_slice(value.data, slice_make(expected, sizeof(expected)));
    }
    return damaged;
}

static void a_damaged_block_fails_the_reads_that_need_it(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = open_at(folder.path);
    put_bulk(store, 2, COUNT);
    put_now(store, 1, "other", "v");
    store_close(store);
    char path[512];
    off_t size = find_file(folder.path, ".sst", path);
    flip_bytes(path, size / 2);

    store = open_at(folder.path);
    StoreDamage damage;
    store_damage(store, &damage);
    assert_int_equal(damage.reads, 0);
    assert_int_equal(damage.newest.status, STATUS_OK);
    Error err = {0};
    uint32_t damaged = count_damaged(store, 2, COUNT, &err);
    assert_in_range(damaged, 1, 20);
    assert_non_null(strstr(err.message, "damaged"));
    assert_non_null(strstr(err.message, ".sst"));
    assert_null(strstr(err.message, folder.path));
    store_damage(store, &damage);
    assert_int_equal(damage.reads, damaged);
    assert_string_equal(damage.newest.message, err.message);

    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, 2, SLICE_EMPTY, SLICE_EMPTY);
    Slice key = {0}, value = {0};
    bool found = true;
    uint32_t steps = 0;
    while (store_cursor_next(cursor, &key, &value, &found, &err) == STATUS_OK) {
        assert_true(found); /* the end would mean that the rest was lost in silence */
        steps++;
    }
    assert_int_equal(err.status, STATUS_CORRUPT);
    assert_in_range(steps, COUNT / 4, COUNT - damaged);
    store_cursor_close(TAKE(cursor));

    /* Everything else goes on. */
    assert_int_equal(store_health(store, &err), STATUS_OK);
    expect_key(store, NULL, 1, "other", "v");
    put_now(store, 1, "other", "w");
    expect_key(store, NULL, 1, "other", "w");
    store_close(store);
}

static void remove_mark(const char *folder)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/DAMAGED", folder);
    assert_int_equal(unlink(path), 0);
}

/* What is damaged cannot be rewritten, so that RocksDB stops taking writes when it tries to. It
 * says why, reads go on, and after a restart nothing tries any more. */
static void damage_that_the_background_meets_ends_writing_until_a_restart(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = open_at(folder.path);
    put_now(store, 1, "first", "v");
    put_bulk(store, 2, 3000);
    store_close(store);
    char path[512];
    off_t size = find_file(folder.path, ".sst", path);
    flip_bytes(path, size / 2);

    store = open_at(folder.path);
    Error failure = {0};
    (void)write_until_it_fails(store, &failure); /* the same files have to take it */
    assert_int_equal(failure.status, STATUS_CORRUPT);
    assert_non_null(strstr(failure.message, "damaged"));
    assert_non_null(strstr(failure.message, "after a restart"));
    assert_int_equal(store_health(store, &failure), STATUS_CORRUPT);
    expect_key(store, NULL, 1, "first", "v");
    store_close(store);

    for (uint32_t round = 0; round < 2; round++) {
        store = open_at(folder.path);
        StoreDamage damage;
        store_damage(store, &damage);
        assert_int_equal(damage.reads, 1);
        assert_non_null(strstr(damage.newest.message, "checksum"));
        assert_non_null(strstr(damage.newest.message, "DAMAGED"));
        assert_ok(store_health(store, err));
        expect_key(store, NULL, 1, "first", "v");
        put_bulk(store, 3, 40000); /* more than has made it stop before */
        assert_int_equal(count_keys(store, NULL, 3), 40000);
        assert_ok(store_drop_spaces(store, 3, 3, err));
        assert_ok(store_health(store, err));
        store_close(store);
    }
    remove_mark(folder.path);
    store = open_at(folder.path);
    StoreDamage damage;
    store_damage(store, &damage);
    assert_int_equal(damage.reads, 0);
    store_close(store);
}

/* A read that meets it first saves the writes. */
static void damage_that_a_read_has_met_does_not_end_writing(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = open_at(folder.path);
    put_bulk(store, 2, COUNT);
    store_close(store);
    char path[512];
    off_t size = find_file(folder.path, ".sst", path);
    flip_bytes(path, size / 2);
    store = open_at(folder.path);
    Error failure = {0};
    uint32_t damaged = count_damaged(store, 2, COUNT, &failure);
    assert_true(damaged > 0);
    put_bulk(store, 3, 40000);
    assert_ok(store_health(store, err));
    assert_int_equal(count_keys(store, NULL, 3), 40000);
    assert_int_equal(count_damaged(store, 2, COUNT, &failure), damaged);
    store_close(store);
}

static void a_log_does_not_grow_with_each_write(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = open_at(folder.path);
    put_now(store, 1, "key", "value");
    char path[512];
    off_t open_size = find_file(folder.path, ".log", path);
    assert_true(open_size > 100000);
    put_now(store, 1, "key", "other");
    assert_int_equal(find_file(folder.path, ".log", path), open_size);
    store_close(store);
    store = open_at(folder.path);
    expect_key(store, NULL, 1, "key", "other");
    store_close(store);
}

/* What is not synced reaches the disk in any order. In a file that has its size already, a loss of
 * power could leave zeros for a group and what came after it, which RocksDB would replay; in one
 * that grows it is the end that is missing. */
static void a_relaxed_log_is_not_written_ahead(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    Store *store = NULL;
    Error err;
    assert_int_equal(try_open(folder.path, STORE_DURABILITY_RELAXED, &store, &err), STATUS_OK);
    put_now(store, 1, "key", "value");
    char path[512];
    assert_in_range(find_file(folder.path, ".log", path), 1, 1000);
    store_close(store);
    store = open_at(folder.path);
    expect_key(store, NULL, 1, "key", "value");
    store_close(store);
}

/* Many small tables in the last level, which nothing has a reason to rewrite. */
static void make_tables(const char *path, uint32_t keys)
{
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_options_set_create_if_missing(options, 1);
    rocksdb_options_set_target_file_size_base(options, 16 << 10);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 1);
    char *text = NULL;
    rocksdb_t *db = rocksdb_open(options, path, &text);
    assert_null(text);
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    char value[1000];
    Random random; /* what could be compressed would fill fewer tables */
    random_init(&random, 1);
    for (uint32_t i = 0; i < keys; i++) {
        char key[32] = {[7] = 1}; /* the space */
        int len = snprintf(key + 8, sizeof(key) - 8, "%08u", i * 2);
        for (size_t k = 0; k + 8 <= sizeof(value); k += 8)
            memcpy(value + k, &(uint64_t){random_u64(&random)}, 8);
        value[999] = 'a' + (char)(i % 26);
        rocksdb_put(db, write, key, 8 + (size_t)len, value, sizeof(value), &text);
        assert_null(text);
    }
    rocksdb_compactoptions_t *compact = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(compact, 2); /* not just moved there */
    rocksdb_compact_range_opt(db, compact, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(compact);
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
}

static uint32_t count_tables(const char *folder)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    uint32_t count = 0;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while ((entry = readdir(dir)) != NULL)
        count += strstr(entry->d_name, ".sst") != NULL ? 1 : 0;
    (void)closedir(dir);
    return count;
}

static StoreFound read_number(Store *store, uint32_t number, StoreRead read)
{
    char key[16];
    (void)snprintf(key, sizeof(key), "%08u", number);
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(store, NULL, 1, slice_from_cstr(key), read, &value, &found, err));
    if (found == STORE_FOUND) {
        assert_int_equal(value.data.len, 1000);
        assert_int_equal(value.data.ptr[999], 'a' + (char)(number / 2 % 26));
    }
    return found;
}

/* RocksDB opens sixteen tables at the start and the others when they are needed. */
static void a_table_that_is_not_open_yet_is_unknown_to_memory(void **state)
{
    (void)state;
    enum { KEYS = 2000 };
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    make_tables(folder.path, KEYS);
    assert_true(count_tables(folder.path) > 64);
    AUTO(store_close) Store *store = open_at(folder.path);
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        StoreFound there = read_number(store, 2 * i, STORE_READ_MEMORY);
        assert_int_not_equal(there, STORE_ABSENT);
        unknown += there == STORE_UNKNOWN ? 1 : 0;
        /* Between the keys there is nothing, which memory may know or not. */
        assert_int_not_equal(read_number(store, 2 * i + 1, STORE_READ_MEMORY), STORE_FOUND);
    }
    assert_true(unknown > KEYS / 2);
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_int_equal(read_number(store, 2 * i, STORE_READ_ANY), STORE_FOUND);
        assert_int_equal(read_number(store, 2 * i, STORE_READ_MEMORY), STORE_FOUND);
        assert_int_equal(read_number(store, 2 * i + 1, STORE_READ_ANY), STORE_ABSENT);
    }
}

static int run_in_folder(const char *command)
{
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    return run_command(command, folder.path);
}

static void expect_on_tiny_disk(const char *command)
{
    int code = run_in_folder(command);
    if (code == NOT_PERMITTED) {
        print_message("NOT TESTED: a file system of our own is not permitted here, not even in a "
                      "user namespace\n");
        skip();
    }
    assert_int_equal(code, 0);
}

static void a_full_disk_fails_writes_until_there_is_room_again(void **state)
{
    (void)state;
    expect_on_tiny_disk("fill-disk");
}

static void a_full_disk_fails_a_load_and_nothing_else(void **state)
{
    (void)state;
    expect_on_tiny_disk("load-on-full-disk");
}

static void a_broken_log_takes_nothing_more_until_a_restart(void **state)
{
    (void)state;
    assert_int_equal(run_in_folder("break-log"), 0);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "fill-disk") == 0)
        return command_fill_disk();
    if (argc == 3 && strcmp(argv[1], "load-on-full-disk") == 0)
        return command_load_on_full_disk();
    if (argc == 3 && strcmp(argv[1], "break-log") == 0)
        return command_break_log(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_fails_writes_until_there_is_room_again),
        cmocka_unit_test(a_full_disk_fails_a_load_and_nothing_else),
        cmocka_unit_test(a_broken_log_takes_nothing_more_until_a_restart),
        cmocka_unit_test(a_log_does_not_grow_with_each_write),
        cmocka_unit_test(a_relaxed_log_is_not_written_ahead),
        cmocka_unit_test(a_damaged_block_fails_the_reads_that_need_it),
        cmocka_unit_test(damage_that_the_background_meets_ends_writing_until_a_restart),
        cmocka_unit_test(damage_that_a_read_has_met_does_not_end_writing),
        cmocka_unit_test(a_table_that_is_not_open_yet_is_unknown_to_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
