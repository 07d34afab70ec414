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
