/* terms_int.h - terms while they are collected: by the walk over a document, and by a batch.
 *
 * The walk makes entries. Most are certainly different from each other ("sure"), because each
 * property has a path of its own. Those below an array, and those of both documents when one
 * replaces the other, may repeat ("loose"): collect_settle sorts them and removes repetitions.
 *
 * Ownership  Everything lives in the collector's arena.
 */
#pragma once

#include "index/terms.h"

/* Whether a term is charged: see terms_batch_values. */
typedef enum EntryKind { ENTRY_PAID, ENTRY_FREE, ENTRY_SAMPLE } EntryKind;

typedef struct Entry {
    TermPath path;
    uint64_t prefix; /* the first eight bytes of the value, with zeros after a shorter one: path and
                        prefix decide nearly every comparison */
    const char *value;
    uint32_t item; /* an index of the batch's numbers */
    uint16_t len;
    int8_t sign;  /* +1 if the item gets the term, -1 if it had it */
    uint8_t kind; /* EntryKind */
} Entry;
static_assert(sizeof(Entry) == 32, "entries are sorted as they are, so they should stay small");
static_assert(TERM_VALUE_BYTES_MAX <= UINT16_MAX, "the length of a value is kept in a u16");

typedef struct EntryList {
    Entry *entries;
    size_t count;
    size_t capacity;
} EntryList;

/* Sorts by path, value and numbers[item]; equal entries keep their order. 'scratch' has room for
 * 'count', too. Returns the one of the two that has the result. */
Entry *entries_sort(Entry *entries, Entry *scratch, size_t count, const uint64_t *numbers);

static inline bool entries_same_term(const Entry *a, const Entry *b)
{
    return a->path == b->path && a->prefix == b->prefix && a->len == b->len &&
           (a->len <= sizeof(a->prefix) || memcmp(a->value, b->value, a->len) == 0);
}

/* Slots for the newest loose entries by their terms, so that an array that repeats a few values
 * adds few entries. */
enum { COLLECT_RECENT_BITS = 8, COLLECT_RECENT = 1 << COLLECT_RECENT_BITS };

/* Terms of one composite index in one item; see terms.h. */
enum { COMPOSITE_ELEMENTS_MAX = 256 };

typedef struct Collector {
    Arena *arena;
    HashKey key;
    EntryList sure;
    EntryList loose;
    Entry *scratch; /* as large as 'loose' */
    Buf values;     /* in the arena, so it is never freed */
    uint32_t recent[COLLECT_RECENT];

    /* Of the document that is walked. */
    const IndexPolicy *policy;
    uint32_t item;
    int8_t sign;
    bool all_loose;
    bool is_always; /* the value is indexed whatever the policy says */
    uint32_t arrays_open;
} Collector;

void collect_init(Collector *c, Arena *arena, HashKey key);

/* Adds the terms of a document under c->policy. */
void collect_document(Collector *c, Json document, const TermSystem *system);

/* Adds the terms in which two documents under c->policy may differ, with both signs, as loose. */
void collect_difference(Collector *c, Json old_document, const TermSystem *old_system,
                        Json new_document, const TermSystem *new_system);

/* Add one entry: its value is appended to c->values between the two, from 'start' on. */
size_t collect_begin(Collector *c);
void collect_end(Collector *c, TermPath path, size_t start);
void collect_tag(Collector *c, TermPath path, TermTag tag);

/* Terms of composite and of spatial indexes: terms_composite_spatial.c. */
void collect_composites(Collector *c, Json document, const TermSystem *system);
void collect_spatials(Collector *c, Json document);

/* Sorts the loose entries and removes repetitions, and, if 'is_final', terms with both signs. */
void collect_settle(Collector *c, bool is_final);

/* Appends an entry to the list. */
void entries_push(Arena *arena, EntryList *list, const Entry *entry);
