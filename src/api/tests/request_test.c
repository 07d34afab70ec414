/* request_test.c - databases, containers, and every way to be refused (I1, I4). */
#include "api/tests/testing_int.h"

static void a_database_lives_from_its_creation_to_its_deletion(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    FakeAnswer created = expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'D b'}"}, 201);
    expect_header(&created, "content-type", "application/json");
    Json body = body_of(&server, &created);
    assert_slice(text_of(body, "id"), SLICE("D b"));
    assert_slice(text_of(body, "_etag"), fake_header(&created, "etag"));
    FakeAnswer read = expect_status(&server, &(Ask){"GET", "/dbs/D%20b/"}, 200);
    assert_slice(read.body, created.body);
    /* By its resource id, too. */
    Slice by_rid = arena_format(&server.arena, "/dbs/%.*s", SLICE_ARG(text_of(body, "_rid")));
    read = expect_status(&server, &(Ask){"GET", by_rid.ptr}, 200);
    assert_slice(read.body, created.body);
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'D b'}"}, 409);
    FakeAnswer deleted = expect_status(&server, &(Ask){"DELETE", "/dbs/D%20b"}, 204);
    assert_int_equal(deleted.body.len, 0);
    FakeAnswer gone = expect_status(&server, &(Ask){"GET", "/dbs/D%20b"}, 404);
    expect_header(&gone, "x-ms-substatus", "");
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/D%20b"}, 404);
}

static void a_container_lives_from_its_creation_to_its_deletion(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer read = expect_status(&server, &(Ask){"GET", "/dbs/db/colls/c"}, 200);
    Json body = body_of(&server, &read);
    assert_slice(text_of(body, "_docs"), SLICE("docs/"));
    expect_header(&read, "x-ms-alt-content-path", "dbs/db");
    assert_slice(text_of(body, "_etag"), fake_header(&read, "etag"));

    FakeAnswer replaced = expect_status(
        &server,
        &(Ask){"PUT", "/dbs/db/colls/c",
               "{'id':'c','partitionKey':{'paths':['/pk'],'version':2},'defaultTtl':60}"},
        200);
    expect_holds(replaced.body, "\"defaultTtl\":60");
    assert_false(slice_equal(fake_header(&replaced, "etag"), fake_header(&read, "etag")));
    (void)expect_status(&server,
                        &(Ask){"PUT", "/dbs/db/colls/c",
                               "{'id':'c','partitionKey':{'paths':['/other'],'version':2}}"},
                        400);
    (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 409);
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db/colls/c"}, 204);
    (void)expect_status(&server, &(Ask){"GET", "/dbs/db/colls/c"}, 404);
    (void)expect_status(&server, &(Ask){"PUT", "/dbs/db/colls/c", CONTAINER}, 404);
}

static void a_link_by_resource_id_reaches_the_same(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer read = expect_status(&server, &(Ask){"GET", "/dbs/db/colls/c"}, 200);
    Slice self = text_of(body_of(&server, &read), "_self");
    Slice path = arena_format(&server.arena, "/%.*s", SLICE_ARG(self));
    FakeAnswer again = expect_status(&server, &(Ask){"GET", path.ptr}, 200);
    assert_slice(again.body, read.body);
    path = arena_format(&server.arena, "/%.*spkranges", SLICE_ARG(self));
    FakeAnswer ranges = expect_status(&server, &(Ask){"GET", path.ptr}, 200);
    expect_holds(ranges.body, "\"maxExclusive\":\"FF\"");
    /* A container's id under another database is no id of its own. */
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'other'}"}, 201);
    Slice rid = text_of(body_of(&server, &read), "_rid");
    path = arena_format(&server.arena, "/dbs/other/colls/%.*s", SLICE_ARG(rid));
    (void)expect_status(&server, &(Ask){"GET", path.ptr}, 404);
}

static void what_is_missing_is_told_from_what_owns_it(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        const char *sub;
    } rows[] = {
        {{"GET", "/dbs/none"}, ""},
        {{"DELETE", "/dbs/none"}, ""},
        {{"GET", "/dbs/db/colls/none"}, ""},
        {{"PUT", "/dbs/db/colls/none", CONTAINER}, ""},
        {{"GET", "/offers/AAAA"}, ""},
        {{"GET", "/offers/none"}, ""},
        {{"GET", "/dbs/db/colls/c/pkranges/7"}, ""},
        {{"GET", "/dbs/db/colls/c/pkranges/none"}, ""},
        {{"GET", "/dbs/none/colls"}, "1003"},
        {{"POST", "/dbs/none/colls", CONTAINER}, "1003"},
        {{"GET", "/dbs/none/colls/c"}, "1003"},
        {{"GET", "/dbs/db/colls/none/docs/x"}, "1003"},
        {{"POST", "/dbs/db/colls/none/docs", "{}"}, "1003"},
        {{"GET", "/dbs/db/colls/none/pkranges"}, "1003"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        print_message("%s %s\n", rows[i].ask.method, rows[i].ask.path);
        FakeAnswer answer = expect_status(&server, &rows[i].ask, 404);
        expect_header(&answer, "x-ms-substatus", rows[i].sub);
        assert_slice(text_of(body_of(&server, &answer), "code"), SLICE("NotFound"));
        expect_holds(answer.body, "Resource Not Found");
    }
}

typedef struct Refusal {
    Ask ask;
    int status;
    const char *code, *says;
} Refusal;

static void expect_refusals(const Refusal *rows, size_t count)
{
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < count; i++) {
        print_message("%s %s: %s\n", rows[i].ask.method, rows[i].ask.path, rows[i].says);
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].status);
        Json body = body_of(&server, &answer);
        assert_slice(text_of(body, "code"), slice_from_cstr(rows[i].code));
        Slice message = text_of(body, "message");
        expect_holds(message, rows[i].says);
        Slice activity = fake_header(&answer, "x-ms-activity-id");
        expect_holds(
            message,
            arena_format(&server.arena, "\r\nActivityId: %.*s, orrery/", SLICE_ARG(activity)).ptr);
        expect_header(&answer, "content-type", "application/json");
        fake_server_reset(&server);
    }
}

static void bodies_and_headers_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    static const Refusal ROWS[] = {
        {{"POST", "/dbs", "{'id':"}, 400, "BadRequest", ""},
        {{"POST", "/dbs", "[1]"}, 400, "BadRequest", "JSON object"},
        {{"POST", "/dbs", ""}, 400, "BadRequest", ""},
        {{"POST", "/dbs", "{'id':'a/b'}"}, 400, "BadRequest", "id"},
        {{"POST", "/dbs", "{'id':'x'}", {{"x-ms-offer-throughput", "many"}}},
         400,
         "BadRequest",
         "'many'"},
        {{"POST", "/dbs", "{'id':'x'}", {{"x-ms-offer-throughput", "300"}}},
         400,
         "BadRequest",
         "between 400 and 1000000"},
        {{"POST",
          "/dbs",
          "{'id':'x'}",
          {{"x-ms-cosmos-offer-autopilot-settings", "{'maxThroughput':'4000'}"}}},
         400,
         "BadRequest",
         "maxThroughput"},
        {{"POST", "/dbs", "{'id':'x'}", {{"x-ms-cosmos-offer-autopilot-settings", "{"}}},
         400,
         "BadRequest",
         ""},
        {{"POST",
          "/dbs",
          "{'id':'x'}",
          {{"x-ms-offer-throughput", "400"},
           {"x-ms-cosmos-offer-autopilot-settings", "{'maxThroughput':4000}"}}},
         400,
         "BadRequest",
         "not both"},
        {{"POST", "/dbs/db/colls", "{'id':'x'}"}, 400, "BadRequest", "partitionKey"},
        {{"POST", "/dbs/db/colls",
          "{'id':'x','partitionKey':{'paths':['/pk']},'computedProperties':[{'name':'cp','query':"
          "'SELECT * FROM c'}]}"},
         400,
         "BadRequest",
         "omputed property 'cp'"},
        {{"GET", "/dbs", NULL, {{"x-ms-version", "2013-01-01"}}}, 400, "BadRequest", "2013-01-01"},
        {{"GET", "/dbs", NULL, {{"x-ms-version", "2020-13-01"}}},
         400,
         "BadRequest",
         "x-ms-version"},
        {{"GET", "/dbs", NULL, {{"x-ms-version", "2020-07-15x"}}}, 400, "BadRequest", "-15x"},
        {{"GET", "/dbs", NULL, {{"x-ms-max-item-count", "-2"}}}, 400, "BadRequest", "'-2'"},
        {{"GET", "/dbs", NULL, {{"x-ms-max-item-count", "ten"}}}, 400, "BadRequest", "'ten'"},
        {{"GET", "/dbs", NULL, {{"x-ms-continuation", "L1"}}},
         400,
         "BadRequest",
         "Invalid Continuation Token"},
        {{"GET", "/dbs/db/colls/c/pkranges", NULL, {{"x-ms-continuation", "x"}}},
         400,
         "BadRequest",
         "Invalid Continuation Token"},
    };
    expect_refusals(ROWS, ARRAY_COUNT(ROWS));
}

static void every_refusal_has_its_status(void **state)
{
    (void)state;
    static const Refusal ROWS[] = {
        /* a path that cannot be read names nothing that could be signed */
        {{"GET", "/dbs/%zz", .key = ""}, 400, "BadRequest", "hexadecimal"},
        {{"GET", "/nothing", .key = ""}, 404, "NotFound", "names no resource"},
        {{"PUT", "/dbs"}, 405, "MethodNotAllowed", "PUT"},
        {{"DELETE", "/dbs"}, 405, "MethodNotAllowed", "DELETE"},
        {{"TRACE", "/dbs"}, 405, "MethodNotAllowed", "TRACE"},
        {{"PUT", "/dbs/db", "{}"}, 405, "MethodNotAllowed", "PUT"},
        {{"PATCH", "/dbs/db", "{}"}, 405, "MethodNotAllowed", "PATCH"},
        {{"POST", "/dbs/db", "{}"}, 405, "MethodNotAllowed", "POST"},
        {{"POST", "/", "{}"}, 405, "MethodNotAllowed", "POST"},
        {{"POST", "/offers", "{}"}, 405, "MethodNotAllowed", "POST"},
        {{"DELETE", "/dbs/db/colls/c/pkranges/0"}, 405, "MethodNotAllowed", "DELETE"},
        {{"GET", "/dbs/db/users/u"}, 404, "NotFound", "users/u"},
        {{"GET", "/dbs/db/colls/c/conflicts/x"}, 404, "NotFound", "conflicts/x"},
        {{"GET", "/dbs/db/clientencryptionkeys/k"}, 404, "NotFound", "clientencryptionkeys/k"},
        {{"POST", "/dbs/db/clientencryptionkeys", "{'id':'k'}"},
         400,
         "BadRequest",
         "encryptionAlgorithm"},
        {{"POST", "/dbs/db/colls",
          "{'id':'e','partitionKey':{'paths':['/pk']},'clientEncryptionPolicy':{'includedPaths':"
          "[{'path':'/','clientEncryptionKeyId':'unknownKey'}]}}"},
         400,
         "BadRequest",
         "ClientEncryptionKey with id '[unknownKey]' does not exist."},
        {{"POST", "/dbs/db/colls/c/operations/collectiontruncate"},
         501,
         "NotImplemented",
         "collectiontruncate"},
        {{"DELETE", "/dbs/db", NULL, {{"if-match", "'old'"}}},
         412,
         "PreconditionFailed",
         "pre-condition is not met"},
        {{"PUT", "/dbs/db/colls/c", CONTAINER, {{"if-match", "'old'"}}},
         412,
         "PreconditionFailed",
         "pre-condition is not met"},
    };
    expect_refusals(ROWS, ARRAY_COUNT(ROWS));
}

static void a_body_beyond_its_bound_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    size_t len = BODY_BYTES_MAX + 1;
    char *text = MEM_NEW_ARRAY(char, len + 1);
    memset(text, ' ', len);
    memcpy(text, "{\"id\":\"x\"}", 10);
    FakeAnswer answer = expect_status(&server, &(Ask){"POST", "/dbs", text}, 413);
    expect_holds(answer.body, "RequestEntityTooLarge");
    text[len - 1] = '\0';
    (void)expect_status(&server, &(Ask){"POST", "/dbs", text}, 201);
    mem_free(text);
}

static void nobody_gets_in_without_a_key(void **state)
{
    (void)state;
    static const Ask rows[] = {
        {"GET", "/", .key = ""},
        {"GET", "/dbs", .key = ""},
        {"POST", "/dbs", "{'id':'x'}", .key = ""},
        {"GET", "/dbs/db", .key = ""},
        {"GET", "/dbs/none", .key = ""}, /* not even whether it is there */
        {"GET", "/dbs/db/colls/c/pkranges", .key = ""},
        {"DELETE", "/dbs/db", .key = ""},
        {"GET", "/offers", .key = ""},
        {"GET", "/dbs", .key = "d3Jvbmcta2V5"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i], 401);
        assert_slice(text_of(body_of(&server, &answer), "code"), SLICE("Unauthorized"));
        expect_header(&answer, "x-ms-substatus", rows[i].key[0] == '\0' ? "5000" : "");
    }
    assert_int_equal(metrics_total(&server.metrics, METRIC_REQUESTS_UNAUTHORIZED),
                     ARRAY_COUNT(rows));
    (void)expect_status(&server, &(Ask){"GET", "/dbs/db"}, 200);
}

static void a_read_only_key_reads_and_queries(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"GET", "/"}, 200},
        {{"GET", "/dbs"}, 200},
        {{"HEAD", "/dbs/db"}, 200},
        {{"GET", "/dbs/db/colls/c/pkranges"}, 200},
        {{"POST", "/dbs", "{'query':'SELECT * FROM c'}", {{"x-ms-documentdb-isquery", "TRUE"}}},
         200},
        {{"POST",
          "/dbs/db/colls",
          "{'query':'SELECT * FROM c'}",
          {{"content-type", "application/query+json; charset=utf-8"}}},
         200},
        {{"POST", "/dbs", "{'id':'x'}"}, 401},
        {{"POST", "/dbs", "{'id':'x'}", {{"x-ms-documentdb-isquery", "false"}}}, 401},
        {{"PUT", "/dbs/db/colls/c", CONTAINER}, 401},
        {{"DELETE", "/dbs/db"}, 401},
        {{"DELETE", "/dbs/none"}, 401}, /* not even whether it is there */
        {{"PATCH", "/dbs/db/colls/c/docs/x", "{}"}, 401},
        {{"POST", "/dbs/db/colls/c/sprocs/x", "[]"}, 401},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = rows[i].ask;
        a.key = FAKE_READ_KEY;
        (void)expect_status(&server, &a, rows[i].status);
    }
}

static void a_signature_is_good_for_a_quarter_of_an_hour(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeRequest request = {
        .method = SLICE("GET"), .path = SLICE("/dbs/db"), .key = SLICE(FAKE_KEY)};
    char date[DATE_LEN];
    date_print(FAKE_BEGIN_S, date);
    HttpHeader headers[] = {
        {SLICE("authorization"), fake_sign(&server, &request, slice_make(date, DATE_LEN))},
        {SLICE("x-ms-date"), slice_make(date, DATE_LEN)},
    };
    request.key = SLICE_EMPTY;
    request.headers = headers;
    request.header_count = 2;
    FakeAnswer answer;
    fake_request(&server, &request, &answer);
    assert_int_equal(answer.status, 200);
    fake_clock_advance(&server.clock, UINT64_C(1801) * 1000000);
    fake_request(&server, &request, &answer);
    assert_int_equal(answer.status, 403);
    expect_holds(answer.body, "token expiry time");
}

static void a_reader_that_has_the_version_gets_304(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer offers = expect_status(&server, &(Ask){"GET", "/offers"}, 200);
    Slice offer =
        text_of(json_at(json_get(body_of(&server, &offers), SLICE("Offers")), 0), "_self");
    const char *paths[] = {"/dbs/db", "/dbs/db/colls/c",
                           arena_format(&server.arena, "/%.*s", SLICE_ARG(offer)).ptr};
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        FakeAnswer read = expect_status(&server, &(Ask){"GET", paths[i]}, 200);
        const char *etag = arena_cstr(&server.arena, fake_header(&read, "etag"));
        FakeAnswer again = expect_status(
            &server, &(Ask){"GET", paths[i], .headers = {{"if-none-match", etag}}}, 304);
        assert_int_equal(again.body.len, 0);
        expect_header(&again, "etag", etag);
        (void)expect_status(&server, &(Ask){"GET", paths[i], .headers = {{"if-none-match", "*"}}},
                            304);
        (void)expect_status(&server, &(Ask){"GET", paths[i], .headers = {{"if-none-match", "'x'"}}},
                            200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_database_lives_from_its_creation_to_its_deletion),
        cmocka_unit_test(a_container_lives_from_its_creation_to_its_deletion),
        cmocka_unit_test(a_link_by_resource_id_reaches_the_same),
        cmocka_unit_test(what_is_missing_is_told_from_what_owns_it),
        cmocka_unit_test(bodies_and_headers_that_cannot_be_read_are_refused),
        cmocka_unit_test(every_refusal_has_its_status),
        cmocka_unit_test(a_body_beyond_its_bound_is_refused),
        cmocka_unit_test(nobody_gets_in_without_a_key),
        cmocka_unit_test(a_read_only_key_reads_and_queries),
        cmocka_unit_test(a_signature_is_good_for_a_quarter_of_an_hour),
        cmocka_unit_test(a_reader_that_has_the_version_gets_304),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
