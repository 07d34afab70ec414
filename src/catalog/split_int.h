/* split_int.h - where to cut a range of hashes. */
#pragma once

#include "base/arena.h"
#include "catalog/moves.h"

typedef struct Cuts {
    const Slice *texts; /* in order, strictly inside the range; in the arena */
    size_t count;       /* one less than parts, or fewer; 0: there is nothing to cut */
} Cuts;

/* By size, what holds nothing is cut by hash; what holds one logical partition is not cut. May wait
 * for the disk. */
MUST_USE Status split_find(Arena *arena, const Container *container, const PartitionRange *range,
                           uint32_t parts, SplitBy by, Cuts *out, Error *err);

/* Whether the range holds two logical partitions, which a cut can part. May wait for the disk; if
 * that fails, false. */
bool split_has_pair(const PartitionRange *range);
