/* parse.c - JSON text into a document: see json.h.
 *
 * simdjson parses, and a JsonBuilder writes a document from its tape. simdjson refuses one thing
 * that is allowed here: integers of more than 64 bits. They are rare, so a text is first tried as
 * it is. A refused one is read again to find its fault, and if it has none, its long integers are
 * rewritten and the text is tried once more.
 *
 * Half a surrogate pair is a fault. It has no UTF-8 form, and with another character in its place
 * two different ids could become one.
 */
#include "base/mem.h"
#include "json/build_int.h"
#include "json/format_int.h"
#include "json/simdjson_int.h"
#include "json/syntax_error_int.h"

#include <stdio.h>

/* Integers of fewer digits fit 64 bits, with or without a sign. */
enum { LONG_INTEGER_DIGITS = 19 };

#define DOUBLE_EXACT_MAX ((int64_t)1 << 53)

static bool build_from_tape(Arena *arena, const Tape *tape, size_t text_size, Json *out);
static Slice mend(Slice text, char *out);

static TapeResult parse_text(Arena *arena, Slice text, Json *out)
{
    Tape tape;
    TapeResult result = tape_parse(text.ptr, text.len, &tape);
    if (result == TAPE_OK && !build_from_tape(arena, &tape, text.len, out))
        result = TAPE_REFUSED;
    tape_release();
    return result;
}

static TapeResult parse_mended(Arena *arena, Slice text, Json *out)
{
    size_t longer = 2 * (text.len / LONG_INTEGER_DIGITS);
    AUTO(mem_free) void *copy = mem_alloc(text.len + longer);
    return parse_text(arena, mend(text, copy), out);
}

static Status refuse(Slice text, size_t skipped, const TextFault *fault, Error *err)
{
    char found[16] = "the end";
    if (fault->at < text.len) {
        uint8_t byte = (uint8_t)text.ptr[fault->at];
        if (byte > 0x20 && byte < 0x7f)
            (void)snprintf(found, sizeof(found), "'%c'", byte);
        else
            (void)snprintf(found, sizeof(found), "byte 0x%02x", byte);
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "invalid JSON at byte %zu: expected %s, found %s", skipped + fault->at,
                     fault->expected, found);
}

Status json_parse(Arena *arena, Slice text, Json *out, Error *err)
{
    if (text.len > JSON_TEXT_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "JSON text of %zu bytes is longer than %zu", text.len,
                         JSON_TEXT_BYTES_MAX);
    Slice mark = SLICE("\xef\xbb\xbf");
    size_t skipped = slice_starts_with(text, mark) ? mark.len : 0;
    text = slice_from(text, skipped);

    TapeResult result = parse_text(arena, text, out);
    if (UNLIKELY(result == TAPE_REFUSED)) {
        TextFault fault;
        if (text_find_fault(text, &fault))
            return refuse(text, skipped, &fault, err);
        result = parse_mended(arena, text, out);
    }
    switch (result) {
    case TAPE_OK:
        return STATUS_OK;
    case TAPE_NO_MEMORY:
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "no memory to parse %zu bytes of JSON",
                         text.len);
    case TAPE_REFUSED:
        break;
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "invalid JSON");
}

static Slice tape_string(const Tape *tape, uint64_t word)
{
    const uint8_t *at = tape->strings + (word & (UINT64_MAX >> 8));
    return slice_make(at + sizeof(uint32_t), load_u32(at));
}

static void add_integer(JsonBuilder *b, int64_t value)
{
    if (LIKELY(value >= -DOUBLE_EXACT_MAX && value <= DOUBLE_EXACT_MAX))
        json_add_i64(b, value);
    else
        json_add_number(b, (double)value);
}

static void add_double_bits(JsonBuilder *b, uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    json_add_number(b, value);
}

/* A string is a name where an object is open that does not wait for a value. */
static void add_string_or_key(JsonBuilder *b, Slice text)
{
    if (b->depth > 0 && b->open[b->depth - 1].is_object && !b->named)
        json_key(b, text);
    else
        json_add_string(b, text);
}

/* False if the document is nested too deeply. */
static bool build_from_tape(Arena *arena, const Tape *tape, size_t text_size, Json *out)
{
    JsonBuilder b;
    /* The binary form is a little smaller than most texts; the rest is for the header that the
     * outermost object has while it is open, and for short texts. */
    json_build_sized(&b, arena, text_size + 64);
    for (const uint64_t *word = tape->words + 1; !b.failed; word++) {
        switch ((char)(*word >> 56)) {
        case '"':
            add_string_or_key(&b, tape_string(tape, *word));
            break;
        case 'l':
            add_integer(&b, (int64_t) * ++word);
            break;
        case 'u':
            json_add_number(&b, (double)*++word);
            break;
        case 'd':
            add_double_bits(&b, *++word);
            break;
        case 't':
            json_add_bool(&b, true);
            break;
        case 'f':
            json_add_bool(&b, false);
            break;
        case 'n':
            json_add_null(&b);
            break;
        case '{':
            json_begin_object(&b);
            break;
        case '[':
            json_begin_array(&b);
            break;
        case '}':
        case ']':
            json_end(&b);
            break;
        default:
            *out = json_built(&b);
            return true;
        }
    }
    return false;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The length of the number at 'text[at]'; '*is_long' if it is an integer that simdjson may refuse.
 */
static size_t number_len(Slice text, size_t at, bool *is_long)
{
    size_t start = at;
    at += text.ptr[at] == '-';
    size_t digits = at;
    while (at < text.len && is_digit(text.ptr[at]))
        at++;
    *is_long = at - digits >= LONG_INTEGER_DIGITS;
    while (at < text.len && (is_digit(text.ptr[at]) || memchr(".eE+-", text.ptr[at], 5) != NULL)) {
        *is_long = false;
        at++;
    }
    return at - start;
}

/* Copies a text without fault into 'out'. A long integer gets an exponent, which makes it a double
 * to simdjson. */
static Slice mend(Slice text, char *out)
{
    char *start = out;
    bool in_string = false;
    for (size_t at = 0; at < text.len;) {
        char c = text.ptr[at];
        if (in_string && c == '\\') {
            memcpy(out, text.ptr + at, 2);
            at += 2;
            out += 2;
        } else if (!in_string && (c == '-' || is_digit(c))) {
            bool is_long;
            size_t len = number_len(text, at, &is_long);
            memcpy(out, text.ptr + at, len);
            at += len;
            out += len;
            if (is_long) {
                memcpy(out, "e0", 2);
                out += 2;
            }
        } else {
            in_string ^= c == '"';
            *out++ = c;
            at++;
        }
    }
    return slice_make(start, (size_t)(out - start));
}
