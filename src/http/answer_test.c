/* answer_test.c - answers taken and refused, whole and byte by byte. */
#include "http/answer_int.h"

#include "base/mem.h"
#include "base/testing.h"

enum { BODY_BYTES_MAX = 1000 };

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

typedef struct Outcome {
    Status status;
    Error err;
    size_t used;
    AnswerReader reader;
    Arena arena;
} Outcome;

/* Reads 'text' in parts of this size. */
static void read_parts(Outcome *out, const char *text, size_t len, size_t part, bool is_to_head)
{
    *out = (Outcome){.status = STATUS_OK};
    arena_init(&out->arena, ARENA_SMALL_BYTES);
    out->reader =
        (AnswerReader){.arena = &out->arena, .bytes_max = BODY_BYTES_MAX, .is_to_head = is_to_head};
    while (out->used < len && out->status == STATUS_OK && out->reader.state != ANSWER_DONE) {
        size_t left = len - out->used;
        size_t take = part < left ? part : left;
        size_t used = 0;
        char *room = NULL;
        size_t room_len = answer_room(&out->reader, &room);
        char *bytes = mem_copy(text + out->used, take);
        char *from = bytes;
        if (room_len >= take) {
            memcpy(room, bytes, take);
            from = room;
        }
        out->status = answer_read(&out->reader, from, take, &used, &out->err);
        mem_free(bytes);
        out->used += used;
    }
}

static void answers_are_read(void **state)
{
    static const struct {
        const char *text;
        int status;
        const char *body;
        const char *rest; /* what follows the answer */
        bool ends_connection;
    } rows[] = {
        {OK_HEAD "content-length: 5\r\n\r\nhello", 200, "hello", "", false},
        {OK_HEAD "Content-Length:5\r\nConnection: x, Close\r\n\r\nhello!", 200, "hello", "!", true},
        {OK_HEAD "content-length: 0\r\n\r\n", 200, "", "", false},
        {"HTTP/1.1 204 No Content\r\n\r\nHTTP", 204, "", "HTTP", false},
        {"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n", 304, "", "", false},
        {"HTTP/1.1 421 \r\ncontent-length: 1\r\n\r\nx", 421, "x", "", false},
        {OK_HEAD
         "transfer-encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\na: b\r\n\r\nrest",
         200, "hello", "rest", false},
        {OK_HEAD "transfer-encoding: chunked\r\n\r\n0\r\n\r\n", 200, "", "", false},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 199 Soon\r\nconnection: close\r\n\r\n" OK_HEAD
         "content-length: 2\r\n\r\nok",
         200, "ok", "", true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        size_t len = strlen(rows[i].text);
        for (size_t part = 1; part <= len; part++) {
            Outcome out;
            read_parts(&out, rows[i].text, len, part, false);
            if (out.status != STATUS_OK)
                fail_msg("row %zu, parts of %zu: %s", i, part, out.err.message);
            assert_int_equal(out.reader.state, ANSWER_DONE);
            assert_int_equal(out.reader.status, rows[i].status);
            assert_true(slice_equal(out.reader.body, slice_from_cstr(rows[i].body)));
            assert_int_equal(out.reader.ends_connection, rows[i].ends_connection);
            assert_string_equal(rows[i].text + out.used, rows[i].rest);
            arena_done(&out.arena);
        }
    }
}

static void an_answer_to_head_has_no_body(void **state)
{
    static const char text[] = OK_HEAD "content-length: 5\r\n\r\n";
    Outcome out;
    (void)state;
    read_parts(&out, text, sizeof(text) - 1, sizeof(text), true);
    assert_int_equal(out.status, STATUS_OK);
    assert_int_equal(out.reader.state, ANSWER_DONE);
    assert_int_equal(out.reader.body.len, 0);
    arena_done(&out.arena);
}

static void headers_of_the_connection_are_dropped(void **state)
{
    static const char text[] = OK_HEAD "Server: x\r\nDate: y\r\nX-Ms-A:  b \r\nkeep-alive: 1\r\n"
                                       "upgrade: z\r\ncontent-length: 1\r\nETag: \"e\"\r\n\r\n.";
    Outcome out;
    (void)state;
    read_parts(&out, text, sizeof(text) - 1, 7, false);
    assert_int_equal(out.status, STATUS_OK);
    assert_int_equal(out.reader.header_count, 2);
    assert_true(slice_equal(out.reader.headers[0].name, SLICE("x-ms-a")));
    assert_true(slice_equal(out.reader.headers[0].value, SLICE("b")));
    assert_true(slice_equal(out.reader.headers[1].name, SLICE("etag")));
    arena_done(&out.arena);
}

#define INTERIM "HTTP/1.1 100 Continue\r\n\r\n"

static void ambiguous_and_malformed_answers_are_refused(void **state)
{
    static const struct {
        const char *text;
        Status status;
        const char *words;
    } rows[] = {
        {"garbage\r\n\r\n", STATUS_UNAVAILABLE, "well-formed"},
        {"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", STATUS_UNAVAILABLE, "well-formed"},
        {"HTTP/2.0 200 OK\r\ncontent-length: 0\r\n\r\n", STATUS_UNAVAILABLE, "well-formed"},
        {"HTTP/1.1 99 OK\r\ncontent-length: 0\r\n\r\n", STATUS_UNAVAILABLE, "well-formed"},
        {"HTTP/1.1 101 Switch\r\n\r\n", STATUS_UNAVAILABLE, "is none"},
        {OK_HEAD "\r\n", STATUS_UNAVAILABLE, "how long"},
        {OK_HEAD "content-length: 1\r\ncontent-length: 1\r\n\r\nx", STATUS_UNAVAILABLE, "single"},
        {OK_HEAD "content-length: -1\r\n\r\nx", STATUS_UNAVAILABLE, "single"},
        {OK_HEAD "content-length: 18446744073709551616\r\n\r\nx", STATUS_UNAVAILABLE, "single"},
        {OK_HEAD "content-length: 1\r\ntransfer-encoding: chunked\r\n\r\nx", STATUS_UNAVAILABLE,
         "both"},
        {OK_HEAD "transfer-encoding: gzip\r\n\r\nx", STATUS_UNAVAILABLE, "not understood"},
        {OK_HEAD "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\nx",
         STATUS_UNAVAILABLE, "not understood"},
        {OK_HEAD "transfer-encoding: chunked\r\n\r\nzz\r\n", STATUS_UNAVAILABLE, "chunks"},
        {OK_HEAD "transfer-encoding: chunked\r\n\r\nfff\r\n", STATUS_TOO_LARGE, "larger than"},
        {OK_HEAD "content-length: 1001\r\n\r\nx", STATUS_TOO_LARGE, "larger than"},
        {OK_HEAD "content-length: 5\r\n folded\r\n\r\nx", STATUS_UNAVAILABLE, "header"},
        {OK_HEAD "a: b\ncontent-length: 5\r\n\r\nx", STATUS_UNAVAILABLE, "header"},
        {INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM INTERIM,
         STATUS_UNAVAILABLE, "is none"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        size_t len = strlen(rows[i].text);
        for (size_t part = 1; part <= len; part++) {
            Outcome out;
            read_parts(&out, rows[i].text, len, part, false);
            if (out.status != rows[i].status || strstr(out.err.message, rows[i].words) == NULL)
                fail_msg("row %zu, parts of %zu: status %d, %s", i, part, out.status,
                         out.status == STATUS_OK ? "taken" : out.err.message);
            arena_done(&out.arena);
        }
    }
}

static void a_head_has_a_largest_size(void **state)
{
    static const size_t parts[] = {1, 100, 16384, 1 << 20};
    (void)state;
    for (int extra = 0; extra <= 1; extra++) {
        /* Exactly the largest head, or one byte more. */
        size_t len = ANSWER_HEAD_BYTES_MAX + (size_t)extra;
        char *text = malloc(len);
        memset(text, 'x', len);
        memcpy(text, OK_HEAD, sizeof(OK_HEAD) - 1);
        memcpy(text + sizeof(OK_HEAD) - 1, "a: ", 3);
        static const char end[] = "\r\ncontent-length: 0\r\n\r\n";
        memcpy(text + len - sizeof(end) + 1, end, sizeof(end) - 1);
        for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
            Outcome out;
            read_parts(&out, text, len, parts[i], false);
            assert_int_equal(out.status, extra == 0 ? STATUS_OK : STATUS_UNAVAILABLE);
            assert_true(extra == 0 || strstr(out.err.message, "too long") != NULL);
            assert_true(arena_used(&out.arena) < 5 * ANSWER_HEAD_BYTES_MAX);
            arena_done(&out.arena);
        }
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_read),
        cmocka_unit_test(an_answer_to_head_has_no_body),
        cmocka_unit_test(headers_of_the_connection_are_dropped),
        cmocka_unit_test(ambiguous_and_malformed_answers_are_refused),
        cmocka_unit_test(a_head_has_a_largest_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
