/* recorded_queries_test.c - which queries are recorded, how they are counted, and that no value is
 * kept with them. */
#include "api/tests/testing_int.h"

/* Two partitions: "a" is in the second, "b" in the first. */
static const ProvisionRules RULES = {
    .partition_ru = 400, .fallback = {PROVISION_MANUAL, 800}, .is_enforced = false};
#define VIEW "/_orrery/dbs/db/colls/c/queries"

#define QUERY                             \
    {                                     \
        "x-ms-documentdb-isquery", "True" \
    }
#define CROSS                                                \
    {                                                        \
        "x-ms-documentdb-query-enablecrosspartition", "True" \
    }
#define RANGE(id)                                 \
    {                                             \
        "x-ms-documentdb-partitionkeyrangeid", id \
    }

static void open_two(FakeServer *server, const ApiOptions *options)
{
    fake_server_open_with(server, options, &RULES);
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    for (int i = 0; i < 6; i++) {
        Slice body = arena_format(&server->arena, "{'id':'%d','pk':'%s','n':%d}", i,
                                  i % 2 == 0 ? "a" : "b", i);
        (void)expect_status(server, &(Ask){"POST", DOCS, body.ptr}, 201);
    }
}

static FakeAnswer query(FakeServer *server, const char *body, Header one, Header two, int status)
{
    return expect_status(server, &(Ask){"POST", DOCS, body, {QUERY, one, two}}, status);
}

static Json rows_by(FakeServer *server, const char *path)
{
    FakeAnswer answer = expect_status(server, &(Ask){"GET", path}, 200);
    return json_get(body_of(server, &answer), SLICE("rows"));
}

static int64_t number(Json rows, size_t index, const char *name)
{
    Json found = json_get(json_at(rows, index), slice_from_cstr(name));
    return json_is(found, JSON_NUMBER) ? (int64_t)json_number(found) : -1;
}

static size_t find(Json rows, const char *text, int64_t key_parts)
{
    for (size_t i = 0; i < json_count(rows); i++) {
        Json found = json_get(json_at(rows, i), SLICE("query"));
        if (json_is(found, JSON_STRING) && number(rows, i, "keyParts") == key_parts &&
            slice_equal(json_string(found), slice_from_cstr(text)))
            return i;
    }
    fail_msg("there is no '%s'", text);
    return 0;
}

static void queries_that_differ_in_values_are_one(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server, NULL);
    Header none = {0};
    (void)query(&server, "{'query':'SELECT * FROM c WHERE c.pk = \\'a\\''}", none, none, 200);
    (void)query(&server, "{'query':'select * from c where c.pk=\\'b\\''}", none, none, 200);
    (void)query(&server,
                "{'query':'SELECT * FROM c WHERE c.pk = @secret',"
                "'parameters':[{'name':'@secret','value':'hidden'}]}",
                none, none, 200);
    (void)query(&server, "{'query':'SELECT * FROM c WHERE c.n > 1'}", (Header)CROSS, none, 200);
    (void)query(&server, "{'query':'SELECT * FROM c WHERE c.n > 1'}", (Header)PK("['a']"), none,
                200);
    /* What fails is not counted. */
    (void)query(&server, "{'query':'SELECT * FROM c WHERE c.n > 1'}", none, none, 400);
    (void)query(&server, "{'query':'SELECT * FROM'}", (Header)CROSS, none, 400);

    FakeAnswer answer = expect_status(&server, &(Ask){"GET", VIEW}, 200);
    expect_header(&answer, "x-ms-request-charge", "0");
    assert_false(holds(answer.body, "hidden"));
    assert_false(holds(answer.body, "secret"));
    Json rows = json_get(body_of(&server, &answer), SLICE("rows"));
    assert_int_equal(json_count(rows), 3);
    size_t row = find(rows, "SELECT * FROM c WHERE c.pk = @s1", 0);
    assert_int_equal(number(rows, row, "executions"), 3);
    assert_int_equal(number(rows, row, "onePartition"), 3);
    assert_int_equal(number(rows, row, "partitionVisits"), 3);
    assert_int_equal(number(rows, row, "results"), 6);
    assert_true(number(rows, row, "ru") > 6);
    row = find(rows, "SELECT * FROM c WHERE c.n > @n1", 0);
    assert_int_equal(number(rows, row, "executions"), 1);
    assert_int_equal(number(rows, row, "onePartition"), 0);
    assert_int_equal(number(rows, row, "partitionVisits"), 2);
    row = find(rows, "SELECT * FROM c WHERE c.n > @n1", 1);
    assert_int_equal(number(rows, row, "onePartition"), 1);
    /* By RU, the three come before the one; by executions as well. */
    assert_int_equal(number(rows_by(&server, VIEW "?by=executions&count=1"), 0, "executions"), 3);
}

/* A client that merges asks each partition, and goes on page by page. */
static void a_query_of_many_requests_is_one_execution(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server, NULL);
    const char *text = "{'query':'SELECT * FROM c WHERE c.n >= 0'}";
    (void)query(&server, text, (Header)RANGE("0"), (Header){0}, 200);
    (void)query(&server, text, (Header)RANGE("1"), (Header){0}, 200);
    Json rows = rows_by(&server, VIEW);
    assert_int_equal(json_count(rows), 1);
    assert_int_equal(number(rows, 0, "executions"), 1);
    assert_int_equal(number(rows, 0, "onePartition"), 0);
    assert_int_equal(number(rows, 0, "pages"), 2);
    assert_int_equal(number(rows, 0, "partitionVisits"), 2);
    /* A filter by the key needs the second partition only. */
    (void)query(&server, "{'query':'SELECT * FROM c WHERE c.pk = \\'a\\''}", (Header)RANGE("1"),
                (Header){0}, 200);
    rows = rows_by(&server, VIEW);
    size_t row = find(rows, "SELECT * FROM c WHERE c.pk = @s1", 0);
    assert_int_equal(number(rows, row, "executions"), 1);
    assert_int_equal(number(rows, row, "onePartition"), 1);
    /* Pages after the first. */
    FakeAnswer page =
        query(&server, text, (Header)PK("['a']"), (Header){"x-ms-max-item-count", "2"}, 200);
    Slice token = fake_header(&page, "x-ms-continuation");
    assert_true(token.len > 0);
    (void)expect_status(
        &server,
        &(Ask){"POST",
               DOCS,
               text,
               {QUERY,
                PK("['a']"),
                {"x-ms-continuation", arena_format(&server.arena, "%.*s", SLICE_ARG(token)).ptr}}},
        200);
    rows = rows_by(&server, VIEW);
    row = find(rows, "SELECT * FROM c WHERE c.n >= @n1", 1);
    assert_int_equal(number(rows, row, "executions"), 1);
    assert_int_equal(number(rows, row, "pages"), 2);
    assert_int_equal(number(rows, row, "results"), 3);
}

/* A loop remembers texts; types of parameters are a part of what it remembers. */
static void types_of_parameters_tell_texts_apart(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server, NULL);
    static const char *const values[] = {"'a'", "5", "'b'", "6", "true", "null", "[1]", "{}"};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
            Slice body =
                arena_format(&server.arena,
                             "{'query':'SELECT * FROM c WHERE c.pk = \\'a\\' AND c.n = @v',"
                             "'parameters':[{'name':'@v','value':%s}]}",
                             values[i]);
            (void)query(&server, body.ptr, (Header){0}, (Header){0}, 200);
        }
    }
    static const struct {
        const char *text;
        int64_t executions;
    } rows[] = {
        {"SELECT * FROM c WHERE c.pk = @s1 AND c.n = @s2", 6},
        {"SELECT * FROM c WHERE c.pk = @s1 AND c.n = @n2", 6},
        {"SELECT * FROM c WHERE c.pk = @s1 AND c.n = @b2", 3},
        {"SELECT * FROM c WHERE c.pk = @s1 AND c.n = @x2", 3},
        {"SELECT * FROM c WHERE c.pk = @s1 AND c.n = @a2", 3},
        {"SELECT * FROM c WHERE c.pk = @s1 AND c.n = @o2", 3},
    };
    Json found = rows_by(&server, VIEW);
    assert_int_equal(json_count(found), ARRAY_COUNT(rows));
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(number(found, find(found, rows[i].text, 0), "executions"),
                         rows[i].executions);
}

static void long_texts_are_counted_together(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server, NULL);
    for (int i = 0; i < 2; i++) {
        AUTO(buf_done) Buf body;
        buf_init(&body, 1 << 20);
        buf_slice(&body, SLICE("{'query':'SELECT * FROM c WHERE c.pk = \\'a\\'"));
        for (int n = 0; n < 200 + i; n++)
            buf_format(&body, " OR c.n%d = 1", n);
        buf_slice(&body, SLICE("'}"));
        buf_byte(&body, '\0');
        (void)query(&server, body.ptr, (Header)CROSS, (Header){0}, 200);
    }
    Json rows = rows_by(&server, VIEW);
    assert_int_equal(json_count(rows), 1);
    assert_true(json_is(json_get(json_at(rows, 0), SLICE("query")), JSON_NULL));
    assert_int_equal(number(rows, 0, "executions"), 2);
}

static void parameters_are_checked(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server, NULL);
    static const char *const wrong[] = {"?by=size", "?count=0", "?count=1001", "?minutes=1"};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        Slice path = arena_format(&server.arena, VIEW "%s", wrong[i]);
        (void)expect_status(&server, &(Ask){"GET", path.ptr}, 400);
    }
    (void)expect_status(&server, &(Ask){"GET", "/_orrery/dbs/db/colls/gone/queries"}, 404);
    (void)expect_status(&server, &(Ask){"GET", "/_orrery/queries"}, 404);
    (void)expect_status(&server, &(Ask){"DELETE", VIEW}, 405);
    (void)expect_status(&server, &(Ask){"GET", VIEW, .key = ""}, 401);
}

static void nothing_is_recorded_if_it_is_not_wanted(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server, &(ApiOptions){.no_query_texts = true});
    (void)query(&server, "{'query':'SELECT * FROM c'}", (Header)CROSS, (Header){0}, 200);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", VIEW}, 400);
    assert_true(holds(answer.body, "--no-query-texts"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_that_differ_in_values_are_one),
        cmocka_unit_test(a_query_of_many_requests_is_one_execution),
        cmocka_unit_test(types_of_parameters_tell_texts_apart),
        cmocka_unit_test(long_texts_are_counted_together),
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(nothing_is_recorded_if_it_is_not_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
