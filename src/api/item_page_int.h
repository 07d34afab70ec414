/* item_page_int.h - one page of items or of results, on its way to a worker and back.
 *
 * Lists (document_feed.c) and queries (document_query.c) ask for a range of EPKs in the same ways
 * and answer in the same form; what is done in between is 'run', on a worker or, if it is soon
 * over, on the loop.
 *
 * Ownership  A page lives in its request's arena and holds the container until it is answered.
 */
#pragma once

#include "api/item_int.h"
#include "api/page_clock_int.h"
#include "api/page_place_int.h"
#include "query/route.h"

enum { ENVELOPE_BYTES_MAX = 256 }; /* what stands around the items of a page */

/* What one partition has done for a page. */
typedef struct RangeCharge {
    uint32_t range; /* index in the container's ranges */
    Charge charge;
} RangeCharge;

typedef struct ItemPage ItemPage;
struct ItemPage {
    WorkerJob job;
    HttpTask task;
    Status (*run)(ItemPage *page); /* fills in what follows 'status' */
    bool can_be_brief;             /* 'run' may be tried on the loop, with 'is_brief' */
    bool is_brief;                 /* fail where it would take long, or wait for the disk */
    PageClock clock;               /* on a worker */
    ApiRequest *request;
    Container *container; /* a reference of its own */
    Slice alt_path;
    bool is_admitted; /* by the partitions that it needs, or a list by the first of them */
    Slice epk_from;   /* what is asked for */
    Slice epk_to;
    bool is_narrow; /* by a key or a range */
    bool has_key;
    PartitionKey key;
    uint32_t items_max;

    /* Of a list. */
    PagePlace place;
    ScanBudget budget;

    /* Of a query. */
    Slice body;        /* that is yet to be read; empty: it was */
    Slice token;       /* of the page before */
    bool allows_cross; /* to look at several partitions, */
    bool is_client;    /* whose results the client puts together, */
    bool is_walking;   /* and those that need no merging come partition by partition */
    Query *query;
    const QueryRoute *route; /* the keys that its filter names; NULL: any */
    Slice query_text;
    Json parameters;       /* undefined: there are none */
    Json resume_filter;    /* likewise */
    uint64_t parse_us;     /* that reading the query took */
    Slice position;        /* where it goes on */
    unsigned wanted;       /* headers that the client asked for, as flags of document_query.c */
    HttpHeader headers[4]; /* of the answer */
    size_t header_count;

    Status status;
    Error error;
    Buf text; /* the answer: behind 'text_begin' the items, separated by commas */
    size_t text_begin;
    size_t count;
    RangeCharge *charges; /* of each partition that was visited, once, in their order */
    size_t charge_count;  /* at least one when the page is answered */
    Charge charge;        /* the sum of them */
    bool is_full;         /* there is more behind 'place' */
    Slice continuation;
    Buf session;
};

MUST_USE Status item_page_begin(ApiRequest *r, Status (*run)(ItemPage *page), ItemPage **out,
                                Error *err);
MUST_USE Status item_page_post(ItemPage *page, Error *err);

/* Only what has this key, or begins with it. */
void item_page_narrow(ItemPage *page, PartitionKind kind, const PartitionKey *key);

/* Whether a partition can have anything of what is asked for. */
bool item_page_needs(const ItemPage *page, const PartitionRange *range);

/* Whether the page may look at a partition: STATUS_THROTTLED in its error if not. */
MUST_USE Status item_page_admit(ItemPage *page, const PartitionRange *range);

/* Adds what a partition has done to the page's charges: each one at most once, in their order. */
void item_page_charge(ItemPage *page, const PartitionRange *range, Charge charge);

/* Adds a partition's LSN, read before anything else of it is, to the answer's session token. */
void item_page_session(ItemPage *page, const PartitionRange *range);
