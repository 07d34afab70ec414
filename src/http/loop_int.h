/* loop_int.h - one loop thread and what it owns; the server that holds the loops together.
 *
 * Threads    The fields of a HttpLoop are grouped by the threads that may use them.
 */
#pragma once

#include "base/date.h"
#include "base/latch.h"
#include "http/client_address_int.h"
#include "http/conn_memory_int.h"
#include "http/gzip_int.h"
#include "http/head_int.h"
#include "http/listen_int.h"
#include "http/node_proof_int.h"
#include "http/tls_int.h"
#include "http/transport_int.h"

#include <pthread.h>

/* What one read(2) takes at most. A request that arrives whole is parsed where it was read and
 * never copied; a connection has a buffer of its own only while a request is incomplete. */
#define LOOP_INPUT_BYTES ((size_t)64 << 10)

/* Requests kept for reuse by a loop, and the size of their arenas' ordinary block: enough that a
 * usual request takes nothing from the heap, at most 4 MB a loop. */
#define LOOP_FREE_REQUESTS_MAX 128
#define LOOP_ARENA_BYTES       ((size_t)32 << 10)

#define LOOP_AUTHORITY_BYTES 300

/* A client must send a body, and read an answer, at least at this rate, over each 'pace_ms'. A
 * slower one holds memory for too long. */
#define PACE_BYTES_PER_S 4096

/* Connections on the node port that may be proving themselves on one loop. Beyond it the oldest of
 * them is closed, so that strangers cannot keep nodes out by connecting and doing nothing. */
#define LOOP_PROVING_MAX 256

/* A port is for clients or for nodes. */
typedef enum PortKind { PORT_PUBLIC, PORT_NODE } PortKind;
#define PORT_KINDS 2

typedef struct Listener {
    HttpLoop *loop;
    PortKind port;
    h2o_socket_t *sock; /* NULL before and after */
} Listener;

typedef struct Conn Conn;
typedef struct NodeLinks NodeLinks;
typedef struct Request Request;

struct HttpLoop {
    /* Immutable after open. */
    HttpServer *server;
    uint32_t index;
    MetricsShard *metrics;
    int wake_fd;                 /* an eventfd: "there are tasks" */
    int *listen_fds[PORT_KINDS]; /* the loop takes them when it opens, and leaves -1 */
    size_t listen_counts[PORT_KINDS];
    pthread_t thread;
    bool has_thread;
    int open_error; /* an errno, set before server->opened is posted */

    /* Any thread. */
    Queue tasks;
    _Atomic uint32_t posting; /* threads inside http_loop_post; wake_fd stays open for them */

    /* Loop thread only. */
    h2o_evloop_t *events;
    h2o_socket_t *wake;
    Listener listeners[PORT_KINDS * LISTEN_ADDRESSES_MAX];
    size_t listener_count;
    h2o_timeout_t first_timeout;   /* a connection that has sent no request yet */
    h2o_timeout_t last_timeout;    /* the same when the loop has begun to end */
    h2o_timeout_t idle_timeout;    /* a kept connection without a request */
    h2o_timeout_t proof_timeout;   /* a connection on the node port that has not proved itself */
    h2o_timeout_t node_timeout;    /* a kept connection of a node without a request */
    h2o_timeout_t request_timeout; /* a head or a handshake that does not come to its end */
    h2o_timeout_t body_timeout;    /* checks the pace of a body that is being received */
    h2o_timeout_t answer_timeout;  /* checks the pace of an answer that is being sent */
    h2o_timeout_t linger_timeout;  /* a client that still sends after the last answer */
    h2o_timeout_t soon_timeout;    /* runs at once, but not on this stack */
    h2o_timeout_t later_timeout;   /* of http_loop_later */
    h2o_timeout_t pause_timeout;   /* accepting again after the system ran out of descriptors */
    h2o_timeout_t drain_timeout;
    h2o_timeout_entry_t pause_timer;
    h2o_timeout_entry_t drain_timer;
    h2o_linklist_t conns;
    size_t conn_count;
    size_t proving_count; /* those that wait with proof_timeout */
    ConnMemoryShare memory;
    Tls *tls;             /* for new handshakes; NULL without a certificate */
    size_t request_count; /* not yet answered, with or without a connection */
    NodeLinks *links;     /* connections to other nodes */
    Request *free_requests;
    size_t free_request_count;
    bool is_retiring; /* each answer to a client is the last one of its connection */
    bool is_draining;
    bool is_waiting; /* nothing has happened since the last turn's end */
    uint64_t waiting_since_us;
    uint64_t usual_wait_us;
    void *user;
    Random random;
    Gzip gzip;
    uint64_t date_checked_at; /* the loop's own milliseconds */
    int64_t date_s;
    char date[DATE_LEN + 1];
    HttpHeader headers[HTTP_NODE_HEADERS_MAX];
    char record[TLS_RECORD_BYTES];
    char input[LOOP_INPUT_BYTES];
};

struct HttpServer {
    /* Immutable after open. */
    HttpOptions options;
    HeadLimits limits[PORT_KINDS];
    Listeners listeners[PORT_KINDS];
    NodeTls *node_tls; /* NULL without a node secret */
    HttpLoop **loops;
    char authority[LOOP_AUTHORITY_BYTES]; /* for requests that name no host */
    Latch opened;                         /* posted by each loop when it serves */
    /* The thread that opened the server. */
    Tls *tls; /* the newest settings, of which each loop has its own reference; NULL for none */
    /* Atomic. */
    _Atomic uint32_t connections;
    AddressCounts addresses;
    ConnMemory memory;
};

/* Memory that the loop's connections hold: see conn_memory_int.h. */
bool loop_take(HttpLoop *loop, uint64_t bytes, ConnMemoryUse use);
void loop_force(HttpLoop *loop, uint64_t bytes);
void loop_give(HttpLoop *loop, uint64_t bytes);

/* A connection of this client has ended, and counts no more. */
void loop_forget_client(HttpLoop *loop, HttpClient client);

/* To be called wherever the loop learns that there is something to do. */
void loop_awake(HttpLoop *loop);

/* Starts the loop's thread, which posts server->opened when it serves or has set 'open_error'. */
MUST_USE Status loop_start(HttpLoop *loop, Error *err);

/* Asks the loop to end, from any thread; then loop_join waits for it. */
typedef struct LoopStop {
    HttpTask task;
    HttpLoop *loop;
    uint32_t drain_ms;
} LoopStop;
void loop_stop(HttpLoop *loop, LoopStop *stop, uint32_t drain_ms);
void loop_join(HttpLoop *loop);
