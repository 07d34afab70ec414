/* epk_range.c - see epk_range.h.
 *
 * A version 2 key is a 128-bit hash with its two highest bits clear, printed as 32 digits, so bound
 * i of n is floor((2^126 - 1) / n) * i. A hierarchical key is such hashes one after the other, and
 * a bound that cuts the first of them needs no more digits.
 *
 * A version 1 key begins with a 32-bit hash in the order-preserving encoding of numbers, so bound
 * i of n is that encoding of floor((2^32 - 1) / n) * i.
 */
#include "catalog/epk_range.h"

#include "base/encoding.h"

enum { HASH_V2_BYTES = 16 };

static Slice hash_v2_bound(Arena *arena, uint32_t index, uint32_t count);
static Slice hash_v1_bound(Arena *arena, uint32_t index, uint32_t count);
static Slice hex(Arena *arena, const uint8_t *bytes, size_t len);

const Slice *epk_initial_bounds(Arena *arena, PartitionKind kind, uint32_t count)
{
    ASSERT(count > 0);
    ASSERT(kind != PARTITION_NONE || count == 1);
    Slice *bounds = ARENA_NEW_ARRAY(arena, Slice, (size_t)count + 1);
    bounds[0] = EPK_MIN;
    bounds[count] = EPK_MAX;
    for (uint32_t i = 1; i < count; ++i)
        bounds[i] = kind == PARTITION_HASH_V1 ? hash_v1_bound(arena, i, count)
                                              : hash_v2_bound(arena, i, count);
    return bounds;
}

bool epk_is_bound(Slice text)
{
    if (text.len % 2 != 0 || text.len > (size_t)2 * EPK_BYTES_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if ((c < '0' || c > '9') && (c < 'A' || c > 'F'))
            return false;
    }
    return true;
}

static Slice hash_v2_bound(Arena *arena, uint32_t index, uint32_t count)
{
    return epk_number_text(arena, (EPK_NUMBERS_END - 1) / count * index);
}

EpkNumber epk_number(Slice bytes)
{
    uint8_t padded[HASH_V2_BYTES] = {0};
    if (bytes.len > 0)
        memcpy(padded, bytes.ptr, bytes.len < sizeof(padded) ? bytes.len : sizeof(padded));
    return (EpkNumber)be64_get(padded) << 64 | be64_get(padded + 8);
}

Slice epk_number_text(Arena *arena, EpkNumber number)
{
    uint8_t bytes[HASH_V2_BYTES];
    be64_put(bytes, (uint64_t)(number >> 64));
    be64_put(bytes + 8, (uint64_t)number);
    return hex(arena, bytes, sizeof(bytes));
}

Slice epk_text(Arena *arena, Slice bytes)
{
    return hex(arena, (const uint8_t *)bytes.ptr, bytes.len);
}

static Slice hash_v1_bound(Arena *arena, uint32_t index, uint32_t count)
{
    double number = UINT32_MAX / count * index;
    uint8_t bytes[EPK_NUMBER_BYTES_MAX];
    size_t len = epk_encode_number(number, bytes);
    return hex(arena, bytes, len);
}

static Slice hex(Arena *arena, const uint8_t *bytes, size_t len)
{
    char *text = arena_alloc(arena, 2 * len);
    hex_encode(bytes, len, text);
    return slice_make(text, 2 * len);
}
