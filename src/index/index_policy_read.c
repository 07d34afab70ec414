/* index_policy_read.c - makes a policy from the normal form that the catalogue stores: see
 * index_policy.h.
 *
 * The catalogue has checked it, so what is wrong here is damage. Texts are copied, because the
 * policy lives longer than the document it was read from.
 */
#include "index/index_policy_int.h"

#include <stdlib.h>

static Status read_paths(Arena *arena, Json policy, IndexPolicy *out, RuleList *rules, Error *err);
static Status read_list(Arena *arena, Json list, Says says, IndexPolicy *out, RuleList *rules,
                        Error *err);
static Status read_composites(Arena *arena, Json list, IndexPolicy *out, Error *err);
static Status read_composite(Arena *arena, Json entry, IndexPolicy *out, Error *err);
static Status read_spatials(Arena *arena, Json list, IndexPolicy *out, Error *err);
static Status read_spatial(Arena *arena, Json entry, SpatialIndex *out, Error *err);
static Status read_path(Arena *arena, Json entry, unsigned allowed, IndexPath *out, Error *err);
static void add_tuple(Arena *arena, const IndexPath *path, IndexPolicy *out);
static void add_composite(Arena *arena, CompositePart *parts, size_t count, IndexPolicy *out);
static void sort_composites(Arena *arena, IndexPolicy *policy);
static void add_forced(Arena *arena, RuleList *rules, const Slice *names, size_t count);

static Status damaged(Error *err, const char *what)
{
    return error_set(err, STATUS_CORRUPT, SUB_NONE, "an indexing policy has %s", what);
}

/* The array called 'name'; undefined if there is something else. */
static Json list_of(Json object, Slice name)
{
    Json list = json_get(object, name);
    return json_is(list, JSON_ARRAY) ? list : JSON_NONE;
}

static size_t element_count(Json list)
{
    return json_is(list, JSON_ARRAY) ? json_count(list) : 0;
}

static bool text_is(Json value, Slice text)
{
    return json_is(value, JSON_STRING) && slice_equal_nocase(json_string(value), text);
}

Status index_policy_new(Arena *arena, Json policy, const PropertyPath *keys, size_t key_count,
                        IndexPolicy **out, Error *err)
{
    static const Slice ID = SLICE_INIT("id");
    static const Slice TS = SLICE_INIT("_ts");

    Json included = list_of(policy, SLICE("includedPaths"));
    Json composites = list_of(policy, SLICE("compositeIndexes"));
    Json automatic = json_get(policy, SLICE("automatic"));
    bool is_none = text_is(json_get(policy, SLICE("indexingMode")), SLICE("none"));

    IndexPolicy *made = ARENA_NEW(arena, IndexPolicy);
    made->is_automatic = is_none || !json_is(automatic, JSON_BOOL) || json_bool(automatic);
    size_t composites_max = element_count(included) + element_count(composites);
    made->composites = ARENA_NEW_ARRAY(arena, CompositeIndex, composites_max);
    made->composite_names = ARENA_NEW_ARRAY(arena, Slice, composites_max);

    /* With room for the root, "_etag", "id" and "_ts". */
    size_t rules_max = element_count(included) +
                       element_count(list_of(policy, SLICE("excludedPaths"))) + key_count + 4;
    RuleList rules = {.rules = ARENA_NEW_ARRAY(arena, Rule, rules_max)};
    if (is_none) {
        rules.rules[rules.count++] = (Rule){.is_subtree = true, .says = SAYS_EXCLUDED};
    } else {
        TRY(read_paths(arena, policy, made, &rules, err));
        TRY(read_composites(arena, composites, made, err));
        TRY(read_spatials(arena, list_of(policy, SLICE("spatialIndexes")), made, err));
    }
    add_forced(arena, &rules, &ID, 1);
    add_forced(arena, &rules, &TS, 1);
    for (size_t i = 0; i < key_count; ++i)
        add_forced(arena, &rules, keys[i].segments, keys[i].count);
    ASSERT(rules.count <= rules_max);
    ASSERT(made->composite_count <= composites_max);
    made->root = policy_build_tree(arena, &rules);
    sort_composites(arena, made);
    *out = made;
    return STATUS_OK;
}

static Status read_paths(Arena *arena, Json policy, IndexPolicy *out, RuleList *rules, Error *err)
{
    Json included = list_of(policy, SLICE("includedPaths"));
    Json excluded = list_of(policy, SLICE("excludedPaths"));
    TRY(read_list(arena, included, SAYS_INCLUDED, out, rules, err));
    TRY(read_list(arena, excluded, SAYS_EXCLUDED, out, rules, err));
    bool has_root = false;
    for (size_t i = 0; i < rules->count && !has_root; ++i)
        has_root = rules->rules[i].step_count == 0;
    if (has_root)
        return STATUS_OK;
    if (rules->count > 0 || out->composite_count > 0)
        return damaged(err, "paths, but the root is not among them");
    static const IndexStep ETAG = {.name = SLICE_INIT("_etag")};
    rules->rules[rules->count++] = (Rule){.is_subtree = true, .says = SAYS_INCLUDED};
    rules->rules[rules->count++] = (Rule){.steps = &ETAG, .step_count = 1, .says = SAYS_EXCLUDED};
    return STATUS_OK;
}

static Status read_list(Arena *arena, Json list, Says says, IndexPolicy *out, RuleList *rules,
                        Error *err)
{
    unsigned allowed = INDEX_PATH_SCALAR | INDEX_PATH_SUBTREE | INDEX_PATH_TUPLE;
    JsonIter it = json_iter(list);
    while (json_next(&it)) {
        IndexPath path;
        TRY(read_path(arena, it.value, allowed, &path, err));
        if (path.end == INDEX_PATH_TUPLE) {
            if (says == SAYS_EXCLUDED)
                return damaged(err, "an excluded tuple");
            add_tuple(arena, &path, out);
            continue;
        }
        rules->rules[rules->count++] = (Rule){.steps = path.steps,
                                              .step_count = path.step_count,
                                              .is_subtree = path.end == INDEX_PATH_SUBTREE,
                                              .says = says};
    }
    return STATUS_OK;
}

/* The text is copied, because names of steps may point into it. */
static Status read_path(Arena *arena, Json entry, unsigned allowed, IndexPath *out, Error *err)
{
    Json path = json_get(entry, SLICE("path"));
    if (!json_is(path, JSON_STRING))
        return damaged(err, "an entry without a path");
    Slice text = json_string(path);
    size_t position;
    if (text.len > PROPERTY_PATH_BYTES_MAX ||
        !index_path_parse(arena, arena_copy(arena, text), allowed, out, &position))
        return error_set(err, STATUS_CORRUPT, SUB_NONE,
                         "an indexing policy has '%.*s' where a path of another form is expected",
                         SLICE_CUT(text, 100));
    return STATUS_OK;
}

static Status read_composites(Arena *arena, Json list, IndexPolicy *out, Error *err)
{
    JsonIter it = json_iter(list);
    while (json_next(&it))
        TRY(read_composite(arena, it.value, out, err));
    return STATUS_OK;
}

static bool is_time(const IndexPath *path)
{
    return path->step_count == 1 && !path->steps[0].is_element &&
           slice_equal(path->steps[0].name, SLICE("_ts"));
}

static Status read_composite(Arena *arena, Json entry, IndexPolicy *out, Error *err)
{
    size_t count = element_count(entry);
    if (count == 0 || count > COMPOSITE_PARTS_MAX)
        return damaged(err, "a composite index with no paths or too many");
    CompositePart *parts = ARENA_NEW_ARRAY(arena, CompositePart, count);
    CompositePart *part = parts;
    JsonIter it = json_iter(entry);
    while (json_next(&it)) {
        IndexPath path;
        TRY(read_path(arena, it.value, INDEX_PATH_BARE, &path, err));
        Json order = json_get(it.value, SLICE("order"));
        *part++ = (CompositePart){.steps = path.steps,
                                  .step_count = path.step_count,
                                  .is_descending = text_is(order, SLICE("descending")),
                                  .is_time = is_time(&path),
                                  .text = path.canonical};
    }
    add_composite(arena, parts, count, out);
    return STATUS_OK;
}

static void add_tuple(Arena *arena, const IndexPath *path, IndexPolicy *out)
{
    CompositePart *parts = ARENA_NEW_ARRAY(arena, CompositePart, path->field_count);
    for (size_t i = 0; i < path->field_count; ++i) {
        const IndexField *field = &path->fields[i];
        parts[i] = (CompositePart){
            .steps = field->steps, .step_count = field->step_count, .text = field->canonical};
    }
    add_composite(arena, parts, path->field_count, out);
}

/* Steps up to and with the last "[]"; 0 if there is none. */
static size_t steps_to_last_array(const CompositePart *part)
{
    size_t count = part->step_count;
    while (count > 0 && !part->steps[count - 1].is_element)
        --count;
    return count;
}

static bool same_step(const IndexStep *a, const IndexStep *b)
{
    return a->is_element == b->is_element && slice_equal(a->name, b->name);
}

/* Finds the part that goes through the most arrays. False if another part has other arrays. */
static bool find_array(CompositeIndex *index)
{
    for (size_t i = 0; i < index->part_count; ++i) {
        size_t steps = steps_to_last_array(&index->parts[i]);
        if (steps > index->array_steps) {
            index->array_steps = steps;
            index->array_part = i;
        }
    }
    const IndexStep *way = index->parts[index->array_part].steps;
    for (size_t i = 0; i < index->part_count; ++i) {
        size_t steps = steps_to_last_array(&index->parts[i]);
        for (size_t k = 0; k < steps; ++k) {
            if (!same_step(&index->parts[i].steps[k], &way[k]))
                return false;
        }
    }
    return true;
}

static void add_composite(Arena *arena, CompositePart *parts, size_t count, IndexPolicy *out)
{
    CompositeIndex index = {.parts = parts, .part_count = count};
    if (!find_array(&index))
        return;
    AUTO(buf_done) Buf name;
    buf_init(&name, COMPOSITE_PARTS_MAX * (PROPERTY_PATH_CANONICAL_BYTES_MAX + 16));
    for (size_t i = 0; i < count; ++i) {
        buf_slice(&name, i == 0 ? SLICE_EMPTY : SLICE(", "));
        buf_slice(&name, parts[i].text);
        buf_slice(&name, parts[i].is_descending ? SLICE(" DESC") : SLICE(" ASC"));
    }
    out->composites[out->composite_count] = index;
    out->composite_names[out->composite_count++] = arena_copy(arena, buf_view(&name));
}

typedef struct NamedComposite {
    Slice name;
    CompositeIndex index;
} NamedComposite;

static int compare_composites(const void *a, const void *b)
{
    return slice_compare(((const NamedComposite *)a)->name, ((const NamedComposite *)b)->name);
}

/* Also removes repetitions: a tuple and a composite index may mean the same. */
static void sort_composites(Arena *arena, IndexPolicy *policy)
{
    size_t count = policy->composite_count;
    NamedComposite *sorted = ARENA_NEW_ARRAY(arena, NamedComposite, count);
    for (size_t i = 0; i < count; ++i)
        sorted[i] = (NamedComposite){policy->composite_names[i], policy->composites[i]};
    qsort(sorted, count, sizeof(NamedComposite), compare_composites);
    policy->composite_count = 0;
    for (size_t i = 0; i < count; ++i) {
        if (i > 0 && slice_equal(sorted[i - 1].name, sorted[i].name))
            continue;
        policy->composite_names[policy->composite_count] = sorted[i].name;
        policy->composites[policy->composite_count++] = sorted[i].index;
    }
}

static Status read_spatials(Arena *arena, Json list, IndexPolicy *out, Error *err)
{
    size_t count = element_count(list);
    out->spatials = ARENA_NEW_ARRAY(arena, SpatialIndex, count);
    RuleList rules = {.rules = ARENA_NEW_ARRAY(arena, Rule, count)};
    JsonIter it = json_iter(list);
    while (json_next(&it)) {
        SpatialIndex *index = &out->spatials[out->spatial_count++];
        TRY(read_spatial(arena, it.value, index, err));
        rules.rules[rules.count++] = (Rule){.steps = index->steps,
                                            .step_count = index->step_count,
                                            .is_subtree = index->is_subtree,
                                            .spatial = index};
    }
    if (rules.count > 0)
        out->spatial_root = policy_build_tree(arena, &rules);
    return STATUS_OK;
}

static unsigned read_types(Json list)
{
    static const Slice NAMES[] = {SLICE_INIT("Point"), SLICE_INIT("LineString"),
                                  SLICE_INIT("Polygon"), SLICE_INIT("MultiPolygon")};
    unsigned types = 0;
    JsonIter it = json_iter(list);
    while (json_next(&it)) {
        for (unsigned i = 0; i < ARRAY_COUNT(NAMES); ++i)
            types |= text_is(it.value, NAMES[i]) ? 1u << i : 0;
    }
    return types;
}

static Status read_spatial(Arena *arena, Json entry, SpatialIndex *out, Error *err)
{
    IndexPath path;
    TRY(read_path(arena, entry, INDEX_PATH_SCALAR | INDEX_PATH_SUBTREE, &path, err));
    *out = (SpatialIndex){.steps = path.steps,
                          .step_count = path.step_count,
                          .is_subtree = path.end == INDEX_PATH_SUBTREE,
                          .types = read_types(json_get(entry, SLICE("types")))};
    Json box = json_get(entry, SLICE("boundingBox"));
    if (!json_is(box, JSON_OBJECT))
        return STATUS_OK;
    static const Slice SIDES[] = {SLICE_INIT("xmin"), SLICE_INIT("ymin"), SLICE_INIT("xmax"),
                                  SLICE_INIT("ymax")};
    double sides[ARRAY_COUNT(SIDES)];
    for (size_t i = 0; i < ARRAY_COUNT(SIDES); ++i) {
        Json side = json_get(box, SIDES[i]);
        if (!json_is(side, JSON_NUMBER))
            return damaged(err, "a bounding box without its sides");
        sides[i] = json_number(side);
    }
    if (!(sides[0] < sides[2] && sides[1] < sides[3]))
        return damaged(err, "a bounding box that is empty");
    out->frame = (SpatialFrame){.is_plane = true, .box = {sides[0], sides[1], sides[2], sides[3]}};
    return STATUS_OK;
}

/* Adds a path that is always indexed. Called last, so that its rule counts. */
static void add_forced(Arena *arena, RuleList *rules, const Slice *names, size_t count)
{
    IndexStep *steps = ARENA_NEW_ARRAY(arena, IndexStep, count);
    for (size_t i = 0; i < count; ++i)
        steps[i].name = arena_copy(arena, names[i]);
    rules->rules[rules->count++] = (Rule){.steps = steps, .step_count = count, .says = SAYS_ALWAYS};
}
