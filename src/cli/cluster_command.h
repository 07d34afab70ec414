/* cluster_command.h - `orrery cluster`: makes the secret of a cluster, and tells its nodes what to
 * do. */
#pragma once

/* 'argv' are the arguments after the command. Returns the exit code. */
int cluster_main(int argc, char *const *argv, char *const *environment);
