/* binder_rules.c - the rules over whole clauses: names of results, GROUP BY, ORDER BY. */
#include "query/sql/binder_int.h"

#include "query/sql/functions_int.h"

#include <stdlib.h>

typedef struct NamedSpan {
    Slice name;
    Span span;
} NamedSpan;

/* The name that an item of the projection has without being given one. */
static bool infer_name(const Node *value, Slice *name)
{
    if (value->kind == NODE_NAME) {
        *name = value->name.name;
        return true;
    }
    if (value->kind != NODE_PATH || value->path.last->index != NULL)
        return false;
    *name = value->path.last->name;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    const NamedSpan *x = a;
    const NamedSpan *y = b;
    int order = slice_compare(x->name, y->name);
    if (order != 0)
        return order;
    return (x->span.start > y->span.start) - (x->span.start < y->span.start);
}

/* SC2022 if a name occurs twice. */
static Status check_unique(Binder *b, NamedSpan *names, size_t count)
{
    qsort(names, count, sizeof(*names), compare_names);
    for (size_t i = 1; i < count; i++) {
        if (slice_equal(names[i - 1].name, names[i].name))
            return binder_error(b, names[i].span, "SC2022",
                                "The property name '%.*s' is used more than once.",
                                SLICE_CUT(names[i].name, SQL_QUOTE_BYTES));
    }
    return STATUS_OK;
}

void infer_names(Binder *b, Select *select)
{
    uint32_t unnamed = 0;
    if (select->projection != PROJECT_LIST)
        return;
    for (SelectItem *item = select->items; item != NULL; item = item->next) {
        if (!item->has_name && !infer_name(item->value, &item->name))
            item->name = arena_format(b->arena, "$%u", ++unnamed);
    }
}

Status check_names(Binder *b, Select *select)
{
    if (select->projection != PROJECT_LIST)
        return STATUS_OK;
    size_t count = 0;
    for (const SelectItem *item = select->items; item != NULL; item = item->next)
        count++;
    NamedSpan *names = ARENA_NEW_ARRAY(b->arena, NamedSpan, count);
    size_t i = 0;
    for (const SelectItem *item = select->items; item != NULL; item = item->next)
        names[i++] = (NamedSpan){item->name, item->name_span};
    return check_unique(b, names, count);
}

Status check_property_names(Binder *b, const Node *object)
{
    if (object->object.count < 2)
        return STATUS_OK;
    NamedSpan *names = ARENA_NEW_ARRAY(b->arena, NamedSpan, object->object.count);
    size_t i = 0;
    for (const Property *property = object->object.first; property != NULL;
         property = property->next)
        names[i++] = (NamedSpan){property->name, property->span};
    return check_unique(b, names, object->object.count);
}

/* Whether a query in the place of one value could give several. */
bool select_may_have_rows(const Select *select)
{
    if (select->group_by.count > 0)
        return true;
    if (select->is_grouped)
        return false;
    for (const Source *source = select->sources; source != NULL; source = source->next) {
        if (source->iterate)
            return true;
        if (source->subquery != NULL && select_may_have_rows(source->subquery))
            return true;
    }
    return false;
}

static const Source *source_of_slot(const Select *select, uint32_t slot)
{
    for (const Source *source = select->sources; source != NULL; source = source->next) {
        if (source->slot == slot)
            return source;
    }
    return NULL;
}

typedef struct GroupCheck {
    Binder *b;
    const Select *select;
    bool in_order_by;
} GroupCheck;

static Status not_grouped(const GroupCheck *check, const Node *node)
{
    Slice text = span_text(check->b->query->text, node->span);
    return binder_error(check->b, node->span, check->in_order_by ? "SC2103" : "SC2102",
                        "Property reference '%.*s' is invalid in the %s because it is not "
                        "contained in either an aggregate function or the GROUP BY clause.",
                        SLICE_CUT(text, SQL_QUOTE_BYTES),
                        check->in_order_by ? "ORDER BY clause" : "select list");
}

/* Turns an expression that is a group key, or a path that begins with one, into a look at the slot
 * where its value is when the group is projected. */
static bool replace_key(const GroupCheck *check, Node *node)
{
    uint32_t slot = check->select->group_slot;
    for (const Node *key = check->select->group_by.first; key != NULL; key = key->next, slot++) {
        Step *rest;
        if (node_equal(node, key)) {
            node->kind = NODE_SLOT;
            node->negated = false;
            node->slot = slot;
            return true;
        }
        if (node_has_prefix(node, key, &rest)) {
            Node *base = ARENA_NEW(check->b->arena, Node);
            base->kind = NODE_SLOT;
            base->span = node->span;
            base->slot = slot;
            node->path.base = base;
            node->path.first = rest;
            return true;
        }
    }
    return false;
}

/* After a GROUP BY a row's own values are gone: what is left are keys, aggregates, and whatever
 * comes from outside. */
static Status check_grouped(void *context, Node *node)
{
    GroupCheck *check = context;
    if (replace_key(check, node))
        return STATUS_OK;
    if (node->kind == NODE_CALL && node->call.owner == check->select)
        return STATUS_OK; /* its argument is evaluated on rows */
    const Node *base = node->kind == NODE_PATH ? node->path.base : node;
    if (base->kind == NODE_NAME && source_of_slot(check->select, base->name.slot) != NULL)
        return not_grouped(check, node);
    return node_each_child(node, check_grouped, check);
}

Status check_groups(Binder *b, Select *select)
{
    if (!select->is_grouped)
        return STATUS_OK;
    GroupCheck check = {.b = b, .select = select};
    for (SelectItem *item = select->items; item != NULL; item = item->next)
        TRY(check_grouped(&check, item->value));
    if (select->group_by.count == 0) {
        select->order_by = NULL; /* of a single row there is nothing to order */
        select->order_count = 0;
        return STATUS_OK;
    }
    check.in_order_by = true;
    for (Order *order = select->order_by; order != NULL; order = order->next)
        TRY(check_grouped(&check, order->value));
    return STATUS_OK;
}

static Status not_a_path(Binder *b)
{
    return sql_error_number(b->err, 2206,
                            "Unsupported ORDER BY clause. ORDER BY item expression could not be "
                            "mapped to a document path.");
}

/* Whether what a subquery gives is a part of the document as it is. */
static bool gives_path(const Select *select)
{
    if (select->projection != PROJECT_VALUE)
        return select->projection == PROJECT_STAR;
    const Node *value = select->items->value;
    return value->kind == NODE_NAME ||
           (value->kind == NODE_PATH && value->path.base->kind == NODE_NAME);
}

static Status check_order_item(Binder *b, const Select *select, const Node *value)
{
    if (value->kind == NODE_CALL && (value->call.function->flags & FUNCTION_VECTOR) &&
        select->order_count == 1)
        return STATUS_OK;
    if (value->is_computed) /* whatever its expression is */
        return STATUS_OK;
    const Node *base = value->kind == NODE_PATH ? value->path.base : value;
    if (base->kind != NODE_NAME)
        return not_a_path(b);
    const Source *source = source_of_slot(select, base->name.slot);
    if (source == NULL || source->subquery == NULL)
        return STATUS_OK;
    if (!gives_path(source->subquery))
        return not_a_path(b);
    if (!source->subquery->over_container)
        return sql_error_plain(b->err, "Order-by over correlated collections is not supported.");
    return STATUS_OK;
}

Status check_order_by(Binder *b, Select *select)
{
    if (select->order_count > ORDER_ITEMS_MAX)
        return binder_error(b, select->order_by->value->span, "SC2031",
                            "The ORDER BY clause has more than %d items.", ORDER_ITEMS_MAX);
    for (const Order *order = select->order_by; order != NULL; order = order->next) {
        TRY(check_order_item(b, select, order->value));
        for (const Order *earlier = select->order_by; earlier != order; earlier = earlier->next) {
            if (node_equal(earlier->value, order->value))
                return binder_error(b, order->value->span, "SC2032",
                                    "The ORDER BY clause has the same path more than once.");
        }
    }
    return STATUS_OK;
}

static Status bad_rank(Binder *b, const Node *node)
{
    return binder_error(b, node->span, "SC2221",
                        "The ORDER BY RANK clause must be followed by a VectorDistance and/or a "
                        "FullTextScore function call.");
}

static bool is_score(const Node *node)
{
    if (node->kind != NODE_CALL)
        return false;
    const Function *function = function_find(node->call.name);
    return function != NULL && (function->flags & (FUNCTION_SCORE | FUNCTION_VECTOR)) != 0;
}

static bool is_number(const Node *node)
{
    return node->kind == NODE_LITERAL && node->literal.type == JSON_NUMBER;
}

/* RRF(score, score, ... [, [weight, ...]]) */
static Status bind_fusion(Binder *b, Node *node)
{
    uint32_t scores = 0;
    Node *weights = NULL;
    for (Node *arg = node->call.args.first; arg != NULL; arg = arg->next) {
        if (is_score(arg)) {
            TRY(bind_node(b, arg));
            scores++;
        } else if (arg->next == NULL && arg->kind == NODE_ARRAY) {
            weights = arg;
        } else {
            return bad_rank(b, arg);
        }
    }
    if (scores < 2)
        return bad_rank(b, node);
    bool fits = weights == NULL || weights->list.count == scores;
    for (const Node *w = weights == NULL ? NULL : weights->list.first; w != NULL; w = w->next)
        fits = fits && is_number(w);
    if (!fits)
        return binder_error(b, weights->span, "SC2229",
                            "The last parameter of the RRF function must be a literal array of "
                            "numbers, one for each component score.");
    node->call.function = function_find(node->call.name);
    if (b->query->unavailable == NULL)
        b->query->unavailable = node;
    return STATUS_OK;
}

Status bind_rank(Binder *b, Select *select)
{
    Node *node = select->order_by->value;
    const Function *function = node->kind == NODE_CALL ? function_find(node->call.name) : NULL;
    if (function == NULL && node->kind == NODE_CALL)
        return bind_node(b, node); /* which says that there is no such function */
    for (const Source *source = select->sources; source != NULL; source = source->next) {
        if (source->subquery != NULL)
            return binder_error(b, source->span, "SC2225",
                                "Subqueries in the FROM clause are not allowed with the ORDER BY "
                                "RANK clause.");
        if (source->iterate)
            return binder_error(b, source->span, "SC2223",
                                "The FROM clause with the IN operator is not allowed with the "
                                "ORDER BY RANK clause.");
    }
    if (select->source_count > 1)
        return binder_error(b, select->sources->next->span, "SC2224",
                            "The JOIN operator is not allowed with the ORDER BY RANK clause.");
    if (select->order_count > 1)
        return bad_rank(b, select->order_by->next->value);
    b->clause = CLAUSE_RANK;
    if (function != NULL && (function->flags & FUNCTION_FUSION))
        return bind_fusion(b, node);
    return is_score(node) ? bind_node(b, node) : bad_rank(b, node);
}
