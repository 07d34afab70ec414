/* logical_partitions.h - how much each logical partition of a physical one holds.
 *
 * Every logical partition that has items has a record of how many, and of how many bytes (I16). It
 * is written with the items, and so agrees with them after any crash. Expired and purged items
 * count until they are removed.
 *
 * There may be millions of them: everything here is bounded by a ScanBudget, and says if it was
 * used up. Reads may wait for the disk.
 *
 * Ownership  Results live in the arena passed in, or as long as they say.
 * Threads    Workers. A walk and a LargestPartitions belong to one thread at a time.
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

typedef struct LogicalPartitions LogicalPartitions;

/* Over EPKs of ['epk_from', 'epk_to'); no end if 'epk_to' is empty. STATUS_UNAVAILABLE if the
 * partition's sizes are not known: see partition_open. */
MUST_USE Status logical_partitions_open(Partition *partition, Slice epk_from, Slice epk_to,
                                        LogicalPartitions **out, Error *err);

/* The EPK lives until the next call. '*found' is false at the end. */
MUST_USE Status logical_partitions_next(LogicalPartitions *walk, LogicalSize *out, bool *found,
                                        Error *err);
void logical_partitions_close(LogicalPartitions *walk); /* accepts NULL */
DEFINE_AUTO(LogicalPartitions *, logical_partitions_close)

/* ---- how many ---- */

typedef struct LogicalCount {
    uint64_t count;
    bool is_exact; /* if not: estimated from as many as the budget allowed, and the part of the
                      range of hashes that they cover */
} LogicalCount;

/* ['epk_from', 'epk_to') is the partition's range. A budget of LOGICAL_PARTITIONS_COUNT_ENTRIES
 * gives an estimate that is off by about 0.3% (a standard deviation), if hashes are spread evenly;
 * of a hierarchical key only the first component is. */
#define LOGICAL_PARTITIONS_COUNT_ENTRIES 100000
MUST_USE Status logical_partitions_count(Partition *partition, const PartitionSchema *schema,
                                         Slice epk_from, Slice epk_to, ScanBudget *budget,
                                         LogicalCount *out, Error *err);

/* ---- the largest ---- */

typedef struct LargestPartitions LargestPartitions;

/* Keeps the 'max' largest logical partitions, by bytes, of all that are added to it.
 */
LargestPartitions *largest_partitions_new(Arena *arena, size_t max);

/* Looks at the logical partitions of ['epk_from', 'epk_to'). If the budget is used up before the
 * end, '*is_complete' is false and '*next' (in the arena) is where to continue. */
MUST_USE Status largest_partitions_add(LargestPartitions *top, Partition *partition, Slice epk_from,
                                       Slice epk_to, ScanBudget *budget, bool *is_complete,
                                       Slice *next, Error *err);

/* Largest first; of two with as many bytes the one with the lower EPK. Valid until more is added.
 */
const LogicalSize *largest_partitions_list(LargestPartitions *top, size_t *count);

/* ---- one ---- */

/* The value of the partition key with this EPK, from one of its items, as clients send it in
 * x-ms-documentdb-partitionkey: a JSON array, with {} for a value that is missing. */
MUST_USE Status logical_partition_key_text(Partition *partition, const PartitionSchema *schema,
                                           Slice epk, Arena *arena, Slice *text, bool *found,
                                           Error *err);
