/* log_files_int.h - RocksDB's logs and MANIFEST, as one store writes and reads them.
 *
 * RocksDB does everything with files through an environment. This one is the usual, except that
 *   - a log is written with room ahead of its end, if the store syncs each group (log_files.cc);
 *   - the marks of sync_marks_int.h follow what is made, synced and deleted;
 *   - a log may end earlier than its file: replay takes no more of it than it is told to;
 *   - the folder's lock is taken before the database is opened, which then takes it over.
 *
 * Ownership  The caller closes the LogFiles, after the database that uses it; the marks outlive it.
 * Threads    RocksDB's; the end is set before the database is opened.
 */
#pragma once

#include "store/rocksdb/sync_marks_int.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What replay may take of the logs from 'number' on: the first 'bytes' of this one, and nothing of
 * those that are newer. */
typedef struct LogEnd {
    uint64_t number;
    uint64_t bytes;
} LogEnd;

typedef struct LogFilesOptions {
    SyncMarks *marks;
    bool is_relaxed;
} LogFilesOptions;

typedef struct LogFiles LogFiles;

LogFiles *log_files_open(const LogFilesOptions *options);
void log_files_close(LogFiles *files); /* accepts NULL */

/* Locks the folder, and makes the file LOCK in it for that. False if it cannot: then 'reason' has
 * RocksDB's words for it. */
bool log_files_lock(LogFiles *files, const char *folder, char *reason, size_t size);

void log_files_set_end(LogFiles *files, LogEnd end);

/* What RocksDB finds it by: the value of its option env. Lives as long as 'files'. */
const char *log_files_env(const LogFiles *files);

#ifdef __cplusplus
}
#endif
