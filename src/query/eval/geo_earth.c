/* geo_earth.c - see geo_earth_int.h. The only file that knows the geodesics of PROJ. */
#include "query/eval/geo_earth_int.h"

#include "base/mem.h"
#include "query/eval/geo_library_int.h"
#include "query/eval/geo_sphere_int.h"

#include <geodesic.h>
#include <math.h>

enum {
    NEAR_STEPS = 200, /* to find the nearest point of an edge exactly */
    AREA_POINT_STEPS = 20,
};

#define PROJ_LIBRARY "libproj.so.25"

#define GEODESIC_FUNCTIONS(X) \
    X(geod_init)              \
    X(geod_inverse)           \
    X(geod_polygon_addpoint)  \
    X(geod_polygon_compute)   \
    X(geod_polygon_init)

struct Earth {
    struct geod_geodesic geodesic;
#define POINTER(function) typeof(function) *function;
    GEODESIC_FUNCTIONS(POINTER)
#undef POINTER
};

Status earth_open(Earth **out, Error *err)
{
#define FUNCTION_ROW(function) LIBRARY_FUNCTION(Earth, function),
    static const LibraryFunction FUNCTIONS[] = {GEODESIC_FUNCTIONS(FUNCTION_ROW)};
#undef FUNCTION_ROW
    AUTO(earth_free) Earth *earth = MEM_NEW(Earth);
    TRY(library_load(PROJ_LIBRARY, FUNCTIONS, ARRAY_COUNT(FUNCTIONS), earth, err));
    earth->geod_init(&earth->geodesic, EARTH_RADIUS_M, EARTH_FLATTENING);
    *out = TAKE(earth);
    return STATUS_OK;
}

void earth_free(Earth *earth)
{
    mem_free(earth);
}

double earth_point_distance(const Earth *earth, GeoPoint a, GeoPoint b)
{
    double metres;
    earth->geod_inverse(&earth->geodesic, a.y, a.x, b.y, b.x, &metres, NULL, NULL);
    return metres;
}

/* The square of the distance to the place 'where' on the edge. */
static double distance2_at(const Earth *earth, GeoPoint p, Vector a, Vector b, double where)
{
    Vector on = {a.x + where * (b.x - a.x), a.y + where * (b.y - a.y), a.z + where * (b.z - a.z)};
    double metres = earth_point_distance(earth, p, direction_point(on));
    return metres * metres;
}

/* The nearest point of the edge on the sphere is nearly the nearest on the ellipsoid, and near it
 * the square of the distance is nearly a parabola: its lowest point is found in two steps. */
static double edge_distance(const Earth *earth, GeoPoint p, Vector a, Vector b, double where)
{
    double length = direction_angle(a, b) * EARTH_RADIUS_M;
    double best = distance2_at(earth, p, a, b, where);
    double step = fmin(0.01 * sqrt(best) / length, 0.25);
    for (int i = 0; i < 2 && step > 0; i++) {
        double before = distance2_at(earth, p, a, b, where - step);
        double here = distance2_at(earth, p, a, b, where);
        double after = distance2_at(earth, p, a, b, where + step);
        double curve = before - 2 * here + after;
        best = fmin(best, here);
        if (!(curve > 0))
            break;
        where = fmin(fmax(where + step * (before - after) / (2 * curve), 0), 1);
        best = fmin(best, distance2_at(earth, p, a, b, where));
        step /= 16;
    }
    return sqrt(best);
}

/* The nearest so far: as the square of a chord of the sphere, and exactly. */
typedef struct Nearest {
    double chord2;
    double metres;
} Nearest;

/* Chords of the sphere and distances on the ellipsoid differ by less than 1 % of each other. */
#define CHORD2_SLACK 1.02

/* The points of 'a' and the edges of 'b'. The first pass finds the shortest chord, the second the
 * exact distance of all that could be the nearest. */
static Status chain_distance(Run *run, const Earth *earth, const Chain *a, const Chain *b,
                             bool exactly, Nearest *nearest)
{
    uint32_t edges = b->count == 1 ? 1 : b->count - 1;
    TRY(run_charge(run, 1 + (uint64_t)a->count * edges / 2));
    for (uint32_t i = 0; i < a->count; i++) {
        for (uint32_t j = 0; j < edges; j++) {
            Vector from = b->directions[j];
            Vector to = b->directions[b->count == 1 ? j : j + 1];
            double where;
            double chord2 = edge_chord2(a->directions[i], from, to, &where);
            if (!exactly) {
                nearest->chord2 = fmin(nearest->chord2, chord2);
            } else if (chord2 <= nearest->chord2 * CHORD2_SLACK) {
                TRY(run_charge(run, NEAR_STEPS));
                double metres = edge_distance(earth, a->points[i], from, to, where);
                nearest->metres = fmin(nearest->metres, metres);
            }
        }
    }
    return STATUS_OK;
}

Status earth_distance(Run *run, const Earth *earth, const Part *a, const Part *b, double *out)
{
    Nearest nearest = {.chord2 = INFINITY, .metres = INFINITY};
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < a->chain_count; i++) {
            for (uint32_t j = 0; j < b->chain_count; j++) {
                const Chain *ca = &a->chains[i];
                const Chain *cb = &b->chains[j];
                TRY(chain_distance(run, earth, ca, cb, pass == 1, &nearest));
                if (ca->count > 1)
                    TRY(chain_distance(run, earth, cb, ca, pass == 1, &nearest));
            }
        }
    }
    *out = nearest.metres;
    return STATUS_OK;
}

/* What a ring runs around; which side is meant is the caller's to know. */
static Status ring_area(Run *run, const Earth *earth, const Chain *ring, double *out)
{
    TRY(run_charge(run, (uint64_t)AREA_POINT_STEPS * ring->count));
    struct geod_polygon polygon;
    earth->geod_polygon_init(&polygon, 0);
    for (uint32_t i = 0; i + 1 < ring->count; i++)
        earth->geod_polygon_addpoint(&earth->geodesic, &polygon, ring->points[i].y,
                                     ring->points[i].x);
    double area, around;
    (void)earth->geod_polygon_compute(&earth->geodesic, &polygon, 0, 1, &area, &around);
    *out = fabs(area);
    return STATUS_OK;
}

/* The whole ellipsoid: eight times the triangle from a pole to a quarter of the equator. */
static Status whole_area(Run *run, const Earth *earth, double *out)
{
    GeoPoint corners[] = {{0, 0}, {90, 0}, {0, 90}, {0, 0}};
    Chain eighth = {.points = corners, .count = ARRAY_COUNT(corners)};
    TRY(ring_area(run, earth, &eighth, out));
    *out *= 8;
    return STATUS_OK;
}

Status earth_area(Run *run, const Earth *earth, const Part *polygon, double *out)
{
    double inside = 0;
    double whole = 0;
    for (uint32_t i = 0; i < polygon->chain_count; i++) {
        double ring;
        TRY(ring_area(run, earth, &polygon->chains[i], &ring));
        inside += i == 0 ? ring : -ring;
    }
    if (polygon->is_inverse)
        TRY(whole_area(run, earth, &whole));
    *out = polygon->is_inverse ? whole - inside : inside;
    return STATUS_OK;
}
