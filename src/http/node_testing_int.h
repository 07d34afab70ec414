/* node_testing_int.h - for tests of connections between nodes: two sites, calls from one to the
 * other, and a peer that does what no node would. */
#pragma once

#include "http/node_link_int.h"
#include "http/testing_int.h"

#include <signal.h>

static const NodeSecret SECRET UNUSED = {.bytes = "the secret of the cluster, 32 by"};
static const NodeSecret OTHER_SECRET UNUSED = {.bytes = "another one, which is of no use."};

typedef struct Fixture {
    Site *from;
    Site *to;
    char to_address[64];
} Fixture;

static inline Site *open_site(const NodeSecret *secret, uint16_t node_port)
{
    Site *site = site_make();
    site->options.node_secret = secret;
    site->options.node_host = "127.0.0.1";
    site->options.node_port = node_port;
    site_start(site);
    return site;
}

static inline int setup(void **state)
{
    Fixture *fixture = MEM_NEW(Fixture);
    fixture->from = open_site(&SECRET, 0);
    fixture->to = open_site(&SECRET, 0);
    (void)snprintf(fixture->to_address, sizeof(fixture->to_address), "127.0.0.1:%u",
                   http_node_port(fixture->to->server));
    *state = fixture;
    return 0;
}

static inline int teardown(void **state)
{
    Fixture *fixture = *state;
    site_end(fixture->from, 0);
    if (fixture->to != NULL)
        site_end(fixture->to, 0);
    mem_free(fixture);
    return 0;
}

/* A call that the test makes on a loop of a site. */
typedef struct Sent {
    HttpTask task;
    HttpLoop *loop;
    NodeCall call;
    Arena arena;
    _Atomic int done_count;
} Sent;

static inline void on_done(NodeCall *call)
{
    atomic_fetch_add(&CONTAINER_OF(call, Sent, call)->done_count, 1);
}

static inline void run_send(HttpTask *task)
{
    Sent *sent = CONTAINER_OF(task, Sent, task);
    node_link_send(sent->loop, &sent->call);
    assert_int_equal(atomic_load(&sent->done_count), 0);
}

static inline Sent *make_call(const char *address, const char *path, Slice body)
{
    Sent *sent = MEM_NEW(Sent);
    arena_init(&sent->arena, ARENA_SMALL_BYTES);
    sent->task.run = run_send;
    sent->call = (NodeCall){.address = slice_from_cstr(address),
                            .method = body.len > 0 ? SLICE("POST") : SLICE("GET"),
                            .path = slice_from_cstr(path),
                            .body = body,
                            .timeout_ms = WAIT_MS_MAX,
                            .answer_bytes_max = (size_t)32 << 20,
                            .arena = &sent->arena,
                            .done = on_done};
    return sent;
}

static inline void post_call(Site *site, size_t loop, Sent *sent)
{
    sent->loop = site->loops[loop];
    http_loop_post(sent->loop, &sent->task);
}

static inline void await_call(Sent *sent)
{
    WAIT_UNTIL(atomic_load(&sent->done_count) > 0);
}

static inline void end_call(Sent *sent)
{
    assert_int_equal(atomic_load(&sent->done_count), 1);
    arena_done(&sent->arena);
    mem_free(sent);
}

static inline Sent *call(Site *site, const char *address, const char *path, Slice body)
{
    Sent *sent = make_call(address, path, body);
    post_call(site, 0, sent);
    await_call(sent);
    return sent;
}

static inline void expect_outcome(Sent *sent, NodeCallOutcome outcome, Status status,
                                  const char *words)
{
    if (sent->call.outcome != outcome)
        fail_msg("expected outcome %d, found %d, status %d: %s", outcome, sent->call.outcome,
                 sent->call.status, sent->call.error.message);
    assert_int_equal(sent->call.error.status, status);
    if (strstr(sent->call.error.message, words) == NULL)
        fail_msg("expected '%s' in: %s", words, sent->call.error.message);
}

static inline void expect_answer(Sent *sent, int status, Slice body)
{
    if (sent->call.outcome != NODE_CALL_ANSWERED)
        fail_msg("outcome %d: %s", sent->call.outcome, sent->call.error.message);
    assert_int_equal(sent->call.status, status);
    assert_int_equal(sent->call.answer_body.len, body.len);
    assert_true(slice_equal(sent->call.answer_body, body));
}

static inline Slice answer_header_of(const Sent *sent, const char *name)
{
    for (size_t i = 0; i < sent->call.answer_header_count; i++)
        if (slice_equal(sent->call.answer_headers[i].name, slice_from_cstr(name)))
            return sent->call.answer_headers[i].value;
    return SLICE_EMPTY;
}

static inline void expect_header(const Sent *sent, const char *name, const char *value)
{
    Slice found = answer_header_of(sent, name);
    if (!slice_equal(found, slice_from_cstr(value)))
        fail_msg("%s: expected '%s', found '%.*s'", name, value, SLICE_ARG(found));
}

/* Runs 'change' on a loop's thread, and waits for it. */
typedef struct Change {
    HttpTask task;
    HttpLoop *loop;
    void (*change)(HttpLoop *loop);
    _Atomic bool is_done;
} Change;

static inline void run_change(HttpTask *task)
{
    Change *change = CONTAINER_OF(task, Change, task);
    change->change(change->loop);
    atomic_store(&change->is_done, true);
}

static inline void on_loop(Site *site, size_t loop, void (*change)(HttpLoop *loop))
{
    Change task = {.task.run = run_change, .loop = site->loops[loop], .change = change};
    http_loop_post(task.loop, &task.task);
    WAIT_UNTIL(atomic_load(&task.is_done));
}

/* So that a test need not wait for the usual ones. */
static inline void shorten_times(HttpLoop *loop)
{
    loop->links->connect_timeout.timeout = 300;
    loop->links->keep_timeout.timeout = 100;
    loop->proof_timeout.timeout = 300;
}

/* A peer made of one thread, which serves one connection after the other as a test wants. */
typedef struct Fake Fake;
struct Fake {
    int listen_fd;
    char address[64];
    pthread_t thread;
    pthread_mutex_t lock;
    int serving; /* guarded by 'lock': another descriptor of the connection that is served, or -1 */
    bool ends;   /* guarded by 'lock' */
    NodeTls *tls;
    void (*serve)(Fake *fake, int fd); /* the caller closes 'fd' */
    const char *answer;                /* for 'serve' */
    size_t answer_len;
    bool closes;     /* the connection, after the answer */
    bool terminates; /* TLS, and does not pass it on */
    uint16_t to_port;
    _Atomic int accepted;
    _Atomic int requests;
};

static inline void set_wait_max(int fd)
{
    struct timeval time = {.tv_sec = WAIT_MS_MAX / 1000};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)), 0);
}

static inline void *fake_run(void *arg)
{
    Fake *fake = arg;
    sigset_t signals;
    (void)sigfillset(&signals); /* as in a thread of the server: OpenSSL's writes may raise one */
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    for (;;) {
        int fd = accept(fake->listen_fd, NULL, NULL);
        if (fd < 0)
            break;
        set_wait_max(fd);
        atomic_fetch_add(&fake->accepted, 1);
        (void)pthread_mutex_lock(&fake->lock);
        fake->serving = dup(fd);
        if (fake->ends)
            (void)shutdown(fd, SHUT_RDWR);
        (void)pthread_mutex_unlock(&fake->lock);
        fake->serve(fake, fd);
        (void)pthread_mutex_lock(&fake->lock);
        (void)close(fake->serving);
        fake->serving = -1;
        (void)pthread_mutex_unlock(&fake->lock);
    }
    OPENSSL_thread_stop();
    return NULL;
}

static inline Fake *fake_open(const NodeSecret *secret, void (*serve)(Fake *fake, int fd))
{
    Error err;
    Fake *fake = MEM_NEW(Fake);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    fake->serve = serve;
    fake->serving = -1;
    (void)pthread_mutex_init(&fake->lock, NULL);
    if (node_tls_open(secret, &fake->tls, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    fake->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fake->listen_fd >= 0);
    assert_int_equal(bind(fake->listen_fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fake->listen_fd, 64), 0);
    assert_int_equal(getsockname(fake->listen_fd, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(fake->address, sizeof(fake->address), "127.0.0.1:%u", ntohs(address.sin_port));
    return fake;
}

static inline void fake_start(Fake *fake)
{
    assert_int_equal(pthread_create(&fake->thread, NULL, fake_run, fake), 0);
}

static inline void fake_close(Fake *fake)
{
    (void)pthread_mutex_lock(&fake->lock);
    fake->ends = true;
    if (fake->serving >= 0)
        (void)shutdown(fake->serving, SHUT_RDWR);
    (void)pthread_mutex_unlock(&fake->lock);
    (void)shutdown(fake->listen_fd, SHUT_RDWR); /* ends accept */
    assert_int_equal(pthread_join(fake->thread, NULL), 0);
    (void)close(fake->listen_fd);
    (void)pthread_mutex_destroy(&fake->lock);
    node_tls_close(fake->tls);
    mem_free(fake);
}

/* On a socket that blocks: the handshake, and the proof if 'proves'. */
static inline bool fake_greet(const NodeTls *tls, Transport *transport, TransportSide side)
{
    char *record = mem_alloc(TLS_RECORD_BYTES);
    NodeProof proof = {.side = side};
    bool wants_write = false;
    bool is_good =
        transport_handshake(transport, side == TRANSPORT_SERVER ? tls->server : tls->client, side,
                            &wants_write) == TRANSPORT_DONE &&
        node_proof_step(&proof, tls, transport, record) == TRANSPORT_DONE;
    mem_free(record);
    return is_good;
}

static inline int connect_to(uint16_t port)
{
    int fd = peer_socket();
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Reads until the empty line of a request; false if the other side ends before. */
static inline bool read_request(Transport *transport)
{
    char text[4096];
    size_t len = 0;
    while (memmem(text, len, "\r\n\r\n", 4) == NULL) {
        size_t got = 0;
        bool has_more = false;
        if (transport_read(transport, text + len, sizeof(text) - len, &got, &has_more) !=
            TRANSPORT_DONE)
            return false;
        len += got;
    }
    return true;
}

static inline void await_end(Transport *transport)
{
    char text[4096];
    size_t got = 0;
    bool has_more = false;
    while (transport_read(transport, text, sizeof(text), &got, &has_more) == TRANSPORT_DONE)
        continue;
}

/* Answers each request with fake->answer, and closes after it if that is wanted. */
static inline void serve_answer(Fake *fake, int fd)
{
    Transport transport = {.fd = fd};
    char *record = mem_alloc(TLS_RECORD_BYTES);
    bool goes_on = fake_greet(fake->tls, &transport, TRANSPORT_SERVER);
    while (goes_on && read_request(&transport)) {
        atomic_fetch_add(&fake->requests, 1);
        Output output = {.head = slice_make(fake->answer, fake->answer_len)};
        goes_on = transport_write(&transport, &output, record) == TRANSPORT_DONE && !fake->closes;
    }
    transport_close(&transport);
    mem_free(record);
}

static inline void serve_silence(Fake *fake, int fd)
{
    Transport transport = {.fd = fd};
    if (fake_greet(fake->tls, &transport, TRANSPORT_SERVER) && read_request(&transport))
        atomic_fetch_add(&fake->requests, 1);
    await_end(&transport);
    transport_close(&transport);
}

/* Takes TCP connections, and never says a word. */
static inline void serve_no_handshake(Fake *fake, int fd)
{
    Transport transport = {.fd = fd};
    (void)fake;
    await_end(&transport);
    transport_close(&transport);
}

/* A reset, as when a machine has lost its memory of the connection. */
static inline void serve_reset(Fake *fake, int fd)
{
    Transport transport = {.fd = fd};
    struct linger none = {.l_onoff = 1, .l_linger = 0};
    if (fake_greet(fake->tls, &transport, TRANSPORT_SERVER) && read_request(&transport))
        atomic_fetch_add(&fake->requests, 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    transport.tls_is_broken = true; /* says nothing more */
    transport_close(&transport);
}

static inline Fake *open_answering(const char *answer, size_t len, bool closes)
{
    Fake *fake = fake_open(&SECRET, serve_answer);
    fake->answer = answer;
    fake->answer_len = len;
    fake->closes = closes;
    fake_start(fake);
    return fake;
}
