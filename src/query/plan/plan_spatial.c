/* plan_spatial.c - shapes that may be near: what a spatial index tells about ST_WITHIN,
 * ST_INTERSECTS and ST_DISTANCE with a constant.
 *
 * The bounds of the constant, grown by the distance, are covered by cells. A shape that meets them
 * has a term in one of these cells or is under a larger one that contains it. Cells say "perhaps":
 * such a filter is never exact, and its opposite says nothing.
 *
 * An index may be for some types of shapes only. The others are found by their "type", if that is
 * indexed; otherwise the index is of no use.
 */
#include "index/terms.h"
#include "query/plan/plan_int.h"
#include "query/sql/functions_int.h"

#include <math.h>

typedef struct ShapeType {
    SpatialTypes flag;
    Slice name;
} ShapeType;

static const ShapeType TYPES[] = {
    {SPATIAL_POINT, SLICE_INIT("Point")},
    {SPATIAL_LINE, SLICE_INIT("LineString")},
    {SPATIAL_POLYGON, SLICE_INIT("Polygon")},
    {SPATIAL_MULTIPOLYGON, SLICE_INIT("MultiPolygon")},
};
#define TYPES_ALL \
    ((unsigned)(SPATIAL_POINT | SPATIAL_LINE | SPATIAL_POLYGON | SPATIAL_MULTIPOLYGON))

/* One of the two arguments is a path that shapes are indexed at, the other a constant shape. */
typedef struct Sought {
    PlanPath path;
    const SpatialIndex *index;
    SpatialBox box;
    bool is_known;
} Sought;

static Status read_argument(Planner *planner, const Node *place, const Node *shape, Sought *out)
{
    bool is_plane = planner->run->options.geo == QUERY_GEOMETRY;
    Value value;
    bool is_constant = false;
    if (!plan_path(planner, place, &out->path) || out->path.count == 0)
        return STATUS_OK;
    out->index = partition_view_spatial(planner->view, out->path.steps, out->path.count);
    if (out->index == NULL || out->index->frame.is_plane != is_plane)
        return STATUS_OK;
    TRY(plan_constant(planner, shape, &value, &is_constant));
    out->is_known = is_constant && value.type == JSON_OBJECT &&
                    spatial_bounds(value.json, is_plane, TYPES_ALL, &out->box);
    return STATUS_OK;
}

static Status read_sought(Planner *planner, const Node *call, Sought *out)
{
    *out = (Sought){.is_known = false};
    TRY(read_argument(planner, call->call.args.first, call->call.args.last, out));
    return out->is_known ? STATUS_OK
                         : read_argument(planner, call->call.args.last, call->call.args.first, out);
}

static void add_leaf(Planner *planner, Filter *cells, FilterKind kind, TermPath path, Slice from,
                     Slice to)
{
    Filter *leaf = filter_new(planner, kind, false);
    leaf->path = path;
    leaf->from = arena_copy(planner->arena, from);
    leaf->to = arena_copy(planner->arena, to);
    filter_add_child(cells, leaf);
}

/* Everything in the cell. */
static void add_cell(Planner *planner, Filter *cells, TermPath path, SpatialCell cell)
{
    AUTO(buf_done) Buf from;
    AUTO(buf_done) Buf to;
    buf_init(&from, TERM_VALUE_BYTES_MAX);
    buf_init(&to, TERM_VALUE_BYTES_MAX);
    spatial_put_range(cell, &from, &to);
    add_leaf(planner, cells, FILTER_RANGE, path, buf_view(&from), buf_view(&to));
}

static bool has_term(const Filter *cells, Slice value)
{
    for (const Filter *leaf = cells->children; leaf != NULL; leaf = leaf->next) {
        if (leaf->kind == FILTER_TERM && slice_equal(leaf->from, value))
            return true;
    }
    return false;
}

/* Adds all cells around 'cell', which larger shapes are indexed by. */
static void add_parents(Planner *planner, Filter *cells, TermPath path, SpatialCell cell)
{
    AUTO(buf_done) Buf value;
    buf_init(&value, TERM_VALUE_BYTES_MAX);
    while (spatial_parent(cell, &cell)) {
        buf_reset(&value);
        spatial_put(&value, cell);
        if (has_term(cells, buf_view(&value)))
            return; /* all cells around it are there, too */
        add_leaf(planner, cells, FILTER_TERM, path, buf_view(&value), SLICE_EMPTY);
    }
}

static Filter *make_cells(Planner *planner, const Sought *sought, SpatialBox box)
{
    SpatialCell cover[SPATIAL_CELLS_MAX];
    size_t count = spatial_cover(&sought->index->frame, box, cover);
    TermPath place = plan_term_path(planner, &sought->path);
    TermPath path = terms_spatial_path(planner->index.key, place, sought->index);
    Filter *cells = filter_new(planner, FILTER_CELLS, false);
    cells->spec = filter_spec(planner, &sought->path, place);
    for (size_t i = 0; i < count; i++)
        add_cell(planner, cells, path, cover[i]);
    for (size_t i = 0; i < count; i++)
        add_parents(planner, cells, path, cover[i]);
    return cells;
}

/* Adds the shapes whose types the index does not have; false if they cannot be found. */
static bool add_others(Planner *planner, const Sought *sought, Filter **filter)
{
    unsigned others = TYPES_ALL & ~sought->index->types;
    if (others == 0)
        return true;
    size_t count = sought->path.count;
    IndexStep *steps = ARENA_NEW_ARRAY(planner->arena, IndexStep, count + 1);
    memcpy(steps, sought->path.steps, count * sizeof(IndexStep));
    steps[count] = (IndexStep){.name = SLICE("type")};
    PlanPath path = {.steps = steps, .count = count + 1};
    if (!plan_is_indexed(planner, &path))
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(TYPES); i++) {
        Value name = value_string(TYPES[i].name);
        if ((others & TYPES[i].flag) != 0)
            *filter = filter_or(planner, *filter, filter_equal(planner, &path, &name, true));
    }
    return true;
}

static void make_filter(Planner *planner, const Sought *sought, SpatialBox box, Filter **out)
{
    Filter *filter = make_cells(planner, sought, box);
    if (add_others(planner, sought, &filter))
        *out = filter;
}

Status filter_shapes(Planner *planner, const Node *call, bool wanted, Filter **out)
{
    Sought sought;
    if (!wanted || call->call.args.count != 2)
        return STATUS_OK;
    TRY(read_sought(planner, call, &sought));
    if (sought.is_known)
        make_filter(planner, &sought, sought.box, out);
    return STATUS_OK;
}

Status filter_distance(Planner *planner, const Node *call, const Node *limit, bool wanted,
                       Filter **out)
{
    Sought sought;
    Value most;
    bool is_constant = false;
    if (!wanted || call->call.args.count != 2)
        return STATUS_OK;
    TRY(plan_constant(planner, limit, &most, &is_constant));
    if (!is_constant || most.type != JSON_NUMBER || isnan(most.number))
        return STATUS_OK;
    TRY(read_sought(planner, call, &sought));
    if (sought.is_known)
        make_filter(planner, &sought,
                    spatial_grow(sought.box, sought.index->frame.is_plane, fmax(most.number, 0)),
                    out);
    return STATUS_OK;
}
