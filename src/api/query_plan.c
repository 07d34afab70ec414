/* query_plan.c - see query_plan_int.h. A plan needs the text of a query and the container's
 * definition, and nothing that is stored: it is made on the loop. */
#include "api/query_plan_int.h"

#include "api/item_page_int.h"
#include "query/sdk_plan.h"

/* A key that the client names is where its query goes, whatever the filter says. */
static Status find_route(const ApiRequest *r, const Query *query, QueryRoute *out, Error *err)
{
    const PartitionKeyDefinition *definition = &r->container->partition_key;
    PartitionKey key;
    bool found = false;
    TRY(partition_key_parse(r->arena, request_header(r, "x-ms-documentdb-partitionkey"), definition,
                            KEY_PREFIX, &key, &found, err));
    if (!found || definition->kind == PARTITION_NONE) {
        query_route(query, r->arena, definition, out);
        out->is_one_partition = r->container->range_count == 1;
        return STATUS_OK;
    }
    Epk epk;
    epk_make(definition->kind, &key, &epk);
    QueryRange *range = ARENA_NEW(r->arena, QueryRange);
    range->from = arena_copy(r->arena, epk_slice(&epk));
    range->to = epk_prefix_end(r->arena, range->from);
    range->is_key = key.count == definition->path_count;
    *out = (QueryRoute){.ranges = range, .count = 1};
    return STATUS_OK;
}

Slice query_plan_text(Arena *arena, const Query *query, const QueryRoute *route)
{
    Json plan;
    Error ignored;
    if (sdk_plan(query, arena, route, SDK_FEATURES_ALL, &plan, &ignored) != STATUS_OK)
        return SLICE_EMPTY;
    return json_print_arena(arena, plan);
}

Status documents_plan(ApiRequest *r, Error *err)
{
    Slice text;
    Json parameters;
    TRY(query_request(r->arena, r->http->body, &text, &parameters, err));
    Json computed = json_get(r->container->definition, SLICE("computedProperties"));
    Query *query;
    TRY(query_parse_with(r->arena, text, parameters, computed, &query, err));
    QueryRoute route;
    TRY(find_route(r, query, &route, err));
    Slice features = request_header(r, "x-ms-cosmos-supported-query-features");
    Json plan;
    TRY(sdk_plan(query, r->arena, &route, sdk_features_read(features), &plan, err));
    Response response;
    response_begin(r, &response, 200, charge_text_read(r));
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    response.body = json_print_arena(r->arena, plan);
    response_send(r, &response);
    return STATUS_OK;
}
