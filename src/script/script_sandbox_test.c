/* script_sandbox_test.c - what a process can do no more once it is in the sandbox. */
#include "script/script_sandbox_int.h"

#include "base/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *do_nothing(void *ctx)
{
    return ctx;
}

/* Each returns true if it succeeded. */
static bool opens_file(void)
{
    return open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0;
}
static bool creates_file(void)
{
    return open("/tmp/orrery_sandbox_test", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0;
}
static bool opens_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) >= 0 || socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}
static bool forks(void)
{
    return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) >= 0;
}
static bool executes(void)
{
    char *const arguments[] = {(char[]){"true"}, NULL};
    return execv("/bin/true", arguments) == 0;
}
static bool kills_parent(void)
{
    return kill(getppid(), 0) == 0;
}
static bool traces(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}
static bool makes_pipe(void)
{
    int fds[2];
    return pipe(fds) == 0;
}
static bool duplicates(void)
{
    return dup(0) >= 0;
}
static bool changes_folder(void)
{
    return chdir("/") == 0;
}
static bool maps_memory(void)
{
    return mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED;
}
static bool starts_thread(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, do_nothing, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

static const struct {
    bool (*attempt)(void);
    bool is_allowed;
} CASES[] = {
    {opens_file, false}, {creates_file, false},   {opens_socket, false}, {forks, false},
    {executes, false},   {kills_parent, false},   {traces, false},       {makes_pipe, false},
    {duplicates, false}, {changes_folder, false}, {maps_memory, true},   {starts_thread, true},
};

static void only_memory_and_threads_are_left(void **state)
{
    (void)state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        Error err;
        if (sandbox_enter(&err) != STATUS_OK)
            _exit(100);
        for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
            errno = 0;
            if (CASES[i].attempt() != CASES[i].is_allowed)
                _exit((int)i + 1);
        }
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != 0)
        fail_msg("case %d of the list", WEXITSTATUS(status) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_memory_and_threads_are_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
