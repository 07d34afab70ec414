/* seeding.c - a copy of a space, from one node to another, in pieces.
 *
 *     piece = | version u8 = 1 | flags u8: 1 first, 2 last | number u32 | space u64 | place | pairs
 *             | checksum u32 |                                              (little-endian)
 *     place = | epoch u64 | seq u64 | chain |         only in the first: of the source's snapshot
 *     pair  = | key: varint | key | value: varint | value |
 *
 * A key has no space; a value is as RocksDB keeps it, merged. The checksum is a CRC-32 of all
 * before it. Pieces are put in their order, each once.
 *
 * The target's copy is marked as partly there (P6) before its first key, and as whole after its
 * last one. Before that, the journal is told that this node wants the entries after the snapshot:
 * the row of the replica comes before the snapshot, so that they are not trimmed meanwhile.
 */
#include "base/cond.h"
#include "base/crc32.h"
#include "base/mem.h"
#include "store/replicated/entry_format_int.h"
#include "store/replicated/replicated_int.h"

enum { PIECE_VERSION = 1, PIECE_FIRST = 1, PIECE_LAST = 2 };
enum {
    PIECE_HEAD_BYTES = 2 + 4 + 8,
    PIECE_PLACE_BYTES = 8 + 8 + JOURNAL_CHAIN_BYTES,
    PIECE_SUM_BYTES = 4,
};

/* ---- the source ---- */

struct SeedSource {
    StoreSpace space;
    JournalPlace place;
    SpaceReader *reader;
    uint32_t number;
    Buf next; /* the pair that the last piece had no room for */
};

Status seed_source_open(Replication *replication, StoreSpace space, SeedSource **out, Error *err)
{
    AUTO(seed_source_close) SeedSource *source = MEM_NEW(SeedSource);
    source->space = space;
    buf_init(&source->next, SIZE_MAX); /* one pair, which is bounded */
    TRY(space_reader_open(replication, space, &source->reader, &source->place, err));
    *out = TAKE(source);
    return STATUS_OK;
}

static void put_place(Buf *out, const JournalPlace *place)
{
    buf_bytes(out, &place->epoch, 8);
    buf_bytes(out, &place->seq, 8);
    buf_bytes(out, place->chain.bytes, JOURNAL_CHAIN_BYTES);
}

static void put_head(const SeedSource *source, Buf *out, unsigned flags)
{
    char head[2] = {PIECE_VERSION, (char)flags};
    buf_bytes(out, head, sizeof(head));
    buf_bytes(out, &source->number, sizeof(source->number));
    buf_bytes(out, &source->space, sizeof(source->space));
    if (source->number == 0)
        put_place(out, &source->place);
}

static void put_pair(Buf *out, const EngineItem *item)
{
    Slice key = slice_from(item->key, SPACE_BYTES);
    varint_put(out, key.len);
    buf_slice(out, key);
    varint_put(out, item->value.len);
    buf_slice(out, item->value);
}

/* Adds pairs until the piece is long enough, or there are no more. */
static Status put_pairs(SeedSource *source, size_t bytes_max, Buf *piece, bool *is_last, Error *err)
{
    buf_slice(piece, buf_view(&source->next));
    buf_reset(&source->next);
    for (;;) {
        EngineItem item = {0};
        Slice seen = {0};
        bool found = false;
        TRY(space_reader_next(source->reader, &item, &seen, &found, err));
        *is_last = !found;
        if (!found)
            return STATUS_OK;
        if (piece->len + item.key.len + item.value.len >= bytes_max) {
            put_pair(&source->next, &item);
            return STATUS_OK;
        }
        put_pair(piece, &item);
    }
}

Status seed_source_next(SeedSource *source, size_t bytes_max, Buf *piece, bool *is_last, Error *err)
{
    buf_reset(piece);
    put_head(source, piece, source->number == 0 ? PIECE_FIRST : 0);
    bool has_ended = false;
    TRY(put_pairs(source, bytes_max, piece, &has_ended, err));
    if (buf_full(piece))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "a piece of a space's copy does not fit into %zu bytes", piece->bytes_max);
    if (has_ended)
        piece->ptr[1] = (char)(piece->ptr[1] | PIECE_LAST);
    uint32_t sum = crc32_of(buf_view(piece));
    buf_bytes(piece, &sum, sizeof(sum));
    if (buf_full(piece))
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "a piece of a space's copy does not fit into %zu bytes", piece->bytes_max);
    source->number++;
    *is_last = has_ended;
    return STATUS_OK;
}

void seed_source_close(SeedSource *source)
{
    if (source == NULL)
        return;
    space_reader_close(source->reader);
    buf_done(&source->next);
    mem_free(source);
}

/* ---- the target ---- */

struct SeedTarget {
    Replication *replication;
    ReplicaSpace *space; /* in a change of the target's, until it is closed */
    JournalPlace place;  /* of the source's snapshot */
    uint32_t number;     /* of the next piece */
    bool has_last;
    bool is_finished;
    bool is_broken; /* something failed: nothing more is put */
};

static Status write_place(SeedTarget *target, StoredState state, Error *err)
{
    Replication *replication = target->replication;
    AUTO(tree_done) Tree tree = {0};
    place_put(&tree, target->space->space, state, &target->place);
    EngineWrites writes = {.tree = tree};
    pthread_mutex_lock(&replication->writing);
    Status status = replication_write(replication, &writes, 1, err);
    pthread_mutex_unlock(&replication->writing);
    TRY(status);
    pthread_mutex_lock(&replication->lock);
    target->space->is_stored = true;
    pthread_mutex_unlock(&replication->lock);
    return STATUS_OK;
}

static Status report_seeding(Replication *replication, StoreSpace space, Error *err)
{
    JournalReplica report = {.space = space, .state = REPLICA_SEEDING};
    bool begins = follow_begin(replication, UINT64_MAX);
    ASSERT(begins); /* never late */
    Status status = journal_report(replication->journal, JOURNAL_LANE_FOLLOW, &report, 1, err);
    follow_end(replication);
    return status;
}

/* False if it has come to something else since it was dropped. */
static bool begin_seeding(Replication *replication, ReplicaSpace *space)
{
    pthread_mutex_lock(&replication->lock);
    bool is_free = !space->is_changing && space->role == SPACE_ABSENT && !space->is_stored;
    if (is_free)
        space->is_changing = space->is_seeded = true;
    pthread_mutex_unlock(&replication->lock);
    return is_free;
}

Status seed_target_room(Replication *replication, Error *err)
{
    return replication->local->ops->room(replication->local, ENGINE_TAKES_ROOM, 0, err);
}

Status seed_target_open(Replication *replication, StoreSpace space, SeedTarget **out, Error *err)
{
    pthread_mutex_lock(&replication->lock);
    ReplicaSpace *of = spaces_get(replication, space);
    bool is_free = !of->is_seeded && of->role != SPACE_OWNED;
    pthread_mutex_unlock(&replication->lock);
    if (is_free) {
        TRY(space_drop_copy(replication, space, err));
        is_free = begin_seeding(replication, of);
    }
    if (!is_free)
        return error_set(err, STATUS_CONFLICT, SUB_NONE,
                         "space %llu is in use on this node, or filled already",
                         (unsigned long long)space);
    AUTO(seed_target_close) SeedTarget *target = MEM_NEW(SeedTarget);
    *target = (SeedTarget){.replication = replication, .space = of};
    TRY(report_seeding(replication, space, err));
    TRY(write_place(target, STORED_PARTLY, err));
    *out = TAKE(target);
    return STATUS_OK;
}

static Status damaged(Error *err, const char *what)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "a piece of a space's copy is damaged: %s",
                     what);
}

/* Takes what is before the pairs off '*in', and the checksum. */
static Status take_head(SeedTarget *target, Slice *in, unsigned *flags, Error *err)
{
    if (in->len < PIECE_HEAD_BYTES + PIECE_SUM_BYTES)
        return damaged(err, "it is too short");
    uint32_t sum = 0, number = 0;
    uint64_t space = 0;
    Slice summed = slice_first(*in, in->len - PIECE_SUM_BYTES);
    memcpy(&sum, in->ptr + summed.len, sizeof(sum));
    if (sum != crc32_of(summed))
        return damaged(err, "its checksum is wrong");
    if (in->ptr[0] != PIECE_VERSION)
        return error_set(err, STATUS_NOT_IMPLEMENTED, SUB_NONE,
                         "a piece of a space's copy has version %u, and this program reads %d",
                         (uint8_t)in->ptr[0], PIECE_VERSION);
    *flags = (uint8_t)in->ptr[1];
    memcpy(&number, in->ptr + 2, sizeof(number));
    memcpy(&space, in->ptr + 6, sizeof(space));
    *in = slice_from(summed, PIECE_HEAD_BYTES);
    if (space != target->space->space)
        return damaged(err, "it is of another space");
    if (number != target->number || target->has_last ||
        ((*flags & PIECE_FIRST) != 0) != (number == 0))
        return damaged(err, "it is out of turn");
    if (number > 0)
        return STATUS_OK;
    if (in->len < PIECE_PLACE_BYTES)
        return damaged(err, "it ends within the place");
    memcpy(&target->place.epoch, in->ptr, 8);
    memcpy(&target->place.seq, in->ptr + 8, 8);
    memcpy(target->place.chain.bytes, in->ptr + 16, JOURNAL_CHAIN_BYTES);
    *in = slice_from(*in, PIECE_PLACE_BYTES);
    return STATUS_OK;
}

static bool take_text(Slice *in, size_t len_max, Slice *out)
{
    size_t len = 0;
    if (!varint_take(in, &len) || len > len_max || len > in->len)
        return false;
    *out = slice_first(*in, len);
    *in = slice_from(*in, len);
    return true;
}

static Status take_pairs(const SeedTarget *target, Slice in, Tree *tree, Error *err)
{
    const StoreMerge *kinds = target->replication->engine.merge;
    FullKey full;
    while (in.len > 0) {
        Slice key = {0}, value = {0};
        if (!take_text(&in, STORE_KEY_BYTES_MAX, &key) ||
            !take_text(&in, STORE_VALUE_BYTES_MAX + 1, &value))
            return damaged(err, "it ends within a key or a value");
        Slice whole = full_key(&full, target->space->space, key);
        Slice seen = value;
        bool is_hidden = false;
        TRY(merge_read(kinds, whole, &seen, &is_hidden, err));
        tree_put(tree, whole, value);
    }
    return STATUS_OK;
}

static Status put_piece(SeedTarget *target, Slice piece, Error *err)
{
    Replication *replication = target->replication;
    AUTO(tree_done) Tree tree = {0};
    unsigned flags = 0;
    TRY(take_head(target, &piece, &flags, err));
    TRY(take_pairs(target, piece, &tree, err));
    TRY(replication->local->ops->room(replication->local, ENGINE_TAKES_ROOM, tree.bytes, err));
    if (tree.count > 0) {
        EngineWrites writes = {.tree = tree};
        pthread_mutex_lock(&replication->writing);
        Status status = replication_write(replication, &writes, 1, err);
        pthread_mutex_unlock(&replication->writing);
        TRY(status);
    }
    target->number++;
    target->has_last = (flags & PIECE_LAST) != 0;
    return STATUS_OK;
}

Status seed_target_put(SeedTarget *target, Slice piece, Error *err)
{
    ASSERT(!target->is_finished);
    if (target->is_broken)
        return damaged(err, "one before it was refused");
    Status status = put_piece(target, piece, err);
    target->is_broken = status != STATUS_OK;
    return status;
}

Status seed_target_finish(SeedTarget *target, Error *err)
{
    Replication *replication = target->replication;
    if (target->is_broken || !target->has_last)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the copy of space %llu has not come to its end",
                         (unsigned long long)target->space->space);
    TRY(write_place(target, STORED_WHOLE, err));
    target->is_finished = true;
    pthread_mutex_lock(&replication->lock);
    target->space->role = SPACE_FOLLOWED;
    target->space->trouble = SPACE_SOUND;
    target->space->is_closing = false;
    target->space->applied = target->place;
    target->space->is_seeded = false;
    space_end_change(replication, target->space);
    pthread_mutex_unlock(&replication->lock);
    replication_poke(replication);
    return STATUS_OK;
}

void seed_target_close(SeedTarget *target)
{
    if (target == NULL)
        return;
    Replication *replication = target->replication;
    if (!target->is_finished) {
        pthread_mutex_lock(&replication->lock);
        target->space->is_seeded = false;
        space_end_change(replication, target->space);
        pthread_mutex_unlock(&replication->lock);
        Error err;
        Status status = space_drop_copy(replication, target->space->space, &err);
        /* If it cannot be dropped now, the next start does it (P6). */
        if (status != STATUS_OK && replication->log != NULL)
            LOG_ERROR(replication->log, "journal.space_not_dropped", "space=%llu reason=\"%s\"",
                      (unsigned long long)target->space->space, err.message);
    }
    mem_free(target);
}
