/* fold_test.c - what becomes a literal when a query is parsed, and what must not. */
#include "query/eval/query_testing_int.h"
#include "query/sql/query_int.h"
#include "query/sql/sql_print_int.h"

static const char PARAMETERS[] = "[{\"name\":\"@p\",\"value\":{\"a\":[1,2]}},"
                                 "{\"name\":\"@s\",\"value\":\"x\"}]";

static Query *parse(Arena *arena, const char *text)
{
    Query *query;
    Error err;
    if (query_parse(arena, slice_from_cstr(text), parse_json(arena, PARAMETERS), &query, &err) !=
        STATUS_OK)
        fail_msg("%s\n  %s", text, err.message);
    return query;
}

typedef struct FoldCase {
    const char *query; /* behind "SELECT " */
    const char *printed;
} FoldCase;

static void check(const FoldCase *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        AUTO(buf_done) Buf out;
        buf_init(&out, 4096);
        Slice text = arena_format(&arena, "SELECT %s%c", cases[i].query, '\0');
        print_select(parse(&arena, text.ptr)->select, &out);
        buf_byte(&out, '\0');
        if (strcmp(out.ptr + 7, cases[i].printed) != 0)
            fail_msg("%s\n  expected %s\n  got      %s", cases[i].query, cases[i].printed,
                     out.ptr + 7);
    }
}

static void constants_become_literals(void **state)
{
    (void)state;
    static const FoldCase CASES[] = {
        {"VALUE {a: [1, 'x', {b: null}], c: 1 + 1}",
         "VALUE {\"a\":[1,\"x\",{\"b\":null}],\"c\":2}"},
        {"VALUE [1, undefined, 2]", "VALUE [1,2]"},
        {"VALUE -1", "VALUE -1"},
        {"VALUE undefined + 1", "VALUE undefined"},
        {"VALUE CONCAT('a', @s)", "VALUE \"ax\""},
        {"VALUE @p.a[0] + 1", "VALUE 2"},
        {"VALUE 3 IN (1, 2) OR 1 BETWEEN 0 AND 2", "VALUE true"},
        {"VALUE 1 NOT IN (1)", "VALUE false"},
        {"VALUE true ? 1 : RAND()", "VALUE (true ? 1 : RAND())"},
        /* As much of an expression as is constant. */
        {"VALUE c.x + (1 + 2) FROM c", "VALUE (c.x + 3) FROM c"},
        {"VALUE 1 + 2 + c.x FROM c", "VALUE ((1 + 2) + c.x) FROM c"},
        {"VALUE [c.x, [1, 2]] FROM c", "VALUE [c.x, [1,2]] FROM c"},
        {"VALUE c['a' || 'b'] FROM c", "VALUE c[\"ab\"] FROM c"},
        {"VALUE [1, 2][0]", "VALUE [1,2][0]"},
        /* In every clause, and at every level. */
        {"VALUE COUNT(1 + 1) FROM c WHERE c.x > 1 + 1 AND 1 = 1 GROUP BY c.y + (1 + 1)",
         "VALUE COUNT(2) FROM c WHERE ((c.x > 2) AND true) GROUP BY (c.y + 2)"},
        {"VALUE ARRAY(SELECT VALUE [1] FROM x IN c.v WHERE 1 = 2) FROM c",
         "VALUE ARRAY(SELECT VALUE [1] FROM x IN c.v WHERE false) FROM c"},
        {"VALUE y FROM (SELECT VALUE 'a' || 'b' FROM c) AS y",
         "VALUE y FROM (SELECT VALUE \"ab\" FROM c) AS y"},
        {"VALUE y FROM c JOIN y IN ARRAY_CONCAT([1 + 1], [2])",
         "VALUE y FROM c JOIN y IN ARRAY_CONCAT([2], [2])"},
        {"VALUE ST_DISTANCE(c.l, {type: 'Point', coordinates: [1, 2]}) FROM c",
         "VALUE ST_DISTANCE(c.l, {\"type\":\"Point\",\"coordinates\":[1,2]}) FROM c"},
    };
    check(CASES, ARRAY_COUNT(CASES));
}

static void what_may_differ_or_cannot_be_spelled_stays(void **state)
{
    (void)state;
    static const FoldCase CASES[] = {
        {"VALUE RAND() + (1 + 1)", "VALUE (RAND() + 2)"},
        {"VALUE [GetCurrentDateTimeStatic()]", "VALUE [GetCurrentDateTimeStatic()]"},
        {"VALUE ST_ISVALID({type: 'Point'})", "VALUE ST_ISVALID({\"type\":\"Point\"})"},
        {"VALUE [(SELECT VALUE 1)]", "VALUE [(SELECT VALUE 1)]"},
        {"VALUE [udf.f(1 + 1)]", "VALUE [udf.f(2)]"},
        {"VALUE 0 / 0", "VALUE (0 / 0)"},
        {"VALUE 1 / 0", "VALUE (1 / 0)"},
        {"VALUE 0 * -1.5", "VALUE (0 * -1.5)"},
        {"VALUE @s", "VALUE @s"},
        {"@p.a", "@p.a"},
    };
    check(CASES, ARRAY_COUNT(CASES));
}

static void names_and_results_are_those_of_the_text(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT 1 + 1, @p.a, {x: 1}, c.b AS y FROM c",
         "[{\"$1\":2,\"a\":[1,2],\"$2\":{\"x\":1},\"y\":5}]"},
        {"SELECT c.a + (1 + 1) AS s, COUNT(1) AS n FROM c GROUP BY c.a + (1 + 1)",
         "[{\"s\":3,\"n\":1}]"},
        {"SELECT VALUE 1 / -0.0 < 0 FROM c", "[true]"},
        {"SELECT VALUE c FROM c WHERE IS_DEFINED([1][7])", "[]"},
        {"SELECT VALUE v FROM c JOIN v IN ARRAY_CONCAT([1], [2])", "[1,2]"},
        /* The place of an error is in the text, whatever is constant around it. */
        {"SELECT VALUE [1 + 1, nothing.x] FROM c", "!\"start\":21,\"end\":28"},
    };
    CHECK_CASES(CASES, "[{\"a\":1,\"b\":5}]", PARAMETERS);
}

/* An expression that needs more than two megabytes, with text around it. */
static const char *too_much(Arena *arena, const char *before, const char *after)
{
    AUTO(buf_done) Buf text;
    buf_init(&text, 1 << 16);
    buf_format(&text, "%sLENGTH(CONCAT(''", before);
    for (int i = 0; i < 200; i++)
        buf_slice(&text, SLICE(", REPLICATE('x', 10000)"));
    buf_format(&text, "))%s", after);
    return arena_cstr(arena, buf_view(&text));
}

/* What costs too much fails when, and only when, it is reached. */
static void a_constant_that_costs_too_much_is_the_business_of_the_run(void **state)
{
    (void)state;
    static const struct {
        const char *before;
        const char *after;
        size_t bytes_max;
        const char *expected;
    } CASES[] = {
        {"SELECT VALUE ", " FROM c", 1000000, "!more than 1000000 bytes"},
        {"SELECT VALUE ", " FROM c", 8000000, "[2000000]"},
        {"SELECT VALUE false ? ", " : 1 FROM c", 1000000, "[1]"},
        {"SELECT VALUE ", " FROM c WHERE false", 1000000, "[]"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        const char *query = too_much(&arena, CASES[i].before, CASES[i].after);
        const char *got =
            run_query(&arena, query, "[{}]", NULL, (QueryOptions){.bytes_max = CASES[i].bytes_max});
        const char *expected = CASES[i].expected;
        if (expected[0] == '!' ? strstr(got, expected + 1) == NULL : strcmp(got, expected) != 0)
            fail_msg("case %zu: expected %s, got %s", i, expected, got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_become_literals),
        cmocka_unit_test(what_may_differ_or_cannot_be_spelled_stays),
        cmocka_unit_test(names_and_results_are_those_of_the_text),
        cmocka_unit_test(a_constant_that_costs_too_much_is_the_business_of_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
