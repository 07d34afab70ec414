/* rocksdb_local_int.h - RocksDB's engine without a store, for an engine that stands on it.
 *
 * Ownership  The caller closes the engine by its own 'close', or hands it to store_open.
 * Threads    'write', 'probe' and 'idle' of the engine are for one thread at a time; the functions
 *            here are for any thread. Syncing waits for the disk.
 */
#pragma once

#include "store/engine_int.h"
#include "store/rocksdb/rocksdb_store.h"

/* As rocksdb_store_open. */
MUST_USE Status rocksdb_engine_open(const RocksdbStoreOptions *options, Engine **out, Error *err);

/* Tells the store of damage that an earlier process has met. */
void rocksdb_engine_tell_damage(Engine *engine, Store *store);

/* Everything that was written before the call is on disk when it returns: for RELAXED durability.
 * After a failure nothing is written any more (R2). */
MUST_USE Status rocksdb_engine_sync(Engine *engine, Error *err);
