/* command.h - what a command is called, does and takes: the source of its help, of the manual page
 * and of the completion.
 *
 * Every command defines one Command, and commands.def has a row for it. Texts are wrapped where
 * they are shown: a paragraph is one line, and an empty line separates paragraphs.
 */
#pragma once

#include "cli/arguments.h"

#include <stdio.h>

typedef int CommandMain(int argc, char *const *argv, char *const *environment);

/* A word that a command takes, such as the name of an action. */
typedef struct CommandWord {
    const char *heading; /* of a list of words; the same text for all words of a list */
    const char *word;
    const char *help;
} CommandWord;

typedef struct Command {
    const char *name;
    const char *summary;          /* a few words, for the list of commands */
    const char *usage;            /* what follows "orrery "; a line for each form */
    const char *about;            /* paragraphs before the options */
    const ArgumentTable *options; /* NULL if it has none */
    /* The word at 'index'; false after the last one. NULL if there are none. A function, since the
     * words may come from another layer. */
    bool (*word)(size_t index, CommandWord *out);
    const char *operands; /* what follows the options, for completion: "FILE", words with
                           * "|" between them, or NULL for the words of the first list */
    const char *notes;    /* paragraphs after the options; NULL if there are none */
    const char *examples; /* lines to type; NULL if there are none */
    CommandMain *main;    /* takes the arguments after the name of the command */
} Command;

void command_print_help(const Command *command, FILE *to);
