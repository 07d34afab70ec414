/* change_log.c - see change_log_int.h.
 *
 *     header of a history entry =
 *     | version u8 | kind u8 | EPK length u16 | id length u16 | 0 u16 |
 *     | ts u32 | key length u32 | previous LSN u64 |
 *
 * The key is that of a delete. A replace needs none; what stands there is the version before, if
 * it is kept (keeps_previous).
 *
 * Integers are little-endian, as they lie in memory.
 */
#include "partition/change_log_int.h"

#include "partition/group_int.h"

/* Of the items that a transaction deletes or replaces, as far as its history keeps what was there:
 * a few bytes of a request can delete large items. Changes beyond it are there without that. */
#define IMAGES_BYTES_MAX ((size_t)16 << 20)

enum {
    HISTORY_VERSION = 1,
    TRIM_LOOK_S = 60, /* history is looked at this often, so that a shorter retention is noticed */
};

typedef struct HistoryHeader {
    uint8_t version;
    uint8_t kind;
    uint16_t epk_len;
    uint16_t id_len;
    uint16_t zero;
    uint32_t ts_s;
    uint32_t key_len;
    uint64_t previous_lsn;
} HistoryHeader;
static_assert(sizeof(HistoryHeader) == 24, "the header is written as it lies in memory");
static_assert(ITEM_ID_BYTES_MAX <= UINT16_MAX, "an id's length is stored in a u16");

/* ---- formats ---- */

void key_change(Key *key, uint8_t kind, ChangePlace place)
{
    key->bytes[0] = kind;
    be64_put(key->bytes + 1, place.lsn);
    key->bytes[9] = (uint8_t)(place.order >> 8);
    key->bytes[10] = (uint8_t)place.order;
    be64_put(key->bytes + 11, place.number);
    key->len = KEY_CHANGE_BYTES;
}

bool key_change_parse(Slice key, ChangePlace *out)
{
    if (key.len != KEY_CHANGE_BYTES)
        return false;
    *out = (ChangePlace){
        .lsn = be64_get(key.ptr + 1),
        .order = (uint16_t)((uint8_t)key.ptr[9] << 8 | (uint8_t)key.ptr[10]),
        .number = be64_get(key.ptr + 11),
    };
    return true;
}

Slice latest_encode(Arena *arena, uint32_t ts_s, Slice epk, Slice id)
{
    Slice place = location_encode(arena, epk, id);
    char *bytes = arena_alloc(arena, sizeof(ts_s) + place.len);
    memcpy(bytes, &ts_s, sizeof(ts_s));
    memcpy(bytes + sizeof(ts_s), place.ptr, place.len);
    return slice_make(bytes, sizeof(ts_s) + place.len);
}

Status latest_decode(Slice bytes, LatestEntry *out, Error *err)
{
    if (bytes.len < sizeof(out->ts_s))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "an entry of the change log is damaged");
    memcpy(&out->ts_s, bytes.ptr, sizeof(out->ts_s));
    return location_decode(slice_from(bytes, sizeof(out->ts_s)), &out->epk, &out->id, err);
}

Slice history_encode(Arena *arena, const HistoryEntry *entry)
{
    Slice extra = entry->kind == CHANGE_REPLACE ? entry->previous : entry->key;
    HistoryHeader header = {
        .version = HISTORY_VERSION,
        .kind = (uint8_t)entry->kind,
        .epk_len = (uint16_t)entry->epk.len,
        .id_len = (uint16_t)entry->id.len,
        .ts_s = entry->ts_s,
        .key_len = (uint32_t)extra.len,
        .previous_lsn = entry->previous_lsn,
    };
    Slice parts[] = {
        slice_make(&header, sizeof(header)), entry->epk, entry->id, extra, entry->image,
    };
    size_t len = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        len += parts[i].len;
    char *bytes = arena_alloc(arena, len);
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (parts[i].len > 0)
            memcpy(bytes + at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    return slice_make(bytes, len);
}

/* The next 'len' bytes of '*rest', or false. */
static bool take(Slice *rest, size_t len, Slice *out)
{
    if (rest->len < len)
        return false;
    *out = slice_first(*rest, len);
    *rest = slice_from(*rest, len);
    return true;
}

Status history_decode(Slice bytes, HistoryEntry *out, Error *err)
{
    HistoryHeader header = {0};
    Slice rest = bytes;
    Slice head;
    Slice extra;
    bool is_good = take(&rest, sizeof(header), &head);
    if (is_good)
        memcpy(&header, head.ptr, sizeof(header));
    is_good = is_good && header.version == HISTORY_VERSION && header.kind >= CHANGE_CREATE &&
              header.kind <= CHANGE_PURGE && header.epk_len <= EPK_BYTES_MAX &&
              header.id_len <= ITEM_ID_BYTES_MAX && take(&rest, header.epk_len, &out->epk) &&
              take(&rest, header.id_len, &out->id) && take(&rest, header.key_len, &extra);
    if (!is_good)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "an entry of the change log is damaged");
    out->kind = (ChangeKind)header.kind;
    out->ts_s = header.ts_s;
    out->previous_lsn = header.previous_lsn;
    out->key = out->kind == CHANGE_REPLACE ? SLICE_EMPTY : extra;
    out->previous = out->kind == CHANGE_REPLACE ? extra : SLICE_EMPTY;
    out->image = rest;
    return STATUS_OK;
}

/* ---- what groups write ---- */

ChangePlace group_next_place(Group *group, uint64_t number)
{
    GroupLog *log = &group->log;
    uint64_t lsn = group->counters.lsn + 1;
    if (log->lsn != lsn)
        *log = (GroupLog){.lsn = lsn};
    ChangePlace place = {.lsn = lsn, .order = log->order, .number = number};
    if (log->order < UINT16_MAX)
        log->order++;
    return place;
}

ChangePlace item_place(const Item *item)
{
    return (ChangePlace){.lsn = item->lsn, .order = item->order, .number = item->number};
}

static void put_entry(Group *group, uint8_t kind, ChangePlace place, Slice value)
{
    Key key;
    key_change(&key, kind, place);
    store_txn_put(group->txn, group->partition->space, key_slice(&key), value);
}

static void delete_latest(Group *group, const Item *item)
{
    Key key;
    key_change(&key, KEY_LATEST, item_place(item));
    store_txn_delete(group->txn, group->partition->space, key_slice(&key));
}

static void put_history(Group *group, ChangePlace place, const HistoryEntry *entry)
{
    put_entry(group, KEY_HISTORY, place, history_encode(&group->arena, entry));
    group->counters.history_entries++;
    if (entry->image.len > 0)
        group->takes_room = true;
}

static bool is_watched(const Group *group)
{
    return atomic_load_explicit(&group->partition->state, memory_order_relaxed) ==
           PARTITION_WATCHED;
}

/* A transaction that is not committed yet has no place in the log; items that are imported have had
 * their history elsewhere. */
static bool keeps_history(const Group *group)
{
    return group->schema->retention_s > 0 && !group->is_private && !group->is_import;
}

/* Whoever takes a container back to an earlier time (rewind.h) needs the version that was replaced.
 * The entry that made it is gone before this one is: so it is kept with this one. */
static bool keeps_previous(const Group *group, const Item *old)
{
    return group->full.status == STATUS_OK &&
           old->bytes <= IMAGES_BYTES_MAX - group->log.image_bytes;
}

void group_log_put(Group *group, Slice epk, Slice id, const Item *old, const Item *item,
                   Slice bytes)
{
    if (group->is_private)
        return;
    ChangePlace place = item_place(item);
    put_entry(group, KEY_LATEST, place, latest_encode(&group->arena, item->ts_s, epk, id));
    if (old != NULL)
        delete_latest(group, old);
    if (LIKELY(!keeps_history(group)))
        return;
    HistoryEntry entry = {
        .kind = old == NULL ? CHANGE_CREATE : CHANGE_REPLACE,
        .ts_s = group->is_restore ? group->now_s : item->ts_s, /* by which it is trimmed */
        .previous_lsn = old == NULL ? 0 : old->lsn,
        .epk = epk,
        .id = id,
        .image = bytes,
    };
    if (old != NULL && keeps_previous(group, old))
        entry.previous = item_encode(&group->arena, old);
    group->log.image_bytes += entry.previous.len;
    put_history(group, place, &entry);
}

/* {"path": value} for each path that leads to a value: paths without their first slash, unquoted.
 */
static Slice key_document(Arena *arena, const PartitionKeyDefinition *definition, Json document)
{
    PartitionKey key;
    partition_key_extract(definition, document, &key);
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (size_t i = 0; i < definition->path_count && i < key.count; i++) {
        if (json_is(key.parts[i], JSON_UNDEFINED))
            continue;
        AUTO(buf_done) Buf name;
        buf_init(&name, PROPERTY_PATH_CANONICAL_BYTES_MAX);
        for (size_t s = 0; s < definition->paths[i].count; s++) {
            if (s > 0)
                buf_byte(&name, '/');
            buf_slice(&name, definition->paths[i].segments[s]);
        }
        json_key(&b, arena_copy(arena, buf_view(&name)));
        json_add(&b, key.parts[i]);
    }
    json_end(&b);
    return json_bytes(arena, json_built(&b));
}

/* Deleting must be possible when the disk is full (I15). */
static bool keeps_image(const Group *group, ChangeKind kind, const Item *old)
{
    return kind == CHANGE_DELETE && group->full.status == STATUS_OK &&
           old->bytes <= IMAGES_BYTES_MAX - group->log.image_bytes;
}

void group_log_delete(Group *group, ChangeKind kind, Slice epk, Slice id, const Item *old)
{
    ASSERT(kind == CHANGE_DELETE || kind == CHANGE_EXPIRE);
    if (group->is_private)
        return;
    delete_latest(group, old);
    bool keeps = keeps_history(group);
    if (LIKELY(!keeps && !is_watched(group)) || group->is_import)
        return;
    HistoryEntry entry = {
        .kind = kind,
        .ts_s = group->now_s,
        .previous_lsn = old->lsn,
        .epk = epk,
        .id = id,
    };
    if (keeps) {
        entry.key = key_document(&group->arena, &group->schema->key, old->document);
    }
    ChangePlace place = group_next_place(group, old->number);
    if (keeps && keeps_image(group, kind, old))
        entry.image = item_encode(&group->arena, old);
    group->log.image_bytes += entry.image.len;
    put_history(group, place, &entry);
}

void group_log_purge(Group *group, Slice epk, uint64_t lsn)
{
    if (!is_watched(group))
        return;
    HistoryEntry entry = {.kind = CHANGE_PURGE, .ts_s = group->now_s, .epk = epk};
    put_history(group, (ChangePlace){.lsn = lsn}, &entry);
}

Status group_log_import(Group *group, Slice key, Slice value, Error *err)
{
    AUTO(store_value_release) StoreValue there = {0};
    bool found = false;
    TRY(store_txn_get(group->txn, group->partition->space, key, &there, &found, err));
    if (found)
        return STATUS_OK;
    store_txn_put(group->txn, group->partition->space, key, value);
    group->counters.history_entries++;
    group->takes_room = true;
    group->is_changed = true;
    return STATUS_OK;
}

/* ---- where the history begins ---- */

static void add_floor(HistoryFloors *floors, Slice epk_from, uint64_t lsn)
{
    if (floors->count == HISTORY_FLOORS_MAX) {
        for (size_t i = 0; i < floors->count; i++)
            lsn = floors->list[i].lsn > lsn ? floors->list[i].lsn : lsn;
        floors->count = 1;
        floors->list[0].lsn = lsn;
        return;
    }
    HistoryFloor *floor = &floors->list[floors->count++];
    epk_set(&floor->epk_from, epk_from);
    floor->lsn = lsn;
}

/* The stored floor that a cursor stands at. */
static Status floor_decode(Slice key, Slice value, Slice *epk_from, uint64_t *lsn, Error *err)
{
    if (key.len - 1 > EPK_BYTES_MAX || value.len != sizeof(*lsn))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a floor of the change log is damaged");
    *epk_from = slice_from(key, 1);
    memcpy(lsn, value.ptr, sizeof(*lsn));
    return STATUS_OK;
}

Status partition_add_floors(Partition *partition, const StoreSnapshot *snapshot, Slice epk_from,
                            Slice epk_to, HistoryFloors *floors, Error *err)
{
    static const uint8_t from[] = {KEY_FLOOR};
    static const uint8_t to[] = {KEY_FLOOR + 1};
    PartitionCounters counters;
    bool found = false;
    TRY(partition_read_counters(partition, snapshot, STORE_READ_ANY, &counters, &found, err));
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(partition->host->store, snapshot, partition->space,
                          slice_make(from, sizeof(from)), slice_make(to, sizeof(to)));
    uint64_t first = counters.history_from_lsn; /* of what begins before 'epk_from' */
    bool has_first = false;
    for (;;) {
        Slice key;
        Slice value;
        Slice at;
        uint64_t lsn = 0;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (found)
            TRY(floor_decode(key, value, &at, &lsn, err));
        lsn = lsn > counters.history_from_lsn ? lsn : counters.history_from_lsn;
        if (found && slice_compare(at, epk_from) <= 0) {
            first = lsn;
            continue;
        }
        if (!has_first)
            add_floor(floors, epk_from, first);
        has_first = true;
        if (!found || (epk_to.len > 0 && slice_compare(at, epk_to) >= 0))
            return STATUS_OK;
        add_floor(floors, at, lsn);
    }
}

void group_put_floors(Group *group, const HistoryFloors *floors)
{
    for (size_t i = 0; i < floors->count; i++) {
        const HistoryFloor *floor = &floors->list[i];
        Key key = {.bytes = {KEY_FLOOR}, .len = 1};
        memcpy(key.bytes + 1, floor->epk_from.bytes, floor->epk_from.len);
        key.len += floor->epk_from.len;
        store_txn_put(group->txn, group->partition->space, key_slice(&key),
                      slice_make(&floor->lsn, sizeof(floor->lsn)));
    }
}

/* A change that is removed raises the floor of its EPK. */
static void raise_floor(HistoryFloors *floors, Slice epk, uint64_t lsn)
{
    size_t at = floors->count;
    while (at > 0 && slice_compare(epk_slice(&floors->list[at - 1].epk_from), epk) > 0)
        at--;
    if (at > 0 && floors->list[at - 1].lsn < lsn)
        floors->list[at - 1].lsn = lsn;
}

/* ---- trimming ---- */

/* The oldest entries that are not kept any more: at most PIECE_MAX. '*due_s' is when the first of
 * the others is due; UINT64_MAX if there are none. */
static Status find_old(Group *group, FoundKeys *out, HistoryFloors *floors, uint64_t *due_s,
                       Error *err)
{
    Key from = {.bytes = {KEY_HISTORY}, .len = 1};
    Key to = {.bytes = {KEY_HISTORY + 1}, .len = 1};
    uint64_t kept_s = group->schema->retention_s;
    bool keeps_old = partition_host_doubts_time(group->partition->host);
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_txn_cursor_open(group->txn, group->partition->space,
                                                key_slice(&from), key_slice(&to));
    *due_s = UINT64_MAX;
    for (out->count = 0; out->count < PIECE_MAX; out->count++) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        HistoryEntry entry;
        TRY(history_decode(value, &entry, err));
        if (kept_s > 0 && (keeps_old || entry.ts_s + kept_s > group->now_s)) {
            *due_s = entry.ts_s + kept_s;
            return STATUS_OK;
        }
        ChangePlace place;
        if (!key_change_parse(key, &place))
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "an entry of the change log is damaged");
        raise_floor(floors, entry.epk, place.lsn);
        out->keys[out->count] = arena_copy(&group->keep, key);
    }
    *due_s = 0;
    return STATUS_OK;
}

Status group_trim_history(Group *group, Error *err)
{
    /* A move reads what was deleted since it began, and a group that ends one has new floors. */
    if (is_watched(group) ||
        group->counters.unordered_lsn != group->partition->writer.counters.unordered_lsn)
        return STATUS_OK;
    FoundKeys *old = ARENA_NEW(&group->keep, FoundKeys);
    HistoryFloors *floors = ARENA_NEW(&group->keep, HistoryFloors);
    TRY(partition_add_floors(group->partition, NULL, SLICE_EMPTY, SLICE_EMPTY, floors, err));
    uint64_t due_s = 0;
    TRY(find_old(group, old, floors, &due_s, err));
    PartitionCounters *counters = &group->counters;
    for (size_t i = 0; i < old->count; i++) {
        store_txn_delete(group->txn, group->partition->space, old->keys[i]);
        counters->history_entries--;
        group->is_changed = true;
    }
    if (counters->unordered_lsn > 0 && old->count > 0)
        group_put_floors(group, floors);
    else if (counters->history_from_lsn < floors->list[0].lsn)
        counters->history_from_lsn = floors->list[0].lsn;
    uint64_t look_s = (uint64_t)group->now_s + TRIM_LOOK_S;
    due_s = due_s == UINT64_MAX || due_s < look_s ? due_s : look_s;
    atomic_store_explicit(&group->partition->trim_due_s, due_s, memory_order_relaxed);
    group->has_more = group->has_more || due_s == 0;
    return STATUS_OK;
}

void group_finish_log(Group *group)
{
    PartitionCounters *counters = &group->counters;
    if (group->schema->retention_s == 0)
        counters->history_from_lsn = counters->lsn;
    ASSERT(counters->history_from_lsn <= counters->lsn);
}

void partition_note_history(Partition *partition, const Group *group)
{
    uint64_t due_s = atomic_load_explicit(&partition->trim_due_s, memory_order_relaxed);
    if (group->counters.history_entries > 0 && due_s == UINT64_MAX)
        atomic_store_explicit(&partition->trim_due_s, (uint64_t)group->now_s + TRIM_LOOK_S,
                              memory_order_relaxed);
}

Status partition_check_log(const Partition *partition, Error *err)
{
    TRY(partition_check_damage(partition, err));
    if (partition->has_log)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "The change log of partition %u could not be made when the server started; "
                     "its log says why.",
                     partition->id);
}
