/* checkpoint.c - see checkpoint.h. The engine makes the folder; what is in it is plain files. */
#include "store/checkpoint.h"

#include "base/mem.h"
#include "store/store_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct StoreCheckpoint {
    Engine *engine;
    char *path;
    int folder_fd;
    Arena arena; /* the names */
    CheckpointFile *files;
    size_t count;
    size_t capacity;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const CheckpointFile *)a)->name, ((const CheckpointFile *)b)->name);
}

static Status add_file(StoreCheckpoint *checkpoint, const char *name, Error *err)
{
    struct stat info;
    if (fstatat(checkpoint->folder_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return error_set_errno(err, errno, "cannot read '%.200s' of a checkpoint", name);
    if (!S_ISREG(info.st_mode))
        return STATUS_OK;
    if (checkpoint->count == checkpoint->capacity) {
        checkpoint->capacity = checkpoint->capacity * 2 + 64;
        checkpoint->files =
            mem_realloc(checkpoint->files, sizeof(CheckpointFile) * checkpoint->capacity);
    }
    checkpoint->files[checkpoint->count++] = (CheckpointFile){
        .name = arena_cstr(&checkpoint->arena, slice_from_cstr(name)),
        .size = (uint64_t)info.st_size,
    };
    return STATUS_OK;
}

static Status list_files(StoreCheckpoint *checkpoint, Error *err)
{
    DIR *folder = opendir(checkpoint->path);
    if (folder == NULL)
        return error_set_errno(err, errno, "cannot read the checkpoint '%.200s'", checkpoint->path);
    Status status = STATUS_OK;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while (status == STATUS_OK && (entry = readdir(folder)) != NULL)
        status = add_file(checkpoint, entry->d_name, err);
    (void)closedir(folder); /* only read from */
    if (status == STATUS_OK && checkpoint->count > 0)
        qsort(checkpoint->files, checkpoint->count, sizeof(CheckpointFile), by_name);
    return status;
}

Status store_checkpoint_open(Store *store, StoreCheckpoint **out, Error *err)
{
    Engine *engine = store_engine(store);
    if (engine->ops->checkpoint == NULL)
        return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                         "this engine has no files that could be copied");
    char *path = NULL;
    TRY(engine->ops->checkpoint(engine, &path, err));
    AUTO(store_checkpoint_close) StoreCheckpoint *checkpoint = MEM_NEW(StoreCheckpoint);
    checkpoint->engine = engine;
    checkpoint->path = path;
    arena_init(&checkpoint->arena, 4096);
    checkpoint->folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (checkpoint->folder_fd < 0)
        return error_set_errno(err, errno, "cannot open the checkpoint '%.200s'", path);
    TRY(list_files(checkpoint, err));
    *out = TAKE(checkpoint);
    return STATUS_OK;
}

const CheckpointFile *store_checkpoint_files(const StoreCheckpoint *checkpoint, size_t *count)
{
    *count = checkpoint->count;
    return checkpoint->files;
}

Status store_checkpoint_read(const StoreCheckpoint *checkpoint, size_t index, uint64_t offset,
                             void *out, size_t size, size_t *len, Error *err)
{
    ASSERT(index < checkpoint->count);
    const CheckpointFile *file = &checkpoint->files[index];
    uint64_t left = offset < file->size ? file->size - offset : 0;
    size = left < size ? (size_t)left : size;
    int fd = openat(checkpoint->folder_fd, file->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot open '%.200s' of a checkpoint", file->name);
    size_t done = 0;
    ssize_t got = 1;
    int code = 0;
    while (done < size && got > 0) {
        got = pread(fd, (char *)out + done, size - done, (off_t)(offset + done));
        code = errno;
        done += got > 0 ? (size_t)got : 0;
        got = got < 0 && code == EINTR ? 1 : got;
    }
    (void)close(fd); /* only read from */
    if (got < 0)
        return error_set_errno(err, code, "cannot read '%.200s' of a checkpoint", file->name);
    if (done < size)
        return error_set(err, STATUS_IO, SUB_NONE, "'%.200s' of a checkpoint has become shorter",
                         file->name);
    *len = done;
    return STATUS_OK;
}

void store_checkpoint_close(StoreCheckpoint *checkpoint)
{
    if (checkpoint == NULL)
        return;
    if (checkpoint->folder_fd >= 0)
        (void)close(checkpoint->folder_fd); /* only read from */
    checkpoint->engine->ops->checkpoint_remove(checkpoint->engine, checkpoint->path);
    mem_free(checkpoint->path);
    mem_free(checkpoint->files);
    arena_done(&checkpoint->arena);
    mem_free(checkpoint);
}
