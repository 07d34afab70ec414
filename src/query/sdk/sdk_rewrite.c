/* sdk_rewrite.c - see sdk_rewrite_int.h.
 *
 * Clients know the results of what is sent by these shapes. F is the text that a client replaces by
 * a filter before it sends the query: "true", or what leads it to the row where it went on.
 *
 *     ORDER BY   SELECT r._rid, [{"item": key}, ...] AS orderByItems, P AS payload ... WHERE (F)
 * ... aggregate  SELECT VALUE [A] ...                    of SELECT VALUE, and otherwise SELECT
 * {"name": A or value, ...} AS payload ... GROUP BY   SELECT [{"item": key}, ...] AS groupByItems,
 * P AS payload ... GROUP BY ...
 *
 *     P          the row: a value, {"name": value, ...}, or with aggregates [A], {"name": A, ...}
 *     A          {"item": COUNT(x)}
 *                {"item": {"sum": SUM(x), "count": COUNT(x)}}                       of AVG
 *                {"item": MIN(x), "item2": {"min": MIN(x), "count": COUNT(x)}}      of MIN; and MAX
 *
 * What is printed is the text's own tree, not the one that was bound: computed properties,
 * parameters and group keys must have the names they had, since the text is read again.
 */
#include "query/sdk/sdk_rewrite_int.h"

#include "query/sql/functions_int.h"
#include "query/sql/parser_int.h"
#include "query/sql/sql_print_int.h"

#define FILTER_PLACE SLICE("({documentdb-formattableorderbyquery-filter})")

typedef struct Rewrite {
    Arena *arena;
    const Select *select; /* bound: names of results, and which are aggregates */
    Select *text;
    Node *filter; /* what is printed for F, or NULL */
} Rewrite;

/* ---- pieces of trees ---- */

static Node *new_node(Rewrite *w, NodeKind kind)
{
    Node *node = ARENA_NEW(w->arena, Node);
    node->kind = kind;
    return node;
}

static Node *new_name(Rewrite *w, Slice name)
{
    Node *node = new_node(w, NODE_NAME);
    node->name.name = name;
    return node;
}

static Node *new_call(Rewrite *w, Slice name, Node *arg)
{
    Node *node = new_node(w, NODE_CALL);
    node->call.name = name;
    if (arg != NULL)
        list_append(&node->call.args, arg);
    return node;
}

static Node *new_and(Rewrite *w, Node *left, Node *right)
{
    if (left == NULL)
        return right;
    Node *node = new_node(w, NODE_AND);
    list_append(&node->list, left);
    list_append(&node->list, right);
    return node;
}

static void add_property(Rewrite *w, Node *object, Slice name, Node *value)
{
    Property **tail = &object->object.first;
    while (*tail != NULL)
        tail = &(*tail)->next;
    *tail = ARENA_NEW(w->arena, Property);
    **tail = (Property){.name = name, .value = value};
}

static Node *new_item(Rewrite *w, Node *value)
{
    Node *object = new_node(w, NODE_OBJECT);
    add_property(w, object, SLICE("item"), value);
    return object;
}

static void set_projection(Rewrite *w, ProjectionKind kind)
{
    w->text->projection = kind;
    w->text->items = NULL;
    w->text->distinct = false;
}

static void add_item(Rewrite *w, Node *value, Slice name)
{
    SelectItem **tail = &w->text->items;
    while (*tail != NULL)
        tail = &(*tail)->next;
    *tail = ARENA_NEW(w->arena, SelectItem);
    **tail = (SelectItem){.name = name, .has_name = name.len > 0, .value = value};
}

static void drop_counts(Select *text)
{
    text->top.is_given = false;
    text->offset.is_given = false;
    text->limit.is_given = false;
}

/* ---- rows ---- */

/* {"sum": SUM(x), "count": COUNT(x)}, {"min": MIN(x), "count": COUNT(x)} or the same of MAX */
static Node *new_pair(Rewrite *w, Slice name, Slice function, Node *arg)
{
    Node *object = new_node(w, NODE_OBJECT);
    add_property(w, object, name, new_call(w, function, arg));
    add_property(w, object, SLICE("count"), new_call(w, SLICE("COUNT"), arg));
    return object;
}

static Node *partial(Rewrite *w, Aggregate aggregate, Node *call)
{
    Node *arg = call->call.args.first;
    if (aggregate == AGGREGATE_AVG)
        return new_item(w, new_pair(w, SLICE("sum"), SLICE("SUM"), arg));
    Node *object = new_item(w, call);
    if (aggregate == AGGREGATE_MIN)
        add_property(w, object, SLICE("item2"), new_pair(w, SLICE("min"), SLICE("MIN"), arg));
    if (aggregate == AGGREGATE_MAX)
        add_property(w, object, SLICE("item2"), new_pair(w, SLICE("max"), SLICE("MAX"), arg));
    return object;
}

/* What SELECT * stands for; a source that cannot be named is given a name. */
static Node *new_row(Rewrite *w)
{
    const Source *source = w->select->sources;
    if (source->alias.len > 0)
        return new_name(w, source->alias);
    w->text->sources->has_alias = true;
    w->text->sources->alias = SLICE("row");
    return new_name(w, SLICE("row"));
}

static Node *new_payload(Rewrite *w)
{
    const Select *select = w->select;
    if (select->projection == PROJECT_STAR)
        return new_row(w);
    const SelectItem *bound = select->items;
    SelectItem *item = w->text->items;
    if (select->projection == PROJECT_VALUE) {
        const Function *function = item_aggregate(select, bound);
        if (function == NULL)
            return item->value;
        Node *array = new_node(w, NODE_ARRAY);
        list_append(&array->list, partial(w, function->aggregate, item->value));
        return array;
    }
    Node *object = new_node(w, NODE_OBJECT);
    Property **tail = &object->object.first;
    for (; item != NULL; item = item->next, bound = bound->next) {
        const Function *function = item_aggregate(select, bound);
        Node *value = function == NULL ? item->value : partial(w, function->aggregate, item->value);
        *tail = ARENA_NEW(w->arena, Property);
        **tail = (Property){.name = bound->name, .value = value};
        tail = &(*tail)->next;
    }
    return object;
}

/* The id of the item that a row is made of. */
static void add_rid(Rewrite *w)
{
    const Source *source = w->select->sources;
    if (!source->is_document || source->alias.len == 0) {
        add_item(w, new_call(w, SLICE("_DOCUMENT_RID"), NULL), SLICE("_rid"));
        return;
    }
    Node *path = new_node(w, NODE_PATH);
    path->path.base = new_name(w, source->alias);
    path->path.first = ARENA_NEW(w->arena, Step);
    path->path.first->name = SLICE("_rid");
    path->path.last = path->path.first;
    add_item(w, path, SLICE_EMPTY);
}

/* ---- shapes ---- */

static void rewrite_limit(Select *text, const Select *select)
{
    uint64_t needed = select->offset.value + select->limit.value;
    text->offset = (Count){.is_given = true};
    text->limit =
        (Count){.is_given = true, .value = needed < QUERY_COUNT_MAX ? needed : QUERY_COUNT_MAX};
}

static void rewrite_order(Rewrite *w)
{
    Select *text = w->text;
    Node *items = new_node(w, NODE_ARRAY);
    for (const Order *order = text->order_by; order != NULL; order = order->next)
        list_append(&items->list, new_item(w, order->value));
    Node *payload = new_payload(w);
    w->filter = new_name(w, FILTER_PLACE);
    text->where = new_and(w, text->where, w->filter);
    if (text->projection == PROJECT_VALUE) /* what is undefined is no result */
        text->where = new_and(w, text->where, new_call(w, SLICE("IS_DEFINED"), payload));
    if (text->distinct) /* of the first rows of a partition many may be the same */
        drop_counts(text);
    else if (text->limit.is_given)
        rewrite_limit(text, w->select);
    set_projection(w, PROJECT_LIST);
    add_rid(w);
    add_item(w, items, SLICE("orderByItems"));
    add_item(w, payload, SLICE("payload"));
}

static void rewrite_groups(Rewrite *w)
{
    Select *text = w->text;
    bool is_value = text->projection == PROJECT_VALUE && text->group_by.count == 0;
    Node *payload = new_payload(w);
    drop_counts(text); /* a partition does not know which of its groups come first */
    set_projection(w, is_value ? PROJECT_VALUE : PROJECT_LIST);
    if (text->group_by.count > 0) {
        Node *items = new_node(w, NODE_ARRAY);
        for (Node *key = text->group_by.first; key != NULL; key = key->next)
            list_append(&items->list, new_item(w, key));
        add_item(w, items, SLICE("groupByItems"));
    }
    add_item(w, payload, is_value ? SLICE_EMPTY : SLICE("payload"));
}

static Slice print(Rewrite *w)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, 2 * QUERY_TEXT_BYTES_MAX); /* so that what is cut is refused */
    print_select_lines(w->text, &out);
    return arena_copy(w->arena, buf_view(&out));
}

/* A row of the rewritten query has more levels than the query had, and some expressions come
 * twice; so it may reach bounds that the query did not. */
static Status check(Rewrite *w, const Query *query, Slice text, Error *err)
{
    Error why;
    if (w->filter != NULL) {
        w->filter->name.name = SLICE("(true)");
        text = print(w);
    }
    if (query_check_text(query, w->arena, text, &why) == STATUS_OK)
        return STATUS_OK;
    Slice code = slice_from_cstr(why.message);
    while (code.len > 0 && !slice_starts_with(code, SLICE("SC")))
        code = slice_from(code, 1);
    return sql_error_plain(err,
                           "The query is too complex to be rewritten for several partitions: it "
                           "would exceed a limit (%.*s).",
                           SLICE_CUT(code, 6));
}

Status sdk_rewrite(const Query *query, Arena *arena, RewriteShape shape, Select *text, Slice *out,
                   Error *err)
{
    Rewrite w = {.arena = arena, .select = query->select, .text = text};
    switch (shape) {
    case REWRITE_NOTHING:
        *out = SLICE_EMPTY;
        return STATUS_OK;
    case REWRITE_CUT:
        rewrite_limit(text, query->select);
        break;
    case REWRITE_UNCUT:
        drop_counts(text);
        break;
    case REWRITE_ORDER:
        rewrite_order(&w);
        break;
    case REWRITE_GROUPS:
        rewrite_groups(&w);
        break;
    case REWRITE_DCOUNT:
        w.text = text->sources->subquery;
        break;
    }
    *out = print(&w);
    return check(&w, query, *out, err);
}
