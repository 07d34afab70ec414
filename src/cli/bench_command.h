/* bench_command.h - `orrery bench`: measures a server of the protocol. */
#pragma once

/* Returns the exit code: 0 all requests succeeded, 1 some did not or it failed, 2 wrong usage.
 * 'environment' is a list like environ. */
int bench_main(int argc, char *const *argv, char *const *environment);
