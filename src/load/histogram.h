/* histogram.h - latencies in buckets whose width grows with the value.
 *
 * Each power of two is divided into 64 equal buckets, so a percentile is at most 1.6% too high
 * whatever its size, and recording is an increment.
 *
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/defs.h"

enum {
    HISTOGRAM_SUB_BITS = 6,
    HISTOGRAM_VALUE_BITS = 36, /* 2^36 us are 19 hours; what is longer counts as that */
    HISTOGRAM_BUCKETS = (HISTOGRAM_VALUE_BITS - HISTOGRAM_SUB_BITS + 1) << HISTOGRAM_SUB_BITS,
};

/* Zeroed, it is empty. */
typedef struct Histogram {
    uint64_t count;
    uint64_t value_max; /* exact */
    uint64_t sum;
    uint64_t buckets[HISTOGRAM_BUCKETS];
} Histogram;

void histogram_add(Histogram *histogram, uint64_t value);
void histogram_add_many(Histogram *histogram, uint64_t value, uint64_t count);

/* The value that so many hundred-thousandths of all values do not exceed (50000 for the median):
 * the upper end of its bucket, but never more than the largest value. 0 if nothing was recorded. */
#define HISTOGRAM_WHOLE 100000
uint64_t histogram_percentile(const Histogram *histogram, uint32_t share);

double histogram_mean(const Histogram *histogram); /* exact; 0 if nothing was recorded */

/* The buckets that are not empty, from the smallest: '*at' is 0 at first. False at the end. */
bool histogram_next(const Histogram *histogram, size_t *at, uint64_t *value, uint64_t *count);
