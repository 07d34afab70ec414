/* batch_codec_int.h - the bodies of transactional batch and bulk requests, and of their answers.
 *
 * A batch is a list of operations on items, and its answer a list of as many results in the same
 * order. There are two forms of both: JSON (JS, Java, Python, Go) and a binary one (.NET). The
 * answer has the form of the request; nothing else of the server knows which one it is.
 *
 * The decoder checks that every operation has what its kind needs. Ids, keys and patches are
 * checked when an operation is executed, as for a single request.
 *
 * Ownership  Everything decoded lives in the arena, also the slices, so the body may go.
 * Threads    Nothing here has state.
 * Format     At the top of batch_json.c and batch_binary.c.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/json.h"

/* As the service has it. The caller checks the size of the body (BODY_BYTES_MAX). */
#define BATCH_OPERATIONS_MAX 100

typedef enum BatchOp {
    BATCH_CREATE,
    BATCH_UPSERT,
    BATCH_READ,
    BATCH_REPLACE,
    BATCH_DELETE,
    BATCH_PATCH,
} BatchOp;
#define BATCH_OP_COUNT (BATCH_PATCH + 1)

typedef enum BatchForm { BATCH_FORM_JSON, BATCH_FORM_BINARY } BatchForm;

/* What x-ms-indexing-directive says for a single request. */
typedef enum BatchIndexing {
    BATCH_INDEXING_DEFAULT, /* nothing was sent, or "Default" */
    BATCH_INDEXING_INCLUDE,
    BATCH_INDEXING_EXCLUDE,
} BatchIndexing;

/* Slices are empty where nothing was sent. */
typedef struct BatchOperation {
    BatchOp op;
    Slice id; /* never empty for read, replace, delete and patch */
    bool has_partition_key;
    Slice partition_key; /* JSON text, which should be an array: as in the header, not yet parsed */
    Json body;           /* an object, or an array of a patch; undefined for read and delete */
    size_t body_bytes;   /* of its JSON text: the binary form's own, the JSON form's as printed, or
                            about that if it is far below ITEM_BYTES_MAX */
    Slice if_match;
    Slice if_none_match;
    BatchIndexing indexing;
    bool minimal; /* the item is not wanted back */
} BatchOperation;

typedef struct BatchResult {
    int status;     /* of HTTP */
    int sub_status; /* 0 if there is none */
    double request_charge;
    Slice etag;              /* with its quotes; or empty */
    Slice resource_body;     /* JSON text; or empty */
    uint32_t retry_after_ms; /* 0 if there is none */
    Slice message;           /* why it failed; or empty */
} BatchResult;

/* Decodes a body of 1 to BATCH_OPERATIONS_MAX operations. STATUS_BAD_REQUEST says what is wrong,
 * and with which operation (counted from 0, as the SDKs do). */
MUST_USE Status batch_decode(Arena *arena, Slice body, BatchForm *form, BatchOperation **out,
                             size_t *count, Error *err);

/* Appends the answer. If 'out' is full afterwards the answer is incomplete. */
void batch_encode(BatchForm form, const BatchResult *results, size_t count, Buf *out);
