/* arguments_test.c - values after their names, or with '='. */
#include "cli/arguments.h"

#include "base/testing.h"

static void values_are_taken(void **state)
{
    (void)state;
    const char *from = NULL;
    const char *to = NULL;
    const ArgumentText rows[] = {{"--from", &from}, {"--to", &to}};
    static char words[][16] = {"--from", "a", "--to=b=c", "--fromage", "--to", "--to="};
    char *argv[] = {words[0], words[1], words[2], words[3], words[4], words[5]};
    int at = 0;
    bool found = false;
    assert_ok(arguments_take_text(6, argv, &at, rows, 2, &found, err));
    assert_true(found);
    assert_int_equal(at, 1);
    assert_string_equal(from, "a");
    at = 2;
    assert_ok(arguments_take_text(6, argv, &at, rows, 2, &found, err));
    assert_string_equal(to, "b=c");
    at = 3;
    assert_ok(arguments_take_text(6, argv, &at, rows, 2, &found, err));
    assert_false(found);
    Error err;
    at = 4;
    assert_status(arguments_take_text(5, argv, &at, rows, 2, &found, &err), STATUS_BAD_REQUEST);
    at = 5;
    assert_status(arguments_take_text(6, argv, &at, rows, 2, &found, &err), STATUS_BAD_REQUEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
