/* help_command.h - `orrery help`: the list of commands, the help of one, the manual page and the
 * completion; and `orrery version`. */
#pragma once

#include <stdio.h>

void help_print_commands(FILE *to);

/* These return the exit code: 0, 1 if the text could not be written, or 2 for wrong usage.
 * 'environment' is not used. */
int help_main(int argc, char *const *argv, char *const *environment);
int version_main(int argc, char *const *argv, char *const *environment);
