/* document_scope_test.c - which partitions queries look at, and which queries are refused. */
#include "api/tests/testing_int.h"
#include "base/encoding.h"

enum { ITEMS = 60, KEYS = 12, RANGES = 5 };

#define CROSS(value)                                        \
    {                                                       \
        "x-ms-documentdb-query-enablecrosspartition", value \
    }

/* 'c' with five ranges and ITEMS items, as many of each key: numbers from 0 on, and strings. */
static void open_filled(FakeServer *server)
{
    open_with(server, (Ask){.body = CONTAINER, .headers = {{"x-ms-offer-throughput", "30000"}}});
    assert_int_equal(container_now(server)->range_count, RANGES);
    for (int i = 0; i < ITEMS; i++) {
        const char *quote = i % KEYS < KEYS / 2 ? "" : "'";
        Slice item = arena_format(&server->arena, "{'id':'i%02d','n':%d,'pk':%s%d%s}", i, i, quote,
                                  i % KEYS, quote);
        make_item(server, arena_cstr(&server->arena, item));
    }
}

static Ask query_of(FakeServer *server, const char *text, Header first)
{
    Slice body = arena_format(&server->arena, "{'query':'%s'}", text);
    return (Ask){"POST",
                 DOCS,
                 arena_cstr(&server->arena, body),
                 {{"x-ms-documentdb-isquery", "true"}, {"x-orrery-explain", "true"}, first}};
}

static Json explained(FakeServer *server, const FakeAnswer *answer)
{
    Slice text;
    Json explain = JSON_NONE;
    Error err;
    Slice header = fake_header(answer, "x-orrery-explain");
    assert_true(percent_decode(&server->arena, header, &text));
    assert_int_equal(json_parse(&server->arena, text, &explain, &err), STATUS_OK);
    return explain;
}

static size_t count_of(Json explain, const char *name)
{
    int64_t count = -1;
    assert_true(json_to_i64(json_get(explain, slice_from_cstr(name)), &count));
    return (size_t)count;
}

static bool holds_key(const Container *container, size_t index, Json value)
{
    const PartitionRange *range = &container->ranges[index];
    PartitionKey key = {.count = 1, .parts = {value}};
    Epk epk;
    epk_make(container->partition_key.kind, &key, &epk);
    return slice_compare(range->min_bytes, epk_slice(&epk)) <= 0 &&
           slice_compare(epk_slice(&epk), range->max_bytes) < 0;
}

/* In how many ranges the keys of a JSON array are. */
static size_t ranges_of(FakeServer *server, const char *keys)
{
    Json list = JSON_NONE;
    Error err;
    assert_int_equal(json_parse(&server->arena, quoted(&server->arena, keys), &list, &err),
                     STATUS_OK);
    const Container *container = container_now(server);
    bool is_used[RANGES] = {0};
    size_t count = 0;
    for (JsonIter it = json_iter(list); json_next(&it);) {
        for (size_t i = 0; i < RANGES; i++) {
            bool is_in = holds_key(container, i, it.value);
            count += is_in && !is_used[i];
            is_used[i] = is_used[i] || is_in;
        }
    }
    return count;
}

static void queries_visit_the_partitions_of_the_keys_they_name(void **state)
{
    (void)state;
    static const struct {
        const char *query, *keys; /* NULL for all */
        size_t results;
        bool is_free; /* needs no permission to cross partitions */
    } ROWS[] = {
        {"SELECT * FROM c", NULL, 60, false},
        {"SELECT * FROM c WHERE c.pk > 3", NULL, 10, false},
        {"SELECT * FROM c WHERE c.pk = 3", "[3]", 5, true},
        {"SELECT * FROM c WHERE c.pk IN (3)", "[3]", 5, true},
        {"SELECT * FROM c WHERE c.pk IN (3, 3.0)", "[3]", 5, true},
        {"SELECT * FROM c WHERE c.pk = 3 AND c.n < 20", "[3]", 2, true},
        {"SELECT * FROM c WHERE c.pk = 0", "[0,-0.0]", 5, true},
        {"SELECT * FROM c WHERE c.pk IN (1, 2)", "[1,2]", 10, false},
        {"SELECT * FROM c WHERE c.pk IN (1, 2, 3, 4, 5)", "[1,2,3,4,5]", 25, false},
        {"SELECT * FROM c WHERE c.pk = 1 OR c.pk = 2 AND c.n < 20", "[1,2]", 7, false},
        {"SELECT * FROM c WHERE c.pk IN (1, 2) ORDER BY c.n DESC", "[1,2]", 10, false},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.pk IN (1, 2)", "[1,2]", 1, false},
        {"SELECT DISTINCT VALUE c.pk FROM c WHERE c.pk IN (1, 2)", "[1,2]", 2, false},
        {"SELECT * FROM c WHERE c.pk = 1 OR c.n = 2", NULL, 6, false},
        {"SELECT * FROM c WHERE NOT IS_DEFINED(c.pk)", "[[]]", 0, true},
        {"SELECT * FROM c WHERE c.pk = 1 AND c.pk = 2", "[]", 0, true},
        {"SELECT * FROM c WHERE c.pk = 1 AND c.pk = 2 ORDER BY c.n", "[]", 0, true},
        {"SELECT * FROM c WHERE false", "[]", 0, true},
        {"SELECT VALUE COUNT(1) FROM c WHERE false", "[]", 1, true},
        {"SELECT MAX(c.n) AS m, COUNT(c.n) AS n FROM c WHERE c.pk = 1 AND c.pk = 2", "[]", 1, true},
        {"SELECT c.pk, COUNT(1) AS n FROM c WHERE false GROUP BY c.pk", "[]", 0, true},
        {"SELECT VALUE 5", "[]", 1, true},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Ask a = query_of(&server, ROWS[i].query, (Header)CROSS("true"));
        FakeAnswer answer = expect_status(&server, &a, 200);
        Json explain = explained(&server, &answer);
        size_t visited = ROWS[i].keys == NULL ? RANGES : ranges_of(&server, ROWS[i].keys);
        if (count_of(explain, "results") != ROWS[i].results ||
            count_of(explain, "partitionsVisited") != visited ||
            count_of(explain, "partitionsTotal") != RANGES)
            fail_msg("%s: expected %zu results of %zu partitions: %.*s", ROWS[i].query,
                     ROWS[i].results, visited, SLICE_ARG(json_print_arena(&server.arena, explain)));
        a.headers[2] = (Header)CROSS("false");
        answer = expect_status(&server, &a, ROWS[i].is_free ? 200 : 400);
        assert_int_equal(sub_status_of(&answer), 0);
        if (!ROWS[i].is_free)
            expect_holds(answer.body, "Cross partition query is required but disabled");
    }
}

/* By its id, not by its place among those that were looked at. */
static void each_partition_of_a_plan_is_named(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    const Container *container = container_now(&server);
    Json keys = JSON_NONE;
    Error err;
    assert_int_equal(json_parse(&server.arena, SLICE("[1,2,3,4,5]"), &keys, &err), STATUS_OK);
    for (JsonIter key = json_iter(keys); json_next(&key);) {
        Slice query = arena_format(&server.arena, "SELECT * FROM c WHERE c.pk = %.*s",
                                   SLICE_ARG(json_print_arena(&server.arena, key.value)));
        Ask a = query_of(&server, arena_cstr(&server.arena, query), (Header)CROSS("true"));
        FakeAnswer answer = expect_status(&server, &a, 200);
        Json plans = json_get(explained(&server, &answer), SLICE("partitions"));
        assert_int_equal(json_count(plans), 1);
        Slice named = json_string(json_get(json_at(plans, 0), SLICE("partition")));
        size_t found = 0;
        for (size_t i = 0; i < RANGES; i++) {
            Slice id = arena_format(&server.arena, "%u", container->ranges[i].id);
            found += slice_equal(named, id) && holds_key(container, i, key.value);
        }
        assert_int_equal(found, 1);
    }
}

/* COUNT over no partition at all is 0, not nothing. */
static void what_is_nowhere_is_counted_as_none(void **state)
{
    (void)state;
    static const struct {
        const char *query, *expected;
    } ROWS[] = {
        {"SELECT VALUE COUNT(1) FROM c WHERE c.pk = 1 AND c.pk = 2", "[0]"},
        {"SELECT COUNT(1) AS n, SUM(c.n) AS s, MAX(c.n) AS m FROM c WHERE false",
         "[{\"n\":0,\"s\":0}]"},
        {"SELECT * FROM (SELECT COUNT(1) AS n FROM c WHERE false) AS s", "[{\"n\":0}]"},
        {"SELECT VALUE c.n FROM c WHERE false ORDER BY c.n", "[]"},
        {"SELECT VALUE 1 + 1", "[2]"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        Ask a = query_of(&server, ROWS[i].query, (Header){NULL, NULL});
        FakeAnswer answer = expect_status(&server, &a, 200);
        Json documents = json_get(body_of(&server, &answer), SLICE("Documents"));
        assert_slice(json_print_arena(&server.arena, documents), slice_from_cstr(ROWS[i].expected));
    }
    /* What the service refuses is refused, whether there is anything to look at or not. */
    Ask a = query_of(&server, "SELECT * FROM c WHERE false ORDER BY c.n, c.pk", (Header){0});
    (void)expect_status(&server, &a, 400);
}

/* Page by page, over partitions with gaps between them. */
static void pages_go_on_where_the_route_leads(void **state)
{
    (void)state;
    static const char *const QUERIES[] = {
        "SELECT VALUE c.n FROM c WHERE c.pk IN (1, 2, 3, 0)",
        "SELECT VALUE c.n FROM c WHERE c.pk IN (1, 2, 3, 0) ORDER BY c.n",
        "SELECT DISTINCT VALUE c.n FROM c WHERE c.pk IN (1, 2, 3, 0)",
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
        bool is_seen[ITEMS] = {0};
        size_t total = 0;
        Ask a = query_of(&server, QUERIES[i], (Header)CROSS("true"));
        a.headers[3] = (Header){"x-ms-max-item-count", "3"};
        for (;;) {
            FakeAnswer answer = expect_status(&server, &a, 200);
            Json documents = json_get(body_of(&server, &answer), SLICE("Documents"));
            for (JsonIter it = json_iter(documents); json_next(&it); total++) {
                size_t n = (size_t)json_number(it.value);
                assert_false(is_seen[n]);
                assert_true(n % KEYS < 4);
                is_seen[n] = true;
            }
            Slice token = fake_header(&answer, "x-ms-continuation");
            if (token.len == 0)
                break;
            a.headers[4] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
        }
        assert_int_equal(total, 20);
    }
}

/* SDKs compare it with the range that they asked, and read all ranges again where it is another. */
static void answers_name_the_partition_and_its_lsn(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    const Container *container = container_now(&server);
    Ask list = {"GET", DOCS};
    Ask query = query_of(&server, "SELECT * FROM c", (Header){NULL, NULL});
    Ask *const asks[] = {&list, &query};
    for (size_t i = 0; i < RANGES; i++) {
        const PartitionRange *range = &container->ranges[i];
        const char *id = arena_cstr(&server.arena, arena_format(&server.arena, "%u", range->id));
        Slice lsn =
            arena_format(&server.arena, "%llu",
                         (unsigned long long)handle_lsn(container_handle(container, range)));
        for (size_t j = 0; j < ARRAY_COUNT(asks); j++) {
            asks[j]->headers[2 * j] = (Header){"x-ms-documentdb-partitionkeyrangeid", id};
            FakeAnswer answer = expect_status(&server, asks[j], 200);
            expect_header(&answer, "x-ms-documentdb-partitionkeyrangeid", id);
            assert_slice(fake_header(&answer, "lsn"), lsn);
        }
    }
}

#define CLIENT                               \
    {                                        \
        "x-orrery-cross-partition", "client" \
    }

/* A client that puts results together itself is told to, where the service would. */
static void clients_may_ask_to_merge_themselves(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        int sub;           /* -1 if the query is answered */
        const char *holds; /* of the error */
    } ROWS[] = {
        {"SELECT * FROM c", -1, NULL},
        {"SELECT c.n AS x FROM c WHERE c.n > 5 AND c.pk IN (1, 2, 3, 4)", -1, NULL},
        {"SELECT VALUE t FROM c JOIN t IN c.tags", -1, NULL},
        {"SELECT * FROM c ORDER BY c.n", 1004, "can not be directly served by the gateway"},
        {"SELECT TOP 3 * FROM c", 1004, "can not be directly served by the gateway"},
        {"SELECT * FROM c OFFSET 1 LIMIT 1", 1004, "can not be directly served"},
        {"SELECT VALUE COUNT(1) FROM c", 1004, "can not be directly served"},
        {"SELECT DISTINCT VALUE c.pk FROM c", 1004, "can not be directly served"},
        {"SELECT c.pk FROM c GROUP BY c.pk", 1004, "can not be directly served"},
        {"SELECT VALUE COUNT(1) + 1 FROM c WHERE c.pk = 1", -1, NULL},
        {"SELECT TOP 3 * FROM c WHERE c.pk = 1 ORDER BY c.n", -1, NULL},
        {"SELECT VALUE COUNT(1) FROM c WHERE false", -1, NULL},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        bool is_answered = ROWS[i].sub < 0;
        Ask a = query_of(&server, ROWS[i].query, (Header)CROSS("true"));
        (void)expect_status(&server, &a, 200);
        a.headers[3] = (Header){"x-orrery-cross-partition", "Server"};
        (void)expect_status(&server, &a, 200);
        a.headers[3] = (Header)CLIENT;
        FakeAnswer answer = expect_status(&server, &a, is_answered ? 200 : 400);
        if (!is_answered) {
            assert_int_equal(sub_status_of(&answer), ROWS[i].sub);
            expect_holds(answer.body, ROWS[i].holds);
            assert_int_equal(holds(answer.body, "\"additionalErrorInfo\":"), ROWS[i].sub == 1004);
        }
        a.headers[4] = (Header)PK("[1]"); /* then there is nothing to put together */
        (void)expect_status(&server, &a, 200);
        a.headers[4] = (Header){"x-ms-documentdb-partitionkeyrangeid", "0"};
        (void)expect_status(&server, &a, 200);
    }
}

/* Clients that merge are known by their names, unless a header or an option says it. */
static void clients_that_merge_are_told_to(void **state)
{
    (void)state;
    static const struct {
        const char *agent;
        const char *header;
        ApiMerge merge;
        bool is_merged; /* by the server */
    } ROWS[] = {
        {"azsdk-python-cosmos/4.9.0 Python/3.11.2 (Linux)", NULL, API_MERGE_AUTO, false},
        {"azsdk-python-cosmos-async/4.9.0 Python/3.11.2", NULL, API_MERGE_AUTO, false},
        {"azure-cosmos-js/4.4.1 Node.js/18.19.0", NULL, API_MERGE_AUTO, false},
        {"azsdk-go-azcosmos/v1.4.0 (go1.24; linux)", NULL, API_MERGE_AUTO, true},
        {"azsdk-java-cosmos/4.60.0 Linux/6.1 JRE/17", NULL, API_MERGE_AUTO, true},
        {"curl/8.5.0", NULL, API_MERGE_AUTO, true},
        {"azure-cosmos-js/4.4.1", "server", API_MERGE_AUTO, true},
        {"azure-cosmos-js/4.4.1", NULL, API_MERGE_ALWAYS, true},
        {"curl/8.5.0", NULL, API_MERGE_NEVER, false},
        {"curl/8.5.0", "server", API_MERGE_NEVER, true},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        server.api->options.merge = ROWS[i].merge;
        Ask a = query_of(&server, "SELECT * FROM c ORDER BY c.n", (Header)CROSS("true"));
        a.headers[3] = (Header){"user-agent", ROWS[i].agent};
        if (ROWS[i].header != NULL)
            a.headers[4] = (Header){"x-orrery-cross-partition", ROWS[i].header};
        FakeAnswer answer = expect_status(&server, &a, ROWS[i].is_merged ? 200 : 400);
        assert_int_equal(sub_status_of(&answer), ROWS[i].is_merged ? 0 : 1004);
    }
}

/* SDKs cannot begin with a plan in the middle. */
static void a_query_that_was_begun_is_gone_on_with(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    Ask a = query_of(&server, "SELECT * FROM c ORDER BY c.n", (Header)CROSS("true"));
    a.headers[3] = (Header){"x-ms-max-item-count", "7"};
    FakeAnswer answer = expect_status(&server, &a, 200);
    a.headers[4] = (Header){"x-ms-continuation",
                            arena_cstr(&server.arena, fake_header(&answer, "x-ms-continuation"))};
    a.headers[5] = (Header)CLIENT;
    (void)expect_status(&server, &a, 200);
}

/* What clients cannot merge is for the server to merge. */
static void what_has_no_plan_is_merged_for_everybody(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    Ask a =
        query_of(&server, "SELECT c.pk FROM c GROUP BY c.pk ORDER BY c.pk", (Header)CROSS("true"));
    a.headers[3] = (Header)CLIENT;
    (void)expect_status(&server, &a, 200);
}

static void what_the_planner_refuses_needs_a_key_or_extensions(void **state)
{
    (void)state;
    static const struct {
        const char *query, *holds;
    } ROWS[] = {
        {"SELECT VALUE [SUM(c.n)] FROM c", "Compositions of aggregates"},
        {"SELECT c.pk, ABS(SUM(c.n)) AS s FROM c GROUP BY c.pk", "Compositions of aggregates"},
        {"SELECT VALUE MAX(x) FROM (SELECT DISTINCT VALUE c.n FROM c) x", "with DISTINCT"},
        {"SELECT * FROM c OFFSET 2147483648 LIMIT 1", "OFFSET count value"},
        {"SELECT * FROM c OFFSET 0 LIMIT 2147483648", "LIMIT count value"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        server.api->options.has_extensions = false;
        Ask a = query_of(&server, ROWS[i].query, (Header)CROSS("true"));
        FakeAnswer answer = expect_status(&server, &a, 400);
        expect_holds(answer.body, ROWS[i].holds);
        assert_int_equal(sub_status_of(&answer), 0);
        server.api->options.has_extensions = true;
        (void)expect_status(&server, &a, 200);
        server.api->options.has_extensions = false;
        a.headers[3] = (Header)PK("[1]");
        (void)expect_status(&server, &a, 200);
        a.headers[3] = (Header){"x-ms-documentdb-partitionkeyrangeid", "0"};
        (void)expect_status(&server, &a, 200);
    }
}

/* Each partition begins a page, and the token says where. */
static void clients_that_merge_walk_partition_by_partition(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (int size = 1; size <= 100; size += 33) {
        Slice most = arena_format(&server.arena, "%d", size);
        Ask a = query_of(&server, "SELECT VALUE c.n FROM c WHERE c.n >= 0", (Header)CROSS("true"));
        a.headers[3] = (Header)CLIENT;
        a.headers[4] = (Header){"x-ms-max-item-count", arena_cstr(&server.arena, most)};
        bool is_seen[ITEMS] = {0};
        size_t total = 0;
        size_t ranges = 0;
        Slice range = SLICE_EMPTY;
        for (;;) {
            FakeAnswer answer = expect_status(&server, &a, 200);
            Slice id = fake_header(&answer, "x-ms-documentdb-partitionkeyrangeid");
            ranges += !slice_equal(id, range);
            range = arena_copy(&server.arena, id);
            assert_slice(fake_header(&answer, "x-ms-session-token"),
                         arena_format(&server.arena, "%.*s:-1#%.*s", SLICE_ARG(id),
                                      SLICE_ARG(fake_header(&answer, "lsn"))));
            Json documents = json_get(body_of(&server, &answer), SLICE("Documents"));
            for (JsonIter it = json_iter(documents); json_next(&it); total++) {
                assert_false(is_seen[(size_t)json_number(it.value)]);
                is_seen[(size_t)json_number(it.value)] = true;
            }
            Slice token = fake_header(&answer, "x-ms-continuation");
            if (token.len == 0)
                break;
            assert_true(token.len <= 1024);
            assert_true(slice_starts_with(token, SLICE("[{\"token\":")));
            a.headers[5] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
        }
        assert_int_equal(total, ITEMS);
        assert_int_equal(ranges, RANGES);
    }
}

static void a_token_that_is_no_walk_is_refused(void **state)
{
    (void)state;
    static const char *const TOKENS[] = {
        "[",
        "[]",
        "[1]",
        "[{}]",
        "[{'token':null}]",
        "[{'token':null,'range':{'min':'','max':'x'}}]",
        "[{'token':null,'range':{'min':'','max':''}}]",
        "[{'token':'abc','range':{'min':'','max':'FF'}}]",
        "[{'token':null,'range':{'min':'','max':'FF'}},{}]",
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(TOKENS); i++) {
        Ask a = query_of(&server, "SELECT * FROM c", (Header)CROSS("true"));
        a.headers[3] = (Header)CLIENT;
        a.headers[4] = (Header){"x-ms-continuation",
                                arena_cstr(&server.arena, quoted(&server.arena, TOKENS[i]))};
        (void)expect_status(&server, &a, 400);
    }
}

static void the_plan_of_a_refusal_is_text(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    Ask a = query_of(&server, "SELECT TOP 1 * FROM c WHERE c.pk IN (1, 2, 3, 4, 5)",
                     (Header)CROSS("true"));
    a.headers[3] = (Header)CLIENT;
    FakeAnswer answer = expect_status(&server, &a, 400);
    Json plan = JSON_NONE;
    Error err;
    Slice text = text_of(body_of(&server, &answer), "additionalErrorInfo");
    assert_int_equal(json_parse(&server.arena, text, &plan, &err), STATUS_OK);
    Json ranges = json_get(plan, SLICE("queryRanges"));
    assert_int_equal(json_count(ranges), 5);
    Json first = json_at(ranges, 0);
    assert_slice(text_of(first, "min"), text_of(first, "max"));
    assert_true(json_bool(json_get(first, SLICE("isMaxInclusive"))));
}

static void other_ways_to_cross_partitions_are_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    Ask a = query_of(&server, "SELECT * FROM c", (Header)CROSS("true"));
    a.headers[3] = (Header){"x-orrery-cross-partition", "both"};
    FakeAnswer answer = expect_status(&server, &a, 400);
    expect_holds(answer.body, "x-orrery-cross-partition must be 'server' or 'client', not 'both'");
    assert_int_equal(sub_status_of(&answer), 0);
    a.headers[4] = (Header)PK("[1]");
    (void)expect_status(&server, &a, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_visit_the_partitions_of_the_keys_they_name),
        cmocka_unit_test(each_partition_of_a_plan_is_named),
        cmocka_unit_test(what_is_nowhere_is_counted_as_none),
        cmocka_unit_test(pages_go_on_where_the_route_leads),
        cmocka_unit_test(answers_name_the_partition_and_its_lsn),
        cmocka_unit_test(clients_may_ask_to_merge_themselves),
        cmocka_unit_test(clients_that_merge_are_told_to),
        cmocka_unit_test(a_query_that_was_begun_is_gone_on_with),
        cmocka_unit_test(what_has_no_plan_is_merged_for_everybody),
        cmocka_unit_test(what_the_planner_refuses_needs_a_key_or_extensions),
        cmocka_unit_test(clients_that_merge_walk_partition_by_partition),
        cmocka_unit_test(a_token_that_is_no_walk_is_refused),
        cmocka_unit_test(the_plan_of_a_refusal_is_text),
        cmocka_unit_test(other_ways_to_cross_partitions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
