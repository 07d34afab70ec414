/* export_int.h - what the files of an export share; for export*.c only.
 *
 *     export_parts.c   ranges of hashes -> requests -> pages
 *     export.c         pages -> items in the output, the loop, what is kept to be resumed
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "transfer/checkpoint.h"
#include "transfer/container_map.h"
#include "transfer/export.h"
#include "transfer/pacing.h"
#include "transfer/progress.h"
#include "transfer/remote.h"

enum { EXPORT_HEADERS_MAX = 10 };

/* A range of hashes:
 *
 *     IDLE -> ACTIVE -> IDLE ... -> FINISHED
 *                 \-> REPLACED, after a split
 */
typedef enum PartState { PART_IDLE, PART_ACTIVE, PART_FINISHED, PART_REPLACED } PartState;

typedef struct Part {
    PartState state;
    char *min; /* on the heap, as the two below */
    char *max;
    char *token; /* "" at the beginning */
    uint32_t attempts;
    uint64_t wait_until_us;

    /* Of the request under way. */
    ClientCall call;
    ClientHeader headers[EXPORT_HEADERS_MAX];
    double reserved;
    Arena arena;
} Part;

typedef struct Export {
    const ExportOptions *options;
    Arena arena;
    Remote remote;
    char job[CHECKPOINT_JOB_LEN];
    bool is_stopping;

    /* export_parts.c */
    Arena map_arena;
    ContainerMap map;
    bool is_whole; /* a query that the server must merge: one part, which names no range */
    Buf query;     /* the body of its requests */
    Part **parts;
    size_t part_count;
    size_t part_capacity;
    size_t active_count;
    size_t finished_count;
    bool needs_map;
    uint32_t map_attempts;
    RuLimit ru_limit;
    uint64_t answered_us;
    uint64_t failing_since_us; /* 0 if the server can be reached */

    /* export.c */
    Output *output;
    ItemDigest digest;
    bool is_torn;   /* a page was written in part */
    uint64_t total; /* items, as the server counts them; 0 if it does not say */
    Arena item_arena;
    Buf item_text;
    uint64_t checkpoint_us;
    Progress progress;
    ExportSummary summary;
} Export;

/* ---- export_parts.c ---- */

/* Reads the ranges, and makes parts of them or of those of the checkpoint. */
MUST_USE Status export_parts_open(Export *export, const ExportCheckpoint *checkpoint, Error *err);
void export_parts_close(Export *export);

/* Starts as many requests as may start; '*wait_ms' is lowered to when more may. */
MUST_USE Status export_parts_send(Export *export, uint64_t now_us, uint32_t *wait_ms, Error *err);

/* Deals with an answer; pages go to export_page. */
MUST_USE Status export_parts_answer(Export *export, ClientCall *ended, uint64_t now_us, Error *err);

/* ---- export.c ---- */

/* Writes the items of a page. */
MUST_USE Status export_page(Export *export, const ClientCall *call, Error *err);
