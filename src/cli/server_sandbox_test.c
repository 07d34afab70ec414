/* server_sandbox_test.c - what the process can do no more, and what it still can.
 *
 * Each row runs in a process of its own, with and without the sandbox: a row that fails without it
 * would show nothing.
 */
#include "cli/server_sandbox.h"

#include "base/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In a folder of the test's own. */
#define INSIDE  "in"
#define OUTSIDE "out"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1 /* it may trace itself, and start programs */
#else
#define IS_SANITIZED 0
#endif

static bool writes(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    bool is_written = fd >= 0 && write(fd, "x", 1) == 1;
    if (fd >= 0)
        (void)close(fd);
    return is_written;
}

/* Each returns true if it succeeded. */
static bool writes_inside(void)
{
    return writes(INSIDE "/file") && mkdir(INSIDE "/folder", 0700) == 0 &&
           rename(INSIDE "/file", INSIDE "/folder/file") == 0 &&
           truncate(INSIDE "/folder/file", 0) == 0 && unlink(INSIDE "/folder/file") == 0 &&
           rmdir(INSIDE "/folder") == 0;
}
static bool creates_outside(void)
{
    return writes(OUTSIDE "/new");
}
static bool changes_outside(void)
{
    return writes(OUTSIDE "/there");
}
static bool truncates_outside(void)
{
    return truncate(OUTSIDE "/there", 0) == 0;
}
static bool removes_outside(void)
{
    return unlink(OUTSIDE "/there") == 0;
}
static bool makes_folder_outside(void)
{
    return mkdir(OUTSIDE "/folder", 0700) == 0;
}
static bool moves_out(void)
{
    return writes(INSIDE "/leak") && rename(INSIDE "/leak", OUTSIDE "/leak") == 0;
}
static bool writes_through_link(void)
{
    (void)unlink(INSIDE "/link");
    return symlink("../" OUTSIDE "/there", INSIDE "/link") == 0 && writes(INSIDE "/link");
}
static bool reads_anywhere(void)
{
    int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    char byte;
    return fd >= 0 && read(fd, &byte, 1) == 1;
}
static bool writes_to_null(void)
{
    return writes("/dev/null");
}
static bool spawns(const char *path, char *const *arguments)
{
    pid_t pid = 0;
    int status = 0;
    char *const environment[] = {NULL};
    return posix_spawn(&pid, path, NULL, NULL, arguments, environment) == 0 &&
           waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
static bool starts_another_program(void)
{
    char *const arguments[] = {(char *)"true", NULL};
    return spawns("/bin/true", arguments);
}
static bool starts_itself(void)
{
    char *const arguments[] = {(char *)"itself", (char *)"--end", NULL};
    return spawns("/proc/self/exe", arguments);
}
static void *do_nothing(void *ctx)
{
    return ctx;
}
static bool starts_thread(void)
{
    pthread_t thread;
    return pthread_create(&thread, NULL, do_nothing, NULL) == 0 && pthread_join(thread, NULL) == 0;
}
static bool opens_sockets(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) >= 0 && socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}
static bool opens_strange_socket(void)
{
    return socket(AF_ALG, SOCK_SEQPACKET, 0) >= 0;
}
/* With wrong arguments, so that no right is needed: what matters is who says no. */
static bool reaches_mount(void)
{
    return mount("none", "/no/such/folder", "tmpfs", 0, NULL) == 0 || errno == ENOENT;
}
static bool reaches_namespaces(void)
{
    return syscall(SYS_unshare, 0) == 0;
}
static bool reaches_clone_of_namespaces(void)
{
    /* Without the filter it is an error of the arguments. */
    long pid = syscall(SYS_clone, CLONE_NEWUSER | CLONE_THREAD, 0, 0, 0, 0);
    return pid < 0 && errno == EINVAL;
}
static bool reaches_ptrace(void)
{
    return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}
static bool reaches_bpf(void)
{
    return syscall(SYS_bpf, -1, NULL, 0) < 0 && errno != EPERM;
}
static bool reaches_handles(void)
{
    return syscall(SYS_open_by_handle_at, -1, NULL, 0) < 0 && errno != EPERM;
}
static bool dumps_core(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur != 0;
}

typedef enum Kind { KIND_FILES, KIND_CALLS, KIND_ALWAYS } Kind;

static const struct {
    const char *what;
    bool (*succeeds)(void);
    Kind kind;           /* what must be on for it to be forbidden */
    bool is_still_there; /* also inside */
    bool is_uncertain;   /* outside it may fail for other reasons */
} ROWS[] = {
    {"write inside", writes_inside, KIND_FILES, true, false},
    {"create outside", creates_outside, KIND_FILES, false, false},
    {"change outside", changes_outside, KIND_FILES, false, false},
    {"truncate outside", truncates_outside, KIND_FILES, false, false},
    {"remove outside", removes_outside, KIND_FILES, false, false},
    {"make a folder outside", makes_folder_outside, KIND_FILES, false, false},
    {"move a file out", moves_out, KIND_FILES, false, false},
    {"write through a link", writes_through_link, KIND_FILES, false, false},
    {"read anywhere", reads_anywhere, KIND_FILES, true, false},
    {"write to /dev/null", writes_to_null, KIND_FILES, true, false},
    {"start itself", starts_itself, KIND_FILES, true, false},
    {"start another program", starts_another_program, KIND_FILES, IS_SANITIZED, false},
    {"trace", reaches_ptrace, KIND_CALLS, IS_SANITIZED, true},
    {"start a thread", starts_thread, KIND_CALLS, true, false},
    {"open sockets", opens_sockets, KIND_CALLS, true, false},
    {"open a socket of a strange family", opens_strange_socket, KIND_CALLS, false, true},
    {"mount", reaches_mount, KIND_CALLS, false, true},
    {"unshare", reaches_namespaces, KIND_CALLS, false, false},
    {"clone namespaces", reaches_clone_of_namespaces, KIND_CALLS, false, true},
    {"use BPF", reaches_bpf, KIND_CALLS, false, true},
    {"open a file by its handle", reaches_handles, KIND_CALLS, false, true},
    {"dump core", dumps_core, KIND_ALWAYS, false, true},
};

enum { SUCCEEDED, FAILED, NOT_OFFERED };

static int try_row(size_t row, bool is_inside)
{
    static const char *const writable[] = {INSIDE, INSIDE "/none", NULL};
    SandboxState state = {.landlock = 1, .seccomp = true};
    if (is_inside)
        state = server_sandbox_enter(writable);
    if ((ROWS[row].kind == KIND_FILES && state.landlock == 0) ||
        (ROWS[row].kind == KIND_CALLS && !state.seccomp))
        return NOT_OFFERED;
    return ROWS[row].succeeds() ? SUCCEEDED : FAILED;
}

static int in_child(size_t row, bool is_inside)
{
    (void)mkdir(OUTSIDE, 0700);
    (void)mkdir(INSIDE, 0700);
    assert_true(writes(OUTSIDE "/there"));
    pid_t pid = fork();
    if (pid == 0)
        _exit(try_row(row, is_inside));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    static const char *const left[] = {OUTSIDE "/there", OUTSIDE "/new", OUTSIDE "/leak",
                                       INSIDE "/file",   INSIDE "/leak", INSIDE "/link"};
    for (size_t i = 0; i < ARRAY_COUNT(left); i++)
        (void)unlink(left[i]);
    (void)rmdir(OUTSIDE "/folder");
    (void)rmdir(OUTSIDE);
    (void)rmdir(INSIDE);
    return WEXITSTATUS(status);
}

static void what_the_server_never_needs_is_gone(void **state)
{
    (void)state;
    char folder[] = "/tmp/orrery-sandbox-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        int outside = in_child(i, false);
        if (outside != SUCCEEDED && !ROWS[i].is_uncertain)
            fail_msg("without the sandbox it cannot %s", ROWS[i].what);
        int inside = in_child(i, true);
        if (inside == NOT_OFFERED)
            print_message("NOT TESTED: this kernel does not forbid to %s\n", ROWS[i].what);
        else if ((inside == SUCCEEDED) != ROWS[i].is_still_there)
            fail_msg("in the sandbox it can%s %s", inside == SUCCEEDED ? "" : "not", ROWS[i].what);
    }
    assert_int_equal(rmdir(folder), 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--end") == 0)
        return EXIT_SUCCESS;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_server_never_needs_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
