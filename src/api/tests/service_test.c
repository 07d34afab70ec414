/* service_test.c - what every answer has, and what needs no key. */
#include "api/tests/testing_int.h"

static void every_answer_has_the_headers_that_clients_read(void **state)
{
    (void)state;
    static const Ask rows[] = {
        {"GET", "/"},
        {"GET", "/dbs"},
        {"GET", "/dbs/db"},
        {"GET", "/dbs/none"},
        {"POST", "/dbs", "{'id':'x'}"},
        {"DELETE", "/dbs/x"},
        {"GET", "/dbs/db/colls/c/pkranges"},
        {"GET", "/healthz", .key = ""},
        {"GET", "/dbs", .key = ""},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        static const char *const names[] = {"x-ms-activity-id", "x-ms-request-charge",
                                            "x-ms-schemaversion", "x-ms-serviceversion",
                                            "x-ms-gatewayversion"};
        FakeAnswer answer = ask(&server, &rows[i]);
        for (size_t j = 0; j < ARRAY_COUNT(names); j++)
            assert_true(fake_header(&answer, names[j]).len > 0);
        double charge = -1;
        assert_true(json_number_from_text(fake_header(&answer, "x-ms-request-charge"), &charge));
        assert_true(charge >= 0);
    }
}

static void an_activity_id_that_looks_like_one_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *given;
        bool kept;
    } rows[] = {
        {"6f1c1a1e-9d0a-4e5b-8a1c-0123456789ab", true},
        {"a", true},
        {"a b", false},
        {"<script>", false},
        {"0123456789012345678901234567890123456789012345678901234567890123", true},
        {"01234567890123456789012345678901234567890123456789012345678901234", false},
    };
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = {"GET", "/dbs", .headers = {{"x-ms-activity-id", rows[i].given}}};
        FakeAnswer answer = expect_status(&server, &a, 200);
        Slice id = fake_header(&answer, "x-ms-activity-id");
        assert_int_equal(slice_equal(id, slice_from_cstr(rows[i].given)), rows[i].kept);
        assert_true(rows[i].kept || id.len == GUID_LEN);
    }
}

/* A message may quote what the client sent, which need not be text. */
static void a_refusal_is_json_whatever_it_quotes(void **state)
{
    (void)state;
    static const char *const paths[] = {
        "/dbs/%ff%fe",       "/dbs/%00",    "/dbs/%22%5c", "/dbs/%c3",
        "/dbs/%f0%9f%aa%90", "/dbs/%0d%0a", "/%e2%82",     "/dbs/db/colls/%ed%a0%80",
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        static const char *const keys[] = {NULL, ""};
        for (size_t j = 0; j < ARRAY_COUNT(keys); j++) {
            FakeAnswer answer = ask(&server, &(Ask){"GET", paths[i], .key = keys[j]});
            assert_true(answer.status == 404 || answer.status == 401 || answer.status == 400);
            (void)text_of(body_of(&server, &answer), "message");
        }
    }
}

static void credentials_that_are_given_twice_are_refused(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"GET", "/dbs", .headers = {{"x-other", "a"}, {"x-other", "b"}}}, 200},
        {{"GET", "/dbs", .headers = {{"authorization", "type=master&ver=1.0&sig=x"}}}, 400},
        {{"GET", "/dbs", .headers = {{"x-ms-date", "Tue, 01 Oct 2024 12:00:00 GMT"}}}, 400},
        {{"GET", "/dbs", .headers = {{"date", "x"}, {"date", "x"}}}, 400},
        {{"GET", "/_orrery/metrics",
          .headers = {{"authorization", "Bearer a"}, {"authorization", "Bearer b"}}, .key = ""},
         400},
    };
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)expect_status(&server, &rows[i].ask, rows[i].status);
}

static void a_client_without_a_key_is_refused_before_the_body_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *method, *path, *key;
        int status; /* 0 if the request is accepted and its body is read */
    } rows[] = {
        {"POST", "/dbs", "", 401},
        {"POST", "/dbs/db/colls/c/docs", "d3Jvbmc=", 401},
        {"POST", "/dbs/db/colls/c/docs", FAKE_READ_KEY, 401},
        {"POST", "/nonsense", "", 404},
        {"PUT", "/dbs", "", 405},
        {"GET", "/healthz", "", 200},
        {"POST", "/_orrery/chaos/dbs/db/colls/c/split", "", 401},
        {"POST", "/_orrery/chaos/dbs/db/colls/c/split", FAKE_KEY, 403},
        {"GET", "/_orrery/metrics", "", 401},
        {"POST", "/dbs", FAKE_KEY, 0},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    void (*handle)(void *, HttpRequest *) = server.handler.handle;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeRequest request = {.method = slice_from_cstr(rows[i].method),
                               .path = slice_from_cstr(rows[i].path),
                               .key = slice_from_cstr(rows[i].key),
                               .body = SLICE("{\"id\":\"new\"}"),
                               .body_comes_later = true};
        FakeAnswer answer;
        server.handler.handle = rows[i].status == 0 ? handle : NULL; /* a call would crash */
        fake_request(&server, &request, &answer);
        assert_int_equal(answer.status, rows[i].status == 0 ? 201 : rows[i].status);
    }
}

static void the_account_names_the_address_that_was_used(void **state)
{
    (void)state;
    static const struct {
        const char *authority;
        bool is_tls;
        bool trusts;
        Header headers[2];
        const char *endpoint; /* NULL if refused */
    } rows[] = {
        {"localhost:8081", false, false, {{0}}, "http://localhost:8081/"},
        {"localhost:8081", true, false, {{0}}, "https://localhost:8081/"},
        {"localhost", false, false, {{0}}, "http://localhost:80/"},
        {"localhost", true, false, {{0}}, "https://localhost:443/"},
        {"localhost:", false, false, {{0}}, "http://localhost:80/"},
        {"127.0.0.1:1", false, false, {{0}}, "http://127.0.0.1:1/"},
        {"[::1]:8081", false, false, {{0}}, "http://[::1]:8081/"},
        {"[::1]", true, false, {{0}}, "https://[::1]:443/"},
        {"my_host-1.example.com:99", false, false, {{0}}, "http://my_host-1.example.com:99/"},
        {"evil\"host", false, false, {{0}}, NULL},
        {"a/b", false, false, {{0}}, NULL},
        {"a b", false, false, {{0}}, NULL},
        {"user@host", false, false, {{0}}, NULL},
        /* a proxy is believed only if that was asked for */
        {"inner:1",
         false,
         false,
         {{"x-forwarded-proto", "https"}, {"x-forwarded-host", "outer"}},
         "http://inner:1/"},
        {"inner:1",
         false,
         true,
         {{"x-forwarded-proto", "https"}, {"x-forwarded-host", "outer"}},
         "https://outer:443/"},
        {"inner:1",
         true,
         true,
         {{"x-forwarded-proto", "HTTP, https"}, {"x-forwarded-host", " outer:7 , inner"}},
         "http://outer:7/"},
        {"inner:1", false, true, {{"x-forwarded-proto", "gopher"}}, "http://inner:1/"},
        {"inner:1", false, true, {{"x-forwarded-host", "evil\\"}}, NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(fake_server_close) FakeServer server;
        fake_server_open(&server, &(ApiOptions){.trust_forwarded = rows[i].trusts});
        HttpHeader headers[2];
        size_t count = 0;
        for (; count < 2 && rows[i].headers[count].name != NULL; count++)
            headers[count] = (HttpHeader){slice_from_cstr(rows[i].headers[count].name),
                                          slice_from_cstr(rows[i].headers[count].value)};
        FakeRequest request = {.method = SLICE("GET"),
                               .path = SLICE("/"),
                               .headers = headers,
                               .header_count = count,
                               .authority = slice_from_cstr(rows[i].authority),
                               .is_tls = rows[i].is_tls,
                               .key = SLICE(FAKE_KEY)};
        FakeAnswer answer;
        fake_request(&server, &request, &answer);
        assert_int_equal(answer.status, rows[i].endpoint == NULL ? 400 : 200);
        Json body = body_of(&server, &answer);
        if (rows[i].endpoint == NULL)
            continue;
        static const char *const lists[] = {"writableLocations", "readableLocations"};
        for (size_t j = 0; j < ARRAY_COUNT(lists); j++) {
            Json location = json_at(json_get(body, slice_from_cstr(lists[j])), 0);
            assert_slice(text_of(location, "databaseAccountEndpoint"),
                         slice_from_cstr(rows[i].endpoint));
            assert_true(text_of(location, "name").len > 0);
        }
    }
}

static void the_account_document_has_what_clients_look_for(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server,
                     &(ApiOptions){.public_endpoint = SLICE("https://db.example.com:443/")});
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/"}, 200);
    Json body = body_of(&server, &answer);
    expect_holds(answer.body, "\"databaseAccountEndpoint\":\"https://db.example.com:443/\"");
    /* An account called localhost makes the JS SDK read it before every request. */
    assert_false(slice_equal(text_of(body, "id"), SLICE("localhost")));
    Json policy = json_get(body, SLICE("userConsistencyPolicy"));
    assert_slice(text_of(policy, "defaultConsistencyLevel"), SLICE("Session"));
    static const char *const off[] = {"enableMultipleWriteLocations",
                                      "enablePerPartitionFailoverBehavior"};
    for (size_t i = 0; i < ARRAY_COUNT(off); i++) {
        Json value = json_get(body, slice_from_cstr(off[i]));
        assert_true(json_is(value, JSON_BOOL));
        assert_false(json_bool(value));
    }
    assert_true(json_is(json_get(body, SLICE("thinClientReadableLocations")), JSON_UNDEFINED));
    /* A string that holds JSON. */
    Json engine = JSON_NONE;
    Error err;
    assert_int_equal(
        json_parse(&server.arena, text_of(body, "queryEngineConfiguration"), &engine, &err),
        STATUS_OK);
    int64_t joins = 0;
    assert_true(json_to_i64(json_get(engine, SLICE("maxJoinsPerSqlQuery")), &joins));
    assert_int_equal(joins, 10);
}

static void some_paths_are_open_to_all(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
        const char *type, *says;
    } rows[] = {
        {{"GET", "/healthz", .key = ""}, 200, "application/json", "\"status\":\"ok\""},
        {{"HEAD", "/healthz", .key = ""}, 200, "application/json", ""},
        {{"GET", "/healthz?x=y", .key = ""}, 200, "application/json", "\"ok\""},
        {{"GET", "/metrics", .key = ""}, 200, "text/plain; version=0.0.4", "orrery_databases 1\n"},
        {{"GET", "/metrics", .key = ""}, 200, "text/plain; version=0.0.4", "orrery_containers 1\n"},
        {{"GET", "/_explorer/emulator.pem", .key = ""}, 200, "application/x-pem-file", "PEM"},
        {{"GET", "/_explorer/none.js", .key = ""}, 404, "application/json", ""},
        {{"GET", "//addresses/?$resolveFor=x", .key = ""}, 400, "application/json", "Gateway"},
        {{"GET", "/addresses", .key = ""}, 400, "application/json", "Gateway"},
        /* only to readers, and only these */
        {{"POST", "/healthz", .key = ""}, 404, "application/json", ""},
        {{"GET", "/healthz/", .key = ""}, 404, "application/json", ""},
        {{"GET", "/Metrics", .key = ""}, 404, "application/json", ""},
    };
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, &(ApiOptions){0});
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].status);
        expect_header(&answer, "content-type", rows[i].type);
        expect_holds(answer.body, rows[i].says);
        assert_false(holds(answer.body, "\"db\""));
    }
}

static void an_address_that_fails_too_often_is_refused_for_a_while(void **state)
{
    (void)state;
    enum { MAX = 5 };
    static const Ask wrong = {"GET", "/dbs", .key = "d3Jvbmc="};
    static const Ask right = {"GET", "/dbs"};
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, &(ApiOptions){.failures_max = MAX});
    for (int i = 0; i < MAX; i++) {
        (void)expect_status(&server, &right, 200); /* which takes nothing back */
        (void)expect_status(&server, &wrong, 401);
    }
    FakeAnswer answer = expect_status(&server, &wrong, 429);
    expect_header(&answer, "x-ms-retry-after-ms", "60000");
    expect_holds(answer.body, "\"code\":\"TooManyRequests\"");
    expect_holds(answer.body, "--address-failures-max");
    (void)expect_status(&server, &right, 429);
    (void)expect_status(&server, &(Ask){"GET", "/_orrery/containers", .key = "d3Jvbmc="}, 429);
    /* What needs no key is still answered. */
    (void)expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
    fake_clock_advance(&server.clock, (uint64_t)AUTH_FAILURES_WINDOW_S * 1000000);
    (void)expect_status(&server, &right, 200);
}

static void a_server_that_starts_is_not_ready_but_answers(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    api_set_starting(server.api, true);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 503);
    assert_slice(text_of(body_of(&server, &answer), "status"), SLICE("starting"));
    (void)expect_status(&server, &(Ask){"GET", "/dbs/db"}, 200);
    api_set_starting(server.api, false);
    (void)expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
}

static void a_store_that_takes_no_writes_is_not_healthy(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    memory_store_crash(server.store);
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'x'}"}, 503);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 503);
    assert_slice(text_of(body_of(&server, &answer), "status"), SLICE("degraded"));
    (void)expect_status(&server, &(Ask){"GET", "/dbs/db"}, 200); /* reading goes on */
    memory_store_restart(server.store);
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'x'}"}, 201);
    (void)expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
}

static void a_full_disk_is_not_healthy_but_takes_deletes(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    memory_store_set_full(server.store, true);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 503);
    Json body = body_of(&server, &answer);
    assert_slice(text_of(body, "status"), SLICE("degraded"));
    assert_true(text_of(body, "reason").len > 0);
    answer = expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'x'}"}, 503);
    assert_slice(text_of(body_of(&server, &answer), "code"), SLICE("ServiceUnavailable"));
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db/colls/c"}, 204);
    memory_store_set_full(server.store, false);
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'x'}"}, 201);
    (void)expect_status(&server, &(Ask){"GET", "/healthz", .key = ""}, 200);
}

/* Clients may use the rest of the data, but a person should look. */
static void damaged_data_is_told_without_refusing_everything(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Ask health = {"GET", "/healthz", .key = ""};
    Ask metrics = {"GET", "/metrics", .key = ""};
    FakeAnswer answer = expect_status(&server, &metrics, 200);
    expect_holds(answer.body, "\norrery_store_damaged_reads_total 0\n");
    memory_store_fail_gets(server.store, 1, STATUS_CORRUPT);
    StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    Error err;
    assert_int_equal(
        store_get(server.store, NULL, 1, SLICE("a"), STORE_READ_ANY, &value, &found, &err),
        STATUS_CORRUPT);
    answer = expect_status(&server, &health, 200);
    Json body = body_of(&server, &answer);
    assert_slice(text_of(body, "status"), SLICE("damaged"));
    expect_holds(text_of(body, "reason"), "1 reads");
    expect_holds(text_of(body, "reason"), err.message);
    answer = expect_status(&server, &metrics, 200);
    expect_holds(answer.body, "\norrery_store_damaged_reads_total 1\n");
}

/* With the page, or without it and with words about how to get it: the same protection. */
static void the_explorer_is_protected_from_other_pages(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, &(ApiOptions){0});
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/_explorer/", .key = ""}, 200);
    expect_header(&answer, "content-type", "text/html; charset=utf-8");
    expect_header(&answer, "x-content-type-options", "nosniff");
    expect_header(&answer, "x-frame-options", "DENY");
    Slice policy = fake_header(&answer, "content-security-policy");
    assert_true(slice_starts_with(policy, SLICE("default-src 'none'; script-src 'self';")));
    /* The words are not compressed, the page is. */
    if (fake_header(&answer, "content-encoding").len == 0) {
        expect_holds(answer.body, "<html lang=\"en\"><title>Orrery</title>");
        expect_holds(answer.body, "This program was built without the explorer.");
        expect_holds(answer.body, "<code>make explorer</code>");
        expect_header(&answer, "referrer-policy", "no-referrer");
        expect_status(&server, &(Ask){"GET", "/_explorer/assets/index.js", .key = ""}, 404);
    }
    answer = expect_status(&server, &(Ask){"GET", "/_explorer", .key = ""}, 308);
    expect_header(&answer, "location", "/_explorer/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_explorer_is_protected_from_other_pages),
        cmocka_unit_test(every_answer_has_the_headers_that_clients_read),
        cmocka_unit_test(an_activity_id_that_looks_like_one_is_kept),
        cmocka_unit_test(a_refusal_is_json_whatever_it_quotes),
        cmocka_unit_test(credentials_that_are_given_twice_are_refused),
        cmocka_unit_test(a_client_without_a_key_is_refused_before_the_body_is_read),
        cmocka_unit_test(the_account_names_the_address_that_was_used),
        cmocka_unit_test(the_account_document_has_what_clients_look_for),
        cmocka_unit_test(some_paths_are_open_to_all),
        cmocka_unit_test(an_address_that_fails_too_often_is_refused_for_a_while),
        cmocka_unit_test(a_server_that_starts_is_not_ready_but_answers),
        cmocka_unit_test(a_store_that_takes_no_writes_is_not_healthy),
        cmocka_unit_test(a_full_disk_is_not_healthy_but_takes_deletes),
        cmocka_unit_test(damaged_data_is_told_without_refusing_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
