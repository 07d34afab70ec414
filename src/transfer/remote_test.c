/* remote_test.c - addresses of a container, and what answers say. */
#include "transfer/remote.h"

#include "base/testing.h"

static void requests_have_their_paths_and_links(void **state)
{
    (void)state;
    Remote remote;
    remote_init(&remote, &test_arena, NULL, -1, "my shop", "a/b");
    static const struct {
        RemoteFeed feed;
        const char *path, *type, *link;
    } rows[] = {
        {REMOTE_ROOT, "/dbs", "dbs", ""},
        {REMOTE_DATABASE, "/dbs/my%20shop/colls", "colls", "dbs/my shop"},
        {REMOTE_CONTAINER, "/dbs/my%20shop/colls/a%2Fb", "colls", "dbs/my shop/colls/a/b"},
        {REMOTE_RANGES, "/dbs/my%20shop/colls/a%2Fb/pkranges", "pkranges", "dbs/my shop/colls/a/b"},
        {REMOTE_ITEMS, "/dbs/my%20shop/colls/a%2Fb/docs", "docs", "dbs/my shop/colls/a/b"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ClientCall call = remote_call(&remote, rows[i].feed, &test_arena);
        assert_int_equal(call.method, CLIENT_GET);
        assert_slice_text(call.path, rows[i].path);
        assert_slice_text(call.resource_type, rows[i].type);
        assert_slice_text(call.resource_link, rows[i].link);
    }
}

static void headers_are_numbers_or_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        double charge;
        uint32_t sub_status, retry_after_ms;
    } rows[] = {
        {"x-ms-request-charge: 6.29\r\nx-ms-substatus: 1002\r\nx-ms-retry-after-ms: 17\r\n", 6.29,
         1002, 17},
        {"x-ms-retry-after-ms: 12.7\r\n", 0, 0, 12},
        {"x-ms-request-charge: x\r\nx-ms-substatus: -1\r\nx-ms-retry-after-ms: 1e99\r\n", 0, 0, 0},
        {"", 0, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ClientCall call = {.head = slice_from_cstr(rows[i].head)};
        assert_true(remote_charge(&call) == rows[i].charge);
        assert_int_equal(remote_sub_status(&call), rows[i].sub_status);
        assert_int_equal(remote_retry_after_ms(&call), rows[i].retry_after_ms);
    }
}

static void refusals_are_one_line(void **state)
{
    (void)state;
    static const struct {
        int http_status;
        const char *body;
        Status status;
        const char *says;
    } rows[] = {
        {401, "{\"message\":\"wrong key\\r\\nmore\"}", STATUS_UNAUTHORIZED,
         "401 for /x: wrong key"},
        {404, "{\"message\":\"a\\u001b[2Jb\"}", STATUS_NOT_FOUND, "404 for /x: a [2Jb"},
        {400, "", STATUS_BAD_REQUEST, "400 for /x"},
        {503, "<html>", STATUS_UNAVAILABLE, "503 for /x"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ClientCall call = {.arena = &test_arena,
                           .path = SLICE("/x"),
                           .http_status = rows[i].http_status,
                           .body = slice_from_cstr(rows[i].body)};
        Error err;
        assert_status(remote_refused(&call, &err), rows[i].status);
        Slice message = slice_from_cstr(err.message);
        if (!slice_ends_with(message, slice_from_cstr(rows[i].says)))
            fail_msg("row %zu: %s", i, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(requests_have_their_paths_and_links),
        TEST(headers_are_numbers_or_nothing),
        TEST(refusals_are_one_line),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
