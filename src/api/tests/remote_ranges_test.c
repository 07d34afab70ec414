/* remote_ranges_test.c - requests about several ranges that two nodes serve: lists, queries, and
 * deletes by a prefix of a key.
 *
 * Both nodes have the same items. 'a' serves some of the ranges and asks 'b' for the others; what
 * it answers is compared with what 'b' does, which serves all of them.
 */
#include "api/tests/moves_testing_int.h"
#include "api/tests/pair_testing_int.h"

/* ---- queries ---- */

static Ask query_ask(Pair *p, const char *text, const char *size, const char *token)
{
    Slice body = arena_format(&p->a.arena, "{'query':'%s'}", text);
    Ask a = {.method = "POST",
             .path = DOCS,
             .body = arena_cstr(&p->a.arena, body),
             .headers = {QUERY, {"content-type", "application/query+json"}}};
    a.headers[3] = (Header){"x-ms-max-item-count", size};
    if (token != NULL)
        a.headers[4] = (Header){"x-ms-continuation", token};
    return a;
}

static Slice documents_of(Pair *p, FakeServer *server, const FakeAnswer *answer)
{
    return json_print_arena(&p->a.arena, json_get(body_of(server, answer), SLICE("Documents")));
}

static const char *const QUERIES[] = {
    "SELECT c.id, c.n, c._ts FROM c",
    "SELECT c.id, c._etag FROM c WHERE c.n > 20",
    "SELECT VALUE c.id FROM c WHERE c.n > 20 AND LENGTH(c.pk) = 2 ORDER BY c.n",
    "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 3 LIMIT 30",
    "SELECT c.m, COUNT(1) AS k, SUM(c.n) AS s FROM c GROUP BY c.m",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT DISTINCT VALUE c.m FROM c",
};

/* The containers have different resource ids, and so their tokens different codes. */
static Slice position_of(Pair *p, Slice token)
{
    enum { MAC_BYTES = 16, ROOM = 1024 };
    char *bytes = arena_alloc(&p->a.arena, ROOM);
    size_t len = 0;
    assert_true(base64_decode(BASE64_RID, token, bytes, ROOM, &len));
    return len == 0 ? SLICE_EMPTY : slice_make(bytes + MAC_BYTES, len - MAC_BYTES);
}

/* Page by page, each from both nodes. */
static void compare_pages(Pair *p, const char *text, const char *size)
{
    const char *token_a = NULL;
    const char *token_b = NULL;
    for (int page = 0; page < ITEMS + 1; page++) {
        Ask of_a = query_ask(p, text, size, token_a);
        Ask of_b = query_ask(p, text, size, token_b);
        FakeAnswer ours = expect_status(&p->a, &of_a, 200);
        FakeAnswer expected = expect_status(&p->b, &of_b, 200);
        assert_slice(documents_of(p, &p->a, &ours), documents_of(p, &p->b, &expected));
        Slice next = fake_header(&ours, "x-ms-continuation");
        Slice next_b = fake_header(&expected, "x-ms-continuation");
        assert_slice(position_of(p, next), position_of(p, next_b));
        if (next.len == 0)
            return;
        token_a = arena_cstr(&p->a.arena, next);
        token_b = arena_cstr(&p->a.arena, next_b);
    }
    fail_msg("%s: no end", text);
}

static void queries_are_answered_as_by_one_node(void **state UNUSED)
{
    Pair p;
    open_pair_filled(&p);
    for (size_t away = 0; away < RANGES; away++) {
        give_away(&p, away);
        for (size_t i = 0; i < ARRAY_COUNT(QUERIES); i++) {
            p.calls = 0;
            compare_pages(&p, QUERIES[i], "7");
            compare_pages(&p, QUERIES[i], "-1");
            assert_true(p.calls > 0);
        }
        if (away != 1) /* then two are away */
            take_back(&p, away);
    }
    close_pair(&p);
}

static void a_page_pays_here_and_there_and_tells_all_sessions(void **state UNUSED)
{
    Pair p;
    open_pair_filled(&p);
    Ask a = query_ask(&p, "SELECT * FROM c", "-1", NULL);
    FakeAnswer alone = expect_status(&p.a, &a, 200);
    give_away(&p, 1);
    give_away(&p, 2);
    FakeAnswer together = expect_status(&p.a, &a, 200);
    /* The rows are paid by this node alone, so that it is rounded otherwise. */
    double paid =
        strtod(arena_cstr(&p.a.arena, fake_header(&together, "x-ms-request-charge")), NULL);
    double usual = strtod(arena_cstr(&p.a.arena, fake_header(&alone, "x-ms-request-charge")), NULL);
    assert_true(paid > usual - 0.1 && paid < usual + 0.1);
    assert_slice(fake_header(&together, "x-ms-session-token"),
                 fake_header(&alone, "x-ms-session-token"));
    assert_int_equal(fake_header(&together, NODE_HEADER_CHARGE).len, 0);
    assert_int_equal(p.calls, 2);
    close_pair(&p);
}

static void what_the_other_node_refuses_is_refused(void **state UNUSED)
{
    static const struct {
        int status;
        Slice reason;
        int expected;
        int sub;
    } rows[] = {
        {429, SLICE_INIT("3200"), 429, 3200}, {404, SLICE_INIT("1002"), 404, 1002},
        {400, SLICE_INIT("0"), 400, 0},       {503, SLICE_INIT("0"), 503, 0},
        {299, SLICE_INIT("0"), 500, 0},
    };
    Pair p;
    open_pair_filled(&p);
    give_away(&p, 1);
    Ask a = query_ask(&p, QUERIES[0], "-1", NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        p.refuses = rows[i].status;
        p.reason = rows[i].reason;
        FakeAnswer answer = expect_status(&p.a, &a, rows[i].expected);
        assert_int_equal(sub_status_of(&answer), rows[i].sub);
        expect_holds(answer.body, "b says no");
        if (rows[i].status == 429)
            expect_header(&answer, "x-ms-retry-after-ms", "77");
        if (rows[i].sub == 1002)
            assert_int_equal(fake_header(&answer, "x-ms-session-token").len, 0);
    }
    close_pair(&p);
}

static void tick(FakeServer *server)
{
    HttpTimer *timer = server->loop.timers[0];
    assert_int_equal(server->loop.timer_count, 1);
    server->loop.timer_count = 0;
    fake_clock_advance(&server->clock, HTTP_LATER_MS * 1000);
    timer->run(timer);
}

/* Waits for messages to the loop, and runs them. */
static void run_tasks(FakeServer *server)
{
    QueueNode *node = mailbox_wait(&server->loop.tasks);
    while (node != NULL) {
        HttpTask *task = CONTAINER_OF(node, HttpTask, node);
        node = node->next;
        task->run(task);
    }
}

static void wait_for_timer(FakeServer *server)
{
    while (server->loop.timer_count == 0) {
        run_tasks(server);
    }
}

static void a_page_begins_again_when_a_range_has_moved(void **state UNUSED)
{
    static const struct {
        int status;
        NodeCallOutcome outcome;
    } rows[] = {
        {421, NODE_CALL_ANSWERED},
        {410, NODE_CALL_ANSWERED},
        {0, NODE_CALL_UNKNOWN},
        {0, NODE_CALL_NOT_SENT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Pair p;
        FakeAnswer answer;
        open_pair_filled(&p);
        give_away(&p, 1);
        p.refuses = rows[i].status;
        p.outcome = rows[i].outcome;
        Ask a = query_ask(&p, QUERIES[0], "-1", NULL);
        FakeExchange *exchange = ask_only(&p.a, &a, &answer);
        wait_for_timer(&p.a);
        assert_int_equal(answer.status, 0);
        assert_true(p.refreshes > 0);
        take_back(&p, 1);
        tick(&p.a);
        fake_wait(&p.a, &answer);
        assert_int_equal(answer.status, 200);
        assert_int_equal(json_count(json_get(body_of(&p.a, &answer), SLICE("Documents"))), ITEMS);
        mem_free(exchange);
        close_pair(&p);
    }
}

/* Takes the calls that wait on the loop of 'a', has them answered by 'b', and hands the answers on.
 */
static size_t deliver_calls(Pair *p)
{
    size_t count = p->a.loop.call_count;
    NodeCall *calls[ARRAY_COUNT(p->a.loop.calls)];
    memcpy(calls, p->a.loop.calls, sizeof(calls));
    p->a.loop.call_count = 0;
    for (size_t i = 0; i < count; i++) {
        deliver(p, calls[i]);
        calls[i]->done(calls[i]);
    }
    return count;
}

static void a_query_of_nothing_here_goes_to_the_other_node(void **state UNUSED)
{
    Pair p;
    FakeAnswer answer;
    open_pair_filled(&p);
    for (size_t i = 0; i < RANGES; i++)
        give_away(&p, i);
    Ask a = query_ask(&p, QUERIES[2], "-1", NULL);
    FakeExchange *exchange = ask_only(&p.a, &a, &answer);
    assert_int_equal(deliver_calls(&p), 1);
    assert_int_equal(answer.status, 200);
    assert_int_equal(p.calls, 0);
    mem_free(exchange);
    close_pair(&p);
}

static const Ask STATISTICS = {
    "GET", "/dbs/db/colls/c", .headers = {{"x-ms-documentdb-populatepartitionstatistics", "true"}}};

static Slice statistics_of(Pair *p, FakeServer *server, const FakeAnswer *answer)
{
    assert_int_equal(answer->status, 200);
    return json_print_arena(&p->a.arena, json_get(body_of(server, answer), SLICE("statistics")));
}

static void partition_statistics_are_those_of_all_nodes(void **state UNUSED)
{
    Pair p;
    open_pair_filled(&p);
    FakeAnswer whole = expect_status(&p.b, &STATISTICS, 200);
    Slice expected = statistics_of(&p, &p.b, &whole);
    for (size_t away = 0; away < RANGES; away++) {
        FakeAnswer answer;
        give_away(&p, away);
        FakeExchange *exchange = ask_only(&p.a, &STATISTICS, &answer);
        assert_int_equal(deliver_calls(&p), away + 1);
        fake_wait(&p.a, &answer);
        assert_slice(statistics_of(&p, &p.a, &answer), expected);
        mem_free(exchange);
    }
    close_pair(&p);
}

static void partition_statistics_begin_again_if_an_owner_is_none_any_more(void **state UNUSED)
{
    static const struct {
        int refuses;
        NodeCallOutcome outcome;
    } rows[] = {{421, NODE_CALL_ANSWERED}, {410, NODE_CALL_ANSWERED}, {0, NODE_CALL_UNKNOWN}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Pair p;
        FakeAnswer answer;
        open_pair_filled(&p);
        give_away(&p, 1);
        p.refuses = rows[i].refuses;
        p.outcome = rows[i].outcome;
        FakeExchange *exchange = ask_only(&p.a, &STATISTICS, &answer);
        assert_int_equal(deliver_calls(&p), 1);
        wait_for_timer(&p.a);
        assert_int_equal(answer.status, 0);
        assert_true(p.refreshes > 0);
        take_back(&p, 1);
        tick(&p.a);
        fake_wait(&p.a, &answer);
        assert_int_equal(json_count(json_get(body_of(&p.a, &answer), SLICE("statistics"))), RANGES);
        mem_free(exchange);
        close_pair(&p);
    }
}

/* Nodes of an older program do not know the question. */
static void rows_that_make_no_sense_are_left_out(void **state UNUSED)
{
    static const char *const bodies[] = {"{", "7", "{\"id\":\"0\"}", "{\"id\":1}", "[]"};
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        Pair p;
        FakeAnswer answer;
        open_pair_filled(&p);
        give_away(&p, 1);
        p.says = slice_from_cstr(bodies[i]);
        FakeExchange *exchange = ask_only(&p.a, &STATISTICS, &answer);
        assert_int_equal(deliver_calls(&p), 1);
        fake_wait(&p.a, &answer);
        assert_int_equal(json_count(json_get(body_of(&p.a, &answer), SLICE("statistics"))),
                         RANGES - 1);
        mem_free(exchange);
        close_pair(&p);
    }
}

static void clients_cannot_ask_as_nodes_do(void **state UNUSED)
{
    Pair p;
    open_pair_filled(&p);
    Ask a = query_ask(&p, QUERIES[0], "-1", NULL);
    a.headers[4] = (Header){NODE_HEADER_BATCH, "MURE"};
    a.headers[5] = (Header){NODE_HEADER_RANGE, "1"};
    FakeAnswer answer = expect_status(&p.a, &a, 200);
    assert_int_equal(json_count(json_get(body_of(&p.a, &answer), SLICE("Documents"))), ITEMS);
    close_pair(&p);
}

static void a_node_that_asks_wrongly_is_told(void **state UNUSED)
{
    static const struct {
        const char *range;
        const char *batch;
        int status;
    } rows[] = {
        {"1", "MURE", 400},
        {"1", "!", 400},
        {"99", "MURE", 410},
        {"", "MURE", 400},
    };
    Pair p;
    open_pair_filled(&p);
    Ask a = query_ask(&p, QUERIES[0], "-1", NULL);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const HttpHeader headers[] = {
            {SLICE("x-ms-documentdb-isquery"), SLICE("true")},
            {SLICE("x-ms-documentdb-query-enablecrosspartition"), SLICE("true")},
            {SLICE("content-type"), SLICE("application/query+json")},
            {SLICE(NODE_HEADER_ORIGIN), SLICE("http 1.2.3.4:5")},
            {SLICE(NODE_HEADER_HOST), SLICE("x")},
            {SLICE(NODE_HEADER_SECONDS),
             arena_format(&p.b.arena, "%lld", (long long)clock_wall_s(&p.b.clock.clock))},
            {SLICE(NODE_HEADER_RANGE), slice_from_cstr(rows[i].range)},
            {SLICE(NODE_HEADER_BATCH), slice_from_cstr(rows[i].batch)},
        };
        FakeAnswer answer;
        fake_request(&p.b,
                     &(FakeRequest){.method = SLICE("POST"),
                                    .path = SLICE(DOCS),
                                    .headers = headers,
                                    .header_count = ARRAY_COUNT(headers),
                                    .body = quoted(&p.b.arena, a.body),
                                    .key = SLICE(FAKE_KEY),
                                    .is_node = true},
                     &answer);
        assert_int_equal(answer.status, rows[i].status);
    }
    close_pair(&p);
}

/* ---- lists ---- */

/* All pages; those that are another node's are sent there. */
static Seen list_all(Pair *p, Ask a)
{
    Seen seen = {0};
    size_t own = 0;
    while (a.headers[own].name != NULL)
        own++;
    for (int page = 0; page < ITEMS; page++) {
        FakeAnswer answer;
        FakeExchange *exchange = ask_only(&p->a, &a, &answer);
        while (answer.status == 0 && p->a.loop.call_count == 0) {
            run_tasks(&p->a);
        }
        if (answer.status == 0)
            p->calls += (unsigned)deliver_calls(p);
        mem_free(exchange);
        assert_int_equal(answer.status, 200);
        note_page(&p->a, &answer, &seen);
        Slice token = fake_header(&answer, "x-ms-continuation");
        if (token.len == 0)
            return seen;
        a.headers[own] = (Header){"x-ms-continuation", arena_cstr(&p->a.arena, token)};
    }
    fail_msg("no end");
    return seen;
}

static void a_list_goes_from_node_to_node(void **state UNUSED)
{
    Pair p;
    open_pair_filled(&p);
    for (unsigned away = 1; away < 8; away++) {
        for (size_t i = 0; i < RANGES; i++) {
            if ((away >> i & 1) != 0)
                give_away(&p, i);
        }
        static const Ask lists[] = {
            {"GET", DOCS, NULL, {{"x-ms-max-item-count", "-1"}}},
            {"GET", DOCS, NULL, {{"x-ms-max-item-count", "4"}}},
            {"GET",
             DOCS,
             NULL,
             {{"x-ms-start-epk", ""},
              {"x-ms-end-epk", "FF"},
              {"x-ms-read-key-type", "EffectivePartitionKeyRange"},
              {"x-ms-max-item-count", "9"}}},
        };
        for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
            p.calls = 0;
            Seen seen = list_all(&p, lists[i]);
            expect_each_once(&seen);
            assert_true(p.calls > 0);
        }
        for (size_t i = 0; i < RANGES; i++) {
            if (p.away[i] != 0)
                take_back(&p, i);
        }
    }
    close_pair(&p);
}

/* ---- deletes by a prefix of a key ---- */

static Json json_text(Arena *arena, Slice text)
{
    Json json = JSON_NONE;
    Error err;
    assert_int_equal(json_parse(arena, text, &json, &err), STATUS_OK);
    return json;
}

#define PURGE "/dbs/db/colls/c/operations/partitionkeydelete"

/* A prefix of a key, "a", that lies in all of the ranges. */
static void open_pair_hierarchical(Pair *p)
{
    open_pair(p, (Ask){.body = "{'id':'c','partitionKey':{'paths':['/t','/u'],"
                               "'kind':'MultiHash','version':2}}"});
    for (int i = 0; i < 40; i++) {
        Slice body =
            arena_format(&p->a.arena, "{'id':'1','t':'%c','u':%d}", i % 2 ? 'a' : 'b', i / 2);
        make_both(p, arena_cstr(&p->a.arena, body));
    }
    PartitionKey key = {.count = 1, .parts = {json_text(&p->a.arena, SLICE("\"a\""))}};
    Epk epk;
    epk_make(PARTITION_MULTI_HASH, &key, &epk);
    char prefix[2 * EPK_HASH_BYTES];
    hex_encode(epk.bytes, epk.len, prefix);
    Slice cuts[RANGES - 1];
    cuts[0] = arena_format(&p->a.arena, "%.*s10", 2 * EPK_HASH_BYTES, prefix);
    cuts[1] = arena_format(&p->a.arena, "%.*s20", 2 * EPK_HASH_BYTES, prefix);
    FakeServer *servers[] = {&p->a, &p->b};
    for (size_t i = 0; i < ARRAY_COUNT(servers); i++) {
        Moving m;
        moving_begin(&m, servers[i], 0, 0, cuts, RANGES - 1);
        moving_end(&m);
    }
    assert_int_equal(container_now(&p->a)->range_count, RANGES);
}

static size_t count_items(FakeServer *server)
{
    FakeAnswer answer =
        expect_status(server, &(Ask){"GET", DOCS, .headers = {{"x-ms-max-item-count", "-1"}}}, 200);
    return json_count(json_get(body_of(server, &answer), SLICE("Documents")));
}

/* Returns how many parts were sent to the other node. */
static size_t purge(Pair *p, FakeAnswer *answer)
{
    Ask a = {"POST", PURGE, "", .headers = {PK("['a']")}};
    FakeExchange *exchange = ask_only(&p->a, &a, answer);
    size_t sent = deliver_calls(p);
    while (answer->status == 0 && p->a.loop.timer_count == 0) {
        run_tasks(&p->a);
    }
    if (answer->status == 0) { /* it begins again */
        p->refuses = 0;
        p->outcome = NODE_CALL_ANSWERED;
        tick(&p->a);
        (void)deliver_calls(p);
        fake_wait(&p->a, answer);
    }
    mem_free(exchange);
    return sent;
}

static void a_prefix_is_purged_on_all_nodes(void **state UNUSED)
{
    Pair p;
    FakeAnswer answer;
    open_pair_hierarchical(&p);
    give_away(&p, 1);
    give_away(&p, 2);
    assert_int_equal(purge(&p, &answer), 2);
    assert_int_equal(answer.status, 200);
    size_t there = count_items(&p.b);
    take_back(&p, 1);
    take_back(&p, 2);
    /* Each part was purged on its node, and only there. */
    assert_true(there > 20 && there < 40);
    assert_int_equal(count_items(&p.a) + there, 40 + 40 - 20);
    close_pair(&p);
}

static void a_purge_goes_to_the_node_of_its_first_range(void **state UNUSED)
{
    Pair p;
    FakeAnswer answer;
    open_pair_hierarchical(&p);
    give_away(&p, 0);
    assert_int_equal(purge(&p, &answer), 1);
    assert_int_equal(answer.status, 200);
    assert_int_equal(count_items(&p.b), 20); /* which has the other ranges, too, here */
    close_pair(&p);
}

static void a_purge_is_answered_by_its_worst_part(void **state UNUSED)
{
    static const struct {
        int refuses;
        NodeCallOutcome outcome;
        int status;
    } rows[] = {
        {0, NODE_CALL_UNKNOWN, 408},    {0, NODE_CALL_NOT_SENT, 200}, /* after it has begun again */
        {421, NODE_CALL_ANSWERED, 200}, {429, NODE_CALL_ANSWERED, 429},
        {503, NODE_CALL_ANSWERED, 503},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Pair p;
        FakeAnswer answer;
        open_pair_hierarchical(&p);
        give_away(&p, 1);
        p.refuses = rows[i].refuses;
        p.reason = SLICE("0");
        p.outcome = rows[i].outcome;
        assert_int_equal(purge(&p, &answer), 1);
        assert_int_equal(answer.status, rows[i].status);
        if (rows[i].status == 200)
            assert_true(count_items(&p.b) < 40);
        close_pair(&p);
    }
}

/* The part whose outcome is unknown may still be done, so nothing is asked for a second time. */
static void a_purge_of_unknown_outcome_is_not_sent_again(void **state UNUSED)
{
    static const struct {
        int refuses;
        NodeCallOutcome outcome;
        const char *reason;
    } rows[] = {
        {410, NODE_CALL_ANSWERED, "1002"},
        {421, NODE_CALL_ANSWERED, "0"},
        {429, NODE_CALL_ANSWERED, "3200"},
        {0, NODE_CALL_NOT_SENT, "0"},
    };
    for (size_t i = 0; i < 2 * ARRAY_COUNT(rows); i++) {
        Pair p;
        FakeAnswer answer;
        NodeCall *calls[2];
        open_pair_hierarchical(&p);
        give_away(&p, 1);
        give_away(&p, 2);
        Ask a = {"POST", PURGE, "", .headers = {PK("['a']")}};
        FakeExchange *exchange = ask_only(&p.a, &a, &answer);
        assert_int_equal(p.a.loop.call_count, 2);
        memcpy(calls, p.a.loop.calls, sizeof(calls));
        p.a.loop.call_count = 0;
        for (size_t part = 0; part < 2; part++) {
            bool is_unknown = part == i % 2;
            p.refuses = is_unknown ? 0 : rows[i / 2].refuses;
            p.reason = slice_from_cstr(rows[i / 2].reason);
            p.outcome = is_unknown ? NODE_CALL_UNKNOWN : rows[i / 2].outcome;
            deliver(&p, calls[part]);
            calls[part]->done(calls[part]);
        }
        fake_wait(&p.a, &answer);
        assert_int_equal(answer.status, 408);
        assert_int_equal(p.a.loop.call_count, 0);
        mem_free(exchange);
        close_pair(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(queries_are_answered_as_by_one_node),
        cmocka_unit_test(a_page_pays_here_and_there_and_tells_all_sessions),
        cmocka_unit_test(what_the_other_node_refuses_is_refused),
        cmocka_unit_test(a_page_begins_again_when_a_range_has_moved),
        cmocka_unit_test(a_query_of_nothing_here_goes_to_the_other_node),
        cmocka_unit_test(partition_statistics_are_those_of_all_nodes),
        cmocka_unit_test(partition_statistics_begin_again_if_an_owner_is_none_any_more),
        cmocka_unit_test(rows_that_make_no_sense_are_left_out),
        cmocka_unit_test(clients_cannot_ask_as_nodes_do),
        cmocka_unit_test(a_node_that_asks_wrongly_is_told),
        cmocka_unit_test(a_list_goes_from_node_to_node),
        cmocka_unit_test(a_prefix_is_purged_on_all_nodes),
        cmocka_unit_test(a_purge_goes_to_the_node_of_its_first_range),
        cmocka_unit_test(a_purge_is_answered_by_its_worst_part),
        cmocka_unit_test(a_purge_of_unknown_outcome_is_not_sent_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
