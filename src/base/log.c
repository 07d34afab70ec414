/* log.c - see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *const NAMES[] = {"error", "warn", "info", "debug"};

bool log_level_parse(Slice name, LogLevel *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(NAMES); i++) {
        if (slice_equal(name, slice_from_cstr(NAMES[i]))) {
            *out = (LogLevel)i;
            return true;
        }
    }
    return false;
}

void log_write(const Log *log, LogLevel level, const char *event, const char *format, ...)
{
    uint64_t now_us = clock_wall_us(log->clock);
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm tm;
    if (gmtime_r(&seconds, &tm) == NULL)
        return;
    char line[1024];
    size_t used = strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%S", &tm);
    used += (size_t)snprintf(line + used, sizeof(line) - used, ".%03uZ %-5s %s ",
                             (unsigned)(now_us / 1000 % 1000), NAMES[level], event);
    ASSERT(used + 2 < sizeof(line)); /* names of events are short */
    va_list args;
    va_start(args, format);
    int len = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
    va_end(args);
    size_t room = sizeof(line) - used - 2;
    size_t fields = len < 0 ? 0 : ((size_t)len < room ? (size_t)len : room);
    /* I4: what a client sent may hold line breaks, and must not be able to forge a line. */
    for (size_t i = used; i < used + fields; i++) {
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    }
    line[used + fields] = '\n';
    ssize_t written = write(log->fd, line, used + fields + 1);
    (void)written; /* a failure to log cannot be logged */
}
