/* arguments_test.c - options in every form, and what is none. */
#include "cli/arguments.h"

#include "base/testing.h"

typedef struct Sample {
    const char *name;
    const char *size;
    bool fast;
    ArgumentList tags;
} Sample;

static const ArgumentRow ROWS[] = {
    ARGUMENT_TABLE_ROW(Sample, name, "name", VALUE, "ID", "", "what it is called"),
    ARGUMENT_TABLE_ROW(Sample, size, "size", VALUE, "N", "7", "how large it is"),
    ARGUMENT_TABLE_ROW(Sample, fast, "fast", FLAG, "", "", "does it fast"),
    ARGUMENT_TABLE_ROW(Sample, tags, "tag", LIST, "TEXT", "", "what to remember"),
};
static const ArgumentTable TABLE = {"sample", ROWS, ARRAY_COUNT(ROWS)};

static Status parse(const char *const *words, Sample *out, ArgumentList *rest, bool *help,
                    Error *err)
{
    char *argv[16];
    int argc = 0;
    for (; words[argc] != NULL; argc++)
        argv[argc] = arena_cstr(&test_arena, slice_from_cstr(words[argc]));
    *out = (Sample){0};
    *rest = (ArgumentList){0};
    return arguments_parse(&TABLE, &test_arena, argc, argv, out, rest, help, err);
}

static void options_are_read_in_every_form(void **state)
{
    (void)state;
    static const char *const words[] = {"a",      "--name", "x",  "--tag=1", "--tag", "2=3",
                                        "--fast", "-",      "--", "--size",  NULL};
    Sample sample;
    ArgumentList rest;
    bool help = true;
    assert_ok(parse(words, &sample, &rest, &help, err));
    assert_false(help);
    assert_string_equal(sample.name, "x");
    assert_string_equal(sample.size, "7");
    assert_true(sample.fast);
    assert_int_equal(sample.tags.count, 2);
    assert_string_equal(sample.tags.items[0], "1");
    assert_string_equal(sample.tags.items[1], "2=3");
    assert_int_equal(rest.count, 3);
    assert_string_equal(rest.items[0], "a");
    assert_string_equal(rest.items[1], "-");
    assert_string_equal(rest.items[2], "--size");
    static const char *const none[] = {NULL};
    assert_ok(parse(none, &sample, &rest, &help, err));
    assert_null(sample.name);
    static const char *const asked[] = {"--help", "--nonsense", NULL};
    assert_ok(parse(asked, &sample, &rest, &help, err));
    assert_true(help);
}

static void what_is_no_option_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *words[3];
        const char *says;
    } rows[] = {
        {{"--nmae", "x"}, "did you mean '--name'?"},
        {{"--something"}, "'orrery sample --help' lists them"},
        {{"--hlep"}, "did you mean '--help'?"},
        {{"-x"}, "no option '-x'"},
        {{"--name"}, "--name needs a value: --name ID"},
        {{"--name="}, "must not be empty"},
        {{"--name", ""}, "must not be empty"},
        {{"--fast=1"}, "takes no value"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        Sample sample;
        ArgumentList rest;
        bool help = false;
        Error err = {0};
        assert_status(parse(rows[i].words, &sample, &rest, &help, &err), STATUS_BAD_REQUEST);
        if (strstr(err.message, rows[i].says) == NULL)
            fail_msg("row %zu: %s", i, err.message);
    }
}

static void commands_with_options_only_refuse_the_rest(void **state)
{
    (void)state;
    static const char *const words[] = {"a", "--"};
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        char *argv[] = {arena_cstr(&test_arena, slice_from_cstr(words[i])),
                        arena_cstr(&test_arena, SLICE("--name"))};
        Sample sample = {0};
        bool help = false;
        Error err = {0};
        assert_status(arguments_parse(&TABLE, &test_arena, 2, argv, &sample, NULL, &help, &err),
                      STATUS_BAD_REQUEST);
        assert_non_null(strstr(err.message, "is not an option; 'orrery sample --help' lists them"));
    }
}

static void numbers_have_bounds(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_good;
    } rows[] = {{"1", true}, {"100", true}, {"0", false}, {"101", false},
                {"", false}, {"1x", false}, {"-1", false}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        uint32_t value = 0;
        Error err;
        Status status = argument_number("n", rows[i].text, 1, 100, &value, &err);
        assert_status(status, rows[i].is_good ? STATUS_OK : STATUS_BAD_REQUEST);
    }
}

static void help_names_every_option(void **state)
{
    (void)state;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    arguments_print_help(&TABLE, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "Options (default):\n"
                              "  --name ID               what it is called\n"
                              "  --size N                how large it is (7)\n"
                              "  --fast                  does it fast\n"
                              "  --tag TEXT              what to remember\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(options_are_read_in_every_form),
        TEST(what_is_no_option_is_refused),
        TEST(commands_with_options_only_refuse_the_rest),
        TEST(numbers_have_bounds),
        TEST(help_names_every_option),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
