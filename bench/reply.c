/* reply.c - see reply.h. */
#include "bench/reply.h"

void reply_init(Reply *reply, bool keep_body)
{
    *reply = (Reply){.keep_body = keep_body};
    buf_init(&reply->head, REPLY_HEAD_BYTES_MAX);
    buf_init(&reply->body, REPLY_BODY_BYTES_MAX);
}

void reply_reset(Reply *reply)
{
    buf_reset(&reply->head);
    buf_reset(&reply->body);
    reply->is_head_complete = false;
    reply->status = 0;
    reply->body_len = 0;
    reply->body_seen = 0;
    reply->is_close = false;
    reply->continuation = SLICE_EMPTY;
    reply->etag = SLICE_EMPTY;
}

void reply_done(Reply *reply)
{
    buf_done(&reply->head);
    buf_done(&reply->body);
}

static Slice cut_line(Slice *rest)
{
    Slice line = slice_cut(rest, '\n');
    if (slice_ends_with(line, SLICE("\r")))
        line.len--;
    return line;
}

static Status read_status_line(Reply *reply, Slice line, Error *err)
{
    Slice rest = line;
    Slice version = slice_cut(&rest, ' ');
    Slice number = slice_cut(&rest, ' ');
    uint64_t status = 0;
    if (!slice_equal(version, SLICE("HTTP/1.1")) || !slice_to_u64(number, &status) ||
        status < 200 || status > 599)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected 'HTTP/1.1' and a final status, found '%.*s'",
                         SLICE_CUT(line, 100));
    reply->status = (int)status;
    return STATUS_OK;
}

static Status read_header(Reply *reply, Slice line, bool *has_length, Error *err)
{
    Slice value = line;
    Slice name = slice_cut(&value, ':');
    value = slice_trim(value);
    if (slice_equal_nocase(name, SLICE("content-length"))) {
        if (!slice_to_u64(value, &reply->body_len) || reply->body_len > REPLY_BODY_BYTES_MAX)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "expected a Content-Length of at most %zu, found '%.*s'",
                             REPLY_BODY_BYTES_MAX, SLICE_CUT(value, 100));
        *has_length = true;
    } else if (slice_equal_nocase(name, SLICE("connection"))) {
        reply->is_close = slice_equal_nocase(value, SLICE("close"));
    } else if (slice_equal_nocase(name, SLICE("x-ms-continuation"))) {
        reply->continuation = value;
    } else if (slice_equal_nocase(name, SLICE("etag"))) {
        reply->etag = value;
    }
    return STATUS_OK;
}

static Status read_head(Reply *reply, Error *err)
{
    Slice rest = buf_view(&reply->head);
    bool has_length = false;
    TRY(read_status_line(reply, cut_line(&rest), err));
    for (Slice line = cut_line(&rest); line.len > 0; line = cut_line(&rest))
        TRY(read_header(reply, line, &has_length, err));
    bool is_bodiless = reply->status == 204 || reply->status == 304;
    if (is_bodiless)
        reply->body_len = 0;
    if (!is_bodiless && !has_length)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected an answer with Content-Length, found none");
    return STATUS_OK;
}

/* Appends bytes to the head as far as it goes, and returns how many those were. */
static size_t take_head(Reply *reply, Slice bytes)
{
    /* The empty line may have begun in the bytes before. */
    size_t old_len = reply->head.len;
    size_t from = old_len < 3 ? 0 : old_len - 3;
    buf_slice(&reply->head, bytes);
    Slice head = buf_view(&reply->head);
    const char *end =
        head.len < from + 4 ? NULL : memmem(head.ptr + from, head.len - from, "\r\n\r\n", 4);
    if (end == NULL)
        return bytes.len;
    reply->head.len = (size_t)(end - head.ptr) + 4;
    reply->is_head_complete = true;
    return reply->head.len - old_len;
}

Status reply_feed(Reply *reply, Slice bytes, size_t *used, bool *complete, Error *err)
{
    size_t taken = 0;
    if (!reply->is_head_complete) {
        taken = take_head(reply, bytes);
        if (buf_full(&reply->head))
            return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                             "expected headers of at most %zu bytes", REPLY_HEAD_BYTES_MAX);
        if (reply->is_head_complete)
            TRY(read_head(reply, err));
    }
    if (reply->is_head_complete) {
        Slice part = slice_first(slice_from(bytes, taken), reply->body_len - reply->body_seen);
        if (reply->keep_body)
            buf_slice(&reply->body, part);
        reply->body_seen += part.len;
        taken += part.len;
    }
    *used = taken;
    *complete = reply->is_head_complete && reply->body_seen == reply->body_len;
    return STATUS_OK;
}
