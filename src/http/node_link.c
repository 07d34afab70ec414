/* node_link.c - the calls of a loop to other nodes: who waits, who has a connection, who has
 * failed.
 *
 *     node_link_send ──> WAITING ──> on a connection ──> answered: 'done' is called
 *                           │  ^──────────┘ │ nothing of it had left
 *                           └───> FAILED <──┘ 'done' is called a moment later
 *
 * A failure is always delivered later, from a timer: the caller of node_link_send need not expect
 * 'done' before it returns, and no failure begins the next call within itself.
 */
#include "base/mem.h"
#include "http/node_link_int.h"

#include <stdio.h>

static const uint32_t CLASS_MS[NODE_TIMER_CLASSES] = {4, 16, 64, 256, 1024, 4096, 16384};

static void on_call_timer(h2o_timeout_entry_t *timer);
static void on_failed(h2o_timeout_entry_t *timer);
static Status find_peer(NodeLinks *links, Slice address, NodePeer **out, Error *err);

NodeLinks *node_links_open(HttpLoop *loop)
{
    NodeLinks *links = MEM_NEW(NodeLinks);
    links->loop = loop;
    links->can_send = http_loop_can_send(loop);
    links->failed_timer.cb = on_failed;
    h2o_linklist_init_anchor(&links->failed);
    if (!links->can_send)
        return links;
    for (size_t i = 0; i < NODE_TIMER_CLASSES; i++)
        h2o_timeout_init(loop->events, &links->classes[i], CLASS_MS[i]);
    h2o_timeout_init(loop->events, &links->connect_timeout, NODE_CONNECT_MS);
    h2o_timeout_init(loop->events, &links->keep_timeout, NODE_KEEP_MS);
    return links;
}

bool http_loop_can_send(const HttpLoop *loop)
{
    return loop->server->node_tls != NULL;
}

static uint64_t now_us(const NodeLinks *links)
{
    return clock_monotonic_us(links->loop->server->options.clock);
}

/* The ends of calls. */

static void deliver_failed(NodeLinks *links)
{
    while (!h2o_linklist_is_empty(&links->failed)) {
        NodeExchange *exchange = CONTAINER_OF(links->failed.next, NodeExchange, link);
        h2o_linklist_unlink(&exchange->link);
        exchange->call->done(exchange->call);
    }
}

static void on_failed(h2o_timeout_entry_t *timer)
{
    NodeLinks *links = CONTAINER_OF(timer, NodeLinks, failed_timer);
    loop_awake(links->loop);
    /* Those that fail again meanwhile come next time. */
    h2o_linklist_t due;
    h2o_linklist_init_anchor(&due);
    h2o_linklist_insert_list(&due, &links->failed);
    while (!h2o_linklist_is_empty(&due)) {
        NodeExchange *exchange = CONTAINER_OF(due.next, NodeExchange, link);
        h2o_linklist_unlink(&exchange->link);
        exchange->call->done(exchange->call);
    }
}

static void forget(NodeExchange *exchange)
{
    ASSERT(exchange->conn == NULL);
    h2o_timeout_unlink(&exchange->timer);
    loop_give(exchange->links->loop, exchange->charged);
    exchange->charged = 0;
    if (h2o_linklist_is_linked(&exchange->link)) {
        h2o_linklist_unlink(&exchange->link);
        exchange->peer->waiting_count--;
    }
    exchange->peer = NULL;
}

void node_exchange_fail(NodeExchange *exchange, NodeCallOutcome outcome, const Error *why)
{
    NodeLinks *links = exchange->links;
    forget(exchange);
    exchange->call->outcome = outcome;
    exchange->call->error = *why;
    h2o_linklist_insert(&links->failed, &exchange->link);
    if (!h2o_timeout_is_linked(&links->failed_timer))
        h2o_timeout_link(links->loop->events, &links->loop->soon_timeout, &links->failed_timer);
}

void node_exchange_answered(NodeExchange *exchange)
{
    NodeCall *call = exchange->call;
    const AnswerReader *reader = &exchange->reader;
    exchange->conn = NULL;
    forget(exchange);
    call->outcome = NODE_CALL_ANSWERED;
    call->status = reader->status;
    call->answer_headers = reader->headers;
    call->answer_header_count = reader->header_count;
    call->answer_body = reader->body;
}

static void reset_reader(NodeExchange *exchange)
{
    NodeCall *call = exchange->call;
    exchange->reader = (AnswerReader){.arena = call->arena,
                                      .bytes_max = call->answer_bytes_max,
                                      .is_to_head = slice_equal(call->method, SLICE("HEAD"))};
}

void node_exchange_return(NodeExchange *exchange)
{
    NodePeer *peer = exchange->peer;
    reset_reader(exchange);
    h2o_linklist_insert(peer->waiting.next, &exchange->link);
    peer->waiting_count++;
}

/* Sending. */

static void arm(NodeExchange *exchange)
{
    NodeLinks *links = exchange->links;
    uint64_t now = now_us(links);
    uint64_t left_ms = exchange->deadline_us > now ? (exchange->deadline_us - now) / 1000 : 0;
    size_t class = 0;
    while (class + 1 < NODE_TIMER_CLASSES && CLASS_MS[class + 1] <= left_ms)
        class ++;
    h2o_timeout_link(links->loop->events, &links->classes[class], &exchange->timer);
}

static void fail_late(NodeExchange *exchange)
{
    Error err;
    NodePeer *peer = exchange->peer;
    bool is_sent = exchange->conn != NULL && node_conn_abandon(exchange->conn);
    if (error_set(&err, STATUS_TIMEOUT, SUB_NONE, "The node '%s' did not answer within %u ms.",
                  peer->text, exchange->call->timeout_ms) != STATUS_OK)
        node_exchange_fail(exchange, is_sent ? NODE_CALL_UNKNOWN : NODE_CALL_NOT_SENT, &err);
    node_peer_dispatch(peer);
}

static void on_call_timer(h2o_timeout_entry_t *timer)
{
    NodeExchange *exchange = CONTAINER_OF(timer, NodeExchange, timer);
    loop_awake(exchange->links->loop);
    if (now_us(exchange->links) < exchange->deadline_us)
        arm(exchange);
    else
        fail_late(exchange);
}

/* Finds a place for the call among those that wait for its node. */
static Status enqueue(NodeExchange *exchange, Error *err)
{
    NodeLinks *links = exchange->links;
    NodeCall *call = exchange->call;
    if (!links->can_send)
        return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                         "This server is no node of a cluster: it has no secret.");
    if (links->is_stopped)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "The server is being stopped.");
    TRY(node_call_check(call, err));
    NodePeer *peer = NULL;
    TRY(find_peer(links, call->address, &peer, err));
    if (peer->waiting_count >= NODE_WAITING_MAX)
        return error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                         "%d requests are waiting for the node '%s' already.", NODE_WAITING_MAX,
                         peer->text);
    exchange->peer = peer;
    exchange->deadline_us = now_us(links) + (uint64_t)call->timeout_ms * 1000;
    reset_reader(exchange);
    h2o_linklist_insert(&peer->waiting, &exchange->link);
    peer->waiting_count++;
    arm(exchange);
    return STATUS_OK;
}

void node_link_send(HttpLoop *loop, NodeCall *call)
{
    Error err;
    NodeExchange *exchange = ARENA_NEW(call->arena, NodeExchange);
    exchange->call = call;
    exchange->links = loop->links;
    exchange->timer.cb = on_call_timer;
    if (enqueue(exchange, &err) == STATUS_OK)
        node_peer_dispatch(exchange->peer);
    else
        node_exchange_fail(exchange, NODE_CALL_NOT_SENT, &err);
}

/* Peers. */

static bool is_unused(const NodePeer *peer)
{
    return peer->conn_count == 0 && peer->waiting_count == 0 && peer->resolver == NULL;
}

static NodePeer *make_peer(NodeLinks *links, Slice address, const NodeAddresses *resolved)
{
    NodePeer *peer = MEM_NEW(NodePeer);
    peer->links = links;
    ASSERT(address.len < sizeof(peer->text));
    memcpy(peer->text, address.ptr, address.len);
    peer->address = slice_make(peer->text, address.len);
    peer->resolved = *resolved;
    h2o_linklist_init_anchor(&peer->idle);
    h2o_linklist_init_anchor(&peer->others);
    h2o_linklist_init_anchor(&peer->waiting);
    return peer;
}

/* A place for one peer more: a new one, or that of a peer that is not used now. */
static NodePeer **find_place(NodeLinks *links)
{
    if (links->peer_count < NODE_PEERS_MAX)
        return &links->peers[links->peer_count++];
    for (size_t i = 0; i < links->peer_count; i++) {
        if (!is_unused(links->peers[i]))
            continue;
        mem_free(links->peers[i]);
        return &links->peers[i];
    }
    return NULL;
}

static Status find_peer(NodeLinks *links, Slice address, NodePeer **out, Error *err)
{
    for (size_t i = 0; i < links->peer_count; i++) {
        if (slice_equal(links->peers[i]->address, address)) {
            *out = links->peers[i];
            return STATUS_OK;
        }
    }
    NodeAddresses resolved = {0};
    bool is_name = false;
    Status status = node_address_resolve(address, NODE_ADDRESS_NUMERIC, &resolved, &is_name, err);
    if (status != STATUS_OK && !is_name)
        return status;
    NodePeer **place = find_place(links);
    if (place == NULL)
        return error_set(err, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                         "Requests to %d nodes are under way already.", NODE_PEERS_MAX);
    *place = make_peer(links, address, &resolved);
    (*place)->is_name = is_name;
    *out = *place;
    return STATUS_OK;
}

static void use_idle(NodePeer *peer)
{
    while (!h2o_linklist_is_empty(&peer->waiting) && !h2o_linklist_is_empty(&peer->idle)) {
        NodeConn *conn = CONTAINER_OF(peer->idle.next, NodeConn, link);
        NodeExchange *exchange = CONTAINER_OF(peer->waiting.next, NodeExchange, link);
        h2o_linklist_unlink(&exchange->link);
        peer->waiting_count--;
        if (!node_conn_begin(conn, exchange))
            node_exchange_return(exchange);
    }
}

void node_peer_dispatch(NodePeer *peer)
{
    Error err;
    /* A connection that breaks while a call is given to it comes back here. */
    if (peer->is_dispatching || peer->links->is_stopped)
        return;
    peer->is_dispatching = true;
    use_idle(peer);
    Status status = STATUS_OK;
    if (peer->resolved.count == 0 && peer->waiting_count > 0 && peer->resolver == NULL)
        status = node_resolver_begin(peer, &err);
    while (status == STATUS_OK && peer->resolved.count > 0 &&
           peer->opening_count < peer->waiting_count && peer->opening_count < NODE_OPENING_MAX &&
           peer->conn_count < NODE_CONNECTIONS_MAX)
        status = node_conn_open(peer, &err);
    peer->is_dispatching = false;
    if (status != STATUS_OK)
        node_peer_failed(peer, &err);
}

static void fail_waiting(NodePeer *peer, const Error *why)
{
    while (!h2o_linklist_is_empty(&peer->waiting))
        node_exchange_fail(CONTAINER_OF(peer->waiting.next, NodeExchange, link), NODE_CALL_NOT_SENT,
                           why);
}

/* A name may have other addresses by the time of the next call. */
static void give_up(NodePeer *peer, const Error *why)
{
    fail_waiting(peer, why);
    peer->failures = 0;
    peer->next_address = 0;
    if (peer->is_name)
        peer->resolved = (NodeAddresses){0};
}

void node_peer_failed(NodePeer *peer, const Error *why)
{
    peer->next_address++;
    if (peer->next_address >= peer->resolved.count)
        peer->next_address = 0;
    peer->failures++;
    /* While there are others, the calls wait for those: trying again at once would only try again
     * and again. */
    if (peer->failures < peer->resolved.count)
        node_peer_dispatch(peer);
    else if (peer->conn_count == 0)
        give_up(peer, why);
}

/* The end. */

static void stop_conns(h2o_linklist_t *list, const Error *why)
{
    while (!h2o_linklist_is_empty(list)) {
        NodeConn *conn = CONTAINER_OF(list->next, NodeConn, link);
        NodeExchange *exchange = conn->exchange;
        if (exchange == NULL) {
            node_conn_close(conn);
            continue;
        }
        bool is_sent = node_conn_abandon(conn);
        node_exchange_fail(exchange, is_sent ? NODE_CALL_UNKNOWN : NODE_CALL_NOT_SENT, why);
    }
}

void node_links_stop(NodeLinks *links)
{
    Error err;
    if (links->is_stopped ||
        error_set(&err, STATUS_UNAVAILABLE, SUB_NONE, "The server is being stopped.") == STATUS_OK)
        return;
    links->is_stopped = true;
    for (size_t i = 0; i < links->peer_count; i++) {
        fail_waiting(links->peers[i], &err);
        stop_conns(&links->peers[i]->idle, &err);
        stop_conns(&links->peers[i]->others, &err);
    }
}

void node_links_close(NodeLinks *links)
{
    HttpLoop *loop = links->loop;
    node_links_stop(links);
    deliver_failed(links);
    h2o_timeout_unlink(&links->failed_timer);
    for (size_t i = 0; i < links->peer_count; i++) {
        node_resolver_end(links->peers[i]);
        mem_free(links->peers[i]);
    }
    if (links->can_send) {
        for (size_t i = 0; i < NODE_TIMER_CLASSES; i++)
            h2o_timeout_dispose(loop->events, &links->classes[i]);
        h2o_timeout_dispose(loop->events, &links->connect_timeout);
        h2o_timeout_dispose(loop->events, &links->keep_timeout);
    }
    loop->links = NULL;
    mem_free(links);
}
