/* baseline.c - see baseline_int.h: records, and what groups note. */
#include "partition/baseline_int.h"

#include "partition/group_int.h"

/* ---- formats ---- */

void key_baseline(uint8_t key[KEY_BASELINE_BYTES], uint64_t number)
{
    key[0] = KEY_BASELINE;
    be64_put(key + 1, number);
}

void key_before(uint8_t key[KEY_BEFORE_BYTES], Baseline baseline, uint64_t number)
{
    key[0] = KEY_BEFORE;
    be64_put(key + 1, baseline.number);
    be64_put(key + 9, baseline.lsn);
    be64_put(key + 17, number);
}

Status baseline_decode(Slice key, Slice value, Baseline *out, Error *err)
{
    if (key.len != KEY_BASELINE_BYTES || value.len != sizeof(out->lsn))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a baseline is damaged");
    out->number = be64_get(key.ptr + 1);
    memcpy(&out->lsn, value.ptr, sizeof(out->lsn));
    return STATUS_OK;
}

typedef struct BeforeHeader {
    uint16_t epk_len;
    uint16_t id_len;
} BeforeHeader;

Slice before_encode(Arena *arena, Slice epk, Slice id, Slice image)
{
    BeforeHeader header = {.epk_len = (uint16_t)epk.len, .id_len = (uint16_t)id.len};
    size_t len = sizeof(header) + epk.len + id.len + image.len;
    char *bytes = arena_alloc(arena, len);
    memcpy(bytes, &header, sizeof(header));
    char *at = bytes + sizeof(header);
    Slice parts[] = {epk, id, image};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        if (parts[i].len > 0)
            memcpy(at, parts[i].ptr, parts[i].len);
        at += parts[i].len;
    }
    return slice_make(bytes, len);
}

Status before_decode(Slice key, Slice value, BeforeRecord *out, Error *err)
{
    BeforeHeader header = {0};
    bool is_good = key.len == KEY_BEFORE_BYTES && value.len >= sizeof(header);
    if (is_good)
        memcpy(&header, value.ptr, sizeof(header));
    size_t head = sizeof(header) + header.epk_len + header.id_len;
    is_good = is_good && header.epk_len <= EPK_BYTES_MAX && header.id_len <= ITEM_ID_BYTES_MAX &&
              value.len >= head;
    if (!is_good)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a record of a baseline is damaged");
    out->baseline = (Baseline){.number = be64_get(key.ptr + 1), .lsn = be64_get(key.ptr + 9)};
    out->number = be64_get(key.ptr + 17);
    Slice rest = slice_from(value, sizeof(header));
    out->epk = slice_first(rest, header.epk_len);
    out->id = slice_first(slice_from(rest, header.epk_len), header.id_len);
    out->image = slice_from(value, head);
    Item item;
    if (out->image.len == 0)
        return STATUS_OK;
    TRY(item_decode(out->image, &item, err));
    if (item.number != out->number)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "a record of a baseline is of another item");
    return STATUS_OK;
}

/* ---- which there are ---- */

const Baseline *baselines_find(const Baselines *baselines, uint64_t number)
{
    for (size_t i = 0; i < baselines->count; i++) {
        if (baselines->list[i].number == number)
            return &baselines->list[i];
    }
    return NULL;
}

static StoreCursor *open_kind(const Partition *partition, const StoreSnapshot *snapshot,
                              uint8_t kind)
{
    uint8_t from[] = {kind};
    uint8_t to[] = {(uint8_t)(kind + 1)};
    return store_cursor_open(partition->host->store, snapshot, partition->space,
                             slice_make(from, sizeof(from)), slice_make(to, sizeof(to)));
}

Status partition_add_baselines(Partition *partition, const StoreSnapshot *snapshot,
                               Baselines *baselines, Error *err)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor = open_kind(partition, snapshot, KEY_BASELINE);
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        Baseline read;
        TRY(baseline_decode(key, value, &read, err));
        size_t at = 0;
        while (at < baselines->count && baselines->list[at].number != read.number)
            at++;
        if (at == BASELINES_MAX)
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "partition %u has more than %d baselines", partition->id,
                             BASELINES_MAX);
        if (at < baselines->count && baselines->list[at].lsn > read.lsn)
            read.lsn = baselines->list[at].lsn;
        baselines->list[at] = read;
        baselines->count = at == baselines->count ? at + 1 : baselines->count;
    }
}

Status partition_get_before(Partition *partition, const uint8_t key[KEY_BEFORE_BYTES],
                            StoreValue *value, StoreFound *found, Error *err)
{
    return store_get(partition->host->store, NULL, partition->space,
                     slice_make(key, KEY_BEFORE_BYTES), STORE_READ_ANY, value, found, err);
}

/* The first record of a baseline from 'from' on; '*found' is false if there is none. */
static Status next_baseline_of_records(StoreCursor *cursor, uint64_t from, uint64_t *out,
                                       bool *found, Error *err)
{
    uint8_t at[KEY_BEFORE_BYTES];
    Slice key;
    Slice value;
    key_before(at, (Baseline){.number = from}, 0);
    store_cursor_seek(cursor, slice_make(at, sizeof(at)));
    TRY(store_cursor_next(cursor, &key, &value, found, err));
    if (!*found)
        return STATUS_OK;
    if (key.len != KEY_BEFORE_BYTES)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a record of a baseline is damaged");
    *out = be64_get(key.ptr + 1);
    return STATUS_OK;
}

/* A baseline that has records, but is gone itself. */
static Status find_stale(StoreCursor *cursor, const Baselines *baselines, uint64_t *out,
                         bool *found, Error *err)
{
    for (uint64_t from = 0;; from = *out + 1) {
        TRY(next_baseline_of_records(cursor, from, out, found, err));
        if (!*found || baselines_find(baselines, *out) == NULL)
            return STATUS_OK;
        if (*out == UINT64_MAX) {
            *found = false;
            return STATUS_OK;
        }
    }
}

Status partition_load_baselines(Partition *partition, Error *err)
{
    Baselines *baselines = &partition->writer.baselines;
    TRY(partition_add_baselines(partition, NULL, baselines, err));
    AUTO(store_cursor_close) StoreCursor *cursor = open_kind(partition, NULL, KEY_BEFORE);
    uint64_t stale = 0;
    bool found = false;
    TRY(find_stale(cursor, baselines, &stale, &found, err));
    atomic_init(&partition->has_stale_befores, found);
    atomic_init(&partition->baseline_count, (uint32_t)baselines->count);
    return STATUS_OK;
}

uint32_t partition_baseline_count(const Partition *partition)
{
    return atomic_load(&partition->baseline_count);
}

void baselines_take_effect(Partition *partition, const Baselines *baselines)
{
    Baselines *own = &partition->writer.baselines;
    bool is_fewer = false;
    for (size_t i = 0; i < own->count; i++)
        is_fewer = is_fewer || baselines_find(baselines, own->list[i].number) == NULL;
    *own = *baselines;
    atomic_store(&partition->baseline_count, (uint32_t)own->count);
    if (is_fewer)
        atomic_store_explicit(&partition->has_stale_befores, true, memory_order_relaxed);
}

/* ---- what groups write ---- */

static const Baselines *baselines_of(const Group *group)
{
    return group->baselines != NULL ? group->baselines : &group->partition->writer.baselines;
}

bool group_keeps_deleted(const Group *group)
{
    return !group->is_private && baselines_of(group)->count > 0;
}

void group_set_baselines(Group *group, const Baselines *baselines)
{
    const Baselines *before = baselines_of(group);
    uint8_t key[KEY_BASELINE_BYTES];
    for (size_t i = 0; i < before->count; i++) {
        if (baselines_find(baselines, before->list[i].number) != NULL)
            continue;
        key_baseline(key, before->list[i].number);
        store_txn_delete(group->txn, group->partition->space, slice_make(key, sizeof(key)));
        group->has_more = true; /* its records are removed */
    }
    for (size_t i = 0; i < baselines->count; i++) {
        const Baseline *baseline = &baselines->list[i];
        key_baseline(key, baseline->number);
        store_txn_put(group->txn, group->partition->space, slice_make(key, sizeof(key)),
                      slice_make(&baseline->lsn, sizeof(baseline->lsn)));
    }
    Baselines *after = ARENA_NEW(&group->keep, Baselines);
    *after = *baselines;
    group->baselines = after;
    group->is_changed = true;
}

void group_apply_keep(Group *group, const BaselineKeep *keep)
{
    const Baselines *before = baselines_of(group);
    Baselines after = {0};
    for (size_t i = 0; i < before->count; i++) {
        bool stays = false;
        for (size_t k = 0; k < keep->count; k++)
            stays = stays || keep->numbers[k] == before->list[i].number;
        if (stays)
            after.list[after.count++] = before->list[i];
    }
    if (after.count < before->count)
        group_set_baselines(group, &after);
}

void group_import_before(Group *group, Slice key, Slice value)
{
    store_txn_put(group->txn, group->partition->space, key, value);
    group->takes_room = true;
    group->is_changed = true;
}

static void put_before(Group *group, Slice key, Slice epk, const Item *old, Slice old_id)
{
    Slice image = old == NULL ? SLICE_EMPTY : item_encode(&group->arena, old);
    store_txn_put(group->txn, group->partition->space, key,
                  before_encode(&group->arena, epk, old == NULL ? SLICE_EMPTY : old_id, image));
    group->takes_room = true;
}

static Status note_for(Group *group, const Baseline *baseline, Slice epk, uint64_t number,
                       const Item *old, Slice old_id, bool is_delete, Error *err)
{
    StoreSpace space = group->partition->space;
    uint8_t bytes[KEY_BEFORE_BYTES];
    key_before(bytes, *baseline, number);
    Slice key = slice_make(bytes, sizeof(bytes));
    if (old == NULL && !group->is_restore) { /* its number is new */
        put_before(group, key, epk, NULL, SLICE_EMPTY);
        return STATUS_OK;
    }
    if (old != NULL && old->lsn > baseline->lsn && !is_delete)
        return STATUS_OK;
    AUTO(store_value_release) StoreValue value = {0};
    bool found = false;
    TRY(store_txn_get(group->txn, space, key, &value, &found, err));
    if (!found) {
        put_before(group, key, epk, old, old_id);
        return STATUS_OK;
    }
    BeforeRecord record;
    TRY(before_decode(key, value.data, &record, err));
    store_value_release(&value);
    /* It was not there at the baseline, and is not there again. */
    if (is_delete && record.image.len == 0)
        store_txn_delete(group->txn, space, key);
    return STATUS_OK;
}

Status group_note_before(Group *group, Slice epk, uint64_t number, const Item *old, Slice old_id,
                         bool is_delete, Error *err)
{
    if (group->is_private || group->is_import)
        return STATUS_OK;
    const Baselines *baselines = baselines_of(group);
    for (size_t i = 0; i < baselines->count; i++) {
        const Baseline *baseline = &baselines->list[i];
        if (baseline->number != group->restored_baseline)
            TRY(note_for(group, baseline, epk, number, old, old_id, is_delete, err));
    }
    return STATUS_OK;
}

/* ---- maintenance ---- */

Status group_trim_befores(Group *group, Error *err)
{
    Partition *partition = group->partition;
    if (!atomic_load_explicit(&partition->has_stale_befores, memory_order_relaxed))
        return STATUS_OK;
    uint64_t stale = 0;
    bool found = false;
    AUTO(store_cursor_close) StoreCursor *cursor = open_kind(partition, NULL, KEY_BEFORE);
    TRY(find_stale(cursor, baselines_of(group), &stale, &found, err));
    if (!found) {
        atomic_store_explicit(&partition->has_stale_befores, false, memory_order_relaxed);
        return STATUS_OK;
    }
    uint8_t from[KEY_BEFORE_BYTES];
    uint8_t to[KEY_BEFORE_BYTES + 1] = {0};
    key_before(from, (Baseline){.number = stale}, 0);
    key_before(to, (Baseline){stale, UINT64_MAX}, UINT64_MAX); /* and a byte after it */
    FoundKeys keys;
    TRY(group_find_keys(group, slice_make(from, sizeof(from)), slice_make(to, sizeof(to)), &keys,
                        err));
    for (size_t i = 0; i < keys.count; i++)
        store_txn_delete(group->txn, partition->space, keys.keys[i]);
    group->is_changed = true;
    group->has_more = true;
    return STATUS_OK;
}
