/* lexer_test.c - tokens: their kinds, their places, their values. */
#include "query/sql/lexer_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <math.h>

typedef struct TokenCase {
    const char *text;
    TokenKind kinds[8]; /* up to TOKEN_EOF */
} TokenCase;

static void text_is_cut_into_tokens(void **state)
{
    (void)state;
    static const TokenCase CASES[] = {
        {"", {TOKEN_EOF}},
        {" \t\r\n\xC2\xA0\xE3\x80\x80", {TOKEN_EOF}},
        {"-- a comment", {TOKEN_EOF}},
        {"a--b\nc --d\re", {TOKEN_IDENTIFIER, TOKEN_IDENTIFIER, TOKEN_IDENTIFIER}},
        {"a-b", {TOKEN_IDENTIFIER, TOKEN_MINUS, TOKEN_IDENTIFIER}},
        {"select SELECT SeLeCt", {TOKEN_SELECT, TOKEN_SELECT, TOKEN_SELECT}},
        {"selects _select", {TOKEN_IDENTIFIER, TOKEN_IDENTIFIER}},
        {"true TRUE null Null", {TOKEN_TRUE, TOKEN_IDENTIFIER, TOKEN_NULL_, TOKEN_IDENTIFIER}},
        {"udf UDF NaN nan", {TOKEN_UDF, TOKEN_IDENTIFIER, TOKEN_NAN_, TOKEN_IDENTIFIER}},
        {"undefined Infinity end", {TOKEN_UNDEFINED, TOKEN_INFINITY_, TOKEN_END}},
        {"rank root all first",
         {TOKEN_IDENTIFIER, TOKEN_IDENTIFIER, TOKEN_IDENTIFIER, TOKEN_IDENTIFIER}},
        {"n\xC3\xA4me \xE5\x90\x8D", {TOKEN_IDENTIFIER, TOKEN_IDENTIFIER}},
        {"\xE2\x80\x9C", {TOKEN_BAD}}, /* a typographic quote is no letter */
        {"@p @_1", {TOKEN_PARAMETER, TOKEN_PARAMETER}},
        {"@ @1", {TOKEN_BAD, TOKEN_BAD, TOKEN_NUMBER}},
        {"1 1. .5 1.5e-3 1E2 0xFf",
         {TOKEN_NUMBER, TOKEN_NUMBER, TOKEN_NUMBER, TOKEN_NUMBER, TOKEN_NUMBER, TOKEN_NUMBER}},
        {"12a 1e 0.E 1e+ 0x 0x0123456789abcdef0",
         {TOKEN_BAD, TOKEN_BAD, TOKEN_BAD, TOKEN_BAD, TOKEN_PLUS, TOKEN_BAD, TOKEN_BAD}},
        {"a.1", {TOKEN_IDENTIFIER, TOKEN_NUMBER}},
        {"a[0].b",
         {TOKEN_IDENTIFIER, TOKEN_LEFT_BRACKET, TOKEN_NUMBER, TOKEN_RIGHT_BRACKET, TOKEN_DOT,
          TOKEN_IDENTIFIER}},
        {"'a' \"b\" '\"' \"'\" ''",
         {TOKEN_STRING, TOKEN_STRING, TOKEN_STRING, TOKEN_STRING, TOKEN_STRING}},
        {"'a\\'b' \"\\\\\"", {TOKEN_STRING, TOKEN_STRING}},
        {"'a\nb'", {TOKEN_STRING}},
        {"'a", {TOKEN_BAD}},
        {"'a\\", {TOKEN_BAD}},
        {"'\\u12' '\\uD800' '\\uDC00' '\\uD800\\u0041'",
         {TOKEN_BAD, TOKEN_BAD, TOKEN_BAD, TOKEN_BAD}},
        {"<> != <= >= << >> >>>",
         {TOKEN_NOT_EQUAL, TOKEN_NOT_EQUAL, TOKEN_LESS_EQUAL, TOKEN_GREATER_EQUAL, TOKEN_SHIFT_LEFT,
          TOKEN_SHIFT_RIGHT, TOKEN_SHIFT_RIGHT_ZERO}},
        {"|| | ?? ? : ,",
         {TOKEN_CONCAT, TOKEN_PIPE, TOKEN_COALESCE, TOKEN_QUESTION, TOKEN_COLON, TOKEN_COMMA}},
        {"! # $ ;", {TOKEN_BAD, TOKEN_BAD, TOKEN_BAD, TOKEN_BAD}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        Lexer lexer = {.text = slice_from_cstr(CASES[i].text)};
        for (size_t at = 0;; at++) {
            Token token = lexer_next(&lexer);
            if (token.kind != CASES[i].kinds[at])
                fail_msg("'%s': token %zu is %d, not %d", CASES[i].text, at, token.kind,
                         CASES[i].kinds[at]);
            if (token.kind == TOKEN_EOF)
                break;
        }
    }
}

static void a_zero_byte_is_no_token(void **state)
{
    (void)state;
    Lexer lexer = {.text = SLICE("\0a")};
    assert_int_equal(lexer_next(&lexer).kind, TOKEN_BAD);
    assert_int_equal(lexer_next(&lexer).kind, TOKEN_IDENTIFIER);
    assert_int_equal(lexer_next(&lexer).kind, TOKEN_EOF);
}

static void spans_are_bytes_of_the_text(void **state)
{
    (void)state;
    Lexer lexer = {.text = SLICE("a  \xC3\xA4 = 'x'")};
    static const Span SPANS[] = {{0, 1}, {3, 5}, {6, 7}, {8, 11}, {11, 11}, {11, 11}};
    for (size_t i = 0; i < ARRAY_COUNT(SPANS); i++) {
        Span span = lexer_next(&lexer).span;
        assert_int_equal(span.start, SPANS[i].start);
        assert_int_equal(span.end, SPANS[i].end);
    }
}

static void strings_lose_their_escapes(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        const char *value;
    } CASES[] = {
        {"''", ""},
        {"'abc'", "abc"},
        {"\"it's\"", "it's"},
        {"'it\\'s'", "it's"},
        {"'\\\"\\\\\\/'", "\"\\/"},
        {"'\\b\\f\\n\\r\\t'", "\b\f\n\r\t"},
        {"'\\x\\q'", "xq"},
        {"'\\\xC3\xA4'", "\xC3\xA4"},
        {"'\\u0041\\u00e4\\u1234'", "A\xC3\xA4\xE1\x88\xB4"},
        {"'\\uD83D\\uDE00'", "\xF0\x9F\x98\x80"},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        Slice value = lexer_string(&arena, slice_from_cstr(CASES[i].token));
        if (!slice_equal(value, slice_from_cstr(CASES[i].value)))
            fail_msg("%s is '%.*s'", CASES[i].token, SLICE_ARG(value));
    }
}

static void numbers_keep_64_bits_when_they_are_integers(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        double number;
        bool is_integer;
        uint64_t integer;
    } CASES[] = {
        {"0", 0, true, 0},
        {"9223372036854775807", 0x1p63, true, INT64_MAX},
        {"18446744073709551615", 0x1p64, true, UINT64_MAX},
        {"18446744073709551616", 0x1p64, false, 0},
        {"1.", 1, false, 0},
        {".5", 0.5, false, 0},
        {"1E2", 100, false, 0},
        {"0xff", 255, true, 255},
        {"0xFFFFFFFFFFFFFFFF", -1, true, UINT64_MAX},
        {"1e999", (double)INFINITY, false, 0},
        {"1e-999", 0, false, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        bool is_integer;
        uint64_t integer = 0;
        double number = lexer_number(slice_from_cstr(CASES[i].token), &is_integer, &integer);
        if (number != CASES[i].number || is_integer != CASES[i].is_integer)
            fail_msg("%s is %.17g, integer %d", CASES[i].token, number, is_integer);
        if (is_integer)
            assert_true(integer == CASES[i].integer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_cut_into_tokens),
        cmocka_unit_test(a_zero_byte_is_no_token),
        cmocka_unit_test(spans_are_bytes_of_the_text),
        cmocka_unit_test(strings_lose_their_escapes),
        cmocka_unit_test(numbers_keep_64_bits_when_they_are_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
