/* definition_index_kinds.c - compositeIndexes and spatialIndexes of an indexing policy. */
#include "catalog/definition_int.h"
#include "index/index_path.h"

#include <math.h>
#include <stdlib.h>

static const Slice ORDERS[] = {SLICE_INIT("ascending"), SLICE_INIT("descending")};

static const Slice SPATIAL_TYPES[] = {SLICE_INIT("Point"), SLICE_INIT("LineString"),
                                      SLICE_INIT("Polygon"), SLICE_INIT("MultiPolygon")};

static const Slice BOX_SIDES[] = {SLICE_INIT("xmin"), SLICE_INIT("ymin"), SLICE_INIT("xmax"),
                                  SLICE_INIT("ymax")};

typedef struct SpatialList {
    JsonBuilder builder;
    Slice *paths; /* canonical, of the entries so far */
    size_t count;
} SpatialList;

static Status composite_index(Arena *arena, JsonBuilder *b, Json in, Slice *canonical, Error *err);
static Status composite_path(Arena *arena, JsonBuilder *b, Json in, Slice *canonical, size_t *order,
                             Error *err);
static Status spatial_index(Arena *arena, Json in, SpatialList *list, Error *err);
static Status spatial_types(Json in, Slice path, Error *err);
static Status bounding_box(Json in, Error *err);
static Status add_legacy_spatial(Arena *arena, Json included, SpatialList *list, Error *err);
static bool has_spatial_kind(Json included_path);
static void add_spatial(SpatialList *list, Slice path, Json box);

Status definition_check_composite_indexes(Arena *arena, Json in, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_array(in, "'compositeIndexes' of indexingPolicy", COMPOSITE_INDEXES_MAX, err));
    if (body_element_count(in) == 0)
        return STATUS_OK;

    Slice canonical[COMPOSITE_INDEXES_MAX];
    size_t count = 0;
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_array(&b);
    JsonIter it = json_iter(in);
    while (json_next(&it))
        TRY(composite_index(arena, &b, it.value, &canonical[count++], err));
    json_end(&b);
    qsort(canonical, count, sizeof(Slice), body_compare_slices);
    for (size_t i = 1; i < count; ++i) {
        if (slice_equal(canonical[i - 1], canonical[i]))
            return REFUSE(err, "The composite index (%.*s) is given more than once.",
                          SHOWN(canonical[i]));
    }
    *out = json_built(&b);
    return STATUS_OK;
}

static Status composite_index(Arena *arena, JsonBuilder *b, Json in, Slice *canonical, Error *err)
{
    if (!json_is(in, JSON_ARRAY))
        return REFUSE(err, "A composite index must be an array of paths with orders; found %s.",
                      body_type_phrase(in));
    size_t count = json_count(in);
    if (count < 2 || count > COMPOSITE_PATHS_MAX)
        return REFUSE(err, "A composite index has 2 to %d paths; found %zu.", COMPOSITE_PATHS_MAX,
                      count);
    Slice paths[COMPOSITE_PATHS_MAX];
    AUTO(buf_done) Buf list;
    buf_init(&list, COMPOSITE_PATHS_MAX * (PROPERTY_PATH_CANONICAL_BYTES_MAX + 16));
    json_begin_array(b);
    for (size_t i = 0; i < count; ++i) {
        size_t order;
        TRY(composite_path(arena, b, json_at(in, i), &paths[i], &order, err));
        for (size_t k = 0; k < i; ++k) {
            if (slice_equal(paths[k], paths[i]))
                return REFUSE(err, "The path '%.*s' occurs more than once in a composite index.",
                              SHOWN(paths[i]));
        }
        buf_slice(&list, i == 0 ? SLICE_EMPTY : SLICE(", "));
        buf_slice(&list, paths[i]);
        buf_slice(&list, order == 0 ? SLICE(" ASC") : SLICE(" DESC"));
    }
    json_end(b);
    *canonical = arena_copy(arena, buf_view(&list));
    return STATUS_OK;
}

static Status composite_path(Arena *arena, JsonBuilder *b, Json in, Slice *canonical, size_t *order,
                             Error *err)
{
    if (!json_is(in, JSON_OBJECT))
        return REFUSE(err, "A path of a composite index must be an object; found %s.",
                      body_type_phrase(in));
    Slice text;
    IndexPath path;
    size_t position;
    TRY(body_read_text(in, SLICE("path"), "a composite index", SLICE_EMPTY, &text, err));
    if (!index_path_parse(arena, text, INDEX_PATH_BARE, &path, &position))
        return REFUSE(err,
                      "The composite indexing path '%.*s' could not be accepted, failed near "
                      "position '%zu'. A path names a value, like '/a/b', without '/?' or '/*'.",
                      SHOWN(text), position);
    TRY(body_read_word(in, SLICE("order"), "a composite index", WORDS(ORDERS), 0, order, err));
    *canonical = path.canonical;
    json_begin_object(b);
    body_add_text(b, SLICE("path"), text);
    body_add_text(b, SLICE("order"), ORDERS[*order]);
    json_end(b);
    return STATUS_OK;
}

Status definition_check_spatial_indexes(Arena *arena, Json in, Json included, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_array(in, "'spatialIndexes' of indexingPolicy", INDEX_PATHS_MAX, err));
    size_t count_max = body_element_count(in) + body_element_count(included);
    if (count_max == 0)
        return STATUS_OK;
    SpatialList *list = ARENA_NEW(arena, SpatialList);
    list->paths = ARENA_NEW_ARRAY(arena, Slice, count_max);
    json_build(&list->builder, arena);
    json_begin_array(&list->builder);
    JsonIter it = json_iter(in);
    while (json_next(&it))
        TRY(spatial_index(arena, it.value, list, err));

    /* The entries are built in the client's order; only the list of paths is sorted. */
    if (list->count > 0)
        qsort(list->paths, list->count, sizeof(Slice), body_compare_slices);
    for (size_t i = 1; i < list->count; ++i) {
        if (slice_equal(list->paths[i - 1], list->paths[i]))
            return REFUSE(err, "The spatial indexing path '%.*s' is given more than once.",
                          SHOWN(list->paths[i]));
    }
    TRY(add_legacy_spatial(arena, included, list, err));
    json_end(&list->builder);
    if (list->count > 0)
        *out = json_built(&list->builder);
    return STATUS_OK;
}

static Status spatial_index(Arena *arena, Json in, SpatialList *list, Error *err)
{
    if (!json_is(in, JSON_OBJECT))
        return REFUSE(err, "A spatial index must be an object; found %s.", body_type_phrase(in));
    Slice text;
    IndexPath path;
    size_t position;
    TRY(body_read_text(in, SLICE("path"), "a spatial index", SLICE_EMPTY, &text, err));
    if (!index_path_parse(arena, text, INDEX_PATH_SCALAR | INDEX_PATH_SUBTREE, &path, &position))
        return REFUSE(
            err,
            "The spatial indexing path '%.*s' could not be accepted, failed near position "
            "'%zu'. A path ends with '/?' or '/*'.",
            SHOWN(text), position);
    TRY(spatial_types(body_member(in, SLICE("types")), text, err));
    Json box = body_member(in, SLICE("boundingBox"));
    TRY(bounding_box(box, err));
    list->paths[list->count++] = path.canonical;
    add_spatial(list, path.is_root ? SLICE("/*") : text, box);
    return STATUS_OK;
}

/* The types are checked, but each index takes all of them, as the service's do. */
static Status spatial_types(Json in, Slice path, Error *err)
{
    TRY(body_want_array(in, "'types' of a spatial index", ARRAY_COUNT(SPATIAL_TYPES), err));
    if (body_element_count(in) == 0)
        return REFUSE(err,
                      "The spatial data types array cannot be empty. Assign at least one spatial "
                      "type for the 'types' array for the path '%.*s'.",
                      SHOWN(path));
    JsonIter it = json_iter(in);
    while (json_next(&it)) {
        Slice type = json_is(it.value, JSON_STRING) ? json_string(it.value) : SLICE_EMPTY;
        bool known = false;
        for (size_t i = 0; i < ARRAY_COUNT(SPATIAL_TYPES) && !known; ++i)
            known = slice_equal_nocase(type, SPATIAL_TYPES[i]);
        if (!known)
            return REFUSE(err,
                          "The type '%.*s' of a spatial index is not known; expected Point, "
                          "LineString, Polygon or MultiPolygon.",
                          SHOWN(type));
    }
    return STATUS_OK;
}

static Status bounding_box(Json in, Error *err)
{
    TRY(body_want_object(in, "'boundingBox' of a spatial index", err));
    if (json_is(in, JSON_UNDEFINED))
        return STATUS_OK;
    double sides[ARRAY_COUNT(BOX_SIDES)];
    for (size_t i = 0; i < ARRAY_COUNT(BOX_SIDES); ++i) {
        Json side = body_member(in, BOX_SIDES[i]);
        if (!json_is(side, JSON_NUMBER) || !isfinite(json_number(side)))
            return REFUSE(err, "'%.*s' of a boundingBox must be a number; found %s.",
                          SLICE_ARG(BOX_SIDES[i]), body_type_phrase(side));
        sides[i] = json_number(side);
    }
    if (sides[0] >= sides[2] || sides[1] >= sides[3])
        return REFUSE(err,
                      "A boundingBox must have xmin < xmax and ymin < ymax; found xmin %.17g, xmax "
                      "%.17g, ymin %.17g, ymax %.17g.",
                      sides[0], sides[2], sides[1], sides[3]);
    return STATUS_OK;
}

/* An included path with an index of the kind "Spatial" is the older form of a spatial index.
 * Included paths are distinct by now or will be refused; only an entry of the newer form can
 * stand for the same path, and it wins. */
static Status add_legacy_spatial(Arena *arena, Json included, SpatialList *list, Error *err)
{
    size_t sorted_count = list->count;
    JsonIter it = json_iter(included);
    while (json_next(&it)) {
        if (!has_spatial_kind(it.value))
            continue;
        Slice text = json_string(json_get(it.value, SLICE("path")));
        IndexPath path;
        size_t position;
        if (!index_path_parse(arena, text, INDEX_PATH_SCALAR | INDEX_PATH_SUBTREE, &path,
                              &position))
            return REFUSE(err, "The tuple '%.*s' cannot have a spatial index.", SHOWN(text));
        if (sorted_count > 0 && bsearch(&path.canonical, list->paths, sorted_count, sizeof(Slice),
                                        body_compare_slices) != NULL)
            continue;
        if (list->count == INDEX_PATHS_MAX)
            return REFUSE(err, "There are more than %d spatial indexes.", INDEX_PATHS_MAX);
        list->paths[list->count++] = path.canonical;
        add_spatial(list, path.is_root ? SLICE("/*") : text, JSON_NONE);
    }
    return STATUS_OK;
}

static bool has_spatial_kind(Json included_path)
{
    JsonIter it = json_iter(json_get(included_path, SLICE("indexes")));
    while (json_next(&it)) {
        Json kind = json_get(it.value, SLICE("kind"));
        if (json_is(kind, JSON_STRING) && slice_equal_nocase(json_string(kind), SLICE("Spatial")))
            return true;
    }
    return false;
}

static void add_spatial(SpatialList *list, Slice path, Json box)
{
    JsonBuilder *b = &list->builder;
    json_begin_object(b);
    body_add_text(b, SLICE("path"), path);
    json_key(b, SLICE("types"));
    json_begin_array(b);
    for (size_t i = 0; i < ARRAY_COUNT(SPATIAL_TYPES); ++i)
        json_add_string(b, SPATIAL_TYPES[i]);
    json_end(b);
    if (!json_is(box, JSON_UNDEFINED)) {
        json_key(b, SLICE("boundingBox"));
        json_begin_object(b);
        for (size_t i = 0; i < ARRAY_COUNT(BOX_SIDES); ++i)
            body_add_member(b, BOX_SIDES[i], json_get(box, BOX_SIDES[i]));
        json_end(b);
    }
    json_end(b);
}
