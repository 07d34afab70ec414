/* keys_test.c - /_orrery/keys, and identity tokens, through the whole api. */
#include "api/core/identity_testing_int.h"
#include "api/tests/testing_int.h"

#define KEYS "/_orrery/keys"

static void keys_are_listed_without_the_keys(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", KEYS}, 200);
    expect_header(&answer, "cache-control", "no-store, no-cache");
    expect_holds(answer.body, "{\"name\":\"primary\",\"kind\":\"read-write\",\"source\":"
                              "\"development\",\"fingerprint\":\"4B0FF98E66C6BA3B\"}");
    expect_holds(answer.body, "{\"name\":\"secondary\",\"kind\":\"read-write\",\"source\":"
                              "\"none\"}");
    expect_holds(answer.body, "\"source\":\"option\",\"option\":\"--read-only-key\"");
    assert_false(holds(answer.body, FAKE_KEY));
    assert_false(holds(answer.body, FAKE_READ_KEY));
}

static void what_is_not_understood_or_not_allowed_changes_nothing(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server,
                     &(ApiOptions){.browsers.origins = SLICE("https://app"), .is_loopback = true});
    static const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"GET", KEYS, .key = FAKE_READ_KEY}, 401},
        {{"POST", KEYS, "{'name':'primary'}", .key = FAKE_READ_KEY}, 401},
        {{"GET", KEYS, .key = ""}, 401},
        {{"GET", KEYS, NULL, {{"origin", "https://app"}}}, 403},
        {{"PUT", KEYS, "{'name':'primary'}"}, 405},
        {{"DELETE", KEYS}, 405},
        {{"POST", KEYS}, 400},
        {{"POST", KEYS, "{}"}, 400},
        {{"POST", KEYS, "[]"}, 400},
        {{"POST", KEYS, "{'name':'third'}"}, 400},
        {{"POST", KEYS, "{'name':'primary','name':5}"}, 400},
        {{"POST", KEYS, "{'name':'primary','fingerprint':5}"}, 400},
        {{"POST", KEYS, "{'name':'primary','key':'AAAA'}"}, 400},
        {{"POST", KEYS, "{'name':'primary'}"}, 409}, /* there is no folder */
        {{"POST", KEYS, "{'name':'primary-read-only'}"}, 409},
        {{"GET", "/_orrery/keys/primary"}, 404},
        {{"GET", "/_orrery/keysx"}, 404},
        {{"HEAD", KEYS}, 200},
    };
    uint64_t version = key_ring_version(server.keys);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)expect_status(&server, &rows[i].ask, rows[i].status);
    assert_int_equal(key_ring_version(server.keys), version);
}

static void a_new_key_is_not_sent_in_the_clear(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, &(ApiOptions){.trust_forwarded = true});
    Ask plain = {"POST", KEYS, "{'name':'primary'}"};
    (void)expect_status(&server, &plain, 403);
    Ask forwarded = {"POST", KEYS, "{'name':'primary'}", {{"x-forwarded-proto", "https"}}};
    (void)expect_status(&server, &forwarded, 409);
    AUTO(fake_server_close) FakeServer other;
    fake_server_open(&other, NULL);
    (void)expect_status(&other, &forwarded, 403); /* anybody can send that header */
}

/* A token in the form of the emulators. */
static const char *token_of(FakeServer *server, const char *claims)
{
    Arena *arena = &server->arena;
    Slice c = test_base64url_text(arena, slice_from_cstr(claims));
    Slice key = test_base64url_text(arena, SLICE(AUTH_DEVELOPMENT_KEY));
    return arena_format(arena, "type=aad&ver=1.0&sig=e30.%.*s.%.*s", SLICE_ARG(c), SLICE_ARG(key))
        .ptr;
}

static void identity_tokens_are_principals(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, &(ApiOptions){.is_loopback = true});
#define ORIGIN                                                                       \
    "{\"iss\":\"https://sts.fake-issuer.net/7b1999a1-dfd7-440e-8204-00170979b984\"," \
    "\"aud\":\"https://localhost.localhost\",\"oid\":\"o\","
    const char *good = token_of(&server, ORIGIN "\"exp\":1700003600}");
    const char *late = token_of(&server, ORIGIN "\"exp\":1600000000}");
    const struct {
        const char *method, *path, *token;
        int status;
        const char *sub;
    } rows[] = {
        {"GET", "/dbs", good, 200, NULL},
        {"GET", "/dbs", good, 200, NULL}, /* remembered */
        {"GET", "/", good, 200, NULL},
        {"POST", "/dbs", good, 403, "5300"},
        {"GET", "/offers", good, 403, "5300"},
        {"GET", "/_orrery/keys", good, 403, "5300"},
        {"POST", "/_orrery/keys", good, 403, "5300"},
        {"GET", "/_orrery/containers", good, 403, "5300"},
        {"GET", "/dbs", late, 401, "5006"},
        {"GET", "/dbs", "type=aad&ver=1.0&sig=x", 401, "5003"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = {rows[i].method, rows[i].path, NULL, {{"authorization", rows[i].token}}, ""};
        FakeAnswer answer = expect_status(&server, &a, rows[i].status);
        if (rows[i].sub != NULL)
            expect_header(&answer, "x-ms-substatus", rows[i].sub);
        if (rows[i].status == 401)
            expect_header(&answer, "www-authenticate", "Bearer error=\"invalid_token\"");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_listed_without_the_keys),
        cmocka_unit_test(what_is_not_understood_or_not_allowed_changes_nothing),
        cmocka_unit_test(a_new_key_is_not_sent_in_the_clear),
        cmocka_unit_test(identity_tokens_are_principals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
