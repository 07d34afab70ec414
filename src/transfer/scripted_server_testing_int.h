/* scripted_server_testing_int.h - a server on a free port that answers what a test says. For the
 * tests of this folder only.
 *
 * Every connection has a thread. The test's function is called for one request at a time.
 */
#pragma once

#include "base/buf.h"
#include "base/testing.h"
#include "client/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCRIPTED_KEY \
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

enum { SCRIPTED_CONNECTIONS_MAX = 256 };

typedef struct ScriptedRequest {
    Arena *arena; /* lives until the answer is sent */
    Slice line;   /* "GET /dbs/d/colls/c HTTP/1.1" */
    Slice head;   /* all header lines */
    Slice body;
} ScriptedRequest;

typedef struct ScriptedAnswer {
    int status;
    Slice headers; /* lines, each with its end */
    Slice body;
} ScriptedAnswer;

typedef ScriptedAnswer (*ScriptedFunction)(void *ctx, const ScriptedRequest *request);

typedef struct ScriptedServer ScriptedServer;

typedef struct ScriptedConnection {
    ScriptedServer *server;
    int fd;
    pthread_t thread;
} ScriptedConnection;

struct ScriptedServer {
    int fd;
    char endpoint[64];
    ScriptedFunction answer;
    void *ctx;
    pthread_t thread;
    pthread_mutex_t lock; /* held while 'answer' runs */
    ScriptedConnection connections[SCRIPTED_CONNECTIONS_MAX];
    size_t count; /* accepting thread only, until it has ended */
};

static inline Slice scripted_header(const ScriptedRequest *request, const char *name)
{
    return client_header(&(ClientCall){.head = request->head}, slice_from_cstr(name));
}

/* Reads until 'len' bytes are there; false at the end. */
static inline bool scripted_read(int fd, Buf *in, size_t len)
{
    while (in->len < len) {
        char piece[16384];
        ssize_t got = recv(fd, piece, sizeof(piece), 0);
        if (got <= 0)
            return false;
        buf_bytes(in, piece, (size_t)got);
    }
    return true;
}

static inline bool scripted_serve_one(ScriptedConnection *connection, Buf *in)
{
    const char *end = NULL;
    while (in->len == 0 || (end = memmem(in->ptr, in->len, "\r\n\r\n", 4)) == NULL) {
        if (!scripted_read(connection->fd, in, in->len + 1))
            return false;
    }
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    ScriptedRequest request = {.arena = &arena};
    Slice head = arena_copy(&arena, slice_make(in->ptr, (size_t)(end - in->ptr) + 2));
    request.line = slice_first(head, slice_find(head, '\r'));
    request.head = slice_from(head, request.line.len + 2);
    uint64_t size = 0;
    (void)slice_to_u64(scripted_header(&request, "content-length"), &size);
    if (!scripted_read(connection->fd, in, head.len + 2 + (size_t)size))
        return false;
    request.body = arena_copy(&arena, slice_make(in->ptr + head.len + 2, (size_t)size));
    buf_reset(in); /* this client does not send before it has the answer */
    pthread_mutex_lock(&connection->server->lock);
    ScriptedAnswer answer = connection->server->answer(connection->server->ctx, &request);
    pthread_mutex_unlock(&connection->server->lock);
    Slice text =
        arena_format(&arena, "HTTP/1.1 %d X\r\n%.*scontent-length: %zu\r\n\r\n%.*s", answer.status,
                     SLICE_ARG(answer.headers), answer.body.len, SLICE_ARG(answer.body));
    return send(connection->fd, text.ptr, text.len, MSG_NOSIGNAL) == (ssize_t)text.len;
}

static inline void *scripted_serve(void *arg)
{
    ScriptedConnection *connection = arg;
    AUTO(buf_done) Buf in;
    buf_init(&in, 16 << 20);
    while (scripted_serve_one(connection, &in))
        continue;
    return NULL;
}

static inline void *scripted_accept(void *arg)
{
    ScriptedServer *server = arg;
    while (server->count < SCRIPTED_CONNECTIONS_MAX) {
        int fd = accept(server->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        ScriptedConnection *connection = &server->connections[server->count++];
        *connection = (ScriptedConnection){.server = server, .fd = fd};
        if (pthread_create(&connection->thread, NULL, scripted_serve, connection) != 0)
            abort();
    }
    return NULL;
}

static inline void scripted_open(ScriptedServer *server, ScriptedFunction answer, void *ctx)
{
    *server = (ScriptedServer){.answer = answer, .ctx = ctx};
    assert_int_equal(pthread_mutex_init(&server->lock, NULL), 0);
    server->fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(server->fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->fd, 128), 0);
    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(server->endpoint, sizeof(server->endpoint), "http://127.0.0.1:%u",
                   ntohs(address.sin_port));
    assert_int_equal(pthread_create(&server->thread, NULL, scripted_accept, server), 0);
}

/* The client must be closed before, so that connections end. */
static inline void scripted_close(ScriptedServer *server)
{
    (void)shutdown(server->fd, SHUT_RDWR);
    assert_int_equal(pthread_join(server->thread, NULL), 0);
    (void)close(server->fd);
    for (size_t i = 0; i < server->count; i++) {
        assert_int_equal(pthread_join(server->connections[i].thread, NULL), 0);
        (void)close(server->connections[i].fd);
    }
    (void)pthread_mutex_destroy(&server->lock);
}

static inline Client *scripted_client(const ScriptedServer *server)
{
    ClientOptions options = {
        .endpoint = server->endpoint, .key = SCRIPTED_KEY, .timeout_ms = 30000};
    Client *client = NULL;
    assert_ok(client_open(&options, &client, err));
    return client;
}

static inline ScriptedAnswer scripted_ok(Slice body)
{
    return (ScriptedAnswer){.status = 200, .body = body};
}

/* What every test's container answers about itself: '/pk', and ranges as given. */
#define SCRIPTED_CONTAINER \
    "{\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"
#define SCRIPTED_RANGE(id, min, max) \
    "{\"id\":\"" id "\",\"minInclusive\":\"" min "\",\"maxExclusive\":\"" max "\"}"
#define SCRIPTED_RANGES(list) "{\"PartitionKeyRanges\":[" list "]}"
