/* gzip.c - see gzip_int.h. Level 1 and small tables: most bodies are a few KB, and clearing the
 * usual tables would take as long as compressing them. */
#include "http/gzip_int.h"

enum { LEVEL = 1, WINDOW_BITS_GZIP = 15 + 16, MEMORY_LEVEL = 6 };

bool gzip_compress(Gzip *gzip, Slice body, Arena *arena, Slice *out)
{
    if (!gzip->is_open && deflateInit2(&gzip->stream, LEVEL, Z_DEFLATED, WINDOW_BITS_GZIP,
                                       MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    gzip->is_open = true;
    if (body.len > UINT32_MAX || deflateReset(&gzip->stream) != Z_OK)
        return false;
    /* Less room than the body has: a result that does not fit is not worth sending. */
    size_t size = body.len - body.len / 16;
    char *bytes = arena_alloc(arena, size);
    z_stream *stream = &gzip->stream;
    stream->next_in = (const Bytef *)body.ptr;
    stream->avail_in = (uInt)body.len;
    stream->next_out = (Bytef *)bytes;
    stream->avail_out = (uInt)size;
    if (deflate(stream, Z_FINISH) != Z_STREAM_END)
        return false;
    *out = slice_make(bytes, size - stream->avail_out);
    return true;
}

void gzip_done(Gzip *gzip)
{
    if (gzip->is_open)
        (void)deflateEnd(&gzip->stream); /* reports only that unfinished work was dropped */
    gzip->is_open = false;
}
