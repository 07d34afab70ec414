/* definition.c - see definition.h for the normal form and the decisions behind it.
 *
 * The body is a list of parts, each with a checker that makes its normal form (PARTS, in the order
 * in which they are returned). When all parts are there, the rules between them are checked, and
 * for a replacement the rules between old and new.
 */
#include "catalog/definition_int.h"

typedef enum PartChange {
    PART_MUTABLE, /* absent from a replacement, it returns to the default */
    PART_FIXED,   /* absent from a replacement, it stays; a different one is refused */
    PART_KEPT,    /* absent or different, the replacement is refused */
} PartChange;

typedef enum PartNull {
    NULL_IS_ABSENT,
    NULL_IS_A_VALUE, /* which is refused, because of its type */
} PartNull;

typedef struct Part {
    Slice name;
    PartChange change;
    PartNull null;
    Status (*check)(Arena *arena, Json in, Json *out, Error *err);
    const char *refusal; /* of a change, where clients look for a text of the service */
} Part;

static const Part PARTS[] = {
    {SLICE_INIT("indexingPolicy"), PART_MUTABLE, NULL_IS_ABSENT, definition_check_indexing, NULL},
    {SLICE_INIT("partitionKey"), PART_FIXED, NULL_IS_ABSENT, definition_check_partition_key, NULL},
    {SLICE_INIT("defaultTtl"), PART_MUTABLE, NULL_IS_A_VALUE, definition_check_default_ttl, NULL},
    {SLICE_INIT("uniqueKeyPolicy"), PART_FIXED, NULL_IS_ABSENT, definition_check_unique_keys, NULL},
    {SLICE_INIT("conflictResolutionPolicy"), PART_FIXED, NULL_IS_ABSENT,
     definition_check_conflict_resolution,
     "Updating conflict resolution policy is currently not supported."},
    {SLICE_INIT("geospatialConfig"), PART_MUTABLE, NULL_IS_ABSENT, definition_check_geospatial,
     NULL},
    {SLICE_INIT("analyticalStorageTtl"), PART_MUTABLE, NULL_IS_ABSENT,
     definition_check_analytical_ttl, NULL},
    {SLICE_INIT("computedProperties"), PART_MUTABLE, NULL_IS_ABSENT,
     definition_check_computed_properties, NULL},
    {SLICE_INIT("vectorEmbeddingPolicy"), PART_MUTABLE, NULL_IS_ABSENT,
     definition_check_vector_embeddings, NULL},
    {SLICE_INIT("fullTextPolicy"), PART_MUTABLE, NULL_IS_ABSENT, definition_check_full_text, NULL},
    {SLICE_INIT("changeFeedPolicy"), PART_MUTABLE, NULL_IS_ABSENT, definition_check_change_feed,
     NULL},
    {SLICE_INIT("clientEncryptionPolicy"), PART_KEPT, NULL_IS_ABSENT,
     definition_check_client_encryption,
     "'clientEncryptionPolicy' cannot be changed as part of collection replace operation."},
};

enum { PART_COUNT = ARRAY_COUNT(PARTS) };

static Status normalise(Arena *arena, Json old, Json body, Json *normal, Error *err);
static Status keep_fixed(const Part *part, Json old, Json in, Json *made, Error *err);
static bool same_partition_key(Json old, Json in, Json made);
static bool same_member(Json old, Json in, Json made, Slice name);
static Status cross_check(Arena *arena, Json old, Json normal, Error *err);
static Status corrupt(Error *err, const char *what);
uint64_t container_retention_s(Json normal)
{
    int64_t minutes = 0;
    Json policy = json_get(normal, SLICE("changeFeedPolicy"));
    if (!json_to_i64(json_get(policy, SLICE("retentionDuration")), &minutes) || minutes < 0)
        return 0;
    return (uint64_t)minutes * 60;
}

static Status read_paths(Arena *arena, Json in, PropertyPath *paths, size_t count_max,
                         size_t *count, Error *err);

/* Ends every refusal of an id: clients look for it. */
#define ID_ADVICE " Ensure to provide a unique non-empty string less than '%d' characters."

Status resource_id_check(Slice id, ResourceIdKind kind, Error *err)
{
    bool is_item = kind == RESOURCE_ID_ITEM;
    int advised = is_item ? ITEM_ID_BYTES_MAX + 1 : RESOURCE_ID_CHARS_MAX;
    if (id.len == 0)
        return REFUSE(err, "The id must not be empty." ID_ADVICE, advised);
    if (!json_utf8_valid(id))
        return REFUSE(err, "The id is not valid UTF-8." ID_ADVICE, advised);
    size_t chars = 0;
    for (size_t i = 0; i < id.len; ++i) {
        char c = id.ptr[i];
        chars += ((uint8_t)c & 0xC0) != 0x80;
        bool forbidden = c == '/' || c == '\\' || (!is_item && (c == '?' || c == '#'));
        if (forbidden)
            return REFUSE(err, "The id '%.*s' must not contain '%c'." ID_ADVICE, SHOWN(id), c,
                          advised);
        if (!is_item && ((uint8_t)c < 0x20 || c == 0x7F))
            return REFUSE(err,
                          "The id must not contain control characters; found code %u at byte "
                          "%zu." ID_ADVICE,
                          (unsigned)(uint8_t)c, i, advised);
    }
    if (!is_item && chars > RESOURCE_ID_CHARS_MAX)
        return REFUSE(err, "The id '%.*s...' has %zu characters; the maximum is %d." ID_ADVICE,
                      SHOWN(id), chars, RESOURCE_ID_CHARS_MAX, advised);
    if (is_item && id.len > ITEM_ID_BYTES_MAX)
        return REFUSE(err, "The id '%.*s...' has %zu bytes; the maximum is %d." ID_ADVICE,
                      SHOWN(id), id.len, ITEM_ID_BYTES_MAX, advised);
    if (!is_item && id.ptr[id.len - 1] == ' ')
        return REFUSE(err, "The id '%.*s' must not end with a space." ID_ADVICE, SHOWN(id),
                      advised);
    return STATUS_OK;
}

Status database_definition_create(Arena *arena, Json body, Slice *id, Error *err)
{
    Slice found;
    TRY(body_read_id(body, "database", &found, err));
    *id = arena_copy(arena, found);
    return STATUS_OK;
}

Status container_definition_create(Arena *arena, Json body, ContainerRules rules, Json *normal,
                                   Error *err)
{
    Json made;
    TRY(normalise(arena, JSON_NONE, body, &made, err));
    if (json_is(json_get(made, SLICE("partitionKey")), JSON_UNDEFINED) &&
        !rules.allow_no_partition_key)
        return REFUSE(err, "The body of a container must have a 'partitionKey', like "
                           "{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}.");
    TRY(cross_check(arena, JSON_NONE, made, err));
    *normal = made;
    return STATUS_OK;
}

Status container_definition_replace(Arena *arena, Json old, Json body, Json *normal, Error *err)
{
    Json made;
    TRY(normalise(arena, old, body, &made, err));
    TRY(cross_check(arena, old, made, err));
    Slice id = json_string(json_get(made, SLICE("id")));
    Slice old_id = json_string(json_get(old, SLICE("id")));
    if (!slice_equal(id, old_id))
        return REFUSE(err, "The id of a container cannot be changed; it is '%.*s', found '%.*s'.",
                      SHOWN(old_id), SHOWN(id));
    *normal = made;
    return STATUS_OK;
}

Status body_read_id(Json body, const char *what, Slice *id, Error *err)
{
    if (!json_is(body, JSON_OBJECT))
        return REFUSE(err, "The body of a %s must be a JSON object; found %s.", what,
                      body_type_phrase(body));
    Json value = json_get(body, SLICE("id"));
    if (!json_is(value, JSON_STRING))
        return REFUSE(err, "The body of a %s must have a text 'id'; found %s.", what,
                      body_type_phrase(value));
    *id = json_string(value);
    return resource_id_check(*id, RESOURCE_ID_NAMED, err);
}

static Json read_part(Json body, const Part *part)
{
    return part->null == NULL_IS_ABSENT ? body_member(body, part->name)
                                        : json_get(body, part->name);
}

/* Everything that was sent is checked before anything is compared with 'old'. */
static Status normalise(Arena *arena, Json old, Json body, Json *normal, Error *err)
{
    Slice id;
    TRY(body_read_id(body, "container", &id, err));
    Json parts[PART_COUNT];
    for (size_t i = 0; i < PART_COUNT; ++i)
        TRY(PARTS[i].check(arena, read_part(body, &PARTS[i]), &parts[i], err));
    for (size_t i = 0; i < PART_COUNT && !json_is(old, JSON_UNDEFINED); ++i) {
        if (PARTS[i].change != PART_MUTABLE)
            TRY(keep_fixed(&PARTS[i], json_get(old, PARTS[i].name),
                           body_member(body, PARTS[i].name), &parts[i], err));
    }
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    body_add_text(&b, SLICE("id"), id);
    for (size_t i = 0; i < PART_COUNT; ++i)
        body_add_member(&b, PARTS[i].name, parts[i]);
    json_end(&b);
    *normal = json_built(&b);
    return STATUS_OK;
}

/* '*made' is the normal form of 'in', and becomes what was there before. */
static Status keep_fixed(const Part *part, Json old, Json in, Json *made, Error *err)
{
    bool same =
        json_equal(old, *made) || (json_is(in, JSON_UNDEFINED) && part->change == PART_FIXED);
    if (!same && part->check == definition_check_partition_key)
        same = same_partition_key(old, in, *made);
    if (!same && part->check == definition_check_unique_keys) {
        /* No policy and a policy without keys mean the same. */
        Slice keys = SLICE("uniqueKeys");
        same = body_element_count(json_get(old, keys)) == 0 &&
               body_element_count(json_get(*made, keys)) == 0;
    }
    if (!same && part->refusal != NULL)
        return REFUSE(err, "%s", part->refusal);
    if (!same)
        return REFUSE(err,
                      "'%.*s' is fixed when a container is created and cannot be changed by a "
                      "replacement; send it as it is, or leave it out.",
                      SLICE_ARG(part->name));
    *made = old;
    return STATUS_OK;
}

/* A client need not repeat the kind or the version to mean the same key. On a container without a
 * key, newer clients see the system key and send it back. */
static bool same_partition_key(Json old, Json in, Json made)
{
    if (json_is(old, JSON_UNDEFINED)) {
        Json system_key = json_get(made, SLICE("systemKey"));
        return json_is(system_key, JSON_BOOL) && json_bool(system_key);
    }
    return json_equal(json_get(old, SLICE("paths")), json_get(made, SLICE("paths"))) &&
           same_member(old, in, made, SLICE("kind")) &&
           same_member(old, in, made, SLICE("version")) &&
           same_member(old, in, made, SLICE("systemKey"));
}

/* A member that is absent on either side is no difference, except a version: none in 'old' is 1. */
static bool same_member(Json old, Json in, Json made, Slice name)
{
    Json before = json_get(old, name);
    Json after = json_get(made, name);
    if (json_is(body_member(in, name), JSON_UNDEFINED) || json_equal(before, after))
        return true;
    int64_t version;
    if (json_to_i64(after, &version))
        return version == 1 && json_is(before, JSON_UNDEFINED);
    return json_is(after, JSON_BOOL) && json_is(before, JSON_UNDEFINED) && !json_bool(after);
}

/* The rules between two parts. */
static Status cross_check(Arena *arena, Json old, Json normal, Error *err)
{
    Slice mode =
        json_string(json_get(json_get(normal, SLICE("indexingPolicy")), SLICE("indexingMode")));
    bool has_ttl = !json_is(json_get(normal, SLICE("defaultTtl")), JSON_UNDEFINED);
    if (has_ttl && slice_equal(mode, SLICE("none")))
        return REFUSE(err,
                      "'defaultTtl' needs the 'indexingMode' 'consistent'. To index nothing but "
                      "let items expire, exclude '/*'.");
    TRY(definition_cross_check_spatial(normal, err));
    TRY(definition_cross_check_computed(old, normal, err));
    TRY(definition_cross_check_vector(old, normal, err));
    TRY(definition_cross_check_full_text(normal, err));
    return definition_cross_check_encryption(arena, normal, err);
}

Status container_partition_key(Arena *arena, Json normal, PartitionKeyDefinition *out, Error *err)
{
    Json in = json_get(normal, SLICE("partitionKey"));
    if (!json_is(normal, JSON_OBJECT))
        return corrupt(err, "it is not an object");
    if (json_is(in, JSON_UNDEFINED)) {
        *out = (PartitionKeyDefinition){.kind = PARTITION_NONE};
        return STATUS_OK;
    }

    PartitionKeyDefinition key = {.kind = PARTITION_HASH_V1};
    TRY(read_paths(arena, json_get(in, SLICE("paths")), key.paths, PARTITION_KEY_PATHS_MAX,
                   &key.path_count, err));
    int64_t version;
    if (json_to_i64(json_get(in, SLICE("version")), &version) && version == 2)
        key.kind = PARTITION_HASH_V2;
    Json kind = json_get(in, SLICE("kind"));
    if (!json_is(kind, JSON_STRING))
        return corrupt(err, "its partition key has no kind");
    if (slice_equal(json_string(kind), SLICE("MultiHash")))
        key.kind = PARTITION_MULTI_HASH;
    else if (!slice_equal(json_string(kind), SLICE("Hash")))
        return corrupt(err, "its partition key is of an unknown kind");
    Json system_key = json_get(in, SLICE("systemKey"));
    key.system_key = json_is(system_key, JSON_BOOL) && json_bool(system_key);
    *out = key;
    return STATUS_OK;
}

Status container_unique_keys(Arena *arena, Json normal, UniqueKey keys[UNIQUE_KEYS_MAX],
                             size_t *count, Error *err)
{
    Json in = json_get(json_get(normal, SLICE("uniqueKeyPolicy")), SLICE("uniqueKeys"));
    if (body_element_count(in) > UNIQUE_KEYS_MAX)
        return corrupt(err, "it has too many unique keys");
    size_t found = 0;
    JsonIter it = json_iter(in);
    while (json_next(&it)) {
        PropertyPath *paths = ARENA_NEW_ARRAY(arena, PropertyPath, UNIQUE_KEY_PATHS_MAX);
        TRY(read_paths(arena, json_get(it.value, SLICE("paths")), paths, UNIQUE_KEY_PATHS_MAX,
                       &keys[found].path_count, err));
        keys[found++].paths = paths;
    }
    *count = found;
    return STATUS_OK;
}

size_t container_computed_properties(Json normal, ComputedProperty out[COMPUTED_PROPERTIES_MAX])
{
    size_t count = 0;
    JsonIter it = json_iter(json_get(normal, SLICE("computedProperties")));
    while (json_next(&it) && count < COMPUTED_PROPERTIES_MAX) {
        Json name = json_get(it.value, SLICE("name"));
        Json query = json_get(it.value, SLICE("query"));
        if (json_is(name, JSON_STRING) && json_is(query, JSON_STRING))
            out[count++] = (ComputedProperty){json_string(name), json_string(query)};
    }
    return count;
}

int64_t container_default_ttl_s(Json normal)
{
    int64_t ttl_s = 0;
    (void)json_to_i64(json_get(normal, SLICE("defaultTtl")), &ttl_s); /* stays 0 if absent */
    return ttl_s;
}

static Status read_paths(Arena *arena, Json in, PropertyPath *paths, size_t count_max,
                         size_t *count, Error *err)
{
    size_t found = 0;
    if (body_element_count(in) == 0 || body_element_count(in) > count_max)
        return corrupt(err, "a key has no paths or too many");
    JsonIter it = json_iter(in);
    while (json_next(&it)) {
        size_t position;
        if (!json_is(it.value, JSON_STRING) ||
            !property_path_parse(arena, json_string(it.value), &paths[found++], &position))
            return corrupt(err, "a path of a key is not one");
    }
    *count = found;
    return STATUS_OK;
}

static Status corrupt(Error *err, const char *what)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "A stored container is damaged: %s.", what);
}
