/* move_thread_int.h - the thread that splits and merges, one move at a time: see move_orders.h. */
#pragma once

#include "catalog/move_driver_int.h"

typedef struct MoveThread {
    Catalog *catalog; /* immutable after open, as are 'clock', 'policy' and 'driver' */
    const Clock *clock;
    MovePolicy policy;
    MoveDriver driver;
    MoveOrders orders;     /* any thread */
    MoveBackoffs backoffs; /* this thread only */
    pthread_t thread;
    bool is_running; /* opening thread only */
} MoveThread;

typedef struct MoveThreadOptions {
    Catalog *catalog;
    Cleaner *cleaner;
    const CatalogPlacement *placement; /* NULL if there is none */
    MoveRules rules;
    ProvisionRules provision;
    const Clock *clock;
    const Log *log;
} MoveThreadOptions;

MUST_USE Status move_thread_open(MoveThread *moves, const MoveThreadOptions *options, Error *err);

/* Cancels the move under way, which the next start undoes. The catalogue must still run. Does
 * nothing if the thread was not opened. */
void move_thread_close(MoveThread *moves);

/* See catalog_is_scaling. */
bool move_thread_is_scaling(MoveThread *moves, const Snapshot *snapshot,
                            const Container *container);
