/* checkpoint.h - the files of a store as of one moment, for backups.
 *
 * A checkpoint has everything that was completed before it was opened, and of every transaction all
 * or nothing. The files are links to those of the store where that is possible, so a checkpoint
 * costs little room at first; it keeps files that the store has rewritten meanwhile, so it should
 * not stay for long. A folder with exactly these files can be opened as a store.
 *
 * What a process leaves behind when it ends is removed when the store is next opened.
 *
 * Ownership  The caller closes the checkpoint, before the store.
 * Threads    Any thread may read. Opening and closing wait for the disk.
 */
#pragma once

#include "store/store.h"

typedef struct StoreCheckpoint StoreCheckpoint;

typedef struct CheckpointFile {
    const char *name; /* in the store's folder; letters, digits, '-', '_' and '.' */
    uint64_t size;
} CheckpointFile;

/* STATUS_NOT_IMPLEMENTED if the engine has no files. Writes wait for a moment meanwhile. */
MUST_USE Status store_checkpoint_open(Store *store, StoreCheckpoint **out, Error *err);

/* Sorted by name; they live as long as the checkpoint. */
const CheckpointFile *store_checkpoint_files(const StoreCheckpoint *checkpoint, size_t *count);

/* Reads up to 'size' bytes of a file; fewer only at its end. STATUS_IO if the file cannot be read.
 */
MUST_USE Status store_checkpoint_read(const StoreCheckpoint *checkpoint, size_t index,
                                      uint64_t offset, void *out, size_t size, size_t *len,
                                      Error *err);

void store_checkpoint_close(StoreCheckpoint *checkpoint); /* removes it; accepts NULL */
DEFINE_AUTO(StoreCheckpoint *, store_checkpoint_close)
