/* http_test.c - requests and answers, over real sockets. */
#include "http/testing_int.h"

#include <zlib.h>

#define HELLO "GET /hello HTTP/1.1\r\nhost: h\r\n\r\n"

static void a_request_reaches_the_handler_as_it_was_sent(void **state)
{
    Peer *client = peer_open(*state);
    peer_send(client, "PATCH /echo/a%20b?c=%2F HTTP/1.1\r\nHost: my.host:99\r\nX-Send:  two "
                      "words \r\nContent-Length: 4\r\n\r\nb\x01\xff!");
    Answer answer;
    peer_answer(client, &answer);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer_header(&answer, "x-method"), "PATCH");
    assert_string_equal(answer_header(&answer, "x-path"), "/echo/a%20b?c=%2F");
    assert_string_equal(answer_header(&answer, "x-authority"), "my.host:99");
    assert_string_equal(answer_header(&answer, "x-tls"), "no");
    assert_string_equal(answer_header(&answer, "x-header-count"), "3");
    assert_string_equal(answer_header(&answer, "x-sent"), "two words");
    assert_string_equal(answer_header(&answer, "server"), "orrery");
    assert_int_equal(strlen(answer_header(&answer, "date")), 29);
    assert_string_equal(answer_header(&answer, "connection"), "");
    assert_string_equal(answer.body, "b\x01\xff!");
    answer_done(&answer);
    peer_close(client);
}

static void the_handler_sees_where_a_connection_comes_from(void **state)
{
    Peer *client = peer_open(*state);
    struct sockaddr_in address = {0};
    socklen_t len = sizeof(address);
    assert_int_equal(getsockname(client->fd, (struct sockaddr *)&address, &len), 0);
    char own[32];
    (void)snprintf(own, sizeof(own), "127.0.0.1:%u", ntohs(address.sin_port));
    for (int i = 0; i < 2; i++) {
        Answer answer;
        peer_send(client, "GET /echo HTTP/1.1\r\nhost: h\r\n\r\n");
        peer_answer(client, &answer);
        assert_string_equal(answer_header(&answer, "x-peer"), own);
        answer_done(&answer);
    }
    peer_close(client);
}

static void without_a_host_the_authority_is_the_servers_own(void **state)
{
    Site *site = *state;
    Peer *client = peer_open(site);
    peer_send(client, "GET /echo HTTP/1.0\r\n\r\n");
    Answer answer;
    char own[32];
    peer_answer(client, &answer);
    (void)snprintf(own, sizeof(own), "127.0.0.1:%u", http_server_port(site->server));
    assert_string_equal(answer_header(&answer, "x-authority"), own);
    answer_done(&answer);
    peer_close(client);
}

static void a_connection_is_kept(void **state)
{
    Site *site = *state;
    Peer *client = peer_open(site);
    for (int i = 0; i < 50; i++) {
        peer_send(client, HELLO);
        peer_expect(client, 200, "hello");
    }
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_TOTAL), 1);
    peer_close(client);
}

static void requests_sent_ahead_are_answered_in_order(void **state)
{
    Site *site = *state;
    Peer *client = peer_open(site);
    enum { COUNT = 200 };
    char text[COUNT * 96], expected[32];
    int len = 0;
    /* Every third answer is deferred, so that the next request has to wait for it. */
    for (int i = 0; i < COUNT; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        "POST /%s HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\n%04d",
                        i % 3 == 0 ? "hold" : "echo", i);
    peer_send(client, text);
    for (int i = 0; i < COUNT; i++) {
        if (i % 3 == 0) {
            WAIT_UNTIL(atomic_load(&site->held_count) == 1);
            assert_int_equal(site_answer_held(site), 1);
        }
        (void)snprintf(expected, sizeof(expected), "%04d", i);
        peer_expect(client, 200, expected);
    }
    peer_close(client);
}

static void a_client_far_ahead_is_made_to_wait(void **state)
{
    Site *site = *state;
    Peer *client = peer_open(site);
    peer_send(client, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\n\r\n!");
    WAIT_UNTIL(atomic_load(&site->held_count) == 1);
    /* More than the server keeps for later, and then more than the system does. */
    static const char request[] = "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\n\r\n.";
    struct timeval time = {.tv_usec = 200000};
    assert_int_equal(setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)), 0);
    int sent = 0;
    size_t part = 0;
    while (sent < 2000000) {
        ssize_t got = send(client->fd, request + part, sizeof(request) - 1 - part, MSG_NOSIGNAL);
        if (got < 0)
            break;
        part += (size_t)got;
        if (part == sizeof(request) - 1) {
            part = 0;
            sent++;
        }
    }
    assert_in_range(sent, 1000, 1999999); /* it did stop */
    assert_int_equal(site_answer_held(site), 1);
    peer_expect(client, 200, "!");
    for (int i = 0; i < sent; i++)
        peer_expect(client, 200, ".");
    peer_close(client);
}

static void bodies_arrive_whole_however_they_are_cut(void **state)
{
    static const struct {
        const char *head, *body, *expected;
    } rows[] = {
        {"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\n", "12345", "12345"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n",
         "3\r\nabc\r\n002;ext=1\r\nde\r\n0\r\n\r\n", "abcde"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n",
         "A\r\n0123456789\r\n0\r\ntrailer: x\r\nanother: y\r\n\r\n", "0123456789"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n", "0\r\n\r\n", ""},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 0\r\n\r\n", "", ""},
        {"GET /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n", "ok", "ok"},
    };
    Peer *client = peer_open(*state);
    for (size_t step = 1; step <= 64; step *= 8) {
        for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
            char text[512];
            /* What follows must be found too. */
            int len = snprintf(text, sizeof(text), "%s%s" HELLO, rows[i].head, rows[i].body);
            for (size_t at = 0; at < (size_t)len; at += step) {
                size_t left = (size_t)len - at;
                assert_true(peer_try_send(client, text + at, left < step ? left : step));
                if (step < 64)
                    sleep_ms(at % 16 == 0);
            }
            peer_expect(client, 200, rows[i].expected);
            peer_expect(client, 200, "hello");
        }
    }
    peer_close(client);
}

static void a_large_body_arrives(void **state)
{
    Peer *client = peer_open(*state);
    size_t len = 2 << 20;
    char *body = malloc(len + 1);
    char head[128];
    site_fill(body, len);
    body[len] = '\0';
    for (int is_chunked = 0; is_chunked < 2; is_chunked++) {
        (void)snprintf(head, sizeof(head),
                       is_chunked ? "POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: "
                                    "chunked\r\n\r\n%zx\r\n"
                                  : "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: %zu\r\n\r\n",
                       len);
        peer_send(client, head);
        peer_send(client, body);
        if (is_chunked)
            peer_send(client, "\r\n0\r\n\r\n");
        peer_expect(client, 200, body);
    }
    free(body);
    peer_close(client);
}

static void a_client_that_asks_first_is_told_to_go_on(void **state)
{
    Peer *client = peer_open(*state);
    peer_send(
        client,
        "POST /echo HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n");
    Answer answer;
    peer_answer(client, &answer);
    assert_string_equal(answer.head, "HTTP/1.1 100 Continue\r\n\r\n");
    answer_done(&answer);
    peer_send(client, "abc");
    peer_expect(client, 200, "abc");

    /* It is not told what is no longer a question. */
    peer_send(
        client,
        "POST /echo HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\nabc");
    peer_expect(client, 200, "abc");

    /* And a body that is too large is refused before it is sent. */
    peer_send(client, "POST /echo HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: "
                      "3000000\r\n\r\n");
    peer_expect_refusal(client, 413, "RequestEntityTooLarge");
    peer_expect_end(client);
    peer_close(client);
}

static void a_body_is_read_only_if_the_handler_wants_it(void **state)
{
    static const struct {
        const char *headers;
        const char *body;
    } rows[] = {
        {"content-length: 1000000\r\n", ""},
        {"content-length: 1000000\r\n", "the beginning"},
        {"expect: 100-continue\r\ncontent-length: 3\r\n", ""},
        {"transfer-encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"},
    };
    Site *site = *state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[256];
        Peer *client = peer_open(site);
        (void)snprintf(text, sizeof(text), "POST /deny HTTP/1.1\r\nhost: h\r\n%s\r\n%s",
                       rows[i].headers, rows[i].body);
        peer_send(client, text);
        Answer answer;
        peer_answer(client, &answer);
        assert_int_equal(answer.status, 401);
        assert_string_equal(answer.body, "denied");
        assert_string_equal(answer_header(&answer, "connection"), "close");
        answer_done(&answer);
        peer_send(client, "more of the body, and then another request" HELLO);
        peer_expect_end(client);
        peer_close(client);
    }
    assert_int_equal(atomic_load(&site->admitted_count), ARRAY_COUNT(rows));
    assert_int_equal(atomic_load(&site->handled_count), 0);
    assert_int_equal(site_metric(site, METRIC_REQUESTS_OPEN), 0);
}

static void what_the_handler_notes_at_the_head_is_there_with_the_body(void **state)
{
    Site *site = *state;
    Peer *client = peer_open(site);
    Answer answer;
    for (int round = 0; round < 2; round++) {
        peer_send(client, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc");
        peer_answer(client, &answer);
        assert_string_equal(answer_header(&answer, "x-admitted"), "no");
        answer_done(&answer);
        peer_send(client, "POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: "
                          "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
        peer_answer(client, &answer);
        assert_string_equal(answer_header(&answer, "x-admitted"), "yes");
        assert_string_equal(answer.body, "abc");
        answer_done(&answer);
    }
    /* A client that leaves between head and body is forgotten. */
    peer_send(client, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\n");
    WAIT_UNTIL(atomic_load(&site->admitted_count) == 3);
    peer_close(client);
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 0);
    assert_int_equal(site_metric(site, METRIC_REQUESTS_OPEN), 0);
}

static void the_answer_to_head_has_the_length_and_no_body(void **state)
{
    Peer *client = peer_open(*state);
    peer_send(client, "HEAD /hello HTTP/1.1\r\nhost: h\r\naccept-encoding: gzip\r\n\r\n" HELLO);
    Answer answer;
    assert_true(peer_try_answer(client, ANSWER_TO_HEAD, &answer));
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer_header(&answer, "content-length"), "5");
    answer_done(&answer);
    peer_expect(client, 200, "hello");
    peer_close(client);
}

static void statuses_are_sent_with_a_reason_and_some_without_a_body(void **state)
{
    static const struct {
        int status;
        const char *line, *length;
    } rows[] = {
        {200, "HTTP/1.1 200 OK\r\n", "4"},
        {204, "HTTP/1.1 204 No Content\r\n", ""},
        {304, "HTTP/1.1 304 Not Modified\r\n", ""},
        {429, "HTTP/1.1 429 Too Many Requests\r\n", "4"},
        {449, "HTTP/1.1 449 Retry With\r\n", "4"},
        {599, "HTTP/1.1 599 Unknown\r\n", "4"},
    };
    Peer *client = peer_open(*state);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[64];
        Answer answer;
        (void)snprintf(text, sizeof(text), "GET /status/%d HTTP/1.1\r\nhost: h\r\n\r\n",
                       rows[i].status);
        peer_send(client, text);
        peer_answer(client, &answer);
        assert_memory_equal(answer.head, rows[i].line, strlen(rows[i].line));
        assert_string_equal(answer_header(&answer, "content-length"), rows[i].length);
        answer_done(&answer);
    }
    peer_close(client);
}

static void line_ends_in_a_value_do_not_split_the_answer(void **state)
{
    Peer *client = peer_open(*state);
    peer_send(client, "GET /split HTTP/1.1\r\nhost: h\r\n\r\n" HELLO);
    Answer answer;
    peer_answer(client, &answer);
    assert_string_equal(answer_header(&answer, "x-id"), "a  x-evil: 1    more and so on");
    assert_string_equal(answer_header(&answer, "x-evil"), "");
    answer_done(&answer);
    peer_expect(client, 200, "hello");
    peer_close(client);
}

static size_t gunzip(const Answer *answer, char *out, size_t size)
{
    z_stream stream = {.next_in = (Bytef *)answer->body,
                       .avail_in = (uInt)answer->body_len,
                       .next_out = (Bytef *)out,
                       .avail_out = (uInt)size};
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(inflateEnd(&stream), Z_OK);
    return size - stream.avail_out;
}

static void bodies_are_compressed_for_clients_that_ask(void **state)
{
    static const struct {
        const char *path, *accept, *encoding;
        size_t len;
    } rows[] = {
        {"/lent/8191", "gzip", "", 8191},        {"/lent/8192", "gzip", "gzip", 8192},
        {"/big/100000", "gzip", "gzip", 100000}, {"/lent/8192", "identity", "", 8192},
        {"/lent/9000", "gzip;q=0", "", 9000},    {"/encoded/9000", "gzip", "br", 9000},
        {"/big/262144", "gzip", "gzip", 262144}, {"/big/262145", "gzip", "", 262145},
    };
    Site *site = *state;
    Peer *client = peer_open(site);
    char *expected = malloc(300000), *found = malloc(300000);
    site_fill(expected, 300000);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char text[128];
        Answer answer;
        (void)snprintf(text, sizeof(text),
                       "GET %s HTTP/1.1\r\nhost: h\r\naccept-encoding: %s\r\n\r\n", rows[i].path,
                       rows[i].accept);
        peer_send(client, text);
        peer_answer(client, &answer);
        if (strcmp(answer_header(&answer, "content-encoding"), rows[i].encoding) != 0)
            fail_msg("row %zu: %s", i, answer.head);
        bool is_gzip = strcmp(rows[i].encoding, "gzip") == 0;
        assert_string_equal(answer_header(&answer, "vary"), is_gzip ? "accept-encoding" : "");
        if (is_gzip) {
            assert_true(answer.body_len < rows[i].len);
            assert_int_equal(gunzip(&answer, found, 300000), rows[i].len);
            assert_memory_equal(found, expected, rows[i].len);
        } else {
            assert_int_equal(answer.body_len, rows[i].len);
        }
        answer_done(&answer);
    }
    WAIT_UNTIL(atomic_load(&site->released_count) == 3);
    free(expected);
    free(found);
    peer_close(client);
}

static void what_does_not_shrink_is_sent_as_it_is(void **state)
{
    Peer *client = peer_open(*state);
    char body[9000];
    random_secret(body, sizeof(body));
    peer_send(
        client,
        "POST /echo HTTP/1.1\r\nhost: h\r\naccept-encoding: gzip\r\ncontent-length: 9000\r\n\r\n");
    assert_true(peer_try_send(client, body, sizeof(body)));
    Answer answer;
    peer_answer(client, &answer);
    assert_string_equal(answer_header(&answer, "content-encoding"), "");
    assert_int_equal(answer.body_len, sizeof(body));
    assert_memory_equal(answer.body, body, sizeof(body));
    answer_done(&answer);
    peer_close(client);
}

static void malformed_requests_get_an_error_in_json_and_the_door(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *code;
    } rows[] = {
        {"nonsense\r\n\r\n", 400, "BadRequest"},
        {"GET / HTTP/3.0\r\n\r\n", 400, "BadRequest"},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "BadRequest"},
        {"GET / HTTP/1.1\r\nhost: h\r\na: b\r\n c\r\n\r\n", 400, "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabc", 400,
         "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\ntransfer-encoding: "
         "chunked\r\n\r\n0\r\n\r\n",
         400, "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", 400,
         "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n\r\n", 400,
         "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: "
         "chunked\r\n\r\nfffffffffffffffff\r\n",
         400, "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
         400, "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: "
         "chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n",
         400, "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n1\nx\n0\n\n", 400,
         "BadRequest"},
        {"GET / HTTP/1.1\r\n\r\n", 400, "BadRequest"},
        {"GET / HTTP/1.1\nhost: h\n\n", 400, "BadRequest"},
        {"GET http://a/ HTTP/1.1\r\nhost: b\r\n\r\n", 400, "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\nexpect: more\r\ncontent-length: 1\r\n\r\n", 400,
         "BadRequest"},
        {"POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 2097153\r\n\r\n", 413,
         "RequestEntityTooLarge"},
    };
    Site *site = *state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Peer *client = peer_open(site);
        peer_send(client, HELLO);
        peer_expect(client, 200, "hello");
        peer_send(client, rows[i].text);
        peer_expect_refusal(client, rows[i].status, rows[i].code);
        peer_expect_end(client);
        peer_close(client);
    }
    assert_int_equal(atomic_load(&site->handled_count), ARRAY_COUNT(rows)); /* only the hellos */
    assert_int_equal(site_metric(site, METRIC_REQUESTS_4XX), ARRAY_COUNT(rows));
}

static void a_head_that_never_ends_is_refused(void **state)
{
    Peer *client = peer_open(*state);
    char line[1024];
    peer_send(client, "GET /hello HTTP/1.1\r\nhost: h\r\n");
    (void)snprintf(line, sizeof(line), "a: %0*d\r\n", 1000, 0);
    for (int i = 0; i < 17; i++)
        peer_send(client, line);
    peer_expect_refusal(client, 400, "BadRequest");
    peer_expect_end(client);
    peer_close(client);
}

/* The answer must arrive although the client is in the middle of sending: a reset would make its
 * system forget the answer. */
static void a_refusal_reaches_a_client_that_is_still_sending(void **state)
{
    static const char *const heads[] = {
        "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 9000000\r\n\r\n",
        "POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n800000\r\n",
    };
    char *part = calloc(1, 100000);
    for (size_t i = 0; i < ARRAY_COUNT(heads); i++) {
        Peer *client = peer_open(*state);
        peer_send(client, heads[i]);
        for (int sent = 0; sent < 80; sent++)
            if (!peer_try_send(client, part, 100000))
                fail_msg("the server closed after %d parts", sent);
        peer_expect_refusal(client, 413, "RequestEntityTooLarge");
        peer_expect_end(client);
        peer_close(client);
    }
    free(part);
}

static void large_answers_are_sent_whole_and_given_back_once(void **state)
{
    Site *site = *state;
    Peer *client = peer_open(site);
    size_t len = 4 << 20;
    char *expected = malloc(len);
    site_fill(expected, len);
    for (int i = 0; i < 4; i++) {
        Answer answer;
        peer_send(client, i % 2 == 0 ? "GET /big/4194304 HTTP/1.1\r\nhost: h\r\n\r\n"
                                     : "GET /lent/4194304 HTTP/1.1\r\nhost: h\r\n\r\n");
        sleep_ms(20); /* so that the socket is full and the rest has to wait */
        peer_answer(client, &answer);
        assert_int_equal(answer.body_len, len);
        assert_memory_equal(answer.body, expected, len);
        answer_done(&answer);
    }
    WAIT_UNTIL(atomic_load(&site->released_count) == 2);
    free(expected);
    peer_close(client);
}

static void a_client_that_leaves_during_the_answer_costs_nothing(void **state)
{
    Site *site = *state;
    for (int i = 0; i < 10; i++) {
        Peer *client = peer_open(site);
        peer_send(client, "GET /big/8000000 HTTP/1.1\r\nhost: h\r\n\r\n");
        assert_true(peer_read(client) > 0);
        peer_close(client);
    }
    WAIT_UNTIL(atomic_load(&site->released_count) == 10);
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 0);
}

static void a_client_that_leaves_during_the_request_costs_nothing(void **state)
{
    static const char *const parts[] = {
        "",
        "GET /hel",
        "GET /hello HTTP/1.1\r\nhost: h\r\n",
        "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
    };
    Site *site = *state;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        Peer *client = peer_open(site);
        peer_send(client, parts[i]);
        sleep_ms(5);
        peer_close(client);
    }
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_TOTAL) == ARRAY_COUNT(parts));
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 0);
    assert_int_equal(atomic_load(&site->handled_count), 0);
}

static void a_deferred_answer_to_nobody_is_dropped(void **state)
{
    Site *site = *state;
    for (int i = 0; i < 10; i++) {
        Peer *client = peer_open(site);
        peer_send(client, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nabcde");
        WAIT_UNTIL(atomic_load(&site->held_count) == i + 1);
        struct linger reset = {.l_onoff = 1};
        assert_int_equal(setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
        peer_close(client);
    }
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 0);
    assert_int_equal(site_metric(site, METRIC_REQUESTS_OPEN), 10);
    assert_int_equal(site_answer_held(site), 10);
    WAIT_UNTIL(site_metric(site, METRIC_REQUESTS_OPEN) == 0);
    assert_int_equal(site_metric(site, METRIC_REQUESTS_2XX), 10);
}

/* Also if it has closed only its half of the connection, which looks the same from here. */
static void a_handler_learns_that_its_client_has_left(void **state)
{
    enum { CLOSE, RESET, CLOSE_HALF, WAYS };
    Site *site = *state;
    for (int way = 0; way < WAYS; way++) {
        Peer *client = peer_open(site);
        peer_send(client, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nabcde");
        WAIT_UNTIL(atomic_load(&site->held_count) == 1);
        peer_send(client, HELLO); /* a client that waits may send the next one ahead */
        sleep_ms(5);
        assert_false(site_is_abandoned(site));
        struct linger reset = {.l_onoff = 1};
        if (way == RESET)
            assert_int_equal(setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)),
                             0);
        if (way == CLOSE_HALF)
            assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
        else
            peer_close(client);
        WAIT_UNTIL(site_is_abandoned(site));
        assert_int_equal(site_answer_held(site), 1);
        WAIT_UNTIL(site_metric(site, METRIC_REQUESTS_OPEN) == 0);
        if (way == CLOSE_HALF)
            peer_close(client);
        WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 0);
    }
    /* The next request begins anew. */
    Peer *client = peer_open(site);
    peer_send(client, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi");
    WAIT_UNTIL(atomic_load(&site->held_count) == 1);
    assert_false(site_is_abandoned(site));
    assert_int_equal(site_answer_held(site), 1);
    peer_expect(client, 200, "hi");
    peer_close(client);
}

static void a_client_that_closed_its_side_still_gets_its_answers(void **state)
{
    Site *site = *state;
    Peer *client = peer_open(site);
    peer_send(client, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi" HELLO HELLO);
    assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
    WAIT_UNTIL(atomic_load(&site->held_count) == 1);
    sleep_ms(20);
    assert_int_equal(site_answer_held(site), 1);
    peer_expect(client, 200, "hi");
    peer_expect(client, 200, "hello");
    peer_expect(client, 200, "hello");
    peer_expect_end(client);
    peer_close(client);
}

static void answers_from_another_thread_come_in_bursts(void **state)
{
    enum { CLIENTS = 100, ROUNDS = 10 };
    Site *site = *state;
    Peer *clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = peer_open(site);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CLIENTS; i++)
            peer_send(clients[i], "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nyes");
        WAIT_UNTIL(atomic_load(&site->held_count) == CLIENTS);
        assert_int_equal(site_answer_held(site), CLIENTS);
        for (int i = 0; i < CLIENTS; i++)
            peer_expect(clients[i], 200, "yes");
    }
    for (int i = 0; i < CLIENTS; i++)
        peer_close(clients[i]);
}

static void http_1_0_closes_unless_asked_to_keep(void **state)
{
    Peer *client = peer_open(*state);
    Answer answer;
    peer_send(client, "GET /hello HTTP/1.0\r\nconnection: keep-alive\r\n\r\n");
    peer_answer(client, &answer);
    assert_string_equal(answer_header(&answer, "connection"), "keep-alive");
    answer_done(&answer);
    peer_send(client, "GET /hello HTTP/1.0\r\n\r\n");
    peer_answer(client, &answer);
    assert_string_equal(answer_header(&answer, "connection"), "close");
    answer_done(&answer);
    peer_expect_end(client);
    peer_close(client);

    client = peer_open(*state);
    peer_send(client, "GET /hello HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n" HELLO);
    peer_answer(client, &answer);
    assert_string_equal(answer_header(&answer, "connection"), "close");
    answer_done(&answer);
    peer_expect_end(client); /* and not another hello */
    peer_close(client);
}

static void what_happens_is_counted(void **state)
{
    Site *site = *state;
    Peer *client = peer_open(site);
    peer_send(client, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 10\r\n\r\n0123456789");
    peer_expect(client, 200, "0123456789");
    peer_send(client, "GET /status/304 HTTP/1.1\r\nhost: h\r\n\r\n");
    peer_expect(client, 304, NULL);
    peer_send(client, "GET /nothing HTTP/1.1\r\nhost: h\r\n\r\n");
    peer_expect(client, 404, NULL);
    peer_send(client, "GET /status/503 HTTP/1.1\r\nhost: h\r\n\r\n");
    peer_expect(client, 503, NULL);
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_TOTAL), 1);
    assert_int_equal(site_metric(site, METRIC_CONNECTIONS_OPEN), 1);
    assert_int_equal(site_metric(site, METRIC_TLS_HANDSHAKES_TOTAL), 0);
    assert_int_equal(site_metric(site, METRIC_REQUESTS_OPEN), 0);
    assert_int_equal(site_metric(site, METRIC_REQUESTS_2XX), 1);
    assert_int_equal(site_metric(site, METRIC_REQUESTS_3XX), 1);
    assert_int_equal(site_metric(site, METRIC_REQUESTS_4XX), 1);
    assert_int_equal(site_metric(site, METRIC_REQUESTS_5XX), 1);
    assert_int_equal(site_metric(site, METRIC_REQUEST_BYTES), 10);
    assert_in_range(site_metric(site, METRIC_RESPONSE_BYTES), 20, 40);

    peer_send(client, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi");
    WAIT_UNTIL(site_metric(site, METRIC_REQUESTS_OPEN) == 1);
    sleep_ms(20);
    assert_int_equal(site_answer_held(site), 1);
    peer_expect(client, 200, "hi");
    assert_in_range(site_metric(site, METRIC_REQUEST_MICROSECONDS), 20000, 20000000);
    peer_close(client);
    WAIT_UNTIL(site_metric(site, METRIC_CONNECTIONS_OPEN) == 0);
}

typedef struct LoopCheck {
    HttpTask task;
    HttpLoop *loop;
    _Atomic int done;
} LoopCheck;

static void check_loop(HttpTask *task)
{
    LoopCheck *check = CONTAINER_OF(task, LoopCheck, task);
    bool is_right =
        http_loop_user(check->loop) == check->loop && http_loop_metrics(check->loop) != NULL &&
        random_u64(http_loop_random(check->loop)) != random_u64(http_loop_random(check->loop)) &&
        strlen(http_loop_date(check->loop)) == 29;
    atomic_store(&check->done, is_right ? 1 : -1);
}

static void a_task_runs_on_its_loop(void **state)
{
    Site *site = *state;
    assert_int_equal(atomic_load(&site->loops_opened), 2);
    Peer *client = peer_open(site);
    peer_send(client, "GET /hold HTTP/1.1\r\nhost: h\r\n\r\n");
    WAIT_UNTIL(atomic_load(&site->held_count) == 1);
    QueueNode *node = queue_take(&site->held);
    Held *held = CONTAINER_OF(node, Held, node);
    LoopCheck check = {.task.run = check_loop, .loop = held->request->loop};
    http_loop_post(check.loop, &check.task);
    WAIT_UNTIL(atomic_load(&check.done) != 0);
    assert_int_equal(atomic_load(&check.done), 1);
    (void)queue_push(&site->held, &held->node);
    assert_int_equal(site_answer_held(site), 1);
    peer_expect(client, 200, "");
    peer_close(client);
}

int main(void)
{
#define WITH_SITE(test) cmocka_unit_test_setup_teardown(test, site_setup, site_teardown)
    const struct CMUnitTest tests[] = {
        WITH_SITE(a_request_reaches_the_handler_as_it_was_sent),
        WITH_SITE(the_handler_sees_where_a_connection_comes_from),
        WITH_SITE(without_a_host_the_authority_is_the_servers_own),
        WITH_SITE(a_connection_is_kept),
        WITH_SITE(requests_sent_ahead_are_answered_in_order),
        WITH_SITE(a_client_far_ahead_is_made_to_wait),
        WITH_SITE(bodies_arrive_whole_however_they_are_cut),
        WITH_SITE(a_large_body_arrives),
        WITH_SITE(a_client_that_asks_first_is_told_to_go_on),
        WITH_SITE(a_body_is_read_only_if_the_handler_wants_it),
        WITH_SITE(what_the_handler_notes_at_the_head_is_there_with_the_body),
        WITH_SITE(the_answer_to_head_has_the_length_and_no_body),
        WITH_SITE(statuses_are_sent_with_a_reason_and_some_without_a_body),
        WITH_SITE(line_ends_in_a_value_do_not_split_the_answer),
        WITH_SITE(bodies_are_compressed_for_clients_that_ask),
        WITH_SITE(what_does_not_shrink_is_sent_as_it_is),
        WITH_SITE(malformed_requests_get_an_error_in_json_and_the_door),
        WITH_SITE(a_head_that_never_ends_is_refused),
        WITH_SITE(a_refusal_reaches_a_client_that_is_still_sending),
        WITH_SITE(large_answers_are_sent_whole_and_given_back_once),
        WITH_SITE(a_client_that_leaves_during_the_answer_costs_nothing),
        WITH_SITE(a_client_that_leaves_during_the_request_costs_nothing),
        WITH_SITE(a_deferred_answer_to_nobody_is_dropped),
        WITH_SITE(a_handler_learns_that_its_client_has_left),
        WITH_SITE(a_client_that_closed_its_side_still_gets_its_answers),
        WITH_SITE(answers_from_another_thread_come_in_bursts),
        WITH_SITE(http_1_0_closes_unless_asked_to_keep),
        WITH_SITE(what_happens_is_counted),
        WITH_SITE(a_task_runs_on_its_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
