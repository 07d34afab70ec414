/* item_move.c - see item_move.h.
 *
 * The copy is of one moment, a snapshot, so that no item is met twice, and the targets need not
 * look for what they are given: they load it past the store's log (item_import.c).
 *
 * What has changed since is in the change log of the source (change_log_int.h), from the snapshot's
 * LSN on: an item that was written has its latest entry there, one that was deleted an entry in the
 * history, because the partition is watched. An entry only says which item to look at: what is
 * found in the source now is made the same in the target. So entries may be followed again, and
 * their order does not matter.
 *
 * If the container keeps a history for feeds, that is copied, too, entry by entry. A source must
 * then have removed what it has purged before it is fenced: each delete is a change of its own. So
 * it must if it has baselines (baseline_int.h), whose records are copied likewise.
 * Items that have expired are copied like others, and expire in the target.
 */
#include "partition/item_move.h"

#include "base/mem.h"
#include "partition/group_int.h"

/* Of items and terms that all targets together have in memory: what they gather, and what the store
 * is given and works on meanwhile. The more, the fewer parts of a term the store has to merge. */
#define BULK_BYTES_MAX ((size_t)64 << 20)
#define BULK_PHASES    2
#define BULK_BYTES_MIN ((size_t)1 << 20) /* of one target */

enum { PIECE_ITEMS_MAX = 1000 };

/* How far the log of a source was followed. */
typedef struct Followed {
    ChangePlace latest;
    ChangePlace history;
} Followed;

typedef struct Source {
    Partition *partition;
    Slice epk_from;
    PartitionSchema *schema;
    PartitionCounters counters; /* as of the snapshot */
    Baselines baselines;        /* likewise */
    Followed followed;
    uint64_t followed_lsn; /* all changes up to it were followed */
    bool is_watched;
    bool is_fenced;
} Source;

typedef struct Target {
    Partition *partition;
    Slice epk_from;
    ImportItem *items; /* of the piece being gathered */
    size_t count;
    ImportEntry *entries; /* of the history, likewise */
    size_t entry_count;
    uint64_t lsn;  /* that it has at least */
    Import import; /* on its way, if it has begun */
    bool has_begun;
    bool is_settled; /* all that was copied to it is in the store */
} Target;

/* What is copied of a source, in this order. */
typedef enum CopyPhase { COPY_ITEMS, COPY_HISTORY, COPY_BEFORES, COPY_PHASES } CopyPhase;

struct Move {
    Arena arena; /* as long as the move */
    Source *sources;
    size_t source_count;
    Target *targets;
    size_t target_count;
    StoreSnapshot *snapshot; /* that is copied; NULL: not yet, or not any more */
    bool is_settling;        /* all is copied; targets write what they have kept */
    size_t copying;          /* the source ... */
    CopyPhase phase;         /* ... of which this is copied ... */
    Key copied;              /* ... and the key after which it continues; empty at the beginning */
    Arena piece;             /* what is gathered for the targets */
    size_t piece_items;
    size_t piece_bytes;
    uint64_t lsn;                /* that the targets are to have; known once the fence stands */
    const HistoryFloors *floors; /* likewise; NULL if there are none */
    Baselines baselines;         /* of all sources; the LSN of each is the highest of theirs */
    bool is_over;
    uint64_t fenced_us; /* when that began */
    MoveProgress progress;
};

/* ---- pieces ---- */

static Target *target_of(Move *move, Slice epk)
{
    size_t at = 0;
    while (at + 1 < move->target_count && slice_compare(move->targets[at + 1].epk_from, epk) <= 0)
        at++;
    return &move->targets[at];
}

static void piece_begin(Move *move)
{
    arena_reset(&move->piece);
    move->piece_items = 0;
    move->piece_bytes = 0;
    for (size_t i = 0; i < move->target_count; i++) {
        move->targets[i].items = NULL;
        move->targets[i].count = 0;
        move->targets[i].entries = NULL;
        move->targets[i].entry_count = 0;
    }
}

/* With the item's stored bytes, which are NULL if it is absent. */
static Status piece_add(Move *move, Slice epk, Slice id, Slice bytes, uint64_t gone_number,
                        Error *err)
{
    Target *target = target_of(move, epk);
    if (target->items == NULL)
        target->items = ARENA_NEW_ARRAY(&move->piece, ImportItem, PIECE_ITEMS_MAX);
    ASSERT(target->count < PIECE_ITEMS_MAX);
    ImportItem *item = &target->items[target->count++];
    item->epk = arena_copy(&move->piece, epk);
    item->id = arena_copy(&move->piece, id);
    item->is_absent = bytes.ptr == NULL;
    item->gone_number = gone_number;
    move->piece_items++;
    move->piece_bytes += epk.len + id.len + bytes.len;
    return item->is_absent ? STATUS_OK
                           : item_decode(arena_copy(&move->piece, bytes), &item->item, err);
}

static void piece_add_entry(Move *move, Slice epk, Slice key, Slice value)
{
    Target *target = target_of(move, epk);
    if (target->entries == NULL)
        target->entries = ARENA_NEW_ARRAY(&move->piece, ImportEntry, PIECE_ITEMS_MAX);
    ASSERT(target->entry_count < PIECE_ITEMS_MAX);
    target->entries[target->entry_count++] =
        (ImportEntry){arena_copy(&move->piece, key), arena_copy(&move->piece, value)};
    move->piece_items++;
    move->piece_bytes += key.len + value.len;
}

/* There is room for an item and the entries that belong to it: one of the history, and the records
 * of each baseline for what is there, and for what was deleted. */
static bool piece_is_full(const Move *move)
{
    return move->piece_items >= PIECE_ITEMS_MAX - 2 - 2 * BASELINES_MAX ||
           move->piece_bytes >= MOVE_PIECE_BYTES;
}

/* What the targets are told of their logs, once the fence stands. LSNs of two sources that become
 * one do not say in which order things happened, and each has its own beginning of the history. */
static void describe_log(Move *move, Import *import)
{
    if (move->lsn == 0)
        return;
    import->history_from_lsn = UINT64_MAX;
    for (size_t i = 0; i < move->source_count; i++) {
        const PartitionCounters *counters = &move->sources[i].counters;
        if (import->history_from_lsn > counters->history_from_lsn)
            import->history_from_lsn = counters->history_from_lsn;
        import->unordered_lsn = counters->unordered_lsn;
    }
    if (move->source_count > 1)
        import->unordered_lsn = move->lsn;
    import->floors = move->floors;
    import->baselines = &move->baselines;
}

static Status begin_import(Move *move, Target *target, Error *err)
{
    size_t share = BULK_BYTES_MAX / BULK_PHASES / move->target_count;
    target->import = (Import){
        .items = target->items,
        .count = target->count,
        .entries = target->entries,
        .entry_count = target->entry_count,
        .lsn = move->lsn,
    };
    describe_log(move, &target->import);
    if (move->snapshot != NULL)
        target->import.bulk_bytes_max = share > BULK_BYTES_MIN ? share : BULK_BYTES_MIN;
    target->import.settles = move->is_settling && !target->is_settled;
    TRY(partition_begin_turn(target->partition, &target->import.turn, MESSAGE_IMPORT, err));
    target->has_begun = true;
    return STATUS_OK;
}

static Status end_import(Target *target, Error *err)
{
    target->has_begun = false;
    TRY(partition_end_turn(&target->import.turn, err));
    target->lsn = target->import.lsn;
    target->is_settled = target->import.is_settled;
    return STATUS_OK;
}

/* To all targets at once, so that the disk is waited for once. */
static Status send_to_targets(Move *move, Error *err)
{
    Status status = STATUS_OK;
    for (size_t i = 0; i < move->target_count && status == STATUS_OK; i++) {
        Target *target = &move->targets[i];
        if (target->count > 0 || target->entry_count > 0 || target->lsn < move->lsn ||
            (move->is_settling && !target->is_settled))
            status = begin_import(move, target, err);
    }
    for (size_t i = 0; i < move->target_count; i++) {
        Error other;
        if (move->targets[i].has_begun && end_import(&move->targets[i], &other) != STATUS_OK) {
            status = other.status;
            *err = other;
        }
    }
    piece_begin(move);
    return status;
}

/* ---- life ---- */

Move *move_new(const MovePart *sources, size_t source_count, const MovePart *targets,
               size_t target_count)
{
    ASSERT(source_count > 0 && target_count > 0);
    Move *move = MEM_NEW(Move);
    arena_init(&move->arena, 1024);
    arena_init(&move->piece, ARENA_LARGE_BYTES);
    move->sources = ARENA_NEW_ARRAY(&move->arena, Source, source_count);
    move->source_count = source_count;
    for (size_t i = 0; i < source_count; i++) {
        move->sources[i].partition = partition_ref(sources[i].partition);
        move->sources[i].epk_from = arena_copy(&move->arena, sources[i].epk_from);
    }
    move->targets = ARENA_NEW_ARRAY(&move->arena, Target, target_count);
    move->target_count = target_count;
    for (size_t i = 0; i < target_count; i++) {
        move->targets[i].partition = partition_ref(targets[i].partition);
        move->targets[i].epk_from = arena_copy(&move->arena, targets[i].epk_from);
        atomic_store(&targets[i].partition->inbox.is_loading, true);
    }
    piece_begin(move);
    return move;
}

static void stop_watching(Source *source)
{
    if (source->is_watched)
        partition_unwatch(source->partition);
    source->is_watched = false;
}

/* Clients may soon wait for what the targets do. */
static void end_loading(Move *move)
{
    for (size_t i = 0; i < move->target_count; i++)
        atomic_store(&move->targets[i].partition->inbox.is_loading, false);
}

static void close_snapshot(Move *move)
{
    store_snapshot_close(TAKE(move->snapshot));
}

void move_free(Move *move)
{
    if (move == NULL)
        return;
    move_cancel(move);
    end_loading(move);
    close_snapshot(move);
    for (size_t i = 0; i < move->source_count; i++) {
        partition_unref(move->sources[i].partition);
        schema_unref(move->sources[i].schema);
    }
    for (size_t i = 0; i < move->target_count; i++)
        partition_unref(move->targets[i].partition);
    arena_done(&move->piece);
    arena_done(&move->arena);
    mem_free(move);
}

/* Whatever comes after the snapshot has a higher LSN. */
static Status begin_following(const Move *move, Source *source, Error *err)
{
    bool found = false;
    TRY(partition_read_counters(source->partition, move->snapshot, STORE_READ_ANY,
                                &source->counters, &found, err));
    ChangePlace last = {.lsn = source->counters.lsn, .order = UINT16_MAX, .number = UINT64_MAX};
    source->followed = (Followed){.latest = last, .history = last};
    source->followed_lsn = last.lsn;
    return STATUS_OK;
}

static Status add_baselines(Move *move, Source *source, Error *err)
{
    TRY(partition_add_baselines(source->partition, move->snapshot, &source->baselines, err));
    return partition_add_baselines(source->partition, move->snapshot, &move->baselines, err);
}

Status move_begin(Move *move, Error *err)
{
    for (size_t i = 0; i < move->source_count; i++) {
        Source *source = &move->sources[i];
        Turn turn;
        TRY(partition_check_log(source->partition, err));
        source->is_watched = true; /* also if it fails half-way */
        TRY(partition_take_turn(source->partition, &turn, MESSAGE_WATCH, err));
        source->schema = current_schema_ref(&source->partition->current);
    }
    move->snapshot = store_snapshot_open(move->sources[0].partition->host->store, STORE_READ_ANY);
    for (size_t i = 0; i < move->source_count; i++) {
        TRY(begin_following(move, &move->sources[i], err));
        TRY(add_baselines(move, &move->sources[i], err));
    }
    return STATUS_OK;
}

/* ---- copying ---- */

static StoreCursor *open_copied(const Move *move, const Source *source, uint8_t kind)
{
    Key from = {.bytes = {kind}, .len = 1};
    Key to = {.bytes = {(uint8_t)(kind + 1)}, .len = 1};
    if (move->copied.len > 0) {
        from = move->copied;
        from.bytes[from.len++] = 0;
    }
    return store_cursor_open(source->partition->host->store, move->snapshot,
                             source->partition->space, key_slice(&from), key_slice(&to));
}

static void note_copied(Move *move, Slice key)
{
    ASSERT(key.len < KEY_BYTES_MAX);
    memcpy(move->copied.bytes, key.ptr, key.len);
    move->copied.len = key.len;
}

/* Gathers items of the source until the piece is full or there are no more. */
static Status gather_items(Move *move, const Source *source, bool *is_done, Error *err)
{
    Partition *partition = source->partition;
    TRY(partition_check_damage(partition, err));
    /* Before the items, as every reader does (I6). */
    size_t purge_count = 0;
    const Purge *purges = purge_list_copy(&partition->purges, &move->piece, &purge_count);
    AUTO(store_cursor_close) StoreCursor *cursor = open_copied(move, source, KEY_ITEM);
    *is_done = false;
    while (!piece_is_full(move)) {
        Slice key;
        Slice bytes;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &bytes, &found, err));
        *is_done = !found;
        if (!found)
            return STATUS_OK;
        note_copied(move, key);
        Item item;
        TRY(item_decode(bytes, &item, err));
        Slice epk = key_item_epk(source->schema, key, &item);
        if (item.lsn <= purges_find(purges, purge_count, epk))
            continue;
        TRY(piece_add(move, epk, slice_from(key, 1 + epk.len), bytes, 0, err));
        move->progress.items_copied++;
        move->progress.bytes_copied += key.len + bytes.len;
    }
    return STATUS_OK;
}

static bool keeps_history(const Source *source)
{
    return source->schema->retention_s > 0;
}

/* Likewise of the history of changes, if the container keeps one. */
static Status gather_history(Move *move, const Source *source, bool *is_done, Error *err)
{
    *is_done = true;
    if (!keeps_history(source))
        return STATUS_OK;
    AUTO(store_cursor_close) StoreCursor *cursor = open_copied(move, source, KEY_HISTORY);
    while (!piece_is_full(move)) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        note_copied(move, key);
        HistoryEntry entry;
        TRY(history_decode(value, &entry, err));
        if (entry.kind != CHANGE_PURGE)
            piece_add_entry(move, entry.epk, key, value);
    }
    *is_done = false;
    return STATUS_OK;
}

/* The targets' baselines may have other LSNs. */
static void add_before(Move *move, const BeforeRecord *record, Slice value)
{
    const Baseline *baseline = baselines_find(&move->baselines, record->baseline.number);
    if (baseline == NULL)
        return; /* it is gone */
    uint8_t key[KEY_BEFORE_BYTES];
    key_before(key, *baseline, record->number);
    piece_add_entry(move, record->epk, slice_make(key, sizeof(key)), value);
}

/* Likewise of what items were at the baselines. */
static Status gather_befores(Move *move, const Source *source, bool *is_done, Error *err)
{
    *is_done = true;
    if (move->baselines.count == 0)
        return STATUS_OK;
    AUTO(store_cursor_close) StoreCursor *cursor = open_copied(move, source, KEY_BEFORE);
    while (!piece_is_full(move)) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        note_copied(move, key);
        BeforeRecord record;
        TRY(before_decode(key, value, &record, err));
        add_before(move, &record, value);
    }
    *is_done = false;
    return STATUS_OK;
}

/* A step of writing what the targets have kept. */
static Status settle(Move *move, bool *is_done, Error *err)
{
    TRY(send_to_targets(move, err));
    *is_done = true;
    for (size_t i = 0; i < move->target_count; i++)
        *is_done = *is_done && move->targets[i].is_settled;
    if (!*is_done)
        return STATUS_OK;
    move->is_settling = false;
    end_loading(move);
    return STATUS_OK;
}

Status move_copy(Move *move, bool *is_done, Error *err)
{
    if (move->is_settling)
        return settle(move, is_done, err);
    bool is_source_done = false;
    const Source *source = &move->sources[move->copying];
    static Status (*const gather[])(Move *, const Source *, bool *, Error *) = {
        [COPY_ITEMS] = gather_items,
        [COPY_HISTORY] = gather_history,
        [COPY_BEFORES] = gather_befores,
    };
    TRY(gather[move->phase](move, source, &is_source_done, err));
    TRY(send_to_targets(move, err));
    *is_done = false;
    if (!is_source_done)
        return STATUS_OK;
    move->copied.len = 0;
    move->phase = (move->phase + 1) % COPY_PHASES;
    if (move->phase != COPY_ITEMS)
        return STATUS_OK;
    if (move->copying + 1 < move->source_count) {
        move->copying++;
        move->copied.len = 0;
        return STATUS_OK;
    }
    close_snapshot(move);
    move->is_settling = true;
    return STATUS_OK;
}

/* ---- catching up ---- */

/* Adds what the item with this number was at each baseline. */
static Status add_befores(Move *move, const Source *source, uint64_t number, Error *err)
{
    for (size_t i = 0; number != 0 && i < source->baselines.count; i++) {
        uint8_t key[KEY_BEFORE_BYTES];
        key_before(key, source->baselines.list[i], number);
        AUTO(store_value_release) StoreValue value = {0};
        StoreFound found = STORE_ABSENT;
        TRY(partition_get_before(source->partition, key, &value, &found, err));
        if (found != STORE_FOUND)
            continue;
        BeforeRecord record;
        TRY(before_decode(slice_make(key, sizeof(key)), value.data, &record, err));
        add_before(move, &record, value.data);
    }
    return STATUS_OK;
}

/* Adds the item as the source has it now: also if it has expired. The item that was deleted there
 * had 'gone_number'; 0 if none was. */
static Status add_newest(Move *move, const Source *source, Slice epk, Slice id,
                         uint64_t gone_number, Error *err)
{
    Partition *partition = source->partition;
    Key key;
    key_item(&key, epk, id);
    uint64_t purged_lsn = purge_list_find(&partition->purges, epk); /* first (I6) */
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    TRY(partition_get_bytes(partition, key_slice(&key), false, STORE_READ_ANY, &value, &found,
                            err));
    Item item = {0};
    if (found == STORE_FOUND)
        TRY(item_decode(value.data, &item, err));
    bool is_there = found == STORE_FOUND && item.lsn > purged_lsn;
    move->progress.items_caught_up++;
    TRY(add_befores(move, source, item.number, err));
    TRY(add_befores(move, source, gone_number, err));
    return piece_add(move, epk, id, is_there ? value.data : SLICE_EMPTY, gone_number, err);
}

/* While the fence stands writes wait. */
static Status check_fence(const Move *move, Error *err)
{
    const Source *first = &move->sources[0];
    if (!first->is_fenced ||
        clock_monotonic_us(first->partition->host->clock) - move->fenced_us <= MOVE_FENCE_US_MAX)
        return STATUS_OK;
    return error_set(err, STATUS_TIMEOUT, SUB_NONE,
                     "too much has changed in partition %u for its writes to wait",
                     first->partition->id);
}

/* What was copied before the purge is looked at again, one by one. */
static Status follow_purge(Move *move, const Source *source, Slice prefix, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    FoundKeys *found = ARENA_NEW(&arena, FoundKeys);
    for (size_t i = 0; i < move->target_count; i++) {
        Key from;
        key_item(&from, prefix, SLICE_EMPTY);
        while (from.len > 0) {
            AUTO(arena_done) Arena keys;
            arena_init(&keys, ARENA_SMALL_BYTES);
            TRY(check_fence(move, err));
            TRY(partition_list_purged(move->targets[i].partition, prefix, &from, &keys, found,
                                      err));
            for (size_t k = 0; k < found->count; k++) {
                Slice epk;
                Slice id;
                TRY(location_decode(found->keys[k], &epk, &id, err));
                if (piece_is_full(move))
                    TRY(send_to_targets(move, err));
                TRY(add_newest(move, source, epk, id, 0, err));
            }
        }
    }
    return send_to_targets(move, err);
}

/* A cursor over what comes after 'place' in a log, up to 'lsn', which the partition has published:
 * a group is in the store before that, while the cache still has what it changes. */
static StoreCursor *open_log(const Source *source, uint8_t kind, ChangePlace place, uint64_t lsn)
{
    Key from;
    Key to;
    key_change(&from, kind, place);
    from.bytes[from.len++] = 0;
    key_change(&to, kind, (ChangePlace){.lsn = lsn + 1});
    return store_cursor_open(source->partition->host->store, NULL, source->partition->space,
                             key_slice(&from), key_slice(&to));
}

/* The item is looked at again, wherever it is by now. */
static Status follow_latest(Move *move, const Source *source, ChangePlace place, Slice key,
                            Slice value, Error *err)
{
    (void)place;
    (void)key;
    LatestEntry entry;
    TRY(latest_decode(value, &entry, err));
    return add_newest(move, source, entry.epk, entry.id, 0, err);
}

static Status follow_history(Move *move, const Source *source, ChangePlace place, Slice key,
                             Slice value, Error *err)
{
    HistoryEntry entry;
    TRY(history_decode(value, &entry, err));
    switch (entry.kind) {
    case CHANGE_CREATE:
    case CHANGE_REPLACE:
        break; /* the item has a latest entry, too */
    case CHANGE_DELETE:
    case CHANGE_EXPIRE:
        TRY(add_newest(move, source, entry.epk, entry.id, place.number, err));
        break;
    case CHANGE_PURGE:
        TRY(send_to_targets(move, err));
        return follow_purge(move, source, entry.epk, err);
    }
    if (keeps_history(source))
        piece_add_entry(move, entry.epk, key, value);
    return STATUS_OK;
}

/* A log of a source, and what an entry of it means. */
typedef struct SourceLog {
    uint8_t kind;
    Status (*follow)(Move *move, const Source *source, ChangePlace place, Slice key, Slice value,
                     Error *err);
} SourceLog;

static const SourceLog LATEST_LOG = {KEY_LATEST, follow_latest};
static const SourceLog HISTORY_LOG = {KEY_HISTORY, follow_history};

/* Follows a log from '*place' on, which is moved, until the piece is full; '*is_done' if there is
 * nothing left up to 'lsn'. */
static Status follow_entries(Move *move, const Source *source, const SourceLog *log, uint64_t lsn,
                             ChangePlace *place, bool *is_done, Error *err)
{
    AUTO(store_cursor_close) StoreCursor *cursor = open_log(source, log->kind, *place, lsn);
    *is_done = false;
    while (!piece_is_full(move)) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        *is_done = !found;
        if (!found)
            return STATUS_OK;
        if (!key_change_parse(key, place))
            return error_set(err, STATUS_CORRUPT, SUB_NONE,
                             "an entry of the change log is damaged");
        TRY(log->follow(move, source, *place, key, value, err));
    }
    return STATUS_OK;
}

/* One piece of one source's changes. How far it came is noted at the end: what fails is followed
 * again. */
static Status follow_log(Move *move, Source *source, Error *err)
{
    uint64_t lsn = partition_lsn(source->partition);
    Followed followed = source->followed;
    bool is_done = false;
    bool is_history_done = false;
    TRY(follow_entries(move, source, &LATEST_LOG, lsn, &followed.latest, &is_done, err));
    TRY(follow_entries(move, source, &HISTORY_LOG, lsn, &followed.history, &is_history_done, err));
    TRY(send_to_targets(move, err));
    source->followed = followed;
    if (is_done && is_history_done)
        source->followed_lsn = lsn;
    return STATUS_OK;
}

bool move_has_purges(const Move *move)
{
    bool result = false;
    for (size_t i = 0; i < move->source_count; i++) {
        const Source *source = &move->sources[i];
        bool needs_each = keeps_history(source) || move->baselines.count > 0;
        result = result || (needs_each && purge_list_count(&source->partition->purges) > 0);
    }
    return result;
}

static size_t count_left(const Move *move)
{
    size_t left = 0;
    for (size_t i = 0; i < move->source_count; i++) {
        const Source *source = &move->sources[i];
        left += (size_t)(partition_lsn(source->partition) - source->followed_lsn);
    }
    return left;
}

Status move_catch_up(Move *move, size_t *left, Error *err)
{
    for (size_t i = 0; i < move->source_count; i++)
        TRY(follow_log(move, &move->sources[i], err));
    *left = count_left(move);
    return STATUS_OK;
}

/* ---- the end ---- */

static Status fence_all(Move *move, Error *err)
{
    for (size_t i = 0; i < move->source_count; i++) {
        Turn turn;
        TRY(partition_take_turn(move->sources[i].partition, &turn, MESSAGE_FENCE, err));
        move->sources[i].is_fenced = true;
    }
    return STATUS_OK;
}

/* Where the history of each part of the targets' ranges begins; NULL if that is the same
 * everywhere.
 */
static Status find_floors(Move *move, Error *err)
{
    if (move->source_count == 1 && move->sources[0].counters.unordered_lsn == 0)
        return STATUS_OK;
    HistoryFloors *floors = ARENA_NEW(&move->arena, HistoryFloors);
    for (size_t i = 0; i < move->source_count; i++) {
        const Source *source = &move->sources[i];
        Slice to = i + 1 < move->source_count ? move->sources[i + 1].epk_from : SLICE_EMPTY;
        TRY(partition_add_floors(source->partition, NULL, source->epk_from, to, floors, err));
    }
    move->floors = floors;
    return STATUS_OK;
}

static Status finish_at_fence(Move *move, Error *err)
{
    TRY(fence_all(move, err));
    TRY(find_floors(move, err));
    for (size_t i = 0; i < move->source_count; i++) {
        uint64_t lsn = partition_lsn(move->sources[i].partition);
        move->lsn = lsn > move->lsn ? lsn : move->lsn;
    }
    if (move_has_purges(move)) /* nothing is removed while the fence stands */
        return error_set(err, STATUS_TIMEOUT, SUB_NONE, "a partition key is being deleted");
    size_t left = 1;
    while (left > 0) {
        TRY(check_fence(move, err));
        TRY(move_catch_up(move, &left, err));
    }
    return STATUS_OK;
}

static void unfence_all(Move *move)
{
    for (size_t i = 0; i < move->source_count; i++) {
        if (move->sources[i].is_fenced)
            partition_unfence(move->sources[i].partition);
        move->sources[i].is_fenced = false;
    }
}

Status move_fence(Move *move, Error *err)
{
    move->fenced_us = clock_monotonic_us(move->sources[0].partition->host->clock);
    Status status = finish_at_fence(move, err);
    if (status == STATUS_TIMEOUT) {
        unfence_all(move);
        piece_begin(move); /* what was gathered last is followed again */
    }
    return status;
}

static void let_go(Move *move, PartitionGone gone, void *ctx)
{
    if (move->is_over)
        return;
    move->is_over = true;
    for (size_t i = 0; i < move->source_count; i++) {
        Source *source = &move->sources[i];
        if (!source->is_fenced || gone == NULL)
            continue;
        partition_retire(source->partition, gone, ctx);
        source->is_fenced = false;
    }
    unfence_all(move);
    for (size_t i = 0; i < move->source_count; i++)
        stop_watching(&move->sources[i]);
    const Clock *clock = move->sources[0].partition->host->clock;
    if (move->fenced_us != 0)
        move->progress.fence_us = clock_monotonic_us(clock) - move->fenced_us;
}

void move_end(Move *move, PartitionGone gone, void *ctx)
{
    ASSERT(gone != NULL);
    let_go(move, gone, ctx);
}

void move_cancel(Move *move)
{
    let_go(move, NULL, NULL);
}

MoveProgress move_progress(const Move *move)
{
    return move->progress;
}
