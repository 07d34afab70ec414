/* reader.h - reading the index of one partition: sets by look-up, values in order.
 *
 * Ownership  A reader borrows store and snapshot. Sets and values live in the arena given.
 * Threads    One at a time; any number of readers.
 * Bounds     Everything that reads asks 'budget' first; without budget left it ends with
 *            '*complete' false, and the caller chooses another way or ends its page.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "index/set.h"
#include "index/term.h"
#include "store/store.h"

typedef struct IndexBudget {
    uint64_t keys_left; /* chunks that may still be read */
    size_t bytes_left;  /* memory for sets */
    const Clock *clock;
    uint64_t deadline_us; /* of the monotonic clock, from which on no key is left; 0: none */
    bool was_short;       /* somebody has asked for a key and got none */
} IndexBudget;

typedef struct IndexReader {
    Store *store;
    const StoreSnapshot *snapshot;
    StoreSpace space;
    HashKey key;
    IndexBudget *budget;
    uint64_t keys_read; /* so far; for metrics, charges and estimates */
} IndexReader;

/* Values of one path, as encoded bytes: ['from', 'to'). Empty 'from': from the path's first, which
 * is TERM_PRESENT. Empty 'to': up to its last. An end that shall include a value is what
 * term_after() makes of it. */
typedef struct IndexRange {
    TermPath path;
    Slice from;
    Slice to;
} IndexRange;

/* The items under any value of the range, or those under exactly 'value'. '*out' is empty if it is
 * not complete. */
MUST_USE Status index_read_range(IndexReader *reader, IndexRange range, Arena *arena,
                                 NumberSet *out, bool *complete, Error *err);
MUST_USE Status index_read_value(IndexReader *reader, TermPath path, Slice value, Arena *arena,
                                 NumberSet *out, bool *complete, Error *err);

/* Of those under 'value', the ones that 'within' has: a key is read for each of its chunks, so that
 * it is for sets that have few. */
MUST_USE Status index_read_value_within(IndexReader *reader, TermPath path, Slice value,
                                        const NumberSet *within, Arena *arena, NumberSet *out,
                                        bool *complete, Error *err);

/* About how many (chunk) keys and items the range has: exact if there are at most 'keys_max'
 * keys, else from the samples of its values (term.h), of which it reads as many each at most. The
 * same for the same terms, whatever the store has done with them. */
typedef struct IndexEstimate {
    uint64_t keys;
    uint64_t items;
    bool is_exact;
    TermPath path;    /* under which there are few keys in the range, that stand for all: its own */
    uint64_t counted; /* or that of a sample; and the items there */
} IndexEstimate;
MUST_USE Status index_estimate(IndexReader *reader, IndexRange range, uint32_t keys_max,
                               IndexEstimate *out, Error *err);

/* Walks the values of a range in order, up or down, each with the set of its items. */
typedef struct IndexWalk IndexWalk;
MUST_USE Status index_walk_open(IndexReader *reader, IndexRange range, bool is_down,
                                IndexWalk **out, Error *err);

/* The next value and its items, at least one; both live until the next call. '*found' is false at
 * the end, '*complete' too when the budget ended it: with more budget the walk goes on where it
 * was. */
MUST_USE Status index_walk_next(IndexWalk *walk, Slice *value, NumberSet *items, bool *found,
                                bool *complete, Error *err);

/* Goes on with the first value at or behind 'value' (walking down: at or before). */
void index_walk_seek(IndexWalk *walk, Slice value);
void index_walk_close(IndexWalk *walk); /* accepts NULL */
DEFINE_AUTO(IndexWalk *, index_walk_close)
