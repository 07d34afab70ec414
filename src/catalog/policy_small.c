/* policy_small.c - the policies of a few words: conflicts, geography, lifetimes, change feed. */
#include "catalog/definition_int.h"

enum { CONFLICT_LAST_WRITER, CONFLICT_CUSTOM };
static const Slice CONFLICT_MODES[] = {SLICE_INIT("LastWriterWins"), SLICE_INIT("Custom")};

enum { GEOGRAPHY, GEOMETRY };
static const Slice GEO_TYPES[] = {SLICE_INIT("Geography"), SLICE_INIT("Geometry")};

static Status check_ttl(Arena *arena, Json in, const char *name, bool zero_is_off, Json *out,
                        Error *err);

Status policy_check_conflict_resolution(Arena *arena, Json in, Json *out, Error *err)
{
    const char *what = "conflictResolutionPolicy";
    TRY(body_want_object(in, what, err));
    size_t mode;
    Slice path, procedure;
    TRY(body_read_word(in, SLICE("mode"), what, WORDS(CONFLICT_MODES), CONFLICT_LAST_WRITER, &mode,
                       err));
    TRY(body_read_text(in, SLICE("conflictResolutionPath"), what, SLICE_EMPTY, &path, err));
    TRY(body_read_text(in, SLICE("conflictResolutionProcedure"), what, SLICE_EMPTY, &procedure,
                       err));
    if (mode == CONFLICT_LAST_WRITER && procedure.len > 0)
        return REFUSE(err, "LastWriterWins conflict resolution mode should not have conflict "
                           "resolution procedure set.");
    if (mode == CONFLICT_CUSTOM && path.len > 0)
        return REFUSE(err, "Custom conflict resolution mode should not have conflict resolution "
                           "path set.");
    PropertyPath parsed;
    size_t position;
    bool is_property = path_parse(arena, path, &parsed, &position) && parsed.count == 1;
    if (mode == CONFLICT_LAST_WRITER && path.len > 0 && !is_property)
        return REFUSE(err,
                      "Invalid path '%.*s' for last writer wins conflict resolution. Name a "
                      "property of the item itself, like '/version'.",
                      SHOWN(path));
    if (mode == CONFLICT_LAST_WRITER && path.len == 0)
        path = SLICE("/_ts");

    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    body_add_text(&b, SLICE("mode"), CONFLICT_MODES[mode]);
    body_add_text(&b, SLICE("conflictResolutionPath"), path);
    body_add_text(&b, SLICE("conflictResolutionProcedure"), procedure);
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}

Status policy_check_geospatial(Arena *arena, Json in, Json *out, Error *err)
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
Status policy_cross_check_spatial(Json normal, Error *err)
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

Status policy_check_default_ttl(Arena *arena, Json in, Json *out, Error *err)
{
    return check_ttl(arena, in, "defaultTtl", false, out, err);
}

Status policy_check_analytical_ttl(Arena *arena, Json in, Json *out, Error *err)
{
    return check_ttl(arena, in, "analyticalStorageTtl", true, out, err);
}

static Status check_ttl(Arena *arena, Json in, const char *name, bool zero_is_off, Json *out,
                        Error *err)
{
    *out = JSON_NONE;
    if (json_is(in, JSON_UNDEFINED))
        return STATUS_OK;
    int64_t ttl_s;
    if (!json_is(in, JSON_NUMBER))
        return REFUSE(err, "%s must be a whole number of seconds; found %s.", name,
                      body_type_phrase(in));
    if (!json_to_i64(in, &ttl_s) || ttl_s < -1 || ttl_s > TTL_S_MAX || (ttl_s == 0 && !zero_is_off))
        return REFUSE(err,
                      "%s must be -1, which is for ever, or a whole number of seconds from %d to "
                      "%d; found %.17g.",
                      name, zero_is_off ? 0 : 1, TTL_S_MAX, json_number(in));
    if (ttl_s == 0)
        return STATUS_OK;
    JsonBuilder b;
    json_build(&b, arena);
    json_add_i64(&b, ttl_s);
    *out = json_built(&b);
    return STATUS_OK;
}

Status policy_check_change_feed(Arena *arena, Json in, Json *out, Error *err)
{
    *out = JSON_NONE;
    TRY(body_want_object(in, "changeFeedPolicy", err));
    if (json_is(in, JSON_UNDEFINED))
        return STATUS_OK;
    int64_t minutes = 0;
    bool found;
    TRY(body_read_whole(in, SLICE("retentionDuration"), "changeFeedPolicy", 0,
                        CHANGE_FEED_RETENTION_MIN_MAX, &minutes, &found, err));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("retentionDuration"));
    json_add_i64(&b, minutes);
    json_end(&b);
    *out = json_built(&b);
    return STATUS_OK;
}
