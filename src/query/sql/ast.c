/* ast.c - see ast_int.h. */
#include "query/sql/ast_int.h"

#include "base/workers.h"

static bool steps_equal(const Step *a, const Step *b)
{
    if ((a->index == NULL) != (b->index == NULL))
        return false;
    return a->index == NULL ? slice_equal(a->name, b->name) : node_equal(a->index, b->index);
}

static bool paths_equal(const Node *a, const Node *b)
{
    if (!node_equal(a->path.base, b->path.base))
        return false;
    const Step *x = a->path.first;
    const Step *y = b->path.first;
    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        if (!steps_equal(x, y))
            return false;
    }
    return x == NULL && y == NULL;
}

static bool lists_equal(const NodeList *a, const NodeList *b)
{
    if (a->count != b->count)
        return false;
    for (const Node *x = a->first, *y = b->first; x != NULL; x = x->next, y = y->next) {
        if (!node_equal(x, y))
            return false;
    }
    return true;
}

static bool chains_equal(const Node *a, const Node *b)
{
    if (!node_equal(a->chain.first, b->chain.first))
        return false;
    const Link *x = a->chain.links;
    const Link *y = b->chain.links;
    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        if (x->op != y->op || !node_equal(x->right, y->right))
            return false;
    }
    return x == NULL && y == NULL;
}

static bool objects_equal(const Node *a, const Node *b)
{
    if (a->object.count != b->object.count)
        return false;
    const Property *y = b->object.first;
    for (const Property *x = a->object.first; x != NULL; x = x->next, y = y->next) {
        if (!slice_equal(x->name, y->name) || !node_equal(x->value, y->value))
            return false;
    }
    return true;
}

bool node_equal(const Node *a, const Node *b)
{
    if (a->kind != b->kind || a->negated != b->negated)
        return false;
    switch (a->kind) {
    case NODE_LITERAL:
        return value_equal(&a->literal, &b->literal);
    case NODE_PARAMETER:
        return slice_equal(a->parameter.name, b->parameter.name);
    case NODE_NAME:
        return a->name.slot == b->name.slot;
    case NODE_PATH:
        return paths_equal(a, b);
    case NODE_UNARY:
        return a->unary.op == b->unary.op && node_equal(a->unary.operand, b->unary.operand);
    case NODE_CHAIN:
        return chains_equal(a, b);
    case NODE_AND:
    case NODE_OR:
    case NODE_COALESCE:
    case NODE_CONDITIONAL:
    case NODE_ARRAY:
        return lists_equal(&a->list, &b->list);
    case NODE_BETWEEN:
        return node_equal(a->between.value, b->between.value) &&
               node_equal(a->between.low, b->between.low) &&
               node_equal(a->between.high, b->between.high);
    case NODE_IN:
        return node_equal(a->in.value, b->in.value) && lists_equal(&a->in.list, &b->in.list);
    case NODE_LIKE:
        return a->like.escape == b->like.escape && node_equal(a->like.value, b->like.value) &&
               node_equal(a->like.pattern, b->like.pattern);
    case NODE_OBJECT:
        return objects_equal(a, b);
    case NODE_CALL:
        return a->call.function == b->call.function && lists_equal(&a->call.args, &b->call.args);
    case NODE_UDF:
        return slice_equal(a->call.name, b->call.name) && lists_equal(&a->call.args, &b->call.args);
    case NODE_SUBQUERY:
        return false; /* a GROUP BY cannot hold one, so this is never compared */
    case NODE_SLOT:
        return a->slot == b->slot;
    }
    return false;
}

bool node_has_prefix(const Node *path, const Node *prefix, Step **rest)
{
    if (path->kind != NODE_PATH)
        return false;
    const Node *base = prefix->kind == NODE_PATH ? prefix->path.base : prefix;
    if (!node_equal(path->path.base, base))
        return false;
    Step *at = path->path.first;
    for (const Step *step = prefix->kind == NODE_PATH ? prefix->path.first : NULL; step != NULL;
         step = step->next, at = at->next) {
        if (at == NULL || !steps_equal(at, step))
            return false;
    }
    *rest = at;
    return at != NULL;
}

static Status visit_list(NodeList *list, NodeVisit visit, void *context)
{
    for (Node *node = list->first; node != NULL; node = node->next)
        TRY(visit(context, node));
    return STATUS_OK;
}

static Status visit_path(Node *node, NodeVisit visit, void *context)
{
    TRY(visit(context, node->path.base));
    for (Step *step = node->path.first; step != NULL; step = step->next) {
        if (step->index != NULL)
            TRY(visit(context, step->index));
    }
    return STATUS_OK;
}

static Status visit_chain(Node *node, NodeVisit visit, void *context)
{
    TRY(visit(context, node->chain.first));
    for (Link *link = node->chain.links; link != NULL; link = link->next)
        TRY(visit(context, link->right));
    return STATUS_OK;
}

bool node_is_closed(const Node *node)
{
    switch (node->kind) {
    case NODE_NAME:
    case NODE_SLOT:
    case NODE_UDF:
    case NODE_SUBQUERY:
        return false;
    case NODE_LITERAL:
    case NODE_PARAMETER:
    case NODE_PATH:
    case NODE_UNARY:
    case NODE_CHAIN:
    case NODE_AND:
    case NODE_OR:
    case NODE_COALESCE:
    case NODE_CONDITIONAL:
    case NODE_BETWEEN:
    case NODE_IN:
    case NODE_LIKE:
    case NODE_CALL:
    case NODE_ARRAY:
    case NODE_OBJECT:
        return true;
    }
    return false;
}

Status node_each_child(Node *node, NodeVisit visit, void *context)
{
    (void)worker_yield(); /* a tree may have hundreds of thousands of nodes */
    switch (node->kind) {
    case NODE_LITERAL:
    case NODE_PARAMETER:
    case NODE_NAME:
    case NODE_SLOT:
        return STATUS_OK;
    case NODE_PATH:
        return visit_path(node, visit, context);
    case NODE_UNARY:
        return visit(context, node->unary.operand);
    case NODE_CHAIN:
        return visit_chain(node, visit, context);
    case NODE_AND:
    case NODE_OR:
    case NODE_COALESCE:
    case NODE_CONDITIONAL:
    case NODE_ARRAY:
        return visit_list(&node->list, visit, context);
    case NODE_BETWEEN:
        TRY(visit(context, node->between.value));
        TRY(visit(context, node->between.low));
        return visit(context, node->between.high);
    case NODE_IN:
        TRY(visit(context, node->in.value));
        return visit_list(&node->in.list, visit, context);
    case NODE_LIKE:
        TRY(visit(context, node->like.value));
        return visit(context, node->like.pattern);
    case NODE_OBJECT:
        for (Property *property = node->object.first; property != NULL; property = property->next)
            TRY(visit(context, property->value));
        return STATUS_OK;
    case NODE_CALL:
    case NODE_UDF:
        return visit_list(&node->call.args, visit, context);
    case NODE_SUBQUERY:
        return select_each_node(node->subquery.select, visit, context);
    }
    return STATUS_OK;
}

Status select_each_node(Select *select, NodeVisit visit, void *context)
{
    for (Source *source = select->sources; source != NULL; source = source->next) {
        if (source->subquery != NULL)
            TRY(select_each_node(source->subquery, visit, context));
        else
            TRY(visit(context, source->value));
    }
    if (select->where != NULL)
        TRY(visit(context, select->where));
    TRY(visit_list(&select->group_by, visit, context));
    for (SelectItem *item = select->items; item != NULL; item = item->next)
        TRY(visit(context, item->value));
    for (Order *order = select->order_by; order != NULL; order = order->next)
        TRY(visit(context, order->value));
    return STATUS_OK;
}
