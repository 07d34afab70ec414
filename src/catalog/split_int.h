/* split_int.h - where to cut a range of hashes. */
#pragma once

#include "base/arena.h"
#include "catalog/move_orders.h"

typedef struct Cuts {
    const Slice *texts; /* in order, strictly inside the range; in the arena */
    size_t count;       /* one less than parts, or fewer; 0 if there is nothing to cut */
} Cuts;

/* Finds where to cut the range of a partition that is served here. By size, an empty partition is
 * cut by hash, and one that holds a single logical partition is not cut. May wait for the disk. */
MUST_USE Status split_find(Arena *arena, const PartitionHandle *handle, PartitionKind kind,
                           uint32_t parts, SplitBy by, Cuts *out, Error *err);

/* Whether the range holds two logical partitions, which a cut can separate. May wait for the disk;
 * false if that fails. */
bool split_has_pair(const PartitionHandle *handle);
