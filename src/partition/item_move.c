/* item_move.c - see item_move.h.
 *
 * A source that is watched notes the key of every item that a group changes, and the EPK of every
 * purge, when the group is durable:
 *
 *     note = | length of the EPK u16 | length of the id u16 | EPK | id |      0xFFFF: a purge
 *
 * A note does not say what has become of the item: that is read when the note's turn comes, and
 * what is found then is made the same in the target. So notes may be repeated, or be about nothing,
 * and what is copied may be of any time after the watch has begun: whatever changes later is noted.
 *
 * The copy is of one moment, a snapshot, so that no item is met twice, and the targets need not
 * look for what they are given: they load it past the store's log (item_import.c).
 */
#include "partition/item_move.h"

#include "base/mem.h"
#include "partition/group_int.h"

/* Of items and terms that all targets together have in memory: what they gather, and what the store
 * is given and works on meanwhile. The more, the fewer parts of a term the store has to merge. */
#define BULK_BYTES_MAX ((size_t)64 << 20)
#define BULK_PHASES    2
#define BULK_BYTES_MIN ((size_t)1 << 20) /* of one target */

enum {
    NOTE_HEAD_BYTES = 4,
    NOTE_PURGE = 0xFFFF,
    PIECE_ITEMS_MAX = 1000,
};

typedef struct Source {
    Partition *partition;
    PartitionSchema *schema;
    Buf notes; /* taken from it, from 'at' on not caught up with */
    size_t at;
    bool is_watched;
    bool is_fenced;
} Source;

typedef struct Target {
    Partition *partition;
    Slice epk_from;
    ImportItem *items; /* of the piece being gathered */
    size_t count;
    uint64_t lsn;  /* that it has at least */
    Import import; /* on its way, if it has begun */
    bool has_begun;
    bool is_settled; /* all that was copied to it is in the store */
} Target;

struct Move {
    Arena arena; /* as long as the move */
    Source *sources;
    size_t source_count;
    Target *targets;
    size_t target_count;
    StoreSnapshot *snapshot; /* that is copied; NULL: not yet, or not any more */
    bool is_settling;        /* all is copied; targets write what they have kept */
    size_t copying;          /* the source ... */
    Key copied;              /* ... and the key after which it continues; empty at the beginning */
    Arena piece;             /* what is gathered for the targets */
    size_t piece_items;
    size_t piece_bytes;
    uint64_t lsn; /* that the targets are to have; known once the fence stands */
    bool is_over;
    uint64_t fenced_us; /* when that began */
    MoveProgress progress;
};

/* ---- what a source notes, as part of its groups ---- */

static void note(Group *group, Slice epk, uint16_t id_len, Slice id)
{
    if (LIKELY(atomic_load_explicit(&group->partition->state, memory_order_relaxed) !=
               PARTITION_WATCHED) ||
        group->is_private)
        return;
    uint16_t head[2] = {(uint16_t)epk.len, id_len};
    buf_bytes(&group->notes, head, sizeof(head));
    buf_slice(&group->notes, epk);
    buf_slice(&group->notes, id);
}

void group_note_item(Group *group, Slice epk, Slice id)
{
    note(group, epk, (uint16_t)id.len, id);
}

void group_note_purge(Group *group, Slice epk)
{
    note(group, epk, NOTE_PURGE, SLICE_EMPTY);
}

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
    }
}

/* With the item's stored bytes; NULL: it is absent. */
static Status piece_add(Move *move, Slice epk, Slice id, Slice bytes, Error *err)
{
    Target *target = target_of(move, epk);
    if (target->items == NULL)
        target->items = ARENA_NEW_ARRAY(&move->piece, ImportItem, PIECE_ITEMS_MAX);
    ASSERT(target->count < PIECE_ITEMS_MAX);
    ImportItem *item = &target->items[target->count++];
    item->epk = arena_copy(&move->piece, epk);
    item->id = arena_copy(&move->piece, id);
    item->is_absent = bytes.ptr == NULL;
    move->piece_items++;
    move->piece_bytes += epk.len + id.len + bytes.len;
    return item->is_absent ? STATUS_OK
                           : item_decode(arena_copy(&move->piece, bytes), &item->item, err);
}

static bool piece_is_full(const Move *move)
{
    return move->piece_items == PIECE_ITEMS_MAX || move->piece_bytes >= MOVE_PIECE_BYTES;
}

static Status begin_import(Move *move, Target *target, Error *err)
{
    size_t share = BULK_BYTES_MAX / BULK_PHASES / move->target_count;
    target->import = (Import){.items = target->items, .count = target->count, .lsn = move->lsn};
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
        if (target->count > 0 || target->lsn < move->lsn ||
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

Move *move_new(Partition *const *sources, size_t source_count, const MoveTarget *targets,
               size_t target_count)
{
    ASSERT(source_count > 0 && target_count > 0);
    Move *move = MEM_NEW(Move);
    arena_init(&move->arena, 1024);
    arena_init(&move->piece, ARENA_LARGE_BYTES);
    move->sources = ARENA_NEW_ARRAY(&move->arena, Source, source_count);
    move->source_count = source_count;
    for (size_t i = 0; i < source_count; i++) {
        move->sources[i].partition = partition_ref(sources[i]);
        buf_init(&move->sources[i].notes, MOVE_NOTES_BYTES_MAX);
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
        buf_done(&move->sources[i].notes);
    }
    for (size_t i = 0; i < move->target_count; i++)
        partition_unref(move->targets[i].partition);
    arena_done(&move->piece);
    arena_done(&move->arena);
    mem_free(move);
}

Status move_begin(Move *move, Error *err)
{
    for (size_t i = 0; i < move->source_count; i++) {
        Source *source = &move->sources[i];
        Turn turn;
        source->is_watched = true; /* also if it fails half-way */
        TRY(partition_take_turn(source->partition, &turn, MESSAGE_WATCH, err));
        source->schema = current_schema_ref(&source->partition->current);
    }
    move->snapshot = store_snapshot_open(move->sources[0].partition->host->store, STORE_READ_ANY);
    return STATUS_OK;
}

/* ---- copying ---- */

static StoreCursor *open_items(const Move *move, const Source *source)
{
    Key from = {.bytes = {KEY_ITEM}, .len = 1};
    Key to = {.bytes = {KEY_ITEM + 1}, .len = 1};
    if (move->copied.len > 0) {
        from = move->copied;
        from.bytes[from.len++] = 0;
    }
    return store_cursor_open(source->partition->host->store, move->snapshot,
                             source->partition->space, key_slice(&from), key_slice(&to));
}

/* Gathers items of the source until the piece is full or there are no more. */
static Status gather(Move *move, const Source *source, bool *is_done, Error *err)
{
    Partition *partition = source->partition;
    TRY(partition_check_damage(partition, err));
    ReadMoment moment = {.snapshot = move->snapshot};
    /* Before the items, as every reader does (I6). */
    moment.purges = purge_list_copy(&partition->purges, &move->piece, &moment.purge_count);
    moment.now_s = partition_host_now_s(partition->host);
    AUTO(store_cursor_close) StoreCursor *cursor = open_items(move, source);
    *is_done = false;
    while (!piece_is_full(move)) {
        Slice key;
        Slice bytes;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &bytes, &found, err));
        *is_done = !found;
        if (!found)
            return STATUS_OK;
        ASSERT(key.len < KEY_BYTES_MAX);
        memcpy(move->copied.bytes, key.ptr, key.len);
        move->copied.len = key.len;
        Item item;
        TRY(item_decode(bytes, &item, err));
        Slice epk = key_item_epk(source->schema, key, &item);
        if (moment_hides(&moment, source->schema, epk, &item))
            continue;
        TRY(piece_add(move, epk, slice_from(key, 1 + epk.len), bytes, err));
        move->progress.items_copied++;
        move->progress.bytes_copied += key.len + bytes.len;
    }
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
    TRY(gather(move, &move->sources[move->copying], &is_source_done, err));
    TRY(send_to_targets(move, err));
    *is_done = false;
    if (!is_source_done)
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

/* Takes what the source has noted since the last time. */
static Status take_notes(Source *source, Error *err)
{
    Partition *partition = source->partition;
    Buf notes = change_notes_take(&partition->notes);
    bool is_full = buf_full(&notes);
    buf_done(&source->notes);
    source->notes = notes;
    source->at = 0;
    if (!is_full)
        return STATUS_OK;
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE,
                     "partition %u is written to faster than its items can be copied",
                     partition->id);
}

static size_t notes_left(const Source *source)
{
    return source->notes.len - source->at;
}

/* Adds the item as the source has it now. */
static Status add_newest(Move *move, const Source *source, Slice epk, Slice id, Error *err)
{
    Epk place = {.len = (uint16_t)epk.len};
    memcpy(place.bytes, epk.ptr, epk.len);
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound found = STORE_ABSENT;
    Item item;
    TRY(partition_get(source->partition, source->schema, &place, id, STORE_READ_ANY, &item, &value,
                      &found, err));
    move->progress.items_caught_up++;
    return piece_add(move, epk, id, found == STORE_FOUND ? value.data : SLICE_EMPTY, err);
}

/* The first keys from '*from' on of what a target has of a purged prefix; '*from' is moved after
 * them, or emptied at the end. */
static Status list_purged(Target *target, Slice prefix, Key *from, Arena *arena, FoundKeys *out,
                          Error *err)
{
    Key to;
    key_item(&to, prefix, SLICE_EMPTY);
    while (to.len > 1 && to.bytes[to.len - 1] == 0xFF)
        to.len--;
    to.bytes[to.len - 1]++;
    AUTO(store_cursor_close)
    StoreCursor *cursor =
        store_cursor_open(target->partition->host->store, NULL, target->partition->space,
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
        PartitionSchema *schema = current_schema_ref(&target->partition->current);
        Slice epk = key_item_epk(schema, key, &item);
        schema_unref(schema);
        out->keys[out->count] = location_encode(arena, epk, slice_from(key, 1 + epk.len));
        memcpy(from->bytes, key.ptr, key.len);
        from->len = key.len;
    }
    from->bytes[from->len++] = 0;
    return STATUS_OK;
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
            TRY(list_purged(&move->targets[i], prefix, &from, &keys, found, err));
            for (size_t k = 0; k < found->count; k++) {
                Slice epk;
                Slice id;
                TRY(location_decode(found->keys[k], &epk, &id, err));
                if (piece_is_full(move))
                    TRY(send_to_targets(move, err));
                TRY(add_newest(move, source, epk, id, err));
            }
        }
    }
    return send_to_targets(move, err);
}

static Status follow_note(Move *move, Source *source, Error *err)
{
    Slice rest = slice_from(buf_view(&source->notes), source->at);
    uint16_t head[2];
    memcpy(head, rest.ptr, sizeof(head));
    Slice epk = slice_first(slice_from(rest, NOTE_HEAD_BYTES), head[0]);
    size_t len = NOTE_HEAD_BYTES + head[0];
    if (head[1] == NOTE_PURGE) {
        TRY(send_to_targets(move, err));
        TRY(follow_purge(move, source, epk, err));
    } else {
        TRY(add_newest(move, source, epk, slice_first(slice_from(rest, len), head[1]), err));
        len += head[1];
    }
    source->at += len; /* not before: what fails is followed again */
    return STATUS_OK;
}

/* One piece of one source's notes. */
static Status follow_notes(Move *move, Source *source, Error *err)
{
    if (notes_left(source) == 0)
        TRY(take_notes(source, err));
    while (notes_left(source) > 0 && !piece_is_full(move))
        TRY(follow_note(move, source, err));
    return send_to_targets(move, err);
}

/* About: notes are of different lengths. */
static size_t count_left(const Move *move)
{
    size_t bytes = 0;
    for (size_t i = 0; i < move->source_count; i++) {
        Source *source = &move->sources[i];
        bytes += change_notes_bytes(&source->partition->notes) + notes_left(source);
    }
    return (bytes + 31) / 32;
}

Status move_catch_up(Move *move, size_t *left, Error *err)
{
    for (size_t i = 0; i < move->source_count; i++)
        TRY(follow_notes(move, &move->sources[i], err));
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

static Status finish_at_fence(Move *move, Error *err)
{
    TRY(fence_all(move, err));
    for (size_t i = 0; i < move->source_count; i++) {
        uint64_t lsn = partition_lsn(move->sources[i].partition);
        move->lsn = lsn > move->lsn ? lsn : move->lsn;
    }
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
        piece_begin(move); /* what was gathered last is noted still */
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
