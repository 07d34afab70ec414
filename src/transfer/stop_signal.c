/* stop_signal.c - see stop_signal.h. */
#include "transfer/stop_signal.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void stop_set(sigset_t *set)
{
    (void)sigemptyset(set); /* these fail on misuse only */
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGTERM);
}

Status stop_signal_open(int *fd, Error *err)
{
    sigset_t set;
    stop_set(&set);
    /* A pipe that was closed is an error of the write, which is reported. */
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return error_set_errno(err, errno, "cannot ignore SIGPIPE");
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return error_set_errno(err, errno, "cannot block signals");
    *fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (*fd < 0)
        return error_set_errno(err, errno, "cannot wait for signals");
    return STATUS_OK;
}

void stop_signal_taken(int fd)
{
    struct signalfd_siginfo info;
    sigset_t set;
    stop_set(&set);
    ssize_t got = read(fd, &info, sizeof(info));
    (void)got; /* whether or not there was one, the next is not ours */
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}
