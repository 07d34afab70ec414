/* request_maker.h - the bytes of a request, with the headers that the official SDK for Node.js
 * sends, but for its name.
 *
 * Ownership  A RequestMaker borrows its options; it owns its memory until request_maker_done.
 * Threads    Belongs to one thread.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "load/item_maker.h"
#include "load/query_maker.h"
#include "load/signer.h"
#include "load/workload.h"

#define REQUEST_HEADERS_MAX 16

/* A parsed "http://host:port/path"; also https. */
typedef struct Url {
    Slice authority; /* "host:port", as it stands in the Host header */
    Slice host;      /* without the brackets of an IPv6 address */
    Slice port;      /* "80" or "443" if there is none */
    Slice path;      /* begins with a slash */
    bool is_tls;
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
    WorkloadKind kind;    /* WORKLOAD_REQUEST is what the fields above say; for the others, 'url' is
                             that of all items of a container, or of the procedure to execute */
    ItemOptions items;    /* of WORKLOAD_ITEMS; 'sign_each' has to be true */
    QueryOptions query;   /* of WORKLOAD_QUERY */
} RequestOptions;

/* What was chosen for one request, with all its pages and steps. */
typedef struct RequestTurn {
    uint64_t number;
    ItemTurn item;
} RequestTurn;

typedef struct RequestMaker {
    const RequestOptions *options;
    SignerTarget target; /* in 'memory' */
    ItemMaker items;     /* only of WORKLOAD_ITEMS */
    QueryMaker queries;  /* only of WORKLOAD_QUERY */
    int64_t signed_at_s;
    char date[DATE_LEN];
    Slice authorization; /* in 'scratch' */
    Arena memory;
    Arena scratch;
} RequestMaker;

MUST_USE Status request_maker_init(RequestMaker *maker, const RequestOptions *options, Error *err);
void request_maker_done(RequestMaker *maker);
DEFINE_AUTO_VALUE(RequestMaker, request_maker_done)

/* Chooses what turn 'number' is about. Turns of queries depend on their number alone. */
void request_maker_begin(RequestMaker *maker, uint64_t number, RequestTurn *out);

/* Appends one whole request: the first one of that turn, or the page that goes on at 'continuation'
 * if that is not empty. */
void request_maker_print(RequestMaker *maker, const RequestTurn *turn, Slice continuation,
                         int64_t now_s, Buf *out);
