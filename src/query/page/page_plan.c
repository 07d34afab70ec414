/* page_plan.c - the plan of one target: which documents are looked at, and in which order.
 *
 * Costs are in units of an index key that is read in its turn. Fetching a document by its number
 * costs a dozen of them, one in a scan three. What is estimated comes from the index itself; see
 * filter_estimate.
 */
#include "query/page/page_reader_int.h"

enum {
    COST_FETCH = 12,
    COST_SCAN = 3,
    COST_COVERED = 1, /* of a document that is made of its value in the index */
    WALK_KEYS_MIN = 4096,
    CACHED_FETCHES_MAX = 10000,
    NUMBER_SCAN_ITEMS_MAX = 20000, /* of a partition; see open_scan */
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

static Costs costs_of(double rows, double all, double found)
{
    double share = found > 0 && all > found ? all / found : 1;
    return (Costs){.rows = rows, .all = all, .found = found, .looked = lesser(all, rows * share)};
}

static Costs estimate_costs(const PageRequest *request, const Reading *reading, uint64_t found)
{
    double all = (double)partition_view_items(reading->planner.view);
    /* By all targets: what others have found is not known. */
    double rows = page_request_streams(request) ? request->rows_wanted : all;
    return costs_of(rows, all, (double)found);
}

static Status open_with(ReadContext *context, Reading *reading, SourceOptions options,
                        PageMode mode, const char *how)
{
    options.epk_from = reading->epk_from;
    options.epk_to = reading->epk_to;
    options.position = reading->position;
    options.clock = context->request->options->clock;
    options.deadline_us = context->request->options->deadline_us;
    reading->mode = mode;
    reading->sorted_by = options.order;
    page_notes_plan(context->notes, reading, how);
    return source_open(&reading->planner, &options, &reading->source);
}

/* Whether the order of rows is that of documents. If the query asks for no order, the service gives
 * the order of item numbers, in which items were made. */
static bool shows_order(const PageRequest *request)
{
    return request->way == PAGE_STREAMS || request->way == PAGE_REMEMBERS;
}

/* Whether all that is read of a scan is returned, so that none looks further than it has to. */
static bool returns_all(const PageRequest *request)
{
    return page_request_streams(request) && request->query->select->where == NULL &&
           request->options->key == NULL;
}

/* By number each item is a look-up, by key it is the next one: several times as fast, and on a disk
 * that has to seek much more. So only small partitions are searched by number. */
static Status open_scan(ReadContext *context, Reading *reading)
{
    bool is_quick = returns_all(context->request) ||
                    (shows_order(context->request) &&
                     partition_view_items(reading->planner.view) <= NUMBER_SCAN_ITEMS_MAX);
    bool by_number = reading->mode == PAGE_NUMBER ||
                     (reading->mode == PAGE_ANY && plan_prefers(&reading->planner, is_quick));
    SourceOptions options = {
        .kind = SOURCE_SCAN,
        .scan_order = by_number ? SCAN_BY_NUMBER : SCAN_BY_EPK,
    };
    return open_with(context, reading, options, by_number ? PAGE_NUMBER : PAGE_EPK,
                     context->request->options->key != NULL ? "scan of the logical partition"
                                                            : "full scan");
}

/* The items of the reading's range, by number, from its position on; '*fits' is false if these are
 * too many. */
static Status collect(const Reading *reading, SourceOptions *out, bool *fits)
{
    const Planner *planner = &reading->planner;
    ScanBudget budget = {.entries = COLLECT_ITEMS_MAX};
    ScanOptions options = {
        .order = SCAN_BY_EPK,
        .epk_from = reading->epk_from,
        .epk_to = reading->epk_to,
        .budget = &budget,
    };
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    TRY(partition_view_scan(planner->view, &options, &scan, planner->err));
    uint64_t from = reading->position.len == 0 ? 0 : be64_get(reading->position.ptr);
    ItemList list;
    TRY(partition_scan_collect(scan, from, COLLECT_BYTES_MAX, planner->arena, &list, fits,
                               planner->err));
    out->items = list.items;
    out->item_count = list.count;
    return STATUS_OK;
}

static bool is_number_place(Slice position)
{
    return position.len == 0 || position.len == sizeof(uint64_t);
}

static Status open_set(ReadContext *context, Reading *reading)
{
    Planner *planner = &reading->planner;
    SourceOptions options = {.kind = SOURCE_SET};
    bool exact = true;
    TRY(filter_read(planner, reading->filter, planner->arena, &options.set, &exact));
    if (!planner->is_out_of_budget) {
        /* So many would only drive out of the cache what others read again. */
        partition_view_fill_cache(planner->view, page_request_streams(context->request) ||
                                                     options.set.count <= CACHED_FETCHES_MAX);
        return open_with(context, reading, options, PAGE_NUMBER, "index");
    }
    planner->is_out_of_budget = false; /* larger than was thought */
    return open_scan(context, reading);
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

/* The range of its composite index in which an order can be walked; false if that is all of it. */
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
static Status find_covered(ReadContext *context, Reading *reading, const OrderBy *order,
                           const PlanPath **out)
{
    Planner *planner = &reading->planner;
    const QueryPageOptions *o = context->request->options;
    const QueryTarget *target = reading->target;
    bool is_whole = target->is_whole && o->key == NULL &&
                    slice_equal(reading->epk_from, target->epk_from) &&
                    slice_equal(reading->epk_to, target->epk_to);
    PlanPath *path = ARENA_NEW(planner->arena, PlanPath);
    *out = NULL;
    if (!is_whole || order->composite != NULL || context->request->needs_system ||
        !plan_asks_only(planner, order->path, path) || !plan_prefers(planner, true))
        return STATUS_OK;
    NumberSet gone;
    bool complete = true;
    TRY(partition_view_list_gone(planner->view, planner->arena, &gone, &complete, planner->err));
    if (complete && gone.count == 0)
        *out = path;
    return STATUS_OK;
}

/* Along the values, with what else the filter knows as a set if that is cheap to have. */
static Status open_walk(ReadContext *context, Reading *reading, const OrderBy *order,
                        const PlanPath *covers, PageMode mode, const char *how)
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
        Costs costs = estimate_costs(context->request, reading, rest.items);
        double cost = covers != NULL ? COST_COVERED : COST_FETCH;
        /* Walking looks at this many documents without the set. */
        if (plan_prefers(planner, (double)rest.keys < cost * costs.looked)) {
            bool exact = true;
            TRY(filter_read(planner, reading->filter, planner->arena, &options.set, &exact));
            options.has_set = !planner->is_out_of_budget;
            planner->is_out_of_budget = false;
        }
    }
    return open_with(context, reading, options, mode, how);
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
static bool sorts(const Costs *costs, double keys)
{
    double sort_cost = keys + COST_FETCH * costs->found;
    double walk_cost = costs->looked + COST_FETCH * lesser(costs->found, costs->rows);
    return sort_cost <= COST_FETCH * ORDER_SORT_MAX || sort_cost <= walk_cost;
}

double query_ordered_loads(double rows, double all, double found)
{
    Costs costs = costs_of(rows, all, found);
    return found <= ORDER_FETCH_MAX && sorts(&costs, 1) ? found : lesser(found, rows);
}

static bool is_sorting_cheaper(const PageRequest *request, const Reading *reading,
                               const PlanPath *covers)
{
    const IndexEstimate *estimate = &reading->filter->estimate;
    Costs costs = estimate_costs(request, reading, estimate->items);
    if (covers != NULL)
        return (double)estimate->keys + COST_FETCH * costs.found <= COST_COVERED * costs.looked;
    return sorts(&costs, (double)estimate->keys);
}

static Status open_ordered(ReadContext *context, Reading *reading)
{
    Planner *planner = &reading->planner;
    const Filter *filter = reading->filter;
    const PlanPath *covers = NULL;
    TRY(find_covered(context, reading, reading->order, &covers));
    if (filter->kind != FILTER_ALL && !is_range_of_order(reading) &&
        filter->estimate.items <= ORDER_FETCH_MAX &&
        plan_prefers(planner, is_sorting_cheaper(context->request, reading, covers))) {
        SourceOptions options = {.kind = SOURCE_SORT, .order = reading->order};
        bool exact = true;
        TRY(filter_read(planner, reading->filter, planner->arena, &options.set, &exact));
        if (!planner->is_out_of_budget && options.set.count <= ORDER_FETCH_MAX)
            return open_with(context, reading, options, PAGE_ORDER, "index, then sorted");
        planner->is_out_of_budget = false;
    }
    return open_walk(context, reading, reading->order, covers, PAGE_ORDER,
                     "index in the order of ORDER BY");
}

/* A long range is walked value by value instead of being read whole for every page. Not where a
 * document has several values. */
static const OrderBy *range_order(const ReadContext *context, const Reading *reading)
{
    const Filter *filter = reading->filter;
    bool is_range =
        filter->kind == FILTER_RANGE && filter->exact && page_request_streams(context->request);
    bool is_wanted = reading->mode == PAGE_RANGE ||
                     (reading->mode == PAGE_ANY &&
                      plan_prefers(&reading->planner, filter->estimate.keys > WALK_KEYS_MIN));
    if (!is_range || !is_wanted)
        return NULL;
    OrderBy *order = ARENA_NEW(reading->planner.arena, OrderBy);
    order->path = filter->path;
    order->spec = filter->spec;
    order->count = 1;
    return order;
}

static Status choose(ReadContext *context, Reading *reading)
{
    const Filter *filter = reading->filter;
    const OrderBy *order = range_order(context, reading);
    if (order != NULL) {
        const PlanPath *covers = NULL;
        TRY(find_covered(context, reading, order, &covers));
        return open_walk(context, reading, order, covers, PAGE_RANGE, "index, along a range");
    }
    if (reading->mode == PAGE_RANGE)
        return error_set(context->err, STATUS_BAD_REQUEST, SUB_NONE,
                         "Invalid Continuation Token. The continuation token has expired: the "
                         "container's indexing policy was "
                         "changed. Begin the query again.");
    if (filter->kind == FILTER_ALL || reading->mode == PAGE_EPK)
        return open_scan(context, reading);
    if (reading->mode == PAGE_NUMBER)
        return open_set(context, reading);
    Costs costs = estimate_costs(context->request, reading, filter->estimate.items);
    double set_cost = (double)filter->estimate.keys + COST_FETCH * lesser(costs.found, costs.rows);
    double scan_cost = COST_SCAN * costs.looked;
    return plan_prefers(&reading->planner, set_cost <= scan_cost) ? open_set(context, reading)
                                                                  : open_scan(context, reading);
}

/* Whether a logical partition is quickest read as it lies. */
static bool is_small(const PageRequest *request, const Reading *reading, const Filter *key)
{
    if (key->kind == FILTER_ALL)
        return false;
    const IndexEstimate *estimate = &reading->filter->estimate;
    Costs costs = estimate_costs(request, reading, estimate->items);
    double scan_cost = COST_SCAN * (double)key->estimate.items;
    double set_cost = (double)estimate->keys + COST_FETCH * lesser(costs.found, costs.rows);
    return plan_prefers(&reading->planner, scan_cost <= set_cost);
}

/* Reads a small logical partition as it lies. Where the order shows it is sorted by number, if it
 * is so small that this can be done; '*is_open' is false if it is not. */
static Status open_small(ReadContext *context, Reading *reading, bool *is_open)
{
    *is_open = true;
    if (!shows_order(context->request))
        return open_scan(context, reading);
    SourceOptions options = {.kind = SOURCE_COLLECTED};
    const Clock *clock = context->request->options->meter_clock;
    uint64_t begun_us = clock == NULL ? 0 : clock_monotonic_us(clock);
    TRY(collect(reading, &options, is_open));
    if (clock != NULL)
        context->collected_us += clock_monotonic_us(clock) - begun_us;
    return *is_open ? open_with(context, reading, options, PAGE_NUMBER, "logical partition, sorted")
                    : STATUS_OK;
}

/* Opens the items of a key by the key alone, if that is best. If the key has no index, the number
 * of its items is not known, and trying is the only way. */
static Status open_by_key(ReadContext *context, Reading *reading, const Filter *key, bool *is_open)
{
    bool is_unknown = key->kind == FILTER_ALL && shows_order(context->request);
    bool is_any = reading->mode == PAGE_ANY ||
                  (reading->mode == PAGE_NUMBER && is_number_place(reading->position));
    *is_open = false;
    if (!is_any ||
        (shows_order(context->request) && key->estimate.items > COLLECT_ITEMS_MAX && !is_unknown))
        return STATUS_OK;
    if (is_unknown ? plan_prefers(&reading->planner, true)
                   : is_small(context->request, reading, key))
        return open_small(context, reading, is_open);
    return STATUS_OK;
}

/* However the items of a key are found, metrics name its paths: the service has them in its
 * index. */
static void note_key(Filter *key)
{
    key->is_named = true;
    for (Filter *part = key->children; part != NULL; part = part->next)
        note_key(part);
}

Status page_plan_filter(ReadContext *context, Reading *reading, Filter **key)
{
    Planner *planner = &reading->planner;
    const QueryPageOptions *o = context->request->options;
    const Select *select = context->request->query->select;
    context->budget.deadline_us = context->request->index_deadline_us;
    planner->needs_system = context->request->needs_system;
    reading->filter = filter_all(planner, true);
    *key = NULL;
    if (select->where != NULL && select->over_container)
        TRY(filter_make(planner, select->where, true, &reading->filter));
    if (o->wants_indexes)
        advise(planner, reading->filter, planner->arena, &reading->advice);
    if (o->key != NULL) {
        *key = filter_key(planner, &o->schema->key, o->key);
        TRY(filter_estimate(planner, *key));
        plan_look_within(planner, *key);
        if (o->wants_indexes)
            note_key(*key);
        reading->filter = filter_and(planner, reading->filter, *key);
    }
    return filter_use_composite(planner, reading->filter);
}

static Status plan(ReadContext *context, Reading *reading)
{
    Filter *key = NULL;
    TRY(page_plan_filter(context, reading, &key));
    bool is_chosen = reading->mode == PAGE_EPK || is_range_of_order(reading);
    uint64_t keys_read = reading->planner.index.keys_read;
    if (!is_chosen || context->request->options->wants_explain)
        TRY(filter_estimate(&reading->planner, reading->filter));
    if (is_chosen) /* it is only for the explanation, which is not charged */
        reading->planner.index.keys_read = keys_read;
    if (reading->order != NULL)
        return open_ordered(context, reading);
    bool is_open = false;
    if (key != NULL)
        TRY(open_by_key(context, reading, key, &is_open));
    return is_open ? STATUS_OK : choose(context, reading);
}

Status page_plan(ReadContext *context, Reading *reading)
{
    uint64_t begun_us = clock_monotonic_us(context->request->options->clock);
    uint64_t collected_us = context->collected_us;
    TRY(plan(context, reading));
    reading->held = arena_used(&reading->memory);
    context->run->held += reading->held;
    TRY(run_reserve(context->run, 0));
    context->budget.deadline_us = 0; /* a walk pauses by itself */
    if (context->budget.keys_left < WALK_KEYS_MAX)
        context->budget.keys_left = WALK_KEYS_MAX;
    uint64_t us = clock_monotonic_us(context->request->options->clock) - begun_us;
    collected_us = context->collected_us - collected_us;
    context->index_us += us > collected_us ? us - collected_us : 0;
    return STATUS_OK;
}
