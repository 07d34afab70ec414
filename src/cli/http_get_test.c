/* http_get_test.c - endpoints, answers of every kind, and a server that is none. */
#include "cli/http_get.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void endpoints_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        const char *url, *host, *port;
    } rows[] = {
        {"http://localhost:8081", "localhost", "8081"},
        {"HTTP://localhost:8081/", "localhost", "8081"},
        {"http://db.example.com", "db.example.com", "80"},
        {"http://10.0.0.1:1/", "10.0.0.1", "1"},
        {"http://[::1]:8081/", "::1", "8081"},
        {"http://[fe80::1%eth0]", "fe80::1%eth0", "80"},
        {"http://a:65535", "a", "65535"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Endpoint endpoint;
        Error err;
        assert_int_equal(endpoint_parse(rows[i].url, &endpoint, &err), STATUS_OK);
        assert_string_equal(endpoint.host, rows[i].host);
        assert_string_equal(endpoint.port, rows[i].port);
    }
}

static void what_is_no_endpoint_is_refused_with_an_example(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",           "localhost:8081", "ftp://a",          "http://",        "http://:80",
        "http://a:0", "http://a:65536", "http://a:8081/db", "http://a:80b",   "http://[::1",
        "http://a b", "http://[::1]80", "http://a\r\nx: y", "http://user@ho", "http://a:",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Endpoint endpoint;
        Error err;
        if (endpoint_parse(rows[i], &endpoint, &err) != STATUS_BAD_REQUEST)
            fail_msg("'%s' was accepted", rows[i]);
        assert_non_null(strstr(err.message, "http://localhost:8081"));
    }
    char url[600] = "http://";
    memset(url + 7, 'a', 500);
    Endpoint endpoint;
    Error err;
    assert_int_equal(endpoint_parse(url, &endpoint, &err), STATUS_BAD_REQUEST);
}

static void https_is_refused_with_what_to_say_instead(void **state)
{
    (void)state;
    Endpoint endpoint;
    Error err;
    assert_int_equal(endpoint_parse("https://localhost:8081/", &endpoint, &err),
                     STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "say http://localhost:8081/"));
}

static void replies_are_read_whatever_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        int status; /* 0: refused */
        const char *body;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", 200, "{}"},
        {"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length:  2 \r\nC: d\r\n\r\n{}more", 200, "{}"},
        {"HTTP/1.0 404 Not Found\r\n\r\nto the end", 404, "to the end"},
        {"HTTP/1.1 204\r\n\r\n", 204, ""},
        {"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{}", 0, NULL},
        {"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\n{}", 0, NULL},
        {"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n{}", 0, NULL},
        {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 0, NULL},
        {"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n{}", 0, NULL},
        {"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", 0, NULL},
        {"HTTP/1.1 abc OK\r\n\r\n", 0, NULL},
        {"HTTP/1.1 099 OK\r\n\r\n", 0, NULL},
        {"HTTP/1.\r\n\r\n", 0, NULL},
        {"SSH-2.0-OpenSSH\r\n\r\n", 0, NULL},
        {"\r\n\r\n", 0, NULL},
        {"", 0, NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        HttpReply reply = {0};
        Error err;
        Status status = http_reply_parse(slice_from_cstr(rows[i].bytes), &reply, &err);
        if ((status == STATUS_OK) != (rows[i].status != 0))
            fail_msg("row %zu: %s", i, rows[i].bytes);
        if (status != STATUS_OK)
            continue;
        assert_int_equal(reply.status, rows[i].status);
        assert_true(slice_equal(reply.body, slice_from_cstr(rows[i].body)));
    }
}

/* A server of one connection: reads until the blank line, says its line, and closes. */
typedef struct Peer {
    pthread_t thread;
    int fd;
    const char *says; /* NULL: nothing, for as long as the client stays; "": no end */
    char heard[2000];
    Endpoint endpoint;
} Peer;

static void *serve_one(void *arg)
{
    Peer *peer = arg;
    int fd = accept(peer->fd, NULL, NULL);
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
    else
        while (send(fd, peer->heard, sizeof(peer->heard), MSG_NOSIGNAL) > 0)
            continue;
    (void)close(fd);
    return NULL;
}

static void peer_open(Peer *peer, const char *says)
{
    *peer = (Peer){.says = says};
    peer->fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(peer->fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(peer->fd, 1), 0);
    assert_int_equal(getsockname(peer->fd, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(peer->endpoint.host, sizeof(peer->endpoint.host), "127.0.0.1");
    (void)snprintf(peer->endpoint.port, sizeof(peer->endpoint.port), "%u", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&peer->thread, NULL, serve_one, peer), 0);
}

static void peer_close(Peer *peer)
{
    assert_int_equal(pthread_join(peer->thread, NULL), 0);
    (void)close(peer->fd);
}

static Status get(const Peer *peer, int cancel_fd, uint32_t timeout_ms, HttpReply *reply,
                  Buf *buffer, Error *err)
{
    HttpQuestion question = {
        .endpoint = &peer->endpoint,
        .path = SLICE("/a?b=c"),
        .headers = SLICE("x-one: 1\r\n"),
        .timeout_ms = timeout_ms,
        .cancel_fd = cancel_fd,
    };
    return http_get(&question, buffer, reply, err);
}

static void a_question_reaches_a_server_and_its_answer_comes_back(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
    AUTO(buf_done) Buf buffer;
    buf_init(&buffer, HTTP_GET_BYTES_MAX);
    HttpReply reply;
    Error err;
    assert_int_equal(get(&peer, -1, 5000, &reply, &buffer, &err), STATUS_OK);
    peer_close(&peer);
    assert_int_equal(reply.status, 200);
    assert_true(slice_equal(reply.body, SLICE("hello")));
    assert_ptr_equal(strstr(peer.heard, "GET /a?b=c HTTP/1.1\r\n"), peer.heard);
    assert_non_null(strstr(peer.heard, "\r\nx-one: 1\r\n"));
    assert_non_null(strstr(peer.heard, "\r\nconnection: close\r\n"));
}

static void a_server_that_does_not_answer_is_given_up(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer, NULL);
    AUTO(buf_done) Buf buffer;
    buf_init(&buffer, HTTP_GET_BYTES_MAX);
    HttpReply reply;
    Error err;
    assert_int_equal(get(&peer, -1, 50, &reply, &buffer, &err), STATUS_TIMEOUT);
    assert_non_null(strstr(err.message, "within 50 ms"));
    peer_close(&peer);

    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    peer_open(&peer, NULL);
    assert_int_equal(get(&peer, ends[0], 60000, &reply, &buffer, &err), STATUS_TIMEOUT);
    peer_close(&peer);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void an_answer_without_end_is_refused(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer, "");
    AUTO(buf_done) Buf buffer;
    buf_init(&buffer, HTTP_GET_BYTES_MAX);
    HttpReply reply;
    Error err;
    assert_int_equal(get(&peer, -1, 20000, &reply, &buffer, &err), STATUS_UNAVAILABLE);
    assert_non_null(strstr(err.message, "more than 4194304 bytes"));
    peer_close(&peer);
}

static void nobody_there_is_said_with_the_reason(void **state)
{
    (void)state;
    Peer peer;
    peer_open(&peer, "x");
    /* The port is free again when the peer has gone. */
    AUTO(buf_done) Buf buffer;
    buf_init(&buffer, HTTP_GET_BYTES_MAX);
    HttpReply reply;
    Error err;
    assert_int_equal(get(&peer, -1, 5000, &reply, &buffer, &err), STATUS_UNAVAILABLE);
    peer_close(&peer);
    assert_int_equal(get(&peer, -1, 5000, &reply, &buffer, &err), STATUS_UNAVAILABLE);
    assert_non_null(strstr(err.message, "Connection refused"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_are_taken_apart),
        cmocka_unit_test(what_is_no_endpoint_is_refused_with_an_example),
        cmocka_unit_test(https_is_refused_with_what_to_say_instead),
        cmocka_unit_test(replies_are_read_whatever_they_are),
        cmocka_unit_test(a_question_reaches_a_server_and_its_answer_comes_back),
        cmocka_unit_test(a_server_that_does_not_answer_is_given_up),
        cmocka_unit_test(an_answer_without_end_is_refused),
        cmocka_unit_test(nobody_there_is_said_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
