/* document_pages_test.c - lists and queries of items (I5): every item once, whatever the size of
 * pages. document_continuation_test.c has their tokens. */
#include "api/tests/document_pages_testing_int.h"

static void every_item_is_shown_once_whatever_the_pages(void **state)
{
    (void)state;
    static const struct {
        const char *size;
        size_t largest;
    } rows[] = {{"1", 1}, {"7", 7}, {"20", 20}, {"59", 59}, {"60", 60}, {"-1", 60}, {"100", 60}};
    static const Ask feeds[] = {
        {"GET", DOCS},
        {"GET", DOCS, .headers = {{"x-ms-start-epk", "00"}, {"x-ms-end-epk", "FE"}}},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {QUERY}},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(feeds); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(rows); j++) {
            Seen seen = read_all(&server, feeds[i], rows[j].size);
            expect_each_once(&seen);
            assert_int_equal(seen.largest, rows[j].largest);
            /* No page at the end that says only that it is the end. */
            assert_int_equal(seen.pages, (ITEMS + seen.largest - 1) / seen.largest);
        }
    }
}

static void a_key_or_a_range_narrows_a_feed(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    const Container *container = container_now(&server);
    Slice rid = arena_copy(&server.arena, container->info.rid);
    Slice middle = arena_copy(&server.arena, container->ranges[1].min);
    const char *epk = arena_cstr(&server.arena, middle);
    for (int is_query = 0; is_query < 2; is_query++) {
        Ask a = is_query ? (Ask){"POST", DOCS, "{'query':'SELECT * FROM c'}", {QUERY}}
                         : (Ask){"GET", DOCS};
        Header *own = &a.headers[is_query ? 2 : 0];
        *own = (Header)PK("['k3']");
        Seen key = read_all(&server, a, "2");
        assert_int_equal(key.items, ITEMS / KEYS);
        assert_int_equal(key.times[3] + key.times[15] + key.times[27], 3);
        *own = (Header)PK("['none']");
        assert_int_equal(read_all(&server, a, "2").items, 0);
        Seen all = {0};
        for (int i = 0; i < 3; i++) {
            Slice id = i == 1 ? arena_format(&server.arena, "%.*s,1", SLICE_ARG(rid))
                              : arena_format(&server.arena, "%d", i);
            *own = (Header){"x-ms-documentdb-partitionkeyrangeid", arena_cstr(&server.arena, id)};
            Seen range = read_all(&server, a, "3");
            assert_true(range.items > 0);
            for (size_t j = 0; j < ITEMS; j++)
                all.times[j] += range.times[j];
        }
        expect_each_once(&all);
        *own = (Header){"x-ms-start-epk", epk};
        Seen upper = read_all(&server, a, "3");
        *own = (Header){"x-ms-end-epk", epk};
        Seen lower = read_all(&server, a, "3");
        assert_int_equal(upper.items + lower.items, ITEMS);
        for (size_t j = 0; j < ITEMS; j++)
            upper.times[j] += lower.times[j];
        expect_each_once(&upper);
    }
}

static void a_prefix_of_a_key_names_all_that_begin_with_it(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = "{'id':'c','partitionKey':{'paths':['/t','/u'],"
                                     "'kind':'MultiHash','version':2}}",
                             .headers = {{"x-ms-offer-throughput", "18000"}}});
    for (int i = 0; i < ITEMS; i++)
        make_item(&server, arena_cstr(&server.arena,
                                      arena_format(&server.arena, "{'id':'i%02d','t':'t%d','u':%d}",
                                                   i, i % 2, i % 6)));
    static const struct {
        const char *key;
        size_t items;
    } rows[] = {{"['t0']", 30}, {"['t1']", 30}, {"['t0',2]", 10}, {"['t0',3]", 0}, {"['x']", 0}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = {"GET", DOCS, .headers = {PK(rows[i].key)}};
        assert_int_equal(read_all(&server, a, "4").items, rows[i].items);
    }
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status, sub;
    } rows[] = {
        {{"GET", DOCS, .headers = {{"x-ms-max-item-count", "-2"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-max-item-count", "many"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-documentdb-partitionkeyrangeid", "9"}}}, 410, 1002},
        {{"GET", DOCS, .headers = {{"x-ms-documentdb-partitionkeyrangeid", "x"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-documentdb-partitionkeyrangeid", "AAAAAAAAAAA=,0"}}},
         410,
         1000},
        {{"GET", DOCS, .headers = {{"x-ms-start-epk", "0"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-end-epk", "zz"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-read-key-type", "ResourceId"}}}, 400},
        {{"GET", DOCS, .headers = {PK("[")}}, 400},
        {{"GET", DOCS, .headers = {PK("['a','b']")}}, 400, 1001},
        {{"GET", DOCS, .headers = {{"a-im", "Some Feed"}}}, 400},
        {{"GET", "/dbs/db/colls/none/docs"}, 404, 1003},
        {{"POST", DOCS, "{'query':'SELECT'}", .headers = {QUERY}}, 400},
        {{"POST", DOCS, "{'query':1}", .headers = {QUERY}}, 400},
        {{"POST", DOCS, "", .headers = {QUERY}}, 400},
        {{"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.id = @p'}", .headers = {QUERY}}, 400},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer = expect_status(&server, &rows[i].ask, rows[i].status);
        assert_int_equal(sub_status_of(&answer), rows[i].sub);
    }
}

/* ---- what a page looks at ---- */

static void a_page_ends_when_it_has_looked_at_enough(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = "{'id':'c','partitionKey':{'paths':['/pk'],'version':2},"
                                     "'defaultTtl':-1}",
                             .headers = {{"x-ms-offer-throughput", "18000"}}});
    for (int i = 0; i < ITEMS; i++)
        make_item(&server,
                  arena_cstr(&server.arena,
                             arena_format(&server.arena, "{'id':'i%02d','pk':'k%d','ttl':%d}", i,
                                          i % KEYS, i % 20 == 7 ? 1000 : 5)));
    fake_clock_advance(&server.clock, 5000000);
    server.api->limits.entries_max = 4;
    static const Ask feeds[] = {
        {"GET", DOCS},
        {"GET", DOCS, .headers = {{"x-ms-start-epk", "00"}}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(feeds); i++) {
        Seen seen = read_all(&server, feeds[i], "-1");
        assert_int_equal(seen.items, 3);
        assert_int_equal(seen.times[7] + seen.times[27] + seen.times[47], 3);
        assert_int_equal(seen.pages, ITEMS / 4);
    }
    /* Counting asks the index, and takes away what has expired. */
    Ask count = {"POST", DOCS, "{'query':'SELECT VALUE COUNT(1) FROM c'}", .headers = {QUERY}};
    FakeAnswer answer = expect_status(&server, &count, 200);
    expect_holds(answer.body, "\"Documents\":[3]");
}

static void a_page_ends_when_its_time_is_over(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    server.api->limits.us_max = 0; /* over before it begins */
    server.api->limits.brief_us = 0;
    for (int is_query = 0; is_query < 2; is_query++) {
        Ask a = is_query ? (Ask){"POST", DOCS, "{'query':'SELECT * FROM c'}", {QUERY}}
                         : (Ask){"GET", DOCS};
        Seen seen = read_all(&server, a, "-1");
        expect_each_once(&seen);
        assert_true(seen.pages > 1);
    }
}

/* ---- sizes ---- */

static void make_large(FakeServer *server, const char *id, Slice piece, size_t count)
{
    AUTO(buf_done) Buf body;
    buf_init(&body, BODY_BYTES_MAX);
    buf_format(&body, "{\"id\":\"%s\",\"pk\":\"a\",\"list\":[0", id);
    for (size_t i = 0; i < count; i++)
        buf_slice(&body, piece);
    buf_slice(&body, SLICE("]}"));
    assert_false(buf_full(&body));
    FakeRequest request = {.method = SLICE("POST"),
                           .path = SLICE(DOCS),
                           .body = buf_view(&body),
                           .key = SLICE(FAKE_KEY)};
    FakeAnswer answer;
    fake_request(server, &request, &answer);
    assert_int_equal(answer.status, 201);
}

static void a_page_has_at_most_four_megabytes_unless_one_item_has_more(void **state)
{
    (void)state;
    static const struct {
        Slice piece; /* 400,000 of these make an item */
        size_t first, pages;
    } rows[] = {
        {SLICE_INIT(",1234"), 2, 3}, /* as long as they came in: 2 MB */
        {SLICE_INIT(",1e20"), 1, 5}, /* 9 MB */
    };
    static const Ask feeds[] = {
        {"GET", DOCS},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {QUERY}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        for (int j = 0; j < 5; j++)
            make_large(&server, (const char *[]){"0", "1", "2", "3", "4"}[j], rows[i].piece,
                       400000);
        for (size_t j = 0; j < ARRAY_COUNT(feeds); j++) {
            Ask a = feeds[j];
            size_t pages = 0;
            for (;;) {
                FakeAnswer answer = expect_status(&server, &a, 200);
                if (pages++ == 0)
                    assert_slice(fake_header(&answer, "x-ms-item-count"),
                                 arena_format(&server.arena, "%zu", rows[i].first));
                assert_true(rows[i].first == 1 || answer.body.len <= PAGE_BYTES_MAX);
                assert_true(slice_ends_with(answer.body, SLICE("}")));
                Slice token = fake_header(&answer, "x-ms-continuation");
                if (token.len == 0)
                    break;
                a.headers[j == 0 ? 0 : 2] =
                    (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
            }
            assert_int_equal(pages, rows[i].pages);
            fake_server_reset(&server);
        }
    }
}

/* ---- queries ---- */

static void queries_are_answered(void **state)
{
    (void)state;
    static const struct {
        const char *body, *documents;
    } rows[] = {
        {"{'query':'SELECT VALUE COUNT(1) FROM c'}", "[60]"},
        {"{'query':'SELECT VALUE c.id FROM c WHERE c.id < @p ORDER BY c.id DESC',"
         "'parameters':[{'name':'@p','value':'i03'}]}",
         "['i02','i01','i00']"},
        {"{'query':'SELECT VALUE c.none FROM c'}", "[]"},
        {"{'query':'SELECT TOP 1 c._rid = c._rid AS same FROM c'}", "[{'same':true}]"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer =
            expect_status(&server, &(Ask){"POST", DOCS, rows[i].body, .headers = {QUERY}}, 200);
        Slice expected = arena_format(&server.arena, "\"Documents\":%.*s",
                                      SLICE_ARG(quoted(&server.arena, rows[i].documents)));
        expect_holds(answer.body, arena_cstr(&server.arena, expected));
        expect_header(&answer, "x-ms-session-token",
                      arena_cstr(&server.arena, fake_header(&answer, "x-ms-session-token")));
        expect_holds(fake_header(&answer, "x-ms-session-token"), "2:-1#");
        expect_header(&answer, "x-ms-alt-content-path", "dbs/db/colls/c");
    }
}

static void a_page_of_no_items_is_empty(void **state)
{
    (void)state;
    static const Ask asks[] = {
        {"GET", DOCS},
        {"POST", DOCS, "{'query':'SELECT TOP 0 * FROM c'}"},
        {"POST", DOCS, "{'query':'SELECT * FROM c ORDER BY c.id'}"},
        {"POST", DOCS, "{'query':'SELECT VALUE COUNT(1) FROM c'}"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
        Ask a = asks[i];
        a.headers[0] = (Header){"x-ms-max-item-count", "0"};
        if (i > 0) {
            a.headers[1] = (Header){"x-ms-documentdb-isquery", "true"};
            a.headers[2] = (Header){"x-ms-documentdb-query-enablecrosspartition", "true"};
        }
        FakeAnswer answer = expect_status(&server, &a, 200);
        expect_holds(answer.body, "\"Documents\":[],\"_count\":0");
        expect_header(&answer, "x-ms-item-count", "0");
    }
}

/* An item that gives more results than a page takes goes on where the page ended, unless another
 * has taken its place. */
static void a_page_may_end_among_the_results_of_an_item(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a','t':[10,11,12,13]}");
    make_item(&server, "{'id':'2','pk':'a','t':[20]}");
    make_item(&server, "{'id':'3','pk':'a','t':[30,31]}");
    Ask a = {"POST", DOCS, "{'query':'SELECT VALUE t FROM c JOIN t IN c.t'}", .headers = {QUERY}};
    static const struct {
        const char *size;
        bool deletes; /* the first item, after the first page */
        const char *pages[8];
    } rows[] = {
        {"1", false, {"[10]", "[11]", "[12]", "[13]", "[20]", "[30]", "[31]"}},
        {"3", false, {"[10,11,12]", "[13,20,30]", "[31]"}},
        {"4", false, {"[10,11,12,13]", "[20,30,31]"}},
        {"3", true, {"[10,11,12]", "[20,30,31]"}},
    };
    for (int by_key = 0; by_key < 2; by_key++) {
        for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
            Ask page = a;
            page.headers[2] = (Header){"x-ms-max-item-count", rows[i].size};
            if (by_key)
                page.headers[3] = (Header)A;
            for (size_t j = 0; rows[i].pages[j] != NULL; j++) {
                FakeAnswer answer = expect_status(&server, &page, 200);
                Json list = json_get(body_of(&server, &answer), SLICE("Documents"));
                assert_slice(json_print_arena(&server.arena, list),
                             slice_from_cstr(rows[i].pages[j]));
                Slice token = fake_header(&answer, "x-ms-continuation");
                assert_int_equal(token.len > 0, rows[i].pages[j + 1] != NULL);
                page.headers[by_key ? 4 : 3] =
                    (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
                if (rows[i].deletes && j == 0)
                    (void)expect_status(&server, &(Ask){"DELETE", DOCS "/1", .headers = {A}}, 204);
            }
        }
        (void)expect_status(&server, &(Ask){"DELETE", DOCS "/2", .headers = {A}}, 204);
        (void)expect_status(&server, &(Ask){"DELETE", DOCS "/3", .headers = {A}}, 204);
        make_item(&server, "{'id':'1','pk':'a','t':[10,11,12,13]}");
        make_item(&server, "{'id':'2','pk':'a','t':[20]}");
        make_item(&server, "{'id':'3','pk':'a','t':[30,31]}");
    }
}

static void a_query_over_partitions_must_be_allowed(void **state)
{
    (void)state;
#define CROSS(value)                                        \
    {                                                       \
        "x-ms-documentdb-query-enablecrosspartition", value \
    }
    static const char all[] = "{'query':'SELECT * FROM c'}";
    static const struct {
        Ask ask;
        bool fails; /* also where there is one partition */
    } rows[] = {
        {{"POST", DOCS, all, .headers = {IS_QUERY}}, true},
        {{"POST", DOCS, all, .headers = {IS_QUERY, CROSS("false")}}, true},
        {{"POST", DOCS, all, .headers = {IS_QUERY, CROSS("False")}}, true},
        {{"POST", DOCS, all, .headers = {IS_QUERY, CROSS("")}}, true},
        {{"POST", DOCS, all, .headers = {IS_QUERY, CROSS("true")}}, false},
        {{"POST", DOCS, all, .headers = {IS_QUERY, CROSS("True")}}, false},
        {{"POST", DOCS, all, .headers = {IS_QUERY, PK("['k3']")}}, false},
        {{"POST", DOCS, all, .headers = {IS_QUERY, {"x-ms-documentdb-partitionkeyrangeid", "0"}}},
         false},
        {{"POST", DOCS, all, .headers = {IS_QUERY, {"x-ms-start-epk", "10"}}}, false},
        {{"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.pk = 1'}", .headers = {IS_QUERY}},
         false},
        {{"POST", DOCS, "{'query':'SELECT * FROM c WHERE c.pk > 1'}", .headers = {IS_QUERY}}, true},
        {{"GET", DOCS}, false},
    };
    static const char *const sizes[] = {"18000", "400"};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with(&server,
                  (Ask){.body = CONTAINER, .headers = {{"x-ms-offer-throughput", sizes[i]}}});
        for (size_t j = 0; j < ARRAY_COUNT(rows); j++) {
            FakeAnswer answer = expect_status(&server, &rows[j].ask, rows[j].fails ? 400 : 200);
            if (!rows[j].fails)
                continue;
            expect_holds(answer.body, "x-ms-documentdb-query-enablecrosspartition");
            assert_int_equal(sub_status_of(&answer), 0); /* 1004 would make clients try again */
        }
    }
}

/* ---- on the worker ---- */

static void a_page_is_refused_when_too_many_wait(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    server.api->limits.brief_us = 0;
    jam_begin(&jam, &server, JAM_WAITING_MAX);
    (void)expect_status(&server, &(Ask){"GET", DOCS}, 503);
    (void)expect_status(
        &server, &(Ask){"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {QUERY}}, 503);
    jam_end(&jam);
    expect_each_once(&(Seen[]){read_all(&server, (Ask){"GET", DOCS}, "-1")}[0]);
}

/* Its client would not read what a worker finds. A client that has closed only its half of the
 * connection is told. */
static void a_page_is_not_begun_when_its_client_has_left(void **state)
{
    (void)state;
    static const Ask rows[] = {
        {"GET", DOCS},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {QUERY}},
        {"POST", DOCS, "{'query':'SELECT VALUE COUNT(1) FROM c'}", .headers = {QUERY}},
    };
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    server.api->limits.brief_us = 0;
    for (size_t i = 0; i < 2 * ARRAY_COUNT(rows); i++) {
        bool is_abandoned = i % 2 == 1;
        FakeAnswer answer;
        jam_begin(&jam, &server, 0);
        FakeExchange *exchange = ask_only(&server, &rows[i / 2], &answer);
        atomic_store(&exchange->http.is_abandoned, is_abandoned);
        jam_end(&jam);
        fake_wait(&server, &answer);
        mem_free(exchange);
        assert_int_equal(answer.status, is_abandoned ? 408 : 200);
        if (is_abandoned)
            expect_holds(answer.body, "was cancelled");
        assert_int_equal(metrics_total(&server.metrics, METRIC_QUERIES_CANCELLED), (i + 1) / 2);
    }
}

static void a_query_that_is_soon_over_needs_no_worker(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    static const Ask query = {"POST", DOCS,
                              "{'query':'SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.pk) ORDER BY "
                              "c.id OFFSET 3 LIMIT 2'}",
                              .headers = {QUERY}};
    server.api->limits.brief_us = 0;
    Slice wanted = expect_status(&server, &query, 200).body;
    expect_holds(wanted, "\"i03\"");
    server.api->limits.brief_us = 10000000;

    jam_begin(&jam, &server, JAM_WAITING_MAX);
    assert_slice(expect_status(&server, &query, 200).body, wanted);
    memory_store_forget(server.store, 1); /* not in memory: it has to wait for the disk */
    (void)expect_status(&server, &query, 503);
    assert_slice(expect_status(&server, &query, 200).body, wanted);
    jam_end(&jam);

    static const Ask scan = {"POST", DOCS, "{'query':'SELECT VALUE c.id FROM c'}",
                             .headers = {QUERY}};
    Slice all = expect_status(&server, &scan, 200).body;
    for (unsigned i = 1; i < 20; i++) { /* wherever it notices */
        memory_store_forget(server.store, i);
        assert_slice(expect_status(&server, &query, 200).body, wanted);
        memory_store_forget(server.store, i);
        assert_slice(expect_status(&server, &scan, 200).body, all);
    }
    memory_store_forget(server.store, 0);
    server.api->limits.brief_us = 1; /* over before it ends */
    assert_slice(expect_status(&server, &query, 200).body, wanted);
    server.api->limits.brief_us = 10000000;

    /* After many failures few are tried; some still are, and lead back. */
    memory_store_forget(server.store, 1000);
    for (int i = 0; i < 20; i++)
        assert_slice(expect_status(&server, &query, 200).body, wanted);
    memory_store_forget(server.store, 0);
    jam_begin(&jam, &server, JAM_WAITING_MAX);
    int answered = 0;
    for (int i = 0; i < 40; i++)
        answered += ask(&server, &query).status == 200 ? 1 : 0;
    jam_end(&jam);
    assert_in_range(answered, 20, 39);
}

/* A request waits for a worker, and then for its client to read: there may be thousands of them. */
static void what_a_query_holds_is_gone_before_its_answer(void **state)
{
#define TIMES_100                                     \
    "JOIN a IN (SELECT VALUE [0,1,2,3,4,5,6,7,8,9]) " \
    "JOIN b IN (SELECT VALUE [0,1,2,3,4,5,6,7,8,9]) "
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    static const Ask rows[] = {
        {"POST", DOCS,
         "{'query':'SELECT a, b, COUNT(1) AS k FROM c " TIMES_100 "GROUP BY c.id, a, b'}",
         .headers = {QUERY, {"x-ms-max-item-count", "1"}}},
        {"POST", DOCS,
         "{'query':'SELECT VALUE ARRAY_LENGTH(MAKELIST([c, a, b])) FROM c " TIMES_100 "'}",
         .headers = {QUERY, {"x-ms-max-item-count", "1"}}},
        {"POST", DOCS, "{'query':'SELECT DISTINCT VALUE [c.id, a, b] FROM c " TIMES_100 "'}",
         .headers = {QUERY}},
    };
#undef TIMES_100
    server.api->options.has_extensions = true;
    static const uint64_t brief_us[] = {0, 10000000, 1}; /* on a worker; on the loop; on both */
    for (size_t i = 0; i < ARRAY_COUNT(rows) * ARRAY_COUNT(brief_us); i++) {
        server.api->limits.brief_us = brief_us[i % ARRAY_COUNT(brief_us)];
        FakeAnswer answer = expect_status(&server, &rows[i / ARRAY_COUNT(brief_us)], 200);
        assert_in_range(answer.held, 1, 32 << 10);
    }
}

static void a_page_outlives_its_container(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    server.api->limits.brief_us = 0;
    jam_begin(&jam, &server, 0);
    FakeAnswer list;
    FakeAnswer query;
    const HttpHeader headers[] = {{SLICE("x-ms-documentdb-isquery"), SLICE("true")},
                                  {SLICE("x-ms-documentdb-partitionkey"), SLICE("[\"k3\"]")}};
    FakeRequest request = {.method = SLICE("GET"),
                           .path = SLICE(DOCS),
                           .headers = headers + 1,
                           .header_count = 1,
                           .key = SLICE(FAKE_KEY)};
    FakeExchange *list_exchange = fake_send(&server, &request, &list);
    request.method = SLICE("POST");
    request.headers = headers;
    request.header_count = 2;
    request.body = SLICE("{\"query\":\"SELECT * FROM c WHERE c.pk = 'k3'\"}");
    FakeExchange *query_exchange = fake_send(&server, &request, &query);
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db"}, 204);
    jam_end(&jam);
    fake_wait(&server, &list);
    fake_wait(&server, &query);
    assert_int_equal(list.status, 200);
    assert_int_equal(query.status, 200);
    expect_header(&list, "x-ms-alt-content-path", "dbs/db/colls/c");
    mem_free(list_exchange);
    mem_free(query_exchange);
}

static void a_page_that_the_disk_refuses_is_an_error(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    server.api->limits.brief_us = 0;
    static const Ask feeds[] = {
        {"GET", DOCS},
        {"GET", DOCS, .headers = {PK("['k3']")}},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {QUERY}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(feeds); i++) {
        memory_store_fail_cursor_steps(server.store, 1, STATUS_IO);
        FakeAnswer answer = expect_status(&server, &feeds[i], 503);
        expect_holds(answer.body, "ServiceUnavailable");
        (void)expect_status(&server, &feeds[i], 200);
    }
}

/* What clients that merge rows send when they begin again. */
static void an_order_goes_on_where_the_client_was(void **state)
{
    (void)state;
    static const struct {
        const char *body, *expected; /* a part of it, if it begins with '!' */
    } ROWS[] = {
        {"{'query':'SELECT VALUE c.id FROM c ORDER BY c.id','resumeFilter':{'value':['i57'],"
         "'exclude':false}}",
         "'i57','i58','i59'"},
        {"{'query':'SELECT VALUE c.id FROM c ORDER BY c.id','resumeFilter':{'value':['i57'],"
         "'rid':null,'exclude':true},'parameters':[]}",
         "'i58','i59'"},
        {"{'query':'SELECT VALUE c.id FROM c WHERE c.id < @id ORDER BY c.id DESC','parameters':"
         "[{'name':'@id','value':'i30'}],'resumeFilter':{'value':['i01']}}",
         "'i01','i00'"},
        {"{'query':'SELECT VALUE c.id FROM c WHERE c.id = @id ORDER BY c.id','parameters':"
         "[{'name':'@id','value':'i30'}],'resumeFilter':null}",
         "'i30'"},
        {"{'query':'SELECT * FROM c ORDER BY c.id','resumeFilter':{'value':[1,2]}}",
         "!for each item of ORDER BY"},
        {"{'query':'SELECT * FROM c','resumeFilter':{'value':[1]}}", "!needs an ORDER BY"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        bool is_refused = ROWS[i].expected[0] == '!';
        Ask a = {"POST", DOCS, ROWS[i].body, {QUERY}};
        FakeAnswer answer = expect_status(&server, &a, is_refused ? 400 : 200);
        if (is_refused) {
            expect_holds(answer.body, ROWS[i].expected + 1);
            continue;
        }
        Slice list = json_print_arena(&server.arena,
                                      json_get(body_of(&server, &answer), SLICE("Documents")));
        assert_slice(slice_make(list.ptr + 1, list.len - 2),
                     quoted(&server.arena, ROWS[i].expected));
        expect_header(&answer, "x-ms-cosmos-query-execution-info",
                      i == 2 ? "{\"reverseRidEnabled\":false,\"reverseIndexScan\":true}"
                             : "{\"reverseRidEnabled\":false,\"reverseIndexScan\":false}");
    }
    Ask plain = {"POST", DOCS, "{'query':'SELECT * FROM c'}", {QUERY}};
    FakeAnswer answer = expect_status(&server, &plain, 200);
    expect_header(&answer, "x-ms-cosmos-query-execution-info", "");
    Ask other = {
        "POST", "/dbs", "{'query':'SELECT * FROM r','resumeFilter':{'value':[1]}}", {QUERY}};
    expect_holds(expect_status(&server, &other, 400).body, "is for queries on items");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_goes_on_where_the_client_was),
        cmocka_unit_test(every_item_is_shown_once_whatever_the_pages),
        cmocka_unit_test(a_key_or_a_range_narrows_a_feed),
        cmocka_unit_test(a_prefix_of_a_key_names_all_that_begin_with_it),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(a_page_ends_when_it_has_looked_at_enough),
        cmocka_unit_test(a_page_ends_when_its_time_is_over),
        cmocka_unit_test(a_page_has_at_most_four_megabytes_unless_one_item_has_more),
        cmocka_unit_test(queries_are_answered),
        cmocka_unit_test(a_page_of_no_items_is_empty),
        cmocka_unit_test(a_page_may_end_among_the_results_of_an_item),
        cmocka_unit_test(a_query_over_partitions_must_be_allowed),
        cmocka_unit_test(a_page_is_refused_when_too_many_wait),
        cmocka_unit_test(a_page_is_not_begun_when_its_client_has_left),
        cmocka_unit_test(a_query_that_is_soon_over_needs_no_worker),
        cmocka_unit_test(what_a_query_holds_is_gone_before_its_answer),
        cmocka_unit_test(a_page_outlives_its_container),
        cmocka_unit_test(a_page_that_the_disk_refuses_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
