/* resource_tokens_test.c - a token opens exactly what it names: ways around it, each refused. */
#include "api/tests/token_testing_int.h"

#define C     "/dbs/db/colls/c"
#define OTHER "/dbs/db/colls/other"

static void open_with_items(FakeServer *server)
{
    open_with_user(server);
    make_item(server, "{'id':'i','pk':'x'}");
    make_item(server, "{'id':'j','pk':'x'}");
    make_item(server, "{'id':'i','pk':'y'}");
}

/* The path of the container, or of what 'rest' says in it, by resource ids. */
static const char *rid_path(FakeServer *server, const char *rest)
{
    const Container *container = container_now(server);
    char database_rid[RID_DATABASE_LEN];
    rid_print_database(container->database, database_rid);
    Slice path = arena_format(&server->arena, "/dbs/%.*s/colls/%.*s%s", RID_DATABASE_LEN,
                              database_rid, SLICE_ARG(container->info.rid), rest);
    return arena_cstr(&server->arena, path);
}

static const char *resource_row(FakeServer *server, const char *link, const char *rest)
{
    return arena_cstr(&server->arena,
                      arena_format(&server->arena, "'resource':'%s'%s", link, rest));
}

static void names_and_resource_ids_are_the_same(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_items(&server);
    const char *links[] = {"dbs/db/colls/c", "/dbs/db/colls/c/", "dbs/d%62/colls/c",
                           rid_path(&server, ""), rid_path(&server, "/") + 1};
    for (size_t i = 0; i < ARRAY_COUNT(links); i++) {
        const char *id = arena_cstr(&server.arena, arena_format(&server.arena, "p%zu", i));
        /* The second link is the first one, but for its slashes. */
        const char *rest = i % 2 == 0 ? "" : ",'resourcePartitionKey':['x']";
        const char *token =
            make_token(&server, "u", id, "Read", resource_row(&server, links[i], rest));
        const char *paths[] = {C "/docs/i", "//dbs//db/colls/c//docs/i/",
                               "/dbs/d%62/colls/%63/docs/i", rid_path(&server, "/docs/i")};
        for (size_t j = 0; j < ARRAY_COUNT(paths); j++) {
            print_message("%s on %s\n", links[i], paths[j]);
            (void)expect_with(&server, (Ask){"GET", paths[j], NULL, {PK("['x']")}}, token, 200);
            (void)expect_with(&server, (Ask){"DELETE", paths[j], NULL, {PK("['x']")}}, token, 403);
        }
        (void)expect_with(&server, (Ask){"GET", rid_path(&server, "/pkranges")}, token, 200);
        (void)expect_with(&server, (Ask){"GET", C}, token, 200);
        (void)expect_with(&server, (Ask){"GET", OTHER}, token, 403);
        (void)expect_with(&server, (Ask){"GET", "/dbs/db/colls/c%2Fdocs"}, token, 403);
        (void)expect_with(&server, (Ask){"GET", "/dbs/db/colls/none"}, token, 403);
    }
}

static void after_recreation_a_name_opens_and_a_resource_id_does_not(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_items(&server);
    const char *by_name = make_token(&server, "u", "n", "Read", "'resource':'dbs/db/colls/c'");
    const char *old = rid_path(&server, "");
    const char *by_rid = make_token(&server, "u", "r", "Read", resource_row(&server, old, ""));
    (void)expect_with(&server, (Ask){"GET", C}, by_name, 200);
    (void)expect_with(&server, (Ask){"GET", C}, by_rid, 200);
    (void)expect_status(&server, &(Ask){"DELETE", C}, 204);
    /* What is allowed may be found missing. */
    (void)expect_with(&server, (Ask){"GET", C}, by_name, 404);
    (void)expect_with(&server, (Ask){"GET", old}, by_rid, 404);
    (void)expect_with(&server, (Ask){"GET", old}, by_name, 403);
    (void)expect_with(&server, (Ask){"GET", C}, by_rid, 403);
    (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    (void)expect_with(&server, (Ask){"GET", C}, by_name, 200);
    (void)expect_with(&server, (Ask){"GET", C}, by_rid, 403);
    (void)expect_with(&server, (Ask){"GET", rid_path(&server, "")}, by_rid, 403);
    (void)expect_with(&server, (Ask){"GET", old}, by_rid, 404);
}

/* A granted key in the header does not let anything of another key be written. */
static void the_key_of_the_body_must_be_that_of_the_header(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_items(&server);
    const char *token = make_token(&server, "u", "p", "All",
                                   "'resource':'dbs/db/colls/c','resourcePartitionKey':['x']");
    static const Header granted = PK("['x']");
    static const Header upsert = {"x-ms-documentdb-is-upsert", "True"};
    static const Header batch = {"x-ms-cosmos-is-batch-request", "True"};
    static const Header atomic = {"x-ms-cosmos-batch-atomic", "True"};
    static const Header whole = {"x-ms-documentdb-partitionkeyrangeid", "0"};
    const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"POST", DOCS, "{'id':'n','pk':'x'}", {granted}}, 201},
        {{"POST", DOCS, "{'id':'n','pk':'y'}", {granted}}, 400},
        {{"POST", DOCS, "{'id':'n'}", {granted}}, 400},
        {{"POST", DOCS, "{'id':'n','pk':'x'}"}, 403}, /* without the header */
        {{"POST", DOCS, "{'id':'i','pk':'y'}", {granted, upsert}}, 400},
        {{"POST", DOCS, "{'id':'i','pk':'y'}", {PK("['y']"), upsert}}, 403},
        {{"PUT", DOCS "/i", "{'id':'i','pk':'y'}", {granted}}, 400},
        {{"PATCH", DOCS "/i", "{'operations':[{'op':'set','path':'/pk','value':'y'}]}", {granted}},
         400},
        {{"POST",
          DOCS,
          "[{'operationType':'Create','resourceBody':{'id':'b','pk':'y'}}]",
          {granted, batch, atomic}},
         207},
        {{"POST",
          DOCS,
          "[{'operationType':'Read','id':'i','partitionKey':'[\\'y\\']'}]",
          {granted, batch}},
         207},
        {{"POST",
          DOCS,
          "[{'operationType':'Read','id':'i','partitionKey':'[\\'y\\']'}]",
          {granted, batch, whole}},
         207},
        {{"POST",
          DOCS,
          "[{'operationType':'Read','id':'i','partitionKey':'[\\'y\\']'}]",
          {batch, whole}},
         403},
        {{"DELETE", DOCS "/i", NULL, {granted, PK("['y']")}}, 403}, /* twice */
        {{"DELETE", DOCS "/i", NULL, {PK("['y']"), granted}}, 403},
        {{"DELETE", DOCS "/i", NULL, {granted, granted}}, 403},
        {{"GET", DOCS "/i", NULL, {PK("['x',]")}}, 403},
        {{"GET", DOCS "/i", NULL, {PK("'x'")}}, 403},
        {{"GET", DOCS "/i", NULL, {PK(" [ 'x' ] ")}}, 200},
        {{"GET", DOCS "/i", NULL, {PK("['\\u0078']")}}, 200},
        {{"GET", DOCS "/other", NULL, {granted}}, 404},
        {{"GET", DOCS, NULL, {whole}}, 403},
        {{"GET", DOCS, NULL, {{"x-ms-start-epk", "00"}, {"x-ms-end-epk", "FF"}}}, 403},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        print_message("%zu: %s %s\n", i, rows[i].ask.method,
                      rows[i].ask.body == NULL ? "" : rows[i].ask.body);
        FakeAnswer answer = expect_with(&server, rows[i].ask, token, rows[i].status);
        if (rows[i].status == 207)
            expect_holds(answer.body, "\"statusCode\":400");
    }
    FakeAnswer left = expect_status(&server, &(Ask){"GET", DOCS "/i", NULL, {PK("['y']")}}, 200);
    assert_false(holds(left.body, "\"n\""));
    FakeAnswer list = expect_status(&server, &(Ask){"GET", DOCS}, 200);
    expect_holds(list.body, "\"_count\":4}"); /* one more than there were */
}

/* Feeds with the granted key show that key alone, whatever else the request says. */
static void feeds_of_a_key_show_that_key(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_items(&server);
    const char *token = make_token(&server, "u", "p", "Read",
                                   "'resource':'dbs/db/colls/c','resourcePartitionKey':['y']");
    static const Header granted = PK("['y']");
    static const Header query = {"x-ms-documentdb-isquery", "True"};
    static const Header cross = {"x-ms-documentdb-query-enablecrosspartition", "True"};
    static const Header range = {"x-ms-documentdb-partitionkeyrangeid", "0"};
    static const Header from = {"x-ms-start-epk", "00"};
    static const Header to = {"x-ms-end-epk", "FF"};
    static const Header changes = {"a-im", "Incremental Feed"};
    const Ask rows[] = {
        {"GET", DOCS, NULL, {granted}},
        {"GET", DOCS, NULL, {granted, range, from, to}},
        {"GET", DOCS, NULL, {granted, changes}},
        {"GET", DOCS, NULL, {granted, changes, range, from, to}},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", {granted, query}},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", {granted, query, cross, range}},
        {"POST",
         DOCS,
         "{'query':'SELECT * FROM c WHERE c.pk IN (@x, @y)','parameters':[{'name':'@x'"
         ",'value':'x'},{'name':'@y','value':'y'}]}",
         {granted, query, cross}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        print_message("%zu\n", i);
        FakeAnswer answer = expect_with(&server, rows[i], token, 200);
        expect_holds(answer.body, "\"_count\":1}");
        expect_holds(answer.body, "\"pk\":\"y\"");
        assert_false(holds(answer.body, "\"pk\":\"x\""));
    }
    /* A page of all items goes on where another key begins; its token does not open that key. */
    FakeAnswer page =
        expect_status(&server, &(Ask){"GET", DOCS, NULL, {{"x-ms-max-item-count", "1"}}}, 200);
    Ask on = {"GET", DOCS, NULL, {granted}};
    on.headers[1] = (Header){"x-ms-continuation",
                             arena_cstr(&server.arena, fake_header(&page, "x-ms-continuation"))};
    FakeAnswer answer = ask_with(&server, on, token);
    assert_false(holds(answer.body, "\"pk\":\"x\""));
}

static void a_prefix_of_a_hierarchical_key_opens_all_below_it(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = "{'id':'c','partitionKey':{'paths':['/a','/b'],'version':2,"
                                     "'kind':'MultiHash'}}"});
    (void)expect_status(&server, &(Ask){"POST", USERS, "{'id':'u'}"}, 201);
    const char *token = make_token(&server, "u", "p", "All",
                                   "'resource':'dbs/db/colls/c','resourcePartitionKey':['x']");
    const char *all = make_token(&server, "u", "q", "All",
                                 "'resource':'dbs/db/colls/c','resourcePartitionKey':[]");
    (void)expect_with(&server, (Ask){"POST", DOCS, "{'id':'i','a':'x','b':1}", {PK("['x',1]")}},
                      token, 201);
    (void)expect_with(&server, (Ask){"POST", DOCS, "{'id':'i','a':'y','b':1}", {PK("['y',1]")}},
                      token, 403);
    (void)expect_with(&server, (Ask){"GET", DOCS, NULL, {PK("['x']")}}, token, 200);
    (void)expect_with(&server, (Ask){"GET", DOCS "/i", NULL, {PK("['x',1]")}}, token, 200);
    (void)expect_with(&server, (Ask){"GET", DOCS "/i", NULL, {PK("['xx',1]")}}, token, 403);
    (void)expect_with(&server, (Ask){"GET", DOCS, NULL, {PK("[]")}}, token, 403);
    /* An empty key is no prefix of all. */
    (void)expect_with(&server, (Ask){"GET", DOCS "/i", NULL, {PK("['x',1]")}}, all, 403);
}

static void a_container_without_a_key_has_one_key(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = "{'id':'c'}", .headers = {{"x-ms-version", "2015-12-16"}}});
    (void)expect_status(&server, &(Ask){"POST", USERS, "{'id':'u'}"}, 201);
    make_item(&server, "{'id':'i','pk':'y'}");
    const char *key = make_token(&server, "u", "p", "All",
                                 "'resource':'dbs/db/colls/c','resourcePartitionKey':['x']");
    const char *none = make_token(&server, "u", "q", "All",
                                  "'resource':'dbs/db/colls/c','resourcePartitionKey':[{}]");
    (void)expect_with(&server, (Ask){"GET", DOCS "/i", NULL, {PK("['x']")}}, key, 403);
    (void)expect_with(&server, (Ask){"GET", DOCS "/i", NULL, {PK("[{}]")}}, none, 200);
}

static void an_item_token_is_for_one_item(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_items(&server);
    const char *token = make_token(&server, "u", "p", "All",
                                   "'resource':'dbs/db/colls/c/docs/i'"
                                   ",'resourcePartitionKey':['x']");
    static const Header granted = PK("['x']");
    static const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"GET", DOCS "/i", NULL, {PK("['x']")}}, 200},
        {{"GET", DOCS "/%69", NULL, {PK("['x']")}}, 200},
        {{"GET", DOCS "/I", NULL, {PK("['x']")}}, 403},
        {{"GET", DOCS "/i", NULL, {PK("['y']")}}, 403},
        {{"GET", DOCS "/j", NULL, {PK("['x']")}}, 403},
        {{"GET", DOCS, NULL, {PK("['x']")}}, 403},
        {{"PUT", DOCS "/i", "{'id':'i','pk':'x','n':1}", {PK("['x']")}}, 200},
        {{"PUT", DOCS "/i", "{'id':'k','pk':'x'}", {PK("['x']")}}, 403}, /* another id */
        {{"PUT", DOCS "/i", "{'id':'j','pk':'x'}", {PK("['x']")}}, 403},
        {{"PATCH", DOCS "/i", "{'operations':[{'op':'set','path':'/n','value':2}]}", {PK("['x']")}},
         200},
        {{"PATCH",
          DOCS "/i",
          "{'operations':[{'op':'set','path':'/id','value':'k'}]}",
          {PK("['x']")}},
         400},
        {{"PUT",
          DOCS "/i",
          "{'id':'i','pk':'x'}",
          {PK("['x']"), {"x-ms-documentdb-pre-trigger-include", "t"}}},
         403},
        {{"DELETE", DOCS "/i", NULL, {PK("['x']"), {"x-ms-documentdb-post-trigger-include", "t"}}},
         403},
        {{"POST",
          DOCS,
          "{'id':'i','pk':'x'}",
          {PK("['x']"), {"x-ms-documentdb-is-upsert", "True"}}},
         403},
        {{"POST", DOCS "/i", NULL, {PK("['x']"), {"x-http-method-override", "DELETE"}}}, 403},
        {{"GET", DOCS "/i", NULL, {PK("['x']"), {"x-http-method", "DELETE"}}}, 200},
        {{"DELETE", DOCS "/i", NULL, {PK("['x']")}}, 204},
    };
    (void)granted;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        print_message("%zu: %s %s\n", i, rows[i].ask.method, rows[i].ask.path);
        (void)expect_with(&server, rows[i].ask, token, rows[i].status);
    }
    FakeAnswer list = expect_status(&server, &(Ask){"GET", DOCS}, 200);
    expect_holds(list.body, "\"_count\":2}");
}

/* An id may look like the resource id of another item: it counts as what it was granted as. */
static void a_resource_id_of_an_item_is_not_its_name(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_items(&server);
    FakeAnswer read = expect_status(&server, &(Ask){"GET", DOCS "/j", NULL, {PK("['x']")}}, 200);
    Slice rid = text_of(body_of(&server, &read), "_rid");
    const char *rest =
        arena_cstr(&server.arena, arena_format(&server.arena, "/docs/%.*s", SLICE_ARG(rid)));
    const char *by_name = arena_cstr(&server.arena, arena_format(&server.arena, C "%s", rest));
    const char *by_rid = rid_path(&server, rest);
    const char *named = make_token(&server, "u", "n", "All", resource_row(&server, by_name, ""));
    const char *numbered = make_token(&server, "u", "r", "All", resource_row(&server, by_rid, ""));
    (void)expect_with(&server, (Ask){"GET", by_rid, NULL, {PK("['x']")}}, numbered, 200);
    (void)expect_with(&server, (Ask){"GET", by_rid, NULL, {PK("['x']")}}, named, 403);
    (void)expect_with(&server, (Ask){"GET", by_name, NULL, {PK("['x']")}}, numbered, 403);
    (void)expect_with(&server, (Ask){"GET", by_name, NULL, {PK("['x']")}}, named, 404);
    (void)expect_with(&server, (Ask){"GET", rid_path(&server, "")}, numbered, 200);
    (void)expect_with(&server, (Ask){"DELETE", by_rid, NULL, {PK("['x']")}}, numbered, 204);
}

static void a_script_token_is_for_one_script(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_items(&server);
    FakeAnswer made =
        expect_status(&server, &(Ask){"POST", C "/sprocs", "{'id':'s','body':''}"}, 201);
    (void)expect_status(&server, &(Ask){"POST", C "/udfs", "{'id':'s','body':''}"}, 201);
    const char *token =
        make_token(&server, "u", "p", "All", "'resource':'dbs/db/colls/c/sprocs/s'");
    Slice self = text_of(body_of(&server, &made), "_self");
    const char *by_rid =
        arena_cstr(&server.arena, arena_format(&server.arena, "/%.*s", SLICE_ARG(self)));
    (void)expect_with(&server, (Ask){"GET", C "/sprocs/s"}, token, 200);
    (void)expect_with(&server, (Ask){"GET", by_rid}, token, 200);
    (void)expect_with(&server, (Ask){"GET", C "/udfs/s"}, token, 403);
    (void)expect_with(&server, (Ask){"GET", C "/sprocs/t"}, token, 403);
    (void)expect_with(&server, (Ask){"GET", C "/docs/s", NULL, {PK("['x']")}}, token, 403);
    (void)expect_with(&server, (Ask){"POST", C "/sprocs/s", "[]", {PK("['x']")}}, token, 403);
    (void)expect_with(&server, (Ask){"PUT", C "/sprocs/s", "{'id':'t','body':''}"}, token, 403);
    (void)expect_with(&server, (Ask){"PUT", C "/sprocs/s", "{'id':'s','body':'2'}"}, token, 200);
    (void)expect_with(&server, (Ask){"DELETE", by_rid}, token, 204);
    (void)expect_with(&server, (Ask){"GET", C "/sprocs/s"}, token, 404);
    (void)expect_with(&server, (Ask){"GET", by_rid}, token, 403); /* no longer that one */
}

/* Only the head is needed for a decision, and the body may come after the catalogue has changed. */
static void a_body_that_comes_later_is_for_an_admitted_request(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_items(&server);
    const char *token = make_token(&server, "u", "p", "All", "'resource':'dbs/db/colls/c'");
    HttpHeader headers[] = {
        {SLICE("authorization"), slice_from_cstr(token)},
        {SLICE("x-ms-documentdb-partitionkey"), SLICE("[\"x\"]")},
    };
    FakeRequest request = {.method = SLICE("POST"),
                           .path = SLICE(DOCS),
                           .headers = headers,
                           .header_count = 2,
                           .body = SLICE("{\"id\":\"n\",\"pk\":\"x\"}"),
                           .body_comes_later = true};
    FakeAnswer answer;
    fake_request(&server, &request, &answer);
    assert_int_equal(answer.status, 201);
    (void)expect_status(&server, &(Ask){"DELETE", PERMISSIONS "/p"}, 204);
    fake_request(&server, &request, &answer);
    assert_int_equal(answer.status, 403);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_resource_ids_are_the_same),
        cmocka_unit_test(after_recreation_a_name_opens_and_a_resource_id_does_not),
        cmocka_unit_test(the_key_of_the_body_must_be_that_of_the_header),
        cmocka_unit_test(feeds_of_a_key_show_that_key),
        cmocka_unit_test(a_prefix_of_a_hierarchical_key_opens_all_below_it),
        cmocka_unit_test(a_container_without_a_key_has_one_key),
        cmocka_unit_test(an_item_token_is_for_one_item),
        cmocka_unit_test(a_resource_id_of_an_item_is_not_its_name),
        cmocka_unit_test(a_script_token_is_for_one_script),
        cmocka_unit_test(a_body_that_comes_later_is_for_an_admitted_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
