/* geo_library_test.c - libraries that are missing; base has the test of those that are there. */
#include "query/eval/geo_library_int.h"

#include "query/eval/query_testing_int.h"

#include <math.h>

typedef struct Table {
    typeof(floor) *floor;
    typeof(hypot) *hypot;
} Table;

static void what_is_missing_is_named_in_a_query_error(void **state)
{
    (void)state;
    static const LibraryFunction FUNCTIONS[] = {LIBRARY_FUNCTION(Table, floor),
                                                {"no_such_function", offsetof(Table, hypot)}};
    static const struct {
        const char *file;
        const char *named;
    } CASES[] = {{"libnosuchlibrary.so.7", "'libnosuchlibrary.so.7' cannot be used"},
                 {"libm.so.6", "no_such_function"}};
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        Table table;
        Error err = {0};
        assert_int_equal(library_load(CASES[i].file, FUNCTIONS, 2, &table, &err),
                         STATUS_BAD_REQUEST);
        Json message = parse_json(&arena, err.message);
        assert_int_equal(json_count(json_get(message, SLICE("Errors"))), 1);
        assert_non_null(strstr(err.message, CASES[i].named));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_named_in_a_query_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
