/* chunk_test.c - which chunked bodies are taken, and what is in them; which are refused. */
#include "http/chunk_int.h"

#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BYTES_MAX = 100 };

/* Decodes 'text' in pieces of 'step' bytes, each in memory of exactly its size. */
static Status decode(Slice text, size_t step, ChunkDecoder *decoder, char *body, Slice *rest,
                     Error *err)
{
    *decoder = (ChunkDecoder){0};
    *rest = SLICE_EMPTY;
    while (text.len > 0 && decoder->state != CHUNK_DONE) {
        Slice piece = slice_first(text, step);
        char *copy = malloc(piece.len);
        assert_non_null(copy);
        memcpy(copy, piece.ptr, piece.len);
        size_t before = decoder->decoded;
        size_t len = piece.len;
        size_t left = 0;
        Status status = chunk_decode(decoder, BYTES_MAX, copy, &len, &left, err);
        if (status == STATUS_OK)
            memcpy(body + before, copy, len);
        if (status == STATUS_OK && left > 0)
            assert_memory_equal(copy + len, piece.ptr + piece.len - left, left);
        free(copy);
        if (status != STATUS_OK)
            return status;
        text = slice_from(text, piece.len - left);
    }
    *rest = text;
    return STATUS_OK;
}

static void bodies_are_decoded_however_they_are_cut(void **state)
{
    (void)state;
    static const struct {
        const char *text, *body, *rest;
    } rows[] = {
        {"0\r\n\r\n", "", ""},
        {"5\r\nhello\r\n0\r\n\r\n", "hello", ""},
        {"5\r\nhello\r\n0\r\n\r\nGET /", "hello", "GET /"},
        {"A\r\n0123456789\r\n001\r\n!\r\n000\r\n\r\n", "0123456789!", ""},
        {"a;name=value;other=\"x y\"\r\n0123456789\r\n0;last\r\n\r\n", "0123456789", ""},
        {"2\r\n\r\n\r\n0\r\n\r\n", "\r\n", ""},
        {"1\r\nx\r\n0\r\nName: value\r\nempty:\r\n\r\nrest", "x", "rest"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t step = 1; step <= strlen(rows[i].text); step++) {
            char body[BYTES_MAX];
            ChunkDecoder decoder;
            Slice rest;
            Error err;
            Status status =
                decode(slice_from_cstr(rows[i].text), step, &decoder, body, &rest, &err);
            if (status != STATUS_OK || decoder.state != CHUNK_DONE)
                fail_msg("row %zu in steps of %zu: %s", i, step, err.message);
            assert_int_equal(decoder.decoded, strlen(rows[i].body));
            assert_memory_equal(body, rows[i].body, decoder.decoded);
            assert_true(slice_equal(rest, slice_from_cstr(rows[i].rest)));
        }
    }
}

static void whatever_another_reader_could_take_differently_is_refused(void **state)
{
    (void)state;
    static const struct {
        Slice text;
        Status status;
    } rows[] = {
        {SLICE_INIT("0x14\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("0X1\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("-1\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("+1\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT(" 1\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1 \r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1 ;a\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1_0\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("g\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT(";a\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1;a\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1\rx"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1;a\x01"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1;a\0"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1\r\nab\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1\r\na\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("1\r\na0\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("0\r\n\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("0\r\n\rx"), STATUS_BAD_REQUEST},
        {SLICE_INIT("0\r\nno colon\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("0\r\n: x\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("0\r\n folded\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("0\r\na: b\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("0\r\na : b\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("0\r\na: \x7f"), STATUS_BAD_REQUEST},
        {SLICE_INIT("00000000000000001\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("fffffffffffffffff\r\n"), STATUS_BAD_REQUEST},
        {SLICE_INIT("ffffffffffffffff\r\n"), STATUS_TOO_LARGE},
        {SLICE_INIT("65\r\n"), STATUS_TOO_LARGE},
        {SLICE_INIT("1\r\nx\r\n64\r\n"), STATUS_TOO_LARGE},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (size_t step = 1; step <= rows[i].text.len; step++) {
            char body[BYTES_MAX];
            ChunkDecoder decoder;
            Slice rest;
            Error err;
            Status status = decode(rows[i].text, step, &decoder, body, &rest, &err);
            if (status != rows[i].status)
                fail_msg("row %zu in steps of %zu: status %d", i, step, status);
        }
    }
}

/* A body of 'filler' bytes of extensions or trailers between two texts. */
static Status decode_filled(const char *start, size_t filler, const char *end)
{
    size_t len = strlen(start) + filler + strlen(end);
    char *text = malloc(len);
    assert_non_null(text);
    memcpy(text, start, strlen(start));
    memset(text + strlen(start), 'x', filler);
    memcpy(text + strlen(start) + filler, end, strlen(end));
    char body[BYTES_MAX];
    ChunkDecoder decoder;
    Slice rest;
    Error err;
    Status status = decode(slice_make(text, len), len, &decoder, body, &rest, &err);
    free(text);
    return status;
}

static void extensions_and_trailers_have_a_bound(void **state)
{
    (void)state;
    /* The line's CR counts, and so does that of the empty line. */
    size_t extension = CHUNK_EXTRA_BYTES_MAX - 2;
    assert_int_equal(decode_filled("0;", extension, "\r\n\r\n"), STATUS_OK);
    assert_int_equal(decode_filled("0;", extension + 1, "\r\n\r\n"), STATUS_BAD_REQUEST);
    size_t trailer = CHUNK_EXTRA_BYTES_MAX - sizeof("a:") + 1 - 2;
    assert_int_equal(decode_filled("0\r\na:", trailer, "\r\n\r\n"), STATUS_OK);
    assert_int_equal(decode_filled("0\r\na:", trailer + 1, "\r\n\r\n"), STATUS_BAD_REQUEST);
    assert_int_equal(decode_filled("0\r\n", CHUNK_EXTRA_BYTES_MAX + 1, ":"), STATUS_BAD_REQUEST);
    assert_int_equal(decode_filled("1;a\r\nx\r\n0;", extension, "\r\n\r\n"), STATUS_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_decoded_however_they_are_cut),
        cmocka_unit_test(whatever_another_reader_could_take_differently_is_refused),
        cmocka_unit_test(extensions_and_trailers_have_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
