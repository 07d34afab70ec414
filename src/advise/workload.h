/* workload.h - the queries that a container must serve, and how often.
 *
 *     [{"query": "SELECT ...", "parameters": [{"name": "@p", "value": 1}], "perSecond": 12}, ...]
 *     ["SELECT ...", ...]                      each once a second
 *     SELECT ...                               plain text: a query on each line, once a second;
 *     -- a line that begins so is skipped
 *
 * A parameter without a value stands for some text, or for a number where only a number can be:
 * which partitions a query visits seldom depends on it.
 *
 * Ownership  Everything lives in the arena given, and points into 'text'.
 * Bounds     WORKLOAD_QUERIES_MAX queries, WORKLOAD_BYTES_MAX of text.
 */
#pragma once

#include "query/plan/query_uses.h"

#define WORKLOAD_QUERIES_MAX 1000
#define WORKLOAD_BYTES_MAX   JSON_TEXT_BYTES_MAX

typedef struct WorkQuery {
    Slice text;
    double per_second;
    const Query *query;
    QueryUses uses;
} WorkQuery;

typedef struct Workload {
    WorkQuery *list;
    size_t count;
    double per_second; /* of all */
} Workload;

/* STATUS_BAD_REQUEST says which query is wrong, and why. */
MUST_USE Status workload_parse(Arena *arena, Slice text, Workload *out, Error *err);
