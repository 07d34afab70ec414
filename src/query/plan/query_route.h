/* query_route.h - which parts of the hash space can hold what a query finds.
 *
 * A container's items lie in the order of their effective partition keys (EPKs). A query whose
 * filter names partition keys needs to look only where these hash to: c.pk = 1 is one place, IN a
 * few, the first paths of a hierarchical key a range each. What follows from the filter is only
 * ever too much: every document for which WHERE can be true has its EPK in the route (I10).
 *
 * Ownership  A route lives in the arena given. Threads: those of the Query, which is immutable.
 * Bounds     QUERY_RANGES_MAX; where a filter names more, the route is coarser than it could be.
 *            Whatever the filter, it is made in some milliseconds at most.
 */
#pragma once

#include "partition/epk.h"
#include "query/sql/sql.h"

#define QUERY_RANGES_MAX 4096

typedef struct QueryRange {
    Slice from; /* [from, to) in bytes of EPKs */
    Slice to;
    bool is_key;      /* exactly one full key, and 'from' is its EPK */
    PartitionKey key; /* its values; or the first ones, with which all keys in the range begin */
} QueryRange;

typedef struct QueryRoute {
    const QueryRange *ranges; /* sorted, disjoint */
    size_t count;             /* 0 without 'is_all' if the query finds nothing anywhere */
    bool is_all;              /* the filter tells nothing; there are no ranges then */
    bool is_one_partition;    /* that serves all keys there are; set by the caller of sdk_plan() */
} QueryRoute;

void query_route(const Query *query, Arena *arena, const PartitionKeyDefinition *definition,
                 QueryRoute *out);
