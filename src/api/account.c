/* account.c - GET /: the account document, which tells SDKs where to send everything else.
 *
 * SDKs leave the address that the user gave them and go to the one in this document. So it names
 * the address that this very request came to: mapped ports, other host names and other containers
 * then work without any setting.
 */
#include "api/request_int.h"
#include "api/respond_int.h"

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

/* Host names, numeric addresses and a port; nothing that could mean something else in a URL. */
static bool is_authority(Slice text)
{
    if (text.len == 0 || text.len > 255)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
        if (!good)
            return false;
    }
    return true;
}

/* "localhost:" is allowed by the grammar and means the default port. */
static Slice without_empty_port(Slice authority)
{
    return slice_ends_with(authority, SLICE(":")) ? slice_first(authority, authority.len - 1)
                                                  : authority;
}

static bool has_port(Slice authority)
{
    size_t i = authority.len;
    while (i > 0 && authority.ptr[i - 1] >= '0' && authority.ptr[i - 1] <= '9')
        i--;
    /* "::1" without brackets is no authority; "[::1]" ends in a bracket. */
    return i > 0 && i < authority.len && authority.ptr[i - 1] == ':';
}

/* The first of a comma-separated list, which is what the nearest client sent to the first proxy. */
static Slice forwarded(const ApiRequest *r, const char *name)
{
    Slice list = request_header(r, name);
    return slice_trim(slice_cut(&list, ','));
}

static Status endpoint_of(const ApiRequest *r, Slice *out, Error *err)
{
    const ApiOptions *options = &r->api->options;
    if (options->public_endpoint.len > 0) {
        *out = options->public_endpoint;
        return STATUS_OK;
    }
    Slice scheme = r->http->is_tls ? SLICE("https") : SLICE("http");
    Slice authority = r->http->authority;
    if (options->trust_forwarded) {
        Slice proto = forwarded(r, "x-forwarded-proto");
        if (slice_equal_nocase(proto, SLICE("https")) || slice_equal_nocase(proto, SLICE("http")))
            scheme = proto.len == 5 ? SLICE("https") : SLICE("http");
        Slice host = forwarded(r, "x-forwarded-host");
        authority = host.len > 0 ? host : authority;
    }
    authority = without_empty_port(authority);
    if (!is_authority(authority))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The Host header '%.*s' is not a host name and port.",
                         SLICE_CUT(authority, 80));
    const char *port = has_port(authority) ? "" : scheme.len == 5 ? ":443" : ":80";
    *out = arena_format(r->arena, "%.*s://%.*s%s/", SLICE_ARG(scheme), SLICE_ARG(authority), port);
    return STATUS_OK;
}

/* Hot: every read of an item has it. */
Status request_location(const ApiRequest *r, Slice *out, Error *err)
{
    const ApiOptions *options = &r->api->options;
    Slice path = r->http->path;
    Slice parts[3] = {r->http->is_tls ? SLICE("https://") : SLICE("http://"), r->http->authority,
                      path};
    if (UNLIKELY(options->public_endpoint.len > 0 || options->trust_forwarded)) {
        parts[0] = SLICE_EMPTY;
        TRY(endpoint_of(r, &parts[1], err));
        parts[2] = slice_from(path, path.len > 0 && path.ptr[0] == '/' ? 1 : 0);
    }
    char *text = arena_alloc(r->arena, parts[0].len + parts[1].len + parts[2].len);
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); len += parts[i++].len) {
        if (parts[i].len > 0)
            memcpy(text + len, parts[i].ptr, parts[i].len);
    }
    *out = slice_make(text, len);
    return STATUS_OK;
}

/* Bounds are the least that the service has for one region; nothing here is ever stale. */
static void print_consistency(Consistency level, Buf *text)
{
    buf_format(text, "{\"defaultConsistencyLevel\":\"%.*s\"", SLICE_ARG(consistency_name(level)));
    if (level == CONSISTENCY_BOUNDED_STALENESS)
        buf_slice(text, SLICE(",\"maxStalenessPrefix\":10,\"maxIntervalInSeconds\":5"));
    buf_byte(text, '}');
}

Status account_read(ApiRequest *r, Error *err)
{
    Slice endpoint = SLICE_EMPTY;
    TRY(endpoint_of(r, &endpoint, err));
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
    response.body = arena_copy(r->arena, buf_view(&text));
    response_send(r, &response);
    return STATUS_OK;
}
