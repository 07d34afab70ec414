/* rewind.h - takes the items of a partition back to an earlier time, by its history of changes.
 *
 * For a folder that was restored from a backup, before a server opens it. Each change that was made
 * after the time is undone, the newest first, by an ordinary write. So the partition passes through
 * states that it had before, in which unique keys hold, and its LSNs go on: whoever follows its
 * changes sees these, too. An item that is changed in this way has a new _ts and ETag.
 *
 * Time is in seconds: what was done in that second or before stays. Not undone are deletes by the
 * time to live.
 *
 * Threads    One; nobody else uses the partition meanwhile.
 */
#pragma once

#include "partition/partition.h"

typedef struct RewindOptions {
    int64_t at_s;
    int64_t complete_from_s; /* all changes that were made after this second are in the history: by
                                the container's policy, and when that was set */
} RewindOptions;

typedef struct RewindFacts {
    int64_t earliest_s; /* the earliest time that is possible; INT64_MIN for any */
    uint64_t changes;   /* that are to be undone */
} RewindFacts;

/* Whether it is possible ('at_s' is not before 'earliest_s'). Changes nothing. */
MUST_USE Status partition_rewind_check(Partition *partition, const RewindOptions *options,
                                       RewindFacts *out, Error *err);

/* Does it. If it fails, or the process ends, part of it is done. */
MUST_USE Status partition_rewind(Partition *partition, const RewindOptions *options, Error *err);

/* What is written from now on has LSNs and numbers that are higher by as much: no client of a
 * server that wrote more than this one knows of has seen them. The partition must be opened again
 * before anything is written. */
MUST_USE Status partition_skip_numbers(Partition *partition, uint64_t lsns, uint64_t items,
                                       Error *err);
