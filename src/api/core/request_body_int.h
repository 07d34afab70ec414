/* request_body_int.h - reading the body of a request, on a worker if that takes long.
 *
 * A million numbers take 20 ms to parse, in which a loop could answer a thousand reads. A body of
 * more than LOOP_BODY_BYTES_MAX is read on a worker before its handler is called; the handler then
 * finds what was read. It need not know where that was.
 *
 *     route_request --> request_body_defer --> worker: the BodyReader
 *                                                 |
 *     handler <-- route_request <-- request_again +
 *
 * Queries do not come this way: they are read where they run.
 */
#pragma once

#include "api/core/request_int.h"

/* This much is parsed in less than a millisecond, whatever it holds. */
#define LOOP_BODY_BYTES_MAX ((size_t)64 << 10)

/* Makes something of a body, in the arena. On any thread. */
typedef Status (*BodyReader)(Arena *arena, Slice body, void **out, Error *err);

/* What was read on a worker. */
typedef struct RequestBody RequestBody;

/* Whether the body is to be read on a worker, and has not been yet. */
bool request_body_is_long(const ApiRequest *r);

/* Reads it there, and then runs the request again. Fails if too much is waiting for workers. */
MUST_USE Status request_body_defer(ApiRequest *r, BodyReader reader, Error *err);

/* What 'reader' makes of the body, or has made of it on a worker; in the request's arena. */
MUST_USE Status request_body_get(const ApiRequest *r, BodyReader reader, void **out, Error *err);

/* The body as any JSON value, in the request's arena; and the reader for that. */
MUST_USE Status request_body_json(const ApiRequest *r, Json *out, Error *err);
Status request_body_read_json(Arena *arena, Slice body, void **out, Error *err);
