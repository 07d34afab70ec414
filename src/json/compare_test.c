/* compare_test.c - the order of all values is total, and equality ignores the order of members. */
#include "base/test_seed.h"
#include "json/json_random_testing_int.h"
#include "json/json_testing.h"

#include <math.h>

static Json parse(const char *text)
{
    return text_json(&test_arena, slice_from_cstr(text));
}

static Json number(double value)
{
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_add_number(&b, value);
    return json_built(&b);
}

static Json integer(int64_t value)
{
    JsonBuilder b;
    json_build(&b, &test_arena);
    json_add_i64(&b, value);
    return json_built(&b);
}

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

/* Each row sorts before the next. */
static void values_sort_by_type_and_then_by_value(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "null",
        "false",
        "true",
        "-1e300",
        "-9007199254740992",
        "-1",
        "-5e-324",
        "0",
        "5e-324",
        "0.5",
        "1",
        "63",
        "64",
        "9007199254740992",
        "9223372036854775808",
        "1e300",
        "\"\"",
        "\"\\u0000\"",
        "\"A\"",
        "\"AA\"",
        "\"B\"",
        "\"a\"",
        "\"\xc3\xa9\"",
        "\"\xef\xbf\xbf\"",
        "\"\xf0\x90\x80\x80\"",
        "[]",
        "[null]",
        "[null,null]",
        "[1]",
        "[1,1]",
        "[2]",
        "[[]]",
        "[{}]",
        "{}",
        "{\"a\":1}",
        "{\"a\":1,\"b\":1}",
        "{\"c\":0,\"a\":1}",
        "{\"a\":2}",
        "{\"a\":2,\"b\":1}",
        "{\"a\":{}}",
        "{\"aa\":0}",
        "{\"b\":0}",
    };
    Json values[ARRAY_COUNT(rows) + 1];
    values[0] = JSON_NONE;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        values[i + 1] = parse(rows[i]);
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        for (size_t k = 0; k < ARRAY_COUNT(values); k++) {
            int expected = (i > k) - (i < k);
            if (sign(json_compare(values[i], values[k])) != expected)
                fail_msg("rows %zu and %zu are in the wrong order", i, k);
            assert_int_equal(json_equal(values[i], values[k]), i == k);
        }
    }
}

static void numbers_compare_as_doubles(void **state)
{
    (void)state;
    assert_int_equal(json_compare(number(-0.0), number(0)), 0);
    assert_true(json_equal(number(-0.0), number(0)));
    assert_true(json_equal(number(NAN), number(-NAN)));
    assert_true(json_compare(number(NAN), number(-INFINITY)) < 0);
    assert_true(json_compare(number(INFINITY), number(NAN)) > 0);
    assert_true(json_compare(number(1e308), number(INFINITY)) < 0);
    /* A literal of a query is found in an item, where it has become a double. */
    assert_true(json_equal(integer(INT64_MAX), parse("9223372036854775807")));
    assert_true(json_equal(integer(((int64_t)1 << 53) + 1), parse("9007199254740993")));
    assert_true(json_compare(integer(INT64_MIN), integer(INT64_MAX)) < 0);
}

static void the_order_of_members_does_not_matter(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
        {"{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}", false},
        {"{\"a\":1,\"b\":2}", "{\"a\":1}", false},
        {"{\"a\":1}", "{\"A\":1}", false},
        {"[{\"x\":[{\"p\":1,\"q\":null}]}]", "[{\"x\":[{\"q\":null,\"p\":1}]}]", true},
        {"[1,2]", "[2,1]", false},
        {"[1,2]", "[1,2,3]", false},
        {"{\"a\":1.0}", "{\"a\":1}", true},
        {"{\"a\":-0.0,\"b\":1}", "{\"b\":1,\"a\":0}", true},
        {"{\"a\":null}", "{}", false},
        {"\"1\"", "1", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Json a = parse(rows[i].a);
        Json b = parse(rows[i].b);
        assert_int_equal(json_equal(a, b), rows[i].equal);
        assert_int_equal(json_equal(b, a), rows[i].equal);
        assert_int_equal(json_compare(a, b) == 0, rows[i].equal);
    }
    assert_true(json_equal(JSON_NONE, JSON_NONE));
    assert_false(json_equal(JSON_NONE, parse("null")));
}

/* The members of each object in the opposite order. */
static void add_reversed(JsonBuilder *b, Json value)
{
    if (!json_is(value, JSON_OBJECT)) {
        json_add(b, value);
        return;
    }
    JsonIter members[64];
    size_t count = 0;
    JsonIter it = json_iter(value);
    while (count < ARRAY_COUNT(members) && json_next(&it))
        members[count++] = it;
    json_begin_object(b);
    while (count-- > 0) {
        json_key(b, members[count].name);
        add_reversed(b, members[count].value);
    }
    json_end(b);
}

static void the_order_is_total_and_agrees_with_equality(void **state)
{
    (void)state;
    Random random;
    random_init(&random, test_seed());
    enum { COUNT = 60 };
    for (int round = 0; round < 10; round++) {
        arena_reset(&test_arena);
        Json values[COUNT];
        for (int i = 0; i < COUNT; i += 2) {
            values[i] = random_document(&random, &test_arena, 3, 3);
            JsonBuilder b;
            json_build(&b, &test_arena);
            add_reversed(&b, values[i]);
            values[i + 1] = json_built(&b);
            assert_int_equal(json_compare(values[i], values[i + 1]), 0);
            assert_true(json_equal(values[i], values[i + 1]));
        }
        for (int i = 0; i < COUNT; i++) {
            for (int k = 0; k < COUNT; k++) {
                int order = sign(json_compare(values[i], values[k]));
                assert_int_equal(order, -sign(json_compare(values[k], values[i])));
                assert_int_equal(order == 0, json_equal(values[i], values[k]));
                for (int m = 0; m < COUNT && order <= 0; m++) {
                    if (json_compare(values[k], values[m]) <= 0)
                        assert_true(json_compare(values[i], values[m]) <= 0);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_sort_by_type_and_then_by_value),
        cmocka_unit_test(numbers_compare_as_doubles),
        cmocka_unit_test(the_order_of_members_does_not_matter),
        cmocka_unit_test(the_order_is_total_and_agrees_with_equality),
    };
    return cmocka_run_group_tests(tests, test_arena_setup, test_arena_teardown);
}
