/* backup.h - `orrery backup`: copies the data of a server, running or not, into a folder of
 * backups.
 */
#pragma once

/* Returns the exit code: 0 the backup is complete, 1 it is not, 2 wrong usage. 'environment' is a
 * list like environ. */
int backup_main(int argc, char *const *argv, char *const *environment);
