/* radix_fuzz.c - any keys in any order: what is found is what a sorted array has.
 *
 *     input = ( | what u8 | kept u8 | len u8 | tag u8 | bytes, 'len' | )*
 *
 * A key begins with the first 'kept' (times a power of two in 'what') bytes of the one before it.
 * It is inserted or, if the lowest bit of 'what' is set, only looked for. Two bits of 'what' are
 * the tag's highest byte, so that tags are compared in more than one of their bytes.
 */
#include "store/rocksdb/radix_testing_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HEAD_BYTES = 4, KEY_BYTES_MAX = 8200, STEPS_MAX = 1000 };

static Version next_version(Arena *arena, Slice last, Slice *rest)
{
    const uint8_t *head = (const uint8_t *)rest->ptr;
    Slice kept = slice_first(last, (size_t)head[1] << (head[0] >> 5));
    Slice bytes = slice_first(slice_from(*rest, HEAD_BYTES), head[2]);
    *rest = slice_from(*rest, HEAD_BYTES + head[2]);
    char *key = arena_alloc(arena, kept.len + bytes.len + 1);
    if (kept.len > 0)
        memcpy(key, kept.ptr, kept.len);
    if (bytes.len > 0)
        memcpy(key + kept.len, bytes.ptr, bytes.len);
    uint64_t tag = head[3] | (uint64_t)(head[0] >> 1 & 3) << 56;
    return (Version){slice_first(slice_make(key, kept.len + bytes.len), KEY_BYTES_MAX), tag};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Radix *radix = radix_new(allocate_askew, &arena);
    Model model = {.list = ARENA_NEW_ARRAY(&arena, Version, STEPS_MAX + 1)};
    Slice rest = slice_make(data, size);
    Slice last = SLICE_EMPTY;
    for (int step = 0; step < STEPS_MAX && rest.len >= HEAD_BYTES; step++) {
        bool is_insert = (rest.ptr[0] & 1) == 0;
        Version v = next_version(&arena, last, &rest);
        if (is_insert)
            ASSERT(insert(radix, v) == model_insert(&model, v));
        ASSERT(agrees_around(radix, &arena, &model, v));
        last = v.key;
    }
    ASSERT(agrees_from_end_to_end(radix, &model));
    return 0;
}
