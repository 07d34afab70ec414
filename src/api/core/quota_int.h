/* quota_int.h - x-ms-resource-quota and x-ms-resource-usage: what partitions may hold, and do. */
#pragma once

#include "api/core/response_int.h"

/* Whether the request asks for them (x-ms-documentdb-populatequotainfo). */
bool quota_is_wanted(const ApiRequest *r);

/* What partitions hold, together. */
typedef struct QuotaUsage {
    uint64_t items;
    uint64_t bytes;
    uint64_t index_bytes;
} QuotaUsage;

/* Adds what a partition of this node holds. */
void quota_add(QuotaUsage *usage, const PartitionHandle *partition);

/* Adds both headers, about 'count' partitions of a container together. 'scripts' is put before the
 * usage and tells what there is besides documents. */
void quota_headers(const ApiRequest *r, Response *response, const Container *container,
                   const PartitionRange *ranges, size_t count, Slice scripts);

/* The same about all partitions of a container, when it is known what they hold. */
void quota_headers_of(const ApiRequest *r, Response *response, const Container *container,
                      const QuotaUsage *usage, Slice scripts);
