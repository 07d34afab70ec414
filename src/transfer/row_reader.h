/* row_reader.h - the rows of a file, one by one: JSON lines, JSON values, CSV.
 *
 * A reader is given the bytes that there are and returns the first row in them, or says that it
 * needs more. It never waits and never reads a file itself. A row that cannot be understood is
 * returned as such, with the reason, and the reader goes on after it.
 *
 *     ROW_FORMAT_LINES  one JSON value a line; blank lines are skipped
 *     ROW_FORMAT_JSON   an array of values, or values one after the other, over any number of lines
 *     ROW_FORMAT_CSV    RFC 4180 with a header line; see csv_table.h
 *
 * Ownership  What is in a Row lives in the arena passed in, or in the bytes.
 * Threads    A reader belongs to one thread.
 * Bounds     A row has at most ROW_BYTES_MAX bytes; a longer one is skipped and reported.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "transfer/csv_table.h"
#include "json/json.h"

/* An item has at most 2 MB, but its text may have spaces and escapes. */
#define ROW_BYTES_MAX JSON_TEXT_BYTES_MAX

typedef enum RowFormat {
    ROW_FORMAT_AUTO, /* decided by the name of the file, or by its first bytes */
    ROW_FORMAT_LINES,
    ROW_FORMAT_JSON,
    ROW_FORMAT_CSV,
} RowFormat;

typedef struct RowOptions {
    RowFormat format; /* not ROW_FORMAT_AUTO */
    CsvOptions csv;
} RowOptions;

typedef struct Row {
    uint64_t line; /* of its beginning, from 1 */
    Slice text;    /* as it stands in the file; not all of a row that is too long */
    Json value;    /* an object; undefined if the row is bad or was skipped */
    Error error;   /* why the row is bad; STATUS_OK if it is good */
} Row;

typedef enum RowResult {
    ROW_READ, /* a row, good or bad */
    ROW_MORE, /* there is no whole row yet */
    ROW_END,  /* there are no more rows */
} RowResult;

/* What the reader does with a row. */
typedef enum RowUse {
    ROW_PARSE,
    ROW_SKIP, /* only finds its end; 'value' stays undefined */
} RowUse;

typedef struct RowReader RowReader;

RowReader *row_reader_new(const RowOptions *options);
void row_reader_free(RowReader *reader); /* accepts NULL */
DEFINE_AUTO(RowReader *, row_reader_free)

/* Looks at 'bytes', which begin where the last call ended; 'is_last' if no more will follow.
 * '*used' bytes are done with, also if the result is ROW_MORE. A caller that was told ROW_MORE
 * gives more bytes with the next call, or 'is_last'. */
RowResult row_reader_next(RowReader *reader, RowUse use, Slice bytes, bool is_last, Arena *arena,
                          size_t *used, Row *out);

/* The format of a file by its name ("orders.csv.gz"); ROW_FORMAT_AUTO if that does not tell. '*csv'
 * gets the tab of ".tsv". */
RowFormat row_format_of_name(Slice name, CsvOptions *csv);

/* The format by the first bytes of a file: CSV if they do not begin a JSON array or object. */
#define ROW_FORMAT_PEEK_BYTES ((size_t)64 << 10)
RowFormat row_format_of_bytes(Slice first);
