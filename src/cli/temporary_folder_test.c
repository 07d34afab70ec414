/* temporary_folder_test.c - the folder is gone when its owner has ended, in every way. */
#include "cli/temporary_folder.h"

#include "base/testing.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* Files, folders, and a link to something that must stay. */
static void fill(const char *path, const char *outside)
{
    char name[300];
    (void)snprintf(name, sizeof(name), "%s/a", path);
    assert_int_equal(mkdir(name, 0700), 0);
    (void)snprintf(name, sizeof(name), "%s/a/file", path);
    int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(name, sizeof(name), "%s/link", path);
    assert_int_equal(symlink(outside, name), 0);
}

static void the_folder_is_removed_when_it_is_closed(void **state)
{
    (void)state;
    char outside[] = "/tmp/orrery-outside-XXXXXX";
    assert_non_null(mkdtemp(outside));
    TemporaryFolder folder = {0};
    assert_ok(temporary_folder_open(&test_arena, &folder, err));
    const char *path = folder.path;
    assert_true(exists(path));
    fill(path, outside);
    temporary_folder_close(&folder);
    assert_false(exists(path));
    assert_true(exists(outside));
    temporary_folder_close(&folder); /* again */
    (void)rmdir(outside);
}

static void the_folder_of_a_killed_process_is_removed(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        TemporaryFolder folder = {0};
        Error err;
        if (temporary_folder_open(&test_arena, &folder, &err) != STATUS_OK)
            _exit(1);
        (void)!write(fds[1], folder.path, strlen(folder.path) + 1);
        (void)pause();
        _exit(0);
    }
    char path[300] = "";
    assert_true(read(fds[0], path, sizeof(path) - 1) > 0);
    assert_true(exists(path));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    for (int i = 0; i < 3000 && exists(path); i++)
        (void)usleep(10000);
    assert_false(exists(path));
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* Removes what fill() has made, if it is there, and the folder. */
static void clear(const char *path)
{
    static const char *const NAMES[] = {"a/file", "a", "link", ""};
    char name[600];
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        (void)snprintf(name, sizeof(name), "%s/%s", path, NAMES[i]);
        (void)remove(name);
    }
}

/* Somebody moves the folder away to keep it, and makes another one in its place. */
static void only_the_folder_that_was_made_is_removed(void **state)
{
    (void)state;
    char kept[] = "/tmp/orrery-kept-XXXXXX";
    char file[300];
    assert_non_null(mkdtemp(kept));
    TemporaryFolder folder = {0};
    assert_ok(temporary_folder_open(&test_arena, &folder, err));
    const char *path = folder.path;
    fill(path, "/nowhere");
    assert_int_equal(rename(path, kept), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    fill(path, "/nowhere");
    temporary_folder_close(&folder);
    (void)snprintf(file, sizeof(file), "%s/a/file", path);
    assert_true(exists(file));
    (void)snprintf(file, sizeof(file), "%s/a/file", kept);
    assert_true(exists(file));
    clear(path);

    /* The same with a link to where it is now. */
    assert_ok(temporary_folder_open(&test_arena, &folder, err));
    path = folder.path;
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink(kept, path), 0);
    temporary_folder_close(&folder);
    assert_true(exists(file));
    assert_true(exists(path));
    (void)unlink(path);
    clear(kept);
}

/* Runs in a process with mounts of its own, which end with it. */
static int bind_and_close(const char *outside)
{
    TemporaryFolder folder = {0};
    Error err;
    char bound[300];
    if (temporary_folder_open(&test_arena, &folder, &err) != STATUS_OK)
        return 1;
    const char *path = folder.path;
    (void)snprintf(bound, sizeof(bound), "%s/bound", path);
    bool is_bound = mkdir(bound, 0700) == 0 && mount(outside, bound, NULL, MS_BIND, NULL) == 0;
    temporary_folder_close(&folder);
    if (!is_bound || umount(bound) != 0 || rmdir(bound) != 0 || rmdir(path) != 0)
        return 2;
    return 0;
}

/* A folder of the user's that is bound into it is not emptied. */
static void what_is_mounted_in_it_stays(void **state)
{
    (void)state;
    enum { NO_RIGHTS = 77 };
    char outside[] = "/tmp/orrery-outside-XXXXXX";
    char file[300];
    assert_non_null(mkdtemp(outside));
    fill(outside, "/nowhere");
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ? NO_RIGHTS : bind_and_close(outside));
    int code = 0;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    (void)snprintf(file, sizeof(file), "%s/a/file", outside);
    bool is_kept = exists(file);
    clear(outside);
    if (WIFEXITED(code) && WEXITSTATUS(code) == NO_RIGHTS)
        skip(); /* some systems and containers let nobody have a namespace */
    assert_int_equal(code, 0);
    assert_true(is_kept);
}

static void a_folder_that_cannot_be_made_is_an_error(void **state)
{
    (void)state;
    TemporaryFolder folder = {0};
    Error err;
    assert_int_equal(setenv("TMPDIR", "/nowhere", 1), 0);
    assert_status(temporary_folder_open(&test_arena, &folder, &err), STATUS_IO);
    assert_null(folder.path);
    (void)unsetenv("TMPDIR");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_folder_is_removed_when_it_is_closed),
        TEST(the_folder_of_a_killed_process_is_removed),
        TEST(only_the_folder_that_was_made_is_removed),
        TEST(what_is_mounted_in_it_stays),
        TEST(a_folder_that_cannot_be_made_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
