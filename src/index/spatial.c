/* spatial.c - see spatial.h for cells and how they are used.
 *
 * Bounds of a ring or a line come from its edges. Between two positions the shortest way on the
 * Earth runs nearer to the pole than a straight line in longitude and latitude, by at most as much
 * as between two positions of the larger latitude, for which the highest latitude is known:
 *
 *     tan(highest) = tan(latitude) / cos(difference of longitudes / 2)
 *
 * On the ellipsoid this holds with longitudes of an auxiliary sphere, whose differences are larger
 * by less than one part in 297. Longitudes stay between those of the two positions unless they
 * differ by half the Earth or more.
 */
#include "index/spatial.h"

#include "base/encoding.h"
#include "index/term.h"

#include <math.h>

#define WORLD              ((SpatialBox){-180, -90, 180, 90})
#define EARTH_RADIUS_MIN_M 6335000.0 /* of curvature: the least that WGS-84 has anywhere */
#define RADIANS            (M_PI / 180)

/* Cells of the last level along one side. */
#define SIDE (UINT32_C(1) << SPATIAL_LEVELS)

static_assert(2 * SPATIAL_LEVELS + 1 < 64,
              "a cell has bits for its levels, a one, and a zero on top");

/* What the positions of one line or ring add up to. */
typedef struct Outline {
    SpatialBox box; /* with what the edges need */
    size_t count;   /* positions */
    double first_x, first_y;
    double last_x, last_y;
    double turn;       /* all differences of longitude, each the short way */
    double area_flat;  /* inside, if the positions run counter-clockwise; else negative */
    double area_round; /* the same on a sphere, in square degrees */
    double edge_max;   /* longest edge in degrees of longitude */
    bool is_anywhere;  /* no bounds are known: the whole world */
    bool is_all_round; /* all longitudes */
} Outline;

/* A range of cells of the last level, both ends included. */
typedef struct CellRect {
    uint32_t x_min, y_min, x_max, y_max;
} CellRect;

typedef struct RectList {
    CellRect rects[4];
    size_t count;
} RectList;

static bool bounds_of_line(Json positions, bool is_plane, Outline *out);
static bool bounds_of_polygon(Json rings, bool is_plane, SpatialBox *out);
static bool bounds_of_polygons(Json polygons, bool is_plane, SpatialBox *out);

/* ---- bounds ---- */

static bool read_position(Json position, double *x, double *y)
{
    Json first = json_at(position, 0);
    Json second = json_at(position, 1);
    if (!json_is(first, JSON_NUMBER) || !json_is(second, JSON_NUMBER))
        return false;
    *x = json_number(first);
    *y = json_number(second);
    return isfinite(*x) && isfinite(*y);
}

static bool is_on_globe(double x, double y)
{
    return x >= -180 && x <= 180 && y >= -90 && y <= 90;
}

static SpatialBox unite(SpatialBox a, SpatialBox b)
{
    return (SpatialBox){fmin(a.west, b.west), fmin(a.south, b.south), fmax(a.east, b.east),
                        fmax(a.north, b.north)};
}

static SpatialBox bounds_of_outline(const Outline *outline)
{
    if (outline->is_anywhere)
        return WORLD;
    SpatialBox box = outline->box;
    if (outline->is_all_round) {
        box.west = -180;
        box.east = 180;
    }
    return box;
}

bool spatial_bounds(Json shape, bool is_plane, unsigned types, SpatialBox *out)
{
    Json type = json_get(shape, SLICE("type"));
    Json coordinates = json_get(shape, SLICE("coordinates"));
    if (!json_is(type, JSON_STRING) || !json_is(coordinates, JSON_ARRAY))
        return false;
    Slice name = json_string(type);
    if (slice_equal(name, SLICE("Point")) && (types & SPATIAL_POINT) != 0) {
        double x, y;
        if (!read_position(coordinates, &x, &y))
            return false;
        *out = is_plane || is_on_globe(x, y) ? (SpatialBox){x, y, x, y} : WORLD;
        return true;
    }
    if (slice_equal(name, SLICE("LineString")) && (types & SPATIAL_LINE) != 0) {
        Outline line;
        if (!bounds_of_line(coordinates, is_plane, &line))
            return false;
        *out = bounds_of_outline(&line);
        return true;
    }
    if (slice_equal(name, SLICE("Polygon")) && (types & SPATIAL_POLYGON) != 0)
        return bounds_of_polygon(coordinates, is_plane, out);
    if (slice_equal(name, SLICE("MultiPolygon")) && (types & SPATIAL_MULTIPOLYGON) != 0)
        return bounds_of_polygons(coordinates, is_plane, out);
    return false;
}

/* The latitude that no geodesic exceeds between positions up to 'latitude', 'width' degrees of
 * longitude apart; 'latitude' itself if they are on the other side of the equator. */
static double highest(double latitude, double width)
{
    if (latitude <= 0)
        return latitude;
    double half = width * 1.004 / 2;
    if (half >= 89.9)
        return 90;
    double top = atan(tan(latitude * RADIANS) / cos(half * RADIANS)) / RADIANS;
    return fmin(fmax(top, latitude) + 1e-9, 90);
}

/* The area between an edge and the equator on a sphere, in square degrees; positive in the north
 * when going east. */
static double area_below(double width, double y1, double y2)
{
    double t1 = tan(y1 * RADIANS / 2);
    double t2 = tan(y2 * RADIANS / 2);
    double excess = 2 * atan2(tan(width * RADIANS / 2) * (t1 + t2), 1 + t1 * t2);
    return excess / RADIANS / RADIANS;
}

static void add_edge(Outline *out, double x, double y)
{
    double from_x = out->last_x;
    double from_y = out->last_y;
    double width = x - from_x; /* the short way */
    out->area_flat -= width * (y + from_y) / 2;
    if (fabs(width) > 180) {
        width -= copysign(360, width);
        out->is_all_round = true;
    }
    out->is_anywhere |= fabs(width) >= 179;
    out->turn += width;
    out->area_round -= area_below(width, from_y, y);
    out->edge_max = fmax(out->edge_max, fabs(width));
    out->box.north = fmax(out->box.north, highest(fmax(y, from_y), fabs(width)));
    out->box.south = fmin(out->box.south, -highest(-fmin(y, from_y), fabs(width)));
}

static void add_position(Outline *out, bool is_plane, double x, double y)
{
    SpatialBox point = {x, y, x, y};
    out->box = out->count == 0 ? point : unite(out->box, point);
    if (out->count == 0) {
        out->first_x = x;
        out->first_y = y;
    } else if (!is_plane && !out->is_anywhere) {
        add_edge(out, x, y);
    }
    out->last_x = x;
    out->last_y = y;
    ++out->count;
}

static bool bounds_of_line(Json positions, bool is_plane, Outline *out)
{
    *out = (Outline){.count = 0};
    if (!json_is(positions, JSON_ARRAY))
        return false;
    JsonIter it = json_iter(positions);
    while (json_next(&it)) {
        double x, y;
        if (!read_position(it.value, &x, &y))
            return false;
        out->is_anywhere |= !is_plane && !is_on_globe(x, y);
        add_position(out, is_plane, x, y);
    }
    return out->count > 0;
}

/* Whether the inside of a ring is certainly what its bounds enclose, and not the rest of the world:
 * it goes round no pole, and certainly runs counter-clockwise. Flat and round areas must agree on
 * that; with long edges they differ much, and both differ from the ellipsoid. */
static bool is_inside_known(const Outline *ring)
{
    const SpatialBox *box = &ring->box;
    double whole = (box->east - box->west) * (box->north - box->south);
    double least = whole * (ring->edge_max > 1 ? 0.01 : 1e-5);
    return fabs(ring->turn) < 1 && ring->area_flat > least && ring->area_round > 0 &&
           (ring->area_round > least * cos(fmax(fabs(box->north), fabs(box->south)) * RADIANS));
}

/* Holes make it no larger, so only the first ring counts. */
static bool bounds_of_polygon(Json rings, bool is_plane, SpatialBox *out)
{
    Outline ring;
    if (!bounds_of_line(json_at(rings, 0), is_plane, &ring))
        return false;
    add_position(&ring, is_plane, ring.first_x, ring.first_y);
    if (!is_plane && !ring.is_anywhere)
        ring.is_anywhere = !is_inside_known(&ring);
    *out = bounds_of_outline(&ring);
    return true;
}

static bool bounds_of_polygons(Json polygons, bool is_plane, SpatialBox *out)
{
    bool is_first = true;
    JsonIter it = json_iter(polygons);
    while (json_next(&it)) {
        SpatialBox box;
        if (!bounds_of_polygon(it.value, is_plane, &box))
            return false;
        *out = is_first ? box : unite(*out, box);
        is_first = false;
    }
    return !is_first;
}

SpatialBox spatial_grow(SpatialBox box, bool is_plane, double distance)
{
    double far = fmax(distance, 0);
    if (is_plane)
        return (SpatialBox){box.west - far, box.south - far, box.east + far, box.north + far};
    /* A little more than the angle, since the ellipsoid is no sphere. */
    double angle = far / EARTH_RADIUS_MIN_M / RADIANS * 1.001 + 1e-9;
    double south = box.south - angle;
    double north = box.north + angle;
    double latitude = fmax(fabs(box.south), fabs(box.north));
    if (!(south > -90 && north < 90 && angle < 80))
        return (SpatialBox){-180, fmax(south, -90), 180, fmin(north, 90)};
    double sine = sin(angle * RADIANS) / cos(latitude * RADIANS);
    double wide = sine < 1 ? asin(sine) / RADIANS * 1.01 : 180;
    bool crosses = box.west > box.east;
    double width = box.east - box.west + (crosses ? 360 : 0);
    if (!(width + 2 * wide < 360))
        return (SpatialBox){-180, south, 180, north};
    double west = box.west - wide;
    double east = box.east + wide;
    return (SpatialBox){west < -180 ? west + 360 : west, south, east > 180 ? east - 360 : east,
                        north};
}

/* ---- cells ---- */

/* Monotonic, so that shapes that overlap have cells that overlap (I9). */
static uint32_t scale(double value, double from, double to)
{
    double part = (value - from) / (to - from);
    if (!(part > 0))
        return 0;
    return part >= 1 ? SIDE - 1 : (uint32_t)fmin(part * SIDE, SIDE - 1);
}

/* The cells of the last level that a box is in. On the globe several rectangles: both sides of the
 * antimeridian are one place, and all longitudes are at the poles. */
static RectList scale_box(const SpatialFrame *frame, SpatialBox box)
{
    SpatialBox all = frame->is_plane ? frame->box : WORLD;
    CellRect rect = {.x_min = scale(box.west, all.west, all.east),
                     .y_min = scale(box.south, all.south, all.north),
                     .x_max = scale(box.east, all.west, all.east),
                     .y_max = scale(box.north, all.south, all.north)};
    RectList list = {.rects = {rect}, .count = 1};
    if (frame->is_plane)
        return list;
    CellRect side = rect;
    if (box.west > box.east) {
        list.rects[0].x_max = SIDE - 1;
        side.x_min = 0;
        list.rects[list.count++] = side;
    } else if (box.west <= -180 && box.east < 180) {
        side.x_min = side.x_max = SIDE - 1;
        list.rects[list.count++] = side;
    } else if (box.east >= 180 && box.west > -180) {
        side.x_min = side.x_max = 0;
        list.rects[list.count++] = side;
    }
    if (box.north >= 90)
        list.rects[list.count++] = (CellRect){0, SIDE - 1, SIDE - 1, SIDE - 1};
    if (box.south <= -90)
        list.rects[list.count++] = (CellRect){0, 0, SIDE - 1, 0};
    return list;
}

/* A cell while it is cut: where it begins, and its level. */
typedef struct Square {
    uint32_t x, y;
    uint32_t level;
} Square;

static uint64_t spread(uint64_t bits)
{
    bits = (bits | bits << 16) & UINT64_C(0x0000ffff0000ffff);
    bits = (bits | bits << 8) & UINT64_C(0x00ff00ff00ff00ff);
    bits = (bits | bits << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    bits = (bits | bits << 2) & UINT64_C(0x3333333333333333);
    return (bits | bits << 1) & UINT64_C(0x5555555555555555);
}

static SpatialCell cell_of(Square square)
{
    uint64_t place = spread(square.x) | spread(square.y) << 1;
    return place << 1 | UINT64_C(1) << (2 * (SPATIAL_LEVELS - square.level));
}

static bool meets(Square square, const CellRect *rect)
{
    uint32_t last = (SIDE >> square.level) - 1;
    return square.x <= rect->x_max && square.x + last >= rect->x_min && square.y <= rect->y_max &&
           square.y + last >= rect->y_min;
}

static bool is_within(Square square, const CellRect *rect)
{
    uint32_t last = (SIDE >> square.level) - 1;
    return square.x >= rect->x_min && square.x + last <= rect->x_max && square.y >= rect->y_min &&
           square.y + last <= rect->y_max;
}

static bool meets_any(Square square, const RectList *list)
{
    for (size_t i = 0; i < list->count; ++i) {
        if (meets(square, &list->rects[i]))
            return true;
    }
    return false;
}

static bool is_within_any(Square square, const RectList *list)
{
    for (size_t i = 0; i < list->count; ++i) {
        if (is_within(square, &list->rects[i]))
            return true;
    }
    return false;
}

static size_t cut(Square square, const RectList *list, Square out[4])
{
    size_t count = 0;
    uint32_t half = (SIDE >> square.level) / 2;
    for (uint32_t i = 0; i < 4; ++i) {
        Square child = {square.x + (i & 1 ? half : 0), square.y + (i & 2 ? half : 0),
                        square.level + 1};
        if (meets_any(child, list))
            out[count++] = child;
    }
    return count;
}

/* The largest square that is worth cutting: those inside a rectangle are not. */
static size_t pick(const Square *squares, size_t count, const RectList *list)
{
    size_t best = count;
    for (size_t i = 0; i < count; ++i) {
        if (squares[i].level == SPATIAL_LEVELS || is_within_any(squares[i], list))
            continue;
        if (best == count || squares[i].level < squares[best].level)
            best = i;
    }
    return best;
}

/* Cuts the whole into smaller and smaller squares as long as there are at most SPATIAL_CELLS_MAX.
 */
size_t spatial_cover(const SpatialFrame *frame, SpatialBox box, SpatialCell out[SPATIAL_CELLS_MAX])
{
    RectList list = scale_box(frame, box);
    Square squares[SPATIAL_CELLS_MAX] = {{0, 0, 0}};
    size_t count = 1;
    for (;;) {
        size_t at = pick(squares, count, &list);
        if (at == count)
            break;
        Square parts[4];
        size_t part_count = cut(squares[at], &list, parts);
        if (count - 1 + part_count > SPATIAL_CELLS_MAX)
            break;
        squares[at] = squares[--count];
        for (size_t i = 0; i < part_count; ++i)
            squares[count++] = parts[i];
    }
    ASSERT(count > 0);
    for (size_t i = 0; i < count; ++i)
        out[i] = cell_of(squares[i]);
    return count;
}

/* The one that follows the levels. */
static uint64_t lowest_bit(SpatialCell cell)
{
    ASSERT(cell != 0);
    return cell & -cell;
}

bool spatial_parent(SpatialCell cell, SpatialCell *out)
{
    uint64_t bit = lowest_bit(cell) << 2;
    if (bit > UINT64_C(1) << (2 * SPATIAL_LEVELS))
        return false;
    *out = (cell & -bit) | bit;
    return true;
}

static void put(Buf *out, uint64_t number)
{
    uint8_t bytes[SPATIAL_VALUE_BYTES] = {TERM_NUMBER};
    be64_put(bytes + 1, number);
    buf_bytes(out, bytes, sizeof(bytes));
}

void spatial_put(Buf *out, SpatialCell cell)
{
    put(out, cell);
}

void spatial_put_range(SpatialCell cell, Buf *from, Buf *to)
{
    uint64_t bit = lowest_bit(cell);
    put(from, cell - (bit - 1));
    put(to, cell + bit);
}
