/* thread.c - see thread.h. */
#include "base/thread.h"

#include <signal.h>
#include <string.h>

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
    sigset_t before;
    block_signals(&before);
    pthread_t started;
    int code = pthread_create(&started, NULL, run, ctx);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return error_set_errno(err, code, "cannot start the thread '%s'", name);
    (void)pthread_setname_np(started, name); /* a thread without a name works as well */
    *thread = started;
    return STATUS_OK;
}
