/* folder_check_int.h - checks whether a data folder may be opened, before RocksDB sees it.
 *
 * RocksDB opens what it finds: without CURRENT it makes an empty database and deletes all other
 * files, it does not notice that a log is missing, and takes one that was cut for a short one. None
 * of that may happen to acknowledged writes (R7). So the folder is read first, and nothing is
 * changed (R12).
 *
 * Threads    Any, while the folder is locked.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"
#include "store/rocksdb/wal_files_int.h"

/* A WalVisitor is shown this much of the beginning of a group. */
enum { WAL_HEAD_BYTES_MAX = 256 };

typedef struct WalVisitor {
    void (*group)(void *ctx, Slice head); /* called for each whole group, in order */
    void *ctx;
} WalVisitor;

typedef struct WalScan {
    uint64_t whole_bytes; /* up to here there are whole groups and nothing else */
    bool is_torn;         /* something else than zeros follows them */
    bool has_more;        /* and a group begins in what follows */
} WalScan;

/* Reads a file in the format of wal_scan.c. 'visitor' may be NULL. */
MUST_USE Status wal_scan(const char *path, const WalVisitor *visitor, WalScan *out, Error *err);

typedef struct FolderCheckOptions {
    const char *path;
    SyncMarks *marks;
    bool is_relaxed; /* whether a log without a mark is a relaxed one */
} FolderCheckOptions;

typedef struct FolderFindings {
    bool is_new;      /* there is no database yet, and no file of one */
    bool has_log_end; /* replay must end at 'log_end': what follows is torn or lost */
    WalEnd log_end;
    Error loss; /* acknowledged writes are missing; STATUS_OK if none are known to be */
} FolderFindings;

/* Fails with STATUS_CORRUPT if something is missing or damaged that a start needs. Acknowledged
 * writes that are missing in the logs are reported in '*out': the caller refuses or accepts that.
 */
MUST_USE Status folder_check(const FolderCheckOptions *options, FolderFindings *out, Error *err);

/* Prepares a start without what is lost: forgets the marks of logs that are missing, and gives each
 * log that is not replayed as a whole a second name, "000012.log.lost", so that its bytes stay when
 * RocksDB deletes it. */
MUST_USE Status folder_accept_loss(const FolderCheckOptions *options,
                                   const FolderFindings *findings, Error *err);
