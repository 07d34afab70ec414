/* index_reader.c - see index_reader.h.
 *
 * The chunks of one value are neighbours, and no value is a prefix of another one (I1). So bounds
 * on values are bounds on keys, although a chunk number follows each value: two values differ
 * before it.
 *
 * The budget is asked for each key. Finding that there is no further key costs nothing, so that a
 * range of 'n' keys is complete with a budget of 'n'.
 */
#include "index/index_reader.h"

#include "base/array.h"
#include "base/mem.h"
#include "index/set_int.h"

enum { KEYS_PER_CLOCK = 256 }; /* the clock is read once for this many keys */

static_assert(TERM_KEY_HEAD + TERM_VALUE_BYTES_MAX + TERM_CHUNK_BYTES <= STORE_KEY_BYTES_MAX,
              "every term fits into a key");

/* ---- keys of a range ---- */

/* Where the keys of 'value' begin, on its path. A value may come from a client's continuation, and
 * be of any length: it is cut to the longest that a term can have. */
static void key_at(Buf *out, TermPath path, Slice value)
{
    term_key(out, path, slice_first(value, TERM_VALUE_BYTES_MAX), 0);
    out->len -= TERM_CHUNK_BYTES;
}

/* Where the keys of all values that begin with 'value' end. */
static void key_after(Buf *out, TermPath path, Slice value)
{
    key_at(out, path, value);
    term_after(out);
}

typedef struct Bounds {
    Buf from;
    Buf to;
} Bounds;

static void bounds_done(Bounds *bounds)
{
    buf_done(&bounds->from);
    buf_done(&bounds->to);
}
DEFINE_AUTO_VALUE(Bounds, bounds_done)

static void bounds_init(Bounds *bounds, IndexRange range)
{
    buf_init(&bounds->from, STORE_KEY_BYTES_MAX);
    buf_init(&bounds->to, STORE_KEY_BYTES_MAX);
    key_at(&bounds->from, range.path, range.from);
    if (range.to.len > 0)
        key_at(&bounds->to, range.path, range.to);
    else
        key_after(&bounds->to, range.path, SLICE_EMPTY);
}

static StoreCursor *open_cursor(const IndexReader *reader, const Bounds *bounds)
{
    return store_cursor_open(reader->store, reader->snapshot, reader->space,
                             buf_view(&bounds->from), buf_view(&bounds->to));
}

/* A cursor over the chunks of one value. */
static StoreCursor *open_value(const IndexReader *reader, TermPath path, Slice value)
{
    AUTO(buf_done) Buf head;
    buf_init(&head, STORE_KEY_BYTES_MAX);
    key_at(&head, path, value);
    return store_group_open(reader->store, reader->snapshot, reader->space, buf_view(&head));
}

/* One chunk as it was read; slices live until the cursor moves. */
typedef struct Entry {
    Slice key;
    Slice value; /* the encoded one, in the key */
    Slice set;
    uint64_t high;
} Entry;

static Status read_entry(StoreCursor *cursor, bool is_down, Entry *out, bool *found, Error *err)
{
    Entry entry = {0};
    TRY(is_down ? store_cursor_prev(cursor, &entry.key, &entry.set, found, err)
                : store_cursor_next(cursor, &entry.key, &entry.set, found, err));
    TermPath path;
    if (*found && !term_key_read(entry.key, &path, &entry.value, &entry.high))
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the index is damaged: a key of %zu bytes is none of it", entry.key.len);
    *out = entry;
    return STATUS_OK;
}

/* Takes one key from the budget; false if there is none left. */
static bool pay_key(IndexReader *reader)
{
    IndexBudget *budget = reader->budget;
    ASSERT(budget->deadline_us == 0 || budget->clock != NULL);
    if (budget->deadline_us != 0 && budget->keys_left % KEYS_PER_CLOCK == 0 &&
        clock_monotonic_us(budget->clock) >= budget->deadline_us)
        budget->keys_left = 0;
    if (budget->keys_left == 0) {
        budget->was_short = true;
        return false;
    }
    budget->keys_left--;
    reader->keys_read++;
    return true;
}

/* ---- sets ---- */

static void pay_bytes(IndexReader *reader, size_t bytes)
{
    size_t *left = &reader->budget->bytes_left;
    *left -= bytes < *left ? bytes : *left;
}

static Status read_chunks(IndexReader *reader, StoreCursor *cursor, Arena *arena, NumberSet *out,
                          bool *complete, Error *err)
{
    SetBuilder *builder = set_builder_new(arena);
    bool is_paid = true;
    while (true) {
        Entry entry;
        bool found = false;
        TRY(read_entry(cursor, false, &entry, &found, err));
        if (!found)
            break;
        is_paid = set_builder_bytes(builder) <= reader->budget->bytes_left && pay_key(reader);
        if (!is_paid)
            break;
        TRY(set_builder_add_value(builder, entry.high, entry.set, err));
    }
    *out = (NumberSet){0};
    if (is_paid)
        set_builder_finish(builder, out);
    *complete = is_paid;
    pay_bytes(reader, set_builder_bytes(builder));
    return STATUS_OK;
}

Status index_read_range(IndexReader *reader, IndexRange range, Arena *arena, NumberSet *out,
                        bool *complete, Error *err)
{
    AUTO(bounds_done) Bounds bounds;
    bounds_init(&bounds, range);
    AUTO(store_cursor_close) StoreCursor *cursor = open_cursor(reader, &bounds);
    return read_chunks(reader, cursor, arena, out, complete, err);
}

Status index_read_value(IndexReader *reader, TermPath path, Slice value, Arena *arena,
                        NumberSet *out, bool *complete, Error *err)
{
    AUTO(store_cursor_close) StoreCursor *cursor = open_value(reader, path, value);
    return read_chunks(reader, cursor, arena, out, complete, err);
}

/* The chunk 'high' of a value, if there is one. */
static Status read_chunk(StoreCursor *cursor, TermPath path, Slice value, uint64_t high, Entry *out,
                         bool *found, Error *err)
{
    AUTO(buf_done) Buf key;
    buf_init(&key, STORE_KEY_BYTES_MAX);
    term_key(&key, path, slice_first(value, TERM_VALUE_BYTES_MAX), high);
    store_cursor_seek(cursor, buf_view(&key));
    TRY(read_entry(cursor, false, out, found, err));
    *found = *found && out->high == high;
    return STATUS_OK;
}

Status index_read_value_within(IndexReader *reader, TermPath path, Slice value,
                               const NumberSet *within, Arena *arena, NumberSet *out,
                               bool *complete, Error *err)
{
    AUTO(store_cursor_close) StoreCursor *cursor = open_value(reader, path, value);
    SetBuilder *builder = set_builder_new(arena);
    *out = (NumberSet){0};
    *complete = true;
    for (size_t i = 0; i < within->chunk_count && *complete; i++) {
        Entry entry;
        bool found = false;
        TRY(read_chunk(cursor, path, value, within->chunks[i].high, &entry, &found, err));
        *complete = set_builder_bytes(builder) <= reader->budget->bytes_left && pay_key(reader);
        if (found && *complete)
            TRY(set_builder_add_value(builder, entry.high, entry.set, err));
    }
    NumberSet chunks;
    set_builder_finish(builder, &chunks);
    if (*complete)
        set_and(arena, &chunks, within, out);
    pay_bytes(reader, set_builder_bytes(builder));
    return STATUS_OK;
}

/* ---- estimates ---- */

typedef struct Sample {
    uint64_t keys;
    uint64_t items;
    bool is_all;
} Sample;

static Status read_sample(IndexReader *reader, IndexRange range, uint32_t keys_max, Sample *out,
                          Error *err)
{
    AUTO(bounds_done) Bounds bounds;
    bounds_init(&bounds, range);
    AUTO(store_cursor_close) StoreCursor *cursor = open_cursor(reader, &bounds);
    Sample sample = {0};
    while (true) {
        Entry entry;
        bool found = false;
        TRY(read_entry(cursor, false, &entry, &found, err));
        sample.is_all = !found;
        if (!found || sample.keys == keys_max || !pay_key(reader))
            break;
        size_t count = set_value_count(entry.set);
        if (count == SIZE_MAX)
            return set_value_damaged(entry.set, err);
        sample.keys++;
        sample.items += count;
    }
    *out = sample;
    return STATUS_OK;
}

/* Uses the first sample that has at most 'keys_max' keys in the range. */
static Status estimate_many(IndexReader *reader, IndexRange range, uint32_t keys_max,
                            IndexEstimate *out, Error *err)
{
    TermPath path = range.path;
    Sample sample = {0};
    unsigned bits = TERM_SAMPLE_BITS;
    for (unsigned i = 0; i < TERM_SAMPLES && !sample.is_all; i++) {
        range.path = term_path_sample(path, i);
        bits = TERM_SAMPLE_BITS + i * TERM_SAMPLE_MORE_BITS;
        TRY(read_sample(reader, range, keys_max, &sample, err));
    }
    *out = (IndexEstimate){
        .keys = sample.keys << bits,
        .items = sample.items << bits,
        .path = range.path,
        .counted = sample.items,
    };
    return STATUS_OK;
}

Status index_estimate(IndexReader *reader, IndexRange range, uint32_t keys_max, IndexEstimate *out,
                      Error *err)
{
    Sample first = {0};
    TRY(read_sample(reader, range, keys_max, &first, err));
    if (first.is_all) {
        *out = (IndexEstimate){
            .keys = first.keys,
            .items = first.items,
            .is_exact = true,
            .path = range.path,
            .counted = first.items,
        };
        return STATUS_OK;
    }
    IndexEstimate many;
    TRY(estimate_many(reader, range, keys_max, &many, err));
    /* There is more than was read: assumes twice as much if the samples say less. */
    uint64_t keys_min = first.keys == 0 ? 2 : 2 * first.keys;
    if (many.keys < keys_min) {
        many.keys = keys_min;
        many.items = first.items == 0 ? 2 : 2 * first.items;
    }
    *out = many;
    return STATUS_OK;
}

/* ---- walks ---- */

struct IndexWalk {
    IndexReader *reader;
    StoreCursor *cursor;
    TermPath path;
    bool is_down;
    bool has_ahead; /* the cursor is at 'ahead', which is not paid for yet */
    Entry ahead;
    Buf value;   /* that is being collected */
    Arena arena; /* its chunks' numbers */
    SetChunk *chunks;
    size_t chunk_count;
    size_t chunk_room;
};

Status index_walk_open(IndexReader *reader, IndexRange range, bool is_down, IndexWalk **out,
                       Error *err)
{
    (void)err; /* opening a cursor reads nothing */
    AUTO(bounds_done) Bounds bounds;
    bounds_init(&bounds, range);
    IndexWalk *walk = MEM_NEW(IndexWalk);
    walk->reader = reader;
    walk->path = range.path;
    walk->is_down = is_down;
    walk->cursor = open_cursor(reader, &bounds);
    buf_init(&walk->value, STORE_KEY_BYTES_MAX);
    arena_init(&walk->arena, ARENA_SMALL_BYTES);
    *out = walk;
    return STATUS_OK;
}

void index_walk_close(IndexWalk *walk)
{
    if (walk == NULL)
        return;
    store_cursor_close(walk->cursor);
    buf_done(&walk->value);
    arena_done(&walk->arena);
    mem_free(walk->chunks);
    mem_free(walk);
}

void index_walk_seek(IndexWalk *walk, Slice value)
{
    AUTO(buf_done) Buf key;
    buf_init(&key, STORE_KEY_BYTES_MAX);
    if (walk->is_down)
        key_after(&key, walk->path, value);
    else
        key_at(&key, walk->path, value);
    walk->has_ahead = false;
    store_cursor_seek(walk->cursor, buf_view(&key));
}

/* Reads the next chunk into 'ahead', unless it is there already. */
static Status look_ahead(IndexWalk *walk, Error *err)
{
    if (walk->has_ahead)
        return STATUS_OK;
    return read_entry(walk->cursor, walk->is_down, &walk->ahead, &walk->has_ahead, err);
}

/* Keeps 'ahead'. '*paid' is false if it does not fit into the budget. */
static Status take_chunk(IndexWalk *walk, bool *paid, Error *err)
{
    ARRAY_GROW(walk->chunks, walk->chunk_count, walk->chunk_room, 4);
    size_t bytes = arena_used(&walk->arena) + walk->chunk_count * sizeof(SetChunk);
    *paid = bytes <= walk->reader->budget->bytes_left && pay_key(walk->reader);
    if (!*paid)
        return STATUS_OK;
    SetChunk *chunk = &walk->chunks[walk->chunk_count];
    if (!set_chunk_load(&walk->arena, walk->ahead.high, walk->ahead.set, chunk))
        return set_value_damaged(walk->ahead.set, err);
    walk->chunk_count += chunk->count > 0;
    walk->has_ahead = false;
    return STATUS_OK;
}

/* Keeps all chunks of the value of 'ahead'. Reads one chunk more, to see its end. */
static Status collect_value(IndexWalk *walk, bool *paid, Error *err)
{
    arena_reset(&walk->arena);
    walk->chunk_count = 0;
    buf_reset(&walk->value);
    buf_slice(&walk->value, walk->ahead.value);
    do {
        TRY(take_chunk(walk, paid, err));
        if (!*paid) {
            /* Half a set is of no use (I7): with more budget the value is read again. */
            index_walk_seek(walk, buf_view(&walk->value));
            return STATUS_OK;
        }
        TRY(look_ahead(walk, err));
    } while (walk->has_ahead && slice_equal(walk->ahead.value, buf_view(&walk->value)));
    return STATUS_OK;
}

static NumberSet collected_set(IndexWalk *walk)
{
    size_t count = walk->chunk_count;
    for (size_t i = 0; walk->is_down && i < count / 2; i++) {
        SetChunk other = walk->chunks[i];
        walk->chunks[i] = walk->chunks[count - 1 - i];
        walk->chunks[count - 1 - i] = other;
    }
    NumberSet set = {.chunks = walk->chunks, .chunk_count = count};
    for (size_t i = 0; i < count; i++)
        set.count += walk->chunks[i].count;
    return set;
}

Status index_walk_next(IndexWalk *walk, Slice *value, NumberSet *items, bool *found, bool *complete,
                       Error *err)
{
    bool paid = true;
    do {
        TRY(look_ahead(walk, err));
        if (walk->has_ahead)
            TRY(collect_value(walk, &paid, err));
        else
            walk->chunk_count = 0;
        /* The store may still keep a value whose numbers were all removed. */
    } while (paid && walk->has_ahead && walk->chunk_count == 0);
    *complete = paid;
    *found = paid && walk->chunk_count > 0;
    if (*found) {
        *value = buf_view(&walk->value);
        *items = collected_set(walk);
    }
    return STATUS_OK;
}

/* ---- paths ---- */

struct IndexPathWalk {
    IndexReader *reader;
    StoreCursor *cursor;
    bool is_last; /* no path can follow the one that was found last */
};

IndexPathWalk *index_path_walk_open(IndexReader *reader)
{
    static const char FIRST[] = {TERM_KIND};
    static const char AFTER[] = {TERM_KIND + 1};
    IndexPathWalk *walk = MEM_NEW(IndexPathWalk);
    walk->reader = reader;
    walk->cursor = store_cursor_open(reader->store, reader->snapshot, reader->space,
                                     slice_make(FIRST, 1), slice_make(AFTER, 1));
    return walk;
}

void index_path_walk_close(IndexPathWalk *walk)
{
    if (walk == NULL)
        return;
    store_cursor_close(walk->cursor);
    mem_free(walk);
}

Status index_path_walk_next(IndexPathWalk *walk, TermPath *path, bool *found, bool *complete,
                            Error *err)
{
    Entry entry = {0};
    bool is_there = false;
    *complete = true;
    if (!walk->is_last)
        TRY(read_entry(walk->cursor, false, &entry, &is_there, err));
    if (is_there && !pay_key(walk->reader)) {
        *complete = false;
        is_there = false;
    }
    *found = is_there;
    if (!is_there)
        return STATUS_OK;
    *path = be64_get(entry.key.ptr + 1);
    walk->is_last = *path == UINT64_MAX;
    if (!walk->is_last) {
        AUTO(buf_done) Buf next;
        buf_init(&next, STORE_KEY_BYTES_MAX);
        key_at(&next, *path + 1, SLICE_EMPTY);
        store_cursor_seek(walk->cursor, buf_view(&next));
    }
    return STATUS_OK;
}

Status index_path_items(IndexReader *reader, TermPath path, size_t max, uint64_t *numbers,
                        size_t *count, Error *err)
{
    AUTO(bounds_done) Bounds bounds;
    bounds_init(&bounds, (IndexRange){.path = path});
    AUTO(store_cursor_close) StoreCursor *cursor = open_cursor(reader, &bounds);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    size_t taken = 0;
    bool is_there = true;
    while (taken < max && is_there) {
        Entry entry;
        TRY(read_entry(cursor, false, &entry, &is_there, err));
        if (!is_there || !pay_key(reader))
            break;
        arena_reset(&arena);
        SetBuilder *builder = set_builder_new(&arena);
        TRY(set_builder_add_value(builder, entry.high, entry.set, err));
        NumberSet set;
        set_builder_finish(builder, &set);
        SetWalk walk = set_walk_up(&set, 0);
        while (taken < max && set_walk_next(&walk, &numbers[taken]))
            taken++;
    }
    *count = taken;
    return STATUS_OK;
}
