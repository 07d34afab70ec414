/* script_sandbox.c - see script_sandbox_int.h.
 *
 * The filter is a list of the system calls that the engine and the C library need once they have
 * started. It is a program for the kernel: load the number, compare it with each of the list, and
 * refuse what is not in it. Refused calls return an error instead of ending the process, because
 * libraries try calls that they can do without.
 */
#include "script/script_sandbox_int.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the sandbox knows the system calls of x86-64 and arm64 only"
#endif

enum {
    PRIORITY = 5,
    FILES_MAX = 4,     /* standard streams and the socket */
    PROGRAM_MAX = 128, /* instructions */
};

static const int ALLOWED[] = {
    SYS_read,
    SYS_write,
    SYS_close,
    SYS_futex,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_madvise,
    SYS_mremap,
    SYS_brk,
    SYS_membarrier,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_getpid,
    SYS_gettid,
    SYS_getrandom,
    SYS_getrusage,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigsuspend,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_set_tid_address,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_time
    SYS_time,
#endif
#ifdef SYS_poll
    SYS_poll,
#endif
    SYS_ppoll,
};

typedef struct Program {
    struct sock_filter code[PROGRAM_MAX];
    unsigned short count;
} Program;

static void add(Program *program, struct sock_filter instruction)
{
    ASSERT(program->count < PROGRAM_MAX);
    program->code[program->count++] = instruction;
}

static void load(Program *program, size_t offset)
{
    add(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* Ends with 'result' if the loaded value equals 'value'. */
static void end_if_equal(Program *program, uint32_t value, uint32_t result)
{
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
}

/* The call 'number' is allowed if 'test' holds for the first argument's low half and 'value'.
 * Leaves the number of the call loaded. */
static void allow_if_argument(Program *program, int number, uint16_t test, uint32_t value)
{
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4));
    load(program, offsetof(struct seccomp_data, args));
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 1));
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
}

static void make_program(Program *program)
{
    load(program, offsetof(struct seccomp_data, arch));
    add(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0));
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    load(program, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < ARRAY_COUNT(ALLOWED); i++)
        end_if_equal(program, (uint32_t)ALLOWED[i], SECCOMP_RET_ALLOW);
    /* Its flags are in memory, where the filter cannot look. The C library then uses the older
     * call. */
    end_if_equal(program, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    allow_if_argument(program, SYS_clone, BPF_JSET, CLONE_THREAD);
    allow_if_argument(program, SYS_prctl, BPF_JEQ, PR_SET_NAME);
    allow_if_argument(program, SYS_tgkill, BPF_JEQ, (uint32_t)getpid());
    add(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
}

/* The failures below leave the process with more than it needs. The filter, which decides, is
 * checked. */
void sandbox_prepare(int first_closed_fd)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)close_range((unsigned)first_closed_fd, ~0U, 0);
    (void)setpriority(PRIO_PROCESS, 0, PRIORITY);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t written = write(fd, "800", 3);
        (void)written;
        (void)close(fd);
    }
}

Status sandbox_enter(Error *err)
{
    const struct rlimit none = {0, 0};
    const struct rlimit files = {FILES_MAX, FILES_MAX};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)setrlimit(RLIMIT_FSIZE, &none);
    (void)setrlimit(RLIMIT_NOFILE, &files);

    Program program = {.count = 0};
    make_program(&program);
    struct sock_fprog filter = {.len = program.count, .filter = program.code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0) {
        int code = errno;
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "scripts need the kernel's system call filters (seccomp): error %d", code);
    }
    return STATUS_OK;
}
