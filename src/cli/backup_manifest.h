/* backup_manifest.h - what one backup consists of: its files, and how far each partition was.
 *
 * A manifest is written when everything that it names is on the disk, so a backup without one was
 * interrupted. It is JSON, and protects itself: its last member is the SHA-256 of everything before
 * it. A manifest is read like input from outside: a folder of backups is copied, moved and damaged.
 *
 * Ownership  What a manifest points to lives in the arena that it was read into.
 * Format     At the top of backup_manifest.c.
 */
#pragma once

#include "api/core/sha256.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#define MANIFEST_BYTES_MAX ((size_t)64 << 20)

typedef struct BackupEntry {
    Slice name; /* in the data folder: see data_file_is_known */
    uint64_t size;
    Slice sha256;
} BackupEntry;

typedef struct BackupPosition {
    Slice database;
    Slice container;
    Slice range; /* its id */
    uint64_t lsn;
} BackupPosition;

typedef struct BackupManifest {
    uint64_t generation; /* from 1 on */
    int64_t time_s;      /* all that was answered before is in it */
    Slice version;       /* of the server */
    bool is_damaged;     /* the server knew that some of its data is */
    BackupEntry *files;  /* sorted by name */
    size_t file_count;
    BackupPosition *positions;
    size_t position_count;
} BackupManifest;

void manifest_print(const BackupManifest *manifest, Buf *out);

/* STATUS_CORRUPT if it is not what manifest_print has printed. */
MUST_USE Status manifest_parse(Arena *arena, Slice text, BackupManifest *out, Error *err);

/* The file of this name; NULL if there is none. */
const BackupEntry *manifest_find(const BackupManifest *manifest, Slice name);
