/* error.h - how a function says that it failed, and why.
 *
 * A function that can fail returns Status and fills the caller's Error, which is never NULL. The
 * place that knows says it, once, with error_set(); callers pass it on with TRY(). Kinds and
 * reasons are rows of status.def.
 */
#pragma once

#include "base/defs.h"

typedef enum Status {
#define STATUS_ROW(name, http, code, meaning, advice) STATUS_##name,
#include "base/status.def"
    STATUS_COUNT
} Status;

typedef enum SubStatus {
#define SUB_ROW(name, kind, number, meaning, advice) SUB_##name,
#include "base/status.def"
    SUB_COUNT
} SubStatus;

typedef struct Error {
    Status status;           /* the kind: what the caller can do about it */
    SubStatus sub;           /* the exact reason, where the protocol has a number for it */
    uint32_t retry_after_ms; /* for STATUS_THROTTLED */
    uint32_t number;         /* that a script has chosen, in place of the reason's; 0 if none */
    char message[512];       /* inline, so that reporting a failure cannot itself fail */
} Error;

/* Fills '*err' and returns 'status', so that a failure is one line: return error_set(...). The
 * message says what was expected and what was found; client text in it is cut with SLICE_CUT. */
MUST_USE Status error_set(Error *err, Status status, SubStatus sub, const char *format, ...)
    PRINTF_LIKE(4, 5);

/* STATUS_IO with the system's own words for 'code' (an errno) after the message. */
MUST_USE Status error_set_errno(Error *err, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Puts "context: " in front of the message and returns the status unchanged. */
MUST_USE Status error_context(Error *err, const char *format, ...) PRINTF_LIKE(2, 3);

int status_http(Status status);         /* 404 */
const char *status_code(Status status); /* "NotFound" */
int sub_number(SubStatus sub);          /* 1003; 0 for SUB_NONE */

#define TRY(call)                           \
    do {                                    \
        Status status_ = (call);            \
        if (UNLIKELY(status_ != STATUS_OK)) \
            return status_;                 \
    } while (0)
