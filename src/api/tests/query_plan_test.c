/* query_plan_test.c - requests for the plan of a query, however clients send them. */
#include "api/items/query_plan_int.h"
#include "api/tests/testing_int.h"
#include "query/eval/query.h"

#define PLAN                                        \
    {                                               \
        "x-ms-cosmos-is-query-plan-request", "True" \
    }
#define AS_QUERY                                 \
    {                                            \
        "content-type", "application/query+json" \
    }
#define FEATURES(list)                               \
    {                                                \
        "x-ms-cosmos-supported-query-features", list \
    }
#define JS_FEATURES                                                                             \
    FEATURES("NonValueAggregate,Aggregate,Distinct,MultipleOrderBy,OffsetAndLimit,OrderBy,Top," \
             "CompositeAggregate,GroupBy,MultipleAggregates,NonStreamingOrderBy")

static const char FULL[] = "{'min':'','max':'FF','isMinInclusive':true,'isMaxInclusive':false}";
static const char NULL_KEY[] =
    "{'min':'378867E4430E67857ACE5C908374FE16','max':'378867E4430E67857ACE5C908374FE16',"
    "'isMinInclusive':true,'isMaxInclusive':true}";

static void expect_ranges(FakeServer *server, const FakeAnswer *answer, const char *ranges)
{
    Json list = json_get(body_of(server, answer), SLICE("queryRanges"));
    Slice text = quoted(&server->arena, ranges);
    assert_slice(json_print_arena(&server->arena, list),
                 arena_format(&server->arena, "[%.*s]", SLICE_ARG(text)));
}

static void a_plan_is_told_however_it_is_asked_for(void **state)
{
    (void)state;
    static const Ask rows[] = {
        {"POST", DOCS, "{'query':'SELECT VALUE COUNT(1) FROM c'}",
         .headers = {PLAN, AS_QUERY, JS_FEATURES}},
        {"POST", DOCS, "{'query':'SELECT VALUE COUNT(1) FROM c','parameters':[]}",
         .headers = {PLAN, {"content-type", "application/json"}, FEATURES("OrderBy, Aggregate")}},
        {"POST", DOCS,
         "{'query':'SELECT VALUE COUNT(@p) FROM c','parameters':"
         "[{'name':'@p','value':1}]}",
         .headers = {PLAN, {"x-ms-documentdb-isquery", "true"}, JS_FEATURES}},
        /* It changes nothing. */
        {"POST", DOCS, "{'query':'SELECT VALUE COUNT(1) FROM c'}",
         .headers = {PLAN, {"content-type", "application/json"}, JS_FEATURES},
         .key = FAKE_READ_KEY},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i], 200);
        expect_header(&answer, "content-type", "application/json");
        expect_ranges(&server, &answer, FULL);
        Json info = json_get(body_of(&server, &answer), SLICE("queryInfo"));
        assert_slice(json_print_arena(&server.arena, json_get(info, SLICE("aggregates"))),
                     SLICE("[\"Count\"]"));
        expect_holds(text_of(info, "rewrittenQuery"), "SELECT VALUE [{\"item\": COUNT(");
    }
    FakeAnswer list = expect_status(&server, &(Ask){"GET", DOCS}, 200);
    expect_holds(list.body, "\"_count\":0");
}

typedef struct RangeCase {
    const char *query;
    const char *key; /* NULL if none is given */
    const char *ranges;
} RangeCase;

static void check_ranges(const char *definition, const RangeCase *rows, size_t count)
{
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = definition});
    for (size_t i = 0; i < count; i++) {
        Ask a = {"POST", DOCS, rows[i].query, .headers = {PLAN, AS_QUERY}};
        if (rows[i].key != NULL)
            a.headers[2] = (Header)PK(rows[i].key);
        FakeAnswer answer = expect_status(&server, &a, 200);
        expect_ranges(&server, &answer, rows[i].ranges);
    }
}

static void ranges_are_those_of_the_key(void **state)
{
    (void)state;
    static const RangeCase rows[] = {
        {"{'query':'SELECT * FROM c'}", NULL, FULL},
        {"{'query':'SELECT * FROM c WHERE c.pk = null'}", NULL, NULL_KEY},
        {"{'query':'SELECT * FROM c WHERE c.pk = @k','parameters':[{'name':'@k','value':null}]}",
         NULL, NULL_KEY},
        {"{'query':'SELECT * FROM c'}", "[null]", NULL_KEY},
        {"{'query':'SELECT * FROM c WHERE c.pk = 1'}", "[null]", NULL_KEY},
        {"{'query':'SELECT * FROM c'}", "[{}]",
         "{'min':'11622DAA78F835834610ABE56EFF5CB5','max':'11622DAA78F835834610ABE56EFF5CB5',"
         "'isMinInclusive':true,'isMaxInclusive':true}"},
        {"{'query':'SELECT 1'}", NULL,
         "{'min':'','max':'','isMinInclusive':true,'isMaxInclusive':true}"},
    };
    check_ranges(CONTAINER, rows, ARRAY_COUNT(rows));
}

static void a_prefix_is_a_range_of_its_own(void **state)
{
    (void)state;
    static const char definition[] =
        "{'id':'c','partitionKey':{'paths':['/a','/b'],'kind':'MultiHash','version':2}}";
    static const char prefix[] =
        "{'min':'378867E4430E67857ACE5C908374FE16','max':'378867E4430E67857ACE5C908374FE16FF',"
        "'isMinInclusive':true,'isMaxInclusive':false}";
    static const char whole[] =
        "{'min':'378867E4430E67857ACE5C908374FE160E711127C5B5A8E4726AC6DD306A3E59',"
        "'max':'378867E4430E67857ACE5C908374FE160E711127C5B5A8E4726AC6DD306A3E59',"
        "'isMinInclusive':true,'isMaxInclusive':true}";
    static const RangeCase rows[] = {
        {"{'query':'SELECT * FROM c WHERE c.a = null'}", NULL, prefix},
        {"{'query':'SELECT * FROM c'}", "[null]", prefix},
        {"{'query':'SELECT * FROM c WHERE c.b = true AND c.a = null'}", NULL, whole},
        {"{'query':'SELECT * FROM c'}", "[null,true]", whole},
        {"{'query':'SELECT * FROM c WHERE c.b = true'}", NULL, FULL},
    };
    check_ranges(definition, rows, ARRAY_COUNT(rows));
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
        const char *holds;
    } rows[] = {
        {{"POST", DOCS, "{'query':'SELECT * FROM c ORDER BY c.a'}", .headers = {PLAN, AS_QUERY}},
         400,
         "which the calling client does not support: OrderBy"},
        {{"POST", DOCS, "{'query':'SELECT c.a FROM c GROUP BY c.a'}",
          .headers = {PLAN, AS_QUERY, FEATURES("Aggregate")}},
         400,
         "support: GroupBy"},
        {{"POST", DOCS, "{'query':'SELECT MIN(c.a) + 1 FROM c'}",
          .headers = {PLAN, AS_QUERY, JS_FEATURES}},
         400,
         "Compositions of aggregates and other expressions are not allowed."},
        {{"POST", DOCS, "{'query':'SELECT FROM c'}", .headers = {PLAN, AS_QUERY}}, 400, "SC1001"},
        {{"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.a = @p'}", .headers = {PLAN, AS_QUERY}},
         400,
         "SC2004"},
        {{"POST", DOCS, "{}", .headers = {PLAN, AS_QUERY}}, 400, "must be a string"},
        {{"POST", DOCS, "{'query':", .headers = {PLAN}}, 400, "BadRequest"},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {PLAN, PK("[1,2]")}},
         400,
         "BadRequest"},
        {{"POST", "/dbs/db/colls/none/docs", "{'query':'SELECT 1'}", .headers = {PLAN}},
         404,
         "NotFound"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].status);
        expect_holds(answer.body, rows[i].holds);
        if (strstr(rows[i].holds, "support: ") != NULL)
            assert_int_equal(sub_status_of(&answer), 1004);
    }
}

static void computed_properties_keep_their_names(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = "{'id':'c','partitionKey':{'paths':['/pk'],'version':2},"
                                     "'computedProperties':[{'name':'low','query':"
                                     "'SELECT VALUE LOWER(c.name) FROM c'}]}"});
    Ask a = {"POST", DOCS, "{'query':'SELECT c.low FROM c ORDER BY c.low'}",
             .headers = {PLAN, AS_QUERY, JS_FEATURES}};
    FakeAnswer answer = expect_status(&server, &a, 200);
    Json info = json_get(body_of(&server, &answer), SLICE("queryInfo"));
    assert_slice(text_of(info, "rewrittenQuery"),
                 SLICE("SELECT c._rid, [{\"item\": c.low}] AS orderByItems, {\"low\": c.low} AS "
                       "payload\nFROM c\nWHERE ({documentdb-formattableorderbyquery-filter})\n"
                       "ORDER BY c.low"));
}

/* The body of a request for the plan of a query that is longer than a loop reads. */
static char *long_text(FakeServer *server, const char *end)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    buf_slice(&text, SLICE("{'query':'SELECT * FROM c WHERE c.p = 0"));
    for (int i = 1; text.len < (40 << 10) - 20; i++)
        buf_format(&text, " OR c.p = %d", i);
    buf_slice(&text, slice_from_cstr(end));
    return arena_cstr(&server->arena, buf_view(&text));
}

static void a_long_text_is_read_on_a_worker_and_costs_more(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Ask short_one = {"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {PLAN, AS_QUERY}};
    Ask long_one = {"POST", DOCS, long_text(&server, "'}"), .headers = {PLAN, AS_QUERY}};
    Ask bad = {"POST", DOCS, long_text(&server, " OR'}"), .headers = {PLAN, AS_QUERY}};
    jam_begin(&jam, &server, JAM_WAITING_MAX); /* nothing more can be posted to the worker */
    (void)expect_status(&server, &short_one, 200);
    FakeAnswer refused = expect_status(&server, &long_one, 503);
    expect_holds(refused.body, "waiting for a worker");
    jam_end(&jam);
    FakeAnswer answer = expect_status(&server, &long_one, 200);
    expect_ranges(&server, &answer, FULL);
    expect_header(&answer, "x-ms-request-charge", "10");
    answer = expect_status(&server, &bad, 400);
    expect_holds(answer.body, "SC1002");
    expect_header(&answer, "x-ms-request-charge", "10");
    answer = expect_status(&server, &short_one, 200);
    expect_header(&answer, "x-ms-request-charge", "1");
}

/* The text is still read after the container is gone. */
static void a_plan_outlives_its_container(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Ask long_one = {"POST", DOCS, long_text(&server, "'}"), .headers = {PLAN, AS_QUERY}};
    jam_begin(&jam, &server, 0);
    FakeAnswer answer;
    FakeExchange *exchange = ask_only(&server, &long_one, &answer);
    assert_int_equal(answer.status, 0);
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db"}, 204);
    jam_end(&jam);
    fake_wait(&server, &answer);
    assert_int_equal(answer.status, 200);
    mem_free(exchange);
}

/* The text for a refusal that says how the query could be run. */
static void the_plan_of_any_query_is_text(void **state)
{
    (void)state;
    static const struct {
        const char *query, *text; /* "": there is none */
    } rows[] = {
        {"SELECT TOP 3 * FROM c", "'top':3"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c)", "'dCountAlias':''"},
        {"SELECT MIN(c.a) + 1 FROM c", ""},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    const Container *container = container_now(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Error err;
        Query *query;
        assert_int_equal(
            query_parse(&server.arena, slice_from_cstr(rows[i].query), JSON_NONE, &query, &err),
            STATUS_OK);
        QueryRoute route;
        query_route(query, &server.arena, &container->partition_key, &route);
        Slice text = document_plan_text(&server.arena, query, &route);
        Slice expected = quoted(&server.arena, rows[i].text);
        if (expected.len == 0)
            assert_int_equal(text.len, 0);
        else
            expect_holds(text, arena_cstr(&server.arena, expected));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_is_told_however_it_is_asked_for),
        cmocka_unit_test(ranges_are_those_of_the_key),
        cmocka_unit_test(a_prefix_is_a_range_of_its_own),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(computed_properties_keep_their_names),
        cmocka_unit_test(a_long_text_is_read_on_a_worker_and_costs_more),
        cmocka_unit_test(a_plan_outlives_its_container),
        cmocka_unit_test(the_plan_of_any_query_is_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
