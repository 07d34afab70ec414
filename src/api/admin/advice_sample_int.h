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

/* Adds at most as many items as fit into the sample without thinning it, unless they are so large
 * that their bytes do. What was read when the time is over is the sample. */
MUST_USE Status advice_sample_read(const Container *container, const AdviceTime *time,
                                   Sample *sample, Error *err);
