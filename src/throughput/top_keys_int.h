/* top_keys_int.h - a sketch in memory: top_keys.c writes it, top_keys_read.c reads it. */
#pragma once

#include "throughput/top_keys.h"

#include <stdatomic.h>

/* What an entry is about. */
typedef struct TopLabel {
    uint64_t window;    /* in which it was written: a reused sketch is not wiped */
    uint64_t inherited; /* part of its weight that it may not have had itself */
    uint32_t container;
    uint32_t range;
    uint8_t epk_len;
    uint8_t text_len;
    uint8_t is_cut;
    uint8_t epk[TOP_EPK_MAX];
    char text[TOP_TEXT_MAX];
    uint8_t padding; /* to a whole number of words */
} TopLabel;

#define TOP_LABEL_WORDS (sizeof(TopLabel) / sizeof(uint64_t))
static_assert(sizeof(TopLabel) % sizeof(uint64_t) == 0, "a label is copied word by word");

typedef struct TopEntry {
    _Atomic uint32_t sequence; /* odd while the words are being written */
    uint64_t hash;             /* the writer's */
    _Atomic uint64_t weight;
    _Atomic uint64_t words[TOP_LABEL_WORDS]; /* a TopLabel */
} TopEntry;

typedef struct HeapNode {
    uint64_t weight; /* of the entry, perhaps an older one */
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
    unsigned table_bits; /* the table has 2^table_bits words */
    _Atomic(Sketch *) sketches[TOP_KINDS][TOP_WINDOWS];
};
