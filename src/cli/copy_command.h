/* copy_command.h - `orrery copy`: copies a container to another one, while it is written to. */
#pragma once

/* Returns the exit code: 0 the copy has everything, 1 some items were rejected or it failed, 2
 * wrong usage. 'environment' is a list like environ. */
int copy_main(int argc, char *const *argv, char *const *environment);
