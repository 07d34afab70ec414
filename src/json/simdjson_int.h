/* simdjson_int.h - what simdjson and the C++ library do for us, as C functions.
 *
 * This is the whole of the boundary: simdjson.cc is the only C++ file, and no exception leaves it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A parsed text as simdjson leaves it: one word for each value, name and end, the kind in the top
 * byte and the rest as follows; the first word is not a value.
 *     '"'       position in 'strings' of a length u32, followed by that many bytes
 *     'l' 'u'   an integer, signed or unsigned, in the next word
 *     'd'       a double in the next word
 *     't' 'f' 'n'
 *     '{' '['   begins an object or array
 *     '}' ']'   ends one
 *     'r'       after the last value */
typedef struct Tape {
    const uint64_t *words;
    const uint8_t *strings;
} Tape;

typedef enum TapeResult { TAPE_OK, TAPE_REFUSED, TAPE_NO_MEMORY } TapeResult;

/* Parses text; 'text' needs no padding. The tape lives until tape_release on the same thread, which
 * must be called after each tape_parse, whatever its result. */
TapeResult tape_parse(const char *text, size_t len, Tape *out);
void tape_release(void);

/* The shortest decimal digits that give 'value' back, which is finite, as "-d.ddde-xx". Returns
 * their number. */
#define DOUBLE_TEXT_MAX 32
size_t double_to_text(double value, char out[DOUBLE_TEXT_MAX]);

/* The double nearest to text of digits, a point and an exponent. Out of range is what is too large
 * for a double and also what is too small: the library does not say which. It takes words for
 * infinity too, which the caller has to exclude. */
typedef enum DoubleResult { DOUBLE_OK, DOUBLE_MALFORMED, DOUBLE_OUT_OF_RANGE } DoubleResult;
DoubleResult double_from_text(const char *text, size_t len, double *out);

#ifdef __cplusplus
}
#endif
