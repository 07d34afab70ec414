/* sync_marks_int.h - how far each log of RocksDB is known to have been synced.
 *
 * A log that was cut looks like a shorter log: RocksDB replays what it finds, and acknowledged
 * writes are lost without an error. So a small file, SYNCED, in the data folder holds for each log,
 * and for the MANIFEST, how many bytes were synced. folder_check.c compares at the next start.
 *
 * A mark is a lower bound (R11). It is written after the sync and before the acknowledgement,
 * without a sync of its own: after the end of the process it is exact, after a loss of power it may
 * be some seconds old. The marks are synced when a new log begins, so that those of older logs are
 * final.
 *
 * Ownership  The caller closes the SyncMarks, after the database that uses it.
 * Threads    Any; a lock inside is held for one small write, or for a sync when a log begins.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SYNC_MARKS_MAX = 30 };

typedef enum SyncKind { SYNC_LOG = 0, SYNC_MANIFEST = 1 } SyncKind;

typedef struct SyncMark {
    SyncKind kind;
    bool is_relaxed; /* not every group of the log was synced before the next one was begun */
    bool is_exact;   /* a sync has failed: nothing after 'bytes' was acknowledged */
    uint64_t number;
    uint64_t bytes;
} SyncMark;

typedef struct SyncMarks SyncMarks;

/* Reads the marks in 'folder'. There are none in a new folder, in one of an older version, and if
 * both copies in the file are damaged. Changes nothing yet. */
SyncMarks *sync_marks_open(const char *folder);
void sync_marks_close(SyncMarks *marks); /* accepts NULL */

/* Reads them again: what was read before the folder was locked may have changed. */
void sync_marks_reload(SyncMarks *marks);

/* Copies the marks to 'out', the oldest first, and returns how many there are. */
size_t sync_marks_read(SyncMarks *marks, SyncMark out[SYNC_MARKS_MAX]);

/* Forgets all marks, because the database is new. Written with the next mark. */
void sync_marks_clear(SyncMarks *marks);

/* A log begins. Makes the marks of the older ones durable. */
void sync_marks_add_log(SyncMarks *marks, uint64_t number, bool is_relaxed);

/* Removes the mark of a file that is no longer needed. */
void sync_marks_remove(SyncMarks *marks, SyncKind kind, uint64_t number);

/* Notes that the first 'bytes' of the file were synced. sync_marks_write writes it to SYNCED. */
void sync_marks_note(SyncMarks *marks, SyncKind kind, uint64_t number, uint64_t bytes);

/* Writes what was noted. After this it may be acknowledged. */
void sync_marks_write(SyncMarks *marks);

/* A write to the log has failed, and may be in it nevertheless. Has the next start end each log at
 * its mark (R2); what is noted later does not count. True if that is certain to happen. */
bool sync_marks_end_logs(SyncMarks *marks);

#ifdef __cplusplus
}
#endif
