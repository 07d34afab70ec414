/* node_peer_test.c - calls to peers that know the secret and behave badly, or die. */
#include "http/node_testing_int.h"

static void bad_answers_are_errors(void **state)
{
    static const struct {
        const char *answer, *words;
        Status status;
        bool closes;
    } rows[] = {
        {"garbage\r\n\r\n", "well-formed", STATUS_UNAVAILABLE, false},
        {"", "closed the connection", STATUS_UNAVAILABLE, true},
        {"HTTP/1.1 200 OK\r\n", "closed the connection", STATUS_UNAVAILABLE, true},
        {"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel", "closed the connection",
         STATUS_UNAVAILABLE, true},
        {"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel", "closed the connection",
         STATUS_UNAVAILABLE, true},
        {"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx", "larger", STATUS_TOO_LARGE,
         false},
        {"HTTP/1.1 200 OK\r\n\r\nhello", "how long", STATUS_UNAVAILABLE, true},
    };
    Fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Fake *fake = open_answering(rows[i].answer, strlen(rows[i].answer), rows[i].closes);
        Sent *sent = call(fixture->from, fake->address, "/", SLICE_EMPTY);
        expect_outcome(sent, NODE_CALL_UNKNOWN, rows[i].status, rows[i].words);
        assert_int_equal(atomic_load(&fake->requests), 1);
        end_call(sent);
        fake_close(fake);
    }
}

static void a_huge_head_is_an_error(void **state)
{
    enum { BYTES = 1 << 20 };
    Fixture *fixture = *state;
    char *answer = malloc(BYTES);
    memset(answer, 'x', BYTES);
    memcpy(answer, "HTTP/1.1 200 OK\r\n", 17);
    Fake *fake = open_answering(answer, BYTES, false);
    Sent *sent = call(fixture->from, fake->address, "/", SLICE_EMPTY);
    expect_outcome(sent, NODE_CALL_UNKNOWN, STATUS_UNAVAILABLE, "too long");
    end_call(sent);
    fake_close(fake);
    free(answer);
}

static void a_connection_with_more_than_an_answer_is_not_used_again(void **state)
{
    static const char answer[] =
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 500 No\r\n";
    static const char last[] =
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
    static const char chunks[] =
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    static const struct {
        const char *answer;
        int connections;
    } rows[] = {{answer, 3}, {last, 3}, {chunks, 1}};
    Fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Fake *fake = open_answering(rows[i].answer, strlen(rows[i].answer), false);
        for (int round = 0; round < 3; round++) {
            Sent *sent = call(fixture->from, fake->address, "/", SLICE_EMPTY);
            expect_answer(sent, 200, SLICE("ok"));
            end_call(sent);
        }
        assert_int_equal(atomic_load(&fake->accepted), rows[i].connections);
        fake_close(fake);
    }
}

static void a_peer_that_dies_with_the_request_leaves_it_unknown(void **state)
{
    Fixture *fixture = *state;
    Fake *fake = fake_open(&SECRET, serve_reset);
    fake_start(fake);
    for (int i = 1; i <= 3; i++) {
        Sent *sent = call(fixture->from, fake->address, "/", SLICE("body"));
        expect_outcome(sent, NODE_CALL_UNKNOWN, STATUS_UNAVAILABLE, "closed the connection");
        assert_int_equal(atomic_load(&fake->requests), i); /* never sent again */
        end_call(sent);
    }
    fake_close(fake);
}

static void a_peer_that_says_nothing_is_left_in_time(void **state)
{
    Fixture *fixture = *state;
    Fake *fake = fake_open(&SECRET, serve_silence);
    fake_start(fake);
    Sent *sent = make_call(fake->address, "/", SLICE("body"));
    sent->call.timeout_ms = 200;
    post_call(fixture->from, 0, sent);
    await_call(sent);
    /* On a slow machine the time may be over before there is a connection. */
    expect_outcome(sent, atomic_load(&fake->requests) > 0 ? NODE_CALL_UNKNOWN : NODE_CALL_NOT_SENT,
                   STATUS_TIMEOUT, "within 200 ms");
    end_call(sent);
    fake_close(fake);
}

static void a_peer_without_a_handshake_gets_nothing(void **state)
{
    Fixture *fixture = *state;
    Fake *fake = fake_open(&SECRET, serve_no_handshake);
    fake_start(fake);
    on_loop(fixture->from, 0, shorten_times);
    Sent *sent = make_call(fake->address, "/", SLICE("body"));
    sent->call.timeout_ms = 50;
    post_call(fixture->from, 0, sent);
    await_call(sent);
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_TIMEOUT, "within 50 ms");
    end_call(sent);
    /* And without a time-out of its own the call ends with that of connecting. */
    sent = call(fixture->from, fake->address, "/", SLICE("body"));
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_UNAVAILABLE, "did not complete a connection");
    end_call(sent);
    fake_close(fake);
}

static void an_answer_that_no_memory_is_left_for_is_an_error(void **state)
{
    Fixture *fixture = *state;
    Site *site = site_make();
    site->options.node_secret = &SECRET;
    site->options.node_host = "127.0.0.1";
    site->options.memory_bytes_max = HTTP_MEMORY_BYTES_MIN;
    site_start(site);
    Sent *sent = call(site, fixture->to_address, "/big/31457280", SLICE_EMPTY);
    expect_outcome(sent, NODE_CALL_UNKNOWN, STATUS_UNAVAILABLE, "no memory");
    end_call(sent);
    sent = call(site, fixture->to_address, "/big/4000000", SLICE_EMPTY);
    assert_int_equal(sent->call.outcome, NODE_CALL_ANSWERED);
    end_call(sent);
    WAIT_UNTIL(site_metric(site, METRIC_MEMORY_BYTES) < (1 << 20));
    site_end(site, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bad_answers_are_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(a_huge_head_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(a_connection_with_more_than_an_answer_is_not_used_again,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_dies_with_the_request_leaves_it_unknown, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_says_nothing_is_left_in_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_without_a_handshake_gets_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_that_no_memory_is_left_for_is_an_error, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
