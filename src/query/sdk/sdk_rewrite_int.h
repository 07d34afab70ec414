/* sdk_rewrite_int.h - the query that a client sends to each partition. */
#pragma once

#include "query/sql/query_int.h"

typedef enum RewriteShape {
    REWRITE_NOTHING, /* the query as it is */
    REWRITE_CUT,     /* OFFSET becomes 0, and LIMIT what is needed of each partition */
    REWRITE_UNCUT,   /* no OFFSET and LIMIT at all */
    REWRITE_ORDER,   /* rows with their sort keys */
    REWRITE_GROUPS,  /* partial aggregates, perhaps of groups */
    REWRITE_DCOUNT,  /* the distinct values whose number is asked for */
} RewriteShape;

/* 'text' is the tree of the query's text as the parser made it; it is changed. STATUS_BAD_REQUEST
 * if what comes out is larger or deeper than a query may be. */
MUST_USE Status sdk_rewrite(const Query *query, Arena *arena, RewriteShape shape, Select *text,
                            Slice *out, Error *err);
