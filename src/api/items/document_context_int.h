/* document_context_int.h - what the handlers of items share: where an item lives, and answers about
 * it. */
#pragma once

#include "api/core/response_int.h"
#include "api/core/target_int.h"
#include "partition/partition.h"

/* The partition that a request goes to, and what its answers need. While the handler runs it
 * borrows from the loop's snapshot; document_hold makes it valid for a deferred answer. */
typedef struct DocumentContext {
    ApiRequest *request;
    const Container *container;
    const PartitionRange *range; /* the container's */
    PartitionHandle *partition;  /* the range's */
    Charge paid_by_others;       /* the part of the answer's charge that other ranges pay */
    Slice alt_path;              /* in the arena */
    Slice location;              /* of the item that is read, in the arena */
    bool is_rid_path;            /* the path names its resources by resource ids */
    bool wants_quota;            /* its answers tell what the partition holds */
    bool is_nameless;            /* its answers do not tell the container's resource id */
    Container *held;             /* a reference on the container; NULL until document_hold */
    uint8_t reroutes;            /* how often it went to another partition: see document_reroute */
} DocumentContext;

void document_context_init(DocumentContext *context, ApiRequest *r, const PartitionRange *range);
void document_hold(DocumentContext *context);
void document_release(
    DocumentContext *context); /* if it was held; for a request that is not deferred after all */

/* A partition that was split or merged accepts nothing any more. A client that named an item by its
 * key need not know (I7): the request goes to the partition that has the item now. It was admitted
 * once, by the range of that time, and is not asked again. Splits do not follow each other so
 * closely that a request is rerouted often; if it is, it fails after REROUTES_MAX times. */
#define REROUTES_MAX 100

bool document_is_gone(const Error *err);

/* Changes a held context to the partition that has 'epk' by the newest map. On the loop. */
MUST_USE Status document_reroute(DocumentContext *context, Slice epk, Error *err);

/* handle_submit to the context's partition, or to the one that has 'epk' by now. On the loop. */
MUST_USE Status document_submit(DocumentContext *context, Slice epk, PartitionWrite *write,
                                Error *err);

/* For a write that has come back: if its partition was gone, submits it again to the one that has
 * 'epk' now and returns true. If that fails, the write's error says why. On the loop. */
bool document_resubmit(DocumentContext *context, Slice epk, PartitionWrite *write);

/* Whether the request may begin: STATUS_THROTTLED if its partition has nothing left. */
MUST_USE Status document_admit(const DocumentContext *context, Error *err);

/* Takes the answer's charge from the partition's budget, and returns it as text. Every answer with
 * a charge is paid here, or in document_page_charge (I6). */
Slice document_charge(const DocumentContext *context, Charge charge);

/* A session token ("0:-1#7,1:-1#9"), and the first partition and LSN in it for clients that compare
 * these with what they asked for. */
void document_session_headers(Response *response, Slice token);

/* The headers of every answer of a container's partition. */
void document_headers(const DocumentContext *context, Response *response, uint64_t lsn);

/* The same for a failure: none if the partition has not looked at its data (429), or is behind what
 * the client has seen, because clients take the session token for what they have seen now. */
void document_error_headers(const DocumentContext *context, Response *response, const Error *err,
                            uint64_t lsn);

/* The session token that the request's reads must respect; empty if there is none, or if their
 * level of consistency ignores it. Valid as long as the request's headers. */
Slice document_session_token(const ApiRequest *r);

/* STATUS_NOT_FOUND with SUB_READ_SESSION_NOT_AVAILABLE if the token says that the client has seen
 * more of the range than 'lsn'. On any thread. */
MUST_USE Status document_check_token(const ApiRequest *r, Slice token, const PartitionRange *range,
                                     uint64_t lsn, Error *err);

/* The same for the request's own token and the context's partition as it is now. Only for requests
 * that read: writes ignore the token. */
MUST_USE Status document_check_session(const DocumentContext *context, Error *err);

/* Sends a prepared answer and releases the container if it was held. */
void document_send(DocumentContext *context, Response *response);

/* What an answer about an item has besides the headers that all have. */
typedef enum DocumentAnswer {
    DOCUMENT_ANSWER_WRITTEN, /* the item */
    DOCUMENT_ANSWER_MINIMAL, /* nothing */
    DOCUMENT_ANSWER_READ,    /* the item, its own LSN and its address */
} DocumentAnswer;

/* A larger document is printed on a worker: this takes less than a millisecond. */
#define LOOP_PRINT_BYTES_MAX ((size_t)64 << 10)

/* Answers the request, and releases the container if it was held. 'item' may be NULL after a
 * delete.
 */
void document_respond(DocumentContext *context, int status, const Item *item, uint64_t lsn,
                      Charge charge, DocumentAnswer answer);
void document_respond_error(DocumentContext *context, const Error *err, uint64_t lsn,
                            Charge charge);

/* What a read costs at the request's level of consistency, and what a refused request costs. */
Charge document_read_charge(const ApiRequest *r, Charge charge);
Charge document_failed_charge(const ApiRequest *r);

bool request_is_minimal(const ApiRequest *r); /* Prefer: return=minimal */

/* Charge and HTTP status of a write that has been done. */
Charge document_write_charge(const ApiRequest *r, const ItemWrite *w);
int document_write_status(const ItemWrite *w);

/* Checks the body of a patch against the container's rules and fills in the operation's patch and
 * condition. */
MUST_USE Status document_patch_prepare(const ApiRequest *r, Json body, ItemWrite *w, Error *err);
