/* terms_int.h - terms while they are collected: by the walk over a document, and by a batch.
 *
 * A document is walked into entries. Most are sure to be different from each other, because each
 * property has a path of its own; those that an array leads to, and those of both sides when one
 * document replaces another, are loose: they are sorted and settled first.
 *
 * Ownership  Everything lives in the collector's arena.
 */
#pragma once

#include "index/terms.h"

/* Who wants a term: a client, who pays for it (see terms_batch_values), or nobody in particular. */
typedef enum EntryKind { ENTRY_PAID, ENTRY_FREE, ENTRY_SAMPLE } EntryKind;

typedef struct Entry {
    TermPath path;
    uint64_t prefix; /* the first eight bytes of the value, zeros behind a shorter one: comparing
                        these two numbers decides nearly always */
    const char *value;
    uint32_t item; /* whose it is: an index of the batch's numbers */
    uint16_t len;
    int8_t sign;  /* +1: the item gets the term, -1: it had it */
    uint8_t kind; /* EntryKind */
} Entry;
static_assert(sizeof(Entry) == 32, "entries are sorted as they are, so they should stay small");
static_assert(TERM_VALUE_BYTES_MAX <= UINT16_MAX, "the length of a value is kept in a u16");

typedef struct EntryList {
    Entry *entries;
    size_t count;
    size_t capacity;
} EntryList;

/* Sorts by path, value and numbers[item]; equal ones keep their order. 'scratch' has room for as
 * many. Returns the one of the two that has the result. */
Entry *entries_sort(Entry *entries, Entry *scratch, size_t count, const uint64_t *numbers);

static inline bool entries_same_term(const Entry *a, const Entry *b)
{
    return a->path == b->path && a->prefix == b->prefix && a->len == b->len &&
           (a->len <= sizeof(a->prefix) || memcmp(a->value, b->value, a->len) == 0);
}

/* Loose entries that were seen last, by their terms: long arrays of a few values stay short. */
enum { COLLECT_RECENT_BITS = 8, COLLECT_RECENT = 1 << COLLECT_RECENT_BITS };

/* Elements of arrays that one composite index has terms for in one item; see terms.h. */
enum { COMPOSITE_ELEMENTS_MAX = 256 };

typedef struct Collector {
    Arena *arena;
    HashKey key;
    EntryList sure;
    EntryList loose;
    Entry *scratch; /* as large as 'loose' */
    Buf values;     /* in the arena, so it is never full and never freed */
    uint32_t recent[COLLECT_RECENT];

    /* Of the document at hand. */
    const IndexPolicy *policy;
    uint32_t item;
    int8_t sign;
    bool all_loose;
    bool is_always; /* the value at hand is indexed whatever the policy says */
    uint32_t arrays_open;
} Collector;

void collect_init(Collector *c, Arena *arena, HashKey key);

/* The terms of a document under c->policy. */
void collect_document(Collector *c, Json document, const TermSystem *system);

/* Those in which two documents under c->policy may differ, with both signs: all of them loose. */
void collect_difference(Collector *c, Json old_document, const TermSystem *old_system,
                        Json new_document, const TermSystem *new_system);

/* For the files of the walk: the value is what stands in c->values from 'start' on. */
size_t collect_begin(Collector *c);
void collect_end(Collector *c, TermPath path, size_t start);
void collect_tag(Collector *c, TermPath path, TermTag tag);

/* Terms of composite and of spatial indexes: terms_kinds.c. */
void collect_composites(Collector *c, Json document, const TermSystem *system);
void collect_spatials(Collector *c, Json document);

/* Brings the loose entries in order and takes repetitions out; those with both signs, too, if
 * 'is_final'. */
void collect_settle(Collector *c, bool is_final);

/* One more at the end of the list. */
void entries_push(Arena *arena, EntryList *list, const Entry *entry);
