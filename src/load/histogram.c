/* histogram.c - see histogram.h.
 *
 *     value < 64:   bucket = value
 *     otherwise:    1xxxxxx yyy...   'shift' is the number of y bits, xxxxxx the place in the group
 *                   bucket = (shift + 1) * 64 + xxxxxx
 */
#include "load/histogram.h"

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

void histogram_add(Histogram *histogram, uint64_t value)
{
    histogram_add_many(histogram, value, 1);
}

void histogram_add_many(Histogram *histogram, uint64_t value, uint64_t count)
{
    if (value > VALUE_MAX)
        value = VALUE_MAX;
    histogram->count += count;
    histogram->sum += value * count;
    histogram->buckets[bucket_of(value)] += count;
    if (value > histogram->value_max)
        histogram->value_max = value;
}

uint64_t histogram_percentile(const Histogram *histogram, uint32_t share)
{
    ASSERT(share <= HISTOGRAM_WHOLE);
    /* Rounded up: the median of three values is the second. */
    uint64_t wanted = (histogram->count * share + HISTOGRAM_WHOLE - 1) / HISTOGRAM_WHOLE;
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

double histogram_mean(const Histogram *histogram)
{
    return histogram->count == 0 ? 0 : (double)histogram->sum / (double)histogram->count;
}

bool histogram_next(const Histogram *histogram, size_t *at, uint64_t *value, uint64_t *count)
{
    while (*at < HISTOGRAM_BUCKETS && histogram->buckets[*at] == 0)
        (*at)++;
    if (*at == HISTOGRAM_BUCKETS)
        return false;
    *value = bucket_end(*at);
    *count = histogram->buckets[(*at)++];
    return true;
}
