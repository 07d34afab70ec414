/* top_int.h - how a sketch lies in memory, for who writes it (top.c) and who reads (top_read.c). */
#pragma once

#include "throughput/top.h"

#include <stdatomic.h>

/* What an entry is about. */
typedef struct TopPlate {
    uint64_t window;    /* that it was written in: a sketch is used again without being wiped */
    uint64_t inherited; /* of its weight, from the entry whose place it took */
    uint32_t container;
    uint32_t range;
    uint8_t epk_len;
    uint8_t text_len;
    uint8_t is_cut;
    uint8_t epk[TOP_EPK_MAX];
    char text[TOP_TEXT_MAX];
    uint8_t padding; /* to a whole number of words */
} TopPlate;

#define TOP_PLATE_WORDS (sizeof(TopPlate) / sizeof(uint64_t))
static_assert(sizeof(TopPlate) % sizeof(uint64_t) == 0, "a plate is copied word by word");

typedef struct TopEntry {
    _Atomic uint32_t sequence; /* odd while the words are being written */
    uint64_t hash;             /* the writer's */
    _Atomic uint64_t weight;
    _Atomic uint64_t words[TOP_PLATE_WORDS]; /* a TopPlate */
} TopEntry;

typedef struct HeapNode {
    uint64_t weight; /* of the entry, or what it was before */
    uint32_t entry;
} HeapNode;

#define TOP_CELLS_PER_WORD 2 /* of the table; four an entry */

typedef struct Sketch {
    _Atomic uint64_t window;
    _Atomic uint32_t used; /* entries */
    TopEntry *entries;
    HeapNode *heap;  /* the writer's */
    uint64_t *table; /* the writer's */
    uint64_t *cells; /* the writer's: what keys without an entry weigh at most */
} Sketch;

struct Top {
    HashKey key; /* immutable */
    uint32_t entries_max;
    unsigned table_bits; /* the table has 2 to the power of it words */
    _Atomic(Sketch *) sketches[TOP_KINDS][TOP_WINDOWS];
};
