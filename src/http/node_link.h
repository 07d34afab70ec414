/* node_link.h - requests from one node of a cluster to another.
 *
 * Each loop has connections of its own to each other node, so that a forwarded request changes no
 * thread. They are TLS with mutual proof: after the handshake both sides send a nonce, and then an
 * HMAC over both nonces, their roles and the TLS exporter, with the cluster's secret. A connection
 * that has not proved itself carries no request. The certificate is the node's own and nobody
 * checks it: the exporter makes the proof good for this one TLS connection.
 *
 * The server takes such connections on a port of its own (HttpOptions.node_port); requests on it
 * reach the same handler with HttpRequest.is_node set.
 *
 * Only the sender closes idle connections, so that a request never meets one that the other side
 * is closing.
 *
 * Threads    node_link_send and the call's 'done' run on the loop's thread.
 */
#pragma once

#include "http/http.h"

#define NODE_SECRET_BYTES 32

struct NodeSecret {
    uint8_t bytes[NODE_SECRET_BYTES];
};

/* A request between nodes may be this much longer than one of a client: headers that only nodes
 * send, and bodies of which a client's is a part. */
#define NODE_HEADER_BYTES_EXTRA ((size_t)16 << 10)
#define NODE_BODY_BYTES_MAX     ((size_t)32 << 20)

/* What is known of a call that failed. */
typedef enum NodeCallOutcome {
    NODE_CALL_ANSWERED,
    NODE_CALL_NOT_SENT, /* no byte of the request left this node: it may be sent elsewhere */
    NODE_CALL_UNKNOWN,  /* the request left, and no whole answer came */
} NodeCallOutcome;

typedef struct NodeCall NodeCall;
struct NodeCall {
    /* Filled in by the caller; everything stays valid until 'done'. */
    Slice address; /* HOST:PORT */
    Slice method;
    Slice path;
    /* Those of a connection (host, content-length, connection and the like) are left out, so that a
     * client's headers can be handed on. Names in lower case. */
    const HttpHeader *headers;
    size_t header_count;
    Slice body;
    uint32_t timeout_ms;
    size_t answer_bytes_max;
    Arena *arena; /* for the answer */
    void (*done)(NodeCall *call);

    /* The answer. */
    NodeCallOutcome outcome;
    Error error; /* if it was not answered */
    int status;
    /* Names in lower case; without those of the connection, and without those that http_respond
     * adds by itself: they can be handed on to it. */
    const HttpHeader *answer_headers;
    size_t answer_header_count;
    Slice answer_body;
};

/* 'done' is called exactly once, later, and never from here. It may send other calls. Not from
 * HttpHandler.loop_close. */
void node_link_send(HttpLoop *loop, NodeCall *call);

/* The same from a thread that may wait, over a connection of its own; for work in the background.
 * Thread safe. SIGPIPE must be ignored, or blocked in that thread. */
typedef struct NodeClient NodeClient;
NodeClient *node_client_open(const NodeSecret *secret);
void node_client_call(NodeClient *client, NodeCall *call); /* returns when it is done; no 'done' */
void node_client_close(NodeClient *client);
