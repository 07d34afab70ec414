/* page_position.c - positions as bytes: see page_int.h. */
#include "query/page_int.h"

enum { FIXED_BYTES = 2 + 3 * 8, LENGTH_BYTES = 2 };

static void put_slice(Buf *out, Slice bytes)
{
    buf_byte(out, (uint8_t)(bytes.len >> 8));
    buf_byte(out, (uint8_t)bytes.len);
    buf_slice(out, bytes);
}

Slice page_position_print(Arena *arena, const PagePosition *position)
{
    char fixed[FIXED_BYTES] = {'1', (char)position->mode};
    be64_put(fixed + 2, position->rows);
    be64_put(fixed + 10, position->skip);
    be64_put(fixed + 18, position->take);
    AUTO(buf_done) Buf text;
    buf_init(&text, FIXED_BYTES + 2 * (LENGTH_BYTES + EPK_BYTES_MAX) + position->place.len);
    buf_bytes(&text, fixed, sizeof(fixed));
    put_slice(&text, position->epk_from);
    put_slice(&text, position->epk_to);
    buf_slice(&text, position->place);
    return arena_copy(arena, buf_view(&text));
}

static bool read_epk(Slice *text, Slice *out)
{
    if (text->len < LENGTH_BYTES)
        return false;
    size_t len = (size_t)(uint8_t)text->ptr[0] << 8 | (uint8_t)text->ptr[1];
    Slice behind = slice_from(*text, LENGTH_BYTES);
    if (len > behind.len || len > EPK_BYTES_MAX)
        return false;
    *out = slice_first(behind, len);
    *text = slice_from(behind, len);
    return true;
}

bool page_position_read(Slice text, PagePosition *out)
{
    static const char modes[] = {PAGE_NUMBER, PAGE_EPK, PAGE_RANGE, PAGE_ORDER, PAGE_WHOLE};
    if (text.len < FIXED_BYTES || text.ptr[0] != '1' ||
        memchr(modes, text.ptr[1], sizeof(modes)) == NULL)
        return false;
    *out = (PagePosition){
        .mode = (PageMode)text.ptr[1],
        .rows = be64_get(text.ptr + 2),
        .skip = be64_get(text.ptr + 10),
        .take = be64_get(text.ptr + 18),
    };
    Slice rest = slice_from(text, FIXED_BYTES);
    if (!read_epk(&rest, &out->epk_from) || !read_epk(&rest, &out->epk_to))
        return false;
    out->place = rest;
    return true;
}
