/* set.c - what queries do with sets: see set.h.
 *
 * Two sets are walked chunk by chunk, side by side; of two chunks with the same 'high' each pair of
 * forms has its own loop. A result is made in scratch memory first and then copied in the form that
 * fits its size (I5), so that a small intersection of two large sets takes little memory.
 */
#include "index/set_int.h"

/* ---- two chunks ---- */

/* A chunk of the result while it is made. */
typedef struct Made {
    SetScratch scratch;
    size_t count;
    bool is_bitmap;
} Made;

static void make_array(Made *made, size_t count)
{
    made->is_bitmap = false;
    made->count = count;
}

static void make_bits(Made *made, size_t count)
{
    made->is_bitmap = true;
    made->count = count;
}

static void chunk_and(const SetChunk *a, const SetChunk *b, Made *made)
{
    if (a->is_bitmap && b->is_bitmap)
        make_bits(made, bits_combine(BITS_AND, made->scratch.bits, a->bits, b->bits));
    else if (a->is_bitmap)
        make_array(made, array_and_bits(b->array, b->count, a->bits, made->scratch.array));
    else if (b->is_bitmap)
        make_array(made, array_and_bits(a->array, a->count, b->bits, made->scratch.array));
    else
        make_array(made, array_and(a->array, a->count, b->array, b->count, made->scratch.array));
}

static size_t chunk_and_count(const SetChunk *a, const SetChunk *b)
{
    if (a->is_bitmap && b->is_bitmap)
        return bits_and_count(a->bits, b->bits);
    if (a->is_bitmap)
        return array_and_bits_count(b->array, b->count, a->bits);
    if (b->is_bitmap)
        return array_and_bits_count(a->array, a->count, b->bits);
    return array_and_count(a->array, a->count, b->array, b->count);
}

static void load_bits(uint64_t *bits, const SetChunk *chunk)
{
    if (chunk->is_bitmap) {
        memcpy(bits, chunk->bits, SET_BITMAP_BYTES);
        return;
    }
    memset(bits, 0, SET_BITMAP_BYTES);
    bits_add(bits, chunk->array, chunk->count);
}

static void chunk_minus(const SetChunk *a, const SetChunk *b, Made *made)
{
    if (a->is_bitmap && b->is_bitmap) {
        make_bits(made, bits_combine(BITS_MINUS, made->scratch.bits, a->bits, b->bits));
    } else if (a->is_bitmap) {
        load_bits(made->scratch.bits, a);
        bits_remove(made->scratch.bits, b->array, b->count);
        make_bits(made, bits_count(made->scratch.bits));
    } else if (b->is_bitmap) {
        make_array(made, array_minus_bits(a->array, a->count, b->bits, made->scratch.array));
    } else {
        make_array(made, array_minus(a->array, a->count, b->array, b->count, made->scratch.array));
    }
}

/* ---- a set in the making ---- */

typedef struct Result {
    Arena *arena;
    SetChunk *chunks;
    NumberSet set;
} Result;

static Result result_begin(Arena *arena, size_t chunks_max)
{
    return (Result){.arena = arena, .chunks = arena_alloc(arena, chunks_max * sizeof(SetChunk))};
}

static void result_chunk(Result *result, SetChunk chunk)
{
    ASSERT(chunk.count > 0); /* I5 */
    size_t count = result->set.chunk_count;
    ASSERT(count == 0 || result->chunks[count - 1].high < chunk.high);
    result->chunks[result->set.chunk_count++] = chunk;
    result->set.count += chunk.count;
}

static void result_made(Result *result, uint64_t high, const Made *made)
{
    if (made->count == 0)
        return;
    if (made->is_bitmap) {
        result_chunk(result,
                     set_chunk_from_bits(result->arena, high, made->scratch.bits, made->count));
        return;
    }
    Slice bytes = slice_make(made->scratch.array, made->count * sizeof(uint16_t));
    result_chunk(result,
                 (SetChunk){.high = high,
                            .count = (uint32_t)made->count,
                            .array = (const uint16_t *)arena_copy(result->arena, bytes).ptr});
}

static void result_copy(Result *result, const SetChunk *chunk)
{
    SetChunk copy = *chunk;
    if (chunk->is_bitmap)
        copy.bits =
            (const uint64_t *)arena_copy(result->arena, slice_make(chunk->bits, SET_BITMAP_BYTES))
                .ptr;
    else
        copy.array =
            (const uint16_t *)arena_copy(
                result->arena, slice_make(chunk->array, chunk->count * sizeof(*chunk->array)))
                .ptr;
    result_chunk(result, copy);
}

static void result_end(const Result *result, NumberSet *out)
{
    *out = result->set;
    out->chunks = result->chunks;
}

/* ---- sets ---- */

/* The first chunk from 'from' on whose 'high' is at least this. Cheap when it is near. */
static size_t find_chunk(const NumberSet *set, size_t from, uint64_t high)
{
    size_t low = from;
    size_t end = from;
    for (size_t stride = 1; end < set->chunk_count && set->chunks[end].high < high; stride *= 2) {
        low = end + 1;
        end += stride;
    }
    if (end > set->chunk_count)
        end = set->chunk_count;
    while (low < end) {
        size_t middle = low + (end - low) / 2;
        if (set->chunks[middle].high < high)
            low = middle + 1;
        else
            end = middle;
    }
    return low;
}

/* Moves both to the next 'high' that they have in common; false if there is none. */
static bool find_common(const NumberSet *a, const NumberSet *b, size_t *i, size_t *j)
{
    while (*i < a->chunk_count && *j < b->chunk_count) {
        uint64_t x = a->chunks[*i].high;
        uint64_t y = b->chunks[*j].high;
        if (x == y)
            return true;
        if (x < y)
            *i = find_chunk(a, *i, y);
        else
            *j = find_chunk(b, *j, x);
    }
    return false;
}

void set_and(Arena *arena, const NumberSet *a, const NumberSet *b, NumberSet *out)
{
    size_t fewer = a->chunk_count < b->chunk_count ? a->chunk_count : b->chunk_count;
    Result result = result_begin(arena, fewer);
    Made made;
    for (size_t i = 0, j = 0; find_common(a, b, &i, &j); i++, j++) {
        chunk_and(&a->chunks[i], &b->chunks[j], &made);
        result_made(&result, a->chunks[i].high, &made);
    }
    result_end(&result, out);
}

uint64_t set_and_count(const NumberSet *a, const NumberSet *b)
{
    uint64_t count = 0;
    for (size_t i = 0, j = 0; find_common(a, b, &i, &j); i++, j++)
        count += chunk_and_count(&a->chunks[i], &b->chunks[j]);
    return count;
}

void set_minus(Arena *arena, const NumberSet *a, const NumberSet *b, NumberSet *out)
{
    Result result = result_begin(arena, a->chunk_count);
    Made made;
    size_t j = 0;
    for (size_t i = 0; i < a->chunk_count; i++) {
        const SetChunk *chunk = &a->chunks[i];
        j = find_chunk(b, j, chunk->high);
        if (j == b->chunk_count || b->chunks[j].high != chunk->high) {
            result_copy(&result, chunk);
            continue;
        }
        chunk_minus(chunk, &b->chunks[j], &made);
        result_made(&result, chunk->high, &made);
    }
    result_end(&result, out);
}

bool set_has(const NumberSet *set, uint64_t number)
{
    uint64_t high = number >> SET_CHUNK_BITS;
    uint16_t low = (uint16_t)number;
    size_t at = find_chunk(set, 0, high);
    if (at == set->chunk_count || set->chunks[at].high != high)
        return false;
    const SetChunk *chunk = &set->chunks[at];
    if (chunk->is_bitmap)
        return bits_has(chunk->bits, low);
    size_t index = array_find(chunk->array, 0, chunk->count, low);
    return index < chunk->count && chunk->array[index] == low;
}

/* ---- walks ---- */

/* Going up, 'at' is the first place that has not been looked at. Going down, it is the one after
 * that, so that 0 means the end, and no value is a special case. */

static uint32_t chunk_end(const SetChunk *chunk)
{
    return chunk->is_bitmap ? SET_CHUNK_NUMBERS : chunk->count;
}

SetWalk set_walk_up(const NumberSet *set, uint64_t from)
{
    uint64_t high = from >> SET_CHUNK_BITS;
    SetWalk walk = {.set = set, .chunk = find_chunk(set, 0, high)};
    walk.is_finished = walk.chunk == set->chunk_count;
    if (!walk.is_finished && set->chunks[walk.chunk].high == high) {
        const SetChunk *chunk = &set->chunks[walk.chunk];
        uint16_t low = (uint16_t)from;
        walk.at = chunk->is_bitmap ? low : (uint32_t)array_find(chunk->array, 0, chunk->count, low);
    }
    return walk;
}

SetWalk set_walk_down(const NumberSet *set, uint64_t from)
{
    uint64_t high = from >> SET_CHUNK_BITS;
    size_t at = find_chunk(set, 0, high);
    SetWalk walk = {.set = set, .chunk = at, .is_down = true};
    if (at < set->chunk_count && set->chunks[at].high == high) {
        const SetChunk *chunk = &set->chunks[at];
        uint16_t low = (uint16_t)from;
        if (chunk->is_bitmap) {
            walk.at = (uint32_t)low + 1;
        } else {
            size_t index = array_find(chunk->array, 0, chunk->count, low);
            walk.at = (uint32_t)(index + (index < chunk->count && chunk->array[index] == low));
        }
    } else if (at > 0) {
        walk.chunk = at - 1;
        walk.at = chunk_end(&set->chunks[at - 1]);
    } else {
        walk.is_finished = true;
    }
    return walk;
}

/* The first bit at or after 'at'; SET_CHUNK_NUMBERS if there is none. */
static uint32_t bit_up(const uint64_t *bits, uint32_t at)
{
    if (at >= SET_CHUNK_NUMBERS)
        return SET_CHUNK_NUMBERS;
    size_t i = at / 64;
    uint64_t word = bits[i] & (UINT64_MAX << (at % 64));
    while (word == 0 && ++i < SET_WORDS)
        word = bits[i];
    return word == 0 ? SET_CHUNK_NUMBERS : (uint32_t)(i * 64) + (uint32_t)__builtin_ctzll(word);
}

/* The last bit before 'at', plus one; 0 if there is none. */
static uint32_t bit_down(const uint64_t *bits, uint32_t at)
{
    if (at == 0)
        return 0;
    size_t i = (at - 1) / 64;
    uint64_t word = bits[i] & (UINT64_MAX >> (63 - (at - 1) % 64));
    while (word == 0 && i > 0)
        word = bits[--i];
    return word == 0 ? 0 : (uint32_t)(i * 64) + 64 - (uint32_t)__builtin_clzll(word);
}

static bool next_up(SetWalk *walk, const SetChunk *chunk, uint16_t *low)
{
    uint32_t at = chunk->is_bitmap ? bit_up(chunk->bits, walk->at) : walk->at;
    if (at >= chunk_end(chunk))
        return false;
    *low = chunk->is_bitmap ? (uint16_t)at : chunk->array[at];
    walk->at = at + 1;
    return true;
}

static bool next_down(SetWalk *walk, const SetChunk *chunk, uint16_t *low)
{
    uint32_t at = chunk->is_bitmap ? bit_down(chunk->bits, walk->at) : walk->at;
    if (at == 0)
        return false;
    walk->at = at - 1;
    *low = chunk->is_bitmap ? (uint16_t)walk->at : chunk->array[walk->at];
    return true;
}

/* Moves to the next chunk in the direction of the walk. */
static void leave_chunk(SetWalk *walk)
{
    if (walk->is_down) {
        walk->is_finished = walk->chunk == 0;
        if (!walk->is_finished)
            walk->at = chunk_end(&walk->set->chunks[--walk->chunk]);
    } else {
        walk->is_finished = ++walk->chunk == walk->set->chunk_count;
        walk->at = 0;
    }
}

bool set_walk_next(SetWalk *walk, uint64_t *number)
{
    while (!walk->is_finished) {
        const SetChunk *chunk = &walk->set->chunks[walk->chunk];
        uint16_t low = 0;
        if (walk->is_down ? next_down(walk, chunk, &low) : next_up(walk, chunk, &low)) {
            *number = chunk->high << SET_CHUNK_BITS | low;
            return true;
        }
        leave_chunk(walk);
    }
    return false;
}
