/* backup_source.h - what a backup is made from: a server that runs, or the folder of one that does
 * not.
 *
 * Both give a list of files as of one moment, and the bytes of each. A server is asked over the
 * network (/_orrery/backup), several pieces at a time. A folder is opened as a server would open
 * it, which takes its lock, and a checkpoint is made.
 *
 * Ownership  The caller closes the source, which ends the server's part or removes the checkpoint.
 * Threads    One.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/backup_manifest.h"

typedef struct BackupSource BackupSource;

typedef struct BackupSourceOptions {
    const char *from;      /* an endpoint if there is "://" in it, otherwise a data folder */
    const char *key;       /* of the server */
    const char *cert_file; /* see ClientOptions */
    Slice owner;           /* names the folder of backups: its earlier backups are over */
    const Log *log;
    void (*waits)(void *ctx); /* another backup is under way; called every second */
    void *ctx;
} BackupSourceOptions;

typedef struct SourceFile {
    Slice name;
    uint64_t size;
} SourceFile;

MUST_USE Status backup_source_open(const BackupSourceOptions *options, BackupSource **out,
                                   Error *err);
void backup_source_close(BackupSource *source); /* accepts NULL */
DEFINE_AUTO(BackupSource *, backup_source_close)

int64_t backup_source_time_s(const BackupSource *source);
Slice backup_source_version(const BackupSource *source);
bool backup_source_is_damaged(const BackupSource *source);
const SourceFile *backup_source_files(const BackupSource *source, size_t *count);

MUST_USE Status backup_source_sum(BackupSource *source, size_t index, char out[SHA256_TEXT_LEN],
                                  Error *err);

/* The bytes of a file from 'offset' on, up to some bound; empty at its end. They live until the
 * next call. Offsets of one file rise from 0, by what was read. */
MUST_USE Status backup_source_read(BackupSource *source, size_t index, uint64_t offset, Slice *out,
                                   Error *err);
