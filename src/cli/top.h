/* top.h - `orrery top`: shows live in a terminal how much the partitions of a container are used.
 */
#pragma once

/* Returns the exit code: 0 ended as told, 1 the server could not be asked, 2 wrong usage.
 * 'environment' is a list like environ. */
int top_main(int argc, char *const *argv, char *const *environment);
