/* mover_int.h - the thread that splits and merges: see moves.h. */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "catalog/catalog_int.h"
#include "catalog/moves.h"

#include <pthread.h>

enum { MOVE_ORDERS_MAX = 64, MOVE_RESTS_MAX = 64 };

typedef struct WaitingOrder {
    MoveOrder order; /* its cut is the text below */
    char cut[2 * EPK_BYTES_MAX];
    uint64_t event;
} WaitingOrder;

/* A partition that a move has failed on, and until when it is left alone. */
typedef struct MoveRest {
    StoreSpace space; /* 0: none */
    uint64_t until_us;
} MoveRest;

/* Where sources that are no longer read from are announced; outlives the mover as long as any is
 * read from. */
typedef struct MoverYard {
    _Atomic uint32_t refs;
    pthread_mutex_t lock; /* guards 'cleaner' */
    Cleaner *cleaner;     /* NULL: it is closed; the next start cleans */
} MoverYard;

typedef struct Mover {
    Catalog *catalog; /* immutable after open */
    MoverYard *yard;
    MoveRules rules;
    ProvisionRules provision;
    const Clock *clock;
    const Log *log;

    pthread_mutex_t lock; /* guards from here ... */
    pthread_cond_t changed;
    bool stop;
    bool is_noticed;
    WaitingOrder orders[MOVE_ORDERS_MAX]; /* the oldest first */
    size_t order_count;
    MoveEvent events[MOVE_EVENTS_MAX]; /* a ring: event n is at n % MOVE_EVENTS_MAX */
    uint64_t event_count;
    MoveCounts counts; /* ... to here */

    MoveRest rests[MOVE_RESTS_MAX]; /* the thread's own */
    size_t rest_next;

    pthread_t thread;
    bool is_running; /* opening thread only */
} Mover;

typedef struct MoverOptions {
    Catalog *catalog;
    Cleaner *cleaner;
    MoveRules rules;
    ProvisionRules provision;
    const Clock *clock;
    const Log *log;
} MoverOptions;

MUST_USE Status mover_open(Mover *mover, const MoverOptions *options, Error *err);

/* All of these may be called of a mover that was not opened. */
void mover_notice(Mover *mover); /* an offer was replaced, or the map has changed */

/* Cancels the move under way, which the next start undoes. While the catalogue still runs. */
void mover_close(Mover *mover);

MUST_USE Status mover_order(Mover *mover, const MoveOrder *order, uint64_t *event, Error *err);
size_t mover_events(Mover *mover, MoveEvent *out, size_t max);

/* The rest of moves.h, in mover_seen.c. */
void mover_count(Mover *mover, const MoveEvent *event); /* that is over; under the lock */
MoveCounts mover_counts(Mover *mover);
bool mover_is_moving(Mover *mover, const Container *container);
bool mover_is_scaling(Mover *mover, const Snapshot *snapshot, const Container *container);
size_t mover_plan_merges(const Mover *mover, const Snapshot *snapshot, const Container *container,
                         Arena *arena, MoveOrder **out);

/* How many partitions a container has at least and, if that takes merges, at most: 'needed' to
 * serve its throughput, and 'kept', as a new one would get. Both are 0 if it has none of its own.
 */
typedef struct PartitionCounts {
    uint32_t needed;
    uint32_t kept;
} PartitionCounts;
PartitionCounts mover_partition_counts(const Snapshot *snapshot, const Container *container,
                                       const ProvisionRules *rules);
