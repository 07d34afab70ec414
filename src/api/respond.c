/* respond.c - see respond_int.h. */
#include "api/respond_int.h"

#include "api/usage_int.h"
#include "base/encoding.h"

/* Tools tell the service from an emulator by these; the numbers are those of a recent service. */
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

/* Milliseconds, with three places. */
static Slice print_duration(uint64_t us, char out[U64_TEXT_MAX + 4])
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
    const Log *log = r->api->options.log;
    uint64_t took_us = clock_monotonic_us(r->api->options.clock) - r->http->begun_us;
    response_header(response, SLICE("x-ms-request-duration-ms"),
                    print_duration(took_us, response->duration));
    LOG_DEBUG(log, "request", "activity=%.*s type=%.*s status=%d bytes=%zu took_us=%llu",
              SLICE_ARG(r->activity_id), SLICE_ARG(resource_segment(r->address.type)),
              response->status, response->body.len, (unsigned long long)took_us);
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

Slice charge_text(const ApiRequest *r, Charge charge)
{
    char *text = arena_alloc(r->arena, CHARGE_TEXT_MAX);
    return slice_make(text, charge_print(charge, text));
}

Slice charge_text_read(const ApiRequest *r)
{
    return charge_text(r, charge_metadata_read(r->api->options.charges));
}

Slice charge_text_query(const ApiRequest *r)
{
    return charge_text(r, charge_metadata_query(r->api->options.charges));
}

Slice charge_text_change(const ApiRequest *r)
{
    return charge_text(r, charge_metadata_write(r->api->options.charges));
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

void respond_resource(ApiRequest *r, int status, const ResourceInfo *info, Slice charge)
{
    Response response;
    response_begin(r, &response, status, charge);
    response_header(&response, SLICE("etag"), info->etag);
    if (status != 304) {
        response_header(&response, SLICE("content-type"), SLICE("application/json"));
        response.body = info->body;
    }
    response_send(r, &response);
}

/* The JS SDK reads 'message' of every failure without looking whether there is one, so there
 * always is a body, and it always has both members. */
void response_error(ApiRequest *r, Response *response, const Error *err, Slice charge)
{
    int http_status = status_http(err->status);
    if (err->status == STATUS_THROTTLED)
        usage_throttled(r);
    if (http_status >= 500 && err->status != STATUS_NOT_IMPLEMENTED)
        LOG_WARN(r->api->options.log, "request.failed", "activity=%.*s status=%d reason=%s",
                 SLICE_ARG(r->activity_id), http_status, err->message);
    AUTO(buf_done) Buf text;
    buf_init(&text, 8192 + ESCAPED_MAX * r->error_info.len);
    buf_format(&text, "{\"code\":\"%s\",\"message\":", status_code(err->status));
    Slice message = arena_format(r->arena, "%s\r\nActivityId: %.*s, orrery/%s", err->message,
                                 SLICE_ARG(r->activity_id), ORRERY_VERSION);
    /* A message quotes what the client sent, cut at a byte: it may not be UTF-8 any more. */
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
    int sub = sub_number(err->sub);
    if (sub != 0)
        response_header(response, SLICE("x-ms-substatus"), arena_format(r->arena, "%d", sub));
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
