/* geo_earth_int.h - lengths and areas on the WGS-84 ellipsoid, in metres. */
#pragma once

#include "query/eval/geo_int.h"

typedef struct Earth Earth;

/* Loads PROJ, the first time. */
MUST_USE Status earth_open(Earth **out, Error *err);
void earth_free(Earth *earth); /* accepts NULL */
DEFINE_AUTO(Earth *, earth_free)

double earth_point_distance(const Earth *earth, GeoPoint a, GeoPoint b);

/* Between parts that do not meet, whose nearest points are therefore on their outlines, one of
 * them an end of an edge. */
MUST_USE Status earth_distance(Run *run, const Earth *earth, const Part *a, const Part *b,
                               double *out);

MUST_USE Status earth_area(Run *run, const Earth *earth, const Part *polygon, double *out);
