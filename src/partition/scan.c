/* scan.c - items in order, from a snapshot.
 *
 * By EPK the items' own keys are walked. By number the map from numbers to places is walked and
 * each item looked up; that costs a look-up more, and gives the order in which items were made,
 * which is what clients see from the service. A position is the key that was handed out last.
 *
 * Bounds come from clients and may be longer than an EPK. Bytes behind an item's EPK in its key are
 * the id's, so a key is a place to begin and to end at, but only the EPK itself is compared with
 * the bounds.
 */
#include "base/mem.h"
#include "partition/partition_int.h"

struct PartitionScan {
    Partition *partition; /* references of its own */
    PartitionSchema *schema;
    StoreSnapshot *snapshot;
    StoreCursor *cursor;
    ScanOrder order;
    Slice epk_from;
    Slice epk_to;
    uint64_t now_s;
    const Purge *purges; /* as they were before the snapshot */
    size_t purge_count;
    Arena arena; /* the bounds and the purges */
    StoreValue value;
    Key position;
};

/* Whether no EPK of the container can be the beginning of 'bound', so that the keys of the items
 * before it sort before it, too. */
static bool is_exact(const PartitionScan *scan, Slice bound)
{
    const PartitionKeyDefinition *key = &scan->schema->key;
    switch (key->kind) {
    case PARTITION_HASH_V2:
    case PARTITION_MULTI_HASH:
        return bound.len > 0 && bound.len <= EPK_HASH_BYTES * key->path_count;
    case PARTITION_HASH_V1:
    case PARTITION_NONE:
        break;
    }
    return false;
}

static void open_cursor(PartitionScan *scan, const ScanOptions *options)
{
    bool by_number = scan->order == SCAN_BY_NUMBER;
    Key from;
    Key to;
    if (by_number) {
        key_number(&from, 0);
        to = (Key){.bytes = {KEY_NUMBER + 1}, .len = 1};
    } else {
        key_item(&from, options->epk_from, SLICE_EMPTY);
        key_item(&to, options->epk_to, SLICE_EMPTY);
        if (!is_exact(scan, options->epk_to))
            to = (Key){.bytes = {KEY_ITEM + 1}, .len = 1};
    }
    if (options->after.len > 0 && options->after.len < sizeof(from.bytes) - 1 &&
        slice_compare(options->after, key_slice(&from)) >= 0) {
        memcpy(from.bytes, options->after.ptr, options->after.len);
        from.bytes[options->after.len] = 0; /* the first key behind that one */
        from.len = options->after.len + 1;
    }
    scan->cursor = store_cursor_open(scan->partition->host->store, scan->snapshot,
                                     scan->partition->space, key_slice(&from), key_slice(&to));
}

Status partition_scan_open(Partition *partition, PartitionSchema *schema,
                           const ScanOptions *options, PartitionScan **out, Error *err)
{
    if (options->epk_from.len > EPK_BYTES_MAX || options->epk_to.len > EPK_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A bound of the range of effective partition keys is too long.");
    PartitionScan *scan = MEM_NEW(PartitionScan);
    scan->partition = partition_ref(partition);
    scan->schema = schema_ref(schema);
    scan->order = options->order;
    arena_init(&scan->arena, 256);
    /* In this order: a purge that is over by now has nothing left in the snapshot. */
    scan->purges = partition_copy_purges(partition, &scan->arena, &scan->purge_count);
    scan->snapshot = store_snapshot_open(partition->host->store);
    scan->epk_from = arena_copy(&scan->arena, options->epk_from);
    scan->epk_to = arena_copy(&scan->arena, options->epk_to);
    scan->now_s = (uint64_t)clock_wall_s(partition->host->clock);
    open_cursor(scan, options);
    *out = scan;
    return STATUS_OK;
}

static bool is_behind(const PartitionScan *scan, Slice epk)
{
    return scan->epk_to.len > 0 && slice_compare(epk, scan->epk_to) >= 0;
}

static bool in_range(const PartitionScan *scan, Slice epk)
{
    return slice_compare(epk, scan->epk_from) >= 0 && !is_behind(scan, epk);
}

/* Fetches the item that a number leads to. */
static Status look_up(PartitionScan *scan, Slice place, Slice *epk, Slice *bytes, bool *found,
                      Error *err)
{
    Slice id;
    TRY(location_decode(place, epk, &id, err));
    *found = false;
    if (!in_range(scan, *epk))
        return STATUS_OK;
    Key key;
    key_item(&key, *epk, id);
    store_value_release(&scan->value);
    StoreFound where = STORE_ABSENT;
    TRY(store_get(scan->partition->host->store, scan->snapshot, scan->partition->space,
                  key_slice(&key), STORE_READ_ANY, &scan->value, &where, err));
    *found = where == STORE_FOUND;
    *bytes = scan->value.data;
    return STATUS_OK;
}

/* The EPK in front of an item's key: all of the key but the id, which the document tells. */
static Slice epk_of(Slice key, const Item *item)
{
    Slice id = json_string(json_get(item->document, SLICE("id")));
    return slice_make(key.ptr + 1, key.len - 1 - id.len);
}

static bool is_gone(const PartitionScan *scan, Slice epk, const Item *item)
{
    return item_expires_at_s(scan->schema, item) <= scan->now_s ||
           item->lsn <= purges_find(scan->purges, scan->purge_count, epk);
}

Status partition_scan_next(PartitionScan *scan, Item *item, bool *found, Error *err)
{
    for (;;) {
        Slice key;
        Slice bytes;
        TRY(store_cursor_next(scan->cursor, &key, &bytes, found, err));
        if (!*found)
            return STATUS_OK;
        bool present = true;
        Slice epk = SLICE_EMPTY;
        if (scan->order == SCAN_BY_NUMBER)
            TRY(look_up(scan, bytes, &epk, &bytes, &present, err));
        if (!present)
            continue;
        TRY(item_decode(bytes, item, err));
        if (scan->order == SCAN_BY_EPK)
            epk = epk_of(key, item);
        if (scan->order == SCAN_BY_EPK && is_behind(scan, epk)) {
            *found = false;
            return STATUS_OK;
        }
        if (!in_range(scan, epk) || is_gone(scan, epk, item))
            continue;
        memcpy(scan->position.bytes, key.ptr, key.len);
        scan->position.len = key.len;
        return STATUS_OK;
    }
}

Slice partition_scan_position(const PartitionScan *scan)
{
    return key_slice(&scan->position);
}

void partition_scan_close(PartitionScan *scan)
{
    if (scan == NULL)
        return;
    store_value_release(&scan->value);
    store_cursor_close(scan->cursor);
    store_snapshot_close(scan->snapshot);
    schema_unref(scan->schema);
    partition_unref(scan->partition);
    arena_done(&scan->arena);
    mem_free(scan);
}
