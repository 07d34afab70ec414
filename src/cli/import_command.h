/* import_command.h - `orrery import`: writes the rows of files to a container. */
#pragma once

/* Returns the exit code: 0 all rows were written, 1 some were rejected or it failed, 2 wrong usage.
 * 'environment' is a list like environ. */
int import_main(int argc, char *const *argv, char *const *environment);
