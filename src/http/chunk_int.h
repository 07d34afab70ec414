/* chunk_int.h - the body of a request that comes in chunks, decoded as it arrives.
 *
 *     body    = chunk* last trailer* CRLF
 *     chunk   = size [ ";" extension ] CRLF bytes CRLF     size: 1 to 16 hexadecimal digits
 *     last    = "0" [ ";" extension ] CRLF
 *     trailer = name ":" value CRLF
 *
 * Nothing else is accepted: no "0x", no sign, no space around a size, no line that ends in LF
 * alone. If one reader accepts what another refuses, a request can be smuggled past a proxy.
 * Extensions and trailers are read and discarded; they have a bound, because a client could send
 * them for ever.
 *
 * Threads    Pure functions.
 */
#pragma once

#include "base/error.h"

/* Extensions and trailers of one body together. */
#define CHUNK_EXTRA_BYTES_MAX ((size_t)8 << 10)

typedef enum ChunkState {
    CHUNK_SIZE,      /* the digits */
    CHUNK_EXTENSION, /* after ';' */
    CHUNK_SIZE_LF,
    CHUNK_BYTES,
    CHUNK_BYTES_CR,
    CHUNK_BYTES_LF,
    CHUNK_TRAILER,       /* at the start of a line: a trailer or the end */
    CHUNK_TRAILER_NAME,  /* after its first character */
    CHUNK_TRAILER_VALUE, /* after ':' */
    CHUNK_TRAILER_LF,
    CHUNK_END_LF,
    CHUNK_DONE,
} ChunkState;

/* All zero is the start of a body. */
typedef struct ChunkDecoder {
    ChunkState state;
    unsigned digits; /* of the size, so far */
    uint64_t left;   /* bytes of the chunk that are still to come */
    size_t decoded;  /* bytes of the body, so far */
    size_t extra;    /* bytes of extensions and trailers, so far */
} ChunkDecoder;

/* Decodes in place what follows the bytes that were decoded before. '*len' becomes the number of
 * decoded bytes; if the body is complete (CHUNK_DONE), the '*rest' bytes after it are moved to
 * directly after them. STATUS_TOO_LARGE as soon as a chunk says that the body exceeds 'bytes_max'.
 */
MUST_USE Status chunk_decode(ChunkDecoder *decoder, size_t bytes_max, char *bytes, size_t *len,
                             size_t *rest, Error *err);
