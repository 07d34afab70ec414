/* request.h - the bytes of a request, with the headers that the official SDK for Node.js sends.
 *
 * Ownership  A RequestMaker borrows its options; it owns its memory until request_maker_done.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "bench/items.h"
#include "bench/queries.h"
#include "bench/sign.h"

#define REQUEST_HEADERS_MAX 16

/* A parsed "http://host:port/path". */
typedef struct Url {
    Slice authority; /* "host:port", as it stands in the Host header */
    Slice host;
    Slice port; /* "80" if there is none */
    Slice path; /* begins with a slash */
} Url;

MUST_USE Status url_parse(Slice text, Url *out, Error *err);

typedef struct RequestOptions {
    Url url;
    Slice method;
    Slice body;
    Slice headers[REQUEST_HEADERS_MAX]; /* more of them, as whole lines: "name: value" */
    size_t header_count;
    const Signer *signer; /* NULL for unsigned requests to other servers */
    bool sign_each;       /* if false, a signature serves all requests of its second */
    bool is_items;        /* method, path, headers and body vary as 'items' says; 'url' is that of
                             all items of a container, and 'sign_each' has to be true */
    ItemOptions items;
    bool is_query; /* they vary as 'query' says; never together with 'is_items' */
    QueryOptions query;
    bool is_feed; /* a change feed, from its beginning to its end */
} RequestOptions;

typedef struct RequestMaker {
    const RequestOptions *options;
    SignTarget target;  /* in 'memory' */
    ItemMaker items;    /* only if 'is_items' */
    QueryMaker queries; /* only if 'is_query' */
    int64_t signed_at_s;
    char date[DATE_LEN];
    Slice authorization; /* in 'scratch' */
    Arena memory;
    Arena scratch;
} RequestMaker;

MUST_USE Status request_maker_init(RequestMaker *maker, const RequestOptions *options, Error *err);
void request_maker_done(RequestMaker *maker);
DEFINE_AUTO_VALUE(RequestMaker, request_maker_done)

/* Appends one whole request. Of queries, it is the one of that turn: the first page of it, or what
 * goes on at 'continuation' if that is not empty, as for feeds. Others do not look at 'turn'. */
void request_print(RequestMaker *maker, uint64_t turn, Slice continuation, int64_t now_s, Buf *out);
