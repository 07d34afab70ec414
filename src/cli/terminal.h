/* terminal.h - a screen to draw on, and its events: keys, a new size, a signal to stop.
 *
 * While it is open the terminal shows its alternate screen, without a cursor, and keys arrive one
 * by one. Signals do not end the program, they are events, so terminal_close can always restore the
 * terminal (I6), except after SIGKILL.
 *
 * Threads    Main thread only. Threads that are started while it is open inherit the blocked
 * signals.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#include <signal.h>
#include <termios.h>

typedef struct Terminal {
    bool is_open;
    bool has_keys;         /* standard input is a terminal */
    struct termios before; /* the settings to restore */
    sigset_t signals_before;
    int signal_fd; /* readable when a signal is pending */
} Terminal;

typedef enum TerminalEvent {
    TERMINAL_NOTHING, /* the timeout has passed */
    TERMINAL_KEY,
    TERMINAL_REDRAW, /* the size has changed, or the program was resumed */
    TERMINAL_END,    /* a signal asks to end */
} TerminalEvent;

MUST_USE Status terminal_open(Terminal *terminal, Error *err);
void terminal_close(Terminal *terminal); /* does nothing if it is not open */

TerminalEvent terminal_wait(Terminal *terminal, uint32_t timeout_ms, char *key);
void terminal_write(const Terminal *terminal, Slice text);

/* The size of standard output; false if that is not a terminal. */
bool terminal_size(uint32_t *width, uint32_t *height);
