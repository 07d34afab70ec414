/* receive.c - from bytes to requests, and those to the handler.
 *
 * A read goes into the loop's own buffer, and a request that came whole is parsed and handled
 * right there. Only what is left over (half a head, half a body, requests sent ahead) moves to
 * memory of the connection's own, and only until it is used up.
 */
#include "base/mem.h"
#include "http/conn_int.h"

/* A client that sends requests before it has the answers may be this far ahead. */
#define PIPELINE_BYTES_MAX LOOP_INPUT_BYTES

enum {
    OWN_INPUT_BYTES_MIN = 4096,
    /* A large body that is parsed, checked and written takes about this many times its length. */
    BODY_COPIES = 4,
};

/* A longer body is large, and the memory for it is bulk. */
#define SMALL_BODY_BYTES LOOP_INPUT_BYTES

static void process(Conn *conn);

static bool is_borrowed(const Conn *conn)
{
    return conn->input.bytes == conn->loop->input;
}

void conn_drop_input(Conn *conn)
{
    if (!is_borrowed(conn)) {
        loop_give(conn->loop, conn->input.capacity);
        mem_free(conn->input.bytes);
    }
    conn->input = (Input){0};
}

static size_t own_capacity(const Conn *conn)
{
    size_t capacity = conn->input.len * 2;
    if (conn->state == CONN_BODY && !conn->request->head.is_chunked &&
        capacity > conn->request->head.content_length)
        capacity = conn->request->head.content_length;
    if (capacity < conn->input.len + OWN_INPUT_BYTES_MIN)
        capacity = conn->input.len + OWN_INPUT_BYTES_MIN;
    return capacity;
}

/* Charges for the connection's own memory, of which 'before' bytes are charged already. */
static bool charge_input(Conn *conn, size_t capacity, size_t before)
{
    ConnMemoryUse use = capacity > SMALL_BODY_BYTES ? CONN_MEMORY_BULK : CONN_MEMORY_SMALL;
    return loop_take(conn->loop, capacity - before, use);
}

/* Moves what is left to the start of memory that the connection owns and that has room. False if
 * there is no memory: then nothing has changed. */
static bool input_own(Conn *conn)
{
    Input *input = &conn->input;
    size_t capacity = own_capacity(conn);
    if (is_borrowed(conn)) {
        if (!charge_input(conn, capacity, 0))
            return false;
        char *own = mem_realloc(NULL, capacity);
        memcpy(own, input->bytes + input->start, input->len);
        *input = (Input){.bytes = own, .len = input->len, .capacity = capacity};
        return true;
    }
    if (input->start > 0)
        memmove(input->bytes, input->bytes + input->start, input->len);
    input->start = 0;
    if (input->capacity - input->len >= OWN_INPUT_BYTES_MIN)
        return true;
    if (!charge_input(conn, capacity, input->capacity))
        return false;
    input->capacity = capacity;
    input->bytes = mem_realloc(input->bytes, capacity);
    return true;
}

/* Before reading. */
static bool input_open(Conn *conn)
{
    if (conn->input.capacity > 0)
        return input_own(conn);
    conn->input = (Input){.bytes = conn->loop->input, .capacity = LOOP_INPUT_BYTES};
    return true;
}

/* After processing. If nothing is left no memory is kept, so an idle connection is cheap (I7). The
 * loop's input must be free for the next connection in any case (I6). */
static bool input_settle(Conn *conn)
{
    if (conn->input.len == 0)
        conn_drop_input(conn);
    return conn->input.len == 0 || !is_borrowed(conn) || input_own(conn);
}

static TransportStep input_read(Conn *conn, bool *has_more)
{
    Input *input = &conn->input;
    size_t used = input->start + input->len;
    ASSERT(used < input->capacity);
    size_t len = 0;
    TransportStep step = transport_read(&conn->transport, input->bytes + used,
                                        input->capacity - used, &len, has_more);
    if (step == TRANSPORT_DONE)
        input->len += len;
    return step;
}

static bool is_ahead(const Conn *conn)
{
    return (conn->state == CONN_HANDLING || conn->state == CONN_WRITING) &&
           conn->input.len >= PIPELINE_BYTES_MAX;
}

/* Starts the timeout of a request that has begun and is not complete. Bytes that arrive do not
 * restart it, and a body must arrive at a certain pace. */
static void watch(Conn *conn)
{
    HttpLoop *loop = conn->loop;
    if (conn->timeout == &loop->soon_timeout)
        return;
    bool has_head = conn->state == CONN_HEAD && conn->input.len > 0;
    bool has_begun =
        conn->timeout == &loop->request_timeout || conn->timeout == &loop->body_timeout;
    if ((has_head || conn->state == CONN_BODY) && !has_begun)
        conn->begun_us = clock_monotonic_us(loop->server->options.clock);
    if (has_head && !has_begun)
        conn_arm(conn, &loop->request_timeout);
    if (conn->state == CONN_BODY && conn->timeout != &loop->body_timeout)
        conn_watch_pace(conn, &loop->body_timeout);
}

void conn_receive(Conn *conn)
{
    bool has_more = false;
    do {
        if (!input_open(conn)) {
            conn_shed(conn);
            return;
        }
        switch (input_read(conn, &has_more)) {
        case TRANSPORT_DONE:
        case TRANSPORT_BLOCKED:
            break;
        case TRANSPORT_ENDED:
            conn->has_ended = true;
            conn_abandon(conn);
            h2o_socket_read_stop(conn->transport.sock);
            break;
        case TRANSPORT_BROKEN:
            conn_close(conn);
            return;
        }
        process(conn);
        if (conn->state == CONN_CLOSED)
            return;
    } while (has_more && !is_ahead(conn) && conn->state != CONN_LINGERING);

    /* Half a request will not be completed any more. */
    if (conn->has_ended && (conn->state == CONN_HEAD || conn->state == CONN_BODY)) {
        conn_close(conn);
        return;
    }
    if (is_ahead(conn) && !conn->is_paused) {
        conn->is_paused = true;
        h2o_socket_read_stop(conn->transport.sock);
    }
    if (input_settle(conn))
        watch(conn);
    else
        conn_shed(conn);
}

/* Requests out of the input. */

typedef enum Next { NEXT_AGAIN, NEXT_WAIT } Next;

static void input_consume(Conn *conn, size_t len)
{
    ASSERT(len <= conn->input.len);
    conn->input.start += len;
    conn->input.len -= len;
}

static char *input_at(const Conn *conn)
{
    return conn->input.bytes + conn->input.start;
}

void conn_refuse(Conn *conn, const Error *why)
{
    if (conn->request == NULL) {
        conn->request = request_take(conn->loop);
        conn->request->conn = conn;
    }
    conn->keeps_open = false;
    conn->lingers = true;
    const Clock *clock = conn->loop->server->options.clock;
    uint64_t took_us = conn->begun_us == 0 ? 0 : clock_monotonic_us(clock) - conn->begun_us;
    request_refuse(conn->request, why, took_us);
    conn_send(conn);
}

static Next refuse(Conn *conn, const Error *why)
{
    conn_refuse(conn, why);
    return NEXT_WAIT;
}

static Next shed(Conn *conn)
{
    conn_shed(conn);
    return NEXT_WAIT;
}

static const HeadLimits *limits(const Conn *conn)
{
    return &conn->loop->server->limits[conn->port];
}

/* Makes the request one that the handler has, and that http_respond ends. */
static void hand_over(Conn *conn, const HttpHeader *headers, Slice body)
{
    HttpLoop *loop = conn->loop;
    Request *request = conn->request;
    const Head *head = &request->head;
    ASSERT(request->conn == conn);
    conn_enter(conn, CONN_HANDLING);
    request->http = (HttpRequest){
        .loop = loop,
        .method = head->method,
        .path = head->path,
        .authority =
            head->authority.len > 0 ? head->authority : slice_from_cstr(loop->server->authority),
        .peer = slice_from_cstr(conn->peer),
        .is_tls = conn->transport.ssl != NULL,
        .is_node = conn->port == PORT_NODE,
        .client = conn->client,
        .headers = headers,
        .header_count = head->header_count,
        .body = body,
        .arena = &request->arena,
        .user = request->http.user,
        .begun_us = clock_monotonic_us(loop->server->options.clock),
    };
    loop->request_count++;
    metrics_add(loop->metrics, METRIC_REQUESTS_OPEN, 1);
}

/* Takes it back from a handler that wants to see the body. */
static void take_back(Conn *conn)
{
    conn->loop->request_count--;
    metrics_add(conn->loop->metrics, METRIC_REQUESTS_OPEN, -1);
    conn_enter(conn, CONN_BODY);
}

/* The handler's copies of a body are in the arena, which may belong to another thread until the
 * answer comes. So an estimate is charged, and not their real size. */
static bool charge_copies(Conn *conn, size_t body_len)
{
    uint64_t bytes = BODY_COPIES * (uint64_t)body_len;
    if (bytes <= LOOP_ARENA_BYTES)
        return true;
    if (!loop_take(conn->loop, bytes,
                   body_len > SMALL_BODY_BYTES ? CONN_MEMORY_BULK : CONN_MEMORY_SMALL))
        return false;
    conn->request->charged += bytes;
    return true;
}

/* Calls the handler with a whole request, whose bytes are the first 'len' of the input. */
static Next dispatch(Conn *conn, const HttpHeader *headers, Slice body, size_t len)
{
    HttpLoop *loop = conn->loop;
    const HttpHandler *handler = &loop->server->options.handler;
    if (!charge_copies(conn, body.len))
        return shed(conn);
    conn->begun_us = 0;
    hand_over(conn, headers, body);
    metrics_add(loop->metrics, METRIC_REQUEST_BYTES, (int64_t)body.len);
    conn->is_dispatching = true;
    handler->handle(handler->ctx, &conn->request->http);
    conn->is_dispatching = false;
    if (conn->state == CONN_CLOSED)
        return NEXT_WAIT;
    input_consume(conn, len);
    if (conn->state == CONN_HANDLING)
        conn_arm(conn, NULL); /* the handler may take as long as it needs */
    return conn->state == CONN_HEAD ? NEXT_AGAIN : NEXT_WAIT;
}

/* Shows the head to the handler (I1). If the handler answers, that is a refusal, and the last
 * answer. */
static bool is_admitted(Conn *conn)
{
    const HttpHandler *handler = &conn->loop->server->options.handler;
    if (handler->admit == NULL)
        return true;
    hand_over(conn, conn->request->http.headers, SLICE_EMPTY);
    conn->keeps_open = false;
    conn->lingers = true;
    conn->is_dispatching = true;
    bool is_admitted = handler->admit(handler->ctx, &conn->request->http);
    conn->is_dispatching = false;
    if (!is_admitted)
        return false;
    take_back(conn);
    conn->keeps_open = conn->request->head.keeps_open;
    conn->lingers = false;
    return true;
}

/* Decodes what has come of a chunked body, in place, at the start of the input. */
static Status decode_chunks(Conn *conn, Error *err)
{
    Request *request = conn->request;
    ChunkDecoder *decoder = &request->decoder;
    size_t before = decoder->decoded;
    size_t len = conn->input.len - before;
    size_t rest = 0;
    TRY(chunk_decode(decoder, limits(conn)->body_bytes_max, input_at(conn) + before, &len, &rest,
                     err));
    conn->input.len = decoder->decoded + rest;
    return STATUS_OK;
}

static Next take_chunked(Conn *conn)
{
    Error err;
    Request *request = conn->request;
    if (decode_chunks(conn, &err) != STATUS_OK)
        return refuse(conn, &err);
    if (request->decoder.state != CHUNK_DONE)
        return NEXT_WAIT;
    size_t len = request->decoder.decoded;
    return dispatch(conn, request->http.headers, slice_make(input_at(conn), len), len);
}

static Next take_body(Conn *conn)
{
    Request *request = conn->request;
    if (request->head.is_chunked)
        return take_chunked(conn);
    if (conn->input.len < request->head.content_length)
        return NEXT_WAIT;
    return dispatch(conn, request->http.headers,
                    slice_make(input_at(conn), request->head.content_length),
                    request->head.content_length);
}

/* The body is still to come, and the input may move meanwhile, so the head is copied. */
static Next begin_body(Conn *conn)
{
    Request *request = conn->request;
    Head *head = &request->head;
    size_t headers_size = head->header_count * sizeof(HttpHeader);
    Slice copy = arena_copy(&request->arena, slice_make(input_at(conn), head->len));
    HttpHeader *headers = arena_alloc(&request->arena, headers_size);
    memcpy(headers, conn->loop->headers, headers_size);
    head_move(head, headers, input_at(conn), copy.ptr);
    request->http.headers = headers;
    request->decoder = (ChunkDecoder){0};
    input_consume(conn, head->len);
    conn_enter(conn, CONN_BODY);
    if (!is_admitted(conn))
        return NEXT_WAIT;

    if (head->expects_continue && conn->input.len == 0) {
        Output go_on = {.head = SLICE("HTTP/1.1 100 Continue\r\n\r\n")};
        /* Nothing else is being sent, so a socket without room for this has a dead peer. */
        if (transport_write(&conn->transport, &go_on, conn->loop->record) != TRANSPORT_DONE) {
            conn_close(conn);
            return NEXT_WAIT;
        }
    }
    return NEXT_AGAIN;
}

/* The protocol has no status for this. SDKs neither retry 403 nor follow it elsewhere, and show its
 * message. A redirect would hide that the signature has gone over the wire in the clear. */
static Next refuse_plain(Conn *conn)
{
    Error err;
    metrics_add(conn->loop->metrics, METRIC_REQUESTS_PLAIN_REFUSED, 1);
    if (error_set(&err, STATUS_FORBIDDEN, SUB_NONE,
                  "This server answers over TLS only. Use https:// instead of http://.") !=
        STATUS_OK)
        conn_refuse(conn, &err);
    return NEXT_WAIT;
}

static Next take_head(Conn *conn)
{
    Error err;
    Head head;
    bool is_complete = false;
    HttpLoop *loop = conn->loop;
    if (head_parse(input_at(conn), conn->input.len, conn->head_seen, limits(conn), loop->headers,
                   &head, &is_complete, &err) != STATUS_OK)
        return refuse(conn, &err);
    conn->head_seen = is_complete ? 0 : conn->input.len;
    if (!is_complete)
        return NEXT_WAIT;
    if (loop->server->options.requires_tls && conn->transport.ssl == NULL)
        return refuse_plain(conn);
    if (conn_memory_is_over(&loop->memory, CONN_MEMORY_SMALL))
        return shed(conn);

    conn->request = request_take(loop);
    conn->request->conn = conn;
    conn->request->head = head;
    conn->keeps_open = head.keeps_open;
    if (head.is_chunked || conn->input.len - head.len < head.content_length)
        return begin_body(conn);
    Slice body = {0};
    if (head.content_length > 0)
        body = slice_make(input_at(conn) + head.len, head.content_length);
    return dispatch(conn, loop->headers, body, head.len + head.content_length);
}

static void process(Conn *conn)
{
    Next next = NEXT_AGAIN;
    while (next == NEXT_AGAIN && conn->input.len > 0) {
        if (conn->state == CONN_HEAD)
            next = take_head(conn);
        else if (conn->state == CONN_BODY)
            next = take_body(conn);
        else
            next = NEXT_WAIT;
    }
}
