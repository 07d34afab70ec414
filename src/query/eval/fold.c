/* fold.c - see fold_int.h. First every node is marked, from the leaves up; then the highest
 * constant ones are evaluated. */
#include "query/eval/fold_int.h"

#include "query/eval/eval_int.h"
#include "query/sql/functions_int.h"

#include <math.h>

/* Of a whole query: about 2 ms at worst, enough for a polygon of as many points as one may have. */
#define FOLD_STEPS_MAX ((uint64_t)50000)
#define FOLD_BYTES_MAX ((size_t)1 << 20)

static bool is_steady(const Function *function)
{
    return function->is_available && function->aggregate == AGGREGATE_NONE &&
           (function->flags & (FUNCTION_UNSTEADY | FUNCTION_SPATIAL)) == 0;
}

/* Whether it is constant if its parts are. */
static bool may_be_constant(const Node *node)
{
    return node_is_closed(node) && (node->kind != NODE_CALL || is_steady(node->call.function));
}

static Status mark(void *context, Node *node)
{
    Node *above = context;
    node->is_constant = may_be_constant(node);
    TRY(node_each_child(node, mark, node));
    above->is_constant &= node->is_constant;
    return STATUS_OK;
}

/* No literal means NaN, an infinity or -0. */
static bool can_be_spelled(const Value *value)
{
    if (value->type != JSON_NUMBER || value->is_integer)
        return true;
    return isfinite(value->number) && !(value->number == 0 && signbit(value->number));
}

static void evaluate(Run *run, Node *node)
{
    Value value;
    if (eval(run, node, &value) == STATUS_OK && can_be_spelled(&value)) {
        node->kind = NODE_LITERAL;
        node->negated = false;
        node->literal = value_keep(run->keep, &value);
    }
    arena_reset(run->scratch);
}

static Status fold(void *context, Node *node);

static Status fold_select(Run *run, Select *select)
{
    for (Source *source = select->sources; source != NULL; source = source->next) {
        if (source->subquery != NULL)
            TRY(fold_select(run, source->subquery));
        else /* FROM takes paths and calls, no literals */
            TRY(node_each_child(source->value, fold, run));
    }
    if (select->where != NULL)
        TRY(fold(run, select->where));
    for (Node *key = select->group_by.first; key != NULL; key = key->next)
        TRY(fold(run, key));
    for (SelectItem *item = select->items; item != NULL; item = item->next)
        TRY(fold(run, item->value));
    for (Order *order = select->order_by; order != NULL; order = order->next)
        TRY(fold(run, order->value));
    return STATUS_OK;
}

static Status fold(void *context, Node *node)
{
    Run *run = context;
    if (node->kind == NODE_SUBQUERY)
        return fold_select(run, node->subquery.select);
    /* The last step of a path is the name of a result, also when the query is printed. */
    if (!node->is_constant || node->kind == NODE_PATH)
        return node_each_child(node, fold, run);
    if (node->kind != NODE_LITERAL && node->kind != NODE_PARAMETER)
        evaluate(run, node);
    return STATUS_OK;
}

void fold_constants(Arena *arena, Query *query)
{
    Node above = {0};
    Error ignored; /* a budget that was too small: the node stays */
    AUTO(run_done) Run run;
    run_init(&run, (QueryOptions){.steps_max = FOLD_STEPS_MAX, .bytes_max = FOLD_BYTES_MAX}, arena,
             &ignored);
    Status status = select_each_node(query->select, mark, &above);
    ASSERT(status == STATUS_OK); /* neither visit can fail */
    status = fold_select(&run, query->select);
    ASSERT(status == STATUS_OK);
}
