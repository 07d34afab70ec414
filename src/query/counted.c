/* counted.c - groups and aggregates that the index knows without any document.
 *
 * COUNT is the size of a set, MIN and MAX are the first and last value of a path, and the groups of
 * a path are its values. This is exact only if the filter is, if no value was cut, and if what has
 * expired or was purged can be taken away; otherwise nothing is counted here and documents are
 * read.
 */
#include "query/functions_int.h"
#include "query/page_int.h"

enum { GROUPS_MAX = 100000, EXTREME_KEYS_MAX = 10000, KEYS_PER_SCANNED = 3 };

typedef struct Counting {
    Page *page;
    Planner *planner;
    NumberSet items;       /* that pass the filter and are alive */
    bool is_whole;         /* 'items' is everything that the index has */
    const PlanPath *paths; /* of the aggregates; count 0: a constant */
    NumberSet *present;    /* of each of those paths */
} Counting;

/* COUNT(1), COUNT(c.x), MIN(c.x), MAX(c.x). */
static bool is_countable(Planner *planner, const Node *call, bool is_grouped, PlanPath *path,
                         bool *known)
{
    Aggregate aggregate = call->call.function->aggregate;
    const Node *arg = call->call.args.first;
    *known = false;
    path->count = 0;
    if (aggregate == AGGREGATE_COUNT &&
        (arg->kind == NODE_LITERAL || arg->kind == NODE_PARAMETER)) {
        const Value *value = arg->kind == NODE_LITERAL ? &arg->literal : &arg->parameter.value;
        return value_defined(value);
    }
    bool is_extreme = aggregate == AGGREGATE_MIN || aggregate == AGGREGATE_MAX;
    if (aggregate != AGGREGATE_COUNT && (!is_extreme || is_grouped))
        return false;
    if (!plan_path(planner, arg, path) || !path->is_precise)
        return false;
    if (path->count == 0)
        return aggregate == AGGREGATE_COUNT; /* COUNT(c) */
    *known = true;
    return plan_is_indexed(planner, path);
}

static bool is_plain(const Select *select)
{
    const Source *source = select->sources;
    return select->source_count == 1 && source->subquery == NULL && !source->iterate &&
           source->value->kind == NODE_NAME && select->group_by.count <= 1;
}

static Status read_present(Counting *counting, const PlanPath *path, NumberSet *out)
{
    Planner *planner = counting->planner;
    static const char tag[] = {TERM_PRESENT};
    bool complete = true;
    TRY(index_read_value(&planner->index, plan_term_path(planner, path), slice_make(tag, 1),
                         planner->arena, out, &complete, planner->err));
    planner->is_out_of_budget = planner->is_out_of_budget || !complete;
    return STATUS_OK;
}

/* The items that count; '*exact' false: they cannot be told from the index. */
static Status read_items(Counting *counting, bool *exact)
{
    Page *page = counting->page;
    Planner *planner = counting->planner;
    Filter *key = NULL;
    TRY(page_filter(page, &key));
    const Filter *filter = page->filter;
    uint64_t all = partition_view_items(planner->view);
    *exact = filter->exact && (page->options->targets[page->target].is_whole || key != NULL) &&
             filter->estimate.keys <= KEYS_PER_SCANNED * all + 64;
    if (!*exact)
        return STATUS_OK;
    NumberSet found;
    NumberSet gone;
    bool complete = true;
    TRY(filter_read(planner, page->filter, &found, exact));
    TRY(partition_view_gone(planner->view, planner->arena, &gone, &complete, planner->err));
    *exact = *exact && complete && !planner->is_out_of_budget;
    set_minus(planner->arena, &found, &gone, &counting->items);
    counting->is_whole = filter->kind == FILTER_ALL && gone.count == 0;
    return STATUS_OK;
}

static bool to_value(Arena *arena, Slice bytes, Value *out)
{
    TermValue term;
    if (!term_read(arena, &bytes, &term) || !term.exact || bytes.len > 0)
        return false;
    switch (term.tag) {
    case TERM_NULL:
        *out = VALUE_NULL;
        return true;
    case TERM_FALSE:
    case TERM_TRUE:
        *out = value_bool(term.tag == TERM_TRUE);
        return true;
    case TERM_NUMBER:
        *out = value_number(term.number);
        return true;
    case TERM_STRING:
        *out = value_string(term.text);
        out->stable = true; /* in the page's arena */
        return true;
    case TERM_PRESENT:
    case TERM_UNDEFINED:
    case TERM_ARRAY:
    case TERM_OBJECT:
    case TERM_END:
        break;
    }
    return false;
}

static uint64_t count_in(const Counting *counting, const NumberSet *items)
{
    return counting->is_whole ? items->count : set_and_count(items, &counting->items);
}

/* ---- without groups ---- */

static Status has_values(Counting *counting, TermPath path, TermTag first, TermTag end, bool *out)
{
    Planner *planner = counting->planner;
    const char from = (char)first;
    const char to = (char)end;
    IndexRange range = {path, slice_make(&from, 1), slice_make(&to, 1)};
    NumberSet items;
    bool complete = true;
    TRY(index_read_range(&planner->index, range, planner->arena, &items, &complete, planner->err));
    *out = !complete || count_in(counting, &items) > 0;
    return STATUS_OK;
}

static Status find_extreme(Counting *counting, const PlanPath *path, bool is_max, Counted *out,
                           bool *done)
{
    Planner *planner = counting->planner;
    TermPath term = plan_term_path(planner, path);
    bool is_spoiled = false;
    TRY(has_values(counting, term, TERM_ARRAY, TERM_END, &is_spoiled));
    *done = !is_spoiled;
    if (is_spoiled)
        return STATUS_OK;
    static const char first[] = {TERM_NULL};
    static const char end[] = {TERM_ARRAY};
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    IndexRange range = {term, slice_make(first, 1), slice_make(end, 1)};
    TRY(index_walk_open(&planner->index, range, is_max, &walk, planner->err));
    for (uint32_t keys = 0; keys < EXTREME_KEYS_MAX; keys++) {
        Slice value;
        NumberSet items;
        bool found = false;
        bool complete = true;
        TRY(index_walk_next(walk, &value, &items, &found, &complete, planner->err));
        if (!found) {
            *done = complete; /* no value at all */
            return STATUS_OK;
        }
        if (count_in(counting, &items) == 0)
            continue;
        *done = to_value(planner->arena, value, &out->best);
        return STATUS_OK;
    }
    *done = false;
    return STATUS_OK;
}

static Status count_all(Counting *counting, Execution *exec, bool *done)
{
    const Select *select = counting->page->query->select;
    Counted *counted = ARENA_NEW_ARRAY(counting->page->arena, Counted, select->aggregate_count);
    size_t i = 0;
    for (const Node *call = select->aggregates; call != NULL && *done;
         call = call->call.next_aggregate, i++) {
        counted[i] = (Counted){.best = VALUE_UNDEFINED};
        Aggregate aggregate = call->call.function->aggregate;
        if (aggregate == AGGREGATE_COUNT)
            counted[i].count = counting->paths[i].count == 0
                                   ? counting->items.count
                                   : count_in(counting, &counting->present[i]);
        else
            TRY(find_extreme(counting, &counting->paths[i], aggregate == AGGREGATE_MAX, &counted[i],
                             done));
    }
    return *done ? execution_add_group(exec, NULL, counted) : STATUS_OK;
}

/* ---- with groups ---- */

typedef struct Group {
    Value key;
    Counted *counted;
} Group;

static void count_group(Counting *counting, const NumberSet *items, Group *group)
{
    const Select *select = counting->page->query->select;
    group->counted = ARENA_NEW_ARRAY(counting->page->arena, Counted, select->aggregate_count);
    NumberSet alive = *items;
    if (!counting->is_whole)
        set_and(counting->page->arena, items, &counting->items, &alive);
    for (size_t i = 0; i < select->aggregate_count; i++) {
        group->counted[i].best = VALUE_UNDEFINED;
        group->counted[i].count = counting->paths[i].count == 0
                                      ? alive.count
                                      : set_and_count(&alive, &counting->present[i]);
    }
}

static Status collect_groups(Counting *counting, const PlanPath *path, Group *groups, size_t *count,
                             bool *done)
{
    static const char first[] = {TERM_NULL};
    static const char end[] = {TERM_END};
    Planner *planner = counting->planner;
    Arena *arena = counting->page->arena;
    NumberSet present;
    NumberSet missing;
    TRY(read_present(counting, path, &present));
    set_minus(arena, &counting->items, &present, &missing);
    if (missing.count > 0) {
        groups[*count].key = VALUE_UNDEFINED;
        count_group(counting, &missing, &groups[(*count)++]);
    }
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    IndexRange range = {plan_term_path(planner, path), slice_make(first, 1), slice_make(end, 1)};
    TRY(index_walk_open(&planner->index, range, false, &walk, planner->err));
    for (;;) {
        Slice value;
        NumberSet items;
        bool found = false;
        bool complete = true;
        TRY(index_walk_next(walk, &value, &items, &found, &complete, planner->err));
        if (!found) {
            *done = complete;
            return STATUS_OK;
        }
        if (count_in(counting, &items) == 0)
            continue;
        *done = *count < GROUPS_MAX && to_value(arena, value, &groups[*count].key);
        if (!*done)
            return STATUS_OK;
        count_group(counting, &items, &groups[(*count)++]);
    }
}

static Status count_groups(Counting *counting, Execution *exec, bool *done)
{
    Page *page = counting->page;
    PlanPath path;
    *done = plan_path(counting->planner, page->query->select->group_by.first, &path) &&
            path.is_precise && path.count > 0 && plan_is_indexed(counting->planner, &path);
    if (!*done)
        return STATUS_OK;
    /* Few values are the point: counting as many as there are documents would save nothing. */
    IndexEstimate estimate;
    static const char first[] = {TERM_NULL};
    static const char end[] = {TERM_END};
    IndexRange range = {plan_term_path(counting->planner, &path), slice_make(first, 1),
                        slice_make(end, 1)};
    TRY(index_estimate(&counting->planner->index, range, 64, &estimate, page->err));
    *done = estimate.keys < GROUPS_MAX;
    if (!*done)
        return STATUS_OK;
    Group *groups = ARENA_NEW_ARRAY(page->arena, Group, GROUPS_MAX + 1);
    size_t count = 0;
    TRY(collect_groups(counting, &path, groups, &count, done));
    for (size_t i = 0; i < count && *done; i++)
        TRY(execution_add_group(exec, &groups[i].key, groups[i].counted));
    return STATUS_OK;
}

Status counted_groups(Page *page, Execution *exec, bool *done)
{
    const Select *select = page->query->select;
    Counting counting = {.page = page, .planner = &page->planner};
    *done = false;
    if (!is_plain(select))
        return STATUS_OK;
    bool exact = false;
    TRY(read_items(&counting, &exact));
    if (!exact)
        return STATUS_OK;
    PlanPath *paths = ARENA_NEW_ARRAY(page->arena, PlanPath, select->aggregate_count);
    counting.paths = paths;
    counting.present = ARENA_NEW_ARRAY(page->arena, NumberSet, select->aggregate_count);
    size_t i = 0;
    for (const Node *call = select->aggregates; call != NULL;
         call = call->call.next_aggregate, i++) {
        bool has_path = false;
        if (!is_countable(counting.planner, call, select->group_by.count > 0, &paths[i], &has_path))
            return STATUS_OK;
        if (has_path && call->call.function->aggregate == AGGREGATE_COUNT)
            TRY(read_present(&counting, &paths[i], &counting.present[i]));
    }
    *done = !page->planner.is_out_of_budget;
    if (*done)
        TRY(select->group_by.count > 0 ? count_groups(&counting, exec, done)
                                       : count_all(&counting, exec, done));
    if (*done)
        explain_target(page, "index alone");
    return STATUS_OK;
}
