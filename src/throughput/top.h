/* top.h - which logical partitions are asked for most, in memory that does not grow with them.
 *
 * A sketch keeps the partitions that weigh most, of any number ("filtered space saving"): one that
 * may be heavier than the lightest takes its place, and inherits what it might have had before. So
 * each row has two bounds, and between them lies the truth: it had at least what was counted since
 * it came in, and at most that and what it inherited. With k entries and a total weight of N,
 * nothing that weighs more than N / k is missing, and no row's bounds are further apart than that.
 * A sketch that has never been full is exact.
 *
 * There is one sketch for every minute of the last few, so that rows tell what is hot now, and a
 * set of them for every thread that adds: nobody waits, and the reader puts them together.
 *
 * Ownership  A Top belongs to whoever made it. Rows live in the arena.
 * Threads    One thread adds to a Top. Any thread reads, without locks, meanwhile.
 */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "base/slice.h"

#define TOP_WINDOW_S    60
#define TOP_WINDOWS     6 /* the current minute and five before it */
#define TOP_TEXT_MAX    100
#define TOP_EPK_MAX     48 /* bytes kept; what is longer is known by its beginning and its hash */
#define TOP_ENTRIES_MIN 128
#define TOP_ENTRIES_MAX 512 /* of one sketch */

/* All sketches of a process together, as long as there are no more threads than take the least. */
#define TOP_BYTES_MAX ((size_t)4 << 20)

typedef enum TopKind { TOP_CHARGE, TOP_THROTTLED } TopKind;
#define TOP_KINDS 2

typedef struct Top Top;

typedef struct TopKey {
    uint32_t container; /* number */
    uint32_t range;     /* of the physical partition that serves it */
    Slice epk;
} TopKey;

/* Prints what the partition is called, as JSON; asked only for one that is new. */
typedef struct TopName {
    size_t (*print)(const void *ctx, char out[TOP_TEXT_MAX], bool *is_cut);
    const void *ctx;
} TopName;

/* How many entries each sketch has if 'threads' threads have a Top. */
uint32_t top_entries(uint32_t threads);

Top *top_new(uint32_t entries, HashKey key); /* sketches take memory when they are first used */
void top_free(Top *top);                     /* accepts NULL */
DEFINE_AUTO(Top *, top_free)

void top_add(Top *top, TopKind kind, uint64_t now_s, const TopKey *key, uint64_t weight,
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
    uint64_t now_s;
    uint32_t windows; /* how many before the current one, less than TOP_WINDOWS */
    size_t rows_max;
} TopQuery;

/* The heaviest partitions of a container over several Tops, by what they had at least. */
size_t top_read(const Top *const *tops, size_t count, const TopQuery *query, Arena *arena,
                TopRow **rows);
