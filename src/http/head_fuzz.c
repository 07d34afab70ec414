/* head_fuzz.c - no bytes make the head's parser read elsewhere or contradict itself. */
#include "base/mem.h"
#include "http/h2o_int.h"
#include "http/head_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_body(char *bytes, size_t len)
{
    struct phr_chunked_decoder decoder = {.consume_trailer = 1};
    size_t decoded = len;
    ssize_t rest = phr_decode_chunked(&decoder, bytes, &decoded);
    ASSERT(rest >= -2);
    ASSERT(decoded <= len);
    ASSERT(rest < 0 || decoded + (size_t)rest <= len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const HeadLimits limits = {.header_bytes_max = 4096, .body_bytes_max = 1 << 20};
    char *bytes = mem_copy(data, size);
    HttpHeader headers[HTTP_HEADERS_MAX];
    Head head;
    Error err;
    bool is_complete = false;
    if (head_parse(bytes, size, 0, &limits, headers, &head, &is_complete, &err) == STATUS_OK &&
        is_complete) {
        ASSERT(head.len <= size);
        ASSERT(head.method.len > 0);
        ASSERT(head.path.len > 0);
        ASSERT(!head.is_chunked || head.content_length == 0);
        for (size_t i = 0; i < head.header_count; i++) {
            ASSERT(headers[i].name.ptr >= bytes);
            ASSERT(headers[i].value.ptr + headers[i].value.len <= bytes + head.len);
        }
        if (head.is_chunked)
            decode_body(bytes + head.len, size - head.len);
    }
    mem_free(bytes);
    return 0;
}
