/* load_middle_int.h - where the load of a partition has its middle. */
#pragma once

#include "api/core/request_int.h"

/* Finds the hash that divides the request units of the last minutes into two halves, as nearly as
 * possible: the keys that use most are known (usage_int.h), the others are assumed to be spread
 * evenly. STATUS_CONFLICT if there was no load, or if one key has nearly all of it, which no split
 * could spread. 'parts' must be 2. */
MUST_USE Status load_middle(const ApiRequest *r, const PartitionRange *range, uint32_t parts,
                            Slice *cut, Error *err);
