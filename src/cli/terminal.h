/* terminal.h - a screen to draw on, and what happens there: keys, a new size, the wish to stop.
 *
 * While it is open the terminal shows a screen of its own, without a cursor, and keys arrive one by
 * one. However the program ends, short of being killed outright, terminal_close puts everything
 * back: signals do not end it, they are events.
 *
 * Threads    The main thread's, and there is no other.
 */
#pragma once

#include "base/error.h"
#include "base/slice.h"

#include <signal.h>
#include <termios.h>

typedef struct Terminal {
    bool is_open;
    bool has_keys;         /* standard input is a terminal */
    struct termios before; /* how it was */
    sigset_t signals_before;
    int signal_fd; /* becomes readable when a signal waits */
} Terminal;

typedef enum TerminalEvent {
    TERMINAL_NOTHING, /* the time is over */
    TERMINAL_KEY,
    TERMINAL_REDRAW, /* the size has changed, or the screen is ours again */
    TERMINAL_END,    /* asked to end by a signal */
} TerminalEvent;

MUST_USE Status terminal_open(Terminal *terminal, Error *err);
void terminal_close(Terminal *terminal); /* also if it is not open */

TerminalEvent terminal_wait(Terminal *terminal, uint32_t timeout_ms, char *key);
void terminal_write(const Terminal *terminal, Slice text);

/* Of standard output; false if it is no terminal. */
bool terminal_size(uint32_t *width, uint32_t *height);
