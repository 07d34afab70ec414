/* wire.c - see wire_int.h.
 *
 * A resource is built as a document, which queries run on, and printed from it.
 */
#include "api/core/wire_int.h"

#include "base/encoding.h"
#include "base/mem.h"
#include "base/rid.h"

/* What encodeURI leaves alone besides letters and digits. */
#define URI_KEPT SLICE(";,/?:@&=+$-_.!~*'()#")

static_assert(RANGE_PARENTS_MAX * sizeof("\"1048575\"") + 2 * 2 * EPK_BYTES_MAX + 1024 <=
                  WIRE_RANGE_BYTES_MAX,
              "a range's text fits");

enum {
    ARENA_BLOCK = 1024,
    TEXT_FACTOR = 8,         /* no byte of a document is printed as more than six */
    BODY_FRAME_BYTES = 256,  /* of a text, whatever its document is */
    SCRIPT_FRAME_BYTES = 512 /* and of a script's, with its system properties */
};

/* The bodies of a resource, which are made once and kept with it. */
typedef struct WireView {
    ResourceView view;
    Arena arena;
    WireResource shown;
    WireResource shown_old; /* of a container: to an old client */
} WireView;

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

static void add_system_properties(JsonBuilder *b, const ResourceInfo *info, Slice self)
{
    add_text(b, SLICE("_rid"), info->rid);
    add_integer(b, SLICE("_ts"), info->ts_s);
    add_text(b, SLICE("_self"), self);
    add_text(b, SLICE("_etag"), info->etag);
}

static void add_members(JsonBuilder *b, Json object)
{
    for (JsonIter it = json_iter(object); json_next(&it);) {
        json_key(b, it.name);
        json_add(b, it.value);
    }
}

/* The document is built: fills in the rest. */
static void finish(JsonBuilder *b, const ResourceInfo *info, Slice self, Arena *arena,
                   WireResource *out)
{
    Json document = json_built(b);
    ASSERT(!json_is(document, JSON_UNDEFINED)); /* definitions that are too large are not loaded */
    AUTO(buf_done) Buf text;
    buf_init(&text, TEXT_FACTOR * json_size(document) + BODY_FRAME_BYTES);
    json_print(document, &text);
    ASSERT(!buf_full(&text));
    *out = (WireResource){
        .number = info->number,
        .etag = info->etag,
        .uri_id = percent_encode(arena, info->id, URI_KEPT),
        .self = self,
        .document = document,
        .body = arena_copy(arena, buf_view(&text)),
    };
}

static void release(ResourceView *view)
{
    WireView *wire = CONTAINER_OF(view, WireView, view);
    arena_done(&wire->arena);
    mem_free(wire);
}

static WireView *view_new(void)
{
    WireView *wire = MEM_NEW(WireView);
    wire->view.release = release;
    arena_init(&wire->arena, ARENA_BLOCK);
    return wire;
}

static const WireView *keep(const ResourceInfo *info, WireView *wire)
{
    return CONTAINER_OF(resource_keep_view(info, &wire->view), WireView, view);
}

/* The bodies that were kept; NULL if they have not been made yet. */
static const WireView *find(const ResourceInfo *info)
{
    ResourceView *view = resource_view(info);
    if (UNLIKELY(view == NULL))
        return NULL;
    ASSERT(view->release == release);
    return CONTAINER_OF(view, WireView, view);
}

/* ---- databases ---- */

static const WireView *make_database(const Database *database)
{
    const ResourceInfo *info = &database->info;
    WireView *wire = view_new();
    Arena *arena = &wire->arena;
    Slice self = arena_format(arena, "dbs/%.*s/", SLICE_ARG(info->rid));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_text(&b, SLICE("id"), info->id);
    add_system_properties(&b, info, self);
    add_text(&b, SLICE("_colls"), SLICE("colls/"));
    add_text(&b, SLICE("_users"), SLICE("users/"));
    json_end(&b);
    finish(&b, info, self, arena, &wire->shown);
    return keep(info, wire);
}

const WireResource *wire_database(const Database *database)
{
    const WireView *kept = find(&database->info);
    return LIKELY(kept != NULL) ? &kept->shown : &make_database(database)->shown;
}

/* ---- containers ---- */

static Slice container_self(Arena *arena, uint32_t database, Slice rid)
{
    char database_rid[RID_DATABASE_LEN];
    rid_print_database(database, database_rid);
    return arena_format(arena, "dbs/%.*s/colls/%.*s/", RID_DATABASE_LEN, database_rid,
                        SLICE_ARG(rid));
}

/* The partition key that newer clients expect of a container without one. */
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

static void build_container(const Container *container, bool has_system_key, Arena *arena,
                            WireResource *out)
{
    const ResourceInfo *info = &container->info;
    Slice self = container_self(arena, container->database, info->rid);
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_members(&b, container->definition);
    if (has_system_key)
        add_system_key(&b);
    add_system_properties(&b, info, self);
    add_text(&b, SLICE("_docs"), SLICE("docs/"));
    add_text(&b, SLICE("_sprocs"), SLICE("sprocs/"));
    add_text(&b, SLICE("_triggers"), SLICE("triggers/"));
    add_text(&b, SLICE("_udfs"), SLICE("udfs/"));
    add_text(&b, SLICE("_conflicts"), SLICE("conflicts/"));
    json_end(&b);
    finish(&b, info, self, arena, out);
}

static const WireView *make_container(const Container *container)
{
    WireView *wire = view_new();
    build_container(container, false, &wire->arena, &wire->shown_old);
    wire->shown = wire->shown_old;
    if (container->partition_key.kind == PARTITION_NONE)
        build_container(container, true, &wire->arena, &wire->shown);
    return keep(&container->info, wire);
}

const WireResource *wire_container(const Container *container, bool is_old_client)
{
    const WireView *wire = find(&container->info);
    if (UNLIKELY(wire == NULL))
        wire = make_container(container);
    return is_old_client ? &wire->shown_old : &wire->shown;
}

void wire_range_print(const Container *container, const PartitionRange *range, Buf *out)
{
    size_t begin = out->len;
    char rid[RID_CHILD_LEN];
    rid_print_child(RID_PARTITION_KEY_RANGE, container->database, container->info.number,
                    (uint64_t)range->id + WIRE_RANGE_RID_BASE, rid);
    char etag[RESOURCE_ETAG_LEN];
    resource_etag(range->lsn, container->info.ts_s, etag);
    buf_format(out, "{\"_rid\":\"%.*s\",\"id\":\"%u\",\"_etag\":", RID_CHILD_LEN, rid, range->id);
    json_print_string(slice_make(etag, sizeof(etag)), out);
    buf_format(out,
               ",\"minInclusive\":\"%.*s\",\"maxExclusive\":\"%.*s\",\"ridPrefix\":%u,"
               "\"_self\":\"%.*spkranges/%.*s/\",\"throughputFraction\":",
               SLICE_ARG(range->min), SLICE_ARG(range->max), range->id,
               SLICE_ARG(wire_container(container, false)->self), RID_CHILD_LEN, rid);
    json_print_number(1.0 / (double)container->range_count, out);
    buf_slice(out, SLICE(",\"status\":\"online\",\"parents\":["));
    for (size_t i = 0; i < range->parent_count; i++)
        buf_format(out, "%s\"%u\"", i == 0 ? "" : ",", range->parents[i]);
    buf_format(out, "],\"ownedArchivalPKRangeIds\":[],\"_ts\":%lld,\"lsn\":%llu}",
               (long long)container->info.ts_s, (unsigned long long)range->lsn);
    ASSERT(out->len - begin <= WIRE_RANGE_BYTES_MAX);
}

/* ---- client encryption keys ---- */

static const WireView *make_key(const EncryptionKey *key)
{
    const ResourceInfo *info = &key->info;
    WireView *wire = view_new();
    Arena *arena = &wire->arena;
    char database_rid[RID_DATABASE_LEN];
    rid_print_database(key->database, database_rid);
    Slice self = arena_format(arena, "dbs/%.*s/clientencryptionkeys/%.*s/", RID_DATABASE_LEN,
                              database_rid, SLICE_ARG(info->rid));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_members(&b, key->definition);
    add_integer(&b, SLICE("_cts"), key->created_at_s);
    add_system_properties(&b, info, self);
    json_end(&b);
    finish(&b, info, self, arena, &wire->shown);
    return keep(info, wire);
}

const WireResource *wire_key(const EncryptionKey *key)
{
    const WireView *kept = find(&key->info);
    return LIKELY(kept != NULL) ? &kept->shown : &make_key(key)->shown;
}

/* ---- users and permissions ---- */

/* dbs/{database}/users/{user}/ */
static Slice user_self(Arena *arena, UserKey key)
{
    char database_rid[RID_DATABASE_LEN];
    char user_rid[RID_USER_LEN];
    rid_print_database(key.database, database_rid);
    rid_print_user(key.database, key.user, user_rid);
    return arena_format(arena, "dbs/%.*s/users/%.*s/", RID_DATABASE_LEN, database_rid, RID_USER_LEN,
                        user_rid);
}

static const WireView *make_user(const User *user)
{
    WireView *wire = view_new();
    Arena *arena = &wire->arena;
    Slice self = user_self(arena, user_key(user));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_text(&b, SLICE("id"), user->info.id);
    add_system_properties(&b, &user->info, self);
    add_text(&b, SLICE("_permissions"), SLICE("permissions/"));
    json_end(&b);
    finish(&b, &user->info, self, arena, &wire->shown);
    return keep(&user->info, wire);
}

const WireResource *wire_user(const User *user)
{
    const WireView *kept = find(&user->info);
    return LIKELY(kept != NULL) ? &kept->shown : &make_user(user)->shown;
}

WireResource *wire_permission(const Permission *permission, const WireTokens *tokens, Arena *arena)
{
    const ResourceInfo *info = &permission->info;
    Slice self = arena_format(arena, "%.*spermissions/%.*s/",
                              SLICE_ARG(user_self(arena, permission->owner)), SLICE_ARG(info->rid));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_members(&b, permission->definition);
    add_system_properties(&b, info, self);
    add_text(
        &b, SLICE("_token"),
        resource_token_make(tokens->key, permission, tokens->now_us, tokens->lifetime_s, arena));
    json_end(&b);
    WireResource *shown = ARENA_NEW(arena, WireResource);
    finish(&b, info, self, arena, shown);
    return shown;
}

/* ---- scripts ---- */

static Slice script_self(Arena *arena, const StoredScript *script)
{
    static const char *const segments[] = {
        [STORED_PROCEDURE] = "sprocs", [STORED_TRIGGER] = "triggers", [STORED_FUNCTION] = "udfs"};
    char container_rid[RID_CONTAINER_LEN];
    rid_print_container(script->group.database, script->group.container, container_rid);
    Slice parent = container_self(arena, script->group.database,
                                  slice_make(container_rid, sizeof(container_rid)));
    return arena_format(arena, "%.*s%s/%.*s/", SLICE_ARG(parent), segments[script->group.kind],
                        SLICE_ARG(script->info.rid));
}

static Json script_document(const StoredScript *script, Arena *arena)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_members(&b, script->definition);
    add_system_properties(&b, &script->info, script_self(arena, script));
    json_end(&b);
    Json document = json_built(&b);
    ASSERT(!json_is(document, JSON_UNDEFINED)); /* as in finish() */
    return document;
}

/* The same as script_document() without the document, which would be a copy of the whole text. */
void wire_script_print(const StoredScript *script, Buf *out)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, ARENA_BLOCK);
    const ResourceInfo *info = &script->info;
    buf_init(out, TEXT_FACTOR * json_size(script->definition) + SCRIPT_FRAME_BYTES);
    buf_byte(out, '{');
    for (JsonIter it = json_iter(script->definition); json_next(&it);) {
        json_print_string(it.name, out);
        buf_byte(out, ':');
        json_print(it.value, out);
        buf_byte(out, ',');
    }
    buf_format(out,
               "\"_rid\":\"%.*s\",\"_ts\":%lld,\"_self\":\"%.*s\",\"_etag\":", SLICE_ARG(info->rid),
               (long long)info->ts_s, SLICE_ARG(script_self(&arena, script)));
    json_print_string(info->etag, out);
    buf_byte(out, '}');
    ASSERT(!buf_full(out));
}

WireResource *wire_script(const StoredScript *script, WirePart part, Arena *arena)
{
    WireResource *shown = ARENA_NEW(arena, WireResource);
    shown->number = script->info.number;
    shown->etag = script->info.etag;
    if (part == WIRE_DOCUMENT) {
        shown->document = script_document(script, arena);
        return shown;
    }
    AUTO(buf_done) Buf text;
    wire_script_print(script, &text);
    shown->body = arena_copy(arena, buf_view(&text));
    return shown;
}

/* ---- offers ---- */

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

static void add_offer_content(JsonBuilder *b, const Offer *offer, const OfferUsage *usage)
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

Slice wire_offer_owner(const Offer *offer, Arena *arena)
{
    return offer->container == 0 ? arena_format(arena, "dbs/%.*s/", SLICE_ARG(offer->owner_rid))
                                 : container_self(arena, offer->database, offer->owner_rid);
}

WireResource *wire_offer(const Offer *offer, const OfferUsage *usage, Arena *arena)
{
    const ResourceInfo *info = &offer->info;
    Slice self = arena_format(arena, "offers/%.*s/", SLICE_ARG(info->rid));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    add_text(&b, SLICE("resource"), wire_offer_owner(offer, arena));
    add_text(&b, SLICE("offerType"), SLICE("Invalid"));
    add_text(&b, SLICE("offerResourceId"), offer->owner_rid);
    add_text(&b, SLICE("offerVersion"), SLICE("V2"));
    json_key(&b, SLICE("content"));
    add_offer_content(&b, offer, usage);
    add_text(&b, SLICE("id"), info->id);
    add_system_properties(&b, info, self);
    json_end(&b);
    WireResource *shown = ARENA_NEW(arena, WireResource);
    finish(&b, info, self, arena, shown);
    return shown;
}
