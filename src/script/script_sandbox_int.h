/* script_sandbox_int.h - takes from a worker process what a script must not have.
 *
 * After sandbox_enter the process can use its memory, its threads, the clock and the files that are
 * open, and nothing else: opening a file, a socket, a process or another process's memory fails
 * with EPERM. There is no way back.
 */
#pragma once

#include "base/error.h"

/* Closes all files from 'first_closed_fd' on. The process is ended when its parent ends, its
 * priority is lowered, and the system prefers it when memory is short. To be called first. */
void sandbox_prepare(int first_closed_fd);

/* For all threads. STATUS_UNAVAILABLE if the system has no such filters. */
MUST_USE Status sandbox_enter(Error *err);
