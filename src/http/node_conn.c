/* node_conn.c - one connection to another node; see node_link_int.h for its states.
 *
 * The callbacks hold the connection as those of conn.c do: a close only marks it, and its memory
 * goes when the callback is done. 'done' of a call is the last thing that a callback does, because
 * it may begin other calls, on this connection too.
 */
#include "base/mem.h"
#include "http/node_link_int.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    /* As for the connections of clients (conn.c). */
    CONN_BYTES = 1024,
    TLS_BYTES = 32 << 10,
    /* A larger answer is counted with what all connections hold. */
    SMALL_ANSWER_BYTES = 32 << 10,
};

static void on_readable(h2o_socket_t *sock, const char *error);
static void on_writable(h2o_socket_t *sock, const char *error);
static void on_timer(h2o_timeout_entry_t *timer);
static void advance(NodeConn *conn);
static void fail_opening(NodeConn *conn, const Error *why);
static void send_request(NodeConn *conn);
static NodeExchange *receive(NodeConn *conn);

static bool is_opening(const NodeConn *conn)
{
    return conn->state == NODE_CONN_CONNECTING || conn->state == NODE_CONN_HANDSHAKE ||
           conn->state == NODE_CONN_PROVING;
}

static void enter(NodeConn *conn, NodeConnState state)
{
    /* For each state, those that may follow it besides CLOSED: the drawing in node_link_int.h. */
    static const unsigned NEXT[] = {
        [NODE_CONN_CONNECTING] = 1U << NODE_CONN_HANDSHAKE,
        [NODE_CONN_HANDSHAKE] = 1U << NODE_CONN_PROVING,
        [NODE_CONN_PROVING] = 1U << NODE_CONN_IDLE,
        [NODE_CONN_IDLE] = 1U << NODE_CONN_SENDING,
        [NODE_CONN_SENDING] = 1U << NODE_CONN_RECEIVING,
        [NODE_CONN_RECEIVING] = 1U << NODE_CONN_IDLE,
        [NODE_CONN_CLOSED] = 0,
    };
    ASSERT(conn->state != NODE_CONN_CLOSED);
    ASSERT(state == NODE_CONN_CLOSED || (NEXT[conn->state] & 1U << state) != 0);
    if (is_opening(conn) && (state == NODE_CONN_IDLE || state == NODE_CONN_CLOSED))
        conn->peer->opening_count--;
    conn->state = state;
}

static void arm(NodeConn *conn, h2o_timeout_t *timeout)
{
    h2o_timeout_unlink(&conn->timer);
    if (timeout != NULL)
        h2o_timeout_link(conn->peer->links->loop->events, timeout, &conn->timer);
}

static void hold(NodeConn *conn)
{
    ASSERT(!conn->is_held);
    conn->is_held = true;
}

static void let_go(NodeConn *conn)
{
    ASSERT(conn->is_held);
    conn->is_held = false;
    if (conn->state == NODE_CONN_CLOSED)
        mem_free(conn);
}

Status node_conn_open(NodePeer *peer, Error *err)
{
    HttpLoop *loop = peer->links->loop;
    int fd = -1;
    if (!loop_take(loop, CONN_BYTES + TLS_BYTES, CONN_MEMORY_SMALL))
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "There is no memory left for a connection to another node.");
    Status status = node_address_connect(&peer->resolved, peer->next_address, &fd, err);
    if (status != STATUS_OK) {
        loop_give(loop, CONN_BYTES + TLS_BYTES);
        return status;
    }
    NodeConn *conn = MEM_NEW(NodeConn);
    h2o_socket_t *sock = h2o_evloop_socket_create(loop->events, fd, H2O_SOCKET_FLAG_DONT_READ);
    sock->data = conn;
    conn->peer = peer;
    conn->transport = (Transport){.sock = sock, .fd = fd};
    conn->proof.side = TRANSPORT_CLIENT;
    conn->timer.cb = on_timer;
    h2o_linklist_insert(&peer->others, &conn->link);
    peer->conn_count++;
    peer->opening_count++;
    arm(conn, &peer->links->connect_timeout);
    h2o_socket_notify_write(sock, on_writable);
    return STATUS_OK;
}

void node_conn_close(NodeConn *conn)
{
    if (conn->state == NODE_CONN_CLOSED)
        return;
    ASSERT(conn->exchange == NULL);
    NodePeer *peer = conn->peer;
    enter(conn, NODE_CONN_CLOSED);
    arm(conn, NULL);
    transport_close(&conn->transport);
    loop_give(peer->links->loop, CONN_BYTES + TLS_BYTES);
    h2o_linklist_unlink(&conn->link);
    peer->conn_count--;
    if (!conn->is_held)
        mem_free(conn);
}

/* A handshake may have asked for this already and then ended by reading. */
static void await_writable(NodeConn *conn)
{
    if (!h2o_socket_is_writing(conn->transport.sock))
        h2o_socket_notify_write(conn->transport.sock, on_writable);
}

static void on_readable(h2o_socket_t *sock, const char *error)
{
    (void)error; /* h2o does not read for us, so it has nothing to complain about */
    NodeConn *conn = sock->data;
    loop_awake(conn->peer->links->loop);
    hold(conn);
    NodeExchange *answered = NULL;
    if (is_opening(conn))
        advance(conn);
    else
        answered = receive(conn);
    NodeCall *call = answered != NULL ? answered->call : NULL;
    let_go(conn);
    if (call != NULL)
        call->done(call);
}

static void on_writable(h2o_socket_t *sock, const char *error)
{
    (void)error; /* the next step will report it */
    NodeConn *conn = sock->data;
    loop_awake(conn->peer->links->loop);
    hold(conn);
    if (is_opening(conn))
        advance(conn);
    else if (conn->state == NODE_CONN_SENDING)
        send_request(conn);
    let_go(conn);
}

static void on_timer(h2o_timeout_entry_t *timer)
{
    NodeConn *conn = CONTAINER_OF(timer, NodeConn, timer);
    if (!is_opening(conn)) {
        node_conn_close(conn); /* idle for long enough */
        return;
    }
    Error err;
    if (error_set(&err, STATUS_UNAVAILABLE, SUB_NONE,
                  "The node '%s' did not complete a connection within %d ms.", conn->peer->text,
                  NODE_CONNECT_MS) != STATUS_OK)
        fail_opening(conn, &err);
}

/* Opening. */

static void fail_opening(NodeConn *conn, const Error *why)
{
    NodePeer *peer = conn->peer;
    node_conn_close(conn);
    node_peer_failed(peer, why);
}

static bool connect_done(NodeConn *conn)
{
    Error err;
    if (node_address_connected(conn->transport.fd, &err) != STATUS_OK) {
        fail_opening(conn, &err);
        return false;
    }
    enter(conn, NODE_CONN_HANDSHAKE);
    h2o_socket_read_start(conn->transport.sock, on_readable);
    return true;
}

static void end_opening(NodeConn *conn, const char *what)
{
    Error err;
    if (error_set(&err, STATUS_UNAVAILABLE, SUB_NONE, "The node '%s' %s.", conn->peer->text,
                  what) != STATUS_OK)
        fail_opening(conn, &err);
}

static bool shake_hands(NodeConn *conn)
{
    bool wants_write = false;
    SSL_CTX *tls = conn->peer->links->loop->server->node_tls->client;
    switch (transport_handshake(&conn->transport, tls, TRANSPORT_CLIENT, &wants_write)) {
    case TRANSPORT_BLOCKED:
        if (wants_write)
            await_writable(conn);
        return false;
    case TRANSPORT_ENDED:
    case TRANSPORT_BROKEN:
        end_opening(conn, "did not complete the TLS handshake");
        return false;
    case TRANSPORT_DONE:
        break;
    }
    enter(conn, NODE_CONN_PROVING);
    return true;
}

static bool prove(NodeConn *conn)
{
    HttpLoop *loop = conn->peer->links->loop;
    switch (node_proof_step(&conn->proof, loop->server->node_tls, &conn->transport, loop->record)) {
    case TRANSPORT_BLOCKED:
        return false;
    case TRANSPORT_ENDED:
    case TRANSPORT_BROKEN:
        end_opening(conn, "did not prove that it knows the cluster's secret, or did not believe "
                          "that we do");
        return false;
    case TRANSPORT_DONE:
        break;
    }
    return true;
}

static void become_idle(NodeConn *conn)
{
    NodePeer *peer = conn->peer;
    enter(conn, NODE_CONN_IDLE);
    h2o_linklist_unlink(&conn->link);
    h2o_linklist_insert(peer->idle.next, &conn->link);
    arm(conn, &peer->links->keep_timeout);
}

/* Goes on with opening the connection as far as the socket lets it. */
static void advance(NodeConn *conn)
{
    if (conn->state == NODE_CONN_CONNECTING && !connect_done(conn))
        return;
    if (conn->state == NODE_CONN_HANDSHAKE && !shake_hands(conn))
        return;
    if (!prove(conn))
        return;
    conn->peer->failures = 0;
    become_idle(conn);
    node_peer_dispatch(conn->peer);
}

/* An exchange. */

/* Whether nothing has come since the last answer. What may come is the other side's end. */
static bool is_quiet(const NodeConn *conn)
{
    char byte;
    return recv(conn->transport.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool node_conn_begin(NodeConn *conn, NodeExchange *exchange)
{
    NodePeer *peer = conn->peer;
    ASSERT(conn->state == NODE_CONN_IDLE);
    if (!is_quiet(conn)) {
        node_conn_close(conn);
        return false;
    }
    arm(conn, NULL);
    h2o_linklist_unlink(&conn->link);
    h2o_linklist_insert(&peer->others, &conn->link);
    enter(conn, NODE_CONN_SENDING);
    conn->exchange = exchange;
    conn->requests++;
    conn->written = transport_written(&conn->transport);
    exchange->conn = conn;
    node_call_print(exchange->call, exchange->deadline_us,
                    clock_monotonic_us(peer->links->loop->server->options.clock),
                    &exchange->output);
    send_request(conn);
    return true;
}

static bool has_sent(const NodeConn *conn)
{
    return transport_written(&conn->transport) > conn->written;
}

bool node_conn_abandon(NodeConn *conn)
{
    bool sent = has_sent(conn);
    conn->transport.tls_is_broken = true; /* a goodbye must not push out what OpenSSL has kept */
    conn->exchange->conn = NULL;
    conn->exchange = NULL;
    node_conn_close(conn);
    return sent;
}

/* The connection is of no use any more, and its exchange has no answer. */
static void lose(NodeConn *conn, const Error *why)
{
    NodePeer *peer = conn->peer;
    NodeExchange *exchange = conn->exchange;
    if (node_conn_abandon(conn))
        node_exchange_fail(exchange, NODE_CALL_UNKNOWN, why);
    else
        node_exchange_return(exchange);
    node_peer_dispatch(peer); /* calls may have been waiting for this connection */
}

static void lose_because(NodeConn *conn, const char *what)
{
    Error err;
    if (error_set(&err, STATUS_UNAVAILABLE, SUB_NONE, "The node '%s' %s.", conn->peer->text,
                  what) != STATUS_OK)
        lose(conn, &err);
}

static void send_request(NodeConn *conn)
{
    HttpLoop *loop = conn->peer->links->loop;
    switch (transport_write(&conn->transport, &conn->exchange->output, loop->record)) {
    case TRANSPORT_DONE:
        enter(conn, NODE_CONN_RECEIVING);
        return;
    case TRANSPORT_BLOCKED:
        await_writable(conn);
        return;
    case TRANSPORT_ENDED:
    case TRANSPORT_BROKEN:
        lose_because(conn, "closed the connection while it was sent a request");
        return;
    }
}

/* A large answer counts with all that connections hold until it is handed over. */
static bool charge(HttpLoop *loop, NodeExchange *exchange)
{
    size_t capacity = exchange->reader.capacity;
    if (capacity <= SMALL_ANSWER_BYTES || capacity <= exchange->charged)
        return true;
    if (!loop_take(loop, capacity - exchange->charged, CONN_MEMORY_BULK))
        return false;
    exchange->charged = capacity;
    return true;
}

/* The answer is complete. */
static NodeExchange *finish(NodeConn *conn, bool is_reusable)
{
    NodePeer *peer = conn->peer;
    NodeExchange *exchange = conn->exchange;
    conn->exchange = NULL;
    node_exchange_answered(exchange);
    if (is_reusable)
        become_idle(conn);
    else
        node_conn_close(conn);
    node_peer_dispatch(peer);
    return exchange;
}

static bool is_worn(const NodeConn *conn)
{
    return conn->requests >= NODE_CONN_REQUESTS_MAX ||
           transport_written(&conn->transport) >= NODE_CONN_BYTES_MAX ||
           transport_received(&conn->transport) >= NODE_CONN_BYTES_MAX;
}

/* The exchange that is complete now, or NULL. */
static NodeExchange *read_answer(NodeConn *conn)
{
    Error err;
    bool has_more = false;
    HttpLoop *loop = conn->peer->links->loop;
    NodeExchange *exchange = conn->exchange;
    AnswerReader *reader = &exchange->reader;
    do {
        size_t len = 0;
        size_t used = 0;
        char *bytes = loop->input;
        size_t room = answer_room(reader, &bytes);
        room = room == 0 ? LOOP_INPUT_BYTES : room;
        TransportStep step = transport_read(&conn->transport, bytes, room, &len, &has_more);
        if (step == TRANSPORT_BLOCKED)
            return NULL;
        if (step != TRANSPORT_DONE) {
            lose_because(conn, "closed the connection before its answer was complete");
            return NULL;
        }
        Status status = answer_read(reader, bytes, len, &used, &err);
        if (status == STATUS_OK && !charge(loop, exchange))
            status = error_set(&err, STATUS_UNAVAILABLE, SUB_NONE,
                               "There is no memory left for the answer of another node.");
        if (status != STATUS_OK) {
            lose(conn, &err);
            return NULL;
        }
        if (reader->state == ANSWER_DONE)
            return finish(conn, conn->state == NODE_CONN_RECEIVING && used == len && !has_more &&
                                    !reader->ends_connection && !is_worn(conn));
    } while (has_more);
    return NULL;
}

static NodeExchange *receive(NodeConn *conn)
{
    if (conn->exchange != NULL)
        return read_answer(conn);
    /* Nothing is due on an idle connection, so this is its end, or something wrong. */
    ASSERT(conn->state == NODE_CONN_IDLE);
    size_t len = 0;
    bool has_more = false;
    if (transport_read(&conn->transport, conn->peer->links->loop->input, LOOP_INPUT_BYTES, &len,
                       &has_more) != TRANSPORT_BLOCKED)
        node_conn_close(conn);
    return NULL;
}
