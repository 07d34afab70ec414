/* binder.c - see binder_int.h; the rules over whole clauses are in binder_rules.c. */
#include "query/sql/binder_int.h"

#include "query/sql/functions_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static Status bind_name(Binder *b, Node *node);
static Status bind_parameter(Binder *b, Node *node);
static Status bind_path(Binder *b, Node *node);
static Status bind_call(Binder *b, Node *node);
static Status bind_udf(Binder *b, Node *node);
static Status bind_logic(Binder *b, Node *node);
static Status bind_subquery(Binder *b, Node *node);
static Status bind_sources(Binder *b, Select *select, SelectKind kind, Scope *scope);
static Status bind_counts(Binder *b, Select *select);
static Status bind_group_by(Binder *b, Select *select);
static Status check_place(Binder *b, const Select *select, SelectKind kind);

Status binder_run(Arena *arena, Query *query, const Parameters *parameters, Json computed,
                  Error *err)
{
    Binder b = {
        .arena = arena, .query = query, .parameters = parameters, .computed = computed, .err = err};
    query->slot_count = SLOT_DOCUMENT + 1;
    return bind_select(&b, query->select, SELECT_WHOLE);
}

Status binder_error(Binder *b, Span span, const char *code, const char *format, ...)
{
    char message[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return sql_error(b->err, b->query->text, span, code, "%s", message);
}

static Status bind_list(Binder *b, NodeList *list)
{
    for (Node *node = list->first; node != NULL; node = node->next)
        TRY(bind_node(b, node));
    return STATUS_OK;
}

Status bind_select(Binder *b, Select *select, SelectKind kind)
{
    Binder before = *b;
    Scope scope = {.outer = b->scope, .first = select->sources, .end = select->sources};
    TRY(check_place(b, select, kind));
    b->select = select;
    b->aggregate = NULL;
    b->depth += kind == SELECT_WHOLE ? 0 : SUBQUERY_LEVELS;
    TRY(bind_counts(b, select));
    TRY(bind_sources(b, select, kind, &scope));
    b->scope = &scope;
    b->clause = CLAUSE_WHERE;
    if (select->where != NULL)
        TRY(bind_node(b, select->where));
    TRY(bind_group_by(b, select));
    b->clause = CLAUSE_SELECT;
    infer_names(b, select);
    for (SelectItem *item = select->items; item != NULL; item = item->next)
        TRY(bind_node(b, item->value));
    select->is_grouped = select->group_by.count > 0 || select->aggregate_count > 0;
    TRY(check_names(b, select));
    b->clause = CLAUSE_ORDER_BY;
    for (Order *order = select->order_by; order != NULL && !select->by_rank; order = order->next)
        TRY(bind_node(b, order->value));
    TRY(select->by_rank ? bind_rank(b, select) : check_order_by(b, select));
    TRY(check_groups(b, select));

    b->scope = before.scope;
    b->select = before.select;
    b->clause = before.clause;
    b->aggregate = before.aggregate;
    b->depth = before.depth;
    return STATUS_OK;
}

/* What a subquery may not have, and what SELECT * needs. */
static Status check_place(Binder *b, const Select *select, SelectKind kind)
{
    if (select->projection == PROJECT_STAR && select->sources == NULL)
        return binder_error(b, select->star, "SC1021",
                            "Syntax error, 'SELECT *' is not valid if FROM clause is omitted.");
    if (select->projection == PROJECT_STAR && select->source_count > 1)
        return binder_error(b, select->star, "SC2040",
                            "'SELECT *' is only valid with a single input set.");
    if (select->projection == PROJECT_STAR && select->group_by.count > 0)
        return binder_error(b, select->star, "SC2041", "'SELECT *' is not allowed with GROUP BY.");
    if (select->top.is_given && select->limit.is_given)
        return binder_error(b, select->top.span, "SC2205",
                            "'TOP' is not supported together with 'OFFSET LIMIT'.");
    if (kind == SELECT_WHOLE)
        return STATUS_OK;
    if (select->top.is_given)
        return binder_error(b, select->top.span, "SC2203", "'TOP' is not supported in subqueries.");
    if (select->by_rank)
        return binder_error(b, select->order_by->value->span, "SC2228",
                            "The ORDER BY RANK clause is not supported in subqueries.");
    if (select->order_by != NULL)
        return binder_error(b, select->order_by->value->span, "SC2202",
                            "'ORDER BY' is not supported in subqueries.");
    if (select->limit.is_given)
        return binder_error(b, select->offset.span, "SC2204",
                            "'OFFSET LIMIT' clause is not supported in subqueries.");
    return STATUS_OK;
}

static Status bind_count(Binder *b, Count *count, const char *clause, const char *code,
                         const char *too_large)
{
    int64_t value;
    if (count->parameter != NULL) {
        TRY(bind_parameter(b, count->parameter));
        if (!value_to_i64(&count->parameter->parameter.value, &value) || value < 0)
            return binder_error(b, count->span, code,
                                "The count value provided for a %s clause must be an integer.",
                                clause);
        count->value = (uint64_t)value;
    }
    if (count->value > QUERY_COUNT_MAX)
        return binder_error(b, count->span, code, "%s", too_large);
    return STATUS_OK;
}

static Status bind_counts(Binder *b, Select *select)
{
    TRY(bind_count(b, &select->top, "TOP", "SC2060",
                   "The count value provided for a TOP clause must be an integer."));
    TRY(bind_count(b, &select->offset, "OFFSET", "SC2062",
                   "The OFFSET count value exceeds the maximum allowed value."));
    return bind_count(b, &select->limit, "LIMIT", "SC2061",
                      "The LIMIT count value exceeds the maximum allowed value.");
}

/* The alias that a source has without being given one: the last name of its path. */
static void infer_alias(Source *source)
{
    if (source->has_alias || source->value == NULL)
        return;
    if (source->value->kind == NODE_NAME)
        source->alias = source->value->name.name;
    else if (source->value->kind == NODE_PATH)
        source->alias = source->value->path.last->name; /* empty after a number */
}

static Status check_alias(Binder *b, const Select *select, const Source *source)
{
    for (const Source *earlier = select->sources; earlier != source; earlier = earlier->next) {
        if (source->alias.len > 0 && slice_equal(earlier->alias, source->alias))
            return binder_error(b, source->span, "SC2021",
                                "The alias '%.*s' is used by more than one source.",
                                SLICE_CUT(source->alias, SQL_QUOTE_BYTES));
    }
    return STATUS_OK;
}

static const Source *find_source(const Scope *scope, Slice name)
{
    for (; scope != NULL; scope = scope->outer) {
        for (const Source *source = scope->first; source != scope->end; source = source->next) {
            if (source->alias.len > 0 && slice_equal(source->alias, name))
                return source;
        }
    }
    return NULL;
}

/* The first source of a query that may look at the container names it as it likes. */
static bool names_container(const Binder *b, const Source *source)
{
    if (source->value == NULL)
        return false;
    const Node *base = source->value->kind == NODE_PATH ? source->value->path.base : source->value;
    return base->kind == NODE_NAME && find_source(b->scope, base->name.name) == NULL;
}

/* Whether its rows are whole items: those of the container, or of another source, as they are. */
static bool gives_document(const Source *source)
{
    const Node *value = source->value;
    if (source->subquery != NULL && source->subquery->projection == PROJECT_VALUE)
        value = source->subquery->items->value;
    return value != NULL && !source->iterate && value->kind == NODE_NAME && value->name.is_document;
}

static Status bind_container(Binder *b, Source *source)
{
    Node *value = source->value;
    Node *base = value->kind == NODE_PATH ? value->path.base : value;
    base->name.slot = SLOT_DOCUMENT;
    base->name.is_document = true;
    return value->kind == NODE_PATH ? bind_computed(b, value) : STATUS_OK;
}

static Status bind_source(Binder *b, Select *select, SelectKind kind, Source *source)
{
    bool may_scan = source == select->sources && kind != SELECT_NESTED;
    infer_alias(source);
    if (source->subquery != NULL) {
        TRY(bind_select(b, source->subquery, may_scan ? SELECT_SOURCE : SELECT_NESTED));
        select->over_container |= may_scan && source->subquery->over_container;
    } else if (may_scan && names_container(b, source)) {
        TRY(bind_container(b, source));
        select->over_container = true;
    } else {
        TRY(bind_node(b, source->value));
    }
    source->is_document = gives_document(source);
    TRY(check_alias(b, select, source));
    source->slot = b->query->slot_count++;
    return STATUS_OK;
}

static Status bind_sources(Binder *b, Select *select, SelectKind kind, Scope *scope)
{
    b->clause = CLAUSE_FROM;
    const Scope *around = b->scope;
    for (Source *source = select->sources; source != NULL; source = source->next) {
        b->scope = source == select->sources ? around : scope;
        if (source != select->sources && ++b->joins > QUERY_JOINS_MAX)
            return binder_error(b, source->span, "SC3002",
                                "The SQL query exceeded the maximum number of joins. The allowed "
                                "limit is %d.",
                                QUERY_JOINS_MAX);
        TRY(bind_source(b, select, kind, source));
        scope->end = source->next;
    }
    return STATUS_OK;
}

static Status bind_group_by(Binder *b, Select *select)
{
    b->clause = CLAUSE_GROUP_BY;
    if (select->group_by.count > GROUP_KEYS_MAX)
        return binder_error(b, select->group_by.first->span, "SC1030",
                            "The query is too complex: more than %d GROUP BY expressions.",
                            GROUP_KEYS_MAX);
    for (Node *key = select->group_by.first; key != NULL; key = key->next) {
        uint32_t names = b->names;
        TRY(bind_node(b, key));
        if (b->names == names)
            return binder_error(b, key->span, "SC2110",
                                "A GROUP BY expression must contain a property reference.");
    }
    select->group_slot = b->query->slot_count;
    b->query->slot_count += select->group_by.count;
    return STATUS_OK;
}

static Status bind_visit(void *context, Node *node)
{
    return bind_node(context, node);
}

static Status bind_kind(Binder *b, Node *node)
{
    switch (node->kind) {
    case NODE_NAME:
        return bind_name(b, node);
    case NODE_PARAMETER:
        return bind_parameter(b, node);
    case NODE_PATH:
        return bind_path(b, node);
    case NODE_CALL:
        return bind_call(b, node);
    case NODE_UDF:
        return bind_udf(b, node);
    case NODE_SUBQUERY:
        return bind_subquery(b, node);
    case NODE_AND:
    case NODE_OR:
        return bind_logic(b, node);
    case NODE_OBJECT:
        TRY(check_property_names(b, node));
        return node_each_child(node, bind_visit, b);
    case NODE_LITERAL:
    case NODE_UNARY:
    case NODE_CHAIN:
    case NODE_COALESCE:
    case NODE_CONDITIONAL:
    case NODE_BETWEEN:
    case NODE_IN:
    case NODE_LIKE:
    case NODE_ARRAY:
    case NODE_SLOT:
        return node_each_child(node, bind_visit, b);
    }
    return STATUS_OK;
}

Status bind_node(Binder *b, Node *node)
{
    b->depth++;
    TRY(bind_kind(b, node));
    b->depth--;
    return STATUS_OK;
}

static Status bind_name(Binder *b, Node *node)
{
    const Source *source = find_source(b->scope, node->name.name);
    if (source == NULL)
        return binder_error(b, node->span, "SC2001", "Identifier '%.*s' could not be resolved.",
                            SLICE_CUT(node->name.name, SQL_QUOTE_BYTES));
    node->name.slot = source->slot;
    node->name.is_document = source->is_document;
    b->names++;
    return STATUS_OK;
}

static int compare_parameter(const void *key, const void *entry)
{
    return slice_compare(*(const Slice *)key, ((const Parameter *)entry)->name);
}

static Status bind_parameter(Binder *b, Node *node)
{
    const Parameter *found = NULL;
    if (b->parameters->count > 0)
        found = bsearch(&node->parameter.name, b->parameters->sorted, b->parameters->count,
                        sizeof(Parameter), compare_parameter);
    if (found == NULL)
        return binder_error(b, node->span, "SC2004", "Parameter '%.*s' could not be resolved.",
                            SLICE_CUT(node->parameter.name, SQL_QUOTE_BYTES));
    node->parameter.value = value_of(found->value, true);
    return STATUS_OK;
}

static Status bind_path(Binder *b, Node *node)
{
    TRY(bind_node(b, node->path.base));
    for (Step *step = node->path.first; step != NULL; step = step->next) {
        if (step->index == NULL)
            continue;
        uint32_t names = b->names;
        uint32_t subqueries = b->subqueries;
        TRY(bind_node(b, step->index));
        /* What an index names must be known before the data is, or no index could serve it. */
        if (b->names != names || b->subqueries != subqueries)
            return binder_error(b, step->index->span, "SC2990",
                                "The specified query includes 'member indexer' which is currently "
                                "not supported.");
    }
    const Node *base = node->path.base;
    return base->kind == NODE_NAME && base->name.is_document ? bind_computed(b, node) : STATUS_OK;
}

static Status check_arity(Binder *b, const Node *node)
{
    const Function *function = node->call.function;
    uint32_t count = node->call.args.count;
    if (count >= function->args_min && count <= function->args_max)
        return STATUS_OK;
    Slice name = function->name;
    if (function->args_max == UINT32_MAX)
        return binder_error(b, node->span, "SC2050",
                            "The %.*s function requires at least %u argument(s).", SLICE_ARG(name),
                            function->args_min);
    if (function->args_min == function->args_max)
        return binder_error(b, node->span, "SC2050", "The %.*s function requires %u argument(s).",
                            SLICE_ARG(name), function->args_min);
    return binder_error(b, node->span, "SC2050", "The %.*s function requires %u to %u argument(s).",
                        SLICE_ARG(name), function->args_min, function->args_max);
}

/* An aggregate is a matter of the projection, and of its own query only. */
static Status check_aggregate_place(Binder *b, const Node *node)
{
    if (b->aggregate != NULL)
        return binder_error(b, b->aggregate->span, "SC2101",
                            "Cannot perform an aggregate function on an expression containing an "
                            "aggregate or a subquery.");
    switch (b->clause) {
    case CLAUSE_SELECT:
        return STATUS_OK;
    case CLAUSE_GROUP_BY:
        return binder_error(b, node->span, "SC2111",
                            "A GROUP BY expression cannot contain an aggregate or a subquery.");
    case CLAUSE_ORDER_BY:
    case CLAUSE_RANK:
        return binder_error(b, node->span, "SC2104",
                            "An aggregate function is not allowed in the ORDER BY clause.");
    case CLAUSE_FROM:
    case CLAUSE_WHERE:
        break;
    }
    return binder_error(b, node->span, "SC2103",
                        "An aggregate function is not allowed in the %s clause.",
                        b->clause == CLAUSE_FROM ? "FROM" : "WHERE");
}

static Status bind_aggregate(Binder *b, Node *node)
{
    TRY(check_aggregate_place(b, node));
    uint32_t subqueries = b->subqueries;
    b->aggregate = node;
    TRY(bind_list(b, &node->call.args));
    b->aggregate = NULL;
    TRY(check_arity(b, node));
    if (b->subqueries != subqueries)
        return binder_error(b, node->span, "SC2101",
                            "Cannot perform an aggregate function on an expression containing an "
                            "aggregate or a subquery.");
    node->call.slot = b->query->slot_count++;
    node->call.owner = b->select;
    /* In the order of the text, since results are computed in the order of this list. */
    Node **tail = &b->select->aggregates;
    if (b->select->last_aggregate != NULL)
        tail = &b->select->last_aggregate->call.next_aggregate;
    *tail = node;
    b->select->last_aggregate = node;
    b->select->aggregate_count++;
    return STATUS_OK;
}

static void remember_unavailable(Binder *b, const Node *node)
{
    if (b->query->unavailable == NULL)
        b->query->unavailable = node;
}

static Status bind_call(Binder *b, Node *node)
{
    const Function *function = function_find(node->call.name);
    node->call.function = function;
    if (function != NULL && function->aggregate != AGGREGATE_NONE)
        return bind_aggregate(b, node);
    bool ranking = b->clause == CLAUSE_RANK;
    if (ranking)
        b->clause = CLAUSE_ORDER_BY; /* a score is no argument of another one */
    TRY(bind_list(b, &node->call.args));
    if (ranking)
        b->clause = CLAUSE_RANK;
    if (function == NULL || ((function->flags & FUNCTION_FUSION) && !ranking))
        return binder_error(b, node->call.name_span, "SC2005",
                            "'%.*s' is not a recognized built-in function name.",
                            SLICE_CUT(node->call.name, SQL_QUOTE_BYTES));
    if ((function->flags & FUNCTION_SCORE) && !ranking)
        return binder_error(b, node->span, "SC2240",
                            "The FullTextScore function is only allowed in the ORDER BY RANK "
                            "clause.");
    TRY(check_arity(b, node));
    if (!function->is_available)
        remember_unavailable(b, node);
    return STATUS_OK;
}

static Status bind_udf(Binder *b, Node *node)
{
    Query *query = b->query;
    if (query->user_call_count == QUERY_UDF_CALLS_MAX)
        return binder_error(b, node->span, "SC3005",
                            "The SQL query exceeded the maximum number of user-defined function "
                            "calls. The allowed limit is %d.",
                            QUERY_UDF_CALLS_MAX);
    node->call.slot = query->user_call_count++;
    query->user_calls[node->call.slot] = (UserCallPlace){node->call.name, node->span};
    return bind_list(b, &node->call.args);
}

/* AND and OR say the same in any order of their operands, and end early. Those that call functions
 * of users come last, since nothing else costs as much. */
static Status bind_logic(Binder *b, Node *node)
{
    NodeList plain = {0};
    NodeList calling = {0};
    Node *next = NULL;
    for (Node *operand = node->list.first; operand != NULL; operand = next) {
        uint32_t calls = b->query->user_call_count;
        next = operand->next;
        TRY(bind_node(b, operand));
        list_append(calls == b->query->user_call_count ? &plain : &calling, operand);
    }
    for (Node *operand = calling.first; operand != NULL; operand = next) {
        next = operand->next;
        list_append(&plain, operand);
    }
    node->list = plain;
    return STATUS_OK;
}

/* ALL(q) holds when no row fails the filter of q: it is NOT EXISTS of q with the filter negated. */
static void rewrite_all(Binder *b, Node *node)
{
    Select *select = node->subquery.select;
    Node *where = ARENA_NEW(b->arena, Node);
    if (select->where == NULL) {
        where->kind = NODE_LITERAL;
        where->literal = value_bool(false);
    } else {
        where->kind = NODE_UNARY;
        where->span = select->where->span;
        where->unary.op = UNARY_NOT;
        where->unary.operand = select->where;
    }
    select->where = where;
    node->subquery.mode = SUBQUERY_EXISTS;
    node->negated = true;
}

static Status bind_subquery(Binder *b, Node *node)
{
    b->subqueries++;
    if (b->clause == CLAUSE_GROUP_BY)
        return binder_error(b, node->span, "SC2111",
                            "A GROUP BY expression cannot contain an aggregate or a subquery.");
    TRY(bind_select(b, node->subquery.select, SELECT_NESTED));
    if (node->subquery.mode == SUBQUERY_ALL)
        rewrite_all(b, node);
    if (node->subquery.mode == SUBQUERY_SCALAR && select_may_have_rows(node->subquery.select))
        return binder_error(b, node->span, "SC2201",
                            "The cardinality of a scalar subquery result set cannot be greater "
                            "than one.");
    return STATUS_OK;
}
