/* query_traits.c - what can be said of a query before it runs: see query.h. */
#include "query/plan/query_traits_int.h"
#include "query/sql/functions_int.h"

bool select_is_streaming(const Select *select)
{
    if (!select->over_container || select->distinct || select->is_grouped ||
        select->order_by != NULL)
        return false;
    if (select->top.is_given || select->offset.is_given || select->limit.is_given)
        return false;
    return select->sources->subquery == NULL || select_is_streaming(select->sources->subquery);
}

bool query_is_streaming(const Query *query)
{
    return select_is_streaming(query->select);
}

bool query_calls_functions(const Query *query)
{
    return query->user_call_count > 0;
}

/* Whether the node is the path, seen from the documents that 'source' stands for. */
static bool is_path(const Node *node, const Source *source, PropertyPath path)
{
    if (node->kind != NODE_PATH || node->path.base->kind != NODE_NAME ||
        node->path.base->name.slot != source->slot)
        return false;
    size_t count = 0;
    for (const Step *step = node->path.first; step != NULL; step = step->next, count++) {
        if (count == path.count || step->index != NULL ||
            !slice_equal(step->name, path.segments[count]))
            return false;
    }
    return count == path.count;
}

static bool is_constant(const Node *node)
{
    return node->kind == NODE_LITERAL || node->kind == NODE_PARAMETER;
}

/* path = constant, or the other way round; NULL if the node is something else. */
static const Node *fixed_value(const Node *node, const Source *source, PropertyPath path)
{
    if (node->kind != NODE_CHAIN || node->chain.links != node->chain.last ||
        node->chain.links->op != BINARY_EQUAL)
        return NULL;
    const Node *left = node->chain.first;
    const Node *right = node->chain.links->right;
    if (is_path(left, source, path) && is_constant(right))
        return right;
    return is_constant(left) && is_path(right, source, path) ? left : NULL;
}

static const Node *find_fixed(const Node *where, const Source *source, PropertyPath path)
{
    if (where->kind != NODE_AND)
        return fixed_value(where, source, path);
    const Node *found = NULL;
    for (const Node *part = where->list.first; part != NULL && found == NULL; part = part->next)
        found = fixed_value(part, source, path);
    return found;
}

size_t query_fixed(const Query *query, Arena *arena, const PropertyPath *paths, size_t count,
                   Json *values)
{
    const Select *select = query->select;
    const Source *source = select->sources;
    bool is_whole = select->where != NULL && select->over_container && source->subquery == NULL &&
                    !source->iterate && source->value->kind == NODE_NAME;
    for (size_t i = 0; i < count; i++) {
        const Node *node = is_whole ? find_fixed(select->where, source, paths[i]) : NULL;
        if (node == NULL)
            return i;
        const Value *value = node->kind == NODE_LITERAL ? &node->literal : &node->parameter.value;
        values[i] = value_json(arena, arena, value);
    }
    return count;
}

static bool is_every_row(const Node *arg, const Source *source)
{
    return (arg->kind == NODE_LITERAL && value_defined(&arg->literal)) ||
           (arg->kind == NODE_PARAMETER && value_defined(&arg->parameter.value)) ||
           (arg->kind == NODE_NAME && arg->name.slot == source->slot);
}

bool select_is_dcount(const Select *select)
{
    const Source *source = select->sources;
    const Select *inner = source->subquery;
    if (inner == NULL || !inner->distinct || inner->is_grouped || select->source_count != 1 ||
        source->iterate)
        return false;
    if (inner->sources->subquery != NULL && !select_is_streaming(inner->sources->subquery))
        return false;
    if (select->where != NULL || select->group_by.count > 0 || select->top.is_given ||
        select->limit.is_given || select->items == NULL || select->items->next != NULL)
        return false;
    const Function *function = item_aggregate(select, select->items);
    return function != NULL && function->aggregate == AGGREGATE_COUNT &&
           is_every_row(select->items->value->call.args.first, source);
}

/* Whether a subquery in FROM, or one in its FROM, is distinct. */
static bool is_over_distinct(const Select *select)
{
    const Select *inner = select->sources == NULL ? NULL : select->sources->subquery;
    return inner != NULL && (inner->distinct || is_over_distinct(inner));
}

typedef struct AggregateSearch {
    const Select *select;
    bool found;
} AggregateSearch;

/* Looks for an aggregate over the rows of the query itself; those of subqueries are their own. */
static Status find_aggregate(void *context, Node *node)
{
    AggregateSearch *search = context;
    if (node->kind == NODE_CALL && node->call.owner == search->select)
        search->found = true;
    return search->found ? STATUS_OK : node_each_child(node, find_aggregate, context);
}

/* SDKs keep these in 32 bits with a sign; for ORDER BY RANK they look for themselves. */
static Status check_limits(const Select *select, Error *err)
{
    if (select->by_rank)
        return STATUS_OK;
    if (select->offset.value > QUERY_LIMIT_MAX)
        return sql_error_plain(err, "The OFFSET count value exceeds the maximum allowed value.");
    if (select->limit.value > QUERY_LIMIT_MAX)
        return sql_error_plain(err, "The LIMIT count value exceeds the maximum allowed value.");
    return STATUS_OK;
}

Status query_check_cross_partition(const Query *query, Error *err)
{
    const Select *select = query->select;
    TRY(check_limits(select, err));
    if (select->aggregate_count == 0)
        return STATUS_OK;
    for (const SelectItem *item = select->items; item != NULL; item = item->next) {
        AggregateSearch inside = {.select = select};
        TRY(node_each_child(item->value, find_aggregate, &inside));
        if (inside.found)
            return sql_error_plain(
                err, "Compositions of aggregates and other expressions are not allowed.");
    }
    if (is_over_distinct(select) && !select_is_dcount(select))
        return sql_error_plain(err, "Aggregates over a subquery with DISTINCT are not supported, "
                                    "but for a plain COUNT of its rows.");
    return STATUS_OK;
}
