/* index_advice.c - composite indexes that a query would use, were they there: for index metrics.
 *
 * As the service advises: the properties that the filter compares for equality, in the sequence of
 * the query, and after them one that it compares with a range, or those of ORDER BY. Each range
 * makes an index of its own, since none can serve two of them.
 *
 *     c.a = 1 AND c.b = 2                     /a ASC, /b ASC
 *     c.a = 1 AND c.b > 2 AND c.d < 3         /a ASC, /b ASC  and  /a ASC, /d ASC
 *     c.a = 1 ORDER BY c.b DESC               /a ASC, /b DESC
 *
 * What is advised here is what plan_composite.c and plan_order.c take when it is there.
 */
#include "query/plan/plan_int.h"

enum { PATH_TEXT_MAX = 200 };

typedef struct Part {
    TermPath path;
    Slice text; /* "/a/b" */
    bool is_descending;
} Part;

typedef struct PartList {
    Part parts[COMPOSITE_PARTS_MAX];
    size_t count;
} PartList;

typedef struct Advisor {
    Planner *planner;
    Arena *arena;
    IndexAdvice *out;
    PartList equal;
    PartList ranges;
    PartList orders;
} Advisor;

static bool has_part(const PartList *list, TermPath path)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->parts[i].path == path)
            return true;
    }
    return false;
}

static void add_part(PartList *list, Part part)
{
    if (list->count < ARRAY_COUNT(list->parts) && !has_part(list, part.path))
        list->parts[list->count++] = part;
}

/* ---- what the query asks for ---- */

static bool is_equality(const Filter *filter)
{
    return filter->kind == FILTER_TERM && filter->from.ptr[0] > TERM_PRESENT &&
           filter->from.ptr[0] < TERM_ARRAY;
}

/* Not of whole types, as IS_NUMBER(c.a) is: that seldom leaves anything out. */
static bool is_range(const Filter *filter)
{
    return filter->kind == FILTER_RANGE && filter->is_single &&
           slice_compare(filter->from, filter->to) < 0 &&
           (filter->from.len > 1 || filter->to.len > 1);
}

/* The path of a look-up is "/a/b/?". A composite index of elements has a term for each of them, and
 * serves no filter here. */
static bool read_part(const Filter *filter, Part *out)
{
    Slice path = slice_first(filter->spec, filter->spec.len - 2);
    *out = (Part){.path = filter->path, .text = path};
    return slice_ends_with(filter->spec, SLICE("/?")) && path.len <= PATH_TEXT_MAX &&
           memmem(path.ptr, path.len, "/[]", 3) == NULL;
}

static void read_filter(Advisor *advisor, const Filter *filter)
{
    Part part;
    bool is_and = filter->kind == FILTER_AND;
    for (const Filter *one = is_and ? filter->children : filter; one != NULL;
         one = is_and ? one->next : NULL) {
        if (is_equality(one) && read_part(one, &part))
            add_part(&advisor->equal, part);
        else if (is_range(one) && read_part(one, &part))
            add_part(&advisor->ranges, part);
    }
}

/* False if ORDER BY is nothing that an index could serve. */
static bool read_orders(Advisor *advisor)
{
    Planner *planner = advisor->planner;
    for (const Order *order = planner->query->select->order_by; order != NULL;
         order = order->next) {
        PlanPath path;
        if (!plan_path(planner, order->value, &path) || !path.is_precise || path.count == 0)
            return false;
        Part part = {.path = plan_term_path(planner, &path),
                     .text = plan_path_text(planner->arena, &path),
                     .is_descending = order->descending};
        if (part.text.len > PATH_TEXT_MAX)
            return false;
        add_part(&advisor->orders, part);
    }
    return true;
}

/* ---- what there is ---- */

static TermPath path_of(const Planner *planner, const CompositePart *part)
{
    PlanPath path = {.steps = part->steps, .count = part->step_count};
    return plan_term_path(planner, &path);
}

/* Whether an index has the first 'tied' parts in any sequence, and the others as they are: in their
 * orders or all in the opposite ones. */
static bool is_index(const Planner *planner, const CompositeIndex *index, const PartList *parts,
                     size_t tied)
{
    if (index->part_count != parts->count || index->array_steps > 0)
        return false;
    PartList first = {.count = tied};
    memcpy(first.parts, parts->parts, tied * sizeof(Part));
    bool is_down = false;
    for (size_t i = 0; i < parts->count; i++) {
        const CompositePart *part = &index->parts[i];
        TermPath path = path_of(planner, part);
        bool is_opposite = part->is_descending != parts->parts[i].is_descending;
        is_down = i <= tied ? is_opposite : is_down;
        if (i < tied ? !has_part(&first, path)
                     : path != parts->parts[i].path || is_opposite != is_down)
            return false;
    }
    return true;
}

static bool is_there(const Planner *planner, const PartList *parts, size_t tied)
{
    size_t count = 0;
    const CompositeIndex *indexes = NULL;
    if (planner->schema->index != NULL)
        indexes = index_policy_composites(planner->schema->index, &count);
    for (size_t i = 0; i < count; i++) {
        if (is_index(planner, &indexes[i], parts, tied))
            return true;
    }
    return false;
}

/* ---- advice ---- */

static void advise_index(Advisor *advisor, const PartList *first, const PartList *last)
{
    PartList parts = *first;
    if (first->count + last->count > COMPOSITE_PARTS_MAX || first->count + last->count < 2)
        return;
    for (size_t i = 0; i < last->count; i++)
        parts.parts[parts.count++] = last->parts[i];
    if (is_there(advisor->planner, &parts, first->count))
        return;
    Slice *texts = ARENA_NEW_ARRAY(advisor->arena, Slice, parts.count);
    for (size_t i = 0; i < parts.count; i++)
        texts[i] = arena_format(advisor->arena, "%.*s %s", SLICE_ARG(parts.parts[i].text),
                                parts.parts[i].is_descending ? "DESC" : "ASC");
    ASSERT(advisor->out->count < ADVICE_MAX);
    advisor->out->list[advisor->out->count++] = (AdvisedIndex){texts, parts.count};
}

static void advise_order(Advisor *advisor)
{
    PartList tied = {0};
    for (size_t i = 0; i < advisor->equal.count; i++) {
        if (!has_part(&advisor->orders, advisor->equal.parts[i].path))
            add_part(&tied, advisor->equal.parts[i]);
    }
    if (tied.count > 0 && advisor->orders.count > 0)
        advise_index(advisor, &tied, &advisor->orders);
}

void advise(Planner *planner, const Filter *filter, Arena *arena, IndexAdvice *out)
{
    Advisor advisor = {.planner = planner, .arena = arena, .out = out};
    out->count = 0;
    read_filter(&advisor, filter);
    if (read_orders(&advisor))
        advise_order(&advisor);
    bool has_range = false;
    for (size_t i = 0; i < advisor.ranges.count; i++) {
        PartList range = {.parts = {advisor.ranges.parts[i]}, .count = 1};
        if (has_part(&advisor.equal, range.parts[0].path))
            continue;
        has_range = true;
        if (advisor.equal.count > 0)
            advise_index(&advisor, &advisor.equal, &range);
    }
    if (!has_range && advisor.orders.count == 0)
        advise_index(&advisor, &advisor.equal, &(PartList){0});
}
