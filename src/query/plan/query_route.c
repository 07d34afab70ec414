/* query_route.c - see query_route.h.
 *
 * A filter is turned into an area: a union of boxes, each of which has for every path of the key
 * the values that it may have there, or says nothing about it.
 *
 *     c.a = 1                          { a: [1], b: any }
 *     c.a IN (1, 2) AND c.b = 'x'      { a: [1, 2], b: ["x"] }
 *     c.a = 1 AND c.b = 2 OR c.a = 3   { a: [1], b: [2] }, { a: [3], b: any }
 *     c.a = 1 AND c.a = 2              no box at all
 *     c.n > 5                          { a: any, b: any }
 *
 * AND is the meeting of each with each, OR all of them. For every expression the area can be asked
 * in which it is true, and the one in which it is false, since NOT is no complement: what is
 * undefined is neither. A product of the values of a box are its keys, and their hashes the ranges.
 *
 * Values are compared by their hashes. Those of arrays and objects are that of undefined, as in the
 * keys of items, and 0 is two values, because -0 equals it and hashes elsewhere.
 */
#include "query/plan/query_route.h"

#include "base/array.h"
#include "query/sql/functions_int.h"
#include "query/sql/query_int.h"

#include <math.h>
#include <stdlib.h>

enum {
    VALUES_MAX = 4096,  /* that are hashed, of all the filter */
    BOXES_MAX = 4096,   /* that an AND may make */
    WORK_MAX = 1 << 17, /* values and boxes that are looked at */
};

typedef struct KeyValue {
    Json value;
    Slice hash; /* of a key of this value alone */
} KeyValue;

typedef struct KeyValues {
    KeyValue *list; /* sorted by hash; NULL if any value */
    size_t count;
} KeyValues;

typedef struct Box {
    KeyValues levels[PARTITION_KEY_PATHS_MAX];
} Box;

/* A box that says nothing is the only one of its area. */
typedef struct Area {
    Box *boxes;
    size_t count;
    size_t capacity;
    size_t values; /* in all of them */
} Area;

typedef struct Router {
    Arena *arena;
    const PartitionKeyDefinition *definition;
    const Source **sources; /* by slot; NULL if it is not known */
    size_t values_left;
    size_t work_left;
} Router;

/* ---- areas ---- */

static bool is_any(const Router *r, const Box *box)
{
    for (size_t i = 0; i < r->definition->path_count; i++) {
        if (box->levels[i].list != NULL)
            return false;
    }
    return true;
}

static bool is_all(const Router *r, const Area *area)
{
    return area->count == 1 && is_any(r, &area->boxes[0]);
}

static void add_box(const Router *r, Area *area, const Box *box)
{
    ARRAY_GROW_IN(r->arena, area->boxes, area->count, area->capacity, 1);
    area->boxes[area->count++] = *box;
    for (size_t i = 0; i < r->definition->path_count; i++)
        area->values += box->levels[i].count;
}

static Area nothing(void)
{
    return (Area){0};
}

static Area everything(const Router *r)
{
    Area area = {0};
    add_box(r, &area, &(Box){0});
    return area;
}

static bool spend(Router *r, size_t work)
{
    bool is_enough = work <= r->work_left;
    r->work_left = is_enough ? r->work_left - work : 0;
    return is_enough;
}

/* ---- values ---- */

static int compare_values(const void *a, const void *b)
{
    return slice_compare(((const KeyValue *)a)->hash, ((const KeyValue *)b)->hash);
}

static void sort_values(KeyValues *values)
{
    if (values->count == 0)
        return;
    qsort(values->list, values->count, sizeof(KeyValue), compare_values);
    size_t kept = 1;
    for (size_t i = 1; i < values->count; i++) {
        if (!slice_equal(values->list[i].hash, values->list[kept - 1].hash))
            values->list[kept++] = values->list[i];
    }
    values->count = kept;
}

/* There is room for it. No item has a key that is longer than keys may be. */
static void put_value(const Router *r, KeyValues *values, Json value)
{
    PartitionKey key = {.count = 1, .parts = {value}};
    PartitionKind kind = r->definition->kind;
    Error ignored;
    Epk epk;
    if (partition_key_check(&key, &ignored) != STATUS_OK)
        return;
    epk_make(kind, &key, &epk);
    values->list[values->count++] = (KeyValue){value, arena_copy(r->arena, epk_slice(&epk))};
}

static Json number_json(Arena *arena, double number)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_add_number(&b, number);
    return json_built(&b);
}

/* All values of the key with which a constant compares as equal: two at most. */
static void put_equal(const Router *r, KeyValues *values, const Value *constant)
{
    switch (constant->type) {
    case JSON_UNDEFINED: /* equals nothing */
        return;
    case JSON_ARRAY:
    case JSON_OBJECT:
        put_value(r, values, JSON_NONE);
        return;
    case JSON_NUMBER:
        if (!isfinite(constant->number))
            return;
        if (constant->number == 0) {
            put_value(r, values, number_json(r->arena, 0.0));
            put_value(r, values, number_json(r->arena, -0.0));
            return;
        }
        break;
    case JSON_NULL:
    case JSON_BOOL:
    case JSON_STRING:
        break;
    }
    put_value(r, values, value_json(r->arena, r->arena, constant));
}

/* Room for the values with which 'count' constants are equal; false if these are too many. */
static bool begin_values(Router *r, size_t count, KeyValues *out)
{
    if (count > r->values_left)
        return false;
    r->values_left -= count;
    *out = (KeyValues){.list = ARENA_NEW_ARRAY(r->arena, KeyValue, 2 * count + 1)};
    return true;
}

/* The keys with one of these values at a path. */
static Area end_values(const Router *r, size_t level, KeyValues *values)
{
    sort_values(values);
    Area area = nothing();
    Box box = {0};
    box.levels[level] = *values;
    if (values->count > 0)
        add_box(r, &area, &box);
    return area;
}

static Area one_value(Router *r, size_t level, const Value *constant)
{
    KeyValues values;
    if (!begin_values(r, 1, &values))
        return everything(r);
    put_equal(r, &values, constant);
    return end_values(r, level, &values);
}

/* ---- AND and OR ---- */

/* The values that both have; false if there are none. */
static bool meet_values(const Router *r, const KeyValues *a, const KeyValues *b, KeyValues *out)
{
    if (a->list == NULL || b->list == NULL) {
        *out = a->list == NULL ? *b : *a;
        return true;
    }
    size_t room = a->count < b->count ? a->count : b->count;
    *out = (KeyValues){.list = ARENA_NEW_ARRAY(r->arena, KeyValue, room)};
    for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
        int order = compare_values(&a->list[i], &b->list[j]);
        if (order == 0)
            out->list[out->count++] = a->list[i];
        i += order <= 0;
        j += order >= 0;
    }
    return out->count > 0;
}

static bool meet_boxes(const Router *r, const Box *a, const Box *b, Box *out)
{
    *out = (Box){0};
    for (size_t i = 0; i < r->definition->path_count; i++) {
        if (!meet_values(r, &a->levels[i], &b->levels[i], &out->levels[i]))
            return false;
    }
    return true;
}

/* Where that would take too long it is one of the two, which is too much and never too little. */
static Area both(Router *r, const Area *a, const Area *b)
{
    if (is_all(r, a) || b->count == 0)
        return *b;
    if (is_all(r, b) || a->count == 0)
        return *a;
    size_t pairs = a->count * b->count;
    size_t work = pairs + (a->count * b->values) + (b->count * a->values);
    if (pairs > BOXES_MAX || !spend(r, work))
        return a->count + a->values <= b->count + b->values ? *a : *b;
    Area area = nothing();
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = 0; j < b->count; j++) {
            Box box;
            if (meet_boxes(r, &a->boxes[i], &b->boxes[j], &box))
                add_box(r, &area, &box);
        }
    }
    return area;
}

/* Whether a box speaks of this path only. */
static bool is_of_level(const Router *r, const Box *box, size_t level)
{
    for (size_t i = 0; i < r->definition->path_count; i++) {
        if ((box->levels[i].list != NULL) != (i == level))
            return false;
    }
    return true;
}

/* c.a = 1 OR c.a = 2 OR ..., which programs write by the thousand, is one box. */
static void gather(Router *r, Area *area, size_t level)
{
    size_t boxes = 0;
    size_t count = 0;
    for (size_t i = 0; i < area->count; i++) {
        bool is_one = is_of_level(r, &area->boxes[i], level);
        boxes += is_one;
        count += is_one ? area->boxes[i].levels[level].count : 0;
    }
    if (boxes < 2 || !spend(r, count))
        return;
    Area others = nothing();
    KeyValues values = {.list = ARENA_NEW_ARRAY(r->arena, KeyValue, count)};
    for (size_t i = 0; i < area->count; i++) {
        const Box *box = &area->boxes[i];
        const KeyValues *more = &box->levels[level];
        if (!is_of_level(r, box, level)) {
            add_box(r, &others, box);
            continue;
        }
        memcpy(values.list + values.count, more->list, more->count * sizeof(KeyValue));
        values.count += more->count;
    }
    sort_values(&values);
    Box box = {0};
    box.levels[level] = values;
    add_box(r, &others, &box);
    *area = others;
}

/* ---- paths and constants ---- */

/* Whether an expression is what stands at the first 'count' names of 'path' in the document. */
static bool leads_to(const Router *r, const Node *node, PropertyPath path, size_t count)
{
    if (node->kind == NODE_NAME) {
        if (node->name.slot == SLOT_DOCUMENT)
            return count == 0;
        const Source *source = r->sources[node->name.slot];
        return source != NULL && source->value != NULL && !source->iterate &&
               leads_to(r, source->value, path, count);
    }
    if (node->kind != NODE_PATH)
        return false;
    size_t steps = 0;
    for (const Step *step = node->path.first; step != NULL; step = step->next)
        steps++;
    if (steps > count)
        return false;
    size_t at = count - steps;
    for (const Step *step = node->path.first; step != NULL; step = step->next, at++) {
        if (step->index != NULL || !slice_equal(step->name, path.segments[at]))
            return false;
    }
    return leads_to(r, node->path.base, path, count - steps);
}

/* Which path of the key it is, if any. */
static bool find_level(const Router *r, const Node *node, size_t *level)
{
    const PartitionKeyDefinition *definition = r->definition;
    for (*level = 0; *level < definition->path_count; ++*level) {
        PropertyPath path = definition->paths[*level];
        if (leads_to(r, node, path, path.count))
            return true;
    }
    return false;
}

/* NULL if it is none. What could be folded is a literal by now. */
static const Value *constant_of(const Node *node)
{
    if (node->kind == NODE_LITERAL)
        return &node->literal;
    return node->kind == NODE_PARAMETER ? &node->parameter.value : NULL;
}

/* ---- expressions ---- */

static Area select_area(Router *r, const Select *select);
static Area node_area(Router *r, const Node *node, bool wanted);

/* A row comes out of a subquery only if its WHERE is true of the document; but aggregates without
 * groups give one of nothing, too. */
static Area subquery_area(Router *r, const Node *node)
{
    const Select *select = node->subquery.select;
    return select->is_grouped ? everything(r) : select_area(r, select);
}

static Area equal_area(Router *r, const Node *left, const Node *right)
{
    size_t level = 0;
    const Value *constant = constant_of(right);
    if (constant != NULL && find_level(r, left, &level))
        return one_value(r, level, constant);
    constant = constant_of(left);
    if (constant != NULL && find_level(r, right, &level))
        return one_value(r, level, constant);
    /* A scalar subquery without a row is undefined, which equals nothing. */
    const Node *sides[] = {left, right};
    Area area = everything(r);
    for (size_t i = 0; i < ARRAY_COUNT(sides); i++) {
        if (sides[i]->kind != NODE_SUBQUERY || sides[i]->subquery.mode != SUBQUERY_SCALAR)
            continue;
        Area rows = subquery_area(r, sides[i]);
        area = both(r, &area, &rows);
    }
    return area;
}

static Area chain_area(Router *r, const Node *node, bool wanted)
{
    const Link *link = node->chain.links;
    if (link != node->chain.last)
        return everything(r);
    if ((link->op == BINARY_EQUAL && wanted) || (link->op == BINARY_NOT_EQUAL && !wanted))
        return equal_area(r, node->chain.first, link->right);
    return everything(r);
}

static Area in_area(Router *r, const Node *node, bool wanted)
{
    size_t level = 0;
    KeyValues values;
    if (wanted == node->negated || !find_level(r, node->in.value, &level) ||
        !begin_values(r, node->in.list.count, &values))
        return everything(r);
    for (const Node *item = node->in.list.first; item != NULL; item = item->next) {
        const Value *constant = constant_of(item);
        if (constant == NULL)
            return everything(r);
        put_equal(r, &values, constant);
    }
    return end_values(r, level, &values);
}

/* ARRAY_CONTAINS(constant, path). */
static Area contains_area(Router *r, const Node *node)
{
    size_t level = 0;
    KeyValues values;
    const Value *array = constant_of(node->call.args.first);
    if (array == NULL || array->type != JSON_ARRAY ||
        !find_level(r, node->call.args.first->next, &level) ||
        !begin_values(r, json_count(array->json), &values))
        return everything(r);
    for (JsonIter it = json_iter(array->json); json_next(&it);) {
        Value value = value_of(it.value, array->stable);
        put_equal(r, &values, &value);
    }
    return end_values(r, level, &values);
}

static Area bool_area(Router *r, size_t level, bool value)
{
    Value constant = value_bool(value);
    return one_value(r, level, &constant);
}

static bool is_bool_test(FunctionId id)
{
    return id == FUNCTION_ID_IS_BOOL || id == FUNCTION_ID_IS_BOOLEAN;
}

/* IS_BOOL, IS_NULL, and NOT IS_DEFINED, which is also said of items that have no such key. */
static Area type_area(Router *r, const Node *node, bool wanted)
{
    size_t level = 0;
    KeyValues values;
    FunctionId id = node->call.function->id;
    if (!find_level(r, node->call.args.first, &level) || !begin_values(r, 2, &values))
        return everything(r);
    if (is_bool_test(id) && wanted) {
        Value constants[] = {value_bool(false), value_bool(true)};
        put_equal(r, &values, &constants[0]);
        put_equal(r, &values, &constants[1]);
    } else if (id == FUNCTION_ID_IS_NULL && wanted) {
        put_equal(r, &values, &VALUE_NULL);
    } else if (id == FUNCTION_ID_IS_DEFINED && !wanted) {
        put_value(r, &values, JSON_NONE);
    } else {
        return everything(r);
    }
    return end_values(r, level, &values);
}

static Area call_area(Router *r, const Node *node, bool wanted)
{
    FunctionId id = node->call.function->id;
    bool is_contains = id == FUNCTION_ID_ARRAY_CONTAINS || id == FUNCTION_ID__TRY_ARRAY_CONTAINS;
    if (is_contains && wanted)
        return contains_area(r, node);
    if (is_bool_test(id) || id == FUNCTION_ID_IS_NULL || id == FUNCTION_ID_IS_DEFINED)
        return type_area(r, node, wanted);
    return everything(r);
}

static Area all_of(Router *r, const NodeList *list, bool wanted)
{
    Area area = everything(r);
    for (const Node *node = list->first; node != NULL && area.count > 0; node = node->next) {
        Area more = node_area(r, node, wanted);
        area = both(r, &area, &more);
    }
    return area;
}

static Area any_of(Router *r, const NodeList *list, bool wanted)
{
    Area area = nothing();
    for (const Node *node = list->first; node != NULL; node = node->next) {
        Area more = node_area(r, node, wanted);
        if (is_all(r, &more) || !spend(r, more.count))
            return everything(r);
        for (size_t i = 0; i < more.count; i++)
            add_box(r, &area, &more.boxes[i]);
    }
    for (size_t i = 0; i < r->definition->path_count; i++)
        gather(r, &area, i);
    return area;
}

/* The keys of documents for which an expression can be 'wanted'. */
static Area node_area(Router *r, const Node *node, bool wanted)
{
    size_t level = 0;
    const Value *constant = constant_of(node);
    if (constant != NULL)
        return constant->type == JSON_BOOL && constant->boolean == wanted ? everything(r)
                                                                          : nothing();
    switch (node->kind) {
    case NODE_AND:
        return wanted ? all_of(r, &node->list, true) : any_of(r, &node->list, false);
    case NODE_OR:
        return wanted ? any_of(r, &node->list, true) : all_of(r, &node->list, false);
    case NODE_UNARY:
        return node->unary.op == UNARY_NOT ? node_area(r, node->unary.operand, !wanted)
                                           : everything(r);
    case NODE_CHAIN:
        return chain_area(r, node, wanted);
    case NODE_IN:
        return in_area(r, node, wanted);
    case NODE_CALL:
        return call_area(r, node, wanted);
    case NODE_SUBQUERY:
        return node->subquery.mode == SUBQUERY_EXISTS && wanted ? subquery_area(r, node)
                                                                : everything(r);
    case NODE_NAME:
    case NODE_PATH:
        return find_level(r, node, &level) ? bool_area(r, level, wanted) : everything(r);
    case NODE_LITERAL:
    case NODE_PARAMETER:
    case NODE_COALESCE:
    case NODE_CONDITIONAL:
    case NODE_BETWEEN:
    case NODE_LIKE:
    case NODE_ARRAY:
    case NODE_OBJECT:
    case NODE_UDF:
    case NODE_SLOT:
        break;
    }
    return everything(r);
}

/* The keys of documents of which rows pass FROM and WHERE. */
static Area select_area(Router *r, const Select *select)
{
    for (const Source *source = select->sources; source != NULL; source = source->next)
        r->sources[source->slot] = source;
    const Source *first = select->sources;
    Area area = everything(r);
    if (first != NULL && first->subquery != NULL && first->subquery->over_container)
        area = select_area(r, first->subquery);
    if (select->where == NULL)
        return area;
    Area where = node_area(r, select->where, true);
    return both(r, &area, &where);
}

/* ---- ranges ---- */

/* How many of the first paths of a box make a range; 0 if they make none. */
static size_t depth_of(const PartitionKeyDefinition *definition, const Box *box)
{
    size_t depth = 0;
    while (depth < definition->path_count && box->levels[depth].list != NULL)
        depth++;
    bool is_prefix = depth < definition->path_count;
    return is_prefix && definition->kind != PARTITION_MULTI_HASH ? 0 : depth;
}

/* How many ranges the first 'depth' paths give; SIZE_MAX if there are too many, or if one of them
 * is everything. */
static size_t count_ranges(const PartitionKeyDefinition *definition, const Area *area, size_t depth)
{
    size_t total = 0;
    for (size_t i = 0; i < area->count; i++) {
        size_t product = depth_of(definition, &area->boxes[i]) > 0 ? 1 : QUERY_RANGES_MAX + 1;
        for (size_t at = 0; at < depth && product <= QUERY_RANGES_MAX; at++) {
            if (area->boxes[i].levels[at].list == NULL)
                break;
            product *= area->boxes[i].levels[at].count;
        }
        total += product;
        if (total > QUERY_RANGES_MAX)
            return SIZE_MAX;
    }
    return total;
}

typedef struct RangeList {
    QueryRange *list;
    size_t count;
} RangeList;

static void put_range(const Router *r, const PartitionKey *key, RangeList *out)
{
    Epk epk;
    epk_make(r->definition->kind, key, &epk);
    Slice from = arena_copy(r->arena, epk_slice(&epk));
    out->list[out->count++] = (QueryRange){
        .from = from,
        .to = epk_prefix_end(r->arena, from),
        .is_key = key->count == r->definition->path_count,
        .key = *key,
    };
}

static void put_ranges(const Router *r, const Box *box, size_t depth, PartitionKey *key,
                       RangeList *out)
{
    size_t at = key->count;
    if (at == depth || box->levels[at].list == NULL) {
        put_range(r, key, out);
        return;
    }
    key->count++;
    for (size_t i = 0; i < box->levels[at].count; i++) {
        key->parts[at] = box->levels[at].list[i].value;
        put_ranges(r, box, depth, key, out);
    }
    key->count--;
}

static int compare_ranges(const void *a, const void *b)
{
    return slice_compare(((const QueryRange *)a)->from, ((const QueryRange *)b)->from);
}

/* Each once, and none that is part of another. */
static void settle(RangeList *ranges)
{
    if (ranges->count == 0)
        return;
    qsort(ranges->list, ranges->count, sizeof(QueryRange), compare_ranges);
    size_t kept = 1;
    for (size_t i = 1; i < ranges->count; i++) {
        if (!slice_starts_with(ranges->list[i].from, ranges->list[kept - 1].from))
            ranges->list[kept++] = ranges->list[i];
    }
    ranges->count = kept;
}

void query_route(const Query *query, Arena *arena, const PartitionKeyDefinition *definition,
                 QueryRoute *out)
{
    *out = (QueryRoute){0};
    if (!query->select->over_container)
        return;
    Router r = {
        .arena = arena,
        .definition = definition,
        .sources = ARENA_NEW_ARRAY(arena, const Source *, query->slot_count),
        .values_left = VALUES_MAX,
        .work_left = WORK_MAX,
    };
    Area area = select_area(&r, query->select);
    size_t depth = definition->path_count;
    size_t count = count_ranges(definition, &area, depth);
    while (count == SIZE_MAX && definition->kind == PARTITION_MULTI_HASH && depth > 1)
        count = count_ranges(definition, &area, --depth);
    if (count == SIZE_MAX) {
        out->is_all = true;
        return;
    }
    RangeList ranges = {.list = ARENA_NEW_ARRAY(arena, QueryRange, count + 1)};
    for (size_t i = 0; i < area.count; i++)
        put_ranges(&r, &area.boxes[i], depth, &(PartitionKey){0}, &ranges);
    settle(&ranges);
    out->ranges = ranges.list;
    out->count = ranges.count;
}
