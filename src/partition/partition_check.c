/* partition_check.c - see partition_check.h.
 *
 * One pass over the items makes the keys that each must have (I4) and looks them up. If there are
 * as many keys of a kind as the items need, there are no others. The keys are made here once more,
 * from the drawing in space_key_int.h, and not with the code that writes them.
 *
 * The index is too large for look-ups. Each pair of a term and an item gets a secret hash, and the
 * hashes are added up: once over the items, from their documents, and once over the index. Numbers
 * fall into buckets with a sum each. Two buckets with the same sum and count have the same pairs;
 * for those that differ, every pair is looked up on the other side (partition_check_index.c).
 */
#include "partition/partition_check_int.h"

#include "base/mem.h"
#include "base/random.h"

#include <stdarg.h>
#include <stdio.h>

enum { PROGRESS_ITEMS = 1000 };

void check_found(Check *check, const char *format, ...)
{
    if (++check->totals.findings > CHECK_FINDINGS_MAX)
        return;
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    check->report->found(check->report->ctx, text);
}

Status check_get(Check *check, Slice key, Slice *value, bool *found, Error *err)
{
    AUTO(store_value_release) StoreValue stored = {0};
    StoreFound where = STORE_ABSENT;
    TRY(store_get(check->partition->host->store, check->snapshot, check->partition->space, key,
                  STORE_READ_ANY, &stored, &where, err));
    *found = where == STORE_FOUND;
    if (*found)
        *value = arena_copy(&check->arena, stored.data);
    return STATUS_OK;
}

Status check_walk(Check *check, uint8_t kind, CheckVisit visit, Error *err)
{
    uint8_t from[] = {kind};
    uint8_t to[] = {(uint8_t)(kind + 1)};
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(check->partition->host->store, check->snapshot,
                                            check->partition->space, slice_make(from, sizeof(from)),
                                            slice_make(to, kind == UINT8_MAX ? 0 : sizeof(to)));
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        check->kinds[kind]++;
        TRY(visit(check, key, value, err));
        arena_reset(&check->arena);
    }
}

/* ---- the keys that follow from an item ---- */

static Status check_number(Check *check, const CheckedItem *c, Error *err)
{
    uint64_t number = c->item.number;
    uint8_t key[9] = {KEY_NUMBER};
    be64_put(key + 1, number);
    Slice place = SLICE_EMPTY;
    bool found = false;
    TRY(check_get(check, slice_make(key, sizeof(key)), &place, &found, err));
    if (!found) {
        check_found(check, "item '%.*s' is not in the map of numbers", SLICE_CUT(c->id, 100));
        return STATUS_OK;
    }
    uint16_t len = (uint16_t)c->epk.len;
    bool same = place.len == sizeof(len) + c->epk.len + c->id.len &&
                memcmp(place.ptr, &len, sizeof(len)) == 0 &&
                slice_equal(slice_make(place.ptr + sizeof(len), c->epk.len), c->epk) &&
                slice_equal(slice_from(place, sizeof(len) + c->epk.len), c->id);
    if (!same)
        check_found(check, "the number of item '%.*s' leads elsewhere", SLICE_CUT(c->id, 100));
    if (number >> ITEM_COUNT_BITS == check->partition->id &&
        (number & ITEM_COUNT_MAX) >= check->counters.item_next)
        check_found(check, "item '%.*s' has a number that was never given out",
                    SLICE_CUT(c->id, 100));
    return STATUS_OK;
}

static Status check_note(Check *check, const CheckedItem *c, Error *err)
{
    uint64_t at = item_expires_at_s(check->schema, &c->item);
    /* After a change of the default the next maintenance adds them (I7). */
    if (at == UINT64_MAX || check->counters.ttl_swept_s != check->schema->default_ttl_s)
        return STATUS_OK;
    uint8_t key[13] = {KEY_EXPIRY};
    be32_put(key + 1, at > UINT32_MAX ? UINT32_MAX : (uint32_t)at);
    be64_put(key + 5, c->item.number);
    Slice value;
    bool found = false;
    TRY(check_get(check, slice_make(key, sizeof(key)), &value, &found, err));
    if (!found)
        check_found(check, "item '%.*s' has no expiry note", SLICE_CUT(c->id, 100));
    return STATUS_OK;
}

static void add_unique_value(Arena *arena, Buf *key, Json value)
{
    double number = 0;
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
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    bool is_string = json_is(value, JSON_STRING);
    Slice bytes = is_string ? json_string(value) : json_bytes(arena, value);
    uint32_t len = (uint32_t)bytes.len;
    buf_byte(key, is_string ? 4 : 5);
    buf_bytes(key, &len, sizeof(len));
    buf_slice(key, bytes);
}

static Status check_unique(Check *check, const CheckedItem *c, size_t which, Error *err)
{
    const UniqueKey *unique = &check->schema->unique_keys[which];
    AUTO(buf_done) Buf key;
    buf_init(&key, KEY_BYTES_MAX);
    buf_byte(&key, KEY_UNIQUE);
    buf_byte(&key, (uint8_t)which);
    buf_slice(&key, c->epk);
    for (size_t i = 0; i < unique->path_count; i++)
        add_unique_value(&check->arena, &key,
                         property_path_get(unique->paths[i], c->item.document));
    Slice value = SLICE_EMPTY;
    bool found = false;
    if (!buf_full(&key))
        TRY(check_get(check, buf_view(&key), &value, &found, err));
    if (!found || !slice_equal(value, slice_make(&c->item.number, sizeof(c->item.number))))
        check_found(check, "item '%.*s' does not hold its values of unique key %zu",
                    SLICE_CUT(c->id, 100), which + 1);
    return STATUS_OK;
}

static Status check_latest(Check *check, const CheckedItem *c, Error *err)
{
    if (!check->partition->has_log)
        return STATUS_OK;
    uint8_t key[19] = {KEY_LATEST};
    be64_put(key + 1, c->item.lsn);
    key[9] = (uint8_t)(c->item.order >> 8);
    key[10] = (uint8_t)c->item.order;
    be64_put(key + 11, c->item.number);
    Slice value = SLICE_EMPTY;
    bool found = false;
    TRY(check_get(check, slice_make(key, sizeof(key)), &value, &found, err));
    LatestEntry entry = {0};
    Error ignored;
    bool same = found && latest_decode(value, &entry, &ignored) == STATUS_OK &&
                entry.ts_s == c->item.ts_s && slice_equal(entry.epk, c->epk) &&
                slice_equal(entry.id, c->id);
    if (!same)
        check_found(check, "the newest change of item '%.*s' is not in the change log",
                    SLICE_CUT(c->id, 100));
    return STATUS_OK;
}

/* ---- sizes ---- */

/* Items come in the order of their EPKs: another one ends the logical partition before it. */
static Status end_size(Check *check, Error *err)
{
    if (check->size.items == 0 || !check->partition->has_sizes)
        return STATUS_OK;
    uint8_t key[1 + EPK_BYTES_MAX] = {KEY_SIZE};
    memcpy(key + 1, check->epk.bytes, check->epk.len);
    Slice record = SLICE_EMPTY;
    SizeSum recorded = {0};
    bool found = false;
    TRY(check_get(check, slice_make(key, 1 + check->epk.len), &record, &found, err));
    check->sizes++;
    if (found && !size_decode(record, &recorded))
        return STATUS_OK; /* visit_size reports it */
    if (recorded.items != check->size.items || recorded.bytes != check->size.bytes)
        check_found(check,
                    "a logical partition is said to have %lld items of %lld bytes, there are %lld "
                    "of %lld",
                    (long long)recorded.items, (long long)recorded.bytes,
                    (long long)check->size.items, (long long)check->size.bytes);
    return STATUS_OK;
}

static Status add_size(Check *check, Slice epk, size_t bytes, Error *err)
{
    if (!slice_equal(epk, epk_slice(&check->epk))) {
        TRY(end_size(check, err));
        check->size = (SizeSum){0};
        epk_set(&check->epk, epk);
    }
    check->size.items++;
    check->size.bytes += (int64_t)bytes;
    return STATUS_OK;
}

/* ---- items ---- */

static void epk_of_document(const PartitionSchema *schema, Json document, Epk *out)
{
    PartitionKey key = {.count = schema->key.kind == PARTITION_NONE ? 0 : schema->key.path_count};
    for (size_t i = 0; i < key.count; i++) {
        Json value = property_path_get(schema->key.paths[i], document);
        bool is_scalar = !json_is(value, JSON_ARRAY) && !json_is(value, JSON_OBJECT);
        key.parts[i] = is_scalar ? value : JSON_NONE;
    }
    Error err;
    out->len = 0;
    if (partition_key_check(&key, &err) == STATUS_OK)
        epk_make(schema->key.kind, &key, out);
}

bool check_open_item(Check *check, Slice key, Slice value, CheckedItem *out)
{
    Error err;
    Slice bytes = arena_copy(&check->arena, value);
    bool good =
        item_decode(bytes, &out->item, &err) == STATUS_OK &&
        json_open(slice_from(bytes, ITEM_HEADER_BYTES), &out->item.document, &err) == STATUS_OK &&
        json_is(json_get(out->item.document, SLICE("id")), JSON_STRING);
    if (!good)
        return false;
    out->id = json_string(json_get(out->item.document, SLICE("id")));
    epk_of_document(check->schema, out->item.document, &out->epk_bytes);
    out->epk = epk_slice(&out->epk_bytes);
    return key.len == 1 + out->epk.len + out->id.len &&
           slice_starts_with(slice_from(key, 1), out->epk) && slice_ends_with(key, out->id);
}

static Status visit_item(Check *check, Slice key, Slice value, Error *err)
{
    check->totals.items++;
    check->bytes += key.len + value.len;
    CheckedItem *c = ARENA_NEW(&check->arena, CheckedItem);
    if (!check_open_item(check, key, value, c)) {
        check_found(check, "an item of %zu bytes is damaged, or not where it belongs", value.len);
        return STATUS_OK;
    }
    if (c->item.lsn > check->counters.lsn)
        check_found(check, "item '%.*s' was written by a write that never was",
                    SLICE_CUT(c->id, 100));
    TRY(add_size(check, c->epk, key.len + value.len, err));
    TRY(check_number(check, c, err));
    TRY(check_note(check, c, err));
    TRY(check_latest(check, c, err));
    for (size_t i = 0; i < check->schema->unique_key_count; i++)
        TRY(check_unique(check, c, i, err));
    TRY(check_add_item(check, &c->item, err));
    if (check->report->progress != NULL && check->totals.items % PROGRESS_ITEMS == 0)
        check->report->progress(check->report->ctx, check->totals.items);
    return STATUS_OK;
}

/* ---- the other kinds ---- */

static Status visit_number(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    Slice epk;
    Slice id;
    Error ignored;
    if (key.len != 1 + 8 || location_decode(value, &epk, &id, &ignored) != STATUS_OK)
        check_found(check, "an entry of the map of numbers is damaged");
    return STATUS_OK;
}

/* If there are too many numbers: reports those that lead to no item. */
static Status visit_lost_number(Check *check, Slice key, Slice value, Error *err)
{
    Slice epk;
    Slice id;
    Error ignored;
    if (key.len != 1 + 8 || location_decode(value, &epk, &id, &ignored) != STATUS_OK)
        return STATUS_OK;
    uint64_t number = be64_get(key.ptr + 1);
    Key place;
    key_item(&place, epk, id);
    Slice bytes;
    Item item = {0};
    bool found = false;
    TRY(check_get(check, key_slice(&place), &bytes, &found, err));
    if (!found || item_decode(bytes, &item, &ignored) != STATUS_OK || item.number != number)
        check_found(check, "number %llu leads to no item", (unsigned long long)number);
    return STATUS_OK;
}

static Status visit_note(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    if (key.len != 1 + 4 + 8 || value.len != 0)
        check_found(check, "an expiry note is damaged");
    return STATUS_OK;
}

static Status visit_unique(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    bool good = key.len >= 2 && (uint8_t)key.ptr[1] < check->schema->unique_key_count &&
                value.len == sizeof(uint64_t);
    if (!good)
        check_found(check, "a unique key is damaged, or of a rule that the container has not");
    return STATUS_OK;
}

static Status visit_purge(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    uint64_t lsn = UINT64_MAX;
    if (value.len == sizeof(lsn))
        memcpy(&lsn, value.ptr, sizeof(lsn));
    if (key.len - 1 > EPK_BYTES_MAX || lsn > check->counters.lsn)
        check_found(check, "a purge is damaged");
    return STATUS_OK;
}

static Status visit_size(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    SizeSum sum;
    if (key.len - 1 > EPK_BYTES_MAX || !size_decode(value, &sum)) {
        check_found(check, "the size of a logical partition is damaged");
        return STATUS_OK;
    }
    check->sizes_recorded.items += sum.items;
    check->sizes_recorded.bytes += sum.bytes;
    return STATUS_OK;
}

/* That there is one entry for each item and no other is checked by their number. */
static Status visit_latest(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    ChangePlace place;
    LatestEntry entry;
    Error ignored;
    if (!key_change_parse(key, &place) || place.lsn > check->counters.lsn ||
        latest_decode(value, &entry, &ignored) != STATUS_OK)
        check_found(check, "an entry of the change log is damaged");
    return STATUS_OK;
}

/* Whether the image of a change is that version of the item. */
static bool is_image(const HistoryEntry *entry, ChangePlace place)
{
    Item item;
    Json document;
    Error ignored;
    if (entry->previous.len > 0 &&
        (item_decode(entry->previous, &item, &ignored) != STATUS_OK ||
         item.lsn != entry->previous_lsn || item.number != place.number ||
         json_open(slice_from(entry->previous, ITEM_HEADER_BYTES), &document, &ignored) !=
             STATUS_OK))
        return false;
    if (entry->image.len == 0)
        return entry->kind >= CHANGE_DELETE;
    uint64_t lsn = entry->kind >= CHANGE_DELETE ? entry->previous_lsn : place.lsn;
    return item_decode(entry->image, &item, &ignored) == STATUS_OK && item.lsn == lsn &&
           item.number == place.number &&
           json_open(slice_from(entry->image, ITEM_HEADER_BYTES), &document, &ignored) ==
               STATUS_OK &&
           json_is(json_get(document, SLICE("id")), JSON_STRING) &&
           slice_equal(json_string(json_get(document, SLICE("id"))), entry->id);
}

static Status visit_history(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    ChangePlace place;
    HistoryEntry entry;
    Error ignored;
    if (!key_change_parse(key, &place) || place.lsn > check->counters.lsn ||
        history_decode(arena_copy(&check->arena, value), &entry, &ignored) != STATUS_OK ||
        !is_image(&entry, place))
        check_found(check, "an entry of the history of changes is damaged");
    return STATUS_OK;
}

static Status visit_floor(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    uint64_t lsn = UINT64_MAX;
    if (value.len == sizeof(lsn))
        memcpy(&lsn, value.ptr, sizeof(lsn));
    if (key.len - 1 > EPK_BYTES_MAX || lsn > check->counters.lsn)
        check_found(check, "a floor of the change log is damaged");
    return STATUS_OK;
}

static Status visit_baseline(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    Baseline baseline;
    Error why;
    if (baseline_decode(key, value, &baseline, &why) != STATUS_OK ||
        baseline.lsn > check->counters.lsn)
        check_found(check, "a baseline is damaged");
    return STATUS_OK;
}

static Status visit_before(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    BeforeRecord record;
    Error why;
    if (before_decode(key, value, &record, &why) != STATUS_OK)
        check_found(check, "a record of a baseline is damaged: %s", why.message);
    return STATUS_OK;
}

static void check_log(Check *check)
{
    const PartitionCounters *counters = &check->counters;
    if (!check->partition->has_log)
        return;
    if (check->kinds[KEY_LATEST] > check->totals.items)
        check_found(check, "the change log has the newest changes of %llu items, there are %llu",
                    (unsigned long long)check->kinds[KEY_LATEST],
                    (unsigned long long)check->totals.items);
    if (check->kinds[KEY_HISTORY] != counters->history_entries)
        check_found(check, "the history of changes is said to have %llu entries, it has %llu",
                    (unsigned long long)counters->history_entries,
                    (unsigned long long)check->kinds[KEY_HISTORY]);
}

/* Each logical partition that has items was compared with its record: checks that there are no
 * other records (I16). */
static Status check_sizes(Check *check, Error *err)
{
    TRY(end_size(check, err));
    const PartitionCounters *counters = &check->counters;
    if (!check->partition->has_sizes)
        return STATUS_OK;
    if (check->kinds[KEY_SIZE] > check->sizes)
        check_found(check, "there are sizes of %llu logical partitions, and %llu have items",
                    (unsigned long long)check->kinds[KEY_SIZE], (unsigned long long)check->sizes);
    if ((uint64_t)check->sizes_recorded.items != counters->items ||
        (uint64_t)check->sizes_recorded.bytes != counters->bytes)
        check_found(check,
                    "the logical partitions are said to have %lld items of %lld bytes together, "
                    "the partition %llu of %llu",
                    (long long)check->sizes_recorded.items, (long long)check->sizes_recorded.bytes,
                    (unsigned long long)counters->items, (unsigned long long)counters->bytes);
    return STATUS_OK;
}

static Status check_counts(Check *check, Error *err)
{
    const PartitionCounters *counters = &check->counters;
    uint64_t items = check->totals.items;
    if (counters->items != items || counters->bytes != check->bytes)
        check_found(check, "the counters have %llu items of %llu bytes, there are %llu of %llu",
                    (unsigned long long)counters->items, (unsigned long long)counters->bytes,
                    (unsigned long long)items, (unsigned long long)check->bytes);
    if (check->kinds[KEY_NUMBER] > items) {
        check_found(check, "there are %llu numbers for %llu items",
                    (unsigned long long)check->kinds[KEY_NUMBER], (unsigned long long)items);
        TRY(check_walk(check, KEY_NUMBER, visit_lost_number, err));
    }
    uint64_t unique = items * check->schema->unique_key_count;
    if (check->kinds[KEY_UNIQUE] > unique)
        check_found(check, "there are %llu unique values where %llu are held by items",
                    (unsigned long long)check->kinds[KEY_UNIQUE], (unsigned long long)unique);
    return STATUS_OK;
}

static Status visit_stray(Check *check, Slice key, Slice value, Error *err)
{
    (void)err;
    check_found(check, "there is a key of an unknown kind %02x with %zu bytes", (uint8_t)key.ptr[0],
                value.len);
    return STATUS_OK;
}

/* Every kind of key once. */
static Status check_kinds(Check *check, Error *err)
{
    static const CheckVisit visits[UINT8_MAX + 1] = {
        [KEY_ITEM] = visit_item,         [KEY_NUMBER] = visit_number,   [KEY_EXPIRY] = visit_note,
        [KEY_UNIQUE] = visit_unique,     [KEY_PURGE] = visit_purge,     [KEY_SIZE] = visit_size,
        [KEY_LATEST] = visit_latest,     [KEY_HISTORY] = visit_history, [KEY_FLOOR] = visit_floor,
        [KEY_BASELINE] = visit_baseline, [KEY_BEFORE] = visit_before,
    };
    for (unsigned kind = 0; kind <= UINT8_MAX; kind++) {
        CheckVisit visit = visits[kind] != NULL ? visits[kind] : visit_stray;
        if (kind != KEY_COUNTERS && kind != KEY_INDEX_STATE && kind != KEY_TERM)
            TRY(check_walk(check, (uint8_t)kind, visit, err));
    }
    TRY(check_counts(check, err));
    TRY(check_sizes(check, err));
    check_log(check);
    return check_index(check, err);
}

static Status load_state(Check *check, Error *err)
{
    static const uint8_t key[] = {KEY_INDEX_STATE};
    Slice record = SLICE_EMPTY;
    bool found = false;
    TRY(check_get(check, slice_make(key, sizeof(key)), &record, &found, err));
    if (!found) /* as in partition_load_index: no item has terms */
        return index_state_new(&check->schema->key, SLICE_EMPTY, SLICE_EMPTY, SAMPLES_ALL,
                               &check->index, err);
    return index_state_decode(record, &check->schema->key, &check->index, &check->index_key,
                              &check->index_position, err);
}

static Status check_all(Check *check, Error *err)
{
    bool found = false;
    TRY(partition_read_counters(check->partition, check->snapshot, STORE_READ_ANY, &check->counters,
                                &found, err));
    TRY(load_state(check, err));
    return check_kinds(check, err);
}

Status partition_check(Partition *partition, const PartitionSchema *schema,
                       const CheckReport *report, CheckTotals *totals, Error *err)
{
    Check *check = MEM_NEW(Check);
    check->partition = partition;
    check->schema = schema;
    check->report = report;
    check->snapshot = store_snapshot_open(partition->host->store, STORE_READ_ANY);
    random_secret(check->secret, sizeof(check->secret));
    arena_init(&check->arena, ARENA_SMALL_BYTES);
    Status status = check_all(check, err);
    /* What the store cannot read is damage like any other. */
    if (status == STATUS_CORRUPT) {
        check_found(check, "the rest could not be checked: %s", err->message);
        status = STATUS_OK;
    }
    totals->items += check->totals.items;
    totals->terms += check->totals.terms;
    totals->findings += check->totals.findings;
    store_snapshot_close(check->snapshot);
    index_state_unref(check->index);
    arena_done(&check->arena);
    mem_free(check);
    return status;
}
