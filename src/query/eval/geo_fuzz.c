/* geo_fuzz.c - any two JSON values, one a line, as shapes, on the Earth and on a plane; or, if the
 * input does not begin as JSON does, two shapes on a coarse grid, so that they often touch.
 *
 * Beyond surviving: what is within something meets it, what meets is at no distance, and the order
 * of two shapes that meet does not matter.
 */
#include "query/eval/geo_int.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS = 3000000, INPUT_BYTES_MAX = 16 << 10 };

static void check_pair(Run *run, const Shape *a, const Shape *b)
{
    bool meets, meets_back, within, known, known_back, known_within, known_distance;
    double distance;
    if (geo_intersects(run, a, b, &meets, &known) != STATUS_OK ||
        geo_intersects(run, b, a, &meets_back, &known_back) != STATUS_OK ||
        geo_within(run, a, b, &within, &known_within) != STATUS_OK ||
        geo_distance(run, a, b, &distance, &known_distance) != STATUS_OK)
        return;
    /* On a map that is not the same rounding is not either, so that only distance can tell. */
    bool flat = run->options.geo == QUERY_GEOMETRY;
    ASSERT(!(flat && known && known_back) || meets == meets_back);
    ASSERT(!(flat && known && known_within && within) || meets);
    ASSERT(!known_distance || distance >= 0);
    ASSERT(!(known && known_distance && meets) || distance == 0);
    ASSERT(!known_distance || !isnan(distance));
}

static void check(QueryGeo geo, const Value *a, const Value *b)
{
    AUTO(arena_done) Arena keep;
    arena_init(&keep, 4096);
    Error err;
    AUTO(run_done) Run run;
    run_init(&run, (QueryOptions){.geo = geo, .steps_max = STEPS}, &keep, &err);
    const Shape *shapes[2] = {NULL, NULL};
    if (shape_read(&run, a, &shapes[0]) != STATUS_OK ||
        shape_read(&run, b, &shapes[1]) != STATUS_OK)
        return;
    double area;
    for (int i = 0; i < 2; i++) {
        if (shapes[i] == NULL || shapes[i]->problem.len > 0)
            return;
        if (geo_area(&run, shapes[i], &area) == STATUS_OK)
            ASSERT(isfinite(area));
    }
    check_pair(&run, shapes[0], shapes[1]);
    check_pair(&run, shapes[1], shapes[0]);
}

static void check_both(Json a, Json b)
{
    Value values[] = {value_of(a, true), value_of(b, true)};
    check(QUERY_GEOGRAPHY, &values[0], &values[1]);
    check(QUERY_GEOMETRY, &values[0], &values[1]);
}

static void add_position(JsonBuilder *b, const uint8_t *at, double scale)
{
    json_begin_array(b);
    json_add_number(b, (double)(int8_t)at[0] * scale);
    json_add_number(b, (double)(int8_t)at[1] * scale / 2);
    json_end(b);
}

/* A polygon or line of up to 'size' / 2 points, two bytes each. */
static Json make_shape(Arena *arena, bool is_line, const uint8_t *data, size_t size, double scale)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    json_key(&b, SLICE("type"));
    json_add_string(&b, is_line ? SLICE("LineString") : SLICE("Polygon"));
    json_key(&b, SLICE("coordinates"));
    json_begin_array(&b);
    if (!is_line)
        json_begin_array(&b);
    for (size_t i = 0; i + 1 < size; i += 2)
        add_position(&b, data + i, scale);
    if (!is_line) {
        add_position(&b, data, scale);
        json_end(&b);
    }
    json_end(&b);
    json_end(&b);
    return json_built(&b);
}

static void check_grid(Arena *arena, const uint8_t *data, size_t size)
{
    static const double SCALES[] = {0.01, 1, 0.3, 1.4};
    if (size < 16)
        return;
    size_t cut = 3 + data[1] % (size - 8);
    double scale = SCALES[data[0] & 3];
    check_both(make_shape(arena, data[0] & 4, data + 2, cut, scale),
               make_shape(arena, data[0] & 8, data + 2 + cut, size - 2 - cut, scale));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_BYTES_MAX)
        return 0;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    if (size > 0 && data[0] != '{') {
        check_grid(&arena, data, size);
        return 0;
    }
    Slice second = slice_make(data, size);
    Slice first = slice_cut(&second, '\n');
    Json a, b;
    Error err;
    if (json_parse(&arena, first, &a, &err) != STATUS_OK ||
        json_parse(&arena, second, &b, &err) != STATUS_OK)
        return 0;
    check_both(a, b);
    return 0;
}
