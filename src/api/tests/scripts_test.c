/* scripts_test.c - requests on stored procedures, triggers and user-defined functions. */
#include "api/tests/testing_int.h"

#define COLL "/dbs/db/colls/c"

static const struct {
    const char *feed;  /* its path */
    const char *more;  /* what its body has besides 'id' and 'body' */
    const char *array; /* its name in feeds */
    const char *quota; /* its name in the headers of quotas, and how many there may be */
    const char *usage; /* the same, of one that there is */
} KINDS[] = {
    {COLL "/sprocs", "", "StoredProcedures", "storedProcedures=100;", "storedProcedures=1;"},
    {COLL "/triggers", ",'triggerType':'pre','triggerOperation':'create'", "Triggers",
     "triggers=100;", "triggers=1;"},
    {COLL "/udfs", "", "UserDefinedFunctions", "functions=50;", "functions=1;"},
};

static const char *script_row(FakeServer *server, size_t kind, const char *id, const char *text)
{
    return arena_cstr(&server->arena, arena_format(&server->arena, "{'id':'%s','body':'%s'%s}", id,
                                                   text, KINDS[kind].more));
}

static const char *path_of(FakeServer *server, size_t kind, const char *name)
{
    return arena_cstr(&server->arena,
                      arena_format(&server->arena, "%s/%s", KINDS[kind].feed, name));
}

static void expect_headers(const FakeAnswer *answer, size_t kind)
{
    expect_header(answer, "x-ms-resource-quota", KINDS[kind].quota);
    expect_header(answer, "x-ms-resource-usage", KINDS[kind].usage);
    expect_header(answer, "x-ms-session-token", "");
    assert_int_equal(fake_header(answer, "etag").len, RESOURCE_ETAG_LEN);
    assert_true(fake_header(answer, "x-ms-request-charge").len > 0);
    assert_false(slice_equal(fake_header(answer, "x-ms-request-charge"), SLICE("0")));
}

static void a_script_is_made_read_replaced_and_deleted(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t kind = 0; kind < ARRAY_COUNT(KINDS); kind++) {
        const char *row = script_row(&server, kind, "s", "function () {\\r\\n  }  ");
        /* A partition key is ignored, as SDKs expect. */
        FakeAnswer made =
            expect_status(&server, &(Ask){"POST", KINDS[kind].feed, row, {PK("['x']")}}, 201);
        expect_headers(&made, kind);
        expect_holds(made.body, "\"body\":\"function () {\\r\\n  }  \"");
        Slice rid = text_of(body_of(&server, &made), "_rid");
        (void)expect_status(&server, &(Ask){"POST", KINDS[kind].feed, row}, 409);

        const char *path = path_of(&server, kind, "s");
        FakeAnswer read = expect_status(&server, &(Ask){"GET", path}, 200);
        expect_headers(&read, kind);
        assert_slice(read.body, made.body);
        char database_rid[RID_DATABASE_LEN];
        rid_print_database(container_now(&server)->database, database_rid);
        Slice self = arena_format(&server.arena, "/dbs/%.*s/colls/%.*s%s/%.*s/", RID_DATABASE_LEN,
                                  database_rid, SLICE_ARG(container_now(&server)->info.rid),
                                  KINDS[kind].feed + strlen(COLL), SLICE_ARG(rid));
        FakeAnswer by_rid =
            expect_status(&server, &(Ask){"GET", arena_cstr(&server.arena, self)}, 200);
        assert_slice(by_rid.body, made.body);
        const char *etag = arena_cstr(&server.arena, fake_header(&made, "etag"));
        FakeAnswer same =
            expect_status(&server, &(Ask){"GET", path, NULL, {{"if-none-match", etag}}}, 304);
        assert_int_equal(same.body.len, 0);
        expect_headers(&same, kind);

        Ask replace = {"PUT", path, script_row(&server, kind, "s", "2")};
        replace.headers[0] = (Header){"if-match", etag};
        FakeAnswer replaced = expect_status(&server, &replace, 200);
        expect_headers(&replaced, kind);
        expect_holds(replaced.body, "\"body\":\"2\"");
        assert_slice(text_of(body_of(&server, &replaced), "_rid"), rid);
        FakeAnswer stale = expect_status(&server, &replace, 412);
        expect_holds(stale.body, "PreconditionFailed");
        (void)expect_status(&server, &(Ask){"DELETE", path, NULL, {{"if-match", etag}}}, 412);

        Ask rename = {"PUT", path, script_row(&server, kind, "renamed", "3")};
        (void)expect_status(&server, &rename, 200);
        (void)expect_status(&server, &(Ask){"GET", path}, 404);
        const char *renamed = path_of(&server, kind, "renamed");
        FakeAnswer gone = expect_status(&server, &(Ask){"DELETE", renamed}, 204);
        assert_int_equal(gone.body.len, 0);
        assert_false(slice_equal(fake_header(&gone, "x-ms-request-charge"), SLICE("0")));
        static const char *const methods[] = {"GET", "PUT", "DELETE"};
        for (size_t i = 0; i < ARRAY_COUNT(methods); i++) {
            FakeAnswer missing = expect_status(
                &server, &(Ask){methods[i], renamed, i == 1 ? replace.body : NULL}, 404);
            assert_int_equal(sub_status_of(&missing), 0);
        }
    }
}

static void an_upsert_replaces(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t kind = 0; kind < ARRAY_COUNT(KINDS); kind++) {
        Ask a = {"POST", KINDS[kind].feed, script_row(&server, kind, "s", "1")};
        a.headers[0] = (Header){"x-ms-documentdb-is-upsert", "True"};
        (void)expect_status(&server, &a, 201);
        a.body = script_row(&server, kind, "s", "2");
        FakeAnswer answer = expect_status(&server, &a, 200);
        expect_headers(&answer, kind);
        expect_holds(answer.body, "\"body\":\"2\"");
    }
}

static void scripts_are_listed_and_queried(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t kind = 0; kind < ARRAY_COUNT(KINDS); kind++) {
        Ask list = {"GET", KINDS[kind].feed, .headers = {{"x-ms-max-item-count", "2"}}};
        FakeAnswer empty = expect_status(&server, &list, 200);
        Slice rid = container_now(&server)->info.rid;
        assert_slice(empty.body,
                     arena_format(&server.arena, "{\"_rid\":\"%.*s\",\"%s\":[],\"_count\":0}",
                                  SLICE_ARG(rid), KINDS[kind].array));
        static const char *const ids[] = {"a", "b", "ab"};
        for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
            (void)expect_status(
                &server,
                &(Ask){"POST", KINDS[kind].feed, script_row(&server, kind, ids[i], "text")}, 201);
        FakeAnswer first = expect_status(&server, &list, 200);
        expect_header(&first, "x-ms-item-count", "2");
        expect_holds(first.body, "\"id\":\"a\"");
        expect_holds(first.body, "\"id\":\"b\"");
        list.headers[1] =
            (Header){"x-ms-continuation",
                     arena_cstr(&server.arena, fake_header(&first, "x-ms-continuation"))};
        FakeAnswer second = expect_status(&server, &list, 200);
        expect_holds(second.body, "\"id\":\"ab\"");
        expect_header(&second, "x-ms-continuation", "");
        /* The token of another kind's feed. */
        list.path = KINDS[(kind + 1) % ARRAY_COUNT(KINDS)].feed;
        (void)expect_status(&server, &list, 400);

        static const struct {
            const char *query, *expected;
        } rows[] = {
            {"{'query':'SELECT VALUE r.id FROM root r'}", "[\"a\",\"b\",\"ab\"]"},
            {"{'query':'SELECT VALUE r.id FROM root r WHERE r.id=@id','parameters':[{'name':'@id',"
             "'value':'b'}]}",
             "[\"b\"]"},
            {"{'query':'SELECT VALUE T.id FROM T WHERE STARTSWITH(T.id,\\'a\\') ORDER BY T.id DESC'"
             "}",
             "[\"ab\",\"a\"]"},
            {"{'query':'SELECT TOP 1 c.body, IS_STRING(c._etag) AS e FROM c'}",
             "[{\"body\":\"text\",\"e\":true}]"},
            {"{'query':'SELECT VALUE COUNT(1) FROM c'}", "[3]"},
        };
        for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
            Ask query = {"POST", KINDS[kind].feed, rows[i].query};
            query.headers[0] = (Header){"x-ms-documentdb-isquery", "True"};
            FakeAnswer answer = expect_status(&server, &query, 200);
            expect_holds(
                answer.body,
                arena_cstr(&server.arena, arena_format(&server.arena, "\"%s\":%s",
                                                       KINDS[kind].array, rows[i].expected)));
            Ask read_only = query;
            read_only.key = FAKE_READ_KEY;
            (void)expect_status(&server, &read_only, 200);
        }
    }
}

/* The path as clients encode it, and what the body has. */
static void names_may_be_odd(void **state)
{
    (void)state;
    static const struct {
        const char *id, *path;
    } rows[] = {
        {"sample sproc", "sample%20sproc"},
        {" leading", "%20leading"},
        {"\xc3\xa9\xe2\x82\xac", "%C3%A9%E2%82%AC"},
        {",=.:~+-@()^${}[]!_", ",=.:~+-@()%5E$%7B%7D%5B%5D!_"},
        {"a%20b", "a%2520b"},
        {"%E9%AB%98", "%25E9%25AB%2598"},
        {"8wGqAJI0VgcBAAAAAAAAgA==", "8wGqAJI0VgcBAAAAAAAAgA%3D%3D"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t kind = 0; kind < ARRAY_COUNT(KINDS); kind++) {
            (void)expect_status(
                &server,
                &(Ask){"POST", KINDS[kind].feed, script_row(&server, kind, rows[i].id, "")}, 201);
            const char *path = path_of(&server, kind, rows[i].path);
            FakeAnswer read = expect_status(&server, &(Ask){"GET", path}, 200);
            assert_slice(text_of(body_of(&server, &read), "id"), slice_from_cstr(rows[i].id));
            (void)expect_status(&server, &(Ask){"DELETE", path}, 204);
        }
    }
}

static void what_cannot_be_a_script_is_refused(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
        const char *code, *says;
    } rows[] = {
        {{"POST", COLL "/sprocs", "{"}, 400, "BadRequest", ""},
        {{"POST", COLL "/sprocs", "[]"}, 400, "BadRequest", "object"},
        {{"POST", COLL "/sprocs", "{'id':'s'}"},
         400,
         "BadRequest",
         "required properties - 'body; ' - are missing"},
        {{"POST", COLL "/udfs", "{'body':'s'}"},
         400,
         "BadRequest",
         "required properties - 'id; ' - are missing"},
        {{"POST", COLL "/triggers", "{'id':'t','body':'','triggerType':'Pre'}"},
         400,
         "BadRequest",
         "required properties - 'triggerOperation; ' - are missing"},
        {{"POST", COLL "/triggers",
          "{'id':'t','body':'','triggerType':'x','triggerOperation':'All'}"},
         400,
         "BadRequest",
         "One of the specified inputs is invalid"},
        {{"POST", COLL "/sprocs", "{'id':'a?b','body':''}"}, 400, "BadRequest", "must not contain"},
        {{"PUT", COLL "/sprocs/there", "{'id':'there'}"}, 400, "BadRequest", "'body; '"},
        {{"PUT", COLL "/sprocs/there", "{'id':'taken','body':''}"},
         409,
         "Conflict",
         "already exists"},
        {{"PATCH", COLL "/sprocs/there", "{}"}, 405, "MethodNotAllowed", "PATCH"},
        {{"POST", COLL "/udfs/none", "[]"}, 404, "NotFound", "udfs/none"},
        {{"POST", COLL "/sprocs/none", "[]"}, 404, "NotFound", "sprocs/none"},
        {{"POST", COLL "/sprocs/there", "[]"}, 400, "BadRequest", "PartitionKey value must be"},
        {{"POST", COLL "/sprocs/there", .key = FAKE_READ_KEY}, 401, "Unauthorized", ""},
        {{"POST", COLL "/sprocs", "{'id':'s','body':''}", .key = FAKE_READ_KEY},
         401,
         "Unauthorized",
         ""},
        {{"DELETE", COLL "/sprocs/there", .key = FAKE_READ_KEY}, 401, "Unauthorized", ""},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    (void)expect_status(&server, &(Ask){"POST", COLL "/sprocs", "{'id':'there','body':''}"}, 201);
    (void)expect_status(&server, &(Ask){"POST", COLL "/sprocs", "{'id':'taken','body':''}"}, 201);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].status);
        Json body = body_of(&server, &answer);
        assert_slice(text_of(body, "code"), slice_from_cstr(rows[i].code));
        if (rows[i].says[0] != '\0')
            expect_holds(text_of(body, "message"), rows[i].says);
    }
}

static void scripts_go_with_their_container(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t kind = 0; kind < ARRAY_COUNT(KINDS); kind++)
        (void)expect_status(
            &server, &(Ask){"POST", KINDS[kind].feed, script_row(&server, kind, "s", "")}, 201);
    Ask container = {"GET", COLL, .headers = {{"x-ms-documentdb-populatequotainfo", "True"}}};
    FakeAnswer with = expect_status(&server, &container, 200);
    expect_holds(fake_header(&with, "x-ms-resource-usage"),
                 "functions=1;storedProcedures=1;triggers=1;");
    (void)expect_status(&server, &(Ask){"DELETE", COLL}, 204);
    for (int again = 0; again < 2; again++) {
        for (size_t kind = 0; kind < ARRAY_COUNT(KINDS); kind++) {
            const char *row = script_row(&server, kind, "s", "");
            const char *path = path_of(&server, kind, "s");
            const Ask rows[] = {
                {"GET", KINDS[kind].feed},
                {"POST", KINDS[kind].feed, row},
                {"POST",
                 KINDS[kind].feed,
                 "{'query':'SELECT * FROM c'}",
                 {{"x-ms-documentdb-isquery", "True"}}},
                {"GET", path},
                {"PUT", path, row},
                {"DELETE", path},
            };
            for (size_t i = 0; i < ARRAY_COUNT(rows) && again == 0; i++) {
                FakeAnswer answer = expect_status(&server, &rows[i], 404);
                assert_int_equal(sub_status_of(&answer), 1003);
            }
            if (again == 1)
                (void)expect_status(&server, &(Ask){"GET", path}, 404);
        }
        if (again == 0)
            (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    }
}

static void a_large_script_comes_back_whole(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    size_t len = BODY_BYTES_MAX;
    char *text = MEM_NEW_ARRAY(char, len + 2);
    memset(text, 'x', len);
    memcpy(text, "{'id':'s','body':'", 18);
    memcpy(text + len - 2, "'}", 2);
    (void)expect_status(&server, &(Ask){"POST", COLL "/sprocs", text}, 201);
    FakeAnswer read = expect_status(&server, &(Ask){"GET", COLL "/sprocs/s"}, 200);
    assert_int_equal(text_of(body_of(&server, &read), "body").len, len - 20);
    memcpy(text + len - 2, "x'}", 3);
    FakeAnswer refused = expect_status(&server, &(Ask){"POST", COLL "/udfs", text}, 413);
    expect_holds(refused.body, "RequestEntityTooLarge");
    /* Lists end their pages by bytes too. */
    memcpy(text + len - 2, "'}\0", 3);
    for (size_t i = 0; i < 3; i++) {
        text[7] = "123"[i];
        (void)expect_status(&server, &(Ask){"POST", COLL "/sprocs", text}, 201);
    }
    mem_free(text);
    Ask list = {"GET", COLL "/sprocs"};
    size_t pages = 0;
    size_t count = 0;
    do {
        FakeAnswer page = expect_status(&server, &list, 200);
        count += json_count(json_get(body_of(&server, &page), SLICE("StoredProcedures")));
        list.headers[0] =
            (Header){"x-ms-continuation",
                     arena_cstr(&server.arena, fake_header(&page, "x-ms-continuation"))};
        pages++;
    } while (list.headers[0].value[0] != '\0');
    assert_int_equal(count, 4);
    assert_true(pages > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_script_is_made_read_replaced_and_deleted),
        cmocka_unit_test(an_upsert_replaces),
        cmocka_unit_test(scripts_are_listed_and_queried),
        cmocka_unit_test(names_may_be_odd),
        cmocka_unit_test(what_cannot_be_a_script_is_refused),
        cmocka_unit_test(scripts_go_with_their_container),
        cmocka_unit_test(a_large_script_comes_back_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
