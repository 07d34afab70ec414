/* restore_target_test.c - which folders a restore fills, and when a folder is complete. */
#include "cli/restore_target.h"

#include "base/testing.h"
#include "store/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void path_in(const TestFolder *folder, const char *name, char out[256])
{
    (void)snprintf(out, 256, "%s/%s", folder->path, name);
}

static bool is_there(const TestFolder *folder, const char *name)
{
    char path[256];
    path_in(folder, name, path);
    return access(path, F_OK) == 0;
}

static void make_file(const TestFolder *folder, const char *name)
{
    char path[256];
    path_in(folder, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void create(RestoreTarget *target, const char *name)
{
    int fd = -1;
    assert_ok(restore_target_create(target, slice_from_cstr(name), &fd, err));
    assert_int_equal(write(fd, "x", 1), 1);
    (void)close(fd);
}

static void the_marker_is_there_until_the_end(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    char path[256];
    path_in(&folder, "new", path);
    RestoreTarget *target = NULL;
    assert_ok(restore_target_open(path, &target, err));
    assert_true(is_there(&folder, "new/store/" STORE_INCOMPLETE_FILE));
    create(target, "store/000001.sst");
    create(target, "token.key");
    RestoreTarget *other = NULL;
    Error why;
    assert_status(restore_target_open(path, &other, &why), STATUS_UNAVAILABLE);
    assert_ok(restore_target_finish(target, err));
    assert_false(is_there(&folder, "new/store/" STORE_INCOMPLETE_FILE));
    restore_target_close(target);
    assert_status(restore_target_open(path, &other, &why), STATUS_CONFLICT);
    assert_true(is_there(&folder, "new/store/000001.sst"));
}

static void what_was_interrupted_begins_again(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    RestoreTarget *target = NULL;
    assert_ok(restore_target_open(folder.path, &target, err));
    create(target, "store/000001.sst");
    create(target, "token.key");
    restore_target_close(TAKE(target));
    assert_true(is_there(&folder, "store/" STORE_INCOMPLETE_FILE));
    make_file(&folder, "notes.txt"); /* somebody's own */
    assert_ok(restore_target_open(folder.path, &target, err));
    assert_false(is_there(&folder, "store/000001.sst"));
    assert_false(is_there(&folder, "token.key"));
    assert_true(is_there(&folder, "notes.txt"));
    create(target, "token.key");
    restore_target_close(target);
}

static void a_folder_in_use_is_left_alone(void **state)
{
    (void)state;
    static const char *const rows[] = {"notes.txt", ".hidden", "store/CURRENT"};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(test_folder_done) TestFolder folder;
        test_folder_init(&folder);
        char path[256];
        path_in(&folder, "store", path);
        assert_int_equal(mkdir(path, 0700), 0);
        make_file(&folder, rows[i]);
        RestoreTarget *target = NULL;
        Error why;
        assert_status(restore_target_open(folder.path, &target, &why), STATUS_CONFLICT);
        assert_non_null(strstr(why.message, folder.path));
        assert_false(is_there(&folder, "store/" STORE_INCOMPLETE_FILE));
        assert_true(is_there(&folder, rows[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_marker_is_there_until_the_end),
        cmocka_unit_test(what_was_interrupted_begins_again),
        cmocka_unit_test(a_folder_in_use_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
