/* page_plan.c - the plan of one target: which documents are looked at, and in which order.
 *
 * Costs are in units of an index key that is read in its turn. Fetching a document by its number
 * costs a dozen of them, one in a scan three. What is estimated comes from the index itself; see
 * filter_estimate.
 */
#include "query/page_int.h"

enum { COST_FETCH = 12, COST_SCAN = 3, WALK_KEYS_MIN = 4096 };

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

static Costs estimate_costs(const Page *page, const Filter *filter)
{
    Costs costs = {
        .rows = page->options->items_max,
        .all = (double)partition_view_items(page->planner.view),
        .found = (double)filter->estimate.items,
    };
    costs.rows = lesser(costs.rows, (double)page->feed.take_left) + (double)page->feed.skip_left;
    if (!page->is_streaming)
        costs.rows = costs.all;
    double share = costs.found > 0 && costs.all > costs.found ? costs.all / costs.found : 1;
    costs.looked = lesser(costs.all, costs.rows * share);
    return costs;
}

static Status open_with(Page *page, SourceOptions options, PageMode mode, const char *how)
{
    const QueryTarget *target = &page->options->targets[page->target];
    options.epk_from = target->epk_from;
    options.epk_to = target->epk_to;
    options.position = page->target_position;
    options.clock = page->options->clock;
    options.deadline_us = page->options->deadline_us;
    page->mode = mode;
    explain_target(page, how);
    return source_open(&page->planner, &options, &page->source);
}

static Status open_scan(Page *page)
{
    /* In order of their numbers the documents that are all returned come as they were made, which
     * is what people expect to see; otherwise the order of keys is several times faster. */
    bool by_number = page->mode == PAGE_NUMBER ||
                     (page->mode == PAGE_ANY && page->is_streaming &&
                      page->query->select->where == NULL && page->options->key == NULL);
    SourceOptions options = {
        .kind = SOURCE_SCAN,
        .scan_order = by_number ? SCAN_BY_NUMBER : SCAN_BY_EPK,
    };
    return open_with(page, options, by_number ? PAGE_NUMBER : PAGE_EPK,
                     page->options->key != NULL ? "scan of the logical partition" : "full scan");
}

static Status open_set(Page *page)
{
    SourceOptions options = {.kind = SOURCE_SET};
    bool exact = true;
    TRY(filter_read(&page->planner, page->filter, &options.set, &exact));
    if (!page->planner.is_out_of_budget)
        return open_with(page, options, PAGE_NUMBER, "index");
    page->planner.is_out_of_budget = false; /* larger than was thought */
    page->budget.keys_left = 1000000;
    return open_scan(page);
}

/* ---- in the order of values ---- */

/* The part of a filter that is a range of values of this very path; it is taken out of '*rest'. */
static const Filter *take_range(Planner *planner, Filter *filter, TermPath path, Filter **rest)
{
    *rest = filter;
    bool is_range = filter->kind == FILTER_RANGE || filter->kind == FILTER_TERM;
    if (is_range && filter->path == path) {
        *rest = filter_all(planner, filter->exact);
        return filter;
    }
    if (filter->kind != FILTER_AND)
        return NULL;
    Filter *first = filter->children;
    Filter *second = first->next;
    Filter *left = NULL;
    const Filter *range = take_range(planner, first, path, &left);
    if (range != NULL) {
        *rest = filter_and(planner, left, second);
        return range;
    }
    range = take_range(planner, second, path, &left);
    if (range != NULL)
        *rest = filter_and(planner, first, left);
    return range;
}

static bool is_missing_only(const Filter *range)
{
    return range->kind == FILTER_TERM && range->from.len == 1 && range->from.ptr[0] == TERM_PRESENT;
}

static void set_range(Planner *planner, const Filter *range, SourceOptions *options)
{
    if (range == NULL)
        return;
    options->has_range = true;
    if (is_missing_only(range)) { /* IS_DEFINED(c.x): every value */
        static const char first[] = {TERM_NULL};
        static const char end[] = {TERM_END};
        options->from = slice_make(first, 1);
        options->to = slice_make(end, 1);
        return;
    }
    options->from = range->from;
    options->to = range->to;
    if (range->kind == FILTER_TERM) {
        AUTO(buf_done) Buf to;
        buf_init(&to, TERM_VALUE_BYTES_MAX);
        buf_slice(&to, range->from);
        term_after(&to);
        options->to = arena_copy(planner->arena, buf_view(&to));
    }
}

/* Along the values, with what else the filter knows as a set if that is cheap to have. */
static Status open_walk(Page *page, const OrderBy *order, const char *how)
{
    Planner *planner = &page->planner;
    SourceOptions options = {.kind = SOURCE_WALK, .order = order};
    Filter *rest = page->filter;
    const Filter *range = NULL;
    if (!order->is_composite)
        range = take_range(planner, page->filter, order->path, &rest);
    set_range(planner, range, &options);
    if (rest->kind != FILTER_ALL) {
        TRY(filter_estimate(planner, rest));
        Costs costs = estimate_costs(page, rest);
        /* Walking looks at this many documents without the set. */
        if ((double)rest->estimate.keys < COST_FETCH * costs.looked) {
            bool exact = true;
            TRY(filter_read(planner, rest, &options.set, &exact));
            options.has_set = !planner->is_out_of_budget;
            planner->is_out_of_budget = false;
        }
    }
    return open_with(page, options, PAGE_VALUE, how);
}

static Status open_ordered(Page *page)
{
    Planner *planner = &page->planner;
    if (page->filter->kind != FILTER_ALL && page->filter->estimate.items <= ORDER_SORT_MAX &&
        page->filter->estimate.keys <= COST_FETCH * ORDER_SORT_MAX) {
        SourceOptions options = {.kind = SOURCE_SORT, .order = page->order};
        bool exact = true;
        TRY(filter_read(planner, page->filter, &options.set, &exact));
        if (!planner->is_out_of_budget && options.set.count <= ORDER_SORT_MAX)
            return open_with(page, options, PAGE_VALUE, "index, then sorted");
        planner->is_out_of_budget = false;
    }
    return open_walk(page, page->order, "index in the order of ORDER BY");
}

/* A long range is walked value by value instead of being read whole for every page. Not where a
 * document has several values. */
static const OrderBy *range_order(Page *page)
{
    const Filter *filter = page->filter;
    bool is_range = filter->kind == FILTER_RANGE && filter->exact && page->is_streaming;
    bool is_wanted = page->mode == PAGE_VALUE || filter->estimate.keys > WALK_KEYS_MIN;
    if (!is_range || !is_wanted || (page->mode != PAGE_VALUE && page->mode != PAGE_ANY))
        return NULL;
    OrderBy *order = ARENA_NEW(page->arena, OrderBy);
    order->path = filter->path;
    order->spec = filter->spec;
    order->count = 1;
    return order;
}

static Status choose(Page *page)
{
    Filter *filter = page->filter;
    const OrderBy *order = range_order(page);
    if (order != NULL)
        return open_walk(page, order, "index, along a range");
    if (page->mode == PAGE_VALUE)
        return error_set(page->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The continuation token has expired: the container's indexing policy was "
                         "changed. Begin the query again.");
    if (filter->kind == FILTER_ALL || page->mode == PAGE_EPK)
        return open_scan(page);
    if (page->mode == PAGE_NUMBER)
        return open_set(page);
    Costs costs = estimate_costs(page, filter);
    double set_cost = (double)filter->estimate.keys + COST_FETCH * lesser(costs.found, costs.rows);
    double scan_cost = COST_SCAN * costs.looked;
    return set_cost <= scan_cost ? open_set(page) : open_scan(page);
}

Status page_filter(Page *page, Filter **key)
{
    Planner *planner = &page->planner;
    const QueryPageOptions *o = page->options;
    planner_init(planner, page->arena, page->query, page->run, o->targets[page->target].view,
                 o->schema, &page->budget, page->err);
    page->is_planned = true;
    const Select *select = page->query->select;
    page->filter = filter_all(planner, true);
    *key = NULL;
    if (select->where != NULL && select->over_container)
        TRY(filter_make(planner, select->where, true, &page->filter));
    if (o->key != NULL) {
        *key = filter_key(planner, &o->schema->key, o->key);
        page->filter = filter_and(planner, page->filter, *key);
    }
    TRY(filter_estimate(planner, page->filter));
    return STATUS_OK;
}

Status page_plan(Page *page)
{
    Filter *key = NULL;
    TRY(page_filter(page, &key));
    if (page->order != NULL)
        return open_ordered(page);
    /* A small logical partition is quickest read as it lies. */
    if (key != NULL && key->kind != FILTER_ALL && page->mode == PAGE_ANY) {
        TRY(filter_estimate(&page->planner, key));
        Costs costs = estimate_costs(page, page->filter);
        if (COST_SCAN * (double)key->estimate.items <=
            (double)page->filter->estimate.keys + COST_FETCH * lesser(costs.found, costs.rows))
            return open_scan(page);
    }
    return choose(page);
}
