/* rewind.c - see rewind.h.
 *
 * What undoes a change:
 *
 *     create     a delete
 *     replace    a replace by the version before, under its id
 *     delete     a create of what was deleted
 *
 * The version before is in the change itself (HistoryEntry), or in the entry that made it, which
 * has the LSN that the change names. If it is in neither, the time before the change cannot be gone
 * back to.
 */
#include "partition/rewind.h"

#include "base/latch.h"
#include "partition/change_log_int.h"
#include "partition/group_int.h"

enum {
    BATCH_MAX = 64,
    FIRST_LSN = 1, /* of an empty partition */
};

#define BATCH_BYTES_MAX ((size_t)8 << 20)

/* Above this, JavaScript clients could not tell two LSNs from each other. */
#define LSN_MAX ((UINT64_C(1) << 53) - 1)

typedef struct Rewind {
    Partition *partition;
    RewindOptions options;
    StoreSnapshot *snapshot;
    StoreCursor *cursor; /* over the history, from its end */
    StoreCursor *lookup; /* likewise, for versions before */
    PartitionCounters counters;
    Arena arena; /* of one change, or of one batch */
    ItemWrite batch[BATCH_MAX];
    size_t batch_count;
    Latch answered;
} Rewind;

static void rewind_done(Rewind *rewind)
{
    store_cursor_close(rewind->cursor);
    store_cursor_close(rewind->lookup);
    store_snapshot_close(rewind->snapshot);
    latch_done(&rewind->answered);
    arena_done(&rewind->arena);
}
DEFINE_AUTO_VALUE(Rewind, rewind_done)

static StoreCursor *open_history(const Rewind *rewind)
{
    static const uint8_t from[] = {KEY_HISTORY};
    static const uint8_t to[] = {KEY_HISTORY + 1};
    return store_cursor_open(rewind->partition->host->store, rewind->snapshot,
                             rewind->partition->space, slice_make(from, sizeof(from)),
                             slice_make(to, sizeof(to)));
}

static Status rewind_init(Rewind *rewind, Partition *partition, const RewindOptions *options,
                          Error *err)
{
    *rewind = (Rewind){.partition = partition, .options = *options};
    arena_init(&rewind->arena, 64 << 10);
    latch_init(&rewind->answered);
    TRY(partition_check_damage(partition, err));
    if (!partition->has_log)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "the data is of an earlier version; let a server open it once");
    if (purge_list_count(&partition->purges) > 0)
        return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                         "a deletion of all items of a partition key was under way at the moment "
                         "of the backup");
    rewind->snapshot = store_snapshot_open(partition->host->store, STORE_READ_ANY);
    rewind->cursor = open_history(rewind);
    rewind->lookup = open_history(rewind);
    bool found = false;
    return partition_read_counters(partition, rewind->snapshot, STORE_READ_ANY, &rewind->counters,
                                   &found, err);
}

/* ---- walking back ---- */

typedef struct Undo {
    ChangePlace place;
    HistoryEntry entry; /* in the arena */
} Undo;

/* The newest change before the one that was returned last, if it was made after the time. Times
 * rise with LSNs, except among those that a merge has mixed. */
static Status next_undo(Rewind *rewind, Undo *out, bool *found, Error *err)
{
    for (;;) {
        Slice key;
        Slice value;
        TRY(store_cursor_prev(rewind->cursor, &key, &value, found, err));
        if (!*found)
            return STATUS_OK;
        if (!key_change_parse(key, &out->place))
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "an entry of the change log is damaged");
        TRY(history_decode(value, &out->entry, err));
        bool is_later = (int64_t)out->entry.ts_s > rewind->options.at_s;
        if (!is_later && out->place.lsn > rewind->counters.unordered_lsn &&
            rewind->counters.unordered_lsn == 0) {
            *found = false;
            return STATUS_OK;
        }
        if (!is_later || out->entry.kind == CHANGE_PURGE || out->entry.kind == CHANGE_EXPIRE)
            continue;
        Slice kept = arena_copy(&rewind->arena, value); /* the cursor's own goes with the next */
        return history_decode(kept, &out->entry, err);
    }
}

/* Looks for the entry that made the version before: the last one of its item in that transaction,
 * and before this change. */
static Status find_version(Rewind *rewind, const Undo *undo, Slice *out, Error *err)
{
    Key from;
    key_change(&from, KEY_HISTORY, (ChangePlace){.lsn = undo->entry.previous_lsn});
    store_cursor_seek(rewind->lookup, key_slice(&from));
    *out = SLICE_EMPTY;
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        ChangePlace place;
        HistoryEntry entry;
        TRY(store_cursor_next(rewind->lookup, &key, &value, &found, err));
        if (!found || !key_change_parse(key, &place) || place.lsn != undo->entry.previous_lsn ||
            (place.lsn == undo->place.lsn && place.order >= undo->place.order))
            return STATUS_OK;
        if (place.number != undo->place.number)
            continue;
        TRY(history_decode(value, &entry, err));
        if (entry.kind == CHANGE_CREATE || entry.kind == CHANGE_REPLACE)
            *out = arena_copy(&rewind->arena, entry.image);
    }
}

/* The version before the change; empty if it is not kept. */
static Status version_before(Rewind *rewind, const Undo *undo, Slice *out, Error *err)
{
    *out = undo->entry.kind == CHANGE_DELETE ? undo->entry.image : undo->entry.previous;
    return out->len > 0 ? STATUS_OK : find_version(rewind, undo, out, err);
}

/* ---- whether it is possible ---- */

/* The first second from which on the history is known to be complete. */
static Status find_beginning(Rewind *rewind, int64_t *out, Error *err)
{
    HistoryFloors *floors = ARENA_NEW(&rewind->arena, HistoryFloors);
    TRY(partition_add_floors(rewind->partition, rewind->snapshot, SLICE_EMPTY, SLICE_EMPTY, floors,
                             err));
    uint64_t floor = 0;
    for (size_t i = 0; i < floors->count; i++)
        floor = floors->list[i].lsn > floor ? floors->list[i].lsn : floor;
    *out = INT64_MIN;
    if (floor <= FIRST_LSN)
        return STATUS_OK;
    *out = rewind->options.complete_from_s;
    if (rewind->counters.unordered_lsn > 0)
        return STATUS_OK;
    /* What is not kept was made before the first that is. */
    Slice key;
    Slice value;
    bool found = false;
    HistoryEntry entry;
    store_cursor_seek(rewind->lookup, slice_make(&(uint8_t){KEY_HISTORY}, 1));
    TRY(store_cursor_next(rewind->lookup, &key, &value, &found, err));
    if (!found)
        return STATUS_OK;
    TRY(history_decode(value, &entry, err));
    *out = (int64_t)entry.ts_s < *out ? (int64_t)entry.ts_s : *out;
    return STATUS_OK;
}

Status partition_rewind_check(Partition *partition, const RewindOptions *options, RewindFacts *out,
                              Error *err)
{
    AUTO(rewind_done) Rewind rewind;
    TRY(rewind_init(&rewind, partition, options, err));
    RewindFacts facts = {0};
    TRY(find_beginning(&rewind, &facts.earliest_s, err));
    for (;;) {
        Undo undo;
        bool found = false;
        arena_reset(&rewind.arena);
        TRY(next_undo(&rewind, &undo, &found, err));
        if (!found)
            break;
        facts.changes++;
        Slice version = SLICE_EMPTY;
        if (undo.entry.kind != CHANGE_CREATE)
            TRY(version_before(&rewind, &undo, &version, err));
        bool is_lost = undo.entry.kind != CHANGE_CREATE && version.len == 0;
        if (is_lost && (int64_t)undo.entry.ts_s > facts.earliest_s)
            facts.earliest_s = undo.entry.ts_s;
    }
    *out = facts;
    return STATUS_OK;
}

/* ---- doing it ---- */

typedef struct RewindWrite {
    PartitionWrite write;
    Rewind *rewind;
} RewindWrite;

static void on_done(PartitionWrite *write)
{
    latch_post(&CONTAINER_OF(write, RewindWrite, write)->rewind->answered);
}

/* An item that is to be deleted may be gone, and one that is to be replaced too, if it has expired:
 * then it is made. Everything else must succeed. What follows a failure was not tried yet. */
static Status take_answer(ItemWrite *w, bool *is_done, Error *err)
{
    *is_done = w->status == STATUS_OK || (w->op == ITEM_DELETE && w->status == STATUS_NOT_FOUND);
    if (*is_done || w->status == STATUS_FAILED_DEPENDENCY)
        return STATUS_OK;
    if (w->op == ITEM_REPLACE && w->status == STATUS_NOT_FOUND) {
        w->op = ITEM_UPSERT;
        return STATUS_OK;
    }
    *err = w->error;
    return error_context(err, "cannot take the item '%.*s' back", SLICE_CUT(w->id, 100));
}

/* Applies the batch in its order. */
static Status apply_batch(Rewind *rewind, Error *err)
{
    size_t first = 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    while (first < rewind->batch_count) {
        RewindWrite apply = {
            .rewind = rewind,
            .write = {.mode = WRITE_ORDERED,
                      .items = rewind->batch + first,
                      .count = rewind->batch_count - first,
                      .arena = &arena,
                      .done = on_done},
        };
        TRY(partition_submit(rewind->partition, &apply.write, err));
        latch_wait(&rewind->answered);
        if (apply.write.status != STATUS_OK) {
            *err = apply.write.error;
            return err->status;
        }
        bool is_done = true;
        while (is_done && first < rewind->batch_count) {
            TRY(take_answer(&rewind->batch[first], &is_done, err));
            first += is_done;
        }
        arena_reset(&arena);
    }
    rewind->batch_count = 0;
    arena_reset(&rewind->arena);
    return STATUS_OK;
}

static Status add_undo(Rewind *rewind, const Undo *undo, Error *err)
{
    ItemWrite *w = &rewind->batch[rewind->batch_count++];
    *w = (ItemWrite){.op = ITEM_DELETE, .id = undo->entry.id};
    epk_set(&w->epk, undo->entry.epk);
    if (undo->entry.kind == CHANGE_CREATE)
        return STATUS_OK;
    Slice version;
    Item item;
    TRY(version_before(rewind, undo, &version, err));
    if (version.len == 0)
        return error_set(err, STATUS_GONE, SUB_NONE, "the version of '%.*s' before is not kept",
                         SLICE_CUT(undo->entry.id, 100));
    TRY(item_decode(version, &item, err));
    Json id = json_get(item.document, SLICE("id"));
    if (!json_is(id, JSON_STRING))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "an entry of the change log is damaged");
    w->op = undo->entry.kind == CHANGE_REPLACE ? ITEM_REPLACE : ITEM_UPSERT;
    w->document = item.document;
    w->document_id = json_string(id);
    w->ttl_s = item.ttl_s;
    w->directive = item.is_unindexed ? INDEX_EXCLUDE : INDEX_INCLUDE;
    if (w->op == ITEM_UPSERT)
        w->id = w->document_id;
    return STATUS_OK;
}

Status partition_rewind(Partition *partition, const RewindOptions *options, Error *err)
{
    AUTO(rewind_done) Rewind rewind;
    TRY(rewind_init(&rewind, partition, options, err));
    for (;;) {
        Undo undo;
        bool found = false;
        TRY(next_undo(&rewind, &undo, &found, err));
        if (!found)
            return apply_batch(&rewind, err);
        TRY(add_undo(&rewind, &undo, err));
        if (rewind.batch_count == BATCH_MAX || arena_used(&rewind.arena) > BATCH_BYTES_MAX)
            TRY(apply_batch(&rewind, err));
    }
}

/* ---- numbers ---- */

Status partition_skip_numbers(Partition *partition, uint64_t lsns, uint64_t items, Error *err)
{
    TRY(partition_check_damage(partition, err));
    PartitionCounters counters;
    bool found = false;
    if (!partition->has_log || !partition->has_sizes)
        return STATUS_OK; /* of an earlier version, whose counters say so */
    TRY(partition_read_counters(partition, NULL, STORE_READ_ANY, &counters, &found, err));
    uint64_t lsn_room = counters.lsn < LSN_MAX ? LSN_MAX - counters.lsn : 0;
    uint64_t item_room =
        counters.item_next < ITEM_COUNT_MAX ? ITEM_COUNT_MAX - counters.item_next : 0;
    /* A small part of what is left, so that it lasts for many restores. */
    counters.lsn += lsns < lsn_room / 16 ? lsns : lsn_room / 16;
    counters.item_next += items < item_room / 16 ? items : item_room / 16;
    StoreTxn *txn = store_txn_begin(partition->host->store);
    partition_put_counters(partition, txn, &counters);
    store_txn_makes_room(txn); /* takes next to none, and the folder is not complete without it */
    return store_txn_commit_wait(txn, err);
}
