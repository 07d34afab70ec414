/* space_places.c - the spaces of a node, and how far each has come.
 *
 *     key   = | the space after STORE_SPACE_MAX, u64 BE | 'P' | space u64 BE |
 *     value = | version u8 = 1 | state u8 | epoch u64 LE | seq u64 LE | chain |
 *
 * A place is written with the writes that lead to it, as one. State STORED_PARTLY says that the
 * space is being dropped, or filled from another node: it is dropped when the store is next
 * opened. RocksDB keeps the order of its writes also where it loses the newest of them, so that no
 * space is ever whole with only a part of its keys.
 */
#include "base/array.h"
#include "base/cond.h"
#include "base/encoding.h"
#include "store/replicated/replicated_int.h"

enum { PLACE_KIND = 'P', PLACE_VERSION = 1 };
enum { PLACE_KEY_BYTES = SPACE_BYTES + 1 + 8, PLACE_BYTES = 2 + 8 + 8 + JOURNAL_CHAIN_BYTES };

#define PLACE_SPACE (STORE_SPACE_MAX + 1)

typedef struct PlaceKey {
    char bytes[PLACE_KEY_BYTES];
} PlaceKey;

static Slice place_key(PlaceKey *key, StoreSpace space)
{
    be64_put(key->bytes, PLACE_SPACE);
    key->bytes[SPACE_BYTES] = PLACE_KIND;
    be64_put(key->bytes + SPACE_BYTES + 1, space);
    return slice_make(key->bytes, sizeof(key->bytes));
}

void place_put(Tree *tree, StoreSpace space, StoredState state, const JournalPlace *place)
{
    char value[PLACE_BYTES] = {PLACE_VERSION, (char)state};
    memcpy(value + 2, &place->epoch, 8);
    memcpy(value + 10, &place->seq, 8);
    memcpy(value + 18, place->chain.bytes, JOURNAL_CHAIN_BYTES);
    PlaceKey key;
    tree_put(tree, place_key(&key, space), slice_make(value, sizeof(value)));
}

void place_delete(Tree *tree, StoreSpace space)
{
    PlaceKey key;
    tree_mark_deleted(tree, place_key(&key, space));
}

static Status parse_place(Slice value, StoredState *state, JournalPlace *out, Error *err)
{
    if (value.len != PLACE_BYTES || value.ptr[0] != PLACE_VERSION ||
        (uint8_t)value.ptr[1] > STORED_PARTLY)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "how far a space of the data folder has come is not readable: it has %zu "
                         "bytes of version %u",
                         value.len, value.len > 0 ? (uint8_t)value.ptr[0] : 0);
    *state = (StoredState)value.ptr[1];
    memcpy(&out->epoch, value.ptr + 2, 8);
    memcpy(&out->seq, value.ptr + 10, 8);
    memcpy(out->chain.bytes, value.ptr + 18, JOURNAL_CHAIN_BYTES);
    return STATUS_OK;
}

Status place_read(Replication *replication, const StoreSnapshot *snapshot, StoreSpace space,
                  JournalPlace *out, bool *found, Error *err)
{
    Engine *local = replication->local;
    AUTO(store_value_release) StoreValue value = {0};
    StoreFound answer = STORE_ABSENT;
    PlaceKey key;
    TRY(local->ops->get(local, snapshot, place_key(&key, space), STORE_READ_ANY, &value, &answer,
                        err));
    StoredState state = STORED_WHOLE;
    if (answer == STORE_FOUND)
        TRY(parse_place(value.data, &state, out, err));
    if (state != STORED_WHOLE)
        return error_set(err, STATUS_NOT_FOUND, SUB_NONE,
                         "what this node has of space %llu is not whole: it is being dropped or "
                         "filled",
                         (unsigned long long)space);
    *found = answer == STORE_FOUND;
    return STATUS_OK;
}

/* ---- the list ---- */

/* The index of the first space at or after 'space'. */
static size_t index_at(const Replication *replication, StoreSpace space)
{
    size_t low = 0;
    size_t high = replication->space_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (replication->spaces[middle]->space < space)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

ReplicaSpace *spaces_find(const Replication *replication, StoreSpace space)
{
    size_t at = index_at(replication, space);
    bool is_there = at < replication->space_count && replication->spaces[at]->space == space;
    return is_there ? replication->spaces[at] : NULL;
}

ReplicaSpace *spaces_get(Replication *replication, StoreSpace space)
{
    size_t at = index_at(replication, space);
    if (at < replication->space_count && replication->spaces[at]->space == space)
        return replication->spaces[at];
    ARRAY_GROW(replication->spaces, replication->space_count, replication->space_capacity, 64);
    memmove(&replication->spaces[at + 1], &replication->spaces[at],
            sizeof(ReplicaSpace *) * (replication->space_count - at));
    replication->space_count++;
    ReplicaSpace *made = MEM_NEW(ReplicaSpace);
    made->space = space;
    replication->spaces[at] = made;
    return made;
}

bool space_begin_change(Replication *replication, ReplicaSpace *space, uint64_t until_us)
{
    while (space->is_changing) {
        if (!cond_wait_until(&replication->changed, &replication->lock, until_us) &&
            space->is_changing)
            return false;
    }
    space->is_changing = true;
    return true;
}

void space_end_change(Replication *replication, ReplicaSpace *space)
{
    ASSERT(space->is_changing);
    space->is_changing = false;
    pthread_cond_broadcast(&replication->changed);
}

static ReplicaPlace place_of(const ReplicaSpace *space)
{
    return (ReplicaPlace){.space = space->space,
                          .role = space->role,
                          .applied = space->applied,
                          .durable_seq = space->durable_seq};
}

size_t replication_places(Replication *replication, ReplicaPlace *out, size_t max)
{
    size_t count = 0;
    pthread_mutex_lock(&replication->lock);
    for (size_t i = 0; i < replication->space_count; i++) {
        const ReplicaSpace *space = replication->spaces[i];
        if (space->role == SPACE_ABSENT)
            continue;
        if (count < max)
            out[count] = place_of(space);
        count++;
    }
    pthread_mutex_unlock(&replication->lock);
    return count;
}

ReplicaPlace replication_place(Replication *replication, StoreSpace space)
{
    pthread_mutex_lock(&replication->lock);
    const ReplicaSpace *found = spaces_find(replication, space);
    ReplicaPlace place = found != NULL ? place_of(found) : (ReplicaPlace){.space = space};
    pthread_mutex_unlock(&replication->lock);
    return place;
}

Status replication_wait(Replication *replication, StoreSpace space, uint64_t seq,
                        uint64_t deadline_us, Error *err)
{
    Status status = STATUS_OK;
    pthread_mutex_lock(&replication->lock);
    const ReplicaSpace *found = spaces_get(replication, space);
    while (found->applied.seq < seq && status == STATUS_OK) {
        if (!cond_wait_until(&replication->changed, &replication->lock, deadline_us) &&
            found->applied.seq < seq)
            status = error_set(err, STATUS_TIMEOUT, SUB_NONE,
                               "this node has applied write %llu of space %llu, and not yet %llu",
                               (unsigned long long)found->applied.seq, (unsigned long long)space,
                               (unsigned long long)seq);
    }
    pthread_mutex_unlock(&replication->lock);
    return status;
}

/* ---- opening ---- */

/* Damage here says nothing about the log, so that it must not be taken for another history of it,
 * which is STATUS_CORRUPT everywhere above. */
static Status local_failure(Status status, Error *err)
{
    if (status == STATUS_CORRUPT)
        err->status = STATUS_IO;
    return status == STATUS_CORRUPT ? STATUS_IO : status;
}

Status replication_write(Replication *replication, const EngineWrites *writes, size_t count,
                         Error *err)
{
    Engine *local = replication->local;
    Status status = local_failure(local->ops->write(local, writes, count, err), err);
    pthread_mutex_lock(&replication->lock);
    replication->local_failure = status == STATUS_OK ? (Error){.status = STATUS_OK} : *err;
    pthread_mutex_unlock(&replication->lock);
    return status;
}

static Status write_tree(Replication *replication, const Tree *tree, Error *err)
{
    if (tree->count == 0)
        return STATUS_OK;
    EngineWrites writes = {.tree = *tree};
    pthread_mutex_lock(&replication->writing);
    Status status = replication_write(replication, &writes, 1, err);
    pthread_mutex_unlock(&replication->writing);
    return status;
}

/* Both steps are one after the other on disk: see the top. */
static Status drop_stored(Replication *replication, StoreSpace first, StoreSpace last,
                          const Tree *partly, const Tree *deleted, Error *err)
{
    Engine *local = replication->local;
    TRY(write_tree(replication, partly, err));
    pthread_mutex_lock(&replication->writing);
    Status status = local_failure(local->ops->drop(local, first, last, err), err);
    pthread_mutex_unlock(&replication->writing);
    TRY(status);
    return write_tree(replication, deleted, err);
}

static Status load_place(void *ctx, const EngineItem *item, Error *err)
{
    Replication *replication = ctx;
    if (item->key.len != PLACE_KEY_BYTES)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the name of a space's place in the data folder has %zu bytes, not %d",
                         item->key.len, PLACE_KEY_BYTES);
    StoredState state = STORED_WHOLE;
    JournalPlace place = {0};
    TRY(parse_place(item->value, &state, &place, err));
    ReplicaSpace *space = spaces_get(replication, be64_get(item->key.ptr + SPACE_BYTES + 1));
    space->is_stored = true;
    space->role = state == STORED_WHOLE ? SPACE_FOLLOWED : SPACE_ABSENT;
    space->applied = place;
    return STATUS_OK;
}

typedef Status (*PlaceVisit)(void *ctx, const EngineItem *item, Error *err);

static Status visit_places(Engine *local, PlaceVisit visit, void *ctx, Error *err)
{
    FullKey from_memory, to_memory;
    char kind = PLACE_KIND;
    Slice from = full_key(&from_memory, PLACE_SPACE, slice_make(&kind, 1));
    Slice to = full_key_end(&to_memory, PLACE_SPACE);
    EngineCursor *cursor = local->ops->cursor_open(local, NULL, from, to, false);
    EngineItem item = {0};
    bool found = false;
    Status status = local->ops->cursor_move(cursor, ENGINE_AT_OR_AFTER, from, &item, &found, err);
    while (status == STATUS_OK && found) {
        status = visit(ctx, &item, err);
        if (status == STATUS_OK)
            status = local->ops->cursor_move(cursor, ENGINE_NEXT, SLICE_EMPTY, &item, &found, err);
    }
    local->ops->cursor_close(cursor);
    return status;
}

static Status delete_place(void *ctx, const EngineItem *item, Error *err UNUSED)
{
    tree_mark_deleted(ctx, item->key);
    return STATUS_OK;
}

Status places_delete_all(Engine *local, Error *err)
{
    AUTO(tree_done) Tree tree = {0};
    TRY(visit_places(local, delete_place, &tree, err));
    EngineWrites writes = {.tree = tree};
    return tree.count == 0 ? STATUS_OK : local->ops->write(local, &writes, 1, err);
}

Status places_load(Replication *replication, Error *err)
{
    TRY(visit_places(replication->local, load_place, replication, err));
    for (size_t i = 0; i < replication->space_count; i++) {
        ReplicaSpace *space = replication->spaces[i];
        if (space->role != SPACE_ABSENT)
            continue;
        AUTO(tree_done) Tree nothing = {0};
        AUTO(tree_done) Tree deleted = {0};
        place_delete(&deleted, space->space);
        TRY(drop_stored(replication, space->space, space->space, &nothing, &deleted, err));
        *space = (ReplicaSpace){.space = space->space};
    }
    return STATUS_OK;
}

/* ---- dropping ---- */

void space_begin_closing(const Replication *replication, ReplicaSpace *space)
{
    space->is_closing = true;
    space->closing_from = replication->next_number;
    space->closing_left = space->under_way;
}

/* Under 'lock', in a change. Nothing of it is written afterwards. */
static void take_out(Replication *replication, ReplicaSpace *space)
{
    space_begin_closing(replication, space);
    while (space->closing_left > 0)
        pthread_cond_wait(&replication->changed, &replication->lock);
    space->role = SPACE_ABSENT;
}

typedef enum Dropped { DROP_OWNED_TOO, DROP_COPIES } Dropped;

static Status drop(Replication *replication, StoreSpace first, StoreSpace last, Dropped dropped,
                   Error *err)
{
    AUTO(tree_done) Tree partly = {0};
    AUTO(tree_done) Tree deleted = {0};
    AUTO(mem_free) void *memory = NULL;
    pthread_mutex_lock(&replication->lock);
    size_t at = index_at(replication, first);
    size_t count = index_at(replication, last);
    count += count < replication->space_count && replication->spaces[count]->space == last;
    count -= at;
    if (count > 0)
        memory = mem_copy(&replication->spaces[at], sizeof(ReplicaSpace *) * count);
    ReplicaSpace **spaces = memory;
    for (size_t i = 0; i < count; i++) {
        (void)space_begin_change(replication, spaces[i], UINT64_MAX); /* never late */
        /* It may have become owned since the caller has looked. */
        if (dropped == DROP_COPIES && spaces[i]->role == SPACE_OWNED) {
            ASSERT(count == 1);
            space_end_change(replication, spaces[i]);
            pthread_mutex_unlock(&replication->lock);
            return error_set(err, STATUS_CONFLICT, SUB_NONE, "this node owns space %llu",
                             (unsigned long long)first);
        }
        take_out(replication, spaces[i]);
        if (spaces[i]->is_stored) {
            place_put(&partly, spaces[i]->space, STORED_PARTLY, &spaces[i]->applied);
            place_delete(&deleted, spaces[i]->space);
        }
    }
    pthread_mutex_unlock(&replication->lock);

    Status status = drop_stored(replication, first, last, &partly, &deleted, err);

    pthread_mutex_lock(&replication->lock);
    for (size_t i = 0; i < count; i++) {
        bool is_stored = spaces[i]->is_stored && status != STATUS_OK;
        *spaces[i] = (ReplicaSpace){.space = spaces[i]->space,
                                    .life = spaces[i]->life + 1,
                                    .is_stored = is_stored,
                                    .under_way = spaces[i]->under_way, /* is being refused */
                                    .is_changing = true};
        space_end_change(replication, spaces[i]);
    }
    pthread_mutex_unlock(&replication->lock);
    return status;
}

Status spaces_drop(Replication *replication, StoreSpace first, StoreSpace last, Error *err)
{
    return drop(replication, first, last, DROP_OWNED_TOO, err);
}

Status space_drop_copy(Replication *replication, StoreSpace space, Error *err)
{
    return drop(replication, space, space, DROP_COPIES, err);
}

Status replication_forget(Replication *replication, StoreSpace space, Error *err)
{
    return space_drop_copy(replication, space, err);
}
