/* requests_in_moves_test.c - requests on items while their partitions are split and merged (I7).
 *
 * A test drives the move itself, step by step, so that it chooses every moment.
 */
#include "api/tests/moves_testing_int.h"

#define RANGE_HEADER "x-ms-documentdb-partitionkeyrangeid"
#define PKRANGES     "/dbs/db/colls/c/pkranges"
#define PURGE        "/dbs/db/colls/c/operations/partitionkeydelete"
#define BATCH                                  \
    {                                          \
        "x-ms-cosmos-is-batch-request", "true" \
    }
#define ATOMIC                             \
    {                                      \
        "x-ms-cosmos-batch-atomic", "true" \
    }

/* Nothing that was answered holds on to a map that has changed. */
static void expect_gone(size_t count)
{
    for (int ms = 0; atomic_load(&gone_count) < count; ms++) {
        assert_true(ms < 10000);
        (void)usleep(1000);
    }
    assert_int_equal(atomic_load(&gone_count), count);
}

static const Slice MIDDLE = SLICE_INIT("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");

static void expect_answer(const FakeAnswer *answer, int status, int sub)
{
    if (answer->status != status || sub_status_of(answer) != sub)
        fail_msg("expected %d/%d, found %d/%d: %.*s", status, sub, answer->status,
                 sub_status_of(answer), SLICE_ARG(answer->body));
}

static void expect_not_yet(const FakeAnswer *answer)
{
    assert_int_equal(answer->status, 0);
}

/* The range in the headers of an answer about the key 'a' is the one that has it now. */
static void expect_range_now(FakeServer *server, const FakeAnswer *answer, const char *key)
{
    FakeAnswer read = ask(server, &(Ask){"GET", DOCS "/there", .headers = {PK(key)}});
    assert_slice(fake_header(answer, RANGE_HEADER), fake_header(&read, RANGE_HEADER));
    Slice id = fake_header(answer, RANGE_HEADER);
    expect_holds(fake_header(answer, "x-ms-session-token"),
                 arena_format(&server->arena, "%.*s:-1#", SLICE_ARG(id)).ptr);
}

/* ---- writes ---- */

static void a_write_goes_to_the_partition_that_has_its_item_now(void **state)
{
    (void)state;
    static const struct {
        Ask ask;
        int status, sub;
        int read; /* status of a read of "there" afterwards */
    } rows[] = {
        {{"POST", DOCS, "{'id':'new','pk':'a'}"}, 201, 0, 200},
        {{"POST", DOCS, "{'id':'there','pk':'a'}"}, 409, 0, 200},
        {{"POST", DOCS, "{'id':'there','pk':'a','n':2}", {{"x-ms-documentdb-is-upsert", "true"}}},
         200,
         0,
         200},
        {{"PUT", DOCS "/there", "{'id':'there','pk':'a','n':2}", {PK("['a']")}}, 200, 0, 200},
        {{"PUT", DOCS "/none", "{'id':'none','pk':'a'}", {PK("['a']")}}, 404, 0, 200},
        {{"PATCH",
          DOCS "/there",
          "{'condition':'from c where c.n = 1','operations':[{'op':'add','path':'/x','value':1}]}",
          {PK("['a']")}},
         200,
         0,
         200},
        {{"PATCH",
          DOCS "/there",
          "{'condition':'from c where c.n = 7','operations':[{'op':'add','path':'/x','value':1}]}",
          {PK("['a']")}},
         412,
         0,
         200},
        {{"DELETE", DOCS "/there", "", {PK("['a']")}}, 204, 0, 404},
        /* a range that is named beside the key is not what such a write goes by */
        {{"DELETE", DOCS "/there", "", {PK("['a']"), {RANGE_HEADER, "0"}}}, 204, 0, 404},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        make_item(&server, "{'id':'there','pk':'a','n':1}");
        size_t gone = atomic_load(&gone_count);
        Moving m;
        moving_begin(&m, &server, 0, 0, &MIDDLE, 1);
        FakeAnswer answer;
        FakeExchange *exchange = ask_only(&server, &rows[i].ask, &answer);
        expect_not_yet(&answer);
        (void)expect_status(&server, &(Ask){"GET", DOCS "/there", .headers = {PK("['a']")}}, 200);
        moving_end(&m);
        fake_wait(&server, &answer);
        mem_free(exchange);
        expect_answer(&answer, rows[i].status, rows[i].sub);
        expect_range_now(&server, &answer, "['a']");
        assert_false(slice_equal(fake_header(&answer, RANGE_HEADER), SLICE("0")));
        (void)expect_status(&server, &(Ask){"GET", DOCS "/there", .headers = {PK("['a']")}},
                            rows[i].read);
        expect_gone(gone + 1);
    }
}

static void a_write_that_names_its_item_by_rid_goes_there_too(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer made = expect_status(&server, &(Ask){"POST", DOCS, "{'id':'there','pk':'a'}"}, 201);
    Slice self = text_of(body_of(&server, &made), "_self");
    Slice path = arena_format(&server.arena, "/%.*s", SLICE_ARG(self));
    Moving m;
    moving_begin(&m, &server, 0, 0, &MIDDLE, 1);
    FakeAnswer answer;
    Ask ask = {"DELETE", arena_cstr(&server.arena, path), "", {PK("['a']")}};
    FakeExchange *exchange = ask_only(&server, &ask, &answer);
    moving_end(&m);
    fake_wait(&server, &answer);
    mem_free(exchange);
    expect_answer(&answer, 204, 0);
    (void)expect_status(&server, &(Ask){"GET", DOCS "/there", .headers = {PK("['a']")}}, 404);
}

static void a_write_waits_for_a_move_that_is_cancelled_and_goes_on(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Moving m;
    moving_begin(&m, &server, 0, 0, &MIDDLE, 1);
    FakeAnswer answer;
    FakeExchange *exchange =
        ask_only(&server, &(Ask){"POST", DOCS, "{'id':'1','pk':'a'}"}, &answer);
    move_cancel(m.move);
    container_unref(run_change(&server, CATALOG_UNDO_MOVE, 0, 0, NULL, 0));
    move_free(m.move);
    container_unref(m.container);
    fake_wait(&server, &answer);
    mem_free(exchange);
    expect_answer(&answer, 201, 0);
    expect_header(&answer, RANGE_HEADER, "0");
}

/* Runs what has come to the loop, once something has. */
static void run_loop_once(FakeServer *server)
{
    QueueNode *node = mailbox_wait(&server->loop.tasks);
    while (node != NULL) {
        HttpTask *task = CONTAINER_OF(node, HttpTask, node);
        node = node->next;
        task->run(task);
    }
}

/* On its way to the child, which is being split as well. */
static void a_write_follows_its_item_over_several_moves(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'there','pk':'a'}");
    Moving first;
    moving_begin(&first, &server, 0, 0, &MIDDLE, 1);
    FakeAnswer answer;
    FakeExchange *exchange =
        ask_only(&server, &(Ask){"POST", DOCS, "{'id':'1','pk':'a'}"}, &answer);
    moving_switch(&first);
    Moving second; /* of both children: one of them has the key */
    moving_begin(&second, &server, 1, 2, NULL, 0);
    moving_retire(&first);
    run_loop_once(&server);
    expect_not_yet(&answer);
    moving_end(&second);
    fake_wait(&server, &answer);
    mem_free(exchange);
    expect_answer(&answer, 201, 0);
    expect_header(&answer, RANGE_HEADER, "3");
}

/* What is routed by a key: a write, a transaction, a purge. */
static const Ask ROUTED[] = {
    {"POST", DOCS, "{'id':'1','pk':'a'}"},
    {"POST",
     DOCS,
     "[{'operationType':'Create','resourceBody':{'id':'1','pk':'a'}}]",
     {PK("['a']"), BATCH, ATOMIC}},
    {"POST", PURGE, "", {PK("['a']")}},
};

/* As if the map did not change: a request is not rerouted for ever. */
static void a_request_is_not_routed_for_ever(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ROUTED); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        Moving m;
        moving_begin(&m, &server, 0, 0, &MIDDLE, 1);
        FakeAnswer waiting;
        FakeExchange *exchange = ask_only(&server, &ROUTED[i], &waiting);
        moving_retire(&m); /* and the map still says that the range is there */
        fake_wait(&server, &waiting);
        mem_free(exchange);
        expect_answer(&waiting, 503, 0);
        expect_holds(waiting.body, "try again later");
        FakeAnswer late = ask(&server, &ROUTED[i]);
        expect_answer(&late, 503, 0);
        expect_holds(late.body, "100 times");
    }
}

static void a_container_may_go_while_a_request_is_routed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ROUTED); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        Moving m;
        moving_begin(&m, &server, 0, 0, &MIDDLE, 1);
        FakeAnswer answer;
        FakeExchange *exchange = ask_only(&server, &ROUTED[i], &answer);
        moving_switch(&m);
        FakeAnswer gone = ask(&server, &(Ask){"DELETE", "/dbs/db/colls/c"});
        assert_int_equal(gone.status, 204);
        moving_retire(&m);
        fake_wait(&server, &answer);
        mem_free(exchange);
        expect_answer(&answer, 404, 1003);
    }
}

/* ---- batches ---- */

static void a_batch_goes_where_its_key_is_unless_it_names_a_range(void **state)
{
    (void)state;
#define OPERATIONS                                                    \
    "[{'operationType':'Create','resourceBody':{'id':'1','pk':'a'}}," \
    "{'operationType':'Read','id':'there'},{'operationType':'Delete','id':'there'}]"
    static const struct {
        Ask ask;
        int status, sub;
        int read; /* of "1" afterwards */
    } rows[] = {
        {{"POST", DOCS, OPERATIONS, {PK("['a']"), BATCH, ATOMIC}}, 200, 0, 200},
        {{"POST", DOCS, OPERATIONS, {PK("['a']"), BATCH}}, 200, 0, 200},
        {{"POST",
          DOCS,
          OPERATIONS,
          {PK("['a']"), BATCH, {"x-ms-cosmos-batch-continue-on-error", "false"}}},
         200,
         0,
         200},
        {{"POST", DOCS, OPERATIONS, {PK("['a']"), BATCH, ATOMIC, {RANGE_HEADER, "0"}}},
         410,
         1002,
         404},
        {{"POST", DOCS, OPERATIONS, {PK("['a']"), BATCH, {RANGE_HEADER, "0"}}}, 410, 1002, 404},
        {{"POST",
          DOCS,
          "[{'operationType':'Read','id':'there','partitionKey':'[\\'a\\']'}]",
          {BATCH, {RANGE_HEADER, "0"}}},
         410,
         1002,
         404},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        make_item(&server, "{'id':'there','pk':'a'}");
        Moving m;
        moving_begin(&m, &server, 0, 0, &MIDDLE, 1);
        FakeAnswer answer;
        FakeExchange *exchange = ask_only(&server, &rows[i].ask, &answer);
        moving_end(&m);
        fake_wait(&server, &answer);
        mem_free(exchange);
        expect_answer(&answer, rows[i].status, rows[i].sub);
        if (answer.status == 200)
            expect_range_now(&server, &answer, "['a']");
        (void)expect_status(&server, &(Ask){"GET", DOCS "/1", .headers = {PK("['a']")}},
                            rows[i].read);
        (void)expect_status(&server, &(Ask){"GET", DOCS "/there", .headers = {PK("['a']")}},
                            rows[i].read == 200 ? 404 : 200);
        /* And later, when the map has changed. */
        answer = ask(&server, &rows[i].ask);
        if (rows[i].status == 410)
            expect_answer(&answer, 410, 1002);
        else
            assert_true(answer.status == 207);
    }
}

/* ---- purges ---- */

static size_t count_items(FakeServer *server)
{
    FakeAnswer answer =
        expect_status(server, &(Ask){"GET", DOCS, .headers = {{"x-ms-max-item-count", "-1"}}}, 200);
    return json_count(json_get(body_of(server, &answer), SLICE("Documents")));
}

/* Of a prefix that reaches into every range, while one of three is split, or two are merged. */
static void a_purge_reaches_everything_whatever_becomes_of_its_ranges(void **state)
{
    (void)state;
    for (int is_merge = 0; is_merge < 2; is_merge++) {
        AUTO(fake_server_close) FakeServer server;
        open_with(&server, (Ask){.body = "{'id':'c','partitionKey':{'paths':['/t','/u'],"
                                         "'kind':'MultiHash','version':2}}"});
        for (int i = 0; i < 40; i++) {
            Slice body =
                arena_format(&server.arena, "{'id':'1','t':'%c','u':%d}", i % 2 ? 'a' : 'b', i / 2);
            make_item(&server, arena_cstr(&server.arena, body));
        }
        /* Cut at the hashes of the whole prefix, so that it lies in several ranges. */
        PartitionKey key = {.count = 1};
        Json a = JSON_NONE;
        Error err;
        assert_int_equal(json_parse(&server.arena, SLICE("\"a\""), &a, &err), STATUS_OK);
        key.parts[0] = a;
        Epk epk;
        epk_make(PARTITION_MULTI_HASH, &key, &epk);
        char prefix[2 * EPK_HASH_BYTES];
        hex_encode(epk.bytes, epk.len, prefix);
        Slice cuts[2];
        cuts[0] = arena_format(&server.arena, "%.*s10", 2 * EPK_HASH_BYTES, prefix);
        cuts[1] = arena_format(&server.arena, "%.*s20", 2 * EPK_HASH_BYTES, prefix);
        Moving m;
        moving_begin(&m, &server, 0, 0, cuts, 2);
        moving_end(&m);
        Slice cut = arena_format(&server.arena, "%.*s18", 2 * EPK_HASH_BYTES, prefix);
        moving_begin(&m, &server, 2, is_merge == 1 ? 3 : 2, &cut, is_merge == 1 ? 0 : 1);
        FakeAnswer answer;
        FakeExchange *exchange =
            ask_only(&server, &(Ask){"POST", PURGE, "", .headers = {PK("['a']")}}, &answer);
        moving_end(&m);
        fake_wait(&server, &answer);
        mem_free(exchange);
        expect_answer(&answer, 200, 0);
        expect_header(&answer, RANGE_HEADER, "1");
        assert_int_equal(count_items(&server), 20);
        assert_int_equal(container_now(&server)->range_count, is_merge == 1 ? 2 : 4);
    }
}

/* ---- session tokens ---- */

static void expect_session(FakeServer *server, const char *token, int status)
{
    const Ask asks[] = {
        {"GET", DOCS "/there", .headers = {PK("['a']"), {"x-ms-session-token", token}}},
        {"GET", DOCS, .headers = {{"x-ms-session-token", token}}},
        {"POST", DOCS, "{'query':'SELECT * FROM c'}",
         .headers = {{"x-ms-session-token", token},
                     {"x-ms-documentdb-isquery", "true"},
                     {"x-ms-documentdb-query-enablecrosspartition", "true"}}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
        FakeAnswer answer = ask(server, &asks[i]);
        expect_answer(&answer, status, status == 404 ? 1002 : 0);
    }
}

static void a_session_goes_on_with_those_that_came_from_its_range(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer made = expect_status(&server, &(Ask){"POST", DOCS, "{'id':'there','pk':'a'}"}, 201);
    const char *seen = arena_cstr(&server.arena, fake_header(&made, "x-ms-session-token"));
    expect_session(&server, seen, 200);
    split(&server, 0, MIDDLE.ptr);
    expect_session(&server, seen, 200);
    expect_session(&server, "0:-1#100000", 404);
    expect_session(&server, "9:-1#100000", 200);
    merge(&server, 1, 2);
    expect_session(&server, seen, 200);
    expect_session(&server, "0:-1#100000", 404);
    expect_session(&server, "2:-1#100000", 404);
    expect_session(&server, "1:-1#1,2:-1#1,9:-1#100000", 200);
    /* What a child says may be sent beside what was seen of its parents. */
    made = expect_status(&server, &(Ask){"POST", DOCS, "{'id':'2','pk':'a'}"}, 201);
    Slice both = arena_format(&server.arena, "%s,%.*s", seen,
                              SLICE_ARG(fake_header(&made, "x-ms-session-token")));
    expect_session(&server, arena_cstr(&server.arena, both), 200);
}

/* ---- the range feed ---- */

/* "1<0 2<0": the ids of an answer's ranges and their parents. */
static void expect_feed(FakeServer *server, const FakeAnswer *answer, const char *expected)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    JsonIter it = json_iter(json_get(body_of(server, answer), SLICE("PartitionKeyRanges")));
    while (json_next(&it)) {
        buf_format(&text, "%s%.*s", text.len == 0 ? "" : " ", SLICE_ARG(text_of(it.value, "id")));
        JsonIter parents = json_iter(json_get(it.value, SLICE("parents")));
        for (size_t i = 0; json_next(&parents); i++) {
            assert_true(json_is(parents.value, JSON_STRING));
            buf_format(&text, "%c%.*s", i == 0 ? '<' : '+', SLICE_ARG(json_string(parents.value)));
        }
    }
    assert_slice(buf_view(&text), slice_from_cstr(expected));
}

static const char *expect_since(FakeServer *server, const char *etag, const char *expected)
{
    Ask ask = {"GET", PKRANGES,
               .headers = {{"a-im", "Incremental Feed"},
                           {"x-ms-max-item-count", "-1"},
                           {"if-none-match", etag}}};
    FakeAnswer answer = expect_status(server, &ask, 200);
    expect_feed(server, &answer, expected);
    ask.headers[2].value = arena_cstr(&server->arena, fake_header(&answer, "etag"));
    (void)expect_status(server, &ask, 304); /* which .NET waits for */
    return ask.headers[2].value;
}

static void the_range_feed_gives_what_came_since(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    const char *first = expect_since(&server, "", "0");
    split(&server, 0, MIDDLE.ptr);
    const char *second = expect_since(&server, first, "1<0 2<0");
    split(&server, 2, "30");
    (void)expect_since(&server, second, "3<0+2 4<0+2");
    (void)expect_since(&server, first, "1<0 3<0+2 4<0+2");
    (void)expect_since(&server, "", "1<0 3<0+2 4<0+2");
    merge(&server, 1, 3);
    (void)expect_since(&server, second, "5<0+1+2+3 4<0+2");
    const char *third = expect_since(&server, first, "5<0+1+2+3 4<0+2");
    merge(&server, 5, 4);
    (void)expect_since(&server, third, "6<0+1+2+3+4+5");
    /* A move that is under way is not shown. */
    Moving m;
    moving_begin(&m, &server, 6, 6, &MIDDLE, 1);
    (void)expect_since(&server, third, "6<0+1+2+3+4+5");
    (void)expect_status(&server, &(Ask){"GET", PKRANGES "/7"}, 404);
    moving_end(&m);
    FakeAnswer one = expect_status(&server, &(Ask){"GET", PKRANGES "/7"}, 200);
    expect_holds(one.body, "\"parents\":[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\",\"6\"]");
    (void)expect_status(&server, &(Ask){"GET", PKRANGES "/6"}, 404);
}

/* The map changes between two pages: what the client has, without the parents, is complete. */
static void pages_of_ranges_fit_together(void **state)
{
    (void)state;
    static const struct {
        uint32_t first, last;
        const char *cut;
        const char *next;
    } rows[] = {
        {0, 0, "08", "2 3"}, /* of what was shown */
        {2, 2, "28", "4<2 5<2 3"}, {0, 1, NULL, "2 3"},
        {1, 2, NULL, "4<1+2 3"}, /* of which one was shown */
        {0, 3, NULL, "4<0+1+2+3"}, {2, 3, NULL, "4<2+3"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with(&server,
                  (Ask){.body = CONTAINER, .headers = {{"x-ms-offer-throughput", "24000"}}});
        Ask page = {"GET", PKRANGES, .headers = {{"x-ms-max-item-count", "2"}}};
        FakeAnswer answer = expect_status(&server, &page, 200);
        expect_feed(&server, &answer, "0 1");
        Slice token = fake_header(&answer, "x-ms-continuation");
        page.headers[0].value = "-1";
        page.headers[1] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
        if (rows[i].cut != NULL)
            split(&server, rows[i].first, rows[i].cut);
        else
            merge(&server, rows[i].first, rows[i].last);
        answer = expect_status(&server, &page, 200);
        expect_feed(&server, &answer, rows[i].next);
    }
}

/* ---- many items ---- */

/* A query that has begun on the old map, and waits for a worker while the map changes. */
static void a_page_reads_what_its_map_shows(void **state)
{
    (void)state;
    static const Ask asks[] = {
        {"GET", DOCS, .headers = {{"x-ms-max-item-count", "-1"}}},
        {"POST",
         DOCS,
         "{'query':'SELECT * FROM c ORDER BY c.n'}",
         {{"x-ms-documentdb-isquery", "true"},
          {"x-ms-documentdb-query-enablecrosspartition", "true"},
          {"x-ms-max-item-count", "-1"}}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
        Jam jam;
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        server.api->limits.brief_us = 0; /* nothing runs on the loop */
        for (int n = 0; n < 20; n++) {
            Slice body = arena_format(&server.arena, "{'id':'%d','pk':'%d','n':%d}", n, n, n);
            make_item(&server, arena_cstr(&server.arena, body));
        }
        jam_begin(&jam, &server, 0);
        FakeAnswer answer;
        FakeExchange *exchange = ask_only(&server, &asks[i], &answer);
        expect_not_yet(&answer);
        split(&server, 0, MIDDLE.ptr);
        merge(&server, 1, 2);
        jam_end(&jam);
        fake_wait(&server, &answer);
        mem_free(exchange);
        expect_answer(&answer, 200, 0);
        assert_int_equal(json_count(json_get(body_of(&server, &answer), SLICE("Documents"))), 20);
    }
}

/* Pages of a list and of a query, with a split or a merge after each: everything comes once. */
static void pages_of_items_go_on_over_moves(void **state)
{
    (void)state;
    enum { ITEMS = 30 };
    static const Ask asks[] = {
        {"GET", DOCS, .headers = {{"x-ms-max-item-count", "4"}}},
        {"POST",
         DOCS,
         "{'query':'SELECT * FROM c'}",
         {{"x-ms-max-item-count", "4"},
          {"x-ms-documentdb-isquery", "true"},
          {"x-ms-documentdb-query-enablecrosspartition", "true"}}},
        {"POST",
         DOCS,
         "{'query':'SELECT * FROM c ORDER BY c.n'}",
         {{"x-ms-max-item-count", "4"},
          {"x-ms-documentdb-isquery", "true"},
          {"x-ms-documentdb-query-enablecrosspartition", "true"}}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        for (int n = 0; n < ITEMS; n++) {
            Slice body = arena_format(&server.arena, "{'id':'%d','pk':'%d','n':%d}", n, n, n);
            make_item(&server, arena_cstr(&server.arena, body));
        }
        bool seen[ITEMS] = {false};
        size_t count = 0;
        Ask page = asks[i];
        uint32_t next = 1; /* range id */
        for (bool is_split = false;; is_split = !is_split) {
            FakeAnswer answer = expect_status(&server, &page, 200);
            JsonIter it = json_iter(json_get(body_of(&server, &answer), SLICE("Documents")));
            for (; json_next(&it); count++) {
                uint64_t n = 0;
                assert_true(slice_to_u64(text_of(it.value, "id"), &n) && n < ITEMS);
                assert_false(seen[n]);
                seen[n] = true;
            }
            Slice token = fake_header(&answer, "x-ms-continuation");
            if (token.len == 0)
                break;
            page.headers[3] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
            if (i == 0)
                page.headers[1] = page.headers[3];
            if (is_split)
                merge(&server, next - 2, next - 1);
            else
                split(&server, next - 1, MIDDLE.ptr);
            next += is_split ? 1 : 2;
        }
        assert_int_equal(count, ITEMS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_goes_to_the_partition_that_has_its_item_now),
        cmocka_unit_test(a_write_that_names_its_item_by_rid_goes_there_too),
        cmocka_unit_test(a_write_waits_for_a_move_that_is_cancelled_and_goes_on),
        cmocka_unit_test(a_write_follows_its_item_over_several_moves),
        cmocka_unit_test(a_request_is_not_routed_for_ever),
        cmocka_unit_test(a_container_may_go_while_a_request_is_routed),
        cmocka_unit_test(a_batch_goes_where_its_key_is_unless_it_names_a_range),
        cmocka_unit_test(a_purge_reaches_everything_whatever_becomes_of_its_ranges),
        cmocka_unit_test(a_session_goes_on_with_those_that_came_from_its_range),
        cmocka_unit_test(the_range_feed_gives_what_came_since),
        cmocka_unit_test(pages_of_ranges_fit_together),
        cmocka_unit_test(a_page_reads_what_its_map_shows),
        cmocka_unit_test(pages_of_items_go_on_over_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
