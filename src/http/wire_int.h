/* wire_int.h - prints the parts of a head: of an answer to a client, of a request to another node.
 *
 * Each function writes at 'at', where the caller has made room, and returns where it ended.
 *
 * Threads    Pure functions.
 */
#pragma once

#include "base/encoding.h"
#include "http/http.h"

static inline char *wire_put(char *at, Slice text)
{
    if (text.len > 0)
        memcpy(at, text.ptr, text.len);
    return at + text.len;
}

static inline char *wire_put_number(char *at, uint64_t number)
{
    return at + u64_print(number, at);
}

/* "name: value" CR LF each. Control characters in a value are sent as spaces (I8). */
char *wire_put_headers(char *at, const HttpHeader *headers, size_t count);

/* The bytes that wire_put_headers writes. */
size_t wire_headers_size(const HttpHeader *headers, size_t count);
