/* view.h - what a query sees of one partition: its index and its items, at one moment.
 *
 * A view is a snapshot with everything that belongs to it: the purges and expiry that hide items,
 * the index and which paths of it may be used, and the LSN. Items are fetched by the numbers that
 * the index gives; what the cache of items holds is used if it is not newer than the snapshot.
 *
 * Ownership  A view holds its partition and schema. An item fetched lives until the next fetch.
 * Threads    One at a time. A view keeps old versions from being compacted away: keep it for a
 * short time.
 */
#pragma once

#include "index/index_names.h"
#include "index/index_policy.h"
#include "index/index_reader.h"
#include "partition/partition.h"

typedef struct PartitionView PartitionView;

/* With STORE_READ_MEMORY whatever would have to wait for the disk, this call included, fails with
 * STATUS_TIMEOUT. */
MUST_USE Status partition_view_open(Partition *partition, PartitionSchema *schema, StoreRead read,
                                    PartitionView **out, Error *err);
void partition_view_close(PartitionView *view); /* accepts NULL */
DEFINE_AUTO(PartitionView *, partition_view_close)

/* Another view of the same moment, for another thread. The first view must outlive it. */
PartitionView *partition_view_share(const PartitionView *view);

/* The partition's, as of the snapshot. It may be published a moment later. */
uint64_t partition_view_lsn(const PartitionView *view);

/* To read the index with; 'budget' is the caller's and outlives the reader. */
IndexReader partition_view_index(PartitionView *view, IndexBudget *budget);

/* Whether every item of the partition is indexed under this path: the policy says so, and, while
 * it is being changed, the one before says so, too. */
bool partition_view_has_path(const PartitionView *view, const IndexStep *steps, size_t count);
bool partition_view_has_composite(const PartitionView *view, const CompositeIndex *index);

/* The spatial index under which shapes at this path are found: those of its types all are, even
 * while the policy is being changed. NULL if there is none. */
const SpatialIndex *partition_view_spatial(const PartitionView *view, const IndexStep *steps,
                                           size_t count);

/* Whether it shows writes of a transaction, which are not in the index: see transaction_view. */
bool partition_view_has_own_writes(const PartitionView *view);

/* Adds the names of the properties that the index has: see index_names.h. */
MUST_USE Status partition_view_names(PartitionView *view, IndexBudget *budget, IndexNames *names,
                                     bool *is_complete, Error *err);

/* Indexed items that are gone but not yet removed: expired or purged.
 * '*complete' is false if there are too many to be listed: then count by fetching. */
MUST_USE Status partition_view_list_gone(PartitionView *view, Arena *arena, NumberSet *out,
                                         bool *complete, Error *err);

/* Whether what is fetched from now on is put into the cache of items, where the next view finds it
 * (the default). A query that reads very many items should not fill the cache. */
void partition_view_fill_cache(PartitionView *view, bool puts);

/* The item with this number, if it is there and lives in ['epk_from', 'epk_to') (an empty 'epk_to':
 * no end). The document's bytes stay until the next fetch. */
MUST_USE Status partition_view_fetch(PartitionView *view, uint64_t number, Slice epk_from,
                                     Slice epk_to, Item *item, bool *found, Error *err);

/* A scan of the same snapshot, for queries that no index serves; see ScanOptions. Items that were
 * written with "do not index" are left out, as they are by the index. The view outlives the scan.
 */
MUST_USE Status partition_view_scan(PartitionView *view, const ScanOptions *options,
                                    PartitionScan **out, Error *err);

/* How many items the partition has, for estimates. */
uint64_t partition_view_items(const PartitionView *view);
