/* client_test.c - endpoints, calls at the same time, and servers of every kind. */
#include "client/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define KEY \
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

static Status open_client(const char *endpoint, uint32_t timeout_ms, Client **out, Error *err)
{
    ClientOptions options = {.endpoint = endpoint, .key = KEY, .timeout_ms = timeout_ms};
    return client_open(&options, out, err);
}

static void endpoints_are_accepted(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "http://localhost:8081", "HTTP://localhost:8081/", "https://localhost:8081",
        "http://db.example.com", "http://10.0.0.1:1/",     "http://[::1]:8081/",
        "http://a:65535",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(client_close) Client *client = NULL;
        Error err = {0};
        if (open_client(rows[i], 1000, &client, &err) != STATUS_OK)
            fail_msg("'%s' was refused: %s", rows[i], err.message);
    }
}

static void what_is_no_endpoint_is_refused_with_an_example(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",           "localhost:8081",  "ftp://a",          "http://",         "http://:80",
        "http://a?b", "http://a:65536",  "http://a:8081/db", "http://a:80b",    "http://[::1",
        "http://a b", "http://[::1]80b", "http://a\r\nx: y", "http://user@ho/", "http://a/#b",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Client *client = NULL;
        Error err;
        if (open_client(rows[i], 1000, &client, &err) != STATUS_BAD_REQUEST)
            fail_msg("'%s' was accepted", rows[i]);
        assert_non_null(strstr(err.message, "http://localhost:8081"));
    }
}

static void what_is_no_key_is_refused(void **state)
{
    (void)state;
    ClientOptions options = {.endpoint = "http://localhost:8081", .key = "%", .timeout_ms = 1};
    Client *client = NULL;
    Error err;
    assert_int_equal(client_open(&options, &client, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "base64"));
}

/* A server of one connection: for each request it reads until the blank line and says its line. */
typedef struct Peer {
    pthread_t thread;
    int fd;
    const char *says; /* NULL for nothing, as long as the client stays; "" for bytes without end */
    int requests;     /* as many are answered */
    char heard[2000]; /* the last request */
    char endpoint[64];
} Peer;

static void serve_request(Peer *peer, int fd)
{
    memset(peer->heard, 0, sizeof(peer->heard));
    size_t len = 0;
    ssize_t got = 1;
    while (fd >= 0 && got > 0 && len + 1 < sizeof(peer->heard) &&
           strstr(peer->heard, "\r\n\r\n") == NULL) {
        got = read(fd, peer->heard + len, sizeof(peer->heard) - 1 - len);
        len += got > 0 ? (size_t)got : 0;
    }
    char byte = 'x';
    if (peer->says == NULL)
        (void)!read(fd, &byte, 1);
    else if (peer->says[0] != '\0')
        (void)!send(fd, peer->says, strlen(peer->says), MSG_NOSIGNAL);
    else {
        static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
        (void)!send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL);
        while (send(fd, peer->heard, sizeof(peer->heard), MSG_NOSIGNAL) > 0)
            continue;
    }
}

static void *serve_one(void *arg)
{
    Peer *peer = arg;
    int fd = accept(peer->fd, NULL, NULL);
    for (int i = 0; i < peer->requests; i++)
        serve_request(peer, fd);
    (void)close(fd);
    return NULL;
}

static void peer_open(Peer *peer, const char *says, int requests, void *(*serve)(void *))
{
    *peer = (Peer){.says = says, .requests = requests};
    peer->fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(peer->fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(peer->fd, 16), 0);
    assert_int_equal(getsockname(peer->fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(peer->endpoint, sizeof(peer->endpoint), "http://127.0.0.1:%u",
                   ntohs(address.sin_port));
    assert_int_equal(pthread_create(&peer->thread, NULL, serve, peer), 0);
}

static void peer_close(Peer *peer)
{
    assert_int_equal(pthread_join(peer->thread, NULL), 0);
    (void)close(peer->fd);
}

static ClientCall call_of(Arena *arena)
{
    return (ClientCall){
        .path = SLICE("/a?b=c"),
        .resource_type = SLICE("colls"),
        .resource_link = SLICE("dbs/d/colls/c"),
        .arena = arena,
    };
}

/* One call, until it has ended. */
static Status get(Client *client, Arena *arena, ClientCall *call)
{
    *call = call_of(arena);
    client_start(client, call);
    ClientCall *ended = NULL;
    Error err;
    assert_int_equal(client_wait(client, -1, &ended, &err), STATUS_OK);
    assert_ptr_equal(ended, call);
    assert_int_equal(client_wait(client, -1, &ended, &err), STATUS_OK);
    assert_null(ended);
    return call->error.status;
}

static void calls_share_a_connection_and_are_signed(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello", 3, serve_one);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *client = NULL;
    Error err;
    assert_int_equal(open_client(peer.endpoint, 5000, &client, &err), STATUS_OK);
    for (int i = 0; i < 3; i++) {
        ClientCall call;
        assert_int_equal(get(client, &arena, &call), STATUS_OK);
        assert_int_equal(call.http_status, 200);
        assert_true(slice_equal(call.body, SLICE("hello")));
    }
    peer_close(&peer);
    assert_ptr_equal(strstr(peer.heard, "GET /a?b=c HTTP/1.1\r\n"), peer.heard);
    assert_non_null(strstr(peer.heard, "\r\nauthorization: type%3Dmaster%26ver%3D1.0%26sig%3D"));
    assert_non_null(strstr(peer.heard, "\r\nx-ms-date: "));
}

static void a_post_has_its_headers_and_its_content(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer,
              "HTTP/1.1 100 Continue\r\nx-a: interim\r\n\r\n"
              "HTTP/1.1 429 Too Many\r\nX-Ms-Retry-After-Ms:  17 \r\nx-b:\r\n"
              "content-length: 0\r\n\r\n",
              1, serve_one);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *client = NULL;
    Error err;
    assert_int_equal(open_client(peer.endpoint, 5000, &client, &err), STATUS_OK);
    const ClientHeader headers[] = {{"x-ms-documentdb-is-upsert", SLICE("True")}};
    ClientCall call = call_of(&arena);
    call.method = CLIENT_POST;
    call.headers = headers;
    call.header_count = 1;
    call.content = SLICE("{\"id\":\"1\"}");
    client_start(client, &call);
    ClientCall *ended = NULL;
    assert_int_equal(client_wait(client, -1, &ended, &err), STATUS_OK);
    assert_ptr_equal(ended, &call);
    assert_int_equal(call.error.status, STATUS_OK);
    peer_close(&peer);
    assert_int_equal(call.http_status, 429);
    assert_true(slice_equal(client_header(&call, SLICE("x-ms-retry-after-ms")), SLICE("17")));
    assert_int_equal(client_header(&call, SLICE("x-b")).len, 0);
    assert_int_equal(client_header(&call, SLICE("x-a")).len, 0);
    assert_ptr_equal(strstr(peer.heard, "POST /a?b=c HTTP/1.1\r\n"), peer.heard);
    assert_non_null(strstr(peer.heard, "\r\nx-ms-documentdb-is-upsert: True\r\n"));
    assert_non_null(strstr(peer.heard, "\r\nContent-Length: 10\r\n"));
    assert_null(strstr(peer.heard, "Expect"));
}

static void a_poll_ends_for_time_and_for_others_and_calls_go_on(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    Peer peer;
    peer_open(&peer, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", 1, serve_one);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *client = NULL;
    Error err;
    assert_int_equal(open_client(peer.endpoint, 20000, &client, &err), STATUS_OK);
    ClientWake wake = {.fd = ends[0]};
    ClientCall *ended = NULL;
    assert_int_equal(client_poll(client, &wake, 1, 1, &ended, &err), STATUS_OK);
    assert_null(ended);
    assert_false(wake.is_ready);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(client_poll(client, &wake, 1, 60000, &ended, &err), STATUS_OK);
    assert_true(wake.is_ready);
    ClientCall call = call_of(&arena);
    client_start(client, &call);
    while (ended == NULL)
        assert_int_equal(client_poll(client, &wake, 1, 60000, &ended, &err), STATUS_OK);
    assert_ptr_equal(ended, &call);
    assert_true(slice_equal(call.body, SLICE("{}")));
    peer_close(&peer);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void answers_are_read_whatever_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *says;
        int status; /* 0 if it is refused */
        const char *body;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", 200, "{}"},
        {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200, "{}"},
        {"HTTP/1.0 404 Not Found\r\n\r\nto the end", 404, "to the end"},
        {"HTTP/1.1 204\r\n\r\n", 204, ""},
        {"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", 302,
         ""},
        {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", 0, "in the middle of an answer"},
        {"SSH-2.0-OpenSSH\r\n\r\n", 0, "does not answer in HTTP/1.1"},
        {"\r\n\r\n", 0, "does not answer in HTTP/1.1"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Peer peer;
        peer_open(&peer, rows[i].says, 1, serve_one);
        AUTO(client_close) Client *client = NULL;
        Error err;
        assert_int_equal(open_client(peer.endpoint, 5000, &client, &err), STATUS_OK);
        ClientCall call;
        Status status = get(client, &arena, &call);
        peer_close(&peer);
        if ((status == STATUS_OK) != (rows[i].status != 0))
            fail_msg("row %zu: %s", i, call.error.message);
        if (status != STATUS_OK) {
            assert_int_equal(status, STATUS_UNAVAILABLE);
            if (strstr(call.error.message, rows[i].body) == NULL)
                fail_msg("row %zu: %s", i, call.error.message);
            continue;
        }
        assert_int_equal(call.http_status, rows[i].status);
        assert_true(slice_equal(call.body, slice_from_cstr(rows[i].body)));
    }
}

static void a_server_that_does_not_answer_is_given_up(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer, NULL, 1, serve_one);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Client *client = NULL;
    Error err;
    assert_int_equal(open_client(peer.endpoint, 50, &client, &err), STATUS_OK);
    ClientCall call;
    assert_int_equal(get(client, &arena, &call), STATUS_TIMEOUT);
    assert_non_null(strstr(call.error.message, "within 50 ms"));
    client_close(client);
    peer_close(&peer);
}

static void calls_are_given_up_when_the_caller_says_so(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    Peer peer;
    peer_open(&peer, NULL, 1, serve_one);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Client *client = NULL;
    Error err;
    assert_int_equal(open_client(peer.endpoint, 60000, &client, &err), STATUS_OK);
    ClientCall calls[2] = {call_of(&arena), call_of(&arena)};
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++)
        client_start(client, &calls[i]);
    ClientCall *ended = NULL;
    assert_int_equal(client_wait(client, ends[0], &ended, &err), STATUS_TIMEOUT);
    assert_int_equal(client_wait(client, ends[0], &ended, &err), STATUS_OK);
    assert_null(ended);
    client_start(client, &calls[0]); /* closing the client gives it up */
    client_close(client);
    peer_close(&peer);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void an_answer_without_end_is_refused(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer, "", 1, serve_one);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Client *client = NULL;
    Error err;
    assert_int_equal(open_client(peer.endpoint, 20000, &client, &err), STATUS_OK);
    ClientCall call;
    assert_int_equal(get(client, &arena, &call), STATUS_UNAVAILABLE);
    assert_non_null(strstr(call.error.message, "more than 4194304 bytes"));
    client_close(client);
    peer_close(&peer);
}

/* Accepts as many connections as there are calls before it answers any of them. */
static void *serve_all_at_last(void *arg)
{
    Peer *peer = arg;
    int fds[16];
    assert_in_range(peer->requests, 1, ARRAY_COUNT(fds));
    for (int i = 0; i < peer->requests; i++)
        fds[i] = accept(peer->fd, NULL, NULL);
    for (int i = 0; i < peer->requests; i++) {
        serve_request(peer, fds[i]);
        (void)close(fds[i]);
    }
    return NULL;
}

static void calls_are_under_way_at_the_same_time(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", 16, serve_all_at_last);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *client = NULL;
    Error err;
    assert_int_equal(open_client(peer.endpoint, 20000, &client, &err), STATUS_OK);
    ClientCall calls[16];
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        calls[i] = call_of(&arena);
        client_start(client, &calls[i]);
    }
    size_t count = 0;
    for (ClientCall *ended = NULL;; count++) {
        assert_int_equal(client_wait(client, -1, &ended, &err), STATUS_OK);
        if (ended == NULL)
            break;
        assert_int_equal(ended->error.status, STATUS_OK);
        assert_true(slice_equal(ended->body, SLICE("{}")));
    }
    assert_int_equal(count, ARRAY_COUNT(calls));
    peer_close(&peer);
}

static void a_server_that_is_not_there_is_reported_with_the_reason(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer, "HTTP/1.1 204\r\n\r\n", 1, serve_one);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AUTO(client_close) Client *client = NULL;
    Error err;
    assert_int_equal(open_client(peer.endpoint, 5000, &client, &err), STATUS_OK);
    ClientCall call;
    assert_int_equal(get(client, &arena, &call), STATUS_OK);
    peer_close(&peer);
    /* The connection that was kept is closed, and the port is closed. */
    assert_int_equal(get(client, &arena, &call), STATUS_UNAVAILABLE);
    assert_non_null(strstr(call.error.message, "cannot reach the server at http://127.0.0.1:"));
    assert_non_null(strstr(call.error.message, "Connection refused"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_are_accepted),
        cmocka_unit_test(what_is_no_endpoint_is_refused_with_an_example),
        cmocka_unit_test(what_is_no_key_is_refused),
        cmocka_unit_test(calls_share_a_connection_and_are_signed),
        cmocka_unit_test(a_post_has_its_headers_and_its_content),
        cmocka_unit_test(a_poll_ends_for_time_and_for_others_and_calls_go_on),
        cmocka_unit_test(answers_are_read_whatever_they_are),
        cmocka_unit_test(a_server_that_does_not_answer_is_given_up),
        cmocka_unit_test(calls_are_given_up_when_the_caller_says_so),
        cmocka_unit_test(an_answer_without_end_is_refused),
        cmocka_unit_test(calls_are_under_way_at_the_same_time),
        cmocka_unit_test(a_server_that_is_not_there_is_reported_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
