/* catalog_int.h - what the files of the catalogue share: its state and its working copy. */
#pragma once

#include "base/mailbox.h"
#include "base/random.h"
#include "catalog/catalog.h"
#include "catalog/record_int.h"

#include <pthread.h>

/* Removes the data of dropped containers in the background (cleaner.c). Its own thread sleeps
 * until there is something to remove. */
typedef struct Cleaner {
    Store *store;    /* immutable after open */
    const Log *log;  /* immutable after open */
    Mailbox mailbox; /* GarbageMessages */
    _Atomic bool stop;
    pthread_t thread;
    bool is_running; /* opening thread only */
} Cleaner;

void cleaner_open(Cleaner *cleaner, Store *store, const Log *log);
void cleaner_post(Cleaner *cleaner, Garbage garbage); /* after its record is durable */
void cleaner_close(Cleaner *cleaner); /* finishes the piece under way; the rest keeps its record */

/* What is dropped in one group, to be cleaned when the group is durable. */
typedef struct GarbageList {
    Garbage *items;
    size_t count;
    size_t capacity;
} GarbageList;

void garbage_list_add(GarbageList *list, Garbage garbage);

/* Loads what is in the store (load.c). '*found' is false, and the snapshot empty, if it holds no
 * catalogue yet. STATUS_CORRUPT if what it holds cannot have been written by this program. */
MUST_USE Status catalog_load(Store *store, Snapshot **snapshot, CatalogCounters *counters,
                             bool *found, GarbageList *garbage, Error *err);

/* A group of changes being applied: the catalogue's thread only. */
typedef struct Work {
    Snapshot *snapshot; /* private copy */
    StoreTxn *txn;
    CatalogCounters *counters;
    GarbageList *garbage;
    int64_t now_s;
} Work;

/* Applies one change to the group, or leaves the group as it was and fills the change's error. */
void change_apply(Work *work, CatalogChange *change);
