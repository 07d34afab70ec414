/* query_with_key_test.c - a key of a header becomes part of the filter. */
#include "query/sql/query_with_key.h"

#include "query/sql/parser_int.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void the_key_is_part_of_the_filter(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t count;
        const char *expected; /* NULL if it cannot be done */
    } rows[] = {
        {"SELECT * FROM c", 1, "SELECT * FROM c WHERE (c.tenant = @key1)"},
        {"SELECT * FROM root r WHERE r.a = 1 OR r.b = @n2", 2,
         "SELECT * FROM root AS r WHERE (((r.a = 1) OR (r.b = @n2)) AND (r.tenant = @key1) AND "
         "(r[\"first name\"].x = @key2))"},
        {"SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY c.a DESC OFFSET 0 LIMIT 5", 1,
         "SELECT VALUE t FROM c JOIN t IN c.tags WHERE (c.tenant = @key1) ORDER BY c.a DESC OFFSET "
         "0 LIMIT 5"},
        {"SELECT * FROM t IN c.tags", 1, NULL},
        {"SELECT * FROM c.tags", 1, NULL},
        {"SELECT 1", 1, NULL},
        {"SELECT", 1, NULL},
    };
    static const Slice tenant[] = {SLICE_INIT("tenant")};
    static const Slice name[] = {SLICE_INIT("first name"), SLICE_INIT("x")};
    static const PropertyPath paths[] = {{tenant, 1}, {name, 2}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Slice out = SLICE_EMPTY;
        bool is_done =
            query_with_key(&arena, slice_from_cstr(rows[i].text), paths, rows[i].count, &out);
        assert_int_equal(is_done, rows[i].expected != NULL);
        if (!is_done)
            continue;
        if (!slice_equal(out, slice_from_cstr(rows[i].expected)))
            fail_msg("%s\n%.*s instead of\n%s", rows[i].text, SLICE_ARG(out), rows[i].expected);
        Select *select;
        Error err;
        assert_int_equal(parser_run(&arena, out, &select, &err), STATUS_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_key_is_part_of_the_filter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
