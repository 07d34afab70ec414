/* query_scope.c - see query_scope_int.h. */
#include "api/query_scope_int.h"

#include "api/query_plan_int.h"

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

static void find_route(ItemPage *page, const PartitionKeyDefinition *definition, QueryRoute *out)
{
    query_route(page->query, page->request->arena, definition, out);
    if (out->is_all)
        return;
    page->route = out;
    narrow(page, definition);
}

/* As SDKs have it: several keys in one of many partitions are several, too. */
static Status check_allowed(const ItemPage *page, const Container *container,
                            const QueryRoute *route, Error *err)
{
    if (is_of_one_key(route) || container->range_count == 1 || page->allows_cross)
        return STATUS_OK;
    return error_set(
        err, STATUS_BAD_REQUEST, SUB_NONE,
        "Cross partition query is required but disabled. Set "
        "x-ms-documentdb-query-enablecrosspartition to true, give the partition key in "
        "x-ms-documentdb-partitionkey, or filter by it.");
}

/* ---- what is left to clients ---- */

static size_t count_needed(const ItemPage *page, const Container *container)
{
    size_t count = 0;
    for (size_t i = 0; i < container->range_count; i++)
        count += item_page_needs(page, &container->ranges[i]);
    return count;
}

static Status refuse_merging(const ItemPage *page, const Container *container,
                             const QueryRoute *route, Error *err)
{
    if (count_needed(page, container) <= 1)
        return STATUS_OK;
    TRY(query_check_cross_partition(page->query, err));
    if (query_is_streaming(page->query))
        return STATUS_OK;
    ApiRequest *r = page->request;
    r->error_info = query_plan_text(r->arena, page->query, route);
    return error_set(err, STATUS_BAD_REQUEST, SUB_CROSS_PARTITION_NOT_SERVABLE,
                     "The provided cross partition query can not be directly served by the "
                     "gateway. The client asked to put the results of partitions together itself "
                     "(x-orrery-cross-partition); additionalErrorInfo is the plan for that.");
}

/* "client": answer as the service does, whose gateway puts no results of partitions together. */
Status query_scope_begin(const ApiRequest *r, ItemPage *page, Error *err)
{
    Slice value = slice_trim(request_header(r, "x-orrery-cross-partition"));
    page->is_client = slice_equal_nocase(value, SLICE("client"));
    page->allows_cross = request_flag(r, "x-ms-documentdb-query-enablecrosspartition");
    if (page->is_client || value.len == 0 || slice_equal_nocase(value, SLICE("server")))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "x-orrery-cross-partition must be 'server' or 'client', not '%.*s'.",
                     SLICE_CUT(value, 60));
}

Status query_scope_find(ItemPage *page, const Container *container, Error *err)
{
    if (page->is_narrow)
        return STATUS_OK;
    QueryRoute *route = ARENA_NEW(page->request->arena, QueryRoute);
    find_route(page, &container->partition_key, route);
    TRY(check_allowed(page, container, route, err));
    return page->is_client ? refuse_merging(page, container, route, err) : STATUS_OK;
}
