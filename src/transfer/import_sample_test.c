/* import_sample_test.c - what an import would write, read before it begins: of files and of a pipe.
 */
#include "transfer/import_sample.h"

#include "base/testing.h"
#include "transfer/input.h"

#include <fcntl.h>
#include <unistd.h>

static const char *in_folder(const TestFolder *folder, const char *name)
{
    return arena_cstr(&test_arena, arena_format(&test_arena, "%s/%s", folder->path, name));
}

static void write_file(const char *path, Slice text)
{
    FILE *file = fopen(path, "wbe");
    assert_non_null(file);
    assert_int_equal(fwrite(text.ptr, 1, text.len, file), text.len);
    assert_int_equal(fclose(file), 0);
}

/* The ids of what was taken, and a few more facts. */
typedef struct Taken {
    Buf ids;
    size_t count;
    size_t max; /* after which it fails; 0 for never */
} Taken;

static Status take(void *context, Json item, Error *err)
{
    Taken *taken = context;
    if (taken->max > 0 && taken->count == taken->max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "enough");
    taken->count++;
    buf_format(&taken->ids, "%.*s ", SLICE_ARG(json_string(json_get(item, SLICE("id")))));
    return STATUS_OK;
}

static Status sample(const char *const *sources, size_t count, const char *set, Taken *taken,
                     Buf *begun, Error *err)
{
    ImportOptions options = {
        .sources = sources,
        .source_count = count,
        .sets = &set,
        .set_count = set == NULL ? 0 : 1,
        .stop_fd = -1,
    };
    buf_init(&taken->ids, 1 << 20);
    buf_init(begun, IMPORT_SAMPLE_STDIN_MAX);
    return import_sample(&options, take, taken, begun, err);
}

static void rows_are_what_would_be_written(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    write_file(in_folder(&folder, "a.jsonl"),
               SLICE("{\"id\":\"1\",\"n\":5}\nnonsense\n{\"id\":\"2\",\"n\":6}\n{\"x\":1}\n"));
    write_file(in_folder(&folder, "b.csv"), SLICE("id,n\n3,7\n"));
    write_file(in_folder(&folder, "c.json"), SLICE("[{\"id\":\"4\",\"n\":1},{\"id\":"));
    const char *sources[] = {folder.path};
    Taken taken = {0};
    AUTO(buf_done) Buf begun;
    assert_ok(sample(sources, 1, NULL, &taken, &begun, err));
    assert_int_equal(taken.count, 5); /* a row without an id gets one */
    assert_true(slice_starts_with(buf_view(&taken.ids), SLICE("1 2 ")));
    assert_true(slice_ends_with(buf_view(&taken.ids), SLICE(" 3 4 ")));
    buf_done(&taken.ids);
    Taken mapped = {0};
    assert_ok(sample(sources, 1, "/id=n{n}", &mapped, &begun, err));
    assert_slice(buf_view(&mapped.ids), SLICE("n5 n6 n7 n1 ")); /* one has no n */
    buf_done(&mapped.ids);
    Taken limited = {.max = 2};
    Error err;
    assert_status(sample(sources, 1, NULL, &limited, &begun, &err), STATUS_BAD_REQUEST);
    assert_int_equal(limited.count, 2);
    buf_done(&limited.ids);
}

/* Puts a pipe with this text in the place of standard input; returns what was there. */
static int replace_stdin(Slice text)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(write(ends[1], text.ptr, text.len), (ssize_t)text.len);
    assert_int_equal(close(ends[1]), 0);
    int before = dup(STDIN_FILENO);
    assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
    assert_int_equal(close(ends[0]), 0);
    return before;
}

static void a_pipe_is_kept_for_the_import(void **state)
{
    (void)state;
    Slice text = SLICE("{\"id\":\"1\"}\n{\"id\":\"2\"}\n{\"id\":\"3");
    int before = replace_stdin(text);
    const char *sources[] = {"-"};
    Taken taken = {0};
    AUTO(buf_done) Buf begun;
    assert_ok(sample(sources, 1, NULL, &taken, &begun, err));
    assert_slice(buf_view(&taken.ids), SLICE("1 2 "));
    assert_slice(buf_view(&begun), text);
    buf_done(&taken.ids);
    /* An Input has these bytes, and then what else comes. */
    InputFile file = {.path = "-", .begun = buf_view(&begun)};
    Input *input = NULL;
    assert_ok(input_open(&file, &input, err));
    InputState end = INPUT_READY;
    while (end != INPUT_END)
        assert_ok(input_fill(input, &end, err));
    assert_slice(input_bytes(input), text);
    assert_int_equal(input_position(input), 0);
    input_skip(input, text.len);
    assert_int_equal(input_position(input), text.len);
    input_close(input);
    assert_true(dup2(before, STDIN_FILENO) >= 0);
    assert_int_equal(close(before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(rows_are_what_would_be_written),
        TEST(a_pipe_is_kept_for_the_import),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
