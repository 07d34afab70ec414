/* batch_body.c - see batch_body_int.h. */
#include "api/items/batch_body_int.h"

bool batch_is_asked(const ApiRequest *r)
{
    return r->address.type == RESOURCE_DOCUMENT && r->operation == OPERATION_CREATE &&
           request_flag(r, "x-ms-cosmos-is-batch-request");
}

Status batch_body_read(Arena *arena, Slice body, void **out, Error *err)
{
    BatchBody *batch = ARENA_NEW(arena, BatchBody);
    TRY(batch_decode(arena, body, &batch->form, &batch->operations, &batch->count, err));
    *out = batch;
    return STATUS_OK;
}

Status batch_body_get(const ApiRequest *r, const BatchBody **out, Error *err)
{
    void *read = NULL;
    TRY(request_body_get(r, batch_body_read, &read, err));
    *out = read;
    return STATUS_OK;
}
