/* thread.c - see thread.h. */
#include "base/thread.h"

#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* What a new thread begins with. It names itself: to name another thread is to write to a file of
 * /proc, which the server's sandbox does not permit. */
typedef struct ThreadStart {
    void *(*run)(void *ctx);
    void *ctx;
    char name[THREAD_NAME_LEN_MAX + 1];
} ThreadStart;

static void *begin(void *arg)
{
    ThreadStart start = *(ThreadStart *)arg;
    mem_free(arg);
    (void)pthread_setname_np(pthread_self(), start.name); /* one without a name works as well */
    return start.run(start.ctx);
}

/* A thread begins with its creator's mask, so blocking the signals before it starts leaves no
 * moment in which one could reach it. Signals that report a fault of the thread itself stay open.
 */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t all;
    (void)sigfillset(&all);
    for (size_t i = 0; i < ARRAY_COUNT(faults); i++)
        (void)sigdelset(&all, faults[i]);
    (void)pthread_sigmask(SIG_SETMASK, &all, before);
}

Status thread_start(pthread_t *thread, const char *name, void *(*run)(void *ctx), void *ctx,
                    Error *err)
{
    ASSERT(strlen(name) <= THREAD_NAME_LEN_MAX);
    ThreadStart *start = MEM_NEW(ThreadStart);
    *start = (ThreadStart){.run = run, .ctx = ctx};
    (void)snprintf(start->name, sizeof(start->name), "%s", name);
    sigset_t before;
    block_signals(&before);
    pthread_t started;
    int code = pthread_create(&started, NULL, begin, start);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        mem_free(start);
        return error_set_errno(err, code, "cannot start the thread '%s'", name);
    }
    *thread = started;
    return STATUS_OK;
}
