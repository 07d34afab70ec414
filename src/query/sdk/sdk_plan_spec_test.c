/* sdk_plan_spec_test.c - our plans beside those of the service's own planner, where its corpus is
 * (spec_testing_int.h): what clients act on must be the same, and the rewritten query must be the
 * same query, however it is spelled.
 *
 * Ranges are compared for what must not happen: that a key which the service looks at is left out.
 * The corpus has only the last one of several.
 *
 * Left out are hybrid search, vectors and full text, which cannot be run yet.
 */
#include "query/eval/spec_testing_int.h"
#include "query/sdk/sdk_plan.h"
#include "query/sql/parser_int.h"
#include "query/sql/sql_print_int.h"

static PartitionKeyDefinition definition_of(Json c)
{
    PartitionKeyDefinition definition = {.kind = PARTITION_NONE};
    Json paths = json_get(c, SLICE("partitionKeyPaths"));
    if (json_count(paths) != 1 || !slice_equal(spec_text(c, "partitionKeyKind"), SLICE("Hash")))
        return definition; /* kinds that no longer exist */
    size_t position;
    definition.kind = PARTITION_HASH_V2;
    definition.path_count = 1;
    assert_true(property_path_parse(&arena, json_string(json_at(paths, 0)), &definition.paths[0],
                                    &position));
    return definition;
}

static Status make(Json c, Json *plan, Error *err)
{
    Query *query;
    QueryRoute route;
    TRY(query_parse(&arena, spec_text(c, "query"), parse_json(&arena, PLAN_PARAMETERS), &query,
                    err));
    PartitionKeyDefinition definition = definition_of(c);
    query_route(query, &arena, &definition, &route);
    return sdk_plan(query, &arena, &route, SDK_FEATURES_ALL, plan, err);
}

/* The query that both texts should be, printed in one way. */
static Slice normal_form(Slice text)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, QUERY_TEXT_BYTES_MAX);
    Select *select;
    Error err;
    if (text.len == 0)
        return SLICE_EMPTY;
    if (parser_run(&arena, spec_fill_in(text), &select, &err) != STATUS_OK)
        fail_msg("%.*s\n  %s", SLICE_ARG(text), err.message);
    print_select(select, &out);
    return arena_copy(&arena, buf_view(&out));
}

static void add_texts(Buf *out, Json array)
{
    for (JsonIter it = json_iter(array); json_next(&it);) {
        json_print(it.value, out);
        buf_byte(out, ' ');
    }
    buf_byte(out, ';');
}

/* A number that the corpus has as text, and we as a number. */
static void add_number(Buf *out, Json value)
{
    if (json_is(value, JSON_STRING))
        buf_slice(out, json_string(value));
    else
        json_print(value, out);
    buf_byte(out, ';');
}

/* What clients act on, as one line, from a plan of the corpus, where names begin with capitals. */
static Slice expected_line(Json info)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 16);
    buf_slice(&out, spec_text(info, "DistinctType"));
    buf_byte(&out, ';');
    add_number(&out, json_get(info, SLICE("Top")));
    add_number(&out, json_get(info, SLICE("Offset")));
    add_number(&out, json_get(info, SLICE("Limit")));
    add_texts(&out, json_get(info, SLICE("OrderBy")));
    add_texts(&out, json_get(info, SLICE("OrderByExpressions")));
    add_texts(&out, json_get(info, SLICE("GroupByExpressions")));
    Json aliases = json_get(info, SLICE("GroupByAliases"));
    add_texts(&out, aliases);
    add_texts(&out, json_get(info, SLICE("Aggregates")));
    buf_slice(&out, spec_text(info, "HasSelectValue"));
    for (JsonIter it = json_iter(aliases); json_next(&it);) {
        JsonIter type = json_iter(json_get(info, SLICE("GroupByAliasToAggregateType")));
        while (json_next(&type)) {
            if (slice_equal(spec_text(type.value, "Alias"), json_string(it.value)))
                buf_format(&out, ";%.*s", SLICE_ARG(spec_text(type.value, "AggregateOperator")));
        }
    }
    return arena_copy(&arena, buf_view(&out));
}

/* The same line from one of our plans. */
static Slice line_of(Json info)
{
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 16);
    buf_slice(&out, spec_text(info, "distinctType"));
    buf_byte(&out, ';');
    add_number(&out, json_get(info, SLICE("top")));
    add_number(&out, json_get(info, SLICE("offset")));
    add_number(&out, json_get(info, SLICE("limit")));
    add_texts(&out, json_get(info, SLICE("orderBy")));
    add_texts(&out, json_get(info, SLICE("orderByExpressions")));
    add_texts(&out, json_get(info, SLICE("groupByExpressions")));
    add_texts(&out, json_get(info, SLICE("groupByAliases")));
    add_texts(&out, json_get(info, SLICE("aggregates")));
    buf_slice(&out, spec_flag(info, "hasSelectValue") ? SLICE("True") : SLICE("False"));
    JsonIter type = json_iter(json_get(info, SLICE("groupByAliasToAggregateType")));
    while (json_next(&type)) {
        buf_byte(&out, ';');
        buf_slice(&out, json_is(type.value, JSON_STRING) ? json_string(type.value) : SLICE("null"));
    }
    return arena_copy(&arena, buf_view(&out));
}

/* Whether one of our ranges has the key. */
static bool has_key(Json ranges, const PartitionKey *key)
{
    Epk epk;
    epk_make(PARTITION_HASH_V2, key, &epk);
    char hex[2 * EPK_HASH_BYTES + 1] = {0};
    for (size_t i = 0; i < epk.len; i++)
        (void)snprintf(hex + 2 * i, 3, "%02X", epk.bytes[i]);
    Slice at = slice_from_cstr(hex);
    for (JsonIter it = json_iter(ranges); json_next(&it);) {
        int low = slice_compare(at, spec_text(it.value, "min"));
        int high = slice_compare(at, spec_text(it.value, "max"));
        if (low >= 0 && (high < 0 || (high == 0 && spec_flag(it.value, "isMaxInclusive"))))
            return true;
    }
    return false;
}

/* The corpus has "[[1.0],[1.0]]" for a key, "[[],\"Infinity\")" for all, "[[],[]]" for nothing. */
static bool ranges_are_sound(Json c, Json ranges)
{
    Slice last = json_string(json_at(json_get(c, SLICE("queryRanges")), 0));
    Slice inner = arena_format(&arena, "[%.*s]%c", (int)last.len - 2, last.ptr + 1, '\0');
    Json ends = parse_json(&arena, inner.ptr);
    Json min = json_at(ends, 0);
    if (json_is(json_at(ends, 1), JSON_STRING))
        return slice_equal(spec_text(json_at(ranges, 0), "max"), SLICE("FF"));
    if (json_count(min) == 0 || definition_of(c).kind == PARTITION_NONE)
        return json_count(ranges) == 1;
    PartitionKey key = {.count = 1, .parts = {json_at(min, 0)}};
    if (json_is(key.parts[0], JSON_OBJECT) || json_is(key.parts[0], JSON_ARRAY))
        key.parts[0] = JSON_NONE;
    return has_key(ranges, &key);
}

static bool is_same(Json c, Json plan)
{
    Json info = json_get(plan, SLICE("queryInfo"));
    Json expected = json_get(c, SLICE("queryInfo"));
    Slice sent = normal_form(spec_text(info, "rewrittenQuery"));
    Slice to_send = normal_form(spec_text(c, "rewrittenQuery"));
    Slice line = line_of(info);
    Slice to_tell = expected_line(expected);
    Json ranges = json_get(plan, SLICE("queryRanges"));
    if (slice_equal(sent, to_send) && slice_equal(line, to_tell) && ranges_are_sound(c, ranges))
        return true;
    printf("WRONG: %.*s\n  expected %.*s\n           %.*s\n           %.*s\n"
           "  got      %.*s\n           %.*s\n           %.*s\n",
           SLICE_ARG(spec_text(c, "query")), SLICE_ARG(to_tell), SLICE_ARG(to_send),
           SLICE_ARG(json_string(json_at(json_get(c, SLICE("queryRanges")), 0))), SLICE_ARG(line),
           SLICE_ARG(sent), SLICE_ARG(json_print_arena(&arena, ranges)));
    return false;
}

/* What was not planned there: the planner said no, or the client to what it got. */
static bool is_refused_alike(Json c, Status status, Json plan, const Error *err)
{
    Slice expected = spec_text(c, "error");
    if (!slice_starts_with(expected, SLICE("{\"queryInfo\"")))
        return status == STATUS_BAD_REQUEST &&
               slice_starts_with(expected, slice_make(err->message, strlen(err->message) - 2));
    Json theirs;
    Error ignored;
    assert_int_equal(json_parse(&arena, expected, &theirs, &ignored), STATUS_OK);
    return status == STATUS_OK &&
           json_equal(json_get(json_get(plan, SLICE("queryInfo")), SLICE("top")),
                      json_get(json_get(theirs, SLICE("queryInfo")), SLICE("top")));
}

static void plans_are_those_of_the_service(void **state)
{
    (void)state;
    size_t planned = 0;
    size_t refused = 0;
    size_t unavailable = 0;
    size_t failures = 0;
    for (JsonIter iter = json_iter(spec_load("query-plans.json")); json_next(&iter);) {
        Json c = iter.value;
        Error err = {0};
        Json plan = JSON_NONE;
        Status status = make(c, &plan, &err);
        if (status != STATUS_OK && strstr(err.message, "not available yet") != NULL) {
            unavailable++;
        } else if (spec_has(c, "error")) {
            bool right = is_refused_alike(c, status, plan, &err);
            if (!right)
                printf("WRONG: %.*s\n  expected %.*s\n  got      %s\n",
                       SLICE_ARG(spec_text(c, "query")), SLICE_CUT(spec_text(c, "error"), 400),
                       status == STATUS_OK ? "a plan" : err.message);
            refused += right;
            failures += !right;
        } else if (status != STATUS_OK) {
            printf("WRONG: %.*s\n  %s\n", SLICE_ARG(spec_text(c, "query")), err.message);
            failures++;
        } else {
            bool right = is_same(c, plan);
            planned += right;
            failures += !right;
        }
    }
    printf("query-plans.json: %zu planned, %zu refused, %zu not available yet, %zu wrong\n",
           planned, refused, unavailable, failures);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SPEC_TEST(plans_are_those_of_the_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
