/* head_int.h - the head of a request: request line and headers, checked.
 *
 * The syntax is parsed by the library; here is what the protocol says beyond the syntax, above all
 * where a request ends. A request whose end two readers could see in two places is refused, because
 * that difference is how requests are smuggled past a proxy.
 *
 * Ownership  Everything in a Head points into the bytes that were parsed, or to the array given.
 * Threads    Pure functions.
 */
#pragma once

#include "http/http.h"

/* The SDKs send about 20. A request from another node has those of a client and some more. */
#define HTTP_HEADERS_MAX      100
#define HTTP_NODE_HEADERS_MAX 160

typedef struct HeadLimits {
    size_t header_bytes_max;
    size_t body_bytes_max;
    size_t headers_max; /* at most HTTP_NODE_HEADERS_MAX */
    /* Whether headers named HTTP_NODE_HEADER_PREFIX... are taken: only nodes may send them. */
    bool takes_node_headers;
} HeadLimits;

typedef struct Head {
    size_t len; /* bytes of the head with its empty line */
    Slice method;
    Slice path;      /* origin form; "*" for OPTIONS */
    Slice authority; /* empty if the request has none */
    size_t header_count;
    uint64_t content_length; /* 0 without a body */
    bool is_chunked;         /* then content_length says nothing */
    bool expects_continue;
    bool keeps_open; /* the client wants to use the connection again */
    bool is_http10;
    bool is_head;
    bool accepts_gzip;
} Head;

/* Parses the head at the start of 'bytes', whose header names become lower case in place. Without
 * '*complete' there is no whole head yet, and 'seen' of the next call is the present 'len'. The
 * message of an Error is fit for the client. */
MUST_USE Status head_parse(char *bytes, size_t len, size_t seen, const HeadLimits *limits,
                           HttpHeader headers[HTTP_NODE_HEADERS_MAX], Head *out, bool *complete,
                           Error *err);

/* For those who read heads of answers: makes ASCII letters small; whether a comma-separated list
 * has this token. */
void head_lower(char *p, size_t len);
bool head_has_token(Slice list, Slice token);

/* After the head's bytes have been copied from 'from' to 'to': makes everything point there. */
void head_move(Head *head, HttpHeader *headers, const char *from, const char *to);
