/* item_int.h - what the handlers of items share: where an item lives, and answers about it. */
#pragma once

#include "api/partition_key_int.h"
#include "api/request_int.h"
#include "api/respond_int.h"
#include "partition/partition.h"

/* What a request on items addresses. */
typedef struct Target {
    PartitionKey key;
    Epk epk;
    const PartitionRange *range; /* the physical partition that serves it */
} Target;

/* The range that serves an EPK. */
const PartitionRange *range_of(const Container *container, Slice epk);

/* The range named by x-ms-documentdb-partitionkeyrangeid ("3" or "{container rid},3"); '*found' is
 * false if the header is absent, STATUS_GONE if there is no such range. */
MUST_USE Status request_range(const ApiRequest *r, const PartitionRange **out, bool *found,
                              Error *err);

/* The target of a request that names one item by its key header. */
MUST_USE Status request_target(const ApiRequest *r, Target *out, Error *err);

/* The partition that a request goes to, and what its answers need. Inline it borrows from the
 * loop's snapshot; item_hold makes it good for a deferred answer. */
typedef struct ItemContext {
    ApiRequest *request;
    const Container *container;
    const PartitionRange *range; /* the container's */
    Partition *partition;        /* the range's */
    Charge paid_by_others;       /* of the answer's charge; the range pays the rest */
    Slice alt_path;              /* in the arena */
    Slice location;              /* of the item that is read, in the arena */
    bool is_rid_path;            /* the path names its resources by resource ids */
    bool wants_quota;            /* its answers tell what the partition holds */
    bool is_nameless;            /* its answers do not tell the container's resource id */
    bool is_held;                /* the container is a reference of our own */
    uint8_t reroutes;            /* how often it went to another partition: see item_reroute */
} ItemContext;

void item_context_init(ItemContext *context, ApiRequest *r, const PartitionRange *range);
void item_hold(ItemContext *context);
void item_release(ItemContext *context); /* if it was held; of a request that is not deferred */

/* A partition that was split or merged takes nothing any more. Who named an item by its key need
 * not know: the request goes to the partition that has it now. It was admitted once, by the range
 * that was there, and is not asked again. Splits do not follow each other so closely that it would
 * go round and round, but nobody waits for that: after REROUTES_MAX times it fails. */
#define REROUTES_MAX 100

bool item_is_gone(const Error *err);

/* Turns a context that is held to the partition which has 'epk' by the newest map. On the loop. */
MUST_USE Status item_reroute(ItemContext *context, Slice epk, Error *err);

/* partition_submit to the context's partition, or to whichever has 'epk' instead. On the loop. */
MUST_USE Status item_submit(ItemContext *context, Slice epk, PartitionWrite *write, Error *err);

/* Looks at a write that has come back: if its partition was gone it is submitted again, to
 * whichever has 'epk' now, and true returned. If that fails the write says why. On the loop. */
bool item_goes_on(ItemContext *context, Slice epk, PartitionWrite *write);

/* Whether the request may begin: STATUS_THROTTLED if its partition has nothing left. */
MUST_USE Status item_admit(const ItemContext *context, Error *err);

/* Takes the answer's charge from the partition's budget, and returns it as text. What has a charge
 * to tell comes through here, or through item_page_charge. */
Slice item_charge(const ItemContext *context, Charge charge);

/* A session token ("0:-1#7,1:-1#9"), and the first partition and LSN in it for clients that compare
 * these with what they asked for. */
void item_session_headers(Response *response, Slice token);

/* The headers of everything that a container's partition answers, good or bad. */
void item_headers(const ItemContext *context, Response *response, uint64_t lsn);

/* 404 with its sub-status if the client has seen more of the partition than there is. */
MUST_USE Status item_check_session(const ItemContext *context, Error *err);

/* Sends a prepared answer and gives the container back if it was held. */
void item_send(ItemContext *context, Response *response);

/* What an answer about an item has besides the headers of all of them. */
typedef enum ItemAnswer {
    ITEM_ANSWER_WRITTEN, /* the item */
    ITEM_ANSWER_MINIMAL, /* nothing */
    ITEM_ANSWER_READ,    /* the item, its own LSN and its address */
} ItemAnswer;

/* A larger document is printed on a worker: this takes less than a millisecond. */
#define LOOP_PRINT_BYTES_MAX ((size_t)64 << 10)

/* Answers for good, and gives the container back if it was held. 'item' may be NULL after a delete.
 */
void item_respond(ItemContext *context, int status, const Item *item, uint64_t lsn, Charge charge,
                  ItemAnswer answer);
void item_respond_error(ItemContext *context, const Error *err, uint64_t lsn, Charge charge);

/* What a read costs at the request's level of consistency, and what a refused request does. */
Charge item_read_charge(const ApiRequest *r, Charge charge);
Charge item_failed_charge(const ApiRequest *r);

bool request_is_minimal(const ApiRequest *r); /* Prefer: return=minimal */

/* Of an operation that has been answered. */
Charge item_write_charge(const ApiRequest *r, const ItemWrite *w);
int item_write_status(const ItemWrite *w);

/* Checks the body of a patch against the container's rules and fills in the operation's patch and
 * condition. */
MUST_USE Status patch_prepare(Arena *arena, const Container *container, Json body, ItemWrite *w,
                              Error *err);
