/* resource_int.h - what the files that make resources share. */
#pragma once

#include "catalog/resource.h"

/* No definition that fits into a request comes near this bound, which leaves room for the members
 * that are added when it is shown. */
#define DEFINITION_BYTES_MAX (JSON_BUILD_BYTES_MAX / 2)

/* Fills in what every resource has besides its names. */
void resource_fill_info(ResourceInfo *info, Arena *arena, uint32_t number, uint64_t lsn,
                        int64_t ts_s);
