/* field_path_test.c - paths: what they lead to, what is none, and printing them. */
#include "transfer/field_path.h"

#include "json/json_testing.h"

#define DOCUMENT "{'a':{'b':1,'c d':[10,{'e':2}]},'x.y':3,'[z]':4,'/s':5,'\\\\':6}"

static void paths_lead_to_values(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value; /* "" for undefined, NULL if it is no path */
    } rows[] = {
        {"a.b", "1"},        {"/a/b", "1"},   {"a.c d[0]", "10"},
        {"a.c d[1].e", "2"}, {"x\\.y", "3"},  {"\\[z]", "4"},
        {"\\/s", "5"},       {"\\\\", "6"},   {"a.q", ""},
        {"a.b.c", ""},       {"a[0]", ""},    {"a.c d[2]", ""},
        {"q", ""},           {"", NULL},      {".", NULL},
        {"a.", NULL},        {".a", NULL},    {"a..b", NULL},
        {"a[", NULL},        {"a[]", NULL},   {"a[x]", NULL},
        {"a[-1]", NULL},     {"a[1]b", NULL}, {"[0]", NULL},
        {"a\\", NULL},       {"/", NULL},     {"/a/", NULL},
        {"a[10000]", NULL},  {"a[9999]", ""}, {"\xff", NULL},
        {"a.[0]", NULL},     {"a[0][1]", ""}, {"/a/\"c d\"", "[10,{\"e\":2}]"},
    };
    Json document = row_json(&test_arena, DOCUMENT);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FieldPath path;
        bool is_path = field_path_parse(&test_arena, slice_from_cstr(rows[i].path), &path);
        if (is_path != (rows[i].value != NULL))
            fail_msg("'%s' is %s path", rows[i].path, is_path ? "a" : "no");
        if (is_path)
            assert_slice_text(json_print_arena(&test_arena, field_path_get(&path, document)),
                              rows[i].value);
    }
}

static void printed_paths_are_read_again(void **state)
{
    (void)state;
    static const char *const rows[] = {"a",    "a.b",   "a[0].b", "x\\.y", "\\/s",
                                       "a./b", "\\[z]", "\\\\",   "a]b"};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FieldPath path;
        assert_true(field_path_parse(&test_arena, slice_from_cstr(rows[i]), &path));
        AUTO(buf_done) Buf text;
        buf_init(&text, 1000);
        for (size_t s = 0; s < path.count; s++)
            field_path_print_step(&path.steps[s], &text);
        assert_slice_text(buf_view(&text), rows[i]);
    }
}

static void values_are_put_into_copies(void **state)
{
    (void)state;
    static const struct {
        const char *document, *path, *expected; /* NULL if it is refused */
    } rows[] = {
        {"{}", "/pk", "{'pk':7}"},
        {"{'a':1,'pk':2,'b':3}", "/pk", "{'a':1,'pk':7,'b':3}"},
        {"{'a':1}", "/x/y", "{'a':1,'x':{'y':7}}"},
        {"{'x':{'z':1}}", "/x/y", "{'x':{'z':1,'y':7}}"},
        {"{'x':1}", "/x/y", NULL},
        {"{'x':[1]}", "x[0]", NULL},
    };
    Json value = row_json(&test_arena, "7");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        FieldPath path;
        assert_true(field_path_parse(&test_arena, slice_from_cstr(rows[i].path), &path));
        Json out = JSON_NONE;
        Error err;
        Status status = field_path_put(&path, row_json(&test_arena, rows[i].document), value,
                                       &test_arena, &out, &err);
        assert_status(status, rows[i].expected == NULL ? STATUS_BAD_REQUEST : STATUS_OK);
        if (rows[i].expected != NULL)
            assert_slice(json_print_arena(&test_arena, out),
                         row_text(&test_arena, rows[i].expected));
    }
}

static void depth_has_its_bound(void **state)
{
    (void)state;
    AUTO(buf_done) Buf text;
    buf_init(&text, 1000);
    for (size_t i = 0; i < FIELD_PATH_DEPTH_MAX; i++)
        buf_slice(&text, i == 0 ? SLICE("a") : SLICE(".a"));
    FieldPath path;
    assert_true(field_path_parse(&test_arena, buf_view(&text), &path));
    assert_int_equal(path.count, FIELD_PATH_DEPTH_MAX);
    buf_slice(&text, SLICE(".a"));
    assert_false(field_path_parse(&test_arena, buf_view(&text), &path));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(paths_lead_to_values),
        TEST(printed_paths_are_read_again),
        TEST(values_are_put_into_copies),
        TEST(depth_has_its_bound),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
