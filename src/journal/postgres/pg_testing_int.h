/* pg_testing_int.h - for tests: a pair of real servers, and a proxy that loses, holds and delivers
 * what is sent to them.
 */
#pragma once

#include "base/buf.h"
#include "base/thread.h"
#include "journal/journal_testing_int.h"
#include "journal/memory/memory_journal.h"
#include "journal/postgres/postgres_journal.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- servers ---- */

/* Of test/postgres-pair.sh, which says what each command does. */
typedef struct PostgresPair {
    char folder[64];
    char script[512];
} PostgresPair;

/* Runs a command; what it prints goes to 'out', cut to 'size', unless that is NULL. */
static inline int pair_run(const PostgresPair *pair, const char *command, const char *server,
                           const char *text, char *out, size_t size)
{
    char pid[16];
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    const char *argv[] = {pair->script, command, pair->folder, server == NULL ? pid : server,
                          text,         NULL};
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
    assert_int_equal(posix_spawn_file_actions_adddup2(&actions, fds[1], 1), 0);
    pid_t child = 0;
    assert_int_equal(posix_spawn(&child, pair->script, &actions, NULL,
                                 UNCONST(char *, (const char **)argv), environ),
                     0);
    (void)posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    size_t len = 0;
    char chunk[4096];
    for (ssize_t got; (got = read(fds[0], chunk, sizeof(chunk))) > 0;) {
        for (ssize_t i = 0; i < got && out != NULL && len + 1 < size; i++)
            out[len++] = chunk[i];
    }
    close(fds[0]);
    if (out != NULL) {
        while (len > 0 && out[len - 1] == '\n')
            len--;
        out[len] = '\0';
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void pair_do(const PostgresPair *pair, const char *command, const char *server)
{
    assert_int_equal(pair_run(pair, command, server, NULL, NULL, 0), 0);
}

static inline void pair_sql(const PostgresPair *pair, const char *server, const char *sql,
                            char *out, size_t size)
{
    assert_int_equal(pair_run(pair, "sql", server, sql, out, size), 0);
}

static inline uint16_t pair_port(const PostgresPair *pair, const char *server)
{
    char text[16];
    assert_int_equal(pair_run(pair, "port", server, NULL, text, sizeof(text)), 0);
    return (uint16_t)strtoul(text, NULL, 10);
}

static inline void pair_start(PostgresPair *pair)
{
    /* The root of the source tree is three folders above this file. */
    static const char file[] = __FILE__;
    size_t len = strlen(file) - strlen("src/journal/postgres/pg_testing_int.h");
    (void)snprintf(pair->script, sizeof(pair->script), "%.*stest/postgres-pair.sh", (int)len, file);
    (void)snprintf(pair->folder, sizeof(pair->folder), "/tmp/orrery_pair_XXXXXX");
    assert_non_null(mkdtemp(pair->folder));
    assert_int_equal(chmod(pair->folder, 0755), 0);
    pair_do(pair, "start", NULL);
}

static inline void pair_end(PostgresPair *pair)
{
    if (pair->folder[0] != '\0')
        pair_do(pair, "end", "-");
    pair->folder[0] = '\0';
}
DEFINE_AUTO_VALUE(PostgresPair, pair_end)

/* The URL of both servers, with 'options' after it; lives in the arena of the test. */
static inline const char *pair_url(const PostgresPair *pair, const char *options)
{
    Slice url =
        arena_format(&test_arena, "postgresql://postgres@127.0.0.1:%u,127.0.0.1:%u/postgres%s",
                     pair_port(pair, "a"), pair_port(pair, "b"), options);
    return arena_cstr(&test_arena, url);
}

/* 'format' is the newest that the journal reads; 0 for JOURNAL_FORMAT. */
static inline Journal *open_postgres_of(const char *url, uint64_t rotate_bytes, uint32_t format)
{
    PostgresJournalOptions options = {.url = url, .rotate_bytes = rotate_bytes, .format = format};
    memcpy(options.secret, TEST_SECRET, sizeof(options.secret));
    Journal *journal = NULL;
    assert_ok(postgres_journal_open(&options, &journal, err));
    return journal;
}

static inline Journal *open_postgres(const char *url, uint64_t rotate_bytes)
{
    return open_postgres_of(url, rotate_bytes, 0);
}

/* A pair of servers, with a node that owns a space. */
typedef struct Rig {
    PostgresPair pair;
    Journal *a;
    JournalPlace place; /* of space 1, which is of 'a' */
} Rig;

static inline void rig_init(Rig *rig, const char *options)
{
    *rig = (Rig){0};
    pair_start(&rig->pair);
    rig->a = open_postgres(pair_url(&rig->pair, options), 32 << 10);
    (void)join_as(rig->a, "a", 0);
    create_space(rig->a, 1);
    rig->place = owner_of(rig->a, 1).tail;
}

static inline void rig_done(Rig *rig)
{
    journal_close(rig->a);
    pair_end(&rig->pair);
}
DEFINE_AUTO_VALUE(Rig, rig_done)

/* ---- the proxy ---- */

/* It understands the protocol as far as to see where messages end, and which of them begin an
 * append. Faults are those of memory_journal.h.
 *
 *     message = | type u8 | length of the rest and of itself i32 | ... |, the first without a type
 */
enum { PROXY_CONNS_MAX = 64, PROXY_BYTES_MAX = 256 << 20 };

typedef struct ProxyConn {
    int client; /* -1 if it was closed */
    int server;
    bool has_begun;
    bool is_swallowing; /* the answer is not passed on, and then everything is closed */
    bool is_hung;       /* an append was taken, and nothing more is passed on to the server */
    bool is_holding;
    bool is_held; /* a whole append waits in 'held' */
    Buf in;       /* from the client, less than a message */
    Buf answer;   /* from the server, while swallowing */
    Buf held;
} ProxyConn;

typedef struct PgProxy {
    pthread_mutex_t lock;
    MemoryJournalFault fault;
    unsigned count; /* of appends that meet it */
    bool hangs;     /* the connection of the next append */
    uint32_t slow;  /* bytes a millisecond that come from the server; 0 for all there are */
    bool is_stopping;
    bool is_cut; /* nothing is accepted, and everything is closed */
    uint16_t target;
    int listener;
    uint16_t port;
    pthread_t thread;
    ProxyConn conns[PROXY_CONNS_MAX];
    size_t conn_count;
} PgProxy;

static inline void proxy_close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static inline void proxy_drop(ProxyConn *conn)
{
    proxy_close_fd(&conn->client);
    proxy_close_fd(&conn->server);
    conn->is_hung = conn->is_held = conn->is_holding = conn->is_swallowing = false;
}

static inline bool proxy_send(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        len -= (size_t)sent;
    }
    return true;
}

static inline uint32_t proxy_u32(const char *at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 8 | (uint8_t)at[i];
    return value;
}

/* The length of the message at the beginning, or 0 if it is not whole. */
static inline size_t proxy_message(const Buf *buf, size_t at, bool has_type)
{
    size_t head = has_type ? 5 : 4;
    if (buf->len - at < head)
        return 0;
    size_t len = proxy_u32(buf->ptr + at + head - 4) + head - 4;
    return buf->len - at < len ? 0 : len;
}

/* A Bind: the name of a portal, that of a statement, ... */
static inline bool proxy_is_append(const char *message, size_t len)
{
    if (message[0] != 'B')
        return false;
    size_t name = 5 + strnlen(message + 5, len - 5) + 1;
    return name + 6 <= len && memcmp(message + name, "APPEND", 6) == 0;
}

static inline bool proxy_meets_fault(PgProxy *proxy, ProxyConn *conn)
{
    if (proxy->count == 0)
        return false;
    proxy->count--;
    if (proxy->fault == MEMORY_JOURNAL_LOSE_REQUEST)
        proxy_drop(conn);
    conn->is_swallowing = proxy->fault == MEMORY_JOURNAL_LOSE_ANSWER;
    conn->is_holding = proxy->fault == MEMORY_JOURNAL_DELAY;
    return true;
}

static inline void proxy_from_client(PgProxy *proxy, ProxyConn *conn)
{
    char chunk[65536];
    ssize_t got = recv(conn->client, chunk, sizeof(chunk), 0);
    if (got <= 0) {
        proxy_drop(conn);
        return;
    }
    buf_bytes(&conn->in, chunk, (size_t)got);
    size_t at = 0;
    for (size_t len; (len = proxy_message(&conn->in, at, conn->has_begun)) > 0; at += len) {
        const char *message = conn->in.ptr + at;
        bool is_typed = conn->has_begun;
        conn->has_begun = true;
        if (is_typed && proxy->hangs && proxy_is_append(message, len)) {
            conn->is_hung = true;
            proxy->hangs = false;
        }
        if (conn->is_hung)
            continue;
        if (is_typed && !conn->is_holding && proxy_is_append(message, len) &&
            proxy_meets_fault(proxy, conn) && conn->server < 0)
            return;
        if (conn->is_holding) {
            buf_bytes(&conn->held, message, len);
            if (message[0] == 'S') {
                conn->is_holding = false;
                conn->is_held = true;
                proxy_close_fd(&conn->client);
                return;
            }
        } else if (!proxy_send(conn->server, message, len)) {
            proxy_drop(conn);
            return;
        }
    }
    memmove(conn->in.ptr, conn->in.ptr + at, conn->in.len - at);
    conn->in.len -= at;
}

static inline bool proxy_answer_is_whole(const Buf *answer)
{
    size_t at = 0;
    for (size_t len; (len = proxy_message(answer, at, true)) > 0; at += len) {
        if (answer->ptr[at] == 'Z')
            return true;
    }
    return false;
}

static inline void proxy_from_server(const PgProxy *proxy, ProxyConn *conn)
{
    char chunk[65536];
    ssize_t got = recv(conn->server, chunk, sizeof(chunk), 0);
    if (got <= 0) {
        proxy_drop(conn);
        return;
    }
    if (proxy->slow > 0)
        sleep_ms((uint32_t)got / proxy->slow);
    if (conn->is_swallowing) {
        buf_bytes(&conn->answer, chunk, (size_t)got);
        if (proxy_answer_is_whole(&conn->answer))
            proxy_drop(conn);
    } else if (conn->client >= 0 && !proxy_send(conn->client, chunk, (size_t)got)) {
        proxy_drop(conn);
    }
}

static inline int proxy_connect(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        proxy_close_fd(&fd);
    return fd;
}

static inline void proxy_accept(PgProxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0)
        return;
    int server = proxy->is_cut ? -1 : proxy_connect(proxy->target);
    ProxyConn *conn = NULL;
    for (size_t i = 0; i < PROXY_CONNS_MAX && conn == NULL; i++) {
        if (proxy->conns[i].server < 0)
            conn = &proxy->conns[i];
    }
    if (server < 0 || conn == NULL) {
        close(client);
        proxy_close_fd(&server);
        return;
    }
    int on = 1;
    (void)setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    conn->client = client;
    conn->server = server;
    conn->has_begun = false;
    buf_reset(&conn->in);
    buf_reset(&conn->answer);
    buf_reset(&conn->held);
}

static inline void *proxy_run(void *ctx)
{
    PgProxy *proxy = ctx;
    for (;;) {
        struct pollfd fds[1 + 2 * PROXY_CONNS_MAX];
        fds[0] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
        pthread_mutex_lock(&proxy->lock);
        bool is_stopping = proxy->is_stopping;
        for (size_t i = 0; i < PROXY_CONNS_MAX; i++) {
            fds[1 + 2 * i] = (struct pollfd){.fd = proxy->conns[i].client, .events = POLLIN};
            fds[2 + 2 * i] = (struct pollfd){.fd = proxy->conns[i].server, .events = POLLIN};
        }
        pthread_mutex_unlock(&proxy->lock);
        if (is_stopping)
            return NULL;
        if (poll(fds, ARRAY_COUNT(fds), 20) <= 0)
            continue;
        pthread_mutex_lock(&proxy->lock);
        for (size_t i = 0; i < PROXY_CONNS_MAX; i++) {
            ProxyConn *conn = &proxy->conns[i];
            if (fds[2 + 2 * i].revents != 0 && conn->server == fds[2 + 2 * i].fd)
                proxy_from_server(proxy, conn);
            if (fds[1 + 2 * i].revents != 0 && conn->client >= 0 &&
                conn->client == fds[1 + 2 * i].fd)
                proxy_from_client(proxy, conn);
        }
        if (fds[0].revents != 0)
            proxy_accept(proxy);
        pthread_mutex_unlock(&proxy->lock);
    }
}

static inline PgProxy *proxy_new(uint16_t target)
{
    PgProxy *proxy = MEM_NEW(PgProxy);
    (void)pthread_mutex_init(&proxy->lock, NULL);
    proxy->target = target;
    for (size_t i = 0; i < PROXY_CONNS_MAX; i++) {
        proxy->conns[i] = (ProxyConn){.client = -1, .server = -1};
        buf_init(&proxy->conns[i].in, PROXY_BYTES_MAX);
        buf_init(&proxy->conns[i].answer, PROXY_BYTES_MAX);
        buf_init(&proxy->conns[i].held, PROXY_BYTES_MAX);
    }
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    assert_int_equal(bind(proxy->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(proxy->listener, 64), 0);
    assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&address, &len), 0);
    proxy->port = ntohs(address.sin_port);
    assert_ok(thread_start(&proxy->thread, "proxy", proxy_run, proxy, err));
    return proxy;
}

static inline void proxy_free(PgProxy *proxy)
{
    if (proxy == NULL)
        return;
    pthread_mutex_lock(&proxy->lock);
    proxy->is_stopping = true;
    pthread_mutex_unlock(&proxy->lock);
    pthread_join(proxy->thread, NULL);
    for (size_t i = 0; i < PROXY_CONNS_MAX; i++) {
        proxy_drop(&proxy->conns[i]);
        buf_done(&proxy->conns[i].in);
        buf_done(&proxy->conns[i].answer);
        buf_done(&proxy->conns[i].held);
    }
    close(proxy->listener);
    (void)pthread_mutex_destroy(&proxy->lock);
    mem_free(proxy);
}
DEFINE_AUTO(PgProxy *, proxy_free)

/* The next 'count' appends meet the fault. */
static inline void proxy_fail(PgProxy *proxy, MemoryJournalFault fault, unsigned count)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->fault = fault;
    proxy->count = count;
    pthread_mutex_unlock(&proxy->lock);
}

/* The next append never gets to the server, and its connection stays as it is. */
static inline void proxy_hang(PgProxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->hangs = true;
    pthread_mutex_unlock(&proxy->lock);
}

static inline void proxy_slow_down(PgProxy *proxy, uint32_t bytes_per_ms)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->slow = bytes_per_ms;
    pthread_mutex_unlock(&proxy->lock);
}

/* Sends what is held to the server; the answers go to nobody. Returns when the server has dealt
 * with it. */
static inline void proxy_deliver(PgProxy *proxy)
{
    pthread_mutex_lock(&proxy->lock);
    for (size_t i = 0; i < PROXY_CONNS_MAX; i++) {
        ProxyConn *conn = &proxy->conns[i];
        if (!conn->is_held)
            continue;
        conn->is_held = false;
        conn->is_swallowing = true;
        if (!proxy_send(conn->server, conn->held.ptr, conn->held.len))
            proxy_drop(conn);
    }
    bool is_busy = true;
    while (is_busy) {
        is_busy = false;
        for (size_t i = 0; i < PROXY_CONNS_MAX; i++)
            is_busy |= proxy->conns[i].is_swallowing;
        pthread_mutex_unlock(&proxy->lock);
        if (is_busy)
            sleep_ms(1);
        pthread_mutex_lock(&proxy->lock);
    }
    pthread_mutex_unlock(&proxy->lock);
}

/* To the other server from now on. */
static inline void proxy_aim(PgProxy *proxy, uint16_t target)
{
    pthread_mutex_lock(&proxy->lock);
    proxy->target = target;
    pthread_mutex_unlock(&proxy->lock);
}
