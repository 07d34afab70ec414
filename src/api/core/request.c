/* request.c - see request_int.h: reading what a request says in its headers and its body. */
#include "api/core/request_int.h"

#include "api/core/access_int.h"
#include "api/core/request_audit_int.h"
#include "api/core/request_body_int.h"
#include "base/encoding.h"

Slice request_header(const ApiRequest *r, const char *name)
{
    return http_header(r->http, slice_from_cstr(name));
}

bool request_flag(const ApiRequest *r, const char *name)
{
    bool value = false;
    return slice_to_bool(slice_trim(request_header(r, name)), &value) && value;
}

Status request_max_items(const ApiRequest *r, uint32_t *out, Error *err)
{
    Slice text = slice_trim(request_header(r, "x-ms-max-item-count"));
    int64_t value = PAGE_ITEMS_DEFAULT;
    if (text.len > 0 && (!slice_to_i64(text, &value) || value < -1 || value >= UINT32_MAX))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "x-ms-max-item-count must be a number of items or -1, not '%.*s'.",
                         SLICE_CUT(text, 40));
    *out = value == -1 ? UINT32_MAX : (uint32_t)value;
    return STATUS_OK;
}

Status request_check_size(const ApiRequest *r, Error *err)
{
    if (r->http->body.len <= BODY_BYTES_MAX)
        return STATUS_OK;
    return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                     ITEM_TOO_LARGE "The body has %zu bytes, at most %zu are accepted.",
                     r->http->body.len, BODY_BYTES_MAX);
}

Status request_refuse_token(Slice token, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Invalid Continuation Token: '%.*s' was not given by this server for this "
                     "feed.",
                     SLICE_CUT(token, 80));
}

Status request_refuse_busy(Error *err)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "Too many requests are waiting for a worker; try again later.");
}

Status request_json(const ApiRequest *r, Json *out, Error *err)
{
    TRY(request_check_size(r, err));
    Json body;
    TRY(request_body_json(r, &body, err));
    if (!json_is(body, JSON_OBJECT))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The request body must be a JSON object.");
    *out = body;
    return STATUS_OK;
}

Status request_increment(Json settings, uint32_t *percent, Error *err)
{
    Json policy =
        json_get(json_get(settings, SLICE("autoUpgradePolicy")), SLICE("throughputPolicy"));
    Json value = json_get(policy, SLICE("incrementPercent"));
    int64_t found = 0;
    if (!json_is(value, JSON_UNDEFINED) && !json_is(value, JSON_NULL) &&
        (!json_to_i64(value, &found) || found < 0 || found > PROVISION_INCREMENT_MAX))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "'incrementPercent' of the autoscale settings must be a whole number from "
                         "0 to %d.",
                         PROVISION_INCREMENT_MAX);
    *percent = (uint32_t)found;
    return STATUS_OK;
}

/* {"maxThroughput":4000, ...}, perhaps with an upgrade policy, which is kept and changes nothing.
 */
static Status parse_autopilot(const ApiRequest *r, Slice text, double *ru, uint32_t *increment,
                              Error *err)
{
    Json settings;
    TRY(json_parse(r->arena, text, &settings, err));
    Json max = json_get(settings, SLICE("maxThroughput"));
    if (!json_is(max, JSON_NUMBER))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "x-ms-cosmos-offer-autopilot-settings must be a JSON object whose "
                         "'maxThroughput' is a number, for example {\"maxThroughput\":4000}.");
    *ru = json_number(max);
    return request_increment(settings, increment, err);
}

Status request_provision(const ApiRequest *r, bool *has, Provision *out, Error *err)
{
    Slice manual = request_header(r, "x-ms-offer-throughput");
    Slice autopilot = request_header(r, "x-ms-cosmos-offer-autopilot-settings");
    double autoscale_max = 0;
    uint32_t increment = 0;
    if (autopilot.len > 0)
        TRY(parse_autopilot(r, autopilot, &autoscale_max, &increment, err));
    TRY(provision_parse(manual, autopilot.len > 0 ? &autoscale_max : NULL, out, has, err));
    out->increment_percent = increment;
    return STATUS_OK;
}

Status request_read_version(ApiRequest *r, Error *err)
{
    Slice text = slice_trim(request_header(r, "x-ms-version"));
    r->version = UINT32_MAX;
    if (text.len == 0)
        return STATUS_OK;
    uint64_t year = 0;
    uint64_t month = 0;
    uint64_t day = 0;
    bool good = text.len >= 10 && text.ptr[4] == '-' && text.ptr[7] == '-' &&
                slice_to_u64(slice_make(text.ptr, 4), &year) &&
                slice_to_u64(slice_make(text.ptr + 5, 2), &month) &&
                slice_to_u64(slice_make(text.ptr + 8, 2), &day) && year >= 2014 && month >= 1 &&
                month <= 12 && day >= 1 && day <= 31;
    /* Previews are called 2020-06-01-preview. */
    if (!good || (text.len > 10 && text.ptr[10] != '-'))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "x-ms-version '%.*s' is not the date of an API version, such as "
                         "2020-07-15.",
                         SLICE_CUT(text, 40));
    r->version = (uint32_t)(year * 10000 + month * 100 + day);
    return STATUS_OK;
}

/* The client's own id is kept if it looks like one; it goes into headers and logs. */
static Slice choose_activity_id(const ApiRequest *r)
{
    Slice given = request_header(r, "x-ms-activity-id");
    bool usable = given.len >= 1 && given.len <= 64;
    for (size_t i = 0; usable && i < given.len; i++) {
        char c = given.ptr[i];
        usable = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 c == '-' || c == '_';
    }
    if (usable)
        return arena_copy(r->arena, given);
    char *guid = arena_alloc(r->arena, GUID_LEN);
    random_guid(http_loop_random(r->http->loop), guid);
    return slice_make(guid, GUID_LEN);
}

/* Whether a POST to a feed is a query. Some clients ask for the plan of a query as if they created
 * a document. */
static bool is_question(const ApiRequest *r)
{
    return request_flag(r, "x-ms-documentdb-isquery") ||
           slice_starts_with(request_header(r, "content-type"), SLICE("application/query+json")) ||
           (r->address.type == RESOURCE_DOCUMENT &&
            request_flag(r, "x-ms-cosmos-is-query-plan-request"));
}

Status request_choose_operation(ApiRequest *r, Error *err)
{
    Slice method = r->http->method;
    bool feed = r->address.is_feed;
    if (slice_equal(method, SLICE("GET")) || r->is_head) {
        r->operation = feed ? OPERATION_LIST : OPERATION_READ;
    } else if (slice_equal(method, SLICE("POST"))) {
        r->operation = !feed            ? OPERATION_EXECUTE
                       : is_question(r) ? OPERATION_QUERY
                                        : OPERATION_CREATE;
    } else if (slice_equal(method, SLICE("PUT")) && !feed) {
        r->operation = OPERATION_REPLACE;
    } else if (slice_equal(method, SLICE("PATCH")) && !feed) {
        r->operation = OPERATION_PATCH;
    } else if (slice_equal(method, SLICE("DELETE")) && !feed) {
        r->operation = OPERATION_DELETE;
    } else {
        return error_set(err, STATUS_METHOD_NOT_ALLOWED, SUB_NONE,
                         "%.*s is not possible on this path.", SLICE_CUT(method, 20));
    }
    return STATUS_OK;
}

/* Finds the headers that authorise the request. Two headers of one name are refused: a proxy in
 * front of the server may have looked at the other one. */
static Status find_credentials(const ApiRequest *r, AuthRequest *out, Error *err)
{
    const struct {
        Slice name;
        Slice *value;
    } rows[] = {
        {SLICE("authorization"), &out->authorization},
        {SLICE("x-ms-date"), &out->x_ms_date},
        {SLICE("date"), &out->date},
    };
    for (size_t i = 0; i < r->http->header_count; i++) {
        const HttpHeader *header = &r->http->headers[i];
        for (size_t j = 0; j < ARRAY_COUNT(rows); j++) {
            if (!slice_equal(header->name, rows[j].name))
                continue;
            if (rows[j].value->ptr != NULL)
                return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                                 "The request has more than one %.*s header.",
                                 SLICE_ARG(rows[j].name));
            *rows[j].value = header->value;
        }
    }
    return STATUS_OK;
}

/* Finds 'r->principal' by the kind of credential that the request shows. */
static Status find_principal(ApiRequest *r, const AuthKeys *keys, const AuthRequest *auth,
                             Error *err)
{
    AuthToken token;
    TRY(auth_parse(r->arena, auth->authorization, &token, err));
    switch (token.scheme) {
    case AUTH_MASTER:
        return auth_check(keys, auth, &token, r->now_s, r->arena, &r->principal, err);
    case AUTH_RESOURCE:
        return resource_token_check(&r->api->resource_tokens, &token,
                                    catalog_read(&r->loop->reader), r->now_s, r->arena,
                                    &r->principal, err);
    case AUTH_IDENTITY:
        break;
    }
    r->shows_identity = true;
    return identity_read(&r->loop->identities, keys, r->keys_version, token.signature, r->now_s,
                         r->arena, &r->principal, err);
}

static Status authorise(ApiRequest *r, bool takes_bearer, Error *err)
{
    AuthRequest auth = {.method = r->http->method, .address = &r->address};
    TRY(find_credentials(r, &auth, err));
    r->now_s = r->node_time_s != 0 ? r->node_time_s : clock_wall_s(r->api->options.clock);
    const AuthKeys *keys = key_read(&r->loop->keys);
    r->keys_version = r->loop->keys.version;
    Status status = takes_bearer && auth_is_bearer(auth.authorization)
                        ? auth_check_bearer(keys, auth.authorization, &r->principal, err)
                        : find_principal(r, keys, &auth, err);
    if (status == STATUS_OK)
        status = access_check(r, err);
    r->principal.permission = NULL; /* the snapshot may be gone before the body has come */
    if (status != STATUS_OK)
        metrics_add(http_loop_metrics(r->http->loop), METRIC_REQUESTS_UNAUTHORIZED, 1);
    return status;
}

Status request_authorise(ApiRequest *r, bool takes_bearer, Error *err)
{
    r->principal = (Principal){0}; /* of nobody, while it is not verified */
    Status status = authorise(r, takes_bearer, err);
    request_audit_begin(r, status == STATUS_OK);
    return status;
}

ApiRequest *request_new(Api *api, HttpRequest *http)
{
    ApiRequest *r = ARENA_NEW(http->arena, ApiRequest);
    r->http = http;
    r->api = api;
    r->loop = http_loop_user(http->loop);
    r->arena = http->arena;
    r->activity_id = choose_activity_id(r);
    r->is_head = slice_equal(http->method, SLICE("HEAD"));
    return r;
}

Status request_check_source(ApiRequest *r, Error *err)
{
    const BrowserRules *rules = &r->api->options.browsers;
    Slice authority = r->http->authority;
    if (!browsers_host_is_ours(rules, authority))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The request is for the host '%.*s', which is not known as a name of this "
                         "server. If it is one, start the server with --allow-host %.*s.",
                         SLICE_CUT(authority, 100), SLICE_CUT(browsers_host_name(authority), 100));
    Slice origin = request_header(r, "origin");
    switch (browsers_origin(rules, origin, authority)) {
    case ORIGIN_NONE:
        return STATUS_OK;
    case ORIGIN_ALLOWED:
        r->origin = arena_copy(r->arena, origin);
        return STATUS_OK;
    case ORIGIN_FOREIGN:
        break;
    }
    return error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                     "Pages from '%.*s' may not use this server. If they may, start it with --cors "
                     "%.*s.",
                     SLICE_CUT(origin, 100), SLICE_CUT(origin, 100));
}

void request_keep(ApiRequest *r)
{
    HttpRequest *http = r->http;
    HttpHeader *headers = ARENA_NEW_ARRAY(http->arena, HttpHeader, http->header_count);
    for (size_t i = 0; i < http->header_count; i++)
        headers[i] = (HttpHeader){arena_copy(http->arena, http->headers[i].name),
                                  arena_copy(http->arena, http->headers[i].value)};
    http->headers = headers;
    http->method = arena_copy(http->arena, http->method);
    http->path = arena_copy(http->arena, http->path);
    http->authority = arena_copy(http->arena, http->authority);
    http->peer = arena_copy(http->arena, http->peer);
    http->body = arena_copy(http->arena, http->body);
}

void request_again(ApiRequest *r)
{
    ASSERT(r->api->run_again != NULL);
    r->is_past_chaos = true;
    r->database = NULL; /* of a snapshot that is gone */
    r->container = NULL;
    r->refused_by = NULL;
    r->error_info = SLICE_EMPTY; /* of a run that is forgotten */
    r->error_text = SLICE_EMPTY;
    r->api->run_again(r);
}
