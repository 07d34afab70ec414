/* shared_library_test.c - libraries that are installed, and some that are not. */
#include "base/shared_library.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct Table {
    uint64_t before;
    typeof(floor) *floor;
    typeof(hypot) *hypot;
    uint64_t after;
} Table;

static void functions_that_were_loaded_can_be_called(void **state)
{
    (void)state;
    static const LibraryFunction FUNCTIONS[] = {LIBRARY_FUNCTION(Table, floor),
                                                LIBRARY_FUNCTION(Table, hypot)};
    Table table = {.before = 1, .after = 2};
    Error err;
    for (int i = 0; i < 2; i++)
        assert_int_equal(shared_library_load("libm.so.6", FUNCTIONS, 2, &table, &err), STATUS_OK);
    assert_true(table.floor(2.5) == 2);
    assert_true(table.hypot(3, 4) == 5);
    assert_int_equal(table.before, 1);
    assert_int_equal(table.after, 2);
}

static void the_error_names_what_is_missing(void **state)
{
    (void)state;
    static const LibraryFunction FUNCTIONS[] = {LIBRARY_FUNCTION(Table, floor),
                                                {"no_such_function", offsetof(Table, hypot)}};
    static const struct {
        const char *file, *named;
    } CASES[] = {{"libnosuchlibrary.so.7", "'libnosuchlibrary.so.7' cannot be used"},
                 {"libm.so.6", "no_such_function"}};
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        Table table;
        Error err = {0};
        assert_int_equal(shared_library_load(CASES[i].file, FUNCTIONS, 2, &table, &err),
                         STATUS_UNAVAILABLE);
        assert_non_null(strstr(err.message, CASES[i].named));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_that_were_loaded_can_be_called),
        cmocka_unit_test(the_error_names_what_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
