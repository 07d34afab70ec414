/* copy_int.h - the state of a copy, for its own files:
 *
 *     copy.c          the phases: set up, read and follow, compare, swap
 *     copy_setup.c    the definition of the copy, throughput, scripts; retention of the source
 *     copy_feed.c     lanes: pages of the change feed of the source
 *     copy_apply.c    pages become operations on the copy
 *     copy_compare.c  digests, and what the source does not have any more
 *     copy_swap.c     the copy takes the name over
 */
#pragma once

#include "transfer/call_wave.h"
#include "transfer/checkpoint.h"
#include "transfer/container_map.h"
#include "transfer/copy.h"
#include "transfer/copy_plan.h"
#include "transfer/copy_state.h"
#include "transfer/progress.h"
#include "transfer/remote.h"

enum { COPY_HEADERS_MAX = 12, COPY_PAGE_ITEMS = 1000 };

/* One of the two containers. */
typedef struct CopySide {
    Remote remote;
    Wave wave;
    Arena map_arena;
    ContainerMap map;
} CopySide;

typedef struct Copy {
    const CopyOptions *options;
    Arena arena;
    char job[CHECKPOINT_JOB_LEN];
    CopyState state;
    bool has_state; /* it was read, or there was none: it may be saved */
    CopySide source;
    CopySide target;
    CopyKeys keys;
    bool is_mapped; /* the keys differ */
    bool is_mortal; /* items may expire, in the source before they do in the copy */
    WaveCost cost;
    Progress progress;
    uint64_t total; /* items of the source, for the progress; 0 if it does not say */
    bool needs_map; /* of the source */
    CopySummary summary;
} Copy;

/* A call with room for its headers. */
typedef struct CopyCall {
    WaveCall wave; /* first: an array of these is run by copy_calls_run */
    ClientHeader headers[COPY_HEADERS_MAX];
} CopyCall;

void copy_call_init(CopyCall *call, const CopySide *side, RemoteFeed feed, Arena *arena);
void copy_call_header(CopyCall *call, const char *name, Slice value);
MUST_USE Status copy_calls_run(CopySide *side, CopyCall *calls, size_t count, Error *err);

/* The ranges of a side, asked again. */
MUST_USE Status copy_read_map(CopySide *side, Error *err);

/* Saves how far it is, if it can be resumed. */
MUST_USE Status copy_save(Copy *copy, Error *err);

/* ---- copy_setup.c ---- */

/* Makes the copy if it is not there, and switches the feed of all versions on. Fills the keys. */
MUST_USE Status copy_set_up(Copy *copy, bool is_resumed, Error *err);
MUST_USE Status copy_restore_retention(Copy *copy, Error *err);
MUST_USE Status copy_read_container(const CopySide *side, Arena *arena, Json *out, Slice *rid,
                                    bool *found, Error *err);

/* ---- copy_feed.c ---- */

MUST_USE Status copy_open_lanes(Copy *copy, Error *err);

/* Reads one page of each lane and applies it. '*count' is how many changes there were. */
MUST_USE Status copy_round(Copy *copy, size_t *count, Error *err);
bool copy_is_level(const Copy *copy);

/* ---- copy_apply.c ---- */

MUST_USE Status copy_apply(Copy *copy, Arena *arena, const CopyChange *changes, size_t count,
                           bool looks_up, Error *err);

typedef struct CopyItem {
    Slice id;
    Json item;
    CopyFound found;
} CopyItem;

/* The items of a side that have one of the ids of the changes. */
MUST_USE Status copy_look_up(Copy *copy, CopySide *side, Arena *arena, const CopyChange *changes,
                             size_t count, CopyItem **out, size_t *out_count, Error *err);

/* Tries those again that were rejected. */
MUST_USE Status copy_retry_rejects(Copy *copy, Error *err);

/* ---- copy_compare.c ---- */

MUST_USE Status copy_digest(Copy *copy, CopySide *side, ItemDigest *out, Error *err);
MUST_USE Status copy_remove_others(Copy *copy, Error *err);
MUST_USE Status copy_count(const CopySide *side, uint64_t *out, bool *found, Error *err);

/* ---- copy_swap.c ---- */

/* Holds the writes of the source and lets them go on: all that began before is durable. */
MUST_USE Status copy_settle(Copy *copy, Error *err);

/* On success the names have changed, or '*is_late': the time was over, and there is more to follow.
 */
MUST_USE Status copy_swap(Copy *copy, bool *is_late, Error *err);
MUST_USE Status copy_drop_old(Copy *copy, Error *err);
