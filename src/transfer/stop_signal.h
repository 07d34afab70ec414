/* stop_signal.h - SIGINT and SIGTERM as a file descriptor, once.
 *
 * Also ignores SIGPIPE. The first signal makes the descriptor readable, so that a command can end
 * cleanly. After stop_signal_taken the next one ends the process at once, as if nothing had been
 * set up.
 *
 * Threads    Main thread only, before others are started: they inherit the blocked signals.
 */
#pragma once

#include "base/error.h"

MUST_USE Status stop_signal_open(int *fd, Error *err);
void stop_signal_taken(int fd);
