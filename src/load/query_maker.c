/* query_maker.c - see query_maker.h. */
#include "load/query_maker.h"

#include "load/order_text.h"

#include <inttypes.h>

enum { DRAW_BITS = 30, DRAW_SHIFT = 16, DRAWS_PER_TURN = 16 };

/* A range has so much of all values of 'total', and a scan asks for products from here on: with
 * uniform factors, these are the largest 0.015% to 0.045%, and a note of that length is among the
 * longest 10%. */
enum {
    RANGE_WIDTH = ORDER_TOTAL_MAX / 100,
    SCAN_PRODUCT_MIN = 97000,
    SCAN_PRODUCT_RANGE = 1300,
    SCAN_NOTE_LENGTH = ORDER_NOTE_MAX - (ORDER_NOTE_MAX - ORDER_NOTE_MIN) / 10,
};

static const struct {
    const char *name;
    const char *sql;
} KINDS[] = {
#define X(name, text, what, sql) [QUERY_##name] = {(text), (sql)},
    QUERY_MAKER_QUERIES(X)
#undef X
};

bool query_maker_find(Slice name, QueryKind *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(KINDS); i++) {
        if (slice_equal(name, slice_from_cstr(KINDS[i].name))) {
            *out = (QueryKind)i;
            return true;
        }
    }
    return false;
}

static void put_escaped(Buf *buf, Slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < ' ')
            buf_format(buf, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            buf_format(buf, "\\%c", c);
        else
            buf_byte(buf, c);
    }
}

void query_maker_init(QueryMaker *maker, const QueryOptions *options)
{
    ASSERT(options->count > 0);
    ASSERT(options->sql.len <= QUERY_SQL_BYTES_MAX);
    *maker = (QueryMaker){.options = *options};
    buf_init(&maker->sql, (size_t)6 * QUERY_SQL_BYTES_MAX);
    buf_init(&maker->headers, (size_t)128 << 10); /* a continuation may be long */
    buf_init(&maker->body, (size_t)6 * QUERY_SQL_BYTES_MAX + 4096);
    put_escaped(&maker->sql,
                options->sql.len > 0 ? options->sql : slice_from_cstr(KINDS[options->kind].sql));
}

void query_maker_done(QueryMaker *maker)
{
    buf_done(&maker->sql);
    buf_done(&maker->headers);
    buf_done(&maker->body);
}

uint64_t query_maker_draw(uint64_t seed, uint64_t turn, uint32_t which, uint64_t below)
{
    ASSERT(below <= (uint64_t)1 << 32);
    ASSERT(which < DRAWS_PER_TURN);
    uint64_t value = turn * DRAWS_PER_TURN + which;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ seed;
    for (int i = 0; i < 8; i++, value >>= 8)
        hash = (hash ^ (value & 0xff)) * UINT64_C(0x100000001b3);
    uint64_t drawn = hash >> DRAW_SHIFT & (((uint64_t)1 << DRAW_BITS) - 1);
    return drawn * below >> DRAW_BITS;
}

static void put(Buf *buf, const char *text)
{
    buf_slice(buf, slice_from_cstr(text));
}

static void print_parameters(const QueryOptions *o, uint64_t turn, Buf *body)
{
    uint64_t seed = o->seed;
    switch (o->kind) {
    case QUERY_UNIQUE:
        buf_format(body, "{\"name\":\"@a\",\"value\":\"ORD-%" PRIu64 "\"}",
                   order_text_name(query_maker_draw(seed, turn, 0, o->count)));
        break;
    case QUERY_KEY:
        buf_format(body, "{\"name\":\"@a\",\"value\":\"status-%" PRIu64 "\"}",
                   query_maker_draw(seed, turn, 1, ORDER_STATUS_COUNT));
        break;
    case QUERY_RANGE: {
        uint64_t low = query_maker_draw(seed, turn, 0, ORDER_TOTAL_MAX - RANGE_WIDTH);
        buf_format(
            body, "{\"name\":\"@a\",\"value\":%" PRIu64 "},{\"name\":\"@b\",\"value\":%" PRIu64 "}",
            low, low + RANGE_WIDTH);
        break;
    }
    case QUERY_COUNT:
    case QUERY_SUM:
        buf_format(body, "{\"name\":\"@a\",\"value\":\"category-%" PRIu64 "\"}",
                   query_maker_draw(seed, turn, 0, ORDER_CATEGORY_COUNT));
        break;
    case QUERY_TAG:
        buf_format(body, "{\"name\":\"@a\",\"value\":\"tag-%" PRIu64 "\"}",
                   ORDER_TAG_RARE +
                       query_maker_draw(seed, turn, 0, ORDER_TAG_COUNT - ORDER_TAG_RARE));
        break;
    case QUERY_SCAN:
        buf_format(body, "{\"name\":\"@a\",\"value\":%" PRIu64 "},{\"name\":\"@b\",\"value\":%d}",
                   SCAN_PRODUCT_MIN + query_maker_draw(seed, turn, 0, SCAN_PRODUCT_RANGE),
                   SCAN_NOTE_LENGTH);
        break;
    case QUERY_GROUP:
    case QUERY_FUNCTION:
    case QUERY_WHOLE:
    case QUERY_ALL:
    case QUERY_KIND_COUNT:
        break;
    }
}

ItemRequest query_maker_print(QueryMaker *maker, uint64_t turn, Slice continuation)
{
    const QueryOptions *o = &maker->options;
    buf_reset(&maker->headers);
    buf_reset(&maker->body);
    buf_format(&maker->headers,
               "x-ms-documentdb-isquery: True\r\nx-ms-max-item-count: %" PRIu32 "\r\n",
               o->page_size == 0 ? QUERY_PAGE_SIZE : o->page_size);
    if (o->kind == QUERY_KEY && o->sql.len == 0)
        buf_format(
            &maker->headers, "x-ms-documentdb-partitionkey: [\"c%" PRIu64 "\"]\r\n",
            order_text_name(query_maker_draw(o->seed, turn, 0, o->count) / LOAD_ITEMS_PER_KEY));
    if (continuation.len > 0) {
        put(&maker->headers, "x-ms-continuation: ");
        buf_slice(&maker->headers, continuation);
        put(&maker->headers, "\r\n");
    }
    put(&maker->body, "{\"query\":\"");
    buf_slice(&maker->body, buf_view(&maker->sql));
    put(&maker->body, "\",\"parameters\":[");
    if (o->sql.len == 0)
        print_parameters(o, turn, &maker->body);
    put(&maker->body, "]}");
    return (ItemRequest){
        .method = SLICE("POST"),
        .headers = buf_view(&maker->headers),
        .body = buf_view(&maker->body),
        .is_query = true,
    };
}
