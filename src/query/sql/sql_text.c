/* sql_text.c - see sql_text_int.h. */
#include "query/sql/sql_text_int.h"

#include <wctype.h>

typedef struct Range {
    uint32_t first, last;
} Range;

/* Beyond ASCII everything is taken for a letter but these: punctuation and symbols, so that a
 * typographic quote or a stray arrow is called an invalid character and not an unknown name. */
static const Range NOT_LETTERS[] = {
    {0x80, 0xA9},     {0xAB, 0xB4},     {0xB6, 0xB9},     {0xBB, 0xBF},       {0xD7, 0xD7},
    {0xF7, 0xF7},     {0x2000, 0x206F}, {0x20A0, 0x20CF}, {0x2190, 0x2BFF},   {0x2E00, 0x2E7F},
    {0x3000, 0x3004}, {0x3008, 0x3020}, {0xE000, 0xF8FF}, {0xFE30, 0xFE6F},   {0xFEFF, 0xFEFF},
    {0xFF00, 0xFF0F}, {0xFF1A, 0xFF20}, {0xFFF0, 0xFFFF}, {0x1F000, 0x1FAFF},
};

static size_t sequence_len(uint8_t first);

uint32_t text_next(Slice text, size_t *at)
{
    const uint8_t *p = (const uint8_t *)text.ptr + *at;
    size_t len = sequence_len(p[0]);
    bool whole = len > 0 && len <= text.len - *at;
    for (size_t i = 1; whole && i < len; i++)
        whole = (p[i] & 0xC0) == 0x80;
    if (!whole) {
        (*at)++;
        return TEXT_INVALID;
    }
    *at += len;
    switch (len) {
    case 1:
        return p[0];
    case 2:
        return (uint32_t)(p[0] & 0x1F) << 6 | (p[1] & 0x3F);
    case 3:
        return (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
    default:
        return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 |
               (uint32_t)(p[2] & 0x3F) << 6 | (p[3] & 0x3F);
    }
}

size_t text_put(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xC0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xE0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3F));
        out[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    out[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

size_t text_units(Slice text)
{
    size_t units = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = (uint8_t)text.ptr[i];
        units += (byte & 0xC0) != 0x80; /* a character is counted at its first byte */
        units += byte >= 0xF0;          /* a character beyond 16 bits is two units */
    }
    return units;
}

/* Where unit 'unit' of the text is: its byte, and whether it is the second half of a pair. */
static size_t find_unit(Slice text, size_t unit, bool *inside)
{
    size_t at = 0;
    *inside = false;
    while (unit > 0 && at < text.len) {
        size_t before = at;
        uint32_t c = text_next(text, &at);
        size_t width = c != TEXT_INVALID && c > 0xFFFF ? 2 : 1;
        if (width > unit) {
            *inside = true;
            return before;
        }
        unit -= width;
    }
    return at;
}

Slice text_sub(Arena *arena, Slice text, size_t start, size_t count)
{
    bool cut_start, cut_end;
    size_t from = find_unit(text, start, &cut_start);
    size_t end = count > SIZE_MAX - start ? SIZE_MAX : start + count;
    size_t to = find_unit(text, end, &cut_end);
    if (!cut_start && !cut_end)
        return slice_make(text.ptr + from, to - from);
    if (count == 0)
        return SLICE("");

    /* A half of a pair at either end, which cannot be said in UTF-8. When both ends are inside one
     * pair it is the same half. */
    char *out = arena_alloc(arena, (to - from) + 2 * TEXT_CHAR_BYTES);
    size_t len = 0;
    if (cut_start) {
        (void)text_next(text, &from);
        len += text_put(out, TEXT_REPLACEMENT);
    }
    if (to > from) {
        memcpy(out + len, text.ptr + from, to - from);
        len += to - from;
    }
    if (cut_end && to >= from)
        len += text_put(out + len, TEXT_REPLACEMENT);
    return slice_make(out, len);
}

bool text_is_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

bool text_is_letter(uint32_t c)
{
    if (c < 0x80)
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (c == TEXT_INVALID)
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(NOT_LETTERS); i++) {
        if (c >= NOT_LETTERS[i].first && c <= NOT_LETTERS[i].last)
            return false;
    }
    return c != 0x1680;
}

static uint32_t map_case(locale_t locale, TextCase to, uint32_t c)
{
    if (c < 0x80) {
        if (to == TEXT_UPPER)
            return c >= 'a' && c <= 'z' ? c - 32 : c;
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    }
    if (locale == (locale_t)0)
        return c;
    return to == TEXT_UPPER ? (uint32_t)towupper_l((wint_t)c, locale)
                            : (uint32_t)towlower_l((wint_t)c, locale);
}

Slice text_case(Arena *arena, locale_t locale, TextCase to, Slice text)
{
    /* A mapping may make two bytes three, never one byte two. */
    char *out = arena_alloc(arena, text.len * 2 + TEXT_CHAR_BYTES);
    size_t len = 0;
    size_t at = 0;
    while (at < text.len) {
        uint32_t c = text_next(text, &at);
        len += text_put(out + len, c == TEXT_INVALID ? '?' : map_case(locale, to, c));
    }
    return slice_make(out, len);
}

size_t text_find(Slice text, Slice needle, size_t from)
{
    if (from > text.len)
        return SIZE_MAX;
    if (needle.len == 0)
        return from;
    if (needle.len > text.len - from)
        return SIZE_MAX;
    const char *found = memmem(text.ptr + from, text.len - from, needle.ptr, needle.len);
    return found == NULL ? SIZE_MAX : (size_t)(found - text.ptr);
}

static size_t sequence_len(uint8_t first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xC2)
        return 0;
    if (first < 0xE0)
        return 2;
    if (first < 0xF0)
        return 3;
    return first < 0xF5 ? 4 : 0;
}
