/* server_sandbox.c - see server_sandbox.h.
 *
 * The filter of system calls is a list of what is forbidden, where that of scripts' workers
 * (script/script_sandbox.c) is one of what is allowed: RocksDB and the other libraries may use new
 * calls in a new version. The kernel works out once which calls are allowed whatever their
 * arguments, so that those cost nothing. Refused calls return an error, because libraries try calls
 * that they can do without.
 */
#include "cli/server_sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the sandbox knows the system calls of x86-64 and arm64 only"
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED \
    1 /* it traces itself to find leaks, and may start a program that prints stacks */
#else
#define IS_SANITIZED 0
#endif

/* ---- files ---- */

/* Since Linux 6.2, version 3: newer than some headers. */
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* Version 1 has no way to permit a rename from one folder to another, which RocksDB needs. */
enum { LANDLOCK_MIN = 2, LANDLOCK_WITH_TRUNCATE = 3 };

#define CHANGE_FILE (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#define CHANGE_FOLDER                                                                              \
    (CHANGE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |                \
     LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |    \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | \
     LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)

typedef struct Ruleset {
    int fd;
    uint64_t handled;
} Ruleset;

/* A path that cannot be opened permits nothing. */
static void permit(const Ruleset *rules, const char *path, uint64_t for_folder, uint64_t for_file)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return;
    struct stat info;
    if (fstat(fd, &info) == 0) {
        struct landlock_path_beneath_attr rule = {
            .allowed_access = (S_ISDIR(info.st_mode) ? for_folder : for_file) & rules->handled,
            .parent_fd = fd,
        };
        if (rule.allowed_access != 0)
            (void)syscall(SYS_landlock_add_rule, rules->fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    }
    (void)close(fd);
}

/* The program that loads this one's libraries; NULL if it needs none. The kernel starts it with
 * each worker for scripts. */
static const char *loader_path(void)
{
    const ElfW(Phdr) *headers =
        (const ElfW(Phdr) *)getauxval(AT_PHDR); // NOLINT(performance-no-int-to-ptr)
    unsigned long count = getauxval(AT_PHNUM);
    const char *base = NULL;
    for (unsigned long i = 0; headers != NULL && i < count; i++)
        if (headers[i].p_type == PT_PHDR)
            base = (const char *)headers - headers[i].p_vaddr;
    for (unsigned long i = 0; base != NULL && i < count; i++)
        if (headers[i].p_type == PT_INTERP)
            return base + headers[i].p_vaddr;
    return NULL;
}

static void permit_all(const Ruleset *rules, const char *const *writable)
{
    for (size_t i = 0; writable[i] != NULL; i++)
        permit(rules, writable[i], CHANGE_FOLDER, CHANGE_FILE);
    permit(rules, "/dev/null", 0, CHANGE_FILE); /* standard streams of workers */
    /* A worker says in /proc/self that the system should prefer it when memory is short. Root could
     * change the system itself there, and so its workers do without. */
    if (geteuid() != 0)
        permit(rules, "/proc", LANDLOCK_ACCESS_FS_WRITE_FILE, 0);
    permit(rules, "/proc/self/exe", 0, LANDLOCK_ACCESS_FS_EXECUTE);
    const char *loader = loader_path();
    if (loader != NULL)
        permit(rules, loader, 0, LANDLOCK_ACCESS_FS_EXECUTE);
}

/* Returns the version of the kernel's interface, or 0. */
static int restrict_files(const char *const *writable, int *error)
{
    *error = 0;
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < LANDLOCK_MIN) {
        *error = version < 0 ? errno : 0;
        return 0;
    }
    Ruleset rules = {.handled = CHANGE_FOLDER};
    if (version < LANDLOCK_WITH_TRUNCATE)
        rules.handled &= ~LANDLOCK_ACCESS_FS_TRUNCATE;
    if (!IS_SANITIZED)
        rules.handled |= LANDLOCK_ACCESS_FS_EXECUTE;
    /* Of a newer version's struct only the first member is used, which is all that version 2 has.
     */
    uint64_t attributes = rules.handled;
    rules.fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
    if (rules.fd < 0) {
        *error = errno;
        return 0;
    }
    permit_all(&rules, writable);
    bool is_on = syscall(SYS_landlock_restrict_self, rules.fd, 0) == 0;
    *error = is_on ? 0 : errno;
    (void)close(rules.fd);
    return is_on ? (int)version : 0;
}

/* ---- system calls ---- */

static const int FORBIDDEN[] = {
#if !IS_SANITIZED
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
#endif
    SYS_pidfd_getfd,
    SYS_kcmp,
    SYS_perf_event_open,
    SYS_bpf,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
    SYS_reboot,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_unshare,
    SYS_setns,
    SYS_swapon,
    SYS_swapoff,
    SYS_quotactl,
    SYS_acct,
    SYS_syslog,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_clock_adjtime,
    SYS_adjtimex,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_lookup_dcookie,
    SYS_vhangup,
    SYS_mknodat,
#ifdef SYS_mknod
    SYS_mknod,
#endif
#ifdef SYS_iopl
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
#endif
#ifdef SYS_uselib
    SYS_uselib,
#endif
};

static const uint32_t FAMILIES[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

#define NAMESPACES                                                                           \
    ((uint32_t)CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
     CLONE_NEWPID | CLONE_NEWNET)

enum { INSTRUCTIONS_MAX = 160 };

typedef struct Filter {
    struct sock_filter code[INSTRUCTIONS_MAX];
    unsigned short count;
} Filter;

static void add(Filter *filter, struct sock_filter instruction)
{
    ASSERT(filter->count < INSTRUCTIONS_MAX);
    filter->code[filter->count++] = instruction;
}

static void load(Filter *filter, size_t offset)
{
    add(filter, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void end(Filter *filter, uint32_t result)
{
    add(filter, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
}

/* Ends with 'result' if 'test' holds for what is loaded and 'value'. */
static void end_if(Filter *filter, uint16_t test, uint32_t value, uint32_t result)
{
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, 1));
    end(filter, result);
}

/* The next 'skip' instructions are for the call 'number' only. */
static void only_for(Filter *filter, int number, uint8_t skip)
{
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, skip));
}

static void make_filter(Filter *filter)
{
    load(filter, offsetof(struct seccomp_data, arch));
    add(filter, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0));
    end(filter, SECCOMP_RET_KILL_PROCESS);
    load(filter, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    end_if(filter, BPF_JGE, 0x40000000, SECCOMP_RET_ERRNO | ENOSYS); /* the same calls as of x32 */
#endif
    for (size_t i = 0; i < ARRAY_COUNT(FORBIDDEN); i++)
        end_if(filter, BPF_JEQ, (uint32_t)FORBIDDEN[i], SECCOMP_RET_ERRNO | EPERM);
    /* Its flags are in memory, where the filter cannot look. The C library then uses the older
     * call. */
    end_if(filter, BPF_JEQ, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
    only_for(filter, SYS_clone, 4);
    load(filter, offsetof(struct seccomp_data, args));
    end_if(filter, BPF_JSET, NAMESPACES, SECCOMP_RET_ERRNO | EPERM);
    end(filter, SECCOMP_RET_ALLOW);
    only_for(filter, SYS_socket, 2 + 2 * ARRAY_COUNT(FAMILIES));
    load(filter, offsetof(struct seccomp_data, args));
    for (size_t i = 0; i < ARRAY_COUNT(FAMILIES); i++)
        end_if(filter, BPF_JEQ, FAMILIES[i], SECCOMP_RET_ALLOW);
    end(filter, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    end(filter, SECCOMP_RET_ALLOW);
}

/* The second flag is for older kernels, which otherwise slow down every process that has a filter,
 * against attacks of a process on itself. */
static bool restrict_calls(int *error)
{
    Filter filter = {.count = 0};
    make_filter(&filter);
    struct sock_fprog program = {.len = filter.count, .filter = filter.code};
    unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    bool is_on = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
    *error = is_on ? 0 : errno;
    return is_on;
}

/* ---- both ---- */

static int count_other_threads(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    if (folder == NULL)
        return 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count - 1;
}

SandboxState server_sandbox_enter(const char *const *writable)
{
    SandboxState state = {.threads_before = count_other_threads()};
    /* Memory holds keys and documents. The hard limit stays, so that a person can ask for a dump of
     * this very process (prlimit). The process stays dumpable, or its own user could neither look
     * at it in /proc nor debug it. */
    struct rlimit core;
    if (getrlimit(RLIMIT_CORE, &core) == 0) {
        core.rlim_cur = 0;
        (void)setrlimit(RLIMIT_CORE, &core);
    }
    state.no_new_privs = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    if (!state.no_new_privs)
        return state; /* the others need it */
    state.landlock = restrict_files(writable, &state.landlock_error);
    state.seccomp = restrict_calls(&state.seccomp_error);
    return state;
}
