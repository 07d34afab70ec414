/* record_saved.c - the records of saved states, and of containers that are kept for them.
 *
 *     | 0x0B | state u32 |                             a saved state
 *     | 0x0B | state u32 | key of a record.c record |  that record as it was
 *     | 0x0C | database u32 | number u32 |             a container that was dropped, but is in a
 *                                                      saved state: as its own record was
 *
 * What was saved is copied as it lies, so that a kind of record needs no code of its own here.
 */
#include "base/array.h"
#include "base/encoding.h"
#include "base/mem.h"
#include "catalog/record_int.h"
#include "catalog/snapshot.h"

enum { HEAD_BYTES = 1 + 4, KEPT_BYTES = 1 + 4 + 4, SAVED_KEY_BYTES_MAX = 64 };

/* Of a database, by its number; offers have another key. */
static const uint8_t SAVED_KINDS[] = {RECORD_KIND_DATABASE, RECORD_KIND_CONTAINER,
                                      RECORD_KIND_KEY,      RECORD_KIND_SCRIPT,
                                      RECORD_KIND_USER,     RECORD_KIND_PERMISSION};

typedef struct SavedKey {
    uint8_t bytes[SAVED_KEY_BYTES_MAX];
    size_t len;
} SavedKey;

static SavedKey saved_key(uint32_t state, Slice inner)
{
    SavedKey key = {.bytes = {RECORD_KIND_SAVED}, .len = HEAD_BYTES + inner.len};
    ASSERT(key.len <= SAVED_KEY_BYTES_MAX);
    be32_put(key.bytes + 1, state);
    if (inner.len > 0)
        memcpy(key.bytes + HEAD_BYTES, inner.ptr, inner.len);
    return key;
}

static Slice key_bytes(const SavedKey *key)
{
    return slice_make(key->bytes, key->len);
}

/* The keys that begin with these bytes are those of ['prefix', '*to'). */
static SavedKey key_after(Slice prefix)
{
    SavedKey to = {.len = prefix.len};
    memcpy(to.bytes, prefix.ptr, prefix.len);
    while (to.len > 1 && to.bytes[to.len - 1] == 0xFF)
        to.len--;
    to.bytes[to.len - 1]++;
    return to;
}

/* ---- writing ---- */

void record_put_saved(StoreTxn *txn, const SavedRecord *record)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1024);
    JsonBuilder b;
    json_build(&b, &arena);
    json_begin_object(&b);
    json_key(&b, SLICE("v"));
    json_add_i64(&b, 1);
    json_key(&b, SLICE("name"));
    json_add_string(&b, record->name);
    json_key(&b, SLICE("databaseId"));
    json_add_string(&b, record->database_id);
    json_key(&b, SLICE("database"));
    json_add_i64(&b, record->database);
    json_key(&b, SLICE("ts"));
    json_add_i64(&b, record->saved_at_s);
    json_key(&b, SLICE("restoring"));
    json_add_bool(&b, record->is_restoring);
    json_end(&b);
    SavedKey key = saved_key(record->number, SLICE_EMPTY);
    store_txn_put(txn, SPACE_CATALOG, key_bytes(&key), json_bytes(&arena, json_built(&b)));
}

/* Keys and values, copied, because writing would disturb a cursor. */
typedef struct Copies {
    Arena arena;
    Slice *keys;
    Slice *values;
    size_t count;
    size_t capacity;
} Copies;

static void copies_done(Copies *copies)
{
    arena_done(&copies->arena);
    mem_free(copies->keys);
    mem_free(copies->values);
}
DEFINE_AUTO_VALUE(Copies, copies_done)

static Status copy_prefix(StoreTxn *txn, Slice prefix, Copies *out, Error *err)
{
    SavedKey to = key_after(prefix);
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_txn_cursor_open(txn, SPACE_CATALOG, prefix, key_bytes(&to));
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        size_t capacity = out->capacity;
        ARRAY_GROW(out->values, out->count, capacity, 64);
        ARRAY_GROW(out->keys, out->count, out->capacity, 64);
        out->keys[out->count] = arena_copy(&out->arena, key);
        out->values[out->count++] = arena_copy(&out->arena, value);
    }
}

static Status copy_children(StoreTxn *txn, uint8_t kind, uint32_t number, Copies *out, Error *err)
{
    uint8_t prefix[1 + 4] = {kind};
    be32_put(prefix + 1, number);
    return copy_prefix(txn, slice_make(prefix, sizeof(prefix)), out, err);
}

Status record_copy_saved(StoreTxn *txn, uint32_t state, const Snapshot *snapshot,
                         const Database *database, Error *err)
{
    uint32_t number = database->info.number;
    AUTO(copies_done) Copies copies = {0};
    arena_init(&copies.arena, ARENA_LARGE_BYTES);
    for (size_t i = 0; i < sizeof(SAVED_KINDS); i++)
        TRY(copy_children(txn, SAVED_KINDS[i], number, &copies, err));
    if (database->offer != 0)
        TRY(copy_children(txn, RECORD_KIND_OFFER, database->offer, &copies, err));
    const Container *container;
    for (uint32_t from = 0; (container = snapshot_next_container(snapshot, number, from)) != NULL;
         from = container->info.number + 1) {
        if (container->offer != 0)
            TRY(copy_children(txn, RECORD_KIND_OFFER, container->offer, &copies, err));
    }
    for (size_t i = 0; i < copies.count; i++) {
        SavedKey key = saved_key(state, copies.keys[i]);
        store_txn_put(txn, SPACE_CATALOG, key_bytes(&key), copies.values[i]);
    }
    return STATUS_OK;
}

Status record_delete_saved(StoreTxn *txn, uint32_t state, Error *err)
{
    SavedKey prefix = saved_key(state, SLICE_EMPTY);
    AUTO(copies_done) Copies copies = {0};
    arena_init(&copies.arena, ARENA_LARGE_BYTES);
    TRY(copy_prefix(txn, key_bytes(&prefix), &copies, err));
    for (size_t i = 0; i < copies.count; i++)
        store_txn_delete(txn, SPACE_CATALOG, copies.keys[i]);
    return STATUS_OK;
}

static void kept_key(uint8_t key[KEPT_BYTES], uint32_t database, uint32_t container)
{
    key[0] = RECORD_KIND_KEPT;
    be32_put(key + 1, database);
    be32_put(key + 5, container);
}

void record_delete_kept(StoreTxn *txn, uint32_t database, uint32_t container)
{
    uint8_t key[KEPT_BYTES];
    kept_key(key, database, container);
    store_txn_delete(txn, SPACE_CATALOG, slice_make(key, sizeof(key)));
}

/* ---- reading ---- */

static Status damaged(Error *err)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE,
                     "a record of the catalogue (snapshot) is damaged");
}

static Status load_head(uint32_t state, Slice value, const RecordVisitor *visitor, Error *err)
{
    Json record;
    TRY(json_open(value, &record, err));
    Json name = json_get(record, SLICE("name"));
    Json database_id = json_get(record, SLICE("databaseId"));
    Json restoring = json_get(record, SLICE("restoring"));
    int64_t database = 0;
    int64_t ts_s = -1;
    Error why;
    int64_t version = 0;
    if (!json_to_i64(json_get(record, SLICE("v")), &version) || version > 1)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the catalogue was written by a newer version of orrery");
    if (!json_is(name, JSON_STRING) || !json_is(database_id, JSON_STRING) ||
        !json_is(restoring, JSON_BOOL) ||
        !json_to_i64(json_get(record, SLICE("database")), &database) || database <= 0 ||
        database > RID_DATABASE_MAX || !json_to_i64(json_get(record, SLICE("ts")), &ts_s) ||
        ts_s < 0 || ts_s > RECORD_TIME_S_MAX || json_string(database_id).len == 0 ||
        saved_name_check(json_string(name), &why) != STATUS_OK)
        return damaged(err);
    SavedRecord saved = {
        .number = state,
        .name = json_string(name),
        .database_id = json_string(database_id),
        .database = (uint32_t)database,
        .saved_at_s = ts_s,
        .is_restoring = json_bool(restoring),
    };
    return visitor->saved == NULL ? STATUS_OK : visitor->saved(visitor->ctx, &saved, err);
}

static bool can_be_saved(uint8_t kind)
{
    return kind == RECORD_KIND_OFFER || memchr(SAVED_KINDS, kind, sizeof(SAVED_KINDS)) != NULL;
}

Status record_load_saved(Slice key, Slice value, Arena *arena, const RecordVisitor *visitor,
                         Error *err)
{
    static const RecordVisitor nobody = {0};
    if (key.len < HEAD_BYTES)
        return damaged(err);
    uint32_t state = be32_get(key.ptr + 1);
    Slice inner = slice_from(key, HEAD_BYTES);
    if (inner.len == 0)
        return load_head(state, value, visitor, err);
    if (!can_be_saved((uint8_t)inner.ptr[0]))
        return damaged(err);
    TRY(record_read(inner, value, arena, &nobody, err)); /* a restore is to find it whole */
    if ((uint8_t)inner.ptr[0] != RECORD_KIND_CONTAINER || visitor->saved_container == NULL)
        return STATUS_OK;
    return visitor->saved_container(visitor->ctx, state, be32_get(inner.ptr + 1),
                                    be32_get(inner.ptr + 5), err);
}

Status record_load_kept(Slice key, Slice value, Arena *arena, const RecordVisitor *visitor,
                        Error *err)
{
    uint8_t own[KEPT_BYTES];
    if (key.len != KEPT_BYTES)
        return damaged(err);
    if (visitor->kept == NULL)
        return STATUS_OK;
    memcpy(own, key.ptr, sizeof(own));
    own[0] = RECORD_KIND_CONTAINER;
    RecordVisitor kept = {.ctx = visitor->ctx, .container = visitor->kept};
    return record_read(slice_make(own, sizeof(own)), value, arena, &kept, err);
}

Status record_read_saved(StoreTxn *txn, uint32_t state, const RecordVisitor *visitor, Error *err)
{
    SavedKey prefix = saved_key(state, SLICE_EMPTY);
    AUTO(copies_done) Copies copies = {0};
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_SMALL_BYTES);
    arena_init(&copies.arena, ARENA_LARGE_BYTES);
    TRY(copy_prefix(txn, key_bytes(&prefix), &copies, err));
    for (size_t i = 0; i < copies.count; i++) {
        if (copies.keys[i].len == HEAD_BYTES)
            continue;
        arena_reset(&arena);
        TRY(record_read(slice_from(copies.keys[i], HEAD_BYTES), copies.values[i], &arena, visitor,
                        err));
    }
    return STATUS_OK;
}

Status record_read_kept(StoreTxn *txn, uint32_t database, uint32_t container, Arena *arena,
                        const RecordVisitor *visitor, Error *err)
{
    uint8_t key[KEPT_BYTES];
    kept_key(key, database, container);
    AUTO(store_value_release) StoreValue value = {0};
    bool found = false;
    TRY(store_txn_get(txn, SPACE_CATALOG, slice_make(key, sizeof(key)), &value, &found, err));
    if (!found)
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "container %u of a snapshot is gone",
                         container);
    return record_load_kept(slice_make(key, sizeof(key)), arena_copy(arena, value.data), arena,
                            visitor, err);
}
