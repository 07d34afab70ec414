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
    if (text.len % 2 != 0 || text.len > (size_t)2 * EPK_BOUND_BYTES_MAX)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if ((c < '0' || c > '9') && (c < 'A' || c > 'F'))
            return false;
    }
    return true;
}

/* ---- cuts ---- */

EpkNumber epk_number(Slice bytes)
{
    uint8_t padded[EPK_HASH_BYTES] = {0};
    if (bytes.len > 0)
        memcpy(padded, bytes.ptr, bytes.len < sizeof(padded) ? bytes.len : sizeof(padded));
    return (EpkNumber)be64_get(padded) << 64 | be64_get(padded + 8);
}

static void number_bytes(EpkNumber number, uint8_t out[EPK_HASH_BYTES])
{
    be64_put(out, (uint64_t)(number >> 64));
    be64_put(out + 8, (uint64_t)number);
}

/* The cuts that are found, each after the one before it. */
typedef struct CutList {
    Arena *arena;
    Slice last; /* the range's lower bound, then the newest cut */
    Slice max;
    Slice *texts;
    size_t count;
} CutList;

static void add_cut(CutList *list, const uint8_t *bytes, size_t len)
{
    Slice cut = slice_make(bytes, len);
    if (slice_compare(cut, list->last) <= 0 || slice_compare(cut, list->max) >= 0)
        return;
    list->last = arena_copy(list->arena, cut);
    list->texts[list->count++] = epk_text(list->arena, cut);
}

static void cut_v1(CutList *list, uint32_t parts)
{
    double low = epk_fraction(PARTITION_HASH_V1, list->last) * 0x1p32;
    double high = epk_fraction(PARTITION_HASH_V1, list->max) * 0x1p32;
    for (uint32_t i = 1; i < parts; i++) {
        uint8_t bytes[EPK_NUMBER_BYTES_MAX];
        size_t len = epk_encode_number((double)(uint64_t)(low + (high - low) / parts * i), bytes);
        add_cut(list, bytes, len);
    }
}

/* Cuts the component that follows the first 'depth' ones of the lower bound. */
static void cut_component(CutList *list, uint32_t parts, size_t depth)
{
    Slice min = list->last;
    uint8_t bytes[EPK_BYTES_MAX] = {0};
    size_t prefix = depth * EPK_HASH_BYTES;
    if (min.len > 0)
        memcpy(bytes, min.ptr, min.len < prefix ? min.len : prefix);
    bool has_max = list->max.len > prefix && memcmp(list->max.ptr, bytes, prefix) == 0;
    EpkNumber low = min.len > prefix ? epk_number(slice_from(min, prefix)) : 0;
    EpkNumber high = has_max ? epk_number(slice_from(list->max, prefix)) : EPK_NUMBERS_END;
    if (high > EPK_NUMBERS_END && low < EPK_NUMBERS_END)
        high = EPK_NUMBERS_END; /* no hash is above */
    if (high <= low || high - low < parts)
        return;
    for (uint32_t i = 1; i < parts; i++) {
        number_bytes(low + (high - low) / parts * i, bytes + prefix);
        add_cut(list, bytes, prefix + EPK_HASH_BYTES);
    }
}

size_t epk_cuts(Arena *arena, PartitionKind kind, Slice min, Slice max, uint32_t parts,
                Slice *texts)
{
    CutList list = {.arena = arena, .last = min, .max = max, .texts = texts};
    size_t depths = kind == PARTITION_MULTI_HASH ? PARTITION_KEY_PATHS_MAX : 1;
    if (kind == PARTITION_HASH_V1)
        cut_v1(&list, parts);
    else if (kind != PARTITION_NONE)
        for (size_t depth = 0; depth < depths && list.count == 0; depth++)
            cut_component(&list, parts, depth);
    return list.count;
}

/* ---- bounds ---- */

static Slice hash_v2_bound(Arena *arena, uint32_t index, uint32_t count)
{
    return epk_number_text(arena, (EPK_NUMBERS_END - 1) / count * index);
}

Slice epk_number_text(Arena *arena, EpkNumber number)
{
    uint8_t bytes[EPK_HASH_BYTES];
    number_bytes(number, bytes);
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
