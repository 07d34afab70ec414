/* apply_write.c - what each operation on an item does to a group's transaction.
 *
 * An operation that fails leaves its savepoint's writes undone and the counters as they were. An
 * expired or purged item counts as absent: an operation that meets one removes it first (I5). Runs
 * on a writer thread.
 */
#include "base/mem.h"
#include "partition/group_int.h"

Mark group_mark(Group *group)
{
    store_txn_savepoint(group->txn);
    return (Mark){
        .counters = group->counters,
        .is_changed = group->is_changed,
        .index_change_count = group->index.change_count,
        .takes_room = group->takes_room,
        .size_note_count = group->sizes.note_count,
        .cache_change_count = group->cache.count,
        .log = group->log,
    };
}

/* I3 */
void group_undo(Group *group, const Mark *mark)
{
    ASSERT(mark->counters.lsn <= group->counters.lsn);
    ASSERT(mark->index_change_count <= group->index.change_count);
    store_txn_rollback(group->txn);
    group->counters = mark->counters;
    group->is_changed = mark->is_changed;
    group->index.change_count = mark->index_change_count;
    group->takes_room = mark->takes_room;
    size_changes_undo(&group->sizes, mark->size_note_count);
    group_cut_changed(group, mark->cache_change_count);
    group->log = mark->log;
}

void group_keep(Group *group)
{
    store_txn_release(group->txn);
}

/* Where an item is looked for. */
typedef enum GetFrom { GET_FROM_GROUP, GET_FROM_STORE } GetFrom;

static Status get_item(Group *group, GetFrom from, Slice epk, Slice id, Item *item, bool *found,
                       Error *err)
{
    *found = false;
    if (id.len > ITEM_ID_BYTES_MAX)
        return STATUS_OK;
    Partition *partition = group->partition;
    Key key;
    key_item(&key, epk, id);
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound answer = store_txn_get_own(group->txn, partition->space, key_slice(&key), &value);
    if (answer == STORE_UNKNOWN && from == GET_FROM_STORE)
        TRY(partition_get_bytes(partition, key_slice(&key), false, STORE_READ_ANY, &value, &answer,
                                err));
    *found = answer == STORE_FOUND;
    if (!*found)
        return STATUS_OK;
    /* The transaction is about to change under the value. */
    TRY(item_decode(arena_copy(&group->arena, value.data), item, err));
    return STATUS_OK;
}

Status group_get(Group *group, Slice epk, Slice id, Item *item, bool *found, Error *err)
{
    return get_item(group, GET_FROM_STORE, epk, id, item, found, err);
}

static void put_expiry(Group *group, const Item *item)
{
    uint64_t at = item_expires_at_s(group->schema, item);
    if (at == UINT64_MAX)
        return;
    Key key;
    key_expiry(&key, at, item->number);
    store_txn_put(group->txn, group->partition->space, key_slice(&key), SLICE_EMPTY);
}

static void delete_expiry(Group *group, const Item *item)
{
    uint64_t at = item_expires_at_s(group->schema, item);
    if (at == UINT64_MAX)
        return;
    Key key;
    key_expiry(&key, at, item->number);
    store_txn_delete(group->txn, group->partition->space, key_slice(&key));
}

static void put_number(Group *group, uint64_t number, Slice epk, Slice id)
{
    Key key;
    key_number(&key, number);
    store_txn_put(group->txn, group->partition->space, key_slice(&key),
                  location_encode(&group->arena, epk, id));
}

/* The item's key changes with its id; its number leads to the new one. */
static void move_item(Group *group, Slice epk, Slice old_id, Slice id, uint64_t number)
{
    Key key;
    key_item(&key, epk, old_id);
    group_note_changed(group, &key, SLICE_EMPTY);
    store_txn_delete(group->txn, group->partition->space, key_slice(&key));
    key_number(&key, number);
    group_note_changed(group, &key, SLICE_EMPTY);
    put_number(group, number, epk, id);
}

/* Bytes of the item and its key. */
static int64_t stored_bytes(Slice epk, Slice id, const Item *item)
{
    return (int64_t)(1 + epk.len + id.len + item->bytes);
}

Status group_put(Group *group, Slice epk, Slice id, const Item *old, Slice old_id, Item *item,
                 uint32_t *terms, Error *err)
{
    TRY(group_note_before(group, epk, item->number, old, old_id, false, err));
    TRY(unique_update(group, epk, old, item, err));
    if (!group->is_import)
        item->order = group_next_place(group, item->number).order;
    Slice bytes = item_encode(&group->arena, item);
    item->bytes = bytes.len;
    SizeSum sum = {.items = old == NULL ? 1 : 0, .bytes = stored_bytes(epk, id, item)};
    if (old != NULL)
        sum.bytes -= stored_bytes(epk, old_id, old);
    TRY(group_check_size(group, epk, sum.bytes, err));
    group_resize(group, epk, sum);
    Key key;
    key_item(&key, epk, id);
    /* A changed item is likely to be read or changed again; of a new one nothing is known. */
    group_note_changed(group, &key, old != NULL ? bytes : SLICE_EMPTY);
    store_txn_put(group->txn, group->partition->space, key_slice(&key), bytes);
    if (old == NULL)
        put_number(group, item->number, epk, id);
    else if (!slice_equal(id, old_id))
        move_item(group, epk, old_id, id, item->number);
    if (old != NULL)
        delete_expiry(group, old);
    put_expiry(group, item);
    group_log_put(group, epk, id, old, item, bytes);
    group_index_change(group, old, item, terms);
    group->takes_room = true;
    if (group->counters.ttl_swept_s != group->schema->default_ttl_s)
        group->counters.ttl_swept_s = TTL_UNSWEPT;
    group->is_changed = true;
    return STATUS_OK;
}

Status group_delete(Group *group, ChangeKind kind, Slice epk, Slice id, const Item *old,
                    uint32_t *terms, Error *err)
{
    TRY(group_note_before(group, epk, old->number, old, id, true, err));
    TRY(unique_update(group, epk, old, NULL, err)); /* giving values up cannot conflict */
    Key key;
    StoreSpace space = group->partition->space;
    key_item(&key, epk, id);
    group_note_changed(group, &key, SLICE_EMPTY);
    store_txn_delete(group->txn, space, key_slice(&key));
    group_resize(group, epk, (SizeSum){.items = -1, .bytes = -stored_bytes(epk, id, old)});
    key_number(&key, old->number); /* in the cache it is a hint, and may stay (I14) */
    store_txn_delete(group->txn, space, key_slice(&key));
    delete_expiry(group, old);
    group_log_delete(group, kind, epk, id, old);
    group_index_change(group, old, NULL, terms);
    group->is_changed = true;
    return STATUS_OK;
}

static uint64_t purged_lsn(const Group *group, Slice epk)
{
    /* A purge earlier in this very group is not in the partition's list yet. */
    uint64_t durable = purge_list_find(&group->partition->purges, epk);
    uint64_t added = purges_find(group->purges.added, group->purges.added_count, epk);
    return durable > added ? durable : added;
}

static bool is_gone(const Group *group, Slice epk, const Item *item)
{
    return item_is_gone(group->schema, item, group->now_s, purged_lsn(group, epk));
}

/* Deletes an item that was found but is gone: then it counts as not found. */
static Status drop_if_gone(Group *group, Slice epk, Slice id, const Item *item, bool *found,
                           Error *err)
{
    if (!*found || !is_gone(group, epk, item))
        return STATUS_OK;
    bool is_purged = item->lsn <= purged_lsn(group, epk);
    *found = false;
    return group_delete(group, is_purged ? CHANGE_DELETE : CHANGE_EXPIRE, epk, id, item, NULL, err);
}

Status group_get_living(Group *group, Slice epk, Slice id, Item *item, bool *found, Error *err)
{
    TRY(group_get(group, epk, id, item, found, err));
    return drop_if_gone(group, epk, id, item, found, err);
}

/* The item that a create or upsert finds under its id. What a transaction has not found is not
 * looked for again by its commit: nobody else writes to its EPK (I21). */
static Status get_before(Group *group, ItemWrite *w, Item *item, bool *found, Error *err)
{
    Slice epk = epk_slice(&w->epk);
    *found = false;
    if (group->is_commit && w->is_absent)
        return STATUS_OK;
    GetFrom from = group_holds_nothing(group, epk) ? GET_FROM_GROUP : GET_FROM_STORE;
    TRY(get_item(group, from, epk, w->document_id, item, found, err));
    w->is_absent = !*found;
    return drop_if_gone(group, epk, w->document_id, item, found, err);
}

static Status not_found(const ItemWrite *w, Error *err)
{
    static const char *const names[] = {
        [ITEM_CREATE] = "Create",   [ITEM_UPSERT] = "Upsert", [ITEM_READ] = "Read",
        [ITEM_REPLACE] = "Replace", [ITEM_PATCH] = "Patch",   [ITEM_DELETE] = "Delete",
    };
    return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                     "Resource Not Found. There is no item '%.*s' with this partition key. "
                     "ResourceType: Document, OperationType: %s",
                     SLICE_CUT(w->id, 260), names[w->op]);
}

static Status exists(Slice id, Error *err)
{
    return error_set(err, STATUS_CONFLICT, SUB_NONE,
                     "Resource with specified id or name already exists: item '%.*s'.",
                     SLICE_CUT(id, 260));
}

static Status check_etag(Slice if_match, const Item *item, Error *err)
{
    char etag[ITEM_ETAG_LEN];
    item_etag(item, etag);
    if (if_match.len == 0 || slice_equal(if_match, SLICE("*")) ||
        slice_equal(if_match, slice_make(etag, sizeof(etag))))
        return STATUS_OK;
    return error_set(err, STATUS_PRECONDITION_FAILED, SUB_NONE,
                     "One of the specified pre-condition is not met: If-Match is %.*s, the item's "
                     "ETag is %.*s.",
                     SLICE_CUT(if_match, 80), ITEM_ETAG_LEN, etag);
}

static bool is_unindexed(const Group *group, const ItemWrite *w, const Item *old)
{
    if (w->directive != INDEX_DEFAULT)
        return w->directive == INDEX_EXCLUDE;
    if (w->op == ITEM_PATCH)
        return old->is_unindexed;
    const IndexPolicy *policy = group->schema->index;
    return policy != NULL && !index_policy_is_automatic(policy);
}

/* What is stored as the next number is after all that are stored, and so after those that
 * transactions have brought along (I2). */
static Status take_number(Group *group, const ItemWrite *w, uint64_t *out, Error *err)
{
    Partition *partition = group->partition;
    uint64_t count = group->is_commit ? w->item.number & ITEM_COUNT_MAX
                                      : atomic_fetch_add_explicit(&partition->item_next, 1,
                                                                  memory_order_relaxed);
    if (count > ITEM_COUNT_MAX)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "This partition has used up all item numbers.");
    if (group->counters.item_next <= count)
        group->counters.item_next = count + 1;
    *out = item_number(partition->id, count);
    return STATUS_OK;
}

/* What a transaction has shown its ETags with stays. */
static uint32_t take_stamp(Group *group, const ItemWrite *w)
{
    if (LIKELY(!group->is_private))
        return group->is_commit ? w->item.stamp : 0;
    uint32_t stamp = 0;
    while (stamp == 0)
        stamp = atomic_fetch_add_explicit(&group->partition->stamp_next, 1, memory_order_relaxed);
    return stamp;
}

/* Stores the write's document as a new version of 'old', which is under 'old_id', or as a new item.
 */
static Status store_version(Group *group, ItemWrite *w, uint64_t lsn, const Item *old, Slice old_id,
                            Error *err)
{
    uint64_t number = 0;
    uint32_t stamp = take_stamp(group, w);
    if (old != NULL)
        number = old->number;
    else
        TRY(take_number(group, w, &number, err));
    w->item = (Item){
        .number = number,
        .lsn = lsn,
        .ts_s = group->now_s,
        .ttl_s = w->ttl_s,
        .stamp = stamp,
        .is_unindexed = is_unindexed(group, w, old),
        .document = w->document,
    };
    w->terms = 0;
    w->bytes_before = old == NULL ? 0 : old->bytes;
    TRY(group_put(group, epk_slice(&w->epk), w->document_id, old, old_id, &w->item, &w->terms,
                  err));
    w->bytes_after = w->item.bytes;
    return STATUS_OK;
}

static Status apply_create(Group *group, ItemWrite *w, uint64_t lsn, Error *err)
{
    Item old;
    bool found = false;
    TRY(get_before(group, w, &old, &found, err));
    if (found)
        return exists(w->document_id, err);
    w->created = true;
    return store_version(group, w, lsn, NULL, SLICE_EMPTY, err);
}

static Status apply_upsert(Group *group, ItemWrite *w, uint64_t lsn, Error *err)
{
    Item old;
    bool found = false;
    TRY(get_before(group, w, &old, &found, err));
    if (found)
        TRY(check_etag(w->if_match, &old, err));
    w->created = !found;
    return store_version(group, w, lsn, found ? &old : NULL, w->document_id, err);
}

/* The document may carry another id: then the item moves, with its number, if that id is free. */
static Status check_free(Group *group, ItemWrite *w, Error *err)
{
    Item other;
    bool found = false;
    TRY(group_get_living(group, epk_slice(&w->epk), w->document_id, &other, &found, err));
    return found ? exists(w->document_id, err) : STATUS_OK;
}

static Status apply_replace(Group *group, ItemWrite *w, uint64_t lsn, Error *err)
{
    Item old;
    bool found = false;
    TRY(group_get_living(group, epk_slice(&w->epk), w->id, &old, &found, err));
    if (!found)
        return not_found(w, err);
    TRY(check_etag(w->if_match, &old, err));
    if (!slice_equal(w->id, w->document_id))
        TRY(check_free(group, w, err));
    return store_version(group, w, lsn, &old, w->id, err);
}

/* Before the document is made: a patch that is refused takes no memory. */
static Status reserve_patch(PartitionWrite *write, const Item *old, Error *err)
{
    if (old->bytes > PARTITION_PATCHED_BYTES_MAX - write->patched_bytes)
        return error_set(err, STATUS_TOO_LARGE, SUB_RESPONSE_TOO_LARGE,
                         "The items that the batch patches have more than %zu bytes together; "
                         "patch fewer in one batch.",
                         PARTITION_PATCHED_BYTES_MAX);
    write->patched_bytes += old->bytes;
    return STATUS_OK;
}

static Status apply_patch(Group *group, PartitionWrite *write, ItemWrite *w, uint64_t lsn,
                          Error *err)
{
    Arena *arena = write->arena;
    Item old;
    bool found = false;
    TRY(group_get_living(group, epk_slice(&w->epk), w->id, &old, &found, err));
    if (!found)
        return not_found(w, err);
    TRY(check_etag(w->if_match, &old, err));
    TRY(reserve_patch(write, &old, err));
    if (w->condition != NULL) {
        bool holds = false;
        Json whole = item_document(arena, group->schema, &old);
        TRY(w->condition->holds(w->condition->ctx, whole, &holds, err));
        if (!holds)
            return error_set(err, STATUS_PRECONDITION_FAILED, SUB_NONE,
                             "One of the specified pre-condition is not met: the patch's condition "
                             "does not hold for the item.");
    }
    Json patched;
    TRY(patch_apply(w->patch, arena, old.document, &patched, err));
    TRY(item_prepare(arena, patched, &w->document, &w->document_id, &w->ttl_s, err));
    return store_version(group, w, lsn, &old, w->id, err);
}

static Status apply_delete(Group *group, ItemWrite *w, Error *err)
{
    Item old;
    bool found = false;
    TRY(group_get_living(group, epk_slice(&w->epk), w->id, &old, &found, err));
    if (!found)
        return not_found(w, err);
    TRY(check_etag(w->if_match, &old, err));
    w->bytes_before = old.bytes;
    w->terms = 0;
    return group_delete(group, CHANGE_DELETE, epk_slice(&w->epk), w->id, &old, &w->terms, err);
}

/* The text is what counts: it may be several times as long as what is stored, and the answer to a
 * transaction that has been committed can no longer be a failure. */
static Status reserve_read(const Group *group, PartitionWrite *write, const Item *item, Error *err)
{
    if (write->read_bytes_max == SIZE_MAX)
        return STATUS_OK;
    AUTO(buf_done) Buf text;
    buf_init(&text, write->read_bytes_max - write->read_bytes);
    item_print(group->schema, item, &text);
    if (buf_full(&text))
        return error_set(err, STATUS_TOO_LARGE, SUB_RESPONSE_TOO_LARGE,
                         "The items that the batch reads have more than %zu bytes together; read "
                         "fewer in one batch.",
                         write->read_bytes_max);
    write->read_bytes += text.len;
    return STATUS_OK;
}

static Status apply_read(Group *group, PartitionWrite *write, ItemWrite *w, Error *err)
{
    Item item;
    bool found = false;
    TRY(group_get(group, epk_slice(&w->epk), w->id, &item, &found, err));
    if (!found || is_gone(group, epk_slice(&w->epk), &item))
        return not_found(w, err);
    w->bytes_before = item.bytes;
    char etag[ITEM_ETAG_LEN];
    item_etag(&item, etag);
    /* For a read both headers mean: unless it is this version. */
    if (slice_equal(w->if_none_match, slice_make(etag, sizeof(etag))) ||
        slice_equal(w->if_match, slice_make(etag, sizeof(etag))))
        return error_set(err, STATUS_NOT_MODIFIED, SUB_NONE, "The item has not changed.");
    TRY(reserve_read(group, write, &item, err));
    item.document = json_trust(json_bytes(write->arena, item.document));
    w->item = item;
    return STATUS_OK;
}

static Status apply_operation(Group *group, PartitionWrite *write, ItemWrite *w, uint64_t lsn,
                              Error *err)
{
    arena_reset(&group->arena);
    /* Refused alone (I15): in the group its commit would fail, and the deletes with it. */
    if (UNLIKELY(group->full.status != STATUS_OK) && w->op != ITEM_READ &&
        (w->op != ITEM_DELETE || group_keeps_deleted(group))) {
        *err = group->full;
        return err->status;
    }
    switch (w->op) {
    case ITEM_CREATE:
        return apply_create(group, w, lsn, err);
    case ITEM_UPSERT:
        return apply_upsert(group, w, lsn, err);
    case ITEM_REPLACE:
        return apply_replace(group, w, lsn, err);
    case ITEM_PATCH:
        return apply_patch(group, write, w, lsn, err);
    case ITEM_DELETE:
        return apply_delete(group, w, err);
    case ITEM_READ:
        return apply_read(group, write, w, err);
    }
    ASSERT(!"every operation is handled above");
    return STATUS_OK;
}

static void fail_others(PartitionWrite *write, size_t failed, size_t from)
{
    for (size_t i = from; i < write->count; i++) {
        ItemWrite *w = &write->items[i];
        if (i == failed)
            continue;
        w->status = error_set(&w->error, STATUS_FAILED_DEPENDENCY, SUB_NONE,
                              "Not done because operation %zu of the batch failed.", failed + 1);
    }
}

static void apply_atomic(Group *group, PartitionWrite *write)
{
    Mark mark = group_mark(group);
    uint64_t lsn = group->counters.lsn + 1;
    bool is_write = false;
    for (size_t i = 0; i < write->count; i++) {
        ItemWrite *w = &write->items[i];
        w->status = apply_operation(group, write, w, lsn, &w->error);
        if (w->status != STATUS_OK && w->status != STATUS_NOT_MODIFIED) {
            group_undo(group, &mark);
            fail_others(write, i, 0);
            return;
        }
        is_write = is_write || w->op != ITEM_READ;
    }
    group_keep(group);
    if (is_write)
        group->counters.lsn = lsn;
}

void group_apply_alone(Group *group, PartitionWrite *write, ItemWrite *w)
{
    uint64_t lsn = group->counters.lsn + 1;
    if (w->op == ITEM_READ) {
        w->status = apply_operation(group, write, w, lsn, &w->error);
        return; /* it changes nothing */
    }
    Mark mark = group_mark(group);
    w->status = apply_operation(group, write, w, lsn, &w->error);
    if (w->status == STATUS_OK) {
        group_keep(group);
        group->counters.lsn = lsn;
    } else {
        group_undo(group, &mark);
    }
}

static void apply_each(Group *group, PartitionWrite *write)
{
    for (size_t i = 0; i < write->count; i++) {
        ItemWrite *w = &write->items[i];
        group_apply_alone(group, write, w);
        if (write->mode == WRITE_ORDERED && w->status != STATUS_OK &&
            w->status != STATUS_NOT_MODIFIED) {
            fail_others(write, i, i + 1);
            return;
        }
    }
}

void group_apply_write(Group *group, PartitionWrite *write)
{
    uint64_t before = group->counters.lsn;
    /* One operation alone is the same both ways. */
    if (write->mode == WRITE_ATOMIC)
        apply_atomic(group, write);
    else
        apply_each(group, write);
    if (group->counters.lsn > before)
        write->lsn = group->counters.lsn;
}
