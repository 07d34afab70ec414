/* geo_sphere_int.h - directions from the centre of the Earth, and flat maps of half of it.
 *
 * A direction stands for the point of the WGS-84 ellipsoid that lies in it. The plane through two
 * of them and the centre cuts the ellipsoid in the edge between them; and on a map that is made by
 * looking from the centre at a plane that touches the sphere (gnomonic), every such edge is a
 * straight line. So questions about inside and outside can be asked on the map.
 */
#pragma once

#include "query/eval/geo_int.h"

#define EARTH_RADIUS_M   6378137.0 /* WGS-84, at the equator */
#define EARTH_FLATTENING (1 / 298.257223563)

Vector direction_of(GeoPoint point);
GeoPoint direction_point(Vector direction);
double direction_angle(Vector a, Vector b); /* in radians */

/* The direction at 'angle' from 'a' on the way to 'b'. */
Vector direction_between(Vector a, Vector b, double angle);

/* The cap that holds all points of the part: fills in 'centre' and 'radius'. */
void part_measure(Part *part);

/* A map whose middle is 'centre'. */
typedef struct Map {
    Vector centre;
    Vector east;
    Vector north;
} Map;
#define MAP_RADIUS_MAX \
    1.53 /* radians, 88 degrees; a map has no place for what is 90 degrees away */

Map map_make(Vector centre);
GeoPoint map_place(const Map *map, Vector direction);

/* The square of the chord from 'p' to the nearest point of the edge from 'a' to 'b'; '*where' is
 * its place on the chord between them, from 0 to 1. */
double edge_chord2(Vector p, Vector a, Vector b, double *where);
