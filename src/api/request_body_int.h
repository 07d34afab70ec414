/* request_body_int.h - reading the body of a request, on a worker if that takes long.
 *
 * A million numbers take 20 ms to parse, in which a loop could answer a thousand reads. A body of
 * more than LOOP_BODY_BYTES_MAX is read on a worker before its handler is called; the handler then
 * finds what was read. It need not know which it was.
 *
 *     route_request --> request_body_defer --> worker: json_parse or batch_decode
 *                                                 |
 *     handler <-- route_request <-- request_again +
 *
 * Queries are no matter of this: they are read where they run.
 */
#pragma once

#include "api/batch_codec_int.h"
#include "api/request_int.h"

/* This much is parsed in less than a millisecond, whatever it holds. */
#define LOOP_BODY_BYTES_MAX ((size_t)64 << 10)

/* What was read. */
typedef struct RequestBody RequestBody;

/* True if the body is to be read on a worker: the request goes on from there. An error if too much
 * is waiting for workers. */
MUST_USE Status request_body_defer(ApiRequest *r, bool *is_deferred, Error *err);

/* The body as any JSON value, and as a batch, in the request's arena. */
MUST_USE Status request_body_json(const ApiRequest *r, Json *out, Error *err);
MUST_USE Status request_body_batch(const ApiRequest *r, BatchForm *form, BatchOperation **out,
                                   size_t *count, Error *err);
