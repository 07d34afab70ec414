/* definition_partition_key.c - partitionKey and uniqueKeyPolicy.
 *
 * Neither can change after creation, so what is accepted here binds the container for life.
 */
#include "catalog/definition_int.h"

enum { KIND_HASH, KIND_MULTI_HASH };
static const Slice KINDS[] = {SLICE_INIT("Hash"), SLICE_INIT("MultiHash")};

/* The server sets these itself when it writes an item, so they cannot say where the item goes. */
static const Slice SYSTEM_NAMES[] = {SLICE_INIT("_rid"), SLICE_INIT("_self"), SLICE_INIT("_etag"),
                                     SLICE_INIT("_ts"), SLICE_INIT("_attachments")};

static const char SYSTEM_KEY_PATH[] = "_partitionKey";

static Status read_version(Json in, int64_t *version, bool *found, Error *err);
static Status partition_paths(Arena *arena, Json in, size_t kind, Error *err);
static Status partition_path(Arena *arena, Json in, PropertyPath *out, Error *err);
static Status unique_key(Arena *arena, Json in, Slice *canonical, Error *err);

Status definition_check_partition_key(Arena *arena, Json in, Json *out, Error *err)
{
    TRY(body_want_object(in, "partitionKey", err));
    if (json_is(in, JSON_UNDEFINED)) {
        *out = JSON_NONE;
        return STATUS_OK;
    }
    size_t kind;
    TRY(body_read_word(in, SLICE("kind"), "partitionKey", WORDS(KINDS), KIND_HASH, &kind, err));
    TRY(partition_paths(arena, in, kind, err));

    int64_t version = 1;
    bool has_version;
    TRY(read_version(in, &version, &has_version, err));
    if (kind == KIND_MULTI_HASH && version != 2)
        return REFUSE(err, "A partitionKey of kind 'MultiHash' must have 'version' 2; found %s1.",
                      has_version ? "" : "none, which means ");

    bool system_key;
    TRY(body_read_bool(in, SLICE("systemKey"), "partitionKey", false, &system_key, err));
    PropertyPath first;
    TRY(partition_path(arena, json_at(json_get(in, SLICE("paths")), 0), &first, err));
    bool is_system_path =
        first.count == 1 && slice_equal(first.segments[0], SLICE(SYSTEM_KEY_PATH));
    if (system_key && (kind != KIND_HASH || !is_system_path))
        return REFUSE(err, "A partitionKey with 'systemKey' must be of kind 'Hash' with the path "
                           "'/_partitionKey'.");

    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    body_add_member(&b, SLICE("paths"), json_get(in, SLICE("paths")));
    body_add_text(&b, SLICE("kind"), KINDS[kind]);
    if (has_version) {
        json_key(&b, SLICE("version"));
        json_add_i64(&b, version);
    }
    body_add_member(&b, SLICE("systemKey"), body_member(in, SLICE("systemKey")));
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}

/* A number or its name, which the Java SDK sends; the number is kept. */
static Status read_version(Json in, int64_t *version, bool *found, Error *err)
{
    static const Slice names[] = {SLICE_INIT("V1"), SLICE_INIT("V2")};
    Json value = body_member(in, SLICE("version"));
    size_t index;
    if (!json_is(value, JSON_STRING) || !body_find_word(json_string(value), WORDS(names), &index))
        return body_read_whole(in, SLICE("version"), "partitionKey", 1, 2, version, found, err);
    *version = (int64_t)index + 1;
    *found = true;
    return STATUS_OK;
}

static Status partition_paths(Arena *arena, Json in, size_t kind, Error *err)
{
    Json paths = body_member(in, SLICE("paths"));
    size_t count_max = kind == KIND_MULTI_HASH ? PARTITION_KEY_PATHS_MAX : 1;
    if (!json_is(paths, JSON_ARRAY))
        return REFUSE(err, "'paths' of partitionKey must be an array of paths; found %s.",
                      body_type_phrase(paths));
    if (json_count(paths) > count_max)
        return REFUSE(
            err,
            "Too many partition key paths: a partitionKey of kind '%.*s' has at most %zu; "
            "found %zu. More than one path needs kind 'MultiHash' and version 2.",
            SLICE_ARG(KINDS[kind]), count_max, json_count(paths));
    if (json_count(paths) == 0)
        return REFUSE(err, "'paths' of partitionKey must have at least one path.");
    PropertyPath parsed[PARTITION_KEY_PATHS_MAX];
    for (size_t i = 0; i < json_count(paths); ++i)
        TRY(partition_path(arena, json_at(paths, i), &parsed[i], err));
    return body_want_distinct(arena, parsed, json_count(paths), "partitionKey", err);
}

static Status partition_path(Arena *arena, Json in, PropertyPath *out, Error *err)
{
    if (!json_is(in, JSON_STRING))
        return REFUSE(err, "A path of partitionKey must be a string; found %s.",
                      body_type_phrase(in));
    Slice text = json_string(in);
    size_t position;
    if (!property_path_parse(arena, text, out, &position))
        return REFUSE(err,
                      "The partition key component definition path '%.*s' could not be accepted, "
                      "failed near position '%zu'. Partition key paths must contain only valid "
                      "characters and not contain a trailing slash or wildcard character. Names of "
                      "other characters than letters, digits and '_' stand in quotes.",
                      SHOWN(text), position);
    for (size_t i = 0; i < ARRAY_COUNT(SYSTEM_NAMES); ++i) {
        if (slice_equal(out->segments[0], SYSTEM_NAMES[i]))
            return REFUSE(err,
                          "The partition key path '%.*s' names a system property, whose value is "
                          "set by the server; choose a property of the items.",
                          SHOWN(text));
    }
    return STATUS_OK;
}

Status definition_check_unique_keys(Arena *arena, Json in, Json *out, Error *err)
{
    TRY(body_want_object(in, "uniqueKeyPolicy", err));
    if (json_is(in, JSON_UNDEFINED)) {
        *out = JSON_NONE;
        return STATUS_OK;
    }
    Json keys = body_member(in, SLICE("uniqueKeys"));
    TRY(body_want_array(keys, "'uniqueKeys' of uniqueKeyPolicy", UNIQUE_KEYS_MAX, err));

    Slice canonical[UNIQUE_KEYS_MAX];
    size_t count = 0;
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("uniqueKeys"));
    json_begin_array(&b);
    JsonIter it = json_iter(keys);
    while (json_next(&it)) {
        TRY(unique_key(arena, it.value, &canonical[count], err));
        for (size_t i = 0; i < count; ++i) {
            if (slice_equal(canonical[i], canonical[count]))
                return REFUSE(err, "Two unique keys of uniqueKeyPolicy have the same paths: %.*s.",
                              SHOWN(canonical[i]));
        }
        ++count;
        json_begin_object(&b);
        body_add_member(&b, SLICE("paths"), json_get(it.value, SLICE("paths")));
        json_end(&b);
    }
    json_end(&b);
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}

/* '*canonical' is the list of paths as one text, to find two keys that are the same. */
static Status unique_key(Arena *arena, Json in, Slice *canonical, Error *err)
{
    Json paths = json_is(in, JSON_OBJECT) ? body_member(in, SLICE("paths")) : JSON_NONE;
    if (!json_is(paths, JSON_ARRAY))
        return REFUSE(err, "A unique key must be an object with an array 'paths'.");
    size_t count = json_count(paths);
    if (count == 0 || count > UNIQUE_KEY_PATHS_MAX)
        return REFUSE(err, "A unique key has 1 to %d paths; found %zu.", UNIQUE_KEY_PATHS_MAX,
                      count);

    PropertyPath parsed[UNIQUE_KEY_PATHS_MAX];
    AUTO(buf_done) Buf list;
    buf_init(&list, UNIQUE_KEY_PATHS_MAX * (PROPERTY_PATH_CANONICAL_BYTES_MAX + 1));
    for (size_t i = 0; i < count; ++i) {
        Json path = json_at(paths, i);
        Slice text = json_is(path, JSON_STRING) ? json_string(path) : SLICE_EMPTY;
        size_t position;
        if (!property_path_parse(arena, text, &parsed[i], &position))
            return REFUSE(err,
                          "The unique key path '%.*s' could not be accepted, failed near position "
                          "'%zu'. A path is '/name' or '/name/name', without wildcards and arrays.",
                          SHOWN(text), position);
        if (i > 0)
            buf_byte(&list, ',');
        property_path_print(parsed[i], &list);
    }
    *canonical = arena_copy(arena, buf_view(&list));
    return body_want_distinct(arena, parsed, count, "a unique key", err);
}
