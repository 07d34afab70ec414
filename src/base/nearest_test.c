/* nearest_test.c */
#include "base/nearest.h"

#include "base/testing.h"

static void similar_words_are_found_and_others_are_not(void **state)
{
    (void)state;
    static const char *const words[] = {"containers", "id", "partitionKey", NULL};
    const struct {
        const char *word;
        const char *expected;
    } rows[] = {
        {"container", "containers"},
        {"partitionkey", "partitionKey"},
        {"partition_key", "partitionKey"},
        {"ids", "id"},
        {"x", NULL}, /* nothing of it is left in 'id' */
        {"something else", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const char *nearest = nearest_word(rows[i].word, words);
        if (rows[i].expected == NULL)
            assert_null(nearest);
        else
            assert_string_equal(nearest, rows[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(similar_words_are_found_and_others_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
