/* chaos_test.c - faults hit the requests that they were asked for, as often as asked, and no
 * others; splits and merges on request, and what is shown of them. */
#include "api/admin/chaos_int.h"

#include "api/tests/testing_int.h"

#include <time.h>

#define BYTES_16  "00112233445566778899AABBCCDDEEFF"
#define BYTES_64  BYTES_16 BYTES_16 BYTES_16 BYTES_16
#define BYTES_256 BYTES_64 BYTES_64 BYTES_64 BYTES_64
#define CHAOS     "/_orrery/chaos"
#define OF_C      CHAOS "/dbs/db/colls/c/"
#define READ(id)                  \
    {                             \
        "GET", DOCS "/" id, NULL, \
        {                         \
            PK("['a']")           \
        }                         \
    }

/* Two partitions of 400 a second. "a" is in the second, "b" in the first. */
static const ProvisionRules RULES = {.partition_ru = 400, .fallback = {PROVISION_MANUAL, 800}};
static const ApiOptions WITH_CHAOS = {.has_chaos = true};

static void open_chaos(FakeServer *server)
{
    fake_server_open_with(server, &WITH_CHAOS, &RULES);
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    make_item(server, "{'id':'1','pk':'a'}");
    make_item(server, "{'id':'1','pk':'b'}");
}

static FakeAnswer post(FakeServer *server, const char *what, const char *body, int status)
{
    const char *path = arena_format(&server->arena, OF_C "%s", what).ptr;
    return expect_status(server, &(Ask){"POST", path, body}, status);
}

static void only_a_master_key_of_a_server_with_chaos_asks_for_trouble(void **state)
{
    (void)state;
    static const Ask rows[] = {
        {"GET", CHAOS},
        {"DELETE", CHAOS},
        {"POST", OF_C "split"},
        {"POST", OF_C "merge"},
        {"POST", OF_C "throttle", "{'range':'0','seconds':1}"},
        {"POST", OF_C "faults", "{'status':503}"},
        {"POST", OF_C "session", "{'lag':1}"},
    };
    AUTO(fake_server_close) FakeServer without;
    open_with_container(&without);
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = rows[i];
        FakeAnswer answer = expect_status(&without, &a, 403);
        expect_holds(answer.body, "--enable-chaos");
        a.key = FAKE_READ_KEY;
        (void)expect_status(&server, &a, 401);
        a.key = "";
        (void)expect_status(&server, &a, 401);
    }
    FakeAnswer armed = expect_status(&server, &(Ask){"GET", CHAOS}, 200);
    assert_slice(armed.body, SLICE("{\"rules\":[]}"));
}

static void what_is_not_understood_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    static const struct {
        const char *method, *path, *body;
        int status;
        const char *text;
    } rows[] = {
        {"POST", CHAOS, "", 405, "GET and DELETE"},
        {"GET", OF_C "split", "", 405, "POST is"},
        {"POST", OF_C "explode", "", 404, "split, merge, throttle"},
        {"POST", CHAOS "/dbs/db/split", "{}", 404, "split, merge, throttle"},
        {"POST", CHAOS "/dbs/db/colls/x/faults", "{'status':503}", 404, "colls/x"},
        {"POST", OF_C "faults", "[]", 400, "JSON object"},
        {"POST", OF_C "faults", "{'staus':503}", 400, "'staus'"},
        {"POST", OF_C "faults", "{}", 400, "'delayMs'"},
        {"POST", OF_C "faults", "{'status':200}", 400, "'status'"},
        {"POST", OF_C "faults", "{'status':599}", 400, "'status'"},
        {"POST", OF_C "faults", "{'status':'503'}", 400, "'status'"},
        {"POST", OF_C "faults", "{'status':503,'kind':'all'}", 400, "'any', 'read'"},
        {"POST", OF_C "faults", "{'status':503,'count':0}", 400, "'count'"},
        {"POST", OF_C "faults", "{'status':503,'percent':101}", 400, "1 to 100"},
        {"POST", OF_C "faults", "{'status':503,'seed':-1}", 400, "'seed'"},
        {"POST", OF_C "faults", "{'delayMs':30001}", 400, "30000"},
        {"POST", OF_C "faults", "{'delayMs':1,'substatus':3}", 400, "go with a 'status'"},
        {"POST", OF_C "throttle", "{'seconds':1}", 400, "named by its id"},
        {"POST", OF_C "throttle", "{'range':0,'seconds':1}", 400, "named by its id"},
        {"POST", OF_C "throttle", "{'range':'7','seconds':1}", 410, "'7'"},
        {"POST", OF_C "throttle", "{'range':'0'}", 400, "either"},
        {"POST", OF_C "throttle", "{'range':'0','seconds':1,'requests':1}", 400, "either"},
        {"POST", OF_C "session", "{'range':'0'}", 400, "'lag'"},
        {"POST", OF_C "split", "{'range':'0','parts':1}", 400, "2 to 64"},
        {"POST", OF_C "split", "{'range':'0','by':'luck'}", 400, "'size', 'hash', 'load'"},
        {"POST", OF_C "split", "{'range':'0','at':'0g'}", 400, "hexadecimal"},
        {"POST", OF_C "split", "{'range':'0','at':'FF'}", 400, "hexadecimal"},
        {"POST", OF_C "split", "{'range':'0','at':'10" BYTES_256 "'}", 400, "hexadecimal"},
        {"POST", OF_C "split", "{'range':'0','at':'10','parts':3}", 400, "two parts"},
        {"POST", OF_C "merge", "{}", 400, "2 to 64"},
        {"POST", OF_C "merge", "{'ranges':['0']}", 400, "2 to 64"},
        {"POST", OF_C "merge", "{'ranges':['0','0']}", 400, "neighbours"},
        {"POST", OF_C "merge", "{'ranges':['0','5']}", 410, "'5'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(
            &server, &(Ask){rows[i].method, rows[i].path, rows[i].body}, rows[i].status);
        expect_holds(answer.body, rows[i].text);
    }
    FakeAnswer armed = expect_status(&server, &(Ask){"GET", CHAOS}, 200);
    assert_slice(armed.body, SLICE("{\"rules\":[]}"));

    (void)expect_status(
        &server, &(Ask){"POST", "/dbs/db/colls", "{'id':'old'}", {{"x-ms-version", "2015-08-06"}}},
        201);
    FakeAnswer answer =
        expect_status(&server, &(Ask){"POST", CHAOS "/dbs/db/colls/old/split", "{'at':'10'}"}, 400);
    expect_holds(answer.body, "no partition key");
}

static void faults_meet_their_kind_as_often_as_was_said(void **state)
{
    (void)state;
    static const Ask read = READ("1");
    static const Ask list = {"GET", DOCS};
    static const Ask query = {"POST",
                              DOCS,
                              "{'query':'SELECT * FROM c'}",
                              {PK("['a']"), {"x-ms-documentdb-isquery", "True"}}};
    static const Ask plan = {
        "POST",
        DOCS,
        "{'query':'SELECT * FROM c'}",
        {{"x-ms-cosmos-is-query-plan-request", "True"}, {"x-ms-documentdb-isquery", "True"}}};
    static const Ask write = {"PUT", DOCS "/1", "{'id':'1','pk':'a'}", {PK("['a']")}};
    static const Ask remove = {"DELETE", DOCS "/none", NULL, {PK("['a']")}};
    static const Ask purge = {
        "POST", "/dbs/db/colls/c/operations/partitionkeydelete", NULL, {PK("['z']")}};
    static const Ask container = {"GET", "/dbs/db/colls/c"};
    static const Ask ranges = {"GET", "/dbs/db/colls/c/pkranges"};
    static const struct {
        const char *kind;
        const Ask *met[4];
        const Ask *spared[8];
    } rows[] = {
        {"read", {&read}, {&list, &query, &plan, &write, &purge, &container, &ranges}},
        {"query", {&list, &query}, {&read, &plan, &write, &purge, &container, &ranges}},
        {"write", {&write, &remove, &purge}, {&read, &list, &query, &plan, &container, &ranges}},
        {"any", {&read, &query, &write, &purge}, {&plan, &container, &ranges}},
    };
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        size_t count = 0;
        while (count < ARRAY_COUNT(rows[i].met) && rows[i].met[count] != NULL)
            count++;
        Slice rule = arena_format(&server.arena, "{'kind':'%s','status':503,'count':%zu}",
                                  rows[i].kind, count);
        (void)post(&server, "faults", rule.ptr, 201);
        for (size_t j = 0; j < ARRAY_COUNT(rows[i].spared) && rows[i].spared[j] != NULL; j++)
            assert_true(ask(&server, rows[i].spared[j]).status < 300);
        for (size_t j = 0; j < count; j++)
            expect_holds(expect_status(&server, rows[i].met[j], 503).body, "/_orrery/chaos");
        for (size_t j = 0; j < count; j++)
            assert_int_not_equal(ask(&server, rows[i].met[j]).status, 503);
    }
}

static void a_fault_is_answered_as_it_was_described(void **state)
{
    (void)state;
    static const Ask read = READ("1");
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    (void)post(&server, "faults", "{'status':410,'substatus':1007,'retryAfterMs':7}", 201);
    FakeAnswer answer = expect_status(&server, &read, 410);
    expect_header(&answer, "x-ms-substatus", "1007");
    expect_header(&answer, "x-ms-retry-after-ms", "7");
    expect_holds(answer.body, "\"code\":\"Gone\"");
    (void)post(&server, "faults", "{'status':429,'substatus':3200,'retryAfterMs':9}", 201);
    answer = expect_status(&server, &read, 429);
    expect_header(&answer, "x-ms-substatus", "3200");
    expect_header(&answer, "x-ms-retry-after-ms", "9");
    (void)post(&server, "faults", "{'status':503}", 201);
    answer = expect_status(&server, &read, 503);
    assert_int_equal(fake_header(&answer, "x-ms-substatus").len, 0);
    assert_int_equal(fake_header(&answer, "x-ms-retry-after-ms").len, 0);
    (void)expect_status(&server, &read, 200);
}

static uint64_t took_ms(FakeServer *server, const Ask *a, int status)
{
    uint64_t begun_us = clock_monotonic_us(clock_real());
    (void)expect_status(server, a, status);
    return (clock_monotonic_us(clock_real()) - begun_us) / 1000;
}

/* What a delayed request sent is freed before it goes on. */
static void a_request_that_is_late_does_what_it_was_to_do(void **state)
{
    (void)state;
    static const Ask create = {"POST", DOCS, "{'id':'late','pk':'a','n':[1,2,3]}"};
    static const Ask read = READ("late");
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    (void)post(&server, "faults", "{'kind':'write','delayMs':40}", 201);
    assert_true(took_ms(&server, &create, 201) >= 40);
    FakeAnswer answer = expect_status(&server, &read, 200);
    expect_holds(answer.body, "\"n\":[1,2,3]");
    (void)post(&server, "faults", "{'delayMs':40,'status':408}", 201);
    assert_true(took_ms(&server, &read, 408) >= 40);

    /* The shorter delay ends first, whichever request came first. */
    (void)post(&server, "faults", "{'delayMs':200}", 201);
    (void)post(&server, "faults", "{'delayMs':20}", 201);
    FakeAnswer slow;
    FakeAnswer fast;
    FakeExchange *first = ask_only(&server, &read, &slow);
    FakeExchange *second = ask_only(&server, &read, &fast);
    fake_wait(&server, &fast);
    assert_int_equal(fast.status, 200);
    assert_int_equal(slow.status, 0);
    fake_wait(&server, &slow);
    assert_int_equal(slow.status, 200);
    mem_free(first);
    mem_free(second);
}

static void a_container_that_is_deleted_while_a_request_waits_is_not_found(void **state)
{
    (void)state;
    static const Ask read = READ("1");
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    (void)post(&server, "faults", "{'delayMs':50}", 201);
    FakeAnswer answer;
    FakeExchange *exchange = ask_only(&server, &read, &answer);
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db/colls/c"}, 204);
    fake_wait(&server, &answer);
    assert_int_equal(answer.status, 404);
    mem_free(exchange);
}

enum { DRAWS = 60 };

static uint64_t pattern_of(FakeServer *server, const char *rule)
{
    static const Ask read = READ("1");
    uint64_t pattern = 0;
    (void)post(server, "faults", rule, 201);
    for (int i = 0; i < DRAWS; i++)
        pattern = pattern << 1 | (ask(server, &read).status == 503 ? 1 : 0);
    (void)expect_status(server, &(Ask){"DELETE", CHAOS}, 200);
    return pattern;
}

static void chance_repeats_itself_with_its_seed(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    uint64_t seven = pattern_of(&server, "{'status':503,'percent':50,'seed':7,'count':1000}");
    assert_true(seven == pattern_of(&server, "{'status':503,'percent':50,'seed':7,'count':1000}"));
    assert_true(seven != pattern_of(&server, "{'status':503,'percent':50,'seed':8,'count':1000}"));
    int hits = __builtin_popcountll(seven);
    assert_in_range(hits, DRAWS / 4, DRAWS * 3 / 4);
    uint64_t few = pattern_of(&server, "{'status':503,'percent':50,'seed':7,'count':3}");
    assert_int_equal(__builtin_popcountll(few), 3);
}

static void a_partition_is_throttled_alone(void **state)
{
    (void)state;
    static const Ask read = READ("1");
    static const Ask other = {"GET", DOCS "/1", NULL, {PK("['b']")}};
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    (void)post(&server, "throttle", "{'range':'1','requests':2,'retryAfterMs':3}", 201);
    for (int i = 0; i < 2; i++) {
        FakeAnswer answer = expect_status(&server, &read, 429);
        expect_header(&answer, "x-ms-substatus", "3200");
        expect_header(&answer, "x-ms-retry-after-ms", "3");
        (void)expect_status(&server, &other, 200);
    }
    (void)expect_status(&server, &read, 200);

    (void)post(&server, "throttle", "{'range':'1','seconds':5}", 201);
    fake_clock_advance(&server.clock, 3000000);
    FakeAnswer answer = expect_status(&server, &read, 429);
    expect_header(&answer, "x-ms-retry-after-ms", "2001");
    /* A list goes as far as the partition that has nothing left. */
    answer = expect_status(&server, &(Ask){"GET", DOCS}, 200);
    assert_true(fake_header(&answer, "x-ms-continuation").len > 0);
    expect_header(&answer, "x-ms-item-count", "1");
    fake_clock_advance(&server.clock, 2000000);
    (void)expect_status(&server, &read, 200);
    answer = expect_status(&server, &(Ask){"GET", "/_orrery/events"}, 200);
    expect_holds(answer.body, "\"throttled\":2}");
    expect_holds(answer.body, "\"throttled\":1}");
}

static void a_partition_seems_to_be_behind_what_was_seen_of_it(void **state)
{
    (void)state;
    static const Ask bare = READ("1");
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    FakeAnswer written = expect_status(&server, &bare, 200);
    Ask read = READ("1");
    read.headers[1] =
        (Header){"x-ms-session-token",
                 arena_cstr(&server.arena, fake_header(&written, "x-ms-session-token"))};
    (void)post(&server, "session", "{'range':'1','requests':2}", 201);
    (void)expect_status(&server, &bare, 200); /* that wants to have seen nothing */
    for (int i = 0; i < 2; i++) {
        FakeAnswer answer = expect_status(&server, &read, 404);
        expect_header(&answer, "x-ms-substatus", "1002");
    }
    (void)expect_status(&server, &read, 200);

    (void)post(&server, "session", "{'range':'1','lag':1}", 201);
    (void)expect_status(&server, &read, 404);
    (void)expect_status(&server,
                        &(Ask){"PUT", DOCS "/1", "{'id':'1','pk':'a','n':1}", {PK("['a']")}}, 200);
    (void)expect_status(&server, &read, 200); /* it has come as far as that */
    (void)expect_status(&server, &(Ask){"DELETE", CHAOS}, 200);
}

static void what_is_armed_is_listed_until_it_is_spent_or_cleared(void **state)
{
    (void)state;
    static const Ask read = READ("1");
    static const Ask look = {"GET", CHAOS};
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    (void)post(&server, "throttle", "{'range':'0','seconds':2}", 201);
    FakeAnswer armed =
        post(&server, "faults", "{'status':503,'substatus':5,'kind':'read','count':2}", 201);
    (void)post(&server, "session", "{'range':'1','lag':4}", 201);
    expect_holds(armed.body,
                 "{\"id\":2,\"what\":\"faults\",\"database\":\"db\",\"container\":\"c\",\"kind\":"
                 "\"read\",\"status\":503,\"substatus\":5,\"retryAfterMs\":0,\"delayMs\":0,"
                 "\"percent\":100,\"seed\":1,\"requestsLeft\":2,\"acted\":0}");
    FakeAnswer list = expect_status(&server, &look, 200);
    expect_holds(list.body, "\"what\":\"throttle\"");
    expect_holds(list.body, "\"range\":\"0\",\"msLeft\":2000,\"acted\":0}");
    expect_holds(list.body, "\"range\":\"1\",\"lag\":4,\"acted\":0}");
    (void)expect_status(&server, &read, 503);
    expect_holds(expect_status(&server, &look, 200).body, "\"requestsLeft\":1,\"acted\":1}");
    (void)expect_status(&server, &read, 503);
    fake_clock_advance(&server.clock, 2000000);
    list = expect_status(&server, &look, 200);
    assert_false(holds(list.body, "faults"));
    assert_false(holds(list.body, "throttle"));
    assert_slice(expect_status(&server, &(Ask){"DELETE", CHAOS}, 200).body,
                 SLICE("{\"cleared\":1}"));
    assert_slice(expect_status(&server, &look, 200).body, SLICE("{\"rules\":[]}"));
}

static void there_are_not_more_rules_than_can_be_looked_through(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    for (int i = 0; i < CHAOS_RULES_MAX; i++)
        (void)post(&server, "faults", "{'status':503}", 201);
    (void)post(&server, "faults", "{'status':503}", 413);
    (void)expect_status(&server, &(Ask){"DELETE", CHAOS}, 200);
    (void)post(&server, "faults", "{'status':503}", 201);
}

/* ---- splits and merges ---- */

/* Waits until the newest event has this stage; what is told of it. */
static Slice await_stage(FakeServer *server, const char *stage)
{
    Slice wanted = arena_format(&server->arena, "\"stage\":\"%s\"", stage);
    for (int i = 0; i < 2000; i++) {
        FakeAnswer answer = expect_status(server, &(Ask){"GET", "/_orrery/events?count=1"}, 200);
        if (holds(answer.body, wanted.ptr))
            return answer.body;
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("no move came to '%s'", stage);
    return SLICE_EMPTY;
}

static void splits_and_merges_are_made_and_seen(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    assert_slice(post(&server, "split", "{'range':'0','by':'hash','parts':3}", 202).body,
                 SLICE("{\"event\":1}"));
    Slice event = await_stage(&server, "done");
    expect_holds(event, "\"moves\":[{\"database\":\"db\",\"container\":\"c\",\"event\":1,\"what\":"
                        "\"split\",\"reason\":\"asked\"");
    expect_holds(event, "\"sources\":[\"0\"],\"targets\":[\"2\",\"3\",\"4\"]");
    expect_holds(event, "\"percent\":100");
    FakeAnswer layout =
        expect_status(&server, &(Ask){"GET", "/_orrery/dbs/db/colls/c/layout"}, 200);
    expect_holds(layout.body, "\"move\":null");
    expect_holds(layout.body, "\"parents\":[\"0\"]");
    expect_holds(layout.body, "\"parents\":[]");

    (void)post(&server, "merge", "{'ranges':['4','2']}", 400); /* 3 is between them */
    (void)post(&server, "merge", "{'ranges':['4','3']}", 202);
    event = await_stage(&server, "done");
    expect_holds(event, "\"event\":2,\"what\":\"merge\"");
    expect_holds(event, "\"sources\":[\"3\",\"4\"],\"targets\":[\"5\"]");

    /* A single logical partition cannot be split. */
    (void)post(&server, "split", "{'range':'1'}", 202);
    event = await_stage(&server, "failed");
    expect_holds(event, "single logical partition");

    FakeAnswer metrics = expect_status(&server, &(Ask){"GET", "/metrics"}, 200);
    expect_holds(metrics.body, "orrery_moves_total{kind=\"split\",result=\"done\"} 1\n");
    expect_holds(metrics.body, "orrery_moves_total{kind=\"split\",result=\"failed\"} 1\n");
    expect_holds(metrics.body, "orrery_moves_total{kind=\"merge\",result=\"done\"} 1\n");
    expect_holds(metrics.body, "orrery_move_fence_microseconds_max ");
}

#define MERGE "/dbs/db/colls/c/operations/partitionmerge"

static void partitions_that_throughput_does_not_need_are_merged_on_request(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_chaos(&server);
    FakeAnswer answer = expect_status(&server, &(Ask){"POST", MERGE}, 202);
    expect_holds(answer.body, "\"merges\":[]"); /* two are needed */
    (void)post(&server, "split", "{'range':'0','by':'hash','parts':4}", 202);
    (void)await_stage(&server, "done");
    (void)expect_status(&server, &(Ask){"POST", MERGE, "{'isDryRun':1}"}, 400);
    (void)expect_status(&server, &(Ask){"POST", MERGE, "{'isDryRun':true}", .key = FAKE_READ_KEY},
                        401);
    answer = expect_status(&server, &(Ask){"POST", MERGE, "{'isDryRun':true}"}, 202);
    expect_holds(answer.body, "\"isDryRun\":true");
    expect_holds(answer.body, "\"physicalPartitionStorageInfoCollection\":[{\"id\":\"2\"");
    expect_holds(answer.body, "\"merges\":[{\"ranges\":[\"2\",\"3\"");
    assert_int_equal(container_now(&server)->range_count, 5);
    answer = expect_status(&server, &(Ask){"POST", MERGE, "{'isDryRun':false}"}, 202);
    expect_holds(answer.body, "\"event\":2}");
    (void)await_stage(&server, "done");
    assert_int_equal(container_now(&server)->range_count, 2);
    answer = expect_status(&server, &(Ask){"POST", MERGE}, 202);
    expect_holds(answer.body, "\"merges\":[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_master_key_of_a_server_with_chaos_asks_for_trouble),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(faults_meet_their_kind_as_often_as_was_said),
        cmocka_unit_test(a_fault_is_answered_as_it_was_described),
        cmocka_unit_test(a_request_that_is_late_does_what_it_was_to_do),
        cmocka_unit_test(a_container_that_is_deleted_while_a_request_waits_is_not_found),
        cmocka_unit_test(chance_repeats_itself_with_its_seed),
        cmocka_unit_test(a_partition_is_throttled_alone),
        cmocka_unit_test(a_partition_seems_to_be_behind_what_was_seen_of_it),
        cmocka_unit_test(what_is_armed_is_listed_until_it_is_spent_or_cleared),
        cmocka_unit_test(there_are_not_more_rules_than_can_be_looked_through),
        cmocka_unit_test(splits_and_merges_are_made_and_seen),
        cmocka_unit_test(partitions_that_throughput_does_not_need_are_merged_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
