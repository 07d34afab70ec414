/* partition_check_testing_int.h - for tests: everything in a partition's space agrees
 * (partition_check), and what the partition has in memory is the same.
 */
#pragma once

#include "partition/partition_check.h"
#include "partition/partition_testing_int.h"

static inline void fail_finding(void *ctx, const char *finding)
{
    (void)ctx;
    fail_msg("%s", finding);
}

/* Tests that never change the default TTL have exactly the notes that items need. */
static inline size_t count_mortals(TestPartition *t)
{
    uint8_t from[] = {KEY_ITEM};
    uint8_t to[] = {KEY_ITEM + 1};
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(t->store, NULL, TEST_SPACE, slice_make(from, 1), slice_make(to, 1));
    size_t count = 0;
    for (;;) {
        Slice key, value;
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return count;
        Item item;
        assert_ok(item_decode(value, &item, err));
        count += item_expires_at_s(t->schema, &item) != UINT64_MAX ? 1 : 0;
    }
}

static inline void check_purges(TestPartition *t)
{
    const PurgeList *list = &t->partition->purges;
    uint32_t count = purge_list_count(list);
    assert_int_equal(count_keys(t, KEY_PURGE), count);
    for (uint32_t i = 0; i < count; i++) {
        Key key = {.bytes = {KEY_PURGE}, .len = 1 + list->purges[i].epk.len};
        memcpy(key.bytes + 1, list->purges[i].epk.bytes, list->purges[i].epk.len);
        AUTO(store_value_release) StoreValue value = {0};
        StoreFound found = STORE_ABSENT;
        assert_ok(store_get(t->store, NULL, TEST_SPACE, key_slice(&key), STORE_READ_ANY, &value,
                            &found, err));
        assert_int_equal(found, STORE_FOUND);
        assert_slice(value.data, slice_make(&list->purges[i].lsn, sizeof(uint64_t)));
    }
}

/* Encodes a stored record in the current version; it may be of an earlier one. */
static inline Slice encode_again(TestPartition *t, Slice record)
{
    AUTO(index_state_unref) IndexState *state = NULL;
    HashKey key;
    uint64_t position = 0;
    assert_ok(index_state_decode(record, &t->schema->key, &state, &key, &position, err));
    return index_state_encode(&t->arena, state, key, position);
}

static inline void check_index_state(TestPartition *t)
{
    Partition *partition = t->partition;
    static const uint8_t key[] = {KEY_INDEX_STATE};
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    assert_ok(store_get(t->store, NULL, TEST_SPACE, slice_make(key, sizeof(key)), STORE_READ_ANY,
                        &value, &found, err));
    assert_int_equal(found == STORE_FOUND, partition->writer.index_is_stored);
    if (found == STORE_FOUND)
        assert_slice(encode_again(t, value.data),
                     index_state_encode(&t->arena, partition->writer.index, partition->index_key,
                                        partition->writer.index_position));
    assert_ptr_equal(partition->writer.index, partition->current.index);
    /* Below that it may be too low: items that were made since count, too. */
    assert_int_equal(partition->current.index_percent == 100,
                     partition_index_percent(partition) == 100);
}

/* Waits until the partition is at rest. */
static inline void check_space(TestPartition *t)
{
    test_settle(t);
    CheckReport report = {.found = fail_finding};
    CheckTotals totals = {0};
    assert_ok(partition_check(t->partition, t->schema, &report, &totals, err));
    assert_int_equal(totals.findings, 0);

    PartitionCounters counters;
    bool found = false;
    assert_ok(partition_read_counters(t->partition, NULL, STORE_READ_ANY, &counters, &found, err));
    if (found)
        assert_memory_equal(&counters, &t->partition->writer.counters, sizeof(counters));
    PartitionUsage usage = partition_usage(t->partition);
    assert_int_equal(usage.items, totals.items);
    assert_int_equal(usage.items, counters.items);
    assert_int_equal(usage.bytes, counters.bytes);
    assert_int_equal(usage.bytes_ever, counters.bytes_ever);
    assert_true(usage.bytes_ever >= usage.bytes);
    assert_int_equal(partition_lsn(t->partition), t->partition->writer.counters.lsn);
    check_purges(t);
    check_index_state(t);
    if (!t->is_ttl_changed)
        assert_int_equal(count_keys(t, KEY_EXPIRY), count_mortals(t));
    assert_int_equal(atomic_load(&t->partition->inbox.waiting_bytes), 0);
}
