/* spec_test.c - the conformance corpus, when it lies beside the project.
 *
 * sql-errors.json holds queries that must be refused, sql-examples.json queries with documents and
 * results, query-plans.json queries that the service's planner read or refused. They stay outside
 * of the project: without the folder the tests say so and are skipped, and the other tests of this
 * layer cover the same ground. The folder is $ORRERY_SPEC, or "shared/spec" in or beside a folder
 * above this file.
 *
 * Left out are cases that need more than this layer has: an indexing policy, full text and vectors.
 * Functions of users are written here in C, by their names. Cases marked uncertain may differ;
 * those that do are printed, and differences.md says why.
 */
#include "query/eval/spec_testing_int.h"
#include "query/plan/query_route.h"
#include "query/plan/query_traits.h"
#include "query/sql/query_int.h"

#include <math.h>
#include <regex.h>

/* Whether the message has the code, as a string or as a bare number. */
static bool has_code(const char *message, Slice code)
{
    Slice quoted = arena_format(&arena, "\"code\":\"%.*s\"%c", SLICE_ARG(code), '\0');
    Slice bare = arena_format(&arena, "\"code\":%.*s,%c", SLICE_ARG(code), '\0');
    return strstr(message, quoted.ptr) != NULL || strstr(message, bare.ptr) != NULL;
}

static void invalid_queries_are_refused_with_their_codes(void **state)
{
    (void)state;
    size_t run = 0;
    size_t skipped = 0;
    size_t failures = 0;
    JsonIter iter = json_iter(spec_load("sql-errors.json"));
    while (json_next(&iter)) {
        Json c = iter.value;
        if (spec_has(c, "indexingPolicy")) {
            skipped++;
            continue;
        }
        run++;
        Slice query_text = spec_text(c, "query");
        Slice code = spec_text(c, "code");
        bool strict = code.len > 0 && !spec_flag(c, "codeInferred") && !spec_flag(c, "uncertain");
        Error err = {0};
        Query *query;
        Status status = query_parse(&arena, query_text, JSON_NONE, &query, &err);
        if (status == STATUS_OK && spec_flag(c, "crossPartitionOnly"))
            status = query_check_cross_partition(query, &err);
        bool refused = status == STATUS_BAD_REQUEST;
        bool right = refused && (!strict || has_code(err.message, code));
        if (right)
            continue;
        printf("%s: %.*s\n  expected %.*s, got %s\n",
               spec_flag(c, "uncertain") ? "differs" : "WRONG", SLICE_ARG(query_text),
               SLICE_ARG(code), refused ? err.message : "no error");
        failures += !spec_flag(c, "uncertain");
    }
    printf("sql-errors.json: %zu run, %zu left out, %zu wrong\n", run, skipped, failures);
    assert_int_equal(failures, 0);
}

static bool numbers_close(double a, double b, double tolerance)
{
    double scale = fmax(fabs(a), fabs(b));
    return a == b || fabs(a - b) <= tolerance * scale;
}

typedef struct Comparison {
    double tolerance;
    bool unordered; /* arrays are multisets */
} Comparison;

static bool same(Json a, Json b, Comparison how);

static bool same_elements(Json a, Json b, Comparison how, bool ordered)
{
    size_t count = json_count(a);
    if (count != json_count(b))
        return false;
    bool *used = ARENA_NEW_ARRAY(&arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (size_t j = ordered ? i : 0; j < (ordered ? i + 1 : count) && !found; j++) {
            found = !used[j] && same(json_at(a, i), json_at(b, j), how);
            used[j] |= found;
        }
        if (!found)
            return false;
    }
    return true;
}

static bool same(Json a, Json b, Comparison how)
{
    if (json_type(a) != json_type(b))
        return false;
    if (json_is(a, JSON_NUMBER))
        return numbers_close(json_number(a), json_number(b), how.tolerance);
    if (json_is(a, JSON_ARRAY))
        return same_elements(a, b, how, !how.unordered);
    if (!json_is(a, JSON_OBJECT))
        return json_equal(a, b);
    if (json_count(a) != json_count(b))
        return false;
    JsonIter iter = json_iter(a);
    while (json_next(&iter)) {
        if (!same(iter.value, json_get(b, iter.name), how))
            return false;
    }
    return true;
}

/* function (input, pattern) { return input.match(pattern) !== null; } */
static bool find_udf(void *context, Slice name, uint32_t *which)
{
    (void)context;
    *which = 0;
    return slice_equal(name, SLICE("REGEX_MATCH"));
}

static Status call_udf(void *context, QueryCall *calls, size_t count, uint64_t time_us_max,
                       Arena *results, Error *err)
{
    (void)context;
    (void)time_us_max;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        regex_t pattern;
        assert_int_equal(calls[i].argument_count, 2);
        assert_int_equal(regcomp(&pattern, arena_cstr(&arena, json_string(calls[i].arguments[1])),
                                 REG_EXTENDED | REG_NOSUB),
                         0);
        const char *input = arena_cstr(&arena, json_string(calls[i].arguments[0]));
        bool matches = regexec(&pattern, input, 0, NULL, 0) == 0;
        regfree(&pattern);
        calls[i].result = parse_json(results, matches ? "true" : "false");
        calls[i].error = NULL;
    }
    return STATUS_OK;
}

typedef enum Outcome { RIGHT, WRONG, UNAVAILABLE } Outcome;

static Outcome run_example(Json c, const char **got)
{
    Error err;
    Query *query;
    Json *results;
    size_t count;
    *got = "an error";
    if (query_parse(&arena, spec_text(c, "query"), json_get(c, SLICE("parameters")), &query,
                    &err) != STATUS_OK) {
        *got = arena_format(&arena, "%s%c", err.message, '\0').ptr;
        return WRONG;
    }
    *got = "that something in it is not available";
    if (query->unavailable != NULL)
        return UNAVAILABLE;
    Json docs = json_get(c, SLICE("docs"));
    Json *list = ARENA_NEW_ARRAY(&arena, Json, json_count(docs) + 1);
    size_t docs_count = 0;
    JsonIter iter = json_iter(docs);
    while (json_next(&iter))
        list[docs_count++] = iter.value;
    static const QueryFunctions FUNCTIONS = {.find = find_udf, .call = call_udf};
    QueryOptions options = {.functions = &FUNCTIONS};
    if (query_run_with(query, options, list, docs_count, &arena, &results, &count, &err) !=
        STATUS_OK) {
        *got = arena_format(&arena, "%s%c", err.message, '\0').ptr;
        return WRONG;
    }
    JsonBuilder b;
    json_build(&b, &arena);
    json_begin_array(&b);
    for (size_t i = 0; i < count; i++)
        json_add(&b, results[i]);
    json_end(&b);
    Json array = json_built(&b);
    *got = arena_cstr(&arena, json_print_arena(&arena, array));
    Json tolerance = json_get(c, SLICE("tolerance"));
    Comparison how = {.tolerance = json_is(tolerance, JSON_NUMBER) ? json_number(tolerance) : 1e-12,
                      .unordered = spec_flag(c, "unorderedArrays")};
    Json expected = json_get(c, SLICE("expected"));
    return same_elements(array, expected, how, spec_flag(c, "ordered")) ? RIGHT : WRONG;
}

/* What is not there yet: anything else is wrong when it cannot be run. */
static bool may_be_unavailable(Json c)
{
    Slice category = spec_text(c, "category");
    return slice_equal(category, SLICE("vector")) || slice_equal(category, SLICE("full-text"));
}

static void documented_examples_give_documented_results(void **state)
{
    (void)state;
    size_t right = 0;
    size_t failures = 0;
    size_t unavailable = 0;
    JsonIter iter = json_iter(spec_load("sql-examples.json"));
    while (json_next(&iter)) {
        const char *got;
        Json c = iter.value;
        Outcome outcome = run_example(c, &got);
        right += outcome == RIGHT;
        unavailable += outcome == UNAVAILABLE;
        if (outcome == RIGHT || (outcome == UNAVAILABLE && may_be_unavailable(c)))
            continue;
        Slice expected = json_print_arena(&arena, json_get(c, SLICE("expected")));
        printf("%s: %.*s\n  %.*s\n  expected %.*s\n  got      %.600s\n",
               spec_flag(c, "uncertain") ? "differs" : "WRONG", SLICE_ARG(spec_text(c, "name")),
               SLICE_ARG(spec_text(c, "query")), SLICE_CUT(expected, 600), got);
        failures += !spec_flag(c, "uncertain");
    }
    printf("sql-examples.json: %zu right, %zu not available yet, %zu wrong\n", right, unavailable,
           failures);
    assert_int_equal(failures, 0);
}

/* What the service's own planner refuses it refuses in these very words, and what it plans is a
 * query. Several errors in one message are cut to the first. What the planner alone refuses
 * ({"Errors":...}) is read, and refused for several partitions. */
static void planned_queries_are_read_and_refusals_are_worded_alike(void **state)
{
    (void)state;
    size_t accepted = 0;
    size_t refused = 0;
    size_t failures = 0;
    JsonIter iter = json_iter(spec_load("query-plans.json"));
    while (json_next(&iter)) {
        Json c = iter.value;
        Slice query_text = spec_text(c, "query");
        Slice expected = spec_text(c, "error");
        bool wants_refusal = slice_starts_with(expected, SLICE("{\"errors\":[{")) ||
                             slice_starts_with(expected, SLICE("{\"Errors\":["));
        Error err = {0};
        Query *query;
        Json parameters = parse_json(&arena, PLAN_PARAMETERS);
        Status status = query_parse(&arena, query_text, parameters, &query, &err);
        if (status == STATUS_OK)
            status = query_check_cross_partition(query, &err);
        Slice got = slice_from_cstr(err.message);
        bool right = status == STATUS_OK
                         ? !wants_refusal
                         : wants_refusal && got.len > 2 &&
                               slice_starts_with(expected, slice_first(got, got.len - 2));
        accepted += right && status == STATUS_OK;
        refused += right && status != STATUS_OK;
        if (right)
            continue;
        printf("WRONG: %.*s\n  expected %.*s\n  got      %s\n", SLICE_ARG(query_text),
               SLICE_CUT(expected, 400), status == STATUS_OK ? "no error" : err.message);
        failures++;
    }
    printf("query-plans.json: %zu accepted, %zu refused, %zu wrong\n", accepted, refused, failures);
    assert_int_equal(failures, 0);
}

/* Clients send the rewritten query to every partition. */
static void rewritten_queries_are_read(void **state)
{
    (void)state;
    size_t read = 0;
    JsonIter iter = json_iter(spec_load("query-plans.json"));
    while (json_next(&iter)) {
        Slice text = spec_fill_in(spec_text(iter.value, "rewrittenQuery"));
        Error err;
        Query *query;
        if (text.len == 0)
            continue;
        Json parameters = parse_json(&arena, PLAN_PARAMETERS);
        if (query_parse(&arena, text, parameters, &query, &err) != STATUS_OK)
            fail_msg("%.*s\n  %s", SLICE_ARG(text), err.message);
        read++;
    }
    printf("query-plans.json: %zu rewritten queries read\n", read);
    assert_true(read > 0);
}

static PartitionKeyDefinition definition_of(Json c)
{
    PartitionKeyDefinition definition = {.kind = PARTITION_HASH_V2};
    JsonIter iter = json_iter(json_get(c, SLICE("partitionKeyPaths")));
    while (json_next(&iter)) {
        size_t position = 0;
        PropertyPath *path = &definition.paths[definition.path_count++];
        assert_true(property_path_parse(&arena, json_string(iter.value), path, &position));
    }
    if (definition.path_count == 0)
        definition.kind = PARTITION_NONE;
    return definition;
}

/* A range is written "[[1.0],[1.0]]" for a key, "[[],[]]" for nothing, "[[],\"Infinity\")" for all;
 * of several keys the corpus has the last one. */
static bool is_route(const PartitionKeyDefinition *definition, const QueryRoute *route, Slice text)
{
    char *closed = arena_cstr(&arena, text);
    closed[text.len - 1] = ']';
    Json ends = parse_json(&arena, closed);
    Json first = json_at(ends, 0);
    if (!json_is(json_at(ends, 1), JSON_ARRAY))
        return route->is_all;
    if (json_count(first) == 0)
        return !route->is_all && route->count == 0;
    PartitionKey key = {0};
    for (JsonIter it = json_iter(first); json_next(&it);)
        key.parts[key.count++] = it.value;
    Epk epk;
    epk_make(definition->kind, &key, &epk);
    for (size_t i = 0; i < route->count; i++) {
        if (route->ranges[i].is_key && slice_equal(route->ranges[i].from, epk_slice(&epk)))
            return true;
    }
    return false;
}

/* Only keys that are hashed, since there are no others any more. Functions of shapes are not
 * evaluated before the container says what its coordinates mean, so those routes are wider. */
static void routes_are_those_of_the_planner(void **state)
{
    (void)state;
    size_t right = 0;
    size_t wider = 0;
    size_t failures = 0;
    JsonIter iter = json_iter(spec_load("query-plans.json"));
    while (json_next(&iter)) {
        Json c = iter.value;
        Json ranges = json_get(c, SLICE("queryRanges"));
        Query *query;
        Error err;
        Json parameters = parse_json(&arena, PLAN_PARAMETERS);
        if (!json_is(ranges, JSON_ARRAY) ||
            !slice_equal(spec_text(c, "partitionKeyKind"), SLICE("Hash")) ||
            query_parse(&arena, spec_text(c, "query"), parameters, &query, &err) != STATUS_OK)
            continue;
        PartitionKeyDefinition definition = definition_of(c);
        QueryRoute route;
        query_route(query, &arena, &definition, &route);
        Slice expected = json_string(json_at(ranges, 0));
        bool is_right = is_route(&definition, &route, expected);
        bool is_wider = slice_equal(spec_text(c, "category"), SLICE("Spatial")) && route.is_all;
        right += is_right;
        wider += !is_right && is_wider;
        if (is_right || is_wider)
            continue;
        printf("WRONG: %.*s\n  expected %.*s\n  got %zu ranges%s\n",
               SLICE_ARG(spec_text(c, "query")), SLICE_ARG(expected), route.count,
               route.is_all ? ", everything" : "");
        failures++;
    }
    printf("query-plans.json: %zu routes right, %zu wider, %zu wrong\n", right, wider, failures);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(invalid_queries_are_refused_with_their_codes),
        SPEC_TEST(planned_queries_are_read_and_refusals_are_worded_alike),
        SPEC_TEST(rewritten_queries_are_read),
        SPEC_TEST(routes_are_those_of_the_planner),
        SPEC_TEST(documented_examples_give_documented_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
