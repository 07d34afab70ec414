/* temporary_folder_test.c - the folder is gone when its owner has ended, in every way. */
#include "cli/temporary_folder.h"

#include "base/testing.h"

#include <fcntl.h>
#include <signal.h>
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
        TEST(a_folder_that_cannot_be_made_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
