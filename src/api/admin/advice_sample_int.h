/* advice_sample_int.h - a sample of a container's items for advice about its partition key.
 *
 * Items are read from the change feed of each physical partition, in proportion to what it holds,
 * from several moments of its life in turn, as `orrery advise` reads them over the network.
 */
#pragma once

#include "advise/sample.h"
#include "catalog/catalog.h"

/* Until when to work; the clock also says that the client has gone. */
typedef struct AdviceTime {
    const Clock *clock;
    uint64_t deadline_us;
} AdviceTime;
bool advice_is_over(const AdviceTime *time);

/* Where the items go. */
typedef struct AdviceSink {
    void *ctx;
    Status (*add)(void *ctx, Json document, Error *err); /* the document lives for the call */
} AdviceSink;

/* Which part of all items, sample->population, fits into the sample without thinning it, if each of
 * so many ranges gives one more; unless they are so large that their bytes do. */
double advice_sample_share(const Sample *sample, size_t range_count);

/* Reads that part of a range that this node serves, and one item more. What was read when the time
 * is over is the sample. */
MUST_USE Status advice_sample_read(const Container *container, const PartitionRange *range,
                                   double share, const AdviceTime *time, AdviceSink sink,
                                   Error *err);
