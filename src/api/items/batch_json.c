/* batch_json.c - a batch as JSON.
 *
 *     request   [ {"operationType":"Create","resourceBody":{...}},
 *                 {"operationType":"Replace","id":"b","resourceBody":{...},"ifMatch":"\"...\"",
 *                  "partitionKey":"[\"p\"]","minimalReturnPreference":true}, ... ]
 *     answer    [ {"statusCode":201,"requestCharge":5.9,"eTag":"\"...\"","resourceBody":{...}},
 *                 {"statusCode":409,"subStatusCode":0,"requestCharge":1.2,"message":"..."}, ... ]
 *
 * The body is parsed once; the items are views into that one document. They stand two levels down
 * in it, so an item of a batch may be two levels less deep than one that is sent alone.
 *
 * JS sends the objects that its user made, so members that mean nothing here are skipped, and one
 * that is null counts as absent.
 */
#include "api/items/batch_form_int.h"
#include "partition/item.h"

static Status decode_operation(Json object, Buf *scratch, BatchOperation *out, Error *err);

Status batch_json_decode(Arena *arena, Slice body, BatchOperation **out, size_t *count, Error *err)
{
    Json list;
    TRY(json_parse(arena, body, &list, err));
    if (!json_is(list, JSON_ARRAY))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "a batch must be an array");
    size_t operation_count = json_count(list);
    if (operation_count > BATCH_OPERATIONS_MAX)
        return batch_refuse_count(err);

    /* Large items are printed to know their size; one that does not fit is too large for any
     * container. */
    AUTO(buf_done) Buf scratch;
    buf_init(&scratch, JSON_TEXT_BYTES_MAX);
    BatchOperation *operations = ARENA_NEW_ARRAY(arena, BatchOperation, operation_count);
    JsonIter it = json_iter(list);
    for (size_t i = 0; json_next(&it); i++) {
        if (decode_operation(it.value, &scratch, &operations[i], err) != STATUS_OK)
            return error_context(err, "operation %zu", i);
    }
    *out = operations;
    *count = operation_count;
    return STATUS_OK;
}

static Json get_member(Json object, const char *name)
{
    Json value = json_get(object, slice_from_cstr(name));
    return json_is(value, JSON_NULL) ? JSON_NONE : value;
}

static Status get_text(Json object, const char *name, Slice *out, Error *err)
{
    Json value = get_member(object, name);
    if (json_is(value, JSON_UNDEFINED))
        return STATUS_OK;
    if (!json_is(value, JSON_STRING))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%s' must be a string", name);
    *out = json_string(value);
    return STATUS_OK;
}

static Status get_bool(Json object, const char *name, bool *out, Error *err)
{
    Json value = get_member(object, name);
    if (json_is(value, JSON_UNDEFINED))
        return STATUS_OK;
    if (!json_is(value, JSON_BOOL))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%s' must be a boolean", name);
    *out = json_bool(value);
    return STATUS_OK;
}

static Status get_op(Json object, BatchOp *out, Error *err)
{
    Slice name = SLICE_EMPTY;
    TRY(get_text(object, BATCH_OPERATION_TYPE, &name, err));
    for (size_t i = 0; i < BATCH_OP_COUNT; i++) {
        if (slice_equal_nocase(name, BATCH_KINDS[i].name)) {
            *out = (BatchOp)i;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'%s' is '%.*s', expected Create, Upsert, Read, Replace, Delete or Patch",
                     BATCH_OPERATION_TYPE, SLICE_CUT(name, 40));
}

static Status refuse_private_fields(Json object, Error *err)
{
    static const char *const names[] = {BATCH_EFFECTIVE_KEY, BATCH_BINARY_ID, BATCH_TIME_TO_LIVE};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (!json_is(get_member(object, names[i]), JSON_UNDEFINED))
            return batch_refuse_field(names[i], err);
    }
    return STATUS_OK;
}

/* No value is printed as more than 8 times the bytes that it has: of a string each byte takes 6 at
 * most, of "false" the one byte takes 6 with its comma. */
enum { PRINTED_BYTES_MAX = 8 };

/* The size of the text, if that may matter; otherwise the value's own, which is close to it.
 * Printing each item of a bulk request took a tenth of what the request cost before it was written.
 */
static size_t text_size(Json value, Buf *scratch)
{
    size_t size = json_size(value);
    if (LIKELY(size <= ITEM_BYTES_MAX / PRINTED_BYTES_MAX))
        return size;
    buf_reset(scratch);
    json_print(value, scratch);
    return buf_full(scratch) ? scratch->bytes_max : scratch->len;
}

static Status decode_operation(Json object, Buf *scratch, BatchOperation *out, Error *err)
{
    if (!json_is(object, JSON_OBJECT))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "an operation must be an object");
    BatchOperation operation = {.body = JSON_NONE};
    TRY(get_op(object, &operation.op, err));
    TRY(refuse_private_fields(object, err));
    TRY(get_text(object, BATCH_ID, &operation.id, err));
    TRY(get_text(object, BATCH_IF_MATCH, &operation.if_match, err));
    TRY(get_text(object, BATCH_IF_NONE_MATCH, &operation.if_none_match, err));
    TRY(get_bool(object, BATCH_MINIMAL, &operation.minimal, err));

    TRY(get_text(object, BATCH_PARTITION_KEY, &operation.partition_key, err));
    operation.has_partition_key = json_is(get_member(object, BATCH_PARTITION_KEY), JSON_STRING);

    Slice indexing = SLICE_EMPTY;
    TRY(get_text(object, BATCH_INDEXING, &indexing, err));
    TRY(batch_indexing_parse(indexing, &operation.indexing, err));

    if (BATCH_KINDS[operation.op].needs_body)
        operation.body = get_member(object, BATCH_RESOURCE_BODY);
    TRY(batch_operation_check(&operation, err));
    operation.body_bytes = text_size(operation.body, scratch);
    *out = operation;
    return STATUS_OK;
}

static void encode_result(const BatchResult *result, Buf *out)
{
    buf_format(out, "{\"statusCode\":%d", result->status);
    if (result->status >= 400 || result->sub_status != 0)
        buf_format(out, ",\"subStatusCode\":%d", result->sub_status);
    buf_slice(out, SLICE(",\"requestCharge\":"));
    json_print_number(result->request_charge, out);
    if (result->etag.len > 0) {
        buf_slice(out, SLICE(",\"eTag\":"));
        json_print_string(result->etag, out);
    }
    if (result->resource_body.len > 0) {
        buf_slice(out, SLICE(",\"resourceBody\":"));
        buf_slice(out, result->resource_body);
    }
    if (result->retry_after_ms > 0)
        buf_format(out, ",\"retryAfterMilliseconds\":%u", result->retry_after_ms);
    if (result->message.len > 0) {
        buf_slice(out, SLICE(",\"message\":"));
        batch_print_message(result->message, out);
    }
    buf_byte(out, '}');
}

void batch_json_encode(const BatchResult *results, size_t count, Buf *out)
{
    buf_byte(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        encode_result(&results[i], out);
    }
    buf_byte(out, ']');
}
