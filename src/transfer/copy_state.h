/* copy_state.h - how far a copy is: the file from which it is resumed.
 *
 *     {"orrery":"copy","job":"...","source":"rid","copy":"rid","copied":1200,"versions":true,
 *      "retention":true,"swapped":false,"clean":true,"oldName":"orders-before-...",
 *      "lanes":[{"min":"","max":"FF","position":"\"17\"","base":"\"9\"","follows":true}],
 *      "rejects":[{"id":"1","key":"[\"a\"]","reason":"..."}]}
 *
 * It is replaced whole, like the checkpoints of imports (checkpoint.h). A lane is a range of hashes
 * of the source and the place in its feed up to which the copy has everything.
 *
 * Ownership  A CopyState keeps everything in its arena, which grows with the lanes that are cut and
 *            the rejects; positions are replaced in place.
 * Threads    One thread.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#define COPY_STATE_BYTES_MAX  ((size_t)4 << 20) /* as CHECKPOINT_BYTES_MAX */
#define COPY_LANES_MAX        4096
#define COPY_REJECTS_MAX      10000
#define COPY_POSITION_LEN_MAX 64 /* an ETag of the change feed */

typedef struct CopyLane {
    Slice min; /* hexadecimal */
    Slice max;
    char position[COPY_POSITION_LEN_MAX]; /* terminated; "" at the beginning */
    char base[COPY_POSITION_LEN_MAX];     /* where the feed was when the copy began */
    bool follows;                         /* the feed of all versions, from 'base' on */
    bool is_level;                        /* not stored: the feed had nothing new */
} CopyLane;

typedef struct CopyReject {
    Slice id;
    Slice key; /* in the source, as a JSON array */
    Slice reason;
} CopyReject;

typedef struct CopyState {
    Arena arena;
    Slice source; /* resource ids */
    Slice copy;   /* "" before it was made */
    Slice old_name;
    uint64_t copied;
    bool has_versions;  /* deletes are read from the feed of all versions */
    bool set_retention; /* which the copy has switched on in the source */
    bool is_swapped;
    bool is_clean; /* the last run has ended by itself: nothing of it is under way */
    CopyLane *lanes;
    size_t lane_count;
    size_t lane_capacity;
    CopyReject *rejects;
    size_t reject_count;
    size_t reject_capacity;
} CopyState;

void copy_state_init(CopyState *state);
void copy_state_done(CopyState *state);

/* Adds a lane with the positions of 'like', or without any if that is NULL. */
void copy_state_add_lane(CopyState *state, Slice min, Slice max, const CopyLane *like);

/* Notes that an item of the source is not in the copy; replaces an older reason. STATUS_TOO_LARGE
 * if there are too many. */
MUST_USE Status copy_state_reject(CopyState *state, Slice id, Slice key, Slice reason, Error *err);
void copy_state_forget(CopyState *state, Slice id, Slice key); /* it is in the copy now */

/* A position that is not too long and can stand in a header; false otherwise. */
bool copy_position_set(char out[COPY_POSITION_LEN_MAX], Slice etag);

/* The number of an ETag such as "17"; false if it is none. */
bool copy_position_lsn(const char *position, uint64_t *out);

/* Into a state that was just made. STATUS_BAD_REQUEST if it is not a state of this job. */
MUST_USE Status copy_state_parse(CopyState *state, Slice text, Slice job, Error *err);
void copy_state_print(const CopyState *state, Slice job, Buf *out);
