/* functions_test.c - functions: what they give, and when they give nothing. Those of dates,
 * patterns and shapes have tests of their own. */
#include "query/eval/call_int.h"
#include "query/eval/query_testing_int.h"

static void names_are_found_in_any_case_and_arguments_are_counted(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"abs(-1) + Abs(-1) + ABS (-1)", "3"},
        {"ABS()", "!The ABS function requires 1 argument(s)."},
        {"PI(1)", "!The PI function requires 0 argument(s)."},
        {"StartsWith('a')", "!The STARTSWITH function requires 2 to 3 argument(s)."},
        {"CONCAT('a')", "!The CONCAT function requires at least 2 argument(s)."},
        {"fulltextcontains(1)", "!The FullTextContains function requires 2 argument(s)."},
        {"NOSUCH()", "!'NOSUCH' is not a recognized built-in function name."},
        {"ab\xC3\xA4()", "!'ab\xC3\xA4' is not a recognized built-in function name."},
    };
    CHECK_EXPRESSIONS(CASES);
    assert_null(function_find(SLICE("")));
    assert_null(function_find(SLICE("ABSX")));
    assert_non_null(function_find(SLICE("intbitwiseAND")));
}

static void text_is_searched(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"CONTAINS('abc', 'b')", "true"},
        {"CONTAINS('abc', 'B')", "false"},
        {"CONTAINS('abc', 'B', true)", "true"},
        {"CONTAINS('\xC3\x84pfel', '\xC3\xA4P', true)", "true"},
        {"CONTAINS('abc', '')", "true"},
        {"CONTAINS('abc', 1)", ""},
        {"CONTAINS('abc', 'b', 1)", ""},
        {"CONTAINS('abc', 'b', undefined)", ""},
        {"STARTSWITH('abc', 'ab')", "true"},
        {"STARTSWITH('abc', 'AB', true)", "true"},
        {"STARTSWITH('abc', 'bc')", "false"},
        {"ENDSWITH('abc', 'bc')", "true"},
        {"ENDSWITH('abc', 'BC', false)", "false"},
        {"ENDSWITH('abc', 'xabc')", "false"},
        {"STRINGEQUALS('abc', 'ABC', true)", "true"},
        {"STRINGEQUALS('abc', 'ABC')", "false"},
        {"STRINGEQUALS(null, null)", ""},
        {"CONTAINS_ALL_CI('abc', 'A', 'C')", "true"},
        {"CONTAINS_ALL_CS('abc', 'A', 'c')", "false"},
        {"CONTAINS_ALL_CS('abc', 'x', undefined)", "false"},
        {"CONTAINS_ALL_CS('abc', 'a', undefined)", ""},
        {"CONTAINS_ANY_CI('abc', 'X', 'C')", "true"},
        {"CONTAINS_ANY_CS('abc', 'x', 'C')", "false"},
        {"CONTAINS_ANY_CS('abc', 'a', undefined)", "true"},
        {"CONTAINS_ANY_CS('abc', 'x', undefined)", ""},
        {"INDEX_OF('abcabc', 'c')", "2"},
        {"INDEX_OF('abcabc', 'c', 3)", "5"},
        {"INDEX_OF('abcabc', 'c', -3)", "2"},
        {"INDEX_OF('abcabc', 'c', 99)", "-1"},
        {"INDEX_OF('abc', 'x')", "-1"},
        {"INDEX_OF('abc', '')", "0"},
        {"INDEX_OF('\xF0\x9F\x98\x80x', 'x')", "2"},
        {"INDEX_OF('abc', 'b', 0.5)", ""},
        {"LASTINDEXOF('abcdeabc', 'abc')", "5"},
        {"LASTINDEXOF('abcdeabc', 'abc', 6)", "0"},
        {"LASTINDEXOF('abcdeabc', 'abc', 7)", "5"},
        {"LASTINDEXOF('abcdeabc', 'abc', 99)", "5"},
        {"LASTINDEXOF('abc', 'x')", "-1"},
        {"LASTINDEXOF('abc', 'a', -1)", "-1"},
        {"LASTINDEXOF('a', 'abc')", "-1"},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void text_is_made_of_text(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"CONCAT('a', '', 'bc')", "\"abc\""},
        {"CONCAT('a', 1)", ""},
        {"LENGTH('')", "0"},
        {"LENGTH('a\xC3\xA4\xE2\x82\xAC')", "3"},
        {"LENGTH('\xF0\x9F\x98\x80')", "2"},
        {"LENGTH(5)", ""},
        {"LOWER('AbC \xC3\x84\xC4\xB0')", "\"abc \xC3\xA4i\""},
        {"UPPER('abc \xC3\xA4\xC3\xBF')", "\"ABC \xC3\x84\xC5\xB8\""},
        {"UPPER(1)", ""},
        {"SUBSTRING(SUBSTRING('a', -1, 1), 0, 1) || TRIM('')", "\"\""},
        {"LEFT('abc', 2)", "\"ab\""},
        {"LEFT('abc', 9)", "\"abc\""},
        {"LEFT('abc', -1)", "\"\""},
        {"LEFT('abc', 1.5)", ""},
        {"LEFT('\xF0\x9F\x98\x80', 1)", "\"\xEF\xBF\xBD\""},
        {"RIGHT('abc', 2)", "\"bc\""},
        {"RIGHT('abc', 9)", "\"abc\""},
        {"RIGHT('abc', 0)", "\"\""},
        {"RIGHT('a\xF0\x9F\x98\x80', 1)", "\"\xEF\xBF\xBD\""},
        {"SUBSTRING('abcdef', 1, 3)", "\"bcd\""},
        {"SUBSTRING('abc', 1, 99)", "\"bc\""},
        {"SUBSTRING('abc', 3, 1)", "\"\""},
        {"SUBSTRING('abc', 9, 1)", "\"\""},
        {"SUBSTRING('abc', -1, 2)", "\"\""},
        {"SUBSTRING('abc', 0, -1)", "\"\""},
        {"SUBSTRING('abc', 0, 9223372036854775807)", "\"abc\""},
        {"SUBSTRING('abc', '0', 1)", ""},
        {"SUBSTRING('\xF0\x9F\x98\x80\xC3\xA4', 2, 1)", "\"\xC3\xA4\""},
        {"TRIM('  a b\\t\\n')", "\"a b\""},
        {"LTRIM('  a ')", "\"a \""},
        {"RTRIM(' a  ')", "\" a\""},
        {"TRIM('-_-x-_-', '-_')", "\"x\""},
        {"LTRIM('xxa', 'x')", "\"a\""},
        {"RTRIM('axx', 'x')", "\"a\""},
        {"TRIM('\xC3\xA4z\xC3\xA4', '\xC3\xA4')", "\"z\""},
        {"TRIM('xx', 'x')", "\"\""},
        {"TRIM(' a ', '')", "\" a \""},
        {"TRIM('a', 1)", ""},
        {"REPLACE('aXbXc', 'X', '--')", "\"a--b--c\""},
        {"REPLACE('aXb', 'X', '')", "\"ab\""},
        {"REPLACE('aaa', 'aa', 'b')", "\"ba\""},
        {"REPLACE('abc', 'x', 'y')", "\"abc\""},
        {"REPLACE('abc', '', 'y')", ""},
        {"REPLICATE('ab', 3)", "\"ababab\""},
        {"REPLICATE('ab', 1.9)", "\"ab\""},
        {"REPLICATE('ab', 0)", "\"\""},
        {"REPLICATE('ab', -1)", ""},
        {"REPLICATE('ab', 5001)", ""},
        {"LENGTH(REPLICATE('ab', 5000))", "10000"},
        {"REPLICATE('', 1e300)", "\"\""},
        {"REPLICATE('a', 1 / 0)", ""},
        {"REPLICATE('a', 0 / 0)", ""},
        {"REVERSE('ab\xC3\xA4\xF0\x9F\x98\x80')", "\"\xF0\x9F\x98\x80\xC3\xA4"
                                                  "ba\""},
        {"STRINGJOIN(['a', 'b', ''], ', ')", "\"a, b, \""},
        {"STRINGJOIN([], 'x')", "\"\""},
        {"STRINGJOIN(['a', 1], 'x')", ""},
        {"STRINGSPLIT('a,b,,c', ',')", "[\"a\",\"b\",\"\",\"c\"]"},
        {"STRINGSPLIT('abc', 'x')", "[\"abc\"]"},
        {"STRINGSPLIT('abc', '')", "[\"abc\"]"},
        {"STRINGSPLIT('', '')", "[\"\"]"},
        {"SUBSTRINGBEFORE('a/b/c', '/')", "\"a\""},
        {"SUBSTRINGAFTER('a/b/c', '/')", "\"b/c\""},
        {"LASTSUBSTRINGBEFORE('a/b/c', '/')", "\"a/b\""},
        {"LASTSUBSTRINGAFTER('a/b/c', '/')", "\"c\""},
        {"SUBSTRINGAFTER('abc', 'x') || LASTSUBSTRINGAFTER('abc', 'x')", "\"\""},
        {"SUBSTRINGBEFORE('abc', 'x') || LASTSUBSTRINGBEFORE('abc', 'x')", "\"\""},
        {"[SUBSTRINGBEFORE('ab', ''), SUBSTRINGAFTER('ab', ''), LASTSUBSTRINGBEFORE('ab', ''), "
         "LASTSUBSTRINGAFTER('ab', '')]",
         "[\"\",\"ab\",\"ab\",\"\"]"},
        {"SUBSTRINGAFTER('abc', 1)", ""},
        {"LASTSUBSTRINGBEFORE(undefined, 'a')", ""},
        {"STRINGSPLIT('a--b--', '--')", "[\"a\",\"b\",\"\"]"},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void values_turn_into_text_and_back(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"TOSTRING('a')", "\"a\""},
        {"TOSTRING(1.0000)", "\"1\""},
        {"TOSTRING(-2.5)", "\"-2.5\""},
        {"TOSTRING(true)", "\"true\""},
        {"TOSTRING(null)", "\"null\""},
        {"TOSTRING([1, 'a'])", "\"[1,\\\"a\\\"]\""},
        {"TOSTRING({a: {}})", "\"{\\\"a\\\":{}}\""},
        {"TOSTRING(0 / 0)", "\"NaN\""},
        {"TOSTRING(-1 / 0)", "\"-Infinity\""},
        {"TOSTRING(undefined)", ""},
        {"STRINGTONUMBER(' 60 ')", "60"},
        {"STRINGTONUMBER('-1.79769e+308')", "-1.79769e+308"},
        {"STRINGTONUMBER('0xF')", ""},
        {"STRINGTONUMBER('')", ""},
        {"STRINGTONUMBER('1 2')", ""},
        {"STRINGTONUMBER('\"1\"')", ""},
        {"STRINGTONUMBER(1)", ""},
        {"STRINGTOBOOLEAN('  false ')", "false"},
        {"STRINGTOBOOLEAN('TRUE')", ""},
        {"STRINGTONULL(' null ')", "null"},
        {"STRINGTONULL('NULL')", ""},
        {"STRINGTOARRAY('[1,{\"a\":2}]')", "[1,{\"a\":2}]"},
        {"STRINGTOARRAY(\"['a']\")", ""},
        {"STRINGTOARRAY('{}')", ""},
        {"STRINGTOOBJECT('{\"a\":[]}')", "{\"a\":[]}"},
        {"STRINGTOOBJECT('{a:1}')", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void numbers_are_computed(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"[ABS(-1.5), CEILING(1.2), FLOOR(-1.2), TRUNC(-1.7), ROUND(2.5), ROUND(-0.5)]",
         "[1.5,2,-2,-1,3,-1]"},
        {"[SIGN(-3), SIGN(0), SIGN(0.1), SQRT(9), SQUARE(-3), POWER(2, 10), EXP(0)]",
         "[-1,0,1,3,9,1024,1]"},
        {"[LOG(1), LOG(8, 2), LOG10(1000)]", "[0,3,3]"},
        {"[LOG(1000, 10), LOG(1e15, 10), LOG(0.001, 10)]", "[3,15,-3]"},
        {"[SIN(0), COS(0), TAN(0), ASIN(0), ACOS(1), ATAN(0), ATN2(0, 1)]", "[0,1,0,0,0,0,0]"},
        {"ROUND(COT(0.5) * 1000)", "1830"},
        {"ROUND(ATN2(35.175643, 129.44) * 1000)", "265"},
        {"[DEGREES(PI()), RADIANS(180) = PI()]", "[180,true]"},
        {"SQRT(-1)", ""},
        {"IS_NUMBER(SQRT(-1))", "true"},
        {"ABS('1')", ""},
        {"POWER(2, null)", ""},
        {"LOG(2, 'a')", ""},
        {"ATN2(1, undefined)", ""},
        {"[NUMBERBIN(37.752), NUMBERBIN(37.752, 10), NUMBERBIN(37.752, -100)]", "[37,30,100]"},
        {"NUMBERBIN(1, 0)", ""},
        {"RAND() >= 0 AND RAND() < 1", "true"},
        {"[INTADD(1, 2), INTSUB(1, 2), INTMUL(3, -4), INTDIV(7, -2), INTMOD(12, -5), "
         "INTMOD(-12, -5)]",
         "[3,-1,-12,-3,2,-2]"},
        {"INTADD(9223372036854775807, 1)", ""},
        {"INTSUB(-9223372036854775808, 1)", ""},
        {"INTMUL(9223372036854775807, 2)", ""},
        {"INTADD(9223372036854775806, 1)", "9223372036854775807"},
        {"INTDIV(1, 0)", ""},
        {"INTDIV(-9223372036854775808, -1)", ""},
        {"INTMOD(-9223372036854775808, -1)", "0"},
        {"INTMOD(1, 0)", ""},
        {"INTADD(1.5, 1)", ""},
        {"INTADD('1', 1)", ""},
        {"[INTBITAND(15, 25), INTBITOR(56, 100), INTBITXOR(5, 1), INTBITNOT(65)]", "[9,124,4,-66]"},
        {"[INTBITLEFTSHIFT(1, 40), INTBITRIGHTSHIFT(-16, 2), INTBITLEFTSHIFT(1, 64)]",
         "[1099511627776,-4,1]"},
        {"[IntBitwiseAnd(6, 3), IntBitwiseOr(6, 3), IntBitwiseXor(6, 3), IntBitwiseNot(6)]",
         "[2,7,5,-7]"},
        {"[IntBitwiseLeftShift(1, 2), IntBitwiseRightShift(16, 2)]", "[4,4]"},
        {"INTBITNOT(0.5)", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void types_are_told_apart(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"[IS_ARRAY([]), IS_ARRAY({}), IS_ARRAY(undefined)]", "[true,false,false]"},
        {"[IS_BOOL(false), IS_BOOLEAN(true), IS_BOOL(null)]", "[true,true,false]"},
        {"[IS_DEFINED(null), IS_DEFINED(undefined)]", "[true,false]"},
        {"[IS_NULL(null), IS_NULL(undefined)]", "[true,false]"},
        {"[IS_NUMBER(1), IS_NUMBER('1'), IS_NUMBER(undefined)]", "[true,false,false]"},
        {"[IS_OBJECT({}), IS_OBJECT([])]", "[true,false]"},
        {"[IS_STRING(''), IS_STRING(1)]", "[true,false]"},
        {"[IS_PRIMITIVE(1), IS_PRIMITIVE('a'), IS_PRIMITIVE(true), IS_PRIMITIVE(null), "
         "IS_PRIMITIVE([]), IS_PRIMITIVE({}), IS_PRIMITIVE(undefined)]",
         "[true,true,true,true,false,false,false]"},
        {"[IS_FINITE_NUMBER(1), IS_FINITE_NUMBER(1/0), IS_FINITE_NUMBER(0/0), "
         "IS_FINITE_NUMBER('1')]",
         "[true,false,false,false]"},
        {"[IS_INTEGER(1), IS_INTEGER(1.5), IS_INTEGER(9223372036854775807), "
         "IS_INTEGER(-9223372036854775808), IS_INTEGER(9223372036854775808), "
         "IS_INTEGER(18446744073709551615), IS_INTEGER('1'), IS_INTEGER(1/0)]",
         "[true,false,true,true,false,false,false,false]"},
        {"[IS_DATETIME('2024-02-29'), IS_DATETIME('2024-02-29T23:59:59.1234567Z'), "
         "IS_DATETIME('2024-02-29 00:00:00'), IS_DATETIME('2024-02-29Z')]",
         "[true,true,true,true]"},
        {"[IS_DATETIME('2023-02-29'), IS_DATETIME('2024-13-01'), IS_DATETIME('2024-01-01T20Z'), "
         "IS_DATETIME('2024-01-01T24:00:00'), IS_DATETIME('2024-01-01T00:00:00.'), "
         "IS_DATETIME('2024-01-01T00:00:00.12345678'), IS_DATETIME('2024-01-01T00:00:00+01:00'), "
         "IS_DATETIME('2024/01/01'), IS_DATETIME(''), IS_DATETIME(1)]",
         "[false,false,false,false,false,false,false,false,false,false]"},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void arrays_are_taken_apart(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"ARRAY_CONCAT([1], [], [2, [3]])", "[1,2,[3]]"},
        {"ARRAY_CONCAT([1], 2)", ""},
        {"ARRAY_CONTAINS([1, {a: 1}], {a: 1})", "true"},
        {"ARRAY_CONTAINS([1, {a: 1, b: 2}], {a: 1})", "false"},
        {"ARRAY_CONTAINS([1, {a: 1, b: 2}], {a: 1}, true)", "true"},
        {"ARRAY_CONTAINS([{a: {x: 1, y: 2}}], {a: {x: 1}}, true)", "false"},
        {"ARRAY_CONTAINS([1], 1, true)", "true"},
        {"ARRAY_CONTAINS([{a: 1, b: 2}], {a: 1}, undefined)", "false"},
        {"ARRAY_CONTAINS([1], 1, 'x')", ""},
        {"ARRAY_CONTAINS('abc', 'a')", ""},
        {"ARRAY_CONTAINS([1], undefined)", ""},
        {"ARRAY_CONTAINS_ALL([1, 2], 1, 2)", "true"},
        {"ARRAY_CONTAINS_ALL([1, 2], 1, undefined)", ""},
        {"ARRAY_CONTAINS_ALL([1, 2], 5, undefined)", "false"},
        {"ARRAY_CONTAINS_ALL(1, 1)", ""},
        {"ARRAY_CONTAINS_ANY([1, 2], 5, 2)", "true"},
        {"ARRAY_CONTAINS_ANY([1, 2], 1, undefined)", "true"},
        {"ARRAY_CONTAINS_ANY([1, 2], 5, undefined)", ""},
        {"ARRAY_CONTAINS_ANY([], 1)", "false"},
        {"ARRAY_LENGTH([1, 2])", "2"},
        {"ARRAY_LENGTH(null)", ""},
        {"ARRAY_SLICE([1, 2, 3], 1)", "[2,3]"},
        {"ARRAY_SLICE([1, 2, 3], 1, 1)", "[2]"},
        {"ARRAY_SLICE([1, 2, 3], -2, 1)", "[2]"},
        {"ARRAY_SLICE([1, 2, 3], -9)", "[1,2,3]"},
        {"ARRAY_SLICE([1, 2, 3], 9)", "[]"},
        {"ARRAY_SLICE([1, 2, 3], 0, -1)", "[]"},
        {"ARRAY_SLICE([1, 2, 3], 0.5)", ""},
        {"ARRAY_SLICE([1, 2, 3], -9223372036854775808, 9223372036854775807)", "[1,2,3]"},
        {"ARRAY_SUM([1, 2.5])", "3.5"},
        {"ARRAY_SUM([])", "0"},
        {"ARRAY_SUM([1, 'a'])", ""},
        {"ARRAY_AVG([1, 2])", "1.5"},
        {"ARRAY_AVG([])", ""},
        {"ARRAY_MEDIAN([5, 1, 3])", "3"},
        {"ARRAY_MEDIAN([4, 1, 3, 2])", "2.5"},
        {"ARRAY_MEDIAN([1, null])", ""},
        {"ARRAY_MAX([1, 'a', null, true])", "\"a\""},
        {"ARRAY_MIN([1, 'a', null, true])", "null"},
        {"ARRAY_MAX([1, []])", ""},
        {"ARRAY_MIN([])", ""},
        {"CHOOSE(2, 'a', 'b')", "\"b\""},
        {"CHOOSE(2, undefined, 'b')", "\"b\""},
        {"CHOOSE(0, 'a')", ""},
        {"CHOOSE(2, 'a')", ""},
        {"CHOOSE(1.5, 'a', 'b')", ""},
        {"IIF(true, 1, 2)", "1"},
        {"IIF(1, 1, 2)", "2"},
        {"IIF(undefined, 1, 2)", "2"},
        {"OBJECTTOARRAY({a: 1, b: [2]})", "[{\"k\":\"a\",\"v\":1},{\"k\":\"b\",\"v\":[2]}]"},
        {"OBJECTTOARRAY({a: 1}, 'name')", "[{\"name\":\"a\",\"v\":1}]"},
        {"OBJECTTOARRAY({a: 1}, 'n', 'x')", "[{\"n\":\"a\",\"x\":1}]"},
        {"OBJECTTOARRAY({a: 1}, 5)", ""},
        {"OBJECTTOARRAY([1])", ""},
        {"SETUNION([1, 1, 2], [2, 3])", "[1,2,3]"},
        {"SETINTERSECT([1, 2, 'a'], ['a', 1, 1])", "[\"a\",1]"},
        {"SETDIFFERENCE([1, 1, 2, {a: 1, b: 2}], [2, {b: 2, a: 1}])", "[1]"},
        {"SETEQUAL([1, 2, 2], [2, 1])", "true"},
        {"SETEQUAL([1, 2], [1, 3])", "false"},
        {"SETEQUAL([1, 2], [1])", "false"},
        {"SETUNION([1], 2)", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void a_document_has_a_number(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"SELECT VALUE DOCUMENTID(c) FROM c", "[1,1152921504606846975]"},
        {"SELECT VALUE c.id FROM c WHERE DocumentId(c) > 1", "[\"b\"]"},
        {"SELECT VALUE DOCUMENTID(c.o) FROM c", "[]"},
        {"SELECT VALUE DOCUMENTID(c.id) FROM c", "[]"},
        {"SELECT * FROM c ORDER BY DOCUMENTID(c)", "!2206"},
        {"SELECT VALUE DOCUMENTID() FROM c", "!The DOCUMENTID function requires 1 argument(s)."},
        {"SELECT VALUE _DOCUMENT_RID() FROM c",
         "[\"AQAAAICAAAABAAAAAAAAAA==\",\"AQAAAICAAAD---------Dw==\",\"AQAAAICAAAA=\"]"},
        {"SELECT VALUE [o, _document_rid()] FROM c.o",
         "[[{\"_rid\":1},\"AQAAAICAAAABAAAAAAAAAA==\"]]"},
        {"SELECT VALUE _DOCUMENT_RID()", "[]"},
    };
    /* The third is a container's. */
    CHECK_CASES(CASES,
                "[{\"id\":\"a\",\"_rid\":\"AQAAAICAAAABAAAAAAAAAA==\",\"o\":{\"_rid\":1}},"
                "{\"id\":\"b\",\"_rid\":\"AQAAAICAAAD---------Dw==\"},"
                "{\"id\":\"c\",\"_rid\":\"AQAAAICAAAA=\"},{\"id\":\"d\"}]",
                NULL);
}

static void a_given_seed_makes_rand_repeatable(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Random first, second;
    random_init(&first, 7);
    random_init(&second, 7);
    const char *a = run_query(&arena, "SELECT VALUE [RAND(), RAND()]", "[]", NULL,
                              (QueryOptions){.random = &first});
    const char *b = run_query(&arena, "SELECT VALUE [RAND(), RAND()]", "[]", NULL,
                              (QueryOptions){.random = &second});
    assert_string_equal(a, b);
    const char *c = run_query(&arena, "SELECT VALUE [RAND(), RAND()]", "[]", NULL,
                              (QueryOptions){.random = &second});
    assert_string_not_equal(a, c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_in_any_case_and_arguments_are_counted),
        cmocka_unit_test(text_is_searched),
        cmocka_unit_test(text_is_made_of_text),
        cmocka_unit_test(values_turn_into_text_and_back),
        cmocka_unit_test(numbers_are_computed),
        cmocka_unit_test(types_are_told_apart),
        cmocka_unit_test(arrays_are_taken_apart),
        cmocka_unit_test(a_document_has_a_number),
        cmocka_unit_test(a_given_seed_makes_rand_repeatable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
