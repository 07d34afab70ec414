/* head_test.c - which heads are taken, and what they say; which are refused. */
#include "http/head_int.h"

#include "base/testing.h"

#include <stdlib.h>

static const HeadLimits LIMITS = {
    .header_bytes_max = 1024, .body_bytes_max = 1000, .headers_max = HTTP_HEADERS_MAX};

typedef struct Parsed {
    Status status;
    bool is_complete;
    Head head;
    HttpHeader headers[HTTP_NODE_HEADERS_MAX];
    Error err;
} Parsed;

/* Parses a copy of exactly the right size, so that the sanitizer sees a read beyond the end. */
static char *parse(Slice text, Parsed *out)
{
    char *copy = malloc(text.len > 0 ? text.len : 1);
    assert_non_null(copy);
    memcpy(copy, text.ptr, text.len);
    *out = (Parsed){0};
    out->status = head_parse(copy, text.len, 0, &LIMITS, out->headers, &out->head,
                             &out->is_complete, &out->err);
    return copy;
}

#define LINE "GET / HTTP/1.1\r\nhost: h\r\n"

static const struct {
    Slice text;
    Status status;
} MALFORMED[] = {
    {SLICE_INIT("GET /\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/2.0\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1 \r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(" / HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET  HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET path HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET http:// HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET http:///path HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET http://host?x HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET ftp://host/ HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("CONNECT host:443 HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET /a\0b HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET /\x01 HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "a: x\0y\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "a: x\ry\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "a\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE ": x\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "a : x\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "a b: x\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "a: x\r\n folded\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE " a: x\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "Host: h\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "content-length: 1\r\ncontent-length: 1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "content-length: 1, 1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "content-length: -1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "content-length: +1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "content-length: 0x1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "content-length:\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "content-length: 99999999999999999999\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "content-length: 1001\r\n\r\n"), STATUS_TOO_LARGE},
    {SLICE_INIT(LINE "content-length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
     STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n"),
     STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "transfer-encoding: gzip, chunked\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "transfer-encoding: identity\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "transfer-encoding: \r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "expect: a miracle\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\nhost:\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\nhost: a/b\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\nhost: a@b\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\nhost: a b\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\nhost: a,b\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\nhost: \xc3\xa4\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET http://other/ HTTP/1.1\r\nhost: h\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET http://h:80/ HTTP/1.1\r\nhost: h:81\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET http://u@h/ HTTP/1.1\r\nhost: h\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET http://h/ HTTP/1.0\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("\nGET / HTTP/1.1\r\nhost: h\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\nhost: h\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\nhost: h\na: b\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\nhost: h\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\r\nhost: h\r\n\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("GET / HTTP/1.1\nhost: h\n\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "transfer-encoding\x0b: chunked\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "transfer-encoding: \x0b"
                     "chunked\r\n\r\n"),
     STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "transfer-encoding : chunked\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "transfer-encoding: chunked, identity\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT(LINE "content-length: 1\r\n\t0\r\n\r\n"), STATUS_BAD_REQUEST},
    {SLICE_INIT("\x80\x81 / HTTP/1.1\r\n\r\n"), STATUS_BAD_REQUEST},
};

static void malformed_heads_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(MALFORMED); i++) {
        Parsed parsed;
        char *copy = parse(MALFORMED[i].text, &parsed);
        if (parsed.status != MALFORMED[i].status)
            fail_msg("row %zu: '%.*s' gave status %d", i, SLICE_CUT(MALFORMED[i].text, 80),
                     parsed.status);
        assert_true(parsed.err.message[0] != '\0');
        free(copy);
    }
}

static void a_head_says_where_the_request_ends(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t content_length;
        bool is_chunked, keeps_open, expects_continue, accepts_gzip;
    } rows[] = {
        {LINE "\r\n", 0, false, true, false, false},
        {"\r\n" LINE "\r\n", 0, false, true, false, false},
        {"GET / HTTP/1.0\r\n\r\n", 0, false, false, false, false},
        {"GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n", 0, false, true, false, false},
        {LINE "Connection: close\r\n\r\n", 0, false, false, false, false},
        {LINE "Connection: te, Close\r\n\r\n", 0, false, false, false, false},
        {LINE "Connection: keep-alive\r\nconnection: close\r\n\r\n", 0, false, false, false, false},
        {LINE "Connection: closed\r\n\r\n", 0, false, true, false, false},
        {LINE "Connection: upgrade, http2-settings\r\nupgrade: h2c\r\n\r\n", 0, false, true, false,
         false},
        {LINE "CONTENT-LENGTH: 1000 \r\n\r\n", 1000, false, true, false, false},
        {LINE "content-length: 0\r\n\r\n", 0, false, true, false, false},
        {LINE "Transfer-Encoding: Chunked\r\n\r\n", 0, true, true, false, false},
        {LINE "Expect: 100-Continue\r\ncontent-length: 7\r\n\r\n", 7, false, true, true, false},
        {LINE "accept-encoding: gzip\r\n\r\n", 0, false, true, false, true},
        {LINE "accept-encoding: deflate, GZIP;q=0.5\r\n\r\n", 0, false, true, false, true},
        {LINE "accept-encoding: *\r\n\r\n", 0, false, true, false, true},
        {LINE "accept-encoding: gzip;q=0\r\n\r\n", 0, false, true, false, false},
        {LINE "accept-encoding: br, gzip; q=0.0\r\n\r\n", 0, false, true, false, false},
        {LINE "accept-encoding: gzipped\r\n\r\n", 0, false, true, false, false},
        {LINE "accept-encoding: identity\r\n\r\n", 0, false, true, false, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Parsed parsed;
        char *copy = parse(slice_from_cstr(rows[i].text), &parsed);
        if (parsed.status != STATUS_OK || !parsed.is_complete)
            fail_msg("row %zu: %s", i, parsed.err.message);
        assert_int_equal(parsed.head.len, strlen(rows[i].text));
        assert_int_equal(parsed.head.content_length, rows[i].content_length);
        assert_int_equal(parsed.head.is_chunked, rows[i].is_chunked);
        if (parsed.head.keeps_open != rows[i].keeps_open)
            fail_msg("row %zu: keeps_open", i);
        assert_int_equal(parsed.head.expects_continue, rows[i].expects_continue);
        if (parsed.head.accepts_gzip != rows[i].accepts_gzip)
            fail_msg("row %zu: accepts_gzip", i);
        free(copy);
    }
}

static void targets_become_paths(void **state)
{
    (void)state;
    static const struct {
        const char *text, *path, *authority;
    } rows[] = {
        {"GET /a%20b?c=d HTTP/1.1\r\nhost: h:1\r\n\r\n", "/a%20b?c=d", "h:1"},
        {"GET //x HTTP/1.1\r\nhost: h\r\n\r\n", "//x", "h"},
        {"OPTIONS * HTTP/1.1\r\nhost: h\r\n\r\n", "*", "h"},
        {"GET / HTTP/1.0\r\n\r\n", "/", ""},
        {"GET http://other:80/p?q HTTP/1.1\r\nhost: OTHER:80\r\n\r\n", "/p?q", "OTHER:80"},
        {"GET HTTPS://[::1] HTTP/1.1\r\nhost: [::1]\r\n\r\n", "/", "[::1]"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Parsed parsed;
        char *copy = parse(slice_from_cstr(rows[i].text), &parsed);
        assert_int_equal(parsed.status, STATUS_OK);
        assert_slice_text(parsed.head.path, rows[i].path);
        assert_slice_text(parsed.head.authority, rows[i].authority);
        free(copy);
    }
}

static void names_become_lower_case_and_values_are_trimmed(void **state)
{
    (void)state;
    Parsed parsed;
    char *copy = parse(
        SLICE("PUT / HTTP/1.1\r\nHost: h\r\nX-MS-Date:  Mon \t\r\nEmpty:\r\n\r\nrest"), &parsed);
    assert_int_equal(parsed.status, STATUS_OK);
    assert_int_equal(parsed.head.header_count, 3);
    assert_slice_text(parsed.head.method, "PUT");
    assert_slice_text(parsed.headers[1].name, "x-ms-date");
    assert_slice_text(parsed.headers[1].value, "Mon");
    assert_slice_text(parsed.headers[2].name, "empty");
    assert_slice_text(parsed.headers[2].value, "");
    free(copy);
}

static void every_beginning_of_a_head_is_incomplete(void **state)
{
    (void)state;
    Slice text = SLICE("POST http://h/p HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\n");
    for (size_t len = 0; len < text.len; len++) {
        Parsed parsed;
        char *copy = parse(slice_first(text, len), &parsed);
        assert_int_equal(parsed.status, STATUS_OK);
        assert_false(parsed.is_complete);
        free(copy);
    }
}

static void too_many_headers_and_too_long_heads_are_refused(void **state)
{
    (void)state;
    char text[8192];
    Parsed parsed;
    for (int count = HTTP_HEADERS_MAX; count <= HTTP_HEADERS_MAX + 1; count++) {
        int len = snprintf(text, sizeof(text), LINE);
        for (int i = 1; i < count; i++) /* LINE has one */
            len += snprintf(text + len, sizeof(text) - (size_t)len, "a:b\r\n");
        len += snprintf(text + len, sizeof(text) - (size_t)len, "\r\n");
        free(parse(slice_make(text, (size_t)len), &parsed));
        assert_int_equal(parsed.status, count > HTTP_HEADERS_MAX ? STATUS_BAD_REQUEST : STATUS_OK);
    }
    /* Complete or not, 1,024 bytes are the limit. */
    for (size_t len = LIMITS.header_bytes_max - 1; len <= LIMITS.header_bytes_max + 1; len++) {
        Status expected = len > LIMITS.header_bytes_max ? STATUS_BAD_REQUEST : STATUS_OK;
        memset(text, 'x', sizeof(text));
        memcpy(text, LINE "a: ", sizeof(LINE "a: ") - 1);
        free(parse(slice_make(text, len), &parsed));
        assert_int_equal(parsed.status, expected);
        assert_false(parsed.is_complete);
        memcpy(text + len - 4, "\r\n\r\n", 4);
        free(parse(slice_make(text, len), &parsed));
        assert_int_equal(parsed.status, expected);
        assert_int_equal(parsed.is_complete, expected == STATUS_OK);
    }
}

static void a_moved_head_points_into_the_copy(void **state)
{
    (void)state;
    Slice text = SLICE("GET http://h HTTP/1.1\r\nHost: h\r\nName: value\r\nempty:\r\n\r\n");
    Parsed parsed;
    char *first = parse(text, &parsed);
    char *second = malloc(text.len);
    assert_non_null(second);
    memcpy(second, first, text.len);
    head_move(&parsed.head, parsed.headers, first, second);
    free(first);
    assert_slice_text(parsed.head.method, "GET");
    assert_slice_text(parsed.head.path, "/");
    assert_slice_text(parsed.head.authority, "h");
    assert_slice_text(parsed.headers[1].name, "name");
    assert_slice_text(parsed.headers[1].value, "value");
    assert_int_equal(parsed.headers[2].value.len, 0);
    free(second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_heads_are_refused),
        cmocka_unit_test(a_head_says_where_the_request_ends),
        cmocka_unit_test(targets_become_paths),
        cmocka_unit_test(names_become_lower_case_and_values_are_trimmed),
        cmocka_unit_test(every_beginning_of_a_head_is_incomplete),
        cmocka_unit_test(too_many_headers_and_too_long_heads_are_refused),
        cmocka_unit_test(a_moved_head_points_into_the_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
