/* testing_int.h - for the tests of this folder: a site to talk to, and a client to do it with.
 *
 * The site's handler does what the path says (see 'pages' below). The client speaks raw bytes, so
 * that it can also say what no real client would. Every wait has an end: a test that would hang
 * fails instead.
 */
#pragma once

#include "base/clock.h"
#include "base/mem.h"
#include "base/testing.h"
#include "http/cert.h"
#include "http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS_MAX 20000

static inline uint64_t now_ms(void)
{
    return clock_monotonic_us(clock_real()) / 1000;
}

/* Waits until the condition holds, and fails the test if it never does. */
#define WAIT_UNTIL(condition)                                                          \
    do {                                                                               \
        uint64_t until_ = now_ms() + WAIT_MS_MAX;                                      \
        while (!(condition)) {                                                         \
            if (now_ms() > until_)                                                     \
                fail_msg("%s:%d: waited in vain for " #condition, __FILE__, __LINE__); \
            sleep_ms(1);                                                               \
        }                                                                              \
    } while (0)

/* The site. */

#define SITE_LOOPS_MAX 8

typedef struct Site {
    HttpServer *server;
    HttpOptions options;
    Metrics metrics;
    Log log;
    Queue held; /* requests of /hold, to be answered by site_answer_held */
    _Atomic int held_count;
    _Atomic int released_count; /* bodies given back */
    _Atomic int admitted_count; /* heads seen before their bodies */
    _Atomic int handled_count;
    _Atomic int loops_opened;
    _Atomic int loops_closed;
    HttpLoop *loops[SITE_LOOPS_MAX]; /* valid from site_start to site_end, in no order */
    char folder[64];
    char cert[96];
    char key[96];
} Site;

/* A request that waits for its answer; in the request's own arena. */
typedef struct Held {
    HttpTask task;
    QueueNode node;
    HttpRequest *request;
    Slice body;
} Held;

static inline void site_reply(HttpRequest *request, int status, Slice body)
{
    HttpHeader type = {SLICE("content-type"), SLICE("text/plain")};
    HttpResponse response = {.status = status, .headers = &type, .header_count = 1, .body = body};
    http_respond(request, &response);
}

static inline void page_hello(Site *site, HttpRequest *request, uint64_t number)
{
    (void)site;
    (void)number;
    site_reply(request, 200, SLICE("hello"));
}

/* The body comes back, and what the handler saw as headers. */
static inline void page_echo(Site *site, HttpRequest *request, uint64_t number)
{
    (void)number;
    HttpHeader headers[] = {
        {SLICE("x-method"), request->method},
        {SLICE("x-path"), request->path},
        {SLICE("x-authority"), request->authority},
        {SLICE("x-peer"), request->peer},
        {SLICE("x-tls"), request->is_tls ? SLICE("yes") : SLICE("no")},
        {SLICE("x-node"), request->is_node ? SLICE("yes") : SLICE("no")},
        {SLICE("x-node-sent"), http_header(request, SLICE(HTTP_NODE_HEADER_PREFIX "test"))},
        {SLICE("x-node-left"), http_header(request, SLICE(HTTP_NODE_HEADER_LEFT))},
        {SLICE("x-header-count"), arena_format(request->arena, "%zu", request->header_count)},
        {SLICE("x-sent"), http_header(request, SLICE("x-send"))},
        {SLICE("x-admitted"), request->user == site ? SLICE("yes") : SLICE("no")},
    };
    HttpResponse response = {.status = 200,
                             .headers = headers,
                             .header_count = ARRAY_COUNT(headers),
                             .body = request->body};
    http_respond(request, &response);
}

/* A pattern that repeats every 26,000 bytes; quick, because a handler must not keep its loop busy.
 */
static inline void site_fill(char *bytes, size_t len)
{
    enum { PERIOD = 26000 };
    for (size_t i = 0; i < len && i < PERIOD; i++)
        bytes[i] = (char)('a' + (i * 7 + i / 1000) % 26);
    for (size_t i = PERIOD; i < len; i += PERIOD)
        memcpy(bytes + i, bytes, len - i < PERIOD ? len - i : PERIOD);
}

typedef struct Body {
    Site *site;
    char *bytes;
} Body;

static inline void body_release(void *ctx)
{
    Body *body = ctx;
    atomic_fetch_add(&body->site->released_count, 1);
    free(body->bytes);
    free(body);
}

/* /big/N: a body that is given back when it is sent. */
static inline void page_big(Site *site, HttpRequest *request, uint64_t number)
{
    Body *body = malloc(sizeof(Body));
    *body = (Body){.site = site, .bytes = malloc(number + 1)};
    site_fill(body->bytes, number);
    HttpResponse response = {.status = 200,
                             .body = slice_make(body->bytes, number),
                             .body_release = body_release,
                             .body_release_ctx = body};
    http_respond(request, &response);
}

/* /lent/N: a body that is valid only until http_respond returns. */
static inline void page_lent(Site *site, HttpRequest *request, uint64_t number)
{
    (void)site;
    char *bytes = malloc(number + 1);
    site_fill(bytes, number);
    site_reply(request, 200, slice_make(bytes, number));
    memset(bytes, '!', number);
    free(bytes);
}

static inline void page_status(Site *site, HttpRequest *request, uint64_t number)
{
    (void)site;
    site_reply(request, (int)number, SLICE("body"));
}

static inline void page_split(Site *site, HttpRequest *request, uint64_t number)
{
    (void)site;
    (void)number;
    HttpHeader header = {SLICE("x-id"), SLICE("a\r\nx-evil: 1\r\n\r\nmore\nand\x01so on")};
    HttpResponse response = {.status = 200, .headers = &header, .header_count = 1};
    http_respond(request, &response);
}

static inline void page_encoded(Site *site, HttpRequest *request, uint64_t number)
{
    (void)site;
    HttpHeader header = {SLICE("content-encoding"), SLICE("br")};
    char *bytes = arena_alloc(request->arena, number);
    memset(bytes, 'x', number);
    HttpResponse response = {
        .status = 200, .headers = &header, .header_count = 1, .body = slice_make(bytes, number)};
    http_respond(request, &response);
}

static inline void held_answer(HttpTask *task)
{
    Held *held = CONTAINER_OF(task, Held, task);
    site_reply(held->request, 200, held->body);
}

/* The body comes back when the test says so, whatever has become of the client. */
static inline void page_hold(Site *site, HttpRequest *request, uint64_t number)
{
    (void)number;
    Held *held = ARENA_NEW(request->arena, Held);
    held->task.run = held_answer;
    held->request = request;
    held->body = arena_copy(request->arena, request->body);
    (void)queue_push(&site->held, &held->node);
    atomic_fetch_add(&site->held_count, 1);
}

/* Whether the client of the only request that /hold has is known to have left. */
static inline bool site_is_abandoned(Site *site)
{
    QueueNode *node = queue_take(&site->held);
    assert_non_null(node);
    bool is_abandoned = atomic_load(&CONTAINER_OF(node, Held, node)->request->is_abandoned);
    assert_null(node->next);
    (void)queue_push(&site->held, node);
    return is_abandoned;
}

/* Answers everything that /hold has collected, from this thread. */
static inline int site_answer_held(Site *site)
{
    int count = 0;
    QueueNode *node = queue_take(&site->held);
    while (node != NULL) {
        Held *held = CONTAINER_OF(node, Held, node);
        node = node->next;
        count++;
        atomic_fetch_sub(&site->held_count, 1);
        http_loop_post(held->request->loop, &held->task);
    }
    return count;
}

typedef void PageFunction(Site *site, HttpRequest *request, uint64_t number);

static inline void site_handle(void *ctx, HttpRequest *request)
{
    static const struct {
        Slice start;
        PageFunction *page;
    } pages[] = {
        {SLICE_INIT("/hello"), page_hello},      {SLICE_INIT("/echo"), page_echo},
        {SLICE_INIT("/big/"), page_big},         {SLICE_INIT("/lent/"), page_lent},
        {SLICE_INIT("/status/"), page_status},   {SLICE_INIT("/split"), page_split},
        {SLICE_INIT("/encoded/"), page_encoded}, {SLICE_INIT("/hold"), page_hold},
    };
    Site *site = ctx;
    atomic_fetch_add(&site->handled_count, 1);
    for (size_t i = 0; i < ARRAY_COUNT(pages); i++) {
        if (!slice_starts_with(request->path, pages[i].start))
            continue;
        uint64_t number = 0;
        (void)slice_to_u64(slice_from(request->path, pages[i].start.len), &number);
        pages[i].page(site, request, number);
        return;
    }
    site_reply(request, 404, SLICE("no such page"));
}

/* Refuses bodies for /deny, and notes the Site in all requests. */
static inline bool site_admit(void *ctx, HttpRequest *request)
{
    Site *site = ctx;
    assert_int_equal(request->body.len, 0);
    atomic_fetch_add(&site->admitted_count, 1);
    request->user = site;
    if (!slice_starts_with(request->path, SLICE("/deny")))
        return true;
    site_reply(request, 401, SLICE("denied"));
    return false;
}

static inline void *site_loop_open(void *ctx, HttpLoop *loop)
{
    Site *site = ctx;
    int index = atomic_fetch_add(&site->loops_opened, 1);
    if (index < SITE_LOOPS_MAX)
        site->loops[index] = loop;
    return loop;
}

static inline void site_loop_close(void *ctx, void *loop_user)
{
    Site *site = ctx;
    if (loop_user != NULL)
        atomic_fetch_add(&site->loops_closed, 1);
}

static inline size_t site_refusal_headers(void *ctx, const HttpRefusal *refusal,
                                          HttpHeader headers[HTTP_REFUSAL_HEADERS_MAX])
{
    (void)ctx;
    Slice took = arena_format(refusal->arena, "%llu", (unsigned long long)refusal->took_us);
    headers[0] = (HttpHeader){SLICE("x-refused-by"), SLICE("site")};
    headers[1] = (HttpHeader){SLICE("x-took-us"), took};
    return 2;
}

/* Options that a test may change before site_start. */
static inline Site *site_make(void)
{
    Site *site = calloc(1, sizeof(Site));
    queue_init(&site->held);
    strcpy(site->folder, "/tmp/orrery-http-XXXXXX");
    assert_non_null(mkdtemp(site->folder));
    (void)snprintf(site->cert, sizeof(site->cert), "%s/cert.pem", site->folder);
    (void)snprintf(site->key, sizeof(site->key), "%s/key.pem", site->folder);
    site->log = (Log){.fd = 2, .level = LOG_LEVEL_ERROR, .clock = clock_real()};
    site->options = (HttpOptions){
        .host = "127.0.0.1",
        .threads = 2,
        .cert_file = site->cert,
        .key_file = site->key,
        .header_bytes_max = 16 << 10,
        .body_bytes_max = 2 << 20,
        .connections_max = 4000,
        .idle_ms = 60000,
        .request_ms = 60000,
        .pace_ms = 10000,
        .memory_bytes_max = (uint64_t)1 << 30,
        .clock = clock_real(),
        .log = &site->log,
        .metrics = &site->metrics,
        .handler = {.ctx = site,
                    .admit = site_admit,
                    .handle = site_handle,
                    .refusal_headers = site_refusal_headers,
                    .loop_open = site_loop_open,
                    .loop_close = site_loop_close},
    };
    return site;
}

static inline void site_start(Site *site)
{
    Error err;
    metrics_init(&site->metrics, site->options.threads);
    if (cert_ensure(site->cert, site->key, &err) != STATUS_OK ||
        http_server_open(&site->options, &site->server, &err) != STATUS_OK)
        fail_msg("%s", err.message);
}

static inline void site_end(Site *site, uint32_t drain_ms)
{
    http_server_close(site->server, drain_ms);
    metrics_done(&site->metrics);
    (void)unlink(site->cert);
    (void)unlink(site->key);
    (void)rmdir(site->folder);
    free(site);
}

static inline int64_t site_metric(Site *site, Metric metric)
{
    return metrics_total(&site->metrics, metric);
}

/* cmocka fixtures for tests that are happy with the usual options. */
static inline int site_setup(void **state)
{
    Site *site = site_make();
    site_start(site);
    *state = site;
    return 0;
}

static inline int site_teardown(void **state)
{
    site_end(*state, 0);
    return 0;
}

/* The client. */

typedef struct Peer {
    int fd;
    SSL *ssl;
    char bytes[64 << 10]; /* read and not yet used */
    size_t len;
} Peer;

typedef struct Answer {
    int status;
    char head[16 << 10];
    char *body;
    size_t body_len;
} Answer;

static inline int peer_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct timeval time = {.tv_sec = WAIT_MS_MAX / 1000};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)), 0);
    return fd;
}

static inline void peer_connect(int fd, const Site *site)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(site->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static inline Peer *peer_open(const Site *site)
{
    Peer *client = calloc(1, sizeof(Peer));
    client->fd = peer_socket();
    peer_connect(client->fd, site);
    return client;
}

static inline void peer_close(Peer *client)
{
    SSL_free(client->ssl);
    (void)close(client->fd);
    free(client);
}

/* False if the other side has closed. */
static inline bool peer_try_send(Peer *client, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t sent = client->ssl != NULL ? SSL_write(client->ssl, at, (int)len)
                                           : send(client->fd, at, len, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        len -= (size_t)sent;
    }
    return true;
}

static inline void peer_send(Peer *client, const char *text)
{
    assert_true(peer_try_send(client, text, strlen(text)));
}

/* Reads some more; 0 at the end, and also if the other side has reset the connection. */
static inline size_t peer_read(Peer *client)
{
    size_t room = sizeof(client->bytes) - client->len;
    assert_true(room > 0);
    char *at = client->bytes + client->len;
    ssize_t got =
        client->ssl != NULL ? SSL_read(client->ssl, at, (int)room) : recv(client->fd, at, room, 0);
    if (got < 0 && client->ssl == NULL && errno == EAGAIN)
        fail_msg("the server says nothing and does not close");
    if (got <= 0)
        return 0;
    client->len += (size_t)got;
    return (size_t)got;
}

static inline void peer_drop(Peer *client, size_t len)
{
    memmove(client->bytes, client->bytes + len, client->len - len);
    client->len -= len;
}

/* The value of a header in an answer's head, or "". */
static inline const char *answer_header(const Answer *answer, const char *name)
{
    static _Thread_local char value[1024];
    char wanted[128];
    (void)snprintf(wanted, sizeof(wanted), "\r\n%s: ", name);
    const char *found = strstr(answer->head, wanted);
    value[0] = '\0';
    if (found != NULL) {
        found += strlen(wanted);
        (void)snprintf(value, sizeof(value), "%.*s", (int)strcspn(found, "\r"), found);
    }
    return value;
}

typedef enum AnswerKind { ANSWER_WITH_BODY, ANSWER_TO_HEAD } AnswerKind;

/* Reads one answer; false if the connection ends before there is one. */
static inline bool peer_try_answer(Peer *client, AnswerKind kind, Answer *out)
{
    char *end = NULL;
    *out = (Answer){0};
    while ((end = memmem(client->bytes, client->len, "\r\n\r\n", 4)) == NULL)
        if (peer_read(client) == 0)
            return false;
    size_t head_len = (size_t)(end - client->bytes) + 4;
    assert_true(head_len < sizeof(out->head));
    memcpy(out->head, client->bytes, head_len);
    peer_drop(client, head_len);
    assert_int_equal(sscanf(out->head, "HTTP/1.1 %d ", &out->status), 1);
    out->body_len = strtoul(answer_header(out, "content-length"), NULL, 10);
    out->body = calloc(1, out->body_len + 1);
    if (kind == ANSWER_TO_HEAD)
        return true;
    for (size_t got = 0; got < out->body_len;) {
        if (client->len == 0 && peer_read(client) == 0)
            fail_msg("the body ends after %zu of %zu bytes", got, out->body_len);
        size_t take = client->len < out->body_len - got ? client->len : out->body_len - got;
        memcpy(out->body + got, client->bytes, take);
        peer_drop(client, take);
        got += take;
    }
    return true;
}

static inline void peer_answer(Peer *client, Answer *out)
{
    if (!peer_try_answer(client, ANSWER_WITH_BODY, out))
        fail_msg("the connection ended without an answer");
}

static inline void answer_done(Answer *answer)
{
    free(answer->body);
    answer->body = NULL;
}

static inline void peer_expect(Peer *client, int status, const char *body)
{
    Answer answer;
    peer_answer(client, &answer);
    if (answer.status != status)
        fail_msg("expected %d, found: %s%s", status, answer.head, answer.body);
    if (body != NULL)
        assert_string_equal(answer.body, body);
    answer_done(&answer);
}

/* An error in the protocol's form, after which the server closes. */
/* Returns how long the server says that it took. */
static inline uint64_t peer_expect_refusal(Peer *client, int status, const char *code)
{
    Answer answer;
    char start[64];
    peer_answer(client, &answer);
    (void)snprintf(start, sizeof(start), "{\"code\":\"%s\",\"message\":\"", code);
    if (answer.status != status || strncmp(answer.body, start, strlen(start)) != 0 ||
        strcmp(answer.body + answer.body_len - 2, "\"}") != 0)
        fail_msg("expected %d %s, found: %s%s", status, code, answer.head, answer.body);
    assert_string_equal(answer_header(&answer, "content-type"), "application/json");
    assert_string_equal(answer_header(&answer, "connection"), "close");
    uint64_t took_us = strtoull(answer_header(&answer, "x-took-us"), NULL, 10);
    assert_string_equal(answer_header(&answer, "x-refused-by"), "site");
    answer_done(&answer);
    return took_us;
}

static inline void peer_expect_end(Peer *client)
{
    if (client->len > 0 || peer_read(client) > 0)
        fail_msg("expected the end, found: %.*s", (int)client->len, client->bytes);
}

static inline SSL_CTX *peer_tls(void)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    assert_non_null(tls);
    return tls;
}

/* Speaks TLS from here on; false if the handshake fails. */
static inline bool peer_handshake(Peer *client, SSL_CTX *tls)
{
    client->ssl = SSL_new(tls);
    assert_int_equal(SSL_set_fd(client->ssl, client->fd), 1);
    return SSL_connect(client->ssl) == 1;
}
