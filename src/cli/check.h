/* check.h - `orrery check`: reads a data folder from end to end and says whether it is whole. */
#pragma once

/* Returns the exit code: 0 everything agrees, 1 something does not or could not be read, 2 wrong
 * usage. 'environment' is a list like environ. */
int check_main(int argc, char *const *argv, char *const *environment);
