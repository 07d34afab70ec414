/* command.c - see command.h. */
#include "cli/command.h"

#include "base/slice.h"

#include <string.h>

enum { TEXT_WIDTH = 88, WORD_COLUMNS = 12 };

static void print_paragraphs(const char *text, FILE *to)
{
    Slice rest = slice_from_cstr(text);
    while (rest.ptr != NULL) {
        arguments_print_wrapped(slice_cut(&rest, '\n'), 0, TEXT_WIDTH, to);
    }
    (void)fprintf(to, "\n");
}

static void print_words(const Command *command, FILE *to)
{
    CommandWord word;
    const char *heading = NULL;
    for (size_t i = 0; command->word != NULL && command->word(i, &word); i++) {
        if (heading == NULL || strcmp(word.heading, heading) != 0)
            (void)fprintf(to, "%s%s:\n", heading == NULL ? "" : "\n", word.heading);
        heading = word.heading;
        (void)fprintf(to, "  %-*s ", WORD_COLUMNS, word.word);
        arguments_print_wrapped(slice_from_cstr(word.help), WORD_COLUMNS + 3, TEXT_WIDTH, to);
    }
    if (heading != NULL)
        (void)fprintf(to, "\n");
}

void command_print_help(const Command *command, FILE *to)
{
    Slice usage = slice_from_cstr(command->usage);
    for (const char *left = "Usage:"; usage.ptr != NULL; left = "      ") {
        Slice line = slice_cut(&usage, '\n');
        (void)fprintf(to, "%s orrery %.*s\n", left, SLICE_ARG(line));
    }
    (void)fprintf(to, "\n");
    print_paragraphs(command->about, to);
    print_words(command, to);
    if (command->options != NULL) {
        arguments_print_help(command->options, to);
        (void)fprintf(to, "\n");
    }
    if (command->notes != NULL)
        print_paragraphs(command->notes, to);
    Slice examples = command->examples == NULL ? SLICE_EMPTY : slice_from_cstr(command->examples);
    if (examples.len > 0)
        (void)fprintf(to, "Examples:\n");
    while (examples.len > 0) {
        Slice line = slice_cut(&examples, '\n');
        (void)fprintf(to, "  %.*s\n", SLICE_ARG(line));
    }
}
