/* csv_table.h - CSV as RFC 4180 has it, and items as its rows.
 *
 * The header names the property of each column: "id", "address.city", "tags[0]" (field_path.h). A
 * cell without quotes has a type:
 *
 *     (nothing)       the property is not there
 *     null            null
 *     true, false     a boolean
 *     12, -1.5, 1e3   a number, as JSON writes it: "007" is text. An integer that a double cannot
 *                     hold exactly is text, too.
 *     {}, []          an empty object, an empty array
 *     anything else   text
 *
 * A cell in quotes is text, whatever is in it. So what csv_writer.h writes is read as the same
 * item.
 *
 * Ownership  A CsvTable owns the columns. Cells and values live in the arena passed in.
 * Threads    A table belongs to one thread.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "json/json.h"

#define CSV_COLUMNS_MAX 16384
#define CSV_INTEGER_MAX 9007199254740992.0 /* 2^53; from here on doubles leave integers out */

typedef struct CsvOptions {
    char delimiter;    /* 0 for a comma */
    bool all_are_text; /* cells have no types; an empty one is empty text */
} CsvOptions;

typedef struct CsvCell {
    Slice text;
    bool is_quoted;
} CsvCell;

/* Where a record ends, found step by step as bytes arrive. */
typedef struct CsvScan {
    size_t at;      /* bytes that were looked at */
    bool in_quotes; /* at 'at' */
} CsvScan;

/* Looks for the end of the record at the front of 'bytes'. True if it is there: '*len' is its
 * length with its line end. */
bool csv_scan_record(CsvScan *scan, Slice bytes, bool is_last, size_t *len);

/* The cells of a record. STATUS_BAD_REQUEST if its quotes are wrong. */
MUST_USE Status csv_split(Slice record, char delimiter, Arena *arena, CsvCell **cells,
                          size_t *count, Error *err);

typedef struct CsvTable CsvTable;

/* A table with the columns of a header. */
MUST_USE Status csv_table_open(const CsvCell *header, size_t count, CsvOptions options,
                               CsvTable **out, Error *err);
void csv_table_free(CsvTable *table); /* accepts NULL */
DEFINE_AUTO(CsvTable *, csv_table_free)

/* The item of a record. STATUS_BAD_REQUEST if it has another number of cells than the header, or
 * two of them contradict each other. */
MUST_USE Status csv_table_item(CsvTable *table, const CsvCell *cells, size_t count, Arena *arena,
                               Json *out, Error *err);
