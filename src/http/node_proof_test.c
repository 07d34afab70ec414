/* node_proof_test.c - who gets past the proof, and who does not. */
#include "http/node_testing_int.h"

#include <openssl/hmac.h>

/* The format of node_proof.c, written down once more. */
static void make_proof(SSL *ssl, const char *role, const uint8_t *client_nonce,
                       const uint8_t *server_nonce, uint8_t out[NODE_PROOF_BYTES])
{
    static const char label[] = "EXPERIMENTAL-orrery-node";
    uint8_t text[18 + 32 + 32 + 32];
    assert_int_equal(strlen(role), 18);
    memcpy(text, role, 18);
    memcpy(text + 18, client_nonce, 32);
    memcpy(text + 50, server_nonce, 32);
    assert_int_equal(
        SSL_export_keying_material(ssl, text + 82, 32, label, strlen(label), NULL, 0, 0), 1);
    assert_non_null(HMAC(EVP_sha256(), SECRET.bytes, 32, text, sizeof(text), out, NULL));
}

/* A client that speaks TLS to the node port, and has exchanged nonces. */
typedef struct Stranger {
    Transport transport;
    uint8_t nonce[NODE_NONCE_BYTES];
    uint8_t server_nonce[NODE_NONCE_BYTES];
} Stranger;

static bool write_bytes(Transport *transport, const void *bytes, size_t len)
{
    char *record = malloc(TLS_RECORD_BYTES);
    Output output = {.head = slice_make(bytes, len)};
    bool is_done = transport_write(transport, &output, record) == TRANSPORT_DONE;
    free(record);
    return is_done;
}

static bool read_bytes(Transport *transport, uint8_t *bytes, size_t len)
{
    for (size_t got = 0; got < len;) {
        size_t more = 0;
        bool has_more = false;
        if (transport_read(transport, (char *)bytes + got, len - got, &more, &has_more) !=
            TRANSPORT_DONE)
            return false;
        got += more;
    }
    return true;
}

static void stranger_open(Stranger *stranger, const Fixture *fixture, const NodeTls *tls,
                          const uint8_t *nonce)
{
    bool wants_write = false;
    *stranger = (Stranger){.transport.fd = connect_to(http_node_port(fixture->to->server))};
    assert_int_equal(
        transport_handshake(&stranger->transport, tls->client, TRANSPORT_CLIENT, &wants_write),
        TRANSPORT_DONE);
    if (nonce != NULL)
        memcpy(stranger->nonce, nonce, NODE_NONCE_BYTES);
    else
        random_secret(stranger->nonce, NODE_NONCE_BYTES);
    assert_true(read_bytes(&stranger->transport, stranger->server_nonce, NODE_NONCE_BYTES));
    assert_true(write_bytes(&stranger->transport, stranger->nonce, NODE_NONCE_BYTES));
}

/* Whether the server answers the proof with its own. A request follows at once: it must not reach
 * the handler if the proof is wrong. */
static bool stranger_proves(Stranger *stranger, const uint8_t proof[NODE_PROOF_BYTES])
{
    static const char request[] = "GET /hello HTTP/1.1\r\nhost: h\r\n\r\n";
    uint8_t answer[NODE_PROOF_BYTES];
    uint8_t expected[NODE_PROOF_BYTES];
    (void)write_bytes(&stranger->transport, proof, NODE_PROOF_BYTES);
    (void)write_bytes(&stranger->transport, request, sizeof(request) - 1);
    if (!read_bytes(&stranger->transport, answer, sizeof(answer)))
        return false;
    make_proof(stranger->transport.ssl, "orrery node server", stranger->nonce,
               stranger->server_nonce, expected);
    assert_memory_equal(answer, expected, sizeof(expected));
    assert_true(read_bytes(&stranger->transport, answer, 15));
    assert_memory_equal(answer, "HTTP/1.1 200 OK", 15);
    return true;
}

static NodeTls *open_tls(const NodeSecret *secret)
{
    Error err;
    NodeTls *tls = NULL;
    if (node_tls_open(secret, &tls, &err) != STATUS_OK)
        fail_msg("%s", err.message);
    return tls;
}

static void only_the_proof_of_this_connection_is_believed(void **state)
{
    Fixture *fixture = *state;
    NodeTls *tls = open_tls(&OTHER_SECRET); /* only its TLS is used */
    Stranger first;
    uint8_t good[NODE_PROOF_BYTES];
    stranger_open(&first, fixture, tls, NULL);
    make_proof(first.transport.ssl, "orrery node client", first.nonce, first.server_nonce, good);
    assert_true(stranger_proves(&first, good));
    assert_int_equal(atomic_load(&fixture->to->handled_count), 1);

    enum { REPLAYED, ZERO, ROLE, SWAPPED, BIT, ECHOED, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        Stranger next;
        uint8_t proof[NODE_PROOF_BYTES] = {0};
        stranger_open(&next, fixture, tls, first.nonce);
        if (kind == REPLAYED)
            memcpy(proof, good, sizeof(proof));
        else if (kind == ROLE)
            make_proof(next.transport.ssl, "orrery node server", next.nonce, next.server_nonce,
                       proof);
        else if (kind == SWAPPED)
            make_proof(next.transport.ssl, "orrery node client", next.server_nonce, next.nonce,
                       proof);
        else if (kind == ECHOED)
            memcpy(proof, next.server_nonce, sizeof(proof));
        else if (kind == BIT)
            make_proof(next.transport.ssl, "orrery node client", next.nonce, next.server_nonce,
                       proof);
        proof[31] ^= kind == BIT;
        if (stranger_proves(&next, proof))
            fail_msg("kind %d was believed", kind);
        transport_close(&next.transport);
    }
    assert_int_equal(atomic_load(&fixture->to->handled_count), 1);
    assert_int_equal(site_metric(fixture->to, METRIC_NODE_PROOFS_FAILED), KINDS);
    transport_close(&first.transport);
    node_tls_close(tls);
}

static void plain_text_and_old_tls_are_closed(void **state)
{
    Fixture *fixture = *state;
    uint16_t port = http_node_port(fixture->to->server);
    Peer *client = calloc(1, sizeof(Peer));
    client->fd = connect_to(port);
    peer_send(client, "GET /hello HTTP/1.1\r\nhost: h\r\n\r\n");
    peer_expect_end(client);
    peer_close(client);

    SSL_CTX *tls = peer_tls();
    assert_int_equal(SSL_CTX_set_max_proto_version(tls, TLS1_2_VERSION), 1);
    client = calloc(1, sizeof(Peer));
    client->fd = connect_to(port);
    assert_false(peer_handshake(client, tls));
    ERR_clear_error();
    peer_close(client);
    SSL_CTX_free(tls);
    assert_int_equal(atomic_load(&fixture->to->handled_count), 0);
}

/* The bytes of a request in the place of nonce and proof. */
static void a_request_is_no_proof(void **state)
{
    static const char request[] =
        "GET /hello HTTP/1.1\r\nhost: h\r\nx-long-enough: for a nonce and "
        "a proof together, which are 64 bytes\r\n\r\n";
    Fixture *fixture = *state;
    Peer *client = calloc(1, sizeof(Peer));
    SSL_CTX *tls = peer_tls();
    client->fd = connect_to(http_node_port(fixture->to->server));
    assert_true(peer_handshake(client, tls));
    peer_send(client, request);
    while (peer_read(client) > 0)
        continue;
    assert_int_equal(client->len, NODE_NONCE_BYTES); /* and not a byte more */
    peer_close(client);
    SSL_CTX_free(tls);
    assert_int_equal(atomic_load(&fixture->to->handled_count), 0);
    assert_int_equal(site_metric(fixture->to, METRIC_NODE_PROOFS_FAILED), 1);
}

/* Connections that never prove anything end by themselves, and do not keep nodes out. */
static void strangers_who_wait_keep_nobody_out(void **state)
{
    enum { COUNT = 2 * 2 * LOOP_PROVING_MAX };
    Fixture *fixture = *state;
    int *fds = calloc(COUNT, sizeof(int));
    for (int i = 0; i < COUNT; i++)
        fds[i] = connect_to(http_node_port(fixture->to->server));
    Sent *sent = call(fixture->from, fixture->to_address, "/hello", SLICE_EMPTY);
    expect_answer(sent, 200, SLICE("hello"));
    end_call(sent);
    assert_in_range(site_metric(fixture->to, METRIC_CONNECTIONS_OPEN), 1, 2 * LOOP_PROVING_MAX + 2);
    on_loop(fixture->to, 0, shorten_times);
    on_loop(fixture->to, 1, shorten_times);
    WAIT_UNTIL(site_metric(fixture->to, METRIC_CONNECTIONS_OPEN) == 1);
    sent = call(fixture->from, fixture->to_address, "/hello", SLICE_EMPTY);
    expect_answer(sent, 200, SLICE("hello"));
    end_call(sent);
    assert_int_equal(site_metric(fixture->to, METRIC_CONNECTIONS_TOTAL), COUNT + 1);
    for (int i = 0; i < COUNT; i++)
        (void)close(fds[i]);
    free(fds);
}

/* Full of clients: nodes still connect; and the other way round nodes count as no clients. */
static void nodes_and_clients_do_not_take_each_others_places(void **state)
{
    Fixture *fixture = *state;
    Site *site = site_make();
    char address[64];
    site->options.node_secret = &SECRET;
    site->options.node_host = "127.0.0.1";
    site->options.threads = 1;
    site->options.connections_max = 1;
    site->options.address_connections_max = 1;
    site->options.limits_local_clients = true;
    site_start(site);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", http_node_port(site->server));
    for (size_t i = 0; i < 2; i++) {
        Sent *sent = make_call(address, "/hello", SLICE_EMPTY);
        post_call(fixture->from, i, sent);
        await_call(sent);
        expect_answer(sent, 200, SLICE("hello"));
        end_call(sent);
    }
    Peer *client = peer_open(site);
    peer_send(client, "GET /hello HTTP/1.1\r\nhost: h\r\n\r\n");
    peer_expect(client, 200, "hello");
    Sent *sent = call(fixture->to, address, "/hello", SLICE_EMPTY);
    expect_answer(sent, 200, SLICE("hello"));
    end_call(sent);
    peer_close(client);
    site_end(site, 0);
}

/* Passes bytes on between two connections until one ends. Without TLS of its own it is a wire;
 * with it, a third party who reads everything. */
static void relay(Transport *a, Transport *b)
{
    Transport *ends[2] = {a, b};
    char text[4096];
    bool goes_on = true;
    while (goes_on) {
        struct pollfd waiting[2] = {{.fd = a->fd, .events = POLLIN},
                                    {.fd = b->fd, .events = POLLIN}};
        if (poll(waiting, 2, WAIT_MS_MAX) <= 0)
            return;
        for (int i = 0; i < 2 && goes_on; i++) {
            bool has_more = waiting[i].revents != 0;
            while (has_more && goes_on) {
                size_t len = 0;
                goes_on = transport_read(ends[i], text, sizeof(text), &len, &has_more) ==
                              TRANSPORT_DONE &&
                          write_bytes(ends[1 - i], text, len);
            }
        }
    }
}

static void serve_relay(Fake *fake, int fd)
{
    Transport client = {.fd = fd};
    Transport server = {.fd = connect_to(fake->to_port)};
    bool wants_write = false;
    bool is_good =
        !fake->terminates || (transport_handshake(&client, fake->tls->server, TRANSPORT_SERVER,
                                                  &wants_write) == TRANSPORT_DONE &&
                              transport_handshake(&server, fake->tls->client, TRANSPORT_CLIENT,
                                                  &wants_write) == TRANSPORT_DONE);
    if (is_good)
        relay(&client, &server);
    transport_close(&client);
    transport_close(&server);
}

static void a_third_party_in_the_middle_gets_no_request(void **state)
{
    Fixture *fixture = *state;
    for (int terminates = 0; terminates <= 1; terminates++) {
        Fake *fake = fake_open(&OTHER_SECRET, serve_relay);
        fake->to_port = http_node_port(fixture->to->server);
        fake->terminates = terminates == 1;
        fake_start(fake);
        Sent *sent = call(fixture->from, fake->address, "/hello", SLICE_EMPTY);
        if (terminates == 0)
            expect_answer(sent, 200, SLICE("hello"));
        else
            expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_UNAVAILABLE, "did not prove");
        end_call(sent);
        fake_close(fake);
    }
    assert_int_equal(atomic_load(&fixture->to->handled_count), 1);
    assert_int_equal(site_metric(fixture->to, METRIC_NODE_PROOFS_FAILED), 1);
}

/* One who takes connections without the secret learns nothing but a nonce. */
static void serve_guess(Fake *fake, int fd)
{
    Transport transport = {.fd = fd};
    uint8_t nonce[NODE_NONCE_BYTES];
    uint8_t proof[NODE_PROOF_BYTES];
    bool wants_write = false;
    char none;
    size_t len = 0;
    bool has_more = false;
    assert_int_equal(
        transport_handshake(&transport, fake->tls->server, TRANSPORT_SERVER, &wants_write),
        TRANSPORT_DONE);
    assert_true(read_bytes(&transport, nonce, sizeof(nonce)));
    assert_true(write_bytes(&transport, nonce, sizeof(nonce))); /* its own one */
    assert_true(read_bytes(&transport, proof, sizeof(proof)));
    assert_true(write_bytes(&transport, proof, sizeof(proof))); /* its own proof */
    assert_int_not_equal(transport_read(&transport, &none, 1, &len, &has_more), TRANSPORT_DONE);
    transport_close(&transport);
}

static void a_proof_that_is_sent_back_is_not_believed(void **state)
{
    Fixture *fixture = *state;
    Fake *fake = fake_open(&OTHER_SECRET, serve_guess);
    fake_start(fake);
    Sent *sent = call(fixture->from, fake->address, "/hello", SLICE_EMPTY);
    expect_outcome(sent, NODE_CALL_NOT_SENT, STATUS_UNAVAILABLE, "did not prove");
    end_call(sent);
    fake_close(fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_the_proof_of_this_connection_is_believed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(plain_text_and_old_tls_are_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_request_is_no_proof, setup, teardown),
        cmocka_unit_test_setup_teardown(strangers_who_wait_keep_nobody_out, setup, teardown),
        cmocka_unit_test_setup_teardown(nodes_and_clients_do_not_take_each_others_places, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_third_party_in_the_middle_gets_no_request, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_proof_that_is_sent_back_is_not_believed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
