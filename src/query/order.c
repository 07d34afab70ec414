/* order.c - where documents stand in an order: see source_int.h. */
#include "query/source_int.h"

enum { NUMBER_BYTES = 8, LENGTH_BYTES = 2 };

static Slice text_of(const Value *value)
{
    return slice_first(value->string, ORDER_REST_BYTES);
}

static void invert(char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)~bytes[i];
}

/* One value behind the others; '*exact' becomes false if it is a string that was cut. */
static void put_part(Planner *planner, const OrderBy *order, size_t i, const Value *value, Buf *out,
                     bool *exact)
{
    size_t before = out->len;
    bool ignored = true; /* equal doubles are equal in ORDER BY, and there is no order of arrays */
    bool *flag = value->type == JSON_STRING ? exact : &ignored;
    buf_slice(out, plan_term(planner, value, flag));
    if (order->inverted[i])
        invert(out->ptr + before, out->len - before);
}

/* More of a string's text than its term has, ended by a zero byte. */
static void put_text(const OrderBy *order, size_t i, const Value *value, Buf *rest)
{
    size_t before = rest->len;
    buf_slice(rest, text_of(value));
    buf_byte(rest, '\0');
    if (order->inverted[i])
        invert(rest->ptr + before, rest->len - before);
}

Status order_key(Planner *planner, const OrderBy *order, Arena *arena, uint64_t number,
                 OrderKey *out)
{
    AUTO(buf_done) Buf term;
    AUTO(buf_done) Buf rest;
    buf_init(&term, TERM_VALUE_BYTES_MAX);
    buf_init(&rest, ORDER_REST_BYTES + 1 + TERM_VALUE_BYTES_MAX);
    bool exact = true;
    for (size_t i = 0; i < order->count; i++) {
        Value value;
        bool ignored = true;
        TRY(eval(planner->run, order->values[i], &value));
        if (!exact) { /* behind a string that was cut: what it lacks comes first */
            put_part(planner, order, i, &value, &rest, &ignored);
            continue;
        }
        put_part(planner, order, i, &value, &term, &exact);
        if (!exact)
            put_text(order, i, &value, &rest);
    }
    *out = (OrderKey){
        .term = arena_copy(arena, buf_view(&term)),
        .rest = arena_copy(arena, buf_view(&rest)),
        .number = number,
    };
    return STATUS_OK;
}

int order_compare(const OrderKey *a, const OrderKey *b, bool is_down)
{
    int compared = slice_compare(a->term, b->term);
    if (compared == 0)
        compared = slice_compare(a->rest, b->rest);
    if (compared == 0)
        compared = (a->number > b->number) - (a->number < b->number);
    return is_down ? -compared : compared;
}

Slice order_position(Arena *arena, const OrderKey *key)
{
    size_t size = NUMBER_BYTES + LENGTH_BYTES + key->term.len + key->rest.len;
    char *bytes = arena_alloc(arena, size);
    be64_put(bytes, key->number);
    bytes[NUMBER_BYTES] = (char)(key->term.len >> 8);
    bytes[NUMBER_BYTES + 1] = (char)key->term.len;
    char *at = bytes + NUMBER_BYTES + LENGTH_BYTES;
    if (key->term.len > 0)
        memcpy(at, key->term.ptr, key->term.len);
    if (key->rest.len > 0)
        memcpy(at + key->term.len, key->rest.ptr, key->rest.len);
    return slice_make(bytes, size);
}

bool order_position_read(Slice position, OrderKey *out)
{
    if (position.len < NUMBER_BYTES + LENGTH_BYTES)
        return false;
    const uint8_t *bytes = (const uint8_t *)position.ptr;
    size_t len = (size_t)bytes[NUMBER_BYTES] << 8 | bytes[NUMBER_BYTES + 1];
    Slice behind = slice_from(position, NUMBER_BYTES + LENGTH_BYTES);
    if (len > behind.len || len > TERM_VALUE_BYTES_MAX)
        return false;
    *out = (OrderKey){
        .number = be64_get(bytes),
        .term = slice_first(behind, len),
        .rest = slice_from(behind, len),
    };
    return true;
}
