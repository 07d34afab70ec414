/* change_feed.c - see change_feed.h.
 *
 * The log is read as of a snapshot, up to the LSN that the partition had published before: a group
 * is in the store a moment before that, and what a feed has shown must not be after the end of the
 * next one. The items of FEED_LATEST are read as they are now: an item that was changed since has
 * another entry, after the end of this feed, so it is left out here. The items may therefore come
 * from the cache, which knows all changes up to that LSN (I10).
 */
#include "partition/change_feed.h"

#include "base/mem.h"
#include "partition/change_log_int.h"
#include "partition/partition_int.h"

struct ChangeFeed {
    Partition *partition; /* references of its own */
    PartitionSchema *schema;
    StoreSnapshot *snapshot;
    StoreCursor *cursor;
    FeedOptions options;        /* with copies of the bounds */
    Arena arena;                /* the bounds */
    PartitionCounters counters; /* as of the snapshot */
    uint64_t end_lsn;
    uint64_t entry_lsn; /* of the entry that was looked at last */
    uint64_t seen_lsn;
    bool is_ended;
    StoreValue value; /* of the item that was returned last */
};

static uint8_t kind_of(FeedMode mode)
{
    return mode == FEED_LATEST ? KEY_LATEST : KEY_HISTORY;
}

static void seek(const ChangeFeed *feed, StoreCursor *cursor, uint64_t after_lsn)
{
    Key key;
    key_change(&key, kind_of(feed->options.mode), (ChangePlace){.lsn = after_lsn + 1});
    store_cursor_seek(cursor, key_slice(&key));
}

/* When the first change after this LSN was made; INT64_MAX if there is none. */
static Status time_after(const ChangeFeed *feed, uint64_t lsn, int64_t *out, Error *err)
{
    Slice key;
    Slice value;
    bool found = false;
    *out = INT64_MAX;
    seek(feed, feed->cursor, lsn);
    TRY(store_cursor_next(feed->cursor, &key, &value, &found, err));
    if (!found)
        return STATUS_OK;
    LatestEntry entry;
    TRY(latest_decode(value, &entry, err));
    *out = entry.ts_s;
    return STATUS_OK;
}

/* Times rise with LSNs, except among those that a merge has mixed. So what was changed before the
 * time that is asked for need not be walked over: the highest LSN is found after which there is
 * nothing older. */
static Status skip_older(ChangeFeed *feed, uint64_t *after_lsn, Error *err)
{
    uint64_t low = feed->counters.unordered_lsn;
    uint64_t high = feed->end_lsn;
    if (feed->options.since_s == INT64_MIN || *after_lsn < low)
        return STATUS_OK;
    low = *after_lsn;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int64_t time_s = 0;
        TRY(time_after(feed, middle, &time_s, err));
        if (time_s > feed->options.since_s)
            high = middle;
        else
            low = middle + 1;
    }
    *after_lsn = low;
    return STATUS_OK;
}

/* The highest LSN up to which changes of the feed's range are not kept. */
static Status find_floor(ChangeFeed *feed, uint64_t *out, Error *err)
{
    *out = feed->counters.history_from_lsn;
    if (LIKELY(feed->counters.unordered_lsn == 0))
        return STATUS_OK;
    HistoryFloors *floors = ARENA_NEW(&feed->arena, HistoryFloors);
    TRY(partition_add_floors(feed->partition, feed->snapshot, feed->options.epk_from,
                             feed->options.epk_to, floors, err));
    for (size_t i = 0; i < floors->count; i++)
        *out = floors->list[i].lsn > *out ? floors->list[i].lsn : *out;
    return STATUS_OK;
}

static Status check_history(ChangeFeed *feed, Error *err)
{
    uint64_t floor = 0;
    if (feed->options.mode == FEED_LATEST)
        return STATUS_OK;
    TRY(find_floor(feed, &floor, err));
    if (feed->options.after_lsn >= floor)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The changes after LSN %llu are not kept any more. You must read the change "
                     "feed from within the retention period.",
                     (unsigned long long)feed->options.after_lsn);
}

static Status begin(ChangeFeed *feed, Error *err)
{
    Store *store = feed->partition->host->store;
    bool found = false;
    TRY(partition_read_counters(feed->partition, feed->snapshot, feed->options.read,
                                &feed->counters, &found, err));
    TRY(check_history(feed, err));
    uint64_t after_lsn = feed->options.after_lsn;
    feed->is_ended = after_lsn >= feed->end_lsn;
    feed->seen_lsn = feed->end_lsn;
    if (feed->is_ended)
        return STATUS_OK;
    Key from = {.bytes = {kind_of(feed->options.mode)}, .len = 1};
    Key to = {.bytes = {(uint8_t)(kind_of(feed->options.mode) + 1)}, .len = 1};
    feed->cursor = store_cursor_open(store, feed->snapshot, feed->partition->space,
                                     key_slice(&from), key_slice(&to));
    if (feed->options.mode == FEED_LATEST)
        TRY(skip_older(feed, &after_lsn, err));
    seek(feed, feed->cursor, after_lsn);
    feed->entry_lsn = after_lsn;
    return STATUS_OK;
}

Status change_feed_open(Partition *partition, PartitionSchema *schema, const FeedOptions *options,
                        ChangeFeed **out, Error *err)
{
    uint64_t restores = 0;
    TRY(partition_check_log(partition, err));
    TRY(partition_begin_read(partition, &restores, err));
    AUTO(change_feed_close) ChangeFeed *feed = MEM_NEW(ChangeFeed);
    feed->partition = partition_ref(partition);
    feed->schema = schema_ref(schema);
    feed->options = *options;
    arena_init(&feed->arena, 256);
    feed->options.epk_from = arena_copy(&feed->arena, options->epk_from);
    feed->options.epk_to = arena_copy(&feed->arena, options->epk_to);
    feed->end_lsn = partition_lsn(partition);
    feed->snapshot = store_snapshot_open(partition->host->store, options->read);
    TRY(partition_end_read(partition, restores, err));
    TRY(begin(feed, err));
    *out = TAKE(feed);
    return STATUS_OK;
}

void change_feed_close(ChangeFeed *feed)
{
    if (feed == NULL)
        return;
    store_value_release(&feed->value);
    store_cursor_close(feed->cursor);
    store_snapshot_close(feed->snapshot);
    schema_unref(feed->schema);
    partition_unref(feed->partition);
    arena_done(&feed->arena);
    mem_free(feed);
}

uint64_t change_feed_lsn(const ChangeFeed *feed)
{
    return feed->end_lsn;
}

uint64_t change_feed_seen_lsn(const ChangeFeed *feed)
{
    return feed->seen_lsn;
}

static bool is_asked_for(const ChangeFeed *feed, Slice epk, uint32_t ts_s)
{
    const FeedOptions *options = &feed->options;
    return slice_compare(epk, options->epk_from) >= 0 &&
           (options->epk_to.len == 0 || slice_compare(epk, options->epk_to) < 0) &&
           (int64_t)ts_s > options->since_s;
}

/* The item of a latest entry, if it is still the newest version, and not gone. */
static Status load_latest(ChangeFeed *feed, ChangePlace place, Slice value, ItemChange *out,
                          bool *found, Error *err)
{
    LatestEntry entry;
    TRY(latest_decode(value, &entry, err));
    *found = false;
    if (!is_asked_for(feed, entry.epk, entry.ts_s))
        return STATUS_OK;
    Partition *partition = feed->partition;
    Key key;
    key_item(&key, entry.epk, entry.id);
    uint64_t purged_lsn = purge_list_find(&partition->purges, entry.epk); /* first (I6) */
    store_value_release(&feed->value);
    StoreFound where = STORE_ABSENT;
    TRY(partition_get_bytes(partition, key_slice(&key), false, feed->options.read, &feed->value,
                            &where, err));
    TRY(store_check_known(where, err));
    if (where != STORE_FOUND)
        return STATUS_OK;
    TRY(item_decode(feed->value.data, &out->item, err));
    const Item *item = &out->item;
    *found = item->lsn == place.lsn && item->order == place.order && item->number == place.number &&
             !item_is_gone(feed->schema, item, partition_host_now_s(partition->host), purged_lsn);
    out->kind = CHANGE_REPLACE;
    out->ts_s = item->ts_s;
    out->id = entry.id;
    out->key = JSON_NONE;
    out->previous_lsn = 0;
    out->has_item = true;
    return STATUS_OK;
}

static Status load_version(const ChangeFeed *feed, Slice value, ItemChange *out, bool *found,
                           Error *err)
{
    HistoryEntry entry;
    TRY(history_decode(value, &entry, err));
    *found = entry.kind != CHANGE_PURGE && is_asked_for(feed, entry.epk, entry.ts_s);
    if (!*found)
        return STATUS_OK;
    out->kind = entry.kind;
    out->ts_s = entry.ts_s;
    out->previous_lsn = entry.previous_lsn;
    out->id = entry.id;
    out->key = entry.key.len > 0 ? json_trust(entry.key) : JSON_NONE;
    out->has_item = entry.image.len > 0;
    return out->has_item ? item_decode(entry.image, &out->item, err) : STATUS_OK;
}

/* The budget ends between two transactions only. */
static bool may_go_on(ChangeFeed *feed, uint64_t lsn)
{
    bool is_within = lsn == feed->entry_lsn;
    if (scan_budget_spend(feed->options.budget, feed->partition->host->clock) || is_within)
        return true;
    feed->seen_lsn = feed->entry_lsn;
    return false;
}

Status change_feed_next(ChangeFeed *feed, ItemChange *out, bool *found, Error *err)
{
    *found = false;
    while (!feed->is_ended) {
        Slice key;
        Slice value;
        bool has_entry = false;
        ChangePlace place;
        TRY(store_cursor_next(feed->cursor, &key, &value, &has_entry, err));
        feed->is_ended = !has_entry;
        if (feed->is_ended)
            return STATUS_OK;
        if (!key_change_parse(key, &place))
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "an entry of the change log is damaged");
        feed->is_ended = place.lsn > feed->end_lsn || !may_go_on(feed, place.lsn);
        if (feed->is_ended)
            return STATUS_OK;
        feed->entry_lsn = place.lsn;
        if (feed->options.mode == FEED_LATEST)
            TRY(load_latest(feed, place, value, out, found, err));
        else
            TRY(load_version(feed, value, out, found, err));
        out->lsn = place.lsn;
        if (*found)
            return STATUS_OK;
    }
    return STATUS_OK;
}
