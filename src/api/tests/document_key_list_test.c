/* document_key_list_test.c - lists of the items of one key: by number if they are few, otherwise by
 * id, and with tokens that keep the order and are short. */
#include "api/items/document_position_int.h"
#include "api/tests/testing_int.h"

/* Ids whose order is the reverse of that in which they are made. */
static void make_down(FakeServer *server, int from, int to)
{
    for (int i = from; i > to; i--)
        make_item(server, arena_format(&server->arena, "{'id':'%04d','pk':'p'}", i).ptr);
}

/* Reads the list of the key from a token on, and appends the ids to 'out'. */
static void read_ids(FakeServer *server, const char *size, const char *token, Buf *out)
{
    Ask a = {"GET", DOCS, .headers = {PK("['p']"), {"x-ms-max-item-count", size}}};
    for (;;) {
        if (token != NULL)
            a.headers[2] = (Header){"x-ms-continuation", token};
        FakeAnswer answer = expect_status(server, &a, 200);
        JsonIter it = json_iter(json_get(body_of(server, &answer), SLICE("Documents")));
        while (json_next(&it))
            buf_format(out, "%.*s ", SLICE_ARG(text_of(it.value, "id")));
        if (fake_header(&answer, "x-ms-continuation").len == 0)
            return;
        token = arena_cstr(&server->arena, fake_header(&answer, "x-ms-continuation"));
    }
}

static void expect_ids(FakeServer *server, const char *size, const char *token, const char *ids)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    read_ids(server, size, token, &text);
    assert_slice(buf_view(&text), slice_from_cstr(ids));
}

static void items_of_a_key_come_as_they_were_made(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_item(&server, "{'id':'0000','pk':'q'}");
    make_down(&server, 5, 0);
    static const char *const sizes[] = {"1", "2", "5", "-1"};
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++)
        expect_ids(&server, sizes[i], NULL, "0005 0004 0003 0002 0001 ");
}

/* A token by EPK, as lists of a key had before they came by number, goes on by EPK; and what is
 * changed between two pages of a list by number loses nothing. */
static void tokens_of_a_key_go_on_in_their_order(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_down(&server, 5, 0);
    PartitionKey key = {.count = 1, .parts = {JSON_NONE}};
    Error err;
    assert_int_equal(json_parse(&server.arena, SLICE("\"p\""), &key.parts[0], &err), STATUS_OK);
    Epk epk;
    epk_make(PARTITION_HASH_V2, &key, &epk);
    AUTO(buf_done) Buf position;
    buf_init(&position, SCAN_POSITION_BYTES_MAX);
    buf_slice(&position, epk_slice(&epk));
    buf_slice(&position, SLICE("0003"));
    DocumentPosition place = {.order = SCAN_BY_EPK, .at = buf_view(&position)};
    expect_ids(&server, "2",
               arena_cstr(&server.arena, document_position_print(&server.arena, &place)),
               "0003 0004 0005 ");

    Ask a = {"GET", DOCS, .headers = {PK("['p']"), {"x-ms-max-item-count", "2"}}};
    FakeAnswer answer = expect_status(&server, &a, 200);
    const char *token = arena_cstr(&server.arena, fake_header(&answer, "x-ms-continuation"));
    (void)expect_status(&server, &(Ask){"DELETE", DOCS "/0003", .headers = {PK("['p']")}}, 204);
    make_item(&server, "{'id':'0000','pk':'p'}");
    expect_ids(&server, "2", token, "0002 0001 0000 ");
}

/* It is small on the first page and large on the next, where it is sorted, or, beyond what one page
 * may look at, found by all numbers of the partition. */
static void a_key_that_grows_between_two_pages_goes_on_by_number(void **state)
{
    (void)state;
    static const uint64_t rows[] = {20000, 64};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        server.api->limits.entries_max = rows[i];
        make_down(&server, 1050, 1045);
        make_item(&server, "{'id':'other','pk':'q'}");
        Ask a = {"GET", DOCS, .headers = {PK("['p']"), {"x-ms-max-item-count", "2"}}};
        FakeAnswer answer = expect_status(&server, &a, 200);
        const char *token = arena_cstr(&server.arena, fake_header(&answer, "x-ms-continuation"));
        make_down(&server, 1045, 0);
        AUTO(buf_done) Buf expected;
        buf_init(&expected, 1 << 20);
        for (int id = 1048; id > 0; id--)
            buf_format(&expected, "%04d ", id);
        buf_byte(&expected, '\0');
        expect_ids(&server, "100", token, expected.ptr);
    }
}

static void a_key_with_many_items_comes_by_id(void **state)
{
    (void)state;
    AUTO(fake_server_close) FakeServer server;
    open_with_container(&server);
    make_down(&server, (int)COLLECT_ITEMS_MAX + 1, 0);
    AUTO(buf_done) Buf expected;
    buf_init(&expected, 1 << 20);
    for (int id = 1; id <= (int)COLLECT_ITEMS_MAX + 1; id++)
        buf_format(&expected, "%04d ", id);
    buf_byte(&expected, '\0');
    expect_ids(&server, "300", NULL, expected.ptr);
}

/* An item of the key 'a' whose id has the most bytes that an id may have. */
static Slice long_id(FakeServer *server, size_t len, int number)
{
    Slice tail = arena_format(&server->arena, "%d", number);
    char *id = arena_alloc(&server->arena, len);
    memset(id, 'x', len);
    memcpy(id + len - tail.len, tail.ptr, tail.len);
    return slice_make(id, len);
}

static void tokens_are_short_however_long_ids_are(void **state)
{
    (void)state;
    enum { COUNT = 30 };
    static const size_t lens[] = {1023, 1000, 730};
    for (int deletes = 0; deletes < 2; deletes++) {
        AUTO(fake_server_close) FakeServer server;
        open_with_container(&server);
        for (int i = 0; i < COUNT; i++) {
            Slice id = long_id(&server, lens[i % 3], i);
            Slice body =
                arena_format(&server.arena, "{'id':'%.*s','pk':'a','n':%d}", SLICE_ARG(id), i);
            make_item(&server, arena_cstr(&server.arena, body));
        }
        unsigned times[COUNT] = {0};
        Ask a = {"GET", DOCS, .headers = {PK("['a']"), {"x-ms-max-item-count", "1"}}};
        a.headers[2] = (Header){"x-ms-documentdb-responsecontinuationtokenlimitinkb", "1"};
        for (int pages = 1;; pages++) {
            FakeAnswer answer = expect_status(&server, &a, 200);
            Json item = json_at(json_get(body_of(&server, &answer), SLICE("Documents")), 0);
            int n = (int)json_number(json_get(item, SLICE("n")));
            times[n]++;
            Slice token = fake_header(&answer, "x-ms-continuation");
            if (token.len == 0) {
                assert_int_equal(pages, COUNT);
                break;
            }
            assert_true(token.len <= 1024);
            a.headers[3] = (Header){"x-ms-continuation", arena_cstr(&server.arena, token)};
            Slice path = arena_format(&server.arena, DOCS "/%.*s", SLICE_ARG(text_of(item, "id")));
            if (deletes)
                (void)expect_status(
                    &server,
                    &(Ask){"DELETE", arena_cstr(&server.arena, path), .headers = {PK("['a']")}},
                    204);
        }
        for (int i = 0; i < COUNT; i++)
            assert_int_equal(times[i], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_of_a_key_come_as_they_were_made),
        cmocka_unit_test(tokens_of_a_key_go_on_in_their_order),
        cmocka_unit_test(a_key_that_grows_between_two_pages_goes_on_by_number),
        cmocka_unit_test(a_key_with_many_items_comes_by_id),
        cmocka_unit_test(tokens_are_short_however_long_ids_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
