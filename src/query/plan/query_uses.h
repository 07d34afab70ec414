/* query_uses.h - which paths of documents a query asks for, and how: what an index could serve.
 *
 * Paths are text as in indexing policies, "/a/b" or "/tags/[]/name", with "[]" for any element of
 * an array. Paths that only the projection names are left out, since no index is needed for them.
 *
 * Ownership  What comes out lives in the arena given. Threads: those of the Query, which is
 *            immutable.
 * Bounds     QUERY_USES_MAX; a query that names more says so.
 */
#pragma once

#include "query/sql/sql.h"

#define QUERY_USES_MAX 256

typedef enum QueryUseKind {
    QUERY_USE_EQUAL,      /* path = constant, which must hold for every row */
    QUERY_USE_FILTER,     /* any other place in WHERE or FROM */
    QUERY_USE_ORDER_UP,   /* ORDER BY, in its sequence */
    QUERY_USE_ORDER_DOWN, /* the same, DESC */
    QUERY_USE_GROUP,      /* GROUP BY, DISTINCT, or the argument of an aggregate */
} QueryUseKind;

typedef struct QueryUse {
    Slice path;
    QueryUseKind kind;
} QueryUse;

typedef struct QueryUses {
    const QueryUse *list;
    size_t count;
    bool is_complete;  /* false if a part of the query may use any path */
    uint64_t rows_max; /* of TOP or LIMIT; 0 if neither is given */
} QueryUses;

void query_uses(const Query *query, Arena *arena, QueryUses *out);
