/* node_link_int.h - a loop's connections to other nodes.
 *
 *     HttpLoop ── NodeLinks ──> NodePeer, one per address ──> NodeConn, kept and used again
 *                                  └──> NodeExchange, a call that waits for a connection
 *
 * The states of a NodeConn:
 *
 *     CONNECTING ──> HANDSHAKE ──> PROVING ──> IDLE ──> SENDING ──> RECEIVING
 *                                               ^───────── answered ──────┘
 *
 * and from every state to CLOSED. An answer that comes before the request has left whole (a
 * refusal) ends the connection.
 *
 * Ownership  A call owns its NodeExchange, which lives in the call's arena. A peer lives as long as
 *            the loop, unless its place is needed while it has neither connections nor calls.
 * Threads    Loop thread only, but for the resolver of a name, which has its own copy of all.
 */
#pragma once

#include "http/answer_int.h"
#include "http/loop_int.h"
#include "http/node_address_int.h"
#include "http/node_link.h"

/* Per loop and address. */
#define NODE_CONNECTIONS_MAX 32
#define NODE_OPENING_MAX     4 /* not yet proved: a peer that is down costs at most so many */
#define NODE_WAITING_MAX     4096

#define NODE_PEERS_MAX 128 /* per loop */

/* Connecting, the handshake and the proof together. */
#define NODE_CONNECT_MS 5000

/* A connection without a request is closed by its sender after this: the other side waits
 * much longer (NODE_IDLE_MS in loop.c). */
#define NODE_KEEP_MS 30000

/* One key encrypts at most so much (RFC 8446, 5.5, says 2^24.5 records): then a new connection
 * takes the place of this one. */
#define NODE_CONN_REQUESTS_MAX ((uint64_t)1 << 22)
#define NODE_CONN_BYTES_MAX    ((uint64_t)1 << 36)

typedef enum NodeConnState {
    NODE_CONN_CONNECTING,
    NODE_CONN_HANDSHAKE,
    NODE_CONN_PROVING,
    NODE_CONN_IDLE,
    NODE_CONN_SENDING,
    NODE_CONN_RECEIVING,
    NODE_CONN_CLOSED,
} NodeConnState;

typedef struct NodePeer NodePeer;
typedef struct NodeConn NodeConn;
typedef struct NodeResolver NodeResolver;

typedef struct NodeExchange {
    NodeCall *call;
    NodeLinks *links;
    NodePeer *peer; /* NULL when it has failed */
    NodeConn *conn; /* NULL while it waits */
    uint64_t deadline_us;
    uint64_t charged; /* for a large answer */
    Output output;
    AnswerReader reader;
    h2o_timeout_entry_t timer;
    h2o_linklist_t link; /* in peer->waiting or links->failed */
} NodeExchange;

struct NodeConn {
    NodePeer *peer;
    Transport transport;
    NodeConnState state;
    bool is_held;           /* a callback of the event loop uses it, also after a close */
    uint64_t requests;      /* that it has carried */
    uint64_t written;       /* what the transport had sent when the exchange began */
    NodeProof proof;        /* in PROVING */
    NodeExchange *exchange; /* in SENDING and RECEIVING */
    h2o_timeout_entry_t timer;
    h2o_linklist_t link; /* in peer->idle or peer->others */
};

struct NodePeer {
    NodeLinks *links;
    char text[NODE_ADDRESS_TEXT_MAX];
    Slice address;          /* 'text' */
    bool is_name;           /* not an address: resolved when it is first needed, or has failed */
    NodeResolver *resolver; /* while a thread asks for the addresses */
    NodeAddresses resolved; /* none of a name that is not resolved */
    size_t next_address;    /* of 'resolved', for the next connection */
    size_t failures;        /* addresses tried in vain, one after the other */
    h2o_linklist_t idle;    /* the most recently used first */
    h2o_linklist_t others;
    size_t conn_count;
    size_t opening_count;
    h2o_linklist_t waiting;
    size_t waiting_count;
    bool is_dispatching;
};

#define NODE_TIMER_CLASSES 7

struct NodeLinks {
    HttpLoop *loop;
    bool can_send;
    bool is_stopped; /* every call fails */
    NodePeer *peers[NODE_PEERS_MAX];
    size_t peer_count;
    h2o_linklist_t failed; /* calls whose 'done' is due: never from within node_link_send */
    h2o_timeout_entry_t failed_timer;
    /* Of calls: a call waits with the longest one that is not longer than what it has left, and
     * then again. So there is a list of timeouts for each class and not for each length. */
    h2o_timeout_t classes[NODE_TIMER_CLASSES];
    h2o_timeout_t connect_timeout;
    h2o_timeout_t keep_timeout;
};

NodeLinks *node_links_open(HttpLoop *loop);

/* Ends all calls with an error; new ones fail from now on. Their 'done' is still due. */
void node_links_stop(NodeLinks *links);

/* After node_links_stop, with all that 'done' may still want to use: calls it for all. */
void node_links_close(NodeLinks *links);

/* Gives waiting calls to idle connections, and opens new ones for those that are left. */
void node_peer_dispatch(NodePeer *peer);

/* Finds out the addresses of a peer that has a name, without waiting. */
MUST_USE Status node_resolver_begin(NodePeer *peer, Error *err);
void node_resolver_end(NodePeer *peer); /* waits for it, if there is one */

/* No connection could be opened. If there is none at all, the waiting calls fail. */
void node_peer_failed(NodePeer *peer, const Error *why);

/* Ends the exchange with an error; 'done' is called soon. */
void node_exchange_fail(NodeExchange *exchange, NodeCallOutcome outcome, const Error *why);

/* Puts it back in front of those that wait: nothing of it was sent. */
void node_exchange_return(NodeExchange *exchange);

/* Fills in the call from the reader and ends the exchange; then the caller calls 'done'. */
void node_exchange_answered(NodeExchange *exchange);

/* Says what is wrong with the call, if it cannot be printed. */
MUST_USE Status node_call_check(const NodeCall *call, Error *err);

/* Prints the head of the call's request into its arena, with how long its sender still waits: when
 * it is about to be sent, as it may have waited for a connection. */
void node_call_print(const NodeCall *call, uint64_t deadline_us, uint64_t now_us, Output *out);

/* Opens one more connection to the peer. */
MUST_USE Status node_conn_open(NodePeer *peer, Error *err);

/* Begins the exchange on an idle connection. False if the other side has closed that meanwhile:
 * then it is closed here too, and the exchange waits as before. */
bool node_conn_begin(NodeConn *conn, NodeExchange *exchange);
void node_conn_close(NodeConn *conn);

/* Gives up the connection's exchange: nobody waits for the answer any more. Whether a byte of the
 * request has left. */
bool node_conn_abandon(NodeConn *conn);
