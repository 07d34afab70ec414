/* import.h - writes the rows of files to a container, many at the same time.
 *
 * Every row becomes an upsert, so it may be written twice without harm: after a failure whose
 * outcome is unknown, and when an interrupted import is resumed. README.md follows a row from the
 * file to the server.
 *
 * Threads    All of it runs on the caller's thread.
 * Bounds     IMPORT_BYTES_UNDER_WAY_MAX and WINDOW_ROWS_MAX bound what is in memory, whatever the
 *            files are.
 */
#pragma once

#include "base/error.h"
#include "client/client.h"
#include "transfer/item_digest.h"
#include "transfer/row_reader.h"

#define IMPORT_BYTES_UNDER_WAY_MAX ((size_t)32 << 20) /* of items; one more may be on top */
#define IMPORT_CONCURRENCY_MAX     1000

/* Told of each row that was rejected, in the order of the files. */
typedef struct ImportRejects {
    void (*report)(void *ctx, const char *path, uint64_t line, const char *reason);
    void *ctx;
} ImportRejects;

typedef struct ImportOptions {
    Client *client;
    const char *database;
    const char *container;
    const char *const *sources; /* files, folders, "-" */
    size_t source_count;
    Slice text;            /* rows in memory, instead of files; ptr is NULL if there are none */
    const char *text_name; /* what rejects of 'text' call it */
    RowFormat format;
    CsvOptions csv;
    const char *const *sets; /* see row_mapping.h */
    size_t set_count;
    const char *id_from;       /* NULL if ids are the rows' own */
    const char *partition_key; /* "/pk" or "/a,/b"; NULL if the container's is fine */
    bool is_create;            /* makes database and container if they do not exist */
    uint32_t create_ru;        /* throughput of a new container; 0 for the server's default */
    uint32_t concurrency;      /* requests at the same time */
    uint32_t ru_per_s_max;     /* 0 for no limit */
    bool no_bulk;              /* one request an item */
    bool only_changes;         /* reads an item first, and writes it only if it is different */
    bool needs_ids;            /* rejects rows without an id */
    const char *resume_path;   /* NULL if it cannot be resumed */
    const char *rejects_path;  /* NULL: the first few are printed, or reported to 'rejects' */
    ImportRejects rejects;     /* 'report' is NULL if nothing is told */
    bool has_digest;
    bool is_quiet;
    Slice stdin_begun; /* what was read of standard input before: see import_sample.h */
    int stop_fd;       /* of stop_signal.h; -1 if there is none */
} ImportOptions;

typedef struct ImportSummary {
    ItemDigest digest;  /* its count is that of items written, or found to be the same; the sum is 0
                           without 'has_digest' */
    uint64_t unchanged; /* items that 'only_changes' has found to be the same */
    uint64_t rejected;
    uint64_t throttled; /* operations that the server has turned away, and that were tried again */
    uint64_t requests;
    double ru;
    double seconds;
    bool is_interrupted; /* by a signal */
    bool is_resumed;     /* counts include those of earlier runs */
} ImportSummary;

/* The summary is filled also if it fails: with what was done until then. */
MUST_USE Status import_run(const ImportOptions *options, ImportSummary *out, Error *err);
