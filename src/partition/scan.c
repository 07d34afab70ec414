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
 * A position is where to continue, not where the last page ended, so it need not name an item that
 * is still there (I11). Keys are longer than clients want tokens to be, so they are cut: of two
 * keys that differ within CUT_BYTES the later one, cut, sorts between them. Keys that do not differ
 * there are a crowd. A short position cannot tell their order, so by EPK a crowd is walked in the
 * order of its items' numbers, from the map of all numbers of the partition. That is slow,
 * resumable, and as rare as two items whose ids agree in their first 400 bytes.
 *
 * Bounds come from clients and may be longer than an EPK. Bytes after an item's EPK in its key are
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
    StoreSnapshot *own_snapshot; /* NULL if it is a view's */
    ReadMoment moment;           /* with the one or the other */
    StoreCursor *cursor;         /* over numbers or over keys */
    StoreCursor *crowd;          /* by EPK: over numbers while a crowd is walked, else NULL */
    Key crowd_key;               /* what the keys of the crowd begin with */
    ScanOrder order;
    Slice epk_from;
    Slice epk_to;
    bool is_indexed_only; /* leaves out items that are not indexed */
    ScanBudget *budget;
    bool is_paused;
    Arena arena; /* the bounds and the purges */
    StoreValue value;
    uint8_t position[SCAN_POSITION_BYTES_MAX];
    size_t position_len;
};

/* What a transaction has written hides what the snapshot has. While its EPK is locked, nothing that
 * can be seen there changes, so a cursor over the newest state shows the same as the snapshot. */
Status moment_get(const ReadMoment *moment, const Partition *partition, Slice key, StoreRead read,
                  StoreValue *value, StoreFound *found, Error *err)
{
    if (UNLIKELY(moment->own != NULL)) {
        *found = store_txn_get_own(moment->own, partition->space, key, value);
        if (*found != STORE_UNKNOWN)
            return STATUS_OK;
    }
    return store_get(partition->host->store, moment->snapshot, partition->space, key, read, value,
                     found, err);
}

StoreCursor *moment_cursor(const ReadMoment *moment, const Partition *partition, Slice from,
                           Slice to)
{
    if (UNLIKELY(moment->own != NULL))
        return store_txn_cursor_open(moment->own, partition->space, from, to);
    return store_cursor_open(partition->host->store, moment->snapshot, partition->space, from, to);
}

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
    return moment_cursor(&scan->moment, scan->partition, key_slice(&from), key_slice(&to));
}

static StoreCursor *open_keys(const PartitionScan *scan, Slice at)
{
    Key from;
    Key to;
    key_item(&from, slice_compare(at, scan->epk_from) > 0 ? at : scan->epk_from, SLICE_EMPTY);
    key_item(&to, scan->epk_to, SLICE_EMPTY);
    if (!is_exact(scan, scan->epk_to))
        to = (Key){.bytes = {KEY_ITEM + 1}, .len = 1};
    return moment_cursor(&scan->moment, scan->partition, key_slice(&from), key_slice(&to));
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

Status partition_scan_open_own(Partition *partition, PartitionSchema *schema, StoreTxn *own,
                               uint64_t now_s, const ScanOptions *options, PartitionScan **out,
                               Error *err)
{
    uint64_t restores = 0;
    TRY(partition_begin_read(partition, &restores, err));
    AUTO(partition_scan_close) PartitionScan *scan = NULL;
    TRY(scan_new(partition, schema, options, &scan, err));
    /* In this order: a purge that is over by now has nothing left in the snapshot (I6). */
    ReadMoment *moment = &scan->moment;
    moment->purges = purge_list_copy(&partition->purges, &scan->arena, &moment->purge_count);
    scan->own_snapshot = store_snapshot_open(partition->host->store, STORE_READ_ANY);
    moment->snapshot = scan->own_snapshot;
    TRY(partition_end_read(partition, restores, err));
    moment->own = own;
    moment->now_s = now_s;
    scan->budget = options->budget;
    open_cursors(scan, options->at);
    *out = TAKE(scan);
    return STATUS_OK;
}

Status partition_scan_open(Partition *partition, PartitionSchema *schema,
                           const ScanOptions *options, PartitionScan **out, Error *err)
{
    return partition_scan_open_own(partition, schema, NULL, partition_host_now_s(partition->host),
                                   options, out, err);
}

Status partition_scan_open_at(Partition *partition, PartitionSchema *schema, const ReadMoment *at,
                              const ScanOptions *options, PartitionScan **out, Error *err)
{
    PartitionScan *scan = NULL;
    TRY(scan_new(partition, schema, options, &scan, err));
    scan->moment = *at;
    scan->is_indexed_only = true;
    scan->budget = options->budget;
    open_cursors(scan, options->at);
    *out = scan;
    return STATUS_OK;
}

static bool is_after(const PartitionScan *scan, Slice epk)
{
    return scan->epk_to.len > 0 && slice_compare(epk, scan->epk_to) >= 0;
}

static bool in_range(const PartitionScan *scan, Slice epk)
{
    return slice_compare(epk, scan->epk_from) >= 0 && !is_after(scan, epk);
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

/* If no entry is left in the budget, the scan pauses before it. */
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

static bool is_hidden(const PartitionScan *scan, Slice epk, const Item *item)
{
    return (scan->is_indexed_only && item->is_unindexed) ||
           moment_hides(&scan->moment, scan->schema, epk, item);
}

/* What a step along a cursor has found. */
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
    TRY(moment_get(&scan->moment, scan->partition, key_slice(&key), STORE_READ_ANY, &scan->value,
                   &where, err));
    if (where != STORE_FOUND)
        return store_check_known(where, err);
    TRY(item_decode(scan->value.data, item, err));
    *step = is_hidden(scan, epk, item) ? STEP_NOTHING : STEP_ITEM;
    return STATUS_OK;
}

/* Whether this key is the first of a crowd: others begin like it. */
static Status find_crowd(const PartitionScan *scan, Slice key, Key *crowd, bool *found, Error *err)
{
    *found = false;
    if (key.len < 1 + CUT_BYTES)
        return STATUS_OK;
    Key from;
    Key to;
    key_item(&from, slice_from(key, 1), SLICE("\0"));
    key_item(crowd, slice_first(slice_from(key, 1), CUT_BYTES), SLICE_EMPTY);
    key_item(&to, slice_from(key_slice(crowd), 1), SLICE("\xFF")); /* see key_item_range */
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        moment_cursor(&scan->moment, scan->partition, key_slice(&from), key_slice(&to));
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
    if (is_after(scan, epk))
        return STATUS_OK;
    TRY(find_crowd(scan, key, &scan->crowd_key, &found, err));
    if (found)
        scan->crowd = open_numbers(scan, SLICE_EMPTY);
    *step = found || !in_range(scan, epk) || is_hidden(scan, epk, item) ? STEP_NOTHING : STEP_ITEM;
    return STATUS_OK;
}

/* Continues with the keys after those of the crowd. */
static void leave_crowd(PartitionScan *scan)
{
    store_cursor_close(TAKE(scan->crowd));
    ASSERT(scan->order == SCAN_BY_EPK);
    Key after;
    key_item(&after, slice_from(key_slice(&scan->crowd_key), 1), SLICE("\xFF"));
    store_cursor_seek(scan->cursor, key_slice(&after));
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

Status partition_scan_lsn(const PartitionScan *scan, uint64_t *lsn, Error *err)
{
    PartitionCounters counters;
    bool found = false;
    TRY(partition_read_counters(scan->partition, scan->moment.snapshot, STORE_READ_ANY, &counters,
                                &found, err));
    *lsn = counters.lsn;
    return STATUS_OK;
}

bool partition_scan_is_paused(const PartitionScan *scan)
{
    return scan->is_paused;
}

Slice partition_scan_position(const PartitionScan *scan)
{
    ASSERT(scan->position_len <= SCAN_POSITION_BYTES_MAX); /* I11 */
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
