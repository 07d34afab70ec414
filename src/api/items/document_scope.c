/* document_scope.c - see document_scope_int.h. */
#include "api/items/document_scope_int.h"

#include "api/items/query_plan_int.h"
#include "query/plan/query_traits.h"

/* Whether equal values always have equal keys: the hash of undefined is also that of arrays and
 * objects, and 0 equals -0, whose hash is different. */
static bool is_told_by_value(Json value)
{
    return json_is(value, JSON_STRING) || json_is(value, JSON_BOOL) || json_is(value, JSON_NULL) ||
           (json_is(value, JSON_NUMBER) && json_number(value) != 0);
}

/* A filter of one key, or of the first parts of a hierarchical one, is as good as a header. Several
 * keys only say which partitions are needed; within these the index finds them. */
static void narrow(DocumentQuery *q, const PartitionKeyDefinition *definition)
{
    if (q->page.extent.route->count != 1)
        return;
    const PartitionKey *key = &q->page.extent.route->ranges[0].key;
    for (size_t i = 0; i < key->count; i++) {
        if (!is_told_by_value(key->parts[i]))
            return;
    }
    document_extent_narrow(&q->page.extent, q->page.request->arena, definition->kind, key);
}

static bool is_same_key(const PartitionKey *a, const PartitionKey *b)
{
    for (size_t i = 0; i < a->count; i++) {
        if (!json_equal(a->parts[i], b->parts[i]))
            return false;
    }
    return a->count == b->count;
}

/* At most one key, although 0 and -0 have two hashes. */
static bool is_of_one_key(const QueryRoute *route)
{
    for (size_t i = 0; i < route->count; i++) {
        if (!route->ranges[i].is_key || !is_same_key(&route->ranges[0].key, &route->ranges[i].key))
            return false;
    }
    return !route->is_all;
}

static void find_route(DocumentQuery *q, const PartitionKeyDefinition *definition, QueryRoute *out)
{
    query_route(q->query, q->page.request->arena, definition, out);
    if (out->is_all)
        return;
    q->page.extent.route = out;
    narrow(q, definition);
}

/* Whether the query is about more than one key, however many partitions there are by now. */
static bool is_crossing(const Container *container, const QueryRoute *route)
{
    return container->partition_key.kind != PARTITION_NONE && !is_of_one_key(route);
}

static Status check_allowed(const DocumentQuery *q, Error *err)
{
    if (q->cross.is_allowed)
        return STATUS_OK;
    return error_set(
        err, STATUS_BAD_REQUEST, SUB_NONE,
        "Cross partition query is required but disabled. Set "
        "x-ms-documentdb-query-enablecrosspartition to true, give the partition key in "
        "x-ms-documentdb-partitionkey, or filter by it.");
}

/* ---- what is left to clients ---- */

static size_t count_needed(const DocumentQuery *q, const Container *container)
{
    size_t count = 0;
    for (size_t i = 0; i < container->range_count; i++)
        count += document_extent_needs(&q->page.extent, &container->ranges[i]);
    return count;
}

/* Where there is no plan, only the server can merge. A query that the server has begun, while there
 * was one partition, is continued by the server: SDKs have no plan for the middle of a query. */
static Status refuse_merging(const DocumentQuery *q, const Container *container,
                             const QueryRoute *route, Error *err)
{
    if (q->token.len > 0 || count_needed(q, container) <= 1)
        return STATUS_OK;
    ApiRequest *r = q->page.request;
    Slice plan = document_plan_text(r->arena, q->query, route);
    if (plan.len == 0)
        return STATUS_OK;
    r->error_info = plan;
    return error_set(err, STATUS_BAD_REQUEST, SUB_CROSS_PARTITION_NOT_SERVABLE,
                     "The provided cross partition query can not be directly served by the "
                     "gateway. The client is expected to put the results of partitions together "
                     "itself; additionalErrorInfo is the plan for that.");
}

/* SDKs that send a query as it is, and continue with a plan when they are told to. SDKs that ask
 * for a plan first never come here; all other clients cannot merge. */
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

Status document_scope_read(const ApiRequest *r, DocumentQuery *q, Error *err)
{
    Slice value = slice_trim(request_header(r, "x-orrery-cross-partition"));
    q->cross.is_client =
        value.len == 0 ? is_left_to_client(r) : slice_equal_nocase(value, SLICE("client"));
    q->cross.is_allowed = request_flag(r, "x-ms-documentdb-query-enablecrosspartition");
    if (q->cross.is_client || value.len == 0 || slice_equal_nocase(value, SLICE("server")))
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "x-orrery-cross-partition must be 'server' or 'client', not '%.*s'.",
                     SLICE_CUT(value, 60));
}

Status document_scope_check(DocumentQuery *q, const Container *container, Error *err)
{
    if (q->page.extent.is_given)
        return STATUS_OK;
    QueryRoute *route = ARENA_NEW(q->page.request->arena, QueryRoute);
    find_route(q, &container->partition_key, route);
    if (!is_crossing(container, route))
        return STATUS_OK;
    TRY(check_allowed(q, err));
    if (!q->page.request->api->options.has_extensions)
        TRY(query_check_cross_partition(q->query, err));
    if (!q->cross.is_client)
        return STATUS_OK;
    q->is_walking = query_is_streaming(q->query);
    return q->is_walking ? STATUS_OK : refuse_merging(q, container, route, err);
}
