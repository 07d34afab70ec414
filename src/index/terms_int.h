/* terms_int.h - terms while they are collected: by the walk over a document, and by a batch.
 *
 * The walk makes entries. Most are certainly different from each other ("sure"), because each
 * property has a path of its own; they go into the batch's table of terms. Those below an array,
 * and those of both documents when one replaces the other, may repeat ("loose"): collect_settle
 * sorts them and removes repetitions.
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

/* Sorts by path and value; equal entries keep their order. 'scratch' has room for 'count', too.
 * Returns the one of the two that has the result. */
Entry *entries_sort(Entry *entries, Entry *scratch, size_t count);

static inline bool entries_same_term(const Entry *a, const Entry *b)
{
    return a->path == b->path && a->prefix == b->prefix && a->len == b->len &&
           (a->len <= sizeof(a->prefix) || memcmp(a->value, b->value, a->len) == 0);
}

/* An item has a term, or had it. */
typedef struct TermUse {
    uint32_t term; /* an index of the table's terms */
    uint32_t item; /* an index of the batch's numbers, twice; one more if the item had the term */
} TermUse;

/* The terms of a batch, each of them once or a few times, and their uses: see terms_table.c. */
typedef struct TermTable {
    EntryList terms; /* Entry.item is the index of the term itself */
    uint32_t *slots; /* 0, or the index of a term and 1 */
    size_t slot_count;
    TermUse *uses;
    size_t use_count;
    size_t use_capacity;
} TermTable;

/* Adds the use that 'entry' is. True if the table keeps the entry's value, which then must stay. */
bool term_table_add(Arena *arena, TermTable *table, const Entry *entry);
void term_table_reset(TermTable *table); /* keeps its memory */

/* A walk over the terms of a table, in the order of their keys. */
typedef struct TermUses {
    const TermTable *table;
    const uint64_t *numbers;
    bool is_rising;
    uint32_t *ends;
    uint32_t *by_term;
    uint32_t *joined; /* uses of a term that is in the table more than once; and scratch */
    const Entry *sorted;
    size_t next;

    /* The term that the walk is at. */
    const Entry *term;
    uint32_t *items; /* as TermUse.item, by the numbers of the items */
    size_t count;
} TermUses;

/* 'numbers' are those of the batch; 'is_rising' if none of them is less than the one before. The
 * table must not be added to before it is reset. Everything lives in 'arena'. */
void term_uses_open(Arena *arena, TermTable *table, const uint64_t *numbers, bool is_rising,
                    TermUses *out);
bool term_uses_next(TermUses *uses); /* false at the end */

/* Slots for the newest loose entries by their terms, so that an array that repeats a few values
 * adds few entries. */
enum { COLLECT_RECENT_BITS = 8, COLLECT_RECENT = 1 << COLLECT_RECENT_BITS };

/* Paths of the newest names, since items of a batch have the same ones and hashing a name takes
 * longer than comparing it. A name that is longer than KNOWN_NAME_BYTES is always hashed. */
enum { COLLECT_NAMES_BITS = 7, COLLECT_NAMES = 1 << COLLECT_NAMES_BITS, KNOWN_NAME_BYTES = 23 };

typedef struct KnownName {
    TermPath parent;
    TermPath path;
    uint8_t len; /* and one; 0 if the slot is free */
    char name[KNOWN_NAME_BYTES];
} KnownName;

/* Terms of one composite index in one item; see terms.h. */
enum { COMPOSITE_ELEMENTS_MAX = 256 };

typedef struct Collector {
    Arena *arena;
    HashKey key;
    TermPath root;
    TermPath ts_path;
    TermTable sure;
    size_t added;      /* to 'sure', by the change at hand */
    size_t added_paid; /* those of ENTRY_PAID among them */
    EntryList loose;
    Entry *scratch; /* as large as 'loose' */
    Buf values;     /* in the arena, so it is never freed */
    uint32_t recent[COLLECT_RECENT];
    KnownName names[COLLECT_NAMES];

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

/* Adds an entry to the sure ones. True if its value must stay. */
bool collect_sure(Collector *c, const Entry *entry);

/* Appends an entry to the list. */
void entries_push(Arena *arena, EntryList *list, const Entry *entry);
