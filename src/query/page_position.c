/* page_position.c - positions as bytes: see page_int.h. */
#include "query/page_int.h"
#include "query/rows_int.h"

enum {
    FIXED_BYTES = 2 + 3 * 8,
    LENGTH_BYTES = 2,
    /* Where partitions meet: the EPK of a key with one part, at most. */
    BOUND_BYTES_MAX = EPK_NUMBER_BYTES_MAX + EPK_COMPONENT_BYTES_MAX,
    HEAD_BYTES_MAX = FIXED_BYTES + 2 * (LENGTH_BYTES + BOUND_BYTES_MAX),
};
static_assert(HEAD_BYTES_MAX + SCAN_POSITION_BYTES_MAX <= QUERY_POSITION_BYTES_MAX, "by EPK");
static_assert(HEAD_BYTES_MAX + ORDER_HEAD_BYTES + ORDER_TERM_BYTES <= QUERY_POSITION_BYTES_MAX,
              "along a range");
static_assert(FIXED_BYTES + 2 * LENGTH_BYTES + ORDER_HEAD_BYTES + ORDER_TERM_BYTES +
                      ORDER_REST_BYTES <=
                  QUERY_POSITION_BYTES_MAX,
              "in the order of ORDER BY, which needs no bounds");
static_assert(FIXED_BYTES + 2 * LENGTH_BYTES + ROW_PLACE_BYTES_MAX <= QUERY_POSITION_BYTES_MAX,
              "of a row, which needs no bounds either");

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
    static const char modes[] = {PAGE_NUMBER, PAGE_EPK,      PAGE_RANGE,
                                 PAGE_ORDER,  PAGE_GATHERED, PAGE_WHOLE};
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
