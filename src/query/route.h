/* route.h - which parts of the hash space can hold what a query finds. */
#pragma once

#include "partition/key.h"
#include "query/query.h"

/* [from, to) in bytes of EPKs; 'is_key': exactly one full key, whose EPK is 'from'. */
typedef struct QueryRange {
    Slice from;
    Slice to;
    bool is_key;
} QueryRange;

/* Sorted and disjoint; none, and not 'is_all': nothing is found. */
typedef struct QueryRoute {
    const QueryRange *ranges;
    size_t count;
    bool is_all;
} QueryRoute;

/* Ranges live in the arena. */
void query_route(const Query *query, Arena *arena, const PartitionKeyDefinition *definition,
                 QueryRoute *out);
