/* reply.c - see reply.h. */
#include "load/reply.h"

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
    reply->state = REPLY_HEAD;
    reply->status = 0;
    reply->body_len = 0;
    reply->left = 0;
    reply->chunk_digits = 0;
    reply->chunk_extra = 0;
    reply->is_close = false;
    reply->milli_ru = 0;
    reply->retry_after_ms = 0;
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

/* "12.34" in thousandths. What is no such number counts as 0: a server may leave it out, too. */
static uint64_t to_milli(Slice text)
{
    Slice fraction = text;
    uint64_t whole = 0;
    if (!slice_to_u64(slice_cut(&fraction, '.'), &whole) || whole > REPLY_MILLI_RU_MAX / 1000)
        return 0;
    uint64_t milli = whole * 1000;
    uint64_t unit = 100;
    for (size_t i = 0; i < fraction.len && unit > 0; i++, unit /= 10) {
        if (fraction.ptr[i] < '0' || fraction.ptr[i] > '9')
            return 0;
        milli += unit * (uint64_t)(fraction.ptr[i] - '0');
    }
    return milli;
}

/* It will stand in a header of the next request. */
static Status check_token(Slice value, Error *err)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "expected no control characters in x-ms-continuation or etag");
    }
    return STATUS_OK;
}

/* What the headers say about the body. */
typedef struct Framing {
    bool has_length;
    bool is_chunked;
} Framing;

static Status read_length(Reply *reply, Slice value, Framing *framing, Error *err)
{
    uint64_t len = 0;
    if (!slice_to_u64(value, &len) || len > REPLY_BODY_BYTES_MAX ||
        (framing->has_length && len != reply->body_len))
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected a Content-Length of at most %zu, found '%.*s'",
                         REPLY_BODY_BYTES_MAX, SLICE_CUT(value, 100));
    reply->body_len = len;
    framing->has_length = true;
    return STATUS_OK;
}

static Status read_header(Reply *reply, Slice line, Framing *framing, Error *err)
{
    Slice value = line;
    Slice name = slice_cut(&value, ':');
    value = slice_trim(value);
    uint64_t number = 0;
    switch (name.len) { /* most headers are none of these, and are told by their length */
    case 4:
        if (slice_equal_nocase(name, SLICE("etag"))) {
            TRY(check_token(value, err));
            reply->etag = value;
        }
        break;
    case 10:
        if (slice_equal_nocase(name, SLICE("connection")))
            reply->is_close = slice_equal_nocase(value, SLICE("close"));
        break;
    case 14:
        if (slice_equal_nocase(name, SLICE("content-length")))
            return read_length(reply, value, framing, err);
        break;
    case 17:
        if (slice_equal_nocase(name, SLICE("x-ms-continuation"))) {
            TRY(check_token(value, err));
            reply->continuation = value;
        } else if (slice_equal_nocase(name, SLICE("transfer-encoding"))) {
            if (!slice_equal_nocase(value, SLICE("chunked")))
                return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                                 "expected a Transfer-Encoding of 'chunked', found '%.*s'",
                                 SLICE_CUT(value, 100));
            framing->is_chunked = true;
        }
        break;
    case 19:
        if (slice_equal_nocase(name, SLICE("x-ms-request-charge")))
            reply->milli_ru = to_milli(value);
        else if (slice_equal_nocase(name, SLICE("x-ms-retry-after-ms")) &&
                 slice_to_u64(value, &number))
            reply->retry_after_ms = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
        break;
    default:
        break;
    }
    return STATUS_OK;
}

static Status read_head(Reply *reply, Error *err)
{
    Slice rest = buf_view(&reply->head);
    Framing framing = {0};
    TRY(read_status_line(reply, cut_line(&rest), err));
    for (Slice line = cut_line(&rest); line.len > 0; line = cut_line(&rest))
        TRY(read_header(reply, line, &framing, err));
    if (framing.has_length && framing.is_chunked)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected Content-Length or chunks, found both");
    bool is_bodiless = reply->status == 204 || reply->status == 304;
    if (is_bodiless)
        reply->body_len = 0;
    else if (!framing.has_length && !framing.is_chunked)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "expected an answer with Content-Length or chunks, found neither");
    reply->left = reply->body_len;
    if (!is_bodiless && framing.is_chunked)
        reply->state = REPLY_CHUNK_SIZE;
    else
        reply->state = reply->left > 0 ? REPLY_BODY : REPLY_DONE;
    return STATUS_OK;
}

/* Appends bytes to the head as far as it goes, and says in '*used' how many those were. */
static Status take_head(Reply *reply, Slice bytes, size_t *used, Error *err)
{
    /* The empty line may have begun in the bytes before. */
    size_t old_len = reply->head.len;
    size_t from = old_len < 3 ? 0 : old_len - 3;
    buf_slice(&reply->head, slice_first(bytes, REPLY_HEAD_BYTES_MAX - old_len));
    Slice head = buf_view(&reply->head);
    const char *end =
        head.len < from + 4 ? NULL : memmem(head.ptr + from, head.len - from, "\r\n\r\n", 4);
    if (end == NULL && head.len == REPLY_HEAD_BYTES_MAX)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "expected headers of at most %zu bytes",
                         REPLY_HEAD_BYTES_MAX);
    *used = bytes.len;
    if (end == NULL)
        return STATUS_OK;
    reply->head.len = (size_t)(end - head.ptr) + 4;
    *used = reply->head.len - old_len;
    return read_head(reply, err);
}

/* Bytes of the body, or of a chunk of it. */
static size_t take_body(Reply *reply, Slice bytes)
{
    Slice part = slice_first(bytes, reply->left);
    size_t kept_max = reply->keep_body       ? REPLY_BODY_BYTES_MAX
                      : reply->status == 207 ? REPLY_BATCH_BYTES_MAX
                      : reply->status >= 400 ? REPLY_EXCERPT_BYTES_MAX
                                             : 0;
    if (reply->body.len < kept_max)
        buf_slice(&reply->body, slice_first(part, kept_max - reply->body.len));
    reply->left -= part.len;
    return part.len;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    int lower = c | 0x20;
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static Status chunk_error(char found, Error *err)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "expected a chunk, found the byte 0x%02x",
                     (unsigned)(unsigned char)found);
}

static Status take_size(Reply *reply, char c, Error *err)
{
    int digit = digit_of(c);
    if (digit >= 0) {
        reply->left = reply->left * 16 + (uint64_t)digit;
        if (++reply->chunk_digits > 16 || reply->left > REPLY_BODY_BYTES_MAX - reply->body_len)
            return error_set(err, STATUS_TOO_LARGE, SUB_NONE, "expected at most %zu bytes",
                             REPLY_BODY_BYTES_MAX);
        return STATUS_OK;
    }
    if (reply->chunk_digits == 0 || (c != '\r' && c != ';' && c != ' ' && c != '\t'))
        return chunk_error(c, err);
    reply->state = c == '\r' ? REPLY_CHUNK_SIZE_LF : REPLY_CHUNK_EXTENSION;
    return STATUS_OK;
}

/* One byte of what is around the chunks. */
static Status take_frame(Reply *reply, char c, Error *err)
{
    switch (reply->state) {
    case REPLY_CHUNK_SIZE:
        return take_size(reply, c, err);
    case REPLY_CHUNK_SIZE_LF:
        if (c != '\n')
            return chunk_error(c, err);
        reply->body_len += reply->left;
        reply->state = reply->left > 0 ? REPLY_CHUNK_DATA : REPLY_LINE;
        return STATUS_OK;
    case REPLY_CHUNK_DATA_CR:
        reply->state = REPLY_CHUNK_DATA_LF;
        return c == '\r' ? STATUS_OK : chunk_error(c, err);
    case REPLY_CHUNK_DATA_LF:
        reply->state = REPLY_CHUNK_SIZE;
        reply->chunk_digits = 0;
        return c == '\n' ? STATUS_OK : chunk_error(c, err);
    case REPLY_LINE:
        reply->state = c == '\r' ? REPLY_LINE_LF : REPLY_TRAILER;
        return STATUS_OK;
    case REPLY_LINE_LF:
        reply->state = REPLY_DONE;
        return c == '\n' ? STATUS_OK : chunk_error(c, err);
    case REPLY_CHUNK_EXTENSION:
    case REPLY_TRAILER:
        if (++reply->chunk_extra > REPLY_CHUNK_EXTRA_MAX)
            return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                             "expected extensions and trailers of at most %zu bytes",
                             REPLY_CHUNK_EXTRA_MAX);
        if (reply->state == REPLY_CHUNK_EXTENSION && c == '\r')
            reply->state = REPLY_CHUNK_SIZE_LF;
        else if (reply->state == REPLY_TRAILER && c == '\n')
            reply->state = REPLY_LINE;
        return STATUS_OK;
    case REPLY_HEAD:
    case REPLY_BODY:
    case REPLY_CHUNK_DATA:
    case REPLY_DONE:
        break;
    }
    ASSERT(false); /* reply_feed has dealt with these */
    return STATUS_OK;
}

Status reply_feed(Reply *reply, Slice bytes, size_t *used, bool *complete, Error *err)
{
    size_t taken = 0;
    if (reply->state == REPLY_HEAD)
        TRY(take_head(reply, bytes, &taken, err));
    while (taken < bytes.len && reply->state != REPLY_DONE) {
        if (reply->state == REPLY_BODY || reply->state == REPLY_CHUNK_DATA) {
            taken += take_body(reply, slice_from(bytes, taken));
            if (reply->left == 0)
                reply->state = reply->state == REPLY_BODY ? REPLY_DONE : REPLY_CHUNK_DATA_CR;
        } else {
            TRY(take_frame(reply, bytes.ptr[taken], err));
            taken++;
        }
    }
    *used = taken;
    *complete = reply->state == REPLY_DONE;
    return STATUS_OK;
}
