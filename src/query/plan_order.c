/* plan_order.c - which index serves an ORDER BY, and what it is when none does.
 *
 * One path needs its range index. Several need a composite index of exactly these paths in this
 * sequence, all in its orders or all in the opposite ones. The service refuses the rest; so do we,
 * except for what it does not know: paths that lead through a JOIN, and computed properties, whose
 * rows are sorted. While an index is being built, rows are sorted as well.
 */
#include "index/terms.h"
#include "query/page_int.h"

static Status refuse(Planner *planner, bool is_single)
{
    return error_set(planner->err, STATUS_BAD_REQUEST, SUB_NONE, "%s",
                     is_single ? "The index path corresponding to the specified order-by item is "
                                 "excluded."
                               : "The order by query does not have a corresponding composite index "
                                 "that it can be served from.");
}

static Status single(Planner *planner, const Order *order, const PlanPath *path, OrderBy *out,
                     bool *served)
{
    if (path->count == 0) /* the documents themselves: there is no order among objects */
        return STATUS_OK;
    if (planner->schema->index == NULL ||
        !index_policy_has(planner->schema->index, path->steps, path->count))
        return refuse(planner, true);
    *served = plan_is_indexed(planner, path);
    out->values[0] = order->value;
    out->count = 1;
    out->inverted[0] = order->descending;
    out->is_down = order->descending;
    out->numbers_down = order->descending;
    out->path = plan_term_path(planner, path);
    out->spec = filter_spec(planner, path, out->path);
    return STATUS_OK;
}

static bool is_part(const CompositePart *part, const PlanPath *path)
{
    if (part->step_count != path->count)
        return false;
    for (size_t i = 0; i < path->count; i++) {
        if (part->steps[i].is_element != path->steps[i].is_element ||
            !slice_equal(part->steps[i].name, path->steps[i].name))
            return false;
    }
    return true;
}

/* Whether the index has the paths in this sequence; '*is_down': in the opposite orders. */
static bool serves(const CompositeIndex *index, const Order *orders, const PlanPath *paths,
                   size_t count, bool *is_down)
{
    if (index->part_count != count)
        return false;
    const Order *order = orders;
    *is_down = order->descending != index->parts[0].is_descending;
    for (size_t i = 0; i < count; i++, order = order->next) {
        bool is_opposite = order->descending != index->parts[i].is_descending;
        if (!is_part(&index->parts[i], &paths[i]) || is_opposite != *is_down)
            return false;
    }
    return true;
}

static void fill_composite(Planner *planner, const CompositeIndex *index, const Order *orders,
                           OrderBy *out)
{
    out->composite = index;
    out->count = index->part_count;
    out->path = terms_composite_path(planner->index.key, index);
    out->spec = composite_spec(planner->arena, index);
    const Order *order = orders;
    for (size_t i = 0; i < index->part_count; i++, order = order->next) {
        out->values[i] = order->value;
        out->inverted[i] = order->descending;
        /* SDKs that look for the _rid at which they were rely on this. */
        out->numbers_down = out->numbers_down || order->descending;
    }
}

static Status several(Planner *planner, const Select *select, const PlanPath *paths, OrderBy *out,
                      bool *served)
{
    size_t count = 0;
    const CompositeIndex *indexes = NULL;
    bool is_found = false;
    if (planner->schema->index != NULL)
        indexes = index_policy_composites(planner->schema->index, &count);
    for (size_t i = 0; i < count && !*served; i++) {
        if (!serves(&indexes[i], select->order_by, paths, select->order_count, &out->is_down))
            continue;
        is_found = true;
        *served = partition_view_has_composite(planner->view, &indexes[i]); /* it is built */
        if (*served)
            fill_composite(planner, &indexes[i], select->order_by, out);
    }
    return is_found ? STATUS_OK : refuse(planner, false);
}

Status plan_order(Planner *planner, const OrderBy **out)
{
    const Select *select = planner->query->select;
    *out = NULL;
    if (select->order_count > ORDER_PARTS_MAX)
        return refuse(planner, false);
    PlanPath *paths = ARENA_NEW_ARRAY(planner->arena, PlanPath, select->order_count);
    size_t count = 0;
    for (const Order *order = select->order_by; order != NULL; order = order->next, count++) {
        if (!plan_path(planner, order->value, &paths[count]) || !paths[count].is_precise)
            return STATUS_OK;
    }
    OrderBy *found = ARENA_NEW(planner->arena, OrderBy);
    bool served = false;
    if (count == 1)
        TRY(single(planner, select->order_by, &paths[0], found, &served));
    else
        TRY(several(planner, select, paths, found, &served));
    *out = served ? found : NULL;
    return STATUS_OK;
}
