/* resource_feed_test.c - lists, queries and the range feed, page by page. */
#include "api/tests/testing_int.h"

static void a_list_comes_in_pages(void **state)
{
    (void)state;
    enum { COUNT = 7 };
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    for (int i = 0; i < COUNT; i++) {
        Slice body = arena_format(&server.arena, "{'id':'db%d'}", i);
        (void)expect_status(&server, &(Ask){"POST", "/dbs", body.ptr}, 201);
    }
    Ask a = {"GET", "/dbs", .headers = {{"x-ms-max-item-count", "3"}}};
    int seen = 0;
    for (int page = 0; page < 3; page++) {
        FakeAnswer answer = expect_status(&server, &a, 200);
        Json body = body_of(&server, &answer);
        assert_slice(text_of(body, "_rid"), SLICE(""));
        Json list = json_get(body, SLICE("Databases"));
        int64_t count = 0;
        assert_true(json_to_i64(json_get(body, SLICE("_count")), &count));
        assert_int_equal(count, json_count(list));
        expect_header(&answer, "x-ms-item-count", page < 2 ? "3" : "1");
        JsonIter it = json_iter(list);
        while (json_next(&it))
            assert_slice(text_of(it.value, "id"), arena_format(&server.arena, "db%d", seen++));
        Slice token = fake_header(&answer, "x-ms-continuation");
        assert_int_equal(token.len > 0, page < 2);
        a.headers[1] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
        if (page == 0) /* what is deleted meanwhile does not matter */
            (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db0"}, 204);
    }
    assert_int_equal(seen, COUNT);
    a = (Ask){"GET", "/dbs", .headers = {{"x-ms-max-item-count", "-1"}}};
    FakeAnswer answer = expect_status(&server, &a, 200);
    expect_header(&answer, "x-ms-item-count", "6");
    expect_header(&answer, "x-ms-continuation", "");
}

static void a_token_is_good_for_its_own_feed(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'other'}"}, 201);
    Ask first = {"GET", "/dbs", .headers = {{"x-ms-max-item-count", "1"}}};
    FakeAnswer answer = expect_status(&server, &first, 200);
    Slice token = fake_header(&answer, "x-ms-continuation");
    const char *text = arena_cstr(&server.arena, token);
    assert_true(token.len > 0);
    assert_true(token.len <= 1024);
    (void)expect_status(&server, &(Ask){"GET", "/offers", .headers = {{"x-ms-continuation", text}}},
                        400);
    (void)expect_status(
        &server, &(Ask){"GET", "/dbs/db/colls", .headers = {{"x-ms-continuation", text}}}, 400);
    (void)expect_status(&server,
                        &(Ask){"POST",
                               "/dbs",
                               "{'query':'SELECT * FROM c'}",
                               {{"x-ms-documentdb-isquery", "true"}, {"x-ms-continuation", text}}},
                        400);
    (void)expect_status(&server, &(Ask){"GET", "/dbs", .headers = {{"x-ms-continuation", text}}},
                        200);
}

static void a_query_answers_like_a_list(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (int i = 0; i < 5; i++) {
        Slice body = arena_format(&server.arena,
                                  "{'id':'q%d','partitionKey':{'paths':['/pk'],'version':2}}", i);
        (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", body.ptr}, 201);
    }
    Ask a = {"POST",
             "/dbs/db/colls",
             "{'query':'SELECT c.id FROM c WHERE STARTSWITH(c.id, @p) ORDER BY c.id DESC',"
             "'parameters':[{'name':'@p','value':'q'}]}",
             {{"x-ms-documentdb-isquery", "True"}, {"x-ms-max-item-count", "2"}}};
    FakeAnswer answer = expect_status(&server, &a, 200);
    expect_holds(answer.body, "\"DocumentCollections\":[{\"id\":\"q4\"},{\"id\":\"q3\"}],"
                              "\"_count\":2}");
    Slice token = fake_header(&answer, "x-ms-continuation");
    a.headers[2] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
    answer = expect_status(&server, &a, 200);
    expect_holds(answer.body, "[{\"id\":\"q2\"},{\"id\":\"q1\"}]");
    token = fake_header(&answer, "x-ms-continuation");
    a.headers[2] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
    answer = expect_status(&server, &a, 200);
    expect_holds(answer.body, "[{\"id\":\"q0\"}],\"_count\":1}");
    expect_header(&answer, "x-ms-continuation", "");
    /* What is wrong with it is said on the spot. */
    a.body = "{'query':'SELEC * FROM c'}";
    a.headers[2] = (Header){0};
    answer = expect_status(&server, &a, 400);
    expect_holds(answer.body, "SC1");
    a.body = "{'query':7}";
    (void)expect_status(&server, &a, 400);
}

/* A resource that is deleted between two pages does not hide another one. */
static void a_query_goes_on_where_it_was(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    for (int i = 0; i < 7; i++) {
        Slice body = arena_format(&server.arena, "{'id':'db%d'}", i);
        (void)expect_status(&server, &(Ask){"POST", "/dbs", body.ptr}, 201);
    }
    Ask a = {"POST",
             "/dbs",
             "{'query':'SELECT VALUE c.id FROM c WHERE c.id != @p',"
             "'parameters':[{'name':'@p','value':'db4'}]}",
             {{"x-ms-documentdb-isquery", "True"}, {"x-ms-max-item-count", "2"}}};
    static const struct {
        const char *page, *deleted;
    } rows[] = {
        {"[\"db0\",\"db1\"]", "/dbs/db1"}, {"[\"db2\",\"db3\"]", "/dbs/db5"}, {"[\"db6\"]", NULL}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &a, 200);
        expect_holds(answer.body, rows[i].page);
        Slice token = fake_header(&answer, "x-ms-continuation");
        assert_int_equal(token.len > 0, rows[i].deleted != NULL);
        a.headers[2] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
        if (rows[i].deleted != NULL)
            (void)expect_status(&server, &(Ask){"DELETE", rows[i].deleted}, 204);
    }
}

/* More results of one resource than a page takes. */
static void a_page_may_end_within_a_resource(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Slice other = SLICE("{'id':'d','partitionKey':{'paths':['/x','/y','/z'],"
                        "'kind':'MultiHash','version':2}}");
    (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", other.ptr}, 201);
    static const char *const sizes[] = {"1", "2", "3", "4"};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        Ask a = {"POST",
                 "/dbs/db/colls",
                 "{'query':'SELECT VALUE p FROM c JOIN p IN c.partitionKey.paths'}",
                 {{"x-ms-documentdb-isquery", "True"}, {"x-ms-max-item-count", sizes[i]}}};
        Slice all = SLICE_EMPTY;
        for (;;) {
            FakeAnswer answer = expect_status(&server, &a, 200);
            Json list = json_get(body_of(&server, &answer), SLICE("DocumentCollections"));
            assert_true(json_count(list) <= i + 1);
            JsonIter it = json_iter(list);
            while (json_next(&it))
                all = arena_format(&server.arena, "%.*s %.*s", SLICE_ARG(all),
                                   SLICE_ARG(json_string(it.value)));
            Slice token = fake_header(&answer, "x-ms-continuation");
            if (token.len == 0)
                break;
            a.headers[2] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
        }
        assert_slice(all, SLICE(" /pk /x /y /z"));
    }
}

/* A page looks at one resource at least, and ends when its time is over. */
static void a_page_of_a_query_takes_no_longer_than_it_may(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    for (int i = 0; i < 3; i++) {
        Slice body = arena_format(&server.arena, "{'id':'db%d'}", i);
        (void)expect_status(&server, &(Ask){"POST", "/dbs", body.ptr}, 201);
    }
    server.api->limits.us_max = 0;
    Ask a = {"POST",
             "/dbs",
             "{'query':'SELECT * FROM c WHERE c.none'}",
             {{"x-ms-documentdb-isquery", "True"}}};
    for (int i = 0; i < 3; i++) {
        FakeAnswer answer = expect_status(&server, &a, 200);
        expect_header(&answer, "x-ms-item-count", "0");
        Slice token = fake_header(&answer, "x-ms-continuation");
        assert_int_equal(token.len > 0, i < 2);
        a.headers[1] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
    }
}

/* A deferred answer must not rest on what the request saw. */
static void a_query_survives_the_deletion_of_what_it_reads(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    HttpHeader header = {SLICE("x-ms-documentdb-isquery"), SLICE("true")};
    FakeRequest query = {.method = SLICE("POST"),
                         .path = SLICE("/dbs/db/colls"),
                         .headers = &header,
                         .header_count = 1,
                         .body = SLICE("{\"query\":\"SELECT * FROM c\"}"),
                         .key = SLICE(FAKE_KEY)};
    for (int i = 0; i < 20; i++) {
        FakeAnswer queried;
        FakeExchange *exchange = fake_send(&server, &query, &queried);
        FakeAnswer deleted;
        FakeRequest delete = {
            .method = SLICE("DELETE"), .path = SLICE("/dbs/db"), .key = SLICE(FAKE_KEY)};
        fake_request(&server, &delete, &deleted);
        assert_int_equal(deleted.status, 204);
        fake_wait(&server, &queried);
        mem_free(exchange);
        assert_int_equal(queried.status, 200);
        expect_holds(queried.body, "\"id\":\"c\"");
        (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
        (void)expect_status(&server, &(Ask){"POST", "/dbs/db/colls", CONTAINER}, 201);
    }
}

typedef struct Plug {
    WorkerJob job;
    pthread_mutex_t lock;
} Plug;

static void hold_up(WorkerJob *job)
{
    Plug *plug = CONTAINER_OF(job, Plug, job);
    (void)pthread_mutex_lock(&plug->lock);
    (void)pthread_mutex_unlock(&plug->lock);
}

static void more_queries_than_can_wait_are_turned_away(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Plug plugs[3] = {{.job.run = hold_up}, {.job.run = hold_up}, {.job.run = hold_up}};
    for (size_t i = 0; i < ARRAY_COUNT(plugs); i++) {
        assert_int_equal(pthread_mutex_init(&plugs[i].lock, NULL), 0);
        assert_int_equal(pthread_mutex_lock(&plugs[i].lock), 0);
        while (!workers_post(server.workers, &plugs[i].job)) /* one runs, two wait */
            (void)usleep(1000);
    }
    Ask a = {"POST", "/dbs", "{'query':'SELECT * FROM c'}", {{"x-ms-documentdb-isquery", "true"}}};
    FakeAnswer answer = expect_status(&server, &a, 503);
    expect_holds(answer.body, "try again");
    for (size_t i = 0; i < ARRAY_COUNT(plugs); i++)
        assert_int_equal(pthread_mutex_unlock(&plugs[i].lock), 0);
    while ((answer = ask(&server, &a)).status == 503)
        (void)usleep(1000);
    assert_int_equal(answer.status, 200);
}

static void the_range_feed_ends_with_304(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    fake_server_open(&server, NULL);
    (void)expect_status(&server, &(Ask){"POST", "/dbs", "{'id':'db'}"}, 201);
    (void)expect_status(
        &server, &(Ask){"POST", "/dbs/db/colls", CONTAINER, {{"x-ms-offer-throughput", "18000"}}},
        201);
    Ask a = {"GET", "/dbs/db/colls/c/pkranges",
             .headers = {{"a-im", "Incremental Feed"}, {"x-ms-max-item-count", "-1"}}};
    FakeAnswer first = expect_status(&server, &a, 200);
    Json body = body_of(&server, &first);
    Json list = json_get(body, SLICE("PartitionKeyRanges"));
    assert_int_equal(json_count(list), 3);
    assert_slice(text_of(json_at(list, 0), "minInclusive"), SLICE(""));
    assert_slice(text_of(json_at(list, 2), "maxExclusive"), SLICE("FF"));
    assert_slice(text_of(body, "_rid"), fake_header(&first, "x-ms-content-path"));
    const char *etag = arena_cstr(&server.arena, fake_header(&first, "etag"));
    a.headers[2] = (Header){"if-none-match", etag};
    FakeAnswer second = expect_status(&server, &a, 304);
    expect_header(&second, "etag", etag);
    assert_int_equal(second.body.len, 0);
    /* A container's change that leaves its map alone is none for the feed. */
    (void)expect_status(&server,
                        &(Ask){"PUT", "/dbs/db/colls/c",
                               "{'id':'c','partitionKey':{'paths':['/pk'],'version':2},"
                               "'defaultTtl':60}"},
                        200);
    (void)expect_status(&server, &a, 304);
    a.headers[2] = (Header){"if-none-match", "'another kind of token'"};
    (void)expect_status(&server, &a, 200);

    /* By page, as older clients read. */
    Ask page = {"GET", "/dbs/db/colls/c/pkranges", .headers = {{"x-ms-max-item-count", "2"}}};
    FakeAnswer answer = expect_status(&server, &page, 200);
    expect_header(&answer, "x-ms-item-count", "2");
    Slice token = fake_header(&answer, "x-ms-continuation");
    page.headers[1] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
    answer = expect_status(&server, &page, 200);
    expect_header(&answer, "x-ms-item-count", "1");
    expect_header(&answer, "x-ms-continuation", "");
    FakeAnswer one = expect_status(&server, &(Ask){"GET", "/dbs/db/colls/c/pkranges/2"}, 200);
    assert_slice(text_of(body_of(&server, &one), "id"), SLICE("2"));
    Slice rid = text_of(json_at(list, 2), "_rid");
    Slice path = arena_format(&server.arena, "/dbs/db/colls/c/pkranges/%.*s", SLICE_ARG(rid));
    FakeAnswer same = expect_status(&server, &(Ask){"GET", path.ptr}, 200);
    assert_slice(same.body, one.body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_comes_in_pages),
        cmocka_unit_test(a_token_is_good_for_its_own_feed),
        cmocka_unit_test(a_query_answers_like_a_list),
        cmocka_unit_test(a_query_goes_on_where_it_was),
        cmocka_unit_test(a_page_may_end_within_a_resource),
        cmocka_unit_test(a_page_of_a_query_takes_no_longer_than_it_may),
        cmocka_unit_test(a_query_survives_the_deletion_of_what_it_reads),
        cmocka_unit_test(more_queries_than_can_wait_are_turned_away),
        cmocka_unit_test(the_range_feed_ends_with_304),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
