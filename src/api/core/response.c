/* response.c - see response_int.h. */
#include "api/core/response_int.h"

#include "api/core/forward_int.h"
#include "api/core/request_audit_int.h"
#include "api/core/usage_int.h"
#include "base/encoding.h"
#include "base/mem.h"

/* Tools tell the service and an emulator apart by these; the numbers are those of a recent service.
 */
#define GATEWAY_VERSION SLICE("version=2.14.0")
#define SERVICE_VERSION SLICE("version=2.14.0.0")
#define SCHEMA_VERSION  SLICE("1.18")

enum { ESCAPED_MAX = 6 }; /* bytes for one, in a string of JSON */

#define EXPOSED_HEADERS                                                                           \
    SLICE("etag, x-ms-activity-id, x-ms-request-charge, x-ms-session-token, x-ms-continuation, "  \
          "x-ms-item-count, x-ms-substatus, x-ms-retry-after-ms, x-ms-content-path, "             \
          "x-ms-alt-content-path, x-ms-resource-quota, x-ms-resource-usage, x-ms-schemaversion, " \
          "x-ms-serviceversion, x-ms-gatewayversion, x-ms-documentdb-partitionkeyrangeid, "       \
          "x-ms-documentdb-query-metrics, x-ms-cosmos-index-utilization, "                        \
          "x-ms-cosmos-query-execution-info, x-ms-request-duration-ms, "                          \
          "x-ms-cosmos-min-throughput, x-ms-offer-replace-pending, "                              \
          "x-ms-documentdb-collection-index-transformation-progress")

void response_header(Response *response, Slice name, Slice value)
{
    ASSERT(response->header_count < RESPONSE_HEADERS_MAX);
    response->headers[response->header_count++] = (HttpHeader){name, value};
}

void response_begin(const ApiRequest *r, Response *response, int status, Slice charge)
{
    response->status = status;
    response->sub_status = 0;
    response->header_count = 0;
    response->body = SLICE_EMPTY;
    response->body_release = NULL;
    response->body_release_ctx = NULL;
    response_header(response, SLICE("cache-control"), SLICE("no-store, no-cache"));
    response_header(response, SLICE("x-ms-activity-id"), r->activity_id);
    response_header(response, SLICE("x-ms-request-charge"), charge);
    response_header(response, SLICE("x-ms-schemaversion"), SCHEMA_VERSION);
    response_header(response, SLICE("x-ms-serviceversion"), SERVICE_VERSION);
    response_header(response, SLICE("x-ms-gatewayversion"), GATEWAY_VERSION);
    if (r->origin.len > 0) {
        response_header(response, SLICE("access-control-allow-origin"), r->origin);
        response_header(response, SLICE("vary"), SLICE("origin"));
        response_header(response, SLICE("access-control-expose-headers"), EXPOSED_HEADERS);
    }
}

static void release_body(void *ctx)
{
    mem_free(ctx);
}

void response_own_body(Response *response, Buf *text)
{
    response->body = buf_view(text);
    response->body_release = release_body;
    response->body_release_ctx = text->ptr;
    buf_init(text, 0);
}

/* Milliseconds, with three places. */
static Slice print_duration(uint64_t us, char out[DURATION_TEXT_MAX])
{
    size_t len = u64_print(us / 1000, out);
    unsigned rest = (unsigned)(us % 1000);
    out[len++] = '.';
    out[len++] = (char)('0' + rest / 100);
    out[len++] = (char)('0' + rest / 10 % 10);
    out[len++] = (char)('0' + rest % 10);
    return slice_make(out, len);
}

void response_send(ApiRequest *r, Response *response)
{
    ASSERT(response->status >= 200);
    ASSERT(response->status <= 599);
    if (UNLIKELY(r->api->options.cluster != NULL) && forward_takes_over(r, response))
        return;
    const Log *log = r->api->options.log;
    uint64_t took_us = clock_monotonic_us(r->api->options.clock) - r->http->begun_us;
    response_header(response, SLICE("x-ms-request-duration-ms"),
                    print_duration(took_us, response->duration));
    LOG_DEBUG(log, "request", "activity=%.*s type=%.*s status=%d bytes=%zu took_us=%llu",
              SLICE_ARG(r->activity_id), SLICE_ARG(address_segment(r->address.type)),
              response->status, response->body.len, (unsigned long long)took_us);
    request_audit_end(r, response->status, response->sub_status);
    HttpResponse http = {
        .status = response->status,
        .headers = response->headers,
        .header_count = response->header_count,
        .body = response->body,
        .body_release = response->body_release,
        .body_release_ctx = response->body_release_ctx,
    };
    http_respond(r->http, &http);
}

/* No request was read, so it has no id of the client's and no origin. */
size_t response_refusal_headers(void *ctx, const HttpRefusal *refusal,
                                HttpHeader headers[HTTP_REFUSAL_HEADERS_MAX])
{
    (void)ctx;
    char *guid = arena_alloc(refusal->arena, GUID_LEN);
    char *duration = arena_alloc(refusal->arena, DURATION_TEXT_MAX);
    random_guid(http_loop_random(refusal->loop), guid);
    ApiRequest none = {.activity_id = slice_make(guid, GUID_LEN)};
    Response response;
    response_begin(&none, &response, 0, SLICE("0"));
    response_header(&response, SLICE("x-ms-request-duration-ms"),
                    print_duration(refusal->took_us, duration));
    ASSERT(response.header_count <= HTTP_REFUSAL_HEADERS_MAX);
    memcpy(headers, response.headers, response.header_count * sizeof(*headers));
    return response.header_count;
}

Slice response_charge(const ApiRequest *r, Charge charge)
{
    char *text = arena_alloc(r->arena, CHARGE_TEXT_MAX);
    return slice_make(text, charge_print(charge, text));
}

Slice response_charge_read(const ApiRequest *r)
{
    return response_charge(r, charge_metadata_read(r->api->options.charges));
}

Slice response_charge_query(const ApiRequest *r)
{
    return response_charge(r, charge_metadata_query(r->api->options.charges));
}

Slice response_charge_change(const ApiRequest *r)
{
    return response_charge(r, charge_metadata_write(r->api->options.charges));
}

void respond_empty(ApiRequest *r, int status, Slice charge)
{
    Response response;
    response_begin(r, &response, status, charge);
    response_send(r, &response);
}

void respond_text(ApiRequest *r, int status, Slice content_type, Slice body)
{
    Response response;
    response_begin(r, &response, status, SLICE("0"));
    response_header(&response, SLICE("content-type"), content_type);
    response.body = body;
    response_send(r, &response);
}

bool request_has_version(const ApiRequest *r, Slice etag)
{
    Slice given = slice_trim(request_header(r, "if-none-match"));
    return given.len > 0 && (slice_equal(given, etag) || slice_equal(given, SLICE("*")));
}

void respond_resource(ApiRequest *r, int status, const WireResource *resource, Slice charge)
{
    ASSERT(status != 304); /* which has no body: respond_unchanged */
    Response response;
    response_begin(r, &response, status, charge);
    response_header(&response, SLICE("etag"), resource->etag);
    response_header(&response, SLICE("content-type"), SLICE("application/json"));
    response.body = resource->body;
    response_send(r, &response);
}

void respond_unchanged(ApiRequest *r, Slice etag)
{
    Response response;
    response_begin(r, &response, 304, response_charge_read(r));
    response_header(&response, SLICE("etag"), etag);
    response_send(r, &response);
}

void respond_read(ApiRequest *r, const WireResource *resource)
{
    if (request_has_version(r, resource->etag))
        respond_unchanged(r, resource->etag);
    else
        respond_resource(r, 200, resource, response_charge_read(r));
}

/* The JS SDK reads 'message' of every failure without checking that it is there, so there is always
 * a body with both members. */
void response_error(ApiRequest *r, Response *response, const Error *err, Slice charge)
{
    ASSERT(err->status != STATUS_OK);
    int http_status = status_http(err->status);
    if (err->status == STATUS_THROTTLED)
        usage_throttled(r);
    if (http_status >= 500 && err->status != STATUS_NOT_IMPLEMENTED)
        LOG_WARN(r->api->options.log, "request.failed", "activity=%.*s status=%d reason=%s",
                 SLICE_ARG(r->activity_id), http_status, err->message);
    AUTO(buf_done) Buf text;
    buf_init(&text, 8192 + ESCAPED_MAX * (r->error_info.len + r->error_text.len));
    buf_format(&text, "{\"code\":\"%s\",\"message\":", status_code(err->status));
    Slice reason = r->error_text.len > 0 ? r->error_text : slice_from_cstr(err->message);
    Slice message = arena_format(r->arena, "%.*s\r\nActivityId: %.*s, orrery/%s", SLICE_ARG(reason),
                                 SLICE_ARG(r->activity_id), ORRERY_VERSION);
    /* A message quotes what the client sent, cut at a byte, so it may not be valid UTF-8. */
    if (!json_utf8_valid(message)) {
        char *ascii = arena_cstr(r->arena, message);
        for (size_t i = 0; i < message.len; i++)
            ascii[i] = (unsigned char)ascii[i] < 0x80 ? ascii[i] : '?';
        message = slice_make(ascii, message.len);
    }
    json_print_string(message, &text);
    if (r->error_info.len > 0) {
        buf_slice(&text, SLICE(",\"additionalErrorInfo\":"));
        json_print_string(r->error_info, &text);
    }
    buf_byte(&text, '}');

    response_begin(r, response, http_status, charge);
    response_header(response, SLICE("content-type"), SLICE("application/json"));
    uint32_t sub = err->number != 0 ? err->number : (uint32_t)sub_number(err->sub);
    response->sub_status = sub;
    if (sub != 0)
        response_header(response, SLICE("x-ms-substatus"), arena_format(r->arena, "%u", sub));
    /* SDKs fetch a new token after a 401 with a challenge. */
    if (err->status == STATUS_UNAUTHORIZED && r->shows_identity)
        response_header(response, SLICE("www-authenticate"),
                        SLICE("Bearer error=\"invalid_token\""));
    if (err->status == STATUS_THROTTLED)
        response_header(response, SLICE("x-ms-retry-after-ms"),
                        arena_format(r->arena, "%u", err->retry_after_ms));
    response->body = arena_copy(r->arena, buf_view(&text));
}

void respond_error(ApiRequest *r, const Error *err)
{
    Response response;
    response_error(r, &response, err, SLICE("0"));
    response_send(r, &response);
}
