/* http.h - an HTTP/1.1 server: sockets, TLS, event loops, requests and responses.
 *
 * One loop thread per core, each with its own listening socket on the same port. The first byte
 * of a connection decides whether it speaks TLS. A request reaches the handler when its body is
 * complete; the handler answers at once, or later from its own loop after a message. The head of
 * a large request is shown to the handler before the body is read, so that a client without a key
 * cannot fill the memory.
 *
 * Ownership  An HttpRequest belongs to the server. The handler must answer each one exactly once
 *            with http_respond, even if the client has gone (the answer is then dropped). The
 *            slices of a request (method, path, peer, headers, body) are valid until the handler
 * returns or http_respond is called, whichever is first: what a deferred answer needs is copied
 *            into 'arena', which lives until http_respond returns.
 * Threads    The handler and http_respond run on the request's loop thread. Other threads reach a
 *            loop with http_loop_post. A loop never waits.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/queue.h"
#include "base/random.h"
#include "base/slice.h"

/* Headers whose name begins so are the nodes' own: a request from anybody else that has one is
 * refused with 400. */
#define HTTP_NODE_HEADER_PREFIX "x-orrery-node-"

typedef struct NodeSecret NodeSecret; /* see node_link.h */
typedef struct HttpServer HttpServer;
typedef struct HttpLoop HttpLoop;

typedef struct HttpHeader {
    Slice name; /* lower case */
    Slice value;
} HttpHeader;

/* Where a connection comes from: an IPv4 address, or the first 64 bits of an IPv6 address. */
typedef struct HttpClient {
    uint64_t number; /* says nothing but whether two are the same */
    bool is_local;   /* a loopback address */
} HttpClient;

/* As text, for the log: "10.0.0.1" or "2001:db8:1:2::/64". */
#define HTTP_CLIENT_TEXT_MAX 64
void http_client_print(HttpClient client, char out[HTTP_CLIENT_TEXT_MAX]);

typedef struct HttpRequest {
    HttpLoop *loop;
    Slice method;    /* as sent: "GET" */
    Slice path;      /* as sent, still percent-encoded, with the query string if there is one */
    Slice authority; /* the Host header; the server's own address if there was none */
    Slice peer; /* where the connection comes from: "192.0.2.7:50522" or "[2001:db8::7]:50522" */
    bool is_tls;
    bool is_node; /* from a node of this cluster, which has proved it (node_link.h) */
    HttpClient client;
    const HttpHeader *headers;
    size_t header_count;
    Slice body;
    Arena *arena;      /* for everything that lives as long as this request */
    void *user;        /* for the handler's own use */
    uint64_t begun_us; /* monotonic */

    /* Set when the client closes its side of the connection while the handler has the request; any
     * thread may look. The answer is still due, but most likely will not be read. */
    _Atomic bool is_abandoned;
} HttpRequest;

/* The server itself adds date, server, content-length and, where they apply, connection,
 * content-encoding and vary; the handler gives none of these, except a content-encoding for a body
 * that is encoded already. Control characters in a value are sent as spaces. */
typedef struct HttpResponse {
    int status;
    const HttpHeader *headers; /* borrowed until http_respond returns */
    size_t header_count;
    /* Borrowed until 'body_release' is called; without it, until http_respond returns. */
    Slice body;
    /* Optional: called once on the loop's thread when the body has been sent, or will not be. */
    void (*body_release)(void *ctx);
    void *body_release_ctx;
} HttpResponse;

/* An answer that the server gives by itself, since there is no whole request to hand over: 400,
 * 403, 408, 413 or 503. It has a JSON body with "code" and "message", and ends the connection. */
typedef struct HttpRefusal {
    HttpLoop *loop;
    Arena *arena;     /* lives until the answer is sent */
    uint64_t took_us; /* since the request began to arrive; 0 if it came at once */
} HttpRefusal;

#define HTTP_REFUSAL_HEADERS_MAX 16

/* What http calls; cli fills it in. */
typedef struct HttpHandler {
    void *ctx;
    /* Optional: sees the head of a request whose body is still to come, before any of that is kept;
     * a request that came whole goes straight to 'handle'. It returns true to have the body read,
     * or answers before it returns and returns false: the body is then thrown away and the
     * connection closed. The request's slices stay valid until http_respond, and 'user' is kept for
     * 'handle'; if the client leaves meanwhile, there is no call of 'handle'. */
    bool (*admit)(void *ctx, HttpRequest *request);
    void (*handle)(void *ctx, HttpRequest *request);
    /* Optional: fills in the headers that the handler's own answers have, for a refusal, and
     * returns how many; the server adds content-type to what it adds always. Values live in the
     * arena. */
    size_t (*refusal_headers)(void *ctx, const HttpRefusal *refusal,
                              HttpHeader headers[HTTP_REFUSAL_HEADERS_MAX]);
    /* Optional: makes and ends what the handler keeps per loop (see http_loop_user). */
    void *(*loop_open)(void *ctx, HttpLoop *loop);
    void (*loop_close)(void *ctx, void *loop_user);
} HttpHandler;

/* The smallest 'memory_bytes_max': several requests with the largest body. */
#define HTTP_MEMORY_BYTES_MIN ((uint64_t)32 << 20)

typedef struct HttpOptions {
    const char *host; /* numeric address or name; every address it resolves to is served */
    uint16_t port;    /* 0 for any free one, see http_server_port */
    uint32_t threads;
    const char *cert_file; /* PEM, the chain; NULL for plain HTTP only (see cert.h) */
    const char *key_file;  /* PEM */
    /* PEM, authorities: over TLS a client must show a certificate of one of them. NULL if it need
     * not; requires 'requires_tls', or plain HTTP would be a way around it. */
    const char *client_ca_file;
    bool requires_tls; /* a plain request gets 403, whatever it asks for */
    /* The secret of the cluster; NULL for a server that is no node: then nodes cannot connect, and
     * node_link_send fails. The server keeps a copy. */
    const NodeSecret *node_secret;
    const char *node_host; /* where other nodes connect; needed with a secret */
    uint16_t node_port;    /* 0 for any free one, see http_node_port */
    size_t header_bytes_max;
    size_t body_bytes_max;
    uint32_t connections_max; /* over all loops */
    /* Of one client (see HttpClient), over all loops; 0 for no limit. */
    uint32_t address_connections_max;
    bool limits_local_clients; /* those on loopback, too */
    uint32_t idle_ms;          /* a kept connection without a request is closed after this */
    /* A request must arrive whole within this, a handshake end, and a new connection say something.
     */
    uint32_t request_ms;
    uint32_t pace_ms;          /* how often the pace of bodies and answers is checked */
    uint64_t memory_bytes_max; /* that all connections together may hold */
    const Clock *clock;
    const Log *log;
    Metrics *metrics; /* one shard per loop, the first 'threads' ones */
    HttpHandler handler;
} HttpOptions;

/* Binds the addresses and starts the loops; requests are served when it returns. */
MUST_USE Status http_server_open(const HttpOptions *options, HttpServer **out, Error *err);
uint16_t http_server_port(const HttpServer *server);
uint16_t http_node_port(const HttpServer *server); /* 0 without a node secret */

/* Loads certificate, key and authorities of clients again, for new handshakes; connections that
 * exist go on as they are. All loops have them when it returns. If a file is not good nothing
 * changes. On the thread that opened the server; there must be a certificate. */
MUST_USE Status http_server_reload_tls(HttpServer *server, Error *err);

/* From now on each answer is the last one of its connection, and says so; everything is served all
 * the same. Clients that are busy have no connections left then that http_server_close could close
 * while a request is on its way. On the thread that opened the server. */
void http_server_retire(HttpServer *server);

/* How many connections clients have at this moment. Any thread. */
uint32_t http_server_connections(const HttpServer *server);

/* Stops accepting, closes idle connections, lets requests under way finish for at most 'drain_ms',
 * then closes everything and joins the loops. It waits for the handler's deferred answers however
 * long they take, because the handler still has those requests. Accepts NULL. */
void http_server_close(HttpServer *server, uint32_t drain_ms);

/* The header 'name' (lower case), or an empty slice with a NULL pointer. */
Slice http_header(const HttpRequest *request, Slice name);

/* Counts 'bytes' more as held by the request until it is answered; on the loop's thread. The
 * handler asks before it keeps what is large while the request waits for another thread. False if
 * all connections together hold as much as they may: nothing is counted then. */
MUST_USE bool http_request_reserve(HttpRequest *request, uint64_t bytes);

void http_respond(HttpRequest *request, const HttpResponse *response);

/* Messages to a loop, from any thread: 'run' is called on the loop's thread, where the task may be
 * freed. Not after http_server_close has returned, nor during it except to answer a request. */
typedef struct HttpTask {
    QueueNode node;
    void (*run)(struct HttpTask *task);
} HttpTask;
void http_loop_post(HttpLoop *loop, HttpTask *task);

/* Calls 'run' once, HTTP_LATER_MS from now, on the loop's thread, which is also the caller's. The
 * timer is zeroed before its first use, stays valid until then, and may then be used again. Only
 * for work on a request that is not answered yet: a loop does not end before. */
#define HTTP_LATER_MS 20
typedef struct HttpTimer {
    void (*run)(struct HttpTimer *timer);
    uint64_t room[6]; /* the loop's */
} HttpTimer;
void http_loop_later(HttpLoop *loop, HttpTimer *timer);

void *http_loop_user(HttpLoop *loop); /* what loop_open returned */
Random *http_loop_random(HttpLoop *loop);
MetricsShard *http_loop_metrics(HttpLoop *loop);
bool http_loop_can_send(const HttpLoop *loop); /* whether the server has a node secret */
/* PEM text of the certificate that TLS clients of this loop see, and of its chain; empty if there
 * is none. Valid until the handler returns. */
Slice http_loop_certificate(const HttpLoop *loop);
const char *http_loop_date(HttpLoop *loop); /* "Tue, 01 Oct 2024 12:00:00 GMT", cached */
