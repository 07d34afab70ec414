/* conn.c - see conn_int.h for the states.
 *
 * Three callbacks of the event loop enter here: readable, writable and timer. Each holds the
 * connection while it works, so that a close somewhere below only marks it (CONN_CLOSED) and its
 * memory goes when the callback is done.
 */
#include "http/conn_int.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

/* Reads in a row while lingering, so that other connections get their turn. */
#define DISCARD_READS_MAX 16

enum {
    FIRST_BYTE_OF_TLS = 0x16,
    /* Memory that a connection is charged for: with its socket, and with OpenSSL's state. */
    CONN_BYTES = 1024,
    TLS_BYTES = 32 << 10,
};

/* While memory is short, a client must read an answer much faster than usual to stay connected. The
 * first part of an answer always goes fast, into the buffer of the client's system, so the pace is
 * not judged earlier than PRESSED_MS_MIN. */
#define PRESSED_BYTES_PER_S ((uint64_t)1 << 20)
#define PRESSED_MS_MIN      500
#define PRESSED_LOOKS_MAX   32

static void on_readable(h2o_socket_t *sock, const char *error);
static void on_writable(h2o_socket_t *sock, const char *error);
static void on_timer(h2o_timeout_entry_t *timer);
static void choose_protocol(Conn *conn);
static void shake_hands(Conn *conn);
static void prove(Conn *conn);
static void discard(Conn *conn);
static void make_room(Conn *conn);
static bool is_slower(const Conn *conn, uint64_t bytes_per_s, uint64_t ms);

void conn_arm(Conn *conn, h2o_timeout_t *timeout)
{
    HttpLoop *loop = conn->loop;
    if (conn->timeout == &loop->proof_timeout)
        loop->proving_count--;
    if (conn->timeout != NULL)
        h2o_timeout_unlink(&conn->timer);
    conn->timeout = timeout;
    if (timeout == &loop->proof_timeout)
        loop->proving_count++;
    if (timeout != NULL)
        h2o_timeout_link(loop->events, timeout, &conn->timer);
}

void conn_arm_idle(Conn *conn)
{
    HttpLoop *loop = conn->loop;
    conn_arm(conn, conn->port == PORT_NODE ? &loop->node_timeout : &loop->idle_timeout);
}

/* Asked for at once: a client that has closed its connection since cannot be asked any more, and
 * must not be able to hide like that. An IPv4 address is shown as one on a socket for IPv6, too. */
static void name_peer(int fd, char text[PEER_TEXT_MAX])
{
    struct sockaddr_storage storage = {0};
    socklen_t len = sizeof(storage);
    char host[INET6_ADDRSTRLEN] = "?";
    (void)snprintf(text, PEER_TEXT_MAX, "unknown");
    if (getpeername(fd, (struct sockaddr *)&storage, &len) != 0)
        return;
    if (storage.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&storage;
        (void)inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
        (void)snprintf(text, PEER_TEXT_MAX, "%s:%u", host, ntohs(v4->sin_port));
    } else if (storage.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&storage;
        bool is_v4 = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
        const uint8_t *bytes = v6->sin6_addr.s6_addr;
        (void)inet_ntop(is_v4 ? AF_INET : AF_INET6, is_v4 ? bytes + 12 : bytes, host, sizeof(host));
        (void)snprintf(text, PEER_TEXT_MAX, is_v4 ? "%s:%u" : "[%s]:%u", host,
                       ntohs(v6->sin6_port));
    }
}

bool conn_open(HttpLoop *loop, PortKind port, h2o_socket_t *sock, HttpClient client)
{
    if (!loop_take(loop, CONN_BYTES, CONN_MEMORY_SMALL))
        return false;
    Conn *conn = MEM_NEW(Conn);
    conn->loop = loop;
    conn->client = client;
    conn->port = port;
    conn->charged = CONN_BYTES;
    conn->transport = (Transport){.sock = sock, .fd = h2o_socket_get_fd(sock)};
    name_peer(conn->transport.fd, conn->peer);
    conn->timer.cb = on_timer;
    h2o_linklist_insert(&loop->conns, &conn->link);
    loop->conn_count++;
    metrics_add(loop->metrics, METRIC_CONNECTIONS_TOTAL, 1);
    metrics_add(loop->metrics, METRIC_CONNECTIONS_OPEN, 1);
    sock->data = conn;
    h2o_socket_dont_read(sock, 1);
    h2o_socket_read_start(sock, on_readable);
    conn_arm(conn, port == PORT_NODE ? &loop->proof_timeout : &loop->first_timeout);
    return true;
}

void conn_enter(Conn *conn, ConnState state)
{
    enum { SENDING = 1U << CONN_WRITING | 1U << CONN_LINGERING };
    /* For each state, those that may follow it besides CLOSED: the drawing in conn_int.h. A refusal
     * is sent while the head or the body is still arriving. */
    static const unsigned NEXT[] = {
        [CONN_OPENING] = 1U << CONN_HANDSHAKE | 1U << CONN_HEAD,
        [CONN_HANDSHAKE] = 1U << CONN_HEAD | 1U << CONN_PROVING,
        [CONN_PROVING] = 1U << CONN_HEAD,
        [CONN_HEAD] = 1U << CONN_BODY | 1U << CONN_HANDLING | SENDING,
        [CONN_BODY] = 1U << CONN_HANDLING | SENDING,
        [CONN_HANDLING] = 1U << CONN_BODY | 1U << CONN_HEAD | SENDING,
        [CONN_WRITING] = 1U << CONN_HEAD | 1U << CONN_LINGERING,
        [CONN_LINGERING] = 0,
        [CONN_CLOSED] = 0,
    };
    ASSERT(conn->state != CONN_CLOSED);
    ASSERT(state == CONN_CLOSED || (NEXT[conn->state] & 1U << state) != 0);
    conn->state = state;
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
        conn->request->conn = NULL; /* the handler still has it, and its answer is dropped */
    else if (conn->request != NULL)
        request_release(conn->request);
    conn->request = NULL;
    conn_enter(conn, CONN_CLOSED);
    conn_arm(conn, NULL);
    transport_close(&conn->transport);
    mem_free(conn->proof);
    conn->proof = NULL;
    conn_drop_input(conn);
    loop_give(conn->loop, conn->charged);
    h2o_linklist_unlink(&conn->link);
    conn->loop->conn_count--;
    metrics_add(conn->loop->metrics, METRIC_CONNECTIONS_OPEN, -1);
    if (conn->port == PORT_PUBLIC)
        loop_forget_client(conn->loop, conn->client);
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
    ASSERT(conn->is_held);
    conn->is_held = false;
    if (conn->state == CONN_CLOSED)
        mem_free(conn);
}

/* Another node may be sending a request right now, which a close would meet: it could not know
 * whether the request was handled. So it is told to send no more, and closes the connection. */
static bool say_last(Conn *conn)
{
    Output output = {.head = SLICE("HTTP/1.1 199 Stopping\r\nconnection: close\r\n\r\n")};
    return transport_write(&conn->transport, &output, conn->loop->record) == TRANSPORT_DONE;
}

void conn_drain(Conn *conn)
{
    bool is_idle = conn->state == CONN_HEAD && conn->input.len == 0;
    if (is_idle && conn->port == PORT_NODE && say_last(conn))
        return;
    if (conn->state == CONN_OPENING && conn->port == PORT_PUBLIC)
        conn_arm(conn, &conn->loop->last_timeout); /* its first request may be on its way */
    else if (is_idle || conn->state == CONN_OPENING || conn->state == CONN_PROVING ||
             conn->state == CONN_LINGERING)
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
    else if (conn->state == CONN_PROVING)
        prove(conn);
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
    bool is_node = conn->port == PORT_NODE;
    if (first != FIRST_BYTE_OF_TLS && !is_node) {
        conn_enter(conn, CONN_HEAD);
        conn_receive(conn);
    } else if (first != FIRST_BYTE_OF_TLS || (!is_node && conn->loop->tls == NULL)) {
        conn_close(conn);
    } else if (!loop_take(conn->loop, TLS_BYTES, CONN_MEMORY_SMALL)) {
        metrics_add(conn->loop->metrics, METRIC_CONNECTIONS_REFUSED, 1);
        conn_close(conn);
    } else {
        conn->charged += TLS_BYTES;
        conn_enter(conn, CONN_HANDSHAKE);
        if (!is_node) /* the proof's time includes the handshake */
            conn_arm(conn, &conn->loop->request_timeout);
        shake_hands(conn);
    }
}

/* A handshake may have asked for this already and then ended by reading. */
static void await_writable(Conn *conn)
{
    if (!h2o_socket_is_writing(conn->transport.sock))
        h2o_socket_notify_write(conn->transport.sock, on_writable);
}

static void shake_hands(Conn *conn)
{
    bool wants_write = false;
    bool is_node = conn->port == PORT_NODE;
    SSL_CTX *tls = is_node ? conn->loop->server->node_tls->server : conn->loop->tls->context;
    switch (transport_handshake(&conn->transport, tls, TRANSPORT_SERVER, &wants_write)) {
    case TRANSPORT_BLOCKED:
        if (wants_write)
            await_writable(conn);
        return;
    case TRANSPORT_ENDED:
    case TRANSPORT_BROKEN:
        metrics_add(conn->loop->metrics, METRIC_TLS_HANDSHAKES_FAILED, 1);
        conn_close(conn);
        return;
    case TRANSPORT_DONE:
        break;
    }
    metrics_add(conn->loop->metrics, METRIC_TLS_HANDSHAKES_TOTAL, 1);
    if (is_node) {
        conn_enter(conn, CONN_PROVING);
        conn->proof = MEM_NEW(NodeProof);
        conn->proof->side = TRANSPORT_SERVER;
        prove(conn);
        return;
    }
    conn_enter(conn, CONN_HEAD);
    HttpLoop *loop = conn->loop;
    conn_arm(conn, loop->is_draining ? &loop->last_timeout : &loop->first_timeout);
    conn_receive(conn); /* the first request often comes with the end of the handshake */
}

static void prove(Conn *conn)
{
    HttpLoop *loop = conn->loop;
    switch (node_proof_step(conn->proof, loop->server->node_tls, &conn->transport, loop->record)) {
    case TRANSPORT_BLOCKED:
        return;
    case TRANSPORT_ENDED:
    case TRANSPORT_BROKEN:
        metrics_add(loop->metrics, METRIC_NODE_PROOFS_FAILED, 1);
        conn_close(conn);
        return;
    case TRANSPORT_DONE:
        break;
    }
    mem_free(conn->proof);
    conn->proof = NULL;
    conn_enter(conn, CONN_HEAD);
    conn_arm_idle(conn);
    if (loop->is_draining) /* it believes us already, and may be sending */
        conn_drain(conn);
    if (conn->state == CONN_HEAD)
        conn_receive(conn);
}

static void on_writable(h2o_socket_t *sock, const char *error)
{
    (void)error; /* the write itself will report it */
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
    bool may_close = loop->is_draining && conn->port == PORT_PUBLIC; /* nodes are told first */
    bool is_last = !conn->keeps_open || may_close || (conn->has_ended && !has_more);
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
        conn_enter(conn, CONN_LINGERING);
        conn_arm(conn, &loop->linger_timeout);
        return;
    }
    conn_enter(conn, CONN_HEAD);
    /* While the handler is being called, the loop in process() goes on by itself. Otherwise the
     * next request must wait a moment: it must not reach the handler from within the handler's own
     * call of http_respond. */
    if (has_more && !conn->is_dispatching)
        conn_arm(conn, &loop->soon_timeout);
    else
        conn_arm_idle(conn);
    if (loop->is_draining)
        conn_drain(conn);
}

/* The rest is sent later, so a body that is lent only for this call is copied. */
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

/* The socket did not take the whole answer: from now on it occupies memory. */
static void begin_waiting(Conn *conn)
{
    Request *request = conn->request;
    keep_body(request);
    uint64_t outside = request->body_release != NULL ? request->output.body.len : 0;
    uint64_t inside = arena_used(&request->arena);
    request_charge(request, (inside > LOOP_ARENA_BYTES ? inside : LOOP_ARENA_BYTES) + outside);
    conn_enter(conn, CONN_WRITING);
    conn_watch_pace(conn, &conn->loop->answer_timeout);
    await_writable(conn);
    make_room(conn);
}

void conn_send(Conn *conn)
{
    Request *request = conn->request;
    ASSERT(request != NULL);
    ASSERT(request->conn == conn);
    switch (transport_write(&conn->transport, &request->output, conn->loop->record)) {
    case TRANSPORT_DONE:
        finish(conn);
        return;
    case TRANSPORT_BLOCKED:
        if (conn->state == CONN_WRITING)
            await_writable(conn);
        else
            begin_waiting(conn);
        return;
    case TRANSPORT_ENDED:
    case TRANSPORT_BROKEN:
        conn->request = NULL;
        request_release(request);
        conn_close(conn);
        return;
    }
}

/* Memory is short. */

void conn_shed(Conn *conn)
{
    bool is_answering = conn->state == CONN_HANDLING || conn->state == CONN_WRITING;
    metrics_add(conn->loop->metrics, METRIC_REQUESTS_SHED, 1);
    conn_drop_input(conn);
    if (is_answering) {
        conn_close(conn);
        return;
    }
    Error err;
    uint64_t bytes_max = conn->loop->server->memory.bytes_max;
    if (error_set(&err, STATUS_UNAVAILABLE, SUB_NONE,
                  "The server has no memory left for this request: all connections together may "
                  "hold %llu MB, a share of --memory. Try again later.",
                  (unsigned long long)(bytes_max >> 20)) != STATUS_OK)
        conn_refuse(conn, &err);
}

/* A plain close would leave the unsent bytes in the system's memory for minutes. */
static void reset(Conn *conn)
{
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(conn->transport.fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    conn_close(conn);
}

/* Closes the connections that read their answers most slowly until the others have room, and this
 * one if there is no other. The loop's timeouts are in the order in which they were set, so the
 * connections that were checked longest ago come first. */
static void make_room(Conn *conn)
{
    HttpLoop *loop = conn->loop;
    uint64_t now_ms = h2o_now(loop->events);
    h2o_linklist_t *first = &loop->answer_timeout._entries;
    h2o_linklist_t *link = first->next;
    for (int i = 0; i < PRESSED_LOOKS_MAX && link != first; i++) {
        if (!conn_memory_is_over(&loop->memory, CONN_MEMORY_BULK))
            return;
        Conn *other = CONTAINER_OF(link, Conn, timer._link);
        link = link->next;
        uint64_t ms = now_ms - other->timer.registered_at;
        if (other == conn || ms < PRESSED_MS_MIN || !is_slower(other, PRESSED_BYTES_PER_S, ms))
            continue;
        metrics_add(loop->metrics, METRIC_ANSWERS_SHED, 1);
        reset(other);
    }
    if (!conn_memory_is_over(&loop->memory, CONN_MEMORY_BULK))
        return;
    metrics_add(loop->metrics, METRIC_ANSWERS_SHED, 1);
    reset(conn);
}

/* Time is up. */

/* How much has arrived, or was sent. The system reports room only when a large part of its buffer
 * is free, which may be megabytes, so a slow client may have read something without our noticing
 * it. Therefore the bytes that the client has confirmed are counted. */
static int64_t progress(const Conn *conn)
{
    const Request *request = conn->request;
    if (conn->state == CONN_WRITING)
        return (int64_t)request->output.sent - (int64_t)transport_queued(&conn->transport);
    return (int64_t)(request->head.is_chunked ? request->decoder.decoded : conn->input.len);
}

static bool is_slower(const Conn *conn, uint64_t bytes_per_s, uint64_t ms)
{
    return progress(conn) - conn->progress < (int64_t)(bytes_per_s * ms / 1000);
}

void conn_watch_pace(Conn *conn, h2o_timeout_t *timeout)
{
    conn->progress = progress(conn);
    conn_arm(conn, timeout);
}

static void refuse_late(Conn *conn)
{
    Error err;
    if (error_set(&err, STATUS_TIMEOUT, SUB_NONE, "The request did not arrive within %u ms.",
                  conn->loop->server->options.request_ms) != STATUS_OK)
        conn_refuse(conn, &err);
}

static void refuse_slow(Conn *conn)
{
    Error err;
    metrics_add(conn->loop->metrics, METRIC_CONNECTIONS_SLOW, 1);
    if (error_set(&err, STATUS_TIMEOUT, SUB_NONE,
                  "The body of the request arrived at less than %d bytes a second.",
                  PACE_BYTES_PER_S) != STATUS_OK)
        conn_refuse(conn, &err);
}

static void check_body(Conn *conn)
{
    const HttpOptions *options = &conn->loop->server->options;
    uint64_t took_us = clock_monotonic_us(options->clock) - conn->begun_us;
    if (took_us >= (uint64_t)options->request_ms * 1000)
        refuse_late(conn);
    else if (is_slower(conn, PACE_BYTES_PER_S, options->pace_ms))
        refuse_slow(conn);
    else
        conn_watch_pace(conn, &conn->loop->body_timeout);
}

static void check_answer(Conn *conn)
{
    if (!is_slower(conn, PACE_BYTES_PER_S, conn->loop->server->options.pace_ms)) {
        conn_watch_pace(conn, &conn->loop->answer_timeout);
        return;
    }
    metrics_add(conn->loop->metrics, METRIC_CONNECTIONS_SLOW, 1);
    reset(conn);
}

static void on_timer(h2o_timeout_entry_t *timer)
{
    Conn *conn = CONTAINER_OF(timer, Conn, timer);
    bool is_soon = conn->timeout == &conn->loop->soon_timeout;
    conn_arm(conn, NULL); /* h2o has unlinked it already */
    hold(conn);
    switch (conn->state) {
    case CONN_HEAD:
        if (is_soon) {
            conn_arm_idle(conn);
            conn_receive(conn);
        } else if (conn->input.len > 0) {
            refuse_late(conn);
        } else {
            conn_close(conn);
        }
        break;
    case CONN_BODY:
        check_body(conn);
        break;
    case CONN_WRITING:
        check_answer(conn);
        break;
    case CONN_OPENING:
    case CONN_HANDSHAKE:
    case CONN_PROVING:
    case CONN_LINGERING:
        conn_close(conn);
        break;
    case CONN_HANDLING:
    case CONN_CLOSED:
        ASSERT(!"no timer is set in these states");
    }
    let_go(conn);
}
