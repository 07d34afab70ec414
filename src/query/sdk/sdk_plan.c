/* sdk_plan.c - see sdk_plan.h: what a client has to do, and the JSON that tells it. */
#include "query/sdk/sdk_plan.h"

#include "base/encoding.h"
#include "query/plan/query_traits_int.h"
#include "query/sdk/sdk_rewrite_int.h"
#include "query/sql/functions_int.h"
#include "query/sql/parser_int.h"
#include "query/sql/sql_print_int.h"

typedef enum Distinct { DISTINCT_NONE, DISTINCT_ORDERED, DISTINCT_UNORDERED } Distinct;

typedef struct Plan {
    const Query *query;
    const Select *select; /* the query's, bound */
    Arena *arena;
    Select *text; /* the same as it is written, for whatever is printed */

    /* The stages of a client, in the order in which it has them. */
    bool is_ordered;
    bool is_grouped; /* has aggregates or groups */
    Distinct distinct;
    bool has_limit;
    bool has_top;
    bool is_dcount;

    SdkFeatures needed;
    Slice rewritten;
} Plan;

static void plan_need(Plan *plan, int feature)
{
    plan->needed |= (SdkFeatures)1 << feature;
}

/* ---- features ---- */

static const Slice FEATURES[] = {
#define SDK_FEATURE(name, text) SLICE_INIT(text),
    SDK_FEATURES
#undef SDK_FEATURE
};

SdkFeatures sdk_features_read(Slice list)
{
    SdkFeatures features = 0;
    while (list.len > 0) {
        Slice name = slice_trim(slice_cut(&list, ','));
        for (size_t i = 0; i < ARRAY_COUNT(FEATURES); i++) {
            if (slice_equal_nocase(name, FEATURES[i]))
                features |= (SdkFeatures)1 << i;
        }
    }
    return features;
}

static Status check_features(const Plan *plan, SdkFeatures features, Error *err)
{
    SdkFeatures missing = plan->needed & ~features;
    if (missing == 0)
        return STATUS_OK;
    AUTO(buf_done) Buf names;
    buf_init(&names, sizeof(err->message));
    for (size_t i = 0; i < ARRAY_COUNT(FEATURES); i++) {
        if ((missing >> i & 1) != 0)
            buf_format(&names, " %.*s", SLICE_ARG(FEATURES[i]));
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_CROSS_PARTITION_NOT_SERVABLE,
                     "Query contains the following features, which the calling client does not "
                     "support:%.*s",
                     SLICE_ARG(buf_view(&names)));
}

/* ---- stages ---- */

/* Whether the rows of a subquery are whole documents: then no two of them are equal, whichever
 * partitions they come from. */
static bool gives_documents(const Select *inner)
{
    const Source *source = inner->sources;
    if (inner->is_grouped || inner->source_count != 1 || source->iterate ||
        source->subquery != NULL)
        return false;
    if (inner->projection == PROJECT_STAR)
        return source->is_document;
    const Node *value = inner->items->value;
    return inner->projection == PROJECT_VALUE && source->is_document && value->kind == NODE_NAME &&
           value->name.slot == source->slot;
}

/* What a subquery over the container groups or makes distinct, each partition would by itself. */
static Status check_sources(const Select *select, const QueryRoute *route, Error *err)
{
    const Select *inner = select->sources->subquery;
    if (inner == NULL || !inner->over_container || select_is_streaming(inner) ||
        route->is_one_partition || gives_documents(inner))
        return STATUS_OK;
    return sql_error_plain(err, "A subquery over the container with DISTINCT, GROUP BY or "
                                "aggregates is not supported over several partitions.");
}

/* Whether a row shows all group keys, so that no two groups have the same row. */
static bool shows_keys(const Select *select)
{
    for (uint32_t i = 0; i < select->group_by.count; i++) {
        bool found = false;
        for (const SelectItem *item = select->items; item != NULL; item = item->next)
            found = found ||
                    (item->value->kind == NODE_SLOT && item->value->slot == select->group_slot + i);
        if (!found)
            return false;
    }
    return true;
}

static void need_aggregates(Plan *plan)
{
    const Select *select = plan->select;
    bool is_value = select->projection == PROJECT_VALUE;
    if (select->aggregate_count > 0)
        plan_need(plan, is_value ? SDK_FEATURE_AGGREGATE : SDK_FEATURE_NON_VALUE_AGGREGATE);
    if (select->aggregate_count > 1)
        plan_need(plan, SDK_FEATURE_MULTIPLE_AGGREGATES);
    for (const Node *call = select->aggregates; call != NULL; call = call->call.next_aggregate) {
        Aggregate aggregate = call->call.function->aggregate;
        if (aggregate == AGGREGATE_COUNTIF)
            plan_need(plan, SDK_FEATURE_COUNT_IF);
        if (aggregate == AGGREGATE_MAKELIST || aggregate == AGGREGATE_MAKESET)
            plan_need(plan, SDK_FEATURE_LIST_AND_SET_AGGREGATE);
    }
}

/* Clients sort before they join groups, and some drop duplicates before, too. */
static Status plan_groups(Plan *plan, Error *err)
{
    const Select *select = plan->select;
    plan->is_grouped = true;
    need_aggregates(plan);
    if (select->group_by.count == 0)
        return STATUS_OK;
    plan_need(plan, SDK_FEATURE_GROUP_BY);
    if (select->order_by != NULL)
        return sql_error_plain(
            err, "ORDER BY together with GROUP BY is not supported over several partitions.");
    if (select->distinct && !shows_keys(select))
        return sql_error_plain(err, "DISTINCT together with GROUP BY is not supported over several "
                                    "partitions, unless all the keys are selected.");
    return STATUS_OK;
}

static bool is_selected(const Select *select, const Node *value)
{
    for (const SelectItem *item = select->items; item != NULL; item = item->next) {
        if (node_equal(item->value, value))
            return true;
    }
    return false;
}

/* Whether equal rows follow each other: the first items of ORDER BY are those that are selected. */
static bool is_sorted_by_row(const Select *select)
{
    const Order *order = select->order_by;
    if (select->projection == PROJECT_STAR)
        return false;
    for (const SelectItem *item = select->items; item != NULL; item = item->next) {
        if (order == NULL || !is_selected(select, order->value))
            return false;
        order = order->next;
    }
    return true;
}

static void plan_order(Plan *plan)
{
    plan->is_ordered = true;
    plan_need(plan,
              plan->select->order_count > 1 ? SDK_FEATURE_MULTIPLE_ORDER_BY : SDK_FEATURE_ORDER_BY);
}

static void plan_distinct(Plan *plan)
{
    if (!plan->select->distinct || plan->is_grouped)
        return;
    plan_need(plan, SDK_FEATURE_DISTINCT);
    plan->distinct =
        plan->is_ordered && is_sorted_by_row(plan->select) ? DISTINCT_ORDERED : DISTINCT_UNORDERED;
}

/* One partition alone cuts off what is to be cut off, as long as it has all of a result. */
static void plan_limits(Plan *plan, bool is_single)
{
    bool is_plain = !plan->is_grouped && !plan->is_ordered && plan->distinct == DISTINCT_NONE;
    plan->has_limit = plan->select->limit.is_given && !(is_single && is_plain);
    plan->has_top = plan->select->top.is_given;
    if (plan->has_limit)
        plan_need(plan, SDK_FEATURE_OFFSET_AND_LIMIT);
    if (plan->has_top)
        plan_need(plan, SDK_FEATURE_TOP);
}

static RewriteShape shape_of(const Plan *plan)
{
    if (plan->is_grouped)
        return REWRITE_GROUPS;
    if (plan->is_ordered)
        return REWRITE_ORDER;
    if (!plan->has_limit)
        return REWRITE_NOTHING;
    return plan->distinct == DISTINCT_NONE ? REWRITE_CUT : REWRITE_UNCUT;
}

static Status plan_stages(Plan *plan, const QueryRoute *route, bool is_single, SdkFeatures features,
                          Error *err)
{
    const Select *select = plan->select;
    if (select_is_dcount(select)) {
        plan->is_dcount = true;
        plan->distinct = DISTINCT_UNORDERED;
        plan_need(plan, SDK_FEATURE_DCOUNT);
        plan_need(plan, SDK_FEATURE_DISTINCT);
        TRY(check_features(plan, features, err));
        return sdk_rewrite(plan->query, plan->arena, REWRITE_DCOUNT, plan->text, &plan->rewritten,
                           err);
    }
    TRY(query_check_cross_partition(plan->query, err));
    TRY(check_sources(select, route, err));
    if (select->is_grouped)
        TRY(plan_groups(plan, err));
    else if (select->order_by != NULL)
        plan_order(plan);
    plan_distinct(plan);
    plan_limits(plan, is_single);
    TRY(check_features(plan, features, err));
    return sdk_rewrite(plan->query, plan->arena, shape_of(plan), plan->text, &plan->rewritten, err);
}

/* ---- JSON ---- */

static void add_text(JsonBuilder *b, Slice name, Slice text)
{
    json_key(b, name);
    json_add_string(b, text);
}

static void add_count(JsonBuilder *b, Slice name, bool is_given, const Count *count)
{
    json_key(b, name);
    if (is_given)
        json_add_i64(b, (int64_t)count->value);
    else
        json_add_null(b);
}

static void add_expression(JsonBuilder *b, const Node *node)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 2 * QUERY_TEXT_BYTES_MAX);
    print_node(node, &text);
    json_add_string(b, buf_view(&text));
}

static void add_orders(JsonBuilder *b, const Plan *plan)
{
    const Order *first = plan->is_ordered ? plan->text->order_by : NULL;
    json_key(b, SLICE("orderBy"));
    json_begin_array(b);
    for (const Order *order = first; order != NULL; order = order->next)
        json_add_string(b, order->descending ? SLICE("Descending") : SLICE("Ascending"));
    json_end(b);
    json_key(b, SLICE("orderByExpressions"));
    json_begin_array(b);
    for (const Order *order = first; order != NULL; order = order->next)
        add_expression(b, order->value);
    json_end(b);
}

static Slice aggregate_name(Aggregate aggregate)
{
    switch (aggregate) {
    case AGGREGATE_NONE:
        break;
    case AGGREGATE_COUNT:
        return SLICE("Count");
    case AGGREGATE_COUNTIF:
        return SLICE("CountIf");
    case AGGREGATE_SUM:
        return SLICE("Sum");
    case AGGREGATE_AVG:
        return SLICE("Average");
    case AGGREGATE_MIN:
        return SLICE("Min");
    case AGGREGATE_MAX:
        return SLICE("Max");
    case AGGREGATE_MAKELIST:
        return SLICE("MakeList");
    case AGGREGATE_MAKESET:
        return SLICE("MakeSet");
    }
    return SLICE_EMPTY;
}

/* Results with names tell their aggregates by name; one without a name has at most one. */
static void add_groups(JsonBuilder *b, const Plan *plan)
{
    const Select *select = plan->select;
    bool is_value = select->projection == PROJECT_VALUE;
    const Function *function = is_value ? item_aggregate(select, select->items) : NULL;
    const SelectItem *named = plan->is_grouped && !is_value ? select->items : NULL;
    json_key(b, SLICE("groupByExpressions"));
    json_begin_array(b);
    for (const Node *key = plan->is_grouped ? plan->text->group_by.first : NULL; key != NULL;
         key = key->next)
        add_expression(b, key);
    json_end(b);
    json_key(b, SLICE("groupByAliases"));
    json_begin_array(b);
    for (const SelectItem *item = named; item != NULL; item = item->next)
        json_add_string(b, item->name);
    json_end(b);
    json_key(b, SLICE("aggregates"));
    json_begin_array(b);
    if (plan->is_grouped && function != NULL)
        json_add_string(b, aggregate_name(function->aggregate));
    json_end(b);
    json_key(b, SLICE("groupByAliasToAggregateType"));
    json_begin_object(b);
    for (const SelectItem *item = named; item != NULL; item = item->next) {
        function = item_aggregate(select, item);
        json_key(b, item->name);
        if (function != NULL)
            json_add_string(b, aggregate_name(function->aggregate));
        else
            json_add_null(b);
    }
    json_end(b);
}

static void add_dcount(JsonBuilder *b, const Plan *plan)
{
    json_key(b, SLICE("dCountInfo"));
    if (!plan->is_dcount) {
        json_add_null(b);
        return;
    }
    json_begin_object(b);
    add_text(b, SLICE("dCountAlias"), plan->select->items->name); /* empty if it has none */
    json_end(b);
}

static void add_info(JsonBuilder *b, const Plan *plan)
{
    static const Slice DISTINCTS[] = {[DISTINCT_NONE] = SLICE_INIT("None"),
                                      [DISTINCT_ORDERED] = SLICE_INIT("Ordered"),
                                      [DISTINCT_UNORDERED] = SLICE_INIT("Unordered")};
    const Select *select = plan->select;
    json_begin_object(b);
    add_text(b, SLICE("distinctType"), DISTINCTS[plan->distinct]);
    add_count(b, SLICE("top"), plan->has_top, &select->top);
    add_count(b, SLICE("offset"), plan->has_limit, &select->offset);
    add_count(b, SLICE("limit"), plan->has_limit, &select->limit);
    add_orders(b, plan);
    add_groups(b, plan);
    add_text(b, SLICE("rewrittenQuery"), plan->rewritten);
    json_key(b, SLICE("hasSelectValue"));
    json_add_bool(b, select->projection == PROJECT_VALUE);
    add_dcount(b, plan);
    json_key(b, SLICE("hasNonStreamingOrderBy"));
    json_add_bool(b, false);
    json_end(b);
}

/* ---- ranges ---- */

static void add_epk(JsonBuilder *b, Arena *arena, Slice name, Slice epk)
{
    char *text = arena_alloc(arena, 2 * epk.len);
    hex_encode(epk.ptr, epk.len, text);
    add_text(b, name, slice_make(text, 2 * epk.len));
}

/* A key is a range of one point, with both its ends. */
static void add_range(JsonBuilder *b, Arena *arena, const QueryRange *range)
{
    json_begin_object(b);
    add_epk(b, arena, SLICE("min"), range->from);
    add_epk(b, arena, SLICE("max"), range->is_key ? range->from : range->to);
    json_key(b, SLICE("isMinInclusive"));
    json_add_bool(b, true);
    json_key(b, SLICE("isMaxInclusive"));
    json_add_bool(b, range->is_key);
    json_end(b);
}

/* A query that finds nothing has results all the same, if it counts; so has one without FROM. One
 * partition gives them, that of the least key there can be. */
static void add_ranges(JsonBuilder *b, Arena *arena, const QueryRoute *route)
{
    static const QueryRange ALL = {.to = SLICE_INIT("\xFF")};
    static const QueryRange LEAST = {.is_key = true};
    json_begin_array(b);
    for (size_t i = 0; i < route->count && !route->is_all; i++)
        add_range(b, arena, &route->ranges[i]);
    if (route->is_all)
        add_range(b, arena, &ALL);
    else if (route->count == 0)
        add_range(b, arena, &LEAST);
    json_end(b);
}

/* Whether one key's partition does everything. Clients that are told "Ordered" drop what equals the
 * row before. That is right for scalars; but the index has no order among arrays, nor among
 * objects, so that equal ones need not follow each other, and what a path holds is not known here.
 * Over several partitions it has to do, since with "Unordered" clients could not go on in the
 * middle, and those that merge the rows refuse to compare arrays and objects in any case. */
static bool is_left_alone(const Select *select, bool is_single)
{
    return is_single && select->distinct && select->order_by != NULL && !select->is_grouped;
}

static bool is_at_most_one_key(const QueryRoute *route)
{
    return !route->is_all && (route->count == 0 || (route->count == 1 && route->ranges[0].is_key));
}

Status sdk_plan(const Query *query, Arena *arena, const QueryRoute *route, SdkFeatures features,
                Json *out, Error *err)
{
    static const QueryRoute NOWHERE = {0};
    Plan plan = {.query = query, .select = query->select, .arena = arena};
    TRY(query_check_available(query, err));
    TRY(parser_run(arena, query->text, &plan.text, err));
    if (!query->select->over_container)
        route = &NOWHERE;
    bool is_single = is_at_most_one_key(route);
    if (query->select->over_container && !is_left_alone(query->select, is_single)) {
        Status status = plan_stages(&plan, route, is_single, features, err);
        if (status != STATUS_OK && !is_single)
            return status;
        if (status != STATUS_OK)
            plan = (Plan){.query = query, .select = query->select, .arena = arena};
    }
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("partitionedQueryExecutionInfoVersion"));
    json_add_i64(&b, 2);
    json_key(&b, SLICE("queryInfo"));
    add_info(&b, &plan);
    json_key(&b, SLICE("queryRanges"));
    add_ranges(&b, arena, route);
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}
