/* chunk.c - see chunk_int.h. */
#include "http/chunk_int.h"

#include <string.h>

enum { SIZE_DIGITS_MAX = 16 };

/* Of the name of a trailer (RFC 9110, section 5.6.2). */
static bool is_token_char(char c)
{
    char lower = (char)(c | 0x20);
    if ((lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9'))
        return true;
    return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

/* Of its value (section 5.5): everything but control characters; a tab counts as a space. */
static bool is_field_char(char c)
{
    return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

static Status malformed(Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The chunks of the request's body are not well-formed.");
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* A size is complete. Bytes follow, unless it is that of the last chunk. */
static Status end_size(ChunkDecoder *decoder, size_t bytes_max, Error *err)
{
    if (decoder->left > bytes_max - decoder->decoded)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "The body of the request is larger than %zu bytes.", bytes_max);
    decoder->state = decoder->left > 0 ? CHUNK_BYTES : CHUNK_TRAILER;
    decoder->digits = 0;
    return STATUS_OK;
}

static Status read_size(ChunkDecoder *decoder, char c, Error *err)
{
    int digit = hex_digit(c);
    if (digit >= 0 && decoder->digits < SIZE_DIGITS_MAX) {
        decoder->left = decoder->left << 4 | (uint64_t)digit;
        decoder->digits++;
        return STATUS_OK;
    }
    if (decoder->digits == 0 || (c != ';' && c != '\r'))
        return malformed(err);
    decoder->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
    return STATUS_OK;
}

/* A byte of an extension or a trailer's value, or the end of its line. */
static Status read_extra(ChunkDecoder *decoder, char c, ChunkState after, Error *err)
{
    if (c == '\r')
        decoder->state = after;
    else if (!is_field_char(c))
        return malformed(err);
    return STATUS_OK;
}

static Status read_trailer_name(ChunkDecoder *decoder, char c, Error *err)
{
    if (c == ':' && decoder->state == CHUNK_TRAILER_NAME)
        decoder->state = CHUNK_TRAILER_VALUE;
    else if (is_token_char(c))
        decoder->state = CHUNK_TRAILER_NAME;
    else if (c == '\r' && decoder->state == CHUNK_TRAILER)
        decoder->state = CHUNK_END_LF;
    else
        return malformed(err);
    return STATUS_OK;
}

static Status expect(ChunkDecoder *decoder, char c, char expected, ChunkState next, Error *err)
{
    if (c != expected)
        return malformed(err);
    decoder->state = next;
    return STATUS_OK;
}

/* One byte of anything except the bytes of a chunk. */
static Status step(ChunkDecoder *decoder, size_t bytes_max, char c, Error *err)
{
    switch (decoder->state) {
    case CHUNK_SIZE:
        return read_size(decoder, c, err);
    case CHUNK_EXTENSION:
        decoder->extra++;
        return read_extra(decoder, c, CHUNK_SIZE_LF, err);
    case CHUNK_SIZE_LF:
        return c == '\n' ? end_size(decoder, bytes_max, err) : malformed(err);
    case CHUNK_BYTES_CR:
        return expect(decoder, c, '\r', CHUNK_BYTES_LF, err);
    case CHUNK_BYTES_LF:
        return expect(decoder, c, '\n', CHUNK_SIZE, err);
    case CHUNK_TRAILER:
    case CHUNK_TRAILER_NAME:
        decoder->extra++;
        return read_trailer_name(decoder, c, err);
    case CHUNK_TRAILER_VALUE:
        decoder->extra++;
        return read_extra(decoder, c, CHUNK_TRAILER_LF, err);
    case CHUNK_TRAILER_LF:
        return expect(decoder, c, '\n', CHUNK_TRAILER, err);
    case CHUNK_END_LF:
        return expect(decoder, c, '\n', CHUNK_DONE, err);
    case CHUNK_BYTES:
    case CHUNK_DONE:
        break;
    }
    return malformed(err);
}

/* Moves bytes of the current chunk to the end of the decoded ones; returns how many. */
static size_t take_bytes(ChunkDecoder *decoder, char *to, const char *from, size_t len)
{
    size_t take = decoder->left < len ? (size_t)decoder->left : len;
    if (to != from)
        memmove(to, from, take);
    decoder->left -= take;
    decoder->decoded += take;
    if (decoder->left == 0)
        decoder->state = CHUNK_BYTES_CR;
    return take;
}

Status chunk_decode(ChunkDecoder *decoder, size_t bytes_max, char *bytes, size_t *len, size_t *rest,
                    Error *err)
{
    ASSERT(decoder->decoded <= bytes_max);
    size_t at = 0;
    size_t out = 0;
    while (at < *len && decoder->state != CHUNK_DONE) {
        if (decoder->state == CHUNK_BYTES) {
            size_t taken = take_bytes(decoder, bytes + out, bytes + at, *len - at);
            at += taken;
            out += taken;
            continue;
        }
        TRY(step(decoder, bytes_max, bytes[at++], err));
        if (decoder->extra > CHUNK_EXTRA_BYTES_MAX)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "The extensions and trailers of the request's chunks are longer than "
                             "%zu bytes.",
                             CHUNK_EXTRA_BYTES_MAX);
    }
    *rest = *len - at;
    if (*rest > 0 && out != at)
        memmove(bytes + out, bytes + at, *rest);
    *len = out;
    return STATUS_OK;
}
