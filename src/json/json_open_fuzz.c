/* json_open_fuzz.c - any bytes: they are refused, or all readers can work on them and building the
 * same document again gives the same bytes. */
#include "json/json_random_testing_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena arena;
    arena_init(&arena, 64 << 10);
    Slice bytes = slice_make(data, size);
    Json value;
    Error err;
    if (json_open(bytes, &value, &err) == STATUS_OK) {
        check_look_ups(value);
        ASSERT(json_compare(value, value) == 0);
        ASSERT(json_depth(value) <= JSON_DEPTH_MAX);
        JsonBuilder b;
        json_build(&b, &arena);
        rebuild(&b, value);
        ASSERT(slice_equal(json_bytes(&arena, json_built(&b)), bytes));
        ASSERT(json_print_arena(&arena, value).len > 0);
    } else {
        ASSERT(err.status == STATUS_CORRUPT);
    }
    arena_done(&arena);
    return 0;
}
