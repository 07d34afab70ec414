/* view.c - see view.h.
 *
 * The parts of a view are read in an order that keeps them consistent. The index state must be the
 * same before and after the snapshot is opened (I13): a rebuild is published before it begins to
 * take terms away and after it has added the last one, so the state is true of the snapshot. The
 * purges are read before the snapshot (I6): one that is over by then has nothing left in it.
 *
 * The LSN is the snapshot's own, from the counters in it, which are read only if they may differ
 * from those that the partition has published. An item of the cache, or the newest one
 * in the store, is the snapshot's version if its LSN is not higher (I14). For the cache this holds
 * once the partition has published that LSN, because it forgets changed items before that.
 */
#include "partition/view.h"

#include "base/mem.h"
#include "partition/partition_int.h"

/* Entries that partition_view_list_gone looks at; beyond it, fetching is cheaper. */
enum { GONE_MAX = 2000 };

struct PartitionView {
    Partition *partition; /* references of its own */
    PartitionSchema *schema;
    IndexState *index;
    StoreRead read;
    StoreSnapshot *own_snapshot; /* NULL if snapshot and purges are another view's */
    PartitionCounters counters;  /* as of the snapshot */
    ReadMoment moment;
    Arena arena;      /* the purges */
    bool puts;        /* what is fetched goes to the cache */
    bool is_settled;  /* the cache has forgotten what the snapshot's writes changed */
    StoreValue value; /* the item fetched last */
    StoreValue place; /* where that item is */
    uint32_t ticket;  /* of the cache, for that place */
};

static void open_snapshot(PartitionView *view)
{
    Partition *partition = view->partition;
    for (;;) {
        ReadMoment *moment = &view->moment;
        view->index = current_schema_index_ref(&partition->current);
        moment->purges = purge_list_copy(&partition->purges, &view->arena, &moment->purge_count);
        view->own_snapshot = store_snapshot_open(partition->host->store, view->read);
        moment->snapshot = view->own_snapshot;
        AUTO(index_state_unref)
        IndexState *after = current_schema_index_ref(&partition->current);
        if (LIKELY(after == view->index))
            return;
        index_state_unref(TAKE(view->index));
        store_snapshot_close(TAKE(view->own_snapshot));
        arena_reset(&view->arena);
    }
}

/* While the partition rests, its published counters are the snapshot's, too. */
static Status open_with_counters(PartitionView *view, Error *err)
{
    Partition *partition = view->partition;
    uint64_t before = 0;
    uint64_t after = 0;
    bool has_rested = inbox_is_resting(&partition->inbox, &before);
    PartitionCounters published = counters_published(&partition->published);
    open_snapshot(view);
    /* The snapshot synchronizes with the writes that are in it: their turn is seen here. */
    has_rested = has_rested && inbox_is_resting(&partition->inbox, &after) && before == after;
    if (LIKELY(has_rested)) {
        view->counters = published;
        return STATUS_OK;
    }
    bool found = false;
    return partition_read_counters(partition, view->moment.snapshot, view->read, &view->counters,
                                   &found, err);
}

Status partition_view_open(Partition *partition, PartitionSchema *schema, StoreRead read,
                           PartitionView **out, Error *err)
{
    uint64_t restores = 0;
    TRY(partition_check_damage(partition, err));
    TRY(partition_begin_read(partition, &restores, err));
    AUTO(partition_view_close) PartitionView *view = MEM_NEW(PartitionView);
    view->partition = partition_ref(partition);
    view->schema = schema_ref(schema);
    view->read = read;
    view->puts = true;
    arena_init(&view->arena, 256);
    TRY(open_with_counters(view, err));
    TRY(partition_end_read(partition, restores, err));
    view->moment.now_s = partition_host_now_s(partition->host);
    *out = TAKE(view);
    return STATUS_OK;
}

PartitionView *partition_view_share(const PartitionView *view)
{
    ASSERT(view->moment.snapshot != NULL);
    PartitionView *other = MEM_NEW(PartitionView);
    other->partition = partition_ref(view->partition);
    other->schema = schema_ref(view->schema);
    other->index = index_state_ref(view->index);
    other->read = view->read;
    other->moment = view->moment;
    other->counters = view->counters;
    other->puts = view->puts;
    arena_init(&other->arena, 256);
    return other;
}

void partition_view_close(PartitionView *view)
{
    if (view == NULL)
        return;
    store_value_release(&view->value);
    store_value_release(&view->place);
    store_snapshot_close(view->own_snapshot);
    index_state_unref(view->index);
    schema_unref(view->schema);
    partition_unref(view->partition);
    arena_done(&view->arena);
    mem_free(view);
}

uint64_t partition_view_lsn(const PartitionView *view)
{
    return view->counters.lsn;
}

uint64_t partition_view_items(const PartitionView *view)
{
    return view->counters.items;
}

void partition_view_overlay(PartitionView *view, StoreTxn *own, uint64_t now_s)
{
    view->moment.own = own;
    view->moment.now_s = now_s;
}

bool partition_view_has_own_writes(const PartitionView *view)
{
    return view->moment.own != NULL;
}

void partition_view_fill_cache(PartitionView *view, bool puts)
{
    view->puts = puts;
}

IndexReader partition_view_index(PartitionView *view, IndexBudget *budget)
{
    return (IndexReader){
        .store = view->partition->host->store,
        .snapshot = view->moment.snapshot,
        .space = view->partition->space,
        .key = view->partition->index_key,
        .budget = budget,
    };
}

/* ---- what may be used ---- */

static bool steps_equal(const IndexStep *a, size_t a_count, const IndexStep *b, size_t b_count)
{
    bool equal = a_count == b_count;
    for (size_t i = 0; i < a_count && equal; i++)
        equal = a[i].is_element == b[i].is_element && slice_equal(a[i].name, b[i].name);
    return equal;
}

static bool composites_equal(const CompositeIndex *a, const CompositeIndex *b)
{
    bool equal = a->part_count == b->part_count;
    for (size_t i = 0; i < a->part_count && equal; i++) {
        const CompositePart *left = &a->parts[i];
        const CompositePart *right = &b->parts[i];
        equal = left->is_descending == right->is_descending &&
                steps_equal(left->steps, left->step_count, right->steps, right->step_count);
    }
    return equal;
}

static bool has_composite(const IndexPolicy *policy, const CompositeIndex *index)
{
    size_t count = 0;
    const CompositeIndex *all = index_policy_composites(policy, &count);
    for (size_t i = 0; i < count; i++) {
        if (composites_equal(&all[i], index))
            return true;
    }
    return false;
}

static bool frames_equal(const SpatialFrame *a, const SpatialFrame *b)
{
    return a->is_plane == b->is_plane && a->box.west == b->box.west && a->box.east == b->box.east &&
           a->box.south == b->box.south && a->box.north == b->box.north;
}

/* The policies that an index must be in to be used: the current definition's, and both that items
 * have their terms from. The last two are often the same. */
typedef struct Policies {
    const IndexPolicy *list[3];
    size_t count; /* 0 if one of them indexes nothing */
} Policies;

static Policies policies_of(const PartitionView *view)
{
    const IndexState *state = view->index;
    /* A transaction's own writes have no terms before its commit. */
    if (view->moment.own != NULL || view->schema->index == NULL || state->old_policy == NULL ||
        state->new_policy == NULL)
        return (Policies){.count = 0};
    return (Policies){
        .list = {view->schema->index, state->new_policy, state->old_policy},
        .count = state->old_policy == state->new_policy ? 2 : 3,
    };
}

/* A policy may name any path. Of the system properties only "_ts" is indexed. */
static bool is_unknown(const IndexStep *steps, size_t count)
{
    return count > 0 && !steps[0].is_element && item_is_system(steps[0].name) &&
           !slice_equal(steps[0].name, SLICE("_ts"));
}

static bool has_unknown_part(const CompositeIndex *index)
{
    bool found = false;
    for (size_t i = 0; i < index->part_count && !found; i++)
        found = is_unknown(index->parts[i].steps, index->parts[i].step_count);
    return found;
}

bool partition_view_has_path(const PartitionView *view, const IndexStep *steps, size_t count)
{
    if (is_unknown(steps, count))
        return false;
    Policies policies = policies_of(view);
    bool has = policies.count > 0;
    for (size_t i = 0; i < policies.count && has; i++)
        has = index_policy_has(policies.list[i], steps, count);
    return has;
}

bool partition_view_has_composite(const PartitionView *view, const CompositeIndex *index)
{
    if (has_unknown_part(index))
        return false;
    Policies policies = policies_of(view);
    bool has = policies.count > 0;
    for (size_t i = 0; i < policies.count && has; i++)
        has = has_composite(policies.list[i], index);
    return has;
}

const SpatialIndex *partition_view_spatial(const PartitionView *view, const IndexStep *steps,
                                           size_t count)
{
    Policies policies = policies_of(view);
    const SpatialIndex *found = NULL;
    for (size_t i = 0; i < policies.count; i++) {
        const SpatialIndex *index = index_policy_spatial(policies.list[i], steps, count);
        if (index == NULL)
            return NULL;
        if (found == NULL)
            found = index;
        if (!frames_equal(&found->frame, &index->frame) ||
            (index->types & found->types) != found->types)
            return NULL;
    }
    return found;
}

/* ---- items by number ---- */

typedef struct Range {
    Slice from;
    Slice to; /* empty if there is no end */
} Range;

static bool in_range(Range range, Slice epk)
{
    return slice_compare(epk, range.from) >= 0 &&
           (range.to.len == 0 || slice_compare(epk, range.to) < 0);
}

/* Where the item with this number is, from the cache: a hint, true of almost every snapshot,
 * because an item moves only when its id is changed (I14). */
static bool hint_place(PartitionView *view, uint64_t number)
{
    ItemCache *cache = view->partition->host->cache;
    uint64_t name = view->partition->cache_name;
    if (cache == NULL || view->moment.own != NULL)
        return false;
    Key key;
    key_number(&key, number);
    uint64_t hash = item_cache_hash(cache, name, key_slice(&key));
    store_value_release(&view->place);
    return item_cache_get(cache, hash, name, key_slice(&key), &view->place, &view->ticket);
}

static Status read_place(PartitionView *view, uint64_t number, bool *found, Error *err)
{
    const PartitionHost *host = view->partition->host;
    uint64_t name = view->partition->cache_name;
    StoreFound where = STORE_ABSENT;
    Key key;
    key_number(&key, number);
    store_value_release(&view->place);
    TRY(moment_get(&view->moment, view->partition, key_slice(&key), view->read, &view->place,
                   &where, err));
    *found = where == STORE_FOUND;
    if (*found && host->cache != NULL && view->puts && view->moment.own == NULL)
        item_cache_put(host->cache, item_cache_hash(host->cache, name, key_slice(&key)), name,
                       key_slice(&key), view->place.data, view->ticket);
    return store_check_known(where, err);
}

/* The newest item in a place, which the cache may have. '*is_known' is false if it is not the one
 * that the snapshot has, or if only the snapshot can tell. */
static Status find_newest(PartitionView *view, Slice key, uint64_t number, Item *item,
                          bool *is_known, Error *err)
{
    Partition *partition = view->partition;
    *is_known = false;
    view->is_settled = view->is_settled || partition_lsn(partition) >= view->counters.lsn;
    if (partition->host->cache == NULL || !view->is_settled || view->moment.own != NULL)
        return STATUS_OK;
    StoreFound found = STORE_ABSENT;
    TRY(partition_get_bytes(partition, key, view->puts, view->read, &view->value, &found, err));
    if (found != STORE_FOUND)
        return STATUS_OK;
    TRY(item_decode(view->value.data, item, err));
    *is_known = item->number == number && item->lsn <= view->counters.lsn;
    return STATUS_OK;
}

static Status read_item(PartitionView *view, Slice key, uint64_t number, Item *item, bool *found,
                        Error *err)
{
    StoreFound where = STORE_ABSENT;
    store_value_release(&view->value);
    TRY(moment_get(&view->moment, view->partition, key, view->read, &view->value, &where, err));
    if (where != STORE_FOUND)
        return store_check_known(where, err);
    TRY(item_decode(view->value.data, item, err));
    *found = item->number == number; /* another item may have taken the place */
    return STATUS_OK;
}

static Status find_in_place(PartitionView *view, uint64_t number, Range range, Slice *epk,
                            Item *item, bool *found, Error *err)
{
    Slice id;
    TRY(location_decode(view->place.data, epk, &id, err));
    *found = false;
    if (!in_range(range, *epk))
        return STATUS_OK;
    Key key;
    key_item(&key, *epk, id);
    TRY(find_newest(view, key_slice(&key), number, item, found, err));
    return *found ? STATUS_OK : read_item(view, key_slice(&key), number, item, found, err);
}

static Status find_item(PartitionView *view, uint64_t number, Range range, Slice *epk, Item *item,
                        bool *found, Error *err)
{
    store_value_release(&view->value);
    if (hint_place(view, number)) {
        TRY(find_in_place(view, number, range, epk, item, found, err));
        if (*found || !in_range(range, *epk)) /* an item that moves keeps its EPK */
            return STATUS_OK;
    }
    TRY(read_place(view, number, found, err));
    return *found ? find_in_place(view, number, range, epk, item, found, err) : STATUS_OK;
}

static bool is_gone(const PartitionView *view, Slice epk, const Item *item)
{
    return moment_hides(&view->moment, view->schema, epk, item);
}

Status partition_view_fetch(PartitionView *view, uint64_t number, Slice epk_from, Slice epk_to,
                            Item *item, bool *found, Error *err)
{
    Slice epk = SLICE_EMPTY;
    Range range = {.from = epk_from, .to = epk_to};
    TRY(find_item(view, number, range, &epk, item, found, err));
    *found = *found && !is_gone(view, epk, item);
    return STATUS_OK;
}

static Status fetch_document(void *ctx, uint64_t number, Json *document, uint32_t *ts_s,
                             bool *found, Error *err)
{
    Item item;
    TRY(partition_view_fetch(ctx, number, SLICE_EMPTY, SLICE_EMPTY, &item, found, err));
    if (*found) {
        *document = item.document;
        *ts_s = item.ts_s;
    }
    return STATUS_OK;
}

Status partition_view_names(PartitionView *view, IndexBudget *budget, IndexNames *names,
                            bool *is_complete, Error *err)
{
    IndexReader reader = partition_view_index(view, budget);
    IndexDocuments documents = {
        .fetch = fetch_document,
        .ctx = view,
        .policies = {view->index->new_policy, view->index->old_policy},
    };
    return index_names_collect(names, &reader, &documents, is_complete, err);
}

Status partition_view_scan(PartitionView *view, const ScanOptions *options, PartitionScan **out,
                           Error *err)
{
    return partition_scan_open_at(view->partition, view->schema, &view->moment, options, out, err);
}

/* ---- items that are gone and still in the index ---- */

typedef struct Gone {
    SetBuilder *builder;
    uint32_t left; /* entries that may still be looked at */
} Gone;

/* Calls for each key of ['from', 'to') as long as there is budget. */
typedef Status (*GoneVisit)(PartitionView *view, Gone *gone, Slice key, Slice value, Error *err);

static Status walk(PartitionView *view, Gone *gone, const Key *from, const Key *to, GoneVisit visit,
                   bool *complete, Error *err)
{
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        moment_cursor(&view->moment, view->partition, key_slice(from), key_slice(to));
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        if (gone->left == 0) {
            *complete = false;
            return STATUS_OK;
        }
        gone->left--;
        TRY(visit(view, gone, key, value, err));
    }
}

/* A note may be useless (I7): the item decides. */
static Status visit_note(PartitionView *view, Gone *gone, Slice key, Slice value, Error *err)
{
    (void)value;
    if (key.len != KEY_EXPIRY_BYTES)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "an expiry note is damaged");
    uint64_t number = be64_get(key.ptr + 5);
    Slice epk = SLICE_EMPTY;
    Item item;
    bool found = false;
    TRY(find_item(view, number, (Range){0}, &epk, &item, &found, err));
    if (found && !item.is_unindexed && is_gone(view, epk, &item))
        set_builder_add(gone->builder, number);
    return STATUS_OK;
}

static Status visit_purged(PartitionView *view, Gone *gone, Slice key, Slice value, Error *err)
{
    Item item;
    TRY(item_decode(value, &item, err));
    Slice id = json_string(json_get(item.document, SLICE("id")));
    Slice epk = slice_make(key.ptr + 1, key.len - 1 - id.len);
    if (!item.is_unindexed && is_gone(view, epk, &item))
        set_builder_add(gone->builder, item.number);
    return STATUS_OK;
}

static Status find_expired(PartitionView *view, Gone *gone, bool *complete, Error *err)
{
    int64_t ttl_s = view->schema->default_ttl_s;
    if (ttl_s == 0)
        return STATUS_OK;
    /* Items may have no notes yet under this default. */
    if (view->counters.ttl_swept_s != ttl_s) {
        *complete = view->counters.items == 0;
        return STATUS_OK;
    }
    Key from;
    Key to;
    key_expiry(&from, 0, 0);
    key_expiry(&to, view->moment.now_s + 1, 0);
    return walk(view, gone, &from, &to, visit_note, complete, err);
}

Status partition_view_list_gone(PartitionView *view, Arena *arena, NumberSet *out, bool *complete,
                                Error *err)
{
    Gone gone = {.builder = set_builder_new(arena), .left = GONE_MAX};
    *complete = true;
    TRY(find_expired(view, &gone, complete, err));
    for (size_t i = 0; i < view->moment.purge_count && *complete; i++) {
        Slice prefix = epk_slice(&view->moment.purges[i].epk);
        Key from;
        Key to;
        key_item_range(&from, &to, prefix);
        TRY(walk(view, &gone, &from, &to, visit_purged, complete, err));
    }
    set_builder_finish(gone.builder, out);
    return STATUS_OK;
}
