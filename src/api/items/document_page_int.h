/* document_page_int.h - one page of items or of results: its way to a worker and back, its answer
 * and its price.
 *
 * A list (document_list.c) and a query (document_query.c) have a DocumentPage as a member. They
 * provide 'run', which makes the page: on a worker or, if it is short, on the loop.
 *
 *     document_page_init, document_page_post --> run on the loop, briefly --> answered
 *                                          | takes too long
 *                                          v
 *                                      run on a worker --> answered on the loop
 *
 * Ownership  A page lives in its request's arena and holds the container until it is answered.
 * Threads    The loop's until it is posted, and again when it is answered; in between the worker's.
 */
#pragma once

#include "api/items/document_clock_int.h"
#include "api/items/document_context_int.h"
#include "api/items/document_extent_int.h"
#include "api/items/document_functions_int.h"

enum { ENVELOPE_BYTES_MAX = 256 }; /* what stands around the items of a page */
enum { PAGE_HEADERS_MAX = 4 };     /* that 'run' adds to the answer */

/* Of a page's session token. Partitions beyond it are left out: more than a thousand of them, whose
 * token hardly any client accepts as a header. */
#define SESSION_TEXT_MAX ((size_t)64 << 10)

/* What one partition has done for a page. */
typedef struct RangeCharge {
    uint32_t range; /* index in the container's ranges */
    Charge charge;
} RangeCharge;

typedef struct PageBill {
    bool is_admitted;     /* by the partitions that it needs, or a list by the first of them */
    RangeCharge *charges; /* of each partition that was visited, once, in their order */
    size_t count;         /* 0 if a list asked for an empty range */
    Charge sum;
} PageBill;

typedef struct PageAnswer {
    Status status;
    Error error;
    Buf text; /* after 'text_begin' the items, separated by commas */
    size_t text_begin;
    size_t count;         /* of items */
    bool is_not_modified; /* 304: there are none, and the text is not sent */
    Slice continuation;   /* empty on the last page */
    Buf session;
    HttpHeader headers[PAGE_HEADERS_MAX];
    size_t header_count;
} PageAnswer;

typedef struct DocumentPage DocumentPage;
struct DocumentPage {
    WorkerJob job;
    HttpTask task;
    Status (*run)(DocumentPage *page);    /* fills in the bill and the answer */
    void (*answered)(DocumentPage *page); /* on the loop, before the answer is sent; may be NULL */
    bool can_be_brief;                    /* 'run' may be tried on the loop, with 'is_brief' */
    bool is_instant;                      /* trying is sure to answer it, and takes no time */
    bool is_brief;                        /* fail where it would take long, or wait for the disk */
    bool is_binary;                       /* the answer is bytes for another node */
    Workers *workers;                     /* that run it; NULL for those of all pages */
    DocumentClock clock;                  /* on a worker */
    ApiRequest *request;
    Container *container; /* a reference of its own */
    Slice alt_path;
    DocumentExtent extent;
    uint32_t items_max;
    size_t text_bytes_max; /* of the answer; a larger one is refused */
    Slice session_token;   /* that the reads must respect, in the arena; empty if there is none */
    struct AheadRange *ahead; /* partitions whose LSNs were not published when they were visited */
    size_t ahead_count;
    bool is_behind; /* a visited partition is behind it; the answer's error says which */
    DocumentFunctions functions; /* that a query can call */
    PageBill bill;
    PageAnswer answer;
};

/* Reads the request's headers. */
MUST_USE Status document_page_init(DocumentPage *page, ApiRequest *r,
                                   Status (*run)(DocumentPage *page), Error *err);

/* Runs it and answers the request, here or later. */
MUST_USE Status document_page_post(DocumentPage *page, Error *err);

/* Whether the page may look at a partition: STATUS_THROTTLED in its error if not. */
MUST_USE Status document_page_admit(DocumentPage *page, const PartitionRange *range);

/* Whether this node of a cluster serves the range. */
bool document_page_is_local(const DocumentPage *page, const PartitionRange *range);

/* Adds what a partition has done to the bill; partitions are visited in their order. */
void document_page_charge(DocumentPage *page, const PartitionRange *range, Charge charge);

/* The partition's entry in the bill, for a caller that adds it to the sum itself. */
RangeCharge *document_page_charge_of(DocumentPage *page, const PartitionRange *range);

/* For each partition that is visited, before anything else of it is read: adds its LSN to the
 * answer's session token, and sets 'is_behind' if the request's token asks for more. Such a page
 * fails with 404/1002, whatever 'run' returns; 'run' need not go on. */
void document_page_session(DocumentPage *page, const PartitionRange *range);

/* The same with the LSN of the snapshot that is read. The answer waits until it is published, so
 * that no partition refuses the token. */
void document_page_session_at(DocumentPage *page, const PartitionRange *range, uint64_t lsn);

/* Adds what another node has said of its range to the answer's session token. */
void document_page_add_session(DocumentPage *page, Slice entry);

uint64_t document_page_now_us(const DocumentPage *page);
