/* reject_file_test.c - rejects are lines of JSON, and a resumed run cuts what it writes again. */
#include "transfer/reject_file.h"

#include "base/testing.h"

static Slice read_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    assert_non_null(file);
    char *bytes = arena_alloc(&test_arena, 100000);
    size_t len = fread(bytes, 1, 100000, file);
    assert_int_equal(fclose(file), 0);
    return slice_make(bytes, len);
}

static void rejects_are_lines_and_are_cut_when_resumed(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    const char *path =
        arena_cstr(&test_arena, arena_format(&test_arena, "%s/rejects", folder.path));
    uint64_t bytes = 0;
    AUTO(reject_file_close) RejectFile *file = NULL;
    assert_ok(reject_file_open(path, 0, &file, err));
    assert_ok(reject_file_add(file, SLICE("a.csv"), 7, SLICE("too \"odd\""), SLICE("x,\xff"), err));
    assert_ok(reject_file_sync(file, &bytes, err));
    Slice first = row_text(&test_arena, "{'file':'a.csv','line':7,'reason':'too \\'odd\\'','row':"
                                        "'x,?'}\n");
    assert_slice(read_file(path), first);
    assert_int_equal(bytes, first.len);
    assert_ok(reject_file_add(file, SLICE("a.csv"), 8, SLICE("late"), SLICE(""), err));
    uint64_t more = 0;
    assert_ok(reject_file_sync(file, &more, err));
    assert_true(more > bytes);
    AUTO(reject_file_close) RejectFile *again = NULL;
    assert_ok(reject_file_open(path, bytes, &again, err));
    assert_slice(read_file(path), first);
    assert_ok(reject_file_add(again, SLICE("b"), 1, SLICE("r"), SLICE("r"), err));
    assert_ok(reject_file_sync(again, &more, err));
    assert_true(slice_starts_with(read_file(path), first));
    Error err;
    AUTO(reject_file_close) RejectFile *none = NULL;
    assert_status(reject_file_open("/nothing/here", 0, &none, &err), STATUS_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rejects_are_lines_and_are_cut_when_resumed,
                                        test_arena_setup, test_arena_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
