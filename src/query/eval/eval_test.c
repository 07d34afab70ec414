/* eval_test.c - operators, with undefined as an operand like any other. */
#include "query/eval/query_testing_int.h"

static const char DOCS[] =
    "[{\"id\":\"1\",\"n\":3,\"s\":\"abc\",\"t\":true,\"z\":null,\"a\":[10,20,[30]],"
    "\"o\":{\"p\":{\"q\":5},\"x y\":6}}]";
static const char PARAMETERS[] =
    "[{\"name\":\"@p\",\"value\":\"o\"},{\"name\":\"@i\",\"value\":1},"
    "{\"name\":\"@list\",\"value\":[3,4]},{\"name\":\"@obj\",\"value\":{\"k\":1}}]";

/* Each expression becomes SELECT VALUE ... FROM c; expected is its value, or "" if undefined. */
static void check_values(const QueryCase *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        const char *query =
            arena_format(&arena, "SELECT VALUE %s FROM c%c", cases[i].query, '\0').ptr;
        const char *expected = arena_format(&arena, "[%s]%c", cases[i].expected, '\0').ptr;
        const char *got = run_query(&arena, query, DOCS, PARAMETERS, (QueryOptions){0});
        if (strcmp(got, expected) != 0)
            fail_msg("%s\n  expected %s\n  got      %s", cases[i].query, expected, got);
    }
}

#define CHECK_VALUES(cases) check_values((cases), ARRAY_COUNT(cases))

static void paths_lead_to_values_or_nowhere(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"c.n", "3"},
        {"c.N", ""},
        {"c.o.p.q", "5"},
        {"c[\"o\"]['x y']", "6"},
        {"c[@p].p", "{\"q\":5}"},
        {"c.o.p.q.r", ""},
        {"c.a[0]", "10"},
        {"c.a[@i]", "20"},
        {"c.a[2][0]", "30"},
        {"c.a[1 + 1]", "[30]"},
        {"c.a[3]", ""},
        {"c.a[-1]", ""},
        {"c.a[0.5]", ""},
        {"c.a['0']", ""},
        {"c.a.length", ""},
        {"c.o[0]", ""},
        {"c.s[0]", ""},
        {"c.z.x", ""},
        {"[1,2][1]", "2"},
        {"{a: {b: 7}}.a.b", "7"},
        {"@obj.k", "1"},
        {"@list", "[3,4]"},
    };
    CHECK_VALUES(CASES);
}

static void arithmetic_takes_numbers_only(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"1 + 2 * 3 - 4 / 5", "6.2"},
        {"7 % 3", "1"},
        {"-7 % 3", "-1"},
        {"7.5 % 2", "1.5"},
        {"1 / 0", ""}, /* infinite: no JSON, so no result */
        {"1 / 0 > 1", "true"},
        {"0 / 0 = 0 / 0", "false"},
        {"-c.n", "-3"},
        {"+c.n", "3"},
        {"+c.s", ""},
        {"-true", ""},
        {"1 + '1'", ""},
        {"'a' + 'b'", ""},
        {"null + 1", ""},
        {"c.missing + 1", ""},
        {"0.1 + 0.2", "0.30000000000000004"},
        {"9223372036854775807", "9223372036854775807"},
        {"9007199254740993 + 0", "9007199254740992"},
        {"1e400", ""},
        {"0xff", "255"},
    };
    CHECK_VALUES(CASES);
}

static void bits_are_those_of_32_bit_integers(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"100 & 1000", "96"},
        {"100 ^ 1000", "908"},
        {"3 | 4", "7"},
        {"~5", "-6"},
        {"~130679749712577953", "-1022657953"},
        {"1.9 | 0", "1"},
        {"-1.9 | 0", "-1"},
        {"4294967296 | 1", "1"},
        {"2147483648 | 0", "-2147483648"},
        {"1 << 31", "-2147483648"},
        {"1 << 33", "2"},
        {"-8 >> 1", "-4"},
        {"-8 >>> 28", "15"},
        {"-1 >>> 0", "4294967295"},
        {"NaN | 3", "3"},
        {"Infinity | 3", "3"},
        {"'1' | 1", ""},
        {"~null", ""},
    };
    CHECK_VALUES(CASES);
}

static void logic_has_three_values(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"true AND true", "true"},
        {"true AND false", "false"},
        {"true AND undefined", ""},
        {"undefined AND false", "false"},
        {"undefined AND undefined", ""},
        {"1 AND true", ""},
        {"1 AND false", "false"},
        {"true OR undefined", "true"},
        {"undefined OR true", "true"},
        {"false OR undefined", ""},
        {"false OR false", "false"},
        {"1 OR true", "true"},
        {"1 OR false", ""},
        {"'true' OR null OR true", "true"},
        {"undefined OR false OR true AND undefined", ""},
        {"NOT true", "false"},
        {"NOT false", "true"},
        {"NOT null", ""},
        {"NOT undefined", ""},
        {"NOT 1", ""},
    };
    CHECK_VALUES(CASES);
}

static void conditions_and_coalescing_choose(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"true ? 1 : 2", "1"},
        {"false ? 1 : 2", "2"},
        {"null ? 1 : 2", "2"},
        {"undefined ? 1 : 2", "2"},
        {"1 ? 1 : 2", "2"},
        {"'true' ? 1 : 2", "2"},
        {"false ? 1 : true ? 2 : 3", "2"},
        {"false ? 1 : false ? 2 : 3", "3"},
        {"true ? undefined : 3", ""},
        {"c.missing ?? 1", "1"},
        {"c.z ?? 1", "null"},
        {"c.m ?? c.n ?? c.s", "3"},
        {"undefined ?? undefined", ""},
    };
    CHECK_VALUES(CASES);
}

static void equality_is_deep_and_strict(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"1 = 1.0", "true"},
        {"'a' = 'a'", "true"},
        {"'a' = 'A'", "false"},
        {"null = null", "true"},
        {"true != false", "true"},
        {"[1, [2]] = [1, [2]]", "true"},
        {"[1, 2] = [2, 1]", "false"},
        {"{a: 1, b: {c: 2}} = {b: {c: 2}, a: 1}", "true"},
        {"{a: 1} = {a: 1, b: 2}", "false"},
        {"1 = '1'", "false"},
        {"1 != '1'", "true"},
        {"null = false", "false"},
        {"[] = {}", "false"},
        {"c.missing = 1", ""},
        {"c.missing != 1", ""},
        {"undefined = undefined", ""},
        {"0 = -0", "true"},
        {"@list = [3, 4]", "true"},
    };
    CHECK_VALUES(CASES);
}

static void order_is_defined_within_scalar_types(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"1 < 2", "true"},
        {"2 <= 2", "true"},
        {"'B' < 'a'", "true"},
        {"'a' < 'ab'", "true"},
        {"'\xC3\xA4' > 'z'", "true"},
        {"false < true", "true"},
        {"null <= null", "true"},
        {"null < null", "false"},
        {"1 < '2'", ""},
        {"null < 1", ""},
        {"[1] < [2]", ""},
        {"{} >= {}", ""},
        {"c.missing > 1", ""},
        {"NaN < 1", "false"},
        {"NaN >= NaN", "false"},
        {"2 BETWEEN 1 AND 3", "true"},
        {"2 NOT BETWEEN 1 AND 3", "false"},
        {"'b' BETWEEN 'a' AND 'c'", "true"},
        {"2 BETWEEN 3 AND 1", "false"},
        {"2 BETWEEN 1 AND 'x'", ""},
        {"2 BETWEEN 3 AND 'x'", "false"},
        {"c.missing BETWEEN 1 AND 2", ""},
        {"c.missing NOT BETWEEN 1 AND 2", ""},
    };
    CHECK_VALUES(CASES);
}

static void in_looks_for_an_equal_value(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"3 IN (1, 2, 3)", "true"},       {"3 IN (1, '3')", "false"},
        {"3 NOT IN (1, 2)", "true"},      {"null IN (null)", "true"},
        {"[1] IN ([1], 2)", "true"},      {"c.missing IN (1)", ""},
        {"c.missing NOT IN (1)", ""},     {"1 IN (undefined, 1)", "true"},
        {"2 IN (undefined, 1)", "false"}, {"c.n IN (c.missing, c.n)", "true"},
    };
    CHECK_VALUES(CASES);
}

static void like_matches_whole_strings(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"'abc' LIKE 'abc'", "true"},
        {"'abc' LIKE 'ab'", "false"},
        {"'abc' LIKE 'ABC'", "false"},
        {"'' LIKE ''", "true"},
        {"'' LIKE '%'", "true"},
        {"'' LIKE '_'", "false"},
        {"'abc' LIKE '%'", "true"},
        {"'abc' LIKE 'a%'", "true"},
        {"'abc' LIKE '%c'", "true"},
        {"'abc' LIKE '%b%'", "true"},
        {"'abc' LIKE 'a%b'", "false"},
        {"'abcbd' LIKE '%b_'", "true"},
        {"'aXbXc' LIKE '%X%X%'", "true"},
        {"'aXbc' LIKE '%X%X%'", "false"},
        {"'a\\nb' LIKE 'a%b'", "true"},
        {"'abc' LIKE 'a_c'", "true"},
        {"'\xC3\xA4\xF0\x9F\x98\x80' LIKE '__'", "true"},
        {"'abc' LIKE '[a-c]bc'", "true"},
        {"'abc' LIKE '[^a-c]bc'", "false"},
        {"'xbc' LIKE '[^a-c]bc'", "true"},
        {"'bbc' LIKE '[abc]bc'", "true"},
        {"'-bc' LIKE '[a-]bc'", "true"},
        {"'50%' LIKE '50[%]'", "true"},
        {"'50x' LIKE '50[%]'", "false"},
        {"'a_b' LIKE 'a[_]b'", "true"},
        {"'[x' LIKE '[[]x'", "true"},
        {"'x]' LIKE 'x]'", "true"},
        {"'[ab' LIKE '[ab'", "true"},
        {"'a%' LIKE 'a!%' ESCAPE '!'", "true"},
        {"'ab' LIKE 'a!%' ESCAPE '!'", "false"},
        {"'a!' LIKE 'a!!' ESCAPE '!'", "true"},
        {"'a!' LIKE 'a!' ESCAPE '!'", "true"},
        {"'a[b' LIKE 'a![b' ESCAPE '!'", "true"},
        {"'a]' LIKE 'a[!]]' ESCAPE '!'", "true"},
        {"'abc' NOT LIKE 'a%'", "false"},
        {"1 LIKE '1'", ""},
        {"'1' LIKE 1", ""},
        {"c.missing NOT LIKE '%'", ""},
        {"'a' || 'b' LIKE 'a' || '%'", "true"},
    };
    CHECK_VALUES(CASES);
}

static void constructors_leave_undefined_out(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"[1, undefined, 'x', null]", "[1,\"x\",null]"},
        {"[]", "[]"},
        {"{a: 1, b: undefined, 'c d': [true]}", "{\"a\":1,\"c d\":[true]}"},
        {"{n: c.n, deep: {o: c.o}}", "{\"n\":3,\"deep\":{\"o\":{\"p\":{\"q\":5},\"x y\":6}}}"},
        {"[1 / 0, 2]", "[2]"},
        {"[c.a[0], c.a[9], c.n, c.s, c.t, c.z]", "[10,3,\"abc\",true,null]"},
        {"'a' || 'b' || c.s", "\"ababc\""},
        {"'a' || 1", ""},
        {"undefined", ""},
    };
    CHECK_VALUES(CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_lead_to_values_or_nowhere),
        cmocka_unit_test(arithmetic_takes_numbers_only),
        cmocka_unit_test(bits_are_those_of_32_bit_integers),
        cmocka_unit_test(logic_has_three_values),
        cmocka_unit_test(conditions_and_coalescing_choose),
        cmocka_unit_test(equality_is_deep_and_strict),
        cmocka_unit_test(order_is_defined_within_scalar_types),
        cmocka_unit_test(in_looks_for_an_equal_value),
        cmocka_unit_test(like_matches_whole_strings),
        cmocka_unit_test(constructors_leave_undefined_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
