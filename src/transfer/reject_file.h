/* reject_file.h - the rows that could not be imported, one line of JSON each, with the reason:
 *
 *     {"file":"orders.csv","line":7,"reason":"expected 3 cells as in the header, found
 * 2","row":"a,b"}
 *
 * Ownership  The caller closes it. Paths are borrowed.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"

typedef struct RejectFile RejectFile;

/* Opens or creates the file and cuts it to 'bytes': what follows was written after the checkpoint
 * that is resumed from. */
MUST_USE Status reject_file_open(const char *path, uint64_t bytes, RejectFile **out, Error *err);
void reject_file_close(RejectFile *file); /* accepts NULL; does not flush */
DEFINE_AUTO(RejectFile *, reject_file_close)

MUST_USE Status reject_file_add(RejectFile *file, Slice path, uint64_t line, Slice reason,
                                Slice row, Error *err);

/* Makes everything durable; '*bytes' is how much that is. */
MUST_USE Status reject_file_sync(RejectFile *file, uint64_t *bytes, Error *err);
