/* document_batch_test.c - requests with many operations: the answer to each, and what is done when
 * some of them fail, here or in the partition. */
#include "api/items/batch_codec_int.h"
#include "api/tests/testing_int.h"

#define BATCH                                  \
    {                                          \
        "x-ms-cosmos-is-batch-request", "True" \
    }
#define ATOMIC                             \
    {                                      \
        "x-ms-cosmos-batch-atomic", "True" \
    }
#define STOP                                           \
    {                                                  \
        "x-ms-cosmos-batch-continue-on-error", "False" \
    }
#define A PK("['a']")
#define RANGE                                      \
    {                                              \
        "x-ms-documentdb-partitionkeyrangeid", "0" \
    }

typedef enum Mode { ALL, STOPS, EACH } Mode;

static Ask ask_of(Mode mode, const char *body)
{
    switch (mode) {
    case ALL:
        return (Ask){"POST", DOCS, body, .headers = {BATCH, A, ATOMIC}};
    case STOPS:
        return (Ask){"POST", DOCS, body, .headers = {BATCH, A, STOP}};
    case EACH:
        return (Ask){"POST", DOCS, body, .headers = {BATCH, A}};
    }
    return (Ask){0};
}

/* "201 409/1001 424" from an answer. */
static Slice statuses_of(FakeServer *server, const FakeAnswer *answer)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    JsonIter it = json_iter(body_of(server, answer));
    while (json_next(&it)) {
        Json sub = json_get(it.value, SLICE("subStatusCode"));
        buf_format(&text, "%s%d", text.len > 0 ? " " : "",
                   (int)json_number(json_get(it.value, SLICE("statusCode"))));
        if (json_is(sub, JSON_NUMBER) && json_number(sub) != 0)
            buf_format(&text, "/%d", (int)json_number(sub));
    }
    return arena_copy(&server->arena, buf_view(&text));
}

static void expect_statuses(FakeServer *server, const FakeAnswer *answer, const char *expected)
{
    assert_slice(statuses_of(server, answer), slice_from_cstr(expected));
    assert_slice(fake_header(answer, "content-type"), SLICE("application/json"));
}

static void a_transaction_sees_its_own_writes(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Ask a =
        ask_of(ALL, "[{'operationType':'Create','resourceBody':{'id':'1','pk':'a','n':1}},"
                    "{'operationType':'Patch','id':'1','resourceBody':[{'op':'incr','path':'/n',"
                    "'value':4}]},"
                    "{'operationType':'Read','id':'1'},"
                    "{'operationType':'Upsert','resourceBody':{'id':'2','pk':'a'}},"
                    "{'operationType':'Replace','id':'2','resourceBody':{'id':'2','pk':'a','m':1}},"
                    "{'operationType':'Delete','id':'1'}]");
    FakeAnswer answer = expect_status(&server, &a, 200);
    expect_statuses(&server, &answer, "201 200 200 201 200 204");
    expect_header(&answer, "x-ms-session-token", "0:-1#2"); /* one write */
    expect_header(&answer, "x-ms-item-count", "6");
    Json results = body_of(&server, &answer);
    JsonIter it = json_iter(results);
    double total = 0;
    for (size_t i = 0; json_next(&it); i++) {
        total += json_number(json_get(it.value, SLICE("requestCharge")));
        Json body = json_get(it.value, SLICE("resourceBody"));
        assert_int_equal(json_is(body, JSON_OBJECT), i != 5);
        if (i == 2)
            assert_true(json_number(json_get(body, SLICE("n"))) == 5);
        if (i != 5)
            assert_slice(text_of(it.value, "eTag"), text_of(body, "_etag"));
    }
    double charge = 0;
    assert_true(json_number_from_text(fake_header(&answer, "x-ms-request-charge"), &charge));
    assert_true(charge - total < 0.001 && total - charge < 0.001);
    (void)expect_status(&server, &(Ask){"GET", DOCS "/1", .headers = {A}}, 404);
    (void)expect_status(&server, &(Ask){"GET", DOCS "/2", .headers = {A}}, 200);
}

/* Operations by letters: c creates a new item, x one that is there, i has no id and cannot even be
 * tried, k has another key than the request, r reads what is there, n what is not. */
static Slice body_from(FakeServer *server, const char *letters)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    for (size_t i = 0; letters[i] != '\0'; i++) {
        buf_byte(&text, i == 0 ? '[' : ',');
        if (letters[i] == 'c')
            buf_format(&text, "{'operationType':'Create','resourceBody':{'id':'c%zu','pk':'a'}}",
                       i);
        if (letters[i] == 'x')
            buf_slice(&text, SLICE("{'operationType':'Create','resourceBody':"
                                   "{'id':'there','pk':'a'}}"));
        if (letters[i] == 'i')
            buf_slice(&text, SLICE("{'operationType':'Create','resourceBody':{'pk':'a'}}"));
        if (letters[i] == 'k')
            buf_slice(&text, SLICE("{'operationType':'Create','resourceBody':"
                                   "{'id':'k','pk':'b'}}"));
        if (letters[i] == 'r')
            buf_slice(&text, SLICE("{'operationType':'Read','id':'there'}"));
        if (letters[i] == 'n')
            buf_slice(&text, SLICE("{'operationType':'Read','id':'none'}"));
    }
    buf_byte(&text, ']');
    return arena_copy(&server->arena, buf_view(&text));
}

static void one_failure_does_to_others_what_the_mode_says(void **state)
{
    (void)state;
    static const struct {
        const char *letters;
        Mode mode;
        const char *statuses;
        size_t made; /* items besides the one that was there */
    } rows[] = {
        {"cc", ALL, "201 201", 2},
        {"cc", STOPS, "201 201", 2},
        {"cc", EACH, "201 201", 2},
        /* refused by the partition */
        {"cxc", ALL, "424 409 424", 0},
        {"cxc", STOPS, "201 409 424", 1},
        {"cxc", EACH, "201 409 201", 2},
        {"crn", ALL, "424 424 404", 0},
        {"nrc", STOPS, "404 424 424", 0},
        {"xx", ALL, "409 424", 0},
        {"xx", STOPS, "409 424", 0},
        {"xx", EACH, "409 409", 0},
        /* refused before */
        {"cic", ALL, "424 400 424", 0},
        {"cic", STOPS, "201 400 424", 1},
        {"cic", EACH, "201 400 201", 2},
        {"ckc", ALL, "424 400/1001 424", 0},
        {"ckc", EACH, "201 400/1001 201", 2},
        {"ic", ALL, "400 424", 0},
        {"ic", STOPS, "400 424", 0},
        {"ic", EACH, "400 201", 1},
        {"ii", ALL, "400 424", 0},
        {"ii", STOPS, "400 424", 0},
        {"ii", EACH, "400 400", 0},
        {"i", ALL, "400", 0},
        /* both: the first one of all counts */
        {"xic", ALL, "424 400 424", 0}, /* a transaction is not begun if it cannot end */
        {"xic", STOPS, "409 424 424", 0},
        {"xic", EACH, "409 400 201", 1},
        {"cxi", STOPS, "201 409 424", 1},
        {"cixci", STOPS, "201 400 424 424 424", 1},
        {"cixci", EACH, "201 400 409 201 400", 2},
        {"ccxcci", STOPS, "201 201 409 424 424 424", 2},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        make_item(&server, "{'id':'there','pk':'a'}");
        Slice body = body_from(&server, rows[i].letters);
        Ask a = ask_of(rows[i].mode, arena_cstr(&server.arena, body));
        bool good = strpbrk(rows[i].statuses, "4") == NULL;
        FakeAnswer answer = expect_status(&server, &a, good ? 200 : 207);
        expect_statuses(&server, &answer, rows[i].statuses);
        assert_true(fake_header(&answer, "x-ms-session-token").len > 0);
        PartitionUsage usage = handle_usage(container_handle_at(container_now(&server), 0));
        if (usage.items != 1 + rows[i].made)
            fail_msg("'%s' in mode %d made %d items", rows[i].letters, rows[i].mode,
                     (int)usage.items - 1);
    }
}

static void an_unchanged_item_is_no_failure(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'1','pk':'a'}");
    FakeAnswer one = expect_status(&server, &(Ask){"GET", DOCS "/1", .headers = {A}}, 200);
    Slice etag = slice_first(slice_from(fake_header(&one, "etag"), 1), ITEM_ETAG_LEN - 2);
    Slice body = arena_format(
        &server.arena,
        "[{'operationType':'Read','id':'1','ifNoneMatch':'\\'%.*s\\''},"
        "{'operationType':'Upsert','ifMatch':'\\'x\\'','resourceBody':{'id':'2','pk':'a'}},"
        "{'operationType':'Delete','id':'1','ifMatch':'\\'%.*s\\''}]",
        SLICE_ARG(etag), SLICE_ARG(etag));
    for (Mode mode = ALL; mode <= STOPS; mode++) {
        Ask a = ask_of(mode, arena_cstr(&server.arena, body));
        FakeAnswer answer = expect_status(&server, &a, mode == ALL ? 200 : 207);
        expect_statuses(&server, &answer, mode == ALL ? "304 201 204" : "404 424 424");
    }
}

static void bulk_has_a_key_for_each_operation(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *statuses;
    } rows[] = {
        {"[{'operationType':'Create','partitionKey':'[\\'a\\']','resourceBody':"
         "{'id':'1','pk':'a'}},"
         "{'operationType':'Create','partitionKey':'[\\'b\\']','resourceBody':"
         "{'id':'1','pk':'b'}}]",
         "201 201"},
        {"[{'operationType':'Read','id':'1','partitionKey':'[\\'a\\']'},"
         "{'operationType':'Read','id':'1','partitionKey':'[\\'c\\']'}]",
         "200 404"},
        {"[{'operationType':'Create','partitionKey':'[\\'a\\']','resourceBody':"
         "{'id':'2','pk':'b'}}]",
         "400/1001"},
        /* No key is not any key: an empty one would name a place outside all of them. */
        {"[{'operationType':'Read','id':'1'}]", "400"},
        {"[{'operationType':'Read','id':'1','partitionKey':''}]", "400"},
        {"[{'operationType':'Delete','id':'1','partitionKey':''}]", "400"},
        {"[{'operationType':'Read','id':'1','partitionKey':'[]'}]", "400/1001"},
        {"[{'operationType':'Read','id':'1','partitionKey':'a'}]", "400"},
        {"[{'operationType':'Read','id':'1','partitionKey':'[\\'a\\',\\'b\\']'}]", "400/1001"},
        {"[{'operationType':'Read','id':'1','partitionKey':'[{}]'}]", "404"},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Ask a = {"POST", DOCS, rows[i].body, .headers = {BATCH, RANGE}};
        FakeAnswer answer = ask(&server, &a);
        expect_statuses(&server, &answer, rows[i].statuses);
        assert_int_equal(answer.status, strchr(rows[i].statuses, '4') == NULL ? 200 : 207);
    }
}

static void bulk_for_another_range_is_gone(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = CONTAINER, .headers = {{"x-ms-offer-throughput", "18000"}}});
    static const char body[] = "[{'operationType':'Upsert','partitionKey':'[\\'a\\']',"
                               "'resourceBody':{'id':'1','pk':'a'}}]";
    size_t served = 0;
    for (int i = 0; i < 3; i++) {
        const char *id = arena_cstr(&server.arena, arena_format(&server.arena, "%d", i));
        Ask a = {"POST", DOCS, body,
                 .headers = {BATCH, {"x-ms-documentdb-partitionkeyrangeid", id}}};
        FakeAnswer answer = ask(&server, &a);
        expect_header(&answer, "x-ms-documentdb-partitionkeyrangeid", id);
        if (answer.status == 200)
            served++;
        else
            expect_statuses(&server, &answer, "410/1002");
        a.headers[2] = (Header)A;
        FakeAnswer keyed = ask(&server, &a);
        assert_int_equal(keyed.status, answer.status == 200 ? 200 : 410);
    }
    assert_int_equal(served, 1);
    Ask none = {"POST", DOCS, body,
                .headers = {BATCH, {"x-ms-documentdb-partitionkeyrangeid", "7"}}};
    assert_int_equal(sub_status_of(&(FakeAnswer[]){expect_status(&server, &none, 410)}[0]), 1002);
}

static void a_container_without_a_key_needs_none(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with(&server, (Ask){.body = "{'id':'c'}", .headers = {{"x-ms-version", "2015-08-06"}}});
    static const char body[] = "[{'operationType':'Upsert','resourceBody':{'id':'1'}},"
                               "{'operationType':'Read','id':'1','partitionKey':'[\\'a\\']'}]";
    const Ask asks[] = {
        {"POST", DOCS, body, .headers = {BATCH, RANGE}},
        {"POST", DOCS, body, .headers = {BATCH, ATOMIC}},
        {"POST", DOCS, body, .headers = {BATCH}},
        {"POST", DOCS, body, .headers = {BATCH, A, ATOMIC}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
        FakeAnswer answer = expect_status(&server, &asks[i], 200);
        expect_statuses(&server, &answer, i == 0 ? "201 200" : "200 200");
    }
}

static void what_is_no_batch_is_refused_as_a_whole(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    AUTO(buf_done) Buf many;
    buf_init(&many, 1 << 20);
    for (int i = 0; i <= BATCH_OPERATIONS_MAX; i++)
        buf_format(&many, "%s{'operationType':'Read','id':'%d'}", i == 0 ? "[" : ",", i);
    buf_byte(&many, ']');
    const char *read = "[{'operationType':'Read','id':'1'}]";
    const struct {
        Ask ask;
        int status;
    } rows[] = {
        {{"POST", DOCS, "", .headers = {BATCH, A}}, 400},
        {{"POST", DOCS, "[]", .headers = {BATCH, ATOMIC, A}}, 400},
        {{"POST", DOCS, "[]", .headers = {BATCH, A}}, 200}, /* bulk: see documents_batch */
        {{"POST", DOCS, "{}", .headers = {BATCH, A}}, 400},
        {{"POST", DOCS, "[1]", .headers = {BATCH, A}}, 400},
        {{"POST", DOCS, "\x81", .headers = {BATCH, A}}, 400},
        {{"POST", DOCS, arena_cstr(&server.arena, buf_view(&many)), .headers = {BATCH, A}}, 400},
        {{"POST", DOCS, read, .headers = {BATCH}}, 400},
        {{"POST", DOCS, read, .headers = {BATCH, ATOMIC, RANGE}}, 400},
        {{"POST", DOCS, read, .headers = {BATCH, PK("x")}}, 400},
        {{"POST", DOCS, read, .headers = {BATCH, PK("[]")}}, 400},
        {{"POST", DOCS, read, .headers = {BATCH, A}, .key = FAKE_READ_KEY}, 401},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        (void)expect_status(&server, &rows[i].ask, rows[i].status);
}

static void a_binary_batch_has_a_binary_answer(void **state)
{
    (void)state;
    /* Create {"id":"a","pk":"p"}, then delete b. */
    static const char hex[] =
        "81f0d8ff7f010a00000081f1d8ff7f220000001b7cd88b817054e17f430000000002000000137b226964223a22"
        "61222c22706b223a2270227d81f1d8ff7f10000000dd0394ca817054e17f1304000000020000000162";
    uint8_t bytes[sizeof(hex) / 2];
    size_t len = 0;
    assert_true(hex_decode(SLICE(hex), bytes, sizeof(bytes), &len));
    const HttpHeader headers[] = {
        {SLICE("x-ms-cosmos-is-batch-request"), SLICE("True")},
        {SLICE("x-ms-documentdb-partitionkey"), SLICE("[\"p\"]")},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    FakeRequest request = {.method = SLICE("POST"),
                           .path = SLICE(DOCS),
                           .headers = headers,
                           .header_count = 2,
                           .body = slice_make(bytes, len),
                           .key = SLICE(FAKE_KEY)};
    FakeAnswer answer;
    fake_request(&server, &request, &answer);
    assert_int_equal(answer.status, 207);
    assert_true(slice_starts_with(answer.body, SLICE("\x81\xf0\xd8\xff\x7f\x01\x0a\0\0\0")));
    (void)expect_status(&server, &(Ask){"GET", DOCS "/a", .headers = {PK("['p']")}}, 200);
}

static void a_client_that_wants_no_content_gets_what_was_read(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    static const char body[] =
        "[{'operationType':'Create','resourceBody':{'id':'1','pk':'a'}%s},"
        "{'operationType':'Read','id':'1'},{'operationType':'Delete','id':'1'}]";
    for (int by_operation = 0; by_operation < 2; by_operation++) {
        Slice own = arena_format(&server.arena, body,
                                 by_operation ? ",'minimalReturnPreference':true" : "");
        Ask a = {"POST", DOCS, arena_cstr(&server.arena, own), .headers = {BATCH, A, ATOMIC}};
        if (!by_operation)
            a.headers[3] = (Header){"prefer", "return=minimal"};
        FakeAnswer answer = expect_status(&server, &a, 200);
        expect_statuses(&server, &answer, "201 200 204");
        JsonIter it = json_iter(body_of(&server, &answer));
        for (size_t i = 0; json_next(&it); i++)
            assert_int_equal(json_is(json_get(it.value, SLICE("resourceBody")), JSON_OBJECT),
                             i == 1);
    }
}

/* ---- sizes ---- */

static void make_large(FakeServer *server, const char *id)
{
    AUTO(buf_done) Buf body;
    buf_init(&body, BODY_BYTES_MAX);
    buf_format(&body, "{\"id\":\"%s\",\"pk\":\"a\",\"n\":0,\"text\":\"", id);
    for (int i = 0; i < 1900; i++)
        buf_format(&body, "%01000d", i);
    buf_slice(&body, SLICE("\"}"));
    FakeRequest request = {.method = SLICE("POST"),
                           .path = SLICE(DOCS),
                           .body = buf_view(&body),
                           .key = SLICE(FAKE_KEY)};
    FakeAnswer answer;
    fake_request(server, &request, &answer);
    assert_int_equal(answer.status, 201);
}

#define INCR(id)                              \
    "{'operationType':'Patch','id':'" id "'," \
    "'resourceBody':[{'op':'incr','path':'/n','value':1}]}"
#define READ(id) "{'operationType':'Read','id':'" id "'}"

/* To be told that it failed, a client would do it again. */
static void what_was_written_is_not_called_a_failure_for_its_size(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        size_t bodies;
    } rows[] = {
        {"[" READ("1") "," READ("2") "]", 2},
        {"[" INCR("1") "," INCR("2") "]", 2},
        {"[" INCR("1") "," INCR("2") "," INCR("3") "]", 0},
        {"[" INCR("1") "," INCR("2") "," READ("3") "]", 1},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_large(&server, "1");
    make_large(&server, "2");
    make_large(&server, "3");
    for (Mode mode = ALL; mode <= EACH; mode++) {
        for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
            Ask a = ask_of(mode, rows[i].body);
            FakeAnswer answer = expect_status(&server, &a, 200);
            assert_true(answer.body.len <= PAGE_BYTES_MAX);
            size_t bodies = 0;
            JsonIter it = json_iter(body_of(&server, &answer));
            while (json_next(&it)) {
                bodies += json_is(json_get(it.value, SLICE("resourceBody")), JSON_OBJECT) ? 1 : 0;
                assert_true(text_of(it.value, "eTag").len > 0);
            }
            assert_int_equal(bodies, rows[i].bodies);
        }
        fake_server_reset(&server);
    }
}

/* A read for which there is no room fails, and only a transaction fails with it: nothing of it is
 * done, not even what could be. */
static void a_batch_reads_at_most_four_megabytes(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        const char *statuses[3]; /* by mode */
    } rows[] = {
        {"[" READ("1") "," READ("2") "," READ("3") "]",
         {"424 424 413/3402", "200 200 413/3402", "200 200 413/3402"}},
        {"[" READ("1") "," READ("2") "," READ("3") "," READ("small") "]",
         {"424 424 413/3402 424", "200 200 413/3402 424", "200 200 413/3402 200"}},
        {"[" INCR("small") "," READ("1") "," READ("1") "," READ("1") "]",
         {"424 424 424 413/3402", "200 200 200 413/3402", "200 200 200 413/3402"}},
    };
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_large(&server, "1");
    make_large(&server, "2");
    make_large(&server, "3");
    make_item(&server, "{'id':'small','pk':'a','n':0}");
    for (Mode mode = ALL; mode <= EACH; mode++) {
        for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
            Ask a = ask_of(mode, rows[i].body);
            FakeAnswer answer = expect_status(&server, &a, 207);
            expect_statuses(&server, &answer, rows[i].statuses[mode]);
            assert_true(answer.body.len <= PAGE_BYTES_MAX);
        }
        fake_server_reset(&server);
    }
    FakeAnswer small = expect_status(&server, &(Ask){"GET", DOCS "/small", .headers = {A}}, 200);
    expect_holds(small.body, "\"n\":2");
}

/* As many reads as there may be, of almost as much as there may be, between failures that have much
 * to say: the answer is whole. */
static void an_answer_that_is_almost_too_large_is_whole(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    AUTO(buf_done) Buf body;
    buf_init(&body, BODY_BYTES_MAX);
    buf_slice(&body, SLICE("{'id':'1','pk':'a','text':'"));
    for (int i = 0; i < 83000; i++)
        buf_byte(&body, 'x');
    buf_slice(&body, SLICE("'}"));
    make_item(&server, arena_cstr(&server.arena, buf_view(&body)));
    buf_reset(&body);
    for (int i = 0; i < BATCH_OPERATIONS_MAX; i++) {
        buf_slice(&body, i == 0 ? SLICE("[") : SLICE(","));
        if (i % 2 == 0) {
            buf_slice(&body, SLICE(READ("1")));
            continue;
        }
        buf_slice(&body, SLICE("{'operationType':'Read','id':'"));
        for (int j = 0; j < 300; j++)
            buf_slice(&body, SLICE("\\u0001"));
        buf_slice(&body, SLICE("'}"));
    }
    buf_byte(&body, ']');
    Ask a = ask_of(EACH, arena_cstr(&server.arena, buf_view(&body)));
    FakeAnswer answer = expect_status(&server, &a, 207);
    assert_true(answer.body.len <= PAGE_BYTES_MAX && answer.body.len > PAGE_BYTES_MAX * 99 / 100);
    size_t bodies = 0;
    JsonIter it = json_iter(body_of(&server, &answer));
    while (json_next(&it))
        bodies += json_is(json_get(it.value, SLICE("resourceBody")), JSON_OBJECT) ? 1 : 0;
    assert_int_equal(bodies, BATCH_OPERATIONS_MAX / 2);
}

static void a_batch_has_at_most_two_megabytes(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    Slice read = SLICE("[{'operationType':'Read','id':'1'}");
    for (size_t more = 0; more < 2; more++) {
        char *text = arena_alloc(&server.arena, BODY_BYTES_MAX + 2);
        memset(text, ' ', BODY_BYTES_MAX + 2);
        memcpy(text, read.ptr, read.len);
        text[BODY_BYTES_MAX - 1 + more] = ']';
        text[BODY_BYTES_MAX + more] = '\0';
        Ask a = ask_of(ALL, text);
        (void)expect_status(&server, &a, more == 0 ? 207 : 413);
    }
}

/* ---- when it cannot be done ---- */

static void a_batch_that_the_disk_refuses_is_not_there(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    for (Mode mode = ALL; mode <= EACH; mode++) {
        Slice body = body_from(&server, "cci");
        Slice whole = body_from(&server, "cc");
        memory_store_fail_commits(server.store, 1, STATUS_IO);
        Ask a = ask_of(mode, arena_cstr(&server.arena, mode == ALL ? whole : body));
        FakeAnswer answer = expect_status(&server, &a, 503);
        expect_holds(answer.body, "ServiceUnavailable");
        assert_int_equal(handle_usage(container_handle_at(container_now(&server), 0)).items, 0);
    }
}

static void a_batch_for_a_container_that_falls_is_refused(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    drop_partition(&server, 0);
    for (Mode mode = ALL; mode <= EACH; mode++) {
        Ask a = ask_of(mode, arena_cstr(&server.arena, body_from(&server, "cc")));
        FakeAnswer answer = expect_status(&server, &a, 404);
        assert_int_equal(sub_status_of(&answer), 1003);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transaction_sees_its_own_writes),
        cmocka_unit_test(one_failure_does_to_others_what_the_mode_says),
        cmocka_unit_test(an_unchanged_item_is_no_failure),
        cmocka_unit_test(bulk_has_a_key_for_each_operation),
        cmocka_unit_test(bulk_for_another_range_is_gone),
        cmocka_unit_test(a_container_without_a_key_needs_none),
        cmocka_unit_test(what_is_no_batch_is_refused_as_a_whole),
        cmocka_unit_test(a_binary_batch_has_a_binary_answer),
        cmocka_unit_test(a_client_that_wants_no_content_gets_what_was_read),
        cmocka_unit_test(what_was_written_is_not_called_a_failure_for_its_size),
        cmocka_unit_test(a_batch_reads_at_most_four_megabytes),
        cmocka_unit_test(an_answer_that_is_almost_too_large_is_whole),
        cmocka_unit_test(a_batch_has_at_most_two_megabytes),
        cmocka_unit_test(a_batch_that_the_disk_refuses_is_not_there),
        cmocka_unit_test(a_batch_for_a_container_that_falls_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
