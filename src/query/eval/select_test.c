/* select_test.c - the clauses: sources, projections, groups, order, subqueries, and their rules. */
#include "query/eval/query_testing_int.h"

static const char DOCS[] =
    "[{\"id\":\"a\",\"age\":30,\"city\":\"Oslo\",\"tags\":[{\"n\":\"x\",\"w\":1},{\"n\":\"y\","
    "\"w\":2}],"
    "\"kids\":[{\"name\":\"Bo\",\"pets\":[\"cat\",\"dog\"]},{\"name\":\"Cy\"}]},"
    "{\"id\":\"b\",\"age\":20,\"city\":\"Rome\",\"tags\":[]},"
    "{\"id\":\"c\",\"age\":null,\"city\":\"Oslo\",\"tags\":[{\"n\":\"x\",\"w\":5}],"
    "\"kids\":[{\"name\":\"Di\",\"pets\":[\"cow\"]}]},"
    "{\"id\":\"d\",\"city\":\"Bern\"}]";

static void projections_name_their_values(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT c.id, c.age FROM c WHERE c.id IN ('a', 'd')",
         "[{\"id\":\"a\",\"age\":30},{\"id\":\"d\"}]"},
        {"SELECT c.age + 1, c.id, 'x', c.age AS n FROM c WHERE c.id = 'a'",
         "[{\"$1\":31,\"id\":\"a\",\"$2\":\"x\",\"n\":30}]"},
        {"SELECT c.tags[0], c.tags[0].n, c['city'] FROM c WHERE c.id = 'a'",
         "[{\"$1\":{\"n\":\"x\",\"w\":1},\"n\":\"x\",\"city\":\"Oslo\"}]"},
        {"SELECT VALUE c.age FROM c", "[30,20,null]"},
        {"SELECT c.missing FROM c WHERE c.id = 'a'", "[{}]"},
        {"SELECT x FROM c.id x WHERE x = 'b'", "[{\"x\":\"b\"}]"},
        {"SELECT 1, 2", "[{\"$1\":1,\"$2\":2}]"},
        {"SELECT VALUE 1 WHERE false", "[]"},
        {"SELECT VALUE 1 WHERE 1", "[]"},
        {"SELECT c.id, c.id FROM c", "!SC2022"},
        {"SELECT c.id, 1 AS id FROM c", "!SC2022"},
        {"SELECT 1 AS \"$1\", 2", "!SC2022"},
        {"SELECT VALUE {a: 1, 'a': 2}", "!SC2022"},
        {"SELECT * FROM c JOIN t IN c.tags", "!SC2040"},
        {"SELECT *", "!SC1021"},
    };
    CHECK_CASES(CASES, DOCS, NULL);
}

static void sources_bind_and_multiply(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT VALUE anything.id FROM anything", "[\"a\",\"b\",\"c\",\"d\"]"},
        {"SELECT VALUE p.id FROM products AS p WHERE p.age = 20", "[\"b\"]"},
        {"SELECT VALUE products.id FROM products p", "!SC2001"},
        {"SELECT * FROM c.kids",
         "[[{\"name\":\"Bo\",\"pets\":[\"cat\",\"dog\"]},{\"name\":\"Cy\"}],"
         "[{\"name\":\"Di\",\"pets\":[\"cow\"]}]]"},
        {"SELECT VALUE kids[0].name FROM c.kids", "[\"Bo\",\"Di\"]"},
        {"SELECT VALUE k.name FROM c.kids[0] k", "[\"Bo\",\"Di\"]"},
        {"SELECT VALUE k.name FROM k IN c.kids", "[\"Bo\",\"Cy\",\"Di\"]"},
        {"SELECT VALUE k FROM k IN k.id", "[]"},
        {"SELECT VALUE [c.id, t.n] FROM c JOIN t IN c.tags",
         "[[\"a\",\"x\"],[\"a\",\"y\"],[\"c\",\"x\"]]"},
        {"SELECT VALUE [t.n, p] FROM c JOIN t IN c.tags JOIN k IN c.kids JOIN p IN k.pets",
         "[[\"x\",\"cat\"],[\"x\",\"dog\"],[\"y\",\"cat\"],[\"y\",\"dog\"],[\"x\",\"cow\"]]"},
        {"SELECT c.id FROM c JOIN c.kids", "[{\"id\":\"a\"},{\"id\":\"c\"}]"},
        {"SELECT c.id FROM c JOIN c.nothing", "[]"},
        {"SELECT c.id, x FROM c JOIN (SELECT VALUE t.w FROM t IN c.tags WHERE t.w > 1) AS x",
         "[{\"id\":\"a\",\"x\":2},{\"id\":\"c\",\"x\":5}]"},
        {"SELECT VALUE z FROM c JOIN z IN (SELECT VALUE [c.id, 1]) WHERE c.age = 20", "[\"b\",1]"},
        {"SELECT VALUE kv.k FROM c JOIN kv IN OBJECTTOARRAY(c.tags[0]) WHERE c.id = 'c'",
         "[\"n\",\"w\"]"},
        {"SELECT VALUE r.id FROM (SELECT VALUE c FROM c WHERE c.age > 20) AS r", "[\"a\"]"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.city FROM c)", "[3]"},
        {"SELECT VALUE COUNT(1) FROM (SELECT DISTINCT c.city FROM c) JOIN (SELECT 1)", "[3]"},
        {"SELECT VALUE s FROM (SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city) s WHERE s.n > "
         "1",
         "[{\"city\":\"Oslo\",\"n\":2}]"},
        {"SELECT c.id FROM c JOIN c IN c.tags", "!SC2021"},
        {"SELECT c.id FROM c JOIN a.tags JOIN b.tags", "!SC2001"},
        {"SELECT 1 FROM c JOIN c.tags JOIN c.tags", "!SC2021"},
        {"SELECT 1 FROM c JOIN x IN d.tags", "!Identifier 'd' could not be resolved."},
        {"SELECT (SELECT VALUE d FROM d)", "!SC2001"},
        {"SELECT VALUE name FROM c", "!SC2001"},
        {"SELECT 1 FROM c JOIN a IN c.t JOIN b IN c.t JOIN d IN c.t JOIN e IN c.t JOIN f IN c.t "
         "JOIN g IN c.t JOIN h IN c.t JOIN i IN c.t JOIN j IN c.t JOIN k IN c.t",
         "[]"},
        {"SELECT 1 FROM c JOIN a IN c.t JOIN b IN c.t JOIN d IN c.t JOIN e IN c.t JOIN f IN c.t "
         "JOIN g IN c.t JOIN h IN c.t JOIN i IN c.t JOIN j IN c.t JOIN k IN c.t JOIN l IN c.t",
         "!maximum number of joins. The allowed limit is 10."},
    };
    CHECK_CASES(CASES, DOCS, NULL);
}

static void names_may_be_quoted(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT c.city AS 'Category', c.id AS \"Value\" FROM c WHERE c.id = 'a'",
         "[{\"Category\":\"Oslo\",\"Value\":\"a\"}]"},
        {"SELECT c.city AS 'a b', COUNT(1) AS 'order' FROM c WHERE c.id = 'a' GROUP BY c.city",
         "[{\"a b\":\"Oslo\",\"order\":1}]"},
        {"SELECT VALUE s['a b'] FROM (SELECT c.id AS 'a b' FROM c WHERE c.id = 'a') s", "[\"a\"]"},
        {"SELECT c.id AS 'x', c.city AS x FROM c", "!SC2022"},
    };
    CHECK_CASES(CASES, DOCS, NULL);
}

static void aggregates_count_what_is_defined(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT COUNT(1), COUNT(c.age) AS ages FROM c", "[{\"$1\":4,\"ages\":3}]"},
        {"SELECT VALUE SUM(c.age) FROM c", "[]"}, /* null spoils it */
        {"SELECT VALUE SUM(c.age) FROM c WHERE IS_NUMBER(c.age)", "[50]"},
        {"SELECT VALUE AVG(c.age) FROM c WHERE IS_NUMBER(c.age)", "[25]"},
        {"SELECT MIN(c.age) AS lo, MAX(c.age) AS hi FROM c", "[{\"lo\":null,\"hi\":30}]"},
        {"SELECT VALUE MAX(c.city) FROM c", "[\"Rome\"]"},
        {"SELECT VALUE MAX(c.tags) FROM c", "[]"},
        {"SELECT VALUE COUNTIF(c.age > 20) FROM c", "[1]"},
        {"SELECT VALUE MAKELIST(c.city) FROM c", "[[\"Oslo\",\"Rome\",\"Oslo\",\"Bern\"]]"},
        {"SELECT VALUE MAKESET(c.city) FROM c", "[[\"Oslo\",\"Rome\",\"Bern\"]]"},
        {"SELECT COUNT(c.v), SUM(c.v), AVG(c.v), MAX(c.v), MIN(c.v) FROM c WHERE false",
         "[{\"$1\":0,\"$2\":0}]"},
        {"SELECT VALUE MIN(c.v) FROM c WHERE false", "[]"},
        {"SELECT VALUE COUNT(1)", "[1]"},
        {"SELECT VALUE {sum: SUM(t.w), half: SUM(t.w) / 2} FROM t IN c.tags",
         "[{\"sum\":8,\"half\":4}]"},
        {"SELECT VALUE ABS(AVG(t.w - 10)) FROM t IN c.tags WHERE t.n = 'x'", "[7]"},
        {"SELECT VALUE COUNT(1) FROM c ORDER BY c.id", "[4]"},
        {"SELECT TOP 0 VALUE COUNT(1) FROM c", "[]"},
        {"SELECT VALUE MAX(MIN(c.age)) FROM c", "!\"start\":13,\"end\":28},\"code\":\"SC2101\""},
        {"SELECT VALUE COUNT((SELECT 1)) FROM c", "!SC2101"},
        {"SELECT VALUE 1 FROM c WHERE COUNT(1) > 1", "!SC2103"},
        {"SELECT VALUE 1 FROM c ORDER BY COUNT(1)", "!SC2104"},
        {"SELECT c.id, COUNT(1) FROM c",
         "!Property reference 'c.id' is invalid in the select list because it is not contained"},
        {"SELECT VALUE COUNT(1, 2) FROM c", "!The COUNT function requires 1 argument(s)."},
    };
    CHECK_CASES(CASES, DOCS, NULL);
}

static void groups_have_keys_and_aggregates(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT c.city, COUNT(1) AS n FROM c GROUP BY c.city",
         "[{\"city\":\"Oslo\",\"n\":2},{\"city\":\"Rome\",\"n\":1},{\"city\":\"Bern\",\"n\":1}]"},
        {"SELECT c.age, COUNT(1) AS n FROM c GROUP BY c.age",
         "[{\"age\":30,\"n\":1},{\"age\":20,\"n\":1},{\"age\":null,\"n\":1},{\"n\":1}]"},
        {"SELECT VALUE c.age FROM c GROUP BY c.age", "[30,20,null]"},
        {"SELECT VALUE {u: UPPER(c.city)} FROM c GROUP BY UPPER(c.city)",
         "[{\"u\":\"OSLO\"},{\"u\":\"ROME\"},{\"u\":\"BERN\"}]"},
        {"SELECT VALUE LENGTH(c.city) + 1 FROM c GROUP BY c['city']", "[5,5,5]"},
        {"SELECT VALUE t.n FROM t IN c.tags GROUP BY t", "[\"x\",\"y\",\"x\"]"},
        {"SELECT VALUE t FROM t IN c.tags GROUP BY t.n", "!SC2102"},
        {"SELECT c.city, c.id, COUNT(1) AS n FROM c GROUP BY c.city, c.id OFFSET 1 LIMIT 2",
         "[{\"city\":\"Rome\",\"id\":\"b\",\"n\":1},{\"city\":\"Oslo\",\"id\":\"c\",\"n\":1}]"},
        {"SELECT VALUE 1 FROM c WHERE false GROUP BY c.id", "[]"},
        {"SELECT c.city FROM c GROUP BY c.city ORDER BY c.city",
         "[{\"city\":\"Bern\"},{\"city\":\"Oslo\"},{\"city\":\"Rome\"}]"},
        {"SELECT c.city FROM c GROUP BY c.city ORDER BY c.id", "!SC2103"},
        {"SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.city", "[2,1]"},
        {"SELECT c.id, (SELECT VALUE COUNT(c.age) FROM t IN c.tags) AS n FROM c GROUP BY c.id",
         "!'c.tags' is invalid in the select list"},
        {"SELECT VALUE (SELECT VALUE c.id || '!') FROM c GROUP BY c.id",
         "[\"a!\",\"b!\",\"c!\",\"d!\"]"},
        {"SELECT * FROM c GROUP BY c.id", "!SC2041"},
        {"SELECT c.age FROM c GROUP BY c.id", "!SC2102"},
        {"SELECT VALUE 1 FROM c GROUP BY 1", "!SC2110"},
        {"SELECT VALUE 1 FROM c GROUP BY COUNT(1)", "!SC2111"},
        {"SELECT VALUE 1 FROM c GROUP BY (SELECT VALUE c.id)", "!SC2111"},
    };
    CHECK_CASES(CASES, DOCS, NULL);
}

static void distinct_drops_what_was_there(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT DISTINCT VALUE c.city FROM c", "[\"Oslo\",\"Rome\",\"Bern\"]"},
        {"SELECT DISTINCT c.missing FROM c", "[{}]"},
        {"SELECT DISTINCT VALUE c.missing FROM c", "[]"},
        {"SELECT DISTINCT VALUE x FROM c JOIN x IN [1] ", "!SC1001"},
        {"SELECT VALUE ARRAY(SELECT DISTINCT VALUE x FROM x IN (SELECT VALUE [1, 1.0, '1', [2], "
         "[2],"
         " {a: 1, b: 2}, {b: 2, a: 1}, null, null, true]))",
         "[[1,\"1\",[2],{\"a\":1,\"b\":2},null,true]]"},
        {"SELECT DISTINCT TOP 2 VALUE c.city FROM c", "[\"Oslo\",\"Rome\"]"},
        {"SELECT DISTINCT VALUE c.city FROM c ORDER BY c.city DESC",
         "[\"Rome\",\"Oslo\",\"Bern\"]"},
    };
    CHECK_CASES(CASES, DOCS, NULL);
}

static void order_goes_by_type_and_value(void **state)
{
    (void)state;
    static const char MIXED[] =
        "[{\"i\":0,\"v\":{}},{\"i\":1,\"v\":[1]},{\"i\":2,\"v\":\"b\"},{\"i\":3,\"v\":\"a\"},"
        "{\"i\":4,\"v\":2},{\"i\":5,\"v\":-1.5},{\"i\":6,\"v\":true},{\"i\":7,\"v\":false},"
        "{\"i\":8,\"v\":null},{\"i\":9},{\"i\":10,\"v\":2}]";
    static const QueryCase CASES[] = {
        {"SELECT VALUE c.i FROM c ORDER BY c.v", "[9,8,7,6,5,4,10,3,2,1,0]"},
        {"SELECT VALUE c.i FROM c ORDER BY c.v DESC", "[0,1,2,3,4,10,5,6,7,8,9]"},
        {"SELECT VALUE c.i FROM c ORDER BY c.v, c.i DESC", "[9,8,7,6,5,10,4,3,2,1,0]"},
        {"SELECT VALUE c.i FROM c WHERE IS_NUMBER(c.v) ORDER BY c['v'] ASC, c.i", "[5,4,10]"},
        {"SELECT TOP 2 VALUE c.i FROM c ORDER BY c.v", "[9,8]"},
        {"SELECT VALUE c.i FROM c ORDER BY c.i OFFSET 3 LIMIT 2", "[3,4]"},
        {"SELECT VALUE c.i FROM c ORDER BY c.i OFFSET 10 LIMIT 5", "[10]"},
        {"SELECT VALUE c.i FROM c OFFSET 1 LIMIT 0", "[]"},
        {"SELECT VALUE c.i FROM c OFFSET 20 LIMIT 1", "[]"},
        {"SELECT VALUE c.i FROM c ORDER BY c[@v] OFFSET @o LIMIT @l", "[8,7]"},
        {"SELECT TOP @l VALUE c.i FROM c", "[0,1]"},
        {"SELECT VALUE v FROM c.v ORDER BY v OFFSET 0 LIMIT 2", "[null,false]"},
        {"SELECT VALUE r.i FROM (SELECT VALUE c FROM c) r ORDER BY r.i DESC OFFSET 0 LIMIT 2",
         "[10,9]"},
        {"SELECT VALUE c.i FROM c ORDER BY c.i + 1", "!\"code\":2206,"},
        {"SELECT VALUE c.i FROM c ORDER BY LOWER(c.i)", "!\"code\":2206,"},
        {"SELECT VALUE c.i FROM c ORDER BY 1", "!\"code\":2206,"},
        {"SELECT VALUE c.i FROM c JOIN (SELECT VALUE x FROM x IN c.v) y ORDER BY y",
         "!{\"Errors\":[\"Order-by over correlated collections is not supported.\"]}"},
        {"SELECT VALUE c.i FROM c JOIN (SELECT VALUE c.i + 1) y ORDER BY y", "!\"code\":2206,"},
        {"SELECT VALUE c.i FROM c ORDER BY c.i, c['i']", "!same path more than once"},
        {"SELECT c.i AS k FROM c ORDER BY k", "!SC2001"},
        {"SELECT 1 FROM c ORDER BY c.a, c.b, c.c, c.d, c.e, c.f, c.g, c.h, c.i", "!SC2031"},
        {"SELECT TOP 4294967296 * FROM c", "!SC2060"},
        {"SELECT TOP 99999999999999999999999 * FROM c", "!SC2060"},
        {"SELECT TOP @v * FROM c", "!SC2060"},
        {"SELECT TOP @minus * FROM c", "!SC2060"},
        {"SELECT * FROM c OFFSET 4294967296 LIMIT 1", "!SC2062"},
        {"SELECT * FROM c OFFSET 1 LIMIT 4294967296", "!SC2061"},
        {"SELECT TOP 1 * FROM c OFFSET 1 LIMIT 1", "!SC2205"},
    };
    CHECK_CASES(CASES, MIXED,
                "[{\"name\":\"@v\",\"value\":\"v\"},{\"name\":\"@o\",\"value\":1},"
                "{\"name\":\"@l\",\"value\":2},{\"name\":\"@minus\",\"value\":-1}]");
}

static void subqueries_see_the_row_around_them(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT c.id, (SELECT VALUE COUNT(1) FROM t IN c.tags) AS n FROM c",
         "[{\"id\":\"a\",\"n\":2},{\"id\":\"b\",\"n\":0},{\"id\":\"c\",\"n\":1},{\"id\":\"d\","
         "\"n\":0}]"},
        {"SELECT c.id, (SELECT c.age WHERE c.age > 20).age FROM c WHERE c.city != 'Bern'",
         "[{\"id\":\"a\",\"age\":30},{\"id\":\"b\"},{\"id\":\"c\"}]"},
        {"SELECT VALUE (SELECT VALUE c.age + 1)", "!SC2001"},
        {"SELECT VALUE c.id FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t.w > 1)",
         "[\"a\",\"c\"]"},
        {"SELECT VALUE EXISTS(SELECT VALUE undefined)", "[false]"},
        {"SELECT VALUE EXISTS(SELECT undefined)", "[true]"},
        {"SELECT VALUE NOT EXISTS(SELECT 1)", "[false]"},
        {"SELECT VALUE ARRAY(SELECT VALUE t.n FROM t IN c.tags) FROM c",
         "[[\"x\",\"y\"],[],[\"x\"],[]]"},
        {"SELECT VALUE ARRAY(SELECT DISTINCT VALUE t.n FROM t IN c.tags GROUP BY t.n) FROM c "
         "WHERE c.id = 'a'",
         "[[\"x\",\"y\"]]"},
        {"SELECT VALUE c.id FROM c WHERE ALL(SELECT VALUE t FROM t IN c.tags WHERE t.w < 3)",
         "[\"a\",\"b\",\"d\"]"},
        {"SELECT VALUE ALL(SELECT VALUE 1)", "[true]"},
        {"SELECT VALUE FIRST(SELECT VALUE t.w FROM t IN c.tags) FROM c", "[1,5]"},
        {"SELECT VALUE LAST(SELECT VALUE t.w FROM t IN c.tags) FROM c", "[2,5]"},
        {"SELECT VALUE (SELECT VALUE c.n FROM c IN c.tags WHERE true) FROM c", "!SC2201"},
        {"SELECT VALUE (SELECT t.n FROM t IN c.tags GROUP BY t.n) FROM c", "!SC2201"},
        {"SELECT VALUE (SELECT VALUE x FROM c JOIN (SELECT VALUE t FROM t IN c.tags) x) FROM c",
         "!SC2201"},
        {"SELECT VALUE ARRAY(SELECT VALUE c.n FROM c IN c.tags) FROM c WHERE c.id = 'a'",
         "[[\"x\",\"y\"]]"}, /* the inner alias hides the outer one */
        {"SELECT VALUE ARRAY(SELECT VALUE {k: k.name, p: ARRAY(SELECT VALUE p FROM p IN k.pets)} "
         "FROM k IN c.kids) FROM c WHERE c.id = 'a'",
         "[[{\"k\":\"Bo\",\"p\":[\"cat\",\"dog\"]},{\"k\":\"Cy\",\"p\":[]}]]"},
        {"SELECT VALUE (SELECT TOP 1 VALUE 1)", "!SC2203"},
        {"SELECT VALUE (SELECT VALUE 1 ORDER BY c.x) FROM c", "!SC2202"},
        {"SELECT VALUE (SELECT VALUE 1 OFFSET 0 LIMIT 1)", "!SC2204"},
        {"SELECT VALUE (SELECT VALUE 1 FROM c ORDER BY RANK FullTextScore(c.t, 'x')) FROM c",
         "!SC2228"},
        {"SELECT VALUE c[c.id] FROM c", "!SC2990"},
    };
    CHECK_CASES(CASES, DOCS, NULL);
}

static void what_cannot_be_run_yet_is_said_so(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT VALUE FullTextContains(c.t, 'x') FROM c",
         "!'FullTextContains', a function that is not available yet"},
        {"SELECT VALUE VectorDistance(c.v, [1]) FROM c", "!not available yet"},
        {"SELECT VALUE FullTextContainsAll(c.t, 'x', 'y') FROM c", "!not available yet"},
        {"SELECT VALUE FullTextContainsAny(c.t, 'x', 'y') FROM c", "!not available yet"},
        {"SELECT VALUE _FullTextScore(c.t, ['x'], 1, 1, [1]) FROM c", "!not available yet"},
        {"SELECT VALUE _FullTextWordCount(c.t) FROM c", "!not available yet"},
        {"SELECT VALUE udf.f(c) FROM c", "!SC2003"},
        {"SELECT VALUE udf.f(c) FROM c", "!User-defined function 'f' could not be resolved."},
        {"SELECT c.id FROM c ORDER BY RANK FullTextScore(c.t, 'x')", "!not available yet"},
        {"SELECT c.id FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'x'), VectorDistance(c.v, [1]), "
         "[1, 2])",
         "!not available yet"},
        {"SELECT c.id FROM c ORDER BY VectorDistance(c.v, [1])", "!not available yet"},
        {"SELECT NOSUCH(1)", "!'NOSUCH' is not a recognized built-in function name."},
        {"SELECT VALUE RRF(1)", "!SC2005"},
        {"SELECT VALUE FullTextScore(c.t, 'x') FROM c", "!SC2240"},
        {"SELECT 1 FROM c ORDER BY RANK NOSUCH(1)", "!SC2005"},
        {"SELECT 1 FROM c ORDER BY RANK ABS(1)", "!SC2221"},
        {"SELECT 1 FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'x'))", "!SC2221"},
        {"SELECT 1 FROM c ORDER BY RANK RRF(1, 2)", "!SC2221"},
        {"SELECT 1 FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'x'), FullTextScore(c.t, 'y'), [1])",
         "!SC2229"},
        {"SELECT 1 FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'x'), FullTextScore(c.t, 'y'), "
         "[1, 'a'])",
         "!SC2229"},
        {"SELECT 1 FROM c ORDER BY RANK FullTextScore(c.t, 'x'), FullTextScore(c.t, 'y')",
         "!SC2221"},
        {"SELECT 1 FROM x IN c.t ORDER BY RANK FullTextScore(x.t, 'x')", "!SC2223"},
        {"SELECT 1 FROM c JOIN c.t ORDER BY RANK FullTextScore(c.t, 'x')", "!SC2224"},
        {"SELECT 1 FROM (SELECT VALUE c FROM c) c ORDER BY RANK FullTextScore(c.t, 'x')",
         "!SC2225"},
        {"SELECT udf.a(1), udf.a(1) AS b, udf.a(1) AS c, udf.a(1) AS d, udf.a(1) AS e, udf.a(1) AS "
         "f,"
         "udf.a(1) AS g, udf.a(1) AS h, udf.a(1) AS i, udf.a(1) AS j, udf.a(1) AS k",
         "!SC3005"},
    };
    CHECK_CASES(CASES, "[]", NULL);
}

static void only_an_expression_over_the_item_may_be_computed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *refusal; /* NULL if it is accepted */
    } CASES[] = {
        {"SELECT VALUE LOWER(c.name) FROM c", NULL},
        {"SELECT VALUE r.a + 1 FROM root r", NULL},
        {"SELECT VALUE YEAR(c.date) FROM c", NULL},
        {"SELECT c.name FROM c", "another projection"},
        {"SELECT * FROM c", "another projection"},
        {"SELECT VALUE 1", "no FROM"},
        {"SELECT VALUE c.a FROM c WHERE c.a", "a WHERE"},
        {"SELECT VALUE c.a FROM c GROUP BY c.a", "a GROUP BY"},
        {"SELECT VALUE c.a FROM c ORDER BY c.a", "an ORDER BY"},
        {"SELECT TOP 1 VALUE c.a FROM c", "a TOP"},
        {"SELECT VALUE c.a FROM c OFFSET 0 LIMIT 1", "OFFSET LIMIT"},
        {"SELECT DISTINCT VALUE c.a FROM c", "a DISTINCT"},
        {"SELECT VALUE c.a FROM c JOIN c.b", "a JOIN"},
        {"SELECT VALUE a FROM a IN c.a", "other than the whole item"},
        {"SELECT VALUE a FROM c.a", "other than the whole item"},
        {"SELECT VALUE a FROM (SELECT VALUE 1) a", "a subquery"},
        {"SELECT VALUE [(SELECT VALUE 1)] FROM c", "a subquery"},
        {"SELECT VALUE EXISTS(SELECT VALUE 1) FROM c", "a subquery"},
        {"SELECT VALUE COUNT(c.a) FROM c", "an aggregate"},
        {"SELECT VALUE udf.f(c.a) FROM c", "a user-defined function"},
        {"SELECT VALUE ST_AREA(c.a) FROM c", "a spatial function"},
        {"SELECT VALUE RAND() FROM c", "answer differently"},
        {"SELECT VALUE {a: [GetCurrentTicks()]} FROM c", "answer differently"},
        {"SELECT VALUE @p FROM c", "SC2004"},
        {"SELECT VALUE", "SC1002"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        Error err = {0};
        Status status = query_check_computed(slice_from_cstr(CASES[i].text), &err);
        bool right = CASES[i].refusal == NULL
                         ? status == STATUS_OK
                         : status == STATUS_BAD_REQUEST &&
                               strstr(err.message, CASES[i].refusal) != NULL &&
                               strstr(err.message, "Computed property") != NULL;
        if (!right)
            fail_msg("%s: %s", CASES[i].text, status == STATUS_OK ? "accepted" : err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(projections_name_their_values),
        cmocka_unit_test(sources_bind_and_multiply),
        cmocka_unit_test(names_may_be_quoted),
        cmocka_unit_test(aggregates_count_what_is_defined),
        cmocka_unit_test(groups_have_keys_and_aggregates),
        cmocka_unit_test(distinct_drops_what_was_there),
        cmocka_unit_test(order_goes_by_type_and_value),
        cmocka_unit_test(subqueries_see_the_row_around_them),
        cmocka_unit_test(what_cannot_be_run_yet_is_said_so),
        cmocka_unit_test(only_an_expression_over_the_item_may_be_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
