/* plan_filter.c - from a WHERE clause to look-ups of the index. See plan_int.h for the idea. */
#include "query/functions_int.h"
#include "query/plan_int.h"
#include "query/text_int.h"

static Filter *filter_new(Planner *planner, FilterKind kind, bool exact)
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

static Filter *none(Planner *planner)
{
    return filter_new(planner, FILTER_NONE, true);
}

static Filter *pair(Planner *planner, FilterKind kind, Filter *a, Filter *b, bool exact)
{
    Filter *filter = filter_new(planner, kind, exact);
    filter->children = a;
    a->next = b;
    b->next = NULL;
    return filter;
}

Filter *filter_and(Planner *planner, Filter *a, Filter *b)
{
    if (a->kind == FILTER_NONE || b->kind == FILTER_NONE)
        return none(planner);
    if (a->kind == FILTER_ALL && a->exact)
        return b;
    if (b->kind == FILTER_ALL && b->exact)
        return a;
    if (a->kind == FILTER_ALL || b->kind == FILTER_ALL) {
        Filter *known = a->kind == FILTER_ALL ? b : a;
        known->exact = false;
        return known;
    }
    return pair(planner, FILTER_AND, a, b, a->exact && b->exact);
}

static Filter *filter_or(Planner *planner, Filter *a, Filter *b)
{
    if (a->kind == FILTER_NONE)
        return b;
    if (b->kind == FILTER_NONE)
        return a;
    if (a->kind == FILTER_ALL || b->kind == FILTER_ALL)
        return filter_all(planner, (a->kind == FILTER_ALL && a->exact) ||
                                       (b->kind == FILTER_ALL && b->exact));
    return pair(planner, FILTER_OR, a, b, a->exact && b->exact);
}

/* 'a' without 'b'; if 'b' may hold too much, nothing can be taken away. */
static Filter *filter_minus(Planner *planner, Filter *a, Filter *b)
{
    if (b->kind == FILTER_NONE || a->kind == FILTER_NONE)
        return a;
    if (!b->exact) {
        a->exact = false;
        return a;
    }
    if (b->kind == FILTER_ALL)
        return none(planner);
    return pair(planner, FILTER_MINUS, a, b, a->exact);
}

enum { EXCLUDED_MAX = 16 }; /* enough to see what is missing */

static Slice spec_of(Planner *planner, const PlanPath *path)
{
    Slice text = plan_path_text(planner->arena, path);
    return arena_format(planner->arena, "%.*s/?", SLICE_ARG(text));
}

static void note_excluded(Planner *planner, const PlanPath *path)
{
    Slice spec = spec_of(planner, path);
    if (planner->excluded == NULL)
        planner->excluded = ARENA_NEW_ARRAY(planner->arena, Slice, EXCLUDED_MAX);
    for (size_t i = 0; i < planner->excluded_count; i++) {
        if (slice_equal(planner->excluded[i], spec))
            return;
    }
    if (planner->excluded_count < EXCLUDED_MAX)
        planner->excluded[planner->excluded_count++] = spec;
}

static Filter *term(Planner *planner, const PlanPath *path, Slice value, bool exact)
{
    Filter *filter = filter_new(planner, FILTER_TERM, exact && path->is_precise);
    filter->path = plan_term_path(planner, path);
    filter->from = value;
    filter->spec = spec_of(planner, path);
    return filter;
}

Filter *filter_range(Planner *planner, const PlanPath *path, Slice from, Slice to, bool exact)
{
    Filter *filter = filter_new(planner, FILTER_RANGE, exact && path->is_precise);
    filter->path = plan_term_path(planner, path);
    filter->from = from;
    filter->to = to;
    filter->spec = spec_of(planner, path);
    return filter;
}

static Slice tag_bytes(Planner *planner, TermTag tag)
{
    char byte = (char)tag;
    return arena_copy(planner->arena, slice_make(&byte, 1));
}

Filter *filter_present(Planner *planner, const PlanPath *path)
{
    return term(planner, path, tag_bytes(planner, TERM_PRESENT), true);
}

static Filter *tags(Planner *planner, const PlanPath *path, TermTag first, TermTag end)
{
    return filter_range(planner, path, tag_bytes(planner, first), tag_bytes(planner, end), true);
}

static Slice after(Planner *planner, Slice bytes)
{
    AUTO(buf_done) Buf end;
    buf_init(&end, TERM_VALUE_BYTES_MAX);
    buf_slice(&end, bytes);
    term_after(&end);
    return arena_copy(planner->arena, buf_view(&end));
}

/* ---- comparisons with a constant ---- */

static Filter *make_equal(Planner *planner, const PlanPath *path, const Value *value, bool wanted)
{
    if (!value_defined(value))
        return none(planner); /* the comparison is undefined, for every document */
    bool exact = true;
    Slice bytes = plan_term(planner, value, &exact);
    Filter *equal = term(planner, path, bytes, exact);
    return wanted ? equal : filter_minus(planner, filter_present(planner, path), equal);
}

static BinaryOp negated_op(BinaryOp op)
{
    switch (op) {
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
    switch (op) {
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

/* Values of one type, up to or from a value of it on. What is not of that type is undefined, so
 * that "false" is the other part of the type. */
static Filter *make_ordered(Planner *planner, const PlanPath *path, BinaryOp op, const Value *value,
                            bool wanted)
{
    if (!wanted)
        op = negated_op(op);
    bool exact = true;
    Slice bytes = plan_term(planner, value, &exact);
    TermTag first = TERM_NULL;
    TermTag end = TERM_FALSE;
    switch (value->type) {
    case JSON_NULL:
        break;
    case JSON_BOOL:
        first = TERM_FALSE;
        end = TERM_NUMBER;
        break;
    case JSON_NUMBER:
        first = TERM_NUMBER;
        end = TERM_STRING;
        break;
    case JSON_STRING:
        first = TERM_STRING;
        end = TERM_ARRAY;
        break;
    case JSON_UNDEFINED:
    case JSON_ARRAY:
    case JSON_OBJECT:
        return none(planner); /* there is no order among these */
    }
    /* What shares an inexact term with the constant may be on either side of it. */
    bool is_upper = op == BINARY_LESS || op == BINARY_LESS_EQUAL;
    bool is_included = !exact || op == BINARY_LESS_EQUAL || op == BINARY_GREATER_EQUAL;
    Slice behind = after(planner, bytes);
    if (is_upper)
        return filter_range(planner, path, tag_bytes(planner, first), is_included ? behind : bytes,
                            exact);
    return filter_range(planner, path, is_included ? bytes : behind, tag_bytes(planner, end),
                        exact);
}

static Filter *make_comparison(Planner *planner, const PlanPath *path, BinaryOp op,
                               const Value *value, bool wanted)
{
    switch (op) {
    case BINARY_EQUAL:
        return make_equal(planner, path, value, wanted);
    case BINARY_NOT_EQUAL:
        return make_equal(planner, path, value, !wanted);
    case BINARY_LESS:
    case BINARY_LESS_EQUAL:
    case BINARY_GREATER:
    case BINARY_GREATER_EQUAL:
        return make_ordered(planner, path, op, value, wanted);
    default:
        return NULL;
    }
}

/* An indexed path, and nothing else. */
static bool indexed_path(Planner *planner, const Node *node, PlanPath *out)
{
    if (!plan_path(planner, node, out) || out->count == 0)
        return false;
    if (plan_is_indexed(planner, out))
        return true;
    note_excluded(planner, out);
    return false;
}

static Status chain_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    const Link *link = node->chain.links;
    if (link->next != NULL)
        return STATUS_OK;
    PlanPath path;
    Value value;
    bool is_constant = false;
    BinaryOp op = link->op;
    if (indexed_path(planner, node->chain.first, &path)) {
        TRY(plan_constant(planner, link->right, &value, &is_constant));
    } else if (indexed_path(planner, link->right, &path)) {
        TRY(plan_constant(planner, node->chain.first, &value, &is_constant));
        op = mirrored_op(op);
    }
    if (is_constant)
        *out = make_comparison(planner, &path, op, &value, wanted);
    return STATUS_OK;
}

static Status between_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    PlanPath path;
    Value low, high;
    bool low_known = false;
    bool high_known = false;
    if (!indexed_path(planner, node->between.value, &path))
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
        *out = slice_compare(above->from, above->to) < 0 ? above : none(planner);
        return STATUS_OK;
    }
    *out = wanted ? filter_and(planner, above, below) : filter_or(planner, above, below);
    return STATUS_OK;
}

/* One of the constants 'list' names. */
static Status any_of(Planner *planner, const PlanPath *path, const Node *list, Filter **out)
{
    *out = none(planner);
    for (const Node *item = list; item != NULL; item = item->next) {
        Value value;
        bool is_constant = false;
        TRY(plan_constant(planner, item, &value, &is_constant));
        if (!is_constant) {
            *out = NULL;
            return STATUS_OK;
        }
        *out = filter_or(planner, *out, make_equal(planner, path, &value, true));
    }
    return STATUS_OK;
}

static Status in_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    PlanPath path;
    if (!indexed_path(planner, node->in.value, &path))
        return STATUS_OK;
    Filter *any = NULL;
    TRY(any_of(planner, &path, node->in.list.first, &any));
    if (any == NULL)
        return STATUS_OK;
    *out =
        wanted != node->negated ? any : filter_minus(planner, filter_present(planner, &path), any);
    return STATUS_OK;
}

/* ---- functions ---- */

static Filter *prefix_filter(Planner *planner, const PlanPath *path, Slice prefix, bool wanted)
{
    AUTO(buf_done) Buf from;
    buf_init(&from, TERM_VALUE_BYTES_MAX);
    bool exact = true;
    term_put_prefix(&from, prefix, &exact);
    Slice begin = arena_copy(planner->arena, buf_view(&from));
    Filter *found = filter_range(planner, path, begin, after(planner, begin), exact);
    return wanted ? found
                  : filter_minus(planner, tags(planner, path, TERM_STRING, TERM_ARRAY), found);
}

typedef struct TypeRow {
    Slice function;
    TermTag first;
    TermTag end;
    bool exact;
} TypeRow;

static const TypeRow TYPE_ROWS[] = {
    {SLICE_INIT("IS_NULL"), TERM_NULL, TERM_FALSE, true},
    {SLICE_INIT("IS_BOOL"), TERM_FALSE, TERM_NUMBER, true},
    {SLICE_INIT("IS_BOOLEAN"), TERM_FALSE, TERM_NUMBER, true},
    {SLICE_INIT("IS_NUMBER"), TERM_NUMBER, TERM_STRING, true},
    {SLICE_INIT("IS_FINITE_NUMBER"), TERM_NUMBER, TERM_STRING, true},
    {SLICE_INIT("IS_INTEGER"), TERM_NUMBER, TERM_STRING, false},
    {SLICE_INIT("IS_STRING"), TERM_STRING, TERM_ARRAY, true},
    {SLICE_INIT("IS_ARRAY"), TERM_ARRAY, TERM_OBJECT, true},
    {SLICE_INIT("IS_OBJECT"), TERM_OBJECT, TERM_END, true},
    {SLICE_INIT("IS_PRIMITIVE"), TERM_NULL, TERM_ARRAY, true},
};

/* Questions about the type are answered for every document, also where there is nothing. */
static Filter *type_filter(Planner *planner, const PlanPath *path, Slice name, bool wanted)
{
    Filter *found = NULL;
    if (slice_equal(name, SLICE("IS_DEFINED")))
        found = filter_present(planner, path);
    for (size_t i = 0; i < ARRAY_COUNT(TYPE_ROWS) && found == NULL; i++) {
        if (slice_equal(name, TYPE_ROWS[i].function)) {
            found = tags(planner, path, TYPE_ROWS[i].first, TYPE_ROWS[i].end);
            found->exact = found->exact && TYPE_ROWS[i].exact;
        }
    }
    if (found == NULL || wanted)
        return found;
    /* A path that is not precise says nothing about what is not there. */
    return path->is_precise ? filter_minus(planner, filter_all(planner, true), found)
                            : filter_all(planner, false);
}

/* ARRAY_CONTAINS(path, value), and with several values ANY and ALL of them. */
static Status contains_filter(Planner *planner, const Node *node, bool is_all, bool wanted,
                              Filter **out)
{
    PlanPath array;
    if (!indexed_path(planner, node->call.args.first, &array) || array.count == PLAN_STEPS_MAX)
        return STATUS_OK;
    PlanPath element = array;
    element.steps[element.count++] = (IndexStep){.is_element = true};
    if (!plan_is_indexed(planner, &element))
        return STATUS_OK;
    Filter *found = is_all ? tags(planner, &array, TERM_ARRAY, TERM_OBJECT) : none(planner);
    for (const Node *item = node->call.args.first->next; item != NULL; item = item->next) {
        Value value;
        bool is_constant = false;
        TRY(plan_constant(planner, item, &value, &is_constant));
        if (!is_constant)
            return STATUS_OK;
        Filter *one = make_equal(planner, &element, &value, true);
        found = is_all ? filter_and(planner, found, one) : filter_or(planner, found, one);
    }
    *out = wanted ? found
                  : filter_minus(planner, tags(planner, &array, TERM_ARRAY, TERM_OBJECT), found);
    return STATUS_OK;
}

/* The third argument of STARTSWITH and others: whether case does not matter. */
static Status ignores_case(Planner *planner, const Node *node, bool *out)
{
    *out = false;
    if (node->call.args.count < 3)
        return STATUS_OK;
    Value flag;
    bool is_constant = false;
    TRY(plan_constant(planner, node->call.args.last, &flag, &is_constant));
    *out = !is_constant || flag.type != JSON_BOOL || flag.boolean;
    return STATUS_OK;
}

static Status text_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    bool is_prefix = slice_equal(node->call.function->name, SLICE("STARTSWITH"));
    PlanPath path;
    Value text;
    bool is_constant = false;
    bool is_loose = true;
    if (!indexed_path(planner, node->call.args.first, &path))
        return STATUS_OK;
    TRY(plan_constant(planner, node->call.args.first->next, &text, &is_constant));
    TRY(ignores_case(planner, node, &is_loose));
    if (!is_constant || is_loose)
        return STATUS_OK;
    if (text.type != JSON_STRING)
        *out = none(planner);
    else if (is_prefix)
        *out = prefix_filter(planner, &path, text.string, wanted);
    else if (wanted)
        *out = make_equal(planner, &path, &text, true);
    else
        *out = filter_minus(planner, tags(planner, &path, TERM_STRING, TERM_ARRAY),
                            make_equal(planner, &path, &text, true));
    return STATUS_OK;
}

static Status array_contains_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    /* ARRAY_CONTAINS(["a", "b"], c.x) is an IN that is false, not undefined, for what is missing.
     */
    PlanPath path;
    Value list;
    bool is_constant = false;
    if (node->call.args.count > 2)
        return STATUS_OK; /* partial matches */
    TRY(plan_constant(planner, node->call.args.first, &list, &is_constant));
    if (!is_constant)
        return contains_filter(planner, node, false, wanted, out);
    if (!wanted || list.type != JSON_ARRAY || !indexed_path(planner, node->call.args.last, &path))
        return STATUS_OK;
    *out = none(planner);
    JsonIter it = json_iter(list.json);
    while (json_next(&it)) {
        Value value = value_of(it.value, true);
        *out = filter_or(planner, *out, make_equal(planner, &path, &value, true));
    }
    return STATUS_OK;
}

static Status call_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    Slice name = node->call.function->name;
    if (node->call.args.count == 0)
        return STATUS_OK;
    PlanPath path;
    if (node->call.args.count == 1 && indexed_path(planner, node->call.args.first, &path)) {
        *out = type_filter(planner, &path, name, wanted);
        if (*out != NULL)
            return STATUS_OK;
    }
    if (slice_equal(name, SLICE("STARTSWITH")) || slice_equal(name, SLICE("STRINGEQUALS")))
        return text_filter(planner, node, wanted, out);
    if (slice_equal(name, SLICE("ARRAY_CONTAINS")))
        return array_contains_filter(planner, node, wanted, out);
    if (slice_equal(name, SLICE("ARRAY_CONTAINS_ANY")))
        return contains_filter(planner, node, false, wanted, out);
    if (slice_equal(name, SLICE("ARRAY_CONTAINS_ALL")))
        return contains_filter(planner, node, true, wanted, out);
    return STATUS_OK;
}

/* LIKE 'abc%', and LIKE without anything special in it; others are walked over. */
static Status like_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    PlanPath path;
    Value pattern;
    bool is_constant = false;
    if (!indexed_path(planner, node->like.value, &path) || node->like.escape != TEXT_INVALID)
        return STATUS_OK;
    TRY(plan_constant(planner, node->like.pattern, &pattern, &is_constant));
    if (!is_constant)
        return STATUS_OK;
    wanted = wanted != node->negated;
    if (pattern.type != JSON_STRING) {
        *out = none(planner);
        return STATUS_OK;
    }
    size_t plain = 0;
    while (plain < pattern.string.len && strchr("%_[", pattern.string.ptr[plain]) == NULL)
        plain++;
    if (plain == pattern.string.len) {
        Filter *equal = make_equal(planner, &path, &pattern, true);
        *out = wanted ? equal
                      : filter_minus(planner, tags(planner, &path, TERM_STRING, TERM_ARRAY), equal);
    } else if (plain + 1 == pattern.string.len && pattern.string.ptr[plain] == '%') {
        *out = prefix_filter(planner, &path, slice_first(pattern.string, plain), wanted);
    } else if (plain > 0 && wanted) {
        *out = prefix_filter(planner, &path, slice_first(pattern.string, plain), true);
        (*out)->exact = false;
    }
    return STATUS_OK;
}

/* EXISTS (SELECT ... FROM t IN c.tags WHERE ...): some element must fulfil the condition. */
static Status exists_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    const Select *select = node->subquery.select;
    if (node->subquery.mode != SUBQUERY_EXISTS || wanted == node->negated || select->is_grouped)
        return STATUS_OK;
    Filter *found = filter_all(planner, false);
    for (const Source *source = select->sources; source != NULL; source = source->next) {
        PlanPath path;
        if (source->value == NULL || !plan_path(planner, source->value, &path) ||
            path.count >= PLAN_STEPS_MAX)
            continue;
        if (source->iterate)
            path.steps[path.count++] = (IndexStep){.is_element = true};
        path.is_precise = false;
        PlanPath *kept = ARENA_NEW(planner->arena, PlanPath);
        *kept = path;
        planner->slots[source->slot] = kept;
        if (path.count > 0 && plan_is_indexed(planner, &path))
            found = filter_and(planner, found, filter_present(planner, &path));
    }
    if (select->where != NULL) {
        Filter *inside = NULL;
        TRY(filter_make(planner, select->where, true, &inside));
        /* What holds for an element implies that there is one. */
        if (inside->kind != FILTER_ALL)
            found = inside;
    }
    found->exact = false;
    *out = found;
    return STATUS_OK;
}

/* ---- any expression of one path ---- */

typedef struct Sole {
    Planner *planner;
    PlanPath path; /* the one that everything depends on */
    bool has_path;
    bool is_sole;
} Sole;

static bool same_path(const PlanPath *a, const PlanPath *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (a->steps[i].is_element != b->steps[i].is_element ||
            !slice_equal(a->steps[i].name, b->steps[i].name))
            return false;
    }
    return true;
}

static Status find_sole(void *context, Node *node)
{
    Sole *sole = context;
    PlanPath path;
    if (!sole->is_sole)
        return STATUS_OK;
    if (node->kind == NODE_NAME || node->kind == NODE_PATH) {
        if (plan_path(sole->planner, node, &path) && path.is_precise && path.count > 0 &&
            (!sole->has_path || same_path(&path, &sole->path))) {
            sole->path = path;
            sole->has_path = true;
            return STATUS_OK;
        }
        sole->is_sole = false;
        return STATUS_OK;
    }
    bool is_foreign =
        node->kind == NODE_SUBQUERY || node->kind == NODE_UDF || node->kind == NODE_SLOT ||
        (node->kind == NODE_CALL && (node->call.function->aggregate != AGGREGATE_NONE ||
                                     (node->call.function->flags & FUNCTION_UNSTEADY) != 0));
    if (is_foreign)
        sole->is_sole = false;
    return sole->is_sole ? node_each_child(node, find_sole, context) : STATUS_OK;
}

static Node *clone(Planner *planner, const Node *node, uint32_t slot);

static NodeList clone_list(Planner *planner, const NodeList *list, uint32_t slot)
{
    NodeList copy = {0};
    for (const Node *node = list->first; node != NULL; node = node->next)
        list_append(&copy, clone(planner, node, slot));
    return copy;
}

/* A copy in which the path is read from a slot. Only what find_sole lets pass. */
static Node *clone(Planner *planner, const Node *node, uint32_t slot)
{
    Node *copy = ARENA_NEW(planner->arena, Node);
    *copy = *node;
    copy->next = NULL;
    switch (node->kind) {
    case NODE_NAME:
    case NODE_PATH:
        copy->kind = NODE_SLOT;
        copy->slot = slot;
        break;
    case NODE_UNARY:
        copy->unary.operand = clone(planner, node->unary.operand, slot);
        break;
    case NODE_CHAIN: {
        copy->chain.first = clone(planner, node->chain.first, slot);
        Link **at = &copy->chain.links;
        for (const Link *link = node->chain.links; link != NULL; link = link->next) {
            *at = ARENA_NEW(planner->arena, Link);
            **at = (Link){.op = link->op, .right = clone(planner, link->right, slot)};
            copy->chain.last = *at;
            at = &(*at)->next;
        }
        break;
    }
    case NODE_AND:
    case NODE_OR:
    case NODE_COALESCE:
    case NODE_CONDITIONAL:
    case NODE_ARRAY:
        copy->list = clone_list(planner, &node->list, slot);
        break;
    case NODE_BETWEEN:
        copy->between.value = clone(planner, node->between.value, slot);
        copy->between.low = clone(planner, node->between.low, slot);
        copy->between.high = clone(planner, node->between.high, slot);
        break;
    case NODE_IN:
        copy->in.value = clone(planner, node->in.value, slot);
        copy->in.list = clone_list(planner, &node->in.list, slot);
        break;
    case NODE_LIKE:
        copy->like.value = clone(planner, node->like.value, slot);
        copy->like.pattern = clone(planner, node->like.pattern, slot);
        break;
    case NODE_OBJECT: {
        Property **at = &copy->object.first;
        for (const Property *p = node->object.first; p != NULL; p = p->next) {
            *at = ARENA_NEW(planner->arena, Property);
            **at = (Property){
                .name = p->name, .span = p->span, .value = clone(planner, p->value, slot)};
            at = &(*at)->next;
        }
        break;
    }
    case NODE_CALL:
        copy->call.args = clone_list(planner, &node->call.args, slot);
        break;
    case NODE_LITERAL:
    case NODE_PARAMETER:
    case NODE_UDF:
    case NODE_SUBQUERY:
    case NODE_SLOT:
        break;
    }
    return copy;
}

static bool is_test_of_text(const Node *node)
{
    static const Slice functions[] = {
        SLICE_INIT("CONTAINS"),     SLICE_INIT("ENDSWITH"),   SLICE_INIT("REGEXMATCH"),
        SLICE_INIT("STRINGEQUALS"), SLICE_INIT("STARTSWITH"),
    };
    if (node->kind == NODE_LIKE)
        return node->like.value->kind == NODE_PATH || node->like.value->kind == NODE_NAME;
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++) {
        if (node->kind == NODE_CALL && slice_equal(node->call.function->name, functions[i]) &&
            (node->call.args.first->kind == NODE_PATH || node->call.args.first->kind == NODE_NAME))
            return true;
    }
    return false;
}

/* What depends on one path only is asked of every value that the path has, instead of every
 * document. */
static Status test_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    Sole sole = {.planner = planner, .is_sole = true};
    TRY(find_sole(&sole, (Node *)(uintptr_t)node)); /* looks only */
    if (!sole.is_sole || !sole.has_path || !plan_is_indexed(planner, &sole.path))
        return STATUS_OK;
    bool is_text = is_test_of_text(node); /* undefined for all but strings */
    Filter *filter =
        filter_range(planner, &sole.path, tag_bytes(planner, is_text ? TERM_STRING : TERM_NULL),
                     tag_bytes(planner, is_text ? TERM_ARRAY : TERM_END), true);
    filter->kind = FILTER_TEST;
    filter->slot = planner->query->slot_count; /* the run has one more than the query needs */
    filter->test = clone(planner, node, filter->slot);
    filter->wanted = wanted;
    *out = filter;
    if (is_text)
        return STATUS_OK;
    /* And where the path leads nowhere, all answers are the same. */
    Value answer;
    planner->run->slots[filter->slot] = VALUE_UNDEFINED;
    TRY(eval(planner->run, filter->test, &answer));
    if (answer.type == JSON_BOOL && answer.boolean == wanted)
        *out = filter_or(
            planner, filter,
            filter_minus(planner, filter_all(planner, true), filter_present(planner, &sole.path)));
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
    }
    *out = all;
    return STATUS_OK;
}

/* WHERE c.flag */
static Filter *flag_filter(Planner *planner, const Node *node, bool wanted)
{
    PlanPath path;
    Value value = value_bool(wanted);
    return indexed_path(planner, node, &path) ? make_equal(planner, &path, &value, true) : NULL;
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
        return like_filter(planner, node, wanted, out);
    case NODE_CALL:
        return call_filter(planner, node, wanted, out);
    case NODE_SUBQUERY:
        return exists_filter(planner, node, wanted, out);
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
        *out = holds ? filter_all(planner, true) : none(planner);
        return STATUS_OK;
    }
    TRY(known_filter(planner, node, wanted, out));
    if (*out == NULL)
        TRY(test_filter(planner, node, wanted, out));
    if (*out == NULL)
        *out = filter_all(planner, false);
    return STATUS_OK;
}

Filter *filter_key(Planner *planner, const PartitionKeyDefinition *definition,
                   const PartitionKey *key)
{
    Filter *all = filter_all(planner, true);
    for (size_t i = 0; i < key->count && i < definition->path_count; i++) {
        PlanPath path = {.is_precise = true};
        const PropertyPath *names = &definition->paths[i];
        if (names->count > PLAN_STEPS_MAX)
            return filter_all(planner, false);
        for (size_t j = 0; j < names->count; j++)
            path.steps[path.count++] = (IndexStep){.name = names->segments[j]};
        Value value = value_of(key->parts[i], true);
        if (!plan_is_indexed(planner, &path) || !value_defined(&value)) {
            all->exact = false; /* items without the key are told by their hash */
            continue;
        }
        all = filter_and(planner, all, make_equal(planner, &path, &value, true));
    }
    return all;
}
