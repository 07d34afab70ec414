/* forward_int.h - requests that another node of the cluster serves.
 *
 * Any node takes any request. A handler that meets a partition of another node fails with
 * STATUS_NOT_OWNER, and so does the catalogue where it follows another node's. The answer to such a
 * failure is not sent: the request goes to the owner as it came, and the owner's answer to the
 * client. An owner that is unknown or in transition is waited for.
 *
 *                      +-----------------------------------------+
 *                      v                                         |
 *     handler --> response_send --> sent to the client           |
 *                      | 421, or the lease has ended             |
 *                      v                                         |
 *                  FORWARD_WAITING --> FORWARD_SENT --> answered: relayed
 *                      |    ^              |
 *                      |    +--------------+ 421, not sent, or a read whose answer was lost (if
 *                      |                      the 421 names a newer owner, that one is asked at
 * once)
 *                      +--> run again here, if this node has become the owner
 *
 * A request is forwarded once: the node that gets it as a forwarded one answers 421 if the
 * partition is not its own (HttpRequest.is_node).
 *
 * Threads    The request's loop, except forward_keep, which may be called where the request is.
 */
#pragma once

#include "api/core/response_int.h"
#include "http/node_link.h"

/* How long a request waits for an owner, before it is answered 429 (nothing was done). */
#define FORWARD_HOLD_MS 3000

/* Headers that a node adds to a request that it forwards. Public requests have none of these: http
 * refuses them. */
#define NODE_HEADER_ORIGIN  "x-orrery-node-client" /* "http 192.0.2.7:50522": scheme, peer */
#define NODE_HEADER_HOST    "x-orrery-node-host"   /* the client's Host header */
#define NODE_HEADER_SECONDS "x-orrery-node-time"   /* when the first node has received it */
#define NODE_HEADER_RANGE   "x-orrery-node-range"  /* the only range that is meant: its id */
#define NODE_HEADER_BATCH   "x-orrery-node-batch"  /* see document_remote_int.h; base64 */
#define NODE_HEADER_PART    "x-orrery-node-part"   /* what is asked of ranges: range_gather_int.h */

/* And to its answer: what it has paid, in hundredths of a request unit; how a batch of a query was
 * read, as JSON in percent encoding, if the client wants an explanation; with 421, which space it
 * does not serve, in which epoch another node does, and which: "65536 9 b", 0 for the catalogue. */
#define NODE_HEADER_CHARGE "x-orrery-node-charge"
#define NODE_HEADER_PLAN   "x-orrery-node-plan"
#define NODE_HEADER_OWNER  "x-orrery-node-owner"

/* Every answer passes this before it is sent, in a cluster. True if the request goes on instead:
 * the answer is dropped then. */
bool forward_takes_over(ApiRequest *r, Response *response);

/* Keeps what forwarding needs, if the server is a node of a cluster. Whoever defers an answer calls
 * it, because the slices of the HTTP request are gone afterwards. */
void forward_keep(ApiRequest *r);

/* Before the request reads anything: what is read from now on is of this life of the node. */
void forward_begin(ApiRequest *r);

/* A request from another node says where it came from: makes 'http' look as it did there, and notes
 * the time at which it was received there and for how long that node waits for the answer
 * (HTTP_NODE_HEADER_LEFT, which nodes of older programs do not send). STATUS_BAD_REQUEST if a
 * header is missing. */
MUST_USE Status forward_accept(ApiRequest *r, Error *err);

/* The headers with which another node is asked for the request, or for a part of it: those of the
 * client, what the nodes add, and 'more'. In the arena; after forward_keep. */
HttpHeader *forward_headers(ApiRequest *r, const HttpHeader *more, size_t more_count,
                            size_t *count);

/* The failure that another node has answered with, as it was there. */
MUST_USE Status forward_read_error(const NodeCall *call, Error *err);

/* The other node is not the owner, or has not answered: looks for the owner soon, and notes who it
 * is if the answer says so. */
void forward_note_owner(const Api *api, const NodeCall *call);

/* A header of its answer; empty if there is none. */
Slice forward_answer_header(const NodeCall *call, const char *name);

/* A header that another node has added; empty if the request is a client's. */
Slice forward_header(const ApiRequest *r, const char *name);

/* The only range that another node means; NULL if it means the whole request. STATUS_GONE if there
 * is no such range. */
MUST_USE Status forward_range(const ApiRequest *r, const PartitionRange **out, Error *err);

/* STATUS_NOT_OWNER if the request changes the catalogue, or reads the map of partitions, and this
 * node follows another one. Asked
 * before the handler, so that it need not undo anything. */
MUST_USE Status forward_check_catalog(const ApiRequest *r, Error *err);
