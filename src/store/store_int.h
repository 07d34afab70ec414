/* store_int.h - the structs that store.c, txn.c, cursor.c and commit.c share. */
#pragma once

#include "base/mailbox.h"
#include "base/object_pool.h"
#include "store/engine_int.h"

#include <pthread.h>

/* The commit thread and its queue: see commit.c. */
typedef struct Committer {
    /* Immutable after committer_start. */
    Engine *engine;
    const Log *log;
    pthread_t thread;

    /* Any thread posts, the commit thread takes. */
    Mailbox mailbox;
    QueueNode stop; /* posted last, when the store closes */

    /* Commit thread only. */
    uint64_t probed_at_us;
    uint64_t log_failure_at_us; /* no failure is logged before this */
    bool is_failure_logged;     /* the present one */
    EngineWrites *group;
    size_t group_capacity;

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    Error failure; /* of the newest write; STATUS_OK if it succeeded. I6 */
} Committer;

/* For store_damage. */
typedef struct Damage {
    const Log *log;         /* immutable after open; may be NULL */
    _Atomic uint64_t reads; /* that met damage */

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    Error newest;
} Damage;

struct Store {
    Engine *engine;
    Committer committer;
    Damage damage;
    ObjectPool txns; /* that have ended; store_txn_begin empties one and uses it again */
};

/* What a transaction had written when a savepoint was set. */
typedef struct Savepoint {
    size_t undo_count;
    size_t merge_bytes;
} Savepoint;

/* A write since the first savepoint. */
typedef struct Undo {
    TreeEntry
        *entry; /* borrowed from the tree: it is there again when its turn to be undone comes */
    TreeEntry *before; /* a reference; NULL if there was none */
} Undo;

struct StoreTxn {
    QueueNode node; /* in the committer's queue, once it is committed */
    Store *store;
    bool has_space;   /* something was written */
    StoreSpace space; /* all that it writes is in this one */
    Tree writes;
    Buf merges; /* records of merge_operands_int.h: operands are not looked up, so they need no tree
                 */
    bool makes_room;

    Savepoint *savepoints;
    size_t savepoint_count;
    size_t savepoint_capacity;
    Undo *undo; /* empty if there is no savepoint */
    size_t undo_count;
    size_t undo_capacity;

    StoreCompletion completion;
    EngineTxn submitted; /* for an engine that completes transactions by itself */
};

/* Frees the spare transactions, when the store closes. */
void store_free_txns(Store *store);

/* Reads a key as a reader sees it: see merge_read. */
MUST_USE Status engine_get(Engine *engine, const StoreSnapshot *snapshot, Slice key, StoreRead read,
                           StoreValue *value, StoreFound *found, Error *err);

MUST_USE Status committer_start(Committer *committer, Engine *engine, const Log *log, Error *err);
void committer_push(Committer *committer, StoreTxn *txn);
MUST_USE Status committer_health(Committer *committer, Error *err);

/* Returns when everything that was pushed before has been written and completed. */
void committer_stop(Committer *committer);

/* Passes the outcome of a read on, and remembers it if it met damage. */
Status store_note_read(Store *store, Status status, const Error *err);

/* A cursor over the engine's keys with 'writes', which may be NULL, laid over them. */
StoreCursor *cursor_open(Store *store, const StoreSnapshot *snapshot, const Tree *writes,
                         StoreSpace space, Slice from, Slice to);

/* Over a group of the engine's keys: see store_group_open. */
StoreCursor *cursor_open_group(Store *store, const StoreSnapshot *snapshot, StoreSpace space,
                               Slice head);
