/* catalog_load_int.h - from the records in the store to a snapshot: at the start, and again when
 * another node has written records. */
#pragma once

#include "catalog/catalog.h"
#include "catalog/record_int.h"

/* Pieces of garbage that were found at the start. */
typedef struct GarbageList {
    Garbage *items;
    size_t count;
    size_t capacity;
} GarbageList;

void garbage_list_add(GarbageList *list, Garbage garbage);

/* What becomes of moves that are under way in the records. */
typedef enum LoadMode {
    LOAD_TO_LEAD, /* they are undone, in the store, too (I10): their spaces are among the garbage */
    LOAD_TO_FOLLOW,    /* they go on elsewhere: the snapshot shows them */
    LOAD_TO_READ_ONLY, /* the store keeps their records, and the snapshot shows none */
} LoadMode;

/* What a load has found. */
typedef struct CatalogLoad {
    Snapshot *snapshot; /* the caller's */
    CatalogCounters counters;
    bool found; /* false, and the snapshot empty, if the store holds no catalogue yet */
    GarbageList garbage;

    /* What 'old' did not have, or had otherwise; not filled in without it. */
    struct {
        uint32_t *offers; /* numbers */
        size_t offer_count;
        size_t offer_capacity;
        ContainerList containers;
    } changed;
} CatalogLoad;

/* Loads what is in the store. Of 'old' (NULL if there is none) each object is kept whose record
 * says the same, as the same object; the others have their partitions and budgets. STATUS_CORRUPT
 * if this program cannot have written what the store holds. */
MUST_USE Status catalog_load(PartitionHost *host, LoadMode mode, const Snapshot *old,
                             CatalogLoad *out, Error *err);
void catalog_load_done(CatalogLoad *load); /* what it still has */
DEFINE_AUTO_VALUE(CatalogLoad, catalog_load_done)
