/* compression_fuzz.c - any bytes as gzip or zstd: text or damage, never more than was asked for. */
#include "transfer/compression.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Slice in = slice_make(data, size);
    Compression kind = compression_of_bytes(in);
    if (kind == COMPRESSION_NONE)
        return 0;
    AUTO(decompressor_free) Decompressor *stream = decompressor_new(kind);
    AUTO(buf_done) Buf out;
    buf_init(&out, 1 << 20);
    for (int i = 0; i < 100 && in.len > 0; i++) {
        Error err;
        if (decompressor_feed(stream, &in, 1000, &out, &err) != STATUS_OK) {
            ASSERT(err.status == STATUS_BAD_REQUEST);
            return 0;
        }
        ASSERT(out.len <= 1000);
        buf_reset(&out);
    }
    return 0;
}
