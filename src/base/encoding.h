/* encoding.h - bytes as text and numbers as bytes: base64, hex, percent, big-endian.
 *
 * Decoders accept what the protocol's clients send and nothing else; each returns
 * whether the input was well formed.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/slice.h"

/* Base64 with the standard alphabet and padding. The url-like variant of resource ids differs in
 * one character, '-' for '/'. */
typedef enum Base64 { BASE64_STANDARD, BASE64_RID } Base64;

#define BASE64_LEN(bytes) (((bytes) + 2) / 3 * 4)
void base64_encode(Base64 variant, const void *bytes, size_t len, char *out); /* BASE64_LEN(len) */

/* Decodes into 'out', which has room for 'size' bytes. False if the text is not strict, padded
 * base64 or does not fit. */
bool base64_decode(Base64 variant, Slice text, void *out, size_t size, size_t *len);

/* Upper-case hexadecimal, two characters a byte. */
void hex_encode(const void *bytes, size_t len, char *out);

/* The 16 bytes of two big-endian numbers as 8-4-4-4-12 lower-case hexadecimal characters. */
#define GUID_LEN 36
void guid_print(uint64_t high, uint64_t low, char out[GUID_LEN]);

bool hex_decode(Slice text, void *out, size_t size, size_t *len);

/* %XX to bytes; '+' stays '+'. A '%' without two hex digits makes it fail. When nothing is
 * encoded the input itself is returned. */
bool percent_decode(Arena *arena, Slice text, Slice *out);

/* Everything but letters, digits and the characters of 'keep' becomes %XX. */
Slice percent_encode(Arena *arena, Slice text, Slice keep);

/* A number in decimal digits; returns how many. */
#define U64_TEXT_MAX 20
size_t u64_print(uint64_t value, char out[U64_TEXT_MAX]);

/* Fixed-width integers in memcmp order, as keys need them. */
static inline void be32_put(void *out, uint32_t value)
{
    value = __builtin_bswap32(value);
    memcpy(out, &value, sizeof(value));
}

static inline uint32_t be32_get(const void *in)
{
    uint32_t value;
    memcpy(&value, in, sizeof(value));
    return __builtin_bswap32(value);
}

static inline void be64_put(void *out, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(out, &value, sizeof(value));
}

static inline uint64_t be64_get(const void *in)
{
    uint64_t value;
    memcpy(&value, in, sizeof(value));
    return __builtin_bswap64(value);
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "the functions above assume a little-endian CPU");
