/* compression.h - gzip and zstd, as streams.
 *
 * What is read is recognised by its first bytes, whatever its name is. A file may hold several
 * members (gzip) or frames (zstd) one after the other: they read as one text, so a writer may end
 * one at any time and the file up to there is whole.
 *
 * Ownership  The caller frees what it has made.
 * Threads    A stream belongs to one thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

typedef enum Compression { COMPRESSION_NONE, COMPRESSION_GZIP, COMPRESSION_ZSTD } Compression;

/* How many bytes of a file decide what it is. */
#define COMPRESSION_MAGIC_BYTES 4

Compression compression_of_bytes(Slice first);
Compression compression_of_name(Slice path); /* ".gz", ".zst" */

/* The name without such a suffix. */
Slice compression_strip(Slice path);

typedef struct Decompressor Decompressor;

Decompressor *decompressor_new(Compression kind); /* not COMPRESSION_NONE */
void decompressor_free(Decompressor *stream);     /* accepts NULL */
DEFINE_AUTO(Decompressor *, decompressor_free)

/* Takes bytes from the front of '*in' and appends what they mean to 'out', until '*in' is empty or
 * 'bytes_max' bytes were appended. STATUS_BAD_REQUEST if it is damaged. */
MUST_USE Status decompressor_feed(Decompressor *stream, Slice *in, size_t bytes_max, Buf *out,
                                  Error *err);

/* True if the input may end here: not in the middle of a member or frame. */
bool decompressor_is_whole(const Decompressor *stream);

typedef struct Compressor Compressor;

Compressor *compressor_new(Compression kind); /* not COMPRESSION_NONE */
void compressor_free(Compressor *stream);     /* accepts NULL */
DEFINE_AUTO(Compressor *, compressor_free)

void compressor_write(Compressor *stream, Slice bytes, Buf *out);

/* Ends the member or frame, if one is open; the next write begins another. */
void compressor_end(Compressor *stream, Buf *out);
