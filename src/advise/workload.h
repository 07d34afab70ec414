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
 * workload_recorded takes what a server has recorded (GET .../queries, docs/seeing.md) instead:
 * texts whose parameters tell their types, with how often they ran and what they cost.
 *
 * Ownership  Everything lives in the arena given, and points into 'text'.
 * Bounds     WORKLOAD_QUERIES_MAX queries, WORKLOAD_BYTES_MAX of text.
 */
#pragma once

#include "query/plan/query_uses.h"
#include "json/property_path.h"

#define WORKLOAD_QUERIES_MAX 1000
#define WORKLOAD_BYTES_MAX   JSON_TEXT_BYTES_MAX

/* What a server has measured of a query: the mean of its executions. */
typedef struct WorkMeasure {
    bool is_known;
    double ru;
    double items;      /* that were loaded */
    double index_keys; /* that were read */
    double results;
} WorkMeasure;

typedef struct WorkQuery {
    Slice text;
    double per_second;
    const Query *query;
    QueryUses uses;
    WorkMeasure measured;
} WorkQuery;

typedef struct Workload {
    WorkQuery *list;
    size_t count;
    double per_second; /* of all */

    /* Of what a server has recorded. */
    bool is_recorded;
    double executions;
    double seconds;  /* for which it was recorded */
    size_t left_out; /* texts that are too long to be kept, or cannot be read here */
} Workload;

/* STATUS_BAD_REQUEST says which query is wrong, and why. */
MUST_USE Status workload_parse(Arena *arena, Slice text, Workload *out, Error *err);

/* 'answer' is the server's. It may have no query: '*out' has none then. A query that came with
 * values of the partition key, which is 'key' of at most PARTITION_KEY_PATHS_MAX paths, counts as
 * one that names them. STATUS_UNAVAILABLE if the answer is not understood. */
MUST_USE Status workload_recorded(Arena *arena, Json answer, const PropertyPath *key,
                                  size_t key_count, Workload *out, Error *err);
