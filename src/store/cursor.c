/* cursor.c - cursors: the engine's keys with a transaction's own writes laid over them.
 *
 * A cursor stands on a key or in a gap between keys. Every gap can be named by a key: "before k"
 * is the gap of k, "after k" is the gap of k followed by a zero byte, which is the very next key in
 * byte order. So fresh cursors, seeks, both ends and changes of direction are handled alike: as a
 * gap and a direction, from which both sides (the engine and the tree) seek. A step in the same
 * direction moves only the sides that stand on the last key.
 *
 * A plain cursor has an empty tree.
 *
 * I10: 'from' and 'to' are full keys of one space, except in store_next_space.
 */
#include "base/encoding.h"
#include "base/mem.h"
#include "store/store_int.h"

typedef enum Direction { DIRECTION_NONE, DIRECTION_UP, DIRECTION_DOWN } Direction;

struct StoreCursor {
    Store *store;
    EngineCursor *base;
    Tree writes; /* our own reference */
    Slice from;  /* full keys; in 'memory' */
    Slice to;

    /* With DIRECTION_NONE the cursor is in 'gap', or fresh. Otherwise it is on 'key', and each side
     * stands on its nearest key in that direction, 'key' included. */
    Direction direction;
    bool fresh;
    bool is_group;
    FullKey *gap_memory; /* made when it is first needed */
    Slice gap;
    Slice key;

    /* After a failed move the engine's position is unknown: every step fails until the next
     * store_cursor_seek. */
    Status broken;

    bool base_found;
    bool base_hidden; /* a merged value that is empty: see merge_read */
    EngineItem base_item;
    TreeEntry *own; /* NULL if there is none */

    char memory[];
};

static Slice clamp(const StoreCursor *cursor, Slice key);
static void stand_in_gap(StoreCursor *cursor, Slice key, bool after);
static Status step(StoreCursor *cursor, Direction direction, Slice *key, Slice *value, bool *found,
                   Error *err);

static Slice keep(char **memory, Slice key)
{
    char *start = *memory;
    memcpy(start, key.ptr, key.len);
    *memory += key.len;
    return slice_make(start, key.len);
}

static StoreCursor *open_between(Store *store, const StoreSnapshot *snapshot, Slice first,
                                 Slice last, bool is_group)
{
    ASSERT(slice_compare(first, last) <= 0);
    ASSERT(snapshot == NULL || snapshot->engine == store->engine);
    StoreCursor *cursor = mem_alloc(sizeof(StoreCursor) + first.len + last.len);
    char *memory = cursor->memory;
    cursor->store = store;
    cursor->from = keep(&memory, first);
    cursor->to = keep(&memory, last);
    cursor->fresh = true;
    cursor->is_group = is_group;
    cursor->base = store->engine->ops->cursor_open(store->engine, snapshot, cursor->from,
                                                   cursor->to, is_group);
    return cursor;
}

StoreCursor *cursor_open(Store *store, const StoreSnapshot *snapshot, const Tree *writes,
                         StoreSpace space, Slice from, Slice to)
{
    FullKey first_memory, last_memory;
    Slice first = full_key(&first_memory, space, from);
    Slice last = to.len > 0 ? full_key(&last_memory, space, to) : full_key_end(&last_memory, space);
    if (slice_compare(first, last) > 0)
        last = first; /* an upside-down range is an empty one; engines never see it */
    StoreCursor *cursor = open_between(store, snapshot, first, last, false);
    if (writes != NULL)
        cursor->writes = tree_copy(writes);
    return cursor;
}

StoreCursor *cursor_open_group(Store *store, const StoreSnapshot *snapshot, StoreSpace space,
                               Slice head)
{
    FullKey first, last;
    size_t len = full_key(&first, space, head).len;
    const StoreMerge *merge = merge_of(store->engine->merge, slice_make(first.bytes, len));
    ASSERT(merge != NULL);
    ASSERT(head.len + merge->tail_bytes <= STORE_KEY_BYTES_MAX);
    (void)full_key(&last, space, head);
    memset(first.bytes + len, 0, merge->tail_bytes);
    memset(last.bytes + len, 0xFF, merge->tail_bytes);
    len += merge->tail_bytes;
    last.bytes[len] = 0; /* the first key after the highest tail */
    return open_between(store, snapshot, slice_make(first.bytes, len),
                        slice_make(last.bytes, len + 1), true);
}

Status store_cursor_next(StoreCursor *cursor, Slice *key, Slice *value, bool *found, Error *err)
{
    return step(cursor, DIRECTION_UP, key, value, found, err);
}

Status store_cursor_prev(StoreCursor *cursor, Slice *key, Slice *value, bool *found, Error *err)
{
    ASSERT(!cursor->is_group);
    return step(cursor, DIRECTION_DOWN, key, value, found, err);
}

void store_cursor_seek(StoreCursor *cursor, Slice key)
{
    /* The lower bound is always in the cursor's space. */
    FullKey full;
    Slice whole = full_key(&full, be64_get(cursor->from.ptr), key);
    stand_in_gap(cursor, clamp(cursor, whole), false);
    cursor->broken = STATUS_OK;
}

Status store_next_space(Store *store, StoreSpace from, StoreSpace *space, bool *found, Error *err)
{
    FullKey first, last;
    AUTO(store_cursor_close)
    StoreCursor *cursor = open_between(store, NULL, full_key(&first, from, SLICE_EMPTY),
                                       full_key_end(&last, STORE_SPACE_MAX), false);
    Slice key;
    Slice value;
    TRY(step(cursor, DIRECTION_UP, &key, &value, found, err));
    if (*found)
        *space = be64_get(cursor->key.ptr);
    return STATUS_OK;
}

void store_cursor_close(StoreCursor *cursor)
{
    if (cursor == NULL)
        return;
    cursor->store->engine->ops->cursor_close(cursor->base);
    tree_done(&cursor->writes);
    mem_free(cursor->gap_memory);
    mem_free(cursor);
}

static Slice clamp(const StoreCursor *cursor, Slice key)
{
    if (slice_compare(key, cursor->from) < 0)
        return cursor->from;
    return slice_compare(key, cursor->to) > 0 ? cursor->to : key;
}

/* 'key' may be in the memory of a side, so it is copied before that side moves. */
static void stand_in_gap(StoreCursor *cursor, Slice key, bool after)
{
    if (cursor->gap_memory == NULL)
        cursor->gap_memory = mem_realloc(NULL, sizeof(FullKey));
    ASSERT(key.len + after <= FULL_KEY_BYTES_MAX);
    memcpy(cursor->gap_memory->bytes, key.ptr, key.len);
    if (after)
        cursor->gap_memory->bytes[key.len] = '\0';
    cursor->gap = slice_make(cursor->gap_memory->bytes, key.len + after);
    cursor->direction = DIRECTION_NONE;
    cursor->fresh = false;
}

/* I10 */
static bool is_inside(const StoreCursor *cursor)
{
    return slice_compare(cursor->base_item.key, cursor->from) >= 0 &&
           slice_compare(cursor->base_item.key, cursor->to) < 0;
}

static Status move_base(StoreCursor *cursor, EngineMove move, Slice key, Error *err)
{
    Store *store = cursor->store;
    Status status = store->engine->ops->cursor_move(cursor->base, move, key, &cursor->base_item,
                                                    &cursor->base_found, err);
    cursor->base_hidden = false;
    if (status == STATUS_OK && cursor->base_found)
        status = merge_read(store->engine->merge, cursor->base_item.key, &cursor->base_item.value,
                            &cursor->base_hidden, err);
    DEBUG_ASSERT(status != STATUS_OK || !cursor->base_found || is_inside(cursor));
    cursor->broken = store_note_read(store, status, err);
    return cursor->broken;
}

static TreeEntry *within(const StoreCursor *cursor, TreeEntry *entry)
{
    if (entry == NULL || slice_compare(tree_entry_key(entry), cursor->from) < 0)
        return NULL;
    return slice_compare(tree_entry_key(entry), cursor->to) < 0 ? entry : NULL;
}

/* From the gap: both sides to their nearest key. */
static Status seek_both(StoreCursor *cursor, Direction direction, Error *err)
{
    bool up = direction == DIRECTION_UP;
    Slice gap = cursor->fresh ? (up ? cursor->from : cursor->to) : cursor->gap;
    TRY(move_base(cursor, up ? ENGINE_AT_OR_AFTER : ENGINE_BEFORE, gap, err));
    cursor->own = within(cursor, up ? tree_at_or_after(&cursor->writes, gap)
                                    : tree_before(&cursor->writes, gap));
    return STATUS_OK;
}

/* From the key: on in the same direction, with the sides that stand on it. */
static Status leave_key(StoreCursor *cursor, Error *err)
{
    bool up = cursor->direction == DIRECTION_UP;
    Slice key = cursor->key;
    bool base_on = cursor->base_found && slice_equal(cursor->base_item.key, key);
    bool own_on = cursor->own != NULL && slice_equal(tree_entry_key(cursor->own), key);
    /* The tree moves first: 'key' may be in the engine's memory, which changes with its move. */
    if (own_on)
        cursor->own = within(cursor, up ? tree_after(&cursor->writes, key)
                                        : tree_before(&cursor->writes, key));
    if (base_on)
        TRY(move_base(cursor, up ? ENGINE_NEXT : ENGINE_PREV, SLICE_EMPTY, err));
    return STATUS_OK;
}

/* The item of the nearer side; an own write hides the engine's. False at the end. */
static bool nearest(const StoreCursor *cursor, Direction direction, EngineItem *item, bool *deleted)
{
    if (!cursor->base_found && cursor->own == NULL)
        return false;
    bool take_own = cursor->own != NULL;
    if (take_own && cursor->base_found) {
        int order = slice_compare(tree_entry_key(cursor->own), cursor->base_item.key);
        take_own = direction == DIRECTION_UP ? order <= 0 : order >= 0;
    }
    *deleted = take_own ? cursor->own->deleted : cursor->base_hidden;
    if (take_own)
        *item = (EngineItem){tree_entry_key(cursor->own), tree_entry_value(cursor->own)};
    else
        *item = cursor->base_item;
    return true;
}

/* Moves to the next key in 'direction', also to one that is deleted or has an empty value. */
static Status advance(StoreCursor *cursor, Direction direction, EngineItem *item, bool *deleted,
                      bool *found, Error *err)
{
    if (cursor->direction != DIRECTION_NONE && cursor->direction != direction)
        stand_in_gap(cursor, cursor->key, direction == DIRECTION_UP);
    if (cursor->direction == DIRECTION_NONE)
        TRY(seek_both(cursor, direction, err));
    else
        TRY(leave_key(cursor, err));
    cursor->direction = direction;
    cursor->fresh = false;
    *found = nearest(cursor, direction, item, deleted);
    if (*found)
        cursor->key = item->key;
    return STATUS_OK;
}

static Status step(StoreCursor *cursor, Direction direction, Slice *key, Slice *value, bool *found,
                   Error *err)
{
    if (cursor->broken != STATUS_OK)
        return error_set(err, cursor->broken, SUB_NONE, "the cursor has failed before");
    EngineItem item = {0};
    bool deleted = false;
    bool any = false;
    do {
        TRY(advance(cursor, direction, &item, &deleted, &any, err));
    } while (any && deleted);
    *found = any;
    if (!any) {
        /* Past the end: the way back begins at the bound itself. */
        stand_in_gap(cursor, direction == DIRECTION_UP ? cursor->to : cursor->from, false);
        return STATUS_OK;
    }
    *key = slice_from(item.key, SPACE_BYTES);
    *value = item.value;
    return STATUS_OK;
}
