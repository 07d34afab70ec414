/* output.h - the file that an export writes: JSON lines, a JSON array or CSV; compressed or not.
 *
 * Ownership  The caller closes it. The path is borrowed.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/error.h"
#include "transfer/compression.h"
#include "transfer/row_reader.h"
#include "json/json.h"

typedef struct OutputOptions {
    const char *path; /* NULL for standard output */
    RowFormat format; /* not ROW_FORMAT_AUTO */
    Compression compression;
    /* To go on with a file: its first bytes, which are kept, and the items in them. */
    bool is_resumed;
    uint64_t bytes;
    uint64_t items;
} OutputOptions;

typedef struct Output Output;

MUST_USE Status output_open(const OutputOptions *options, Output **out, Error *err);
void output_close(Output *output); /* accepts NULL; does not flush */
DEFINE_AUTO(Output *, output_close)

/* Appends an item. 'text' is on one line; 'value' may be undefined unless the format is CSV. */
MUST_USE Status output_item(Output *output, Slice text, Json value, Error *err);

/* Makes everything so far durable; '*bytes' is how much that is. Not for CSV. */
MUST_USE Status output_sync(Output *output, uint64_t *bytes, Error *err);

/* Writes what closes the file, and makes it durable. */
MUST_USE Status output_finish(Output *output, uint64_t *bytes, Error *err);
