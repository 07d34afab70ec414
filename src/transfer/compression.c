/* compression.c - see compression.h. The only file that knows zlib's and zstd's streams. */
#include "transfer/compression.h"

#include "base/mem.h"

#include <zlib.h>
#include <zstd.h>

enum {
    GZIP_WINDOW = 15 + 16, /* the largest window, with gzip's header */
    GZIP_LEVEL = 6,
    ZSTD_LEVEL = 3,
    ZSTD_WINDOW_LOG_MAX = 27, /* 128 MB: a file cannot make us take more */
    PIECE_BYTES = 64 << 10,
};

struct Decompressor {
    Compression kind;
    bool is_inside; /* a member or frame has begun and not ended */
    z_stream gzip;
    ZSTD_DStream *zstd;
};

struct Compressor {
    Compression kind;
    bool is_open; /* something was written since the last end */
    z_stream gzip;
    ZSTD_CStream *zstd;
};

Compression compression_of_bytes(Slice first)
{
    if (slice_starts_with(first, SLICE("\x1f\x8b")))
        return COMPRESSION_GZIP;
    if (slice_starts_with(first, SLICE("\x28\xb5\x2f\xfd")))
        return COMPRESSION_ZSTD;
    return COMPRESSION_NONE;
}

Compression compression_of_name(Slice path)
{
    if (slice_ends_with(path, SLICE(".gz")))
        return COMPRESSION_GZIP;
    if (slice_ends_with(path, SLICE(".zst")))
        return COMPRESSION_ZSTD;
    return COMPRESSION_NONE;
}

Slice compression_strip(Slice path)
{
    if (slice_ends_with(path, SLICE(".gz")))
        return slice_first(path, path.len - 3);
    if (slice_ends_with(path, SLICE(".zst")))
        return slice_first(path, path.len - 4);
    return path;
}

/* ---- reading ---- */

Decompressor *decompressor_new(Compression kind)
{
    ASSERT(kind != COMPRESSION_NONE);
    Decompressor *stream = MEM_NEW(Decompressor);
    stream->kind = kind;
    if (kind == COMPRESSION_GZIP) {
        int failed = inflateInit2(&stream->gzip, GZIP_WINDOW);
        ASSERT(failed == Z_OK); /* otherwise there is no memory */
    } else {
        stream->zstd = ZSTD_createDStream();
        ASSERT(stream->zstd != NULL);
        size_t failed =
            ZSTD_DCtx_setParameter(stream->zstd, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX);
        ASSERT(ZSTD_isError(failed) == 0);
    }
    return stream;
}

void decompressor_free(Decompressor *stream)
{
    if (stream == NULL)
        return;
    if (stream->kind == COMPRESSION_GZIP)
        (void)inflateEnd(&stream->gzip); /* fails on misuse only */
    (void)ZSTD_freeDStream(stream->zstd);
    mem_free(stream);
}

static Status inflate_piece(Decompressor *stream, Slice *in, char *piece, size_t size, size_t *made,
                            Error *err)
{
    z_stream *z = &stream->gzip;
    z->next_in = (Bytef *)UNCONST(char, in->ptr);
    z->avail_in = in->len > UINT32_MAX ? UINT32_MAX : (uInt)in->len;
    z->next_out = (Bytef *)piece;
    z->avail_out = (uInt)size;
    uInt before = z->avail_in;
    stream->is_inside = true;
    int result = inflate(z, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the gzip data is damaged%s%s",
                         z->msg == NULL ? "" : ": ", z->msg == NULL ? "" : z->msg);
    *in = slice_from(*in, before - z->avail_in);
    *made = size - z->avail_out;
    if (result == Z_STREAM_END) {
        stream->is_inside = false;
        (void)inflateReset(z); /* another member may follow; fails on misuse only */
    }
    return STATUS_OK;
}

static Status unzstd_piece(Decompressor *stream, Slice *in, char *piece, size_t size, size_t *made,
                           Error *err)
{
    ZSTD_inBuffer from = {.src = in->ptr, .size = in->len};
    ZSTD_outBuffer to = {.dst = piece, .size = size};
    size_t result = ZSTD_decompressStream(stream->zstd, &to, &from);
    if (ZSTD_isError(result) != 0)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "the zstd data is damaged: %s",
                         ZSTD_getErrorName(result));
    *in = slice_from(*in, from.pos);
    *made = to.pos;
    stream->is_inside = result != 0;
    return STATUS_OK;
}

Status decompressor_feed(Decompressor *stream, Slice *in, size_t bytes_max, Buf *out, Error *err)
{
    char piece[PIECE_BYTES];
    size_t total = 0;
    while (total < bytes_max) {
        size_t size = bytes_max - total < sizeof(piece) ? bytes_max - total : sizeof(piece);
        size_t made = 0;
        size_t before = in->len;
        /* Without input there may still be output inside the stream, but only of a member or frame
         * that has not ended. */
        if (in->len == 0 && !stream->is_inside)
            break;
        if (stream->kind == COMPRESSION_GZIP)
            TRY(inflate_piece(stream, in, piece, size, &made, err));
        else
            TRY(unzstd_piece(stream, in, piece, size, &made, err));
        buf_bytes(out, piece, made);
        total += made;
        if (made == 0 && in->len == before)
            break;
    }
    return STATUS_OK;
}

bool decompressor_is_whole(const Decompressor *stream)
{
    return !stream->is_inside;
}

/* ---- writing ---- */

Compressor *compressor_new(Compression kind)
{
    ASSERT(kind != COMPRESSION_NONE);
    Compressor *stream = MEM_NEW(Compressor);
    stream->kind = kind;
    if (kind == COMPRESSION_GZIP) {
        int failed =
            deflateInit2(&stream->gzip, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY);
        ASSERT(failed == Z_OK); /* otherwise there is no memory */
    } else {
        stream->zstd = ZSTD_createCStream();
        ASSERT(stream->zstd != NULL);
        size_t failed = ZSTD_CCtx_setParameter(stream->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
        ASSERT(ZSTD_isError(failed) == 0);
    }
    return stream;
}

void compressor_free(Compressor *stream)
{
    if (stream == NULL)
        return;
    if (stream->kind == COMPRESSION_GZIP)
        (void)deflateEnd(
            &stream->gzip); /* says that a member is open, which is the caller's matter */
    (void)ZSTD_freeCStream(stream->zstd);
    mem_free(stream);
}

static void deflate_all(Compressor *stream, Slice bytes, bool is_end, Buf *out)
{
    char piece[PIECE_BYTES];
    z_stream *z = &stream->gzip;
    do {
        if (z->avail_in == 0) {
            uInt size = bytes.len > PIECE_BYTES ? PIECE_BYTES : (uInt)bytes.len;
            z->next_in = (Bytef *)UNCONST(char, bytes.ptr);
            z->avail_in = size;
            bytes = slice_from(bytes, size);
        }
        bool is_last = is_end && bytes.len == 0;
        z->next_out = (Bytef *)piece;
        z->avail_out = sizeof(piece);
        int result = deflate(z, is_last ? Z_FINISH : Z_NO_FLUSH);
        ASSERT(result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR);
        buf_bytes(out, piece, sizeof(piece) - z->avail_out);
        if (is_last && result == Z_STREAM_END)
            break;
    } while (is_end || bytes.len > 0 || z->avail_in > 0);
}

static void zstd_all(Compressor *stream, Slice bytes, bool is_end, Buf *out)
{
    char piece[PIECE_BYTES];
    ZSTD_inBuffer from = {.src = bytes.ptr, .size = bytes.len};
    size_t left = 0;
    do {
        ZSTD_outBuffer to = {.dst = piece, .size = sizeof(piece)};
        left =
            ZSTD_compressStream2(stream->zstd, &to, &from, is_end ? ZSTD_e_end : ZSTD_e_continue);
        ASSERT(ZSTD_isError(left) == 0); /* otherwise there is no memory */
        buf_bytes(out, piece, to.pos);
    } while (from.pos < from.size || (is_end && left > 0));
}

void compressor_write(Compressor *stream, Slice bytes, Buf *out)
{
    if (bytes.len == 0)
        return;
    stream->is_open = true;
    if (stream->kind == COMPRESSION_GZIP)
        deflate_all(stream, bytes, false, out);
    else
        zstd_all(stream, bytes, false, out);
}

void compressor_end(Compressor *stream, Buf *out)
{
    if (!stream->is_open)
        return;
    stream->is_open = false;
    if (stream->kind == COMPRESSION_GZIP) {
        deflate_all(stream, SLICE_EMPTY, true, out);
        (void)deflateReset(&stream->gzip); /* fails on misuse only */
    } else {
        zstd_all(stream, SLICE_EMPTY, true, out);
    }
}
