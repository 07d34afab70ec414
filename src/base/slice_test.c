/* slice_test.c - comparing, cutting and reading text that is not terminated: I3. */
#include "base/slice.h"

#include "base/testing.h"

#include <string.h>

static void bytes_decide_equality_and_order(void **state)
{
    (void)state;
    static const struct {
        Slice a, b;
        int order;
    } rows[] = {
        {SLICE_INIT(""), SLICE_INIT(""), 0},     {{NULL, 0}, SLICE_INIT(""), 0},
        {{NULL, 0}, SLICE_INIT("a"), -1},        {SLICE_INIT("a"), SLICE_INIT("a"), 0},
        {SLICE_INIT("a"), SLICE_INIT("b"), -1},  {SLICE_INIT("a"), SLICE_INIT("ab"), -1},
        {SLICE_INIT("b"), SLICE_INIT("ab"), 1},  {SLICE_INIT("a\0b"), SLICE_INIT("a\0c"), -1},
        {SLICE_INIT("a\0"), SLICE_INIT("a"), 1}, {SLICE_INIT("\x7f"), SLICE_INIT("\x80"), -1},
        {SLICE_INIT("A"), SLICE_INIT("a"), -1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        int order = slice_compare(rows[i].a, rows[i].b);
        assert_int_equal((order > 0) - (order < 0), rows[i].order);
        int reverse = slice_compare(rows[i].b, rows[i].a);
        assert_int_equal((reverse > 0) - (reverse < 0), -rows[i].order);
        assert_int_equal(slice_equal(rows[i].a, rows[i].b), rows[i].order == 0);
    }
}

static void case_is_ignored_for_ascii_letters_only(void **state)
{
    (void)state;
    static const struct {
        Slice a, b;
        bool equal;
    } rows[] = {
        {SLICE_INIT("Content-Type"), SLICE_INIT("content-TYPE"), true},
        {{NULL, 0}, SLICE_INIT(""), true},
        {SLICE_INIT("az"), SLICE_INIT("AZ"), true},
        {SLICE_INIT("a"), SLICE_INIT("ab"), false},
        /* These differ by the bit that separates upper from lower case, but are no letters. */
        {SLICE_INIT("@"), SLICE_INIT("`"), false},
        {SLICE_INIT("["), SLICE_INIT("{"), false},
        {SLICE_INIT("\xc3\x84"), SLICE_INIT("\xc3\xa4"), false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_int_equal(slice_equal_nocase(rows[i].a, rows[i].b), rows[i].equal);
}

static void a_slice_starts_and_ends_with_the_empty_one_and_itself(void **state)
{
    (void)state;
    static const struct {
        Slice s, part;
        bool starts, ends;
    } rows[] = {
        {SLICE_INIT("dbs/a"), SLICE_INIT("dbs/"), true, false},
        {SLICE_INIT("dbs/a"), SLICE_INIT("/a"), false, true},
        {SLICE_INIT("dbs/a"), SLICE_INIT("dbs/a"), true, true},
        {SLICE_INIT("dbs/a"), {NULL, 0}, true, true},
        {{NULL, 0}, {NULL, 0}, true, true},
        {{NULL, 0}, SLICE_INIT("a"), false, false},
        {SLICE_INIT("a"), SLICE_INIT("aa"), false, false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        assert_int_equal(slice_starts_with(rows[i].s, rows[i].part), rows[i].starts);
        assert_int_equal(slice_ends_with(rows[i].s, rows[i].part), rows[i].ends);
    }
}

static void parts_stay_inside_the_slice(void **state)
{
    (void)state;
    assert_slice_text(slice_from(SLICE("abc"), 0), "abc");
    assert_slice_text(slice_from(SLICE("abc"), 2), "c");
    assert_slice_text(slice_from(SLICE("abc"), 3), "");
    assert_slice_text(slice_from(SLICE("abc"), 4), "");
    assert_slice_text(slice_from(SLICE("abc"), SIZE_MAX), "");
    assert_slice_text(slice_from(SLICE_EMPTY, 1), "");
    assert_slice_text(slice_first(SLICE("abc"), 0), "");
    assert_slice_text(slice_first(SLICE("abc"), 2), "ab");
    assert_slice_text(slice_first(SLICE("abc"), SIZE_MAX), "abc");
}

static void trimming_removes_spaces_and_tabs_at_the_ends(void **state)
{
    (void)state;
    static const struct {
        Slice in;
        const char *out;
    } rows[] = {
        {SLICE_INIT(" \t a b\t "), "a b"},
        {SLICE_INIT(" \t "), ""},
        {SLICE_INIT(""), ""},
        {{NULL, 0}, ""},
        {SLICE_INIT("a"), "a"},
        {SLICE_INIT("\na\r"), "\na\r"},
        {SLICE_INIT("a "), "a"},
        {SLICE_INIT(" a"), "a"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        assert_slice_text(slice_trim(rows[i].in), rows[i].out);
}

static void finding_gives_the_first_place_or_the_length(void **state)
{
    (void)state;
    assert_int_equal(slice_find(SLICE("a/b/c"), '/'), 1);
    assert_int_equal(slice_find(SLICE("/"), '/'), 0);
    assert_int_equal(slice_find(SLICE("abc"), '/'), 3);
    assert_int_equal(slice_find(SLICE("ab\0c"), '\0'), 2);
    assert_int_equal(slice_find(SLICE_EMPTY, '/'), 0);
}

static void cutting_walks_through_the_parts(void **state)
{
    (void)state;
    Slice rest = SLICE("dbs//c/");
    assert_slice_text(slice_cut(&rest, '/'), "dbs");
    assert_slice_text(slice_cut(&rest, '/'), "");
    assert_slice_text(slice_cut(&rest, '/'), "c");
    /* A trailing separator leaves an empty part, whose pointer is not NULL, unlike at the end. */
    assert_int_equal(rest.len, 0);
    assert_non_null(rest.ptr);
    assert_slice_text(slice_cut(&rest, '/'), "");
    assert_null(rest.ptr);
}

static void cutting_without_a_separator_takes_the_whole(void **state)
{
    (void)state;
    Slice rest = SLICE("abc");
    assert_slice_text(slice_cut(&rest, '/'), "abc");
    assert_int_equal(rest.len, 0);
    assert_null(rest.ptr);
    assert_slice_text(slice_cut(&rest, '/'), "");
}

static void numbers_are_digits_that_fit(void **state)
{
    (void)state;
    static const struct {
        Slice text;
        bool is_u64, is_i64;
        uint64_t u64;
        int64_t i64;
    } rows[] = {
        {SLICE_INIT("0"), true, true, 0, 0},
        {SLICE_INIT("-0"), false, true, 0, 0},
        {SLICE_INIT("007"), true, true, 7, 7},
        {SLICE_INIT("-1"), false, true, 0, -1},
        {SLICE_INIT("9223372036854775807"), true, true, INT64_MAX, INT64_MAX},
        {SLICE_INIT("9223372036854775808"), true, false, UINT64_C(1) << 63, 0},
        {SLICE_INIT("-9223372036854775808"), false, true, 0, INT64_MIN},
        {SLICE_INIT("-9223372036854775809"), false, false, 0, 0},
        {SLICE_INIT("18446744073709551615"), true, false, UINT64_MAX, 0},
        {SLICE_INIT("18446744073709551616"), false, false, 0, 0},
        {SLICE_INIT("18446744073709551620"), false, false, 0, 0},
        {SLICE_INIT("99999999999999999999"), false, false, 0, 0},
        {SLICE_INIT("100000000000000000000"), false, false, 0, 0},
        {SLICE_INIT(""), false, false, 0, 0},
        {{NULL, 0}, false, false, 0, 0},
        {SLICE_INIT("-"), false, false, 0, 0},
        {SLICE_INIT("--1"), false, false, 0, 0},
        {SLICE_INIT("+1"), false, false, 0, 0},
        {SLICE_INIT(" 1"), false, false, 0, 0},
        {SLICE_INIT("1 "), false, false, 0, 0},
        {SLICE_INIT("1\0"), false, false, 0, 0},
        {SLICE_INIT("1.0"), false, false, 0, 0},
        {SLICE_INIT("1e3"), false, false, 0, 0},
        {SLICE_INIT("0x1"), false, false, 0, 0},
        {SLICE_INIT("/"), false, false, 0, 0},
        {SLICE_INIT(":"), false, false, 0, 0},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint64_t u64 = 77;
        int64_t i64 = 77;
        assert_int_equal(slice_to_u64(rows[i].text, &u64), rows[i].is_u64);
        assert_int_equal(slice_to_i64(rows[i].text, &i64), rows[i].is_i64);
        /* An output is written on success and only then. */
        assert_true(u64 == (rows[i].is_u64 ? rows[i].u64 : 77));
        assert_true(i64 == (rows[i].is_i64 ? rows[i].i64 : 77));
    }
}

static void booleans_are_words_in_any_case(void **state)
{
    (void)state;
    static const struct {
        Slice text;
        bool ok, value;
    } rows[] = {
        {SLICE_INIT("true"), true, true},   {SLICE_INIT("True"), true, true},
        {SLICE_INIT("TRUE"), true, true},   {SLICE_INIT("false"), true, false},
        {SLICE_INIT("False"), true, false}, {SLICE_INIT(""), false, true},
        {{NULL, 0}, false, true},           {SLICE_INIT("1"), false, true},
        {SLICE_INIT("true "), false, true}, {SLICE_INIT("yes"), false, true},
        {SLICE_INIT("tru"), false, true},   {SLICE_INIT("truee"), false, true},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        bool value = true;
        assert_int_equal(slice_to_bool(rows[i].text, &value), rows[i].ok);
        assert_int_equal(value, rows[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_decide_equality_and_order),
        cmocka_unit_test(case_is_ignored_for_ascii_letters_only),
        cmocka_unit_test(a_slice_starts_and_ends_with_the_empty_one_and_itself),
        cmocka_unit_test(parts_stay_inside_the_slice),
        cmocka_unit_test(trimming_removes_spaces_and_tabs_at_the_ends),
        cmocka_unit_test(finding_gives_the_first_place_or_the_length),
        cmocka_unit_test(cutting_walks_through_the_parts),
        cmocka_unit_test(cutting_without_a_separator_takes_the_whole),
        cmocka_unit_test(numbers_are_digits_that_fit),
        cmocka_unit_test(booleans_are_words_in_any_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
