/* epk_range.c - see epk_range.h.
 *
 * A version 2 key is a 128-bit hash with its two highest bits clear, printed as 32 digits, so bound
 * i of n is floor((2^126 - 1) / n) * i. A hierarchical key is such hashes one after the other, and
 * a bound that cuts the first of them needs no more digits.
 *
 * A version 1 key begins with a 32-bit hash in the order-preserving encoding of numbers, so bound
 * i of n is that encoding of floor((2^32 - 1) / n) * i:
 *
 *     05 | top 8 bits | 7 bits, 1 | 7 bits, 1 | ... | 7 bits, 0 |
 *
 * of the double's bits with the sign turned round, without the zero bits at the end.
 */
#include "catalog/epk_range.h"

#include "base/encoding.h"

enum { NUMBER_MARKER = 5, HASH_V2_BYTES = 16, NUMBER_BYTES_MAX = 10 };

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

static Slice hash_v2_bound(Arena *arena, uint32_t index, uint32_t count)
{
    unsigned __int128 top = ((unsigned __int128)1 << 126) - 1;
    unsigned __int128 bound = top / count * index;
    uint8_t bytes[HASH_V2_BYTES];
    be64_put(bytes, (uint64_t)(bound >> 64));
    be64_put(bytes + 8, (uint64_t)bound);
    return hex(arena, bytes, sizeof(bytes));
}

static Slice hash_v1_bound(Arena *arena, uint32_t index, uint32_t count)
{
    double number = UINT32_MAX / count * index;
    uint64_t bits;
    memcpy(&bits, &number, sizeof(bits));
    bits ^= UINT64_C(1) << 63; /* positive numbers sort after negative ones */

    uint8_t bytes[1 + NUMBER_BYTES_MAX];
    size_t len = 0;
    bytes[len++] = NUMBER_MARKER;
    bytes[len++] = (uint8_t)(bits >> 56);
    bits <<= 8;
    do {
        bytes[len++] = (uint8_t)(bits >> 57 << 1 | 1);
        bits <<= 7;
    } while (bits != 0);
    bytes[len - 1] &= 0xFE;
    return hex(arena, bytes, len);
}

static Slice hex(Arena *arena, const uint8_t *bytes, size_t len)
{
    char *text = arena_alloc(arena, 2 * len);
    hex_encode(bytes, len, text);
    return slice_make(text, 2 * len);
}
