/* set_value.c - chunks as they are stored, and how operands change them: see set.h.
 *
 * A store merges every key that it reads and has not compacted yet, so the common cases must be
 * cheap: a handful of numbers is merged as sorted arrays. Larger sets are merged as bitmaps, where
 * each number of each operand costs one step, whatever the number of operands.
 *
 * I3: however operands are grouped, the same bytes result, because each set has one stored form.
 */
#include "index/set_int.h"

enum {
    KIND_ARRAY = 0,
    KIND_BITMAP = 1,
    KIND_CHANGES = 2,
    KIND_WIDE_CHANGES = 3,

    WIDE_BYTES = 1 + 2 * SET_BITMAP_BYTES,

    /* With more numbers than this the wide form of an operand is the smaller one. */
    CHANGES_MAX = (WIDE_BYTES - 3) / 2,

    /* Up to this many numbers times operands, arrays are faster than bitmaps. */
    SMALL_STEPS_MAX = 2048,
};

/* ---- values ---- */

bool set_value_open(Slice value, StoredSet *out)
{
    if (value.len == 0) {
        *out = (StoredSet){0};
        return true;
    }
    if (value.ptr[0] == KIND_BITMAP) {
        *out = (StoredSet){.at = value.ptr + 1, .is_bitmap = true};
        return value.len == 1 + SET_BITMAP_BYTES;
    }
    *out = (StoredSet){.at = value.ptr + 1, .count = (value.len - 1) / 2};
    return value.ptr[0] == KIND_ARRAY && value.len % 2 == 1 && out->count <= SET_ARRAY_MAX;
}

Status set_value_damaged(Slice value, Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE,
                     "a chunk of the index is damaged: its %zu bytes are no set", value.len);
}

bool set_value_is_empty(Slice value)
{
    StoredSet set;
    if (!set_value_open(value, &set))
        return false;
    if (!set.is_bitmap)
        return set.count == 0;
    /* The store calls this for every value that it reads. It usually ends at one of the first bytes
     * of a bitmap. */
    for (size_t i = 0; i < SET_BITMAP_BYTES; i++) {
        if (set.at[i] != 0)
            return false;
    }
    return true;
}

size_t set_value_count(Slice value)
{
    StoredSet set;
    if (!set_value_open(value, &set))
        return SIZE_MAX;
    if (!set.is_bitmap)
        return set.count;
    uint64_t bits[SET_WORDS];
    memcpy(bits, set.at, sizeof(bits));
    return bits_count(bits);
}

SetChunk set_chunk_from_bits(Arena *arena, uint64_t high, const uint64_t *bits, size_t count)
{
    ASSERT(count <= SET_CHUNK_NUMBERS);
    DEBUG_ASSERT(count == bits_count(bits));
    SetChunk chunk = {.high = high, .count = (uint32_t)count, .is_bitmap = count > SET_ARRAY_MAX};
    if (chunk.is_bitmap) {
        chunk.bits = (const uint64_t *)arena_copy(arena, slice_make(bits, SET_BITMAP_BYTES)).ptr;
    } else {
        uint16_t *array = arena_alloc(arena, count * sizeof(*array));
        (void)bits_to_array(bits, array);
        chunk.array = array;
    }
    return chunk;
}

bool set_chunk_load(Arena *arena, uint64_t high, Slice value, SetChunk *out)
{
    StoredSet set;
    if (!set_value_open(value, &set))
        return false;
    if (set.is_bitmap) {
        uint64_t bits[SET_WORDS];
        memcpy(bits, set.at, sizeof(bits));
        *out = set_chunk_from_bits(arena, high, bits, bits_count(bits));
        return true;
    }
    uint16_t *array = arena_alloc(arena, set.count * sizeof(*array));
    *out = (SetChunk){.high = high, .count = (uint32_t)set.count, .array = array};
    return array_load(array, set.at, set.count);
}

static void write_numbers(Buf *out, const uint16_t *array, size_t count)
{
    buf_bytes(out, array, count * sizeof(*array));
}

static void write_array(Buf *out, const uint16_t *array, size_t count)
{
    if (count > 0) {
        buf_byte(out, KIND_ARRAY);
        write_numbers(out, array, count);
    }
}

static void write_bits(Buf *out, const uint64_t *bits)
{
    size_t count = bits_count(bits);
    if (count > SET_ARRAY_MAX) {
        buf_byte(out, KIND_BITMAP);
        buf_bytes(out, bits, SET_BITMAP_BYTES);
    } else {
        uint16_t array[SET_ARRAY_MAX];
        write_array(out, array, bits_to_array(bits, array));
    }
}

/* ---- operands ---- */

static void write_wide(Buf *out, const uint64_t *adds, const uint64_t *removes)
{
    buf_byte(out, KIND_WIDE_CHANGES);
    buf_bytes(out, adds, SET_BITMAP_BYTES);
    buf_bytes(out, removes, SET_BITMAP_BYTES);
}

void set_operand(Buf *out, const uint16_t *adds, size_t add_count, const uint16_t *removes,
                 size_t remove_count)
{
    ASSERT(add_count + remove_count <= SET_CHUNK_NUMBERS);
    DEBUG_ASSERT(array_and_count(adds, add_count, removes, remove_count) == 0);
    if (add_count + remove_count > CHANGES_MAX) {
        uint64_t add_bits[SET_WORDS] = {0};
        uint64_t remove_bits[SET_WORDS] = {0};
        bits_add(add_bits, adds, add_count);
        bits_add(remove_bits, removes, remove_count);
        write_wide(out, add_bits, remove_bits);
        return;
    }
    uint16_t stored_count = (uint16_t)add_count;
    buf_byte(out, KIND_CHANGES);
    write_numbers(out, &stored_count, 1);
    write_numbers(out, adds, add_count);
    write_numbers(out, removes, remove_count);
}

static void write_operand_bits(Buf *out, const uint64_t *adds, const uint64_t *removes)
{
    if (bits_count(adds) + bits_count(removes) > CHANGES_MAX) {
        write_wide(out, adds, removes);
        return;
    }
    uint16_t add_array[CHANGES_MAX];
    uint16_t remove_array[CHANGES_MAX];
    size_t add_count = bits_to_array(adds, add_array);
    size_t remove_count = bits_to_array(removes, remove_array);
    set_operand(out, add_array, add_count, remove_array, remove_count);
}

/* An operand's parts, unaligned. */
typedef struct Operand {
    const char *adds;
    const char *removes;
    size_t add_count; /* both 0 if it is wide */
    size_t remove_count;
    bool is_wide;
} Operand;

static bool operand_open(Slice bytes, Operand *out)
{
    if (bytes.len == WIDE_BYTES && bytes.ptr[0] == KIND_WIDE_CHANGES) {
        *out = (Operand){
            .adds = bytes.ptr + 1, .removes = bytes.ptr + 1 + SET_BITMAP_BYTES, .is_wide = true};
        return true;
    }
    if (bytes.len < 3 || bytes.ptr[0] != KIND_CHANGES || bytes.len % 2 == 0)
        return false;
    uint16_t add_count;
    memcpy(&add_count, bytes.ptr + 1, sizeof(add_count));
    size_t total = (bytes.len - 3) / 2;
    *out = (Operand){.adds = bytes.ptr + 3,
                     .removes = bytes.ptr + 3 + 2 * (size_t)add_count,
                     .add_count = add_count,
                     .remove_count = total - add_count};
    return total <= CHANGES_MAX && add_count <= total;
}

/* The numbers of an operand that is not wide, checked. */
typedef struct Changes {
    uint16_t *adds;
    uint16_t *removes;
    size_t add_count;
    size_t remove_count;
} Changes;

static bool load_changes(const Operand *operand, uint16_t *memory, Changes *out)
{
    *out = (Changes){.adds = memory,
                     .removes = memory + operand->add_count,
                     .add_count = operand->add_count,
                     .remove_count = operand->remove_count};
    return array_load(out->adds, operand->adds, out->add_count) &&
           array_load(out->removes, operand->removes, out->remove_count) &&
           array_and_count(out->adds, out->add_count, out->removes, out->remove_count) == 0;
}

/* ---- merging by arrays ---- */

/* Adds 'more' to 'array' and removes 'less'; returns how many are left. */
static size_t change_array(uint16_t *array, size_t count, const uint16_t *more, size_t more_count,
                           const uint16_t *less, size_t less_count)
{
    uint16_t united[SMALL_STEPS_MAX];
    size_t united_count = array_or(array, count, more, more_count, united);
    return array_minus(united, united_count, less, less_count, array);
}

static bool merge_small_value(const StoredSet *existing, const Slice *operands, size_t count,
                              Buf *out)
{
    uint16_t memory[SMALL_STEPS_MAX];
    uint16_t array[SMALL_STEPS_MAX];
    size_t array_count = existing->count;
    if (!array_load(array, existing->at, array_count))
        return false;
    for (size_t i = 0; i < count; i++) {
        Operand operand;
        Changes c;
        if (!operand_open(operands[i], &operand) || !load_changes(&operand, memory, &c))
            return false;
        array_count =
            change_array(array, array_count, c.adds, c.add_count, c.removes, c.remove_count);
    }
    write_array(out, array, array_count);
    return true;
}

static bool merge_small_operands(const Slice *operands, size_t count, Buf *out)
{
    uint16_t memory[SMALL_STEPS_MAX];
    uint16_t adds[SMALL_STEPS_MAX];
    uint16_t removes[SMALL_STEPS_MAX];
    size_t add_count = 0;
    size_t remove_count = 0;
    for (size_t i = 0; i < count; i++) {
        Operand operand;
        Changes c;
        if (!operand_open(operands[i], &operand) || !load_changes(&operand, memory, &c))
            return false;
        add_count = change_array(adds, add_count, c.adds, c.add_count, c.removes, c.remove_count);
        remove_count =
            change_array(removes, remove_count, c.removes, c.remove_count, c.adds, c.add_count);
    }
    set_operand(out, adds, add_count, removes, remove_count);
    return true;
}

/* ---- merging by bitmaps ---- */

/* Applies one operand to 'bits', and the opposite to 'removed', which may be NULL. */
static bool apply_wide(const Operand *operand, uint64_t *bits, uint64_t *removed)
{
    for (size_t i = 0; i < SET_WORDS; i++) {
        uint64_t add;
        uint64_t remove;
        memcpy(&add, operand->adds + 8 * i, sizeof(add));
        memcpy(&remove, operand->removes + 8 * i, sizeof(remove));
        if ((add & remove) != 0)
            return false;
        bits[i] = (bits[i] | add) & ~remove;
        if (removed != NULL)
            removed[i] = (removed[i] | remove) & ~add;
    }
    return true;
}

static bool apply_operand(Slice bytes, uint64_t *bits, uint64_t *removed)
{
    Operand operand;
    if (!operand_open(bytes, &operand))
        return false;
    if (operand.is_wide)
        return apply_wide(&operand, bits, removed);
    uint16_t memory[CHANGES_MAX];
    Changes c;
    if (!load_changes(&operand, memory, &c))
        return false;
    bits_add(bits, c.adds, c.add_count);
    bits_remove(bits, c.removes, c.remove_count);
    if (removed != NULL) {
        bits_add(removed, c.removes, c.remove_count);
        bits_remove(removed, c.adds, c.add_count);
    }
    return true;
}

static bool load_bits(const StoredSet *existing, uint64_t *bits)
{
    if (existing->is_bitmap) {
        memcpy(bits, existing->at, SET_BITMAP_BYTES);
        return true;
    }
    uint16_t array[SET_ARRAY_MAX];
    memset(bits, 0, SET_BITMAP_BYTES);
    if (!array_load(array, existing->at, existing->count))
        return false;
    bits_add(bits, array, existing->count);
    return true;
}

static bool merge_value(const StoredSet *existing, const Slice *operands, size_t count, Buf *out)
{
    uint64_t bits[SET_WORDS];
    if (!load_bits(existing, bits))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!apply_operand(operands[i], bits, NULL))
            return false;
    }
    write_bits(out, bits);
    return true;
}

static bool merge_operands(const Slice *operands, size_t count, Buf *out)
{
    uint64_t adds[SET_WORDS] = {0};
    uint64_t removes[SET_WORDS] = {0};
    for (size_t i = 0; i < count; i++) {
        if (!apply_operand(operands[i], adds, removes))
            return false;
    }
    write_operand_bits(out, adds, removes);
    return true;
}

/* Whether all numbers fit into arrays of SMALL_STEPS_MAX, and arrays are faster. */
static bool is_small(const StoredSet *existing, const Slice *operands, size_t count)
{
    if (existing->is_bitmap || count > SMALL_STEPS_MAX)
        return false;
    size_t numbers = existing->count;
    for (size_t i = 0; i < count; i++) {
        if (operands[i].len > 2 * SMALL_STEPS_MAX)
            return false;
        numbers += operands[i].len / 2;
        if (numbers * count > SMALL_STEPS_MAX)
            return false;
    }
    return numbers <= SMALL_STEPS_MAX;
}

bool set_merge(Slice existing, const Slice *operands, size_t count, bool is_partial, Buf *out)
{
    StoredSet set = {0};
    if (!is_partial && existing.ptr != NULL && !set_value_open(existing, &set))
        return false;
    bool merged = false;
    if (is_small(&set, operands, count))
        merged = is_partial ? merge_small_operands(operands, count, out)
                            : merge_small_value(&set, operands, count, out);
    else
        merged = is_partial ? merge_operands(operands, count, out)
                            : merge_value(&set, operands, count, out);
    return merged && !buf_full(out);
}
