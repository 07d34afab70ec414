/* script_worker.h - the process in which scripts run: the command "script-worker".
 *
 * Not for people. The pool starts it with a socket as SCRIPT_WORKER_FD, see script_frame_int.h for
 * what is said on it. It ends when the socket is closed.
 */
#pragma once

enum { SCRIPT_WORKER_FD = 3 };

/* Returns the exit status. */
int script_worker_main(void);
