/* memory_store.h - a store in memory, for tests: nothing survives it, and it fails when told to.
 *
 * It keeps every promise of store.h, except that durable means "in this process". The functions
 * below cause the faults of a disk at the moment a test chooses.
 *
 * Ownership  Closed with store_close, like any store; not while a group is stalled.
 * Threads    All functions may be called from any thread.
 */
#pragma once

#include "store/store.h"

void memory_store_open(Store **out);

/* With keys that are merged; 'merge' lives as long as the store. */
void memory_store_open_with(const StoreMerge *merge, Store **out);

/* The next 'count' of these fail with 'status' (not STATUS_OK) and change nothing. A commit here
 * is a whole group, as the engine writes it, or a store_drop_spaces. */
void memory_store_fail_commits(Store *store, unsigned count, Status status);
void memory_store_fail_gets(Store *store, unsigned count, Status status);
void memory_store_fail_cursor_steps(Store *store, unsigned count, Status status);

/* From now on only what makes room is taken, or again everything. */
void memory_store_set_full(Store *store, bool full);

/* The next 'count' reads with STORE_READ_MEMORY would have to wait for the disk. */
void memory_store_forget(Store *store, unsigned count);

/* From now on the commit thread stops before it applies a group, as it would wait for a slow disk,
 * until memory_store_release. Meanwhile more transactions gather. */
void memory_store_stall(Store *store);
void memory_store_wait_stalled(Store *store); /* returns once a group waits there */
void memory_store_release(Store *store);

/* Everything that has not been applied yet, stalled or queued, is lost, as in a crash, and
 * completes with STATUS_UNAVAILABLE. The same happens to all commits until memory_store_restart,
 * after which the store has the state that a restarted process would find. */
void memory_store_crash(Store *store);
void memory_store_restart(Store *store);

/* How many groups have been applied so far. */
uint64_t memory_store_groups(Store *store);
