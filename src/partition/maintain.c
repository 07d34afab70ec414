/* maintain.c - takes away what nobody can see any more: expired items and purged ones.
 *
 * Both are invisible at once; this only gives the room back, a bounded piece per group, in the
 * partition's own order of writes. Three kinds of work, and a fourth in index_rebuild.c:
 *
 *   - expiry notes whose time has come: the item is looked up and, if it has really expired under
 *     the definition of today, removed; otherwise its note is moved to when it will;
 *   - purges: items under the purge's EPK up to its LSN are removed, then the purge itself;
 *   - after a change of the default TTL, a note for every item that has none.
 *
 * Runs on a writer thread, as part of a group.
 */
#include "partition/partition_int.h"

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

static Status expire_one(Group *group, Slice note, Error *err)
{
    StoreSpace space = group->partition->space;
    if (note.len != 1 + 4 + 8)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "an expiry note is damaged");
    uint64_t noted_s = be32_get(note.ptr + 1);
    uint64_t number = be64_get(note.ptr + 5);
    Slice epk;
    Slice id;
    Item item;
    bool found = false;
    TRY(group_find_item(group, number, &epk, &id, &item, &found, err));
    group->is_changed = true;
    if (found && item_expires_at_s(group->schema, &item) <= group->now_s) {
        group_delete(group, epk, id, &item, NULL);
        group->counters.lsn++;
    } else if (found && item_expires_at_s(group->schema, &item) != noted_s) {
        uint64_t at = item_expires_at_s(group->schema, &item);
        Key key;
        key_expiry(&key, at, number);
        if (at != UINT64_MAX)
            store_txn_put(group->txn, space, key_slice(&key), SLICE_EMPTY);
    }
    store_txn_delete(group->txn, space, note);
    /* The default of before, should it come back, may need the note that is gone now. */
    if (group->counters.ttl_swept_s != group->schema->default_ttl_s)
        group->counters.ttl_swept_s = TTL_UNSWEPT;
    return STATUS_OK;
}

/* Items that are removed are kept until their terms are taken out of the index: enough of them. */
static bool is_large(const Group *group)
{
    return arena_used(&group->keep) > GROUP_KEEP_BYTES_MAX;
}

static Status expire(Group *group, Error *err)
{
    Key from;
    Key to;
    key_expiry(&from, 0, 0);
    key_expiry(&to, (uint64_t)group->now_s + 1, 0);
    FoundKeys notes;
    TRY(group_find_keys(group, key_slice(&from), key_slice(&to), &notes, err));
    for (size_t i = 0; i < notes.count && !is_large(group); i++)
        TRY(expire_one(group, notes.keys[i], err));
    group->has_more = group->has_more || notes.is_full || is_large(group);
    return STATUS_OK;
}

void group_apply_purge(Group *group, PartitionPurge *purge)
{
    /* One more for an EPK that has a purge already takes no room, but is refused all the same. */
    uint32_t pending = atomic_load(&group->partition->purge_count);
    if (pending + group->purge_count >= PURGES_MAX) {
        purge->status = error_set(&purge->error, STATUS_THROTTLED, SUB_SYSTEM_BUSY,
                                  "%d deletions by partition key are under way in this partition; "
                                  "try again later.",
                                  PURGES_MAX);
        purge->error.retry_after_ms = 1000;
        return;
    }
    if (group->purges == NULL)
        group->purges = ARENA_NEW_ARRAY(&group->keep, Purge, PURGES_MAX);
    uint64_t lsn = ++group->counters.lsn;
    group->purges[group->purge_count++] = (Purge){.epk = purge->epk, .lsn = lsn};
    Key key;
    key_purge(&key, epk_slice(&purge->epk));
    group_note_purge(group, epk_slice(&purge->epk));
    store_txn_put(group->txn, group->partition->space, key_slice(&key),
                  slice_make(&lsn, sizeof(lsn)));
    group->is_changed = true;
    group->has_more = true;
}

static void key_set(Key *key, Slice bytes)
{
    memcpy(key->bytes, bytes.ptr, bytes.len);
    key->len = bytes.len;
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
        group_delete(group, epk, id, &same, NULL);
    return STATUS_OK;
}

/* Removes a piece of the first purge, going on behind the last one; at the end, the purge. */
static Status purge_piece(Group *group, Error *err)
{
    Partition *partition = group->partition;
    /* A purge that this group adds may be the same one: what is removed here follows the list as it
     * is, and would take the new record away with the old. */
    if (atomic_load(&partition->purge_count) == 0 || group->purge_count > 0)
        return STATUS_OK;
    (void)pthread_mutex_lock(&partition->lock);
    Purge purge = partition->purges[0];
    (void)pthread_mutex_unlock(&partition->lock);

    Slice prefix = epk_slice(&purge.epk);
    Key from = group->upkeep->purge_position;
    Key to;
    if (from.len == 0)
        key_item(&from, prefix, SLICE_EMPTY);
    key_item(&to, prefix, SLICE("\xFF")); /* no EPK of an item and no id goes on like this */
    FoundKeys keys;
    TRY(group_find_keys(group, key_slice(&from), key_slice(&to), &keys, err));
    size_t done = 0;
    for (; done < keys.count && !is_large(group); done++)
        TRY(purge_one(group, &purge, keys.keys[done], err));
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
    group->purge_done = true;
    return STATUS_OK;
}

/* Notes for the items that a change of the default TTL has made mortal. One pass over the items,
 * piece by piece; what is written meanwhile notes itself. */
static Status sweep_piece(Group *group, Error *err)
{
    int64_t ttl_s = group->schema->default_ttl_s;
    if (ttl_s == 0 || group->counters.ttl_swept_s == ttl_s)
        return STATUS_OK; /* without a default nothing expires */
    if (group->full.status != STATUS_OK)
        return STATUS_OK; /* notes take room; another time */
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
        if (keys.keys[i].len == 1 + 8)
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

Status group_maintain(Group *group, Error *err)
{
    /* Each alone: what one of them stumbles over is no reason to keep what the others remove. A
     * piece changes the group itself only when nothing can fail any more. */
    static Status (*const pieces[])(Group *, Error *) = {purge_piece, sweep_piece, expire,
                                                         group_rebuild_index};
    TRY(group_settle_bulk(group, err));
    group->upkeep =
        ARENA_NEW(&group->keep, Upkeep); /* there is one message of this kind at a time */
    *group->upkeep = group->partition->upkeep;
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
