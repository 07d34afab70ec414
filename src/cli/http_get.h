/* http_get.h - asks a server for one page, over plain HTTP: what `orrery top` needs of a client.
 *
 * One connection for each question, closed by the server. The answer is bounded in size and in
 * time, whatever is at the other end.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/slice.h"

#define HTTP_GET_BYTES_MAX ((size_t)4 << 20) /* of an answer, with its headers */

typedef struct Endpoint {
    char host[256]; /* a name or an address, without brackets */
    char port[6];
} Endpoint;

/* "http://localhost:8081", perhaps with a slash behind it. STATUS_BAD_REQUEST says what is wrong;
 * of https, that the server answers plain HTTP on the same port. */
MUST_USE Status endpoint_parse(const char *url, Endpoint *out, Error *err);

typedef struct HttpQuestion {
    const Endpoint *endpoint;
    Slice path;    /* with its parameters, encoded */
    Slice headers; /* whole lines, each with "\r\n" at its end */
    uint32_t timeout_ms;
    int cancel_fd; /* the question is given up when this becomes readable; -1: none */
} HttpQuestion;

typedef struct HttpReply {
    int status;
    Slice body; /* in the buffer */
} HttpReply;

/* STATUS_UNAVAILABLE if the server cannot be reached or says something that is not HTTP,
 * STATUS_TIMEOUT if it does not answer in time or the question was given up. */
MUST_USE Status http_get(const HttpQuestion *question, Buf *buffer, HttpReply *out, Error *err);

/* Finds status and body in all that a server has sent. */
MUST_USE Status http_reply_parse(Slice bytes, HttpReply *out, Error *err);
