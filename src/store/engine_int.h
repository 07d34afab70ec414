/* engine_int.h - what an engine does, so that store.c can do the rest.
 *
 * An engine keeps one flat, ordered set of keys and values. Spaces, transactions, the merging of a
 * transaction's own writes into a cursor, savepoints and the grouping of commits are written once,
 * above this interface; what is left for an engine is to read a point, walk a range and apply many
 * writes as one. Keys are whole here: eight bytes of space, then the caller's key.
 *
 * Ownership  store_open takes the engine over and closes it. Slices passed to an engine live for
 *            the call, except a cursor's bounds, which live as long as the cursor.
 * Threads    'write' and 'probe' are called by the commit thread only, the rest from any thread.
 */
#pragma once

#include "base/log.h"
#include "store/merge_int.h"
#include "store/store.h"
#include "store/tree_int.h"

enum { SPACE_BYTES = 8 };

/* One byte longer than a key may be: see full_key. */
#define FULL_KEY_BYTES_MAX (SPACE_BYTES + STORE_KEY_BYTES_MAX + 1)

typedef struct FullKey {
    char bytes[FULL_KEY_BYTES_MAX];
} FullKey;

/* Writes 'space' and 'key' into 'out'. A longer key than may be stored is cut to one byte more
 * than the longest: it then compares with every stored key as the whole would, and equals none. */
Slice full_key(FullKey *out, StoreSpace space, Slice key);

/* The first key that sorts after everything in 'space'. */
Slice full_key_end(FullKey *out, StoreSpace space);

/* The last key that sorts before everything in the next space; no such key is ever stored. */
Slice full_key_last(FullKey *out, StoreSpace space);

typedef struct Engine Engine;
typedef struct EngineCursor EngineCursor; /* each engine has its own */

/* An engine's snapshot begins with this. */
struct StoreSnapshot {
    Engine *engine;
    StoreRead read; /* of its cursors */
};

typedef enum EngineMove {
    ENGINE_AT_OR_AFTER, /* to the first key >= the given one, which is within the bounds */
    ENGINE_BEFORE,      /* to the last key < the given one */
    ENGINE_NEXT,        /* from where the last move has found a key; no key is given */
    ENGINE_PREV,
} EngineMove;

typedef struct EngineItem {
    Slice key;
    Slice value;
} EngineItem;

/* What one transaction writes. A key is in one of the two, never in both. */
typedef struct EngineWrites {
    Tree tree;
    Slice merges; /* records of merge_int.h, in the order in which they apply */
} EngineWrites;

/* What is written when the disk is nearly full: more data, or what makes room for it. */
typedef enum EngineNeed { ENGINE_TAKES_ROOM, ENGINE_MAKES_ROOM } EngineNeed;

typedef struct EngineOps {
    /* For a key that is merged, this and a cursor hand out what merge_int.h calls stored. */
    Status (*get)(Engine *engine, const StoreSnapshot *snapshot, Slice key, StoreRead read,
                  StoreValue *value, StoreFound *found, Error *err);

    StoreSnapshot *(*snapshot_open)(Engine *engine, StoreRead read);
    void (*snapshot_close)(StoreSnapshot *snapshot);

    /* Over the keys in ['from', 'to'). The item of a move lives until the next one. 'is_group':
     * they differ only in their tails, and no move goes down. */
    EngineCursor *(*cursor_open)(Engine *engine, const StoreSnapshot *snapshot, Slice from,
                                 Slice to, bool is_group);
    Status (*cursor_move)(EngineCursor *cursor, EngineMove move, Slice key, EngineItem *item,
                          bool *found, Error *err);
    void (*cursor_close)(EngineCursor *cursor);

    /* Whether there is room for 'bytes' of this; does not wait for the disk. */
    Status (*room)(Engine *engine, EngineNeed need, size_t bytes, Error *err);

    /* Applies 'count' sets of writes, the later over the earlier, as one: after success all of it
     * is durable and then visible, after a failure nothing is. */
    Status (*write)(Engine *engine, const EngineWrites *writes, size_t count, Error *err);

    /* Applies one set of writes past the log: see store_txn_ingest. Called from any thread, which
     * waits for the disk. NULL: the engine has no other way than 'write'. */
    Status (*ingest)(Engine *engine, const EngineWrites *writes, Error *err);

    /* Whether a write would succeed; asked from time to time after one has failed. */
    Status (*probe)(Engine *engine, Error *err);

    Status (*drop)(Engine *engine, StoreSpace first, StoreSpace last, Error *err);

    /* Nothing was written for a while: what is kept for readers may go. NULL: nothing is. */
    void (*rest)(Engine *engine);

    uint64_t (*estimate)(Engine *engine, Slice from, Slice to);
    void (*usage)(Engine *engine, StoreUsage *usage);
    void (*close)(Engine *engine);
} EngineOps;

/* An engine's own struct begins with this. */
struct Engine {
    const EngineOps *ops;
    const StoreMerge *merge; /* NULL: no key is merged */
};

/* Makes a store of an engine and starts its commit thread. The engine is closed if that fails.
 * 'log' may be NULL; it hears when writes begin to fail and when they work again. */
MUST_USE Status store_open(Engine *engine, const Log *log, Store **out, Error *err);

Engine *store_engine(Store *store);

/* What a cursor says that would have to wait for the disk and must not. */
MUST_USE Status engine_not_in_memory(Error *err);

/* For store_damage: what an engine knows of damage that no read of this process has met. */
void store_note_damage(Store *store, const Error *err);
