/* node_link_test.c - calls from one server to another, and to peers that behave badly. */
#include "http/node_testing_int.h"

/* What the request has said of the time for which its sender waits. */
static uint64_t left_ms(const Sent *sent)
{
    uint64_t left = 0;
    assert_true(slice_to_u64(answer_header_of(sent, "x-node-left"), &left));
    return left;
}

static void a_call_reaches_the_handler_as_one_of_a_node(void **state)
{
    Fixture *fixture = *state;
    HttpHeader headers[] = {{SLICE("x-orrery-node-test"), SLICE("seen")},
                            {SLICE("x-send"), SLICE("one\r\nx-evil: 1")}};
    Sent *sent = make_call(fixture->to_address, "/echo?a=b", SLICE("body"));
    sent->call.headers = headers;
    sent->call.header_count = ARRAY_COUNT(headers);
    post_call(fixture->from, 0, sent);
    await_call(sent);
    expect_answer(sent, 200, SLICE("body"));
    expect_header(sent, "x-method", "POST");
    expect_header(sent, "x-path", "/echo?a=b");
    expect_header(sent, "x-authority", fixture->to_address);
    expect_header(sent, "x-tls", "yes");
    expect_header(sent, "x-node", "yes");
    expect_header(sent, "x-node-sent", "seen");
    assert_in_range(left_ms(sent), 1, sent->call.timeout_ms);
    expect_header(sent, "x-sent", "one  x-evil: 1");
    expect_header(sent, "content-length", "");
    expect_header(sent, "date", "");
    end_call(sent);
}

static void a_client_is_never_taken_for_a_node(void **state)
{
    Fixture *fixture = *state;
    Peer *client = peer_open(fixture->to);
    Answer answer;
    peer_send(client, "GET /echo HTTP/1.1\r\nhost: h\r\n\r\n");
    peer_answer(client, &answer);
    assert_string_equal(answer_header(&answer, "x-node"), "no");
    answer_done(&answer);
    peer_close(client);
    static const char *const names[] = {"x-orrery-node-test", "X-Orrery-Node-", "X-ORRERY-NODE-A"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char text[128];
        client = peer_open(fixture->to);
        (void)snprintf(text, sizeof(text), "GET /echo HTTP/1.1\r\nhost: h\r\n%s: x\r\n\r\n",
                       names[i]);
        peer_send(client, text);
        (void)peer_expect_refusal(client, 400, "BadRequest");
        peer_close(client);
    }
    assert_int_equal(atomic_load(&fixture->to->handled_count), 1);
}

static void a_server_without_a_secret_sends_nothing(void **state)
{
    Fixture *fixture = *state;
    Site *site = site_make();
    site_start(site);
    assert_int_equal(http_node_port(site->server), 0);
    assert_false(http_loop_can_send(site->loops[0]));
    assert_true(http_loop_can_send(fixture->from->loops[0]));
    Sent *sent = call(site, fixture->to_address, "/hello", SLICE_EMPTY);
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_NOT_IMPLEMENTED, "no node of a cluster");
    end_call(sent);
    site_end(site, 0);
}

static void another_secret_is_not_believed(void **state)
{
    Fixture *fixture = *state;
    Site *stranger = open_site(&OTHER_SECRET, 0);
    Sent *sent = call(stranger, fixture->to_address, "/hello", SLICE_EMPTY);
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_UNAVAILABLE, "did not prove");
    end_call(sent);
    assert_int_equal(atomic_load(&fixture->to->handled_count), 0);
    assert_int_equal(site_metric(fixture->to, METRIC_NODE_PROOFS_FAILED), 1);
    site_end(stranger, 0);
}

static void many_calls_share_few_connections(void **state)
{
    enum { COUNT = 1000 };
    Fixture *fixture = *state;
    Sent **sent = calloc(COUNT, sizeof(Sent *));
    for (int i = 0; i < COUNT; i++) {
        char text[32];
        (void)snprintf(text, sizeof(text), "body %d", i);
        sent[i] = make_call(fixture->to_address, "/echo", SLICE_EMPTY);
        sent[i]->call.method = SLICE("POST");
        sent[i]->call.body = arena_copy(&sent[i]->arena, slice_from_cstr(text));
        post_call(fixture->from, (size_t)i % 2, sent[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        await_call(sent[i]);
        expect_answer(sent[i], 200, sent[i]->call.body);
        end_call(sent[i]);
    }
    free(sent);
    assert_in_range(site_metric(fixture->to, METRIC_CONNECTIONS_TOTAL), 2,
                    2 * NODE_CONNECTIONS_MAX);
}

static void large_bodies_go_both_ways(void **state)
{
    enum { BYTES = 16 << 20 };
    Fixture *fixture = *state;
    char *bytes = malloc(BYTES);
    site_fill(bytes, BYTES);
    for (int i = 0; i < 2; i++) {
        Sent *sent = call(fixture->from, fixture->to_address, "/echo", slice_make(bytes, BYTES));
        expect_answer(sent, 200, slice_make(bytes, BYTES));
        end_call(sent);
    }
    free(bytes);
    assert_int_equal(site_metric(fixture->to, METRIC_CONNECTIONS_TOTAL), 1);
}

static void the_loops_of_a_server_have_connections_of_their_own(void **state)
{
    enum { LOOPS = 4, COUNT = 400 };
    Fixture *fixture = *state;
    Site *site = site_make();
    site->options.node_secret = &SECRET;
    site->options.node_host = "127.0.0.1";
    site->options.threads = LOOPS;
    site_start(site);
    Sent *sent[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sent[i] = make_call(fixture->to_address, "/echo", SLICE("from a loop"));
        post_call(site, i % LOOPS, sent[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        await_call(sent[i]);
        expect_answer(sent[i], 200, SLICE("from a loop"));
        end_call(sent[i]);
    }
    assert_in_range(site_metric(fixture->to, METRIC_CONNECTIONS_TOTAL), LOOPS,
                    LOOPS * NODE_CONNECTIONS_MAX);
    site_end(site, 0);
}

static void begin_next(NodeCall *call)
{
    Sent *sent = CONTAINER_OF(call, Sent, call);
    if (atomic_fetch_add(&sent->done_count, 1) < 99)
        node_link_send(sent->loop, call);
}

static void the_end_of_a_call_may_begin_the_next(void **state)
{
    Fixture *fixture = *state;
    static const char *const addresses[] = {NULL, "127.0.0.1:1", "nonsense"};
    for (size_t i = 0; i < ARRAY_COUNT(addresses); i++) {
        const char *address = i == 0 ? fixture->to_address : addresses[i];
        Sent *sent = make_call(address, "/hello", SLICE_EMPTY);
        sent->call.done = begin_next;
        post_call(fixture->from, 0, sent);
        WAIT_UNTIL(atomic_load(&sent->done_count) == 100);
        assert_int_equal(sent->call.outcome, i == 0 ? NODE_CALL_ANSWERED : NODE_CALL_NOT_SENT);
        atomic_store(&sent->done_count, 1);
        end_call(sent);
    }
    assert_int_equal(site_metric(fixture->to, METRIC_CONNECTIONS_TOTAL), 1);
}

static void malformed_calls_are_not_sent(void **state)
{
    static const struct {
        const char *address, *method, *path, *header;
    } rows[] = {
        {"127.0.0.1", "GET", "/", "a"},
        {"127.0.0.1:", "GET", "/", "a"},
        {"127.0.0.1:0", "GET", "/", "a"},
        {"127.0.0.1:65536", "GET", "/", "a"},
        {":1", "GET", "/", "a"},
        {"::1:1", "GET", "/", "a"},
        {"[::1:1", "GET", "/", "a"},
        {"a b:1", "GET", "/", "a"},
        {"127.0.0.1:1", "", "/", "a"},
        {"127.0.0.1:1", "GET /", "/", "a"},
        {"127.0.0.1:1", "GET", "", "a"},
        {"127.0.0.1:1", "GET", "/ HTTP/1.1\r\n", "a"},
        {"127.0.0.1:1", "GET", "/", "a\r\nb"},
        {"127.0.0.1:1", "GET", "/", ""},
        {"127.0.0.1:1", "GET", "/", "a: b"},
    };
    Fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        HttpHeader header = {slice_from_cstr(rows[i].header), SLICE("v")};
        Sent *sent = make_call(rows[i].address, rows[i].path, SLICE_EMPTY);
        sent->call.method = slice_from_cstr(rows[i].method);
        sent->call.headers = &header;
        sent->call.header_count = 1;
        post_call(fixture->from, 0, sent);
        await_call(sent);
        if (sent->call.error.status != STATUS_BAD_REQUEST)
            fail_msg("row %zu: %s", i, sent->call.error.message);
        assert_int_equal(sent->call.outcome, NODE_CALL_NOT_SENT);
        end_call(sent);
    }
}

static void a_refusal_may_come_before_the_request_is_whole(void **state)
{
    enum { BYTES = 40 << 20 };
    Fixture *fixture = *state;
    char *bytes = calloc(1, BYTES);
    Sent *sent = call(fixture->from, fixture->to_address, "/deny", slice_make(bytes, 16 << 20));
    expect_answer(sent, 401, SLICE("denied"));
    end_call(sent);
    sent = call(fixture->from, fixture->to_address, "/echo", slice_make(bytes, BYTES));
    assert_int_equal(sent->call.outcome, NODE_CALL_ANSWERED);
    assert_int_equal(sent->call.status, 413);
    end_call(sent);
    sent = call(fixture->from, fixture->to_address, "/hello", SLICE_EMPTY);
    expect_answer(sent, 200, SLICE("hello"));
    end_call(sent);
    free(bytes);
}

static void a_kept_connection_that_has_ended_is_replaced(void **state)
{
    Fixture *fixture = *state;
    uint16_t port = http_node_port(fixture->to->server);
    for (int i = 0; i < 5; i++) {
        Sent *sent = call(fixture->from, fixture->to_address, "/hello", SLICE_EMPTY);
        expect_answer(sent, 200, SLICE("hello"));
        end_call(sent);
        site_end(fixture->to, 0);
        fixture->to = open_site(&SECRET, port);
    }
}

static void nobody_listening_means_not_sent(void **state)
{
    Fixture *fixture = *state;
    site_end(fixture->to, 0);
    fixture->to = NULL;
    Sent *sent = call(fixture->from, fixture->to_address, "/hello", SLICE("body"));
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_UNAVAILABLE, "Cannot connect");
    end_call(sent);
}

static void calls_wait_for_a_connection_as_long_as_they_may(void **state)
{
    Fixture *fixture = *state;
    Sent *held[NODE_CONNECTIONS_MAX];
    for (size_t i = 0; i < NODE_CONNECTIONS_MAX; i++) {
        held[i] = make_call(fixture->to_address, "/hold", SLICE("x"));
        post_call(fixture->from, 0, held[i]);
    }
    WAIT_UNTIL(atomic_load(&fixture->to->held_count) == NODE_CONNECTIONS_MAX);
    Sent *late = make_call(fixture->to_address, "/hello", SLICE_EMPTY);
    late->call.timeout_ms = 50;
    Sent *patient = make_call(fixture->to_address, "/echo", SLICE_EMPTY);
    post_call(fixture->from, 0, late);
    post_call(fixture->from, 0, patient);
    await_call(late);
    expect_outcome(late, NODE_CALL_NOT_SENT, STATUS_TIMEOUT, "within 50 ms");
    assert_int_equal(atomic_load(&patient->done_count), 0);
    (void)site_answer_held(fixture->to);
    await_call(patient);
    expect_answer(patient, 200, SLICE_EMPTY);
    assert_in_range(left_ms(patient), 1, patient->call.timeout_ms - 50); /* as it was sent */
    for (size_t i = 0; i < NODE_CONNECTIONS_MAX; i++) {
        await_call(held[i]);
        expect_answer(held[i], 200, SLICE("x"));
        end_call(held[i]);
    }
    end_call(late);
    end_call(patient);
}

static void too_many_waiting_calls_are_refused(void **state)
{
    enum { COUNT = NODE_CONNECTIONS_MAX + NODE_WAITING_MAX + 10 };
    Fixture *fixture = *state;
    Sent **sent = calloc(COUNT, sizeof(Sent *));
    int refused = 0;
    for (size_t i = 0; i < COUNT; i++) {
        sent[i] = make_call(fixture->to_address, "/hold", SLICE_EMPTY);
        post_call(fixture->from, 0, sent[i]);
        if (i + 1 == NODE_CONNECTIONS_MAX)
            WAIT_UNTIL(atomic_load(&fixture->to->held_count) == NODE_CONNECTIONS_MAX);
    }
    for (int i = COUNT - 10; i < COUNT; i++) {
        await_call(sent[i]);
        expect_outcome(sent[i], NODE_CALL_NOT_SENT, STATUS_THROTTLED, "waiting");
        refused++;
    }
    int answered = 0;
    WAIT_UNTIL((answered += site_answer_held(fixture->to)) == COUNT - refused);
    for (int i = 0; i < COUNT; i++) {
        await_call(sent[i]);
        if (i < COUNT - refused)
            expect_answer(sent[i], 200, SLICE_EMPTY);
        end_call(sent[i]);
    }
    free(sent);
}

static void a_loop_that_ends_ends_its_calls(void **state)
{
    enum { WAITING = 10, COUNT = NODE_CONNECTIONS_MAX + WAITING };
    Fixture *fixture = *state;
    Site *site = open_site(&SECRET, 0);
    Sent *sent[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sent[i] = make_call(fixture->to_address, "/hold", SLICE("x"));
        post_call(site, 0, sent[i]);
    }
    WAIT_UNTIL(atomic_load(&fixture->to->held_count) == NODE_CONNECTIONS_MAX);
    site_end(site, 0);
    int unknown = 0;
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(atomic_load(&sent[i]->done_count), 1);
        expect_outcome(sent[i], sent[i]->call.outcome, STATUS_UNAVAILABLE, "being stopped");
        unknown += sent[i]->call.outcome == NODE_CALL_UNKNOWN;
        end_call(sent[i]);
    }
    assert_int_equal(unknown, NODE_CONNECTIONS_MAX);
    (void)site_answer_held(fixture->to);
}

static void names_are_resolved_beside_the_loop(void **state)
{
    Fixture *fixture = *state;
    char address[64];
    (void)snprintf(address, sizeof(address), "localhost:%u", http_node_port(fixture->to->server));
    for (int i = 0; i < 2; i++) {
        Sent *sent = call(fixture->from, address, "/hello", SLICE_EMPTY);
        expect_answer(sent, 200, SLICE("hello"));
        end_call(sent);
    }
    Sent *sent = call(fixture->from, "no-such-host.invalid:1", "/hello", SLICE_EMPTY);
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_UNAVAILABLE, "Cannot resolve");
    end_call(sent);
    /* A loop that ends does so with the resolver's thread, and the call. */
    Site *site = open_site(&SECRET, 0);
    sent = make_call("other-host.invalid:1", "/hello", SLICE_EMPTY);
    post_call(site, 0, sent);
    site_end(site, 0);
    assert_int_equal(sent->call.outcome, NODE_CALL_NOT_SENT);
    end_call(sent);
}

static void send_until_refused(NodeCall *call)
{
    Sent *sent = CONTAINER_OF(call, Sent, call);
    if (call->outcome == NODE_CALL_ANSWERED)
        node_link_send(sent->loop, call);
    else
        atomic_store(&sent->done_count, 1);
}

static void a_node_that_is_stopped_leaves_no_request_unknown(void **state)
{
    enum { COUNT = 24 };
    Fixture *fixture = *state;
    for (int round = 0; round < 10; round++) {
        Sent *sent[COUNT];
        uint16_t port = http_node_port(fixture->to->server);
        for (size_t i = 0; i < COUNT; i++) {
            sent[i] = make_call(fixture->to_address, "/echo", SLICE("body"));
            sent[i]->call.done = send_until_refused;
            post_call(fixture->from, i % 2, sent[i]);
        }
        WAIT_UNTIL(atomic_load(&fixture->to->handled_count) > 1000);
        site_end(fixture->to, WAIT_MS_MAX);
        for (size_t i = 0; i < COUNT; i++) {
            await_call(sent[i]);
            expect_outcome(sent[i], NODE_CALL_NOT_SENT, STATUS_UNAVAILABLE, "");
            end_call(sent[i]);
        }
        fixture->to = open_site(&SECRET, port);
    }
}

static Sent *call_with_headers(const Fixture *fixture, size_t count, size_t value_len)
{
    Sent *sent = make_call(fixture->to_address, "/echo", SLICE_EMPTY);
    HttpHeader *headers = ARENA_NEW_ARRAY(&sent->arena, HttpHeader, count);
    char *value = arena_alloc(&sent->arena, value_len);
    memset(value, 'v', value_len);
    for (size_t i = 0; i < count; i++)
        headers[i] =
            (HttpHeader){arena_format(&sent->arena, "x-%zu", i), slice_make(value, value_len)};
    sent->call.headers = headers;
    sent->call.header_count = count;
    post_call(fixture->from, 0, sent);
    await_call(sent);
    return sent;
}

static void a_node_may_send_a_longer_head_than_a_client(void **state)
{
    static const struct {
        size_t count, value_len;
        int status;
    } rows[] = {
        {HTTP_HEADERS_MAX + 20, 10, 200},
        {1, 30 << 10, 200},
        {1, 33 << 10, 400},
        {HTTP_NODE_HEADERS_MAX - 3, 1, 200},
        {HTTP_NODE_HEADERS_MAX - 2, 1, 400},
    };
    Fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Sent *sent = call_with_headers(fixture, rows[i].count, rows[i].value_len);
        if (sent->call.status != rows[i].status)
            fail_msg("row %zu: %d %.*s", i, sent->call.status, SLICE_ARG(sent->call.answer_body));
        end_call(sent);
    }
}

static void headers_of_a_clients_connection_stay_here(void **state)
{
    static const char *const names[] = {
        "host",   "content-length",    "connection", "keep-alive", "proxy-connection",
        "expect", "transfer-encoding", "te",         "trailer",    "upgrade"};
    Fixture *fixture = *state;
    HttpHeader headers[ARRAY_COUNT(names) + 1] = {{SLICE("x-send"), SLICE("kept")}};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        headers[i + 1] = (HttpHeader){slice_from_cstr(names[i]), SLICE("close")};
    for (int i = 0; i < 2; i++) {
        Sent *sent = make_call(fixture->to_address, "/echo", SLICE("body"));
        sent->call.headers = headers;
        sent->call.header_count = ARRAY_COUNT(headers);
        post_call(fixture->from, 0, sent);
        await_call(sent);
        expect_answer(sent, 200, SLICE("body"));
        expect_header(sent, "x-sent", "kept");
        expect_header(sent, "x-header-count", "4");
        end_call(sent);
    }
    Sent *sent = make_call(fixture->to_address, "/hello", SLICE_EMPTY);
    sent->call.method = SLICE("HEAD");
    post_call(fixture->from, 0, sent);
    await_call(sent);
    expect_answer(sent, 200, SLICE_EMPTY);
    end_call(sent);
    assert_int_equal(site_metric(fixture->to, METRIC_CONNECTIONS_TOTAL), 1);
}

static void a_port_for_nodes_that_is_taken_is_an_error(void **state)
{
    Fixture *fixture = *state;
    Error err;
    Site *site = site_make();
    site->options.node_secret = &SECRET;
    site->options.node_host = "127.0.0.1";
    site->options.node_port = http_node_port(fixture->to->server);
    metrics_init(&site->metrics, site->options.threads);
    assert_int_equal(cert_ensure(site->cert, site->key, &err), STATUS_OK);
    assert_int_equal(http_server_open(&site->options, &site->server, &err), STATUS_CONFLICT);
    assert_non_null(strstr(err.message, "the port for other nodes"));
    site->server = NULL;
    site_end(site, 0);
}

static void the_sender_closes_idle_connections(void **state)
{
    Fixture *fixture = *state;
    on_loop(fixture->from, 0, shorten_times);
    for (int i = 1; i <= 2; i++) {
        Sent *sent = call(fixture->from, fixture->to_address, "/hello", SLICE_EMPTY);
        expect_answer(sent, 200, SLICE("hello"));
        end_call(sent);
        WAIT_UNTIL(site_metric(fixture->to, METRIC_CONNECTIONS_OPEN) == 0);
        assert_int_equal(site_metric(fixture->to, METRIC_CONNECTIONS_TOTAL), i);
    }
}

static void wear_out(HttpLoop *loop)
{
    NodeConn *conn = CONTAINER_OF(loop->links->peers[0]->idle.next, NodeConn, link);
    conn->requests = NODE_CONN_REQUESTS_MAX - 1;
}

static void a_worn_connection_is_replaced(void **state)
{
    Fixture *fixture = *state;
    for (int i = 0; i < 3; i++) {
        Sent *sent = call(fixture->from, fixture->to_address, "/hello", SLICE_EMPTY);
        expect_answer(sent, 200, SLICE("hello"));
        end_call(sent);
        assert_int_equal(site_metric(fixture->to, METRIC_CONNECTIONS_TOTAL), i < 2 ? 1 : 2);
        if (i == 0)
            on_loop(fixture->from, 0, wear_out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_reaches_the_handler_as_one_of_a_node, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_client_is_never_taken_for_a_node, setup, teardown),
        cmocka_unit_test_setup_teardown(a_server_without_a_secret_sends_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(another_secret_is_not_believed, setup, teardown),
        cmocka_unit_test_setup_teardown(many_calls_share_few_connections, setup, teardown),
        cmocka_unit_test_setup_teardown(large_bodies_go_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(the_loops_of_a_server_have_connections_of_their_own, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_end_of_a_call_may_begin_the_next, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_calls_are_not_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(a_refusal_may_come_before_the_request_is_whole, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_kept_connection_that_has_ended_is_replaced, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(nobody_listening_means_not_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(calls_wait_for_a_connection_as_long_as_they_may, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(too_many_waiting_calls_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_loop_that_ends_ends_its_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(names_are_resolved_beside_the_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_is_stopped_leaves_no_request_unknown, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_node_may_send_a_longer_head_than_a_client, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(headers_of_a_clients_connection_stay_here, setup, teardown),
        cmocka_unit_test_setup_teardown(a_port_for_nodes_that_is_taken_is_an_error, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_sender_closes_idle_connections, setup, teardown),
        cmocka_unit_test_setup_teardown(a_worn_connection_is_replaced, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
