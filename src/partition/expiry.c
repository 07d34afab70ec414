/* expiry.c - removes items that no reader can see any more: expired and purged ones.
 *
 * They are invisible at once (I5); this only frees their room, a bounded piece per group, in the
 * partition's own order of writes. Three kinds of work, and a fourth in index_rebuild.c:
 *
 *   - expiry notes whose time has come: the item is looked up and, if it has expired under the
 *     current definition, removed; otherwise its note is moved to the second when it will;
 *   - purges: items under the purge's EPK up to its LSN are removed, then the purge itself;
 *   - after a change of the default TTL, a note for every item that has none.
 *
 * Runs on a writer thread, as part of a group.
 */
#include "partition/group_int.h"

Status group_find_keys(Group *group, Slice from, Slice to, FoundKeys *out, Error *err)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_txn_cursor_open(group->txn, group->partition->space, from, to);
    out->count = 0;
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        out->is_full = found && out->count == PIECE_MAX;
        if (!found || out->is_full)
            return STATUS_OK;
        out->keys[out->count++] = arena_copy(&group->keep, key);
    }
}

Status group_find_item(Group *group, uint64_t number, Slice *epk, Slice *id, Item *item,
                       bool *found, Error *err)
{
    Key key;
    key_number(&key, number);
    AUTO(store_value_release) StoreValue value = {0};
    TRY(store_txn_get(group->txn, group->partition->space, key_slice(&key), &value, found, err));
    if (!*found)
        return STATUS_OK;
    TRY(location_decode(arena_copy(&group->arena, value.data), epk, id, err));
    return group_get(group, *epk, *id, item, found, err);
}

/* '*is_left' if the item must stay for now, and its note with it. */
static Status expire_one(Group *group, Slice note, bool *is_left, Error *err)
{
    StoreSpace space = group->partition->space;
    if (note.len != KEY_EXPIRY_BYTES)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "an expiry note is damaged");
    uint64_t noted_s = be32_get(note.ptr + 1);
    uint64_t number = be64_get(note.ptr + 5);
    Slice epk;
    Slice id;
    Item item;
    bool found = false;
    TRY(group_find_item(group, number, &epk, &id, &item, &found, err));
    /* A transaction sees it as long as its own time says so (I22). */
    *is_left = UNLIKELY(epk_locks_are_held(&group->partition->locks)) && found &&
               epk_locks_has(&group->partition->locks, epk);
    if (*is_left)
        return STATUS_OK;
    group->is_changed = true;
    if (found && item_expires_at_s(group->schema, &item) <= group->now_s) {
        TRY(group_delete(group, CHANGE_EXPIRE, epk, id, &item, NULL, err));
        group->counters.lsn++;
    } else if (found && item_expires_at_s(group->schema, &item) != noted_s) {
        uint64_t at = item_expires_at_s(group->schema, &item);
        Key key;
        key_expiry(&key, at, number);
        if (at != UINT64_MAX)
            store_txn_put(group->txn, space, key_slice(&key), SLICE_EMPTY);
    }
    store_txn_delete(group->txn, space, note);
    /* If the former default comes back, it may need the note that is deleted here (I7). */
    if (group->counters.ttl_swept_s != group->schema->default_ttl_s)
        group->counters.ttl_swept_s = TTL_UNSWEPT;
    return STATUS_OK;
}

/* Removed items are kept in memory until their terms are out of the index, and may go into the
 * history: whether that is enough for one group. */
bool group_is_large(const Group *group)
{
    return arena_used(&group->keep) > group_keep_bytes_max(group->partition) ||
           store_txn_bytes(group->txn) > group_bytes_max(group->partition);
}

/* What is deleted is kept for a baseline: that takes room, which there is none of (I15). */
static bool must_wait_for_room(const Group *group)
{
    return group->full.status != STATUS_OK && group_keeps_deleted(group);
}

static Status expire(Group *group, Error *err)
{
    if (must_wait_for_room(group) || partition_host_doubts_time(group->partition->host))
        return STATUS_OK;
    Key from;
    Key to;
    key_expiry(&from, 0, 0);
    key_expiry(&to, (uint64_t)group->now_s + 1, 0);
    FoundKeys notes;
    TRY(group_find_keys(group, key_slice(&from), key_slice(&to), &notes, err));
    size_t done = 0;
    for (size_t i = 0; i < notes.count && !group_is_large(group); i++) {
        bool is_left = false;
        TRY(expire_one(group, notes.keys[i], &is_left, err));
        done += is_left ? 0 : 1;
    }
    /* If all must stay, the next look is not worth while before the next round. */
    group->has_more = group->has_more || (done > 0 && (notes.is_full || group_is_large(group)));
    return STATUS_OK;
}

void group_apply_purge(Group *group, PartitionPurge *purge)
{
    /* One more for an EPK that has a purge takes no room, but is refused like any other. */
    PurgeChanges *purges = &group->purges;
    if (purge_list_count(&group->partition->purges) + purges->added_count >= PURGES_MAX) {
        purge->status = error_set(&purge->error, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                                  "%d deletions by partition key are under way in this partition; "
                                  "try again later.",
                                  PURGES_MAX);
        purge->error.retry_after_ms = 1000;
        return;
    }
    ASSERT(purges->added_count < PURGES_MAX);
    if (purges->added == NULL)
        purges->added = ARENA_NEW_ARRAY(&group->keep, Purge, PURGES_MAX);
    uint64_t lsn = ++group->counters.lsn;
    purges->added[purges->added_count++] = (Purge){.epk = purge->epk, .lsn = lsn};
    Key key;
    key_purge(&key, epk_slice(&purge->epk));
    group_log_purge(group, epk_slice(&purge->epk), lsn);
    store_txn_put(group->txn, group->partition->space, key_slice(&key),
                  slice_make(&lsn, sizeof(lsn)));
    group->is_changed = true;
    group->has_more = true;
}

/* Removes an item that a purge covers, given its key. */
static Status purge_one(Group *group, const Purge *purge, Slice key, Error *err)
{
    AUTO(store_value_release) StoreValue value = {0};
    bool found = false;
    arena_reset(&group->arena);
    TRY(store_txn_get(group->txn, group->partition->space, key, &value, &found, err));
    if (!found)
        return STATUS_OK;
    Item item;
    TRY(item_decode(arena_copy(&group->arena, value.data), &item, err));
    store_value_release(&value);
    if (item.lsn > purge->lsn)
        return STATUS_OK; /* made again since */
    Slice epk;
    Slice id;
    Item same;
    TRY(group_find_item(group, item.number, &epk, &id, &same, &found, err));
    if (found)
        TRY(group_delete(group, CHANGE_DELETE, epk, id, &same, NULL, err));
    return STATUS_OK;
}

/* Removes the next piece of the first purge; after the last one, the purge itself. */
static Status purge_piece(Group *group, Error *err)
{
    Partition *partition = group->partition;
    /* A purge that this group adds may be for the same EPK: its record would be removed with the
     * old one. */
    if (purge_list_count(&partition->purges) == 0 || group->purges.added_count > 0 ||
        must_wait_for_room(group))
        return STATUS_OK;
    Purge purge = purge_list_first(&partition->purges);

    Slice prefix = epk_slice(&purge.epk);
    Key from;
    Key to;
    key_item_range(&from, &to, prefix);
    if (group->upkeep->purge_position.len > 0)
        from = group->upkeep->purge_position;
    FoundKeys keys;
    TRY(group_find_keys(group, key_slice(&from), key_slice(&to), &keys, err));
    size_t done = 0;
    uint64_t items = group->counters.items;
    for (; done < keys.count && !group_is_large(group); done++)
        TRY(purge_one(group, &purge, keys.keys[done], err));
    if (group->counters.items < items) /* a transaction that deletes */
        group->counters.lsn++;
    group->is_changed = true;
    group->has_more = true; /* there may be another purge, too */
    if (keys.is_full || done < keys.count) {
        if (done > 0)
            key_set(&group->upkeep->purge_position, keys.keys[done - 1]);
        return STATUS_OK;
    }
    Key key;
    key_purge(&key, prefix);
    store_txn_delete(group->txn, partition->space, key_slice(&key));
    group->upkeep->purge_position.len = 0; /* the next purge begins at its own beginning */
    group->purges.is_first_done = true;
    return STATUS_OK;
}

/* Adds notes for the items that expire since the default TTL was changed (I7). One pass over the
 * items, piece by piece; items that are written meanwhile get theirs at once. */
static Status sweep_piece(Group *group, Error *err)
{
    int64_t ttl_s = group->schema->default_ttl_s;
    if (ttl_s == 0 || group->counters.ttl_swept_s == ttl_s)
        return STATUS_OK; /* without a default nothing expires */
    if (group->full.status != STATUS_OK)
        return STATUS_OK; /* notes take room: later */
    Key from = group->upkeep->sweep_position;
    Key to = {.bytes = {KEY_NUMBER + 1}, .len = 1};
    if (from.len == 0 || group->upkeep->sweep_ttl_s != ttl_s)
        key_number(&from, 0);
    FoundKeys keys;
    TRY(group_find_keys(group, key_slice(&from), key_slice(&to), &keys, err));
    for (size_t i = 0; i < keys.count; i++) {
        Slice epk;
        Slice id;
        Item item;
        bool found = false;
        arena_reset(&group->arena);
        if (keys.keys[i].len == KEY_NUMBER_BYTES)
            TRY(group_find_item(group, be64_get(keys.keys[i].ptr + 1), &epk, &id, &item, &found,
                                err));
        uint64_t at = found ? item_expires_at_s(group->schema, &item) : UINT64_MAX;
        if (at == UINT64_MAX)
            continue;
        Key note;
        key_expiry(&note, at, item.number);
        store_txn_put(group->txn, group->partition->space, key_slice(&note), SLICE_EMPTY);
        group->takes_room = true;
    }
    group->is_changed = true;
    group->has_more = true;
    group->upkeep->sweep_ttl_s = ttl_s;
    if (keys.is_full) {
        key_set(&group->upkeep->sweep_position, keys.keys[keys.count - 1]);
    } else {
        group->upkeep->sweep_position.len = 0;
        group->counters.ttl_swept_s = ttl_s;
    }
    return STATUS_OK;
}

static void begin_upkeep(Group *group)
{
    group->upkeep =
        ARENA_NEW(&group->keep, Upkeep); /* there is one message of this kind at a time */
    *group->upkeep = group->partition->writer.upkeep;
}

Status group_purge_piece(Group *group, Error *err)
{
    begin_upkeep(group);
    return purge_piece(group, err);
}

Status group_maintain(Group *group, Error *err)
{
    /* Each alone: a failure of one must not stop the others. A piece changes the group itself only
     * when nothing can fail any more. */
    static Status (*const pieces[])(Group *, Error *) = {
        purge_piece,         sweep_piece,        expire,
        group_rebuild_index, group_trim_history, group_trim_befores,
    };
    TRY(group_settle_bulk(group, err));
    begin_upkeep(group);
    Status first = STATUS_OK;
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        Error error;
        Mark mark = group_mark(group);
        Status status = pieces[i](group, &error);
        if (status == STATUS_OK) {
            group_keep(group);
            continue;
        }
        group_undo(group, &mark);
        if (first == STATUS_OK)
            *err = error;
        first = first == STATUS_OK ? status : first;
    }
    return first;
}
