/* computed_test.c - computed properties in queries. Which queries may define one is in select_test.
 */
#include "query/eval/query_testing_int.h"
#include "query/sql/query_int.h"
#include "query/sql/sql_print_int.h"

static const char COMPUTED[] =
    "[{\"name\":\"lower\",\"query\":\"SELECT VALUE LOWER(c.name) FROM c\"},"
    "{\"name\":\"price\",\"query\":\"SELECT VALUE p.cost * (1 - p.off) FROM products p\"},"
    "{\"name\":\"first\",\"query\":\"SELECT VALUE x.meta.tags FROM x\"},"
    "{\"name\":\"pair\",\"query\":\"SELECT VALUE {a: r.cost, b: [r.off]} FROM root r\"},"
    "{\"name\":\"all\",\"query\":\"SELECT VALUE c FROM c\"},"
    "{\"name\":\"of_other\",\"query\":\"SELECT VALUE c.lower FROM c\"},"
    "{\"name\":\"one\",\"query\":\"SELECT VALUE 1 FROM c\"},"
    "{\"name\":\"a b\",\"query\":\"SELECT VALUE c['name'] || '!' FROM c\"}]";

static const char DOCUMENTS[] =
    "[{\"id\":\"1\",\"name\":\"Bike\",\"cost\":10,\"off\":0.5,\"meta\":{\"tags\":[\"x\",\"y\"]},"
    "\"lower\":\"stored\"},"
    "{\"id\":\"2\",\"name\":\"AXE\",\"cost\":4,\"off\":0,\"meta\":{\"tags\":[\"z\"]}},"
    "{\"id\":\"3\",\"name\":\"bike\",\"cost\":6}]";

static void check(const QueryCase *cases, size_t count, const char *computed)
{
    static const char PARAMETERS[] = "[{\"name\":\"@l\",\"value\":\"lower\"},"
                                     "{\"name\":\"@i\",\"value\":0}]";
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 16 << 10);
        const char *expected = cases[i].expected;
        const char *got = run_computed(&arena, cases[i].query, DOCUMENTS, PARAMETERS, computed,
                                       (QueryOptions){0});
        bool same = expected[0] == '!' ? got[0] == '!' && strstr(got, expected + 1) != NULL
                                       : strcmp(got, expected) == 0;
        if (!same)
            fail_msg("%s\n  expected %s\n  got      %s", cases[i].query, expected, got);
    }
}

static void a_name_means_its_expression_in_every_clause(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT VALUE c.lower FROM c", "[\"bike\",\"axe\",\"bike\"]"},
        {"SELECT VALUE c['lower'] FROM c", "[\"bike\",\"axe\",\"bike\"]"},
        {"SELECT VALUE c[@l] FROM c", "[\"bike\",\"axe\",\"bike\"]"},
        {"SELECT VALUE r['a b'] FROM root r WHERE r.price > 4", "[\"Bike!\"]"},
        {"SELECT VALUE c.id FROM c WHERE c.lower = 'bike'", "[\"1\",\"3\"]"},
        {"SELECT VALUE c.id FROM c WHERE NOT IS_DEFINED(c.price)", "[\"3\"]"},
        {"SELECT VALUE c.id FROM c ORDER BY c.lower DESC", "[\"1\",\"3\",\"2\"]"},
        {"SELECT VALUE c.id FROM c ORDER BY c.price", "[\"3\",\"2\",\"1\"]"},
        {"SELECT VALUE c.id FROM c ORDER BY c.pair.a", "[\"2\",\"3\",\"1\"]"},
        {"SELECT VALUE c.id FROM c ORDER BY c.one, c.lower", "[\"2\",\"1\",\"3\"]"},
        {"SELECT c.lower, COUNT(1) AS n FROM c GROUP BY c.lower",
         "[{\"lower\":\"bike\",\"n\":2},{\"lower\":\"axe\",\"n\":1}]"},
        {"SELECT c.lower FROM c GROUP BY c.lower ORDER BY c.lower",
         "[{\"lower\":\"axe\"},{\"lower\":\"bike\"}]"},
        {"SELECT c.pair.a FROM c GROUP BY c.pair", "[{\"a\":10},{\"a\":4},{\"a\":6}]"},
        {"SELECT c.first[0] FROM c GROUP BY c.first", "[{\"$1\":\"x\"},{\"$1\":\"z\"},{}]"},
        {"SELECT VALUE SUM(c.price) FROM c WHERE IS_DEFINED(c.price)", "[9]"},
        {"SELECT DISTINCT VALUE c.lower FROM c", "[\"bike\",\"axe\"]"},
        {"SELECT VALUE c.first[@i] FROM c", "[\"x\",\"z\"]"},
        {"SELECT VALUE c.pair.b[0] FROM c", "[0.5,0]"},
        {"SELECT VALUE c.all.cost FROM c", "[10,4,6]"},
        {"SELECT VALUE UPPER(c.lower) FROM c WHERE c.one IN (1)", "[\"BIKE\",\"AXE\",\"BIKE\"]"},
    };
    check(CASES, ARRAY_COUNT(CASES), COMPUTED);
}

static void sources_and_subqueries_see_it(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT VALUE t FROM c JOIN t IN c.first", "[\"x\",\"y\",\"z\"]"},
        {"SELECT VALUE t FROM t IN c.first", "[\"x\",\"y\",\"z\"]"},
        {"SELECT VALUE pair.a FROM c.pair", "[10,4,6]"},
        {"SELECT VALUE first FROM c.all.first", "[]"},
        {"SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.first WHERE t = 'z')",
         "[\"2\"]"},
        {"SELECT VALUE (SELECT VALUE c.lower) FROM c", "[\"bike\",\"axe\",\"bike\"]"},
        {"SELECT VALUE (SELECT VALUE d.lower FROM c AS d) FROM c", "[\"bike\",\"axe\",\"bike\"]"},
        {"SELECT VALUE x.lower FROM (SELECT VALUE c FROM c) AS x", "[\"bike\",\"axe\",\"bike\"]"},
        /* A value that was made on the way is no item of the container. */
        {"SELECT VALUE x.lower FROM (SELECT * FROM c) AS x", "[\"stored\"]"},
        {"SELECT VALUE x.lower FROM (SELECT VALUE {lower: c.id} FROM c) AS x",
         "[\"1\",\"2\",\"3\"]"},
        {"SELECT VALUE m.lower FROM c JOIN m IN [c]", "!SC1001"},
        {"SELECT VALUE {lower: 5}.lower FROM c", "[5,5,5]"},
    };
    check(CASES, ARRAY_COUNT(CASES), COMPUTED);
}

static void whole_items_are_as_they_are_stored(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT * FROM c WHERE c.lower = 'axe'", "[{\"id\":\"2\",\"name\":\"AXE\",\"cost\":4,"
                                                  "\"off\":0,\"meta\":{\"tags\":[\"z\"]}}]"},
        {"SELECT VALUE c FROM c WHERE c.cost = 6", "[{\"id\":\"3\",\"name\":\"bike\",\"cost\":6}]"},
        {"SELECT VALUE c.of_other FROM c", "[\"stored\"]"}, /* definitions do not see each other */
        {"SELECT VALUE c.all.lower FROM c", "[\"stored\"]"},
        {"SELECT VALUE c.meta.lower FROM c", "[]"},
    };
    check(CASES, ARRAY_COUNT(CASES), COMPUTED);
    static const QueryCase WITHOUT[] = {
        {"SELECT VALUE c.lower FROM c", "[\"stored\"]"},
        {"SELECT VALUE c.price FROM c", "[]"},
    };
    check(WITHOUT, ARRAY_COUNT(WITHOUT), NULL);
    check(WITHOUT, ARRAY_COUNT(WITHOUT), "[]");
}

static void names_and_places_are_those_of_the_text(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT c.lower, c.first, c.pair.a, c.first[0], c[@l] FROM c WHERE c.id = '2'",
         "[{\"lower\":\"axe\",\"first\":[\"z\"],\"a\":4,\"$1\":\"z\",\"$2\":\"axe\"}]"},
        {"SELECT c.lower, c.name AS lower FROM c", "!SC2022"},
        {"SELECT c.id, c.lower FROM c GROUP BY c.id",
         "!{\"start\":13,\"end\":20},\"code\":\"SC2102\",\"message\":\"Property reference "
         "'c.lower'"},
        {"SELECT VALUE c.id FROM c ORDER BY c.lower, c.lower", "!SC2032"},
        {"SELECT VALUE c.id FROM c ORDER BY LOWER(c.name)", "!2206"},
        {"SELECT VALUE d.lower FROM c", "!SC2001"},
        {"SELECT VALUE c.first[c.id] FROM c", "!member indexer"},
    };
    check(CASES, ARRAY_COUNT(CASES), COMPUTED);
}

/* The catalogue lets none of these in; should one be there all the same, it is the query that
 * fails. */
static void a_definition_that_is_none_is_named(void **state)
{
    (void)state;
    static const char *const DEFINITIONS[] = {
        "",
        "SELECT VALUE",
        "SELECT c.name FROM c",
        "SELECT VALUE c.name FROM c JOIN d IN c.x",
        "SELECT VALUE c.name FROM c WHERE true",
        "SELECT VALUE d.name FROM c",
        "SELECT VALUE @p FROM c",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE (SELECT VALUE 1) FROM c",
        "SELECT VALUE RAND() FROM c",
        "SELECT VALUE udf.f(c) FROM c",
        "SELECT VALUE NOSUCH(c) FROM c",
        "SELECT VALUE 1",
    };
    for (size_t i = 0; i < ARRAY_COUNT(DEFINITIONS); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 16 << 10);
        const char *computed =
            arena_format(&arena, "[{\"name\":\"x\",\"query\":\"%s\"}]%c", DEFINITIONS[i], '\0').ptr;
        static const QueryCase CASES[] = {
            {"SELECT VALUE c.x FROM c",
             "!{\"start\":13,\"end\":16},\"code\":\"SC2990\",\"message\":\"The definition of a "
             "computed property, 'c.x', is not valid."},
            {"SELECT VALUE c.id FROM c", "[\"1\",\"2\",\"3\"]"},
        };
        check(CASES, ARRAY_COUNT(CASES), computed);
    }
    static const QueryCase STORED[] = {{"SELECT VALUE c.id FROM c", "[\"1\",\"2\",\"3\"]"}};
    check(STORED, ARRAY_COUNT(STORED), "[1,{\"name\":\"id\"},{\"name\":5,\"query\":\"q\"}]");
    check(STORED, ARRAY_COUNT(STORED), "{\"name\":\"id\"}");
}

/* A definition of a thousand characters, named so often that half a megabyte is exceeded. */
static void many_uses_of_a_long_definition_are_refused(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 64 << 10);
    AUTO(buf_done) Buf computed;
    buf_init(&computed, 1 << 16);
    buf_slice(&computed, SLICE("[{\"name\":\"x\",\"query\":\"SELECT VALUE [c.name"));
    for (int i = 0; i < 1000; i++)
        buf_slice(&computed, SLICE(" "));
    buf_slice(&computed, SLICE("] FROM c\"}]"));
    for (int uses = 100; uses <= 1000; uses += 900) {
        AUTO(buf_done) Buf text;
        buf_init(&text, 1 << 16);
        buf_slice(&text, SLICE("SELECT VALUE 1 FROM c WHERE c.x = 1"));
        for (int i = 1; i < uses; i++)
            buf_slice(&text, SLICE(" OR c.x = 1"));
        const char *got = run_computed(&arena, arena_cstr(&arena, buf_view(&text)), DOCUMENTS, NULL,
                                       arena_cstr(&arena, buf_view(&computed)), (QueryOptions){0});
        if (uses == 100)
            assert_string_equal(got, "[]");
        else
            assert_non_null(strstr(got, "SC3020"));
    }
}

static const char *nested(Arena *arena, const char *middle, int times)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    for (int i = 0; i < times; i++)
        buf_byte(&text, '[');
    buf_slice(&text, slice_from_cstr(middle));
    for (int i = 0; i < times; i++)
        buf_byte(&text, ']');
    return arena_cstr(arena, buf_view(&text));
}

/* An expression inside an expression is no deeper than one may be. */
static void depth_counts_through_definitions(void **state)
{
    (void)state;
    static const struct {
        int outside;
        int inside;
        bool refused;
    } CASES[] = {
        {60, 60, false}, {95, 95, false}, {100, 100, true}, {10, 190, true}, {190, 10, true}};
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        const char *query = arena_format(&arena, "SELECT VALUE IS_DEFINED(%s) FROM c%c",
                                         nested(&arena, "c.x", CASES[i].outside), '\0')
                                .ptr;
        const char *computed =
            arena_format(&arena, "[{\"name\":\"x\",\"query\":\"SELECT VALUE %s FROM c\"}]%c",
                         nested(&arena, "c.name", CASES[i].inside), '\0')
                .ptr;
        const char *got = run_computed(&arena, query, DOCUMENTS, NULL, computed, (QueryOptions){0});
        assert_true(CASES[i].refused == (strstr(got, "SC1030") != NULL));
    }
}

static void a_tree_prints_with_the_names_of_the_query(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 16 << 10);
    Query *query;
    Error err;
    Slice text = SLICE("SELECT q.price, q.first[0] FROM root AS q ORDER BY q.lower");
    assert_int_equal(
        query_parse_with(&arena, text, JSON_NONE, parse_json(&arena, COMPUTED), &query, &err),
        STATUS_OK);
    AUTO(buf_done) Buf out;
    buf_init(&out, 4096);
    print_select(query->select, &out);
    buf_byte(&out, '\0');
    assert_string_equal(out.ptr, "SELECT (q.cost * (1 - q.off)), q.meta.tags[0] FROM "
                                 "root AS q ORDER BY LOWER(q.name)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_means_its_expression_in_every_clause),
        cmocka_unit_test(sources_and_subqueries_see_it),
        cmocka_unit_test(whole_items_are_as_they_are_stored),
        cmocka_unit_test(names_and_places_are_those_of_the_text),
        cmocka_unit_test(a_definition_that_is_none_is_named),
        cmocka_unit_test(many_uses_of_a_long_definition_are_refused),
        cmocka_unit_test(depth_counts_through_definitions),
        cmocka_unit_test(a_tree_prints_with_the_names_of_the_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
