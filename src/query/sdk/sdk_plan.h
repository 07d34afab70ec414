/* sdk_plan.h - how a client runs a query over several partitions by itself.
 *
 * SDKs ask for the plan of a query, send the query of the plan to each physical partition that one
 * of its ranges meets, and put together what comes back: rows with their sort keys are merged,
 * partial aggregates are added up, groups are joined, duplicates and what is beyond a limit are
 * dropped. What they can do they announce as features; a plan that needs more is refused by name.
 *
 * The plan is the JSON of the protocol, partitionedQueryExecutionInfoVersion 2. Its rewrittenQuery
 * is a query like any other, empty if the original does: the shapes are at the top of
 * sdk_rewrite.c.
 *
 * Ownership  A plan lives in the arena.
 * Threads    Nothing here has state.
 */
#pragma once

#include "query/plan/query_route.h"

/* SDK_FEATURE(name, text): what a client may be able to do. */
#define SDK_FEATURES                                           \
    SDK_FEATURE(AGGREGATE, "Aggregate")                        \
    SDK_FEATURE(NON_VALUE_AGGREGATE, "NonValueAggregate")      \
    SDK_FEATURE(MULTIPLE_AGGREGATES, "MultipleAggregates")     \
    SDK_FEATURE(LIST_AND_SET_AGGREGATE, "ListAndSetAggregate") \
    SDK_FEATURE(COUNT_IF, "CountIf")                           \
    SDK_FEATURE(DCOUNT, "DCount")                              \
    SDK_FEATURE(DISTINCT, "Distinct")                          \
    SDK_FEATURE(GROUP_BY, "GroupBy")                           \
    SDK_FEATURE(ORDER_BY, "OrderBy")                           \
    SDK_FEATURE(MULTIPLE_ORDER_BY, "MultipleOrderBy")          \
    SDK_FEATURE(OFFSET_AND_LIMIT, "OffsetAndLimit")            \
    SDK_FEATURE(TOP, "Top")

enum {
#define SDK_FEATURE(name, text) SDK_FEATURE_##name,
    SDK_FEATURES
#undef SDK_FEATURE
        SDK_FEATURE_COUNT
};

typedef uint32_t SdkFeatures; /* a bit for each */
#define SDK_FEATURES_ALL (((SdkFeatures)1 << SDK_FEATURE_COUNT) - 1)

/* Reads a list separated by commas; names that mean nothing here are skipped. */
SdkFeatures sdk_features_read(Slice list);

/* STATUS_BAD_REQUEST if clients have no way to put the results together, or not this one. A query
 * whose route is one key at most is never refused: what a partition answers is the result then. */
MUST_USE Status sdk_plan(const Query *query, Arena *arena, const QueryRoute *route,
                         SdkFeatures features, Json *out, Error *err);
