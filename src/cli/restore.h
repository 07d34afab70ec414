/* restore.h - `orrery restore`: makes a data folder of a backup. */
#pragma once

/* Returns the exit code: 0 the folder is complete, 1 it is not, 2 wrong usage. 'environment'
 * is not used: all commands are called in the same way. */
int restore_main(int argc, char *const *argv, char *const *environment);
