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

#define CLIENT_ANSWER_BYTES_MAX ((size_t)4 << 20)  /* of a body */
#define CLIENT_HEAD_BYTES_MAX   ((size_t)64 << 10) /* of all headers of an answer */
#define CLIENT_WAKES_MAX        4

typedef struct Client Client;

typedef struct ClientOptions {
    const char *endpoint; /* "http://localhost:8081" or https://, perhaps with a slash at the end */
    const char *key;      /* signs the requests; base64. NULL to send them without a signature */
    const char *cert_file;   /* PEM, trusted instead of the system's authorities; NULL for those */
    bool is_insecure;        /* any certificate is trusted */
    uint32_t timeout_ms;     /* for one call, from its start to the last byte of the answer */
    size_t answer_bytes_max; /* of a body; 0 for CLIENT_ANSWER_BYTES_MAX */
} ClientOptions;

typedef struct ClientHeader {
    const char *name;
    Slice value;
} ClientHeader;

typedef enum ClientMethod { CLIENT_GET, CLIENT_POST, CLIENT_PUT, CLIENT_DELETE } ClientMethod;

typedef struct ClientCall {
    /* Set before client_start, and unchanged until the call has ended. */
    ClientMethod method;
    Slice path;          /* with its parameters, percent-encoded */
    Slice resource_type; /* covered by the signature: "colls" */
    Slice resource_link; /* covered by the signature: "dbs/shop/colls/orders", not encoded */
    const ClientHeader *headers; /* sent beside the signature */
    size_t header_count;
    Slice content; /* the body of a CLIENT_POST or CLIENT_PUT; not copied */
    Arena *arena;  /* for the answer */

    /* Set when the call has ended. */
    Error error;     /* STATUS_OK if the server has answered, whatever the answer is */
    int http_status; /* of the answer */
    Slice head;      /* the header lines of the answer */
    Slice body;
} ClientCall;

/* The strings of 'options' are copied. STATUS_BAD_REQUEST says what is wrong with an option,
 * STATUS_UNAVAILABLE why libcurl cannot be used. Nothing is sent yet. */
MUST_USE Status client_open(const ClientOptions *options, Client **out, Error *err);
void client_close(Client *client); /* gives up the calls under way; accepts NULL */
DEFINE_AUTO(Client *, client_close)

/* Starts a call. A failure is reported in the call, by client_wait: STATUS_UNAVAILABLE if the
 * server cannot be reached, is not trusted or does not speak HTTP, STATUS_TIMEOUT if it is too
 * slow. */
void client_start(Client *client, ClientCall *call);

/* Waits until a call has ended; '*ended' is NULL if none is under way. If 'cancel_fd' becomes
 * readable all calls under way are given up and the result is STATUS_TIMEOUT; -1 if nothing
 * cancels. */
MUST_USE Status client_wait(Client *client, int cancel_fd, ClientCall **ended, Error *err);

/* A file descriptor that ends client_poll when it becomes readable. */
typedef struct ClientWake {
    int fd;
    bool is_ready; /* set by client_poll */
} ClientWake;

/* Like client_wait, but the calls under way go on: returns with '*ended' NULL after 'timeout_ms',
 * or when one of 'wakes' is readable. It waits for these also if no call is under way. */
MUST_USE Status client_poll(Client *client, ClientWake *wakes, size_t wake_count,
                            uint32_t timeout_ms, ClientCall **ended, Error *err);

/* The value of a header of the answer, in any case of its name; empty if there is none. */
Slice client_header(const ClientCall *call, Slice name);
