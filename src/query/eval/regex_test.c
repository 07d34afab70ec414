/* regex_test.c - patterns: what they find, what is no pattern, and what would take too long. */
#include "query/eval/query_testing_int.h"
#include "query/eval/regex_int.h"

static void patterns_are_searched_for(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"RegexMatch('abcd', 'ABC')", "false"},
        {"RegexMatch('abcd', 'ABC', '')", "false"},
        {"RegexMatch('abcd', 'ABC', 'i')", "true"},
        {"RegexMatch('abcd', 'aB c', 'ix')", "true"},
        {"RegexMatch('abcd', 'a b c', 'x')", "true"},
        {"RegexMatch('abcd', 'a b c')", "false"},
        {"RegexMatch('abcd', 'bc')", "true"},
        {"RegexMatch('abcd', '^bc')", "false"},
        {"RegexMatch('ab\\ncd', '^cd')", "false"},
        {"RegexMatch('ab\\ncd', '^cd', 'm')", "true"},
        {"RegexMatch('ab\\ncd', 'b.c')", "false"},
        {"RegexMatch('ab\\ncd', 'b.c', 's')", "true"},
        {"RegexMatch('ab\\ncd', '^AB.CD$', 'sim')", "true"},
        {"RegexMatch('a', 'A', 'iiii')", "true"},
        {"RegexMatch('salt3824908', 'salt{1}')", "true"},
        {"RegexMatch('salt', '[0-9]')", "false"},
        {"RegexMatch('', '')", "true"},
        {"RegexMatch('', '^$')", "true"},
        {"RegexMatch('', 'a')", "false"},
        {"RegexMatch('x\xC3\xA4y', 'x.y')", "true"},
        {"RegexMatch('\xC3\x84', '\xC3\xA4', 'i')", "true"},
        {"RegexMatch('\xF0\x9F\x98\x80', '^.$')", "true"},
        {"RegexMatch('\xC3\xA4', '\\\\w')", "false"},
        {"RegexMatch('\xC3\xA4', '\\\\p{L}')", "true"},
        {"RegexMatch('abab', '^(ab)\\\\1$')", "true"},
        {"RegexMatch('foobar', 'foo(?=bar)')", "true"},
        {"RegexMatch('foobar', '(?<!foo)bar')", "false"},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void what_is_no_pattern_gives_nothing(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"RegexMatch('abcd', '(')", ""},
        {"RegexMatch('abcd', '[')", ""},
        {"RegexMatch('abcd', '*')", ""},
        {"RegexMatch('abcd', 'a{70000}')", ""},
        {"RegexMatch('abcd', '\\\\C')", ""},
        {"RegexMatch('abcd', '\\\\')", ""},
        {"RegexMatch('abcd', 'a', 'g')", ""},
        {"RegexMatch('abcd', 'a', 'I')", ""},
        {"RegexMatch('abcd', 'a', 'i ')", ""},
        {"RegexMatch('abcd', 'a', null)", ""},
        {"RegexMatch('abcd', 'a', undefined)", ""},
        {"RegexMatch('abcd', 1)", ""},
        {"RegexMatch(1, 'a')", ""},
        {"RegexMatch(undefined, 'a')", ""},
        {"RegexMatch('a')", "!The REGEXMATCH function requires 2 to 3 argument(s)."},
        {"RegexMatch('a', REPLICATE('(', 100) || 'a' || REPLICATE(')', 100))", "true"},
        {"RegexMatch('a', REPLICATE('(', 101) || 'a' || REPLICATE(')', 101))", ""},
        {"RegexMatch('a', REPLICATE('a', 5000))", "false"},
        {"RegexMatch('a', REPLICATE('a', 10000) || REPLICATE('a', 7000))", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

static void what_a_pattern_found_is_extracted(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"RegexExtract('id=17, id=5', '[0-9]+')", "\"17\""},
        {"RegexExtract('id=17, id=5', 'id=([0-9]+)')", "\"17\""},
        {"RegexExtract('id=17, id=5', 'ID=([0-9]+)', 'i')", "\"17\""},
        {"RegexExtract('id=17', 'x')", ""},
        {"RegexExtract('b', '(a)|b')", ""},
        {"RegexExtract('abc', 'b*')", "\"\""},
        {"RegexExtract('abc', '(')", ""},
        {"RegexExtractAll('id=17, id=5', '[0-9]+')", "[\"17\",\"5\"]"},
        {"RegexExtractAll('id=17, id=5', 'id=([0-9])')", "[\"1\",\"5\"]"},
        {"RegexExtractAll('aab', 'a*')", "[\"aa\",\"\",\"\"]"},
        {"RegexExtractAll('\xC3\xA4\xC3\xA4', 'x?')", "[\"\",\"\",\"\"]"},
        {"RegexExtractAll('ab', '(a)|b')", "[\"a\"]"},
        {"RegexExtractAll('abc', 'x')", "[]"},
        {"RegexExtractAll('', 'x*')", "[\"\"]"},
        {"RegexExtractAll('aXbX', '(?<=a)X|b')", "[\"X\",\"b\"]"},
        {"RegexExtractAll('abc', '(')", ""},
        {"RegexExtractAll(null, 'a')", ""},
    };
    CHECK_EXPRESSIONS(CASES);
}

/* A row per pattern, more than are kept, each used often enough to become machine code. */
static void patterns_that_come_with_the_rows_are_kept_apart(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 1 << 20);
    AUTO(buf_done) Buf documents;
    buf_init(&documents, 1 << 20);
    for (int i = 0; i < 4000; i++) {
        int pattern = i % (i < 2000 ? REGEXES_MAX : REGEXES_MAX + 3);
        buf_format(&documents,
                   "%c{\"s\":\"number %d of several\",\"p\":\"\\\\b%d\\\\b.*\\\\w+l$\"}",
                   i == 0 ? '[' : ',', pattern, pattern);
    }
    buf_byte(&documents, ']');
    const char *text = arena_cstr(&arena, buf_view(&documents));
    const char *query = "SELECT VALUE COUNT(1) FROM c WHERE REGEXMATCH(c.s, c.p)";
    assert_string_equal(run_query(&arena, query, text, NULL, (QueryOptions){0}), "[4000]");
}

static void a_hostile_pattern_runs_out_of_steps(void **state)
{
    (void)state;
    /* Exponential, cubic and quadratic ones; some would not be stopped by counting backtracks. */
    static const char *const PATTERNS[] = {
        "(a+)+[bc]",
        "(a|aa)+[bc]",
        "(.*)(.*)(.*)(.*)[bc]",
        "a*+[bc]",
        "(?=a*+b)c|a*?(?=a*+[bc])",
        "^(a*)*[bc]",
        "(a*)\\\\1[bc]",
        "(?i)A.*[bc]",
        "a{4000}[bc]",
    };
    for (size_t i = 0; i < ARRAY_COUNT(PATTERNS); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        const char *query =
            arena_format(&arena, "SELECT VALUE RegexMatch(REPLICATE('a', 9999), '%s')%c",
                         PATTERNS[i], '\0')
                .ptr;
        const char *got = run_query(&arena, query, "[]", NULL, (QueryOptions){.steps_max = 300000});
        if (strstr(got, "more than 300000 steps") == NULL && strstr(got, "too complex") == NULL)
            fail_msg("%s: %s", PATTERNS[i], got);
    }
}

static void a_pattern_that_needs_much_memory_is_refused(void **state)
{
    (void)state;
    static const QueryCase CASES[] = {
        {"RegexMatch('a', '(?R)?a')", "!'(?R)?a' is too complex to be matched."},
        {"RegexMatch(STRINGJOIN(['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a'], "
         "REPLICATE('a', 9999)), '^(a|b)*[cd]')",
         "!'^(a|b)*[cd]' is too complex to be matched."},
    };
    CHECK_EXPRESSIONS(CASES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_searched_for),
        cmocka_unit_test(what_is_no_pattern_gives_nothing),
        cmocka_unit_test(what_a_pattern_found_is_extracted),
        cmocka_unit_test(patterns_that_come_with_the_rows_are_kept_apart),
        cmocka_unit_test(a_hostile_pattern_runs_out_of_steps),
        cmocka_unit_test(a_pattern_that_needs_much_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
