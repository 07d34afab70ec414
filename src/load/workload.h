/* workload.h - the named mixes of requests: rows of workload.def. */
#pragma once

#include "load/item_maker.h"

typedef enum WorkloadKind {
    WORKLOAD_REQUEST, /* always the same request */
    WORKLOAD_ITEMS,   /* operations on items */
    WORKLOAD_QUERY,   /* one query, all its pages */
    WORKLOAD_FEED,    /* the change feed */
} WorkloadKind;

typedef struct Workload {
    const char *name;
    WorkloadKind kind;
    ItemShape shape;
    KeyDistribution distribution;
    const char *what;
    uint8_t percent[LOAD_ITEM_OPERATION_COUNT];
} Workload;

/* NULL if there is none of that name. */
const Workload *workload_find(Slice name);

/* All of them, in the order of the table. */
const Workload *workload_list(size_t *count);
