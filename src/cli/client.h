/* client.h - signed requests to a server, many at once from one thread.
 *
 * A command that asks a server opens a Client, starts as many calls as it likes, and takes them
 * back in the order in which they end:
 *
 *     client_start(client, &calls[0]);
 *     client_start(client, &calls[1]);
 *     do
 *         TRY(client_wait(client, -1, &ended, err));
 *     while (ended != NULL);
 *
 * Connections are kept and used again. Every answer is bounded in size and in time. libcurl speaks
 * HTTP and TLS; client_open loads it, because linking it would add about 5 ms to the start of every
 * command, `orrery serve` included.
 *
 * Ownership  The caller closes the client. It owns each ClientCall, which stays where it is from
 *            client_start until client_wait hands it out or the client is closed.
 * Threads    A client belongs to one thread.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/slice.h"

#define CLIENT_ANSWER_BYTES_MAX ((size_t)4 << 20) /* of a body */

typedef struct Client Client;

typedef struct ClientOptions {
    const char *endpoint; /* "http://localhost:8081" or https://, perhaps with a slash at the end */
    const char *key;      /* signs the requests; base64. NULL to send them without a signature */
    const char *cert_file; /* PEM, trusted instead of the system's authorities; NULL for those */
    uint32_t timeout_ms;   /* for one call, from its start to the last byte of the answer */
} ClientOptions;

typedef struct ClientCall {
    /* Set before client_start, and unchanged until the call has ended. */
    Slice method;        /* empty for GET, or for POST with a body; others are sent without one */
    Slice path;          /* with its parameters, percent-encoded */
    Slice body_sent;     /* JSON: makes it a POST; empty for a GET */
    Slice resource_type; /* covered by the signature: "colls" */
    Slice resource_link; /* covered by the signature: "dbs/shop/colls/orders", not encoded */
    Arena *arena;        /* for the body */

    /* Set when the call has ended. */
    Error error;     /* STATUS_OK if the server has answered, whatever the answer is */
    int http_status; /* of the answer */
    Slice body;
} ClientCall;

/* The strings of 'options' are copied. STATUS_BAD_REQUEST says what is wrong with an option,
 * STATUS_UNAVAILABLE why libcurl cannot be used. Nothing is sent yet. */
MUST_USE Status client_open(const ClientOptions *options, Client **out, Error *err);
void client_close(Client *client); /* gives up the calls under way; accepts NULL */
DEFINE_AUTO(Client *, client_close)

/* Starts a request. A failure is reported in the call, by client_wait: STATUS_UNAVAILABLE if the
 * server cannot be reached, is not trusted or does not speak HTTP, STATUS_TIMEOUT if it is too
 * slow. */
void client_start(Client *client, ClientCall *call);

/* Waits until a call has ended; '*ended' is NULL if none is under way. If 'cancel_fd' becomes
 * readable all calls under way are given up and the result is STATUS_TIMEOUT; -1 if nothing
 * cancels. */
MUST_USE Status client_wait(Client *client, int cancel_fd, ClientCall **ended, Error *err);
