/* advice_test.c - advice about a container's partition key, asked of its server: what it measures,
 * who may ask, and what bounds it. */
#include "api/tests/testing_int.h"

/* Two partitions. */
static const ProvisionRules RULES = {
    .partition_ru = 400, .fallback = {PROVISION_MANUAL, 800}, .is_enforced = false};
#define VIEW "/_orrery/dbs/db/colls/c/advice"

enum { ITEMS = 400 };

/* Items of many users in two countries; the key is the country. */
static void open_filled(FakeServer *server, const ApiOptions *options)
{
    fake_server_open_with(server, options, &RULES);
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    for (int i = 0; i < ITEMS; i++) {
        Slice body = arena_format(&server->arena, "{'id':'%d','pk':'%s','user':'u%d'}", i,
                                  i % 2 == 0 ? "de" : "fr", i * 7919 % 97);
        make_item(server, body.ptr);
    }
}

static Json advice(FakeServer *server, const char *parameters)
{
    FakeAnswer answer = expect_status(
        server, &(Ask){"GET", arena_format(&server->arena, VIEW "%s", parameters).ptr}, 200);
    expect_header(&answer, "content-type", "application/json");
    expect_header(&answer, "x-ms-request-charge", "0");
    return body_of(server, &answer);
}

static Json key_of(Json report, const char *name)
{
    JsonIter it = json_iter(json_get(report, SLICE("keys")));
    while (json_next(&it)) {
        if (slice_equal(json_string(json_get(it.value, SLICE("key"))), slice_from_cstr(name)))
            return it.value;
    }
    fail_msg("there is no key %s", name);
    return JSON_NONE;
}

static double number(Json value, const char *name)
{
    Json found = json_get(value, slice_from_cstr(name));
    assert_true(json_is(found, JSON_NUMBER));
    return json_number(found);
}

static void the_container_is_measured_with_its_own_key_and_queries(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server, NULL);
    Json report = advice(&server, "");
    Json sample = json_get(report, SLICE("sample"));
    assert_int_equal(number(sample, "items"), ITEMS);
    assert_int_equal(number(sample, "population"), ITEMS);
    assert_true(json_is(json_get(report, SLICE("queries")), JSON_NULL));
    expect_holds(text_of(report, "conclusion"), "No queries were recorded yet");
    assert_true(slice_starts_with(text_of(report, "best"), SLICE("/user")));
    Json current = key_of(report, "/pk");
    assert_true(json_bool(json_get(current, SLICE("current"))));
    assert_false(json_bool(json_get(current, SLICE("acceptable"))));
    assert_int_equal(number(current, "values"), 2);
    assert_int_equal(json_count(json_get(current, SLICE("storage"))), 10);
    assert_true(json_bool(json_get(report, SLICE("allKeys"))));

    static const Ask query = {"POST",
                              DOCS,
                              "{'query':'SELECT * FROM c WHERE c.user = \\'u1\\''}",
                              {{"x-ms-documentdb-isquery", "True"},
                               {"x-ms-documentdb-query-enablecrosspartition", "True"}}};
    for (int i = 0; i < 3; i++)
        (void)expect_status(&server, &query, 200);
    report = advice(&server, "?partitions=4&growth=1000.5&sample=100");
    assert_int_equal(number(report, "partitions"), 4);
    assert_true(json_bool(json_get(report, SLICE("growthGiven"))));
    assert_true(number(json_get(report, SLICE("sample")), "items") <= 100);
    assert_true(number(json_get(report, SLICE("sample")), "items") >= 90);
    assert_int_equal(number(json_get(report, SLICE("recorded")), "executions"), 3);
    Json best = json_get(key_of(report, "/user"), SLICE("queries"));
    assert_true(number(best, "onePartitionShare") > 0.99);
    assert_true(number(json_get(key_of(report, "/pk"), SLICE("queries")), "visitsMean") > 1);
}

/* Each item once, by its newest version, and not what was deleted. */
static void the_sample_has_what_is_stored_now(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server, NULL);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 40; i++)
            (void)expect_status(
                &server,
                &(Ask){"PUT",
                       arena_format(&server.arena, DOCS "/%d", 2 * i).ptr,
                       arena_format(&server.arena, "{'id':'%d','pk':'de','user':'one'}", 2 * i).ptr,
                       {PK("['de']")}},
                200);
    for (int i = 0; i < 20; i++)
        (void)expect_status(&server,
                            &(Ask){"DELETE",
                                   arena_format(&server.arena, DOCS "/%d", 2 * i + 1).ptr,
                                   NULL,
                                   {PK("['fr']")}},
                            204);
    Json report = advice(&server, "");
    assert_int_equal(number(json_get(report, SLICE("sample")), "items"), ITEMS - 20);
    Json user = key_of(report, "/user");
    assert_slice(text_of(user, "largestValue"), SLICE("\"one\""));
}

static void who_may_not_ask_and_what_cannot_be_asked_is_refused(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
        const char *says;
    } rows[] = {
        {{"GET", VIEW, .key = ""}, 401, ""},
        {{"GET", VIEW, .key = "d3Jvbmc="}, 401, ""},
        {{"GET", VIEW, .key = FAKE_READ_KEY}, 200, "conclusion"},
        {{"POST", VIEW}, 405, "GET"},
        {{"GET", "/_orrery/advice"}, 404, "advice under"},
        {{"GET", "/_orrery/dbs/db/colls/none/advice"}, 404, "no colls/none"},
        {{"GET", VIEW "?sample=9"}, 400, "from 10 to 20000"},
        {{"GET", VIEW "?sample=20001"}, 400, "from 10 to 20000"},
        {{"GET", VIEW "?partitions=0"}, 400, "from 1 to 100"},
        {{"GET", VIEW "?partitions=101"}, 400, "from 1 to 100"},
        {{"GET", VIEW "?growth=0"}, 400, "above 0, not '0'"},
        {{"GET", VIEW "?growth=-1"}, 400, "above 0"},
        {{"GET", VIEW "?growth=1e99"}, 400, "above 0"},
        {{"GET", VIEW "?growth=x"}, 400, "above 0"},
        {{"GET", VIEW "?check=/a"}, 400, "there are sample, partitions, growth"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].status);
        expect_holds(answer.body, rows[i].says);
    }
}

static void an_empty_container_has_no_advice(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", VIEW}, 400);
    expect_holds(answer.body, "no items to learn from");
    assert_false(atomic_load(&server.api->is_advising)); /* a failure lets the next one in */
}

static void there_is_one_at_a_time(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server, NULL);
    atomic_store(&server.api->is_advising, true);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", VIEW}, 429);
    expect_header(&answer, "x-ms-retry-after-ms", "1000");
    assert_true(atomic_load(&server.api->is_advising)); /* the other one's */
    atomic_store(&server.api->is_advising, false);
    (void)expect_status(&server, &(Ask){"GET", VIEW}, 200);
    assert_false(atomic_load(&server.api->is_advising));
}

static void a_client_that_has_left_is_not_worked_for(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server, NULL);
    FakeAnswer answer;
    jam_begin(&jam, &server, 0);
    FakeExchange *exchange = ask_only(&server, &(Ask){"GET", VIEW}, &answer);
    atomic_store(&exchange->http.is_abandoned, true);
    jam_end(&jam);
    fake_wait(&server, &answer);
    mem_free(exchange);
    assert_int_equal(answer.status, 408);
    expect_holds(answer.body, "was cancelled");
    assert_false(atomic_load(&server.api->is_advising));
}

static void without_recorded_queries_the_items_are_measured(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    ApiOptions options = {.no_query_texts = true};
    open_filled(&server, &options);
    Json report = advice(&server, "");
    assert_true(json_is(json_get(report, SLICE("recorded")), JSON_NULL));
    assert_true(slice_starts_with(text_of(report, "best"), SLICE("/user")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_container_is_measured_with_its_own_key_and_queries),
        cmocka_unit_test(the_sample_has_what_is_stored_now),
        cmocka_unit_test(who_may_not_ask_and_what_cannot_be_asked_is_refused),
        cmocka_unit_test(an_empty_container_has_no_advice),
        cmocka_unit_test(there_is_one_at_a_time),
        cmocka_unit_test(a_client_that_has_left_is_not_worked_for),
        cmocka_unit_test(without_recorded_queries_the_items_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
