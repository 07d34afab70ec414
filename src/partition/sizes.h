/* sizes.h - how much each logical partition of a physical one holds.
 *
 * Every logical partition that has items has a record of how many, and of how many bytes, which is
 * written with the items and so agrees with them after any crash. What has expired or was purged
 * counts until it is removed.
 *
 * There may be millions of them: everything here is bounded by a ScanBudget and says when it was
 * used up. Reads may wait for the disk.
 *
 * Ownership  Results live in the arena passed in, or as long as they say.
 * Threads    Workers. A walk and a SizesTop belong to one thread at a time.
 */
#pragma once

#include "partition/partition.h"

typedef struct LogicalSize {
    Slice epk;
    uint64_t items;
    uint64_t bytes;     /* of stored items, with their keys */
    uint32_t partition; /* the id of the range that it is in */
} LogicalSize;

/* ---- all of them, in the order of their EPKs, in a snapshot ---- */

typedef struct SizesWalk SizesWalk;

/* Over EPKs of ['epk_from', 'epk_to'); an empty 'epk_to' is no end. STATUS_UNAVAILABLE if the
 * partition's sizes are not known: see partition_open. */
MUST_USE Status sizes_walk_open(Partition *partition, Slice epk_from, Slice epk_to, SizesWalk **out,
                                Error *err);

/* The EPK lives until the next call. '*found' is false at the end. */
MUST_USE Status sizes_walk_next(SizesWalk *walk, LogicalSize *out, bool *found, Error *err);
void sizes_walk_close(SizesWalk *walk); /* accepts NULL */
DEFINE_AUTO(SizesWalk *, sizes_walk_close)

/* ---- how many ---- */

typedef struct LogicalCount {
    uint64_t count;
    bool is_exact; /* false: from as many as the budget allowed, and the part of the range of hashes
                      that they take up */
} LogicalCount;

/* ['epk_from', 'epk_to') is the partition's range. A budget of 100,000 entries gives an estimate
 * that is off by about 0.3% (a standard deviation), where hashes are spread evenly; with a
 * hierarchical key that is so of its first component only. */
#define SIZES_COUNT_ENTRIES 100000
MUST_USE Status sizes_count(Partition *partition, const PartitionSchema *schema, Slice epk_from,
                            Slice epk_to, ScanBudget *budget, LogicalCount *out, Error *err);

/* ---- the largest ---- */

typedef struct SizesTop SizesTop;

/* Keeps the 'max' largest, by bytes, of what is added to it, from as many partitions as one likes.
 */
SizesTop *sizes_top_new(Arena *arena, size_t max);

/* Looks at the logical partitions of ['epk_from', 'epk_to'). If the budget is used up before the
 * end, '*is_complete' is false and '*next' (in the arena) is where to go on. */
MUST_USE Status sizes_top_add(SizesTop *top, Partition *partition, Slice epk_from, Slice epk_to,
                              ScanBudget *budget, bool *is_complete, Slice *next, Error *err);

/* Largest first; of two with as many bytes the one with the lower EPK. Valid until more is added.
 */
const LogicalSize *sizes_top_list(SizesTop *top, size_t *count);

/* ---- one ---- */

/* No items and no bytes if there is no such logical partition. */
MUST_USE Status sizes_get(Partition *partition, Slice epk, LogicalSize *out, Error *err);

/* The value of the partition key with this EPK, from one of its items, as clients send it in
 * x-ms-documentdb-partitionkey: a JSON array, with {} for a value that is missing. */
MUST_USE Status sizes_key_text(Partition *partition, const PartitionSchema *schema, Slice epk,
                               Arena *arena, Slice *text, bool *found, Error *err);
