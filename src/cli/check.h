/* check.h - `orrery check`: reads a data folder completely and reports whether it is consistent. */
#pragma once

/* Returns the exit code: 0 everything agrees, 1 something does not or could not be read, 2 wrong
 * usage. 'environment' is a list like environ. */
int check_main(int argc, char *const *argv, char *const *environment);
