/* rocksdb_engine_int.h - the engine's own struct, for the files that are parts of the engine. */
#pragma once

#include "store/rocksdb/rocksdb_int.h"
#include "store/rocksdb/wal_files_int.h"

/* The engine; rocksdb_store.c has most of it. */
typedef struct RocksEngine {
    Engine engine;

    /* Immutable after open. */
    char *folder;
    rocksdb_t *db;
    rocksdb_cache_t *cache;
    rocksdb_compactionfilter_t *filter;    /* NULL if nothing is merged */
    rocksdb_writeoptions_t *write_options; /* with the durability that was asked for */
    rocksdb_writeoptions_t *write_synced;
    rocksdb_readoptions_t *read_any;
    rocksdb_readoptions_t *read_memory;
    int folder_fd;
    int lock_fd; /* of a folder that is only read; -1 otherwise, when RocksDB holds the lock */
    SyncMarks *marks;
    WalFiles *log_files;
    size_t memtable_bytes;
    bool is_read_only;

    /* Held for each write, and while a checkpoint is made: nothing is half written in it. */
    pthread_mutex_t gate;
    _Atomic uint64_t checkpoint_next; /* the name of the next one */

    /* Commit thread only. */
    rocksdb_writebatch_t *batch;
    size_t batch_bytes; /* of the largest group that was in 'batch' */
    HotKeys hot_keys;
    CompactionDelay delay;

    Snapshots snapshots;
    _Atomic bool is_tight;   /* the disk is full, or not far from it */
    _Atomic bool is_damaged; /* stored data is damaged, so compaction is off: see damage.c */
    Reclaimer reclaimer;
    Ingester ingester;

    /* Once 'is_broken' is true nothing is written any more (R2). The thread that sets 'is_breaking'
     * writes 'breakage'. */
    _Atomic bool is_breaking;
    _Atomic bool is_broken;
    Error breakage;
} RocksEngine;

static inline RocksEngine *rocks_of(Engine *engine)
{
    return CONTAINER_OF(engine, RocksEngine, engine);
}

/* rocksdb_checkpoint.c: as engine_int.h says. */
MUST_USE Status rocks_checkpoint(Engine *engine, char **path, Error *err);
void rocks_checkpoint_remove(Engine *engine, const char *path);

/* Removes checkpoints that an earlier process has left. */
void rocks_checkpoints_clean(const char *folder);

/* STATUS_OK if the store takes writes. */
MUST_USE Status rocks_check_writable(const RocksEngine *rocks, Error *err);

/* rocksdb_room.c: as engine_int.h says; the same for a store that is not read only; whether room is
 * short, and whether there is enough for the compaction of a level 0 that was allowed to grow
 * ('ctx' is the engine). */
MUST_USE Status rocks_room(Engine *engine, EngineNeed need, size_t bytes, Error *err);
MUST_USE Status rocks_check_room(RocksEngine *rocks, EngineNeed need, size_t bytes, Error *err);
bool rocks_is_tight(void *ctx);
bool rocks_has_much_room(void *ctx);

/* A number that RocksDB knows about itself. */
uint64_t rocks_property(const RocksEngine *rocks, const char *name);
