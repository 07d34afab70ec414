/* sql_error.c - see sql_error_int.h.
 *
 * An Error's message has room for 512 bytes, and a cut in the middle would leave JSON that no
 * client can parse. So only the inner text is cut, and the closing brackets always fit.
 */
#include "query/sql/sql_error_int.h"

#include "query/sql/sql_text_int.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT_BYTES = 320 };

typedef struct JsonText {
    char bytes[TEXT_BYTES];
    size_t len;
} JsonText;

static uint32_t units_before(Slice text, uint32_t offset);
static void escape(JsonText *out, Slice text);

Status sql_error(Error *err, Slice text, Span span, const char *code, const char *format, ...)
{
    char message[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);

    JsonText quoted;
    escape(&quoted, slice_from_cstr(message));
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "{\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":%u,\"end\":%u},"
                     "\"code\":\"%s\",\"message\":\"%.*s\"}]}",
                     units_before(text, span.start), units_before(text, span.end), code,
                     (int)quoted.len, quoted.bytes);
}

Status sql_error_number(Error *err, int code, const char *message)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "{\"errors\":[{\"severity\":\"Error\",\"code\":%d,\"message\":\"%s\"}]}", code,
                     message);
}

Status sql_error_plain(Error *err, const char *format, ...)
{
    char message[TEXT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);

    JsonText quoted;
    escape(&quoted, slice_from_cstr(message));
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "{\"Errors\":[\"%.*s\"]}", (int)quoted.len,
                     quoted.bytes);
}

static uint32_t units_before(Slice text, uint32_t offset)
{
    return (uint32_t)text_units(slice_first(text, offset));
}

/* Writes the inside of a JSON string. What vsnprintf cut in the middle of a character is dropped,
 * so that the answer stays valid UTF-8. */
static void escape(JsonText *out, Slice text)
{
    out->len = 0;
    size_t at = 0;
    while (at < text.len) {
        size_t start = at;
        uint32_t c = text_next(text, &at);
        char escaped[8];
        Slice piece = slice_make(text.ptr + start, at - start);
        if (c == TEXT_INVALID)
            continue;
        if (c == '"' || c == '\\')
            piece = slice_make(escaped, (size_t)snprintf(escaped, sizeof(escaped), "\\%c", (int)c));
        else if (c < 0x20)
            piece = slice_make(escaped, (size_t)snprintf(escaped, sizeof(escaped), "\\u%04x", c));
        if (out->len + piece.len > sizeof(out->bytes))
            return;
        memcpy(out->bytes + out->len, piece.ptr, piece.len);
        out->len += piece.len;
    }
}
