/* eval_int.h - expressions and queries, evaluated over the values in a run's slots. */
#pragma once

#include "query/eval/query_run_int.h"
#include "query/sql/ast_int.h"

/* Fails only when the run's budget ends, or a function of a user has failed. */
MUST_USE Status eval(Run *run, const Node *node, Value *out);

typedef enum RowAnswer {
    ROW_TAKEN,
    ROW_IS_LAST, /* taken, and no other is wanted */
    ROW_REFUSED, /* not taken: the page is full without it */
} RowAnswer;

/* Gets the rows of a query one by one. '*answer' is ROW_TAKEN before the call. */
typedef Status (*RowSink)(void *context, Run *run, const Value *row, RowAnswer *answer);

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

/* Adds to a group what was counted elsewhere: one Counted for each aggregate, in their order. */
MUST_USE Status execution_add_group(Execution *exec, const Value *keys, const Counted *counted);

/* Adds a row whose projection, and what it is ordered by if it is, is this one value. */
MUST_USE Status execution_add_value(Execution *exec, const Value *value);

/* A subquery in an expression. */
MUST_USE Status select_subquery(Run *run, const Node *node, Value *out);
