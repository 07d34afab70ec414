/* respond_int.h - answers in the protocol's form. Each function answers the request for good. */
#pragma once

#include "api/request_int.h"
#include "base/encoding.h"
#include "throughput/charge.h"

#define RESPONSE_HEADERS_MAX 40

typedef struct Response {
    int status;
    HttpHeader headers[RESPONSE_HEADERS_MAX];
    size_t header_count;
    Slice body;
    void (*body_release)(void *ctx);
    void *body_release_ctx;
    char duration[U64_TEXT_MAX + 4]; /* response_send's */
} Response;

/* Request units as text, in the request's arena; and those of what the catalogue does, which do not
 * depend on the data. */
Slice charge_text(const ApiRequest *r, Charge charge);
Slice charge_text_read(const ApiRequest *r); /* also of a list */
Slice charge_text_query(const ApiRequest *r);
Slice charge_text_change(const ApiRequest *r);

/* Begins with the headers that every answer has; the value of a header must live until the answer
 * is sent, so it is a literal or in the request's arena. */
void response_begin(const ApiRequest *r, Response *response, int status, Slice charge);
void response_header(Response *response, Slice name, Slice value);
void response_send(ApiRequest *r, Response *response); /* adds how long it took */

/* Whether If-None-Match says that the client has this version already, so that the answer to a read
 * is 304. Not after a deferral: the headers are gone then. */
bool request_has_version(const ApiRequest *r, Slice etag);

/* A resource's body and ETag; 304 has only the latter. The object that 'info' belongs to must live
 * until the answer is handed over, which is when this returns. */
void respond_resource(ApiRequest *r, int status, const ResourceInfo *info, Slice charge);

void respond_empty(ApiRequest *r, int status, Slice charge);
void respond_text(ApiRequest *r, int status, Slice content_type, Slice body);
void respond_error(ApiRequest *r, const Error *err);

/* The same in two steps, for those who add headers before they send it. */
void response_error(ApiRequest *r, Response *response, const Error *err, Slice charge);
