/* item_move.h - moves the items of partitions into others, while clients continue.
 *
 * A split fills several new partitions from one, a merge one from several; both are a move. It goes
 * in steps, between which its driver may pause:
 *
 *     begin      from now on the sources keep deletes in their change logs, too (WATCHED)
 *     copy       piece by piece, what they hold goes to the targets
 *     catch up   what the logs say was changed since is read again and made the same in the targets
 *     fence      messages to the sources wait (FENCED); the last changes are caught up with, and
 *                the targets hold what the sources hold
 *     end        the map has changed (RETIRED): messages that wait, or come later, are refused as
 *                gone (STATUS_GONE, SUB_PARTITION_KEY_RANGE_GONE), and their senders ask the map
 *                again
 *     cancel     instead of that, at any step: the sources serve on as if nothing had happened
 *
 * No client uses the targets until the map changes: a crash leaves the sources as they are, but for
 * deletes in their logs that maintenance removes, and targets that the next start removes. So what
 * is copied goes past the store's log, in bulk: see item_import.c. An item keeps its number, its
 * ETag, its LSN and its times, and the history of changes goes along. A target's LSN is at least
 * the sources'.
 *
 * Ownership  A move holds references on its partitions. The slices of its targets are copied.
 * Threads    One thread drives a move; its calls wait for the disk.
 * Bounds     A piece has about MOVE_PIECE_BYTES.
 */
#pragma once

#include "partition/partition.h"

#define MOVE_PIECE_BYTES  ((size_t)256 << 10)
#define MOVE_FENCE_US_MAX ((uint64_t)250000)

typedef struct Move Move;

/* A source, or a target, which is empty and used by nothing else. Its items are from 'epk_from' up
 * to the next one's. */
typedef struct MovePart {
    Partition *partition;
    Slice epk_from;
} MovePart;

/* Both are in order, and the first target begins where the first source does. */
Move *move_new(const MovePart *sources, size_t source_count, const MovePart *targets,
               size_t target_count);
void move_free(Move *move); /* accepts NULL; cancels what has not ended */
DEFINE_AUTO(Move *, move_free)

MUST_USE Status move_begin(Move *move, Error *err);

/* Copies the next piece or, at the end, writes more of what the targets have kept of them.
 * '*is_done' when nothing is left. */
MUST_USE Status move_copy(Move *move, bool *is_done, Error *err);

/* Catches up with a piece of what was changed; '*left' is about how many changes are left. */
MUST_USE Status move_catch_up(Move *move, size_t *left, Error *err);

/* Whether a source that keeps a history of changes is still removing what was purged: a fence must
 * wait for that, because each delete is a change of its own. */
bool move_has_purges(const Move *move);

/* STATUS_TIMEOUT if that takes longer than MOVE_FENCE_US_MAX, because much has changed at the last
 * moment, or if there are such purges: the sources serve on, and there is more to catch up with
 * before the next fence. */
MUST_USE Status move_fence(Move *move, Error *err);

/* 'gone' is called for each source when its last reader has gone, on that reader's thread, so that
 * its space can be emptied. It posts a message and must not wait. */
typedef void (*PartitionGone)(void *ctx, StoreSpace space);
void move_end(Move *move, PartitionGone gone, void *ctx);
void move_cancel(Move *move);

/* What was done so far. */
typedef struct MoveProgress {
    uint64_t bytes_copied;
    uint64_t items_copied;
    uint64_t items_caught_up;
    uint64_t fence_us; /* how long writes had to wait */
} MoveProgress;
MoveProgress move_progress(const Move *move);
