/* move.h - taking the items of partitions over into others, while clients go on.
 *
 * A split fills several new partitions from one, a merge one from several; both are a move. It goes
 * in steps, which whoever drives it may pause between:
 *
 *     begin      the sources note from now on what changes in them
 *     copy       piece by piece, what they hold goes to the targets
 *     catch up   what was noted meanwhile is read again and made the same in the targets
 *     fence      what is posted to the sources waits; the last notes are caught up with, and the
 *                targets hold what the sources hold
 *     end        the map has changed: whoever waits, or comes later, is told that the source is
 *                gone (STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE), and asks the map again
 *     cancel     instead of that, at any step: the sources go on as if nothing had happened
 *
 * Nothing of this is stored in the sources, and the targets are nobody's until the map changes: a
 * crash leaves the sources as they are, and targets that are to be thrown away. So what is copied
 * goes past the store's log, in bulk: see move.c. An item keeps its number, its ETag and its times.
 * A target's LSN is at least the sources'.
 *
 * Ownership  A move holds references on its partitions. The slices of its targets are copied.
 * Threads    One thread drives a move; its calls wait for the disk.
 * Bounds     A piece has about MOVE_PIECE_BYTES; notes take MOVE_NOTES_BYTES_MAX per source at
 *            most, beyond which catching up fails with STATUS_UNAVAILABLE.
 */
#pragma once

#include "partition/partition.h"

#define MOVE_PIECE_BYTES     ((size_t)256 << 10)
#define MOVE_NOTES_BYTES_MAX ((size_t)64 << 20)
#define MOVE_FENCE_US_MAX    ((uint64_t)250000)

typedef struct Move Move;

typedef struct MoveTarget {
    Partition *partition; /* empty, and known to nobody else */
    Slice epk_from;       /* what is at or behind this, and before the next target's, is its */
} MoveTarget;

/* Targets are in order, and the first begins where the first source does. */
Move *move_new(Partition *const *sources, size_t source_count, const MoveTarget *targets,
               size_t target_count);
void move_free(Move *move); /* accepts NULL; cancels what has not ended */
DEFINE_AUTO(Move *, move_free)

MUST_USE Status move_begin(Move *move, Error *err);

/* Copies the next piece; '*is_done' when there is none left. */
MUST_USE Status move_copy(Move *move, bool *is_done, Error *err);

/* Catches up with a piece of what was noted; '*left' is about how many notes there are still. */
MUST_USE Status move_catch_up(Move *move, size_t *left, Error *err);

/* STATUS_TIMEOUT if that takes longer than MOVE_FENCE_US_MAX, since much has changed at the last
 * moment: the sources go on, and there is more to catch up with before the next fence. */
MUST_USE Status move_fence(Move *move, Error *err);

/* 'gone' is called for each source when nobody reads from it any more, on whatever thread was the
 * last to, so that its space can be emptied. It passes a message on and does not wait. */
typedef void (*PartitionGone)(void *ctx, StoreSpace space);
void move_end(Move *move, PartitionGone gone, void *ctx);
void move_cancel(Move *move);

/* So far, for whoever watches. */
typedef struct MoveProgress {
    uint64_t bytes_copied;
    uint64_t items_copied;
    uint64_t items_caught_up;
    uint64_t fence_us; /* how long writes had to wait */
} MoveProgress;
MoveProgress move_progress(const Move *move);
