/* buf.c - see buf.h. */
#include "base/buf.h"

#include "base/array.h"
#include "base/encoding.h"

#include <stdarg.h>
#include <stdio.h>

void buf_init(Buf *buf, size_t bytes_max)
{
    *buf = (Buf){.bytes_max = bytes_max};
}

void buf_reset(Buf *buf)
{
    buf->len = 0;
    buf->full = false;
}

void buf_done(Buf *buf)
{
    mem_free(buf->ptr);
    *buf = (Buf){.bytes_max = buf->bytes_max};
}

bool buf_grow(Buf *buf, size_t extra)
{
    if (buf->full || extra > buf->bytes_max || buf->len > buf->bytes_max - extra) {
        buf->full = true;
        return false;
    }
    size_t wanted = buf->len + extra;
    ASSERT(wanted <= buf->bytes_max); /* I2 */
    size_t capacity = array_capacity_for(buf->capacity < 64 ? 64 : buf->capacity, wanted);
    if (capacity > buf->bytes_max)
        capacity = buf->bytes_max;
    ASSERT(capacity >= wanted);
    buf->ptr = mem_realloc(buf->ptr, capacity);
    buf->capacity = capacity;
    return true;
}

void buf_u64(Buf *buf, uint64_t value)
{
    char digits[U64_TEXT_MAX];
    buf_bytes(buf, digits, u64_print(value, digits));
}

void buf_i64(Buf *buf, int64_t value)
{
    if (value < 0)
        buf_byte(buf, '-');
    buf_u64(buf, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void buf_format(Buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char small[512];
    int len = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    ASSERT(len >= 0);
    if ((size_t)len < sizeof(small)) {
        buf_bytes(buf, small, (size_t)len);
        return;
    }
    if (!buf_reserve(buf, (size_t)len))
        return;
    /* Not in place: vsnprintf wants room for its terminator, which the buffer need not have. */
    AUTO(mem_free) void *large = mem_alloc((size_t)len + 1);
    va_start(args, format);
    (void)vsnprintf(large, (size_t)len + 1, format, args);
    va_end(args);
    buf_bytes(buf, large, (size_t)len);
}
