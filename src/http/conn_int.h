/* conn_int.h - a connection and the request that it carries.
 *
 *                     ┌─ node ─> PROVING ─┐
 *     OPENING ──> HANDSHAKE ─────────────> HEAD ──> BODY <──> HANDLING ──> WRITING ──> HEAD ...
 *        └───────────── plain ──────────────^ └─ whole ───────^   └─ sent at once ───────^
 *
 * and from every state to CLOSED. BODY and HANDLING alternate once if the handler looks at the head
 * before the body has arrived. HEAD, BODY, HANDLING and WRITING lead to LINGERING after an answer
 * that must be the last one although the client may still be sending: closing at once would reset
 * the connection, and the client's system would discard the answer unread. HEAD and BODY lead to
 * WRITING if the request is refused.
 *
 * Ownership  A connection owns its request until the handler is called. From then on the request
 *            lives until http_respond, with or without the connection, and then until it is sent.
 * Threads    Loop thread only.
 */
#pragma once

#include "http/chunk_int.h"
#include "http/loop_int.h"

typedef enum ConnState {
    CONN_OPENING, /* the first byte decides whether it speaks TLS */
    CONN_HANDSHAKE,
    CONN_PROVING, /* on the node port: does it know the cluster's secret? */
    CONN_HEAD,    /* idle, or in the middle of a request's head */
    CONN_BODY,
    CONN_HANDLING,  /* the handler has the request */
    CONN_WRITING,   /* the socket did not take the whole answer at once */
    CONN_LINGERING, /* everything is sent; what still comes is thrown away */
    CONN_CLOSED,    /* without a socket; freed when no callback holds it any more */
} ConnState;

/* What was read and not yet used. 'bytes' is the loop's input while a read is being processed, and
 * the connection's own memory between two of them if something is left over. */
typedef struct Input {
    char *bytes;
    size_t start;
    size_t len;
    size_t capacity;
} Input;

#define PEER_TEXT_MAX 64

struct Conn {
    HttpLoop *loop;
    HttpClient client;
    PortKind port; /* where it was accepted; on the node port it has proved itself from HEAD on */
    NodeProof *proof; /* only in PROVING */
    Transport transport;
    char peer[PEER_TEXT_MAX]; /* the client's address and port, for HttpRequest.peer */
    ConnState state;
    bool is_held;        /* a callback of the event loop uses it, also after a close (I5) */
    bool is_dispatching; /* the handler is being called */
    bool keeps_open;     /* another request may follow the answer */
    bool lingers;        /* the answer comes before the end of the request */
    bool is_paused;      /* not reading: the client is too far ahead */
    bool has_ended;      /* the client sends no more, but may wait for answers */
    Input input;
    size_t head_seen;       /* bytes of an incomplete head that were parsed before */
    uint64_t charged;       /* memory of the connection itself, without input and request */
    uint64_t begun_us;      /* when a request began that did not come whole at once; else 0 */
    int64_t progress;       /* of the body or the answer, when the pace was last looked at */
    Request *request;       /* from BODY to WRITING */
    h2o_timeout_t *timeout; /* where 'timer' is linked */
    h2o_timeout_entry_t timer;
    h2o_linklist_t link; /* in loop->conns */
};

struct Request {
    HttpRequest http;
    Conn *conn; /* NULL if the client has gone */
    Head head;
    ChunkDecoder decoder; /* of a chunked body */
    Output output;
    void (*body_release)(void *ctx);
    void *body_release_ctx;
    Arena arena;
    uint64_t charged; /* for the arena, and for an answer's body outside it */
    Request *next_free;
};

/* Takes charge of an accepted socket, which counts already; false if there is no memory for it. */
bool conn_open(HttpLoop *loop, PortKind port, h2o_socket_t *sock, HttpClient client);

/* Every change of the state, which must be one of the drawing above. */
void conn_enter(Conn *conn, ConnState state);
void conn_close(Conn *conn);

/* Tells the handler, if it has the request, that the client no longer waits for the answer. */
void conn_abandon(Conn *conn);

/* Closes the connection unless a request is under way on it, or may be, as it has just come; a node
 * is asked to close it itself. */
void conn_drain(Conn *conn);

/* Waits for this timeout from now on, and for no other; NULL for none. */
void conn_arm(Conn *conn, h2o_timeout_t *timeout);

/* Waits as long as a connection without a request may be kept. */
void conn_arm_idle(Conn *conn);

/* Begins to look at the pace of the body or answer that is under way: 'timeout' is the loop's for
 * one or the other. */
void conn_watch_pace(Conn *conn, h2o_timeout_t *timeout);

/* Reads what there is and handles every whole request in it. The caller holds the connection. */
void conn_receive(Conn *conn);
void conn_drop_input(Conn *conn);

/* Answers with an error and lets nothing follow it. */
void conn_refuse(Conn *conn, const Error *why);

/* There is no memory left for what the client sends: answers 503 if that is still possible, and
 * lets nothing follow. */
void conn_shed(Conn *conn);

/* Sends request->output, then ends the request and goes on with the next one. The body must stay
 * only until this returns if the request has no 'body_release'. */
void conn_send(Conn *conn);

/* The usual arena is charged at once. */
Request *request_take(HttpLoop *loop);
void request_charge(Request *request, uint64_t bytes); /* instead of what was charged before */
void request_release(Request *request);                /* with its body */
void request_free_all(HttpLoop *loop);                 /* those kept for reuse */

/* Fills in request->output with an error in the protocol's form; 'took_us' as in HttpRefusal. */
void request_refuse(Request *request, const Error *why, uint64_t took_us);
