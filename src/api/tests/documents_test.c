/* documents_test.c - requests on one item: what is answered, also when the answer comes later than
 * the handler returns (I2, I3). */
#include "api/tests/testing_int.h"

#define A   PK("['a']")
#define ONE DOCS "/1"

/* One request and what is expected of its answer. */
typedef struct Step {
    Ask ask;
    int status, sub;
    const char *holds; /* in the body; NULL for any body */
} Step;

static FakeAnswer expect_step(FakeServer *server, const Step *step)
{
    FakeAnswer answer = expect_status(server, &step->ask, step->status);
    if (sub_status_of(&answer) != step->sub)
        fail_msg("%s %s: expected sub-status %d, found %d: %.*s", step->ask.method, step->ask.path,
                 step->sub, sub_status_of(&answer), SLICE_ARG(answer.body));
    if (step->holds != NULL)
        expect_holds(answer.body, arena_cstr(&server->arena, quoted(&server->arena, step->holds)));
    return answer;
}

static void the_life_of_an_item(void **state)
{
    (void)state;
    static const Step steps[] = {
        {{"GET", ONE, .headers = {A}}, 404, 0, "There is no item"},
        {{"PUT", ONE, "{'id':'1','pk':'a'}", .headers = {A}}, 404},
        {{"PATCH", ONE, "[{'op':'set','path':'/n','value':1}]", .headers = {A}}, 404},
        {{"DELETE", ONE, .headers = {A}}, 404},
        {{"POST", DOCS, "{'id':'1','pk':'a','n':1}", .headers = {A}}, 201, 0, "'n':1,'_rid':"},
        {{"POST", DOCS, "{'id':'1','pk':'a'}", .headers = {A}}, 409, 0, "already exists"},
        {{"POST", DOCS, "{'id':'1','pk':'b','n':7}"}, 201}, /* another logical partition */
        {{"GET", ONE, .headers = {A}}, 200, 0, "'n':1"},
        {{"HEAD", ONE, .headers = {A}}, 200},
        {{"PUT", ONE, "{'id':'1','pk':'a','n':2}", .headers = {A}}, 200, 0, "'n':2"},
        {{"PATCH", ONE, "[{'op':'incr','path':'/n','value':3}]", .headers = {A}}, 200, 0, "'n':5"},
        {{"PATCH", ONE,
          "{'operations':[{'op':'set','path':'/m','value':1}],'condition':'from c where c.n = 5'}",
          .headers = {A}},
         200,
         0,
         "'m':1"},
        {{"PATCH", ONE,
          "{'operations':[{'op':'set','path':'/m','value':2}],'condition':'from c where c.n = 6'}",
          .headers = {A}},
         412,
         0,
         "condition"},
        {{"POST", DOCS, "{'id':'1','pk':'a','n':6}",
          .headers = {A, {"x-ms-documentdb-is-upsert", "True"}}},
         200,
         0,
         "'n':6"},
        {{"POST", DOCS, "{'id':'2','pk':'a'}",
          .headers = {A, {"x-ms-documentdb-is-upsert", "True"}}},
         201},
        {{"PUT", ONE, "{'id':'2','pk':'a'}", .headers = {A}}, 409}, /* its new name is taken */
        {{"PUT", ONE, "{'id':'3','pk':'a'}", .headers = {A}}, 200},
        {{"GET", ONE, .headers = {A}}, 404},
        {{"GET", DOCS "/3", .headers = {A}}, 200},
        {{"DELETE", DOCS "/3", .headers = {A}}, 204},
        {{"DELETE", DOCS "/3", .headers = {A}}, 404},
        {{"GET", ONE, .headers = {PK("['b']")}}, 200, 0, "'n':7"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++)
        (void)expect_step(&server, &steps[i]);
}

/* Refused steps leave the item that they name as it was. */
static void expect_refusals(const Step *steps, size_t count)
{
    static const Step unharmed = {
        {"GET", ONE, .headers = {A}, .key = FAKE_READ_KEY}, 200, 0, "'n':0"};
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a','n':0}");
    for (size_t i = 0; i < count; i++)
        (void)expect_step(&server, &steps[i]);
    (void)expect_step(&server, &unharmed);
}

static void refusals_say_why(void **state)
{
    (void)state;
    static const Step STEPS[] = {
        {{"GET", ONE}, 400, 0, "PartitionKey value must be supplied"},
        {{"DELETE", ONE}, 400, 0, "PartitionKey value must be supplied"},
        {{"PATCH", ONE, "[]"}, 400},
        {{"GET", ONE, .headers = {PK("[]")}},
         400,
         1001,
         "correspond to definition in the collection"},
        {{"GET", ONE, .headers = {PK("['a','b']")}},
         400,
         1001,
         "correspond to definition in the collection"},
        {{"GET", ONE, .headers = {PK("a")}}, 400},
        {{"GET", ONE, .headers = {PK("['b']")}}, 404},
        {{"POST", DOCS, "{'id':'2','pk':'a'}", .headers = {PK("['b']")}},
         400,
         1001,
         "extracted from document"},
        {{"POST", DOCS, "{'id':'2'}", .headers = {PK("[null]")}}, 400, 1001},
        {{"PUT", ONE, "{'id':'1','pk':'b'}", .headers = {A}}, 400, 1001},
        {{"POST", DOCS, "{'pk':'a'}", .headers = {A}}, 400},
        {{"POST", DOCS, "{'id':1,'pk':'a'}", .headers = {A}}, 400},
        {{"POST", DOCS, "{'id':'','pk':'a'}", .headers = {A}}, 400},
        {{"POST", DOCS, "{'id':'a/b','pk':'a'}", .headers = {A}}, 400},
        {{"POST", DOCS, "{'id':'2','pk':'a','ttl':0}", .headers = {A}}, 400},
        {{"POST", DOCS, "[]", .headers = {A}}, 400},
        {{"POST", DOCS, "{'id':'half \\ud800','pk':'a'}", .headers = {A}}, 400, 0, "surrogate"},
        {{"POST", DOCS, "{'id':'2','pk':'a','\\udc00':1}", .headers = {A}}, 400, 0, "surrogate"},
        {{"POST", DOCS, "{'id':'\xed\xa0\x80','pk':'a'}", .headers = {A}}, 400, 0, "UTF-8"},
        {{"POST", DOCS, "{'id':'2','pk':'a'}", .headers = {PK("['\\ud800']")}}, 400},
        {{"GET", DOCS "/%ED%A0%80", .headers = {A}}, 400, 0, "UTF-8"},
        {{"PATCH", ONE, "[{'op':'set','path':'/m','value':'\\ud800'}]", .headers = {A}}, 400},
        {{"PATCH", ONE, "[{'op':'set','path':'/\\ud800','value':1}]", .headers = {A}}, 400},
        {{"POST", DOCS, "{'id':'2','pk':'a'", .headers = {A}}, 400},
        {{"POST", DOCS, "", .headers = {A}}, 400},
        {{"PATCH", ONE, "{}", .headers = {A}}, 400},
        {{"PATCH", ONE, "x", .headers = {A}}, 400},
        {{"PATCH", ONE, "[{'op':'set','path':'/id','value':'x'}]", .headers = {A}}, 400},
        {{"PATCH", ONE, "[{'op':'set','path':'/pk','value':'x'}]", .headers = {A}}, 400},
        {{"PATCH", ONE, "[{'op':'replace','path':'/none','value':1}]", .headers = {A}}, 400},
    };
    expect_refusals(STEPS, ARRAY_COUNT(STEPS));
}

#define SET_IF(condition) \
    "{'operations':[{'op':'set','path':'/m','value':2}],'condition':'" condition "'}"

static void conditions_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    static const Step STEPS[] = {
        {{"PATCH", ONE, SET_IF("from c where"), .headers = {A}}, 400, 0, "condition"},
        {{"PATCH", ONE, SET_IF("x"), .headers = {A}}, 400, 0, "condition"},
        {{"PATCH", ONE, SET_IF("1"), .headers = {A}}, 400, 0, "condition"},
        {{"PATCH", ONE, SET_IF("true"), .headers = {A}}, 400, 0, "condition"},
        {{"PATCH", ONE, SET_IF("+ 1"), .headers = {A}}, 400, 0, "condition"},
        {{"PATCH", ONE, SET_IF("where c.n = 1"), .headers = {A}}, 400, 0, "condition"},
        {{"PATCH", ONE, SET_IF("fromage"), .headers = {A}}, 400, 0, "condition"},
        {{"PATCH", ONE, SET_IF("as x"), .headers = {A}}, 400, 0, "condition"},
        {{"PATCH", ONE, SET_IF("/**/"), .headers = {A}}, 400, 0, "condition"},
    };
    expect_refusals(STEPS, ARRAY_COUNT(STEPS));
}

static void a_request_that_may_not_change_an_item_is_refused(void **state)
{
    (void)state;
    static const Step STEPS[] = {
        {{"PUT", ONE, "{'id':'1','pk':'a'}", .headers = {A, {"if-match", "'x'"}}},
         412,
         0,
         "pre-condition is not met"},
        {{"DELETE", ONE, .headers = {A, {"if-match", "'x'"}}}, 412},
        {{"PATCH", ONE, "[{'op':'set','path':'/n','value':1}]",
          .headers = {A, {"if-match", "'x'"}}},
         412},
        {{"POST", DOCS, "{'id':'1','pk':'a'}",
          .headers = {A, {"if-match", "'x'"}, {"x-ms-documentdb-is-upsert", "true"}}},
         412},
        {{"DELETE", DOCS "/none", .headers = {A, {"if-match", "*"}}}, 404},
        {{"GET", "/dbs/db/colls/none/docs/1", .headers = {A}}, 404, 1003},
        {{"GET", "/dbs/none/colls/c/docs/1", .headers = {A}}, 404, 1003},
        {{"POST", DOCS, "{'id':'3','pk':'a'}", .headers = {A}, .key = FAKE_READ_KEY}, 401},
        {{"DELETE", ONE, .headers = {A}, .key = FAKE_READ_KEY}, 401},
    };
    expect_refusals(STEPS, ARRAY_COUNT(STEPS));
}

static Slice spaced_body(FakeServer *server, size_t len)
{
    Slice head = SLICE("{\"id\":\"big\",\"pk\":\"a\"");
    char *text = arena_alloc(&server->arena, len);
    memset(text, ' ', len);
    memcpy(text, head.ptr, head.len);
    text[len - 1] = '}';
    return slice_make(text, len);
}

static FakeAnswer send_body(FakeServer *server, const char *method, const char *path, Slice body)
{
    const HttpHeader headers[] = {{SLICE("x-ms-documentdb-partitionkey"), SLICE("[\"a\"]")}};
    FakeRequest request = {.method = slice_from_cstr(method),
                           .path = slice_from_cstr(path),
                           .headers = headers,
                           .header_count = 1,
                           .body = body,
                           .key = SLICE(FAKE_KEY)};
    FakeAnswer answer;
    fake_request(server, &request, &answer);
    return answer;
}

static void a_body_has_at_most_two_megabytes(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    static const struct {
        const char *method, *path;
        size_t len;
        int status;
    } rows[] = {
        {"POST", DOCS, BODY_BYTES_MAX + 1, 413},         {"POST", DOCS, BODY_BYTES_MAX, 201},
        {"PUT", DOCS "/big", BODY_BYTES_MAX + 1, 413},   {"PUT", DOCS "/big", BODY_BYTES_MAX, 200},
        {"PATCH", DOCS "/big", BODY_BYTES_MAX + 1, 413},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FakeAnswer answer =
            send_body(&server, rows[i].method, rows[i].path, spaced_body(&server, rows[i].len));
        assert_int_equal(answer.status, rows[i].status);
        if (rows[i].status == 413)
            expect_holds(answer.body, "RequestEntityTooLarge");
    }
}

/* 2 MB of these become 9 MB. */
static void an_item_whose_text_grows_comes_back_whole(void **state)
{
    (void)state;
    enum { NUMBERS = 400000 };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    AUTO(buf_done) Buf body;
    buf_init(&body, BODY_BYTES_MAX);
    buf_slice(&body, SLICE("{\"id\":\"1\",\"pk\":\"a\",\"list\":[1"));
    for (int i = 1; i < NUMBERS; i++)
        buf_slice(&body, SLICE(",1e20"));
    buf_slice(&body, SLICE("]}"));
    assert_false(buf_full(&body));
    FakeAnswer created = send_body(&server, "POST", DOCS, buf_view(&body));
    assert_int_equal(created.status, 201);
    FakeAnswer read = expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 200);
    assert_slice(read.body, created.body);
    assert_true(read.body.len > 2 * PAGE_BYTES_MAX);
    size_t commas = 0;
    for (size_t i = 0; i < read.body.len; i++)
        commas += read.body.ptr[i] == ',' ? 1 : 0;
    assert_int_equal(commas, NUMBERS - 1 + 7); /* and eight members */
    assert_true(slice_ends_with(read.body, SLICE("}")));
}

static void answers_have_the_headers_that_clients_act_on(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = "{'id':'C 1é','partitionKey':{'paths':['/pk']}}"});
    const char *docs = "/dbs/db/colls/C%201%C3%A9/docs";
    const char *one = "/dbs/db/colls/C%201%C3%A9/docs/1";
    const Step steps[] = {
        {{"POST", docs, "{'id':'1','pk':'a'}", .headers = {A}}, 201},
        {{"GET", one, .headers = {A}}, 200},
        {{"PUT", one, "{'id':'1','pk':'a'}", .headers = {A}}, 200},
        {{"POST", docs, "{'id':'1','pk':'a'}", .headers = {A}}, 409},
        {{"DELETE", one, .headers = {A, {"if-match", "'x'"}}}, 412},
        {{"DELETE", one, .headers = {A}}, 204},
        {{"GET", one, .headers = {A}}, 404},
    };
    static const char *const lsns[] = {"2", "2", "3", "3", "3", "4", "4"};
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        FakeAnswer answer = expect_step(&server, &steps[i]);
        Slice token = arena_format(&server.arena, "0:-1#%s", lsns[i]);
        assert_slice(fake_header(&answer, "x-ms-session-token"), token);
        expect_header(&answer, "lsn", lsns[i]);
        expect_header(&answer, "x-ms-documentdb-partitionkeyrangeid", "0");
        expect_header(&answer, "x-ms-alt-content-path", "dbs/db/colls/C%201%C3%A9");
        assert_int_equal(fake_header(&answer, "x-ms-content-path").len, RID_CONTAINER_LEN);
        double charge = 0;
        assert_true(json_number_from_text(fake_header(&answer, "x-ms-request-charge"), &charge));
        assert_true(charge >= 1);
        Slice etag = fake_header(&answer, "etag");
        if (answer.status == 200 || answer.status == 201)
            assert_slice(etag, text_of(body_of(&server, &answer), "_etag"));
        else
            assert_int_equal(etag.len, 0);
    }
}

static void what_the_client_has_already_is_not_sent_again(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    FakeAnswer first = expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 200);
    const char *etag = arena_cstr(&server.arena, fake_header(&first, "etag"));
    for (int is_cold = 0; is_cold < 2; is_cold++) {
        const struct {
            const char *given;
            int status;
        } rows[] = {{etag, 304}, {"*", 304}, {"'x'", 200}, {"", 200}};
        for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
            Ask a = {"GET", ONE, .headers = {A, {"if-none-match", rows[i].given}}};
            if (is_cold)
                memory_store_forget(server.store, 1);
            FakeAnswer answer = expect_status(&server, &a, rows[i].status);
            expect_header(&answer, "etag", etag);
            assert_int_equal(answer.body.len > 0, rows[i].status == 200);
        }
    }
}

static void a_client_that_wants_no_content_gets_none(void **state)
{
    (void)state;
    static const Step steps[] = {
        {{"POST", DOCS, "{'id':'1','pk':'a'}", .headers = {A, {"prefer", "return=minimal"}}}, 201},
        {{"PUT", ONE, "{'id':'1','pk':'a'}", .headers = {A, {"prefer", "return=minimal"}}}, 200},
        {{"PATCH", ONE, "[{'op':'set','path':'/n','value':1}]",
          .headers = {A, {"prefer", "Return=Minimal"}}},
         200},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        FakeAnswer answer = expect_step(&server, &steps[i]);
        assert_int_equal(answer.body.len, 0);
        assert_true(fake_header(&answer, "etag").len > 0);
    }
    Ask read = {"GET", ONE, .headers = {A, {"prefer", "return=minimal"}}};
    assert_true(expect_status(&server, &read, 200).body.len > 0);
}

/* ---- reads that wait for the disk ---- */

static void a_cold_read_is_answered_like_a_warm_one(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    static const Step steps[] = {
        {{"GET", ONE, .headers = {A}}, 200, 0, "'id':'1'"},
        {{"GET", DOCS "/2%41", .headers = {A}}, 404, 0, "2A"},
        {{"GET", ONE, .headers = {PK("['b']")}}, 404},
    };
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        FakeAnswer warm = expect_step(&server, &steps[i]);
        memory_store_forget(server.store, 1);
        FakeAnswer cold = expect_step(&server, &steps[i]);
        assert_int_equal(cold.header_count, warm.header_count);
        assert_slice(fake_header(&cold, "x-ms-session-token"),
                     fake_header(&warm, "x-ms-session-token"));
        assert_slice(fake_header(&cold, "x-ms-request-charge"),
                     fake_header(&warm, "x-ms-request-charge"));
    }
    memory_store_forget(server.store, 1);
    memory_store_fail_gets(server.store, 2, STATUS_IO);
    (void)expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 503);
    memory_store_fail_gets(server.store, 0, STATUS_IO);
    (void)expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 200);
}

static FakeExchange *begin(FakeServer *server, const char *method, const char *path,
                           const char *body, FakeAnswer *answer)
{
    const HttpHeader headers[] = {{SLICE("x-ms-documentdb-partitionkey"), SLICE("[\"a\"]")}};
    FakeRequest request = {.method = slice_from_cstr(method),
                           .path = slice_from_cstr(path),
                           .headers = headers,
                           .header_count = 1,
                           .body = quoted(&server->arena, body),
                           .key = SLICE(FAKE_KEY)};
    return fake_send(server, &request, answer);
}

static void expect_late(FakeServer *server, FakeExchange *exchange, FakeAnswer *answer, int status)
{
    fake_wait(server, answer);
    if (answer->status != status)
        fail_msg("expected %d, found %d: %.*s", status, answer->status, SLICE_ARG(answer->body));
    mem_free(exchange);
}

/* The container, its partition and the item's text are used after the container is gone. */
static void a_cold_read_outlives_its_container(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    jam_begin(&jam, &server, 0);
    FakeAnswer answer;
    memory_store_forget(server.store, 1);
    FakeExchange *exchange = begin(&server, "GET", ONE, "", &answer);
    assert_int_equal(answer.status, 0);
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db"}, 204);
    jam_end(&jam);
    fake_wait(&server, &answer);
    assert_true(answer.status == 200 || answer.status == 404); /* before or after the cleaning */
    mem_free(exchange);
}

static void too_many_cold_reads_are_refused(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    jam_begin(&jam, &server, JAM_WAITING_MAX);
    memory_store_forget(server.store, 1);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 503);
    expect_holds(answer.body, "ServiceUnavailable");
    (void)expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 200); /* a warm one is not */
    jam_end(&jam);
}

/* ---- large bodies ---- */

/* 'before' many numbers 'after', more than a loop reads. */
static char *large(FakeServer *server, const char *before, const char *after)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    buf_slice(&text, slice_from_cstr(before));
    for (int i = 0; text.len < (200 << 10); i++)
        buf_format(&text, "%d,", i);
    buf_slice(&text, slice_from_cstr(after));
    return arena_cstr(&server->arena, buf_view(&text));
}

static void large_bodies_are_read_on_a_worker(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    const Header batch = {"x-ms-cosmos-is-batch-request", "True"};
    const Header atomic = {"x-ms-cosmos-batch-atomic", "True"};
    const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"POST", DOCS, large(&server, "{'id':'1','pk':'a','n':[", "0]}"), .headers = {A}}, 201},
        {{"POST", DOCS, large(&server, "{'id':'1','pk':'a','n':[", "0]}"), .headers = {A}}, 409},
        {{"POST", DOCS, large(&server, "{'id':'2','pk':'a','n':[", "0]"), .headers = {A}}, 400},
        {{"POST", DOCS, large(&server, "[", "0]"), .headers = {A}}, 400},
        {{"PUT", ONE, large(&server, "{'id':'1','pk':'a','m':[", "0]}"), .headers = {A}}, 200},
        {{"PATCH", ONE, large(&server, "[{'op':'set','path':'/x','value':[", "0]}]"),
          .headers = {A}},
         200},
        {{"POST", DOCS,
          large(&server, "[{'operationType':'Create','resourceBody':{'id':'3','pk':'a','n':[",
                "0]}}]"),
          .headers = {A, batch, atomic}},
         200},
        {{"POST", DOCS, large(&server, "[{'operationType':'Create','resourceBody':[", "0]}]"),
          .headers = {A, batch, atomic}},
         400},
        {{"POST", "/dbs/db/colls/none/docs", large(&server, "[", "0]"), .headers = {A}}, 404},
        {{"POST", "/dbs/db/colls", large(&server, "{'id':'x','n':[", "0]}")}, 400},
    };
    jam_begin(&jam, &server, JAM_WAITING_MAX);
    FakeAnswer refused = expect_status(&server, &rows[0].ask, 503);
    expect_holds(refused.body, "waiting for a worker");
    make_item(&server, "{'id':'small','pk':'a'}");
    jam_end(&jam);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)expect_status(&server, &rows[i].ask, rows[i].status);
    FakeAnswer one = expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 200);
    expect_holds(one.body, "\"m\":[0,1,");
    expect_holds(one.body, "\"x\":[0,1,");
}

static void large_items_are_printed_on_a_worker(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, large(&server, "{'id':'1','pk':'a','n':[", "0]}"));
    Ask get = {"GET", ONE, .headers = {A}};
    jam_begin(&jam, &server, 0);
    FakeAnswer answer;
    FakeExchange *exchange = ask_only(&server, &get, &answer);
    assert_int_equal(answer.status, 0);
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db"}, 204);
    jam_end(&jam);
    fake_wait(&server, &answer);
    assert_int_equal(answer.status, 200); /* although its container is gone by then */
    expect_holds(answer.body, "\"n\":[0,1,");
    mem_free(exchange);
}

/* It is there, and costs nothing but time. */
static void a_large_item_is_printed_also_if_nobody_has_time_for_it(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, large(&server, "{'id':'1','pk':'a','n':[", "0]}"));
    jam_begin(&jam, &server, JAM_WAITING_MAX);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 200);
    expect_holds(answer.body, "\"n\":[0,1,");
    jam_end(&jam);
}

static void a_large_item_does_not_wait_where_there_is_no_memory_for_it(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, large(&server, "{'id':'1','pk':'a','n':[", "0]}"));
    server.is_out_of_memory = true;
    jam_begin(&jam, &server, 0);
    FakeAnswer answer = expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 200);
    expect_holds(answer.body, "\"n\":[0,1,");
    jam_end(&jam);
}

/* The container is gone when the body was read. */
static void a_container_may_go_while_a_body_is_read(void **state)
{
    (void)state;
    Jam jam;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Ask a = {"POST", DOCS, large(&server, "{'id':'1','pk':'a','n':[", "0]}"), .headers = {A}};
    jam_begin(&jam, &server, 0);
    FakeAnswer answer;
    FakeExchange *exchange = ask_only(&server, &a, &answer);
    assert_int_equal(answer.status, 0);
    (void)expect_status(&server, &(Ask){"DELETE", "/dbs/db"}, 204);
    jam_end(&jam);
    fake_wait(&server, &answer);
    assert_int_equal(answer.status, 404);
    mem_free(exchange);
}

/* ---- resource ids ---- */

/* The path of resource ids that an item's own link is. */
static const char *rid_path(FakeServer *server, const FakeAnswer *item)
{
    Slice self = text_of(body_of(server, item), "_self");
    return arena_cstr(&server->arena, arena_format(&server->arena, "/%.*s", SLICE_ARG(self)));
}

/* A path of names that ends in the resource id. */
static const char *mixed_path(FakeServer *server, const FakeAnswer *item)
{
    Slice rid = percent_encode(&server->arena, text_of(body_of(server, item), "_rid"), SLICE(""));
    return arena_cstr(&server->arena, arena_format(&server->arena, DOCS "/%.*s", SLICE_ARG(rid)));
}

static void an_item_may_be_named_by_its_resource_id(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    (void)expect_status(&server,
                        &(Ask){"POST", "/dbs/db/colls",
                               "{'id':'d','partitionKey':"
                               "{'paths':['/pk']}}"},
                        201);
    FakeAnswer one = expect_status(&server, &(Ask){"POST", DOCS, "{'id':'1','pk':'a','n':1}"}, 201);
    const char *path = rid_path(&server, &one);
    const Step steps[] = {
        {{"GET", path, .headers = {A}}, 200, 0, "'n':1"},
        {{"PUT", path, "{'id':'1','pk':'a','n':2}", .headers = {A}}, 200, 0, "'n':2"},
        {{"PATCH", path, "[{'op':'incr','path':'/n','value':1}]", .headers = {A}}, 200, 0, "'n':3"},
        {{"GET", path, .headers = {PK("['b']")}}, 404},
        {{"DELETE", path, .headers = {PK("['b']")}}, 404},
        {{"DELETE", path, .headers = {A, {"if-match", "'x'"}}}, 412},
        {{"DELETE", path, .headers = {A}}, 204},
        {{"DELETE", path, .headers = {A}}, 404},
        {{"GET", path, .headers = {A}}, 404},
    };
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++)
        (void)expect_step(&server, &steps[i]);
    /* The resource id of an item of another container is an id that no item has. */
    FakeAnswer other =
        expect_status(&server, &(Ask){"POST", "/dbs/db/colls/d/docs", "{'id':'1','pk':'a'}"}, 201);
    (void)expect_status(&server, &(Ask){"GET", mixed_path(&server, &other), .headers = {A}}, 404);
    (void)expect_status(&server, &(Ask){"DELETE", mixed_path(&server, &other), .headers = {A}},
                        404);
}

static void among_names_a_resource_id_is_just_a_name(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer one = expect_status(&server, &(Ask){"POST", DOCS, "{'id':'1','pk':'a','n':1}"}, 201);
    const char *path = mixed_path(&server, &one);
    Slice rid = text_of(body_of(&server, &one), "_rid");
    make_item(&server,
              arena_cstr(&server.arena, arena_format(&server.arena, "{'id':'%.*s','pk':'a','n':2}",
                                                     SLICE_ARG(rid))));
    const Step steps[] = {
        {{"GET", path, .headers = {A}}, 200, 0, "'n':2"},
        {{"PATCH", path, "[{'op':'incr','path':'/n','value':5}]", .headers = {A}}, 200, 0, "'n':7"},
        {{"DELETE", path, .headers = {A}}, 204},
        {{"GET", ONE, .headers = {A}}, 200, 0, "'n':1"},
        {{"GET", path, .headers = {A}}, 404},
        {{"DELETE", path, .headers = {A}}, 404},
        {{"GET", rid_path(&server, &one), .headers = {A}}, 200, 0, "'n':1"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++)
        (void)expect_step(&server, &steps[i]);
}

/* The number in a resource id leads to the item only by way of the disk, and a loop waits for no
 * disk. */
static void a_resource_id_is_looked_up_by_a_worker(void **state)
{
    (void)state;
    static const struct {
        const char *method, *body;
        int status;
    } rows[] = {
        {"GET", "", 200},
        {"PUT", "{'id':'1','pk':'a'}", 200},
        {"PATCH", "[{'op':'set','path':'/n','value':1}]", 200},
        {"DELETE", "", 204},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Jam jams[2];
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        FakeAnswer one = expect_status(&server, &(Ask){"POST", DOCS, "{'id':'1','pk':'a'}"}, 201);
        const char *path = rid_path(&server, &one);
        jam_begin(&jams[0], &server, 0);
        FakeAnswer answer;
        FakeExchange *exchange = begin(&server, rows[i].method, path, rows[i].body, &answer);
        assert_int_equal(answer.status, 0);
        jam_end(&jams[0]);
        expect_late(&server, exchange, &answer, rows[i].status);
        jam_begin(&jams[1], &server, JAM_WAITING_MAX);
        exchange = begin(&server, rows[i].method, path, rows[i].body, &answer);
        expect_late(&server, exchange, &answer, 503);
        jam_end(&jams[1]);
    }
}

static void a_failure_on_the_worker_reaches_the_client(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeAnswer one = expect_status(&server, &(Ask){"POST", DOCS, "{'id':'1','pk':'a'}"}, 201);
    const char *path = rid_path(&server, &one);
    memory_store_fail_gets(server.store, 1, STATUS_IO);
    (void)expect_status(&server, &(Ask){"DELETE", path, .headers = {A}}, 503);
    memory_store_fail_gets(server.store, 0, STATUS_IO);
    drop_partition(&server, 0);
    FakeAnswer answer = expect_status(&server, &(Ask){"DELETE", path, .headers = {A}}, 404);
    assert_int_equal(sub_status_of(&answer), 1003);
}

/* ---- writes that wait for the disk ---- */

static void a_write_is_answered_when_it_is_durable(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    memory_store_stall(server.store);
    FakeAnswer answer;
    FakeExchange *exchange = begin(&server, "POST", DOCS, "{'id':'1','pk':'a'}", &answer);
    memory_store_wait_stalled(server.store);
    assert_int_equal(answer.status, 0);
    (void)expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 404);
    memory_store_release(server.store);
    expect_late(&server, exchange, &answer, 201);
    (void)expect_status(&server, &(Ask){"GET", ONE, .headers = {A}}, 200);
}

static void a_write_that_the_disk_refuses_is_not_there(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a','n':1}");
    static const Step steps[] = {
        {{"POST", DOCS, "{'id':'2','pk':'a'}", .headers = {A}}, 503},
        {{"PUT", ONE, "{'id':'1','pk':'a'}", .headers = {A}}, 503},
        {{"PATCH", ONE, "[{'op':'incr','path':'/n','value':1}]", .headers = {A}}, 503},
        {{"DELETE", ONE, .headers = {A}}, 503},
    };
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        memory_store_fail_commits(server.store, 1, STATUS_IO);
        FakeAnswer answer = expect_step(&server, &steps[i]);
        expect_header(&answer, "x-ms-session-token", "0:-1#2");
    }
    (void)expect_step(&server, &(Step){{"GET", ONE, .headers = {A}}, 200, 0, "'n':1"});
    (void)expect_status(&server, &(Ask){"GET", DOCS "/2", .headers = {A}}, 404);
}

static void a_write_to_a_container_that_falls_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    drop_partition(&server, 0);
    static const Step steps[] = {
        {{"POST", DOCS, "{'id':'2','pk':'a'}", .headers = {A}}, 404, 1003},
        {{"PUT", ONE, "{'id':'1','pk':'a'}", .headers = {A}}, 404, 1003},
        {{"PATCH", ONE, "[{'op':'set','path':'/n','value':1}]", .headers = {A}}, 404, 1003},
        {{"DELETE", ONE, .headers = {A}}, 404, 1003},
    };
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++)
        (void)expect_step(&server, &steps[i]);
}

static void a_write_outlives_its_container(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    memory_store_stall(server.store);
    FakeAnswer created;
    FakeAnswer deleted;
    FakeExchange *create = begin(&server, "POST", DOCS, "{'id':'1','pk':'a'}", &created);
    memory_store_wait_stalled(server.store);
    FakeExchange *delete = begin(&server, "DELETE", "/dbs/db/colls/c", "", &deleted);
    memory_store_release(server.store);
    expect_late(&server, delete, &deleted, 204);
    expect_late(&server, create, &created, 201);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_life_of_an_item),
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(conditions_that_cannot_be_read_are_refused),
        cmocka_unit_test(a_request_that_may_not_change_an_item_is_refused),
        cmocka_unit_test(a_body_has_at_most_two_megabytes),
        cmocka_unit_test(an_item_whose_text_grows_comes_back_whole),
        cmocka_unit_test(answers_have_the_headers_that_clients_act_on),
        cmocka_unit_test(what_the_client_has_already_is_not_sent_again),
        cmocka_unit_test(a_client_that_wants_no_content_gets_none),
        cmocka_unit_test(a_cold_read_is_answered_like_a_warm_one),
        cmocka_unit_test(a_cold_read_outlives_its_container),
        cmocka_unit_test(too_many_cold_reads_are_refused),
        cmocka_unit_test(large_bodies_are_read_on_a_worker),
        cmocka_unit_test(large_items_are_printed_on_a_worker),
        cmocka_unit_test(a_large_item_is_printed_also_if_nobody_has_time_for_it),
        cmocka_unit_test(a_large_item_does_not_wait_where_there_is_no_memory_for_it),
        cmocka_unit_test(a_container_may_go_while_a_body_is_read),
        cmocka_unit_test(an_item_may_be_named_by_its_resource_id),
        cmocka_unit_test(among_names_a_resource_id_is_just_a_name),
        cmocka_unit_test(a_resource_id_is_looked_up_by_a_worker),
        cmocka_unit_test(a_failure_on_the_worker_reaches_the_client),
        cmocka_unit_test(a_write_is_answered_when_it_is_durable),
        cmocka_unit_test(a_write_that_the_disk_refuses_is_not_there),
        cmocka_unit_test(a_write_to_a_container_that_falls_is_refused),
        cmocka_unit_test(a_write_outlives_its_container),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
