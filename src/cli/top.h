/* top.h - `orrery top`: what the partitions of a container are asked for, live in a terminal. */
#pragma once

/* Returns the exit code: 0 ended as told, 1 the server could not be asked, 2 wrong usage.
 * 'environment' is a list like environ. */
int top_main(int argc, char *const *argv, char *const *environment);
