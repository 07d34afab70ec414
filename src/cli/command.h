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

typedef struct Command {
    const char *name;
    const char *summary;          /* a few words, for the list of commands */
    const char *usage;            /* what follows "orrery "; a line for each form */
    const char *about;            /* paragraphs before the options */
    const ArgumentTable *options; /* NULL if it has none */
    const char *operands;         /* what follows the options, for completion: "FILE", words with
                                   * "|" between them, or NULL */
    const char *notes;            /* paragraphs after the options; NULL if there are none */
    const char *examples;         /* lines to type; NULL if there are none */
    CommandMain *main;            /* takes the arguments after the name of the command */
} Command;

void command_print_help(const Command *command, FILE *to);
