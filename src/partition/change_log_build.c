/* change_log_build.c - puts all items into the change log, once, for a partition that was written
 * before there was one (I23).
 *
 * An item's entry follows from the item, so it does not matter which entries are there already, or
 * how often this is begun and killed. The last transaction writes the version of the partition's
 * counters that says that it is done.
 *
 * Runs when the partition is opened, before it is written to. Memory is bounded by the
 * transactions' size.
 */
#include "partition/change_log_int.h"

#include "partition/partition_int.h"

/* What one transaction writes. */
#define BUILD_BYTES_MAX ((size_t)1 << 20)

static Status put_latest(const Partition *partition, StoreTxn *txn, Arena *arena, Slice key,
                         Slice value, Error *err)
{
    Item item;
    TRY(item_decode(value, &item, err));
    Slice epk = key_item_epk(partition->current.schema, key, &item);
    if (epk.len > EPK_BYTES_MAX)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the key of an item is damaged");
    Key place;
    key_change(&place, KEY_LATEST, item_place(&item));
    store_txn_put(txn, partition->space, key_slice(&place),
                  latest_encode(arena, item.ts_s, epk, slice_from(key, 1 + epk.len)));
    arena_reset(arena);
    return STATUS_OK;
}

static Status put_all(Partition *partition, StoreCursor *items, Arena *arena, StoreTxn **txn,
                      uint64_t *count, Error *err)
{
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(items, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        TRY(put_latest(partition, *txn, arena, key, value, err));
        ++*count;
        if (store_txn_bytes(*txn) < BUILD_BYTES_MAX)
            continue;
        TRY(store_txn_commit_wait(TAKE(*txn), err));
        *txn = store_txn_begin(partition->host->store);
    }
}

static Status build(Partition *partition, uint64_t *count, Error *err)
{
    static const uint8_t from[] = {KEY_ITEM};
    static const uint8_t to[] = {KEY_ITEM + 1};
    Store *store = partition->host->store;
    AUTO(store_snapshot_close)
    StoreSnapshot *snapshot = store_snapshot_open(store, STORE_READ_ANY);
    AUTO(store_cursor_close)
    StoreCursor *items =
        store_cursor_open(store, snapshot, partition->space, slice_make(from, sizeof(from)),
                          slice_make(to, sizeof(to)));
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    AUTO(store_txn_abort) StoreTxn *txn = store_txn_begin(store);
    TRY(put_all(partition, items, &arena, &txn, count, err));
    partition->has_log = true;
    partition_put_counters(partition, txn, &partition->writer.counters);
    Status status = store_txn_commit_wait(TAKE(txn), err);
    partition->has_log = status == STATUS_OK;
    return status;
}

void partition_build_log(Partition *partition)
{
    const PartitionHost *host = partition->host;
    uint64_t begun_us = clock_monotonic_us(host->clock);
    uint64_t count = 0;
    Error err;
    if (build(partition, &count, &err) == STATUS_OK)
        LOG_INFO(host->log, "partition.log_built", "partition=%u items=%llu took_ms=%llu",
                 partition->id, (unsigned long long)count,
                 (unsigned long long)(clock_monotonic_us(host->clock) - begun_us) / 1000);
    else
        /* All else works without the log; the next start tries again. */
        LOG_WARN(host->log, "partition.log_missing",
                 "partition=%u reason=%s (it has no change feed and cannot be split)",
                 partition->id, err.message);
}
