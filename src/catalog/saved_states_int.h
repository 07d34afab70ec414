/* saved_states_int.h - what the catalogue keeps for saved_states.c. */
#pragma once

#include "catalog/move_orders_int.h"
#include "catalog/saved_states.h"

typedef struct SavedStates {
    Catalog *catalog; /* immutable after open */
    MoveOrders *moves;
    const Log *log;
    bool is_open; /* opening thread only */

    pthread_mutex_t lock; /* held while one is saved, restored or dropped; guards 'next' */
    uint32_t next;        /* number of the next one */
    _Atomic bool stop;
} SavedStates;

void saved_states_open(SavedStates *saved, Catalog *catalog, uint32_t next, MoveOrders *moves,
                       const Log *log);
void saved_states_close(SavedStates *saved); /* does nothing if it is not open */

/* At a start, before anything is served: finishes restores that were cut off, and removes what a
 * save that was cut off has left in partitions. */
MUST_USE Status saved_states_recover(SavedStates *saved, Error *err);

/* The same when this node begins to lead; 'next' is the number of the next state. A restore whose
 * partitions are not all here stays cut off: it can be repeated by hand when they are. */
MUST_USE Status saved_states_lead(SavedStates *saved, uint32_t next, Error *err);

SavedStates *catalog_saved_states(Catalog *catalog);
