/* index_only.c - groups, aggregates and distinct values that the index knows without any document.
 *
 * COUNT is the size of a set, MIN and MAX are the first and last value of a path, a sum is made of
 * its values and how many items have each, and the groups of a path are its values. This is exact
 * only if the filter is, if no value was cut, and if what has expired or was purged can be taken
 * away; otherwise nothing is counted here and documents are read.
 */
#include "query/page/group_list_int.h"
#include "query/page/page_int.h"
#include "query/sql/functions_int.h"

#include <math.h>

enum {
    GROUPS_MAX = 100000,      /* values of a path; with more of them reading costs as much */
    EXTREME_KEYS_MAX = 10000, /* that no item has which counts */
    KEYS_PER_SCANNED = 3,
    SAMPLE_KEYS = 64,
};

/* Up to here integers add up exactly, in whatever order. */
#define SUM_EXACT_MAX 0x1p53

typedef enum CountedKind {
    COUNTED_ITEMS,   /* COUNT(1), COUNT(c) */
    COUNTED_PRESENT, /* COUNT(c.x) */
    COUNTED_EXTREME, /* MIN(c.x), MAX(c.x) */
    COUNTED_SUM,     /* SUM(c.x), AVG(c.x) */
    COUNTED_KEY,     /* any of these, over the path that is grouped by */
} CountedKind;

typedef struct CountedPart {
    Aggregate aggregate;
    CountedKind kind;
    TermPath path;
    NumberSet present;
} CountedPart;

typedef struct Counting {
    ReadContext *context;
    Reading *reading;
    Arena *arena; /* of what is found */
    Planner *planner;
    const Select *select;
    NumberSet items;    /* that pass the filter and are alive */
    bool is_whole;      /* 'items' is everything that the index has */
    CountedPart *parts; /* one for each aggregate */
    bool has_key;
    TermPath key; /* the path that is grouped by, or whose values are wanted */
    double sum_max;
} Counting;

/* ---- whether it can be done ---- */

static bool is_plain(const Select *select)
{
    const Source *source = select->sources;
    return select->source_count == 1 && source->subquery == NULL && !source->iterate &&
           source->value->kind == NODE_NAME;
}

/* A path that every item has at most one value at. */
static bool read_path(Counting *counting, const Node *node, PlanPath *out)
{
    return plan_path(counting->planner, node, out) && out->is_precise &&
           (out->count == 0 || plan_is_indexed(counting->planner, out));
}

/* The path whose values are the groups or the results, if there is one. */
static bool read_key(Counting *counting)
{
    const Select *select = counting->select;
    const Node *node = select->group_by.first;
    PlanPath path;
    if (select->distinct) {
        bool is_one = select->projection != PROJECT_STAR && select->items->next == NULL;
        bool is_sorted_by_it =
            select->order_by == NULL ||
            (select->order_count == 1 && node_equal(select->order_by->value, select->items->value));
        if (!is_one || !is_sorted_by_it || select->is_grouped)
            return false;
        node = select->items->value;
    } else if (select->group_by.count != 1) {
        return select->group_by.count == 0;
    }
    counting->has_key = read_path(counting, node, &path) && path.count > 0;
    if (counting->has_key)
        counting->key = plan_term_path(counting->planner, &path);
    return counting->has_key;
}

static bool is_defined_constant(const Node *node)
{
    return (node->kind == NODE_LITERAL && value_defined(&node->literal)) ||
           (node->kind == NODE_PARAMETER && value_defined(&node->parameter.value));
}

static bool read_part(Counting *counting, const Node *call, CountedPart *out)
{
    const Node *arg = call->call.args.first;
    *out = (CountedPart){.aggregate = call->call.function->aggregate};
    bool is_count = out->aggregate == AGGREGATE_COUNT;
    bool is_extreme = out->aggregate == AGGREGATE_MIN || out->aggregate == AGGREGATE_MAX;
    bool is_sum = out->aggregate == AGGREGATE_SUM || out->aggregate == AGGREGATE_AVG;
    if (is_count && is_defined_constant(arg))
        return true;
    PlanPath path;
    if ((!is_count && !is_extreme && !is_sum) || !read_path(counting, arg, &path))
        return false;
    if (path.count == 0)
        return is_count;
    out->path = plan_term_path(counting->planner, &path);
    if (counting->has_key && out->path == counting->key)
        out->kind = COUNTED_KEY;
    else if (is_count)
        out->kind = COUNTED_PRESENT;
    else
        out->kind = is_sum ? COUNTED_SUM : COUNTED_EXTREME;
    return !counting->has_key || out->kind <= COUNTED_PRESENT || out->kind == COUNTED_KEY;
}

static bool read_parts(Counting *counting)
{
    const Select *select = counting->select;
    counting->parts = ARENA_NEW_ARRAY(counting->arena, CountedPart, select->aggregate_count);
    CountedPart *part = counting->parts;
    for (const Node *call = select->aggregates; call != NULL; call = call->call.next_aggregate) {
        if (!read_part(counting, call, part++))
            return false;
    }
    return true;
}

/* The items that count; '*exact' is false if the index cannot tell them. */
static Status read_items(Counting *counting, bool *exact)
{
    Planner *planner = counting->planner;
    Filter *key = NULL;
    TRY(page_plan_filter(counting->context, counting->reading, &key));
    Filter *filter = counting->reading->filter;
    TRY(filter_estimate(planner, filter));
    const QueryTarget *target = counting->reading->target;
    uint64_t all = partition_view_items(planner->view);
    bool is_cheaper = filter->estimate.keys <= KEYS_PER_SCANNED * all + SAMPLE_KEYS;
    *exact = filter->exact && (target->is_whole || key != NULL) &&
             !partition_view_has_own_writes(planner->view) && plan_prefers(planner, is_cheaper);
    if (!*exact)
        return STATUS_OK;
    NumberSet found;
    NumberSet gone;
    bool complete = true;
    planner->wants_exact = true;
    TRY(filter_read(planner, filter, planner->arena, &found, exact));
    TRY(partition_view_list_gone(planner->view, planner->arena, &gone, &complete, planner->err));
    *exact = *exact && complete && !planner->is_out_of_budget;
    set_minus(planner->arena, &found, &gone, &counting->items);
    counting->is_whole = filter->kind == FILTER_ALL && gone.count == 0;
    return STATUS_OK;
}

static Status read_present(Counting *counting)
{
    Planner *planner = counting->planner;
    for (size_t i = 0; i < counting->select->aggregate_count; i++) {
        CountedPart *part = &counting->parts[i];
        if (part->kind == COUNTED_PRESENT)
            TRY(plan_read_present(planner, part->path, planner->arena, &part->present));
    }
    return STATUS_OK;
}

/* ---- values ---- */

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

/* Adds 'count' times a value to a sum; false if that is not exact. */
static bool add_sum(const Counting *counting, const Value *value, uint64_t count, double *size,
                    Counted *out)
{
    double times = value->number * (double)count;
    *size += fabs(times);
    out->sum += times;
    out->count += count;
    return value->number == trunc(value->number) && *size <= counting->sum_max;
}

/* The next value that an item has which counts; '*done' becomes false if there is no telling. */
static Status next_value(Counting *counting, IndexWalk *walk, Arena *arena, uint32_t keys_max,
                         Value *value, NumberSet *items, bool *found, bool *done)
{
    for (uint32_t keys = 0; keys < keys_max; keys++) {
        Slice bytes;
        bool complete = true;
        TRY(index_walk_next(walk, &bytes, items, found, &complete, counting->planner->err));
        *done = complete;
        if (!*found)
            return STATUS_OK;
        if (count_in(counting, items) == 0)
            continue;
        *done = to_value(arena, bytes, value);
        return STATUS_OK;
    }
    *done = false;
    return STATUS_OK;
}

static Status open_walk(const Counting *counting, TermPath path, TermTag first, TermTag end,
                        bool is_down, IndexWalk **out)
{
    const char from = (char)first;
    const char to = (char)end;
    IndexRange range = {path, slice_make(&from, 1), slice_make(&to, 1)};
    return index_walk_open(&counting->planner->index, range, is_down, out, counting->planner->err);
}

/* Whether the values of a path are few enough to be looked at one by one. */
static Status are_few(const Counting *counting, TermPath path, bool *out)
{
    static const char first[] = {TERM_NULL};
    static const char end[] = {TERM_END};
    IndexRange range = {path, slice_make(first, 1), slice_make(end, 1)};
    IndexEstimate estimate;
    TRY(index_estimate(&counting->planner->index, range, SAMPLE_KEYS, &estimate,
                       counting->planner->err));
    *out = estimate.keys < GROUPS_MAX;
    return STATUS_OK;
}

/* Whether any item that counts has such a value; the first one is enough. */
static Status has_values(Counting *counting, TermPath path, TermTag first, TermTag end, bool *out,
                         bool *done)
{
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    TRY(open_walk(counting, path, first, end, false, &walk));
    bool found = true;
    while (found && !*out) {
        Slice value;
        NumberSet items;
        bool complete = true;
        TRY(index_walk_next(walk, &value, &items, &found, &complete, counting->planner->err));
        *out = found && count_in(counting, &items) > 0;
        *done = *done && complete;
    }
    return STATUS_OK;
}

/* ---- one aggregate ---- */

static Status count_extreme(Counting *counting, const CountedPart *part, Counted *out, bool *done)
{
    TRY(has_values(counting, part->path, TERM_ARRAY, TERM_END, &out->is_spoiled, done));
    if (out->is_spoiled || !*done)
        return STATUS_OK;
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    TRY(open_walk(counting, part->path, TERM_NULL, TERM_ARRAY, part->aggregate == AGGREGATE_MAX,
                  &walk));
    NumberSet items;
    bool found = false;
    return next_value(counting, walk, counting->arena, EXTREME_KEYS_MAX, &out->best, &items, &found,
                      done);
}

static Status count_sum(Counting *counting, const CountedPart *part, Counted *out, bool *done)
{
    TRY(are_few(counting, part->path, done));
    if (*done)
        TRY(has_values(counting, part->path, TERM_NULL, TERM_NUMBER, &out->is_spoiled, done));
    if (*done && !out->is_spoiled)
        TRY(has_values(counting, part->path, TERM_STRING, TERM_END, &out->is_spoiled, done));
    if (out->is_spoiled || !*done)
        return STATUS_OK;
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    TRY(open_walk(counting, part->path, TERM_NUMBER, TERM_STRING, false, &walk));
    double size = 0;
    for (;;) {
        Value value;
        NumberSet items;
        bool found = false;
        TRY(next_value(counting, walk, counting->arena, GROUPS_MAX, &value, &items, &found, done));
        if (!found || !*done)
            return STATUS_OK;
        *done = add_sum(counting, &value, count_in(counting, &items), &size, out);
        if (!*done)
            return STATUS_OK;
    }
}

/* ---- groups ---- */

static Status add_group(Counting *counting, GroupList *list, const Value *key, Group **out)
{
    return group_list_add(list, counting->context->run, counting->arena,
                          counting->select->aggregate_count, key, out);
}

/* An aggregate over the path itself that is grouped by; false if that is not exact. */
static bool count_key(const Counting *counting, const CountedPart *part, const Value *key,
                      uint64_t count, Counted *out)
{
    if (!value_defined(key))
        return true;
    double size = 0;
    switch ((int)part->aggregate) {
    case AGGREGATE_MIN:
    case AGGREGATE_MAX:
        out->best = *key;
        return true;
    case AGGREGATE_SUM:
    case AGGREGATE_AVG:
        out->is_spoiled = key->type != JSON_NUMBER;
        return out->is_spoiled || add_sum(counting, key, count, &size, out);
    default:
        out->count = count;
        return true;
    }
}

static bool count_group(const Counting *counting, Arena *scratch, const NumberSet *items,
                        Group *group)
{
    NumberSet alive = *items;
    if (!counting->is_whole)
        set_and(scratch, items, &counting->items, &alive);
    bool done = true;
    for (size_t i = 0; i < counting->select->aggregate_count && done; i++) {
        const CountedPart *part = &counting->parts[i];
        Counted *counted = &group->counted[i];
        counted->best = VALUE_UNDEFINED;
        if (part->kind == COUNTED_KEY)
            done = count_key(counting, part, &group->key, alive.count, counted);
        else if (part->kind == COUNTED_PRESENT)
            counted->count = set_and_count(&alive, &part->present);
        else
            counted->count = alive.count;
    }
    return done;
}

static Status collect_missing(Counting *counting, Arena *scratch, GroupList *list, bool *done)
{
    Planner *planner = counting->planner;
    NumberSet present;
    NumberSet missing;
    TRY(plan_read_present(planner, counting->key, planner->arena, &present));
    *done = !planner->is_out_of_budget;
    set_minus(planner->arena, &counting->items, &present, &missing);
    if (missing.count == 0 || !*done)
        return STATUS_OK;
    Group *group = NULL;
    Value key = VALUE_UNDEFINED;
    TRY(add_group(counting, list, &key, &group));
    *done = count_group(counting, scratch, &missing, group);
    return STATUS_OK;
}

static Status collect_groups(Counting *counting, GroupList *list, bool *done)
{
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, ARENA_SMALL_BYTES);
    TRY(collect_missing(counting, &scratch, list, done));
    AUTO(index_walk_close) IndexWalk *walk = NULL;
    TRY(open_walk(counting, counting->key, TERM_NULL, TERM_END, false, &walk));
    while (*done) {
        Value value;
        NumberSet items;
        bool found = false;
        Group *group = NULL;
        TRY(next_value(counting, walk, counting->arena, GROUPS_MAX, &value, &items, &found, done));
        if (!found || !*done)
            return STATUS_OK;
        TRY(add_group(counting, list, &value, &group));
        *done = list->count <= GROUPS_MAX && count_group(counting, &scratch, &items, group);
        arena_reset(&scratch);
    }
    return STATUS_OK;
}

/* Without a key there is one group of all. */
static Status count_all(Counting *counting, GroupList *list, bool *done)
{
    Group *group = NULL;
    Value key = VALUE_UNDEFINED;
    TRY(add_group(counting, list, &key, &group));
    Counted *counted = group->counted;
    for (size_t i = 0; i < counting->select->aggregate_count && *done; i++) {
        const CountedPart *part = &counting->parts[i];
        counted[i] = (Counted){.best = VALUE_UNDEFINED};
        switch (part->kind) {
        case COUNTED_ITEMS:
            counted[i].count = counting->items.count;
            break;
        case COUNTED_PRESENT:
            counted[i].count = count_in(counting, &part->present);
            break;
        case COUNTED_EXTREME:
            TRY(count_extreme(counting, part, &counted[i], done));
            break;
        case COUNTED_SUM:
            TRY(count_sum(counting, part, &counted[i], done));
            break;
        case COUNTED_KEY: /* there is none */
            break;
        }
    }
    return STATUS_OK;
}

static Status count_groups(Counting *counting, GroupList *list, bool *done)
{
    TRY(are_few(counting, counting->key, done));
    return *done ? collect_groups(counting, list, done) : STATUS_OK;
}

Status page_count_groups(ReadContext *context, Reading *reading, Arena *arena, GroupList **out)
{
    const PageRequest *request = context->request;
    Counting counting = {
        .context = context,
        .reading = reading,
        .arena = arena,
        .planner = &reading->planner,
        .select = request->query->select,
        .sum_max = SUM_EXACT_MAX / (double)request->sum_targets,
    };
    GroupList *list = ARENA_NEW(arena, GroupList);
    bool done = is_plain(counting.select) && read_key(&counting) && read_parts(&counting);
    if (done)
        TRY(read_items(&counting, &done));
    if (done)
        TRY(read_present(&counting));
    done = done && !reading->planner.is_out_of_budget;
    if (done)
        TRY(counting.has_key ? count_groups(&counting, list, &done)
                             : count_all(&counting, list, &done));
    if (done)
        page_notes_plan(context->notes, reading, "index alone");
    *out = done ? list : NULL;
    return STATUS_OK;
}

Status page_add_groups(const Query *query, const GroupList *list, Execution *exec)
{
    for (size_t i = 0; i < list->count; i++) {
        const Group *group = &list->groups[i];
        if (query->select->distinct)
            TRY(execution_add_value(exec, &group->key));
        else
            TRY(execution_add_group(exec, &group->key, group->counted));
    }
    return STATUS_OK;
}
