/* copy.h - copies a container to another one, while it is written to.
 *
 * The copy reads the change feed of the source from its beginning, and follows it until it is
 * level. Deletes come from the feed of all versions, which is switched on in the source for the
 * time of the copy if it is not kept anyway; where a server cannot do that, what the source does
 * not have any more is looked for at the end. On an Orrery server the copy can take the name of the
 * source over, in one step.
 *
 * Ownership  The strings of the options are the caller's.
 * Threads    Everything runs on the caller's thread.
 */
#pragma once

#include "base/error.h"
#include "client/client.h"
#include "transfer/item_digest.h"

#define COPY_CONCURRENCY_MAX  1000
#define COPY_ANSWER_BYTES_MAX ((size_t)32 << 20) /* a transaction of a feed is never cut */

typedef struct CopyOptions {
    Client *from;
    Client *to; /* may be the same */
    bool is_one_server;
    const char *database;
    const char *container;
    const char *to_database;
    const char *to_container;
    const char *partition_key; /* "/a,/b"; NULL for that of the source */
    const char *indexing;      /* a JSON text; NULL for that of the source */
    uint32_t throughput;       /* 0 for that of the source */
    bool no_scripts;
    bool no_retention; /* the source's definition is not touched */
    bool no_bulk;
    bool swaps;
    bool drops_old;
    uint32_t hold_ms;
    uint32_t concurrency;
    uint32_t ru_per_s_max;   /* 0 for no limit */
    const char *resume_path; /* NULL if it cannot be resumed */
    const char *rejects_path;
    bool is_quiet;
    int stop_fd; /* of stop_signal.h; -1 if there is none */
} CopyOptions;

typedef struct CopySummary {
    uint64_t copied; /* changes that were written, deletes included; with those of earlier runs */
    uint64_t rejected;
    uint64_t requests;
    uint64_t throttled;
    double ru;
    double seconds;
    bool is_interrupted;
    bool is_resumed;
    bool is_swapped;
    bool was_swapped;  /* by an earlier run */
    bool has_digests;  /* the two below were compared */
    bool has_versions; /* deletes were read from the feed */
    uint64_t removed;  /* items that the source did not have any more, found by comparing */
    ItemDigest source;
    ItemDigest copy;
    double held_ms;     /* how long writes had to wait */
    char old_name[300]; /* of the source after the swap */
} CopySummary;

/* The summary is filled also if it fails: with what was done until then. */
MUST_USE Status copy_run(const CopyOptions *options, CopySummary *out, Error *err);
