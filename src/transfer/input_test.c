/* input_test.c - lists of files, and what is in them with and without compression. */
#include "transfer/input.h"

#include "base/buf.h"
#include "base/testing.h"
#include "transfer/compression.h"

#include <fcntl.h>
#include <sys/stat.h>
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

static void folders_are_walked_in_order(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    assert_int_equal(mkdir(in_folder(&folder, "b"), 0700), 0);
    write_file(in_folder(&folder, "c.json"), SLICE("3"));
    write_file(in_folder(&folder, "b/2.json"), SLICE("22"));
    write_file(in_folder(&folder, "a.json"), SLICE("1"));
    write_file(in_folder(&folder, ".hidden"), SLICE("x"));
    const char *names[] = {folder.path, in_folder(&folder, "a.json")};
    InputList list;
    assert_ok(input_list(&test_arena, names, 2, &list, err));
    static const char *const expected[] = {"/a.json", "/b/2.json", "/c.json", "/a.json"};
    assert_int_equal(list.count, ARRAY_COUNT(expected));
    for (size_t i = 0; i < list.count; i++)
        assert_true(
            slice_ends_with(slice_from_cstr(list.files[i].path), slice_from_cstr(expected[i])));
    assert_int_equal(list.bytes, 5);
    const char *with_input[] = {"-", folder.path};
    assert_ok(input_list(&test_arena, with_input, 2, &list, err));
    assert_int_equal(list.count, 4);
    assert_int_equal(list.bytes, 0); /* nobody knows */
    const char *missing[] = {in_folder(&folder, "nothing")};
    Error err;
    assert_status(input_list(&test_arena, missing, 1, &list, &err), STATUS_IO);
    assert_non_null(strstr(err.message, "nothing"));
}

static Status read_all(Input *input, Buf *out)
{
    InputState state = INPUT_READY;
    Error err;
    while (state != INPUT_END) {
        if (input_fill(input, &state, &err) != STATUS_OK)
            return err.status;
        Slice bytes = slice_first(input_bytes(input), 10007);
        buf_slice(out, bytes);
        input_skip(input, bytes.len);
        if (state == INPUT_END)
            state = input_bytes(input).len > 0 ? INPUT_READY : INPUT_END;
    }
    return STATUS_OK;
}

static void files_are_read_whatever_their_compression(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    AUTO(buf_done) Buf text;
    buf_init(&text, 8 << 20);
    for (int i = 0; text.len < 3000000; i++)
        buf_format(&text, "{\"id\":\"%d\"}\n", i);
    static const Compression kinds[] = {COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD};
    for (size_t k = 0; k < ARRAY_COUNT(kinds); k++) {
        AUTO(buf_done) Buf packed;
        buf_init(&packed, 8 << 20);
        if (kinds[k] == COMPRESSION_NONE) {
            buf_slice(&packed, buf_view(&text));
        } else {
            AUTO(compressor_free) Compressor *stream = compressor_new(kinds[k]);
            compressor_write(stream, buf_view(&text), &packed);
            compressor_end(stream, &packed);
        }
        InputFile file = {.path = in_folder(&folder, "file")};
        write_file(file.path, buf_view(&packed));
        AUTO(input_close) Input *input = NULL;
        assert_ok(input_open(&file, &input, err));
        AUTO(buf_done) Buf out;
        buf_init(&out, 8 << 20);
        assert_status(read_all(input, &out), STATUS_OK);
        assert_int_equal(out.len, text.len);
        assert_memory_equal(out.ptr, text.ptr, text.len);
        assert_int_equal(input_position(input), packed.len);
        if (kinds[k] == COMPRESSION_NONE)
            continue;
        write_file(file.path, slice_first(buf_view(&packed), packed.len - 3));
        AUTO(input_close) Input *cut = NULL;
        assert_ok(input_open(&file, &cut, err));
        assert_status(read_all(cut, &out), STATUS_BAD_REQUEST);
    }
}

static void a_pipe_is_not_waited_for(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    InputFile file = {.path = in_folder(&folder, "pipe")};
    assert_int_equal(mkfifo(file.path, 0600), 0);
    int writer = open(file.path, O_RDWR | O_CLOEXEC);
    assert_true(writer >= 0);
    AUTO(input_close) Input *input = NULL;
    assert_ok(input_open(&file, &input, err));
    InputState result = INPUT_READY;
    assert_ok(input_fill(input, &result, err));
    assert_int_equal(result, INPUT_WAIT);
    assert_int_equal(write(writer, "hello", 5), 5);
    assert_ok(input_fill(input, &result, err));
    assert_int_equal(result, INPUT_READY);
    assert_slice_text(input_bytes(input), "hello");
    (void)close(writer);
    assert_ok(input_fill(input, &result, err));
    assert_int_equal(result, INPUT_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(folders_are_walked_in_order),
        TEST(files_are_read_whatever_their_compression),
        TEST(a_pipe_is_not_waited_for),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
