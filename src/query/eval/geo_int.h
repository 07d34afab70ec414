/* geo_int.h - shapes on the Earth or on a plane: what GeoJSON says, and how shapes lie to each
 * other.
 *
 * A shape is a point, a line, a polygon or several polygons. In a geography coordinates are
 * longitude and latitude on the WGS-84 ellipsoid, an edge is the shortest way between its ends, and
 * a polygon whose outer ring runs clockwise is everything but its inside. In a geometry they are
 * a plane's, and the direction of a ring has no meaning.
 *
 * Ownership  A Shapes belongs to its Run. A Shape is valid until two more have been read, or, if
 *            it is a point, as long as the scratch arena.
 * Bounds     GEO_POLYGON_POINTS_MAX, GEO_POINTS_MAX; a line or polygon of a geography fits into a
 *            hemisphere. What is beyond them is not valid.
 */
#pragma once

#include "query/eval/query_run_int.h"

#define GEO_POLYGON_POINTS_MAX 4096              /* as the service has it */
#define GEO_POINTS_MAX         ((size_t)1 << 16) /* of a whole shape */
#define GEO_PLANE_MAX          1e15              /* beyond it a plane's units have no eighths */
#define SHAPES_MAX             4 /* that are kept, points aside: constants, and two of the row */

typedef enum ShapeKind { SHAPE_POINT, SHAPE_LINE, SHAPE_POLYGON } ShapeKind;

/* Longitude and latitude in degrees, or x and y. */
typedef struct GeoPoint {
    double x;
    double y;
} GeoPoint;

typedef struct Vector {
    double x;
    double y;
    double z;
} Vector;

/* Points in a row: a single one, a line, or a ring, whose last is its first. */
typedef struct Chain {
    GeoPoint *points;
    Vector *directions; /* from the Earth's centre, of length 1; on a plane x, y and 0 */
    uint32_t count;
} Chain;

/* The library's, in geo.c. */
typedef struct GeoOutline GeoOutline;

typedef struct Part {
    ShapeKind kind;
    Chain *chains; /* of a polygon its rings, the outer one first */
    uint32_t chain_count;
    uint32_t point_count;
    Vector centre; /* of a cap of the sphere that holds all of it; geographies only */
    double radius; /* of that cap, in radians */
    bool is_inverse;
    GeoOutline *outline; /* NULL for points */
} Part;

typedef struct Shape {
    Part *parts;
    uint32_t part_count;
    Slice problem; /* why it is not valid; empty if it is */
} Shape;

void shapes_free(Shapes *shapes); /* accepts NULL */

/* '*out' is NULL if the value is not an object. A shape that is not valid has a problem. */
MUST_USE Status shape_read(Run *run, const Value *value, const Shape **out);

/* The shape without its outlines, into 'arena': geo_json.c. */
MUST_USE Status geojson_read(Run *run, Arena *arena, Json json, Shape *out);

/* What follows takes valid shapes only. '*is_known' is false where there is no answer: two shapes
 * that do not fit into a hemisphere together, or whose edges meet too often. */
MUST_USE Status geo_intersects(Run *run, const Shape *a, const Shape *b, bool *holds,
                               bool *is_known);
MUST_USE Status geo_within(Run *run, const Shape *a, const Shape *b, bool *holds, bool *is_known);
MUST_USE Status geo_distance(Run *run, const Shape *a, const Shape *b, double *out, bool *is_known);
MUST_USE Status geo_area(Run *run, const Shape *shape, double *out);
