/* geo_json.c - GeoJSON as shapes.
 *
 *     {"type": "Point",        "coordinates": position}
 *     {"type": "LineString",   "coordinates": [position, position, ...]}
 *     {"type": "Polygon",      "coordinates": [ring, hole, ...]}         ring = [position, ...]
 *     {"type": "MultiPolygon", "coordinates": [[ring, hole, ...], ...]}
 *
 * A position is [x, y], perhaps with a height, which has no meaning here. Whatever else the object
 * holds does not matter. Everything is checked that needs no geometry; clients may read the reasons
 * (ST_ISVALIDDETAILED), so those that the service is known to give are worded as it words them.
 */
#include "query/eval/geo_int.h"
#include "query/eval/geo_sphere_int.h"

#include <math.h>

typedef struct Reader {
    Arena *arena;
    QueryGeo geo;
    const char *type; /* of the shape, for problems */
    size_t point_count;
    Slice problem;
} Reader;

static bool refuse(Reader *r, const char *problem)
{
    r->problem = slice_from_cstr(problem);
    return false;
}

static bool check_position(Reader *r, GeoPoint at)
{
    if (!isfinite(at.x) || !isfinite(at.y))
        return refuse(r, "Coordinates must be finite numbers.");
    if (r->geo == QUERY_GEOMETRY) {
        if (fabs(at.x) > GEO_PLANE_MAX || fabs(at.y) > GEO_PLANE_MAX)
            return refuse(r, "Coordinates must be between -1e15 and 1e15.");
        return true;
    }
    if (fabs(at.y) > 90)
        return refuse(r, "Latitude values must be between -90 and 90 degrees.");
    if (fabs(at.x) > 180)
        return refuse(r, "Longitude values must be between -180 and 180 degrees.");
    return true;
}

static bool read_position(Reader *r, Json position, GeoPoint *at, Vector *direction)
{
    size_t count = json_is(position, JSON_ARRAY) ? json_count(position) : 0;
    if (count != 2 && count != 3)
        return refuse(r, "A position must be an array of two numbers, or three with a height.");
    double numbers[3];
    JsonIter iter = json_iter(position);
    for (size_t i = 0; json_next(&iter); i++) {
        if (!json_is(iter.value, JSON_NUMBER))
            return refuse(r, "The numbers of a position must be numbers.");
        numbers[i] = json_number(iter.value);
    }
    *at = (GeoPoint){numbers[0], numbers[1]};
    if (!check_position(r, *at))
        return false;
    *direction = r->geo == QUERY_GEOMETRY ? (Vector){at->x, at->y, 0} : direction_of(*at);
    return true;
}

static bool read_chain(Reader *r, Json positions, Chain *out)
{
    if (!json_is(positions, JSON_ARRAY))
        return refuse(r, "Lines and rings must be arrays of positions.");
    size_t count = json_count(positions);
    r->point_count += count;
    if (r->point_count > GEO_POINTS_MAX)
        return refuse(r, "A shape must not have more than 65536 points.");
    out->points = arena_alloc(r->arena, sizeof(GeoPoint) * count);
    out->directions = arena_alloc(r->arena, sizeof(Vector) * count);
    JsonIter iter = json_iter(positions);
    while (json_next(&iter)) {
        if (!read_position(r, iter.value, &out->points[out->count], &out->directions[out->count]))
            return false;
        out->count++;
    }
    return true;
}

static bool check_ring(Reader *r, const Chain *ring, uint32_t number)
{
    if (ring->count < 4) {
        r->problem = arena_format(r->arena,
                                  "The %s input is not valid because the ring number %u does not "
                                  "have enough points. Each ring of a polygon must contain at "
                                  "least four points.",
                                  r->type, number);
        return false;
    }
    const GeoPoint *first = &ring->points[0];
    const GeoPoint *last = &ring->points[ring->count - 1];
    if (first->x == last->x && first->y == last->y)
        return true;
    r->problem = arena_format(r->arena,
                              "The %s input is not valid because the start and end points of the "
                              "ring number %u are not the same. Each ring of a polygon must have "
                              "the same start and end points.",
                              r->type, number);
    return false;
}

static bool read_polygon(Reader *r, Json rings, Part *out)
{
    size_t count = json_is(rings, JSON_ARRAY) ? json_count(rings) : 0;
    if (count == 0)
        return refuse(r, "The coordinates of a polygon must be an array of rings.");
    if (count > GEO_POLYGON_POINTS_MAX)
        return refuse(r, "A polygon must not have more than 4096 points.");
    out->kind = SHAPE_POLYGON;
    out->chains = ARENA_NEW_ARRAY(r->arena, Chain, count);
    JsonIter iter = json_iter(rings);
    while (json_next(&iter)) {
        Chain *ring = &out->chains[out->chain_count++];
        if (!read_chain(r, iter.value, ring) || !check_ring(r, ring, out->chain_count))
            return false;
        out->point_count += ring->count;
        if (out->point_count > GEO_POLYGON_POINTS_MAX)
            return refuse(r, "A polygon must not have more than 4096 points.");
    }
    return true;
}

static bool read_line(Reader *r, Json positions, Part *out)
{
    out->kind = SHAPE_LINE;
    out->chains = ARENA_NEW(r->arena, Chain);
    out->chain_count = 1;
    if (!read_chain(r, positions, out->chains))
        return false;
    out->point_count = out->chains->count;
    if (out->point_count < 2)
        return refuse(r, "The LineString input is not valid because it does not have enough "
                         "points. A LineString must contain at least two points.");
    return true;
}

static bool read_point(Reader *r, Json position, Part *out)
{
    out->kind = SHAPE_POINT;
    out->chains = ARENA_NEW(r->arena, Chain);
    out->chain_count = 1;
    out->chains->points = arena_alloc(r->arena, sizeof(GeoPoint));
    out->chains->directions = arena_alloc(r->arena, sizeof(Vector));
    out->chains->count = 1;
    out->point_count = 1;
    return read_position(r, position, out->chains->points, out->chains->directions);
}

static bool read_polygons(Reader *r, Json polygons, Shape *out)
{
    size_t count = json_is(polygons, JSON_ARRAY) ? json_count(polygons) : 0;
    if (count == 0)
        return refuse(r, "The coordinates of a MultiPolygon must be an array of polygons.");
    if (count > GEO_POINTS_MAX / 4)
        return refuse(r, "A shape must not have more than 65536 points.");
    out->parts = ARENA_NEW_ARRAY(r->arena, Part, count);
    JsonIter iter = json_iter(polygons);
    while (json_next(&iter)) {
        if (!read_polygon(r, iter.value, &out->parts[out->part_count++]))
            return false;
    }
    return true;
}

static bool read_shape(Reader *r, Json json, Shape *out)
{
    static const struct {
        const char *type;
        bool (*read)(Reader *r, Json coordinates, Part *out);
    } TYPES[] = {{"Point", read_point}, {"LineString", read_line}, {"Polygon", read_polygon}};
    Json type = json_get(json, SLICE("type"));
    Json coordinates = json_get(json, SLICE("coordinates"));
    if (!json_is(type, JSON_STRING))
        return refuse(r, "A GeoJSON object must have a type.");
    if (!json_is(coordinates, JSON_ARRAY))
        return refuse(r, "A GeoJSON object must have coordinates, which must be an array.");
    r->type = "MultiPolygon";
    if (slice_equal(json_string(type), slice_from_cstr(r->type)))
        return read_polygons(r, coordinates, out);
    for (size_t i = 0; i < ARRAY_COUNT(TYPES); i++) {
        if (!slice_equal(json_string(type), slice_from_cstr(TYPES[i].type)))
            continue;
        r->type = TYPES[i].type;
        out->parts = ARENA_NEW(r->arena, Part);
        out->part_count = 1;
        return TYPES[i].read(r, coordinates, out->parts);
    }
    return refuse(r, "The type must be Point, LineString, Polygon or MultiPolygon.");
}

Status geojson_read(Run *run, Arena *arena, Json json, Shape *out)
{
    size_t size = json_size(json_get(json, SLICE("coordinates")));
    TRY(run_charge(run, 1 + size / 4));
    TRY(run_reserve(run, 8 * size)); /* a position takes at least 6 bytes there, and 40 here */
    Reader r = {.arena = arena, .geo = run->options.geo};
    *out = (Shape){0};
    if (!read_shape(&r, json, out))
        *out = (Shape){.problem = r.problem};
    for (uint32_t i = 0; i < out->part_count && run->options.geo == QUERY_GEOGRAPHY; i++)
        part_measure(&out->parts[i]);
    return STATUS_OK;
}
