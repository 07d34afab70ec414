/* page_position.c - positions as bytes: see page_request_int.h. */
#include "query/eval/gathered_rows_int.h"
#include "query/page/page_request_int.h"
#include "query/sql/sql_print_int.h"

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
    Slice rest = slice_from(*text, LENGTH_BYTES);
    if (len > rest.len || len > EPK_BYTES_MAX)
        return false;
    *out = slice_first(rest, len);
    *text = slice_from(rest, len);
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

Slice page_position_whole(Arena *arena, const QueryPageOptions *options)
{
    size_t count = options->target_count;
    Slice from = count == 0 ? SLICE_EMPTY : options->targets[0].epk_from;
    Slice to = count == 0 ? SLICE_EMPTY : options->targets[count - 1].epk_to;
    char *place = arena_alloc(arena, sizeof(uint64_t));
    uint64_t seed = hash_keyed((HashKey){0, 0}, from);
    be64_put(place, hash_keyed((HashKey){seed, to.len}, to));
    return slice_make(place, sizeof(uint64_t));
}

/* Whether only the text tells the order of documents or results: along a range of the filter, of
 * groups, of what is counted. */
static bool needs_text(const Select *select, Slice position)
{
    if (position.len < 2)
        return true;
    switch ((PageMode)position.ptr[1]) {
    case PAGE_NUMBER:
    case PAGE_EPK:
    case PAGE_ORDER:
        return false;
    case PAGE_GATHERED: /* sorted rows have the order of ORDER BY */
        return select->is_grouped || select->distinct;
    case PAGE_ANY:
    case PAGE_RANGE:
    case PAGE_WHOLE:
        break;
    }
    return true;
}

Slice query_position_scope(const Query *query, Json parameters, Slice position, Arena *arena)
{
    const Select *select = query->select;
    AUTO(buf_done) Buf scope;
    buf_init(&scope, 8 * QUERY_TEXT_BYTES_MAX);
    buf_byte(&scope, select->distinct ? 'D' : 'A');
    if (needs_text(select, position)) {
        buf_format(&scope, "%zu;", query->text.len);
        buf_slice(&scope, query->text);
        if (parameters.at != NULL)
            json_print(parameters, &scope);
    }
    for (const Order *order = select->order_by; order != NULL; order = order->next) {
        print_node(order->value, &scope);
        buf_slice(&scope, order->descending ? SLICE(" DESC,") : SLICE(" ASC,"));
    }
    return arena_copy(arena, buf_view(&scope));
}
