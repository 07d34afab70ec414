/* item_import.c - how a partition that a move fills takes the items, as part of its groups.
 *
 * Items of the copy are new to it. It gathers them with their terms, megabytes of them, and loads
 * them past the store's log (store_load_add). No client reads the partition before the move has
 * ended, and a start after a crash removes it, so what is gathered need not be durable before. What
 * must find something in the partition has all of it written first (group_settle_bulk): the
 * catching up, and maintenance, which may rebuild the index for another policy.
 *
 * Items that have changed since the copy may be there already, and are written like any others.
 */
#include "base/mem.h"
#include "partition/group_int.h"

/* Whatever has the item's number, or its place, and is not the same item, is from before. */
static Status clear_place(Group *group, const ImportItem *in, Item *old, bool *found, Error *err)
{
    Slice epk;
    Slice id;
    Item other;
    TRY(group_find_item(group, in->item.number, &epk, &id, &other, found, err));
    if (*found && !(slice_equal(epk, in->epk) && slice_equal(id, in->id)))
        TRY(group_delete(group, CHANGE_DELETE, epk, id, &other, NULL, err));
    TRY(group_get(group, in->epk, in->id, old, found, err));
    if (!*found || old->number == in->item.number)
        return STATUS_OK;
    *found = false;
    return group_delete(group, CHANGE_DELETE, in->epk, in->id, old, NULL, err);
}

/* It may have had another id when it was copied. */
static Status remove_number(Group *group, uint64_t number, Error *err)
{
    Slice epk;
    Slice id;
    Item old;
    bool found = false;
    TRY(group_find_item(group, number, &epk, &id, &old, &found, err));
    if (found)
        TRY(group_delete(group, CHANGE_DELETE, epk, id, &old, NULL, err));
    return STATUS_OK;
}

static Status import_item(Group *group, const ImportItem *in, Error *err)
{
    Item old;
    bool found = false;
    if (in->gone_number != 0)
        TRY(remove_number(group, in->gone_number, err));
    if (in->is_absent) {
        TRY(group_get(group, in->epk, in->id, &old, &found, err));
        if (found)
            TRY(group_delete(group, CHANGE_DELETE, in->epk, in->id, &old, NULL, err));
        return STATUS_OK;
    }
    TRY(clear_place(group, in, &old, &found, err));
    if (found && old.lsn == in->item.lsn)
        return STATUS_OK; /* it is there already */
    Item item = in->item;
    if (group->counters.lsn < item.lsn)
        group->counters.lsn = item.lsn;
    return group_put(group, in->epk, in->id, found ? &old : NULL, in->id, &item, NULL, err);
}

/* What a target has gathered. Terms are sorted for as many items together as there is room for: a
 * chunk that many of them are in is written once. */
struct Bulk {
    StoreLoad *load;
    StoreTxn *txn;     /* what is gathered for the load's next step */
    Arena arena;       /* of 'terms' */
    TermsBatch *terms; /* NULL if there are none */
    bool is_complete;  /* all of it was given to the load */
};

static Bulk *bulk_new(Partition *partition)
{
    Bulk *bulk = MEM_NEW(Bulk);
    bulk->load = store_load_begin(partition->host->store, KEY_ITEM);
    bulk->txn = store_txn_begin(partition->host->store);
    arena_init(&bulk->arena, ARENA_LARGE_BYTES);
    return bulk;
}

void bulk_free(Bulk *bulk)
{
    if (bulk == NULL)
        return;
    store_load_abort(bulk->load);
    store_txn_abort(bulk->txn);
    arena_done(&bulk->arena);
    mem_free(bulk);
}

static void bulk_write_terms(Bulk *bulk, StoreSpace space)
{
    if (bulk->terms == NULL)
        return;
    terms_batch_finish(TAKE(bulk->terms), bulk->txn, space);
    arena_reset(&bulk->arena);
}

static size_t bulk_bytes(const Bulk *bulk)
{
    return store_txn_bytes(bulk->txn) + arena_used(&bulk->arena);
}

/* Gives what was gathered to the load, which works on it while the next is gathered. */
static Status bulk_hand_on(Bulk *bulk, const Partition *partition, Error *err)
{
    ASSERT(!bulk->is_complete);
    bulk_write_terms(bulk, partition->space);
    StoreTxn *full = bulk->txn;
    bulk->txn = store_txn_begin(partition->host->store);
    return store_load_add(bulk->load, full, err);
}

static Status bulk_complete(Bulk *bulk, const Partition *partition, Error *err)
{
    if (!bulk->is_complete)
        TRY(bulk_hand_on(bulk, partition, err));
    bulk->is_complete = true;
    return STATUS_OK;
}

static Status check_bulk(const Partition *partition, Error *err)
{
    if (!partition->writer.has_lost_bulk)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "what was copied to partition %u could not be written", partition->id);
}

Status group_settle_bulk(Group *group, Error *err)
{
    Partition *partition = group->partition;
    TRY(check_bulk(partition, err));
    Bulk *bulk = TAKE(partition->writer.bulk);
    if (bulk == NULL)
        return STATUS_OK;
    group->is_changed = true; /* the counters have changed with it */
    Status status = bulk_complete(bulk, partition, err);
    if (status == STATUS_OK)
        status = store_load_finish(TAKE(bulk->load), err);
    partition->writer.has_lost_bulk = status != STATUS_OK;
    bulk_free(bulk);
    return status;
}

/* A step of group_settle_bulk, so that the move can rest in between, or be stopped. */
static Status settle_step(Group *group, Import *import, Error *err)
{
    Partition *partition = group->partition;
    TRY(check_bulk(partition, err));
    Bulk *bulk = partition->writer.bulk;
    bool is_merged = bulk == NULL;
    Status status = STATUS_OK;
    if (bulk != NULL)
        status = bulk_complete(bulk, partition, err);
    if (bulk != NULL && status == STATUS_OK)
        status = store_load_merge(bulk->load, &is_merged, err);
    if (status != STATUS_OK) {
        partition->writer.has_lost_bulk = true;
        bulk_free(TAKE(partition->writer.bulk));
        return status;
    }
    import->is_settled = is_merged;
    return is_merged ? group_settle_bulk(group, err) : STATUS_OK;
}

/* Whether the group does nothing else, so that what it counts and indexes is the import's alone. */
static bool is_alone(const Group *group)
{
    return !group->is_changed && group->index.change_count == 0 && group->sizes.note_count == 0;
}

static Status import_entries(Group *group, const Import *import, Error *err)
{
    for (size_t i = 0; i < import->entry_count; i++) {
        const ImportEntry *entry = &import->entries[i];
        if ((uint8_t)entry->key.ptr[0] == KEY_BEFORE)
            group_import_before(group, entry->key, entry->value);
        else
            TRY(group_log_import(group, entry->key, entry->value, err));
    }
    return STATUS_OK;
}

static Status gather_all(Group *group, const Import *import, Error *err)
{
    for (size_t i = 0; i < import->count; i++) {
        const ImportItem *in = &import->items[i];
        Item item = in->item;
        arena_reset(&group->arena);
        if (group->counters.lsn < item.lsn)
            group->counters.lsn = item.lsn;
        TRY(group_put(group, in->epk, in->id, NULL, in->id, &item, NULL, err));
    }
    return import_entries(group, import, err);
}

/* Puts everything about the items into the bulk. The group has nothing to commit afterwards: the
 * partition's counters are stored when its bulk is. */
static Status import_new(Group *group, const Import *import, Error *err)
{
    Partition *partition = group->partition;
    if (partition->writer.bulk == NULL)
        partition->writer.bulk = bulk_new(partition);
    Bulk *bulk = partition->writer.bulk;
    Status status = STATUS_OK;
    if (bulk_bytes(bulk) >= import->bulk_bytes_max)
        status = bulk_hand_on(bulk, partition, err);
    StoreTxn *own = group->txn;
    group->txn = bulk->txn;
    if (status == STATUS_OK)
        status = gather_all(group, import, err);
    if (status == STATUS_OK) {
        group_finish_sizes(group);
        if (bulk->terms == NULL)
            bulk->terms = terms_batch_new(&bulk->arena, partition->index_key);
        group_gather_terms(group, bulk->terms);
        if (arena_used(&bulk->arena) >= import->bulk_bytes_max / 4)
            bulk_write_terms(bulk, partition->space);
        partition->writer.counters = group->counters;
    }
    group->txn = own;
    group->sizes = (SizeChanges){0};
    group->index.change_count = 0;
    group->is_changed = false;
    partition->writer.has_lost_bulk = status != STATUS_OK;
    return status;
}

static Status import_all(Group *group, Import *import, Error *err)
{
    if (group->full.status != STATUS_OK) {
        *err = group->full;
        return err->status;
    }
    if (import->settles)
        return settle_step(group, import, err);
    if (import->bulk_bytes_max > 0 && is_alone(group) && !group->partition->writer.has_lost_bulk)
        return import_new(group, import, err);
    TRY(group_settle_bulk(group, err));
    for (size_t i = 0; i < import->count; i++) {
        arena_reset(&group->arena);
        TRY(import_item(group, &import->items[i], err));
    }
    TRY(import_entries(group, import, err));
    PartitionCounters *counters = &group->counters;
    if (counters->lsn < import->lsn) {
        counters->lsn = import->lsn;
        group->is_changed = true;
    }
    if (import->lsn > 0) {
        counters->history_from_lsn = import->history_from_lsn;
        counters->unordered_lsn = import->unordered_lsn;
        if (import->floors != NULL)
            group_put_floors(group, import->floors);
        group_set_baselines(group, import->baselines);
        group->is_changed = true;
    }
    return STATUS_OK;
}

void group_apply_import(Group *group, Import *import)
{
    Mark mark = group_mark(group);
    group->is_import = true;
    import->turn.status = import_all(group, import, &import->turn.error);
    group->is_import = false;
    if (import->turn.status == STATUS_OK)
        group_keep(group);
    else
        group_undo(group, &mark);
}

Status partition_list_purged(Partition *partition, Slice prefix, Key *from, Arena *arena,
                             FoundKeys *out, Error *err)
{
    Key to;
    key_item(&to, prefix, SLICE_EMPTY);
    while (to.len > 1 && to.bytes[to.len - 1] == 0xFF)
        to.len--;
    to.bytes[to.len - 1]++;
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(partition->host->store, NULL, partition->space,
                                            key_slice(from), key_slice(&to));
    for (out->count = 0; out->count < PIECE_MAX; out->count++) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found) {
            from->len = 0;
            return STATUS_OK;
        }
        Item item;
        TRY(item_decode(value, &item, err));
        PartitionSchema *schema = current_schema_ref(&partition->current);
        Slice epk = key_item_epk(schema, key, &item);
        schema_unref(schema);
        out->keys[out->count] = location_encode(arena, epk, slice_from(key, 1 + epk.len));
        memcpy(from->bytes, key.ptr, key.len);
        from->len = key.len;
    }
    from->bytes[from->len++] = 0;
    return STATUS_OK;
}
