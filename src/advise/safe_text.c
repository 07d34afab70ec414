/* safe_text.c - see safe_text.h. */
#include "advise/safe_text.h"

#include "json/json.h"

#include <stdio.h>

enum { DOTS = 3, DRAWN_MAX = 16 };

/* The bytes of the first code point; 1 if they are no UTF-8, and '*point' is then the byte. */
static size_t next_point(Slice text, uint32_t *point)
{
    uint8_t first = (uint8_t)text.ptr[0];
    size_t len = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    *point = first;
    if (len == 1 || len > text.len || !json_utf8_valid(slice_first(text, len)))
        return 1;
    *point = first & (0x7Fu >> len);
    for (size_t i = 1; i < len; i++)
        *point = *point << 6 | ((uint8_t)text.ptr[i] & 0x3Fu);
    return len;
}

/* Code points that are drawn as they are. Beyond ASCII these are letters and signs; not controls,
 * marks of direction, spaces of other kinds, private or unassigned areas. */
static bool is_plain(uint32_t point, size_t bytes, SafeTextFor target)
{
    if (bytes == 1)
        return point >= 0x20 && point < 0x7F;
    if (target == SAFE_TEXT_ASCII)
        return false;
    return (point > 0xA0 && point != 0xAD && point < 0x300) || (point > 0x36F && point < 0x600) ||
           (point >= 0x900 && point < 0x1100) || (point >= 0x1E00 && point < 0x2000) ||
           (point > 0x2070 && point < 0x2100) || (point >= 0x3041 && point < 0xD7A4);
}

static size_t draw_point(uint32_t point, Slice bytes, SafeTextFor target, char out[DRAWN_MAX])
{
    if (is_plain(point, bytes.len, target)) {
        memcpy(out, bytes.ptr, bytes.len);
        return bytes.len;
    }
    int len = point > 0xFFFF
                  ? snprintf(out, DRAWN_MAX, "\\u%04x\\u%04x", 0xD800 + ((point - 0x10000) >> 10),
                             0xDC00 + ((point - 0x10000) & 0x3FF))
                  : snprintf(out, DRAWN_MAX, "\\u%04x", point);
    return (size_t)len;
}

static void put_drawn(const char *drawn, size_t len, SafeTextFor target, Buf *out)
{
    for (size_t i = 0; i < len; i++) {
        char c = drawn[i];
        bool is_html = target == SAFE_TEXT_HTML;
        if (is_html && (c == '<' || c == '>' || c == '&' || c == '"' || c == '\''))
            buf_format(out, "&#%d;", c);
        else
            buf_byte(out, (uint8_t)c);
    }
}

/* Draws as much as fits; false if that is not all. */
static bool draw(Slice text, size_t width, SafeTextFor target, Buf *out, size_t *used)
{
    *used = 0;
    while (text.len > 0) {
        uint32_t point = 0;
        Slice bytes = slice_first(text, next_point(text, &point));
        char drawn[DRAWN_MAX];
        size_t len = draw_point(point, bytes, target, drawn);
        size_t columns = is_plain(point, bytes.len, target) ? 1 : len;
        if (*used + columns > width)
            return false;
        if (out != NULL)
            put_drawn(drawn, len, target, out);
        *used += columns;
        text = slice_from(text, bytes.len);
    }
    return true;
}

size_t safe_text(Slice text, size_t width, SafeTextFor target, Buf *out)
{
    size_t used = 0;
    if (draw(text, width, target, NULL, &used)) {
        (void)draw(text, width, target, out, &used); /* all of it */
        return used;
    }
    (void)draw(text, width < DOTS ? 0 : width - DOTS, target, out, &used); /* a part of it */
    size_t dots = width < DOTS ? width : DOTS;
    buf_bytes(out, "...", dots);
    return used + dots;
}

Slice safe_text_cut(Slice text, size_t bytes_max)
{
    size_t cut = bytes_max;
    if (text.len <= bytes_max)
        return text;
    while (cut > 0 && ((uint8_t)text.ptr[cut] & 0xC0) == 0x80)
        cut--;
    return slice_first(text, cut);
}
