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

typedef struct Histogram {
    uint64_t count;
    uint64_t value_max; /* exact */
    uint64_t buckets[HISTOGRAM_BUCKETS];
} Histogram;

void histogram_reset(Histogram *histogram);
void histogram_add(Histogram *histogram, uint64_t value);

/* The value that 'per_mille' thousandths of all values do not exceed: the upper end of its bucket,
 * but never more than the largest value. 0 if nothing was recorded. */
uint64_t histogram_percentile(const Histogram *histogram, uint32_t per_mille);
