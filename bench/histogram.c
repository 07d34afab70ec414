/* histogram.c - see histogram.h.
 *
 *     value < 64:   bucket = value
 *     otherwise:    1xxxxxx yyy...   'shift' is the number of y bits, xxxxxx the place in the group
 *                   bucket = (shift + 1) * 64 + xxxxxx
 */
#include "bench/histogram.h"

#include <string.h>

enum { SUB_COUNT = 1 << HISTOGRAM_SUB_BITS };
#define VALUE_MAX ((UINT64_C(1) << HISTOGRAM_VALUE_BITS) - 1)

static size_t bucket_of(uint64_t value)
{
    if (value < SUB_COUNT)
        return (size_t)value;
    unsigned shift = 63 - HISTOGRAM_SUB_BITS - (unsigned)__builtin_clzll(value);
    return ((size_t)shift + 1) * SUB_COUNT + (size_t)((value >> shift) & (SUB_COUNT - 1));
}

/* The largest value that falls into 'bucket'. */
static uint64_t bucket_end(size_t bucket)
{
    if (bucket < SUB_COUNT)
        return bucket;
    unsigned shift = (unsigned)(bucket / SUB_COUNT) - 1;
    uint64_t first = (uint64_t)(SUB_COUNT + bucket % SUB_COUNT) << shift;
    return first + (UINT64_C(1) << shift) - 1;
}

void histogram_reset(Histogram *histogram)
{
    memset(histogram, 0, sizeof(*histogram));
}

void histogram_add(Histogram *histogram, uint64_t value)
{
    if (value > VALUE_MAX)
        value = VALUE_MAX;
    histogram->count++;
    histogram->buckets[bucket_of(value)]++;
    if (value > histogram->value_max)
        histogram->value_max = value;
}

uint64_t histogram_percentile(const Histogram *histogram, uint32_t per_mille)
{
    ASSERT(per_mille <= 1000);
    /* Rounded up: the median of three values is the second. */
    uint64_t wanted = (histogram->count * per_mille + 999) / 1000;
    uint64_t seen = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= wanted && seen > 0) {
            uint64_t end = bucket_end(i);
            return end < histogram->value_max ? end : histogram->value_max;
        }
    }
    return 0;
}
