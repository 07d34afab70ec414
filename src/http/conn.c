/* conn.c - see conn_int.h for the states.
 *
 * Three callbacks of the event loop enter here: readable, writable and timer. Each holds the
 * connection while it works, so that a close somewhere below only marks it (CONN_CLOSED) and its
 * memory goes when the callback is done.
 */
#include "http/conn_int.h"

#include "base/mem.h"

#include <sys/socket.h>

/* How much is thrown away at one go while lingering, so that other connections get their turn. */
#define DISCARD_READS_MAX 16

enum { FIRST_BYTE_OF_TLS = 0x16 };

static void on_readable(h2o_socket_t *sock, const char *error);
static void on_writable(h2o_socket_t *sock, const char *error);
static void on_timer(h2o_timeout_entry_t *timer);
static void choose_protocol(Conn *conn);
static void shake_hands(Conn *conn);
static void discard(Conn *conn);

void conn_arm(Conn *conn, h2o_timeout_t *timeout)
{
    if (conn->timeout != NULL)
        h2o_timeout_unlink(&conn->timer);
    conn->timeout = timeout;
    if (timeout != NULL)
        h2o_timeout_link(conn->loop->events, timeout, &conn->timer);
}

void conn_open(HttpLoop *loop, h2o_socket_t *sock)
{
    Conn *conn = MEM_NEW(Conn);
    conn->loop = loop;
    conn->transport = (Transport){.sock = sock, .fd = h2o_socket_get_fd(sock)};
    conn->timer.cb = on_timer;
    h2o_linklist_insert(&loop->conns, &conn->link);
    loop->conn_count++;
    metrics_add(loop->metrics, METRIC_CONNECTIONS_TOTAL, 1);
    metrics_add(loop->metrics, METRIC_CONNECTIONS_OPEN, 1);
    sock->data = conn;
    h2o_socket_dont_read(sock, 1);
    h2o_socket_read_start(sock, on_readable);
    conn_arm(conn, &loop->idle_timeout);
}

void conn_abandon(Conn *conn)
{
    if (conn->request != NULL && conn->state == CONN_HANDLING)
        atomic_store_explicit(&conn->request->http.is_abandoned, true, memory_order_relaxed);
}

void conn_close(Conn *conn)
{
    if (conn->state == CONN_CLOSED)
        return;
    conn_abandon(conn);
    if (conn->request != NULL && conn->state == CONN_HANDLING)
        conn->request->conn = NULL; /* the handler still has it, and will answer to nobody */
    else if (conn->request != NULL)
        request_release(conn->request);
    conn->request = NULL;
    conn->state = CONN_CLOSED;
    conn_arm(conn, NULL);
    transport_close(&conn->transport);
    conn_drop_input(conn);
    h2o_linklist_unlink(&conn->link);
    conn->loop->conn_count--;
    metrics_add(conn->loop->metrics, METRIC_CONNECTIONS_OPEN, -1);
    atomic_fetch_sub_explicit(&conn->loop->server->connections, 1, memory_order_relaxed);
    if (!conn->is_held)
        mem_free(conn);
}

static void hold(Conn *conn)
{
    ASSERT(!conn->is_held);
    conn->is_held = true;
}

static void let_go(Conn *conn)
{
    conn->is_held = false;
    if (conn->state == CONN_CLOSED)
        mem_free(conn);
}

void conn_drain(Conn *conn)
{
    if (conn->state == CONN_OPENING || conn->state == CONN_LINGERING ||
        (conn->state == CONN_HEAD && conn->input.len == 0))
        conn_close(conn);
}

/* The socket is ready. */

static void on_readable(h2o_socket_t *sock, const char *error)
{
    (void)error; /* h2o does not read for us, so it has nothing to complain about */
    Conn *conn = sock->data;
    loop_awake(conn->loop);
    hold(conn);
    if (conn->state == CONN_OPENING)
        choose_protocol(conn);
    else if (conn->state == CONN_HANDSHAKE)
        shake_hands(conn);
    else if (conn->state == CONN_LINGERING)
        discard(conn);
    else
        conn_receive(conn);
    let_go(conn);
}

static void choose_protocol(Conn *conn)
{
    uint8_t first = 0;
    switch (transport_peek(&conn->transport, &first)) {
    case TRANSPORT_BLOCKED:
        return;
    case TRANSPORT_ENDED:
    case TRANSPORT_BROKEN:
        conn_close(conn);
        return;
    case TRANSPORT_DONE:
        break;
    }
    if (first != FIRST_BYTE_OF_TLS) {
        conn->state = CONN_HEAD;
        conn_receive(conn);
    } else if (conn->loop->server->tls == NULL) {
        conn_close(conn);
    } else {
        conn->state = CONN_HANDSHAKE;
        conn_arm(conn, &conn->loop->request_timeout);
        shake_hands(conn);
    }
}

/* A handshake may have asked already, and have come to its end by reading. */
static void await_writable(Conn *conn)
{
    if (!h2o_socket_is_writing(conn->transport.sock))
        h2o_socket_notify_write(conn->transport.sock, on_writable);
}

static void shake_hands(Conn *conn)
{
    bool wants_write = false;
    switch (transport_handshake(&conn->transport, conn->loop->server->tls, &wants_write)) {
    case TRANSPORT_BLOCKED:
        if (wants_write)
            await_writable(conn);
        return;
    case TRANSPORT_ENDED:
    case TRANSPORT_BROKEN:
        conn_close(conn);
        return;
    case TRANSPORT_DONE:
        break;
    }
    metrics_add(conn->loop->metrics, METRIC_TLS_HANDSHAKES_TOTAL, 1);
    conn->state = CONN_HEAD;
    conn_arm(conn, &conn->loop->idle_timeout);
    conn_receive(conn); /* the first request often comes with the end of the handshake */
}

static void on_writable(h2o_socket_t *sock, const char *error)
{
    (void)error; /* the write itself will say it */
    Conn *conn = sock->data;
    hold(conn);
    if (conn->state == CONN_HANDSHAKE)
        shake_hands(conn);
    else if (conn->state == CONN_WRITING)
        conn_send(conn);
    let_go(conn);
}

static void discard(Conn *conn)
{
    for (int i = 0; i < DISCARD_READS_MAX; i++) {
        switch (transport_discard(&conn->transport, conn->loop->input, LOOP_INPUT_BYTES)) {
        case TRANSPORT_DONE:
            break;
        case TRANSPORT_BLOCKED:
            return;
        case TRANSPORT_ENDED:
        case TRANSPORT_BROKEN:
            conn_close(conn);
            return;
        }
    }
}

/* Writing. */

/* The answer is out. */
static void finish(Conn *conn)
{
    HttpLoop *loop = conn->loop;
    request_release(conn->request);
    conn->request = NULL;
    bool has_more = conn->is_paused || conn->input.len > 0;
    bool is_last = !conn->keeps_open || loop->is_draining || (conn->has_ended && !has_more);
    if (is_last && (conn->has_ended || !conn->lingers)) {
        conn_close(conn);
        return;
    }
    if (conn->is_paused) {
        conn->is_paused = false;
        h2o_socket_read_start(conn->transport.sock, on_readable);
    }
    if (conn->lingers) {
        transport_finish(&conn->transport);
        conn_drop_input(conn);
        conn->state = CONN_LINGERING;
        conn_arm(conn, &loop->linger_timeout);
        return;
    }
    conn->state = CONN_HEAD;
    /* While the handler is being called, the loop in process() goes on by itself. Otherwise the
     * next request must wait a moment: it must not reach the handler from within the handler's own
     * call of http_respond. */
    conn_arm(conn, has_more && !conn->is_dispatching ? &loop->soon_timeout : &loop->idle_timeout);
}

/* The rest must wait: a body that is only lent for this call is copied. */
static void keep_body(Request *request)
{
    Output *output = &request->output;
    if (request->body_release != NULL)
        return;
    Slice head = slice_from(output->head, output->sent);
    Slice body = output->sent <= output->head.len
                     ? output->body
                     : slice_from(output->body, output->sent - output->head.len);
    *output = (Output){.head = head, .body = arena_copy(&request->arena, body)};
}

void conn_send(Conn *conn)
{
    Request *request = conn->request;
    size_t sent = request->output.sent;
    switch (transport_write(&conn->transport, &request->output, conn->loop->record)) {
    case TRANSPORT_DONE:
        finish(conn);
        return;
    case TRANSPORT_BLOCKED:
        /* A client that takes some of it in time gets time for the rest. */
        if (conn->state != CONN_WRITING || request->output.sent > sent) {
            conn->queued = transport_queued(&conn->transport);
            conn_arm(conn, &conn->loop->request_timeout);
        }
        if (conn->state != CONN_WRITING)
            keep_body(request);
        conn->state = CONN_WRITING;
        await_writable(conn);
        return;
    case TRANSPORT_ENDED:
    case TRANSPORT_BROKEN:
        conn->request = NULL;
        request_release(request);
        conn_close(conn);
        return;
    }
}

/* Time is up. */

static Status late(const Conn *conn, Error *err)
{
    return error_set(err, STATUS_TIMEOUT, SUB_NONE, "The request did not arrive within %u ms.",
                     conn->loop->server->options.request_ms);
}

static void refuse_late(Conn *conn)
{
    Error err;
    if (late(conn, &err) != STATUS_OK)
        conn_refuse(conn, &err);
}

/* The system says that there is room only when a good part of its buffer is free, which may be
 * megabytes, so a slow client may have read without our hearing of it. One that has not is reset: a
 * plain close would leave the unsent bytes in the system's memory for minutes. */
static void cut_off_unless_reading(Conn *conn)
{
    size_t queued = transport_queued(&conn->transport);
    bool is_reading = queued < conn->queued;
    conn->queued = queued;
    if (is_reading) {
        conn_arm(conn, &conn->loop->request_timeout);
        return;
    }
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(conn->transport.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    conn_close(conn);
}

static void on_timer(h2o_timeout_entry_t *timer)
{
    Conn *conn = CONTAINER_OF(timer, Conn, timer);
    bool is_soon = conn->timeout == &conn->loop->soon_timeout;
    conn->timeout = NULL; /* h2o has unlinked it */
    hold(conn);
    switch (conn->state) {
    case CONN_HEAD:
        if (is_soon) {
            conn_arm(conn, &conn->loop->idle_timeout);
            conn_receive(conn);
        } else if (conn->input.len > 0) {
            refuse_late(conn);
        } else {
            conn_close(conn);
        }
        break;
    case CONN_BODY:
        refuse_late(conn);
        break;
    case CONN_WRITING:
        cut_off_unless_reading(conn);
        break;
    case CONN_OPENING:
    case CONN_HANDSHAKE:
    case CONN_LINGERING:
        conn_close(conn);
        break;
    case CONN_HANDLING:
    case CONN_CLOSED:
        ASSERT(!"no timer is set in these states");
    }
    let_go(conn);
}
