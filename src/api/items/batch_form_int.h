/* batch_form_int.h - what the two forms of a batch have in common; for batch_*.c only. */
#pragma once

#include "api/items/batch_codec_int.h"

/* The row of each BatchOp: its name in JSON, its number in the binary form, what it needs. */
typedef struct BatchKind {
    Slice name;
    uint32_t code;
    bool needs_id;
    bool needs_body;
} BatchKind;
extern const BatchKind BATCH_KINDS[BATCH_OP_COUNT];

/* The names that a message is about, the same in both forms. */
#define BATCH_OPERATION_TYPE "operationType"
#define BATCH_ID             "id"
#define BATCH_PARTITION_KEY  "partitionKey"
#define BATCH_RESOURCE_BODY  "resourceBody"
#define BATCH_IF_MATCH       "ifMatch"
#define BATCH_IF_NONE_MATCH  "ifNoneMatch"
#define BATCH_INDEXING       "indexingDirective"
#define BATCH_MINIMAL        "minimalReturnPreference"
#define BATCH_EFFECTIVE_KEY  "effectivePartitionKey"
#define BATCH_BINARY_ID      "binaryId"
#define BATCH_TIME_TO_LIVE   "timeToLiveInSeconds"

/* Upper or lower case; empty text is the default. */
MUST_USE Status batch_indexing_parse(Slice text, BatchIndexing *out, Error *err);

/* For the fields of the service's own components, which the public parts of the SDKs cannot send.
 * They change what an operation means, so they are refused and not skipped. */
MUST_USE Status batch_refuse_field(const char *name, Error *err);

MUST_USE Status batch_refuse_count(Error *err);

/* Checks that an operation has what its kind needs. */
MUST_USE Status batch_operation_check(const BatchOperation *operation, Error *err);

/* Prints a message as a JSON string, also if it was cut in the middle of a character. */
void batch_print_message(Slice message, Buf *out);

/* Each allocates its list and checks every operation; the list may be empty. */
MUST_USE Status batch_json_decode(Arena *arena, Slice body, BatchOperation **out, size_t *count,
                                  Error *err);
MUST_USE Status batch_binary_decode(Arena *arena, Slice body, BatchOperation **out, size_t *count,
                                    Error *err);

void batch_json_encode(const BatchResult *results, size_t count, Buf *out);
void batch_binary_encode(const BatchResult *results, size_t count, Buf *out);
