/* query_shape_test.c - texts without their values: one shape for queries that are alike, and
 * nothing of the values in it. */
#include "query/sql/query_shape.h"

#include "query/sql/parser_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char PARAMETERS[] =
    "[{\"name\":\"@user\",\"value\":\"ada\"},{\"name\":\"@n\",\"value\":7},"
    "{\"name\":\"@list\",\"value\":[1]},{\"name\":\"@o\",\"value\":{\"a\":1}},"
    "{\"name\":\"@yes\",\"value\":true},{\"name\":\"@none\",\"value\":null}]";

static Slice shape_of(Arena *arena, Slice text)
{
    Json parameters;
    Error err;
    assert_int_equal(json_parse(arena, slice_from_cstr(PARAMETERS), &parameters, &err), STATUS_OK);
    AUTO(buf_done) Buf out;
    buf_init(&out, 4096);
    assert_true(query_shape(text, parameters, &out));
    return arena_copy(arena, buf_view(&out));
}

static void values_become_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *shape;
    } rows[] = {
        {"SELECT * FROM c", "SELECT * FROM c"},
        {"select  *\nfrom c -- secret 123\n", "SELECT * FROM c"},
        {"SELECT * FROM c WHERE c.user='ada' and c.n=12.5e3",
         "SELECT * FROM c WHERE c.user = @s1 AND c.n = @n2"},
        {"SELECT * FROM c WHERE c.user = @user AND c.n = @n AND c.other = @user",
         "SELECT * FROM c WHERE c.user = @s1 AND c.n = @n2 AND c.other = @s1"},
        {"SELECT * FROM c WHERE c.a = @list OR c.a = @o OR c.a = @yes OR c.a = @none OR c.a = "
         "@gone",
         "SELECT * FROM c WHERE c.a = @a1 OR c.a = @o2 OR c.a = @b3 OR c.a = @x4 OR c.a = @x5"},
        {"SELECT * FROM c WHERE c.n = -1 OR c.n = + 2 OR c.n - 1 = 3 OR -c.n = 4",
         "SELECT * FROM c WHERE c.n = @n1 OR c.n = @n2 OR c.n - @n3 = @n4 OR - c.n = @n5"},
        {"SELECT * FROM c WHERE c.a = true AND c.b != null AND c.d = undefined",
         "SELECT * FROM c WHERE c.a = true AND c.b != null AND c.d = undefined"},
        /* Names stay, however they are written. */
        {"SELECT c['first name'] AS \"a b\", {'k': 'v', \"x\":1} FROM c WHERE c[\"a\"]['b'][3] = "
         "'q'",
         "SELECT c['first name'] AS \"a b\", {'k': @s1, \"x\": @n2} FROM c WHERE c[\"a\"]['b'][0] "
         "= "
         "@s3"},
        {"SELECT c.a ? 'x' : 'y' FROM c", "SELECT c.a ? @s1: @s2 FROM c"},
        /* Paging is not data, and an offset is different on each page. */
        {"SELECT TOP 10 * FROM c", "SELECT TOP 10 * FROM c"},
        {"SELECT * FROM c OFFSET 40 LIMIT 20", "SELECT * FROM c OFFSET @n1 LIMIT 20"},
        {"SELECT * FROM c WHERE c.s LIKE '%ada%' ESCAPE '#'",
         "SELECT * FROM c WHERE c.s LIKE @s1 ESCAPE \"!\""},
        /* Lists are of one of a few lengths. */
        {"SELECT * FROM c WHERE c.n IN (1)", "SELECT * FROM c WHERE c.n IN (@n1)"},
        {"SELECT * FROM c WHERE c.n IN (1,-2, 'x')",
         "SELECT * FROM c WHERE c.n IN (@n1, @n2, @s3, @s4)"},
        {"SELECT * FROM c WHERE c.n NOT IN (@n, c.m)",
         "SELECT * FROM c WHERE c.n NOT IN (@n1, c.m)"},
        {"SELECT * FROM c WHERE ARRAY_CONTAINS(['a','b'], c.s) AND c.v[0] = 1",
         "SELECT * FROM c WHERE ARRAY_CONTAINS([@s1, @s2], c.s) AND c.v[0] = @n3"},
        {"SELECT VALUE COUNT(1) FROM c JOIN t IN c.tags WHERE EXISTS(SELECT 1 FROM x IN c.y)",
         "SELECT VALUE COUNT(@n1) FROM c JOIN t IN c.tags WHERE EXISTS(SELECT @n2 FROM x IN c.y)"},
        {"SELECT udf.f(c.a, 'x') FROM c ORDER BY c.a desc, c.b",
         "SELECT udf.f(c.a, @s1) FROM c ORDER BY c.a DESC, c.b"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Slice shape = shape_of(&arena, slice_from_cstr(rows[i].text));
        Slice expected = slice_from_cstr(rows[i].shape);
        if (!slice_equal(shape, expected))
            fail_msg("%s\n%.*s instead of\n%s", rows[i].text, SLICE_ARG(shape), rows[i].shape);
        Select *select;
        Error err;
        if (parser_run(&arena, shape, &select, &err) != STATUS_OK)
            fail_msg("%.*s: %s", SLICE_ARG(shape), err.message);
    }
}

static void a_long_list_is_as_long_as_another(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    Slice shapes[2];
    for (size_t i = 0; i < 2; i++) {
        AUTO(buf_done) Buf text;
        buf_init(&text, 10000);
        buf_slice(&text, SLICE("SELECT * FROM c WHERE c.n IN (0"));
        for (size_t n = 1; n < 50 + 200 * i; n++)
            buf_format(&text, ",%zu", n);
        buf_byte(&text, ')');
        shapes[i] = shape_of(&arena, buf_view(&text));
    }
    assert_true(slice_equal(shapes[0], shapes[1]));
    assert_true(slice_ends_with(shapes[0], SLICE(", @n16)")));
}

static void what_does_not_fit_is_told(void **state)
{
    (void)state;
    AUTO(buf_done) Buf small;
    buf_init(&small, 20);
    assert_false(query_shape(SLICE("SELECT * FROM c WHERE c.aaaaaaaaaa = 1"), JSON_NONE, &small));
    AUTO(buf_done) Buf text;
    AUTO(buf_done) Buf out;
    buf_init(&text, QUERY_SHAPE_TEXT_MAX * 2);
    buf_init(&out, QUERY_SHAPE_TEXT_MAX * 2);
    buf_slice(&text, SLICE("SELECT * FROM c"));
    while (text.len < QUERY_SHAPE_TEXT_MAX)
        buf_byte(&text, ' ');
    assert_true(query_shape(buf_view(&text), JSON_NONE, &out));
    buf_byte(&text, ' ');
    assert_false(query_shape(buf_view(&text), JSON_NONE, &out));
    assert_false(query_shape(SLICE("SELECT 'open"), JSON_NONE, &out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_become_parameters),
        cmocka_unit_test(a_long_list_is_as_long_as_another),
        cmocka_unit_test(what_does_not_fit_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
