/* partition_statistics_test.c - what a container tells about its physical partitions. */
#include "api/tests/testing_int.h"

#include "api/control/partition_statistics_int.h"

static const ProvisionRules RULES = {
    .partition_ru = 400, .fallback = {PROVISION_MANUAL, 800}, .is_enforced = false};

#define STATISTICS                                            \
    {                                                         \
        "x-ms-documentdb-populatepartitionstatistics", "true" \
    }
static const Ask ASK = {"GET", "/dbs/db/colls/c", .headers = {STATISTICS}};

/* Two partitions: "a" is in the second, "b" in the first. */
static void open_two(FakeServer *server, const char *container)
{
    fake_server_open_with(server, NULL, &RULES);
    (void)expect_status(server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(server, &(Ask){"POST", "/dbs/db/colls", container}, 201);
}

static Json statistics_of(FakeServer *server, size_t range)
{
    FakeAnswer answer = expect_status(server, &ASK, 200);
    expect_header(&answer, "content-type", "application/json");
    assert_true(fake_header(&answer, "etag").len > 0);
    Json body = body_of(server, &answer);
    assert_slice(text_of(body, "id"), SLICE("c"));
    return json_at(json_get(body, SLICE("statistics")), range);
}

static uint64_t number_of(Json object, const char *name)
{
    Json value = json_get(object, slice_from_cstr(name));
    assert_true(json_is(value, JSON_NUMBER));
    return (uint64_t)json_number(value);
}

static void expect_keys(FakeServer *server, size_t range, uint64_t distinct, const char *keys)
{
    Json one = statistics_of(server, range);
    assert_int_equal(number_of(one, "sampledDistinctPartitionKeyCount"), distinct);
    assert_slice(json_print_arena(&server->arena, json_get(one, SLICE("partitionKeys"))),
                 quoted(&server->arena, keys));
}

static void make_large(FakeServer *server, const char *id, const char *key, size_t bytes)
{
    char *filling = arena_alloc(&server->arena, bytes + 1);
    memset(filling, 'x', bytes);
    filling[bytes] = '\0';
    make_item(server,
              arena_format(&server->arena, "{'id':'%s','pk':%s,'f':'%s'}", id, key, filling).ptr);
}

static void each_partition_lists_its_largest_keys(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_two(&server, CONTAINER);
    expect_keys(&server, 0, 0, "[]");
    make_large(&server, "1", "'a'", 5000);
    make_large(&server, "2", "'a'", 5000);
    expect_keys(&server, 0, 0, "[]");
    expect_keys(&server, 1, 1, "[{'partitionKey':['a'],'sizeInKB':10}]");
    make_large(&server, "1", "'b'", 2900);
    expect_keys(&server, 0, 1, "[{'partitionKey':['b'],'sizeInKB':3}]");
    Json second = statistics_of(&server, 1);
    assert_int_equal(number_of(second, "documentCount"), 2);
    assert_int_equal(number_of(second, "sizeInKB"), 10);
}

static void values_of_any_kind_are_listed_as_clients_send_them(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = "{'id':'c','partitionKey':{'paths':['/pk','/b'],"
                                     "'kind':'MultiHash','version':2}}"});
    make_item(&server, "{'id':'1','pk':true,'f':'0123456789'}");
    make_item(&server, "{'id':'1','pk':1.5,'b':null}");
    expect_keys(&server, 0, 2,
                "[{'partitionKey':[true,{}],'sizeInKB':1},"
                "{'partitionKey':[1.5,null],'sizeInKB':1}]");
}

/* One key with nearly all of the partition, and others with less than a hundredth each. */
static void keys_with_a_small_share_are_counted_only(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_large(&server, "1", "'large'", 100000);
    for (int i = 0; i < 3; i++)
        make_large(&server, "1", arena_format(&server.arena, "%d", i).ptr, 20);
    expect_keys(&server, 0, 4, "[{'partitionKey':['large'],'sizeInKB':98}]");
}

static void no_more_than_a_few_keys_are_listed(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (int i = 0; i < STATISTICS_KEYS_MAX + 5; i++)
        make_large(&server, "1", arena_format(&server.arena, "%d", i).ptr, 20);
    Json one = statistics_of(&server, 0);
    assert_int_equal(number_of(one, "sampledDistinctPartitionKeyCount"), STATISTICS_KEYS_MAX + 5);
    assert_int_equal(json_count(json_get(one, SLICE("partitionKeys"))), STATISTICS_KEYS_MAX);
}

static void without_a_worker_it_is_refused_and_a_known_version_needs_none(void **state)
{
    (void)state;
    static Jam jam; /* it must outlive the server */
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer answer = expect_status(&server, &ASK, 200);
    Slice etag = arena_copy(&server.arena, fake_header(&answer, "etag"));
    jam_begin(&jam, &server, JAM_WAITING_MAX);
    (void)expect_status(&server, &ASK, 503);
    Ask known = {"GET", "/dbs/db/colls/c",
                 .headers = {STATISTICS, {"if-none-match", arena_cstr(&server.arena, etag)}}};
    (void)expect_status(&server, &known, 304);
    jam_end(&jam);
    (void)expect_status(&server, &ASK, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_partition_lists_its_largest_keys),
        cmocka_unit_test(values_of_any_kind_are_listed_as_clients_send_them),
        cmocka_unit_test(keys_with_a_small_share_are_counted_only),
        cmocka_unit_test(no_more_than_a_few_keys_are_listed),
        cmocka_unit_test(without_a_worker_it_is_refused_and_a_known_version_needs_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
