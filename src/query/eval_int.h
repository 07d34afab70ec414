/* eval_int.h - expressions and queries, evaluated over the values in a run's slots. */
#pragma once

#include "query/ast_int.h"
#include "query/run_int.h"

/* Fails only when the run's budget ends. */
MUST_USE Status eval(Run *run, const Node *node, Value *out);

/* Gets the rows of a query one by one; sets '*more' to false to get no others. */
typedef Status (*RowSink)(void *context, Run *run, const Value *row, bool *more);

typedef enum SelectPlace { SELECT_OUTERMOST, SELECT_INSIDE } SelectPlace;

/* Runs a query with what its slots hold from outside. Rows live in the scratch arena, those of
 * groups and sorts in 'keep'. */
MUST_USE Status select_run(Run *run, const Select *select, SelectPlace place, Arena *keep,
                           RowSink sink, void *context);

uint64_t select_take_max(const Select *select); /* TOP or LIMIT */

/* What an aggregate has seen of a group: how many defined values, and of MIN and MAX the one that
 * counts, of SUM and AVG what they add up to. */
typedef struct Counted {
    uint64_t count;
    Value best;
    double sum;
    bool is_spoiled; /* by a value that the aggregate cannot take */
} Counted;

/* Adds to a group what somebody counted: one Counted for each aggregate, in their order. */
MUST_USE Status execution_add_group(Execution *exec, const Value *keys, const Counted *counted);

/* Adds a row whose projection, and what it is ordered by if it is, is this one value. */
MUST_USE Status execution_add_value(Execution *exec, const Value *value);

/* A subquery in an expression. */
MUST_USE Status select_subquery(Run *run, const Node *node, Value *out);
