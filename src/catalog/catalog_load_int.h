/* catalog_load_int.h - from the records in the store to the first snapshot. */
#pragma once

#include "catalog/record_int.h"
#include "catalog/snapshot.h"

/* Pieces of garbage that were found at the start. */
typedef struct GarbageList {
    Garbage *items;
    size_t count;
    size_t capacity;
} GarbageList;

void garbage_list_add(GarbageList *list, Garbage garbage);

/* Loads what is in the store, and undoes the moves that the end of the process has
 * interrupted (I10): their spaces are among the garbage. With 'is_read_only' the store keeps their
 * records, and only the snapshot shows no move. '*found' is false, and the snapshot empty, if the
 * store holds no catalogue yet. STATUS_CORRUPT if this program cannot have written what it holds.
 */
MUST_USE Status catalog_load(PartitionHost *host, bool is_read_only, Snapshot **snapshot,
                             CatalogCounters *counters, bool *found, GarbageList *garbage,
                             Error *err);
