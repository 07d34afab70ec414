/* batch_binary_fuzz.c - any bytes as a batch, and as the row of its only operation: they are
 * refused, or what they mean survives being encoded again.
 *
 * The second way is needed because a fuzzer does not find a row with the right checksum. */
#include "api/items/batch_testing_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_body(Slice body)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    BatchOperation *operations;
    size_t count;
    Error err;
    if (batch_binary_decode(&arena, body, &operations, &count, &err) != STATUS_OK) {
        ASSERT(err.status == STATUS_BAD_REQUEST);
        return;
    }
    ASSERT(count <= BATCH_OPERATIONS_MAX);
    if (count > 0)
        testing_check_again(BATCH_FORM_BINARY, operations, count, &arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_body(slice_make(data, size));

    AUTO(buf_done) Buf body;
    buf_init(&body, size + SEGMENT_BYTES + RECORD_HEADER_BYTES);
    testing_segment(&body);
    testing_record(&body, slice_make(data, size));
    ASSERT(!buf_full(&body));
    try_body(buf_view(&body));
    return 0;
}
