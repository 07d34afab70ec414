/* export_command.h - `orrery export`: writes the items of a container to a file. */
#pragma once

/* Returns the exit code: 0 everything was written, 1 it failed or was interrupted, 2 wrong usage.
 * 'environment' is a list like environ. */
int export_main(int argc, char *const *argv, char *const *environment);
