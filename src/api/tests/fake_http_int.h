/* fake_http_int.h - the functions of http/http.h without a network, for tests of the layer above.
 *
 * One file of an executable includes this: the functions below then replace the library's. The fake
 * is as strict as http.h allows (I2, I3): what a handler may not use any more is freed at once.
 * That is the slices of a request when the handler returns, its arena when it is answered, and the
 * loop's snapshot when an answer was deferred. So the address sanitizer finds every use that is too
 * late.
 *
 * Ownership  A FakeServer owns the store, the catalogue and the api; answers live in its arena
 *            until fake_server_reset.
 * Threads    The caller's thread is the loop.
 */
#pragma once

#include "api/admin/orrery_int.h"
#include "api/api.h"
#include "base/date.h"
#include "base/encoding.h"
#include "base/mailbox.h"
#include "base/mem.h"
#include "catalog/placement.h"
#include "http/node_link.h"
#include "store/memory/memory_store.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define FAKE_KEY       AUTH_DEVELOPMENT_KEY
#define FAKE_READ_KEY  "cmVhZC1vbmx5"
#define FAKE_BEGIN_S   1700000000
#define FAKE_AUTHORITY "localhost:8081"

struct HttpLoop {
    void *user;
    Random random;
    MetricsShard *metrics;
    Mailbox tasks;
    HttpTimer *timers[4]; /* that are to run */
    size_t timer_count;
    NodeCall *calls[4]; /* to other nodes, not yet answered */
    size_t call_count;
};

typedef struct FakeServer {
    FakeClock clock;
    Log log;
    Metrics metrics;
    Store *store;
    PartitionHost host;
    Catalog *catalog;
    Workers *workers;
    KeyRing *keys;
    IdentitySource *identities;
    HistoryPool histories;
    Api *api;
    HttpHandler handler;
    HttpLoop loop;
    Arena arena;            /* of answers, and for callers */
    bool is_out_of_memory;  /* http_request_reserve refuses */
    bool is_node;           /* requests come from another node */
    bool bodies_come_later; /* than the heads of all requests */
} FakeServer;

typedef struct FakeRequest {
    Slice method;
    Slice path;
    const HttpHeader *headers;
    size_t header_count;
    Slice body;
    Slice key;  /* signs the request; empty to send only the headers above */
    Slice date; /* that is signed; empty for the clock's */
    Slice authority;
    bool is_tls;
    bool is_node;          /* it comes from another node */
    bool body_comes_later; /* than the head */
} FakeRequest;

typedef struct FakeAnswer {
    int status; /* 0 until it is answered */
    HttpHeader *headers;
    size_t header_count;
    Slice body;
    size_t held; /* bytes of the request's arena that stay until the client has read the answer */
} FakeAnswer;

/* A request on its way, as the server would hold it. */
typedef struct FakeExchange {
    HttpRequest http;
    FakeServer *server;
    FakeAnswer *answer;
    Arena arena;
} FakeExchange;

Slice http_header(const HttpRequest *request, Slice name)
{
    for (size_t i = 0; i < request->header_count; i++) {
        if (slice_equal(request->headers[i].name, name))
            return request->headers[i].value;
    }
    return SLICE_EMPTY;
}

bool http_request_reserve(HttpRequest *request, uint64_t bytes UNUSED)
{
    return !CONTAINER_OF(request, FakeExchange, http)->server->is_out_of_memory;
}

void http_respond(HttpRequest *request, const HttpResponse *response)
{
    FakeExchange *exchange = CONTAINER_OF(request, FakeExchange, http);
    FakeAnswer *answer = exchange->answer;
    Arena *keep = &exchange->server->arena;
    ASSERT(answer->status == 0); /* I2 */
    ASSERT(response->status >= 200);
    ASSERT(response->status <= 599);
    answer->status = response->status;
    answer->header_count = response->header_count;
    answer->headers = ARENA_NEW_ARRAY(keep, HttpHeader, response->header_count);
    for (size_t i = 0; i < response->header_count; i++) {
        answer->headers[i].name = arena_copy(keep, response->headers[i].name);
        answer->headers[i].value = arena_copy(keep, response->headers[i].value);
    }
    answer->body = arena_copy(keep, response->body);
    answer->held = arena_used(&exchange->arena);
    if (response->body_release != NULL)
        response->body_release(response->body_release_ctx);
    arena_done(&exchange->arena);
}

void http_loop_post(HttpLoop *loop, HttpTask *task)
{
    mailbox_post(&loop->tasks, &task->node);
}

/* Timers run when the test says so. */
void http_loop_later(HttpLoop *loop, HttpTimer *timer)
{
    ASSERT(loop->timer_count < ARRAY_COUNT(loop->timers));
    loop->timers[loop->timer_count++] = timer;
}

/* Calls wait for the test to answer them. */
void node_link_send(HttpLoop *loop, NodeCall *call)
{
    ASSERT(loop->call_count < ARRAY_COUNT(loop->calls));
    loop->calls[loop->call_count++] = call;
}

void *http_loop_user(HttpLoop *loop)
{
    return loop->user;
}

Random *http_loop_random(HttpLoop *loop)
{
    return &loop->random;
}

MetricsShard *http_loop_metrics(HttpLoop *loop)
{
    return loop->metrics;
}

void http_client_print(HttpClient client, char out[HTTP_CLIENT_TEXT_MAX])
{
    (void)snprintf(out, HTTP_CLIENT_TEXT_MAX, "%llu", (unsigned long long)client.number);
}

Slice http_loop_certificate(const HttpLoop *loop)
{
    (void)loop;
    return SLICE("PEM");
}

/* Of a node of a cluster: everything is served here until a test says catalog_stop_serving. */
static inline bool fake_is_local(void *ctx UNUSED, StoreSpace space UNUSED)
{
    return true;
}

static inline Status fake_create(void *ctx UNUSED, StoreSpace first UNUSED, size_t count UNUSED,
                                 StoreSpace beside UNUSED, Error *err UNUSED)
{
    return STATUS_OK;
}

static inline void fake_open_catalog(FakeServer *server, const ProvisionRules *rules, bool is_node)
{
    static const CatalogPlacement placement = {.is_local = fake_is_local, .create = fake_create};
    server->host = (PartitionHost){.store = server->store,
                                   .writers = workers_open("test", 1, UINT32_MAX),
                                   .clock = &server->clock.clock,
                                   .log = &server->log};
    static const MoveRules moves = {0}; /* only what is asked for */
    CatalogOptions options = {.host = &server->host,
                              .clock = &server->clock.clock,
                              .log = &server->log,
                              .metrics = &server->metrics.shards[1],
                              .throughput = rules,
                              .moves = &moves,
                              .placement = is_node ? &placement : NULL};
    Error err;
    Status status = catalog_open(&options, &server->catalog, &err);
    ASSERT(status == STATUS_OK);
}

/* 'options' may be NULL; what is set below overrides it, except a clock. Without 'rules' no request
 * is turned away. */
static inline void fake_server_open_with(FakeServer *server, const ApiOptions *options,
                                         const ProvisionRules *rules)
{
    *server = (FakeServer){0};
    fake_clock_init(&server->clock, UINT64_C(1000000) * FAKE_BEGIN_S);
    server->log = (Log){.fd = open("/dev/null", O_WRONLY | O_CLOEXEC),
                        .level = LOG_LEVEL_DEBUG,
                        .clock = &server->clock.clock};
    metrics_init(&server->metrics, 2);
    arena_init(&server->arena, 4096);
    memory_store_open_with(&PARTITION_MERGE, &server->store);
    fake_open_catalog(server, rules, options != NULL && options->cluster != NULL);
    server->workers = workers_open("test", 1, 2);
    KeyRingOptions keys = {.given.primary_read_only = SLICE(FAKE_READ_KEY),
                           .given_by[KEY_SLOT_PRIMARY_READ_ONLY] = "--read-only-key",
                           .clock = &server->clock.clock};
    Error err;
    Status status = key_ring_open(&keys, &server->keys, &err);
    ASSERT(status == STATUS_OK);
    status = identity_source_open(&(IdentitySourceOptions){.log = &server->log},
                                  &server->identities, &err);
    ASSERT(status == STATUS_OK);
    ApiOptions api = options == NULL ? (ApiOptions){0} : *options;
    api.catalog = server->catalog;
    api.store = server->store;
    api.keys = server->keys;
    api.identities = server->identities;
    api.workers = server->workers;
    api.bodies = server->workers;
    api.readers = server->workers; /* one pool, so that a test can keep all of them busy */
    if (api.clock == NULL)
        api.clock = &server->clock.clock;
    api.log = &server->log;
    api.metrics = &server->metrics;
    api.histories = &server->histories;
    history_pool_init(&server->histories, HISTORIES_MAX);
    server->api = api_open(&api);
    server->handler = api_handler(server->api);
    random_init(&server->loop.random, 1);
    server->loop.metrics = &server->metrics.shards[0];
    mailbox_init(&server->loop.tasks);
    server->loop.user = server->handler.loop_open(server->handler.ctx, &server->loop);
}

static inline void fake_server_open(FakeServer *server, const ApiOptions *options)
{
    fake_server_open_with(server, options, NULL);
}

static inline void fake_server_close(FakeServer *server)
{
    server->handler.loop_close(server->handler.ctx, server->loop.user);
    mailbox_done(&server->loop.tasks);
    workers_close(server->workers);
    api_close(server->api);
    atomic_store(&server->host.is_closing, true);
    catalog_close(server->catalog);
    partition_host_stop(&server->host);
    workers_close(server->host.writers);
    store_close(server->store);
    identity_source_close(server->identities);
    key_ring_close(server->keys);
    metrics_done(&server->metrics);
    (void)close(server->log.fd);
    arena_done(&server->arena);
}
DEFINE_AUTO_VALUE(FakeServer, fake_server_close)

static inline void fake_server_reset(FakeServer *server)
{
    arena_reset(&server->arena);
}

/* The authorization of a request as a client with 'key' makes it; empty if the path names no
 * resource. */
static inline Slice fake_sign(FakeServer *server, const FakeRequest *request, Slice date)
{
    Address address;
    Error err;
    Slice path = slice_first(request->path, slice_find(request->path, '?'));
    if (orrery_is_path(path)) { /* only the resource in the path is signed */
        path = slice_from(path, strlen("/_orrery"));
        if (chaos_is_path(path))
            path = slice_from(path, strlen("/chaos"));
        if (backup_is_path(path) || cluster_is_path(path))
            path = SLICE("/");
        size_t parts = snapshots_is_path(path) && slice_starts_with(path, SLICE("/dbs/")) ? 2 : 1;
        parts += parts == 2 && slice_ends_with(path, SLICE("/restore")) ? 1 : 0;
        for (; parts > 0; parts--) {
            path.len -= path.len > 0 && path.ptr[path.len - 1] == '/' ? 1 : 0;
            while (path.len > 0 && path.ptr[path.len - 1] != '/')
                path.len--;
        }
    }
    if (address_parse(&server->arena, path, &address, &err) != STATUS_OK)
        return SLICE_EMPTY;
    char signature[AUTH_SIGNATURE_LEN];
    Status status = auth_sign(request->key, request->method, address_segment(address.type),
                              address.link, date, signature, &err);
    ASSERT(status == STATUS_OK);
    Slice token =
        arena_format(&server->arena, "type=master&ver=1.0&sig=%.*s", AUTH_SIGNATURE_LEN, signature);
    return percent_encode(&server->arena, token, SLICE("-_.!~*'()"));
}

/* A copy in memory of its own, so that a read beyond its end or after its life is found. */
static inline Slice fake_own(Slice s)
{
    return slice_make(s.len == 0 ? NULL : mem_copy(s.ptr, s.len), s.len);
}

static inline void fake_disown(Slice s)
{
    mem_free(UNCONST(char, s.ptr));
}

/* Puts everything that the handler may use until it returns into memory of its own. */
static inline void fake_fill(FakeExchange *exchange, const FakeRequest *request)
{
    FakeServer *server = exchange->server;
    HttpRequest *http = &exchange->http;
    size_t count = request->header_count;
    HttpHeader *headers = MEM_NEW_ARRAY(HttpHeader, count + 2);
    for (size_t i = 0; i < count; i++)
        headers[i] =
            (HttpHeader){fake_own(request->headers[i].name), fake_own(request->headers[i].value)};
    if (request->key.len > 0) {
        char now[DATE_LEN];
        date_print(clock_wall_s(&server->clock.clock), now);
        Slice date = request->date.len > 0 ? request->date : slice_make(now, DATE_LEN);
        Slice token = fake_sign(server, request, date);
        headers[count++] = (HttpHeader){fake_own(SLICE("authorization")), fake_own(token)};
        headers[count++] = (HttpHeader){fake_own(SLICE("x-ms-date")), fake_own(date)};
    }
    Slice authority = request->authority.len > 0 ? request->authority : SLICE(FAKE_AUTHORITY);
    *http = (HttpRequest){.loop = &server->loop,
                          .method = fake_own(request->method),
                          .path = fake_own(request->path),
                          .authority = fake_own(authority),
                          .is_tls = request->is_tls,
                          .is_node = server->is_node || request->is_node,
                          .headers = headers,
                          .header_count = count,
                          .body = fake_own(request->body),
                          .arena = &exchange->arena,
                          .begun_us = clock_monotonic_us(&server->clock.clock)};
}

/* The handler sees the head first, as if the body were still to come. With the body it gets the
 * request anew: of what it has noted there, only 'user' is left. */
static inline bool fake_admit(FakeExchange *exchange)
{
    HttpHandler *handler = &exchange->server->handler;
    HttpRequest whole = exchange->http;
    exchange->http.body = SLICE_EMPTY;
    bool is_admitted = handler->admit(handler->ctx, &exchange->http);
    ASSERT(is_admitted == (exchange->answer->status == 0)); /* refused, and so answered */
    if (is_admitted) {
        whole.user = exchange->http.user;
        exchange->http = whole;
    }
    return is_admitted;
}

/* Sends a request as the loop would, and returns without waiting: the answer may come later.
 * Release the exchange after it has. */
static inline FakeExchange *fake_send(FakeServer *server, const FakeRequest *request,
                                      FakeAnswer *answer)
{
    FakeExchange *exchange = MEM_NEW(FakeExchange);
    *answer = (FakeAnswer){0};
    exchange->server = server;
    exchange->answer = answer;
    arena_init(&exchange->arena, 1024);
    fake_fill(exchange, request);
    HttpRequest sent = exchange->http;
    bool comes_later = request->body_comes_later || server->bodies_come_later;
    if (!comes_later || fake_admit(exchange))
        server->handler.handle(server->handler.ctx, &exchange->http);
    for (size_t i = 0; i < sent.header_count; i++) {
        fake_disown(sent.headers[i].name);
        fake_disown(sent.headers[i].value);
    }
    mem_free(UNCONST(HttpHeader, sent.headers));
    fake_disown(sent.method);
    fake_disown(sent.path);
    fake_disown(sent.authority);
    fake_disown(sent.body);
    /* As if the loop had looked at the catalogue meanwhile: the snapshot is not the request's. */
    ApiLoop *loop = server->loop.user;
    catalog_reader_done(&loop->reader);
    catalog_reader_init(&loop->reader, server->catalog);
    return exchange;
}

/* Runs the loop until the answer is there. */
static inline void fake_wait(FakeServer *server, const FakeAnswer *answer)
{
    while (answer->status == 0) {
        QueueNode *node = mailbox_wait(&server->loop.tasks);
        while (node != NULL) {
            HttpTask *task = CONTAINER_OF(node, HttpTask, node);
            node = node->next;
            task->run(task);
        }
    }
}

static inline void fake_request(FakeServer *server, const FakeRequest *request, FakeAnswer *answer)
{
    FakeExchange *exchange = fake_send(server, request, answer);
    fake_wait(server, answer);
    mem_free(exchange);
}

/* The value of a header of the answer, or an empty slice. */
static inline Slice fake_header(const FakeAnswer *answer, const char *name)
{
    for (size_t i = 0; i < answer->header_count; i++) {
        if (slice_equal(answer->headers[i].name, slice_from_cstr(name)))
            return answer->headers[i].value;
    }
    return SLICE_EMPTY;
}
