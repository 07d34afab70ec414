/* advise_options_test.c - the command line of `orrery advise`: defaults, values, refusals. */
#include "cli/advise_options.h"

#include "api/core/auth.h"
#include "base/testing.h"

enum { ARGUMENTS_MAX = 16 };

/* Arguments in one text, separated by '|'. */
static Status parse(Arena *arena, const char *text, AdviseCommand *out, bool *help, Error *err)
{
    char *argv[ARGUMENTS_MAX];
    char *environment[] = {NULL};
    int argc = 0;
    Slice rest = slice_from_cstr(text);
    while (rest.ptr != NULL && argc < ARGUMENTS_MAX)
        argv[argc++] = arena_cstr(arena, slice_cut(&rest, '|'));
    return advise_options_parse(arena, argc, argv, environment, out, help, err);
}

static void options_have_defaults(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AdviseCommand command;
    Error err;
    bool help = false;
    assert_int_equal(parse(&arena, "items.jsonl", &command, &help, &err), STATUS_OK);
    assert_string_equal(command.file, "items.jsonl");
    assert_int_equal(command.sample_max, SAMPLE_ITEMS_DEFAULT);
    assert_int_equal(command.partitions, KEY_ADVICE_PARTITIONS_DEFAULT);
    assert_false(command.are_partitions_given);
    assert_false(command.has_check);
    assert_int_equal(command.time_path.count, 0);
    assert_string_equal(command.key, AUTH_DEVELOPMENT_KEY);
}

static void options_are_read_in_both_forms(void **state)
{
    (void)state;
    AUTO(arena_done) Arena arena;
    arena_init(&arena, 4096);
    AdviseCommand command;
    Error err;
    bool help = false;
    assert_int_equal(parse(&arena,
                           "--database|d|--container=c|--endpoint=http://h:1|--check|/a,/b/c|"
                           "--growth=2.5|--partitions|20|--together|/o|--json|--key=k",
                           &command, &help, &err),
                     STATUS_OK);
    assert_null(command.file);
    assert_string_equal(command.database, "d");
    assert_string_equal(command.container, "c");
    assert_string_equal(command.endpoint, "http://h:1");
    assert_string_equal(command.key, "k");
    assert_true(command.is_json);
    assert_true(command.growth > 2.4 && command.growth < 2.6);
    assert_int_equal(command.partitions, 20);
    assert_true(command.are_partitions_given);
    assert_int_equal(command.check.path_count, 2);
    assert_int_equal(command.together.count, 1);
    assert_int_equal(parse(&arena, "-|--time-path|/at", &command, &help, &err), STATUS_OK);
    assert_string_equal(command.file, "-");
    assert_int_equal(command.time_path.count, 1);
    assert_int_equal(parse(&arena, "--help", &command, &help, &err), STATUS_OK);
    assert_true(help);
}

static void wrong_usage_is_refused_with_a_hint(void **state)
{
    (void)state;
    static const struct {
        const char *arguments;
        const char *message;
    } rows[] = {
        {"--json", "nothing to learn from"},
        {"--database|d", "nothing to learn from"},
        {"a|b", "one FILE too many"},
        {"a|--database|d", "exclude each other"},
        {"a|--key|k", "exclude each other"},
        {"-|--queries|-", "standard input"},
        {"a|--quieries|q", "did you mean '--queries'"},
        {"a|--check", "--check needs a value"},
        {"a|--check=", "must not be empty"},
        {"a|--check|userId", "not a partition key"},
        {"a|--sample|9", "from 10 to"},
        {"a|--sample|x", "whole number"},
        {"a|--partitions|0", "from 1 to 100"},
        {"a|--partitions|101", "from 1 to 100"},
        {"a|--growth|0", "above 0"},
        {"a|--growth|-5", "above 0"},
        {"a|--growth|1e99", "above 0"},
        {"a|--growth|x", "above 0"},
        {"a|--time-path|at", "--time-path must be a path"},
        {"a|--together|/", "--together must be a path"},
        {"--database|d|--container|c|--key|k|--key-file|f", "exclude each other"},
        {"--database|d|--container|c|--key-file|/no/such", "/no/such"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        AUTO(arena_done) Arena arena;
        arena_init(&arena, 4096);
        AdviseCommand command;
        Error err;
        bool help = false;
        if (parse(&arena, rows[i].arguments, &command, &help, &err) == STATUS_OK)
            fail_msg("'%s' was accepted", rows[i].arguments);
        if (strstr(err.message, rows[i].message) == NULL)
            fail_msg("'%s': %s", rows[i].arguments, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_have_defaults),
        cmocka_unit_test(options_are_read_in_both_forms),
        cmocka_unit_test(wrong_usage_is_refused_with_a_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
