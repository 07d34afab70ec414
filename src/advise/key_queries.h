/* key_queries.h - what a workload costs with a partition key: which queries go to one partition.
 *
 * The router is the server's own (query/plan/query_route.h). The price of visiting a partition is
 * that of the charge model; what a query finds there costs the same with any key, and is left out.
 */
#pragma once

#include "advise/key_layout.h"
#include "advise/workload.h"
#include "throughput/charge.h"

typedef struct KeyQueries {
    double one_share;   /* of the queries a second: those that visit one partition */
    double visits_mean; /* partitions that a query visits, on average */
    double look_ru_s;   /* request units a second for visiting, of all queries */
    double least_ru_s;  /* the same if each query visited one partition */
    float *visits;      /* by query; in the arena */
} KeyQueries;

/* 'work' has at least one query. 'layout' is that of the key: it tells how far the items of a
 * hierarchical key with the same first value are apart. */
void key_queries_make(const KeyCandidate *key, const KeyLayout *layout, const Workload *work,
                      uint32_t partitions, const ChargeModel *model, Arena *arena, KeyQueries *out);
