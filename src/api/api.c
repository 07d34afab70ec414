/* api.c - see api.h: the way of a request from http to its handler and back.
 *
 *     on_admit    check_source (browsers.h); service_handle (health, CORS, ...), or admit:
 *                 address_parse, auth_check
 *     on_request  the same if on_admit has not been called, then act: route_request, handler
 *
 * http calls on_admit if the body of a request is still to come: nothing of it is read for anybody
 * without a key. Nothing about any resource is looked up before the request is authorised.
 */
#include "api/api.h"

#include "api/chaos_int.h"
#include "api/request_body_int.h"
#include "api/respond_int.h"
#include "api/usage_int.h"
#include "base/encoding.h"
#include "base/mem.h"

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

/* "2020-07-15" to 20200715. Without the header the newest version is meant. */
static Status parse_version(ApiRequest *r, Error *err)
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
static Slice activity_id(const ApiRequest *r)
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

/* Whether a POST to a feed asks for something. Some clients ask for the plan of a query as if they
 * created a document. */
static bool is_question(const ApiRequest *r)
{
    return request_flag(r, "x-ms-documentdb-isquery") ||
           slice_starts_with(request_header(r, "content-type"), SLICE("application/query+json")) ||
           (r->address.type == RESOURCE_DOCUMENT &&
            request_flag(r, "x-ms-cosmos-is-query-plan-request"));
}

/* What the method does to the resource that the path names. */
static Status choose_operation(ApiRequest *r, Error *err)
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

static bool is_read(Operation operation)
{
    return operation == OPERATION_LIST || operation == OPERATION_READ ||
           operation == OPERATION_QUERY;
}

/* What the request authorises itself with. Of two headers of one name, a proxy before us may have
 * looked at the other one. */
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

Status request_authorise(ApiRequest *r, bool takes_bearer, Error *err)
{
    AuthRequest auth = {.method = r->http->method, .address = &r->address};
    TRY(find_credentials(r, &auth, err));
    Access access = ACCESS_READ;
    r->now_s = clock_wall_s(r->api->options.clock);
    Status status = takes_bearer && auth_is_bearer(auth.authorization)
                        ? auth_check_bearer(r->api->options.keys, auth.authorization, &access, err)
                        : auth_check(r->api->options.keys, &auth, r->now_s, r->arena, &access, err);
    if (status == STATUS_OK && access == ACCESS_READ && !is_read(r->operation))
        status = error_set(err, STATUS_FORBIDDEN, SUB_NONE,
                           "The read-only key gives insufficient permissions for %.*s on this "
                           "resource.",
                           SLICE_CUT(r->http->method, 20));
    if (status != STATUS_OK)
        metrics_add(http_loop_metrics(r->http->loop), METRIC_REQUESTS_UNAUTHORIZED, 1);
    return status;
}

/* Who asks, and for what; the body is not looked at. */
static Status admit(ApiRequest *r, Error *err)
{
    if (orrery_is_path(r->http->path))
        return orrery_admit(r, err);
    TRY(address_parse(r->arena, r->http->path, &r->address, err));
    TRY(choose_operation(r, err));
    return request_authorise(r, false, err);
}

/* Does what an authorised request asks for. */
static Status act(ApiRequest *r, Error *err)
{
    if (orrery_is_path(r->http->path))
        return orrery_request(r, err);
    TRY(parse_version(r, err));
    r->snapshot = catalog_read(&r->loop->reader);
    return route_request(r, err);
}

static void run(ApiRequest *r, bool is_admitted)
{
    Error err;
    if ((!is_admitted && admit(r, &err) != STATUS_OK) || act(r, &err) != STATUS_OK)
        respond_error(r, &err);
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
    http->body = arena_copy(http->arena, http->body);
}

void request_again(ApiRequest *r)
{
    r->is_past_chaos = true;
    r->database = NULL; /* of a snapshot that is gone */
    r->container = NULL;
    run(r, false);
}

/* Where the request comes from: see browsers.h. */
static Status check_source(ApiRequest *r, Error *err)
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

/* The beginning of every request. NULL: it has been answered already. */
static ApiRequest *begin(Api *api, HttpRequest *http)
{
    ApiRequest *r = ARENA_NEW(http->arena, ApiRequest);
    r->http = http;
    r->api = api;
    r->loop = http_loop_user(http->loop);
    r->arena = http->arena;
    r->activity_id = activity_id(r);
    r->is_head = slice_equal(http->method, SLICE("HEAD"));
    Error err;
    if (check_source(r, &err) != STATUS_OK) {
        respond_error(r, &err);
        return NULL;
    }
    return service_handle(r) ? NULL : r;
}

static bool on_admit(void *ctx, HttpRequest *http)
{
    ApiRequest *r = begin(ctx, http);
    if (r == NULL)
        return false;
    Error err;
    if (admit(r, &err) != STATUS_OK) {
        respond_error(r, &err);
        return false;
    }
    http->user = r;
    return true;
}

static void on_request(void *ctx, HttpRequest *http)
{
    bool is_admitted = http->user != NULL;
    ApiRequest *r = is_admitted ? http->user : begin(ctx, http);
    if (r != NULL)
        run(r, is_admitted);
}

static void *on_loop_open(void *ctx, HttpLoop *http_loop)
{
    ApiLoop *loop = MEM_NEW(ApiLoop);
    loop->api = ctx;
    catalog_reader_init(&loop->reader, loop->api->options.catalog);
    buf_init(&loop->text, ITEM_TEXT_BYTES_MAX);
    arena_init(&loop->brief, LOOP_QUERY_ARENA_BYTES);
    usage_loop_open(loop);
    refresh_loop_open(loop, http_loop);
    return loop;
}

static void on_loop_close(void *ctx, void *loop_user)
{
    (void)ctx;
    ApiLoop *loop = loop_user;
    refresh_loop_close(loop);
    catalog_reader_done(&loop->reader);
    buf_done(&loop->text);
    arena_done(&loop->brief);
    usage_loop_close(loop);
    mem_free(loop);
}

Api *api_open(const ApiOptions *options)
{
    Api *api = MEM_NEW(Api);
    arena_init(&api->arena, 4096);
    api->options = *options;
    api->limits = (PageLimits){.entries_max = 20000, .us_max = 5000000, .brief_us = 1000};
    uint32_t turns = workers_turns(options->workers);
    /* One less than run: the allocator keeps what one has freed while the next one fills up. */
    query_memory_init(&api->query_memory, turns > 1 ? turns - 1 : 1);
    if (options->charges == NULL)
        api->options.charges = charge_model_default();
    api->options.certificate = arena_copy(&api->arena, options->certificate);
    api->options.account =
        options->account.len > 0 ? arena_copy(&api->arena, options->account) : SLICE("orrery");
    api->options.region = options->region.len > 0 ? arena_copy(&api->arena, options->region)
                                                  : SLICE("South Central US");
    api->options.public_endpoint = arena_copy(&api->arena, options->public_endpoint);
    api->options.browsers.origins = arena_copy(&api->arena, options->browsers.origins);
    api->options.browsers.hosts = arena_copy(&api->arena, options->browsers.hosts);
    usage_open(api);
    if (options->has_chaos)
        api->chaos = chaos_open(options->clock);
    refresh_open(api);
    return api;
}

void api_close(Api *api)
{
    if (api == NULL)
        return;
    chaos_close(api->chaos);
    query_memory_done(&api->query_memory);
    refresh_close(api);
    usage_close(api);
    arena_done(&api->arena);
    mem_free(api);
}

HttpHandler api_handler(Api *api)
{
    return (HttpHandler){
        .ctx = api,
        .admit = on_admit,
        .handle = on_request,
        .loop_open = on_loop_open,
        .loop_close = on_loop_close,
    };
}
