/* geo.c - see geo_int.h. The only file that knows GEOS, which it loads for the first outline.
 *
 * Inside and outside are questions for GEOS, which knows planes only: the shapes of a geography are
 * put on a map on which their edges are straight (geo_sphere_int.h). A line or polygon that does
 * not fit on a map is not valid. Lengths and areas are asked of geo_earth_int.h.
 *
 * Part by part: a polygon that runs clockwise is the complement of its outline, which fits on a map
 * where the polygon does not. What holds for complements follows from what holds for outlines, so
 * all that is ever asked of GEOS is in relate().
 *
 * Hostile shapes. A polygon that crosses itself is found by the check for validity, which stops at
 * the first crossing. Between two shapes GEOS stops early too, except when it must know exactly how
 * boundaries touch; it then keeps every place where two edges meet. Before that the pairs of edges
 * that could are counted, and if they are too many there is no answer.
 */
#include "query/eval/geo_int.h"

#include "base/mem.h"
#include "query/eval/geo_earth_int.h"
#include "query/eval/geo_library_int.h"
#include "query/eval/geo_sphere_int.h"

#include <geos_c.h>
#include <math.h>

enum {
    SHAPE_ARENA_BYTES = 4 << 10,
    MEETINGS_MAX = 1 << 17, /* pairs of edges that GEOS may keep: about 30 MB */
    POINT_STEPS = 8,        /* to check or to look up a point of an outline */
};

#define ANGLE_SLACK                                                              \
    1e-7 /* radians, about a metre: caps are a little larger than they should be \
          */

#define GEOS_LIBRARY "libgeos_c.so.1"

/* What we use of it: context first, as all functions that several threads may call. */
#define GEOS_FUNCTIONS(X)             \
    X(GEOSArea_r)                     \
    X(GEOSCoordSeq_copyFromBuffer_r)  \
    X(GEOSFree_r)                     \
    X(GEOSGeom_createLineString_r)    \
    X(GEOSGeom_createLinearRing_r)    \
    X(GEOSGeom_createPointFromXY_r)   \
    X(GEOSGeom_createPolygon_r)       \
    X(GEOSGeom_destroy_r)             \
    X(GEOSPreparedContainsProperly_r) \
    X(GEOSPreparedContains_r)         \
    X(GEOSPreparedDistance_r)         \
    X(GEOSPreparedGeom_destroy_r)     \
    X(GEOSPreparedIntersects_r)       \
    X(GEOSPreparedTouches_r)          \
    X(GEOSPrepare_r)                  \
    X(GEOS_finish_r)                  \
    X(GEOS_init_r)                    \
    X(GEOSisValidDetail_r)

/* The library, once an outline needs it. */
typedef struct Geos {
    GEOSContextHandle_t context; /* NULL until then */
#define POINTER(function) typeof(function) *function;
    GEOS_FUNCTIONS(POINTER)
#undef POINTER
} Geos;

struct GeoOutline {
    GEOSGeometry *geometry;
    const GEOSPreparedGeometry *prepared; /* NULL until it is needed */
    Map map;                              /* on which it is; of no meaning on a plane */
};

/* A line or polygon that was read, found again by its bytes. */
typedef struct ShapeEntry {
    Arena arena;
    const void *bytes; /* NULL if the entry is free */
    size_t size;
    uint64_t used_at;
    Shape shape;
} ShapeEntry;

struct Shapes {
    Geos geos;
    Earth *earth; /* NULL until a length or an area is asked for */
    ShapeEntry list[SHAPES_MAX];
    uint64_t time;
};

static Status load_geos(Geos *geos, Error *err)
{
#define FUNCTION_ROW(function) LIBRARY_FUNCTION(Geos, function),
    static const LibraryFunction FUNCTIONS[] = {GEOS_FUNCTIONS(FUNCTION_ROW)};
#undef FUNCTION_ROW
    if (geos->context != NULL)
        return STATUS_OK;
    TRY(library_load(GEOS_LIBRARY, FUNCTIONS, ARRAY_COUNT(FUNCTIONS), geos, err));
    geos->context = geos->GEOS_init_r();
    ASSERT(geos->context != NULL); /* a few bytes */
    return STATUS_OK;
}

static void outline_done(const Geos *geos, GeoOutline *outline)
{
    if (outline->prepared != NULL)
        geos->GEOSPreparedGeom_destroy_r(geos->context, outline->prepared);
    if (outline->geometry != NULL)
        geos->GEOSGeom_destroy_r(geos->context, outline->geometry);
    *outline = (GeoOutline){0};
}

static void shape_forget(Shapes *shapes, ShapeEntry *entry)
{
    for (uint32_t i = 0; i < entry->shape.part_count; i++) {
        if (entry->shape.parts[i].outline != NULL)
            outline_done(&shapes->geos, entry->shape.parts[i].outline);
    }
    arena_reset(&entry->arena);
    entry->shape = (Shape){0};
    entry->bytes = NULL;
}

static Shapes *shapes_get(Run *run)
{
    if (run->shapes != NULL)
        return run->shapes;
    Shapes *shapes = MEM_NEW(Shapes);
    for (size_t i = 0; i < SHAPES_MAX; i++)
        arena_init(&shapes->list[i].arena, SHAPE_ARENA_BYTES);
    run->shapes = shapes;
    return shapes;
}

void shapes_free(Shapes *shapes)
{
    if (shapes == NULL)
        return;
    for (size_t i = 0; i < SHAPES_MAX; i++) {
        shape_forget(shapes, &shapes->list[i]);
        arena_done(&shapes->list[i].arena);
    }
    if (shapes->geos.context != NULL)
        shapes->geos.GEOS_finish_r(shapes->geos.context);
    earth_free(shapes->earth);
    mem_free(shapes);
}

/* Outlines */

static GEOSCoordSequence *place_chain(Run *run, const Chain *chain, const Map *map)
{
    GeoPoint *places = arena_alloc(run->scratch, sizeof(GeoPoint) * chain->count);
    bool flat = run->options.geo == QUERY_GEOMETRY;
    for (uint32_t i = 0; i < chain->count; i++)
        places[i] = flat ? chain->points[i] : map_place(map, chain->directions[i]);
    const Geos *geos = &run->shapes->geos;
    return geos->GEOSCoordSeq_copyFromBuffer_r(geos->context, &places[0].x, chain->count, 0, 0);
}

static GEOSGeometry *place_ring(Run *run, const Chain *chain, const Map *map)
{
    GEOSCoordSequence *places = place_chain(run, chain, map);
    const Geos *geos = &run->shapes->geos;
    return places == NULL ? NULL : geos->GEOSGeom_createLinearRing_r(geos->context, places);
}

static GEOSGeometry *place_polygon(Run *run, const Part *part, const Map *map)
{
    const Geos *geos = &run->shapes->geos;
    GEOSGeometry **rings = ARENA_NEW_ARRAY(run->scratch, GEOSGeometry *, part->chain_count);
    bool complete = true;
    for (uint32_t i = 0; i < part->chain_count && complete; i++) {
        rings[i] = place_ring(run, &part->chains[i], map);
        complete = rings[i] != NULL;
    }
    if (complete)
        return geos->GEOSGeom_createPolygon_r(geos->context, rings[0], rings + 1,
                                              part->chain_count - 1);
    for (uint32_t i = 0; i < part->chain_count && rings[i] != NULL; i++)
        geos->GEOSGeom_destroy_r(geos->context, rings[i]);
    return NULL;
}

/* The part on a map. NULL if the library has no memory, or does not like what it sees. */
static Status place_part(Run *run, const Part *part, const Map *map, GEOSGeometry **out)
{
    const Geos *geos = &run->shapes->geos;
    TRY(run_charge(run, part->point_count));
    if (part->kind == SHAPE_POINT) {
        bool flat = run->options.geo == QUERY_GEOMETRY;
        GeoPoint at = flat ? part->chains->points[0] : map_place(map, part->chains->directions[0]);
        *out = geos->GEOSGeom_createPointFromXY_r(geos->context, at.x, at.y);
        return STATUS_OK;
    }
    TRY(run_reserve(run, 4 * sizeof(GeoPoint) * part->point_count));
    if (part->kind == SHAPE_POLYGON) {
        *out = place_polygon(run, part, map);
        return STATUS_OK;
    }
    GEOSCoordSequence *places = place_chain(run, part->chains, map);
    *out = places == NULL ? NULL : geos->GEOSGeom_createLineString_r(geos->context, places);
    return STATUS_OK;
}

/* Why GEOS does not take it for valid; the place it also knows is one of a map. */
static Slice find_problem(Run *run, Arena *arena, const Part *part, const GEOSGeometry *geometry)
{
    const Geos *geos = &run->shapes->geos;
    const char *type = part->kind == SHAPE_LINE ? "LineString" : "Polygon";
    char *reason = NULL;
    GEOSGeometry *place = NULL;
    if (geometry == NULL)
        return arena_format(arena, "The %s input is not valid.", type);
    char valid = geos->GEOSisValidDetail_r(geos->context, geometry, 0, &reason, &place);
    Slice problem = SLICE_EMPTY;
    if (valid != 1)
        problem = arena_format(arena, "The %s input is not valid: %s.", type,
                               reason == NULL ? "its shape cannot be read" : reason);
    geos->GEOSFree_r(geos->context, reason);
    if (place != NULL)
        geos->GEOSGeom_destroy_r(geos->context, place);
    return problem;
}

/* Twice the area that a ring runs around counter-clockwise. */
static double turn(const Chain *ring, const Map *map)
{
    double area = 0;
    GeoPoint first = map_place(map, ring->directions[0]);
    GeoPoint a = {0, 0};
    for (uint32_t i = 1; i < ring->count; i++) {
        GeoPoint b = map_place(map, ring->directions[i]);
        b = (GeoPoint){b.x - first.x, b.y - first.y};
        area += a.x * b.y - b.x * a.y;
        a = b;
    }
    return area;
}

static Status make_outline(Run *run, Arena *arena, Part *part, Slice *problem)
{
    GeoOutline *outline = ARENA_NEW(arena, GeoOutline);
    part->outline = outline;
    if (run->options.geo == QUERY_GEOGRAPHY) {
        if (part->radius > MAP_RADIUS_MAX) {
            *problem = SLICE("The input is not valid because it does not fit in a hemisphere.");
            return STATUS_OK;
        }
        outline->map = map_make(part->centre);
        part->is_inverse = part->kind == SHAPE_POLYGON && turn(&part->chains[0], &outline->map) < 0;
    }
    TRY(run_charge(run, (uint64_t)POINT_STEPS * part->point_count));
    TRY(load_geos(&run->shapes->geos, run->err));
    TRY(place_part(run, part, &outline->map, &outline->geometry));
    *problem = find_problem(run, arena, part, outline->geometry);
    return STATUS_OK;
}

static Status read_entry(Run *run, ShapeEntry *entry, Json json)
{
    Shape *shape = &entry->shape;
    TRY(geojson_read(run, &entry->arena, json, shape));
    Slice problem = shape->problem;
    for (uint32_t i = 0; i < shape->part_count && problem.len == 0; i++)
        TRY(make_outline(run, &entry->arena, &shape->parts[i], &problem));
    shape->problem = problem;
    entry->size = json_size(json);
    entry->bytes = arena_copy(&entry->arena, slice_make(json.at, entry->size)).ptr;
    return STATUS_OK;
}

Status shape_read(Run *run, const Value *value, const Shape **out)
{
    *out = NULL;
    if (value->type != JSON_OBJECT)
        return STATUS_OK;
    Json type = json_get(value->json, SLICE("type"));
    Shapes *shapes = shapes_get(run);
    if (json_is(type, JSON_STRING) && slice_equal(json_string(type), SLICE("Point"))) {
        /* Quickly read, and seldom the same twice. */
        Shape *shape = ARENA_NEW(run->scratch, Shape);
        *out = shape;
        return geojson_read(run, run->scratch, value->json, shape);
    }
    size_t size = json_size(value->json);
    TRY(run_charge_bytes(run, size));
    ShapeEntry *oldest = &shapes->list[0];
    for (ShapeEntry *entry = shapes->list; entry < shapes->list + SHAPES_MAX; entry++) {
        if (entry->bytes != NULL && entry->size == size &&
            memcmp(entry->bytes, value->json.at, size) == 0) {
            entry->used_at = ++shapes->time;
            *out = &entry->shape;
            return STATUS_OK;
        }
        if (entry->used_at < oldest->used_at)
            oldest = entry;
    }
    shape_forget(shapes, oldest);
    oldest->used_at = ++shapes->time;
    TRY(read_entry(run, oldest, value->json));
    *out = &oldest->shape;
    return STATUS_OK;
}

/* How two parts lie to each other */

/* What GEOS is asked about the outline of a line or polygon, the holder, and another one. */
typedef enum Relation { HOLDER_MEETS, HOLDER_HOLDS, HOLDER_HOLDS_INSIDE, HOLDER_TOUCHES } Relation;

typedef struct Answer {
    bool holds;
    bool is_known;
} Answer;

#define ANSWER(holds)  ((Answer){(holds), true})
#define ANSWER_UNKNOWN ((Answer){false, false})

static Answer answer_not(Answer answer)
{
    return (Answer){!answer.holds, answer.is_known};
}

static Answer ask(const Geos *geos, Relation relation, const GEOSPreparedGeometry *holder,
                  const GEOSGeometry *other)
{
    char answer = 2; /* as GEOS says that it failed */
    switch (relation) {
    case HOLDER_MEETS:
        answer = geos->GEOSPreparedIntersects_r(geos->context, holder, other);
        break;
    case HOLDER_HOLDS:
        answer = geos->GEOSPreparedContains_r(geos->context, holder, other);
        break;
    case HOLDER_HOLDS_INSIDE:
        answer = geos->GEOSPreparedContainsProperly_r(geos->context, holder, other);
        break;
    case HOLDER_TOUCHES:
        answer = geos->GEOSPreparedTouches_r(geos->context, holder, other);
        break;
    }
    return (Answer){answer == 1, answer != 2};
}

static bool ranges_meet(double a, double b, double c, double d)
{
    return fmin(a, b) <= fmax(c, d) && fmin(c, d) <= fmax(a, b);
}

static bool edges_may_meet(const Vector *a, const Vector *b)
{
    return ranges_meet(a[0].x, a[1].x, b[0].x, b[1].x) &&
           ranges_meet(a[0].y, a[1].y, b[0].y, b[1].y) &&
           ranges_meet(a[0].z, a[1].z, b[0].z, b[1].z);
}

static size_t count_meetings(const Chain *a, const Chain *b)
{
    size_t count = 0;
    for (uint32_t i = 0; i + 1 < a->count; i++) {
        for (uint32_t j = 0; j + 1 < b->count; j++)
            count += edges_may_meet(a->directions + i, b->directions + j);
        if (count > MEETINGS_MAX)
            break;
    }
    return count;
}

/* Whether so many edges may meet that GEOS would need too much memory for them. */
static Status is_too_complex(Run *run, const Part *a, const Part *b, bool *out)
{
    uint64_t pairs = (uint64_t)a->point_count * b->point_count;
    size_t count = 0;
    *out = false;
    if (pairs <= MEETINGS_MAX)
        return STATUS_OK;
    TRY(run_charge(run, pairs / 16));
    for (uint32_t i = 0; i < a->chain_count; i++) {
        for (uint32_t j = 0; j < b->chain_count; j++)
            count += count_meetings(&a->chains[i], &b->chains[j]);
    }
    *out = count > MEETINGS_MAX;
    return STATUS_OK;
}

static void prepare(const Geos *geos, GeoOutline *outline)
{
    if (outline->prepared == NULL && outline->geometry != NULL)
        outline->prepared = geos->GEOSPrepare_r(geos->context, outline->geometry);
}

/* Asks on the holder's map, or, if it has no place for the other, on one of 'shared'. */
static Status ask_on_map(Run *run, Relation relation, const Part *holder, const Part *other,
                         const Map *shared, Answer *out)
{
    const Geos *geos = &run->shapes->geos;
    GeoOutline own = {0};
    GeoOutline *outline = holder->outline;
    GEOSGeometry *geometry = NULL;
    bool flat = run->options.geo == QUERY_GEOMETRY;
    bool borrowed = flat && other->kind != SHAPE_POINT;
    if (shared != NULL) {
        TRY(place_part(run, holder, shared, &own.geometry));
        own.map = *shared;
        outline = &own;
    }
    Status status = STATUS_OK;
    if (borrowed)
        geometry = other->outline->geometry;
    else
        status = place_part(run, other, &outline->map, &geometry);
    prepare(geos, outline);
    *out = outline->prepared == NULL || geometry == NULL
               ? ANSWER_UNKNOWN
               : ask(geos, relation, outline->prepared, geometry);
    if (geometry != NULL && !borrowed)
        geos->GEOSGeom_destroy_r(geos->context, geometry);
    outline_done(geos, &own);
    return status;
}

/* A map that both have a place on, if there is one. */
static bool find_map(const Part *a, const Part *b, Map *out)
{
    double angle = direction_angle(a->centre, b->centre);
    if ((angle + a->radius + b->radius) / 2 > MAP_RADIUS_MAX)
        return false;
    double way = fmin(fmax((angle + b->radius - a->radius) / 2, 0), angle);
    *out = map_make(direction_between(a->centre, b->centre, way));
    return true;
}

/* The holder is a line or polygon. */
static Status relate(Run *run, Relation relation, const Part *holder, const Part *other,
                     Answer *out)
{
    uint64_t points = other->kind == SHAPE_POINT ? 1 + holder->point_count / 64
                                                 : other->point_count + holder->point_count;
    TRY(run_charge(run, POINT_STEPS * points));
    Map map;
    const Map *shared = NULL;
    if (run->options.geo == QUERY_GEOGRAPHY) {
        double angle = direction_angle(holder->centre, other->centre);
        *out = ANSWER(false);
        if (angle > holder->radius + other->radius + ANGLE_SLACK)
            return STATUS_OK; /* too far from each other for any of the relations */
        *out = ANSWER_UNKNOWN;
        if (angle + other->radius > MAP_RADIUS_MAX) {
            if (!find_map(holder, other, &map))
                return STATUS_OK;
            shared = &map;
        }
    }
    bool too_complex = false;
    if (relation == HOLDER_HOLDS || relation == HOLDER_TOUCHES)
        TRY(is_too_complex(run, holder, other, &too_complex));
    *out = ANSWER_UNKNOWN;
    return too_complex ? STATUS_OK : ask_on_map(run, relation, holder, other, shared, out);
}

static bool same_place(Run *run, const Part *a, const Part *b)
{
    if (run->options.geo == QUERY_GEOMETRY)
        return a->chains->points[0].x == b->chains->points[0].x &&
               a->chains->points[0].y == b->chains->points[0].y;
    /* 180 degrees east and west are the same, and so are all longitudes of a pole. */
    return direction_angle(a->centre, b->centre) < 1e-12;
}

static Status parts_intersect(Run *run, const Part *a, const Part *b, Answer *out)
{
    if (a->kind == SHAPE_POINT && b->kind == SHAPE_POINT) {
        *out = ANSWER(same_place(run, a, b));
        return STATUS_OK;
    }
    *out = ANSWER(true);
    if (a->is_inverse && b->is_inverse)
        return STATUS_OK; /* both are more than half of the Earth */
    if (!a->is_inverse && !b->is_inverse) {
        /* The second argument is usually the one that stays the same. */
        bool by_b = b->kind != SHAPE_POINT;
        return relate(run, HOLDER_MEETS, by_b ? b : a, by_b ? a : b, out);
    }
    const Part *inverse = a->is_inverse ? a : b;
    TRY(relate(run, HOLDER_HOLDS_INSIDE, inverse, a->is_inverse ? b : a, out));
    *out = answer_not(*out);
    return STATUS_OK;
}

static Status part_within(Run *run, const Part *a, const Part *b, Answer *out)
{
    if (a->kind == SHAPE_POINT && b->kind == SHAPE_POINT) {
        *out = ANSWER(same_place(run, a, b));
        return STATUS_OK;
    }
    if (a->kind > b->kind) {
        *out = ANSWER(false); /* no polygon is within a line, and no line within a point */
        return STATUS_OK;
    }
    if (!b->is_inverse) {
        *out = ANSWER(false); /* more than half of the Earth is in no part that fits on a map */
        return a->is_inverse ? STATUS_OK : relate(run, HOLDER_HOLDS, b, a, out);
    }
    if (a->is_inverse)
        return relate(run, HOLDER_HOLDS, a, b, out);
    TRY(relate(run, HOLDER_MEETS, b, a, out));
    *out = answer_not(*out);
    if (out->holds || !out->is_known || a->kind == SHAPE_POINT)
        return STATUS_OK;
    return relate(run, HOLDER_TOUCHES, b, a, out);
}

Status geo_intersects(Run *run, const Shape *a, const Shape *b, bool *holds, bool *is_known)
{
    *holds = false;
    *is_known = true;
    for (uint32_t i = 0; i < a->part_count; i++) {
        for (uint32_t j = 0; j < b->part_count; j++) {
            Answer answer;
            TRY(parts_intersect(run, &a->parts[i], &b->parts[j], &answer));
            *is_known &= answer.is_known;
            *holds = answer.is_known && answer.holds;
            if (*holds) {
                *is_known = true;
                return STATUS_OK;
            }
        }
    }
    return STATUS_OK;
}

/* Every part in some part of the other: parts of one shape do not overlap. */
Status geo_within(Run *run, const Shape *a, const Shape *b, bool *holds, bool *is_known)
{
    *holds = true;
    *is_known = true;
    for (uint32_t i = 0; i < a->part_count && *holds; i++) {
        *holds = false;
        *is_known = true;
        for (uint32_t j = 0; j < b->part_count && !*holds; j++) {
            Answer answer;
            TRY(part_within(run, &a->parts[i], &b->parts[j], &answer));
            *is_known &= answer.is_known;
            *holds = answer.is_known && answer.holds;
        }
        *is_known |= *holds;
    }
    return STATUS_OK;
}

/* Distances and areas */

/* Less than any distance between the two can be. */
static double least_distance(const Part *a, const Part *b)
{
    double angle = direction_angle(a->centre, b->centre) - a->radius - b->radius;
    return (angle - ANGLE_SLACK) * EARTH_RADIUS_M * 0.99;
}

/* Between parts of a plane that do not meet; one of them is not a point. */
static Status plane_distance(Run *run, const Part *a, const Part *b, double *out, bool *is_known)
{
    const Geos *geos = &run->shapes->geos;
    const Part *holder = b->kind == SHAPE_POINT ? a : b;
    const Part *other = holder == a ? b : a;
    TRY(run_charge(run, (uint64_t)POINT_STEPS * (a->point_count + b->point_count)));
    GEOSGeometry *point = NULL;
    if (other->kind == SHAPE_POINT)
        TRY(place_part(run, other, NULL, &point));
    prepare(geos, holder->outline);
    const GEOSGeometry *geometry = other->kind == SHAPE_POINT ? point : other->outline->geometry;
    *is_known =
        geometry != NULL && holder->outline->prepared != NULL &&
        geos->GEOSPreparedDistance_r(geos->context, holder->outline->prepared, geometry, out) == 1;
    if (point != NULL)
        geos->GEOSGeom_destroy_r(geos->context, point);
    return STATUS_OK;
}

static Status find_earth(Run *run, const Earth **out)
{
    if (run->shapes->earth == NULL)
        TRY(earth_open(&run->shapes->earth, run->err));
    *out = run->shapes->earth;
    return STATUS_OK;
}

static Status point_distance(Run *run, const Part *a, const Part *b, double *out)
{
    GeoPoint from = a->chains->points[0];
    GeoPoint to = b->chains->points[0];
    const Earth *earth;
    if (run->options.geo == QUERY_GEOMETRY) {
        *out = hypot(from.x - to.x, from.y - to.y);
        return STATUS_OK;
    }
    TRY(find_earth(run, &earth));
    *out = earth_point_distance(earth, from, to);
    return STATUS_OK;
}

/* Between parts that do not meet; one of them is not a point. */
static Status outline_distance(Run *run, const Part *a, const Part *b, double *out, bool *is_known)
{
    const Earth *earth;
    if (run->options.geo == QUERY_GEOMETRY)
        return plane_distance(run, a, b, out, is_known);
    TRY(find_earth(run, &earth));
    return earth_distance(run, earth, a, b, out);
}

/* Makes '*nearest' less if the two are nearer than that. */
static Status part_distance(Run *run, const Part *a, const Part *b, double *nearest, bool *is_known)
{
    bool flat = run->options.geo == QUERY_GEOMETRY;
    double distance = 0;
    *is_known = true;
    TRY(run_charge(run, POINT_STEPS));
    if (a->kind == SHAPE_POINT && b->kind == SHAPE_POINT) {
        TRY(point_distance(run, a, b, &distance));
        *nearest = fmin(*nearest, distance);
        return STATUS_OK;
    }
    if (!flat && !a->is_inverse && !b->is_inverse && least_distance(a, b) > *nearest)
        return STATUS_OK;
    Answer meet;
    TRY(parts_intersect(run, a, b, &meet));
    *is_known = meet.is_known;
    if (!meet.is_known)
        return STATUS_OK;
    if (!meet.holds)
        TRY(outline_distance(run, a, b, &distance, is_known));
    if (*is_known)
        *nearest = fmin(*nearest, distance);
    return STATUS_OK;
}

Status geo_distance(Run *run, const Shape *a, const Shape *b, double *out, bool *is_known)
{
    double nearest = INFINITY;
    *is_known = true;
    for (uint32_t i = 0; i < a->part_count && nearest > 0; i++) {
        for (uint32_t j = 0; j < b->part_count && nearest > 0; j++) {
            bool known;
            TRY(part_distance(run, &a->parts[i], &b->parts[j], &nearest, &known));
            *is_known &= known;
        }
    }
    *is_known = *is_known || nearest == 0;
    *out = nearest;
    return STATUS_OK;
}

static Status part_area(Run *run, const Part *polygon, double *out)
{
    const Geos *geos = &run->shapes->geos;
    const Earth *earth;
    if (run->options.geo == QUERY_GEOMETRY) {
        (void)geos->GEOSArea_r(geos->context, polygon->outline->geometry, out); /* it cannot fail */
        return STATUS_OK;
    }
    TRY(find_earth(run, &earth));
    return earth_area(run, earth, polygon, out);
}

Status geo_area(Run *run, const Shape *shape, double *out)
{
    *out = 0;
    for (uint32_t p = 0; p < shape->part_count; p++) {
        const Part *part = &shape->parts[p];
        double area = 0;
        if (part->kind != SHAPE_POLYGON)
            continue;
        TRY(run_charge(run, part->point_count));
        TRY(part_area(run, part, &area));
        *out += area;
    }
    return STATUS_OK;
}
