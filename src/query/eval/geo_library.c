/* geo_library.c - see geo_library_int.h. */
#include "query/eval/geo_library_int.h"

#include "query/sql/sql_error_int.h"

Status library_load(const char *file, const LibraryFunction *functions, size_t count, void *table,
                    Error *err)
{
    Error reason;
    if (shared_library_load(file, functions, count, table, &reason) == STATUS_OK)
        return STATUS_OK;
    return sql_error_plain(err, "The query cannot run: %s.", reason.message);
}
