/* reply_test.c - answers in one piece and in many. */
#include "load/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const Slice ANSWER = SLICE_INIT("HTTP/1.1 201 Created\r\n"
                                       "x-ms-request-charge: 1\r\n"
                                       "CONTENT-length:  5 \r\n"
                                       "\r\n"
                                       "\r\n\r\n!");

static void an_answer_may_come_in_pieces_of_any_size(void **state)
{
    (void)state;
    AUTO(reply_done) Reply reply;
    reply_init(&reply, true);
    for (size_t step = 1; step <= ANSWER.len; step++) {
        Error err;
        bool complete = false;
        reply_reset(&reply);
        for (size_t at = 0; at < ANSWER.len; at += step) {
            assert_false(complete);
            Slice piece = slice_first(slice_from(ANSWER, at), step);
            size_t used = 0;
            assert_int_equal(reply_feed(&reply, piece, &used, &complete, &err), STATUS_OK);
            assert_int_equal(used, piece.len);
        }
        assert_true(complete);
        assert_int_equal(reply.status, 201);
        assert_true(slice_equal(buf_view(&reply.body), SLICE("\r\n\r\n!")));
        assert_false(reply.is_close);
    }
}

static void bytes_after_the_answer_are_left(void **state)
{
    (void)state;
    static const struct {
        Slice bytes;
        size_t used;
    } rows[] = {
        {SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP"), 38},
        {SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP"), 40},
        {SLICE_INIT("HTTP/1.1 204 No Content\r\n\r\nHTTP"), 27},
        {SLICE_INIT("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nHTTP"), 48},
    };
    AUTO(reply_done) Reply reply;
    reply_init(&reply, false);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Error err;
        size_t used = 0;
        bool complete = false;
        reply_reset(&reply);
        assert_int_equal(reply_feed(&reply, rows[i].bytes, &used, &complete, &err), STATUS_OK);
        assert_true(complete);
        assert_int_equal(used, rows[i].used);
    }
}

static void what_cannot_be_measured_is_refused(void **state)
{
    (void)state;
    static const Slice rows[] = {
        SLICE_INIT("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 99 OK\r\nContent-Length: 0\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 100 Continue\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n"),
        SLICE_INIT("HTTP/1.1\r\n\r\n"),
        SLICE_INIT("\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nx-ms-continuation: a\001b\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 0\r\netag: a\rb\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\rx"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\rx"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
        SLICE_INIT("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"),
    };
    AUTO(reply_done) Reply reply;
    reply_init(&reply, false);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Error err;
        size_t used = 0;
        bool complete = false;
        reply_reset(&reply);
        assert_int_equal(reply_feed(&reply, rows[i], &used, &complete, &err), STATUS_BAD_REQUEST);
    }
}

static void endless_headers_are_refused(void **state)
{
    (void)state;
    AUTO(reply_done) Reply reply;
    reply_init(&reply, false);
    Error err;
    size_t used = 0;
    bool complete = false;
    Status status = STATUS_OK;
    for (size_t fed = 0; status == STATUS_OK; fed += 16) {
        assert_true(fed <= REPLY_HEAD_BYTES_MAX);
        status = reply_feed(&reply, SLICE("0123456789abcdef"), &used, &complete, &err);
    }
    assert_int_equal(status, STATUS_TOO_LARGE);
}

static void a_server_that_closes_is_noticed(void **state)
{
    (void)state;
    AUTO(reply_done) Reply reply;
    reply_init(&reply, false);
    Error err;
    size_t used = 0;
    bool complete = false;
    Slice bytes = SLICE("HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(reply_feed(&reply, bytes, &used, &complete, &err), STATUS_OK);
    assert_true(reply.is_close);
}

static void a_continuation_is_kept_until_the_next_answer(void **state)
{
    (void)state;
    AUTO(reply_done) Reply reply;
    reply_init(&reply, false);
    Error err;
    size_t used = 0;
    bool complete = false;
    Slice bytes = SLICE("HTTP/1.1 200 OK\r\nX-MS-Continuation: a:b==\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(reply_feed(&reply, bytes, &used, &complete, &err), STATUS_OK);
    assert_true(slice_equal(reply.continuation, SLICE("a:b==")));
    reply_reset(&reply);
    bytes = SLICE("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(reply_feed(&reply, bytes, &used, &complete, &err), STATUS_OK);
    assert_int_equal(reply.continuation.len, 0);
}

static const Slice CHUNKS = SLICE_INIT("HTTP/1.1 200 OK\r\n"
                                       "Transfer-Encoding: Chunked\r\n"
                                       "\r\n"
                                       "3\r\nabc\r\n"
                                       "00A;name=value\r\n0123456789\r\n"
                                       "0\r\n"
                                       "Trailer: x\r\n"
                                       "\r\n");

static void chunks_may_come_in_pieces_of_any_size(void **state)
{
    (void)state;
    AUTO(reply_done) Reply reply;
    reply_init(&reply, true);
    for (size_t step = 1; step <= CHUNKS.len; step++) {
        Error err;
        bool complete = false;
        reply_reset(&reply);
        for (size_t at = 0; at < CHUNKS.len; at += step) {
            assert_false(complete);
            Slice piece = slice_first(slice_from(CHUNKS, at), step);
            size_t used = 0;
            assert_int_equal(reply_feed(&reply, piece, &used, &complete, &err), STATUS_OK);
            assert_int_equal(used, piece.len);
        }
        assert_true(complete);
        assert_int_equal(reply.body_len, 13);
        assert_true(slice_equal(buf_view(&reply.body), SLICE("abc0123456789")));
    }
}

/* A server could go on for ever with any of them. */
static void what_has_no_end_is_refused(void **state)
{
    (void)state;
    static const struct {
        Slice head, piece;
    } rows[] = {
        {SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
         SLICE_INIT("100000;0000000000000000000000000000000000000000000000000000000000")},
        {SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"),
         SLICE_INIT("a: bcdefghijklmnopqrstuvwxyz\r\n")},
        {SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), SLICE_INIT("0")},
        {SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
         SLICE_INIT("fffffffffffffffff\r\n")},
        {SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
         SLICE_INIT("4000001\r\n")},
    };
    AUTO(reply_done) Reply reply;
    reply_init(&reply, false);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Error err;
        size_t used = 0;
        bool complete = false;
        reply_reset(&reply);
        Status status = reply_feed(&reply, rows[i].head, &used, &complete, &err);
        for (size_t fed = 0; status == STATUS_OK; fed += rows[i].piece.len) {
            assert_true(fed <= (size_t)64 << 10);
            assert_false(complete);
            status = reply_feed(&reply, rows[i].piece, &used, &complete, &err);
        }
        assert_int_equal(status, STATUS_TOO_LARGE);
    }
}

static void what_an_answer_costs_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *charge;
        uint64_t milli_ru;
    } rows[] = {
        {"1", 1000},
        {"10.29", 10290},
        {"0.5", 500},
        {"3.14159", 3141},
        {"", 0},
        {"-1", 0},
        {"1e3", 0},
        {"1.x", 0},
        {"nan", 0},
        {".5", 0},
        {"1000000000", 1000000000000},
        {"9999999999999999999999", 0},
        {"1000000001", 0},
    };
    AUTO(reply_done) Reply reply;
    reply_init(&reply, false);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Error err;
        size_t used = 0;
        bool complete = false;
        char text[200];
        int len = snprintf(text, sizeof(text),
                           "HTTP/1.1 429 Too Many Requests\r\nx-ms-request-charge: %s\r\n"
                           "x-ms-retry-after-ms: 12\r\nContent-Length: 0\r\n\r\n",
                           rows[i].charge);
        reply_reset(&reply);
        assert_int_equal(reply_feed(&reply, slice_make(text, (size_t)len), &used, &complete, &err),
                         STATUS_OK);
        assert_int_equal(reply.milli_ru, rows[i].milli_ru);
        assert_int_equal(reply.retry_after_ms, 12);
    }
}

static void only_the_beginning_of_an_error_is_kept(void **state)
{
    (void)state;
    AUTO(reply_done) Reply reply;
    reply_init(&reply, false);
    static const int statuses[] = {200, 404, 207};
    for (size_t i = 0; i < ARRAY_COUNT(statuses); i++) {
        Error err;
        size_t used = 0;
        bool complete = false;
        char text[1200] = "";
        int len = snprintf(text, sizeof(text), "HTTP/1.1 %d X\r\nContent-Length: 1000\r\n\r\n",
                           statuses[i]);
        memset(text + len, 'x', 1000);
        reply_reset(&reply);
        assert_int_equal(
            reply_feed(&reply, slice_make(text, (size_t)len + 1000), &used, &complete, &err),
            STATUS_OK);
        assert_true(complete);
        assert_int_equal(reply.body.len, i == 0 ? 0 : i == 1 ? REPLY_EXCERPT_BYTES_MAX : 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_may_come_in_pieces_of_any_size),
        cmocka_unit_test(bytes_after_the_answer_are_left),
        cmocka_unit_test(what_cannot_be_measured_is_refused),
        cmocka_unit_test(endless_headers_are_refused),
        cmocka_unit_test(a_server_that_closes_is_noticed),
        cmocka_unit_test(a_continuation_is_kept_until_the_next_answer),
        cmocka_unit_test(chunks_may_come_in_pieces_of_any_size),
        cmocka_unit_test(what_has_no_end_is_refused),
        cmocka_unit_test(what_an_answer_costs_is_read),
        cmocka_unit_test(only_the_beginning_of_an_error_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
