/* row_mapping_test.c - templates, ids, and rows that they do not fit. */
#include "transfer/row_mapping.h"

#include "json/json_testing.h"

typedef struct Case {
    const char *sets[3];
    const char *id_from;
    const char *row;
    const char *expected; /* NULL if the row is refused */
    const char *says;     /* in the refusal; or "same" if the row is not changed */
} Case;

static const Case CASES[] = {
    {{NULL}, NULL, "{'id':'1','a':2}", "{'id':'1','a':2}", "same"},
    {{NULL}, NULL, "{'a':2}", "{'id':'fallback','a':2}", ""},
    {{NULL}, NULL, "{'id':5,'a':2}", "{'id':'5','a':2}", ""},
    {{NULL}, NULL, "{'a':2,'id':true}", "{'id':'true','a':2}", ""},
    {{NULL}, NULL, "{'id':null}", NULL, "the id must be text"},
    {{NULL}, NULL, "{'id':['1']}", NULL, "the id must be text"},
    {{NULL}, NULL, "{'id':'1','_rid':'x','_ts':1,'a':{'_ts':2}}", "{'id':'1','a':{'_ts':2}}", ""},
    {{NULL}, "/n", "{'id':'1','n':7.5}", "{'id':'7.5','n':7.5}", ""},
    {{NULL}, "a.b", "{'a':{'b':'x'}}", "{'id':'x','a':{'b':'x'}}", ""},
    {{NULL}, "/n", "{'id':'1'}", NULL, "no '/n', from which its id is taken"},
    {{"/pk={u}-{d.y}"},
     NULL,
     "{'id':'1','u':'x','d':{'y':7}}",
     "{'id':'1','u':'x','d':{'y':7},'pk':'x-7'}",
     ""},
    {{"/pk={u}"}, NULL, "{'id':'1','u':[1,null]}", "{'id':'1','u':[1,null],'pk':[1,null]}", ""},
    {{"/pk={{{u}}}"}, NULL, "{'id':'1','u':1}", "{'id':'1','u':1,'pk':'{1}'}", ""},
    {{"/t=order", "/e="}, NULL, "{'id':'1'}", "{'id':'1','t':'order','e':''}", ""},
    {{"/a/b={a}"}, NULL, "{'id':'1','a':1}", NULL, "not an object"},
    {{"/a={b}", "/b={a}"}, NULL, "{'id':'1','a':1,'b':2}", "{'id':'1','a':2,'b':1}", ""},
    {{"/id={a}/{b}"}, NULL, "{'a':1,'b':2}", "{'a':1,'b':2,'id':'1/2'}", ""},
    {{"/id={a}"}, NULL, "{'a':1}", "{'id':'1','a':1}", ""},
    {{"/pk={x}-1"}, NULL, "{'id':'1'}", NULL, "the row has no 'x'"},
    {{"/pk={x}-1"}, NULL, "{'id':'1','x':null}", NULL, "'x' is not text"},
    {{"/pk={x}-1"}, NULL, "{'id':'1','x':{}}", NULL, "'x' is not text"},
};

static void rows_become_items(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(CASES); i++) {
        const Case *one = &CASES[i];
        size_t count = 0;
        while (one->sets[count] != NULL)
            count++;
        const RowMapping *mapping = NULL;
        assert_ok(row_mapping_parse(&test_arena, one->sets, count, one->id_from, &mapping, err));
        Json out = JSON_NONE;
        bool is_changed = false;
        Error err = {0};
        Status status = row_mapping_apply(mapping, row_json(&test_arena, one->row),
                                          SLICE("fallback"), &test_arena, &out, &is_changed, &err);
        if ((status == STATUS_OK) != (one->expected != NULL))
            fail_msg("row %zu: %s", i, status == STATUS_OK ? "accepted" : err.message);
        if (status != STATUS_OK) {
            if (strstr(err.message, one->says) == NULL)
                fail_msg("row %zu: %s", i, err.message);
            continue;
        }
        assert_slice(json_print_arena(&test_arena, out), row_text(&test_arena, one->expected));
        assert_int_equal(is_changed, strcmp(one->says, "same") != 0);
    }
}

static void wrong_templates_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *set, *says;
    } rows[] = {
        {"", "expected PATH=TEMPLATE"},    {"/pk", "expected PATH=TEMPLATE"},
        {"=x", "is not the path"},         {"/a[0]=x", "is not the path"},
        {"a[0]=x", "element of an array"}, {"/pk={a", "without its '}'"},
        {"/pk=a}", "without its '{'"},     {"/pk={}", "not a path"},
        {"/pk={a..b}", "not a path"},      {"/pk=\xff", "expected PATH=TEMPLATE"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        const RowMapping *mapping = NULL;
        Error err = {0};
        Status status = row_mapping_parse(&test_arena, &rows[i].set, 1, NULL, &mapping, &err);
        assert_status(status, STATUS_BAD_REQUEST);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("row %zu: %s", i, err.message);
    }
    const RowMapping *mapping = NULL;
    Error err;
    assert_status(row_mapping_parse(&test_arena, NULL, 0, "a..b", &mapping, &err),
                  STATUS_BAD_REQUEST);
}

static void ids_of_rows_are_the_same_each_time_and_differ(void **state)
{
    (void)state;
    static const struct {
        Slice file;
        uint64_t number;
        Slice text;
    } rows[] = {
        {SLICE_INIT("a.csv"), 1, SLICE_INIT("x")},
        {SLICE_INIT("a.csv"), 2, SLICE_INIT("x")},
        {SLICE_INIT("b.csv"), 1, SLICE_INIT("x")},
        {SLICE_INIT("a.csv"), 1, SLICE_INIT("y")},
    };
    char ids[ARRAY_COUNT(rows)][ROW_ID_LEN];
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        char again[ROW_ID_LEN];
        row_id_make(rows[i].file, rows[i].number, rows[i].text, ids[i]);
        row_id_make(rows[i].file, rows[i].number, rows[i].text, again);
        assert_memory_equal(ids[i], again, ROW_ID_LEN);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(ids[i], ids[k], ROW_ID_LEN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(rows_become_items),
        TEST(wrong_templates_are_refused),
        TEST(ids_of_rows_are_the_same_each_time_and_differ),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
