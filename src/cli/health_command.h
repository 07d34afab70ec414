/* health_command.h - `orrery health`: asks a server whether it takes requests. */
#pragma once

/* Returns the exit code: 0 it does, 1 it does not or cannot be reached, 2 wrong usage.
 * 'environment' is a list like environ. */
int health_main(int argc, char *const *argv, char *const *environment);
