/* output_test.c - files of every format, and files that are gone on with. */
#include "transfer/output.h"

#include "transfer/input.h"
#include "json/json_testing.h"

#include <unistd.h>

static const char *test_path(const TestFolder *folder)
{
    return arena_cstr(&test_arena, arena_format(&test_arena, "%s/out", folder->path));
}

static void add(Output *output, const char *row)
{
    Json value = row_json(&test_arena, row);
    assert_ok(output_item(output, json_print_arena(&test_arena, value), value, err));
}

static void assert_file(const char *path, const char *expected)
{
    AUTO(input_close) Input *input = NULL;
    assert_ok(input_open(&(InputFile){.path = path}, &input, err));
    InputState state = INPUT_READY;
    while (state != INPUT_END)
        assert_ok(input_fill(input, &state, err));
    assert_slice(input_bytes(input), row_text(&test_arena, expected));
}

static const struct {
    RowFormat format;
    const char *text, *empty;
} FORMATS[] = {
    {ROW_FORMAT_LINES, "{'id':'1'}\n{'id':'2','a':[1]}\n", ""},
    {ROW_FORMAT_JSON, "[\n{'id':'1'},\n{'id':'2','a':[1]}\n]\n", "[\n]\n"},
    {ROW_FORMAT_CSV, "id,a[0]\r\n'1',\r\n'2',1\r\n", "\r\n"},
};
static const Compression KINDS[] = {COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD};

static void files_of_every_format(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    const char *path = test_path(&folder);
    for (size_t f = 0; f < ARRAY_COUNT(FORMATS); f++) {
        for (size_t k = 0; k < ARRAY_COUNT(KINDS); k++) {
            for (int count = 0; count <= 2; count += 2) {
                OutputOptions options = {
                    .path = path, .format = FORMATS[f].format, .compression = KINDS[k]};
                AUTO(output_close) Output *output = NULL;
                assert_ok(output_open(&options, &output, err));
                if (count == 2) {
                    add(output, "{'id':'1'}");
                    add(output, "{'id':'2','a':[1]}");
                }
                uint64_t bytes = 0;
                assert_ok(output_finish(output, &bytes, err));
                assert_file(path, count == 2 ? FORMATS[f].text : FORMATS[f].empty);
            }
        }
    }
}

static void a_file_is_gone_on_with(void **state)
{
    (void)state;
    AUTO(test_folder_done) TestFolder folder;
    test_folder_init(&folder);
    const char *path = test_path(&folder);
    for (size_t f = 0; f < 2; f++) { /* not CSV */
        for (size_t k = 0; k < ARRAY_COUNT(KINDS); k++) {
            OutputOptions options = {
                .path = path, .format = FORMATS[f].format, .compression = KINDS[k]};
            AUTO(output_close) Output *output = NULL;
            assert_ok(output_open(&options, &output, err));
            add(output, "{'id':'1'}");
            uint64_t bytes = 0;
            assert_ok(output_sync(output, &bytes, err));
            /* These are written again. */
            add(output, "{'id':'lost'}");
            uint64_t more = 0;
            assert_ok(output_sync(output, &more, err));
            assert_true(more > bytes);
            options.is_resumed = true;
            options.bytes = bytes;
            options.items = 1;
            AUTO(output_close) Output *again = NULL;
            assert_ok(output_open(&options, &again, err));
            add(again, "{'id':'2','a':[1]}");
            assert_ok(output_finish(again, &bytes, err));
            assert_file(path, FORMATS[f].text);
            options.bytes = bytes + 1;
            AUTO(output_close) Output *other = NULL;
            Error err;
            assert_status(output_open(&options, &other, &err), STATUS_BAD_REQUEST);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(files_of_every_format),
        TEST(a_file_is_gone_on_with),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
