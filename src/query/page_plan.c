/* page_plan.c - the plan of one target: which documents are looked at, and in which order.
 *
 * Costs are in units of an index key that is read in its turn. Fetching a document by its number
 * costs a dozen of them, one in a scan three. What is estimated comes from the index itself; see
 * filter_estimate.
 */
#include "query/page_int.h"

enum {
    COST_FETCH = 12,
    COST_SCAN = 3,
    COST_COVERED = 1, /* of a document that is made of its value in the index */
    WALK_KEYS_MIN = 4096,
    CACHED_FETCHES_MAX = 10000,
};

/* What a walk may read of the index before the page pauses, however much planning has cost. */
#define WALK_KEYS_MAX ((uint64_t)1 << 20)

typedef struct Costs {
    double rows;   /* results that the page is to have */
    double all;    /* documents in the partition */
    double found;  /* of those, what the filter lets pass */
    double looked; /* documents that a scan would look at */
} Costs;

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static Costs estimate_costs(const Page *page, const Reading *reading, uint64_t found)
{
    Costs costs = {
        .rows = page->rows_wanted, /* by all targets: what others have found is not known */
        .all = (double)partition_view_items(reading->planner.view),
        .found = (double)found,
    };
    if (!page->is_streaming)
        costs.rows = costs.all;
    double share = costs.found > 0 && costs.all > costs.found ? costs.all / costs.found : 1;
    costs.looked = lesser(costs.all, costs.rows * share);
    return costs;
}

static Status open_with(Page *page, Reading *reading, SourceOptions options, PageMode mode,
                        const char *how)
{
    options.epk_from = reading->epk_from;
    options.epk_to = reading->epk_to;
    options.position = reading->position;
    options.clock = page->options->clock;
    options.deadline_us = page->options->deadline_us;
    reading->mode = mode;
    explain_reading(page, reading, how);
    return source_open(&reading->planner, &options, &reading->source);
}

static Status open_scan(Page *page, Reading *reading)
{
    /* In order of their numbers the documents that are all returned come as they were made, which
     * is what people expect to see; otherwise the order of keys is several times faster. */
    bool is_natural =
        page->is_streaming && page->query->select->where == NULL && page->options->key == NULL;
    bool by_number = reading->mode == PAGE_NUMBER ||
                     (reading->mode == PAGE_ANY && plan_prefers(&reading->planner, is_natural));
    SourceOptions options = {
        .kind = SOURCE_SCAN,
        .scan_order = by_number ? SCAN_BY_NUMBER : SCAN_BY_EPK,
    };
    return open_with(page, reading, options, by_number ? PAGE_NUMBER : PAGE_EPK,
                     page->options->key != NULL ? "scan of the logical partition" : "full scan");
}

static Status open_set(Page *page, Reading *reading)
{
    Planner *planner = &reading->planner;
    SourceOptions options = {.kind = SOURCE_SET};
    bool exact = true;
    TRY(filter_read(planner, reading->filter, planner->arena, &options.set, &exact));
    if (!planner->is_out_of_budget) {
        /* So many would only drive out of the cache what others read again. */
        partition_view_use_cache(planner->view,
                                 page->is_streaming || options.set.count <= CACHED_FETCHES_MAX);
        return open_with(page, reading, options, PAGE_NUMBER, "index");
    }
    planner->is_out_of_budget = false; /* larger than was thought */
    return open_scan(page, reading);
}

/* ---- in the order of values ---- */

/* The part of a filter that is a range of values of this very path. */
static Filter *find_range(Filter *filter, TermPath path)
{
    Filter *first = filter->kind == FILTER_AND ? filter->children : filter;
    for (Filter *part = first; part != NULL; part = filter == first ? NULL : part->next) {
        if ((part->kind == FILTER_RANGE || part->kind == FILTER_TERM) && part->path == path)
            return part;
    }
    return NULL;
}

static bool is_presence(const Filter *range)
{
    return range->kind == FILTER_TERM && range->from.len == 1 && range->from.ptr[0] == TERM_PRESENT;
}

static void walk_range(Planner *planner, Filter *range, SourceOptions *options)
{
    static const char first[] = {TERM_NULL};
    static const char end[] = {TERM_END};
    options->has_range = true;
    range->is_walked = true;
    if (is_presence(range)) { /* IS_DEFINED(c.x): every value */
        options->from = slice_make(first, 1);
        options->to = slice_make(end, 1);
        return;
    }
    options->from = range->from;
    options->to = range->kind == FILTER_TERM ? plan_after(planner, range->from) : range->to;
}

/* The range of its composite index in which an order can be walked; false: all of it. */
static bool range_of_order(Planner *planner, Filter *filter, const OrderBy *order,
                           CompositeRange *out)
{
    if (composite_range(planner, filter, order->composite, out) &&
        slice_starts_with(out->from, order->prefix))
        return true;
    *out = (CompositeRange){.from = order->prefix, .to = plan_after(planner, order->prefix)};
    return order->prefix.len > 0;
}

static void walk_composite(Planner *planner, Filter *filter, const OrderBy *order,
                           SourceOptions *options)
{
    CompositeRange range;
    if (!range_of_order(planner, filter, order, &range))
        return;
    options->has_range = true;
    options->from = range.from;
    options->to = range.to;
    for (size_t i = 0; i < range.parts; i++)
        range.used[i]->is_walked = true;
}

/* What the rest of the filter costs and finds; false if there is none. */
static bool estimate_rest(const Filter *filter, IndexEstimate *out)
{
    *out = (IndexEstimate){.items = UINT64_MAX};
    if (filter->kind != FILTER_AND) {
        *out = filter->estimate;
        return filter->kind != FILTER_ALL && !filter->is_walked;
    }
    bool has_rest = false;
    for (const Filter *part = filter->children; part != NULL; part = part->next) {
        if (part->is_walked)
            continue;
        has_rest = true;
        out->keys += part->estimate.keys;
        out->items = part->estimate.items < out->items ? part->estimate.items : out->items;
    }
    return has_rest;
}

/* The path of an order if nothing else of documents is asked for, and if all of its items are there
 * for this query: then most need not be fetched. */
static Status find_covered(Page *page, Reading *reading, const OrderBy *order, const PlanPath **out)
{
    Planner *planner = &reading->planner;
    const QueryPageOptions *o = page->options;
    const QueryTarget *target = &o->targets[reading->target];
    bool is_whole = target->is_whole && o->key == NULL &&
                    slice_equal(reading->epk_from, target->epk_from) &&
                    slice_equal(reading->epk_to, target->epk_to);
    PlanPath *path = ARENA_NEW(planner->arena, PlanPath);
    *out = NULL;
    if (!is_whole || order->composite != NULL || page->needs_system ||
        !plan_asks_only(planner, order->path, path) || !plan_prefers(planner, true))
        return STATUS_OK;
    NumberSet gone;
    bool complete = true;
    TRY(partition_view_gone(planner->view, planner->arena, &gone, &complete, planner->err));
    if (complete && gone.count == 0)
        *out = path;
    return STATUS_OK;
}

/* Along the values, with what else the filter knows as a set if that is cheap to have. */
static Status open_walk(Page *page, Reading *reading, const OrderBy *order, const PlanPath *covers,
                        PageMode mode, const char *how)
{
    Planner *planner = &reading->planner;
    SourceOptions options = {.kind = SOURCE_WALK, .order = order, .covers = covers};
    Filter *range = find_range(reading->filter, order->path);
    if (range != NULL)
        walk_range(planner, range, &options);
    else if (order->composite != NULL)
        walk_composite(planner, reading->filter, order, &options);
    IndexEstimate rest;
    if (estimate_rest(reading->filter, &rest)) {
        Costs costs = estimate_costs(page, reading, rest.items);
        double cost = covers != NULL ? COST_COVERED : COST_FETCH;
        /* Walking looks at this many documents without the set. */
        if (plan_prefers(planner, (double)rest.keys < cost * costs.looked)) {
            bool exact = true;
            TRY(filter_read(planner, reading->filter, planner->arena, &options.set, &exact));
            options.has_set = !planner->is_out_of_budget;
            planner->is_out_of_budget = false;
        }
    }
    return open_with(page, reading, options, mode, how);
}

/* Whether the filter is a range of the order that is asked for. A walk passes nothing else then,
 * and there is nothing to choose, nor to estimate. */
static bool is_range_of_order(Reading *reading)
{
    const OrderBy *order = reading->order;
    Filter *filter = reading->filter;
    if (order == NULL)
        return false;
    if (find_range(filter, order->path) == filter)
        return true;
    CompositeRange range;
    size_t parts = filter->kind == FILTER_AND ? filter->child_count : 1;
    return order->composite != NULL && range_of_order(&reading->planner, filter, order, &range) &&
           range.parts == parts;
}

/* Whether to fetch and sort what the filter finds instead of walking in order past what it does
 * not. */
static bool is_sorting_cheaper(const Page *page, const Reading *reading, const PlanPath *covers)
{
    const IndexEstimate *estimate = &reading->filter->estimate;
    Costs costs = estimate_costs(page, reading, estimate->items);
    double sort_cost = (double)estimate->keys + COST_FETCH * costs.found;
    if (covers != NULL)
        return sort_cost <= COST_COVERED * costs.looked;
    double walk_cost = costs.looked + COST_FETCH * lesser(costs.found, costs.rows);
    return sort_cost <= COST_FETCH * ORDER_SORT_MAX || sort_cost <= walk_cost;
}

static Status open_ordered(Page *page, Reading *reading)
{
    Planner *planner = &reading->planner;
    const Filter *filter = reading->filter;
    const PlanPath *covers = NULL;
    TRY(find_covered(page, reading, reading->order, &covers));
    if (filter->kind != FILTER_ALL && !is_range_of_order(reading) &&
        filter->estimate.items <= ORDER_FETCH_MAX &&
        plan_prefers(planner, is_sorting_cheaper(page, reading, covers))) {
        SourceOptions options = {.kind = SOURCE_SORT, .order = reading->order};
        bool exact = true;
        TRY(filter_read(planner, reading->filter, planner->arena, &options.set, &exact));
        if (!planner->is_out_of_budget && options.set.count <= ORDER_FETCH_MAX)
            return open_with(page, reading, options, PAGE_ORDER, "index, then sorted");
        planner->is_out_of_budget = false;
    }
    return open_walk(page, reading, reading->order, covers, PAGE_ORDER,
                     "index in the order of ORDER BY");
}

/* A long range is walked value by value instead of being read whole for every page. Not where a
 * document has several values. */
static const OrderBy *range_order(Page *page, const Reading *reading)
{
    const Filter *filter = reading->filter;
    bool is_range = filter->kind == FILTER_RANGE && filter->exact && page->is_streaming;
    bool is_wanted = reading->mode == PAGE_RANGE ||
                     (reading->mode == PAGE_ANY &&
                      plan_prefers(&reading->planner, filter->estimate.keys > WALK_KEYS_MIN));
    if (!is_range || !is_wanted)
        return NULL;
    OrderBy *order = ARENA_NEW(page->arena, OrderBy);
    order->path = filter->path;
    order->spec = filter->spec;
    order->count = 1;
    return order;
}

static Status choose(Page *page, Reading *reading)
{
    const Filter *filter = reading->filter;
    const OrderBy *order = range_order(page, reading);
    if (order != NULL) {
        const PlanPath *covers = NULL;
        TRY(find_covered(page, reading, order, &covers));
        return open_walk(page, reading, order, covers, PAGE_RANGE, "index, along a range");
    }
    if (reading->mode == PAGE_RANGE)
        return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The continuation token has expired: the container's indexing policy was "
                         "changed. Begin the query again.");
    if (filter->kind == FILTER_ALL || reading->mode == PAGE_EPK)
        return open_scan(page, reading);
    if (reading->mode == PAGE_NUMBER)
        return open_set(page, reading);
    Costs costs = estimate_costs(page, reading, filter->estimate.items);
    double set_cost = (double)filter->estimate.keys + COST_FETCH * lesser(costs.found, costs.rows);
    double scan_cost = COST_SCAN * costs.looked;
    return plan_prefers(&reading->planner, set_cost <= scan_cost) ? open_set(page, reading)
                                                                  : open_scan(page, reading);
}

/* A small logical partition is quickest read as it lies. */
static bool is_small(const Page *page, const Reading *reading, const Filter *key)
{
    if (key->kind == FILTER_ALL || reading->mode != PAGE_ANY)
        return false;
    const IndexEstimate *estimate = &reading->filter->estimate;
    Costs costs = estimate_costs(page, reading, estimate->items);
    double scan_cost = COST_SCAN * (double)key->estimate.items;
    double set_cost = (double)estimate->keys + COST_FETCH * lesser(costs.found, costs.rows);
    return plan_prefers(&reading->planner, scan_cost <= set_cost);
}

Status page_filter(Page *page, Reading *reading, Filter **key)
{
    Planner *planner = &reading->planner;
    const QueryPageOptions *o = page->options;
    const Select *select = page->query->select;
    page->budget.deadline_us = page->index_deadline_us;
    planner->needs_system = page->needs_system;
    reading->filter = filter_all(planner, true);
    *key = NULL;
    if (select->where != NULL && select->over_container)
        TRY(filter_make(planner, select->where, true, &reading->filter));
    if (o->wants_indexes)
        advise(page, reading);
    if (o->key != NULL) {
        *key = filter_key(planner, &o->schema->key, o->key);
        TRY(filter_estimate(planner, *key));
        plan_look_within(planner, *key);
        reading->filter = filter_and(planner, reading->filter, *key);
    }
    return filter_use_composite(planner, reading->filter);
}

static Status plan(Page *page, Reading *reading)
{
    Filter *key = NULL;
    TRY(page_filter(page, reading, &key));
    bool is_chosen = reading->mode == PAGE_EPK || is_range_of_order(reading);
    uint64_t keys_read = reading->planner.index.keys_read;
    if (!is_chosen || page->options->wants_explain)
        TRY(filter_estimate(&reading->planner, reading->filter));
    if (is_chosen) /* it is only told, for which nobody pays */
        reading->planner.index.keys_read = keys_read;
    if (reading->order != NULL)
        return open_ordered(page, reading);
    if (key != NULL && is_small(page, reading, key))
        return open_scan(page, reading);
    return choose(page, reading);
}

Status page_plan(Page *page, Reading *reading)
{
    uint64_t begun_us = clock_monotonic_us(page->options->clock);
    TRY(plan(page, reading));
    reading->held = arena_used(&reading->memory);
    page->run->held += reading->held;
    TRY(run_reserve(page->run, 0));
    page->budget.deadline_us = 0; /* a walk pauses by itself */
    if (page->budget.keys_left < WALK_KEYS_MAX)
        page->budget.keys_left = WALK_KEYS_MAX;
    page->out->metrics.index_us += clock_monotonic_us(page->options->clock) - begun_us;
    return STATUS_OK;
}
