/* node_call.c - a call as the request that goes over the wire. */
#include "http/node_link_int.h"
#include "http/wire_int.h"

/* " HTTP/1.1", host, content-length, how long the answer is waited for, and the line ends. */
#define FIXED_HEAD_BYTES ((size_t)160)

static bool is_token(Slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c <= ' ' || c >= 0x7f || c == ':')
            return false;
    }
    return text.len > 0;
}

/* A byte in the wrong place would make another request of it, or two. */
Status node_call_check(const NodeCall *call, Error *err)
{
    bool is_good = is_token(call->method) && call->path.len > 0;
    for (size_t i = 0; i < call->path.len && is_good; i++)
        is_good = (unsigned char)call->path.ptr[i] > ' ' && call->path.ptr[i] != 0x7f;
    for (size_t i = 0; i < call->header_count && is_good; i++)
        is_good = is_token(call->headers[i].name);
    if (!is_good)
        return error_set(err, STATUS_BAD_REQUEST, SUB_NONE,
                         "The request to another node has a malformed method, path or header.");
    return STATUS_OK;
}

/* What a client has said about its connection to us is not true of this one. */
static bool is_of_connection(Slice name)
{
    switch (name.len) {
    case 2:
        return slice_equal(name, SLICE("te"));
    case 4:
        return slice_equal(name, SLICE("host"));
    case 6:
        return slice_equal(name, SLICE("expect"));
    case 7:
        return slice_equal(name, SLICE("trailer")) || slice_equal(name, SLICE("upgrade"));
    case 10:
        return slice_equal(name, SLICE("connection")) || slice_equal(name, SLICE("keep-alive"));
    case 14:
        return slice_equal(name, SLICE("content-length"));
    case 16:
        return slice_equal(name, SLICE("proxy-connection"));
    case 17:
        return slice_equal(name, SLICE("transfer-encoding"));
    }
    return false;
}

void node_call_print(const NodeCall *call, uint64_t deadline_us, uint64_t now_us, Output *out)
{
    size_t size = FIXED_HEAD_BYTES + call->method.len + call->path.len + call->address.len +
                  wire_headers_size(call->headers, call->header_count);
    char *head = arena_alloc(call->arena, size);
    char *at = wire_put(head, call->method);
    *at++ = ' ';
    at = wire_put(at, call->path);
    at = wire_put(at, SLICE(" HTTP/1.1\r\nhost: "));
    at = wire_put(at, call->address);
    at = wire_put(at, SLICE("\r\ncontent-length: "));
    at = wire_put_number(at, call->body.len);
    at = wire_put(at, SLICE("\r\n" HTTP_NODE_HEADER_LEFT ": "));
    at = wire_put_number(at, deadline_us > now_us ? (deadline_us - now_us) / 1000 : 0);
    at = wire_put(at, SLICE("\r\n"));
    for (size_t i = 0; i < call->header_count; i++)
        if (!is_of_connection(call->headers[i].name))
            at = wire_put_headers(at, &call->headers[i], 1);
    at = wire_put(at, SLICE("\r\n"));
    ASSERT((size_t)(at - head) <= size);
    *out = (Output){.head = slice_make(head, (size_t)(at - head)), .body = call->body};
}
