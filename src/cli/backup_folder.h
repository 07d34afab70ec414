/* backup_folder.h - a folder of backups.
 *
 *     LOCK                      held by the command that uses the folder; holds its random name
 *     files/<sha256>            contents; generations that have the same file share it
 *     files/new.part            a file that is being copied
 *     generations/000007.json   a manifest: written, synced and renamed last
 *     opening/                  a generation as a data folder, while it is looked at
 *
 * A file is in its place only when it is whole and synced. So whatever ends a command, every
 * manifest that is there stands for a backup that was complete; what no manifest names is removed
 * by the next one.
 *
 * Ownership  The caller closes the folder.
 * Threads    One.
 */
#pragma once

#include "cli/backup_manifest.h"

enum { BACKUP_GENERATIONS_MAX = 100000 };

typedef struct BackupFolder BackupFolder;

/* With 'is_writer' the folder is made if it is missing; one with other things in it is refused.
 * STATUS_UNAVAILABLE: another command uses it. STATUS_NOT_FOUND: it is no folder of backups. */
MUST_USE Status backup_folder_open(const char *path, bool is_writer, BackupFolder **out,
                                   Error *err);
void backup_folder_close(BackupFolder *folder); /* accepts NULL */
DEFINE_AUTO(BackupFolder *, backup_folder_close)

/* A random name of the folder, of hexadecimal digits; for writers. */
Slice backup_folder_id(const BackupFolder *folder);

/* The numbers of the generations, the oldest first, whether or not their manifests are whole. */
const uint64_t *backup_folder_generations(const BackupFolder *folder, size_t *count);

/* STATUS_NOT_FOUND if there is none, STATUS_CORRUPT if its manifest is damaged. */
MUST_USE Status backup_folder_read(BackupFolder *folder, uint64_t generation, Arena *arena,
                                   BackupManifest *out, Error *err);

/* Whether the contents with this sum are there, as far as their size tells. */
bool backup_folder_has(const BackupFolder *folder, Slice sha256, uint64_t size);

/* Whether there was a file of this size when the folder was opened. */
bool backup_folder_has_size(const BackupFolder *folder, uint64_t size);

/* Opens contents for reading; the caller closes the descriptor. */
MUST_USE Status backup_folder_open_file(const BackupFolder *folder, Slice sha256, int *fd,
                                        Error *err);

/* New contents: begin, any number of writes, and an end that makes them durable. An end with
 * another sum or size than expected fails with STATUS_CORRUPT, and leaves nothing. 'expected' may
 * be empty.
 */
MUST_USE Status backup_folder_begin(BackupFolder *folder, Error *err);
MUST_USE Status backup_folder_write(BackupFolder *folder, Slice bytes, Error *err);
MUST_USE Status backup_folder_end(BackupFolder *folder, Slice expected,
                                  char sha256[SHA256_TEXT_LEN], Error *err);

/* The path of a data folder that shows the files of 'manifest', for reading only; until the next
 * call, or the end. */
MUST_USE Status backup_folder_show(BackupFolder *folder, const BackupManifest *manifest,
                                   const char **path, Error *err);

/* Writes a manifest; then the backup is complete. */
MUST_USE Status backup_folder_finish(BackupFolder *folder, const BackupManifest *manifest,
                                     Error *err);

typedef struct BackupRemoved {
    size_t generations;
    size_t files;
    uint64_t bytes;
    bool is_unsure; /* a manifest is damaged, so nothing was removed */
} BackupRemoved;

/* Removes all but the newest 'keep' generations, and files that none of the others names. */
MUST_USE Status backup_folder_prune(BackupFolder *folder, uint64_t keep, BackupRemoved *out,
                                    Error *err);

/* Removes what interrupted backups have left, except files of these sizes, which are sorted for
 * that: the backup that begins may need them. */
MUST_USE Status backup_folder_clean(BackupFolder *folder, uint64_t *sizes, size_t count,
                                    Error *err);
