/* aggregate_int.h - COUNT, SUM and the others: what they remember, and what they give. */
#pragma once

#include "query/eval/tuples_int.h"
#include "query/sql/functions_int.h"

typedef struct AggregateState {
    uint64_t count; /* defined values; of COUNTIF those that are true */
    double sum;
    bool spoiled; /* a value came that has no place in the result */
    Value best;   /* of MIN and MAX */
    Value *list;  /* of MAKELIST */
    size_t list_count;
    size_t list_capacity;
    TupleSet set; /* of MAKESET */
} AggregateState;

void aggregate_init(AggregateState *state, Arena *keep);

/* What must be remembered is copied to 'keep'. */
MUST_USE Status aggregate_add(Run *run, Aggregate aggregate, AggregateState *state, Arena *keep,
                              const Value *value);
MUST_USE Status aggregate_result(Run *run, Aggregate aggregate, const AggregateState *state,
                                 Value *out);
