/* batch_codec.c - which form a body has, and what holds for both. See batch_codec_int.h. */
#include "api/items/batch_binary_int.h"
#include "api/items/batch_form_int.h"

const BatchKind BATCH_KINDS[BATCH_OP_COUNT] = {
    [BATCH_CREATE] = {SLICE_INIT("Create"), 0, false, true},
    [BATCH_UPSERT] = {SLICE_INIT("Upsert"), 20, false, true},
    [BATCH_READ] = {SLICE_INIT("Read"), 2, true, false},
    [BATCH_REPLACE] = {SLICE_INIT("Replace"), 5, true, true},
    [BATCH_DELETE] = {SLICE_INIT("Delete"), 4, true, false},
    [BATCH_PATCH] = {SLICE_INIT("Patch"), 1, true, true},
};

Status batch_decode(Arena *arena, Slice body, BatchForm *form, BatchOperation **out, size_t *count,
                    Error *err)
{
    /* No JSON text begins with this byte: it is not UTF-8 there. */
    bool is_binary = body.len > 0 && (uint8_t)body.ptr[0] == ROW_VERSION;
    BatchOperation *operations;
    size_t operation_count;
    if (is_binary)
        TRY(batch_binary_decode(arena, body, &operations, &operation_count, err));
    else
        TRY(batch_json_decode(arena, body, &operations, &operation_count, err));
    *form = is_binary ? BATCH_FORM_BINARY : BATCH_FORM_JSON;
    *out = operations;
    *count = operation_count;
    return STATUS_OK;
}

void batch_encode(BatchForm form, const BatchResult *results, size_t count, Buf *out)
{
    switch (form) {
    case BATCH_FORM_JSON:
        batch_json_encode(results, count, out);
        return;
    case BATCH_FORM_BINARY:
        batch_binary_encode(results, count, out);
        return;
    }
}

Status batch_indexing_parse(Slice text, BatchIndexing *out, Error *err)
{
    static const Slice names[] = {
        [BATCH_INDEXING_DEFAULT] = SLICE_INIT("Default"),
        [BATCH_INDEXING_INCLUDE] = SLICE_INIT("Include"),
        [BATCH_INDEXING_EXCLUDE] = SLICE_INIT("Exclude"),
    };
    if (text.len == 0)
        text = names[BATCH_INDEXING_DEFAULT];
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (slice_equal_nocase(text, names[i])) {
            *out = (BatchIndexing)i;
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "'%s' is '%.*s', expected Default, Include or Exclude", BATCH_INDEXING,
                     SLICE_CUT(text, 40));
}

Status batch_refuse_field(const char *name, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%s' is not supported in a batch", name);
}

Status batch_refuse_count(Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "Batch request has more operations than what is supported. At most %d are.",
                     BATCH_OPERATIONS_MAX);
}

Status batch_operation_check(const BatchOperation *operation, Error *err)
{
    const BatchKind *kind = &BATCH_KINDS[operation->op];
    if (kind->needs_id && operation->id.len == 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%.*s needs an '%s'",
                         SLICE_ARG(kind->name), BATCH_ID);
    if (!kind->needs_body)
        return STATUS_OK;
    JsonType type = json_type(operation->body);
    if (type == JSON_UNDEFINED)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%.*s needs a '%s'",
                         SLICE_ARG(kind->name), BATCH_RESOURCE_BODY);
    bool is_patch = operation->op == BATCH_PATCH;
    if (type != JSON_OBJECT && !(is_patch && type == JSON_ARRAY))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "'%s' of %.*s must be an object%s",
                         BATCH_RESOURCE_BODY, SLICE_ARG(kind->name),
                         is_patch ? " or an array" : "");
    return STATUS_OK;
}

void batch_print_message(Slice message, Buf *out)
{
    if (json_utf8_valid(message)) {
        json_print_string(message, out);
        return;
    }
    char ascii[sizeof(((Error *)NULL)->message)];
    message = slice_first(message, sizeof(ascii));
    for (size_t i = 0; i < message.len; i++)
        ascii[i] = (unsigned char)message.ptr[i] < 0x80 ? message.ptr[i] : '?';
    json_print_string(slice_make(ascii, message.len), out);
}
