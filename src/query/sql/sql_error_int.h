/* sql_error_int.h - errors of queries in the form in which the service words them. */
#pragma once

#include "base/error.h"
#include "base/slice.h"

/* A piece of the query's text, in bytes, end exclusive. */
typedef struct Span {
    uint32_t start;
    uint32_t end;
} Span;

/* How much of the client's text an error quotes. */
#define SQL_QUOTE_BYTES 80

static inline Slice span_text(Slice text, Span span)
{
    return slice_make(text.ptr + span.start, span.end - span.start);
}

static inline Span span_join(Span first, Span last)
{
    return (Span){first.start, last.end};
}

/* An error at 'span' of 'text': {"errors":[{"severity","location","code","message"}]}. */
MUST_USE Status sql_error(Error *err, Slice text, Span span, const char *code, const char *format,
                          ...) PRINTF_LIKE(5, 6);

/* The two forms without a place: a code that is a bare number, and no code at all. */
MUST_USE Status sql_error_number(Error *err, int code, const char *message);
MUST_USE Status sql_error_plain(Error *err, const char *format, ...) PRINTF_LIKE(2, 3);
