/* csv_writer.h - items as a CSV file.
 *
 * Which columns there are is known when all items have been seen. So items are kept in a temporary
 * file until then, and the CSV file is written at the end.
 *
 * Ownership  The caller frees the writer, which removes its file.
 * Threads    Belongs to one thread.
 * Bounds     At most CSV_COLUMNS_MAX columns; rows are on the disk.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "transfer/csv_table.h"

typedef struct CsvWriter CsvWriter;

MUST_USE Status csv_writer_new(CsvWriter **out, Error *err);
void csv_writer_free(CsvWriter *writer); /* accepts NULL */
DEFINE_AUTO(CsvWriter *, csv_writer_free)

/* Keeps an item, which is an object, and finds its columns. */
MUST_USE Status csv_writer_add(CsvWriter *writer, Json item, Error *err);

/* Prints the header, and then row by row. '*is_last' if there are no more. */
void csv_writer_header(const CsvWriter *writer, Buf *out);
MUST_USE Status csv_writer_row(CsvWriter *writer, Buf *out, bool *is_last, Error *err);
