/* engine_int.h - the interface that an engine implements. README.md says what engines promise (I1
 * to I17) and how to add one.
 *
 * An engine keeps one flat, ordered set of keys and values. Spaces, transactions, the merging of a
 * transaction's own writes into a cursor, savepoints and the grouping of commits are written once,
 * above this interface. An engine reads a key, walks a range and applies many writes as one. Keys
 * are full keys here: eight bytes of space, then the caller's key.
 *
 * Ownership  store_open takes the engine over and closes it. Slices passed to an engine live for
 *            the call, except a cursor's bounds, which live as long as the cursor.
 * Threads    'write', 'submit' and 'probe' are called by the commit thread only, the rest from any
 * thread.
 */
#pragma once

#include "base/log.h"
#include "store/merge_operands_int.h"
#include "store/store.h"
#include "store/tree_int.h"

enum { SPACE_BYTES = 8 };

/* One byte longer than a key may be: see full_key. */
#define FULL_KEY_BYTES_MAX (SPACE_BYTES + STORE_KEY_BYTES_MAX + 1)

typedef struct FullKey {
    char bytes[FULL_KEY_BYTES_MAX];
} FullKey;

/* Writes 'space' and 'key' into 'out'. A key that is too long to be stored is cut to one byte more
 * than the longest: it then compares with every stored key as the whole would, and equals none. */
Slice full_key(FullKey *out, StoreSpace space, Slice key);

/* The first key that sorts after everything in 'space'. */
Slice full_key_end(FullKey *out, StoreSpace space);

/* The last key that sorts before everything in the next space; no such key is ever stored. */
Slice full_key_last(FullKey *out, StoreSpace space);

typedef struct Engine Engine;
typedef struct EngineCursor EngineCursor; /* each engine has its own */
typedef struct EngineLoad EngineLoad;     /* likewise */

enum { ENGINE_LOAD_PARTS = 2 };

/* An engine's snapshot begins with this. */
struct StoreSnapshot {
    Engine *engine;
    StoreRead read; /* of its cursors */
};

typedef enum EngineMove {
    ENGINE_AT_OR_AFTER, /* to the first key >= the given one, which is within the bounds */
    ENGINE_BEFORE,      /* to the last key < the given one */
    ENGINE_NEXT,        /* from the key that the last move has found; no key is given */
    ENGINE_PREV,        /* likewise */
} EngineMove;

typedef struct EngineItem {
    Slice key;
    Slice value;
} EngineItem;

/* What one transaction writes. A key is in one of the two, never in both. */
typedef struct EngineWrites {
    Tree tree;
    Slice merges; /* records of merge_operands_int.h, in the order in which they apply */
} EngineWrites;

/* A transaction that the engine completes by itself: see 'submit'. */
typedef struct EngineTxn EngineTxn;
struct EngineTxn {
    StoreSpace space;    /* of all that it writes */
    EngineWrites writes; /* live until it is completed */
    size_t bytes;        /* 0 if it writes nothing: then it has no space */
    bool makes_room;

    /* The engine's own. */
    EngineTxn *next;
    uint64_t number;
};

/* The outcome of a transaction that was submitted; 'err' is NULL if it is durable and visible. Any
 * thread; the transaction is gone afterwards. */
void engine_complete(EngineTxn *txn, const Error *err);

/* What a write does to the room on the disk: see store_txn_makes_room. */
typedef enum EngineNeed { ENGINE_TAKES_ROOM, ENGINE_MAKES_ROOM } EngineNeed;

typedef struct EngineOps {
    /* For a merged key, this and a cursor give the stored value as merge_operands_int.h draws it.
     */
    Status (*get)(Engine *engine, const StoreSnapshot *snapshot, Slice key, StoreRead read,
                  StoreValue *value, StoreFound *found, Error *err);

    StoreSnapshot *(*snapshot_open)(Engine *engine, StoreRead read);
    void (*snapshot_close)(StoreSnapshot *snapshot);

    /* Over the keys in ['from', 'to'). The item of a move lives until the next one. With 'is_group'
     * the keys differ only in their tails, and no move goes down. */
    EngineCursor *(*cursor_open)(Engine *engine, const StoreSnapshot *snapshot, Slice from,
                                 Slice to, bool is_group);
    Status (*cursor_move)(EngineCursor *cursor, EngineMove move, Slice key, EngineItem *item,
                          bool *found, Error *err);
    void (*cursor_close)(EngineCursor *cursor);

    /* Whether there is room for 'bytes' (I5). Does not wait for the disk. */
    Status (*room)(Engine *engine, EngineNeed need, size_t bytes, Error *err);

    /* Applies 'count' sets of writes, the later over the earlier, as one. On success all of it is
     * durable and then visible (I1, I2), after a failure nothing is (I4). */
    Status (*write)(Engine *engine, const EngineWrites *writes, size_t count, Error *err);

    /* Instead of 'write', for an engine that gives each transaction an outcome of its own. Takes
     * transactions over, linked by 'next' in the order of their commits, and calls engine_complete
     * for each. Those of one space are applied and completed in order; one that writes nothing is
     * completed after all that were submitted before. Commit thread; does not wait. */
    void (*submit)(Engine *engine, EngineTxn *first);
    void (*drain)(Engine *engine); /* returns when all that was submitted is completed */

    /* A load: see store_load_begin. NULL if the engine has no faster way than 'write'. First
     * 'load_add' any number of times. Then 'load_merge' for each part until '*is_done', a
     * step of a few milliseconds each time; two threads may do that at the same time, a part each.
     * Then 'load_link', after which what was added is durable and visible (I15). Any thread; all of
     * them wait for the disk. */
    EngineLoad *(*load_begin)(Engine *engine, uint8_t rising_kind);
    Status (*load_add)(EngineLoad *load, const EngineWrites *writes, Error *err);
    Status (*load_merge)(EngineLoad *load, unsigned part, bool *is_done, Error *err);
    Status (*load_link)(Engine *engine, EngineLoad *load, Error *err);
    void (*load_end)(EngineLoad *load); /* what was not linked is gone */

    /* Makes a folder with everything that was completed before, as of one moment between two
     * groups: see checkpoint.h. '*path' is freed with mem_free. Nobody else changes the files in
     * it. Both NULL if the engine has no files. Any thread; waits for the disk. */
    Status (*checkpoint)(Engine *engine, char **path, Error *err);
    void (*checkpoint_remove)(Engine *engine, const char *path);

    /* Whether a write would succeed. Called every second or so: after one has failed (I6), and
     * always if there is 'submit'. */
    Status (*probe)(Engine *engine, Error *err);

    Status (*drop)(Engine *engine, StoreSpace first, StoreSpace last, Error *err); /* I14 */

    /* Nothing was written for a while: frees what is kept for readers. NULL if nothing is. */
    void (*idle)(Engine *engine);

    uint64_t (*estimate)(Engine *engine, Slice from, Slice to);
    void (*usage)(Engine *engine, StoreUsage *usage);
    void (*close)(Engine *engine);
} EngineOps;

/* An engine's own struct begins with this. */
struct Engine {
    const EngineOps *ops;
    const StoreMerge *merge; /* NULL if no key is merged */
};

/* Makes a store of an engine and starts its commit thread. The engine is closed if that fails.
 * 'log' may be NULL; it gets a line when writes begin to fail and when they work again. */
MUST_USE Status store_open(Engine *engine, const Log *log, Store **out, Error *err);

Engine *store_engine(Store *store);

/* The error of a cursor that would have to wait for the disk and must not (I9). */
MUST_USE Status engine_not_in_memory(Error *err);

/* Counts damage that no read of this process has met, for store_damage. */
void store_note_damage(Store *store, const Error *err);
