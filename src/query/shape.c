/* shape.c - what can be said of a query before it runs: see query.h. */
#include "query/query_int.h"

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

Status query_check_cross_partition(const Query *query, Error *err)
{
    const Select *select = query->select;
    if (select->aggregate_count == 0)
        return STATUS_OK;
    for (const SelectItem *item = select->items; item != NULL; item = item->next) {
        AggregateSearch inside = {.select = select};
        TRY(node_each_child(item->value, find_aggregate, &inside));
        if (inside.found)
            return sql_error_plain(
                err, "Compositions of aggregates and other expressions are not allowed.");
    }
    return STATUS_OK;
}
