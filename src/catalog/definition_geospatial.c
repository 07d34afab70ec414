/* definition_geospatial.c - geospatialConfig, and the spatialIndexes that depend on it. */
#include "catalog/definition_int.h"

enum { GEOGRAPHY, GEOMETRY };
static const Slice GEO_TYPES[] = {SLICE_INIT("Geography"), SLICE_INIT("Geometry")};

Status definition_check_geospatial(Arena *arena, Json in, Json *out, Error *err)
{
    TRY(body_want_object(in, "geospatialConfig", err));
    size_t type;
    TRY(body_read_word(in, SLICE("type"), "geospatialConfig", WORDS(GEO_TYPES), GEOGRAPHY, &type,
                       err));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    body_add_text(&b, SLICE("type"), GEO_TYPES[type]);
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}

/* A plane has no bounds of its own, as the globe has, and the index needs some. */
Status definition_cross_check_spatial(Json normal, Error *err)
{
    Slice type = json_string(json_get(json_get(normal, SLICE("geospatialConfig")), SLICE("type")));
    bool is_plane = slice_equal(type, GEO_TYPES[GEOMETRY]);
    JsonIter it =
        json_iter(json_get(json_get(normal, SLICE("indexingPolicy")), SLICE("spatialIndexes")));
    while (json_next(&it)) {
        bool has_box = !json_is(json_get(it.value, SLICE("boundingBox")), JSON_UNDEFINED);
        if (has_box != is_plane)
            return REFUSE(err,
                          "The spatial index on '%.*s' must %s a boundingBox, because the type of "
                          "geospatialConfig is '%.*s'.",
                          SHOWN(json_string(json_get(it.value, SLICE("path")))),
                          is_plane ? "have" : "not have", SLICE_ARG(type));
    }
    return STATUS_OK;
}
