/* geo_library_int.h - a shared library that is loaded when a query first needs it.
 *
 * See base/shared_library.h; here a failure becomes an error of the query.
 */
#pragma once

#include "base/shared_library.h"

/* As shared_library_load, but fails with STATUS_BAD_REQUEST and the message of a query's error. */
MUST_USE Status library_load(const char *file, const LibraryFunction *functions, size_t count,
                             void *table, Error *err);
