/* reply_fuzz.c - no answer makes the parser read elsewhere, grow without bound, or depend on the
 * pieces in which it comes. */
#include "base/mem.h"
#include "load/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct Outcome {
    Status status;
    bool complete;
    size_t used; /* of all bytes */
} Outcome;

/* Feeds pieces of that size; an answer that is over takes nothing more. Bytes are copied, so that a
 * sanitizer sees the end of each piece. */
static Outcome feed(Reply *reply, const uint8_t *data, size_t size, size_t piece)
{
    Outcome outcome = {.status = STATUS_OK};
    while (outcome.used < size && !outcome.complete) {
        size_t len = size - outcome.used < piece ? size - outcome.used : piece;
        AUTO(mem_free) void *copy = mem_copy(data + outcome.used, len);
        size_t used = 0;
        Error err;
        outcome.status = reply_feed(reply, slice_make(copy, len), &used, &outcome.complete, &err);
        if (outcome.status != STATUS_OK)
            return outcome;
        ASSERT(used <= len);
        ASSERT(used == len || outcome.complete);
        outcome.used += used;
    }
    return outcome;
}

static void check_bounds(const Reply *reply, const Outcome *outcome)
{
    ASSERT(reply->head.len <= REPLY_HEAD_BYTES_MAX);
    ASSERT(reply->body.len <= REPLY_BODY_BYTES_MAX);
    ASSERT(reply->chunk_extra <= REPLY_CHUNK_EXTRA_MAX + 1);
    ASSERT(reply->milli_ru <= REPLY_MILLI_RU_MAX + 999);
    if (!outcome->complete)
        return;
    ASSERT(reply->status >= 200 && reply->status <= 599);
    ASSERT(reply->body.len == reply->body_len);
    const Slice tokens[] = {reply->continuation, reply->etag};
    for (size_t i = 0; i < ARRAY_COUNT(tokens); i++) {
        ASSERT(tokens[i].len == 0 ||
               (tokens[i].ptr >= reply->head.ptr &&
                tokens[i].ptr + tokens[i].len <= reply->head.ptr + reply->head.len));
        ASSERT(tokens[i].len == 0 || memchr(tokens[i].ptr, '\r', tokens[i].len) == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 7, SIZE_MAX};
    AUTO(reply_done) Reply first;
    reply_init(&first, true);
    Outcome expected = feed(&first, data, size, pieces[0]);
    check_bounds(&first, &expected);
    for (size_t i = 1; i < ARRAY_COUNT(pieces); i++) {
        AUTO(reply_done) Reply reply;
        reply_init(&reply, true);
        Outcome outcome = feed(&reply, data, size, pieces[i]);
        check_bounds(&reply, &outcome);
        ASSERT(outcome.status == expected.status);
        ASSERT(outcome.complete == expected.complete);
        if (!outcome.complete)
            continue;
        ASSERT(outcome.used == expected.used);
        ASSERT(reply.status == first.status);
        ASSERT(reply.milli_ru == first.milli_ru);
        ASSERT(slice_equal(buf_view(&reply.body), buf_view(&first.body)));
    }
    return 0;
}
