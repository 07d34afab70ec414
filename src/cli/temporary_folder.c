/* temporary_folder.c - see temporary_folder.h. */
#include "cli/temporary_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OPEN_FOLDERS_MAX = 16 };

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *place)
{
    (void)info, (void)type, (void)place;
    (void)remove(path); /* what cannot be removed stays, and so do the folders above it */
    return 0;
}

/* The process that waits. It keeps nothing of its parent's open, lest somebody wait for the end of
 * a pipe that it holds, and ends with no signal that is meant for the parent. */
_Noreturn static void wait_and_remove(const char *path, int fd)
{
    (void)setsid();
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    if (dup2(fd, 0) == 0)
        (void)close_range(1, ~0U, 0);
    (void)!chdir("/");
    char byte;
    ssize_t got = 0;
    do
        got = read(0, &byte, 1);
    while (got > 0 || (got < 0 && errno == EINTR));
    (void)nftw(path, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS);
    _exit(0);
}

Status temporary_folder_open(Arena *arena, TemporaryFolder *out, Error *err)
{
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] != '/')
        parent = "/tmp";
    char *path = arena_cstr(arena, arena_format(arena, "%s/orrery-XXXXXX", parent));
    if (mkdtemp(path) == NULL)
        return error_set_errno(err, errno, "cannot make a temporary folder in '%.200s'", parent);
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        Status status = error_set_errno(err, errno, "cannot make a pipe");
        (void)rmdir(path);
        return status;
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fds[1]);
        wait_and_remove(path, fds[0]);
    }
    int code = errno;
    (void)close(fds[0]);
    if (pid < 0) {
        (void)close(fds[1]);
        (void)rmdir(path);
        return error_set_errno(err, code, "cannot start a process");
    }
    *out = (TemporaryFolder){.path = path, .fd = fds[1], .pid = pid};
    return STATUS_OK;
}

void temporary_folder_close(TemporaryFolder *folder)
{
    if (folder->path == NULL)
        return;
    (void)close(folder->fd);
    while (waitpid(folder->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    folder->path = NULL;
}
