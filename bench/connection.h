/* connection.h - one keep-alive connection with one request under way at a time.
 *
 * Ownership  A Connection owns its socket and its buffers until connection_done.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "bench/reply.h"
#include "bench/request.h"

#include <netdb.h>

/* The run fails if the server does not accept within this time. */
#define CONNECTION_TIMEOUT_S 10

typedef struct Connection {
    int fd;
    bool is_busy;      /* a request is under way */
    uint64_t begun_us; /* when that request was sent, or should have been; with several pages, the
                          first of them */
    uint64_t turn;     /* number of that request */
    uint64_t pages;    /* of its answer that have arrived */
    uint64_t first_us; /* how long the first of them took */
    Buf out;
    size_t out_sent;
    Reply reply;
} Connection;

/* Looks up the host of 'url'. The caller releases the result with address_free. */
MUST_USE Status address_resolve(const Url *url, struct addrinfo **out, Error *err);
void address_free(struct addrinfo *address); /* accepts NULL */
DEFINE_AUTO(struct addrinfo *, address_free)

void connection_init(Connection *c, bool keep_body);
void connection_done(Connection *c);
DEFINE_AUTO_VALUE(Connection, connection_done)

/* Connects, again if it was connected before. The socket blocks, with CONNECTION_TIMEOUT_S, until
 * connection_unblock. */
MUST_USE Status connection_open(Connection *c, const struct addrinfo *address, Error *err);
MUST_USE Status connection_unblock(Connection *c, Error *err);

/* Sends what is left of 'out'; '*complete' is false if the socket takes no more for now. */
MUST_USE Status connection_send(Connection *c, bool *complete, Error *err);

/* Reads what has arrived; '*complete' is true if that ended the answer, which is in 'reply'. */
MUST_USE Status connection_receive(Connection *c, bool *complete, Error *err);
