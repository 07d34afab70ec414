/* folder_check_test.c - folders of which something is missing or damaged: what opens, what is
 * refused and in which words, what is left when losses are accepted; and folders that are only
 * read.
 *
 * Each folder is left by a process of its own: this binary again, see main.
 */
#include "store/rocksdb/folder_check_int.h"
#include "store/rocksdb/rocksdb_testing_int.h"

#include "base/hash.h"

/* Keys in a table, then keys in the log; in the log every key is a group of its own,
 * acknowledged. */
enum { TABLE_SPACE = 2, TABLE_KEYS = 50, LOG_SPACE = 1, LOG_KEYS = 60, LOG_VALUE_BYTES = 3000 };

static void put_log_keys(Store *store)
{
    static char value[LOG_VALUE_BYTES];
    for (uint32_t i = 0; i < LOG_KEYS; i++) {
        memset(value, 'a' + (char)(i % 26), sizeof(value));
        char key[16];
        (void)snprintf(key, sizeof(key), "%03u", i);
        StoreTxn *txn = store_txn_begin(store);
        store_txn_put(txn, LOG_SPACE, slice_from_cstr(key), slice_make(value, sizeof(value)));
        assert_ok(store_txn_commit_wait(txn, err));
    }
}

static int command_leave(const char *path, StoreDurability durability)
{
    Store *store = open_at(path);
    put_bulk(store, TABLE_SPACE, TABLE_KEYS);
    store_close(store);
    assert_ok(try_open(path, durability, &store, err));
    put_log_keys(store);
    _exit(0); /* as if it were killed */
}

/* Keys from the first on, without a gap. */
static uint32_t count_log_keys(Store *store)
{
    uint32_t count = count_keys(store, NULL, LOG_SPACE);
    for (uint32_t i = 0; i < count; i++) {
        char key[16];
        (void)snprintf(key, sizeof(key), "%03u", i);
        AUTO(store_value_release) StoreValue value = {0};
        StoreFound found = STORE_ABSENT;
        assert_ok(store_get(store, NULL, LOG_SPACE, slice_from_cstr(key), STORE_READ_ANY, &value,
                            &found, err));
        assert_int_equal(found, STORE_FOUND);
        assert_int_equal(value.data.len, LOG_VALUE_BYTES);
        assert_int_equal(value.data.ptr[LOG_VALUE_BYTES - 1], 'a' + (char)(i % 26));
    }
    return count;
}

static Status try_open_accepting(const char *path, Store **store, Error *err)
{
    RocksdbStoreOptions options = {
        .path = path, .cache_bytes = (size_t)4 << 20, .accepts_lost_writes = true};
    return rocksdb_store_open(&options, store, err);
}

static void join_path(char out[512], const char *folder, const char *name)
{
    (void)snprintf(out, 512, "%.200s/%.200s", folder, name);
}

/* Where the records of a log end and the room ahead of it begins: values do not end with zeros. */
static off_t find_end(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    off_t size = lseek(fd, 0, SEEK_END);
    for (uint8_t last = 0; size > 0; size--) {
        assert_int_equal(pread(fd, &last, 1, size - 1), 1);
        if (last != 0)
            break;
    }
    (void)close(fd);
    return size;
}

static void write_at(const char *path, off_t at, uint8_t byte, size_t count)
{
    static char bytes[64 << 10];
    assert_true(count <= sizeof(bytes));
    memset(bytes, byte, count);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, count, at), (ssize_t)count);
    (void)close(fd);
}

static void copy_file(const char *from, const char *to, off_t bytes)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(in >= 0 && out >= 0);
    for (char buffer[4096]; bytes > 0;) {
        ssize_t len = read(in, buffer, bytes < 4096 ? (size_t)bytes : sizeof(buffer));
        assert_true(len > 0);
        assert_int_equal(write(out, buffer, (size_t)len), len);
        bytes -= len;
    }
    (void)close(in);
    (void)close(out);
}

/* What a process has left, made once: each test gets copies. */
typedef struct Left {
    TestFolder sync;
    TestFolder relaxed;
} Left;

static int left_init(void **state)
{
    Left *left = MEM_NEW(Left);
    test_folder_init(&left->sync);
    test_folder_init(&left->relaxed);
    assert_int_equal(run_command("leave", left->sync.path), 0);
    assert_int_equal(run_command("leave-relaxed", left->relaxed.path), 0);
    *state = left;
    return 0;
}

static int left_done(void **state)
{
    Left *left = *state;
    test_folder_done(&left->sync);
    test_folder_done(&left->relaxed);
    mem_free(left);
    return 0;
}

static void copy_init(TestFolder *folder, const TestFolder *left)
{
    test_folder_init(folder);
    DIR *dir = opendir(left->path);
    assert_non_null(dir);
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while ((entry = readdir(dir)) != NULL) {
        char from[512], to[512];
        struct stat info;
        join_path(from, left->path, entry->d_name);
        join_path(to, folder->path, entry->d_name);
        assert_int_equal(stat(from, &info), 0);
        if (S_ISREG(info.st_mode))
            copy_file(from, to, info.st_size);
    }
    (void)closedir(dir);
}

/* ---- a folder as it is ---- */

/* A sum over names, sizes, times and bytes of all files but RocksDB's own report, which it begins
 * anew whenever it is asked to open something. */
static uint64_t state_of(const char *folder, bool with_report)
{
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    uint64_t sum = 0;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || (!with_report && strncmp(entry->d_name, "LOG", 3) == 0))
            continue;
        char path[512];
        join_path(path, folder, entry->d_name);
        struct stat info;
        assert_int_equal(stat(path, &info), 0);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        char *bytes = mem_alloc((size_t)info.st_size + 1);
        assert_int_equal(read(fd, bytes, (size_t)info.st_size), info.st_size);
        (void)close(fd);
        HashKey key = {0};
        sum += hash_keyed(key, slice_from_cstr(entry->d_name)) ^
               hash_keyed(key, slice_make(bytes, (size_t)info.st_size)) ^
               hash_keyed(key, slice_make(&info.st_mtim, sizeof(info.st_mtim)));
        mem_free(bytes);
    }
    (void)closedir(dir);
    return sum;
}

/* ---- one file is lost ---- */

typedef enum Loss { REMOVED, EMPTIED, HALVED, ZEROED } Loss;

typedef struct LossRow {
    const char *file; /* how its name ends or begins; the largest */
    Loss loss;
    double at; /* of ZEROED: where in the file, 0 to 1 */
    size_t bytes;
    const char *message;     /* NULL: it opens, with everything */
    uint32_t at_least, most; /* keys of the log that are there when the loss is accepted */
} LossRow;

static void lose(const char *folder, const LossRow *row)
{
    char path[512];
    (void)find_file(folder, row->file, path);
    off_t size = find_end(path); /* a log has zeros after that */
    switch (row->loss) {
    case REMOVED:
        assert_int_equal(unlink(path), 0);
        break;
    case EMPTIED:
        assert_int_equal(truncate(path, 0), 0);
        break;
    case HALVED:
        assert_int_equal(truncate(path, size / 2), 0);
        break;
    case ZEROED: {
        off_t at = (off_t)((double)size * row->at);
        off_t most = size - at;
        write_at(path, at, 0, most < (off_t)row->bytes ? (size_t)most : row->bytes);
        break;
    }
    }
}

static void expect_refused(const char *folder, const char *message)
{
    uint64_t state = state_of(folder, false);
    for (uint32_t i = 0; i < 2; i++) { /* the first has changed nothing */
        Store *store = NULL;
        Error err = {0};
        assert_int_equal(try_open(folder, STORE_DURABILITY_SYNC, &store, &err), STATUS_CORRUPT);
        assert_null(store);
        assert_non_null(strstr(err.message, folder));
        if (strstr(err.message, message) == NULL)
            fail_msg("'%s' is not in '%s'", message, err.message);
        assert_non_null(strstr(err.message, "restore the folder from a copy"));
        assert_int_equal(try_open(folder, STORE_DURABILITY_RELAXED, &store, &err), STATUS_CORRUPT);
        assert_true(state_of(folder, false) == state);
    }
}

static bool is_about_logs(const LossRow *row)
{
    return strcmp(row->file, ".log") == 0;
}

static void check_loss(const Left *left, const LossRow *row)
{
    AUTO(test_folder_done) TestFolder folder;
    copy_init(&folder, &left->sync);
    lose(folder.path, row);
    Store *store = NULL;
    Error failure = {0};
    if (row->message == NULL) {
        store = open_at(folder.path);
        assert_int_equal(count_log_keys(store), LOG_KEYS);
        assert_int_equal(count_keys(store, NULL, TABLE_SPACE), TABLE_KEYS);
        store_close(store);
        return;
    }
    expect_refused(folder.path, row->message);
    if (!is_about_logs(row)) {
        assert_int_equal(try_open_accepting(folder.path, &store, &failure), STATUS_CORRUPT);
        return;
    }
    assert_ok(try_open_accepting(folder.path, &store, err));
    assert_in_range(count_log_keys(store), row->at_least, row->most);
    assert_int_equal(count_keys(store, NULL, TABLE_SPACE), TABLE_KEYS);
    put_now(store, 3, "after", "v");
    store_close(store);
    char path[512];
    if (row->loss == HALVED || row->loss == ZEROED)
        (void)find_file(folder.path, ".log.lost", path); /* nothing was thrown away */
    store = open_at(folder.path);                        /* once was enough */
    assert_in_range(count_log_keys(store), row->at_least, row->most);
    expect_key(store, NULL, 3, "after", "v");
    store_close(store);
}

static void a_lost_file_is_refused_by_name_and_nothing_is_changed(void **state)
{
    const Left *left = *state;
    enum { SECTOR = 4096, BLOCK = 32 << 10 };
    static const LossRow rows[] = {
        {"CURRENT", REMOVED, 0, 0, "CURRENT is missing", 0, 0},
        {"CURRENT", EMPTIED, 0, 0, "CURRENT is damaged", 0, 0},
        {"CURRENT", HALVED, 0, 0, "CURRENT is damaged", 0, 0},
        {"CURRENT", ZEROED, 0, SECTOR, "CURRENT is damaged", 0, 0},
        {"CURRENT", ZEROED, 0.9, SECTOR, "CURRENT is damaged", 0, 0},
        {"MANIFEST-", REMOVED, 0, 0, " is missing", 0, 0},
        {"MANIFEST-", EMPTIED, 0, 0, " is damaged at byte 0", 0, 0},
        {"MANIFEST-", HALVED, 0, 0, " is damaged at byte", 0, 0},
        {"MANIFEST-", ZEROED, 0, 20, " is damaged at byte 0", 0, 0},
        {"MANIFEST-", ZEROED, 0.5, 20, " is damaged at byte", 0, 0},
        {"MANIFEST-", ZEROED, 0.9, SECTOR, " is damaged at byte", 0, 0},
        {".sst", REMOVED, 0, 0, ".sst is missing", 0, 0},
        {".log", REMOVED, 0, 0, ".log is missing", 0, 0},
        {".log", EMPTIED, 0, 0, ".log ends at byte 0", 0, 0},
        {".log", HALVED, 0, 0, ".log ends at byte", LOG_KEYS / 2 - 1, LOG_KEYS / 2},
        {".log", ZEROED, 0, BLOCK, ".log is damaged at byte 0", 0, 0},
        {".log", ZEROED, 0.1, BLOCK, ".log is damaged at byte", 4, 6},
        {".log", ZEROED, 0.3, BLOCK, ".log is damaged at byte", 16, 18},
        {".log", ZEROED, 0.5, SECTOR, ".log is damaged at byte", 28, 30},
        {".log", ZEROED, 0.5, BLOCK, ".log is damaged at byte", 28, 30},
        {".log", ZEROED, 0.7, BLOCK, ".log is damaged at byte", 40, 42},
        {".log", ZEROED, 0.9, BLOCK, ".log is damaged at byte", 52, 54},
        {".log", ZEROED, 0.99, 20, ".log is damaged at byte", 58, 59},
        {"SYNCED", REMOVED, 0, 0, NULL, 0, 0},
        {"SYNCED", EMPTIED, 0, 0, NULL, 0, 0},
        {"SYNCED", HALVED, 0, 0, NULL, 0, 0},
        {"SYNCED", ZEROED, 0, SECTOR, NULL, 0, 0},
        {"IDENTITY", REMOVED, 0, 0, NULL, 0, 0},
        {"IDENTITY", EMPTIED, 0, 0, NULL, 0, 0},
        {"OPTIONS-", REMOVED, 0, 0, NULL, 0, 0},
        {"OPTIONS-", ZEROED, 0, SECTOR, NULL, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        check_loss(left, &rows[i]);
}

static void a_folder_without_marks_opens_and_gets_them(void **state)
{
    const Left *left = *state;
    AUTO(test_folder_done) TestFolder folder;
    copy_init(&folder, &left->sync);
    char path[512];
    join_path(path, folder.path, "SYNCED");
    assert_int_equal(unlink(path), 0);
    Store *store = open_at(folder.path);
    assert_int_equal(count_log_keys(store), LOG_KEYS);
    put_now(store, 3, "key", "v");
    SyncMarks *marks = sync_marks_open(folder.path);
    SyncMark found[SYNC_MARKS_MAX];
    assert_true(sync_marks_read(marks, found) > 0);
    sync_marks_close(marks);
    store_close(store);
}

/* A process that ends while it makes the database leaves this, and nothing was written. */
static void a_database_that_was_never_made_is_made(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    static const char *const names[] = {"LOCK", "LOG", "IDENTITY", "SYNCED", "MANIFEST-000001"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char path[512];
        join_path(path, folder.path, names[i]);
        int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        (void)close(fd);
    }
    Store *store = open_at(folder.path);
    put_now(store, 1, "key", "v");
    store_close(store);
}

/* Somebody has emptied the folder, but for the marks. */
static void marks_of_a_database_that_is_gone_do_not_count(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    SyncMarks *marks = sync_marks_open(folder.path);
    sync_marks_add_log(marks, 100, false);
    sync_marks_note(marks, SYNC_LOG, 100, 1000);
    sync_marks_note(marks, SYNC_MANIFEST, 1, 100000);
    sync_marks_note(marks, SYNC_MANIFEST, 5, 100000);
    sync_marks_write(marks);
    sync_marks_close(marks);
    for (uint32_t i = 0; i < 2; i++) {
        Store *store = open_at(folder.path);
        put_now(store, 1, "key", "v");
        store_close(store);
    }
}

/* ---- the end of a log ---- */

typedef enum LogFault {
    LOG_CUT,     /* 'bytes' are missing at the end */
    LOG_GARBAGE, /* 'bytes' of anything stand behind it */
    LOG_ZEROS,   /* the last 'bytes' are zero */
    LOG_FLIPPED, /* some bits are wrong, 'bytes' before the end */
} LogFault;

static void damage_log(const char *folder, bool has_room, LogFault fault, off_t bytes)
{
    char path[512];
    off_t room_end = find_file(folder, ".log", path);
    off_t size = find_end(path);
    assert_true(size > bytes);
    assert_true(size < room_end);
    if (!has_room)
        assert_int_equal(truncate(path, size), 0);
    if (fault == LOG_CUT)
        assert_int_equal(truncate(path, size - bytes), 0);
    else if (fault == LOG_GARBAGE)
        write_at(path, size, 0xA5, (size_t)bytes);
    else if (fault == LOG_ZEROS)
        write_at(path, size - bytes, 0, (size_t)bytes);
    else
        flip_bytes(path, size - bytes);
}

/* Without marks, as after a loss of power that came before they were written, a log may be torn at
 * its end. With them nothing of what was acknowledged may be. */
static void a_log_may_be_torn_at_its_end_but_not_damaged_before(void **state)
{
    const Left *left = *state;
    static const struct {
        LogFault fault;
        off_t bytes;
        bool is_torn;            /* taken as it is if there are no marks */
        uint32_t at_least, most; /* keys that are there then */
    } rows[] = {
        {LOG_CUT, 1, true, LOG_KEYS - 1, LOG_KEYS - 1},
        {LOG_CUT, 2000, true, LOG_KEYS - 1, LOG_KEYS - 1},
        {LOG_CUT, 3035, true, LOG_KEYS - 2, LOG_KEYS - 1},
        {LOG_GARBAGE, 3, true, LOG_KEYS, LOG_KEYS},
        {LOG_GARBAGE, 100, true, LOG_KEYS, LOG_KEYS},
        {LOG_GARBAGE, 8000, true, LOG_KEYS, LOG_KEYS},
        {LOG_ZEROS, 500, true, LOG_KEYS - 1, LOG_KEYS - 1},
        {LOG_ZEROS, 4096, true, LOG_KEYS - 2, LOG_KEYS - 2},
        {LOG_FLIPPED, 100, true, LOG_KEYS - 1, LOG_KEYS - 1},
        {LOG_FLIPPED, 3100, false, LOG_KEYS - 2, LOG_KEYS - 2},
        {LOG_FLIPPED, 4000, false, LOG_KEYS - 2, LOG_KEYS - 2},
        {LOG_FLIPPED, 30000, false, 40, LOG_KEYS - 9},
        {LOG_FLIPPED, 100000, false, 20, 40},
        {LOG_FLIPPED, 180000, false, 0, 5},
    };
    for (size_t n = 0; n < 4 * ARRAY_COUNT(rows); n++) {
        size_t i = n / 4;
        bool has_marks = n % 2 == 0;
        AUTO(test_folder_done) TestFolder folder;
        copy_init(&folder, &left->sync);
        damage_log(folder.path, n % 4 < 2, rows[i].fault, rows[i].bytes);
        char path[512];
        join_path(path, folder.path, "SYNCED");
        if (!has_marks)
            assert_int_equal(unlink(path), 0);
        bool is_taken = has_marks ? rows[i].fault == LOG_GARBAGE : rows[i].is_torn;
        Store *store = NULL;
        Error failure = {0};
        if (!is_taken) {
            assert_int_equal(try_open(folder.path, STORE_DURABILITY_SYNC, &store, &failure),
                             STATUS_CORRUPT);
            assert_non_null(strstr(failure.message, ".log "));
            assert_non_null(strstr(failure.message, " at byte "));
            assert_non_null(strstr(failure.message, "--accept-lost-writes"));
            assert_ok(try_open_accepting(folder.path, &store, err));
        } else {
            store = open_at(folder.path);
        }
        assert_in_range(count_log_keys(store), rows[i].at_least, rows[i].most);
        put_now(store, 3, "after", "v");
        store_close(store);
        store = open_at(folder.path);
        assert_in_range(count_log_keys(store), rows[i].at_least, rows[i].most);
        expect_key(store, NULL, 3, "after", "v");
        store_close(store);
    }
}

/* Of a relaxed log a loss of power may leave anything; what is before it is taken. */
static void a_relaxed_log_opens_whatever_became_of_it(void **state)
{
    const Left *left = *state;
    static const struct {
        Loss loss;
        double at;
        uint32_t at_least, most;
    } rows[] = {
        {REMOVED, 0, 0, 0},    {EMPTIED, 0, 0, 0},    {HALVED, 0, 28, 30},
        {ZEROED, 0.3, 16, 18}, {ZEROED, 0.7, 40, 42}, {ZEROED, 0.99, 58, 60},
    };
    for (size_t n = 0; n < 2 * ARRAY_COUNT(rows); n++) {
        size_t i = n / 2;
        AUTO(test_folder_done) TestFolder folder;
        copy_init(&folder, &left->relaxed);
        lose(folder.path, &(LossRow){".log", rows[i].loss, rows[i].at, 4096, NULL, 0, 0});
        Store *store = NULL;
        StoreDurability durability = n % 2 == 0 ? STORE_DURABILITY_RELAXED : STORE_DURABILITY_SYNC;
        assert_ok(try_open(folder.path, durability, &store, err));
        assert_in_range(count_log_keys(store), rows[i].at_least, rows[i].most);
        assert_int_equal(count_keys(store, NULL, TABLE_SPACE), TABLE_KEYS);
        store_close(store);
    }
}

/* ---- several logs ---- */

typedef struct TwoLogs {
    TestFolder folder;
    SyncMarks *marks;
    char paths[2][512];
    uint64_t numbers[2];
    uint64_t bytes;
} TwoLogs;

/* The log of a folder, and the same again as the next one. */
static void two_logs_init(TwoLogs *logs, const Left *left, bool is_relaxed)
{
    copy_init(&logs->folder, &left->sync);
    (void)find_file(logs->folder.path, ".log", logs->paths[0]);
    logs->numbers[0] = strtoull(strrchr(logs->paths[0], '/') + 1, NULL, 10);
    logs->numbers[1] = logs->numbers[0] + 20;
    logs->bytes = (uint64_t)find_end(logs->paths[0]);
    char name[32];
    (void)snprintf(name, sizeof(name), "%06llu.log", (unsigned long long)logs->numbers[1]);
    join_path(logs->paths[1], logs->folder.path, name);
    copy_file(logs->paths[0], logs->paths[1], (off_t)logs->bytes);
    logs->marks = sync_marks_open(logs->folder.path);
    for (size_t i = 0; i < 2; i++) {
        sync_marks_add_log(logs->marks, logs->numbers[i], is_relaxed);
        if (!is_relaxed)
            sync_marks_note(logs->marks, SYNC_LOG, logs->numbers[i], logs->bytes);
    }
    sync_marks_write(logs->marks);
}

static void two_logs_done(TwoLogs *logs)
{
    sync_marks_close(logs->marks);
    test_folder_done(&logs->folder);
}
DEFINE_AUTO_VALUE(TwoLogs, two_logs_done)

static void expect_findings(const TwoLogs *logs, const char *loss, bool has_end, size_t end_in)
{
    FolderFindings findings;
    FolderCheckOptions options = {.path = logs->folder.path, .marks = logs->marks};
    assert_ok(folder_check(&options, &findings, err));
    if (loss == NULL)
        assert_int_equal(findings.loss.status, STATUS_OK);
    else
        assert_non_null(strstr(findings.loss.message, loss));
    assert_int_equal(findings.has_log_end, has_end);
    if (has_end)
        assert_int_equal(findings.log_end.number, logs->numbers[end_in]);
}

static void of_several_logs_each_must_be_whole(void **state)
{
    const Left *left = *state;
    static const struct {
        const char *loss; /* NULL: nothing is lost */
        bool is_relaxed;
        bool has_end;
        size_t end_in;
        size_t log; /* which is changed: */
        Loss how;
        double at;
    } rows[] = {
        {"is missing", false, true, 0, 0, REMOVED, 0},
        {"ends at byte 0", false, true, 0, 0, EMPTIED, 0},
        {"ends at byte", false, true, 0, 0, HALVED, 0},
        {"is damaged at byte", false, true, 0, 0, ZEROED, 0.5},
        {"is missing", false, true, 1, 1, REMOVED, 0},
        {"ends at byte", false, true, 1, 1, HALVED, 0},
        {"is damaged at byte", false, true, 1, 1, ZEROED, 0.5},
        {NULL, true, false, 0, 0, REMOVED, 0},
        {NULL, true, true, 0, 0, ZEROED, 0.5},
        {NULL, true, true, 1, 1, ZEROED, 0.5},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(two_logs_done) TwoLogs logs;
        two_logs_init(&logs, left, rows[i].is_relaxed);
        expect_findings(&logs, NULL, false, 0);
        const char *path = logs.paths[rows[i].log];
        if (rows[i].how == REMOVED)
            assert_int_equal(unlink(path), 0);
        else if (rows[i].how == ZEROED)
            write_at(path, (off_t)((double)logs.bytes * rows[i].at), 0, 4096);
        else
            assert_int_equal(truncate(path, rows[i].how == EMPTIED ? 0 : (off_t)logs.bytes / 2), 0);
        expect_findings(&logs, rows[i].loss, rows[i].has_end, rows[i].end_in);
    }
}

/* What the MANIFEST calls written out is not needed, whatever the marks say: another version may
 * have opened the folder, and it writes none. */
static void a_log_that_is_no_longer_needed_may_be_missing(void **state)
{
    const Left *left = *state;
    AUTO(test_folder_done) TestFolder folder;
    copy_init(&folder, &left->sync);
    char marks[512], copy[512];
    join_path(marks, folder.path, "SYNCED");
    join_path(copy, folder.path, "copy");
    struct stat info;
    assert_int_equal(stat(marks, &info), 0);
    copy_file(marks, copy, info.st_size);
    store_close(open_at(folder.path)); /* the log is gone, all of it is in a table */
    assert_int_equal(rename(copy, marks), 0);
    Store *store = open_at(folder.path);
    assert_int_equal(count_log_keys(store), LOG_KEYS);
    store_close(store);
}

/* ---- only read ---- */

static Store *open_read_only(const char *path)
{
    RocksdbStoreOptions options = {
        .path = path, .cache_bytes = (size_t)4 << 20, .is_read_only = true};
    Store *store = NULL;
    assert_ok(rocksdb_store_open(&options, &store, err));
    return store;
}

static int command_expect_in_use(const char *path)
{
    Store *store = NULL;
    Error err = {0};
    return try_open(path, STORE_DURABILITY_SYNC, &store, &err) == STATUS_UNAVAILABLE ? 0 : 1;
}

static void reading_only_changes_nothing(void **state)
{
    const Left *left = *state;
    for (uint32_t i = 0; i < 3; i++) {
        AUTO(test_folder_done) TestFolder folder;
        copy_init(&folder, &left->sync);
        if (i == 1)
            damage_log(folder.path, true, LOG_GARBAGE, 100);
        if (i == 2)
            store_close(open_at(folder.path));
        uint64_t before = state_of(folder.path, true);
        struct stat info, after;
        assert_int_equal(stat(folder.path, &info), 0);
        Store *store = open_read_only(folder.path);
        assert_int_equal(count_log_keys(store), LOG_KEYS);
        assert_int_equal(count_keys(store, NULL, TABLE_SPACE), TABLE_KEYS);
        Error err = {0};
        StoreTxn *txn = store_txn_begin(store);
        store_txn_put(txn, 1, SLICE("key"), SLICE("v"));
        assert_int_equal(store_txn_commit_wait(txn, &err), STATUS_UNAVAILABLE);
        assert_int_equal(store_drop_spaces(store, 1, 1, &err), STATUS_UNAVAILABLE);
        assert_int_equal(run_command("expect-in-use", folder.path), 0);
        store_close(store);
        assert_true(state_of(folder.path, true) == before);
        assert_int_equal(stat(folder.path, &after), 0);
        assert_memory_equal(&info.st_mtim, &after.st_mtim, sizeof(info.st_mtim));
    }
}

static void reading_only_refuses_what_is_damaged_or_not_there(void **state)
{
    const Left *left = *state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    RocksdbStoreOptions options = {.path = folder.path, .is_read_only = true};
    Store *store = NULL;
    Error err = {0};
    assert_int_equal(rocksdb_store_open(&options, &store, &err), STATUS_NOT_FOUND);
    test_folder_done(&folder);
    copy_init(&folder, &left->sync);
    lose(folder.path, &(LossRow){".log", ZEROED, 0.5, 4096, NULL, 0, 0});
    uint64_t before = state_of(folder.path, true);
    assert_int_equal(rocksdb_store_open(&options, &store, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.message, ".log is damaged at byte"));
    assert_true(state_of(folder.path, true) == before);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "leave") == 0)
        return command_leave(argv[2], STORE_DURABILITY_SYNC);
    if (argc == 3 && strcmp(argv[1], "leave-relaxed") == 0)
        return command_leave(argv[2], STORE_DURABILITY_RELAXED);
    if (argc == 3 && strcmp(argv[1], "expect-in-use") == 0)
        return command_expect_in_use(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_file_is_refused_by_name_and_nothing_is_changed),
        cmocka_unit_test(a_folder_without_marks_opens_and_gets_them),
        cmocka_unit_test(a_database_that_was_never_made_is_made),
        cmocka_unit_test(marks_of_a_database_that_is_gone_do_not_count),
        cmocka_unit_test(a_log_may_be_torn_at_its_end_but_not_damaged_before),
        cmocka_unit_test(a_relaxed_log_opens_whatever_became_of_it),
        cmocka_unit_test(of_several_logs_each_must_be_whole),
        cmocka_unit_test(a_log_that_is_no_longer_needed_may_be_missing),
        cmocka_unit_test(reading_only_changes_nothing),
        cmocka_unit_test(reading_only_refuses_what_is_damaged_or_not_there),
    };
    return cmocka_run_group_tests(tests, left_init, left_done);
}
