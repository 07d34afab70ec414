/* record.c - see record_int.h.
 *
 * Keys, in the catalogue's space; numbers are big-endian so that records of one parent are
 * together:
 *
 *     | 0x01 |                              counters
 *     | 0x02 | database u32 |               a database
 *     | 0x03 | database u32 | number u32 |  a container
 *     | 0x04 | offer u32 |                  an offer
 *     | 0x05 | first space u64 |            spaces to be emptied
 *     | 0x06 | database u32 | number u32 |  a client encryption key
 *     | 0x07 | database u32 | container u32 | kind u8 | number u32 |  a script, of a kind below
 *     | 0x09 | database u32 | number u32 |  a user
 *     | 0x0A | database u32 | user u32 | number u32 |  a permission
 *     | 0x0B | ... and | 0x0C | ...         saved states: see record_saved.c
 *
 * Keys that begin with 0x08 are merged by the store, in all its spaces, as partitions need it
 * (PARTITION_MERGE): the catalogue has none.
 *
 * A value is a binary JSON document (which carries a version byte of its own) with short names; "v"
 * is the version of the record. A reader ignores members that it does not know. A range has
 * "parents" only if it came from others, and a container "pending" only while a move is under way
 * and "before" only if it took the name of another one over.
 */
#include "catalog/record_int.h"

#include "base/encoding.h"
#include "catalog/epk_range.h"

enum { RECORD_VERSION = 1, KEY_BYTES_MAX = 16, ARENA_BLOCK = 4096 };

/* The kinds of scripts, as keys have them. */
static_assert(STORED_PROCEDURE == 0 && STORED_TRIGGER == 1 && STORED_FUNCTION == 2,
              "what is stored stays");

typedef struct Key {
    uint8_t bytes[KEY_BYTES_MAX];
    size_t len;
} Key;

static Key key_begin(uint8_t kind)
{
    Key key = {.len = 1};
    key.bytes[0] = kind;
    return key;
}

static Key key_u32(Key key, uint32_t number)
{
    be32_put(key.bytes + key.len, number);
    key.len += sizeof(number);
    return key;
}

static Key key_u8(Key key, uint8_t number)
{
    key.bytes[key.len++] = number;
    return key;
}

static Key key_u64(Key key, uint64_t number)
{
    be64_put(key.bytes + key.len, number);
    key.len += sizeof(number);
    return key;
}

static Slice key_slice(const Key *key)
{
    return slice_make(key->bytes, key->len);
}

static void add_u64(JsonBuilder *b, Slice name, uint64_t value)
{
    /* Numbers in documents are doubles, which are exact below 2^53. */
    ASSERT(value < (UINT64_C(1) << 53));
    json_key(b, name);
    json_add_i64(b, (int64_t)value);
}

static void add_flag(JsonBuilder *b, Slice name, bool value)
{
    json_key(b, name);
    json_add_bool(b, value);
}

/* A record that is being written. */
typedef struct Writer {
    Arena arena;
    JsonBuilder builder;
} Writer;

static JsonBuilder *begin(Writer *writer)
{
    arena_init(&writer->arena, ARENA_BLOCK);
    json_build(&writer->builder, &writer->arena);
    json_begin_object(&writer->builder);
    add_u64(&writer->builder, SLICE("v"), RECORD_VERSION);
    return &writer->builder;
}

/* Puts the record into the transaction, and frees the writer. */
static void finish(Writer *writer, StoreTxn *txn, Key key)
{
    json_end(&writer->builder);
    store_txn_put(txn, SPACE_CATALOG, key_slice(&key),
                  json_bytes(&writer->arena, json_built(&writer->builder)));
    arena_done(&writer->arena);
}

void record_put_counters(StoreTxn *txn, const CatalogCounters *counters)
{
    Writer writer;
    JsonBuilder *b = begin(&writer);
    add_u64(b, SLICE("lsn"), counters->lsn);
    add_u64(b, SLICE("database"), counters->database_next);
    add_u64(b, SLICE("container"), counters->container_next);
    add_u64(b, SLICE("offer"), counters->offer_next);
    add_u64(b, SLICE("key"), counters->key_next);
    add_u64(b, SLICE("script"), counters->script_next);
    add_u64(b, SLICE("user"), counters->user_next);
    add_u64(b, SLICE("permission"), counters->permission_next);
    add_u64(b, SLICE("saved"), counters->saved_next);
    add_u64(b, SLICE("space"), counters->space_next);
    add_flag(b, SLICE("serverless"), counters->is_serverless);
    finish(&writer, txn, key_begin(RECORD_KIND_COUNTERS));
}

void record_put_database(StoreTxn *txn, const DatabaseRecord *record)
{
    Writer writer;
    JsonBuilder *b = begin(&writer);
    json_key(b, SLICE("id"));
    json_add_string(b, record->id);
    add_u64(b, SLICE("lsn"), record->lsn);
    add_u64(b, SLICE("ts"), (uint64_t)record->ts_s);
    add_u64(b, SLICE("offer"), record->offer);
    add_u64(b, SLICE("partitions"), record->partitions);
    finish(&writer, txn, key_u32(key_begin(RECORD_KIND_DATABASE), record->number));
}

static void add_range(JsonBuilder *b, const PartitionRange *range)
{
    json_begin_object(b);
    add_u64(b, SLICE("id"), range->id);
    json_key(b, SLICE("min"));
    json_add_string(b, range->min);
    json_key(b, SLICE("max"));
    json_add_string(b, range->max);
    add_u64(b, SLICE("space"), range->space);
    add_u64(b, SLICE("lsn"), range->lsn);
    if (range->parent_count > 0) {
        json_key(b, SLICE("parents"));
        json_begin_array(b);
        for (size_t i = 0; i < range->parent_count; i++)
            json_add_i64(b, range->parents[i]);
        json_end(b);
    }
    json_end(b);
}

static void add_ranges(JsonBuilder *b, Slice name, const PartitionRange *ranges, size_t count)
{
    json_key(b, name);
    json_begin_array(b);
    for (size_t i = 0; i < count; i++)
        add_range(b, &ranges[i]);
    json_end(b);
}

static void put_container(StoreTxn *txn, uint8_t kind, const ContainerRecord *record)
{
    ASSERT(record->range_count > 0);
    ASSERT(record->range_count <= RANGES_MAX);
    ASSERT(record->ranges[0].min.len == 0); /* I4 */
    ASSERT(slice_equal(record->ranges[record->range_count - 1].max, EPK_MAX));
    Writer writer;
    JsonBuilder *b = begin(&writer);
    add_u64(b, SLICE("lsn"), record->lsn);
    add_u64(b, SLICE("ts"), (uint64_t)record->ts_s);
    add_u64(b, SLICE("offer"), record->offer);
    json_key(b, SLICE("definition"));
    json_add(b, record->definition);
    add_u64(b, SLICE("rangeNext"), record->range_next);
    add_u64(b, SLICE("rangesLsn"), record->ranges_lsn);
    add_ranges(b, SLICE("ranges"), record->ranges, record->range_count);
    if (record->pending_count > 0)
        add_ranges(b, SLICE("pending"), record->pending, record->pending_count);
    if (json_is(record->before, JSON_OBJECT)) {
        json_key(b, SLICE("before"));
        json_add(b, record->before);
    }
    finish(&writer, txn, key_u32(key_u32(key_begin(kind), record->database), record->number));
}

void record_put_container(StoreTxn *txn, const ContainerRecord *record)
{
    put_container(txn, RECORD_KIND_CONTAINER, record);
}

void record_put_kept(StoreTxn *txn, const ContainerRecord *record)
{
    put_container(txn, RECORD_KIND_KEPT, record);
}

void record_put_offer(StoreTxn *txn, const OfferRecord *record)
{
    Writer writer;
    JsonBuilder *b = begin(&writer);
    add_u64(b, SLICE("database"), record->database);
    add_u64(b, SLICE("container"), record->container);
    add_u64(b, SLICE("lsn"), record->lsn);
    add_u64(b, SLICE("ts"), (uint64_t)record->ts_s);
    add_flag(b, SLICE("autoscale"), record->provision.mode == PROVISION_AUTOSCALE);
    add_u64(b, SLICE("ru"), record->provision.ru);
    add_u64(b, SLICE("increment"), record->provision.increment_percent);
    add_u64(b, SLICE("ruEver"), record->ru_ever);
    add_u64(b, SLICE("storageEver"), record->storage_kb_ever);
    add_u64(b, SLICE("replacedAt"), (uint64_t)record->replaced_at_s);
    json_key(b, SLICE("buckets"));
    json_begin_array(b);
    for (size_t i = 0; i < BUDGET_BUCKETS_MAX; i++)
        json_add_i64(b, record->buckets.percent[i]);
    json_end(b);
    add_u64(b, SLICE("bucket"), record->buckets.chosen);
    finish(&writer, txn, key_u32(key_begin(RECORD_KIND_OFFER), record->number));
}

void record_put_key(StoreTxn *txn, const EncryptionKeyRecord *record)
{
    Writer writer;
    JsonBuilder *b = begin(&writer);
    add_u64(b, SLICE("lsn"), record->lsn);
    add_u64(b, SLICE("ts"), (uint64_t)record->ts_s);
    add_u64(b, SLICE("createdAt"), (uint64_t)record->created_at_s);
    json_key(b, SLICE("definition"));
    json_add(b, record->definition);
    finish(&writer, txn,
           key_u32(key_u32(key_begin(RECORD_KIND_KEY), record->database), record->number));
}

static Key script_key(StoredScriptGroup group, uint32_t number)
{
    Key key = key_u32(key_u32(key_begin(RECORD_KIND_SCRIPT), group.database), group.container);
    return key_u32(key_u8(key, (uint8_t)group.kind), number);
}

void record_put_script(StoreTxn *txn, const StoredScriptRecord *record)
{
    Writer writer;
    JsonBuilder *b = begin(&writer);
    add_u64(b, SLICE("lsn"), record->lsn);
    add_u64(b, SLICE("ts"), (uint64_t)record->ts_s);
    json_key(b, SLICE("definition"));
    json_add(b, record->definition);
    finish(&writer, txn, script_key(record->group, record->number));
}

static Key user_record_key(UserKey user)
{
    return key_u32(key_u32(key_begin(RECORD_KIND_USER), user.database), user.user);
}

static Key permission_key(UserKey owner, uint32_t number)
{
    Key key = key_u32(key_u32(key_begin(RECORD_KIND_PERMISSION), owner.database), owner.user);
    return key_u32(key, number);
}

void record_put_user(StoreTxn *txn, const UserRecord *record)
{
    Writer writer;
    JsonBuilder *b = begin(&writer);
    json_key(b, SLICE("id"));
    json_add_string(b, record->id);
    add_u64(b, SLICE("lsn"), record->lsn);
    add_u64(b, SLICE("ts"), (uint64_t)record->ts_s);
    finish(&writer, txn, user_record_key((UserKey){record->database, record->number}));
}

void record_put_permission(StoreTxn *txn, const PermissionRecord *record)
{
    Writer writer;
    JsonBuilder *b = begin(&writer);
    add_u64(b, SLICE("lsn"), record->lsn);
    add_u64(b, SLICE("granted"), record->granted_lsn);
    add_u64(b, SLICE("ts"), (uint64_t)record->ts_s);
    json_key(b, SLICE("definition"));
    json_add(b, record->definition);
    finish(&writer, txn, permission_key(record->owner, record->number));
}

void record_put_garbage(StoreTxn *txn, Garbage garbage)
{
    ASSERT(garbage.first >= SPACE_PARTITION_FIRST);
    ASSERT(garbage.first <= garbage.last);
    Writer writer;
    JsonBuilder *b = begin(&writer);
    add_u64(b, SLICE("last"), garbage.last);
    finish(&writer, txn, key_u64(key_begin(RECORD_KIND_GARBAGE), garbage.first));
}

static void delete_key(StoreTxn *txn, Key key)
{
    store_txn_delete(txn, SPACE_CATALOG, key_slice(&key));
}

void record_delete_database(StoreTxn *txn, uint32_t database)
{
    delete_key(txn, key_u32(key_begin(RECORD_KIND_DATABASE), database));
}

void record_delete_container(StoreTxn *txn, uint32_t database, uint32_t container)
{
    delete_key(txn, key_u32(key_u32(key_begin(RECORD_KIND_CONTAINER), database), container));
}

void record_delete_offer(StoreTxn *txn, uint32_t offer)
{
    delete_key(txn, key_u32(key_begin(RECORD_KIND_OFFER), offer));
}

void record_delete_key(StoreTxn *txn, uint32_t database, uint32_t key)
{
    delete_key(txn, key_u32(key_u32(key_begin(RECORD_KIND_KEY), database), key));
}

void record_delete_script(StoreTxn *txn, StoredScriptGroup group, uint32_t script)
{
    delete_key(txn, script_key(group, script));
}

void record_delete_user(StoreTxn *txn, UserKey user)
{
    delete_key(txn, user_record_key(user));
}

void record_delete_permission(StoreTxn *txn, UserKey owner, uint32_t permission)
{
    delete_key(txn, permission_key(owner, permission));
}

void record_delete_garbage(StoreTxn *txn, Garbage garbage)
{
    delete_key(txn, key_u64(key_begin(RECORD_KIND_GARBAGE), garbage.first));
}

/* Reading. A Reader remembers the first thing that is missing or out of bounds, so that a decoder
 * reads like the record and checks once at its end. */
typedef struct Reader {
    Json record;
    const char *wrong; /* the member that is missing or wrong; NULL if there is none */
} Reader;

static uint64_t read_u64(Reader *reader, Json from, const char *name, uint64_t max)
{
    int64_t value = 0;
    if (!json_to_i64(json_get(from, slice_from_cstr(name)), &value) || value < 0 ||
        (uint64_t)value > max) {
        reader->wrong = name;
        return 0;
    }
    return (uint64_t)value;
}

/* For a member that older records do not have. */
static uint64_t read_u64_or(Reader *reader, Json from, const char *name, uint64_t max,
                            uint64_t fallback)
{
    bool is_there = !json_is(json_get(from, slice_from_cstr(name)), JSON_UNDEFINED);
    return is_there ? read_u64(reader, from, name, max) : fallback;
}

static Slice read_text(Reader *reader, Json from, const char *name)
{
    Json value = json_get(from, slice_from_cstr(name));
    if (!json_is(value, JSON_STRING)) {
        reader->wrong = name;
        return SLICE_EMPTY;
    }
    return json_string(value);
}

static Status read_check(const Reader *reader, const char *what, Error *err)
{
    if (reader->wrong == NULL)
        return STATUS_OK;
    return error_set(err, STATUS_CORRUPT, SUB_NONE,
                     "a record of the catalogue (%s) is damaged at '%s'", what, reader->wrong);
}

#define LSN_MAX   ((UINT64_C(1) << 53) - 1)
#define SPACE_MAX LSN_MAX

#define STORAGE_KB_MAX ((UINT64_C(1) << 50) - 1)

#define ID_BYTES_MAX ((size_t)RESOURCE_ID_CHARS_MAX * 4) /* of UTF-8 */

static Status load_counters(Reader *r, const RecordVisitor *visitor, Error *err)
{
    CatalogCounters counters = {
        .lsn = read_u64(r, r->record, "lsn", LSN_MAX),
        .database_next = (uint32_t)read_u64(r, r->record, "database", RID_DATABASE_MAX),
        .container_next = (uint32_t)read_u64(r, r->record, "container", RID_CONTAINER_MAX),
        .offer_next = (uint32_t)read_u64(r, r->record, "offer", RID_OFFER_MAX),
        .key_next = (uint32_t)read_u64_or(r, r->record, "key", RID_KEY_MAX, 1),
        .script_next = (uint32_t)read_u64_or(r, r->record, "script", RID_SCRIPT_MAX, 1),
        .user_next = (uint32_t)read_u64_or(r, r->record, "user", RID_USER_MAX, 1),
        .permission_next = (uint32_t)read_u64_or(r, r->record, "permission", UINT32_MAX, 1),
        .saved_next = (uint32_t)read_u64_or(r, r->record, "saved", UINT32_MAX, 1),
        .space_next = read_u64(r, r->record, "space", SPACE_MAX),
    };
    Json serverless = json_get(r->record, SLICE("serverless"));
    counters.is_serverless = json_is(serverless, JSON_BOOL) && json_bool(serverless);
    TRY(read_check(r, "counters", err));
    return visitor->counters == NULL ? STATUS_OK : visitor->counters(visitor->ctx, &counters, err);
}

static Status load_database(Reader *r, uint32_t number, const RecordVisitor *visitor, Error *err)
{
    DatabaseRecord record = {
        .number = number,
        .id = read_text(r, r->record, "id"),
        .lsn = read_u64(r, r->record, "lsn", LSN_MAX),
        .ts_s = (int64_t)read_u64(r, r->record, "ts", RECORD_TIME_S_MAX),
        .offer = (uint32_t)read_u64(r, r->record, "offer", RID_OFFER_MAX),
    };
    record.partitions =
        (uint32_t)read_u64_or(r, r->record, "partitions", RANGES_MAX, record.offer != 0 ? 1 : 0);
    if (record.id.len == 0 || record.id.len > ID_BYTES_MAX)
        r->wrong = "id";
    if ((record.partitions != 0) != (record.offer != 0))
        r->wrong = "partitions";
    TRY(read_check(r, "database", err));
    return visitor->database == NULL ? STATUS_OK : visitor->database(visitor->ctx, &record, err);
}

/* Ancestors have smaller ids than the range, and are sorted (I11). */
static void load_parents(Reader *r, Arena *arena, Json list, PartitionRange *range)
{
    if (json_is(list, JSON_UNDEFINED))
        return;
    size_t count = json_is(list, JSON_ARRAY) ? json_count(list) : 0;
    if (count == 0 || count > RANGE_PARENTS_MAX) {
        r->wrong = "parents";
        return;
    }
    uint32_t *parents = ARENA_NEW_ARRAY(arena, uint32_t, count);
    JsonIter it = json_iter(list);
    for (size_t i = 0; json_next(&it); i++) {
        int64_t id = -1;
        if (!json_to_i64(it.value, &id) || id < 0 || id >= (int64_t)range->id ||
            (i > 0 && id <= (int64_t)parents[i - 1])) {
            r->wrong = "parents";
            return;
        }
        parents[i] = (uint32_t)id;
    }
    range->parents = parents;
    range->parent_count = count;
}

/* One list of ranges: each begins where the one before it ends. */
static const PartitionRange *load_ranges(Reader *r, Arena *arena, const char *name,
                                         uint32_t range_next, size_t *count)
{
    Json list = json_get(r->record, slice_from_cstr(name));
    *count = json_is(list, JSON_ARRAY) ? json_count(list) : 0;
    if (*count == 0 || *count > RANGES_MAX) {
        r->wrong = name;
        return NULL;
    }
    PartitionRange *ranges = ARENA_NEW_ARRAY(arena, PartitionRange, *count);
    JsonIter it = json_iter(list);
    for (size_t i = 0; json_next(&it); i++) {
        PartitionRange *range = &ranges[i];
        *range = (PartitionRange){
            .id = (uint32_t)read_u64(r, it.value, "id", UINT32_MAX),
            .min = read_text(r, it.value, "min"),
            .max = read_text(r, it.value, "max"),
            .space = read_u64(r, it.value, "space", SPACE_MAX),
            .lsn = read_u64(r, it.value, "lsn", LSN_MAX),
        };
        load_parents(r, arena, json_get(it.value, SLICE("parents")), range);
        if ((i > 0 && !slice_equal(range->min, ranges[i - 1].max)) ||
            slice_compare(range->min, range->max) >= 0 || !epk_is_bound(range->max) ||
            range->id >= range_next || range->space < SPACE_PARTITION_FIRST)
            r->wrong = name;
    }
    return ranges;
}

/* The map must cover everything from "" to "FF" in order (I4). */
static void load_map(Reader *r, Arena *arena, ContainerRecord *record)
{
    record->ranges = load_ranges(r, arena, "ranges", record->range_next, &record->range_count);
    if (r->wrong != NULL)
        return;
    if (record->ranges[0].min.len != 0 ||
        !slice_equal(record->ranges[record->range_count - 1].max, EPK_MAX))
        r->wrong = "ranges";
    for (size_t i = 0; i < record->range_count; i++) {
        if (record->ranges[i].lsn > record->ranges_lsn)
            r->wrong = "ranges";
    }
}

/* The targets of an interrupted move. Their spaces will be emptied, so they must belong to no other
 * range: they were given out one after the other, with the newest ids, after those of the map. */
static void load_pending(Reader *r, Arena *arena, ContainerRecord *record)
{
    if (json_is(json_get(r->record, SLICE("pending")), JSON_UNDEFINED) || r->wrong != NULL)
        return;
    size_t count = 0;
    const PartitionRange *pending = load_ranges(r, arena, "pending", record->range_next, &count);
    if (r->wrong != NULL)
        return;
    bool begins = false;
    bool ends = false;
    for (size_t i = 0; i < record->range_count; i++) {
        const PartitionRange *range = &record->ranges[i];
        begins = begins || slice_equal(range->min, pending[0].min);
        ends = ends || slice_equal(range->max, pending[count - 1].max);
        if (range->space >= pending[0].space || range->id >= pending[0].id)
            r->wrong = "pending";
    }
    for (size_t i = 0; i < count; i++) {
        if (pending[i].space != pending[0].space + i || pending[i].id != pending[0].id + i)
            r->wrong = "pending";
    }
    if (!begins || !ends || pending[count - 1].id + 1 != record->range_next)
        r->wrong = "pending";
    record->pending = pending;
    record->pending_count = count;
}

/* Checked when the container is made of it. */
static void load_before(Reader *r, ContainerRecord *record)
{
    record->before = json_get(r->record, SLICE("before"));
    if (!json_is(record->before, JSON_UNDEFINED) && !json_is(record->before, JSON_OBJECT))
        r->wrong = "before";
}

static Status load_container(Reader *r, uint32_t database, uint32_t number, Arena *arena,
                             const RecordVisitor *visitor, Error *err)
{
    ContainerRecord record = {
        .number = number,
        .database = database,
        .lsn = read_u64(r, r->record, "lsn", LSN_MAX),
        .ts_s = (int64_t)read_u64(r, r->record, "ts", RECORD_TIME_S_MAX),
        .definition = json_get(r->record, SLICE("definition")),
        .range_next = (uint32_t)read_u64(r, r->record, "rangeNext", UINT32_MAX),
        .ranges_lsn = read_u64(r, r->record, "rangesLsn", LSN_MAX),
        .offer = (uint32_t)read_u64(r, r->record, "offer", RID_OFFER_MAX),
    };
    if (!json_is(record.definition, JSON_OBJECT))
        r->wrong = "definition";
    if (record.ranges_lsn == 0)
        r->wrong = "rangesLsn";
    load_map(r, arena, &record);
    load_pending(r, arena, &record);
    load_before(r, &record);
    TRY(read_check(r, "container", err));
    return visitor->container == NULL ? STATUS_OK : visitor->container(visitor->ctx, &record, err);
}

static OfferBuckets load_buckets(Reader *r)
{
    OfferBuckets buckets = {
        .chosen = (uint8_t)read_u64_or(r, r->record, "bucket", BUDGET_BUCKETS_MAX, 0)};
    Json list = json_get(r->record, SLICE("buckets"));
    if (json_is(list, JSON_UNDEFINED))
        return buckets;
    JsonIter it = json_iter(list);
    for (size_t i = 0; i < BUDGET_BUCKETS_MAX; i++) {
        int64_t percent = -1;
        if (!json_is(list, JSON_ARRAY) || !json_next(&it) || !json_to_i64(it.value, &percent) ||
            percent < 0 || percent > 100) {
            r->wrong = "buckets";
            break;
        }
        buckets.percent[i] = (uint8_t)percent;
    }
    return buckets;
}

static Status load_offer(Reader *r, uint32_t number, const RecordVisitor *visitor, Error *err)
{
    Json autoscale = json_get(r->record, SLICE("autoscale"));
    if (!json_is(autoscale, JSON_BOOL)) {
        r->wrong = "autoscale";
        return read_check(r, "offer", err);
    }
    OfferRecord record = {
        .number = number,
        .database = (uint32_t)read_u64(r, r->record, "database", RID_DATABASE_MAX),
        .container = (uint32_t)read_u64(r, r->record, "container", RID_CONTAINER_MAX),
        .lsn = read_u64(r, r->record, "lsn", LSN_MAX),
        .ts_s = (int64_t)read_u64(r, r->record, "ts", RECORD_TIME_S_MAX),
        .provision = {.mode = json_bool(autoscale) ? PROVISION_AUTOSCALE : PROVISION_MANUAL,
                      .ru = (uint32_t)read_u64(r, r->record, "ru", PROVISION_RU_MAX),
                      .increment_percent = (uint32_t)read_u64_or(r, r->record, "increment",
                                                                 PROVISION_INCREMENT_MAX, 0)},
        .ru_ever = (uint32_t)read_u64(r, r->record, "ruEver", PROVISION_RU_MAX),
        .storage_kb_ever = read_u64_or(r, r->record, "storageEver", STORAGE_KB_MAX, 0),
        .replaced_at_s = (int64_t)read_u64(r, r->record, "replacedAt", RECORD_TIME_S_MAX),
        .buckets = load_buckets(r),
    };
    TRY(read_check(r, "offer", err));
    return visitor->offer == NULL ? STATUS_OK : visitor->offer(visitor->ctx, &record, err);
}

static Status load_key(Reader *r, uint32_t database, uint32_t number, const RecordVisitor *visitor,
                       Error *err)
{
    EncryptionKeyRecord record = {
        .number = number,
        .database = database,
        .lsn = read_u64(r, r->record, "lsn", LSN_MAX),
        .ts_s = (int64_t)read_u64(r, r->record, "ts", RECORD_TIME_S_MAX),
        .created_at_s = (int64_t)read_u64(r, r->record, "createdAt", RECORD_TIME_S_MAX),
        .definition = json_get(r->record, SLICE("definition")),
    };
    if (!json_is(record.definition, JSON_OBJECT))
        r->wrong = "definition";
    TRY(read_check(r, "client encryption key", err));
    return visitor->key == NULL ? STATUS_OK : visitor->key(visitor->ctx, &record, err);
}

static Status load_script(Reader *r, StoredScriptGroup group, uint32_t number,
                          const RecordVisitor *visitor, Error *err)
{
    StoredScriptRecord record = {
        .number = number,
        .group = group,
        .lsn = read_u64(r, r->record, "lsn", LSN_MAX),
        .ts_s = (int64_t)read_u64(r, r->record, "ts", RECORD_TIME_S_MAX),
        .definition = json_get(r->record, SLICE("definition")),
    };
    if (!json_is(record.definition, JSON_OBJECT))
        r->wrong = "definition";
    if (group.kind >= STORED_SCRIPT_KINDS)
        r->wrong = "kind";
    TRY(read_check(r, "script", err));
    return visitor->script == NULL ? STATUS_OK : visitor->script(visitor->ctx, &record, err);
}

static Status load_user(Reader *r, uint32_t database, uint32_t number, const RecordVisitor *visitor,
                        Error *err)
{
    UserRecord record = {
        .number = number,
        .database = database,
        .id = read_text(r, r->record, "id"),
        .lsn = read_u64(r, r->record, "lsn", LSN_MAX),
        .ts_s = (int64_t)read_u64(r, r->record, "ts", RECORD_TIME_S_MAX),
    };
    if (record.id.len == 0 || record.id.len > ID_BYTES_MAX)
        r->wrong = "id";
    TRY(read_check(r, "user", err));
    return visitor->user == NULL ? STATUS_OK : visitor->user(visitor->ctx, &record, err);
}

static Status load_permission(Reader *r, UserKey owner, uint32_t number,
                              const RecordVisitor *visitor, Error *err)
{
    PermissionRecord record = {
        .number = number,
        .owner = owner,
        .lsn = read_u64(r, r->record, "lsn", LSN_MAX),
        .granted_lsn = read_u64(r, r->record, "granted", LSN_MAX),
        .ts_s = (int64_t)read_u64(r, r->record, "ts", RECORD_TIME_S_MAX),
        .definition = json_get(r->record, SLICE("definition")),
    };
    if (!json_is(record.definition, JSON_OBJECT))
        r->wrong = "definition";
    if (record.granted_lsn > record.lsn)
        r->wrong = "granted";
    TRY(read_check(r, "permission", err));
    return visitor->permission == NULL ? STATUS_OK
                                       : visitor->permission(visitor->ctx, &record, err);
}

static Status load_garbage(Reader *r, StoreSpace first, const RecordVisitor *visitor, Error *err)
{
    Garbage garbage = {.first = first, .last = read_u64(r, r->record, "last", SPACE_MAX)};
    if (garbage.last < garbage.first || garbage.first < SPACE_PARTITION_FIRST)
        r->wrong = "last";
    TRY(read_check(r, "garbage", err));
    return visitor->garbage == NULL ? STATUS_OK : visitor->garbage(visitor->ctx, garbage, err);
}

Status record_read(Slice key, Slice value, Arena *arena, const RecordVisitor *visitor, Error *err)
{
    static const size_t lengths[] = {
        [RECORD_KIND_COUNTERS] = 1, [RECORD_KIND_DATABASE] = 5, [RECORD_KIND_CONTAINER] = 9,
        [RECORD_KIND_OFFER] = 5,    [RECORD_KIND_GARBAGE] = 9,  [RECORD_KIND_KEY] = 9,
        [RECORD_KIND_SCRIPT] = 14,  [RECORD_KIND_USER] = 9,     [RECORD_KIND_PERMISSION] = 13};
    size_t kind = key.len == 0 ? 0 : (uint8_t)key.ptr[0];
    if (kind == RECORD_KIND_SAVED)
        return record_load_saved(key, value, arena, visitor, err);
    if (kind == RECORD_KIND_KEPT)
        return record_load_kept(key, value, arena, visitor, err);
    if (kind == 0 || kind >= ARRAY_COUNT(lengths) || key.len != lengths[kind])
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the catalogue has a key of an unknown kind (%zu)", kind);
    Reader reader = {0};
    TRY(json_open(value, &reader.record, err));
    if (read_u64(&reader, reader.record, "v", UINT32_MAX) > RECORD_VERSION)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "the catalogue was written by a newer version of orrery");
    const char *rest = key.ptr + 1;
    switch (kind) {
    case RECORD_KIND_COUNTERS:
        return load_counters(&reader, visitor, err);
    case RECORD_KIND_DATABASE:
        return load_database(&reader, be32_get(rest), visitor, err);
    case RECORD_KIND_CONTAINER:
        return load_container(&reader, be32_get(rest), be32_get(rest + 4), arena, visitor, err);
    case RECORD_KIND_OFFER:
        return load_offer(&reader, be32_get(rest), visitor, err);
    case RECORD_KIND_GARBAGE:
        return load_garbage(&reader, be64_get(rest), visitor, err);
    case RECORD_KIND_KEY:
        return load_key(&reader, be32_get(rest), be32_get(rest + 4), visitor, err);
    case RECORD_KIND_SCRIPT: {
        StoredScriptGroup group = {
            .database = be32_get(rest),
            .container = be32_get(rest + 4),
            .kind = (StoredScriptKind)(uint8_t)rest[8],
        };
        return load_script(&reader, group, be32_get(rest + 9), visitor, err);
    }
    case RECORD_KIND_USER:
        return load_user(&reader, be32_get(rest), be32_get(rest + 4), visitor, err);
    case RECORD_KIND_PERMISSION: {
        UserKey owner = {be32_get(rest), be32_get(rest + 4)};
        return load_permission(&reader, owner, be32_get(rest + 8), visitor, err);
    }
    }
    ASSERT(!"every kind is handled above");
    return STATUS_OK;
}

Status record_load(Store *store, const RecordVisitor *visitor, Error *err)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_BLOCK);
    AUTO(store_cursor_close)
    StoreCursor *cursor = store_cursor_open(store, NULL, SPACE_CATALOG, SLICE_EMPTY, SLICE_EMPTY);
    for (;;) {
        Slice key;
        Slice value;
        bool found = false;
        TRY(store_cursor_next(cursor, &key, &value, &found, err));
        if (!found)
            return STATUS_OK;
        arena_reset(&arena);
        TRY(record_read(key, value, &arena, visitor, err));
    }
}
