/* sdk_plan_fuzz.c - the plan of any text that is a query.
 *
 * Beyond surviving: a plan is refused for several partitions only in words of its own, or because
 * a bound of the language was reached; what it sends is a query; and where there is one partition,
 * so that nothing is to be put together, what was sent gives the results of the query itself.
 */
#include "query/eval/query.h"
#include "query/sdk/sdk_plan.h"
#include "query/sql/query_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RESULT_BYTES_MAX = 1 << 20 };

static const char DOCUMENTS[] =
    "[{\"id\":\"a\",\"_rid\":\"r1\",\"n\":1,\"s\":\"Text\",\"b\":true,\"z\":null,"
    "\"v\":[1,\"x\",[2],{\"w\":3}],\"o\":{\"p\":{\"q\":[]}}},"
    "{\"id\":\"b\",\"_rid\":\"r2\",\"n\":-2.5,\"s\":\"\",\"v\":[],"
    "\"o\":[{\"k\":\"1\"},{\"k\":\"2\"}]},"
    "{\"id\":\"c\",\"_rid\":\"r3\",\"n\":1,\"s\":\"text\",\"v\":[7]}]";
static const char PARAMETERS[] = "[{\"name\":\"@p\",\"value\":[1,\"n\",null]},"
                                 "{\"name\":\"@n\",\"value\":2},{\"name\":\"@u\"}]";
static const char COMPUTED[] = "[{\"name\":\"f\",\"query\":\"SELECT VALUE LOWER(x.s) FROM x\"}]";

static Json parse_fixed(Arena *arena, const char *text)
{
    Json json = JSON_NONE;
    Error err;
    ASSERT(json_parse(arena, slice_from_cstr(text), &json, &err) == STATUS_OK);
    return json;
}

static void check_refusal(const Error *err)
{
    static const char *const REASONS[] = {
        "Compositions of aggregates",
        "together with GROUP BY",
        "A subquery over the container",
        "not available yet",
        "User-defined function",
        "would exceed a limit (SC1030)",
        "limit (SC3002)",
        "limit (SC3005)",
        "limit (SC3020)",
    };
    ASSERT(err->status == STATUS_BAD_REQUEST);
    for (size_t i = 0; i < ARRAY_COUNT(REASONS); i++) {
        if (strstr(err->message, REASONS[i]) != NULL)
            return;
    }
    ASSERT(!"a plan is refused for a reason that we know");
}

/* What a client sends to look at every row. */
static Slice fill_in(Arena *arena, Slice text)
{
    Slice place = SLICE("({documentdb-formattableorderbyquery-filter})");
    for (size_t i = 0; i + place.len <= text.len; i++) {
        if (slice_starts_with(slice_from(text, i), place))
            return arena_format(arena, "%.*s(true)%.*s", (int)i, text.ptr,
                                SLICE_ARG(slice_from(text, i + place.len)));
    }
    return text;
}

/* The results, or false if there are none within the budget. */
static bool run(Arena *arena, Slice text, Json **results, size_t *count)
{
    Error err;
    Query *query;
    Status status = query_parse_with(arena, text, parse_fixed(arena, PARAMETERS),
                                     parse_fixed(arena, COMPUTED), &query, &err);
    ASSERT(status == STATUS_OK);
    Json array = parse_fixed(arena, DOCUMENTS);
    Json documents[] = {json_at(array, 0), json_at(array, 1), json_at(array, 2)};
    FakeClock clock;
    fake_clock_init(&clock, UINT64_C(1700000000000000));
    QueryOptions options = {.steps_max = 50000, .bytes_max = 2 << 20, .clock = &clock.clock};
    return query_run_with(query, options, documents, ARRAY_COUNT(documents), arena, results, count,
                          &err) == STATUS_OK;
}

/* What a client gives of a row: the payload, or the only aggregate. */
static Json result_of(Json row, bool is_aggregate)
{
    return is_aggregate ? json_get(json_at(row, 0), SLICE("item"))
                        : json_get(row, SLICE("payload"));
}

static bool has_text(Slice text, Slice part)
{
    for (size_t i = 0; i + part.len <= text.len; i++) {
        if (slice_equal_nocase(slice_make(text.ptr + i, part.len), part))
            return true;
    }
    return false;
}

/* Whether the results are the query's own, one by one. */
static bool is_comparable(Slice text, Json info)
{
    Json types = json_get(info, SLICE("groupByAliasToAggregateType"));
    for (JsonIter it = json_iter(types); json_next(&it);) {
        if (!json_is(it.value, JSON_NULL))
            return false;
    }
    Json aggregates = json_get(info, SLICE("aggregates"));
    bool is_grouped = json_count(json_get(info, SLICE("groupByExpressions"))) > 0;
    bool is_ordered = json_count(json_get(info, SLICE("orderBy"))) > 0;
    if (json_count(aggregates) > 0 &&
        (is_grouped || slice_equal(json_string(json_at(aggregates, 0)), SLICE("Average"))))
        return false;
    return (json_count(aggregates) > 0 || is_grouped || is_ordered) &&
           json_is(json_get(info, SLICE("top")), JSON_NULL) &&
           json_is(json_get(info, SLICE("limit")), JSON_NULL) &&
           slice_equal(json_string(json_get(info, SLICE("distinctType"))), SLICE("None")) &&
           !has_text(text, SLICE("RAND")); /* chance goes its own way */
}

static void check_results(Arena *arena, Slice text, Slice sent, Json info)
{
    Json *own, *rows;
    size_t own_count, row_count;
    if (!run(arena, sent, &rows, &row_count) || !is_comparable(text, info) ||
        !run(arena, text, &own, &own_count))
        return;
    AUTO(buf_done) Buf expected;
    AUTO(buf_done) Buf got;
    buf_init(&expected, RESULT_BYTES_MAX);
    buf_init(&got, RESULT_BYTES_MAX);
    for (size_t i = 0; i < own_count; i++)
        json_print(own[i], &expected);
    bool is_aggregate = json_count(json_get(info, SLICE("aggregates"))) > 0;
    for (size_t i = 0; i < row_count; i++)
        json_print(result_of(rows[i], is_aggregate), &got);
    ASSERT(slice_equal(buf_view(&expected), buf_view(&got)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const Slice NAMES[] = {SLICE_INIT("id")};
    static const PartitionKeyDefinition BY_ID = {
        .kind = PARTITION_HASH_V2, .path_count = 1, .paths = {{.segments = NAMES, .count = 1}}};
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Slice text = slice_make(data, size);
    Query *query;
    Error err;
    if (query_parse_with(&arena, text, parse_fixed(&arena, PARAMETERS),
                         parse_fixed(&arena, COMPUTED), &query, &err) != STATUS_OK)
        return 0;
    QueryRoute route;
    query_route(query, &arena, &BY_ID, &route);
    Json plan;
    if (sdk_plan(query, &arena, &route, SDK_FEATURES_ALL, &plan, &err) != STATUS_OK) {
        check_refusal(&err);
        return 0;
    }
    ASSERT(json_count(json_get(plan, SLICE("queryRanges"))) > 0);
    Json info = json_get(plan, SLICE("queryInfo"));
    Slice sent = json_string(json_get(info, SLICE("rewrittenQuery")));
    if (sent.len > 0 && !has_text(text, SLICE("formattableorderbyquery"))) /* which place is it? */
        check_results(&arena, text, fill_in(&arena, sent), info);
    return 0;
}
