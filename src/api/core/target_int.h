/* target_int.h - which partition a request is for, by its partition key or by the id of a range. */
#pragma once

#include "api/core/partition_key_header_int.h"

/* What a request on items addresses. */
typedef struct Target {
    PartitionKey key;
    Epk epk;
    const PartitionRange *range; /* the physical partition that serves it */
} Target;

/* The range that serves an EPK. */
const PartitionRange *target_range(const Container *container, Slice epk);

/* The range named by x-ms-documentdb-partitionkeyrangeid ("3" or "{container rid},3"); '*found' is
 * false if the header is absent, STATUS_GONE if there is no such range. */
MUST_USE Status request_range(const ApiRequest *r, const PartitionRange **out, bool *found,
                              Error *err);

/* The target of a request that names one item by its key header. */
MUST_USE Status request_target(const ApiRequest *r, Target *out, Error *err);
