/* spatial.h - shapes as cells of a quadtree, so that near shapes are found by ranges of keys.
 *
 * The world (longitude -180 to 180, latitude -90 to 90), or the bounding box of a plane, is cut
 * into four again and again, SPATIAL_LEVELS times. A cell is a number: two bits a level, east and
 * north, then a one, then zeros. So the cells inside a cell are a range of numbers, and its
 * ancestors are easy to compute.
 *
 *     cell  = | 000 | (north east) per level | 1 | 0 ... |      64 bits
 *     value = | 08 | cell u64 BE |                              of an index term
 *
 * A point is indexed under one cell of the last level (under more at longitude 180 and at the
 * poles, where longitudes meet), another shape under at most SPATIAL_CELLS_MAX cells that cover its
 * bounds. A query for the shapes that may meet some bounds covers these, too, and reads for each of
 * the cells all terms in its range (spatial_put_range) and the terms of exactly its ancestors
 * (spatial_parent). That finds every such shape (I9), and others, which the query must filter out.
 *
 * Bounds are never too small, whether the lines between positions are geodesics of the Earth or
 * straight in longitude and latitude. Shapes that a rectangle does not bound well (around a pole,
 * across the antimeridian, a ring that runs clockwise and so means all the rest of the world) get a
 * whole band or the whole world.
 *
 * Threads    Nothing here has state.
 */
#pragma once

#include "base/buf.h"
#include "json/json.h"

enum {
    SPATIAL_LEVELS = 30,    /* a cell of the last one is less than 4 cm wide */
    SPATIAL_CELLS_MAX = 16, /* of one cover */
    SPATIAL_VALUE_BYTES = 9,
};

typedef enum SpatialTypes {
    SPATIAL_POINT = 1,
    SPATIAL_LINE = 2,
    SPATIAL_POLYGON = 4,
    SPATIAL_MULTIPOLYGON = 8,
} SpatialTypes;

/* Both ends belong to it. On the globe 'west' > 'east' means that it crosses the antimeridian. */
typedef struct SpatialBox {
    double west;
    double south;
    double east;
    double north;
} SpatialBox;

/* What the whole quadtree covers. */
typedef struct SpatialFrame {
    bool is_plane;  /* "Geometry"; otherwise the globe */
    SpatialBox box; /* of a plane; what lies outside counts as on its border */
} SpatialFrame;

typedef uint64_t SpatialCell;

/* The bounds of a GeoJSON object of one of 'types' (flags of SpatialTypes). False if it is none: if
 * it is of another type, or its coordinates are not nested as the type requires. */
bool spatial_bounds(Json shape, bool is_plane, unsigned types, SpatialBox *out);

/* The bounds of all that is at most 'distance' away from 'box': metres on the globe, the units of
 * the plane otherwise. */
SpatialBox spatial_grow(SpatialBox box, bool is_plane, double distance);

/* Cells that cover 'box' together; returns how many. None contains another. */
size_t spatial_cover(const SpatialFrame *frame, SpatialBox box, SpatialCell out[SPATIAL_CELLS_MAX]);

/* The cell that directly contains 'cell'; false if 'cell' is the whole. */
bool spatial_parent(SpatialCell cell, SpatialCell *out);

/* Appends the value of a cell; or the bounds ['from', 'to') of the values of all cells in it,
 * including itself. */
void spatial_put(Buf *out, SpatialCell cell);
void spatial_put_range(SpatialCell cell, Buf *from, Buf *to);
