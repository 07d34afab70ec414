/* library_int.h - a shared library that is loaded when something first needs it.
 *
 * What only few queries need is not linked: finding all the libraries behind PROJ and GEOS takes
 * longer than everything else that happens when the server starts.
 *
 * Ownership  A library that was loaded stays; nobody has to hold it. The table is the caller's.
 * Threads    Any may load; the C library locks.
 */
#pragma once

#include "base/error.h"

/* A function of the library, and where in the caller's table the pointer to it goes. */
typedef struct LibraryFunction {
    const char *name;
    size_t at;
} LibraryFunction;

/* A row of such a list, for a table whose members are called as the functions are. */
#define LIBRARY_FUNCTION(table, function)    \
    {                                        \
#function, offsetof(table, function) \
    }

/* Fills in the pointers of 'table'. Fails with the message of a query's error if there is no such
 * library, or a function is not in it. */
MUST_USE Status library_load(const char *file, const LibraryFunction *functions, size_t count,
                             void *table, Error *err);
