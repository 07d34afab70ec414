/* folder_check.c - see folder_check_int.h.
 *
 * In a log that is synced after each group, a group is only begun when the one before it is on
 * disk. So a place that is no record, with a group that begins somewhere after it, is damage, with
 * or without a mark; and up to the mark everything must be whole. Anything else that is torn was
 * left by a loss of power: it was never acknowledged, and replay ends before it. In a relaxed log
 * any part after the mark may be missing.
 *
 * The MANIFEST says which logs are needed: a change that moves writes from a log into a table also
 * names the first log that is still needed. RocksDB deletes the older ones later.
 */
#include "store/rocksdb/folder_check_int.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESTORE "nothing was changed; restore the folder from a copy"

enum {
    NAME_BYTES_MAX = 64,
    MANIFEST_NEW = 1, /* the number of the first, which is made before CURRENT */

    /* Fields of a change in the MANIFEST, in RocksDB's order: these stand before all others. */
    EDIT_COMPARATOR = 1,
    EDIT_LOG_NUMBER = 2,
    EDIT_NEXT_FILE = 3,
    EDIT_LAST_SEQUENCE = 4,
    EDIT_PREVIOUS_LOG = 9,
    EDIT_MAY_IGNORE = 1 << 13, /* a bit: the field is a length and that many bytes */
};

typedef struct Folder {
    const char *path;
    bool is_relaxed;
    SyncMark marks[SYNC_MARKS_MAX];
    size_t mark_count;

    bool has_current;
    char evidence[NAME_BYTES_MAX]; /* a file of a database that was in use; empty if none */
    uint64_t manifest_newest;
    uint64_t *logs; /* numbers, the oldest first */
    size_t log_count;

    uint64_t log_first; /* as the MANIFEST says */
} Folder;

static void folder_done(Folder *folder)
{
    mem_free(folder->logs);
}
DEFINE_AUTO_VALUE(Folder, folder_done)

PRINTF_LIKE(3, 4) static Status refuse(const Folder *folder, Error *err, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "cannot open the data folder '%.200s': %s",
                     folder->path, what);
}

/* ---- what is there ---- */

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name);
    return len >= strlen(end) && strcmp(name + len - strlen(end), end) == 0;
}

static bool starts_with(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

static bool number_of(const char *digits, const char *end, uint64_t *number)
{
    char *rest = NULL;
    *number = strtoull(digits, &rest, 10);
    return rest != digits && strcmp(rest, end) == 0;
}

/* A process that ends while it makes a database leaves the first MANIFEST and no CURRENT: then
 * nothing was written yet. All other files here are made later. */
static void note_name(Folder *folder, const char *name)
{
    uint64_t number = 0;
    bool is_evidence = starts_with(name, "OPTIONS-") || ends_with(name, ".sst");
    if (strcmp(name, "CURRENT") == 0) {
        folder->has_current = true;
    } else if (starts_with(name, "MANIFEST-") &&
               number_of(name + strlen("MANIFEST-"), "", &number)) {
        is_evidence = number != MANIFEST_NEW;
        folder->manifest_newest =
            number > folder->manifest_newest ? number : folder->manifest_newest;
    } else if (number_of(name, ".log", &number)) {
        is_evidence = true;
        folder->logs = mem_realloc(folder->logs, sizeof(uint64_t) * (folder->log_count + 1));
        folder->logs[folder->log_count++] = number;
    }
    if (is_evidence && folder->evidence[0] == '\0')
        (void)snprintf(folder->evidence, sizeof(folder->evidence), "%.60s", name);
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static Status read_names(Folder *folder, Error *err)
{
    DIR *dir = opendir(folder->path);
    if (dir == NULL)
        return error_set_errno(err, errno, "cannot read the data folder '%.200s'", folder->path);
    const struct dirent *entry;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is ours alone */
    while ((entry = readdir(dir)) != NULL)
        note_name(folder, entry->d_name);
    (void)closedir(dir); /* only read from */
    if (folder->log_count > 0)
        qsort(folder->logs, folder->log_count, sizeof(uint64_t), compare_numbers);
    return STATUS_OK;
}

static const SyncMark *find_mark(const Folder *folder, SyncKind kind, uint64_t number)
{
    for (size_t i = 0; i < folder->mark_count; i++) {
        if (folder->marks[i].kind == kind && folder->marks[i].number == number)
            return &folder->marks[i];
    }
    return NULL;
}

/* ---- CURRENT and the MANIFEST ---- */

static Status refuse_without_current(const Folder *folder, Error *err)
{
    if (folder->manifest_newest == 0)
        return refuse(folder, err, "its file CURRENT is missing, but there is %s; " RESTORE,
                      folder->evidence);
    return refuse(folder, err,
                  "its file CURRENT is missing, but there is %s; " RESTORE
                  ", or, if no other file is missing, write the line MANIFEST-%06llu to CURRENT",
                  folder->evidence, (unsigned long long)folder->manifest_newest);
}

static Status read_current(const Folder *folder, uint64_t *manifest, Error *err)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/CURRENT", folder->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, errno, "cannot read '%.300s'", path);
    char text[NAME_BYTES_MAX] = {0};
    ssize_t len = read(fd, text, sizeof(text) - 1);
    int code = errno;
    (void)close(fd); /* only read from */
    if (len < 0)
        return error_set_errno(err, code, "cannot read '%.300s'", path);
    if (!starts_with(text, "MANIFEST-") || !number_of(text + strlen("MANIFEST-"), "\n", manifest))
        return refuse(folder, err,
                      "its file CURRENT is damaged (it must hold the line MANIFEST-%06llu or that "
                      "of an older one); " RESTORE,
                      (unsigned long long)folder->manifest_newest);
    return STATUS_OK;
}

static bool take_varint(Slice *bytes, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && bytes->len > 0; shift += 7) {
        uint8_t byte = (uint8_t)bytes->ptr[0];
        *bytes = slice_from(*bytes, 1);
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

static void read_edit(void *ctx, Slice edit)
{
    Folder *folder = ctx;
    uint64_t tag = 0;
    uint64_t value = 0;
    while (take_varint(&edit, &tag) && take_varint(&edit, &value)) {
        switch (tag) {
        case EDIT_LOG_NUMBER:
            folder->log_first = value > folder->log_first ? value : folder->log_first;
            break;
        case EDIT_NEXT_FILE:
        case EDIT_LAST_SEQUENCE:
        case EDIT_PREVIOUS_LOG:
            break;
        default:
            if (tag != EDIT_COMPARATOR && (tag & EDIT_MAY_IGNORE) == 0)
                return; /* the fields that follow are not needed */
            if (value > edit.len)
                return;
            edit = slice_from(edit, value);
        }
    }
}

static Status check_manifest(Folder *folder, Error *err)
{
    uint64_t number = 0;
    TRY(read_current(folder, &number, err));
    unsigned long long shown = (unsigned long long)number;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/MANIFEST-%06llu", folder->path, shown);
    struct stat info;
    if (stat(path, &info) != 0 && errno == ENOENT)
        return refuse(folder, err, "its file MANIFEST-%06llu is missing; " RESTORE, shown);
    WalScan scan;
    WalVisitor visitor = {.group = read_edit, .ctx = folder};
    TRY(wal_scan(path, &visitor, &scan, err));
    const SyncMark *mark = find_mark(folder, SYNC_MANIFEST, number);
    uint64_t synced = mark != NULL ? mark->bytes : 1;
    if (scan.whole_bytes < synced || scan.has_more)
        return refuse(folder, err, "its file MANIFEST-%06llu is damaged at byte %llu; " RESTORE,
                      shown, (unsigned long long)scan.whole_bytes);
    return STATUS_OK;
}

/* ---- the logs ---- */

PRINTF_LIKE(3, 4)
static void note_loss(const Folder *folder, FolderFindings *out, const char *format, ...)
{
    char what[128];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    Status status = error_set(&out->loss, STATUS_CORRUPT, SUB_NONE,
                              "cannot open the data folder '%.200s': %s, so that acknowledged "
                              "writes are lost; " RESTORE
                              ", or start once with --accept-lost-writes to go on without them",
                              folder->path, what);
    ASSERT(status == STATUS_CORRUPT);
}

static void end_logs(FolderFindings *out, uint64_t number, uint64_t bytes)
{
    out->has_log_end = true;
    out->log_end = (WalEnd){number, bytes};
}

static bool has_log(const Folder *folder, uint64_t number)
{
    for (size_t i = 0; i < folder->log_count; i++) {
        if (folder->logs[i] == number)
            return true;
    }
    return false;
}

/* The oldest log that must be there and is missing; 0 if none is. */
static uint64_t find_missing(const Folder *folder)
{
    uint64_t oldest = 0;
    for (size_t i = 0; i < folder->mark_count; i++) {
        const SyncMark *mark = &folder->marks[i];
        bool is_missing = mark->kind == SYNC_LOG && mark->bytes > 0 &&
                          mark->number >= folder->log_first && !has_log(folder, mark->number);
        if (is_missing && (oldest == 0 || mark->number < oldest))
            oldest = mark->number;
    }
    return oldest;
}

static bool is_relaxed(const Folder *folder, const SyncMark *mark)
{
    return mark != NULL ? mark->is_relaxed : folder->is_relaxed;
}

/* Checks one log, if all before it were whole. */
static Status check_log(const Folder *folder, uint64_t number, FolderFindings *out, Error *err)
{
    char path[PATH_MAX];
    unsigned long long shown = (unsigned long long)number;
    (void)snprintf(path, sizeof(path), "%s/%06llu.log", folder->path, shown);
    WalScan scan;
    TRY(wal_scan(path, NULL, &scan, err));
    struct stat info;
    if (stat(path, &info) != 0)
        return error_set_errno(err, errno, "cannot read '%.300s'", path);
    const SyncMark *mark = find_mark(folder, SYNC_LOG, number);
    uint64_t synced = mark != NULL ? mark->bytes : 0;
    unsigned long long whole = (unsigned long long)scan.whole_bytes;
    if ((uint64_t)info.st_size < synced)
        note_loss(folder, out, "its log %06llu.log ends at byte %llu, and had %llu bytes", shown,
                  (unsigned long long)info.st_size, (unsigned long long)synced);
    else if (scan.whole_bytes < synced || (scan.has_more && !is_relaxed(folder, mark)))
        note_loss(folder, out, "its log %06llu.log is damaged at byte %llu", shown, whole);
    if (out->loss.status != STATUS_OK || scan.is_torn)
        end_logs(out, number, scan.whole_bytes);
    else if (mark != NULL && mark->is_exact)
        end_logs(out, number, synced);
    return STATUS_OK;
}

/* Checks a log that is newer than the end of replay. If the log that ends there was synced group by
 * group, writes are lost only if the newer one has something in it. */
static Status check_log_after_end(const Folder *folder, uint64_t number, FolderFindings *out,
                                  Error *err)
{
    const SyncMark *ended = find_mark(folder, SYNC_LOG, out->log_end.number);
    if (is_relaxed(folder, ended) || (ended != NULL && ended->is_exact))
        return STATUS_OK;
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%06llu.log", folder->path, (unsigned long long)number);
    WalScan scan;
    TRY(wal_scan(path, NULL, &scan, err));
    if (scan.whole_bytes > 0 || scan.has_more)
        note_loss(folder, out, "its log %06llu.log is damaged at byte %llu",
                  (unsigned long long)out->log_end.number, (unsigned long long)out->log_end.bytes);
    return STATUS_OK;
}

static Status check_logs(const Folder *folder, FolderFindings *out, Error *err)
{
    uint64_t missing = find_missing(folder);
    for (size_t i = 0; i < folder->log_count && out->loss.status == STATUS_OK; i++) {
        uint64_t number = folder->logs[i];
        if (number < folder->log_first)
            continue;
        if (missing != 0 && number > missing)
            break;
        if (!out->has_log_end)
            TRY(check_log(folder, number, out, err));
        else
            TRY(check_log_after_end(folder, number, out, err));
    }
    if (missing != 0 && out->loss.status == STATUS_OK) {
        note_loss(folder, out, "its log %06llu.log is missing", (unsigned long long)missing);
        if (!out->has_log_end)
            end_logs(out, missing, 0);
    }
    return STATUS_OK;
}

Status folder_check(const FolderCheckOptions *options, FolderFindings *out, Error *err)
{
    AUTO(folder_done) Folder folder = {.path = options->path, .is_relaxed = options->is_relaxed};
    folder.mark_count = sync_marks_read(options->marks, folder.marks);
    *out = (FolderFindings){0};
    TRY(read_names(&folder, err));
    if (!folder.has_current && folder.evidence[0] != '\0')
        return refuse_without_current(&folder, err);
    out->is_new = !folder.has_current;
    if (out->is_new)
        return STATUS_OK;
    TRY(check_manifest(&folder, err));
    return check_logs(&folder, out, err);
}

static Status keep_log(const char *folder, uint64_t number, Error *err)
{
    char from[PATH_MAX], to[PATH_MAX];
    (void)snprintf(from, sizeof(from), "%s/%06llu.log", folder, (unsigned long long)number);
    (void)snprintf(to, sizeof(to), "%s/%06llu.log.lost", folder, (unsigned long long)number);
    if (link(from, to) != 0 && errno != EEXIST)
        return error_set_errno(err, errno, "cannot keep '%.300s'", to);
    return STATUS_OK;
}

Status folder_accept_loss(const FolderCheckOptions *options, const FolderFindings *findings,
                          Error *err)
{
    AUTO(folder_done) Folder folder = {.path = options->path};
    folder.mark_count = sync_marks_read(options->marks, folder.marks);
    TRY(read_names(&folder, err));
    for (size_t i = 0; i < folder.log_count; i++) {
        if (folder.logs[i] >= findings->log_end.number)
            TRY(keep_log(options->path, folder.logs[i], err));
    }
    for (size_t i = 0; i < folder.mark_count; i++) {
        const SyncMark *mark = &folder.marks[i];
        if (mark->kind == SYNC_LOG && !has_log(&folder, mark->number))
            sync_marks_remove(options->marks, SYNC_LOG, mark->number);
    }
    return STATUS_OK;
}
