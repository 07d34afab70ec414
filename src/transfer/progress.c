/* progress.c - see progress.h. */
#include "transfer/progress.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    TERMINAL_EVERY_MS = 200,
    LINES_EVERY_MS = 10000,
    BAR_WIDTH = 20,
    WIDTH_DEFAULT = 100,
    WIDTH_MAX = 200,
    SILENT_SHOWN_US = 3000000, /* a server that is silent for less is only busy */
};

void progress_init(Progress *progress, bool is_quiet, uint64_t now_us)
{
    *progress = (Progress){
        .is_terminal = isatty(STDERR_FILENO) != 0,
        .is_quiet = is_quiet,
        .begun_us = now_us,
        .shown_us = now_us,
    };
}

void progress_print_count(uint64_t count, Buf *out)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)count);
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf_byte(out, ',');
        buf_byte(out, (uint8_t)digits[i]);
    }
}

static double fraction_of(const ProgressNow *now)
{
    if (now->total == 0)
        return 0;
    double fraction = (double)now->done / (double)now->total;
    return fraction > 1 ? 1 : fraction;
}

static void print_bar(double fraction, Buf *out)
{
    int filled = (int)(fraction * BAR_WIDTH);
    buf_byte(out, '[');
    for (int i = 0; i < BAR_WIDTH; i++)
        buf_byte(out, (uint8_t)(i < filled ? '=' : i == filled ? '>' : ' '));
    buf_format(out, "] %3d%%  ", (int)(fraction * 100));
}

static void print_left(const Progress *progress, double fraction, uint64_t now_us, Buf *out)
{
    uint64_t passed_us = now_us - progress->begun_us;
    if (fraction <= 0 || passed_us < 1000000)
        return;
    double left = (double)passed_us / 1e6 * (1 - fraction) / fraction;
    uint64_t s = left > 359999 ? 359999 : (uint64_t)left;
    if (s >= 3600)
        buf_format(out, "  %llu:%02llu:%02llu left", (unsigned long long)(s / 3600),
                   (unsigned long long)(s / 60 % 60), (unsigned long long)(s % 60));
    else
        buf_format(out, "  %llu:%02llu left", (unsigned long long)(s / 60),
                   (unsigned long long)(s % 60));
}

static void print_counted(uint64_t count, const char *what, Buf *out)
{
    if (count == 0)
        return;
    buf_slice(out, SLICE("  "));
    progress_print_count(count, out);
    buf_format(out, " %s", what);
}

void progress_print(const Progress *progress, const ProgressNow *now, uint64_t now_us, size_t width,
                    Buf *out)
{
    size_t begin = out->len;
    double fraction = fraction_of(now);
    if (now->total > 0)
        print_bar(fraction, out);
    progress_print_count(now->items, out);
    buf_slice(out, SLICE(" items  "));
    progress_print_count((uint64_t)progress->items_per_s, out);
    buf_slice(out, SLICE("/s  "));
    progress_print_count((uint64_t)progress->ru_per_s, out);
    buf_slice(out, SLICE(" RU/s"));
    print_counted(now->throttled, "throttled", out);
    print_counted(now->rejected, "rejected", out);
    if (now->silent_us >= SILENT_SHOWN_US)
        buf_format(out, "  no answer for %llu s", (unsigned long long)(now->silent_us / 1000000));
    else
        print_left(progress, fraction, now_us, out);
    if (out->len - begin > width)
        out->len = begin + width;
}

static size_t terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDTH_DEFAULT;
    return size.ws_col > WIDTH_MAX ? WIDTH_MAX : size.ws_col;
}

/* The rate since the last time, smoothed unless it is the first one. */
static double smooth(double before, double amount, uint64_t us)
{
    double rate = amount * 1e6 / (double)us;
    return before == 0 ? rate : before + (rate - before) / 4;
}

void progress_show(Progress *progress, const ProgressNow *now, uint64_t now_us)
{
    uint64_t passed_us = now_us - progress->shown_us;
    uint64_t every_ms = progress->is_terminal ? TERMINAL_EVERY_MS : LINES_EVERY_MS;
    if (progress->is_quiet || passed_us < every_ms * 1000)
        return;
    progress->items_per_s =
        smooth(progress->items_per_s, (double)(now->items - progress->before.items), passed_us);
    progress->ru_per_s = smooth(progress->ru_per_s, now->ru - progress->before.ru, passed_us);
    progress->before = *now;
    progress->shown_us = now_us;
    AUTO(buf_done) Buf text;
    buf_init(&text, 1024);
    size_t width = progress->is_terminal ? terminal_width() - 1 : WIDTH_MAX;
    progress_print(progress, now, now_us, width, &text);
    if (progress->is_terminal)
        (void)fprintf(stderr, "\r%.*s\033[K", SLICE_ARG(buf_view(&text)));
    else
        (void)fprintf(stderr, "%.*s\n", SLICE_ARG(buf_view(&text)));
    (void)fflush(stderr); /* if nobody can see it, nothing is lost */
    progress->has_line = progress->is_terminal;
}

void progress_clear(Progress *progress)
{
    if (progress->has_line)
        (void)fprintf(stderr, "\r\033[K");
    progress->has_line = false;
}
