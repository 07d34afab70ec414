/* plan_path.c - paths and constants: what of an expression can be known before any document is. */
#include "query/plan/plan_int.h"

#include "query/eval/value_terms_int.h"
#include "query/sql/functions_int.h"

static void learn_sources(Planner *planner, const Source *sources);

void planner_begin(Planner *planner, IndexBudget *budget)
{
    const Query *query = planner->query;
    planner->index = partition_view_index(planner->view, budget);
    planner->slot_count = query->slot_count;
    planner->slots = ARENA_NEW_ARRAY(planner->arena, PlanPath *, query->slot_count);
    PlanPath *root = ARENA_NEW(planner->arena, PlanPath);
    root->is_precise = true;
    planner->slots[SLOT_DOCUMENT] = root;
    learn_sources(planner, query->select->sources);
}

Status plan_bind(Planner *planner, const Item *item, Arena *arena)
{
    Run *run = planner->run;
    const Source *first = planner->query->select->sources;
    Json document = item->document;
    if (planner->needs_system)
        document = item_document(arena, planner->schema, item);
    run->slots[SLOT_DOCUMENT] = value_of(document, false);
    if (first == NULL || first->value == NULL || first->iterate)
        return STATUS_OK;
    return eval(run, first->value, &run->slots[first->slot]);
}

/* ---- system properties ---- */

typedef struct Whole {
    const Query *query;
    uint32_t alias; /* the slot of the documents */
    bool is_needed;
} Whole;

static bool is_document(const Whole *whole, const Node *node)
{
    return node->kind == NODE_NAME &&
           (node->name.slot == whole->alias || node->name.slot == SLOT_DOCUMENT);
}

static bool is_system_call(const Node *node)
{
    return node->kind == NODE_CALL && (node->call.function->flags & FUNCTION_SYSTEM) != 0;
}

static Status find_whole(void *context, Node *node)
{
    Whole *whole = context;
    if (whole->is_needed)
        return STATUS_OK;
    if (node->kind == NODE_PATH && is_document(whole, node->path.base)) {
        const Step *step = node->path.first;
        whole->is_needed = step->index != NULL || slice_starts_with(step->name, SLICE("_"));
        for (; step != NULL && !whole->is_needed; step = step->next) {
            if (step->index != NULL)
                TRY(find_whole(whole, step->index));
        }
        return STATUS_OK;
    }
    if (is_document(whole, node) || is_system_call(node)) {
        whole->is_needed = true;
        return STATUS_OK;
    }
    return node_each_child(node, find_whole, context);
}

/* SELECT * and SELECT VALUE c give the document itself, which is printed from the item. */
static bool returns_document(const Select *select, const Whole *whole)
{
    return select->projection == PROJECT_STAR ||
           (select->projection == PROJECT_VALUE && is_document(whole, select->items->value));
}

bool plan_needs_system(const Query *query)
{
    const Select *select = query->select;
    const Source *first = select->sources;
    if (first == NULL || first->value == NULL || first->iterate ||
        first->value->kind != NODE_NAME || select->distinct)
        return true;
    Whole whole = {.query = query, .alias = first->slot};
    Status status = STATUS_OK;
    if (select->where != NULL)
        status = find_whole(&whole, select->where);
    for (const Source *source = first->next; source != NULL; source = source->next)
        whole.is_needed = whole.is_needed || source->value == NULL ||
                          find_whole(&whole, source->value) != STATUS_OK;
    for (Node *key = select->group_by.first; key != NULL; key = key->next)
        status = find_whole(&whole, key);
    for (const Order *order = select->order_by; order != NULL; order = order->next)
        status = find_whole(&whole, order->value);
    for (const SelectItem *item = select->items; item != NULL; item = item->next) {
        if (!returns_document(select, &whole))
            status = find_whole(&whole, item->value);
    }
    return whole.is_needed || status != STATUS_OK;
}

/* ---- paths ---- */

/* A subquery in FROM is not looked into: its rows are values of its own. */
static void learn_sources(Planner *planner, const Source *sources)
{
    for (const Source *source = sources; source != NULL; source = source->next) {
        PlanPath path;
        if (source->value == NULL || !plan_path(planner, source->value, &path))
            continue;
        if (source->iterate && !plan_element(planner, &path, &path))
            continue;
        PlanPath *kept = ARENA_NEW(planner->arena, PlanPath);
        *kept = path;
        planner->slots[source->slot] = kept;
    }
}

bool plan_element(Planner *planner, const PlanPath *path, PlanPath *out)
{
    if (path->count >= PLAN_STEPS_MAX)
        return false;
    IndexStep *steps = ARENA_NEW_ARRAY(planner->arena, IndexStep, path->count + 1);
    if (path->count > 0)
        memcpy(steps, path->steps, path->count * sizeof(IndexStep));
    steps[path->count] = (IndexStep){.is_element = true};
    *out = (PlanPath){.steps = steps, .count = path->count + 1};
    return true;
}

/* One step of a path; false if it is not known where it leads. */
static bool read_step(Planner *planner, const Step *step, IndexStep *out, bool *is_precise)
{
    *out = (IndexStep){.name = step->name};
    if (step->index == NULL)
        return true;
    Value index;
    bool is_constant = false;
    Error *before = planner->run->err;
    Error ignored;
    planner->run->err = &ignored;
    Status status = plan_constant(planner, step->index, &index, &is_constant);
    planner->run->err = before;
    if (status != STATUS_OK || !is_constant)
        return false;
    if (index.type == JSON_STRING) {
        out->name = index.string;
        return true;
    }
    *out = (IndexStep){.is_element = true};
    *is_precise = false; /* the index does not know positions */
    return index.type == JSON_NUMBER;
}

static bool read_steps(Planner *planner, const Step *first, PlanPath *path)
{
    size_t count = path->count;
    for (const Step *step = first; step != NULL; step = step->next)
        count++;
    if (count > PLAN_STEPS_MAX)
        return false;
    IndexStep *steps = ARENA_NEW_ARRAY(planner->arena, IndexStep, count);
    if (path->count > 0)
        memcpy(steps, path->steps, path->count * sizeof(IndexStep));
    size_t at = path->count;
    for (const Step *step = first; step != NULL; step = step->next, at++) {
        if (!read_step(planner, step, &steps[at], &path->is_precise))
            return false;
    }
    path->steps = steps;
    path->count = count;
    return true;
}

typedef struct Only {
    Planner *planner;
    TermPath path;
    PlanPath *found;
    bool is_only;
} Only;

static Status find_other(void *context, Node *node)
{
    Only *only = context;
    PlanPath path;
    switch ((int)node->kind) {
    case NODE_NAME:
    case NODE_PATH:
        only->is_only = only->is_only && plan_path(only->planner, node, &path) && path.is_precise &&
                        plan_term_path(only->planner, &path) == only->path;
        if (only->is_only)
            *only->found = path;
        return STATUS_OK;
    case NODE_SUBQUERY:
    case NODE_UDF:
    case NODE_SLOT:
        only->is_only = false;
        return STATUS_OK;
    default:
        return only->is_only ? node_each_child(node, find_other, context) : STATUS_OK;
    }
}

bool plan_asks_only(Planner *planner, TermPath path, PlanPath *out)
{
    const Select *select = planner->query->select;
    const Source *source = select->sources;
    Only only = {.planner = planner, .path = path, .found = out, .is_only = true};
    *out = (PlanPath){0};
    if (!select->over_container || select->source_count != 1 || source->subquery != NULL ||
        source->iterate || source->value->kind != NODE_NAME || select->is_grouped ||
        select->projection == PROJECT_STAR)
        return false;
    Status status = select->where == NULL ? STATUS_OK : find_other(&only, select->where);
    for (const Order *order = select->order_by; order != NULL && status == STATUS_OK;
         order = order->next)
        status = find_other(&only, order->value);
    for (const SelectItem *item = select->items; item != NULL && status == STATUS_OK;
         item = item->next)
        status = find_other(&only, item->value);
    return status == STATUS_OK && only.is_only && out->count > 0;
}

bool plan_path(Planner *planner, const Node *node, PlanPath *out)
{
    const Node *base = node->kind == NODE_PATH ? node->path.base : node;
    if (base->kind != NODE_NAME || base->name.slot >= planner->slot_count)
        return false;
    const PlanPath *known = planner->slots[base->name.slot];
    if (known == NULL)
        return false;
    *out = *known;
    return node->kind != NODE_PATH || read_steps(planner, node->path.first, out);
}

TermPath plan_term_path(const Planner *planner, const PlanPath *path)
{
    HashKey key = planner->index.key;
    TermPath at = term_path_root(key);
    for (size_t i = 0; i < path->count; i++)
        at = path->steps[i].is_element ? term_path_element(key, at)
                                       : term_path_name(key, at, path->steps[i].name);
    return at;
}

bool plan_is_indexed(const Planner *planner, const PlanPath *path)
{
    return partition_view_has_path(planner->view, path->steps, path->count);
}

Slice plan_path_text(Arena *arena, const PlanPath *path)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    for (size_t i = 0; i < path->count; i++) {
        buf_byte(&text, '/');
        if (path->steps[i].is_element)
            buf_slice(&text, SLICE("[]"));
        else
            property_path_print_segment(path->steps[i].name, &text);
    }
    return arena_copy(arena, buf_view(&text));
}

static Status check_constant(void *context, Node *node)
{
    bool *is_constant = context;
    bool is_steady =
        node->kind != NODE_CALL || (node->call.function->aggregate == AGGREGATE_NONE &&
                                    (node->call.function->flags & FUNCTION_UNSTEADY) == 0);
    *is_constant = *is_constant && node_is_closed(node) && is_steady;
    return *is_constant ? node_each_child(node, check_constant, context) : STATUS_OK;
}

Status plan_constant(Planner *planner, const Node *node, Value *out, bool *is_constant)
{
    *is_constant = true;
    TRY(check_constant(is_constant, UNCONST(Node, node))); /* looks only */
    if (!*is_constant)
        return STATUS_OK;
    Run *run = planner->run;
    Arena *before = run->scratch;
    run->scratch = &run->rows; /* empty between two documents */
    Status status = eval(run, node, out);
    run->scratch = before;
    TRY(status);
    *out = value_keep(planner->arena, out);
    arena_reset(&run->rows);
    return run_reserve(run, arena_used(planner->arena));
}

Slice plan_term(Planner *planner, const Value *value, bool *exact)
{
    AUTO(buf_done) Buf term;
    buf_init(&term, TERM_VALUE_BYTES_MAX);
    value_put_term(&term, value, exact);
    return arena_copy(planner->arena, buf_view(&term));
}

Slice plan_after(Planner *planner, Slice bytes)
{
    AUTO(buf_done) Buf end;
    buf_init(&end, TERM_VALUE_BYTES_MAX);
    buf_slice(&end, bytes);
    term_after(&end);
    return arena_copy(planner->arena, buf_view(&end));
}
