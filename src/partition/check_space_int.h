/* check_space_int.h - for tests: every key of a partition's space against every other.
 *
 * The space of a partition at rest holds its items and, for each of them, exactly the keys that
 * follow from the item and the definition; the counters add up; the purges are those in memory.
 * Keys are made here once more, from the drawing in partition_int.h, not with the code under test.
 */
#pragma once

#include "partition/testing_int.h"

typedef struct SpaceCheck {
    TestPartition *t;
    StoreSnapshot *snapshot;
    Arena arena; /* for one key */
    PartitionCounters counters;
    bool has_counters;
    uint64_t items;
    uint64_t bytes;
    uint64_t notes;  /* expiry notes that items must have */
    size_t kinds[8]; /* keys found of each kind */
} SpaceCheck;

static inline bool space_get(SpaceCheck *c, Slice key, Slice *value)
{
    AUTO(store_value_release) StoreValue stored = {0};
    StoreFound found = STORE_UNKNOWN;
    assert_ok(
        store_get(c->t->store, c->snapshot, TEST_SPACE, key, STORE_READ_ANY, &stored, &found, err));
    if (found == STORE_FOUND)
        *value = arena_copy(&c->arena, stored.data);
    return found == STORE_FOUND;
}

static inline void check_number(SpaceCheck *c, const Item *item, Slice epk, Slice id)
{
    uint8_t key[9] = {KEY_NUMBER};
    be64_put(key + 1, item->number);
    Slice place;
    if (!space_get(c, slice_make(key, sizeof(key)), &place))
        fail_msg("item '%.*s' is not in the map of numbers", SLICE_ARG(id));
    uint16_t len = 0;
    assert_int_equal(place.len, 2 + epk.len + id.len);
    memcpy(&len, place.ptr, 2);
    assert_int_equal(len, epk.len);
    assert_true(slice_equal(slice_make(place.ptr + 2, epk.len), epk));
    assert_slice(slice_from(place, 2 + epk.len), id);
    assert_int_equal(item->number >> ITEM_COUNT_BITS, TEST_PARTITION);
    assert_in_range(item->number & ITEM_COUNT_MAX, 1, c->counters.item_next - 1);
}

static inline void check_note(SpaceCheck *c, const Item *item, Slice id)
{
    uint64_t at = item_expires_at_s(c->t->schema, item);
    if (at == UINT64_MAX)
        return;
    uint8_t key[13] = {KEY_EXPIRY};
    be32_put(key + 1, at > UINT32_MAX ? UINT32_MAX : (uint32_t)at);
    be64_put(key + 5, item->number);
    Slice value;
    c->notes++;
    /* After a change of the default they come with the next maintenance. */
    if (c->counters.ttl_swept_s == c->t->schema->default_ttl_s &&
        !space_get(c, slice_make(key, sizeof(key)), &value))
        fail_msg("item '%.*s' has no expiry note", SLICE_ARG(id));
}

static inline void add_unique_value(Buf *key, Json value)
{
    double number = 0;
    Slice bytes = SLICE_EMPTY;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 256);
    switch (json_type(value)) {
    case JSON_UNDEFINED:
    case JSON_NULL:
        buf_byte(key, 0);
        return;
    case JSON_BOOL:
        buf_byte(key, json_bool(value) ? 2 : 1);
        return;
    case JSON_NUMBER:
        number = json_number(value) == 0 ? 0 : json_number(value);
        buf_byte(key, 3);
        buf_bytes(key, &number, sizeof(number));
        return;
    case JSON_STRING:
        bytes = json_string(value);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        bytes = json_bytes(&arena, value);
        break;
    }
    uint32_t len = (uint32_t)bytes.len;
    buf_byte(key, json_is(value, JSON_STRING) ? 4 : 5);
    buf_bytes(key, &len, sizeof(len));
    buf_slice(key, bytes);
}

static inline void check_unique(SpaceCheck *c, const Item *item, Slice epk, Slice id)
{
    const PartitionSchema *schema = c->t->schema;
    for (size_t i = 0; i < schema->unique_key_count; i++) {
        AUTO(buf_done) Buf key;
        buf_init(&key, 1 << 16);
        buf_byte(&key, KEY_UNIQUE);
        buf_byte(&key, (uint8_t)i);
        buf_slice(&key, epk);
        for (size_t p = 0; p < schema->unique_keys[i].path_count; p++)
            add_unique_value(&key, path_get(schema->unique_keys[i].paths[p], item->document));
        Slice value;
        if (!space_get(c, buf_view(&key), &value))
            fail_msg("item '%.*s' does not hold its unique key %zu", SLICE_ARG(id), i);
        assert_slice(value, slice_make(&item->number, sizeof(item->number)));
    }
}

static inline void check_item(SpaceCheck *c, Slice key, Slice value)
{
    Item item;
    assert_ok(item_decode(arena_copy(&c->arena, value), &item, err));
    assert_ok(json_open(json_bytes(&c->arena, item.document), &item.document, err));
    Slice id = json_string(json_get(item.document, SLICE("id")));
    Epk epk;
    epk_of_document(c->t->schema, item.document, &epk);
    assert_int_equal(key.len, 1 + epk.len + id.len);
    assert_memory_equal(key.ptr + 1, epk.bytes, epk.len);
    assert_slice(slice_from(key, 1 + epk.len), id);
    assert_true(item.lsn <= c->counters.lsn);
    c->items++;
    c->bytes += key.len + value.len;
    check_number(c, &item, epk_slice(&epk), id);
    check_note(c, &item, id);
    check_unique(c, &item, epk_slice(&epk), id);
}

static inline void check_purge(SpaceCheck *c, Slice key, Slice value)
{
    const Partition *partition = c->t->partition;
    uint64_t lsn = 0;
    assert_int_equal(value.len, sizeof(lsn));
    memcpy(&lsn, value.ptr, sizeof(lsn));
    for (uint32_t i = 0; i < atomic_load(&partition->purge_count); i++) {
        if (slice_equal(epk_slice(&partition->purges[i].epk), slice_from(key, 1))) {
            assert_int_equal(partition->purges[i].lsn, lsn);
            return;
        }
    }
    fail_msg("a stored purge is not in memory");
}

static inline void check_counters(SpaceCheck *c, Slice value)
{
    assert_int_equal(value.len, 8 + sizeof(c->counters));
    memcpy(&c->counters, value.ptr + 8, sizeof(c->counters));
    c->has_counters = true;
    assert_memory_equal(&c->counters, &c->t->partition->counters, sizeof(c->counters));
}

static inline void check_key(SpaceCheck *c, Slice key, Slice value)
{
    uint8_t kind = (uint8_t)key.ptr[0];
    assert_in_range(kind, KEY_COUNTERS, KEY_PURGE);
    c->kinds[kind]++;
    if (kind == KEY_COUNTERS)
        check_counters(c, value);
    else
        assert_true(c->has_counters); /* they come first */
    if (kind == KEY_ITEM)
        check_item(c, key, value);
    else if (kind == KEY_PURGE)
        check_purge(c, key, value);
    else if (kind == KEY_EXPIRY)
        assert_int_equal(value.len, 0);
    arena_reset(&c->arena);
}

/* Waits until the partition is at rest. */
static inline void check_space(TestPartition *t)
{
    test_settle(t);
    SpaceCheck c = {.t = t, .snapshot = store_snapshot_open(t->store)};
    arena_init(&c.arena, 4096);
    StoreCursor *cursor =
        store_cursor_open(t->store, c.snapshot, TEST_SPACE, SLICE_EMPTY, SLICE_EMPTY);
    for (;;) {
        Slice key, value;
        bool found = false;
        assert_ok(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            break;
        check_key(&c, key, value);
    }
    store_cursor_close(cursor);
    store_snapshot_close(c.snapshot);
    arena_done(&c.arena);

    /* Every item was found to have its keys; as many of them as items means that there are no
     * others. */
    PartitionUsage usage = partition_usage(t->partition);
    assert_int_equal(c.items, t->partition->counters.items);
    assert_int_equal(c.bytes, t->partition->counters.bytes);
    assert_int_equal(usage.items, c.items);
    assert_int_equal(usage.bytes, c.bytes);
    assert_int_equal(partition_lsn(t->partition), t->partition->counters.lsn);
    assert_int_equal(c.kinds[KEY_NUMBER], c.items);
    assert_int_equal(c.kinds[KEY_UNIQUE], c.items * t->schema->unique_key_count);
    assert_int_equal(c.kinds[KEY_PURGE], atomic_load(&t->partition->purge_count));
    if (!t->is_ttl_changed)
        assert_int_equal(c.kinds[KEY_EXPIRY], c.notes);
    assert_int_equal(atomic_load(&t->partition->waiting_bytes), 0);
}
