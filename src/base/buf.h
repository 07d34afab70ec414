/* buf.h - bytes that grow, up to a size given when the buffer is made.
 *
 * Appending beyond the largest size does not fail at once: the buffer remembers that it is full
 * and drops what does not fit, and the writer asks buf_full() once at the end. That keeps
 * printers free of a check per byte.
 *
 * Ownership  A Buf owns its memory until buf_done. A slice of it is valid until the next append.
 * Threads    Belongs to one thread at a time.
 */
#pragma once

#include "base/defs.h"
#include "base/slice.h"

typedef struct Buf {
    char *ptr;
    size_t len;
    size_t capacity;
    size_t bytes_max;
    bool full; /* something did not fit */
} Buf;

void buf_init(Buf *buf, size_t bytes_max);
void buf_reset(Buf *buf); /* empty again, keeps its memory */
void buf_done(Buf *buf);
DEFINE_AUTO_VALUE(Buf, buf_done)

/* For the inline functions only: makes room for 'extra' more bytes, or marks the buffer full. */
bool buf_grow(Buf *buf, size_t extra);

static inline bool buf_reserve(Buf *buf, size_t extra)
{
    return LIKELY(buf->capacity - buf->len >= extra && !buf->full) || buf_grow(buf, extra);
}

static inline void buf_byte(Buf *buf, uint8_t byte)
{
    if (buf_reserve(buf, 1))
        buf->ptr[buf->len++] = (char)byte;
}

static inline void buf_bytes(Buf *buf, const void *bytes, size_t len)
{
    if (len > 0 && buf_reserve(buf, len)) {
        memcpy(buf->ptr + buf->len, bytes, len);
        buf->len += len;
    }
}

static inline void buf_slice(Buf *buf, Slice s)
{
    buf_bytes(buf, s.ptr, s.len);
}

void buf_u64(Buf *buf, uint64_t value); /* decimal text */
void buf_i64(Buf *buf, int64_t value);  /* decimal text */
void buf_format(Buf *buf, const char *format, ...) PRINTF_LIKE(2, 3);

static inline bool buf_full(const Buf *buf)
{
    return buf->full;
}

static inline Slice buf_view(const Buf *buf)
{
    return slice_make(buf->ptr, buf->len);
}
