/* syntax_error.c - see syntax_error_int.h.
 *
 * simdjson says that a text is wrong but not where. This reads a refused text again, byte by byte,
 * to tell the client. Recursion is bounded: it ends one level beyond JSON_DEPTH_MAX.
 */
#include "json/syntax_error_int.h"

#include "json/json.h"
#include "json/utf8_int.h"

#include <float.h>

typedef struct Reader {
    Slice text;
    size_t at;
    const char *expected; /* what is missing at 'at', once something is */
} Reader;

static bool read_value(Reader *r, uint32_t depth);

static bool fail(Reader *r, const char *expected)
{
    r->expected = expected;
    return false;
}

/* The next byte, or -1 at the end. */
static int peek(const Reader *r)
{
    return r->at < r->text.len ? (uint8_t)r->text.ptr[r->at] : -1;
}

static bool skip(Reader *r, char c)
{
    if (peek(r) != (uint8_t)c)
        return false;
    r->at++;
    return true;
}

static void skip_space(Reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t' || peek(r) == '\n' || peek(r) == '\r')
        r->at++;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(int c)
{
    if (is_digit(c))
        return c - '0';
    int lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The four digits after "\\u". */
static bool read_unit(Reader *r, unsigned *out)
{
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(peek(r));
        if (digit < 0)
            return fail(r, "four hexadecimal digits");
        *out = *out << 4 | (unsigned)digit;
        r->at++;
    }
    return true;
}

/* Half a surrogate pair is no character: UTF-8 has no form for it. */
static bool read_unicode_escape(Reader *r)
{
    size_t start = r->at - 1;
    unsigned unit;
    unsigned low = 0;
    r->at++;
    if (!read_unit(r, &unit))
        return false;
    if (unit < 0xD800 || unit > 0xDFFF)
        return true;
    bool is_high = unit < 0xDC00;
    if (is_high && skip(r, '\\') && skip(r, 'u') && !read_unit(r, &low))
        return false;
    if (is_high && low >= 0xDC00 && low <= 0xDFFF)
        return true;
    r->at = start;
    return fail(r, "both halves of a surrogate pair");
}

static bool read_escape(Reader *r)
{
    r->at++;
    int c = peek(r);
    if (c == 'u')
        return read_unicode_escape(r);
    if (c <= 0 || strchr("\"\\/bfnrt", c) == NULL)
        return fail(r, "one of \"\\/bfnrtu after a backslash");
    r->at++;
    return true;
}

static bool read_string(Reader *r)
{
    r->at++;
    while (!skip(r, '"')) {
        int c = peek(r);
        if (c < 0)
            return fail(r, "a closing quote");
        if (c < 0x20)
            return fail(r, "a control character to be escaped");
        if (c != '\\')
            r->at++;
        else if (!read_escape(r))
            return false;
    }
    return true;
}

static bool read_digits(Reader *r)
{
    if (!is_digit(peek(r)))
        return fail(r, "a digit");
    while (is_digit(peek(r)))
        r->at++;
    return true;
}

static bool read_number(Reader *r)
{
    size_t start = r->at;
    (void)skip(r, '-');
    if (skip(r, '0')) {
        if (is_digit(peek(r)))
            return fail(r, "no digit after a leading zero");
    } else if (!read_digits(r)) {
        return false;
    }
    if (skip(r, '.') && !read_digits(r))
        return false;
    bool has_exponent = skip(r, 'e') || skip(r, 'E');
    if (has_exponent) {
        if (!skip(r, '+'))
            (void)skip(r, '-');
        if (!read_digits(r))
            return false;
    }
    Slice number = slice_make(r->text.ptr + start, r->at - start);
    double value;
    bool may_be_large = has_exponent || number.len > DBL_MAX_10_EXP;
    if (may_be_large && !json_number_from_text(number, &value)) {
        r->at = start;
        return fail(r, "a number in the range of a double");
    }
    return true;
}

static bool read_word(Reader *r, Slice word, const char *expected)
{
    if (!slice_starts_with(slice_from(r->text, r->at), word))
        return fail(r, expected);
    r->at += word.len;
    return true;
}

static bool read_array(Reader *r, uint32_t depth)
{
    r->at++;
    skip_space(r);
    if (skip(r, ']'))
        return true;
    for (;;) {
        if (!read_value(r, depth))
            return false;
        if (skip(r, ']'))
            return true;
        if (!skip(r, ','))
            return fail(r, "',' or ']'");
    }
}

static bool read_object(Reader *r, uint32_t depth)
{
    r->at++;
    skip_space(r);
    if (skip(r, '}'))
        return true;
    for (;;) {
        skip_space(r);
        if (peek(r) != '"')
            return fail(r, "a property name in quotes");
        if (!read_string(r))
            return false;
        skip_space(r);
        if (!skip(r, ':'))
            return fail(r, "':'");
        if (!read_value(r, depth))
            return false;
        if (skip(r, '}'))
            return true;
        if (!skip(r, ','))
            return fail(r, "',' or '}'");
    }
}

static bool read_bare_value(Reader *r, uint32_t depth)
{
    int c = peek(r);
    if (c == '-' || is_digit(c))
        return read_number(r);
    switch (c) {
    case '"':
        return read_string(r);
    case 't':
        return read_word(r, SLICE("true"), "'true'");
    case 'f':
        return read_word(r, SLICE("false"), "'false'");
    case 'n':
        return read_word(r, SLICE("null"), "'null'");
    case '[':
    case '{':
        if (depth == JSON_DEPTH_MAX)
            return fail(r, "no more than 128 levels of nesting");
        return c == '[' ? read_array(r, depth + 1) : read_object(r, depth + 1);
    default:
        return fail(r, "a value");
    }
}

/* A value, and the space around it. */
static bool read_value(Reader *r, uint32_t depth)
{
    skip_space(r);
    if (!read_bare_value(r, depth))
        return false;
    skip_space(r);
    return true;
}

bool text_find_fault(Slice text, TextFault *fault)
{
    static_assert(JSON_DEPTH_MAX == 128, "a message above names it");
    size_t valid = utf8_valid_len(text);
    Reader r = {.text = text};
    bool ok = read_value(&r, 0);
    if (ok && r.at < text.len)
        ok = fail(&r, "the end of the text");
    if (valid < text.len && (ok || valid <= r.at)) {
        *fault = (TextFault){valid, "well-formed UTF-8"};
        return true;
    }
    *fault = (TextFault){r.at, r.expected};
    return !ok;
}
