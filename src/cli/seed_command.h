/* seed_command.h - `orrery seed`: makes a server have what a file says. */
#pragma once

/* The exit code: 0 if the server is as the file says, 1 if not, 2 if it was called in a wrong way.
 */
int seed_main(int argc, char *const *argv, char *const *environment);
