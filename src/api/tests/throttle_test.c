/* throttle_test.c - requests are admitted while their partitions have something to spend, told how
 * long to wait when not, and pay what their answers say (I6). */
#include "api/tests/testing_int.h"

#define RU(units) ((Charge)(units)*100)

/* Two partitions of 400 a second each. "a" is in the second, "b" in the first. */
static const ProvisionRules RULES = {
    .partition_ru = 400, .fallback = {PROVISION_MANUAL, 800}, .is_enforced = true};
enum { COOL, HOT };
#define HOT_KEY  "['a']"
#define COOL_KEY "['b']"

static PartitionHandle *partition_at(FakeServer *server, size_t range)
{
    return container_handle_at(container_now(server), range);
}

static HistoryCount counted(FakeServer *server, size_t range)
{
    return history_total(handle_history(partition_at(server, range)));
}

static Charge used(FakeServer *server)
{
    return counted(server, COOL).charge + counted(server, HOT).charge;
}

/* Leaves the partition a debt of 'ms' milliseconds, or a credit if that is negative. */
static void spend(FakeServer *server, size_t range, int64_t ms)
{
    uint64_t now_us = clock_monotonic_us(&server->clock.clock);
    uint32_t wait_ms = 0;
    PartitionHandle *partition = partition_at(server, range);
    assert_int_equal(handle_admit(partition, (BudgetClass){0}, 0, now_us, &wait_ms),
                     BUDGET_ADMITTED);
    handle_charge(partition, (BudgetClass){0}, (Charge)(40000 + 40 * ms), now_us);
}

static void open_throttled(FakeServer *server)
{
    fake_server_open_with(server, NULL, &RULES);
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    for (int i = 0; i < 5; i++) {
        make_item(server, arena_format(&server->arena, "{'id':'%d','pk':'a'}", i).ptr);
        make_item(server, arena_format(&server->arena, "{'id':'%d','pk':'b'}", i).ptr);
    }
    fake_clock_advance(&server->clock, 10000000);
}

static void expect_throttled(FakeServer *server, const Ask *a, const char *wait_ms)
{
    Charge before = used(server);
    FakeAnswer answer = expect_status(server, a, 429);
    assert_int_equal(sub_status_of(&answer), 3200);
    expect_header(&answer, "x-ms-retry-after-ms", wait_ms);
    expect_header(&answer, "x-ms-request-charge", "0");
    expect_header(&answer, "x-ms-session-token", "");
    assert_slice(text_of(body_of(server, &answer), "code"), SLICE("TooManyRequests"));
    expect_holds(text_of(body_of(server, &answer), "message"), "Request rate is large");
    assert_int_equal(used(server), before);
}

#define QUERY                             \
    {                                     \
        "x-ms-documentdb-isquery", "True" \
    }
#define CROSS                                                \
    {                                                        \
        "x-ms-documentdb-query-enablecrosspartition", "True" \
    }
#define BATCH                                  \
    {                                          \
        "x-ms-cosmos-is-batch-request", "True" \
    }

/* Everything that touches items of a key, one row each. */
static const Ask OF_KEY[] = {
    {"GET", DOCS "/1", NULL, {PK(HOT_KEY)}},
    {"GET", DOCS "/missing", NULL, {PK(HOT_KEY)}},
    {"POST", DOCS, "{'id':'new','pk':'a'}"},
    {"POST", DOCS, "{'id':'1','pk':'a'}", {{"x-ms-documentdb-is-upsert", "True"}}},
    {"PUT", DOCS "/1", "{'id':'1','pk':'a','x':1}"},
    {"PATCH", DOCS "/1", "[{'op':'set','path':'/x','value':2}]", {PK(HOT_KEY)}},
    {"DELETE", DOCS "/1", NULL, {PK(HOT_KEY)}},
    {"GET", DOCS, NULL, {PK(HOT_KEY)}},
    {"POST", DOCS, "{'query':'SELECT * FROM c'}", {PK(HOT_KEY), QUERY}},
    {"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.pk=\\u0022a\\u0022'}", {QUERY}},
    {"POST",
     DOCS,
     "[{'operationType':'Create','resourceBody':{'id':'x','pk':'a'}}]",
     {PK(HOT_KEY), BATCH, {"x-ms-cosmos-batch-atomic", "True"}}},
    {"POST",
     DOCS,
     "[{'operationType':'Read','id':'2','partitionKey':'[\\u0022a\\u0022]'}]",
     {{"x-ms-documentdb-partitionkeyrangeid", "1"}, BATCH}},
    {"POST", "/dbs/db/colls/c/operations/partitionkeydelete", NULL, {PK(HOT_KEY)}},
};

static void keys_lie_where_the_tests_believe(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    for (size_t i = 0; i < 2; i++) {
        const char *key = i == HOT ? HOT_KEY : COOL_KEY;
        FakeAnswer answer = expect_status(&server, &(Ask){"GET", DOCS "/1", NULL, {PK(key)}}, 200);
        expect_header(&answer, "x-ms-documentdb-partitionkeyrangeid", i == HOT ? "1" : "0");
    }
}

/* Whatever it is a plan of: the first partition is asked. */
static void plans_are_limited_and_pay(void **state)
{
    (void)state;
    const Header is_plan = {"x-ms-cosmos-is-query-plan-request", "True"};
    const Ask rows[] = {
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", {QUERY, is_plan}},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", {QUERY, is_plan, PK(HOT_KEY)}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_throttled(&server);
        Charge before = used(&server);
        (void)expect_status(&server, &rows[i], 200);
        assert_int_equal(used(&server) - before, RU(1));
        fake_clock_advance(&server.clock, 10000000);
        spend(&server, COOL, 250);
        expect_throttled(&server, &rows[i], "251");
        fake_clock_advance(&server.clock, 251000);
        (void)expect_status(&server, &rows[i], 200);
    }
}

static void what_is_beyond_the_budget_waits_as_long_as_it_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(OF_KEY); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_throttled(&server);
        spend(&server, HOT, 250);
        expect_throttled(&server, &OF_KEY[i], "251");
        fake_clock_advance(&server.clock, 250000);
        expect_throttled(&server, &OF_KEY[i], "1");
        fake_clock_advance(&server.clock, 1000);
        FakeAnswer answer = ask(&server, &OF_KEY[i]);
        if (answer.status == 429)
            fail_msg("%s %s: turned away after the wait", OF_KEY[i].method, OF_KEY[i].path);
        assert_int_equal(counted(&server, HOT).throttled, 2);
        assert_int_equal(counted(&server, COOL).throttled, 0);
    }
}

static Charge charge_in(const FakeAnswer *answer)
{
    Slice text = fake_header(answer, "x-ms-request-charge");
    uint64_t whole = 0;
    uint64_t part = 0;
    Slice units = slice_cut(&text, '.');
    assert_true(slice_to_u64(units, &whole));
    if (text.len > 0)
        assert_true(slice_to_u64(text, &part));
    return whole * 100 + (text.len == 1 ? part * 10 : part);
}

static void partitions_pay_what_answers_say(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    const Ask wide[] = {
        {"GET", DOCS},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", {QUERY, CROSS}},
        {"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.pk = 1 AND c.pk = 2'}", {QUERY}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(OF_KEY) + ARRAY_COUNT(wide); i++) {
        const Ask *a = i < ARRAY_COUNT(OF_KEY) ? &OF_KEY[i] : &wide[i - ARRAY_COUNT(OF_KEY)];
        fake_clock_advance(&server.clock, 10000000);
        Charge before = used(&server);
        Charge cool = counted(&server, COOL).charge;
        FakeAnswer answer = ask(&server, a);
        assert_true(charge_in(&answer) > 0);
        assert_int_equal(used(&server) - before, charge_in(&answer));
        if (i < ARRAY_COUNT(OF_KEY))
            assert_int_equal(counted(&server, COOL).charge, cool);
    }
}

static void a_hot_partition_does_not_hold_up_a_cool_one(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    spend(&server, HOT, 60000);
    const Ask cool[] = {
        {"GET", DOCS "/1", NULL, {PK(COOL_KEY)}},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", {PK(COOL_KEY), QUERY}},
        {"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.pk=\\u0022b\\u0022'}", {QUERY}},
        {"GET", DOCS, NULL, {PK(COOL_KEY)}},
        {"GET", DOCS, NULL, {{"x-ms-documentdb-partitionkeyrangeid", "0"}}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cool); i++)
        (void)expect_status(&server, &cool[i], 200);
    /* A query over both needs both. */
    expect_throttled(&server, &(Ask){"POST", DOCS, "{'query':'SELECT * FROM c'}", {QUERY, CROSS}},
                     "60001");
}

static void a_query_that_is_read_on_a_worker_is_turned_away_there(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    spend(&server, HOT, 1000);
    Slice padding = slice_make(arena_alloc(&server.arena, 5000), 5000);
    memset(UNCONST(char, padding.ptr), ' ', padding.len);
    for (int i = 0; i < 2; i++) {
        const char *text = arena_format(&server.arena,
                                        "{'query':'SELECT * FROM c %.*s WHERE c.pk ="
                                        " \\u0022%c\\u0022'}",
                                        SLICE_ARG(padding), i == HOT ? 'a' : 'b')
                               .ptr;
        Ask query = {"POST", DOCS, text, {QUERY, CROSS}};
        if (i == HOT)
            expect_throttled(&server, &query, "1001");
        else
            (void)expect_status(&server, &query, 200);
    }
}

/* A list goes as far as it can, and the next page waits. */
static void a_list_ends_before_a_partition_that_has_nothing_left(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    spend(&server, HOT, 1000);
    FakeAnswer first = expect_status(&server, &(Ask){"GET", DOCS}, 200);
    expect_header(&first, "x-ms-item-count", "5");
    Slice token = fake_header(&first, "x-ms-continuation");
    assert_true(token.len > 0);
    Ask next = {"GET", DOCS, NULL, {{"x-ms-continuation", arena_cstr(&server.arena, token)}}};
    expect_throttled(&server, &next, "1001");
    assert_int_equal(counted(&server, HOT).throttled, 1);
    fake_clock_advance(&server.clock, 1001000);
    FakeAnswer second = expect_status(&server, &next, 200);
    expect_header(&second, "x-ms-item-count", "5");
    assert_int_equal(fake_header(&second, "x-ms-continuation").len, 0);
}

static void of_bulk_as_much_is_done_as_there_is_something_left_for(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    AUTO(buf_done) Buf body;
    buf_init(&body, 64 << 10);
    for (int i = 0; i < 100; i++)
        buf_format(&body,
                   "%s{'operationType':'Create','partitionKey':'[\\u0022a\\u0022]',"
                   "'resourceBody':{'id':'bulk %d','pk':'a'}}",
                   i == 0 ? "[" : ",", i);
    buf_byte(&body, ']');
    const char *text = arena_cstr(&server.arena, buf_view(&body));
    Charge before = used(&server);
    FakeAnswer answer = expect_status(
        &server, &(Ask){"POST", DOCS, text, {{"x-ms-documentdb-partitionkeyrangeid", "1"}, BATCH}},
        207);
    Json results = body_of(&server, &answer);
    assert_int_equal(json_count(results), 100);
    size_t done = 0;
    for (size_t i = 0; i < 100; i++) {
        Json result = json_at(results, i);
        int64_t status = 0;
        assert_true(json_to_i64(json_get(result, SLICE("statusCode")), &status));
        if (status == 201 && done == i) {
            done++;
            continue;
        }
        int64_t sub = 0;
        int64_t wait_ms = 0;
        assert_int_equal(status, 429);
        assert_true(json_to_i64(json_get(result, SLICE("subStatusCode")), &sub));
        assert_true(json_to_i64(json_get(result, SLICE("retryAfterMilliseconds")), &wait_ms));
        assert_int_equal(sub, 3200);
        assert_in_range(wait_ms, 1, 20);
        assert_true(json_number(json_get(result, SLICE("requestCharge"))) == 0);
    }
    assert_int_equal(done, 81); /* each takes 4.95 at least */
    assert_int_equal(counted(&server, HOT).throttled, 1);
    assert_int_equal(used(&server) - before, charge_in(&answer));
    FakeAnswer count =
        expect_status(&server, &(Ask){"GET", "/dbs/db/colls/c/docs", NULL, {PK(COOL_KEY)}}, 200);
    expect_header(&count, "x-ms-item-count", "5");
}

static void the_catalogue_is_not_limited(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    spend(&server, HOT, 60000);
    spend(&server, COOL, 60000);
    const Ask free[] = {
        {"GET", "/dbs/db"},
        {"GET", "/dbs/db/colls/c"},
        {"GET", "/dbs/db/colls/c/pkranges"},
        {"GET", "/offers"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(free); i++)
        (void)expect_status(&server, &free[i], 200);
}

static void low_priority_gives_way(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    Ask low = {"GET", DOCS "/1", NULL, {PK(HOT_KEY), {"x-ms-cosmos-priority-level", "Low"}}};
    Ask high = {"GET", DOCS "/1", NULL, {PK(HOT_KEY), {"x-ms-cosmos-priority-level", "high"}}};
    (void)expect_status(&server, &low, 200);
    fake_clock_advance(&server.clock, 1000000);
    /* 50 ms of credit are left: enough for the one, not for the other. */
    spend(&server, HOT, -50);
    expect_throttled(&server, &low, "51");
    (void)expect_status(&server, &high, 200);
    fake_clock_advance(&server.clock, 60000);
    (void)expect_status(&server, &low, 200);
}

static void a_bucket_is_throttled_alone(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    BudgetTerms terms = {.share = RU(400), .is_enforced = true, .bucket_percent = {0, 10}};
    handle_set_terms(partition_at(&server, HOT), &terms, clock_monotonic_us(&server.clock.clock));
    Ask of_bucket = {"GET", DOCS "/1", NULL, {PK(HOT_KEY), {"x-ms-cosmos-throughput-bucket", "2"}}};
    Ask of_none = {"GET", DOCS "/1", NULL, {PK(HOT_KEY)}};
    int admitted = 0;
    FakeAnswer answer = ask(&server, &of_bucket);
    for (; answer.status == 200; answer = ask(&server, &of_bucket))
        admitted++;
    assert_int_equal(admitted, 40);
    assert_int_equal(answer.status, 429);
    assert_int_equal(sub_status_of(&answer), 3212);
    expect_header(&answer, "x-ms-retry-after-ms", "1");
    (void)expect_status(&server, &of_none, 200);
    fake_clock_advance(&server.clock, 1000);
    (void)expect_status(&server, &of_bucket, 200);
}

static void a_class_that_cannot_be_understood_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_throttled(&server);
    static const Header rows[] = {
        {"x-ms-cosmos-priority-level", "Medium"}, {"x-ms-cosmos-throughput-bucket", "0"},
        {"x-ms-cosmos-throughput-bucket", "6"},   {"x-ms-cosmos-throughput-bucket", "x"},
        {"x-ms-cosmos-throughput-bucket", "-1"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        (void)expect_status(&server, &(Ask){"GET", DOCS "/1", NULL, {PK(HOT_KEY), rows[i]}}, 400);
        (void)expect_status(&server, &(Ask){"GET", DOCS, NULL, {rows[i]}}, 400);
        (void)expect_status(&server, &(Ask){"POST", DOCS, "{'id':'n','pk':'a'}", {rows[i]}}, 400);
    }
}

static void without_enforcement_nobody_is_turned_away(void **state)
{
    (void)state;
    ProvisionRules rules = RULES;
    rules.is_enforced = false;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open_with(&server, NULL, &rules);
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    make_item(&server, "{'id':'1','pk':'a'}");
    spend(&server, HOT, 60000);
    Charge before = used(&server);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", DOCS "/1", NULL, {PK(HOT_KEY)}}, 200);
    assert_int_equal(used(&server) - before, charge_in(&answer));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_lie_where_the_tests_believe),
        cmocka_unit_test(what_is_beyond_the_budget_waits_as_long_as_it_is_told),
        cmocka_unit_test(plans_are_limited_and_pay),
        cmocka_unit_test(partitions_pay_what_answers_say),
        cmocka_unit_test(a_hot_partition_does_not_hold_up_a_cool_one),
        cmocka_unit_test(a_query_that_is_read_on_a_worker_is_turned_away_there),
        cmocka_unit_test(a_list_ends_before_a_partition_that_has_nothing_left),
        cmocka_unit_test(of_bulk_as_much_is_done_as_there_is_something_left_for),
        cmocka_unit_test(the_catalogue_is_not_limited),
        cmocka_unit_test(low_priority_gives_way),
        cmocka_unit_test(a_bucket_is_throttled_alone),
        cmocka_unit_test(a_class_that_cannot_be_understood_is_refused),
        cmocka_unit_test(without_enforcement_nobody_is_turned_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
