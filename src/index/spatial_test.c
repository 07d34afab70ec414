/* spatial_test.c - cells, bounds, and that no shape is ever missed. */
#include "index/spatial.h"

#include "index/terms_testing_int.h"

#include <math.h>

enum { ALL_TYPES = SPATIAL_POINT | SPATIAL_LINE | SPATIAL_POLYGON | SPATIAL_MULTIPOLYGON };
#define RADIANS (M_PI / 180)

static const SpatialFrame GLOBE = {.is_plane = false};
static const SpatialFrame PLANE = {.is_plane = true, .box = {-100, 0, 300, 50}};

typedef struct Cover {
    SpatialCell cells[SPATIAL_CELLS_MAX];
    size_t count;
} Cover;

static Cover cover_of(const SpatialFrame *frame, SpatialBox box)
{
    Cover cover;
    cover.count = spatial_cover(frame, box, cover.cells);
    assert_in_range(cover.count, 1, SPATIAL_CELLS_MAX);
    return cover;
}

static Cover cover_of_point(const SpatialFrame *frame, double x, double y)
{
    return cover_of(frame, (SpatialBox){x, y, x, y});
}

typedef struct CellBytes {
    char value[SPATIAL_VALUE_BYTES];
    char from[SPATIAL_VALUE_BYTES];
    char to[SPATIAL_VALUE_BYTES];
} CellBytes;

static CellBytes bytes_of(SpatialCell cell)
{
    AUTO(buf_done) Buf value;
    AUTO(buf_done) Buf from;
    AUTO(buf_done) Buf to;
    buf_init(&value, SPATIAL_VALUE_BYTES);
    buf_init(&from, SPATIAL_VALUE_BYTES);
    buf_init(&to, SPATIAL_VALUE_BYTES);
    spatial_put(&value, cell);
    spatial_put_range(cell, &from, &to);
    assert_int_equal(value.len + from.len + to.len, sizeof(CellBytes));
    CellBytes bytes;
    memcpy(bytes.value, value.ptr, sizeof(bytes.value));
    memcpy(bytes.from, from.ptr, sizeof(bytes.from));
    memcpy(bytes.to, to.ptr, sizeof(bytes.to));
    return bytes;
}

static bool are_in_range(const CellBytes *cell, const CellBytes *range)
{
    return memcmp(cell->value, range->from, sizeof(cell->value)) >= 0 &&
           memcmp(cell->value, range->to, sizeof(cell->value)) < 0;
}

static bool is_in_range(SpatialCell cell, SpatialCell range)
{
    CellBytes cell_bytes = bytes_of(cell);
    CellBytes range_bytes = bytes_of(range);
    return are_in_range(&cell_bytes, &range_bytes);
}

static bool has_cell(const Cover *cover, SpatialCell cell)
{
    for (size_t i = 0; i < cover->count; ++i) {
        if (cover->cells[i] == cell)
            return true;
    }
    return false;
}

/* As a query does: the range of each cell, and each ancestor. */
static bool finds(const Cover *query, const Cover *item)
{
    CellBytes items[SPATIAL_CELLS_MAX];
    for (size_t i = 0; i < item->count; ++i)
        items[i] = bytes_of(item->cells[i]);
    for (size_t q = 0; q < query->count; ++q) {
        CellBytes range = bytes_of(query->cells[q]);
        for (size_t i = 0; i < item->count; ++i) {
            if (are_in_range(&items[i], &range))
                return true;
        }
        SpatialCell up = query->cells[q];
        while (spatial_parent(up, &up)) {
            if (has_cell(item, up))
                return true;
        }
    }
    return false;
}

static void check_found(const Cover *a, const Cover *b)
{
    assert_true(finds(a, b));
    assert_true(finds(b, a));
}

static void a_point_has_one_cell_inside_thirty_others(void **state)
{
    (void)state;
    static const double PLACES[][2] = {{0, 0}, {10.5, 59.9}, {-179.999, -89.999}, {179.9, 89.9}};
    for (size_t i = 0; i < ARRAY_COUNT(PLACES); ++i) {
        Cover cover = cover_of_point(&GLOBE, PLACES[i][0], PLACES[i][1]);
        assert_int_equal(cover.count, 1);
        SpatialCell cell = cover.cells[0];
        SpatialCell up;
        size_t levels = 0;
        while (spatial_parent(cell, &up)) {
            assert_true(is_in_range(cell, up));
            assert_true(is_in_range(up, up));
            assert_false(is_in_range(up, cell));
            cell = up;
            ++levels;
        }
        assert_int_equal(levels, SPATIAL_LEVELS);
        assert_int_equal(cell, UINT64_C(1) << (2 * SPATIAL_LEVELS));
    }
}

static void cells_of_a_cover_are_apart(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 8);
    for (int round = 0; round < 500; ++round) {
        double x = (double)random_below(&random, 340) - 180;
        double y = (double)random_below(&random, 170) - 90;
        double size = pow(10, (double)random_below(&random, 6) - 4);
        Cover cover = cover_of(&GLOBE, (SpatialBox){x, y, x + size, y + size / 2});
        for (size_t i = 0; i < cover.count; ++i) {
            for (size_t k = 0; k < cover.count; ++k)
                assert_true(i == k || !is_in_range(cover.cells[i], cover.cells[k]));
        }
    }
}

static void near_places_are_told_from_far_ones(void **state)
{
    (void)state;
    Cover oslo = cover_of_point(&GLOBE, 10.75, 59.91);
    Cover bergen = cover_of_point(&GLOBE, 5.32, 60.39);
    Cover near = cover_of(&GLOBE, spatial_grow((SpatialBox){10.7, 59.9, 10.7, 59.9}, false, 10000));
    check_found(&near, &oslo);
    assert_false(finds(&near, &bergen));
    Cover far = cover_of(&GLOBE, spatial_grow((SpatialBox){10.7, 59.9, 10.7, 59.9}, false, 400000));
    check_found(&far, &bergen);
}

#define SHAPE(type, coordinates) "{'type':'" type "','coordinates':" coordinates "}"

static void shapes_have_bounds_that_are_never_too_small(void **state)
{
    (void)state;
#define WHOLE              \
    {                      \
        -180, -90, 180, 90 \
    }
    static const struct {
        const char *shape;
        bool is_plane;
        SpatialBox box;
        double north_more; /* how far the lines between the positions go beyond them */
    } ROWS[] = {
        {SHAPE("Point", "[1,2]"), false, {1, 2, 1, 2}, 0},
        {SHAPE("Point", "[1,2,3]"), false, {1, 2, 1, 2}, 0},
        {SHAPE("Point", "[181,2]"), false, WHOLE, 0},
        {SHAPE("Point", "[0,-91]"), false, WHOLE, 0},
        {SHAPE("Point", "[1000,-2000]"), true, {1000, -2000, 1000, -2000}, 0},
        {SHAPE("LineString", "[[1,2],[3,-4]]"), false, {1, -4, 3, 2}, 0.1},
        {SHAPE("LineString", "[[1,2]]"), false, {1, 2, 1, 2}, 0},
        {SHAPE("LineString", "[[0,60],[90,60]]"), false, {0, 60, 90, 60}, 8},
        {SHAPE("LineString", "[[0,60],[90,60]]"), true, {0, 60, 90, 60}, 0},
        {SHAPE("LineString", "[[170,10],[-170,12]]"), false, {-180, 10, 180, 12}, 0.5},
        {SHAPE("LineString", "[[0,10],[180,12]]"), false, WHOLE, 0},
        {SHAPE("Polygon", "[[[0,0],[10,0],[10,10],[0,10],[0,0]]]"), false, {0, 0, 10, 10}, 0.1},
        /* Not closed, which changes nothing here. */
        {SHAPE("Polygon", "[[[0,0],[10,0],[10,10],[0,10]]]"), false, {0, 0, 10, 10}, 0.1},
        {SHAPE("Polygon", "[[[0,0],[10,0],[10,10],[0,10],[0,0]],[[1,1],[1,2],[2,2],[1,1]]]"),
         false,
         {0, 0, 10, 10},
         0.1},
        /* Clockwise: all the rest of the world. In a plane that has no meaning. */
        {SHAPE("Polygon", "[[[0,0],[0,10],[10,10],[10,0],[0,0]]]"), false, WHOLE, 0},
        {SHAPE("Polygon", "[[[0,0],[0,10],[10,10],[10,0],[0,0]]]"), true, {0, 0, 10, 10}, 0},
        /* Flat, it runs counter-clockwise; on the globe the long edge passes north of the third
         * position. */
        {SHAPE("Polygon", "[[[0,60],[90,60],[45,62],[0,60]]]"), false, WHOLE, 0},
        /* Around the pole, and across the antimeridian. */
        {SHAPE("Polygon", "[[[0,80],[90,80],[180,80],[-90,80],[0,80]]]"), false, WHOLE, 0},
        {SHAPE("Polygon", "[[[170,-5],[-170,-5],[-170,5],[170,5],[170,-5]]]"), false, WHOLE, 0},
        {SHAPE("Polygon", "[[[-170,-80],[170,-80],[170,80],[-170,80],[-170,-80]]]"), false, WHOLE,
         0},
        {SHAPE("Polygon", "[[[5,5],[5,5],[5,5]]]"), false, WHOLE, 0},
        {SHAPE("MultiPolygon", "[[[[0,0],[1,0],[1,1],[0,0]]],[[[5,5],[6,5],[6,6],[5,5]]]]"),
         false,
         {0, 0, 6, 6},
         0.1},
        {SHAPE("MultiPolygon", "[[[[0,0],[1,0],[1,1],[0,0]]],[[[5,5],[6,6],[6,5],[5,5]]]]"), false,
         WHOLE, 0},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        SpatialBox box;
        print_message("%s\n", ROWS[i].shape);
        assert_true(
            spatial_bounds(row_json(&arena, ROWS[i].shape), ROWS[i].is_plane, ALL_TYPES, &box));
        assert_true(box.west == ROWS[i].box.west);
        assert_true(box.east == ROWS[i].box.east);
        assert_true(box.south <= ROWS[i].box.south);
        assert_true(box.south >= ROWS[i].box.south - 0.1);
        assert_true(box.north >= ROWS[i].box.north);
        assert_true(box.north <= ROWS[i].box.north + ROWS[i].north_more);
    }
}

static void what_is_no_shape_has_no_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *shape;
        unsigned types;
    } ROWS[] = {
        {"1", ALL_TYPES},
        {"[1,2]", ALL_TYPES},
        {"{}", ALL_TYPES},
        {"{'type':'Point'}", ALL_TYPES},
        {"{'coordinates':[1,2]}", ALL_TYPES},
        {SHAPE("point", "[1,2]"), ALL_TYPES},
        {SHAPE("MultiPoint", "[[1,2]]"), ALL_TYPES},
        {SHAPE("Point", "[1,2]"), ALL_TYPES & ~SPATIAL_POINT},
        {SHAPE("LineString", "[[1,2],[3,4]]"), SPATIAL_POINT},
        {SHAPE("Polygon", "[[[0,0],[1,0],[1,1],[0,0]]]"), SPATIAL_MULTIPOLYGON},
        {SHAPE("MultiPolygon", "[[[[0,0],[1,0],[1,1],[0,0]]]]"), SPATIAL_POLYGON},
        {SHAPE("Point", "[]"), ALL_TYPES},
        {SHAPE("Point", "[1]"), ALL_TYPES},
        {SHAPE("Point", "['1',2]"), ALL_TYPES},
        {SHAPE("Point", "{'0':1,'1':2}"), ALL_TYPES},
        {SHAPE("Point", "[[1,2]]"), ALL_TYPES},
        {SHAPE("LineString", "[]"), ALL_TYPES},
        {SHAPE("LineString", "[1,2]"), ALL_TYPES},
        {SHAPE("LineString", "[[1,2],[3]]"), ALL_TYPES},
        {SHAPE("Polygon", "[]"), ALL_TYPES},
        {SHAPE("Polygon", "[[]]"), ALL_TYPES},
        {SHAPE("Polygon", "[[1,2],[3,4]]"), ALL_TYPES},
        {SHAPE("MultiPolygon", "[]"), ALL_TYPES},
        {SHAPE("MultiPolygon", "[[]]"), ALL_TYPES},
        {SHAPE("MultiPolygon", "[[[[0,0],[1,0],[1,1]]],[[[0]]]]"), ALL_TYPES},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        SpatialBox box;
        print_message("%s\n", ROWS[i].shape);
        assert_false(spatial_bounds(row_json(&arena, ROWS[i].shape), false, ROWS[i].types, &box));
    }
}

static void one_place_with_two_longitudes_is_found_by_either(void **state)
{
    (void)state;
    static const struct {
        SpatialBox a;
        SpatialBox b;
    } ROWS[] = {
        {{180, 5, 180, 5}, {-180, 5, -180, 5}},    {{180, 5, 180, 5}, {-180, 0, -170, 10}},
        {{-180, 5, -180, 5}, {170, 0, 180, 10}},   {{179, 5, 179, 5}, {178, 0, -178, 10}},
        {{-179, 5, -179, 5}, {178, 0, -178, 10}},  {{10, 90, 10, 90}, {-170, 90, -170, 90}},
        {{10, 90, 10, 90}, {-170, 80, -160, 90}},  {{10, -90, 10, -90}, {-170, -90, -160, 0}},
        {{170, 0, -170, 10}, {-175, 5, -160, 20}}, {{-180, -90, 180, 90}, {77.7, 11.1, 77.7, 11.1}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        Cover a = cover_of(&GLOBE, ROWS[i].a);
        Cover b = cover_of(&GLOBE, ROWS[i].b);
        print_message("row %zu\n", i);
        check_found(&a, &b);
    }
}

/* ---- random shapes ---- */

static double random_between(Random *random, double from, double to)
{
    return from + (to - from) * (double)(random_u64(random) >> 11) / (double)(UINT64_C(1) << 53);
}

static void boxes_that_meet_find_each_other(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 21);
    const SpatialFrame *const frames[] = {&GLOBE, &PLANE};
    for (int round = 0; round < 8000; ++round) {
        const SpatialFrame *frame = frames[round % 2];
        SpatialBox all =
            frame->is_plane ? (SpatialBox){-200, -50, 400, 100} : (SpatialBox){-180, -90, 180, 90};
        /* Two boxes around one place, which they have in common. */
        double x = random_between(&random, all.west, all.east);
        double y = random_between(&random, all.south, all.north);
        Cover covers[2];
        for (size_t i = 0; i < 2; ++i) {
            double size = pow(10, random_between(&random, -8, 2));
            SpatialBox box = {fmax(x - random_between(&random, 0, size), all.west),
                              fmax(y - random_between(&random, 0, size), all.south),
                              fmin(x + random_between(&random, 0, size), all.east),
                              fmin(y + random_between(&random, 0, size), all.north)};
            covers[i] = cover_of(frame, box);
        }
        check_found(&covers[0], &covers[1]);
    }
}

static void to_vector(double x, double y, double out[3])
{
    out[0] = cos(y * RADIANS) * cos(x * RADIANS);
    out[1] = cos(y * RADIANS) * sin(x * RADIANS);
    out[2] = sin(y * RADIANS);
}

/* A place on the way from one position to another: the shortest on a sphere. */
static void between(const double a[2], const double b[2], double part, double *x, double *y)
{
    double u[3], v[3], w[3];
    to_vector(a[0], a[1], u);
    to_vector(b[0], b[1], v);
    for (size_t i = 0; i < 3; ++i)
        w[i] = u[i] * (1 - part) + v[i] * part;
    *x = atan2(w[1], w[0]) / RADIANS;
    *y = atan2(w[2], hypot(w[0], w[1])) / RADIANS;
}

static Json ring_to_json(Arena *arena, Slice type, const double (*positions)[2], size_t count)
{
    bool is_polygon = slice_equal(type, SLICE("Polygon"));
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("type"));
    json_add_string(&b, type);
    json_key(&b, SLICE("coordinates"));
    json_begin_array(&b);
    if (is_polygon)
        json_begin_array(&b);
    for (size_t i = 0; i < count + (is_polygon ? 1 : 0); ++i) {
        json_begin_array(&b);
        json_add_number(&b, positions[i % count][0]);
        json_add_number(&b, positions[i % count][1]);
        json_end(&b);
    }
    if (is_polygon)
        json_end(&b);
    json_end(&b);
    json_end(&b);
    return json_built(&b);
}

static void check_on_edge(const Cover *shape, const double a[2], const double b[2], double part)
{
    double x, y;
    between(a, b, part, &x, &y);
    Cover point = cover_of_point(&GLOBE, x, y);
    check_found(shape, &point);
    point = cover_of_point(&GLOBE, a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part);
    check_found(shape, &point);
}

static void every_place_on_the_lines_of_a_shape_is_found(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 1984);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (int round = 0; round < 800; ++round) {
        arena_reset(&arena);
        double positions[6][2];
        size_t count = 3 + random_below(&random, 4);
        double x = random_between(&random, -180, 180);
        double y = random_between(&random, -90, 90);
        double size = pow(10, random_between(&random, -5, 2.5));
        for (size_t i = 0; i < count; ++i) {
            double there = x + random_between(&random, -size, size);
            positions[i][0] = remainder(there, 360);
            positions[i][1] = fmin(fmax(y + random_between(&random, -size, size) / 2, -90), 90);
        }
        Slice type = random_below(&random, 2) == 0 ? SLICE("Polygon") : SLICE("LineString");
        SpatialBox box;
        assert_true(
            spatial_bounds(ring_to_json(&arena, type, positions, count), false, ALL_TYPES, &box));
        Cover cover = cover_of(&GLOBE, box);
        for (size_t i = 1; i < count; ++i) {
            for (double part = 0; part <= 1; part += 0.125)
                check_on_edge(&cover, positions[i - 1], positions[i], part);
        }
    }
}

/* A convex ring with a place in it, in both directions: counter-clockwise the place is inside, and
 * clockwise what is opposite on the globe. */
static void the_inside_of_a_ring_is_found(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 77);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (int round = 0; round < 3000; ++round) {
        arena_reset(&arena);
        enum { CORNERS = 5 };
        double x = random_between(&random, -180, 180);
        double y = random_between(&random, -90, 90);
        double size = pow(10, random_between(&random, -4, 1.9));
        double positions[2][CORNERS][2];
        for (size_t i = 0; i < CORNERS; ++i) {
            /* From the place into five directions on a sphere. */
            double bearing = -2 * M_PI * (double)i / CORNERS;
            double lat = asin(sin(y * RADIANS) * cos(size * RADIANS) +
                              cos(y * RADIANS) * sin(size * RADIANS) * cos(bearing));
            double lon = x * RADIANS + atan2(sin(bearing) * sin(size * RADIANS) * cos(y * RADIANS),
                                             cos(size * RADIANS) - sin(y * RADIANS) * sin(lat));
            positions[0][i][0] = remainder(lon / RADIANS, 360);
            positions[0][i][1] = lat / RADIANS;
            memcpy(positions[1][CORNERS - 1 - i], positions[0][i], sizeof(positions[0][i]));
        }
        Cover inside = cover_of_point(&GLOBE, x, y);
        Cover opposite = cover_of_point(&GLOBE, x > 0 ? x - 180 : x + 180, -y);
        SpatialBox box;
        assert_true(spatial_bounds(
            ring_to_json(&arena, SLICE("Polygon"), (const double(*)[2])positions[0], CORNERS),
            false, ALL_TYPES, &box));
        Cover ring = cover_of(&GLOBE, box);
        check_found(&ring, &inside);
        assert_true(spatial_bounds(
            ring_to_json(&arena, SLICE("Polygon"), (const double(*)[2])positions[1], CORNERS),
            false, ALL_TYPES, &box));
        ring = cover_of(&GLOBE, box);
        check_found(&ring, &opposite);
    }
}

static void everything_within_a_distance_is_found(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 6);
    for (int round = 0; round < 8000; ++round) {
        double x = random_between(&random, -180, 180);
        double y = random_between(&random, -90, 90);
        double distance = pow(10, random_between(&random, 0, 7.2));
        Cover near = cover_of(&GLOBE, spatial_grow((SpatialBox){x, y, x, y}, false, distance));
        /* As far as the distance leads where the Earth is curved most. */
        double angle = distance / 6335500 * random_between(&random, 0, 1);
        double bearing = random_between(&random, 0, 2 * M_PI);
        double lat =
            asin(sin(y * RADIANS) * cos(angle) + cos(y * RADIANS) * sin(angle) * cos(bearing));
        double lon = x * RADIANS + atan2(sin(bearing) * sin(angle) * cos(y * RADIANS),
                                         cos(angle) - sin(y * RADIANS) * sin(lat));
        Cover point = cover_of_point(&GLOBE, remainder(lon / RADIANS, 360), lat / RADIANS);
        check_found(&near, &point);
    }
    SpatialBox box = spatial_grow((SpatialBox){1, 2, 3, 4}, true, 0.5);
    assert_true(box.west == 0.5 && box.south == 1.5 && box.east == 3.5 && box.north == 4.5);
    box = spatial_grow((SpatialBox){1, 2, 3, 4}, true, -1);
    assert_true(box.west == 1 && box.north == 4);
    box = spatial_grow((SpatialBox){1, 2, 3, 4}, false, INFINITY);
    assert_true(box.west == -180 && box.south == -90 && box.east == 180 && box.north == 90);
}

static void places_outside_of_a_plane_are_found_at_its_border(void **state)
{
    (void)state;
    Cover far = cover_of_point(&PLANE, 1e9, -1e9);
    Cover query = cover_of(&PLANE, (SpatialBox){299, -1e10, 1e10, 0});
    check_found(&query, &far);
    query = cover_of(&PLANE, (SpatialBox){0, 10, 20, 20});
    assert_false(finds(&query, &far));
    SpatialFrame huge = {.is_plane = true, .box = {-1.7e308, -1.7e308, 1.7e308, 1.7e308}};
    far = cover_of_point(&huge, 1e300, -1e300);
    query = cover_of(&huge, (SpatialBox){-1e308, -1e308, 1e308, 1e308});
    check_found(&query, &far);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_point_has_one_cell_inside_thirty_others),
        cmocka_unit_test(cells_of_a_cover_are_apart),
        cmocka_unit_test(near_places_are_told_from_far_ones),
        cmocka_unit_test(shapes_have_bounds_that_are_never_too_small),
        cmocka_unit_test(what_is_no_shape_has_no_bounds),
        cmocka_unit_test(one_place_with_two_longitudes_is_found_by_either),
        cmocka_unit_test(boxes_that_meet_find_each_other),
        cmocka_unit_test(every_place_on_the_lines_of_a_shape_is_found),
        cmocka_unit_test(the_inside_of_a_ring_is_found),
        cmocka_unit_test(everything_within_a_distance_is_found),
        cmocka_unit_test(places_outside_of_a_plane_are_found_at_its_border),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
