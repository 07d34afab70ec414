/* batch_testing_int.h - the client's side of a batch: encoders of requests and decoders of answers.
 * For the tests and fuzz targets of the two forms; not part of the library. */
#pragma once

#include "api/items/batch_binary_int.h"
#include "api/items/batch_form_int.h"
#include "base/crc32.h"
#include "partition/item.h"

static const char *const TESTING_INDEXING[] = {"Default", "Include", "Exclude"};

static inline void testing_json_member(Buf *out, const char *name, Slice text)
{
    if (text.len == 0)
        return;
    buf_format(out, ",\"%s\":", name);
    json_print_string(text, out);
}

static inline void testing_encode_json(const BatchOperation *operations, size_t count, Buf *out)
{
    buf_byte(out, '[');
    for (size_t i = 0; i < count; i++) {
        const BatchOperation *o = &operations[i];
        buf_format(out, "%s{\"operationType\":\"%.*s\"", i > 0 ? "," : "",
                   SLICE_ARG(BATCH_KINDS[o->op].name));
        testing_json_member(out, "id", o->id);
        if (o->has_partition_key) {
            buf_slice(out, SLICE(",\"partitionKey\":"));
            json_print_string(o->partition_key, out);
        }
        testing_json_member(out, "ifMatch", o->if_match);
        testing_json_member(out, "ifNoneMatch", o->if_none_match);
        if (o->indexing != BATCH_INDEXING_DEFAULT)
            testing_json_member(out, "indexingDirective",
                                slice_from_cstr(TESTING_INDEXING[o->indexing]));
        if (o->minimal)
            buf_slice(out, SLICE(",\"minimalReturnPreference\":true"));
        if (!json_is(o->body, JSON_UNDEFINED)) {
            buf_slice(out, SLICE(",\"resourceBody\":"));
            json_print(o->body, out);
        }
        buf_byte(out, '}');
    }
    buf_byte(out, ']');
}

static inline void testing_u32(Buf *out, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        buf_byte(out, (uint8_t)(value >> 8 * i));
}

static inline void testing_sized(Buf *out, Slice bytes)
{
    size_t size = bytes.len;
    do {
        buf_byte(out, (uint8_t)((size & 0x7f) | (size > 0x7f ? 0x80 : 0)));
        size >>= 7;
    } while (size > 0);
    buf_slice(out, bytes);
}

static inline void testing_sparse_text(Buf *out, uint8_t token, Slice text)
{
    if (text.len == 0)
        return;
    buf_byte(out, TYPE_UTF8);
    buf_byte(out, token);
    testing_sized(out, text);
}

/* The row of one operation, without the header of its record. */
static inline void testing_encode_row(const BatchOperation *o, Arena *arena, Buf *out)
{
    bool has_body = !json_is(o->body, JSON_UNDEFINED);
    buf_byte(out, 0x81);
    testing_u32(out, 2145473648);
    buf_byte(out, (uint8_t)(3 | o->has_partition_key << 2 | (o->id.len > 0) << 4 | has_body << 6));
    testing_u32(out, BATCH_KINDS[o->op].code);
    testing_u32(out, 2);
    if (o->has_partition_key)
        testing_sized(out, o->partition_key);
    if (o->id.len > 0)
        testing_sized(out, o->id);
    if (has_body)
        testing_sized(out, json_print_arena(arena, o->body));
    /* The order in which .NET writes them, which is not the schema's. */
    if (o->indexing != BATCH_INDEXING_DEFAULT)
        testing_sparse_text(out, 8, slice_from_cstr(TESTING_INDEXING[o->indexing]));
    if (o->minimal) {
        buf_byte(out, TYPE_TRUE);
        buf_byte(out, 12);
    }
    testing_sparse_text(out, 9, o->if_match);
    testing_sparse_text(out, 10, o->if_none_match);
}

static inline void testing_segment(Buf *out)
{
    buf_slice(out, SLICE("\x81\xf0\xd8\xff\x7f\x01\x0a\0\0\0"));
}

static inline void testing_record(Buf *out, Slice row)
{
    buf_slice(out, SLICE("\x81\xf1\xd8\xff\x7f"));
    testing_u32(out, (uint32_t)row.len);
    testing_u32(out, crc32_of(row));
    buf_slice(out, row);
}

static inline void testing_encode_binary(const BatchOperation *operations, size_t count,
                                         Arena *arena, Buf *out)
{
    AUTO(buf_done) Buf row;
    buf_init(&row, 8 << 20);
    testing_segment(out);
    for (size_t i = 0; i < count; i++) {
        buf_reset(&row);
        testing_encode_row(&operations[i], arena, &row);
        testing_record(out, buf_view(&row));
    }
}

/* Everything but the size of the body, which depends on how its text is written. */
static inline bool testing_equal(const BatchOperation *a, const BatchOperation *b)
{
    bool both_bodies = !json_is(a->body, JSON_UNDEFINED) && !json_is(b->body, JSON_UNDEFINED);
    return a->op == b->op && slice_equal(a->id, b->id) &&
           a->has_partition_key == b->has_partition_key &&
           slice_equal(a->partition_key, b->partition_key) &&
           json_type(a->body) == json_type(b->body) &&
           (!both_bodies || json_equal(a->body, b->body)) &&
           slice_equal(a->if_match, b->if_match) &&
           slice_equal(a->if_none_match, b->if_none_match) && a->indexing == b->indexing &&
           a->minimal == b->minimal;
}

/* Encodes what was decoded in 'form', decodes it again, and compares. */
static inline void testing_check_again(BatchForm form, const BatchOperation *operations,
                                       size_t count, Arena *arena)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 32 << 20);
    if (form == BATCH_FORM_JSON)
        testing_encode_json(operations, count, &text);
    else
        testing_encode_binary(operations, count, arena, &text);
    ASSERT(!buf_full(&text));

    BatchForm form_again;
    BatchOperation *again;
    size_t count_again;
    Error err;
    Status status = batch_decode(arena, buf_view(&text), &form_again, &again, &count_again, &err);
    ASSERT(status == STATUS_OK);
    ASSERT(form_again == form);
    ASSERT(count_again == count);
    for (size_t i = 0; i < count; i++) {
        ASSERT(testing_equal(&operations[i], &again[i]));
        /* The size of the text; in JSON only of values whose text may be too long (batch_json.c).
         */
        size_t size = json_size(operations[i].body);
        size_t printed = json_print_arena(arena, operations[i].body).len;
        ASSERT(printed <= 8 * size);
        bool is_measured = form != BATCH_FORM_JSON || size > ITEM_BYTES_MAX / 8;
        ASSERT(again[i].body_bytes == (is_measured ? printed : size));
    }
}
