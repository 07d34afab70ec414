/* batch_json_fuzz.c - any text as a batch: it is refused, or what it means survives both forms. */
#include "api/items/batch_testing_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    BatchOperation *operations;
    size_t count;
    Error err;
    if (batch_json_decode(&arena, slice_make(data, size), &operations, &count, &err) != STATUS_OK) {
        ASSERT(err.status == STATUS_BAD_REQUEST);
        return 0;
    }
    ASSERT(count <= BATCH_OPERATIONS_MAX);
    if (count == 0)
        return 0;
    testing_check_again(BATCH_FORM_JSON, operations, count, &arena);
    testing_check_again(BATCH_FORM_BINARY, operations, count, &arena);
    return 0;
}
