/* plan_filter.c - from a WHERE clause to look-ups of the index: how filters are put together, and
 * what comparisons say. See plan_int.h for the idea. */
#include "query/plan/plan_int.h"
#include "query/sql/functions_int.h"

#include <math.h>

/* ---- trees ---- */

enum { NARROWED_MAX = 16 }; /* parts of a conjunction among which a range looks for another */

Filter *filter_new(Planner *planner, FilterKind kind, bool exact)
{
    Filter *filter = ARENA_NEW(planner->arena, Filter);
    filter->kind = kind;
    filter->exact = exact;
    return filter;
}

Filter *filter_all(Planner *planner, bool exact)
{
    return filter_new(planner, FILTER_ALL, exact);
}

Filter *filter_none(Planner *planner)
{
    return filter_new(planner, FILTER_NONE, true);
}

void filter_add_child(Filter *filter, Filter *child)
{
    if (filter->children == NULL)
        filter->children = child;
    else
        filter->last_child->next = child;
    filter->last_child = child;
    filter->child_count++;
    child->next = NULL;
}

/* All children of 'from', or itself if it is of another kind. */
static void add_flat(Filter *filter, Filter *from)
{
    if (from->kind != filter->kind) {
        filter_add_child(filter, from);
        return;
    }
    if (filter->children == NULL)
        filter->children = from->children;
    else
        filter->last_child->next = from->children;
    filter->last_child = from->last_child;
    filter->child_count += from->child_count;
}

/* One level for any number of parts: programs write thousands of them. */
static Filter *join(Planner *planner, FilterKind kind, Filter *a, Filter *b)
{
    Filter *filter = a->kind == kind ? a : filter_new(planner, kind, a->exact);
    filter->exact = a->exact && b->exact;
    if (filter != a)
        filter_add_child(filter, a);
    add_flat(filter, b);
    return filter;
}

/* c.a >= 1 AND c.a < 5 is one range, since a document has one value there. */
static bool narrow(Filter *range, const Filter *by)
{
    if (range->kind != FILTER_RANGE || range->path != by->path || !range->is_single)
        return false;
    range->exact = range->exact && by->exact;
    if (slice_compare(by->from, range->from) > 0)
        range->from = by->from;
    if (slice_compare(by->to, range->to) < 0)
        range->to = by->to;
    if (slice_compare(range->from, range->to) > 0)
        range->to = range->from; /* nothing */
    return true;
}

static bool narrow_any(Filter *filter, const Filter *by)
{
    if (by->kind != FILTER_RANGE || filter->kind != FILTER_AND)
        return by->kind == FILTER_RANGE && narrow(filter, by);
    size_t left = NARROWED_MAX;
    for (Filter *child = filter->children; child != NULL && left > 0; child = child->next, left--) {
        if (narrow(child, by)) {
            filter->exact = filter->exact && by->exact;
            return true;
        }
    }
    return false;
}

Filter *filter_and(Planner *planner, Filter *a, Filter *b)
{
    if (a->kind == FILTER_NONE || b->kind == FILTER_NONE)
        return filter_none(planner);
    if (a->kind != FILTER_ALL && b->kind != FILTER_ALL)
        return narrow_any(a, b) ? a : join(planner, FILTER_AND, a, b);
    Filter *known = a->kind == FILTER_ALL ? b : a;
    known->exact = a->exact && b->exact;
    return known;
}

Filter *filter_or(Planner *planner, Filter *a, Filter *b)
{
    if (a->kind == FILTER_NONE)
        return b;
    if (b->kind == FILTER_NONE)
        return a;
    if (a->kind == FILTER_ALL || b->kind == FILTER_ALL)
        return filter_all(planner, (a->kind == FILTER_ALL && a->exact) ||
                                       (b->kind == FILTER_ALL && b->exact));
    return join(planner, FILTER_OR, a, b);
}

Filter *filter_minus(Planner *planner, Filter *a, Filter *b)
{
    if (b->kind == FILTER_NONE || a->kind == FILTER_NONE)
        return a;
    if (!b->exact) {
        a->exact = false;
        return a;
    }
    if (b->kind == FILTER_ALL)
        return filter_none(planner);
    Filter *filter = filter_new(planner, FILTER_MINUS, a->exact);
    filter_add_child(filter, a);
    filter_add_child(filter, b);
    return filter;
}

/* ---- leaves ---- */

Slice filter_spec(Planner *planner, const PlanPath *path, TermPath term)
{
    if (planner->spec.ptr == NULL || planner->spec_path != term) {
        Slice text = plan_path_text(planner->arena, path);
        planner->spec = arena_format(planner->arena, "%.*s/?", SLICE_ARG(text));
        planner->spec_path = term;
    }
    return planner->spec;
}

Filter *filter_term(Planner *planner, const PlanPath *path, Slice value, bool exact)
{
    Filter *filter = filter_new(planner, FILTER_TERM, exact && path->is_precise);
    filter->path = plan_term_path(planner, path);
    filter->from = value;
    filter->spec = filter_spec(planner, path, filter->path);
    return filter;
}

Filter *filter_range(Planner *planner, const PlanPath *path, Slice from, Slice to, bool exact)
{
    Filter *filter = filter_term(planner, path, from, exact);
    filter->kind = FILTER_RANGE;
    filter->to = to;
    filter->is_single = true;
    for (size_t i = 0; i < path->count; i++)
        filter->is_single = filter->is_single && !path->steps[i].is_element;
    return filter;
}

static Slice tag_bytes(TermTag tag)
{
    static const char bytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    static_assert(sizeof(bytes) == TERM_END + 1, "every tag has its byte");
    return slice_make(&bytes[tag], 1);
}

Filter *filter_present(Planner *planner, const PlanPath *path)
{
    return filter_term(planner, path, tag_bytes(TERM_PRESENT), true);
}

Filter *filter_types(Planner *planner, const PlanPath *path, TermTag first, TermTag end)
{
    return filter_range(planner, path, tag_bytes(first), tag_bytes(end), true);
}

enum { EXCLUDED_MAX = 16 }; /* enough to see what is missing */

static void note_excluded(Planner *planner, const PlanPath *path)
{
    Slice spec = filter_spec(planner, path, plan_term_path(planner, path));
    if (planner->excluded == NULL)
        planner->excluded = ARENA_NEW_ARRAY(planner->arena, Slice, EXCLUDED_MAX);
    for (size_t i = 0; i < planner->excluded_count; i++) {
        if (slice_equal(planner->excluded[i], spec))
            return;
    }
    if (planner->excluded_count < EXCLUDED_MAX)
        planner->excluded[planner->excluded_count++] = spec;
}

bool filter_path(Planner *planner, const Node *node, PlanPath *out)
{
    if (!plan_path(planner, node, out) || out->count == 0)
        return false;
    if (plan_is_indexed(planner, out))
        return true;
    note_excluded(planner, out);
    return false;
}

/* ---- comparisons with a constant ---- */

Filter *filter_equal(Planner *planner, const PlanPath *path, const Value *value, bool wanted)
{
    if (!value_defined(value))
        return filter_none(planner); /* the comparison is undefined, for every document */
    bool exact = true;
    Slice bytes = plan_term(planner, value, &exact);
    Filter *equal = filter_term(planner, path, bytes, exact);
    return wanted ? equal : filter_minus(planner, filter_present(planner, path), equal);
}

static BinaryOp negated_op(BinaryOp op)
{
    switch ((int)op) {
    case BINARY_LESS:
        return BINARY_GREATER_EQUAL;
    case BINARY_LESS_EQUAL:
        return BINARY_GREATER;
    case BINARY_GREATER:
        return BINARY_LESS_EQUAL;
    case BINARY_GREATER_EQUAL:
        return BINARY_LESS;
    default:
        return op;
    }
}

static BinaryOp mirrored_op(BinaryOp op)
{
    switch ((int)op) {
    case BINARY_LESS:
        return BINARY_GREATER;
    case BINARY_LESS_EQUAL:
        return BINARY_GREATER_EQUAL;
    case BINARY_GREATER:
        return BINARY_LESS;
    case BINARY_GREATER_EQUAL:
        return BINARY_LESS_EQUAL;
    default:
        return op;
    }
}

typedef struct TagRange {
    TermTag first;
    TermTag end;
} TagRange;

/* The values among which there is an order: those of one scalar type. */
static bool tags_of(JsonType type, TagRange *out)
{
    switch (type) {
    case JSON_NULL:
        *out = (TagRange){TERM_NULL, TERM_FALSE};
        return true;
    case JSON_BOOL:
        *out = (TagRange){TERM_FALSE, TERM_NUMBER};
        return true;
    case JSON_NUMBER:
        *out = (TagRange){TERM_NUMBER, TERM_STRING};
        return true;
    case JSON_STRING:
        *out = (TagRange){TERM_STRING, TERM_ARRAY};
        return true;
    case JSON_UNDEFINED:
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    return false;
}

/* Values of one type, up to or from a value of it on. What is not of that type is undefined, so
 * that "false" is the other part of the type. */
static Filter *make_ordered(Planner *planner, const PlanPath *path, BinaryOp op, const Value *value,
                            bool wanted)
{
    TagRange tags;
    if (!tags_of(value->type, &tags))
        return filter_none(planner);
    if (value->type == JSON_NUMBER && isnan(value->number)) /* false for every number */
        return wanted ? filter_none(planner) : filter_types(planner, path, tags.first, tags.end);
    if (!wanted)
        op = negated_op(op);
    bool exact = true;
    Slice bytes = plan_term(planner, value, &exact);
    /* What shares an inexact term with the constant may be on either side of it. */
    bool is_upper = op == BINARY_LESS || op == BINARY_LESS_EQUAL;
    bool is_included = !exact || op == BINARY_LESS_EQUAL || op == BINARY_GREATER_EQUAL;
    Slice after = plan_after(planner, bytes);
    if (is_upper)
        return filter_range(planner, path, tag_bytes(tags.first), is_included ? after : bytes,
                            exact);
    return filter_range(planner, path, is_included ? bytes : after, tag_bytes(tags.end), exact);
}

static Filter *make_comparison(Planner *planner, const PlanPath *path, BinaryOp op,
                               const Value *value, bool wanted)
{
    switch ((int)op) {
    case BINARY_EQUAL:
        return filter_equal(planner, path, value, wanted);
    case BINARY_NOT_EQUAL:
        return filter_equal(planner, path, value, !wanted);
    case BINARY_LESS:
    case BINARY_LESS_EQUAL:
    case BINARY_GREATER:
    case BINARY_GREATER_EQUAL:
        return make_ordered(planner, path, op, value, wanted);
    default:
        return NULL;
    }
}

static bool is_distance(const Node *node)
{
    return node->kind == NODE_CALL && node->call.function->id == FUNCTION_ID_ST_DISTANCE;
}

/* "a op b" with either side first. */
static Status compared(Planner *planner, const Node *left, BinaryOp op, const Node *right,
                       bool wanted, Filter **out)
{
    PlanPath path;
    Value value;
    bool is_constant = false;
    if (is_distance(left) && (op == BINARY_LESS || op == BINARY_LESS_EQUAL || op == BINARY_EQUAL))
        return filter_distance(planner, left, right, wanted, out);
    if (!filter_path(planner, left, &path))
        return STATUS_OK;
    TRY(plan_constant(planner, right, &value, &is_constant));
    if (is_constant)
        *out = make_comparison(planner, &path, op, &value, wanted);
    return STATUS_OK;
}

static Status chain_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    const Link *link = node->chain.links;
    if (link->next != NULL)
        return STATUS_OK;
    TRY(compared(planner, node->chain.first, link->op, link->right, wanted, out));
    if (*out == NULL)
        TRY(compared(planner, link->right, mirrored_op(link->op), node->chain.first, wanted, out));
    return STATUS_OK;
}

static Status between_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    PlanPath path;
    Value low, high;
    bool low_known = false;
    bool high_known = false;
    if (!filter_path(planner, node->between.value, &path))
        return STATUS_OK;
    TRY(plan_constant(planner, node->between.low, &low, &low_known));
    TRY(plan_constant(planner, node->between.high, &high, &high_known));
    if (!low_known || !high_known)
        return STATUS_OK;
    wanted = wanted != node->negated;
    Filter *above = make_ordered(planner, &path, BINARY_GREATER_EQUAL, &low, wanted);
    Filter *below = make_ordered(planner, &path, BINARY_LESS_EQUAL, &high, wanted);
    /* Two halves of one range are read as one. */
    if (wanted && above->kind == FILTER_RANGE && below->kind == FILTER_RANGE &&
        low.type == high.type) {
        above->to = below->to;
        above->exact = above->exact && below->exact;
        *out = slice_compare(above->from, above->to) < 0 ? above : filter_none(planner);
        return STATUS_OK;
    }
    *out = wanted ? filter_and(planner, above, below) : filter_or(planner, above, below);
    return STATUS_OK;
}

/* One of the constants 'list' names. */
static Status any_of(Planner *planner, const PlanPath *path, const Node *list, Filter **out)
{
    *out = filter_none(planner);
    for (const Node *item = list; item != NULL; item = item->next) {
        Value value;
        bool is_constant = false;
        TRY(plan_constant(planner, item, &value, &is_constant));
        if (!is_constant) {
            *out = NULL;
            return STATUS_OK;
        }
        *out = filter_or(planner, *out, filter_equal(planner, path, &value, true));
        TRY(run_reserve(planner->run, arena_used(planner->arena)));
    }
    return STATUS_OK;
}

static Status in_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    PlanPath path;
    if (!filter_path(planner, node->in.value, &path))
        return STATUS_OK;
    Filter *any = NULL;
    TRY(any_of(planner, &path, node->in.list.first, &any));
    if (any == NULL)
        return STATUS_OK;
    *out =
        wanted != node->negated ? any : filter_minus(planner, filter_present(planner, &path), any);
    return STATUS_OK;
}

/* ---- all of it ---- */

static Status list_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    bool is_and = (node->kind == NODE_AND) == wanted;
    Filter *all = NULL;
    for (const Node *item = node->list.first; item != NULL; item = item->next) {
        Filter *one = NULL;
        TRY(filter_make(planner, item, wanted, &one));
        if (all == NULL)
            all = one;
        else
            all = is_and ? filter_and(planner, all, one) : filter_or(planner, all, one);
        TRY(run_reserve(planner->run, arena_used(planner->arena)));
    }
    *out = all;
    return STATUS_OK;
}

/* WHERE c.flag */
static Filter *flag_filter(Planner *planner, const Node *node, bool wanted)
{
    PlanPath path;
    Value value = value_bool(wanted);
    return filter_path(planner, node, &path) ? filter_equal(planner, &path, &value, true) : NULL;
}

static Status known_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    switch (node->kind) {
    case NODE_AND:
    case NODE_OR:
        return list_filter(planner, node, wanted, out);
    case NODE_UNARY:
        return node->unary.op == UNARY_NOT ? filter_make(planner, node->unary.operand, !wanted, out)
                                           : STATUS_OK;
    case NODE_CHAIN:
        return chain_filter(planner, node, wanted, out);
    case NODE_BETWEEN:
        return between_filter(planner, node, wanted, out);
    case NODE_IN:
        return in_filter(planner, node, wanted, out);
    case NODE_LIKE:
        return filter_like(planner, node, wanted, out);
    case NODE_CALL:
        return filter_call(planner, node, wanted, out);
    case NODE_SUBQUERY:
        return filter_exists(planner, node, wanted, out);
    case NODE_NAME:
    case NODE_PATH:
        *out = flag_filter(planner, node, wanted);
        return STATUS_OK;
    case NODE_LITERAL:
    case NODE_PARAMETER:
    case NODE_COALESCE:
    case NODE_CONDITIONAL:
    case NODE_ARRAY:
    case NODE_OBJECT:
    case NODE_UDF:
    case NODE_SLOT:
        break;
    }
    return STATUS_OK;
}

Status filter_make(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    Value value;
    bool is_constant = false;
    *out = NULL;
    TRY(plan_constant(planner, node, &value, &is_constant));
    if (is_constant) {
        bool holds = value.type == JSON_BOOL && value.boolean == wanted;
        *out = holds ? filter_all(planner, true) : filter_none(planner);
        return STATUS_OK;
    }
    TRY(known_filter(planner, node, wanted, out));
    if (*out == NULL)
        TRY(filter_test(planner, node, wanted, out));
    if (*out == NULL)
        *out = filter_all(planner, false);
    return STATUS_OK;
}

/* 0 and -0 are one value in the index and two partition keys. */
static bool is_told_by_hash(const Value *value)
{
    return !value_defined(value) || (value->type == JSON_NUMBER && value->number == 0);
}

Filter *filter_key(Planner *planner, const PartitionKeyDefinition *definition,
                   const PartitionKey *key)
{
    Filter *all = filter_all(planner, true);
    for (size_t i = 0; i < key->count && i < definition->path_count; i++) {
        const PropertyPath *names = &definition->paths[i];
        IndexStep *steps = ARENA_NEW_ARRAY(planner->arena, IndexStep, names->count);
        for (size_t j = 0; j < names->count; j++)
            steps[j] = (IndexStep){.name = names->segments[j]};
        PlanPath path = {.steps = steps, .count = names->count, .is_precise = true};
        Value value = value_of(key->parts[i], true);
        Filter *one = filter_all(planner, false);
        if (value_defined(&value) && plan_is_indexed(planner, &path)) {
            one = filter_equal(planner, &path, &value, true);
            one->exact = one->exact && !is_told_by_hash(&value);
        }
        all = filter_and(planner, all, one);
    }
    return all;
}
