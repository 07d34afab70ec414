/* set_int.h - one chunk at a time: words of bits and sorted arrays, for the files of this folder.
 *
 * Arrays are sorted and without repetition. array_load() checks that for bytes from a store (I6).
 */
#pragma once

#include "index/set.h"

enum {
    SET_CHUNK_NUMBERS = 1 << SET_CHUNK_BITS,
    SET_WORDS = SET_BITMAP_BYTES / 8,
};
static_assert(SET_WORDS * 64 == SET_CHUNK_NUMBERS, "a bitmap has a bit per number");
static_assert(SET_ARRAY_MAX * 2 == SET_BITMAP_BYTES, "beyond it a bitmap is smaller");

/* Room for the numbers of one chunk in either form. */
typedef union SetScratch {
    uint64_t bits[SET_WORDS];
    uint16_t array[SET_ARRAY_MAX];
} SetScratch;

/* ---- bits; 'bits' always has SET_WORDS ---- */

typedef enum BitsOp { BITS_AND, BITS_MINUS } BitsOp;

/* out = a op b; returns how many bits that has. 'out' may be 'a' or 'b'. */
size_t bits_combine(BitsOp op, uint64_t *out, const uint64_t *a, const uint64_t *b);
size_t bits_count(const uint64_t *bits);
size_t bits_and_count(const uint64_t *a, const uint64_t *b);

void bits_add(uint64_t *bits, const uint16_t *array, size_t count);
void bits_remove(uint64_t *bits, const uint16_t *array, size_t count);
size_t bits_to_array(const uint64_t *bits, uint16_t *out); /* returns how many */

static inline bool bits_has(const uint64_t *bits, uint16_t number)
{
    return bits[number >> 6] >> (number & 63) & 1;
}

/* ---- sorted arrays; each returns how many numbers it wrote ---- */

size_t array_and(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count,
                 uint16_t *out);
size_t array_and_bits(const uint16_t *a, size_t count, const uint64_t *bits, uint16_t *out);
size_t array_or(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count,
                uint16_t *out);

/* 'out' may be 'a'. */
size_t array_minus(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count,
                   uint16_t *out);
size_t array_minus_bits(const uint16_t *a, size_t count, const uint64_t *bits, uint16_t *out);

/* How many numbers two arrays, or an array and a bitmap, have in common. */
size_t array_and_count(const uint16_t *a, size_t a_count, const uint16_t *b, size_t b_count);
size_t array_and_bits_count(const uint16_t *a, size_t count, const uint64_t *bits);

/* The first index from 'from' on whose number is at least 'number'; 'count' if there is none. Cheap
 * when it is near. */
size_t array_find(const uint16_t *array, size_t from, size_t count, uint16_t number);

/* Copies numbers as they are stored. False if they are not sorted. */
bool array_load(uint16_t *out, const char *stored, size_t count);

/* ---- chunks ---- */

/* A stored value, taken apart. An empty one is an array of nothing. */
typedef struct StoredSet {
    const char *at; /* unaligned */
    size_t count;   /* of an array */
    bool is_bitmap;
} StoredSet;
bool set_value_open(Slice value, StoredSet *out);

/* The error of a stored value that is no set. */
MUST_USE Status set_value_damaged(Slice value, Error *err);

/* Copies a stored value into 'arena' as a chunk, whose count may be 0. False if the value is
 * damaged. */
bool set_chunk_load(Arena *arena, uint64_t high, Slice value, SetChunk *out);

/* Makes a chunk of bits, of which 'count' are set, in its smaller form in 'arena' (I5). */
SetChunk set_chunk_from_bits(Arena *arena, uint64_t high, const uint64_t *bits, size_t count);
