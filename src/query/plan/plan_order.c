/* plan_order.c - which index serves an ORDER BY, and what it is when none does.
 *
 * One path needs its range index. Several need a composite index of exactly these paths in this
 * sequence, all in its orders or all in the opposite ones. The service refuses the rest; so do we,
 * except for what it does not know: paths that lead through a JOIN, and computed properties, whose
 * rows are sorted. While an index is being built, rows are sorted as well. Where the order is
 * allowed, a longer composite index is better if the filter ties its first parts to values.
 */
#include "index/terms.h"
#include "query/plan/plan_int.h"
#include "query/plan/query_traits.h"

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

/* Whether the last parts of the index are the paths in this sequence; '*is_down': in the opposite
 * orders. */
static bool serves(const CompositeIndex *index, const Order *orders, const PlanPath *paths,
                   size_t count, bool *is_down)
{
    if (index->part_count < count)
        return false;
    const CompositePart *parts = index->parts + index->part_count - count;
    const Order *order = orders;
    *is_down = order->descending != parts[0].is_descending;
    for (size_t i = 0; i < count; i++, order = order->next) {
        bool is_opposite = order->descending != parts[i].is_descending;
        if (!is_part(&parts[i], &paths[i]) || is_opposite != *is_down)
            return false;
    }
    return true;
}

/* The values to which the filter ties the first parts of an index, as the index has them. */
static bool tie_parts(Planner *planner, const CompositeIndex *index, size_t count, Slice *out)
{
    PropertyPath paths[COMPOSITE_PARTS_MAX];
    Json values[COMPOSITE_PARTS_MAX];
    for (size_t i = 0; i < count; i++) {
        const CompositePart *part = &index->parts[i];
        Slice *names = ARENA_NEW_ARRAY(planner->arena, Slice, part->step_count);
        for (size_t j = 0; j < part->step_count; j++)
            names[j] = part->steps[j].name;
        paths[i] = (PropertyPath){.segments = names, .count = part->step_count};
    }
    if (query_fixed(planner->query, planner->arena, paths, count, values) < count)
        return false;
    AUTO(buf_done) Buf prefix;
    buf_init(&prefix, TERM_VALUE_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        bool ignored = true; /* what shares the term is in the same order, and WHERE tells it */
        if (json_is(values[i], JSON_UNDEFINED))
            return false;
        terms_put_part(&prefix, values[i], index->parts[i].is_descending, &ignored);
    }
    *out = arena_copy(planner->arena, buf_view(&prefix));
    return true;
}

static void fill_composite(Planner *planner, const CompositeIndex *index, const Order *orders,
                           size_t count, OrderBy *out)
{
    out->composite = index;
    out->count = count;
    out->path = terms_composite_path(planner->index.key, index);
    out->spec = composite_spec(planner->arena, index);
    const Order *order = orders;
    for (size_t i = 0; i < count; i++, order = order->next) {
        out->values[i] = order->value;
        out->inverted[i] = order->descending;
        /* SDKs that look for the _rid at which they were rely on this. */
        out->numbers_down = out->numbers_down || order->descending;
    }
}

/* An index that is built and serves the order after as many parts as possible that the filter
 * ties to a value; without any only if 'is_whole'. */
static void find_composite(Planner *planner, const Select *select, const PlanPath *paths,
                           bool is_whole, OrderBy *out, bool *served)
{
    size_t count = 0;
    const CompositeIndex *indexes = index_policy_composites(planner->schema->index, &count);
    size_t tied = 0;
    for (size_t i = 0; i < count; i++) {
        const CompositeIndex *index = &indexes[i];
        OrderBy order = {0};
        if (index->array_steps > 0 ||
            !serves(index, select->order_by, paths, select->order_count, &order.is_down))
            continue;
        size_t more = index->part_count - select->order_count;
        if ((more > 0 ? more <= tied : *served || !is_whole) ||
            !partition_view_has_composite(planner->view, index) ||
            !tie_parts(planner, index, more, &order.prefix))
            continue;
        fill_composite(planner, index, select->order_by, select->order_count, &order);
        *out = order;
        *served = true;
        tied = more;
    }
}

/* Whether the policy has an index of just these keys, as the service wants it. */
static bool has_composite(const Planner *planner, const Select *select, const PlanPath *paths)
{
    size_t count = 0;
    const CompositeIndex *indexes = NULL;
    bool is_down = false;
    if (planner->schema->index != NULL)
        indexes = index_policy_composites(planner->schema->index, &count);
    for (size_t i = 0; i < count; i++) {
        if (indexes[i].part_count == select->order_count &&
            serves(&indexes[i], select->order_by, paths, select->order_count, &is_down))
            return true;
    }
    return false;
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
    else if (!has_composite(planner, select, paths))
        return refuse(planner, false);
    if (planner->schema->index != NULL)
        find_composite(planner, select, paths, count > 1, found, &served);
    *out = served ? found : NULL;
    return STATUS_OK;
}
