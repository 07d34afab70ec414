/* sdk_plan_test.c - plans for clients: what they are told to do, what they send, and that what they
 * send gives them the rows they expect. */
#include "query/eval/query_testing_int.h"
#include "query/sdk/sdk_plan.h"

static const char PARAMETERS[] = "[{\"name\":\"@n\",\"value\":3},{\"name\":\"@m\",\"value\":4},"
                                 "{\"name\":\"@s\",\"value\":\"x\"},{\"name\":\"@k\",\"value\":7}]";
static const char COMPUTED[] =
    "[{\"name\":\"lower\",\"query\":\"SELECT VALUE LOWER(c.name) FROM c\"}]";

static const Slice PK[] = {SLICE_INIT("pk")};

static const char FULL[] =
    "[{\"min\":\"\",\"max\":\"FF\",\"isMinInclusive\":true,\"isMaxInclusive\":false}]";
static const char LEAST[] =
    "[{\"min\":\"\",\"max\":\"\",\"isMinInclusive\":true,\"isMaxInclusive\":true}]";

static Status make_for(Arena *arena, const char *text, bool is_one_partition, SdkFeatures features,
                       Json *plan, Error *err)
{
    PartitionKeyDefinition definition = {
        .kind = PARTITION_HASH_V2, .path_count = 1, .paths = {{.segments = PK, .count = 1}}};
    Query *query;
    if (query_parse_with(arena, slice_from_cstr(text), parse_json(arena, PARAMETERS),
                         parse_json(arena, COMPUTED), &query, err) != STATUS_OK)
        fail_msg("%s\n  %s", text, err->message);
    QueryRoute route;
    query_route(query, arena, &definition, &route);
    route.is_one_partition = is_one_partition;
    return sdk_plan(query, arena, &route, features, plan, err);
}

static Status make(Arena *arena, const char *text, SdkFeatures features, Json *plan, Error *err)
{
    return make_for(arena, text, false, features, plan, err);
}

static Json info_of(Arena *arena, const char *text)
{
    Error err;
    Json plan;
    if (make(arena, text, SDK_FEATURES_ALL, &plan, &err) != STATUS_OK)
        fail_msg("%s\n  %s", text, err.message);
    return json_get(plan, SLICE("queryInfo"));
}

/* Whether a member says nothing: null, false, "None", "", [] or {}. */
static bool is_silent(Json value)
{
    switch (json_type(value)) {
    case JSON_UNDEFINED:
    case JSON_NULL:
        return true;
    case JSON_BOOL:
        return !json_bool(value);
    case JSON_STRING:
        return json_string(value).len == 0 || slice_equal(json_string(value), SLICE("None"));
    case JSON_ARRAY:
    case JSON_OBJECT:
        return json_count(value) == 0;
    case JSON_NUMBER:
        break;
    }
    return false;
}

/* What the plan says besides the rewritten query, as JSON without what is silent. */
static const char *told(Arena *arena, Json info)
{
    JsonBuilder b;
    json_build(&b, arena);
    json_begin_object(&b);
    for (JsonIter it = json_iter(info); json_next(&it);) {
        if (is_silent(it.value) || slice_equal(it.name, SLICE("rewrittenQuery")))
            continue;
        json_key(&b, it.name);
        json_add(&b, it.value);
    }
    json_end(&b);
    return arena_cstr(arena, json_print_arena(arena, json_built(&b)));
}

/* The rewritten query on one line, with 'filter' where a client puts its own. */
static const char *sent(Arena *arena, Json info, const char *filter)
{
    Slice place = SLICE("{documentdb-formattableorderbyquery-filter}");
    Slice text = json_string(json_get(info, SLICE("rewrittenQuery")));
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    while (text.len > 0) {
        bool found = slice_starts_with(text, place);
        if (found)
            buf_slice(&out, slice_from_cstr(filter));
        else
            buf_byte(&out, (uint8_t)(text.ptr[0] == '\n' ? ' ' : text.ptr[0]));
        text = slice_from(text, found ? place.len : 1);
    }
    return arena_cstr(arena, buf_view(&out));
}

typedef struct PlanCase {
    const char *query;
    const char *told;
    const char *sent; /* F: the place of the filter */
} PlanCase;

static void check(const PlanCase *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Json info = info_of(&arena, cases[i].query);
        const char *is_told = told(&arena, info);
        const char *is_sent = sent(&arena, info, "F");
        if (strcmp(is_told, cases[i].told) != 0 || strcmp(is_sent, cases[i].sent) != 0)
            fail_msg("%s\n  expected %s\n           %s\n  got      %s\n           %s",
                     cases[i].query, cases[i].told, cases[i].sent, is_told, is_sent);
    }
}

static void a_plain_query_is_sent_as_it_is(void **state)
{
    (void)state;
    static const PlanCase CASES[] = {
        {"SELECT * FROM c", "{}", ""},
        {"SELECT c.a, c.b AS x FROM c WHERE c.a > @n", "{}", ""},
        {"SELECT VALUE c.a FROM c", "{\"hasSelectValue\":true}", ""},
        {"SELECT VALUE t FROM c JOIN t IN c.tags", "{\"hasSelectValue\":true}", ""},
        {"SELECT c.id, s FROM c JOIN (SELECT VALUE t FROM t IN c.tags GROUP BY t) s", "{}", ""},
        {"SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c",
         "{\"hasSelectValue\":true}", ""},
        {"SELECT * FROM (SELECT c.a FROM c WHERE c.a = 1) AS s", "{}", ""},
        /* Whether there is such a function is not asked before the query runs. */
        {"SELECT udf.func(1) as x FROM Root r", "{}", ""},
        {"SELECT VALUE c.a FROM c WHERE (udf.f(c.a) + 2) = 4 AND udf.g([1], {\"a\": c})",
         "{\"hasSelectValue\":true}", ""},
        /* Without a container every partition would say the same. */
        {"SELECT 1", "{}", ""},
        {"SELECT TOP 1 VALUE COUNT(1)", "{\"hasSelectValue\":true}", ""},
        {"SELECT DISTINCT VALUE x FROM x IN (SELECT VALUE [2, 1])", "{\"hasSelectValue\":true}",
         ""},
    };
    check(CASES, ARRAY_COUNT(CASES));
}

static void rows_are_sent_with_their_sort_keys(void **state)
{
    (void)state;
#define ONE "\"orderBy\":[\"Ascending\"],\"orderByExpressions\":[\"c.a\"]"
    static const PlanCase CASES[] = {
        {"SELECT * FROM c ORDER BY c.a", "{" ONE "}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c WHERE (F) "
         "ORDER BY c.a"},
        {"select * from root r where r.b = 'x' order by r.a asc, r.b.c desc",
         "{\"orderBy\":[\"Ascending\",\"Descending\"],"
         "\"orderByExpressions\":[\"r.a\",\"r.b.c\"]}",
         "SELECT r._rid, [{\"item\": r.a}, {\"item\": r.b.c}] AS orderByItems, r AS payload "
         "FROM root AS r WHERE ((r.b = \"x\") AND (F)) ORDER BY r.a, r.b.c DESC"},
        {"SELECT c.a, c.b.d AS x, 1 + @n, c['e f'] FROM c ORDER BY c.a", "{" ONE "}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, {\"a\": c.a, \"x\": c.b.d, "
         "\"$1\": (1 + @n), \"e f\": c[\"e f\"]} AS payload FROM c WHERE (F) ORDER BY c.a"},
        {"SELECT udf.f(c.b) FROM c WHERE udf.g() ORDER BY c.a", "{" ONE "}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, {\"$1\": udf.f(c.b)} AS payload FROM c "
         "WHERE (udf.g() AND (F)) ORDER BY c.a"},
        /* What is undefined is no result of SELECT VALUE. */
        {"SELECT VALUE c.b FROM c ORDER BY c.a", "{" ONE ",\"hasSelectValue\":true}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.b AS payload FROM c "
         "WHERE ((F) AND IS_DEFINED(c.b)) ORDER BY c.a"},
        {"SELECT VALUE c.b FROM c WHERE c.d OR c.e ORDER BY c.a",
         "{" ONE ",\"hasSelectValue\":true}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.b AS payload FROM c "
         "WHERE (((c.d OR c.e) AND (F)) AND IS_DEFINED(c.b)) ORDER BY c.a"},
        /* Names that are reserved, and parameters, stay as they are. */
        {"SELECT * FROM c WHERE c.s = @s ORDER BY c['order']",
         "{\"orderBy\":[\"Ascending\"],\"orderByExpressions\":[\"c[\\\"order\\\"]\"]}",
         "SELECT c._rid, [{\"item\": c[\"order\"]}] AS orderByItems, c AS payload FROM c "
         "WHERE ((c.s = @s) AND (F)) ORDER BY c[\"order\"]"},
        {"SELECT * FROM c ORDER BY c[@s]",
         "{\"orderBy\":[\"Ascending\"],\"orderByExpressions\":[\"c[@s]\"]}",
         "SELECT c._rid, [{\"item\": c[@s]}] AS orderByItems, c AS payload FROM c WHERE (F) "
         "ORDER BY c[@s]"},
        /* A computed property is asked for by its name, for its expression is the server's. */
        {"SELECT VALUE c.lower FROM c WHERE c.lower != 'x' ORDER BY c.lower DESC",
         "{\"orderBy\":[\"Descending\"],\"orderByExpressions\":[\"c.lower\"],"
         "\"hasSelectValue\":true}",
         "SELECT c._rid, [{\"item\": c.lower}] AS orderByItems, c.lower AS payload FROM c "
         "WHERE (((c.lower != \"x\") AND (F)) AND IS_DEFINED(c.lower)) ORDER BY c.lower DESC"},
        /* So are subqueries, as they were written. */
        {"SELECT c.id, ARRAY(SELECT VALUE t FROM t IN c.tags WHERE t > 1) AS ts FROM c "
         "WHERE ALL(SELECT 1 FROM t IN c.tags WHERE t > 0) ORDER BY c.a",
         "{" ONE "}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, {\"id\": c.id, \"ts\": ARRAY(SELECT "
         "VALUE t FROM t IN c.tags WHERE (t > 1))} AS payload FROM c "
         "WHERE (ALL(SELECT 1 FROM t IN c.tags WHERE (t > 0)) AND (F)) ORDER BY c.a"},
        {"SELECT c.id, t FROM c JOIN t IN c.tags ORDER BY c.a", "{" ONE "}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, {\"id\": c.id, \"t\": t} AS payload "
         "FROM c JOIN t IN c.tags WHERE (F) ORDER BY c.a"},
    };
    check(CASES, ARRAY_COUNT(CASES));
#undef ONE
}

static void rows_that_are_no_items_have_the_id_of_theirs(void **state)
{
    (void)state;
#define ORDERED(path) "{\"orderBy\":[\"Ascending\"],\"orderByExpressions\":[\"" path "\"]}"
    static const PlanCase CASES[] = {
        {"SELECT * FROM x IN c.list ORDER BY x.a", ORDERED("x.a"),
         "SELECT _DOCUMENT_RID() AS _rid, [{\"item\": x.a}] AS orderByItems, x AS payload "
         "FROM x IN c.list WHERE (F) ORDER BY x.a"},
        {"SELECT * FROM c.sub ORDER BY sub.a", ORDERED("sub.a"),
         "SELECT _DOCUMENT_RID() AS _rid, [{\"item\": sub.a}] AS orderByItems, sub AS payload "
         "FROM c.sub WHERE (F) ORDER BY sub.a"},
        {"SELECT * FROM (SELECT VALUE c FROM c WHERE c.b = 1) AS s ORDER BY s.a", ORDERED("s.a"),
         "SELECT s._rid, [{\"item\": s.a}] AS orderByItems, s AS payload "
         "FROM (SELECT VALUE c FROM c WHERE (c.b = 1)) AS s WHERE (F) ORDER BY s.a"},
        {"SELECT * FROM (SELECT VALUE c.sub FROM c) AS s ORDER BY s.a", ORDERED("s.a"),
         "SELECT _DOCUMENT_RID() AS _rid, [{\"item\": s.a}] AS orderByItems, s AS payload "
         "FROM (SELECT VALUE c.sub FROM c) AS s WHERE (F) ORDER BY s.a"},
    };
    check(CASES, ARRAY_COUNT(CASES));
#undef ORDERED
}

static void aggregates_are_sent_in_parts(void **state)
{
    (void)state;
    static const PlanCase CASES[] = {
        {"SELECT VALUE COUNT(1) FROM c", "{\"aggregates\":[\"Count\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": COUNT(1)}] FROM c"},
        {"SELECT VALUE SUM(c.a + 1) FROM c WHERE c.b = @n",
         "{\"aggregates\":[\"Sum\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": SUM((c.a + 1))}] FROM c WHERE (c.b = @n)"},
        {"SELECT VALUE AVG(c.a) FROM c", "{\"aggregates\":[\"Average\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": {\"sum\": SUM(c.a), \"count\": COUNT(c.a)}}] FROM c"},
        {"SELECT VALUE min(c.a) FROM c", "{\"aggregates\":[\"Min\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": min(c.a), \"item2\": {\"min\": MIN(c.a), \"count\": "
         "COUNT(c.a)}}] FROM c"},
        {"SELECT VALUE MAX(t) FROM c JOIN t IN c.tags",
         "{\"aggregates\":[\"Max\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": MAX(t), \"item2\": {\"max\": MAX(t), \"count\": COUNT(t)}}] "
         "FROM c JOIN t IN c.tags"},
        {"SELECT VALUE MAKELIST(c.a) FROM c",
         "{\"aggregates\":[\"MakeList\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": MAKELIST(c.a)}] FROM c"},
        {"SELECT VALUE MAKESET(c.a) FROM c",
         "{\"aggregates\":[\"MakeSet\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": MAKESET(c.a)}] FROM c"},
        {"SELECT VALUE COUNTIF(c.a = 1) FROM c",
         "{\"aggregates\":[\"CountIf\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": COUNTIF((c.a = 1))}] FROM c"},
        /* One row needs no order, has no double, and partitions do not know whether it is wanted.
         */
        {"SELECT DISTINCT TOP 2 VALUE COUNT(1) FROM c ORDER BY c.a",
         "{\"top\":2,\"aggregates\":[\"Count\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": COUNT(1)}] FROM c ORDER BY c.a"},
        {"SELECT VALUE COUNT(1) FROM c OFFSET 1 LIMIT 1",
         "{\"offset\":1,\"limit\":1,\"aggregates\":[\"Count\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": COUNT(1)}] FROM c"},
        {"SELECT COUNT(1) FROM c",
         "{\"groupByAliases\":[\"$1\"],\"groupByAliasToAggregateType\":{\"$1\":\"Count\"}}",
         "SELECT {\"$1\": {\"item\": COUNT(1)}} AS payload FROM c"},
        {"SELECT COUNT(1) AS n, AVG(c.a), 'x' AS x, MAX(c.a) FROM c",
         "{\"groupByAliases\":[\"n\",\"$1\",\"x\",\"$2\"],\"groupByAliasToAggregateType\":"
         "{\"n\":\"Count\",\"$1\":\"Average\",\"x\":null,\"$2\":\"Max\"}}",
         "SELECT {\"n\": {\"item\": COUNT(1)}, \"$1\": {\"item\": {\"sum\": SUM(c.a), \"count\": "
         "COUNT(c.a)}}, \"x\": \"x\", \"$2\": {\"item\": MAX(c.a), \"item2\": {\"max\": MAX(c.a), "
         "\"count\": COUNT(c.a)}}} AS payload FROM c"},
    };
    check(CASES, ARRAY_COUNT(CASES));
}

static void groups_are_sent_with_their_keys(void **state)
{
    (void)state;
    static const PlanCase CASES[] = {
        {"SELECT c.a, COUNT(1) AS n, MIN(c.b) FROM c GROUP BY c.a",
         "{\"groupByExpressions\":[\"c.a\"],\"groupByAliases\":[\"a\",\"n\",\"$1\"],"
         "\"groupByAliasToAggregateType\":{\"a\":null,\"n\":\"Count\",\"$1\":\"Min\"}}",
         "SELECT [{\"item\": c.a}] AS groupByItems, {\"a\": c.a, \"n\": {\"item\": COUNT(1)}, "
         "\"$1\": {\"item\": MIN(c.b), \"item2\": {\"min\": MIN(c.b), \"count\": COUNT(c.b)}}} "
         "AS payload FROM c GROUP BY c.a"},
        {"SELECT VALUE AVG(c.b) FROM c WHERE c.b > 0 GROUP BY c.a, LOWER(c.d)",
         "{\"groupByExpressions\":[\"c.a\",\"LOWER(c.d)\"],\"aggregates\":[\"Average\"],"
         "\"hasSelectValue\":true}",
         "SELECT [{\"item\": c.a}, {\"item\": LOWER(c.d)}] AS groupByItems, [{\"item\": {\"sum\": "
         "SUM(c.b), \"count\": COUNT(c.b)}}] AS payload FROM c WHERE (c.b > 0) "
         "GROUP BY c.a, LOWER(c.d)"},
        {"SELECT VALUE {\"x\": c.a} FROM c GROUP BY c.a",
         "{\"groupByExpressions\":[\"c.a\"],\"hasSelectValue\":true}",
         "SELECT [{\"item\": c.a}] AS groupByItems, {\"x\": c.a} AS payload FROM c GROUP BY c.a"},
        {"SELECT TOP @n c.a FROM c GROUP BY c.a",
         "{\"top\":3,\"groupByExpressions\":[\"c.a\"],\"groupByAliases\":[\"a\"],"
         "\"groupByAliasToAggregateType\":{\"a\":null}}",
         "SELECT [{\"item\": c.a}] AS groupByItems, {\"a\": c.a} AS payload FROM c GROUP BY c.a"},
        {"SELECT c.lower, COUNT(1) AS n FROM c GROUP BY c.lower OFFSET @n LIMIT @m",
         "{\"offset\":3,\"limit\":4,\"groupByExpressions\":[\"c.lower\"],"
         "\"groupByAliases\":[\"lower\",\"n\"],"
         "\"groupByAliasToAggregateType\":{\"lower\":null,\"n\":\"Count\"}}",
         "SELECT [{\"item\": c.lower}] AS groupByItems, {\"lower\": c.lower, \"n\": {\"item\": "
         "COUNT(1)}} AS payload FROM c GROUP BY c.lower"},
        /* Groups that show their keys are distinct. */
        {"SELECT DISTINCT c.b, c.a, COUNT(1) AS n FROM c GROUP BY c.a, c.b",
         "{\"groupByExpressions\":[\"c.a\",\"c.b\"],\"groupByAliases\":[\"b\",\"a\",\"n\"],"
         "\"groupByAliasToAggregateType\":{\"b\":null,\"a\":null,\"n\":\"Count\"}}",
         "SELECT [{\"item\": c.a}, {\"item\": c.b}] AS groupByItems, {\"b\": c.b, \"a\": c.a, "
         "\"n\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.a, c.b"},
    };
    check(CASES, ARRAY_COUNT(CASES));
}

static void limits_and_duplicates_are_left_to_the_client(void **state)
{
    (void)state;
    static const PlanCase CASES[] = {
        {"SELECT TOP 5 * FROM c", "{\"top\":5}", ""},
        {"SELECT TOP @n * FROM c", "{\"top\":3}", ""},
        {"SELECT TOP 0 * FROM c", "{\"top\":0}", ""},
        {"SELECT * FROM c OFFSET 1 LIMIT 2", "{\"offset\":1,\"limit\":2}",
         "SELECT * FROM c OFFSET 0 LIMIT 3"},
        {"SELECT c.a FROM c WHERE c.b = 5 OFFSET @n LIMIT @m", "{\"offset\":3,\"limit\":4}",
         "SELECT c.a FROM c WHERE (c.b = 5) OFFSET 0 LIMIT 7"},
        {"SELECT * FROM c OFFSET 2147483647 LIMIT 2147483647",
         "{\"offset\":2147483647,\"limit\":2147483647}",
         "SELECT * FROM c OFFSET 0 LIMIT 4294967294"},
        {"SELECT TOP @n * FROM c ORDER BY c.a",
         "{\"top\":3,\"orderBy\":[\"Ascending\"],\"orderByExpressions\":[\"c.a\"]}",
         "SELECT TOP @n c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c WHERE (F) "
         "ORDER BY c.a"},
        {"SELECT * FROM c ORDER BY c.a OFFSET 10 LIMIT 5",
         "{\"offset\":10,\"limit\":5,\"orderBy\":[\"Ascending\"],"
         "\"orderByExpressions\":[\"c.a\"]}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c WHERE (F) "
         "ORDER BY c.a OFFSET 0 LIMIT 15"},
        {"SELECT DISTINCT c.a FROM c", "{\"distinctType\":\"Unordered\"}", ""},
        {"SELECT DISTINCT TOP 5 VALUE c.a FROM c",
         "{\"distinctType\":\"Unordered\",\"top\":5,\"hasSelectValue\":true}", ""},
        {"SELECT DISTINCT c.a FROM c OFFSET 1 LIMIT 2",
         "{\"distinctType\":\"Unordered\",\"offset\":1,\"limit\":2}", "SELECT DISTINCT c.a FROM c"},
        /* Rows with their ids are never the same, so none may be cut off before duplicates are. */
        {"SELECT DISTINCT TOP 5 VALUE c.a FROM c ORDER BY c.a",
         "{\"distinctType\":\"Ordered\",\"top\":5,\"orderBy\":[\"Ascending\"],"
         "\"orderByExpressions\":[\"c.a\"],\"hasSelectValue\":true}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c.a AS payload FROM c "
         "WHERE ((F) AND IS_DEFINED(c.a)) ORDER BY c.a"},
        {"SELECT DISTINCT c.b FROM c ORDER BY c.a OFFSET 1 LIMIT 2",
         "{\"distinctType\":\"Unordered\",\"offset\":1,\"limit\":2,\"orderBy\":[\"Ascending\"],"
         "\"orderByExpressions\":[\"c.a\"]}",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, {\"b\": c.b} AS payload FROM c "
         "WHERE (F) ORDER BY c.a"},
    };
    check(CASES, ARRAY_COUNT(CASES));
}

static void duplicates_follow_each_other_where_the_order_is_of_what_is_selected(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *type;
    } rows[] = {
        {"SELECT DISTINCT c.a FROM c ORDER BY c.a", "Ordered"},
        {"SELECT DISTINCT c.a, c.b FROM c ORDER BY c.b DESC, c.a", "Ordered"},
        {"SELECT DISTINCT c.a FROM c ORDER BY c.a, c.b", "Ordered"},
        {"SELECT DISTINCT VALUE c.lower FROM c ORDER BY c.lower", "Ordered"},
        {"SELECT DISTINCT c.a FROM c ORDER BY c.b, c.a", "Unordered"},
        {"SELECT DISTINCT c.a, c.b FROM c ORDER BY c.a", "Unordered"},
        {"SELECT DISTINCT c.a, c.a AS x FROM c ORDER BY c.a, c.b", "Unordered"},
        {"SELECT DISTINCT * FROM c ORDER BY c.a", "Unordered"},
        {"SELECT DISTINCT VALUE {\"a\": c.a} FROM c ORDER BY c.a", "Unordered"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Json type = json_get(info_of(&arena, rows[i].query), SLICE("distinctType"));
        if (!slice_equal(json_string(type), slice_from_cstr(rows[i].type)))
            fail_msg("%s is %.*s", rows[i].query, SLICE_ARG(json_string(type)));
    }
}

static void distinct_values_are_sent_to_be_counted(void **state)
{
    (void)state;
    static const PlanCase CASES[] = {
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c WHERE c.b = @n)",
         "{\"distinctType\":\"Unordered\",\"hasSelectValue\":true,"
         "\"dCountInfo\":{\"dCountAlias\":\"\"}}",
         "SELECT DISTINCT VALUE c.a FROM c WHERE (c.b = @n)"},
        {"SELECT COUNT(s) AS n FROM (SELECT DISTINCT c.a, c.b FROM c) AS s",
         "{\"distinctType\":\"Unordered\",\"dCountInfo\":{\"dCountAlias\":\"n\"}}",
         "SELECT DISTINCT c.a, c.b FROM c"},
        {"SELECT COUNT(@n) FROM (SELECT DISTINCT c.lower FROM c) AS s",
         "{\"distinctType\":\"Unordered\",\"dCountInfo\":{\"dCountAlias\":\"$1\"}}",
         "SELECT DISTINCT c.lower FROM c"},
    };
    check(CASES, ARRAY_COUNT(CASES));
}

/* One key is in one partition, whose answer is the result; only its limit is still counted. */
static void one_key_needs_less(void **state)
{
    (void)state;
    static const PlanCase CASES[] = {
        {"SELECT * FROM c WHERE c.pk = 'x' OFFSET 1 LIMIT 2", "{}", ""},
        {"SELECT TOP 5 * FROM c WHERE c.pk = @k", "{\"top\":5}", ""},
        {"SELECT DISTINCT c.a FROM c WHERE c.pk = 'x' OFFSET 1 LIMIT 2",
         "{\"distinctType\":\"Unordered\",\"offset\":1,\"limit\":2}",
         "SELECT DISTINCT c.a FROM c WHERE (c.pk = \"x\")"},
        {"SELECT VALUE MIN(c.a) FROM c WHERE c.pk = 'x'",
         "{\"aggregates\":[\"Min\"],\"hasSelectValue\":true}",
         "SELECT VALUE [{\"item\": MIN(c.a), \"item2\": {\"min\": MIN(c.a), \"count\": "
         "COUNT(c.a)}}] FROM c WHERE (c.pk = \"x\")"},
        /* Equal arrays need not follow each other, so that clients do not compare them. */
        {"SELECT DISTINCT VALUE c.a FROM c WHERE c.pk = 'x' ORDER BY c.a",
         "{\"hasSelectValue\":true}", ""},
        {"SELECT DISTINCT TOP 2 c.a FROM c WHERE c.pk = 'x' ORDER BY c.b DESC", "{}", ""},
        /* What no client could put together needs not to be. */
        {"SELECT VALUE MIN(c.a) + 1 FROM c WHERE c.pk = 'x'", "{\"hasSelectValue\":true}", ""},
        {"SELECT c.a FROM c WHERE c.pk = 'x' GROUP BY c.a ORDER BY c.a", "{}", ""},
    };
    check(CASES, ARRAY_COUNT(CASES));
}

static void plans_that_no_client_can_follow_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *message;
    } rows[] = {
        {"SELECT VALUE MIN(c.a) + 1 FROM c", "Compositions of aggregates"},
        {"SELECT c.a, {\"n\": COUNT(1)} AS x FROM c GROUP BY c.a", "Compositions of aggregates"},
        {"SELECT c.a FROM c GROUP BY c.a ORDER BY c.a", "ORDER BY together with GROUP BY"},
        {"SELECT DISTINCT c.a FROM c GROUP BY c.a, c.b", "DISTINCT together with GROUP BY"},
        {"SELECT DISTINCT COUNT(1) AS n FROM c GROUP BY c.a", "DISTINCT together with GROUP BY"},
        {"SELECT * FROM (SELECT DISTINCT c.a FROM c) AS s", "A subquery over the container"},
        {"SELECT VALUE SUM(s.n) FROM (SELECT COUNT(1) AS n FROM c GROUP BY c.a) AS s",
         "A subquery over the container"},
        {"SELECT VALUE COUNT(s.a) FROM (SELECT DISTINCT c.a FROM c) AS s",
         "Aggregates over a subquery with DISTINCT"},
        {"SELECT TOP 1 VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c) AS s",
         "Aggregates over a subquery with DISTINCT"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c) AS s WHERE s.a > 1",
         "Aggregates over a subquery with DISTINCT"},
        {"SELECT VALUE COUNT(1) FROM x IN (SELECT DISTINCT VALUE c.list FROM c)",
         "Aggregates over a subquery with DISTINCT"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE x.a FROM (SELECT DISTINCT c.a FROM c) "
         "AS x) AS s",
         "Aggregates over a subquery with DISTINCT"},
        {"SELECT * FROM c OFFSET 2147483648 LIMIT 1", "The OFFSET count value exceeds"},
        {"SELECT * FROM c OFFSET 1 LIMIT 2147483648", "The LIMIT count value exceeds"},
        {"SELECT TOP 5 * FROM c ORDER BY VectorDistance(c.v, [1])", "SC2990"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Error err = {0};
        Json plan;
        Status status = make(&arena, rows[i].query, SDK_FEATURES_ALL, &plan, &err);
        if (status != STATUS_BAD_REQUEST || strstr(err.message, rows[i].message) == NULL)
            fail_msg("%s: %s", rows[i].query, status == STATUS_OK ? "planned" : err.message);
    }
}

/* One partition sees all that a subquery groups; and whole documents are never equal, whichever
 * partitions they are in. */
static void subqueries_over_the_container_are_planned(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *rewritten;
        bool is_for_several; /* partitions, too */
    } rows[] = {
        {"SELECT p.a FROM (SELECT DISTINCT * FROM r) p WHERE p.a > 1", "", true},
        {"SELECT p.a FROM (SELECT DISTINCT VALUE r FROM r) p WHERE p.a > 1", "", true},
        {"SELECT * FROM (SELECT DISTINCT c.a FROM c) AS s", "", false},
        {"SELECT * FROM (SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a) AS s", "", false},
        {"SELECT VALUE COUNT(1) FROM (SELECT c.a FROM c GROUP BY c.a) AS s",
         "SELECT VALUE [{\"item\": COUNT(1)}] FROM (SELECT c.a FROM c GROUP BY c.a) AS s", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        for (int is_one = 0; is_one < 2; is_one++) {
            AUTO(arena_done) Arena arena;
            arena_init(&arena, 64 << 10);
            Error err = {0};
            Json plan;
            bool is_planned = make_for(&arena, rows[i].query, is_one != 0, SDK_FEATURES_ALL, &plan,
                                       &err) == STATUS_OK;
            if (is_planned != (is_one != 0 || rows[i].is_for_several))
                fail_msg("%s: %s", rows[i].query, err.message);
            if (is_planned)
                assert_string_equal(sent(&arena, json_get(plan, SLICE("queryInfo")), "F"),
                                    rows[i].rewritten);
        }
    }
}

static void features_that_are_missing_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *features;
        const char *missing; /* NULL if nothing is missing */
    } rows[] = {
        {"SELECT * FROM c", "", NULL},
        {"SELECT 1", "", NULL},
        {"SELECT * FROM c ORDER BY c.a", "", "OrderBy"},
        {"SELECT * FROM c ORDER BY c.a", "OrderBy", NULL},
        {"SELECT * FROM c ORDER BY c.a", " top,ORDERBY , Other", NULL},
        {"SELECT * FROM c ORDER BY c.a, c.b", "OrderBy", "MultipleOrderBy"},
        {"SELECT * FROM c ORDER BY c.a, c.b", "MultipleOrderBy", NULL},
        {"SELECT TOP 1 * FROM c ORDER BY c.a", "", "OrderBy Top"},
        {"SELECT * FROM c OFFSET 1 LIMIT 1", "Top", "OffsetAndLimit"},
        {"SELECT * FROM c WHERE c.pk = 'x' OFFSET 1 LIMIT 1", "", NULL},
        {"SELECT DISTINCT c.a FROM c", "OrderBy", "Distinct"},
        {"SELECT VALUE COUNT(1) FROM c", "NonValueAggregate", "Aggregate"},
        {"SELECT COUNT(1) FROM c", "Aggregate", "NonValueAggregate"},
        {"SELECT COUNT(1), SUM(c.a) FROM c", "", "NonValueAggregate MultipleAggregates"},
        {"SELECT c.a, COUNT(1), SUM(c.b) FROM c GROUP BY c.a", "Aggregate, OrderBy",
         "NonValueAggregate MultipleAggregates GroupBy"},
        {"SELECT c.a FROM c GROUP BY c.a", "GroupBy", NULL},
        {"SELECT VALUE MAKESET(c.a) FROM c", "Aggregate", "ListAndSetAggregate"},
        {"SELECT VALUE COUNTIF(c.a) FROM c", "Aggregate", "CountIf"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.a FROM c)", "Distinct,Aggregate", "DCount"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Error err = {0};
        Json plan;
        SdkFeatures features = sdk_features_read(slice_from_cstr(rows[i].features));
        Status status = make(&arena, rows[i].query, features, &plan, &err);
        const char *names = strstr(err.message, "support: ");
        bool right = rows[i].missing == NULL ? status == STATUS_OK
                                             : status == STATUS_BAD_REQUEST && names != NULL &&
                                                   strcmp(names + 9, rows[i].missing) == 0;
        if (!right)
            fail_msg("%s with '%s': %s", rows[i].query, rows[i].features,
                     status == STATUS_OK ? "planned" : err.message);
    }
    assert_int_equal(sdk_features_read(SLICE("Aggregate,NonValueAggregate,MultipleAggregates,"
                                             "ListAndSetAggregate,CountIf,DCount,Distinct,GroupBy,"
                                             "OrderBy,MultipleOrderBy,OffsetAndLimit,Top")),
                     SDK_FEATURES_ALL);
}

static void ranges_are_hexadecimal(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        const char *ranges;
    } rows[] = {
        {"SELECT * FROM c", FULL},
        {"SELECT * FROM c WHERE c.pk > 1", FULL},
        /* The vectors of the protocol. */
        {"SELECT * FROM c WHERE c.pk = null", "[{\"min\":\"378867E4430E67857ACE5C908374FE16\","
                                              "\"max\":\"378867E4430E67857ACE5C908374FE16\","
                                              "\"isMinInclusive\":true,\"isMaxInclusive\":true}]"},
        {"SELECT 1", LEAST},
        {"SELECT VALUE COUNT(1)", LEAST},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Error err;
        Json plan;
        assert_int_equal(make(&arena, rows[i].query, 0, &plan, &err), STATUS_OK);
        Slice ranges = json_print_arena(&arena, json_get(plan, SLICE("queryRanges")));
        assert_string_equal(arena_cstr(&arena, ranges), rows[i].ranges);
    }
}

/* Ranges that are given, and none at all. */
static void every_kind_of_range_is_told(void **state)
{
    (void)state;
    static const QueryRange RANGES[] = {
        {.from = SLICE_INIT("\x01\xAB"), .to = SLICE_INIT("\x01\xAB\xFF")},
        {.from = SLICE_INIT("\x02"), .to = SLICE_INIT("\x02\xFF"), .is_key = true},
    };
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Error err;
    Query *query;
    Json plan;
    assert_int_equal(
        query_parse(&arena, SLICE("SELECT VALUE COUNT(1) FROM c"), JSON_NONE, &query, &err),
        STATUS_OK);
    QueryRoute several = {.ranges = RANGES, .count = 2};
    assert_int_equal(sdk_plan(query, &arena, &several, 0, &plan, &err), STATUS_BAD_REQUEST);
    assert_int_equal(sdk_plan(query, &arena, &several, SDK_FEATURES_ALL, &plan, &err), STATUS_OK);
    assert_string_equal(
        arena_cstr(&arena, json_print_arena(&arena, json_get(plan, SLICE("queryRanges")))),
        "[{\"min\":\"01AB\",\"max\":\"01ABFF\",\"isMinInclusive\":true,\"isMaxInclusive\":false},"
        "{\"min\":\"02\",\"max\":\"02\",\"isMinInclusive\":true,\"isMaxInclusive\":true}]");
    QueryRoute none = {0};
    assert_int_equal(sdk_plan(query, &arena, &none, SDK_FEATURES_ALL, &plan, &err), STATUS_OK);
    assert_string_equal(
        arena_cstr(&arena, json_print_arena(&arena, json_get(plan, SLICE("queryRanges")))), LEAST);
}

static void a_plan_has_every_member(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Error err;
    Json plan;
    assert_int_equal(make(&arena, "SELECT * FROM c", 0, &plan, &err), STATUS_OK);
    Slice text = json_print_arena(&arena, plan);
    assert_string_equal(
        arena_cstr(&arena, text),
        "{\"partitionedQueryExecutionInfoVersion\":2,\"queryInfo\":{\"distinctType\":\"None\","
        "\"top\":null,\"offset\":null,\"limit\":null,\"orderBy\":[],\"orderByExpressions\":[],"
        "\"groupByExpressions\":[],\"groupByAliases\":[],\"aggregates\":[],"
        "\"groupByAliasToAggregateType\":{},\"rewrittenQuery\":\"\",\"hasSelectValue\":false,"
        "\"dCountInfo\":null,\"hasNonStreamingOrderBy\":false},\"queryRanges\":[{\"min\":\"\","
        "\"max\":\"FF\",\"isMinInclusive\":true,\"isMaxInclusive\":false}]}");
}

/* What a partition answers to the rewritten query. */
static void what_is_sent_gives_rows_that_clients_understand(void **state)
{
    (void)state;
    static const char DOCUMENTS[] =
        "[{\"id\":\"1\",\"_rid\":\"r1\",\"a\":2,\"b\":\"x\",\"name\":\"Z\",\"list\":[{\"k\":2}]},"
        "{\"id\":\"2\",\"_rid\":\"r2\",\"a\":1,\"b\":\"y\",\"name\":\"A\","
        "\"list\":[{\"k\":3},{\"k\":1}]},"
        "{\"id\":\"3\",\"_rid\":\"r3\",\"b\":\"y\"}]";
    static const struct {
        const char *query;
        const char *documents;
        const char *rows;
    } cases[] = {
        {"SELECT VALUE c.id FROM c ORDER BY c.a", DOCUMENTS,
         "[{\"_rid\":\"r3\",\"orderByItems\":[{}],\"payload\":\"3\"},"
         "{\"_rid\":\"r2\",\"orderByItems\":[{\"item\":1}],\"payload\":\"2\"},"
         "{\"_rid\":\"r1\",\"orderByItems\":[{\"item\":2}],\"payload\":\"1\"}]"},
        {"SELECT VALUE c.a FROM c ORDER BY c.b DESC", DOCUMENTS,
         "[{\"_rid\":\"r2\",\"orderByItems\":[{\"item\":\"y\"}],\"payload\":1},"
         "{\"_rid\":\"r1\",\"orderByItems\":[{\"item\":\"x\"}],\"payload\":2}]"},
        {"SELECT TOP 1 c.id, c.a FROM c ORDER BY c.lower", DOCUMENTS,
         "[{\"_rid\":\"r3\",\"orderByItems\":[{}],\"payload\":{\"id\":\"3\"}}]"},
        {"SELECT VALUE x.k FROM x IN c.list ORDER BY x.k", DOCUMENTS,
         "[{\"_rid\":\"r2\",\"orderByItems\":[{\"item\":1}],\"payload\":1},"
         "{\"_rid\":\"r1\",\"orderByItems\":[{\"item\":2}],\"payload\":2},"
         "{\"_rid\":\"r2\",\"orderByItems\":[{\"item\":3}],\"payload\":3}]"},
        {"SELECT VALUE COUNT(c.a) FROM c", DOCUMENTS, "[[{\"item\":2}]]"},
        {"SELECT VALUE COUNT(c.a) FROM c", "[]", "[[{\"item\":0}]]"},
        {"SELECT VALUE SUM(c.a) FROM c", DOCUMENTS, "[[{\"item\":3}]]"},
        {"SELECT VALUE SUM(c.b) FROM c", DOCUMENTS, "[[{}]]"},
        {"SELECT VALUE AVG(c.a) FROM c", DOCUMENTS, "[[{\"item\":{\"sum\":3,\"count\":2}}]]"},
        {"SELECT VALUE AVG(c.b) FROM c", DOCUMENTS, "[[{\"item\":{\"count\":3}}]]"},
        {"SELECT VALUE MIN(c.a) FROM c", DOCUMENTS,
         "[[{\"item\":1,\"item2\":{\"min\":1,\"count\":2}}]]"},
        {"SELECT VALUE MAX(c.a) FROM c", "[]", "[[{\"item2\":{\"count\":0}}]]"},
        {"SELECT VALUE MAKELIST(c.a) FROM c", DOCUMENTS, "[[{\"item\":[2,1]}]]"},
        {"SELECT VALUE MAKESET(c.b) FROM c", DOCUMENTS, "[[{\"item\":[\"x\",\"y\"]}]]"},
        {"SELECT COUNT(1) AS n, AVG(c.a), 5 AS five FROM c", DOCUMENTS,
         "[{\"payload\":{\"n\":{\"item\":3},\"$1\":{\"item\":{\"sum\":3,\"count\":2}},"
         "\"five\":5}}]"},
        {"SELECT c.b, COUNT(1) AS n, MIN(c.a) AS m FROM c GROUP BY c.b", DOCUMENTS,
         "[{\"groupByItems\":[{\"item\":\"x\"}],\"payload\":{\"b\":\"x\",\"n\":{\"item\":1},"
         "\"m\":{\"item\":2,\"item2\":{\"min\":2,\"count\":1}}}},"
         "{\"groupByItems\":[{\"item\":\"y\"}],\"payload\":{\"b\":\"y\",\"n\":{\"item\":2},"
         "\"m\":{\"item\":1,\"item2\":{\"min\":1,\"count\":1}}}}]"},
        {"SELECT VALUE c.a FROM c GROUP BY c.a", DOCUMENTS,
         "[{\"groupByItems\":[{\"item\":2}],\"payload\":2},"
         "{\"groupByItems\":[{\"item\":1}],\"payload\":1},{\"groupByItems\":[{}]}]"},
        {"SELECT VALUE AVG(c.a) FROM c GROUP BY {\"b\": c.b}", DOCUMENTS,
         "[{\"groupByItems\":[{\"item\":{\"b\":\"x\"}}],"
         "\"payload\":[{\"item\":{\"sum\":2,\"count\":1}}]},"
         "{\"groupByItems\":[{\"item\":{\"b\":\"y\"}}],"
         "\"payload\":[{\"item\":{\"sum\":1,\"count\":1}}]}]"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.b FROM c)", DOCUMENTS,
         "[\"x\",\"y\"]"},
        {"SELECT VALUE c.id FROM c OFFSET 1 LIMIT 1", DOCUMENTS, "[\"1\",\"2\"]"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        const char *text = sent(&arena, info_of(&arena, cases[i].query), "true");
        const char *rows =
            run_computed(&arena, text, cases[i].documents, PARAMETERS, COMPUTED, (QueryOptions){0});
        if (strcmp(rows, cases[i].rows) != 0)
            fail_msg("%s\n  %s\n  expected %s\n  got      %s", cases[i].query, text, cases[i].rows,
                     rows);
    }
}

/* A filter that leads to where a client was, and what the parentheses around it are for. */
static void a_client_may_put_any_filter_in_its_place(void **state)
{
    (void)state;
    static const char DOCUMENTS[] = "[{\"id\":\"1\",\"_rid\":\"r1\",\"a\":2,\"b\":1},"
                                    "{\"id\":\"2\",\"_rid\":\"r2\",\"a\":3,\"b\":1},"
                                    "{\"id\":\"3\",\"_rid\":\"r3\",\"a\":3,\"b\":2}]";
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    Json info = info_of(&arena, "SELECT VALUE c.id FROM c WHERE c.b = 1 ORDER BY c.a");
    const char *text = sent(&arena, info, "c.a > 2 OR IS_STRING(c.a)");
    assert_string_equal(run_query(&arena, text, DOCUMENTS, PARAMETERS, (QueryOptions){0}),
                        "[{\"_rid\":\"r2\",\"orderByItems\":[{\"item\":3}],\"payload\":\"2\"}]");
}

/* The rewritten query may be longer, deeper, and have more of what is counted. */
static void a_rewritten_query_beyond_a_bound_is_refused(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 20);
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    buf_format(&text, "SELECT VALUE ");
    for (int i = 0; i < 198; i++)
        buf_format(&text, "[");
    buf_format(&text, "c.a");
    for (int i = 0; i < 198; i++)
        buf_format(&text, "]");
    buf_format(&text, " FROM c ORDER BY c.a%c", 0);
    Error err;
    Json plan;
    assert_int_equal(make(&arena, text.ptr, SDK_FEATURES_ALL, &plan, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "too complex to be rewritten"));
    assert_non_null(strstr(err.message, "SC1030"));

    /* Six joins, and six again in IS_DEFINED. */
    const char *joins = "SELECT VALUE ARRAY(SELECT VALUE 1 FROM t IN c.t JOIN u IN c.t JOIN v IN "
                        "c.t JOIN w IN c.t JOIN x IN c.t JOIN y IN c.t JOIN z IN c.t) FROM c "
                        "ORDER BY c.a";
    assert_int_equal(make(&arena, joins, SDK_FEATURES_ALL, &plan, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "SC3002"));

    buf_reset(&text);
    buf_format(&text, "SELECT VALUE MIN(c[\"");
    for (size_t i = 0; i < QUERY_TEXT_BYTES_MAX / 2; i++)
        buf_byte(&text, 'x');
    buf_format(&text, "\"]) FROM c%c", 0);
    assert_int_equal(make(&arena, text.ptr, SDK_FEATURES_ALL, &plan, &err), STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "SC3020"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_query_is_sent_as_it_is),
        cmocka_unit_test(rows_are_sent_with_their_sort_keys),
        cmocka_unit_test(rows_that_are_no_items_have_the_id_of_theirs),
        cmocka_unit_test(aggregates_are_sent_in_parts),
        cmocka_unit_test(groups_are_sent_with_their_keys),
        cmocka_unit_test(limits_and_duplicates_are_left_to_the_client),
        cmocka_unit_test(duplicates_follow_each_other_where_the_order_is_of_what_is_selected),
        cmocka_unit_test(distinct_values_are_sent_to_be_counted),
        cmocka_unit_test(one_key_needs_less),
        cmocka_unit_test(plans_that_no_client_can_follow_are_refused),
        cmocka_unit_test(subqueries_over_the_container_are_planned),
        cmocka_unit_test(features_that_are_missing_are_named),
        cmocka_unit_test(ranges_are_hexadecimal),
        cmocka_unit_test(every_kind_of_range_is_told),
        cmocka_unit_test(a_plan_has_every_member),
        cmocka_unit_test(what_is_sent_gives_rows_that_clients_understand),
        cmocka_unit_test(a_client_may_put_any_filter_in_its_place),
        cmocka_unit_test(a_rewritten_query_beyond_a_bound_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
