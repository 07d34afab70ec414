/* head_fuzz.c - no bytes make the head's parser read elsewhere or contradict itself. */
#include "base/mem.h"
#include "http/chunk_int.h"
#include "http/head_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decodes the body whole, and a copy of it byte by byte: both must come to the same. */
static void decode_body(char *bytes, size_t len)
{
    enum { BYTES_MAX = 4096 };
    ChunkDecoder whole = {0};
    ChunkDecoder split = {0};
    Error err;
    char *copy = mem_copy(bytes, len);
    size_t decoded = len;
    size_t rest = 0;
    Status status = chunk_decode(&whole, BYTES_MAX, bytes, &decoded, &rest, &err);
    Status split_status = STATUS_OK;
    size_t at = 0;
    while (at < len && split_status == STATUS_OK && split.state != CHUNK_DONE) {
        size_t one = 1;
        size_t before = split.decoded;
        size_t none = 0;
        split_status = chunk_decode(&split, BYTES_MAX, copy + at, &one, &none, &err);
        if (split_status == STATUS_OK && one > 0)
            copy[before] = copy[at];
        at++;
    }
    ASSERT(status == split_status);
    if (status == STATUS_OK) {
        ASSERT(decoded == whole.decoded);
        ASSERT(decoded <= BYTES_MAX);
        ASSERT(decoded + rest <= len);
        ASSERT(whole.state == split.state);
        ASSERT(split.decoded == decoded);
        ASSERT(whole.state == CHUNK_DONE || rest == 0);
        ASSERT(whole.state != CHUNK_DONE || rest == len - at);
        ASSERT(decoded == 0 || memcmp(bytes, copy, decoded) == 0);
        ASSERT(whole.extra <= CHUNK_EXTRA_BYTES_MAX);
    }
    mem_free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const HeadLimits limits = {
        .header_bytes_max = 4096, .body_bytes_max = 1 << 20, .headers_max = HTTP_HEADERS_MAX};
    char *bytes = mem_copy(data, size);
    HttpHeader headers[HTTP_NODE_HEADERS_MAX];
    Head head;
    Error err;
    bool is_complete = false;
    if (head_parse(bytes, size, 0, &limits, headers, &head, &is_complete, &err) == STATUS_OK &&
        is_complete) {
        ASSERT(head.len <= size);
        ASSERT(head.method.len > 0);
        ASSERT(head.path.len > 0);
        ASSERT(head.authority.len > 0 || head.is_http10);
        ASSERT(!head.is_chunked || head.content_length == 0);
        for (size_t i = 0; i < head.header_count; i++) {
            ASSERT(headers[i].name.ptr >= bytes);
            ASSERT(!slice_starts_with(headers[i].name, SLICE(HTTP_NODE_HEADER_PREFIX)));
            ASSERT(headers[i].value.ptr + headers[i].value.len <= bytes + head.len);
        }
        if (head.is_chunked)
            decode_body(bytes + head.len, size - head.len);
    }
    mem_free(bytes);
    char *body = mem_copy(data, size);
    decode_body(body, size);
    mem_free(body);
    return 0;
}
