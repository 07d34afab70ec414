/* parser_test.c - how queries are understood, and how they are refused. */
#include "query/sql/parser_int.h"
#include "query/sql/query_int.h"
#include "query/sql/sql_print_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <stdlib.h>

typedef struct TreeCase {
    const char *text;
    const char *tree; /* the tree printed, with parentheses around every operator */
} TreeCase;

static const char *print(Arena *arena, Slice text, Error *err)
{
    Select *select;
    if (parser_run(arena, text, &select, err) != STATUS_OK)
        return NULL;
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    print_select(select, &out);
    assert_false(buf_full(&out));
    return arena_cstr(arena, buf_view(&out));
}

static void check_trees(const TreeCase *cases, size_t count, const char *prefix)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Error err = {0};
        Slice text = arena_format(&arena, "%s%s", prefix, cases[i].text);
        Slice tree = arena_format(&arena, "%s%s%c", prefix, cases[i].tree, '\0');
        const char *printed = print(&arena, text, &err);
        if (printed == NULL)
            fail_msg("%s was refused: %s", cases[i].text, err.message);
        if (strcmp(printed, tree.ptr) != 0)
            fail_msg("%s\n  expected %s\n  got      %s", cases[i].text, tree.ptr, printed);
        /* What was printed is a query too, and the same one. */
        const char *again = print(&arena, slice_from_cstr(printed), &err);
        if (again == NULL || strcmp(again, printed) != 0)
            fail_msg("%s\n  printed %s\n  again   %s", cases[i].text, printed,
                     again == NULL ? err.message : again);
    }
}

static void operators_bind_as_the_language_has_it(void **state)
{
    (void)state;
    static const TreeCase CASES[] = {
        {"1 + 2 * 3", "(1 + (2 * 3))"},
        {"1 * 2 + 3", "((1 * 2) + 3)"},
        {"1 - 2 - 3", "((1 - 2) - 3)"},
        {"1 - (2 - 3)", "(1 - (2 - 3))"},
        {"(1 - 2) * 3", "((1 - 2) * 3)"},
        {"c.grade ^ 4 = 1", "((c.grade ^ 4) = 1)"},
        {"a & b + c", "((a & b) + c)"},
        {"a | b & c ^ d", "(((a | b) & c) ^ d)"},
        {"a << b + c", "(a << (b + c))"},
        {"a = b << c", "((a = b) << c)"},
        {"a = b & c != d", "((a = (b & c)) != d)"},
        {"a || b = c", "((a || b) = c)"},
        {"a + b || c", "((a + b) || c)"},
        {"a < b = c", "((a < b) = c)"},
        {"a <> b", "(a != b)"},
        {"a >>> b >> c", "((a >>> b) >> c)"},
        {"a = b IN (1)", "((a = b) IN (1))"},
        {"a NOT IN (1, 2)", "(a NOT IN (1, 2))"},
        {"a LIKE b || c", "(a LIKE (b || c))"},
        {"a NOT LIKE 'x' ESCAPE '!'", "(a NOT LIKE \"x\" ESCAPE \"!\")"},
        {"a AND b OR c AND d", "((a AND b) OR (c AND d))"},
        {"a OR b AND c", "(a OR (b AND c))"},
        {"a OR b OR c", "(a OR b OR c)"},
        {"(a OR b) OR c", "(a OR b OR c)"},
        {"a OR (b OR c)", "(a OR (b OR c))"},
        {"a ?? b OR c", "(a ?? (b OR c))"},
        {"a ?? b ?? c", "(a ?? b ?? c)"},
        {"1 ? 2 ?? 3 : 4", "(1 ? (2 ?? 3) : 4)"},
        {"a ? b : c ? d : e", "(a ? b : (c ? d : e))"},
        {"a ? b ? c : d : e", "(a ? (b ? c : d) : e)"},
        {"(a ? b : c) ? d : e", "((a ? b : c) ? d : e)"},
        {"true ? {\"x\":1} : {\"x\":2}.x", "(true ? {\"x\": 1} : {\"x\": 2}.x)"},
        {"- a.b", "(-a.b)"},
        {"- 5", "-5"},
        {"-(5)", "-5"},
        {"- -5", "5"},
        {"a - -5", "(a - -5)"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"9223372036854775808", "9223372036854776000.0"},
        {"+ ~ - a", "(+(~(-a)))"},
        {"NOT c.a = 1", "((NOT c.a) = 1)"},
        {"NOT c.a IN (1)", "((NOT c.a) IN (1))"},
        {"NOT a AND b", "((NOT a) AND b)"},
        {"NOT (a = 1)", "(NOT (a = 1))"},
        {"a BETWEEN 1 AND 2", "(a BETWEEN 1 AND 2)"},
        {"a NOT BETWEEN 1 + 1 AND 2", "(a NOT BETWEEN (1 + 1) AND 2)"},
        {"a BETWEEN 1 AND 2 AND b", "((a BETWEEN 1 AND 2) AND b)"},
        {"b OR a BETWEEN 1 AND 2 OR c", "(b OR (a BETWEEN 1 AND 2) OR c)"},
        {"(((a)))", "a"},
        {"(((a).b)[0])", "a.b[0]"},
        {"(((a + 1) * 2) = 3) AND b", "((((a + 1) * 2) = 3) AND b)"},
    };
    check_trees(CASES, ARRAY_COUNT(CASES), "SELECT VALUE ");
}

static void operands_are_read_whole(void **state)
{
    (void)state;
    static const TreeCase CASES[] = {
        {"[1, 'a', null, undefined, true]", "[1, \"a\", null, undefined, true]"},
        {"[]", "[]"},
        {"{}", "{}"},
        {"{a: 1, \"b c\": [2], 'd': {}}", "{\"a\": 1, \"b c\": [2], \"d\": {}}"},
        {"[NaN, Infinity, -Infinity]", "[NaN, Infinity, -Infinity]"},
        {"c[\"order\"]['x'][@p][1 + 1]", "c[\"order\"].x[@p][(1 + 1)]"},
        {"abs (1)", "abs(1)"},
        {"LEFT('a', 1) || right('b', 1)", "(LEFT(\"a\", 1) || right(\"b\", 1))"},
        {"PI()", "PI()"},
        {"udf.f(1, c)", "udf.f(1, c)"},
        {"f(1).x", "f(1).x"},
        {"(SELECT 1)", "(SELECT 1)"},
        {"(SELECT VALUE 1).a", "(SELECT VALUE 1).a"},
        {"EXISTS(SELECT 1) AND ARRAY (SELECT 1)", "(EXISTS(SELECT 1) AND ARRAY(SELECT 1))"},
        {"ALL(SELECT 1) = First(SELECT 1)", "(ALL(SELECT 1) = FIRST(SELECT 1))"},
        {"all(1)", "all(1)"},
        {"LAST(SELECT VALUE x FROM x IN c)", "LAST(SELECT VALUE x FROM x IN c)"},
        {"rank", "rank"},
        {"(-5).a", "(-5).a"},
        {"-5.5[0]", "(-(5.5)[0])"},
        /* A double stays one, also where it has no fraction. */
        {"9223372036854775807", "9223372036854775807"},
        {"6062622695331492294.0", "6062622695331492000.0"},
        {"1e300", "1e+300"},
        {"1.0", "1"},
    };
    check_trees(CASES, ARRAY_COUNT(CASES), "SELECT VALUE ");
}

static void clauses_come_in_their_order(void **state)
{
    (void)state;
    static const TreeCase CASES[] = {
        {"SELECT * FROM c", "SELECT * FROM c"},
        {"select distinct top 5 value c from root as c",
         "SELECT DISTINCT TOP 5 VALUE c FROM root AS c"},
        {"SELECT TOP @n c.a, 1 + 1 two, 3 AS three FROM c",
         "SELECT TOP @n c.a, (1 + 1) AS two, 3 AS three FROM c"},
        {"SELECT VALUE 1 AS ignored", "SELECT VALUE 1"},
        {"SELECT c.a AS 'Category', c.b AS \"Value\", 1 AS 'it\\'s'",
         "SELECT c.a AS \"Category\", c.b AS \"Value\", 1 AS \"it's\""},
        {"SELECT 1 FROM a.b[0][\"c d\"] x JOIN y IN x.z JOIN (SELECT 1) JOIN w IN (SELECT 2) JOIN "
         "f.g",
         "SELECT 1 FROM a.b[0][\"c d\"] AS x JOIN y IN x.z JOIN (SELECT 1) "
         "JOIN w IN (SELECT 2) JOIN f.g"},
        {"SELECT 1 FROM p JOIN kv IN OBJECTTOARRAY(p.m, 'k')",
         "SELECT 1 FROM p JOIN kv IN OBJECTTOARRAY(p.m, \"k\")"},
        {"SELECT 1 FROM c WHERE c.a GROUP BY c.b, c.d ORDER BY c.e, c.f DESC, c.g ASC OFFSET 1 "
         "LIMIT @l",
         "SELECT 1 FROM c WHERE c.a GROUP BY c.b, c.d "
         "ORDER BY c.e, c.f DESC, c.g OFFSET 1 LIMIT @l"},
        {"SELECT 1 FROM c ORDER BY RANK FullTextScore(c.t, 'x')",
         "SELECT 1 FROM c ORDER BY RANK FullTextScore(c.t, \"x\")"},
        {"SELECT 1 FROM c ORDER BY rank.x", "SELECT 1 FROM c ORDER BY rank.x"},
        {"SELECT 1 -- ; nothing more", "SELECT 1"},
    };
    check_trees(CASES, ARRAY_COUNT(CASES), "");
}

typedef struct RefusalCase {
    const char *text;
    unsigned start;
    unsigned end;
    const char *code;
    const char *message;
} RefusalCase;

static void refusals_say_what_and_where(void **state)
{
    (void)state;
    static const RefusalCase CASES[] = {
        {"", 0, 0, "SC1002", "Syntax error, unexpected end-of-file."},
        {"SELECT * FROM c WHERE", 21, 21, "SC1002", "Syntax error, unexpected end-of-file."},
        {"SELECT * FROM c WHERE  -- x", 27, 27, "SC1002", "Syntax error, unexpected end-of-file."},
        {"Selec *", 0, 5, "SC1001", "Syntax error, incorrect syntax near 'Selec'."},
        {"SELECT c.value FROM c", 9, 14, "SC1001", "Syntax error, incorrect syntax near 'value'."},
        {"SELECT c.left FROM c", 9, 13, "SC1001", "Syntax error, incorrect syntax near 'left'."},
        {"SELECT 1 'two'", 9, 14, "SC1001", "Syntax error, incorrect syntax near ''two''."},
        {"SELECT 1 AS order", 12, 17, "SC1001", "Syntax error, incorrect syntax near 'order'."},
        {"SELECT 1 FROM group", 14, 19, "SC1001", "Syntax error, incorrect syntax near 'group'."},
        {"SELECT 1 FROM @c", 14, 16, "SC1001", "Syntax error, incorrect syntax near '@c'."},
        {"SELECT 1 FROM c[-1]", 16, 17, "SC1001", "Syntax error, incorrect syntax near '-'."},
        {"SELECT 1 FROM c[1+1]", 16, 19, "SC1001", "Syntax error, incorrect syntax near '1+1'."},
        {"SELECT 1 FROM c[1.5]", 16, 19, "SC1001", "Syntax error, incorrect syntax near '1.5'."},
        {"SELECT 1 FROM c[@p]", 16, 18, "SC1001", "Syntax error, incorrect syntax near '@p'."},
        {"SELECT 1 FROM c, d", 15, 16, "SC1001", "Syntax error, incorrect syntax near ','."},
        {"SELECT 1 FROM c LEFT JOIN d", 16, 20, "SC1001",
         "Syntax error, incorrect syntax near 'LEFT'."},
        {"SELECT TOP -1 c FROM c", 11, 12, "SC1001", "Syntax error, incorrect syntax near '-'."},
        {"SELECT TOP 1.5 c FROM c", 11, 14, "SC1001", "Syntax error, incorrect syntax near '1.5'."},
        {"SELECT TOP 5 DISTINCT c FROM c", 13, 21, "SC1001",
         "Syntax error, incorrect syntax near 'DISTINCT'."},
        {"SELECT 1 OFFSET 1", 17, 17, "SC1002", "Syntax error, unexpected end-of-file."},
        {"SELECT 1 LIMIT 1", 9, 14, "SC1001", "Syntax error, incorrect syntax near 'LIMIT'."},
        {"SELECT *, 1 FROM c", 8, 9, "SC1001", "Syntax error, incorrect syntax near ','."},
        {"SELECT VALUE * FROM c", 13, 14, "SC1001", "Syntax error, incorrect syntax near '*'."},
        {"SELECT COUNT(*) FROM c", 13, 14, "SC1001", "Syntax error, incorrect syntax near '*'."},
        {"SELECT c.a IN () FROM c", 15, 16, "SC1001", "Syntax error, incorrect syntax near ')'."},
        {"SELECT c.a IN c.b FROM c", 14, 15, "SC1001", "Syntax error, incorrect syntax near 'c'."},
        {"SELECT [1,] FROM c", 10, 11, "SC1001", "Syntax error, incorrect syntax near ']'."},
        {"SELECT {1: 2}", 8, 9, "SC1001", "Syntax error, incorrect syntax near '1'."},
        {"SELECT {a 2}", 10, 11, "SC1001", "Syntax error, incorrect syntax near '2'."},
        {"SELECT 1 NOT 2", 9, 12, "SC1001", "Syntax error, incorrect syntax near 'NOT'."},
        {"SELECT a IN (1) = b", 16, 17, "SC1001", "Syntax error, incorrect syntax near '='."},
        {"SELECT a IN (1) IN (2)", 16, 18, "SC1001", "Syntax error, incorrect syntax near 'IN'."},
        {"SELECT a LIKE 'b' ESCAPE 'cd'", 25, 29, "SC1001",
         "Syntax error, incorrect syntax near ''cd''."},
        {"SELECT a LIKE 'b' ESCAPE ''", 25, 27, "SC1001",
         "Syntax error, incorrect syntax near ''''."},
        {"SELECT EXISTS(1)", 14, 15, "SC1001", "Syntax error, incorrect syntax near '1'."},
        {"SELECT f(SELECT 1)", 9, 15, "SC1001", "Syntax error, incorrect syntax near 'SELECT'."},
        {"SELECT c.f(1) FROM c", 10, 11, "SC1001", "Syntax error, incorrect syntax near '('."},
        {"SELECT udf(1)", 10, 11, "SC1001", "Syntax error, incorrect syntax near '('."},
        {"SELECT (1", 9, 9, "SC1002", "Syntax error, unexpected end-of-file."},
        {"SELECT 1)", 8, 9, "SC1001", "Syntax error, incorrect syntax near ')'."},
        {"SELECT 1;", 8, 9, "SC1010", "Syntax error, invalid token ';'."},
        {"SELECT 12ab", 7, 11, "SC1011", "Syntax error, invalid numeric value token '12ab'."},
        {"SELECT c.2", 8, 10, "SC1001", "Syntax error, incorrect syntax near '.2'."},
        {"SELECT 'abc", 7, 11, "SC1012", "Syntax error, invalid string literal token ''abc'."},
        {"SELECT \"a\\u00g0\"", 7, 16, "SC1012",
         "Syntax error, invalid string literal token '\\\"a\\\\u00g0\\\"'."},
        /* Locations count UTF-16 units: two for the face, one for the letter with two dots. */
        {"SELECT '\xF0\x9F\x98\x80\xC3\xA4' FROM group", 18, 23, "SC1001",
         "Syntax error, incorrect syntax near 'group'."},
        {"SELECT 1 FROM c GROUP c.a", 22, 23, "SC1001", "Syntax error, incorrect syntax near 'c'."},
        {"SELECT 1 FROM c ORDER BY RANK 1", 30, 31, "SC1001",
         "Syntax error, incorrect syntax near '1'."},
        {"SELECT 1 FROM c ORDER BY RANK f(1), c.a", 37, 38, "SC1001",
         "Syntax error, incorrect syntax near '.'."},
        {"SELECT 1 HAVING 2", 9, 15, "SC1001", "Syntax error, incorrect syntax near 'HAVING'."},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Error err = {0};
        Select *select;
        Status status = parser_run(&arena, slice_from_cstr(CASES[i].text), &select, &err);
        Slice expected = arena_format(
            &arena,
            "{\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":%u,\"end\":%u},"
            "\"code\":\"%s\",\"message\":\"%s\"}]}%c",
            CASES[i].start, CASES[i].end, CASES[i].code, CASES[i].message, '\0');
        if (status != STATUS_BAD_REQUEST || strcmp(err.message, expected.ptr) != 0)
            fail_msg("%s\n  expected %s\n  got      %s", CASES[i].text, expected.ptr,
                     status == STATUS_OK ? "no error" : err.message);
    }
}

static void a_query_of_no_bytes_at_all_is_refused(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Error err = {0};
    Query *query;
    assert_int_equal(query_bind_text(&arena, SLICE_EMPTY, JSON_NONE, JSON_NONE, &query, &err),
                     STATUS_BAD_REQUEST);
    assert_non_null(strstr(err.message, "SC1002"));
}

/* However long and odd the offending token is, the message is whole JSON. */
static void long_tokens_are_cut_and_messages_stay_json(void **state)
{
    (void)state;
    static const char *const FILL[] = {"x", "\\\\", "\x01", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"};
    for (size_t i = 0; i < ARRAY_COUNT(FILL); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        AUTO(buf_done) Buf text;
        buf_init(&text, 4096);
        buf_slice(&text, SLICE("SELECT 1 '"));
        for (int n = 0; n < 400; n++)
            buf_slice(&text, slice_from_cstr(FILL[i]));
        buf_byte(&text, '\'');
        Error err = {0};
        Select *select;
        assert_int_equal(parser_run(&arena, buf_view(&text), &select, &err), STATUS_BAD_REQUEST);
        Json json;
        Error json_err;
        if (json_parse(&arena, slice_from_cstr(err.message), &json, &json_err) != STATUS_OK)
            fail_msg("%s: %s", err.message, json_err.message);
    }
}

static Slice repeat(Arena *arena, const char *before, const char *open, size_t times,
                    const char *middle, const char *close, const char *after)
{
    size_t size = strlen(before) + strlen(middle) + strlen(after) +
                  times * (strlen(open) + strlen(close)) + 1;
    char *text = arena_alloc(arena, size);
    char *at = stpcpy(text, before);
    for (size_t i = 0; i < times; i++)
        at = stpcpy(at, open);
    at = stpcpy(at, middle);
    for (size_t i = 0; i < times; i++)
        at = stpcpy(at, close);
    at = stpcpy(at, after);
    return slice_make(text, (size_t)(at - text));
}

typedef struct DepthCase {
    const char *open;
    const char *middle;
    const char *close;
    size_t times;
    bool accepted;
} DepthCase;

static void nesting_is_bounded(void **state)
{
    (void)state;
    static const DepthCase CASES[] = {
        /* What leans to the left is flat, however long it is. */
        {"", "1", " + 1", 50000, true},
        {"", "true", " AND true", 50000, true},
        {"", "1", " ?? 1", 50000, true},
        {"", "c", ".a", 50000, true},
        {"", "true", " ? 1 : true", 50000, true},
        {"(", "1", ")", QUERY_PARENTHESES_MAX, true},
        {"(", "1", ")", QUERY_PARENTHESES_MAX + 1, false},
        {"(", "true", " OR true)", QUERY_PARENTHESES_MAX, true},
        {"(", "1", " + 1)", QUERY_PARENTHESES_MAX, true},
        /* Everything else costs a level. */
        {"[", "1", "]", 190, true},
        {"[", "1", "]", 201, false},
        {"[", "1", "]", 200000, false},
        {"f(", "1", ")", 190, true},
        {"f(", "1", ")", 201, false},
        {"{a:", "1", "}", 100000, false},
        {"- ", "a", "", 100000, false},
        {"NOT ", "a", "", 190, true},
        {"1 + (", "1", ")", 190, true},
        {"1 + (", "1", ")", 100000, false},
        {"(SELECT VALUE ", "1", ")", 38, true},
        {"(SELECT VALUE ", "1", ")", 60, false},
        {"a[", "1", "]", 100000, false},
        /* Alternating operators make a tall tree without deep recursion. */
        {"(", "a", " AND b OR c)", 300, false},
        {"(SELECT VALUE (", "a", " AND b) OR c)", 50, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        const DepthCase *c = &CASES[i];
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 64 << 10);
        Slice text = repeat(&arena, "SELECT VALUE ", c->open, c->times, c->middle, c->close, "");
        Error err = {0};
        Select *select;
        Status status = parser_run(&arena, text, &select, &err);
        if ((status == STATUS_OK) != c->accepted)
            fail_msg("%zu times '%s': %s", c->times, c->open, err.message);
        if (!c->accepted)
            assert_non_null(strstr(err.message, "SC1030"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_bind_as_the_language_has_it),
        cmocka_unit_test(operands_are_read_whole),
        cmocka_unit_test(clauses_come_in_their_order),
        cmocka_unit_test(refusals_say_what_and_where),
        cmocka_unit_test(a_query_of_no_bytes_at_all_is_refused),
        cmocka_unit_test(long_tokens_are_cut_and_messages_stay_json),
        cmocka_unit_test(nesting_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
