/* reply_test.c - answers in one piece and in many. */
#include "bench/reply.h"

#include <setjmp.h>
#include <stdarg.h>

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
        SLICE_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_may_come_in_pieces_of_any_size),
        cmocka_unit_test(bytes_after_the_answer_are_left),
        cmocka_unit_test(what_cannot_be_measured_is_refused),
        cmocka_unit_test(endless_headers_are_refused),
        cmocka_unit_test(a_server_that_closes_is_noticed),
        cmocka_unit_test(a_continuation_is_kept_until_the_next_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
