/* order_key.c - where documents stand in an order: see document_source_int.h. */
#include "query/page/document_source_int.h"

#include "query/eval/value_terms_int.h"

enum {
    NUMBER_BYTES = 8,
    LENGTH_BYTES = 2,
};
static_assert(NUMBER_BYTES + LENGTH_BYTES == ORDER_HEAD_BYTES, "what stands before the term");

static void invert(char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)~bytes[i];
}

/* One value after the others; '*exact' becomes false if it is a string that was cut. */
static void put_part(const OrderBy *order, size_t i, const Value *value, Buf *out, bool *exact)
{
    size_t before = out->len;
    bool ignored = true; /* equal doubles are equal in ORDER BY, and there is no order of arrays */
    value_put_term(out, value, value->type == JSON_STRING ? exact : &ignored);
    if (order->inverted[i])
        invert(out->ptr + before, out->len - before);
}

/* What the term lacks of a string that was cut, or, after it, the next value. */
static void put_rest(const OrderBy *order, size_t i, const Value *value, bool is_cut, Buf *out)
{
    size_t before = out->len;
    bool ignored = true;
    if (is_cut) {
        value_put_text(out, slice_from(value->string, TERM_STRING_BYTES), ORDER_REST_BYTES);
    } else if (value->type == JSON_STRING) {
        term_put_tag(out, TERM_STRING);
        value_put_text(out, value->string, ORDER_REST_BYTES);
    } else {
        put_part(order, i, value, out, &ignored);
        return;
    }
    if (order->inverted[i])
        invert(out->ptr + before, out->len - before);
}

/* Joins what was cut off the term and the rest, up to ORDER_REST_BYTES. */
static Slice join_rest(Arena *arena, Slice beyond, Slice rest)
{
    Slice first = slice_first(beyond, ORDER_REST_BYTES);
    Slice second = slice_first(rest, ORDER_REST_BYTES - first.len);
    if (first.len == 0)
        return arena_copy(arena, second);
    char *bytes = arena_alloc(arena, first.len + second.len);
    memcpy(bytes, first.ptr, first.len);
    if (second.len > 0)
        memcpy(bytes + first.len, second.ptr, second.len);
    return slice_make(bytes, first.len + second.len);
}

OrderKey order_key_of(const OrderBy *order, const Value *values, Arena *arena, uint64_t number)
{
    AUTO(buf_done) Buf term;
    AUTO(buf_done) Buf rest;
    buf_init(&term, TERM_VALUE_BYTES_MAX);
    buf_init(&rest, ORDER_REST_BYTES);
    bool is_whole = true; /* up to here the term says all */
    for (size_t i = 0; i < order->count; i++) {
        bool was_whole = is_whole;
        if (was_whole)
            put_part(order, i, &values[i], &term, &is_whole);
        if (!is_whole)
            put_rest(order, i, &values[i], was_whole, &rest);
    }
    Slice whole = buf_view(&term);
    return (OrderKey){
        .term = arena_copy(arena, slice_first(whole, ORDER_TERM_BYTES)),
        .rest = join_rest(arena, slice_from(whole, ORDER_TERM_BYTES), buf_view(&rest)),
        .number = number,
    };
}

Status order_key(Planner *planner, const OrderBy *order, Arena *arena, uint64_t number,
                 OrderKey *out)
{
    Value values[ORDER_PARTS_MAX];
    for (size_t i = 0; i < order->count; i++)
        TRY(eval(planner->run, order->values[i], &values[i]));
    *out = order_key_of(order, values, arena, number);
    return STATUS_OK;
}

int order_compare(const OrderBy *order, const OrderKey *a, const OrderKey *b)
{
    int compared = slice_compare(a->term, b->term);
    if (compared == 0 && (a->rest.len == 0) != (b->rest.len == 0))
        return a->rest.len == 0 ? -1 : 1; /* a place in front of the term */
    if (compared == 0)
        compared = slice_compare(a->rest, b->rest);
    if (compared != 0)
        return compared;
    compared = (a->number > b->number) - (a->number < b->number);
    return order->numbers_down ? -compared : compared;
}

OrderKey order_keep(Arena *arena, const OrderKey *key)
{
    return (OrderKey){
        .term = arena_copy(arena, key->term),
        .rest = arena_copy(arena, key->rest),
        .number = key->number,
    };
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
    Slice after = slice_from(position, NUMBER_BYTES + LENGTH_BYTES);
    if (len > after.len || len > ORDER_TERM_BYTES || after.len - len > ORDER_REST_BYTES)
        return false;
    *out = (OrderKey){
        .number = be64_get(bytes),
        .term = slice_first(after, len),
        .rest = slice_from(after, len),
    };
    return true;
}
