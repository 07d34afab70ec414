/* plan_call.c - what functions, LIKE and EXISTS tell the index: see plan_int.h. */
#include "query/plan/plan_int.h"
#include "query/sql/functions_int.h"
#include "query/sql/sql_text_int.h"

/* ---- strings ---- */

static Filter *strings(Planner *planner, const PlanPath *path)
{
    return filter_types(planner, path, TERM_STRING, TERM_ARRAY);
}

/* For a value that is no string the call is undefined, so neither filter has the item. */
static Filter *text_equal(Planner *planner, const PlanPath *path, const Value *text, bool wanted)
{
    Filter *equal = filter_equal(planner, path, text, true);
    return wanted ? equal : filter_minus(planner, strings(planner, path), equal);
}

static Filter *text_begins(Planner *planner, const PlanPath *path, Slice prefix, bool wanted)
{
    AUTO(buf_done) Buf from;
    buf_init(&from, TERM_VALUE_BYTES_MAX);
    bool exact = true;
    term_put_prefix(&from, prefix, &exact);
    Slice begin = arena_copy(planner->arena, buf_view(&from));
    Filter *found = filter_range(planner, path, begin, plan_after(planner, begin), exact);
    return wanted ? found : filter_minus(planner, strings(planner, path), found);
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
    PlanPath path;
    Value text;
    bool is_constant = false;
    bool is_loose = true;
    if (!filter_path(planner, node->call.args.first, &path))
        return STATUS_OK;
    TRY(plan_constant(planner, node->call.args.first->next, &text, &is_constant));
    TRY(ignores_case(planner, node, &is_loose));
    if (!is_constant || is_loose)
        return STATUS_OK;
    if (text.type != JSON_STRING)
        *out = filter_none(planner);
    else if (node->call.function->index == FUNCTION_INDEX_PREFIX)
        *out = text_begins(planner, &path, text.string, wanted);
    else
        *out = text_equal(planner, &path, &text, wanted);
    return STATUS_OK;
}

/* LIKE 'abc%', and LIKE without anything special in it; others are walked over. */
Status filter_like(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    PlanPath path;
    Value pattern;
    bool is_constant = false;
    if (!filter_path(planner, node->like.value, &path) || node->like.escape != TEXT_INVALID)
        return STATUS_OK;
    TRY(plan_constant(planner, node->like.pattern, &pattern, &is_constant));
    if (!is_constant)
        return STATUS_OK;
    wanted = wanted != node->negated;
    if (pattern.type != JSON_STRING) {
        *out = filter_none(planner);
        return STATUS_OK;
    }
    Slice text = pattern.string;
    size_t plain = 0;
    while (plain < text.len && memchr("%_[", text.ptr[plain], 3) == NULL)
        plain++;
    if (plain == text.len) {
        *out = text_equal(planner, &path, &pattern, wanted);
    } else if (plain + 1 == text.len && text.ptr[plain] == '%') {
        *out = text_begins(planner, &path, slice_first(text, plain), wanted);
    } else if (plain > 0 && wanted) {
        *out = text_begins(planner, &path, slice_first(text, plain), true);
        (*out)->exact = false;
    }
    return STATUS_OK;
}

/* ---- types ---- */

typedef struct TypeRow {
    TermTag first;
    TermTag end;
    bool exact;
} TypeRow;

static const TypeRow TYPE_ROWS[] = {
    [FUNCTION_INDEX_NULL] = {TERM_NULL, TERM_FALSE, true},
    [FUNCTION_INDEX_BOOLEANS] = {TERM_FALSE, TERM_NUMBER, true},
    [FUNCTION_INDEX_NUMBERS] = {TERM_NUMBER, TERM_STRING, true},
    [FUNCTION_INDEX_INTEGERS] = {TERM_NUMBER, TERM_STRING, false},
    [FUNCTION_INDEX_STRINGS] = {TERM_STRING, TERM_ARRAY, true},
    [FUNCTION_INDEX_ARRAYS] = {TERM_ARRAY, TERM_OBJECT, true},
    [FUNCTION_INDEX_OBJECTS] = {TERM_OBJECT, TERM_END, true},
    [FUNCTION_INDEX_PRIMITIVES] = {TERM_NULL, TERM_ARRAY, true},
};

/* Questions about the type are answered for every document, also where there is nothing. */
static Status type_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    PlanPath path;
    if (!filter_path(planner, node->call.args.first, &path))
        return STATUS_OK;
    FunctionIndex index = node->call.function->index;
    if (index == FUNCTION_INDEX_DEFINED) {
        *out = filter_present(planner, &path);
    } else {
        const TypeRow *row = &TYPE_ROWS[index];
        *out = filter_types(planner, &path, row->first, row->end);
        (*out)->exact = (*out)->exact && row->exact;
    }
    if (!wanted)
        *out = filter_minus(planner, filter_all(planner, true), *out);
    return STATUS_OK;
}

/* ---- arrays ---- */

/* ARRAY_CONTAINS(path, value), and with several values ANY and ALL of them: OR and AND of as many
 * answers, of which that for an undefined value is undefined. */
static Status contains_filter(Planner *planner, const Node *node, bool is_all, bool wanted,
                              Filter **out)
{
    PlanPath array;
    PlanPath element;
    if (!filter_path(planner, node->call.args.first, &array) ||
        !plan_element(planner, &array, &element) || !plan_is_indexed(planner, &element))
        return STATUS_OK;
    bool some_undefined = false;
    Filter *found =
        is_all ? filter_types(planner, &array, TERM_ARRAY, TERM_OBJECT) : filter_none(planner);
    for (const Node *item = node->call.args.first->next; item != NULL; item = item->next) {
        Value value;
        bool is_constant = false;
        TRY(plan_constant(planner, item, &value, &is_constant));
        if (!is_constant)
            return STATUS_OK;
        some_undefined = some_undefined || !value_defined(&value);
        if (!value_defined(&value))
            continue;
        Filter *one = filter_equal(planner, &element, &value, true);
        found = is_all ? filter_and(planner, found, one) : filter_or(planner, found, one);
    }
    if (some_undefined && wanted == is_all)
        *out = filter_none(planner); /* it is undefined if nothing else decides it */
    else if (wanted)
        *out = found;
    else
        *out = filter_minus(planner, filter_types(planner, &array, TERM_ARRAY, TERM_OBJECT), found);
    return STATUS_OK;
}

static Status array_contains_filter(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    PlanPath path;
    Value list;
    bool is_constant = false;
    if (node->call.args.count > 2)
        return STATUS_OK; /* partial matches */
    TRY(plan_constant(planner, node->call.args.first, &list, &is_constant));
    if (!is_constant)
        return contains_filter(planner, node, false, wanted, out);
    /* ARRAY_CONTAINS(["a", "b"], c.x): an IN, if it is wanted. */
    if (!wanted || list.type != JSON_ARRAY || !filter_path(planner, node->call.args.last, &path))
        return STATUS_OK;
    *out = filter_none(planner);
    JsonIter it = json_iter(list.json);
    while (json_next(&it)) {
        Value value = value_of(it.value, true);
        *out = filter_or(planner, *out, filter_equal(planner, &path, &value, true));
        TRY(run_reserve(planner->run, arena_used(planner->arena)));
    }
    return STATUS_OK;
}

/* ---- calls ---- */

Status filter_call(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    switch (node->call.function->index) {
    case FUNCTION_INDEX_WALK:
        return STATUS_OK;
    case FUNCTION_INDEX_EQUAL:
    case FUNCTION_INDEX_PREFIX:
        return text_filter(planner, node, wanted, out);
    case FUNCTION_INDEX_ELEMENT:
        return array_contains_filter(planner, node, wanted, out);
    case FUNCTION_INDEX_ANY_ELEMENT:
        return contains_filter(planner, node, false, wanted, out);
    case FUNCTION_INDEX_ALL_ELEMENTS:
        return contains_filter(planner, node, true, wanted, out);
    case FUNCTION_INDEX_SHAPES:
        return filter_shapes(planner, node, wanted, out);
    default:
        return type_filter(planner, node, wanted, out);
    }
}

/* EXISTS (SELECT ... FROM t IN c.tags WHERE ...): some element must fulfil the condition. */
Status filter_exists(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    const Select *select = node->subquery.select;
    if (node->subquery.mode != SUBQUERY_EXISTS || wanted == node->negated || select->is_grouped)
        return STATUS_OK;
    Filter *found = filter_all(planner, false);
    for (const Source *source = select->sources; source != NULL; source = source->next) {
        PlanPath path;
        if (source->value == NULL || !plan_path(planner, source->value, &path) ||
            (source->iterate && !plan_element(planner, &path, &path)))
            continue;
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
