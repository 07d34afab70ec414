/* definition_vector.c - vectorEmbeddingPolicy, and the vectorIndexes that refer to it.
 *
 * The policy declares what a property holds: a vector of so many numbers of some type, compared
 * in some way. An index in indexingPolicy makes searching it fast, and is only for a declared
 * path. Some messages contain phrases that the SDKs' own tests look for.
 */
#include "catalog/definition_int.h"

static const Slice DATA_TYPES[] = {SLICE_INIT("float32"), SLICE_INIT("float16"), SLICE_INIT("int8"),
                                   SLICE_INIT("uint8")};
static const Slice DISTANCES[] = {SLICE_INIT("cosine"), SLICE_INIT("dotproduct"),
                                  SLICE_INIT("euclidean")};
static const Slice INDEX_TYPES[] = {SLICE_INIT("flat"), SLICE_INIT("quantizedFlat"),
                                    SLICE_INIT("diskANN")};
enum { INDEX_FLAT, INDEX_QUANTIZED_FLAT, INDEX_DISK_ANN };
static const Slice QUANTIZERS[] = {SLICE_INIT("product"), SLICE_INIT("spherical")};

static Status embedding(const EntryList *list, Json in, PropertyPath *path, Error *err);
static Status vector_index(const EntryList *list, Json in, PropertyPath *path, Error *err);
static Status vector_options(JsonBuilder *b, Json in, size_t type, Error *err);
static Status shard_key(Arena *arena, Json keys, Error *err);
static Status index_fits_embedding(Json index, Json entry, Error *err);
static Status keep_entries(Json old, Json entries, bool removable, const char *what, Error *err);

Status definition_check_vector_embeddings(Arena *arena, Json in, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_object(in, "vectorEmbeddingPolicy", err));
    if (json_is(in, JSON_UNDEFINED))
        return STATUS_OK;
    Json entries = body_member(in, SLICE("vectorEmbeddings"));
    TRY(body_want_array(entries, "'vectorEmbeddings' of vectorEmbeddingPolicy", POLICY_PATHS_MAX,
                        err));

    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("vectorEmbeddings"));
    TRY(body_add_entries(arena, &b, entries, embedding, "vectorEmbeddingPolicy", err));
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}

static Status embedding(const EntryList *list, Json in, PropertyPath *path, Error *err)
{
    const char *what = "a vector embedding";
    if (!json_is(in, JSON_OBJECT))
        return REFUSE(err, "A vector embedding must be an object; found %s.", body_type_phrase(in));
    Slice text, type_text, distance_text;
    size_t position, type, distance;
    TRY(body_read_text(in, SLICE("path"), what, SLICE_EMPTY, &text, err));
    if (!property_path_parse(list->arena, text, path, &position))
        return REFUSE(err,
                      "The Vector Embedding Policy has an invalid Path:%.*s. Specify the path of a "
                      "property, like '/a/b'; it failed near position '%zu'.",
                      SHOWN(text), position);
    TRY(body_read_text(in, SLICE("dataType"), what, SLICE_EMPTY, &type_text, err));
    if (!body_find_word(type_text, WORDS(DATA_TYPES), &type))
        return REFUSE(err,
                      "The Vector Embedding Policy has an invalid DataType:%.*s. Expected float32, "
                      "float16, int8 or uint8.",
                      SHOWN(type_text));
    TRY(body_read_text(in, SLICE("distanceFunction"), what, SLICE_EMPTY, &distance_text, err));
    if (!body_find_word(distance_text, WORDS(DISTANCES), &distance))
        return REFUSE(err,
                      "The Vector Embedding Policy has an invalid DistanceFunction:%.*s. Expected "
                      "cosine, dotproduct or euclidean.",
                      SHOWN(distance_text));
    int64_t dimensions;
    bool found;
    TRY(body_read_whole(in, SLICE("dimensions"), what, INT32_MIN, INT32_MAX, &dimensions, &found,
                        err));
    if (!found || dimensions < 1)
        return REFUSE(err, "The Vector Embedding Policy has Dimensions:%lld; at least 1 is needed.",
                      found ? (long long)dimensions : 0);
    if (dimensions > VECTOR_DIMENSIONS_MAX)
        return REFUSE(err,
                      "The Vector Embedding Policy has Dimensions:%lld which is more than the "
                      "maximum supported value %d.",
                      (long long)dimensions, VECTOR_DIMENSIONS_MAX);
    json_begin_object(list->builder);
    body_add_text(list->builder, SLICE("path"), text);
    body_add_text(list->builder, SLICE("dataType"), DATA_TYPES[type]);
    json_key(list->builder, SLICE("dimensions"));
    json_add_i64(list->builder, dimensions);
    body_add_text(list->builder, SLICE("distanceFunction"), DISTANCES[distance]);
    json_end(list->builder);
    return STATUS_OK;
}

Status definition_check_vector_indexes(Arena *arena, Json in, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_array(in, "'vectorIndexes' of indexingPolicy", POLICY_PATHS_MAX, err));
    if (body_element_count(in) == 0)
        return STATUS_OK;
    JsonBuilder b;
    json_build(&b, arena);
    TRY(body_add_entries(arena, &b, in, vector_index, "vectorIndexes", err));
    *out = json_built(&b);
    return STATUS_OK;
}

static Status vector_index(const EntryList *list, Json in, PropertyPath *path, Error *err)
{
    const char *what = "a vector index";
    if (!json_is(in, JSON_OBJECT))
        return REFUSE(err, "A vector index must be an object; found %s.", body_type_phrase(in));
    Slice text, type_text;
    size_t type;
    TRY(body_read_path(list->arena, in, SLICE("path"), what, &text, path, err));
    TRY(body_read_text(in, SLICE("type"), what, SLICE_EMPTY, &type_text, err));
    if (!body_find_word(type_text, WORDS(INDEX_TYPES), &type))
        return REFUSE(err,
                      "The Vector Indexing Policy's Index Type::%.*s is invalid. Expected flat, "
                      "quantizedFlat or diskANN.",
                      SHOWN(type_text));
    TRY(shard_key(list->arena, body_member(in, SLICE("vectorIndexShardKey")), err));
    json_begin_object(list->builder);
    body_add_text(list->builder, SLICE("path"), text);
    body_add_text(list->builder, SLICE("type"), INDEX_TYPES[type]);
    TRY(vector_options(list->builder, in, type, err));
    json_end(list->builder);
    return STATUS_OK;
}

/* How finely vectors are compressed and how widely the graph is searched while it is built. The
 * largest quantizationByteSize depends on the embedding and is checked with it. */
static Status vector_options(JsonBuilder *b, Json in, size_t type, Error *err)
{
    static const Slice OPTIONS[] = {SLICE_INIT("quantizerType"), SLICE_INIT("quantizationByteSize"),
                                    SLICE_INIT("vectorIndexShardKey"),
                                    SLICE_INIT("indexingSearchListSize")};
    for (size_t i = 0; i < ARRAY_COUNT(OPTIONS); ++i) {
        bool fits = type == INDEX_DISK_ANN || (type == INDEX_QUANTIZED_FLAT && i < 3);
        if (!fits && !json_is(body_member(in, OPTIONS[i]), JSON_UNDEFINED))
            return REFUSE(err, "'%.*s' does not apply to a vector index of type '%.*s'.",
                          SLICE_ARG(OPTIONS[i]), SLICE_ARG(INDEX_TYPES[type]));
    }
    size_t quantizer;
    TRY(body_read_word(in, OPTIONS[0], "a vector index", WORDS(QUANTIZERS), 0, &quantizer, err));
    if (!json_is(body_member(in, OPTIONS[0]), JSON_UNDEFINED))
        body_add_text(b, OPTIONS[0], QUANTIZERS[quantizer]);

    int64_t size;
    bool found;
    TRY(body_read_whole(in, OPTIONS[1], "a vector index", INT32_MIN, INT32_MAX, &size, &found,
                        err));
    if (found) {
        json_key(b, OPTIONS[1]);
        json_add_i64(b, size);
    }
    TRY(body_read_whole(in, OPTIONS[3], "a vector index", INT32_MIN, INT32_MAX, &size, &found,
                        err));
    if (found && (size < VECTOR_SEARCH_LIST_MIN || size > VECTOR_SEARCH_LIST_MAX))
        return REFUSE(
            err,
            "The Vector Indexing Policy parameter IndexingSearchListSize value :: %lld is "
            "out of range. The allowed range is between %d and %d.",
            (long long)size, VECTOR_SEARCH_LIST_MIN, VECTOR_SEARCH_LIST_MAX);
    if (found) {
        json_key(b, OPTIONS[3]);
        json_add_i64(b, size);
    }
    body_add_member(b, OPTIONS[2], body_member(in, OPTIONS[2]));
    return STATUS_OK;
}

static Status shard_key(Arena *arena, Json keys, Error *err)
{
    if (json_is(keys, JSON_UNDEFINED))
        return STATUS_OK;
    if (!json_is(keys, JSON_ARRAY))
        return REFUSE(err,
                      "One of the specified inputs is invalid: 'vectorIndexShardKey' must be an "
                      "array with one path; found %s.",
                      body_type_phrase(keys));
    if (json_count(keys) > VECTOR_SHARD_KEYS_MAX)
        return REFUSE(
            err,
            "The number of shard paths defined in the Vector Indexing Policy: %zu exceeds "
            "the maximum: %d.",
            json_count(keys), VECTOR_SHARD_KEYS_MAX);
    JsonIter it = json_iter(keys);
    while (json_next(&it)) {
        Slice text = json_is(it.value, JSON_STRING) ? json_string(it.value) : SLICE_EMPTY;
        PropertyPath path;
        size_t position;
        if (!property_path_parse(arena, text, &path, &position))
            return REFUSE(err,
                          "The Vector Indexing Policy has an invalid Shard Path: %.*s. It failed "
                          "near position '%zu'.",
                          SHOWN(text), position);
    }
    return STATUS_OK;
}

Status definition_cross_check_vector(Json old, Json normal, Error *err)
{
    Slice policy = SLICE("vectorEmbeddingPolicy"), list = SLICE("vectorEmbeddings");
    Slice indexing = SLICE("indexingPolicy"), indexes = SLICE("vectorIndexes");
    Json entries = json_get(json_get(normal, policy), list);
    JsonIter it = json_iter(json_get(json_get(normal, indexing), indexes));
    while (json_next(&it)) {
        Json path = json_get(it.value, SLICE("path"));
        Json entry = body_find_entry(entries, path);
        if (json_is(entry, JSON_UNDEFINED))
            return REFUSE(err,
                          "The Vector Indexing Policy's path::%.*s not matching in Embedding's "
                          "path. Declare it in vectorEmbeddingPolicy.",
                          SHOWN(json_string(path)));
        TRY(index_fits_embedding(it.value, entry, err));
    }
    TRY(keep_entries(json_get(json_get(old, policy), list), entries, false, "embedding", err));
    return keep_entries(json_get(json_get(old, indexing), indexes),
                        json_get(json_get(normal, indexing), indexes), true, "vector indexing",
                        err);
}

static Status index_fits_embedding(Json index, Json entry, Error *err)
{
    int64_t dimensions = 0, size = 0;
    bool found;
    TRY(body_read_whole(entry, SLICE("dimensions"), "a vector embedding", 1, VECTOR_DIMENSIONS_MAX,
                        &dimensions, &found, err));
    Slice type = json_string(json_get(index, SLICE("type")));
    if (slice_equal(type, INDEX_TYPES[INDEX_FLAT]) && dimensions > VECTOR_FLAT_DIMENSIONS_MAX)
        return REFUSE(err,
                      "A vector index of type 'flat' is for at most %d dimensions; the embedding "
                      "'%.*s' has %lld. Use quantizedFlat or diskANN.",
                      VECTOR_FLAT_DIMENSIONS_MAX,
                      SHOWN(json_string(json_get(entry, SLICE("path")))), (long long)dimensions);
    int64_t max = dimensions < VECTOR_QUANTIZED_BYTES_MAX ? dimensions : VECTOR_QUANTIZED_BYTES_MAX;
    TRY(body_read_whole(index, SLICE("quantizationByteSize"), "a vector index", INT32_MIN,
                        INT32_MAX, &size, &found, err));
    if (found && (size < 1 || size > max))
        return REFUSE(err,
                      "The Vector Indexing Policy parameter QuantizationByteSize value :: %lld is "
                      "out of range. The allowed range is between 1 and %lld.",
                      (long long)size, (long long)max);
    return STATUS_OK;
}

/* What was declared keeps its meaning for the vectors that are stored already: an entry of 'old'
 * must be among 'entries' unchanged, or be gone if that is allowed. */
static Status keep_entries(Json old, Json entries, bool removable, const char *what, Error *err)
{
    JsonIter it = json_iter(old);
    while (json_next(&it)) {
        Json path = json_get(it.value, SLICE("path"));
        Json entry = body_find_entry(entries, path);
        if (removable && json_is(entry, JSON_UNDEFINED))
            continue;
        JsonIter part = json_iter(it.value);
        bool same = !json_is(entry, JSON_UNDEFINED) && json_count(entry) == json_count(it.value);
        while (same && json_next(&part)) {
            Json value = json_get(entry, part.name);
            same = slice_equal(part.name, SLICE("path")) || json_equal(value, part.value);
        }
        if (!same)
            return REFUSE(err,
                          "Paths in existing %s policy cannot be modified in Collection Replace; "
                          "'%.*s' is %s.",
                          what, SHOWN(json_string(path)),
                          json_is(entry, JSON_UNDEFINED) ? "missing" : "different");
    }
    return STATUS_OK;
}
