/* commands_test.c - the list of commands is complete enough for the help, the manual page and the
 * completion that are made from it. What these say is checked in test/help.test.mjs. */
#include "cli/commands.h"

#include "base/testing.h"
#include "cli/completion.h"
#include "cli/manual_page.h"

enum { NAME_LEN_MAX = 10, SUMMARY_LEN_MAX = 70 };

static void every_command_explains_itself(void **state)
{
    (void)state;
    for (size_t i = 0; i < commands_count(); i++) {
        const Command *command = commands_at(i);
        assert_ptr_equal(commands_find(command->name), command);
        assert_true(strlen(command->name) <= NAME_LEN_MAX);
        assert_non_null(command->main);
        if (command->summary == NULL || strlen(command->summary) > SUMMARY_LEN_MAX)
            fail_msg("the summary of '%s' is missing or too long", command->name);
        if (command->about == NULL || command->about[0] == '\0')
            fail_msg("'%s' does not say what it is for", command->name);
        if (strncmp(command->usage, command->name, strlen(command->name)) != 0)
            fail_msg("the usage of '%s' does not begin with its name", command->name);
        if (command->options != NULL)
            assert_string_equal(command->options->command, command->name);
        CommandWord word = {0};
        for (size_t j = 0; command->word != NULL && command->word(j, &word); j++) {
            assert_true(word.heading[0] != '\0' && word.help[0] != '\0');
            /* A shell gets them as they are. */
            assert_null(strpbrk(word.word, " '\"\\$`"));
        }
    }
    assert_null(commands_find("script-worker"));
    assert_null(commands_find(""));
}

static void every_option_is_named_once_and_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < commands_count(); i++) {
        const ArgumentTable *table = commands_at(i)->options;
        for (size_t j = 0; table != NULL && j < table->count; j++) {
            const ArgumentRow *row = &table->rows[j];
            assert_true(row->help[0] != '\0');
            assert_int_equal(row->placeholder[0] == '\0', row->kind == ARGUMENT_FLAG);
            /* Shells and roff get the names as they are. */
            assert_int_equal(strspn(row->name, "abcdefghijklmnopqrstuvwxyz0123456789-"),
                             strlen(row->name));
            for (size_t k = 0; k < j; k++)
                assert_string_not_equal(row->name, table->rows[k].name);
        }
    }
}

static bool is_an_option(const char *name)
{
    for (size_t i = 0; i < commands_count(); i++) {
        const ArgumentTable *table = commands_at(i)->options;
        for (size_t j = 0; table != NULL && j < table->count; j++) {
            if (strcmp(table->rows[j].name, name) == 0)
                return true;
        }
    }
    return false;
}

static void choices_are_of_options_that_exist(void **state)
{
    (void)state;
    for (size_t i = 0; i < COMPLETION_CHOICE_COUNT; i++) {
        if (!is_an_option(COMPLETION_CHOICES[i].option))
            fail_msg("no command has the option '%s'", COMPLETION_CHOICES[i].option);
    }
}

static Slice printed(void (*print)(FILE *to))
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    assert_non_null(out);
    print(out);
    assert_int_equal(fclose(out), 0);
    Slice copy = arena_copy(&test_arena, slice_make(text, len));
    free(text);
    return copy;
}

/* A line that begins with a dot or an apostrophe is one of roff's own, and must be a known one. */
static void manual_page_has_only_macros_that_it_means(void **state)
{
    (void)state;
    static const char *const MACROS[] = {".\\\" ", ".TH ", ".SH ", ".SS ", ".PP",
                                         ".TP",    ".RS ", ".RE",  ".nf",  ".fi"};
    Slice rest = printed(manual_page_print);
    while (rest.len > 0) {
        Slice line = slice_cut(&rest, '\n');
        bool is_known = line.len > 0 && line.ptr[0] != '.' && line.ptr[0] != '\'';
        for (size_t i = 0; i < ARRAY_COUNT(MACROS); i++)
            is_known = is_known || slice_starts_with(line, slice_from_cstr(MACROS[i]));
        if (!is_known)
            fail_msg("'%.*s' is not a line of a manual page", SLICE_ARG(line));
        for (size_t i = 0; i < line.len; i++)
            assert_true(line.ptr[i] >= ' ' && line.ptr[i] < 0x7f);
    }
}

static void help_is_no_wider_than_a_screen(void **state)
{
    (void)state;
    for (size_t i = 0; i < commands_count(); i++) {
        char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        assert_non_null(out);
        command_print_help(commands_at(i), out);
        assert_int_equal(fclose(out), 0);
        Slice rest = slice_make(text, len);
        while (rest.len > 0) {
            Slice line = slice_cut(&rest, '\n');
            if (line.len > 100)
                fail_msg("'orrery help %s': %.*s", commands_at(i)->name, SLICE_ARG(line));
        }
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_arena_setup, test_arena_teardown)
        TEST(every_command_explains_itself),     TEST(every_option_is_named_once_and_explained),
        TEST(choices_are_of_options_that_exist), TEST(manual_page_has_only_macros_that_it_means),
        TEST(help_is_no_wider_than_a_screen),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
