/* size_recount.c - counts what the logical partitions hold, once, for a partition that was written
 * before there were records of that (I18).
 *
 * Items and records are both in the order of their EPKs, so one walk along both finds for every EPK
 * what is there and what the record says. The difference is written, to be added. So it does not
 * matter what the records say, or how often this is begun and killed: what was counted already has
 * no difference any more. The last transaction writes the version of the partition's counters that
 * says that it is done.
 *
 * Runs when the partition is opened, before it is written to. Memory is bounded by the
 * transactions' size.
 */
#include "partition/partition_int.h"
#include "partition/size_record_int.h"

/* What one transaction writes. */
#define COUNT_BYTES_MAX ((size_t)1 << 20)

enum { REPORT_US = 5 * 1000000, REPORT_ITEMS = 4096 };

typedef struct Count {
    Partition *partition;
    StoreCursor *items;
    StoreCursor *records;
    StoreTxn *txn;

    Epk item_epk; /* of the item that 'items' stands at ... */
    size_t item_bytes;
    bool has_item;
    Epk record_epk; /* ... and the record */
    SizeSum record;
    bool has_record;

    uint64_t items_seen;
    uint64_t logical_seen;
    uint64_t report_at_us;
} Count;

static void report(Count *count)
{
    const PartitionHost *host = count->partition->host;
    uint64_t now_us = clock_monotonic_us(host->clock);
    if (now_us < count->report_at_us)
        return;
    count->report_at_us = now_us + REPORT_US;
    LOG_INFO(host->log, "partition.counting_sizes", "partition=%u items=%llu of=%llu",
             count->partition->id, (unsigned long long)count->items_seen,
             (unsigned long long)count->partition->writer.counters.items);
}

static Status next_item(Count *count, Error *err)
{
    Slice key;
    Slice value;
    TRY(store_cursor_next(count->items, &key, &value, &count->has_item, err));
    if (!count->has_item)
        return STATUS_OK;
    Item item;
    TRY(item_decode(value, &item, err));
    Slice epk = key_item_epk(count->partition->current.schema, key, &item);
    if (epk.len > EPK_BYTES_MAX)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the key of an item is damaged");
    epk_set(&count->item_epk, epk);
    count->item_bytes = key.len + value.len;
    if (++count->items_seen % REPORT_ITEMS == 0)
        report(count);
    return STATUS_OK;
}

static Status next_record(Count *count, Error *err)
{
    Slice key;
    Slice value;
    TRY(store_cursor_next(count->records, &key, &value, &count->has_record, err));
    if (!count->has_record)
        return STATUS_OK;
    if (key.len - 1 > EPK_BYTES_MAX || !size_decode(value, &count->record))
        return size_damaged(err);
    epk_set(&count->record_epk, slice_from(key, 1));
    return STATUS_OK;
}

/* Sums up the items of the EPK that 'items' stands at. */
static Status sum_items(Count *count, SizeSum *sum, Error *err)
{
    Epk epk = count->item_epk;
    *sum = (SizeSum){0};
    while (count->has_item && slice_equal(epk_slice(&count->item_epk), epk_slice(&epk))) {
        sum->items++;
        sum->bytes += (int64_t)count->item_bytes;
        TRY(next_item(count, err));
    }
    return STATUS_OK;
}

/* Commits the transaction if it is large enough. */
static Status write_some(Count *count, Error *err)
{
    if (store_txn_bytes(count->txn) < COUNT_BYTES_MAX)
        return STATUS_OK;
    StoreTxn *txn = TAKE(count->txn);
    count->txn = store_txn_begin(count->partition->host->store);
    return store_txn_commit_wait(txn, err);
}

/* One EPK: of the next item or of the next record, whichever comes first. */
static Status count_one(Count *count, Error *err)
{
    int order = !count->has_record ? -1
                : !count->has_item
                    ? 1
                    : slice_compare(epk_slice(&count->item_epk), epk_slice(&count->record_epk));
    Epk epk = order <= 0 ? count->item_epk : count->record_epk;
    SizeSum sum = {0};
    if (order <= 0)
        TRY(sum_items(count, &sum, err));
    if (order >= 0) {
        sum.items -= count->record.items;
        sum.bytes -= count->record.bytes;
        TRY(next_record(count, err));
    }
    count->logical_seen++;
    if (sum.items == 0 && sum.bytes == 0)
        return STATUS_OK;
    Key key;
    uint8_t record[SIZE_RECORD_BYTES];
    key_size(&key, epk_slice(&epk));
    size_encode(sum, record);
    store_txn_merge(count->txn, count->partition->space, key_slice(&key),
                    slice_make(record, sizeof(record)));
    return write_some(count, err);
}

static Status count_all(Count *count, Error *err)
{
    TRY(next_item(count, err));
    TRY(next_record(count, err));
    while (count->has_item || count->has_record)
        TRY(count_one(count, err));
    count->partition->has_sizes = true;
    partition_put_counters(count->partition, count->txn, &count->partition->writer.counters);
    Status status = store_txn_commit_wait(TAKE(count->txn), err);
    count->partition->has_sizes = status == STATUS_OK;
    return status;
}

static StoreCursor *open_kind(const Partition *partition, const StoreSnapshot *snapshot,
                              uint8_t kind)
{
    uint8_t from[] = {kind};
    uint8_t to[] = {(uint8_t)(kind + 1)};
    return store_cursor_open(partition->host->store, snapshot, partition->space,
                             slice_make(from, sizeof(from)), slice_make(to, sizeof(to)));
}

void partition_count_sizes(Partition *partition)
{
    const PartitionHost *host = partition->host;
    AUTO(store_snapshot_close)
    StoreSnapshot *snapshot = store_snapshot_open(host->store, STORE_READ_ANY);
    uint64_t begun_us = clock_monotonic_us(host->clock);
    Count count = {
        .partition = partition,
        .items = open_kind(partition, snapshot, KEY_ITEM),
        .records = open_kind(partition, snapshot, KEY_SIZE),
        .txn = store_txn_begin(host->store),
        .report_at_us = begun_us + REPORT_US,
    };
    Error err;
    Status status = count_all(&count, &err);
    store_txn_abort(count.txn);
    store_cursor_close(count.records);
    store_cursor_close(count.items);
    if (status == STATUS_OK)
        LOG_INFO(host->log, "partition.counted_sizes",
                 "partition=%u items=%llu logical_partitions=%llu took_ms=%llu", partition->id,
                 (unsigned long long)count.items_seen, (unsigned long long)count.logical_seen,
                 (unsigned long long)(clock_monotonic_us(host->clock) - begun_us) / 1000);
    else
        /* All else works without the records; the next start tries again. */
        LOG_WARN(host->log, "partition.sizes_unknown",
                 "partition=%u reason=%s (the limit of logical partitions is not enforced)",
                 partition->id, err.message);
}
