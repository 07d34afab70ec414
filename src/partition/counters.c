/* counters.c - see counters_int.h.
 *
 *     record = | version u8 | 0 u8 x 3 | written at s u32 | PartitionCounters |
 *
 * As it lies in memory, little-endian. Version 2 is from before there was a change log, and ends
 * with 'bytes_ever'. Version 1 is from before every logical partition had a record of what it
 * holds, and has no 'bytes_ever'.
 */
#include "partition/counters_int.h"

#include "partition/partition_int.h"

enum { COUNTERS_VERSION_UNSIZED = 1, COUNTERS_VERSION_UNLOGGED = 2, COUNTERS_VERSION = 3 };

typedef struct CountersRecord {
    uint8_t version;
    uint8_t zero[3];
    uint32_t now_s; /* when it was written: see host_time.c; 0 in older data */
    PartitionCounters counters;
} CountersRecord;
static_assert(sizeof(CountersRecord) == 80, "the record is written as it lies in memory");

enum {
    COUNTERS_UNSIZED_BYTES = offsetof(CountersRecord, counters.bytes_ever),
    COUNTERS_UNLOGGED_BYTES = offsetof(CountersRecord, counters.history_entries),
};
static_assert(COUNTERS_UNSIZED_BYTES == 48, "version 1 is all that comes before 'bytes_ever'");
static_assert(COUNTERS_UNLOGGED_BYTES == 56, "version 2 is all that comes before the change log");

static size_t record_bytes(uint8_t version)
{
    return version == COUNTERS_VERSION_UNSIZED    ? COUNTERS_UNSIZED_BYTES
           : version == COUNTERS_VERSION_UNLOGGED ? COUNTERS_UNLOGGED_BYTES
                                                  : sizeof(CountersRecord);
}

static const PartitionCounters EMPTY = {.lsn = 1, .item_next = 1, .history_from_lsn = 1};

static const uint8_t COUNTERS_KEY[] = {KEY_COUNTERS};

static Status damaged(const Partition *partition, Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "the counters of partition %u are damaged",
                     partition->id);
}

static Status read_record(Partition *partition, const StoreSnapshot *snapshot, StoreRead read,
                          CountersRecord *out, bool *found, Error *err)
{
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound where = STORE_ABSENT;
    TRY(store_get(partition->host->store, snapshot, partition->space,
                  slice_make(COUNTERS_KEY, sizeof(COUNTERS_KEY)), read, &value, &where, err));
    TRY(store_check_known(where, err));
    *found = where == STORE_FOUND;
    *out = (CountersRecord){.version = COUNTERS_VERSION, .counters = EMPTY};
    if (!*found)
        return STATUS_OK;
    uint8_t version = value.data.len == 0 ? 0 : (uint8_t)value.data.ptr[0];
    if (version < COUNTERS_VERSION_UNSIZED || version > COUNTERS_VERSION ||
        value.data.len != record_bytes(version))
        return damaged(partition, err);
    memcpy(out, value.data.ptr, value.data.len);
    if (version == COUNTERS_VERSION_UNSIZED)
        out->counters.bytes_ever = out->counters.bytes;
    if (version < COUNTERS_VERSION)
        out->counters.history_from_lsn = out->counters.lsn;
    return STATUS_OK;
}

Status partition_read_counters(Partition *partition, const StoreSnapshot *snapshot, StoreRead read,
                               PartitionCounters *out, bool *found, Error *err)
{
    CountersRecord record;
    TRY(read_record(partition, snapshot, read, &record, found, err));
    *out = record.counters;
    return STATUS_OK;
}

void partition_put_counters(const Partition *partition, StoreTxn *txn,
                            const PartitionCounters *counters)
{
    CountersRecord record = {
        .version = !partition->has_sizes ? COUNTERS_VERSION_UNSIZED
                   : !partition->has_log ? COUNTERS_VERSION_UNLOGGED
                                         : COUNTERS_VERSION,
        .now_s = partition_host_now_s(partition->host),
        .counters = *counters,
    };
    store_txn_put(txn, partition->space, slice_make(COUNTERS_KEY, sizeof(COUNTERS_KEY)),
                  slice_make(&record, record_bytes(record.version)));
}

Status partition_load_counters(Partition *partition, bool *found, Error *err)
{
    CountersRecord record;
    partition->writer.counters = EMPTY; /* should it fail */
    TRY(read_record(partition, NULL, STORE_READ_ANY, &record, found, err));
    partition_host_start_at_s(partition->host, record.now_s);
    partition->writer.counters = record.counters;
    partition->has_sizes = record.version >= COUNTERS_VERSION_UNLOGGED;
    partition->has_log = record.version >= COUNTERS_VERSION;
    if (!*found)
        partition->writer.counters.ttl_swept_s = partition->current.schema->default_ttl_s;
    return STATUS_OK;
}

/* The LSN last: see PublishedCounters. */
void counters_publish(PublishedCounters *published, const PartitionCounters *counters)
{
    atomic_store_explicit(&published->items, counters->items, memory_order_relaxed);
    atomic_store_explicit(&published->bytes, counters->bytes, memory_order_relaxed);
    atomic_store_explicit(&published->bytes_ever, counters->bytes_ever, memory_order_relaxed);
    atomic_store_explicit(&published->ttl_swept_s, counters->ttl_swept_s, memory_order_relaxed);
    atomic_store_explicit(&published->lsn, counters->lsn, memory_order_release);
}

/* The LSN first. */
PartitionCounters counters_published(const PublishedCounters *published)
{
    PartitionCounters counters = {
        .lsn = atomic_load_explicit(&published->lsn, memory_order_acquire),
    };
    counters.items = atomic_load_explicit(&published->items, memory_order_relaxed);
    counters.bytes = atomic_load_explicit(&published->bytes, memory_order_relaxed);
    counters.bytes_ever = atomic_load_explicit(&published->bytes_ever, memory_order_relaxed);
    counters.ttl_swept_s = atomic_load_explicit(&published->ttl_swept_s, memory_order_relaxed);
    return counters;
}
