/* backup_session_test.c - one session at a time; how it ends, and that nothing is left of it. */
#include "api/admin/backup_session_int.h"

#include "base/testing.h"
#include "store/rocksdb/rocksdb_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

typedef struct Server {
    TestFolder folder;
    char store_path[128];
    Log log;
    Store *store;
    Backups *backups;
} Server;

static const char *const NAMES[] = {"token.key", "missing", NULL};

static void server_open(Server *server, uint32_t idle_ms)
{
    test_folder_init(&server->folder);
    (void)snprintf(server->store_path, sizeof(server->store_path), "%s/store", server->folder.path);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/token.key", server->folder.path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "secret", 6), 6);
    (void)close(fd);
    server->log = (Log){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC), .clock = clock_real()};
    RocksdbStoreOptions options = {.path = server->store_path};
    assert_ok(rocksdb_store_open(&options, &server->store, err));
    server->backups = backups_open(&(BackupsOptions){.store = server->store,
                                                     .clock = clock_real(),
                                                     .log = &server->log,
                                                     .data_folder = server->folder.path,
                                                     .data_files = NAMES,
                                                     .idle_ms = idle_ms});
}

static void server_close(Server *server)
{
    backups_close(server->backups);
    store_close(server->store);
    (void)close(server->log.fd);
    test_folder_done(&server->folder);
}

static size_t count_checkpoints(const Server *server)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/checkpoints", server->store_path);
    DIR *dir = opendir(path);
    size_t count = 0;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.';
    if (dir != NULL)
        (void)closedir(dir);
    return count;
}

static void wait_for_none(const Server *server)
{
    for (int i = 0; count_checkpoints(server) > 0; i++) {
        assert_true(i < 20000);
        sleep_ms(1);
    }
}

static BackupSession *begin(Server *server, Slice owner)
{
    BackupSession *session = NULL;
    assert_ok(backups_begin(server->backups, owner, &session, err));
    return session;
}

static void a_session_has_all_files(void **state)
{
    (void)state;
    Server server;
    server_open(&server, 60000);
    BackupSession *session = begin(&server, SLICE_EMPTY);
    size_t count = 0;
    const BackupFile *files = backup_session_files(session, &count);
    assert_true(count >= 4);
    assert_string_equal(files[count - 1].name, "token.key");
    bool has_current = false;
    for (size_t i = 0; i < count; i++) {
        char bytes[64];
        size_t len = 0;
        assert_ok(backup_session_read(session, i, 0, bytes, sizeof(bytes), &len, err));
        assert_int_equal(len, files[i].size < sizeof(bytes) ? files[i].size : sizeof(bytes));
        assert_ok(backup_session_read(session, i, files[i].size, bytes, sizeof(bytes), &len, err));
        assert_int_equal(len, 0);
        assert_ok(backup_session_read(session, i, UINT64_MAX, bytes, sizeof(bytes), &len, err));
        assert_int_equal(len, 0);
        has_current = has_current || strcmp(files[i].name, "store/CURRENT") == 0;
    }
    assert_true(has_current);
    char secret[8];
    size_t len = 0;
    assert_ok(backup_session_read(session, count - 1, 2, secret, sizeof(secret), &len, err));
    assert_slice(slice_make(secret, len), SLICE("cret"));
    backup_session_release(session);
    server_close(&server); /* ends it */
}

static void there_is_one_at_a_time(void **state)
{
    (void)state;
    Server server;
    server_open(&server, 60000);
    BackupSession *first = begin(&server, SLICE("a"));
    Slice id = backup_session_id(first);
    char kept[BACKUP_ID_LEN];
    memcpy(kept, id.ptr, id.len);
    BackupSession *other = NULL;
    Error why;
    assert_status(backups_begin(server.backups, SLICE("b"), &other, &why), STATUS_CONFLICT);
    assert_status(backups_begin(server.backups, SLICE_EMPTY, &other, &why), STATUS_CONFLICT);
    assert_ok(backups_find(server.backups, id, &other, err));
    assert_ptr_equal(other, first);
    backup_session_release(other);
    backup_session_release(first);
    assert_status(backups_find(server.backups, SLICE("x"), &other, &why), STATUS_NOT_FOUND);

    /* The client of "a" was killed, and has come again. */
    BackupSession *again = begin(&server, SLICE("a"));
    assert_int_equal(count_checkpoints(&server), 1);
    assert_status(backups_find(server.backups, slice_make(kept, sizeof(kept)), &other, &why),
                  STATUS_NOT_FOUND);
    backup_session_end(again);
    size_t count = 0;
    const BackupFile *files = backup_session_files(again, &count);
    char bytes[16];
    size_t len = 0;
    assert_ok(backup_session_read(again, 0, 0, bytes, sizeof(bytes), &len, err)); /* goes on */
    assert_true(files[0].size == 0 || len > 0);
    backup_session_release(again);
    wait_for_none(&server);
    server_close(&server);
}

static void silence_ends_a_session(void **state)
{
    (void)state;
    Server server;
    server_open(&server, 50);
    BackupSession *session = begin(&server, SLICE_EMPTY);
    sleep_ms(120);
    assert_int_equal(count_checkpoints(&server), 1); /* a request is under way all the time */
    backup_session_release(session);
    wait_for_none(&server);
    for (int i = 0; i < 3; i++) {
        Error why;
        while (backups_begin(server.backups, SLICE("x"), &session, &why) != STATUS_OK)
            sleep_ms(1); /* the one before is about to end */
        backup_session_release(session);
        wait_for_none(&server);
    }
    server_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_has_all_files),
        cmocka_unit_test(there_is_one_at_a_time),
        cmocka_unit_test(silence_ends_a_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
