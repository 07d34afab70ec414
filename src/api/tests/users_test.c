/* users_test.c - requests on users and permissions. */
#include "api/tests/token_testing_int.h"

static Slice item_count(const FakeAnswer *answer)
{
    return fake_header(answer, "x-ms-item-count");
}

static void a_user_is_made_read_renamed_and_deleted(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer made = expect_status(&server, &(Ask){"POST", USERS, "{'id':'u','_rid':'x'}"}, 201);
    Json body = body_of(&server, &made);
    Slice rid = text_of(body, "_rid");
    Slice self = text_of(body, "_self");
    assert_int_equal(rid.len, RID_USER_LEN);
    assert_slice(text_of(body, "_permissions"), SLICE("permissions/"));
    assert_true(slice_starts_with(self, SLICE("dbs/")));
    Slice tail = arena_format(&server.arena, "/users/%.*s/", SLICE_ARG(rid));
    assert_true(slice_ends_with(self, tail));
    assert_slice(fake_header(&made, "etag"), text_of(body, "_etag"));
    (void)expect_status(&server, &(Ask){"POST", USERS, "{'id':'u'}"}, 409);
    (void)expect_status(&server, &(Ask){"POST", USERS, "{'id':'a/b'}"}, 400);
    (void)expect_status(&server, &(Ask){"POST", USERS, "{}"}, 400);
    (void)expect_status(&server, &(Ask){"POST", USERS, "{'id':"}, 400);
    FakeAnswer missing =
        expect_status(&server, &(Ask){"POST", "/dbs/none/users", "{'id':'u'}"}, 404);
    assert_int_equal(sub_status_of(&missing), 1003);

    const char *by_rid =
        arena_cstr(&server.arena, arena_format(&server.arena, "/%.*s", SLICE_ARG(self)));
    assert_slice(expect_status(&server, &(Ask){"GET", USERS "/u"}, 200).body, made.body);
    assert_slice(expect_status(&server, &(Ask){"GET", by_rid}, 200).body, made.body);
    const char *etag = arena_cstr(&server.arena, text_of(body, "_etag"));
    (void)expect_status(&server, &(Ask){"GET", USERS "/u", NULL, {{"if-none-match", etag}}}, 304);

    (void)expect_status(&server, &(Ask){"POST", USERS, "{'id':'taken'}"}, 201);
    (void)expect_status(&server, &(Ask){"PUT", USERS "/u", "{'id':'taken'}"}, 409);
    Ask rename = {"PUT", USERS "/u", "{'id':'v'}", {{"if-match", etag}}};
    FakeAnswer renamed = expect_status(&server, &rename, 200);
    assert_slice(text_of(body_of(&server, &renamed), "_rid"), rid);
    (void)expect_status(&server, &(Ask){"GET", USERS "/u"}, 404);
    (void)expect_status(&server, &(Ask){"GET", USERS "/v"}, 200);
    rename.path = USERS "/v";
    (void)expect_status(&server, &rename, 412);
    FakeAnswer deleted = expect_status(&server, &(Ask){"DELETE", USERS "/v"}, 204);
    assert_int_equal(deleted.body.len, 0);
    (void)expect_status(&server, &(Ask){"GET", by_rid}, 404);
    (void)expect_status(&server, &(Ask){"DELETE", USERS "/v"}, 404);
    (void)expect_status(&server, &(Ask){"PATCH", USERS "/taken", "{}"}, 405);
}

static void an_upsert_goes_by_the_id_alone(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Ask upsert = {"POST", USERS, "{'id':'u'}", {{"x-ms-documentdb-is-upsert", "True"}}};
    FakeAnswer made = expect_status(&server, &upsert, 201);
    FakeAnswer again = expect_status(&server, &upsert, 200);
    Slice rid = text_of(body_of(&server, &made), "_rid");
    assert_slice(text_of(body_of(&server, &again), "_rid"), rid);
    /* What was read, with another id: a second user. */
    Slice row = arena_format(&server.arena, "{'id':'v','_rid':'%.*s'}", SLICE_ARG(rid));
    upsert.body = arena_cstr(&server.arena, row);
    FakeAnswer second = expect_status(&server, &upsert, 201);
    assert_false(slice_equal(text_of(body_of(&server, &second), "_rid"), rid));
    FakeAnswer list = expect_status(&server, &(Ask){"GET", USERS}, 200);
    expect_holds(list.body, "\"Users\":[{\"id\":\"u\"");
    expect_holds(list.body, "\"_count\":2}");
}

/* Pages of 'size' through all of a feed, by list or query; returns how many there are. */
static size_t count_pages(FakeServer *server, const char *path, const char *query, const char *size,
                          size_t *items)
{
    const char *token = "";
    *items = 0;
    for (size_t pages = 1;; pages++) {
        Ask page = {query == NULL ? "GET" : "POST",
                    path,
                    query,
                    {{"x-ms-max-item-count", size},
                     {"x-ms-continuation", token},
                     {query == NULL ? "x-none" : "x-ms-documentdb-isquery", "True"}}};
        FakeAnswer answer = expect_status(server, &page, 200);
        uint64_t count = 0;
        assert_true(slice_to_u64(item_count(&answer), &count));
        *items += count;
        double charge =
            strtod(arena_cstr(&server->arena, fake_header(&answer, "x-ms-request-charge")), NULL);
        assert_true(charge >= 1);
        token = arena_cstr(&server->arena, fake_header(&answer, "x-ms-continuation"));
        if (token[0] == '\0')
            return pages;
        assert_true(pages < 100);
    }
}

static void pages_are_exact(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_user(&server);
    for (int i = 0; i < 5; i++) {
        Slice user = arena_format(&server.arena, "{'id':'user%d'}", i);
        Slice rest = arena_format(&server.arena, "'resource':'dbs/db/colls/c%d'", i);
        Slice id = arena_format(&server.arena, "user%d", i);
        (void)expect_status(&server, &(Ask){"POST", USERS, arena_cstr(&server.arena, user)}, 201);
        (void)make_token(&server, "u", arena_cstr(&server.arena, id), "Read",
                         arena_cstr(&server.arena, rest));
    }
    (void)expect_status(&server, &(Ask){"DELETE", USERS "/user0"}, 204);
    (void)expect_status(&server, &(Ask){"POST", USERS, "{'id':'user0'}"}, 201);
    static const struct {
        const char *path, *query, *size;
        size_t pages, items;
    } rows[] = {
        {PERMISSIONS, NULL, "3", 2, 5},
        {PERMISSIONS, NULL, "2", 3, 5},
        {PERMISSIONS, NULL, "5", 1, 5},
        {PERMISSIONS, NULL, "-1", 1, 5},
        {PERMISSIONS, "{'query':'SELECT * from root'}", "3", 2, 5},
        {PERMISSIONS, "{'query':'SELECT * from root'}", "5", 1, 5},
        {PERMISSIONS,
         "{'query':'SELECT * FROM root r WHERE r.id=@id','parameters':[{'name':'@id',"
         "'value':'user3'}]}",
         "3", 1, 1},
        {PERMISSIONS, "{'query':'select * from T where STARTSWITH(T.id, \\'user\\')'}", "2", 3, 5},
        {PERMISSIONS, "{'query':'SELECT * FROM c WHERE c.id = \\'none\\''}", "2", 1, 0},
        {USERS, NULL, "2", 3, 6},
        {USERS, "{'query':'SELECT * FROM r WHERE STARTSWITH(r.id, \\'user\\')'}", "2", 3, 5},
        {USERS, "{'query':'SELECT * FROM r WHERE r.id = \\'none\\''}", "2", 1, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        size_t items = 0;
        /* A quote inside a query is a double one here, which SQL takes as well. */
        size_t pages = count_pages(&server, rows[i].path, rows[i].query, rows[i].size, &items);
        print_message("%zu\n", i);
        assert_int_equal(pages, rows[i].pages);
        assert_int_equal(items, rows[i].items);
    }
    Ask bad = {"POST", PERMISSIONS, "{'query':'SELECT FROM WHERE'}"};
    bad.headers[0] = (Header){"x-ms-documentdb-isquery", "True"};
    FakeAnswer refused = expect_status(&server, &bad, 400);
    assert_true(fake_header(&refused, "x-ms-activity-id").len > 0);
}

static void a_permission_is_made_read_replaced_and_deleted(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_user(&server);
    Ask create = {"POST", PERMISSIONS,
                  "{'id':'p','permissionMode':'read','resource':'dbs/db/colls/c',"
                  "'resourcePartitionKey':[1],'_token':'old'}"};
    FakeAnswer made = expect_status(&server, &create, 201);
    Json body = body_of(&server, &made);
    Slice rid = text_of(body, "_rid");
    assert_int_equal(rid.len, RID_CHILD_LEN);
    assert_slice(text_of(body, "permissionMode"), SLICE("Read"));
    assert_slice(text_of(body, "resource"), SLICE("dbs/db/colls/c"));
    expect_holds(made.body, "\"resourcePartitionKey\":[1]");
    Slice tail = arena_format(&server.arena, "/permissions/%.*s/", SLICE_ARG(rid));
    Slice self = text_of(body, "_self");
    assert_true(slice_ends_with(self, tail));
    expect_holds(self, "/users/");
    assert_true(slice_starts_with(text_of(body, "_token"), SLICE("type=resource&ver=1&sig=")));
    assert_slice(fake_header(&made, "etag"), text_of(body, "_etag"));
    (void)expect_status(&server, &create, 409);
    create.path = USERS "/none/permissions";
    assert_int_equal(sub_status_of(&(FakeAnswer[]){expect_status(&server, &create, 404)}[0]), 1003);

    fake_clock_advance(&server.clock, 1);
    const char *by_rid =
        arena_cstr(&server.arena, arena_format(&server.arena, "/%.*s", SLICE_ARG(self)));
    FakeAnswer read = expect_status(&server, &(Ask){"GET", by_rid}, 200);
    /* Each answer has a token of its own. */
    assert_false(slice_equal(text_of(body_of(&server, &read), "_token"), text_of(body, "_token")));

    Ask put = {"PUT", PERMISSIONS "/p",
               "{'id':'q','permissionMode':'All','resource':'dbs/db/colls/c'}"};
    FakeAnswer replaced = expect_status(&server, &put, 200);
    assert_slice(text_of(body_of(&server, &replaced), "_rid"), rid);
    assert_false(holds(replaced.body, "resourcePartitionKey"));
    (void)expect_status(&server, &put, 404);
    Ask upsert = {"POST",
                  PERMISSIONS,
                  "{'id':'q','permissionMode':'Read','resource':'dbs/db/colls/c'}",
                  {{"x-ms-documentdb-is-upsert", "True"}}};
    (void)expect_status(&server, &upsert, 200);
    upsert.body = "{'id':'new','permissionMode':'Read','resource':'dbs/db/colls/c'}";
    (void)expect_status(&server, &upsert, 409); /* the resource is granted already */
    upsert.body =
        "{'id':'new','permissionMode':'Read','resource':'dbs/AQAAAA==/colls/AQAAAJ0fgTc='}";
    (void)expect_status(&server, &upsert, 201);
    FakeAnswer list = expect_status(&server, &(Ask){"GET", PERMISSIONS}, 200);
    expect_holds(list.body, "\"Permissions\":[{\"id\":\"q\"");
    expect_holds(list.body, "\"_count\":2}");
    (void)expect_status(&server, &(Ask){"DELETE", PERMISSIONS "/q"}, 204);
    (void)expect_status(&server, &(Ask){"GET", PERMISSIONS "/q"}, 404);
    (void)expect_status(&server, &(Ask){"DELETE", USERS "/u"}, 204);
    (void)expect_status(&server, &(Ask){"GET", PERMISSIONS "/new"}, 404);
}

static void bodies_that_say_too_little_are_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_user(&server);
    static const char *const rows[] = {
        "{'id':'p','permissionMode':'Read'}",
        "{'id':'p','resource':'dbs/db/colls/c'}",
        "{'permissionMode':'Read','resource':'dbs/db/colls/c'}",
        "{'id':'p','permissionMode':'Write','resource':'dbs/db/colls/c'}",
        "{'id':'p','permissionMode':'Read','resource':'dbs/db'}",
        "{'id':'p','permissionMode':'Read','resource':'dbs/db/users/u'}",
        "{'id':'p','permissionMode':'Read','resource':'dbs/db/colls/c','resourcePartitionKey':'x'}",
        "{'id':'p'",
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)expect_status(&server, &(Ask){"POST", PERMISSIONS, rows[i]}, 400);
    FakeAnswer key = expect_status(&server, &(Ask){"POST", PERMISSIONS, rows[6]}, 400);
    expect_holds(key.body, "Partition key supplied is not valid.");
    FakeAnswer list = expect_status(&server, &(Ask){"GET", PERMISSIONS}, 200);
    expect_holds(list.body, "\"_count\":0}");
}

static void the_life_of_tokens_has_bounds(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_user(&server);
    (void)make_token(&server, "u", "p", "Read", "'resource':'dbs/db/colls/c'");
    static const struct {
        const char *seconds;
        int64_t lives_s; /* 0 if it is refused */
    } rows[] = {
        {"", 3600},
        {"10", 10},
        {"86400", 86400},
        {"9", 0},
        {"0", 0},
        {"86401", 0},
        {"-10", 0},
        {"1e2", 0},
        {"60.5", 0},
        {"x", 0},
        {"99999999999999999999", 0},
    };
    static const Ask asks[] = {
        {"GET", PERMISSIONS "/p"},
        {"GET", PERMISSIONS},
        {"PUT", PERMISSIONS "/p", "{'id':'p','permissionMode':'Read','resource':'dbs/db/colls/c'}"},
    };
    uint64_t now_us = clock_wall_us(&server.clock.clock);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(asks); j++) {
            Ask a = asks[j];
            a.headers[0] = (Header){"x-ms-documentdb-expiry-seconds", rows[i].seconds};
            print_message("%s of %s\n", rows[i].seconds, a.path);
            FakeAnswer answer = expect_status(&server, &a, rows[i].lives_s == 0 ? 400 : 200);
            if (rows[i].lives_s == 0) {
                expect_holds(answer.body, "x-ms-documentdb-expiry-seconds");
                continue;
            }
            Json body = body_of(&server, &answer);
            if (j == 1) {
                JsonIter it = json_iter(json_get(body, SLICE("Permissions")));
                assert_true(json_next(&it));
                body = it.value;
            }
            const char *token = arena_cstr(&server.arena, text_of(body, "_token"));
            uint64_t life_us = (uint64_t)rows[i].lives_s * 1000000;
            fake_clock_set_wall(&server.clock, now_us + life_us - 1);
            (void)expect_with(&server, (Ask){"GET", "/"}, token, 200);
            fake_clock_set_wall(&server.clock, now_us + life_us);
            (void)expect_with(&server, (Ask){"GET", "/"}, token, 403);
            fake_clock_set_wall(&server.clock, now_us);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_user_is_made_read_renamed_and_deleted),
        cmocka_unit_test(an_upsert_goes_by_the_id_alone),
        cmocka_unit_test(pages_are_exact),
        cmocka_unit_test(a_permission_is_made_read_replaced_and_deleted),
        cmocka_unit_test(bodies_that_say_too_little_are_refused),
        cmocka_unit_test(the_life_of_tokens_has_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
