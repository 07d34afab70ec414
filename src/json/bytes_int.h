/* bytes_int.h - copies short strings without a call.
 *
 * Names and most strings are so short that a call of memcpy costs more than the copy. Two loads
 * that overlap cover any length from one to twice their width without a loop.
 */
#pragma once

#include "base/slice.h"

static inline void copy_bytes(void *to, const void *from, size_t len)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    if (UNLIKELY(len > 32)) {
        memcpy(out, in, len);
    } else if (len >= 16) {
        memcpy(out, in, 16);
        memcpy(out + len - 16, in + len - 16, 16);
    } else if (len >= 8) {
        memcpy(out, in, 8);
        memcpy(out + len - 8, in + len - 8, 8);
    } else if (len >= 4) {
        memcpy(out, in, 4);
        memcpy(out + len - 4, in + len - 4, 4);
    } else if (len > 0) {
        out[0] = in[0];
        out[len / 2] = in[len / 2];
        out[len - 1] = in[len - 1];
    }
}
