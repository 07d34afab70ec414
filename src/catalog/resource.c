/* resource.c - see resource.h. */
#include "catalog/resource.h"

#include "base/encoding.h"
#include "base/mem.h"
#include "catalog/partition_handle_int.h"
#include "catalog/resource_int.h"

#include <stdio.h>

enum { ARENA_BLOCK = 1024 };

void resource_etag(uint64_t lsn, int64_t ts_s, char out[RESOURCE_ETAG_LEN])
{
    char text[RESOURCE_ETAG_LEN + 1];
    int len =
        snprintf(text, sizeof(text), "\"%08x-%04x-%04x-0000-%08x0000\"", (uint32_t)lsn,
                 (uint32_t)(lsn >> 32) & 0xffff, (uint32_t)(lsn >> 48) & 0xffff, (uint32_t)ts_s);
    ASSERT(len == RESOURCE_ETAG_LEN);
    memcpy(out, text, RESOURCE_ETAG_LEN);
}

void resource_fill_info(ResourceInfo *info, Arena *arena, uint32_t number, uint64_t lsn,
                        int64_t ts_s)
{
    char *etag = arena_alloc(arena, RESOURCE_ETAG_LEN);
    resource_etag(lsn, ts_s, etag);
    info->number = number;
    info->etag = slice_make(etag, RESOURCE_ETAG_LEN);
    info->lsn = lsn;
    info->ts_s = ts_s;
    info->view = arena_alloc(arena, sizeof(*info->view));
    atomic_init(info->view, NULL);
}

ResourceView *resource_view(const ResourceInfo *info)
{
    return atomic_load_explicit(info->view, memory_order_acquire);
}

ResourceView *resource_keep_view(const ResourceInfo *info, ResourceView *view)
{
    ResourceView *kept = NULL;
    if (atomic_compare_exchange_strong(info->view, &kept, view))
        return view;
    view->release(view);
    return kept;
}

/* An object whose making failed has no slot for a view. */
static void release_view(const ResourceInfo *info)
{
    ResourceView *view = info->view == NULL ? NULL : resource_view(info);
    if (view != NULL)
        view->release(view);
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

Database *database_new(const DatabaseRecord *record)
{
    Database *database = MEM_NEW(Database);
    atomic_init(&database->refs, 1);
    arena_init(&database->arena, ARENA_BLOCK);
    Arena *arena = &database->arena;
    ResourceInfo *info = &database->info;
    resource_fill_info(info, arena, record->number, record->lsn, record->ts_s);
    info->id = arena_copy(arena, record->id);
    info->rid = rid_make_database(arena, record->number);
    database->offer = record->offer;
    database->partitions = record->partitions;
    database->budgets = ARENA_NEW_ARRAY(arena, Budget *, record->partitions);
    for (uint32_t i = 0; i < record->partitions; i++)
        database->budgets[i] = budget_new(&(BudgetTerms){0}, 0);
    return database;
}

static Slice bound_bytes(Arena *arena, Slice hex)
{
    uint8_t *bytes = arena_alloc(arena, hex.len / 2);
    size_t len = 0;
    bool good = hex_decode(hex, bytes, hex.len / 2, &len);
    ASSERT(good); /* checked when the record was read */
    return slice_make(bytes, len);
}

static const PartitionHandle *find_space(const PartitionHandle *handles, size_t count,
                                         StoreSpace space)
{
    for (size_t i = 0; i < count; i++) {
        if (handles[i].range->space == space)
            return &handles[i];
    }
    return NULL;
}

/* The handle of the partition of 'old' that lies in this space, whether it is pending or not. */
static const PartitionHandle *find_before(const Container *old, StoreSpace space)
{
    if (old == NULL)
        return NULL;
    const PartitionHandle *found = find_space(old->handles, old->range_count, space);
    return found != NULL ? found : find_space(old->pending_handles, old->pending_count, space);
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
    return range;
}

/* Where the handles of a container's ranges get the partitions and budgets that they hold. */
typedef struct RangeSource {
    PartitionHost *host;
    const Database *sharing; /* the database whose budgets it spends; NULL if it has its own */
    const Container *old;
    StoreSpace changed;   /* the partition of this space is the next one; 0 if none is */
    Partition *partition; /* borrowed; NULL if it is served elsewhere */
} RangeSource;

/* A partition that is served elsewhere is not opened. One of the old container stays where it is,
 * until placement.h says otherwise. */
static Status open_partition(const Container *container, const RangeSource *source,
                             const PartitionHandle *before, PartitionHandle *handle, Error *err)
{
    const PartitionRange *range = handle->range;
    PartitionHost *host = source->host;
    const bool is_changed = source->changed != 0 && range->space == source->changed;
    Partition *known = is_changed ? source->partition : before != NULL ? before->partition : NULL;
    if (known != NULL)
        handle->partition = partition_ref(known);
    else if (!is_changed && before == NULL &&
             (host->serves == NULL || host->serves(host->placement_ctx, range->space)))
        return partition_open(host, range->space, range->id, container->schema, &handle->partition,
                              err);
    return STATUS_OK;
}

/* Copies 'from' into 'ranges' and opens their handles. '*opened' counts the handles that hold
 * something, so that they are released if the next one fails.
 *
 * The budgets of a database are given to ranges by position, round and round (I9), so that the
 * numbers of ranges that spend two of them differ by one at most. */
static Status open_ranges(Container *container, const RangeSource *source,
                          const PartitionRange *from, size_t count, PartitionRange *ranges,
                          PartitionHandle *handles, size_t *opened, Error *err)
{
    const Database *sharing = source->sharing;
    for (size_t i = 0; i < count; i++) {
        PartitionRange *range = &ranges[i];
        PartitionHandle *handle = &handles[i];
        const PartitionHandle *before = find_before(source->old, from[i].space);
        *range = copy_range(&container->arena, &from[i]);
        handle->range = range;
        handle->generation = container->generation;
        handle->budget = sharing != NULL  ? budget_ref(sharing->budgets[i % sharing->partitions])
                         : before != NULL ? budget_ref(before->budget)
                                          : budget_new(&(BudgetTerms){0}, 0);
        handle->history = before != NULL ? history_ref(before->history) : history_new();
        handle->reported =
            before != NULL ? reported_usage_ref(before->reported) : reported_usage_new();
        *opened = i + 1;
        TRY(open_partition(container, source, before, handle, err));
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
    container->handles = ARENA_NEW_ARRAY(arena, PartitionHandle, record->range_count);
    container->pending_handles = ARENA_NEW_ARRAY(arena, PartitionHandle, record->pending_count);
    TRY(open_ranges(container, source, record->ranges, record->range_count, ranges,
                    container->handles, &container->range_count, err));
    return open_ranges(container, source, record->pending, record->pending_count, pending,
                       container->pending_handles, &container->pending_count, err);
}

/* A stored definition has a policy; an older one without a policy has the default. */
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

/* The path that the links of a container's items begin with. */
static Slice print_self(Arena *arena, const Container *container)
{
    char database[RID_DATABASE_LEN];
    rid_print_database(container->database, database);
    return arena_format(arena, "dbs/%.*s/colls/%.*s/", RID_DATABASE_LEN, database,
                        SLICE_ARG(container->info.rid));
}

static Status make_schema(Container *container, Error *err)
{
    PartitionSchema *schema = schema_new();
    container->schema = schema;
    schema->database = container->database;
    schema->container = container->info.number;
    schema->generation = container->generation;
    schema->self = print_self(&schema->arena, container);
    schema->default_ttl_s = container_default_ttl_s(container->definition);
    schema->retention_s = container_retention_s(container->definition);
    /* Paths may point into the definition, and the schema outlives it. */
    Json definition = json_trust(json_bytes(&schema->arena, container->definition));
    UniqueKey *keys = ARENA_NEW_ARRAY(&schema->arena, UniqueKey, UNIQUE_KEYS_MAX);
    TRY(container_partition_key(&schema->arena, definition, &schema->key, err));
    TRY(container_unique_keys(&schema->arena, definition, keys, &schema->unique_key_count, err));
    schema->unique_keys = keys;
    return make_index(schema, json_get(definition, SLICE("indexingPolicy")), err);
}

/* What clients of the container before this one know of its key. */
static Status make_key_before(Container *container, Json before, Error *err)
{
    container->before = JSON_NONE;
    if (!json_is(before, JSON_OBJECT))
        return STATUS_OK;
    container->before = json_trust(json_bytes(&container->arena, before));
    PartitionKeyDefinition *key = ARENA_NEW(&container->arena, PartitionKeyDefinition);
    TRY(container_partition_key(&container->arena, container->before, key, err));
    container->key_before = key;
    int64_t lsn = 0;
    if (!json_to_i64(json_get(before, SLICE("lsn")), &lsn) || lsn <= 0)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "a stored container does not say when it got its name");
    container->named_lsn = (uint64_t)lsn;
    return STATUS_OK;
}

static Status make_container(const ContainerRecord *record, const RangeSource *source,
                             Container **out, Error *err)
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
    if (json_size(container->definition) > DEFINITION_BYTES_MAX)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "a stored container's definition is too large");
    resource_fill_info(info, arena, record->number, record->lsn, record->ts_s);
    info->id = json_string(id);
    info->rid = rid_make_container(arena, record->database, record->number);
    container->database = record->database;
    container->range_next = record->range_next;
    container->ranges_lsn = record->ranges_lsn;
    container->offer = record->offer;
    container->is_held = record->is_held;
    container->generation = record->generation;
    TRY(make_key_before(container, record->before, err));
    TRY(make_schema(container, err));
    container->partition_key = container->schema->key;
    TRY(open_all_ranges(container, record, source, err));
    *out = TAKE(container);
    return STATUS_OK;
}

Status container_new(const ContainerRecord *record, PartitionHost *host, const Database *database,
                     const Container *old, Container **out, Error *err)
{
    bool is_sharing = record->offer == 0 && database != NULL && database->partitions > 0;
    RangeSource source = {.host = host, .sharing = is_sharing ? database : NULL, .old = old};
    return make_container(record, &source, out, err);
}

Status container_with_partition(const Container *old, StoreSpace space, Partition *partition,
                                Container **out, Error *err)
{
    ASSERT(space != 0);
    ContainerRecord record = container_record(old);
    RangeSource source = {.old = old, .changed = space, .partition = partition};
    return make_container(&record, &source, out, err);
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
        .before = container->before,
        .is_held = container->is_held,
        .generation = container->generation,
    };
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
    resource_fill_info(info, arena, record->number, record->lsn, record->ts_s);
    info->rid = arena_copy(arena, slice_make(rid, sizeof(rid)));
    info->id = info->rid;
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
        type *shared = UNCONST(type, object);                                      \
        atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);         \
        return shared;                                                             \
    }                                                                              \
    void noun##_unref(type *object)                                                \
    {                                                                              \
        if (object == NULL ||                                                      \
            atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) > 1) \
            return;                                                                \
        release_view(&object->info);                                               \
        release_all;                                                               \
        arena_done(&object->arena);                                                \
        mem_free(object);                                                          \
    }

static void release_handles(const PartitionHandle *handles, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        partition_unref(handles[i].partition);
        budget_unref(handles[i].budget);
        history_unref(handles[i].history);
        reported_usage_unref(handles[i].reported);
    }
}

static void release_parts(Container *container)
{
    release_handles(container->handles, container->range_count);
    release_handles(container->pending_handles, container->pending_count);
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
DEFINE_REFERENCES(EncryptionKey, encryption_key, (void)0)

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
    if (json_size(key->definition) > DEFINITION_BYTES_MAX)
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "a stored client encryption key is too large");
    resource_fill_info(info, arena, record->number, record->lsn, record->ts_s);
    info->id = json_string(id);
    info->rid = arena_copy(arena, slice_make(rid, sizeof(rid)));
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
