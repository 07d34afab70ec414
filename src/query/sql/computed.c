/* computed.c - which queries may define a computed property.
 *
 * Such a query is evaluated on one item alone, wherever a query names the property, and its result
 * may be indexed. So it can only be an expression over the item that gives the same every time.
 */
#include "query/sql/binder_int.h"
#include "query/sql/functions_int.h"

enum { ARENA_BLOCK_BYTES = 8 << 10 };

static Status refuse(Error *err, const char *what)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Computed property query must be 'SELECT VALUE' and an expression 'FROM' the "
                     "item; it must not have %s",
                     what);
}

static Status check_node(void *context, Node *node)
{
    Error *err = context;
    if (node->kind == NODE_SUBQUERY)
        return refuse(err, "a subquery");
    if (node->kind == NODE_UDF)
        return refuse(err, "a user-defined function");
    if (node->kind == NODE_CALL) {
        const Function *function = node->call.function;
        if (function->aggregate != AGGREGATE_NONE)
            return refuse(err, "an aggregate");
        if (function->flags & FUNCTION_SPATIAL)
            return refuse(err, "a spatial function");
        if (function->flags & FUNCTION_UNSTEADY)
            return refuse(err, "a function that may answer differently the next time");
    }
    return node_each_child(node, check_node, err);
}

Status computed_check_expression(Node *value, Error *err)
{
    return check_node(err, value);
}

Status computed_check_clauses(const Select *select, Error *err)
{
    if (select->projection != PROJECT_VALUE)
        return refuse(err, "another projection");
    if (select->source_count == 0)
        return refuse(err, "no FROM");
    if (select->source_count > 1)
        return refuse(err, "a JOIN");
    const Source *source = select->sources;
    if (source->subquery != NULL)
        return refuse(err, "a subquery");
    if (source->iterate || source->value->kind != NODE_NAME)
        return refuse(err, "a FROM other than the whole item");
    if (select->where != NULL)
        return refuse(err, "a WHERE");
    if (select->group_by.count > 0)
        return refuse(err, "a GROUP BY");
    if (select->order_by != NULL)
        return refuse(err, "an ORDER BY");
    if (select->top.is_given || select->limit.is_given)
        return refuse(err, "a TOP or OFFSET LIMIT");
    if (select->distinct)
        return refuse(err, "a DISTINCT");
    return STATUS_OK;
}

Status query_check_computed(Slice text, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_BLOCK_BYTES);
    Query *query;
    Status status = query_bind_text(&arena, text, JSON_NONE, JSON_NONE, &query, err);
    if (status != STATUS_OK)
        return error_context(err, "Computed property query is not valid");
    TRY(computed_check_clauses(query->select, err));
    return computed_check_expression(query->select->items->value, err);
}
