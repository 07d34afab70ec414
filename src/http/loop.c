/* loop.c - see loop_int.h. */
#include "http/loop_int.h"

#include "base/thread.h"
#include "http/conn_int.h"
#include "http/node_link_int.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections accepted in a row, so that a storm of them does not starve the existing ones. */
#define ACCEPTS_MAX 64

/* How long to wait when the system has no descriptors or no memory for a connection. The clients
 * stay in the queue of the listening socket meanwhile. */
#define PAUSE_MS 100

/* A wait up to this is brief: to sleep and be woken would take about as long. */
#define BRIEF_WAIT_US 50

/* A longer wait counts as this much, so that a few brief ones make up for it. */
#define LONG_WAIT_US 400

/* A connection that has come when the loop ends must send its request within this. */
#define LAST_MS 1000

/* A connection on the node port must end its handshake and its proof within this. */
#define PROOF_MS 5000

/* Only the sender closes idle connections between nodes, long before this. */
#define NODE_IDLE_MS 600000

/* For clients that still send after an answer that closes the connection. */
#define LINGER_MS 2000

/* How long a connection must have waited for its client before it gives way to a new one. */
#define EVICT_SILENT_MS 1000
#define EVICT_HALF_MS   5000
#define EVICT_IDLE_MS   10000

static void *run(void *arg);
static void on_wake(h2o_socket_t *sock, const char *error);
static void on_accept(h2o_socket_t *sock, const char *error);
static void on_pause_over(h2o_timeout_entry_t *timer);
static void on_drain_over(h2o_timeout_entry_t *timer);

Status loop_start(HttpLoop *loop, Error *err)
{
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake_fd < 0)
        return error_set_errno(err, errno, "cannot make an eventfd");
    char name[THREAD_NAME_LEN_MAX + 1];
    (void)snprintf(name, sizeof(name), "orrery-loop-%u", loop->index);
    TRY(thread_start(&loop->thread, name, run, loop, err));
    loop->has_thread = true;
    return STATUS_OK;
}

void loop_join(HttpLoop *loop)
{
    if (loop->has_thread)
        (void)pthread_join(loop->thread, NULL); /* fails only if we wrote a bug */
    loop->has_thread = false;
    while (atomic_load_explicit(&loop->posting, memory_order_acquire) > 0)
        (void)sched_yield(); /* a few instructions on another thread */
    if (loop->wake_fd >= 0)
        (void)close(loop->wake_fd);
    loop->wake_fd = -1;
}

static void listen_start(HttpLoop *loop)
{
    for (size_t i = 0; i < loop->listener_count; i++)
        if (loop->listeners[i].sock != NULL)
            h2o_socket_read_start(loop->listeners[i].sock, on_accept);
}

static h2o_socket_t *watch_fd(HttpLoop *loop, int fd, void *data)
{
    h2o_socket_t *sock = h2o_evloop_socket_create(loop->events, fd, H2O_SOCKET_FLAG_DONT_READ);
    sock->data = data;
    return sock;
}

static void take_listeners(HttpLoop *loop, PortKind port)
{
    for (size_t i = 0; i < loop->listen_counts[port]; i++) {
        Listener *listener = &loop->listeners[loop->listener_count++];
        listener->loop = loop;
        listener->port = port;
        listener->sock = watch_fd(loop, loop->listen_fds[port][i], listener);
        loop->listen_fds[port][i] = -1;
    }
}

static void open_timeouts(HttpLoop *loop)
{
    const HttpOptions *options = &loop->server->options;
    uint32_t first_ms =
        options->idle_ms < options->request_ms ? options->idle_ms : options->request_ms;
    h2o_timeout_init(loop->events, &loop->first_timeout, first_ms);
    h2o_timeout_init(loop->events, &loop->last_timeout, LAST_MS);
    h2o_timeout_init(loop->events, &loop->idle_timeout, options->idle_ms);
    h2o_timeout_init(loop->events, &loop->proof_timeout, PROOF_MS);
    h2o_timeout_init(loop->events, &loop->node_timeout, NODE_IDLE_MS);
    h2o_timeout_init(loop->events, &loop->request_timeout, options->request_ms);
    h2o_timeout_init(loop->events, &loop->body_timeout, loop->server->options.pace_ms);
    h2o_timeout_init(loop->events, &loop->answer_timeout, loop->server->options.pace_ms);
    h2o_timeout_init(loop->events, &loop->linger_timeout, LINGER_MS);
    h2o_timeout_init(loop->events, &loop->soon_timeout, 0);
    h2o_timeout_init(loop->events, &loop->later_timeout, HTTP_LATER_MS);
    h2o_timeout_init(loop->events, &loop->pause_timeout, PAUSE_MS);
    loop->pause_timer.cb = on_pause_over;
    loop->drain_timer.cb = on_drain_over;
}

static void loop_open(HttpLoop *loop)
{
    random_init_secret(&loop->random);
    h2o_linklist_init_anchor(&loop->conns);
    loop->events = h2o_evloop_create();
    open_timeouts(loop);
    loop->links = node_links_open(loop);
    /* The eventfd stays open as long as any thread may post, which is longer than the loop lives.
     */
    int wake_fd = dup(loop->wake_fd);
    if (wake_fd < 0) {
        loop->open_error = errno;
        return;
    }
    loop->wake = watch_fd(loop, wake_fd, loop);
    h2o_socket_read_start(loop->wake, on_wake);
    take_listeners(loop, PORT_PUBLIC);
    take_listeners(loop, PORT_NODE);
    listen_start(loop);
    /* h2o does not say that it could not make its epoll descriptor until it is used. */
    if (h2o_evloop_run(loop->events, 0) != 0 && errno != EINTR)
        loop->open_error = errno;
    const HttpHandler *handler = &loop->server->options.handler;
    if (loop->open_error == 0 && handler->loop_open != NULL)
        loop->user = handler->loop_open(handler->ctx, loop);
}

static void listen_end(HttpLoop *loop)
{
    for (size_t i = 0; i < loop->listener_count; i++) {
        if (loop->listeners[i].sock != NULL)
            h2o_socket_close(loop->listeners[i].sock);
        loop->listeners[i].sock = NULL;
    }
    h2o_timeout_unlink(&loop->pause_timer);
}

static void loop_close(HttpLoop *loop)
{
    const HttpHandler *handler = &loop->server->options.handler;
    node_links_close(loop->links);
    if (loop->open_error == 0 && handler->loop_close != NULL)
        handler->loop_close(handler->ctx, loop->user);
    listen_end(loop);
    if (loop->wake != NULL)
        h2o_socket_close(loop->wake);
    h2o_timeout_t *timeouts[] = {
        &loop->first_timeout,  &loop->idle_timeout,   &loop->request_timeout, &loop->body_timeout,
        &loop->answer_timeout, &loop->linger_timeout, &loop->soon_timeout,    &loop->later_timeout,
        &loop->pause_timeout,  &loop->proof_timeout,  &loop->node_timeout,    &loop->last_timeout};
    for (size_t i = 0; i < ARRAY_COUNT(timeouts); i++)
        h2o_timeout_dispose(loop->events, timeouts[i]);
    if (loop->is_draining) {
        h2o_timeout_unlink(&loop->drain_timer);
        h2o_timeout_dispose(loop->events, &loop->drain_timeout);
    }
    h2o_evloop_destroy(loop->events); /* frees the closed sockets too */
    request_free_all(loop);
    ASSERT(loop->memory.held == 0);
    gzip_done(&loop->gzip);
}

static bool is_over(const HttpLoop *loop)
{
    return loop->is_draining && loop->conn_count == 0 && loop->request_count == 0;
}

void loop_awake(HttpLoop *loop)
{
    if (!loop->is_waiting)
        return;
    loop->is_waiting = false;
    uint64_t us = clock_monotonic_us(loop->server->options.clock) - loop->waiting_since_us;
    loop->usual_wait_us = (7 * loop->usual_wait_us + (us < LONG_WAIT_US ? us : LONG_WAIT_US)) / 8;
}

/* Waits for something to do, and does it. While waits are brief the loop polls instead of sleeping:
 * a client that sends one request after the other gets its answers sooner, and the cost is bounded
 * by what the answers cost anyway. */
static void turn(HttpLoop *loop)
{
    const Clock *clock = loop->server->options.clock;
    loop->is_waiting = true;
    loop->waiting_since_us = clock_monotonic_us(clock);
    bool looks = loop->usual_wait_us < BRIEF_WAIT_US;
    while (looks && loop->is_waiting) {
        (void)h2o_evloop_run(loop->events, 0);
        looks = clock_monotonic_us(clock) - loop->waiting_since_us < BRIEF_WAIT_US;
        if (looks && loop->is_waiting)
            (void)sched_yield(); /* the thread that we wait for may need the processor */
    }
    if (loop->is_waiting)
        (void)h2o_evloop_run(loop->events, INT32_MAX); /* fails when a debugger interrupts it */
}

static void *run(void *arg)
{
    HttpLoop *loop = arg;
    loop_open(loop);
    bool is_open = loop->open_error == 0;
    latch_post(&loop->server->opened);
    while (is_open && !is_over(loop))
        turn(loop);
    loop_close(loop);
    OPENSSL_thread_stop();
    return NULL;
}

/* Tasks from other threads. */

static void wake(HttpLoop *loop)
{
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(loop->wake_fd, &one, sizeof(one));
    } while (written < 0 && errno == EINTR);
    ASSERT(written == sizeof(one));
}

void http_loop_post(HttpLoop *loop, HttpTask *task)
{
    /* Once the task is in the queue the loop may run it and end, before we have woken it. */
    atomic_fetch_add_explicit(&loop->posting, 1, memory_order_relaxed);
    if (queue_push(&loop->tasks, &task->node))
        wake(loop); /* otherwise the first poster has woken it, or is about to */
    atomic_fetch_sub_explicit(&loop->posting, 1, memory_order_release);
}

static void on_wake(h2o_socket_t *sock, const char *error)
{
    (void)error; /* h2o does not read for us */
    HttpLoop *loop = sock->data;
    loop_awake(loop);
    uint64_t count;
    /* Read before the tasks are taken, so that a task posted later wakes the loop again. */
    if (read(loop->wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN && errno != EINTR)
        ASSERT(!"an eventfd can be read");
    QueueNode *node = queue_take(&loop->tasks);
    while (node != NULL) {
        HttpTask *task = CONTAINER_OF(node, HttpTask, node);
        node = node->next; /* the task may be gone once it has run */
        task->run(task);
    }
}

/* Work that a request has to wait for. */

typedef struct Later {
    h2o_timeout_entry_t entry;
    HttpTimer *timer;
} Later;

static_assert(sizeof(Later) <= sizeof(((HttpTimer *)NULL)->room), "a timer has room for h2o's own");

static void on_later(h2o_timeout_entry_t *entry)
{
    HttpTimer *timer = CONTAINER_OF(entry, Later, entry)->timer;
    timer->run(timer);
}

void http_loop_later(HttpLoop *loop, HttpTimer *timer)
{
    Later *later = (Later *)(void *)timer->room;
    *later = (Later){.entry.cb = on_later, .timer = timer};
    h2o_timeout_link(loop->events, &loop->later_timeout, &later->entry);
}

/* New connections. */

static void pause_accepting(HttpLoop *loop, int code)
{
    LOG_WARN(loop->server->options.log, "http.accept_paused", "loop=%u pause_ms=%d reason=\"%s\"",
             loop->index, PAUSE_MS, strerror(code));
    for (size_t i = 0; i < loop->listener_count; i++)
        h2o_socket_read_stop(loop->listeners[i].sock);
    h2o_timeout_unlink(&loop->pause_timer);
    h2o_timeout_link(loop->events, &loop->pause_timeout, &loop->pause_timer);
}

static void on_pause_over(h2o_timeout_entry_t *timer)
{
    listen_start(CONTAINER_OF(timer, HttpLoop, pause_timer));
}

static HttpClient client_of_socket(int fd)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    /* It fails if the client has gone already. All of those are one client, which has no address
     * and the limits of one: what they have sent is still read. */
    if (getpeername(fd, (struct sockaddr *)&address, &len) != 0)
        return (HttpClient){0};
    return client_of_address((const struct sockaddr *)&address);
}

static bool is_limited(const HttpServer *server, HttpClient client)
{
    return !client.is_local || server->options.limits_local_clients;
}

void loop_forget_client(HttpLoop *loop, HttpClient client)
{
    HttpServer *server = loop->server;
    atomic_fetch_sub_explicit(&server->connections, 1, memory_order_relaxed);
    if (is_limited(server, client))
        address_counts_leave(&server->addresses, client);
}

/* The connection of a client that has waited longest with this timeout, or NULL. Nodes are not
 * counted with clients, so closing their connections makes no place. */
static Conn *oldest_public(const h2o_timeout_t *timeout)
{
    const h2o_linklist_t *first = &timeout->_entries;
    for (const h2o_linklist_t *link = first->next; link != first; link = link->next) {
        Conn *conn = CONTAINER_OF(link, Conn, timer._link);
        if (conn->port == PORT_PUBLIC)
            return conn;
    }
    return NULL;
}

/* The server is full. Closes the connection of this loop that has waited longest for a client to
 * say something: one that never has, then one that stopped in the middle of a handshake or a head,
 * then one that is idle after a request. A client that works is none of these. Otherwise whoever
 * opens connections and leaves them so could keep all others out. The timeouts are in the order in
 * which they were set, so the first of each is the oldest. */
static bool make_place(HttpLoop *loop)
{
    const struct {
        h2o_timeout_t *timeout;
        uint64_t ms_min; /* so that nobody is thrown out who has just come */
    } rows[] = {
        {&loop->first_timeout, EVICT_SILENT_MS},
        {&loop->request_timeout, EVICT_HALF_MS},
        {&loop->idle_timeout, EVICT_IDLE_MS},
    };
    uint64_t now_ms = h2o_now(loop->events);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Conn *oldest = oldest_public(rows[i].timeout);
        if (oldest == NULL)
            continue;
        if (now_ms < oldest->timer.registered_at + rows[i].ms_min)
            continue;
        metrics_add(loop->metrics, METRIC_CONNECTIONS_EVICTED, 1);
        conn_close(oldest);
        return true;
    }
    return false;
}

/* Whether there is a place for one connection more, which then counts. */
static bool take_place(HttpLoop *loop, HttpClient client)
{
    HttpServer *server = loop->server;
    if (is_limited(server, client) && !address_counts_enter(&server->addresses, client)) {
        metrics_add(loop->metrics, METRIC_CONNECTIONS_ADDRESS_REFUSED, 1);
        return false;
    }
    uint32_t open = atomic_fetch_add_explicit(&server->connections, 1, memory_order_relaxed);
    if (open < server->options.connections_max || make_place(loop))
        return true;
    metrics_add(loop->metrics, METRIC_CONNECTIONS_REFUSED, 1);
    loop_forget_client(loop, client);
    return false;
}

static void take_client(HttpLoop *loop, h2o_socket_t *sock)
{
    HttpClient client = client_of_socket(h2o_socket_get_fd(sock));
    if (!take_place(loop, client)) {
        h2o_socket_close(sock);
    } else if (!conn_open(loop, PORT_PUBLIC, sock, client)) {
        metrics_add(loop->metrics, METRIC_CONNECTIONS_REFUSED, 1);
        loop_forget_client(loop, client);
        h2o_socket_close(sock);
    }
}

/* Clients cannot take the places of nodes, nor the other way round. Those that have proved
 * themselves have no limit here but memory: the senders limit them. */
static void take_node(HttpLoop *loop, h2o_socket_t *sock)
{
    if (loop->proving_count >= LOOP_PROVING_MAX)
        conn_close(CONTAINER_OF(loop->proof_timeout._entries.next, Conn, timer._link));
    if (!conn_open(loop, PORT_NODE, sock, client_of_socket(h2o_socket_get_fd(sock)))) {
        metrics_add(loop->metrics, METRIC_CONNECTIONS_REFUSED, 1);
        h2o_socket_close(sock);
    }
}

static void on_accept(h2o_socket_t *listening, const char *error)
{
    (void)error; /* h2o does not accept for us */
    Listener *listener = listening->data;
    HttpLoop *loop = listener->loop;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        h2o_socket_t *sock = h2o_evloop_socket_accept(listening);
        if (sock == NULL && (errno == ECONNABORTED || errno == EINTR))
            continue;
        if (sock == NULL) {
            if (errno != EAGAIN)
                pause_accepting(loop, errno);
            return;
        }
        if (listener->port == PORT_NODE)
            take_node(loop, sock);
        else
            take_client(loop, sock);
    }
}

/* The end. */

static void close_conns(HttpLoop *loop, void (*end)(Conn *conn))
{
    h2o_linklist_t *link = loop->conns.next;
    while (link != &loop->conns) {
        Conn *conn = CONTAINER_OF(link, Conn, link);
        link = link->next;
        end(conn);
    }
}

static void on_drain_over(h2o_timeout_entry_t *timer)
{
    HttpLoop *loop = CONTAINER_OF(timer, HttpLoop, drain_timer);
    close_conns(loop, conn_close);
    node_links_stop(loop->links); /* the handler can answer what waits for other nodes */
}

/* Those that the system has accepted: it would reset them with the listening socket, and their
 * clients could not know whether a request was handled. */
static void accept_last(HttpLoop *loop)
{
    for (size_t i = 0; i < loop->listener_count; i++)
        if (loop->listeners[i].sock != NULL)
            on_accept(loop->listeners[i].sock, NULL);
}

static void drain(HttpTask *task)
{
    LoopStop *stop = CONTAINER_OF(task, LoopStop, task);
    HttpLoop *loop = stop->loop;
    accept_last(loop);
    loop->is_draining = true;
    listen_end(loop);
    close_conns(loop, conn_drain);
    h2o_timeout_init(loop->events, &loop->drain_timeout, stop->drain_ms);
    h2o_timeout_link(loop->events, &loop->drain_timeout, &loop->drain_timer);
}

void loop_stop(HttpLoop *loop, LoopStop *stop, uint32_t drain_ms)
{
    *stop = (LoopStop){.task.run = drain, .loop = loop, .drain_ms = drain_ms};
    http_loop_post(loop, &stop->task);
}

/* Memory. */

bool loop_take(HttpLoop *loop, uint64_t bytes, ConnMemoryUse use)
{
    bool is_taken = conn_memory_take(&loop->memory, bytes, use);
    if (is_taken)
        metrics_add(loop->metrics, METRIC_MEMORY_BYTES, (int64_t)bytes);
    return is_taken;
}

void loop_force(HttpLoop *loop, uint64_t bytes)
{
    conn_memory_force(&loop->memory, bytes);
    metrics_add(loop->metrics, METRIC_MEMORY_BYTES, (int64_t)bytes);
}

void loop_give(HttpLoop *loop, uint64_t bytes)
{
    conn_memory_give(&loop->memory, bytes);
    metrics_add(loop->metrics, METRIC_MEMORY_BYTES, -(int64_t)bytes);
}

/* What the handler may ask. */

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

Slice http_loop_certificate(const HttpLoop *loop)
{
    return loop->tls == NULL ? SLICE_EMPTY : loop->tls->certificate;
}

const char *http_loop_date(HttpLoop *loop)
{
    /* The loop's own time moves at most once a turn, so a busy turn asks the clock once. */
    uint64_t now_ms = h2o_now(loop->events);
    if (now_ms == loop->date_checked_at)
        return loop->date;
    loop->date_checked_at = now_ms;
    int64_t now_s = clock_wall_s(loop->server->options.clock);
    if (now_s != loop->date_s) {
        loop->date_s = now_s;
        date_print(now_s, loop->date);
    }
    return loop->date;
}
