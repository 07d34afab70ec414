/* server.c - opens and closes the loops together. */
#include "base/mem.h"
#include "http/loop_int.h"
#include "http/tls_int.h"

#include <stdio.h>
#include <string.h>

static Status load_tls(const HttpServer *server, Tls **out, Error *err);
static Status open_parts(HttpServer *server, Error *err);
static Status open_loops(HttpServer *server, Error *err);
static void server_free(HttpServer *server);

/* Nodes send what clients have sent to them, and more. */
static void set_limits(HttpServer *server)
{
    const HttpOptions *options = &server->options;
    server->limits[PORT_PUBLIC] = (HeadLimits){.header_bytes_max = options->header_bytes_max,
                                               .body_bytes_max = options->body_bytes_max,
                                               .headers_max = HTTP_HEADERS_MAX};
    server->limits[PORT_NODE] = (HeadLimits){
        .header_bytes_max = options->header_bytes_max + NODE_HEADER_BYTES_EXTRA,
        .body_bytes_max = options->body_bytes_max > NODE_BODY_BYTES_MAX ? options->body_bytes_max
                                                                        : NODE_BODY_BYTES_MAX,
        .headers_max = HTTP_NODE_HEADERS_MAX,
        .takes_node_headers = true};
}

Status http_server_open(const HttpOptions *options, HttpServer **out, Error *err)
{
    ASSERT(options->threads > 0);
    ASSERT(options->idle_ms > 0);
    ASSERT(options->request_ms > 0);
    ASSERT(options->pace_ms > 0);
    ASSERT(options->memory_bytes_max >= HTTP_MEMORY_BYTES_MIN);
    ASSERT(options->metrics->count >= options->threads);
    ASSERT(options->cert_file != NULL || !options->requires_tls);
    ASSERT(options->client_ca_file == NULL || options->requires_tls);
    ASSERT(options->node_secret == NULL || options->node_host != NULL);
    HttpServer *server = MEM_NEW(HttpServer);
    server->options = *options;
    set_limits(server);
    if (options->pace_ms > options->request_ms)
        server->options.pace_ms = options->request_ms;
    address_counts_open(&server->addresses, options->address_connections_max);
    conn_memory_init(&server->memory, options->memory_bytes_max, options->threads);
    latch_init(&server->opened);

    Status status = open_parts(server, err);
    if (status == STATUS_OK)
        status = open_loops(server, err);
    if (status != STATUS_OK) {
        http_server_close(server, 0);
        return status;
    }
    *out = server;
    return STATUS_OK;
}

uint16_t http_server_port(const HttpServer *server)
{
    return server->listeners[PORT_PUBLIC].port;
}

uint16_t http_node_port(const HttpServer *server)
{
    return server->listeners[PORT_NODE].port;
}

/* A message to a loop that ends no connection. */
typedef struct Retirement {
    HttpTask task;
    HttpLoop *loop;
    Latch *done;
} Retirement;

static void retire(HttpTask *task)
{
    Retirement *retirement = CONTAINER_OF(task, Retirement, task);
    retirement->loop->is_retiring = true;
    latch_post(retirement->done); /* the message may be gone from here on */
}

void http_server_retire(HttpServer *server)
{
    Latch done;
    latch_init(&done);
    Retirement *retirements = MEM_NEW_ARRAY(Retirement, server->options.threads);
    for (uint32_t i = 0; i < server->options.threads; i++) {
        HttpLoop *loop = server->loops[i];
        retirements[i] = (Retirement){.task.run = retire, .loop = loop, .done = &done};
        http_loop_post(loop, &retirements[i].task);
    }
    for (uint32_t i = 0; i < server->options.threads; i++)
        latch_wait(&done);
    mem_free(retirements);
    latch_done(&done);
}

uint32_t http_server_connections(const HttpServer *server)
{
    return atomic_load_explicit(&server->connections, memory_order_relaxed);
}

void http_server_close(HttpServer *server, uint32_t drain_ms)
{
    if (server == NULL)
        return;
    if (server->loops != NULL) {
        LoopStop *stops = MEM_NEW_ARRAY(LoopStop, server->options.threads);
        for (uint32_t i = 0; i < server->options.threads; i++)
            if (server->loops[i] != NULL && server->loops[i]->has_thread)
                loop_stop(server->loops[i], &stops[i], drain_ms);
        for (uint32_t i = 0; i < server->options.threads; i++)
            if (server->loops[i] != NULL)
                loop_join(server->loops[i]);
        mem_free(stops);
    }
    server_free(server);
}

static void server_free(HttpServer *server)
{
    for (uint32_t i = 0; server->loops != NULL && i < server->options.threads; i++) {
        if (server->loops[i] != NULL)
            tls_unref(server->loops[i]->tls);
        mem_free(server->loops[i]);
    }
    mem_free(server->loops);
    for (size_t i = 0; i < PORT_KINDS; i++)
        listen_close(&server->listeners[i]);
    tls_unref(server->tls);
    node_tls_close(server->node_tls);
    address_counts_close(&server->addresses);
    latch_done(&server->opened);
    mem_free(server);
}

static Status load_tls(const HttpServer *server, Tls **out, Error *err)
{
    TlsFiles files = {.cert = server->options.cert_file,
                      .key = server->options.key_file,
                      .client_ca = server->options.client_ca_file};
    return tls_open(&files, out, err);
}

/* New settings on their way to a loop. */
typedef struct TlsChange {
    HttpTask task;
    HttpLoop *loop;
    Tls *tls;
    Latch *done;
} TlsChange;

static void change_tls(HttpTask *task)
{
    TlsChange *change = CONTAINER_OF(task, TlsChange, task);
    tls_unref(change->loop->tls);
    change->loop->tls = change->tls;
    latch_post(change->done); /* the change may be gone from here on */
}

Status http_server_reload_tls(HttpServer *server, Error *err)
{
    AUTO(tls_unref) Tls *tls = NULL;
    TRY(load_tls(server, &tls, err));
    Latch done;
    latch_init(&done);
    TlsChange *changes = MEM_NEW_ARRAY(TlsChange, server->options.threads);
    for (uint32_t i = 0; i < server->options.threads; i++) {
        HttpLoop *loop = server->loops[i];
        changes[i] =
            (TlsChange){.task.run = change_tls, .loop = loop, .tls = tls_ref(tls), .done = &done};
        http_loop_post(loop, &changes[i].task);
    }
    for (uint32_t i = 0; i < server->options.threads; i++)
        latch_wait(&done);
    mem_free(changes);
    latch_done(&done);
    tls_unref(server->tls);
    server->tls = TAKE(tls);
    return STATUS_OK;
}

static Status open_parts(HttpServer *server, Error *err)
{
    const HttpOptions *options = &server->options;
    if (options->cert_file != NULL)
        TRY(load_tls(server, &server->tls, err));
    TRY(listen_open(options->host, options->port, options->threads, options->log,
                    &server->listeners[PORT_PUBLIC], err));
    if (options->node_secret != NULL) {
        TRY(node_tls_open(options->node_secret, &server->node_tls, err));
        server->options.node_secret = NULL; /* the caller's, which may go now */
        if (listen_open(options->node_host, options->node_port, options->threads, options->log,
                        &server->listeners[PORT_NODE], err) != STATUS_OK)
            return error_context(err, "the port for other nodes");
    }
    bool is_v6 = strchr(options->host, ':') != NULL;
    (void)snprintf(server->authority, sizeof(server->authority), is_v6 ? "[%s]:%u" : "%s:%u",
                   options->host, server->listeners[PORT_PUBLIC].port);
    return STATUS_OK;
}

static HttpLoop *make_loop(HttpServer *server, uint32_t index)
{
    HttpLoop *loop = MEM_NEW(HttpLoop);
    loop->server = server;
    loop->index = index;
    loop->metrics = &server->options.metrics->shards[index];
    for (size_t i = 0; i < PORT_KINDS; i++) {
        const Listeners *listeners = &server->listeners[i];
        if (listeners->fds == NULL) /* no node port */
            continue;
        loop->listen_fds[i] = listeners->fds + index * listeners->address_count;
        loop->listen_counts[i] = listeners->address_count;
    }
    loop->memory.all = &server->memory;
    loop->tls = tls_ref(server->tls);
    loop->wake_fd = -1;
    queue_init(&loop->tasks);
    return loop;
}

static Status open_loops(HttpServer *server, Error *err)
{
    uint32_t started = 0;
    Status status = STATUS_OK;
    server->loops = MEM_NEW_ARRAY(HttpLoop *, server->options.threads);
    for (; started < server->options.threads && status == STATUS_OK; started++) {
        server->loops[started] = make_loop(server, started);
        status = loop_start(server->loops[started], err);
    }
    for (uint32_t i = 0; i < started; i++)
        if (server->loops[i]->has_thread)
            latch_wait(&server->opened);
    for (uint32_t i = 0; i < started && status == STATUS_OK; i++)
        if (server->loops[i]->open_error != 0)
            status = error_set_errno(err, server->loops[i]->open_error, "cannot start a loop");
    return status;
}
