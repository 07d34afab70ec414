/* terms_composite_spatial.c - entries of composite and of spatial indexes: see terms.h for what
 * they hold.
 *
 * Their paths are hashed with another key, so that none of them can be the path of a property.
 *
 *     composite = | 'C' | for each part: path u64, is descending u8 |
 *     spatial   = | 'S' | path u64 | is plane u8 | west, south, east, north |
 */
#include "index/terms_int.h"

#define KINDS_KEY UINT64_C(0x6b696e64732d6b65)

typedef struct CompositeWalk {
    Collector *c;
    const CompositeIndex *index;
    TermPath path;
    uint32_t ts_s;
    size_t terms_left;
    Json values[COMPOSITE_PARTS_MAX];
} CompositeWalk;

static void composite_at(CompositeWalk *walk, Json at, size_t depth);
static void walk_shapes(Collector *c, Json value, SpatialPlace place, TermPath path);

static TermPath hash_kind(HashKey key, Slice bytes)
{
    return hash_keyed((HashKey){key.k0 ^ KINDS_KEY, key.k1}, bytes);
}

/* ---- composite ---- */

TermPath terms_composite_path(HashKey key, const CompositeIndex *index)
{
    char bytes[1 + COMPOSITE_PARTS_MAX * 9] = {'C'};
    size_t len = 1;
    for (size_t i = 0; i < index->part_count; ++i) {
        const CompositePart *part = &index->parts[i];
        TermPath path = term_path_root(key);
        for (size_t k = 0; k < part->step_count; ++k)
            path = part->steps[k].is_element ? term_path_element(key, path)
                                             : term_path_name(key, path, part->steps[k].name);
        be64_put(bytes + len, path);
        bytes[len + 8] = part->is_descending;
        len += 9;
    }
    return hash_kind(key, slice_make(bytes, len));
}

void collect_composites(Collector *c, Json document, const TermSystem *system)
{
    size_t count;
    const CompositeIndex *indexes = index_policy_composites(c->policy, &count);
    for (size_t i = 0; i < count; ++i) {
        CompositeWalk walk = {.c = c,
                              .index = &indexes[i],
                              .path = terms_composite_path(c->key, &indexes[i]),
                              .ts_s = system->ts_s,
                              .terms_left = COMPOSITE_ELEMENTS_MAX};
        bool has_array = indexes[i].array_steps > 0;
        c->arrays_open += has_array;
        composite_at(&walk, document, 0);
        c->arrays_open -= has_array;
    }
}

static void invert(Buf *out, size_t start)
{
    for (size_t i = start; i < out->len; ++i)
        out->ptr[i] = (char)~out->ptr[i];
}

void terms_put_part(Buf *out, Json value, bool is_descending, bool *exact)
{
    size_t start = out->len;
    term_put_json(out, value, exact);
    if (is_descending)
        invert(out, start);
}

static void put_part(const CompositeWalk *walk, size_t i, Buf *out)
{
    const CompositePart *part = &walk->index->parts[i];
    bool exact = true; /* only readers need it */
    if (!part->is_time) {
        terms_put_part(out, walk->values[i], part->is_descending, &exact);
        return;
    }
    size_t start = out->len;
    term_put_number(out, walk->ts_s, &exact);
    if (part->is_descending)
        invert(out, start);
}

static void composite_term(CompositeWalk *walk)
{
    const CompositeIndex *index = walk->index;
    if (walk->terms_left == 0) {
        collect_tag(walk->c, walk->path, TERM_END);
        return;
    }
    --walk->terms_left;
    size_t start = collect_begin(walk->c);
    for (size_t i = 0; i < index->part_count; ++i)
        put_part(walk, i, &walk->c->values);
    collect_end(walk->c, walk->path, start);
}

/* Follows the names from step 'first' of a part to the next "[]" or to the end, which is '*stop'.
 */
static Json follow_names(const CompositePart *part, Json at, size_t first, size_t *stop)
{
    size_t i = first;
    for (; i < part->step_count && !part->steps[i].is_element; ++i)
        at = json_get(at, part->steps[i].name);
    *stop = i;
    return at;
}

static bool leaves_arrays_at(const CompositePart *part, size_t depth)
{
    for (size_t i = depth; i < part->step_count; ++i) {
        if (part->steps[i].is_element)
            return false;
    }
    return depth == 0 || (depth <= part->step_count && part->steps[depth - 1].is_element);
}

/* 'at' is where the first 'depth' steps lead, in one element of each array on the way. An array
 * that is missing or empty counts as one with an undefined element. */
static void composite_at(CompositeWalk *walk, Json at, size_t depth)
{
    const CompositeIndex *index = walk->index;
    size_t stop;
    for (size_t i = 0; i < index->part_count; ++i) {
        if (leaves_arrays_at(&index->parts[i], depth))
            walk->values[i] = follow_names(&index->parts[i], at, depth, &stop);
    }
    if (depth == index->array_steps) {
        composite_term(walk);
        return;
    }
    Json array = follow_names(&index->parts[index->array_part], at, depth, &stop);
    if (!json_is(array, JSON_ARRAY) || json_count(array) == 0) {
        composite_at(walk, JSON_NONE, stop + 1);
        return;
    }
    JsonIter it = json_iter(array);
    while (json_next(&it))
        composite_at(walk, it.value, stop + 1);
}

/* ---- spatial ---- */

TermPath terms_spatial_path(HashKey key, TermPath path, const SpatialIndex *index)
{
    const SpatialFrame *frame = &index->frame;
    char bytes[1 + 8 + 1 + sizeof(SpatialBox)] = {'S'};
    be64_put(bytes + 1, path);
    bytes[9] = frame->is_plane;
    size_t len = 10;
    if (frame->is_plane) {
        memcpy(bytes + len, &frame->box, sizeof(SpatialBox));
        len += sizeof(SpatialBox);
    }
    return hash_kind(key, slice_make(bytes, len));
}

void collect_spatials(Collector *c, Json document)
{
    SpatialPlace root = policy_spatial_root(c->policy);
    if (policy_spatial_below(root))
        walk_shapes(c, document, root, term_path_root(c->key));
}

static void shape_terms(Collector *c, Json shape, const SpatialIndex *index, TermPath path)
{
    SpatialBox box;
    if (!spatial_bounds(shape, index->frame.is_plane, index->types, &box))
        return;
    SpatialCell cells[SPATIAL_CELLS_MAX];
    size_t count = spatial_cover(&index->frame, box, cells);
    TermPath spatial = terms_spatial_path(c->key, path, index);
    for (size_t i = 0; i < count; ++i) {
        size_t start = collect_begin(c);
        spatial_put(&c->values, cells[i]);
        collect_end(c, spatial, start);
    }
}

/* Called if an index has shapes at or below 'place'. A shape may contain others, in members that
 * GeoJSON does not define. */
static void walk_shapes(Collector *c, Json value, SpatialPlace place, TermPath path)
{
    const SpatialIndex *index = policy_spatial(place);
    JsonIter it = json_iter(value);
    if (it.is_object) {
        if (index != NULL)
            shape_terms(c, value, index, path);
        while (json_next(&it)) {
            SpatialPlace inside = policy_spatial_name(place, it.name);
            if (policy_spatial_below(inside))
                walk_shapes(c, it.value, inside, term_path_name(c->key, path, it.name));
        }
    } else if (json_is(value, JSON_ARRAY) && policy_spatial_below(policy_spatial_element(place))) {
        TermPath element = term_path_element(c->key, path);
        ++c->arrays_open;
        while (json_next(&it))
            walk_shapes(c, it.value, policy_spatial_element(place), element);
        --c->arrays_open;
    }
}
