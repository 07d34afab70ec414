/* page_body_test.c - the list in a page, wherever it stands. */
#include "transfer/page_body.h"

#include "base/testing.h"

static void the_list_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *body, *list; /* NULL if there is none */
    } rows[] = {
        {"{'Documents':[]}", "[]"},
        {"{'_rid':'x','Documents':[{'a':']}'},{'b':[1]}],'_count':2}", "[{'a':']}'},{'b':[1]}]"},
        {" {\n'Documents' : [1] , '_count' : 1 }\n", "[1] "},
        {"{'x':{'Documents':[7]},'Documents':[8]}", "[8]"},
        {"{'x':'a\\'b','Documents':[8]}", "[8]"},
        {"{'Documents':{}}", NULL},
        {"{'Documents':[}", NULL},
        {"{'Documents':[]", NULL},
        {"{'Documents':['", NULL},
        {"{'Documents'", NULL},
        {"{'Doc", NULL},
        {"{'a\\", NULL},
        {"{}", NULL},
        {"[]", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Slice list = SLICE_EMPTY;
        bool found = page_body_documents(row_text(&test_arena, rows[i].body), &list);
        if (found != (rows[i].list != NULL))
            fail_msg("row %zu: %s", i, rows[i].body);
        if (found)
            assert_slice(list, row_text(&test_arena, rows[i].list));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_list_is_found, test_arena_setup, test_arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
