/* folder_check_fuzz.c - any bytes in the files that folder_check reads: it ends, with a verdict.
 *
 *     input = | size of the MANIFEST u16 LE | size of the log u16 LE | MANIFEST | log | SYNCED |
 */
#include "store/rocksdb/folder_check_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_BYTES = 4, LOG_NUMBER = 4 };

static const char *const NAMES[] = {"CURRENT", "MANIFEST-000005", "000004.log", "SYNCED"};

static void path_of(char out[128], const char *folder, const char *name)
{
    (void)snprintf(out, 128, "%s/%s", folder, name);
}

static void write_files(const char *folder, const Slice contents[])
{
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        char path[128];
        path_of(path, folder, NAMES[i]);
        int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
        ASSERT(fd >= 0);
        ASSERT(write(fd, contents[i].ptr, contents[i].len) == (ssize_t)contents[i].len);
        (void)close(fd);
    }
}

static void check(const char *folder, size_t log_bytes, bool is_relaxed)
{
    SyncMarks *marks = sync_marks_open(folder);
    FolderCheckOptions options = {.path = folder, .marks = marks, .is_relaxed = is_relaxed};
    FolderFindings findings;
    Error err;
    Status status = folder_check(&options, &findings, &err);
    ASSERT(status == STATUS_OK || status == STATUS_CORRUPT);
    if (status == STATUS_OK) {
        ASSERT(!findings.is_new);
        bool is_lost = findings.loss.status != STATUS_OK;
        ASSERT(findings.has_log_end || !is_lost);
        if (findings.has_log_end && findings.log_end.number == LOG_NUMBER)
            ASSERT(findings.log_end.bytes <= log_bytes);
    }
    sync_marks_close(marks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD_BYTES)
        return 0;
    Slice rest = slice_from(slice_make(data, size), HEAD_BYTES);
    Slice manifest = slice_first(rest, (size_t)data[0] | (size_t)data[1] << 8);
    rest = slice_from(rest, manifest.len);
    Slice log = slice_first(rest, (size_t)data[2] | (size_t)data[3] << 8);
    Slice marks = slice_from(rest, log.len);
    char folder[] = "/tmp/orrery_fuzz_XXXXXX";
    ASSERT(mkdtemp(folder) != NULL);
    write_files(folder, (const Slice[]){SLICE("MANIFEST-000005\n"), manifest, log, marks});
    check(folder, log.len, false);
    check(folder, log.len, true);
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        char path[128];
        path_of(path, folder, NAMES[i]);
        (void)unlink(path);
    }
    (void)rmdir(folder);
    return 0;
}
