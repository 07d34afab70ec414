/* orrery_test.c - what is shown of partitions agrees with the answers to requests; which keys may
 * see it, and what is refused. */
#include "api/core/usage_int.h"
#include "api/tests/testing_int.h"

/* Two partitions of 400 a second each. "a" is in the second, "b" in the first. */
static const ProvisionRules RULES = {
    .partition_ru = 400, .fallback = {PROVISION_MANUAL, 800}, .is_enforced = true};
#define HOT_KEY  "['a']"
#define COOL_KEY "['b']"
#define VIEW     "/_orrery/dbs/db/colls/c/"

static void open_two(FakeServer *server)
{
    fake_server_open_with(server, NULL, &RULES);
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
}

static void advance_s(FakeServer *server, uint64_t s)
{
    fake_clock_advance(&server->clock, s * 1000000);
}

/* The charge of the answer, in hundredths. */
static Charge charge_of(const FakeAnswer *answer)
{
    double ru = 0;
    assert_true(json_number_from_text(fake_header(answer, "x-ms-request-charge"), &ru));
    return (Charge)(ru * 100 + 0.5);
}

static Charge pay(FakeServer *server, const Ask *a, int status)
{
    FakeAnswer answer = expect_status(server, a, status);
    return charge_of(&answer);
}

static Json view(FakeServer *server, const char *what)
{
    FakeAnswer answer = expect_status(
        server, &(Ask){"GET", arena_format(&server->arena, VIEW "%s", what).ptr}, 200);
    expect_header(&answer, "content-type", "application/json");
    expect_header(&answer, "x-ms-request-charge", "0");
    return body_of(server, &answer);
}

/* The number at a path such as "ranges.1.ru.total", in hundredths; -1 if there is none. */
static int64_t number_at(Json value, const char *path)
{
    Slice rest = slice_from_cstr(path);
    while (rest.ptr != NULL) {
        Slice name = slice_cut(&rest, '.');
        uint64_t index = 0;
        value = slice_to_u64(name, &index) ? json_at(value, index) : json_get(value, name);
    }
    return json_is(value, JSON_NUMBER) ? (int64_t)(json_number(value) * 100 + 0.5) : -1;
}

static Slice text_at(Json value, const char *list, size_t index, const char *name)
{
    Json found =
        json_get(json_at(json_get(value, slice_from_cstr(list)), index), slice_from_cstr(name));
    return json_is(found, JSON_STRING) ? json_string(found) : SLICE_EMPTY;
}

#define QUERY                             \
    {                                     \
        "x-ms-documentdb-isquery", "True" \
    }

/* Each range has paid for its own requests, and for a part of those of both. */
static Json expect_layout(FakeServer *server, const Charge paid[2], Charge both, size_t requests)
{
    Json layout = view(server, "layout");
    int64_t cool = number_at(layout, "ranges.0.ru.total");
    int64_t hot = number_at(layout, "ranges.1.ru.total");
    assert_int_equal(cool + hot, paid[0] + paid[1] + both);
    assert_int_equal(number_at(layout, "totals.ru.total"), cool + hot);
    assert_true(cool > (int64_t)paid[0]);
    assert_true(hot > (int64_t)paid[1]);
    assert_int_equal(number_at(layout, "totals.requests.total"), (int64_t)requests * 100);
    assert_int_equal(number_at(layout, "totals.throttled.total"), 0);
    assert_int_equal(number_at(layout, "totals.ru.lastMinute"), cool + hot);
    return layout;
}

/* The logical partitions with the most work, and what each paid. */
static void expect_top(FakeServer *server, const Charge keys[2], int64_t total)
{
    Json top = view(server, "top");
    assert_slice(text_at(top, "rows", 0, "key"), SLICE("[\"a\"]"));
    assert_slice(text_at(top, "rows", 0, "range"), SLICE("1"));
    assert_slice(text_at(top, "rows", 1, "key"), SLICE("[\"b\"]"));
    assert_int_equal(number_at(top, "rows.0.amount"), keys[1]);
    assert_int_equal(number_at(top, "rows.0.amountMax"), keys[1]);
    assert_int_equal(number_at(top, "rows.1.amount"), keys[0]);
    assert_int_equal(number_at(top, "total"), total);
    assert_int_equal(json_count(json_get(top, SLICE("rows"))), 2);
}

/* The seconds of range 1 add up to 'total'. */
static void expect_history(FakeServer *server, int64_t total)
{
    Json history = view(server, "history");
    Json seconds = json_get(json_at(json_get(history, SLICE("ranges")), 1), SLICE("ru"));
    int64_t sum = 0;
    for (JsonIter it = json_iter(seconds); json_next(&it);)
        sum += (int64_t)(json_number(it.value) * 100 + 0.5);
    assert_int_equal(sum, total);
    assert_int_equal(json_count(seconds), 300);
}

/* Every way to ask for items is counted where it was charged, and by key where it has one. */
static void what_is_shown_is_what_requests_were_told(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    static const struct {
        Ask ask;
        int status;
        int range; /* the range that pays; -1 if both do */
        bool has_key;
    } rows[] = {
        {{"POST", DOCS, "{'id':'1','pk':'a','n':1}"}, 201, 1, true},
        {{"POST", DOCS, "{'id':'1','pk':'b'}"}, 201, 0, true},
        {{"POST", DOCS, "{'id':'1','pk':'b'}"}, 409, 0, true},
        {{"PUT", DOCS "/1", "{'id':'1','pk':'a','n':2}", {PK(HOT_KEY)}}, 200, 1, true},
        {{"PATCH", DOCS "/1", "{'operations':[{'op':'add','path':'/m','value':2}]}", {PK(HOT_KEY)}},
         200,
         1,
         true},
        {{"GET", DOCS "/1", NULL, {PK(HOT_KEY)}}, 200, 1, true},
        {{"GET", DOCS "/2", NULL, {PK(HOT_KEY)}}, 404, 1, true},
        {{"GET", DOCS "/1", NULL, {PK(HOT_KEY), {"if-none-match", "*"}}}, 304, 1, true},
        {{"GET", DOCS, NULL, {PK(HOT_KEY)}}, 200, 1, true},
        {{"GET", DOCS}, 200, -1, false},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}", {PK(COOL_KEY), QUERY}}, 200, 0, true},
        {{"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.pk = \\'a\\''}", {QUERY}}, 200, 1, true},
        {{"POST",
          DOCS,
          "{'query':'SELECT * FROM c'}",
          {{"x-ms-documentdb-query-enablecrosspartition", "True"}, QUERY}},
         200,
         -1,
         false},
        {{"POST",
          DOCS,
          "[{'operationType':'Read','id':'1'},{'operationType':'Read','id':'2'}]",
          {PK(HOT_KEY), {"x-ms-cosmos-is-batch-request", "True"}}},
         207,
         1,
         true},
        {{"POST",
          DOCS,
          "[{'operationType':'Read','id':'1','partitionKey':'[\\'a\\']'}]",
          {{"x-ms-documentdb-partitionkeyrangeid", "1"}, {"x-ms-cosmos-is-batch-request", "True"}}},
         200,
         1,
         true},
        {{"DELETE", DOCS "/1", NULL, {PK(COOL_KEY)}}, 204, 0, true},
        {{"POST", "/dbs/db/colls/c/operations/partitionkeydelete", NULL, {PK(HOT_KEY)}},
         200,
         1,
         true},
    };
    Charge paid[2] = {0};
    Charge both = 0;
    Charge keys[2] = {0};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Charge charge = pay(&server, &rows[i].ask, rows[i].status);
        assert_true(charge > 0);
        if (rows[i].range < 0)
            both += charge;
        else
            paid[rows[i].range] += charge;
        if (rows[i].has_key)
            keys[rows[i].range] += charge;
        advance_s(&server, 1); /* nothing is throttled */
    }
    Json layout = expect_layout(&server, paid, both, ARRAY_COUNT(rows) + 2); /* two of both */
    expect_top(&server, keys, number_at(layout, "totals.ru.total"));
    expect_history(&server, number_at(layout, "ranges.1.ru.total"));
}

static void throttled_requests_are_seen_where_they_were_turned_away(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    handle_charge(container_handle_at(container_now(&server), 1), (BudgetClass){0}, 100000,
                  clock_monotonic_us(&server.clock.clock));
    static const Ask turned_away[] = {
        {"GET", DOCS "/1", NULL, {PK(HOT_KEY)}},
        {"POST", DOCS, "{'id':'2','pk':'a'}"},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", {PK(HOT_KEY), QUERY}},
        {"POST",
         DOCS,
         "{'query':'SELECT * FROM c'}",
         {{"x-ms-documentdb-query-enablecrosspartition", "True"}, QUERY}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(turned_away); i++)
        (void)expect_status(&server, &turned_away[i], 429);
    (void)expect_status(&server, &(Ask){"GET", DOCS "/1", NULL, {PK(COOL_KEY)}}, 404);
    advance_s(&server, 1);
    Json layout = view(&server, "layout");
    assert_int_equal(number_at(layout, "ranges.0.throttled.total"), 0);
    assert_int_equal(number_at(layout, "ranges.1.throttled.total"), 400);
    assert_int_equal(number_at(layout, "ranges.1.throttled.lastMinute"), 400);
    assert_int_equal(number_at(layout, "ranges.1.requests.total"), 500);
    assert_int_equal(number_at(layout, "ranges.1.burstCredit"), 0);
    Json top = view(&server, "top?by=throttled");
    assert_slice(text_at(top, "rows", 0, "key"), SLICE("[\"a\"]"));
    assert_int_equal(number_at(top, "rows.0.amount"), 300); /* one had no key */
    assert_int_equal(number_at(top, "rows.0.share"), 75);
    assert_int_equal(number_at(top, "total"), 400);
    assert_int_equal(json_count(json_get(top, SLICE("rows"))), 1);
}

static void consumption_is_the_busiest_second_of_the_last_minute(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    PartitionHandle *partition = container_handle_at(container_now(&server), 0);
    uint64_t now_s = FAKE_BEGIN_S;
    static const Charge charges[] = {10000, 30000, 20000};
    for (size_t i = 0; i < ARRAY_COUNT(charges); i++)
        handle_note(partition, &server.histories, now_s + i, HISTORY_READ,
                    (HistoryCount){charges[i], 1, 0});
    advance_s(&server, 3);
    Json layout = view(&server, "layout");
    assert_int_equal(number_at(layout, "ranges.0.normalizedConsumption"), 7500);
    assert_int_equal(number_at(layout, "ranges.0.ru.allotted"), 40000);
    assert_int_equal(number_at(layout, "ranges.0.ru.lastSecond"), 20000);
    assert_int_equal(number_at(layout, "ranges.0.ru.last10Seconds"), 60000);
    assert_int_equal(number_at(layout, "totals.ru.allotted"), 80000);
    advance_s(&server, 58);
    assert_int_equal(number_at(view(&server, "layout"), "ranges.0.normalizedConsumption"), 7500);
    advance_s(&server, 1);
    assert_int_equal(number_at(view(&server, "layout"), "ranges.0.normalizedConsumption"), 5000);
    advance_s(&server, 60);
    layout = view(&server, "layout");
    assert_int_equal(number_at(layout, "ranges.0.normalizedConsumption"), 0);
    assert_int_equal(number_at(layout, "ranges.0.ru.lastMinute"), 0);
    assert_int_equal(number_at(layout, "ranges.0.ru.total"), 60000);
}

/* Containers that share a budget use it up together, and each is shown what itself did. */
static void shared_throughput_is_consumed_by_all_containers(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open_with(&server, NULL, &RULES);
    (void)expect_status(
        &server, &(Ask){"POST", "/dbs", "{'id':'db'}", {{"x-ms-offer-throughput", "400"}}}, 201);
    (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    (void)expect_status(
        &server, &(Ask){"POST", "/dbs/db/colls", "{'id':'other','partitionKey':{'paths':['/pk']}}"},
        201);
    make_item(&server, "{'id':'1','pk':'a'}");
    Ask other = {"POST", "/dbs/db/colls/other/docs", "{'id':'1','pk':'a'}"};
    Charge charge = pay(&server, &other, 201);
    advance_s(&server, 1);
    Json layout = view(&server, "layout");
    assert_int_equal(number_at(layout, "ranges.0.ru.total"), charge);
    assert_int_equal(number_at(layout, "ranges.0.normalizedConsumption"), 2 * charge * 100 / 400);
    assert_true(json_bool(json_get(json_get(layout, SLICE("throughput")), SLICE("isShared"))));
}

static void the_layout_tells_sizes_and_settings(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    for (int i = 0; i < 40; i++)
        make_item(&server, arena_format(&server.arena, "{'id':'%d','pk':%d}", i, i % 10).ptr);
    Json layout = view(&server, "layout");
    assert_slice(text_of(layout, "database"), SLICE("db"));
    assert_slice(text_of(layout, "container"), SLICE("c"));
    assert_int_equal(number_at(layout, "time"), (int64_t)FAKE_BEGIN_S * 100);
    assert_int_equal(number_at(layout, "totals.items"), 4000);
    assert_int_equal(number_at(layout, "totals.logicalPartitions"), 1000);
    assert_true(
        json_bool(json_get(json_get(layout, SLICE("totals")), SLICE("logicalPartitionsExact"))));
    assert_true(number_at(layout, "totals.bytes") > 4000 * 50);
    assert_int_equal(number_at(layout, "ranges.0.items") + number_at(layout, "ranges.1.items"),
                     4000);
    assert_slice(text_at(layout, "ranges", 0, "min"), SLICE(""));
    assert_slice(text_at(layout, "ranges", 1, "max"), SLICE("FF"));
    assert_slice(text_at(layout, "ranges", 0, "max"), text_at(layout, "ranges", 1, "min"));
    assert_slice(text_of(json_get(layout, SLICE("throughput")), "mode"), SLICE("manual"));
    assert_int_equal(number_at(layout, "throughput.ru"), 80000);

    /* What was looked up stays for ten seconds. */
    make_item(&server, "{'id':'x','pk':'another'}");
    assert_int_equal(number_at(view(&server, "layout"), "totals.logicalPartitions"), 1000);
    advance_s(&server, 10);
    assert_int_equal(number_at(view(&server, "layout"), "totals.logicalPartitions"), 1100);
}

static void the_largest_keys_are_found(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    for (int i = 0; i < 6; i++)
        make_item(&server, arena_format(&server.arena, "{'id':'%d','pk':'a'}", i).ptr);
    make_item(&server, "{'id':'1','pk':'b','text':'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}");
    make_item(&server, "{'id':'1'}");
    Json top = view(&server, "top?by=size&count=2");
    assert_int_equal(json_count(json_get(top, SLICE("rows"))), 2);
    assert_slice(text_at(top, "rows", 0, "key"), SLICE("[\"a\"]"));
    assert_slice(text_at(top, "rows", 1, "key"), SLICE("[\"b\"]"));
    assert_int_equal(number_at(top, "rows.0.items"), 600);
    assert_true(number_at(top, "rows.0.amount") > number_at(top, "rows.1.amount"));
    assert_true(json_bool(json_get(top, SLICE("isComplete"))));
    Json layout = view(&server, "layout");
    assert_int_equal(number_at(top, "total"), number_at(layout, "totals.bytes"));
    top = view(&server, "top?by=size");
    assert_slice(text_at(top, "rows", 2, "key"), SLICE("[{}]"));
}

static void keys_are_shown_as_clients_send_them_and_cut_when_long(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    char name[400];
    memset(name, 'x', sizeof(name));
    memcpy(name + 98, "\xC3\xA9", 2); /* stands where it is cut */
    Slice body = arena_format(&server.arena, "{'id':'1','pk':'%.*s'}", (int)sizeof(name), name);
    make_item(&server, body.ptr);
    make_item(&server, "{'id':'1','pk':1.5}");
    make_item(&server, "{'id':'1','pk':null}");
    make_item(&server, "{'id':'1','pk':true}");
    make_item(&server, "{'id':'1'}");
    make_item(&server, "{'id':'1','pk':'\\u0007\\u200b'}");
    Json top = view(&server, "top?count=100");
    static const char *const expected[] = {"[1.5]", "[null]", "[true]", "[{}]",
                                           "[\"\\u0007\xE2\x80\x8B\"]"};
    size_t found = 0;
    size_t cut = 0;
    for (JsonIter it = json_iter(json_get(top, SLICE("rows"))); json_next(&it);) {
        Slice key = text_of(it.value, "key");
        for (size_t i = 0; i < ARRAY_COUNT(expected); i++)
            found += slice_equal(key, slice_from_cstr(expected[i])) ? 1 : 0;
        if (json_bool(json_get(it.value, SLICE("isCut")))) {
            cut++;
            assert_int_equal(key.len, 100);
            assert_true(slice_starts_with(key, SLICE("[\"xxxx")));
            assert_true(slice_ends_with(key, SLICE("xx\xC3\xA9") /* whole */) ||
                        slice_ends_with(key, SLICE("xx")));
        }
    }
    assert_int_equal(found, ARRAY_COUNT(expected));
    assert_int_equal(cut, 1);
}

static void containers_are_listed_with_the_busiest_first(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    (void)expect_status(
        &server, &(Ask){"POST", "/dbs/db/colls", "{'id':'idle','partitionKey':{'paths':['/pk']}}"},
        201);
    (void)expect_status(
        &server, &(Ask){"POST", "/dbs/db/colls", "{'id':'busy','partitionKey':{'paths':['/pk']}}"},
        201);
    Ask write = {"POST", "/dbs/db/colls/busy/docs", "{'id':'1','pk':'a'}"};
    Charge charge = pay(&server, &write, 201);
    advance_s(&server, 1);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/_orrery/containers"}, 200);
    Json list = body_of(&server, &answer);
    assert_slice(text_at(list, "containers", 0, "container"), SLICE("busy"));
    assert_slice(text_at(list, "containers", 1, "container"), SLICE("c"));
    assert_slice(text_at(list, "containers", 2, "container"), SLICE("idle"));
    assert_int_equal(number_at(list, "containers.0.ru.lastMinute"), charge);
    assert_int_equal(number_at(list, "containers.0.physicalPartitions"), 200);
    assert_int_equal(number_at(list, "count"), 300);
    answer = expect_status(&server, &(Ask){"GET", "/_orrery/containers?count=1"}, 200);
    assert_int_equal(json_count(json_get(body_of(&server, &answer), SLICE("containers"))), 1);
}

static void metrics_are_those_of_each_range(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'q\\''}"}, 201);
    (void)expect_status(&server, &(Ask){"POST", "/dbs/q%22/colls", CONTAINER}, 201);
    Charge charge = pay(&server, &(Ask){"POST", DOCS, "{'id':'1','pk':'a'}"}, 201);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/_orrery/metrics"}, 200);
    expect_header(&answer, "content-type", "text/plain; version=0.0.4");
    char text[CHARGE_TEXT_MAX];
    size_t len = charge_print(charge, text);
    expect_holds(answer.body,
                 arena_format(&server.arena,
                              "\norrery_partition_request_units_total{database=\"db\",container="
                              "\"c\",range=\"1\"} %.*s\n",
                              (int)len, text)
                     .ptr);
    expect_holds(answer.body, "# TYPE orrery_partition_request_units_total counter\n");
    expect_holds(answer.body,
                 "orrery_partition_items{database=\"db\",container=\"c\",range=\"1\"} 1\n");
    expect_holds(answer.body, "orrery_partition_allotted_request_units{database=\"db\",container="
                              "\"c\",range=\"0\"} 400\n");
    expect_holds(answer.body, "orrery_partition_requests_total{database=\"db\",container=\"c\","
                              "range=\"0\"} 0\n");
    expect_holds(answer.body, "orrery_partition_bytes{database=\"q\\\"\",container=\"c\"");
}

/* Of all ranges, sorted, as policies spell them. */
static void the_properties_of_the_index_are_listed(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    static const char *const before[] = {
        "\"paths\":[],\"isComplete\":true",
    };
    static const char *const after[] = {
        "\"database\":\"db\",\"container\":\"c\"",
        "\"paths\":[\"/\\\"first "
        "name\\\"\",\"/_ts\",\"/address\",\"/address/city\",\"/id\",\"/pk\","
        "\"/tags\",\"/tags/[]\"],\"isComplete\":true",
    };
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", VIEW "paths"}, 200);
    expect_holds(answer.body, before[0]);
    make_item(&server, "{'id':'1','pk':'a','address':{'city':'x'}}");
    make_item(&server, "{'id':'1','pk':'b','tags':['x'],'first name':1}");
    answer = expect_status(&server, &(Ask){"GET", VIEW "paths", .key = FAKE_READ_KEY}, 200);
    for (size_t i = 0; i < ARRAY_COUNT(after); i++)
        expect_holds(answer.body, after[i]);
}

/* Any key is accepted, but one is needed; unsigned only where clients cannot sign. */
static void a_key_is_needed_and_a_read_only_one_is_enough(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"GET", VIEW "layout", .key = FAKE_READ_KEY}, 200},
        {{"GET", VIEW "top", .key = FAKE_READ_KEY}, 200},
        {{"GET", VIEW "history", .key = FAKE_READ_KEY}, 200},
        {{"GET", "/_orrery/containers", .key = FAKE_READ_KEY}, 200},
        {{"GET", "/_orrery/metrics", .key = FAKE_READ_KEY}, 200},
        {{"HEAD", VIEW "layout", .key = FAKE_READ_KEY}, 200},
        {{"GET", VIEW "layout", .key = ""}, 401},
        {{"GET", VIEW "paths", .key = ""}, 401},
        {{"GET", VIEW "paths", .key = "d3Jvbmc="}, 401},
        {{"GET", "/_orrery/containers", .key = ""}, 401},
        {{"GET", "/_orrery/metrics", .key = ""}, 401},
        {{"GET", VIEW "layout", .key = "d3Jvbmc="}, 401},
        {{"GET", "/_orrery/dbs/none/colls/c/layout", .key = ""}, 401}, /* nothing is looked up */
        {{"GET", "/_orrery/metrics", NULL, {{"authorization", "Bearer " FAKE_KEY}}, .key = ""},
         200},
        {{"GET", "/_orrery/metrics", NULL, {{"authorization", "bearer " FAKE_READ_KEY}}, .key = ""},
         200},
        {{"GET", "/_orrery/metrics", NULL, {{"authorization", "Bearer d3Jvbmc="}}, .key = ""}, 401},
        {{"GET", "/_orrery/metrics", NULL, {{"authorization", "Bearer "}}, .key = ""}, 401},
        {{"GET", "/_orrery/metrics", NULL, {{"authorization", "Bearer %%%"}}, .key = ""}, 401},
        {{"GET", "/_orrery/containers", NULL, {{"authorization", "Bearer " FAKE_KEY}}, .key = ""},
         401},
        {{"GET", "/dbs/db", NULL, {{"authorization", "Bearer " FAKE_KEY}}, .key = ""}, 401},
    };
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)expect_status(&server, &rows[i].ask, rows[i].status);
}

static void what_cannot_be_asked_is_refused_with_what_can(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
        const char *says;
    } rows[] = {
        {{"POST", VIEW "layout"}, 405, "GET"},
        {{"DELETE", "/_orrery/containers"}, 405, "GET"},
        {{"GET", "/_orrery"}, 404, "/_orrery/containers"},
        {{"GET", "/_orrery/"}, 404, "/_orrery/containers"},
        {{"GET", "/_orrery/layout"}, 404, "/_orrery/containers"},
        {{"GET", "/_orrery/dbs/db/layout"}, 404, "/_orrery/containers"},
        {{"GET", "/_orrery/dbs/db/colls/layout"}, 404, "/_orrery/containers"},
        {{"GET", "/_orrery/dbs/db/colls/c/docs/layout"}, 404, "/_orrery/containers"},
        {{"GET", "/_orrery/dbs/db/colls/c/containers"}, 404, "/_orrery/containers"},
        {{"GET", VIEW "other"}, 404, "/_orrery/containers"},
        {{"GET", "/_orrery/dbs/db/colls/none/layout"}, 404, "no colls/none"},
        {{"GET", "/_orrery/dbs/none/colls/c/layout"}, 404, "dbs/none"},
        {{"GET", VIEW "layout?x=1"}, 400, "'x' is not a parameter of 'layout'"},
        {{"GET", VIEW "paths?count=1"}, 400, "'count' is not a parameter of 'paths'"},
        {{"POST", VIEW "paths"}, 405, "GET"},
        {{"GET", "/_orrery/dbs/db/colls/none/paths"}, 404, "no colls/none"},
        {{"GET", "/_orrery/paths"}, 404, "/_orrery/containers"},
        {{"GET", VIEW "top?by"}, 400, "'by' must be a value"},
        {{"GET", VIEW "top?by=%zz"}, 400, "'by' must be a value"},
        {{"GET", VIEW "top?by=cost"}, 400, "ru, throttled or size, not 'cost'"},
        {{"GET", VIEW "top?by=ru&by=size"}, 400, "given twice; there are by, count, minutes"},
        {{"GET", VIEW "top?count=0"}, 400, "from 1 to 100"},
        {{"GET", VIEW "top?count=101"}, 400, "from 1 to 100"},
        {{"GET", VIEW "top?count=-1"}, 400, "from 1 to 100"},
        {{"GET", VIEW "top?minutes=6"}, 400, "from 1 to 5"},
        {{"GET", VIEW "top?by=size&minutes=1"}, 400, "by=throttled"},
        {{"GET", VIEW "top?by=size&range=1"}, 400, "by=throttled"},
        {{"GET", VIEW "top?minutes=1&from=5"}, 400, "does not go with"},
        {{"GET", VIEW "top?from=5&to=5"}, 400, "they were 5 and 5"},
        {{"GET", VIEW "top?range=x"}, 400, "a whole number"},
        {{"GET", VIEW "history?range=-1"}, 400, "a whole number"},
        {{"GET", VIEW "history?operations=1"}, 400, "true or false, not '1'"},
        {{"GET", VIEW "history?grain=hour"}, 400, "second or 5min, not 'hour'"},
        {{"GET", VIEW "history?from=x"}, 400, "a whole number"},
        {{"GET", VIEW "history?from=10&to=9"}, 400, "they were 10 and 9"},
        {{"GET", VIEW "history?from=1&to=3602"}, 400, "at most 3600 seconds"},
        {{"GET", VIEW "history?grain=5min&from=0&to=604801"}, 400, "at most 604800 seconds"},
        {{"GET", "/_orrery/containers?count=10001"}, 400, "from 1 to 10000"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].status);
        expect_holds(text_of(body_of(&server, &answer), "message"), rows[i].says);
    }
    /* Like the others, but for one letter. */
    (void)expect_status(&server, &(Ask){"GET", "/_orreryx", .key = ""}, 404);
}

/* The object of that kind in a range's operations; JSON_UNDEFINED if there is none. */
static Json kind_in(Json history, size_t range, const char *kind)
{
    Json operations =
        json_get(json_at(json_get(history, SLICE("ranges")), range), SLICE("operations"));
    for (JsonIter it = json_iter(operations); json_next(&it);) {
        if (slice_equal(text_of(it.value, "kind"), slice_from_cstr(kind)))
            return it.value;
    }
    return json_get(history, SLICE("nothing"));
}

#define FEED                       \
    {                              \
        "a-im", "Incremental Feed" \
    }
#define UPSERT                              \
    {                                       \
        "x-ms-documentdb-is-upsert", "True" \
    }
#define BATCH                                  \
    {                                          \
        "x-ms-cosmos-is-batch-request", "True" \
    }

static void requests_are_told_by_their_kind(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
        const char *kind;
    } rows[] = {
        {{"POST", DOCS, "{'id':'1','pk':'a'}"}, 201, "create"},
        {{"POST", DOCS, "{'id':'1','pk':'a','n':1}", {UPSERT}}, 200, "upsert"},
        {{"PUT", DOCS "/1", "{'id':'1','pk':'a','n':2}", {PK(HOT_KEY)}}, 200, "replace"},
        {{"PATCH", DOCS "/1", "{'operations':[{'op':'add','path':'/m','value':2}]}", {PK(HOT_KEY)}},
         200,
         "patch"},
        {{"GET", DOCS "/1", NULL, {PK(HOT_KEY)}}, 200, "read"},
        {{"GET", DOCS, NULL, {PK(HOT_KEY)}}, 200, "list"},
        {{"GET", DOCS, NULL, {PK(HOT_KEY), FEED}}, 200, "changeFeed"},
        {{"POST", DOCS, "{'query':'SELECT * FROM c'}", {PK(HOT_KEY), QUERY}}, 200, "query"},
        {{"POST", DOCS, "[{'operationType':'Read','id':'1'}]", {PK(HOT_KEY), BATCH}}, 200, "batch"},
        {{"DELETE", DOCS "/1", NULL, {PK(HOT_KEY)}}, 204, "delete"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        int64_t charge = (int64_t)pay(&server, &rows[i].ask, rows[i].status);
        advance_s(&server, 1);
        Json kind = kind_in(view(&server, i % 2 == 0 ? "history?operations=true"
                                                     : "history?operations=true&range=1"),
                            i % 2 == 0 ? 1 : 0, rows[i].kind);
        assert_int_equal(number_at(kind, "ru.299"), charge);
        assert_int_equal(number_at(kind, "requests.299"), 100);
        assert_int_equal(number_at(kind, "throttled.299"), 0);
    }
    Ask purge = {"POST", "/dbs/db/colls/c/operations/partitionkeydelete", NULL, {PK(HOT_KEY)}};
    (void)expect_status(&server, &purge, 200);
    handle_charge(container_handle_at(container_now(&server), 1), (BudgetClass){0}, 100000,
                  clock_monotonic_us(&server.clock.clock));
    (void)expect_status(&server, &(Ask){"GET", DOCS "/1", NULL, {PK(HOT_KEY)}}, 429);
    advance_s(&server, 1);
    Json history = view(&server, "history?operations=true&range=1");
    assert_int_equal(json_count(json_get(history, SLICE("ranges"))), 1);
    assert_int_equal(number_at(kind_in(history, 0, "delete"), "requests.299"), 100);
    assert_int_equal(number_at(kind_in(history, 0, "read"), "throttled.299"), 100);
    assert_int_equal(number_at(kind_in(history, 0, "script"), "requests.299"), -1);
    assert_int_equal(
        json_count(json_get(
            json_at(json_get(view(&server, "history?operations=true"), SLICE("ranges")), 0),
            SLICE("operations"))),
        0);
    history = view(&server, "history?range=2");
    assert_int_equal(json_count(json_get(history, SLICE("ranges"))), 0);
}

static void history_tells_what_was_allotted_then(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    PartitionHandle *partition = container_handle_at(container_now(&server), 1);
    advance_s(&server, 10);
    handle_set_terms(partition, &(BudgetTerms){.share = 100000},
                     clock_monotonic_us(&server.clock.clock));
    advance_s(&server, 10);
    Json history = view(&server, "history?from=1699999990");
    assert_int_equal(number_at(history, "ranges.1.allotted.0"), 40000);
    assert_int_equal(number_at(history, "ranges.1.allotted.19"), 40000);
    assert_int_equal(number_at(history, "ranges.1.allotted.20"), 100000);
    assert_int_equal(number_at(history, "ranges.1.allotted.29"), 100000);
    assert_int_equal(number_at(history, "ranges.0.allotted.29"), 40000);
}

/* The keys of a range, in the minutes that a time lies in. */
static void keys_are_told_of_one_range_and_of_minutes_that_are_over(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    make_item(&server, "{'id':'1','pk':'b'}");
    advance_s(&server, 120);
    Ask other = {"POST", DOCS, "{'id':'2','pk':'b'}"};
    Charge charge = pay(&server, &other, 201);
    static const struct {
        const char *what;
        const char *keys; /* the first one; NULL if there are none */
        size_t count;
    } rows[] = {
        {"top", "[\"b\"]", 2},
        {"top?range=1", "[\"a\"]", 1},
        {"top?range=0", "[\"b\"]", 1},
        {"top?range=7", NULL, 0},
        {"top?from=1700000000&to=1700000001", NULL, 2},
        {"top?range=0&from=1700000000&to=1700000001", "[\"b\"]", 1},
        {"top?range=1&from=1700000120&to=1700000121", NULL, 0},
        {"top?from=1699990000&to=1699990001", NULL, 0},
        {"top?by=throttled&range=1", NULL, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json top = view(&server, rows[i].what);
        assert_int_equal(json_count(json_get(top, SLICE("rows"))), rows[i].count);
        if (rows[i].keys != NULL)
            assert_slice(text_at(top, "rows", 0, "key"), slice_from_cstr(rows[i].keys));
    }
    Json top = view(&server, "top?range=0&from=1700000120&to=1700000121");
    assert_int_equal(number_at(top, "total"), charge);
    assert_int_equal(number_at(top, "rows.0.amount"), charge);
    assert_int_equal(number_at(top, "from"), 1700000100ll * 100);
    assert_int_equal(number_at(top, "to"), 1700000160ll * 100);
}

static void history_is_cut_to_whole_slots(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        int64_t from, to;
        size_t count;
    } rows[] = {
        {"history", FAKE_BEGIN_S - 300, FAKE_BEGIN_S, 300},
        {"history?from=1699999990", 1699999990, FAKE_BEGIN_S, 10},
        {"history?from=1699999990&to=1700000001", 1699999990, 1700000001, 11},
        {"history?from=5&to=5", 5, 5, 0},
        {"history?grain=second&from=0&to=3600", 0, 3600, 3600},
        {"history?grain=5min", 1699913400, 1699999800, 288},
        {"history?grain=5min&from=1699999999&to=1700000001", 1699999800, 1700000100, 1},
    };
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json history = view(&server, rows[i].what);
        assert_int_equal(number_at(history, "from"), rows[i].from * 100);
        assert_int_equal(number_at(history, "to"), rows[i].to * 100);
        Json ranges = json_get(history, SLICE("ranges"));
        assert_int_equal(json_count(ranges), 2);
        static const char *const columns[] = {"ru", "requests", "throttled", "allotted"};
        for (size_t c = 0; c < ARRAY_COUNT(columns); c++)
            assert_int_equal(json_count(json_get(json_at(ranges, 1), slice_from_cstr(columns[c]))),
                             rows[i].count);
    }
}

static void without_statistics_nothing_is_counted_and_it_is_said(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server);
    server.api->options.histories = NULL;
    make_item(&server, "{'id':'1','pk':'a'}");
    Json layout = view(&server, "layout");
    assert_int_equal(number_at(layout, "totals.ru.total"), 0);
    assert_int_equal(number_at(layout, "totals.items"), 100);
    assert_false(json_bool(json_get(layout, SLICE("hasStatistics"))));
    static const char *const refused[] = {VIEW "top", VIEW "top?by=throttled", VIEW "history"};
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        FakeAnswer answer = expect_status(&server, &(Ask){"GET", refused[i]}, 400);
        expect_holds(text_of(body_of(&server, &answer), "message"), "--no-statistics");
    }
    (void)view(&server, "top?by=size");
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", "/_orrery/metrics"}, 200);
    assert_false(holds(answer.body, "orrery_partition_requests_total"));
    expect_holds(answer.body, "orrery_partition_items");
}

/* The container is deleted while the page is made; the page has what it needs. */
static void a_container_that_is_deleted_meanwhile_is_still_shown(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    Jam jam;
    open_two(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    jam_begin(&jam, &server, 0);
    FakeAnswer answer;
    FakeExchange *exchange = ask_only(&server, &(Ask){"GET", VIEW "layout"}, &answer);
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db/colls/c"}, 204);
    jam_end(&jam);
    fake_wait(&server, &answer);
    mem_free(exchange);
    assert_true(answer.status == 200 || answer.status >= 400);
    (void)expect_status(&server, &(Ask){"GET", VIEW "layout"}, 404);
}

static void workers_that_are_all_busy_are_an_error_and_no_hang(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    Jam jam;
    open_two(&server);
    jam_begin(&jam, &server, JAM_WAITING_MAX);
    (void)expect_status(&server, &(Ask){"GET", VIEW "layout"}, 503);
    jam_end(&jam);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_shown_is_what_requests_were_told),
        cmocka_unit_test(throttled_requests_are_seen_where_they_were_turned_away),
        cmocka_unit_test(consumption_is_the_busiest_second_of_the_last_minute),
        cmocka_unit_test(shared_throughput_is_consumed_by_all_containers),
        cmocka_unit_test(the_layout_tells_sizes_and_settings),
        cmocka_unit_test(the_largest_keys_are_found),
        cmocka_unit_test(keys_are_shown_as_clients_send_them_and_cut_when_long),
        cmocka_unit_test(containers_are_listed_with_the_busiest_first),
        cmocka_unit_test(metrics_are_those_of_each_range),
        cmocka_unit_test(the_properties_of_the_index_are_listed),
        cmocka_unit_test(a_key_is_needed_and_a_read_only_one_is_enough),
        cmocka_unit_test(what_cannot_be_asked_is_refused_with_what_can),
        cmocka_unit_test(requests_are_told_by_their_kind),
        cmocka_unit_test(history_tells_what_was_allotted_then),
        cmocka_unit_test(keys_are_told_of_one_range_and_of_minutes_that_are_over),
        cmocka_unit_test(history_is_cut_to_whole_slots),
        cmocka_unit_test(without_statistics_nothing_is_counted_and_it_is_said),
        cmocka_unit_test(a_container_that_is_deleted_meanwhile_is_still_shown),
        cmocka_unit_test(workers_that_are_all_busy_are_an_error_and_no_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
