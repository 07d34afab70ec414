/* query_scope.c - see query_scope_int.h. */
#include "api/query_scope_int.h"

/* Whether a value is all that there is to know of a key: the hash of undefined is also that of
 * arrays and objects, and 0 equals -0, whose hash is another. */
static bool is_told_by_value(Json value)
{
    return json_is(value, JSON_STRING) || json_is(value, JSON_BOOL) || json_is(value, JSON_NULL) ||
           (json_is(value, JSON_NUMBER) && json_number(value) != 0);
}

/* A filter of one key, or of the first parts of a hierarchical one, is as good as a header. Several
 * of them only say which partitions are needed: in there the index leads to them. */
static void narrow(ItemPage *page, const PartitionKeyDefinition *definition)
{
    if (page->route->count != 1)
        return;
    const PartitionKey *key = &page->route->ranges[0].key;
    for (size_t i = 0; i < key->count; i++) {
        if (!is_told_by_value(key->parts[i]))
            return;
    }
    item_page_narrow(page, definition->kind, key);
}

static bool is_same_key(const PartitionKey *a, const PartitionKey *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!json_equal(a->parts[i], b->parts[i]))
            return false;
    }
    return a->count == b->count;
}

/* At most one key, although 0 is found in two places. */
static bool is_of_one_key(const QueryRoute *route)
{
    for (size_t i = 0; i < route->count; i++) {
        if (!route->ranges[i].is_key || !is_same_key(&route->ranges[0].key, &route->ranges[i].key))
            return false;
    }
    return !route->is_all;
}

Status query_scope_find(const ApiRequest *r, ItemPage *page, Error *err)
{
    const PartitionKeyDefinition *definition = &r->container->partition_key;
    if (page->is_narrow)
        return STATUS_OK;
    QueryRoute *route = ARENA_NEW(r->arena, QueryRoute);
    query_route(page->query, r->arena, definition, route);
    if (!route->is_all) {
        page->route = route;
        narrow(page, definition);
    }
    /* As the service has it: several keys in one of many partitions are several, too. */
    if (is_of_one_key(route) || r->container->range_count == 1 ||
        request_flag(r, "x-ms-documentdb-query-enablecrosspartition"))
        return STATUS_OK;
    return error_set(
        err, STATUS_BAD_REQUEST, SUB_NONE,
        "Cross partition query is required but disabled. Set "
        "x-ms-documentdb-query-enablecrosspartition to true, give the partition key in "
        "x-ms-documentdb-partitionkey, or filter by it.");
}
