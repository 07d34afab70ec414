/* binder_computed.c - computed properties: a name in a query, an expression of the container.
 *
 * Where a path over whole items begins with the name of a computed property, the expression of its
 * definition takes the place of that step:
 *
 *     "lower": SELECT VALUE LOWER(x.name) FROM x          c.lower      ->  LOWER(c.name)
 *     "tags":  SELECT VALUE x.meta.tags FROM x            c.tags[0]    ->  c.meta.tags[0]
 *
 * From then on it is an expression like any other. Each use reads the definition anew, since the
 * binder changes trees in place. Its nodes get the place of the name in the query, so that errors
 * point there. Definitions do not see each other, nor parameters.
 */
#include "query/sql/binder_int.h"
#include "query/sql/parser_int.h"

static bool step_name(const Step *step, Slice *out)
{
    *out = step->name;
    if (step->index == NULL)
        return true;
    if (step->index->kind != NODE_PARAMETER ||
        !value_is(&step->index->parameter.value, JSON_STRING))
        return false;
    *out = step->index->parameter.value.string;
    return true;
}

static bool find_definition(Json computed, Slice name, Slice *query)
{
    JsonIter iter = json_iter(computed);
    while (json_next(&iter)) {
        Json defined = json_get(iter.value, SLICE("name"));
        Json text = json_get(iter.value, SLICE("query"));
        if (!json_is(defined, JSON_STRING) || !json_is(text, JSON_STRING) ||
            !slice_equal(json_string(defined), name))
            continue;
        *query = json_string(text);
        return true;
    }
    return false;
}

static Status bad_definition(Binder *b, const Node *path)
{
    return binder_error(b, path->span, "SC2990",
                        "The definition of a computed property, '%.*s', is not valid.",
                        SLICE_CUT(span_text(b->query->text, path->span), SQL_QUOTE_BYTES));
}

/* As if the definition had been written where its name is. */
static Status check_size(Binder *b, const Node *path, size_t bytes)
{
    b->computed_bytes += bytes;
    if (bytes <= QUERY_TEXT_BYTES_MAX && b->computed_bytes <= QUERY_TEXT_BYTES_MAX)
        return STATUS_OK;
    return binder_error(b, path->span, "SC3020",
                        "The SQL query text, with its computed properties, exceeded the maximum "
                        "limit of %zu characters.",
                        QUERY_TEXT_BYTES_MAX);
}

static Status check_depth(Binder *b, const Node *path, const Node *expression)
{
    if (b->depth + expression->height < QUERY_DEPTH_MAX)
        return STATUS_OK;
    return binder_error(b, path->span, "SC1030",
                        "The query is too complex: more than %d levels of nesting.",
                        QUERY_DEPTH_MAX);
}

typedef struct Move {
    const Node *path; /* the use */
    Slice alias;      /* what the definition calls the item */
} Move;

/* Gives a part of the definition the place of its use, and the item the name it has there. */
static Status move_node(void *context, Node *node)
{
    const Move *move = context;
    node->span = move->path->span;
    if (node->kind == NODE_NAME && slice_equal(node->name.name, move->alias))
        node->name.name = move->path->path.base->name.name;
    else if (node->kind == NODE_NAME)
        node->name.name = SLICE_EMPTY; /* names nothing */
    if (node->kind == NODE_CALL || node->kind == NODE_UDF)
        node->call.name_span = node->span;
    for (Property *property = node->kind == NODE_OBJECT ? node->object.first : NULL;
         property != NULL; property = property->next)
        property->span = node->span;
    return node_each_child(node, move_node, context);
}

/* The only name there is inside a definition is that of the item. */
static Status bind_expression(Binder *b, const Node *path, Node *expression)
{
    static const Parameters NONE;
    const Node *base = path->path.base;
    Source item = {.alias = base->name.name, .slot = base->name.slot, .is_document = true};
    Scope scope = {.first = &item};
    Error ignored;
    Binder inside = *b;
    inside.parameters = &NONE;
    inside.computed = JSON_NONE;
    inside.err = &ignored;
    inside.scope = &scope;
    inside.clause = CLAUSE_WHERE;
    inside.aggregate = NULL;
    if (bind_node(&inside, expression) != STATUS_OK ||
        computed_check_expression(expression, &ignored) != STATUS_OK)
        return bad_definition(b, path);
    b->names = inside.names;
    return STATUS_OK;
}

static Status read_definition(Binder *b, const Node *path, Slice text, Node **out)
{
    Error ignored;
    Select *select;
    TRY(check_size(b, path, text.len));
    if (parser_run(b->arena, text, &select, &ignored) != STATUS_OK ||
        computed_check_clauses(select, &ignored) != STATUS_OK)
        return bad_definition(b, path);
    const Source *source = select->sources;
    Slice alias = source->has_alias ? source->alias : source->value->name.name;
    Move move = {.path = path, .alias = alias};
    Node *expression = select->items->value;
    TRY(check_depth(b, path, expression));
    TRY(move_node(&move, expression));
    TRY(bind_expression(b, path, expression));
    *out = expression;
    return STATUS_OK;
}

/* Puts the expression where the path's base and first step were. */
static void replace(Node *path, Node *expression)
{
    Step *rest = path->path.first->next;
    if (rest == NULL) {
        Node *next = path->next;
        *path = *expression;
        path->next = next;
    } else if (expression->kind == NODE_PATH) {
        expression->path.last->next = rest;
        path->path.base = expression->path.base;
        path->path.first = expression->path.first;
    } else {
        path->path.base = expression;
        path->path.first = rest;
    }
    path->is_computed = true;
}

Status bind_computed(Binder *b, Node *path)
{
    Slice name, text;
    if (!step_name(path->path.first, &name) || !find_definition(b->computed, name, &text))
        return STATUS_OK;
    Node *expression;
    TRY(read_definition(b, path, text, &expression));
    replace(path, expression);
    return STATUS_OK;
}
