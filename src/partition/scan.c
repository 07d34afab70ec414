/* scan.c - items in order, from a snapshot.
 *
 * By EPK the items' own keys are walked. By number the map from numbers to places is walked and
 * each item looked up; that costs a look-up more, and gives the order in which items were made,
 * which is what clients see from the service.
 *
 *     position by number = | number u64 BE |
 *     position by EPK    = | EPK | id, cut |                the first key that is not before this
 *                        | | EPK | id, cut | number u64 BE | in a crowd: see below
 *
 * A position is where to go on, not where the last page ended, so it need not name an item that is
 * still there. Keys are longer than clients want tokens to be, hence the cut: of two keys that
 * differ within CUT_BYTES the later one, cut, stands between them. Keys that do not are a crowd.
 * They have no order that a short position could tell, so by EPK a crowd is walked in the order of
 * its items' numbers, from the map of all numbers of the partition. That is slow, resumable, and as
 * rare as two items whose ids agree in their first 400 bytes.
 *
 * Bounds come from clients and may be longer than an EPK. Bytes behind an item's EPK in its key are
 * the id's, so a key is a place to begin and to end at, but only the EPK itself is compared with
 * the bounds.
 */
#include "base/mem.h"
#include "partition/partition_int.h"

enum {
    CUT_BYTES = SCAN_POSITION_BYTES_MAX - SCAN_NUMBER_BYTES,
    CLOCK_ENTRIES = 32, /* looked at between two looks at the clock */
};
static_assert(CUT_BYTES > EPK_ITEM_BYTES_MAX, "a crowd has one EPK, and no bound falls into it");

struct PartitionScan {
    Partition *partition; /* references of its own */
    PartitionSchema *schema;
    StoreSnapshot *own_snapshot;   /* NULL: it is a view's */
    const StoreSnapshot *snapshot; /* the one or the other */
    StoreCursor *cursor;           /* over numbers or over keys */
    StoreCursor *crowd;            /* by EPK: over numbers, while a crowd is walked; else NULL */
    Key crowd_key;                 /* what the keys of the crowd begin with */
    ScanOrder order;
    Slice epk_from;
    Slice epk_to;
    uint64_t now_s;
    bool is_indexed_only; /* leaves out what queries do not find */
    ScanBudget *budget;
    bool is_paused;
    const Purge *purges; /* as they were before the snapshot */
    size_t purge_count;
    Arena arena; /* the bounds and the purges */
    StoreValue value;
    uint8_t position[SCAN_POSITION_BYTES_MAX];
    size_t position_len;
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

static StoreCursor *open_numbers(const PartitionScan *scan, Slice first)
{
    Key from;
    key_number(&from, first.len == 0 ? 0 : be64_get(first.ptr));
    Key to = {.bytes = {KEY_NUMBER + 1}, .len = 1};
    return store_cursor_open(scan->partition->host->store, scan->snapshot, scan->partition->space,
                             key_slice(&from), key_slice(&to));
}

static StoreCursor *open_keys(const PartitionScan *scan, Slice at)
{
    Key from;
    Key to;
    key_item(&from, slice_compare(at, scan->epk_from) > 0 ? at : scan->epk_from, SLICE_EMPTY);
    key_item(&to, scan->epk_to, SLICE_EMPTY);
    if (!is_exact(scan, scan->epk_to))
        to = (Key){.bytes = {KEY_ITEM + 1}, .len = 1};
    return store_cursor_open(scan->partition->host->store, scan->snapshot, scan->partition->space,
                             key_slice(&from), key_slice(&to));
}

static void open_cursors(PartitionScan *scan, Slice at)
{
    if (scan->order == SCAN_BY_NUMBER) {
        scan->cursor = open_numbers(scan, at);
        return;
    }
    Slice cut = slice_first(at, CUT_BYTES);
    scan->cursor = open_keys(scan, cut);
    if (at.len > CUT_BYTES) {
        key_item(&scan->crowd_key, cut, SLICE_EMPTY);
        scan->crowd = open_numbers(scan, slice_from(at, CUT_BYTES));
    }
}

bool partition_scan_is_position(ScanOrder order, Slice at)
{
    if (order == SCAN_BY_NUMBER)
        return at.len == 0 || at.len == SCAN_NUMBER_BYTES;
    return at.len <= CUT_BYTES || at.len == SCAN_POSITION_BYTES_MAX;
}

/* Without its snapshot and purges. */
static Status scan_new(Partition *partition, PartitionSchema *schema, const ScanOptions *options,
                       PartitionScan **out, Error *err)
{
    if (options->epk_from.len > EPK_ITEM_BYTES_MAX || options->epk_to.len > EPK_ITEM_BYTES_MAX)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A bound of the range of effective partition keys is too long.");
    if (!partition_scan_is_position(options->order, options->at))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "A position of %zu bytes is none of this order.", options->at.len);
    TRY(partition_check_damage(partition, err));
    PartitionScan *scan = MEM_NEW(PartitionScan);
    scan->partition = partition_ref(partition);
    scan->schema = schema_ref(schema);
    scan->order = options->order;
    arena_init(&scan->arena, 256);
    scan->epk_from = arena_copy(&scan->arena, options->epk_from);
    scan->epk_to = arena_copy(&scan->arena, options->epk_to);
    *out = scan;
    return STATUS_OK;
}

Status partition_scan_open(Partition *partition, PartitionSchema *schema,
                           const ScanOptions *options, PartitionScan **out, Error *err)
{
    PartitionScan *scan = NULL;
    TRY(scan_new(partition, schema, options, &scan, err));
    /* In this order: a purge that is over by now has nothing left in the snapshot. */
    scan->purges = partition_copy_purges(partition, &scan->arena, &scan->purge_count);
    scan->own_snapshot = store_snapshot_open(partition->host->store, STORE_READ_ANY);
    scan->snapshot = scan->own_snapshot;
    scan->now_s = partition_host_now_s(partition->host);
    scan->budget = options->budget;
    open_cursors(scan, options->at);
    *out = scan;
    return STATUS_OK;
}

Status partition_scan_open_at(Partition *partition, PartitionSchema *schema, const ScanMoment *at,
                              const ScanOptions *options, PartitionScan **out, Error *err)
{
    PartitionScan *scan = NULL;
    TRY(scan_new(partition, schema, options, &scan, err));
    scan->purges = at->purges;
    scan->purge_count = at->purge_count;
    scan->snapshot = at->snapshot;
    scan->now_s = at->now_s;
    scan->is_indexed_only = true;
    scan->budget = options->budget;
    open_cursors(scan, options->at);
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

bool scan_budget_spend(ScanBudget *budget, const Clock *clock)
{
    if (budget == NULL)
        return true;
    if (budget->entries == 0)
        return false;
    budget->entries--;
    if (budget->deadline_us != 0 && budget->entries % CLOCK_ENTRIES == 0 &&
        clock_monotonic_us(budget->clock != NULL ? budget->clock : clock) >= budget->deadline_us)
        budget->entries = 0;
    return true;
}

/* Without an entry left the scan pauses before it. */
static bool spend(PartitionScan *scan)
{
    scan->is_paused = !scan_budget_spend(scan->budget, scan->partition->host->clock);
    return !scan->is_paused;
}

static void stand_at_number(PartitionScan *scan, Slice key)
{
    size_t len = 0;
    if (scan->crowd != NULL) {
        len = CUT_BYTES;
        memcpy(scan->position, scan->crowd_key.bytes + 1, len);
    }
    memcpy(scan->position + len, key.ptr + 1, SCAN_NUMBER_BYTES);
    scan->position_len = len + SCAN_NUMBER_BYTES;
}

static void stand_at_key(PartitionScan *scan, Slice key)
{
    Slice cut = slice_first(slice_from(key, 1), CUT_BYTES);
    if (cut.len > 0)
        memcpy(scan->position, cut.ptr, cut.len);
    scan->position_len = cut.len;
}

static bool is_gone(const PartitionScan *scan, Slice epk, const Item *item)
{
    return item_expires_at_s(scan->schema, item) <= scan->now_s ||
           item->lsn <= purges_find(scan->purges, scan->purge_count, epk) ||
           (scan->is_indexed_only && item->is_unindexed);
}

/* What a step along a cursor came to. */
typedef enum Step { STEP_END, STEP_NOTHING, STEP_ITEM } Step;

/* The next number, and the item that it leads to. */
static Status step_number(PartitionScan *scan, StoreCursor *cursor, Item *item, Step *step,
                          Error *err)
{
    Slice number;
    Slice place;
    bool found = false;
    *step = STEP_END;
    TRY(store_cursor_next(cursor, &number, &place, &found, err));
    if (!found)
        return STATUS_OK;
    if (number.len != 1 + SCAN_NUMBER_BYTES)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "the number of an item is damaged");
    stand_at_number(scan, number);
    if (!spend(scan))
        return STATUS_OK;
    *step = STEP_NOTHING;
    Slice epk;
    Slice id;
    TRY(location_decode(place, &epk, &id, err));
    Key key;
    key_item(&key, epk, id);
    bool is_meant =
        scan->crowd == NULL || slice_starts_with(key_slice(&key), key_slice(&scan->crowd_key));
    if (!is_meant || !in_range(scan, epk))
        return STATUS_OK;
    store_value_release(&scan->value);
    StoreFound where = STORE_ABSENT;
    TRY(store_get(scan->partition->host->store, scan->snapshot, scan->partition->space,
                  key_slice(&key), STORE_READ_ANY, &scan->value, &where, err));
    if (where != STORE_FOUND)
        return store_check_known(where, err);
    TRY(item_decode(scan->value.data, item, err));
    *step = is_gone(scan, epk, item) ? STEP_NOTHING : STEP_ITEM;
    return STATUS_OK;
}

/* Whether more keys begin like this one, of which the crowd's first was met. */
static Status find_crowd(const PartitionScan *scan, Slice key, Key *crowd, bool *found, Error *err)
{
    *found = false;
    if (key.len < 1 + CUT_BYTES)
        return STATUS_OK;
    Key from;
    Key to;
    key_item(&from, slice_from(key, 1), SLICE("\0"));
    key_item(crowd, slice_first(slice_from(key, 1), CUT_BYTES), SLICE_EMPTY);
    key_item(&to, slice_from(key_slice(crowd), 1), SLICE("\xFF")); /* no id goes on like this */
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(scan->partition->host->store, scan->snapshot, scan->partition->space,
                          key_slice(&from), key_slice(&to));
    Slice other;
    Slice value;
    return store_cursor_next(cursor, &other, &value, found, err);
}

/* The next key and its item. */
static Status step_key(PartitionScan *scan, Item *item, Step *step, Error *err)
{
    Slice key;
    Slice bytes;
    bool found = false;
    *step = STEP_END;
    TRY(store_cursor_next(scan->cursor, &key, &bytes, &found, err));
    if (!found)
        return STATUS_OK;
    stand_at_key(scan, key);
    if (!spend(scan))
        return STATUS_OK;
    TRY(item_decode(bytes, item, err));
    Slice epk = key_item_epk(scan->schema, key, item);
    if (is_behind(scan, epk))
        return STATUS_OK;
    TRY(find_crowd(scan, key, &scan->crowd_key, &found, err));
    if (found)
        scan->crowd = open_numbers(scan, SLICE_EMPTY);
    *step = found || !in_range(scan, epk) || is_gone(scan, epk, item) ? STEP_NOTHING : STEP_ITEM;
    return STATUS_OK;
}

/* On with the keys behind those of the crowd. */
static void leave_crowd(PartitionScan *scan)
{
    store_cursor_close(TAKE(scan->crowd));
    Key behind;
    key_item(&behind, slice_from(key_slice(&scan->crowd_key), 1), SLICE("\xFF"));
    store_cursor_seek(scan->cursor, key_slice(&behind));
}

Status partition_scan_next(PartitionScan *scan, Item *item, bool *found, Error *err)
{
    Step step = STEP_NOTHING;
    while (step == STEP_NOTHING) {
        if (scan->crowd != NULL)
            TRY(step_number(scan, scan->crowd, item, &step, err));
        else if (scan->order == SCAN_BY_NUMBER)
            TRY(step_number(scan, scan->cursor, item, &step, err));
        else
            TRY(step_key(scan, item, &step, err));
        if (step == STEP_END && scan->crowd != NULL && !scan->is_paused) {
            leave_crowd(scan);
            step = STEP_NOTHING;
        }
    }
    *found = step == STEP_ITEM;
    return STATUS_OK;
}

bool partition_scan_paused(const PartitionScan *scan)
{
    return scan->is_paused;
}

Slice partition_scan_position(const PartitionScan *scan)
{
    return slice_make(scan->position, scan->position_len);
}

void partition_scan_close(PartitionScan *scan)
{
    if (scan == NULL)
        return;
    store_value_release(&scan->value);
    store_cursor_close(scan->crowd);
    store_cursor_close(scan->cursor);
    store_snapshot_close(scan->own_snapshot);
    schema_unref(scan->schema);
    partition_unref(scan->partition);
    arena_done(&scan->arena);
    mem_free(scan);
}
