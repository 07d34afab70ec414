/* bulk_body.h - the body of a bulk request, and what its answer says of each operation.
 *
 *     [{"operationType":"Upsert","partitionKey":"[\"p\"]","resourceBody":{...}},...]
 *     [{"statusCode":201,"requestCharge":6.29,...},{"statusCode":429,"retryAfterMilliseconds":12}]
 *
 * Also what the answers to single requests have in common: messages of errors.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

/* Appends one operation to a body, which is empty for the first one; bulk_end closes it. */
void bulk_add(Buf *body, Slice key_text, Slice item_text);
void bulk_end(Buf *body);

/* What bulk_add appends to a body for an item, without the two texts. */
#define BULK_OPERATION_BYTES 100

typedef struct BulkResult {
    int status;
    uint32_t sub_status;
    uint32_t retry_after_ms;
    double charge;
    Slice message; /* in the arena; may be empty */
} BulkResult;

/* The results of 'count' operations. STATUS_UNAVAILABLE if the body is not that. */
MUST_USE Status bulk_answer_parse(Arena *arena, Slice body, size_t count, BulkResult *out,
                                  Error *err);

/* The first line of the message in the body of an error; empty if there is none. */
Slice answer_message(Arena *arena, Slice body);
