/* quota_int.h - x-ms-resource-quota and x-ms-resource-usage: what partitions may hold, and do. */
#pragma once

#include "api/core/response_int.h"

/* Whether the request asks for them (x-ms-documentdb-populatequotainfo). */
bool quota_is_wanted(const ApiRequest *r);

/* Adds both headers, about 'count' partitions of a container together. 'scripts' is put before the
 * usage and tells what there is besides documents. */
void quota_headers(const ApiRequest *r, Response *response, const Container *container,
                   const PartitionRange *ranges, size_t count, Slice scripts);
