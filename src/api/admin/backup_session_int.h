/* backup_session_int.h - the one backup that a client may be copying from this server.
 *
 * A session has a checkpoint of the store and the other files of the data folder, as of one moment.
 * The client copies them piece by piece. A session ends when its client says so, when the client
 * has asked for nothing for a while, or with the server; then the checkpoint is removed. So a
 * client that is slow, or gone, holds nothing but room on the disk, and that for a bounded time.
 *
 * Ownership  backups_find hands out references; each is given back before backups_close.
 * Threads    Any. A thread of its own (orrery-backup) watches the session while there is one.
 */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "store/checkpoint.h"

enum {
    BACKUP_ID_LEN = 32,
    BACKUP_OWNER_LEN_MAX = 64,
    BACKUP_IDLE_MS = 30000,
    BACKUP_PIECE_BYTES = 1 << 20, /* that one request reads, at most */
};

typedef struct Backups Backups;
typedef struct BackupSession BackupSession;

typedef struct BackupsOptions {
    Store *store; /* these outlive the Backups */
    const Clock *clock;
    const Log *log;
    const char *data_folder;       /* NULL if there are no other files */
    const char *const *data_files; /* in it, ends with NULL; those that are missing are left out */
    uint32_t idle_ms;
} BackupsOptions;

typedef struct BackupFile {
    const char *name; /* in the data folder: "store/CURRENT", "token.key" */
    uint64_t size;
} BackupFile;

Backups *backups_open(const BackupsOptions *options);
void backups_close(Backups *backups); /* accepts NULL; ends the session */

/* Begins a session, which waits for the disk. STATUS_CONFLICT if there is one already, unless it is
 * of the same owner: a client names itself by the folder of backups that it fills, of which there
 * is one at a time, so the one before is gone. 'owner' may be empty. The caller gives the reference
 * back. */
MUST_USE Status backups_begin(Backups *backups, Slice owner, BackupSession **out, Error *err);

/* The session with this id, STATUS_NOT_FOUND if it has ended. The caller gives it back. */
MUST_USE Status backups_find(Backups *backups, Slice id, BackupSession **out, Error *err);
void backup_session_release(BackupSession *session); /* accepts NULL */
DEFINE_AUTO(BackupSession *, backup_session_release)

/* Nobody finds the session any more. What is under way goes on; then the files are removed. */
void backup_session_end(BackupSession *session);

/* Immutable, as long as the reference is held. */
Slice backup_session_id(const BackupSession *session);
int64_t backup_session_time_s(
    const BackupSession *session); /* all that was answered before is in it */
const BackupFile *backup_session_files(const BackupSession *session, size_t *count);

/* As store_checkpoint_read. */
MUST_USE Status backup_session_read(const BackupSession *session, size_t index, uint64_t offset,
                                    void *out, size_t size, size_t *len, Error *err);
