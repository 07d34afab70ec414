/* wal_files_int.h - RocksDB's logs and MANIFEST, as one store writes and reads them.
 *
 * RocksDB does everything with files through an environment. This one is the usual one, except that
 *   - a log is written with room ahead of its end, if the store syncs each group (R8);
 *   - the marks of sync_marks_int.h follow what is made, synced and deleted;
 *   - a log may end earlier than its file: replay takes no more of it than it is told to;
 *   - flushes and compactions run on threads that let others go first (base/thread_background.h);
 *   - the folder's lock is taken before the database is opened, which then takes it over.
 *
 * Ownership  The caller closes the WalFiles, after the database that uses it; the marks outlive it.
 * Threads    RocksDB's; the end is set before the database is opened.
 */
#pragma once

#include "store/rocksdb/sync_marks_int.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where replay must end: it reads the first 'bytes' of this log, and nothing of newer ones. */
typedef struct WalEnd {
    uint64_t number;
    uint64_t bytes;
} WalEnd;

typedef struct WalFilesOptions {
    const char *folder; /* of the store; files elsewhere, such as a checkpoint's, are left alone */
    SyncMarks *marks;
    bool is_relaxed;
} WalFilesOptions;

typedef struct WalFiles WalFiles;

WalFiles *wal_files_open(const WalFilesOptions *options);
void wal_files_close(WalFiles *files); /* accepts NULL */

/* Locks the folder, and makes the file LOCK in it for that. If it cannot, returns false with
 * RocksDB's message in 'reason'. */
bool wal_files_lock(WalFiles *files, const char *folder, char *reason, size_t size);

void wal_files_set_end(WalFiles *files, WalEnd end);

/* The name by which RocksDB finds it: the value of its option env. Lives as long as 'files'. */
const char *wal_files_env(const WalFiles *files);

#ifdef __cplusplus
}
#endif
