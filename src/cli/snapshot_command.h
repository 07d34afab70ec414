/* snapshot_command.h - `orrery snapshot`: saves states of databases on a server, and restores them.
 */
#pragma once

/* 'argv' are the arguments after the command. Returns the exit code. */
int snapshot_main(int argc, char *const *argv, char *const *environment);
