/* respond.c - from a HttpResponse to bytes, and the requests that carry them.
 *
 * The head is printed into the request's own arena, which is kept until the answer is sent; the
 * body is sent from where it is. So an answer that the socket takes at once copies its headers once
 * and its body never.
 */
#include "base/mem.h"
#include "http/conn_int.h"
#include "http/wire_int.h"

/* Compressing costs 10 to 20 us per KB, more than the rest of a small request, and the Node SDK
 * always accepts it. So only answers that are large for a network are compressed. */
#define GZIP_BYTES_MIN ((size_t)8 << 10)

/* A loop compresses about 60 MB/s; beyond this, other connections would wait for too long. */
#define GZIP_BYTES_MAX ((size_t)256 << 10)

/* Everything in a head but the handler's headers: status line, date, server, content-length,
 * connection, content-encoding, vary, empty line. */
#define FIXED_HEAD_BYTES ((size_t)320)

Request *request_take(HttpLoop *loop)
{
    Request *request = loop->free_requests;
    if (request == NULL) {
        request = MEM_NEW(Request);
        arena_init(&request->arena, LOOP_ARENA_BYTES);
        request->http.loop = loop;
    } else {
        loop->free_requests = request->next_free;
        loop->free_request_count--;
        request->next_free = NULL;
    }
    request_charge(request, LOOP_ARENA_BYTES);
    return request;
}

void request_charge(Request *request, uint64_t bytes)
{
    if (bytes > request->charged)
        loop_force(request->http.loop, bytes - request->charged);
    else
        loop_give(request->http.loop, request->charged - bytes);
    request->charged = bytes;
}

bool http_request_reserve(HttpRequest *http, uint64_t bytes)
{
    Request *request = CONTAINER_OF(http, Request, http);
    if (!loop_take(http->loop, bytes, CONN_MEMORY_BULK))
        return false;
    request->charged += bytes;
    return true;
}

void request_release(Request *request)
{
    HttpLoop *loop = request->http.loop;
    ASSERT(loop->free_request_count <= LOOP_FREE_REQUESTS_MAX);
    if (request->body_release != NULL)
        request->body_release(request->body_release_ctx);
    request->body_release = NULL;
    request_charge(request, 0);
    request->output = (Output){0};
    request->conn = NULL;
    request->http.user = NULL;
    request->head.is_head = false; /* a refusal may be sent before there is a head */
    if (loop->free_request_count == LOOP_FREE_REQUESTS_MAX) {
        arena_done(&request->arena);
        mem_free(request);
        return;
    }
    arena_reset(&request->arena);
    request->next_free = loop->free_requests;
    loop->free_requests = request;
    loop->free_request_count++;
}

void request_free_all(HttpLoop *loop)
{
    while (loop->free_requests != NULL) {
        Request *request = loop->free_requests;
        loop->free_requests = request->next_free;
        arena_done(&request->arena);
        mem_free(request);
    }
    loop->free_request_count = 0;
}

Slice http_header(const HttpRequest *request, Slice name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (slice_equal(request->headers[i].name, name))
            return request->headers[i].value;
    return SLICE_EMPTY;
}

static Slice status_line(int status)
{
    switch (status) {
#define LINE(number, reason) \
    case number:             \
        return SLICE("HTTP/1.1 " #number " " reason "\r\n");
        LINE(200, "OK")
        LINE(201, "Created")
        LINE(202, "Accepted")
        LINE(204, "No Content")
        LINE(206, "Partial Content")
        LINE(207, "Multi-Status")
        LINE(301, "Moved Permanently")
        LINE(302, "Found")
        LINE(304, "Not Modified")
        LINE(307, "Temporary Redirect")
        LINE(308, "Permanent Redirect")
        LINE(400, "Bad Request")
        LINE(401, "Unauthorized")
        LINE(403, "Forbidden")
        LINE(404, "Not Found")
        LINE(405, "Method Not Allowed")
        LINE(406, "Not Acceptable")
        LINE(408, "Request Timeout")
        LINE(409, "Conflict")
        LINE(410, "Gone")
        LINE(412, "Precondition Failed")
        LINE(413, "Request Entity Too Large")
        LINE(415, "Unsupported Media Type")
        LINE(424, "Failed Dependency")
        LINE(429, "Too Many Requests")
        LINE(449, "Retry With")
        LINE(500, "Internal Server Error")
        LINE(501, "Not Implemented")
        LINE(503, "Service Unavailable")
#undef LINE
    }
    return SLICE_EMPTY;
}

static char *put_status(char *at, int status)
{
    Slice line = status_line(status);
    if (line.len > 0)
        return wire_put(at, line);
    ASSERT(status >= 100 && status <= 999);
    at = wire_put_number(wire_put(at, SLICE("HTTP/1.1 ")), (uint64_t)status);
    return wire_put(at, SLICE(" Unknown\r\n")); /* some clients want a reason */
}

static Slice print_head(Request *request, const HttpResponse *response, Slice body, bool is_gzip,
                        bool keeps_open)
{
    size_t size = FIXED_HEAD_BYTES + wire_headers_size(response->headers, response->header_count);
    char *head = arena_alloc(&request->arena, size);

    char *at = put_status(head, response->status);
    at = wire_put(at, SLICE("server: orrery\r\ndate: "));
    at = wire_put(at, slice_make(http_loop_date(request->http.loop), DATE_LEN));
    at = wire_put(at, SLICE("\r\n"));
    if (response->status != 204 && response->status != 304) {
        at = wire_put_number(wire_put(at, SLICE("content-length: ")), body.len);
        at = wire_put(at, SLICE("\r\n"));
    }
    if (!keeps_open)
        at = wire_put(at, SLICE("connection: close\r\n"));
    else if (request->head.is_http10)
        at = wire_put(at, SLICE("connection: keep-alive\r\n"));
    if (is_gzip)
        at = wire_put(at, SLICE("content-encoding: gzip\r\nvary: accept-encoding\r\n"));
    at = wire_put(wire_put_headers(at, response->headers, response->header_count), SLICE("\r\n"));
    ASSERT((size_t)(at - head) <= size);
    return slice_make(head, (size_t)(at - head));
}

static bool is_encoded(const HttpResponse *response)
{
    for (size_t i = 0; i < response->header_count; i++)
        if (slice_equal(response->headers[i].name, SLICE("content-encoding")))
            return true;
    return false;
}

static bool may_compress(const Request *request, const HttpResponse *response)
{
    return request->head.accepts_gzip && !request->head.is_head &&
           response->body.len >= GZIP_BYTES_MIN && response->body.len <= GZIP_BYTES_MAX &&
           !is_encoded(response);
}

/* Prints the answer into request->output. */
static void print(Request *request, const HttpResponse *response, bool keeps_open)
{
    bool has_body = response->status != 204 && response->status != 304;
    Slice body = has_body ? response->body : SLICE_EMPTY;
    bool is_gzip = has_body && may_compress(request, response) &&
                   gzip_compress(&request->http.loop->gzip, body, &request->arena, &body);
    Slice head = print_head(request, response, body, is_gzip, keeps_open);
    request->output = (Output){.head = head, .body = request->head.is_head ? SLICE_EMPTY : body};
}

static void count(HttpLoop *loop, const HttpResponse *response)
{
    Metric class = response->status < 300   ? METRIC_REQUESTS_2XX
                   : response->status < 400 ? METRIC_REQUESTS_3XX
                   : response->status < 500 ? METRIC_REQUESTS_4XX
                                            : METRIC_REQUESTS_5XX;
    metrics_add(loop->metrics, class, 1);
    metrics_add(loop->metrics, METRIC_RESPONSE_BYTES, (int64_t)response->body.len);
}

void http_respond(HttpRequest *http, const HttpResponse *response)
{
    Request *request = CONTAINER_OF(http, Request, http);
    HttpLoop *loop = http->loop;
    ASSERT(loop->request_count > 0);
    ASSERT(request->conn == NULL || request->conn->state == CONN_HANDLING);
    uint64_t now_us = clock_monotonic_us(loop->server->options.clock);
    loop->request_count--;
    metrics_add(loop->metrics, METRIC_REQUESTS_OPEN, -1);
    metrics_add(loop->metrics, METRIC_REQUEST_MICROSECONDS, (int64_t)(now_us - http->begun_us));
    count(loop, response);

    request->body_release = response->body_release;
    request->body_release_ctx = response->body_release_ctx;
    Conn *conn = request->conn;
    if (conn == NULL) {
        request_release(request);
        return;
    }
    bool is_last = loop->is_draining || (loop->is_retiring && conn->port == PORT_PUBLIC);
    conn->keeps_open = conn->keeps_open && !is_last;
    print(request, response, conn->keeps_open);
    conn_send(conn);
}

/* Our messages need no escaping today; other text in one must not break the JSON. */
static Slice print_error(Arena *arena, const Error *why)
{
    char message[sizeof(why->message)];
    size_t len = 0;
    for (; why->message[len] != '\0'; len++) {
        char c = why->message[len];
        message[len] = (unsigned char)c < 0x20 || c == '\\' ? ' ' : c == '"' ? '\'' : c;
    }
    message[len] = '\0';
    return arena_format(arena, "{\"code\":\"%s\",\"message\":\"%s\"}", status_code(why->status),
                        message);
}

void request_refuse(Request *request, const Error *why, uint64_t took_us)
{
    HttpLoop *loop = request->http.loop;
    const HttpHandler *handler = &loop->server->options.handler;
    HttpRefusal refusal = {.loop = loop, .arena = &request->arena, .took_us = took_us};
    HttpHeader headers[1 + HTTP_REFUSAL_HEADERS_MAX] = {
        {SLICE("content-type"), SLICE("application/json")}};
    size_t count_of_handler = handler->refusal_headers == NULL
                                  ? 0
                                  : handler->refusal_headers(handler->ctx, &refusal, headers + 1);
    ASSERT(count_of_handler <= HTTP_REFUSAL_HEADERS_MAX);
    HttpResponse response = {
        .status = status_http(why->status),
        .headers = headers,
        .header_count = 1 + count_of_handler,
        .body = print_error(&request->arena, why),
    };
    request->head.accepts_gzip = false;
    count(loop, &response);
    print(request, &response, false);
}
