/* rocksdb_store.h - a store in a folder of the local disk, kept by RocksDB.
 *
 * One process at a time owns the folder. Everything that was acknowledged is there when it is next
 * opened, whatever ended the process before.
 *
 * Ownership  Closed with store_close.
 * Threads    Opening is for one thread; it waits for the disk.
 */
#pragma once

#include "base/log.h"
#include "store/store.h"

typedef struct RocksdbStoreOptions {
    const char *path; /* the data folder; made, inside an existing one, if it is not there */
    StoreDurability durability;
    size_t cache_bytes; /* of blocks read from disk; 0 means ROCKSDB_STORE_CACHE_BYTES. What waits
                           to be written out takes up to three times as much on top, or 192 MB */
    const Log *log;     /* may be NULL; for what happens in the background */
    const StoreMerge *merge;  /* lives as long as the store; NULL if no key is merged, which is only
                                 right for a folder in which none ever was */
    bool accepts_lost_writes; /* opens even if acknowledged writes are missing in the log, without
                                 them and all that came after them */
    bool takes_incomplete;    /* opens a folder with the file STORE_INCOMPLETE_FILE, too */
    bool is_read_only; /* changes nothing in the folder, not even a time; every write fails */
} RocksdbStoreOptions;

#define ROCKSDB_STORE_CACHE_BYTES ((size_t)64 << 20)

/* STATUS_UNAVAILABLE: another process has the folder open. STATUS_CORRUPT: what is in the folder is
 * not what was written; nothing was changed. STATUS_IO: the folder cannot be made, read or
 * written, or a thread cannot be started. STATUS_NOT_FOUND: it is to be read only, and there is no
 * database. */
MUST_USE Status rocksdb_store_open(const RocksdbStoreOptions *options, Store **out, Error *err);
