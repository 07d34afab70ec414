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

/* Whether the query is about more than one key, however many partitions there are by now. */
static bool is_crossing(const Container *container, const QueryRoute *route)
{
    return container->partition_key.kind != PARTITION_NONE && !is_of_one_key(route);
}

static Status check_allowed(const ItemPage *page, Error *err)
{
    if (page->allows_cross)
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

/* Where there is no plan, nobody but the server can merge; and a query that the server has begun,
 * while there was one partition, is gone on with: SDKs have no plan for the middle. */
static Status refuse_merging(const ItemPage *page, const Container *container,
                             const QueryRoute *route, Error *err)
{
    if (page->token.len > 0 || count_needed(page, container) <= 1)
        return STATUS_OK;
    ApiRequest *r = page->request;
    Slice plan = query_plan_text(r->arena, page->query, route);
    if (plan.len == 0)
        return STATUS_OK;
    r->error_info = plan;
    return error_set(err, STATUS_BAD_REQUEST, SUB_CROSS_PARTITION_NOT_SERVABLE,
                     "The provided cross partition query can not be directly served by the "
                     "gateway. The client is expected to put the results of partitions together "
                     "itself; additionalErrorInfo is the plan for that.");
}

/* SDKs that send a query as it is, and go on with a plan when they are told to. Those that ask for
 * a plan first never come here; all others have no other way. */
static bool merges_itself(const ApiRequest *r)
{
    static const Slice NAMES[] = {SLICE_INIT("azure-cosmos-js/"), SLICE_INIT("azsdk-js-cosmos/"),
                                  SLICE_INIT("azsdk-python-cosmos")};
    Slice agent = request_header(r, "user-agent");
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        if (agent.len > 0 && memmem(agent.ptr, agent.len, NAMES[i].ptr, NAMES[i].len) != NULL)
            return true;
    }
    return false;
}

static bool is_left_to_client(const ApiRequest *r)
{
    switch (r->api->options.merge) {
    case API_MERGE_AUTO:
        break;
    case API_MERGE_ALWAYS:
        return false;
    case API_MERGE_NEVER:
        return true;
    }
    return merges_itself(r);
}

Status query_scope_begin(const ApiRequest *r, ItemPage *page, Error *err)
{
    Slice value = slice_trim(request_header(r, "x-orrery-cross-partition"));
    page->is_client =
        value.len == 0 ? is_left_to_client(r) : slice_equal_nocase(value, SLICE("client"));
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
    if (!is_crossing(container, route))
        return STATUS_OK;
    TRY(check_allowed(page, err));
    if (!page->request->api->options.has_extensions)
        TRY(query_check_cross_partition(page->query, err));
    if (!page->is_client)
        return STATUS_OK;
    page->is_walking = query_is_streaming(page->query);
    return page->is_walking ? STATUS_OK : refuse_merging(page, container, route, err);
}
