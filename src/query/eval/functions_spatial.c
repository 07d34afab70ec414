/* functions_spatial.c - shapes in GeoJSON. What they are is in geo_int.h.
 *
 * Where a shape is not valid the functions that compute something are undefined; the two that ask
 * whether it is say no.
 */
#include "query/eval/call_int.h"
#include "query/eval/geo_int.h"

/* NULL if it is not valid. */
static Status read_valid(Run *run, const Value *arg, const Shape **out)
{
    TRY(shape_read(run, arg, out));
    if (*out != NULL && (*out)->problem.len > 0)
        *out = NULL;
    return STATUS_OK;
}

static Status read_pair(Run *run, const Value *args, const Shape *pair[2])
{
    TRY(read_valid(run, &args[0], &pair[0]));
    pair[1] = NULL;
    return pair[0] == NULL ? STATUS_OK : read_valid(run, &args[1], &pair[1]);
}

Status function_st_area(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    const Shape *shape;
    double area;
    TRY(read_valid(run, &args[0], &shape));
    if (shape == NULL)
        return STATUS_OK;
    TRY(geo_area(run, shape, &area));
    *out = value_number(area);
    return STATUS_OK;
}

Status function_st_distance(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    const Shape *pair[2];
    double distance;
    bool is_known;
    TRY(read_pair(run, args, pair));
    if (pair[1] == NULL)
        return STATUS_OK;
    TRY(geo_distance(run, pair[0], pair[1], &distance, &is_known));
    if (is_known)
        *out = value_number(distance);
    return STATUS_OK;
}

Status function_st_intersects(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    const Shape *pair[2];
    bool holds, is_known;
    TRY(read_pair(run, args, pair));
    if (pair[1] == NULL)
        return STATUS_OK;
    TRY(geo_intersects(run, pair[0], pair[1], &holds, &is_known));
    if (is_known)
        *out = value_bool(holds);
    return STATUS_OK;
}

Status function_st_within(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    const Shape *pair[2];
    bool holds, is_known;
    TRY(read_pair(run, args, pair));
    if (pair[1] == NULL)
        return STATUS_OK;
    TRY(geo_within(run, pair[0], pair[1], &holds, &is_known));
    if (is_known)
        *out = value_bool(holds);
    return STATUS_OK;
}

Status function_st_isvalid(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    const Shape *shape;
    TRY(shape_read(run, &args[0], &shape));
    if (shape != NULL)
        *out = value_bool(shape->problem.len == 0);
    return STATUS_OK;
}

Status function_st_isvaliddetailed(Run *run, const Value *args, uint32_t count UNUSED, Value *out)
{
    const Shape *shape;
    TRY(shape_read(run, &args[0], &shape));
    if (shape == NULL)
        return STATUS_OK;
    JsonBuilder b;
    json_build(&b, run->scratch);
    json_begin_object(&b);
    json_key(&b, SLICE("valid"));
    json_add_bool(&b, shape->problem.len == 0);
    if (shape->problem.len > 0) {
        json_key(&b, SLICE("reason"));
        json_add_string(&b, shape->problem);
    }
    json_end(&b);
    return run_built(run, &b, out);
}
