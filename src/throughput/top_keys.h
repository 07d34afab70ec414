/* top_keys.h - finds the busiest logical partitions, in memory that does not grow with their
 * number.
 *
 * A sketch keeps the heaviest of any number of partitions ("filtered space saving"): one that may
 * be heavier than the lightest entry replaces it, and inherits what it may have weighed before. So
 * each row has a lower bound, what was counted since it came in, and an upper bound, that and what
 * it inherited. With k entries and a total weight of N, no partition that weighs more than N / k is
 * missing, and no row's bounds are further apart than that (I10). A sketch that has never been full
 * is exact.
 *
 * There is one sketch for each of the last few minutes, so that rows show what is busy now, and a
 * set of them for every thread that adds: no thread waits, and top_keys_read puts them together.
 *
 * Ownership  The caller frees a Top. Rows live in the arena.
 * Threads    One thread adds to a Top. Meanwhile any thread reads, without locks.
 */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "base/slice.h"

#define TOP_WINDOW_S    60
#define TOP_WINDOWS     6 /* the current minute and five before it */
#define TOP_TEXT_MAX    100
#define TOP_EPK_MAX     48 /* bytes kept of an EPK; a longer one is known by its hash */
#define TOP_ENTRIES_MIN 128
#define TOP_ENTRIES_MAX 512 /* of one sketch */

/* All sketches of a process together, unless there are so many threads that TOP_ENTRIES_MIN each
 * take more. */
#define TOP_BYTES_MAX ((size_t)4 << 20)

typedef enum TopKind { TOP_CHARGE, TOP_THROTTLED } TopKind;
#define TOP_KINDS 2

typedef struct Top Top;

typedef struct TopKey {
    uint32_t container; /* number */
    uint32_t range;     /* of the physical partition that serves it */
    Slice epk;
} TopKey;

/* Prints the partition's key as JSON; called only for one that gets an entry. */
typedef struct TopName {
    size_t (*print)(const void *ctx, char out[TOP_TEXT_MAX], bool *is_cut);
    const void *ctx;
} TopName;

/* How many entries each sketch has if 'threads' threads have a Top. */
uint32_t top_keys_entries(uint32_t threads);

Top *top_keys_new(uint32_t entries,
                  HashKey key); /* sketches take memory when they are first used */
void top_keys_free(Top *top);   /* accepts NULL */
DEFINE_AUTO(Top *, top_keys_free)

void top_keys_add(Top *top, TopKind kind, uint64_t now_s, const TopKey *key, uint64_t weight,
                  TopName name);

typedef struct TopRow {
    uint32_t range;
    uint64_t at_least;
    uint64_t at_most;
    Slice epk; /* its first TOP_EPK_MAX bytes */
    Slice text;
    bool is_cut; /* the text is not whole */
} TopRow;

typedef struct TopQuery {
    TopKind kind;
    uint32_t container;
    uint64_t now_s;   /* in the last window */
    uint32_t windows; /* how many before that one, less than TOP_WINDOWS */
    size_t rows_max;
    bool has_range; /* only what was counted for 'range' */
    uint32_t range;
} TopQuery;

/* The heaviest partitions of a container over several Tops, by their lower bounds. */
size_t top_keys_read(const Top *const *tops, size_t count, const TopQuery *query, Arena *arena,
                     TopRow **rows);
