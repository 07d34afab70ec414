/* forward_test.c - requests that another node of the cluster serves (forward_int.h). */
#include "api/tests/forward_testing_int.h"

static void a_change_goes_to_the_owner_of_the_catalogue_as_it_came(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    NodeCall *call = take_call(&f.server);
    assert_slice(call->address, SLICE("10.0.0.2:9000"));
    assert_slice(call->method, SLICE("POST"));
    assert_slice(call->path, SLICE("/dbs"));
    assert_slice(call->body, SLICE("{\"id\":\"far\"}"));
    assert_slice(sent_header(call, NODE_HEADER_HOST), SLICE(FAKE_AUTHORITY));
    assert_true(slice_starts_with(sent_header(call, NODE_HEADER_ORIGIN), SLICE("http ")));
    assert_true(sent_header(call, "authorization").len > 0);
    assert_true(sent_header(call, "x-ms-activity-id").len > 0);
    end_call(call, NODE_CALL_ANSWERED, 201);
    assert_int_equal(f.answer.status, 201);
    assert_slice(f.answer.body, SLICE("{\"id\":\"far\"}"));
    expect_header(&f.answer, "etag", "\"1\"");
    expect_header(&f.answer, "content-length", ""); /* http's own */
    land(&f);
}

static void a_node_that_is_no_longer_the_owner_is_asked_again_only_later(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    end_call(take_call(&f.server), NODE_CALL_ANSWERED, 421);
    assert_int_equal(f.answer.status, 0);
    assert_true(f.cluster.refreshes > 0);
    tick(&f.server);
    assert_int_equal(f.server.loop.call_count, 0); /* the same owner, a moment later */
    f.cluster.catalog = NODE_C;
    tick(&f.server);
    NodeCall *call = take_call(&f.server);
    assert_slice(call->address, SLICE("10.0.0.3:9000"));
    end_call(call, NODE_CALL_NOT_SENT, 0);
    for (int i = 0; i < 5; i++)
        tick(&f.server);
    end_call(take_call(&f.server), NODE_CALL_ANSWERED, 201); /* the same one again */
    assert_int_equal(f.answer.status, 201);
    land(&f);
}

/* What a 421 says of the owner. */
static void refuse_call(NodeCall *call, const char *owner)
{
    HttpHeader header = {SLICE(NODE_HEADER_OWNER), slice_from_cstr(owner)};
    call->outcome = NODE_CALL_ANSWERED;
    call->status = 421;
    call->answer_headers = &header;
    call->answer_header_count = 1;
    call->done(call);
}

static void a_refusal_that_names_a_newer_owner_is_followed_at_once(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    refuse_call(take_call(&f.server), "0 9 c");
    assert_string_equal(f.cluster.told, "0 9 c");
    assert_int_equal(f.server.loop.timer_count, 0);
    NodeCall *call = take_call(&f.server);
    assert_slice(call->address, SLICE("10.0.0.3:9000"));
    refuse_call(call, "0 8 b"); /* older: not again to where it came from */
    assert_int_equal(f.server.loop.call_count, 0);
    for (int i = 0; i < 5; i++)
        tick(&f.server);
    end_call(take_call(&f.server), NODE_CALL_ANSWERED, 201);
    assert_int_equal(f.answer.status, 201);
    land(&f);
}

static void refusals_that_make_no_sense_say_nothing_of_the_owner(void **state UNUSED)
{
    static const char *const texts[] = {
        "",
        "0",
        "0 9",
        "0 9 ",
        "c",
        "0 c 9",
        "-1 9 c",
        "0  9 c",
        "0 9 ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        Flight f;
        take_off(&f, &CREATE);
        refuse_call(take_call(&f.server), texts[i]);
        assert_string_equal(f.cluster.told, "");
        assert_true(f.cluster.refreshes > 0);
        f.cluster.catalog = NODE_C;
        tick(&f.server);
        end_call(take_call(&f.server), NODE_CALL_ANSWERED, 201);
        assert_int_equal(f.answer.status, 201);
        land(&f);
    }
}

static void a_request_runs_here_when_this_node_becomes_the_owner(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    end_call(take_call(&f.server), NODE_CALL_ANSWERED, 421);
    f.cluster.catalog = HERE;
    f.cluster.has_lease = false;
    tick(&f.server);
    assert_int_equal(f.answer.status, 0); /* not before it has a lease */
    f.cluster.has_lease = true;
    tick(&f.server);
    fake_wait(&f.server, &f.answer);
    assert_int_equal(f.answer.status, 201);
    expect_holds(f.answer.body, "far");
    land(&f);
}

static void a_request_without_an_owner_is_told_to_come_again(void **state UNUSED)
{
    Flight f;
    open_cluster(&f.server, &f.cluster);
    f.cluster.catalog = (ApiOwner){0};
    f.exchange = ask_only(&f.server, &CREATE, &f.answer);
    for (int i = 0; i * HTTP_LATER_MS < FORWARD_HOLD_MS - HTTP_LATER_MS; i++)
        tick(&f.server);
    assert_int_equal(f.answer.status, 0);
    tick(&f.server);
    assert_int_equal(f.answer.status, 429);
    assert_int_equal(sub_status_of(&f.answer), 3092);
    assert_true(fake_header(&f.answer, "x-ms-retry-after-ms").len > 0);
    assert_int_equal(f.server.loop.timer_count, 0);
    land(&f);
}

static void a_write_whose_answer_is_lost_is_not_sent_again(void **state UNUSED)
{
    Flight f;
    take_off(&f, &CREATE);
    end_call(take_call(&f.server), NODE_CALL_UNKNOWN, 0);
    assert_int_equal(f.answer.status, 408);
    expect_holds(f.answer.body, "not known");
    assert_int_equal(f.server.loop.call_count, 0);
    assert_int_equal(f.server.loop.timer_count, 0);
    land(&f);
}

static const Ask OF_ITEMS[] = {
    {"GET", DOCS "/1", NULL, {PK("['a']")}},
    {"POST", DOCS, "{'id':'2','pk':'a'}"},
    {"PUT", DOCS "/1", "{'id':'1','pk':'a'}", {PK("['a']")}},
    {"PATCH", DOCS "/1", "[{'op':'add','path':'/x','value':1}]", {PK("['a']")}},
    {"DELETE", DOCS "/1", NULL, {PK("['a']")}},
    {"GET", DOCS},
    {"GET", DOCS, NULL, {{"a-im", "Incremental Feed"}}},
    {"POST",
     DOCS,
     "{'query':'SELECT * FROM c'}",
     {{"x-ms-documentdb-isquery", "true"},
      {"content-type", "application/query+json"},
      {"x-ms-documentdb-query-enablecrosspartition", "true"}}},
    {"POST",
     DOCS,
     "[{'operationType':'Create','resourceBody':{'id':'3','pk':'a'}}]",
     {{"x-ms-cosmos-is-batch-request", "true"}, {"x-ms-cosmos-batch-atomic", "true"}, PK("['a']")}},
    {"POST", "/dbs/db/colls/c/operations/partitionkeydelete", "", {PK("['a']")}},
};

static void requests_for_items_go_to_the_owner_of_their_partition(void **state UNUSED)
{
    for (size_t i = 0; i < ARRAY_COUNT(OF_ITEMS); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        make_item(&f.server, "{'id':'1','pk':'a'}");
        Error err;
        StoreSpace space = container_now(&f.server)->ranges[0].space;
        assert_int_equal(catalog_stop_serving(f.server.catalog, space, &err), STATUS_OK);
        f.cluster.partitions = NODE_B;
        f.exchange = ask_only(&f.server, &OF_ITEMS[i], &f.answer);
        run_until_called(&f.server);
        NodeCall *call = take_call(&f.server);
        assert_slice(call->method, slice_from_cstr(OF_ITEMS[i].method));
        assert_slice(call->path, slice_from_cstr(OF_ITEMS[i].path));
        assert_slice(call->body, quoted(&f.server.arena, OF_ITEMS[i].body));
        end_call(call, NODE_CALL_ANSWERED, 200);
        assert_int_equal(f.answer.status, 200);
        land(&f);
    }
}

/* What the other node does with it. */
static void a_forwarded_request_is_answered_as_the_client_has_sent_it(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    make_item(&server, "{'id':'1','pk':'a'}");
    Ask a = {"GET",
             DOCS "/1",
             NULL,
             {PK("['a']"),
              {NODE_HEADER_ORIGIN, "https 192.0.2.7:50522"},
              {NODE_HEADER_HOST, "cosmos.example:8081"},
              {NODE_HEADER_SECONDS, "1700000000"}}};
    server.is_node = true;
    FakeAnswer answer = expect_status(&server, &a, 200);
    expect_header(&answer, "content-location", "https://cosmos.example:8081" DOCS "/1");
    a.key = "";
    (void)expect_status(&server, &a, 401); /* the client's credential counts, not the node's */
    a.key = NULL;
    a.headers[1].name = NULL;
    (void)expect_status(&server, &a, 400);
    fake_server_close(&server);
}

static void a_forwarded_request_keeps_its_client_while_its_body_comes(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    Ask a = {"POST",
             DOCS,
             "{'id':'1','pk':'a'}",
             {PK("['a']"),
              {NODE_HEADER_ORIGIN, "https 192.0.2.7:50522"},
              {NODE_HEADER_HOST, "cosmos.example:8081"},
              {NODE_HEADER_SECONDS, "1700000000"}}};
    server.is_node = server.bodies_come_later = true;
    FakeAnswer answer;
    FakeExchange *exchange = ask_only(&server, &a, &answer);
    assert_slice(exchange->http.peer, SLICE("192.0.2.7:50522"));
    assert_slice(exchange->http.authority, SLICE("cosmos.example:8081"));
    assert_true(exchange->http.is_tls);
    fake_wait(&server, &answer);
    assert_int_equal(answer.status, 201);
    mem_free(exchange);
    fake_server_close(&server);
}

/* The node that has sent it on may have told its client already that nothing is known of it. */
static void a_write_that_nobody_waits_for_any_more_is_not_done(void **state UNUSED)
{
    static const struct {
        Ask ask;
        int status; /* in time */
    } rows[] = {
        {{"POST", DOCS, "{'id':'2','pk':'a'}", {PK("['a']")}}, 201},
        {{"PATCH", DOCS "/1", "[{'op':'incr','path':'/n','value':1}]", {PK("['a']")}}, 200},
        {{"POST", DOCS, "[{'operationType':'Delete','id':'1'}]", {PK("['a']"), BATCH, ATOMIC}},
         200},
        {{"DELETE", DOCS "/1", NULL, {PK("['a']")}}, 204},
        {{"POST", "/dbs/db/colls/c/operations/partitionkeydelete", NULL, {PK("['a']")}}, 200},
        {{"POST", "/dbs", "{'id':'other'}"}, 201},
        {{"DELETE", "/dbs/db/colls/c"}, 204},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeServer server;
        FakeCluster cluster;
        open_cluster(&server, &cluster);
        make_item(&server, "{'id':'1','pk':'a','n':1}");
        Ask a = rows[i].ask;
        size_t count = 0;
        while (a.headers[count].name != NULL)
            count++;
        a.headers[count++] = (Header){NODE_HEADER_ORIGIN, "http 192.0.2.7:50522"};
        a.headers[count++] = (Header){NODE_HEADER_HOST, FAKE_AUTHORITY};
        a.headers[count++] = (Header){NODE_HEADER_SECONDS, "1700000000"};
        a.headers[count] = (Header){HTTP_NODE_HEADER_LEFT, "0"};
        server.is_node = true;
        FakeAnswer answer = expect_status(&server, &a, 429);
        assert_int_equal(sub_status_of(&answer), 3092);
        expect_holds(answer.body, "Nothing was done");
        a.headers[count].value = "1";
        (void)expect_status(&server, &a, rows[i].status);
        fake_server_close(&server);
    }
}

/* Other nodes may have told the client already that a range is gone. */
static void the_map_of_partitions_is_read_where_it_changes(void **state UNUSED)
{
    static const Ask reads[] = {
        {"GET", "/dbs/db/colls/c/pkranges"},
        {"GET", "/dbs/db/colls/c/pkranges/0"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(reads); i++) {
        Flight f;
        open_cluster(&f.server, &f.cluster);
        (void)expect_status(&f.server, &reads[i], 200);
        f.cluster.catalog = NODE_B;
        f.exchange = ask_only(&f.server, &reads[i], &f.answer);
        assert_int_equal(f.answer.status, 0);
        end_call(take_call(&f.server), NODE_CALL_ANSWERED, 200);
        fake_wait(&f.server, &f.answer);
        assert_int_equal(f.answer.status, 200);
        land(&f);
    }
}

static void a_node_answers_421_for_what_it_does_not_serve(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    Error err;
    StoreSpace space = container_now(&server)->ranges[0].space;
    assert_int_equal(catalog_stop_serving(server.catalog, space, &err), STATUS_OK);
    cluster.partitions = NODE_B;
    Ask a = {"GET",
             DOCS "/1",
             NULL,
             {PK("['a']"),
              {NODE_HEADER_ORIGIN, "http 192.0.2.7:50522"},
              {NODE_HEADER_HOST, FAKE_AUTHORITY},
              {NODE_HEADER_SECONDS, "1700000000"}}};
    server.is_node = true;
    FakeAnswer answer = expect_status(&server, &a, 421);
    char owner[40];
    (void)snprintf(owner, sizeof(owner), "%llu 8 b", (unsigned long long)space);
    expect_header(&answer, NODE_HEADER_OWNER, owner);
    assert_int_equal(server.loop.call_count, 0);
    assert_int_equal(server.loop.timer_count, 0);
    cluster.partitions = (ApiOwner){0}; /* in the middle of a hand-over */
    answer = expect_status(&server, &a, 421);
    expect_header(&answer, NODE_HEADER_OWNER, "");
    fake_server_close(&server);
}

static void a_node_without_a_lease_answers_421(void **state UNUSED)
{
    FakeServer server;
    FakeCluster cluster;
    open_cluster(&server, &cluster);
    Ask a = {"GET",
             "/dbs/db",
             NULL,
             {{NODE_HEADER_ORIGIN, "http 192.0.2.7:50522"},
              {NODE_HEADER_HOST, FAKE_AUTHORITY},
              {NODE_HEADER_SECONDS, "1700000000"}}};
    server.is_node = true;
    cluster.has_lease = false;
    (void)expect_status(&server, &a, 421);
    cluster.has_lease = true;
    (void)expect_status(&server, &a, 200);
    fake_server_close(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_goes_to_the_owner_of_the_catalogue_as_it_came),
        cmocka_unit_test(a_node_that_is_no_longer_the_owner_is_asked_again_only_later),
        cmocka_unit_test(a_refusal_that_names_a_newer_owner_is_followed_at_once),
        cmocka_unit_test(refusals_that_make_no_sense_say_nothing_of_the_owner),
        cmocka_unit_test(a_request_runs_here_when_this_node_becomes_the_owner),
        cmocka_unit_test(a_request_without_an_owner_is_told_to_come_again),
        cmocka_unit_test(a_write_whose_answer_is_lost_is_not_sent_again),
        cmocka_unit_test(requests_for_items_go_to_the_owner_of_their_partition),
        cmocka_unit_test(a_forwarded_request_is_answered_as_the_client_has_sent_it),
        cmocka_unit_test(a_forwarded_request_keeps_its_client_while_its_body_comes),
        cmocka_unit_test(a_write_that_nobody_waits_for_any_more_is_not_done),
        cmocka_unit_test(the_map_of_partitions_is_read_where_it_changes),
        cmocka_unit_test(a_node_answers_421_for_what_it_does_not_serve),
        cmocka_unit_test(a_node_without_a_lease_answers_421),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
