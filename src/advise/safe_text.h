/* safe_text.h - text of unknown origin, made harmless for a terminal or a page.
 *
 * Names of properties, values of keys and texts of queries are chosen by others. For a terminal,
 * control characters and what could hide or reverse text are written as JSON escapes them; for
 * HTML, the characters that mean something there, too.
 */
#pragma once

#include "base/buf.h"

typedef enum SafeTextFor {
    SAFE_TEXT_ASCII, /* a terminal that shows ASCII only */
    SAFE_TEXT_UTF8,  /* a terminal that shows UTF-8 */
    SAFE_TEXT_HTML,
} SafeTextFor;

/* Appends at most 'width' characters, with "..." at the end if that is not all. Returns how many.
 * Bytes that are no UTF-8 are escaped. */
size_t safe_text(Slice text, size_t width, SafeTextFor target, Buf *out);

/* The first bytes of a text, not cut within a character. */
Slice safe_text_cut(Slice text, size_t bytes_max);
