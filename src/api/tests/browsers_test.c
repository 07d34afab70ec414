/* browsers_test.c - which hosts and origins are ours, and how requests from others are refused. */
#include "api/core/browsers.h"
#include "api/tests/testing_int.h"

static void names_that_an_attacker_could_own_are_not_ours(void **state)
{
    (void)state;
    static const struct {
        const char *authority;
        bool on_loopback, on_network;
    } rows[] = {
        {"localhost", true, true},
        {"localhost:8081", true, true},
        {"LocalHost.:8081", true, true},
        {"a.b.localhost:8081", true, true},
        {"127.0.0.1:8081", true, true},
        {"192.168.7.9", true, true},
        {"[::1]:8081", true, true},
        {"[fe80::1]", true, true},
        {"my-box:8081", true, true},
        {"MY-BOX", true, true},
        {"db.example.com:443", true, true},
        {"x.y.internal", true, true},
        {"cosmos:8081", false, true},
        {"evil.example:8081", false, false},
        {"localhost.evil.example", false, false},
        {"evillocalhost", false, true},
        {".localhost", false, false},
        {"127.0.0.1.evil.example", false, false},
        {"1.2.3.4x", false, false},
        {"internal", false, true},
        {".internal", false, false},
        {"xdb.example.com", false, false},
        {":8081", false, false},
    };
    BrowserRules rules = {.checks_hosts = true,
                          .hosts = SLICE("my-box, db.example.com,,*.internal")};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice authority = slice_from_cstr(rows[i].authority);
        rules.takes_short_names = false;
        if (browsers_host_is_ours(&rules, authority) != rows[i].on_loopback)
            fail_msg("%s on loopback", rows[i].authority);
        rules.takes_short_names = true;
        if (browsers_host_is_ours(&rules, authority) != rows[i].on_network)
            fail_msg("%s on a network", rows[i].authority);
    }
    BrowserRules all = {.checks_hosts = true, .hosts = SLICE("*")};
    assert_true(browsers_host_is_ours(&all, SLICE("evil.example")));
    BrowserRules none = {.checks_hosts = false};
    assert_true(browsers_host_is_ours(&none, SLICE("evil.example")));
}

static void origins_are_our_own_or_allowed_or_foreign(void **state)
{
    (void)state;
    static const struct {
        const char *allowed, *origin;
        OriginKind kind;
    } rows[] = {
        {"", "", ORIGIN_NONE},
        {"", "http://localhost:8081", ORIGIN_NONE},
        {"", "https://LOCALHOST:8081", ORIGIN_NONE},
        {"", "http://localhost:8082", ORIGIN_FOREIGN},
        {"", "http://localhost", ORIGIN_FOREIGN},
        {"", "http://127.0.0.1:8081", ORIGIN_FOREIGN},
        {"", "ftp://localhost:8081", ORIGIN_FOREIGN},
        {"", "null", ORIGIN_FOREIGN},
        {"https://a.example", "https://a.example", ORIGIN_ALLOWED},
        {"https://a.example", "http://a.example", ORIGIN_FOREIGN},
        {"https://a.example", "https://a.example.evil", ORIGIN_FOREIGN},
        {"https://a.example", "https://a.example:444", ORIGIN_FOREIGN},
        {"https://a.example, https://b.example", "https://b.example", ORIGIN_ALLOWED},
        {"https://a.example,null", "null", ORIGIN_ALLOWED},
        {"*", "https://evil.example", ORIGIN_ALLOWED},
        {"", ",", ORIGIN_FOREIGN},
        {"a,,b", ",", ORIGIN_FOREIGN},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        BrowserRules rules = {.origins = slice_from_cstr(rows[i].allowed)};
        OriginKind kind =
            browsers_origin(&rules, slice_from_cstr(rows[i].origin), SLICE("localhost:8081"));
        if (kind != rows[i].kind)
            fail_msg("%s with '%s' allowed: %d", rows[i].origin, rows[i].allowed, kind);
    }
}

#define PREFLIGHT                                                    \
    {"access-control-request-method", "DELETE"},                     \
    {                                                                \
        "access-control-request-headers", "authorization, x-ms-date" \
    }

static void an_origin_that_is_allowed_is_told_what_it_may_do(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, &(ApiOptions){.browsers.origins = SLICE("https://a.example")});
    Ask a = {"GET", "/dbs", .headers = {{"origin", "https://a.example"}}};
    FakeAnswer answer = expect_status(&server, &a, 200);
    expect_header(&answer, "access-control-allow-origin", "https://a.example");
    expect_header(&answer, "vary", "origin");
    expect_holds(fake_header(&answer, "access-control-expose-headers"), "x-ms-continuation");
    answer = expect_status(&server,
                           &(Ask){"OPTIONS", "/dbs/db", .key = "",
                                  .headers = {{"origin", "https://a.example"},
                                              {"access-control-request-private-network", "true"},
                                              PREFLIGHT}},
                           204);
    expect_header(&answer, "access-control-allow-origin", "https://a.example");
    expect_header(&answer, "access-control-allow-headers", "authorization, x-ms-date");
    expect_holds(fake_header(&answer, "access-control-allow-methods"), "PATCH");
    expect_header(&answer, "access-control-allow-private-network", "");
    /* Errors, too: the page is to see what is wrong. */
    answer = expect_status(
        &server, &(Ask){"GET", "/dbs", .key = "", .headers = {{"origin", "https://a.example"}}},
        401);
    expect_header(&answer, "access-control-allow-origin", "https://a.example");
}

static void other_origins_are_refused_whatever_they_ask_and_sign(void **state)
{
    (void)state;
    static const Ask rows[] = {
        {"GET", "/", .headers = {{"origin", "https://evil.example"}}},
        {"GET", "/dbs", .headers = {{"origin", "null"}}},
        {"POST", "/dbs", "{'id':'x'}", .headers = {{"origin", "https://evil.example"}}},
        {"OPTIONS", "/dbs", .key = "", .headers = {{"origin", "https://evil.example"}, PREFLIGHT}},
        {"GET", "/healthz", .key = "", .headers = {{"origin", "https://evil.example"}}},
        {"GET", "/metrics", .key = "", .headers = {{"origin", "http://localhost:3000"}}},
        {"GET", "/_orrery/metrics", .headers = {{"origin", "https://evil.example"}}},
    };
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, &(ApiOptions){.browsers.origins = SLICE("https://a.example")});
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i], 403);
        for (size_t j = 0; j < answer.header_count; j++)
            assert_false(slice_starts_with(answer.headers[j].name, SLICE("access-control-")));
        expect_holds(answer.body, "--cors");
        expect_holds(answer.body, rows[i].headers[0].value);
    }
    /* Nothing was made. */
    (void)expect_status(&server, &(Ask){"GET", "/dbs/x"}, 404);
}

static void without_an_origin_nothing_is_said_about_origins(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, &(ApiOptions){.browsers.origins = SLICE("*")});
    static const Ask rows[] = {
        {"GET", "/dbs"},
        {"GET", "/dbs", .headers = {{"origin", "http://" FAKE_AUTHORITY}}},
        {"OPTIONS", "/dbs", .key = ""},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = ask(&server, &rows[i]);
        assert_true(answer.status == 200 || answer.status == 204);
        for (size_t j = 0; j < answer.header_count; j++)
            assert_false(slice_starts_with(answer.headers[j].name, SLICE("access-control-")));
    }
}

static void a_foreign_host_is_told_which_option_allows_it(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, &(ApiOptions){.browsers.checks_hosts = true});
    static const struct {
        const char *path, *authority;
        int status;
    } rows[] = {
        {"/dbs", "localhost:8081", 200},
        {"/dbs", "evil.example:8081", 400},
        {"/healthz", "evil.example:8081", 400},
        {"/_explorer/emulator.pem", "evil.example:8081", 400},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (int later = 0; later < 2; later++) {
            FakeRequest request = {.method = SLICE("GET"),
                                   .path = slice_from_cstr(rows[i].path),
                                   .key = SLICE(FAKE_KEY),
                                   .authority = slice_from_cstr(rows[i].authority),
                                   .body_comes_later = later == 1};
            FakeAnswer answer;
            fake_request(&server, &request, &answer);
            assert_int_equal(answer.status, rows[i].status);
            if (answer.status == 400)
                expect_holds(answer.body, "--allow-host evil.example");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_an_attacker_could_own_are_not_ours),
        cmocka_unit_test(origins_are_our_own_or_allowed_or_foreign),
        cmocka_unit_test(an_origin_that_is_allowed_is_told_what_it_may_do),
        cmocka_unit_test(other_origins_are_refused_whatever_they_ask_and_sign),
        cmocka_unit_test(without_an_origin_nothing_is_said_about_origins),
        cmocka_unit_test(a_foreign_host_is_told_which_option_allows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
