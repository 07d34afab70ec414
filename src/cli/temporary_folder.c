/* temporary_folder.c - see temporary_folder.h. */
#include "cli/temporary_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* A data folder has three levels; what is deeper was not made by a server, and stays. */
enum { DEPTH_MAX = 16 };

/* Whether the open folder is the root of a mount, such as a folder of the user's that was bound
 * there. A kernel that cannot tell shows it by another device, in most cases. */
static bool is_mount(int fd, dev_t device)
{
    struct statx info;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_INO, &info) == 0 &&
        (info.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0)
        return (info.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    struct stat old_way;
    return fstat(fd, &old_way) != 0 || old_way.st_dev != device;
}

/* Removes what is in the open folder, and closes it. Every step is by a name in an open folder, so
 * that it cannot be led elsewhere by what is moved or replaced meanwhile. Links are removed, not
 * followed; mounts are not entered. What cannot be removed stays, and so do the folders above it.
 */
static void empty_folder(int fd, dev_t device, int depth) /* NOLINT(misc-no-recursion): bounded */
{
    DIR *folder = fdopendir(fd);
    if (folder == NULL) {
        (void)close(fd);
        return;
    }
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
            continue;
        if (unlinkat(fd, name, 0) == 0)
            continue;
        int inner = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0)
            continue;
        if (depth == 0 || is_mount(inner, device))
            (void)close(inner);
        else
            empty_folder(inner, device, depth - 1);
        (void)unlinkat(fd, name, AT_REMOVEDIR);
    }
    (void)closedir(folder);
}

/* Removes the folder if it is still the one that was made: somebody may have moved it away to keep
 * it, and another may be in its place. */
static void remove_folder(const char *path, const struct stat *made)
{
    struct stat now;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    if (fstat(fd, &now) != 0 || now.st_dev != made->st_dev || now.st_ino != made->st_ino) {
        (void)close(fd);
        return;
    }
    empty_folder(fd, made->st_dev, DEPTH_MAX);
    (void)rmdir(path); /* of an empty folder, whichever it is */
}

/* The process that waits. It keeps nothing of its parent's open, lest somebody wait for the end of
 * a pipe that it holds, and ends with no signal that is meant for the parent. */
_Noreturn static void wait_and_remove(const char *path, const struct stat *made, int fd)
{
    (void)setsid();
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    if (dup2(fd, 0) == 0) {
        (void)close_range(1, ~0U, 0);
        fd = 0;
    }
    (void)!chdir("/");
    char byte;
    ssize_t got = 0;
    do
        got = read(fd, &byte, 1);
    while (got > 0 || (got < 0 && errno == EINTR));
    if (got == 0)
        remove_folder(path, made);
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
    struct stat made;
    int fds[2];
    if (lstat(path, &made) != 0 || pipe2(fds, O_CLOEXEC) != 0) {
        Status status = error_set_errno(err, errno, "cannot watch over '%.200s'", path);
        (void)rmdir(path);
        return status;
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(fds[1]);
        wait_and_remove(path, &made, fds[0]);
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
