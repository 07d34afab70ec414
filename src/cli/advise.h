/* advise.h - `orrery advise`: which partition key a container should have. */
#pragma once

/* Returns the exit code: 0 advice was given, or the key of --check is acceptable; 1 that key is not
 * acceptable; 2 wrong usage, or the input could not be read. 'environment' is a list like environ.
 */
int advise_main(int argc, char *const *argv, char *const *environment);
