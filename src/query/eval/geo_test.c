/* geo_test.c - shapes on the Earth and on a plane: validity, how they lie to each other, lengths.
 */
#include "query/eval/geo_sphere_int.h"
#include "query/eval/query_testing_int.h"

#include <math.h>
#include <pthread.h>

#define POINT(at)      "{'type':'Point','coordinates':" at "}"
#define LINE(points)   "{'type':'LineString','coordinates':[" points "]}"
#define POLYGON(rings) "{'type':'Polygon','coordinates':[" rings "]}"
#define SEVERAL(all)   "{'type':'MultiPolygon','coordinates':[" all "]}"

/* A box between four whole degrees, counter-clockwise. */
#define BOX(w, s, e, n) \
    "[[" #w "," #s "],[" #e "," #s "],[" #e "," #n "],[" #w "," #n "],[" #w "," #s "]]"
#define BOX_BACKWARDS(w, s, e, n) \
    "[[" #w "," #s "],[" #w "," #n "],[" #e "," #n "],[" #e "," #s "],[" #w "," #s "]]"

#define UNIT      POLYGON(BOX(0, 0, 10, 10))
#define WITH_HOLE POLYGON(BOX(0, 0, 10, 10) "," BOX_BACKWARDS(4, 4, 6, 6))
#define INVERSE   POLYGON(BOX_BACKWARDS(0, 0, 10, 10))

static const QueryOptions FLAT = {.geo = QUERY_GEOMETRY};

static void what_is_not_geojson_is_not_valid(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"ST_ISVALID(" POINT("[31.9, -4.8]") ")", "true"},
        {"ST_ISVALID(" POINT("[180, 90]") ")", "true"},
        {"ST_ISVALID(" POINT("[-180, -90, 8848]") ")", "true"},
        {"ST_ISVALID(" LINE("[0,0],[1,1]") ")", "true"},
        {"ST_ISVALID(" LINE("[0,0],[1,1],[0,1],[1,0]") ")", "true"},
        {"ST_ISVALID(" UNIT ")", "true"},
        {"ST_ISVALID(" WITH_HOLE ")", "true"},
        {"ST_ISVALID(" INVERSE ")", "true"},
        {"ST_ISVALID(" SEVERAL("[" BOX(0, 0, 1, 1) "],[" BOX(5, 5, 6, 6) "]") ")", "true"},
        {"ST_ISVALID({'type':'Point','coordinates':[1,2],'bbox':[],'crs':{}})", "true"},
        {"ST_ISVALID(" POINT("[31.9, -132.8]") ")", "false"},
        {"ST_ISVALID(" POINT("[180.1, 0]") ")", "false"},
        {"ST_ISVALID(" POINT("[1]") ")", "false"},
        {"ST_ISVALID(" POINT("[1,2,3,4]") ")", "false"},
        {"ST_ISVALID(" POINT("['1',2]") ")", "false"},
        {"ST_ISVALID(" POINT("[[1,2]]") ")", "false"},
        {"ST_ISVALID(" POINT("null") ")", "false"},
        {"ST_ISVALID({'type':'Point'})", "false"},
        {"ST_ISVALID({'coordinates':[1,2]})", "false"},
        {"ST_ISVALID({'type':'point','coordinates':[1,2]})", "false"},
        {"ST_ISVALID({'type':'MultiPoint','coordinates':[[1,2]]})", "false"},
        {"ST_ISVALID({'type':5,'coordinates':[1,2]})", "false"},
        {"ST_ISVALID({})", "false"},
        {"ST_ISVALID(" LINE("[0,0]") ")", "false"},
        {"ST_ISVALID(" LINE("[1,1],[1,1]") ")", "false"},
        {"ST_ISVALID(" LINE("1,2") ")", "false"},
        {"ST_ISVALID(" LINE("[0,0],[180,0]") ")", "false"},
        {"ST_ISVALID(" LINE("[-100,0],[0,0],[100,0]") ")", "false"},
        {"ST_ISVALID(" POLYGON("") ")", "false"},
        {"ST_ISVALID(" POLYGON("[]") ")", "false"},
        {"ST_ISVALID(" POLYGON("5") ")", "false"},
        {"ST_ISVALID(" POLYGON("[[0,0],[1,0],[0,0]]") ")", "false"},
        {"ST_ISVALID(" POLYGON("[[0,0],[0,0],[0,0],[0,0]]") ")", "false"},
        {"ST_ISVALID(" POLYGON("[[0,0],[1,0],[2,0],[0,0]]") ")", "false"},
        {"ST_ISVALID(" POLYGON("[[0,0],[1,1],[1,0],[0,1],[0,0]]") ")", "false"},
        {"ST_ISVALID(" POLYGON(BOX(0, 0, 10, 10) "," BOX(20, 20, 21, 21)) ")", "false"},
        {"ST_ISVALID(" POLYGON(BOX(0, 0, 10, 10) "," BOX(5, 5, 15, 15)) ")", "false"},
        {"ST_ISVALID(" POLYGON(BOX(-180, -80, 180, 80)) ")", "false"},
        {"ST_ISVALID(" SEVERAL("") ")", "false"},
        {"ST_ISVALID(" SEVERAL(BOX(0, 0, 1, 1)) ")", "false"},
        {"ST_ISVALID(" SEVERAL("[" BOX(0, 0, 1, 1) "],[[[0,0]]]") ")", "false"},
        {"ST_ISVALID('Point')", ""},
        {"ST_ISVALID([1, 2])", ""},
        {"ST_ISVALID(null)", ""},
        {"ST_ISVALID(undefined)", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void reasons_are_given(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"ST_ISVALIDDETAILED(" POINT("[-84.38, 33.75]") ")", "{\"valid\":true}"},
        {"ST_ISVALIDDETAILED(" UNIT ")", "{\"valid\":true}"},
        {"ST_ISVALIDDETAILED(" POINT("[133.7, -184.3]") ")",
         "{\"valid\":false,\"reason\":\"Latitude values must be between -90 and 90 degrees.\"}"},
        {"ST_ISVALIDDETAILED(" POINT("[-181, 0]") ").reason",
         "\"Longitude values must be between -180 and 180 degrees.\""},
        {"ST_ISVALIDDETAILED(" POLYGON(BOX(0, 0, 9, 9) ",[[1,1],[1,2],[2,2],[2,1]]") ").reason",
         "\"The Polygon input is not valid because the start and end points of the ring number 2 "
         "are not the same. Each ring of a polygon must have the same start and end points.\""},
        {"ST_ISVALIDDETAILED(" POLYGON("[[0,0],[1,0],[0,0]]") ").reason",
         "\"The Polygon input is not valid because the ring number 1 does not have enough points. "
         "Each ring of a polygon must contain at least four points.\""},
        {"ST_ISVALIDDETAILED(" POLYGON("[[0,0],[1,1],[1,0],[0,1],[0,0]]") ").reason",
         "\"The Polygon input is not valid: Self-intersection.\""},
        {"ST_ISVALIDDETAILED(" LINE("[-100,0],[0,0],[100,0]") ").reason",
         "\"The input is not valid because it does not fit in a hemisphere.\""},
        {"ST_ISVALIDDETAILED({'type':'x','coordinates':[]}).reason",
         "\"The type must be Point, LineString, Polygon or MultiPolygon.\""},
        {"ST_ISVALIDDETAILED(1)", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void shapes_are_within_others(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"ST_WITHIN(" POINT("[5,5]") ", " UNIT ")", "true"},
        {"ST_WITHIN(" POINT("[5,10.1]") ", " UNIT ")", "false"},
        /* An edge between two points of a parallel is nearer to the pole than the parallel is. */
        {"ST_WITHIN(" POINT("[5,10.01]") ", " UNIT ")", "true"},
        {"ST_WITHIN(" POINT("[5,-1]") ", " UNIT ")", "false"},
        {"ST_WITHIN(" POINT("[0,0]") ", " UNIT ")", "false"},
        {"ST_WITHIN(" POINT("[5,5]") ", " WITH_HOLE ")", "false"},
        {"ST_WITHIN(" POINT("[3,3]") ", " WITH_HOLE ")", "true"},
        {"ST_WITHIN(" POINT("[-170,-5]") ", " UNIT ")", "false"},
        {"ST_WITHIN(" LINE("[1,1],[9,9]") ", " UNIT ")", "true"},
        {"ST_WITHIN(" LINE("[1,1],[9,9]") ", " WITH_HOLE ")", "false"},
        {"ST_WITHIN(" POLYGON(BOX(1, 1, 3, 3)) ", " UNIT ")", "true"},
        {"ST_WITHIN(" POLYGON(BOX(1, 1, 3, 13)) ", " UNIT ")", "false"},
        {"ST_WITHIN(" UNIT ", " UNIT ")", "true"},
        {"ST_WITHIN(" UNIT ", " WITH_HOLE ")", "false"},
        {"ST_WITHIN(" WITH_HOLE ", " UNIT ")", "true"},
        {"ST_WITHIN(" UNIT ", " POINT("[5,5]") ")", "false"},
        {"ST_WITHIN(" UNIT ", " LINE("[1,1],[9,9]") ")", "false"},
        {"ST_WITHIN(" POINT("[5,0]") ", " LINE("[0,0],[10,0]") ")", "true"},
        {"ST_WITHIN(" POINT("[5,5]") ", " POINT("[5,5]") ")", "true"},
        {"ST_WITHIN(" POINT("[5,5]") ", " POINT("[5,5.000001]") ")", "false"},
        {"ST_WITHIN(" POINT("[-180,5]") ", " POINT("[180,5]") ")", "true"},
        {"ST_WITHIN(" POINT("[15,90]") ", " POINT("[0,90]") ")", "true"},
        {"ST_WITHIN(" POINT("[5.5,5.5]") ", " SEVERAL(
             "[" BOX(0, 0, 1, 1) "],[" BOX(5, 5, 6, 6) "]") ")",
         "true"},
        {"ST_WITHIN(" SEVERAL("[" BOX(1, 1, 2, 2) "],[" BOX(5, 5, 6, 6) "]") ", " UNIT ")", "true"},
        {"ST_WITHIN(" SEVERAL("[" BOX(1, 1, 2, 2) "],[" BOX(15, 5, 16, 6) "]") ", " UNIT ")",
         "false"},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void shapes_meet(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"ST_INTERSECTS(" POINT("[5,5]") ", " UNIT ")", "true"},
        {"ST_INTERSECTS(" UNIT ", " POINT("[5,5]") ")", "true"},
        {"ST_INTERSECTS(" POINT("[0,0]") ", " UNIT ")", "true"},
        {"ST_INTERSECTS(" POINT("[5,5]") ", " WITH_HOLE ")", "false"},
        {"ST_INTERSECTS(" LINE("[-5,5],[15,5]") ", " UNIT ")", "true"},
        {"ST_INTERSECTS(" LINE("[-5,5],[-1,5]") ", " UNIT ")", "false"},
        {"ST_INTERSECTS(" LINE("[4.5,4.5],[5.5,5.5]") ", " WITH_HOLE ")", "false"},
        {"ST_INTERSECTS(" LINE("[0,0],[2,2]") ", " LINE("[0,2],[2,0]") ")", "true"},
        {"ST_INTERSECTS(" LINE("[0,0],[2,2]") ", " LINE("[3,0],[4,0]") ")", "false"},
        {"ST_INTERSECTS(" UNIT ", " POLYGON(BOX(10, 10, 20, 20)) ")", "true"},
        {"ST_INTERSECTS(" UNIT ", " POLYGON(BOX(11, 0, 20, 10)) ")", "false"},
        {"ST_INTERSECTS(" UNIT ", " POLYGON(BOX(5, 5, 20, 20)) ")", "true"},
        {"ST_INTERSECTS(" POINT("[1,1]") ", " POINT("[1,1]") ")", "true"},
        {"ST_INTERSECTS(" SEVERAL("[" BOX(0, 0, 1, 1) "],[" BOX(5, 5, 6, 6) "]") ", " POLYGON(
             BOX(4, 4, 7, 7)) ")",
         "true"},
        {"ST_INTERSECTS(" SEVERAL("[" BOX(0, 0, 1, 1) "],[" BOX(5, 5, 6, 6) "]") ", " POLYGON(
             BOX(2, 2, 3, 3)) ")",
         "false"},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void the_antimeridian_and_the_poles_are_places_like_others(void **state)
{
    (void)state;
#define FIJI   POLYGON("[[177,-20],[-178,-20],[-178,-15],[177,-15],[177,-20]]")
#define ARCTIC POLYGON("[[0,70],[90,70],[180,70],[-90,70],[0,70]]")
    static const QueryCase CASES[] = {
        {"ST_WITHIN(" POINT("[180,-17]") ", " FIJI ")", "true"},
        {"ST_WITHIN(" POINT("[-179,-17]") ", " FIJI ")", "true"},
        {"ST_WITHIN(" POINT("[179,-17]") ", " FIJI ")", "true"},
        {"ST_WITHIN(" POINT("[0,-17]") ", " FIJI ")", "false"},
        {"ST_INTERSECTS(" LINE("[170,-17],[-170,-17]") ", " FIJI ")", "true"},
        {"ROUND(ST_DISTANCE(" POINT("[179.9,0]") ", " POINT("[-179.9,0]") "))", "22264"},
        {"ST_WITHIN(" POINT("[33,90]") ", " ARCTIC ")", "true"},
        {"ST_WITHIN(" POINT("[-45,85]") ", " ARCTIC ")", "true"},
        {"ST_WITHIN(" POINT("[-45,60]") ", " ARCTIC ")", "false"},
        {"ST_WITHIN(" POINT("[0,-90]") ", " ARCTIC ")", "false"},
        {"ROUND(ST_DISTANCE(" POINT("[0,90]") ", " POINT("[120,-90]") "))", "20003931"},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void a_clockwise_polygon_is_everything_else(void **state)
{
    (void)state;
#define OTHER_INVERSE POLYGON(BOX_BACKWARDS(2, 2, 3, 3))
    static const QueryCase CASES[] = {
        {"ST_WITHIN(" POINT("[5,5]") ", " INVERSE ")", "false"},
        {"ST_WITHIN(" POINT("[50,50]") ", " INVERSE ")", "true"},
        {"ST_WITHIN(" POINT("[-175,-5]") ", " INVERSE ")", "true"},
        {"ST_WITHIN(" POINT("[0,0]") ", " INVERSE ")", "false"},
        {"ST_WITHIN(" POLYGON(BOX(20, 20, 30, 30)) ", " INVERSE ")", "true"},
        {"ST_WITHIN(" POLYGON(BOX(10, 0, 20, 10)) ", " INVERSE ")", "true"},
        {"ST_WITHIN(" POLYGON(BOX(5, 5, 30, 30)) ", " INVERSE ")", "false"},
        {"ST_WITHIN(" INVERSE ", " UNIT ")", "false"},
        {"ST_WITHIN(" INVERSE ", " INVERSE ")", "true"},
        {"ST_WITHIN(" INVERSE ", " OTHER_INVERSE ")", "true"},
        {"ST_WITHIN(" OTHER_INVERSE ", " INVERSE ")", "false"},
        {"ST_INTERSECTS(" POINT("[5,5]") ", " INVERSE ")", "false"},
        {"ST_INTERSECTS(" POINT("[0,0]") ", " INVERSE ")", "true"},
        {"ST_INTERSECTS(" INVERSE ", " POINT("[50,50]") ")", "true"},
        {"ST_INTERSECTS(" INVERSE ", " OTHER_INVERSE ")", "true"},
        {"ST_INTERSECTS(" INVERSE ", " POLYGON(BOX(4, 4, 6, 6)) ")", "false"},
        {"ST_INTERSECTS(" INVERSE ", " POLYGON(BOX(4, 4, 16, 6)) ")", "true"},
        {"ST_DISTANCE(" POINT("[50,50]") ", " INVERSE ")", "0"},
        {"ROUND(ST_DISTANCE(" POINT("[5,1]") ", " INVERSE ")) = "
                                             "ROUND(ST_DISTANCE(" POINT("[5,1]") ", " LINE(
                                                 "[0,0],[10,0]") "))",
         "true"},
        {"ROUND((ST_AREA(" INVERSE ") + ST_AREA(" UNIT ")) / 1e6)", "510065622"},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void lengths_and_areas_are_those_of_the_ellipsoid(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"ROUND(ST_DISTANCE(" POINT("[-73.78,40.64]") ", " POINT("[103.99,1.36]") "))", "15347513"},
        {"ROUND(ST_DISTANCE(" POINT("[0,0]") ", " POINT("[0,1]") "))", "110574"},
        {"ROUND(ST_DISTANCE(" POINT("[0,0]") ", " POINT("[1,0]") "))", "111319"},
        {"ROUND(ST_DISTANCE(" POINT("[0,0]") ", " POINT("[180,0]") "))", "20003931"},
        {"ST_DISTANCE(" POINT("[5,5]") ", " POINT("[5,5]") ")", "0"},
        {"ROUND(ST_DISTANCE(" POINT("[5,1]") ", " LINE("[0,0],[10,0]") "))", "110574"},
        {"ROUND(ST_DISTANCE(" LINE("[0,0],[10,0]") ", " POINT("[5,1]") "))", "110574"},
        {"ROUND(ST_DISTANCE(" POINT("[11,0]") ", " LINE("[0,0],[10,0]") "))", "111319"},
        {"ST_DISTANCE(" POINT("[5,5]") ", " UNIT ")", "0"},
        {"ROUND(ST_DISTANCE(" POINT("[5,-1]") ", " UNIT "))", "110574"},
        {"ROUND(ST_DISTANCE(" POINT("[5,5]") ", " WITH_HOLE ") / 1000)", "111"},
        {"ROUND(ST_DISTANCE(" POLYGON(BOX(0, -5, 10, -1)) ", " UNIT "))", "110574"},
        {"ST_DISTANCE(" POLYGON(BOX(5, 5, 20, 20)) ", " UNIT ")", "0"},
        {"ROUND(ST_DISTANCE(" POINT("[11,0]") ", " SEVERAL(
             "[" BOX(50, 50, 60, 60) "],[" BOX(0, 0, 10, 10) "]") "))",
         "111319"},
        {"ST_DISTANCE(" POINT("[0,0]") ", " POINT("[0,91]") ")", ""},
        {"ST_DISTANCE(" POINT("[0,0]") ", null)", ""},
        {"ST_DISTANCE(undefined, " POINT("[0,0]") ")", ""},
        {"ST_DISTANCE(" POINT("[0,0]") ")", "!The ST_DISTANCE function requires 2 argument(s)."},
        {"ABS(ST_AREA(" POLYGON(
             "[[31.8,-5],[32,-5],[32,-4.7],[31.8,-4.7],[31.8,-5]]") ") / "
                                                                    "735970283.0522614 - 1) < 1e-7",
         "true"},
        {"ROUND((ST_AREA(" UNIT ") - ST_AREA(" WITH_HOLE ")) / "
         "ST_AREA(" POLYGON(BOX(4, 4, 6, 6)) ") * 1e9)",
         "1000000000"},
        {"ROUND(ST_AREA(" SEVERAL(
             "[" BOX(0, 0, 10, 10) "],[" BOX(20, 0, 30, 10) "]") ") / "
                                                                 "ST_AREA(" UNIT ") * 1e9)",
         "2000000000"},
        {"ST_AREA(" POINT("[1,1]") ")", "0"},
        {"ST_AREA(" LINE("[1,1],[2,2]") ")", "0"},
        {"ST_AREA(" POLYGON("[[0,0],[1,1],[1,0],[0,1],[0,0]]") ")", ""},
        {"ST_AREA(5)", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void a_plane_knows_no_degrees(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"ST_ISVALID(" POINT("[1000, -2000]") ")", "true"},
        {"ST_ISVALID(" POINT("[1e16, 0]") ")", "false"},
        {"ST_ISVALID(" LINE("[-1000,0],[1000,0]") ")", "true"},
        {"ST_ISVALID(" POLYGON("[[0,0],[1,1],[1,0],[0,1],[0,0]]") ")", "false"},
        {"ST_DISTANCE(" POINT("[0,0]") ", " POINT("[300,400]") ")", "500"},
        {"ST_DISTANCE(" POINT("[5,15]") ", " UNIT ")", "5"},
        {"ST_DISTANCE(" UNIT ", " POINT("[5,15]") ")", "5"},
        {"ST_DISTANCE(" POINT("[5,5]") ", " UNIT ")", "0"},
        {"ST_DISTANCE(" POINT("[5,5]") ", " WITH_HOLE ")", "1"},
        {"ST_DISTANCE(" POLYGON(BOX(13, 14, 20, 20)) ", " UNIT ")", "5"},
        {"ST_DISTANCE(" SEVERAL("[" BOX(50, 0, 60, 10) "],[" BOX(11, 0, 20, 10) "]") ", " UNIT ")",
         "1"},
        {"ST_AREA(" UNIT ")", "100"},
        {"ST_AREA(" INVERSE ")", "100"},
        {"ST_AREA(" WITH_HOLE ")", "96"},
        {"ST_AREA(" LINE("[0,0],[1,1]") ")", "0"},
        {"ST_WITHIN(" POINT("[5,10]") ", " UNIT ")", "false"},
        {"ST_WITHIN(" POINT("[5,9.99]") ", " INVERSE ")", "true"},
        {"ST_WITHIN(" POLYGON(BOX(0, 0, 5, 5)) ", " UNIT ")", "true"},
        {"ST_INTERSECTS(" POINT("[5,10]") ", " UNIT ")", "true"},
        {"ST_INTERSECTS(" LINE("[-5,5],[0,5]") ", " UNIT ")", "true"},
        {"ST_INTERSECTS(" POINT("[5,10.0001]") ", " UNIT ")", "false"},
        {"ST_INTERSECTS(" POINT("[-180,5]") ", " POINT("[180,5]") ")", "false"},
    };
    check_expressions(CASES, ARRAY_COUNT(CASES), FLAT);
}

/* The only result, a number. */
static double run_number(Arena *arena, const char *query, const char *documents)
{
    double number = 0;
    const char *got = run_query(arena, query, documents, NULL, (QueryOptions){0});
    if (sscanf(got, "[%lf]", &number) != 1)
        fail_msg("%s\n  gives %s", query, got);
    return number;
}

/* A point within 'spread' degrees of a place at 30 degrees north. */
static GeoPoint near_place(Random *random, double lon, double spread)
{
    double x = lon + spread * ((double)random_below(random, 1000) / 1000 - 0.5);
    double y = 30 + spread * ((double)random_below(random, 1000) / 1000 - 0.5);
    return (GeoPoint){x - 360 * round(x / 360), y};
}

static void the_nearest_point_of_an_edge_is_found(void **state)
{
    (void)state;
    enum { SAMPLES = 400 };
    Random random;
    random_init(&random, 11);
    for (int i = 0; i < 60; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1 << 16);
        AUTO(buf_done) Buf samples;
        buf_init(&samples, 1 << 16);
        double spread = i % 2 == 0 ? 1e-2 : 40;
        double lon = (double)random_below(&random, 360) - 180;
        GeoPoint from = near_place(&random, lon, spread);
        GeoPoint ends[] = {near_place(&random, lon, spread), near_place(&random, lon, spread)};
        Vector a = direction_of(ends[0]);
        Vector b = direction_of(ends[1]);
        for (int k = 0; k <= SAMPLES; k++) {
            double t = (double)k / SAMPLES;
            GeoPoint p = direction_point(
                (Vector){a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), a.z + t * (b.z - a.z)});
            buf_format(&samples, "%c[%.17g,%.17g]", k == 0 ? '[' : ',', p.x, p.y);
        }
        buf_byte(&samples, ']');
        Slice query = arena_format(
            &arena,
            "SELECT VALUE MIN(ST_DISTANCE(" POINT("c") ", " POINT("[%.17g,%.17g]") ")) FROM c%c",
            from.x, from.y, '\0');
        double sampled = run_number(&arena, query.ptr, arena_cstr(&arena, buf_view(&samples)));
        query = arena_format(&arena,
                             "SELECT VALUE ST_DISTANCE(" POINT("[%.17g,%.17g]") ", " LINE(
                                 "[%.17g,%.17g],[%.17g,%.17g]") ")%c",
                             from.x, from.y, ends[0].x, ends[0].y, ends[1].x, ends[1].y, '\0');
        double exact = run_number(&arena, query.ptr, "[]");
        /* Between two samples the edge may be nearer, but not by more than half of their distance;
         * far from them by much less. */
        double gap = direction_angle(a, b) * EARTH_RADIUS_M / SAMPLES;
        double slack = fmin(gap, gap * gap / fmax(exact, 1e-9));
        if (!(sampled > exact - 1e-4 && sampled < exact + slack + 1e-4))
            fail_msg("%d: the edge is at %f m, the nearest of its points at %f m", i, exact,
                     sampled);
    }
}

static void too_many_points_are_not_valid(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        int points;
        bool closed;
        const char *expected;
    } CASES[] = {
        {"Polygon", 4095, true, "[true]"},
        {"Polygon", 4096, true, "[false]"},
        {"LineString", 65536, false, "[true]"},
        {"LineString", 65537, false, "[false]"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 1 << 20);
        AUTO(buf_done) Buf text;
        buf_init(&text, 4 << 20);
        const char *more = CASES[i].closed ? "[" : "";
        buf_format(&text, "[{\"type\":\"%s\",\"coordinates\":[%s", CASES[i].type, more);
        for (int k = 0; k < CASES[i].points; k++) {
            double angle = 2 * M_PI * k / CASES[i].points;
            buf_format(&text, "%s[%.6f,%.6f]", k == 0 ? "" : ",", 10 * cos(angle), 10 * sin(angle));
        }
        buf_format(&text, "%s]}]", CASES[i].closed ? ",[10.000000,0.000000]]" : "");
        const char *got = run_query(&arena, "SELECT VALUE ST_ISVALID(c) FROM c",
                                    arena_cstr(&arena, buf_view(&text)), NULL,
                                    (QueryOptions){.steps_max = 100000000});
        assert_string_equal(got, CASES[i].expected);
    }
}

/* A polygon like a comb of 2000 teeth. */
static void add_comb(Buf *out, bool upright)
{
    enum { TEETH = 2000 };
    buf_slice(out, SLICE("{\"type\":\"Polygon\",\"coordinates\":[["));
    for (int i = 0; i <= 2 * TEETH; i++) {
        int tooth = i < TEETH ? i : i < 2 * TEETH ? 2 * TEETH - 1 - i : 0;
        double x = (double)tooth / TEETH;
        double y = (tooth % 2) + (i >= TEETH && i < 2 * TEETH ? 0.0001 : 0);
        buf_format(out, "%s[%.6f,%.6f]", i == 0 ? "" : ",", upright ? x : y, upright ? y : x);
    }
    buf_slice(out, SLICE("]]}"));
}

static void shapes_that_meet_millions_of_times_have_no_answer_but_a_quick_one(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 20);
    AUTO(buf_done) Buf text;
    buf_init(&text, 4 << 20);
    buf_slice(&text, SLICE("[{\"a\":"));
    add_comb(&text, true);
    buf_slice(&text, SLICE(",\"b\":"));
    add_comb(&text, false);
    buf_slice(&text, SLICE(",\"l\":{\"type\":\"LineString\",\"coordinates\":["));
    for (int i = 0; i < 4000; i++)
        buf_format(&text, "%s[%d,0]", i == 0 ? "" : ",", i % 2);
    buf_slice(&text, SLICE("]}}]"));
    const char *documents = arena_cstr(&arena, buf_view(&text));
    const char *query = "SELECT VALUE [ST_INTERSECTS(c.a, c.b), ST_DISTANCE(c.a, c.b), "
                        "IS_DEFINED(ST_WITHIN(c.a, c.b)), IS_DEFINED(ST_WITHIN(c.l, c.l)), "
                        "ST_INTERSECTS(c.l, c.b), ST_WITHIN(c.a, c.l)] FROM c";
    QueryOptions options = {.steps_max = 10000000};
    assert_string_equal(run_query(&arena, query, documents, NULL, options),
                        "[[true,0,false,false,true,false]]");
    options.geo = QUERY_GEOMETRY;
    assert_string_equal(run_query(&arena, query, documents, NULL, options),
                        "[[true,0,false,false,true,false]]");
    options.steps_max = 100000;
    assert_non_null(strstr(run_query(&arena, query, documents, NULL, options), "!"));
}

/* More shapes than are kept, again and again, and some that are not valid among them. */
static void shapes_that_come_with_the_rows_are_kept_apart(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 20);
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    for (int i = 0; i < 300; i++) {
        int x = i % (SHAPES_MAX + 3);
        buf_format(&text,
                   "%c{\"p\":[%d.5,0.5],\"s\":{\"type\":\"Polygon\",\"coordinates\":"
                   "[[[%d,0],[%d,0],[%d,1],[%d,1],[%d,0]]]}}",
                   i == 0 ? '[' : ',', x, x, x + 1, x + 1, x, i % 10 == 9 ? 77 : x);
    }
    buf_byte(&text, ']');
    const char *documents = arena_cstr(&arena, buf_view(&text));
    const char *query = "SELECT VALUE COUNT(1) FROM c WHERE ST_WITHIN(" POINT(
        "c.p") ", c.s) "
               "AND ST_INTERSECTS(c.s, " POLYGON(
                   BOX(0, 0, 9, 9)) ") "
                                    "AND NOT ST_INTERSECTS(c.s, " POLYGON(BOX(20, 20, 29, 29)) ")";
    QueryOptions options = {.steps_max = 100000000};
    assert_string_equal(run_query(&arena, query, documents, NULL, options), "[270]");
    options.geo = QUERY_GEOMETRY;
    assert_string_equal(run_query(&arena, query, documents, NULL, options), "[270]");
}

static void *run_alone(void *result)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    const char *query = "SELECT VALUE ST_WITHIN(" POINT(
        "[5,5]") ", " UNIT ") AND ST_DISTANCE(" POINT("[5,5]") ", " POINT("[5,6]") ") < 111000";
    const char *got = run_query(&arena, query, "[]", NULL, (QueryOptions){0});
    *(bool *)result = strcmp(got, "[true]") == 0;
    return NULL;
}

/* It is the first test, so that the libraries are loaded here. */
static void runs_on_many_threads_load_the_libraries_together(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    bool right[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_alone, &right[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(right[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_on_many_threads_load_the_libraries_together),
        cmocka_unit_test(what_is_not_geojson_is_not_valid),
        cmocka_unit_test(reasons_are_given),
        cmocka_unit_test(shapes_are_within_others),
        cmocka_unit_test(shapes_meet),
        cmocka_unit_test(the_antimeridian_and_the_poles_are_places_like_others),
        cmocka_unit_test(a_clockwise_polygon_is_everything_else),
        cmocka_unit_test(lengths_and_areas_are_those_of_the_ellipsoid),
        cmocka_unit_test(a_plane_knows_no_degrees),
        cmocka_unit_test(the_nearest_point_of_an_edge_is_found),
        cmocka_unit_test(too_many_points_are_not_valid),
        cmocka_unit_test(shapes_that_meet_millions_of_times_have_no_answer_but_a_quick_one),
        cmocka_unit_test(shapes_that_come_with_the_rows_are_kept_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
