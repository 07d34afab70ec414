/* completion.h - commands, options and their values for the completion of a shell, from
 * commands.def and the tables of the commands. */
#pragma once

#include <stdio.h>

/* A script for bash, which defines and registers a function. It needs no other package. */
void completion_print_bash(FILE *to);

/* An option that takes one of a few words; the name is that of the same option of every command. */
typedef struct CompletionChoice {
    const char *option; /* without "--" */
    const char *words;  /* with spaces between them */
} CompletionChoice;

extern const CompletionChoice COMPLETION_CHOICES[];
extern const size_t COMPLETION_CHOICE_COUNT;
