/* export.h - writes the items of a container, or the results of a query, to a file.
 *
 * Ranges of hashes are read at the same time, each page by page. A list is read, not the change
 * feed: an item that exists from the beginning to the end of the export is in the file exactly
 * once, in one of the versions that it had meanwhile. (The change feed would give it again after
 * each change.) A continuation token of a range is valid for the ranges that take over from it, so
 * a split or a merge in the middle neither repeats nor loses an item.
 *
 * Threads    All of it runs on the caller's thread.
 * Bounds     A page for each request under way.
 */
#pragma once

#include "base/error.h"
#include "client/client.h"
#include "transfer/item_digest.h"
#include "transfer/output.h"

#define EXPORT_CONCURRENCY_MAX  100
#define EXPORT_ANSWER_BYTES_MAX ((size_t)16 << 20) /* of a page; 4 MB is usual */

typedef struct ExportOptions {
    Client *client;
    const char *database;
    const char *container;
    const char *query; /* NULL for all items */
    const char *path;  /* NULL for standard output */
    RowFormat format;  /* not ROW_FORMAT_AUTO */
    Compression compression;
    bool strips_system; /* leaves out the properties that the server adds */
    uint32_t concurrency;
    uint32_t ru_per_s_max;   /* 0 for no limit */
    const char *resume_path; /* NULL if it cannot be resumed */
    bool has_digest;
    bool is_quiet;
    int stop_fd; /* of stop_signal.h; -1 if there is none */
} ExportOptions;

typedef struct ExportSummary {
    ItemDigest digest; /* its count is that of items; the sum is 0 without 'has_digest' */
    uint64_t throttled;
    uint64_t requests;
    uint64_t bytes; /* of the file */
    double ru;
    double seconds;
    bool is_interrupted;
    bool is_resumed;
} ExportSummary;

/* The summary is filled also if it fails: with what was done until then. */
MUST_USE Status export_run(const ExportOptions *options, ExportSummary *out, Error *err);
