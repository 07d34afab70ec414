/* error.c - see error.h. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

Status error_set(Error *err, Status status, SubStatus sub, const char *format, ...)
{
    ASSERT(status != STATUS_OK);
    err->status = status;
    err->sub = sub;
    err->retry_after_ms = 0;
    err->number = 0;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    return status;
}

Status error_set_errno(Error *err, int code, const char *format, ...)
{
    err->status = STATUS_IO;
    err->sub = SUB_NONE;
    err->retry_after_ms = 0;
    err->number = 0;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    size_t used = strlen(err->message);
    /* The GNU strerror_r returns the text, which need not be in the buffer. */
    char text[128];
    (void)snprintf(err->message + used, sizeof(err->message) - used, ": %s",
                   strerror_r(code, text, sizeof(text)));
    return STATUS_IO;
}

Status error_context(Error *err, const char *format, ...)
{
    ASSERT(err->status != STATUS_OK);
    char old[sizeof(err->message)];
    memcpy(old, err->message, sizeof(old));
    va_list args;
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    size_t used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof(err->message) - used, ": %s", old);
    return err->status;
}

int status_http(Status status)
{
    static const int numbers[] = {
#define STATUS_ROW(name, http, code, meaning, advice) [STATUS_##name] = (http),
#include "base/status.def"
    };
    ASSERT(status < STATUS_COUNT);
    return numbers[status];
}

const char *status_code(Status status)
{
    static const char *const codes[] = {
#define STATUS_ROW(name, http, code, meaning, advice) [STATUS_##name] = (code),
#include "base/status.def"
    };
    ASSERT(status < STATUS_COUNT);
    return codes[status];
}

int sub_number(SubStatus sub)
{
    static const int numbers[] = {
#define SUB_ROW(name, kind, number, meaning, advice) [SUB_##name] = (number),
#include "base/status.def"
    };
    ASSERT(sub < SUB_COUNT);
    return numbers[sub];
}
