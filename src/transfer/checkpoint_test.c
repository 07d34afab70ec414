/* checkpoint_test.c - what was written is read again; what is damaged or of others is refused. */
#include "transfer/checkpoint.h"

#include "base/testing.h"

#define JOB "0123456789ABCDEF0123456789ABCDEF"

static void an_import_is_read_as_it_was_written(void **state)
{
    (void)state;
    ImportCheckpoint before = {
        .file = 3,
        .row = 1234567890123,
        .rejected = 5,
        .reject_bytes = 678,
        .digest = {.count = 99, .sum = {.low = UINT64_MAX, .high = 7}},
    };
    AUTO(buf_done) Buf text;
    buf_init(&text, 1000);
    import_checkpoint_print(&before, SLICE(JOB), &text);
    ImportCheckpoint after;
    assert_ok(import_checkpoint_parse(&test_arena, buf_view(&text), SLICE(JOB), &after, err));
    assert_memory_equal(&before, &after, sizeof(before));
}

static void an_export_is_read_as_it_was_written(void **state)
{
    (void)state;
    ExportPart parts[] = {
        {SLICE(""), SLICE("05C1"), SLICE("{\"token\":\"\\\"x\"}")},
        {SLICE("7F"), SLICE("FF"), SLICE("")},
    };
    ExportCheckpoint before = {
        .bytes = 4096, .digest = {.count = 2}, .parts = parts, .part_count = 2};
    for (size_t count = 0; count <= 2; count++) {
        before.part_count = count;
        AUTO(buf_done) Buf text;
        buf_init(&text, 1000);
        export_checkpoint_print(&before, SLICE(JOB), &text);
        ExportCheckpoint after;
        assert_ok(export_checkpoint_parse(&test_arena, buf_view(&text), SLICE(JOB), &after, err));
        assert_int_equal(after.bytes, 4096);
        assert_int_equal(after.part_count, count);
        for (size_t i = 0; i < count; i++) {
            assert_slice(after.parts[i].min, parts[i].min);
            assert_slice(after.parts[i].max, parts[i].max);
            assert_slice(after.parts[i].token, parts[i].token);
        }
    }
}

static void what_is_no_checkpoint_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "the file to resume from"},
        {"{", "the file to resume from"},
        {"[]", "no text 'orrery'"},
        {"{'orrery':'import','job':'" JOB "'}", "is of 'import'"},
        {"{'orrery':'export','job':'x'}", "other options or files"},
        {"{'orrery':'export','job':'" JOB "'}", "no whole number 'bytes'"},
        {"{'orrery':'export','job':'" JOB "','bytes':-1}", "no whole number 'bytes'"},
        {"{'orrery':'export','job':'" JOB "','bytes':1,'written':1,'digest':'x'}", "'digest'"},
#define GOOD "{'orrery':'export','job':'" JOB "','bytes':1,'written':1,'digest':'" JOB "',"
        {GOOD "'parts':1}", "no list 'parts'"},
        {GOOD "'parts':[1]}", "no text 'min'"},
        {GOOD "'parts':[{'min':'x','max':'FF','token':''}]}", "a part that is none"},
        {GOOD "'parts':[{'min':'FF','max':'','token':''}]}", "a part that is none"},
        {GOOD "'parts':[{'min':'','max':'FF','token':'a\\nb'}]}", "a part that is none"},
#undef GOOD
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        ExportCheckpoint out = {.bytes = 77};
        Error err = {0};
        assert_status(export_checkpoint_parse(&test_arena, row_text(&test_arena, rows[i].text),
                                              SLICE(JOB), &out, &err),
                      STATUS_BAD_REQUEST);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("row %zu: %s", i, err.message);
        assert_int_equal(out.bytes, 77);
    }
}

static void files_are_replaced_whole(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    const char *path = arena_cstr(&test_arena, arena_format(&test_arena, "%s/state", folder.path));
    Slice text;
    bool found = true;
    assert_ok(checkpoint_read(path, &test_arena, &text, &found, err));
    assert_false(found);
    assert_ok(checkpoint_write(path, SLICE("one, which is longer"), err));
    assert_ok(checkpoint_write(path, SLICE("two"), err));
    assert_ok(checkpoint_read(path, &test_arena, &text, &found, err));
    assert_true(found);
    assert_slice_text(text, "two");
    Error err;
    assert_status(checkpoint_write("/nothing/here", SLICE("x"), &err), STATUS_IO);
    assert_status(checkpoint_read(folder.path, &test_arena, &text, &found, &err), STATUS_IO);
}

static void jobs_differ(void **state)
{
    (void)state;
    char a[CHECKPOINT_JOB_LEN];
    char b[CHECKPOINT_JOB_LEN];
    checkpoint_job(SLICE("a"), a);
    checkpoint_job(SLICE("b"), b);
    assert_memory_not_equal(a, b, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(an_import_is_read_as_it_was_written),
        TEST(an_export_is_read_as_it_was_written),
        TEST(what_is_no_checkpoint_is_refused),
        TEST(files_are_replaced_whole),
        TEST(jobs_differ),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
