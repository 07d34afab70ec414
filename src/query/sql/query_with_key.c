/* query_with_key.c - see query_with_key.h. */
#include "query/sql/query_with_key.h"

#include "query/sql/parser_int.h"
#include "query/sql/sql_print_int.h"

static Node *new_node(Arena *arena, NodeKind kind)
{
    Node *node = ARENA_NEW(arena, Node);
    node->kind = kind;
    return node;
}

/* The name that items have in a query; empty if they have none. */
static Slice item_name(const Select *select)
{
    const Source *source = select->sources;
    if (source == NULL || source->iterate || source->value == NULL ||
        source->value->kind != NODE_NAME)
        return SLICE_EMPTY;
    return source->has_alias ? source->alias : source->value->name.name;
}

/* name.path = @keyN */
static Node *new_condition(Arena *arena, Slice name, PropertyPath path, size_t number)
{
    Node *base = new_node(arena, NODE_NAME);
    base->name.name = name;
    Node *left = new_node(arena, NODE_PATH);
    left->path.base = base;
    Step **tail = &left->path.first;
    for (size_t i = 0; i < path.count; i++) {
        *tail = ARENA_NEW(arena, Step);
        (*tail)->name = path.segments[i];
        tail = &(*tail)->next;
    }
    Node *right = new_node(arena, NODE_PARAMETER);
    right->parameter.name = arena_format(arena, "@key%zu", number);
    Node *chain = new_node(arena, NODE_CHAIN);
    chain->chain.first = left;
    chain->chain.links = ARENA_NEW(arena, Link);
    chain->chain.last = chain->chain.links;
    *chain->chain.links = (Link){.op = BINARY_EQUAL, .right = right};
    return chain;
}

bool query_with_key(Arena *arena, Slice text, const PropertyPath *paths, size_t count, Slice *out)
{
    Select *select = NULL;
    Error ignored;
    if (parser_run(arena, text, &select, &ignored) != STATUS_OK)
        return false;
    Slice name = item_name(select);
    if (name.len == 0)
        return false;
    Node *all = new_node(arena, NODE_AND);
    if (select->where != NULL)
        list_append(&all->list, select->where);
    for (size_t i = 0; i < count; i++)
        list_append(&all->list, new_condition(arena, name, paths[i], i + 1));
    if (all->list.count > 0)
        select->where = all->list.count == 1 ? all->list.first : all;
    AUTO(buf_done) Buf printed;
    buf_init(&printed, 4 * text.len + 4096 + count * PROPERTY_PATH_CANONICAL_BYTES_MAX);
    print_select(select, &printed);
    if (buf_full(&printed))
        return false;
    *out = arena_copy(arena, buf_view(&printed));
    return true;
}
