/* load_int.h - where the load of a partition has its middle. */
#pragma once

#include "api/request_int.h"

/* The hash on both sides of which as many request units were used in the last minutes, as far as
 * that can be: the keys that use most are known (usage_int.h), the others are taken to be spread
 * evenly. STATUS_CONFLICT, and what is known, if there was no load, or if nearly all of it is one
 * key's, which no split could spread. 'parts' must be 2. */
MUST_USE Status load_middle(const ApiRequest *r, const PartitionRange *range, uint32_t parts,
                            Slice *cut, Error *err);
