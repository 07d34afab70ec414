/* index_reader.h - reading the index of one partition: sets by look-up, values in order.
 *
 * Ownership  A reader borrows store and snapshot. Sets and values live in the arena given.
 * Threads    One at a time; any number of readers.
 * Bounds     Everything that reads asks 'budget' first. Without budget left it ends with
 *            '*complete' false, and the caller chooses another plan or ends its page.
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
    uint64_t deadline_us; /* of the monotonic clock: then no key is left; 0 if there is none */
    bool was_short;       /* a key was refused */
} IndexBudget;

typedef struct IndexReader {
    Store *store;
    const StoreSnapshot *snapshot;
    StoreSpace space;
    HashKey key;
    IndexBudget *budget;
    uint64_t keys_read; /* so far; for metrics, charges and estimates */
} IndexReader;

/* Values of one path, as encoded bytes: ['from', 'to'). An empty 'from' means from the first value
 * of the path, TERM_PRESENT; an empty 'to' means up to its last. To include a value, 'to' is what
 * term_after() makes of it. */
typedef struct IndexRange {
    TermPath path;
    Slice from;
    Slice to;
} IndexRange;

/* Gets the items under any value of the range, or under exactly 'value'. If it is not complete,
 * '*out' is empty (I7). */
MUST_USE Status index_read_range(IndexReader *reader, IndexRange range, Arena *arena,
                                 NumberSet *out, bool *complete, Error *err);
MUST_USE Status index_read_value(IndexReader *reader, TermPath path, Slice value, Arena *arena,
                                 NumberSet *out, bool *complete, Error *err);

/* Gets the items under 'value' that 'within' has. Reads a key for each chunk of 'within', so it is
 * meant for sets with few chunks. */
MUST_USE Status index_read_value_within(IndexReader *reader, TermPath path, Slice value,
                                        const NumberSet *within, Arena *arena, NumberSet *out,
                                        bool *complete, Error *err);

/* About how many (chunk) keys and items the range has: exact if there are at most 'keys_max' keys,
 * otherwise from the samples of its values (term.h), of each of which it reads at most 'keys_max'
 * keys. The same for the same terms, whatever the store has done with them (I10). */
typedef struct IndexEstimate {
    uint64_t keys;
    uint64_t items;
    bool is_exact;
    TermPath path;    /* whose keys were counted: that of the range, or of a sample */
    uint64_t counted; /* items under them */
} IndexEstimate;
MUST_USE Status index_estimate(IndexReader *reader, IndexRange range, uint32_t keys_max,
                               IndexEstimate *out, Error *err);

/* Walks the values of a range in order, up or down, each with the set of its items. */
typedef struct IndexWalk IndexWalk;
MUST_USE Status index_walk_open(IndexReader *reader, IndexRange range, bool is_down,
                                IndexWalk **out, Error *err);

/* Gets the next value and its items, at least one (I7); both live until the next call. '*found' is
 * false at the end. '*complete' is false, too, if the budget ended it: with more budget the walk
 * continues where it was. */
MUST_USE Status index_walk_next(IndexWalk *walk, Slice *value, NumberSet *items, bool *found,
                                bool *complete, Error *err);

/* Continues with the first value at or after 'value' (if it walks down: at or before it). */
void index_walk_seek(IndexWalk *walk, Slice value);
void index_walk_close(IndexWalk *walk); /* accepts NULL */
DEFINE_AUTO(IndexWalk *, index_walk_close)

/* Walks the paths that the index has terms under, in the order of their hashes, from path to path:
 * a key is paid for each. Among them are those of samples, composite and spatial indexes, and
 * perhaps some whose last item has gone a moment ago. */
typedef struct IndexPathWalk IndexPathWalk;
IndexPathWalk *index_path_walk_open(IndexReader *reader);

/* '*found' is false at the end; '*complete' is false, too, if the budget ended it. */
MUST_USE Status index_path_walk_next(IndexPathWalk *walk, TermPath *path, bool *found,
                                     bool *complete, Error *err);
void index_path_walk_close(IndexPathWalk *walk); /* accepts NULL */
DEFINE_AUTO(IndexPathWalk *, index_path_walk_close)

/* Gets some items under any value of a path: at most 'max' numbers, fewer only if there are no more
 * or the budget ends. */
MUST_USE Status index_path_items(IndexReader *reader, TermPath path, size_t max, uint64_t *numbers,
                                 size_t *count, Error *err);
