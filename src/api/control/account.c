/* account.c - GET /: the account document, which tells SDKs where to send everything else.
 *
 * SDKs leave the address that the user gave them and use the one in this document. So it names the
 * address that this request came to: mapped ports, other host names and other containers then work
 * without any setting.
 */
#include "api/control/resource_handlers_int.h"
#include "api/core/response_int.h"

/* A string that holds JSON: .NET's planner reads these limits from it. */
#define QUERY_ENGINE_CONFIGURATION                                                               \
    "{\"maxSqlQueryInputLength\":524288,\"maxJoinsPerSqlQuery\":10,"                             \
    "\"maxLogicalAndPerSqlQuery\":2147483647,\"maxLogicalOrPerSqlQuery\":2147483647,"            \
    "\"maxUdfRefPerSqlQuery\":10,\"maxInExpressionItemsCount\":2147483647,"                      \
    "\"queryMaxInMemorySortDocumentCount\":-1000,\"maxQueryRequestTimeoutFraction\":0.9,"        \
    "\"sqlAllowNonFiniteNumbers\":false,\"sqlAllowAggregateFunctions\":true,"                    \
    "\"sqlAllowSubQuery\":true,\"sqlAllowScalarSubQuery\":true,\"allowNewKeywords\":true,"       \
    "\"sqlAllowLike\":true,\"sqlAllowGroupByClause\":true,\"sqlAllowTop\":true,"                 \
    "\"enableSpatialIndexing\":true,\"maxSpatialQueryCells\":2147483647,"                        \
    "\"spatialMaxGeometryPointCount\":256,\"sqlDisableOptimizationFlags\":0,"                    \
    "\"sqlQueryILDisableOptimizationFlags\":0,\"clientDisableOptimisticDirectExecution\":false," \
    "\"queryEnableFullText\":true,\"queryEnableFullTextPreviewFeatures\":false}"

/* The bounds are the smallest that the service has for one region; no read here is ever stale. */
static void print_consistency(Consistency level, Buf *text)
{
    buf_format(text, "{\"defaultConsistencyLevel\":\"%.*s\"", SLICE_ARG(consistency_name(level)));
    if (level == CONSISTENCY_BOUNDED_STALENESS)
        buf_slice(text, SLICE(",\"maxStalenessPrefix\":10,\"maxIntervalInSeconds\":5"));
    buf_byte(text, '}');
}

/* Whether the key may change anything, so that a page or a tool need not try. What a token or a
 * role allows depends on the resource, so nothing is said of those. */
static void add_access(const ApiRequest *r, Response *response)
{
    if (r->principal.kind == PRINCIPAL_KEY)
        response_header(response, SLICE("x-orrery-access"), SLICE("write"));
    else if (r->principal.kind == PRINCIPAL_READ_ONLY_KEY)
        response_header(response, SLICE("x-orrery-access"), SLICE("read"));
}

Status account_read(ApiRequest *r, Error *err)
{
    Slice endpoint = SLICE_EMPTY;
    TRY(request_endpoint(r, &endpoint, err));
    AUTO(buf_done) Buf text;
    buf_init(&text, 16384);
    Slice account = r->api->options.account;
    Slice location =
        arena_format(r->arena, "[{\"name\":\"%.*s\",\"databaseAccountEndpoint\":\"%.*s\"}]",
                     SLICE_ARG(r->api->options.region), SLICE_ARG(endpoint));
    buf_format(&text,
               "{\"_self\":\"\",\"id\":\"%.*s\",\"_rid\":\"%.*s\","
               "\"media\":\"//media/\",\"addresses\":\"//addresses/\",\"_dbs\":\"//dbs/\","
               "\"writableLocations\":%.*s,\"readableLocations\":%.*s,",
               SLICE_ARG(account), SLICE_ARG(account), SLICE_ARG(location), SLICE_ARG(location));
    buf_slice(&text,
              SLICE("\"enableMultipleWriteLocations\":false,\"continuousBackupEnabled\":false,"
                    "\"enableNRegionSynchronousCommit\":false,"
                    "\"enablePerPartitionFailoverBehavior\":false,"
                    "\"userReplicationPolicy\":{\"asyncReplication\":false,"
                    "\"minReplicaSetSize\":1,\"maxReplicasetSize\":1},"
                    "\"userConsistencyPolicy\":"));
    print_consistency(r->api->options.consistency, &text);
    buf_slice(&text, SLICE(",\"systemReplicationPolicy\":{\"minReplicaSetSize\":1,"
                           "\"maxReplicasetSize\":1},"
                           "\"readPolicy\":{\"primaryReadCoefficient\":1,"
                           "\"secondaryReadCoefficient\":1},\"queryEngineConfiguration\":"));
    json_print_string(SLICE(QUERY_ENGINE_CONFIGURATION), &text);
    buf_byte(&text, '}');
    ASSERT(!buf_full(&text));

    Response response;
    response_begin(r, &response, 200, SLICE("0"));
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    add_access(r, &response);
    response.body = arena_copy(r->arena, buf_view(&text));
    response_send(r, &response);
    return STATUS_OK;
}
