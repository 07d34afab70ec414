/* response_int.h - answers in the protocol's form. Each function answers the request for good. */
#pragma once

#include "api/core/request_int.h"
#include "api/core/wire_int.h"
#include "base/encoding.h"
#include "throughput/charge.h"

#define RESPONSE_HEADERS_MAX 40
#define DURATION_TEXT_MAX    (U64_TEXT_MAX + 4)

typedef struct Response {
    int status;
    uint32_t sub_status; /* 0 if there is none */
    HttpHeader headers[RESPONSE_HEADERS_MAX];
    size_t header_count;
    Slice body;
    void (*body_release)(void *ctx);
    void *body_release_ctx;
    char duration[DURATION_TEXT_MAX]; /* response_send's */
} Response;

/* Request units as text, in the request's arena. Those of requests on the catalogue do not depend
 * on the data. */
Slice response_charge(const ApiRequest *r, Charge charge);
Slice response_charge_read(const ApiRequest *r); /* also of a list */
Slice response_charge_query(const ApiRequest *r);
Slice response_charge_change(const ApiRequest *r);

/* Begins with the headers that every answer has; the value of a header must live until the answer
 * is sent, so it is a literal or in the request's arena. */
void response_begin(const ApiRequest *r, Response *response, int status, Slice charge);
void response_header(Response *response, Slice name, Slice value);
void response_own_body(Response *response, Buf *text); /* takes 'text' over and leaves it empty */
void response_send(ApiRequest *r, Response *response); /* adds how long it took */

/* HttpHandler's: the headers that every answer has, for one that http gives by itself. */
size_t response_refusal_headers(void *ctx, const HttpRefusal *refusal,
                                HttpHeader headers[HTTP_REFUSAL_HEADERS_MAX]);

/* Whether If-None-Match says that the client has this version already, so that the answer to a read
 * is 304. Not after the answer was deferred: the headers are gone then. */
bool request_has_version(const ApiRequest *r, Slice etag);

/* A resource's body and ETag. The resource must live until the answer is handed over, which is when
 * this returns. */
void respond_resource(ApiRequest *r, int status, const WireResource *resource, Slice charge);

/* The same for a read: 304 without a body if the client has this version. */
void respond_read(ApiRequest *r, const WireResource *resource);
void respond_unchanged(ApiRequest *r, Slice etag);

void respond_empty(ApiRequest *r, int status, Slice charge);
void respond_text(ApiRequest *r, int status, Slice content_type, Slice body);
void respond_error(ApiRequest *r, const Error *err);

/* The same without sending, for callers that add headers. */
void response_error(ApiRequest *r, Response *response, const Error *err, Slice charge);
