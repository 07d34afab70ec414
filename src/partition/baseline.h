/* baseline.h - takes the items of partitions back to an earlier moment, a baseline.
 *
 *     hold      messages to the partitions wait, and the caller has the right to apply
 *     begin     all held partitions begin a baseline with this number
 *     restore   all items become what they were at the baseline, with their ETags, times and ids
 *     release   what has waited is applied to what is there now
 *
 * What a restore costs depends on how much has changed since the baseline began, or since it was
 * last restored. LSNs go on: each item that is put back or deleted has a new one, so followers of
 * changes see that, and tokens of sessions stay good. Items that have expired since are put back,
 * and expire at once.
 *
 * While a restore is under way, readers are refused (STATUS_THROTTLED), so that nobody sees half of
 * it. It is written in pieces of bounded size, each of which leaves the partition whole; after a
 * crash the caller must begin it again (I27).
 *
 * Ownership  The held partitions are referenced until they are released.
 * Threads    One thread holds, and waits for the disk. A partition that a move uses is not held.
 */
#pragma once

#include "partition/partition.h"

#define BASELINES_MAX 24 /* of one partition: each adds to the cost of a write */

typedef struct HeldPartitions HeldPartitions;

HeldPartitions *held_partitions_new(void);

/* Releases all of them: what has waited is applied. Accepts NULL. */
void held_partitions_free(HeldPartitions *held);
DEFINE_AUTO(HeldPartitions *, held_partitions_free)

/* Names a partition to be held; no two may be the same. */
void held_partitions_add(HeldPartitions *held, Partition *partition);

/* Holds all that were named and are not held yet. If one cannot be held, which was dropped or is
 * being moved, those that could are held. */
MUST_USE Status held_partitions_wait(HeldPartitions *held, Error *err);

/* Why a restore could not be finished: a partition is damaged, or the disk is full. STATUS_OK if
 * nothing is known against it. */
MUST_USE Status held_partitions_check(const HeldPartitions *held, Error *err);

/* Holds a partition that was opened and that no other thread knows yet, so that it is held from the
 * beginning, and refuses readers. The caller names it, too. */
void partition_hold_new(Partition *partition);
void held_partitions_add_held(HeldPartitions *held, Partition *partition);

/* Removes what is purged, so that no baseline keeps it. */
MUST_USE Status held_partitions_purge(HeldPartitions *held, Error *err);

/* STATUS_TOO_LARGE if a partition has BASELINES_MAX. */
MUST_USE Status held_partitions_begin(HeldPartitions *held, uint64_t baseline, Error *err);

/* Readers are refused from here on, until the partitions are released. */
void held_partitions_refuse_readers(HeldPartitions *held);

/* What partitions have no such baseline stays as it is. If this fails, it may be called again. */
MUST_USE Status held_partitions_restore(HeldPartitions *held, uint64_t baseline, Error *err);

/* Forgets all baselines but these, and removes what they kept in the background. The partition must
 * not be held. */
MUST_USE Status partition_keep_baselines(Partition *partition, const uint64_t *numbers,
                                         size_t count, Error *err);

uint32_t partition_baseline_count(const Partition *partition);

/* Whether a purge is under way. */
bool partition_has_purges(Partition *partition);
