/* node_client_test.c - calls that wait for their answers. */
#include "http/node_testing_int.h"

static Sent *wait_for(NodeClient *client, const char *address, const char *path, Slice body,
                      uint32_t timeout_ms)
{
    Sent *sent = make_call(address, path, body);
    sent->call.timeout_ms = timeout_ms;
    node_client_call(client, &sent->call);
    atomic_store(&sent->done_count, 1);
    return sent;
}

static void a_kept_connection_serves_many_calls(void **state)
{
    enum { BYTES = 16 << 20 };
    Fixture *fixture = *state;
    NodeClient *client = node_client_open(&SECRET);
    char *bytes = malloc(BYTES);
    site_fill(bytes, BYTES);
    for (int i = 0; i < 50; i++) {
        Slice body = slice_make(bytes, i % 25 == 0 ? BYTES : 1000);
        Sent *sent = wait_for(client, fixture->to_address, "/echo", body, WAIT_MS_MAX);
        expect_answer(sent, 200, body);
        expect_header(sent, "x-node", "yes");
        end_call(sent);
    }
    assert_int_equal(site_metric(fixture->to, METRIC_CONNECTIONS_TOTAL), 1);
    free(bytes);
    node_client_close(client);
}

static void a_kept_connection_that_has_ended_is_replaced(void **state)
{
    Fixture *fixture = *state;
    NodeClient *client = node_client_open(&SECRET);
    uint16_t port = http_node_port(fixture->to->server);
    for (int i = 0; i < 5; i++) {
        Sent *sent = wait_for(client, fixture->to_address, "/hello", SLICE_EMPTY, WAIT_MS_MAX);
        expect_answer(sent, 200, SLICE("hello"));
        end_call(sent);
        site_end(fixture->to, 0);
        fixture->to = open_site(&SECRET, port);
    }
    node_client_close(client);
}

static void names_are_resolved(void **state)
{
    Fixture *fixture = *state;
    NodeClient *client = node_client_open(&SECRET);
    char address[64];
    (void)snprintf(address, sizeof(address), "localhost:%u", http_node_port(fixture->to->server));
    Sent *sent = wait_for(client, address, "/hello", SLICE_EMPTY, WAIT_MS_MAX);
    expect_answer(sent, 200, SLICE("hello"));
    end_call(sent);
    node_client_close(client);
}

static void a_large_request_may_be_refused_early(void **state)
{
    enum { BYTES = 40 << 20 };
    Fixture *fixture = *state;
    NodeClient *client = node_client_open(&SECRET);
    char *bytes = calloc(1, BYTES);
    Sent *sent =
        wait_for(client, fixture->to_address, "/echo", slice_make(bytes, BYTES), WAIT_MS_MAX);
    assert_int_equal(sent->call.outcome, NODE_CALL_ANSWERED);
    assert_int_equal(sent->call.status, 413);
    end_call(sent);
    sent = wait_for(client, fixture->to_address, "/hello", SLICE_EMPTY, WAIT_MS_MAX);
    expect_answer(sent, 200, SLICE("hello"));
    end_call(sent);
    free(bytes);
    node_client_close(client);
}

static void failures_say_whether_the_request_has_left(void **state)
{
    Fixture *fixture = *state;
    NodeClient *client = node_client_open(&SECRET);
    NodeClient *stranger = node_client_open(&OTHER_SECRET);
    Sent *sent = wait_for(client, "127.0.0.1:1", "/", SLICE("x"), WAIT_MS_MAX);
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_UNAVAILABLE, "Cannot connect");
    end_call(sent);
    sent = wait_for(client, "no port", "/", SLICE("x"), WAIT_MS_MAX);
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_BAD_REQUEST, "HOST:PORT");
    end_call(sent);
    sent = wait_for(stranger, fixture->to_address, "/hello", SLICE("x"), WAIT_MS_MAX);
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_UNAVAILABLE, "did not prove");
    end_call(sent);
    assert_int_equal(atomic_load(&fixture->to->handled_count), 0);

    Fake *fake = fake_open(&SECRET, serve_reset);
    fake_start(fake);
    sent = wait_for(client, fake->address, "/", SLICE("x"), WAIT_MS_MAX);
    expect_outcome(sent, NODE_CALL_UNKNOWN, STATUS_UNAVAILABLE, "closed the connection");
    assert_int_equal(atomic_load(&fake->requests), 1);
    end_call(sent);
    fake_close(fake);

    fake = fake_open(&SECRET, serve_no_handshake);
    fake_start(fake);
    sent = wait_for(client, fake->address, "/", SLICE("x"), 50);
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_TIMEOUT, "within 50 ms");
    end_call(sent);
    fake_close(fake);

    static const char answer[] = "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n";
    fake = open_answering(answer, sizeof(answer) - 1, false);
    sent = wait_for(client, fake->address, "/", SLICE("x"), WAIT_MS_MAX);
    expect_outcome(sent, NODE_CALL_UNKNOWN, STATUS_TOO_LARGE, "larger than");
    end_call(sent);
    fake_close(fake);
    node_client_close(stranger);
    node_client_close(client);
}

typedef struct Caller {
    pthread_t thread;
    NodeClient *client;
    const char *address;
    int answered;
} Caller;

static void *run_caller(void *arg)
{
    Caller *caller = arg;
    for (int i = 0; i < 50; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "%p %d", arg, i);
        Sent *sent =
            wait_for(caller->client, caller->address, "/echo", slice_from_cstr(text), WAIT_MS_MAX);
        caller->answered += sent->call.outcome == NODE_CALL_ANSWERED &&
                            slice_equal(sent->call.answer_body, slice_from_cstr(text));
        end_call(sent);
    }
    OPENSSL_thread_stop();
    return NULL;
}

static void many_threads_share_a_client(void **state)
{
    enum { THREADS = 12 };
    Fixture *fixture = *state;
    NodeClient *client = node_client_open(&SECRET);
    Caller callers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (Caller){.client = client, .address = fixture->to_address};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, run_caller, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_int_equal(callers[i].answered, 50);
    }
    node_client_close(client);
    WAIT_UNTIL(site_metric(fixture->to, METRIC_CONNECTIONS_OPEN) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_kept_connection_serves_many_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(a_kept_connection_that_has_ended_is_replaced, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(names_are_resolved, setup, teardown),
        cmocka_unit_test_setup_teardown(a_large_request_may_be_refused_early, setup, teardown),
        cmocka_unit_test_setup_teardown(failures_say_whether_the_request_has_left, setup, teardown),
        cmocka_unit_test_setup_teardown(many_threads_share_a_client, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
