/* resource.c - see resource.h.
 *
 * Bodies are built as documents and printed once, when the object is made: reading a container is
 * by far the most frequent request on the catalogue, and then costs no printing at all.
 */
#include "catalog/resource.h"

#include "base/encoding.h"
#include "base/mem.h"

/* What encodeURI leaves alone besides letters and digits. */
#define URI_KEPT SLICE(";,/?:@&=+$-_.!~*'()#")

enum {
    ARENA_BLOCK = 1024,
    ETAG_LEN = 38,
    BODY_BYTES_MAX = 8 << 20, /* no definition that fits a request comes near it */
};

/* SDKs treat an ETag as opaque but log it as a GUID, so it looks like one: the change's number,
 * then its time. */
static Slice etag_make(Arena *arena, uint64_t lsn, int64_t ts_s)
{
    Slice etag = arena_format(arena, "\"%08x-%04x-%04x-0000-%08x0000\"", (uint32_t)lsn,
                              (uint32_t)(lsn >> 32) & 0xffff, (uint32_t)(lsn >> 48) & 0xffff,
                              (uint32_t)ts_s);
    DEBUG_ASSERT(etag.len == ETAG_LEN);
    return etag;
}

static Slice rid_make_database(Arena *arena, uint32_t database)
{
    char rid[RID_DATABASE_LEN];
    rid_print_database(database, rid);
    return arena_copy(arena, slice_make(rid, sizeof(rid)));
}

static Slice rid_make_container(Arena *arena, uint32_t database, uint32_t container)
{
    char rid[RID_CONTAINER_LEN];
    rid_print_container(database, container, rid);
    return arena_copy(arena, slice_make(rid, sizeof(rid)));
}

static Slice self_make_container(Arena *arena, uint32_t database, Slice container_rid)
{
    Slice database_rid = rid_make_database(arena, database);
    return arena_format(arena, "dbs/%.*s/colls/%.*s/", SLICE_ARG(database_rid),
                        SLICE_ARG(container_rid));
}

static void add_text(JsonBuilder *b, Slice name, Slice value)
{
    json_key(b, name);
    json_add_string(b, value);
}

static void add_integer(JsonBuilder *b, Slice name, int64_t value)
{
    json_key(b, name);
    json_add_i64(b, value);
}

static void add_system_properties(JsonBuilder *b, const ResourceInfo *info)
{
    add_text(b, SLICE("_rid"), info->rid);
    add_integer(b, SLICE("_ts"), info->ts_s);
    add_text(b, SLICE("_self"), info->self);
    add_text(b, SLICE("_etag"), info->etag);
}

/* False if the body is too large. */
static bool finish_body(JsonBuilder *b, Arena *arena, ResourceInfo *info)
{
    info->document = json_built(b);
    AUTO(buf_done) Buf text;
    buf_init(&text, BODY_BYTES_MAX);
    json_print(info->document, &text);
    info->body = arena_copy(arena, buf_view(&text));
    return !buf_full(&text) && !json_is(info->document, JSON_UNDEFINED);
}

Database *database_new(const DatabaseRecord *record)
{
    Database *database = MEM_NEW(Database);
    atomic_init(&database->refs, 1);
    arena_init(&database->arena, ARENA_BLOCK);
    Arena *arena = &database->arena;
    ResourceInfo *info = &database->info;
    info->number = record->number;
    info->id = arena_copy(arena, record->id);
    info->uri_id = percent_encode(arena, info->id, URI_KEPT);
    info->rid = rid_make_database(arena, record->number);
    info->self = arena_format(arena, "dbs/%.*s/", SLICE_ARG(info->rid));
    info->etag = etag_make(arena, record->lsn, record->ts_s);
    info->lsn = record->lsn;
    info->ts_s = record->ts_s;
    database->offer = record->offer;
    database->partitions = record->partitions;
    database->budgets = ARENA_NEW_ARRAY(arena, Budget *, record->partitions);
    for (uint32_t i = 0; i < record->partitions; i++)
        database->budgets[i] = budget_new(&(BudgetTerms){0}, 0);

    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_text(&b, SLICE("id"), info->id);
    add_system_properties(&b, info);
    add_text(&b, SLICE("_colls"), SLICE("colls/"));
    add_text(&b, SLICE("_users"), SLICE("users/"));
    json_end(&b);
    bool fits = finish_body(&b, arena, info);
    ASSERT(fits); /* an id has been checked to be short */
    return database;
}

DatabaseRecord database_record(const Database *database)
{
    return (DatabaseRecord){
        .number = database->info.number,
        .id = database->info.id,
        .lsn = database->info.lsn,
        .ts_s = database->info.ts_s,
        .offer = database->offer,
        .partitions = database->partitions,
    };
}

/* What newer clients take an old-style container's key for. */
static void add_system_key(JsonBuilder *b)
{
    json_key(b, SLICE("partitionKey"));
    json_begin_object(b);
    json_key(b, SLICE("paths"));
    json_begin_array(b);
    json_add_string(b, SLICE("/_partitionKey"));
    json_end(b);
    add_text(b, SLICE("kind"), SLICE("Hash"));
    json_key(b, SLICE("systemKey"));
    json_add_bool(b, true);
    json_end(b);
}

static bool build_container_body(Container *container, bool has_system_key, ResourceInfo *info)
{
    JsonBuilder b;
    json_build(&b, &container->arena);
    json_begin_object(&b);
    JsonIter it = json_iter(container->definition);
    while (json_next(&it)) {
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    if (has_system_key)
        add_system_key(&b);
    add_system_properties(&b, info);
    add_text(&b, SLICE("_docs"), SLICE("docs/"));
    add_text(&b, SLICE("_sprocs"), SLICE("sprocs/"));
    add_text(&b, SLICE("_triggers"), SLICE("triggers/"));
    add_text(&b, SLICE("_udfs"), SLICE("udfs/"));
    add_text(&b, SLICE("_conflicts"), SLICE("conflicts/"));
    json_end(&b);
    return finish_body(&b, &container->arena, info);
}

static bool build_container_bodies(Container *container)
{
    if (!build_container_body(container, false, &container->info))
        return false;
    if (container->partition_key.kind != PARTITION_NONE)
        return true;
    ResourceInfo *migrated = ARENA_NEW(&container->arena, ResourceInfo);
    *migrated = container->info;
    container->migrated = migrated;
    return build_container_body(container, true, migrated);
}

const ResourceInfo *container_shown(const Container *container, bool is_old_client)
{
    return container->migrated == NULL || is_old_client ? &container->info : container->migrated;
}

static Slice bound_bytes(Arena *arena, Slice hex)
{
    uint8_t *bytes = arena_alloc(arena, hex.len / 2);
    size_t len = 0;
    bool good = hex_decode(hex, bytes, hex.len / 2, &len);
    ASSERT(good); /* checked when the record was read */
    return slice_make(bytes, len);
}

static const PartitionRange *find_space(const PartitionRange *ranges, size_t count,
                                        StoreSpace space)
{
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].space == space)
            return &ranges[i];
    }
    return NULL;
}

/* The range of 'old' that lies in this space, whether it is pending or not. */
static const PartitionRange *find_before(const Container *old, StoreSpace space)
{
    if (old == NULL)
        return NULL;
    const PartitionRange *found = find_space(old->ranges, old->range_count, space);
    return found != NULL ? found : find_space(old->pending, old->pending_count, space);
}

static PartitionRange copy_range(Arena *arena, const PartitionRange *from)
{
    PartitionRange range = *from;
    range.min = arena_copy(arena, from->min);
    range.max = arena_copy(arena, from->max);
    range.min_bytes = bound_bytes(arena, range.min);
    range.max_bytes = bound_bytes(arena, range.max);
    uint32_t *parents = ARENA_NEW_ARRAY(arena, uint32_t, from->parent_count);
    for (size_t i = 0; i < from->parent_count; i++)
        parents[i] = from->parents[i];
    range.parents = parents;
    range.partition = NULL;
    range.budget = NULL;
    range.history = NULL;
    return range;
}

/* Where a container gets what its ranges hold on to. */
typedef struct RangeSource {
    PartitionHost *host;
    const Database *sharing; /* whose budgets it spends; NULL: its own */
    const Container *old;
} RangeSource;

/* Opens copies of 'from' into 'ranges'. '*opened' counts those that hold something, so that they
 * are released if the next one fails.
 *
 * The budgets of a database are dealt out by position, so that each is spent by as many ranges of a
 * container as any other, give or take one, however many there are. */
static Status open_ranges(Container *container, const RangeSource *source,
                          const PartitionRange *from, size_t count, PartitionRange *ranges,
                          size_t *opened, Error *err)
{
    const Database *sharing = source->sharing;
    for (size_t i = 0; i < count; i++) {
        PartitionRange *range = &ranges[i];
        const PartitionRange *before = find_before(source->old, from[i].space);
        *range = copy_range(&container->arena, &from[i]);
        range->budget = sharing != NULL  ? budget_ref(sharing->budgets[i % sharing->partitions])
                        : before != NULL ? budget_ref(before->budget)
                                         : budget_new(&(BudgetTerms){0}, 0);
        range->history = before != NULL ? history_ref(before->history) : history_new();
        *opened = i + 1;
        if (before != NULL)
            range->partition = partition_ref(before->partition);
        else
            TRY(partition_open(source->host, range->space, range->id, container->schema,
                               &range->partition, err));
    }
    return STATUS_OK;
}

static Status open_all_ranges(Container *container, const ContainerRecord *record,
                              const RangeSource *source, Error *err)
{
    Arena *arena = &container->arena;
    PartitionRange *ranges = ARENA_NEW_ARRAY(arena, PartitionRange, record->range_count);
    PartitionRange *pending = ARENA_NEW_ARRAY(arena, PartitionRange, record->pending_count);
    container->ranges = ranges;
    container->pending = pending;
    TRY(open_ranges(container, source, record->ranges, record->range_count, ranges,
                    &container->range_count, err));
    return open_ranges(container, source, record->pending, record->pending_count, pending,
                       &container->pending_count, err);
}

/* A stored definition has a policy; one from before they were completed has the default. */
static Status make_index(PartitionSchema *schema, Json policy, Error *err)
{
    if (json_is(policy, JSON_UNDEFINED)) {
        JsonBuilder b;
        json_build(&b, &schema->arena);
        json_begin_object(&b);
        json_end(&b);
        policy = json_built(&b);
    }
    IndexPolicy *index = NULL;
    TRY(index_policy_new(&schema->arena, policy, schema->key.paths, schema->key.path_count, &index,
                         err));
    schema->index = index;
    schema->index_text = json_bytes(&schema->arena, policy);
    return STATUS_OK;
}

static Status make_schema(Container *container, Error *err)
{
    PartitionSchema *schema = schema_new();
    container->schema = schema;
    schema->database = container->database;
    schema->container = container->info.number;
    schema->self = arena_copy(&schema->arena, container->info.self);
    schema->default_ttl_s = container_default_ttl_s(container->definition);
    /* Paths may point into the definition, which the schema outlives. */
    Json definition = json_trust(json_bytes(&schema->arena, container->definition));
    UniqueKey *keys = ARENA_NEW_ARRAY(&schema->arena, UniqueKey, UNIQUE_KEYS_MAX);
    TRY(container_partition_key(&schema->arena, definition, &schema->key, err));
    TRY(container_unique_keys(&schema->arena, definition, keys, &schema->unique_key_count, err));
    schema->unique_keys = keys;
    return make_index(schema, json_get(definition, SLICE("indexingPolicy")), err);
}

Status container_new(const ContainerRecord *record, PartitionHost *host, const Database *database,
                     const Container *old, Container **out, Error *err)
{
    AUTO(container_unref) Container *container = MEM_NEW(Container);
    atomic_init(&container->refs, 1);
    arena_init(&container->arena, ARENA_BLOCK);
    Arena *arena = &container->arena;
    ResourceInfo *info = &container->info;
    container->definition = json_trust(json_bytes(arena, record->definition));
    Json id = json_get(container->definition, SLICE("id"));
    if (!json_is(id, JSON_STRING))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a stored container has no id");
    info->number = record->number;
    info->id = json_string(id);
    info->uri_id = percent_encode(arena, info->id, URI_KEPT);
    info->rid = rid_make_container(arena, record->database, record->number);
    info->self = self_make_container(arena, record->database, info->rid);
    info->etag = etag_make(arena, record->lsn, record->ts_s);
    info->lsn = record->lsn;
    info->ts_s = record->ts_s;
    container->database = record->database;
    container->range_next = record->range_next;
    container->ranges_lsn = record->ranges_lsn;
    container->offer = record->offer;
    TRY(make_schema(container, err));
    container->partition_key = container->schema->key;
    bool is_sharing = record->offer == 0 && database != NULL && database->partitions > 0;
    RangeSource source = {.host = host, .sharing = is_sharing ? database : NULL, .old = old};
    TRY(open_all_ranges(container, record, &source, err));
    if (!build_container_bodies(container))
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "a stored container's definition is too large");
    *out = TAKE(container);
    return STATUS_OK;
}

ContainerRecord container_record(const Container *container)
{
    return (ContainerRecord){
        .number = container->info.number,
        .database = container->database,
        .lsn = container->info.lsn,
        .ts_s = container->info.ts_s,
        .definition = container->definition,
        .ranges = container->ranges,
        .range_count = container->range_count,
        .pending = container->pending,
        .pending_count = container->pending_count,
        .range_next = container->range_next,
        .ranges_lsn = container->ranges_lsn,
        .offer = container->offer,
    };
}

static void add_buckets(JsonBuilder *b, const OfferBuckets *buckets)
{
    json_key(b, SLICE("throughputBuckets"));
    json_begin_array(b);
    for (size_t i = 0; i < BUDGET_BUCKETS_MAX; i++) {
        if (buckets->percent[i] == 0)
            continue;
        json_begin_object(b);
        add_integer(b, SLICE("id"), (int64_t)i + 1);
        add_integer(b, SLICE("maxThroughputPercentage"), buckets->percent[i]);
        json_key(b, SLICE("isDefaultBucket"));
        json_add_bool(b, buckets->chosen == i + 1);
        json_end(b);
    }
    json_end(b);
}

static bool has_buckets(const OfferBuckets *buckets)
{
    static const uint8_t none[BUDGET_BUCKETS_MAX] = {0};
    return memcmp(buckets->percent, none, sizeof(none)) != 0;
}

static void add_upgrade_policy(JsonBuilder *b, uint32_t percent)
{
    json_key(b, SLICE("autoUpgradePolicy"));
    json_begin_object(b);
    json_key(b, SLICE("throughputPolicy"));
    json_begin_object(b);
    add_integer(b, SLICE("incrementPercent"), percent);
    json_end(b);
    json_end(b);
}

static void build_offer_content(JsonBuilder *b, const Offer *offer, const OfferUsage *usage)
{
    json_begin_object(b);
    add_integer(b, SLICE("offerThroughput"), provision_current_ru(&offer->provision, usage->ru));
    json_key(b, SLICE("offerIsRUPerMinuteThroughputEnabled"));
    json_add_bool(b, false);
    json_key(b, SLICE("offerMinimumThroughputParameters"));
    json_begin_object(b);
    add_integer(b, SLICE("maxThroughputEverProvisioned"), offer->ru_ever);
    add_integer(b, SLICE("maxConsumedStorageEverInKB"), (int64_t)usage->storage_kb);
    json_end(b);
    if (offer->provision.mode == PROVISION_AUTOSCALE) {
        json_key(b, SLICE("offerAutopilotSettings"));
        json_begin_object(b);
        add_integer(b, SLICE("tier"), 0);
        add_integer(b, SLICE("maximumTierThroughput"), offer->provision.ru);
        json_key(b, SLICE("autoUpgrade"));
        json_add_bool(b, false);
        add_integer(b, SLICE("maxThroughput"), offer->provision.ru);
        add_integer(b, SLICE("targetMaxThroughput"), 0);
        if (offer->provision.increment_percent > 0)
            add_upgrade_policy(b, offer->provision.increment_percent);
        json_end(b);
    }
    if (has_buckets(&offer->buckets))
        add_buckets(b, &offer->buckets);
    json_key(b, SLICE("isOfferReplacePending"));
    json_add_bool(b, usage->is_pending);
    add_integer(b, SLICE("offerLastReplaceTimestamp"), offer->replaced_at_s);
    json_end(b);
}

ResourceInfo offer_info(const Offer *offer, const OfferUsage *usage, Arena *arena)
{
    ResourceInfo info = offer->info;
    Slice owner_self = offer->container == 0
                           ? arena_format(arena, "dbs/%.*s/", SLICE_ARG(offer->owner_rid))
                           : self_make_container(arena, offer->database, offer->owner_rid);
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_text(&b, SLICE("resource"), owner_self);
    add_text(&b, SLICE("offerType"), SLICE("Invalid"));
    add_text(&b, SLICE("offerResourceId"), offer->owner_rid);
    add_text(&b, SLICE("offerVersion"), SLICE("V2"));
    json_key(&b, SLICE("content"));
    build_offer_content(&b, offer, usage);
    add_text(&b, SLICE("id"), info.id);
    add_system_properties(&b, &info);
    json_end(&b);
    bool fits = finish_body(&b, arena, &info);
    ASSERT(fits);
    return info;
}

Offer *offer_new(const OfferRecord *record)
{
    Offer *offer = MEM_NEW(Offer);
    atomic_init(&offer->refs, 1);
    arena_init(&offer->arena, ARENA_BLOCK);
    Arena *arena = &offer->arena;
    ResourceInfo *info = &offer->info;
    char rid[RID_OFFER_LEN];
    rid_print_offer(record->number, rid);
    info->number = record->number;
    info->rid = arena_copy(arena, slice_make(rid, sizeof(rid)));
    info->id = info->rid;
    info->uri_id = info->rid;
    info->self = arena_format(arena, "offers/%.*s/", SLICE_ARG(info->rid));
    info->etag = etag_make(arena, record->lsn, record->ts_s);
    info->lsn = record->lsn;
    info->ts_s = record->ts_s;
    offer->database = record->database;
    offer->container = record->container;
    offer->provision = record->provision;
    offer->buckets = record->buckets;
    offer->ru_ever = record->ru_ever;
    offer->storage_kb_ever = record->storage_kb_ever;
    offer->replaced_at_s = record->replaced_at_s;
    offer->owner_rid = record->container == 0
                           ? rid_make_database(arena, record->database)
                           : rid_make_container(arena, record->database, record->container);
    *info = offer_info(offer, &(OfferUsage){.storage_kb = offer->storage_kb_ever}, arena);
    return offer;
}

OfferRecord offer_record(const Offer *offer)
{
    return (OfferRecord){
        .number = offer->info.number,
        .database = offer->database,
        .container = offer->container,
        .lsn = offer->info.lsn,
        .ts_s = offer->info.ts_s,
        .provision = offer->provision,
        .buckets = offer->buckets,
        .ru_ever = offer->ru_ever,
        .storage_kb_ever = offer->storage_kb_ever,
        .replaced_at_s = offer->replaced_at_s,
    };
}

/* A reference count is the one thing about a shared object that changes. */
#define DEFINE_REFERENCES(type, noun, release_all)                                 \
    type *noun##_ref(const type *object)                                           \
    {                                                                              \
        type *shared = (type *)(uintptr_t)object;                                  \
        atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);         \
        return shared;                                                             \
    }                                                                              \
    void noun##_unref(type *object)                                                \
    {                                                                              \
        if (object == NULL ||                                                      \
            atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) > 1) \
            return;                                                                \
        release_all;                                                               \
        arena_done(&object->arena);                                                \
        mem_free(object);                                                          \
    }

static void release_ranges(const PartitionRange *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        partition_unref(ranges[i].partition);
        budget_unref(ranges[i].budget);
        history_unref(ranges[i].history);
    }
}

static void release_parts(Container *container)
{
    release_ranges(container->ranges, container->range_count);
    release_ranges(container->pending, container->pending_count);
    schema_unref(container->schema);
}

static void release_budgets(Database *database)
{
    for (uint32_t i = 0; i < database->partitions; i++)
        budget_unref(database->budgets[i]);
}

DEFINE_REFERENCES(Database, database, release_budgets(object))
DEFINE_REFERENCES(Container, container, release_parts(object))
DEFINE_REFERENCES(Offer, offer, (void)0)

const PartitionRange *container_range(const Container *container, uint32_t id)
{
    for (size_t i = 0; i < container->range_count; i++) {
        if (container->ranges[i].id == id)
            return &container->ranges[i];
    }
    return NULL;
}

const PartitionRange *container_sources(const Container *container, size_t *count)
{
    *count = 0;
    if (container->pending_count == 0)
        return NULL;
    Slice max = container->pending[container->pending_count - 1].max;
    size_t first = 0;
    while (!slice_equal(container->ranges[first].min, container->pending[0].min))
        first++;
    size_t last = first;
    while (!slice_equal(container->ranges[last].max, max))
        last++;
    *count = last - first + 1;
    return &container->ranges[first];
}

bool partition_range_is_from(const PartitionRange *range, uint32_t id)
{
    if (range->id == id)
        return true;
    size_t low = 0;
    size_t high = range->parent_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (range->parents[middle] == id)
            return true;
        if (range->parents[middle] < id)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

void partition_range_print(const Container *container, const PartitionRange *range, Buf *out)
{
    char rid[RID_CHILD_LEN];
    rid_print_child(RID_PARTITION_KEY_RANGE, container->database, container->info.number,
                    (uint64_t)range->id + PARTITION_RANGE_RID_BASE, rid);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_BLOCK);
    Slice etag = etag_make(&arena, range->lsn, container->info.ts_s);
    buf_format(out, "{\"_rid\":\"%.*s\",\"id\":\"%u\",\"_etag\":", RID_CHILD_LEN, rid, range->id);
    json_print_string(etag, out);
    buf_format(out,
               ",\"minInclusive\":\"%.*s\",\"maxExclusive\":\"%.*s\",\"ridPrefix\":%u,"
               "\"_self\":\"%.*spkranges/%.*s/\",\"throughputFraction\":",
               SLICE_ARG(range->min), SLICE_ARG(range->max), range->id,
               SLICE_ARG(container->info.self), RID_CHILD_LEN, rid);
    json_print_number(1.0 / (double)container->range_count, out);
    buf_slice(out, SLICE(",\"status\":\"online\",\"parents\":["));
    for (size_t i = 0; i < range->parent_count; i++)
        buf_format(out, "%s\"%u\"", i == 0 ? "" : ",", range->parents[i]);
    buf_format(out, "],\"ownedArchivalPKRangeIds\":[],\"_ts\":%lld,\"lsn\":%llu}",
               (long long)container->info.ts_s, (unsigned long long)range->lsn);
}

Status encryption_key_new(const EncryptionKeyRecord *record, EncryptionKey **out, Error *err)
{
    AUTO(encryption_key_unref) EncryptionKey *key = MEM_NEW(EncryptionKey);
    atomic_init(&key->refs, 1);
    arena_init(&key->arena, ARENA_BLOCK);
    Arena *arena = &key->arena;
    ResourceInfo *info = &key->info;
    key->database = record->database;
    key->created_at_s = record->created_at_s;
    key->definition = json_trust(json_bytes(arena, record->definition));
    Json id = json_get(key->definition, SLICE("id"));
    if (!json_is(id, JSON_STRING))
        return error_set(err, STATUS_CORRUPT, SUB_NONE, "a stored client encryption key has no id");
    char rid[RID_CHILD_LEN];
    rid_print_key(record->database, record->number, rid);
    Slice database_rid = rid_make_database(arena, record->database);
    info->number = record->number;
    info->id = json_string(id);
    info->uri_id = percent_encode(arena, info->id, URI_KEPT);
    info->rid = arena_copy(arena, slice_make(rid, sizeof(rid)));
    info->self = arena_format(arena, "dbs/%.*s/clientencryptionkeys/%.*s/", SLICE_ARG(database_rid),
                              SLICE_ARG(info->rid));
    info->etag = etag_make(arena, record->lsn, record->ts_s);
    info->lsn = record->lsn;
    info->ts_s = record->ts_s;

    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (JsonIter it = json_iter(key->definition); json_next(&it);) {
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    add_integer(&b, SLICE("_cts"), key->created_at_s);
    add_system_properties(&b, info);
    json_end(&b);
    if (!finish_body(&b, arena, info))
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "a stored client encryption key is too large");
    *out = TAKE(key);
    return STATUS_OK;
}

EncryptionKeyRecord encryption_key_record(const EncryptionKey *key)
{
    return (EncryptionKeyRecord){
        .number = key->info.number,
        .database = key->database,
        .lsn = key->info.lsn,
        .ts_s = key->info.ts_s,
        .created_at_s = key->created_at_s,
        .definition = key->definition,
    };
}

EncryptionKey *encryption_key_ref(const EncryptionKey *key)
{
    EncryptionKey *shared = (EncryptionKey *)(uintptr_t)key;
    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

void encryption_key_unref(EncryptionKey *key)
{
    if (key == NULL || atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) > 1)
        return;
    arena_done(&key->arena);
    mem_free(key);
}
