/* answer.c - see answer_int.h. */
#include "http/answer_int.h"

#include "http/h2o_int.h"
#include "http/head_int.h"

enum { FIRST_HEAD_BYTES = 4096, FIRST_CHUNKS_BYTES = 4096 };

/* A body of which less is missing is read together with what follows. */
#define ROOM_BYTES_MIN ((size_t)16 << 10)

/* What the head says about the end of the answer. */
typedef struct Framing {
    bool has_length;
    bool is_chunked;
    uint64_t length;
} Framing;

static Status take_head(AnswerReader *reader, char *bytes, size_t len, size_t *used, Error *err);
static Status parse_head(AnswerReader *reader, char *head, size_t len, Error *err);
static Status read_header(AnswerReader *reader, const HttpHeader *header, Framing *framing,
                          bool *is_kept, Error *err);
static Status begin_body(AnswerReader *reader, const Framing *framing, Error *err);
static Status take_length(AnswerReader *reader, const char *bytes, size_t len, size_t *used);
static Status take_chunks(AnswerReader *reader, char *bytes, size_t len, size_t *used, Error *err);

static Status bad(Error *err, const char *what)
{
    return error_set(err, STATUS_UNAVAILABLE, SUB_NONE, "The answer of the other node %s.", what);
}

static Status too_large(const AnswerReader *reader, Error *err)
{
    return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                     "The answer of the other node is larger than %zu bytes.", reader->bytes_max);
}

Status answer_read(AnswerReader *reader, char *bytes, size_t len, size_t *used, Error *err)
{
    size_t at = 0;
    while (at < len && reader->state != ANSWER_DONE) {
        size_t taken = 0;
        Status status = STATUS_OK;
        if (reader->state == ANSWER_HEAD)
            status = take_head(reader, bytes + at, len - at, &taken, err);
        else if (reader->state == ANSWER_LENGTH)
            status = take_length(reader, bytes + at, len - at, &taken);
        else
            status = take_chunks(reader, bytes + at, len - at, &taken, err);
        TRY(status);
        at += taken;
    }
    *used = at;
    return STATUS_OK;
}

size_t answer_room(const AnswerReader *reader, char **bytes)
{
    if (reader->state != ANSWER_LENGTH || reader->capacity - reader->body.len < ROOM_BYTES_MIN)
        return 0;
    *bytes = reader->bytes + reader->body.len;
    return reader->capacity - reader->body.len;
}

/* Appends to an incomplete head; it grows by doubling, since it may come byte by byte. */
static void keep_head(AnswerReader *reader, const char *bytes, size_t len)
{
    size_t needed = reader->head_len + len;
    if (needed > reader->head_capacity) {
        size_t capacity = reader->head_capacity * 2;
        capacity = capacity < FIRST_HEAD_BYTES ? FIRST_HEAD_BYTES : capacity;
        capacity = capacity < needed ? needed : capacity;
        reader->head = arena_realloc(reader->arena, reader->head, reader->head_len, capacity);
        reader->head_capacity = capacity;
    }
    memcpy(reader->head + reader->head_len, bytes, len);
    reader->head_len = needed;
}

/* Bytes up to and with the empty line, or 0. */
static size_t find_end(const char *bytes, size_t len)
{
    const char *end = memmem(bytes, len, "\r\n\r\n", 4);
    return end == NULL ? 0 : (size_t)(end - bytes) + 4;
}

static Status take_head(AnswerReader *reader, char *bytes, size_t len, size_t *used, Error *err)
{
    size_t before = reader->head_len;
    size_t skipped = before > 3 ? before - 3 : 0; /* known to hold no end */
    /* A head that is longer than it may be is found out below. */
    size_t taken = len < ANSWER_HEAD_BYTES_MAX ? len : ANSWER_HEAD_BYTES_MAX;
    size_t end = before == 0 ? find_end(bytes, taken) : 0;
    if (end > 0) {
        reader->head = arena_alloc(reader->arena, end);
        memcpy(reader->head, bytes, end);
    } else {
        keep_head(reader, bytes, taken);
        end = find_end(reader->head + skipped, reader->head_len - skipped);
        end = end == 0 ? 0 : end + skipped;
    }
    if (end > ANSWER_HEAD_BYTES_MAX || (end == 0 && reader->head_len >= ANSWER_HEAD_BYTES_MAX))
        return bad(err, "has a head that is too long");
    *used = end == 0 ? taken : end - before;
    if (end == 0)
        return STATUS_OK;
    char *head = reader->head;
    reader->head = NULL;
    reader->head_len = 0;
    reader->head_capacity = 0;
    return parse_head(reader, head, end, err);
}

/* Names become lower case, where they are. */
static Status check_header(char *head, HttpHeader *header, Error *err)
{
    if (header->name.ptr == NULL || header->name.len == 0 || header->name.ptr[-2] != '\r')
        return bad(err, "has a malformed header");
    head_lower(head + (header->name.ptr - head), header->name.len);
    header->value = slice_trim(header->value);
    return STATUS_OK;
}

static Status parse_head(AnswerReader *reader, char *head, size_t len, Error *err)
{
    HttpHeader headers[HTTP_NODE_HEADERS_MAX];
    size_t count = HTTP_NODE_HEADERS_MAX;
    int minor_version = 0;
    Slice reason = {0};
    int parsed = phr_parse_response(head, len, &minor_version, &reader->status, &reason.ptr,
                                    &reason.len, headers, &count, 0);
    if (parsed < 0 || (size_t)parsed != len || minor_version != 1 || reader->status < 100)
        return bad(err, "is not well-formed HTTP/1.1");

    Framing framing = {0};
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool is_kept = false;
        TRY(check_header(head, &headers[i], err));
        TRY(read_header(reader, &headers[i], &framing, &is_kept, err));
        if (is_kept)
            headers[kept++] = headers[i];
    }
    if (reader->status < 200) {
        if (reader->status == 101 || ++reader->interim_count > ANSWER_INTERIM_MAX)
            return bad(err, "is none");
        return STATUS_OK; /* the real one follows */
    }
    HttpHeader *copy = arena_alloc(reader->arena, kept * sizeof(HttpHeader));
    memcpy(copy, headers, kept * sizeof(HttpHeader));
    reader->headers = copy;
    reader->header_count = kept;
    return begin_body(reader, &framing, err);
}

/* Those of the connection, and those that the server adds to each of its own answers. */
static bool is_passed_on(Slice name)
{
    static const Slice dropped[] = {
        SLICE_INIT("connection"), SLICE_INIT("content-length"),   SLICE_INIT("date"),
        SLICE_INIT("keep-alive"), SLICE_INIT("proxy-connection"), SLICE_INIT("server"),
        SLICE_INIT("te"),         SLICE_INIT("trailer"),          SLICE_INIT("transfer-encoding"),
        SLICE_INIT("upgrade"),
    };
    for (size_t i = 0; i < ARRAY_COUNT(dropped); i++)
        if (slice_equal(name, dropped[i]))
            return false;
    return true;
}

static Status read_header(AnswerReader *reader, const HttpHeader *header, Framing *framing,
                          bool *is_kept, Error *err)
{
    *is_kept = is_passed_on(header->name);
    if (*is_kept)
        return STATUS_OK;
    if (slice_equal(header->name, SLICE("connection"))) {
        reader->ends_connection =
            reader->ends_connection || head_has_token(header->value, SLICE("close"));
    } else if (slice_equal(header->name, SLICE("content-length"))) {
        if (framing->has_length || !slice_to_u64(header->value, &framing->length))
            return bad(err, "has no single length");
        framing->has_length = true;
    } else if (slice_equal(header->name, SLICE("transfer-encoding"))) {
        if (framing->is_chunked || !slice_equal_nocase(header->value, SLICE("chunked")))
            return bad(err, "has a transfer-encoding that is not understood");
        framing->is_chunked = true;
    }
    return STATUS_OK;
}

static Status begin_body(AnswerReader *reader, const Framing *framing, Error *err)
{
    if (framing->has_length && framing->is_chunked)
        return bad(err, "has both a length and chunks");
    bool has_body = !reader->is_to_head && reader->status != 204 && reader->status != 304;
    if (has_body && !framing->has_length && !framing->is_chunked)
        return bad(err, "does not say how long it is");
    if (!has_body || (framing->has_length && framing->length == 0)) {
        reader->state = ANSWER_DONE;
        return STATUS_OK;
    }
    if (framing->is_chunked) {
        reader->state = ANSWER_CHUNKS;
        return STATUS_OK;
    }
    if (framing->length > reader->bytes_max)
        return too_large(reader, err);
    reader->state = ANSWER_LENGTH;
    reader->capacity = (size_t)framing->length;
    reader->bytes = arena_alloc(reader->arena, reader->capacity);
    return STATUS_OK;
}

static Status take_length(AnswerReader *reader, const char *bytes, size_t len, size_t *used)
{
    size_t left = reader->capacity - reader->body.len;
    size_t take = len < left ? len : left;
    char *to = reader->bytes + reader->body.len;
    if (to != bytes)
        memcpy(to, bytes, take);
    reader->body = slice_make(reader->bytes, reader->body.len + take);
    if (reader->body.len == reader->capacity)
        reader->state = ANSWER_DONE;
    *used = take;
    return STATUS_OK;
}

static void keep_body(AnswerReader *reader, const char *bytes, size_t len)
{
    size_t needed = reader->body.len + len;
    if (needed > reader->capacity) {
        size_t capacity = reader->capacity * 2;
        capacity = capacity < FIRST_CHUNKS_BYTES ? FIRST_CHUNKS_BYTES : capacity;
        capacity = capacity > reader->bytes_max ? reader->bytes_max : capacity;
        capacity = capacity < needed ? needed : capacity;
        reader->bytes = arena_realloc(reader->arena, reader->bytes, reader->body.len, capacity);
        reader->capacity = capacity;
    }
    if (len > 0)
        memcpy(reader->bytes + reader->body.len, bytes, len);
    reader->body = slice_make(reader->bytes, needed);
}

static Status take_chunks(AnswerReader *reader, char *bytes, size_t len, size_t *used, Error *err)
{
    size_t decoded = len;
    size_t rest = 0;
    Status status = chunk_decode(&reader->decoder, reader->bytes_max, bytes, &decoded, &rest, err);
    if (status == STATUS_TOO_LARGE)
        return too_large(reader, err);
    if (status != STATUS_OK)
        return bad(err, "has malformed chunks");
    keep_body(reader, bytes, decoded);
    if (reader->decoder.state == CHUNK_DONE)
        reader->state = ANSWER_DONE;
    *used = len - rest;
    return STATUS_OK;
}
