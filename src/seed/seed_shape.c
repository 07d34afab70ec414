/* seed_shape.c - see seed_shape.h. */
#include "seed/seed_shape.h"

#include "base/nearest.h"

#include <stdio.h>

enum {
    BOOL = 1 << JSON_BOOL,
    NUMBER = 1 << JSON_NUMBER,
    STRING = 1 << JSON_STRING,
    ARRAY = 1 << JSON_ARRAY,
    OBJECT = 1 << JSON_OBJECT,
    ANY = 1 << JSON_NULL | BOOL | NUMBER | STRING | ARRAY | OBJECT,
    MEMBERS_MAX = 32,
};

typedef struct Member Member;

/* The members of an object. */
typedef struct Shape {
    const Member *members;
    size_t count;
} Shape;

struct Member {
    const char *name;
    int types;
    int elements; /* types of the elements, if it is an array */
    bool is_required;
    const Shape *shape; /* of the object, or of the objects in the array; NULL if all is allowed */
};

#define SHAPE(name, ...)                                \
    static const Member name##_MEMBERS[] = __VA_ARGS__; \
    static const Shape name = {name##_MEMBERS, ARRAY_COUNT(name##_MEMBERS)}

SHAPE(PARTITION_KEY, {{"paths", ARRAY, STRING, true, NULL},
                      {"kind", STRING, 0, false, NULL},
                      {"version", NUMBER | STRING, 0, false, NULL},
                      {"systemKey", BOOL, 0, false, NULL}});
SHAPE(PATH_INDEX, {{"kind", STRING, 0, false, NULL},
                   {"dataType", STRING, 0, false, NULL},
                   {"precision", NUMBER, 0, false, NULL}});
SHAPE(INCLUDED_PATH,
      {{"path", STRING, 0, true, NULL}, {"indexes", ARRAY, OBJECT, false, &PATH_INDEX}});
SHAPE(ONE_PATH, {{"path", STRING, 0, true, NULL}});
SHAPE(COMPOSITE_PATH, {{"path", STRING, 0, true, NULL}, {"order", STRING, 0, false, NULL}});
SHAPE(BOX, {{"xmin", NUMBER, 0, true, NULL},
            {"ymin", NUMBER, 0, true, NULL},
            {"xmax", NUMBER, 0, true, NULL},
            {"ymax", NUMBER, 0, true, NULL}});
SHAPE(SPATIAL_INDEX, {{"path", STRING, 0, true, NULL},
                      {"types", ARRAY, STRING, false, NULL},
                      {"boundingBox", OBJECT, 0, false, &BOX}});
SHAPE(VECTOR_INDEX, {{"path", STRING, 0, true, NULL},
                     {"type", STRING, 0, true, NULL},
                     {"quantizerType", STRING, 0, false, NULL},
                     {"quantizationByteSize", NUMBER, 0, false, NULL},
                     {"indexingSearchListSize", NUMBER, 0, false, NULL},
                     {"vectorIndexShardKey", ARRAY, STRING, false, NULL}});
SHAPE(INDEXING_POLICY, {{"indexingMode", STRING, 0, false, NULL},
                        {"automatic", BOOL, 0, false, NULL},
                        {"includedPaths", ARRAY, OBJECT, false, &INCLUDED_PATH},
                        {"excludedPaths", ARRAY, OBJECT, false, &ONE_PATH},
                        {"compositeIndexes", ARRAY, ARRAY, false, &COMPOSITE_PATH},
                        {"spatialIndexes", ARRAY, OBJECT, false, &SPATIAL_INDEX},
                        {"vectorIndexes", ARRAY, OBJECT, false, &VECTOR_INDEX},
                        {"fullTextIndexes", ARRAY, OBJECT, false, &ONE_PATH}});
SHAPE(UNIQUE_KEY, {{"paths", ARRAY, STRING, true, NULL}});
SHAPE(UNIQUE_KEY_POLICY, {{"uniqueKeys", ARRAY, OBJECT, false, &UNIQUE_KEY}});
SHAPE(CONFLICT_POLICY, {{"mode", STRING, 0, false, NULL},
                        {"conflictResolutionPath", STRING, 0, false, NULL},
                        {"conflictResolutionProcedure", STRING, 0, false, NULL}});
SHAPE(GEOSPATIAL, {{"type", STRING, 0, false, NULL}});
SHAPE(COMPUTED, {{"name", STRING, 0, true, NULL}, {"query", STRING, 0, true, NULL}});
SHAPE(EMBEDDING, {{"path", STRING, 0, true, NULL},
                  {"dataType", STRING, 0, true, NULL},
                  {"dimensions", NUMBER, 0, true, NULL},
                  {"distanceFunction", STRING, 0, true, NULL}});
SHAPE(VECTOR_POLICY, {{"vectorEmbeddings", ARRAY, OBJECT, false, &EMBEDDING}});
SHAPE(FULL_TEXT_PATH, {{"path", STRING, 0, true, NULL}, {"language", STRING, 0, false, NULL}});
SHAPE(FULL_TEXT_POLICY, {{"defaultLanguage", STRING, 0, false, NULL},
                         {"fullTextPaths", ARRAY, OBJECT, false, &FULL_TEXT_PATH}});
SHAPE(CHANGE_FEED_POLICY, {{"retentionDuration", NUMBER, 0, false, NULL}});
SHAPE(ENCRYPTED_PATH, {{"path", STRING, 0, true, NULL},
                       {"clientEncryptionKeyId", STRING, 0, true, NULL},
                       {"encryptionType", STRING, 0, true, NULL},
                       {"encryptionAlgorithm", STRING, 0, true, NULL}});
SHAPE(ENCRYPTION_POLICY, {{"policyFormatVersion", NUMBER, 0, false, NULL},
                          {"includedPaths", ARRAY, OBJECT, true, &ENCRYPTED_PATH}});
SHAPE(SCRIPT, {{"id", STRING, 0, true, NULL},
               {"body", STRING, 0, false, NULL},
               {"file", STRING, 0, false, NULL},
               {"absent", BOOL, 0, false, NULL}});
SHAPE(TRIGGER, {{"id", STRING, 0, true, NULL},
                {"body", STRING, 0, false, NULL},
                {"file", STRING, 0, false, NULL},
                {"triggerType", STRING, 0, false, NULL},
                {"triggerOperation", STRING, 0, false, NULL},
                {"absent", BOOL, 0, false, NULL}});
SHAPE(ITEM_FILE, {{"file", STRING, 0, true, NULL},
                  {"format", STRING, 0, false, NULL},
                  {"delimiter", STRING, 0, false, NULL},
                  {"csvStrings", BOOL, 0, false, NULL},
                  {"idFrom", STRING, 0, false, NULL},
                  {"set", OBJECT, 0, false, NULL}});
SHAPE(CONTAINER, {{"id", STRING, 0, true, NULL},
                  {"partitionKey", STRING | ARRAY | OBJECT, STRING, false, &PARTITION_KEY},
                  {"throughput", NUMBER, 0, false, NULL},
                  {"maxThroughput", NUMBER, 0, false, NULL},
                  {"indexingPolicy", OBJECT, 0, false, &INDEXING_POLICY},
                  {"defaultTtl", NUMBER, 0, false, NULL},
                  {"analyticalStorageTtl", NUMBER, 0, false, NULL},
                  {"uniqueKeyPolicy", OBJECT, 0, false, &UNIQUE_KEY_POLICY},
                  {"conflictResolutionPolicy", OBJECT, 0, false, &CONFLICT_POLICY},
                  {"geospatialConfig", OBJECT, 0, false, &GEOSPATIAL},
                  {"computedProperties", ARRAY, OBJECT, false, &COMPUTED},
                  {"vectorEmbeddingPolicy", OBJECT, 0, false, &VECTOR_POLICY},
                  {"fullTextPolicy", OBJECT, 0, false, &FULL_TEXT_POLICY},
                  {"changeFeedPolicy", OBJECT, 0, false, &CHANGE_FEED_POLICY},
                  {"clientEncryptionPolicy", OBJECT, 0, false, &ENCRYPTION_POLICY},
                  {"storedProcedures", ARRAY, OBJECT, false, &SCRIPT},
                  {"triggers", ARRAY, OBJECT, false, &TRIGGER},
                  {"userDefinedFunctions", ARRAY, OBJECT, false, &SCRIPT},
                  {"items", ARRAY, OBJECT, false, NULL},
                  {"itemsFrom", ARRAY, STRING | OBJECT, false, &ITEM_FILE},
                  {"absent", BOOL, 0, false, NULL}});
SHAPE(ENCRYPTION_KEY, {{"id", STRING, 0, true, NULL},
                       {"encryptionAlgorithm", STRING, 0, true, NULL},
                       {"wrappedDataEncryptionKey", STRING, 0, true, NULL},
                       {"keyWrapMetadata", OBJECT, 0, true, NULL}});
SHAPE(PERMISSION, {{"id", STRING, 0, true, NULL},
                   {"permissionMode", STRING, 0, false, NULL},
                   {"resource", STRING, 0, false, NULL},
                   {"resourcePartitionKey", ARRAY, ANY, false, NULL},
                   {"absent", BOOL, 0, false, NULL}});
SHAPE(USER, {{"id", STRING, 0, true, NULL},
             {"permissions", ARRAY, OBJECT, false, &PERMISSION},
             {"absent", BOOL, 0, false, NULL}});
SHAPE(DATABASE, {{"id", STRING, 0, true, NULL},
                 {"throughput", NUMBER, 0, false, NULL},
                 {"maxThroughput", NUMBER, 0, false, NULL},
                 {"clientEncryptionKeys", ARRAY, OBJECT, false, &ENCRYPTION_KEY},
                 {"containers", ARRAY, OBJECT, false, &CONTAINER},
                 {"users", ARRAY, OBJECT, false, &USER},
                 {"absent", BOOL, 0, false, NULL}});
SHAPE(ROOT, {{"databases", ARRAY, OBJECT, true, &DATABASE}});

/* Other names for the same thing: of tools, SDKs and older versions of the protocol. */
static const struct {
    const char *name;
    const char *meant;
} OTHER_NAMES[] = {
    {"offerThroughput", "throughput"},
    {"offerAutopilotSettings", "maxThroughput"},
    {"autoscaleSettings", "maxThroughput"},
    {"autoscaleMaxThroughput", "maxThroughput"},
    {"collections", "containers"},
    {"documents", "items"},
    {"sprocs", "storedProcedures"},
    {"procedures", "storedProcedures"},
    {"udfs", "userDefinedFunctions"},
    {"functions", "userDefinedFunctions"},
    {"ttl", "defaultTtl"},
    {"uniqueKeys", "uniqueKeyPolicy"},
    {"partitionKeyPath", "partitionKey"},
};

static const Member *find(const Shape *shape, Slice name)
{
    for (size_t i = 0; i < shape->count; i++) {
        if (slice_equal(name, slice_from_cstr(shape->members[i].name)))
            return &shape->members[i];
    }
    return NULL;
}

static Status refuse_name(const Shape *shape, Slice name, const SeedPlace *place, Error *err)
{
    char word[64] = "";
    const char *names[MEMBERS_MAX + 1] = {NULL};
    ASSERT(shape->count <= MEMBERS_MAX);
    for (size_t i = 0; i < shape->count; i++)
        names[i] = shape->members[i].name;
    if (name.len > 0 && name.len < sizeof(word))
        memcpy(word, name.ptr, name.len);
    const char *nearest = NULL;
    for (size_t i = 0; i < ARRAY_COUNT(OTHER_NAMES); i++) {
        if (slice_equal_nocase(name, slice_from_cstr(OTHER_NAMES[i].name)) &&
            find(shape, slice_from_cstr(OTHER_NAMES[i].meant)) != NULL)
            nearest = OTHER_NAMES[i].meant;
    }
    if (nearest == NULL && word[0] != '\0')
        nearest = nearest_word(word, names);
    if (nearest != NULL)
        return seed_refuse(place, err, "there is no member '%.*s' here; did you mean '%s'?",
                           SLICE_CUT(name, 80), nearest);
    char list[300] = "";
    size_t len = 0;
    for (size_t i = 0; i < shape->count && len < sizeof(list); i++)
        len +=
            (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i == 0 ? "" : ", ", names[i]);
    return seed_refuse(place, err, "there is no member '%.*s' here; expected one of: %s",
                       SLICE_CUT(name, 80), list);
}

static const char *type_phrase(JsonType type)
{
    static const char *const PHRASES[] = {
        [JSON_UNDEFINED] = "nothing", [JSON_NULL] = "null",   [JSON_BOOL] = "true or false",
        [JSON_NUMBER] = "a number",   [JSON_STRING] = "text", [JSON_ARRAY] = "a list",
        [JSON_OBJECT] = "an object",
    };
    return PHRASES[type];
}

static Status check_type(Json value, int types, const SeedPlace *place, Error *err)
{
    if ((types & 1 << json_type(value)) != 0)
        return STATUS_OK;
    char wanted[100] = "";
    size_t len = 0;
    for (int type = JSON_BOOL; type <= JSON_OBJECT; type++) {
        if ((types & 1 << type) != 0)
            len += (size_t)snprintf(wanted + len, sizeof(wanted) - len, "%s%s",
                                    len == 0 ? "" : " or ", type_phrase((JsonType)type));
    }
    return seed_refuse(place, err, "expected %s, found %s", wanted, type_phrase(json_type(value)));
}

static Status check_object(Json object, const Shape *shape, const SeedPlace *place, Error *err);

/* Objects in the value have that shape, however deep the lists are in which they stand. */
static Status check_inside(Json value, const Shape *shape, const SeedPlace *place, Error *err)
{
    if (json_is(value, JSON_OBJECT))
        return check_object(value, shape, place, err);
    if (!json_is(value, JSON_ARRAY))
        return STATUS_OK;
    size_t i = 0;
    for (JsonIter it = json_iter(value); json_next(&it); i++) {
        SeedPlace element = seed_place_element(place, i);
        TRY(check_inside(it.value, shape, &element, err));
    }
    return STATUS_OK;
}

static Status check_member(Json value, const Member *member, const SeedPlace *place, Error *err)
{
    TRY(check_type(value, member->types, place, err));
    if (json_is(value, JSON_ARRAY)) {
        size_t i = 0;
        for (JsonIter it = json_iter(value); json_next(&it); i++) {
            SeedPlace element = seed_place_element(place, i);
            TRY(check_type(it.value, member->elements, &element, err));
        }
        if (member->shape != NULL && i > SEED_LIST_MAX)
            return seed_refuse(place, err, "a list of %zu; the maximum is %d", i, SEED_LIST_MAX);
    }
    return member->shape == NULL ? STATUS_OK : check_inside(value, member->shape, place, err);
}

static Status check_object(Json object, const Shape *shape, const SeedPlace *place, Error *err)
{
    for (JsonIter it = json_iter(object); json_next(&it);) {
        if (slice_starts_with(it.name, SLICE("_")))
            continue;
        const Member *member = find(shape, it.name);
        if (member == NULL)
            return refuse_name(shape, it.name, place, err);
        SeedPlace inner = seed_place_member(place, it.name);
        TRY(check_member(it.value, member, &inner, err));
    }
    for (size_t i = 0; i < shape->count; i++) {
        const Member *member = &shape->members[i];
        if (member->is_required &&
            json_is(json_get(object, slice_from_cstr(member->name)), JSON_UNDEFINED))
            return seed_refuse(place, err, "'%s' is missing", member->name);
    }
    return STATUS_OK;
}

Status seed_shape_check(Json root, Error *err)
{
    const SeedPlace place = {0};
    TRY(check_type(root, OBJECT, &place, err));
    return check_object(root, &ROOT, &place, err);
}
