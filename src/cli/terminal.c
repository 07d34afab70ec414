/* terminal.c - see terminal.h. */
#include "cli/terminal.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* The alternate screen without a cursor, and back. */
#define BEGIN SLICE("\033[?1049h\033[?25l\033[2J")
#define END   SLICE("\033[0m\033[?25h\033[?1049l")

void terminal_write(const Terminal *terminal, Slice text)
{
    (void)terminal;
    while (text.len > 0) {
        ssize_t written = write(STDOUT_FILENO, text.ptr, text.len);
        if (written < 0 && errno != EINTR)
            return; /* the terminal has gone; a signal reports it as well */
        text = slice_from(text, written > 0 ? (size_t)written : 0);
    }
}

bool terminal_size(uint32_t *width, uint32_t *height)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        return false;
    *width = size.ws_col;
    *height = size.ws_row;
    return true;
}

static void begin_screen(Terminal *terminal)
{
    if (terminal->has_keys) {
        struct termios raw = terminal->before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* Ctrl-C stays a signal */
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw); /* if it fails, keys arrive line by line */
    }
    terminal_write(terminal, BEGIN);
}

static void end_screen(Terminal *terminal)
{
    terminal_write(terminal, END);
    if (terminal->has_keys)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal->before); /* nothing more can be done */
}

Status terminal_open(Terminal *terminal, Error *err)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
    *terminal = (Terminal){.signal_fd = -1};
    sigset_t signals;
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        (void)sigaddset(&signals, numbers[i]);
    (void)sigprocmask(SIG_BLOCK, &signals, &terminal->signals_before);
    terminal->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (terminal->signal_fd < 0) {
        int code = errno;
        (void)sigprocmask(SIG_SETMASK, &terminal->signals_before, NULL);
        return error_set_errno(err, code, "cannot make a signalfd");
    }
    terminal->has_keys = tcgetattr(STDIN_FILENO, &terminal->before) == 0;
    terminal->is_open = true;
    begin_screen(terminal);
    return STATUS_OK;
}

void terminal_close(Terminal *terminal)
{
    if (!terminal->is_open)
        return;
    end_screen(terminal);
    (void)close(terminal->signal_fd);
    (void)sigprocmask(SIG_SETMASK, &terminal->signals_before, NULL);
    terminal->is_open = false;
}

/* Ctrl-Z: the shell gets its screen back, and we get ours when we are resumed. */
static void suspend(Terminal *terminal)
{
    end_screen(terminal);
    (void)raise(SIGSTOP);
    begin_screen(terminal);
}

static TerminalEvent read_signal(Terminal *terminal)
{
    struct signalfd_siginfo info;
    if (read(terminal->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return TERMINAL_NOTHING;
    if (info.ssi_signo == SIGTSTP)
        suspend(terminal);
    return info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH ? TERMINAL_REDRAW : TERMINAL_END;
}

TerminalEvent terminal_wait(Terminal *terminal, uint32_t timeout_ms, char *key)
{
    ASSERT(terminal->is_open);
    struct pollfd fds[] = {
        {.fd = terminal->signal_fd, .events = POLLIN},
        {.fd = terminal->has_keys ? STDIN_FILENO : -1, .events = POLLIN},
    };
    if (poll(fds, ARRAY_COUNT(fds), (int)timeout_ms) <= 0)
        return TERMINAL_NOTHING;
    if (fds[0].revents != 0)
        return read_signal(terminal);
    if (read(STDIN_FILENO, key, 1) == 1)
        return TERMINAL_KEY;
    return TERMINAL_END; /* the terminal was closed */
}
