/* key_choice.h - which of the existing items a request is about.
 *
 *     uniform   each item as often as any other
 *     zipfian   the k-th most frequent item 1 / k^KEY_CHOICE_SKEW as often as the first; frequent
 *               items are spread over all numbers
 *     latest    the same, and an item is the more frequent the newer it is
 *
 * A draw costs two powers and no table, whatever the number of items is.
 *
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/defs.h"
#include "base/random.h"
#include "base/slice.h"

/* The exponent that YCSB has for its workloads. */
#define KEY_CHOICE_SKEW 0.99

#define KEY_CHOICE_COUNT_MAX UINT64_C(1000000000)

/* X(name, text) */
#define KEY_DISTRIBUTIONS(X) \
    X(UNIFORM, "uniform")    \
    X(ZIPFIAN, "zipfian")    \
    X(LATEST, "latest")

typedef enum KeyDistribution {
#define X(name, text) KEY_##name,
    KEY_DISTRIBUTIONS(X)
#undef X
        KEY_DISTRIBUTION_COUNT,
} KeyDistribution;

/* False if there is no distribution of that name. */
bool key_distribution_parse(Slice name, KeyDistribution *out);

/* Draws from 0 to count - 1, the smaller the more often. */
typedef struct Zipfian {
    uint64_t count;
    double low; /* the range of the integral that is drawn from */
    double high;
    double accept; /* a draw that close to its integer needs no second look */
} Zipfian;

void zipfian_init(Zipfian *zipfian, uint64_t count); /* at least 1 */
uint64_t zipfian_next(const Zipfian *zipfian, Random *random);

typedef struct KeyChoice {
    KeyDistribution distribution;
    uint64_t count; /* items 0 to count - 1 exist; 1 to KEY_CHOICE_COUNT_MAX */
    Zipfian zipfian;
} KeyChoice;

void key_choice_init(KeyChoice *choice, KeyDistribution distribution, uint64_t count);

/* The number of an item that exists: below 'count', or 'first_new' to 'first_new' + 'new_count' - 1
 * for one of those that were added, which only KEY_LATEST returns. */
uint64_t key_choice_next(KeyChoice *choice, Random *random, uint64_t first_new, uint64_t new_count);
