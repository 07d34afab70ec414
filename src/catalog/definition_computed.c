/* definition_computed.c - computedProperties: names and queries.
 *
 * What the query may say is checked by the query layer. A computed property stands beside the
 * properties of the item itself, so its name must not be one that an index already takes for a
 * stored property.
 */
#include "catalog/definition_int.h"
#include "index/index_path.h"

static const Slice SYSTEM_NAMES[] = {SLICE_INIT("id"),    SLICE_INIT("_rid"),
                                     SLICE_INIT("_self"), SLICE_INIT("_etag"),
                                     SLICE_INIT("_ts"),   SLICE_INIT("_attachments")};

static Status check_properties(Arena *arena, Json in, Json *out, Error *err);
static Status check_indexes(Json old, Json normal, Error *err);
static Status computed_property(Json in, ComputedProperty *out, Error *err);
static Status check_names(const ComputedProperty *properties, size_t count, Error *err);
static bool has_property(Json computed, Slice name);
static size_t find_in_policy(Json policy, const ComputedProperty *properties, size_t count);
static size_t find_named(Json list, const ComputedProperty *properties, size_t count);

/* Clients look for these words, whatever is wrong with a property. */
static Status invalid(Error *err)
{
    return error_context(err, "One of the specified inputs is invalid");
}

Status definition_check_computed_properties(Arena *arena, Json in, Json *out, Error *err)
{
    return check_properties(arena, in, out, err) == STATUS_OK ? STATUS_OK : invalid(err);
}

static Status check_properties(Arena *arena, Json in, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_array(in, "computedProperties", COMPUTED_PROPERTIES_MAX, err));
    if (json_is(in, JSON_UNDEFINED))
        return STATUS_OK;
    ComputedProperty properties[COMPUTED_PROPERTIES_MAX];
    size_t count = 0;
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_array(&b);
    JsonIter it = json_iter(in);
    while (json_next(&it)) {
        TRY(computed_property(it.value, &properties[count], err));
        json_begin_object(&b);
        body_add_text(&b, SLICE("name"), properties[count].name);
        body_add_text(&b, SLICE("query"), properties[count].query);
        json_end(&b);
        ++count;
    }
    json_end(&b);
    *out = json_built(&b);
    return check_names(properties, count, err);
}

static Status computed_property(Json in, ComputedProperty *out, Error *err)
{
    if (!json_is(in, JSON_OBJECT))
        return REFUSE(err, "A computed property must be an object; found %s.",
                      body_type_phrase(in));
    TRY(body_read_text(in, SLICE("name"), "a computed property", SLICE_EMPTY, &out->name, err));
    TRY(body_read_text(in, SLICE("query"), "a computed property", SLICE_EMPTY, &out->query, err));
    if (out->name.len == 0)
        return REFUSE(err, "Computed property 'name' is either empty or unspecified.");
    if (out->query.len == 0)
        return REFUSE(err, "Computed property 'query' is either empty or unspecified.");
    if (out->name.len > PROPERTY_PATH_BYTES_MAX)
        return REFUSE(err, "Computed property name '%.*s...' has %zu bytes; the maximum is %zu.",
                      SHOWN(out->name), out->name.len, PROPERTY_PATH_BYTES_MAX);
    if (out->query.len > COMPUTED_QUERY_BYTES_MAX)
        return REFUSE(err,
                      "The query of computed property '%.*s' has %zu bytes; the maximum is %zu.",
                      SHOWN(out->name), out->query.len, COMPUTED_QUERY_BYTES_MAX);
    return STATUS_OK;
}

static Status check_names(const ComputedProperty *properties, size_t count, Error *err)
{
    for (size_t i = 0; i < count; ++i) {
        size_t word;
        Slice name = properties[i].name;
        if (body_find_word(name, WORDS(SYSTEM_NAMES), &word) &&
            slice_equal(name, SYSTEM_NAMES[word]))
            return REFUSE(err,
                          "The system property name '%.*s' cannot be used as a computed property "
                          "name.",
                          SHOWN(name));
        for (size_t k = 0; k < i; ++k) {
            if (slice_equal(properties[k].name, name))
                return REFUSE(err,
                              "Computed property name '%.*s' cannot be used in multiple "
                              "definitions.",
                              SHOWN(name));
        }
    }
    return STATUS_OK;
}

Status definition_cross_check_computed(Json old, Json normal, Error *err)
{
    return check_indexes(old, normal, err) == STATUS_OK ? STATUS_OK : invalid(err);
}

static Status check_indexes(Json old, Json normal, Error *err)
{
    Json policy = json_get(normal, SLICE("indexingPolicy"));
    ComputedProperty all[COMPUTED_PROPERTIES_MAX];
    size_t count = container_computed_properties(normal, all);
    size_t at = find_named(json_get(policy, SLICE("spatialIndexes")), all, count);
    if (at < count)
        return REFUSE(err,
                      "Computed property '%.*s' at index (%zu) has a spatial index. Remove the "
                      "spatial index on this path.",
                      SHOWN(all[at].name), at);
    at = find_named(json_get(policy, SLICE("vectorIndexes")), all, count);
    if (at == count)
        at = find_named(json_get(policy, SLICE("fullTextIndexes")), all, count);
    if (at < count)
        return REFUSE(err,
                      "Computed property '%.*s' at index (%zu) has a vector or full-text index. "
                      "Remove the index on this path.",
                      SHOWN(all[at].name), at);

    /* A new computed property must not take over an index that was built from stored values. */
    for (size_t i = 0; i < count; ++i) {
        if (has_property(json_get(old, SLICE("computedProperties")), all[i].name))
            all[i].name = SLICE_EMPTY; /* no path has an empty name, so it is not found */
    }
    at = find_in_policy(json_get(old, SLICE("indexingPolicy")), all, count);
    if (at < count)
        return REFUSE(err,
                      "Computed property '%.*s' at index (%zu) has the name of a path that the "
                      "indexing policy has already. Remove that path first.",
                      SHOWN(all[at].name), at);
    return STATUS_OK;
}

static bool has_property(Json computed, Slice name)
{
    JsonIter it = json_iter(computed);
    while (json_next(&it)) {
        if (slice_equal(json_string(json_get(it.value, SLICE("name"))), name))
            return true;
    }
    return false;
}

static size_t find_in_policy(Json policy, const ComputedProperty *properties, size_t count)
{
    static const Slice LISTS[] = {SLICE_INIT("includedPaths"), SLICE_INIT("excludedPaths"),
                                  SLICE_INIT("spatialIndexes")};
    size_t at = count;
    for (size_t i = 0; i < ARRAY_COUNT(LISTS) && at == count; ++i)
        at = find_named(json_get(policy, LISTS[i]), properties, count);
    JsonIter it = json_iter(json_get(policy, SLICE("compositeIndexes")));
    while (at == count && json_next(&it))
        at = find_named(it.value, properties, count);
    return at;
}

/* Which of the properties has a path for exactly its name in 'list'; 'count' if none has. */
static size_t find_named(Json list, const ComputedProperty *properties, size_t count)
{
    unsigned any = INDEX_PATH_BARE | INDEX_PATH_SCALAR | INDEX_PATH_SUBTREE | INDEX_PATH_TUPLE;
    AUTO(arena_done) Arena scratch;
    arena_init(&scratch, PROPERTY_PATH_BYTES_MAX);
    JsonIter it = json_iter(list);
    while (count > 0 && json_next(&it)) {
        IndexPath path;
        size_t position;
        Slice text = json_string(json_get(it.value, SLICE("path")));
        arena_reset(&scratch);
        if (!index_path_parse(&scratch, text, any, &path, &position) || !path.is_name)
            continue;
        for (size_t i = 0; i < count; ++i) {
            if (slice_equal(path.name, properties[i].name))
                return i;
        }
    }
    return count;
}
