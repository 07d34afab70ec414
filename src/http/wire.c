/* wire.c - see wire_int.h. */
#include "http/wire_int.h"

/* Whether a byte of the word is below 0x20. */
static bool has_control(uint64_t word)
{
    const uint64_t ones = ~(uint64_t)0 / 255;
    return ((word - ones * 0x20) & ~word & (ones * 0x80)) != 0;
}

/* A value comes from the handler and may hold what a client chose. A line end in it would let that
 * client add headers or a whole answer, so control characters become spaces (I8). */
static char *put_value(char *at, Slice value)
{
    char *end = wire_put(at, value);
    size_t i = 0;
    bool is_clean = true;
    for (; i + sizeof(uint64_t) <= value.len && is_clean; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, at + i, sizeof(word));
        is_clean = !has_control(word);
    }
    if (!is_clean)
        i = 0;
    for (; i < value.len; i++)
        if ((unsigned char)at[i] < 0x20)
            at[i] = ' ';
    return end;
}

char *wire_put_headers(char *at, const HttpHeader *headers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        at = wire_put(at, headers[i].name);
        *at++ = ':';
        *at++ = ' ';
        at = put_value(at, headers[i].value);
        *at++ = '\r';
        *at++ = '\n';
    }
    return at;
}

size_t wire_headers_size(const HttpHeader *headers, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += headers[i].name.len + headers[i].value.len + 4;
    return size;
}
