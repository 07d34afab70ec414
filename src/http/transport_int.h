/* transport_int.h - bytes in and out of one socket, plain or through TLS.
 *
 * h2o's event loop tells when the socket is ready; reading and writing are done here, straight on
 * the descriptor. h2o's own socket functions would do it too, but keep the whole encrypted answer
 * in memory, cannot tell that a small write has finished at once, drop the alert of a failed
 * handshake and take a client's TLS 1.3 key update for an attack (README, "tried and rejected").
 *
 * Ownership  A Transport is a member of its connection; transport_close ends the socket.
 * Threads    Loop thread only.
 */
#pragma once

#include "http/h2o_int.h"

/* The largest TLS record: one of these is encrypted at a time. */
#define TLS_RECORD_BYTES 16384

typedef enum TransportStep {
    TRANSPORT_DONE,    /* all of it */
    TRANSPORT_BLOCKED, /* the rest when the socket is ready again */
    TRANSPORT_ENDED,   /* reading only: the peer sends no more */
    TRANSPORT_BROKEN,
} TransportStep;

typedef struct Transport {
    h2o_socket_t *sock; /* NULL outside an event loop */
    int fd;
    bool tls_is_broken; /* after a fatal error OpenSSL must not send a close_notify */
    SSL *ssl;           /* NULL for plain HTTP */
} Transport;

/* Which side of a connection this process is. */
typedef enum TransportSide { TRANSPORT_SERVER, TRANSPORT_CLIENT } TransportSide;

/* An answer, or a request to another node, on its way out: first the head, then the body. */
typedef struct Output {
    Slice head;
    Slice body;
    size_t sent; /* of both */
} Output;

/* The first byte that the client sent, left where it is. */
TransportStep transport_peek(Transport *transport, uint8_t *byte);

/* Goes on with this side of a handshake, which the first call begins. BLOCKED sets '*wants_write'
 * when it is the output that has no room. */
TransportStep transport_handshake(Transport *transport, SSL_CTX *tls, TransportSide side,
                                  bool *wants_write);

/* DONE: between 1 and 'size' bytes were read. '*has_more' means that bytes are waiting inside the
 * TLS layer, where the event loop does not see them. */
TransportStep transport_read(Transport *transport, char *bytes, size_t size, size_t *len,
                             bool *has_more);

/* Sends as much as the socket takes. 'record' is scratch memory for one TLS record. */
TransportStep transport_write(Transport *transport, Output *output, char record[TLS_RECORD_BYTES]);

/* Reads and discards bytes, without decrypting them. */
TransportStep transport_discard(Transport *transport, char *bytes, size_t size);

/* Bytes of all that was written through TLS that the system has taken, those of half a record
 * included. */
uint64_t transport_written(const Transport *transport);
uint64_t transport_received(const Transport *transport); /* through TLS */

/* Bytes that the system has taken and the client has not yet confirmed. */
size_t transport_queued(const Transport *transport);

/* Says that no more will be sent, while the other direction stays open. */
void transport_finish(Transport *transport);

void transport_close(Transport *transport);
