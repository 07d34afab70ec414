/* index_policy_test.c - what is indexed: documented policies, rules one by one, and a slow model.
 */
#include "index/index_policy.h"

#include "index/terms_testing_int.h"

#define INCLUDED(paths) "'includedPaths':[" paths "]"
#define EXCLUDED(paths) "'excludedPaths':[" paths "]"
#define P(path)         "{'path':'" path "'}"
#define ALL_BUT(paths)  "{'indexingMode':'consistent'," INCLUDED(P("/*")) "," EXCLUDED(paths) "}"
#define ONLY(paths)     "{'indexingMode':'consistent'," INCLUDED(paths) "," EXCLUDED(P("/*")) "}"

typedef struct RuleRow {
    const char *policy;
    const char *yes[9]; /* paths that are indexed */
    const char *no[9];
} RuleRow;

/* The policy has all paths of 'yes' and none of 'no'. */
static void expect_indexed(const RuleRow *rows, size_t count)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < count; ++i) {
        IndexPolicy *policy = policy_of(&arena, rows[i].policy, NULL);
        for (const char *const *text = rows[i].yes; *text != NULL; ++text) {
            IndexPath path = path_of(&arena, *text);
            if (!index_policy_has(policy, path.steps, path.step_count))
                fail_msg("%s does not index %s", rows[i].policy, *text);
        }
        for (const char *const *text = rows[i].no; *text != NULL; ++text) {
            IndexPath path = path_of(&arena, *text);
            if (index_policy_has(policy, path.steps, path.step_count))
                fail_msg("%s indexes %s", rows[i].policy, *text);
        }
    }
}

static void the_more_precise_rule_decides(void **state)
{
    (void)state;
    static const RuleRow ROWS[] = {
        /* The default, with and without its text. */
        {NULL, {"/a", "/a/b", "/a/[]", "/a/[]/b", "/id", "/_ts", "/_etag/x"}, {"/_etag"}},
        {"{'indexingMode':'consistent','automatic':true}", {"/a/b", "/id"}, {"/_etag"}},
        {ALL_BUT(P("/\\\"_etag\\\"/?")), {"/a", "/a/[]/[]/b", "/_ts"}, {"/_etag"}},
        {"{'indexingMode':'lazy'," INCLUDED(P("/*")) "}", {"/a"}, {NULL}},
        {"{'indexingMode':'Consistent'," INCLUDED(P("/")) "}", {"/a"}, {NULL}},

        /* The documentation's examples. */
        {ALL_BUT(P("/food/ingredients/*")),
         {"/food", "/food/other", "/food/other/ingredients", "/ingredients"},
         {"/food/ingredients", "/food/ingredients/nutrition", "/food/ingredients/[]/a"}},
        {"{" INCLUDED(P("/*") "," P("/food/ingredients/nutrition/*")) "," EXCLUDED(
             P("/food/ingredients/*")) "}",
         {"/food", "/food/ingredients/nutrition", "/food/ingredients/nutrition/vitamins/[]", "/x"},
         {"/food/ingredients", "/food/ingredients/a", "/food/ingredients/a/nutrition",
          "/food/ingredients/[]"}},
        {ONLY(P("/nonPartition/?") "," P("/locations/[]/country/?") "," P("/headquarters/*")),
         {"/nonPartition", "/locations/[]/country", "/headquarters", "/headquarters/a/[]/b"},
         {"/locations", "/locations/[]", "/locations/country", "/locations/[]/country/x", "/other",
          "/nonPartition/x", "/nonPartition/[]"}},
        {ONLY(P("/path/to/included/property/?") "," P(
             "/path/to/root/of/multiple/included/properties/*")),
         {"/path/to/included/property", "/path/to/root/of/multiple/included/properties",
          "/path/to/root/of/multiple/included/properties/p/q"},
         {"/path", "/path/to/included", "/path/to/root/of/multiple",
          "/path/to/included/property/x"}},
        {ALL_BUT(P("/path/to/single/excluded/property/?") "," P(
             "/path/to/root/of/multiple/excluded/properties/*")),
         {"/path", "/path/to/single/excluded", "/path/to/single/excluded/property/below"},
         {"/path/to/single/excluded/property", "/path/to/root/of/multiple/excluded/properties",
          "/path/to/root/of/multiple/excluded/properties/p"}},

        /* Equal depth: the value before the star. */
        {"{" INCLUDED(P("/*") "," P("/a/?")) "," EXCLUDED(P("/a/*")) "}",
         {"/a", "/b"},
         {"/a/b", "/a/[]"}},
        {"{" INCLUDED(P("/a/*")) "," EXCLUDED(P("/*") "," P("/a/?")) "}",
         {"/a/b", "/a/[]", "/a/b/c"},
         {"/a", "/b"}},

        /* Deeper and deeper. */
        {"{" INCLUDED(P("/*") "," P("/a/b/*") "," P("/a/b/c/d/?")) "," EXCLUDED(
             P("/a/*") "," P("/a/b/c/*")) "}",
         {"/x", "/a/b", "/a/b/x", "/a/b/c/d"},
         {"/a", "/a/x", "/a/b/c", "/a/b/c/x", "/a/b/c/d/e"}},
    };
    expect_indexed(ROWS, ARRAY_COUNT(ROWS));
}

static void rules_are_compared_step_by_step(void **state)
{
    (void)state;
    static const RuleRow ROWS[] = {
        /* Names and elements are different steps. */
        {ONLY(P("/a/[]/?")), {"/a/[]"}, {"/a", "/a/b", "/a/[]/[]", "/a/[]/b"}},
        {ONLY(P("/a/[]/[]/b/?")), {"/a/[]/[]/b"}, {"/a/[]/b", "/a/[]/[]"}},
        {ALL_BUT(P("/a/[]/*")), {"/a", "/a/b", "/a/b/[]"}, {"/a/[]", "/a/[]/b", "/a/[]/[]"}},
        {ALL_BUT(P("/a/b/*")), {"/a/[]/b", "/a/[]"}, {"/a/b", "/a/b/[]"}},
        {ONLY(P("/a/\\\"[]\\\"/?")), {"/a/\"[]\""}, {"/a/[]"}},

        /* Names are compared byte by byte. */
        {ONLY(P("/A/?") "," P("/\\\"a b\\\"/?") "," P("/aa/?")),
         {"/A", "/\"a b\"", "/aa"},
         {"/a", "/ab", "/aaa", "/AA"}},

        /* What is always indexed, and nothing besides. */
        {ONLY(P("/x/?")), {"/id", "/_ts", "/x"}, {"/id/a", "/_ts/[]", "/_etag"}},
        {ALL_BUT(P("/id/?") "," P("/_ts/*")), {"/id", "/_ts", "/a"}, {"/_ts/a"}},
        {"{'indexingMode':'none','automatic':false," INCLUDED("") "," EXCLUDED("") "}",
         {"/id", "/_ts"},
         {"/a", "/a/b", "/a/[]", "/_etag"}},
        {"{'indexingMode':'none'," INCLUDED(P("/*")) "}", {"/id", "/_ts"}, {"/a", "/x/y"}},

        /* A tuple is no rule about its fields. */
        {ONLY(P("/e/[]/{name, category}/?")), {"/id"}, {"/e", "/e/[]", "/e/[]/name"}},
    };
    expect_indexed(ROWS, ARRAY_COUNT(ROWS));
}

static void partition_keys_are_indexed_whatever_the_policy_says(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *key;
        const char *path;
        bool expected;
    } ROWS[] = {
        {ONLY(P("/x/?")), "/pk", "/pk", true},
        {ONLY(P("/x/?")), "/pk", "/pk/a", false},
        {ONLY(P("/x/?")), "/a/b", "/a/b", true},
        {ONLY(P("/x/?")), "/a/b", "/a", false},
        {ALL_BUT(P("/pk/?")), "/pk", "/pk", true},
        {ALL_BUT(P("/pk/*")), "/pk", "/pk", true},
        {ALL_BUT(P("/pk/*")), "/pk", "/pk/x", false},
        {ALL_BUT(P("/a/*")), "/a/\"b c\"", "/a/\"b c\"", true},
        {"{'indexingMode':'none'}", "/pk", "/pk", true},
        {"{'indexingMode':'none'}", NULL, "/pk", false},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        IndexPolicy *policy = policy_of(&arena, ROWS[i].policy, ROWS[i].key);
        IndexPath path = path_of(&arena, ROWS[i].path);
        print_message("%s %s %s\n", ROWS[i].policy, ROWS[i].key, ROWS[i].path);
        assert_int_equal(index_policy_has(policy, path.steps, path.step_count), ROWS[i].expected);
    }
}

static void a_walk_turns_back_where_nothing_is_indexed_below(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        const char *path;
        bool below;
    } ROWS[] = {
        {NULL, "/", true},
        {NULL, "/_etag", true}, /* of "/_etag/?" only the value is excluded */
        {ALL_BUT(P("/a/*")), "/a", false},
        {ALL_BUT(P("/a/*")), "/a/b", false},
        {ALL_BUT(P("/a/*")), "/", true},
        {ALL_BUT(P("/a/?")), "/a", true},
        {ONLY(P("/a/b/c/?")), "/", true},
        {ONLY(P("/a/b/c/?")), "/a/b", true},
        {ONLY(P("/a/b/c/?")), "/a/b/c", true},
        {ONLY(P("/a/b/c/?")), "/a/b/c/d", false},
        {ONLY(P("/a/b/c/?")), "/a/c", false},
        {ONLY(P("/a/b/c/?")), "/a/[]", false},
        {ONLY(P("/a/[]/c/*")), "/a", true},
        {ONLY(P("/a/[]/c/*")), "/a/[]", true},
        {ONLY(P("/a/[]/c/*")), "/a/b", false},
        {"{" INCLUDED(P("/*") "," P("/a/b/c/?")) "," EXCLUDED(P("/a/*")) "}", "/a/b", true},
        {"{'indexingMode':'none'}", "/", true},
        {"{'indexingMode':'none'}", "/a", false},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        IndexPolicy *policy = policy_of(&arena, ROWS[i].policy, NULL);
        IndexPath path = path_of(&arena, ROWS[i].path);
        PolicyPlace place = policy_root(policy);
        for (size_t k = 0; k < path.step_count; ++k)
            place = path.steps[k].is_element ? policy_element(place)
                                             : policy_name(place, path.steps[k].name);
        print_message("%s %s\n", ROWS[i].policy, ROWS[i].path);
        assert_int_equal(policy_indexes_below(place), ROWS[i].below);
    }
}

static void policies_are_equal_if_they_say_the_same_of_every_path(void **state)
{
    (void)state;
#define SPATIAL(path, more) \
    "{" INCLUDED(P("/*")) ",'spatialIndexes':[{'path':'" path "','types':['Point']" more "}]}"
#define BOX(side)        ",'boundingBox':{'xmin':0,'ymin':0,'xmax':" side ",'ymax':1}"
#define COMPOSITE(parts) "{" INCLUDED(P("/*")) ",'compositeIndexes':[" parts "]}"
#define AB               "[{'path':'/a'},{'path':'/b','order':'descending'}]"
#define CD               "[{'path':'/c'},{'path':'/d'}]"
    static const struct {
        const char *a;
        const char *b;
        bool equal;
    } ROWS[] = {
        {NULL, NULL, true},
        {NULL, ALL_BUT(P("/_etag/?")), true},
        {NULL, ALL_BUT(""), false},
        {ALL_BUT(""), "{'automatic':false," INCLUDED(P("/*")) "}", true},
        {ALL_BUT(""), ONLY(""), false},
        {ALL_BUT(P("/a/?") "," P("/b/?")), ALL_BUT(P("/b/?") "," P("/a/?")), true},
        {ALL_BUT(P("/a/?")), ALL_BUT(P("/a/*")), false},
        {ALL_BUT(P("/a/?")), ALL_BUT(P("/\\\"a\\\"/?")), true},
        {ALL_BUT(P("/id/?")), ALL_BUT(""), true},
        {ALL_BUT(P("/pk/?")), ALL_BUT(""), true},
        {ALL_BUT(P("/a/*")), ALL_BUT(P("/a/*") "," P("/a/b/*") "," P("/a/[]/?")), true},
        {ALL_BUT(P("/a/*") "," P("/a/b/*")), ALL_BUT(P("/a/*")), true},
        {ALL_BUT(P("/a/[]/?")), ALL_BUT(P("/a/b/?")), false},
        {ALL_BUT(P("/a/[]/?")), ALL_BUT(""), false},
        {"{'indexingMode':'none'}", ONLY(""), true},
        {ONLY(P("/a/?")), ONLY(P("/a/?") "," P("/pk/?")), true},
        {COMPOSITE(AB), COMPOSITE(AB), true},
        {COMPOSITE(AB "," CD), COMPOSITE(CD "," AB), true},
        {COMPOSITE(AB), COMPOSITE(AB "," CD), false},
        {COMPOSITE(AB), COMPOSITE("[{'path':'/a'},{'path':'/b'}]"), false},
        {COMPOSITE(AB), COMPOSITE("[{'path':'/b','order':'descending'},{'path':'/a'}]"), false},
        {COMPOSITE(AB), ALL_BUT(""), false},
        {COMPOSITE("[{'path':'/e/[]/a'},{'path':'/e/[]/b'}]"),
         "{" INCLUDED(P("/*") "," P("/e/[]/{a, b}/?")) "}", true},
        {SPATIAL("/a/?", ""), SPATIAL("/a/?", ""), true},
        {SPATIAL("/a/?", ""), SPATIAL("/a/*", ""), false},
        {SPATIAL("/a/?", ""), SPATIAL("/b/?", ""), false},
        {SPATIAL("/a/?", ""), ALL_BUT(""), false},
        {SPATIAL("/a/?", BOX("1")), SPATIAL("/a/?", BOX("1")), true},
        {SPATIAL("/a/?", BOX("1")), SPATIAL("/a/?", BOX("2")), false},
        {SPATIAL("/a/?", BOX("1")), SPATIAL("/a/?", ""), false},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        IndexPolicy *a = policy_of(&arena, ROWS[i].a, "/pk");
        IndexPolicy *b = policy_of(&arena, ROWS[i].b, "/pk");
        print_message("%s and %s\n", ROWS[i].a, ROWS[i].b);
        assert_int_equal(index_policy_equal(a, b), ROWS[i].equal);
        assert_int_equal(index_policy_equal(b, a), ROWS[i].equal);
    }
}

static void automatic_is_told(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    assert_true(index_policy_is_automatic(policy_of(&arena, NULL, NULL)));
    assert_true(index_policy_is_automatic(policy_of(&arena, "{'automatic':true}", NULL)));
    assert_false(index_policy_is_automatic(policy_of(&arena, "{'automatic':false}", NULL)));
    assert_true(index_policy_is_automatic(
        policy_of(&arena, "{'indexingMode':'none','automatic':false}", NULL)));
}

static void composite_indexes_are_listed_with_the_arrays_on_their_way(void **state)
{
    (void)state;
    static const struct {
        const char *parts;
        const char *text; /* of the parts; NULL if the index is left out */
        size_t array_part;
        size_t array_steps;
    } ROWS[] = {
        {"[{'path':'/a','order':'ascending'},{'path':'/b/c','order':'descending'}]", "+/a -/b/c ",
         0, 0},
        {"[{'path':'/\\\"a\\\"'},{'path':'/\\\"b c\\\"'}]", "+/a +/\"b c\" ", 0, 0},
        {"[{'path':'/a'},{'path':'/b/[]/c'}]", "+/a +/b/[]/c ", 1, 2},
        {"[{'path':'/b/[]/c/[]/d'},{'path':'/b/[]/e'},{'path':'/b/[]/c/[]'}]",
         "+/b/[]/c/[]/d +/b/[]/e +/b/[]/c/[] ", 0, 4},
        {"[{'path':'/a/[]/c'},{'path':'/b/[]/c'}]", NULL, 0, 0},
        {"[{'path':'/a/[]/c'},{'path':'/a/[]/[]/c'}]", "+/a/[]/c +/a/[]/[]/c ", 1, 3},
        {"[{'path':'/a/[]/c/[]'},{'path':'/a/[]/d/[]'}]", NULL, 0, 0},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        Slice text =
            arena_format(&arena, "{" INCLUDED(P("/*")) ",'compositeIndexes':[%s]}", ROWS[i].parts);
        IndexPolicy *policy = policy_of(&arena, arena_cstr(&arena, text), NULL);
        size_t count;
        const CompositeIndex *index = index_policy_composites(policy, &count);
        print_message("%s\n", ROWS[i].parts);
        assert_int_equal(count, ROWS[i].text == NULL ? 0 : 1);
        if (count == 0)
            continue;
        AUTO(buf_done) Buf found;
        buf_init(&found, 4096);
        for (size_t k = 0; k < index->part_count; ++k)
            buf_format(&found, "%c%.*s ", index->parts[k].is_descending ? '-' : '+',
                       SLICE_ARG(index->parts[k].text));
        assert_true(slice_equal(buf_view(&found), slice_from_cstr(ROWS[i].text)));
        assert_int_equal(index->array_part, ROWS[i].array_part);
        assert_int_equal(index->array_steps, ROWS[i].array_steps);
    }
}

static void tuples_are_composite_indexes_of_one_array(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    IndexPolicy *policy =
        policy_of(&arena, "{" INCLUDED(P("/*") "," P("/e/f/[]/{name, b/c}/?")) "}", NULL);
    size_t count;
    const CompositeIndex *index = index_policy_composites(policy, &count);
    assert_int_equal(count, 1);
    assert_int_equal(index->part_count, 2);
    assert_int_equal(index->array_steps, 3);
    assert_true(slice_equal(index->parts[0].text, SLICE("/e/f/[]/name")));
    assert_true(slice_equal(index->parts[1].text, SLICE("/e/f/[]/b/c")));
    assert_int_equal(index->parts[1].step_count, 5);
    assert_true(slice_equal(index->parts[1].steps[4].name, SLICE("c")));
}

static void shapes_belong_to_the_most_precise_spatial_index(void **state)
{
    (void)state;
    static const char POLICY[] =
        "{" INCLUDED(P("/*")) ",'spatialIndexes':["
                              "{'path':'/*','types':['Point']},"
                              "{'path':'/a/*','types':['Point','Polygon']},"
                              "{'path':'/a/b/?','types':['LineString','MultiPolygon','point']},"
                              "{'path':'/a/[]/?','types':['MultiPolygon'],"
                              "'boundingBox':{'xmin':-1,'ymin':-2,'xmax':3,'ymax':4.5}}]}";
    static const struct {
        const char *path;
        unsigned types;
    } ROWS[] = {
        {"/x", SPATIAL_POINT},
        {"/x/[]/y", SPATIAL_POINT},
        {"/a", SPATIAL_POINT | SPATIAL_POLYGON},
        {"/a/c/[]", SPATIAL_POINT | SPATIAL_POLYGON},
        {"/a/b", SPATIAL_POINT | SPATIAL_LINE | SPATIAL_MULTIPOLYGON},
        {"/a/b/c", SPATIAL_POINT | SPATIAL_POLYGON},
        {"/a/[]", SPATIAL_MULTIPOLYGON},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    IndexPolicy *policy = policy_of(&arena, POLICY, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        IndexPath path = path_of(&arena, ROWS[i].path);
        const SpatialIndex *index = index_policy_spatial(policy, path.steps, path.step_count);
        print_message("%s\n", ROWS[i].path);
        assert_non_null(index);
        assert_int_equal(index->types, ROWS[i].types);
    }
    size_t count;
    const SpatialIndex *indexes = index_policy_spatials(policy, &count);
    assert_int_equal(count, 4);
    assert_false(indexes[0].frame.is_plane);
    assert_true(indexes[3].frame.is_plane);
    assert_true(indexes[3].frame.box.south == -2);
    assert_true(indexes[3].frame.box.north == 4.5);
    IndexPath path = path_of(&arena, "/a/b");
    assert_null(index_policy_spatial(policy_of(&arena, NULL, NULL), path.steps, 2));
    assert_null(
        index_policy_spatial(policy_of(&arena, "{'indexingMode':'none'}", NULL), path.steps, 2));
}

static void damaged_policies_are_refused(void **state)
{
    (void)state;
    static const char *const ROWS[] = {
        "{" INCLUDED("1") "}",
        "{" INCLUDED("{'path':1}") "}",
        "{" INCLUDED(P("/*") ",{}") "}",
        "{" INCLUDED(P("/*") "," P("/a")) "}",
        "{" INCLUDED(P("/a/?")) "}",
        "{" EXCLUDED(P("/a/?")) "}",
        "{" INCLUDED(P("/*")) "," EXCLUDED(P("/e/[]/{a}/?")) "}",
        COMPOSITE("1"),
        COMPOSITE("[]"),
        COMPOSITE("[{'path':'/a/?'}]"),
        COMPOSITE("[{'path':'/a'},{'path':'/b'},{'path':'/c'},{'path':'/d'},{'path':'/e'},"
                  "{'path':'/f'},{'path':'/g'},{'path':'/h'},{'path':'/i'}]"),
        SPATIAL("/a", ""),
        SPATIAL("/a/?", BOX("0")),
        SPATIAL("/a/?", BOX("'1'")),
        SPATIAL("/a/?", ",'boundingBox':{}"),
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        IndexPolicy *policy = NULL;
        Error err;
        Status status = index_policy_new(&arena, row_json(&arena, ROWS[i]), NULL, 0, &policy, &err);
        print_message("%s\n", ROWS[i]);
        assert_int_equal(status, STATUS_CORRUPT);
        assert_null(policy);
    }
    /* Lists that are none are as good as absent, and so nothing is written beyond what was counted.
     */
    IndexPolicy *policy = policy_of(&arena,
                                    "{'includedPaths':{'a':{'path':'/*'},'b':1},"
                                    "'excludedPaths':{'a':1,'b':2,'c':3,'d':4,'e':5},"
                                    "'compositeIndexes':{'a':1},'spatialIndexes':{'a':1}}",
                                    NULL);
    assert_true(index_policy_equal(policy, policy_of(&arena, NULL, NULL)));
}

/* ---- against a model ---- */

enum { MODEL_RULES_MAX = 64, MODEL_DEPTH = 4, MODEL_WIDE = 300 };

typedef struct ModelRule {
    IndexStep steps[MODEL_DEPTH];
    size_t count;
    bool is_subtree;
    bool is_included;
} ModelRule;

static bool same_steps(const IndexStep *a, const IndexStep *b, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (a[i].is_element != b[i].is_element || !slice_equal(a[i].name, b[i].name))
            return false;
    }
    return true;
}

/* Every rule is tried, and the one with the largest precision kept. */
static bool model_has(const ModelRule *rules, size_t rule_count, const IndexStep *steps,
                      size_t count)
{
    if (count == 1 && !steps[0].is_element &&
        (slice_equal(steps[0].name, SLICE("id")) || slice_equal(steps[0].name, SLICE("_ts"))))
        return true;
    size_t best = 0;
    bool included = false;
    for (size_t i = 0; i < rule_count; ++i) {
        const ModelRule *rule = &rules[i];
        bool applies = rule->is_subtree ? rule->count <= count : rule->count == count;
        size_t precision = 2 * rule->count + (rule->is_subtree ? 0 : 1) + 1;
        if (applies && same_steps(rule->steps, steps, rule->count) && precision > best) {
            best = precision;
            included = rule->is_included;
        }
    }
    return included;
}

static IndexStep random_step(Random *random, bool is_first)
{
    static const Slice NAMES[] = {SLICE_INIT("a"), SLICE_INIT("b"), SLICE_INIT("id"),
                                  SLICE_INIT("_ts")};
    if (!is_first && random_below(random, 4) == 0)
        return (IndexStep){.is_element = true};
    return (IndexStep){.name = NAMES[random_below(random, is_first ? 4 : 2)]};
}

static size_t random_rules(Random *random, ModelRule *rules)
{
    size_t count = 1 + random_below(random, random_below(random, 4) == 0 ? 40 : 6);
    rules[0] = (ModelRule){.is_subtree = true, .is_included = random_below(random, 2) == 1};
    for (size_t i = 1; i < count; ++i) {
        ModelRule rule = {.count = 1 + random_below(random, MODEL_DEPTH),
                          .is_subtree = random_below(random, 2) == 1,
                          .is_included = random_below(random, 2) == 1};
        for (size_t k = 0; k < rule.count; ++k)
            rule.steps[k] = random_step(random, k == 0);
        bool is_new = true;
        for (size_t k = 1; k < i && is_new; ++k)
            is_new = rules[k].count != rule.count || rules[k].is_subtree != rule.is_subtree ||
                     !same_steps(rules[k].steps, rule.steps, rule.count);
        rules[i] = is_new ? rule : rules[0];
    }
    return count;
}

static Json rules_to_json(Arena *arena, const ModelRule *rules, size_t count)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (int included = 0; included <= 1; ++included) {
        json_key(&b, included ? SLICE("includedPaths") : SLICE("excludedPaths"));
        json_begin_array(&b);
        for (size_t i = 0; i < count; ++i) {
            if (rules[i].is_included != (included == 1))
                continue;
            Buf text;
            buf_init(&text, 1024);
            for (size_t k = 0; k < rules[i].count; ++k)
                buf_format(
                    &text, "/%.*s",
                    SLICE_ARG(rules[i].steps[k].is_element ? SLICE("[]") : rules[i].steps[k].name));
            buf_slice(&text, rules[i].is_subtree ? SLICE("/*") : SLICE("/?"));
            json_begin_object(&b);
            json_key(&b, SLICE("path"));
            json_add_string(&b, buf_view(&text));
            json_end(&b);
            buf_done(&text);
        }
        json_end(&b);
    }
    json_end(&b);
    return json_built(&b);
}

static void random_policies_agree_with_trying_every_rule(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 20261115);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (int round = 0; round < 2000; ++round) {
        arena_reset(&arena);
        ModelRule rules[MODEL_RULES_MAX];
        size_t count = random_rules(&random, rules);
        IndexPolicy *policy;
        Error err;
        assert_int_equal(
            index_policy_new(&arena, rules_to_json(&arena, rules, count), NULL, 0, &policy, &err),
            STATUS_OK);
        for (int k = 0; k < 50; ++k) {
            IndexStep steps[MODEL_DEPTH + 2];
            size_t depth = 1 + random_below(&random, ARRAY_COUNT(steps));
            for (size_t i = 0; i < depth; ++i)
                steps[i] = random_step(&random, i == 0);
            assert_int_equal(index_policy_has(policy, steps, depth),
                             model_has(rules, count, steps, depth));
        }
    }
}

static void a_node_with_many_names_finds_each(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    static ModelRule rules[MODEL_WIDE + 1];
    rules[0] = (ModelRule){.is_subtree = true, .is_included = false};
    for (size_t i = 1; i <= MODEL_WIDE; ++i)
        rules[i] = (ModelRule){.steps = {{.name = arena_format(&arena, "n%zu", i * 7)}},
                               .count = 1,
                               .is_included = true};
    IndexPolicy *policy;
    Error err;
    assert_int_equal(index_policy_new(&arena, rules_to_json(&arena, rules, MODEL_WIDE + 1), NULL, 0,
                                      &policy, &err),
                     STATUS_OK);
    for (size_t i = 0; i <= MODEL_WIDE * 7 + 10; ++i) {
        IndexStep step = {.name = arena_format(&arena, "n%zu", i)};
        assert_int_equal(index_policy_has(policy, &step, 1),
                         i > 0 && i % 7 == 0 && i <= MODEL_WIDE * 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_more_precise_rule_decides),
        cmocka_unit_test(rules_are_compared_step_by_step),
        cmocka_unit_test(partition_keys_are_indexed_whatever_the_policy_says),
        cmocka_unit_test(a_walk_turns_back_where_nothing_is_indexed_below),
        cmocka_unit_test(policies_are_equal_if_they_say_the_same_of_every_path),
        cmocka_unit_test(automatic_is_told),
        cmocka_unit_test(composite_indexes_are_listed_with_the_arrays_on_their_way),
        cmocka_unit_test(tuples_are_composite_indexes_of_one_array),
        cmocka_unit_test(shapes_belong_to_the_most_precise_spatial_index),
        cmocka_unit_test(damaged_policies_are_refused),
        cmocka_unit_test(random_policies_agree_with_trying_every_rule),
        cmocka_unit_test(a_node_with_many_names_finds_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
