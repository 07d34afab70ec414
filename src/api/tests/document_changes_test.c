/* document_changes_test.c - the change feed, as requests and answers. */
#include "api/tests/testing_int.h"

#define LATEST                     \
    {                              \
        "a-im", "Incremental Feed" \
    }
#define VERSIONS                     \
    {                                \
        "a-im", "Full-Fidelity Feed" \
    }
#define AFTER(e)           \
    {                      \
        "if-none-match", e \
    }
#define SINCE(t)               \
    {                          \
        "if-modified-since", t \
    }
#define COUNT(n)                 \
    {                            \
        "x-ms-max-item-count", n \
    }
#define RANGE(id)                                 \
    {                                             \
        "x-ms-documentdb-partitionkeyrangeid", id \
    }
#define WRAPPED                                                    \
    {                                                              \
        "x-ms-cosmos-changefeed-wire-format-version", "2021-09-15" \
    }
#define QUERY                                   \
    {"content-type", "application/query+json"}, \
    {                                           \
        "x-ms-documentdb-isquery", "True"       \
    }
#define WITH_VERSIONS \
    "{'id':'c','partitionKey':{'paths':['/pk']},'changeFeedPolicy':{'retentionDuration':5}}"

static void write_item(FakeServer *server, const char *row)
{
    Ask a = {"POST", DOCS, row, .headers = {PK("['p']"), {"x-ms-documentdb-is-upsert", "true"}}};
    FakeAnswer answer = ask(server, &a);
    assert_true(answer.status == 200 || answer.status == 201);
}

static void write_items(FakeServer *server, const char *ids)
{
    for (const char *id = ids; *id != '\0'; id++) {
        const char *row = arena_format(&server->arena, "{'id':'%c','pk':'p'}", *id).ptr;
        write_item(server, row);
    }
}

static void delete_item(FakeServer *server, const char *id)
{
    const char *path = arena_format(&server->arena, DOCS "/%s", id).ptr;
    (void)expect_status(server, &(Ask){"DELETE", path, .headers = {PK("['p']")}}, 204);
}

/* The ids of the items in an answer, one letter each. */
static Slice ids_of(FakeServer *server, const FakeAnswer *answer)
{
    if (answer->status == 304)
        return SLICE_EMPTY;
    Buf text;
    buf_init(&text, 1 << 16);
    JsonIter it = json_iter(json_get(body_of(server, answer), SLICE("Documents")));
    while (json_next(&it)) {
        Json current = json_get(it.value, SLICE("current"));
        Json item = json_is(current, JSON_OBJECT) && json_count(current) > 0 ? current : it.value;
        Json id = json_get(item, SLICE("id"));
        if (!json_is(id, JSON_STRING))
            id = json_get(json_get(it.value, SLICE("metadata")), SLICE("id"));
        buf_slice(&text, json_string(id));
    }
    Slice ids = arena_copy(&server->arena, buf_view(&text));
    buf_done(&text);
    return ids;
}

static FakeAnswer expect_feed(FakeServer *server, Ask a, const char *ids, const char *etag)
{
    a.path = DOCS;
    a.method = a.body == NULL ? "GET" : "POST";
    FakeAnswer answer = expect_status(server, &a, ids[0] == '\0' ? 304 : 200);
    assert_slice(ids_of(server, &answer), slice_from_cstr(ids));
    expect_header(&answer, "etag", arena_format(&server->arena, "\"%s\"", etag).ptr);
    char count[24];
    (void)snprintf(count, sizeof(count), "%zu", strlen(ids));
    expect_header(&answer, "x-ms-item-count", count);
    assert_int_equal(fake_header(&answer, "x-ms-continuation").len, 0);
    return answer;
}

static void a_feed_goes_on_where_its_etag_says(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer empty = expect_feed(&server, (Ask){.headers = {LATEST}}, "", "1");
    expect_header(&empty, "x-ms-session-token", "0:-1#1");
    expect_header(&empty, "lsn", "1");
    expect_header(&empty, "x-ms-documentdb-partitionkeyrangeid", "0");
    expect_header(&empty, "x-ms-request-charge", "1");
    assert_int_equal(empty.body.len, 0);
    write_items(&server, "abca");
    FakeAnswer all = expect_feed(&server, (Ask){.headers = {LATEST}}, "bca", "5");
    expect_header(&all, "x-ms-session-token", "0:-1#5");
    static const struct {
        Header headers[4];
        const char *ids, *etag;
    } rows[] = {
        {{LATEST, AFTER("'1'")}, "bca", "5"},
        {{LATEST, AFTER("3")}, "ca", "5"},
        {{{"a-im", "incremental feed"}, AFTER("'4'")}, "a", "5"},
        {{LATEST, AFTER("'5'")}, "", "5"},
        {{LATEST, AFTER("'77'")}, "", "5"},
        {{LATEST, AFTER("*")}, "", "5"},
        {{LATEST, COUNT("1")}, "b", "3"},
        {{LATEST, COUNT("2")}, "bc", "4"},
        {{LATEST, COUNT("3")}, "bca", "5"},
        {{LATEST, COUNT("-1")}, "bca", "5"},
        {{LATEST, COUNT("1"), AFTER("'3'")}, "c", "4"},
        {{LATEST, RANGE("0")}, "bca", "5"},
        {{LATEST, PK("['p']")}, "bca", "5"},
        {{LATEST, PK("['p']"), RANGE("0")}, "bca", "5"},
        {{LATEST, PK("['q']")}, "", "5"},
        {{LATEST, SINCE("Tue, 01 Jul 2025 10:00:00 UTC")}, "", "5"},
        {{LATEST, SINCE("Thu, 01 Jan 1970 10:00:00 GMT"), AFTER("'4'")}, "a", "5"},
        {{LATEST, SINCE("Thu, 01 Jan 1970 10:00:00 UTC")}, "bca", "5"},
        {{LATEST, SINCE("Fri, 31 Dec 9999 23:59:59 GMT")}, "", "5"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = {0};
        memcpy(a.headers, rows[i].headers, sizeof(rows[i].headers));
        (void)expect_feed(&server, a, rows[i].ids, rows[i].etag);
    }
}

static void items_are_as_a_read_shows_them_and_have_an_lsn(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    write_items(&server, "a");
    FakeAnswer read =
        expect_status(&server, &(Ask){"GET", DOCS "/a", .headers = {PK("['p']")}}, 200);
    FakeAnswer feed = expect_feed(&server, (Ask){.headers = {LATEST}}, "a", "2");
    Slice item = slice_first(read.body, read.body.len - 1);
    expect_holds(feed.body, arena_format(&server.arena, "[%.*s,\"_lsn\":2}]", SLICE_ARG(item)).ptr);
    feed = expect_feed(&server, (Ask){.headers = {LATEST, WRAPPED}}, "a", "2");
    expect_holds(feed.body,
                 arena_format(&server.arena, "[{\"current\":%.*s,\"metadata\":{\"lsn\":2,\"crts\":",
                              SLICE_ARG(read.body))
                     .ptr);
    assert_false(holds(feed.body, "operationType"));
}

/* Two batches of three, at LSNs 2 and 3. */
static void a_page_never_cuts_a_transaction(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    static const char *const batches[] = {
        "[{'operationType':'Create','resourceBody':{'id':'a','pk':'p'}},"
        "{'operationType':'Create','resourceBody':{'id':'b','pk':'p'}},"
        "{'operationType':'Create','resourceBody':{'id':'c','pk':'p'}}]",
        "[{'operationType':'Create','resourceBody':{'id':'f','pk':'p'}},"
        "{'operationType':'Create','resourceBody':{'id':'e','pk':'p'}},"
        "{'operationType':'Create','resourceBody':{'id':'d','pk':'p'}}]",
    };
    for (size_t i = 0; i < ARRAY_COUNT(batches); i++)
        (void)expect_status(&server,
                            &(Ask){"POST", DOCS, batches[i],
                                   .headers = {PK("['p']"),
                                               {"x-ms-cosmos-is-batch-request", "True"},
                                               {"x-ms-cosmos-batch-atomic", "True"}}},
                            200);
    static const struct {
        const char *count, *ids, *etag;
    } rows[] = {{"1", "abc", "2"}, {"3", "abc", "2"}, {"4", "abc", "2"}, {"6", "abcfed", "3"}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)expect_feed(&server, (Ask){.headers = {LATEST, COUNT(rows[i].count)}}, rows[i].ids,
                          rows[i].etag);
}

/* Items of 1.5 MB: the third does not fit, and a batch is not cut. */
static void a_page_ends_by_bytes(void **state)
{
    (void)state;
    enum { BYTES = 1500000 };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    char *text = arena_alloc(&server.arena, BYTES);
    memset(text, 'x', BYTES);
    for (int i = 0; i < 4; i++) {
        const char *row =
            arena_format(&server.arena, "{'id':'%d','pk':'p','t':'%.*s'}", i, BYTES, text).ptr;
        write_item(&server, row);
    }
    (void)expect_feed(&server, (Ask){.headers = {LATEST}}, "01", "3");
    (void)expect_feed(&server, (Ask){.headers = {LATEST, AFTER("'3'")}}, "23", "5");
}

static void all_versions_tell_what_happened(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = WITH_VERSIONS});
    write_items(&server, "a");
    write_item(&server, "{'id':'a','pk':'p','v':1}");
    delete_item(&server, "a");
    FakeAnswer feed = expect_feed(&server, (Ask){.headers = {VERSIONS, AFTER("'1'")}}, "aaa", "4");
    Json list = json_get(body_of(&server, &feed), SLICE("Documents"));
    static const struct {
        const char *type;
        int64_t lsn, previous;
        bool has_previous;
    } rows[] = {{"create", 2, 0, false}, {"replace", 3, 2, false}, {"delete", 4, 3, true}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json change = json_at(list, i);
        Json metadata = json_get(change, SLICE("metadata"));
        int64_t lsn = 0;
        int64_t previous = 0;
        assert_slice(text_of(metadata, "operationType"), slice_from_cstr(rows[i].type));
        assert_true(json_to_i64(json_get(metadata, SLICE("lsn")), &lsn));
        (void)json_to_i64(json_get(metadata, SLICE("previousImageLSN")), &previous);
        assert_int_equal(lsn, rows[i].lsn);
        assert_int_equal(previous, rows[i].previous);
        assert_int_equal(json_is(json_get(change, SLICE("previous")), JSON_OBJECT),
                         rows[i].has_previous);
        assert_int_equal(json_is(json_get(metadata, SLICE("partitionKey")), JSON_OBJECT),
                         rows[i].has_previous);
        assert_true(json_is(json_get(change, SLICE("current")), JSON_OBJECT));
    }
    /* The same container's latest versions are as ever. */
    (void)expect_feed(&server, (Ask){.headers = {LATEST}}, "", "4");
}

static void a_query_chooses_changes(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = WITH_VERSIONS});
    write_item(&server, "{'id':'a','pk':'p','city':'x'}");
    write_item(&server, "{'id':'b','pk':'p','city':'y'}");
    delete_item(&server, "b");
    (void)expect_feed(&server,
                      (Ask){.body = "{'query':'select * from c where c.city = \\'y\\''}",
                            .headers = {VERSIONS, AFTER("'1'"), QUERY}},
                      "b", "4");
    (void)expect_feed(&server,
                      (Ask){.body = "{'query':'select * from c where c.city = \\'y\\'',"
                                    "'enableQueryOnPreviousImage':true}",
                            .headers = {VERSIONS, AFTER("'1'"), QUERY}},
                      "bb", "4");
    (void)expect_feed(&server,
                      (Ask){.body = "{'query':'select * from c where c.city = \\'z\\''}",
                            .headers = {LATEST, QUERY}},
                      "", "4");
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status;
        const char *word;
    } rows[] = {
        {{.headers = {{"a-im", "Other Feed"}}}, 400, "Incremental Feed"},
        {{.headers = {LATEST, AFTER("x")}}, 400, "ETag"},
        {{.headers = {LATEST, AFTER("'-1'")}}, 400, "ETag"},
        {{.headers = {LATEST, AFTER("'99999999999999999999'")}}, 400, "ETag"},
        {{.headers = {LATEST, SINCE("yesterday")}}, 400, "If-Modified-Since"},
        {{.headers = {LATEST, RANGE("7")}}, 410, "partition key range"},
        {{.headers = {LATEST, RANGE("7"), PK("['p']")}}, 410, "partition key range"},
        {{.headers = {VERSIONS, AFTER("*")}}, 400, "must be enabled"},
        {{.body = "{'query':'select * from c order by c.n'}", .headers = {LATEST, QUERY}},
         400,
         "one by one"},
        {{.body = "{'query':'select value count(1) from c'}", .headers = {LATEST, QUERY}},
         400,
         "one by one"},
        {{.body = "{'query':1}", .headers = {LATEST, QUERY}}, 400, "'query'"},
        {{.body = "{'query':'SELECT'}", .headers = {LATEST, QUERY}}, 400, "Syntax error"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    write_items(&server, "a");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = rows[i].ask;
        a.path = DOCS;
        a.method = a.body == NULL ? "GET" : "POST";
        FakeAnswer answer = expect_status(&server, &a, rows[i].status);
        expect_holds(answer.body, rows[i].word);
    }
}

/* It is read on the loop. */
static void a_long_query_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    char blanks[8192];
    memset(blanks, ' ', sizeof(blanks));
    const char *body =
        arena_format(&server.arena, "{'query':'select * from c%.*s'}", (int)sizeof(blanks), blanks)
            .ptr;
    (void)expect_status(&server, &(Ask){"POST", DOCS, body, .headers = {LATEST, QUERY}}, 413);
}

static void all_versions_reach_back_to_the_policy(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = WITH_VERSIONS});
    static const Ask asks[] = {
        {"GET", DOCS, .headers = {VERSIONS}},
        {"GET", DOCS, .headers = {VERSIONS, SINCE("Tue, 01 Jul 2025 10:00:00 GMT")}},
        {"GET", DOCS, .headers = {VERSIONS, AFTER("'0'")}},
    };
    write_items(&server, "a");
    for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
        FakeAnswer answer = expect_status(&server, &asks[i], 400);
        expect_holds(answer.body,
                     "You must read the change feed from within the retention period.");
        assert_false(holds(answer.body, "must be enabled"));
    }
    (void)expect_feed(&server, (Ask){.headers = {VERSIONS, AFTER("*")}}, "", "2");
}

static void a_feed_is_of_one_range(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = CONTAINER, .headers = {{"x-ms-offer-throughput", "18000"}}});
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", DOCS, .headers = {LATEST}}, 400);
    expect_holds(answer.body, "asks for 3");
    for (int i = 0; i < 3; i++) {
        const char *id = arena_format(&server.arena, "%d", i).ptr;
        answer = expect_feed(&server, (Ask){.headers = {LATEST, RANGE(id)}}, "", "1");
        expect_header(&answer, "x-ms-documentdb-partitionkeyrangeid", id);
    }
    /* An interval outside of the range that is named. */
    (void)expect_feed(
        &server,
        (Ask){.headers = {LATEST, RANGE("0"), {"x-ms-start-epk", "3F"}, {"x-ms-end-epk", "FF"}}},
        "", "1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_feed_goes_on_where_its_etag_says),
        cmocka_unit_test(items_are_as_a_read_shows_them_and_have_an_lsn),
        cmocka_unit_test(a_page_never_cuts_a_transaction),
        cmocka_unit_test(a_page_ends_by_bytes),
        cmocka_unit_test(all_versions_tell_what_happened),
        cmocka_unit_test(a_query_chooses_changes),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(a_long_query_is_refused),
        cmocka_unit_test(all_versions_reach_back_to_the_policy),
        cmocka_unit_test(a_feed_is_of_one_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
