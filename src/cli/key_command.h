/* key_command.h - `orrery key`: shows and changes the keys of the account. */
#pragma once

/* The arguments after "key"; returns the exit code. */
int key_main(int argc, char *const *argv, char *const *environment);
