/* query_uses.c - see query_uses.h. */
#include "query/plan/query_uses.h"

#include "base/array.h"
#include "base/buf.h"
#include "query/sql/query_int.h"
#include "json/property_path.h"

typedef struct Collector {
    Arena *arena;
    const Source **sources; /* by slot; NULL if it is not known */
    QueryUse *list;
    size_t count;
    size_t capacity;
    bool is_complete;
    QueryUseKind kind; /* of the part that is being walked */
} Collector;

static Status collect(void *context, Node *node);

static void learn_sources(Collector *c, const Select *select)
{
    for (const Source *source = select->sources; source != NULL; source = source->next)
        c->sources[source->slot] = source;
}

/* The text that a constant between brackets stands for; NULL if the step is not constant. */
static const Value *index_of(const Step *step)
{
    if (step->index->kind == NODE_LITERAL)
        return &step->index->literal;
    return step->index->kind == NODE_PARAMETER ? &step->index->parameter.value : NULL;
}

static bool put_steps(const Step *first, Buf *out)
{
    for (const Step *step = first; step != NULL; step = step->next) {
        Slice name = step->name;
        bool is_element = false;
        if (step->index != NULL) {
            const Value *index = index_of(step);
            if (index == NULL || (index->type != JSON_STRING && index->type != JSON_NUMBER))
                return false;
            is_element = index->type == JSON_NUMBER;
            name = is_element ? SLICE_EMPTY : index->string;
        }
        buf_byte(out, '/');
        if (is_element)
            buf_slice(out, SLICE("[]"));
        else
            property_path_print_segment(name, out);
    }
    return true;
}

/* Appends where a name or a path leads; false if that is not known. */
static bool put_path(const Collector *c, const Node *node, Buf *out)
{
    if (node->kind == NODE_PATH)
        return put_path(c, node->path.base, out) && put_steps(node->path.first, out);
    if (node->kind != NODE_NAME)
        return false;
    if (node->name.slot == SLOT_DOCUMENT)
        return true;
    const Source *source = c->sources[node->name.slot];
    if (source == NULL || source->value == NULL || !put_path(c, source->value, out))
        return false;
    if (source->iterate)
        buf_slice(out, SLICE("/[]"));
    return true;
}

static void add_use(Collector *c, const Node *node, QueryUseKind kind)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, PROPERTY_PATH_CANONICAL_BYTES_MAX);
    bool is_known = put_path(c, node, &text) && !buf_full(&text);
    Slice path = buf_view(&text);
    if (!is_known || path.len == 0 || c->count == QUERY_USES_MAX) {
        c->is_complete = false;
        return;
    }
    for (size_t i = 0; i < c->count; i++) {
        if (c->list[i].kind == kind && slice_equal(c->list[i].path, path))
            return;
    }
    ARRAY_GROW_IN(c->arena, c->list, c->count, c->capacity, 8);
    c->list[c->count++] = (QueryUse){arena_copy(c->arena, path), kind};
}

static void collect_select(Collector *c, const Select *select);

static Status collect(void *context, Node *node)
{
    Collector *c = context;
    if (node->kind == NODE_NAME || node->kind == NODE_PATH) {
        add_use(c, node, c->kind);
        return STATUS_OK;
    }
    if (node->kind == NODE_SUBQUERY) {
        collect_select(c, node->subquery.select);
        return STATUS_OK;
    }
    if (node->kind == NODE_SLOT)
        return STATUS_OK;
    return node_each_child(node, collect, context);
}

static void collect_as(Collector *c, Node *node, QueryUseKind kind)
{
    QueryUseKind before = c->kind;
    c->kind = kind;
    (void)collect(c, node); /* it looks only, and cannot fail */
    c->kind = before;
}

static bool is_constant(const Node *node)
{
    return node->kind == NODE_LITERAL || node->kind == NODE_PARAMETER;
}

static bool is_place(const Node *node)
{
    return node->kind == NODE_NAME || node->kind == NODE_PATH;
}

/* One part of a conjunction: path = constant, or anything else. */
static void collect_condition(Collector *c, Node *node)
{
    if (node->kind == NODE_CHAIN && node->chain.links == node->chain.last &&
        node->chain.links->op == BINARY_EQUAL) {
        const Node *left = node->chain.first;
        const Node *right = node->chain.links->right;
        if (is_place(left) && is_constant(right)) {
            add_use(c, left, QUERY_USE_EQUAL);
            return;
        }
        if (is_constant(left) && is_place(right)) {
            add_use(c, right, QUERY_USE_EQUAL);
            return;
        }
    }
    collect_as(c, node, QUERY_USE_FILTER);
}

static void collect_where(Collector *c, Node *where)
{
    if (where->kind != NODE_AND) {
        collect_condition(c, where);
        return;
    }
    for (Node *part = where->list.first; part != NULL; part = part->next)
        collect_condition(c, part);
}

static void collect_order(Collector *c, const Order *order)
{
    QueryUseKind kind = order->descending ? QUERY_USE_ORDER_DOWN : QUERY_USE_ORDER_UP;
    if (is_place(order->value))
        add_use(c, order->value, kind);
    else
        collect_as(c, order->value, QUERY_USE_FILTER);
}

/* All clauses, those of subqueries in FROM included. */
static void collect_select(Collector *c, const Select *select)
{
    learn_sources(c, select);
    for (const Source *source = select->sources; source != NULL; source = source->next) {
        if (source->subquery != NULL)
            collect_select(c, source->subquery);
        else if (source->iterate && source->value != NULL)
            collect_as(c, source->value, QUERY_USE_FILTER);
    }
    if (select->where != NULL)
        collect_where(c, select->where);
    for (const Order *order = select->order_by; order != NULL; order = order->next)
        collect_order(c, order);
    for (Node *key = select->group_by.first; key != NULL; key = key->next)
        collect_as(c, key, QUERY_USE_GROUP);
    bool is_counted = select->distinct || select->is_grouped;
    for (const SelectItem *item = select->items; is_counted && item != NULL; item = item->next) {
        if (!is_place(item->value) || select->distinct)
            collect_as(c, item->value, QUERY_USE_GROUP);
    }
}

void query_uses(const Query *query, Arena *arena, QueryUses *out)
{
    const Select *select = query->select;
    Collector c = {
        .arena = arena,
        .sources = ARENA_NEW_ARRAY(arena, const Source *, query->slot_count),
        .is_complete = true,
    };
    collect_select(&c, select);
    uint64_t rows = select->top.is_given ? select->top.value : 0;
    if (select->limit.is_given)
        rows = select->limit.value + (select->offset.is_given ? select->offset.value : 0);
    *out = (QueryUses){c.list, c.count, c.is_complete, rows};
}
