/* folder_check_int.h - whether a data folder may be opened, found out before RocksDB sees it.
 *
 * RocksDB opens what it finds: without CURRENT it makes an empty database and deletes all other
 * files, a log that is not there was never there, and one that ends early is a short one. Nothing
 * of that may happen to acknowledged writes. So the folder is read first, and nothing is changed.
 *
 * Threads    Any, while nobody else has the folder.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"
#include "store/rocksdb/log_files_int.h"

/* So much of the beginning of a group is shown to a LogVisitor. */
enum { LOG_HEAD_BYTES_MAX = 256 };

typedef struct LogVisitor {
    void (*group)(void *ctx, Slice head); /* called for each whole group, in order */
    void *ctx;
} LogVisitor;

typedef struct LogScan {
    uint64_t whole_bytes; /* up to here there are whole groups and nothing else */
    bool is_torn;         /* something stands after them, not only zeros */
    bool has_more;        /* a group begins there */
} LogScan;

/* Reads a file in the format of log_scan.c. 'visitor' may be NULL. */
MUST_USE Status log_scan(const char *path, const LogVisitor *visitor, LogScan *out, Error *err);

typedef struct FolderCheckOptions {
    const char *path;
    SyncMarks *marks;
    bool is_relaxed; /* what to take a log for that has no mark */
} FolderCheckOptions;

typedef struct FolderFindings {
    bool is_new;      /* there is no database yet, and nothing of one */
    bool has_log_end; /* replay must end at 'log_end': what follows is torn or lost */
    LogEnd log_end;
    Error loss; /* acknowledged writes are missing; STATUS_OK if none are known to be */
} FolderFindings;

/* Fails with STATUS_CORRUPT if something is missing or damaged that a start cannot do without.
 * Acknowledged writes that are missing in the logs are reported in '*out', and are the caller's to
 * refuse or to accept. */
MUST_USE Status folder_check(const FolderCheckOptions *options, FolderFindings *out, Error *err);

/* Goes on without what is lost: forgets the marks of logs that are not there, and keeps a second
 * name, "000012.log.lost", for each that is not replayed as a whole, so that RocksDB does not
 * delete its bytes. */
MUST_USE Status folder_accept_loss(const FolderCheckOptions *options,
                                   const FolderFindings *findings, Error *err);
