/* sql_text_int.h - characters of UTF-8 text: reading, counting, case.
 *
 * The language counts UTF-16 code units (LENGTH, SUBSTRING, locations of errors), since the
 * service's strings are made of them; ours are UTF-8. A position inside a surrogate pair exists
 * only in that other world, and what is cut there becomes U+FFFD, as it does on the service's wire.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"

#include <locale.h>

#define TEXT_INVALID     ((uint32_t)-1)
#define TEXT_REPLACEMENT ((uint32_t)0xFFFD)
#define TEXT_CHAR_BYTES  4

/* The character at '*at', which moves past it; TEXT_INVALID for a byte that starts none. */
uint32_t text_next(Slice text, size_t *at);

/* Writes up to TEXT_CHAR_BYTES and returns how many. */
size_t text_put(char *out, uint32_t c);

/* Length in UTF-16 code units. */
size_t text_units(Slice text);

/* The part from unit 'start' on, 'count' units long, both clipped to the text. */
Slice text_sub(Arena *arena, Slice text, size_t start, size_t count);

bool text_is_space(uint32_t c);
bool text_is_letter(uint32_t c); /* of an identifier; also '_' */

/* Case by the C library's Unicode tables, one character to one, independent of any language. */
typedef enum TextCase { TEXT_UPPER, TEXT_LOWER } TextCase;
Slice text_case(Arena *arena, locale_t locale, TextCase to, Slice text);

/* Position of 'needle' at or after byte 'from', or SIZE_MAX. */
size_t text_find(Slice text, Slice needle, size_t from);
