/* request_maker_test.c - URLs, signatures of known values, and whole requests. */
#include "load/request_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The key that every emulator of the service knows. */
#define WELL_KNOWN_KEY \
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

static void print_turn(RequestMaker *maker, uint64_t number, Slice continuation, int64_t now_s,
                       Buf *out)
{
    RequestTurn turn;
    request_maker_begin(maker, number, &turn);
    request_maker_print(maker, &turn, continuation, now_s, out);
}

static void urls_are_taken_apart(void **state)
{
    (void)state;
    static const struct {
        Slice text, host, port, path;
    } rows[] = {
        {SLICE_INIT("http://127.0.0.1:8081/dbs/a"), SLICE_INIT("127.0.0.1"), SLICE_INIT("8081"),
         SLICE_INIT("/dbs/a")},
        {SLICE_INIT("http://localhost"), SLICE_INIT("localhost"), SLICE_INIT("80"),
         SLICE_INIT("/")},
        {SLICE_INIT("https://localhost"), SLICE_INIT("localhost"), SLICE_INIT("443"),
         SLICE_INIT("/")},
        {SLICE_INIT("https://a.b.example:8081/dbs"), SLICE_INIT("a.b.example"), SLICE_INIT("8081"),
         SLICE_INIT("/dbs")},
        {SLICE_INIT("http://[::1]:8081/dbs"), SLICE_INIT("::1"), SLICE_INIT("8081"),
         SLICE_INIT("/dbs")},
        {SLICE_INIT("http://[::1]"), SLICE_INIT("::1"), SLICE_INIT("80"), SLICE_INIT("/")},
        {SLICE_INIT("http://h:65535/a:b"), SLICE_INIT("h"), SLICE_INIT("65535"),
         SLICE_INIT("/a:b")},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Url url;
        Error err;
        assert_int_equal(url_parse(rows[i].text, &url, &err), STATUS_OK);
        assert_true(slice_equal(url.host, rows[i].host));
        assert_true(slice_equal(url.port, rows[i].port));
        assert_true(slice_equal(url.path, rows[i].path));
    }
    static const Slice wrong[] = {
        SLICE_INIT(""),
        SLICE_INIT("ftp://h/"),
        SLICE_INIT("h:80/"),
        SLICE_INIT("http://"),
        SLICE_INIT("http://:80/"),
        SLICE_INIT("http://h:/"),
        SLICE_INIT("http://h:0"),
        SLICE_INIT("http://h:65536/"),
        SLICE_INIT("http://h:x/"),
        SLICE_INIT("http://[::1"),
        SLICE_INIT("http://[]:80/"),
        SLICE_INIT("http://[::1]80/"),
        SLICE_INIT("http://h/a b"),
        SLICE_INIT("http://h/a\r\nb"),
        SLICE_INIT("http://::1/"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        Url url;
        Error err;
        assert_int_equal(url_parse(wrong[i], &url, &err), STATUS_BAD_REQUEST);
    }
}

static void paths_give_the_type_and_link_that_are_signed(void **state)
{
    (void)state;
    static const struct {
        Slice path, type, link;
    } rows[] = {
        {SLICE_INIT("/"), SLICE_INIT(""), SLICE_INIT("")},
        {SLICE_INIT("/dbs"), SLICE_INIT("dbs"), SLICE_INIT("")},
        {SLICE_INIT("/dbs/"), SLICE_INIT("dbs"), SLICE_INIT("")},
        {SLICE_INIT("/dbs/A"), SLICE_INIT("dbs"), SLICE_INIT("dbs/A")},
        {SLICE_INIT("/dbs/A/colls"), SLICE_INIT("colls"), SLICE_INIT("dbs/A")},
        {SLICE_INIT("/dbs/A/colls/C/docs/Item%201?x=/y"), SLICE_INIT("docs"),
         SLICE_INIT("dbs/A/colls/C/docs/Item 1")},
        {SLICE_INIT("/_orrery/events?count=1"), SLICE_INIT(""), SLICE_INIT("")},
        {SLICE_INIT("/_orrery/dbs/A/colls/C/layout"), SLICE_INIT("colls"),
         SLICE_INIT("dbs/A/colls/C")},
        {SLICE_INIT("/_orrery/chaos/dbs/A/colls/C/split"), SLICE_INIT("colls"),
         SLICE_INIT("dbs/A/colls/C")},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        SignerTarget target;
        Error err;
        assert_int_equal(signer_target_parse(&arena, rows[i].path, &target, &err), STATUS_OK);
        assert_true(slice_equal(target.type, rows[i].type));
        assert_true(slice_equal(target.link, rows[i].link));
    }
    SignerTarget target;
    Error err;
    assert_int_equal(signer_target_parse(&arena, SLICE("/dbs/%zz"), &target, &err),
                     STATUS_BAD_REQUEST);
}

/* Made by an official SDK with the well-known key; only '+', '/' and '=' are encoded in base64. */
static void signatures_equal_those_of_the_sdk(void **state)
{
    (void)state;
    static const struct {
        Slice method, path, signature;
    } rows[] = {
        {SLICE_INIT("GET"), SLICE_INIT("/"),
         SLICE_INIT("TCpv7klme4e3gg7gFSCpnubeVH8DBNZoqM4ZACzc4DM%3D")},
        {SLICE_INIT("POST"), SLICE_INIT("/dbs"),
         SLICE_INIT("CExRYYHKTOE3hfR48gRloqdIxY%2F2B9gaKOP89LBs9Tw%3D")},
        {SLICE_INIT("GET"), SLICE_INIT("/dbs/Db1/colls/C1"),
         SLICE_INIT("3GZYkprlnliLNBemtPv0kQRMr2hR6QZMlHllG7WEKUw%3D")},
        {SLICE_INIT("POST"), SLICE_INIT("/dbs/Db1/colls/C1/docs"),
         SLICE_INIT("PS1GAbammID86nDsTyzNAw5IadxnP2M2r7Mxc1Uxsoo%3D")},
        {SLICE_INIT("GET"), SLICE_INIT("/dbs/Db1/colls/C1/docs/Item%201"),
         SLICE_INIT("uqkx2cvZiu6wUnYkAuVXN8uTETB3UDFf%2FVYkep3DJxA%3D")},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    Signer signer;
    Error err;
    assert_int_equal(signer_init(&signer, SLICE(WELL_KNOWN_KEY), &err), STATUS_OK);
    Slice prefix = SLICE("type%3Dmaster%26ver%3D1.0%26sig%3D");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        SignerTarget target;
        assert_int_equal(signer_target_parse(&arena, rows[i].path, &target, &err), STATUS_OK);
        Slice value = signer_authorization(&signer, &arena, rows[i].method, target,
                                           "Tue, 01 Oct 2024 12:00:00 GMT");
        assert_true(slice_starts_with(value, prefix));
        assert_true(slice_equal(slice_from(value, prefix.len), rows[i].signature));
    }
    assert_int_equal(signer_init(&signer, SLICE("not base64"), &err), STATUS_BAD_REQUEST);
}

static void requests_are_whole_and_carry_the_current_date(void **state)
{
    (void)state;
    Error err;
    Signer signer;
    assert_int_equal(signer_init(&signer, SLICE(WELL_KNOWN_KEY), &err), STATUS_OK);
    RequestOptions options = {.method = SLICE("POST"), .body = SLICE("{}"), .signer = &signer};
    options.headers[options.header_count++] = SLICE("x-ms-documentdb-is-upsert: true");
    assert_int_equal(url_parse(SLICE("http://h:1/dbs"), &options.url, &err), STATUS_OK);
    for (int sign_each = 0; sign_each < 2; sign_each++) {
        options.sign_each = sign_each == 1;
        AUTO(request_maker_done) RequestMaker maker;
        assert_int_equal(request_maker_init(&maker, &options, &err), STATUS_OK);
        AUTO(buf_done) Buf out;
        buf_init(&out, 65536);
        print_turn(&maker, 0, SLICE_EMPTY, 0, &out);
        buf_reset(&out);
        print_turn(&maker, 0, SLICE_EMPTY, 1727784000, &out);
        Slice request = buf_view(&out);
        assert_true(slice_starts_with(request, SLICE("POST /dbs HTTP/1.1\r\n")));
        assert_true(slice_ends_with(request, SLICE("\r\n\r\n{}")));
        buf_byte(&out, '\0');
        assert_non_null(strstr(out.ptr, "\r\nHost: h:1\r\n"));
        assert_non_null(strstr(out.ptr, "\r\nContent-Length: 2\r\n"));
        assert_non_null(strstr(out.ptr, "\r\nx-ms-documentdb-is-upsert: true\r\n"));
        assert_non_null(strstr(out.ptr, "\r\nx-ms-date: Tue, 01 Oct 2024 12:00:00 GMT\r\n"));
        assert_non_null(strstr(out.ptr, "sig%3DCExRYYHKTOE3hfR48gRloqdIxY%2F2B9gaKOP89LBs9Tw%3D"));
    }
}

static void unsigned_requests_carry_no_authorization(void **state)
{
    (void)state;
    Error err;
    RequestOptions options = {.method = SLICE("GET"), .sign_each = true};
    assert_int_equal(url_parse(SLICE("http://h/%zz"), &options.url, &err), STATUS_OK);
    AUTO(request_maker_done) RequestMaker maker;
    assert_int_equal(request_maker_init(&maker, &options, &err), STATUS_OK);
    AUTO(buf_done) Buf out;
    buf_init(&out, 65536);
    print_turn(&maker, 0, SLICE_EMPTY, 0, &out);
    buf_byte(&out, '\0');
    assert_null(strstr(out.ptr, "authorization"));
    assert_null(strstr(out.ptr, "Content-Length"));
    assert_non_null(strstr(out.ptr, "Thu, 01 Jan 1970 00:00:00 GMT"));
}

/* The signature is over the path of the item, whichever way that was put together. */
static void requests_for_items_are_signed_for_their_own_path(void **state)
{
    (void)state;
    static const ItemOperation rows[] = {LOAD_ITEM_READ, LOAD_ITEM_CREATE, LOAD_ITEM_PATCH,
                                         LOAD_ITEM_BATCH};
    Error err;
    Signer signer;
    assert_int_equal(signer_init(&signer, SLICE(WELL_KNOWN_KEY), &err), STATUS_OK);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        RequestOptions options = {.signer = &signer, .sign_each = true, .kind = WORKLOAD_ITEMS};
        options.items = (ItemOptions){.count = 100};
        options.items.percent[rows[i]] = 100;
        assert_int_equal(url_parse(SLICE("http://h/dbs/Db1/colls/C1/docs"), &options.url, &err),
                         STATUS_OK);
        AUTO(request_maker_done) RequestMaker maker;
        assert_int_equal(request_maker_init(&maker, &options, &err), STATUS_OK);
        AUTO(buf_done) Buf out;
        buf_init(&out, (size_t)1 << 20);
        print_turn(&maker, 0, SLICE_EMPTY, 1727784000, &out);
        Slice rest = buf_view(&out);
        Slice method = slice_cut(&rest, ' ');
        Slice path = slice_cut(&rest, ' ');
        SignerTarget target;
        assert_int_equal(signer_target_parse(&maker.memory, path, &target, &err), STATUS_OK);
        Slice expected = signer_authorization(&signer, &maker.memory, method, target,
                                              "Tue, 01 Oct 2024 12:00:00 GMT");
        assert_non_null(memmem(out.ptr, out.len, expected.ptr, expected.len));
        Slice type = rows[i] == LOAD_ITEM_PATCH
                         ? SLICE("\r\nContent-Type: application/json_patch+json\r\n")
                     : rows[i] == LOAD_ITEM_READ ? SLICE("GET")
                                                 : SLICE("\r\nContent-Type: application/json\r\n");
        assert_non_null(memmem(out.ptr, out.len, type.ptr, type.len));
    }
}

static void queries_are_signed_and_named_as_such(void **state)
{
    (void)state;
    Error err;
    Signer signer;
    assert_int_equal(signer_init(&signer, SLICE(WELL_KNOWN_KEY), &err), STATUS_OK);
    RequestOptions options = {.signer = &signer, .sign_each = true, .kind = WORKLOAD_QUERY};
    options.query = (QueryOptions){.kind = QUERY_UNIQUE, .count = 100};
    assert_int_equal(url_parse(SLICE("http://h/dbs/Db1/colls/C1/docs"), &options.url, &err),
                     STATUS_OK);
    AUTO(request_maker_done) RequestMaker maker;
    assert_int_equal(request_maker_init(&maker, &options, &err), STATUS_OK);
    AUTO(buf_done) Buf out;
    buf_init(&out, 65536);
    print_turn(&maker, 7, SLICE("token"), 1727784000, &out);
    buf_byte(&out, '\0');
    assert_true(
        slice_starts_with(buf_view(&out), SLICE("POST /dbs/Db1/colls/C1/docs HTTP/1.1\r\n")));
    assert_non_null(strstr(out.ptr, "\r\nContent-Type: application/query+json\r\n"));
    assert_non_null(strstr(out.ptr, "\r\nx-ms-documentdb-isquery: True\r\n"));
    assert_non_null(strstr(out.ptr, "\r\nx-ms-documentdb-query-enablecrosspartition: true\r\n"));
    assert_non_null(strstr(out.ptr, "\r\nx-ms-continuation: token\r\n"));
    assert_non_null(strstr(out.ptr, "sig%3DPS1GAbammID86nDsTyzNAw5IadxnP2M2r7Mxc1Uxsoo%3D"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_taken_apart),
        cmocka_unit_test(paths_give_the_type_and_link_that_are_signed),
        cmocka_unit_test(signatures_equal_those_of_the_sdk),
        cmocka_unit_test(requests_are_whole_and_carry_the_current_date),
        cmocka_unit_test(unsigned_requests_carry_no_authorization),
        cmocka_unit_test(requests_for_items_are_signed_for_their_own_path),
        cmocka_unit_test(queries_are_signed_and_named_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
