/* backup_folder.c - see backup_folder.h. */
#include "cli/backup_folder.h"

#include "base/mem.h"
#include "base/random.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART_NAME "files/new.part"

enum { NAME_BYTES = 96, ID_LEN = 32 };

struct BackupFolder {
    char *path;
    char *shown_path; /* of backup_folder_show */
    int fd;
    int lock_fd;
    bool is_writer;
    char id[ID_LEN];
    uint64_t *generations;
    size_t generation_count;
    uint64_t *sizes; /* of the files that were there when the folder was opened, sorted */
    size_t size_count;

    /* The file that is being written; -1 if none is. */
    int part_fd;
    Sha256 part_sum;
    uint64_t part_bytes;
};

/* ---- names ---- */

static void file_name(Slice sha256, char out[NAME_BYTES])
{
    ASSERT(sha256.len == SHA256_TEXT_LEN);
    (void)snprintf(out, NAME_BYTES, "files/%.*s", SLICE_ARG(sha256));
}

static void generation_name(uint64_t generation, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "generations/%06llu.json", (unsigned long long)generation);
}

/* "000007.json" */
static bool generation_of(const char *name, uint64_t *out)
{
    Slice text = slice_from_cstr(name);
    Slice end = SLICE(".json");
    return slice_ends_with(text, end) && text.len >= end.len + 6 &&
           slice_to_u64(slice_first(text, text.len - end.len), out) && *out > 0;
}

typedef Status (*Visit)(BackupFolder *folder, const char *name, void *ctx, Error *err);

/* Calls 'visit' for everything in a folder below; the folder itself must be there. */
static Status visit_all(BackupFolder *folder, const char *below, Visit visit, void *ctx, Error *err)
{
    int fd = openat(folder->fd, below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int code = errno;
        if (fd >= 0)
            (void)close(fd); /* only read from */
        return error_set_errno(err, code, "cannot read '%.200s/%s'", folder->path, below);
    }
    Status status = STATUS_OK;
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while (status == STATUS_OK && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = visit(folder, entry->d_name, ctx, err);
    }
    (void)closedir(dir); /* only read from */
    return status;
}

static Status sync_folder(const BackupFolder *folder, const char *below, Error *err)
{
    int fd = openat(folder->fd, below, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;
    int code = errno;
    if (fd >= 0)
        (void)close(fd); /* was synced */
    return is_synced ? STATUS_OK
                     : error_set_errno(err, code, "cannot sync '%.200s/%s'", folder->path, below);
}

/* ---- open and close ---- */

static Status count_entry(BackupFolder *folder, const char *name, void *ctx, Error *err)
{
    (void)folder;
    (void)err;
    size_t *count = ctx;
    *count += strcmp(name, "LOCK") != 0;
    return STATUS_OK;
}

static Status make_below(BackupFolder *folder, const char *below, Error *err)
{
    if (mkdirat(folder->fd, below, 0700) == 0 || errno == EEXIST)
        return STATUS_OK;
    return error_set_errno(err, errno, "cannot make '%.200s/%s'", folder->path, below);
}

static bool has_below(const BackupFolder *folder, const char *below)
{
    struct stat info;
    return fstatat(folder->fd, below, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

/* A folder that holds anything else is not taken: what no manifest names is removed later. */
static Status check_ours(BackupFolder *folder, Error *err)
{
    size_t count = 0;
    if (has_below(folder, "generations") && has_below(folder, "files"))
        return STATUS_OK;
    TRY(visit_all(folder, ".", count_entry, &count, err));
    if (count == 0 || (count == 1 && has_below(folder, "files")))
        return STATUS_OK;
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "'%.200s' has other things in it and no backups; give an empty folder",
                     folder->path);
}

static bool is_id(const char id[ID_LEN])
{
    for (size_t i = 0; i < ID_LEN; i++) {
        if ((id[i] < '0' || id[i] > '9') && (id[i] < 'A' || id[i] > 'F'))
            return false;
    }
    return true;
}

/* With the lock held. A name that is lost is replaced. */
static Status read_id(BackupFolder *folder, Error *err)
{
    if (pread(folder->lock_fd, folder->id, ID_LEN, 0) == ID_LEN && is_id(folder->id))
        return STATUS_OK;
    uint8_t bytes[ID_LEN / 2];
    random_secret(bytes, sizeof(bytes));
    hex_encode(bytes, sizeof(bytes), folder->id);
    if (pwrite(folder->lock_fd, folder->id, ID_LEN, 0) != ID_LEN)
        return error_set_errno(err, errno, "cannot write to the folder '%.200s'", folder->path);
    return STATUS_OK;
}

static Status make_folders(BackupFolder *folder, Error *err)
{
    TRY(make_below(folder, "files", err));
    TRY(make_below(folder, "generations", err));
    TRY(sync_folder(folder, ".", err));
    return read_id(folder, err);
}

static Status take_lock(BackupFolder *folder, Error *err)
{
    int flags = folder->is_writer ? O_RDWR | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC;
    folder->lock_fd = openat(folder->fd, "LOCK", flags, 0600);
    if (folder->lock_fd < 0 && !folder->is_writer)
        return STATUS_OK; /* a copy of a folder of backups, perhaps on a disk that is read only */
    if (folder->lock_fd < 0)
        return error_set_errno(err, errno, "cannot make the file LOCK in '%.200s'", folder->path);
    if (flock(folder->lock_fd, (folder->is_writer ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "the folder '%.200s' is in use by another backup or restore", folder->path);
}

static int by_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static Status add_generation(BackupFolder *folder, const char *name, void *ctx, Error *err)
{
    (void)ctx;
    uint64_t generation = 0;
    if (!generation_of(name, &generation))
        return STATUS_OK;
    if (folder->generation_count == BACKUP_GENERATIONS_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "'%.200s' has more than %d generations",
                         folder->path, BACKUP_GENERATIONS_MAX);
    folder->generations =
        mem_realloc(folder->generations, sizeof(uint64_t) * (folder->generation_count + 1));
    folder->generations[folder->generation_count++] = generation;
    return STATUS_OK;
}

static Status list_generations(BackupFolder *folder, Error *err)
{
    folder->generation_count = 0;
    TRY(visit_all(folder, "generations", add_generation, NULL, err));
    if (folder->generation_count > 0)
        qsort(folder->generations, folder->generation_count, sizeof(uint64_t), by_number);
    return STATUS_OK;
}

static Status add_size(BackupFolder *folder, const char *name, void *ctx, Error *err)
{
    (void)ctx;
    (void)err;
    char path[NAME_BYTES + 300];
    struct stat info;
    (void)snprintf(path, sizeof(path), "files/%.255s", name);
    if (!sha256_is_text(slice_from_cstr(name)) ||
        fstatat(folder->fd, path, &info, AT_SYMLINK_NOFOLLOW) != 0)
        return STATUS_OK;
    folder->sizes = mem_realloc(folder->sizes, sizeof(uint64_t) * (folder->size_count + 1));
    folder->sizes[folder->size_count++] = (uint64_t)info.st_size;
    return STATUS_OK;
}

Slice backup_folder_id(const BackupFolder *folder)
{
    ASSERT(folder->is_writer);
    return slice_make(folder->id, ID_LEN);
}

Status backup_folder_open(const char *path, bool is_writer, BackupFolder **out, Error *err)
{
    if (is_writer && mkdir(path, 0700) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot make the folder '%.200s'", path);
    AUTO(backup_folder_close) BackupFolder *folder = MEM_NEW(BackupFolder);
    *folder = (BackupFolder){.path = mem_copy(path, strlen(path) + 1),
                             .is_writer = is_writer,
                             .lock_fd = -1,
                             .part_fd = -1};
    folder->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->fd < 0)
        return error_set_errno(err, errno, "cannot open the folder '%.200s'", path);
    if (!is_writer && !has_below(folder, "generations"))
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "there are no backups in '%.200s'", path);
    if (is_writer)
        TRY(check_ours(folder, err));
    TRY(take_lock(folder, err));
    if (is_writer)
        TRY(make_folders(folder, err));
    TRY(list_generations(folder, err));
    if (is_writer)
        TRY(visit_all(folder, "files", add_size, NULL, err));
    if (folder->size_count > 0)
        qsort(folder->sizes, folder->size_count, sizeof(uint64_t), by_number);
    *out = TAKE(folder);
    return STATUS_OK;
}

static Status remove_shown(BackupFolder *folder, const char *name, void *ctx, Error *err)
{
    (void)err;
    const char *below = ctx;
    char path[NAME_BYTES + 300];
    (void)snprintf(path, sizeof(path), "%s/%.255s", below, name);
    (void)unlinkat(folder->fd, path, 0); /* folders stay */
    return STATUS_OK;
}

/* What cannot be removed is removed by the next command. */
static void hide(BackupFolder *folder)
{
    Error ignored;
    static const char *const below[] = {"opening/store", "opening"};
    for (size_t i = 0; i < ARRAY_COUNT(below); i++) {
        if (!has_below(folder, below[i]))
            continue;
        (void)visit_all(folder, below[i], remove_shown, UNCONST(char, below[i]), &ignored);
        (void)unlinkat(folder->fd, below[i], AT_REMOVEDIR);
    }
}

void backup_folder_close(BackupFolder *folder)
{
    if (folder == NULL)
        return;
    if (folder->part_fd >= 0)
        (void)close(folder->part_fd); /* is not used */
    if (folder->is_writer && folder->fd >= 0) {
        (void)unlinkat(folder->fd, PART_NAME, 0);
        hide(folder);
    }
    if (folder->lock_fd >= 0)
        (void)close(folder->lock_fd); /* only locked */
    if (folder->fd >= 0)
        (void)close(folder->fd); /* only read from */
    mem_free(folder->generations);
    mem_free(folder->sizes);
    mem_free(folder->shown_path);
    mem_free(folder->path);
    mem_free(folder);
}

/* ---- reading ---- */

const uint64_t *backup_folder_generations(const BackupFolder *folder, size_t *count)
{
    *count = folder->generation_count;
    return folder->generations;
}

/* The whole of a file, in the arena. */
static Status read_whole(const BackupFolder *folder, int fd, const char *name, Arena *arena,
                         Slice *out, Error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0)
        return error_set_errno(err, errno, "cannot read '%.200s/%s'", folder->path, name);
    if (info.st_size < 0 || (uint64_t)info.st_size > MANIFEST_BYTES_MAX)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "'%.200s/%s' is too large", folder->path,
                         name);
    size_t size = (size_t)info.st_size;
    char *text = arena_alloc(arena, size + 1);
    size_t len = 0;
    ssize_t got = 1;
    while (len < size && got > 0) {
        got = read(fd, text + len, size - len);
        len += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        return error_set_errno(err, errno, "cannot read '%.200s/%s'", folder->path, name);
    *out = slice_make(text, len);
    return STATUS_OK;
}

Status backup_folder_read(BackupFolder *folder, uint64_t generation, Arena *arena,
                          BackupManifest *out, Error *err)
{
    char name[NAME_BYTES];
    generation_name(generation, name);
    int fd = openat(folder->fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE, "there is no generation %llu in '%.200s'",
                         (unsigned long long)generation, folder->path);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%.200s/%s'", folder->path, name);
    Slice text;
    Status status = read_whole(folder, fd, name, arena, &text, err);
    (void)close(fd); /* only read from */
    TRY(status);
    if (manifest_parse(arena, text, out, err) != STATUS_OK)
        return error_context(err, "'%.200s/%s'", folder->path, name);
    if (out->generation != generation)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "'%.200s/%s' is the manifest of generation %llu", folder->path, name,
                         (unsigned long long)out->generation);
    return STATUS_OK;
}

bool backup_folder_has_size(const BackupFolder *folder, uint64_t size)
{
    return folder->size_count > 0 &&
           bsearch(&size, folder->sizes, folder->size_count, sizeof(uint64_t), by_number) != NULL;
}

bool backup_folder_has(const BackupFolder *folder, Slice sha256, uint64_t size)
{
    char name[NAME_BYTES];
    struct stat info;
    file_name(sha256, name);
    return fstatat(folder->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
           (uint64_t)info.st_size == size;
}

Status backup_folder_open_file(const BackupFolder *folder, Slice sha256, int *fd, Error *err)
{
    char name[NAME_BYTES];
    file_name(sha256, name);
    *fd = openat(folder->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return *fd >= 0 ? STATUS_OK
                    : error_set_errno(err, errno, "cannot open '%.200s/%s'", folder->path, name);
}

/* ---- writing ---- */

Status backup_folder_begin(BackupFolder *folder, Error *err)
{
    ASSERT(folder->is_writer);
    if (folder->part_fd >= 0)
        (void)close(folder->part_fd); /* was given up */
    folder->part_fd =
        openat(folder->fd, PART_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (folder->part_fd < 0)
        return error_set_errno(err, errno, "cannot make '%.200s/" PART_NAME "'", folder->path);
    sha256_init(&folder->part_sum);
    folder->part_bytes = 0;
    return STATUS_OK;
}

static Status write_all(const BackupFolder *folder, int fd, Slice bytes, Error *err)
{
    for (size_t done = 0; done < bytes.len;) {
        ssize_t put = write(fd, bytes.ptr + done, bytes.len - done);
        if (put < 0 && errno != EINTR)
            return error_set_errno(err, errno, "cannot write to the folder '%.200s'", folder->path);
        done += put > 0 ? (size_t)put : 0;
    }
    return STATUS_OK;
}

Status backup_folder_write(BackupFolder *folder, Slice bytes, Error *err)
{
    ASSERT(folder->part_fd >= 0);
    TRY(write_all(folder, folder->part_fd, bytes, err));
    sha256_add(&folder->part_sum, bytes);
    folder->part_bytes += bytes.len;
    return STATUS_OK;
}

Status backup_folder_end(BackupFolder *folder, Slice expected, char sha256[SHA256_TEXT_LEN],
                         Error *err)
{
    int fd = folder->part_fd;
    ASSERT(fd >= 0);
    folder->part_fd = -1;
    sha256_end(&folder->part_sum, sha256);
    bool is_synced = fsync(fd) == 0;
    int code = errno;
    if (close(fd) != 0 && is_synced) {
        is_synced = false;
        code = errno;
    }
    if (!is_synced)
        return error_set_errno(err, code, "cannot write to the folder '%.200s'", folder->path);
    Slice sum = slice_make(sha256, SHA256_TEXT_LEN);
    if (expected.len > 0 && !slice_equal(sum, expected))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a file has changed while it was copied");
    char name[NAME_BYTES];
    file_name(sum, name);
    if (renameat(folder->fd, PART_NAME, folder->fd, name) != 0)
        return error_set_errno(err, errno, "cannot write to the folder '%.200s'", folder->path);
    return STATUS_OK;
}

/* Links, so that nothing is copied. The store opens such a folder for reading without changing
 * anything. */
Status backup_folder_show(BackupFolder *folder, const BackupManifest *manifest, const char **path,
                          Error *err)
{
    ASSERT(folder->is_writer);
    hide(folder);
    TRY(make_below(folder, "opening", err));
    TRY(make_below(folder, "opening/store", err));
    for (size_t i = 0; i < manifest->file_count; i++) {
        const BackupEntry *file = &manifest->files[i];
        if (!slice_starts_with(file->name, SLICE("store/")))
            continue;
        char name[NAME_BYTES + 64];
        char target[NAME_BYTES + 64];
        (void)snprintf(name, sizeof(name), "opening/%.*s", SLICE_CUT(file->name, 120));
        (void)snprintf(target, sizeof(target), "../../files/%.*s", SLICE_ARG(file->sha256));
        if (symlinkat(target, folder->fd, name) != 0)
            return error_set_errno(err, errno, "cannot make the link '%.200s/%s'", folder->path,
                                   name);
    }
    size_t size = strlen(folder->path) + sizeof("/opening");
    mem_free(folder->shown_path);
    folder->shown_path = mem_alloc(size);
    (void)snprintf(folder->shown_path, size, "%s/opening", folder->path);
    *path = folder->shown_path;
    return STATUS_OK;
}

Status backup_folder_finish(BackupFolder *folder, const BackupManifest *manifest, Error *err)
{
    ASSERT(folder->is_writer);
    hide(folder);
    AUTO(buf_done) Buf text;
    buf_init(&text, MANIFEST_BYTES_MAX);
    manifest_print(manifest, &text);
    if (buf_full(&text))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "the manifest has more than %zu bytes",
                         MANIFEST_BYTES_MAX);
    TRY(sync_folder(folder, "files", err));
    char name[NAME_BYTES];
    generation_name(manifest->generation, name);
    int fd = openat(folder->fd, "generations/new.part",
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot write to the folder '%.200s'", folder->path);
    Status status = write_all(folder, fd, buf_view(&text), err);
    if (status == STATUS_OK && fsync(fd) != 0)
        status = error_set_errno(err, errno, "cannot write to the folder '%.200s'", folder->path);
    (void)close(fd); /* was synced */
    TRY(status);
    if (renameat(folder->fd, "generations/new.part", folder->fd, name) != 0)
        return error_set_errno(err, errno, "cannot write to the folder '%.200s'", folder->path);
    TRY(sync_folder(folder, "generations", err));
    return list_generations(folder, err);
}

/* ---- removing ---- */

/* The sums that are needed, sorted. */
typedef struct Needed {
    Slice *sums;
    size_t count;
    size_t capacity;
    const uint64_t *sizes; /* files of these may be used by the backup that begins; sorted */
    size_t size_count;
    BackupRemoved *removed;
} Needed;

static int by_sum(const void *a, const void *b)
{
    return slice_compare(*(const Slice *)a, *(const Slice *)b);
}

static void need(Needed *needed, const BackupManifest *manifest)
{
    while (needed->capacity - needed->count < manifest->file_count) {
        needed->capacity = needed->capacity * 2 + 1024;
        needed->sums = mem_realloc(needed->sums, sizeof(Slice) * needed->capacity);
    }
    for (size_t i = 0; i < manifest->file_count; i++)
        needed->sums[needed->count++] = manifest->files[i].sha256;
}

static Status remove_unneeded(BackupFolder *folder, const char *name, void *ctx, Error *err)
{
    const Needed *needed = ctx;
    Slice text = slice_from_cstr(name);
    bool is_ours = sha256_is_text(text) || slice_ends_with(text, SLICE(".part"));
    if (!is_ours || (needed->count > 0 &&
                     bsearch(&text, needed->sums, needed->count, sizeof(Slice), by_sum) != NULL))
        return STATUS_OK;
    char path[NAME_BYTES + 300];
    struct stat info;
    (void)snprintf(path, sizeof(path), "files/%.255s", name);
    bool is_known = fstatat(folder->fd, path, &info, AT_SYMLINK_NOFOLLOW) == 0;
    uint64_t size = is_known ? (uint64_t)info.st_size : 0;
    if (needed->size_count > 0 && sha256_is_text(text) &&
        bsearch(&size, needed->sizes, needed->size_count, sizeof(uint64_t), by_number) != NULL)
        return STATUS_OK;
    if (unlinkat(folder->fd, path, 0) != 0)
        return error_set_errno(err, errno, "cannot remove '%.200s/%s'", folder->path, path);
    needed->removed->files++;
    needed->removed->bytes += size;
    return STATUS_OK;
}

/* A generation whose manifest is damaged may be repaired, so its files must stay; it does not count
 * among those that are kept. */
static Status read_needed(BackupFolder *folder, size_t first, Arena *arena, Needed *needed,
                          Error *err)
{
    for (size_t i = first; i < folder->generation_count; i++) {
        BackupManifest manifest;
        Status status = backup_folder_read(folder, folder->generations[i], arena, &manifest, err);
        if (status == STATUS_CORRUPT)
            needed->removed->is_unsure = true;
        else
            TRY(status);
        if (status == STATUS_OK)
            need(needed, &manifest);
    }
    return STATUS_OK;
}

static Status prune(BackupFolder *folder, uint64_t keep, Arena *arena, Needed *needed, Error *err)
{
    size_t count = folder->generation_count;
    size_t first = keep < count ? count - (size_t)keep : 0;
    TRY(read_needed(folder, 0, arena, needed, err));
    if (needed->removed->is_unsure)
        return STATUS_OK;
    for (size_t i = 0; i < first; i++) {
        char name[NAME_BYTES];
        generation_name(folder->generations[i], name);
        if (unlinkat(folder->fd, name, 0) != 0)
            return error_set_errno(err, errno, "cannot remove '%.200s/%s'", folder->path, name);
        needed->removed->generations++;
    }
    TRY(sync_folder(folder, "generations", err)); /* before the files that they name */
    needed->count = 0;
    TRY(read_needed(folder, first, arena, needed, err));
    if (needed->count > 0)
        qsort(needed->sums, needed->count, sizeof(Slice), by_sum);
    TRY(visit_all(folder, "files", remove_unneeded, needed, err));
    return list_generations(folder, err);
}

static Status remove_with(BackupFolder *folder, uint64_t keep, const uint64_t *sizes, size_t count,
                          BackupRemoved *out, Error *err)
{
    ASSERT(folder->is_writer);
    *out = (BackupRemoved){0};
    Needed needed = {.sizes = sizes, .size_count = count, .removed = out};
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Status status = prune(folder, keep, &arena, &needed, err);
    mem_free(needed.sums);
    return status;
}

Status backup_folder_prune(BackupFolder *folder, uint64_t keep, BackupRemoved *out, Error *err)
{
    ASSERT(keep > 0);
    return remove_with(folder, keep, NULL, 0, out, err);
}

Status backup_folder_clean(BackupFolder *folder, uint64_t *sizes, size_t count, Error *err)
{
    BackupRemoved ignored;
    if (count > 0)
        qsort(sizes, count, sizeof(uint64_t), by_number);
    return remove_with(folder, UINT64_MAX, sizes, count, &ignored, err);
}
