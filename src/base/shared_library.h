/* shared_library.h - a shared library that is loaded when something first needs it.
 *
 * A library that few processes or few requests use is not linked: finding it and all that it needs
 * in turn takes longer than everything else that happens when the server starts.
 *
 * Ownership  A library that was loaded stays until the process ends. The table is the caller's.
 * Threads    Any thread may load; the C library locks.
 */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* A function of the library, and where in the caller's table the pointer to it goes. */
typedef struct LibraryFunction {
    const char *name;
    size_t at;
} LibraryFunction;

/* A row of such a list, for a table whose members have the names of the functions. */
#define LIBRARY_FUNCTION(table, function)    \
    {                                        \
#function, offsetof(table, function) \
    }

/* Fills in the pointers of 'table'. STATUS_UNAVAILABLE, with the reason of the C library, if there
 * is no such library or one of the functions is not in it. */
MUST_USE Status shared_library_load(const char *file, const LibraryFunction *functions,
                                    size_t count, void *table, Error *err);
