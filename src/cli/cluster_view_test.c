/* cluster_view_test.c - what `orrery cluster status` shows of answers, whatever they are. */
#include "base/testing.h"
#include "cli/cluster_view.h"
#include "json/json.h"

#include <stdio.h>
#include <stdlib.h>

static char *print(Arena *arena, const char *json)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_ok(cluster_view_print(arena, slice_from_cstr(json), to, err));
    (void)fclose(to);
    return text;
}

static void what_an_answer_says_is_shown(void **state UNUSED)
{
    static const struct {
        const char *json;
        const char *shown;
        const char *hidden;
    } rows[] = {
        {"{}", "NODE", "MOVING"},
        {"[]", "NODE", "MOVING"},
        {"{\"moves\":[]}", "NODE", "MOVING"},
        {"{\"moves\":7,\"spaces\":7,\"movesMissing\":{}}", "NODE", "MOVING"},
        {"{\"moves\":[{\"space\":65537,\"from\":\"a\",\"to\":\"b\",\"stage\":\"waiting\","
         "\"reason\":\"the node is drained\"}]}",
         "65537                a                b                waiting       the node is "
         "drained\n",
         "did not say"},
        {"{\"moves\":[{\"space\":\"x\",\"from\":8}]}", "MOVING", "x"},
        {"{\"movesMissing\":[\"c\"]}", "Node 'c' did not say what it gives away.", "MOVING"},
        {"{\"spaceCount\":1,\"spaces\":[{\"id\":1}]}", "1 (catalogue)", "more"},
        {"{\"spaceCount\":3,\"spaces\":[{\"id\":1}]}", "... and 2 more that are not listed",
         "MOVING"},
        {"{\"warnings\":[\"the journal fills\"]}", "WARNING: the journal fills\n", "MOVING"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        char *text = print(&arena, rows[i].json);
        if (strstr(text, rows[i].shown) == NULL)
            fail_msg("row %zu: expected '%s' in:\n%s", i, rows[i].shown, text);
        if (strstr(text, rows[i].hidden) != NULL)
            fail_msg("row %zu: did not expect '%s' in:\n%s", i, rows[i].hidden, text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_answer_says_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
