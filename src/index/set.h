/* set.h - sets of item numbers: as they are stored, and as queries work on them.
 *
 * An item number is 64 bits; the low 16 are its place in its chunk. A chunk is stored as one value,
 * and changed without being read: a writer that adds or removes a number writes an operand, and the
 * store merges operands into values when it reads or compacts (set_merge).
 *
 *     value   = | 0 u8 | u16 LE ... |                     sorted numbers, at most SET_ARRAY_MAX
 *             / | 1 u8 | 8192 bytes |                     a bit per number
 *             / nothing                                   the empty set
 *     operand = | 2 u8 | adds u16 LE | u16 LE ... | u16 LE ... |    sorted: to add, to remove
 *             / | 3 u8 | 8192 bytes | 8192 bytes |        the same as bits, when that is smaller
 *
 * A NumberSet is a set in memory, over all chunks: queries intersect, unite and count them.
 *
 * Ownership  A NumberSet's memory is in the arena that it was made with; results of the operations
 *            are made in the arena given and share nothing with their operands.
 * Threads    Nothing here has state.
 * Bounds     A chunk takes at most 8 KB, so that a set of all of a million items takes 128 KB. An
 *            operand takes at most 16 KB, however many were merged into it (I4).
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

enum {
    SET_CHUNK_BITS = 16,
    SET_ARRAY_MAX = 4096, /* beyond it a bitmap is smaller */
    SET_BITMAP_BYTES = 8192,
};

/* ---- stored chunks ---- */

/* Writes an operand; both lists are sorted, without repetition, and have no number in common. */
void set_operand(Buf *out, const uint16_t *adds, size_t add_count, const uint16_t *removes,
                 size_t remove_count);

/* Applies operands, oldest first, to 'existing' (its pointer is NULL if there is none) and writes a
 * value, or, with 'is_partial', one operand that does what all of them do. False if the bytes are
 * damaged (I6): the store then reports the key as corrupt. Fits StoreMerge. */
bool set_merge(Slice existing, const Slice *operands, size_t count, bool is_partial, Buf *out);

/* Whether a stored value is the empty set, which need not be kept. */
bool set_value_is_empty(Slice value);

/* How many numbers a stored value has; SIZE_MAX if it is damaged. */
size_t set_value_count(Slice value);

/* ---- sets in memory ---- */

typedef struct SetChunk {
    uint64_t high;  /* number >> SET_CHUNK_BITS */
    uint32_t count; /* at least 1 */
    bool is_bitmap;
    union {
        const uint16_t *array; /* sorted */
        const uint64_t *bits;  /* SET_BITMAP_BYTES */
    };
} SetChunk;

typedef struct NumberSet {
    const SetChunk *chunks; /* by 'high', without empty ones */
    size_t chunk_count;
    uint64_t count; /* of numbers */
} NumberSet;

/* Makes the union of chunks, numbers and sets that are added in any order, also repeatedly. */
typedef struct SetBuilder SetBuilder;
SetBuilder *set_builder_new(Arena *arena);
MUST_USE Status set_builder_add_value(SetBuilder *b, uint64_t high, Slice value, Error *err);
void set_builder_add(SetBuilder *b, uint64_t number);
void set_builder_add_set(SetBuilder *b, const NumberSet *set);
size_t set_builder_bytes(const SetBuilder *b); /* what it holds, for the caller's budget */
void set_builder_finish(SetBuilder *b, NumberSet *out);

void set_and(Arena *arena, const NumberSet *a, const NumberSet *b, NumberSet *out);
void set_minus(Arena *arena, const NumberSet *a, const NumberSet *b, NumberSet *out);
bool set_has(const NumberSet *set, uint64_t number);

/* How many numbers the two have in common; makes no set. */
uint64_t set_and_count(const NumberSet *a, const NumberSet *b);

/* Walks a set up or down. */
typedef struct SetWalk {
    const NumberSet *set;
    size_t chunk;
    uint32_t at; /* in the chunk: an index of its array, or a bit */
    bool is_down;
    bool is_finished;
} SetWalk;
SetWalk set_walk_up(const NumberSet *set, uint64_t from);   /* from the first number >= 'from' */
SetWalk set_walk_down(const NumberSet *set, uint64_t from); /* from the last number <= 'from' */
bool set_walk_next(SetWalk *walk, uint64_t *number);
