/* set_build.c - a set from stored chunks and single numbers, in any order: see set.h.
 *
 * A range of unique values gives one number at a time, each of any chunk. So every chunk gathers
 * its numbers in an array, in the order in which they come, and in bits once there are many. They
 * are sorted and counted at the end.
 */
#include "index/set_int.h"

#include <stdlib.h>

enum {
    GATHER_ROOM_FIRST = 8, /* numbers: the arena's alignment leaves no less */
    GATHERS_FIRST = 8,
    INSERTION_MAX = 40, /* more numbers are sorted by way of a bitmap */
};

typedef struct Gather {
    uint64_t high;
    uint64_t *bits;  /* NULL while it is an array */
    uint16_t *array; /* if it is not sorted, it may have repetitions */
    uint32_t count;  /* of the array */
    uint32_t room;
    bool is_sorted;
} Gather;

struct SetBuilder {
    Arena *arena;
    size_t bytes;
    Gather *gathers; /* in order of arrival */
    size_t count;
    size_t room;     /* a power of two */
    uint32_t *table; /* twice 'room': index + 1 in 'gathers', by hash of 'high' */
    int hash_shift;
    size_t last; /* index of the gather that was used last */
};

static void *take(SetBuilder *b, size_t size)
{
    b->bytes += size;
    return arena_alloc(b->arena, size);
}

/* The upper bits of a multiple of the golden ratio: chunks are mostly neighbours, which this
 * spreads evenly. */
static size_t slot_of(const SetBuilder *b, uint64_t high)
{
    return (size_t)(high * UINT64_C(0x9E3779B97F4A7C15) >> b->hash_shift);
}

static void table_put(SetBuilder *b, size_t index)
{
    size_t slot = slot_of(b, b->gathers[index].high);
    while (b->table[slot] != 0)
        slot = (slot + 1) & (2 * b->room - 1);
    b->table[slot] = (uint32_t)index + 1;
}

static void make_room(SetBuilder *b, size_t room)
{
    Gather *gathers = take(b, room * sizeof(*gathers));
    if (b->count > 0)
        memcpy(gathers, b->gathers, b->count * sizeof(*gathers));
    b->gathers = gathers;
    b->room = room;
    b->hash_shift = 63 - __builtin_ctzll(room);
    b->table = take(b, 2 * room * sizeof(*b->table));
    memset(b->table, 0, 2 * room * sizeof(*b->table));
    for (size_t i = 0; i < b->count; i++)
        table_put(b, i);
}

SetBuilder *set_builder_new(Arena *arena)
{
    SetBuilder *b = ARENA_NEW(arena, SetBuilder);
    b->arena = arena;
    b->bytes = sizeof(*b);
    make_room(b, GATHERS_FIRST);
    return b;
}

size_t set_builder_bytes(const SetBuilder *b)
{
    return b->bytes;
}

static Gather *add_gather(SetBuilder *b, uint64_t high)
{
    if (b->count == b->room)
        make_room(b, 2 * b->room);
    b->last = b->count++;
    b->gathers[b->last] = (Gather){.high = high, .is_sorted = true};
    table_put(b, b->last);
    return &b->gathers[b->last];
}

static Gather *find_gather(SetBuilder *b, uint64_t high)
{
    if (b->last < b->count && b->gathers[b->last].high == high)
        return &b->gathers[b->last];
    for (size_t slot = slot_of(b, high); b->table[slot] != 0;
         slot = (slot + 1) & (2 * b->room - 1)) {
        size_t index = b->table[slot] - 1;
        if (b->gathers[index].high == high) {
            b->last = index;
            return &b->gathers[index];
        }
    }
    return add_gather(b, high);
}

static void make_bits(SetBuilder *b, Gather *gather)
{
    gather->bits = take(b, SET_BITMAP_BYTES);
    memset(gather->bits, 0, SET_BITMAP_BYTES);
    bits_add(gather->bits, gather->array, gather->count);
}

/* Makes room for 'more' numbers in the array. False if there are so many that bits are smaller. */
static bool gather_room(SetBuilder *b, Gather *gather, size_t more)
{
    size_t wanted = gather->count + more;
    if (wanted <= gather->room)
        return true;
    if (wanted > SET_ARRAY_MAX)
        return false;
    size_t room = gather->room < GATHER_ROOM_FIRST ? GATHER_ROOM_FIRST : 2 * (size_t)gather->room;
    while (room < wanted)
        room *= 2;
    if (room > SET_ARRAY_MAX || gather->count == 0) /* most often there is only one addition */
        room = wanted < GATHER_ROOM_FIRST ? GATHER_ROOM_FIRST : wanted;
    uint16_t *array = take(b, room * sizeof(*array));
    if (gather->count > 0)
        memcpy(array, gather->array, gather->count * sizeof(*array));
    gather->array = array;
    gather->room = (uint32_t)room;
    return true;
}

static void gather_number(SetBuilder *b, Gather *gather, uint16_t number)
{
    if (gather->bits == NULL && !gather_room(b, gather, 1))
        make_bits(b, gather);
    if (gather->bits != NULL) {
        bits_add(gather->bits, &number, 1);
        return;
    }
    /* Compared only while it is sorted: after that the branch cannot be predicted. */
    if (gather->is_sorted && gather->count > 0)
        gather->is_sorted = gather->array[gather->count - 1] < number;
    gather->array[gather->count++] = number;
}

static bool gather_array(SetBuilder *b, Gather *gather, const char *stored, size_t count)
{
    if (gather->bits == NULL && gather_room(b, gather, count)) {
        uint16_t *end = gather->array + gather->count;
        if (!array_load(end, stored, count))
            return false;
        if (gather->count > 0 && end[-1] >= end[0])
            gather->is_sorted = false;
        gather->count += (uint32_t)count;
        return true;
    }
    uint16_t array[SET_ARRAY_MAX];
    if (!array_load(array, stored, count))
        return false;
    if (gather->bits == NULL)
        make_bits(b, gather);
    bits_add(gather->bits, array, count);
    return true;
}

static void gather_bitmap(SetBuilder *b, Gather *gather, const char *stored)
{
    if (gather->bits == NULL)
        make_bits(b, gather);
    for (size_t i = 0; i < SET_WORDS; i++) {
        uint64_t word;
        memcpy(&word, stored + 8 * i, sizeof(word));
        gather->bits[i] |= word;
    }
}

Status set_builder_add_value(SetBuilder *b, uint64_t high, Slice value, Error *err)
{
    StoredSet set;
    bool ok = set_value_open(value, &set);
    if (ok && set.is_bitmap) {
        gather_bitmap(b, find_gather(b, high), set.at);
    } else if (ok && set.count == 1) {
        uint16_t number;
        memcpy(&number, set.at, sizeof(number));
        gather_number(b, find_gather(b, high), number);
    } else if (ok && set.count > 1) {
        ok = gather_array(b, find_gather(b, high), set.at, set.count);
    }
    return ok ? STATUS_OK : set_value_damaged(value, err);
}

void set_builder_add(SetBuilder *b, uint64_t number)
{
    gather_number(b, find_gather(b, number >> SET_CHUNK_BITS), (uint16_t)number);
}

static void gather_chunk(SetBuilder *b, const SetChunk *chunk)
{
    Gather *gather = find_gather(b, chunk->high);
    if (gather->bits == NULL && (chunk->is_bitmap || !gather_room(b, gather, chunk->count)))
        make_bits(b, gather);
    if (chunk->is_bitmap) {
        for (size_t i = 0; i < SET_WORDS; i++)
            gather->bits[i] |= chunk->bits[i];
    } else if (gather->bits != NULL) {
        bits_add(gather->bits, chunk->array, chunk->count);
    } else {
        uint16_t *end = gather->array + gather->count;
        memcpy(end, chunk->array, chunk->count * sizeof(*end));
        if (gather->count > 0 && end[-1] >= end[0])
            gather->is_sorted = false;
        gather->count += chunk->count;
    }
}

void set_builder_add_set(SetBuilder *b, const NumberSet *set)
{
    for (size_t i = 0; i < set->chunk_count; i++)
        gather_chunk(b, &set->chunks[i]);
}

static size_t sort_few(uint16_t *array, size_t count)
{
    size_t sorted = 1;
    for (size_t i = 1; i < count; i++) {
        uint16_t number = array[i];
        size_t at = sorted;
        while (at > 0 && array[at - 1] > number)
            at--;
        if (at > 0 && array[at - 1] == number)
            continue;
        memmove(array + at + 1, array + at, (sorted - at) * sizeof(*array));
        array[at] = number;
        sorted++;
    }
    return sorted;
}

static void sort_gather(Gather *gather)
{
    if (gather->count <= INSERTION_MAX) {
        gather->count = (uint32_t)sort_few(gather->array, gather->count);
        return;
    }
    uint64_t bits[SET_WORDS] = {0};
    bits_add(bits, gather->array, gather->count);
    gather->count = (uint32_t)bits_to_array(bits, gather->array);
}

/* Its count is 0 if nothing was added, or only a bitmap without a bit. */
static SetChunk finish_gather(SetBuilder *b, Gather *gather)
{
    if (gather->bits == NULL) {
        if (!gather->is_sorted)
            sort_gather(gather);
        return (SetChunk){.high = gather->high, .count = gather->count, .array = gather->array};
    }
    size_t count = bits_count(gather->bits);
    if (count <= SET_ARRAY_MAX) {
        b->bytes += count * sizeof(uint16_t);
        return set_chunk_from_bits(b->arena, gather->high, gather->bits, count);
    }
    return (SetChunk){
        .high = gather->high, .count = (uint32_t)count, .is_bitmap = true, .bits = gather->bits};
}

static int compare_gathers(const void *a, const void *b)
{
    uint64_t x = ((const Gather *)a)->high;
    uint64_t y = ((const Gather *)b)->high;
    return (x > y) - (x < y);
}

static void sort_gathers(SetBuilder *b)
{
    for (size_t i = 1; i < b->count; i++) {
        if (b->gathers[i - 1].high > b->gathers[i].high) {
            qsort(b->gathers, b->count, sizeof(*b->gathers), compare_gathers);
            return;
        }
    }
}

void set_builder_finish(SetBuilder *b, NumberSet *out)
{
    sort_gathers(b);
    SetChunk *chunks = take(b, b->count * sizeof(*chunks));
    NumberSet set = {.chunks = chunks};
    for (size_t i = 0; i < b->count; i++) {
        SetChunk chunk = finish_gather(b, &b->gathers[i]);
        if (chunk.count == 0)
            continue;
        ASSERT(set.chunk_count == 0 || chunks[set.chunk_count - 1].high < chunk.high);
        chunks[set.chunk_count++] = chunk;
        set.count += chunk.count;
    }
    *out = set;
}
