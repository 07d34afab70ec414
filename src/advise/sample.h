/* sample.h - the items from which advice is derived.
 *
 * Items are added one after the other, as many as there are. Beyond its bounds a sample keeps one
 * of every 2, 4, 8, ... consecutive items, chosen by chance within each group, so that it stays
 * spread over all of them and does not fall into step with data that repeats.
 *
 * Ownership  A sample copies its items, and frees them in sample_done.
 * Threads    Belongs to one thread.
 * Bounds     SampleLimits: number of items, and their bytes.
 */
#pragma once

#include "base/error.h"
#include "base/random.h"
#include "json/json.h"
#include "json/property_path.h"

#define SAMPLE_ITEMS_DEFAULT 20000
#define SAMPLE_ITEMS_MIN     10
#define SAMPLE_ITEMS_MAX     200000              /* some 100 bytes of tables for each */
#define SAMPLE_BYTES_MAX     ((size_t)256 << 20) /* of the items */

typedef struct SampleLimits {
    size_t items_max; /* SAMPLE_ITEMS_MIN to SAMPLE_ITEMS_MAX */
    size_t bytes_max;
} SampleLimits;

typedef struct SampleItem {
    Json document;
    uint8_t *bytes; /* of the document */
    size_t size;
    double time_s;   /* since 1970; NaN if not known */
    uint64_t made;   /* the number of its resource id, which grows; 0 if it has none */
    uint64_t number; /* of adding */
} SampleItem;

typedef struct Sample {
    SampleLimits limits;
    SampleItem *items; /* in the order in which they were written, after sample_finish */
    size_t count;
    size_t capacity;
    uint64_t kept_bytes;
    uint64_t seen; /* items that were added */
    uint64_t seen_bytes;
    uint64_t population; /* items that there are, if that is known to be more than was seen */
    uint64_t stride;     /* one of so many items is kept */
    uint64_t at;         /* in the current group of that many */
    uint64_t chosen;     /* which of the group is kept */
    Random random;
    bool has_time;       /* nearly all items have a time, and they are sorted by it */
    double first_time_s; /* if has_time */
    double last_time_s;
} Sample;

void sample_init(Sample *sample, SampleLimits limits);
void sample_done(Sample *sample);
DEFINE_AUTO_VALUE(Sample, sample_done)

/* Adds a copy of an item, without what the server adds to it, except for its time and its resource
 * id. STATUS_BAD_REQUEST if it is not an object. */
MUST_USE Status sample_add(Sample *sample, Json document, Error *err);

/* Ends the adding. 'time_path' is where items have their time; a count of 0 means "/_ts". If nine
 * of ten items have one, they are sorted by it, and those of one time by their resource ids, so
 * that whoever reads them in whatever order learns the same; otherwise the order of adding counts
 * as that of writing. STATUS_BAD_REQUEST if there are no items, or if a path is given that has no
 * times. */
MUST_USE Status sample_finish(Sample *sample, PropertyPath time_path, Error *err);

/* How many items one of the sample stands for. */
double sample_scale(const Sample *sample);

/* Items and bytes that there are, as far as is known. */
double sample_total_items(const Sample *sample);
double sample_item_bytes(const Sample *sample); /* the mean */

/* Whether the server makes a member of this name; also the one that only change feeds have. */
bool sample_is_system(Slice name);

/* The days from the first to the last item; 0 if not known. */
double sample_span_days(const Sample *sample);
