/* plan_values.c - conditions that depend on one path, whatever they say: instead of every document
 * every value that the path has is asked. */
#include "query/plan/plan_int.h"
#include "query/sql/functions_int.h"

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

static Node *copy_node(Planner *planner, const Node *node, uint32_t slot);

static NodeList clone_list(Planner *planner, const NodeList *list, uint32_t slot)
{
    NodeList copy = {0};
    for (const Node *node = list->first; node != NULL; node = node->next)
        list_append(&copy, copy_node(planner, node, slot));
    return copy;
}

/* A copy in which the path is read from a slot. Only what find_sole lets pass. */
static Node *copy_node(Planner *planner, const Node *node, uint32_t slot)
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
        copy->unary.operand = copy_node(planner, node->unary.operand, slot);
        break;
    case NODE_CHAIN: {
        copy->chain.first = copy_node(planner, node->chain.first, slot);
        Link **at = &copy->chain.links;
        for (const Link *link = node->chain.links; link != NULL; link = link->next) {
            *at = ARENA_NEW(planner->arena, Link);
            **at = (Link){.op = link->op, .right = copy_node(planner, link->right, slot)};
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
        copy->between.value = copy_node(planner, node->between.value, slot);
        copy->between.low = copy_node(planner, node->between.low, slot);
        copy->between.high = copy_node(planner, node->between.high, slot);
        break;
    case NODE_IN:
        copy->in.value = copy_node(planner, node->in.value, slot);
        copy->in.list = clone_list(planner, &node->in.list, slot);
        break;
    case NODE_LIKE:
        copy->like.value = copy_node(planner, node->like.value, slot);
        copy->like.pattern = copy_node(planner, node->like.pattern, slot);
        break;
    case NODE_OBJECT: {
        Property **at = &copy->object.first;
        for (const Property *p = node->object.first; p != NULL; p = p->next) {
            *at = ARENA_NEW(planner->arena, Property);
            **at = (Property){
                .name = p->name, .span = p->span, .value = copy_node(planner, p->value, slot)};
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

/* Undefined for all but strings. */
static bool is_test_of_text(const Node *node)
{
    static const FunctionId functions[] = {
        FUNCTION_ID_CONTAINS,     FUNCTION_ID_ENDSWITH,   FUNCTION_ID_REGEXMATCH,
        FUNCTION_ID_STRINGEQUALS, FUNCTION_ID_STARTSWITH,
    };
    const Node *text = NULL;
    if (node->kind == NODE_LIKE)
        text = node->like.value;
    for (size_t i = 0; i < ARRAY_COUNT(functions) && node->kind == NODE_CALL; i++) {
        if (node->call.function->id == functions[i])
            text = node->call.args.first;
    }
    return text != NULL && (text->kind == NODE_PATH || text->kind == NODE_NAME);
}

/* What depends on one path only is asked of every value that the path has, instead of every
 * document. */
Status filter_test(Planner *planner, const Node *node, bool wanted, Filter **out)
{
    Sole sole = {.planner = planner, .is_sole = true};
    TRY(find_sole(&sole, UNCONST(Node, node))); /* looks only */
    if (!sole.is_sole || !sole.has_path || !plan_is_indexed(planner, &sole.path))
        return STATUS_OK;
    bool is_text = is_test_of_text(node);
    Filter *filter = filter_types(planner, &sole.path, is_text ? TERM_STRING : TERM_NULL,
                                  is_text ? TERM_ARRAY : TERM_END);
    filter->kind = FILTER_TEST;
    filter->slot = planner->query->slot_count; /* the run has one more than the query needs */
    filter->test = copy_node(planner, node, filter->slot);
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
