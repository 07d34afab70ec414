/* document_feed_test.c - lists and queries of items: every item once, whatever the pages are, and
 * no token that leads astray. */
#include "api/testing_int.h"

#define A PK("['a']")
#define QUERY                             \
    {                                     \
        "x-ms-documentdb-isquery", "true" \
    }

enum { ITEMS = 60, KEYS = 12 };

/* 'c' with three ranges and ITEMS items, five of each key. */
static void open_filled(FakeServer *server)
{
    open_with(server, (Ask){.body = CONTAINER, .headers = {{"x-ms-offer-throughput", "30000"}}});
    assert_int_equal(container_now(server)->range_count, 3);
    for (int i = 0; i < ITEMS; i++)
        make_item(server, arena_cstr(&server->arena,
                                     arena_format(&server->arena, "{'id':'i%02d','pk':'k%d'}", i,
                                                  i % KEYS)));
}

/* What the pages of a feed showed. */
typedef struct Seen {
    unsigned times[ITEMS];
    size_t pages, items, largest;
} Seen;

static void note_page(FakeServer *server, const FakeAnswer *answer, Seen *seen)
{
    Json body = body_of(server, answer);
    Json list = json_get(body, SLICE("Documents"));
    assert_true(json_is(list, JSON_ARRAY));
    size_t count = json_count(list);
    assert_true(json_number(json_get(body, SLICE("_count"))) == (double)count);
    expect_slice(fake_header(answer, "x-ms-item-count"),
                 arena_format(&server->arena, "%zu", count));
    JsonIter it = json_iter(list);
    while (json_next(&it)) {
        uint64_t number = ITEMS;
        assert_true(slice_to_u64(slice_from(text_of(it.value, "id"), 1), &number));
        assert_true(number < ITEMS);
        seen->times[number]++;
    }
    seen->pages++;
    seen->items += count;
    seen->largest = count > seen->largest ? count : seen->largest;
}

/* Reads a feed to its end; 'a' has at most two headers of its own. */
static Seen read_all(FakeServer *server, Ask a, const char *size)
{
    Seen seen = {0};
    size_t own = 0;
    while (a.headers[own].name != NULL)
        own++;
    assert_true(own <= 2);
    a.headers[own] = (Header){"x-ms-max-item-count", size};
    for (;;) {
        FakeAnswer answer = expect_status(server, &a, 200);
        note_page(server, &answer, &seen);
        Slice token = fake_header(&answer, "x-ms-continuation");
        if (token.len == 0)
            return seen;
        assert_true(token.len <= 1024);
        assert_true(token.ptr[0] != '[' && token.ptr[0] != '{');
        a.headers[own + 1] = (Header){"x-ms-continuation", arena_cstr(&server->arena, token)};
    }
}

static void expect_each_once(const Seen *seen)
{
    for (size_t i = 0; i < ITEMS; i++) {
        if (seen->times[i] != 1)
            fail_msg("item %zu was shown %u times", i, seen->times[i]);
    }
}

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
        Header *own = &a.headers[is_query];
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
                             .headers = {{"x-ms-offer-throughput", "30000"}}});
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
        {{"GET", DOCS, .headers = {{"x-ms-max-item-count", "0"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-max-item-count", "-2"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-max-item-count", "many"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-documentdb-partitionkeyrangeid", "9"}}}, 410, 1002},
        {{"GET", DOCS, .headers = {{"x-ms-documentdb-partitionkeyrangeid", "x"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-documentdb-partitionkeyrangeid", "AAAAAAAAAAA=,0"}}},
         410,
         1000},
        {{"GET", DOCS, .headers = {{"x-ms-start-epk", "0"}}}, 400},
        {{"GET", DOCS, .headers = {{"x-ms-end-epk", "zz"}}}, 400},
        {{"GET", DOCS, .headers = {PK("[")}}, 400},
        {{"GET", DOCS, .headers = {PK("['a','b']")}}, 400},
        {{"GET", DOCS, .headers = {{"a-im", "Incremental Feed"}}}, 501},
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

/* ---- tokens ---- */

static const char *token_of(FakeServer *server, const void *bytes, size_t len)
{
    char *text = arena_alloc(&server->arena, BASE64_LEN(len) + 1);
    base64_encode(BASE64_RID, bytes, len, text);
    text[BASE64_LEN(len)] = '\0';
    return text;
}

static void a_token_that_is_none_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    char huge[8192];
    memset(huge, '0', sizeof(huge));
    memcpy(huge, "10\0\0", 4);
    const char *tokens[] = {
        "x",
        "====",
        "Q1",
        "Q100000001",
        "{\"token\":\"x\"}",
        token_of(&server, "", 0),
        token_of(&server, "1", 1),
        token_of(&server, "10\0", 3),
        token_of(&server, "20\0\0", 4), /* another version */
        token_of(&server, "11\0\0", 4), /* another order */
        token_of(&server, "1\0\0\0", 4),
        token_of(&server, "10\x01\0", 4), /* an EPK that is longer than the token */
        token_of(&server,
                 "10\xff\xff"
                 "12345",
                 9),
        token_of(&server, huge, 4097),
        token_of(&server, huge, sizeof(huge)),
    };
    for (size_t i = 0; i < ARRAY_COUNT(tokens); i++) {
        bool is_empty = tokens[i][0] == '\0';
        Ask a = {"GET", DOCS, .headers = {{"x-ms-continuation", tokens[i]}}};
        (void)expect_status(&server, &a, is_empty ? 200 : 400);
    }
    static const char *const queries[] = {"x",         "Q1",          "Q1zzzzzzzz",
                                          "Q10000000", "Q1000000001", "MTAAAA=="};
    for (size_t i = 0; i < ARRAY_COUNT(queries); i++) {
        Ask a = {"POST", DOCS, "{'query':'SELECT * FROM c'}",
                 .headers = {QUERY, {"x-ms-continuation", queries[i]}}};
        (void)expect_status(&server, &a, 400);
    }
}

/* A token that somebody made leads to items that the request may see anyway, or to none. */
static void a_forged_token_shows_nothing_that_was_not_asked_for(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    static const Slice positions[] = {
        SLICE_INIT(""),
        SLICE_INIT("\x00"),
        SLICE_INIT("\x01"),
        SLICE_INIT("\x02"),
        SLICE_INIT("\x02\xff"),
        SLICE_INIT("\x03"),
        SLICE_INIT("\x03\xff"),
        SLICE_INIT("\x04"),
        SLICE_INIT("\x06"),
        SLICE_INIT("\xff"),
        SLICE_INIT("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    };
    static const Slice epks[] = {SLICE_INIT(""), SLICE_INIT("\x20"), SLICE_INIT("\xff"),
                                 SLICE_INIT("\xff\xff")};
    for (size_t i = 0; i < ARRAY_COUNT(positions); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(epks); j++) {
            for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
                char bytes[64] = {'1', is_narrow ? '1' : '0', (char)epks[j].len, 0};
                memcpy(bytes + 4, epks[j].ptr, epks[j].len);
                memcpy(bytes + 4 + epks[j].len, positions[i].ptr, positions[i].len);
                const char *token = token_of(&server, bytes, 4 + epks[j].len + positions[i].len);
                Ask a = {"GET", DOCS, .headers = {{"x-ms-continuation", token}}};
                if (is_narrow)
                    a.headers[1] = (Header)PK("['k3']");
                FakeAnswer answer = expect_status(&server, &a, 200);
                Seen seen = {0};
                note_page(&server, &answer, &seen);
                for (size_t k = 0; k < ITEMS; k++)
                    assert_true(seen.times[k] <= (!is_narrow || k % KEYS == 3 ? 1 : 0));
            }
        }
    }
}

static void a_token_survives_the_item_it_stands_at(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    Ask a = {"GET", DOCS, .headers = {PK("['k3']"), {"x-ms-max-item-count", "2"}}};
    FakeAnswer first = expect_status(&server, &a, 200);
    Seen seen = {0};
    note_page(&server, &first, &seen);
    for (int i = 0; i < ITEMS; i++) {
        Slice path = arena_format(&server.arena, DOCS "/i%02d", i);
        if (seen.times[i] > 0)
            (void)expect_status(
                &server,
                &(Ask){"DELETE", arena_cstr(&server.arena, path), .headers = {PK("['k3']")}}, 204);
    }
    a.headers[2] = (Header){"x-ms-continuation",
                            arena_cstr(&server.arena, fake_header(&first, "x-ms-continuation"))};
    a.headers[1].value = "-1";
    FakeAnswer rest = expect_status(&server, &a, 200);
    note_page(&server, &rest, &seen);
    assert_int_equal(seen.items, ITEMS / KEYS);
    for (int i = 3; i < ITEMS; i += KEYS)
        assert_int_equal(seen.times[i], 1);
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
                    expect_slice(fake_header(&answer, "x-ms-item-count"),
                                 arena_format(&server.arena, "%zu", rows[i].first));
                assert_true(rows[i].first == 1 || answer.body.len <= PAGE_BYTES_MAX);
                assert_true(slice_ends_with(answer.body, SLICE("}")));
                Slice token = fake_header(&answer, "x-ms-continuation");
                if (token.len == 0)
                    break;
                a.headers[1] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
                a.headers[0] = j == 0 ? (Header){"x-nothing", ""} : a.headers[0];
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

/* ---- on the worker ---- */

static void a_page_is_refused_when_too_many_wait(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
    jam_begin(&jam, &server, JAM_WAITING_MAX);
    (void)expect_status(&server, &(Ask){"GET", DOCS}, 503);
    (void)expect_status(
        &server, &(Ask){"POST", DOCS, "{'query':'SELECT * FROM c'}", .headers = {QUERY}}, 503);
    jam_end(&jam);
    expect_each_once(&(Seen[]){read_all(&server, (Ask){"GET", DOCS}, "-1")}[0]);
}

static void a_page_outlives_its_container(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_filled(&server);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_shown_once_whatever_the_pages),
        cmocka_unit_test(a_key_or_a_range_narrows_a_feed),
        cmocka_unit_test(a_prefix_of_a_key_names_all_that_begin_with_it),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(a_token_that_is_none_is_refused),
        cmocka_unit_test(a_forged_token_shows_nothing_that_was_not_asked_for),
        cmocka_unit_test(a_token_survives_the_item_it_stands_at),
        cmocka_unit_test(a_page_has_at_most_four_megabytes_unless_one_item_has_more),
        cmocka_unit_test(queries_are_answered),
        cmocka_unit_test(a_page_is_refused_when_too_many_wait),
        cmocka_unit_test(a_page_outlives_its_container),
        cmocka_unit_test(a_page_that_the_disk_refuses_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
