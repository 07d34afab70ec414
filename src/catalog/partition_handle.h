/* partition_handle.h - the one way to a physical partition.
 *
 * A PartitionRange names a partition: the id of its range and the space of its data. Everything
 * that is asked of the partition goes through a handle: reads, writes, views, sizes, and the
 * admission and charging of requests, because the process that serves a partition decides what it
 * may spend.
 *
 * Of a partition that this process serves, a handle passes each call on to its Partition, Budget
 * and History. Of one that is served elsewhere (placement.h) it has no Partition: then functions
 * that can fail fail with STATUS_NOT_OWNER, what is said of the contents is 0 except by
 * handle_known_usage, and the Budget and the History are there. Except by handle_local(), no
 * pointer to a partition leaves this module.
 *
 * Ownership  A Container owns the handles of its ranges, and keeps what they use alive. A caller
 *            that keeps a handle longer than its snapshot holds a reference on the container.
 * Threads    Any thread, as the functions of partition.h, logical_partitions.h, ru_budget.h and
 * history.h say.
 */
#pragma once

#include "partition/change_feed.h"
#include "partition/logical_partitions.h"
#include "partition/partition.h"
#include "partition/transaction.h"
#include "partition/view.h"
#include "throughput/history.h"
#include "throughput/ru_budget.h"

typedef struct Container Container;
typedef struct PartitionRange PartitionRange;
typedef struct PartitionHandle PartitionHandle;

/* The handle of one of the container's ranges, in the map or pending; and of the range in the map
 * with this index. */
PartitionHandle *container_handle(const Container *container, const PartitionRange *range);
PartitionHandle *container_handle_at(const Container *container, size_t index);

const PartitionRange *handle_range(const PartitionHandle *handle);

/* Whether this process serves the partition; and the partition itself if so, otherwise NULL: for
 * moves, clean-up and tools, which run where the data is. */
bool handle_is_local(const PartitionHandle *handle);
Partition *handle_local(const PartitionHandle *handle);

/* Whether this process still serves the partition: a handle of an older snapshot may name one that
 * was stopped since, and that publishes no LSN any more. */
bool handle_is_served(const PartitionHandle *handle);

/* ---- what the partition holds ---- */

uint64_t handle_lsn(const PartitionHandle *handle);
PartitionUsage handle_usage(const PartitionHandle *handle);
/* What is known of a partition, wherever it is. Of one that is served elsewhere its owner tells now
 * and then (catalog_note_usage). */
typedef struct KnownUsage {
    PartitionUsage held; /* of one that is elsewhere what was said last, 0 if nothing was */
    Charge busiest;      /* the most of one of the last seconds, as far as it is known */
    bool is_fresh;       /* it is here, or it was said within USAGE_FRESH_US */
    bool is_one_key;     /* its owner says so: see SpaceUsage */
} KnownUsage;

/* Some rounds in which nodes ask each other, of which one may fail. */
#define USAGE_FRESH_US UINT64_C(10000000)

KnownUsage handle_known_usage(const PartitionHandle *handle, uint64_t now_us);

uint64_t handle_index_bytes(const PartitionHandle *handle);
unsigned handle_index_progress(const PartitionHandle *handle);

/* ---- items ---- */

/* With STORE_READ_MEMORY '*found' may be STORE_UNKNOWN: ask again on a worker. */
MUST_USE Status handle_get(PartitionHandle *handle, const PartitionSchema *schema, const Epk *epk,
                           Slice id, StoreRead read, Item *item, StoreValue *value,
                           StoreFound *found, Error *err);
MUST_USE Status handle_locate(PartitionHandle *handle, uint64_t number, Arena *arena, Slice *epk,
                              Slice *id, bool *found, Error *err);
MUST_USE Status handle_submit(PartitionHandle *handle, PartitionWrite *write, Error *err);
MUST_USE Status handle_purge(PartitionHandle *handle, PartitionPurge *purge, Error *err);
MUST_USE Status handle_scan_open(PartitionHandle *handle, PartitionSchema *schema,
                                 const ScanOptions *options, PartitionScan **out, Error *err);
MUST_USE Status handle_view_open(PartitionHandle *handle, PartitionSchema *schema, StoreRead read,
                                 PartitionView **out, Error *err);

MUST_USE Status handle_feed_open(PartitionHandle *handle, PartitionSchema *schema,
                                 const FeedOptions *options, ChangeFeed **out, Error *err);

/* What follows is asked of the transaction itself. It holds its partition. */
MUST_USE Status handle_txn_begin(PartitionHandle *handle, PartitionSchema *schema, const Epk *epk,
                                 uint64_t deadline_us, PartitionTransaction **out, Error *err);

/* Keeps writes waiting, and lets them go on: see write_hold.h. For the holder of a swap. */
MUST_USE Status handle_hold(PartitionHandle *handle, Error *err);
void handle_let_go(PartitionHandle *handle, uint32_t generation);

/* ---- logical partitions: see logical_partitions.h ---- */

MUST_USE Status handle_count_keys(PartitionHandle *handle, const PartitionSchema *schema,
                                  ScanBudget *budget, LogicalCount *out, Error *err);
MUST_USE Status handle_add_largest(PartitionHandle *handle, LargestPartitions *top,
                                   ScanBudget *budget, bool *is_complete, Slice *next, Error *err);
MUST_USE Status handle_key_text(PartitionHandle *handle, const PartitionSchema *schema, Slice epk,
                                Arena *arena, Slice *text, bool *found, Error *err);

/* ---- throughput: see ru_budget.h and history.h ---- */

void handle_set_terms(PartitionHandle *handle, const BudgetTerms *terms, uint64_t now_us);
BudgetAnswer handle_admit(PartitionHandle *handle, BudgetClass class, Charge ahead, uint64_t now_us,
                          uint32_t *wait_ms);
void handle_charge(PartitionHandle *handle, BudgetClass class, Charge charge, uint64_t now_us);
uint64_t handle_share(const PartitionHandle *handle); /* hundredths of request units a second */
uint64_t handle_share_between(const PartitionHandle *handle, uint64_t from_us, uint64_t to_us);
Charge handle_credit(const PartitionHandle *handle, uint64_t now_us);

/* Whether requests on both partitions are paid from one budget, as in a database that shares its
 * throughput. */
bool handle_shares_budget(const PartitionHandle *handle, const PartitionHandle *other);

/* Notes what a request asked of the partition; and all that was noted. */
void handle_note(PartitionHandle *handle, HistoryPool *pool, uint64_t now_s,
                 HistoryOperation operation, HistoryCount more);
const History *handle_history(const PartitionHandle *handle);
