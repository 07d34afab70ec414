/* bulk_body.c - see bulk_body.h. */
#include "transfer/bulk_body.h"

#include "json/json.h"

void bulk_add(Buf *body, Slice key_text, Slice item_text)
{
    buf_slice(body, body->len == 0 ? SLICE("[{\"operationType\":\"Upsert\",\"partitionKey\":")
                                   : SLICE(",{\"operationType\":\"Upsert\",\"partitionKey\":"));
    json_print_string(key_text, body);
    buf_slice(body, SLICE(",\"resourceBody\":"));
    buf_slice(body, item_text);
    buf_byte(body, '}');
}

void bulk_end(Buf *body)
{
    buf_byte(body, ']');
}

static uint32_t number_of(Json object, Slice name)
{
    int64_t value = 0;
    if (!json_to_i64(json_get(object, name), &value) || value < 0 || value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

static Slice first_line(Json text)
{
    Slice message = json_is(text, JSON_STRING) ? json_string(text) : SLICE_EMPTY;
    message = slice_first(message, slice_find(message, '\n'));
    return slice_first(message, slice_find(message, '\r'));
}

Status bulk_answer_parse(Arena *arena, Slice body, size_t count, BulkResult *out, Error *err)
{
    Json list;
    if (json_parse(arena, body, &list, err) != STATUS_OK || !json_is(list, JSON_ARRAY) ||
        json_count(list) != count)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the answer to a bulk request of %zu operations has no result for each",
                         count);
    JsonIter it = json_iter(list);
    for (size_t i = 0; json_next(&it); i++) {
        Json charge = json_get(it.value, SLICE("requestCharge"));
        out[i] = (BulkResult){
            .status = (int)number_of(it.value, SLICE("statusCode")),
            .sub_status = number_of(it.value, SLICE("subStatusCode")),
            .retry_after_ms = number_of(it.value, SLICE("retryAfterMilliseconds")),
            .charge = json_is(charge, JSON_NUMBER) ? json_number(charge) : 0,
            .message = first_line(json_get(it.value, SLICE("message"))),
        };
    }
    return STATUS_OK;
}

Slice answer_message(Arena *arena, Slice body)
{
    Json object;
    Error ignored;
    if (json_parse(arena, body, &object, &ignored) != STATUS_OK)
        return SLICE_EMPTY;
    return first_line(json_get(object, SLICE("message")));
}
