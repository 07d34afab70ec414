/* purge_test.c - deleting all items of a partition key. */
#include "api/tests/testing_int.h"

#define PURGE "/dbs/db/colls/c/operations/partitionkeydelete"
#define THROUGHPUT                       \
    {                                    \
        "x-ms-offer-throughput", "18000" \
    }

static size_t count_items(FakeServer *server)
{
    FakeAnswer answer =
        expect_status(server, &(Ask){"GET", DOCS, .headers = {{"x-ms-max-item-count", "-1"}}}, 200);
    return json_count(json_get(body_of(server, &answer), SLICE("Documents")));
}

static void the_items_of_a_key_are_gone_at_once(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    make_item(&server, "{'id':'2','pk':'a'}");
    make_item(&server, "{'id':'1','pk':'b'}");
    make_item(&server, "{'id':'1'}");
    FakeAnswer answer =
        expect_status(&server, &(Ask){"POST", PURGE, "", .headers = {PK("['a']")}}, 200);
    assert_int_equal(answer.body.len, 0);
    expect_holds(fake_header(&answer, "x-ms-session-token"), "0:-1#");
    (void)expect_status(&server, &(Ask){"GET", DOCS "/1", .headers = {PK("['a']")}}, 404);
    (void)expect_status(&server, &(Ask){"GET", DOCS "/1", .headers = {PK("['b']")}}, 200);
    assert_int_equal(count_items(&server), 2);
    /* What comes afterwards stays. */
    make_item(&server, "{'id':'1','pk':'a'}");
    assert_int_equal(count_items(&server), 3);
    (void)expect_status(&server, &(Ask){"POST", PURGE, "", .headers = {PK("[{}]")}}, 200);
    assert_int_equal(count_items(&server), 2);
    (void)expect_status(&server, &(Ask){"POST", PURGE, "", .headers = {PK("['none']")}}, 200);
    assert_int_equal(count_items(&server), 2);
}

/* 'c' with two levels and three ranges, and 40 items with 20 keys below "a" and as many below "b".
 */
static void open_hierarchical(FakeServer *server)
{
    open_with(server, (Ask){.body = "{'id':'c','partitionKey':{'paths':['/t','/u'],"
                                    "'kind':'MultiHash','version':2}}",
                            .headers = {THROUGHPUT}});
    for (int i = 0; i < 40; i++) {
        Slice body =
            arena_format(&server->arena, "{'id':'1','t':'%c','u':%d}", i % 2 ? 'a' : 'b', i / 2);
        make_item(server, arena_cstr(&server->arena, body));
    }
}

static void a_prefix_purges_all_that_begins_with_it(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_hierarchical(&server);
    (void)expect_status(&server, &(Ask){"POST", PURGE, "", .headers = {PK("['b',3]")}}, 200);
    assert_int_equal(count_items(&server), 39);
    (void)expect_status(&server, &(Ask){"POST", PURGE, "", .headers = {PK("['a']")}}, 200);
    assert_int_equal(count_items(&server), 19);
    (void)expect_status(&server, &(Ask){"GET", DOCS "/1", .headers = {PK("['a',0]")}}, 404);
    (void)expect_status(&server, &(Ask){"GET", DOCS "/1", .headers = {PK("['b',0]")}}, 200);
}

static void without_a_good_key_nothing_is_deleted(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"POST", PURGE}, 400},
        {{"POST", PURGE, .headers = {PK("")}}, 400},
        {{"POST", PURGE, .headers = {PK("[]")}}, 400},
        {{"POST", PURGE, .headers = {PK("a")}}, 400},
        {{"POST", PURGE, .headers = {PK("['a',1,2]")}}, 400},
        {{"POST", PURGE, .headers = {PK("['a']")}, .key = FAKE_READ_KEY}, 401},
        {{"POST", PURGE, .headers = {PK("['a']")}, .key = ""}, 401},
        {{"GET", PURGE, .headers = {PK("['a']")}}, 501},
        {{"DELETE", PURGE, .headers = {PK("['a']")}}, 501},
        {{"POST", "/dbs/db/colls/none/operations/partitionkeydelete", .headers = {PK("['a']")}},
         404},
    };
    AUTO(fake_server_close) FakeServer server;
    open_hierarchical(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)expect_status(&server, &rows[i].ask, rows[i].status);
    assert_int_equal(count_items(&server), 40);
}

static void a_container_without_a_key_is_not_emptied_by_one(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = "{'id':'c'}", .headers = {{"x-ms-version", "2015-08-06"}}});
    make_item(&server, "{'id':'1'}");
    (void)expect_status(&server, &(Ask){"POST", PURGE, "", .headers = {PK("['a']")}}, 400);
    (void)expect_status(&server, &(Ask){"POST", PURGE, "", .headers = {PK("[]")}}, 400);
    assert_int_equal(count_items(&server), 1);
}

static void what_the_disk_refuses_is_an_error(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    memory_store_fail_commits(server.store, 1, STATUS_IO);
    (void)expect_status(&server, &(Ask){"POST", PURGE, "", .headers = {PK("['a']")}}, 503);
    assert_int_equal(count_items(&server), 1);
}

static void a_container_that_falls_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    drop_partition(&server, 0);
    FakeAnswer answer =
        expect_status(&server, &(Ask){"POST", PURGE, "", .headers = {PK("['a']")}}, 404);
    assert_int_equal(sub_status_of(&answer), 1003);
}

/* The whole is answered once, whichever of its parts is refused, and when. */
static void one_refusing_partition_fails_the_whole(void **state)
{
    (void)state;
    for (size_t dropped = 0; dropped < 3; dropped++) {
        AUTO(fake_server_close) FakeServer server;
        open_hierarchical(&server);
        drop_partition(&server, dropped);
        size_t refused = 0;
        for (int i = 0; i < 8; i++) {
            Slice key = arena_format(&server.arena, "['%c']", 'a' + i);
            Ask a = {"POST", PURGE, "", .headers = {PK(arena_cstr(&server.arena, key))}};
            FakeAnswer answer = ask(&server, &a);
            assert_true(answer.status == 200 || sub_status_of(&answer) == 1003);
            refused += answer.status != 200 ? 1 : 0;
        }
        assert_true(refused < 8);
    }
}

static void a_purge_outlives_its_container(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    memory_store_stall(server.store);
    const HttpHeader headers[] = {{SLICE("x-ms-documentdb-partitionkey"), SLICE("[\"a\"]")}};
    FakeRequest request = {.method = SLICE("POST"),
                           .path = SLICE(PURGE),
                           .headers = headers,
                           .header_count = 1,
                           .key = SLICE(FAKE_KEY)};
    FakeAnswer purged;
    FakeAnswer deleted;
    FakeExchange *purge = fake_send(&server, &request, &purged);
    memory_store_wait_stalled(server.store);
    request.method = SLICE("DELETE");
    request.path = SLICE("/dbs/db");
    FakeExchange *delete = fake_send(&server, &request, &deleted);
    memory_store_release(server.store);
    fake_wait(&server, &deleted);
    fake_wait(&server, &purged);
    assert_int_equal(deleted.status, 204);
    assert_int_equal(purged.status, 200);
    mem_free(purge);
    mem_free(delete);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_items_of_a_key_are_gone_at_once),
        cmocka_unit_test(a_prefix_purges_all_that_begins_with_it),
        cmocka_unit_test(without_a_good_key_nothing_is_deleted),
        cmocka_unit_test(a_container_without_a_key_is_not_emptied_by_one),
        cmocka_unit_test(what_the_disk_refuses_is_an_error),
        cmocka_unit_test(a_container_that_falls_is_refused),
        cmocka_unit_test(one_refusing_partition_fails_the_whole),
        cmocka_unit_test(a_purge_outlives_its_container),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
