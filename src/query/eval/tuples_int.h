/* tuples_int.h - distinct tuples of values, in the order in which they came.
 *
 * DISTINCT, GROUP BY, MAKESET and the set functions all ask whether a tuple has been seen before.
 * Equality is deep, and undefined equals undefined.
 *
 * Ownership  Everything lives in the arena given to tuples_init; what is added is copied there.
 * Bounds     Every comparison is charged to the run, so that values chosen to collide end a query
 *            instead of stopping a thread.
 */
#pragma once

#include "query/eval/query_run_int.h"

typedef struct TupleSet {
    Arena *arena;
    uint32_t width; /* values in a tuple */
    uint32_t count;
    uint32_t capacity;
    Value *tuples;    /* 'count' times 'width' */
    uint64_t *hashes; /* of each tuple */
    uint32_t *table;  /* 2 * capacity places: index + 1 of a tuple, 0 if free */
} TupleSet;

void tuples_init(TupleSet *set, Arena *arena, uint32_t width);

/* '*index' is the place of the tuple; '*added' is false if it was there before. */
MUST_USE Status tuples_add(Run *run, TupleSet *set, const Value *tuple, uint32_t *index,
                           bool *added);

MUST_USE Status tuples_has(Run *run, const TupleSet *set, const Value *tuple, bool *found);
