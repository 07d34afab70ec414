/* partition_handle.c - see partition_handle.h. */
#include "catalog/partition_handle_int.h"

#include "catalog/resource.h"
#include "partition/write_hold.h"

static bool is_among(const PartitionRange *range, const PartitionRange *ranges, size_t count)
{
    return range >= ranges && range < ranges + count;
}

PartitionHandle *container_handle(const Container *container, const PartitionRange *range)
{
    if (LIKELY(is_among(range, container->ranges, container->range_count)))
        return &container->handles[range - container->ranges];
    ASSERT(is_among(range, container->pending, container->pending_count));
    return &container->pending_handles[range - container->pending];
}

PartitionHandle *container_handle_at(const Container *container, size_t index)
{
    ASSERT(index < container->range_count);
    return &container->handles[index];
}

const PartitionRange *handle_range(const PartitionHandle *handle)
{
    return handle->range;
}

bool handle_is_local(const PartitionHandle *handle)
{
    return handle->partition != NULL;
}

Partition *handle_local(const PartitionHandle *handle)
{
    return handle->partition;
}

bool handle_is_served(const PartitionHandle *handle)
{
    return handle->partition != NULL && !partition_is_stopped(handle->partition);
}

static Status served_elsewhere(const PartitionHandle *handle, Error *err)
{
    return error_set(err, STATUS_NOT_OWNER, SUB_NONE,
                     "The partition key range %u is served by another node.", handle->range->id);
}

#define TRY_LOCAL(handle, err)                     \
    do {                                           \
        if (UNLIKELY((handle)->partition == NULL)) \
            return served_elsewhere(handle, err);  \
    } while (0)

uint64_t handle_lsn(const PartitionHandle *handle)
{
    return LIKELY(handle->partition != NULL) ? partition_lsn(handle->partition) : 0;
}

PartitionUsage handle_usage(const PartitionHandle *handle)
{
    return LIKELY(handle->partition != NULL) ? partition_usage(handle->partition)
                                             : (PartitionUsage){0};
}

KnownUsage handle_known_usage(const PartitionHandle *handle, uint64_t now_us)
{
    Charge busiest = budget_busiest_second(handle->budget, now_us);
    if (LIKELY(handle->partition != NULL))
        return (KnownUsage){
            .held = partition_usage(handle->partition), .busiest = busiest, .is_fresh = true};
    uint64_t at_us;
    SpaceUsage said = reported_usage_last(handle->reported, &at_us);
    bool is_fresh = at_us != 0 && (at_us >= now_us || now_us - at_us <= USAGE_FRESH_US);
    return (KnownUsage){
        .held = said.held,
        .busiest = is_fresh && said.busiest > busiest ? said.busiest : busiest,
        .is_fresh = is_fresh,
        .is_one_key = is_fresh && said.is_one_key,
    };
}

uint64_t handle_index_bytes(const PartitionHandle *handle)
{
    return LIKELY(handle->partition != NULL) ? partition_index_bytes(handle->partition) : 0;
}

unsigned handle_index_progress(const PartitionHandle *handle)
{
    return LIKELY(handle->partition != NULL) ? partition_index_progress(handle->partition) : 0;
}

Status handle_get(PartitionHandle *handle, const PartitionSchema *schema, const Epk *epk, Slice id,
                  StoreRead read, Item *item, StoreValue *value, StoreFound *found, Error *err)
{
    TRY_LOCAL(handle, err);
    return partition_get(handle->partition, schema, epk, id, read, item, value, found, err);
}

Status handle_locate(PartitionHandle *handle, uint64_t number, Arena *arena, Slice *epk, Slice *id,
                     bool *found, Error *err)
{
    TRY_LOCAL(handle, err);
    return partition_locate(handle->partition, number, arena, epk, id, found, err);
}

Status handle_submit(PartitionHandle *handle, PartitionWrite *write, Error *err)
{
    TRY_LOCAL(handle, err);
    write->message.generation = handle->generation;
    return partition_submit(handle->partition, write, err);
}

Status handle_purge(PartitionHandle *handle, PartitionPurge *purge, Error *err)
{
    TRY_LOCAL(handle, err);
    purge->message.generation = handle->generation;
    return partition_purge(handle->partition, purge, err);
}

Status handle_scan_open(PartitionHandle *handle, PartitionSchema *schema,
                        const ScanOptions *options, PartitionScan **out, Error *err)
{
    TRY_LOCAL(handle, err);
    return partition_scan_open(handle->partition, schema, options, out, err);
}

Status handle_view_open(PartitionHandle *handle, PartitionSchema *schema, StoreRead read,
                        PartitionView **out, Error *err)
{
    TRY_LOCAL(handle, err);
    return partition_view_open(handle->partition, schema, read, out, err);
}

Status handle_feed_open(PartitionHandle *handle, PartitionSchema *schema,
                        const FeedOptions *options, ChangeFeed **out, Error *err)
{
    TRY_LOCAL(handle, err);
    return change_feed_open(handle->partition, schema, options, out, err);
}

Status handle_txn_begin(PartitionHandle *handle, PartitionSchema *schema, const Epk *epk,
                        uint64_t deadline_us, PartitionTransaction **out, Error *err)
{
    TRY_LOCAL(handle, err);
    return transaction_begin(handle->partition, schema, epk, deadline_us, out, err);
}

Status handle_hold(PartitionHandle *handle, Error *err)
{
    TRY_LOCAL(handle, err);
    return write_hold_begin(handle->partition, err);
}

void handle_let_go(PartitionHandle *handle, uint32_t generation)
{
    if (handle->partition != NULL)
        write_hold_end(handle->partition, generation);
}

Status handle_count_keys(PartitionHandle *handle, const PartitionSchema *schema, ScanBudget *budget,
                         LogicalCount *out, Error *err)
{
    TRY_LOCAL(handle, err);
    return logical_partitions_count(handle->partition, schema, handle->range->min_bytes,
                                    handle->range->max_bytes, budget, out, err);
}

Status handle_add_largest(PartitionHandle *handle, LargestPartitions *top, ScanBudget *budget,
                          bool *is_complete, Slice *next, Error *err)
{
    TRY_LOCAL(handle, err);
    return largest_partitions_add(top, handle->partition, handle->range->min_bytes,
                                  handle->range->max_bytes, budget, is_complete, next, err);
}

Status handle_key_text(PartitionHandle *handle, const PartitionSchema *schema, Slice epk,
                       Arena *arena, Slice *text, bool *found, Error *err)
{
    TRY_LOCAL(handle, err);
    return logical_partition_key_text(handle->partition, schema, epk, arena, text, found, err);
}

void handle_set_terms(PartitionHandle *handle, const BudgetTerms *terms, uint64_t now_us)
{
    budget_set(handle->budget, terms, now_us);
}

BudgetAnswer handle_admit(PartitionHandle *handle, BudgetClass class, Charge ahead, uint64_t now_us,
                          uint32_t *wait_ms)
{
    return budget_admit(handle->budget, class, ahead, now_us, wait_ms);
}

void handle_charge(PartitionHandle *handle, BudgetClass class, Charge charge, uint64_t now_us)
{
    budget_charge(handle->budget, class, charge, now_us);
}

uint64_t handle_share(const PartitionHandle *handle)
{
    return budget_share(handle->budget);
}

uint64_t handle_share_between(const PartitionHandle *handle, uint64_t from_us, uint64_t to_us)
{
    return budget_share_between(handle->budget, from_us, to_us);
}

Charge handle_credit(const PartitionHandle *handle, uint64_t now_us)
{
    return budget_credit(handle->budget, now_us);
}

bool handle_shares_budget(const PartitionHandle *handle, const PartitionHandle *other)
{
    return handle->budget == other->budget;
}

void handle_note(PartitionHandle *handle, HistoryPool *pool, uint64_t now_s,
                 HistoryOperation operation, HistoryCount more)
{
    history_add(handle->history, pool, now_s, operation, more);
}

const History *handle_history(const PartitionHandle *handle)
{
    return handle->history;
}
