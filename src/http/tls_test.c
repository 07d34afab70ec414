/* tls_test.c - TLS and plain HTTP on one port, with OpenSSL's own client. */
#include "http/testing_int.h"

#include <openssl/pem.h>

#define HELLO "GET /hello HTTP/1.1\r\nhost: h\r\n\r\n"

typedef struct Fixture {
    Site *site;
    SSL_CTX *tls;
} Fixture;

static int setup(void **state)
{
    Fixture *fixture = calloc(1, sizeof(Fixture));
    fixture->site = site_make();
    fixture->site->options.request_ms = 1500;
    site_start(fixture->site);
    fixture->tls = peer_tls();
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fixture = *state;
    SSL_CTX_free(fixture->tls);
    site_end(fixture->site, 0);
    free(fixture);
    return 0;
}

static Peer *open_tls(const Fixture *fixture)
{
    Peer *client = peer_open(fixture->site);
    if (!peer_handshake(client, fixture->tls))
        fail_msg("the handshake failed: %s", ERR_reason_error_string(ERR_peek_error()));
    return client;
}

static void one_port_speaks_both(void **state)
{
    Fixture *fixture = *state;
    Peer *secure = open_tls(fixture);
    Peer *plain = peer_open(fixture->site);
    for (int i = 0; i < 3; i++) {
        Answer answer;
        peer_send(secure, "GET /echo HTTP/1.1\r\nhost: h\r\n\r\n");
        peer_answer(secure, &answer);
        assert_string_equal(answer_header(&answer, "x-tls"), "yes");
        answer_done(&answer);
        peer_send(plain, "GET /echo HTTP/1.1\r\nhost: h\r\n\r\n");
        peer_answer(plain, &answer);
        assert_string_equal(answer_header(&answer, "x-tls"), "no");
        answer_done(&answer);
    }
    assert_int_equal(site_metric(fixture->site, METRIC_TLS_HANDSHAKES_TOTAL), 1);
    assert_int_equal(site_metric(fixture->site, METRIC_CONNECTIONS_TOTAL), 2);
    peer_close(secure);
    peer_close(plain);
}

static void the_certificate_is_trusted_where_it_is_known(void **state)
{
    Fixture *fixture = *state;
    assert_int_equal(SSL_CTX_load_verify_locations(fixture->tls, fixture->site->cert, NULL), 1);
    SSL_CTX_set_verify(fixture->tls, SSL_VERIFY_PEER, NULL);
    Peer *client = peer_open(fixture->site);
    client->ssl = SSL_new(fixture->tls);
    assert_int_equal(SSL_set_fd(client->ssl, client->fd), 1);
    assert_int_equal(SSL_set1_host(client->ssl, "localhost"), 1);
    assert_int_equal(SSL_connect(client->ssl), 1);
    assert_int_equal(SSL_get_verify_result(client->ssl), X509_V_OK);
    peer_close(client);
}

static void only_http_1_1_is_negotiated(void **state)
{
    static const struct {
        const char *offered, *chosen;
    } rows[] = {
        {"\x02h2\x08http/1.1", "http/1.1"},
        {"\x08http/1.1", "http/1.1"},
        {"\x02h2", ""},
    };
    Fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const unsigned char *chosen = NULL;
        unsigned chosen_len = 0;
        assert_int_equal(SSL_CTX_set_alpn_protos(fixture->tls,
                                                 (const unsigned char *)rows[i].offered,
                                                 (unsigned)strlen(rows[i].offered)),
                         0);
        Peer *client = open_tls(fixture);
        SSL_get0_alpn_selected(client->ssl, &chosen, &chosen_len);
        assert_int_equal(chosen_len, strlen(rows[i].chosen));
        if (chosen_len > 0)
            assert_memory_equal(chosen, rows[i].chosen, chosen_len);
        peer_send(client, HELLO);
        peer_expect(client, 200, "hello");
        peer_close(client);
    }
}

static void old_versions_are_refused_with_an_alert(void **state)
{
    Fixture *fixture = *state;
    SSL_CTX_set_security_level(fixture->tls, 0);
    (void)SSL_CTX_set_min_proto_version(fixture->tls, TLS1_VERSION);
    (void)SSL_CTX_set_max_proto_version(fixture->tls, TLS1_1_VERSION);
    (void)SSL_CTX_set_cipher_list(fixture->tls, "ALL:@SECLEVEL=0");
    Peer *client = peer_open(fixture->site);
    ERR_clear_error();
    assert_false(peer_handshake(client, fixture->tls));
    assert_int_equal(ERR_GET_REASON(ERR_peek_error()), SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
    ERR_clear_error();
    peer_close(client);
}

/* Every cipher that OpenSSL knows for TLS 1.2, offered alone. */
static void only_ciphers_with_authentication_and_forward_secrecy_are_taken(void **state)
{
    Fixture *fixture = *state;
    SSL_CTX_set_security_level(fixture->tls, 0);
    (void)SSL_CTX_set_max_proto_version(fixture->tls, TLS1_2_VERSION);
    assert_int_equal(SSL_CTX_set_cipher_list(fixture->tls, "ALL:COMPLEMENTOFALL:@SECLEVEL=0"), 1);
    STACK_OF(SSL_CIPHER) *all = sk_SSL_CIPHER_dup(SSL_CTX_get_ciphers(fixture->tls));
    int taken = 0;
    for (int i = 0; i < sk_SSL_CIPHER_num(all); i++) {
        const SSL_CIPHER *cipher = sk_SSL_CIPHER_value(all, i);
        if (strcmp(SSL_CIPHER_get_version(cipher), "TLSv1.3") == 0)
            continue; /* is not chosen from this list */
        char list[128];
        (void)snprintf(list, sizeof(list), "%s:@SECLEVEL=0", SSL_CIPHER_get_name(cipher));
        assert_int_equal(SSL_CTX_set_cipher_list(fixture->tls, list), 1);
        Peer *client = peer_open(fixture->site);
        if (peer_handshake(client, fixture->tls)) {
            taken++;
            if (!SSL_CIPHER_is_aead(cipher) || SSL_CIPHER_get_kx_nid(cipher) != NID_kx_ecdhe)
                fail_msg("%s was taken", SSL_CIPHER_get_name(cipher));
        }
        ERR_clear_error();
        peer_close(client);
    }
    assert_true(taken >= 3);
    sk_SSL_CIPHER_free(all);
}

static void sessions_are_resumed(void **state)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    Fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_COUNT(versions); i++) {
        (void)SSL_CTX_set_min_proto_version(fixture->tls, versions[i]);
        (void)SSL_CTX_set_max_proto_version(fixture->tls, versions[i]);
        Peer *first = open_tls(fixture);
        peer_send(first, HELLO);
        peer_expect(first, 200, "hello"); /* in TLS 1.3 the ticket comes with the data */
        SSL_SESSION *session = SSL_get1_session(first->ssl);
        (void)SSL_shutdown(first->ssl);
        peer_close(first);

        Peer *second = peer_open(fixture->site);
        second->ssl = SSL_new(fixture->tls);
        assert_int_equal(SSL_set_fd(second->ssl, second->fd), 1);
        assert_int_equal(SSL_set_session(second->ssl, session), 1);
        assert_int_equal(SSL_connect(second->ssl), 1);
        assert_int_equal(SSL_session_reused(second->ssl), 1);
        peer_send(second, HELLO);
        peer_expect(second, 200, "hello");
        SSL_SESSION_free(session);
        peer_close(second);
    }
}

static void large_bodies_go_both_ways(void **state)
{
    static const size_t sizes[] = {1, 16383, 16384, 16385, 70000, 2 << 20};
    Fixture *fixture = *state;
    Peer *client = open_tls(fixture);
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        char head[128];
        char *body = calloc(1, sizes[i] + 1);
        site_fill(body, sizes[i]);
        (void)snprintf(head, sizeof(head),
                       "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: %zu\r\n\r\n", sizes[i]);
        peer_send(client, head);
        peer_send(client, body);
        peer_expect(client, 200, body);
        free(body);
    }
    peer_close(client);
}

static void answers_larger_than_the_socket_are_sent_whole(void **state)
{
    Fixture *fixture = *state;
    Peer *client = open_tls(fixture);
    size_t len = 12000000;
    char *expected = malloc(len);
    site_fill(expected, len);
    for (int i = 0; i < 2; i++) {
        Answer answer;
        peer_send(client, i == 0 ? "GET /big/12000000 HTTP/1.1\r\nhost: h\r\n\r\n"
                                 : "GET /lent/12000000 HTTP/1.1\r\nhost: h\r\n\r\n");
        sleep_ms(100);
        peer_answer(client, &answer);
        assert_int_equal(answer.body_len, len);
        assert_memory_equal(answer.body, expected, len);
        answer_done(&answer);
    }
    WAIT_UNTIL(atomic_load(&fixture->site->released_count) == 1);
    free(expected);
    peer_close(client);
}

static void many_requests_in_one_record_are_answered(void **state)
{
    Fixture *fixture = *state;
    Peer *client = open_tls(fixture);
    char text[16000];
    int len = 0, count = 250;
    for (int i = 0; i < count; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len,
                        "POST /%s HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\n%03d",
                        i == 0 ? "hold" : "echo", i);
    for (int round = 0; round < 2; round++) {
        peer_send(client, text);
        WAIT_UNTIL(atomic_load(&fixture->site->held_count) == 1);
        assert_int_equal(site_answer_held(fixture->site), 1);
        for (int i = 0; i < count; i++) {
            char expected[16];
            (void)snprintf(expected, sizeof(expected), "%03d", i);
            peer_expect(client, 200, expected);
        }
    }
    peer_close(client);
}

/* More ahead than the server reads: the rest waits inside the TLS layer, where no event tells of
 * it. */
static void a_client_far_ahead_is_not_forgotten(void **state)
{
    enum { COUNT = 3000 };
    Fixture *fixture = *state;
    Peer *client = open_tls(fixture);
    char *text = calloc(COUNT, 64);
    int len = 0;
    for (int i = 0; i < COUNT; i++)
        len += sprintf(text + len, "POST /%s HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\n%04d",
                       i == 0 ? "hold" : "echo", i);
    assert_true(peer_try_send(client, text, (size_t)len));
    WAIT_UNTIL(atomic_load(&fixture->site->held_count) == 1);
    sleep_ms(100);
    assert_int_equal(site_answer_held(fixture->site), 1);
    for (int i = 0; i < COUNT; i++) {
        char expected[16];
        (void)snprintf(expected, sizeof(expected), "%04d", i);
        peer_expect(client, 200, expected);
    }
    free(text);
    peer_close(client);
}

static void new_keys_are_agreed_on_in_the_middle(void **state)
{
    Fixture *fixture = *state;
    (void)SSL_CTX_set_min_proto_version(fixture->tls, TLS1_3_VERSION);
    Peer *client = open_tls(fixture);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(SSL_key_update(client->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        peer_send(client, HELLO);
        peer_expect(client, 200, "hello");
    }
    peer_close(client);
}

static void the_end_is_announced(void **state)
{
    Fixture *fixture = *state;
    Peer *client = open_tls(fixture);
    peer_send(client, "GET /hello HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
    peer_expect(client, 200, "hello");
    char byte;
    int got = SSL_read(client->ssl, &byte, 1);
    assert_int_equal(SSL_get_error(client->ssl, got), SSL_ERROR_ZERO_RETURN);
    peer_close(client);
}

static void refusals_arrive(void **state)
{
    Fixture *fixture = *state;
    Peer *client = open_tls(fixture);
    peer_send(client, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 90000000\r\n\r\n");
    char *part = calloc(1, 100000);
    for (int i = 0; i < 10; i++)
        assert_true(peer_try_send(client, part, 100000));
    peer_expect_refusal(client, 413, "RequestEntityTooLarge");
    free(part);
    peer_close(client);
}

static void broken_handshakes_are_cut_off(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } rows[] = {
        {"\x16", 1},
        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9}, /* a hello that never comes */
        {"\x16GET / HTTP/1.1\r\nhost: h\r\n\r\n", 19},
        {"\x16\x03\x01\xff\xff", 5},
        {"\x16\x03\x01\x00\x04\x02\x00\x00\x00", 9}, /* the server's hello, from a client */
    };
    Fixture *fixture = *state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Peer *client = peer_open(fixture->site);
        assert_true(peer_try_send(client, rows[i].bytes, rows[i].len));
        uint64_t begun = now_ms();
        while (peer_read(client) > 0) /* an alert, perhaps */
            client->len = 0;
        assert_true(now_ms() - begun < 8000);
        peer_close(client);
    }
    for (int i = 0; i < 5; i++) { /* gone in the middle of it */
        Peer *client = peer_open(fixture->site);
        assert_true(peer_try_send(client, rows[1].bytes, rows[1].len));
        peer_close(client);
    }
    WAIT_UNTIL(site_metric(fixture->site, METRIC_CONNECTIONS_OPEN) == 0);
    assert_int_equal(site_metric(fixture->site, METRIC_TLS_HANDSHAKES_TOTAL), 0);
    Peer *client = open_tls(fixture);
    peer_send(client, HELLO);
    peer_expect(client, 200, "hello");
    peer_close(client);
}

static void garbage_after_the_handshake_closes(void **state)
{
    Fixture *fixture = *state;
    Peer *client = open_tls(fixture);
    peer_send(client, HELLO);
    peer_expect(client, 200, "hello");
    assert_true(send(client->fd, "garbage that is no record", 25, MSG_NOSIGNAL) == 25);
    WAIT_UNTIL(site_metric(fixture->site, METRIC_CONNECTIONS_OPEN) == 0);
    peer_close(client);
}

static void deferred_answers_to_vanished_clients_are_dropped(void **state)
{
    Fixture *fixture = *state;
    Peer *client = open_tls(fixture);
    peer_send(client, "POST /hold HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi");
    WAIT_UNTIL(atomic_load(&fixture->site->held_count) == 1);
    struct linger reset = {.l_onoff = 1};
    assert_int_equal(setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    peer_close(client);
    WAIT_UNTIL(site_metric(fixture->site, METRIC_CONNECTIONS_OPEN) == 0);
    assert_int_equal(site_answer_held(fixture->site), 1);
    WAIT_UNTIL(site_metric(fixture->site, METRIC_REQUESTS_OPEN) == 0);
}

/* The certificate of the server as a new connection sees it, as PEM text. */
static void expect_certificate(const Fixture *fixture, const char *path, bool is_same)
{
    Peer *client = open_tls(fixture);
    X509 *seen = SSL_get1_peer_certificate(client->ssl);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    X509 *stored = PEM_read_X509(file, NULL, NULL, NULL);
    (void)fclose(file);
    assert_non_null(stored);
    assert_int_equal(X509_cmp(seen, stored) == 0, is_same);
    X509_free(seen);
    X509_free(stored);
    peer_send(client, HELLO);
    peer_expect(client, 200, "hello");
    peer_close(client);
}

static void new_connections_see_a_new_certificate(void **state)
{
    Fixture *fixture = *state;
    Site *site = fixture->site;
    Error err;
    Peer *old = open_tls(fixture);
    expect_certificate(fixture, site->cert, true);
    assert_int_equal(unlink(site->cert), 0);
    assert_int_equal(unlink(site->key), 0);
    assert_int_equal(cert_ensure(site->cert, site->key, &err), STATUS_OK);
    expect_certificate(fixture, site->cert, false);
    assert_int_equal(http_server_reload_tls(site->server, &err), STATUS_OK);
    for (int i = 0; i < 8; i++) /* on whichever loop */
        expect_certificate(fixture, site->cert, true);
    peer_send(old, HELLO);
    peer_expect(old, 200, "hello");
    peer_close(old);
}

static void a_reload_that_fails_changes_nothing(void **state)
{
    Fixture *fixture = *state;
    Site *site = fixture->site;
    Error err;
    char kept[sizeof(site->cert) + 8];
    (void)snprintf(kept, sizeof(kept), "%s.kept", site->cert);
    assert_int_equal(rename(site->cert, kept), 0);
    assert_int_equal(http_server_reload_tls(site->server, &err), STATUS_IO);
    assert_non_null(strstr(err.message, site->cert));
    expect_certificate(fixture, kept, true);
    assert_int_equal(rename(kept, site->cert), 0);
    for (int i = 0; i < 50; i++)
        assert_int_equal(http_server_reload_tls(site->server, &err), STATUS_OK);
    expect_certificate(fixture, site->cert, true);
}

static void where_tls_is_required_plain_requests_are_refused(void **state)
{
    (void)state;
    Site *site = site_make();
    site->options.requires_tls = true;
    site_start(site);
    static const char *const requests[] = {
        HELLO,
        HELLO HELLO,
        "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 100000\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_COUNT(requests); i++) {
        Peer *plain = peer_open(site);
        peer_send(plain, requests[i]);
        (void)peer_expect_refusal(plain, 403, "Forbidden");
        peer_expect_end(plain);
        peer_close(plain);
    }
    assert_int_equal(site_metric(site, METRIC_REQUESTS_PLAIN_REFUSED), ARRAY_COUNT(requests));
    Fixture fixture = {.site = site, .tls = peer_tls()};
    Peer *secure = open_tls(&fixture);
    peer_send(secure, HELLO);
    peer_expect(secure, 200, "hello");
    peer_close(secure);
    SSL_CTX_free(fixture.tls);
    site_end(site, 0);
}

/* The site's own certificate, which is an authority, stands for the clients' here. It is one for
 * servers, so showing it is not enough. */
static void a_client_without_a_certificate_does_not_get_in(void **state)
{
    (void)state;
    Site *site = site_make();
    site->options.requires_tls = true;
    site->options.client_ca_file = site->cert;
    site_start(site);
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    SSL_CTX *tls = peer_tls();
    for (size_t i = 0; i < 2 * ARRAY_COUNT(versions); i++) {
        int version = versions[i / 2];
        (void)SSL_CTX_set_min_proto_version(tls, version);
        (void)SSL_CTX_set_max_proto_version(tls, version);
        if (i % 2 == 1) {
            assert_int_equal(SSL_CTX_use_certificate_chain_file(tls, site->cert), 1);
            assert_int_equal(SSL_CTX_use_PrivateKey_file(tls, site->key, SSL_FILETYPE_PEM), 1);
        }
        Peer *client = peer_open(site);
        /* In TLS 1.3 the client learns of the refusal with its first read. */
        if (peer_handshake(client, tls)) {
            assert_int_equal(version, TLS1_3_VERSION);
            char byte;
            assert_true(SSL_read(client->ssl, &byte, 1) <= 0);
        }
        ERR_clear_error();
        peer_close(client);
    }
    WAIT_UNTIL(site_metric(site, METRIC_TLS_HANDSHAKES_FAILED) == 4);
    SSL_CTX_free(tls);
    site_end(site, 0);
}

static void without_a_certificate_only_plain_http_is_spoken(void **state)
{
    (void)state;
    Site *site = site_make();
    site->options.cert_file = NULL;
    site->options.key_file = NULL;
    site_start(site);
    SSL_CTX *tls = peer_tls();
    Peer *secure = peer_open(site);
    assert_false(peer_handshake(secure, tls));
    Peer *plain = peer_open(site);
    peer_send(plain, HELLO);
    peer_expect(plain, 200, "hello");
    peer_close(secure);
    peer_close(plain);
    SSL_CTX_free(tls);
    site_end(site, 0);
}

int main(void)
{
#define WITH_TLS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_TLS(one_port_speaks_both),
        WITH_TLS(the_certificate_is_trusted_where_it_is_known),
        WITH_TLS(only_http_1_1_is_negotiated),
        WITH_TLS(old_versions_are_refused_with_an_alert),
        WITH_TLS(only_ciphers_with_authentication_and_forward_secrecy_are_taken),
        WITH_TLS(sessions_are_resumed),
        WITH_TLS(large_bodies_go_both_ways),
        WITH_TLS(answers_larger_than_the_socket_are_sent_whole),
        WITH_TLS(many_requests_in_one_record_are_answered),
        WITH_TLS(a_client_far_ahead_is_not_forgotten),
        WITH_TLS(new_keys_are_agreed_on_in_the_middle),
        WITH_TLS(the_end_is_announced),
        WITH_TLS(refusals_arrive),
        WITH_TLS(broken_handshakes_are_cut_off),
        WITH_TLS(garbage_after_the_handshake_closes),
        WITH_TLS(deferred_answers_to_vanished_clients_are_dropped),
        WITH_TLS(new_connections_see_a_new_certificate),
        WITH_TLS(a_reload_that_fails_changes_nothing),
        cmocka_unit_test(where_tls_is_required_plain_requests_are_refused),
        cmocka_unit_test(a_client_without_a_certificate_does_not_get_in),
        cmocka_unit_test(without_a_certificate_only_plain_http_is_spoken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
