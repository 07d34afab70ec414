/* head.c - see head_int.h. */
#include "http/head_int.h"

#include "http/h2o_int.h"

static const Slice NODE_PREFIX = SLICE_INIT(HTTP_NODE_HEADER_PREFIX);

/* What the headers that matter here say, collected over all headers. */
typedef struct Seen {
    Slice content_length;
    Slice transfer_encoding;
    Slice host;
    bool has_content_length;
    bool has_transfer_encoding;
    bool has_host;
    bool says_close;
    bool says_keep_alive;
} Seen;

static Status read_headers(char *bytes, HttpHeader *headers, const HeadLimits *limits, Head *head,
                           Seen *seen, Error *err);
static Status read_special(const HttpHeader *header, Head *head, Seen *seen, Error *err);
static Status find_body(const Seen *seen, const HeadLimits *limits, Head *head, Error *err);
static Status check_lines(const char *bytes, const Head *head, const HttpHeader *headers,
                          Error *err);
static Status read_target(Head *head, Error *err);
static Status check_authority(const Head *head, const Seen *seen, Error *err);

static Status bad(Error *err, const char *message)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE, "%s", message);
}

static Status too_long(Error *err, size_t bytes_max)
{
    return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                     "The headers of the request are longer than %zu bytes.", bytes_max);
}

Status head_parse(char *bytes, size_t len, size_t seen, const HeadLimits *limits,
                  HttpHeader headers[HTTP_NODE_HEADERS_MAX], Head *out, bool *complete, Error *err)
{
    ASSERT(seen <= len);
    ASSERT(limits->headers_max <= HTTP_NODE_HEADERS_MAX);
    Head head = {0};
    int minor_version = 0;
    size_t count = limits->headers_max;
    int parsed = phr_parse_request(bytes, len, &head.method.ptr, &head.method.len, &head.path.ptr,
                                   &head.path.len, &minor_version, headers, &count, seen);
    if (parsed == -2 && len <= limits->header_bytes_max) {
        *complete = false;
        return STATUS_OK;
    }
    if (parsed == -2 || (parsed > 0 && (size_t)parsed > limits->header_bytes_max))
        return too_long(err, limits->header_bytes_max);
    if (parsed <= 0 && count == limits->headers_max)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The request has more than %zu headers.", limits->headers_max);
    if (parsed <= 0)
        return bad(err, "The request is not well-formed HTTP/1.1.");

    head.len = (size_t)parsed;
    head.header_count = count;
    head.is_http10 = minor_version == 0;
    head.is_head = slice_equal(head.method, SLICE("HEAD"));

    Seen said = {0};
    TRY(check_lines(bytes, &head, headers, err));
    TRY(read_headers(bytes, headers, limits, &head, &said, err));
    TRY(find_body(&said, limits, &head, err));
    TRY(read_target(&head, err));
    TRY(check_authority(&head, &said, err));
    head.authority = said.host;
    head.keeps_open = !said.says_close && (!head.is_http10 || said.says_keep_alive);

    *out = head;
    *complete = true;
    return STATUS_OK;
}

/* Pointers to constants (the path of "http://host") stay where they are. */
static Slice moved(Slice s, const char *from, size_t len, const char *to)
{
    bool is_inside = (uintptr_t)s.ptr - (uintptr_t)from < len;
    return is_inside ? slice_make(to + (s.ptr - from), s.len) : s;
}

void head_move(Head *head, HttpHeader *headers, const char *from, const char *to)
{
    head->method = moved(head->method, from, head->len, to);
    head->path = moved(head->path, from, head->len, to);
    head->authority = moved(head->authority, from, head->len, to);
    for (size_t i = 0; i < head->header_count; i++) {
        headers[i].name = moved(headers[i].name, from, head->len, to);
        headers[i].value = moved(headers[i].value, from, head->len, to);
    }
}

/* Eight characters at a time; what is not ASCII stays as it is. */
static uint64_t lower_word(uint64_t word)
{
    const uint64_t ones = ~(uint64_t)0 / 255;
    uint64_t seven = word & (ones * 0x7F);
    uint64_t from_a = seven + ones * (0x80 - 'A');
    uint64_t past_z = seven + ones * (0x7F - 'Z');
    return word | ((from_a & ~past_z & ~word & (ones * 0x80)) >> 2);
}

void head_lower(char *p, size_t len)
{
    size_t i = 0;
    for (; i + sizeof(uint64_t) <= len; i += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, p + i, sizeof(word));
        word = lower_word(word);
        memcpy(p + i, &word, sizeof(word));
    }
    for (; i < len; i++)
        p[i] = (char)(p[i] + ((unsigned char)(p[i] - 'A') < 26 ? 32 : 0));
}

/* The headers point into 'bytes', where their names become lower case. */
static Status read_headers(char *bytes, HttpHeader *headers, const HeadLimits *limits, Head *head,
                           Seen *seen, Error *err)
{
    for (size_t i = 0; i < head->header_count; i++) {
        HttpHeader *header = &headers[i];
        if (header->name.ptr == NULL)
            return bad(err, "A header is folded over several lines.");
        if (header->name.len == 0)
            return bad(err, "A header has no name.");
        head_lower(bytes + (header->name.ptr - bytes), header->name.len);
        if (!limits->takes_node_headers && slice_starts_with(header->name, NODE_PREFIX))
            return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                             "The header '%.*s' is for requests between nodes only.",
                             SLICE_CUT(header->name, 64));
        while (header->value.len > 0 && (header->value.ptr[header->value.len - 1] == ' ' ||
                                         header->value.ptr[header->value.len - 1] == '\t'))
            header->value.len--;
        TRY(read_special(header, head, seen, err));
    }
    return STATUS_OK;
}

/* Whether a comma-separated list has this token. */
bool head_has_token(Slice list, Slice token)
{
    while (list.len > 0)
        if (slice_equal_nocase(slice_trim(slice_cut(&list, ',')), token))
            return true;
    return false;
}

/* "gzip", "*" or "x;q=0"; the last one is a refusal. */
static bool allows_gzip(Slice list)
{
    while (list.len > 0) {
        Slice rest = slice_cut(&list, ',');
        Slice coding = slice_trim(slice_cut(&rest, ';'));
        if (!slice_equal_nocase(coding, SLICE("gzip")) && !slice_equal(coding, SLICE("*")))
            continue;
        Slice weight = slice_trim(rest);
        return !(slice_starts_with(weight, SLICE("q=0")) &&
                 (weight.len == 3 || slice_equal(weight, SLICE("q=0.0")) ||
                  slice_equal(weight, SLICE("q=0.00")) || slice_equal(weight, SLICE("q=0.000"))));
    }
    return false;
}

static Status read_special(const HttpHeader *header, Head *head, Seen *seen, Error *err)
{
    Slice name = header->name;
    switch (name.len) { /* most headers end here without a comparison */
    case 4:
        if (slice_equal(name, SLICE("host"))) {
            if (seen->has_host)
                return bad(err, "The request has more than one host header.");
            seen->has_host = true;
            seen->host = header->value;
        }
        break;
    case 6:
        if (slice_equal(name, SLICE("expect"))) {
            if (!slice_equal_nocase(header->value, SLICE("100-continue")))
                return bad(err, "The only expectation understood is 100-continue.");
            head->expects_continue = true;
        }
        break;
    case 10:
        if (slice_equal(name, SLICE("connection"))) {
            seen->says_close = seen->says_close || head_has_token(header->value, SLICE("close"));
            seen->says_keep_alive =
                seen->says_keep_alive || head_has_token(header->value, SLICE("keep-alive"));
        }
        break;
    case 14:
        if (slice_equal(name, SLICE("content-length"))) {
            if (seen->has_content_length)
                return bad(err, "The request has more than one content-length header.");
            seen->has_content_length = true;
            seen->content_length = header->value;
        }
        break;
    case 15:
        if (slice_equal(name, SLICE("accept-encoding")))
            head->accepts_gzip = head->accepts_gzip || allows_gzip(header->value);
        break;
    case 17:
        if (slice_equal(name, SLICE("transfer-encoding"))) {
            if (seen->has_transfer_encoding)
                return bad(err, "The request has more than one transfer-encoding header.");
            seen->has_transfer_encoding = true;
            seen->transfer_encoding = header->value;
        }
        break;
    }
    return STATUS_OK;
}

static Status find_body(const Seen *seen, const HeadLimits *limits, Head *head, Error *err)
{
    if (seen->has_transfer_encoding) {
        if (seen->has_content_length)
            return bad(err, "The request has both content-length and transfer-encoding.");
        if (head->is_http10)
            return bad(err, "An HTTP/1.0 request cannot have a transfer-encoding.");
        if (!slice_equal_nocase(seen->transfer_encoding, SLICE("chunked")))
            return bad(err, "The only transfer-encoding understood is chunked.");
        head->is_chunked = true;
        return STATUS_OK;
    }
    if (!seen->has_content_length)
        return STATUS_OK;
    if (!slice_to_u64(seen->content_length, &head->content_length))
        return bad(err, "The content-length header is not a number.");
    if (head->content_length > limits->body_bytes_max)
        return error_set(err, STATUS_TOO_LARGE, SUB_NONE,
                         "The body of the request is larger than %zu bytes.",
                         limits->body_bytes_max);
    return STATUS_OK;
}

/* All methods consist of letters; the parser also accepts other bytes. */
static bool is_method(Slice method)
{
    for (size_t i = 0; i < method.len; i++)
        if ((unsigned char)((method.ptr[i] | 0x20) - 'a') >= 26)
            return false;
    return method.len > 0;
}

/* A client that takes us for a proxy sends "http://host/path". The host must be that of the Host
 * header, and the rest is the path. */
static Status read_target(Head *head, Error *err)
{
    if (!is_method(head->method))
        return bad(err, "The request has no method.");
    if (slice_starts_with(head->path, SLICE("/")) || slice_equal(head->path, SLICE("*")))
        return STATUS_OK;

    static const Slice schemes[] = {SLICE_INIT("http://"), SLICE_INIT("https://")};
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        Slice start = slice_first(head->path, schemes[i].len);
        if (!slice_equal_nocase(start, schemes[i]))
            continue;
        Slice rest = slice_from(head->path, schemes[i].len);
        size_t host_len = slice_find(rest, '/');
        if (host_len == 0 || slice_find(slice_first(rest, host_len), '?') < host_len)
            break;
        head->authority = slice_first(rest, host_len);
        head->path = host_len < rest.len ? slice_from(rest, host_len) : SLICE("/");
        return STATUS_OK;
    }
    return bad(err, "The target of the request is not a path.");
}

/* The parser also accepts LF alone as the end of a line. If each header's name follows CR LF and
 * the head ends with two of them, then every line ends in CR LF; LF cannot occur elsewhere in a
 * head. */
static Status check_lines(const char *bytes, const Head *head, const HttpHeader *headers,
                          Error *err)
{
    size_t skipped = (size_t)(head->method.ptr - bytes); /* an empty line before the request */
    bool is_good = (skipped == 0 || bytes[0] == '\r') && head->len >= 4 &&
                   memcmp(bytes + head->len - 4, "\r\n\r\n", 4) == 0;
    for (size_t i = 0; i < head->header_count && is_good; i++)
        is_good = headers[i].name.ptr == NULL || headers[i].name.ptr[-2] == '\r';
    return is_good ? STATUS_OK : bad(err, "A line of the request does not end in CR LF.");
}

/* A name, an IPv4 address or an IPv6 address in brackets, and perhaps a port. Whether the name is
 * ours is for the handler to decide; here it only must not be readable in two ways. */
static bool is_authority(Slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_alphanumeric =
            (c >= '0' && c <= '9') || (unsigned char)((c | 0x20) - 'a') < 26 || c == '_';
        if (!is_alphanumeric && memchr(".-:[]", c, 5) == NULL)
            return false;
    }
    return text.len > 0;
}

static Status check_authority(const Head *head, const Seen *seen, Error *err)
{
    if (!seen->has_host && !head->is_http10)
        return bad(err, "The request has no Host header.");
    if (seen->has_host && !is_authority(seen->host))
        return bad(err, "The Host header is not a host name or an address.");
    if (head->authority.len > 0 && !slice_equal_nocase(head->authority, seen->host))
        return bad(err, "The target of the request and its Host header name different hosts.");
    return STATUS_OK;
}
