/* restore_target.c - see restore_target.h. */
#include "cli/restore_target.h"

#include "base/mem.h"
#include "cli/data_files.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARKER "store/" STORE_INCOMPLETE_FILE

struct RestoreTarget {
    char *path;
    int fd;
    int marker_fd; /* locked */
};

static Status failed(const RestoreTarget *target, int code, Error *err)
{
    return error_set_errno(err, code, "cannot write to the folder '%.200s'", target->path);
}

static Status sync_below(const RestoreTarget *target, const char *below, Error *err)
{
    int fd = openat(target->fd, below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;
    int code = errno;
    if (fd >= 0)
        (void)close(fd); /* was synced */
    return is_synced ? STATUS_OK : failed(target, code, err);
}

/* Whether the folder has nothing in it, except perhaps an empty folder 'store', and if so, has no
 * marker. */
static Status is_empty(const RestoreTarget *target, const char *below, bool *out, Error *err)
{
    int fd = openat(target->fd, below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    *out = true;
    if (folder == NULL) {
        int code = errno;
        if (fd >= 0)
            (void)close(fd); /* only read from */
        return code == ENOENT ? STATUS_OK : failed(target, code, err);
    }
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while ((entry = readdir(folder)) != NULL) {
        bool is_plain = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                        (strcmp(entry->d_name, "store") == 0 && strcmp(below, ".") == 0);
        *out = *out && is_plain;
    }
    (void)closedir(folder); /* only read from */
    return STATUS_OK;
}

/* Removes what an interrupted restore has left: files of the store, and others that a backup has.
 */
static Status remove_leftovers(const RestoreTarget *target, Error *err)
{
    for (size_t i = 0; DATA_FILES[i] != NULL; i++) {
        if (unlinkat(target->fd, DATA_FILES[i], 0) != 0 && errno != ENOENT)
            return failed(target, errno, err);
    }
    int fd = openat(target->fd, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder == NULL) {
        int code = errno;
        if (fd >= 0)
            (void)close(fd); /* only read from */
        return failed(target, code, err);
    }
    Status status = STATUS_OK;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while (status == STATUS_OK && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, STORE_INCOMPLETE_FILE) == 0)
            continue;
        /* The store's own folders are empty, since it was never served. */
        if (unlinkat(fd, entry->d_name, 0) != 0 && unlinkat(fd, entry->d_name, AT_REMOVEDIR) != 0)
            status = failed(target, errno, err);
    }
    (void)closedir(folder); /* only read from */
    return status;
}

static Status take_marker(RestoreTarget *target, int flags, Error *err)
{
    target->marker_fd = openat(target->fd, MARKER, flags | O_RDWR | O_CLOEXEC, 0600);
    if (target->marker_fd < 0)
        return failed(target, errno, err);
    if (flock(target->marker_fd, LOCK_EX | LOCK_NB) != 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "another restore is at work in the folder '%.200s'", target->path);
    return STATUS_OK;
}

static Status claim(RestoreTarget *target, Error *err)
{
    bool is_new = false;
    bool has_empty_store = false;
    if (faccessat(target->fd, MARKER, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        TRY(take_marker(target, 0, err));
        return remove_leftovers(target, err);
    }
    TRY(is_empty(target, ".", &is_new, err));
    if (is_new)
        TRY(is_empty(target, "store", &has_empty_store, err));
    if (!is_new || !has_empty_store)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "the folder '%.200s' is not empty; a restore does not overwrite anything: "
                         "give another folder, or move this one away",
                         target->path);
    if (mkdirat(target->fd, "store", 0700) != 0 && errno != EEXIST)
        return failed(target, errno, err);
    return take_marker(target, O_CREAT | O_EXCL, err);
}

static Status sync_parent(const RestoreTarget *target, Error *err)
{
    int fd = openat(target->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return STATUS_OK; /* no right to look there; then the folder is not new */
    bool is_synced = fsync(fd) == 0;
    int code = errno;
    (void)close(fd); /* was synced */
    return is_synced ? STATUS_OK : failed(target, code, err);
}

Status restore_target_open(const char *path, RestoreTarget **out, Error *err)
{
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make the folder '%.200s'", path);
    AUTO(restore_target_close) RestoreTarget *target = MEM_NEW(RestoreTarget);
    *target = (RestoreTarget){.path = mem_copy(path, strlen(path) + 1), .fd = -1, .marker_fd = -1};
    target->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (target->fd < 0)
        return error_set_errno(err, errno, "cannot open the folder '%.200s'", path);
    TRY(claim(target, err));
    if (fsync(target->marker_fd) != 0)
        return failed(target, errno, err);
    TRY(sync_below(target, "store", err));
    TRY(sync_below(target, ".", err));
    TRY(sync_parent(target, err));
    *out = TAKE(target);
    return STATUS_OK;
}

void restore_target_close(RestoreTarget *target)
{
    if (target == NULL)
        return;
    if (target->marker_fd >= 0)
        (void)close(target->marker_fd); /* only locked */
    if (target->fd >= 0)
        (void)close(target->fd); /* only read from */
    mem_free(target->path);
    mem_free(target);
}

Status restore_target_create(RestoreTarget *target, Slice name, int *fd, Error *err)
{
    char path[NAME_MAX + 1];
    ASSERT(data_file_is_known(name));
    (void)snprintf(path, sizeof(path), "%.*s", SLICE_CUT(name, 200));
    *fd = openat(target->fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    return *fd >= 0 ? STATUS_OK
                    : error_set_errno(err, errno, "cannot make '%.200s/%s'", target->path, path);
}

Status restore_target_sync(RestoreTarget *target, Error *err)
{
    TRY(sync_below(target, "store", err));
    return sync_below(target, ".", err);
}

Status restore_target_finish(RestoreTarget *target, Error *err)
{
    TRY(restore_target_sync(target, err));
    if (unlinkat(target->fd, MARKER, 0) != 0)
        return failed(target, errno, err);
    return sync_below(target, "store", err);
}
