/* batch_body_int.h - the body of a request that is a batch. */
#pragma once

#include "api/core/request_body_int.h"
#include "api/items/batch_codec_int.h"

typedef struct BatchBody {
    BatchForm form;
    BatchOperation *operations;
    size_t count;
} BatchBody;

/* Whether the request is a batch: x-ms-cosmos-is-batch-request. */
bool batch_is_asked(const ApiRequest *r);

/* The body, in the request's arena; and the reader for it. */
MUST_USE Status batch_body_get(const ApiRequest *r, const BatchBody **out, Error *err);
Status batch_body_read(Arena *arena, Slice body, void **out, Error *err);
