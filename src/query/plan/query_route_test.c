/* query_route_test.c - where queries look: tables of filters and their routes, and random filters
 * over random documents, of which none may match outside of its route. */
#include "base/test_seed.h"
#include "query/eval/query_testing_int.h"
#include "query/plan/query_route.h"

#include <math.h>
#include <stdlib.h>

static const char PARAMETERS[] =
    "[{\"name\":\"@p\",\"value\":7},{\"name\":\"@s\",\"value\":\"seven\"},"
    "{\"name\":\"@list\",\"value\":[1,\"a\",null]},{\"name\":\"@none\"},"
    "{\"name\":\"@yes\",\"value\":true}]";

static Query *parse(Arena *arena, const char *text)
{
    Error err;
    Query *query = NULL;
    if (query_parse(arena, slice_from_cstr(text), parse_json(arena, PARAMETERS), &query, &err) !=
        STATUS_OK)
        fail_msg("%s: %s", text, err.message);
    return query;
}

/* "/a/b /x": the paths of a key. */
static PartitionKeyDefinition define(Arena *arena, PartitionKind kind, const char *paths)
{
    PartitionKeyDefinition definition = {.kind = kind};
    Slice rest = slice_from_cstr(paths);
    while (rest.len > 0) {
        size_t position = 0;
        PropertyPath *path = &definition.paths[definition.path_count++];
        assert_true(property_path_parse(arena, slice_cut(&rest, ' '), path, &position));
    }
    return definition;
}

/* ---- routes as text ---- */

static void print_part(Json part, Buf *out)
{
    if (json_is(part, JSON_UNDEFINED))
        buf_slice(out, SLICE("{}"));
    else if (json_is(part, JSON_NUMBER) && json_number(part) == 0 && signbit(json_number(part)))
        buf_slice(out, SLICE("-0"));
    else
        json_print(part, out);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys of the ranges, with '*' for what a prefix leaves open, sorted as text. */
static const char *print_route(Arena *arena, const PartitionKeyDefinition *definition,
                               const QueryRoute *route)
{
    if (route->is_all)
        return "all";
    if (route->count == 0)
        return "nothing";
    char **texts = ARENA_NEW_ARRAY(arena, char *, route->count);
    for (size_t i = 0; i < route->count; i++) {
        const PartitionKey *key = &route->ranges[i].key;
        AUTO(buf_done) Buf text;
        buf_init(&text, 4096);
        for (size_t at = 0; at < definition->path_count; at++) {
            if (at > 0)
                buf_byte(&text, '/');
            if (at < key->count)
                print_part(key->parts[at], &text);
            else
                buf_byte(&text, '*');
        }
        texts[i] = arena_cstr(arena, buf_view(&text));
    }
    qsort(texts, route->count, sizeof(*texts), compare_texts);
    AUTO(buf_done) Buf all;
    buf_init(&all, 1 << 20);
    for (size_t i = 0; i < route->count; i++)
        buf_format(&all, "%s%s", i > 0 ? " " : "", texts[i]);
    return arena_cstr(arena, buf_view(&all));
}

/* Sorted, disjoint, and each the range of its key. */
static void check_ranges(const PartitionKeyDefinition *definition, const QueryRoute *route,
                         const char *query)
{
    assert_false(route->is_all && route->count > 0);
    assert_true(route->count <= QUERY_RANGES_MAX);
    for (size_t i = 0; i < route->count; i++) {
        const QueryRange *range = &route->ranges[i];
        Epk epk;
        epk_make(definition->kind, &range->key, &epk);
        bool is_good = slice_equal(epk_slice(&epk), range->from) &&
                       slice_starts_with(range->to, range->from) &&
                       range->to.len == range->from.len + 1 &&
                       (uint8_t)range->to.ptr[range->from.len] == 0xFF &&
                       range->is_key == (range->key.count == definition->path_count) &&
                       (i == 0 || slice_compare(range[-1].to, range->from) <= 0);
        if (!is_good)
            fail_msg("%s: range %zu of %zu is wrong", query, i, route->count);
    }
}

static const char *route_text(Arena *arena, PartitionKind kind, const char *paths,
                              const char *query)
{
    PartitionKeyDefinition definition = define(arena, kind, paths);
    QueryRoute route;
    query_route(parse(arena, query), arena, &definition, &route);
    check_ranges(&definition, &route, query);
    return print_route(arena, &definition, &route);
}

typedef struct RouteRow {
    const char *where; /* or a whole query */
    const char *expected;
} RouteRow;

static void check_rows(PartitionKind kind, const char *paths, const RouteRow *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        bool is_whole = strncmp(rows[i].where, "SELECT", 6) == 0;
        const char *query =
            is_whole ? rows[i].where
                     : arena_format(&arena, "SELECT * FROM c WHERE %s%c", rows[i].where, '\0').ptr;
        const char *got = route_text(&arena, kind, paths, query);
        if (strcmp(got, rows[i].expected) != 0)
            fail_msg("%s\n  expected %s\n  got      %s", query, rows[i].expected, got);
    }
}

#define CHECK_ROWS(kind, paths, rows) check_rows((kind), (paths), (rows), ARRAY_COUNT(rows))

static void a_filter_of_the_key_is_a_route(void **state)
{
    (void)state;
    static const RouteRow ROWS[] = {
        {"SELECT * FROM c", "all"},
        {"c.pk = 'a'", "\"a\""},
        {"'a' = c.pk", "\"a\""},
        {"c['pk'] = @p", "7"},
        {"c.pk = 1 + 2 * 3", "7"},
        {"c.pk = CONCAT('a', 'b')", "\"ab\""},
        {"c.pk = null", "null"},
        {"c.pk = -1.5", "-1.5"},
        {"c.pk = ''", "\"\""},
        {"c.pk = 'a' AND c.n > 1", "\"a\""},
        {"c.n > 1 AND (c.n < 5 AND (c.pk = 'a'))", "\"a\""},
        {"c.pk IN (1, 2, 3, 2)", "1 2 3"},
        {"c.pk IN (1, 'a', true, false, null, 2.0, {'x': 8}, [7])", "\"a\" 1 2 false null true {}"},
        {"c.pk IN (@p, @s)", "\"seven\" 7"},
        {"c.pk = 1 OR c.pk = 2", "1 2"},
        {"c.pk = 1 OR (c.pk = 2 AND c.n = 5) OR c.pk IN (3, 1)", "1 2 3"},
        {"c.pk = 1 AND c.pk = 2", "nothing"},
        {"c.pk IN (1, 2, 3) AND c.pk IN (2, 3, 4)", "2 3"},
        {"(c.pk = 1 OR c.pk = 2) AND (c.pk = 2 OR c.pk = 3)", "2"},
        {"c.pk", "true"},
        {"NOT c.pk", "false"},
        {"NOT (c.pk != 'a')", "\"a\""},
        {"NOT (c.pk != 'a' OR c.n = 1)", "\"a\""},
        {"NOT (c.pk != 'a' AND c.pk != 'b')", "\"a\" \"b\""},
        {"NOT (c.pk NOT IN (1, 2))", "1 2"},
        {"IS_BOOL(c.pk)", "false true"},
        {"IS_NULL(c.pk)", "null"},
        {"NOT IS_DEFINED(c.pk)", "{}"},
        {"ARRAY_CONTAINS([1, 2, 3], c.pk)", "1 2 3"},
        {"_TRY_ARRAY_CONTAINS([1, 2, 3], c.pk)", "1 2 3"},
        {"ARRAY_CONTAINS(@list, c.pk)", "\"a\" 1 null"},
        {"false", "nothing"},
        {"1", "nothing"},
        {"true", "all"},
        {"@yes", "all"},
        {"NOT true", "nothing"},
        {"c.pk = 1 OR false", "1"},
        {"c.pk = 1 OR true", "all"},
        {"SELECT VALUE COUNT(1) FROM c WHERE c.pk = 1", "1"},
        {"SELECT TOP 1 VALUE c.n FROM c WHERE c.pk = 1 ORDER BY c.n", "1"},
        {"SELECT c.n FROM c WHERE c.pk = 1 GROUP BY c.n", "1"},
    };
    CHECK_ROWS(PARTITION_HASH_V2, "/pk", ROWS);
    CHECK_ROWS(PARTITION_HASH_V1, "/pk", ROWS);
    CHECK_ROWS(PARTITION_MULTI_HASH, "/pk", ROWS);
}

static void what_tells_nothing_of_the_key_goes_everywhere(void **state)
{
    (void)state;
    static const RouteRow ROWS[] = {
        {"c.pk > 'a'", "all"},
        {"c.pk BETWEEN 1 AND 1", "all"},
        {"c.pk LIKE 'a'", "all"},
        {"c.pk != 'a'", "all"},
        {"c.pk NOT IN (1, 2)", "all"},
        {"NOT (c.pk = 'a')", "all"},
        {"NOT c.pk = 'a'", "all"},
        {"c.pk = 'a' OR c.n = 1", "all"},
        {"c.pk = c.n", "all"},
        {"c.pk IN ('a', c.n)", "all"},
        {"c.pk = 'a' = true", "all"},
        {"(c.pk = 'a') = true", "all"},
        {"c.pk = 'a' ? true : true", "all"},
        {"c.pk ?? 'a'", "all"},
        {"c.pk.x = 'a'", "all"},
        {"c.p = 'a'", "all"},
        {"c.x.pk = 'a'", "all"},
        {"c.pk[0] = 'a'", "all"},
        {"c[@s] = 'a'", "all"},
        {"c = 'a'", "all"},
        {"IS_DEFINED(c.pk)", "all"},
        {"IS_ARRAY(c.pk)", "all"},
        {"IS_OBJECT(c.pk)", "all"},
        {"IS_NUMBER(c.pk)", "all"},
        {"IS_STRING(c.pk)", "all"},
        {"IS_PRIMITIVE(c.pk)", "all"},
        {"NOT IS_NULL(c.pk)", "all"},
        {"NOT IS_BOOL(c.pk)", "all"},
        {"ARRAY_CONTAINS(c.pk, 1)", "all"},
        {"ARRAY_CONTAINS(c.list, c.pk)", "all"},
        {"NOT ARRAY_CONTAINS([1], c.pk)", "all"},
        {"c.pk = RAND()", "all"},
        {"LOWER(c.pk) = 'a'", "all"},
        {"ST_DISTANCE(c.pk, {'type': 'Point', 'coordinates': [71, 42]}) < 20000", "all"},
    };
    CHECK_ROWS(PARTITION_HASH_V2, "/pk", ROWS);
}

/* Keys of no item, and items whose keys hash to more than one place. */
static void values_are_those_that_keys_can_have(void **state)
{
    (void)state;
    static const RouteRow ROWS[] = {
        {"c.pk = undefined", "nothing"},
        {"c.pk = @none", "nothing"},
        {"c.pk IN (undefined, 1)", "1"},
        {"c.pk = 0", "-0 0"},
        {"c.pk = -0.0", "-0 0"},
        {"c.pk = 1 - 1", "-0 0"},
        {"c.pk IN (0, 1)", "-0 0 1"},
        {"c.pk = 0 AND c.pk = -0.0", "-0 0"},
        {"c.pk = 1e400", "nothing"},
        {"c.pk = 1", "1"},
        {"c.pk = 1.0", "1"},
        {"c.pk = 9007199254740993", "9007199254740993"},
        {"c.pk = {}", "{}"},
        {"c.pk = [1]", "{}"},
        {"c.pk = {'a': 1} AND c.pk = [2]", "{}"},
        {"c.pk = REPLICATE('x', 2049)", "nothing"},
        {"c.pk IN (REPLICATE('x', 2049), 1)", "1"},
        {"c.pk = '\xE4\xBD\xA0\xE5\xA5\xBD'", "\"\xE4\xBD\xA0\xE5\xA5\xBD\""},
    };
    CHECK_ROWS(PARTITION_HASH_V2, "/pk", ROWS);
    static const RouteRow V1[] = {
        {"c.pk = REPLICATE('x', 2049)", "nothing"},
        {"c.pk = 0", "-0 0"},
    };
    CHECK_ROWS(PARTITION_HASH_V1, "/pk", V1);
}

static void the_path_is_seen_from_the_document(void **state)
{
    (void)state;
    static const RouteRow ROWS[] = {
        {"SELECT * FROM root WHERE root.a.b = 1", "1"},
        {"SELECT * FROM c.a WHERE a.b = 1", "1"},
        {"SELECT * FROM c.a.b AS x WHERE x = 1", "1"},
        {"SELECT * FROM c.x WHERE x.a.b = 1", "all"},
        {"SELECT * FROM a IN c.a WHERE a.b = 1", "all"},
        {"SELECT VALUE COUNT(1) FROM c JOIN t IN c.t WHERE t = 1 AND c.a.b = 1", "1"},
        {"SELECT VALUE t FROM c JOIN t IN c.a WHERE t.b = 1", "all"},
        {"SELECT VALUE 1 FROM c JOIN (SELECT VALUE c.a) AS x WHERE x.b = 1", "all"},
        {"SELECT VALUE 1 FROM c JOIN (SELECT VALUE c.a) AS x WHERE c.a.b = 1", "1"},
        {"SELECT * FROM (SELECT c.a FROM c) s WHERE s.a.b = 1", "all"},
        {"SELECT * FROM (SELECT c.n FROM c WHERE c.a.b IN (1, 2)) s WHERE s.n = 1", "1 2"},
        {"SELECT * FROM (SELECT COUNT(1) AS n FROM c WHERE c.a.b = 1) s", "1"},
        {"SELECT * FROM c WHERE EXISTS(SELECT 1 FROM t IN c.t WHERE t = 2 AND c.a.b = 1)", "1"},
        {"SELECT * FROM c WHERE NOT EXISTS(SELECT 1 FROM t IN c.t WHERE c.a.b = 1)", "all"},
        {"SELECT * FROM c WHERE EXISTS(SELECT COUNT(1) FROM t IN c.t WHERE c.a.b = 1)", "all"},
        {"SELECT (SELECT VALUE 1 FROM c WHERE c.a.b = 42) FROM c", "all"},
        {"SELECT * FROM c WHERE c.x = (SELECT * FROM c WHERE c.a.b = 42) AND c.a.b = 32",
         "nothing"},
        {"SELECT * FROM c WHERE c.x = (SELECT VALUE COUNT(1) FROM c WHERE c.a.b = 42)", "all"},
        {"SELECT VALUE 5", "nothing"},
        {"SELECT TOP 2 5", "nothing"},
        {"SELECT * FROM (SELECT 1 AS n) s", "nothing"},
    };
    CHECK_ROWS(PARTITION_HASH_V2, "/a/b", ROWS);
}

static void the_first_paths_of_a_hierarchical_key_are_a_range(void **state)
{
    (void)state;
    static const RouteRow ROWS[] = {
        {"c.a = 1", "1/*/*"},
        {"c.a = 1 AND c.b = 'x'", "1/\"x\"/*"},
        {"c.z = null AND c.b = 'x' AND c.a = 1", "1/\"x\"/null"},
        {"c.b = 'x' AND c.z = 1", "all"},
        {"c.a = 1 AND c.z = 1", "1/*/*"},
        {"c.a IN (1, 2) AND c.b IN ('x', 'y')", "1/\"x\"/* 1/\"y\"/* 2/\"x\"/* 2/\"y\"/*"},
        {"c.a IN (1, 2) AND c.b = 'x' AND c.z IN (true, false)",
         "1/\"x\"/false 1/\"x\"/true 2/\"x\"/false 2/\"x\"/true"},
        {"c.a = 1 AND c.b = 2 OR c.a = 2 AND c.b = 1", "1/2/* 2/1/*"},
        {"c.a = 1 OR c.a = 1 AND c.b = 2", "1/*/*"},
        {"c.a = 1 AND c.b = 2 OR c.a = 3", "1/2/* 3/*/*"},
        {"c.a = 1 OR c.b = 2", "all"},
        {"(c.a = 1 OR c.b = 2) AND c.a = 3", "3/2/*"},
        {"(c.a = 1 OR c.a = 2) AND (c.b = 1 OR c.a = 2)", "1/1/* 2/*/*"},
        {"c.a = 1 AND c.b = 1 AND c.b = 2", "nothing"},
        {"c.a = 0 AND c.b = 0", "-0/-0/* -0/0/* 0/-0/* 0/0/*"},
        {"NOT IS_DEFINED(c.a) AND c.b = {}", "{}/{}/*"},
    };
    CHECK_ROWS(PARTITION_MULTI_HASH, "/a /b /z", ROWS);
}

static void a_container_without_a_key_is_one_place(void **state)
{
    (void)state;
    static const RouteRow ROWS[] = {
        {"c.a = 1", "all"},
        {"false", "nothing"},
        {"SELECT VALUE 1", "nothing"},
    };
    CHECK_ROWS(PARTITION_NONE, "", ROWS);
}

/* ---- bounds ---- */

static void put_list(Buf *text, size_t from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_format(text, "%s%zu", i > 0 ? "," : "", from + i);
}

static QueryRoute route_of(Arena *arena, const char *paths, const Buf *text)
{
    PartitionKeyDefinition definition = define(arena, PARTITION_MULTI_HASH, paths);
    QueryRoute route;
    const char *query = arena_cstr(arena, buf_view(text));
    query_route(parse(arena, query), arena, &definition, &route);
    check_ranges(&definition, &route, query);
    return route;
}

static void very_many_keys_are_a_coarser_route(void **state)
{
    (void)state;
    static const struct {
        size_t a, b;
        size_t ranges; /* 0 for all */
        size_t parts;  /* of each key */
    } ROWS[] = {
        {1000, 0, 1000, 1}, {4096, 0, 4096, 1}, {4097, 0, 0, 0},       {64, 64, 4096, 2},
        {64, 65, 64, 1},    {65, 64, 65, 1},    {2000, 2000, 2000, 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ROWS); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        AUTO(buf_done) Buf text;
        buf_init(&text, QUERY_TEXT_BYTES_MAX);
        buf_slice(&text, SLICE("SELECT * FROM c WHERE c.a IN ("));
        put_list(&text, 1, ROWS[i].a);
        if (ROWS[i].b > 0) {
            buf_slice(&text, SLICE(") AND c.b IN ("));
            put_list(&text, 1, ROWS[i].b);
        }
        buf_byte(&text, ')');
        QueryRoute route = route_of(&arena, "/a /b", &text);
        assert_int_equal(route.is_all, ROWS[i].ranges == 0);
        assert_int_equal(route.count, ROWS[i].ranges);
        if (route.count > 0)
            assert_int_equal(route.ranges[0].key.count, ROWS[i].parts);
    }
}

/* A thousand keys as programs write them. */
static void alternatives_are_as_good_as_a_list(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    AUTO(buf_done) Buf text;
    buf_init(&text, QUERY_TEXT_BYTES_MAX);
    buf_slice(&text, SLICE("SELECT * FROM c WHERE (c.n = 1) AND (false"));
    for (size_t i = 0; i < 1000; i++)
        buf_format(&text, " OR (c.a = %zu AND c.b = 'x%zu')", i + 1, i % 7);
    buf_byte(&text, ')');
    QueryRoute route = route_of(&arena, "/a /b", &text);
    assert_int_equal(route.count, 1000);
    assert_true(route.ranges[0].is_key);
}

/* Whatever it costs, it is bounded, and what comes out is right. */
static void filters_that_multiply_are_cut_short(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    AUTO(buf_done) Buf text;
    buf_init(&text, QUERY_TEXT_BYTES_MAX);
    buf_slice(&text, SLICE("SELECT * FROM c WHERE true"));
    for (size_t i = 0; i < 40; i++) {
        buf_slice(&text, SLICE(" AND (false"));
        for (size_t at = 0; at < 80; at++)
            buf_format(&text, " OR (c.a IN (%zu, %zu) AND c.b IN (%zu, %zu))", at, at + i, at + 1,
                       at + i + 2);
        buf_byte(&text, ')');
    }
    QueryRoute route = route_of(&arena, "/a /b", &text);
    assert_false(route.is_all);
    assert_true(route.count > 0);
    assert_true(arena_used(&arena) < (size_t)64 << 20);
}

/* ---- soundness ---- */

static const char *const VALUES[] = {
    "0",     "-0.0", "1",         "2",  "'a'", "'b'", "''",       "true",
    "false", "null", "undefined", "[]", "[1]", "{}",  "{'x': 1}",
};
static const char *const DOCUMENT_VALUES[] = {
    "0",     "-0.0", "1",  "2",  "\"a\"", "\"b\"", "\"\"",      "true",
    "false", "null", NULL, "[]", "[1]",   "{}",    "{\"x\":1}", "{\"b\":1}",
};

#define PICK(random, list) ((list)[random_below((random), ARRAY_COUNT(list))])

static const char *random_path(Random *random)
{
    static const char *const PATHS[] = {"c.a", "c.b", "c.a.b", "c['a']", "x", "x.b", "c.n"};
    return PICK(random, PATHS);
}

static void put_values(Random *random, Buf *out)
{
    size_t count = 1 + random_below(random, 3);
    for (size_t i = 0; i < count; i++)
        buf_format(out, "%s%s", i > 0 ? ", " : "", PICK(random, VALUES));
}

static void put_leaf(Random *random, Buf *out)
{
    static const char *const FUNCTIONS[] = {"IS_BOOL",  "IS_NULL",   "IS_DEFINED",
                                            "IS_ARRAY", "IS_NUMBER", "NOT IS_DEFINED"};
    const char *path = random_path(random);
    switch (random_below(random, 8)) {
    case 0:
        buf_format(out, "%s = %s", path, PICK(random, VALUES));
        break;
    case 1:
        buf_format(out, "%s != %s", PICK(random, VALUES), path);
        break;
    case 2:
        buf_format(out, "%s %sIN (", path, random_below(random, 3) == 0 ? "NOT " : "");
        put_values(random, out);
        buf_byte(out, ')');
        break;
    case 3:
        buf_format(out, "%s(%s)", PICK(random, FUNCTIONS), path);
        break;
    case 4:
        buf_slice(out, SLICE("ARRAY_CONTAINS(["));
        put_values(random, out);
        buf_format(out, "], %s%s)", path, random_below(random, 2) == 0 ? ", true" : "");
        break;
    case 5:
        buf_format(out, "EXISTS(SELECT 1 FROM c.a y WHERE y.b = %s OR %s = 1)",
                   PICK(random, VALUES), path);
        break;
    case 6:
        buf_format(out, "(SELECT VALUE 1 WHERE %s = %s) = 1", path, PICK(random, VALUES));
        break;
    default:
        buf_format(out, "%s", random_below(random, 2) == 0 ? path : PICK(random, VALUES));
    }
}

static void put_filter(Random *random, Buf *out, size_t depth)
{
    if (depth == 0 || random_below(random, 4) == 0) {
        put_leaf(random, out);
        return;
    }
    bool is_and = random_below(random, 2) == 0;
    size_t count = 2 + random_below(random, 2);
    buf_slice(out, random_below(random, 4) == 0 ? SLICE("NOT (") : SLICE("("));
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            buf_slice(out, is_and ? SLICE(" AND ") : SLICE(" OR "));
        put_filter(random, out, depth - 1);
    }
    buf_byte(out, ')');
}

static Json random_document(Random *random, Arena *arena)
{
    static const char *const NAMES[] = {"a", "b", "n"};
    AUTO(buf_done) Buf text;
    buf_init(&text, 4096);
    buf_slice(&text, SLICE("{\"id\":\"1\""));
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        const char *value = PICK(random, DOCUMENT_VALUES);
        if (value != NULL)
            buf_format(&text, ",\"%s\":%s", NAMES[i], value);
    }
    buf_byte(&text, '}');
    return parse_json(arena, arena_cstr(arena, buf_view(&text)));
}

/* The EPK under which an item with this document is stored. */
static Epk epk_of(const PartitionKeyDefinition *definition, Json document)
{
    PartitionKey key = {.count = definition->path_count};
    for (size_t i = 0; i < key.count; i++) {
        Json value = property_path_get(definition->paths[i], document);
        bool is_scalar = !json_is(value, JSON_ARRAY) && !json_is(value, JSON_OBJECT);
        key.parts[i] = is_scalar ? value : JSON_NONE;
    }
    Epk epk;
    epk_make(definition->kind, &key, &epk);
    return epk;
}

static bool covers(const QueryRoute *route, Slice epk)
{
    for (size_t i = 0; i < route->count; i++) {
        if (slice_compare(route->ranges[i].from, epk) <= 0 &&
            slice_compare(epk, route->ranges[i].to) < 0)
            return true;
    }
    return route->is_all;
}

static const char *random_query(Random *random, Arena *arena)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 20);
    buf_slice(&text, SLICE("SELECT VALUE 1 FROM c JOIN (SELECT VALUE 1) AS one JOIN c.a AS x "
                           "WHERE "));
    if (random_below(random, 2) == 0) {
        text.len = 0;
        buf_slice(&text, SLICE("SELECT VALUE 1 FROM (SELECT VALUE c FROM c JOIN c.a AS x WHERE "));
        put_filter(random, &text, 3);
        buf_slice(&text, SLICE(") AS c JOIN c.a AS x WHERE "));
    }
    put_filter(random, &text, 3);
    return arena_cstr(arena, buf_view(&text));
}

static void no_document_matches_outside_of_the_route(void **state)
{
    (void)state;
    static const struct {
        PartitionKind kind;
        const char *paths;
    } KEYS[] = {
        {PARTITION_HASH_V2, "/a"},
        {PARTITION_HASH_V2, "/a/b"},
        {PARTITION_HASH_V1, "/b"},
        {PARTITION_MULTI_HASH, "/a /b"},
        {PARTITION_MULTI_HASH, "/b /a/b /n"},
    };
    enum { QUERIES = 3000, DOCUMENTS = 40 };
    uint64_t seed = test_seed();
    Random random;
    random_init(&random, seed);
    size_t matches = 0;
    size_t routed = 0;
    for (size_t i = 0; i < QUERIES; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        size_t at = random_below(&random, ARRAY_COUNT(KEYS));
        PartitionKeyDefinition definition = define(&arena, KEYS[at].kind, KEYS[at].paths);
        const char *text = random_query(&random, &arena);
        const Query *query = parse(&arena, text);
        QueryRoute route;
        query_route(query, &arena, &definition, &route);
        check_ranges(&definition, &route, text);
        routed += !route.is_all;
        for (size_t d = 0; d < DOCUMENTS; d++) {
            Json document = random_document(&random, &arena);
            Error err;
            Json *results;
            size_t count;
            assert_int_equal(query_run(query, &document, 1, &arena, &results, &count, &err),
                             STATUS_OK);
            matches += count;
            Epk epk = epk_of(&definition, document);
            if (count > 0 && !covers(&route, epk_slice(&epk)))
                fail_msg("seed %llu, key %s: %s\n  finds %.*s outside of its route, %s",
                         (unsigned long long)seed, KEYS[at].paths, text,
                         SLICE_ARG(json_print_arena(&arena, document)),
                         print_route(&arena, &definition, &route));
        }
    }
    assert_true(routed > QUERIES / 10); /* otherwise it would say little */
    assert_true(matches > QUERIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_filter_of_the_key_is_a_route),
        cmocka_unit_test(what_tells_nothing_of_the_key_goes_everywhere),
        cmocka_unit_test(values_are_those_that_keys_can_have),
        cmocka_unit_test(the_path_is_seen_from_the_document),
        cmocka_unit_test(the_first_paths_of_a_hierarchical_key_are_a_range),
        cmocka_unit_test(a_container_without_a_key_is_one_place),
        cmocka_unit_test(very_many_keys_are_a_coarser_route),
        cmocka_unit_test(alternatives_are_as_good_as_a_list),
        cmocka_unit_test(filters_that_multiply_are_cut_short),
        cmocka_unit_test(no_document_matches_outside_of_the_route),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
