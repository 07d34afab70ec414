/* load_connection.h - one keep-alive connection, plain or TLS, with one request under way at a
 * time.
 *
 * Ownership  A LoadConnection owns its socket and its buffers until load_connection_done.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "load/load_target.h"
#include "load/reply.h"

/* The run fails if the server does not accept within this time. */
#define LOAD_CONNECTION_TIMEOUT_S 10

/* IDLE to BUSY when a request is sent, BUSY to IDLE when it is over, BUSY to THROTTLED when the
 * server asks to wait, and THROTTLED to BUSY when that time has passed. From any of them to CLOSED
 * if it broke and cannot be opened again, and from there to IDLE when it can. */
typedef enum LoadConnectionState {
    LOAD_CONNECTION_IDLE,
    LOAD_CONNECTION_BUSY,
    LOAD_CONNECTION_THROTTLED,
    LOAD_CONNECTION_CLOSED,
} LoadConnectionState;

typedef struct LoadConnection {
    int fd;
    struct ssl_st *tls; /* NULL without TLS */
    LoadConnectionState state;
    RequestTurn turn;  /* what the request is about */
    uint64_t begun_us; /* when the turn was due, or was begun if there is no rate */
    uint64_t sent_us;  /* when its last request was sent */
    uint64_t first_us; /* how long the first page took */
    uint64_t pages;    /* that have arrived */
    Buf out;           /* the request, until its answer is there */
    size_t out_sent;
    Reply reply;
} LoadConnection;

void load_connection_init(LoadConnection *c, bool keep_body);
void load_connection_done(LoadConnection *c);
DEFINE_AUTO_VALUE(LoadConnection, load_connection_done)

/* Connects, again if it was connected before; 'out' stays. The socket blocks, with
 * LOAD_CONNECTION_TIMEOUT_S, until load_connection_unblock. */
MUST_USE Status load_connection_open(LoadConnection *c, LoadTarget *target, Error *err);
MUST_USE Status load_connection_unblock(LoadConnection *c, Error *err);

/* Sends what is left of 'out'; '*complete' is false if the socket takes no more for now. */
MUST_USE Status load_connection_send(LoadConnection *c, bool *complete, Error *err);

/* Reads what has arrived; '*complete' is true if that ended the answer, which is in 'reply'. */
MUST_USE Status load_connection_receive(LoadConnection *c, bool *complete, Error *err);

/* False if the server has closed it, or has sent something that was not asked for. For connections
 * that are not busy, whose socket has become readable. */
bool load_connection_is_open(LoadConnection *c);
