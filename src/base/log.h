/* log.h - one line per event: time, level, event name, fields.
 *
 *     2026-11-15T05:48:55.123Z info  server.ready endpoint=http://127.0.0.1:8081/ took_ms=14
 *
 * 'error' means a person should act, 'warn' that we went on with less, 'info' the life of the
 * process, 'debug' each request. Never keys, tokens or documents. Layers below api return errors
 * instead of logging; background jobs log because they have no caller.
 *
 * Threads    Any thread may log; a line is one write(2), so lines never mix.
 */
#pragma once

#include "base/clock.h"
#include "base/defs.h"
#include "base/slice.h"

typedef enum LogLevel { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG } LogLevel;

typedef struct Log {
    int fd;
    LogLevel level;
    const Clock *clock;
} Log;

bool log_level_parse(Slice name, LogLevel *out);
void log_write(const Log *log, LogLevel level, const char *event, const char *format, ...)
    PRINTF_LIKE(4, 5);

#define LOG_AT(log, at, event, ...)                       \
    do {                                                  \
        if ((log)->level >= (at))                         \
            log_write((log), (at), (event), __VA_ARGS__); \
    } while (0)
#define LOG_ERROR(log, event, ...) LOG_AT(log, LOG_LEVEL_ERROR, event, __VA_ARGS__)
#define LOG_WARN(log, event, ...)  LOG_AT(log, LOG_LEVEL_WARN, event, __VA_ARGS__)
#define LOG_INFO(log, event, ...)  LOG_AT(log, LOG_LEVEL_INFO, event, __VA_ARGS__)
#define LOG_DEBUG(log, event, ...) LOG_AT(log, LOG_LEVEL_DEBUG, event, __VA_ARGS__)
