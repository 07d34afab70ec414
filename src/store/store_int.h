/* store_int.h - the structs that store.c, txn.c, cursor.c and commit.c share. */
#pragma once

#include "base/mailbox.h"
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
    Tree *group;
    size_t group_capacity;

    /* Guarded by 'lock'. */
    pthread_mutex_t lock;
    Error failure; /* of the newest write; STATUS_OK when it worked */
} Committer;

struct Store {
    Engine *engine;
    Committer committer;
};

struct StoreTxn {
    QueueNode node; /* in the committer's queue, once it is committed */
    Store *store;
    Tree writes;

    /* What 'writes' was when each savepoint was set. */
    Tree *savepoints;
    size_t savepoint_count;
    size_t savepoint_capacity;

    StoreCompletion completion;
};

MUST_USE Status committer_start(Committer *committer, Engine *engine, const Log *log, Error *err);
void committer_push(Committer *committer, StoreTxn *txn);
MUST_USE Status committer_health(Committer *committer, Error *err);

/* Ends when everything that was pushed before has been written and completed. */
void committer_stop(Committer *committer);

/* A cursor over the engine's keys with 'writes', which may be NULL, laid over them. */
StoreCursor *cursor_open(Store *store, const StoreSnapshot *snapshot, const Tree *writes,
                         StoreSpace space, Slice from, Slice to);
