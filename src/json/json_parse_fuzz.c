/* json_parse_fuzz.c - any text: it is refused with its place, or its document is sound and survives
 * printing and parsing. */
#include "json/json_random_testing_int.h"

static bool has_minus_zero(Json value)
{
    if (json_is(value, JSON_NUMBER))
        return json_number(value) == 0 && 1 / json_number(value) < 0;
    JsonIter it = json_iter(value);
    while (json_next(&it)) {
        if (has_minus_zero(it.value))
            return true;
    }
    return false;
}

static void check_document(Arena *arena, Json value)
{
    Error err;
    Slice bytes = json_bytes(arena, value);
    Json opened;
    ASSERT(json_open(bytes, &opened, &err) == STATUS_OK);
    check_look_ups(opened);

    JsonBuilder b;
    json_build(&b, arena);
    rebuild(&b, value);
    ASSERT(slice_equal(json_bytes(arena, json_built(&b)), bytes));

    Json again;
    Slice text = json_print_arena(arena, value);
    if (text.len > JSON_TEXT_BYTES_MAX)
        return;
    ASSERT(json_parse(arena, text, &again, &err) == STATUS_OK);
    ASSERT(json_equal(value, again));
    ASSERT(slice_equal(json_print_arena(arena, again), text));
    if (!has_minus_zero(value))
        ASSERT(slice_equal(json_bytes(arena, again), bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Arena arena;
    arena_init(&arena, 64 << 10);
    Json value;
    Error err;
    if (json_parse(&arena, slice_make(data, size), &value, &err) == STATUS_OK) {
        check_document(&arena, value);
    } else {
        ASSERT(err.status == STATUS_BAD_REQUEST);
        ASSERT(strstr(err.message, " at byte ") != NULL);
    }
    arena_done(&arena);
    return 0;
}
