/* script_process.c - see script_process_int.h. */
#include "script/script_process_int.h"

#include "base/cond.h"
#include "base/mem.h"
#include "script/script_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    CHECK_MEMORY_EVERY_US = 20000, /* in which a script can use some ten megabytes more */
    BUF_KEEP_BYTES = 1 << 20,      /* an idle process does not keep more than this for its frames */
};

/* The environment of a worker. Nothing of the server's own is handed on. The engine uses one thread
 * for everything but its watchdog: then a worker takes one processor, and its CPU time is that of
 * its script. */
static const char *const ENVIRONMENT[] = {
    "TZ=UTC",
    "LANG=C.UTF-8",
    "JSC_useConcurrentGC=0",
    "JSC_useConcurrentJIT=0",
    "JSC_numberOfGCMarkers=1",
    "JSC_usePollingTraps=1",
    "JSC_useWasm=0",
    "JSC_useSharedArrayBuffer=0",
    /* Code is optimised when it has run some ten thousand times, not a thousand. Most scripts end
     * before, and their global object with them, so that what the compiler does for each run is
     * never worth its time. */
    "JSC_thresholdForOptimizeAfterWarmUp=20000",
    "JSC_thresholdForOptimizeAfterLongWarmUp=20000",
#ifdef __SANITIZE_ADDRESS__
    "ASAN_OPTIONS=detect_stack_use_after_return=0", /* the engine looks for its values on the stack
                                                     */
#endif
#ifdef __SANITIZE_THREAD__
    "TSAN_OPTIONS=report_bugs=0", /* the engine is not compiled with it, so all reports are false */
#endif
    NULL,
};

/* ---- its life ---- */

static int add_actions(posix_spawn_file_actions_t *actions, int fd, bool shows_stderr)
{
    /* First, since the socket's number may be that of a standard stream. */
    int code = posix_spawn_file_actions_adddup2(actions, fd, SCRIPT_WORKER_FD);
    for (int stream = 0; code == 0 && stream <= (shows_stderr ? 1 : 2); stream++)
        code = posix_spawn_file_actions_addopen(actions, stream, "/dev/null", O_RDWR, 0);
    return code;
}

static int add_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    /* A group of its own: Ctrl-C reaches the server, which lets scripts end. */
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
    int code = posix_spawnattr_setflags(attributes, flags);
    code = code != 0 ? code : posix_spawnattr_setsigmask(attributes, &none);
    return code != 0 ? code : posix_spawnattr_setsigdefault(attributes, &all);
}

static int spawn(const char *const *command, int fd, bool shows_stderr, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0)
        return code;
    code = posix_spawnattr_init(&attributes);
    if (code == 0) {
        code = add_actions(&actions, fd, shows_stderr);
        code = code != 0 ? code : add_attributes(&attributes);
        /* The function does not change the texts, although it does not promise so. */
        code = code != 0 ? code
                         : posix_spawn(pid, command[0], &actions, &attributes,
                                       (char *const *)command, (char *const *)ENVIRONMENT);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return code;
}

Status script_process_start(const char *const *command, uint64_t memory_bytes_max,
                            bool shows_stderr, ScriptProcess **out, Error *err)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "no worker for scripts can be started: no socket, error %d", errno);
    pid_t pid = 0;
    int code = spawn(command, fds[1], shows_stderr, &pid);
    (void)close(fds[1]);
    if (code != 0) {
        (void)close(fds[0]);
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "no worker for scripts can be started: '%s', error %d", command[0], code);
    }
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    ScriptProcess *process = MEM_NEW(ScriptProcess);
    process->pid = pid;
    process->fd = fds[0];
    process->memory_bytes_max = memory_bytes_max;
    buf_init(&process->in, SCRIPT_FRAME_BYTES_MAX);
    buf_init(&process->out, SCRIPT_FRAME_BYTES_MAX);
    *out = process;
    return STATUS_OK;
}

void script_process_free(ScriptProcess *process)
{
    if (process == NULL)
        return;
    (void)kill(process->pid, SIGKILL);
    while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    (void)close(process->fd);
    buf_done(&process->in);
    buf_done(&process->out);
    mem_free(process);
}

/* ---- what it uses ---- */

uint64_t script_process_cpu_us(const ScriptProcess *process)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(process->pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return 0;
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

uint64_t script_process_memory_bytes(const ScriptProcess *process)
{
    char text[128];
    (void)snprintf(text, sizeof(text), "/proc/%d/statm", (int)process->pid);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, text, sizeof(text));
    (void)close(fd);
    /* size resident shared ..., in pages */
    Slice rest = slice_make(text, len < 0 ? 0 : (size_t)len);
    (void)slice_cut(&rest, ' ');
    uint64_t pages = 0;
    return slice_to_u64(slice_cut(&rest, ' '), &pages) ? pages * (uint64_t)sysconf(_SC_PAGESIZE)
                                                       : 0;
}

/* ---- frames ---- */

bool script_process_is_quiet(const ScriptProcess *process)
{
    struct pollfd poll_fd = {.fd = process->fd, .events = POLLIN};
    return process->state != PROCESS_READY || poll(&poll_fd, 1, 0) == 0;
}

/* Waits until the socket is ready for 'events'. PROCESS_FRAME if it is. */
static ProcessEvent wait_ready(ScriptProcess *process, short events, uint64_t until_us)
{
    for (;;) {
        uint64_t now_us = cond_now_us();
        if (now_us >= until_us)
            return PROCESS_TIMEOUT;
        if (now_us - process->checked_us >= CHECK_MEMORY_EVERY_US) {
            process->checked_us = now_us;
            if (script_process_memory_bytes(process) > process->memory_bytes_max)
                return PROCESS_TOO_MUCH_MEMORY;
        }
        uint64_t wait_us = until_us - now_us;
        if (wait_us > CHECK_MEMORY_EVERY_US)
            wait_us = CHECK_MEMORY_EVERY_US;
        struct pollfd poll_fd = {.fd = process->fd, .events = events};
        int count = poll(&poll_fd, 1, (int)((wait_us + 999) / 1000));
        if (count > 0)
            return PROCESS_FRAME;
        if (count < 0 && errno != EINTR)
            return PROCESS_DIED;
    }
}

static ProcessEvent read_exactly(ScriptProcess *process, char *to, size_t len, uint64_t until_us)
{
    while (len > 0) {
        ssize_t got = recv(process->fd, to, len, 0);
        if (got > 0) {
            to += got;
            len -= (size_t)got;
            continue;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR))
            return PROCESS_DIED;
        ProcessEvent event = wait_ready(process, POLLIN, until_us);
        if (event != PROCESS_FRAME)
            return event;
    }
    return PROCESS_FRAME;
}

static ProcessEvent receive(ScriptProcess *process, uint64_t until_us, FrameType *type,
                            Slice *payload)
{
    char head[SCRIPT_FRAME_HEAD_BYTES];
    size_t len = 0;
    ProcessEvent event = read_exactly(process, head, sizeof(head), until_us);
    if (event != PROCESS_FRAME)
        return event;
    if (!frame_head(head, type, &len))
        return PROCESS_DIED;
    size_t rest = len - SCRIPT_FRAME_HEAD_BYTES;
    buf_reset(&process->in);
    if (process->in.capacity > BUF_KEEP_BYTES && rest < BUF_KEEP_BYTES)
        buf_done(&process->in);
    if (!buf_reserve(&process->in, rest))
        return PROCESS_DIED;
    event = read_exactly(process, process->in.ptr, rest, until_us);
    process->in.len = rest;
    *payload = buf_view(&process->in);
    return event;
}

ProcessEvent script_process_receive(ScriptProcess *process, uint64_t until_us, FrameType *type,
                                    Slice *payload)
{
    ASSERT(process->state != PROCESS_LOST);
    ProcessEvent event = receive(process, until_us, type, payload);
    if (event != PROCESS_FRAME)
        process->state = PROCESS_LOST;
    return event;
}

bool script_process_send(ScriptProcess *process, uint64_t until_us)
{
    ASSERT(process->state == PROCESS_READY);
    ASSERT(!buf_full(&process->out));
    Slice rest = buf_view(&process->out);
    while (rest.len > 0) {
        ssize_t put = send(process->fd, rest.ptr, rest.len, MSG_NOSIGNAL);
        if (put > 0) {
            rest = slice_from(rest, (size_t)put);
            continue;
        }
        bool must_wait = put < 0 && (errno == EAGAIN || errno == EINTR);
        if (!must_wait || wait_ready(process, POLLOUT, until_us) != PROCESS_FRAME) {
            process->state = PROCESS_LOST;
            return false;
        }
    }
    buf_reset(&process->out);
    if (process->out.capacity > BUF_KEEP_BYTES)
        buf_done(&process->out);
    return true;
}

Status script_process_greet(ScriptProcess *process, uint64_t until_us, Error *err)
{
    if (process->state == PROCESS_READY)
        return STATUS_OK;
    FrameType type;
    Slice payload;
    FrameHello hello;
    ProcessEvent event = script_process_receive(process, until_us, &type, &payload);
    if (event == PROCESS_TIMEOUT)
        return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                         "the worker for scripts did not start in time");
    bool is_hello =
        event == PROCESS_FRAME && type == FRAME_HELLO && frame_get_hello(payload, &hello);
    if (is_hello && hello.failure.len == 0 && hello.version == SCRIPT_FRAME_VERSION) {
        process->state = PROCESS_READY;
        return STATUS_OK;
    }
    process->state = PROCESS_LOST;
    if (is_hello && hello.failure.len > 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "%.*s", SLICE_CUT(hello.failure, 480));
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "the worker for scripts does not start");
}
