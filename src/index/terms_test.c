/* terms_test.c - the terms of documents, by rows and against a slow model of policies. */
#include "index/terms.h"

#include "index/terms_int.h"
#include "index/terms_testing_int.h"

#include <stdlib.h>

#define KEY  TESTING_KEY
#define TIME "1700000000"
static const TermSystem SYSTEM = {.ts_s = 1700000000};
#define ALL  "{'includedPaths':[{'path':'/*'}]}"
#define ONLY "{'excludedPaths':[{'path':'/*'}],'includedPaths':"

static TermPath hash_steps(const IndexStep *steps, size_t count)
{
    TermPath path = term_path_root(KEY);
    for (size_t i = 0; i < count; ++i)
        path = steps[i].is_element ? term_path_element(KEY, path)
                                   : term_path_name(KEY, path, steps[i].name);
    return path;
}

static TermPath hash_text(Arena *arena, const char *text)
{
    IndexPath path = path_of(arena, text);
    return hash_steps(path.steps, path.step_count);
}

static Slice value_of(Arena *arena, Json value)
{
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, TERM_VALUE_BYTES_MAX);
    bool exact = true;
    term_put_json(&bytes, value, &exact);
    return arena_copy(arena, buf_view(&bytes));
}

/* ---- one document ---- */

typedef struct TermRow {
    const char *policy;
    const char *document;
    size_t count; /* besides those of the root and of _ts: two each */
    struct {
        const char *path;
        const char *value; /* NULL for the term that says that the path is there */
    } terms[12];
} TermRow;

/* A document has all these terms, as many as 'count' says, in order. */
static void expect_terms(const TermRow *rows, size_t count)
{
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < count; ++i) {
        TermList list;
        terms_of(&arena, policy_of(&arena, rows[i].policy, NULL), KEY,
                 row_json(&arena, rows[i].document), &SYSTEM, &list);
        print_message("%s: %zu\n", rows[i].document, list.count);
        assert_int_equal(list.count, rows[i].count + 4);
        for (size_t k = 0; k < ARRAY_COUNT(rows[i].terms) && rows[i].terms[k].path != NULL; ++k) {
            const char *text = rows[i].terms[k].value;
            Slice value =
                text == NULL ? slice_make("\0", 1) : value_of(&arena, row_json(&arena, text));
            print_message("  %s %s\n", rows[i].terms[k].path, text == NULL ? "is there" : text);
            assert_true(has_term(&list, hash_text(&arena, rows[i].terms[k].path), value));
        }
        for (size_t k = 1; k < list.count; ++k)
            assert_true(compare_terms(&list.terms[k - 1], &list.terms[k]) < 0);
    }
}

static void every_indexed_path_gives_that_it_is_there_and_its_value(void **state)
{
    (void)state;
    static const TermRow ROWS[] = {
        {ALL, "{}", 0, {{"/", NULL}, {"/", "{}"}, {"/_ts", NULL}, {"/_ts", "1700000000"}}},
        {ALL,
         "{'id':'x','n':1.5,'t':true,'f':false,'z':null}",
         10,
         {{"/id", "'x'"},
          {"/id", NULL},
          {"/n", "1.5"},
          {"/t", "true"},
          {"/f", "false"},
          {"/z", "null"},
          {"/z", NULL}}},
        {ALL,
         "{'a':{'b':{'c':1}}}",
         6,
         {{"/a", NULL}, {"/a", "{}"}, {"/a/b", "{}"}, {"/a/b/c", "1"}, {"/a/b/c", NULL}}},
        {ALL,
         "{'tags':['x','y','x',3]}",
         6,
         {{"/tags", NULL},
          {"/tags", "[]"},
          {"/tags/[]", NULL},
          {"/tags/[]", "'x'"},
          {"/tags/[]", "'y'"},
          {"/tags/[]", "3"}}},
        {ALL, "{'a':[]}", 2, {{"/a", "[]"}, {"/a", NULL}}},
        {ALL,
         "{'a':[[1],[1,{'b':2}]]}",
         9,
         {{"/a/[]", "[]"}, {"/a/[]/[]", "1"}, {"/a/[]/[]", "{}"}, {"/a/[]/[]/b", "2"}}},
        {ALL,
         "{'o':[{'q':1,'p':2},{'q':1},{'q':3}]}",
         9,
         {{"/o/[]", "{}"}, {"/o/[]/q", "1"}, {"/o/[]/q", "3"}, {"/o/[]/p", "2"}}},
    };
    expect_terms(ROWS, ARRAY_COUNT(ROWS));
}

static void only_paths_of_the_policy_give_terms(void **state)
{
    (void)state;
    static const TermRow ROWS[] = {
        /* Only what the policy says; an array or object is there also for what is below it. */
        {ONLY "[{'path':'/a/b/?'}]}",
         "{'id':1,'a':{'b':1,'c':2},'b':3}",
         5,
         {{"/id", "1"}, {"/a", "{}"}, {"/a/b", NULL}, {"/a/b", "1"}}},
        {ONLY "[{'path':'/a/b/?'}]}", "{'a':5}", 0, {{NULL, NULL}}},
        {ONLY "[{'path':'/a/b/?'}]}", "{'a':{}}", 1, {{"/a", "{}"}}},
        {ONLY "[{'path':'/a/b/?'}]}", "{'a':[{'b':1}]}", 1, {{"/a", "[]"}}},
        {ONLY "[{'path':'/a/[]/b/?'}]}",
         "{'a':[{'b':1},2]}",
         4,
         {{"/a", "[]"}, {"/a/[]", "{}"}, {"/a/[]/b", "1"}, {"/a/[]/b", NULL}}},
        {ONLY "[{'path':'/a/?'}]}", "{'a':[1,2]}", 2, {{"/a", "[]"}, {"/a", NULL}}},
        {"{'includedPaths':[{'path':'/*'},{'path':'/a/b/c/?'}],'excludedPaths':[{'path':'/a/*'}]}",
         "{'a':{'b':{'c':1,'d':2},'e':3},'f':4}",
         6,
         {{"/a", "{}"}, {"/a/b", "{}"}, {"/a/b/c", "1"}, {"/f", "4"}, {"/f", NULL}}},
        {"{'indexingMode':'none'}", "{'id':'x','a':1,'b':{}}", 2, {{"/id", "'x'"}, {"/id", NULL}}},
    };
    expect_terms(ROWS, ARRAY_COUNT(ROWS));
}

static Slice composite_value(Arena *arena, const char *values, const char *orders)
{
    AUTO(buf_done) Buf bytes;
    buf_init(&bytes, TERM_VALUE_BYTES_MAX);
    bool exact = true;
    JsonIter it = json_iter(row_json(arena, values));
    for (size_t i = 0; json_next(&it); ++i) {
        /* An empty array stands for undefined. */
        bool is_undefined = json_is(it.value, JSON_ARRAY) && json_count(it.value) == 0;
        terms_put_part(&bytes, is_undefined ? JSON_NONE : it.value, orders[i] == '-', &exact);
    }
    return arena_copy(arena, buf_view(&bytes));
}

static size_t count_under(const TermList *list, TermPath path)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; ++i)
        count += list->terms[i].path == path;
    return count;
}

static void composite_indexes_give_a_term_per_item_or_element(void **state)
{
    (void)state;
#define ASC(path)  "{'path':'" path "','order':'ascending'}"
#define DESC(path) "{'path':'" path "','order':'descending'}"
    static const struct {
        const char *parts;
        const char *orders;
        const char *document;
        const char *values[6];
    } ROWS[] = {
        {ASC("/a") "," ASC("/b"), "++", "{'a':1,'b':'x'}", {"[1,'x']"}},
        {ASC("/a") "," DESC("/b/c"), "+-", "{'a':1,'b':{'c':'x'}}", {"[1,'x']"}},
        {ASC("/a") "," ASC("/b"), "++", "{'b':null}", {"[[],null]"}},
        {ASC("/a") "," DESC("/b"), "+-", "{'a':{},'b':[1]}", {"[{},[1]]"}},
        {DESC("/a") "," ASC("/b"), "-+", "{}", {"[[],[]]"}},
        {ASC("/a") "," ASC("/e/[]/x"),
         "++",
         "{'a':1,'e':[{'x':5},{'x':6},{},7]}",
         {"[1,5]", "[1,6]", "[1,[]]"}},
        {ASC("/a") "," ASC("/e/[]/x"), "++", "{'a':1,'e':[]}", {"[1,[]]"}},
        {ASC("/a") "," ASC("/e/[]/x"), "++", "{'a':1,'e':{'x':1}}", {"[1,[]]"}},
        {ASC("/e/[]/x") "," DESC("/e/[]/y"),
         "+-",
         "{'e':[{'x':1,'y':2},{'x':3,'y':4},{'y':4,'x':3}]}",
         {"[1,2]", "[3,4]"}},
        {ASC("/e/[]/f/[]/x") "," ASC("/e/[]/y") "," ASC("/z"),
         "+++",
         "{'e':[{'f':[{'x':1},{'x':2}],'y':3},{'y':4},{'f':[{'x':5}]}],'z':0}",
         {"[1,3,0]", "[2,3,0]", "[[],4,0]", "[5,[],0]"}},
        {ASC("/a") "," ASC("/_ts"), "++", "{'a':1}", {"[1," TIME "]"}},
        {DESC("/_ts") "," ASC("/a"), "-+", "{'a':1}", {"[" TIME ",1]"}},
        {ASC("/a/_ts") "," DESC("/\\\"_ts\\\""), "+-", "{'a':{'_ts':7}}", {"[7," TIME "]"}},
        {ASC("/_ts/x") "," ASC("/a"), "++", "{'a':1}", {"[[],1]"}},
        {ASC("/e/[]/x") "," ASC("/_ts"),
         "++",
         "{'e':[{'x':1},{'x':2}]}",
         {"[1," TIME "]", "[2," TIME "]"}},
        {ASC("/t/[]") "," ASC("/a"),
         "++",
         "{'t':['u','v'],'a':true}",
         {"['u',true]", "['v',true]"}},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        Slice text = arena_format(
            &arena, "{'includedPaths':[{'path':'/*'}],'compositeIndexes':[[%s]]}", ROWS[i].parts);
        IndexPolicy *policy = policy_of(&arena, arena_cstr(&arena, text), NULL);
        Json document = row_json(&arena, ROWS[i].document);
        TermList list, without;
        terms_of(&arena, policy, KEY, document, &SYSTEM, &list);
        terms_of(&arena, policy_of(&arena, ALL, NULL), KEY, document, &SYSTEM, &without);
        size_t count;
        TermPath path = terms_composite_path(KEY, index_policy_composites(policy, &count));
        size_t expected = 0;
        print_message("%s %s\n", ROWS[i].parts, ROWS[i].document);
        for (; ROWS[i].values[expected] != NULL; ++expected) {
            Slice value = composite_value(&arena, ROWS[i].values[expected], ROWS[i].orders);
            assert_true(has_term(&list, path, value));
        }
        assert_int_equal(count_under(&list, path), expected);
        assert_int_equal(count_under(&without, path), 0);
    }
}

static void too_many_elements_of_a_composite_index_are_told_by_one_term(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    IndexPolicy *policy =
        policy_of(&arena, ONLY "[],'compositeIndexes':[[" ASC("/a") "," ASC("/e/[]") "]]}", NULL);
    for (size_t elements = COMPOSITE_ELEMENTS_MAX; elements <= COMPOSITE_ELEMENTS_MAX + 2;
         ++elements) {
        JsonBuilder b;
        json_build(&b, &arena);
        json_begin_object(&b);
        json_key(&b, SLICE("e"));
        json_begin_array(&b);
        for (size_t i = 0; i < elements; ++i)
            json_add_i64(&b, (int64_t)i);
        json_end(&b);
        json_end(&b);
        TermList list;
        terms_of(&arena, policy, KEY, json_built(&b), &SYSTEM, &list);
        size_t count;
        TermPath path = terms_composite_path(KEY, index_policy_composites(policy, &count));
        bool is_over = elements > COMPOSITE_ELEMENTS_MAX;
        assert_int_equal(count_under(&list, path), COMPOSITE_ELEMENTS_MAX + is_over);
        assert_int_equal(has_term(&list, path, slice_make("\x0e", 1)), is_over);
    }
}

static void composite_values_order_as_their_parts_do(void **state)
{
    (void)state;
    static const char *const VALUES[] = {
        "[]",  "null",       "false",      "true", "-5",  "0",          "1e9", "''",
        "'a'", "'a\\u0000'", "'a\\u0001'", "'aa'", "'b'", "'\xc3\xbf'", "[1]", "{}",
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    size_t count = ARRAY_COUNT(VALUES);
    static const char *const ORDERS[] = {"++", "+-", "-+", "--"};
    for (size_t o = 0; o < ARRAY_COUNT(ORDERS); ++o) {
        for (size_t i = 0; i < count * count * count * count; ++i) {
            size_t a1 = i % count, a2 = i / count % count, b1 = i / count / count % count,
                   b2 = i / count / count / count;
            if ((i & 63) == 0)
                arena_reset(&arena);
            Slice a = composite_value(
                &arena, arena_cstr(&arena, arena_format(&arena, "[%s,%s]", VALUES[a1], VALUES[a2])),
                ORDERS[o]);
            Slice b = composite_value(
                &arena, arena_cstr(&arena, arena_format(&arena, "[%s,%s]", VALUES[b1], VALUES[b2])),
                ORDERS[o]);
            int first = (a1 > b1) - (a1 < b1);
            int second = (a2 > b2) - (a2 < b2);
            int expected = first != 0 ? (ORDERS[o][0] == '-' ? -first : first)
                                      : (ORDERS[o][1] == '-' ? -second : second);
            int found = slice_compare(a, b);
            assert_int_equal((found > 0) - (found < 0), expected);
        }
    }
}

static void spatial_indexes_give_the_cells_of_shapes(void **state)
{
    (void)state;
#define POINT "{'type':'Point','coordinates':[10,20]}"
#define SHAPES(path) \
    ONLY "[],'spatialIndexes':[{'path':'" path "','types':['Point','LineString']}]}"
    static const struct {
        const char *policy;
        const char *document;
        const char *path; /* where the shape is indexed; NULL if nowhere */
    } ROWS[] = {
        {SHAPES("/loc/?"), "{'loc':" POINT "}", "/loc"},
        {SHAPES("/loc/?"), "{'loc':{'x':" POINT "}}", NULL},
        {SHAPES("/loc/*"), "{'loc':{'x':" POINT "}}", "/loc/x"},
        {SHAPES("/loc/*"), "{'loc':[{},[" POINT "]]}", "/loc/[]/[]"},
        {SHAPES("/loc/[]/?"), "{'loc':[" POINT ",5]}", "/loc/[]"},
        {SHAPES("/*"), "{'a':{'b':[" POINT "]}}", "/a/b/[]"},
        {SHAPES("/*"), "{'type':'Point','coordinates':[10,20]}", "/"},
        {SHAPES("/loc/?"), "{'loc':{'type':'Polygon','coordinates':[[[0,0],[1,0],[0,1]]]}}", NULL},
        {SHAPES("/loc/?"), "{'loc':{'type':'Point','coordinates':[10]}}", NULL},
        {SHAPES("/loc/?"), "{'loc':[10,20]}", NULL},
        {ALL, "{'loc':" POINT "}", NULL},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 16);
    SpatialCell cells[SPATIAL_CELLS_MAX];
    SpatialFrame globe = {.is_plane = false};
    assert_int_equal(spatial_cover(&globe, (SpatialBox){10, 20, 10, 20}, cells), 1);
    AUTO(buf_done) Buf value;
    buf_init(&value, SPATIAL_VALUE_BYTES);
    spatial_put(&value, cells[0]);
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); ++i) {
        IndexPolicy *policy = policy_of(&arena, ROWS[i].policy, NULL);
        TermList list;
        terms_of(&arena, policy, KEY, row_json(&arena, ROWS[i].document), &SYSTEM, &list);
        print_message("%s %s\n", ROWS[i].policy, ROWS[i].document);
        size_t found = 0;
        for (size_t k = 0; k < list.count; ++k)
            found += slice_equal(list.terms[k].value, buf_view(&value));
        assert_int_equal(found, ROWS[i].path == NULL ? 0 : 1);
        if (ROWS[i].path == NULL)
            continue;
        IndexPath path = path_of(&arena, ROWS[i].path);
        const SpatialIndex *index = index_policy_spatial(policy, path.steps, path.step_count);
        TermPath at = terms_spatial_path(KEY, hash_text(&arena, ROWS[i].path), index);
        assert_true(has_term(&list, at, buf_view(&value)));
    }
}

/* ---- random documents against a model ---- */

enum { RULES_MAX = 8, TERMS_MODEL_MAX = 4096 };

typedef struct Model {
    Arena *arena;
    IndexPath rules[RULES_MAX];
    bool included[RULES_MAX];
    size_t rule_count;
    Term terms[TERMS_MODEL_MAX];
    size_t count;
} Model;

static bool is_prefix(const IndexStep *a, size_t a_count, const IndexStep *b, size_t b_count)
{
    for (size_t i = 0; i < a_count; ++i) {
        if (i >= b_count || a[i].is_element != b[i].is_element ||
            !slice_equal(a[i].name, b[i].name))
            return false;
    }
    return true;
}

static bool model_indexes(const Model *model, const IndexStep *steps, size_t count)
{
    if (count == 1 && slice_equal(steps[0].name, SLICE("id")))
        return true;
    size_t best = 0;
    bool included = false;
    for (size_t i = 0; i < model->rule_count; ++i) {
        const IndexPath *rule = &model->rules[i];
        bool is_value = rule->end == INDEX_PATH_SCALAR;
        size_t precision = 1 + 2 * rule->step_count + (is_value ? 1 : 0);
        if (is_prefix(rule->steps, rule->step_count, steps, count) &&
            (!is_value || rule->step_count == count) && precision > best) {
            best = precision;
            included = model->included[i];
        }
    }
    return included;
}

/* Something at or below is included by a rule there, or by a star above. */
static bool model_reaches(const Model *model, const IndexStep *steps, size_t count)
{
    static const IndexStep ANY = {.name = SLICE_INIT("no rule has this name")};
    IndexStep below[TESTING_DEPTH_MAX + 2];
    memcpy(below, steps, count * sizeof(IndexStep));
    below[count] = ANY;
    bool reaches = model_indexes(model, steps, count) || model_indexes(model, below, count + 1);
    for (size_t i = 0; i < model->rule_count && !reaches; ++i)
        reaches = model->included[i] &&
                  is_prefix(steps, count, model->rules[i].steps, model->rules[i].step_count);
    return reaches;
}

static void model_add(Model *model, const IndexStep *steps, size_t count, Slice value)
{
    TermPath path = hash_steps(steps, count);
    assert_true(model->count + TERM_SAMPLES < TERMS_MODEL_MAX);
    model->terms[model->count++] = (Term){.path = path, .value = value};
    for (unsigned i = 0; i < term_samples(value); ++i)
        model->terms[model->count++] =
            (Term){.path = term_path_sample(path, i), .value = value, .is_sample = true};
}

static void model_walk(Model *model, Json value, IndexStep *steps, size_t count)
{
    bool is_container = json_is(value, JSON_ARRAY) || json_is(value, JSON_OBJECT);
    bool indexed = count == 0 || model_indexes(model, steps, count);
    if (indexed)
        model_add(model, steps, count, slice_make("\0", 1));
    if (indexed || (is_container && model_reaches(model, steps, count)))
        model_add(model, steps, count, value_of(model->arena, value));
    JsonIter it = json_iter(value);
    while (json_next(&it)) {
        steps[count] =
            it.is_object ? (IndexStep){.name = it.name} : (IndexStep){.is_element = true};
        model_walk(model, it.value, steps, count + 1);
    }
}

static void model_terms(Model *model, Json document, const TermSystem *system)
{
    IndexStep steps[TESTING_DEPTH_MAX + 2];
    model->count = 0;
    model_walk(model, document, steps, 0);
    JsonBuilder b;
    json_build(&b, model->arena);
    json_add_i64(&b, system->ts_s);
    steps[0] = (IndexStep){.name = SLICE("_ts")};
    model_add(model, steps, 1, slice_make("\0", 1));
    model_add(model, steps, 1, value_of(model->arena, json_built(&b)));
    qsort(model->terms, model->count, sizeof(Term), compare_terms);
    size_t kept = 0;
    for (size_t i = 0; i < model->count; ++i) {
        if (i == 0 || compare_terms(&model->terms[i - 1], &model->terms[i]) != 0)
            model->terms[kept++] = model->terms[i];
    }
    model->count = kept;
}

static IndexPolicy *random_policy(Random *random, Arena *arena, Model *model)
{
    static const char *const PATHS[] = {
        "/a/*",       "/a/?",    "/b/*",     "/b/?",      "/a/b/*",
        "/a/b/?",     "/a/[]/?", "/a/[]/*",  "/a/[]/b/?", "/b/[]/[]/*",
        "/c/a/b/c/?", "/c/*",    "/a/b/c/?", "/id/*",     "/b/a/[]/?",
    };
    Buf lists[2];
    buf_init(&lists[0], 4096);
    buf_init(&lists[1], 4096);
    model->arena = arena;
    model->rule_count = 1 + random_below(random, RULES_MAX);
    size_t first = random_below(random, ARRAY_COUNT(PATHS));
    for (size_t i = 0; i < model->rule_count; ++i) {
        const char *text = i == 0 ? "/*" : PATHS[(first + 4 * i) % ARRAY_COUNT(PATHS)];
        model->included[i] = random_below(random, 2) == 0;
        size_t position;
        assert_true(index_path_parse(arena, slice_from_cstr(text),
                                     INDEX_PATH_SCALAR | INDEX_PATH_SUBTREE, &model->rules[i],
                                     &position));
        Buf *list = &lists[model->included[i]];
        buf_format(list, "%s{'path':'%s'}", list->len > 0 ? "," : "", text);
    }
    Slice text = arena_format(arena, "{'excludedPaths':[%.*s],'includedPaths':[%.*s]}",
                              SLICE_ARG(buf_view(&lists[0])), SLICE_ARG(buf_view(&lists[1])));
    buf_done(&lists[0]);
    buf_done(&lists[1]);
    return policy_of(arena, arena_cstr(arena, text), NULL);
}

static void random_documents_have_the_terms_of_the_model(void **state)
{
    (void)state;
    Random random;
    random_init(&random, 4711);
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 20);
    static Model model;
    for (int round = 0; round < 3000; ++round) {
        arena_reset(&arena);
        IndexPolicy *policy = random_policy(&random, &arena, &model);
        Json document = random_document(&random, &arena, JSON_NONE);
        TermList list;
        terms_of(&arena, policy, KEY, document, &SYSTEM, &list);
        model_terms(&model, document, &SYSTEM);
        assert_int_equal(list.count, model.count);
        for (size_t i = 0; i < list.count; ++i) {
            assert_int_equal(compare_terms(&list.terms[i], &model.terms[i]), 0);
            assert_int_equal(list.terms[i].is_sample, model.terms[i].is_sample);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_indexed_path_gives_that_it_is_there_and_its_value),
        cmocka_unit_test(only_paths_of_the_policy_give_terms),
        cmocka_unit_test(composite_indexes_give_a_term_per_item_or_element),
        cmocka_unit_test(too_many_elements_of_a_composite_index_are_told_by_one_term),
        cmocka_unit_test(composite_values_order_as_their_parts_do),
        cmocka_unit_test(spatial_indexes_give_the_cells_of_shapes),
        cmocka_unit_test(random_documents_have_the_terms_of_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
