/* geo_sphere.c - see geo_sphere_int.h. */
#include "query/eval/geo_sphere_int.h"

#include <math.h>

#define DEGREE (M_PI / 180)
/* The square of the smaller axis over that of the larger. */
#define AXES_SQUARED ((1 - EARTH_FLATTENING) * (1 - EARTH_FLATTENING))

static double dot(Vector a, Vector b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

static Vector cross(Vector a, Vector b)
{
    return (Vector){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

static Vector minus(Vector a, Vector b)
{
    return (Vector){a.x - b.x, a.y - b.y, a.z - b.z};
}

static Vector sum(double s, Vector a, double t, Vector b)
{
    return (Vector){s * a.x + t * b.x, s * a.y + t * b.y, s * a.z + t * b.z};
}

static Vector unit(Vector v)
{
    double length = sqrt(dot(v, v));
    return (Vector){v.x / length, v.y / length, v.z / length};
}

Vector direction_of(GeoPoint point)
{
    /* A place that can be written in two ways is one place, to the last bit. */
    double lon = (point.x == -180 ? 180 : point.x) * DEGREE;
    double lat = point.y * DEGREE;
    double flat = fabs(point.y) == 90 ? 0 : cos(lat);
    return unit((Vector){flat * cos(lon), flat * sin(lon), AXES_SQUARED * sin(lat)});
}

GeoPoint direction_point(Vector d)
{
    return (GeoPoint){atan2(d.y, d.x) / DEGREE,
                      atan2(d.z, AXES_SQUARED * sqrt(d.x * d.x + d.y * d.y)) / DEGREE};
}

double direction_angle(Vector a, Vector b)
{
    Vector between = minus(a, b);
    double half = sqrt(dot(between, between)) / 2;
    return 2 * asin(half < 1 ? half : 1);
}

Vector direction_between(Vector a, Vector b, double angle)
{
    Vector normal = cross(a, b);
    if (dot(normal, normal) == 0)
        return a;
    Vector onward = unit(cross(normal, a));
    return unit(sum(cos(angle), a, sin(angle), onward));
}

void part_measure(Part *part)
{
    /* The middle of the smallest box around them; an average would lean to where points are many.
     */
    Vector low = {2, 2, 2};
    Vector high = {-2, -2, -2};
    for (uint32_t c = 0; c < part->chain_count; c++) {
        for (uint32_t i = 0; i < part->chains[c].count; i++) {
            Vector d = part->chains[c].directions[i];
            low = (Vector){fmin(low.x, d.x), fmin(low.y, d.y), fmin(low.z, d.z)};
            high = (Vector){fmax(high.x, d.x), fmax(high.y, d.y), fmax(high.z, d.z)};
        }
    }
    Vector middle = sum(0.5, low, 0.5, high);
    part->radius = M_PI; /* around the whole Earth there is no middle */
    part->centre = (Vector){0, 0, 1};
    if (dot(middle, middle) < 1e-12)
        return;
    part->centre = unit(middle);
    part->radius = 0;
    for (uint32_t c = 0; c < part->chain_count; c++) {
        for (uint32_t i = 0; i < part->chains[c].count; i++)
            part->radius =
                fmax(part->radius, direction_angle(part->centre, part->chains[c].directions[i]));
    }
}

Map map_make(Vector centre)
{
    Map map = {.centre = centre};
    /* At the poles any direction may be called east. */
    bool near_pole = fabs(centre.z) > 0.999999;
    Vector axis = near_pole ? (Vector){0, 1, 0} : (Vector){0, 0, 1};
    map.east = unit(cross(axis, centre));
    map.north = cross(centre, map.east);
    return map;
}

GeoPoint map_place(const Map *map, Vector direction)
{
    double depth = dot(map->centre, direction);
    return (GeoPoint){dot(map->east, direction) / depth, dot(map->north, direction) / depth};
}

double edge_chord2(Vector p, Vector a, Vector b, double *where)
{
    Vector ab = minus(b, a);
    Vector normal = cross(a, ab); /* of the plane of the edge; as a x b, but exact if it is short */
    double square = dot(normal, normal);
    double to_b = dot(cross(normal, a), p);
    double to_a = dot(cross(b, normal), p);
    if (square > 0 && to_a >= 0 && to_b >= 0 && to_a + to_b > 0) {
        double height = dot(normal, p);
        double sine2 = height * height / square;
        *where = to_b / (to_a + to_b);
        return 2 * sine2 / (1 + sqrt(fmax(0, 1 - sine2)));
    }
    Vector from_a = minus(p, a);
    Vector from_b = minus(p, b);
    double a2 = dot(from_a, from_a);
    double b2 = dot(from_b, from_b);
    *where = a2 <= b2 ? 0 : 1;
    return fmin(a2, b2);
}
